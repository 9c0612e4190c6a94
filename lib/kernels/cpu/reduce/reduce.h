/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What a reduction is to the tree in reduce.c: how elements are taken in, how two results are
 * joined, what the end result is. REDUCER makes one from an associative operation.
 */
#ifndef TENSOR_CPU_REDUCE_H
#define TENSOR_CPU_REDUCE_H

#include "base/reduced_float.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec.h"

#define LANES	      64		 /* running values of a line, at most */
#define LINE_MAX      (1024 * VEC_BYTES) /* elements of a line before it is halved */
#define BLOCK_VECTORS 512 /* of a line that are summed up before their sum is added to others */
#define CHUNK_COLS    64  /* of what is turned round, or collected, to lie side by side */
#define CHUNK_ROWS    8
#define ACC_MAX	      32 /* bytes of an accumulator */

/* Elements of another dtype, or as something else, to a dense buffer; stride in bytes. */
typedef void (*reduce_fetch)(void *to, const char *from, enum tensor_dtype dtype, int64_t stride,
			     int64_t n, double p);

/* What differs by operator and dtype. */
struct reducer {
	size_t size;	      /* of an accumulator */
	uint8_t takes, gives; /* dtypes: of the elements, of the result */
	/* acc[0..n) becomes the value that changes nothing. */
	void (*clear)(void *acc, int64_t n);
	/* acc[i] takes in other[i]. */
	void (*combine)(void *acc, const void *other, int64_t n);
	/* acc[c] takes in element c of each row; strides in bytes. */
	void (*rows)(void *acc, const char *p, int64_t rows, int64_t row_stride, int64_t cols,
		     int64_t col_stride);
	/* acc[l] takes in the n elements of line l. */
	void (*lines)(void *acc, const char *p, int64_t lines, int64_t line_stride, int64_t n,
		      int64_t stride);
};

struct reduction {
	const struct reducer *r;
	/* Needed where elements are not what r takes; NULL: converted by dtype. */
	reduce_fetch fetch;
	/* result[i] from acc[i], n of them, over `count` elements each. NULL: acc is the result.
	 * The two may be the same memory. */
	void (*finish)(void *result, const void *acc, int64_t n, int64_t count, double p);
	double p; /* for fetch and finish */
};

/* out as kernels of reductions get it. */
int CPU_NAME(reduce)(const struct reduction *what, tensor *out, const tensor *self, uint32_t dims);

/* The lines of a reducer that has a function for one. */
#define EACH_LINE(NAME, SIZE)                                                                    \
	static void NAME##_lines(void *acc, const char *p, int64_t lines, int64_t ls, int64_t n, \
				 int64_t s)                                                      \
	{                                                                                        \
		for (int64_t l = 0; l < lines; l++, p += ls)                                     \
			NAME##_line((char *)acc + l * (SIZE), p, n, s);                          \
	}

/*
 * REDUCER: elements of type T, accumulators of type A. GET is what element e adds, EXPR joins x
 * and y; VGET and VEXPR are the same of vectors, where the two differ. FORM says how an element
 * is read: SAME_ as it is, BF16_.
 */
#define REDUCER(NAME, T, TAKES, A, GIVES, IDENTITY, GET, EXPR) \
	REDUCER_OF(SAME_, NAME, T, TAKES, A, GIVES, IDENTITY, GET, GET, EXPR, EXPR)
#define REDUCER_OF(FORM, NAME, T, TAKES, A, GIVES, IDENTITY, GET, VGET, EXPR, VEXPR) \
	REDUCER_PLAIN_PART(FORM, NAME, T, A, IDENTITY, GET, EXPR)                    \
	REDUCER_VECTOR_PART(FORM, NAME, T, A, IDENTITY, VGET, VEXPR)                 \
	REDUCER_LAST_PART(NAME, T, TAKES, A, GIVES)
