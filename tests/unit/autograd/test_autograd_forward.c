// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Forward mode: dual tensors, views, in-place changes, lists, second derivatives. */
#include "autograd.h"

#include <tensor/function.h>

#include <math.h>

static tensor *dual(tensor *x, tensor *tangent)
{
	return ok(tensor_make_dual(x, tangent));
}

static void tangent_of_a_product(void **state)
{
	tensor_scope {
		tensor *x = dual(iota(1, TENSOR_INTS(2)), iota(10, TENSOR_INTS(2))),
		       *c = iota(5, TENSOR_INTS(2));
		tensor *y = ok(tensor_mul(x, x)), *z = ok(tensor_sub(y, c));

		assert_values(y, 0, 1, 4);
		assert_values(tensor_tangent(y), 0, 20, 44);
		assert_values(tensor_tangent(z), 0, 20, 44);
		assert_false(tensor_requires_grad(y));
		assert_null(tensor_tangent(c));
		assert_null(tensor_tangent(tensor_detach(y)));
		assert_null(tensor_tangent(tensor_primal(y)));
		assert_values(tensor_primal(y), 0, 1, 4);
		assert_null(tensor_tangent(tensor_gt(y, c)));
		assert_values(tensor_tangent(tensor_linear(
				      x, ok(tensor_ones(TENSOR_INTS(3, 2), F32)), tensor_none)),
			      0, 21, 21, 21);
	}
}

static void views_of_dual_tensors_share_their_tangent(void **state)
{
	tensor_scope {
		tensor *x = dual(iota(0, TENSOR_INTS(2, 3)), iota(10, TENSOR_INTS(2, 3)));
		tensor *row = ok(tensor_select(x, 0, 1)), *t = ok(tensor_t(x)), *parts[3];
		tensor *s = ok(tensor_as_strided(row, TENSOR_INTS(2), TENSOR_INTS(1), 4));

		assert_values(tensor_tangent(row), 0, 13, 14, 15);
		assert_values(tensor_tangent(s), 0, 14, 15);
		assert_done(tensor_chunk(t, 3, 0, parts, 3));
		assert_values(tensor_tangent(parts[2]), 0, 12, 15);
		ok(tensor_mul_scalar_(row, S(2)));
		assert_values(x, 0, 0, 1, 2, 6, 8, 10);
		assert_values(tensor_tangent(x), 0, 10, 11, 12, 26, 28, 30);
		assert_values(tensor_tangent(parts[2]), 0, 12, 30);
	}
}

static void in_place_change_gives_a_tangent(void **state)
{
	tensor_scope {
		tensor *x = dual(iota(1, TENSOR_INTS(2)), iota(10, TENSOR_INTS(2)));
		tensor *y = iota(1, TENSOR_INTS(4)), *v = ok(tensor_slice(y, 0, 2, 4, 1));

		ok(tensor_mul_(v, x));
		assert_values(y, 0, 1, 2, 3, 8);
		assert_values(tensor_tangent(v), 0, 30, 44);
		assert_values(tensor_tangent(y), 0, 0, 0, 30, 44);
		ok(tensor_zero_(v));
		assert_values(tensor_tangent(y), 0, 0, 0, 0, 0);
		ok(tensor_copy_(y, tensor_cat(TENSOR_LIST(x, x), 0)));
		assert_values(tensor_tangent(y), 0, 10, 11, 10, 11);
		ok(tensor_unsqueeze_(x, 0));
		assert_int_equal(tensor_dim(tensor_tangent(x)), 2);
		ok(tensor_detach_(y));
		assert_null(tensor_tangent(y));
		y = ok(tensor_mul(x, x));
		assert_fails(tensor_add_out(ok(tensor_empty(TENSOR_INTS(4), F32)), y, y),
			     EOPNOTSUPP, "forward mode");
	}
}

static int square(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	out[0] = tensor_mul(in[0], in[0]);
	return out[0] ? 0 : -1;
}

/* y = e^2, dy = 2 e t for an expanded e, whose elements have tangents of their own. */
static void expanded_tensor_has_a_tangent_for_each_position(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(1, 3)), *t = leaf_iota(1, TENSOR_INTS(2, 3)),
		       *e = ok(tensor_expand(x, TENSOR_INTS(2, 3))), *y, *dy;

		assert_done(
			tensor_jvp(square, NULL, TENSOR_LIST(e), (tensor *[]){ t }, &y, &dy, 1));
		assert_values(y, 0, 1, 4, 9, 1, 4, 9);
		assert_values(dy, 0, 2, 8, 18, 8, 20, 36);
		assert_done(tensor_backward(ok(tensor_sum(dy))));
		assert_values(tensor_grad(x), 0, 10, 14, 18);
		assert_values(tensor_grad(t), 0, 2, 4, 6, 2, 4, 6);
	}
}

