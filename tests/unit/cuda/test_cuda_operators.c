// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: operators against the CPU's result for the same values. Skipped with a reason where there is no device. */
#include "cuda_results.h"

static void fill_writes_every_element(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *g =
			ok(tensor_full(TENSOR_SHAPE(3, 5), TENSOR_SCALAR(7), CUDA_OF(TENSOR_I32)));
		tensor *a = ok(tensor_full(TENSOR_SHAPE(3, 5), TENSOR_SCALAR(7),
					   TENSOR_OPTIONS(.dtype = TENSOR_I32)));

		assert_near(g, a, 0);
		ok(tensor_fill_(tensor_slice(g, 1, 1, 5, 2), TENSOR_SCALAR(-2.0)));
		ok(tensor_fill_(tensor_slice(a, 1, 1, 5, 2), TENSOR_SCALAR(-2.0)));
		assert_near(g, a, 0);
		assert_near(tensor_zeros_like(g, TENSOR_OPTIONS(0)),
			    tensor_zeros_like(a, TENSOR_OPTIONS(0)), 0);
	}
}

/* An element of 16 bytes does not fit into eight. */
static void fill_writes_complex_elements(void **state)
{
	NEED_DEVICE();
	for (int d = TENSOR_C64; d <= TENSOR_C128; d++) {
		tensor_scope {
			tensor *g =
				ok(tensor_full(TENSOR_SHAPE(3, 4), TENSOR_SCALAR(0), CUDA_OF(d)));
			tensor *a = ok(tensor_full(TENSOR_SHAPE(3, 4), TENSOR_SCALAR(0),
						   TENSOR_OPTIONS(.dtype = d)));
			tensor_scalar z = tensor_scalar_complex(1.5, -2.5);

			ok(tensor_fill_(tensor_slice(g, 1, 1, 4, 2), z));
			ok(tensor_fill_(tensor_slice(a, 1, 1, 4, 2), z));
			assert_true(equal(ok(tensor_to(g, CPU)), a));
			ok(tensor_fill_(g, z));
			assert_true(equal(ok(tensor_to(g, CPU)),
					  ok(tensor_full_like(a, z, TENSOR_OPTIONS(0)))));
			assert_true(
				equal(ok(tensor_to(tensor_mH(g), CPU)),
				      ok(tensor_mH(tensor_full_like(a, z, TENSOR_OPTIONS(0))))));
		}
	}
}

static void median_of_an_empty_tensor_is_nan(void **state)
{
	double v;

	NEED_DEVICE();
	tensor_scope {
		assert_done(tensor_item(ok(tensor_median(ok(tensor_empty(TENSOR_SHAPE(0), CUDA)))),
					&v));
		assert_true(isnan(v));
	}
}

static void elementwise_equals_the_cpu_in(enum tensor_dtype d)
{
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(6, 10), d),
		       *b = pseudo_random(TENSOR_SHAPE(6, 10), d);
		tensor *row = pseudo_random(TENSOR_SHAPE(10), d),
		       *col = pseudo_random(TENSOR_SHAPE(6, 1), d);
		tensor *c = pseudo_random(TENSOR_SHAPE(3, 10, 6), d);
		tensor *ga = on_cuda(a), *gb = on_cuda(b), *gc = on_cuda(c);

		assert_near(tensor_add(ga, gb), tensor_add(a, b), 0);
		assert_near(tensor_mul(ga, gb), tensor_mul(a, b), 0);
		assert_near(tensor_add(ga, on_cuda(row)), tensor_add(a, row), 0);
		assert_near(tensor_mul(on_cuda(col), ga), tensor_mul(col, a), 0);
		assert_near(tensor_add(gc, tensor_t(ga)), tensor_add(c, tensor_t(a)), 0);
		assert_near(tensor_mul(tensor_permute(gc, TENSOR_INTS(1, 0, 2)),
				       on_cuda(tensor_t(col))),
			    tensor_mul(tensor_permute(c, TENSOR_INTS(1, 0, 2)), tensor_t(col)), 0);
		assert_near(
			tensor_add(tensor_slice(ga, 1, 0, 10, 3), tensor_slice(gb, 1, 0, 10, 3)),
			tensor_add(tensor_slice(a, 1, 0, 10, 3), tensor_slice(b, 1, 0, 10, 3)), 0);
		if (d == TENSOR_BOOL)
			continue;
		assert_near(tensor_relu(ga), tensor_relu(a), 0);
		assert_near(tensor_relu(tensor_t(ga)), tensor_relu(tensor_t(a)), 0);
		assert_near(tensor_add_opt(ga, gb, TENSOR_SCALAR(3)),
			    tensor_add_opt(a, b, TENSOR_SCALAR(3)), 0);
		assert_near(tensor_sub(ga, gb), tensor_sub_opt(a, b, TENSOR_SCALAR(1)), 0);
		assert_near(tensor_mul_scalar(ga, TENSOR_SCALAR(2)),
			    tensor_mul_scalar(a, TENSOR_SCALAR(2)), 0);
		ok(tensor_add_(tensor_t(ga), tensor_t(gb)));
		ok(tensor_add_(tensor_t(a), tensor_t(b)));
		assert_near(ga, a, 0);
	}
}

