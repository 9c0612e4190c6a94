// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: embedding_bag and its gradients against the CPU's results. */
#include "cuda_results.h"

enum { ROWS = 9, WIDTH = 5, INDICES = 40, BAGS = 6 };

struct bag_case {
	enum tensor_dtype dtype, index;
	int64_t mode; /* sum, mean, max */
	bool factors, last;
	int64_t padding;
};

/* Bags 0 and 3 are empty. */
static tensor *offsets_of(const struct bag_case *c)
{
	static const int64_t offsets[] = { 0, 0, 7, 20, 20, 33, INDICES - 2 };

	return ok(tensor_to(integers(TENSOR_SHAPE(BAGS + c->last), offsets), OF(c->index)));
}

static tensor *indices_of(enum tensor_dtype index)
{
	tensor *t = pseudo_random(TENSOR_SHAPE(INDICES), TENSOR_F64);

	t = ok(tensor_remainder_scalar(tensor_floor(tensor_mul_scalar(t, TENSOR_SCALAR(100))),
				       TENSOR_SCALAR(ROWS)));
	return ok(tensor_to(t, OF(index)));
}

static tensor *maybe_cuda(tensor *t)
{
	return t == tensor_none ? t : on_cuda(t);
}

static void bags_equal_the_cpu_in(const struct bag_case *c)
{
	tensor *w = pseudo_random(TENSOR_SHAPE(ROWS, WIDTH), c->dtype);
	tensor *indices = indices_of(c->index), *offsets = offsets_of(c);
	tensor *factors = c->factors ? pseudo_random(TENSOR_SHAPE(INDICES), c->dtype) : tensor_none;
	tensor *grad = pseudo_random(TENSOR_SHAPE(BAGS, WIDTH), c->dtype), *y[4], *g[4];
	const double tol = 2 * tolerance(c->dtype);

	assert_done(tensor_embedding_bag_parts(w, indices, offsets, false, c->mode, false, factors,
					       c->last, c->padding, &y[0], &y[1], &y[2], &y[3]));
	assert_done(tensor_embedding_bag_parts(on_cuda(w), on_cuda(indices), on_cuda(offsets),
					       false, c->mode, false, maybe_cuda(factors), c->last,
					       c->padding, &g[0], &g[1], &g[2], &g[3]));
	for (int i = 0; i < 4; i++)
		assert_near(g[i], y[i], tol);
	if (c->last) /* indices behind the last bag have none */
		return;
	for (int frequency = 0; frequency < 2; frequency++)
		assert_near(tensor_embedding_bag_dense_backward(
				    on_cuda(grad), on_cuda(indices), on_cuda(y[1]), on_cuda(y[2]),
				    on_cuda(y[3]), ROWS, frequency, c->mode, maybe_cuda(factors),
				    c->padding),
			    tensor_embedding_bag_dense_backward(grad, indices, y[1], y[2], y[3],
								ROWS, frequency, c->mode, factors,
								c->padding),
			    4 * tol);
	if (c->mode == 0)
		assert_near(tensor_embedding_bag_per_sample_weights_backward(
				    on_cuda(grad), on_cuda(w), on_cuda(indices), on_cuda(offsets),
				    on_cuda(y[1]), 0, c->padding),
			    tensor_embedding_bag_per_sample_weights_backward(
				    grad, w, indices, offsets, y[1], 0, c->padding),
			    4 * tol);
}

static void bags_equal_the_cpu(void **state)
{
	static const enum tensor_dtype floats[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16,
						    TENSOR_BF16 };

	NEED_DEVICE();
	for (int i = 0; i < 24; i++)
		tensor_scope {
			const struct bag_case c = { .dtype = floats[i % 4],
						    .index = i / 4 % 2 ? TENSOR_I64 : TENSOR_I32,
						    .mode = i / 8,
						    .factors = i / 8 == 0 && i % 2,
						    .last = i / 4 % 2,
						    .padding = i % 3 ? 3 : -1 };

			bags_equal_the_cpu_in(&c);
		}
}

static void wrong_bags_are_refused(void **state)
{
	NEED_DEVICE();
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
	tensor_scope {
		tensor *w = on_cuda(pseudo_random(TENSOR_SHAPE(ROWS, WIDTH), TENSOR_F32)), *y[4];
		tensor *at = on_cuda(integers(TENSOR_SHAPE(3), (int64_t[]){ 1, ROWS, 0 }));
		tensor *good = on_cuda(integers(TENSOR_SHAPE(3), (int64_t[]){ 1, 2, 0 }));
		tensor *down = on_cuda(integers(TENSOR_SHAPE(3), (int64_t[]){ 0, 2, 1 }));

		assert_int_equal(tensor_embedding_bag_parts(w, at, good, false, 0, false,
							    tensor_none, false, -1, &y[0], &y[1],
							    &y[2], &y[3]),
				 -ERANGE);
		assert_non_null(strstr(tensor_last_error()->text, "index 9 is out of range"));
		assert_int_equal(tensor_embedding_bag_parts(w, good, down, false, 0, false,
							    tensor_none, false, -1, &y[0], &y[1],
							    &y[2], &y[3]),
				 -EINVAL);
		assert_non_null(strstr(tensor_last_error()->text, "must ascend"));
	}
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bags_equal_the_cpu),
		cmocka_unit_test(wrong_bags_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