static void row_of_an_expanded_tensor_changes_alone(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(1, 3)),
		       *e = ok(tensor_expand(x, TENSOR_INTS(2, 3)));
		tensor *d = dual(e, iota(1, TENSOR_INTS(2, 3))), *row = ok(tensor_select(d, 0, 1)),
		       *s = ok(tensor_as_strided(d, TENSOR_INTS(3), TENSOR_INTS(1), 3));

		ok(tensor_mul_scalar_(row, S(2)));
		assert_values(x, 0, 1, 2, 3);
		assert_values(d, 0, 1, 2, 3, 2, 4, 6);
		assert_values(s, 0, 2, 4, 6);
		assert_values(tensor_tangent(d), 0, 1, 2, 3, 8, 10, 12);
		assert_values(tensor_tangent(s), 0, 8, 10, 12);
	}
}

/* With an expanded tangent both share their memory. */
static void expanded_tangent_is_not_copied(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(1, 3)), *t = iota(4, TENSOR_INTS(1, 3));
		tensor *d = dual(ok(tensor_expand(x, TENSOR_INTS(2, 3))),
				 ok(tensor_expand(t, TENSOR_INTS(2, 3))));

		assert_true(tensor_shares_storage(d, x));
		assert_true(tensor_shares_storage(tensor_tangent(d), t));
		assert_values(tensor_tangent(tensor_mul(d, d)), 0, 8, 20, 36, 8, 20, 36);
	}
}

static void views_of_a_tensor_that_becomes_dual(void **state)
{
	tensor_scope {
		tensor *x = dual(iota(1, TENSOR_INTS(2)), iota(10, TENSOR_INTS(2))),
		       *root = ok(tensor_zeros(TENSOR_INTS(4), F32));
		tensor *z = ok(tensor_reshape(root, TENSOR_INTS(2, 2))),
		       *row = ok(tensor_select(z, 0, 1));

		ok(tensor_copy_(row, x));
		assert_values(tensor_tangent(root), 0, 0, 0, 10, 11);
		assert_values(tensor_tangent(z), 0, 0, 0, 10, 11);
		assert_values(tensor_tangent(tensor_sum(z)), 0, 21);
	}
}

static void tangents_are_recorded_only_if_something_requires_a_gradient(void **state)
{
	struct tensor_live_counts before, after;

	tensor_scope {
		tensor *x = dual(iota(1, TENSOR_INTS(2)), iota(10, TENSOR_INTS(2)));

		tensor_scope
			ok(tensor_sin_(x));
		tensor_live_counts(&before);
		for (int i = 0; i < 100; i++)
			tensor_scope
				ok(tensor_sin_(x));
		tensor_live_counts(&after);
		assert_false(tensor_requires_grad(tensor_tangent(x)));
		assert_true(after.tensors <= before.tensors + 4);
	}
}

static void random_operators_run_once(void **state)
{
	tensor_scope {
		tensor *x = dual(ok(tensor_ones(TENSOR_INTS(64), F32)),
				 ok(tensor_full(TENSOR_INTS(64), S(3), F32)));
		tensor *y = ok(tensor_dropout(x, 0.5, true));

		assert_same(ok(tensor_mul_scalar(tensor_primal(y), S(3))), tensor_tangent(y));
	}
}

static void complex_tangents_are_not_conjugated(void **state)
{
	tensor_scope {
		tensor *re = iota(1, TENSOR_INTS(1)), *im = iota(2, TENSOR_INTS(1));
		tensor *z = ok(tensor_view_as_complex(ok(tensor_stack(TENSOR_LIST(re, im), 1))));
		tensor *x = dual(z, ok(tensor_mul(z, z))), *y = ok(tensor_mul(x, x));

		/* 2 z z^2 = 2 (1 + 2i)^3 */
		assert_values(ok(tensor_view_as_real(tensor_tangent(y))), 1e-5, -22, -4);
		assert_values(ok(tensor_view_as_real(tensor_tangent(ok(tensor_conj_physical(x))))),
			      1e-5, -3, -4);
		assert_values(tensor_tangent(ok(tensor_abs(x))), 1e-5, (1 * -3 + 2 * 4) / sqrt(5));
	}
}

/* ---- jvp and second derivatives ---- */

static int cube(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)ctx;
	assert_int_equal(nin, 2);
	out[0] = tensor_mul(tensor_mul(in[0], in[0]), in[0]);
	if (nout > 1)
		out[1] = tensor_exp(in[1]);
	return 0;
}

static void jvp_of_several_outputs(void **state)
{
	tensor_scope {
		tensor *x = iota(2, TENSOR_INTS(2)), *c = iota(0, TENSOR_INTS(1));
		tensor *v[2] = { ok(tensor_ones(TENSOR_INTS(2), F32)), NULL }, *y[2], *t[2];

		assert_done(tensor_jvp(cube, NULL, TENSOR_LIST(x, c), v, y, t, 2));
		assert_values(y[0], 0, 8, 27);
		assert_values(t[0], 0, 12, 27);
		assert_values(t[1], 0, 0);
		assert_null(tensor_tangent(y[0]));
	}
}

