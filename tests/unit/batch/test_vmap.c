// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * tensor_vmap(): dimensions, chunks, nesting, in-place changes, random numbers and errors. tests/batch compares every
 * operator with a loop.
 */
#include "autograd.h"

#include <tensor/dlpack.h>

#define NO_DIM TENSOR_NONE

/* ---- functions of a sample ---- */

static int add_row(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout, (void)ctx;
	out[0] = tensor_sum(tensor_mul(in[0], in[1]));
	return 0;
}

static int identity(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout, (void)ctx;
	out[0] = in[0];
	return 0;
}

static int fails(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)in, (void)n, (void)out, (void)nout, (void)ctx;
	return -1;
}

static int sets_nothing(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)in, (void)n, (void)out, (void)nout, (void)ctx;
	return 0;
}

/* Calls *ctx on the inputs. */
static int call_one(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout;
	out[0] = (*(tensor * (**)(tensor *)) ctx)(in[0]);
	return out[0] ? 0 : -1;
}

/* fn on every sample of x, or NULL. */
static tensor *map(tensor *(*fn)(tensor *), tensor *x)
{
	tensor *y;

	return tensor_vmap(call_one, &fn, TENSOR_LIST(x), NULL, &y, 1, NULL, NULL) < 0 ? NULL : y;
}

static tensor *map_random(tensor *(*fn)(tensor *), tensor *x, enum tensor_vmap_randomness r)
{
	const struct tensor_vmap_options o = { .randomness = r };
	tensor *y;

	return tensor_vmap(call_one, &fn, TENSOR_LIST(x), NULL, &y, 1, NULL, &o) < 0 ? NULL : y;
}

/* ---- dimensions ---- */

static void dimensions_of_the_batch_are_chosen(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3)), *y = iota(1, TENSOR_INTS(3)), *out;
		const int64_t rows[] = { 0, NO_DIM }, columns[] = { -1, 0 }, last[] = { -1 };

		assert_done(
			tensor_vmap(add_row, NULL, TENSOR_LIST(x, y), rows, &out, 1, NULL, NULL));
		assert_values(out, 0, 8, 26);
		assert_done(tensor_vmap(add_row, NULL, TENSOR_LIST(x, y), columns, &out, 1, NULL,
					NULL));
		assert_values(out, 0, 3, 10, 21);
		assert_done(tensor_vmap(identity, NULL, TENSOR_LIST(x), NULL, &out, 1, last, NULL));
		assert_shape(out, 3, 2);
		assert_values(out, 0, 0, 3, 1, 4, 2, 5);
	}
}

static void output_that_is_the_same_for_all_samples_is_repeated(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(3)), *y = iota(5, TENSOR_INTS(2)), *out;
		const int64_t dims[] = { NO_DIM, 0 };

		assert_done(
			tensor_vmap(identity, NULL, TENSOR_LIST(y, x), dims, &out, 1, NULL, NULL));
		assert_shape(out, 3, 2);
		assert_values(out, 0, 5, 6, 5, 6, 5, 6);
	}
}

static void chunks_give_the_same_result(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(7, 3)), *y = iota(1, TENSOR_INTS(3)), *all, *part;
		const int64_t rows[] = { 0, NO_DIM };

		assert_done(
			tensor_vmap(add_row, NULL, TENSOR_LIST(x, y), rows, &all, 1, NULL, NULL));
		for (int64_t chunk = 1; chunk < 9; chunk++) {
			const struct tensor_vmap_options o = { .chunk_size = chunk };

			assert_done(tensor_vmap(add_row, NULL, TENSOR_LIST(x, y), rows, &part, 1,
						NULL, &o));
			assert_same(all, part);
		}
	}
}

static tensor *describe(tensor *t)
{
	char text[300];

	assert_true(tensor_is_batched(t));
	assert_shape(t, 3);
	assert_int_equal(tensor_dtype(t), TENSOR_F32);
	assert_true(tensor_format(t, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "samples=2, sample_size=[3]"));
	return t;
}

static void sample_has_the_properties_of_one_tensor(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3)), *y = ok(map(describe, x));

		assert_false(tensor_is_batched(y));
		assert_false(tensor_is_batched(NULL));
		assert_same(x, y);
	}
}

/* ---- nesting ---- */

static tensor *outer_x;

static tensor *product_with_x(tensor *y)
{
	return tensor_sub(tensor_mul(outer_x, y), tensor_sum(y));
}

static tensor *with_all_rows(tensor *x)
{
	outer_x = x;
	return map(product_with_x, ok(tensor_view(iota(1, TENSOR_INTS(4)), TENSOR_INTS(2, 2))));
}

static void vmap_nests(void **state)
{
	tensor_scope {
		tensor *y = ok(map(with_all_rows, iota(1, TENSOR_INTS(3, 2))));

		assert_shape(y, 3, 2, 2);
		/* x[i] * y[j] - sum(y[j]) */
		assert_values(y, 0, -2, 1, -4, 1, 0, 5, 2, 9, 2, 9, 8, 17);
	}
}

