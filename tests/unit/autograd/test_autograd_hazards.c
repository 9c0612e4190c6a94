// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Common errors of autograd engines: each test is named after the correct behaviour. */
#include "autograd.h"
#include "peer.h"

#include <math.h>
#include <pthread.h>
#include <tensor/function.h>

static const tensor_list all = { NULL, 0 };

static int retain(tensor *y)
{
	return tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL, TENSOR_RETAIN_GRAPH);
}

/* 1 */
static void version_belongs_to_the_storage(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *h = ok(tensor_exp(x)),
		       *y = ok(tensor_sum(tensor_mul(h, h)));
		tensor *d = ok(tensor_detach(h)), *v = ok(tensor_slice(d, 0, 0, 1, 1));
		uint32_t before = tensor_version(h);

		ok(tensor_zero_(v));
		assert_int_equal(tensor_version(h), before + 1);
		assert_int_equal(tensor_version(d), before + 1);
		assert_fails(tensor_backward(y), EINVAL, "changed in place");
	}
}

/* 2 */
static void saved_output_makes_no_cycle(void **state)
{
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	for (int i = 0; i < 10; i++)
		tensor_scope {
			tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_exp(x));

			assert_int_equal(tensor_node_saved(tensor_grad_fn(y)), 1);
			assert_ptr_equal(
				tensor_grad_fn(ok(tensor_node_saved_get(tensor_grad_fn(y), 0))),
				tensor_grad_fn(y));
			ok(tensor_add_scalar_(y, S(1)));
			assert_fails(tensor_backward(tensor_sum(y)), EINVAL, "backward of exp");
			assert_non_null(
				strstr(tensor_last_error()->text, "expected version 0, found 1"));
		}
	tensor_live_counts(&after);
	assert_true(after.tensors <= before.tensors + 4);
}

/* 3 */
static void saved_tensors_are_released_after_their_node(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *h = ok(tensor_exp(x)),
		       *y = ok(tensor_sum(h));

		assert_done(retain(y));
		assert_int_equal(tensor_node_saved(tensor_grad_fn(h)), 1);
		assert_done(tensor_backward(y));
		assert_int_equal(tensor_node_saved(tensor_grad_fn(h)), 0);
		assert_fails(tensor_backward(y), EINVAL, "pass TENSOR_RETAIN_GRAPH");
	}
}

static tensor *kept;

static tensor *keep_gradient(tensor *grad, void *ctx)
{
	(void)ctx;
	kept = tensor_retain(grad);
	return grad;
}

/* 4 */
static void leaf_takes_only_an_unshared_gradient(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *w = leaf_iota(1, TENSOR_INTS(2)),
		       *y = ok(tensor_add(x, w));

		assert_done(tensor_register_hook(y, keep_gradient, NULL, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(tensor_mul_scalar(y, S(2)))));
		assert_false(tensor_shares_storage(tensor_grad(x), tensor_grad(w)));
		assert_false(tensor_shares_storage(tensor_grad(x), kept));
		assert_false(tensor_shares_storage(tensor_grad(w), kept));
		tensor_release(kept);
	}
}

/* 5 */
static void gradients_are_added_in_place_only_if_unshared(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_add(x, x)),
		       *g = ok(tensor_ones(TENSOR_INTS(2), F32));

		assert_done(
			tensor_backward_ex(TENSOR_LIST(y, y), (tensor *[]){ g, g }, all, NULL, 0));
		assert_values(g, 0, 1, 1);
		assert_values(tensor_grad(x), 0, 4, 4);
	}
}

/* 6 */
static void undefined_gradient_counts_as_arrived(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *h = ok(tensor_exp(x)), *two[2];
		tensor *never = ok(tensor_mul_scalar(tensor_sign(h), S(1)));

		assert_done(tensor_chunk(h, 2, 0, two, 2));
		assert_done(tensor_backward(tensor_sum(tensor_add(tensor_sum(never), two[1]))));
		assert_values(tensor_grad(x), 1e-4, 0, exp(2));
	}
}

