// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: operators without a kernel run on the CPU, through copies. */
#include "cuda_results.h"

#include <stdio.h>
#include <unistd.h>

/* The text that goes to stderr between the two calls. */
static FILE *caught;
static int before;

static void catch_begin(void)
{
	fflush(stderr);
	caught = tmpfile();
	assert_non_null(caught);
	before = dup(2);
	assert_true(before >= 0 && dup2(fileno(caught), 2) == 2);
}

static void catch_end(char *text, size_t size)
{
	fflush(stderr);
	assert_true(dup2(before, 2) == 2);
	close(before);
	rewind(caught);
	text[fread(text, 1, size - 1, caught)] = 0;
	fclose(caught);
}

/* The results are complex. */
#define assert_same_parts(gpu, cpu, tol) \
	assert_near(tensor_view_as_real(ok(gpu)), tensor_view_as_real(ok(cpu)), tol)

static void results_are_those_of_the_cpu(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 4), TENSOR_F64), *g = on_cuda(a);
		tensor *w, *v, *gw, *gv;

		assert_done(tensor_linalg_eig(a, &w, &v));
		assert_done(tensor_linalg_eig(g, &gw, &gv));
		assert_same_parts(gw, w, 0);
		assert_same_parts(gv, v, 0);
		assert_near(g, a, 0);
		assert_true(tensor_cuda_fallbacks("linalg_eig") > 0);
		assert_true(tensor_cuda_fallbacks(NULL) >= tensor_cuda_fallbacks("linalg_eig"));
		assert_int_equal(tensor_cuda_fallbacks("add.Tensor"), 0);
		assert_fails(tensor_cuda_fallbacks("no_operator"), ENOENT, "no_operator");
	}
}

static void the_first_call_prints_a_warning(void **state)
{
	char text[1000];

	NEED_DEVICE();
	tensor_scope {
		tensor *g = on_cuda(pseudo_random(TENSOR_SHAPE(3, 3), TENSOR_F64)), *first, *second;

		catch_begin();
		first = tensor_linalg_eigvals(tensor_mm(g, tensor_t(g)));
		catch_end(text, sizeof(text));
		ok(first);
		assert_non_null(strstr(text, "linalg_eigvals"));
		assert_non_null(strstr(text, "no kernel for cuda:0 and runs on the CPU"));
		catch_begin();
		second = tensor_linalg_eigvals(tensor_mm(g, tensor_t(g)));
		catch_end(text, sizeof(text));
		ok(second);
		assert_string_equal(text, "");
	}
}

static void written_arguments_are_copied_back(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 4), TENSOR_F64), *g = on_cuda(a);
		tensor *out[2], *w, *v;

		for (int i = 0; i < 2; i++)
			out[i] = ok(tensor_zeros(TENSOR_INTS(0), CUDA_OF(TENSOR_C128)));
		/* Resized by the operator. */
		assert_done(tensor_linalg_eig_out(out[0], out[1], g));
		assert_done(tensor_linalg_eig(a, &w, &v));
		assert_same_parts(out[0], w, 0);
		assert_same_parts(out[1], v, 0);
	}
}

static void errors_leave_nothing_behind(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *g = on_cuda(pseudo_random(TENSOR_SHAPE(3, 4), TENSOR_F64));

		assert_fails(tensor_linalg_eigvals(g), EINVAL, "linalg_eig");
		assert_done(tensor_cuda_synchronize(0));
	}
}

static void it_can_be_forbidden(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *g = on_cuda(pseudo_random(TENSOR_SHAPE(3, 3), TENSOR_F64));

		assert_true(tensor_cuda_set_fallback(false));
		assert_fails(tensor_linalg_eigvals(g), EOPNOTSUPP, "no kernel for CUDA");
		assert_false(tensor_cuda_set_fallback(true));
		ok(tensor_linalg_eigvals(g));
	}
}