/* ---- in place ---- */

static tensor *double_the_first(tensor *t)
{
	tensor *copy = tensor_clone(t);

	return tensor_mul_scalar_(tensor_select(copy, 0, 0), S(2)) ? copy : NULL;
}

static void in_place_change_of_a_view_changes_the_sample(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2, 2));

		assert_values(ok(map(double_the_first, x)), 0, 2, 2, 6, 4);
		assert_values(x, 0, 1, 2, 3, 4);
	}
}

static tensor *add_in_place(tensor *t)
{
	return tensor_add_(t, tensor_ones(TENSOR_INTS(2), F32));
}

static void in_place_change_reaches_the_input(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2, 2));
		uint32_t version = tensor_version(x);

		ok(map(add_in_place, x));
		assert_values(x, 0, 2, 3, 4, 5);
		assert_true(tensor_version(x) > version);
	}
}

static tensor *plain;

static tensor *change_the_plain_one(tensor *t)
{
	return tensor_add_(plain, t);
}

static tensor *write_to_out(tensor *t)
{
	return tensor_add_out(plain, t, t);
}

static tensor *change_geometry(tensor *t)
{
	return tensor_unsqueeze_(t, 0);
}

static void change_of_a_tensor_without_the_batch_is_refused(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2, 2));

		plain = iota(1, TENSOR_INTS(2));
		assert_fails(map(change_the_plain_one, x), EINVAL, "same for all samples");
		assert_fails(map(write_to_out, x), EOPNOTSUPP, "out form has no batching rule");
		assert_fails(map(change_geometry, x), EOPNOTSUPP, "unsqueeze_: self must be");
		assert_values(plain, 0, 1, 2);
	}
}

/* ---- values ---- */

static tensor *read_item(tensor *t)
{
	double v;

	return tensor_item(t, &v) < 0 ? NULL : t;
}

static tensor *read_boolean(tensor *t)
{
	bool v;

	return tensor_is_nonzero(t, &v) < 0 ? NULL : t;
}

static tensor *read_data(tensor *t)
{
	return tensor_data(t) ? t : NULL;
}

static tensor *read_bytes(tensor *t)
{
	float f;

	return tensor_copy_to(t, &f, sizeof(f)) < 0 ? NULL : t;
}

static tensor *export_dlpack(tensor *t)
{
	return tensor_to_dlpack(t, 0) ? t : NULL;
}

static tensor *positions(tensor *t)
{
	return tensor_nonzero(tensor_unsqueeze(t, 0));
}

static void values_of_a_sample_cannot_be_read(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2));

		assert_fails(map(read_item, x), EINVAL, "a value for each sample");
		assert_fails(map(read_boolean, x), EINVAL, "a value for each sample");
		assert_fails(map(read_data, x), EOPNOTSUPP, "no address inside tensor_vmap()");
		assert_null(map(read_bytes, x));
		assert_null(map(export_dlpack, x));
		assert_fails(map(positions, x), EINVAL, "results of one shape");
	}
}

/* ---- escape ---- */

static tensor *escaped;

static tensor *keep_it(tensor *t)
{
	escaped = tensor_keep(tensor_alias(t));
	return t;
}

static void tensor_that_is_kept_is_refused_afterwards(void **state)
{
	tensor_scope {
		char text[200];

		ok(map(keep_it, iota(0, TENSOR_INTS(2))));
		assert_fails(tensor_add(escaped, escaped), EINVAL,
			     "kept after its tensor_vmap() ended");
		assert_fails(map(keep_it, escaped), EINVAL, "input 0");
		assert_true(tensor_format(escaped, text, sizeof(text)) > 0);
		tensor_release(escaped);
	}
}

/* ---- random numbers ---- */

static tensor *noise(tensor *t)
{
	return tensor_add(t, tensor_rand(TENSOR_INTS(100), F32));
}

static tensor *noise_like(tensor *t)
{
	return tensor_rand_like(t, (tensor_options){ 0 });
}

static tensor *drop(tensor *t)
{
	return tensor_dropout(t, 0.5, true);
}

static bool samples_equal(tensor *t)
{
	bool equal;

	assert_done(tensor_allclose(tensor_select(ok(t), 0, 0), tensor_select(t, 0, 1), 0, 0, false,
				    &equal));
	return equal;
}

static void random_numbers_are_chosen(void **state)
{
	tensor *(*const fns[])(tensor *) = { noise, noise_like, drop };

	tensor_scope {
		for (size_t i = 0; i < ARRAY_SIZE(fns); i++) {
			tensor *x = ok(tensor_ones(TENSOR_INTS(2, 100), F32));

			assert_fails(map(fns[i], x), EINVAL, "TENSOR_VMAP_RANDOM_SAME");
			assert_true(samples_equal(map_random(fns[i], x, TENSOR_VMAP_RANDOM_SAME)));
			assert_false(
				samples_equal(map_random(fns[i], x, TENSOR_VMAP_RANDOM_DIFFERENT)));
		}
	}
}

