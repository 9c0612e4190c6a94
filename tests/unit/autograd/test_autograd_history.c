// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Changes of the graph: in-place operators on tensors and through views; graphs that are deep,
 * shared by threads, or traversed after a fork.
 */
#include "autograd.h"

#include <sys/wait.h>
#include <unistd.h>
/* ---- in-place ---- */

static void changed_saved_tensor_is_detected_by_its_version(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *x = iota(3, TENSOR_INTS(2)), *e;
		tensor *y = ok(tensor_sum(tensor_mul(w, x)));

		ok(tensor_add_scalar_(x, S(1)));
		assert_fails(tensor_backward(y), EINVAL,
			     "mul (MulBackward): saved tensor other [2] was changed in place: "
			     "expected version 1, found 2");
		assert_null(tensor_grad(w));
		e = ok(tensor_exp(w));
		ok(tensor_mul_scalar_(tensor_select(e, 0, 1), S(2)));
		assert_fails(tensor_backward(tensor_sum(e)), EINVAL, "saved tensor result");
	}
}

static void leaf_that_requires_grad_refuses_in_place(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *x = iota(0, TENSOR_INTS(2)), *v = NULL;

		assert_fails(tensor_add_(w, x), EINVAL, "leaf");
		assert_fails(tensor_zero_(w), EINVAL, "leaf");
		assert_fails(tensor_zero_(tensor_select(w, 0, 0)), EINVAL, "view of a leaf");
		assert_fails(tensor_add_out(x, w, w), EINVAL, "out=");
		assert_fails(tensor_add_out(w, x, x), EINVAL, "out=");
		assert_fails(tensor_gt_scalar(NULL, S(0)), EINVAL, "NULL");
		tensor_no_grad {
			v = ok(tensor_select(w, 0, 0));
			ok(tensor_zero_(v));
		}
		assert_false(tensor_requires_grad(v));
		assert_fails(tensor_zero_(v), EINVAL, "tensor_no_grad");
		assert_values(w, 0, 0, 2);
	}
}

static void in_place_result_continues_the_history(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *x = iota(2, TENSOR_INTS(2));
		tensor *y = ok(tensor_mul_scalar(w, S(3)));

		ok(tensor_mul_(y, tensor_add_scalar(w, S(1)))); /* 3w (w + 1) */
		assert_name(tensor_grad_fn(y), "MulBackward");
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(w), 0, 9, 15);
		ok(tensor_mul_(x, w)); /* a tensor without history gets one */
		assert_true(tensor_requires_grad(x) && !tensor_is_leaf(x));
		assert_done(tensor_set_grad(w, NULL));
		assert_done(tensor_backward(tensor_sum(x)));
		assert_values(tensor_grad(w), 0, 2, 3);
	}
}

static void in_place_on_a_view_rebases_the_base(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *buf = iota(0, TENSOR_INTS(3, 2)), *row;
		tensor *u = leaf_iota(1, TENSOR_INTS(3, 2)), *y;

		/* rows of a buffer without history are filled one by one */
		ok(tensor_copy_(tensor_select(buf, 0, 1), tensor_mul(w, w)));
		ok(tensor_copy_(tensor_select(buf, 0, 2), w));
		assert_name(tensor_grad_fn(buf), "CopySlices");
		y = ok(tensor_sum(tensor_mul(buf, iota(1, TENSOR_INTS(3, 2)))));
		assert_done(tensor_backward(y));
		assert_values(tensor_grad(w), 0, 2 * 1 * 3 + 5, 2 * 2 * 4 + 6);

		/* a row of a tensor that has a history */
		buf = ok(tensor_mul_scalar(u, S(2)));
		row = ok(tensor_select(buf, 0, 0));
		ok(tensor_mul_(row, w));
		assert_done(tensor_set_grad(w, NULL));
		y = ok(tensor_add(tensor_sum(buf), tensor_sum(row)));
		assert_done(tensor_backward(y));
		assert_values(tensor_grad(u), 0, 2 * 2, 2 * 2 * 2, 2, 2, 2, 2);
		assert_values(tensor_grad(w), 0, 2 * 2, 2 * 4);
	}
}

static void view_follows_a_change_of_its_base(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2, 2)), *b = ok(tensor_mul_scalar(w, S(1)));
		tensor *v = ok(tensor_t(b));

		ok(tensor_mul_scalar_(b, S(5)));
		assert_name(tensor_grad_fn(v), "AsStridedBackward");
		assert_done(tensor_backward(tensor_sum(tensor_mul(v, v))));
		assert_values(tensor_grad(w), 0, 50, 100, 150, 200);
	}
}

