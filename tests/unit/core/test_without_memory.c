// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operators whose n-th allocation fails, for each n: they fail with ENOMEM, leave no tensor, and
 * succeed when memory is available. `make torture` does the same with all operators.
 */
#include "autograd.h"

#include <unistd.h>

#include "tests/fuzz/calls/fail.c" /* replaces malloc() in this program */

enum { MOST = 2000 };

static tensor *x, *square; /* inputs, made before allocations fail */

static void operator_without_memory_gives_enomem(void **state)
{
	tensor *(*call)(void) = *state;
	struct tensor_live_counts before, after;
	bool again = false, available = false;
	long n = 0;

	if (!fail_possible)
		skip();
	tensor_scope {
		x = ok(leaf(tensor_rand(TENSOR_INTS(3, 4), F64)));
		square = ok(
			leaf(tensor_add(tensor_rand(TENSOR_INTS(3, 3), F64), tensor_eye(3, F64))));
		tensor_scope {
			available = call() || tensor_last_error()->code != ENOSYS;
		}
		if (!available)
			skip(); /* LAPACK is not installed */
		fail_spare_others();
		tensor_set_grad(x, NULL);
		tensor_set_grad(square, NULL);
		tensor_live_counts(&before);
		do {
			bool done;

			tensor_clear_error();
			tensor_scope {
				fail_at(++n);
				done = call();
				again = fail_end();
				if (!done)
					assert_int_equal(tensor_last_error()->code, ENOMEM);
			}
			tensor_set_grad(x, NULL);
			tensor_set_grad(square, NULL);
			tensor_live_counts(&after);
			assert_int_equal(after.tensors, before.tensors);
			assert_int_equal(after.storages, before.storages);
		} while (again && n < MOST);
		assert_in_range(n, 2, MOST - 1);
	}
}

/* Runs backward from the result; returns the result or NULL. */
static tensor *with_backward(tensor *t)
{
	return t && tensor_backward(tensor_sum(t)) == 0 ? t : NULL;
}

static tensor *linear(void)
{
	return with_backward(tensor_linear(x, x, tensor_none));
}

static tensor *matrix_exp(void)
{
	return tensor_linalg_matrix_exp(square);
}

static tensor *vander(void)
{
	return tensor_linalg_vander_opt(tensor_select(x, 0, 0), 3);
}

static tensor *cond(void)
{
	return tensor_linalg_cond(square, S(1));
}

static tensor *bincount(void)
{
	return tensor_bincount(tensor_arange(S(3), I64), tensor_none, 0);
}

static tensor *norm(void)
{
	return with_backward(tensor_norm(x, S(3)));
}

static tensor *prod(void)
{
	return with_backward(tensor_prod(tensor_mul(x, tensor_gt_scalar(x, S(0.5)))));
}

static tensor *det_with_graph(void)
{
	tensor *t = tensor_real(
		tensor_linalg_det(tensor_to(square, TENSOR_OPTIONS(.dtype = TENSOR_C128))));

	return t && tensor_backward_ex(TENSOR_LIST(t), NULL, (tensor_list){ 0 }, NULL,
				       TENSOR_CREATE_GRAPH) == 0 ?
		       t :
		       NULL;
}

static tensor *attention(void)
{
	tensor *q = tensor_unsqueeze(x, 0), *mask = tensor_ones(TENSOR_INTS(3, 3), F64);

	return tensor_scaled_dot_product_attention(q, q, q, mask, 0, false);
}

static tensor *batch_norm(void)
{
	tensor *mean = tensor_zeros(TENSOR_INTS(4), F64), *var = tensor_ones(TENSOR_INTS(4), F64);

	return with_backward(
		tensor_batch_norm(x, tensor_none, tensor_none, mean, var, true, 0.1, 1e-5, false));
}

static tensor *batch_norm_with_graph(void)
{
	tensor *half = tensor_to(x, TENSOR_OPTIONS(.dtype = TENSOR_F16)), *t;

	t = tensor_sum(tensor_batch_norm(half, tensor_none, tensor_none, tensor_none, tensor_none,
					 true, 0.1, 1e-5, false));
	return t && tensor_backward_ex(TENSOR_LIST(t), NULL, (tensor_list){ 0 }, NULL,
				       TENSOR_CREATE_GRAPH) == 0 ?
		       t :
		       NULL;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		{ "linear_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  linear },
		{ "matrix_exp_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, matrix_exp },
		{ "vander_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  vander },
		{ "cond_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  cond },
		{ "bincount_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  bincount },
		{ "norm_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  norm },
		{ "prod_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  prod },
		{ "det_with_graph_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, det_with_graph },
		{ "batch_norm_with_graph_without_memory_fails",
		  operator_without_memory_gives_enomem, NULL, NULL, batch_norm_with_graph },
		{ "attention_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, attention },
		{ "batch_norm_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, batch_norm },
	};

	/* Otherwise tensors would use blocks that the thread has cached, without an allocation. */
	if (!getenv("TENSOR_DEBUG")) {
		setenv("TENSOR_DEBUG", "1", 1);
		execv("/proc/self/exe", argv);
	}
	return cmocka_run_group_tests_name("without_memory", tests, NULL, NULL);
}
