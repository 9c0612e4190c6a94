// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Data-parallel training whose ranks do not do the same. */
#include "ranks.h"

#include <tensor/parallel.h>

static tensor *new_leaf(int n)
{
	tensor *t = tensor_ones(TENSOR_INTS(n), F64);

	tensor_set_requires_grad(t, true);
	return t;
}

/* Steps that end with an error all ranks get; the group goes on, and so does the training. */
static void failed_steps(tensor_group *g, void *arg)
{
	tensor *leaf = new_leaf(3);
	tensor_data_parallel *dp = tensor_data_parallel_new_of((tensor_list){ &leaf, 1 },
							       (tensor_list){ NULL, 0 }, g, NULL);

	NEED(dp);
	for (int i = 0; i < 40; i++)
		tensor_scope {
			if (tensor_group_rank(g))
				NEED(tensor_group_barrier(g, NULL) == -EINVAL);
			else
				NEED(tensor_data_parallel_backward(dp, tensor_sum(leaf)) ==
				     -EINVAL);
		}
	tensor_scope
		NEED(!tensor_data_parallel_backward(dp, tensor_sum(leaf)));
	tensor_data_parallel_free(dp);
	tensor_release(leaf);
}

static void training_goes_on_after_steps_that_failed(void **state)
{
	run_ranks(2, failed_steps, NULL);
}

static void different_leaves(tensor_group *g, void *arg)
{
	tensor *leaves[] = { new_leaf(3), new_leaf(3) };

	tensor_set_requires_grad(leaves[tensor_group_rank(g) != 0], false);
	NEED(!tensor_data_parallel_new_of((tensor_list){ leaves, 2 }, (tensor_list){ NULL, 0 }, g,
					  NULL));
	NEED(tensor_last_error()->code == EINVAL);
	NEED(strstr(tensor_last_error()->text, "parameter 0 requires a gradient") != NULL);
	tensor_release(leaves[0]);
	tensor_release(leaves[1]);
}

static void ranks_train_the_same_parameters(void **state)
{
	run_ranks(2, different_leaves, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_goes_on_after_steps_that_failed),
		cmocka_unit_test(ranks_train_the_same_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
