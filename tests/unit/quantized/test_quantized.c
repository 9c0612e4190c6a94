// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Quantized tensors: rounding and saturation, products against plain loops, errors. test_quantized_tiles.c runs them with tiles. */
#include "by_hand.h"

#ifndef TILES
#define TILES "none"
#define NAME  "quantized"
#endif

static tensor *floats(const float *values, tensor_ints shape)
{
	return ok(tensor_from_data(values, shape, F32));
}

#define FLOATS(shape, ...) floats((const float[]){ __VA_ARGS__ }, shape)

static void ties_round_to_even_and_large_values_saturate(void **state)
{
	tensor_scope {
		tensor *x = FLOATS(TENSOR_INTS(9), 0.25f, 0.75f, -0.25f, 1e30f, -1e30f, INFINITY,
				   -INFINITY, NAN, 3);
		tensor *q = ok(tensor_quantize_per_tensor(x, 0.5, 10, TENSOR_U8));
		double scale = 0;
		int64_t zero = 0;

		assert_values(tensor_int_repr(q), 0, 10, 12, 10, 255, 0, 255, 0, 255, 16);
		assert_values(tensor_dequantize(q), 0, 0, 1, 0, 122.5, -5, 122.5, -5, 122.5, 3);
		assert_done(tensor_q_scale(q, &scale));
		assert_done(tensor_q_zero_point(q, &zero));
		assert_true(scale == 0.5 && zero == 10);
		q = ok(tensor_quantize_per_tensor(x, 0.5, -100, TENSOR_I8));
		assert_values(tensor_int_repr(q), 0, -100, -98, -100, 127, -128, 127, -128, 127,
			      -94);
		q = ok(tensor_quantize_per_tensor(x, 0.5, 5, TENSOR_I32));
		assert_values(tensor_int_repr(q), 0, 5, 7, 5, INT32_MAX, INT32_MIN, INT32_MAX,
			      INT32_MIN, INT32_MAX, 11);
	}
}

static void each_channel_has_a_scale(void **state)
{
	tensor_scope {
		tensor *x = FLOATS(TENSOR_INTS(2, 3), 1, 2, 3, 4, 5, 6),
		       *z = ok(tensor_to(iota(0, TENSOR_INTS(3)), I64));
		tensor *q = ok(tensor_quantize_per_channel(x, FLOATS(TENSOR_INTS(3), 1, 0.5, 2), z,
							   1, TENSOR_I8));
		int64_t axis = 9;

		assert_values(tensor_int_repr(q), 0, 1, 5, 4, 4, 11, 5);
		assert_values(tensor_dequantize(q), 0, 1, 2, 4, 4, 5, 6);
		assert_values(tensor_q_per_channel_scales(q), 0, 1, 0.5, 2);
		assert_values(tensor_q_per_channel_zero_points(q), 0, 0, 1, 2);
		assert_done(tensor_q_per_channel_axis(q, &axis));
		assert_int_equal(axis, 1);
		assert_fails(tensor_t(q) != NULL, EOPNOTSUPP, "no views");
		assert_fails(tensor_q_scale(q, &(double){ 0 }), EINVAL, "per tensor");
	}
}

static void views_keep_the_scale(void **state)
{
	tensor_scope {
		tensor *q = ok(
			tensor_quantize_per_tensor(iota(0, TENSOR_INTS(2, 3)), 0.5, 1, TENSOR_U8));

		assert_values(tensor_dequantize(tensor_select(tensor_t(q), 0, 1)), 0, 1, 4);
		assert_values(tensor_dequantize(tensor_reshape(tensor_t(q), TENSOR_INTS(6))), 0, 0,
			      3, 1, 4, 2, 5);
		assert_values(tensor_dequantize(tensor_clone(q)), 0, 0, 1, 2, 3, 4, 5);
		assert_values(tensor_dequantize(tensor_relu(tensor_quantize_per_tensor(
				      iota(-2, TENSOR_INTS(4)), 0.5, 7, TENSOR_U8))),
			      0, 0, 0, 0, 1);
	}
}

