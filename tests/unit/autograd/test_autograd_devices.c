// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Backward over several devices: threads, failures, processes. The devices are those of lazy_device.h. */
#include "devices.h"
#include "peer.h"

#include <tensor/function.h>

static const tensor_list all = { NULL, 0 };

/* The loss of a graph CPU -> lazy0 -> lazy1 -> CPU, or of the same operators on the CPU. */
static tensor *long_way(tensor *x, tensor *v, tensor *w, bool devices)
{
	tensor *a = ok(tensor_exp(ok(tensor_mul_scalar(x, S(0.1)))));
	tensor *b = ok(tensor_mm(devices ? on(0, a) : a, v));
	tensor *c = ok(tensor_mul(devices ? on(1, b) : b, w));
	tensor *d = ok(tensor_add(devices ? cpu(ok(tensor_tanh(c))) : ok(tensor_tanh(c)),
				  devices ? cpu(b) : b));

	return ok(tensor_sum(ok(tensor_mul(d, d))));
}

static void graph_over_devices_has_the_gradients_of_one_device(void **state)
{
	tensor_scope {
		tensor *x[2], *v[2], *w[2];

		for (int i = 0; i < 2; i++) {
			x[i] = leaf_iota(1, TENSOR_INTS(2, 3));
			v[i] = leaf(
				on(i, ok(tensor_mul_scalar(iota(1, TENSOR_INTS(3, 2)), S(0.1)))));
			w[i] = leaf(
				on(i, ok(tensor_mul_scalar(iota(2, TENSOR_INTS(2, 2)), S(0.1)))));
		}
		v[1] = leaf(cpu(ok(tensor_detach(v[0]))));
		w[0] = leaf(on(1, ok(tensor_detach(cpu(w[1])))));
		w[1] = leaf(cpu(ok(tensor_detach(w[0]))));
		for (int i = 0; i < 3; i++) {
			assert_done(tensor_backward(long_way(x[0], v[0], w[0], true)));
			assert_done(tensor_backward(long_way(x[1], v[1], w[1], false)));
		}
		assert_same(tensor_grad(x[0]), tensor_grad(x[1]));
		assert_same(cpu(tensor_grad(v[0])), tensor_grad(v[1]));
		assert_same(cpu(tensor_grad(w[0])), tensor_grad(w[1]));
	}
}

/* ---- threads ---- */

struct seen {
	pthread_t thread[8];
	int n;
};

static tensor *note_thread(tensor *grad, void *ctx)
{
	struct seen *s = ctx;

	s->thread[s->n++] = pthread_self();
	expect_here(!tensor_is_grad_enabled());
	return grad;
}

static void nodes_run_on_the_thread_of_their_device(void **state)
{
	struct seen seen[3] = { 0 };

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4));

		for (int i = 0; i < 2; i++) {
			tensor *a = ok(tensor_neg(x)), *b = ok(tensor_neg(on(0, a))),
			       *c = ok(tensor_neg(on(1, a)));

			assert_done(tensor_register_hook(a, note_thread, &seen[2], NULL, NULL));
			assert_done(tensor_register_hook(b, note_thread, &seen[0], NULL, NULL));
			assert_done(tensor_register_hook(c, note_thread, &seen[1], NULL, NULL));
			assert_done(
				tensor_backward(ok(tensor_sum(ok(tensor_add(cpu(b), cpu(c)))))));
		}
		assert_values(tensor_grad(x), 0, 4, 4, 4, 4);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(seen[i].n, 2);
		assert_true(pthread_equal(seen[i].thread[0], seen[i].thread[1]));
		assert_int_equal(!pthread_equal(seen[i].thread[0], pthread_self()), i < 2);
	}
	assert_false(pthread_equal(seen[0].thread[0], seen[1].thread[0]));
}

