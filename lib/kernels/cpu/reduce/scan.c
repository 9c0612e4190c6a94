// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * cumsum, cumprod, logcumsumexp. Blocks of a line are converted to the dtype in which is computed
 * (f64 for f32, f32 for f16 and bf16, i64 for integers), scanned, and converted to the output. If
 * neighbouring lines are closer in memory than the elements of a line, a tile of lines is scanned
 * row by row.
 */
#include "kernels/cpu/reduce/lines.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/formula/log_complex.h"
#include "kernels/cpu/simd/vec.h"

#include <math.h>

#define SHORT_LINE 32	/* elements of a line that is not scanned by vectors */
#define BLOCK	   1024 /* elements of a line, or lines of a tile */

/* The functions of a scan for one dtype. */
struct scanner {
	uint8_t dtype; /* in which is computed */
	/* Scans n elements from *carry on, which becomes the last result. The buffer has room for a
	 * whole number of vectors. */
	void (*line)(void *x, int64_t n, void *carry);
	/* Scans contiguous short lines of n elements. */
	void (*lines)(void *x, int64_t n, int64_t lines);
	/* Scans n lines: in each row, acc[i] and x[i] become the operation on both. */
	void (*rows)(void *acc, void *x, int64_t rows, int64_t n);
	/* Sets acc[0..n) to the identity. */
	void (*clear)(void *acc, int64_t n);
};

/* The indices of the lanes of a vector of T. */
#define LANE_INDEX(T) __builtin_choose_expr(sizeof(T) == 8, VEC_LANE_INDEX, VEC_LANE_INDEX_32)
/* A mask for __builtin_shuffle(v, w): the lanes of v moved up by n, after the first n of w. */
#define LANES_UP(T, n) \
	VEC_PICK(LANE_INDEX(T) < (n), LANE_INDEX(T) + VEC_BYTES / sizeof(T), LANE_INDEX(T) - (n))

#define SCAN	 cumsum
#define IDENTITY 0
#define OP(x, y) ((x) + (y))
#define FIRST(x) (x)
#include "kernels/cpu/reduce/scan_each.h"
#undef SCAN
#undef IDENTITY
#undef OP

#define SCAN	 cumprod
#define IDENTITY 1
#define OP(x, y) ((x) * (y))
#include "kernels/cpu/reduce/scan_each.h"
#undef SCAN
#undef IDENTITY
#undef OP
#undef FIRST

/* ---- logcumsumexp ---- */

/* log(e^a + e^b) */
static inline double log_add(double a, double b)
{
	double top = a > b || a != a ? a : b, low = a > b || a != a ? b : a;

	/* top is infinite, or a or b is NaN. */
	if (top - top != 0)
		return low != low ? low : top;
	return top + log1p(exp(low - top));
}

/*
 * Scans a block by vectors: exponentials relative to the maximum, their running sums, and
 * logarithms of these. Returns false, with x unchanged, if an element is not finite or if the
 * range is so wide that exponentials would underflow.
 */
static bool logcumsumexp_block(double *x, int64_t n, double *carry)
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
	cumsum_line_f64(x, n, &sum);
	for (int64_t i = n; i < whole; i++)
		x[i] = 1;
	for (int64_t i = 0; i < whole; i += VEC_F64)
		*(vec_f64 *)(x + i) = log_v64(*(vec_f64 *)(x + i)) + max;
	*carry = x[n - 1];
	return true;
}

static void logcumsumexp_line_f64(void *buf, int64_t n, void *carry)
{
	double *x = buf, sum = *(double *)carry;

	if (!(sum != sum) && sum != INFINITY && logcumsumexp_block(x, n, carry))
		return;
	for (int64_t i = 0; i < n; i++)
		x[i] = sum = log_add(sum, x[i]);
	*(double *)carry = sum;
}

#define SCAN	 logcumsumexp
#define IDENTITY -INFINITY
#define FIRST(x) OP(IDENTITY, x)

#define SCAN_OWN_LINE
#define OP(x, y) log_add(x, y)
#define T	 double
#define D	 TENSOR_F64
#define SUFFIX	 f64
#include "kernels/cpu/reduce/scan_loops.h"
#undef SCAN_OWN_LINE
#undef OP
#undef T
#undef D
#undef SUFFIX

