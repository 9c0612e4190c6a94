// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * grid_sampler_2d and its gradient. For a chunk of places of the grid the taps are computed once
 * and used for all channels. A tap is an element of the plane with a weight; element -1 is outside
 * of the plane and counts as zero.
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/spatial.h"

#include "iter/parallel.h"

#include <math.h>

#define CHUNK 64
#define TAPS  16

struct grid {
	const struct grid_params *p;
	int64_t batch, channels, h, w, places, chunks;
	int taps;
	void *out;	 /* in the backward: the gradient of the input, or NULL */
	void *grad_grid; /* or NULL */
	const void *input, *grid, *grad;
};

#define FAR 1e9 /* positions beyond are replaced by -FAR, which an integer can hold */

#define LOOPS_FILE "kernels/cpu/nn/grid_sampler_loops.h"
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

static int cpu_grid_sampler_2d(tensor *out, const tensor *input, const tensor *grid,
			       const struct grid_params *params)
{
	struct grid g = grid_of(input, grid, params);
	int64_t work = CHUNK * (g.channels + 1) * g.taps;

	if (out->dtype != TENSOR_F32 && out->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("grid_sampler_2d", out->dtype, "cpu");
	g.out = out->data;
	if (out->numel)
		parallel_for(0, g.batch * g.chunks, work < ITER_GRAIN ? ITER_GRAIN / work : 1,
			     out->dtype == TENSOR_F32 ? sample_f32 : sample_f64, &g);
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