static void elementwise_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	elementwise_equals_the_cpu_in(TENSOR_BOOL);
	elementwise_equals_the_cpu_in(TENSOR_U8);
	elementwise_equals_the_cpu_in(TENSOR_I32);
	elementwise_equals_the_cpu_in(TENSOR_I64);
	elementwise_equals_the_cpu_in(TENSOR_F32);
	elementwise_equals_the_cpu_in(TENSOR_F64);
}

/* Loads of 16 bytes: any number of elements, and operands that are not at a multiple of 16. */
static void contiguous_operands_of_any_length_and_address(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_I32, TENSOR_F32, TENSOR_F64 };
	static const int64_t lengths[] = { 1, 3, 4, 5, 15, 16, 17, 1000, 1001, 1003 };

	NEED_DEVICE();
	for (size_t i = 0; i < 4 * 10 * 3; i++)
		tensor_scope {
			int64_t n = lengths[i % 10], from = (int64_t)i / 40;
			tensor *a = pseudo_random(TENSOR_SHAPE(n + 3), dtypes[i / 10 % 4]);
			tensor *g = on_cuda(a), *part = tensor_slice(a, 0, from, from + n, 1);
			tensor *gpart = tensor_slice(g, 0, from, from + n, 1);

			assert_near(tensor_add(gpart, gpart), tensor_add(part, part), 0);
			assert_near(tensor_mul_scalar(gpart, TENSOR_SCALAR(3)),
				    tensor_mul_scalar(part, TENSOR_SCALAR(3)), 0);
			assert_near(tensor_relu(gpart), tensor_relu(part), 0);
			assert_near(tensor_clone(gpart), part, 0);
			ok(tensor_fill_(gpart, TENSOR_SCALAR(9)));
			ok(tensor_fill_(part, TENSOR_SCALAR(9)));
			assert_near(g, a, 0);
		}
}

static void zero_dim_cpu_tensor_combines_with_cuda(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 5), TENSOR_F32), *g = on_cuda(a);
		tensor *f = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(1.5), F64));
		tensor *i = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(3), F32));

		assert_near(tensor_mul(g, f), tensor_mul(a, f), 0);
		assert_near(tensor_mul(f, g), tensor_mul(f, a), 0);
		assert_near(tensor_add(i, tensor_t(g)), tensor_add(i, tensor_t(a)), 0);
		/* Only 0-d CPU tensors may be combined with CUDA tensors. */
		assert_fails(tensor_add(g, a), EINVAL, "one device");
		assert_fails(tensor_add_(i, g), EINVAL, "device");
	}
}

