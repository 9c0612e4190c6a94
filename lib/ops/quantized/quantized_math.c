// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operators on quantized tensors. Linear and convolution are integer products of u8 activations and
 * i8 weights; elementwise operators dequantize, compute and quantize. */
#include "ops/quantized/quantized.h"

#include "family/pointwise.h"
#include "family/quantized.h"
#include "family/ternary.h"

/* ---- products ---- */

struct weights {
	tensor *w, *bias; /* contiguous: i8, on the CPU NULL, and f32 or NULL */
	/* per output channel: f32 product of both scales, i32 zero points */
	tensor *scales, *zeros;
};

static void put_weights(struct weights *w)
{
	tensor_put(w->w);
	tensor_put(w->bias);
	tensor_put(w->scales);
	tensor_put(w->zeros);
}

static int check_weight(const char *op, const tensor *self, const tensor *weight,
			const tensor *bias)
{
	if (operand_check_device(op, self, weight) < 0 ||
	    (bias && operand_check_device(op, self, bias) < 0))
		return error_code();
	if (!is_quantized(weight) || weight->dtype != TENSOR_I8)
		return tensor_fail(EINVAL, "%s: weight must be quantized to i8", op);
	if (!is_per_tensor(weight) && quantizer_of(weight)->axis != 0)
		return tensor_fail(EINVAL,
				   "%s: weight must be quantized per tensor or along axis 0, "
				   "not %d",
				   op, quantizer_of(weight)->axis);
	if (bias && (bias->ext || bias->dtype != TENSOR_F32 || bias->ndim != 1 ||
		     bias->sizes[0] != weight->sizes[0]))
		return tensor_fail(EINVAL, "%s: bias must be f32 [%lld], got %s %s", op,
				   (long long)weight->sizes[0], tensor_dtype_name(bias->dtype),
				   SHAPE_STR(bias));
	return 0;
}

/* Call put_weights() afterwards, also on failure. 0, or -errno with the error set. */
static int get_weights(struct weights *w, const tensor *self, tensor *weight, tensor *bias)
{
	const struct quantizer *q = quantizer_of(weight);
	tensor *plain = weight->device.type == TENSOR_CPU ? NULL : quantized_plain(weight);
	bool packed = weight->device.type == TENSOR_CPU;
	int64_t n = weight->sizes[0];
	const float *scale = q->kernel_scales->data;
	const int32_t *zero = q->kernel_zeros->data;
	float x_scale = (float)quantizer_of(self)->scale;

	*w = (struct weights){
		.w = plain ? operand_contiguous(plain) : NULL,
		.bias = bias ? operand_contiguous(bias) : NULL,
		.scales = tensor_new(TENSOR_DEVICE_CPU, TENSOR_F32, &n, 1),
		.zeros = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I32, &n, 1),
	};
	tensor_put(plain);
	if ((!packed && !w->w) || (bias && !w->bias) || !w->scales || !w->zeros)
		return error_code();
	for (int64_t i = 0; i < n; i++) {
		int64_t c = is_per_tensor(weight) ? 0 : i;

		((float *)w->scales->data)[i] = x_scale * scale[c];
		((int32_t *)w->zeros->data)[i] = zero[c];
	}
	return 0;
}

static struct requantize requantization(const struct weights *w, const tensor *self,
					const tensor *weight, const tensor *out, bool relu)
{
	const struct quantizer *q = quantizer_of(out);
	int32_t zero = (int32_t)q->zero_point;

	return (struct requantize){
		.x_zero = (int32_t)quantizer_of(self)->zero_point,
		.w_zero = w->zeros->data,
		.scale = w->scales->data,
		.bias = w->bias ? w->bias->data : NULL,
		.bias_reciprocal = is_per_tensor(weight),
		.out_scale = (float)q->scale,
		.out_zero = zero,
		.low = relu ? zero : 0,
		.high = 255,
	};
}

