// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "autograd.h"
#include "formulas.h"

static tensor *group_norm(tensor *x, tensor *w, tensor *b)
{
	return tensor_group_norm(x, 2, w, b, 1e-3, false);
}

static tensor *batch_norm(tensor *x, tensor *w, tensor *b, bool training)
{
	tensor *mean = tensor_full(TENSOR_INTS(3), S(0.5), F64),
	       *var = tensor_full(TENSOR_INTS(3), S(2.0), F64);

	return tensor_batch_norm(x, w, b, mean, var, training, 0.1, 1e-3, false);
}

/* Normalization under the names of the core ATen set: n is the number of running statistics. */
static tensor *batch_norm_legit(tensor *x, tensor *w, tensor *b, int n)
{
	tensor *mean = tensor_full(TENSOR_INTS(3), S(0.5), F64),
	       *var = tensor_full(TENSOR_INTS(3), S(2.0), F64);
	tensor *y, *m, *s;
	int err;

	if (!n)
		err = tensor_native_batch_norm_legit_no_stats(x, w, b, true, 0.1, 1e-3, &y, &m, &s);
	else
		err = tensor_native_batch_norm_legit_no_training(x, w, b, mean, var, 0.1, 1e-3, &y,
								 &m, &s);
	return err < 0 ? NULL : y;
}

static tensor *batch_norm_and_update(tensor *x, tensor *w, tensor *b, bool training)
{
	tensor *mean = tensor_full(TENSOR_INTS(3), S(0.5), F64),
	       *var = tensor_full(TENSOR_INTS(3), S(2.0), F64);
	tensor *y, *m, *s;

	return tensor_native_batch_norm_legit(x, w, b, mean, var, training, 0.1, 1e-3, &y, &m, &s) <
			       0 ?
		       NULL :
		       y;
}

/* The backward does not read the bias. */
static tensor *layer_norm_backward(tensor *bias)
{
	tensor *x = tensor_view(tensor_arange(S(6), F64), TENSOR_INTS(2, 3)), *y, *mean, *rstd, *w;
	tensor *gx, *gw, *gb;

	w = tensor_ones(TENSOR_INTS(3), F64);
	if (tensor_native_layer_norm(x, TENSOR_INTS(3), w, bias, 1e-3, &y, &mean, &rstd) < 0 ||
	    tensor_native_layer_norm_backward(x, x, TENSOR_INTS(3), tensor_detach(mean),
					      tensor_detach(rstd), w, bias, 7, &gx, &gw, &gb) < 0)
		return NULL;
	return tensor_mul(gx, tensor_sum(bias));
}

/* The backward operators called by name, with the statistics of x. */
static tensor *sum_of_three(tensor *const *g)
{
	return tensor_add(tensor_sum(tensor_exp(g[0])),
			  tensor_sum(tensor_mul(tensor_exp(g[1]), tensor_exp(g[2]))));
}

static tensor *layer_by_name(tensor *grad, tensor *x, tensor *w)
{
	const tensor_ints shape = TENSOR_INTS(tensor_sizes(x)[tensor_dim(x) - 1]);
	tensor *y, *mean, *rstd, *g[3];

	if (tensor_native_layer_norm(x, shape, w, tensor_none, 1e-3, &y, &mean, &rstd) < 0 ||
	    tensor_native_layer_norm_backward(grad, x, shape, tensor_detach(mean),
					      tensor_detach(rstd), w, tensor_none, 7, &g[0], &g[1],
					      &g[2]) < 0)
		return NULL;
	return sum_of_three(g);
}

static tensor *group_by_name(tensor *grad, tensor *x, tensor *w)
{
	tensor *y, *mean, *rstd, *g[3];

	if (tensor_native_group_norm(x, w, tensor_none, 2, 4, 2, 2, 1e-3, &y, &mean, &rstd) < 0 ||
	    tensor_native_group_norm_backward(grad, x, tensor_detach(mean), tensor_detach(rstd), w,
					      2, 4, 2, 2, 7, &g[0], &g[1], &g[2]) < 0)
		return NULL;
	return sum_of_three(g);
}

