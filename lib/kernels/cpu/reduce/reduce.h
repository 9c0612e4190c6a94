/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * struct reducer: the operations of a reduction for one dtype, called by reduce.c. reducer_loops.h
 * defines one from an associative operation.
 */
#ifndef TENSOR_CPU_REDUCE_H
#define TENSOR_CPU_REDUCE_H

#include "base/reduced_float.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec_reduced_float.h"

#define LANES	      64		 /* accumulators of a line, at most */
#define LINE_MAX      (1024 * VEC_BYTES) /* elements of a line that is not split */
#define BLOCK_VECTORS 512 /* vectors of a line that are reduced before the result joins others */
#define CHUNK_COLS    64  /* size of the block that strided elements are copied to */
#define CHUNK_ROWS    8
#define ACC_MAX	      32 /* bytes of an accumulator */

/* Converts n elements, `stride` bytes apart, to a contiguous buffer of dtype r->takes. */
typedef void (*reduce_fetch)(void *to, const char *from, enum tensor_dtype dtype, int64_t stride,
			     int64_t n, double p);

/* The operations of a reduction for one dtype of elements. */
struct reducer {
	size_t size;	      /* of an accumulator */
	uint8_t takes, gives; /* dtypes of the elements and of the result */
	/* Sets acc[0..n) to the identity. */
	void (*clear)(void *acc, int64_t n);
	/* Joins other[i] to acc[i]. */
	void (*combine)(void *acc, const void *other, int64_t n);
	/* Adds element c of each row to acc[c]; strides in bytes. */
	void (*rows)(void *acc, const char *p, int64_t rows, int64_t row_stride, int64_t cols,
		     int64_t col_stride);
	/* Adds the n elements of line l to acc[l]. */
	void (*lines)(void *acc, const char *p, int64_t lines, int64_t line_stride, int64_t n,
		      int64_t stride);
};

/* A call: a reducer with optional conversions of elements and results. */
struct reduction {
	const struct reducer *r;
	/* Reads elements that are not of dtype r->takes; NULL: they are converted. */
	reduce_fetch fetch;
	/* Computes result[i] from acc[i] of `count` elements; they may be the same memory.
	 * NULL: acc is the result. */
	void (*finish)(void *result, const void *acc, int64_t n, int64_t count, double p);
	double p; /* passed to fetch and finish */
};

/* Runs a reduction; out is as described for reduce_kernel in kernels.h. */
int CPU_NAME(reduce)(const struct reduction *what, tensor *out, const tensor *self, uint32_t dims);

/* struct reducer's lines() for a reducer that has a function for one line. */
typedef void (*reduce_line)(void *acc, const char *p, int64_t n, int64_t stride);
static inline __attribute__((always_inline)) void each_line(reduce_line line, void *acc,
							    size_t size, const char *p,
							    int64_t lines, int64_t line_stride,
							    int64_t n, int64_t stride)
{
	for (int64_t l = 0; l < lines; l++, p += line_stride)
		line((char *)acc + l * size, p, n, stride);
}

/* ---- used by reducer_loops.h ---- */

typedef uint64_t vec_u64u __attribute__((vector_size(VEC_BYTES), aligned(1), may_alias));

/* VEC_LAST(V, v, none, n): the last n lanes of v; the others are those of `none`. */
static const uint8_t reduce_mask[2 * VEC_BYTES] = {
	[VEC_BYTES... 2 * VEC_BYTES - 1] = 0xff,
};
#define VEC_LAST(V, v, none, n) \
	VEC_PICK(*(const vec_u64u *)(reduce_mask + (n) * sizeof((v)[0])), v, none)

#define VLOAD(V, e) __builtin_convertvector(e, V)

/* Computes v before what follows. */
#define REDUCE_IN_ORDER(v) __asm__ volatile("" : "+v"(v))

#endif
