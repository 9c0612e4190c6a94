// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Checks of memory that the library did not allocate, and tensors on it. */
#include "core/external.h"

#include "storage/devices.h"

#include <stdlib.h>

/* ---- geometry ---- */

static int overflows(const struct external *x)
{
	return tensor_fail(EOVERFLOW, "%s: sizes and strides are beyond 64 bits", x->op);
}

static int find_extent(struct external *x)
{
	int64_t reach, bytes;

	for (int i = 0; x->numel && i < x->ndim; i++) {
		int64_t *end = x->strides[i] < 0 ? &x->low : &x->high;

		if (__builtin_mul_overflow(x->sizes[i] - 1, x->strides[i], &reach) ||
		    __builtin_add_overflow(*end, reach, end))
			return overflows(x);
	}
	if (__builtin_sub_overflow(x->high, x->low, &reach) ||
	    __builtin_add_overflow(reach, 1, &reach) ||
	    __builtin_mul_overflow(reach, (int64_t)dtype_sizes[x->dtype], &bytes))
		return overflows(x);
	return 0;
}

int external_set_geometry(struct external *x, int ndim, const int64_t *sizes,
			  const int64_t *strides)
{
	int64_t dense[TENSOR_MAX_DIMS];

	x->ndim = ndim;
	x->low = x->high = 0;
	if (ndim) /* sizes may be NULL */
		memcpy(x->sizes, sizes, ndim * sizeof(*sizes));
	x->numel = sizes_numel(x->op, x->sizes, ndim);
	if (x->numel < 0)
		return -thread()->error.code;
	contiguous_strides(x->sizes, ndim, dense);
	for (int i = 0; i < ndim; i++)
		x->strides[i] = strides && x->numel && x->sizes[i] > 1 ? strides[i] : dense[i];
	return find_extent(x);
}

/* ---- data ---- */

bool bytes_are_bools(const uint8_t *p, uint64_t n)
{
	uint8_t all = 0;

	for (uint64_t i = 0; i < n; i++)
		all |= p[i];
	return all <= 1;
}

/* The elements are at different addresses: no dimension of x has a stride of 0. */
static bool elements_are_bools(const struct external *x, const uint8_t *first)
{
	int64_t at[TENSOR_MAX_DIMS] = { 0 }, offset = 0;

	for (int64_t n = 0; n < x->numel; n++) {
		if (first[offset] > 1)
			return false;
		for (int i = x->ndim - 1; i >= 0; i--) {
			offset += x->strides[i];
			if (++at[i] < x->sizes[i])
				break;
			offset -= at[i] * x->strides[i];
			at[i] = 0;
		}
	}
	return true;
}

/*
 * The time must not depend on the number of elements, which is up to 2^63 where they overlap, but on
 * the size of the memory.
 */
static bool only_bools(const struct external *x)
{
	struct external once = *x;

	once.ndim = 0;
	once.numel = 1;
	for (int i = 0; i < x->ndim; i++)
		if (x->strides[i]) {
			once.sizes[once.ndim] = x->sizes[i];
			once.strides[once.ndim++] = x->strides[i];
			once.numel *= x->sizes[i];
		}
	if (once.numel > x->high - x->low)
		return bytes_are_bools((const uint8_t *)x->first + x->low, x->high - x->low + 1);
	return elements_are_bools(&once, (const uint8_t *)x->first);
}

static int check_bools(const struct external *x)
{
	return only_bools(x) ?
		       0 :
		       tensor_fail(EINVAL, "%s: an element of bool is neither 0 nor 1", x->op);
}

