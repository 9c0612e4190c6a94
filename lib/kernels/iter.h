/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The iterator: walks operands of one broadcast shape together, in the order that memory likes.
 *
 * Operand 0 is the output; its shape is the shape of the walk. Strides are in bytes; dimension 0
 * is the innermost. Neighbouring dimensions that are one run for every operand are merged, so
 * that contiguous operands of any rank are one dimension.
 */
#ifndef TENSOR_ITER_H
#define TENSOR_ITER_H

#include "../internal.h"

#define ITER_OPERANDS 5
#define ITER_GRAIN    32768 /* elements for one chunk of parallel work */

struct tensor_iter {
	int ndim, nops;
	int64_t numel;
	enum tensor_dtype dtype; /* in which the kernel computes: the inputs' */
	bool uniform; /* all inputs are of that dtype */
	char *data[ITER_OPERANDS];
	/* As given to iter_build(), NULL for a number: for backends that must know the device.
	 * Borrowed from the caller, who keeps it for as long as a kernel runs. */
	const tensor *const *op;
	int64_t shape[TENSOR_MAX_DIMS];
	int64_t strides[ITER_OPERANDS][TENSOR_MAX_DIMS];
};

/*
 * A loop over two dimensions: n1 rows of n0 elements. s0 and s1 are the byte strides of each
 * operand within a row and between rows.
 */
typedef void (*iter_loop)(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0,
			  int64_t n1, const void *params);

/* Operands of shapes that broadcast to op[0]'s (checked by the caller). NULL entries have been
 * set up by iter_scalar(), with an element of dtype_wide(it->dtype), and keep that. */
void iter_build(struct tensor_iter *it, const tensor *const *op, int nops);
/* Runs the loop over everything, in parallel where that pays. */
void iter_run(const struct tensor_iter *it, iter_loop loop, const void *params);

/* Operand i's own dtype. */
static inline unsigned iter_dtype(const struct tensor_iter *it, int i)
{
	return it->op[i] ? it->op[i]->dtype : dtype_wide(it->dtype);
}

/*
 * Runs a loop whose operands have the dtypes `want` over operands of other dtypes: what differs
 * goes through blocks on the stack, converted by the loops (operand 0 to, 1 from) in
 * convert[to][from]. NULL in convert for a pair that is needed must not be.
 */
typedef iter_loop iter_convert[TENSOR_DTYPE_COUNT][TENSOR_DTYPE_COUNT];
void iter_run_converted(const struct tensor_iter *it, iter_loop loop, const void *params,
			const uint8_t *want, const iter_convert *convert);

/* Operand i is one element at p, for every position. Before iter_build(). */
static inline void iter_scalar(struct tensor_iter *it, int i, void *p)
{
	it->data[i] = p;
}

/* Sizes of the broadcast of a and b into sizes; ndim, or -1 with the error set. */
int broadcast_sizes(const char *op, const tensor *a, const tensor *b, int64_t *sizes);
/* Does `t` broadcast to these sizes? */
bool broadcasts_to(const tensor *t, const int64_t *sizes, int ndim);

/* ---- memory overlap ------------------------------------------------------------------------ */

/* An element of t lies at the same address as another: stride 0 and the like. */
bool tensor_overlaps_itself(const tensor *t);
enum overlap { OVERLAP_NONE, OVERLAP_SAME, OVERLAP_PARTIAL };
/* OVERLAP_SAME: element for element. Ranges decide, so interleaved views count as partial. */
enum overlap tensor_overlap(const tensor *a, const tensor *b);

#endif
