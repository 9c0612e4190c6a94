// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tril and triu: each row is a part that is kept and a part of zeros. */
#include "kernels/abi/pad.h"
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

struct triangle {
	const tensor *out, *self;
	int64_t k, rows, columns;
	bool upper;
};

static char *row_at(const tensor *t, int64_t row)
{
	char *p = t->data;

	for (int d = t->ndim - 2; d >= 0; d--) {
		p += row % t->sizes[d] * t->strides[d] * (int64_t)itemsize(t);
		row /= t->sizes[d];
	}
	return p;
}

static int64_t clamp(int64_t v, int64_t high)
{
	return v < 0 ? 0 : v > high ? high : v;
}

struct bits16 {
	uint64_t w[2];
};

#define TRIANGLE(n, T)                                                                         \
	static void rows_##n(int64_t begin, int64_t end, void *ctx)                            \
	{                                                                                      \
		const struct triangle *t = ctx;                                                \
		int last = t->out->ndim - 1;                                                   \
		int64_t so = t->out->strides[last] * (int64_t)sizeof(T);                       \
		int64_t ss = t->self->strides[last] * (int64_t)sizeof(T);                      \
		bool dense = (so == sizeof(T) && ss == sizeof(T)) || t->columns == 1;          \
		const T zero = { 0 };                                                          \
                                                                                               \
		for (int64_t r = begin; r < end; r++) {                                        \
			char *o = row_at(t->out, r);                                           \
			const char *s = row_at(t->self, r);                                    \
			int64_t cut = clamp(r % t->rows + t->k + !t->upper, t->columns);       \
			int64_t from = t->upper ? cut : 0, to = t->upper ? t->columns : cut;   \
                                                                                               \
			if (dense) {                                                           \
				memset(o, 0, from * sizeof(T));                                \
				if (o != s)                                                    \
					memcpy((T *)o + from, (const T *)s + from,             \
					       (to - from) * sizeof(T));                       \
				memset((T *)o + to, 0, (t->columns - to) * sizeof(T));         \
				continue;                                                      \
			}                                                                      \
			for (int64_t i = 0; i < t->columns; i++)                               \
				*(T *)(o + i * so) =                                           \
					i >= from && i < to ? *(const T *)(s + i * ss) : zero; \
		}                                                                              \
	}
TRIANGLE(1, uint8_t)
TRIANGLE(2, uint16_t)
TRIANGLE(4, uint32_t)
TRIANGLE(8, uint64_t)
TRIANGLE(16, struct bits16)

static int cpu_triangle(tensor *out, const tensor *self, int64_t k, bool upper)
{
	static const parallel_fn fn[] = { rows_1, rows_2, rows_4, rows_8, rows_16 };
	struct triangle t = { out,  self, k, out->sizes[out->ndim - 2], out->sizes[out->ndim - 1],
			      upper };
	int64_t limit = t.rows + t.columns;

	if (!out->numel)
		return 0;
	t.k = k < -limit ? -limit : k > limit ? limit : k;
	parallel_for(0, out->numel / t.columns, ITER_GRAIN / t.columns + 1,
		     fn[__builtin_ctz((unsigned)itemsize(out))], &t);
	return 0;
}

CPU_KERNELS(K(triangle))
