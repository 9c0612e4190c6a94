/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers of the autograd tests: leaves, and checks of node names. */
#ifndef TESTS_AUTOGRAD_H
#define TESTS_AUTOGRAD_H

#include "check.h"

static inline tensor *leaf(tensor *t)
{
	assert_done(tensor_set_requires_grad(ok(t), true));
	return t;
}

/* A leaf of this shape with the values start, start + 1, ... */
static inline tensor *leaf_iota(double start, tensor_ints shape)
{
	return leaf(iota(start, shape));
}

static inline void assert_name(const tensor_node *node, const char *name)
{
	assert_non_null(node);
	assert_string_equal(tensor_node_name(node), name);
}

#endif
