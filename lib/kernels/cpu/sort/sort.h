/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Shared by sort.c and select.c. Elements are converted to unsigned keys in the same order, with
 * NaN last and both zeros equal, and sorted as items of a key and a position. Each line is
 * sorted by one thread.
 */
#ifndef TENSOR_CPU_SORT_H
#define TENSOR_CPU_SORT_H

#include "kernels/cpu/simd/cpu.h"

#include "iter/reduce_iter.h"
#include "iter/parallel.h"

#include <stdatomic.h>

#define KEYS   512  /* keys converted at once */
#define GROUP  32   /* keys compared with a limit at once */
#define RUN    16   /* items sorted by insertion */
#define SMALL  192  /* items below which merge sort is faster than radix sort */
#define WIDE   4096 /* items from which on digits have 11 bits instead of 8 */
#define DIGITS 8    /* of a key, at most */

/* The key of an f32, from its bits: negative numbers are inverted, NaN is the greatest key. */
static inline uint32_t key_f32(uint32_t u)
{
	uint32_t k = u ^ ((uint32_t) - (int32_t)(u >> 31) | 0x80000000u);

	k = u << 1 ? k : 0x80000000u;
	return u << 1 > 0xff000000u ? ~0u : k;
}

static inline uint64_t key_f64(uint64_t u)
{
	uint64_t k = u ^ ((uint64_t) - (int64_t)(u >> 63) | 1ull << 63);

	k = u << 1 ? k : 1ull << 63;
	return u << 1 > 0xffe0000000000000ull ? ~0ull : k;
}

/* The key of an f16 or bf16; infinity is that of the dtype, shifted left by one bit. */
static inline uint32_t key_reduced_float(uint16_t u, uint32_t infinity)
{
	uint32_t k = u & 0x8000 ? (uint16_t)~u : u | 0x8000, twice = (uint32_t)u << 1 & 0xffff;

	k = twice ? k : 0x8000;
	return twice > infinity ? 0xffff : k;
}

/* NAME() converts n elements x of type T to keys of type K by EXPR; keys are xored with flip. */
#define KEYS_OF(NAME, K, T, EXPR)                                                                 \
	static inline void NAME(K *restrict to, const char *p, int64_t stride, int64_t n, K flip) \
	{                                                                                         \
		if (stride == sizeof(T)) {                                                        \
			for (int64_t i = 0; i < n; i++) {                                         \
				T x = ((const T *)p)[i];                                          \
				to[i] = (K)(EXPR) ^ flip;                                         \
			}                                                                         \
		} else {                                                                          \
			for (int64_t i = 0; i < n; i++) {                                         \
				T x = *(const T *)(p + i * stride);                               \
				to[i] = (K)(EXPR) ^ flip;                                         \
			}                                                                         \
		}                                                                                 \
	}
KEYS_OF(keys_u8, uint32_t, uint8_t, x)
KEYS_OF(keys_u16, uint32_t, uint16_t, x)
KEYS_OF(keys_u32, uint32_t, uint32_t, x)
KEYS_OF(keys_u64, uint64_t, uint64_t, x)
KEYS_OF(keys_i8, uint32_t, uint8_t, x ^ 0x80)
KEYS_OF(keys_i16, uint32_t, uint16_t, x ^ 0x8000)
KEYS_OF(keys_i32, uint32_t, uint32_t, x ^ 0x80000000u)
KEYS_OF(keys_i64, uint64_t, uint64_t, x ^ 1ull << 63)
KEYS_OF(keys_f16, uint32_t, uint16_t, key_reduced_float(x, 0xf800))
KEYS_OF(keys_bf16, uint32_t, uint16_t, key_reduced_float(x, 0xff00))
KEYS_OF(keys_f32, uint32_t, uint32_t, key_f32(x))
KEYS_OF(keys_f64, uint64_t, uint64_t, key_f64(x))

/* Whether elements can be sorted: not complex numbers and 8-bit floats. */
static inline bool is_ordered(enum tensor_dtype dtype)
{
	return !dtype_is_complex(dtype) && !dtype_is_f8(dtype);
}

/* Bits of a key. */
static inline int key_bits(enum tensor_dtype dtype)
{
	return 8 * dtype_sizes[dtype];
}

