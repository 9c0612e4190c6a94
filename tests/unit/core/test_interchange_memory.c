// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Exchange of tensors when the n-th allocation fails, for each n: the call fails with ENOMEM, leaves no
 * tensor, and the structures and the memory still belong to the caller.
 */
#include "check.h"

#include <pthread.h>
#include <tensor/arrow.h>
#include <tensor/dlpack.h>

#include "tests/fuzz/calls/fail.c" /* replaces malloc() in this program */

enum { MOST = 100 };

static int released; /* calls of a deleter or of release */
static float data[6];
static int64_t shape[] = { 6 };
static const void *buffers[2] = { NULL, data };
static tensor *x; /* a tensor that is exported */

static void count(void *memory, void *ctx)
{
	released++;
}

static void count_managed(DLManagedTensorVersioned *m)
{
	released++;
}

static void count_schema(struct ArrowSchema *s)
{
	s->release = NULL;
}

static void count_array(struct ArrowArray *a)
{
	released++;
	a->release = NULL;
}

static bool blob(void)
{
	return tensor_from_blob(data, TENSOR_SHAPE(6), TENSOR_NO_INTS, F32, count, NULL);
}

static bool from_dlpack(void)
{
	static DLManagedTensorVersioned m;

	m = (DLManagedTensorVersioned){ .version = { 1, 3 }, .deleter = count_managed };
	m.dl_tensor = (DLTensor){ .data = data, .device = { kDLCPU, 0 }, .ndim = 1 };
	m.dl_tensor.dtype = (DLDataType){ kDLFloat, 32, 1 };
	m.dl_tensor.shape = shape;
	return tensor_from_dlpack(&m);
}

static bool from_arrow_as(const char *format)
{
	struct ArrowSchema s = { .format = format, .release = count_schema };
	struct ArrowArray a = { .length = 6, .n_buffers = 2, .buffers = buffers };
	bool done;

	a.release = count_array;
	done = tensor_from_arrow(&s, &a);
	if (!s.release != done || !a.release != done)
		released = -1;
	return done;
}

static bool from_arrow(void)
{
	return from_arrow_as("f");
}

static bool from_arrow_bits(void)
{
	return from_arrow_as("b");
}

static bool to_dlpack(void)
{
	DLManagedTensorVersioned *m = tensor_to_dlpack(x, 0);

	if (m)
		m->deleter(m);
	released += m != NULL;
	return m;
}

static bool to_arrow_of(tensor *t)
{
	struct ArrowSchema s;
	struct ArrowArray a;

	if (tensor_to_arrow(t, &s, &a) < 0)
		return false;
	s.release(&s);
	a.release(&a);
	released++;
	return true;
}

static bool to_arrow(void)
{
	return to_arrow_of(x);
}

static bool to_arrow_bits(void)
{
	tensor *t = tensor_isnan(x);

	return t && to_arrow_of(t);
}

struct attempt {
	bool (*call)(void);
	long n; /* the allocation that fails */
	bool done, again;
	int code, released; /* before the scope ends */
};

/* A new thread: the first result lets its scope grow. */
static void *call_in_thread(void *ctx)
{
	struct attempt *a = ctx;

	tensor_clear_error();
	tensor_scope {
		fail_at(a->n);
		a->done = a->call();
		a->again = fail_end();
		a->code = tensor_last_error()->code;
		a->released = released;
	}
	return NULL;
}

static void failed_exchange_leaves_everything_to_the_caller(void **state)
{
	struct attempt a = { .call = (bool (*)(void)) * state, .again = true };
	struct tensor_live_counts before, after;
	int failures = 0;

	if (!fail_possible)
		skip();
	x = ok(tensor_ones(TENSOR_SHAPE(6), F32));
	fail_spare_others();
	tensor_live_counts(&before);
	while (a.again && a.n < MOST) {
		pthread_t thread;

		a.n++;
		released = 0;
		assert_int_equal(pthread_create(&thread, NULL, call_in_thread, &a), 0);
		pthread_join(thread, NULL);
		if (!a.done) {
			failures++;
			assert_int_equal(a.code, ENOMEM);
			assert_int_equal(a.released, 0);
		}
		assert_int_equal(released, a.done);
		tensor_live_counts(&after);
		assert_int_equal(after.tensors, before.tensors);
		assert_int_equal(after.storages, before.storages);
	}
	assert_true(a.done);
	assert_true(failures > 0);
	tensor_release(x);
}

#define FAILS(call)                                                                              \
	{                                                                                        \
#call, failed_exchange_leaves_everything_to_the_caller, NULL, NULL, (void *)call \
	}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAILS(blob),	  FAILS(from_dlpack), FAILS(from_arrow),    FAILS(from_arrow_bits),
		FAILS(to_dlpack), FAILS(to_arrow),    FAILS(to_arrow_bits),
	};

	(void)argc;
	fail_without_caches(argv);
	return cmocka_run_group_tests_name("interchange_memory", tests, NULL, NULL);
}
