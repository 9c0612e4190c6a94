// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Chains of a million operators, on a thread with a stack of 64 KiB: no function may recurse over a graph, a chain of
 * views, a tree of modules or nested scopes. ThreadSanitizer and valgrind get shorter chains, which are longer than the
 * stack all the same.
 */
#include "autograd.h"

#include <pthread.h>
#include <tensor/function.h>
#include <tensor/module.h>
#include <tensor/optim.h>
#include <tensor/vmap.h>

static const tensor_list all = { NULL, 0 };

/* AddressSanitizer needs more stack for one call than a recursion of some depth without it. */
#if defined(__SANITIZE_ADDRESS__)
enum { DEPTH = 100000, STACK = 512 * 1024 };
#elif defined(__SANITIZE_THREAD__)
enum { DEPTH = 50000, STACK = 64 * 1024 };
#else
enum { DEPTH = 1000000, STACK = 64 * 1024 };
#endif

/* ---- a thread with a small stack ---- */

struct job {
	bool (*work)(void);
	bool done;
};

/* An assert of cmocka cannot longjmp() out of a thread. */
#define expect(condition)                                                           \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, \
				tensor_last_error()->text);                         \
			return false;                                               \
		}                                                                   \
	} while (0)

static void *do_job(void *arg)
{
	struct job *j = arg;

	j->done = j->work();
	return NULL;
}

static void on_a_small_stack(void **state)
{
	struct job j = { .work = *state };
	struct tensor_live_counts before, after;
	pthread_attr_t attr;
	pthread_t thread;

	tensor_live_counts(&before);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attr, do_job, &j), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	assert_true(j.done);
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

/* ---- chains ---- */

/* The next tensor of a chain, in the open scope. */
typedef tensor *(*link_fn)(tensor *y, int i);

/* The end of a chain of n links that begins at x, owned; NULL after a failure. */
static tensor *chain(tensor *x, link_fn next, int n)
{
	tensor *y = tensor_retain(x);

	for (int i = 0; y && i < n; i++)
		tensor_scope {
			tensor *t = tensor_retain(next(y, i));

			tensor_release(y);
			y = t;
		}
	return y;
}

static tensor *negate(tensor *y, int i)
{
	(void)i;
	return tensor_neg(y);
}

/* Both elements are this value. */
static bool has_value(tensor *t, double value)
{
	double got[2] = { NAN, NAN };

	tensor_scope {
		tensor *d = t ? tensor_to(tensor_detach(t), F64) : NULL;

		if (d && tensor_numel(d) == 2)
			tensor_copy_to(d, got, sizeof(got));
	}
	return fabs(got[0] - value) < 1e-4 && fabs(got[1] - value) < 1e-4;
}

static tensor *ones_leaf(void)
{
	tensor *x = tensor_ones(TENSOR_INTS(2), F32);

	return x && tensor_set_requires_grad(x, true) == 0 ? x : NULL;
}

/* Backward through the whole chain, the gradient of x, and the release of the graph. */
static bool backward_of(tensor *x, tensor *y, double gradient)
{
	expect(y);
	tensor_scope
		expect(tensor_backward(tensor_sum(y)) == 0);
	tensor_release(y);
	expect(has_value(tensor_grad(x), gradient));
	return true;
}

static bool operators(void)
{
	tensor_scope {
		tensor *x = ones_leaf();

		/* Released without a backward, too. */
		tensor_release(chain(x, negate, DEPTH));
		expect(backward_of(x, chain(x, negate, DEPTH), 1));
	}
	return true;
}

static tensor *halves_and_sum(tensor *y, int i)
{
	tensor *half = tensor_mul_scalar(y, S(0.5));

	(void)i;
	return tensor_add(half, half);
}

/* Each node has an edge to one that another edge leads to. */
static bool diamonds(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *g = NULL, *y = chain(x, halves_and_sum, DEPTH / 2);

		expect(y && tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(x), &g,
					       TENSOR_RETAIN_GRAPH) == 0);
		expect(has_value(g, 1));
		expect(backward_of(x, y, 1));
	}
	return true;
}

/* ---- hooks ---- */

static int called;

