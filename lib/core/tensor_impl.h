/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The data model, seen from inside: struct tensor, struct tensor_storage, and the state that
 * belongs to a thread. Nothing here knows operators, autograd or where memory comes from.
 *
 * Ownership inside the library: a function that returns a tensor gives the caller a reference
 * ("owned"); only the generated public functions hand it to the open scope. Arguments are
 * borrowed.
 */
#ifndef TENSOR_IMPL_H
#define TENSOR_IMPL_H

#include "base/call_place.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/thread.h"
#include "core/scope.h"
#include "storage/storage.h"

#define KEY_BIT(key) (1u << (key))
#define KEYS_BACKEND (KEY_BIT(TENSOR_KEY_AUTOGRAD) - 1)
/* Above all keys, and of tensor_none alone: every operator refuses what has it. */
#define KEY_NONE TENSOR_KEY_COUNT

struct autograd_meta;

/* ---- tensor ---- */

/*
 * What a tensor has where sizes and strides do not say it all: the parts of a sparse one, the
 * scale of a quantised one, the format of a blocked one. The first member of a struct of its
 * owner's. Tensors share it; it never changes while one has it. Such a tensor has a key of
 * KEYS_EXTENSION, so that only functions that know it ever see it.
 */
struct tensor_extension {
	atomic_int refs;
	const struct extension_ops *ops;
};

struct extension_ops {
	void (*free)(struct tensor_extension *x);
	/* For printing: an owned strided tensor and its name, "" for the tensor's own numbers;
	 * NULL after the last of them. */
	tensor *(*part)(const tensor *t, int i, const char **name);
	/* ... and what follows them: ", nnz=3, layout=sparse_coo" */
	void (*describe)(const tensor *t, char *buf, size_t size);
	bool views; /* tensor_new_view() of such a tensor has the same extension, or else fails */
};

struct tensor {
	_Atomic int64_t refs; /* see REF_HOLDER */
	uint32_t keys;
	uint8_t dtype, layout, ndim;
	bool contiguous; /* row-major without gaps; true for numel <= 1 */
	tensor_device device;
	/* A view of `base` borrows the base's storage reference; other tensors own theirs. */
	bool owns_storage;
	bool differentiable_view; /* base is there for autograd, not only for its storage */
	void *data;		  /* storage->data + offset * itemsize; NULL without strides */
	struct tensor_storage *storage;
	int64_t offset, numel;
	tensor *base; /* owned; the root of the chain of views, never a view itself */
	struct autograd_meta *autograd_meta; /* owned by lib/autograd, see tensor_autograd_hooks */
	struct tensor_extension *ext;	     /* owned; NULL for a strided tensor of plain numbers */
	int64_t sizes[TENSOR_MAX_DIMS];
	int64_t strides[TENSOR_MAX_DIMS];
	struct call_place made, released; /* with TENSOR_DEBUG */
};

/* Autograd's side of a tensor's life; lib/autograd sets it at load. */
struct tensor_autograd_hooks {
	void (*free_meta)(struct autograd_meta *meta);
	bool (*requires_grad)(const tensor *t);
	/* ", requires_grad=True" or ", grad_fn=<AddBackward>" for printing; optional */
	void (*describe)(const tensor *t, char *buf, size_t size);
};
extern struct tensor_autograd_hooks tensor_autograd_hooks;

void tensor_free(tensor *t);
/* The same, but no tensor is made of the struct soon: see block_hold(). */
void tensor_free_held(tensor *t);

static inline void extension_put(struct tensor_extension *x)
{
	if (x && ref_put(&x->refs))
		x->ops->free(x);
}

/* One more reference to t's, which may be NULL. */
static inline struct tensor_extension *extension_get(const tensor *t)
{
	if (unlikely(t->ext))
		ref_get(&t->ext->refs);
	return t->ext;
}

/*
 * A tensor's count: holders, and in the upper half how many of them are views, so that a base
 * knows how many views of it are alive at the price of one addition.
 */
#define REF_HOLDER ((int64_t)1)
#define REF_VIEW   (((int64_t)1 << 32) + 1)

static inline void tensor_ref_add(tensor *t, int64_t unit)
{
	if (__libc_single_threaded)
		atomic_store_explicit(&t->refs,
				      atomic_load_explicit(&t->refs, memory_order_relaxed) + unit,
				      memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&t->refs, unit, memory_order_relaxed);
}

/* Drops a reference as ref_put() does; true if t is to be freed. The last reference is not written. */
static inline bool tensor_ref_last(tensor *t, int64_t unit)
{
	int64_t n = atomic_load_explicit(&t->refs, memory_order_acquire);

	if (n <= unit) /* less: it was released before */
		return true;
	if (__libc_single_threaded) {
		atomic_store_explicit(&t->refs, n - unit, memory_order_relaxed);
		return false;
	}
	return atomic_fetch_sub_explicit(&t->refs, unit, memory_order_acq_rel) == unit;
}

