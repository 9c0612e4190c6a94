/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A reducer for one operation and one dtype: struct reducer NAME_DTYPE (sum_f32), and its functions
 * (sum_rows_f32). Included once for each dtype (no include guard), mostly through each_int.h,
 * each_float.h and each_complex.h, which define T, D, SUFFIX and LOAD(x). The includer defines
 *
 *   REDUCER          the name of the operation
 *   A, GIVES         the type of accumulators, and its dtype, that of the result
 *   IDENTITY         the accumulator of no elements
 *   GET(e)           the contribution of element e, which is converted to A
 *   OP(x, y)         the associative operation on two accumulators
 *   VGET(e), VOP(x, y)  the same on vectors
 *   VLOAD(V, e)      converts a vector of elements to V, a vector of accumulators
 *
 * and REDUCER_SCALAR for types that have no vectors; VGET, VOP and VLOAD are not used then.
 * reducer_end.h undefines these macros.
 */
#define F(name) CPU_PASTE(CPU_PASTE(REDUCER, name), SUFFIX)

static inline A F(op)(A x, A y)
{
	return OP(x, y);
}

static inline A F(get)(T element)
{
	A e = (A)LOAD(element);

	return GET(e);
}

static void F(clear)(void *acc, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		((A *)acc)[i] = (IDENTITY);
}

static void F(combine)(void *acc, const void *other, int64_t n)
{
	A *restrict a = acc;
	const A *restrict b = other;

	for (int64_t i = 0; i < n; i++)
		a[i] = F(op)(a[i], b[i]);
}

/* The result of eight elements that are s bytes apart. */
static inline A F(eight)(const char *p, int64_t s)
{
	A e[8];

	for (int k = 0; k < 8; k++)
		e[k] = F(get)(*(const T *)(p + k * s));
	return F(op)(F(op)(F(op)(e[0], e[1]), F(op)(e[2], e[3])),
		     F(op)(F(op)(e[4], e[5]), F(op)(e[6], e[7])));
}

#ifdef REDUCER_SCALAR
#include "kernels/cpu/reduce/reducer_scalar.h"
#else
#include "kernels/cpu/reduce/reducer_vector.h"
#endif

/* Strided columns, copied to a contiguous block first. */
static void F(strided_rows)(A *acc, const char *p, int64_t rows, int64_t rs, int64_t cols,
			    int64_t cs)
{
	T e[CHUNK_ROWS * CHUNK_COLS];

	for (int64_t c = 0; c < cols; c++)
		for (int64_t r = 0; r < rows; r++)
			e[r * CHUNK_COLS + c] = *(const T *)(p + c * cs + r * rs);
	F(dense_rows)(acc, (const char *)e, rows, CHUNK_COLS * sizeof(T), cols);
}

static void F(rows)(void *acc, const char *p, int64_t rows, int64_t rs, int64_t cols, int64_t cs)
{
	A *a = acc;

	if (cs == sizeof(T)) {
		F(dense_rows)(a, p, rows, rs, cols);
		return;
	}
	for (int64_t c = 0; c < cols; c += CHUNK_COLS) {
		int64_t n = cols - c < CHUNK_COLS ? cols - c : CHUNK_COLS;

		for (int64_t r = 0; r < rows; r += CHUNK_ROWS) {
			int64_t m = rows - r < CHUNK_ROWS ? rows - r : CHUNK_ROWS;

			F(strided_rows)(a + c, p + c * cs + r * rs, m, rs, n, cs);
		}
	}
}

/* The result of n contiguous elements. */
static A F(short_line)(const T *p, int64_t n)
{
	A sum = (IDENTITY);

	if (n >= F(lanes))
		return F(dense_line)((const char *)p, n);
	for (int64_t i = 0; i < n; i++)
		sum = F(op)(sum, F(get)(p[i]));
	return sum;
}

/* The result of n elements that are s bytes apart. */
static A F(strided_line)(const char *p, int64_t n, int64_t s)
{
	T e[CHUNK_ROWS * CHUNK_COLS];
	A sum = (IDENTITY);

	for (int64_t m; n > 0; n -= m, p += m * s) {
		m = n < CHUNK_ROWS * CHUNK_COLS ? n : CHUNK_ROWS * CHUNK_COLS;
		if (s == 2 * sizeof(T)) /* vectorized */
			for (int64_t i = 0; i < m; i++)
				e[i] = ((const T *)p)[2 * i];
		else
			for (int64_t i = 0; i < m; i++)
				e[i] = *(const T *)(p + i * s);
		sum = F(op)(sum, F(short_line)(e, m));
	}
	return sum;
}

static void F(lines)(void *acc, const char *p, int64_t lines, int64_t ls, int64_t n, int64_t s)
{
	A *a = acc;

	if (s == sizeof(T) && n >= F(lanes))
		for (int64_t l = 0; l < lines; l++)
			a[l] = F(op)(a[l], F(dense_line)(p + l * ls, n));
	else if (s == sizeof(T))
		for (int64_t l = 0; l < lines; l++)
			a[l] = F(op)(a[l], F(short_line)((const T *)(p + l * ls), n));
	else
		for (int64_t l = 0; l < lines; l++)
			a[l] = F(op)(a[l], F(strided_line)(p + l * ls, n, s));
}

static const struct reducer CPU_PASTE(REDUCER, SUFFIX) = {
	sizeof(A), D, GIVES, F(clear), F(combine), F(rows), F(lines),
};

#undef F
