// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * One or a few elements of each line by their rank: topk, kthvalue, median, mode. A few greatest
 * are kept while the line is read once; a rank is found by the digits of keys, from the first
 * digit on.
 */
#include "kernels/cpu/sort/sort.h"

#define FEW 64 /* elements that are kept in order while a line is read */

/* ---- topk ---- */

#define TOPK(NAME, ITEM, AT)                                                                    \
	static void NAME##_topk(const struct line_job *j, char *const *data, void *scratch)     \
	{                                                                                       \
		int64_t sa = j->t->along.stride[1][0];                                          \
		ITEM *a = scratch;                                                              \
                                                                                                \
		if (j->k <= FEW && 8 * j->k <= j->n) {                                          \
			NAME##_few(a, j->k, data[1], sa, j->dtype, j->n, j->flip);              \
		} else {                                                                        \
			NAME##_load(a, data[1], sa, j->dtype, j->n, j->flip);                   \
			if (4 * j->k < 3 * j->n) {                                              \
				NAME##_least(a, a + j->n, j->n, j->k);                          \
				if (j->option)                                                  \
					a = NAME##_sort(a, a + j->n, j->k, key_bits(j->dtype)); \
			} else {                                                                \
				a = NAME##_sort(a, a + j->n, j->n, key_bits(j->dtype));         \
			}                                                                       \
		}                                                                               \
		for (int64_t i = 0; i < j->k; i++) {                                            \
			ITEM x = a[i];                                                          \
                                                                                                \
			*(int64_t *)(data[2] + i * j->t->along.stride[2][0]) = AT;              \
			copy_element(data[0], i, j->t->along.stride[0][0], data[1], AT, sa,     \
				     j->dtype);                                                 \
		}                                                                               \
	}

TOPK(i32, uint64_t, (int64_t)(uint32_t)x)
TOPK(i64, struct item64, (int64_t)x.at)

static int run(const char *name, struct line_job *j, tensor *values, tensor *indices,
	       const tensor *self, int dim)
{
	bool narrow = is_narrow(self->dtype, self->sizes[dim]);

	if (unlikely(!is_ordered(self->dtype)))
		return kernel_no_dtype(name, self->dtype, "cpu");
	j->dtype = self->dtype;
	j->n = self->sizes[dim];
	j->scratch = 2 * j->n * (int64_t)(narrow ? sizeof(uint64_t) : sizeof(struct item64));
	return for_lines(j, values, indices, self, dim);
}

static int cpu_topk(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k,
		    bool largest, bool sorted)
{
	bool narrow = is_narrow(self->dtype, self->sizes[dim]);
	struct line_job j = {
		.k = k, .flip = largest, .option = sorted, .line = narrow ? i32_topk : i64_topk
	};

	return k ? run("topk", &j, values, indices, self, dim) : 0;
}

/* ---- ranks ---- */

static uint64_t nan_key(enum tensor_dtype dtype)
{
	return ~0ull >> (64 - key_bits(dtype));
}

/* Which rank is meant; -1 for the first NaN. k: a rank, or -1 for the median and -2 for that of
 * what is not NaN. */
#define RANK(NAME, ITEM, KEY, AT, NAN_KEY)                                                  \
	static int64_t NAME##_rank(const struct line_job *j, ITEM *a)                       \
	{                                                                                   \
		int64_t numbers = 0, first = -1;                                            \
                                                                                            \
		if (j->k >= 0)                                                              \
			return j->k;                                                        \
		if (dtype_is_integral(j->dtype))                                            \
			return (j->n - 1) / 2;                                              \
		for (int64_t i = 0; i < j->n; i++) {                                        \
			ITEM x = a[i];                                                      \
			bool nan = KEY == (NAN_KEY);                                        \
                                                                                            \
			first = nan && first < 0 ? i : first;                               \
			numbers += !nan;                                                    \
		}                                                                           \
		if (j->k == -1 && first >= 0) {                                             \
			a[0] = a[first];                                                    \
			return -1;                                                          \
		}                                                                           \
		return numbers ? (numbers - 1) / 2 : 0;                                     \
	}                                                                                   \
                                                                                            \
	static void NAME##_kth(const struct line_job *j, char *const *data, void *scratch)  \
	{                                                                                   \
		int64_t sa = j->t->along.stride[1][0], rank;                                \
		ITEM *a = scratch, x;                                                       \
                                                                                            \
		if (j->k >= 0 && j->k < FEW && 8 * (j->k + 1) <= j->n) {                    \
			NAME##_few(a, j->k + 1, data[1], sa, j->dtype, j->n, false);        \
			x = a[j->k];                                                        \
		} else {                                                                    \
			NAME##_load(a, data[1], sa, j->dtype, j->n, false);                 \
			rank = NAME##_rank(j, a);                                           \
			x = rank < 0 ? a[0] : NAME##_nth(a, j->n, rank);                    \
		}                                                                           \
		*(int64_t *)data[2] = AT;                                                   \
		copy_element(data[0], 0, 0, data[1], AT, sa, j->dtype);                     \
	}                                                                                   \
                                                                                            \
	/* The longest run of equal keys; of several the first. */                          \
	static void NAME##_mode(const struct line_job *j, char *const *data, void *scratch) \
	{                                                                                   \
		int64_t sa = j->t->along.stride[1][0], longest = 0, begin = 0;              \
		ITEM *a = scratch, x, best;                                                 \
                                                                                            \
		NAME##_load(a, data[1], sa, j->dtype, j->n, false);                         \
		a = NAME##_sort(a, a + j->n, j->n, key_bits(j->dtype));                     \
		best = a[0];                                                                \
		for (int64_t i = 1; i <= j->n; i++) {                                       \
			if (i < j->n && !NAME##_less(a[i - 1], a[i]))                       \
				continue;                                                   \
			if (i - begin > longest) {                                          \
				longest = i - begin;                                        \
				best = a[i - 1];                                            \
			}                                                                   \
			begin = i;                                                          \
		}                                                                           \
		x = best;                                                                   \
		*(int64_t *)data[2] = AT;                                                   \
		copy_element(data[0], 0, 0, data[1], AT, sa, j->dtype);                     \
	}

RANK(i32, uint64_t, (uint32_t)(x >> 32), (int64_t)(uint32_t)x, (uint32_t)nan_key(j->dtype))
RANK(i64, struct item64, x.key, (int64_t)x.at, nan_key(j->dtype))

static int cpu_kthvalue(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k)
{
	bool narrow = is_narrow(self->dtype, self->sizes[dim]);
	struct line_job j = { .k = k, .line = narrow ? i32_kth : i64_kth };

	return run("kthvalue", &j, values, indices, self, dim);
}

static int cpu_mode(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k)
{
	bool narrow = is_narrow(self->dtype, self->sizes[dim]);
	struct line_job j = { .line = narrow ? i32_mode : i64_mode };

	return run("mode", &j, values, indices, self, dim);
}

CPU_KERNELS(K(topk), K(kthvalue), K(mode))
