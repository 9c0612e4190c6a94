// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: operators and formulas that read elements on the host, and those that allocate on the device of an argument. */
#include "cuda_results.h"

static void positions_and_repeats(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(5, 3), TENSOR_F32), *g = on_cuda(a);
		tensor *at = integers(TENSOR_SHAPE(2), (int64_t[]){ 1, 4 });
		tensor *n = integers(TENSOR_SHAPE(5), (int64_t[]){ 2, 0, 1, 3, 1 });
		tensor *parts[3], *gparts[3];

		assert_int_equal(tensor_tensor_split_tensor(a, at, 0, parts, 3), 3);
		assert_int_equal(tensor_tensor_split_tensor(g, on_cuda(at), 0, gparts, 3), 3);
		for (int i = 0; i < 3; i++)
			assert_near(gparts[i], parts[i], 0);
		/* Positions with a stride, and a number of sections. */
		assert_int_equal(tensor_tensor_split_tensor(g, tensor_slice(on_cuda(n), 0, 0, 4, 3),
							    0, gparts, 3),
				 3);
		assert_int_equal(tensor_size(gparts[0], 0), 2);
		assert_int_equal(tensor_size(gparts[1], 0), 1);
		assert_int_equal(tensor_tensor_split_tensor(g, on_cuda(tensor_select(at, 0, 1)), 0,
							    gparts, 3),
				 -ENOSPC);
		assert_int_equal(tensor_tensor_split_tensor(g, on_cuda(tensor_select(n, 0, 3)), 0,
							    gparts, 3),
				 3);
		assert_int_equal(tensor_size(gparts[2], 0), 1);
		assert_near(tensor_repeat_interleave_self_tensor(g, on_cuda(n), 0),
			    tensor_repeat_interleave_self_tensor(a, n, 0), 0);
		assert_near(tensor_repeat_interleave_index(
				    on_cuda(tensor_to(n, TENSOR_OPTIONS(.dtype = TENSOR_I32)))),
			    tensor_repeat_interleave_index(
				    tensor_to(n, TENSOR_OPTIONS(.dtype = TENSOR_I32))),
			    0);
		assert_near(tensor_one_hot(on_cuda(n), -1), tensor_one_hot(n, -1), 0);
		assert_fails(tensor_one_hot(on_cuda(n), 3), EINVAL, "num_classes");
	}
}

static void resize_keeps_the_elements_that_fit(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(40, 10), TENSOR_BF16), *g = on_cuda(a);
		const int64_t grown[] = { 2, 40, 10 };

		ok(tensor_resize_(g, TENSOR_INTS(3, 5)));
		assert_near(g,
			    tensor_view(tensor_narrow(tensor_flatten(a, 0, -1), 0, 0, 15),
					TENSOR_INTS(3, 5)),
			    0);
		ok(tensor_resize_(g, TENSOR_INTS(2, 40, 10)));
		assert_memory_equal(tensor_sizes(g), grown, sizeof(grown));
		assert_near(tensor_select(g, 0, 0), a, 0);
		g = on_cuda(pseudo_random(TENSOR_SHAPE(0), TENSOR_F32));
		ok(tensor_resize_(g, TENSOR_INTS(4)));
		assert_int_equal(tensor_numel(g), 4);
	}
}

static void factors_are_unpacked(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(2, 4, 3), TENSOR_F64), *p, *l, *u, *gp, *gl,
		       *gu;

		assert_done(tensor_linalg_lu(a, &p, &l, &u));
		assert_done(tensor_linalg_lu(on_cuda(a), &gp, &gl, &gu));
		assert_near(gp, p, 0);
		assert_near(gl, l, 0);
		assert_near(gu, u, 0);
	}
}

