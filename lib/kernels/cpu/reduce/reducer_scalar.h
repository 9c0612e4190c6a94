/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The part of reducer_loops.h for contiguous elements, without vectors. */

enum { F(lanes) = 8 };

/* The result of n contiguous elements, in eight chains of operations. */
static inline A F(dense_line)(const char *p, int64_t n)
{
	A lane[8];

	F(clear)(lane, 8);
	for (; n >= LANES; n -= LANES, p += LANES * sizeof(T))
		for (int64_t k = 0; k < 8; k++)
			lane[k] = F(op)(lane[k], F(eight)(p + k * sizeof(T), 8 * sizeof(T)));
	for (; n > 0; n--, p += sizeof(T))
		lane[n % 8] = F(op)(lane[n % 8], F(get)(*(const T *)p));
	for (int64_t half = 4; half; half /= 2)
		for (int64_t k = 0; k < half; k++)
			lane[k] = F(op)(lane[k], lane[k + half]);
	return lane[0];
}

/* Adds element c of each row to a[c]; columns are contiguous. */
static void F(dense_rows)(A *restrict a, const char *restrict p, int64_t rows, int64_t rs,
			  int64_t cols)
{
	for (; rows >= 8; rows -= 8, p += 8 * rs)
		for (int64_t c = 0; c < cols; c++)
			a[c] = F(op)(a[c], F(eight)(p + c * sizeof(T), rs));
	for (; rows > 0; rows--, p += rs)
		for (int64_t c = 0; c < cols; c++)
			a[c] = F(op)(a[c], F(get)(((const T *)p)[c]));
}