static void sum_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int d = TENSOR_I32; d <= TENSOR_F64; d++) {
		if (d == TENSOR_F16 || d == TENSOR_BF16)
			continue;
		tensor_scope {
			double tol = d == TENSOR_F32 ? 1e-5 : 1e-12;
			tensor *a = pseudo_random(TENSOR_SHAPE(7, 33, 20), d), *g = on_cuda(a);
			tensor *ta = tensor_permute(a, TENSOR_INTS(2, 0, 1));
			tensor *tg = tensor_permute(g, TENSOR_INTS(2, 0, 1));
			tensor *large = pseudo_random(TENSOR_SHAPE(2, 40000), d);

			assert_near(tensor_sum(g), tensor_sum(a), tol);
			assert_near(tensor_sum(tg), tensor_sum(ta), tol);
			for (int k = 0; k < 3; k++) {
				assert_near(tensor_sum_dim(g, TENSOR_INTS(k), false),
					    tensor_sum_dim(a, TENSOR_INTS(k), false), tol);
				assert_near(tensor_sum_dim(tg, TENSOR_INTS(k), true),
					    tensor_sum_dim(ta, TENSOR_INTS(k), true), tol);
			}
			assert_near(tensor_sum_dim(tg, TENSOR_INTS(0, 2), false),
				    tensor_sum_dim(ta, TENSOR_INTS(0, 2), false), tol);
			/* Long rows are summed in parts. */
			assert_near(tensor_sum(on_cuda(large)), tensor_sum(large), 100 * tol);
			assert_near(tensor_sum_dim(on_cuda(large), TENSOR_INTS(1), false),
				    tensor_sum_dim(large, TENSOR_INTS(1), false), 100 * tol);
			assert_near(tensor_sum(tensor_slice(g, 0, 0, 0, 1)),
				    tensor_sum(tensor_slice(a, 0, 0, 0, 1)), 0);
		}
	}
	tensor_scope { /* across rows, in pieces */
		tensor *a = pseudo_random(TENSOR_SHAPE(1000, 70), TENSOR_F32), *g = on_cuda(a);
		tensor *part = tensor_slice(a, 1, 3, 67, 1), *gpart = tensor_slice(g, 1, 3, 67, 1);

		assert_near(tensor_sum_dim(g, TENSOR_INTS(0), false),
			    tensor_sum_dim(a, TENSOR_INTS(0), false), 1e-3);
		assert_near(tensor_sum_dim(gpart, TENSOR_INTS(0), true),
			    tensor_sum_dim(part, TENSOR_INTS(0), true), 1e-3);
	}
	tensor_scope {
		tensor *b = pseudo_random(TENSOR_SHAPE(50), TENSOR_BOOL);
		tensor *a = pseudo_random(TENSOR_SHAPE(5, 6), TENSOR_F32);

		assert_near(tensor_sum(on_cuda(b)), tensor_sum(b), 0);
		assert_near(tensor_mean(on_cuda(a)), tensor_mean(a), 1e-6);
	}
}

static void softmax_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int d = TENSOR_F32; d <= TENSOR_F64; d++) {
		double tol = d == TENSOR_F32 ? 1e-6 : 1e-13;

		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(5, 300, 6), d), *g = on_cuda(a);
			tensor *grad = pseudo_random(TENSOR_SHAPE(5, 300, 6), d),
			       *gg = on_cuda(grad);

			for (int k = 0; k < 3; k++) {
				tensor *y = ok(tensor_softmax(a, k)),
				       *gy = ok(tensor_softmax(g, k));
				tensor *l = ok(tensor_log_softmax(a, k));
				tensor *gl = ok(tensor_log_softmax(g, k));

				assert_near(gy, y, tol);
				assert_near(gl, l, tol);
				assert_near(tensor_softmax_backward(gg, gy, k),
					    tensor_softmax_backward(grad, y, k), 10 * tol);
				assert_near(tensor_log_softmax_backward(gg, gl, k),
					    tensor_log_softmax_backward(grad, l, k), 100 * tol);
			}
			assert_near(tensor_softmax(tensor_permute(g, TENSOR_INTS(1, 2, 0)), 0),
				    tensor_softmax(tensor_permute(a, TENSOR_INTS(1, 2, 0)), 0),
				    tol);
		}
	}
}

