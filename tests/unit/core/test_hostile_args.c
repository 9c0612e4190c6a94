// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Hostile arguments: each call returns soon, with a result or with an error that names the
 * argument, and never writes out of bounds.
 */
#include "check.h"

#include <limits.h>
#include <unistd.h>

#define NEGATIVE   ((tensor_ints){ NULL, -1 })
#define NULL_OF(n) ((tensor_ints){ NULL, n })

static tensor *x34(void)
{
	return ok(tensor_rand(TENSOR_INTS(3, 4), F32));
}

/* ---- invalid lists and tensors ---- */

static void list_of_negative_length_is_refused(void **state)
{
	tensor_scope {
		assert_fails(tensor_fft_r2c(x34(), NEGATIVE, 0, true), EINVAL, "dim");
		assert_fails(tensor_fft_r2c(x34(), NULL_OF(1), 0, true), EINVAL, "dim");
		assert_fails(tensor_tensordot(x34(), x34(), NEGATIVE, NEGATIVE), EINVAL,
			     "dims_self");
		assert_fails(tensor_permute(x34(), NEGATIVE), EINVAL, "dims");
		assert_fails(tensor_reshape(x34(), NULL_OF(2)), EINVAL, "shape");
	}
}

static void tensor_none_is_refused_by_name(void **state)
{
	tensor_scope {
		assert_fails(tensor_neg(tensor_none), EINVAL, "self");
		assert_fails(tensor_add(x34(), tensor_none), EINVAL, "other");
		assert_fails(tensor_cat(TENSOR_LIST(x34(), tensor_none), 0), EINVAL, "tensors");
		assert_fails(tensor_neg_out(tensor_none, x34()), EINVAL, "out");
	}
}

static void tensor_none_may_be_released_repeatedly(void **state)
{
	for (int i = 0; i < 3; i++)
		tensor_release(tensor_none);
	tensor_release(tensor_retain(tensor_none));
}

/* ---- sizes that overflow ---- */

static void invalid_device_is_refused(void **state)
{
	static const int8_t index[] = { 4, 63, INT8_MAX, -1, INT8_MIN };

	for (size_t i = 0; i < sizeof(index); i++)
		assert_fails(tensor_zeros(TENSOR_INTS(2),
					  TENSOR_OPTIONS(.device = { TENSOR_PRIVATE, index[i] })),
			     EINVAL, "device");
}

static void padding_that_overflows_is_refused(void **state)
{
	tensor_scope {
		tensor *x = x34(), *batch = ok(tensor_rand(TENSOR_INTS(1, 2, 3), F32));

		assert_fails(tensor_constant_pad_nd(x, TENSOR_INTS(INT64_MAX, INT64_MIN),
						    TENSOR_SCALAR(0)),
			     EINVAL, "pads");
		assert_fails(tensor_constant_pad_nd(x, TENSOR_INTS(INT64_MIN, INT64_MAX),
						    TENSOR_SCALAR(0)),
			     EINVAL, "pads");
		assert_fails(tensor_constant_pad_nd(x, TENSOR_INTS(INT64_MAX, INT64_MAX),
						    TENSOR_SCALAR(0)),
			     EINVAL, "pads");
		assert_fails(tensor_replication_pad1d(batch, TENSOR_INTS(INT64_MAX, 5)), EOVERFLOW,
			     "padding");
		/* a last dimension of stride 0 */
		ok(tensor_copy_(batch,
				tensor_reshape(iota(0, TENSOR_INTS(6)), TENSOR_INTS(1, 2, 3))));
		assert_values(tensor_replication_pad1d(batch, TENSOR_INTS(INT64_MIN, INT64_MAX)), 0,
			      2, 2, 5, 5);
		assert_fails(tensor_pad(batch, TENSOR_INTS(INT64_MIN, 1), "circular",
					TENSOR_NO_FLOAT),
			     EINVAL, "circular");
	}
}

/*
 * Negative padding at the end removes more than the tensor has, including padding from the front.
 */
