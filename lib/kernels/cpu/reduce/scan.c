// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Running sums, products and logarithms of sums along a dimension. Blocks of a line are brought
 * to the dtype that is added in (f64 for f32, f32 for the halves, i64 for integers), scanned by
 * vectors, and go to the output from there. Where neighbouring lines lie side by side, a tile of
 * them is scanned row by row.
 */
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec.h"

#include "iter/reduce_iter.h"
#include "iter/parallel.h"

#include "kernels/cpu/simd/log_complex.h"

#include <math.h>
#include <stdlib.h>

#define SHORT_LINE 32	/* elements that vectors are not worth */
#define BLOCK	   1024 /* elements of a line, or lines side by side */

struct scanner {
	uint8_t dtype; /* in which is computed */
	/* x[i] becomes what x[0..i] and the carry give; the carry what all of them give. */
	void (*line)(void *x, int64_t n, void *carry);
	/* The same for many short lines, one after the other, each from the start. */
	void (*lines)(void *x, int64_t n, int64_t lines);
	/* Of n lines side by side, rows of x: acc[i] takes in x[i], which becomes that. */
	void (*rows)(void *acc, void *x, int64_t rows, int64_t n);
	void (*clear)(void *acc, int64_t n);
};

typedef int64_t vec_i64 __attribute__((vector_size(VEC_BYTES), aligned(8), may_alias));
typedef int32_t vec_i32 __attribute__((vector_size(VEC_BYTES), aligned(4), may_alias));

/* Which element of a vector goes where when all move up by s; the others are the identity's. */
#if VEC_BYTES == 64
#define UP_64(s)                                                                              \
	{                                                                                     \
		0 < s ? 8 : 0 - s, 1 < s ? 9 : 1 - s, 2 < s ? 10 : 2 - s, 3 < s ? 11 : 3 - s, \
			4 - s, 5 - s, 6 - s, 7 - s                                            \
	}
#define LAST_64                        \
	{                              \
		7, 7, 7, 7, 7, 7, 7, 7 \
	}
#define UP_32(s)                                                                                  \
	{                                                                                         \
		0 < s ? 16 : 0 - s, 1 < s ? 17 : 1 - s, 2 < s ? 18 : 2 - s, 3 < s ? 19 : 3 - s,   \
			4 < s ? 20 : 4 - s, 5 < s ? 21 : 5 - s, 6 < s ? 22 : 6 - s,               \
			7 < s ? 23 : 7 - s, 8 - s, 9 - s, 10 - s, 11 - s, 12 - s, 13 - s, 14 - s, \
			15 - s                                                                    \
	}
#define LAST_32                                                                \
	{                                                                      \
		15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15 \
	}
#elif VEC_BYTES == 32
#define UP_64(s)                                                   \
	{                                                          \
		0 < s ? 4 : 0 - s, 1 < s ? 5 : 1 - s, 2 - s, 3 - s \
	}
#define LAST_64            \
	{                  \
		3, 3, 3, 3 \
	}
#define UP_32(s)                                                                              \
	{                                                                                     \
		0 < s ? 8 : 0 - s, 1 < s ? 9 : 1 - s, 2 < s ? 10 : 2 - s, 3 < s ? 11 : 3 - s, \
			4 - s, 5 - s, 6 - s, 7 - s                                            \
	}
#define LAST_32                        \
	{                              \
		7, 7, 7, 7, 7, 7, 7, 7 \
	}
#else
#define UP_64(s)     \
	{            \
		2, 0 \
	}
#define LAST_64      \
	{            \
		1, 1 \
	}
#define UP_32(s)                                                   \
	{                                                          \
		0 < s ? 4 : 0 - s, 1 < s ? 5 : 1 - s, 2 - s, 3 - s \
	}
#define LAST_32            \
	{                  \
		3, 3, 3, 3 \
	}
#endif