static void two_devices_run_at_the_same_time(void **state)
{
	meeting.arrived = 0;
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *y[2];

		for (int i = 0; i < 2; i++) {
			y[i] = ok(tensor_neg(on(i, x)));
			assert_done(tensor_register_hook(y[i], meet_there, NULL, NULL, NULL));
		}
		assert_done(tensor_backward(ok(tensor_sum(ok(tensor_add(cpu(y[0]), cpu(y[1])))))));
		assert_values(tensor_grad(x), 0, -2, -2, -2, -2);
	}
	assert_int_equal(meeting.arrived, 2);
}

/* ---- failures ---- */

static int forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	out[0] = tensor_neg(in[0]);
	return out[0] ? 0 : -1;
}

static int backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
		    int nin)
{
	int *together = tensor_function_data(ctx);

	if (*together)
		expect_here(meet(*together));
	tensor_sum_dim(grads[0], TENSOR_INTS(7), false);
	return -1;
}

static const struct tensor_function fails = { "Fails", forward, backward, 0 };

static tensor *failing(tensor *x, int *together)
{
	tensor *y;

	assert_done(tensor_function_apply(&fails, together, NULL, TENSOR_LIST(x), &y, 1));
	return y;
}

static tensor *count(tensor *grad, void *ctx)
{
	++*(int *)ctx;
	return grad;
}

/* A node of each device fails; `earlier` nodes of the first one are ready and must not run. */
static void failure_of_a_device_ends_the_backward(void **state)
{
	struct tensor_live_counts before, after;
	int together[] = { 0, 2 }, ran = 0;

	for (int i = 0; i < 20; i++) {
		meeting.arrived = 0;
		if (i == 10)
			tensor_live_counts(&before);
		tensor_scope {
			tensor *x = leaf_iota(1, TENSOR_INTS(4)), *z = ok(tensor_neg(on(0, x))), *y;

			assert_done(
				tensor_register_hook(ok(tensor_exp(z)), count, &ran, NULL, NULL));
			y = ok(tensor_add(cpu(failing(z, &together[i % 2])),
					  cpu(failing(on(1, x), &together[i % 2]))));
			assert_fails(tensor_backward(ok(tensor_sum(y))), ERANGE, "sum");
			assert_null(tensor_grad(x));
			assert_int_equal(ran, 0);
			assert_done(tensor_backward(ok(tensor_sum(on(0, x)))));
		}
	}
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

/* ---- the state of the caller's thread ---- */

static void anomaly_mode_names_a_node_of_a_device(void **state)
{
	tensor_scope
		tensor_anomaly_mode
		{
			tensor *x = leaf(on(0, ok(tensor_zeros(TENSOR_INTS(2), F32))));
			tensor *y = ok(tensor_sum(ok(tensor_mul_scalar(ok(tensor_sqrt(x)), S(0)))));

			assert_fails(tensor_backward(y), EDOM, "SqrtBackward");
			assert_contains(tensor_last_error()->text, "called tensor_sqrt at");
		}
}

static int packed;

static void drop_it(void *p, void *ctx)
{
	tensor_release(p);
}

static void *pack_count(tensor *t, void *ctx)
{
	packed++;
	return tensor_retain(t);
}

static tensor *unpack_it(void *p, void *ctx)
{
	return p;
}

/* x^3 on a device: 3 x^2, 6 x; the second graph is recorded with the caller's saved-tensor hooks. */
static void backward_of_a_device_is_recorded(void **state)
{
	struct tensor_saved_hooks hooks = { .pack = pack_count,
					    .unpack = unpack_it,
					    .discard = drop_it };

	tensor_scope {
		tensor *x = leaf(on(0, iota(1, TENSOR_INTS(3)))),
		       *y = ok(tensor_sum(ok(tensor_mul(ok(tensor_mul(x, x)), x)))), *g = NULL;

		packed = 0;
		tensor_with_saved_hooks(&hooks) assert_done(tensor_backward_ex(
			TENSOR_LIST(y), NULL, TENSOR_LIST(x), &g, TENSOR_CREATE_GRAPH));
		assert_true(packed > 0);
		assert_values(cpu(ok(tensor_detach(g))), 0, 3, 12, 27);
		assert_done(tensor_backward(ok(tensor_sum(cpu(g)))));
		assert_values(cpu(tensor_grad(x)), 0, 6, 12, 18);
	}
}

/* ---- processes ---- */

static void child_has_threads_of_its_own(void **state)
{
	NOT_UNDER_TSAN(THREADS_AFTER_FORK);
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)),
		       *y = ok(tensor_sum(ok(tensor_mul(on(0, x), on(0, x)))));

		assert_done(
			tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL, TENSOR_RETAIN_GRAPH));
		assert_int_equal(IN_CHILD({
					 alarm(60);
					 if (tensor_backward(y) < 0 ||
					     tensor_backward(tensor_sum(on(1, x))) < 0)
						 _exit(1);
				 }),
				 0);
		assert_done(tensor_backward(y));
		assert_values(tensor_grad(x), 0, 4, 8, 12, 16);
	}
}

