// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Convolution, linear layers and pooling of blocked tensors, and weights in the order they want. */
#include "ops/nn/blocked.h"

#include "ops/nn/spatial.h"

#include "family/blocked.h"
#include "family/conv.h"
#include "family/mm.h"
#include "family/pool.h"
#include "family/matmul.h"
#include "family/view.h"

#define USUAL_SIZE 28 /* of an output whose size nobody said */
#define FEW_ROWS   8

/* Nothing of size 0 reaches oneDNN: an empty tensor of t's layout and dtype. */
static tensor *empty_like(const char *op, const tensor *t, const int64_t *sizes, int ndim)
{
	return is_blocked(t) ? onednn(op)->empty(op, t->dtype, sizes, ndim) :
			       tensor_new_like(t, sizes, ndim);
}

/* ---- convolution ---- */

int blocked_convolution(const struct tensor_op *op, tensor **out, tensor *input, tensor *weight,
			tensor *bias, const int64_t *sizes, const struct conv_params *p,
			bool transposed)
{
	const char *name = op->schema.name;
	tensor *x, *w = NULL, *b = NULL, *t = NULL;
	int64_t numel = sizes_numel(name, sizes, input->ndim);

	if (transposed)
		return tensor_fail(EOPNOTSUPP, "%s: blocked tensors have no transposed convolution",
				   name);
	if (blocked_need_form(op, false) < 0 || blocked_need_elements(name, weight) < 0 ||
	    numel < 0)
		return error_code();
	if (!numel)
		return blocked_deliver(op, out, empty_like(name, input, sizes, input->ndim));
	x = blocked_operand(input);
	if (x)
		w = blocked_operand(weight);
	if (w && bias)
		b = blocked_operand(bias);
	if (w && (b || !bias))
		t = onednn(name)->convolution(name, x, w, b, sizes, p);
	tensor_put(x);
	tensor_put(w);
	tensor_put(b);
	return blocked_deliver(op, out, t);
}

tensor *composite_mkldnn_convolution(tensor *self, tensor *weight, tensor *bias,
				     tensor_ints padding, tensor_ints stride, tensor_ints dilation,
				     int64_t groups)
{
	return call_convolution(self, weight, bias, stride, padding, dilation, false,
				TENSOR_INTS(0), groups);
}

/* Sizes of an input that nobody described. */
static void usual_input(const tensor *weight, const struct conv_params *p, int64_t *sizes)
{
	sizes[0] = 1;
	sizes[1] = weight->sizes[1] * p->groups;
	for (int i = 2; i < weight->ndim; i++) {
		int d = SPATIAL - weight->ndim + i;
		int64_t reach = p->dilation[d] * (weight->sizes[i] - 1) + 1;
		int64_t size = (USUAL_SIZE - 1) * p->stride[d] + reach - 2 * p->padding[d];

		sizes[i] = size > reach ? size : reach;
	}
}

static tensor *reorder(const char *name, int n, tensor *self, tensor_ints padding,
		       tensor_ints stride, tensor_ints dilation, int64_t groups,
		       tensor_ints input_size)
{
	const struct tensor_op *op = tensor_op_find(name);
	struct tensor input = { .ndim = self->ndim, .dtype = self->dtype };
	int64_t sizes[TENSOR_MAX_DIMS];
	struct conv_params p = { .groups = groups };

	if (self->ndim != n + 2)
		return tensor_fail_null(EINVAL, "%s: self must have %d dimensions, got %s", name,
					n + 2, SHAPE_STR(self));
	if (input_size.len >= 0 && input_size.len != n + 2)
		return tensor_fail_null(EINVAL, "%s: input_size must have %d numbers, got %lld",
					name, n + 2, (long long)input_size.len);
	if (blocked_need_elements(name, self) < 0 ||
	    spatial_list(op, "stride", stride, n, 1, 1, p.stride) < 0 ||
	    spatial_list(op, "padding", padding, n, 0, 0, p.padding) < 0 ||
	    spatial_list(op, "dilation", dilation, n, 1, 1, p.dilation) < 0)
		return NULL;
	usual_input(self, &p, input.sizes);
	if (input_size.len >= 0)
		memcpy(input.sizes, input_size.data, (n + 2) * sizeof(*sizes));
	if (convolution_infer(op, &input, self, NULL, stride, padding, dilation, false,
			      TENSOR_INTS(0), groups, &p, sizes) < 0)
		return NULL;
	for (int i = 0; i < n + 2; i++)
		if (input.sizes[i] < 1 || sizes[i] < 1)
			return tensor_fail_null(EINVAL,
						"%s: input_size must be positive and large "
						"enough for self %s",
						name, SHAPE_STR(self));
	return onednn(name)->convolution_weight(name, self, input.sizes, sizes, &p);
}