static tensor *count_gradient(tensor *grad, void *ctx)
{
	(void)ctx;
	called++;
	return grad;
}

static int count_before(tensor **grads, int n, void *ctx)
{
	(void)grads, (void)n, (void)ctx;
	called++;
	return 0;
}

static int count_after(tensor **in, int nin, tensor *const *out, int nout, void *ctx)
{
	(void)in, (void)nin, (void)out, (void)nout, (void)ctx;
	called++;
	return 0;
}

/* A hook that holds the graph of another chain: releasing one graph releases the next. */
static void release_ctx(void *ctx)
{
	tensor_release(ctx);
}

static tensor *hooked(tensor *y, int i)
{
	tensor_node *n;

	y = tensor_neg(y);
	n = y ? tensor_grad_fn(y) : NULL;
	if (!n || tensor_register_hook(y, count_gradient, NULL, NULL, NULL) < 0 ||
	    tensor_node_register_prehook(n, count_before, NULL, NULL, NULL) < 0 ||
	    tensor_node_register_hook(n, count_after, NULL, NULL, NULL) < 0)
		return NULL;
	return i % 10 || tensor_retain_grad(y) == 0 ? y : NULL;
}

static bool hooks(void)
{
	called = 0;
	tensor_scope {
		tensor *x = ones_leaf();

		expect(backward_of(x, chain(x, hooked, DEPTH), 1));
		expect(called == 3 * DEPTH);
	}
	return true;
}

static bool hooks_that_own_graphs(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *y = tensor_keep(tensor_neg(x));

		for (int i = 0; i < DEPTH; i++)
			tensor_scope {
				tensor *t = tensor_keep(tensor_neg(x));

				expect(t && tensor_register_hook(t, count_gradient, y, release_ctx,
								 NULL) == 0);
				y = t;
			}
		tensor_release(y);
	}
	return true;
}

/* ---- recorded backwards ---- */

static bool recorded(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *v = ones_leaf(), *g = NULL, *gg = NULL;
		tensor *y = chain(x, negate, DEPTH);

		expect(y && tensor_backward_ex(TENSOR_LIST(y), &v, TENSOR_LIST(x), &g,
					       TENSOR_CREATE_GRAPH) == 0);
		tensor_release(y);
		expect(tensor_backward_ex(TENSOR_LIST(tensor_sum(g)), NULL, TENSOR_LIST(v), &gg,
					  0) == 0);
		expect(has_value(gg, 1));
	}
	return true;
}

static tensor *sine(tensor *y, int i)
{
	(void)i;
	return tensor_sin(y);
}

/* Nodes of the second graph save tensors of the first one, with their history. */
static bool recorded_with_saved_tensors(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *g = NULL, *y = chain(x, sine, DEPTH / 10);

		expect(y && tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(x), &g,
					       TENSOR_CREATE_GRAPH) == 0);
		tensor_release(y);
		expect(tensor_backward(tensor_sum(g)) == 0 && tensor_grad(x));
	}
	return true;
}

/* The gradient of a leaf holds a graph. */
static bool recorded_into_a_leaf(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *v = ones_leaf(), *y = chain(x, negate, DEPTH);

		expect(y &&
		       tensor_backward_ex(TENSOR_LIST(y), &v, all, NULL, TENSOR_CREATE_GRAPH) == 0);
		tensor_release(y);
		expect(has_value(tensor_grad(x), 1));
		expect(tensor_set_grad(x, NULL) == 0);
	}
	return true;
}

/* ---- checkpoints and saved-tensor hooks ---- */

static int negate_twice(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)nin, (void)nout, (void)ctx;
	out[0] = tensor_mul(tensor_exp(tensor_mul_scalar(in[0], S(0))), tensor_neg(in[0]));
	return out[0] ? 0 : -1;
}

static tensor *checkpointed(tensor *y, int i)
{
	tensor *next = NULL;

	(void)i;
	return tensor_checkpoint(negate_twice, NULL, NULL, TENSOR_LIST(y), &next, 1) < 0 ? NULL :
											   next;
}

static bool checkpoints(void)
{
	tensor_scope {
		tensor *x = ones_leaf();

		expect(backward_of(x, chain(x, checkpointed, DEPTH / 4), 1));
	}
	return true;
}

