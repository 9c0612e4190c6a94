// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* layer_norm, group_norm and rms_norm against their definition in f64. */
#include "check.h"

#define EPS 1e-5

/* Values with a different mean in each row. */
static tensor *input(enum tensor_dtype dtype, tensor_ints shape)
{
	int64_t n = 1;
	double *v;
	tensor *t;

	for (int64_t i = 0; i < shape.len; i++)
		n *= shape.data[i];
	v = malloc((n + 1) * sizeof(*v));
	for (int64_t i = 0; i < n; i++)
		v[i] = 3 + 2 * sin(0.7 * (double)i * (double)(i % 13));
	t = ok(tensor_to(ok(tensor_from_data(v, shape, F64)), TENSOR_OPTIONS(.dtype = dtype)));
	free(v);
	return t;
}

/*
 * Normalizes lines of n elements; element i is scaled by weight[i / inner % channels] and bias is
 * added.
 */
static void check_normalized(tensor *got, tensor *x, int64_t n, tensor *weight, tensor *bias,
			     int64_t inner, double tol)
{
	double *g = values_of(got), *v = values_of(x), *w = values_of(weight), *b = values_of(bias);
	int64_t channels = tensor_numel(weight);

	for (int64_t i = 0; i < tensor_numel(x); i += n) {
		double mean = 0, square = 0;

		for (int64_t k = 0; k < n; k++)
			mean += v[i + k] / (double)n;
		for (int64_t k = 0; k < n; k++)
			square += (v[i + k] - mean) * (v[i + k] - mean) / (double)n;
		for (int64_t k = i; k < i + n; k++) {
			int64_t c = k / inner % channels;
			double want = (v[k] - mean) / sqrt(square + EPS) * w[c] + b[c];

			if (fabs(g[k] - want) > tol * (1 + fabs(want))) {
				fprintf(stderr, "element %d: %g, expected %g\n", (int)k, g[k],
					want);
				fail();
			}
		}
	}
	free(g);
	free(v);
	free(w);
	free(b);
}

static const struct {
	enum tensor_dtype dtype;
	double tol;
} dtypes[] = {
	{ TENSOR_F32, 3e-6 }, { TENSOR_F64, 1e-13 }, { TENSOR_F16, 2e-3 }, { TENSOR_BF16, 1.6e-2 }
};
static void layer_norm_is_its_definition(void **state)
{
	static const int64_t lengths[] = { 1, 3, 16, 64, 67, 1000, 5000 };

	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
			tensor_scope {
				int64_t n = lengths[i];
				tensor *x = input(dtypes[d].dtype, TENSOR_INTS(2, 3, n));
				tensor *w = input(dtypes[d].dtype, TENSOR_INTS(n)),
				       *b = tensor_neg(w);

				check_normalized(
					ok(tensor_layer_norm(x, TENSOR_INTS(n), w, b, EPS, false)),
					x, n, w, b, 1, dtypes[d].tol);
				x = ok(tensor_transpose(x, 0, 1));
				check_normalized(
					ok(tensor_layer_norm(x, TENSOR_INTS(n), w, b, EPS, false)),
					x, n, w, b, 1, dtypes[d].tol);
			}
}

static void group_norm_is_its_definition(void **state)
{
	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		for (int64_t groups = 1; groups <= 6; groups += groups)
			tensor_scope {
				tensor *x = input(dtypes[d].dtype, TENSOR_INTS(3, 4, 5, 7));
				tensor *w = input(dtypes[d].dtype, TENSOR_INTS(4)),
				       *b = tensor_neg(w);

				check_normalized(ok(tensor_group_norm(x, groups, w, b, EPS, false)),
						 x, 140 / groups, w, b, 35, dtypes[d].tol);
			}
}

/* batch_norm equals layer_norm of the channels as rows. */
static void batch_norm_is_layer_norm_of_each_channel(void **state)
{
	static const int64_t inner[] = { 1, 5, 40 };

	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		for (int i = 0; i < 3; i++)
			tensor_scope {
				tensor *x = input(dtypes[d].dtype, TENSOR_INTS(6, 70, inner[i])),
				       *rows, *got;
				tensor *one = ok(tensor_ones(TENSOR_INTS(1), F32));
				tensor *zero = ok(tensor_zeros(TENSOR_INTS(1), F32));

				rows = tensor_reshape(tensor_transpose(x, 0, 1),
						      TENSOR_INTS(70, 6 * inner[i]));
				got = tensor_batch_norm(x, tensor_none, tensor_none, tensor_none,
							tensor_none, true, 0.1, EPS, false);
				got = tensor_reshape(tensor_transpose(ok(got), 0, 1),
						     TENSOR_INTS(70, 6 * inner[i]));
				check_normalized(ok(got), ok(rows), 6 * inner[i], one, zero, 1,
						 dtypes[d].tol);
			}
}

