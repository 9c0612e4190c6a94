// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * CUDA on the emulation (tests/cuda/host): when the host waits, calls of the runtime that fail,
 * several devices, streams and threads. `make test-cuda` runs it; elsewhere its tests are skipped.
 */
#include "cuda_results.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <pthread.h>
#include <tensor/cuda.h>

#define ON(d) TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(d))

/* Functions of the emulation, which the plugin has loaded. */
static struct {
	__typeof__(&cuda_host_counts) counts;
	__typeof__(&cuda_host_fail) inject;
	__typeof__(&cuda_host_calls) calls;
	__typeof__(&cuda_host_set_streams) set_streams;
	__typeof__(&cuda_host_streams) streams;
	__typeof__(&cudaSetDevice) set_device;
	__typeof__(&cudaStreamCreateWithFlags) stream_create;
	__typeof__(&cudaStreamDestroy) stream_destroy;
	__typeof__(&cudaStreamWaitEvent) stream_wait;
	__typeof__(&cudaEventCreateWithFlags) event_create;
	__typeof__(&cudaEventRecord) event_record;
	__typeof__(&cudaEventDestroy) event_destroy;
} host;

#define FIND(member, name) (host.member = emulation(name))
static bool emulated(void)
{
	return FIND(counts, "cuda_host_counts") && FIND(inject, "cuda_host_fail") &&
	       FIND(calls, "cuda_host_calls") && FIND(set_streams, "cuda_host_set_streams") &&
	       FIND(streams, "cuda_host_streams") && FIND(set_device, "cudaSetDevice") &&
	       FIND(stream_create, "cudaStreamCreateWithFlags") &&
	       FIND(stream_destroy, "cudaStreamDestroy") &&
	       FIND(stream_wait, "cudaStreamWaitEvent") &&
	       FIND(event_create, "cudaEventCreateWithFlags") &&
	       FIND(event_record, "cudaEventRecord") && FIND(event_destroy, "cudaEventDestroy");
}

#define NEED_EMULATION()                                                      \
	do {                                                                  \
		if (!emulated()) {                                            \
			print_message("# skipped: make test-cuda runs it\n"); \
			skip();                                               \
		}                                                             \
	} while (0)

static struct cuda_host_counts counted(void)
{
	struct cuda_host_counts n;

	host.counts(&n);
	return n;
}

static tensor *wave(tensor_ints shape, double seed)
{
	tensor *t = iota(0, shape);
	float *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = (float)sin(seed + 1.3 * (double)i);
	return t;
}

static tensor *longs(tensor_ints shape, const int64_t *values)
{
	return ok(tensor_from_data(values, shape, I64));
}

#define assert_close(gpu, cpu) check_close((gpu), (cpu), __LINE__)
static void check_close(tensor *gpu, tensor *cpu, int line)
{
	tensor *back = tensor_contiguous(ok(tensor_to(ok(gpu), CPU)));
	const float *x = tensor_data(back), *y = tensor_data(tensor_contiguous(ok(cpu)));

	assert_int_equal(tensor_numel(gpu), tensor_numel(cpu));
	for (int64_t i = 0; i < tensor_numel(cpu); i++)
		if (!(fabsf(x[i] - y[i]) <= 1e-4f))
			fail_msg("line %d: element %lld is %g, on the CPU %g", line, (long long)i,
				 x[i], y[i]);
}

/* ---- waits ---- */

static void operators_do_not_wait_for_the_device(void **state)
{
	struct cuda_host_counts before, after;

	NEED_EMULATION();
	tensor_scope {
		tensor *a = ok(tensor_to(wave(TENSOR_SHAPE(12, 12), 1), ON(0)));
		tensor *b = ok(tensor_to(wave(TENSOR_SHAPE(12, 12), 2), ON(0)));
		tensor *row = ok(tensor_to(wave(TENSOR_SHAPE(12), 2), ON(0)));

		ok(tensor_mm(a, b)); /* makes cuBLASLt's handle */
		before = counted();
		ok(tensor_add(a, tensor_t(b)));
		ok(tensor_mul_(a, row));
		ok(tensor_relu(a));
		ok(tensor_div(a, b));
		ok(tensor_sum(a));
		ok(tensor_sum_dim(a, TENSOR_INTS(0), true));
		ok(tensor_softmax(a, 1));
		ok(tensor_mm(tensor_t(a), b));
		ok(tensor_mm(tensor_slice(a, 1, 0, 12, 2), tensor_slice(b, 0, 0, 6, 1)));
		ok(tensor_clone(tensor_t(a)));
		ok(tensor_to(a,
			     TENSOR_OPTIONS(.dtype = TENSOR_F64, .device = TENSOR_DEVICE_CUDA(0))));
		ok(tensor_zeros(TENSOR_SHAPE(4, 4), ON(0)));
		after = counted();
		assert_int_equal(after.waits, before.waits);
		assert_true(after.launches >= before.launches + 12);
		if (host.streams() == CUDA_HOST_LAZY)
			assert_true(after.pending >= 12);
	}
}

