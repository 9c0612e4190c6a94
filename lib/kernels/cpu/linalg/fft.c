// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fourier transforms along one dimension: factors 4, 2 and small primes, each stage from one
 * buffer to another in the order in which the next one reads (Stockham); lengths with a large
 * prime factor as a convolution (Bluestein).
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/fft.h"
#include "iter/parallel.h"

#include <math.h>

#define LINES	16 /* side by side */
#define LARGEST 31 /* prime factor of a stage */

struct fft {
	const void *plan;
	const void *x;
	void *out;
	int64_t count, inner;	      /* lines; elements between neighbours of a line */
	int64_t x_length, out_length; /* of a line */
	int x_parts, out_parts;	      /* 2: complex */
	bool forward, hermitian;
	double scale;
	_Atomic bool *failed;
};

/* Number of factors, -1 when one is too large. */
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

/* exp(-2 pi i k / n), by symmetry from the first eighth of the circle. */
static void unit_root(int64_t k, int64_t n, double *re, double *im)
{
	int64_t eighth = 8 * k / n, rest = k; /* angle = rest / n of the circle from an axis */
	double c, s, angle;

	if (eighth & 1)
		rest = (eighth + 1) / 2 * n - 4 * k; /* four times the distance to the next axis */
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

#define T    float
#define F(x) fft_##x##_f32
#include "kernels/cpu/linalg/fft_loops.h"

#define T    double
#define F(x) fft_##x##_f64
#include "kernels/cpu/linalg/fft_loops.h"

/* Lines along dim of two contiguous tensors that differ in no other dimension. */
static int run(const char *name, tensor *out, const tensor *x, int dim, int64_t n, bool forward,
	       bool hermitian, double scale)
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
		return fft_run_f32(&t, n);
	case TENSOR_F64:
		return fft_run_f64(&t, n);
	default:
		return kernel_no_dtype(name, x->dtype, "cpu");
	}
}

static int cpu_fft_c2c(tensor *t, int dim, bool forward, double scale)
{
	return run("fft_c2c", t, t, dim, t->sizes[dim], forward, false, scale);
}

static int cpu_fft_r2c(tensor *out, const tensor *x, int dim, double scale)
{
	return run("fft_r2c", out, x, dim, x->sizes[dim], true, false, scale);
}

static int cpu_fft_c2r(tensor *out, const tensor *x, int dim, double scale)
{
	return run("fft_c2r", out, x, dim, out->sizes[dim], false, true, scale);
}

CPU_KERNELS(K(fft_c2c), K(fft_r2c), K(fft_c2r))