static void *pack_it(tensor *t, void *ctx)
{
	(void)ctx;
	return tensor_retain(t);
}

static tensor *unpack_it(void *packed, void *ctx)
{
	(void)ctx;
	return packed;
}

static void drop_it(void *packed, void *ctx)
{
	(void)ctx;
	tensor_release(packed);
}

static const struct tensor_saved_hooks keeps = { pack_it, unpack_it, drop_it, NULL, NULL };

static tensor *one_to_the_power(tensor *y, int i)
{
	(void)i;
	return tensor_mul(y, y); /* 1 */
}

static bool packed(void)
{
	tensor_scope
		tensor_with_saved_hooks(&keeps)
		{
			tensor *x = ones_leaf(), *y = chain(x, one_to_the_power, DEPTH);

			expect(y && tensor_backward(tensor_sum(y)) == 0 && tensor_grad(x));
			tensor_release(y);
		}
	return true;
}

static bool nested_hooks(void)
{
	struct tensor_saved_hooks_guard *guard = calloc(DEPTH, sizeof(*guard));
	int n = 0;

	while (n < DEPTH && (guard[n] = tensor_saved_hooks_enter(&keeps)).scope)
		n++;
	tensor_scope {
		tensor *x = ones_leaf();

		expect(backward_of(x, tensor_retain(tensor_exp(tensor_neg(x))), -exp(-1)));
	}
	for (int i = n; i--;)
		tensor_saved_hooks_leave(&guard[i]);
	free(guard);
	expect(n == DEPTH);
	return true;
}

/* ---- functions of the program ---- */

static int forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	(void)nin, (void)nout;
	out[0] = tensor_neg(in[0]);
	return out[0] ? tensor_function_save(ctx, TENSOR_LIST(in[0], out[0])) : -1;
}

static int backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
		    int nin)
{
	(void)ngrads, (void)nin;
	out[0] = tensor_function_saved(ctx, 1) ? tensor_neg(grads[0]) : NULL;
	return out[0] ? 0 : -1;
}

static const struct tensor_function negation = { "Negation", forward, backward, 0 };

static tensor *apply_negation(tensor *y, int i)
{
	tensor *next = NULL;

	(void)i;
	return tensor_function_apply(&negation, NULL, NULL, TENSOR_LIST(y), &next, 1) < 0 ? NULL :
											    next;
}

static bool functions(void)
{
	tensor_scope {
		tensor *x = ones_leaf();

		expect(backward_of(x, chain(x, apply_negation, DEPTH), 1));
	}
	return true;
}

/* ---- views ---- */

static tensor *view_again(tensor *y, int i)
{
	(void)i;
	return tensor_slice(y, 0, 0, 2, 1);
}

static bool views(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *v = chain(tensor_neg(x), view_again, DEPTH);

		expect(backward_of(x, v, -1));
	}
	return true;
}

static bool in_place_changes_of_a_view(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *base = tensor_neg(x), *v = tensor_slice(base, 0, 0, 2, 1);

		for (int i = 0; i < DEPTH / 2; i++)
			expect(tensor_neg_(v));
		expect(backward_of(x, tensor_retain(base), -1));
		expect(has_value(v, -1));
	}
	return true;
}

/* ---- forward mode and batches ---- */

static bool forward_mode(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *t = tensor_ones(TENSOR_INTS(2), F32);
		tensor *y = chain(tensor_make_dual(x, t), negate, DEPTH);

		expect(y && has_value(tensor_tangent(y), 1));
		tensor_release(y);
	}
	return true;
}

static int batched_chain(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	tensor *x = tensor_detach(in[0]), *g = NULL, *y;
	int err = tensor_set_requires_grad(x, true);

	y = err ? NULL : chain(x, negate, DEPTH);
	if (!err)
		err = tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(x), &g, 0);

	(void)nin, (void)nout, (void)ctx;
	out[0] = g;
	tensor_release(y);
	return err;
}

static int batched_chain_alone(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)nin, (void)nout, (void)ctx;
	out[0] = tensor_scope_add(chain(in[0], negate, DEPTH));
	return out[0] ? 0 : -1;
}

