// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * DLPack. An exported struct owns a tensor on the same storage. An imported struct becomes the
 * owner of a new storage; its fields are read once, because they may be wrong.
 */
#include "core/tensor_impl.h"

#include <stdlib.h>
#include <tensor/dlpack.h>

static const struct {
	uint8_t code, bits;
} dl_types[] = {
	[TENSOR_BOOL] = { kDLBool, 8 },
	[TENSOR_U8] = { kDLUInt, 8 },
	[TENSOR_I8] = { kDLInt, 8 },
	[TENSOR_I16] = { kDLInt, 16 },
	[TENSOR_I32] = { kDLInt, 32 },
	[TENSOR_I64] = { kDLInt, 64 },
	[TENSOR_F16] = { kDLFloat, 16 },
	[TENSOR_BF16] = { kDLBfloat, 16 },
	[TENSOR_F32] = { kDLFloat, 32 },
	[TENSOR_F64] = { kDLFloat, 64 },
	[TENSOR_C64] = { kDLComplex, 64 },
	[TENSOR_C128] = { kDLComplex, 128 },
	[TENSOR_U16] = { kDLUInt, 16 },
	[TENSOR_U32] = { kDLUInt, 32 },
	[TENSOR_U64] = { kDLUInt, 64 },
	[TENSOR_F8_E4M3FN] = { kDLFloat8_e4m3fn, 8 },
	[TENSOR_F8_E5M2] = { kDLFloat8_e5m2, 8 },
};
_Static_assert(ARRAY_SIZE(dl_types) == TENSOR_DTYPE_COUNT, "a dtype without a type of DLPack");

/* ---- away ---- */

struct exported {
	union {
		struct DLManagedTensorVersioned versioned;
		struct DLManagedTensor plain;
	};
	tensor *t; /* owned */
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
};

static void exported_free(struct exported *e)
{
	tensor_put(e->t);
	free(e);
}

static void versioned_deleter(struct DLManagedTensorVersioned *m)
{
	if (m)
		exported_free(m->manager_ctx);
}

static void plain_deleter(struct DLManagedTensor *m)
{
	if (m)
		exported_free(m->manager_ctx);
}

static int check_export(const tensor *t, unsigned flags)
{
	if (tensor_absent("to_dlpack", t))
		return -thread()->error.code;
	if (flags & ~TENSOR_DLPACK_COPIED)
		return tensor_fail(EINVAL, "to_dlpack: flags 0x%x are unknown", flags);
	if (t->ext || t->layout != TENSOR_STRIDED || t->device.type != TENSOR_CPU)
		return tensor_fail(
			EOPNOTSUPP,
			"to_dlpack: only strided tensors of plain numbers in host memory can be "
			"given away");
	if (tensor_autograd_hooks.requires_grad && tensor_autograd_hooks.requires_grad(t))
		return tensor_fail(
			EINVAL,
			"to_dlpack: the tensor requires a gradient, which would be lost: detach it "
			"first");
	return 0;
}

static struct exported *export_new(tensor *t, unsigned flags)
{
	struct exported *e;

	if (check_export(t, flags) < 0)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (e)
		e->t = tensor_new_detached(t);
	if (e && e->t) {
		memcpy(e->sizes, t->sizes, t->ndim * sizeof(*e->sizes));
		memcpy(e->strides, t->strides, t->ndim * sizeof(*e->strides));
		return e;
	}
	free(e);
	tensor_fail(ENOMEM, "to_dlpack: no memory");
	return NULL;
}

static void describe(struct exported *e, struct DLTensor *d)
{
	d->data = e->t->numel ? e->t->data : NULL;
	d->device.device_type = kDLCPU;
	d->ndim = e->t->ndim;
	d->dtype = (struct DLDataType){ dl_types[e->t->dtype].code, dl_types[e->t->dtype].bits, 1 };
	d->shape = e->sizes;
	d->strides = e->strides;
}

TENSOR_EXPORT struct DLManagedTensorVersioned *tensor_to_dlpack(tensor *t, unsigned flags)
{
	struct exported *e = export_new(t, flags);

	if (!e)
		return NULL;
	describe(e, &e->versioned.dl_tensor);
	e->versioned.version.major = 1;
	e->versioned.manager_ctx = e;
	e->versioned.deleter = versioned_deleter;
	e->versioned.flags = (e->t->storage->readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0) |
			     (flags & TENSOR_DLPACK_COPIED ? DLPACK_FLAG_BITMASK_IS_COPIED : 0);
	return &e->versioned;
}

