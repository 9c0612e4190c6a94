// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Modes of a thread: no_grad, enable_grad, inference mode, anomaly mode. */
#include "autograd.h"

#include <pthread.h>

static void enable_grad_within_no_grad(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = NULL, *z = NULL;

		tensor_no_grad {
			z = ok(tensor_neg(x));
			tensor_enable_grad y = ok(tensor_neg(x));
			assert_false(tensor_is_grad_enabled());
		}
		assert_true(tensor_is_grad_enabled());
		assert_true(tensor_requires_grad(y));
		assert_false(tensor_requires_grad(z));
		for (int i = 0; i < 2; i++)
			tensor_no_grad
				break;
		assert_true(tensor_is_grad_enabled());
	}
}

static void inference_mode_records_nothing(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = NULL, *v = NULL,
		       *normal = iota(0, TENSOR_INTS(2));

		tensor_inference_mode
		{
			assert_true(tensor_is_inference_mode_enabled());
			assert_false(tensor_is_grad_enabled());
			y = ok(tensor_mul(x, x));
			v = ok(tensor_slice(x, 0, 0, 1, 1));
			ok(tensor_add_scalar_(y, S(1)));
			ok(tensor_add_scalar_(normal, S(1)));
			tensor_no_grad
				assert_true(tensor_is_inference_mode_enabled());
		}
		assert_false(tensor_is_inference_mode_enabled());
		assert_true(tensor_is_grad_enabled());
		assert_false(tensor_requires_grad(y));
		assert_true(tensor_is_inference(y));
		assert_true(tensor_is_inference(v));
		assert_false(tensor_is_inference(x));
		assert_false(tensor_is_inference(normal));
		assert_values(y, 0, 2, 5);
		assert_values(normal, 0, 1, 2);
	}
}

static void inference_tensors_are_read_only_outside(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = NULL, *v = NULL, *z;

		tensor_inference_mode
		{
			y = ok(tensor_mul(x, x));
			v = ok(tensor_slice(x, 0, 0, 1, 1));
		}
		assert_fails(tensor_add_scalar_(y, S(1)), EPERM, "inference mode");
		assert_fails(tensor_add_scalar_(v, S(1)), EPERM, "inference mode");
		assert_fails(tensor_add_scalar_(ok(tensor_slice(y, 0, 0, 1, 1)), S(1)), EPERM,
			     "inference mode");
		assert_fails(tensor_add_out(y, ok(tensor_detach(x)), ok(tensor_detach(x))), EPERM,
			     "inference mode");
		assert_fails(tensor_set_requires_grad(y, true), EINVAL, "inference mode");
		assert_fails(tensor_mul(x, y), EINVAL,
			     "mul: a tensor that was made in inference mode");
		z = ok(tensor_sum(tensor_mul(x, tensor_clone(y))));
		assert_done(tensor_backward(z));
		assert_values(tensor_grad(x), 0, 1, 4);
		assert_done(tensor_set_requires_grad(ok(tensor_clone(y)), true));
		/* Not saved: only read. */
		ok(tensor_add(x, y));
	}
}

static void backward_in_inference_mode_gives_normal_gradients(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_sum(tensor_mul(x, x)));

		tensor_inference_mode assert_done(tensor_backward(y));
		assert_false(tensor_is_inference(tensor_grad(x)));
		assert_done(tensor_backward(ok(tensor_sum(tensor_mul(x, x)))));
		assert_values(tensor_grad(x), 0, 4, 8);
	}
}

static void *in_thread(void *arg)
{
	bool *modes = arg;

	modes[0] = tensor_is_grad_enabled();
	modes[1] = tensor_is_inference_mode_enabled();
	return NULL;
}

static void modes_belong_to_a_thread(void **state)
{
	bool modes[2] = { false, true };
	pthread_t thread;

	tensor_inference_mode
	{
		assert_int_equal(pthread_create(&thread, NULL, in_thread, modes), 0);
		pthread_join(thread, NULL);
	}
	assert_true(modes[0]);
	assert_false(modes[1]);
}

/* sqrt(0) * 0 has the gradient 0 * inf. */
static void anomaly_mode_names_the_node_and_the_line(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_zeros(TENSOR_INTS(2), F32))), *y, *z = NULL;
		char line[64];

		y = ok(tensor_sum(tensor_mul_scalar(tensor_sqrt(x), S(0))));
		assert_done(tensor_backward(y));
		y = ok(tensor_sum(tensor_mul_scalar(tensor_sqrt(x), S(0))));
		tensor_anomaly_mode assert_fails(tensor_backward(y), EDOM,
						 "SqrtBackward): gradient 0 [2] has NaN; record");
		tensor_anomaly_mode
		{
			snprintf(line, sizeof(line), "tensor_sqrt at test_autograd_modes.c:%d",
				 __LINE__ + 1);
			y = ok(tensor_sqrt(x));
			z = ok(tensor_sum(tensor_mul_scalar(y, S(0))));
			assert_fails(tensor_backward(z), EDOM, line);
		}
	}
}

static void anomaly_mode_explains_other_failures(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *h = ok(tensor_exp(x)), *y = NULL;

		tensor_anomaly_mode
		{
			y = ok(tensor_mul(h, h));
			y = ok(tensor_sum(y));
			ok(tensor_zero_(h));
			assert_fails(tensor_backward(y), EINVAL, "changed in place");
			assert_non_null(strstr(tensor_last_error()->text,
					       "the program called tensor_mul at"));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enable_grad_within_no_grad),
		cmocka_unit_test(inference_mode_records_nothing),
		cmocka_unit_test(inference_tensors_are_read_only_outside),
		cmocka_unit_test(backward_in_inference_mode_gives_normal_gradients),
		cmocka_unit_test(modes_belong_to_a_thread),
		cmocka_unit_test(anomaly_mode_names_the_node_and_the_line),
		cmocka_unit_test(anomaly_mode_explains_other_failures),
	};

	return cmocka_run_group_tests_name("autograd_modes", tests, NULL, NULL);
}
