// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Optimizers against PyTorch's over 50 steps; torch_optim.py prints the numbers. Their state and files. */
#include "files.h"
#include "optim.h"

static const struct {
	const char *name;
	tensor_optim_options options;
	double ends[2 * PARAMS]; /* the first and last element of each parameter */
} rows[] = {
	{ "sgd",
	  TENSOR_SGD(.lr = 0.05),
	  { -0.018554691463417844, -0.013819542399132669, -0.015624137986161826,
	    -0.014973972931180461, -0.01347239405767577, -0.01347239405767577 } },
	{ "sgd momentum",
	  TENSOR_SGD(.lr = 0.05, .weight_decay = 0.01, .momentum = 0.9, .dampening = 0.3),
	  { -0.051160376885291126, -0.026325970296925898, -0.03685649417210691,
	    -0.033226615832652885, -0.02412965181166941, -0.02412965181166941 } },
	{ "sgd nesterov",
	  TENSOR_SGD(.nesterov = true, .lr = 0.05, .weight_decay = 0.02, .momentum = 0.9),
	  { -0.013185768915725638, -0.015088589946218875, -0.014239919494173447,
	    -0.014524451158927566, -0.015275214163632776, -0.015275214163632776 } },
	{ "sgd maximize",
	  TENSOR_SGD(.maximize = true, .lr = 0.005, .momentum = 0.5),
	  { -1.4341881247913562, -0.9658249167940645, -1.1993912868692382, -1.1262341190727627,
	    -0.9077088557167686, -0.9077088557167686 } },
	{ "adam",
	  TENSOR_ADAM(.lr = 0.01),
	  { -0.43027595808509395, -0.08961462382114722, -0.2331713704805909, -0.18260475283179284,
	    -0.06232020551751429, -0.06232020551751429 } },
	{ "adam amsgrad",
	  TENSOR_ADAM(.amsgrad = true, .lr = 0.01, .weight_decay = 0.1, .beta1 = 0.8,
		      .beta2 = 0.95),
	  { -0.4344905986599267, -0.10946545328714705, -0.24387515880785446, -0.19575983038846004,
	    -0.08412374999302183, -0.08412374999302183 } },
	{ "adam maximize",
	  TENSOR_ADAM(.maximize = true, .lr = 0.01, .eps = 1e-3),
	  { -1.3934152458005225, -1.0129967428144258, -1.183655218228434, -1.1265999882330016,
	    -0.9753375346606921, -0.9753375346606921 } },
	{ "adamw",
	  TENSOR_ADAMW(.lr = 0.02),
	  { -0.0715907730826185, 0.03570147153461703, 0.02347687025502452, 0.03536003089696174,
	    0.029058136510399398, 0.029058136510399398 } },
	{ "adamw amsgrad",
	  TENSOR_ADAMW(.amsgrad = true, .lr = 0.02, .weight_decay = 0.2),
	  { -0.030807203165087928, 0.030755263157418295, 0.03205374698333401, 0.03765480051007914,
	    0.023520332837663586, 0.023520332837663586 } },
	{ "adagrad",
	  TENSOR_ADAGRAD(),
	  { -0.7776750750982445, -0.3831552282694687, -0.5598589713571341, -0.5007331378816265,
	    -0.34426600327978574, -0.34426600327978574 } },
	{ "adagrad decay",
	  TENSOR_ADAGRAD(.lr = 0.1, .weight_decay = 0.1, .lr_decay = 0.05,
			 .initial_accumulator = 0.3),
	  { -0.2620194149554088, -0.04205165907604572, -0.1196675090442045, -0.08898837895249463,
	    -0.03109008597707429, -0.03109008597707429 } },
	{ "rmsprop",
	  TENSOR_RMSPROP(),
	  { -0.053453757928380745, -0.013734831459612164, -0.01857240270804763,
	    -0.015193709459980751, -0.014270878150283342, -0.014270878150283342 } },
	{ "rmsprop centered",
	  TENSOR_RMSPROP(.centered = true, .lr = 0.02, .weight_decay = 0.05, .momentum = 0.7,
			 .alpha = 0.9),
	  { -0.021216102156017016, -0.02218424324339858, -0.021933137052872254,
	    -0.022039996144640823, -0.022230056102747354, -0.022230056102747354 } },
};

static void fifty_steps_equal_pytorch(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		tensor_scope {
			tensor *p[PARAMS];
			tensor_optim *o;

			make_params(p, TENSOR_F64);
			o = optimizer(p, rows[k].options);
			train(o, p, 0, STEPS);
			for (int s = 0; s < PARAMS; s++) {
				double *v = values_of(tensor_detach(p[s]));

				for (int e = 0; e < 2; e++)
					if (fabs(v[e ? sizes[s] - 1 : 0] -
						 rows[k].ends[2 * s + e]) > 1e-12)
						fail_msg(
							"%s: parameter %d ends with %.17g, PyTorch's with %.17g",
							rows[k].name, s, v[e ? sizes[s] - 1 : 0],
							rows[k].ends[2 * s + e]);
				free(v);
			}
			tensor_optim_free(o);
		}
	}
}

