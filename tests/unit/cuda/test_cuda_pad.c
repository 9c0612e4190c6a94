// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: padding by reflection and replication, interpolation, and their gradients, against the CPU. */
#include "cuda_results.h"

static const enum tensor_dtype floats[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };

/* ---- padding: in front and behind the last dimension, then those before it ---- */

static const int64_t paddings[][6] = {
	{ 1, 2, 0, 3, 2, 1 }, { 0, 0, 0, 0, 0, 0 }, { 3, 3, 2, 2, 1, 1 }, { -1, 2, 1, -2, -1, 0 }
};

static tensor *padded(tensor *t, int n, bool reflect, tensor_ints p)
{
	return n == 1 ? (reflect ? tensor_reflection_pad1d : tensor_replication_pad1d)(t, p) :
	       n == 2 ? (reflect ? tensor_reflection_pad2d : tensor_replication_pad2d)(t, p) :
			(reflect ? tensor_reflection_pad3d : tensor_replication_pad3d)(t, p);
}

static tensor *unpadded(tensor *grad, tensor *t, int n, bool reflect, tensor_ints p)
{
	return n == 1 ? (reflect ? tensor_reflection_pad1d_backward :
				   tensor_replication_pad1d_backward)(grad, t, p) :
	       n == 2 ? (reflect ? tensor_reflection_pad2d_backward :
				   tensor_replication_pad2d_backward)(grad, t, p) :
			(reflect ? tensor_reflection_pad3d_backward :
				   tensor_replication_pad3d_backward)(grad, t, p);
}

static void pad_equals_the_cpu_in(enum tensor_dtype d, int n, bool reflect, const int64_t *padding)
{
	const int64_t sizes[] = { 2, 3, 4, 5, 6 };
	const tensor_ints p = { padding, 2 * n };
	tensor *a = pseudo_random((tensor_ints){ sizes + 3 - n, n + 2 }, d), *g = on_cuda(a), *y;
	tensor *grad;

	y = ok(padded(a, n, reflect, p));
	assert_near(padded(g, n, reflect, p), y, 0);
	if (d < TENSOR_F16)
		return;
	grad = pseudo_random((tensor_ints){ tensor_sizes(y), tensor_dim(y) }, d);
	assert_near(unpadded(on_cuda(grad), g, n, reflect, p), unpadded(grad, a, n, reflect, p),
		    tolerance(d));
}

static void pad_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(paddings); i++)
		for (int n = 1; n <= 3; n++)
			for (int reflect = 0; reflect < 2; reflect++)
				tensor_scope {
					for (size_t d = 0; d < ARRAY_SIZE(floats); d++)
						pad_equals_the_cpu_in(floats[d], n, reflect,
								      paddings[i]);
					pad_equals_the_cpu_in(TENSOR_U8, n, reflect, paddings[i]);
					pad_equals_the_cpu_in(TENSOR_I64, n, reflect, paddings[i]);
				}
}

static void pad_of_any_strides(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(6, 5, 3, 2), TENSOR_F32), *g = on_cuda(a);

		a = ok(tensor_permute(a, TENSOR_INTS(3, 2, 0, 1)));
		g = ok(tensor_permute(g, TENSOR_INTS(3, 2, 0, 1)));
		assert_near(tensor_reflection_pad2d(g, TENSOR_INTS(2, 1, 3, 0)),
			    tensor_reflection_pad2d(a, TENSOR_INTS(2, 1, 3, 0)), 0);
	}
}

/* ---- interpolation ---- */

static const int64_t targets[][2] = { { 8, 12 }, { 5, 7 }, { 13, 4 }, { 1, 1 }, { 4, 6 } };

static void upsample_equals_the_cpu_in(enum tensor_dtype d, int64_t h, int64_t w)
{
	const double tol = 20 * tolerance(d);
	tensor *a = pseudo_random(TENSOR_SHAPE(2, 3, 4, 6), d), *g = on_cuda(a);
	tensor *grad = pseudo_random(TENSOR_SHAPE(2, 3, h, w), d), *gg = on_cuda(grad);
	const tensor_ints to = TENSOR_INTS(h, w), from = TENSOR_INTS(2, 3, 4, 6);

	assert_near(tensor_upsample_nearest2d(g, to, 0, 0), tensor_upsample_nearest2d(a, to, 0, 0),
		    0);
	assert_near(tensor_upsample_nearest2d_backward(gg, to, from, 0, 0),
		    tensor_upsample_nearest2d_backward(grad, to, from, 0, 0), tol);
	for (int align = 0; align < 2; align++) {
		assert_near(tensor_upsample_bilinear2d(g, to, align, 0, 0),
			    tensor_upsample_bilinear2d(a, to, align, 0, 0), tol);
		assert_near(tensor_upsample_bilinear2d_backward(gg, to, from, align, 0, 0),
			    tensor_upsample_bilinear2d_backward(grad, to, from, align, 0, 0), tol);
		assert_near(tensor_upsample_bicubic2d(g, to, align, 0, 0),
			    tensor_upsample_bicubic2d(a, to, align, 0, 0), tol);
		assert_near(tensor_upsample_bicubic2d_backward(gg, to, from, align, 0, 0),
			    tensor_upsample_bicubic2d_backward(grad, to, from, align, 0, 0), tol);
	}
	assert_near(tensor_upsample_bilinear2d(g, to, false, 1.7, 2.3),
		    tensor_upsample_bilinear2d(a, to, false, 1.7, 2.3), tol);
}

static void upsample_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(targets) * 4; i++)
		tensor_scope
			upsample_equals_the_cpu_in(floats[i % 4], targets[i / 4][0],
						   targets[i / 4][1]);
}

static void upsample_of_other_dimensions(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(2, 3, 4, 5, 6), TENSOR_F32);
		tensor *line = ok(tensor_reshape(a, TENSOR_INTS(6, 4, 30)));
		tensor *bytes = pseudo_random(TENSOR_SHAPE(2, 3, 5, 6), TENSOR_U8);

		assert_near(tensor_upsample_trilinear3d(on_cuda(a), TENSOR_INTS(7, 3, 9), false, 0,
							0, 0),
			    tensor_upsample_trilinear3d(a, TENSOR_INTS(7, 3, 9), false, 0, 0, 0),
			    1e-5);
		assert_near(tensor_upsample_linear1d(on_cuda(line), TENSOR_INTS(47), true, 0),
			    tensor_upsample_linear1d(line, TENSOR_INTS(47), true, 0), 1e-5);
		assert_near(tensor_upsample_nearest2d(on_cuda(bytes), TENSOR_INTS(9, 4), 0, 0),
			    tensor_upsample_nearest2d(bytes, TENSOR_INTS(9, 4), 0, 0), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pad_equals_the_cpu),
		cmocka_unit_test(pad_of_any_strides),
		cmocka_unit_test(upsample_equals_the_cpu),
		cmocka_unit_test(upsample_of_other_dimensions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
