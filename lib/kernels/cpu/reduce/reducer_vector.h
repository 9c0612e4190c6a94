/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The part of reducer_loops.h for contiguous elements, with vectors. */

enum { F(lanes) = VEC_BYTES / sizeof(A) };
typedef A F(vec) __attribute__((vector_size(VEC_BYTES), aligned(sizeof(A)), may_alias));
typedef T F(elements) __attribute__((vector_size(VEC_BYTES / sizeof(A) * sizeof(T)),
				     aligned(sizeof(T)), may_alias));

static inline __attribute__((always_inline)) F(vec) F(vop)(F(vec) x, F(vec) y)
{
	return VOP(x, y);
}

/* Vector k behind p, converted to A. */
static inline __attribute__((always_inline)) F(vec) F(load)(const char *p, int64_t k)
{
	F(vec) e = VLOAD(F(vec), ((const F(elements) *)p)[k]);

	return VGET(e);
}

/*
 * The result of two vectors. The compiler orders loads as it likes, and mostly backwards; the processor prefetches best
 * what is read in ascending order.
 */
static inline __attribute__((always_inline)) F(vec) F(two)(const char *p, int64_t step)
{
	F(vec) v = F(load)(p, 0);

	REDUCE_IN_ORDER(v);
	v = F(vop)(v, F(load)(p + step, 0));
	REDUCE_IN_ORDER(v);
	return v;
}

static inline __attribute__((always_inline)) F(vec) F(four)(const char *p, int64_t step)
{
	F(vec) v = F(two)(p, step), w = F(two)(p + 2 * step, step);

	return F(vop)(v, w);
}

/* The result of eight vectors that are `step` bytes apart. */
static inline __attribute__((always_inline)) F(vec) F(tree)(const char *p, int64_t step)
{
	F(vec) v = F(four)(p, step), w = F(four)(p + 4 * step, step);

	return F(vop)(v, w);
}

/* The result of all lanes. */
static inline __attribute__((always_inline)) A F(fold)(F(vec) a)
{
	if (VEC_BYTES >= 64)
		a = F(vop)(a, VEC_CROSS(F(vec), a, 4));
	if (VEC_BYTES >= 32)
		a = F(vop)(a, VEC_CROSS(F(vec), a, 2));
	a = F(vop)(a, VEC_CROSS(F(vec), a, 1));
	if (sizeof(A) <= 4)
		a = F(vop)(a, (F(vec))((vec_u64)a >> 32));
	if (sizeof(A) <= 2)
		a = F(vop)(a, (F(vec))((vec_u64)a >> 16));
	if (sizeof(A) <= 1)
		a = F(vop)(a, (F(vec))((vec_u64)a >> 8));
	return a[0];
}

/* The result of n >= F(lanes) contiguous elements, in four chains of operations. */
static inline A F(dense_line)(const char *p, int64_t n)
{
	enum { W = F(lanes), BYTES = sizeof(F(elements)) };
	F(vec) none = (F(vec)){ 0 } + (A)(IDENTITY), a = none, b = none, c = none;
	F(vec) d = none, last, blocks = none;

	while (n >= 32 * W) {
		int64_t m = n < BLOCK_VECTORS * W ? n / (32 * W) : BLOCK_VECTORS / 32;

		n -= m * 32 * W;
		for (; m > 0; m--, p += 32 * BYTES) {
			a = F(vop)(a, F(tree)(p, BYTES));
			b = F(vop)(b, F(tree)(p + 8 * BYTES, BYTES));
			c = F(vop)(c, F(tree)(p + 16 * BYTES, BYTES));
			d = F(vop)(d, F(tree)(p + 24 * BYTES, BYTES));
		}
		blocks = F(vop)(blocks, F(vop)(F(vop)(a, b), F(vop)(c, d)));
		a = b = c = d = none;
	}
	for (; n >= 4 * W; n -= 4 * W, p += 4 * BYTES) {
		a = F(vop)(a, F(load)(p, 0));
		b = F(vop)(b, F(load)(p, 1));
		c = F(vop)(c, F(load)(p, 2));
		d = F(vop)(d, F(load)(p, 3));
	}
	for (; n >= W; n -= W, p += BYTES)
		a = F(vop)(a, F(load)(p, 0));
	if (n) {
		last = F(load)(p - (W - n) * sizeof(T), 0);
		b = F(vop)(b, VEC_LAST(F(vec), last, none, n));
	}
	a = F(vop)(blocks, F(vop)(F(vop)(a, b), F(vop)(c, d)));
	return F(fold)(a);
}

/* Adds element c of each row to acc[c]; columns are contiguous. */
static inline __attribute__((always_inline)) void
F(dense_rows)(A *restrict acc, const char *restrict p, int64_t rows, int64_t rs, int64_t cols)
{
	enum { W = F(lanes) };

	for (; rows >= 8; rows -= 8, p += 8 * rs) {
		int64_t c = 0;

		for (; c + W <= cols; c += W) {
			F(vec) *a = (F(vec) *)(acc + c);

			*a = F(vop)(*a, F(tree)(p + c * sizeof(T), rs));
		}
		for (; c < cols; c++) {
			const char *q = p + c * sizeof(T);

			acc[c] = F(op)(acc[c], F(eight)(q, rs));
		}
	}
	for (; rows > 0; rows--, p += rs)
		for (int64_t c = 0; c < cols; c++)
			acc[c] = F(op)(acc[c], F(get)(((const T *)p)[c]));
}