/* The keys of n elements of at most 32 bits. */
static void keys_k32(uint32_t *restrict to, const char *p, int64_t stride, enum tensor_dtype dtype,
		     int64_t n, bool flip)
{
	uint32_t bits = flip ? (uint32_t)((1ull << key_bits(dtype)) - 1) : 0;

	switch (dtype) {
	case TENSOR_I8:
		keys_i8(to, p, stride, n, bits);
		break;
	case TENSOR_I16:
		keys_i16(to, p, stride, n, bits);
		break;
	case TENSOR_I32:
		keys_i32(to, p, stride, n, bits);
		break;
	case TENSOR_U16:
		keys_u16(to, p, stride, n, bits);
		break;
	case TENSOR_U32:
		keys_u32(to, p, stride, n, bits);
		break;
	case TENSOR_F16:
		keys_f16(to, p, stride, n, bits);
		break;
	case TENSOR_BF16:
		keys_bf16(to, p, stride, n, bits);
		break;
	case TENSOR_F32:
		keys_f32(to, p, stride, n, bits);
		break;
	default: /* bool and u8 */
		keys_u8(to, p, stride, n, bits);
	}
}

/* The keys of n <= KEYS elements of any dtype; those of at most 32 bits are widened. */
static void keys_k64(uint64_t *restrict to, const char *p, int64_t stride, enum tensor_dtype dtype,
		     int64_t n, bool flip)
{
	uint64_t bits = flip ? ~0ull : 0;
	uint32_t narrow[KEYS];

	if (dtype == TENSOR_F64) {
		keys_f64(to, p, stride, n, bits);
	} else if (dtype == TENSOR_I64) {
		keys_i64(to, p, stride, n, bits);
	} else if (dtype == TENSOR_U64) {
		keys_u64(to, p, stride, n, bits);
	} else {
		keys_k32(narrow, p, stride, dtype, n, flip);
		for (int64_t i = 0; i < n; i++)
			to[i] = narrow[i];
	}
}

struct item64 {
	uint64_t key, at;
};

#define LOOPS_FILE "kernels/cpu/sort/sort_items.h"
#include "kernels/cpu/sort/sort_each.h"
#undef LOOPS_FILE

/* Whether a key and a position of a line of n elements fit in 64 bits. */
static inline bool is_k32(enum tensor_dtype dtype, int64_t n)
{
	return dtype_sizes[dtype] <= 4 && n <= UINT32_MAX;
}

/* ---- wide keys as narrow items ---- */

/*
 * A line of wide elements is first sorted as narrow items by the 32 highest bits of the range of
 * its keys: half of the memory, and half of the digits. Items that are equal in these bits are then
 * sorted by their whole keys. There are few unless the keys differ in their lowest bits only.
 */
struct narrow {
	const char *p;
	int64_t stride;
	enum tensor_dtype dtype;
	bool flip;
	uint64_t low;
	int shift; /* the bits that items do not have */
};

static inline uint64_t narrow_key(const struct narrow *w, int64_t at)
{
	uint64_t key;

	keys_k64(&key, w->p + at * w->stride, w->stride, w->dtype, 1, w->flip);
	return key;
}

/* Loads the items of a line and sets w; returns the bits of their keys. */
static inline int narrow_load(struct narrow *w, uint64_t *items, int64_t n)
{
	uint64_t key[KEYS], low = UINT64_MAX, high = 0;
	int bits;

	for (int64_t i = 0; i < n; i += KEYS) {
		int64_t m = n - i < KEYS ? n - i : KEYS;

		keys_k64(key, w->p + i * w->stride, w->stride, w->dtype, m, w->flip);
		for (int64_t k = 0; k < m; k++) {
			low = key[k] < low ? key[k] : low;
			high = key[k] > high ? key[k] : high;
		}
	}
	bits = 64 - __builtin_clzll((high - low) | 1);
	w->low = low;
	w->shift = bits > 32 ? bits - 32 : 0;
	for (int64_t i = 0; i < n; i += KEYS) {
		int64_t m = n - i < KEYS ? n - i : KEYS;

		keys_k64(key, w->p + i * w->stride, w->stride, w->dtype, m, w->flip);
		for (int64_t k = 0; k < m; k++)
			items[i + k] = (key[k] - low) >> w->shift << 32 | (uint64_t)(i + k);
	}
	return bits - w->shift;
}

