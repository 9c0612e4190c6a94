// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: quantized tensors, whose integers are exactly those of the CPU. */
#include "cuda_results.h"
#include "tests/cuda/host/include/cuda_host.h"

static const enum tensor_dtype quantized[] = { TENSOR_U8, TENSOR_I8, TENSOR_I32 };

/* The same integers and, dequantized, the same bits. */
static void same_on_both(tensor *gpu, tensor *cpu)
{
	assert_near(tensor_int_repr(ok(gpu)), tensor_int_repr(ok(cpu)), 0);
	assert_near(tensor_dequantize(gpu), tensor_dequantize(cpu), 0);
}

/* Values of both signs, of which some saturate, halves, NaN and infinities. */
static tensor *values(tensor_ints shape)
{
	tensor *t = ok(tensor_mul_scalar(pseudo_random(shape, TENSOR_F32), TENSOR_SCALAR(3)));
	static const float special[] = {
		NAN, INFINITY, -INFINITY, 1e20f, -1e20f, 0.5f, 1.5f, -2.5f
	};
	float *p = tensor_mutable_data(t);

	for (size_t i = 0; i < ARRAY_SIZE(special) && (int64_t)i < tensor_numel(t); i++)
		p[i] = special[i];
	return t;
}

static void conversions_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t d = 0; d < ARRAY_SIZE(quantized); d++)
		tensor_scope {
			tensor *x = values(TENSOR_SHAPE(7, 9)), *g = on_cuda(x);
			tensor *scales = ok(tensor_add_scalar(
				tensor_abs(pseudo_random(TENSOR_SHAPE(9), TENSOR_F64)),
				TENSOR_SCALAR(0.01)));
			tensor *zeros = ok(tensor_abs(pseudo_random(TENSOR_SHAPE(9), TENSOR_I64)));
			const enum tensor_dtype q = quantized[d];

			same_on_both(tensor_quantize_per_tensor(g, 0.07, 3, q),
				     tensor_quantize_per_tensor(x, 0.07, 3, q));
			same_on_both(tensor_quantize_per_tensor(tensor_t(g), 1, 0, q),
				     tensor_quantize_per_tensor(tensor_t(x), 1, 0, q));
			same_on_both(tensor_quantize_per_channel(g, on_cuda(scales), on_cuda(zeros),
								 1, q),
				     tensor_quantize_per_channel(x, scales, zeros, 1, q));
			same_on_both(tensor_quantize_per_channel(tensor_t(g), scales, zeros, 0, q),
				     tensor_quantize_per_channel(tensor_t(x), scales, zeros, 0, q));
			same_on_both(tensor_quantize_per_tensor(tensor_narrow(g, 0, 0, 0), 1, 0, q),
				     tensor_quantize_per_tensor(tensor_narrow(x, 0, 0, 0), 1, 0,
								q));
		}
	assert_int_equal(tensor_cuda_fallbacks("quantize_per_tensor"), 0);
	assert_int_equal(tensor_cuda_fallbacks("quantize_per_channel"), 0);
}

static tensor *activations(tensor_ints shape, int64_t zero)
{
	return ok(tensor_quantize_per_tensor(values(shape), 0.05, zero, TENSOR_U8));
}

static tensor *weights(tensor_ints shape, bool channels, int64_t zero)
{
	tensor *w = pseudo_random(shape, TENSOR_F32);
	const int64_t n = shape.data[0];

	if (!channels)
		return ok(tensor_quantize_per_tensor(w, 0.03, zero, TENSOR_I8));
	return ok(tensor_quantize_per_channel(
		w,
		tensor_add_scalar(tensor_abs(pseudo_random(TENSOR_SHAPE(n), TENSOR_F64)),
				  TENSOR_SCALAR(0.02)),
		tensor_remainder_scalar(tensor_arange(TENSOR_SCALAR(n), I64),
					TENSOR_SCALAR(zero + 1)),
		0, TENSOR_I8));
}

static void linear(int64_t m, int64_t n, int64_t k)
{
	for (int i = 0; i < 8; i++)
		tensor_scope {
			const bool relu = i & 1, channels = i & 2, biased = i & 4;
			tensor *x = activations(TENSOR_SHAPE(m, k), i % 3 ? 120 : 0);
			tensor *w = weights(TENSOR_SHAPE(n, k), channels, i % 3);
			tensor *b = biased ? pseudo_random(TENSOR_SHAPE(n), TENSOR_F32) :
					     tensor_none;

			same_on_both(tensor_quantized_linear_opt(on_cuda(x), on_cuda(w),
								 biased ? on_cuda(b) : b, 0.4, 100,
								 relu),
				     tensor_quantized_linear_opt(x, w, b, 0.4, 100, relu));
		}
}

