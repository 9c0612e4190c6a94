// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * struct tensor: allocation, views, resizing, release.
 *
 * A view owns a reference to the root of its chain (base) and borrows the storage reference of that
 * tensor, so making a view changes one count.
 */
#include "core/tensor_impl.h"

#include "core/debug.h"
#include "core/memory_format.h"
#include "core/referrers.h"
#include "storage/magazine.h"

#include <stdio.h>
#include <stdlib.h>

struct tensor_autograd_hooks tensor_autograd_hooks;

_Static_assert(sizeof(tensor) <= TENSOR_BLOCK && sizeof(tensor) + 64 > TENSOR_BLOCK,
	       "TENSOR_BLOCK is the size of a tensor in whole cache lines");
_Static_assert(!offsetof(tensor, refs), "heap.c clears the count of a new block");

/*
 * tensor_none has no elements and a key that no operator accepts. It has a read-only storage, so
 * functions need not check for a missing one.
 */
static const struct storage_ops none_ops;
static struct tensor_storage none_storage = { .refs = 1, .ops = &none_ops, .readonly = true };
static struct tensor none_tensor = { .refs = 1,
				     .keys = KEY_BIT(KEY_NONE),
				     .storage = &none_storage };
TENSOR_EXPORT tensor *const tensor_none = &none_tensor;

/* ---- allocation and release ---- */

static bool strides_contiguous(const int64_t *sizes, const int64_t *strides, int ndim,
			       int64_t numel)
{
	int64_t step = 1;

	if (numel <= 1)
		return true;
	for (int i = ndim - 1; i >= 0; i--) {
		if (sizes[i] == 1)
			continue;
		if (strides[i] != step)
			return false;
		step *= sizes[i];
	}
	return true;
}

uint32_t device_key(tensor_device device, enum tensor_layout layout)
{
	switch (device.type) {
	case TENSOR_CPU:
		if (layout == TENSOR_BLOCKED)
			return KEY_BIT(TENSOR_KEY_BLOCKED_CPU);
		return KEY_BIT(layout == TENSOR_STRIDED ? TENSOR_KEY_CPU : TENSOR_KEY_SPARSE_CPU);
	case TENSOR_CUDA:
		return KEY_BIT(layout == TENSOR_STRIDED ? TENSOR_KEY_CUDA : TENSOR_KEY_SPARSE_CUDA);
	default:
		if (device.index < 0 || device.index > TENSOR_KEY_PRIVATE3 - TENSOR_KEY_PRIVATE0)
			return 0;
		return KEY_BIT(TENSOR_KEY_PRIVATE0 + device.index);
	}
}

static inline __attribute__((always_inline)) tensor *alloc_struct(void)
{
	tensor *t = block_take(CLASS_TENSOR);

	if (unlikely(!t))
		tensor_fail(ENOMEM, "no memory for a tensor's description");
	else
		t->inference = thread()->modes.inference;
	return t;
}

static void free_struct(tensor *t)
{
	block_give(CLASS_TENSOR, t);
}

/* Releases the members of t; false for tensor_none, whose struct is not freed. */
static inline __attribute__((always_inline)) bool end_tensor(tensor *t)
{
	if (unlikely(atomic_load_explicit(&t->refs, memory_order_relaxed) <= 0))
		debug_dead(t, "release");
	if (unlikely(t == tensor_none))
		return false;
	if (unlikely(t->autograd_meta))
		tensor_autograd_hooks.free_meta(t->autograd_meta);
	if (unlikely(t->keys & FORWARD_BIT))
		tensor_put(t->tangent);
	if (unlikely(t->ext))
		extension_put(t->ext);
	if (t->owns_storage)
		storage_put(t->storage);
	if (t->base)
		tensor_ref_drop(t->base, REF_VIEW);
	/*
	 * A use before the struct is reused is an error. Release order: storage_of() in referrers.c
	 * reads it.
	 */
	atomic_store_explicit(&t->refs, 0, memory_order_release);
	t->keys = KEY_BIT(KEY_NONE);
	return true;
}

void tensor_free(tensor *t)
{
	if (end_tensor(t))
		free_struct(t);
}

void tensor_free_held(tensor *t)
{
	if (end_tensor(t))
		block_hold(t);
}