/* Sorts the items of [from, to), which are equal in their narrow keys. */
static inline void narrow_sort_equal(const struct narrow *w, uint64_t *items, int64_t from,
				     int64_t to)
{
	for (int64_t i = from + 1; i < to; i++) {
		uint64_t x = items[i], key = narrow_key(w, (uint32_t)x);
		int64_t k = i;

		for (; k > from && key < narrow_key(w, (uint32_t)items[k - 1]); k--)
			items[k] = items[k - 1];
		items[k] = x;
	}
}

static inline bool narrow_in_order(const struct narrow *w, const uint64_t *items, int64_t n)
{
	uint64_t before = narrow_key(w, (uint32_t)items[0]);

	for (int64_t i = 1; i < n; i++) {
		uint64_t key = narrow_key(w, (uint32_t)items[i]);

		if (key < before)
			return false;
		before = key;
	}
	return true;
}

/* Returns false if many items with the same narrow key are not in order. */
static inline bool narrow_finish(const struct narrow *w, uint64_t *items, int64_t n)
{
	for (int64_t i = 0, end; w->shift && i < n; i = end) {
		for (end = i + 1; end < n && items[end] >> 32 == items[i] >> 32;)
			end++;
		if (end - i <= RUN)
			narrow_sort_equal(w, items, i, end);
		else if (!narrow_in_order(w, items + i, end - i))
			return false;
	}
	return true;
}

/*
 * The sorted items of n <= UINT32_MAX wide elements, or NULL if they have to be sorted as wide
 * items. scratch has 2 n items.
 */
static inline uint64_t *narrow_sort(struct narrow *w, uint64_t *scratch, int64_t n)
{
	int bits = narrow_load(w, scratch, n);
	uint64_t *items = items_sort_k32(scratch, scratch + n, n, bits);

	return narrow_finish(w, items, n) ? items : NULL;
}

/* ---- lines ---- */

struct line_job {
	const struct reduce_iter *t; /* operands: values, self, indices */
	enum tensor_dtype dtype;
	int64_t n, scratch; /* elements of a line, bytes of memory that a line needs */
	int64_t k;	    /* of topk and kthvalue */
	bool flip, sorted;  /* descending order; sorted results of topk */
	void (*line)(const struct line_job *j, char *const *data, void *scratch);
	atomic_int failed;
};

#define STACK_SCRATCH 16384

static void sort_lines(int64_t begin, int64_t end, void *ctx)
{
	struct line_job *j = ctx;
	_Alignas(64) char own[STACK_SCRATCH];
	char *data[REDUCE_ITER_OPERANDS];
	tensor *block = NULL;

	if (j->scratch > STACK_SCRATCH)
		block = tensor_new(TENSOR_DEVICE_CPU, TENSOR_U8, &j->scratch, 1);
	if (j->scratch > STACK_SCRATCH && !block) {
		atomic_store(&j->failed, 1);
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		reduce_iter_seek(j->t, i, data);
		j->line(j, data, block ? block->data : own);
	}
	tensor_put(block);
}

static inline int for_each_line(struct line_job *j, tensor *values, tensor *indices,
				const tensor *self, int dim)
{
	const tensor *op[] = { values, self, indices };
	int64_t grain;
	struct reduce_iter t;

	if (!self->numel)
		return 0;
	reduce_iter_build(&t, op, 3, 1u << dim);
	j->t = &t;
	grain = ITER_GRAIN / 8 / j->n;
	parallel_for(0, t.kept.count, grain < 1 ? 1 : grain, sort_lines, j);
	if (atomic_load(&j->failed))
		return tensor_fail(ENOMEM, "no memory for %lld bytes to sort in",
				   (long long)j->scratch);
	return 0;
}

/* Copies element `at` of a line to element i of a line of values. */
static inline void copy_element(char *to, int64_t i, int64_t to_stride, const char *from,
				int64_t at, int64_t from_stride, enum tensor_dtype dtype)
{
	memcpy(to + i * to_stride, from + at * from_stride, dtype_sizes[dtype]);
}

#endif