/* A matrix beside an identity matrix, which has its device. */
static void the_rest_of_a_basis(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(5, 3), TENSOR_F64), *g = on_cuda(a), *q, *r;
		tensor *tau = pseudo_random(TENSOR_SHAPE(3), TENSOR_F64), *gtau = on_cuda(tau);

		assert_done(tensor_linalg_qr(g, "complete", &q, &r));
		assert_near(tensor_matmul(q, r), a, 1e-12);
		assert_done(tensor_set_requires_grad(a, true));
		assert_done(tensor_set_requires_grad(g, true));
		assert_done(tensor_backward(tensor_sum(tensor_linalg_householder_product(a, tau))));
		assert_done(
			tensor_backward(tensor_sum(tensor_linalg_householder_product(g, gtau))));
		assert_near(tensor_grad(g), tensor_grad(a), 1e-12);
	}
}

static void assert_same_gradients(tensor *a, tensor *(*fn)(tensor *))
{
	tensor *g = on_cuda(a), *weights = pseudo_random(tensor_shape(ok(fn(a))), tensor_dtype(a));

	assert_done(tensor_set_requires_grad(a, true));
	assert_done(tensor_set_requires_grad(g, true));
	assert_done(tensor_backward(tensor_sum(tensor_mul(fn(a), weights))));
	assert_done(tensor_backward(tensor_sum(tensor_mul(fn(g), on_cuda(weights)))));
	assert_near(tensor_grad(g), tensor_grad(a), tolerance(tensor_dtype(a)));
}

static tensor *prod(tensor *t)
{
	return tensor_prod(t);
}

static tensor *prod_of_rows(tensor *t)
{
	return tensor_prod_dim(t, 1, false);
}

static tensor *cumprod(tensor *t)
{
	return tensor_cumprod(t, 0);
}

static tensor *var_of_rows(tensor *t)
{
	return tensor_var_dim(t, TENSOR_INTS(1), true, false);
}

static tensor *std_of_all(tensor *t)
{
	return tensor_std(t, true);
}

/* The formula of a product depends on whether there is a zero. */
static void gradients_of_products(void **state)
{
	tensor *(*const fns[])(tensor *) = { prod, prod_of_rows, cumprod };

	NEED_DEVICE();
	tensor_scope {
		for (int i = 0; i < 6; i++) {
			tensor *a = pseudo_random(TENSOR_SHAPE(3, 4), TENSOR_F64);

			if (i >= 3)
				ok(tensor_fill_(tensor_select(tensor_select(a, 0, 1), 0, 2),
						TENSOR_SCALAR(0)));
			assert_same_gradients(a, fns[i % 3]);
		}
	}
}

/* Sums beyond the range of f16, and quotients that are rounded once. */
static void means_of_halves(void **state)
{
	const enum tensor_dtype dtypes[] = { TENSOR_F16, TENSOR_BF16 };

	NEED_DEVICE();
	tensor_scope {
		for (int i = 0; i < 2; i++) {
			tensor *a = pseudo_random(TENSOR_SHAPE(3, 70), dtypes[i]);
			tensor *out = on_cuda(pseudo_random(TENSOR_SHAPE(0), dtypes[i]));
			tensor *large = tensor_full(TENSOR_SHAPE(100), TENSOR_SCALAR(3000),
						    TENSOR_OPTIONS(.dtype = dtypes[i]));

			assert_near(tensor_mean(on_cuda(a)), tensor_mean(a), 1e-3);
			assert_near(tensor_mean_dim(on_cuda(a), TENSOR_INTS(1), true),
				    tensor_mean_dim(a, TENSOR_INTS(1), true), 1e-2);
			assert_near(tensor_mean(on_cuda(large)), tensor_mean(large), 0);
			ok(tensor_mean_dim_out(out, on_cuda(a), TENSOR_INTS(0), false));
			assert_near(out, tensor_mean_dim(a, TENSOR_INTS(0), false), 1e-2);
			assert_same_gradients(a, var_of_rows);
			assert_same_gradients(pseudo_random(TENSOR_SHAPE(4, 5), dtypes[i]),
					      std_of_all);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(positions_and_repeats),
		cmocka_unit_test(resize_keeps_the_elements_that_fit),
		cmocka_unit_test(factors_are_unpacked),
		cmocka_unit_test(the_rest_of_a_basis),
		cmocka_unit_test(gradients_of_products),
		cmocka_unit_test(means_of_halves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