static void negative_padding_may_exceed_the_size(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_arange(TENSOR_SCALAR(6), F32));

		x = ok(tensor_view(x, TENSOR_INTS(1, 2, 3)));
		assert_values(tensor_replication_pad1d(x, TENSOR_INTS(10, -9)), 0, 0, 0, 0, 0, 3, 3,
			      3, 3);
		assert_values(tensor_replication_pad1d(x, TENSOR_INTS(-9, 10)), 0, 2, 2, 2, 2, 5, 5,
			      5, 5);
		assert_values(tensor_reflection_pad1d(x, TENSOR_INTS(2, -4)), 0, 2, 5);
		x = ok(tensor_view(x, TENSOR_INTS(1, 1, 2, 3)));
		assert_values(tensor_replication_pad2d(x, TENSOR_INTS(4, -5, 3, -3)), 0, 0, 0, 0,
			      0);
	}
}

static void group_norm_of_impossible_sizes(void **state)
{
	tensor *a, *b, *c;

	tensor_scope {
		tensor *x = ok(tensor_rand(TENSOR_INTS(2, 4, 3), F32));
		tensor *none = ok(tensor_empty(TENSOR_INTS(2, 4, 0), F32));
		tensor *stat = ok(tensor_zeros(TENSOR_INTS(2, 2), F32));

		assert_fails(tensor_native_group_norm(x, tensor_none, tensor_none, 2, INT64_MIN, 3,
						      -1, 1e-5, &a, &b, &c),
			     EINVAL, "group");
		/* 2^32 * 2^32 * 3 is 0 in 64 bits */
		assert_fails(tensor_native_group_norm(none, tensor_none, tensor_none, 1ll << 32,
						      1ll << 32, 3, 1, 1e-5, &a, &b, &c),
			     EINVAL, "elements");
		assert_done(tensor_native_group_norm_backward(none, none, stat, stat, tensor_none,
							      2, 4, 0, 2, 7, &a, &b, &c));
		assert_values(c, 0, 0, 0, 0, 0);
	}
}

/* ---- extreme values ---- */

static void transform_of_no_elements_is_refused(void **state)
{
	tensor_scope {
		assert_fails(tensor_fft_r2c(ok(tensor_empty(TENSOR_INTS(2, 0), F32)),
					    TENSOR_INTS(1), 0, true),
			     EINVAL, "dimension 1");
	}
}

static void tiny_scale_reads_within_the_input(void **state)
{
	static const double scales[] = { 1e-300, 1e-38, 5e-324, 1e300, INFINITY };

	for (size_t i = 0; i < ARRAY_SIZE(scales); i++)
		tensor_scope {
			tensor *x = ok(tensor_ones(TENSOR_INTS(1, 1, 5), F32));
			tensor *y = ok(tensor_ones(TENSOR_INTS(1, 1, 5, 5), F32));

			ok(tensor_upsample_nearest1d(x, TENSOR_INTS(7), scales[i]));
			ok(tensor_upsample_linear1d(x, TENSOR_INTS(7), false, scales[i]));
			ok(tensor_upsample_bicubic2d(y, TENSOR_INTS(7, 7), false, scales[i],
						     scales[i]));
		}
}

static void polygamma_of_large_negative_values_terminates(void **state)
{
	tensor_scope {
		const double at[] = { -1e8 - 0.5, -1000.25, -64.5, -63.5, -2e8 };
		tensor *x = ok(tensor_from_data(at, TENSOR_INTS(5), F64));

		/* reflection: psi1(x) = pi^2 / sin^2(pi x) - psi1(1 - x), with psi1(y) ~ 1 / y */
		assert_values(tensor_polygamma(1, x), 1e-5, M_PI * M_PI - 1e-8,
			      2 * M_PI * M_PI - 1 / 1000.75, M_PI * M_PI - 1 / 65.,
			      M_PI * M_PI - 1 / 64., INFINITY);
	}
}

/* -INT64_MIN overflows. */
static void diagonals_out_of_range_are_empty(void **state)
{
	static const int64_t offsets[] = { INT64_MIN, INT64_MIN + 1, INT64_MAX, 3, -2 };

	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		tensor_scope {
			tensor *t = ok(tensor_zeros(TENSOR_INTS(2, 3), F32));
			tensor *d = ok(tensor_diagonal(t, offsets[i], 0, 1)), *s;

			assert_int_equal(tensor_numel(d), 0);
			assert_int_equal(tensor_size(d, 0), 0);
			assert_ptr_equal(tensor_data(d), tensor_data(t));
			s = ok(tensor_diagonal_scatter(t, ok(tensor_zeros(TENSOR_INTS(0), F32)),
						       offsets[i], 0, 1));
			assert_int_equal(tensor_numel(s), 6);
		}
	}
}