/* ---- functions that return a wrong gradient ---- */

static int copy_forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			int nout)
{
	(void)ctx;
	(void)nin;
	(void)nout;
	out[0] = tensor_clone(in[0]);
	return 0;
}

static int wrong;

static int wrong_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
			  int nin)
{
	(void)ctx;
	(void)ngrads;
	(void)nin;
	out[0] = wrong == 0 ? tensor_expand(grads[0], TENSOR_INTS(3, 2)) :
		 wrong == 1 ? tensor_to(grads[0], TENSOR_OPTIONS(.dtype = TENSOR_F64)) :
		 wrong == 2 ? tensor_full(TENSOR_INTS(5), S(1), F32) :
			      tensor_to_sparse(grads[0]);
	return out[0] ? 0 : -1;
}

static const struct tensor_function copy = { "Copy", copy_forward, wrong_backward, 0 };

/* 7 */
static void one_place_checks_what_a_node_returns(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y;

		for (wrong = 0; wrong < 4; wrong++) {
			assert_done(tensor_set_grad(x, NULL));
			assert_done(
				tensor_function_apply(&copy, NULL, NULL, TENSOR_LIST(x), &y, 1));
			y = ok(tensor_sum(y));
			if (wrong == 2) {
				assert_fails(tensor_backward(y), EINVAL,
					     "must have shape [2], got [5]");
				continue;
			}
			assert_done(tensor_backward(y));
			assert_int_equal(tensor_dtype(tensor_grad(x)), TENSOR_F32);
			if (wrong < 3)
				assert_values(tensor_grad(x), 0, wrong ? 1 : 3, wrong ? 1 : 3);
		}
	}
}

/* ---- hooks ---- */

static char order[32];

static tensor *note(tensor *grad, void *ctx)
{
	strcat(order, ctx);
	return grad;
}

static int note_before(tensor **grads, int n, void *ctx)
{
	(void)grads;
	(void)n;
	strcat(order, ctx);
	return 0;
}

static int note_after(tensor **in, int nin, tensor *const *out, int nout, void *ctx)
{
	(void)in, (void)nin, (void)out, (void)nout;
	strcat(order, ctx);
	return 0;
}

static int note_leaf(tensor *leaf, void *ctx)
{
	assert_non_null(tensor_grad(leaf));
	strcat(order, ctx);
	return 0;
}

/* 8 */
static void hooks_run_in_order(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_exp(x)), *g[1];
		tensor_node *node = tensor_grad_fn(y);

		order[0] = 0;
		assert_done(tensor_node_register_hook(node, note_after, "d", NULL, NULL));
		assert_done(tensor_node_register_prehook(node, note_before, "c", NULL, NULL));
		assert_done(tensor_retain_grad(y));
		assert_done(tensor_register_hook(y, note, "b", NULL, NULL));
		assert_done(
			tensor_register_post_accumulate_grad_hook(x, note_leaf, "e", NULL, NULL));
		assert_done(retain(ok(tensor_sum(y))));
		assert_string_equal(order, "bcde");
		assert_non_null(tensor_grad(y));
		/* The node does not run, its tensor's hook does. */
		order[0] = 0;
		assert_done(
			tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(y), g, 0));
		assert_string_equal(order, "b");
	}
}

static pthread_t ran_on;

static tensor *note_thread(tensor *grad, void *ctx)
{
	(void)ctx;
	ran_on = pthread_self();
	return grad;
}

/* 9 */
static void cpu_nodes_run_on_the_calling_thread_latest_first(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *a = ok(tensor_exp(x)),
		       *b = ok(tensor_sin(x));

		order[0] = 0;
		assert_done(tensor_register_hook(a, note, "a", NULL, NULL));
		assert_done(tensor_register_hook(b, note, "b", NULL, NULL));
		assert_done(tensor_register_hook(x, note_thread, NULL, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(tensor_add(a, b))));
		assert_string_equal(order, "ba");
		assert_true(pthread_equal(ran_on, pthread_self()));
	}
}

