/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Lines of at most SHORT elements, sorted SIDE at a time by a sorting network: each comparison applies to an element
 * of every line. An item has a key in its upper bits and the position in its lowest POSITION_BITS, so that all
 * items of a line differ and equal elements keep their order.
 */
#ifndef TENSOR_CPU_SORT_SHORT_H
#define TENSOR_CPU_SORT_SHORT_H

#include "kernels/cpu/simd/vec_minmax_int.h"
#include "kernels/cpu/sort/sort.h"

#define SHORT	      64
#define SIDE	      16
#define POSITION_BITS 6
#define POSITION      (SHORT - 1)
#define FEW_LINES     6 /* lines up to which the others of a network would be wasted */

/* m <= SIDE lines and the first elements of their operands: values, self, indices. */
struct short_lines {
	const struct line_job *j;
	int m;
	bool beside; /* element i of all lines is contiguous in self */
	char *data[REDUCE_ITER_OPERANDS][SIDE];
};

#define ITEM	  uint32_t
#define LOAD_KEYS keys_k32
#define V	  vec_u32
#define LANES	  (VEC_BYTES / 4)
#define MIN	  vec_min_u32
#define MAX	  vec_max_u32
#define SUFFIX	  s32
#include "kernels/cpu/sort/sort_short_loops.h"
#undef ITEM
#undef LOAD_KEYS
#undef V
#undef LANES
#undef MIN
#undef MAX
#undef SUFFIX

#define ITEM	  uint64_t
#define LOAD_KEYS keys_k64
#define V	  vec_u64
#define LANES	  (VEC_BYTES / 8)
#define MIN	  vec_min_u64
#define MAX	  vec_max_u64
#define SUFFIX	  s64
#include "kernels/cpu/sort/sort_short_loops.h"
#undef ITEM
#undef LOAD_KEYS
#undef V
#undef LANES
#undef MIN
#undef MAX
#undef SUFFIX

/*
 * Keys of 64 bits: items have what is above the least key if that fits, else the upper bits of the keys. Returns
 * whether bits are missing; `full` has a copy of the keys then.
 */
static inline bool short_pack_wide(uint64_t (*item)[SIDE], uint64_t (*full)[SIDE], int n)
{
	vec_u64 low = *(vec_u64 *)item[0], high = low;
	uint64_t least, most;

	for (int i = 0; i < n; i++)
		for (int k = 0; k < SIDE; k += VEC_F64) {
			low = vec_min_u64(low, *(vec_u64 *)(item[i] + k));
			high = vec_max_u64(high, *(vec_u64 *)(item[i] + k));
		}
	least = low[0];
	most = high[0];
	for (int k = 1; k < VEC_F64; k++) {
		least = low[k] < least ? low[k] : least;
		most = high[k] > most ? high[k] : most;
	}
	if ((most - least) >> (64 - POSITION_BITS)) {
		memcpy(full, item, n * sizeof(*item));
		for (int i = 0; i < n; i++)
			for (int k = 0; k < SIDE; k += VEC_F64) {
				vec_u64 *x = (vec_u64 *)(item[i] + k);

				*x = (*x & ~(uint64_t)POSITION) | (uint64_t)i;
			}
		return true;
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < SIDE; k += VEC_F64) {
			vec_u64 *x = (vec_u64 *)(item[i] + k);

			*x = (*x - least) << POSITION_BITS | (uint64_t)i;
		}
	return false;
}

/* Sorts items of a line that are equal in their upper bits by their keys. */
static inline void short_finish_line(uint64_t (*item)[SIDE], uint64_t (*full)[SIDE], int n, int k)
{
	for (int i = 1; i < n; i++) {
		uint64_t x = item[i][k], key = full[x & POSITION][k];
		int at = i;

		for (; at > 0 && item[at - 1][k] >> POSITION_BITS == x >> POSITION_BITS &&
		       key < full[item[at - 1][k] & POSITION][k];
		     at--)
			item[at][k] = item[at - 1][k];
		item[at][k] = x;
	}
}

