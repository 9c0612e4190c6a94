// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Losses and their gradients are those of PyTorch's functions, for each reduction; initial values. */
#include "train/filled.h"

static const struct expected expected[] = {
#include "losses.inc"
};

/* The tensors of all losses. */
struct data {
	tensor *x, *y, *p, *q, *classes, *signs, *sign_y, *sign_z, *z, *w, *pos;
	tensor *log_probs, *targets, *lengths, *target_lengths;
};

static struct data data_new(void)
{
	struct data d = {
		.x = leaf(filled(TENSOR_INTS(4, 5), 0)),
		.y = filled(TENSOR_INTS(4, 5), 3),
		.z = filled(TENSOR_INTS(4, 5), 8),
		.classes = tensor_from_data((const int64_t[]){ 1, 4, 0, 2 }, TENSOR_INTS(4), I64),
		.signs = tensor_from_data((const int64_t[]){ 1, -1, -1, 1 }, TENSOR_INTS(4), I64),
		.targets = tensor_from_data((const int64_t[]){ 1, 2, 2, 3, 1, 1 },
					    TENSOR_INTS(2, 3), I64),
		.lengths = tensor_from_data((const int64_t[]){ 6, 5 }, TENSOR_INTS(2), I64),
		.target_lengths = tensor_from_data((const int64_t[]){ 3, 2 }, TENSOR_INTS(2), I64),
	};

	d.p = leaf(tensor_detach(tensor_sigmoid(tensor_mul(tensor_detach(d.x), 4))));
	d.q = tensor_sigmoid(tensor_mul(d.y, 4));
	d.sign_y = tensor_sign(d.y);
	d.sign_z = tensor_sign(filled(TENSOR_INTS(4, 5), 7));
	d.w = tensor_add(filled(TENSOR_INTS(5), 5), 1);
	d.pos = tensor_add(d.w, 1);
	d.log_probs = leaf(tensor_log_softmax(filled(TENSOR_INTS(6, 2, 4), 0), -1));
	return d;
}

static void check_loss(const char *name, int *at, tensor *x, tensor *loss)
{
	const char *values = expected[*at].values;

	assert_string_equal(expected[*at].name, name);
	++*at;
	check_value_(name, &values, "y", checksum(ok(loss)));
	assert_done(tensor_backward_ex(TENSOR_LIST(loss), &(tensor *){ weights_of(loss) },
				       (tensor_list){ 0 }, NULL, 0));
	check_value_(name, &values, "x", checksum(tensor_grad(x)));
	check_end_(name, values);
	tensor_set_grad(x, NULL);
}

static const enum tensor_reduction reductions[] = { TENSOR_REDUCTION_NONE, TENSOR_REDUCTION_MEAN,
						    TENSOR_REDUCTION_SUM };

