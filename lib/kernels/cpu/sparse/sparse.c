// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Kernels of sparse tensors: the product of a CSR matrix and a dense one, selected elements of a
 * dense product, and sums of the values at equal indices. A row of the result is computed by one
 * thread, which adds in the order of the elements: the bits do not depend on the number of threads.
 */
#include "kernels/abi/sparse.h"
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/cpu/simd/vec.h"

struct spmm {
	int64_t m, n, lda, ldo;
	const int64_t *crow, *col;
	const void *values, *dense;
	void *out;
	double alpha, beta;
};

/* ---- CSR times dense ---- */

#define WIDTH 16 /* partial sums of a row */

#define LOOPS_FILE "kernels/cpu/sparse/spmm_loops.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_complex.h"
#undef LOOPS_FILE
#define LOOPS_FILE "kernels/cpu/sparse/spmm_float_loops.h"
#include "kernels/cpu/simd/each_float.h"
#undef LOOPS_FILE

/*
 * out[m, n] = beta out + alpha S dense, where S is the CSR matrix of crow, col and values. The rows
 * of out and of dense are contiguous. beta 0 does not read out.
 */
static int cpu_spmm(tensor *out, const tensor *crow, const tensor *col, const tensor *values,
		    const tensor *dense, double alpha, double beta)
{
	static const parallel_fn rows[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = spmm_##d,
		DTYPES_NUMBER(ENTRY) DTYPES_COMPLEX(ENTRY)
#undef ENTRY
	};
	struct spmm s = { .m = out->sizes[0],
			  .n = out->sizes[1],
			  .lda = dense->strides[0],
			  .ldo = out->strides[0],
			  .crow = crow->data,
			  .col = col->data,
			  .values = values->data,
			  .dense = dense->data,
			  .out = out->data,
			  .alpha = alpha,
			  .beta = beta };
	int64_t work;

	if (!rows[out->dtype])
		return tensor_kernel_no_dtype("spmm", out->dtype, "cpu");
	if (!s.m || !s.n)
		return 0;
	work = (s.crow[s.m] / s.m + 1) * s.n;
	parallel_for(0, s.m, work < ITER_GRAIN ? ITER_GRAIN / work : 1, rows[out->dtype], &s);
	return 0;
}

/* ---- sampled_mm: selected elements of a dense product ---- */

struct sampled {
	const int64_t *row, *col;
	int64_t k, lda, ldb;
	const void *a, *b;
	void *out;
};

#define LOOPS_FILE "kernels/cpu/sparse/sampled_mm_loops.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_complex.h"
#undef LOOPS_FILE

/* out[p] = the dot product of row row[p] of a and row col[p] of b; contiguous rows. */
static int cpu_sampled_mm(tensor *out, const tensor *at, const tensor *a, const tensor *b)
{
	static const parallel_fn loops[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = sampled_mm_##d,
		DTYPES_NUMBER(ENTRY) DTYPES_COMPLEX(ENTRY)
#undef ENTRY
	};
	const int64_t *row = at->data;
	struct sampled s = { row,	    row + at->sizes[1], a->sizes[1],
			     a->strides[0], b->strides[0],	a->data,
			     b->data,	    out->data };
	int64_t work = s.k + 1;

	if (!loops[out->dtype])
		return tensor_kernel_no_dtype("sampled_mm", out->dtype, "cpu");
	parallel_for(0, out->numel, work < ITER_GRAIN ? ITER_GRAIN / work : 1, loops[out->dtype],
		     &s);
	return 0;
}

/* ---- sum_runs: values at equal indices, for coalesce ---- */

struct runs {
	const int64_t *starts, *order;
	int64_t block;
	const void *values;
	void *out;
};

#define LOOPS_FILE "kernels/cpu/sparse/sum_runs_loops.h"
#define ADD(a, b)  ((a) + (b))
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_complex.h"
#undef ADD

#define ADD(a, b) ((a) | (b))
#define T	  uint8_t
#define SUFFIX	  b8
#include LOOPS_FILE
#undef T
#undef SUFFIX
#undef ADD
#undef LOOPS_FILE

/* out[r] = the sum of values[order[p]] for p from starts[r] to starts[r + 1], in this order. */
static int cpu_sum_runs(tensor *out, const tensor *values, const tensor *order,
			const tensor *starts)
{
	static const parallel_fn loops[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = sum_runs_##d,
		DTYPES_ALL(ENTRY)
#undef ENTRY
	};
	int64_t n = out->sizes[0];
	struct runs s = { starts->data, order->data, n ? out->numel / n : 0, values->data,
			  out->data };

	if (!loops[out->dtype])
		return tensor_kernel_no_dtype("coalesce", out->dtype, "cpu");
	parallel_for(0, n, s.block < ITER_GRAIN / 4 ? ITER_GRAIN / 4 / (s.block + 1) : 1,
		     loops[out->dtype], &s);
	return 0;
}

CPU_KERNELS(KERNEL(spmm), KERNEL(sampled_mm), KERNEL(sum_runs))