static void linear_is_exact(void **state)
{
	const int64_t shapes[][3] = { { 1, 1, 1 },	{ 3, 65, 5 },	 { 7, 16, 9 },
				      { 70, 130, 67 },	{ 4, 0, 3 },	 { 64, 64, 64 },
				      { 33, 256, 130 }, { 9, 1030, 17 }, { 48, 192, 3 },
				      { 16, 0, 5 },	{ 40, 4096, 70 } };

	for (size_t c = 0; c < ARRAY_SIZE(shapes); c++)
		tensor_scope {
			int64_t m = shapes[c][0], k = shapes[c][1], n = shapes[c][2];
			tensor *x = bytes(TENSOR_INTS(m, k), 256, 0, TENSOR_U8),
			       *w = bytes(TENSOR_INTS(n, k), 256, 0, TENSOR_I8);
			tensor *qx = ok(tensor__make_per_tensor_quantized_tensor(x, 0.02, 131));
			tensor *qw = ok(tensor__make_per_tensor_quantized_tensor(w, 0.03, -4));
			tensor *bias = iota(-2, TENSOR_INTS(n));
			const uint8_t *px = tensor_data(x), *got;
			const int8_t *pw = tensor_data(w);

			for (int relu = 0; relu < 2; relu++) {
				tensor *y = ok(
					tensor_quantized_linear_opt(qx, qw, bias, 0.5, 60, relu));

				got = tensor_data(ok(tensor_int_repr(y)));
				for (int64_t i = 0; i < m; i++)
					for (int64_t j = 0; j < n; j++) {
						int64_t sum = 0;

						for (int64_t p = 0; p < k; p++)
							sum += (px[i * k + p] - 131) *
							       (pw[j * k + p] + 4);
						assert_int_equal(
							got[i * n + j],
							requantize_by_hand(sum, 0.02f * 0.03f,
									   (float)(j - 2), 0.5f, 60,
									   relu ? 60 : 0));
					}
			}
		}
}

static void convolution_is_exact(void **state)
{
	tensor_scope {
		const int64_t c = 4, h = 7, w = 6, o = 6, oh = 4, ow = 3;
		tensor *x = bytes(TENSOR_INTS(2, c, h, w), 256, 0, TENSOR_U8);
		tensor *k = bytes(TENSOR_INTS(o, c / 2, 3, 3), 200, 28, TENSOR_I8);
		tensor *qx = ok(tensor__make_per_tensor_quantized_tensor(x, 0.02, 9));
		tensor *qk = ok(tensor__make_per_tensor_quantized_tensor(k, 0.03, 0));
		tensor *y =
			ok(tensor_quantized_conv2d(qx, qk, tensor_none, TENSOR_INTS(2),
						   TENSOR_INTS(1), TENSOR_INTS(1), 2, 0.7, 100));
		const uint8_t *px = tensor_data(x), *got = tensor_data(ok(tensor_int_repr(y)));
		const int8_t *pk = tensor_data(k);

		assert_shape(y, 2, o, oh, ow);
		for (int64_t i = 0; i < 2 * o * oh * ow; i++) {
			int64_t X = i % ow, Y = i / ow % oh, ch = i / (ow * oh) % o,
				b = i / (ow * oh * o);
			int64_t sum = 0;

			for (int64_t p = 0; p < 18; p++) {
				int64_t yy = Y * 2 - 1 + p / 3 % 3, xx = X * 2 - 1 + p % 3;
				int64_t cc = ch / (o / 2) * 2 + p / 9;

				if (yy >= 0 && yy < h && xx >= 0 && xx < w)
					sum += (px[((b * c + cc) * h + yy) * w + xx] - 9) *
					       pk[ch * 18 + p];
			}
			assert_int_equal(got[i],
					 requantize_by_hand(sum, 0.02f * 0.03f, 0, 0.7f, 100, 0));
		}
	}
}

