// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A program that opens the library with dlopen() and closes it again; it is not linked with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <tensor/tensor.h>

struct library {
	void *handle;
	tensor *(*ones)(tensor_ints, tensor_options);
	tensor *(*add)(tensor *, tensor *);
	void (*release)(tensor *);
	pthread_barrier_t used, closed;
};

static void open_library(struct library *l)
{
	l->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!l->handle)
		fail_msg("%s", dlerror());
	*(void **)&l->ones = dlsym(l->handle, "tensor_ones");
	*(void **)&l->add = dlsym(l->handle, "tensor_add");
	*(void **)&l->release = dlsym(l->handle, "tensor_release");
	assert_non_null(l->ones);
	assert_non_null(l->add);
	assert_non_null(l->release);
}

static void compute(const struct library *l)
{
	static const int64_t sizes[] = { 1000 };
	tensor *t = l->ones((tensor_ints){ sizes, 1 }, (tensor_options){ .dtype = TENSOR_F32 });
	tensor *sum = l->add(t, t);

	assert_non_null(sum);
	l->release(sum);
	l->release(t);
}

static void *compute_and_stay(void *ctx)
{
	struct library *l = ctx;

	compute(l);
	pthread_barrier_wait(&l->used);
	pthread_barrier_wait(&l->closed);
	return NULL;
}

/*
 * The destructor of a thread key is in the library: its code must still be mapped when the thread
 * ends.
 */
static void thread_ends_after_the_library_was_closed(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct library l = { 0 };
		pthread_t thread;

		open_library(&l);
		assert_int_equal(pthread_barrier_init(&l.used, NULL, 2), 0);
		assert_int_equal(pthread_barrier_init(&l.closed, NULL, 2), 0);
		assert_int_equal(pthread_create(&thread, NULL, compute_and_stay, &l), 0);
		pthread_barrier_wait(&l.used);
		assert_int_equal(dlclose(l.handle), 0);
		pthread_barrier_wait(&l.closed);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static void library_is_opened_again(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct library l = { 0 };

		open_library(&l);
		compute(&l);
		assert_int_equal(dlclose(l.handle), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thread_ends_after_the_library_was_closed),
		cmocka_unit_test(library_is_opened_again),
	};

	return cmocka_run_group_tests_name("unload", tests, NULL, NULL);
}
