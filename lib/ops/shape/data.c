// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Copies between tensors and the caller's memory, and single elements. */
#include "ops/op.h"

#include "family/copy.h"

TENSOR_EXPORT tensor *tensor_from_data(const void *data, tensor_ints size, tensor_options options)
{
	tensor *t = tensor_new_opt(options, size.data, (int)size.len);

	if (!t)
		return NULL;
	if (!data && t->numel) {
		tensor_put(t);
		return tensor_fail_null(EINVAL, "from_data: data is NULL");
	}
	if (tensor_copy_from(t, data, t->numel * itemsize(t)) < 0) {
		tensor_put(t);
		return NULL;
	}
	return scope_own(thread(), t);
}

/* Copy through a contiguous CPU tensor on the caller's memory, which exists only during the call.
 */
static int copy_host(tensor *t, void *data, size_t nbytes, bool to_host)
{
	struct tensor_storage storage = { .refs = 2,
					  .data = data,
					  .nbytes = nbytes,
					  .used = nbytes,
					  .device = TENSOR_DEVICE_CPU };
	struct tensor host = { .refs = 2,
			       .dtype = t->dtype,
			       .layout = TENSOR_STRIDED,
			       .ndim = t->ndim,
			       .contiguous = true,
			       .device = TENSOR_DEVICE_CPU,
			       .keys = KEY_BIT(TENSOR_KEY_CPU),
			       .data = data,
			       .storage = &storage,
			       .numel = t->numel };

	memcpy(host.sizes, t->sizes, sizeof(host.sizes[0]) * t->ndim);
	contiguous_strides(host.sizes, host.ndim, host.strides);
	return (to_host ? call_copy_(&host, t) : call_copy_(t, &host)) ? 0 : error_code();
}

static int check_bytes(const char *op, const tensor *t, const void *data, size_t nbytes)
{
	if (tensor_absent(op, t))
		return error_code();
	if (nbytes != t->numel * itemsize(t) || (!data && nbytes))
		return tensor_fail(EINVAL, "%s: a tensor %s of %s has %zu bytes, got %zu%s", op,
				   SHAPE_STR(t), tensor_dtype_name(t->dtype),
				   t->numel * itemsize(t), nbytes, data ? "" : " at NULL");
	return 0;
}

static int copy_plain(tensor *t, void *data, size_t nbytes, bool to_host)
{
	struct tensor_thread *th = thread();
	uint32_t before = th->modes.exclude;
	int err;

	if (!nbytes)
		return 0;
	/* Autograd is excluded: bytes have no history. */
	th->modes.exclude |= AUTOGRAD_BIT;
	err = copy_host(t, data, nbytes, to_host);
	th->modes.exclude = before;
	return err;
}

TENSOR_EXPORT int tensor_copy_to(const tensor *t, void *data, size_t nbytes)
{
	int err = check_bytes("copy_to", t, data, nbytes);

	return err ? err : copy_plain((tensor *)t, data, nbytes, true);
}

TENSOR_EXPORT int tensor_copy_from(tensor *t, const void *data, size_t nbytes)
{
	int err = check_bytes("copy_from", t, data, nbytes);

	return err ? err : copy_plain(t, (void *)data, nbytes, false);
}

TENSOR_EXPORT int tensor_at(const tensor *t, tensor_ints index, double *value)
{
	_Alignas(16) char element[16];
	int64_t offset = 0;
	tensor_scalar s;
	struct tensor one;

	if (tensor_absent("at", t))
		return error_code();
	if (index.len != t->ndim)
		return tensor_fail(EINVAL, "at: %d indices are needed for shape %s, got %lld",
				   t->ndim, SHAPE_STR(t), (long long)index.len);
	for (int i = 0; i < t->ndim; i++) {
		int64_t at = index.data[i] < 0 ? index.data[i] + t->sizes[i] : index.data[i];

		if (at < 0 || at >= t->sizes[i])
			return tensor_fail(ERANGE, "at: index %lld is out of range for size %lld",
					   (long long)index.data[i], (long long)t->sizes[i]);
		offset += at * t->strides[i];
	}
	one = *t;
	one.ndim = 0;
	one.numel = 1;
	one.contiguous = true;
	one.data = (char *)t->data + offset * (int64_t)itemsize(t);
	if (copy_plain(&one, element, itemsize(t), true) < 0)
		return error_code();
	if (element_load(element, t->dtype, &s) < 0)
		return tensor_fail(EOPNOTSUPP, "at: dtype %s is not supported",
				   tensor_dtype_name(t->dtype));
	*value = scalar_double(s);
	return 0;
}

static int item(const tensor *t, tensor_scalar *s)
{
	_Alignas(16) char element[16];

	if (tensor_absent("item", t))
		return error_code();
	if (t->numel != 1)
		return tensor_fail(EINVAL, "item: a tensor of one element is needed, got shape %s",
				   SHAPE_STR(t));
	if (t->keys & BATCHED_BIT)
		return tensor_fail(
			EINVAL,
			"item: a batched tensor has a value for each sample, and tensor_vmap() "
			"calls its function once for all of them");
	if (t->ext)
		return tensor_fail(EOPNOTSUPP, "item: a strided tensor of plain numbers is needed");
	if (t->device.type == TENSOR_CPU)
		memcpy(element, t->data, itemsize(t));
	else if (copy_plain((tensor *)t, element, itemsize(t), true) < 0)
		return error_code();
	if (element_load(element, t->dtype, s) < 0)
		return tensor_fail(EOPNOTSUPP, "item: dtype %s is not supported",
				   tensor_dtype_name(t->dtype));
	return 0;
}

TENSOR_EXPORT int tensor_item_scalar(const tensor *t, tensor_scalar *value)
{
	tensor_scalar s;
	int err = item(t, &s);

	if (!err)
		*value = s;
	return err;
}

TENSOR_EXPORT int tensor_item(const tensor *t, double *value)
{
	tensor_scalar s;
	int err = item(t, &s);

	if (!err)
		*value = scalar_double(s);
	return err;
}

TENSOR_EXPORT int tensor_item_int(const tensor *t, int64_t *value)
{
	const double least = (double)INT64_MIN;
	tensor_scalar s;
	int err = item(t, &s);

	if (err)
		return err;
	if (s.kind >= TENSOR_SCALAR_FLOAT && !(s.d >= least && s.d < -least))
		return tensor_fail(EOVERFLOW,
				   "item_int: the element %g of %s is beyond the range of i64", s.d,
				   tensor_dtype_name(t->dtype));
	*value = scalar_int(s);
	return 0;
}
