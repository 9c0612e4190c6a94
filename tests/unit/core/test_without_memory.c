// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operators whose n-th allocation fails, for each n: they fail with ENOMEM, leave no tensor, and
 * succeed when memory is available. `make torture` does the same with all operators.
 */
#include "autograd.h"

#include <tensor/function.h>
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

/* Tensors that stay alive move the call that needs a new block for its views. */
static void products_without_memory_for_a_view_give_enomem(void **state)
{
	const enum tensor_dtype dtypes[] = { TENSOR_BF16, TENSOR_F32 };

	(void)state;
	if (!fail_possible)
		skip();
	fail_spare_others();
	for (int i = 0; i < 4; i++)
		tensor_scope {
			tensor_options options = TENSOR_OPTIONS(.dtype = dtypes[i / 2]);
			tensor *batch = ok(tensor_ones(TENSOR_SHAPE(2, 3, 4), options));
			tensor *few = ok(i % 2 ? tensor_ones(TENSOR_SHAPE(3), options) :
						 tensor_ones(TENSOR_SHAPE(2, 3), options));

			ok(tensor_matmul(few, batch));
			for (int alive = 0; alive < 2000; alive++) {
				bool again = true;

				for (int k = 0; k <= alive % 7; k++)
					ok(tensor_alias(batch));
				for (long n = 1; again; n++)
					tensor_scope {
						tensor *product;

						fail_at(n);
						product = tensor_matmul(few, batch);
						again = fail_end();
						if (!product)
							assert_int_equal(tensor_last_error()->code,
									 ENOMEM);
						tensor_clear_error();
					}
			}
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

static tensor *with_graph(tensor *t)
{
	return t && tensor_backward_ex(TENSOR_LIST(t), NULL, (tensor_list){ 0 }, NULL,
				       TENSOR_CREATE_GRAPH) == 0 ?
		       t :
		       NULL;
}

static tensor *det_with_graph(void)
{
	return with_graph(tensor_real(
		tensor_linalg_det(tensor_to(square, TENSOR_OPTIONS(.dtype = TENSOR_C128)))));
}

static tensor *cdist_with_graph(void)
{
	return with_graph(tensor_sum(tensor_cdist(x, x, 3, TENSOR_NONE)));
}

/* One result of an LSTM's layer: the states of each step. */
static tensor *lstm_states(bool cells)
{
	tensor *gates = tensor_expand(tensor_unsqueeze(x, 0), TENSOR_INTS(2, 3, 4)), *out[3];
	tensor *h = tensor_ones(TENSOR_INTS(3, 1), F64), *w = tensor_ones(TENSOR_INTS(4, 1), F64);

	return tensor__lstm_layer(TENSOR_LIST(gates, h, h, w), cells, true, &out[0], &out[1],
				  &out[2]) < 0 ?
		       NULL :
		       out[cells];
}

static tensor *lstm_with_graph(void)
{
	return with_graph(tensor_sum(lstm_states(false)));
}

static tensor *lstm(void)
{
	return with_backward(lstm_states(true));
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

/* ---- autograd ---- */

static tensor *same(tensor *grad, void *ctx)
{
	(void)ctx;
	return tensor_mul_scalar(grad, S(1));
}

static int nothing(tensor *leaf, void *ctx)
{
	(void)leaf;
	(void)ctx;
	return 0;
}

static tensor *hooks(void)
{
	tensor *y = tensor_exp(x);
	tensor_hook *h = NULL;
	int err;

	if (!y || tensor_register_hook(y, same, NULL, NULL, NULL) < 0 ||
	    tensor_retain_grad(y) < 0 ||
	    tensor_register_post_accumulate_grad_hook(x, nothing, NULL, NULL, &h) < 0)
		return NULL;
	err = tensor_backward(tensor_sum(y));
	tensor_hook_remove(h);
	return err < 0 ? NULL : y;
}

static int cube_forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			int nout)
{
	(void)nin;
	(void)nout;
	out[0] = tensor_mul(tensor_mul(in[0], in[0]), in[0]);
	return out[0] ? tensor_function_save(ctx, TENSOR_LIST(in[0], out[0])) : -1;
}

static int cube_backward(tensor_function_ctx *ctx, tensor *const *grads, int n, tensor **out,
			 int nin)
{
	tensor *in = tensor_function_saved(ctx, 0);

	(void)n;
	(void)nin;
	out[0] = in ? tensor_mul(grads[0], tensor_mul_scalar(tensor_mul(in, in), S(3))) : NULL;
	return out[0] ? 0 : -1;
}

static const struct tensor_function cube = { "Cube", cube_forward, cube_backward, 0 };

static tensor *function_of_the_program(void)
{
	tensor *y;

	return tensor_function_apply(&cube, NULL, NULL, TENSOR_LIST(x), &y, 1) < 0 ?
		       NULL :
		       with_backward(y);
}

static int run_cube(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)nin;
	(void)nout;
	(void)ctx;
	out[0] = tensor_mul(tensor_mul(in[0], in[0]), in[0]);
	return out[0] ? 0 : -1;
}

static int sum_of_squares(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)nin, (void)nout, (void)ctx;
	out[0] = tensor_sum(tensor_mul(in[0], in[0]));
	return out[0] ? 0 : -1;
}

