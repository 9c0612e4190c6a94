// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Training on CUDA: gradients equal those of the CPU. */
#include "check.h"

#include <tensor/cuda.h>

#define CUDA TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(0))

struct mlp {
	tensor *x, *target, *w1, *b1, *w2;
};

/* Values between -1 and 1, repeatable for a seed. */
static tensor *wave(tensor_ints shape, double seed)
{
	tensor *t = iota(0, shape);
	float *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = (float)sin(seed + 1.7 * (double)i);
	return t;
}

static tensor *leaf(tensor *t, tensor_options device)
{
	tensor *l = ok(tensor_to(t, device));

	assert_done(tensor_set_requires_grad(l, true));
	return l;
}

static struct mlp make_mlp(tensor_options device)
{
	return (struct mlp){
		.x = tensor_to(wave(TENSOR_SHAPE(8, 6), 1), device),
		.target = tensor_to(wave(TENSOR_SHAPE(8, 3), 2), device),
		.w1 = leaf(wave(TENSOR_SHAPE(6, 16), 3), device),
		.b1 = leaf(wave(TENSOR_SHAPE(16), 4), device),
		.w2 = leaf(wave(TENSOR_SHAPE(3, 16), 5), device),
	};
}

static tensor *training_step(struct mlp *m)
{
	tensor *hidden = tensor_relu(tensor_addmm(m->b1, m->x, m->w1));
	tensor *p = tensor_softmax(tensor_mm(hidden, tensor_t(m->w2)), 1);
	tensor *loss = tensor_sum(tensor_mul(p, m->target));

	assert_done(tensor_backward(ok(loss)));
	tensor_no_grad {
		ok(tensor_add_opt_(m->w1, tensor_grad(m->w1), TENSOR_SCALAR(-0.1)));
		ok(tensor_add_opt_(m->b1, tensor_grad(m->b1), TENSOR_SCALAR(-0.1)));
		ok(tensor_add_opt_(m->w2, tensor_grad(m->w2), TENSOR_SCALAR(-0.1)));
	}
	return loss;
}

static void assert_near(tensor *gpu, tensor *cpu)
{
	tensor *back = ok(tensor_to(ok(gpu), TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU)));
	const float *a = tensor_data(back), *b = tensor_data(ok(cpu));

	assert_int_equal(tensor_get_device(gpu).type, TENSOR_CUDA);
	assert_int_equal(tensor_numel(back), tensor_numel(cpu));
	assert_true(tensor_is_contiguous(back) && tensor_is_contiguous(cpu));
	for (int64_t i = 0; i < tensor_numel(cpu); i++)
		if (!(fabsf(a[i] - b[i]) <= 1e-5f))
			fail_msg("element %lld is %g, on the CPU %g", (long long)i, a[i], b[i]);
}

static bool no_device(void)
{
	if (tensor_cuda_is_available())
		return false;
	tensor_cuda_device_count();
	print_message("# skipped: %s\n", tensor_last_error()->text);
	return true;
}

static void step_of_an_mlp_equals_the_cpu(void **state)
{
	if (no_device())
		skip();
	tensor_scope {
		struct mlp c = make_mlp(TENSOR_OPTIONS(0)), g = make_mlp(CUDA);

		assert_near(training_step(&g), training_step(&c));
		assert_near(tensor_grad(g.w1), tensor_contiguous(tensor_grad(c.w1)));
		assert_near(tensor_grad(g.b1), tensor_contiguous(tensor_grad(c.b1)));
		assert_near(tensor_grad(g.w2), tensor_contiguous(tensor_grad(c.w2)));
		assert_near(g.w1, c.w1);
		assert_near(g.w2, c.w2);
	}
}

static void gradients_of_indexing_equal_the_cpu(void **state)
{
	static const int64_t positions[] = { 2, 0, 2, 5, 2, 1 };

	if (no_device())
		skip();
	tensor_scope {
		tensor *i = ok(tensor_from_data(positions, TENSOR_SHAPE(6), I64));
		tensor *pick = ok(tensor_from_data(positions, TENSOR_SHAPE(2, 3), I64));
		tensor *c = leaf(wave(TENSOR_SHAPE(6, 4), 1), TENSOR_OPTIONS(0));
		tensor *g = leaf(wave(TENSOR_SHAPE(6, 4), 1), CUDA);
		tensor *w = wave(TENSOR_SHAPE(6, 4), 2);

		assert_done(
			tensor_backward(tensor_sum(tensor_mul(tensor_index_select(c, 0, i), w))));
		assert_done(tensor_backward(tensor_sum(tensor_mul(
			tensor_index_select(g, 0, tensor_to(i, CUDA)), tensor_to(w, CUDA)))));
		assert_near(tensor_grad(g), tensor_grad(c));
		assert_done(tensor_backward(tensor_sum(tensor_gather(c, 0, pick))));
		assert_done(
			tensor_backward(tensor_sum(tensor_gather(g, 0, tensor_to(pick, CUDA)))));
		assert_near(tensor_grad(g), tensor_grad(c));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_of_an_mlp_equals_the_cpu),
		cmocka_unit_test(gradients_of_indexing_equal_the_cpu),
	};

	return cmocka_run_group_tests_name("cuda_autograd", tests, NULL, NULL);
}