/* Sets the members that do not depend on the geometry. */
static inline void init(tensor *t, struct tensor_storage *s, unsigned dtype, int ndim)
{
	t->storage = s;
	/* After the storage: referrers.c reads the count first. */
	atomic_store_explicit(&t->refs, 1, memory_order_release);
	t->dtype = dtype;
	t->layout = TENSOR_STRIDED;
	t->ndim = ndim;
	t->device = s->device;
	t->autograd_meta = NULL;
	t->ext = NULL;
	atomic_store_explicit(&t->binding, NULL, memory_order_relaxed);
}

static int check_new(const char *what, enum tensor_dtype dtype, int ndim)
{
	if (unlikely((unsigned)dtype >= TENSOR_DTYPE_COUNT || dtype == TENSOR_DTYPE_NONE))
		return tensor_fail(EINVAL, "%s: %d is no dtype", what, (int)dtype);
	if (unlikely(ndim > TENSOR_MAX_DIMS || ndim < 0))
		return tensor_fail(EINVAL, "%s: at most %d dimensions, got %d", what,
				   TENSOR_MAX_DIMS, ndim);
	return 0;
}

/*
 * Sets sizes, contiguous strides and numel. One pass in the usual case; sizes below one and
 * overflows take the slow path, which reports errors.
 */
static int set_contiguous(tensor *t, const int64_t *sizes)
{
	int64_t numel = 1;

	t->contiguous = true;
	for (int i = t->ndim - 1; i >= 0; i--) {
		t->sizes[i] = sizes[i];
		t->strides[i] = numel;
		if (unlikely(sizes[i] < 1 || __builtin_mul_overflow(numel, sizes[i], &numel))) {
			numel = sizes_numel("empty", sizes, t->ndim);
			memcpy(t->sizes, sizes, t->ndim * sizeof(*sizes));
			contiguous_strides(sizes, t->ndim, t->strides);
			break;
		}
	}
	t->numel = numel;
	return numel < 0 ? -thread()->error.code : 0;
}

static tensor *new_contiguous(tensor_device device, enum tensor_dtype dtype, bool shareable,
			      const int64_t *sizes, int ndim)
{
	struct tensor_storage *s;
	int64_t nbytes;
	tensor *t;

	if (check_new("empty", dtype, ndim) < 0)
		return NULL;
	t = alloc_struct();
	if (unlikely(!t))
		return NULL;
	t->ndim = ndim;
	if (unlikely(set_contiguous(t, sizes) < 0))
		goto free_tensor;
	if (unlikely(__builtin_mul_overflow(t->numel, (int64_t)dtype_sizes[dtype], &nbytes))) {
		tensor_fail(EOVERFLOW, "empty: %lld elements of %s overflow", (long long)t->numel,
			    tensor_dtype_name(dtype));
		goto free_tensor;
	}
	s = storage_alloc(device, nbytes, shareable);
	if (unlikely(!s))
		goto free_tensor;
	init(t, s, dtype, ndim);
	t->keys = device_key(device, TENSOR_STRIDED);
	t->owns_storage = true;
	t->differentiable_view = false;
	t->data = s->data;
	t->offset = 0;
	t->base = NULL;
	return t;
free_tensor:
	free_struct(t);
	return NULL;
}

tensor *tensor_new(tensor_device device, enum tensor_dtype dtype, const int64_t *sizes, int ndim)
{
	return new_contiguous(device, dtype, false, sizes, ndim);
}

static tensor_device option_device(tensor_options options)
{
	return options.device.type ? options.device : TENSOR_DEVICE_CPU;
}

static enum tensor_dtype option_dtype(tensor_options options)
{
	return options.dtype ? options.dtype : TENSOR_F32;
}

static int check_options(tensor_options o)
{
	if (o.layout > TENSOR_STRIDED)
		return tensor_fail(EOPNOTSUPP, "empty: layout %s cannot be made empty",
				   tensor_layout_name(o.layout));
	if ((unsigned)o.device.type >= TENSOR_DEVICE_TYPE_COUNT || o.device.index < 0)
		return tensor_fail(EINVAL, "empty: %d:%d is no device", o.device.type,
				   o.device.index);
	return 0;
}