/* The same rows in f32, f16 and bf16 end near the values of f64. */
static void other_dtypes_end_near_f64(void **state)
{
	static const struct {
		enum tensor_dtype dtype;
		double tol;
	} dtypes[] = { { TENSOR_F32, 2e-4 }, { TENSOR_F16, 0.15 }, { TENSOR_BF16, 0.5 } };

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
		for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
			tensor_scope {
				tensor *p[PARAMS];
				tensor_optim *o;
				double *v;

				make_params(p, dtypes[d].dtype);
				o = optimizer(p, rows[k].options);
				train(o, p, 0, STEPS);
				v = values_of(tensor_detach(p[0]));
				if (!(fabs(v[0] - rows[k].ends[0]) <= dtypes[d].tol))
					fail_msg("%s in %s: %g, in f64 %g", rows[k].name,
						 tensor_dtype_name(dtypes[d].dtype), v[0],
						 rows[k].ends[0]);
				free(v);
				tensor_optim_free(o);
			}
}

/* After 20 of 50 steps the state goes through a file to a new optimizer on copies of the parameters. */
static void resuming_from_a_file_gives_the_same_bits(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
		tensor_scope {
			tensor *p[PARAMS], *q[PARAMS];
			tensor_optim *o, *again;
			const char *path = "resume.safetensors";

			make_params(p, TENSOR_F32);
			o = optimizer(p, rows[k].options);
			train(o, p, 0, 20);
			assert_done(tensor_optim_set_lr(o, -1, 0.004));
			assert_done(tensor_optim_save(o, path));
			for (int s = 0; s < PARAMS; s++)
				q[s] = leaf(ok(tensor_clone(tensor_detach(p[s]))));
			train(o, p, 20, STEPS);

			again = optimizer(
				q, (tensor_optim_options){ .method = rows[k].options.method });
			assert_done(tensor_optim_load(again, path));
			assert_true(tensor_optim_lr(again, 0) == 0.004);
			assert_int_equal(tensor_optim_state_count(again),
					 tensor_optim_state_count(o));
			train(again, q, 20, STEPS);
			for (int s = 0; s < PARAMS; s++)
				assert_same(tensor_detach(p[s]), tensor_detach(q[s]));
			tensor_optim_free(o);
			tensor_optim_free(again);
		}
}

static void groups_have_their_own_options(void **state)
{
	tensor_scope {
		tensor *a = leaf(ok(tensor_ones(TENSOR_SHAPE(3), F64)));
		tensor *b = leaf(ok(tensor_ones(TENSOR_SHAPE(2), F64)));
		tensor *frozen = leaf(ok(tensor_ones(TENSOR_SHAPE(2), F64)));
		tensor_optim *o = tensor_optim_new(TENSOR_LIST(a, frozen), TENSOR_SGD(.lr = 0.5));
		tensor_optim_options got;

		assert_non_null(o);
		assert_int_equal(tensor_optim_add_group(o, TENSOR_LIST(b),
							TENSOR_SGD(.lr = 0.25, .momentum = 0.9)),
				 1);
		assert_int_equal(tensor_optim_groups(o), 2);
		assert_int_equal(tensor_optim_group_size(o, 0), 2);
		assert_ptr_equal(tensor_optim_param(o, 1, 0), b);
		assert_null(tensor_optim_param(o, 1, 1));
		assert_done(tensor_backward(ok(tensor_add(tensor_sum(a), tensor_sum(b)))));
		assert_done(tensor_optim_step(o));
		assert_values(a, 0, 0.5, 0.5, 0.5);
		assert_values(b, 0, 0.75, 0.75);
		assert_values(frozen, 0, 1, 1);
		assert_null(tensor_optim_state(o, 0, 0, "momentum_buffer"));
		assert_values(tensor_optim_state(o, 1, 0, "momentum_buffer"), 0, 1, 1);
		assert_done(tensor_optim_get_options(o, 1, &got));
		assert_true(got.lr == 0.25 && got.momentum == 0.9);
		assert_done(tensor_optim_set_options(o, 1, got));
		assert_done(tensor_optim_zero_grad(o));
		assert_null(tensor_grad(a));
		assert_done(tensor_optim_step(o));
		assert_values(b, 0, 0.75, 0.75);
		tensor_optim_free(o);
	}
}

