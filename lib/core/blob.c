// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Tensors on memory of the program. */
#include "core/external.h"

#include "storage/devices.h"

#include <stdlib.h>

struct blob {
	void (*deleter)(void *data, void *ctx);
	void *data, *ctx;
};

static void blob_free(struct tensor_storage *s)
{
	struct blob *b = s->owner;

	if (b)
		b->deleter(b->data, b->ctx);
	free(b);
}

/* The program may write to it at any time. */
static const struct storage_ops blob_ops = { .free = blob_free, .shared = true };

static int check_options(const char *op, tensor_options o)
{
	if (o.layout > TENSOR_STRIDED)
		return tensor_fail(EOPNOTSUPP, "%s: the layout is %s, only strided is possible", op,
				   tensor_layout_name(o.layout));
	if (o.device.type && o.device.type != TENSOR_CPU)
		return tensor_fail(EOPNOTSUPP, "%s: the device is %s, only host memory is possible",
				   op, device_name(o.device, (char[32]){ 0 }, 32));
	if (o.memory_format > TENSOR_PRESERVE_FORMAT)
		return tensor_fail(EINVAL,
				   "%s: strides give the order of dimensions, not a memory "
				   "format",
				   op);
	if (o.shareable)
		return tensor_fail(EOPNOTSUPP, "%s: memory of the program cannot become shareable",
				   op);
	if (o.dtype >= TENSOR_DTYPE_COUNT)
		return tensor_fail(EINVAL, "%s: %d is no dtype", op, o.dtype);
	return 0;
}

static int check_lists(const char *op, tensor_ints size, tensor_ints strides)
{
	if (size.len < 0 || (size.len && !size.data))
		return tensor_fail(EINVAL, "%s: size is not given", op);
	if (size.len > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: at most %d dimensions, got %lld", op,
				   TENSOR_MAX_DIMS, (long long)size.len);
	if (strides.len < -1 || (strides.len > 0 && !strides.data))
		return tensor_fail(EINVAL, "%s: a list of %lld strides%s", op,
				   (long long)strides.len, strides.len > 0 ? " at NULL" : "");
	if (strides.len >= 0 && strides.len != size.len)
		return tensor_fail(EINVAL, "%s: %lld sizes, but %lld strides", op,
				   (long long)size.len, (long long)strides.len);
	return 0;
}

static tensor *from_blob(struct external *x, void *data, tensor_ints size, tensor_ints strides,
			 tensor_options options, void (*deleter)(void *, void *), void *ctx)
{
	struct blob *b = NULL;
	tensor *t;

	if (check_options(x->op, options) < 0 || check_lists(x->op, size, strides) < 0)
		return NULL;
	x->dtype = options.dtype ? options.dtype : TENSOR_F32;
	if (external_set_geometry(x, (int)size.len, size.data,
				  strides.len > 0 ? strides.data : NULL) < 0 ||
	    external_set_data(x, data, 0) < 0)
		return NULL;
	if (deleter) {
		b = malloc(sizeof(*b));
		if (!b)
			return tensor_fail_null(ENOMEM, "%s: no memory", x->op);
		*b = (struct blob){ deleter, data, ctx };
	}
	t = external_tensor(x, &blob_ops, b);
	if (!t)
		free(b);
	return t;
}

TENSOR_EXPORT tensor *tensor_from_blob(void *data, tensor_ints size, tensor_ints strides,
				       tensor_options options,
				       void (*deleter)(void *data, void *ctx), void *ctx)
{
	struct external x = { .op = "from_blob" };

	return from_blob(&x, data, size, strides, options, deleter, ctx);
}

TENSOR_EXPORT tensor *tensor_from_blob_readonly(const void *data, tensor_ints size,
						tensor_ints strides, tensor_options options,
						void (*deleter)(void *data, void *ctx), void *ctx)
{
	struct external x = { .op = "from_blob_readonly", .readonly = true };

	return from_blob(&x, (void *)data, size, strides, options, deleter, ctx);
}
