// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of nonzero, masked_select and masked_scatter, and composites of them. Kernels
 * need contiguous operands of one shape, so others are copied. */
#include "kernels/abi/index.h"
#include "ops/op.h"

#include "family/index_tensor.h"
#include "family/factory.h"
#include "family/cat.h"
#include "family/scatter.h"
#include "family/view.h"

/* Return the kernel's result: as a new tensor, or copied to the caller's. */
static int return_result(const struct tensor_op *op, tensor **out, tensor *made,
			 const tensor *const *inputs, int n)
{
	struct op_output o;
	int err;

	if (!made)
		return error_code();
	if (!*out) {
		*out = made;
		return 0;
	}
	err = output_begin_apart(op, &o, *out, made->dtype, made->sizes, made->ndim, inputs, n);
	if (!err)
		err = output_end(op, &o, out, operand_copy(o.t, made));
	tensor_put(made);
	return err;
}

int op_nonzero(const struct tensor_op *op, tensor **out, tensor *self)
{
	nonzero_kernel fn = (nonzero_kernel)op_kernel(op, op->kernels, self);
	const tensor *inputs[] = { self };
	tensor *mask, *flat, *where;

	if (!fn)
		return error_code();
	mask = operand_cast(self, self->dtype == TENSOR_U8 ? TENSOR_U8 : TENSOR_BOOL);
	flat = mask ? operand_contiguous(mask) : NULL;
	where = flat ? fn(flat) : NULL;
	tensor_put(mask);
	tensor_put(flat);
	return return_result(op, out, where, inputs, 1);
}

int composite_nonzero_numpy(tensor *self, tensor **results, int64_t room)
{
	tensor *wide = self->ndim ? tensor_get(self) : call_unsqueeze(self, 0);
	tensor *where = wide ? call_nonzero(wide) : NULL;
	int n = where ? (int)where->sizes[1] : error_code();

	if (n > 0 && results_fit("nonzero_numpy", n, room) < 0)
		n = error_code();
	for (int i = 0; i < n; i++) {
		results[i] = call_select_int(where, 1, i);
		if (results[i])
			continue;
		while (i > 0)
			tensor_put(results[--i]);
		n = error_code();
	}
	tensor_put(where);
	tensor_put(wide);
	return n;
}

tensor *composite_argwhere(tensor *self)
{
	return call_nonzero(self);
}

static int check_mask(const struct tensor_op *op, const tensor *mask)
{
	if (likely(mask->dtype == TENSOR_BOOL))
		return 0;
	return tensor_fail(EINVAL, "%s: mask must be bool, got %s", op->schema.name,
			   tensor_dtype_name(mask->dtype));
}

/* t expanded to these sizes, contiguous. Owned. */
static tensor *spread(tensor *t, const int64_t *sizes, int ndim)
{
	tensor *wide = view_expand(t, (tensor_ints){ sizes, ndim });
	tensor *flat = wide ? operand_contiguous(wide) : NULL;

	tensor_put(wide);
	return flat;
}

int op_masked_select(const struct tensor_op *op, tensor **out, tensor *self, tensor *mask)
{
	masked_select_kernel fn = (masked_select_kernel)op_kernel(op, op->kernels, self);
	const tensor *inputs[] = { self, mask };
	tensor *from, *where, *made = NULL;
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim;

	if (!fn || check_mask(op, mask) < 0)
		return error_code();
	ndim = iter_broadcast_sizes(op->schema.name, self, mask, sizes);
	if (ndim < 0 || operand_check_device(op->schema.name, self, mask) < 0)
		return error_code();
	from = spread(self, sizes, ndim);
	where = spread(mask, sizes, ndim);
	if (from && where)
		made = fn(from, where);
	tensor_put(from);
	tensor_put(where);
	return return_result(op, out, made, inputs, 2);
}