/* For what vectors are not made of. */
#define REDUCER_SCALAR(NAME, T, TAKES, A, GIVES, IDENTITY, GET, EXPR) \
	REDUCER_PLAIN_PART(SAME_, NAME, T, A, IDENTITY, GET, EXPR)    \
	REDUCER_SCALAR_PART(NAME, T, A)                               \
	REDUCER_LAST_PART(NAME, T, TAKES, A, GIVES)

typedef uint64_t vec_u64u __attribute__((vector_size(VEC_BYTES), aligned(1), may_alias));

#define SAME_scalar(A, e) ((A)(e))
#define SAME_vector(V, e) __builtin_convertvector(e, V)
#define BF16_scalar(A, e) bf16_to_f32(e)
#define BF16_vector(V, e) ((V)(__builtin_convertvector(e, vec_u32) << 16))

/* The last n lanes of v, behind those of `none`. */
static const uint8_t reduce_mask[2 * VEC_BYTES] = {
	[VEC_BYTES... 2 * VEC_BYTES - 1] = 0xff,
};
#define VEC_LAST(V, v, none, n) \
	PICK(*(const vec_u64u *)(reduce_mask + (n) * sizeof((v)[0])), v, none)

/* Lanes of a where c, else of b: for VEXPR. */
#define PICK(c, a, b) ((__typeof__(a))(((__typeof__(c))(a) & (c)) | ((__typeof__(c))(b) & ~(c))))

#define REDUCER_PLAIN_PART(FORM, NAME, T, A, IDENTITY, GET, EXPR)                          \
	static inline A NAME##_op(A x, A y)                                                \
	{                                                                                  \
		return (EXPR);                                                             \
	}                                                                                  \
                                                                                           \
	static inline A NAME##_get(T element)                                              \
	{                                                                                  \
		A e = FORM##scalar(A, element);                                            \
                                                                                           \
		return (GET);                                                              \
	}                                                                                  \
                                                                                           \
	static void NAME##_clear(void *acc, int64_t n)                                     \
	{                                                                                  \
		for (int64_t i = 0; i < n; i++)                                            \
			((A *)acc)[i] = (IDENTITY);                                        \
	}                                                                                  \
                                                                                           \
	static void NAME##_combine(void *acc, const void *other, int64_t n)                \
	{                                                                                  \
		A *restrict a = acc;                                                       \
		const A *restrict b = other;                                               \
                                                                                           \
		for (int64_t i = 0; i < n; i++)                                            \
			a[i] = NAME##_op(a[i], b[i]);                                      \
	}                                                                                  \
                                                                                           \
	/* Eight elements, s bytes apart. */                                               \
	static inline A NAME##_eight(const char *p, int64_t s)                             \
	{                                                                                  \
		A e[8];                                                                    \
                                                                                           \
		for (int k = 0; k < 8; k++)                                                \
			e[k] = NAME##_get(*(const T *)(p + k * s));                        \
		return NAME##_op(NAME##_op(NAME##_op(e[0], e[1]), NAME##_op(e[2], e[3])),  \
				 NAME##_op(NAME##_op(e[4], e[5]), NAME##_op(e[6], e[7]))); \
	}

/*
 * Whole vectors of accumulators, four of them on the way through a line; eight vectors are joined
 * as a tree before one of the four is touched. What is left of a line is its last vector, without
 * the lanes that were taken before.
 */
