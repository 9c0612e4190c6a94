// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * CUDA: products of sparse matrices by cuSPARSE on the emulation, whose stand-in counts and checks calls; without cuSPARSE, with an
 * old one, and with calls of it that fail. test_cuda_sparse.c compares more operators.
 */
#include "cuda_graph.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <pthread.h>

#define NEVER (1ul << 60)

static struct {
	__typeof__(&cuda_host_fail) inject;
	__typeof__(&cuda_host_calls) calls;
} host;

/* False without the emulation, or if the plugin has another cuSPARSE than its own. */
static bool emulated(void)
{
	const char *name = getenv("TENSOR_CUSPARSE");

	host.inject = emulation("cuda_host_fail");
	host.calls = emulation("cuda_host_calls");
	return host.inject && host.calls && name && strstr(name, "cuda-host");
}

#define NEED_EMULATION()                                            \
	do {                                                        \
		if (!emulated()) {                                  \
			print_message("# skipped: no emulation\n"); \
			skip();                                     \
		}                                                   \
	} while (0)

static void count_products(void)
{
	host.inject("cusparseSpMM", NEVER, 1);
}

static unsigned long counted(void)
{
	unsigned long n = host.calls();

	host.inject(NULL, 0, 0);
	return n;
}

static bool is_complex(enum tensor_dtype d)
{
	return d == TENSOR_C64 || d == TENSOR_C128;
}

static tensor *matrix(int64_t rows, int64_t columns, enum tensor_dtype d)
{
	const enum tensor_dtype part = d == TENSOR_C64 ? TENSOR_F32 : TENSOR_F64;

	return is_complex(d) ? ok(tensor_view_as_complex(
				       pseudo_random(TENSOR_SHAPE(rows, columns, 2), part))) :
			       pseudo_random(TENSOR_SHAPE(rows, columns), d);
}

static void assert_result(tensor *a, tensor *b, enum tensor_dtype d)
{
	const double tol = d == TENSOR_F64 || d == TENSOR_C128 ? 1e-12 :
			   d == TENSOR_BF16		       ? 5e-2 :
								 1e-4;

	if (is_complex(d)) {
		a = tensor_view_as_real(ok(a));
		b = tensor_view_as_real(ok(b));
	}
	assert_near(a, b, tol);
}

/* [7, 11] in compressed rows with about a third of its elements, none of them in row 2. */
static tensor *sparse(enum tensor_dtype d)
{
	tensor *mask =
		ok(tensor_lt_scalar(pseudo_random(TENSOR_SHAPE(7, 11), TENSOR_F64), S(-0.3)));
	tensor *full = matrix(7, 11, d);

	ok(tensor_fill_(tensor_select(mask, 0, 2), S(0)));
	return ok(tensor_to_sparse_csr(
		ok(tensor_mul(full, tensor_to(mask, TENSOR_OPTIONS(.dtype = d))))));
}

static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_C64, TENSOR_C128,
					    TENSOR_BF16 };

static void products_are_those_of_the_cpu(void **state)
{
	NEED_EMULATION();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		for (int64_t n = 5; n < 40; n += 14)
			tensor_scope {
				const enum tensor_dtype d = dtypes[i];
				tensor *a = sparse(d), *x = matrix(11, n, d), *c = matrix(7, n, d);
				tensor *g = on_cuda(a), *left = matrix(n, 7, d);

				count_products();
				assert_result(tensor_mm(g, on_cuda(x)), tensor_mm(a, x), d);
				assert_result(tensor_addmm_opt(on_cuda(c), g, on_cuda(x), S(2),
							       S(3)),
					      tensor_addmm_opt(c, a, x, S(2), S(3)), d);
				assert_result(tensor_mm(on_cuda(left), g), tensor_mm(left, a), d);
				assert_int_equal(counted(), 3);
			}
}

/* Rows of the dense matrix that are apart, or adjacent columns. */
static void views_are_multiplied(void **state)
{
	NEED_EMULATION();
	tensor_scope {
		tensor *a = sparse(TENSOR_F32), *g = on_cuda(a);
		tensor *x = matrix(11, 20, TENSOR_F32), *y = matrix(9, 11, TENSOR_F32);

		count_products();
		assert_result(tensor_mm(g, tensor_narrow(on_cuda(x), 1, 4, 9)),
			      tensor_mm(a, tensor_narrow(x, 1, 4, 9)), TENSOR_F32);
		assert_result(tensor_mm(g, tensor_t(on_cuda(y))), tensor_mm(a, tensor_t(y)),
			      TENSOR_F32);
		assert_int_equal(counted(), 2);
	}
}

