// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Modules whose n-th allocation fails, for each n: the call fails with ENOMEM, the module can be used
 * again or freed, and nothing is left.
 */
#include "train/filled.h"

#include <unistd.h>

#include "tests/fuzz/calls/fail.c" /* replaces malloc() in this program */

enum { MOST = 3000 };

static char path[] = "/tmp/tensor-module-XXXXXX";
static tensor *x, *ids; /* inputs, made before allocations fail */

static tensor *with_backward(tensor *t)
{
	return t && tensor_backward(tensor_sum(t)) == 0 ? t : NULL;
}

static tensor *layers(tensor_module *m)
{
	tensor *y = tensor_module_linear(m, "a.b", x, 6);

	y = tensor_module_batch_norm(m, "bn", tensor_transpose(y, 1, 2));
	y = tensor_module_dropout(m, tensor_module_conv1d(m, "conv", y, 4, 2), 0.1);
	y = tensor_module_layer_norm(m, "ln", tensor_transpose(y, 1, 2));
	return with_backward(y);
}

static tensor *recurrent(tensor_module *m)
{
	struct tensor_rnn_state s = { NULL, NULL };
	tensor *y = tensor_module_lstm(m, "l", x, 3, .layers = 2, .state = &s);

	return tensor_module_gru(m, "g", y, 3, .bidirectional = true) ? with_backward(s.c) : NULL;
}

static tensor *block(tensor_module *m)
{
	tensor *y = tensor_module_embedding(m, "e", ids, 5, 4);

	return with_backward(tensor_module_transformer_block(m, "t", y, 2, .feedforward = 3,
							     .causal = true, .batch_first = true));
}

static tensor *lists(tensor_module *m)
{
	const struct tensor_named *named;
	tensor *t = tensor_module_linear(m, "a", x, 2);

	if (!t || tensor_module_tie(m, "b", "a.weight") < 0 ||
	    tensor_module_named(m, TENSOR_MODULE_PARAMETERS, &named) < 0 ||
	    !tensor_module_parameters(m).len || tensor_module_to(m, F32) < 0 ||
	    tensor_module_to(m, F64) < 0 || tensor_module_share_memory(m) < 0)
		return NULL;
	return t;
}

static tensor *files(tensor_module *m)
{
	if (!tensor_module_linear(m, "a", x, 2) || tensor_module_save(m, path) < 0 ||
	    tensor_module_load(tensor_module_child(m, "before"), path, 0) < 0 ||
	    tensor_module_load(m, path, TENSOR_LOAD_STRICT) < 0)
		return NULL;
	return tensor_module_linear(m, "before.a", x, 2);
}

static tensor *initialisers(tensor_module *m)
{
	tensor *t = tensor_module_parameter(m, "t", TENSOR_INTS(4, 3, 2), NULL, NULL);

	return t && tensor_init_orthogonal(t, 1, NULL) && tensor_init_dirac(t, 2) &&
			       tensor_init_trunc_normal(t, 0, 1, -1, 1, NULL) ?
		       t :
		       NULL;
}

static tensor *losses(tensor_module *m)
{
	tensor *flat = tensor_flatten(x, 0, 1), *t = tensor_ones(TENSOR_INTS(6), F64);

	(void)m;
	t = tensor_loss_cosine_embedding(flat, flat, t);
	return t ? with_backward(tensor_add(t, tensor_loss_triplet_margin(flat, flat, flat))) :
		   NULL;
}

static void module_without_memory_fails(void **state)
{
	tensor *(*call)(tensor_module * m) = *state;
	struct tensor_live_counts before, after;
	bool again = false;
	long n = 0;

	if (!fail_possible)
		skip();
	tensor_scope {
		x = ok(leaf(filled(TENSOR_INTS(2, 3, 4), 0)));
		ids = ok(tensor_ones(TENSOR_INTS(2, 3), I64));
		tensor_scope {
			tensor_module *m = tensor_module_new(F64);
			bool available = call(m) || tensor_last_error()->code != ENOSYS;

			tensor_module_free(m);
			tensor_set_grad(x, NULL);
			if (!available)
				skip(); /* LAPACK is not installed */
		}
		fail_spare_others();
		tensor_live_counts(&before);
		do {
			tensor_module *m;
			bool done;

			tensor_clear_error();
			tensor_scope {
				fail_at(++n);
				m = tensor_module_new(F64);
				done = m && call(m);
				again = fail_end();
				if (!done)
					assert_int_equal(tensor_last_error()->code, ENOMEM);
			}
			tensor_scope {
				if (m) /* it can be used again */
					ok(tensor_module_parameter(m, "z", TENSOR_INTS(2), NULL,
								   NULL));
			}
			tensor_module_free(m);
			tensor_set_grad(x, NULL);
			tensor_live_counts(&after);
			assert_int_equal(after.tensors, before.tensors);
			assert_int_equal(after.storages, before.storages);
		} while (again && n < MOST);
		assert_in_range(n, 2, MOST - 1);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		{ "layers_without_memory_fail", module_without_memory_fails, NULL, NULL, layers },
		{ "recurrent_layers_without_memory_fail", module_without_memory_fails, NULL, NULL,
		  recurrent },
		{ "transformer_block_without_memory_fails", module_without_memory_fails, NULL, NULL,
		  block },
		{ "lists_without_memory_fail", module_without_memory_fails, NULL, NULL, lists },
		{ "files_without_memory_fail", module_without_memory_fails, NULL, NULL, files },
		{ "initialisers_without_memory_fail", module_without_memory_fails, NULL, NULL,
		  initialisers },
		{ "losses_without_memory_fail", module_without_memory_fails, NULL, NULL, losses },
	};
	int status;

	fail_without_caches(argv);
	if (close(mkstemp(path)) < 0)
		return 1;
	status = cmocka_run_group_tests_name("module_memory", tests, NULL, NULL);
	unlink(path);
	return status;
}