/* The gradients of the rows of x, of an operator with a rule and of one with a loop. */
static int row_gradient(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	tensor *y = tensor_mul(tensor_mul(in[0], x), tensor_bucketize(tensor_detach(in[0]), in[0]));

	(void)nin, (void)nout, (void)ctx;
	y = tensor_sum(y);
	return tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), out, 0);
}

static tensor *vmap(void)
{
	tensor *y;

	return tensor_vmap(row_gradient, NULL, TENSOR_LIST(x), NULL, &y, 1, NULL, NULL) < 0 ? NULL :
											      y;
}

static tensor *vmap_in_chunks(void)
{
	const struct tensor_vmap_options o = { .chunk_size = 2 };
	const int64_t last = -1;
	tensor *y;

	return tensor_vmap(row_gradient, NULL, TENSOR_LIST(x), NULL, &y, 1, &last, &o) < 0 ? NULL :
											     y;
}

static tensor *hessian(void)
{
	tensor *h;

	return tensor_hessian(sum_of_squares, NULL, TENSOR_LIST(x), &h, 0) < 0 ? NULL : h;
}

static tensor *checkpoint(void)
{
	tensor *y;

	return tensor_checkpoint(run_cube, NULL, NULL, TENSOR_LIST(x), &y, 1) < 0 ?
		       NULL :
		       with_backward(y);
}

static tensor *forward_mode(void)
{
	tensor *y, *t;

	return tensor_jvp(run_cube, NULL, TENSOR_LIST(square), &square, &y, &t, 1) < 0 ? NULL : t;
}

static void *pack_clone(tensor *t, void *ctx)
{
	(void)ctx;
	t = tensor_clone(t);
	return t ? tensor_keep(t) : NULL;
}

static tensor *unpack_clone(void *packed, void *ctx)
{
	(void)ctx;
	return tensor_clone(packed);
}

static void discard_clone(void *packed, void *ctx)
{
	(void)ctx;
	tensor_release(packed);
}

static tensor *saved_hooks(void)
{
	const struct tensor_saved_hooks clones = { pack_clone, unpack_clone, discard_clone, NULL,
						   NULL };
	tensor *y = NULL;

	tensor_with_saved_hooks(&clones) y = tensor_mul(x, x);
	return y ? with_backward(y) : NULL;
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
		{ "cdist_with_graph_without_memory_fails", operator_without_memory_gives_enomem,
		  NULL, NULL, cdist_with_graph },
		{ "lstm_with_graph_without_memory_fails", operator_without_memory_gives_enomem,
		  NULL, NULL, lstm_with_graph },
		{ "lstm_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  lstm },
		{ "batch_norm_with_graph_without_memory_fails",
		  operator_without_memory_gives_enomem, NULL, NULL, batch_norm_with_graph },
		{ "attention_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, attention },
		{ "batch_norm_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, batch_norm },
		{ "hooks_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  hooks },
		{ "function_of_the_program_without_memory_fails",
		  operator_without_memory_gives_enomem, NULL, NULL, function_of_the_program },
		{ "vmap_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  vmap },
		{ "vmap_in_chunks_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, vmap_in_chunks },
		{ "hessian_without_memory_fails", operator_without_memory_gives_enomem, NULL, NULL,
		  hessian },
		{ "checkpoint_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, checkpoint },
		{ "forward_mode_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, forward_mode },
		{ "saved_hooks_without_memory_fails", operator_without_memory_gives_enomem, NULL,
		  NULL, saved_hooks },
		cmocka_unit_test(products_without_memory_for_a_view_give_enomem),
	};

	fail_without_caches(argv);
	return cmocka_run_group_tests_name("without_memory", tests, NULL, NULL);
}