/* On the CPU: a linear layer is a convolution of one image, whose rows are those of x, with channels last. */
static int packed_product(tensor *out, const tensor *x, tensor *weight, const struct patches *shape,
			  int64_t groups, bool channels_last, const struct requantize *q)
{
	product_s8_kernel fn = (product_s8_kernel)kernels_product_s8.fn[backend_key(x)];
	int64_t n = weight->sizes[0] / groups;
	tensor *packed = quantized_pack(weight, groups, n, shape->channels, shape->kh * shape->kw);
	struct product_s8 p = { .shape = *shape,
				.groups = groups,
				.n = n,
				.channels_last = channels_last,
				.x = x->data,
				.out = out->data,
				.packed = packed,
				.requantize = q };
	int err = packed ? fn(&p) : error_code();

	tensor_put(packed);
	return err;
}

static int linear_product(tensor *out, const tensor *x, tensor *weight, const struct weights *w,
			  const struct requantize *q)
{
	int64_t n = weight->sizes[0], k = weight->sizes[1], m = n ? out->numel / n : 0;
	const struct patches rows = { .images = 1,
				      .channels = k,
				      .height = m,
				      .width = 1,
				      .kh = 1,
				      .kw = 1,
				      .oh = m,
				      .ow = 1,
				      .stride = { 1, 1 },
				      .dilation = { 1, 1 } };
	const struct gemm_s8 g = { .m = m,
				   .n = n,
				   .k = k,
				   .count = 1,
				   .groups = 1,
				   .x = x->data,
				   .w = w->w ? w->w->data : NULL,
				   .out = out->data,
				   .out_row = n,
				   .out_column = 1,
				   .requantize = q,
				   .tensors = { out, x, w->w, w->bias } };

	if (x->device.type == TENSOR_CPU)
		return m ? packed_product(out, x, weight, &rows, 1, true, q) : 0;
	return ((gemm_s8_kernel)kernels_gemm_s8.fn[backend_key(x)])(&g);
}

tensor *kernel_quantized_linear(tensor *self, tensor *weight, tensor *bias, double output_scale,
				int64_t output_zero_point, bool relu)
{
	const char *op = "quantized_linear";
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor *plain, *x = NULL, *out = NULL;
	struct requantize q;
	struct weights w;

	if (quantized_need(op, "self", self, TENSOR_U8) < 0 ||
	    check_weight(op, self, weight, bias) < 0)
		return NULL;
	if (weight->ndim != 2 || !self->ndim || self->sizes[self->ndim - 1] != weight->sizes[1])
		return tensor_fail_null(EINVAL,
					"%s: self [..., k] and weight [n, k] are needed, got %s "
					"and %s",
					op, SHAPE_STR(self), SHAPE_STR(weight));
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	sizes[self->ndim - 1] = weight->sizes[0];
	plain = quantized_plain(self);
	x = plain ? operand_contiguous(plain) : NULL;
	tensor_put(plain);
	if (get_weights(&w, self, weight, bias) == 0 && x)
		out = quantized_new(self->device, TENSOR_U8, sizes, self->ndim,
				    quantizer_new(op, output_scale, output_zero_point, TENSOR_U8));
	if (out) {
		q = requantization(&w, self, weight, out, relu);
		if (linear_product(out, x, weight, &w, &q) < 0) {
			tensor_put(out);
			out = NULL;
		}
	}
	put_weights(&w);
	tensor_put(x);
	return out;
}

/* ---- convolution ---- */

static int two(const char *op, const char *name, tensor_ints v, int64_t least, int64_t *out)
{
	if (v.len != 1 && v.len != 2)
		return tensor_fail(EINVAL, "%s: %s must have 1 or 2 numbers, got %lld", op, name,
				   (long long)v.len);
	out[0] = v.data[0];
	out[1] = v.data[v.len - 1];
	if (out[0] < least || out[1] < least)
		return tensor_fail(EINVAL, "%s: %s must be at least %lld", op, name,
				   (long long)least);
	if (out[0] > INT32_MAX || out[1] > INT32_MAX)
		return tensor_fail(EINVAL, "%s: %s must be below 2^31", op, name);
	return 0;
}