static void products_are_exactly_those_of_the_cpu(void **state)
{
	NEED_DEVICE();
	linear(3, 5, 7);
	linear(1, 1, 32);
	linear(66, 65, 33);
	linear(2, 3, 0);
	linear(0, 3, 4);
}

static void convolutions_are_exactly_those_of_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int i = 0; i < 4; i++)
		tensor_scope {
			const int64_t groups = i & 1 ? 2 : 1;
			tensor *x = activations(TENSOR_SHAPE(2, 4, 6, 5), 117);
			tensor *w = weights(TENSOR_SHAPE(6, 4 / groups, 3, 2), i & 2, 1);
			tensor *b = pseudo_random(TENSOR_SHAPE(6), TENSOR_F32);

			same_on_both(tensor_quantized_conv2d(on_cuda(x), on_cuda(w), on_cuda(b),
							     TENSOR_INTS(2, 1), TENSOR_INTS(1, 2),
							     TENSOR_INTS(1, 2), groups, 0.3, 90),
				     tensor_quantized_conv2d(x, w, b, TENSOR_INTS(2, 1),
							     TENSOR_INTS(1, 2), TENSOR_INTS(1, 2),
							     groups, 0.3, 90));
		}
}

/* Launches of the emulation so far; without it the test is skipped. */
static unsigned long launches_so_far(void)
{
	void (*counts)(struct cuda_host_counts *) = emulation("cuda_host_counts");
	struct cuda_host_counts now;

	if (!counts) {
		print_message("# skipped: no emulation\n");
		skip();
	}
	counts(&now);
	return now.launches;
}

/* A launch for the patches and one for the products, whatever the number of images and groups. */
static void a_convolution_has_one_launch_for_all_images(void **state)
{
	unsigned long launches[2];

	NEED_DEVICE();
	for (int i = 0; i < 2; i++)
		tensor_scope {
			const int64_t groups = i ? 3 : 1;
			tensor *x = on_cuda(activations(TENSOR_SHAPE(i ? 7 : 1, 6, 5, 4), 117));
			tensor *w = on_cuda(weights(TENSOR_SHAPE(6, 6 / groups, 3, 2), false, 1));

			launches[i] = launches_so_far();
			ok(tensor_quantized_conv2d(x, w, tensor_none, TENSOR_INTS(1),
						   TENSOR_INTS(0), TENSOR_INTS(1), groups, 0.3,
						   90));
			launches[i] = launches_so_far() - launches[i];
		}
	assert_int_equal(launches[0], launches[1]);
}

static void other_operators_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = activations(TENSOR_SHAPE(4, 5), 3),
		       *b = activations(TENSOR_SHAPE(5), 9);
		tensor *g = on_cuda(a), *h = on_cuda(b);

		same_on_both(tensor_quantized_add(g, h, 0.2, 7),
			     tensor_quantized_add(a, b, 0.2, 7));
		same_on_both(tensor_quantized_mul(g, h, 0.2, 7),
			     tensor_quantized_mul(a, b, 0.2, 7));
		same_on_both(tensor_relu(g), tensor_relu(a));
		same_on_both(tensor_clone(g), tensor_clone(a));
		same_on_both(g, tensor_to(g, CPU));
		same_on_both(tensor_t(g), tensor_t(a));
	}
}

static void operands_on_two_devices_are_refused(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *x = activations(TENSOR_SHAPE(2, 3), 3),
		       *w = weights(TENSOR_SHAPE(2, 3), false, 0);
		tensor *b = pseudo_random(TENSOR_SHAPE(2), TENSOR_F32);

		assert_fails(tensor_quantized_linear(on_cuda(x), w, b, 1, 0), EINVAL, "device");
		assert_fails(tensor_quantized_linear(x, on_cuda(w), b, 1, 0), EINVAL, "device");
		assert_fails(tensor_quantized_linear(x, w, on_cuda(b), 1, 0), EINVAL, "device");
		assert_fails(tensor_quantized_add(x, on_cuda(x), 1, 0), EINVAL, "device");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conversions_equal_the_cpu),
		cmocka_unit_test(products_are_exactly_those_of_the_cpu),
		cmocka_unit_test(a_convolution_has_one_launch_for_all_images),
		cmocka_unit_test(convolutions_are_exactly_those_of_the_cpu),
		cmocka_unit_test(other_operators_equal_the_cpu),
		cmocka_unit_test(operands_on_two_devices_are_refused),
	};

	return cmocka_run_group_tests_name("cuda_quantized", tests, NULL, NULL);
}
