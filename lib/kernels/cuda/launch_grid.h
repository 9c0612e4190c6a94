/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of grid_sampler_2d and its gradients. See launch.h and kernels/abi/spatial.h. */
#ifndef TENSOR_CUDA_LAUNCH_GRID_H
#define TENSOR_CUDA_LAUNCH_GRID_H

#include "kernels/abi/grid.h"
#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_grid {
	struct grid_params p;
	int64_t batch, channels, h, w, places;
	const void *input, *grid, *grad;
};
int cuda_launch_grid(const struct cuda_grid *g, void *out, int dtype, cudaStream_t stream);
/* The gradient of the grid. */
int cuda_launch_grid_grad(const struct cuda_grid *g, void *out, int dtype, cudaStream_t stream);

#define CUDA_GRID_CHUNK 64 /* places whose taps follow each other */
/* Terms of the gradient of the input: `taps` times CUDA_GRID_CHUNK for each chunk of places, those of
 * tap 0 first. at [batch, terms]: their element of the plane; value [batch, channels, terms]. */
int cuda_launch_grid_terms(const struct cuda_grid *g, int taps, int64_t terms, int64_t *at,
			   void *value, int dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