/* BITS: 64 or 32, of C. Elements of a block are a whole number of vectors, with room for that. */
#define SCAN(NAME, C, D, V, BITS, IDENTITY, OP)                                             \
	static void NAME##_line(void *buf, int64_t n, void *carry)                          \
	{                                                                                   \
		const int lanes = VEC_BYTES * 8 / BITS;                                     \
		V identity = (V){ 0 } + (C)(IDENTITY), last = identity;                     \
		C *x = buf;                                                                 \
                                                                                            \
		last = identity OP * (C *)carry;                                            \
		for (int64_t i = n; i % lanes; i++)                                         \
			x[i] = (IDENTITY);                                                  \
		for (int64_t i = 0; i < n; i += lanes) {                                    \
			V v = *(V *)(x + i);                                                \
                                                                                            \
			v = v OP __builtin_shuffle(v, identity, (vec_i##BITS)UP_##BITS(1)); \
			if (lanes > 2)                                                      \
				v = v OP __builtin_shuffle(v, identity,                     \
							   (vec_i##BITS)UP_##BITS(2));      \
			if (lanes > 4)                                                      \
				v = v OP __builtin_shuffle(v, identity,                     \
							   (vec_i##BITS)UP_##BITS(4));      \
			if (lanes > 8)                                                      \
				v = v OP __builtin_shuffle(v, identity,                     \
							   (vec_i##BITS)UP_##BITS(8));      \
			*(V *)(x + i) = v OP last;                                          \
			last = last OP __builtin_shuffle(v, (vec_i##BITS)LAST_##BITS);      \
		}                                                                           \
		if (n)                                                                      \
			*(C *)carry = x[n - 1];                                             \
	}                                                                                   \
	SCAN_ROWS(NAME, C, D, IDENTITY, OP)

/* The plain loop, for what vectors are not made of. */
#define SCAN_PLAIN(NAME, C, D, IDENTITY, OP)                       \
	static void NAME##_line(void *buf, int64_t n, void *carry) \
	{                                                          \
		C *x = buf, sum = *(C *)carry;                     \
                                                                   \
		for (int64_t i = 0; i < n; i++)                    \
			x[i] = sum = sum OP x[i];                  \
		*(C *)carry = sum;                                 \
	}                                                          \
	SCAN_ROWS(NAME, C, D, IDENTITY, OP)

#define SCAN_ROWS(NAME, C, D, IDENTITY, OP)                                             \
	static void NAME##_lines(void *buf, int64_t n, int64_t lines)                   \
	{                                                                               \
		for (C *x = buf; lines > 0; lines--, x += n)                            \
			for (int64_t i = 1; i < n; i++)                                 \
				x[i] = x[i - 1] OP x[i];                                \
	}                                                                               \
                                                                                        \
	static void NAME##_rows(void *acc, void *buf, int64_t rows, int64_t n)          \
	{                                                                               \
		C *restrict a = acc, *restrict x = buf;                                 \
                                                                                        \
		for (; rows > 0; rows--, x += n)                                        \
			for (int64_t i = 0; i < n; i++)                                 \
				x[i] = a[i] = a[i] OP x[i];                             \
	}                                                                               \
                                                                                        \
	static void NAME##_clear(void *acc, int64_t n)                                  \
	{                                                                               \
		for (int64_t i = 0; i < n; i++)                                         \
			((C *)acc)[i] = (IDENTITY);                                     \
	}                                                                               \
                                                                                        \
	static const struct scanner NAME = { D, NAME##_line, NAME##_lines, NAME##_rows, \
					     NAME##_clear };

SCAN(sum_f64, double, TENSOR_F64, vec_f64, 64, 0, +)
SCAN(sum_f32, float, TENSOR_F32, vec_f32, 32, 0, +)
SCAN(sum_i64, int64_t, TENSOR_I64, vec_i64, 64, 0, +)
SCAN_PLAIN(sum_c128, double complex, TENSOR_C128, 0, +)
SCAN(prod_f64, double, TENSOR_F64, vec_f64, 64, 1, *)
SCAN(prod_f32, float, TENSOR_F32, vec_f32, 32, 1, *)
SCAN(prod_i64, int64_t, TENSOR_I64, vec_i64, 64, 1, *)
SCAN_PLAIN(prod_c128, double complex, TENSOR_C128, 1, *)

/* ---- logarithms ---- */

static inline double log_add(double a, double b)
{
	double top = a > b || a != a ? a : b, low = a > b || a != a ? b : a;

	/* Equal infinities, and NaN. */
	if (top - top != 0)
		return low != low ? low : top;
	return top + log1p(exp(low - top));
}

/* By vectors: exponentials of what is below the greatest, their running sums, and logarithms of
 * those. Only where nothing can be lost below: all finite and not too far apart. */
static bool log_block(double *x, int64_t n, double *carry)
{
	double max = *carry, min = *carry == -INFINITY ? x[0] : *carry, sum;
	int64_t whole = (n + VEC_F64 - 1) / VEC_F64 * VEC_F64;

	for (int64_t i = 0; i < n; i++) {
		max = x[i] > max ? x[i] : max;
		min = x[i] < min ? x[i] : min;
		sum = x[i] - x[i];
		if (sum != 0)
			return false;
	}
	if (!(max - min < 600))
		return false;
	for (int64_t i = n; i < whole; i++)
		x[i] = max;
	for (int64_t i = 0; i < whole; i += VEC_F64)
		*(vec_f64 *)(x + i) = exp_v64(*(vec_f64 *)(x + i) - max);
	sum = exp(*carry - max);
	sum_f64_line(x, n, &sum);
	for (int64_t i = n; i < whole; i++)
		x[i] = 1;
	for (int64_t i = 0; i < whole; i += VEC_F64)
		*(vec_f64 *)(x + i) = log_v64(*(vec_f64 *)(x + i)) + max;
	*carry = x[n - 1];
	return true;
}

static void log_line(void *buf, int64_t n, void *carry)
{
	double *x = buf, sum = *(double *)carry;

	if (!(sum != sum) && sum != INFINITY && log_block(x, n, carry))
		return;
	for (int64_t i = 0; i < n; i++)
		x[i] = sum = log_add(sum, x[i]);
	*(double *)carry = sum;
}

#define LOG_LOOPS(NAME, C, ADD)                                                \
	static void NAME##_lines(void *buf, int64_t n, int64_t lines)          \
	{                                                                      \
		for (C *x = buf; lines > 0; lines--, x += n) {                 \
			C sum = -INFINITY;                                     \
                                                                               \
			for (int64_t i = 0; i < n; i++)                        \
				x[i] = sum = ADD(sum, x[i]);                   \
		}                                                              \
	}                                                                      \
                                                                               \
	static void NAME##_rows(void *acc, void *buf, int64_t rows, int64_t n) \
	{                                                                      \
		C *a = acc, *x = buf;                                          \
                                                                               \
		for (; rows > 0; rows--, x += n)                               \
			for (int64_t i = 0; i < n; i++)                        \
				x[i] = a[i] = ADD(a[i], x[i]);                 \
	}                                                                      \
                                                                               \
	static void NAME##_clear(void *acc, int64_t n)                         \
	{                                                                      \
		for (int64_t i = 0; i < n; i++)                                \
			((C *)acc)[i] = -INFINITY;                             \
	}
LOG_LOOPS(log, double, log_add)
LOG_LOOPS(log_complex, double complex, log_add_complex)

static const struct scanner log_f64 = { TENSOR_F64, log_line, log_lines, log_rows, log_clear };

/* Complex numbers one after the other. */
static void log_complex_line(void *buf, int64_t n, void *carry)
{
	double complex *x = buf, sum = *(double complex *)carry;

	for (int64_t i = 0; i < n; i++)
		x[i] = sum = log_add_complex(sum, x[i]);
	*(double complex *)carry = sum;
}

static const struct scanner log_c128 = { TENSOR_C128, log_complex_line, log_complex_lines,
					 log_complex_rows, log_complex_clear };

/* ---- walking ---- */

struct job {
	const struct scanner *s;
	const struct reduce_iter *t; /* operands: out, self */
	enum tensor_dtype to, from;
	bool by_rows, side_by_side;
};

static void scan_lines(const struct job *j, char *const *data, int64_t lines)
{
	const struct reduce_iter *t = j->t;
	int64_t n = t->along.size[0], so = t->along.stride[0][0], sa = t->along.stride[1][0];
	_Alignas(64) char x[(BLOCK + 16) * 16], carry[16];
	int64_t size = dtype_sizes[j->s->dtype];

	for (int64_t l = 0; l < lines; l++) {
		char *o = data[0] + l * t->kept.stride[0][0];
		const char *a = data[1] + l * t->kept.stride[1][0];

		j->s->clear(carry, 1);
		for (int64_t i = 0; i < n; i += BLOCK) {
			int64_t m = n - i < BLOCK ? n - i : BLOCK;

			CPU_NAME(convert)(x, j->s->dtype, size, a + i * sa, j->from, sa, m);
			j->s->line(x, m, carry);
			CPU_NAME(convert)(o + i * so, j->to, so, x, j->s->dtype, size, m);
		}
	}
}

/* Lines of a few elements, one after the other in both operands: many at a time. */
static void scan_short(const struct job *j, char *o, const char *a, int64_t lines)
{
	int64_t n = j->t->along.size[0], so = j->t->along.stride[0][0],
		sa = j->t->along.stride[1][0];
	int64_t size = dtype_sizes[j->s->dtype], many = BLOCK / n;
	_Alignas(64) char x[BLOCK * 16];

	for (int64_t l = 0; l < lines; l += many) {
		int64_t m = lines - l < many ? lines - l : many;

		CPU_NAME(convert)(x, j->s->dtype, size, a + l * n * sa, j->from, sa, m * n);
		j->s->lines(x, n, m);
		CPU_NAME(convert)(o + l * n * so, j->to, so, x, j->s->dtype, size, m * n);
	}
}

static bool is_short(const struct reduce_iter *t)
{
	int64_t n = t->along.size[0];

	return n <= SHORT_LINE && t->kept.stride[0][0] == n * t->along.stride[0][0] &&
	       t->kept.stride[1][0] == n * t->along.stride[1][0];
}

static void scan_tile(const struct job *j, char *o, const char *a, int64_t cols)
{
	const struct reduce_iter *t = j->t;
	int64_t size = dtype_sizes[j->s->dtype], so = t->kept.stride[0][0],
		sa = t->kept.stride[1][0];
	int64_t step = t->along.stride[1][0], out_step = t->along.stride[0][0], rows = 1;
	_Alignas(64) char x[BLOCK * 16], acc[BLOCK * 16];

	/* Short rows that follow each other are converted together. */
	if (step == cols * sa && out_step == cols * so)
		rows = BLOCK / cols;
	j->s->clear(acc, cols);
	for (int64_t r = 0; r < t->along.size[0]; r += rows) {
		int64_t m = t->along.size[0] - r < rows ? t->along.size[0] - r : rows;

		CPU_NAME(convert)(x, j->s->dtype, size, a, j->from, sa, m * cols);
		j->s->rows(acc, x, m, cols);
		CPU_NAME(convert)(o, j->to, so, x, j->s->dtype, size, m * cols);
		a += rows * step;
		o += rows * out_step;
	}
}

static void scan_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct job *j = ctx;
	int64_t run = j->t->kept.size[0];
	char *data[REDUCE_ITER_OPERANDS];

	while (begin < end) {
		int64_t n = run - begin % run;

		if (n > end - begin)
			n = end - begin;
		if (j->by_rows && n > BLOCK)
			n = BLOCK;
		reduce_iter_seek(j->t, begin, data);
		if (j->by_rows)
			scan_tile(j, data[0], data[1], n);
		else if (j->side_by_side)
			scan_short(j, data[0], data[1], n);
		else
			scan_lines(j, data, n);
		begin += n;
	}
}

static int scan(const struct scanner *s, tensor *out, const tensor *self, int dim)
{
	struct job j = { .s = s, .to = out->dtype, .from = self->dtype };
	const tensor *op[] = { out, self };
	int64_t grain;
	struct reduce_iter t;

	if (!self->numel)
		return 0;
	reduce_iter_build(&t, op, 2, 1u << dim);
	j.t = &t;
	j.by_rows = t.kept.size[0] >= 8 && llabs(t.kept.stride[1][0]) < llabs(t.along.stride[1][0]);
	j.side_by_side = is_short(&t);
	grain = ITER_GRAIN / t.along.count;
	/* Rows of a tile are to be worth a call. */
	grain = j.by_rows && grain < 128 ? 128 : grain < 1 ? 1 : grain;
	parallel_for(0, t.kept.count, grain, scan_chunk, &j);
	return 0;
}

/* PyTorch's accumulators: the next wider dtype. */
static const struct scanner *pick(enum tensor_dtype out, const struct scanner *const of[4])
{
	if (dtype_is_integral(out))
		return of[0];
	if (dtype_wide(out) != out)
		return of[1];
	return of[dtype_is_complex(out) ? 3 : 2];
}

static int cpu_cumsum(tensor *out, const tensor *self, int dim)
{
	static const struct scanner *const of[] = { &sum_i64, &sum_f32, &sum_f64, &sum_c128 };

	return scan(pick(out->dtype, of), out, self, dim);
}

static int cpu_cumprod(tensor *out, const tensor *self, int dim)
{
	static const struct scanner *const of[] = { &prod_i64, &prod_f32, &prod_f64, &prod_c128 };

	return scan(pick(out->dtype, of), out, self, dim);
}

static int cpu_logcumsumexp(tensor *out, const tensor *self, int dim)
{
	return scan(dtype_is_complex(out->dtype) ? &log_c128 : &log_f64, out, self, dim);
}

CPU_KERNELS(K(cumsum), K(cumprod), K(logcumsumexp))