/* ---- backward inside of backward ---- */

enum { NESTED = 1000 };
static int left;

static tensor *nests(tensor *grad, void *ctx)
{
	int err = 0;

	if (--left > 0)
		tensor_scope
			tensor_enable_grad
			{
				tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_exp(x));

				assert_done(tensor_register_hook(y, nests, ctx, NULL, NULL));
				err = tensor_backward(tensor_sum(y));
				if (!err && !tensor_grad(x))
					err = -1;
			}
	return err < 0 ? NULL : grad;
}

static tensor *fails_deep(tensor *grad, void *ctx)
{
	(void)ctx;
	if (--left > 0)
		return nests(grad, NULL);
	return tensor_matmul(grad, tensor_none);
}

/* 10 */
static void deep_reentrant_backward_has_a_stack(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_exp(x));

		left = NESTED;
		assert_done(tensor_register_hook(y, nests, NULL, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_int_equal(left, 0);
		assert_values(tensor_grad(x), 1e-4, exp(1), exp(2));
		left = 1;
		y = ok(tensor_exp(x));
		assert_done(tensor_register_hook(y, fails_deep, NULL, NULL, NULL));
		assert_fails(tensor_backward(tensor_sum(y)), EINVAL, "matmul");
	}
}

/* 11 */
static void only_what_the_inputs_need_is_computed(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *w = leaf_iota(1, TENSOR_INTS(2)),
		       *a = ok(tensor_exp(x)), *g[1];

		order[0] = 0;
		assert_done(tensor_register_hook(a, note, "a", NULL, NULL));
		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_sum(tensor_mul(a, w))), NULL,
					       TENSOR_LIST(w), g, 0));
		assert_string_equal(order, "");
		assert_values(g[0], 1e-4, exp(1), exp(2));
		assert_null(tensor_grad(x));
	}
}

/* 12 */
static void in_place_change_of_a_view_changes_the_history_of_its_base(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *h = ok(tensor_mul_scalar(x, S(1))),
		       *parts[2], *v = NULL;

		ok(tensor_mul_scalar_(ok(tensor_slice(h, 0, 0, 2, 1)), S(3)));
		assert_name(tensor_grad_fn(h), "CopySlices");
		assert_done(tensor_backward(tensor_sum(h)));
		assert_values(tensor_grad(x), 0, 3, 3, 1, 1);
		h = ok(tensor_exp(x));
		assert_done(tensor_chunk(h, 2, 0, parts, 2));
		tensor_no_grad
			v = ok(tensor_slice(h, 0, 0, 2, 1));
		assert_fails(tensor_zero_(v), EINVAL, "under tensor_no_grad");
	}
}

/* 13 */
static void leaves_and_out_arguments_are_not_overwritten(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *out = iota(0, TENSOR_INTS(2));

		assert_fails(tensor_zero_(x), EINVAL, "leaf");
		assert_fails(tensor_add_out(out, x, x), EINVAL, "out= records no gradient");
		assert_fails(tensor_add_out(x, out, out), EINVAL, "out= records no gradient");
	}
}

/* ---- threads ---- */

static tensor *common;

static void *two_hundred_backwards(void *arg)
{
	for (int i = 0; i < 200; i++)
		assert_done(retain(common));
	return arg;
}

/* 14 */
static void node_is_locked_while_it_runs(void **state)
{
	pthread_t thread[4];

	tensor_scope {
		tensor *x = leaf(ok(tensor_zeros(TENSOR_INTS(4), F64)));

		common = ok(tensor_sum(tensor_mul(tensor_exp(x), tensor_exp(x))));
		for (int i = 0; i < 4; i++)
			assert_int_equal(
				pthread_create(&thread[i], NULL, two_hundred_backwards, NULL), 0);
		for (int i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
		assert_values(tensor_grad(x), 1e-9, 1600, 1600, 1600, 1600);
	}
}

/* 15 */
static void backward_works_after_a_fork(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_ones(TENSOR_INTS(512, 512), F32))),
		       *y = ok(tensor_sum(tensor_matmul(x, x)));

		assert_done(retain(y));
		assert_int_equal(IN_CHILD({
					 alarm(60);
					 if (retain(y) < 0 ||
					     tensor_backward(tensor_sum(tensor_matmul(x, x))) < 0)
						 _exit(1);
				 }),
				 0);
		assert_done(retain(y));