#define OP(x, y) log_add_complex(x, y)
#define T	 double complex
#define D	 TENSOR_C128
#define SUFFIX	 c128
#include "kernels/cpu/reduce/scan_loops.h"

/* ---- lines ---- */

struct scan_job {
	const struct scanner *s;
	const struct reduce_iter *t; /* operands: out, self */
	enum tensor_dtype to, from;
	bool by_rows, contiguous; /* contiguous short lines */
};

static void scan_lines(const struct scan_job *j, char *const *data, int64_t lines)
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

/* Lines that is_contiguous_short() accepts: several are converted together. */
static void scan_short(const struct scan_job *j, char *o, const char *a, int64_t lines)
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

/* Whether lines are short and follow each other in both operands. */
static bool is_contiguous_short(const struct reduce_iter *t)
{
	int64_t n = t->along.size[0];

	return n <= SHORT_LINE && t->kept.stride[0][0] == n * t->along.stride[0][0] &&
	       t->kept.stride[1][0] == n * t->along.stride[1][0];
}

static void scan_tile(const struct scan_job *j, char *o, const char *a, int64_t cols)
{
	const struct reduce_iter *t = j->t;
	int64_t size = dtype_sizes[j->s->dtype], so = t->kept.stride[0][0],
		sa = t->kept.stride[1][0];
	int64_t step = t->along.stride[1][0], out_step = t->along.stride[0][0], rows = 1;
	_Alignas(64) char x[BLOCK * 16], acc[BLOCK * 16];

	/* Rows that follow each other in both operands are converted together. */
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
	const struct scan_job *j = ctx;
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t n; begin < end; begin += n) {
		n = lines_next(j->t, begin, end, j->by_rows ? BLOCK : INT64_MAX, data);
		if (j->by_rows)
			scan_tile(j, data[0], data[1], n);
		else if (j->contiguous)
			scan_short(j, data[0], data[1], n);
		else
			scan_lines(j, data, n);
	}
}

/* Whether the rows of all neighbouring lines follow each other in both operands. */
static bool rows_follow(const struct reduce_iter *t)
{
	int64_t cols = t->kept.size[0];

	return t->along.stride[0][0] == cols * t->kept.stride[0][0] &&
	       t->along.stride[1][0] == cols * t->kept.stride[1][0];
}

static int scan(const struct scanner *s, tensor *out, const tensor *self, int dim)
{
	struct scan_job j = { .s = s, .to = out->dtype, .from = self->dtype };
	const tensor *op[] = { out, self };
	struct reduce_iter t;

	if (!self->numel)
		return 0;
	reduce_iter_build(&t, op, 2, 1u << dim);
	/* A line of one element has any stride: that for which lines can be converted together. */
	for (int k = 0; t.along.size[0] == 1 && k < 2; k++)
		t.along.stride[k][0] = t.kept.stride[k][0];
	j.t = &t;
	j.by_rows = lines_by_rows(&t) || (lines_are_closer(&t) && rows_follow(&t));
	j.contiguous = is_contiguous_short(&t);
	parallel_for(0, t.kept.count, lines_grain(&t, j.by_rows), scan_chunk, &j);
	return 0;
}

/* As PyTorch, a scan is computed in the next wider dtype. */
static const struct scanner *scanner_for(enum tensor_dtype out, const struct scanner *const of[4])
{
	if (dtype_is_integral(out))
		return of[0];
	if (dtype_wide(out) != out)
		return of[1];
	return of[dtype_is_complex(out) ? 3 : 2];
}

static int cpu_cumsum(tensor *out, const tensor *self, int dim)
{
	static const struct scanner *const of[] = { &cumsum_i64, &cumsum_f32, &cumsum_f64,
						    &cumsum_c128 };

	return scan(scanner_for(out->dtype, of), out, self, dim);
}

static int cpu_cumprod(tensor *out, const tensor *self, int dim)
{
	static const struct scanner *const of[] = { &cumprod_i64, &cumprod_f32, &cumprod_f64,
						    &cumprod_c128 };

	return scan(scanner_for(out->dtype, of), out, self, dim);
}

static int cpu_logcumsumexp(tensor *out, const tensor *self, int dim)
{
	return scan(dtype_is_complex(out->dtype) ? &logcumsumexp_c128 : &logcumsumexp_f64, out,
		    self, dim);
}

CPU_KERNELS(KERNEL(cumsum), KERNEL(cumprod), KERNEL(logcumsumexp))