/* A parameter whose first gradient comes later than those of the others. */
static void momentum_begins_with_the_first_gradient(void **state)
{
	tensor_scope {
		tensor *a = leaf(ok(tensor_zeros(TENSOR_SHAPE(1), F64)));
		tensor *b = leaf(ok(tensor_zeros(TENSOR_SHAPE(1), F64)));
		tensor_optim *o = tensor_optim_new(
			TENSOR_LIST(a, b), TENSOR_SGD(.lr = 1, .momentum = 0.5, .dampening = 0.5));

		assert_done(tensor_set_grad(a, ok(tensor_ones(TENSOR_SHAPE(1), F64))));
		assert_done(tensor_optim_step(o));
		assert_done(tensor_set_grad(b, ok(tensor_ones(TENSOR_SHAPE(1), F64))));
		assert_done(tensor_optim_step(o));
		assert_values(a, 0, -2);
		assert_values(b, 0, -1);
		tensor_optim_free(o);
	}
}

/* Parameters of any strides, also expanded gradients, get the values of contiguous ones. */
static void strides_do_not_change_the_result(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
		tensor_scope {
			tensor *v = ok(tensor_rand(TENSOR_SHAPE(4, 6, 5), F64));
			tensor *p[3] = {
				leaf(ok(tensor_clone(v))),
				leaf(ok(tensor_detach(tensor_transpose(
					ok(tensor_contiguous(tensor_transpose(v, 0, 2))), 0, 2)))),
				leaf(ok(tensor_detach(tensor_slice(
					ok(tensor_cat(TENSOR_LIST(v, v), 1)), 1, 0, 6, 1))))
			};
			tensor_optim *o = optimizer(p, rows[k].options);
			tensor *grad = ok(tensor_expand(ok(tensor_rand(TENSOR_SHAPE(6, 1), F64)),
							TENSOR_SHAPE(4, 6, 5)));

			for (int s = 0; s < 3; s++)
				assert_done(tensor_set_grad(p[s], grad));
			for (int i = 0; i < 3; i++)
				assert_done(tensor_optim_step(o));
			assert_same(tensor_detach(p[0]), tensor_detach(p[1]));
			assert_same(tensor_detach(p[0]), tensor_detach(p[2]));
			tensor_optim_free(o);
		}
}

/* A complex parameter is stepped like the real tensor of its parts. */
static void complex_parameters_are_pairs_of_reals(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
		tensor_scope {
			tensor *p[3], *z, *r, *g = ok(tensor_rand(TENSOR_SHAPE(9, 2), F64));
			tensor_optim *o;

			r = leaf(ok(tensor_rand(TENSOR_SHAPE(9, 2), F64)));
			z = leaf(ok(tensor_clone(tensor_view_as_complex(tensor_detach(r)))));
			p[0] = r;
			p[1] = z;
			p[2] = leaf(ok(tensor_ones(TENSOR_SHAPE(1), F32)));
			o = optimizer(p, rows[k].options);
			for (int i = 0; i < 3; i++) {
				assert_done(tensor_set_grad(r, g));
				assert_done(tensor_set_grad(z, ok(tensor_view_as_complex(g))));
				assert_done(tensor_optim_step(o));
			}
			assert_same(tensor_detach(r), ok(tensor_view_as_real(tensor_detach(z))));
			tensor_optim_free(o);
		}
}

/* Many parameters in several threads give the bits of one thread. */
static void threads_give_the_same_bits(void **state)
{
	enum { MANY = 300 };

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
		tensor_scope {
			tensor *p[2][MANY];

			for (int run = 0; run < 2; run++) {
				tensor_optim *o;

				for (int i = 0; i < MANY; i++) {
					tensor *t = ok(
						tensor_full(TENSOR_SHAPE(i * 7), S(0.01 * i), F32));

					p[run][i] = leaf(t);
					assert_done(tensor_set_grad(
						t, ok(tensor_full(TENSOR_SHAPE(i * 7),
								  S(1. / (i + 1)), F32))));
				}
				assert_done(tensor_set_num_threads(run ? 4 : 1));
				o = tensor_optim_new((tensor_list){ p[run], MANY },
						     rows[k].options);
				for (int i = 0; i < 3; i++)
					assert_done(tensor_optim_step(o));
				tensor_optim_free(o);
			}
			for (int i = 0; i < MANY; i++)
				assert_same(tensor_detach(p[0][i]), tensor_detach(p[1][i]));
		}
	assert_done(tensor_set_num_threads(2));
}

