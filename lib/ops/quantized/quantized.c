// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Quantized tensors: quantization, dequantization, accessors. */
#include "ops/quantized/quantized.h"
#include "ops/memory_format.h"

#include "base/init.h"
#include "core/exposed.h"

#include "family/copy.h"
#include "family/quantized.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the quantizer ---- */

void packed_weights_free(struct packed_weights *p)
{
	if (!p)
		return;
	tensor_put(p->plain);
	tensor_put(p->bytes);
	free(p);
}

static void free_quantizer(struct tensor_extension *x)
{
	struct quantizer *q = (struct quantizer *)x;

	tensor_put(q->scales);
	tensor_put(q->zero_points);
	tensor_put(q->kernel_scales);
	tensor_put(q->kernel_zeros);
	packed_weights_free(atomic_load_explicit(&q->packed, memory_order_relaxed));
	free(q);
}

static void expose(const tensor *t)
{
	if (is_quantized(t))
		atomic_store_explicit(&((struct quantizer *)t->ext)->exposed, true,
				      memory_order_relaxed);
}

INIT(INIT_HOOKS) static void watch_exposure(void)
{
	extension_exposed = expose;
}

static tensor *part(const tensor *t, int i, const char **name)
{
	*name = "";
	return i ? NULL : kernel_quantized_dequantize((tensor *)t);
}

static void describe(const tensor *t, char *buf, size_t size)
{
	const struct quantizer *q = quantizer_of(t);

	if (q->axis < 0)
		snprintf(buf, size,
			 ", quantization_scheme=per_tensor_affine, scale=%g, zero_point=%lld",
			 q->scale, (long long)q->zero_point);
	else
		snprintf(buf, size, ", quantization_scheme=per_channel_affine, axis=%d", q->axis);
}

static const struct extension_ops per_tensor_ops = {
	.free = free_quantizer, .part = part, .describe = describe, .views = true
};
static const struct extension_ops per_channel_ops = { .free = free_quantizer,
						      .part = part,
						      .describe = describe };

static int check_dtype(const char *op, enum tensor_dtype dtype)
{
	if (dtype == TENSOR_U8 || dtype == TENSOR_I8 || dtype == TENSOR_I32)
		return 0;
	return tensor_fail(EINVAL, "%s: dtype must be u8, i8 or i32, got %s", op,
			   tensor_dtype_name(dtype));
}

static int check_parameters(const char *op, double scale, int64_t zero_point,
			    enum tensor_dtype dtype)
{
	if (!(scale > 0 && scale <= 3.4e38))
		return tensor_fail(EINVAL, "%s: scale must be positive and finite, got %g", op,
				   scale);
	if (zero_point < quant_low(dtype) || zero_point > quant_high(dtype))
		return tensor_fail(EINVAL, "%s: zero_point must be within %s, got %lld", op,
				   tensor_dtype_name(dtype), (long long)zero_point);
	return 0;
}

/* New quantizer with space for the kernel parameters of n channels. */
static struct quantizer *new_quantizer(const struct extension_ops *ops, int64_t n)
{
	struct quantizer *q = calloc(1, sizeof(*q));

	if (!q) {
		tensor_fail(ENOMEM, "quantize: no memory");
		return NULL;
	}
	q->ext = (struct tensor_extension){ 1, ops };
	q->kernel_scales = tensor_new(TENSOR_DEVICE_CPU, TENSOR_F32, &n, 1);
	q->kernel_zeros = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I32, &n, 1);
	if (q->kernel_scales && q->kernel_zeros)
		return q;
	free_quantizer(&q->ext);
	return NULL;
}

struct tensor_extension *quantizer_new(const char *op, double scale, int64_t zero_point,
				       enum tensor_dtype dtype)
{
	struct quantizer *q;

	if (check_dtype(op, dtype) < 0 || check_parameters(op, scale, zero_point, dtype) < 0)
		return NULL;
	q = new_quantizer(&per_tensor_ops, 1);
	if (!q)
		return NULL;
	q->scale = scale;
	q->zero_point = zero_point;
	q->axis = -1;
	*(float *)q->kernel_scales->data = (float)scale;
	*(int32_t *)q->kernel_zeros->data = (int32_t)zero_point;
	return &q->ext;
}

static tensor *get_part(tensor *t)
{
	return t ? tensor_get(t) : NULL;
}

struct tensor_extension *quantizer_copy(const tensor *t)
{
	const struct quantizer *from = quantizer_of(t);
	struct quantizer *q = calloc(1, sizeof(*q));

	if (!q) {
		tensor_fail(ENOMEM, "quantize: no memory");
		return NULL;
	}
	q->ext = (struct tensor_extension){ 1, from->ext.ops };
	q->scale = from->scale;
	q->zero_point = from->zero_point;
	q->axis = from->axis;
	q->scales = get_part(from->scales);
	q->zero_points = get_part(from->zero_points);
	q->kernel_scales = get_part(from->kernel_scales);
	q->kernel_zeros = get_part(from->kernel_zeros);
	return &q->ext;
}