static void copies_and_immediate_checks_wait_once(void **state)
{
	struct cuda_host_counts before, after;

	NEED_EMULATION();
	tensor_scope {
		tensor *c = wave(TENSOR_SHAPE(6, 4), 1), *g;
		tensor *i = ok(tensor_to(longs(TENSOR_SHAPE(3), (int64_t[]){ 5, 0, 5 }), ON(0)));

		before = counted();
		g = ok(tensor_to(c, ON(0)));
		after = counted();
		assert_int_equal(after.waits - before.waits, 1);
		tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
		ok(tensor_index_select(g, 0, i));
		tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
		before = counted();
		/* The result of the check is written to pinned memory. */
		assert_int_equal(before.copies - after.copies, 0);
		assert_int_equal(before.waits_stream - after.waits_stream, 1);
		assert_int_equal(before.waits - after.waits, 1);
	}
}

static void nonblocking_copies_of_pinned_memory_do_not_wait(void **state)
{
	struct cuda_host_counts before, after;

	NEED_EMULATION();
	tensor_scope {
		tensor *c = wave(TENSOR_SHAPE(64, 64), 1), *kept = ok(tensor_clone(c));
		tensor *g = ok(tensor_zeros(TENSOR_SHAPE(64, 64), ON(0)));

		assert_done(tensor_share_memory(c));
		ok(tensor_copy_(g, c)); /* pins the buffer */
		ok(tensor_fill_(g, S(0)));
		tensor_cuda_set_nonblocking(true);
		before = counted();
		ok(tensor_copy_(g, c));
		after = counted();
		assert_int_equal(after.waits, before.waits);
		tensor_cuda_set_nonblocking(false);
		assert_done(tensor_cuda_synchronize(0));
		assert_close(g, kept);
	}
}

/* The storage of a released tensor is kept until the copy has run. */
static void nonblocking_copies_keep_released_memory(void **state)
{
	NEED_EMULATION();
	for (int i = 0; i < 4; i++) {
		tensor_scope {
			tensor *g = ok(tensor_zeros(TENSOR_SHAPE(64, 64), ON(0)));
			tensor *kept = wave(TENSOR_SHAPE(64, 64), i);

			tensor_cuda_set_nonblocking(true);
			tensor_scope {
				tensor *c = ok(tensor_clone(kept));

				assert_done(tensor_share_memory(c));
				ok(tensor_copy_(g, c));
			}
			tensor_scope {
				tensor *other = ok(tensor_zeros(TENSOR_SHAPE(64, 64), F32));

				assert_done(tensor_share_memory(other));
			}
			assert_done(tensor_cuda_synchronize(0));
			tensor_cuda_set_nonblocking(false);
			assert_close(g, kept);
		}
	}
}

/* ---- calls that fail ---- */

struct operands {
	tensor *c, *g, *far, *square, *index, *large, *c_large;
};