/* On a device: its memory must be there, and is copied to be looked at. */
static int check_device_data(const struct external *x)
{
	const struct cuda_stream_calls *cuda = cuda_stream_calls();
	const uintptr_t start = x->first + (uintptr_t)(x->low * dtype_sizes[x->dtype]);
	struct external there = *x;
	void *bytes;
	int err = cuda ? cuda->check_memory(x->op, x->device.index, (const void *)start) : -ENODEV;

	if (err || x->dtype != TENSOR_BOOL)
		return err;
	bytes = malloc(x->high - x->low + 1);
	if (!bytes)
		return tensor_fail(ENOMEM, "%s: no memory to check bools", x->op);
	err = cuda->read(x->op, x->device.index, bytes, (const void *)start, x->high - x->low + 1);
	there.first = (uintptr_t)bytes - (uintptr_t)x->low;
	if (!err)
		err = check_bools(&there);
	free(bytes);
	return err;
}

int external_set_data(struct external *x, const void *data, uint64_t byte_offset)
{
	int64_t size = dtype_sizes[x->dtype];
	uintptr_t end;

	x->first = (uintptr_t)data;
	if (!x->numel)
		return 0;
	if (!data)
		return tensor_fail(EINVAL, "%s: %lld elements without data", x->op,
				   (long long)x->numel);
	if (__builtin_add_overflow(x->first, byte_offset, &x->first) ||
	    __builtin_add_overflow(x->first, (uintptr_t)((x->high + 1) * size), &end) ||
	    end > INTPTR_MAX || x->first < (uintptr_t)(-x->low * size))
		return tensor_fail(EOVERFLOW, "%s: the data is beyond the end of memory", x->op);
	if (x->first % dtype_sizes[dtype_real(x->dtype)])
		return tensor_fail(EINVAL, "%s: the data is not aligned to %s", x->op,
				   tensor_dtype_name(x->dtype));
	if (x->device.type == TENSOR_CUDA)
		return check_device_data(x);
	return x->dtype == TENSOR_BOOL ? check_bools(x) : 0;
}

/* ---- tensors ---- */

static void leave(struct tensor_storage *s)
{
}

tensor *external_tensor(const struct external *x, const struct storage_ops *ops, void *owner)
{
	static const struct storage_ops without_owner = { .free = leave, .shared = true };
	struct tensor_storage *s = storage_alloc_struct();
	int64_t size = dtype_sizes[x->dtype];
	tensor *t;

	if (!s)
		return NULL;
	s->ops = &without_owner;
	s->owner = NULL;
	s->device = x->device.type ? x->device : TENSOR_DEVICE_CPU;
	s->data = (void *)(x->first + (uintptr_t)(x->low * size));
	s->nbytes = x->numel ? (x->high - x->low + 1) * size : 0;
	s->used = s->nbytes;
	s->readonly = x->readonly;
	t = tensor_new_on_storage(s, x->dtype, x->sizes, x->strides, x->ndim, -x->low);
	/* The scope releases t if it cannot grow, so the storage gets its owner afterwards. */
	t = scope_own(thread(), t);
	if (t) {
		s->owner = owner;
		s->ops = ops;
	}
	return t;
}

int external_check_export(const char *op, const tensor *t, bool devices)
{
	if (tensor_absent(op, t))
		return -thread()->error.code;
	if (t->layout != TENSOR_STRIDED)
		return tensor_fail(EOPNOTSUPP, "%s: only strided tensors can be exported, not %s",
				   op, tensor_layout_name(t->layout));
	if (t->device.type != TENSOR_CPU && !(devices && t->device.type == TENSOR_CUDA))
		return tensor_fail(EOPNOTSUPP,
				   "%s: only host memory can be exported, not that of %s: copy the "
				   "tensor to the CPU first",
				   op, device_name(t->device, (char[32]){ 0 }, 32));
	if (t->ext)
		return tensor_fail(
			EOPNOTSUPP,
			"%s: only tensors of plain numbers can be exported, not quantized "
			"ones or samples of tensor_vmap()",
			op);
	if (tensor_autograd_hooks.requires_grad && tensor_autograd_hooks.requires_grad(t))
		return tensor_fail(
			EINVAL,
			"%s: the tensor requires a gradient, which would be lost: detach it first",
			op);
	return 0;
}