static bool batched(void)
{
	tensor_scope {
		tensor *x = ones_leaf(), *y = NULL, *g = NULL;

		expect(tensor_vmap(batched_chain, NULL, TENSOR_LIST(x), NULL, &g, 1, NULL, NULL) ==
		       0);
		expect(has_value(g, 1));
		expect(tensor_vmap(batched_chain_alone, NULL, TENSOR_LIST(x), NULL, &y, 1, NULL,
				   NULL) == 0);
		expect(backward_of(x, tensor_retain(y), 1));
	}
	return true;
}

/* ---- scopes and trees ---- */

static bool autocast_scopes(void)
{
	struct tensor_autocast_guard *guard = calloc(DEPTH, sizeof(*guard));
	int n = 0;

	while (n < DEPTH &&
	       (guard[n] = tensor_autocast_enter(n % 2 ? TENSOR_BF16 : TENSOR_F16)).entered)
		n++;
	expect(n == DEPTH && tensor_autocast_dtype() == TENSOR_BF16);
	tensor_scope {
		tensor *x = tensor_ones(TENSOR_INTS(2, 2), F32);

		expect(tensor_dtype(tensor_mm(x, x)) == TENSOR_BF16);
	}
	while (n--)
		tensor_autocast_leave(&guard[n]);
	expect(tensor_autocast_dtype() == TENSOR_DTYPE_NONE);
	free(guard);
	return true;
}

static bool mode_scopes(void)
{
	struct tensor_grad_guard *guard = calloc(DEPTH, sizeof(*guard));

	for (int i = 0; i < DEPTH; i++)
		guard[i] = i % 3 == 0 ? tensor_grad_enter(i % 2) :
			   i % 3 == 1 ? tensor_inference_enter(i % 2) :
					tensor_anomaly_enter(i % 2);
	for (int i = DEPTH; i--;)
		tensor_grad_leave(&guard[i]);
	free(guard);
	expect(tensor_is_grad_enabled() && !tensor_is_inference_mode_enabled() &&
	       !tensor_is_anomaly_mode_enabled());
	return true;
}

/* Names of one letter: the deepest tree that a path has space for. A deeper one is refused. */
static bool module_tree(void)
{
	tensor_module *root = tensor_module_new(TENSOR_OPTIONS(0)), *m = root, *next;
	const struct tensor_named *named;
	int depth = 0;

	while ((next = tensor_module_child(m, "a"))) {
		if (!tensor_module_parameter(next, "b", TENSOR_INTS(2), NULL, NULL))
			break;
		m = next;
		depth++;
	}
	expect(tensor_last_error()->code == ENAMETOOLONG || tensor_last_error()->code == EINVAL);
	expect(depth >= TENSOR_MODULE_PATH / 2 - 2 && depth <= TENSOR_MODULE_PATH / 2);
	expect(tensor_module_named(root, TENSOR_MODULE_PARAMETERS, &named) == depth);
	expect(tensor_module_train(root, false) == 0 && !tensor_module_is_training(m));
	expect(tensor_module_zero_grad(root) == 0 && tensor_module_numel(root) == 2 * depth);
	expect(tensor_module_to(root, F64) == 0);
	tensor_module_free(root);
	return true;
}

#define ROW(work)                                                 \
	{                                                         \
		"deep_" #work, on_a_small_stack, NULL, NULL, work \
	}

/* 17: a graph a million nodes deep is built and freed without recursion. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(operators),
		ROW(diamonds),
		ROW(hooks),
		ROW(hooks_that_own_graphs),
		ROW(recorded),
		ROW(recorded_with_saved_tensors),
		ROW(recorded_into_a_leaf),
		ROW(checkpoints),
		ROW(packed),
		ROW(nested_hooks),
		ROW(functions),
		ROW(views),
		ROW(in_place_changes_of_a_view),
		ROW(forward_mode),
		ROW(batched),
		ROW(autocast_scopes),
		ROW(mode_scopes),
		ROW(module_tree),
	};

	return cmocka_run_group_tests_name("autograd_depth", tests, NULL, NULL);
}