TENSOR_EXPORT struct DLManagedTensor *tensor_to_dlpack_unversioned(tensor *t, unsigned flags)
{
	struct exported *e = export_new(t, flags);

	if (!e)
		return NULL;
	if (e->t->storage->readonly) {
		exported_free(e);
		tensor_fail(EACCES, "to_dlpack: the form without a version cannot say that memory "
				    "is read-only");
		return NULL;
	}
	describe(e, &e->plain.dl_tensor);
	e->plain.manager_ctx = e;
	e->plain.deleter = plain_deleter;
	return &e->plain;
}

/* ---- here ---- */

static void versioned_free(struct tensor_storage *s)
{
	struct DLManagedTensorVersioned *m = s->owner;

	if (m->deleter)
		m->deleter(m);
}

static void plain_free(struct tensor_storage *s)
{
	struct DLManagedTensor *m = s->owner;

	if (m->deleter)
		m->deleter(m);
}

/* Another library may write to it at any time. */
static const struct storage_ops versioned_ops = { .free = versioned_free, .shared = true };
static const struct storage_ops plain_ops = { .free = plain_free, .shared = true };

struct geometry {
	enum tensor_dtype dtype;
	int ndim;
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	int64_t numel, low, high; /* range of its elements in bytes, relative to the first one */
};

static int find_dtype(struct DLDataType type, enum tensor_dtype *dtype)
{
	for (unsigned d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++)
		if (type.lanes == 1 && type.code == dl_types[d].code &&
		    type.bits == dl_types[d].bits) {
			*dtype = d;
			return 0;
		}
	return tensor_fail(EOPNOTSUPP,
			   "from_dlpack: a data type of code %u with %u bits and %u lanes",
			   type.code, type.bits, type.lanes);
}

static int overflows(void)
{
	return tensor_fail(EOVERFLOW, "from_dlpack: sizes and strides are beyond 64 bits");
}

/* The lowest and the highest offset of an element from the first one. */
static int find_extent(struct geometry *g)
{
	int64_t reach, bytes;

	for (int i = 0; g->numel && i < g->ndim; i++) {
		int64_t *end = g->strides[i] < 0 ? &g->low : &g->high;

		if (__builtin_mul_overflow(g->sizes[i] - 1, g->strides[i], &reach) ||
		    __builtin_add_overflow(*end, reach, end))
			return overflows();
	}
	if (__builtin_sub_overflow(g->high, g->low, &reach) ||
	    __builtin_add_overflow(reach, 1, &reach) ||
	    __builtin_mul_overflow(reach, (int64_t)dtype_sizes[g->dtype], &bytes))
		return overflows();
	return 0;
}

static int read_geometry(const struct DLTensor *d, struct geometry *g)
{
	int64_t dense[TENSOR_MAX_DIMS];
	int n = d->ndim;

	if (n < 0 || (n && !d->shape))
		return tensor_fail(EINVAL, "from_dlpack: %d dimensions%s", n,
				   n < 0 ? "" : " without a shape");
	if (n > TENSOR_MAX_DIMS)
		return tensor_fail(EOPNOTSUPP, "from_dlpack: %d dimensions, at most %d", n,
				   TENSOR_MAX_DIMS);
	*g = (struct geometry){ .ndim = n };
	if (find_dtype(d->dtype, &g->dtype) < 0)
		return -EOPNOTSUPP;
	if (n)
		memcpy(g->sizes, d->shape, n * sizeof(*g->sizes));
	g->numel = sizes_numel("from_dlpack", g->sizes, n);
	if (g->numel < 0)
		return -thread()->error.code;
	contiguous_strides(g->sizes, n, dense);
	/* The stride of a dimension of size 0 or 1 has no meaning. */
	for (int i = 0; i < n; i++)
		g->strides[i] = d->strides && g->numel && g->sizes[i] > 1 ? d->strides[i] :
									    dense[i];
	return find_extent(g);
}