static tensor *to_device(const struct operands *o)
{
	return tensor_to(o->c, ON(0));
}
static tensor *to_device_strided(const struct operands *o)
{
	return tensor_to(tensor_t(o->c), ON(0));
}
static tensor *to_device_converted(const struct operands *o)
{
	return tensor_to(tensor_to(o->c, TENSOR_OPTIONS(.dtype = TENSOR_F64,
							.device = TENSOR_DEVICE_CUDA(0))),
			 TENSOR_OPTIONS(.dtype = TENSOR_F32));
}
static tensor *to_host(const struct operands *o)
{
	return tensor_to(o->g, CPU);
}
static tensor *to_host_strided(const struct operands *o)
{
	return tensor_to(tensor_slice(o->g, 1, 0, 6, 2), CPU);
}
static tensor *to_other_device(const struct operands *o)
{
	return tensor_to(tensor_t(o->g), ON(1));
}
static tensor *from_other_device(const struct operands *o)
{
	return tensor_to(o->far, ON(0));
}
static tensor *sum_of(const struct operands *o)
{
	return tensor_add(o->g, o->g);
}
static tensor *sum_all(const struct operands *o)
{
	return tensor_sum(o->large);
}
static tensor *softmax_of(const struct operands *o)
{
	return tensor_softmax(o->g, 0);
}
static tensor *product_of(const struct operands *o)
{
	return tensor_mm(tensor_slice(o->g, 1, 0, 6, 2), tensor_slice(o->square, 0, 0, 3, 1));
}
static tensor *selection_of(const struct operands *o)
{
	return tensor_index_select(o->g, 0, o->index);
}
static tensor *addition_at(const struct operands *o)
{
	return tensor_index_add(o->g, 0, o->index, o->square);
}

/* The same operator on the CPU. */
static tensor *expected_of(tensor *(*op)(const struct operands *), const struct operands *o)
{
	struct operands cpu = { .c = o->c,
				.g = o->c,
				.far = o->c,
				.square = tensor_to(o->square, CPU),
				.index = tensor_to(o->index, CPU),
				.large = o->c_large };

	return tensor_to(op(&cpu), CPU);
}

static void check_failing_calls(tensor *(*op)(const struct operands *), const struct operands *o)
{
	tensor *expected = ok(expected_of(op, o));
	unsigned long n = 0;
	bool failed = true;

	assert_close(op(o), expected);
	while (failed) {
		tensor_scope {
			tensor *t;

			tensor_clear_error();
			host.inject(NULL, ++n, cudaErrorLaunchFailure);
			t = op(o);
			failed = host.calls() >= n;
			host.inject(NULL, 0, 0);
			if (t)
				assert_close(t, expected); /* a call that only releases */
			else
				assert_int_equal(tensor_last_error()->code, EIO);
		}
	}
	assert_true(n > 1);
	assert_close(op(o), expected);
}

static void each_failing_call_is_an_error(void **state)
{
	static tensor *(*const ops[])(const struct operands *) = {
		to_device,	 to_device_strided, to_device_converted, to_host,
		to_host_strided, to_other_device,   from_other_device,	 sum_of,
		sum_all,	 softmax_of,	    product_of,		 selection_of,
		addition_at,
	};
	struct cuda_host_counts before, after;

	NEED_EMULATION();
	tensor_scope {
		struct operands o = { .c = wave(TENSOR_SHAPE(6, 6), 1),
				      .c_large = wave(TENSOR_SHAPE(40000), 1) };

		o.g = ok(tensor_to(o.c, ON(0)));
		o.far = ok(tensor_to(o.c, ON(1)));
		o.square = ok(tensor_to(wave(TENSOR_SHAPE(6, 6), 2), ON(0)));
		o.index = ok(
			tensor_to(longs(TENSOR_SHAPE(6), (int64_t[]){ 5, 0, 5, 1, 2, 0 }), ON(0)));
		o.large = ok(tensor_to(o.c_large, ON(0)));
		for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
			check_failing_calls(ops[i], &o);
		/* Blocks of failed calls are used again. */
		before = counted();
		for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
			check_failing_calls(ops[i], &o);
		after = counted();
		assert_int_equal(after.allocated, before.allocated);
	}
}

