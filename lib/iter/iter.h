/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The iterator: visits operands of one broadcast shape together, in an order chosen for locality.
 *
 * Operand 0 is the output, whose shape is the shape of the iteration. Strides are in bytes;
 * dimension 0 is the innermost. Adjacent dimensions are merged where the elements of every operand
 * are evenly spaced across both, so contiguous operands of any rank become one dimension.
 */
#ifndef TENSOR_ITER_H
#define TENSOR_ITER_H

#include "core/tensor_impl.h"

#define ITER_OPERANDS 5
#define ITER_GRAIN    32768 /* elements in a chunk of parallel work */
#define ITER_LINE     64    /* bytes in a cache line */
#define ITER_NARROW   7	    /* elements; rows that are never worth a kernel call each */

struct tensor_iter {
	int ndim, nops;
	int64_t numel;
	enum tensor_dtype dtype; /* dtype in which the kernel computes: that of the inputs */
	bool uniform;		 /* all inputs have that dtype */
	bool direct; /* kernels can read the operands in place; else iter_run_packed() */
	char *data[ITER_OPERANDS];
	/* The operands given to iter_build(), NULL for a scalar; backends read the devices from
	 * them. Borrowed: the caller keeps the array while a kernel runs. */
	const tensor *const *op;
	int64_t shape[TENSOR_MAX_DIMS];
	int64_t strides[ITER_OPERANDS][TENSOR_MAX_DIMS];
};

/* A kernel over two dimensions: n1 rows of n0 elements. s0 and s1 are each operand's byte strides
 * within a row and between rows. */
typedef void (*iter_loop)(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0,
			  int64_t n1, const void *params);

/* Build the iterator. The caller has checked that the shapes broadcast to that of op[0]. A NULL
 * entry is an operand set by iter_scalar(), with one element of dtype_wide(it->dtype). */
void iter_build(struct tensor_iter *it, const tensor *const *op, int nops);
/* The end of iter_build() and iter_expand(): merge dimensions that are in order, and set `direct`. */
void iter_settle(struct tensor_iter *it);
/* Run the kernel over all elements, in parallel if there are more than ITER_GRAIN. */
void iter_run(const struct tensor_iter *it, iter_loop loop, const void *params);

/* dtype of operand i. */
static inline unsigned iter_dtype(const struct tensor_iter *it, int i)
{
	return it->op[i] ? it->op[i]->dtype : dtype_wide(it->dtype);
}

/*
 * Whether kernels have a fast form for rows of one repeated element in operand i: binary kernels for
 * each input, ternary ones for the last.
 */
static inline bool iter_may_repeat(const struct tensor_iter *it, int i)
{
	return (it->nops == 3 && i > 0) || (it->nops == 4 && i == 3);
}

/*
 * Run a kernel whose operands must have the dtypes `want`, with adjacent elements or, where
 * iter_may_repeat() allows it, one element repeated along the row. Operands that differ are packed into blocks on the
 * stack (iter_pack.c). move(to, from) returns the kernel that copies or converts operand 1 to
 * operand 0 with any strides.
 */
typedef iter_loop (*iter_lookup)(enum tensor_dtype to, enum tensor_dtype from);
void iter_run_packed(const struct tensor_iter *it, iter_loop loop, const void *params,
		     const uint8_t *want, iter_lookup move);
/* The same for a kernel for f16 or bf16 that reads an input of stride 0 as f32: an input that is
 * wanted in the reduced dtype is never passed with stride 0. */
void iter_run_packed_reduced(const struct tensor_iter *it, iter_loop loop, const void *params,
			     const uint8_t *want, iter_lookup move);
/* Whether iter_run_packed() packs several rows into one, because they are too short for a kernel
 * call each. */
bool iter_joins_rows(const struct tensor_iter *it);
/*
 * Where inner dimensions have short rows, which would be long ones if inputs that repeat a few
 * elements there, and the same ones in all outer dimensions, were stored in full (a bias of
 * [1, 64, 1, 1] beside [32, 64, 2, 2]): stores those in *block and changes the iterator. The
 * caller frees the block by storage_put() after the run; it is NULL if nothing was stored. 0, or
 * -ENOMEM with the error set.
 */
int iter_expand(struct tensor_iter *it, iter_lookup move, struct tensor_storage **block);
/* Number of rows of an operand that share a cache line, where the operand is adjacent across rows
 * but not within them (a transposed matrix). 0 if there is no such operand. */
int64_t iter_cache_line_rows(const struct tensor_iter *it);

/* Make operand i a scalar: one element at p for every position. Call before iter_build(). */
static inline void iter_scalar(struct tensor_iter *it, int i, void *p)
{
	it->data[i] = p;
}

/* Store the shape to which a and b broadcast in sizes. Returns its ndim, or -1 with the error set.
 */
int iter_broadcast_sizes(const char *op, const tensor *a, const tensor *b, int64_t *sizes);
/* True if `t` broadcasts to these sizes. */
bool iter_broadcasts_to(const tensor *t, const int64_t *sizes, int ndim);

/* ---- memory overlap ---- */

/* True if two elements of t may share an address, as with stride 0. */
bool tensor_overlaps_itself(const tensor *t);
enum overlap { OVERLAP_NONE, OVERLAP_SAME, OVERLAP_PARTIAL };
/* OVERLAP_SAME: the same elements at the same addresses. The test compares address ranges, so
 * interleaved views count as partial overlap. */
enum overlap tensor_overlap(const tensor *a, const tensor *b);

#endif