static int check_device(struct DLDevice device)
{
	switch ((int)device.device_type) {
	case kDLCPU:
	case kDLCUDAHost:
	case kDLROCMHost:
		return 0;
	default:
		return tensor_fail(
			EOPNOTSUPP,
			"from_dlpack: memory of device type %d, only host memory is taken",
			(int)device.device_type);
	}
}

/* The library relies on bools that are 0 or 1. */
static bool only_bools(const struct geometry *g, const uint8_t *first)
{
	int64_t at[TENSOR_MAX_DIMS] = { 0 }, offset = 0;
	int i = 0;

	for (int64_t n = 0; n < g->numel; n++) {
		if (first[offset] > 1)
			return false;
		for (i = g->ndim - 1; i >= 0; i--) {
			offset += g->strides[i];
			if (++at[i] < g->sizes[i])
				break;
			offset -= at[i] * g->strides[i];
			at[i] = 0;
		}
	}
	return true;
}

/* The address of the first element; -errno. */
static int find_data(const struct DLTensor *d, const struct geometry *g, uintptr_t *first)
{
	int64_t size = dtype_sizes[g->dtype];
	uintptr_t end;

	*first = (uintptr_t)d->data;
	if (!g->numel)
		return 0;
	if (!d->data)
		return tensor_fail(EINVAL, "from_dlpack: %lld elements without data",
				   (long long)g->numel);
	if (__builtin_add_overflow(*first, d->byte_offset, first) ||
	    __builtin_add_overflow(*first, (uintptr_t)((g->high + 1) * size), &end) ||
	    *first < (uintptr_t)(-g->low * size))
		return tensor_fail(EOVERFLOW, "from_dlpack: the data is beyond the end of memory");
	if (*first % dtype_sizes[dtype_real(g->dtype)])
		return tensor_fail(EINVAL, "from_dlpack: the data is not aligned to %s",
				   tensor_dtype_name(g->dtype));
	if (g->dtype == TENSOR_BOOL && !only_bools(g, (const uint8_t *)*first))
		return tensor_fail(EINVAL, "from_dlpack: an element of bool is neither 0 nor 1");
	return 0;
}

static void leave(struct tensor_storage *s)
{
}

/* On failure the caller keeps the struct, so nothing may fail after the storage owns it. */
static tensor *import(const struct DLTensor *d, bool readonly, const struct storage_ops *ops,
		      void *owner)
{
	static const struct storage_ops without_owner = { .free = leave };
	struct tensor_storage *s;
	struct geometry g;
	uintptr_t first;
	int64_t size;
	tensor *t;

	if (check_device(d->device) < 0 || read_geometry(d, &g) < 0 || find_data(d, &g, &first) < 0)
		return NULL;
	s = storage_alloc_struct();
	if (!s)
		return NULL;
	size = dtype_sizes[g.dtype];
	s->ops = &without_owner;
	s->device = TENSOR_DEVICE_CPU;
	s->data = (void *)(first + (uintptr_t)(g.low * size));
	s->nbytes = g.numel ? (g.high - g.low + 1) * size : 0;
	s->used = s->nbytes;
	s->readonly = readonly;
	t = tensor_new_on_storage(s, g.dtype, g.sizes, g.strides, g.ndim, -g.low);
	if (!t)
		return NULL;
	s->ops = ops;
	s->owner = owner;
	return scope_own(thread(), t);
}

static int check_managed(const void *managed)
{
	return managed ? 0 : tensor_fail(EINVAL, "from_dlpack: the structure is NULL");
}

TENSOR_EXPORT tensor *tensor_from_dlpack(struct DLManagedTensorVersioned *managed)
{
	if (check_managed(managed) < 0)
		return NULL;
	if (managed->version.major != 1)
		return tensor_fail_null(EOPNOTSUPP, "from_dlpack: version %u.%u, only 1.x is known",
					managed->version.major, managed->version.minor);
	return import(&managed->dl_tensor, managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY,
		      &versioned_ops, managed);
}

TENSOR_EXPORT tensor *tensor_from_dlpack_unversioned(struct DLManagedTensor *managed)
{
	if (check_managed(managed) < 0)
		return NULL;
	return import(&managed->dl_tensor, false, &plain_ops, managed);
}