static inline void tensor_ref_drop(tensor *t, int64_t unit)
{
	if (tensor_ref_last(t, unit))
		tensor_free(t);
}

static inline tensor *tensor_get(tensor *t)
{
	tensor_ref_add(t, REF_HOLDER);
	return t;
}

static inline void tensor_put(tensor *t)
{
	if (t)
		tensor_ref_drop(t, REF_HOLDER);
}

/* Not cold: the caller stays in one piece, in which call_place() finds its name. */
void debug_released(const tensor *t);

/* False for NULL. Public functions check their arguments with it: it ends the program if t was released and no
 * other tensor was made of its struct. */
static inline bool tensor_given(const tensor *t)
{
	if (unlikely(t && atomic_load_explicit(&t->refs, memory_order_relaxed) <= 0))
		debug_released(t);
	return t;
}

static inline int64_t tensor_live_views(const tensor *t)
{
	return atomic_load_explicit(&t->refs, memory_order_relaxed) >> 32;
}

/* All return owned tensors, or NULL with the error set. */
/* Contiguous, on new storage, uninitialised. */
tensor *tensor_new(tensor_device device, enum tensor_dtype dtype, const int64_t *sizes, int ndim);
tensor *tensor_new_opt(tensor_options options, const int64_t *sizes, int ndim);
/* With strides of its own choosing (>= 0), on new storage just large enough. */
tensor *tensor_new_strided(tensor_options options, const int64_t *sizes, const int64_t *strides,
			   int ndim);
/* Takes over one reference to the storage, also on failure. */
tensor *tensor_new_on_storage(struct tensor_storage *s, enum tensor_dtype dtype,
			      const int64_t *sizes, const int64_t *strides, int ndim,
			      int64_t offset);
/* The same memory seen otherwise. The caller has checked that it stays within the storage. */
tensor *tensor_new_view(tensor *self, const int64_t *sizes, const int64_t *strides, int ndim,
			int64_t offset);
/* Like self in geometry, without history and not a view: what autograd saves. */
tensor *tensor_new_detached(tensor *self);
/* Of another layout: data is NULL, strides are 0, storage has nbytes (0 is fine). Takes over the
 * reference to ext, also on failure. */
tensor *tensor_new_unstrided(tensor_options options, const int64_t *sizes, int ndim, size_t nbytes,
			     struct tensor_extension *ext);
/* An uninitialised tensor of self's device and dtype and the given shape. */
static inline tensor *tensor_new_like(const tensor *self, const int64_t *sizes, int ndim)
{
	return tensor_new(self->device, self->dtype, sizes, ndim);
}
/* Gives out another shape, keeping its memory when that is large enough (out= arguments). */
int tensor_resize(tensor *t, const int64_t *sizes, int ndim);

static inline void tensor_bump_version(tensor *t)
{
	ref_get(&t->storage->version);
}

uint32_t device_key(tensor_device device, enum tensor_layout layout);

/* numel of sizes, or -1 with the error set (negative size, overflow) */
int64_t sizes_numel(const char *op, const int64_t *sizes, int ndim);
static inline bool sizes_equal(const tensor *a, const tensor *b)
{
	if (a->ndim != b->ndim)
		return false;
	for (int i = 0; i < a->ndim; i++)
		if (a->sizes[i] != b->sizes[i])
			return false;
	return true;
}

static inline size_t itemsize(const tensor *t)
{
	return dtype_sizes[t->dtype];
}

/* The dtype of t with a scalar, which counts only if its category is higher. */
enum tensor_dtype promote_scalar(const tensor *t, tensor_scalar s);

void contiguous_strides(const int64_t *sizes, int ndim, int64_t *strides);
/* t's elements without gaps, and once where a stride is 0: how many there are, the sizes that they have
 * in memory, and the strides that give them t's sizes. */
int64_t packed_geometry(const tensor *t, int64_t *sizes, int64_t *strides);
/* A dimension counted from the end becomes one counted from the front; -1 with the error set. */
int wrap_dim(const char *op, int64_t dim, int ndim);
/* "[2, 3]" into buf; returns buf. */
const char *format_sizes(const int64_t *sizes, int ndim, char *buf, size_t size);

#define SHAPE_TEXT   128
#define SHAPE_STR(t) format_sizes((t)->sizes, (t)->ndim, (char[SHAPE_TEXT]){ 0 }, SHAPE_TEXT)

#endif