static tensor *as_vector(const tensor *t, enum tensor_dtype dtype)
{
	tensor *copy = tensor_new(TENSOR_DEVICE_CPU, dtype, t->sizes, t->ndim);

	if (copy && operand_copy(copy, t) < 0) {
		tensor_put(copy);
		return NULL;
	}
	return copy;
}

static struct tensor_extension *per_channel(const char *op, const tensor *self, tensor *scales,
					    tensor *zero_points, int64_t axis,
					    enum tensor_dtype dtype)
{
	int a = wrap_dim(op, axis, self->ndim);
	struct quantizer *q;
	int64_t n;

	if (a < 0 || check_dtype(op, dtype) < 0)
		return NULL;
	n = self->ndim ? self->sizes[a] : 1;
	if (scales->ndim != 1 || zero_points->ndim != 1 || scales->sizes[0] != n ||
	    zero_points->sizes[0] != n || !self->ndim || scales->ext || zero_points->ext) {
		tensor_fail(EINVAL,
			    "%s: scales and zero_points must be [%lld] for axis %d of %s, got %s "
			    "and %s",
			    op, (long long)n, a, SHAPE_STR(self), SHAPE_STR(scales),
			    SHAPE_STR(zero_points));
		return NULL;
	}
	q = new_quantizer(&per_channel_ops, n);
	if (!q)
		return NULL;
	q->axis = a;
	q->scales = as_vector(scales, TENSOR_F64);
	q->zero_points = as_vector(zero_points, TENSOR_I64);
	if (!q->scales || !q->zero_points)
		goto failed;
	for (int64_t i = 0; i < n; i++) {
		double scale = ((double *)q->scales->data)[i];
		int64_t zero = ((int64_t *)q->zero_points->data)[i];

		if (check_parameters(op, scale, zero, dtype) < 0)
			goto failed;
		((float *)q->kernel_scales->data)[i] = (float)scale;
		((int32_t *)q->kernel_zeros->data)[i] = (int32_t)zero;
	}
	return &q->ext;
failed:
	free_quantizer(&q->ext);
	return NULL;
}

/* Kernel parameters for a contiguous tensor of self's shape. */
static struct quant kernel_quant(const struct quantizer *q, const tensor *self)
{
	struct quant k = { q->kernel_scales->data, NULL, q->kernel_zeros->data, 1, 1 };

	if (q->axis < 0)
		return k;
	k.exact = q->scales->data;
	k.channels = self->sizes[q->axis];
	for (int i = q->axis + 1; i < self->ndim; i++)
		k.inner *= self->sizes[i];
	return k;
}

/* ---- construction ---- */

static tensor *mark(tensor *t, struct tensor_extension *ext)
{
	if (!t) {
		extension_put(ext);
		return NULL;
	}
	t->keys = KEY_BIT(TENSOR_KEY_QUANTIZED_CPU);
	t->ext = ext;
	return t;
}

tensor *quantized_new(tensor_device device, enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		      struct tensor_extension *ext)
{
	return ext ? mark(tensor_new(device, dtype, sizes, ndim), ext) : NULL;
}

tensor *quantized_from_plain(tensor *plain, struct tensor_extension *ext)
{
	return ext ? mark(plain ? tensor_new_detached(plain) : NULL, ext) : NULL;
}

tensor *quantized_plain(tensor *self)
{
	tensor *t = tensor_new_detached(self);

	if (!t)
		return NULL;
	extension_put(t->ext);
	t->ext = NULL;
	t->keys = device_key(t->device, TENSOR_STRIDED);
	return t;
}

tensor *quantized_make(tensor *x, enum tensor_dtype dtype, struct tensor_extension *ext)
{
	quantize_kernel fn = (quantize_kernel)kernels_quantize.fn[backend_key(x)];
	tensor *full = ext ? operand_contiguous(x) : NULL, *t = NULL;
	struct quant q;

	if (!full) {
		extension_put(ext);
		return NULL;
	}
	t = quantized_new(x->device, dtype, x->sizes, x->ndim, ext);
	if (t) {
		q = kernel_quant(quantizer_of(t), t);
		if (fn(t, full, &q) < 0) {
			tensor_put(t);
			t = NULL;
		}
	}
	tensor_put(full);
	return t;
}

static int need_f32(const char *op, const tensor *self)
{
	return self->dtype == TENSOR_F32 ? 0 :
					   tensor_fail(EINVAL, "%s: self must be f32, got %s", op,
						       tensor_dtype_name(self->dtype));
}

tensor *kernel_quantize_per_tensor(tensor *self, double scale, int64_t zero_point,
				   enum tensor_dtype dtype)
{
	if (need_f32("quantize_per_tensor", self) < 0)
		return NULL;
	return quantized_make(self, dtype,
			      quantizer_new("quantize_per_tensor", scale, zero_point, dtype));
}

tensor *kernel_quantize_per_channel(tensor *self, tensor *scales, tensor *zero_points, int64_t axis,
				    enum tensor_dtype dtype)
{
	if (need_f32("quantize_per_channel", self) < 0)
		return NULL;
	return quantized_make(self, dtype,
			      per_channel("quantize_per_channel", self, scales, zero_points, axis,
					  dtype));
}