static void running_statistics_change_in_training_only(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(4, 1)); /* mean 1.5, unbiased variance 5 / 3 */
		tensor *mean = ok(tensor_zeros(TENSOR_INTS(1), F32)),
		       *var = ok(tensor_ones(TENSOR_INTS(1), F32));

		ok(tensor_batch_norm(x, tensor_none, tensor_none, mean, var, true, 0.5, 0, false));
		assert_values(mean, 0, 0.75);
		assert_values(var, 1e-6, 0.5 + 5.0 / 6);
		assert_values(tensor_batch_norm(x, tensor_none, tensor_none, mean,
						ok(tensor_ones(TENSOR_INTS(1), F32)), false, 0.5, 0,
						false),
			      0, -0.75, 0.25, 1.25, 2.25);
		assert_values(mean, 0, 0.75);
		assert_fails(tensor_batch_norm(x, tensor_none, tensor_none, tensor_none,
					       tensor_none, false, 0.5, 0, false) == NULL,
			     EINVAL, "are needed, both");
	}
}

static void statistics_have_the_reduced_shape(void **state)
{
	tensor *out, *mean, *rstd;

	tensor_scope {
		tensor *x = input(TENSOR_F32, TENSOR_INTS(2, 3, 4));

		assert_done(tensor_native_layer_norm(x, TENSOR_INTS(3, 4), tensor_none, tensor_none,
						     EPS, &out, &mean, &rstd));
		assert_shape(mean, 2, 1, 1);
		assert_done(tensor_native_group_norm(x, tensor_none, tensor_none, 2, 3, 4, 3, EPS,
						     &out, &mean, &rstd));
		assert_shape(rstd, 2, 3);
		x = input(TENSOR_F16, TENSOR_INTS(2, 3));
		assert_done(tensor_native_layer_norm(x, TENSOR_INTS(3),
						     input(TENSOR_F32, TENSOR_INTS(3)), tensor_none,
						     EPS, &out, &mean, &rstd));
		assert_int_equal(tensor_dtype(out), TENSOR_F16);
		assert_int_equal(tensor_dtype(mean), TENSOR_F32);
		assert_shape(ok(tensor_layer_norm(input(TENSOR_F32, TENSOR_INTS(0, 3)),
						  TENSOR_INTS(3), tensor_none, tensor_none, EPS,
						  false)),
			     0, 3);
	}
}

static void only_requested_gradients_are_computed(void **state)
{
	tensor *out, *mean, *rstd, *dx, *dw, *db;

	tensor_scope {
		tensor *x = input(TENSOR_F32, TENSOR_INTS(200, 300)),
		       *w = input(TENSOR_F32, TENSOR_INTS(300));

		assert_done(tensor_native_layer_norm(x, TENSOR_INTS(300), w, w, EPS, &out, &mean,
						     &rstd));
		assert_done(tensor_native_layer_norm_backward(x, x, TENSOR_INTS(300), mean, rstd, w,
							      w, 6, &dx, &dw, &db));
		assert_null(dx);
		assert_shape(dw, 300);
		assert_shape(db, 300);
	}
}

/* Empty channels. The tensor of seven elements reuses freed memory: its values must not be read. */
static void empty_channels_read_nothing(void **state)
{
	tensor *out, *mean, *rstd, *dx, *dw, *db;

	tensor_scope {
		tensor *x, *stats = ok(tensor_ones(TENSOR_INTS(3), F32));

		tensor_scope
			ok(tensor_full(TENSOR_INTS(7), TENSOR_SCALAR(5.0), F32));
		x = ok(tensor_empty(TENSOR_INTS(2, 3, 0), F32));
		assert_done(tensor_native_batch_norm_legit_no_stats(
			x, tensor_none, tensor_none, true, 0.1, EPS, &out, &mean, &rstd));
		assert_values(mean, 0, NAN, NAN, NAN);
		assert_done(tensor_native_batch_norm_backward(x, x, stats, tensor_none, tensor_none,
							      stats, stats, true, EPS, 7, &dx, &dw,
							      &db));
		assert_shape(dx, 2, 3, 0);
		assert_values(dw, 0, 0, 0, 0);
		assert_values(db, 0, 0, 0, 0);
	}
}

