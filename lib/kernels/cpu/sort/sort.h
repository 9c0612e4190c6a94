/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What sort.c and select.c share: elements as unsigned keys in the same order, NaN last, both
 * zeros equal; items of a key and a position; lines one after the other.
 */
#ifndef TENSOR_CPU_SORT_H
#define TENSOR_CPU_SORT_H

#include "kernels/cpu/simd/cpu.h"

#include "iter/reduce_iter.h"
#include "iter/parallel.h"

#include <stdatomic.h>

#define KEYS   512  /* keys made at once */
#define GROUP  32   /* keys that are compared with a limit at once */
#define RUN    16   /* items that are sorted by insertion */
#define SMALL  192  /* items that are merged rather than sorted by digits */
#define WIDE   4096 /* items from which on digits have eleven bits */
#define DIGITS 8    /* at most */

/* Keys of n elements of a strided line. */
static inline uint32_t turn32(uint32_t u)
{
	uint32_t k = u ^ ((uint32_t) - (int32_t)(u >> 31) | 0x80000000u);

	k = u << 1 ? k : 0x80000000u;
	return u << 1 > 0xff000000u ? ~0u : k;
}

static inline uint64_t turn64(uint64_t u)
{
	uint64_t k = u ^ ((uint64_t) - (int64_t)(u >> 63) | 1ull << 63);

	k = u << 1 ? k : 1ull << 63;
	return u << 1 > 0xffe0000000000000ull ? ~0ull : k;
}

/* INFINITY_: the bits of an infinite half, shifted left by one. */
static inline uint32_t turn16(uint16_t u, uint32_t infinity)
{
	uint32_t k = u & 0x8000 ? (uint16_t)~u : u | 0x8000, twice = (uint32_t)u << 1 & 0xffff;

	k = twice ? k : 0x8000;
	return twice > infinity ? 0xffff : k;
}

#define KEY_LOOP(K, T, EXPR)                                        \
	do {                                                        \
		if (stride == sizeof(T)) {                          \
			for (int64_t i = 0; i < n; i++) {           \
				T x = ((const T *)p)[i];            \
				to[i] = (K)(EXPR) ^ turn;           \
			}                                           \
		} else {                                            \
			for (int64_t i = 0; i < n; i++) {           \
				T x = *(const T *)(p + i * stride); \
				to[i] = (K)(EXPR) ^ turn;           \
			}                                           \
		}                                                   \
	} while (0)

/* Complex numbers have no order; floats of 8 bits are not sorted. */
static inline bool is_ordered(enum tensor_dtype dtype)
{
	return !dtype_is_complex(dtype) && !dtype_is_f8(dtype);
}

/* Bits of a key. */
static inline int key_bits(enum tensor_dtype dtype)
{
	return 8 * dtype_sizes[dtype];
}

static void i32_keys(uint32_t *restrict to, const char *p, int64_t stride, enum tensor_dtype dtype,
		     int64_t n, bool flip)
{
	uint32_t turn = flip ? (uint32_t)((1ull << key_bits(dtype)) - 1) : 0;

	switch (dtype) {
	case TENSOR_I8:
		KEY_LOOP(uint32_t, uint8_t, x ^ 0x80);
		break;
	case TENSOR_I16:
		KEY_LOOP(uint32_t, uint16_t, x ^ 0x8000);
		break;
	case TENSOR_I32:
		KEY_LOOP(uint32_t, uint32_t, x ^ 0x80000000u);
		break;
	case TENSOR_U16:
		KEY_LOOP(uint32_t, uint16_t, x);
		break;
	case TENSOR_U32:
		KEY_LOOP(uint32_t, uint32_t, x);
		break;
	case TENSOR_F16:
		KEY_LOOP(uint32_t, uint16_t, turn16(x, 0xf800));
		break;
	case TENSOR_BF16:
		KEY_LOOP(uint32_t, uint16_t, turn16(x, 0xff00));
		break;
	case TENSOR_F32:
		KEY_LOOP(uint32_t, uint32_t, turn32(x));
		break;
	default: /* bool and u8 */
		KEY_LOOP(uint32_t, uint8_t, x);
	}
}

static void i64_keys(uint64_t *restrict to, const char *p, int64_t stride, enum tensor_dtype dtype,
		     int64_t n, bool flip)
{
	uint64_t turn = flip ? ~0ull : 0;
	uint32_t narrow[KEYS];

	if (dtype == TENSOR_F64) {
		KEY_LOOP(uint64_t, uint64_t, turn64(x));
	} else if (dtype == TENSOR_I64) {
		KEY_LOOP(uint64_t, uint64_t, x ^ 1ull << 63);
	} else if (dtype == TENSOR_U64) {
		KEY_LOOP(uint64_t, uint64_t, x);
	} else { /* lines with more elements than a narrow item can number */
		i32_keys(narrow, p, stride, dtype, n, flip);
		for (int64_t i = 0; i < n; i++)
			to[i] = narrow[i];
	}
}

struct item64 {
	uint64_t key, at;
};

#define ITEM	     uint64_t
#define KEY_T	     uint32_t
#define KEY(x)	     ((uint32_t)((x) >> 32))
#define AT(x)	     ((int64_t)(uint32_t)(x))
#define MAKE(key, i) ((uint64_t)(key) << 32 | (uint64_t)(i))
#define F(x)	     i32_##x
#include "kernels/cpu/sort/sort_items.h"

#define ITEM	     struct item64
#define KEY_T	     uint64_t
#define KEY(x)	     ((x).key)
#define AT(x)	     ((int64_t)(x).at)
#define MAKE(key, i) ((struct item64){ (key), (uint64_t)(i) })
#define F(x)	     i64_##x
#include "kernels/cpu/sort/sort_items.h"

/* Do keys and positions of a line fit into 64 bits? */
static inline bool is_narrow(enum tensor_dtype dtype, int64_t n)
{
	return dtype_sizes[dtype] <= 4 && n <= UINT32_MAX;
}

/* ---- lines ---- */

/* Operands of the nest: values, self, indices. */
struct line_job {
	const struct reduce_iter *t;
	enum tensor_dtype dtype;
	int64_t n, scratch; /* elements of a line, bytes a line needs */
	int64_t k;
	bool flip, option;
	void (*line)(const struct line_job *j, char *const *data, void *scratch);
	atomic_int failed;
};

#define STACK_SCRATCH 16384

static void run_lines(int64_t begin, int64_t end, void *ctx)
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

static int for_lines(struct line_job *j, tensor *values, tensor *indices, const tensor *self,
		     int dim)
{
	const tensor *op[] = { values, self, indices };
	int64_t grain;
	struct reduce_iter t;

	if (!self->numel)
		return 0;
	reduce_iter_build(&t, op, 3, 1u << dim);
	j->t = &t;
	grain = ITER_GRAIN / 8 / j->n;
	parallel_for(0, t.kept.count, grain < 1 ? 1 : grain, run_lines, j);
	if (atomic_load(&j->failed))
		return tensor_fail(ENOMEM, "no memory for %lld bytes to sort in",
				   (long long)j->scratch);
	return 0;
}

/* Element `at` of the line at from, to position i of the values at to. */
static inline void copy_element(char *to, int64_t i, int64_t to_stride, const char *from,
				int64_t at, int64_t from_stride, enum tensor_dtype dtype)
{
	memcpy(to + i * to_stride, from + at * from_stride, dtype_sizes[dtype]);
}

#endif