static void check_layer(const struct layer *l, int zero)
{
	int64_t oh = (l->height + 2 * l->padding - l->dilation * (l->kh - 1) - 1) / l->stride + 1;
	int64_t ow = (l->width + 2 * l->padding - l->dilation * (l->kw - 1) - 1) / l->stride + 1,
		i = 0;
	tensor *x =
		bytes(TENSOR_INTS(l->images, l->channels, l->height, l->width), 256, 0, TENSOR_U8);
	tensor *w = bytes(TENSOR_INTS(l->out, l->channels / l->groups, l->kh, l->kw), 256, 0,
			  TENSOR_I8);
	tensor *qx = ok(tensor__make_per_tensor_quantized_tensor(x, 0.02, 9));
	tensor *qw = ok(tensor__make_per_tensor_quantized_tensor(w, 0.03, zero));

	/* The second product uses the weights that the first one packed. */
	for (int again = 0; again < 2; again++) {
		tensor *y = ok(tensor_quantized_conv2d(
			qx, qw, tensor_none, TENSOR_INTS(l->stride), TENSOR_INTS(l->padding),
			TENSOR_INTS(l->dilation), l->groups, 3, 100));
		const uint8_t *got = tensor_data(ok(tensor_int_repr(y)));

		assert_shape(y, l->images, l->out, oh, ow);
		i = 0;
		for (int64_t image = 0; image < l->images; image++)
			for (int64_t o = 0; o < l->out; o++)
				for (int64_t at = 0; at < oh * ow; at++, i++)
					assert_int_equal(
						got[i],
						requantize_by_hand(sum_by_hand(l, tensor_data(x),
									       tensor_data(w), zero,
									       image, o, at / ow,
									       at % ow),
								   0.02f * 0.03f, 0, 3, 100, 0));
	}
}

