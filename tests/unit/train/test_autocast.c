// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Mixed precision: which operators convert, gradients, scopes, the cache of converted leaves. */
#include "autograd.h"
#include "threads.h"

#include <tensor/storage.h>

#define BF16 OF(TENSOR_BF16)

static void assert_dtype_(tensor *t, enum tensor_dtype dtype, int line)
{
	if (tensor_dtype(ok(t)) != dtype) {
		fprintf(stderr, "%s, expected %s\n", tensor_dtype_name(tensor_dtype(t)),
			tensor_dtype_name(dtype));
		_fail(__FILE__, line);
	}
}
#define assert_dtype(t, dtype) assert_dtype_(t, dtype, __LINE__)

/* The dtypes that PyTorch 2.15 gives under torch.autocast("cpu", torch.bfloat16). */
static void operators_convert_as_in_pytorch(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_rand(TENSOR_SHAPE(4, 4), F32)), *h = ok(tensor_to(x, BF16));
		tensor *d = ok(tensor_to(x, F64)),
		       *w = ok(tensor_rand(TENSOR_SHAPE(2, 1, 3, 3), F32));
		tensor *image = ok(tensor_rand(TENSOR_SHAPE(1, 1, 5, 5), F32));
		tensor *labels = ok(tensor_zeros(TENSOR_SHAPE(4), I64));

		tensor_autocast(TENSOR_BF16)
		{
			assert_int_equal(tensor_autocast_dtype(), TENSOR_BF16);
			assert_dtype(tensor_mm(x, x), TENSOR_BF16);
			assert_dtype(tensor_matmul(x, h), TENSOR_BF16);
			assert_dtype(tensor_addmm(x, x, h), TENSOR_BF16);
			assert_dtype(tensor_linear(x, x, tensor_none), TENSOR_BF16);
			assert_dtype(tensor_conv2d(image, w, tensor_none, TENSOR_INTS(1),
						   TENSOR_INTS(0), TENSOR_INTS(1), 1),
				     TENSOR_BF16);
			assert_dtype(tensor_mm(d, d), TENSOR_F64);
			assert_dtype(tensor_add(x, x), TENSOR_F32);
			assert_dtype(tensor_add(h, h), TENSOR_BF16);
			assert_dtype(tensor_softmax(h, 1), TENSOR_BF16);
			assert_dtype(tensor_mse_loss(h, h, TENSOR_REDUCTION_MEAN), TENSOR_F32);
			assert_dtype(tensor_cross_entropy_loss(h, labels, tensor_none,
							       TENSOR_REDUCTION_MEAN, -100, 0),
				     TENSOR_F32);
			assert_dtype(tensor_prod(h), TENSOR_F32);
			assert_dtype(tensor_cat(TENSOR_LIST(h, x), 0), TENSOR_F32);
			assert_dtype(tensor_cat(TENSOR_LIST(h, h), 0), TENSOR_BF16);
			assert_dtype(tensor_stack(TENSOR_LIST(x, h), 0), TENSOR_F32);
			assert_dtype(tensor_mm_out(ok(tensor_zeros(TENSOR_SHAPE(4, 4), F32)), x, x),
				     TENSOR_F32);
		}
		assert_int_equal(tensor_autocast_dtype(), TENSOR_DTYPE_NONE);
		assert_dtype(tensor_mm(x, x), TENSOR_F32);
	}
}

static tensor *two_layers(tensor *x, tensor *w1, tensor *w2)
{
	return tensor_mse_loss(tensor_mm(tensor_relu(tensor_mm(x, w1)), w2), x,
			       TENSOR_REDUCTION_MEAN);
}

/* The same with the conversions written out. */
static tensor *two_layers_by_hand(tensor *x, tensor *w1, tensor *w2)
{
	tensor *h = tensor_relu(tensor_mm(tensor_to(x, BF16), tensor_to(w1, BF16)));

	return tensor_mse_loss(tensor_to(tensor_mm(h, tensor_to(w2, BF16)), F32), x,
			       TENSOR_REDUCTION_MEAN);
}