/* Positions of the taps along dimension d; INT64_MAX if they overflow, -1 if there are none. */
static int64_t positions(const struct patches *p, int d, int64_t size, int64_t taps)
{
	const __int128 n =
		(__int128)size + 2 * p->padding[d] - (__int128)p->dilation[d] * (taps - 1) - 1;

	return n < 0 || !taps ? -1 : n >= INT64_MAX ? INT64_MAX : (int64_t)n / p->stride[d] + 1;
}

static int patch_sizes(const char *op, const tensor *self, const tensor *weight, int64_t groups,
		       struct patches *p)
{
	int64_t channels;

	if (self->ndim != 4 || weight->ndim != 4 || groups < 1 ||
	    __builtin_mul_overflow(weight->sizes[1], groups, &channels) ||
	    self->sizes[1] != channels || weight->sizes[0] % groups)
		return tensor_fail(EINVAL,
				   "%s: self [n, c, h, w] and weight [o, c / groups, kh, kw] are "
				   "needed, got %s, %s and %lld groups",
				   op, SHAPE_STR(self), SHAPE_STR(weight), (long long)groups);
	p->channels = weight->sizes[1];
	p->height = self->sizes[2];
	p->width = self->sizes[3];
	p->kh = weight->sizes[2];
	p->kw = weight->sizes[3];
	p->oh = positions(p, 0, p->height, p->kh);
	p->ow = positions(p, 1, p->width, p->kw);
	if (p->oh < 0 || p->ow < 0)
		return tensor_fail(EINVAL,
				   "%s: weight %s has no taps, or is larger with its dilation than "
				   "the padded input %s",
				   op, SHAPE_STR(weight), SHAPE_STR(self));
	if (p->oh == INT64_MAX || p->ow == INT64_MAX)
		return tensor_fail(EINVAL, "%s: the output's size overflows for input %s", op,
				   SHAPE_STR(self));
	/* Taps without channels need no memory: there may be any number of them, for loops that do nothing. */
	if (!p->channels)
		p->kh = p->kw = 1;
	return 0;
}

/* Bytes of columns on a device, whose launches have many images. */
#define COLUMNS_BYTES (256ll << 20)

/* Images of groups whose columns are made together: one, or a multiple of the groups. */
static int64_t images_together(const tensor *x, int64_t groups, int64_t bytes)
{
	int64_t all = x->sizes[0] * groups, most = COLUMNS_BYTES / (bytes ? bytes : 1);

	most = most < groups ? groups : most / groups * groups;
	return most < all ? most : all;
}

/* On a device: im2col, then products whose columns are output channels. */
static int convolve(tensor *out, const tensor *x, const struct weights *w, int64_t groups,
		    const struct patches *p, const struct requantize *all)
{
	gemm_s8_kernel product = (gemm_s8_kernel)kernels_gemm_s8.fn[backend_key(x)];
	patches_kernel patches = (patches_kernel)kernels_patches_u8.fn[backend_key(x)];
	int64_t pixels = p->oh * p->ow, k = p->channels * p->kh * p->kw;
	int64_t n = out->sizes[1] / groups, image = p->channels * p->height * p->width;
	int64_t images = x->sizes[0] * groups, most = images_together(x, groups, pixels * k);
	tensor *columns = tensor_new(x->device, TENSOR_U8, (int64_t[]){ most, pixels, k }, 3);
	struct patches from = *p;
	int err = 0;

	if (!columns)
		return error_code();
	from.tensors[0] = columns;
	from.tensors[1] = x;
	for (int64_t i = 0; i < images && !err; i += most) {
		int64_t g = i % groups;
		struct requantize q = *all;
		struct gemm_s8 m = { .m = pixels,
				     .n = n,
				     .k = k,
				     .count = images - i < most ? images - i : most,
				     .groups = groups,
				     .x = columns->data,
				     .w = (const int8_t *)w->w->data + g * n * k,
				     .out = (uint8_t *)out->data + i * n * pixels,
				     .out_row = 1,
				     .out_column = pixels,
				     .out_step = n * pixels,
				     .requantize = &q,
				     .tensors = { out, columns, w->w, w->bias } };

		q.w_zero += g * n;
		q.scale += g * n;
		q.bias = q.bias ? q.bias + g * n : NULL;
		from.images = m.count;
		err = patches(columns->data, (const uint8_t *)x->data + i * image, &from);
		if (!err)
			err = product(&m);
	}
	tensor_put(columns);
	return err;
}