static tensor *batch_by_name(tensor *grad, tensor *x, tensor *w, bool training)
{
	tensor *rm = tensor_full(TENSOR_INTS(3), S(0.5), F64),
	       *rv = tensor_full(TENSOR_INTS(3), S(2.0), F64), *y, *mean, *invstd, *g[3];

	if (tensor_native_batch_norm(x, w, tensor_none, tensor_clone(rm), tensor_clone(rv),
				     training, 0.1, 1e-3, &y, &mean, &invstd) < 0 ||
	    tensor_native_batch_norm_backward(grad, x, w, rm, rv, tensor_detach(mean),
					      tensor_detach(invstd), training, 1e-3, 7, &g[0],
					      &g[1], &g[2]) < 0)
		return NULL;
	return sum_of_three(g);
}

CASE(fn_layer_by_name, layer_by_name(a, b, c))
CASE(fn_group_by_name, group_by_name(a, b, c))
CASE(fn_batch_by_name, batch_by_name(a, b, c, true))
CASE(fn_batch_by_name_eval, batch_by_name(a, b, c, false))
CASE(fn_layer_backward, layer_norm_backward(a))
CASE(fn_no_stats, batch_norm_legit(a, b, c, 0))
CASE(fn_no_training, batch_norm_legit(a, b, c, 2))
CASE(fn_legit, batch_norm_and_update(a, b, c, true))
CASE(fn_legit_eval, batch_norm_and_update(a, b, c, false))
CASE(fn_batch, batch_norm(a, b, c, true))
CASE(fn_batch_eval, batch_norm(a, b, c, false))
CASE(fn_instance, tensor_instance_norm(a, b, c, tensor_none, tensor_none, true, 0.1, 1e-3, false))
CASE(fn_layer, tensor_layer_norm(a, TENSOR_INTS(3), b, c, 1e-3, false))
CASE(fn_layer_plain, tensor_layer_norm(a, TENSOR_INTS(2, 3), tensor_none, tensor_none, 1e-3, false))
CASE(fn_layer_mean, tensor_layer_norm(a, TENSOR_INTS(2, 3), b, tensor_none, 1e-3, false))
CASE(fn_rms, tensor_rms_norm(a, TENSOR_INTS(3), b, 1e-3))
CASE(fn_group, group_norm(a, b, c))
CASE(fn_group_plain, group_norm(a, tensor_none, tensor_none))

