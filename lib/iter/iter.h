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

#include "core/tensor_impl.h"

#define ITER_OPERANDS 5
#define ITER_GRAIN    32768 /* elements for one chunk of parallel work */
#define ITER_LINE     64    /* bytes that memory moves together */
#define ITER_NARROW   7	    /* elements; rows of no more are not worth a loop's start each */

struct tensor_iter {
	int ndim, nops;
	int64_t numel;
	enum tensor_dtype dtype; /* in which the kernel computes: the inputs' */
	bool uniform;		 /* all inputs are of that dtype */
	bool direct; /* loops may have the operands as they lie; else iter_run_blocks() */
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
 * Runs a loop whose operands have the dtypes `want` and lie side by side or, where there are two
 * inputs, are one element for a row: whatever is otherwise goes through blocks on the stack.
 * move(to, from) is the loop that copies, or converts, operand 1 to operand 0 with any strides.
 */
typedef iter_loop (*iter_lookup)(enum tensor_dtype to, enum tensor_dtype from);
void iter_run_blocks(const struct tensor_iter *it, iter_loop loop, const void *params,
		     const uint8_t *want, iter_lookup move);
/* How many rows of an operand share a line of memory, where its rows lie side by side and its
 * elements do not, as in a transposed matrix; 0 when there is no such operand. */
int64_t iter_lined_rows(const struct tensor_iter *it);

/* Operand i is one element at p, for every position. Before iter_build(). */
static inline void iter_scalar(struct tensor_iter *it, int i, void *p)
{
	it->data[i] = p;
}

/* Sizes of the broadcast of a and b into sizes; ndim, or -1 with the error set. */
int broadcast_sizes(const char *op, const tensor *a, const tensor *b, int64_t *sizes);
/* Does `t` broadcast to these sizes? */
bool broadcasts_to(const tensor *t, const int64_t *sizes, int ndim);

/* ---- memory overlap ---- */

/* An element of t lies at the same address as another: stride 0 and the like. */
bool tensor_overlaps_itself(const tensor *t);
enum overlap { OVERLAP_NONE, OVERLAP_SAME, OVERLAP_PARTIAL };
/* OVERLAP_SAME: element for element. Ranges decide, so interleaved views count as partial. */
enum overlap tensor_overlap(const tensor *a, const tensor *b);

#endif
