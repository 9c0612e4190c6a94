// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Checkpoints. */
#include "autograd.h"

#include <tensor/random.h>

static int ends;

static void count_end(void *ctx)
{
	(void)ctx;
	ends++;
}

static int setup(void **state)
{
	(void)state;
	ends = 0;
	return 0;
}

/* ---- checkpoints ---- */

static int runs;

static int block(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs, void *ctx)
{
	tensor *h = tensor_dropout(tensor_matmul(inputs[0], inputs[1]), 0.5, true);

	(void)ctx;
	runs++;
	assert_int_equal(ninputs, 2);
	assert_int_equal(noutputs, 1);
	h = tensor_tanh(tensor_mul(h, tensor_sigmoid(h)));
	outputs[0] = h;
	return h ? 0 : -1;
}

/* Blocks one after the other, each behind a checkpoint or not. */
static tensor *blocks(tensor *x, tensor *w, bool checkpoint)
{
	for (int i = 0; i < 3; i++) {
		tensor *in[2] = { x, w };

		if (checkpoint)
			assert_done(tensor_checkpoint(block, NULL, count_end,
						      (tensor_list){ in, 2 }, &x, 1));
		else
			assert_done(block(in, 2, &x, 1, NULL));
	}
	return tensor_sum(tensor_mul(x, x));
}

static void checkpoint_gives_the_same_bits(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_randn(TENSOR_INTS(5, 4), F32)));
		tensor *w = leaf(ok(tensor_randn(TENSOR_INTS(4, 4), F32))), *want[2], *y;
		tensor *after;

		tensor_manual_seed(7);
		assert_done(tensor_backward(blocks(x, w, false)));
		after = ok(tensor_rand(TENSOR_INTS(4), F32));
		want[0] = ok(tensor_clone(tensor_grad(x)));
		want[1] = ok(tensor_clone(tensor_grad(w)));
		assert_done(tensor_set_grad(x, NULL));
		assert_done(tensor_set_grad(w, NULL));
		runs = 0;
		tensor_manual_seed(7);
		y = ok(blocks(x, w, true));
		assert_int_equal(runs, 3);
		assert_done(tensor_backward(y));
		assert_int_equal(runs, 6);
		assert_int_equal(ends, 3);
		assert_same(want[0], tensor_grad(x));
		assert_same(want[1], tensor_grad(w));
		assert_same(after, tensor_rand(TENSOR_INTS(4), F32));
	}
}

static void checkpoint_of_a_retained_graph_runs_again(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_randn(TENSOR_INTS(5, 4), F32)));
		tensor *w = leaf(ok(tensor_randn(TENSOR_INTS(4, 4), F32))), *y, *g[1], *again[1];

		runs = 0;
		y = ok(blocks(x, w, true));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(w), g,
					       TENSOR_RETAIN_GRAPH));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(w), again, 0));
		assert_int_equal(runs, 9);
		assert_same(g[0], again[0]);
	}
}

static int square_twice(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs,
			void *ctx)
{
	(void)ctx;
	(void)ninputs;
	(void)noutputs;
	outputs[0] = tensor_mul(inputs[0], inputs[0]);
	outputs[0] = tensor_mul(outputs[0], outputs[0]);
	return outputs[0] ? 0 : -1;
}

static int nested(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs, void *ctx)
{
	tensor *h = tensor_exp(inputs[0]);

	(void)ninputs;
	return tensor_checkpoint(ctx ? nested : square_twice, NULL, NULL, TENSOR_LIST(h), outputs,
				 noutputs);
}

static void checkpoints_nest_and_are_differentiated_twice(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_full(TENSOR_INTS(1), S(0.25), F64))), *y, *g[1];

		/* exp(exp(x))^4 */
		assert_done(tensor_checkpoint(nested, &runs, NULL, TENSOR_LIST(x), &y, 1));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), g,
					       TENSOR_CREATE_GRAPH));
		assert_values(g[0], 1e-9, 4 * exp(0.25) * exp(4 * exp(0.25)));
		assert_done(tensor_backward(tensor_sum(g[0])));
		assert_values(tensor_grad(x), 1e-8,
			      (4 * exp(0.25) + 16 * exp(0.5)) * exp(4 * exp(0.25)));
	}
}

