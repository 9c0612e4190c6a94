/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * struct tensor and the functions that allocate and release tensors.
 *
 * Ownership inside the library: a function that returns a tensor gives the caller a reference
 * ("owned"); only the generated public functions give it to the open scope. Arguments are borrowed.
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
#define AUTOCAST_BIT KEY_BIT(TENSOR_KEY_AUTOCAST)
#define AUTOGRAD_BIT KEY_BIT(TENSOR_KEY_AUTOGRAD)
#define FORWARD_BIT  KEY_BIT(TENSOR_KEY_FORWARD)
#define BATCHED_BIT  KEY_BIT(TENSOR_KEY_BATCHED)
#define KEYS_BACKEND (AUTOGRAD_BIT - 1) /* the batched key is the backend of tensors without data */
/* The key of tensor_none, above all others: every operator refuses it. */
#define KEY_NONE TENSOR_KEY_COUNT

struct autograd_meta;

/* ---- tensor ---- */

/*
 * Data of a tensor that sizes and strides do not describe: the parts of a sparse tensor, the scale
 * of a quantized one, the format of a blocked one. It is the first member of a struct of its owner.
 * Tensors share it, and it does not change. Such a tensor has a key of KEYS_EXTENSION, so only
 * functions that were written for it get it.
 */
struct tensor_extension {
	atomic_int refs;
	const struct extension_ops *ops;
};

struct extension_ops {
	void (*free)(struct tensor_extension *x);
	/*
	 * For printing: part i as an owned strided tensor, and its name, "" for the elements of the
	 * tensor itself; NULL after the last part.
	 */
	tensor *(*part)(const tensor *t, int i, const char **name);
	/* For printing: the text behind the parts, ", nnz=3, layout=sparse_coo". */
	void (*describe)(const tensor *t, char *buf, size_t size);
	bool views; /* tensor_new_view() gives the extension to the view; otherwise it fails */
};

struct tensor {
	_Atomic int64_t refs; /* see REF_HOLDER */
	uint32_t keys;
	uint8_t dtype, layout, ndim;
	bool contiguous; /* row-major without gaps; true for numel <= 1 */
	tensor_device device;
	/* A view of `base` borrows the base's storage reference; other tensors own theirs. */
	bool owns_storage;
	bool inference;		  /* made in inference mode: read-only outside of it */
	bool differentiable_view; /* autograd records the view; otherwise base only owns the storage */
	void *data;		  /* storage->data + offset * itemsize; NULL without strides */
	struct tensor_storage *storage;
	int64_t offset, numel;
	tensor *base; /* owned; the root of the chain of views, never a view itself */
	struct autograd_meta *autograd_meta; /* owned by lib/autograd, see tensor_autograd_hooks */
	tensor *tangent;		     /* owned; valid only with TENSOR_KEY_FORWARD */
	struct tensor_extension *ext;	     /* owned; NULL for a strided tensor of plain numbers */
	_Atomic(void *) binding; /* the object of a language binding, see tensor_set_binding() */
	int64_t sizes[TENSOR_MAX_DIMS];
	int64_t strides[TENSOR_MAX_DIMS];
	struct call_place made, released; /* with TENSOR_DEBUG */
};

/* Functions of lib/autograd that this layer calls; set at load. */
struct tensor_autograd_hooks {
	void (*free_meta)(struct autograd_meta *meta);
	bool (*requires_grad)(const tensor *t);
	/* ", requires_grad=True" or ", grad_fn=<AddBackward>" for printing; optional */
	void (*describe)(const tensor *t, char *buf, size_t size);
	/* The node that computed t, to identify it; NULL for a leaf. Optional. */
	const void *(*node)(const tensor *t);
};
extern struct tensor_autograd_hooks tensor_autograd_hooks;

void tensor_free(tensor *t);
/* As tensor_free(), but the struct is not reused soon (block_hold()). */
void tensor_free_held(tensor *t);

static inline void extension_put(struct tensor_extension *x)
{
	if (x && ref_put(&x->refs))
		x->ops->free(x);
}

/* Returns the extension of t, which may be NULL, with one more reference. */
static inline struct tensor_extension *extension_get(const tensor *t)
{
	if (unlikely(t->ext))
		ref_get(&t->ext->refs);
	return t->ext;
}

