// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * CUDA: convolutions by cuDNN on the emulation, whose stand-in names engines that must not be used; without cuDNN, and with
 * calls of it that fail. test_cuda_conv.c compares more shapes.
 */
#include "cuda_results.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <pthread.h>

#define NEVER (1ul << 60)

static struct {
	__typeof__(&cuda_host_fail) inject;
	__typeof__(&cuda_host_calls) calls;
} host;

/* False without the emulation, or if the plugin has another cuDNN than its own. */
static bool emulated(void)
{
	const char *name = getenv("TENSOR_CUDNN");

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

/* ---- convolutions ---- */

struct operands {
	tensor *x, *w, *b;
};

static struct operands operands_of(enum tensor_dtype d, int64_t size)
{
	return (struct operands){ pseudo_random(TENSOR_SHAPE(2, 6, 5, size), d),
				  pseudo_random(TENSOR_SHAPE(10, 3, 3, 2), d),
				  pseudo_random(TENSOR_SHAPE(10), d) };
}

static struct operands on_device(const struct operands *o)
{
	return (struct operands){ on_cuda(o->x), on_cuda(o->w),
				  o->b == tensor_none ? o->b : on_cuda(o->b) };
}

static tensor *forward(const struct operands *o)
{
	return tensor_convolution(o->x, o->w, o->b, TENSOR_INTS(1, 2), TENSOR_INTS(1, 0),
				  TENSOR_INTS(1, 1), false, TENSOR_INTS(0), 2);
}

/* Channels of a transposed convolution are those of the output. */
static tensor *transposed(const struct operands *o)
{
	tensor *x = tensor_transpose(tensor_narrow(o->w, 1, 0, 2), 0, 1);

	return tensor_convolution(x, o->w, tensor_none, TENSOR_INTS(2, 1), TENSOR_INTS(1, 1),
				  TENSOR_INTS(1, 1), true, TENSOR_INTS(0, 0), 1);
}

static int backward(const struct operands *o, tensor *grad, tensor **g)
{
	return tensor_convolution_backward(grad, o->x, o->w, TENSOR_INTS(10), TENSOR_INTS(1, 2),
					   TENSOR_INTS(1, 0), TENSOR_INTS(1, 1), false,
					   TENSOR_INTS(0), 2, 3, &g[0], &g[1], &g[2]);
}

/* Of two groups. */
static int weight_gradient(const struct operands *o, tensor *grad, tensor **g)
{
	return tensor_convolution_backward(grad, o->x, o->w, TENSOR_INTS(8), TENSOR_INTS(1, 1),
					   TENSOR_INTS(0, 0), TENSOR_INTS(1, 1), false,
					   TENSOR_INTS(0), 2, 2, &g[0], &g[1], &g[2]);
}

static double tolerance_of(enum tensor_dtype d)
{
	return d == TENSOR_F64 ? 1e-11 : d == TENSOR_BF16 ? 1e-1 : d == TENSOR_F16 ? 2e-2 : 2e-4;
}

static void count_calls(const char *function)
{
	host.inject(function, NEVER, 1);
}

static unsigned long counted(void)
{
	unsigned long n = host.calls();

	host.inject(NULL, 0, 0);
	return n;
}

static void assert_all_equal(enum tensor_dtype d, int64_t size)
{
	struct operands o = operands_of(d, size), g = on_device(&o);
	tensor *y = ok(forward(&o)), *cpu[3], *gpu[3];

	count_calls("cudnnBackendExecute");
	assert_near(forward(&g), y, tolerance_of(d));
	assert_done(backward(&o, y, cpu));
	assert_done(backward(&g, on_cuda(y), gpu));
	assert_int_equal(counted(), 3);
	assert_near(gpu[0], cpu[0], 10 * tolerance_of(d));
	assert_near(gpu[1], cpu[1], 10 * tolerance_of(d));
}

static void cudnn_computes_floats(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16,
						    TENSOR_F16 };

	NEED_EMULATION();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		tensor_scope
			assert_all_equal(dtypes[i], 7);
}

/* f16 and bf16 are read and written by cuDNN: no kernel converts them. */
static void reduced_floats_are_not_converted(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F16, TENSOR_BF16 };

	NEED_EMULATION();
	for (int d = 0; d < 2; d++)
		tensor_scope {
			struct operands o = operands_of(dtypes[d], 7), g = on_device(&o);
			tensor *y = ok(forward(&g)), *v[3];

			count_calls("cudaLaunchKernel");
			ok(forward(&g));
			assert_done(backward(&g, y, v));
			assert_int_equal(counted(), 0);
		}
}