tensor *kernel_quantized_conv2d(tensor *self, tensor *weight, tensor *bias, tensor_ints stride,
				tensor_ints padding, tensor_ints dilation, int64_t groups,
				double output_scale, int64_t output_zero_point, bool relu)
{
	const char *op = "quantized_conv2d";
	struct patches p = { 0 };
	tensor *plain, *x = NULL, *out = NULL;
	struct requantize q;
	struct weights w;
	int err;

	if (quantized_need(op, "self", self, TENSOR_U8) < 0 ||
	    check_weight(op, self, weight, bias) < 0 ||
	    two(op, "stride", stride, 1, p.stride) < 0 ||
	    two(op, "padding", padding, 0, p.padding) < 0 ||
	    two(op, "dilation", dilation, 1, p.dilation) < 0 ||
	    patch_sizes(op, self, weight, groups, &p) < 0)
		return NULL;
	p.fill = (uint8_t)quantizer_of(self)->zero_point;
	plain = quantized_plain(self);
	x = plain ? operand_contiguous(plain) : NULL;
	tensor_put(plain);
	if (get_weights(&w, self, weight, bias) == 0 && x)
		out = quantized_new(self->device, TENSOR_U8,
				    (int64_t[]){ self->sizes[0], weight->sizes[0], p.oh, p.ow }, 4,
				    quantizer_new(op, output_scale, output_zero_point, TENSOR_U8));
	/* A weight without output channels has any number of groups. */
	if (out && out->numel) {
		q = requantization(&w, self, weight, out, relu);
		p.images = x->sizes[0];
		err = x->device.type == TENSOR_CPU ?
			      packed_product(out, x, weight, &p, groups, false, &q) :
			      convolve(out, x, &w, groups, &p, &q);
		if (err < 0) {
			tensor_put(out);
			out = NULL;
		}
	}
	put_weights(&w);
	tensor_put(x);
	return out;
}

/* ---- elementwise ---- */

/* max(q, zero_point); the scale is unchanged. */
static tensor *relu_functional(tensor *self)
{
	tensor *plain, *most, *t;

	if (quantized_need("relu", "self", self, TENSOR_DTYPE_NONE) < 0)
		return NULL;
	plain = quantized_plain(self);
	most = plain ? call_clamp_min(plain, tensor_scalar_int(quantizer_of(self)->zero_point)) :
		       NULL;
	t = most ? quantized_from_plain(most, quantizer_copy(self)) : NULL;
	tensor_put(plain);
	tensor_put(most);
	return t;
}

int op_quantized_relu(const struct tensor_op *op, tensor **out, tensor *self)
{
	if (op->variant != VARIANT_FUNCTION)
		return tensor_fail(EOPNOTSUPP,
				   "%s: quantized tensors have the functional form only",
				   op->schema.name);
	*out = relu_functional(self);
	return *out ? 0 : error_code();
}

static tensor *requantized(const char *op, tensor *x, enum tensor_dtype dtype, double scale,
			   int64_t zero_point)
{
	tensor *t = x ? quantized_make(x, dtype, quantizer_new(op, scale, zero_point, dtype)) :
			NULL;

	tensor_put(x);
	return t;
}

static int check_pair(const char *op, const tensor *a, const tensor *b)
{
	if (quantized_need(op, "qa", a, TENSOR_DTYPE_NONE) < 0 ||
	    quantized_need(op, "qb", b, a->dtype) < 0)
		return error_code();
	return 0;
}

