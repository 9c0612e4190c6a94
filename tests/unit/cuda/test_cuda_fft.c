// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: Fourier transforms against the CPU's results, and without cuFFT. */
#include "cuda_results.h"

#define NAME "_fft_c2c"

static const enum tensor_dtype reals[] = { TENSOR_F32, TENSOR_F64 };

static tensor *complex_of(tensor_ints shape, enum tensor_dtype real)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	memcpy(sizes, shape.data, (size_t)shape.len * sizeof(*sizes));
	sizes[shape.len] = 2;
	return ok(
		tensor_view_as_complex(pseudo_random((tensor_ints){ sizes, shape.len + 1 }, real)));
}

static bool is_complex(tensor *t)
{
	return tensor_dtype(t) == TENSOR_C64 || tensor_dtype(t) == TENSOR_C128;
}

static void assert_equal_to(tensor *gpu, tensor *cpu)
{
	bool wide = tensor_dtype(cpu) == TENSOR_F64 || tensor_dtype(cpu) == TENSOR_C128;
	double tol = wide ? 1e-11 : 1e-4;

	ok(gpu);
	assert_int_equal(tensor_dtype(gpu), tensor_dtype(ok(cpu)));
	if (is_complex(cpu)) {
		gpu = tensor_view_as_real(gpu);
		cpu = tensor_view_as_real(cpu);
	}
	assert_near(gpu, cpu, tol);
}

/* ---- one dimension ---- */

static void transforms_of(tensor *z, tensor *x, int64_t dim, int64_t norm)
{
	tensor *gz = on_cuda(z), *gx = on_cuda(x);
	tensor_ints d = { &dim, 1 };
	tensor *half = ok(tensor_fft_r2c(x, d, norm, true)), *ghalf = on_cuda(half);
	int64_t n = tensor_size(x, (int)dim);

	assert_equal_to(tensor_fft_c2c(gz, d, norm, true), tensor_fft_c2c(z, d, norm, true));
	assert_equal_to(tensor_fft_c2c(gz, d, norm, false), tensor_fft_c2c(z, d, norm, false));
	assert_equal_to(tensor_fft_r2c(gx, d, norm, true), half);
	assert_equal_to(tensor_fft_r2c(gx, d, norm, false), tensor_fft_r2c(x, d, norm, false));
	assert_equal_to(tensor_fft_c2r(ghalf, d, norm, n), tensor_fft_c2r(half, d, norm, n));
	/* cuFFT may overwrite the input of a transform to real numbers. */
	assert_equal_to(ghalf, half);
	assert_equal_to(gz, z);
}

/* Lines that are contiguous, few and many with strides, and memory at odd offsets. */
static void transforms_equal_the_cpu(void **state)
{
	static const int64_t shapes[][3] = { { 1, 1, 1 },  { 3, 1, 2 },	 { 2, 2, 3 },
					     { 3, 12, 5 }, { 20, 7, 4 }, { 1, 101, 1 } };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(shapes) * 2; i++)
		for (int64_t dim = 0; dim < 3; dim++)
			tensor_scope {
				tensor_ints shape = { shapes[i / 2], 3 };

				transforms_of(complex_of(shape, reals[i % 2]),
					      pseudo_random(shape, reals[i % 2]), dim,
					      (int64_t)(i + (size_t)dim) % 3);
			}
	assert_int_equal(tensor_cuda_fallbacks(NAME), 0);
	assert_int_equal(tensor_cuda_fallbacks("_fft_r2c"), 0);
	assert_int_equal(tensor_cuda_fallbacks("_fft_c2r"), 0);
}

static void several_dimensions_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *z = complex_of(TENSOR_SHAPE(3, 4, 5), TENSOR_F32), *g = on_cuda(z);
		tensor *x = pseudo_random(TENSOR_SHAPE(3, 4, 6), TENSOR_F64), *gx = on_cuda(x);

		assert_equal_to(tensor_fft_c2c(g, TENSOR_INTS(2, 0), 1, true),
				tensor_fft_c2c(z, TENSOR_INTS(2, 0), 1, true));
		assert_equal_to(tensor_fft_r2c(gx, TENSOR_INTS(0, 1, 2), 0, true),
				tensor_fft_r2c(x, TENSOR_INTS(0, 1, 2), 0, true));
		assert_equal_to(tensor_fft_c2c(tensor_transpose(g, 0, 2), TENSOR_INTS(1), 0, true),
				tensor_fft_c2c(tensor_transpose(z, 0, 2), TENSOR_INTS(1), 0, true));
	}
}

/* A view that begins between two complex numbers. */
static void memory_at_odd_offsets(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *x = pseudo_random(TENSOR_SHAPE(41), TENSOR_F32), *g = on_cuda(x);

		assert_equal_to(tensor_fft_r2c(tensor_narrow(g, 0, 1, 40), TENSOR_INTS(0), 0, true),
				tensor_fft_r2c(tensor_narrow(x, 0, 1, 40), TENSOR_INTS(0), 0,
					       true));
	}
}

/* More plans than are kept; and the same ones again. */
static void plans_are_replaced(void **state)
{
	NEED_DEVICE();
	for (int64_t k = 0; k < 2; k++)
		for (int64_t n = 2; n < 45; n++)
			tensor_scope {
				tensor *z = complex_of(TENSOR_SHAPE(n), TENSOR_F32);

				assert_equal_to(tensor_fft_c2c(on_cuda(z), TENSOR_INTS(0), 0, true),
						tensor_fft_c2c(z, TENSOR_INTS(0), 0, true));
			}
}

static void empty_tensors(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *z = complex_of(TENSOR_SHAPE(0, 3), TENSOR_F32);

		assert_equal_to(tensor_fft_c2c(on_cuda(z), TENSOR_INTS(1), 0, true),
				tensor_fft_c2c(z, TENSOR_INTS(1), 0, true));
	}
}

/* In a process of its own, before it loads cuFFT. */
static void without_cufft(void)
{
	tensor_scope {
		tensor *z = complex_of(TENSOR_SHAPE(8), TENSOR_F32), *g = on_cuda(z);

		tensor_cuda_set_fallback(false);
		assert_fails(tensor_fft_c2c(g, TENSOR_INTS(0), 0, true), EOPNOTSUPP,
			     "/no/such/library");
		tensor_cuda_set_fallback(true);
		assert_equal_to(tensor_fft_c2c(g, TENSOR_INTS(0), 0, true),
				tensor_fft_c2c(z, TENSOR_INTS(0), 0, true));
		if (tensor_cuda_fallbacks(NAME) != 1)
			exit(3);
	}
}

static void transforms_run_on_the_cpu_without_cufft(void **state)
{
	without_library("TENSOR_CUFFT", without_cufft);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* Before this process opens CUDA, which a child could not use then. */
		cmocka_unit_test(transforms_run_on_the_cpu_without_cufft),
		cmocka_unit_test(transforms_equal_the_cpu),
		cmocka_unit_test(several_dimensions_equal_the_cpu),
		cmocka_unit_test(memory_at_odd_offsets),
		cmocka_unit_test(plans_are_replaced),
		cmocka_unit_test(empty_tensors),
	};

	return cmocka_run_group_tests_name("cuda_fft", tests, NULL, NULL);
}
