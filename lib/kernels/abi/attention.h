/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The kernels of attention. All tensors have the same batch dimensions, which may be expanded: query and grad_query
 * [*, l, e], key and grad_key [*, s, e], value and grad_value [*, s, v], mask (bool or floating, NULL: none) [*, l, s],
 * output and grad [*, l, v], logsumexp [*, l]. They have any strides, except that grad_key and grad_value have
 * contiguous rows, and one floating dtype; logsumexp has f32 for a reduced float.
 */
#ifndef TENSOR_ATTENTION_H
#define TENSOR_ATTENTION_H

#include "core/tensor_impl.h"

#define ATTENTION_FEATURES (1 << 20) /* e + v is less */

struct attention_inputs {
	const tensor *query, *key, *value, *mask;
	bool causal; /* query i has the keys up to i */
	double scale;
};

typedef int (*attention_kernel)(tensor *output, tensor *logsumexp,
				const struct attention_inputs *in);
extern attention_kernel type_of_attention;
typedef int (*attention_backward_kernel)(tensor *grad_query, tensor *grad_key, tensor *grad_value,
					 const tensor *grad, const tensor *output,
					 const tensor *logsumexp,
					 const struct attention_inputs *in);
extern attention_backward_kernel type_of_attention_backward;

/* Queries below which a panel of the kernel has unused lanes, so that products with scores in f32 are faster. */
enum { ATTENTION_FEW_QUERIES = 8 };

/* Whether the kernel of bf16 is faster than the composition with few queries, too. */
typedef bool (*attention_takes_bf16_kernel)(void);
extern attention_takes_bf16_kernel type_of_attention_takes_bf16;

#endif
