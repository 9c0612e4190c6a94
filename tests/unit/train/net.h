/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A small model, and a check that a test frees all tensors. */
#ifndef TESTS_TRAIN_NET_H
#define TESTS_TRAIN_NET_H

#include "train/filled.h"

static struct tensor_live_counts before;

static inline int count_live(void **state)
{
	(void)state;
	tensor_live_counts(&before);
	return 0;
}

static inline int nothing_is_left(void **state)
{
	struct tensor_live_counts after;

	(void)state;
	tensor_live_counts(&after);
	return after.tensors != before.tensors || after.storages != before.storages;
}

/* A model with a child in a child, a buffer, and dropout. */
static inline tensor *net(tensor_module *m, tensor *x)
{
	tensor_module *block = tensor_module_child(m, "layer1.0");

	x = tensor_relu(tensor_module_linear(block, "fc", x, 5));
	x = tensor_module_batch_norm(block, "bn", x);
	return tensor_module_linear(m, "out", x, 2);
}

static inline tensor *input(void)
{
	return filled(TENSOR_INTS(3, 4), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, count_live, nothing_is_left)

#endif
