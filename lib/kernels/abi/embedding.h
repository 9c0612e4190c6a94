/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels of embeddings. Tensors are contiguous; indices, offsets and what is counted are all i32
 * or all i64. Rows of a table may be halves, which are computed as f32; results are never halves.
 * EINVAL for an index out of range.
 */
#ifndef TENSOR_EMBEDDING_H
#define TENSOR_EMBEDDING_H

#include "kernels/abi/kernels.h"

/* What applies to all of them: a row that does not count (-1: none), and whether a row's gradient
 * is divided by the number of its occurrences. */
struct embedding {
	int64_t padding_idx;
	bool by_frequency;
};

/* out [n, d] = for each row the sum of the grads [m, d] of its indices [m], in their order. */
typedef int (*embedding_backward_kernel)(tensor *out, const tensor *grad, const tensor *indices,
					 const struct embedding *e);

enum bag_mode { BAG_SUM, BAG_MEAN, BAG_MAX };

/* Bags of indices [m], from offsets[i] to offsets[i + 1] or the end, of rows of weight [n, d]. */
struct bags {
	const tensor *indices, *offsets;
	const tensor *factors; /* [m] of the computing dtype; NULL: 1 */
	enum bag_mode mode;
	struct embedding e;
	/* made by the forward kernel */
	tensor *offset2bag; /* [m] */
	tensor *bag_size;   /* [bags]; 0 for BAG_SUM */
	tensor *maximum;    /* [bags, d]: from which row; for BAG_MAX alone */
};

typedef int (*embedding_bag_kernel)(tensor *out, const tensor *weight, const struct bags *b);
/* out [n, d] from grad [bags, d]; offsets are not read. */
typedef int (*embedding_bag_backward_kernel)(tensor *out, const tensor *grad, const struct bags *b);
/* out [m]: the product of each index's row and its bag's gradient. */
typedef int (*embedding_bag_weights_backward_kernel)(tensor *out, const tensor *grad,
						     const tensor *weight, const struct bags *b);

#endif