static void changed_view_is_released_after_backward(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *b = ok(tensor_mul_scalar(w, S(2))), *y;

		ok(tensor_exp_(tensor_select(b, 0, 1)));
		y = ok(tensor_sum(b));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, (tensor_list){ 0 }, NULL,
					       TENSOR_RETAIN_GRAPH));
		assert_done(tensor_backward(y));
		assert_values(tensor_grad(w), 1e-3, 4, 4 * exp(4));
		assert_fails(tensor_backward(y), EINVAL, "TENSOR_RETAIN_GRAPH");
	}
}

/* Views that were made before the first recorded change of their base get its history as well. */
static void views_from_before_get_the_history(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *buf = iota(0, TENSOR_INTS(2, 2));
		tensor *other = ok(tensor_select(buf, 0, 0)), *row = ok(tensor_select(buf, 0, 1));
		tensor *same = ok(tensor_view(buf, TENSOR_INTS(4)));

		ok(tensor_copy_(row, w));
		assert_true(tensor_requires_grad(other));
		ok(tensor_mul_(other, ok(tensor_mul_scalar(row, S(2)))));
		assert_values(same, 0, 0, 4, 1, 2);
		assert_done(tensor_backward(ok(tensor_sum(ok(tensor_mul(same, same))))));
		/* (0 2w)^2 + (1 2w)^2 + w^2 */
		assert_values(tensor_grad(w), 1e-12, 2, 20);
	}
}

/* In-place changes through complex views of real tensors and real views of complex tensors. */
static void complex_views_are_changed_in_place(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2, 2)), *x = ok(tensor_mul_scalar(w, S(1)));
		tensor *z = ok(tensor_view_as_complex(x)), *g;

		ok(tensor_mul_scalar_(z, tensor_scalar_complex(0, 2)));
		assert_values(x, 0, -4, 2, -8, 6);
		ok(tensor_mul_scalar_(ok(tensor_select(ok(tensor_view_as_real(z)), -1, 0)), S(3)));
		assert_values(x, 0, -12, 2, -24, 6);
		g = ok(tensor_sum(ok(tensor_mul(x, x))));
		assert_done(tensor_backward(g));
		/* x = (-6 w1, 2 w0) */
		assert_values(tensor_grad(w), 1e-12, 8, 144, 24, 288);
	}
}

/*
 * Two views without history: a view of a view made under no_grad, and a view made before its base
 * became a leaf. The latter fails only where the change would be recorded, and both fail only while
 * the base requires a gradient.
 */
static void views_without_history_are_guarded(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2, 2)), *b = iota(0, TENSOR_INTS(4)),
		       *v = NULL, *early;

		tensor_no_grad
			v = ok(tensor_select(w, 0, 0));
		assert_fails(tensor_zero_(ok(tensor_select(v, 0, 0))), EINVAL, "tensor_no_grad");
		early = ok(tensor_view(b, TENSOR_INTS(2, 2)));
		assert_done(tensor_set_requires_grad(b, true));
		assert_fails(tensor_mul_(early, w), EINVAL, "before its base required a gradient");
		assert_fails(tensor_mul_(ok(tensor_alias(early)), w), EINVAL, "before its base");
		ok(tensor_add_scalar_(early, S(1)));
		ok(tensor_sub_scalar_(ok(tensor_alias(early)), S(1)));
		assert_done(tensor_set_requires_grad(b, false));
		ok(tensor_mul_(early, ok(tensor_ones(TENSOR_INTS(2, 2), F32))));
		assert_done(tensor_set_requires_grad(b, true));
		early = ok(tensor_view(b, TENSOR_INTS(2, 2)));
		assert_done(tensor_set_requires_grad(b, false));
		assert_fails(tensor_zero_(early), EINVAL, "leaf");
		assert_values(w, 0, 1, 2, 3, 4);
		assert_values(b, 0, 0, 1, 2, 3);
	}
}

/* A view of an empty tensor may have an offset past the end of its storage. */
static void parts_of_empty_tensors_have_a_history(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_zeros(TENSOR_INTS(0, 100), F32))),
		       *y = ok(tensor_mul_scalar(x, S(2)));
		tensor *part = ok(tensor_narrow(y, 1, 50, 50));

		ok(tensor_mul_scalar_(part, S(3)));
		ok(tensor_neg_(ok(tensor_narrow(y, 1, 99, 1))));
		ok(tensor_mul_scalar_(part, S(2)));
		assert_done(tensor_backward(
			ok(tensor_sum(ok(tensor_add(ok(tensor_sum(part)), ok(tensor_sum(y))))))));
		assert_shape(tensor_grad(x), 0, 100);
	}
}