static void failing_products_are_errors(void **state)
{
	static const char *const functions[] = {
		"cublasLtMatmulDescCreate",
		"cublasLtMatmulDescSetAttribute",
		"cublasLtMatrixLayoutCreate",
		"cublasLtMatmulPreferenceCreate",
		"cublasLtMatmulPreferenceSetAttribute",
		"cublasLtMatmulAlgoGetHeuristic",
		"cublasLtMatmul",
	};

	NEED_EMULATION();
	tensor_scope {
		tensor *c = wave(TENSOR_SHAPE(6, 6), 1), *g = ok(tensor_to(c, ON(0)));

		for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
			for (int n = 1; n <= 3; n++) {
				host.inject(functions[i], n, 15 /* CUBLAS_STATUS_NOT_SUPPORTED */);
				tensor *t = tensor_mm(g, g);

				if (host.calls() >= (unsigned long)n)
					assert_null(t);
				else
					assert_close(t, tensor_mm(c, c));
				host.inject(NULL, 0, 0);
			}
		}
		assert_close(tensor_mm(g, g), tensor_mm(c, c));
	}
}

static void memory_that_is_exhausted_can_be_used_again(void **state)
{
	int64_t n = 5 << 20;
	int made = 0;

	NEED_EMULATION();
	tensor_scope {
		while (tensor_empty(TENSOR_SHAPE(n), ON(0)))
			made++;
		assert_int_equal(tensor_last_error()->code, ENOMEM);
		assert_non_null(strstr(tensor_last_error()->text, "no memory for"));
		assert_true(made >= 2);
	}
	/* The cache has blocks of another size. */
	tensor_scope {
		tensor *t = ok(tensor_empty(TENSOR_SHAPE(n * made / 2), ON(0)));
		double v;

		ok(tensor_fill_(tensor_select(t, 0, n), S(2.0)));
		assert_done(tensor_item(tensor_select(t, 0, n), &v));
		assert_true(v == 2);
	}
}

/* ---- devices, streams, threads ---- */

static void copies_between_devices_keep_every_element(void **state)
{
	NEED_EMULATION();
	assert_true(tensor_cuda_device_count() >= 2);
	tensor_scope {
		tensor *c = wave(TENSOR_SHAPE(7, 5, 3), 1), *a = ok(tensor_to(c, ON(0)));
		tensor *p = tensor_permute(a, TENSOR_INTS(2, 0, 1));
		tensor *b = ok(tensor_to(p, ON(1)));

		assert_int_equal(tensor_get_device(b).index, 1);
		assert_close(b, tensor_permute(c, TENSOR_INTS(2, 0, 1)));
		ok(tensor_copy_(tensor_slice(b, 1, 0, 7, 2),
				tensor_slice(p, 1, 1, 5, 1))); /* 4 of 7 */
		assert_close(tensor_slice(b, 1, 0, 7, 2),
			     tensor_slice(tensor_permute(c, TENSOR_INTS(2, 0, 1)), 1, 1, 5, 1));
		assert_close(tensor_add(b, b), tensor_to(tensor_add(b, b), CPU));
		assert_fails(tensor_add(b, p), EINVAL, "device");
	}
}

static cudaStream_t new_stream(int device)
{
	cudaStream_t s;

	host.set_device(device);
	assert_int_equal(host.stream_create(&s, cudaStreamNonBlocking), cudaSuccess);
	host.set_device(0);
	return s;
}

/* Work queued in `later` from now on follows that of `earlier`. */
static void order(cudaStream_t earlier, cudaStream_t later)
{
	cudaEvent_t e;

	assert_int_equal(host.event_create(&e, cudaEventDisableTiming), cudaSuccess);
	assert_int_equal(host.event_record(e, earlier), cudaSuccess);
	assert_int_equal(host.stream_wait(later, e, 0), cudaSuccess);
	assert_int_equal(host.event_destroy(e), cudaSuccess);
}

/* x belongs to stream a, is read in b, and is released before b has read it. */
static void release_while_read(cudaStream_t a, cudaStream_t b)
{
	tensor_scope {
		tensor *y;

		assert_done(tensor_cuda_set_stream(0, a));
		tensor_scope {
			tensor *x = ok(tensor_full(TENSOR_SHAPE(300), S(3.0), ON(0)));

			order(a, b);
			assert_done(tensor_cuda_set_stream(0, b));
			y = tensor_retain(ok(tensor_add(x, x)));
		}
		assert_done(tensor_cuda_set_stream(0, a));
		for (int i = 0; i < 3; i++)
			ok(tensor_full(TENSOR_SHAPE(300), S(100.0), ON(0)));
		assert_done(tensor_cuda_set_stream(0, b));
		tensor_scope {
			assert_close(y, ok(tensor_full(TENSOR_SHAPE(300), S(6.0), F32)));
		}
		tensor_release(y);
	}
}

