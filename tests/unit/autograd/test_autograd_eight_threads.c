// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Eight threads run backward over shared leaves at the same time, through both devices of lazy_device.h, checkpoints,
 * functions of the program, autocast and a graph that they share, while they register and remove hooks on the shared
 * leaves and nodes. All numbers are small integers, so the gradients are exact in any order. Mostly for ThreadSanitizer.
 */
#include "devices.h"

#include <tensor/function.h>
#include <tensor/optim.h>
#include <tensor/vmap.h>

#include <unistd.h>

static const tensor_list all = { NULL, 0 };

enum { EIGHT = 8, ROUNDS = 60, SLOTS = 5 };

static struct {
	tensor *x, *w, *v, *u; /* leaves: two on the CPU, one on each device */
	tensor *graph;	       /* of these leaves, kept for all threads */
	_Atomic(tensor_hook *) slot[SLOTS];
	atomic_int made, destroyed, calls;
	pthread_barrier_t start;
} shared;

static tensor *to_device(int device, tensor *t)
{
	return tensor_to(t, LAZY(device));
}

/* ---- hooks that one thread registers and another one removes ---- */

struct counted {
	atomic_int calls;
};

static void destroy_counted(void *ctx)
{
	struct counted *c = ctx;

	shared.calls += c->calls;
	shared.destroyed++;
	free(c);
}

static tensor *on_gradient(tensor *grad, void *ctx)
{
	((struct counted *)ctx)->calls++;
	return grad;
}

static int on_accumulated(tensor *leaf, void *ctx)
{
	((struct counted *)ctx)->calls++;
	return tensor_requires_grad(leaf) ? 0 : -EINVAL;
}

static int before_node(tensor **grads, int n, void *ctx)
{
	(void)grads, (void)n;
	((struct counted *)ctx)->calls++;
	return 0;
}

static int after_node(tensor **in, int nin, tensor *const *out, int nout, void *ctx)
{
	(void)in, (void)nin, (void)out, (void)nout;
	((struct counted *)ctx)->calls++;
	return 0;
}

static int register_one(int kind, struct counted *c, tensor_hook **hook)
{
	tensor_node *n = tensor_grad_fn(shared.graph);

	switch (kind) {
	case 0:
		return tensor_register_hook(shared.x, on_gradient, c, destroy_counted, hook);
	case 1:
		return tensor_register_hook(shared.v, on_gradient, c, destroy_counted, hook);
	case 2:
		return tensor_register_post_accumulate_grad_hook(shared.w, on_accumulated, c,
								 destroy_counted, hook);
	case 3:
		return tensor_node_register_prehook(n, before_node, c, destroy_counted, hook);
	default:
		return tensor_node_register_hook(n, after_node, c, destroy_counted, hook);
	}
}

/* Puts a hook into a slot; the one that was there, as a rule another thread's, is removed. */
static void exchange_hook(int kind)
{
	struct counted *c = calloc(1, sizeof(*c));
	tensor_hook *hook = NULL;

	expect_here(register_one(kind, c, &hook) == 0);
	shared.made++;
	hook = atomic_exchange(&shared.slot[kind], hook);
	if (hook)
		tensor_hook_remove(hook);
}

/* ---- a round ---- */

static int square(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)nin, (void)nout, (void)ctx;
	out[0] = tensor_mul(in[0], in[0]);
	return out[0] ? 0 : -1;
}

static int forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	(void)nin, (void)nout;
	out[0] = tensor_mul(in[0], in[1]);
	return out[0] ? tensor_function_save(ctx, TENSOR_LIST(in[0], in[1])) : -1;
}

static int backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
		    int nin)
{
	(void)ngrads, (void)nin;
	out[0] = tensor_mul(grads[0], tensor_function_saved(ctx, 1));
	out[1] = tensor_mul(grads[0], tensor_function_saved(ctx, 0));
	return out[1] ? 0 : -1;
}

static const struct tensor_function product = { "Product", forward, backward, 0 };

static tensor *runs_backward(tensor *grad, void *ctx)
{
	(void)ctx;
	tensor_scope
		tensor_enable_grad
		{
			tensor *x = tensor_ones(TENSOR_INTS(2), F32), *y;

			expect_here(tensor_set_requires_grad(x, true) == 0);
			y = tensor_mul(to_device(0, x), to_device(0, x));
			expect_here(tensor_backward(tensor_sum(y)) == 0 && tensor_grad(x));
		}
	return grad;
}

/* From the CPU through both devices, with the functions that keep tensors in other ways. */
static tensor *way_of_a_round(bool nested)
{
	tensor *a = tensor_mul(shared.x, shared.w), *b = NULL, *c = NULL, *d, *e, *f = NULL;
	tensor_hook *hook = NULL;

	expect_here(tensor_checkpoint(square, NULL, NULL, TENSOR_LIST(a), &b, 1) == 0);
	expect_here(tensor_function_apply(&product, NULL, NULL, TENSOR_LIST(b, shared.x), &c, 1) ==
		    0);
	d = tensor_mul(to_device(0, c), shared.v);
	if (nested)
		expect_here(tensor_register_hook(d, runs_backward, NULL, NULL, &hook) == 0);
	e = tensor_mul(to_device(1, tensor_to(d, CPU)), shared.u);
	tensor_autocast(TENSOR_BF16) f = tensor_mm(shared.w, shared.w);
	expect_here(tensor_dtype(f) == TENSOR_BF16);
	f = tensor_add(tensor_to(e, CPU), tensor_to(f, F32));
	if (hook)
		tensor_hook_release(hook);
	return tensor_sum(f);
}