/* A kernel that lacks the dtype: functional, in-place and out forms, within a composite, and with several results. */
static void dtypes_without_a_kernel(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *c = ok(
			tensor_view_as_complex(pseudo_random(TENSOR_SHAPE(3, 4, 2), TENSOR_F32)));
		tensor *i = pseudo_random(TENSOR_SHAPE(3, 4), TENSOR_I32), *gc = on_cuda(c);
		tensor *gi = on_cuda(i), *out = on_cuda(pseudo_random(TENSOR_SHAPE(0), TENSOR_I32));
		tensor *view = tensor_t(on_cuda(pseudo_random(TENSOR_SHAPE(3, 3), TENSOR_I32)));
		tensor *var, *mean, *hvar, *hmean;
		const int64_t calls = tensor_cuda_fallbacks("mm");

		assert_near(tensor_linalg_vector_norm(gc, TENSOR_SCALAR(2), TENSOR_INTS(1), false),
			    tensor_linalg_vector_norm(c, TENSOR_SCALAR(2), TENSOR_INTS(1), false),
			    0);
		assert_near(tensor_matmul(gi, tensor_t(gi)), tensor_matmul(i, tensor_t(i)), 0);
		assert_int_equal(tensor_cuda_fallbacks("mm"), calls + 1);
		ok(tensor_mm_out(out, gi, tensor_t(gi)));
		assert_near(out, tensor_mm(i, tensor_t(i)), 0);
		ok(tensor_mm_out(view, gi, tensor_t(gi)));
		assert_near(view, tensor_mm(i, tensor_t(i)), 0);
		assert_done(tensor_var_mean_correction(gc, TENSOR_INTS(0), &var, &mean));
		assert_done(tensor_var_mean_correction(c, TENSOR_INTS(0), &hvar, &hmean));
		assert_near(var, hvar, 0);
		assert_near(tensor_real(mean), tensor_real(hmean), 0);
		assert_true(tensor_cuda_set_fallback(false));
		assert_fails(tensor_mm(gi, tensor_t(gi)), EOPNOTSUPP,
			     "no kernel for dtype i32 on cuda");
		assert_fails(tensor_add_out(out, gc, gi), EINVAL, "");
		assert_false(tensor_cuda_set_fallback(true));
		/* An error of the operator is its own. */
		assert_fails(tensor_mm(gi, gi), EINVAL, "mm");
	}
}

/* The mean needs two kernels, one of which CUDA lacks: self is not changed before that is known. */
static void in_place_forms_start_over(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 3), TENSOR_F32), *g = on_cuda(a);
		tensor *source = pseudo_random(TENSOR_SHAPE(3, 3), TENSOR_F32);
		tensor *index = integers(TENSOR_SHAPE(3), (int64_t[]){ 1, 1, 3 });

		ok(tensor_index_reduce_(a, 0, index, source, "mean"));
		ok(tensor_index_reduce_(g, 0, on_cuda(index), on_cuda(source), "mean"));
		assert_near(g, a, 1e-6);
	}
}

static void gradients_pass_through(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(3, 3), TENSOR_F64), *g = on_cuda(a);

		assert_done(tensor_set_requires_grad(a, true));
		assert_done(tensor_set_requires_grad(g, true));
		assert_done(tensor_backward(tensor_sum(tensor_real(tensor_linalg_eigvals(a)))));
		assert_done(tensor_backward(tensor_sum(tensor_real(tensor_linalg_eigvals(g)))));
		assert_near(tensor_grad(g), tensor_grad(a), 1e-9);
	}
}

/* Reductions and additions at indices of a dtype that CUDA only stores. */
static void other_dtypes_without_a_kernel(void **state)
{
	static const int64_t places[] = { 2, 0, 2 };

	NEED_DEVICE();
	tensor_scope {
		tensor *a =
			ok(tensor_to(pseudo_random(TENSOR_SHAPE(3, 5), TENSOR_U8), OF(TENSOR_U16)));
		tensor *g = on_cuda(a), *at = integers(TENSOR_SHAPE(3), places);
		tensor *b = ok(tensor_clone(a)), *h = on_cuda(a);
		const int64_t calls = tensor_cuda_fallbacks("amax");

		assert_near(tensor_amax(g, TENSOR_INTS(1), false),
			    tensor_amax(a, TENSOR_INTS(1), false), 0);
		assert_int_equal(tensor_cuda_fallbacks("amax"), calls + 1);
		ok(tensor_index_add_(b, 0, at, a));
		ok(tensor_index_add_(h, 0, on_cuda(at), g));
		assert_near(h, b, 0);
		assert_near(tensor_amax_out(on_cuda(tensor_clone(ok(tensor_select(a, 0, 0)))), g,
					    TENSOR_INTS(0), false),
			    tensor_amax(a, TENSOR_INTS(0), false), 0);
		assert_true(tensor_cuda_set_fallback(false));
		assert_fails(tensor_amax(g, TENSOR_INTS(1), false), EOPNOTSUPP,
			     "no kernel for dtype u16 on cuda");
		assert_false(tensor_cuda_set_fallback(true));
		/* Other dtypes do not need it. */
		ok(tensor_amax(on_cuda(ok(tensor_to(a, F32))), TENSOR_INTS(1), false));
		assert_int_equal(tensor_cuda_fallbacks("amax"), calls + 1);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_those_of_the_cpu),
		cmocka_unit_test(the_first_call_prints_a_warning),
		cmocka_unit_test(written_arguments_are_copied_back),
		cmocka_unit_test(errors_leave_nothing_behind),
		cmocka_unit_test(it_can_be_forbidden),
		cmocka_unit_test(dtypes_without_a_kernel),
		cmocka_unit_test(in_place_forms_start_over),
		cmocka_unit_test(gradients_pass_through),
		cmocka_unit_test(other_dtypes_without_a_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