/* Depthwise layers, more taps than a table of addresses has, groups, channels that are no whole units, blocks of all sizes. */
static void layers_of_all_kinds_are_exact(void **state)
{
	static const struct layer layers[] = {
		{ 1, 3, 32, 1, 11, 13, 3, 3, 2, 1, 1 },	   { 2, 16, 16, 16, 9, 9, 3, 3, 1, 1, 1 },
		{ 1, 70, 70, 70, 7, 8, 5, 5, 1, 2, 1 },	   { 1, 8, 8, 8, 9, 9, 7, 7, 2, 3, 1 },
		{ 1, 200, 200, 200, 6, 5, 3, 3, 1, 2, 2 }, { 2, 3, 17, 1, 12, 9, 7, 7, 2, 3, 1 },
		{ 1, 12, 100, 2, 10, 10, 1, 1, 1, 0, 1 },  { 1, 6, 6, 6, 5, 5, 3, 3, 1, 1, 1 },
		{ 1, 24, 8, 8, 5, 5, 2, 3, 1, 1, 1 },	   { 3, 64, 130, 1, 3, 3, 3, 3, 1, 1, 1 },
		{ 1, 16, 32, 16, 4, 4, 3, 3, 1, 1, 1 },	   { 1, 5, 1, 1, 20, 20, 6, 5, 3, 4, 2 },
		{ 1, 40, 33, 1, 9, 8, 1, 1, 2, 0, 1 },	   { 1, 1, 1, 1, 3, 3, 3, 3, 1, 2, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		tensor_scope {
			check_layer(&layers[i], 0);
			check_layer(&layers[i], -128);
			check_layer(&layers[i], 127);
		}
}

/* All sums, with the zero points at the ends, and sums of products near the ends of i32. */
static void sums_of_the_ends_are_exact(void **state)
{
	for (int x_zero = 0; x_zero < 256; x_zero += 255)
		for (int w_zero = -128; w_zero < 128; w_zero += 255)
			tensor_scope {
				const int64_t k = 33000;
				tensor *x = ok(tensor_full(TENSOR_INTS(2, k),
							   TENSOR_SCALAR(255 - x_zero),
							   TENSOR_OPTIONS(.dtype = TENSOR_U8)));
				tensor *w = ok(tensor_full(TENSOR_INTS(3, k),
							   TENSOR_SCALAR(-1 - w_zero),
							   TENSOR_OPTIONS(.dtype = TENSOR_I8)));
				tensor *qx = ok(
					tensor__make_per_tensor_quantized_tensor(x, 0.02, x_zero));
				tensor *qw = ok(
					tensor__make_per_tensor_quantized_tensor(w, 0.03, w_zero));
				int64_t sum = k * (255 - 2 * x_zero) * (-1 - 2 * w_zero);
				tensor *y = ok(
					tensor_quantized_linear(qx, qw, tensor_none, 20000, 128));

				assert_int_equal(
					((const uint8_t *)tensor_data(ok(tensor_int_repr(y))))[5],
					requantize_by_hand(sum, 0.02f * 0.03f, 0, 20000, 128, 0));
			}
}

/* Zeros of these sizes, quantized. */
static tensor *zeros(tensor_ints sizes, enum tensor_dtype dtype)
{
	return ok(tensor_quantize_per_tensor(tensor_zeros(sizes, (tensor_options){ 0 }), 1, 0,
					     dtype));
}

static tensor *convolve(tensor *x, tensor *w, tensor_ints padding, tensor_ints dilation,
			int64_t groups)
{
	return tensor_quantized_conv2d(x, w, tensor_none, TENSOR_INTS(1), padding, dilation, groups,
				       1, 7);
}

static void convolution_without_channels_is_the_zero_point(void **state)
{
	tensor_scope {
		tensor *y = ok(convolve(zeros(TENSOR_INTS(2, 0, 3, 3), TENSOR_U8),
					zeros(TENSOR_INTS(1, 0, 2, 2), TENSOR_I8), TENSOR_INTS(0),
					TENSOR_INTS(1), 1));

		assert_shape(y, 2, 1, 2, 2);
		assert_values(tensor_int_repr(y), 0, 7, 7, 7, 7, 7, 7, 7, 7);
		/* 2^40 taps, in no memory. */
		y = ok(convolve(zeros(TENSOR_INTS(1, 0, 1, 1), TENSOR_U8),
				zeros(TENSOR_INTS(1, 0, 1048577, 1048577), TENSOR_I8),
				TENSOR_INTS(524288), TENSOR_INTS(1), 1));
		assert_values(tensor_int_repr(y), 0, 7);
	}
}

static void convolution_refuses_sizes_that_overflow(void **state)
{
	tensor_scope {
		const tensor_ints one = TENSOR_INTS(1), none = TENSOR_INTS(0);
		tensor *x = zeros(TENSOR_INTS(1, 2, 4, 4), TENSOR_U8);
		tensor *w = zeros(TENSOR_INTS(2, 2, 3, 3), TENSOR_I8);

		assert_fails(convolve(x, w, TENSOR_INTS(INT64_MAX), one, 1) != NULL, EINVAL,
			     "padding must be below 2^31");
		assert_fails(convolve(x, w, none, TENSOR_INTS(INT64_MAX), 1) != NULL, EINVAL,
			     "dilation must be below 2^31");
		/* 3 times the groups is 2^64 + 2. */
		assert_fails(convolve(x, zeros(TENSOR_INTS(0, 3, 2, 2), TENSOR_I8), none, one,
				      6148914691236517206) != NULL,
			     EINVAL, "groups");
		assert_shape(ok(convolve(zeros(TENSOR_INTS(2, 0, 4, 4), TENSOR_U8),
					 zeros(TENSOR_INTS(0, 0, 2, 2), TENSOR_I8), none, one,
					 INT64_MAX)),
			     2, 0, 3, 3);
	}
}

static void arithmetic_requantizes(void **state)
{
	tensor_scope {
		tensor *a =
			ok(tensor_quantize_per_tensor(iota(0, TENSOR_INTS(4)), 0.5, 3, TENSOR_U8));
		tensor *b =
			ok(tensor_quantize_per_tensor(iota(2, TENSOR_INTS(4)), 0.25, 0, TENSOR_U8));

		assert_values(tensor_dequantize(tensor_quantized_add(a, b, 0.5, 1)), 0, 2, 4, 6, 8);
		assert_values(tensor_dequantize(tensor_quantized_mul(a, b, 1, 1)), 0, 0, 3, 8, 15);
	}
}

/* Tensors of one shape are computed in one pass, others by separate operators: the integers are the same. */
static void one_pass_finds_the_same_integers(void **state)
{
	tensor *(*const ops[])(tensor *, tensor *, double, int64_t) = { tensor_quantized_add,
									tensor_quantized_mul };

	for (int i = 0; i < 4; i++)
		tensor_scope {
			enum tensor_dtype dtype = i % 2 ? TENSOR_I8 : TENSOR_U8;
			tensor *a = ok(tensor__make_per_tensor_quantized_tensor(
				bytes(TENSOR_INTS(256, 300), 256, 0, dtype), 0.013,
				dtype == TENSOR_U8 ? 255 : -128));
			tensor *b = ok(tensor__make_per_tensor_quantized_tensor(
				bytes(TENSOR_INTS(1, 256, 300), 251, 0, dtype), 0.37, 7));
			tensor *flat = ok(tensor_view(b, TENSOR_INTS(256, 300)));
			tensor *one = ok(tensor_int_repr(ok(ops[i / 2](a, flat, 0.11, 3))));
			tensor *several = ok(tensor_int_repr(ok(ops[i / 2](a, b, 0.11, 3))));

			assert_memory_equal(tensor_data(one), tensor_data(several), 256 * 300);
		}
}

static void fake_quantize_gradient_of_channels_is_zero_where_clamped(void **state)
{
	tensor_scope {
		tensor *x = FLOATS(TENSOR_INTS(6), -3, 0.25f, 9, -3, 0.25f, 9);
		tensor *scale = FLOATS(TENSOR_INTS(2), 0.5f, 4),
		       *zero = FLOATS(TENSOR_INTS(2), 0, 1);
		tensor *y;

		x = ok(tensor_clone(tensor_view(x, TENSOR_INTS(2, 3))));
		assert_done(tensor_set_requires_grad(x, true));
		assert_done(tensor_set_requires_grad(scale, true));
		assert_done(tensor_set_requires_grad(zero, true));
		y = ok(tensor_fake_quantize_per_channel_affine(x, scale, zero, 0, 0, 3));
		assert_done(tensor_backward(ok(tensor_sum(tensor_mul_scalar(y, S(3))))));
		assert_values(tensor_grad(x), 0, 0, 3, 0, 3, 3, 3);
		assert_true(!tensor_grad(scale) && !tensor_grad(zero));
	}
}

static void fake_quantize_gradient_is_zero_where_clamped(void **state)
{
	tensor_scope {
		tensor *x = FLOATS(TENSOR_INTS(5), -3, -0.26f, 0.25f, 0.75f, 9);
		tensor *two = FLOATS(TENSOR_INTS(2), 0.5f, 1),
		       *zeros = FLOATS(TENSOR_INTS(2), 0, 1);

		tensor *y;

		assert_done(tensor_set_requires_grad(x, true));
		y = ok(tensor_fake_quantize_per_tensor_affine(x, 0.5, 2, 0, 7));

		assert_values(y, 0, -1, -0.5, 0, 1, 2.5);
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 0, 1, 1, 1, 0);
		assert_values(tensor_fake_quantize_per_channel_affine(iota(0, TENSOR_INTS(2, 3)),
								      two, zeros, 0, 0, 3),
			      0, 0, 1, 1.5, 2, 2, 2);
		assert_fails(tensor_fake_quantize_per_tensor_affine(x, 1, 0, 5, 3) != NULL, EINVAL,
			     "greater than quant_max");
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3)),
		       *q = ok(tensor_quantize_per_tensor(x, 1, 0, TENSOR_U8));
		tensor *w =
			ok(tensor_quantize_per_tensor(iota(0, TENSOR_INTS(4, 2)), 1, 0, TENSOR_I8));
		uint8_t room[6];

		assert_fails(tensor_quantize_per_tensor(x, 0, 0, TENSOR_U8) != NULL, EINVAL,
			     "scale");
		assert_fails(tensor_quantize_per_tensor(x, NAN, 0, TENSOR_U8) != NULL, EINVAL,
			     "scale");
		assert_fails(tensor_quantize_per_tensor(x, 1, 256, TENSOR_U8) != NULL, EINVAL,
			     "zero_point");
		assert_fails(tensor_quantize_per_tensor(x, 1, 0, TENSOR_F32) != NULL, EINVAL,
			     "u8, i8 or i32");
		assert_fails(tensor_quantize_per_tensor(tensor_to(x, F64), 1, 0, TENSOR_U8) != NULL,
			     EINVAL, "f32");
		assert_fails(tensor_quantize_per_channel(x, FLOATS(TENSOR_INTS(2), 1, 1),
							 FLOATS(TENSOR_INTS(3), 0, 0, 0), 0,
							 TENSOR_U8) != NULL,
			     EINVAL, "[2] for axis 0");
		assert_fails(tensor_quantized_linear(q, w, tensor_none, 1, 0) != NULL, EINVAL,
			     "[n, k]");
		assert_fails(tensor_quantized_linear(q, x, tensor_none, 1, 0) != NULL, EINVAL,
			     "weight");
		assert_fails(tensor_quantized_linear(w, w, tensor_none, 1, 0) != NULL, EINVAL,
			     "self must be quantized to u8, got i8");
		assert_fails(tensor_exp(q) != NULL, EOPNOTSUPP, "exp: no kernel for QuantizedCPU");
		assert_fails(tensor_add(x, q) != NULL, EOPNOTSUPP, "CPU+QuantizedCPU");
		assert_fails(tensor_copy_(x, q) != NULL, EOPNOTSUPP, "QuantizedCPU");
		assert_fails(tensor_copy_to(q, room, 6), EOPNOTSUPP, "QuantizedCPU");
		assert_fails(tensor_dequantize(x) != NULL, EOPNOTSUPP, "no kernel for CPU");
		assert_fails(tensor_set_requires_grad(q, true), EINVAL, "");
	}
}

