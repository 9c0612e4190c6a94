/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Between the plugin's host code (C) and its kernels (CUDA C++): plain structs, and a launcher
 * for each family of kernels. The host side has checked everything, collapsed dimensions and
 * chosen the index width; the kernel side chooses a template instance and launches it.
 *
 * A launcher returns a cudaError_t, or CUDA_NO_DTYPE when it has no kernel for the dtype.
 */
#ifndef TENSOR_CUDA_LAUNCH_H
#define TENSOR_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_OPERANDS 3
#define CUDA_NO_DTYPE (-1)

/*
 * Sizes and strides of a walk over several operands; dimension 0 is the innermost. The unit of
 * the strides (bytes, elements) is the user's.
 */
struct cuda_dims {
	int ndim;
	bool wide; /* positions or offsets need 64 bits */
	int64_t numel;
	int64_t size[TENSOR_MAX_DIMS];
	int64_t stride[CUDA_OPERANDS][TENSOR_MAX_DIMS];
};

/* ---- elementwise: operand 0 is written; strides are bytes ---- */

struct cuda_pointwise {
	struct cuda_dims dims;
	/* Every operand is contiguous, or a number: no strides are needed. */
	bool flat;
	char *data[CUDA_OPERANDS];	/* NULL: the number */
	uint64_t number[CUDA_OPERANDS]; /* its first bytes are the value, in the kernel's dtype */
	tensor_scalar alpha;
};

enum cuda_binary { CUDA_ADD, CUDA_ADD_ALPHA, CUDA_MUL, CUDA_DIV, CUDA_RELU_BACKWARD };

int cuda_launch_binary(enum cuda_binary which, const struct cuda_pointwise *p, int dtype,
		       cudaStream_t stream);
int cuda_launch_relu(const struct cuda_pointwise *p, int dtype, cudaStream_t stream);
/* Operand 0 becomes number[1], itemsize bytes of it. */
int cuda_launch_fill(const struct cuda_pointwise *p, int itemsize, cudaStream_t stream);
/* Operand 1 into operand 0, converted. */
int cuda_launch_copy(const struct cuda_pointwise *p, int to, int from, int itemsize,
		     cudaStream_t stream);

/* ---- along some dimensions: strides are elements ---- */

/*
 * Rows: `kept` walks over them, `reduced` along each. Operand 0 is the output, 1 and 2 inputs.
 */
struct cuda_rows {
	struct cuda_dims kept, reduced;
	void *data[CUDA_OPERANDS];
};

/* Each row becomes one number. `split` pieces of a row are summed apart into `partial`
 * (rows * split elements of the output's dtype), and then these; with 1 it may be NULL. */
int cuda_launch_sum(const struct cuda_rows *r, int dtype, int split, void *partial,
		    cudaStream_t stream);
int cuda_launch_softmax(const struct cuda_rows *r, int dtype, bool log, cudaStream_t stream);
/* Operand 1 is the gradient, 2 the forward's output. */
int cuda_launch_softmax_backward(const struct cuda_rows *r, int dtype, bool log,
				 cudaStream_t stream);

/* ---- indexing: strides are elements ---- */

/*
 * take: for each position, data[0][o] = data[1][i + index[x] * step]; operand 2 is the index.
 * put: dims goes over all dimensions of the source but one, which each thread walks itself, so
 * that repeated positions are added in order, with the same bits every time:
 * data[0][o + index[x + k * along[2]] * step] += alpha * data[1][i + k * along[1]], k < count.
 */
struct cuda_index {
	struct cuda_dims dims;
	void *data[CUDA_OPERANDS];
	int64_t step;  /* from one position of the indexed dimension to the next */
	int64_t limit; /* positions there */
	int64_t count, along[CUDA_OPERANDS];
	tensor_scalar alpha;
	bool wide_index; /* i64, else i32 */
};

/* Stores the least position (in the order of the walk over operand 2) of an index outside
 * 0 .. limit - 1 in *bad, which must hold UINT64_MAX before. */
int cuda_launch_check_index(const struct cuda_index *x, unsigned long long *bad,
			    cudaStream_t stream);
int cuda_launch_take(const struct cuda_index *x, int itemsize, cudaStream_t stream);
int cuda_launch_put(const struct cuda_index *x, int dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