static tensor_optim *try(tensor *t, tensor_optim_options options)
{
	return tensor_optim_new(TENSOR_LIST(t), options);
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *p = leaf(ok(tensor_ones(TENSOR_SHAPE(3), F32)));
		tensor *q = leaf(ok(tensor_ones(TENSOR_SHAPE(4), F32)));
		tensor_optim *o = try(p, TENSOR_SGD());
		tensor_optim_options options;

		assert_fails(try(NULL, TENSOR_SGD()), EINVAL, "optim_new");
		assert_fails(try(tensor_none, TENSOR_SGD()), EINVAL, "tensor_none");
		assert_fails(tensor_optim_new((tensor_list){ NULL, 3 }, TENSOR_SGD()), EINVAL,
			     "params");
		assert_fails(tensor_optim_new((tensor_list){ &p, -1 }, TENSOR_SGD()), EINVAL,
			     "params");
		assert_fails(try(ok(tensor_ones(TENSOR_SHAPE(2), I64)), TENSOR_SGD()), EINVAL,
			     "i64");
		assert_fails(try(ok(tensor_to_sparse(tensor_detach(p))), TENSOR_SGD()), EINVAL,
			     "sparse_coo");
		assert_fails(try(ok(tensor_mul(p, p)), TENSOR_SGD()), EINVAL, "not a leaf");
		assert_fails(tensor_optim_new(TENSOR_LIST(p, p), TENSOR_SGD()), EINVAL, "twice");
		assert_fails(tensor_optim_add_group(o, TENSOR_LIST(p), TENSOR_SGD()), EINVAL,
			     "twice");
		assert_fails(tensor_optim_add_group(o, TENSOR_LIST(q), TENSOR_ADAM()), EINVAL,
			     "one method");
		assert_fails(try(q, (tensor_optim_options){ 0 }), EINVAL, "no method 0");
		assert_fails(try(q, (tensor_optim_options){ .method = 200 }), EINVAL,
			     "no method 200");
		assert_fails(try(q, TENSOR_ADAM(.beta2 = 1)), EINVAL, "beta2 is 1");
		assert_fails(try(q, TENSOR_ADAM(.lr = NAN)), EINVAL, "lr is nan");
		assert_fails(try(q, TENSOR_ADAM(.eps = -2)), EINVAL, "eps is -2");
		assert_fails(try(q, TENSOR_SGD(.nesterov = true)), EINVAL, "nesterov");
		assert_fails(tensor_optim_step(NULL), EINVAL, "optim_step");
		assert_fails(tensor_optim_zero_grad(NULL), EINVAL, "optim_zero_grad");
		assert_fails(tensor_optim_set_lr(o, 1, 0.1), EINVAL, "no group 1");
		assert_fails(tensor_optim_set_lr(o, 0, -0.1), EINVAL, "learning rate");
		assert_fails(tensor_optim_get_options(o, -1, &options), EINVAL, "no group -1");
		assert_fails(tensor_optim_get_options(o, 0, NULL), EINVAL, "NULL");
		assert_fails(tensor_optim_set_options(o, 0, TENSOR_ADAM()), EINVAL, "method");
		assert_true(isnan(tensor_optim_lr(NULL, 0)));
		assert_int_equal(tensor_optim_groups(NULL), -1);
		assert_int_equal(tensor_optim_group_size(o, INT32_MIN), -1);
		assert_null(tensor_optim_state(o, 0, 0, NULL));
		assert_null(tensor_optim_state(NULL, 0, 0, "step"));
		tensor_optim_free(NULL);
		tensor_optim_free(o);
	}
}

static void sparse_gradients_are_refused(void **state)
{
	tensor_scope {
		tensor *weight = leaf(ok(tensor_rand(TENSOR_SHAPE(5, 2), F32)));
		tensor *other = leaf(ok(tensor_ones(TENSOR_SHAPE(2), F32)));
		tensor_optim *o = tensor_optim_new(TENSOR_LIST(other, weight), TENSOR_ADAM());
		tensor *grad = ok(tensor_to_sparse(ok(tensor_ones(TENSOR_SHAPE(5, 2), F32))));

		assert_done(tensor_set_grad(other, ok(tensor_ones(TENSOR_SHAPE(2), F32))));
		if (tensor_set_grad(weight, grad) == 0)
			assert_fails(tensor_optim_step(o), EOPNOTSUPP,
				     "parameter 0.1 is sparse_coo");
		else
			assert_fails(tensor_set_grad(weight, grad), EINVAL, "");
		assert_values(other, 0, 1, 1);
		tensor_optim_free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifty_steps_equal_pytorch),
		cmocka_unit_test(other_dtypes_end_near_f64),
		cmocka_unit_test(resuming_from_a_file_gives_the_same_bits),
		cmocka_unit_test(groups_have_their_own_options),
		cmocka_unit_test(momentum_begins_with_the_first_gradient),
		cmocka_unit_test(strides_do_not_change_the_result),
		cmocka_unit_test(complex_parameters_are_pairs_of_reals),
		cmocka_unit_test(threads_give_the_same_bits),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(sparse_gradients_are_refused),
	};

	return cmocka_run_group_tests_name("optim", tests, make_folder, remove_folder);
}