static void printing_shows_values_and_scale(void **state)
{
	tensor_scope {
		char text[200];

		tensor_format(
			ok(tensor_quantize_per_tensor(iota(0, TENSOR_INTS(3)), 0.5, 1, TENSOR_U8)),
			text, sizeof(text));
		assert_string_equal(text, "tensor([0., 1., 2.], size=[3], quantization_scheme="
					  "per_tensor_affine, scale=0.5, zero_point=1, dtype=u8)");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ties_round_to_even_and_large_values_saturate),
		cmocka_unit_test(each_channel_has_a_scale),
		cmocka_unit_test(views_keep_the_scale),
		cmocka_unit_test(linear_is_exact),
		cmocka_unit_test(convolution_is_exact),
		cmocka_unit_test(layers_of_all_kinds_are_exact),
		cmocka_unit_test(sums_of_the_ends_are_exact),
		cmocka_unit_test(convolution_without_channels_is_the_zero_point),
		cmocka_unit_test(convolution_refuses_sizes_that_overflow),
		cmocka_unit_test(arithmetic_requantizes),
		cmocka_unit_test(one_pass_finds_the_same_integers),
		cmocka_unit_test(fake_quantize_gradient_of_channels_is_zero_where_clamped),
		cmocka_unit_test(fake_quantize_gradient_is_zero_where_clamped),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(printing_shows_values_and_scale),
	};

	setenv("TENSOR_CPU_TILES", TILES, 0);
	return cmocka_run_group_tests_name(NAME, tests, NULL, NULL);
}