/* Bytes of one shape on the CPU are added or multiplied in one pass. */
static bool in_one_pass(const tensor *a, const tensor *b)
{
	return a->device.type == TENSOR_CPU && b->device.type == TENSOR_CPU &&
	       a->dtype != TENSOR_I32 && sizes_equal(a, b);
}

static tensor *one_pass(const char *op, tensor *qa, tensor *qb, double scale, int64_t zero_point,
			bool product)
{
	const struct quantizer *x = quantizer_of(qa), *y = quantizer_of(qb);
	tensor *pa = quantized_plain(qa), *a = pa ? operand_contiguous(pa) : NULL;
	tensor *pb = quantized_plain(qb), *b = pb ? operand_contiguous(pb) : NULL, *out = NULL;

	if (a && b)
		out = quantized_new(qa->device, qa->dtype, qa->sizes, qa->ndim,
				    quantizer_new(op, scale, zero_point, qa->dtype));
	if (out) {
		struct pair_s8 p = { .n = out->numel,
				     .a = a->data,
				     .b = b->data,
				     .out = out->data,
				     .product = product,
				     .is_signed = qa->dtype == TENSOR_I8,
				     .a_scale = (float)x->scale,
				     .b_scale = (float)y->scale,
				     .out_scale = (float)scale,
				     .factor = (float)(x->scale * y->scale / scale),
				     .a_zero = (int32_t)x->zero_point,
				     .b_zero = (int32_t)y->zero_point,
				     .out_zero = (int32_t)zero_point };

		((pair_s8_kernel)kernels_pair_s8.fn[backend_key(a)])(&p);
	}
	tensor_put(pa);
	tensor_put(a);
	tensor_put(pb);
	tensor_put(b);
	return out;
}

tensor *kernel_quantized_add(tensor *qa, tensor *qb, double scale, int64_t zero_point)
{
	tensor *a, *b, *sum = NULL;

	if (check_pair("quantized_add", qa, qb) < 0)
		return NULL;
	if (in_one_pass(qa, qb))
		return one_pass("quantized_add", qa, qb, scale, zero_point, false);
	a = call_dequantize_self(qa);
	b = call_dequantize_self(qb);
	if (a && b)
		sum = call_add_Tensor(a, b, tensor_scalar_int(1));
	tensor_put(a);
	tensor_put(b);
	return requantized("quantized_add", sum, qa->dtype, scale, zero_point);
}

/* q - zero_point in f32, exact. */
static tensor *without_zero(tensor *self)
{
	struct tensor_extension *unit =
		quantizer_new("quantized_mul", 1, quantizer_of(self)->zero_point, self->dtype);
	tensor *plain = quantized_plain(self), *t = quantized_from_plain(plain, unit), *x;

	x = t ? call_dequantize_self(t) : NULL;
	tensor_put(plain);
	tensor_put(t);
	return x;
}

tensor *kernel_quantized_mul(tensor *qa, tensor *qb, double scale, int64_t zero_point)
{
	tensor *a, *b, *product = NULL, *scaled = NULL, *unit = NULL, *plain = NULL;
	const char *op = "quantized_mul";
	tensor *result = NULL;
	float factor;

	if (check_pair(op, qa, qb) < 0)
		return NULL;
	if (in_one_pass(qa, qb))
		return one_pass(op, qa, qb, scale, zero_point, true);
	/* Scale the product of the integers once. */
	factor = (float)(quantizer_of(qa)->scale * quantizer_of(qb)->scale / scale);
	a = without_zero(qa);
	b = without_zero(qb);
	if (a && b)
		product = call_mul_Tensor(a, b);
	if (product)
		scaled = call_mul_Scalar(product, tensor_scalar_float(factor));
	unit = requantized(op, scaled, qa->dtype, 1, zero_point);
	if (unit)
		plain = quantized_plain(unit);
	if (plain)
		result = quantized_from_plain(plain,
					      quantizer_new(op, scale, zero_point, qa->dtype));
	tensor_put(a);
	tensor_put(b);
	tensor_put(product);
	tensor_put(unit);
	tensor_put(plain);
	return result;
}
