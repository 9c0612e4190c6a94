// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of reflection and replication padding; pad() selects a mode by name. */
#include "kernels/abi/pad.h"
#include "ops/op.h"
#include "ops/memory_format.h"

#include "family/copy.h"
#include "family/index.h"
#include "family/pad.h"

/* Compute the sizes after padding the last n dimensions. 0, or -1 with the error set. */
static int padded_sizes(const struct tensor_op *op, const tensor *self, tensor_ints padding, int n,
			bool reflect, struct pad_params *params, int64_t *sizes)
{
	int first = self->ndim - n;

	if (padding.len != 2 * n)
		return tensor_fail(EINVAL, "%s: padding must have %d numbers, got %lld",
				   op->schema.name, 2 * n, (long long)padding.len);
	if (self->ndim != n + 1 && self->ndim != n + 2)
		return tensor_fail(EINVAL, "%s: self must have %d or %d dimensions, got shape %s",
				   op->schema.name, n + 1, n + 2, SHAPE_STR(self));
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	params->n = n;
	params->reflect = reflect;
	for (int d = self->ndim - n - 1; d < self->ndim; d++)
		if (!self->sizes[d])
			return tensor_fail(EINVAL, "%s: only the batch may be empty, got shape %s",
					   op->schema.name, SHAPE_STR(self));
	for (int i = 0; i < n; i++) {
		int64_t before = padding.data[2 * (n - 1 - i)];
		int64_t after = padding.data[2 * (n - 1 - i) + 1], size = sizes[first + i];

		if (reflect && (before >= size || after >= size))
			return tensor_fail(EINVAL,
					   "%s: padding must be less than the size of the "
					   "dimension it is for, got %lld and %lld for "
					   "dimension %d of %s",
					   op->schema.name, (long long)before, (long long)after,
					   first + i, SHAPE_STR(self));
		/* Negative padding larger than the dimension leaves its last element to replicate.
		 */
		params->before[i] = !reflect && before < -size ? -size : before;
		if (__builtin_add_overflow(size, before, &sizes[first + i]) ||
		    __builtin_add_overflow(sizes[first + i], after, &sizes[first + i]))
			return tensor_fail(EOVERFLOW,
					   "%s: padding %lld and %lld of dimension %d of "
					   "%s overflow",
					   op->schema.name, (long long)before, (long long)after,
					   first + i, SHAPE_STR(self));
		if (sizes[first + i] < 1)
			return tensor_fail(EINVAL,
					   "%s: padding %lld and %lld leave nothing of "
					   "dimension %d of %s",
					   op->schema.name, (long long)before, (long long)after,
					   first + i, SHAPE_STR(self));
	}
	return 0;
}

static int pad(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints padding, int n,
	       bool reflect)
{
	const tensor *inputs[] = { self };
	int64_t sizes[TENSOR_MAX_DIMS];
	struct pad_params params;
	struct op_output o;
	pad_kernel fn;
	int err = 0;

	if (padded_sizes(op, self, padding, n, reflect, &params, sizes) < 0 ||
	    output_begin_channels(op, &o, *out, self->dtype, sizes, self->ndim,
				  self->ndim == n + 2 && memory_channels_last(self), inputs, 1) < 0)
		return error_code();
	fn = (pad_kernel)op_kernel(op, op->kernels, o.t);
	if (!fn)
		err = error_code();
	else if (o.t->numel)
		err = fn(o.t, self, &params);
	return output_end(op, &o, out, err);
}

static int pad_backward(const struct tensor_op *op, tensor **out, tensor *grad, tensor *self,
			tensor_ints padding, int n, bool reflect)
{
	const tensor *inputs[] = { grad };
	int64_t sizes[TENSOR_MAX_DIMS];
	struct pad_params params;
	struct op_output o;
	pad_backward_kernel fn;
	int err = 0;

	if (padded_sizes(op, self, padding, n, reflect, &params, sizes) < 0)
		return error_code();
	if (grad->ndim != self->ndim || memcmp(grad->sizes, sizes, self->ndim * sizeof(*sizes)))
		return tensor_fail(EINVAL, "%s: grad_output must have the padded shape, got %s",
				   op->schema.name, SHAPE_STR(grad));
	if (output_begin_apart(op, &o, *out, grad->dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	fn = (pad_backward_kernel)op_kernel(op, op->kernels, o.t);
	if (!fn || !call_zero_(o.t))
		err = error_code();
	else if (grad->numel)
		err = fn(o.t, grad, &params);
	return output_end(op, &o, out, err);
}

int op_reflection_pad1d(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints padding)
{
	return pad(op, out, self, padding, 1, true);
}

int op_reflection_pad1d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				 tensor *self, tensor_ints padding)
{
	return pad_backward(op, out, grad_output, self, padding, 1, true);
}

int op_reflection_pad2d(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints padding)
{
	return pad(op, out, self, padding, 2, true);
}

int op_reflection_pad2d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				 tensor *self, tensor_ints padding)
{
	return pad_backward(op, out, grad_output, self, padding, 2, true);
}

