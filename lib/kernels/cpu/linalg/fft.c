// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fourier transforms along one dimension. Lengths with prime factors up to LARGEST: one stage for
 * each factor, 4 first; a stage writes to another buffer in the order in which the next stage reads
 * (Stockham). Lengths with a larger prime factor: a convolution (Bluestein).
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/fft.h"
#include "iter/parallel.h"

#include <math.h>

#define LINES	16 /* lines transformed together */
#define LARGEST 31 /* the largest prime factor of a stage */

struct fft {
	const void *plan;
	const void *x;
	void *out;
	int64_t count, inner;	      /* number of lines; stride of the dimension in elements */
	int64_t x_length, out_length; /* elements of a line */
	int x_parts, out_parts;	      /* numbers in an element: 2 if complex */
	bool forward, hermitian;
	double scale;
	_Atomic bool *failed;
};

/* Returns the number of factors, or -1 if a prime factor is above LARGEST. */
static int factorize(int64_t n, int *factor)
{
	int count = 0;

	for (; n % 4 == 0; n /= 4)
		factor[count++] = 4;
	for (int f = 2; f <= LARGEST; f++)
		for (; n % f == 0; n /= f)
			factor[count++] = f;
	return n == 1 ? count : -1;
}

/*
 * exp(-2 pi i k / n), by symmetry from the first eighth of the circle: cos and sin of small angles
 * are accurate.
 */
static void unit_root(int64_t k, int64_t n, double *re, double *im)
{
	int64_t eighth = 8 * k / n, rest; /* rest / n: quarter turns from the nearest axis */
	double c, s, angle;

	if (eighth & 1)
		rest = (eighth + 1) / 2 * n - 4 * k;
	else
		rest = 4 * k - eighth / 2 * n;
	angle = (double)rest / (double)n * (M_PI / 2);
	c = cos(angle);
	s = eighth & 1 ? -sin(angle) : sin(angle);
	switch ((eighth + 1) / 2 % 4) {
	case 0:
		*re = c, *im = -s;
		break;
	case 1:
		*re = -s, *im = -c;
		break;
	case 2:
		*re = -c, *im = s;
		break;
	default:
		*re = s, *im = c;
	}
}

/* The index of the first element of a line in a contiguous tensor of lines of `length` elements. */
static int64_t first_of_line(const struct fft *t, int64_t line, int64_t length)
{
	return line / t->inner * length * t->inner + line % t->inner;
}

#define LOOPS_FILE "kernels/cpu/linalg/fft_loops.h"
#include "kernels/cpu/simd/each_float.h"

/* Transforms all lines along dim. x and out are contiguous; other dimensions have equal sizes. */
static int transform_dim(const char *name, tensor *out, const tensor *x, int dim, int64_t n,
			 bool forward, bool hermitian, double scale)
{
	struct fft t = { .x = x->data,
			 .out = out->data,
			 .count = 1,
			 .inner = 1,
			 .x_length = x->sizes[dim],
			 .out_length = out->sizes[dim],
			 .x_parts = dtype_is_complex(x->dtype) ? 2 : 1,
			 .out_parts = dtype_is_complex(out->dtype) ? 2 : 1,
			 .forward = forward,
			 .hermitian = hermitian,
			 .scale = scale };

	for (int i = 0; i < x->ndim; i++)
		t.count *= i == dim ? 1 : x->sizes[i];
	for (int i = dim + 1; i < x->ndim; i++)
		t.inner *= x->sizes[i];
	if (!t.count || !out->numel)
		return 0;
	switch (dtype_real(x->dtype)) {
	case TENSOR_F32:
		return fft_f32(&t, n);
	case TENSOR_F64:
		return fft_f64(&t, n);
	default:
		return tensor_kernel_no_dtype(name, x->dtype, "cpu");
	}
}

static int cpu_fft_c2c(tensor *t, int dim, bool forward, double scale)
{
	return transform_dim("fft_c2c", t, t, dim, t->sizes[dim], forward, false, scale);
}

static int cpu_fft_r2c(tensor *out, const tensor *x, int dim, double scale)
{
	return transform_dim("fft_r2c", out, x, dim, x->sizes[dim], true, false, scale);
}

static int cpu_fft_c2r(tensor *out, const tensor *x, int dim, double scale)
{
	return transform_dim("fft_c2r", out, x, dim, out->sizes[dim], false, true, scale);
}

CPU_KERNELS(KERNEL(fft_c2c), KERNEL(fft_r2c), KERNEL(fft_c2r))