tensor *kernel_reorder_conv2d_weight(tensor *self, tensor_ints padding, tensor_ints stride,
				     tensor_ints dilation, int64_t groups, tensor_ints input_size)
{
	return reorder("mkldnn_reorder_conv2d_weight", 2, self, padding, stride, dilation, groups,
		       input_size);
}

tensor *kernel_reorder_conv3d_weight(tensor *self, tensor_ints padding, tensor_ints stride,
				     tensor_ints dilation, int64_t groups, tensor_ints input_size)
{
	return reorder("mkldnn_reorder_conv3d_weight", 3, self, padding, stride, dilation, groups,
		       input_size);
}

/* ---- linear ---- */

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

/* All three in row-major order: the strided product, into a blocked tensor if x is one. */
static tensor *linear_plain(tensor *x, tensor *weight, tensor *bias, const int64_t *sizes)
{
	int64_t n = weight->sizes[0], k = weight->sizes[1], rows = x->numel / k;
	tensor *out = empty_like("mkldnn_linear", x, sizes, x->ndim), *c = NULL, *a = NULL;
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
	return !is_blocked(t) || onednn("mkldnn_linear")->is_plain(t);
}

/* oneDNN is quick with weights that were reordered, with halves, and with few rows. */
static tensor *linear(tensor *x, tensor *weight, tensor *bias, const int64_t *sizes)
{
	if (x->dtype == TENSOR_F32 && x->numel / weight->sizes[1] > FEW_ROWS && is_plain(weight) &&
	    is_plain(x))
		return linear_plain(x, weight, bias, sizes);
	return onednn("mkldnn_linear")->linear("mkldnn_linear", x, weight, bias);
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
		return empty_like("mkldnn_linear", self, sizes, self->ndim);
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
	return onednn("_reorder_linear_weight")->linear_weight("_reorder_linear_weight", self, rows);
}

/* ---- pooling ---- */

/* Windows that reach behind the padding, which oneDNN would count. */
static bool reaches_out(const tensor *self, const int64_t *sizes, const struct pool_params *p)
{
	for (int i = self->ndim - p->spatial; i < self->ndim; i++) {
		int d = SPATIAL - self->ndim + i;

		if ((sizes[i] - 1) * p->stride[d] + p->kernel[d] >
		    self->sizes[i] + 2 * p->padding[d])
			return true;
	}
	return false;
}

/* Adaptive windows of one size; false where they are not. */
static bool even_windows(const tensor *self, const int64_t *sizes, struct pool_params *p)
{
	for (int d = 0; d < SPATIAL; d++)
		p->stride[d] = p->dilation[d] = p->kernel[d] = 1, p->padding[d] = 0;
	for (int i = self->ndim - p->spatial; i < self->ndim; i++) {
		int d = SPATIAL - self->ndim + i;

		if (!sizes[i] || self->sizes[i] % sizes[i])
			return false;
		p->kernel[d] = p->stride[d] = self->sizes[i] / sizes[i];
	}
	return true;
}

/* What max_pool gives without its indices. */
static int run_max(const struct tensor_op *op, tensor **out, tensor *self, const int64_t *sizes,
		   const struct pool_params *p)
{
	tensor *indices = NULL;
	int err = pool_run_max(op, out, &indices, self, sizes, p);

	tensor_put(indices);
	return err;
}