static pid_t child;

static tensor *forks(tensor *grad, void *ctx)
{
	child = fork();
	return grad;
}

/* The child has none of the threads that its backward needs. */
static void child_of_a_fork_inside_of_a_backward_gets_an_error(void **state)
{
	int status = -1;
	NOT_UNDER_TSAN(THREADS_AFTER_FORK);
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *y = ok(tensor_neg(x));
		int err;

		assert_done(tensor_register_hook(y, forks, NULL, NULL, NULL));
		y = ok(tensor_sum(ok(tensor_add(cpu(ok(tensor_exp(on(0, x)))), y))));
		err = tensor_backward(y);
		if (!child) {
			alarm(60);
			_exit(err == -ECANCELED && !tensor_backward(tensor_sum(on(0, x))) ? 0 : 1);
		}
		assert_done(err);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* The program itself, executed again: a child of fork() does not have the parent's threads. */
static int exit_with_idle_threads(void)
{
	int err = -1;

	alarm(60);
	lazy_register(NULL);
	tensor_scope
		err = tensor_backward(
			tensor_sum(ok(tensor_add(cpu(on(0, leaf_iota(1, TENSOR_INTS(4)))),
						 cpu(on(1, leaf_iota(1, TENSOR_INTS(4))))))));
	for (int i = 0; i < LAZY_DEVICES; i++)
		lazy_drain(&lazy[i]);
	return err ? 1 : 0;
}

static void process_exits_while_threads_are_idle(void **state)
{
	assert_int_equal(IN_CHILD(execl("/proc/self/exe", "devices", "--exit", NULL); _exit(2)), 0);
}

/* No thread can be started: the caller runs the nodes. */
static int without_threads(void)
{
	struct seen seen = { 0 };
	pthread_attr_t attr;
	int err;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *y = ok(tensor_neg(on(0, x)));

		assert_done(tensor_register_hook(y, note_thread, &seen, NULL, NULL));
		y = ok(tensor_sum(cpu(y)));
		pthread_getattr_default_np(&attr);
		pthread_attr_setstacksize(&attr, (size_t)1 << 46);
		pthread_setattr_default_np(&attr);
		err = tensor_backward(y);
	}
	return err || seen.n != 1 || !pthread_equal(seen.thread[0], pthread_self());
}

static void backward_without_a_thread_runs_on_the_caller(void **state)
{
	NOT_UNDER_TSAN("the child starts threads");
	NOT_WATCHED();
	assert_int_equal(IN_CHILD(alarm(60); _exit(without_threads())), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(graph_over_devices_has_the_gradients_of_one_device),
		TEST(nodes_run_on_the_thread_of_their_device),
		TEST(two_devices_run_at_the_same_time),
		TEST(failure_of_a_device_ends_the_backward),
		TEST(anomaly_mode_names_a_node_of_a_device),
		TEST(backward_of_a_device_is_recorded),
		TEST(child_has_threads_of_its_own),
		TEST(child_of_a_fork_inside_of_a_backward_gets_an_error),
		TEST(process_exits_while_threads_are_idle),
		TEST(backward_without_a_thread_runs_on_the_caller),
	};

	if (argc > 1 && !strcmp(argv[1], "--exit"))
		return exit_with_idle_threads();
	return cmocka_run_group_tests_name("autograd_devices", tests, lazy_register, NULL);
}
