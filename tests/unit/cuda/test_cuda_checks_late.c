// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Late checks and the process: waits, threads, devices, children, and the end without a wait. */
#include "cuda_results.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <pthread.h>
#include <stdatomic.h>

static tensor *indices_on(int device, int64_t index)
{
	return ok(tensor_to(integers(TENSOR_SHAPE(1), &index),
			    TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(device))));
}

static tensor *rows_on(int device)
{
	return ok(tensor_zeros(TENSOR_SHAPE(4, 2),
			       TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(device))));
}

static void refuse_on(int device, int64_t index)
{
	ok(tensor_index_select(rows_on(device), 0, indices_on(device, index)));
}

/* ---- children, before this process opens CUDA ---- */

/* Runs fn in a process; returns what that has written to stderr. Skips without a device. */
static void text_of_child(void (*fn)(void), char *text, size_t size)
{
	int pipes[2], status;
	ssize_t n, all = 0;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		dup2(pipes[1], 2);
		close(pipes[0]);
		close(pipes[1]);
		if (!tensor_cuda_is_available())
			_exit(2);
		fn();
		exit(0);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], text + all, size - 1 - (size_t)all)) > 0)
		all += n;
	text[all] = 0;
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip();
	if (status)
		fprintf(stderr, "%s", text);
	assert_int_equal(status, 0);
}

static void never_waits(void)
{
	tensor_scope {
		refuse_on(0, 11);
		refuse_on(0, 12);
	}
}

static void waits_at_the_end(void)
{
	tensor_scope {
		refuse_on(0, 11);
		if (tensor_cuda_synchronize(0) != -ERANGE)
			_exit(1);
	}
}

static void mode_of_the_environment(void)
{
	if (tensor_cuda_checks() != TENSOR_CUDA_CHECKS_WAIT)
		_exit(1);
	tensor_scope
		if (tensor_index_select(rows_on(0), 0, indices_on(0, 4)))
			_exit(1);
}

static void an_error_without_a_wait_is_printed_at_exit(void **state)
{
	char text[4096];

	text_of_child(never_waits, text, sizeof(text));
	assert_contains(
		text,
		"libtensor: cuda:0: index_select: index 11 is out of range for a dimension of size 4");
	assert_contains(text, "1 more");
	text_of_child(waits_at_the_end, text, sizeof(text));
	assert_null(strstr(text, "index_select"));
}

static void the_environment_sets_the_mode(void **state)
{
	char text[4096];

	setenv("TENSOR_CUDA_CHECKS", "wait", 1);
	text_of_child(mode_of_the_environment, text, sizeof(text));
	unsetenv("TENSOR_CUDA_CHECKS");
}

/* ---- this process ---- */