#define REDUCER_VECTOR_PART(FORM, NAME, T, A, IDENTITY, VGET, VEXPR)                               \
	enum { NAME##_long = VEC_BYTES / sizeof(A) };                                              \
	typedef A NAME##_v __attribute__((vector_size(VEC_BYTES), aligned(sizeof(A)), may_alias)); \
	typedef T NAME##_t __attribute__((vector_size(VEC_BYTES / sizeof(A) * sizeof(T)),          \
					  aligned(sizeof(T)), may_alias));                         \
                                                                                                   \
	static inline __attribute__((always_inline)) NAME##_v NAME##_vop(NAME##_v x, NAME##_v y)   \
	{                                                                                          \
		return (VEXPR);                                                                    \
	}                                                                                          \
                                                                                                   \
	/* Vector k from p. */                                                                     \
	static inline __attribute__((always_inline)) NAME##_v NAME##_at(const char *p, int64_t k)  \
	{                                                                                          \
		NAME##_v e = FORM##vector(NAME##_v, ((const NAME##_t *)p)[k]);                     \
                                                                                                   \
		return (VGET);                                                                     \
	}                                                                                          \
                                                                                                   \
	/* Eight, `step` bytes apart. */                                                           \
	static inline __attribute__((always_inline))                                               \
	NAME##_v NAME##_tree(const char *p, int64_t step)                                          \
	{                                                                                          \
		return NAME##_vop(NAME##_vop(NAME##_vop(NAME##_at(p, 0), NAME##_at(p + step, 0)),  \
					     NAME##_vop(NAME##_at(p + 2 * step, 0),                \
							NAME##_at(p + 3 * step, 0))),              \
				  NAME##_vop(NAME##_vop(NAME##_at(p + 4 * step, 0),                \
							NAME##_at(p + 5 * step, 0)),               \
					     NAME##_vop(NAME##_at(p + 6 * step, 0),                \
							NAME##_at(p + 7 * step, 0))));             \
	}                                                                                          \
                                                                                                   \
	static inline A NAME##_dense_line(const char *p, int64_t n)                                \
	{                                                                                          \
		enum { W = NAME##_long, BYTES = sizeof(NAME##_t) };                                \
		NAME##_v none = (NAME##_v){ 0 } + (A)(IDENTITY), a = none, b = none, c = none;     \
		NAME##_v d = none, last, blocks = none;                                            \
                                                                                                   \
		while (n >= 32 * W) {                                                              \
			int64_t m = n < BLOCK_VECTORS * W ? n / (32 * W) : BLOCK_VECTORS / 32;     \
                                                                                                   \
			n -= m * 32 * W;                                                           \
			for (; m > 0; m--, p += 32 * BYTES) {                                      \
				a = NAME##_vop(a, NAME##_tree(p, BYTES));                          \
				b = NAME##_vop(b, NAME##_tree(p + 8 * BYTES, BYTES));              \
				c = NAME##_vop(c, NAME##_tree(p + 16 * BYTES, BYTES));             \
				d = NAME##_vop(d, NAME##_tree(p + 24 * BYTES, BYTES));             \
			}                                                                          \
			blocks = NAME##_vop(blocks,                                                \
					    NAME##_vop(NAME##_vop(a, b), NAME##_vop(c, d)));       \
			a = b = c = d = none;                                                      \
		}                                                                                  \
		for (; n >= 4 * W; n -= 4 * W, p += 4 * BYTES) {                                   \
			a = NAME##_vop(a, NAME##_at(p, 0));                                        \
			b = NAME##_vop(b, NAME##_at(p, 1));                                        \
			c = NAME##_vop(c, NAME##_at(p, 2));                                        \
			d = NAME##_vop(d, NAME##_at(p, 3));                                        \
		}                                                                                  \
		for (; n >= W; n -= W, p += BYTES)                                                 \
			a = NAME##_vop(a, NAME##_at(p, 0));                                        \
		if (n) {                                                                           \
			last = NAME##_at(p - (W - n) * sizeof(T), 0);                              \
			b = NAME##_vop(b, VEC_LAST(NAME##_v, last, none, n));                      \
		}                                                                                  \
		a = NAME##_vop(blocks, NAME##_vop(NAME##_vop(a, b), NAME##_vop(c, d)));            \
		if (VEC_BYTES >= 64)                                                               \
			a = NAME##_vop(a, VEC_CROSS(NAME##_v, a, 4));                              \
		if (VEC_BYTES >= 32)                                                               \
			a = NAME##_vop(a, VEC_CROSS(NAME##_v, a, 2));                              \
		a = NAME##_vop(a, VEC_CROSS(NAME##_v, a, 1));                                      \
		if (sizeof(A) <= 4)                                                                \
			a = NAME##_vop(a, (NAME##_v)((vec_u64)a >> 32));                           \
		if (sizeof(A) <= 2)                                                                \
			a = NAME##_vop(a, (NAME##_v)((vec_u64)a >> 16));                           \
		if (sizeof(A) <= 1)                                                                \
			a = NAME##_vop(a, (NAME##_v)((vec_u64)a >> 8));                            \
		return a[0];                                                                       \
	}                                                                                          \
                                                                                                   \
	/* acc[c] takes in element c of each row. */                                               \
	static inline __attribute__((always_inline)) void NAME##_dense(                            \
		A *restrict acc, const char *restrict p, int64_t rows, int64_t rs, int64_t cols)   \
	{                                                                                          \
		enum { W = NAME##_long };                                                          \
                                                                                                   \
		for (; rows >= 8; rows -= 8, p += 8 * rs) {                                        \
			int64_t c = 0;                                                             \
                                                                                                   \
			for (; c + W <= cols; c += W) {                                            \
				NAME##_v *a = (NAME##_v *)(acc + c);                               \
                                                                                                   \
				*a = NAME##_vop(*a, NAME##_tree(p + c * sizeof(T), rs));           \
			}                                                                          \
			for (; c < cols; c++) {                                                    \
				const char *q = p + c * sizeof(T);                                 \
                                                                                                   \
				acc[c] = NAME##_op(acc[c], NAME##_eight(q, rs));                   \
			}                                                                          \
		}                                                                                  \
		for (; rows > 0; rows--, p += rs)                                                  \
			for (int64_t c = 0; c < cols; c++)                                         \
				acc[c] = NAME##_op(acc[c], NAME##_get(((const T *)p)[c]));         \
	}

#define REDUCER_SCALAR_PART(NAME, T, A)                                                           \
	enum { NAME##_long = 8 };                                                                 \
                                                                                                  \
	static inline A NAME##_dense_line(const char *p, int64_t n)                               \
	{                                                                                         \
		A lane[8];                                                                        \
                                                                                                  \
		NAME##_clear(lane, 8);                                                            \
		for (; n >= LANES; n -= LANES, p += LANES * sizeof(T))                            \
			for (int64_t k = 0; k < 8; k++)                                           \
				lane[k] = NAME##_op(lane[k], NAME##_eight(p + k * sizeof(T),      \
									  8 * sizeof(T)));        \
		for (; n > 0; n--, p += sizeof(T))                                                \
			lane[n % 8] = NAME##_op(lane[n % 8], NAME##_get(*(const T *)p));          \
		for (int64_t half = 4; half; half /= 2)                                           \
			for (int64_t k = 0; k < half; k++)                                        \
				lane[k] = NAME##_op(lane[k], lane[k + half]);                     \
		return lane[0];                                                                   \
	}                                                                                         \
                                                                                                  \
	static void NAME##_dense(A *restrict a, const char *restrict p, int64_t rows, int64_t rs, \
				 int64_t cols)                                                    \
	{                                                                                         \
		for (; rows >= 8; rows -= 8, p += 8 * rs)                                         \
			for (int64_t c = 0; c < cols; c++)                                        \
				a[c] = NAME##_op(a[c], NAME##_eight(p + c * sizeof(T), rs));      \
		for (; rows > 0; rows--, p += rs)                                                 \
			for (int64_t c = 0; c < cols; c++)                                        \
				a[c] = NAME##_op(a[c], NAME##_get(((const T *)p)[c]));            \
	}