static void products_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int d = TENSOR_F32; d <= TENSOR_F64; d++) {
		double tol = d == TENSOR_F32 ? 1e-5 : 1e-13;

		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(9, 14), d),
			       *b = pseudo_random(TENSOR_SHAPE(14, 5), d);
			tensor *at = pseudo_random(TENSOR_SHAPE(14, 9), d);
			tensor *bt = pseudo_random(TENSOR_SHAPE(5, 14), d),
			       *bias = pseudo_random(TENSOR_SHAPE(5), d);
			tensor *wide = pseudo_random(TENSOR_SHAPE(9, 28), d);
			tensor *ga = on_cuda(a), *gb = on_cuda(b), *gw = on_cuda(wide);
			tensor *out = ok(tensor_zeros(TENSOR_SHAPE(5, 9), CUDA_OF(d)));

			assert_near(tensor_mm(ga, gb), tensor_mm(a, b), tol);
			assert_near(tensor_mm(tensor_t(on_cuda(at)), gb),
				    tensor_mm(tensor_t(at), b), tol);
			assert_near(tensor_mm(ga, tensor_t(on_cuda(bt))),
				    tensor_mm(a, tensor_t(bt)), tol);
			assert_near(tensor_mm(tensor_t(on_cuda(at)), tensor_t(on_cuda(bt))),
				    tensor_mm(tensor_t(at), tensor_t(bt)), tol);
			/* Gaps between rows, gaps between elements, a vector, an empty sum. */
			assert_near(tensor_mm(tensor_slice(gw, 1, 3, 17, 1), gb),
				    tensor_mm(tensor_slice(wide, 1, 3, 17, 1), b), tol);
			assert_near(tensor_mm(tensor_slice(gw, 1, 0, 28, 2), gb),
				    tensor_mm(tensor_slice(wide, 1, 0, 28, 2), b), tol);
			assert_near(tensor_mm(tensor_slice(ga, 0, 2, 3, 1), gb),
				    tensor_mm(tensor_slice(a, 0, 2, 3, 1), b), tol);
			assert_near(tensor_mm(ga, tensor_slice(gb, 1, 1, 2, 1)),
				    tensor_mm(a, tensor_slice(b, 1, 1, 2, 1)), tol);
			assert_near(tensor_mm(tensor_slice(ga, 1, 0, 0, 1),
					      tensor_slice(gb, 0, 0, 0, 1)),
				    tensor_mm(tensor_slice(a, 1, 0, 0, 1),
					      tensor_slice(b, 0, 0, 0, 1)),
				    0);
			assert_near(tensor_addmm(on_cuda(bias), ga, gb), tensor_addmm(bias, a, b),
				    tol);
			assert_near(tensor_addmm_opt(on_cuda(bias), ga, gb, TENSOR_SCALAR(0.5),
						     TENSOR_SCALAR(-2.0)),
				    tensor_addmm_opt(bias, a, b, TENSOR_SCALAR(0.5),
						     TENSOR_SCALAR(-2.0)),
				    tol);
			ok(tensor_mm_out(tensor_t(out), ga, gb));
			assert_near(tensor_t(out), tensor_mm(a, b), tol);
		}
	}
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(3, 3), TENSOR_I32), *i = on_cuda(a);

		/* The kernel has no integers: the CPU multiplies them. */
		assert_near(tensor_mm(i, i), tensor_mm(a, a), 0);
		assert_true(tensor_cuda_set_fallback(false));
		assert_fails(tensor_mm(i, i), EOPNOTSUPP, "i32");
		assert_false(tensor_cuda_set_fallback(true));
	}
}