/* A loss of x with each reduction. */
#define LOSS(name, x, ...)                                                     \
	for (int r_ = 0; r_ < 3; r_++) {                                       \
		enum tensor_reduction red = reductions[r_];                    \
                                                                               \
		check_loss(#name, &at, x, tensor_loss_##name(x, __VA_ARGS__)); \
	}

static void losses_equal_pytorch(void **state)
{
	int at = 0;

	(void)state;
	tensor_scope {
		struct data d = data_new();

		LOSS(cross_entropy, d.x, d.classes, red);
		LOSS(cross_entropy, d.x, d.classes, red, .weight = &d.w, .ignore = true,
		     .ignore_index = 4, .label_smoothing = 0.1);
		LOSS(nll, d.x, d.classes, red, .weight = &d.w);
		LOSS(mse, d.x, d.y, red);
		LOSS(l1, d.x, d.y, red);
		LOSS(smooth_l1, d.x, d.y, red, .beta = 0.3);
		LOSS(huber, d.x, d.y, red, .delta = 0.3);
		LOSS(bce, d.p, d.q, red, .weight = &d.w);
		LOSS(bce_with_logits, d.x, d.q, red, .weight = &d.w, .pos_weight = &d.pos);
		LOSS(kl_div, d.x, d.q, red);
		LOSS(kl_div, d.x, d.y, red, .log_target = true);
		LOSS(hinge_embedding, d.x, d.sign_y, red);
		LOSS(soft_margin, d.x, d.sign_y, red);
		LOSS(margin_ranking, d.x, d.y, d.sign_z, red, .margin = 0.2);
		LOSS(cosine_embedding, d.x, d.y, d.signs, red, .margin = -0.1);
		LOSS(triplet_margin, d.x, d.y, d.z, red, .swap = true, .margin = 0.5);
		LOSS(ctc, d.log_probs, d.targets, d.lengths, d.target_lengths, red);
	}
	assert_int_equal(at, ARRAY_SIZE(expected));
}

static void default_is_the_mean(void **state)
{
	(void)state;
	tensor_scope {
		struct data d = data_new();

		assert_same(ok(tensor_loss_mse(d.x, d.y)),
			    ok(tensor_loss_mse(d.x, d.y, TENSOR_REDUCTION_MEAN)));
		assert_same(
			ok(tensor_loss_margin_ranking(d.x, d.y, d.sign_y)),
			ok(tensor_loss_margin_ranking(d.x, d.y, d.sign_y, TENSOR_REDUCTION_MEAN)));
		assert_same(
			ok(tensor_loss_ctc(d.log_probs, d.targets, d.lengths, d.target_lengths)),
			ok(tensor_loss_ctc(d.log_probs, d.targets, d.lengths, d.target_lengths,
					   TENSOR_REDUCTION_MEAN)));
		assert_values(tensor_div(ok(tensor_loss_kl_div(d.x, d.q, TENSOR_REDUCTION_SUM)),
					 tensor_loss_kl_div(d.x, d.q, TENSOR_REDUCTION_MEAN,
							    .batch_mean = true)),
			      1e-15, 4);
	}
}

static void hostile_arguments_of_losses_fail(void **state)
{
	tensor *none = NULL;

	(void)state;
	tensor_scope {
		struct data d = data_new();

		assert_fails(tensor_loss_mse(NULL, d.y), EINVAL, "NULL");
		assert_fails(tensor_loss_mse(d.x, NULL), EINVAL, "NULL");
		assert_fails(tensor_loss_mse(d.x, d.y, (enum tensor_reduction)3), EINVAL,
			     "3 is no reduction");
		assert_fails(tensor_loss_mse(d.x, d.y, (enum tensor_reduction) - 1), EINVAL,
			     "no reduction");
		/* A weight that failed is not taken for none. */
		assert_null(tensor_loss_cross_entropy(d.x, d.classes, TENSOR_REDUCTION_SUM,
						      .weight = &none));
		assert_null(tensor_loss_bce_with_logits(d.x, d.q, TENSOR_REDUCTION_SUM,
							.pos_weight = &none));
		assert_fails(tensor_loss_cosine_embedding(d.x, d.y, d.y), EINVAL, "[n, d]");
		assert_fails(tensor_loss_cosine_embedding(d.x, tensor_none, d.signs), EINVAL, "");
		assert_fails(tensor_loss_triplet_margin(d.x, NULL, d.y), EINVAL, "");
		assert_fails(tensor_loss_kl_div(NULL, d.y), EINVAL, "");
	}
}

/* ---- initial values ---- */

/* The same numbers as drawing with this bound or deviation. */
static void assert_draws(tensor *got, bool normal, double a, double b)
{
	tensor *want = tensor_empty(tensor_shape(got), F64);

	tensor_manual_seed(3);
	ok(normal ? tensor_normal_(want, a, b) : tensor_uniform_(want, a, b));
	assert_same(got, want);
}

#define SEEDED(call) (tensor_manual_seed(3), ok(call))

static void initialisers_draw_with_the_deviation_of_their_formula(void **state)
{
	(void)state;
	tensor_scope {
		/* fan_in 45, fan_out 54 */
		tensor *t = leaf(tensor_empty(TENSOR_INTS(6, 5, 3, 3), F64));

		assert_draws(SEEDED(tensor_init_uniform(t, -2, 3, NULL)), false, -2, 3);
		assert_draws(SEEDED(tensor_init_normal(t, 1, 2, NULL)), true, 1, 2);
		assert_draws(SEEDED(tensor_init_xavier_uniform(t, 2, NULL)), false,
			     -sqrt(3) * (2 * sqrt(2 / 99.)), sqrt(3) * (2 * sqrt(2 / 99.)));
		assert_draws(SEEDED(tensor_init_xavier_normal(t, 2, NULL)), true, 0,
			     2 * sqrt(2 / 99.));
		assert_draws(SEEDED(tensor_init_kaiming_uniform(t, sqrt(5), TENSOR_FAN_IN,
								TENSOR_NONLINEARITY_LEAKY_RELU,
								NULL)),
			     false, -sqrt(3) * (sqrt(2 / (1 + sqrt(5) * sqrt(5))) / sqrt(45)),
			     sqrt(3) * (sqrt(2 / (1 + sqrt(5) * sqrt(5))) / sqrt(45)));
		assert_draws(SEEDED(tensor_init_kaiming_normal(t, 0, TENSOR_FAN_OUT,
							       TENSOR_NONLINEARITY_TANH, NULL)),
			     true, 0, 5. / 3 / sqrt(54));
		assert_true(tensor_is_leaf(t));
		assert_true(tensor_requires_grad(t));
	}
}

static void initialisers_of_matrices(void **state)
{
	(void)state;
	tensor_scope {
		tensor *t = tensor_ones(TENSOR_INTS(2, 3), F64);

		assert_values(ok(tensor_init_eye(t)), 0, 1, 0, 0, 0, 1, 0);
		t = tensor_ones(TENSOR_INTS(4, 2, 3), F64);
		assert_values(ok(tensor_init_dirac(t, 2)), 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
			      1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0);
		assert_values(ok(tensor_init_constant(tensor_empty(TENSOR_INTS(2), F32), 3)), 0, 3,
			      3);
		t = tensor_init_trunc_normal(tensor_empty(TENSOR_INTS(2000), F64), 1, 2, -1, 2,
					     NULL);
		assert_values(tensor_le(tensor_amax(t, TENSOR_INTS(0), false), 2), 0, 1);
		assert_values(tensor_ge(tensor_amin(t, TENSOR_INTS(0), false), -1), 0, 1);
	}
}

static void orthogonal_has_orthonormal_rows_or_columns(void **state)
{
	static const int64_t sizes[][3] = { { 4, 3, 2 }, { 6, 2, 1 }, { 5, 5, 1 } };

	(void)state;
	tensor_scope {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			const tensor_ints size = { sizes[i], 3 };
			tensor *t = tensor_init_orthogonal(tensor_empty(size, F64), 3, NULL), *p;
			bool wide = sizes[i][0] <= sizes[i][1] * sizes[i][2];
			double far;

			if (!t && tensor_last_error()->code == ENOSYS)
				skip();
			t = tensor_div(tensor_flatten(ok(t), 1, -1), 3);
			p = wide ? tensor_mm(t, tensor_t(t)) : tensor_mm(tensor_t(t), t);
			assert_done(tensor_item(tensor_max(tensor_abs(tensor_sub(
							p, tensor_eye(tensor_size(p, 0), F64)))),
						&far));
			assert_true(far < 1e-14);
		}
	}
}

