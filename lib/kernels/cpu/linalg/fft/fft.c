// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fourier transforms along one dimension. A vector has the same element of several lines: lines of
 * a batch, or the columns and then the rows of a matrix that one long line is read as. Stages of
 * radix 2 to 13 and of other odd factors (radix_loops.h); lengths with a large prime factor are
 * convolutions (filter_loops.h). Plans are cached. The order of the arithmetic in a line does not
 * depend on the number of threads.
 */
#include "kernels/cpu/linalg/fft/plan.h"

#include "kernels/abi/fft.h"
#include "iter/iter.h"
#include "iter/parallel.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))

#define FFT_FINE_MAX	 (1 << 16) /* the largest line whose twiddle factors are a single table */
#define FFT_AHEAD	 2	   /* tiles of lines that are prefetched */
#define FFT_SERIAL_LINES 8	   /* fewer lines are transformed one after another */
#define FFT_INDEX_f32	 VEC_LANE_INDEX_32
#define FFT_INDEX_f64	 VEC_LANE_INDEX
typedef vec_u32 fft_index_f32;
typedef vec_u64 fft_index_f64;
/* Vectors in buffers and tables, which are aligned; vec_f32 and vec_f64 are for tensors. */
typedef float fft_vec_f32 __attribute__((vector_size(VEC_BYTES), may_alias));
typedef double fft_vec_f64 __attribute__((vector_size(VEC_BYTES), may_alias));

struct fft {
	const struct fft_plan *plan;
	enum fft_kind kind;
	const void *x;
	void *out;
	int64_t n;		      /* length of a line of numbers */
	int64_t count, inner;	      /* number of lines; stride of the dimension in elements */
	int64_t x_length, out_length; /* elements of a line */
	int64_t kept;		      /* elements that are computed: without a mirrored half */
	int x_parts, out_parts;	      /* numbers in an element: 2 if complex */
	bool backward, side_by_side;  /* lines are next to each other in memory */
	double scale;
	_Atomic bool *failed;
};

/* The index of the first element of a line in a contiguous tensor of lines of `length` elements. */
static int64_t first_of_line(const struct fft *t, int64_t line, int64_t length)
{
	return line / t->inner * length * t->inner + line % t->inner;
}

/*
 * The transform of the second operand of the convolution of `work`, divided by work->size: a table of work, whose mode,
 * lengths and dimensions are given. NULL if memory is short.
 */
static const double *exact_filter(struct fft_plan *work);

#define LOOPS_FILE "kernels/cpu/linalg/fft/fft_loops.h"
#include "kernels/cpu/simd/each_float.h"

/* Element k of the second operand. */
static void filter_element(const struct fft_plan *p, int64_t k, double *to)
{
	int64_t n = p->n, size = p->size;

	if (p->mode == FFT_PRIME) {
		root_f64(to, p->powers[k ? size - k : 0], n);
		return;
	}
	if (k >= n && size - k >= n) {
		to[0] = to[1] = 0;
		return;
	}
	k = k < n ? k : size - k;
	root_f64(to, (int64_t)((__int128)k * k % (2 * n)), 2 * n);
	to[1] = -to[1];
}

static const double *exact_filter(struct fft_plan *work)
{
	int64_t size = work->size;
	double *filter = CPU_NAME(fft_table)(work, (size_t)(2 * size) * sizeof(*filter));

	if (!filter || !make_matrix_f64(work))
		return NULL;
	for (int64_t k = 0; k < size; k++) {
		filter_element(work, k, filter + 2 * k);
		filter[2 * k] /= (double)size;
		filter[2 * k + 1] /= (double)size;
	}
	return matrix_f64(work, filter, filter, NULL, false, 1) ? filter : NULL;
}

/* Transforms all lines along dim. x and out are contiguous; other dimensions have equal sizes. */
static int transform_dim(const char *name, tensor *out, const tensor *x, int dim, int64_t n,
			 enum fft_kind kind, bool forward, double scale)
{
	struct fft t = { .kind = kind,
			 .x = x->data,
			 .out = out->data,
			 .n = n,
			 .count = 1,
			 .inner = 1,
			 .x_length = x->sizes[dim],
			 .out_length = out->sizes[dim],
			 .kept = kind == FFT_R2C ? n / 2 + 1 : n,
			 .x_parts = dtype_is_complex(x->dtype) ? 2 : 1,
			 .out_parts = dtype_is_complex(out->dtype) ? 2 : 1,
			 .backward = !forward,
			 .scale = scale };

	for (int i = 0; i < x->ndim; i++)
		t.count *= i == dim ? 1 : x->sizes[i];
	for (int i = dim + 1; i < x->ndim; i++)
		t.inner *= x->sizes[i];
	if (!t.count || !out->numel)
		return 0;
	switch (dtype_real(x->dtype)) {
	case TENSOR_F32:
		return fft_f32(&t);
	case TENSOR_F64:
		return fft_f64(&t);
	default:
		return tensor_kernel_no_dtype(name, x->dtype, "cpu");
	}
}

static int cpu_fft_c2c(tensor *out, const tensor *x, int dim, bool forward, double scale)
{
	return transform_dim("fft_c2c", out, x, dim, x->sizes[dim], FFT_C2C, forward, scale);
}

static int cpu_fft_r2c(tensor *out, const tensor *x, int dim, double scale)
{
	return transform_dim("fft_r2c", out, x, dim, x->sizes[dim], FFT_R2C, true, scale);
}

static int cpu_fft_c2r(tensor *out, const tensor *x, int dim, double scale)
{
	return transform_dim("fft_c2r", out, x, dim, out->sizes[dim], FFT_C2R, false, scale);
}

CPU_KERNELS(KERNEL(fft_c2c), KERNEL(fft_r2c), KERNEL(fft_c2r))