/* Whether loops or cuDNN compute depends on the channels of the images, not on those that the weight has of one group. */
static void weights_of_groups_are_not_converted(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F16, TENSOR_BF16 };

	NEED_EMULATION();
	for (int d = 0; d < 2; d++)
		tensor_scope {
			tensor *x = pseudo_random(TENSOR_SHAPE(2, 16, 6, 6), dtypes[d]);
			tensor *w = pseudo_random(TENSOR_SHAPE(8, 8, 3, 3), dtypes[d]);
			tensor *grad = pseudo_random(TENSOR_SHAPE(2, 8, 4, 4), dtypes[d]);
			struct operands o = { x, w, tensor_none }, g = on_device(&o);
			tensor *cpu[3], *gpu[3], *on = on_cuda(grad);

			assert_done(weight_gradient(&o, grad, cpu));
			assert_done(weight_gradient(&g, on, gpu));
			count_calls("cudaLaunchKernel");
			assert_done(weight_gradient(&g, on, gpu));
			assert_int_equal(counted(), 0);
			count_calls("cudnnBackendExecute");
			assert_done(weight_gradient(&g, on, gpu));
			assert_int_equal(counted(), 1);
			assert_near(gpu[1], cpu[1], 10 * tolerance_of(dtypes[d]));
		}
}

/* f64 with a bias has no engine: the bias is added after the convolution. */
static void a_bias_is_fused_or_added(void **state)
{
	NEED_EMULATION();
	for (int d = 0; d < 4; d++)
		tensor_scope {
			static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64,
								    TENSOR_BF16, TENSOR_F16 };
			struct operands o = operands_of(dtypes[d], 6), g = on_device(&o);

			assert_near(forward(&g), forward(&o), tolerance_of(dtypes[d]));
			o.b = g.b = tensor_none;
			assert_near(forward(&g), forward(&o), tolerance_of(dtypes[d]));
			assert_near(transposed(&g), transposed(&o), tolerance_of(dtypes[d]));
			tensor *b = pseudo_random(TENSOR_SHAPE(3), dtypes[d]);
			tensor *x = tensor_narrow(o.w, 0, 0, 10);
			tensor *t =
				tensor_narrow(tensor_permute(x, TENSOR_INTS(3, 0, 1, 2)), 0, 0, 2);

			assert_near(
				tensor_convolution(on_cuda(t), g.w, on_cuda(b), TENSOR_INTS(2, 1),
						   TENSOR_INTS(1, 1), TENSOR_INTS(1, 1), true,
						   TENSOR_INTS(0, 0), 1),
				tensor_convolution(t, o.w, b, TENSOR_INTS(2, 1), TENSOR_INTS(1, 1),
						   TENSOR_INTS(1, 1), true, TENSOR_INTS(0, 0), 1),
				tolerance_of(dtypes[d]));
		}
}

/* ---- plans ---- */

static void plans_are_kept(void **state)
{
	NEED_EMULATION();
	tensor_scope {
		struct operands o = operands_of(TENSOR_F32, 9), g = on_device(&o);

		ok(forward(&g));
		count_calls("cudnnBackendCreateDescriptor");
		assert_near(forward(&g), forward(&o), 2e-4);
		assert_int_equal(counted(), 1); /* the variant pack */
	}
}

static void refusals_are_kept(void **state)
{
	NEED_EMULATION();
	tensor_scope {
		tensor *x = on_cuda(pseudo_random(TENSOR_SHAPE(1, 2, 3, 4, 5), TENSOR_F64));
		tensor *w = on_cuda(pseudo_random(TENSOR_SHAPE(3, 2, 2, 2, 2), TENSOR_F64));
		tensor_ints ones = TENSOR_INTS(1, 1, 1), zeros = TENSOR_INTS(0, 0, 0);
		tensor *y = ok(
			tensor_convolution(x, w, tensor_none, ones, zeros, ones, false, zeros, 1));
		tensor *g[3];

		for (int i = 0; i < 2; i++) {
			count_calls("cudnnBackendCreateDescriptor");
			assert_done(tensor_convolution_backward(y, x, w, TENSOR_INTS(3), ones,
								zeros, ones, false, zeros, 1, 2,
								&g[0], &g[1], &g[2]));
			if (i)
				assert_int_equal(counted(), 0);
			else
				assert_true(counted() > 0);
		}
	}
}

/* More plans than are kept, while a graph has one of them. */
static void plans_are_replaced_but_not_those_of_graphs(void **state)
{
	NEED_EMULATION();
	tensor_scope {
		struct operands o = operands_of(TENSOR_F32, 11), g = on_device(&o);
		tensor_cuda_graph *graph = tensor_cuda_graph_new(0);
		tensor *y;

		assert_non_null(graph);
		assert_done(tensor_cuda_graph_capture_begin(graph, NULL));
		y = ok(forward(&g));
		assert_done(tensor_cuda_graph_capture_end(graph));
		for (int64_t size = 3; size < 270; size++)
			tensor_scope {
				tensor *x = on_cuda(
					pseudo_random(TENSOR_SHAPE(1, 1, size), TENSOR_F32));
				tensor *w =
					on_cuda(pseudo_random(TENSOR_SHAPE(1, 1, 2), TENSOR_F32));

				ok(tensor_conv1d(x, w, tensor_none, TENSOR_INTS(1), TENSOR_INTS(0),
						 TENSOR_INTS(1), 1));
			}
		assert_done(tensor_cuda_graph_replay(graph));
		assert_done(tensor_cuda_graph_wait(graph));
		assert_near(y, forward(&o), 2e-4);
		count_calls("cudnnBackendCreateDescriptor");
		assert_near(forward(&g), forward(&o), 2e-4);
		assert_int_equal(counted(), 1);
		assert_done(tensor_cuda_graph_release(graph));
	}
}

