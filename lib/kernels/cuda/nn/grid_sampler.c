// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* grid_sampler_2d and its gradients. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_grid.h"

static struct cuda_grid describe(const tensor *input, const tensor *grid,
				 const struct grid_params *params)
{
	return (struct cuda_grid){ .p = *params,
				   .batch = input->sizes[0],
				   .channels = input->sizes[1],
				   .h = input->sizes[2],
				   .w = input->sizes[3],
				   .places = grid->sizes[1] * grid->sizes[2],
				   .input = input->data,
				   .grid = grid->data };
}

int cuda_grid_sampler_2d(tensor *out, const tensor *input, const tensor *grid,
			 const struct grid_params *params)
{
	const struct cuda_grid g = describe(input, grid, params);
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "grid_sampler_2d", out->device.index, out, input, grid);
	if (err)
		return err;
	err = cuda_launch_grid(&g, out->data, out->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, out->dtype));
}

/* Adds the terms, in scratch memory, to the planes: at is [batch, 1, terms], expanded. */
static int add_terms(const struct cuda_call *c, const struct cuda_grid *g, tensor *grad_input,
		     int64_t terms, int taps, void *data)
{
	tensor out = *grad_input, value = *grad_input, at = *grad_input;
	int64_t *positions = data;
	int err;

	value.data = positions + g->batch * terms;
	at.data = positions;
	at.dtype = TENSOR_I64;
	out.ndim = value.ndim = at.ndim = 3;
	out.sizes[2] = g->h * g->w;
	out.strides[2] = value.strides[2] = at.strides[2] = 1;
	value.sizes[2] = at.sizes[2] = terms;
	value.numel = at.numel = g->batch * g->channels * terms;
	value.strides[1] = terms;
	value.strides[0] = g->channels * terms;
	at.strides[1] = 0;
	at.strides[0] = terms;
	at.contiguous = value.contiguous = false;
	err = cuda_launched(c,
			    cuda_launch_grid_terms(g, taps, terms, positions, value.data,
						   grad_input->dtype, c->stream),
			    grad_input->dtype);
	return err ? err : cuda_scatter_add(c->op, &out, 2, &at, &value);
}

static int input_gradient(const struct cuda_call *c, const struct cuda_grid *g, tensor *grad_input)
{
	const int taps = g->p.mode == GRID_BILINEAR ? 4 : g->p.mode == GRID_NEAREST ? 1 : 16;
	const int64_t chunks = (g->places + CUDA_GRID_CHUNK - 1) / CUDA_GRID_CHUNK;
	const int64_t terms = chunks * CUDA_GRID_CHUNK * taps;
	const size_t itemsize = tensor_itemsize(grad_input->dtype);
	void *data = NULL;
	int err =
		cuda_check(c->op, cudaMemsetAsync(grad_input->data, 0,
						  (size_t)grad_input->numel * itemsize, c->stream));

	if (err || !terms || !grad_input->numel)
		return err;
	err = cuda_scratch(
		c, (size_t)(g->batch * terms) * (sizeof(int64_t) + (size_t)g->channels * itemsize),
		&data);
	if (!err)
		err = add_terms(c, g, grad_input, terms, taps, data);
	cuda_scratch_free(c, data);
	return err;
}

int cuda_grid_sampler_2d_backward(tensor *grad_input, tensor *grad_grid, const tensor *grad,
				  const tensor *input, const tensor *grid,
				  const struct grid_params *params)
{
	struct cuda_grid g = describe(input, grid, params);
	struct cuda_call c;
	int err;

	err = cuda_begin_with(&c, "grid_sampler_2d_backward", input->device.index, grad_input,
			      grad_grid, grad, input, grid);
	if (err)
		return err;
	g.grad = grad->data;
	if (grad_grid && grad_grid->numel)
		err = cuda_launched(
			&c, cuda_launch_grid_grad(&g, grad_grid->data, input->dtype, c.stream),
			input->dtype);
	if (!err && grad_input)
		err = input_gradient(&c, &g, grad_input);
	return cuda_end(&c, err);
}