static void threads_do_not_change_the_bits(void **state)
{
	int before = tensor_get_num_threads();

	tensor_scope {
		tensor *x = input(TENSOR_F32, TENSOR_INTS(700, 300)),
		       *w = input(TENSOR_F32, TENSOR_INTS(300));
		tensor *dx[2], *dw[2], *db[2], *out, *mean, *rstd;

		for (int i = 0; i < 2; i++) {
			tensor_set_num_threads(1 + i);
			assert_done(tensor_native_layer_norm(x, TENSOR_INTS(300), w, w, EPS, &out,
							     &mean, &rstd));
			assert_done(tensor_native_layer_norm_backward(out, x, TENSOR_INTS(300),
								      mean, rstd, w, w, 7, &dx[i],
								      &dw[i], &db[i]));
		}
		assert_memory_equal(tensor_data(dx[0]), tensor_data(dx[1]), 840000);
		assert_memory_equal(tensor_data(dw[0]), tensor_data(dw[1]), 1200);
		assert_memory_equal(tensor_data(db[0]), tensor_data(db[1]), 1200);
	}
	tensor_set_num_threads(before);
}

/* The bits of `got` are those of the f32 tensor `want`, rounded to the dtype of `got`. */
static void assert_rounded(tensor *got, tensor *want)
{
	want = ok(tensor_to(want, TENSOR_OPTIONS(.dtype = tensor_dtype(got))));
	assert_memory_equal(tensor_data(got), tensor_data(want), tensor_numel(got) * 2);
}

struct results {
	tensor *t[3];
};

static tensor *to_f32(tensor *t)
{
	return ok(tensor_to(t, F32));
}

/* Compares three results for f16 or bf16 with those for the same numbers in f32. */
static void assert_all_rounded(struct results got, struct results want)
{
	for (int i = 0; i < 3; i++)
		if (tensor_numel(want.t[i]))
			assert_rounded(got.t[i], want.t[i]);
}

static struct results batch(tensor *x, tensor *w, tensor *mean, tensor *var, bool training)
{
	struct results r;

	assert_done(tensor_native_batch_norm(x, w, w, mean, var, training, 0.1, EPS, &r.t[0],
					     &r.t[1], &r.t[2]));
	return r;
}

static struct results batch_back(tensor *x, tensor *w, tensor *mean, tensor *var, bool training)
{
	struct results r;

	assert_done(tensor_native_batch_norm_backward(ok(tensor_neg(x)), x, w, mean, var, mean, var,
						      training, EPS, 7, &r.t[0], &r.t[1], &r.t[2]));
	return r;
}

static struct results group(tensor *x, tensor *w)
{
	struct results r;

	assert_done(tensor_native_group_norm(x, w, w, 3, 4, tensor_numel(x) / 12, 2, EPS, &r.t[0],
					     &r.t[1], &r.t[2]));
	return r;
}

static struct results group_back(tensor *x, tensor *w, tensor *mean)
{
	struct results r;

	assert_done(tensor_native_group_norm_backward(ok(tensor_neg(x)), x, mean, mean, w, 3, 4,
						      tensor_numel(x) / 12, 2, 7, &r.t[0], &r.t[1],
						      &r.t[2]));
	return r;
}

