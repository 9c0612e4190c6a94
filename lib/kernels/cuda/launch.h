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

#include "kernels/cuda/report.h"

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
	/* For kernels that report zero divisors. They do nothing if `refused`, on the device, is not UINT64_MAX. */
	struct cuda_report bad;
	const unsigned long long *refused; /* or NULL */
};

/* The kernels of lib/kernels/formula: cuda_launch_add(), ... */
typedef int (*cuda_launcher)(const struct cuda_pointwise *p, int dtype, cudaStream_t stream);
#define X(NAME) \
	int cuda_launch_##NAME(const struct cuda_pointwise *p, int dtype, cudaStream_t stream);
#include "kernels/cuda/pointwise/formulas.h"
#undef X

/* Reports zeros of operand 1, integers of itemsize[1] bytes; there is no operand 0. */
int cuda_launch_divisors(const struct cuda_pointwise *p, int dtype, cudaStream_t stream);
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

enum cuda_reduction {
	CUDA_REDUCE_SUM, /* f16 and bf16 only */
	CUDA_REDUCE_PROD,
	CUDA_REDUCE_MAX,
	CUDA_REDUCE_MIN,
	CUDA_REDUCE_ANY,
	CUDA_REDUCE_ALL,
	CUDA_REDUCE_COUNT, /* of elements that are not zero */
	CUDA_REDUCE_VAR,
	CUDA_REDUCE_STD,
	CUDA_REDUCE_NORM,
	CUDA_REDUCE_LOGSUMEXP,
	CUDA_REDUCE_MEAN,
	CUDA_REDUCE_NANSUM
};
#define CUDA_REDUCE_PARTIAL 24 /* bytes of a partial result */

/* Other reductions, with partial results as for sums. p is the correction of a variance, the order
 * of a norm. */
int cuda_launch_reduce(enum cuda_reduction which, const struct cuda_rows *r, int dtype, double p,
		       int split, void *partial, cudaStream_t stream);
/* The greatest or least element, to operand 0 unless that is NULL, and the position of the first one
 * in its row, to `index`, whose rows have the strides of operand 2. */
int cuda_launch_extreme(bool greatest, const struct cuda_rows *r, int dtype, int64_t *index,
			int split, void *partial, cudaStream_t stream);

/* ---- indexing: strides are elements ---- */

/*
 * Index tensors of one shape, one for each indexed dimension: index k is at offset k * slab, below
 * limit[k], and moves by step[k]. `wide`: they are i64, else i32. `wrap`: negative ones count from
 * the end.
 */
struct cuda_indices {
	int n;
	bool wide, wrap;
	int64_t slab, limit[TENSOR_MAX_DIMS], step[TENSOR_MAX_DIMS];
};

/*
 * data[0][o] = data[1][i + sum of index[k][x] * step[k]]; o, i and x are the offsets of a position.
 * If an index is out of range, its elements become 0. A position is reported times n, plus k.
 */
struct cuda_take {
	struct cuda_dims dims;
	struct cuda_indices index;
	void *data[CUDA_OPERANDS]; /* 2: the index */
	struct cuda_report bad;
};
int cuda_launch_take(const struct cuda_take *t, int itemsize, cudaStream_t stream);

enum cuda_put_mode { CUDA_PUT_SET, CUDA_PUT_ADD, CUDA_PUT_MUL, CUDA_PUT_MAX, CUDA_PUT_MIN };

/*
 * Combines rows of the source with rows of the output. `place` has the positions of the index: what
 * a position adds to its key (operand 0), its offsets in the source (1) and the index (2). The sum
 * of that and index[k] * step[k] is the key of an output row; `keys` has the offset of each key.
 * `columns` has the dimensions of a row. Positions of equal keys are combined in ascending order.
 */
struct cuda_put {
	struct cuda_dims place, keys, columns;
	struct cuda_indices index;
	enum cuda_put_mode mode;
	bool fresh;	   /* the output is not read: rows begin with 0 */
	bool by_frequency; /* a term is divided by the number of terms of its row */
	int64_t skip;	   /* a key that is ignored, or -1 */
	tensor_scalar alpha;
	void *data[CUDA_OPERANDS]; /* 2: the index */
	struct cuda_report bad;	   /* as in struct cuda_take, with a flag */
	/* Scratch memory, place.numel elements each: keys of 64 bits if wide_keys, else 32. */
	bool wide_keys;
	void *key, *sorted;
	uint32_t *position, *order;
};
/* Computes key and position, and checks the indices. */
int cuda_launch_put_keys(const struct cuda_put *p, cudaStream_t stream);
/* Sorts them, stably, to sorted and order. If temporary is NULL, only sets *nbytes to its size. */
int cuda_launch_put_sort(const struct cuda_put *p, void *temporary, size_t *nbytes,
			 cudaStream_t stream);
/* Does nothing if an index was out of range. `from` is the dtype of the source. */
int cuda_launch_put(const struct cuda_put *p, int to, int from, int itemsize, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