/* From integers that are already quantized. */
tensor *kernel_make_per_tensor(tensor *self, double scale, int64_t zero_point)
{
	struct tensor_extension *ext =
		quantizer_new("_make_per_tensor_quantized_tensor", scale, zero_point, self->dtype);
	tensor *copy = ext ? operand_contiguous_copy(self, (tensor_options){ 0 }) : NULL;
	tensor *t = quantized_from_plain(copy, ext);

	tensor_put(copy);
	return t;
}

tensor *kernel_make_per_channel(tensor *self, tensor *scale, tensor *zero_point, int64_t axis)
{
	struct tensor_extension *ext = per_channel("_make_per_channel_quantized_tensor", self,
						   scale, zero_point, axis, self->dtype);
	tensor *copy = ext ? operand_contiguous_copy(self, (tensor_options){ 0 }) : NULL;
	tensor *t = quantized_from_plain(copy, ext);

	tensor_put(copy);
	return t;
}

tensor *kernel_quantized_dequantize(tensor *self)
{
	tensor *plain = quantized_plain(self), *full = plain ? operand_contiguous(plain) : NULL;
	tensor *t = full ? tensor_new(self->device, TENSOR_F32, self->sizes, self->ndim) : NULL;
	dequantize_kernel fn;
	struct quant q;

	if (t) {
		fn = (dequantize_kernel)kernels_dequantize.fn[backend_key(full)];
		q = kernel_quant(quantizer_of(self), self);
		if (fn(t, full, &q) < 0) {
			tensor_put(t);
			t = NULL;
		}
	}
	tensor_put(plain);
	tensor_put(full);
	return t;
}

/* ---- accessors ---- */

int quantized_need(const char *op, const char *name, const tensor *t, enum tensor_dtype dtype)
{
	if (!is_quantized(t))
		return tensor_fail(EINVAL, "%s: %s must be quantized", op, name);
	if (!is_per_tensor(t))
		return tensor_fail(EINVAL, "%s: %s must be quantized per tensor", op, name);
	if (dtype && t->dtype != dtype)
		return tensor_fail(EINVAL, "%s: %s must be quantized to %s, got %s", op, name,
				   tensor_dtype_name(dtype), tensor_dtype_name(t->dtype));
	return 0;
}

static int need_per_channel(const char *op, const tensor *t)
{
	return is_per_tensor(t) ? tensor_fail(EINVAL, "%s: self is quantized per tensor", op) : 0;
}

int kernel_q_scale(tensor *self, double *result)
{
	if (quantized_need("q_scale", "self", self, TENSOR_DTYPE_NONE) < 0)
		return error_code();
	*result = quantizer_of(self)->scale;
	return 0;
}

int kernel_q_zero_point(tensor *self, int64_t *result)
{
	if (quantized_need("q_zero_point", "self", self, TENSOR_DTYPE_NONE) < 0)
		return error_code();
	*result = quantizer_of(self)->zero_point;
	return 0;
}

/* Copies, because a quantizer is immutable. */
tensor *kernel_q_scales(tensor *self)
{
	if (need_per_channel("q_per_channel_scales", self) < 0)
		return NULL;
	return as_vector(quantizer_of(self)->scales, TENSOR_F64);
}

tensor *kernel_q_zero_points(tensor *self)
{
	if (need_per_channel("q_per_channel_zero_points", self) < 0)
		return NULL;
	return as_vector(quantizer_of(self)->zero_points, TENSOR_I64);
}

int kernel_q_axis(tensor *self, int64_t *result)
{
	if (need_per_channel("q_per_channel_axis", self) < 0)
		return error_code();
	*result = quantizer_of(self)->axis;
	return 0;
}

static tensor *copy_plain(tensor *self, tensor_device device)
{
	tensor *plain = quantized_plain(self);
	tensor *copy = plain ? operand_contiguous_copy(plain, TENSOR_OPTIONS(.device = device)) :
			       NULL;

	tensor_put(plain);
	return copy;
}

tensor *kernel_int_repr(tensor *self)
{
	return copy_plain(self, self->device);
}

tensor *kernel_quantized_to_copy(tensor *self, tensor_options o)
{
	tensor *copy, *t;

	if ((o.dtype && o.dtype != self->dtype) || o.layout > TENSOR_STRIDED || o.shareable ||
	    o.memory_format > TENSOR_PRESERVE_FORMAT || o.device.type > TENSOR_CUDA)
		return tensor_fail_null(
			EOPNOTSUPP, "_to_copy: a quantized tensor keeps its dtype and layout, and "
				    "can be on the CPU and on CUDA; dequantize it first");
	copy = copy_plain(self, o.device.type ? o.device : self->device);
	t = copy ? quantized_from_plain(copy, quantizer_copy(self)) : NULL;
	tensor_put(copy);
	return t;
}

int op_quantized_clone(const struct tensor_op *op, tensor **out, tensor *self,
		       enum tensor_memory_format memory_format)
{
	if (memory_check_clone(memory_format) < 0)
		return error_code();
	*out = kernel_quantized_to_copy(self, (tensor_options){ 0 });
	return *out ? 0 : error_code();
}