#define REDUCER_LAST_PART(NAME, T, TAKES, A, GIVES)                                               \
	/* Columns that do not lie side by side. */                                               \
	static void NAME##_turned(A *acc, const char *p, int64_t rows, int64_t rs, int64_t cols,  \
				  int64_t cs)                                                     \
	{                                                                                         \
		T e[CHUNK_ROWS * CHUNK_COLS];                                                     \
                                                                                                  \
		for (int64_t c = 0; c < cols; c++)                                                \
			for (int64_t r = 0; r < rows; r++)                                        \
				e[r * CHUNK_COLS + c] = *(const T *)(p + c * cs + r * rs);        \
		NAME##_dense(acc, (const char *)e, rows, CHUNK_COLS * sizeof(T), cols);           \
	}                                                                                         \
                                                                                                  \
	static void NAME##_rows(void *acc, const char *p, int64_t rows, int64_t rs, int64_t cols, \
				int64_t cs)                                                       \
	{                                                                                         \
		A *a = acc;                                                                       \
                                                                                                  \
		if (cs == sizeof(T)) {                                                            \
			NAME##_dense(a, p, rows, rs, cols);                                       \
			return;                                                                   \
		}                                                                                 \
		for (int64_t c = 0; c < cols; c += CHUNK_COLS)                                    \
			for (int64_t r = 0; r < rows; r += CHUNK_ROWS)                            \
				NAME##_turned(a + c, p + c * cs + r * rs,                         \
					      rows - r < CHUNK_ROWS ? rows - r : CHUNK_ROWS, rs,  \
					      cols - c < CHUNK_COLS ? cols - c : CHUNK_COLS, cs); \
	}                                                                                         \
                                                                                                  \
	static A NAME##_short_line(const T *p, int64_t n)                                         \
	{                                                                                         \
		A sum;                                                                            \
                                                                                                  \
		if (n >= NAME##_long)                                                             \
			return NAME##_dense_line((const char *)p, n);                             \
		NAME##_clear(&sum, 1);                                                            \
		for (int64_t i = 0; i < n; i++)                                                   \
			sum = NAME##_op(sum, NAME##_get(p[i]));                                   \
		return sum;                                                                       \
	}                                                                                         \
                                                                                                  \
	static A NAME##_strided_line(const char *p, int64_t n, int64_t s)                         \
	{                                                                                         \
		T e[CHUNK_ROWS * CHUNK_COLS];                                                     \
		A sum;                                                                            \
                                                                                                  \
		NAME##_clear(&sum, 1);                                                            \
		for (int64_t m; n > 0; n -= m, p += m * s) {                                      \
			m = n < CHUNK_ROWS * CHUNK_COLS ? n : CHUNK_ROWS * CHUNK_COLS;            \
			for (int64_t i = 0; i < m; i++)                                           \
				e[i] = *(const T *)(p + i * s);                                   \
			sum = NAME##_op(sum, NAME##_short_line(e, m));                            \
		}                                                                                 \
		return sum;                                                                       \
	}                                                                                         \
                                                                                                  \
	static void NAME##_lines(void *acc, const char *p, int64_t lines, int64_t ls, int64_t n,  \
				 int64_t s)                                                       \
	{                                                                                         \
		A *a = acc;                                                                       \
                                                                                                  \
		if (s == sizeof(T) && n >= NAME##_long)                                           \
			for (int64_t l = 0; l < lines; l++)                                       \
				a[l] = NAME##_op(a[l], NAME##_dense_line(p + l * ls, n));         \
		else if (s == sizeof(T))                                                          \
			for (int64_t l = 0; l < lines; l++)                                       \
				a[l] = NAME##_op(a[l],                                            \
						 NAME##_short_line((const T *)(p + l * ls), n));  \
		else                                                                              \
			for (int64_t l = 0; l < lines; l++)                                       \
				a[l] = NAME##_op(a[l], NAME##_strided_line(p + l * ls, n, s));    \
	}                                                                                         \
                                                                                                  \
	static const struct reducer NAME = {                                                      \
		sizeof(A), TAKES, GIVES, NAME##_clear, NAME##_combine, NAME##_rows, NAME##_lines, \
	};

#endif
