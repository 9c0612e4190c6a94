// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Graphs of a million operators, on a thread with a stack of 64 KiB: no function may recurse over a graph or a chain of
 * views. Forward mode, batches, scopes and modules are in test_autograd_depth_modes.c.
 */
#include "depth.h"

#include <tensor/function.h>

static const tensor_list all = { NULL, 0 };

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

/* Not a matter of the stack but of time: adding and removing one does not depend on the number of others. */
static bool hooks_of_one_tensor(void)
{
	tensor_hook **hook = calloc(DEPTH, sizeof(*hook));

	called = 0;
	tensor_scope {
		tensor *x = ones_leaf(), *y = tensor_neg(x);

		for (int i = 0; i < DEPTH; i++)
			expect(tensor_register_hook(y, count_gradient, NULL, NULL, &hook[i]) == 0);
		expect(tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, all, NULL,
					  TENSOR_RETAIN_GRAPH) == 0);
		expect(called == DEPTH);
		for (int i = 1; i < DEPTH; i += 2)
			tensor_hook_remove(hook[i]);
		for (int i = (DEPTH - 1) / 2 * 2; i >= 0; i -= 2)
			tensor_hook_remove(hook[i]);
		expect(tensor_backward(tensor_sum(y)) == 0);
		expect(called == DEPTH);
	}
	free(hook);
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

/* 17: a graph a million nodes deep is built and freed without recursion. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(operators),
		ROW(diamonds),
		ROW(hooks),
		ROW(hooks_that_own_graphs),
		ROW(hooks_of_one_tensor),
		ROW(recorded),
		ROW(recorded_with_saved_tensors),
		ROW(recorded_into_a_leaf),
		ROW(checkpoints),
		ROW(packed),
		ROW(nested_hooks),
		ROW(functions),
		ROW(views),
		ROW(in_place_changes_of_a_view),
	};

	return cmocka_run_group_tests_name("autograd_depth", tests, NULL, NULL);
}