int op_masked_scatter(const struct tensor_op *op, tensor **out, tensor *self, tensor *mask,
		      tensor *source)
{
	masked_scatter_kernel fn = (masked_scatter_kernel)op_kernel(op, op->kernels, self);
	const tensor *inputs[] = { mask, source, self };
	int n = op->variant == VARIANT_INPLACE ? 2 : 3, ndim, err = 0;
	tensor *to = NULL, *where = NULL, *from = NULL;
	int64_t sizes[TENSOR_MAX_DIMS];
	struct op_output o;

	if (!fn || check_mask(op, mask) < 0)
		return error_code();
	if (self->dtype != source->dtype)
		return tensor_fail(EINVAL, "%s: self and source must have one dtype, got %s and %s",
				   op->schema.name, tensor_dtype_name(self->dtype),
				   tensor_dtype_name(source->dtype));
	ndim = iter_broadcast_sizes(op->schema.name, self, mask, sizes);
	if (ndim < 0 || output_begin_apart(op, &o, *out, self->dtype, sizes, ndim, inputs, n) < 0)
		return error_code();
	if (o.t != self)
		err = operand_copy(o.t, self);
	where = err ? NULL : spread(mask, sizes, ndim);
	from = where ? operand_contiguous(source) : NULL;
	to = from ? operand_contiguous(o.t) : NULL;
	if (!err)
		err = to ? fn(to, where, from) : error_code();
	if (!err && to != o.t)
		err = operand_copy(o.t, to);
	tensor_put(where);
	tensor_put(from);
	tensor_put(to);
	return output_end(op, &o, out, err);
}

/* Gradient of the source: grad_output where the mask is true, in order, then zeros for unused
 * elements. */
tensor *composite_masked_scatter_backward(tensor *grad_output, tensor *mask, tensor_ints sizes)
{
	const tensor_options options = { .dtype = grad_output->dtype,
					 .device = grad_output->device };
	tensor *read = call_masked_select(grad_output, mask), *rest = NULL, *all = NULL, *t = NULL;
	int64_t n = sizes_numel("masked_scatter", sizes.data, (int)sizes.len);

	if (read && n > read->numel) {
		tensor *list[] = { read, NULL };

		rest = list[1] = call_zeros(TENSOR_INTS(n - read->numel), options);
		all = rest ? call_cat((tensor_list){ list, 2 }, 0) : NULL;
	} else if (read) {
		all = tensor_get(read);
	}
	t = all ? call_view(all, sizes) : NULL;
	tensor_put(read);
	tensor_put(rest);
	tensor_put(all);
	return t;
}

/* ---- one_hot ---- */

/* Smallest and largest element of a non-empty integer tensor. */
static int extremes(tensor *self, int64_t *low, int64_t *high)
{
	tensor *wide = operand_cast(self, TENSOR_I64);
	tensor *flat = wide ? operand_on_host(wide) : NULL;
	const int64_t *p = flat ? flat->data : NULL;

	if (flat)
		*low = *high = p[0];
	for (int64_t i = 0; flat && i < flat->numel; i++) {
		*low = p[i] < *low ? p[i] : *low;
		*high = p[i] > *high ? p[i] : *high;
	}
	tensor_put(wide);
	tensor_put(flat);
	return flat ? 0 : error_code();
}

tensor *composite_one_hot(tensor *self, int64_t num_classes)
{
	int64_t low = 0, high = -1, sizes[TENSOR_MAX_DIMS];
	tensor *zeros, *index, *t;

	if (self->dtype != TENSOR_I64)
		return tensor_fail_null(EINVAL, "one_hot: classes must be i64, got %s",
					tensor_dtype_name(self->dtype));
	if (self->ndim == TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "one_hot: at most %d dimensions",
					TENSOR_MAX_DIMS - 1);
	if (self->numel && extremes(self, &low, &high) < 0)
		return NULL;
	if (!self->numel && num_classes <= 0)
		return tensor_fail_null(EINVAL, "one_hot: no classes to count in an empty tensor");
	if (num_classes == -1)
		num_classes = high + 1;
	if (low < 0 || num_classes < 1 || high >= num_classes)
		return tensor_fail_null(EINVAL,
					"one_hot: classes %lld to %lld, but num_classes %lld",
					(long long)low, (long long)high, (long long)num_classes);
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	sizes[self->ndim] = num_classes;
	zeros = call_zeros((tensor_ints){ sizes, self->ndim + 1 },
			   (tensor_options){ .dtype = TENSOR_I64, .device = self->device });
	index = zeros ? call_unsqueeze(self, self->ndim) : NULL;
	t = index ? call_scatter__value(zeros, self->ndim, index, tensor_scalar_int(1)) : NULL;
	tensor_put(index);
	if (!t)
		tensor_put(zeros);
	return t;
}