static int changes_its_mind(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs,
			    void *ctx)
{
	int *calls = ctx;

	(void)ninputs;
	(void)noutputs;
	outputs[0] = tensor_mul(inputs[0], inputs[0]);
	if ((*calls)++)
		return *calls == 2 ? -EDOM : 0;
	outputs[0] = tensor_exp(outputs[0]);
	return 0;
}

static int sets_nothing(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs,
			void *ctx)
{
	(void)inputs, (void)ninputs, (void)noutputs;
	outputs[0] = ctx ? tensor_none : NULL;
	return 0;
}

static void data_of_a_failing_checkpoint_is_destroyed_once(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y, *in = NULL;

		assert_fails(tensor_checkpoint(NULL, NULL, count_end, TENSOR_LIST(x), &y, 1),
			     EINVAL, "NULL");
		assert_int_equal(ends, 1);
		assert_fails(tensor_checkpoint(block, NULL, count_end, (tensor_list){ &in, 1 }, &y,
					       1),
			     EINVAL, "NULL");
		assert_int_equal(ends, 2);
		for (int i = 0; i < 2; i++) {
			assert_fails(tensor_checkpoint(sets_nothing, i ? &y : NULL, count_end,
						       TENSOR_LIST(x), &y, 1),
				     EINVAL, "did not set output 0");
			assert_int_equal(ends, 3 + i);
			assert_null(y);
		}
	}
}

static void failing_checkpoint_is_an_error(void **state)
{
	int calls = 0;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *h, *y, *in = NULL;

		assert_fails(tensor_checkpoint(NULL, NULL, NULL, TENSOR_LIST(x), &y, 1), EINVAL,
			     "NULL");
		assert_fails(tensor_checkpoint(block, NULL, NULL, (tensor_list){ &in, 1 }, &y, 1),
			     EINVAL, "NULL");
		assert_fails(tensor_checkpoint(block, NULL, NULL, TENSOR_LIST(x), NULL, 1), EINVAL,
			     "outputs");
		h = ok(tensor_exp(x));
		assert_done(
			tensor_checkpoint(changes_its_mind, &calls, NULL, TENSOR_LIST(h), &y, 1));
		y = ok(tensor_sum(y));
		assert_fails(tensor_backward_ex(TENSOR_LIST(y), NULL, (tensor_list){ 0 }, NULL,
						TENSOR_RETAIN_GRAPH),
			     EDOM, "checkpoint");
		assert_fails(tensor_backward_ex(TENSOR_LIST(y), NULL, (tensor_list){ 0 }, NULL,
						TENSOR_RETAIN_GRAPH),
			     EINVAL, "3 tensors, 2 when");
		ok(tensor_zero_(h));
		assert_fails(tensor_backward(y), EINVAL, "input [2] was changed in place");
	}
}

static tensor *first_input;

static int through_the_first_graph(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	tensor **first = ctx;

	(void)nin;
	(void)nout;
	if (*first && tensor_backward_ex(TENSOR_LIST(*first), NULL, TENSOR_LIST(first_input),
					 &(tensor *){ NULL }, TENSOR_RETAIN_GRAPH) < 0)
		return -1;
	out[0] = tensor_sum(tensor_mul(in[0], in[0]));
	return out[0] ? 0 : -1;
}

static void second_run_through_the_first_graph_is_an_error(void **state)
{
	tensor *first = NULL, *y;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2));

		first_input = x;
		assert_done(tensor_checkpoint(through_the_first_graph, &first, NULL, TENSOR_LIST(x),
					      &y, 1));
		first = y;
		assert_fails(tensor_backward(y), EDEADLK, "same node");
		x = ok(tensor_make_dual(iota(1, TENSOR_INTS(2)), iota(1, TENSOR_INTS(2))));
		assert_fails(tensor_checkpoint(square_twice, NULL, NULL, TENSOR_LIST(x), &y, 1),
			     EOPNOTSUPP, "tangent");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(checkpoint_gives_the_same_bits, setup),
		cmocka_unit_test_setup(checkpoint_of_a_retained_graph_runs_again, setup),
		cmocka_unit_test_setup(checkpoints_nest_and_are_differentiated_twice, setup),
		cmocka_unit_test_setup(data_of_a_failing_checkpoint_is_destroyed_once, setup),
		cmocka_unit_test_setup(failing_checkpoint_is_an_error, setup),
		cmocka_unit_test_setup(second_run_through_the_first_graph_is_an_error, setup),
	};

	return cmocka_run_group_tests_name("autograd_checkpoint", tests, NULL, NULL);
}