/* ---- the loop ---- */

static tensor *bucket(tensor *t)
{
	return tensor_bucketize(t, iota(0, TENSOR_INTS(4)));
}

static void operator_without_a_rule_is_counted(void **state)
{
	tensor_scope {
		int64_t one = tensor_vmap_loops("bucketize.Tensor"), all = tensor_vmap_loops(NULL);

		assert_values(ok(map(bucket, iota(1, TENSOR_INTS(3)))), 0, 1, 2, 3);
		assert_int_equal(tensor_vmap_loops("bucketize.Tensor"), one + 1);
		assert_int_equal(tensor_vmap_loops(NULL), all + 1);
		assert_true(tensor_vmap_loops("no such operator") == -ENOENT);
	}
}

/* ---- promotion ---- */

static tensor *add_double(tensor *t)
{
	tensor *d = tensor_to(tensor_select(t, 0, 0), F64); /* no dimensions: ranks below */

	return tensor_add(t, d);
}

static void sample_without_dimensions_ranks_below_others(void **state)
{
	tensor_scope {
		tensor *y = ok(map(add_double, iota(1, TENSOR_INTS(2, 2))));

		assert_int_equal(tensor_dtype(y), TENSOR_F32);
		assert_values(y, 0, 2, 3, 6, 7);
	}
}

/* ---- errors ---- */

static void wrong_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3)), *y = iota(0, TENSOR_INTS(3)), *out = x;
		tensor *e = ok(tensor_zeros(TENSOR_INTS(0, 2), F32)),
		       *zero = tensor_select(y, 0, 0);
		const struct tensor_vmap_options wrong = { .chunk_size = -1 };
		const int64_t none[] = { NO_DIM }, far[] = { 2 };

#define V(fn, list, dims, n, o) tensor_vmap(fn, NULL, list, dims, &out, n, NULL, o)
		assert_fails(!V(NULL, TENSOR_LIST(x), NULL, 1, NULL), EINVAL, "a function");
		assert_fails(!V(identity, TENSOR_LIST(x), NULL, 0, NULL), EINVAL, "outputs");
		assert_fails(!V(identity, ((tensor_list){ NULL, 1 }), NULL, 1, NULL), EINVAL,
			     "inputs");
		assert_fails(!V(identity, TENSOR_LIST(NULL), NULL, 1, NULL), EINVAL, "NULL");
		assert_fails(!V(identity, TENSOR_LIST(x), NULL, 1, &wrong), EINVAL,
			     "chunk size -1");
		assert_fails(!V(identity, TENSOR_LIST(x), none, 1, NULL), EINVAL,
			     "no input has a batch");
		assert_fails(!V(identity, TENSOR_LIST(tensor_none), NULL, 1, NULL), EINVAL,
			     "no input has a batch");
		assert_fails(!V(identity, TENSOR_LIST(x), far, 1, NULL), EINVAL, "no dimension 2");
		assert_fails(!V(identity, TENSOR_LIST(zero), NULL, 1, NULL), EINVAL,
			     "no dimension 0");
		assert_fails(!V(identity, TENSOR_LIST(x, y), NULL, 1, NULL), EINVAL,
			     "others have 2");
		assert_fails(!V(identity, TENSOR_LIST(e), NULL, 1, NULL), EINVAL, "no samples");
		assert_fails(!V(fails, TENSOR_LIST(x), NULL, 1, NULL), EPERM, "failed");
		assert_fails(!V(sets_nothing, TENSOR_LIST(x), NULL, 1, NULL), EINVAL, "output 0");
		assert_fails(!V(identity, TENSOR_LIST(ok(tensor_to_sparse(x))), NULL, 1, NULL),
			     EOPNOTSUPP, "must be strided");
#undef V
		assert_null(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dimensions_of_the_batch_are_chosen),
		cmocka_unit_test(output_that_is_the_same_for_all_samples_is_repeated),
		cmocka_unit_test(chunks_give_the_same_result),
		cmocka_unit_test(sample_has_the_properties_of_one_tensor),
		cmocka_unit_test(vmap_nests),
		cmocka_unit_test(in_place_change_of_a_view_changes_the_sample),
		cmocka_unit_test(in_place_change_reaches_the_input),
		cmocka_unit_test(change_of_a_tensor_without_the_batch_is_refused),
		cmocka_unit_test(values_of_a_sample_cannot_be_read),
		cmocka_unit_test(tensor_that_is_kept_is_refused_afterwards),
		cmocka_unit_test(random_numbers_are_chosen),
		cmocka_unit_test(operator_without_a_rule_is_counted),
		cmocka_unit_test(sample_without_dimensions_ranks_below_others),
		cmocka_unit_test(wrong_arguments_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