static void tril_of_many_rows_terminates(void **state)
{
	int64_t many = 1ll << 40;

	tensor_scope {
		assert_values(tensor_triu_indices(many, 1, 0, I64), 0, 0, 0);
		assert_values(tensor_triu_indices(many, 2, 0, I64), 0, 0, 0, 1, 0, 1, 1);
		assert_int_equal(tensor_numel(ok(tensor_tril_indices(many, 5, -many, I64))), 0);
		assert_int_equal(tensor_numel(ok(tensor_triu_indices(many, 0, -many, I64))), 0);
		assert_fails(tensor_tril_indices(INT64_MAX, INT64_MAX, 0, I64), EOVERFLOW,
			     "overflow");
		assert_fails(tensor_triu_indices(INT64_MAX, INT64_MAX, INT64_MIN, I64), EOVERFLOW,
			     "overflow");
		assert_values(tensor_tril_indices(3, 2, 0, I64), 0, 0, 1, 1, 2, 2, 0, 0, 1, 0, 1);
		assert_values(tensor_tril_indices(2, 3, 1, I64), 0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 2);
		assert_values(tensor_triu_indices(3, 3, 1, I64), 0, 0, 0, 1, 1, 2, 2);
	}
}

/* ---- in place on sparse tensors ---- */

static void unary_operators_in_place_on_sparse_tensors(void **state)
{
	static tensor *(*const ops[])(tensor *) = {
		tensor_abs_,   tensor_neg_,   tensor_sin_,   tensor_sqrt_,
		tensor_tanh_,  tensor_floor_, tensor_relu_,  tensor_sign_,
		tensor_expm1_, tensor_log1p_, tensor_trunc_, tensor_ceil_,
	};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		tensor_scope {
			tensor *x = ok(tensor_to_sparse(ok(tensor_eye(3, F32))));
			tensor *before = ok(tensor_clone(ok(tensor_values(x))));

			assert_ptr_equal(ok(ops[i](x)), x);
			assert_int_equal(tensor_numel(ok(tensor_values(x))), 3);
			assert_values(before, 0, 1, 1, 1);
			ok(tensor_to_dense(x));
		}
}

/* ---- out= and parts of sparse tensors ---- */

static void out_of_another_layout_is_refused_or_filled(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_eye(3, F32)),
		       *dense = ok(tensor_zeros(TENSOR_INTS(3, 3), F32));
		tensor *coo = ok(tensor_to_sparse(x)), *csr = ok(tensor_to_sparse_csr(x)),
		       *s[] = { coo, csr };

		for (int i = 0; i < 2; i++) {
			assert_fails(tensor_neg_out(s[i], x), EOPNOTSUPP, "out must be a strided");
			assert_fails(tensor_relu_out(s[i], x), EOPNOTSUPP, "out must be a strided");
			assert_fails(tensor_sin_out(s[i], coo), EOPNOTSUPP,
				     "out must be a strided");
			assert_fails(tensor_mul_scalar_out(s[i], x, TENSOR_SCALAR(2)), EOPNOTSUPP,
				     "strided");
			assert_fails(tensor_sum_out(s[i], x), EOPNOTSUPP, "out must be a strided");
			assert_fails(tensor_mm_out(s[i], x, x), EOPNOTSUPP,
				     "out must be a strided");
			assert_values(tensor_sum_out(dense, s[i]), 0, 3);
		}
		assert_values(tensor_to_dense(coo), 0, 1, 0, 0, 0, 1, 0, 0, 0, 1);
	}
}

/* The indices cannot be changed after they were checked. */
static void indices_of_a_sparse_tensor_do_not_change(void **state)
{
	tensor_scope {
		const int64_t places[] = { 0, 2 }, rows[] = { 0, 1, 1, 2 };
		tensor *i = ok(tensor_from_data(places, TENSOR_INTS(1, 2), I64)), *part[3];
		tensor *t = ok(tensor_sparse_coo_tensor(i, ok(tensor_ones(TENSOR_INTS(2), F32)),
							TENSOR_INTS(3)));
		tensor *csr = ok(tensor_sparse_csr_tensor(
			ok(tensor_from_data(rows, TENSOR_INTS(4), I64)),
			ok(tensor_from_data(places, TENSOR_INTS(2), I64)),
			ok(tensor_ones(TENSOR_INTS(2), F32)), TENSOR_INTS(3, 3)));

		ok(tensor_fill_(i, TENSOR_SCALAR(1 << 30)));
		assert_values(tensor_to_dense(t), 0, 1, 0, 1);
		part[0] = ok(tensor__indices(t));
		part[1] = ok(tensor_crow_indices(csr));
		part[2] = ok(tensor_col_indices(csr));
		for (int k = 0; k < 3; k++) {
			assert_fails(tensor_fill_(part[k], TENSOR_SCALAR(1 << 30)), EACCES,
				     "read-only");
			assert_fails(tensor_share_memory(part[k]) < 0, ENOTSUP, "clone it");
		}
		assert_values(tensor_to_dense(csr), 0, 1, 0, 0, 0, 0, 0, 0, 0, 1);
	}
}

