// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * grid_sampler_2d and its gradient. For a chunk of places of the grid the taps are computed once
 * and used for all channels. A tap is an element of the plane with a weight; element -1 is outside
 * of the plane and counts as zero. Of small planes vectors of channels are read, for which they are
 * transposed.
 */
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/vec.h"

#include "kernels/abi/spatial.h"
#include "kernels/formula/dtypes.h"

#include "iter/parallel.h"

#include <math.h>
#include <stdatomic.h>

#define CHUNK	    64
#define TAPS	    16
#define AXIS_TAPS   4
#define BLOCK_BYTES (256 * 1024) /* of a plane with a vector for each element */

struct grid {
	const struct grid_params *p;
	int64_t batch, channels, h, w, places, chunks;
	int taps;
	void *out;	 /* in the backward: the gradient of the input, or NULL */
	void *grad_grid; /* or NULL */
	const void *input, *grid, *grad;
	atomic_int failed; /* no memory for a transposed plane */
};

/* grid_floor: rounded down; grid_round: to the nearest integer, the even one of two. */
#if VEC_BYTES == 64
#define ROUND(NAME, v, suffix, d, HOW)                                         \
	static inline vec_##d NAME##_##d(vec_##d x)                            \
	{                                                                      \
		return (vec_##d)_mm512_roundscale_##suffix((__m512##v)x, HOW); \
	}
#elif VEC_BYTES == 32
#define ROUND(NAME, v, suffix, d, HOW)                                    \
	static inline vec_##d NAME##_##d(vec_##d x)                       \
	{                                                                 \
		return (vec_##d)_mm256_round_##suffix((__m256##v)x, HOW); \
	}
#else
#define ROUND(NAME, v, suffix, d, HOW)                                 \
	static inline vec_##d NAME##_##d(vec_##d x)                    \
	{                                                              \
		return (vec_##d)_mm_round_##suffix((__m128##v)x, HOW); \
	}
#endif
ROUND(grid_floor, , ps, f32, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
ROUND(grid_floor, d, pd, f64, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
ROUND(grid_round, , ps, f32, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
ROUND(grid_round, d, pd, f64, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

/* X(0), X(1), ... for each lane */
#define LANES_2(X, i) X(i), X((i) + 1)
#define LANES_4(X, i) LANES_2(X, i), LANES_2(X, (i) + 2)
#define LANES_8(X, i) LANES_4(X, i), LANES_4(X, (i) + 4)
#if VEC_BYTES == 64
#define LANES_F64(X) LANES_8(X, 0)
#define LANES_F32(X) LANES_8(X, 0), LANES_8(X, 8)
#elif VEC_BYTES == 32
#define LANES_F64(X) LANES_4(X, 0)
#define LANES_F32(X) LANES_8(X, 0)
#else
#define LANES_F64(X) LANES_2(X, 0)
#define LANES_F32(X) LANES_4(X, 0)
#endif

/* The elements of p at each lane's position. Gather instructions are slower on some processors. */
#define ELEMENT(i) p[at[i]]
static inline vec_f32 take_f32(const float *p, const int32_t *at)
{
	return (vec_f32){ LANES_F32(ELEMENT) };
}

static inline vec_f64 take_f64(const double *p, const int32_t *at)
{
	return (vec_f64){ LANES_F64(ELEMENT) };
}

static inline uint64_t load_pair(const float *p)
{
	uint64_t bits;

	memcpy(&bits, p, sizeof(bits));
	return bits;
}

/* The elements at each of VEC_F32 positions, and those behind them. */
#define PAIR(i) load_pair(p + at[i])
static inline void take_pairs(const float *p, const int32_t *at, vec_f32 *left, vec_f32 *right)
{
	vec_u64 a = { LANES_F64(PAIR) }, b;

	at += VEC_F64;
	b = (vec_u64){ LANES_F64(PAIR) };
	*left = __builtin_shuffle((vec_f32)a, (vec_f32)b, 2 * VEC_LANE_INDEX_32);
	*right = __builtin_shuffle((vec_f32)a, (vec_f32)b, 2 * VEC_LANE_INDEX_32 + 1);
}

/* Integers of the size of an element, and vectors of them. */
typedef uint32_t grid_bits_f32;
typedef uint64_t grid_bits_f64;
typedef vec_u32 grid_lanes_f32;
typedef vec_u64 grid_lanes_f64;

#define LOOPS_FILE "kernels/cpu/nn/grid_sampler_loops.h"
#include "kernels/cpu/simd/each_float.h"
#undef LOOPS_FILE
#define LOOPS_FILE "kernels/cpu/nn/grid_sampler_points_loops.h"
#include "kernels/cpu/simd/each_float.h"

static struct grid grid_of(const tensor *input, const tensor *grid, const struct grid_params *p)
{
	struct grid g = { .p = p,
			  .batch = input->sizes[0],
			  .channels = input->sizes[1],
			  .h = input->sizes[2],
			  .w = input->sizes[3],
			  .places = grid->sizes[1] * grid->sizes[2],
			  .input = input->data,
			  .grid = grid->data };

	g.chunks = (g.places + CHUNK - 1) / CHUNK;
	g.taps = p->mode == GRID_BILINEAR ? 4 : p->mode == GRID_NEAREST ? 1 : 16;
	return g;
}

/* Whether vectors of channels are worth a transposed plane, and it fits the cache. */
static bool by_vectors(const struct grid *g, size_t itemsize)
{
	int64_t lanes = VEC_BYTES / (int64_t)itemsize;

	return g->taps > 1 && g->channels >= lanes / 2 && g->h * g->w < BLOCK_BYTES / VEC_BYTES &&
	       g->places >= g->h * g->w / 4;
}

static int cpu_grid_sampler_2d(tensor *out, const tensor *input, const tensor *grid,
			       const struct grid_params *params)
{
	struct grid g = grid_of(input, grid, params);
	int64_t work = CHUNK * (g.channels + 1) * g.taps, lanes = VEC_BYTES / itemsize(out);
	bool f32 = out->dtype == TENSOR_F32;

	if (!f32 && out->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("grid_sampler_2d", out->dtype, "cpu");
	g.out = out->data;
	if (!out->numel)
		return 0;
	if (by_vectors(&g, itemsize(out))) {
		parallel_for(0, g.batch * ((g.channels + lanes - 1) / lanes), 1,
			     f32 ? sample_blocks_f32 : sample_blocks_f64, &g);
		if (!atomic_load(&g.failed))
			return 0;
	}
	if (g.h * g.w > INT32_MAX)
		parallel_for(0, g.batch * g.chunks, work < ITER_GRAIN ? ITER_GRAIN / work : 1,
			     f32 ? sample_f32 : sample_f64, &g);
	else
		parallel_for(0, g.batch * g.chunks, work < ITER_GRAIN ? ITER_GRAIN / work : 1,
			     f32 ? sample_planes_f32 : sample_planes_f64, &g);
	return 0;
}

static int cpu_grid_sampler_2d_backward(tensor *grad_input, tensor *grad_grid, const tensor *grad,
					const tensor *input, const tensor *grid,
					const struct grid_params *params)
{
	struct grid g = grid_of(input, grid, params);

	if (input->dtype != TENSOR_F32 && input->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("grid_sampler_2d_backward", input->dtype, "cpu");
	g.out = grad_input ? grad_input->data : NULL;
	g.grad_grid = grad_grid ? grad_grid->data : NULL;
	g.grad = grad->data;
	if (grad_input)
		memset(grad_input->data, 0, grad_input->numel * itemsize(grad_input));
	if (g.places)
		parallel_for(0, g.batch, 1,
			     input->dtype == TENSOR_F32 ? sample_backward_f32 : sample_backward_f64,
			     &g);
	return 0;
}

CPU_KERNELS(KERNEL(grid_sampler_2d), KERNEL(grid_sampler_2d_backward))