static void a_child_leaves_the_error_to_its_parent(void **state)
{
	int status;
	pid_t pid;

	NEED_DEVICE();
	tensor_scope {
		refuse_on(0, 5);
		pid = fork();
		if (!pid)
			exit(tensor_cuda_synchronize(0) == -ENODEV ? 0 : 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_fails(tensor_cuda_synchronize(0), ERANGE, "index 5");
		assert_done(tensor_cuda_synchronize(0));
	}
}

static void each_device_reports_its_own(void **state)
{
	NEED_DEVICE();
	if (tensor_cuda_device_count() < 2)
		skip();
	tensor_scope {
		refuse_on(1, 5);
		refuse_on(0, 6);
		assert_fails(tensor_cuda_synchronize(0), ERANGE, "index 6");
		assert_done(tensor_cuda_synchronize(0));
		assert_fails(tensor_cuda_synchronize(1), ERANGE, "index 5");
		assert_done(tensor_cuda_synchronize(1));
	}
}

enum { THREADS = 4, CALLS = 150 };
static atomic_int reported, wrong;

/* Each wait reports an error of any thread, and how many others it has taken. */
static void take_report(void)
{
	const char *more;

	if (!tensor_cuda_stream_synchronize(0, tensor_cuda_current_stream(0)))
		return;
	if (tensor_last_error()->code != ERANGE ||
	    !strstr(tensor_last_error()->text, "index_select: index 4"))
		wrong++;
	more = strstr(tensor_last_error()->text, ", and ");
	reported += 1 + (more ? atoi(more + strlen(", and ")) : 0);
}

static void *refuse_and_wait(void *arg)
{
	void *stream = tensor_cuda_stream(0, 0);

	if (!stream || tensor_cuda_set_stream(0, stream) < 0)
		wrong++;
	for (int i = 0; i < CALLS; i++) {
		tensor_scope {
			tensor *x = tensor_zeros(TENSOR_SHAPE(4, 2), CUDA);
			tensor *at =
				tensor_full(TENSOR_SHAPE(3), S(i % 3 ? 4 : 3), CUDA_OF(TENSOR_I64));

			if (!x || !at || !tensor_index_select(x, 0, at))
				wrong++;
		}
		if (i % 7 == 0)
			take_report();
	}
	take_report();
	return NULL;
}

static void no_error_of_several_threads_is_lost_or_reported_twice(void **state)
{
	pthread_t threads[THREADS];
	int refused = 0;

	NEED_DEVICE();
	for (int i = 0; i < CALLS; i++)
		refused += i % 3 != 0;
	reported = wrong = 0;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, refuse_and_wait, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	take_report();
	assert_int_equal(wrong, 0);
	assert_int_equal(reported, THREADS * refused);
	assert_done(tensor_cuda_synchronize(0));
}

static atomic_bool stop;

static void *synchronize(void *arg)
{
	while (!stop)
		if (tensor_cuda_synchronize(0) < 0)
			wrong++;
	return NULL;
}

static void a_call_that_waits_has_its_error_beside_other_threads(void **state)
{
	pthread_t other;

	NEED_DEVICE();
	wrong = 0;
	stop = false;
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
	assert_int_equal(pthread_create(&other, NULL, synchronize, NULL), 0);
	for (int i = 0; i < 300; i++)
		tensor_scope {
			tensor *x = rows_on(0), *at = indices_on(0, 4);

			if (tensor_index_select(x, 0, at) || tensor_last_error()->code != ERANGE)
				wrong++;
		}
	stop = true;
	pthread_join(other, NULL);
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
	assert_int_equal(wrong, 0);
	assert_done(tensor_cuda_synchronize(0));
}

/* ---- waits ---- */

static unsigned long waits(void)
{
	__typeof__(&cuda_host_counts) counts = emulation("cuda_host_counts");
	struct cuda_host_counts n;

	counts(&n);
	return n.waits;
}

#define assert_no_wait(call)                             \
	do {                                             \
		const unsigned long before = waits();    \
                                                         \
		ok(call);                                \
		assert_int_equal(waits() - before, 0ul); \
	} while (0)

static void checks_do_not_wait(void **state)
{
	if (!emulation("cuda_host_counts"))
		skip();
	tensor_scope {
		tensor *g = on_cuda(pseudo_random(TENSOR_SHAPE(4, 8), TENSOR_F32));
		tensor *i = indices_on(0, 2),
		       *square = on_cuda(integers(TENSOR_SHAPE(1, 8), (int64_t[8]){ 0 }));
		tensor *row = on_cuda(pseudo_random(TENSOR_SHAPE(1, 8), TENSOR_F32));
		tensor *n = ok(tensor_ones(TENSOR_SHAPE(9), CUDA_OF(TENSOR_I64)));
		tensor *p = ok(tensor_full(TENSOR_SHAPE(9), S(0.5), CUDA));

		ok(tensor_index_select(g, 0, i)); /* registers the log */
		assert_no_wait(tensor_index_select(g, 0, i));
		assert_no_wait(tensor_embedding(g, i, -1, false, false));
		assert_no_wait(tensor_gather(g, 0, square));
		assert_no_wait(tensor_index_at(g, tensor_unsqueeze(i, 0), TENSOR_INTS(0)));
		assert_no_wait(tensor_index_add_(g, 0, i, row));
		assert_no_wait(tensor_index_copy_(g, 0, i, row));
		assert_no_wait(tensor_scatter_(g, 0, square, row));
		assert_no_wait(
			tensor_index_put_at_(g, tensor_unsqueeze(i, 0), TENSOR_INTS(0), row, true));
		assert_no_wait(tensor_embedding_dense_backward(row, i, 4, -1, false));
		assert_no_wait(tensor_cross_entropy(row, i));
		assert_no_wait(tensor_bernoulli(p));
		assert_no_wait(tensor_multinomial(p, 2, true));
		assert_no_wait(tensor_multinomial(p, 2, false));
		assert_no_wait(tensor_remainder(n, n));
		assert_no_wait(tensor_remainder_(n, n));
		assert_no_wait(tensor_floor_divide_scalar(n, S(3)));
		assert_done(tensor_cuda_synchronize(0));
	}
}

/* Token and position embeddings, a layer with attention, the loss and its gradients, a step of the optimizer. */
static void a_training_step_does_not_wait(void **state)
{
	unsigned long before = 0;

	if (!emulation("cuda_host_counts"))
		skip();
	tensor_scope {
		const int64_t batch = 2, length = 6, width = 8, words = 16;
		tensor *w[] = { on_cuda(pseudo_random(TENSOR_SHAPE(words, width), TENSOR_F32)),
				on_cuda(pseudo_random(TENSOR_SHAPE(length, width), TENSOR_F32)),
				on_cuda(pseudo_random(TENSOR_SHAPE(3 * width, width), TENSOR_F32)),
				on_cuda(pseudo_random(TENSOR_SHAPE(words, width), TENSOR_F32)) };
		tensor *tokens = on_cuda(tensor_remainder_scalar(
			ok(tensor_to(iota(0, TENSOR_SHAPE(batch, length)), I64)), S(words)));
		tensor *places = on_cuda(ok(tensor_to(iota(0, TENSOR_SHAPE(length)), I64)));

		for (size_t k = 0; k < ARRAY_SIZE(w); k++)
			assert_done(tensor_set_requires_grad(w[k], true));
		for (int step = 0; step < 3; step++) {
			tensor *x, *qkv, *y, *loss;

			if (step)
				before = waits();
			x = ok(tensor_add(tensor_embedding(w[0], tokens, -1, false, false),
					  tensor_embedding(w[1], places, -1, false, false)));
			qkv = ok(tensor_linear(x, w[2], tensor_none));
			y = ok(tensor_scaled_dot_product_attention(
				tensor_slice(qkv, 2, 0, width, 1),
				tensor_slice(qkv, 2, width, 2 * width, 1),
				tensor_slice(qkv, 2, 2 * width, 3 * width, 1), tensor_none, 0,
				false));
			y = ok(tensor_linear(tensor_gelu(tensor_add(x, y)), w[3], tensor_none));
			loss = ok(tensor_cross_entropy(
				tensor_reshape(y, TENSOR_SHAPE(batch * length, words)),
				tensor_reshape(tokens, TENSOR_SHAPE(batch * length))));
			assert_done(tensor_backward(loss));
			for (size_t k = 0; k < ARRAY_SIZE(w); k++)
				tensor_no_grad
					ok(tensor_sub_(w[k], tensor_mul_scalar(tensor_grad(w[k]),
									       S(0.01))));
			if (step)
				assert_int_equal(waits() - before, 0ul);
		}
		assert_done(tensor_cuda_synchronize(0));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_without_a_wait_is_printed_at_exit),
		cmocka_unit_test(the_environment_sets_the_mode),
		cmocka_unit_test(a_child_leaves_the_error_to_its_parent),
		cmocka_unit_test(each_device_reports_its_own),
		cmocka_unit_test(no_error_of_several_threads_is_lost_or_reported_twice),
		cmocka_unit_test(a_call_that_waits_has_its_error_beside_other_threads),
		cmocka_unit_test(checks_do_not_wait),
		cmocka_unit_test(a_training_step_does_not_wait),
	};

	return cmocka_run_group_tests_name("cuda_checks_late", tests, NULL, NULL);
}
