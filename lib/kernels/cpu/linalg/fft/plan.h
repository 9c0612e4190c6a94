/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Plans of Fourier transforms: how a length is computed, and its tables. */
#ifndef TENSOR_CPU_FFT_PLAN_H
#define TENSOR_CPU_FFT_PLAN_H

#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec.h"

#define FFT_PRIME_MAX	151 /* the largest prime factor of a stage */
#define FFT_FACTORS_MAX 48
#define FFT_TABLES_MAX	(4 * FFT_FACTORS_MAX)

/* A transform of lines side by side; see radix_loops.h. Tables are arrays of the element type. */
struct fft_lanes {
	int64_t n;
	int nfactors;
	int factor[FFT_FACTORS_MAX];
	/* For stage i, block element q > 0 and output k > 0: exp(-2 pi i q k / left). */
	const void *twiddle[FFT_FACTORS_MAX];
	/* cos and sin of 2 pi k / factor[i]; NULL for 2, 4 and 8. */
	const void *roots[FFT_FACTORS_MAX];
	const int32_t *at, *order; /* the position of output k; the output at a position */
};

enum fft_mode {
	FFT_LANES, /* lines side by side: `columns` has length n */
	FFT_LINE,  /* one line as a matrix of rows.n x columns.n elements */
	FFT_CHIRP, /* one line as a convolution of length `size` (Bluestein) */
	FFT_PRIME, /* a line of prime length as a cyclic convolution of length n - 1 (Rader) */
};

enum fft_kind { FFT_C2C, FFT_R2C, FFT_C2R };

/* The number of lines that a plan is made for. */
enum fft_lines { FFT_ONE_LINE, FFT_FEW_LINES, FFT_MANY_LINES, FFT_COLUMNS };

/**
 * struct fft_plan - how lines of one length are computed
 * @key_n, @kind, @lines, @f64: what the plan is for
 * @n: length of the complex transform: @key_n, or half of it if the lines are real and even
 * @size: length of the line of @columns and @rows; @n unless the mode is FFT_CHIRP or FFT_PRIME
 * @columns: transform of the columns of a line as a matrix; of the whole line in mode FFT_LANES
 * @rows: transform of the rows of the matrix
 * @twiddle: vectors of exp(-2 pi i i1 k2 / size) in the order of the intermediate matrix; see
 *	line_loops.h
 * @coarse: if not NULL, scalars by which @twiddle, then for one block of k2, is multiplied
 * @chirp: exp(-pi i k^2 / n)
 * @filter: transform of the second operand of the convolution, divided by @size
 * @powers: powers of a generator of the integers modulo @n, from power 0
 * @fold: exp(-2 pi i k / key_n), for even real lines
 */
struct fft_plan {
	int64_t key_n;
	enum fft_kind kind;
	enum fft_lines lines;
	bool f64;

	atomic_int refs;
	uint64_t used; /* for the cache: time of the last use */

	enum fft_mode mode;
	int64_t n, size;
	struct fft_lanes columns, rows;
	const void *twiddle, *coarse, *chirp, *filter, *fold;
	const int32_t *powers;

	void *tables[FFT_TABLES_MAX];
	int ntables;
	size_t bytes;
};

/* Chooses mode, size and factors; the costs are in vector operations. */
void CPU_NAME(fft_choose)(struct fft_plan *p);
/* The powers of a generator of the integers modulo a prime, from power 0 to n - 2. */
void CPU_NAME(fft_powers)(int64_t n, int32_t *powers);
/* A table of `bytes`, owned by the plan; NULL if memory is short. */
void *CPU_NAME(fft_table)(struct fft_plan *p, size_t bytes);
void CPU_NAME(fft_free_tables)(struct fft_plan *p);
/* exp(-2 pi i k / n), correctly rounded but for the last bits of f64; 0 <= k < n. */
void CPU_NAME(fft_unit_root)(int64_t k, int64_t n, double *re, double *im);

/* Makes the tables of a chosen plan; false if memory is short. */
typedef bool (*fft_make_tables)(struct fft_plan *p);
/*
 * The plan for lines of key_n elements, from the cache or made; NULL with the error set. The caller
 * puts it back. Thread-safe.
 */
struct fft_plan *CPU_NAME(fft_plan_get)(const struct fft_plan *key, fft_make_tables make);
void CPU_NAME(fft_plan_put)(struct fft_plan *p);

static inline int64_t fft_vectors(int64_t n, int lanes)
{
	return (n + lanes - 1) / lanes;
}

#endif