static void gradients_are_those_of_written_conversions(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_rand(TENSOR_SHAPE(6, 8), F32)), *loss = NULL, *again;
		tensor *w1 = leaf(ok(tensor_rand(TENSOR_SHAPE(8, 5), F32)));
		tensor *w2 = leaf(ok(tensor_rand(TENSOR_SHAPE(5, 8), F32)));
		tensor *g1, *g2;

		tensor_autocast(TENSOR_BF16) loss = ok(two_layers(x, w1, w2));
		assert_dtype(loss, TENSOR_F32);
		assert_done(tensor_backward(loss));
		assert_dtype(tensor_grad(w1), TENSOR_F32);
		g1 = ok(tensor_clone(tensor_grad(w1)));
		g2 = ok(tensor_clone(tensor_grad(w2)));
		tensor_set_grad(w1, NULL);
		tensor_set_grad(w2, NULL);
		again = ok(two_layers_by_hand(x, w1, w2));
		assert_done(tensor_backward(again));
		assert_same(tensor_detach(loss), tensor_detach(again));
		assert_same(g1, tensor_grad(w1));
		assert_same(g2, tensor_grad(w2));
	}
}

static tensor *in_autocast(tensor *const *inputs, void *ctx)
{
	tensor *result = NULL;

	tensor_autocast(TENSOR_BF16) result = tensor_cat(
		TENSOR_LIST(tensor_mm(inputs[0], inputs[1]), tensor_prod_dim(inputs[0], 0, true)),
		0);
	return result;
}

/* f64 is not converted, so that finite differences are exact enough. */
static void gradcheck_passes_through_a_scope(void **state)
{
	tensor_scope {
		tensor *a = leaf(ok(tensor_rand(TENSOR_SHAPE(3, 3), F64)));
		tensor *b = leaf(ok(tensor_rand(TENSOR_SHAPE(3, 3), F64)));

		assert_done(
			tensor_gradcheck(in_autocast, NULL, TENSOR_LIST(a, b), 1e-6, 1e-6, 1e-4));
		assert_done(tensor_gradgradcheck(in_autocast, NULL, TENSOR_LIST(a, b), 1e-6, 1e-6,
						 1e-4));
	}
}

static void scopes_nest_and_turn_off(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_rand(TENSOR_SHAPE(4, 4), F32));

		tensor_autocast(TENSOR_BF16)
		{
			tensor_autocast(TENSOR_F16) assert_dtype(tensor_mm(x, x), TENSOR_F16);
			tensor_autocast(TENSOR_DTYPE_NONE)
			{
				assert_dtype(tensor_mm(x, x), TENSOR_F32);
				tensor_autocast(TENSOR_BF16)
					assert_dtype(tensor_mm(x, x), TENSOR_BF16);
				assert_dtype(tensor_mm(x, x), TENSOR_F32);
			}
			assert_dtype(tensor_mm(x, x), TENSOR_BF16);
			for (int i = 0; i < 1; i++)
				tensor_autocast(TENSOR_DTYPE_NONE) break;
			assert_dtype(tensor_mm(x, x), TENSOR_BF16);
		}
		assert_dtype(tensor_mm(x, x), TENSOR_F32);
	}
}

static int64_t live(void)
{
	struct tensor_live_counts n;

	tensor_live_counts(&n);
	return n.tensors;
}

static void conversions_of_leaves_are_kept_for_the_scope(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_rand(TENSOR_SHAPE(4, 4), BF16));
		tensor *w = leaf(ok(tensor_ones(TENSOR_SHAPE(4, 4), F32)));
		int64_t before;

		tensor_autocast(TENSOR_BF16)
		{
			int64_t first, second = 0;
			tensor *y;

			before = live();
			ok(tensor_mm(x, w));
			first = live() - before;
			tensor_scope {
				before = live();
				ok(tensor_mm(x, w));
				second = live() - before;
			}
			assert_int_equal(first, second + 1); /* the conversion */
			/* A changed leaf is converted again. */
			tensor_no_grad
				ok(tensor_zero_(w));
			y = ok(tensor_mm(x, w));
			assert_values(tensor_sum(y), 0, 0);
		}
	}
	tensor_scope {
		tensor *x = ok(tensor_rand(TENSOR_SHAPE(4, 4), BF16));
		tensor *w = leaf(ok(tensor_ones(TENSOR_SHAPE(4, 4), F32)));
		int64_t before = live();

		tensor_scope
			tensor_autocast(TENSOR_BF16) ok(tensor_mm(x, w));
		assert_int_equal(live(), before);
		/* The conversion without a gradient is not used for one with. */
		tensor_autocast(TENSOR_BF16)
		{
			tensor_no_grad
				ok(tensor_mm(x, w));
			assert_true(tensor_requires_grad(ok(tensor_mm(x, w))));
		}
	}
}

