// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Properties of tensors. They are defined for NULL, so a program checks a chain of calls once at
 * its end.
 */
#include "core/exposed.h"
#include "core/tensor_impl.h"
#include "storage/devices.h"

TENSOR_EXPORT int tensor_dim(const tensor *t)
{
	return tensor_given(t) ? t->ndim : -1;
}

static int64_t of_dim(const tensor *t, const int64_t *values, int dim)
{
	if (tensor_given(t) && dim < 0)
		dim += t->ndim;
	return t && dim >= 0 && dim < t->ndim ? values[dim] : -1;
}

TENSOR_EXPORT int64_t tensor_size(const tensor *t, int dim)
{
	return of_dim(t, t ? t->sizes : NULL, dim);
}

TENSOR_EXPORT int64_t tensor_stride(const tensor *t, int dim)
{
	return of_dim(t, t ? t->strides : NULL, dim);
}

TENSOR_EXPORT const int64_t *tensor_sizes(const tensor *t)
{
	return tensor_given(t) ? t->sizes : NULL;
}

TENSOR_EXPORT const int64_t *tensor_strides(const tensor *t)
{
	return tensor_given(t) ? t->strides : NULL;
}

TENSOR_EXPORT tensor_ints tensor_shape(const tensor *t)
{
	return (tensor_ints){ tensor_given(t) ? t->sizes : NULL, t ? t->ndim : -1 };
}

TENSOR_EXPORT int64_t tensor_numel(const tensor *t)
{
	return tensor_given(t) ? t->numel : -1;
}

TENSOR_EXPORT int64_t tensor_storage_offset(const tensor *t)
{
	return tensor_given(t) ? t->offset : -1;
}

TENSOR_EXPORT enum tensor_dtype tensor_dtype(const tensor *t)
{
	return tensor_given(t) ? t->dtype : TENSOR_DTYPE_NONE;
}

TENSOR_EXPORT enum tensor_layout tensor_layout(const tensor *t)
{
	return tensor_given(t) ? t->layout : TENSOR_LAYOUT_NONE;
}

TENSOR_EXPORT tensor_device tensor_get_device(const tensor *t)
{
	return tensor_given(t) ? t->device : (tensor_device){ 0, 0 };
}

TENSOR_EXPORT bool tensor_is_contiguous(const tensor *t)
{
	return tensor_given(t) && t->contiguous;
}

TENSOR_EXPORT bool tensor_shares_storage(const tensor *a, const tensor *b)
{
	return tensor_given(a) && tensor_given(b) && a->storage == b->storage;
}

TENSOR_EXPORT uint32_t tensor_version(const tensor *t)
{
	return tensor_given(t) ? storage_version(t->storage) : 0;
}

TENSOR_EXPORT int tensor_count_own_writes(tensor *t)
{
	if (tensor_absent("count_own_writes", t))
		return -thread()->error.code;
	storage_version_alone(t->storage);
	return 0;
}

TENSOR_EXPORT bool tensor_is_writable(const tensor *t)
{
	return tensor_given(t) && !t->storage->readonly;
}

TENSOR_EXPORT uint32_t tensor_keys(const tensor *t)
{
	return tensor_given(t) ? t->keys : 0;
}

void (*extension_exposed)(const tensor *t);

/* The program has the address from now on, to write to the elements. */
static void expose(const tensor *t)
{
	if (t->ext && extension_exposed)
		extension_exposed(t);
}

TENSOR_EXPORT void *tensor_device_data(const tensor *t)
{
	if (!tensor_given(t))
		return NULL;
	expose(t);
	return t->data;
}

bool tensor_absent(const char *op, const tensor *t)
{
	if (!tensor_given(t))
		null_argument_code(op);
	else if (t == tensor_none)
		tensor_fail(EINVAL, "%s: a tensor is needed, got tensor_none", op);
	else
		return false;
	return true;
}

TENSOR_EXPORT const void *tensor_data(const tensor *t)
{
	const struct tensor_allocator *a;

	if (!t || tensor_absent("data", t))
		return NULL;
	if (t->device.type == TENSOR_CPU) {
		if (t->keys & BATCHED_BIT)
			tensor_fail(EOPNOTSUPP,
				    "data: a batched tensor has no address inside tensor_vmap()");
		else if (!t->data && t->ext)
			tensor_fail(EOPNOTSUPP, "data: a %s tensor has no address, to_dense has",
				    tensor_layout_name(t->layout));
		return t->data;
	}
	a = device_allocator(t->device);
	return a && a->host_accessible ? t->data : NULL;
}

TENSOR_EXPORT void *tensor_mutable_data(tensor *t)
{
	if (tensor_absent("mutable_data", t))
		return NULL;
	if (tensor_check_writable("mutable_data", t) < 0)
		return NULL;
	expose(t);
	return (void *)tensor_data(t);
}