static void backward_through_a_tangent(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(2, TENSOR_INTS(2)), *c = iota(0, TENSOR_INTS(1));
		tensor *v[2] = { ok(tensor_ones(TENSOR_INTS(2), F32)), NULL }, *y[1], *t[1];

		assert_done(tensor_jvp(cube, NULL, TENSOR_LIST(x, c), v, y, t, 1));
		assert_true(tensor_requires_grad(y[0]));
		assert_true(tensor_requires_grad(t[0]));
		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_sum(t[0])), NULL,
					       (tensor_list){ 0 }, NULL, TENSOR_RETAIN_GRAPH));
		assert_values(tensor_grad(x), 0, 12, 18);
		assert_done(tensor_set_grad(x, NULL));
		assert_done(tensor_backward(tensor_sum(y[0])));
		assert_values(tensor_grad(x), 0, 12, 27);
	}
}

static void backward_of_a_dual_tensor_gives_dual_gradients(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(2, TENSOR_INTS(2)), *d = dual(x, iota(1, TENSOR_INTS(2))), *y;
		tensor *g[1];

		y = ok(tensor_sum(tensor_mul(tensor_mul(d, d), d)));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(d), g,
					       TENSOR_RETAIN_GRAPH));
		assert_values(g[0], 0, 12, 27);
		/* The product of the Hessian with the direction (1, 2). */
		assert_values(tensor_tangent(g[0]), 0, 12, 36);
		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_primal(y)), NULL,
					       (tensor_list){ 0 }, NULL, TENSOR_RETAIN_GRAPH));
		assert_values(tensor_grad(x), 0, 12, 27);
		assert_null(tensor_tangent(tensor_grad(x)));
		assert_done(tensor_set_grad(x, NULL));
		assert_done(tensor_backward(tensor_tangent(y)));
		assert_values(tensor_grad(x), 0, 12, 36);
	}
}

static void in_place_change_after_a_copy_keeps_the_tangent(void **state)
{
	tensor_scope {
		tensor *x = dual(iota(1, TENSOR_INTS(2)), iota(10, TENSOR_INTS(2)));
		tensor *c = ok(tensor_clone(x)), *s = ok(tensor_add_scalar(x, S(1)));

		ok(tensor_zero_(c));
		ok(tensor_mul_scalar_(s, S(2)));
		assert_values(tensor_tangent(c), 0, 0, 0);
		assert_values(tensor_tangent(s), 0, 20, 22);
		assert_values(tensor_tangent(x), 0, 10, 11);
	}
}

static int no_output(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)in;
	(void)nin;
	(void)out;
	(void)nout;
	return ctx ? -ERANGE : 0;
}

static void wrong_arguments_are_errors(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2)), *i = ok(tensor_arange(S(3), I64)), *y[1],
		       *t[1], *v[1] = { x };
		tensor *d = dual(x, x);

		assert_fails(tensor_make_dual(x, i), EINVAL, "[2]");
		assert_fails(tensor_make_dual(i, i), EINVAL, "floating");
		assert_fails(tensor_make_dual(NULL, i), EINVAL, "NULL");
		assert_fails(tensor_make_dual(d, x), EINVAL, "already");
		assert_fails(tensor_make_dual(x, d), EINVAL, "already");
		assert_fails(tensor_jvp(NULL, NULL, TENSOR_LIST(x), v, y, t, 1), EINVAL,
			     "must be given");
		assert_fails(tensor_jvp(no_output, NULL, TENSOR_LIST(x), v, y, t, 1), EINVAL,
			     "did not set output 0");
		assert_fails(tensor_jvp(no_output, y, TENSOR_LIST(x), v, y, t, 1), ERANGE,
			     "failed");
		assert_null(y[0]);
		assert_fails(tensor_primal(NULL), EINVAL, "NULL");
		assert_null(tensor_tangent(NULL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tangent_of_a_product),
		cmocka_unit_test(views_of_dual_tensors_share_their_tangent),
		cmocka_unit_test(in_place_change_gives_a_tangent),
		cmocka_unit_test(expanded_tensor_has_a_tangent_for_each_position),
		cmocka_unit_test(row_of_an_expanded_tensor_changes_alone),
		cmocka_unit_test(expanded_tangent_is_not_copied),
		cmocka_unit_test(views_of_a_tensor_that_becomes_dual),
		cmocka_unit_test(tangents_are_recorded_only_if_something_requires_a_gradient),
		cmocka_unit_test(random_operators_run_once),
		cmocka_unit_test(complex_tangents_are_not_conjugated),
		cmocka_unit_test(jvp_of_several_outputs),
		cmocka_unit_test(backward_through_a_tangent),
		cmocka_unit_test(backward_of_a_dual_tensor_gives_dual_gradients),
		cmocka_unit_test(in_place_change_after_a_copy_keeps_the_tangent),
		cmocka_unit_test(wrong_arguments_are_errors),
	};

	return cmocka_run_group_tests_name("autograd_forward", tests, NULL, NULL);
}