/* Each is computed, by the kernels of the plugin. */
static void other_products_do_not_need_it(void **state)
{
	NEED_EMULATION();
	tensor_scope {
		tensor *a = sparse(TENSOR_F32), *g = on_cuda(a), *x = matrix(11, 9, TENSOR_F32);
		tensor *c = matrix(7, 9, TENSOR_F32), *i = sparse(TENSOR_I64), *empty, *inf;
		tensor *xi = matrix(11, 9, TENSOR_I64);

		count_products();
		/* Few columns, rows that overlap, an offset, integers, no entries. */
		assert_result(tensor_mm(g, tensor_narrow(on_cuda(x), 1, 0, 4)),
			      tensor_mm(a, tensor_narrow(x, 1, 0, 4)), TENSOR_F32);
		assert_result(
			tensor_mm(g, tensor_expand(tensor_narrow(on_cuda(x), 0, 0, 1),
						   TENSOR_SHAPE(11, 9))),
			tensor_mm(a, tensor_expand(tensor_narrow(x, 0, 0, 1), TENSOR_SHAPE(11, 9))),
			TENSOR_F32);
		assert_result(tensor_mm(g, tensor_narrow(on_cuda(x), 1, 1, 8)),
			      tensor_mm(a, tensor_narrow(x, 1, 1, 8)), TENSOR_F32);
		assert_near(tensor_mm(on_cuda(i), on_cuda(xi)), tensor_mm(i, xi), 0);
		empty = ok(tensor_to_sparse_csr(ok(tensor_zeros(TENSOR_SHAPE(7, 11), CPU))));
		assert_result(tensor_addmm_opt(on_cuda(c), on_cuda(empty), on_cuda(x), S(2), S(3)),
			      tensor_addmm_opt(c, empty, x, S(2), S(3)), TENSOR_F32);
		/* A factor of 0 does not hide an infinity, as on the CPU. */
		inf = ok(tensor_full(TENSOR_SHAPE(11, 9), S(__builtin_inf()), CPU));
		assert_near(tensor_isnan(tensor_addmm_opt(on_cuda(c), g, on_cuda(inf), S(1), S(0))),
			    tensor_isnan(tensor_addmm_opt(c, a, inf, S(1), S(0))), 0);
		assert_int_equal(counted(), 0);
	}
}

/* A beta of 0 does not read the result; infinities and NaN go through. */
static void values_that_are_not_finite_are_those_of_the_cpu(void **state)
{
	NEED_EMULATION();
	tensor_scope {
		tensor *a = sparse(TENSOR_F32), *x = matrix(11, 9, TENSOR_F32), *y, *r;

		ok(tensor_fill_(tensor_select(x, 0, 3), S(__builtin_inf())));
		ok(tensor_fill_(tensor_select(x, 0, 4), S(__builtin_nan(""))));
		y = ok(tensor_mm(on_cuda(a), on_cuda(x)));
		r = ok(tensor_mm(a, x));
		assert_near(tensor_isnan(y), tensor_isnan(r), 0);
		assert_near(tensor_isinf(y), tensor_isinf(r), 0);
		y = ok(tensor_full(TENSOR_SHAPE(7, 9), S(__builtin_nan("")), CPU));
		x = matrix(11, 9, TENSOR_F32);
		assert_result(tensor_addmm_opt(on_cuda(y), on_cuda(a), on_cuda(x), S(0), S(1)),
			      tensor_mm(a, x), TENSOR_F32);
	}
}

static void failing_calls_leave_other_kernels_or_an_error(void **state)
{
	static const char *const functions[] = { "cusparseSetStream", "cusparseCreateConstCsr",
						 "cusparseCreateDnMat", "cusparseSpMM_bufferSize",
						 "cusparseSpMM" };

	NEED_EMULATION();
	tensor_scope {
		tensor *a = sparse(TENSOR_F64), *g = on_cuda(a), *x = matrix(11, 6, TENSOR_F64), *y;

		y = on_cuda(x);
		for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
			host.inject(functions[i], 1, 10);
			assert_result(tensor_mm(g, y), tensor_mm(a, x), TENSOR_F64);
			host.inject(functions[i], 1, 2);
			tensor_clear_error();
			assert_null(tensor_mm(g, y));
			assert_int_equal(tensor_last_error()->code, ENOMEM);
			host.inject(functions[i], 1, 6);
			assert_null(tensor_mm(g, y));
			assert_int_equal(tensor_last_error()->code, EIO);
			assert_non_null(strstr(tensor_last_error()->text, "cuSPARSE"));
		}
		host.inject(NULL, 0, 0);
		assert_result(tensor_mm(g, y), tensor_mm(a, x), TENSOR_F64);
	}
}