static void views_have_any_alignment(void **state)
{
	NEED_EMULATION();
	for (int64_t offset = 0; offset < 4; offset++)
		tensor_scope {
			struct operands o = operands_of(TENSOR_F32, 7), g;
			tensor *x = pseudo_random(TENSOR_SHAPE(424), TENSOR_F32), *y = on_cuda(x);

			g = on_device(&o);
			o.x = ok(tensor_view(tensor_narrow(x, 0, offset, 420),
					     TENSOR_SHAPE(2, 6, 5, 7)));
			g.x = ok(tensor_view(tensor_narrow(y, 0, offset, 420),
					     TENSOR_SHAPE(2, 6, 5, 7)));
			assert_near(forward(&g), forward(&o), 2e-4);
		}
}

/* ---- failures ---- */

/* A call that fails leaves the convolution to other kernels, but for the execution itself. */
static void failing_calls_leave_other_kernels(void **state)
{
	static const char *const functions[] = {
		"cudnnSetStream",	    "cudnnBackendCreateDescriptor",
		"cudnnBackendSetAttribute", "cudnnBackendGetAttribute",
		"cudnnBackendFinalize",	    "cudnnBackendExecute",
	};
	static const int statuses[] = { 2000, 3000, 4003, 5000 };
	int64_t size = 20;

	NEED_EMULATION();
	for (size_t f = 0; f < ARRAY_SIZE(functions); f++)
		for (size_t s = 0; s < ARRAY_SIZE(statuses); s++)
			for (unsigned long n = 1; n < 90; n += n < 8 ? 1 : 9)
				tensor_scope {
					struct operands o = operands_of(TENSOR_F32, 6), g;
					tensor *x, *y;

					/* A new shape, which needs a plan. */
					o.x = pseudo_random(TENSOR_SHAPE(1, 6, 2, size++),
							    TENSOR_F32);
					g = on_device(&o);
					x = ok(forward(&o));
					host.inject(functions[f], n, statuses[s]);
					y = forward(&g);
					host.inject(NULL, 0, 0);
					if (y)
						assert_near(y, x, 2e-4);
					else
						assert_int_equal(tensor_last_error()->code,
								 statuses[s] == 4003 ? ENOMEM :
										       EIO);
					assert_near(forward(&g), x, 2e-4);
				}
}

/* ---- threads ---- */

static void *convolve_often(void *unused)
{
	for (int64_t i = 0; i < 8; i++)
		tensor_scope {
			struct operands o = operands_of(i & 1 ? TENSOR_F32 : TENSOR_F64, 4 + i % 3);
			struct operands g = on_device(&o);

			assert_near(forward(&g), forward(&o), 2e-4);
		}
	return NULL;
}

static void threads_share_plans(void **state)
{
	pthread_t threads[3];

	NEED_EMULATION();
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, convolve_often, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* In a process of its own, before it loads cuDNN. */
static void without_cudnn(void)
{
	tensor_scope {
		struct operands o = operands_of(TENSOR_F32, 7), g = on_device(&o);
		tensor *cpu[3], *gpu[3], *y = ok(forward(&o));

		tensor_cuda_set_fallback(false);
		assert_near(forward(&g), y, 2e-4);
		assert_done(backward(&o, y, cpu));
		assert_done(backward(&g, on_cuda(y), gpu));
		assert_near(gpu[0], cpu[0], 2e-3);
		assert_near(gpu[1], cpu[1], 2e-3);
	}
}

static void convolutions_have_kernels_without_cudnn(void **state)
{
	without_library("TENSOR_CUDNN", without_cudnn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* Before this process opens CUDA, which a child could not use then. */
		cmocka_unit_test(convolutions_have_kernels_without_cudnn),
		cmocka_unit_test(cudnn_computes_floats),
		cmocka_unit_test(reduced_floats_are_not_converted),
		cmocka_unit_test(weights_of_groups_are_not_converted),
		cmocka_unit_test(a_bias_is_fused_or_added),
		cmocka_unit_test(plans_are_kept),
		cmocka_unit_test(refusals_are_kept),
		cmocka_unit_test(plans_are_replaced_but_not_those_of_graphs),
		cmocka_unit_test(views_have_any_alignment),
		cmocka_unit_test(failing_calls_leave_other_kernels),
		cmocka_unit_test(threads_share_plans),
	};

	return cmocka_run_group_tests_name("cuda_dnn", tests, NULL, NULL);
}