/* More leaves than the table has at first. */
static void many_leaves_are_kept(void **state)
{
	enum { MANY = 500 };

	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(1, 1), BF16)), *w[MANY];

		for (int i = 0; i < MANY; i++)
			w[i] = leaf(ok(tensor_full(TENSOR_SHAPE(1, 1), S(i), F32)));
		tensor_autocast(TENSOR_BF16)
		{
			for (int round = 0; round < 2; round++) {
				int64_t before = live();

				for (int i = 0; i < MANY; i++)
					tensor_scope
						assert_values(tensor_mm(x, w[i]), 2, i);
				assert_int_equal(live() - before, round ? 0 : MANY);
			}
		}
	}
}

static void *in_another_thread(void *arg)
{
	tensor_scope {
		tensor *x = ok(tensor_rand(TENSOR_SHAPE(4, 4), F32));

		for (int i = 0; i < 200; i++) {
			assert_dtype(tensor_mm(x, x), TENSOR_F32);
			tensor_autocast(i % 2 ? TENSOR_BF16 : TENSOR_F16)
				assert_dtype(tensor_mm(x, arg), i % 2 ? TENSOR_BF16 : TENSOR_F16);
		}
	}
	return NULL;
}

static void scopes_belong_to_their_thread(void **state)
{
	pthread_t threads[4];

	tensor_scope {
		tensor *w = leaf(ok(tensor_rand(TENSOR_SHAPE(4, 4), F32)));

		tensor_autocast(TENSOR_BF16)
		{
			for (int i = 0; i < 4; i++)
				assert_int_equal(
					pthread_create(&threads[i], NULL, in_another_thread, w), 0);
			for (int i = 0; i < 4; i++)
				pthread_join(threads[i], NULL);
		}
	}
}

static void other_dtypes_are_refused(void **state)
{
	bool entered = false;

	tensor_clear_error();
	tensor_autocast(TENSOR_F32) entered = true;
	assert_false(entered);
	assert_int_equal(tensor_last_error()->code, EINVAL);
	tensor_autocast((enum tensor_dtype)1000) entered = true;
	assert_false(entered);
	tensor_autocast_leave(NULL);
	tensor_autocast(TENSOR_BF16)
	{
		assert_fails(tensor_mm(NULL, NULL), EINVAL, "mm");
		assert_fails(tensor_mm(tensor_none, tensor_none), EINVAL, "tensor_none");
		assert_fails(tensor_cat((tensor_list){ NULL, 2 }, 0), EINVAL, "cat");
	}
}

/* mm(tanh(mm(x, w)), w), sum of squares */
static int segment(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	out[0] = tensor_mm(tensor_tanh(tensor_mm(in[0], in[1])), in[1]);
	return out[0] && nin == 2 && nout == 1 ? 0 : -1;
}

/* Backward is outside of the scope, in which the function ran at first. */
static void a_checkpoint_runs_again_with_the_conversions_of_its_scope(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_randn(TENSOR_SHAPE(4, 4), F32));
		tensor *w = leaf(ok(tensor_randn(TENSOR_SHAPE(4, 4), F32))), *in[] = { x, w }, *y;
		tensor *plain;

		tensor_autocast(TENSOR_BF16) assert_done(segment(in, 2, &y, 1, NULL));
		assert_done(tensor_backward(ok(tensor_sum(y))));
		plain = ok(tensor_clone(tensor_grad(w)));
		tensor_set_grad(w, NULL);
		tensor_autocast(TENSOR_BF16) assert_done(
			tensor_checkpoint(segment, NULL, NULL, TENSOR_LIST(x, w), &y, 1));
		assert_done(tensor_backward(ok(tensor_sum(y))));
		assert_same(plain, tensor_grad(w));
		/* And the other way round. */
		tensor_set_grad(w, NULL);
		assert_done(segment(in, 2, &y, 1, NULL));
		tensor_autocast(TENSOR_BF16) assert_done(tensor_backward(ok(tensor_sum(y))));
		plain = ok(tensor_clone(tensor_grad(w)));
		tensor_set_grad(w, NULL);
		assert_done(tensor_checkpoint(segment, NULL, NULL, TENSOR_LIST(x, w), &y, 1));
		tensor_autocast(TENSOR_BF16) assert_done(tensor_backward(ok(tensor_sum(y))));
		assert_same(plain, tensor_grad(w));
	}
}