static void a_graph_has_products(void **state)
{
	NEED_EMULATION();
	tensor_scope {
		tensor_cuda_graph *graph = new_graph();
		tensor *a = sparse(TENSOR_F32), *g = on_cuda(a), *x = matrix(11, 6, TENSOR_F32);
		tensor *input = on_cuda(x), *y, *next = matrix(11, 6, TENSOR_F32);

		count_products();
		assert_done(tensor_cuda_graph_capture_begin(graph, NULL));
		y = ok(tensor_mm(g, input));
		assert_done(tensor_cuda_graph_capture_end(graph));
		assert_int_equal(counted(), 1);
		assert_done(tensor_cuda_graph_replay(graph));
		assert_result(y, tensor_mm(a, x), TENSOR_F32);
		ok(tensor_copy_(input, next));
		assert_done(tensor_cuda_graph_replay(graph));
		assert_result(y, tensor_mm(a, next), TENSOR_F32);
		assert_done(tensor_cuda_synchronize(0));
		assert_done(tensor_cuda_graph_release(graph));
	}
}

struct operands {
	tensor *a, *x, *expected;
};

static void *multiply_often(void *arg)
{
	const struct operands *o = arg;

	tensor_cuda_set_stream(0, tensor_cuda_stream(0, 0));
	for (int i = 0; i < 30; i++)
		tensor_scope {
			tensor *y = tensor_to(tensor_mm(o->a, o->x), CPU);

			if (!y || memcmp(tensor_data(y), tensor_data(o->expected), 7 * 16 * 4) != 0)
				return "another result";
		}
	return NULL;
}

/* The handle of a device has one stream at a time. Equal calls have equal bits. */
static void threads_share_a_handle(void **state)
{
	struct operands o;
	pthread_t threads[3];
	void *error;

	NEED_EMULATION();
	tensor_scope {
		o.a = on_cuda(sparse(TENSOR_F32));
		o.x = on_cuda(matrix(11, 16, TENSOR_F32));
		o.expected = ok(tensor_to(ok(tensor_mm(o.a, o.x)), CPU));
		for (int i = 0; i < 3; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, multiply_often, &o), 0);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(pthread_join(threads[i], &error), 0);
			if (error)
				fail_msg("%s", (char *)error);
		}
	}
}

/* ---- without it ---- */

static void multiply_without(void)
{
	host.inject = emulation("cuda_host_fail");
	host.calls = emulation("cuda_host_calls");
	tensor_scope {
		tensor *a = sparse(TENSOR_F32), *x = matrix(11, 8, TENSOR_F32), *y = on_cuda(x);
		tensor *g = on_cuda(a);

		if (host.inject)
			count_products();
		assert_result(tensor_mm(g, y), tensor_mm(a, x), TENSOR_F32);
		assert_int_equal(tensor_cuda_fallbacks("mm"), 0);
		assert_int_equal(host.inject ? counted() : 0, 0);
	}
}

/* It is tried once. */
static void multiply_with_one_that_cannot_start(void)
{
	if (!emulated())
		return;
	tensor_scope {
		tensor *a = sparse(TENSOR_F32), *x = matrix(11, 8, TENSOR_F32), *y = on_cuda(x);
		tensor *g = on_cuda(a);

		host.inject("cusparseCreate", 1, 1);
		for (int i = 0; i < 3; i++)
			assert_result(tensor_mm(g, y), tensor_mm(a, x), TENSOR_F32);
		assert_int_equal(counted(), 1);
	}
}

/* In a process of its own, with the variable set. */
static void in_a_process_with(const char *variable, const char *value, void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		setenv(variable, value, 1);
		if (!tensor_cuda_is_available())
			_exit(2);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(status, 0);
}

/* Before this process opens CUDA. */
static void products_have_kernels_without_cusparse(void **state)
{
	in_a_process_with("TENSOR_CUSPARSE", "/no/such/library", multiply_without);
	in_a_process_with("TENSOR_CUSPARSE", "0", multiply_without);
	in_a_process_with("TENSOR_CUSPARSE", "", multiply_without);
}

/* Before CUDA 12.3 other algorithms took the place of the one that gives equal bits. */
static void an_old_cusparse_is_not_used(void **state)
{
	in_a_process_with("CUDA_HOST_CUSPARSE", "12102", multiply_without);
}

static void one_that_cannot_start_is_not_used(void **state)
{
	in_a_process_with("CUDA_HOST_CUSPARSE", "", multiply_with_one_that_cannot_start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_have_kernels_without_cusparse),
		cmocka_unit_test(an_old_cusparse_is_not_used),
		cmocka_unit_test(one_that_cannot_start_is_not_used),
		cmocka_unit_test(products_are_those_of_the_cpu),
		cmocka_unit_test(views_are_multiplied),
		cmocka_unit_test(other_products_do_not_need_it),
		cmocka_unit_test(values_that_are_not_finite_are_those_of_the_cpu),
		cmocka_unit_test(failing_calls_leave_other_kernels_or_an_error),
		cmocka_unit_test(a_graph_has_products),
		cmocka_unit_test(threads_share_a_handle),
	};

	return cmocka_run_group_tests_name("cuda_cusparse", tests, NULL, NULL);
}