/* ---- size and threads ---- */

#ifdef __SANITIZE_ADDRESS__
#define DEPTH 100000
#else
#define DEPTH 1000000
#endif

static void graph_of_a_million_nodes_needs_no_stack(void **state)
{
	tensor_scope {
		tensor *w = leaf(ok(tensor_full(TENSOR_SCALAR_SHAPE, S(1.0), F64)));
		tensor *y = tensor_retain(w), *g;

		for (int i = 0; i < DEPTH; i++) {
			tensor *next = NULL;

			tensor_scope {
				next = tensor_keep(ok(tensor_add_scalar(y, S(1))));
			}
			tensor_release(y);
			y = next;
		}
		assert_values(y, 0, DEPTH + 1);
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(w), &g,
					       TENSOR_RETAIN_GRAPH));
		assert_values(g, 0, 1);
		assert_done(tensor_backward(y));
		assert_values(tensor_grad(w), 0, 1);
		tensor_release(y);
	}
}

static void backward_works_after_fork(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_sum(tensor_mul(w, w)));
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(tensor_backward(y) == 0 && tensor_grad(w) ? 0 : 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_null(tensor_grad(w));
		assert_done(tensor_backward(y));
		assert_values(tensor_grad(w), 0, 2, 4);
	}
}

/*
 * The graph keeps the nodes and tensors that the caller released, and frees them with the last
 * reference.
 */
static void graph_keeps_released_tensors(void **state)
{
	tensor *y = NULL, *w = NULL;

	tensor_scope {
		w = leaf(iota(1, TENSOR_INTS(2)));
		tensor_keep(w);
		y = tensor_keep(ok(tensor_sum(tensor_mul(tensor_exp(w), tensor_neg(w)))));
	}
	assert_done(tensor_backward(y));
	assert_values(tensor_grad(w), 1e-4, -2 * exp(1), -3 * exp(2));
	tensor_release(y);
	tensor_release(w);
}

static void detach_makes_a_leaf(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(4), F32)), *y;

		assert_done(tensor_set_requires_grad(x, true));
		y = ok(tensor_mul_scalar(x, tensor_scalar_int(2)));
		assert_fails(tensor_detach_(ok(tensor_slice(y, 0, 0, 2, 1))), EINVAL, "view");
		assert_ptr_equal(tensor_detach_(y), y);
		assert_false(tensor_requires_grad(y));
		assert_true(tensor_is_leaf(y));
		assert_ptr_equal(tensor_detach_(x), x);
		assert_false(tensor_requires_grad(x));
		assert_done(tensor_set_requires_grad(y, true));
		assert_done(tensor_backward(ok(tensor_sum(y))));
		assert_values(tensor_grad(y), 0, 1, 1, 1, 1);
	}
}

static void as_strided_in_place_keeps_the_history(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(4), F32)), *y;

		assert_done(tensor_set_requires_grad(x, true));
		y = ok(tensor_mul_scalar(x, tensor_scalar_int(3)));
		assert_fails(tensor_as_strided_(x, TENSOR_INTS(2), TENSOR_INTS(2), 0), EINVAL,
			     "leaf");
		assert_ptr_equal(tensor_as_strided_(y, TENSOR_INTS(2), TENSOR_INTS(2), 1), y);
		assert_values(y, 0, 3, 3);
		assert_done(tensor_backward(ok(tensor_sum(y))));
		assert_values(tensor_grad(x), 0, 0, 3, 0, 3);
	}
}

/* x * 3 with its shape changed in place: the gradient reaches the right elements of x. */
static void geometry_in_place_keeps_the_history(void **state)
{
	tensor_scope {
		tensor *x = leaf(iota(0, TENSOR_INTS(2, 1, 3))), *w = iota(1, TENSOR_INTS(3, 2)),
		       *y;

		y = ok(tensor_mul_scalar(x, tensor_scalar_int(3)));
		assert_ptr_equal(tensor_squeeze_dim_(y, 1), y);
		assert_ptr_equal(tensor_t_(y), y);
		assert_shape(y, 3, 2);
		assert_values(y, 0, 0, 9, 3, 12, 6, 15);
		assert_ptr_equal(tensor_unsqueeze_(y, 0), y);
		assert_ptr_equal(tensor_transpose_(y, 0, 2), y);
		assert_shape(y, 2, 3, 1);
		assert_ptr_equal(tensor_squeeze_(y), y);
		assert_ptr_equal(tensor_swapaxes_(y, -1, 0), y);
		assert_done(tensor_backward(ok(tensor_sum(tensor_mul(y, w)))));
		assert_values(tensor_grad(x), 0, 3, 9, 15, 6, 12, 18);
	}
}

