/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared by tests of CUDA: values, and the comparison of a device's results with the CPU's. */
#ifndef TENSOR_TESTS_CUDA_RESULTS_H
#define TENSOR_TESTS_CUDA_RESULTS_H

#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tensor/cuda.h>
#include <unistd.h>

#define CUDA	   TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(0))
#define CUDA_OF(d) TENSOR_OPTIONS(.dtype = (d), .device = TENSOR_DEVICE_CUDA(0))
#define CPU	   TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU)
#define NEED_DEVICE()                    \
	do {                             \
		if (!device_or_reason()) \
			skip();          \
	} while (0)

static inline bool device_or_reason(void)
{
	if (tensor_cuda_is_available())
		return true;
	tensor_cuda_device_count();
	print_message("# skipped: %s\n", tensor_last_error()->text);
	return false;
}

/* A function of the emulation, which the plugin has loaded; NULL with a GPU, and without a device. */
static inline void *emulation(const char *function)
{
	void *library = tensor_cuda_is_available() ?
				dlopen("libcuda_host.so", RTLD_NOW | RTLD_NOLOAD) :
				NULL;

	return library ? dlsym(library, function) : NULL;
}

/*
 * Runs the function in a process of its own, where the variable names a library that cannot be loaded. Before this process opens
 * CUDA, which a child could not use then. Without a device the test is skipped.
 */
static inline void without_library(const char *variable, void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		setenv(variable, "/no/such/library", 1);
		if (!tensor_cuda_is_available())
			exit(2);
		fn();
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(status, 0);
}

static inline tensor *on_cuda(tensor *t)
{
	tensor *g = ok(tensor_to(t, CUDA));

	assert_int_equal(tensor_get_device(g).type, TENSOR_CUDA);
	return g;
}

/* Small repeatable values of both signs; integers for integer dtypes. */
static inline tensor *pseudo_random(tensor_ints shape, enum tensor_dtype dtype)
{
	static uint32_t state = 1;
	tensor *t = ok(tensor_empty(shape, TENSOR_OPTIONS(.dtype = TENSOR_F64)));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++) {
		state = state * 1664525 + 1013904223;
		p[i] = (state >> 16) / 8192.0 - 4;
	}
	if (dtype == TENSOR_U8 || dtype == TENSOR_BOOL)
		for (int64_t i = 0; i < tensor_numel(t); i++)
			p[i] = fabs(p[i]) - (dtype == TENSOR_BOOL && p[i] < 0 ? fabs(p[i]) : 0);
	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = dtype)));
}

static inline tensor *integers(tensor_ints shape, const int64_t *values)
{
	return ok(tensor_from_data(values, shape, I64));
}

/* For results of f32 arithmetic in another order, rounded to d. */
static inline double tolerance(enum tensor_dtype d)
{
	return d == TENSOR_F64 ? 1e-12 : d == TENSOR_F16 ? 2e-3 : d == TENSOR_BF16 ? 2e-2 : 1e-5;
}

/* The results of the device and the CPU have the same dtype and shape, and elements within tol. */
#define assert_near(gpu, cpu, tol) check_near_((gpu), (cpu), (tol), __FILE__, __LINE__)
static inline void check_near_(tensor *gpu, tensor *cpu, double tol, const char *file, int line)
{
	tensor *got = check_ok_(tensor_to(check_ok_(gpu, file, line), CPU), file, line);
	tensor *a = check_ok_(tensor_to(got, F64), file, line);
	tensor *b = check_ok_(tensor_to(check_ok_(cpu, file, line), F64), file, line);
	int64_t n = tensor_numel(b);
	double *x = calloc(n + 1, sizeof(*x)), *y = calloc(n + 1, sizeof(*y));

	assert_int_equal(tensor_get_device(gpu).type, TENSOR_CUDA);
	assert_int_equal(tensor_dtype(gpu), tensor_dtype(cpu));
	assert_int_equal(tensor_dim(gpu), tensor_dim(cpu));
	assert_memory_equal(tensor_sizes(gpu), tensor_sizes(cpu),
			    tensor_dim(cpu) * sizeof(int64_t));
	check_done_(tensor_copy_to(a, x, n * sizeof(*x)));
	check_done_(tensor_copy_to(b, y, n * sizeof(*y)));
	for (int64_t i = 0; i < n; i++) {
		if (x[i] == y[i] || fabs(x[i] - y[i]) <= tol * (1 + fabs(y[i])) ||
		    (isnan(x[i]) && isnan(y[i])))
			continue;
		fprintf(stderr, "element %lld is %.17g, on the CPU %.17g\n", (long long)i, x[i],
			y[i]);
		_fail(file, line);
	}
	free(x);
	free(y);
}

/* Whether two host tensors have the same elements. */
static inline bool equal(tensor *a, tensor *b)
{
	double all;

	assert_done(tensor_item(ok(tensor_all(ok(tensor_eq(ok(a), ok(b))))), &all));
	return all;
}

/*
 * Whether cases with much work run: on a GPU, and on the emulation with the streams in order, but not with
 * ThreadSanitizer, where they take minutes.
 */
static inline bool long_cases(void)
{
	const char *streams = getenv("CUDA_HOST_STREAMS");

#ifdef __SANITIZE_THREAD__
	return false;
#endif
	return !streams || !strcmp(streams, "eager");
}

#endif