static const struct formula formulas[] = {
	ROW(batch, 3, IN(1, 0, 4, 3), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(batch, 3, IN_T(1, 0, 2, 3, 2), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(batch_eval, 3, IN(1, 0, 2, 3, 2), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(no_stats, 3, IN(1, 0, 4, 3), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(no_stats, 3, IN_T(1, 0, 2, 3, 2), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(no_training, 3, IN_T(1, 0, 2, 3, 2), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(legit, 3, IN(1, 0, 2, 3, 2), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(legit_eval, 3, IN(1, 0, 2, 3, 2), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(layer_backward, 1, IN(1, 0.3, 3)),
	ROW(instance, 3, IN(1, 0, 2, 3, 4), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(layer, 3, IN(1, 0, 2, 3), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(layer, 3, IN_T(1, 0, 2, 2, 3), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(layer_plain, 1, IN(1, 0, 2, 2, 3)),
	ROW(layer_mean, 2, IN(1, 0, 2, 2, 3), IN(1, 0, 2, 3)),
	ROW(rms, 2, IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(group, 3, IN(1, 0, 2, 4, 2), IN(1, 0, 4), IN(1, 0, 4)),
	ROW(group_plain, 1, IN_T(1, 0, 2, 4, 2)),
	ROW(layer_by_name, 3, IN(1, 0, 2, 3), IN_T(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(group_by_name, 3, IN(1, 0, 2, 4, 2), IN(1, 0, 2, 4, 2), IN(1, 0, 4)),
	ROW(batch_by_name, 3, IN(1, 0, 4, 3), IN(1, 0, 4, 3), IN(1, 0, 3)),
	ROW(batch_by_name_eval, 3, IN(1, 0, 2, 3, 2), IN_T(1, 0, 2, 3, 2), IN(1, 0, 3)),
};

FORMULA_TESTS

/* The results depend on the statistics, so that a gradient of zero would be wrong. */
static void statistics_have_no_gradient(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_INTS(2, 3), F64)), *y, *m, *s;
		tensor *one = ok(tensor_ones(TENSOR_INTS(3), F64)),
		       *two = ok(tensor_ones(TENSOR_INTS(2, 1), F64));

		assert_done(tensor_set_requires_grad(one, true));
		assert_done(tensor_set_requires_grad(two, true));
		assert_fails(tensor_native_batch_norm_legit(x, tensor_none, tensor_none, one, one,
							    false, 0.1, 1e-3, &y, &m, &s),
			     EOPNOTSUPP, "running_mean");
		assert_done(tensor_native_layer_norm_backward(
			x, x, TENSOR_INTS(3), two, two, tensor_none, tensor_none, 1, &y, &m, &s));
		assert_fails(tensor_backward(ok(tensor_sum(y))), EOPNOTSUPP,
			     "native_layer_norm_backward");
		assert_done(tensor_native_group_norm_backward(x, x, two, two, tensor_none, 2, 3, 1,
							      1, 1, &y, &m, &s));
		assert_fails(tensor_backward(ok(tensor_sum(y))), EOPNOTSUPP,
			     "native_group_norm_backward");
		assert_done(tensor_native_batch_norm_backward(x, x, tensor_none, tensor_none,
							      tensor_none, one, one, true, 1e-3, 1,
							      &y, &m, &s));
		assert_fails(tensor_backward(ok(tensor_sum(y))), EOPNOTSUPP,
			     "native_batch_norm_backward");
	}
}

/* ---- reduced floats with parameters of f32 ---- */

static tensor *apply_norm(int kind, tensor *x, tensor *w, tensor *b)
{
	tensor *mean = tensor_full_like(w, S(0.4), TENSOR_OPTIONS(0));
	tensor *var = tensor_full_like(w, S(0.1), TENSOR_OPTIONS(0));

	if (kind < 2)
		return tensor_batch_norm(x, w, b, kind ? mean : tensor_none,
					 kind ? var : tensor_none, !kind, 0.1, 1e-5, false);
	return kind == 2 ? tensor_group_norm(x, 2, w, b, 1e-5, false) :
			   tensor_layer_norm(x, TENSOR_INTS(4), w, b, 1e-5, false);
}

/* They are as those of f64, not rounded to the dtype of the input. */
static void gradients_of_f32_parameters_keep_their_precision(void **state)
{
	const enum tensor_dtype reduced[] = { TENSOR_BF16, TENSOR_F16 };

	(void)state;
	for (int i = 0; i < 8; i++)
		tensor_scope {
			tensor *x = ok(tensor_rand(TENSOR_INTS(70, 4), OF(reduced[i % 2])));
			tensor *grad = ok(tensor_mul(x, x)), *p[2][2];

			for (int k = 0; k < 2; k++) {
				tensor_options of = k ? F64 : F32;
				tensor *g = k ? ok(tensor_to(grad, F64)) : grad, *y;

				p[k][0] = leaf(tensor_full(TENSOR_INTS(4), S(1.25), of));
				p[k][1] = leaf(tensor_zeros(TENSOR_INTS(4), of));
				y = ok(apply_norm(i / 2, k ? ok(tensor_to(x, F64)) : x, p[k][0],
						  p[k][1]));
				assert_done(tensor_backward_ex(TENSOR_LIST(y), &g,
							       (tensor_list){ 0 }, NULL, 0));
			}
			for (int k = 0; k < 2; k++) {
				double *want = values_of(tensor_grad(p[1][k]));

				assert_int_equal(tensor_dtype(tensor_grad(p[0][k])), TENSOR_F32);
				check_values_(tensor_grad(p[0][k]), want, 4, 5e-5, __FILE__,
					      __LINE__);
				free(want);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
		cmocka_unit_test(statistics_have_no_gradient),
		cmocka_unit_test(gradients_of_f32_parameters_keep_their_precision),
	};

	return cmocka_run_group_tests_name("autograd_norm", tests, NULL, NULL);
}
