// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* As test_autograd_depth.c: chains in forward mode and in batches, nested scopes, and the deepest tree of modules. */
#include "depth.h"

#include <tensor/module.h>
#include <tensor/optim.h>
#include <tensor/vmap.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(forward_mode), ROW(batched),     ROW(autocast_scopes),
		ROW(mode_scopes),  ROW(module_tree),
	};

	return cmocka_run_group_tests_name("autograd_depth_modes", tests, NULL, NULL);
}