static void geometry_of_a_view_changes_in_place(void **state)
{
	tensor_scope {
		tensor *x = leaf(iota(0, TENSOR_INTS(2, 3))), *y, *v, *other;

		y = ok(tensor_mul_scalar(x, tensor_scalar_int(2)));
		v = ok(tensor_slice(y, 1, 1, TENSOR_NONE, 1));
		other = ok(tensor_select(y, 0, 1));
		ok(tensor_t_(v));
		assert_values(v, 0, 2, 8, 4, 10);
		/*
		 * The view is written to in its new shape; the other view and the base change as
		 * well.
		 */
		ok(tensor_mul_(v, iota(1, TENSOR_INTS(2, 2))));
		assert_values(other, 0, 6, 16, 40);
		/* The shape of the base changes; its views are regenerated. */
		ok(tensor_t_(y));
		ok(tensor_mul_scalar_(other, tensor_scalar_int(10)));
		assert_values(y, 0, 0, 60, 2, 160, 12, 400);
		assert_done(tensor_backward(ok(tensor_sum(tensor_select(y, 1, 1)))));
		assert_values(tensor_grad(x), 0, 0, 0, 0, 20, 40, 80);
		tensor_set_grad(x, NULL);
	}
}

static void geometry_of_leaves_cannot_change(void **state)
{
	tensor_scope {
		tensor *x = leaf(iota(0, TENSOR_INTS(2, 2))), *v = ok(tensor_select(x, 0, 0)),
		       *hidden = NULL;

		assert_fails(tensor_t_(x), EINVAL, "leaf");
		assert_fails(tensor_unsqueeze_(v, 0), EINVAL, "leaf");
		tensor_no_grad {
			assert_fails(tensor_t_(x), EINVAL, "leaf");
			hidden = ok(tensor_select(x, 0, 0));
			assert_ptr_equal(tensor_unsqueeze_(hidden, 0), hidden);
			/* The history of a view that was made before is updated as well. */
			assert_ptr_equal(tensor_unsqueeze_(v, 1), v);
		}
		assert_shape(x, 2, 2);
		assert_shape(hidden, 1, 2);
		assert_fails(tensor_t_(hidden), EINVAL, "no_grad");
		assert_done(
			tensor_backward(ok(tensor_sum(tensor_mul(v, iota(1, TENSOR_INTS(2, 1)))))));
		assert_values(tensor_grad(x), 0, 1, 2, 0, 0);
		assert_done(tensor_set_grad(x, NULL));
		/* A saved tensor keeps the shape that it had when it was saved. */
		hidden = iota(1, TENSOR_INTS(2, 2));
		v = ok(tensor_mul(x, hidden));
		ok(tensor_t_(hidden));
		assert_done(tensor_backward(ok(tensor_sum(v))));
		assert_values(tensor_grad(x), 0, 1, 2, 3, 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changed_saved_tensor_is_detected_by_its_version),
		cmocka_unit_test(leaf_that_requires_grad_refuses_in_place),
		cmocka_unit_test(in_place_result_continues_the_history),
		cmocka_unit_test(in_place_on_a_view_rebases_the_base),
		cmocka_unit_test(view_follows_a_change_of_its_base),
		cmocka_unit_test(changed_view_is_released_after_backward),
		cmocka_unit_test(views_from_before_get_the_history),
		cmocka_unit_test(complex_views_are_changed_in_place),
		cmocka_unit_test(views_without_history_are_guarded),
		cmocka_unit_test(parts_of_empty_tensors_have_a_history),
		cmocka_unit_test(graph_of_a_million_nodes_needs_no_stack),
		cmocka_unit_test(backward_works_after_fork),
		cmocka_unit_test(graph_keeps_released_tensors),
		cmocka_unit_test(detach_makes_a_leaf),
		cmocka_unit_test(as_strided_in_place_keeps_the_history),
		cmocka_unit_test(geometry_in_place_keeps_the_history),
		cmocka_unit_test(geometry_of_a_view_changes_in_place),
		cmocka_unit_test(geometry_of_leaves_cannot_change),
	};

	return cmocka_run_group_tests_name("autograd_history", tests, NULL, NULL);
}