static inline void short_finish(uint64_t (*item)[SIDE], uint64_t (*full)[SIDE], int n)
{
	for (int k = 0; k < SIDE; k += VEC_F64) {
		vec_u64 equal = { 0 };

		for (int i = 1; i < n; i++)
			equal |= (vec_u64)((*(vec_u64 *)(item[i] + k) ^
					    *(vec_u64 *)(item[i - 1] + k)) < SHORT);
		for (int c = 0; c < VEC_F64; c++)
			if (equal[c])
				short_finish_line(item, full, n, k + c);
	}
}

/* Stores the first `count` results of lines of n elements. */
static inline void short_lines_sort(const struct short_lines *s, int n, int count)
{
	_Alignas(64) uint64_t item[SHORT][SIDE], full[SHORT][SIDE];
	bool inexact = false;

	if (dtype_sizes[s->j->dtype] <= 2) {
		uint32_t(*narrow)[SIDE] = (void *)full;

		short_load_s32(s, narrow, n);
		for (int i = 0; i < n; i++)
			for (int k = 0; k < SIDE; k += VEC_F32) {
				vec_u32 *x = (vec_u32 *)(narrow[i] + k);

				*x = *x << POSITION_BITS | (uint32_t)i;
			}
		short_network_s32(narrow, n);
		short_store_s32(s, narrow, count);
		return;
	}
	short_load_s64(s, item, n);
	inexact = short_pack_wide(item, full, n);
	short_network_s64(item, n);
	if (inexact)
		short_finish(item, full, n);
	short_store_s64(s, item, count);
}

/* Lines [begin, end) of a line_job, whose k is the number of results. */
static inline void short_lines(int64_t begin, int64_t end, void *ctx)
{
	const struct line_job *j = ctx;
	const struct reduce_iter_dims *kept = &j->t->kept;
	int64_t pos[TENSOR_MAX_DIMS], rest = begin;
	char *data[REDUCE_ITER_OPERANDS];
	struct short_lines s = { .j = j };

	for (int d = 0; d < kept->n; d++) {
		pos[d] = rest % kept->size[d];
		rest /= kept->size[d];
	}
	reduce_iter_seek(j->t, begin, data);
	for (int64_t at = begin; at < end; at += s.m) {
		s.m = end - at < SIDE ? (int)(end - at) : SIDE;
		s.beside = kept->stride[1][0] == (int64_t)dtype_sizes[j->dtype] &&
			   kept->size[0] - pos[0] >= s.m;
		for (int k = 0; k < s.m; k++) {
			for (int op = 0; op < REDUCE_ITER_OPERANDS; op++)
				s.data[op][k] = data[op];
			for (int d = 0; d < kept->n; d++) {
				bool more = ++pos[d] < kept->size[d];

				for (int op = 0; op < REDUCE_ITER_OPERANDS; op++)
					data[op] += kept->stride[op][d] *
						    (more ? 1 : 1 - kept->size[d]);
				if (more)
					break;
				pos[d] = 0;
			}
		}
		short_lines_sort(&s, (int)j->n, (int)j->k);
	}
}

static inline bool short_lines_suit(const tensor *self, int dim)
{
	int64_t n = self->sizes[dim];

	return n <= SHORT && self->numel > FEW_LINES * n;
}

/* Like for_each_line(), for the first j->k of the sorted elements of each line. */
static inline int for_each_short_line(struct line_job *j, tensor *values, tensor *indices,
				      const tensor *self, int dim)
{
	const tensor *op[] = { values, self, indices };
	int64_t grain = ITER_GRAIN / 8 / self->sizes[dim];
	struct reduce_iter t;

	j->dtype = self->dtype;
	j->n = self->sizes[dim];
	j->t = &t;
	reduce_iter_build(&t, op, REDUCE_ITER_OPERANDS, 1u << dim);
	parallel_for(0, t.kept.count, grain < SIDE ? SIDE : grain / SIDE * SIDE, short_lines, j);
	return 0;
}

#endif