static int gradient_of_sample(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	tensor *x = tensor_detach(in[0]);

	(void)nin, (void)nout, (void)ctx;
	if (tensor_set_requires_grad(x, true) < 0)
		return -1;
	return tensor_backward_ex(TENSOR_LIST(tensor_sum(tensor_mul(x, x))), NULL, TENSOR_LIST(x),
				  out, 0);
}

/* Leaves every gradient of the leaves unchanged. */
static void other_modes(void)
{
	tensor *x = tensor_detach(shared.x), *t = tensor_ones_like(x, TENSOR_OPTIONS(0)), *y, *ty,
	       *g;

	expect_here(tensor_vmap(gradient_of_sample, NULL, TENSOR_LIST(x), NULL, &g, 1, NULL,
				NULL) == 0);
	expect_here(tensor_jvp(square, NULL, TENSOR_LIST(shared.x), &t, &y, &ty, 1) == 0);
	expect_here(tensor_backward_ex(TENSOR_LIST(shared.graph), NULL, TENSOR_LIST(shared.x), &g,
				       TENSOR_CREATE_GRAPH) == 0 &&
		    g && tensor_requires_grad(g));
	tensor_anomaly_mode expect_here(tensor_backward_ex(TENSOR_LIST(tensor_sum(g)), NULL,
							   TENSOR_LIST(shared.v), &y,
							   TENSOR_RETAIN_GRAPH) == 0);
}

static void one_round(int i)
{
	tensor_scope {
		tensor *y = way_of_a_round(i % 4 == 1);
		tensor_hook *hook = NULL;

		expect_here(tensor_register_hook(y, runs_backward, NULL, NULL, &hook) == 0);
		if (i % 2)
			tensor_hook_remove(hook);
		expect_here(tensor_backward(y) == 0);
		if (i % 2 == 0)
			tensor_hook_remove(hook);
		expect_here(tensor_backward_ex(TENSOR_LIST(shared.graph), NULL, all, NULL,
					       TENSOR_RETAIN_GRAPH) == 0);
	}
}

static void *rounds(void *arg)
{
	int id = *(int *)arg;

	pthread_barrier_wait(&shared.start);
	for (int i = 0; i < ROUNDS; i++) {
		exchange_hook((id + i) % SLOTS);
		one_round(i + id);
		if ((i + id) % 6 == 0)
			tensor_scope
				other_modes();
	}
	return NULL;
}

/* ---- the test ---- */

static void make_shared(void)
{
	const tensor_ints shape = TENSOR_INTS(2, 2);
	tensor *ones = ok(tensor_ones(shape, F32));

	shared.x = leaf_iota(1, shape);
	shared.w = leaf(ok(tensor_mul_scalar(ones, S(2))));
	shared.v = leaf(on(0, ok(tensor_mul_scalar(ones, S(2)))));
	shared.u = leaf(on(1, ones));
	shared.graph = ok(tensor_sum(cpu(ok(tensor_mul(
		on(1, cpu(ok(tensor_mul(on(0, ok(tensor_mul(shared.x, shared.w))), shared.v)))),
		shared.u)))));
}

/* The gradient of each leaf is n times that of one round. */
static void assert_gradients(tensor *const *one, int n)
{
	tensor *const leaves[] = { shared.x, shared.w, shared.v, shared.u };

	for (size_t i = 0; i < ARRAY_SIZE(leaves); i++)
		assert_same(cpu(ok(tensor_grad(leaves[i]))), ok(tensor_mul_scalar(one[i], S(n))));
}

static void eight_threads_share_leaves_hooks_and_devices(void **state)
{
	struct tensor_live_counts before, after;
	pthread_t thread[EIGHT];
	int id[EIGHT];

	(void)state;
	pthread_barrier_init(&shared.start, NULL, EIGHT);
	tensor_live_counts(&before);
	tensor_scope {
		tensor *one[4];

		make_shared();
		one_round(0);
		for (int i = 0; i < 4; i++) {
			tensor *l = (tensor *[]){ shared.x, shared.w, shared.v, shared.u }[i];

			one[i] = ok(tensor_clone(cpu(ok(tensor_grad(l)))));
			assert_done(tensor_set_grad(l, NULL));
		}
		for (int i = 0; i < EIGHT; i++) {
			id[i] = i;
			assert_int_equal(pthread_create(&thread[i], NULL, rounds, &id[i]), 0);
		}
		for (int i = 0; i < EIGHT; i++)
			pthread_join(thread[i], NULL);
		assert_gradients(one, EIGHT * ROUNDS);
		for (int i = 0; i < SLOTS; i++)
			tensor_hook_remove(shared.slot[i]);
	}
	pthread_barrier_destroy(&shared.start);
	assert_int_equal(shared.made, EIGHT * ROUNDS);
	assert_int_equal(shared.destroyed, shared.made);
	assert_true(shared.calls > 0);
	for (int i = 0; i < LAZY_DEVICES; i++)
		lazy_drain(&lazy[i]);
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(eight_threads_share_leaves_hooks_and_devices),
	};

	return cmocka_run_group_tests_name("autograd_eight_threads", tests, lazy_register, NULL);
}