/* Of a dense copy, and back. */
static int pool_by_dense(const struct tensor_op *op, tensor **out, tensor *self,
			 const int64_t *sizes, const struct pool_params *p, bool max)
{
	tensor *dense = blocked_dense(op->schema.name, self), *t = NULL;
	int err = !dense ? error_code() :
		  max	 ? run_max(op, &t, dense, sizes, p) :
			   pool_run(op, &t, dense, sizes, p);

	tensor_put(dense);
	if (err)
		return err;
	*out = call_to_mkldnn(t, TENSOR_DTYPE_NONE);
	tensor_put(t);
	return *out ? 0 : error_code();
}

static bool is_batch(const tensor *self, const struct pool_params *p)
{
	return self->ndim == p->spatial + 2 && self->numel;
}

int blocked_average(const struct tensor_op *op, tensor **out, tensor *self, const int64_t *sizes,
		    const struct pool_params *p)
{
	bool adaptive = !p->kernel[SPATIAL - 1];
	struct pool_params windows = *p;

	if (blocked_need_form(op, false) < 0)
		return error_code();
	if (!is_batch(self, p) ||
	    (adaptive ? !even_windows(self, sizes, &windows) :
			p->divisor || (p->count_include_pad && reaches_out(self, sizes, p))))
		return pool_by_dense(op, out, self, sizes, p, false);
	return blocked_deliver(
		op, out,
		onednn(op->schema.name)->pool(op->schema.name, self, sizes, &windows, false));
}

/* A window of which nothing lies within the image: minus infinity, which oneDNN does not know. */
static bool has_empty_window(const tensor *self, const int64_t *sizes, const struct pool_params *p)
{
	for (int i = self->ndim - p->spatial; i < self->ndim; i++) {
		int d = SPATIAL - self->ndim + i;

		for (int64_t o = 0; p->dilation[d] > 1 && o < sizes[i]; o++) {
			int64_t at = o * p->stride[d] - p->padding[d], k = 0;

			while (at < 0 && ++k < p->kernel[d])
				at += p->dilation[d];
			if (at < 0 || at >= self->sizes[i])
				return true;
		}
	}
	return false;
}

static int max_pool(const struct tensor_op *op, tensor **out, tensor *self, const int64_t *sizes,
		    const struct pool_params *p)
{
	const char *name = op->schema.name;

	if (!is_blocked(self))
		return run_max(op, out, self, sizes, p);
	if (!is_batch(self, p) || has_empty_window(self, sizes, p))
		return pool_by_dense(op, out, self, sizes, p, true);
	return blocked_deliver(op, out, onednn(name)->pool(name, self, sizes, p, true));
}

#define POOLS(N)                                                                                \
	int op_mkldnn_max_pool##N##d(const struct tensor_op *op, tensor **out, tensor *self,    \
				     tensor_ints kernel_size, tensor_ints stride,               \
				     tensor_ints padding, tensor_ints dilation, bool ceil_mode) \
	{                                                                                       \
		int64_t sizes[TENSOR_MAX_DIMS];                                                 \
		struct pool_params p;                                                           \
                                                                                                \
		if (pool_get_params(op, N, kernel_size, stride, padding, dilation, &p) < 0 ||   \
		    pool_infer(op, self, &p, ceil_mode, sizes) < 0)                             \
			return error_code();                                                    \
		return max_pool(op, out, self, sizes, &p);                                      \
	}                                                                                       \
	tensor *kernel_blocked_max_pool##N##d(tensor *self, tensor_ints kernel_size,            \
					      tensor_ints stride, tensor_ints padding,          \
					      tensor_ints dilation, bool ceil_mode)             \
	{                                                                                       \
		return call_mkldnn_max_pool##N##d(self, kernel_size, stride, padding, dilation, \
						  ceil_mode);                                   \
	}                                                                                       \
	tensor *kernel_blocked_adaptive_avg_pool##N##d(tensor *self, tensor_ints output_size)   \
	{                                                                                       \
		return call__adaptive_avg_pool##N##d(self, output_size);                        \
	}
POOLS(2)
POOLS(3)
