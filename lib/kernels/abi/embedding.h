/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels of embeddings. All tensors are contiguous; indices, offsets, offset2bag, bag_size and
 * maximum have one dtype, i32 or i64. Rows of a table may be f16 or bf16 and are computed in f32;
 * results are f32 or f64. Kernels fail with ERANGE if an index is out of range.
 */
#ifndef TENSOR_EMBEDDING_H
#define TENSOR_EMBEDDING_H

#include "kernels/abi/kernels.h"

struct embedding {
	int64_t padding_idx; /* a row whose gradient is zero; -1: none */
	bool by_frequency;   /* divide the gradient of a row by the number of its occurrences */
};

/*
 * out [n, d] = for each row the sum of grad [m, d] over its occurrences in indices [m], in order.
 */
typedef int (*embedding_backward_kernel)(tensor *out, const tensor *grad, const tensor *indices,
					 const struct embedding *e);
extern embedding_backward_kernel type_of_embedding_backward;

enum bag_mode { BAG_SUM, BAG_MEAN, BAG_MAX };

/* Bag i is the rows of weight [n, d] at indices [m] from offsets[i] to offsets[i + 1] or m. */
struct bags {
	const tensor *indices, *offsets;
	const tensor *factors; /* [m], weights of the rows in the dtype of the result; NULL: 1 */
	enum bag_mode mode;
	struct embedding e;
	/* Outputs of the forward kernel. */
	tensor *offset2bag; /* [m] */
	tensor *bag_size;   /* [bags]; 0 for BAG_SUM */
	tensor *maximum;    /* [bags, d]: the row of each maximum; BAG_MAX only */
};

typedef int (*embedding_bag_kernel)(tensor *out, const tensor *weight, const struct bags *b);
extern embedding_bag_kernel type_of_embedding_bag;
/* out [n, d] from grad [bags, d]; offsets are not read. */
typedef int (*embedding_bag_backward_kernel)(tensor *out, const tensor *grad, const struct bags *b);
extern embedding_bag_backward_kernel type_of_embedding_bag_backward;
/* out [m], the gradient of factors: the dot product of the row and the gradient of its bag. */
typedef int (*embedding_bag_weights_backward_kernel)(tensor *out, const tensor *grad,
						     const tensor *weight, const struct bags *b);
extern embedding_bag_weights_backward_kernel type_of_embedding_bag_weights_backward;

#endif
