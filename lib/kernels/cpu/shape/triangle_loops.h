/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The rows of triangle.c for one size of elements: triangle_rows_4() etc. Included by triangle.c
 * through each_size.h (no include guard), which defines T and SUFFIX.
 */

static void CPU_PASTE(triangle_rows, SUFFIX)(int64_t begin, int64_t end, void *ctx)
{
	const struct triangle *t = ctx;
	int last = t->out->ndim - 1;
	int64_t so = t->out->strides[last] * (int64_t)sizeof(T);
	int64_t ss = t->self->strides[last] * (int64_t)sizeof(T);
	bool dense = (so == sizeof(T) && ss == sizeof(T)) || t->columns == 1;
	const T zero = { 0 };

	for (int64_t r = begin; r < end; r++) {
		char *o = row_at(t->out, r);
		const char *s = row_at(t->self, r);
		int64_t cut = clamp(r % t->rows + t->k + !t->upper, t->columns);
		int64_t from = t->upper ? cut : 0, to = t->upper ? t->columns : cut;

		if (dense) {
			memset(o, 0, from * sizeof(T));
			if (o != s)
				memcpy((T *)o + from, (const T *)s + from, (to - from) * sizeof(T));
			memset((T *)o + to, 0, (t->columns - to) * sizeof(T));
			continue;
		}
		for (int64_t i = 0; i < t->columns; i++)
			*(T *)(o + i * so) = i >= from && i < to ? *(const T *)(s + i * ss) : zero;
	}
}
