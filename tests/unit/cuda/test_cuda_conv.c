// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: convolutions and their gradients, im2col and col2im, against the CPU's results. */
#include "cuda_results.h"

static tensor *maybe_cuda(tensor *t)
{
	return t == tensor_none ? t : on_cuda(t);
}

/* ---- convolutions ---- */

struct shape {
	int n;				/* spatial dimensions */
	int64_t batch, in, out, groups; /* in, out: channels of a group */
	int64_t size[3], kernel[3], stride[3], padding[3], dilation[3];
	bool transposed;
};

static const struct shape shapes[] = {
	{ 1, 3, 2, 5, 1, { 11 }, { 3 }, { 1 }, { 1 }, { 1 }, false },
	{ 1, 2, 6, 4, 2, { 17 }, { 4 }, { 3 }, { 2 }, { 2 }, false },
	{ 2, 2, 3, 4, 1, { 7, 6 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false },
	{ 2, 3, 7, 5, 1, { 9, 8 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, false },
	{ 2, 3, 7, 5, 3, { 5, 4 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, false },
	{ 2, 2, 5, 6, 4, { 9, 7 }, { 3, 2 }, { 2, 1 }, { 2, 0 }, { 1, 2 }, false },
	{ 2, 1, 1, 1, 6, { 12, 13 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false },
	{ 2, 5, 1, 2, 4, { 9, 10 }, { 5, 5 }, { 2, 2 }, { 2, 2 }, { 1, 1 }, false },
	{ 2, 2, 2, 3, 2, { 20, 21 }, { 4, 4 }, { 3, 2 }, { 5, 1 }, { 2, 1 }, false },
	{ 3, 2, 3, 2, 1, { 5, 4, 6 }, { 2, 3, 3 }, { 1, 2, 1 }, { 1, 0, 1 }, { 1, 1, 2 }, false },
	{ 3, 2, 1, 1, 3, { 5, 4, 6 }, { 2, 3, 3 }, { 1, 2, 1 }, { 1, 0, 1 }, { 1, 1, 1 }, false },
	{ 2, 2, 4, 3, 1, { 5, 6 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, true },
	{ 2, 2, 1, 1, 5, { 5, 6 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, true },
	{ 2, 2, 5, 6, 1, { 5, 6 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, true },
	{ 1, 2, 5, 6, 2, { 8 }, { 3 }, { 1 }, { 0 }, { 3 }, true },
};

static tensor *input_of(const struct shape *s, enum tensor_dtype d)
{
	int64_t sizes[5] = { s->batch, s->in * s->groups, s->size[0], s->size[1], s->size[2] };

	return pseudo_random((tensor_ints){ sizes, 2 + s->n }, d);
}

static tensor *weight_of(const struct shape *s, enum tensor_dtype d)
{
	int64_t sizes[5] = { s->transposed ? s->in * s->groups : s->out * s->groups,
			     s->transposed ? s->out : s->in, s->kernel[0], s->kernel[1],
			     s->kernel[2] };

	return pseudo_random((tensor_ints){ sizes, 2 + s->n }, d);
}

static tensor *convolve(const struct shape *s, tensor *x, tensor *w, tensor *b)
{
	return ok(tensor_convolution(
		x, w, b, (tensor_ints){ s->stride, s->n }, (tensor_ints){ s->padding, s->n },
		(tensor_ints){ s->dilation, s->n }, s->transposed, TENSOR_INTS(0), s->groups));
}

static void differentiate(const struct shape *s, tensor *grad, tensor *x, tensor *w, tensor **g)
{
	const int64_t bias = s->out * s->groups;

	assert_done(tensor_convolution_backward(
		grad, x, w, TENSOR_INTS(bias), (tensor_ints){ s->stride, s->n },
		(tensor_ints){ s->padding, s->n }, (tensor_ints){ s->dilation, s->n },
		s->transposed, TENSOR_INTS(0), s->groups, 7, &g[0], &g[1], &g[2]));
}

/* Sums of up to some hundred products of numbers below 4, rounded to d. */
static double conv_tolerance(enum tensor_dtype d)
{
	return d == TENSOR_F64 ? 1e-11 : d == TENSOR_F16 ? 2e-2 : d == TENSOR_BF16 ? 1e-1 : 2e-4;
}

static void convolution_equals_the_cpu(const struct shape *s, enum tensor_dtype d, bool biased)
{
	tensor *x = input_of(s, d), *w = weight_of(s, d), *y, *grad, *g[3], *v[3];
	tensor *b = biased ? pseudo_random(TENSOR_SHAPE(s->out * s->groups), d) : tensor_none;
	double tol = conv_tolerance(d);

	y = convolve(s, x, w, b);
	assert_near(convolve(s, on_cuda(x), on_cuda(w), maybe_cuda(b)), y, tol);
	grad = pseudo_random((tensor_ints){ tensor_sizes(y), tensor_dim(y) }, d);
	differentiate(s, grad, x, w, g);
	differentiate(s, on_cuda(grad), on_cuda(x), on_cuda(w), v);
	for (int i = 0; i < 3; i++)
		assert_near(v[i], g[i], 10 * tol);
}

static void convolutions_of_floats(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16,
						    TENSOR_BF16 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		for (int d = 0; d < 4; d++)
			tensor_scope
				convolution_equals_the_cpu(&shapes[i], dtypes[d], (d + i) & 1);
}

/* The same sums modulo the range of the dtype. */
static void convolutions_of_integers(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_I16, TENSOR_I32, TENSOR_I64 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		tensor_scope {
			enum tensor_dtype d = dtypes[i % 4];
			tensor *x = input_of(&shapes[i], d), *w = weight_of(&shapes[i], d);

			assert_near(convolve(&shapes[i], on_cuda(x), on_cuda(w), tensor_none),
				    convolve(&shapes[i], x, w, tensor_none), 0);
		}
}

/* Parts of that dtype. */
static tensor *complex_like(tensor *t, enum tensor_dtype d)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	const int n = tensor_dim(t);

	memcpy(sizes, tensor_sizes(t), n * sizeof(*sizes));
	sizes[n] = 2;
	return ok(tensor_view_as_complex(pseudo_random((tensor_ints){ sizes, n + 1 }, d)));
}

/* The real parts and the imaginary ones. */
static tensor *parts(tensor *t)
{
	return ok(tensor_contiguous(ok(tensor_view_as_real(t))));
}

static void complex_convolutions(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		tensor_scope {
			enum tensor_dtype real = i & 1 ? TENSOR_F32 : TENSOR_F64;
			const struct shape *s = &shapes[i];
			tensor *x = complex_like(input_of(s, real), real);
			tensor *w = complex_like(weight_of(s, real), real);
			tensor *y = convolve(s, x, w, tensor_none);
			tensor *got = convolve(s, on_cuda(x), on_cuda(w), tensor_none);
			tensor *g[3], *v[3];

			assert_near(parts(got), parts(y), conv_tolerance(real));
			differentiate(s, y, x, w, g);
			differentiate(s, on_cuda(y), on_cuda(x), on_cuda(w), v);
			for (int k = 0; k < 3; k++)
				assert_near(parts(v[k]), parts(g[k]), 100 * conv_tolerance(real));
		}
}

static void convolutions_of_any_strides(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		const struct shape s = shapes[2];
		tensor *x = pseudo_random(TENSOR_SHAPE(7, 6, 2, 3), TENSOR_F32), *g = on_cuda(x);
		tensor *w = pseudo_random(TENSOR_SHAPE(3, 3, 4, 3), TENSOR_F32), *gw = on_cuda(w);
		tensor *y;

		x = ok(tensor_permute(x, TENSOR_INTS(2, 3, 0, 1)));
		g = ok(tensor_permute(g, TENSOR_INTS(2, 3, 0, 1)));
		w = ok(tensor_permute(w, TENSOR_INTS(2, 3, 0, 1)));
		gw = ok(tensor_permute(gw, TENSOR_INTS(2, 3, 0, 1)));
		y = convolve(&s, x, w, tensor_none);
		assert_near(convolve(&s, g, gw, tensor_none), y, 1e-4);
	}
}

/* 0 * NaN: the gradient of a tap is NaN where the tap read the padding, too. Few channels of a group are loops, without cuDNN. */
static void nan_gradients_reach_taps_in_the_padding(void **state)
{
	static const struct shape loops = { 2,	      2,	2,	  3,	    2,	  { 5, 6 },
					    { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false };

	NEED_DEVICE();
	for (int i = 0; i < 6; i++)
		tensor_scope {
			const struct shape *s = i & 1 ? &loops : &shapes[2];
			const enum tensor_dtype d = i < 2 ? TENSOR_F32 :
						    i < 4 ? TENSOR_F64 :
							    TENSOR_BF16;
			tensor *x = input_of(s, d), *w = weight_of(s, d), *g[3], *v[3];
			tensor *grad = ok(tensor_zeros_like(convolve(s, x, w, tensor_none),
							    (tensor_options){ 0 }));

			ok(tensor_fill_(tensor_narrow(tensor_flatten(grad, 0, -1), 0, 0, 1),
					TENSOR_SCALAR(i % 4 < 2 ? NAN : INFINITY)));
			differentiate(s, grad, x, w, g);
			differentiate(s, on_cuda(grad), on_cuda(x), on_cuda(w), v);
			assert_near(v[1], g[1], 0);
		}
}

static void convolutions_without_elements(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		struct shape s = shapes[2];
		tensor *w = weight_of(&s, TENSOR_F32), *x, *grad, *g[3], *v[3];

		s.batch = 0;
		x = input_of(&s, TENSOR_F32);
		grad = convolve(&s, x, w, tensor_none);
		assert_near(convolve(&s, on_cuda(x), on_cuda(w), tensor_none), grad, 0);
		differentiate(&s, grad, x, w, g);
		differentiate(&s, on_cuda(grad), on_cuda(x), on_cuda(w), v);
		for (int i = 0; i < 3; i++)
			assert_near(v[i], g[i], 0);
	}
}

/* Sums over more positions than a block has: the gradient of a depthwise weight is split. */
static void depthwise_gradients_of_many_positions(void **state)
{
	static const struct shape s = { 2,	  7,	    1,	      1,	2,    { 61, 67 },
					{ 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false };

	NEED_DEVICE();
	tensor_scope {
		tensor *x = input_of(&s, TENSOR_F64), *w = weight_of(&s, TENSOR_F64), *g[3], *v[3];
		tensor *grad = convolve(&s, x, w, tensor_none);

		differentiate(&s, grad, x, w, g);
		differentiate(&s, on_cuda(grad), on_cuda(x), on_cuda(w), v);
		for (int i = 0; i < 3; i++)
			assert_near(v[i], g[i], 1e-11);
	}
}

/* ---- columns ---- */

static void columns_equal_the_cpu_in(enum tensor_dtype d, tensor_ints kernel, tensor_ints dilation,
				     tensor_ints padding, tensor_ints stride)
{
	tensor *x = pseudo_random(TENSOR_SHAPE(2, 3, 9, 8), d);
	tensor *y = ok(tensor_im2col(x, kernel, dilation, padding, stride));

	assert_near(tensor_im2col(on_cuda(x), kernel, dilation, padding, stride), y, 0);
	if (d >= TENSOR_F16)
		assert_near(tensor_col2im(on_cuda(y), TENSOR_INTS(9, 8), kernel, dilation, padding,
					  stride),
			    tensor_col2im(y, TENSOR_INTS(9, 8), kernel, dilation, padding, stride),
			    0);
}

static void columns_equal_the_cpu(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16,
						    TENSOR_F16 };

	NEED_DEVICE();
	for (int d = 0; d < 4; d++)
		tensor_scope {
			columns_equal_the_cpu_in(dtypes[d], TENSOR_INTS(3, 3), TENSOR_INTS(1, 1),
						 TENSOR_INTS(1, 1), TENSOR_INTS(1, 1));
			columns_equal_the_cpu_in(dtypes[d], TENSOR_INTS(2, 3), TENSOR_INTS(2, 1),
						 TENSOR_INTS(0, 2), TENSOR_INTS(3, 2));
			columns_equal_the_cpu_in(dtypes[d], TENSOR_INTS(4, 1), TENSOR_INTS(1, 1),
						 TENSOR_INTS(3, 0), TENSOR_INTS(1, 3));
		}
}

static void images_may_not_need_wide_offsets(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *x = on_cuda(pseudo_random(TENSOR_SHAPE(1, 1, 4), TENSOR_F32));
		tensor *w = on_cuda(pseudo_random(TENSOR_SHAPE(1, 1, 1), TENSOR_F32));

		assert_fails(tensor_convolution(x, w, tensor_none, TENSOR_INTS(1 << 30),
						TENSOR_INTS(0), TENSOR_INTS(1), false,
						TENSOR_INTS(0), 1),
			     EOPNOTSUPP, "below 2^31");
		assert_done(tensor_cuda_synchronize(0));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(convolutions_of_floats),
		cmocka_unit_test(convolutions_of_integers),
		cmocka_unit_test(complex_convolutions),
		cmocka_unit_test(convolutions_of_any_strides),
		cmocka_unit_test(nan_gradients_reach_taps_in_the_padding),
		cmocka_unit_test(convolutions_without_elements),
		cmocka_unit_test(depthwise_gradients_of_many_positions),
		cmocka_unit_test(columns_equal_the_cpu),
		cmocka_unit_test(images_may_not_need_wide_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
