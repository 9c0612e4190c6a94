// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_select, gather, and self[i, j]: bits move from where indices say. All are one walk: of
 * the output, of the indices, and of self with stride 0 in the indexed dimensions, where the
 * index's value times the stride is added. index_select is the case where the index does not
 * change along a row.
 */
#include "kernels/cpu/index/indices.h"

#include "iter/copy_bytes.h"

struct bits16 {
	uint64_t w[2];
};

/* The usual gather, without a detour: i64 indices and results side by side. */
#define TAKE(SZ, T)                                                                                \
	static inline bool take_dense_##SZ(T *to, const char *s, const volatile int64_t *index,    \
					   int64_t len, uint64_t limit, int64_t wrap,              \
					   int64_t step)                                           \
	{                                                                                          \
		for (int64_t i = 0; i < len; i++) {                                                \
			int64_t at = index[i];                                                     \
                                                                                                   \
			at += at >> 63 & wrap;                                                     \
			if (unlikely((uint64_t)at >= limit))                                       \
				return false;                                                      \
			to[i] = *(const T *)(s + at * step);                                       \
		}                                                                                  \
		return true;                                                                       \
	}                                                                                          \
	static __attribute__((noinline)) bool take_whole_##SZ(                                     \
		struct indices *x, char *o, const char *s, const char *index, int64_t len)         \
	{                                                                                          \
		const volatile int64_t *from = (const volatile int64_t *)index;                    \
		int64_t limit = x->limit[0], wrap = x->wrap ? limit : 0, step = x->step[0];        \
		bool fine = step == sizeof(T) && !wrap ?                                           \
				    take_dense_##SZ((T *)o, s, from, len, limit, 0, sizeof(T)) :   \
				    take_dense_##SZ((T *)o, s, from, len, limit, wrap, step);      \
                                                                                                   \
		if (unlikely(!fine))                                                               \
			x->bad = true;                                                             \
		return fine;                                                                       \
	}                                                                                          \
	static __attribute__((noinline)) void take_row_##SZ(                                       \
		char *o, const char *s, int64_t so, int64_t ss, const int64_t *at, int64_t len)    \
	{                                                                                          \
		for (int64_t i = 0; i < len; i++)                                                  \
			*(T *)(o + i * so) = *(const T *)(s + i * ss + at[i]);                     \
	}                                                                                          \
	static void move_row_##SZ(char *o, const char *s, int64_t so, int64_t ss, int64_t len)     \
	{                                                                                          \
		if (so == sizeof(T) && ss == sizeof(T))                                            \
			copy_bytes(o, s, len *(int64_t)sizeof(T));                                 \
		else                                                                               \
			for (int64_t i = 0; i < len; i++)                                          \
				*(T *)(o + i * so) = *(const T *)(s + i * ss);                     \
	}                                                                                          \
	static void take_##SZ(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, \
			      int64_t n1, const void *params)                                      \
	{                                                                                          \
		struct indices *x = (struct indices *)params;                                      \
		int64_t at[INDEX_BLOCK];                                                           \
                                                                                                   \
		if (s0[0] == sizeof(T) && s0[1] == sizeof(int64_t) && !s0[2] && !x->narrow &&      \
		    x->n == 1) {                                                                   \
			for (int64_t j = 0; j < n1; j++)                                           \
				if (!take_whole_##SZ(x, data[0] + j * s1[0], data[2] + j * s1[2],  \
						     data[1] + j * s1[1], n0))                     \
					return;                                                    \
			return;                                                                    \
		}                                                                                  \
		for (int64_t j = 0; j < n1 && s0[1]; j++)                                          \
			for (int64_t i = 0, len; i < n0; i += len) {                               \
				len = n0 - i < INDEX_BLOCK ? n0 - i : INDEX_BLOCK;                 \
				if (!indices_fetch(x, data[1] + j * s1[1] + i * s0[1], s0[1], len, \
						   at))                                            \
					return;                                                    \
				take_row_##SZ(data[0] + j * s1[0] + i * s0[0],                     \
					      data[2] + j * s1[2] + i * s0[2], s0[0], s0[2], at,   \
					      len);                                                \
			}                                                                          \
		for (int64_t j = 0, rows; j < n1 && !s0[1]; j += rows) {                           \
			rows = n1 - j < INDEX_BLOCK ? n1 - j : INDEX_BLOCK;                        \
			if (!indices_fetch(x, data[1] + j * s1[1], s1[1], rows, at))               \
				return;                                                            \
			for (int64_t r = 0; r < rows; r++)                                         \
				move_row_##SZ(data[0] + (j + r) * s1[0],                           \
					      data[2] + (j + r) * s1[2] + at[r], s0[0], s0[2],     \
					      n0);                                                 \
		}                                                                                  \
	}
TAKE(1, uint8_t)
TAKE(2, uint16_t)
TAKE(4, uint32_t)
TAKE(8, uint64_t)
TAKE(16, struct bits16)

static iter_loop loop_for(const tensor *t)
{
	switch (itemsize(t)) {
	case 1:
		return take_1;
	case 2:
		return take_2;
	case 4:
		return take_4;
	case 8:
		return take_8;
	default:
		return take_16;
	}
}

static int take(const char *name, tensor *out, const tensor *self, int dim, const tensor *index,
		const struct tensor *walked)
{
	struct tensor from = walk_seen(self, out, 1u << dim);
	const tensor *ops[] = { out, walked, &from };
	struct indices x = { .name = name,
			     .n = 1,
			     .step = { self->strides[dim] * (int64_t)itemsize(self) },
			     .limit = { self->sizes[dim] },
			     .narrow = index->dtype == TENSOR_I32 };
	struct tensor_iter it;

	iter_build(&it, ops, 3);
	iter_run(&it, loop_for(self), &x);
	return x.bad ? indices_refuse(&x, index, &dim) : 0;
}

static int cpu_index_select(tensor *out, const tensor *self, int dim, const tensor *index)
{
	struct tensor walked = walk_spread(index, out, dim);

	return take("index_select", out, self, dim, index, &walked);
}

static int cpu_gather(tensor *out, const tensor *self, int dim, const tensor *index)
{
	return take("gather", out, self, dim, index, index);
}

static int cpu_index_take(tensor *out, const tensor *self, const tensor *at, const int *dims, int n)
{
	struct indices x = { .name = "index", .n = n, .wrap = true };
	struct tensor from, walked, first;
	const tensor *ops[] = { out, &walked, &from };
	struct tensor_iter it;
	struct indexed r;

	if (indexed_build(&r, x.name, self, at, dims, n) < 0)
		return -thread()->error.code;
	indices_describe(&x, self, at, dims, n);
	indices_walk(&r, self, at, &from, &walked, &first);
	iter_build(&it, ops, 3);
	iter_run(&it, loop_for(self), &x);
	return x.bad ? indices_refuse(&x, &first, dims) : 0;
}

CPU_KERNELS(K(index_select), K(gather), K(index_take))