static void memory_is_not_reused_before_other_streams_have_read_it(void **state)
{
	enum cuda_host_streams mode;
	cudaStream_t a, b;

	NEED_EMULATION();
	mode = host.streams();
	a = new_stream(0);
	b = new_stream(0);
	for (unsigned seed = 0; seed < 10; seed++) {
		host.set_streams(mode, seed);
		release_while_read(a, b);
		release_while_read(b, a);
	}
	assert_done(tensor_cuda_set_stream(0, NULL));
	assert_done(tensor_cuda_synchronize(0));
	host.stream_destroy(a);
	host.stream_destroy(b);
}

/* Both devices have a stream of their own; the copies order them. */
static void copies_between_devices_order_their_streams(void **state)
{
	cudaStream_t a, b;

	NEED_EMULATION();
	a = new_stream(0);
	b = new_stream(1);
	assert_done(tensor_cuda_set_stream(0, a));
	assert_done(tensor_cuda_set_stream(1, b));
	for (int i = 0; i < 6; i++) {
		tensor_scope {
			tensor *c = wave(TENSOR_SHAPE(40, 30), i), *x = ok(tensor_to(c, ON(0)));
			tensor *y = ok(tensor_to(tensor_t(tensor_add(x, x)), ON(1)));
			tensor *z = ok(tensor_to(tensor_add(y, y), ON(0)));

			ok(tensor_fill_(x, S(0)));
			assert_close(tensor_add(z, z), tensor_t(tensor_mul_scalar(c, S(8))));
		}
	}
	assert_done(tensor_cuda_set_stream(0, NULL));
	assert_done(tensor_cuda_set_stream(1, NULL));
	assert_done(tensor_cuda_synchronize(0));
	assert_done(tensor_cuda_synchronize(1));
	host.stream_destroy(a);
	host.stream_destroy(b);
}

static void *work_in_a_stream(void *stream)
{
	int device = tensor_cuda_set_stream(0, stream);

	if (device < 0)
		return "no stream";
	for (int i = 0; i < 8; i++) {
		tensor_scope {
			tensor *c = wave(TENSOR_SHAPE(20, 30), i), *g = tensor_to(c, ON(0));
			tensor *s = tensor_to(tensor_softmax(tensor_add(g, g), 1), CPU);
			tensor *e = tensor_softmax(tensor_add(c, c), 1);

			bool near = false;

			if (!s || !e || tensor_allclose(s, e, 1e-4, 1e-6, false, &near) < 0 ||
			    !near)
				return "another result than the CPU's";
		}
	}
	return NULL;
}

static void threads_with_streams_of_their_own_get_their_results(void **state)
{
	cudaStream_t s[3];
	pthread_t threads[3];
	void *error;

	NEED_EMULATION();
	for (int i = 0; i < 3; i++)
		s[i] = new_stream(0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work_in_a_stream, s[i]), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &error);
		if (error)
			fail_msg("%s", (char *)error);
	}
	assert_done(tensor_cuda_synchronize(0));
	for (int i = 0; i < 3; i++)
		host.stream_destroy(s[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_do_not_wait_for_the_device),
		cmocka_unit_test(copies_and_immediate_checks_wait_once),
		cmocka_unit_test(nonblocking_copies_of_pinned_memory_do_not_wait),
		cmocka_unit_test(nonblocking_copies_keep_released_memory),
		cmocka_unit_test(each_failing_call_is_an_error),
		cmocka_unit_test(failing_products_are_errors),
		cmocka_unit_test(copies_between_devices_keep_every_element),
		cmocka_unit_test(memory_is_not_reused_before_other_streams_have_read_it),
		cmocka_unit_test(copies_between_devices_order_their_streams),
		cmocka_unit_test(threads_with_streams_of_their_own_get_their_results),
		cmocka_unit_test(memory_that_is_exhausted_can_be_used_again),
	};

	/* Before the plugin is loaded: all memory is filled with garbage. */
	setenv("CUDA_HOST_MEMORY", "0x4000000", 1);
	return cmocka_run_group_tests_name("cuda_host", tests, NULL, NULL);
}