/* The gradient of one sample with respect to w. */
static int sample_gradient(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	tensor *y;
	int err = segment(in, nin, &y, 1, ctx);

	if (err)
		return err;
	return tensor_backward_ex(TENSOR_LIST(ok(tensor_sum(y))), NULL, TENSOR_LIST(in[1]), out, 0);
}

static void samples_of_a_batch_are_converted(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_randn(TENSOR_SHAPE(3, 4, 4), F32)), *y, *g;
		tensor *w = leaf(ok(tensor_randn(TENSOR_SHAPE(4, 4), F32)));
		const int64_t dims[] = { 0, TENSOR_NONE };

		tensor_autocast(TENSOR_BF16)
		{
			assert_done(tensor_vmap(segment, NULL, TENSOR_LIST(x, w), dims, &y, 1, NULL,
						NULL));
			assert_dtype(y, TENSOR_BF16);
			assert_done(tensor_vmap(sample_gradient, NULL, TENSOR_LIST(x, w), dims, &g,
						1, NULL, NULL));
			assert_dtype(g, TENSOR_F32);
		}
		for (int64_t i = 0; i < 3; i++) {
			tensor *in[] = { ok(tensor_select(x, 0, i)), w }, *one = NULL,
			       *gradient = NULL;

			tensor_autocast(TENSOR_BF16)
			{
				assert_done(segment(in, 2, &one, 1, NULL));
				assert_done(sample_gradient(in, 2, &gradient, 1, NULL));
			}
			assert_same(one, ok(tensor_select(y, 0, i)));
			assert_same(gradient, ok(tensor_select(g, 0, i)));
		}
		/* A backward of the batch, outside of the scope. */
		assert_done(tensor_backward(ok(tensor_sum(y))));
		assert_dtype(tensor_grad(w), TENSOR_F32);
	}
}

static tensor *enter_and_convert(tensor *grad, void *w)
{
	tensor_autocast_enter(TENSOR_BF16);
	ok(tensor_mm(w, w));
	return grad;
}

static void a_scope_that_a_hook_leaves_open_ends_with_the_hook(void **state)
{
	int64_t before = live();

	tensor_scope {
		tensor *w = leaf(ok(tensor_ones(TENSOR_SHAPE(2, 2), F32)));
		tensor *y = ok(tensor_mul(w, w));

		assert_done(tensor_register_hook(y, enter_and_convert, w, NULL, NULL));
		assert_done(tensor_backward(ok(tensor_sum(y))));
		assert_int_equal(tensor_autocast_dtype(), TENSOR_DTYPE_NONE);
		assert_dtype(tensor_mm(w, w), TENSOR_F32);
		tensor_autocast(TENSOR_BF16) assert_dtype(tensor_mm(w, w), TENSOR_BF16);
		assert_dtype(tensor_mm(w, w), TENSOR_F32);
	}
	assert_int_equal(live(), before);
}

static void *leave_a_scope_open(void *w)
{
	tensor_scope {
		tensor_autocast_enter(TENSOR_BF16);
		ok(tensor_mm(w, w));
	}
	return NULL;
}

static void a_thread_that_leaves_a_scope_open_frees_its_conversions(void **state)
{
	tensor_scope {
		tensor *w = leaf(ok(tensor_ones(TENSOR_SHAPE(2, 2), F32)));
		int64_t before = live();
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, leave_a_scope_open, w), 0);
		pthread_join(thread, NULL);
		assert_int_equal(live(), before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_convert_as_in_pytorch),
		cmocka_unit_test(gradients_are_those_of_written_conversions),
		cmocka_unit_test(gradcheck_passes_through_a_scope),
		cmocka_unit_test(scopes_nest_and_turn_off),
		cmocka_unit_test(conversions_of_leaves_are_kept_for_the_scope),
		cmocka_unit_test(many_leaves_are_kept),
		cmocka_unit_test(scopes_belong_to_their_thread),
		cmocka_unit_test(a_checkpoint_runs_again_with_the_conversions_of_its_scope),
		cmocka_unit_test(samples_of_a_batch_are_converted),
		cmocka_unit_test(a_scope_that_a_hook_leaves_open_ends_with_the_hook),
		cmocka_unit_test(a_thread_that_leaves_a_scope_open_frees_its_conversions),
		cmocka_unit_test(other_dtypes_are_refused),
	};

	return cmocka_run_group_tests_name("autocast", tests, NULL, NULL);
}
