// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* OpenBLAS as the LAPACK: little memory, more threads than it has buffers, forks. Other LAPACKs pass, too. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 48, THREADS = 24, CALLS = 30, FORKS = 40, SECONDS = 20 };

static tensor *matrix(int64_t n)
{
	tensor *t = tensor_eye(n, F64), *ones = tensor_ones(TENSOR_INTS(n, n), F64);
	tensor *twice = tensor_mul_scalar(t, S((double)n)), *sum = tensor_add(twice, ones);

	tensor_release(t);
	tensor_release(ones);
	tensor_release(twice);
	return sum;
}

/* The inverse of n I + 1 is (I - 1 / 2n) / n. Returns 0, or the error of the operator, or -1 if the numbers are wrong. */
static int invert(int64_t n)
{
	tensor *a = matrix(n), *inverse = a ? tensor_linalg_inv(a) : NULL;
	int err = inverse ? 0 : tensor_last_error()->code;

	for (int64_t i = 0; inverse && i < n * n; i++) {
		double want = ((i % (n + 1) == 0) - 0.5 / (double)n) / (double)n;

		if (!(((const double *)tensor_data(inverse))[i] - want < 1e-12) ||
		    !(want - ((const double *)tensor_data(inverse))[i] < 1e-12))
			err = -1;
	}
	tensor_release(a);
	tensor_release(inverse);
	return err;
}

/* Runs function() in a child that may take SECONDS; returns what it returned. */
static int in_child(int (*function)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(SECONDS);
		_exit(function());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("the child was ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* ---- memory ---- */

static long limit_mib;

static int invert_with_little_memory(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	int err;

	if (!f || fscanf(f, "%ld", &pages) != 1)
		return 1;
	fclose(f);
	/* The library is loaded before, so that the limit concerns its buffers alone. */
	if (!dlopen("liblapack.so.3", RTLD_NOW))
		return 2;
	struct rlimit limit = { (rlim_t)pages * 4096 + ((rlim_t)limit_mib << 20), RLIM_INFINITY };

	setrlimit(RLIMIT_AS, &limit);
	err = invert(512);
	return err == 0 || err == ENOMEM || err == ENOSYS ? 0 : 3;
}

static void too_little_memory_is_an_error(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* the sanitizer's shadow is above any limit */
#endif
	for (limit_mib = 20; limit_mib < 400; limit_mib += 20)
		assert_int_equal(in_child(invert_with_little_memory), 0);
}

/* ---- threads ---- */

static atomic_int failures;
static atomic_bool stop;

static void invert_or_report(void)
{
	int err = invert(N);

	if (!err)
		return;
	atomic_fetch_add(&failures, 1);
	fprintf(stderr, "# %d: %s\n", err, err > 0 ? tensor_last_error()->text : "wrong numbers");
}

static void *invert_often(void *unused)
{
	(void)unused;
	for (int i = 0; i < CALLS; i++)
		invert_or_report();
	return NULL;
}

static void more_threads_than_buffers(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	atomic_store(&failures, 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, invert_often, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&failures), 0);
}

/* ---- fork ---- */

static void *invert_until_stop(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop))
		invert_or_report();
	return NULL;
}

static int invert_after_fork(void)
{
	int err = invert(N);

	return err == 0 || err == EDEADLK ? 0 : 1;
}

static void fork_while_others_compute(void **state)
{
	pthread_t threads[3];

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* the allocator of GCC 12's sanitizers may be locked in the child */
#endif
	atomic_store(&failures, 0);
	atomic_store(&stop, false);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, invert_until_stop, NULL), 0);
	for (int i = 0; i < FORKS; i++)
		assert_int_equal(in_child(invert_after_fork), 0);
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&failures), 0);
}

/* ---- TENSOR_LAPACK ---- */

static int call_without_library(void)
{
	setenv("TENSOR_LAPACK", "/nonexistent/liblapack.so", 1);
	if (invert(N) != ENOSYS)
		return 1;
	return strstr(tensor_last_error()->text, "/nonexistent/liblapack.so") ? 0 : 2;
}

static void variable_names_the_library(void **state)
{
	(void)state;
	assert_int_equal(in_child(call_without_library), 0);
}

int main(void)
{
	/* The first two make the first call of the library in children. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variable_names_the_library),
		cmocka_unit_test(too_little_memory_is_an_error),
		cmocka_unit_test(more_threads_than_buffers),
		cmocka_unit_test(fork_while_others_compute),
	};

	/* Exit status 77 means skipped: LAPACK is not installed. */
	if (!dlopen("liblapack.so.3", RTLD_NOW)) {
		fprintf(stderr, "LAPACK is not installed: %s\n", dlerror());
		return 77;
	}
	return cmocka_run_group_tests_name("openblas", tests, NULL, NULL);
}
