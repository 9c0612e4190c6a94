/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Matrix products for other host files of the plugin. */
#ifndef TENSOR_CUDA_MM_H
#define TENSOR_CUDA_MM_H

#include "kernels/cuda/cuda.h"

/* `batch` matrices in memory: element [i][j] of matrix n at data + n * step + i * row + j * col, in
 * elements. scratch is NULL; cuda_multiply() uses it. */
struct cuda_matrix {
	void *data, *scratch;
	enum tensor_dtype dtype;
	int64_t rows, cols, row, col;
	int64_t batch, step;
};

/*
 * out = alpha * a b + beta * out, where m is { a, b, out }, none of which is empty. a and b have the
 * dtype of out, or f16 or bf16 if out has f32.
 */
int cuda_multiply(const struct cuda_call *c, struct cuda_matrix *m, tensor_scalar alpha,
		  tensor_scalar beta);

#endif