static void tensor_none_can_be_queried(void **state)
{
	assert_false(tensor_is_writable(tensor_none));
	assert_int_equal(tensor_version(tensor_none), 0);
	assert_int_equal(tensor_set_label(tensor_none, "label"), -EINVAL);
}

/* Read-only memory: a write to it ends the process with a signal. */
static tensor *sealed(int64_t n)
{
	tensor *t = ok(tensor_ones(TENSOR_INTS(n), SHAREABLE(TENSOR_F32))), *r;
	int fd = tensor_buffer_fd(t, TENSOR_BUFFER_READ);

	assert_true(fd >= 0);
	r = ok(tensor_from_buffer_fd(fd, TENSOR_F32, TENSOR_INTS(n), 0));
	close(fd);
	return r;
}

static void running_statistics_that_are_read_only_are_refused(void **state)
{
	tensor_scope {
		tensor *x = x34(), *mean = sealed(4), *var = sealed(4), *out[3];

		assert_fails(tensor_native_batch_norm(x, tensor_none, tensor_none, mean, var, true,
						      0.1, 1e-5, &out[0], &out[1], &out[2]) < 0,
			     EACCES, "read-only");
		assert_fails(tensor_batch_norm(x, tensor_none, tensor_none, mean, var, true, 0.1,
					       1e-5, false),
			     EACCES, "read-only");
		assert_fails(tensor_instance_norm(ok(tensor_unsqueeze(x, 2)), tensor_none,
						  tensor_none, mean, var, true, 0.1, 1e-5, false),
			     EACCES, "read-only");
		ok(tensor_batch_norm(x, tensor_none, tensor_none, mean, var, false, 0.1, 1e-5,
				     false));
	}
}

/* ---- leaks ---- */

static void failing_pinv_leaks_nothing(void **state)
{
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	tensor_scope {
		tensor *a = x34(),
		       *tolerance = ok(tensor_full(TENSOR_INTS(), TENSOR_SCALAR(1e-3), F32));

		if (!tensor_linalg_pinv(a, 1e-3, false) && tensor_last_error()->code == ENOSYS)
			skip(); /* LAPACK is not installed */
		ok(tensor_linalg_pinv_atol_opt(a, 1e-3, 1e-3, false));
		ok(tensor_linalg_pinv_rcond_tensor(a, tolerance, false));
		ok(tensor_pinverse(a, 1e-3));
	}
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_of_negative_length_is_refused),
		cmocka_unit_test(invalid_device_is_refused),
		cmocka_unit_test(tensor_none_is_refused_by_name),
		cmocka_unit_test(tensor_none_may_be_released_repeatedly),
		cmocka_unit_test(padding_that_overflows_is_refused),
		cmocka_unit_test(negative_padding_may_exceed_the_size),
		cmocka_unit_test(group_norm_of_impossible_sizes),
		cmocka_unit_test(transform_of_no_elements_is_refused),
		cmocka_unit_test(tiny_scale_reads_within_the_input),
		cmocka_unit_test(polygamma_of_large_negative_values_terminates),
		cmocka_unit_test(diagonals_out_of_range_are_empty),
		cmocka_unit_test(tril_of_many_rows_terminates),
		cmocka_unit_test(unary_operators_in_place_on_sparse_tensors),
		cmocka_unit_test(out_of_another_layout_is_refused_or_filled),
		cmocka_unit_test(indices_of_a_sparse_tensor_do_not_change),
		cmocka_unit_test(tensor_none_can_be_queried),
		cmocka_unit_test(running_statistics_that_are_read_only_are_refused),
		cmocka_unit_test(failing_pinv_leaks_nothing),
	};

	alarm(300); /* a call that hangs */
	return cmocka_run_group_tests_name("hostile_args", tests, NULL, NULL);
}