static __attribute__((noinline)) tensor *new_channels_last(tensor_options o, const int64_t *sizes,
							   int ndim)
{
	int64_t strides[TENSOR_MAX_DIMS];

	if (memory_format_check(o.memory_format, ndim) < 0)
		return NULL;
	memory_channels_last_strides(sizes, ndim, strides);
	return tensor_new_strided(o, sizes, strides, ndim);
}

tensor *tensor_new_opt(tensor_options o, const int64_t *sizes, int ndim)
{
	if (check_options(o) < 0)
		return NULL;
	if (unlikely(o.memory_format > TENSOR_PRESERVE_FORMAT))
		return new_channels_last(o, sizes, ndim);
	return new_contiguous(option_device(o), option_dtype(o), o.shareable, sizes, ndim);
}

tensor *tensor_new_on_storage(struct tensor_storage *s, enum tensor_dtype dtype,
			      const int64_t *sizes, const int64_t *strides, int ndim,
			      int64_t offset)
{
	tensor *t;

	if (check_new("tensor", dtype, ndim) < 0 || !(t = alloc_struct())) {
		storage_put(s);
		return NULL;
	}
	init(t, s, dtype, ndim);
	t->keys = device_key(s->device, TENSOR_STRIDED);
	t->owns_storage = true;
	t->differentiable_view = false;
	t->base = NULL;
	t->offset = offset;
	t->data = (char *)s->data + offset * (int64_t)dtype_sizes[dtype];
	t->numel = 1;
	for (int i = 0; i < ndim; i++) {
		t->sizes[i] = sizes[i];
		t->strides[i] = strides[i];
		t->numel *= sizes[i];
	}
	t->contiguous = strides_contiguous(sizes, strides, ndim, t->numel);
	referrer_note(t); /* other tensors may use s */
	return t;
}

tensor *tensor_new_strided(tensor_options o, const int64_t *sizes, const int64_t *strides, int ndim)
{
	enum tensor_dtype dtype = option_dtype(o);
	int64_t last = 0, nbytes, step, numel;
	struct tensor_storage *s;

	if (check_options(o) < 0 || check_new("empty_strided", dtype, ndim) < 0)
		return NULL;
	numel = sizes_numel("empty_strided", sizes, ndim);
	if (numel < 0)
		return NULL;
	for (int i = 0; i < ndim; i++) {
		if (strides[i] < 0)
			return tensor_fail_null(EINVAL,
						"empty_strided: stride %lld of dimension %d is "
						"negative",
						(long long)strides[i], i);
		if (numel && (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) ||
			      __builtin_add_overflow(last, step, &last)))
			return tensor_fail_null(EOVERFLOW, "empty_strided: the extent overflows");
	}
	if (__builtin_mul_overflow(numel ? last + 1 : 0, (int64_t)dtype_sizes[dtype], &nbytes))
		return tensor_fail_null(EOVERFLOW, "empty_strided: the extent overflows");
	s = storage_alloc(option_device(o), nbytes, o.shareable);
	return s ? tensor_new_on_storage(s, dtype, sizes, strides, ndim, 0) : NULL;
}

tensor *tensor_new_unstrided(tensor_options o, const int64_t *sizes, int ndim, size_t nbytes,
			     struct tensor_extension *ext)
{
	static const int64_t strides[TENSOR_MAX_DIMS];
	enum tensor_dtype dtype = option_dtype(o);
	struct tensor_storage *s = NULL;
	tensor *t = NULL;
	int64_t numel;

	if (check_new("tensor", dtype, ndim) < 0)
		goto failed;
	numel = sizes_numel("tensor", sizes, ndim);
	if (numel >= 0)
		s = storage_alloc(option_device(o), nbytes, false);
	if (s)
		t = tensor_new_on_storage(s, dtype, sizes, strides, ndim, 0);
	if (!t)
		goto failed;
	t->layout = o.layout;
	t->keys = device_key(t->device, o.layout);
	t->contiguous = false;
	t->data = NULL;
	t->numel = numel;
	t->ext = ext;
	return t;
failed:
	extension_put(ext);
	return NULL;
}