int op_reflection_pad3d(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints padding)
{
	return pad(op, out, self, padding, 3, true);
}

int op_reflection_pad3d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				 tensor *self, tensor_ints padding)
{
	return pad_backward(op, out, grad_output, self, padding, 3, true);
}

int op_replication_pad1d(const struct tensor_op *op, tensor **out, tensor *self,
			 tensor_ints padding)
{
	return pad(op, out, self, padding, 1, false);
}

int op_replication_pad1d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				  tensor *self, tensor_ints padding)
{
	return pad_backward(op, out, grad_output, self, padding, 1, false);
}

int op_replication_pad2d(const struct tensor_op *op, tensor **out, tensor *self,
			 tensor_ints padding)
{
	return pad(op, out, self, padding, 2, false);
}

int op_replication_pad2d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				  tensor *self, tensor_ints padding)
{
	return pad_backward(op, out, grad_output, self, padding, 2, false);
}

int op_replication_pad3d(const struct tensor_op *op, tensor **out, tensor *self,
			 tensor_ints padding)
{
	return pad(op, out, self, padding, 3, false);
}

int op_replication_pad3d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				  tensor *self, tensor_ints padding)
{
	return pad_backward(op, out, grad_output, self, padding, 3, false);
}

/* ---- pad: mode by name ---- */

/* Wrap dimension d around, after negative padding has trimmed it. */
static tensor *pad_circular_dim(tensor *self, int d, int64_t before, int64_t after)
{
	int64_t n = self->sizes[d], size, cut, left;
	tensor *index, *t = NULL;
	int64_t *at;
	bool once = before <= n && after <= n && before >= -n && after >= -n;

	size = once ? n + before + after : 0;
	cut = before < 0 && once ? -before : 0;
	left = n - cut + (after < 0 && once ? after : 0);
	if (!once || size < 0 || left < 0 || (!left && size))
		return tensor_fail_null(EINVAL,
					"pad: circular padding %lld and %lld wrap more "
					"than once around dimension %d of %s",
					(long long)before, (long long)after, d, SHAPE_STR(self));
	index = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &size, 1);
	if (!index)
		return NULL;
	at = index->data;
	for (int64_t i = 0; i < size; i++)
		at[i] = cut + ((i - before - cut) % left + left) % left;
	if (self->device.type == TENSOR_CPU) {
		t = call_index_select(self, d, index);
	} else {
		tensor *there = call__to_copy(index, (tensor_options){ .device = self->device });

		t = there ? call_index_select(self, d, there) : NULL;
		tensor_put(there);
	}
	tensor_put(index);
	return t;
}

static tensor *pad_circular(tensor *self, tensor_ints pad)
{
	int n = (int)pad.len / 2;
	tensor *t = tensor_get(self);

	if (self->ndim != n + 1 && self->ndim != n + 2) {
		tensor_put(t);
		return tensor_fail_null(EINVAL,
					"pad: circular padding of %d dimensions needs %d or "
					"%d of them, got shape %s",
					n, n + 1, n + 2, SHAPE_STR(self));
	}
	for (int i = 0; t && i < n; i++) {
		tensor *next = pad_circular_dim(t, self->ndim - 1 - i, pad.data[2 * i],
						pad.data[2 * i + 1]);

		tensor_put(t);
		t = next;
	}
	return t;
}

tensor *composite_pad(tensor *self, tensor_ints pad, const char *mode, double value)
{
	static tensor *(*const kinds[2][3])(tensor *, tensor_ints) = {
		{ call_reflection_pad1d, call_reflection_pad2d, call_reflection_pad3d },
		{ call_replication_pad1d, call_replication_pad2d, call_replication_pad3d },
	};
	bool reflect = !strcmp(mode, "reflect");

	if (pad.len < 0 || pad.len % 2 || pad.len > 2 * self->ndim)
		return tensor_fail_null(EINVAL,
					"pad: two numbers for each of at most %d dimensions, "
					"got %lld",
					self->ndim, (long long)pad.len);
	if (!strcmp(mode, "constant"))
		return call_constant_pad_nd(self, pad,
					    tensor_scalar_float(value != value ? 0 : value));
	if (value == value && value != 0)
		return tensor_fail_null(EINVAL, "pad: mode %s takes no value", QUOTED(mode));
	if (!strcmp(mode, "circular"))
		return pad_circular(self, pad);
	if (!reflect && strcmp(mode, "replicate"))
		return tensor_fail_null(EINVAL,
					"pad: mode must be constant, reflect, replicate or "
					"circular, got %s",
					QUOTED(mode));
	if (pad.len < 2 || pad.len > 6)
		return tensor_fail_null(EINVAL, "pad: mode %s pads 1 to 3 dimensions, got %lld",
					mode, (long long)pad.len / 2);
	return kinds[!reflect][pad.len / 2 - 1](self, pad);
}
