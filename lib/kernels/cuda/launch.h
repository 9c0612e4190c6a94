/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The interface between the plugin's host code (C) and its kernels (CUDA C++): plain structs, and
 * a launcher for each family of kernels. The host side checks the arguments, merges dimensions and
 * chooses the index width; a launcher selects a template instance and launches it.
 *
 * A launcher returns a cudaError_t, or CUDA_NO_DTYPE if it has no kernel for the dtype; one of an
 * elementwise kernel may return CUDA_TOO_WIDE.
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

#define CUDA_OPERANDS 4
#define CUDA_NO_DTYPE (-1)
#define CUDA_TOO_WIDE (-2) /* more than CUDA_POSITIONS_MAX elements: the caller splits the call */

/* Positions up to this are computed in 32 bits. Tests lower it. */
#ifndef CUDA_POSITIONS_MAX
#define CUDA_POSITIONS_MAX INT32_MAX
#endif

/*
 * Sizes and strides of several operands; dimension 0 is the innermost. The unit of the strides
 * (bytes or elements) depends on the struct that contains this one.
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
	/* Every operand is contiguous or a scalar: strides are not read. */
	bool flat;
	char *data[CUDA_OPERANDS]; /* NULL: a scalar */
	size_t itemsize[CUDA_OPERANDS];
	/* The first bytes of each are the value, in the dtype that the kernel computes in. */
	struct cuda_element {
		uint64_t bits[2];
	} scalar[CUDA_OPERANDS];
	tensor_scalar a, b, c; /* parameters, see struct pointwise_params */
	void *flag;	       /* device memory, for kernels that report zero divisors: a bool */
};

/* The kernels of lib/kernels/formula: cuda_launch_add(), ... */
typedef int (*cuda_launcher)(const struct cuda_pointwise *p, int dtype, cudaStream_t stream);
#define X(NAME) \
	int cuda_launch_##NAME(const struct cuda_pointwise *p, int dtype, cudaStream_t stream);
#include "kernels/cuda/formulas.h"
#undef X

/* Copies operand 1, which may be a scalar, to operand 0: elements of `itemsize` bytes. */
int cuda_launch_bits(const struct cuda_pointwise *p, int itemsize, cudaStream_t stream);
/* Copies operand 1 to operand 0, with conversion. */
int cuda_launch_convert(const struct cuda_pointwise *p, int to, int from, cudaStream_t stream);

/* ---- reductions: strides are elements ---- */

/* `kept`: the dimensions that select a row, `reduced`: those along a row. Operand 0 is the output,
 * 1 and 2 are inputs. */
struct cuda_rows {
	struct cuda_dims kept, reduced;
	/* Elements are adjacent across rows, not along them: each thread sums a row of its own. */
	bool across;
	void *data[CUDA_OPERANDS];
};

/* Sums each row. With split > 1, `split` pieces of each row are summed into `partial` (rows * split
 * elements of the output's dtype) and then added; with split 1 it may be NULL. */
int cuda_launch_sum(const struct cuda_rows *r, int dtype, int split, void *partial,
		    cudaStream_t stream);
int cuda_launch_softmax(const struct cuda_rows *r, int dtype, bool log, cudaStream_t stream);
/* Operand 1 is the gradient, 2 the output of the forward. */
int cuda_launch_softmax_backward(const struct cuda_rows *r, int dtype, bool log,
				 cudaStream_t stream);

/* ---- indexing: strides are elements ---- */

/*
 * take: data[0][o] = data[1][i + index[x] * step] for each position; operand 2 is the index.
 * put: data[0][o + index[x + k * along[2]] * step] += alpha * data[1][i + k * along[1]], k < count.
 * `dims` has all dimensions of the source but the indexed one, along which a single thread adds in
 * order, so that repeated indices give the same bits every time.
 */
struct cuda_index {
	struct cuda_dims dims;
	void *data[CUDA_OPERANDS];
	int64_t step;  /* stride of the indexed dimension */
	int64_t limit; /* its size */
	int64_t count, along[CUDA_OPERANDS];
	tensor_scalar alpha;
	bool wide_index; /* i64, else i32 */
};

/* Stores the lowest position (in the order of dims) of an index outside 0 .. limit - 1 in *bad,
 * which the caller sets to UINT64_MAX. */
int cuda_launch_check_index(const struct cuda_index *x, unsigned long long *bad,
			    cudaStream_t stream);
int cuda_launch_take(const struct cuda_index *x, int itemsize, cudaStream_t stream);
int cuda_launch_put(const struct cuda_index *x, int dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