tensor *tensor_new_view(tensor *self, const int64_t *sizes, const int64_t *strides, int ndim,
			int64_t offset)
{
	tensor *base = self->base ? self->base : self;
	int64_t step = 1; /* after the loop the number of elements */
	bool contiguous = true;
	tensor *t;

	if (unlikely(ndim > TENSOR_MAX_DIMS))
		return tensor_fail_null(EINVAL, "view: at most %d dimensions, got %d",
					TENSOR_MAX_DIMS, ndim);
	if (unlikely(self->ext) && !self->ext->ops->views)
		return tensor_fail_null(EOPNOTSUPP, "view: a tensor %s of this kind has no views",
					SHAPE_STR(self));
	t = alloc_struct();
	if (unlikely(!t))
		return NULL;
	init(t, self->storage, self->dtype, ndim);
	if (unlikely(self->ext))
		t->ext = extension_get(self);
	t->keys = self->keys & KEYS_BACKEND;
	t->owns_storage = false;
	t->differentiable_view = true;
	t->inference |= self->inference;
	t->base = base;
	tensor_ref_add(base, REF_VIEW);
	t->offset = offset;
	t->data = (char *)self->data + (offset - self->offset) * (int64_t)itemsize(self);
	for (int i = ndim - 1; i >= 0; i--) {
		int64_t n = sizes[i];

		t->sizes[i] = n;
		t->strides[i] = strides[i];
		if (n != 1) {
			contiguous &= strides[i] == step;
			step *= n;
		}
	}
	t->numel = step;
	t->contiguous = contiguous || step <= 1;
	referrer_note(t);
	return t;
}

tensor *tensor_new_detached(tensor *self)
{
	tensor *t = alloc_struct();

	if (unlikely(!t))
		return NULL;
	storage_get(self->storage);
	init(t, self->storage, self->dtype, self->ndim);
	t->ext = extension_get(self);
	t->layout = self->layout;
	t->keys = self->keys & KEYS_BACKEND;
	t->contiguous = self->contiguous;
	t->owns_storage = true;
	t->inference |= self->inference;
	t->differentiable_view = false;
	t->base = NULL;
	t->data = self->data;
	t->offset = self->offset;
	t->numel = self->numel;
	for (int i = 0; i < self->ndim; i++) {
		t->sizes[i] = self->sizes[i];
		t->strides[i] = self->strides[i];
	}
	referrer_note(t);
	referrer_note_owner(self->base ? self->base : self);
	return t;
}

int tensor_resize(tensor *t, const int64_t *sizes, int ndim)
{
	int64_t numel = sizes_numel("resize", sizes, ndim), nbytes;

	if (numel < 0 || check_new("resize", t->dtype, ndim) < 0)
		return -thread()->error.code;
	if (__builtin_mul_overflow(numel, (int64_t)itemsize(t), &nbytes))
		return tensor_fail(EOVERFLOW, "resize: %lld elements overflow", (long long)numel);
	if (t->base || !t->owns_storage)
		return tensor_fail(EINVAL, "resize: the tensor %s is a view and keeps its shape",
				   SHAPE_STR(t));
	/* The graph has recorded the shape of the gradient. */
	if (unlikely(t->keys & AUTOGRAD_BIT) && tensor_autograd_hooks.requires_grad(t))
		return tensor_fail(EINVAL,
				   "resize: the tensor %s requires a gradient and keeps its shape",
				   SHAPE_STR(t));
	if (t->offset * (int64_t)itemsize(t) + nbytes > (int64_t)t->storage->nbytes) {
		struct tensor_storage *s = storage_alloc(t->device, nbytes, false);

		if (!s)
			return -thread()->error.code;
		/* Views borrow the reference that is released here. */
		if (tensor_live_views(t))
			s->previous = t->storage;
		else
			storage_put(t->storage);
		t->storage = s;
		t->data = s->data;
		t->offset = 0;
	} else {
		storage_reach(t->storage, (size_t)(t->offset * (int64_t)itemsize(t) + nbytes));
	}
	t->ndim = ndim;
	t->numel = numel;
	t->contiguous = true;
	if (ndim) /* sizes may be NULL */
		memcpy(t->sizes, sizes, ndim * sizeof(*sizes));
	contiguous_strides(sizes, ndim, t->strides);
	return 0;
}
