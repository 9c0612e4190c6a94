// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Linear layers of blocked tensors, and reordering of their weights into oneDNN's preferred layout.
 */
#include "ops/nn/blocked/blocked.h"

#include "family/blocked.h"
#include "family/matmul.h"
#include "family/mm.h"
#include "family/view.h"

/* Up to this number of rows, oneDNN's product is faster than the strided one. */
#define FEW_ROWS 8

static int check_linear(const tensor *self, const tensor *weight, const tensor *bias)
{
	if (weight->ndim != 2 || self->ndim < 1 || self->sizes[self->ndim - 1] != weight->sizes[1])
		return tensor_fail(EINVAL,
				   "mkldnn_linear: self [..., k] and weight [n, k] are needed, got "
				   "%s and %s",
				   SHAPE_STR(self), SHAPE_STR(weight));
	if (self->dtype != weight->dtype)
		return tensor_fail(EINVAL,
				   "mkldnn_linear: self and weight must have one dtype, got %s "
				   "and %s",
				   tensor_dtype_name(self->dtype),
				   tensor_dtype_name(weight->dtype));
	if (bias &&
	    (bias->ndim != 1 || bias->sizes[0] != weight->sizes[0] || bias->dtype != self->dtype))
		return tensor_fail(EINVAL, "mkldnn_linear: bias must be %s [%lld], got %s %s",
				   tensor_dtype_name(self->dtype), (long long)weight->sizes[0],
				   tensor_dtype_name(bias->dtype), SHAPE_STR(bias));
	return blocked_need_elements("mkldnn_linear", weight);
}

/* Strided product of operands in row-major order; the result is blocked if x is. */
static tensor *linear_plain(tensor *x, tensor *weight, tensor *bias, const int64_t *sizes)
{
	int64_t n = weight->sizes[0], k = weight->sizes[1], rows = x->numel / k;
	tensor *out = blocked_empty_like("mkldnn_linear", x, sizes, x->ndim), *c = NULL, *a = NULL;
	tensor *w = NULL, *t = NULL, *b = NULL, *done = NULL;

	if (out && (c = blocked_plain(out, (int64_t[]){ rows, n }, 2)) &&
	    (a = blocked_plain(x, (int64_t[]){ rows, k }, 2)) &&
	    (w = blocked_plain(weight, weight->sizes, 2)))
		t = call_t(w);
	if (t && bias)
		b = blocked_plain(bias, &n, 1);
	if (t && (b || !bias))
		done = b ? call_addmm_out(c, b, a, t, tensor_scalar_int(1), tensor_scalar_int(1)) :
			   call_mm_out(c, a, t);
	tensor_put(a);
	tensor_put(b);
	tensor_put(c);
	tensor_put(t);
	tensor_put(w);
	if (done)
		return out;
	tensor_put(out);
	return NULL;
}

static bool is_plain(const tensor *t)
{
	return !is_blocked(t) || blocked_plugin("mkldnn_linear")->is_plain(t);
}

/* oneDNN is the faster one for reordered weights, reduced float dtypes and few rows. */
static tensor *linear(tensor *x, tensor *weight, tensor *bias, const int64_t *sizes)
{
	if (x->dtype == TENSOR_F32 && x->numel / weight->sizes[1] > FEW_ROWS && is_plain(weight) &&
	    is_plain(x))
		return linear_plain(x, weight, bias, sizes);
	return blocked_plugin("mkldnn_linear")->linear("mkldnn_linear", x, weight, bias);
}

tensor *kernel_mkldnn_linear(tensor *self, tensor *weight, tensor *bias)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor *x, *w = NULL, *b = NULL, *t = NULL;

	if (check_linear(self, weight, bias) < 0)
		return NULL;
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	sizes[self->ndim - 1] = weight->sizes[0];
	if (!self->numel)
		return blocked_empty_like("mkldnn_linear", self, sizes, self->ndim);
	x = blocked_operand(self);
	if (x)
		w = blocked_operand(weight);
	if (w && bias)
		b = blocked_operand(bias);
	if (w && (b || !bias))
		t = linear(x, w, b, sizes);
	tensor_put(x);
	tensor_put(w);
	tensor_put(b);
	return t;
}

tensor *kernel_blocked_linear(tensor *input, tensor *weight, tensor *bias)
{
	return call_mkldnn_linear(input, weight, bias);
}

tensor *kernel_reorder_linear_weight(tensor *self, int64_t batch_size)
{
	int64_t rows = batch_size == TENSOR_NONE ? 1 : batch_size;

	if (self->ndim != 2 || !self->numel || rows < 1)
		return tensor_fail_null(EINVAL,
					"_reorder_linear_weight: self [n, k] and a positive "
					"batch_size are needed, got %s and %lld",
					SHAPE_STR(self), (long long)rows);
	return blocked_plugin("_reorder_linear_weight")
		->linear_weight("_reorder_linear_weight", self, rows);
}
