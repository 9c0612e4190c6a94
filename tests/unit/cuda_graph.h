// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* For the tests of CUDA graphs. */
#ifndef TESTS_CUDA_GRAPH_H
#define TESTS_CUDA_GRAPH_H

#include "cuda_results.h"

static inline tensor_cuda_graph *new_graph(void)
{
	tensor_cuda_graph *g = tensor_cuda_graph_new(0);

	assert_non_null(g);
	return g;
}

#define assert_same_bits(a, b) check_bits((a), (b), __LINE__)
static inline void check_bits(tensor *a, tensor *b, int line)
{
	tensor *x = tensor_contiguous(ok(tensor_to(ok(a), CPU)));
	tensor *y = tensor_contiguous(ok(tensor_to(ok(b), CPU)));

	size_t size = (size_t)tensor_numel(x) * tensor_itemsize(tensor_dtype(x));

	assert_int_equal(tensor_numel(x), tensor_numel(y));
	assert_int_equal(tensor_dtype(x), tensor_dtype(y));
	if (memcmp(tensor_data(x), tensor_data(y), size))
		fail_msg("line %d: the bits differ", line);
}

static inline double value_of(tensor *t)
{
	double v = -1;

	assert_done(tensor_item(ok(t), &v));
	return v;
}

static inline double element(tensor *t, int64_t i)
{
	double v = -1;

	tensor_scope {
		v = value_of(tensor_select(t, 0, i));
	}
	return v;
}

static inline struct tensor_cuda_usage usage(void)
{
	struct tensor_cuda_usage u;

	assert_done(tensor_cuda_memory(0, &u));
	return u;
}

static inline tensor *gradient_of(tensor *y, tensor *x)
{
	tensor *grad = NULL;

	return tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), &grad, 0) < 0 ? NULL : grad;
}

#endif