/* The kernels convert f16 and bf16 themselves: whole vectors, and the rest of a row. */
static void f16_and_bf16_are_the_rounded_f32_result(void **state)
{
	static const int64_t inner[] = { 1, 5, 16, 40, 2100 };

	for (size_t k = 0; k < 2 * ARRAY_SIZE(inner); k++)
		tensor_scope {
			enum tensor_dtype dtype = k & 1 ? TENSOR_BF16 : TENSOR_F16;
			tensor *x = input(dtype, TENSOR_INTS(3, 4, inner[k / 2])), *x32 = to_f32(x);
			tensor *w = input(dtype, TENSOR_INTS(4)), *w32 = to_f32(w);
			tensor *v = input(dtype, TENSOR_INTS(4)), *v32 = to_f32(v);
			tensor *m = input(dtype, TENSOR_INTS(3, 2)), *m32 = to_f32(m);

			v = ok(tensor_abs(v));
			v32 = ok(tensor_abs(v32));
			for (int training = 0; training < 2; training++) {
				assert_all_rounded(batch_back(x, w, v, v, training),
						   batch_back(x32, w32, v32, v32, training));
				assert_all_rounded(batch(x, w, tensor_clone(v), tensor_clone(v),
							 training),
						   batch(x32, w32, tensor_clone(v32),
							 tensor_clone(v32), training));
			}
			assert_all_rounded(group(x, w), group(x32, w32));
			assert_all_rounded(group_back(x, w, m), group_back(x32, w32, m32));
		}
}

/* In evaluation the gradient is grad weight / sqrt(var), whatever input and mean are: infinity - infinity is not in it. */
static void evaluation_passes_special_gradients_on(void **state)
{
	static const double mean[] = { 0, INFINITY, NAN },
			    want[] = { INFINITY, -0.0, 2, -INFINITY };
	static const double grad[] = { INFINITY, -0.0, 1, -INFINITY };

	(void)state;
	tensor_scope {
		tensor *g = ok(tensor_from_data(grad, TENSOR_INTS(1, 1, 4), F64)), *dx, *none;
		tensor *x = ok(tensor_full(TENSOR_INTS(1, 3, 4), TENSOR_SCALAR(INFINITY), F64));
		tensor *m = ok(tensor_from_data(mean, TENSOR_INTS(3), F64));
		tensor *one = ok(tensor_ones(TENSOR_INTS(3), F64)), *w = ok(tensor_add(one, one));

		g = ok(tensor_contiguous(ok(tensor_expand(g, TENSOR_INTS(1, 3, 4)))));
		assert_done(tensor_native_batch_norm_backward(
			g, x, w, m, one, tensor_none, tensor_none, false, 0, 1, &dx, &none, &none));
		for (int i = 0; i < 12; i++)
			assert_memory_equal((const double *)tensor_data(dx) + i, &want[i % 4],
					    sizeof(double));
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = input(TENSOR_F32, TENSOR_INTS(2, 3, 4)),
		       *w = input(TENSOR_F32, TENSOR_INTS(3));

		assert_fails(tensor_layer_norm(x, TENSOR_INTS(3), w, w, EPS, false) == NULL, EINVAL,
			     "last sizes of input [2, 3, 4] must be normalized_shape [3]");
		assert_fails(tensor_layer_norm(x, TENSOR_INTS(4), w, tensor_none, EPS, false) ==
				     NULL,
			     EINVAL, "weight must have 4 elements");
		assert_fails(tensor_layer_norm(x, TENSOR_SCALAR_SHAPE, tensor_none, tensor_none,
					       EPS, false) == NULL,
			     EINVAL, "must have a dimension");
		assert_fails(tensor_layer_norm(tensor_to(x, I64), TENSOR_INTS(4), tensor_none,
					       tensor_none, EPS, false) == NULL,
			     EINVAL, "floating dtype is needed for input, got i64");
		assert_fails(tensor_group_norm(x, 2, w, tensor_none, EPS, false) == NULL, EINVAL,
			     "3 channels cannot be divided into 2 groups");
		assert_fails(tensor_group_norm(x, 0, w, tensor_none, EPS, false) == NULL, EINVAL,
			     "cannot be divided into 0 groups");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layer_norm_is_its_definition),
		cmocka_unit_test(group_norm_is_its_definition),
		cmocka_unit_test(batch_norm_is_layer_norm_of_each_channel),
		cmocka_unit_test(running_statistics_change_in_training_only),
		cmocka_unit_test(statistics_have_the_reduced_shape),
		cmocka_unit_test(only_requested_gradients_are_computed),
		cmocka_unit_test(empty_channels_read_nothing),
		cmocka_unit_test(threads_do_not_change_the_bits),
		cmocka_unit_test(f16_and_bf16_are_the_rounded_f32_result),
		cmocka_unit_test(evaluation_passes_special_gradients_on),
		cmocka_unit_test(invalid_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("norm", tests, NULL, NULL);
}