#ifdef __SANITIZE_THREAD__
		skip(); /* it does not allow threads in a child of a process with threads */
#endif
		left = 2 * 60;
		y = ok(tensor_exp(x));
		assert_done(tensor_register_hook(y, nests, NULL, NULL, NULL));
		y = ok(tensor_sum(y));
		assert_done(retain(y));
		assert_int_equal(IN_CHILD({
					 alarm(60);
					 left = 2 * 60;
					 if (retain(y) < 0)
						 _exit(1);
				 }),
				 0);
	}
}

/* 16 */
static void anomaly_mode_knows_the_call(void **state)
{
	tensor_scope
		tensor_anomaly_mode
		{
			tensor *x = leaf(ok(tensor_zeros(TENSOR_INTS(2), F32)));
			tensor *y = ok(tensor_sum(tensor_mul_scalar(tensor_sqrt(x), S(0))));

			assert_fails(tensor_backward(y), EDOM, "SqrtBackward");
			assert_non_null(strstr(tensor_last_error()->text, "called tensor_sqrt at"));
		}
}

/* ---- depth ---- */

enum { DEPTH = 300000 };

static int every_tenth(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)ctx;
	(void)nin;
	(void)nout;
	out[0] = tensor_mul_scalar(in[0], S(1));
	return out[0] ? 0 : -1;
}

static void *deep_graph(void *arg)
{
	int *calls = arg;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = tensor_keep(tensor_neg(x)), *next[1];

		for (int i = 0; i < DEPTH; i++)
			tensor_scope {
				if (i % 10)
					next[0] = tensor_neg(y);
				else
					assert_done(tensor_checkpoint(every_tenth, NULL, NULL,
								      TENSOR_LIST(y), next, 1));
				if (i % 1000 == 0)
					assert_done(tensor_register_hook(next[0], note_thread, NULL,
									 NULL, NULL));
				tensor_keep(next[0]);
				tensor_release(y);
				y = next[0];
			}
		*calls = tensor_backward(ok(tensor_sum(y)));
		tensor_release(y);
		assert_non_null(tensor_grad(x));
	}
	return NULL;
}

/* 17 */
static void deep_graph_needs_no_stack(void **state)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = -1;

	NOT_WATCHED();
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, 64 * 1024), 0);
	assert_int_equal(pthread_create(&thread, &attr, deep_graph, &err), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	assert_int_equal(err, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_belongs_to_the_storage),
		cmocka_unit_test(saved_output_makes_no_cycle),
		cmocka_unit_test(saved_tensors_are_released_after_their_node),
		cmocka_unit_test(leaf_takes_only_an_unshared_gradient),
		cmocka_unit_test(gradients_are_added_in_place_only_if_unshared),
		cmocka_unit_test(undefined_gradient_counts_as_arrived),
		cmocka_unit_test(one_place_checks_what_a_node_returns),
		cmocka_unit_test(hooks_run_in_order),
		cmocka_unit_test(cpu_nodes_run_on_the_calling_thread_latest_first),
		cmocka_unit_test(deep_reentrant_backward_has_a_stack),
		cmocka_unit_test(only_what_the_inputs_need_is_computed),
		cmocka_unit_test(in_place_change_of_a_view_changes_the_history_of_its_base),
		cmocka_unit_test(leaves_and_out_arguments_are_not_overwritten),
		cmocka_unit_test(node_is_locked_while_it_runs),
		cmocka_unit_test(backward_works_after_a_fork),
		cmocka_unit_test(anomaly_mode_knows_the_call),
		cmocka_unit_test(deep_graph_needs_no_stack),
	};

	return cmocka_run_group_tests_name("autograd_hazards", tests, NULL, NULL);
}