/*
 * The count of a tensor: references, and in the upper half the number of views among them, so that
 * one addition maintains both.
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

	if (n <= unit) /* less than unit: it was released too often */
		return true;
	if (__libc_single_threaded) {
		atomic_store_explicit(&t->refs, n - unit, memory_order_relaxed);
		return false;
	}
	if (likely(atomic_fetch_sub_explicit(&t->refs, unit, memory_order_acq_rel) != unit))
		return false;
	/* Another thread dropped one meanwhile. tensor_free() takes a count of 0 for a release too many. */
	atomic_store_explicit(&t->refs, unit, memory_order_relaxed);
	return true;
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

/* Not marked cold: that would split the caller, and call_place() would not find its name. */
void debug_released(const tensor *t);

/*
 * False for NULL. Public functions check their arguments with it: it ends the program if t was
 * released and its struct was not reused.
 */
static inline bool tensor_given(const tensor *t)
{
	if (unlikely(t && atomic_load_explicit(&t->refs, memory_order_relaxed) <= 0))
		debug_released(t);
	return t;
}

/* True with the error set for NULL and tensor_none. */
bool tensor_absent(const char *op, const tensor *t);

static inline int64_t tensor_live_views(const tensor *t)
{
	return atomic_load_explicit(&t->refs, memory_order_relaxed) >> 32;
}

/* All return owned tensors, or NULL with the error set. */
/* Contiguous, on new storage, uninitialised. */
tensor *tensor_new(tensor_device device, enum tensor_dtype dtype, const int64_t *sizes, int ndim);
tensor *tensor_new_opt(tensor_options options, const int64_t *sizes, int ndim);
/* With the given strides (>= 0), on a new storage of the necessary size. */
tensor *tensor_new_strided(tensor_options options, const int64_t *sizes, const int64_t *strides,
			   int ndim);
/* Consumes a reference to the storage, also on failure. */
tensor *tensor_new_on_storage(struct tensor_storage *s, enum tensor_dtype dtype,
			      const int64_t *sizes, const int64_t *strides, int ndim,
			      int64_t offset);
/* A view with another geometry. The caller has checked that it lies within the storage. */
tensor *tensor_new_view(tensor *self, const int64_t *sizes, const int64_t *strides, int ndim,
			int64_t offset);
/* With the geometry of self, without history and not a view: for saved tensors. */
tensor *tensor_new_detached(tensor *self);
/*
 * A tensor of another layout: data is NULL, strides are 0, the storage has nbytes, which may be 0. Consumes
 * the reference to ext, also on failure.
 */
tensor *tensor_new_unstrided(tensor_options options, const int64_t *sizes, int ndim, size_t nbytes,
			     struct tensor_extension *ext);
/* An uninitialised tensor of self's device and dtype and the given shape. */
static inline tensor *tensor_new_like(const tensor *self, const int64_t *sizes, int ndim)
{
	return tensor_new(self->device, self->dtype, sizes, ndim);
}
/* Changes the shape of an out= argument; keeps its memory if that is large enough. */
int tensor_resize(tensor *t, const int64_t *sizes, int ndim);

static inline void tensor_bump_version(tensor *t)
{
	storage_written(t->storage);
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
/*
 * The geometry of a copy of t without gaps, in which elements of dimensions with stride 0 are
 * stored once: their number, the sizes in memory, and the strides that give the sizes of t.
 */
int64_t packed_geometry(const tensor *t, int64_t *sizes, int64_t *strides);
/* Converts a negative dimension; -1 with the error set if it is out of range. */
int wrap_dim(const char *op, int64_t dim, int ndim);
/* "[2, 3]" into buf; returns buf. */
/* -EPERM for a tensor of inference mode outside of it; -EACCES for read-only memory. */
static inline int tensor_check_mode(const char *what, const tensor *t)
{
	if (likely(!t->inference) || thread()->modes.inference)
		return 0;
	return tensor_fail(EPERM,
			   "%s: a tensor that was made in inference mode cannot be changed outside "
			   "of it; change a clone",
			   what);
}

static inline int tensor_check_writable(const char *what, const tensor *t)
{
	if (likely(!t->storage->readonly))
		return tensor_check_mode(what, t);
	return tensor_fail(EACCES, "%s: the tensor's memory is mapped read-only", what);
}

const char *format_sizes(const int64_t *sizes, int ndim, char *buf, size_t size);

#define SHAPE_TEXT   128
#define SHAPE_STR(t) format_sizes((t)->sizes, (t)->ndim, (char[SHAPE_TEXT]){ 0 }, SHAPE_TEXT)

#endif
