// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * CUDA on the emulation (tests/cuda/host): each call of the runtime that fails makes an operator fail, with the runtime's
 * error, and the next call of the operator is right. Operators that consist of several kernels, or whose host waits.
 */
#include "cuda_results.h"
#include "tests/cuda/host/include/cuda_host.h"

static struct {
	__typeof__(&cuda_host_fail) inject;
	__typeof__(&cuda_host_calls) calls;
} host;

static bool emulated(void)
{
	host.inject = emulation("cuda_host_fail");
	host.calls = emulation("cuda_host_calls");
	return host.inject && host.calls;
}

struct operands {
	tensor *values, *other; /* [6, 8] */
	tensor *numbers;	/* i64 [40], of 0 to 4 */
	tensor *heads;		/* [1, 2, 9, 4] */
	tensor *image, *grid;	/* [1, 2, 5, 6], [1, 3, 4, 2] */
};

static tensor *unique_of(const struct operands *o)
{
	tensor *t[4];

	return tensor_unique_all(o->numbers, &t[0], &t[1], &t[2], &t[3]) < 0 ? NULL : t[2];
}
static tensor *runs_of(const struct operands *o)
{
	tensor *t[3];

	return tensor_unique_consecutive(o->numbers, true, true, TENSOR_NONE, &t[0], &t[1], &t[2]) <
			       0 ?
		       NULL :
		       t[2];
}
static tensor *mode_of(const struct operands *o)
{
	tensor *t[2];

	return tensor_mode(o->numbers, 0, true, &t[0], &t[1]) < 0 ? NULL : t[0];
}
static tensor *bags_of(const struct operands *o)
{
	tensor *bags =
		tensor_slice(tensor_arange(TENSOR_SCALAR(40), CUDA_OF(TENSOR_I64)), 0, 0, 40, 8);
	tensor *t[4];

	return !bags || tensor_embedding_bag(o->values, o->numbers, bags, false, 1, false,
					     tensor_none, false, &t[0], &t[1], &t[2], &t[3]) < 0 ?
		       NULL :
		       t[0];
}
static tensor *counts_of(const struct operands *o)
{
	return tensor_bincount(o->numbers, tensor_none, 0);
}
static tensor *places_of(const struct operands *o)
{
	return tensor_searchsorted(tensor_reshape(o->values, TENSOR_INTS(-1)), o->other);
}
static tensor *distances_of(const struct operands *o)
{
	return tensor_cdist(o->values, o->other, 2, TENSOR_NONE);
}
static tensor *loss_of(const struct operands *o)
{
	return tensor_mse_loss(o->values, o->other, 1);
}
static tensor *attention_of(const struct operands *o)
{
	return tensor_scaled_dot_product_attention(o->heads, o->heads, o->heads, tensor_none, 0,
						   false);
}
static tensor *samples_of(const struct operands *o)
{
	return tensor_grid_sampler_2d(o->image, o->grid, 2, 2, false);
}
static tensor *transform_of(const struct operands *o)
{
	return tensor_view_as_real(tensor_fft_r2c(o->values, TENSOR_INTS(0), 0, true));
}

/* Regular matrices [2, 6, 6]: computed together. */
static tensor *systems(const struct operands *o)
{
	tensor *a = tensor_narrow(o->values, 1, 0, 6), *b = tensor_narrow(o->other, 1, 0, 6);
	tensor *one = tensor_eye(6, CUDA_OF(TENSOR_F32));

	a = tensor_stack(TENSOR_LIST(a, b), 0);
	return tensor_add(a, tensor_mul_scalar(one, TENSOR_SCALAR(20)));
}
static tensor *inverses_of(const struct operands *o)
{
	return tensor_linalg_inv(systems(o));
}
static tensor *triangles_of(const struct operands *o)
{
	return tensor_linalg_solve_triangular(systems(o), o->other, false);
}
static tensor *eigenvalues_of(const struct operands *o)
{
	return tensor_linalg_eigvalsh(systems(o), "L");
}
static tensor *singular_values_of(const struct operands *o)
{
	return tensor_linalg_svdvals(o->values);
}

static void check_failing_calls(tensor *(*op)(const struct operands *), const struct operands *o)
{
	tensor *expected = ok(tensor_to(ok(op(o)), CPU));
	unsigned long n = 0;

	for (bool failed = true; failed;)
		tensor_scope {
			tensor *t;

			tensor_clear_error();
			host.inject(NULL, ++n, cudaErrorLaunchFailure);
			t = op(o);
			failed = host.calls() >= n;
			host.inject(NULL, 0, 0);
			if (t)
				assert_near(t, expected, 1e-5); /* a call that only releases */
			else
				assert_int_equal(tensor_last_error()->code, EIO);
		}
	assert_true(n > 1);
	assert_near(op(o), expected, 1e-5);
}

static void each_failing_call_is_an_error(void **state)
{
	static tensor *(*const ops[])(const struct operands *) = {
		unique_of,    runs_of,	   mode_of,	 bags_of,	 counts_of,
		places_of,    loss_of,	   distances_of, attention_of,	 samples_of,
		transform_of, inverses_of, triangles_of, eigenvalues_of, singular_values_of,
	};

	if (!emulated()) {
		print_message("# skipped: make test-cuda runs it\n");
		skip();
	}
	tensor_scope {
		tensor *numbers = ok(tensor_abs(pseudo_random(TENSOR_SHAPE(40), TENSOR_I64)));
		const struct operands o = {
			.values = on_cuda(pseudo_random(TENSOR_SHAPE(6, 8), TENSOR_F32)),
			.other = on_cuda(pseudo_random(TENSOR_SHAPE(6, 8), TENSOR_F32)),
			.numbers = on_cuda(numbers),
			.heads = on_cuda(pseudo_random(TENSOR_SHAPE(1, 2, 9, 4), TENSOR_F32)),
			.image = on_cuda(pseudo_random(TENSOR_SHAPE(1, 2, 5, 6), TENSOR_F32)),
			.grid = on_cuda(pseudo_random(TENSOR_SHAPE(1, 3, 4, 2), TENSOR_F32)),
		};

		for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
			tensor_scope {
				check_failing_calls(ops[i], &o);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failing_call_is_an_error),
	};

	return cmocka_run_group_tests_name("cuda_failures", tests, NULL, NULL);
}