static void hostile_arguments_of_initialisers_fail(void **state)
{
	(void)state;
	tensor_scope {
		tensor *flat = tensor_ones(TENSOR_INTS(4), F64),
		       *ints = tensor_ones(TENSOR_INTS(2, 2), I64);
		tensor *empty = tensor_ones(TENSOR_INTS(0, 3, 2), F64);

		assert_fails(tensor_init_zeros(NULL), EINVAL, "NULL");
		assert_fails(tensor_init_uniform(ints, 0, 1, NULL), EINVAL, "floating");
		assert_fails(tensor_init_uniform(flat, NAN, 1, NULL), EINVAL, "");
		assert_fails(tensor_init_normal(flat, 0, -1, NULL), EINVAL, "");
		assert_fails(tensor_init_xavier_normal(flat, 1, NULL), EINVAL, "2 dimensions");
		assert_fails(tensor_init_kaiming_normal(empty, 0, 5, 0, NULL), EINVAL, "fan");
		assert_fails(tensor_init_kaiming_normal(empty, 0, 0, 9, NULL), EINVAL,
			     "nonlinearity");
		assert_fails(tensor_init_eye(flat), EINVAL, "2 dimensions");
		assert_fails(tensor_init_dirac(empty, 0), EINVAL, "groups");
		assert_fails(tensor_init_trunc_normal(flat, 0, 0, 1, 2, NULL), EINVAL, "std");
		assert_fails(tensor_init_trunc_normal(flat, 0, 1, 2, 1, NULL), EINVAL, "from 2");
		assert_fails(tensor_init_orthogonal(flat, 1, NULL), EINVAL, "2 dimensions");
		ok(tensor_init_xavier_uniform(empty, 1, NULL));
		ok(tensor_init_orthogonal(empty, 1, NULL));
		ok(tensor_init_dirac(empty, INT64_MAX));
		ok(tensor_init_kaiming_uniform(empty, 0, TENSOR_FAN_OUT, 0, NULL));
		assert_true(isnan(tensor_init_gain(17, 0)));
	}
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(losses_equal_pytorch),
		T(default_is_the_mean),
		T(hostile_arguments_of_losses_fail),
		T(initialisers_draw_with_the_deviation_of_their_formula),
		T(initialisers_of_matrices),
		T(orthogonal_has_orthonormal_rows_or_columns),
		T(hostile_arguments_of_initialisers_fail),
	};

	return cmocka_run_group_tests_name("losses", tests, NULL, NULL);
}
