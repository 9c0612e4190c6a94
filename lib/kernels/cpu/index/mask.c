// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * nonzero, masked_select, masked_scatter, for a contiguous mask. The true elements of each chunk
 * are counted first; the counts give the position of each chunk in the result.
 */
#include "kernels/abi/index.h"
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

#define CHUNK ITER_GRAIN
#define BLOCK 256

static int64_t count_block(const uint8_t *m, int64_t n)
{
	int64_t count = 0;

	for (int64_t i = 0; i < n; i++)
		count += m[i] != 0;
	return count;
}

struct counting {
	const uint8_t *mask;
	int64_t *first; /* counts of chunks, then positions in the result */
};

static void count_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct counting *c = ctx;
	int64_t count = 0;

	for (int64_t i = begin; i < end; i += BLOCK)
		count += count_block(c->mask + i, end - i < BLOCK ? end - i : BLOCK);
	c->first[begin / CHUNK] = count;
}

/* Returns a new i64 tensor: the position in the result of each chunk, then the total. */
static tensor *chunk_positions(const tensor *mask)
{
	int64_t chunks = (mask->numel + CHUNK - 1) / CHUNK, n = chunks + 1, at = 0;
	tensor *first = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &n, 1);
	struct counting c = { mask->data, first ? first->data : NULL };

	if (!first)
		return NULL;
	parallel_for(0, mask->numel, CHUNK, count_chunk, &c);
	for (int64_t i = 0; i < chunks; i++) {
		int64_t here = c.first[i];

		c.first[i] = at;
		at += here;
	}
	c.first[chunks] = at;
	return first;
}

/* Writes the positions of the true ones of n <= BLOCK elements; returns their number. */
static int64_t true_positions(const uint8_t *m, int64_t n, int64_t *at)
{
	int64_t k = 0;

	for (int64_t i = 0; i < n; i++) {
		at[k] = i;
		k += m[i] != 0;
	}
	return k;
}

/* ---- nonzero ---- */

struct nonzero_job {
	const tensor *mask;
	const int64_t *first;
	int64_t *out, total; /* column d of the result begins at d * total */
};

static void nonzero_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct nonzero_job *job = ctx;
	const tensor *mask = job->mask;
	const uint8_t *m = mask->data;
	int last = mask->ndim - 1;
	int64_t at[BLOCK], pos[TENSOR_MAX_DIMS], to = job->first[begin / CHUNK], rest = begin;

	for (int d = last; d >= 0; d--) {
		pos[d] = rest % mask->sizes[d];
		rest /= mask->sizes[d];
	}
	for (int64_t i = begin, n; i < end; i += n) {
		int64_t k, row = mask->sizes[last] - pos[last];

		n = end - i < row ? end - i : row;
		n = n < BLOCK ? n : BLOCK;
		k = true_positions(m + i, n, at);
		for (int d = 0; d < last; d++)
			for (int64_t j = 0; j < k; j++)
				job->out[d * job->total + to + j] = pos[d];
		for (int64_t j = 0; j < k; j++)
			job->out[last * job->total + to + j] = pos[last] + at[j];
		to += k;
		pos[last] += n;
		for (int d = last; d > 0 && pos[d] == mask->sizes[d]; d--) {
			pos[d] = 0;
			pos[d - 1]++;
		}
	}
}

static tensor *cpu_nonzero(const tensor *mask)
{
	tensor *first = chunk_positions(mask), *out = NULL;
	int64_t total, sizes[2], strides[2];

	if (!first)
		return NULL;
	total = ((int64_t *)first->data)[first->numel - 1];
	sizes[0] = total;
	sizes[1] = mask->ndim;
	strides[0] = 1;
	strides[1] = total > 1 ? total : 1;
	out = tensor_new_strided(TENSOR_OPTIONS(.dtype = TENSOR_I64), sizes, strides, 2);
	if (out && mask->ndim && total) {
		struct nonzero_job job = { mask, first->data, out->data, total };

		parallel_for(0, mask->numel, CHUNK, nonzero_chunk, &job);
	}
	tensor_put(first);
	return out;
}

/* ---- masked_select, masked_scatter ---- */

struct mask_job {
	const uint8_t *mask;
	const int64_t *first;
	char *to;
	const char *from;
};

#define LOOPS_FILE "kernels/cpu/index/mask_loops.h"
#include "kernels/cpu/simd/each_size.h"

static parallel_fn by_size(const tensor *t, const parallel_fn *fn)
{
	return fn[__builtin_ctz((unsigned)itemsize(t))];
}

static tensor *cpu_masked_select(const tensor *self, const tensor *mask)
{
	static const parallel_fn fn[] = { masked_select_1, masked_select_2, masked_select_4,
					  masked_select_8, masked_select_16 };
	tensor *first = chunk_positions(mask), *out = NULL;

	if (!first)
		return NULL;
	out = tensor_new_like(self, (int64_t *)first->data + first->numel - 1, 1);
	if (out)
		parallel_for(0, mask->numel, CHUNK, by_size(self, fn),
			     &(struct mask_job){ mask->data, first->data, out->data, self->data });
	tensor_put(first);
	return out;
}

static int cpu_masked_scatter(tensor *out, const tensor *mask, const tensor *source)
{
	static const parallel_fn fn[] = { masked_scatter_1, masked_scatter_2, masked_scatter_4,
					  masked_scatter_8, masked_scatter_16 };
	tensor *first = chunk_positions(mask);
	int64_t n;

	if (!first)
		return -thread()->error.code;
	n = ((int64_t *)first->data)[first->numel - 1];
	if (n <= source->numel)
		parallel_for(0, mask->numel, CHUNK, by_size(out, fn),
			     &(struct mask_job){ mask->data, first->data, out->data,
						 source->data });
	tensor_put(first);
	if (n > source->numel)
		return tensor_fail(EINVAL,
				   "masked_scatter: the mask has %lld true elements, source "
				   "only %lld elements",
				   (long long)n, (long long)source->numel);
	return 0;
}

CPU_KERNELS(KERNEL(nonzero), KERNEL(masked_select), KERNEL(masked_scatter))
