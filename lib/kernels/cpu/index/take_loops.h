/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of take.c for one size of elements: take_4() etc. and the functions they call. Included
 * by take.c through each_size.h (no include guard), which defines T and SUFFIX. Strides are in
 * bytes.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* wrap is added to negative indices. Returns false at an index that is not below limit then. */
static inline bool F(take_dense_row)(T *to, const char *s, const volatile int64_t *index,
				     int64_t len, uint64_t limit, int64_t wrap, int64_t step)
{
	for (int64_t i = 0; i < len; i++) {
		int64_t at = index[i];

		at += at >> 63 & wrap;
		if (unlikely((uint64_t)at >= limit))
			return false;
		to[i] = *(const T *)(s + at * step);
	}
	return true;
}

/* The common case: one dimension, contiguous i64 indices and results, stride 0 in self. */
static __attribute__((noinline)) bool F(take_dense)(struct indices *x, char *o, const char *s,
						    const char *index, int64_t len)
{
	const volatile int64_t *from = (const volatile int64_t *)index;
	int64_t limit = x->limit[0], wrap = x->wrap ? limit : 0, step = x->step[0];
	bool in_range = step == sizeof(T) && !wrap ?
				F(take_dense_row)((T *)o, s, from, len, limit, 0, sizeof(T)) :
				F(take_dense_row)((T *)o, s, from, len, limit, wrap, step);

	if (unlikely(!in_range))
		x->bad = true;
	return in_range;
}

/* A row of len elements, from offsets at[]. */
static __attribute__((noinline)) void F(take_row)(char *o, const char *s, int64_t so, int64_t ss,
						  const int64_t *at, int64_t len)
{
	for (int64_t i = 0; i < len; i++)
		*(T *)(o + i * so) = *(const T *)(s + i * ss + at[i]);
}

/* A row of len elements of one index. */
static void F(take_same_index)(char *o, const char *s, int64_t so, int64_t ss, int64_t len)
{
	if (so == sizeof(T) && ss == sizeof(T))
		copy_bytes(o, s, len * (int64_t)sizeof(T));
	else
		for (int64_t i = 0; i < len; i++)
			*(T *)(o + i * so) = *(const T *)(s + i * ss);
}

static void F(take)(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, int64_t n1,
		    const void *params)
{
	struct indices *x = (struct indices *)params;
	int64_t at[INDEX_BLOCK];

	if (s0[0] == sizeof(T) && s0[1] == sizeof(int64_t) && !s0[2] && !x->narrow && x->n == 1) {
		for (int64_t j = 0; j < n1; j++)
			if (!F(take_dense)(x, data[0] + j * s1[0], data[2] + j * s1[2],
					   data[1] + j * s1[1], n0))
				return;
		return;
	}
	for (int64_t j = 0; j < n1 && s0[1]; j++)
		for (int64_t i = 0, len; i < n0; i += len) {
			char *o = data[0] + j * s1[0] + i * s0[0];
			const char *s = data[2] + j * s1[2] + i * s0[2];
			const char *from = data[1] + j * s1[1] + i * s0[1];

			len = n0 - i < INDEX_BLOCK ? n0 - i : INDEX_BLOCK;
			if (!indices_fetch(x, from, s0[1], len, at))
				return;
			F(take_row)(o, s, s0[0], s0[2], at, len);
		}
	for (int64_t j = 0, rows; j < n1 && !s0[1]; j += rows) {
		rows = n1 - j < INDEX_BLOCK ? n1 - j : INDEX_BLOCK;
		if (!indices_fetch(x, data[1] + j * s1[1], s1[1], rows, at))
			return;
		for (int64_t r = 0; r < rows; r++) {
			char *o = data[0] + (j + r) * s1[0];
			const char *s = data[2] + (j + r) * s1[2] + at[r];

			F(take_same_index)(o, s, s0[0], s0[2], n0);
		}
	}
}

/* Blocks that have the same indices: their offsets are computed once. */
static void F(take_same_blocks)(const struct take_blocks *b, int64_t begin, int64_t end)
{
	int64_t bytes = b->inner * (int64_t)sizeof(T), rows = b->n / b->inner;
	int64_t at[INDEX_BLOCK], from[INDEX_BLOCK];

	if (!indices_fetch(b->x, b->index, b->stride, rows, at))
		return;
	for (int64_t j = begin; j < end && bytes >= COPIED_ROW; j++)
		for (int64_t r = 0; r < rows; r++)
			copy_bytes(b->out + (j * rows + r) * bytes, b->self + j * b->span + at[r],
				   bytes);
	if (bytes >= COPIED_ROW)
		return;
	for (int64_t i = 0; i < b->n; i++)
		from[i] = at[i / b->inner] + i % b->inner * (int64_t)sizeof(T);
	for (int64_t j = begin; j < end; j++)
		for (int64_t i = 0; i < b->n; i++)
			((T *)b->out)[j * b->n + i] = *(const T *)(b->self + j * b->span + from[i]);
}

static void F(take_blocks)(int64_t begin, int64_t end, void *ctx)
{
	const struct take_blocks *b = ctx;
	int64_t at[INDEX_BLOCK], column[INDEX_BLOCK], n = b->n, many = INDEX_BLOCK / n;

	if (b->stride) {
		F(take_same_blocks)(b, begin, end);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		column[i] = i % b->inner * (int64_t)sizeof(T);
	for (int64_t j = begin, m; j < end; j += m) {
		int64_t size = b->x->narrow ? sizeof(int32_t) : sizeof(int64_t);

		m = end - j < many ? end - j : many;
		if (!indices_fetch(b->x, b->index + j * n * size, size, m * n, at))
			return;
		for (int64_t r = 0; r < m; r++) {
			const char *s = b->self + (j + r) * b->span;
			T *to = (T *)b->out + (j + r) * n;

			for (int64_t i = 0; i < n; i++)
				to[i] = *(const T *)(s + column[i] + at[r * n + i]);
		}
	}
}

#undef F