static void indexing_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(6, 7, 5), TENSOR_F32), *g = on_cuda(a);
		tensor *i = integers(TENSOR_SHAPE(6), (int64_t[]){ 3, 0, 3, 4, 1, 3 }),
		       *gi = on_cuda(i);
		tensor *i32 = tensor_to(i, TENSOR_OPTIONS(.dtype = TENSOR_I32));
		tensor *pick = integers(TENSOR_SHAPE(2, 3, 2),
					(int64_t[]){ 0, 4, 1, 1, 2, 2, 3, 0, 4, 4, 1, 0 });

		for (int d = 0; d < 3; d++) {
			tensor *s = tensor_index_select(a, d, i);
			tensor *src = pseudo_random(tensor_shape(s), TENSOR_F32);

			assert_near(tensor_index_select(g, d, gi), s, 0);
			assert_near(tensor_index_select(g, d, on_cuda(i32)), s, 0);
			assert_near(tensor_index_add(g, d, gi, on_cuda(src)),
				    tensor_index_add(a, d, i, src), 0);
			assert_near(tensor_gather(g, d, on_cuda(pick)), tensor_gather(a, d, pick),
				    0);
			assert_near(tensor_scatter_add(g, d, on_cuda(pick), g),
				    tensor_scatter_add(a, d, pick, a), 0);
		}
		assert_near(tensor_index_select(tensor_permute(g, TENSOR_INTS(2, 0, 1)), 0, gi),
			    tensor_index_select(tensor_permute(a, TENSOR_INTS(2, 0, 1)), 0, i), 0);
	}
}

/* Rows that are whole numbers of 16 bytes are copied by elements of that size. */
static void rows_of_any_width_are_selected(void **state)
{
	NEED_DEVICE();
	for (int64_t width = 1; width <= 24; width++)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(9, width + 4), TENSOR_F32);
			tensor *g = on_cuda(a);
			tensor *i = integers(TENSOR_SHAPE(5), (int64_t[]){ 8, 0, 3, 3, 1 });
			tensor *gi = on_cuda(i);

			for (int64_t from = 0; from <= 4; from += 2) {
				tensor *part = tensor_slice(a, 1, from, from + width, 1);
				tensor *gpart = tensor_slice(g, 1, from, from + width, 1);

				assert_near(tensor_index_select(gpart, 0, gi),
					    tensor_index_select(part, 0, i), 0);
			}
		}
}

static void index_out_of_range_fails_and_the_device_stays_usable(void **state)
{
	NEED_DEVICE();
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 3), TENSOR_F32), *g = on_cuda(a);
		tensor *past = on_cuda(integers(TENSOR_SHAPE(3), (int64_t[]){ 0, 4, 1 }));
		tensor *below = on_cuda(integers(TENSOR_SHAPE(1), (int64_t[]){ -1 }));
		tensor *square =
			on_cuda(integers(TENSOR_SHAPE(1, 3), (int64_t[]){ 0, 1, 1 << 30 }));
		tensor *rows = on_cuda(pseudo_random(TENSOR_SHAPE(3, 3), TENSOR_F32));

		assert_fails(tensor_index_select(g, 0, past), ERANGE, "index 4 is out of range");
		assert_fails(tensor_index_select(g, 0, below), ERANGE, "index -1");
		assert_fails(tensor_gather(g, 0, square), ERANGE, "1073741824");
		assert_fails(tensor_index_add_(g, 0, past, rows), ERANGE, "index 4");
		assert_fails(tensor_scatter_add_(g, 0, square, rows), ERANGE, "out of range");
		assert_done(tensor_cuda_synchronize(0));
		assert_near(g, a, 0);
		assert_near(tensor_add(g, g), tensor_add(a, a), 0);
	}
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fill_writes_every_element),
		cmocka_unit_test(fill_writes_complex_elements),
		cmocka_unit_test(median_of_an_empty_tensor_is_nan),
		cmocka_unit_test(elementwise_equals_the_cpu),
		cmocka_unit_test(contiguous_operands_of_any_length_and_address),
		cmocka_unit_test(zero_dim_cpu_tensor_combines_with_cuda),
		cmocka_unit_test(sum_equals_the_cpu),
		cmocka_unit_test(softmax_equals_the_cpu),
		cmocka_unit_test(products_equal_the_cpu),
		cmocka_unit_test(indexing_equals_the_cpu),
		cmocka_unit_test(rows_of_any_width_are_selected),
		cmocka_unit_test(index_out_of_range_fails_and_the_device_stays_usable),
	};

	return cmocka_run_group_tests_name("cuda_operators", tests, NULL, NULL);
}
