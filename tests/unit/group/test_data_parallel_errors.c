// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Data-parallel training whose ranks do not do the same. */
#include "ranks.h"

#include <tensor/buffer.h>
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

/* Rank 1 has a parameter or buffer that it cannot receive; rank 0, which would only send, gets the error, too. */
static void read_only(tensor_group *g, void *arg)
{
	tensor *leaf = new_leaf(3), *other = tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F64));
	tensor *wide = tensor_expand(other, TENSOR_INTS(2, 4));
	const bool is_buffer = arg;
	tensor *list[] = { leaf, other };

	if (tensor_group_rank(g) == 1)
		NEED(!tensor_buffer_seal(other));
	NEED(!tensor_data_parallel_new_of((tensor_list){ list, is_buffer ? 1 : 2 },
					  (tensor_list){ is_buffer ? &other : NULL, is_buffer }, g,
					  NULL));
	NEED(tensor_last_error()->code == EINVAL);
	NEED(strstr(tensor_last_error()->text,
		    is_buffer ? "buffer 0 of a rank cannot be written" :
				"parameter 1 of a rank cannot be written") != NULL);
	/* Elements that share memory, on all ranks. */
	list[1] = wide;
	NEED(!tensor_data_parallel_new_of((tensor_list){ list, 2 }, (tensor_list){ NULL, 0 }, g,
					  NULL));
	NEED(strstr(tensor_last_error()->text, "cannot be written") != NULL);
	NEED(!tensor_group_barrier(g, NULL));
	tensor_release(wide);
	tensor_release(other);
	tensor_release(leaf);
}

static void read_only_tensors_are_an_error_on_all_ranks(void **state)
{
	run_ranks_for(3, INT64_C(5000000000), read_only, NULL);
	run_ranks_for(3, INT64_C(5000000000), read_only, (void *)1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_goes_on_after_steps_that_failed),
		cmocka_unit_test(ranks_train_the_same_parameters),
		cmocka_unit_test(read_only_tensors_are_an_error_on_all_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
