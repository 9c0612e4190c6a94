// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * DLPack. An exported struct owns a tensor on the same storage. An imported struct becomes the
 * owner of a new storage.
 */
#include "core/external.h"

#include "storage/devices.h"

#include <stdlib.h>
#include <tensor/cuda.h>
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

/* ---- export ---- */

struct exported {
	union {
		struct DLManagedTensorVersioned versioned;
		struct DLManagedTensor plain;
	};
	tensor *t; /* owned */
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
};

/* The importer has the address, which a reference beside those of tensors keeps from changing (device_memory.c). */
static void keep_address(const struct exported *e)
{
	if (e->t->device.type != TENSOR_CPU)
		storage_get(e->t->storage);
}

static void exported_free(struct exported *e)
{
	if (e->t->device.type != TENSOR_CPU)
		storage_put(e->t->storage);
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

static struct exported *export_new(tensor *t, unsigned flags)
{
	struct exported *e;

	if (flags & ~TENSOR_DLPACK_COPIED) {
		tensor_fail(EINVAL, "to_dlpack: flags 0x%x are unknown", flags);
		return NULL;
	}
	if (external_check_export("to_dlpack", t, true) < 0)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (e)
		e->t = tensor_new_detached(t);
	if (e && e->t) {
		memcpy(e->sizes, t->sizes, t->ndim * sizeof(*e->sizes));
		memcpy(e->strides, t->strides, t->ndim * sizeof(*e->strides));
		keep_address(e);
		return e;
	}
	free(e);
	tensor_fail(ENOMEM, "to_dlpack: no memory");
	return NULL;
}

static DLTensor describe(const tensor *t, int64_t *sizes, int64_t *strides)
{
	return (DLTensor){
		.data = t->numel ? t->data : NULL,
		.device = { t->device.type == TENSOR_CUDA ? kDLCUDA : kDLCPU, t->device.index },
		.ndim = t->ndim,
		.dtype = { dl_types[t->dtype].code, dl_types[t->dtype].bits, 1 },
		.shape = sizes,
		.strides = strides,
	};
}

/* For the forms that have no flags. */
static int check_writable(const char *op, const tensor *t)
{
	if (!t->storage->readonly)
		return 0;
	return tensor_fail(EACCES, "%s: this form of DLPack cannot mark read-only memory", op);
}

TENSOR_EXPORT int tensor_to_dltensor(tensor *t, DLTensor *description)
{
	int err = external_check_export("to_dltensor", t, true);

	if (err >= 0)
		err = check_writable("to_dltensor", t);
	if (err < 0)
		return err;
	if (!description)
		return tensor_fail(EINVAL, "to_dltensor: the structure is NULL");
	*description = describe(t, t->sizes, t->strides);
	return 0;
}

TENSOR_EXPORT struct DLManagedTensorVersioned *tensor_to_dlpack(tensor *t, unsigned flags)
{
	struct exported *e = export_new(t, flags);

	if (!e)
		return NULL;
	e->versioned.dl_tensor = describe(e->t, e->sizes, e->strides);
	e->versioned.version.major = DLPACK_MAJOR_VERSION;
	e->versioned.version.minor = DLPACK_MINOR_VERSION;
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
	if (check_writable("to_dlpack", e->t) < 0) {
		exported_free(e);
		return NULL;
	}
	e->plain.dl_tensor = describe(e->t, e->sizes, e->strides);
	e->plain.manager_ctx = e;
	e->plain.deleter = plain_deleter;
	return &e->plain;
}

/* ---- import ---- */

static void delete_versioned(void *managed)
{
	struct DLManagedTensorVersioned *m = managed;

	if (m->deleter)
		m->deleter(m);
}

static void delete_plain(void *managed)
{
	struct DLManagedTensor *m = managed;

	if (m->deleter)
		m->deleter(m);
}

/* The producer may use memory of a device again at once: it is told when the queued work is done. */
static void after_work(const struct tensor_storage *s, void (*delete)(void *managed))
{
	if (s->device.type == TENSOR_CUDA)
		cuda_stream_calls()->when_done(s->device.index, delete, s->owner);
	else
		delete (s->owner);
}

static void versioned_free(struct tensor_storage *s)
{
	after_work(s, delete_versioned);
}

static void plain_free(struct tensor_storage *s)
{
	after_work(s, delete_plain);
}

/* Another library may write to it at any time. */
static const struct storage_ops versioned_ops = { .free = versioned_free, .shared = true };
static const struct storage_ops plain_ops = { .free = plain_free, .shared = true };

static const char *const code_names[] = {
	[kDLInt] = "int",
	[kDLUInt] = "uint",
	[kDLFloat] = "float",
	[kDLOpaqueHandle] = "opaque handle",
	[kDLBfloat] = "bfloat",
	[kDLComplex] = "complex",
	[kDLBool] = "bool",
	[kDLFloat8_e3m4] = "float8_e3m4",
	[kDLFloat8_e4m3] = "float8_e4m3",
	[kDLFloat8_e4m3b11fnuz] = "float8_e4m3b11fnuz",
	[kDLFloat8_e4m3fn] = "float8_e4m3fn",
	[kDLFloat8_e4m3fnuz] = "float8_e4m3fnuz",
	[kDLFloat8_e5m2] = "float8_e5m2",
	[kDLFloat8_e5m2fnuz] = "float8_e5m2fnuz",
	[kDLFloat8_e8m0fnu] = "float8_e8m0fnu",
	[kDLFloat6_e2m3fn] = "float6_e2m3fn",
	[kDLFloat6_e3m2fn] = "float6_e3m2fn",
	[kDLFloat4_e2m1fn] = "float4_e2m1fn",
};

static int no_dtype(const char *op, DLDataType type)
{
	const char *name = type.code < ARRAY_SIZE(code_names) ? code_names[type.code] : "unknown";

	if (type.lanes != 1)
		return tensor_fail(EOPNOTSUPP,
				   "%s: data type %s with %u lanes, vectors are not "
				   "supported",
				   op, name, type.lanes);
	if (type.bits < 8)
		return tensor_fail(EOPNOTSUPP,
				   "%s: data type %s of %u bits, elements smaller than a "
				   "byte are not supported",
				   op, name, type.bits);
	return tensor_fail(EOPNOTSUPP, "%s: data type %s (code %u) of %u bits", op, name, type.code,
			   type.bits);
}

static int find_dtype(const char *op, DLDataType type, enum tensor_dtype *dtype)
{
	for (unsigned d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++)
		if (type.lanes == 1 && type.code == dl_types[d].code &&
		    type.bits == dl_types[d].bits) {
			*dtype = d;
			return 0;
		}
	return no_dtype(op, type);
}

static int find_device(const char *op, DLDevice from, tensor_device *device)
{
	int count;

	switch ((int)from.device_type) {
	case kDLCPU:
	case kDLCUDAHost:
	case kDLROCMHost:
		*device = TENSOR_DEVICE_CPU;
		return 0;
	case kDLCUDA:
		count = tensor_cuda_device_count();
		if (count < 0)
			return count;
		if (from.device_id < 0 || from.device_id >= count)
			return tensor_fail(ENODEV, "%s: there is no cuda:%d, only %d", op,
					   from.device_id, count);
		*device = TENSOR_DEVICE_CUDA(from.device_id);
		return 0;
	default:
		return tensor_fail(
			EOPNOTSUPP,
			"%s: memory of device type %d, only host memory and that of CUDA is taken",
			op, (int)from.device_type);
	}
}

static int check_dims(const char *op, int ndim, const int64_t *shape)
{
	if (ndim < 0 || (ndim && !shape))
		return tensor_fail(EINVAL, "%s: %d dimensions%s", op, ndim,
				   ndim < 0 ? "" : " without a shape");
	if (ndim > TENSOR_MAX_DIMS)
		return tensor_fail(EOPNOTSUPP, "%s: %d dimensions, at most %d", op, ndim,
				   TENSOR_MAX_DIMS);
	return 0;
}

/* Reads what a tensor's memory is, without its address. strides NULL: row-major. */
static int read_description(struct external *x, const DLTensor *d, const int64_t *strides)
{
	int err = find_device(x->op, d->device, &x->device);

	if (err >= 0)
		err = check_dims(x->op, d->ndim, d->shape);
	if (err >= 0)
		err = find_dtype(x->op, d->dtype, &x->dtype);
	if (err >= 0)
		err = external_set_geometry(x, d->ndim, d->shape, strides);
	return err;
}

/* On failure the caller keeps the struct. */
static tensor *import(const DLTensor *managed, bool readonly, const struct storage_ops *ops,
		      void *owner)
{
	struct external x = { .op = "from_dlpack", .readonly = readonly };
	const DLTensor d = *managed;

	if (read_description(&x, &d, d.strides) < 0 ||
	    external_set_data(&x, d.data, d.byte_offset) < 0)
		return NULL;
	return external_tensor(&x, ops, owner);
}

static int check_managed(const void *managed)
{
	return managed ? 0 : tensor_fail(EINVAL, "from_dlpack: the structure is NULL");
}

TENSOR_EXPORT tensor *tensor_from_dlpack(struct DLManagedTensorVersioned *managed)
{
	if (check_managed(managed) < 0)
		return NULL;
	if (managed->version.major != DLPACK_MAJOR_VERSION)
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

/* ---- allocation for other libraries ---- */

static DLManagedTensorVersioned *allocate(const DLTensor *prototype)
{
	struct external x = { .op = "dlpack_allocate" };
	struct DLManagedTensorVersioned *m;
	tensor *t;

	if (read_description(&x, prototype, NULL) < 0)
		return NULL;
	t = tensor_new(x.device, x.dtype, x.sizes, x.ndim);
	if (!t)
		return NULL;
	m = tensor_to_dlpack(t, 0);
	tensor_put(t);
	return m;
}

TENSOR_EXPORT int
tensor_dlpack_allocate(DLTensor *prototype, struct DLManagedTensorVersioned **out, void *error_ctx,
		       void (*set_error)(void *error_ctx, const char *kind, const char *message))
{
	struct DLManagedTensorVersioned *m = NULL;
	const struct tensor_error *e = &thread()->error;

	if (!prototype || !out)
		tensor_fail(EINVAL, "dlpack_allocate: a structure is NULL");
	else
		m = allocate(prototype);
	if (m) {
		*out = m;
		return 0;
	}
	if (set_error)
		set_error(error_ctx, e->code == ENOMEM ? "MemoryError" : "BufferError", e->text);
	return -1;
}
