/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Helpers of all unit tests: the headers of cmocka in the order that it requires, and comparisons
 * of tensors. A test file is tests/unit/GROUP/test_TOPIC.c; its main() ends in return
 * cmocka_run_group_tests_name("TOPIC", tests, NULL, NULL).
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <tensor/dispatch.h>
#include <tensor/tensor.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))
#define S(x)	      TENSOR_SCALAR(x)
#define OF(d)	      TENSOR_OPTIONS(.dtype = (d))
#define F32	      OF(TENSOR_F32)
#define F64	      OF(TENSOR_F64)
#define I64	      OF(TENSOR_I64)
/*
 * Skips a test under AddressSanitizer, where each storage is an allocation of its own and is not
 * reused.
 */
#if defined(__SANITIZE_ADDRESS__)
#define NOT_WATCHED() skip()
#else
#define NOT_WATCHED() ((void)0)
#endif
/* Skips a test under ThreadSanitizer, and says why. */
#if defined(__SANITIZE_THREAD__)
#define NOT_UNDER_TSAN(why)                                                  \
	do {                                                                 \
		print_message("skipped under ThreadSanitizer: %s\n", (why)); \
		skip();                                                      \
	} while (0)
#else
#define NOT_UNDER_TSAN(why) ((void)0)
#endif
#define THREADS_AFTER_FORK "it refuses new threads in a child of a process with threads"
#define SHAREABLE(d)	   TENSOR_OPTIONS(.dtype = (d), .shareable = true)

/* Returns the tensor; the test fails with the text of the error record if it is NULL. */
#define ok(t) check_ok_((t), __FILE__, __LINE__)
static inline tensor *check_ok_(tensor *t, const char *file, int line)
{
	if (!t) {
		fprintf(stderr, "%s\n", tensor_last_error()->text);
		_fail(file, line);
	}
	return t;
}

#define assert_done(err) assert_true(check_done_(err))
static inline bool check_done_(int err)
{
	if (err < 0)
		fprintf(stderr, "%s\n", tensor_last_error()->text);
	return err >= 0;
}

/* The call fails with this errno and an error text that contains `words`. */
#define assert_fails(call, errno_, words)                            \
	do {                                                         \
		tensor_clear_error();                                \
		(void)!(call);                                       \
		check_fails_((errno_), (words), __FILE__, __LINE__); \
	} while (0)
static inline void check_fails_(int code, const char *words, const char *file, int line)
{
	const struct tensor_error *e = tensor_last_error();

	if (e->code == code && strstr(e->text, words))
		return;
	fprintf(stderr, "error %d \"%s\", expected error %d with \"%s\"\n", e->code, e->text, code,
		words);
	_fail(file, line);
}

#define assert_contains(text, words) check_contains_((text), (words), __FILE__, __LINE__)
static inline void check_contains_(const char *text, const char *words, const char *file, int line)
{
	if (text && strstr(text, words))
		return;
	fprintf(stderr, "\"%s\", expected text with \"%s\"\n", text ? text : "NULL", words);
	_fail(file, line);
}

/* All elements as f64 in row-major order, for any strides and dtype; the caller frees them. */
static inline double *values_of(tensor *t)
{
	double *v = malloc((tensor_numel(ok(t)) + 1) * sizeof(*v));

	tensor_scope
		assert_done(tensor_copy_to(ok(tensor_to(t, F64)), v, tensor_numel(t) * sizeof(*v)));
	return v;
}

/* Compares the values in row-major order, for any strides and dtype. */
#define assert_values(t, tol, ...)                                                             \
	check_values_((t), (const double[]){ __VA_ARGS__ },                                    \
		      sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double), tol, __FILE__, \
		      __LINE__)
static inline void check_values_(tensor *t, const double *want, int64_t n, double tol,
				 const char *file, int line)
{
	double *got = malloc((n + 1) * sizeof(*got));

	if (tensor_numel(check_ok_(t, file, line)) != n) {
		fprintf(stderr, "%lld elements, expected %lld\n", (long long)tensor_numel(t),
			(long long)n);
		_fail(file, line);
	}
	tensor_scope {
		tensor *d = tensor_to(tensor_detach(t), F64);

		check_done_(tensor_copy_to(check_ok_(d, file, line), got, n * sizeof(*got)));
	}
	for (int64_t i = 0; i < n; i++) {
		bool same = isnan(want[i]) ? isnan(got[i]) :
					     got[i] == want[i] || fabs(got[i] - want[i]) <= tol;

		if (!same) {
			fprintf(stderr, "element %lld is %.17g, expected %.17g\n", (long long)i,
				got[i], want[i]);
			_fail(file, line);
		}
	}
	free(got);
}

/* Compares dtype and elements bit for bit; the shapes may differ. */
#define assert_same(a, b) check_same_((a), (b), __FILE__, __LINE__)
static inline void check_same_(tensor *a, tensor *b, const char *file, int line)
{
	size_t bytes = tensor_numel(check_ok_(b, file, line)) * tensor_itemsize(tensor_dtype(b));
	char *x = malloc(bytes + 1), *y = malloc(bytes + 1);

	if (tensor_numel(check_ok_(a, file, line)) != tensor_numel(b) ||
	    tensor_dtype(a) != tensor_dtype(b)) {
		fprintf(stderr, "%lld elements of %s, expected %lld of %s\n",
			(long long)tensor_numel(a), tensor_dtype_name(tensor_dtype(a)),
			(long long)tensor_numel(b), tensor_dtype_name(tensor_dtype(b)));
		_fail(file, line);
	}
	check_done_(tensor_copy_to(a, x, bytes));
	check_done_(tensor_copy_to(b, y, bytes));
	_assert_memory_equal(x, y, bytes, file, line);
	free(x);
	free(y);
}

static inline void print_ints_(const char *text, const int64_t *v, int n)
{
	fprintf(stderr, "%s [", text);
	for (int i = 0; i < n; i++)
		fprintf(stderr, "%s%lld", i ? ", " : "", (long long)v[i]);
	fprintf(stderr, "]");
}

static inline void check_ints_(const char *name, const int64_t *got, int ngot, const int64_t *want,
			       int n, const char *file, int line)
{
	if (ngot == n && (!n || !memcmp(got, want, n * sizeof(*want))))
		return;
	print_ints_(name, got, ngot);
	print_ints_(", expected", want, n);
	fprintf(stderr, "\n");
	_fail(file, line);
}

#define INTS_(...)                        \
	(const int64_t[]){ __VA_ARGS__ }, \
		(int)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))
#define assert_shape(t, ...) check_shape_((t), INTS_(__VA_ARGS__), __FILE__, __LINE__)
static inline void check_shape_(const tensor *t, const int64_t *want, int n, const char *file,
				int line)
{
	check_ints_("shape", tensor_sizes(t), tensor_dim(t), want, n, file, line);
}

#define assert_strides(t, ...) check_strides_((t), INTS_(__VA_ARGS__), __FILE__, __LINE__)
static inline void check_strides_(tensor *t, const int64_t *want, int n, const char *file, int line)
{
	check_ints_("strides", tensor_strides(check_ok_(t, file, line)), tensor_dim(t), want, n,
		    file, line);
}

static inline double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* An f32 tensor of this shape with the values start, start + 1, ...; owned by the open scope. */
static inline tensor *iota(double start, tensor_ints shape)
{
	int64_t n = 1;
	tensor *t = NULL;

	for (int64_t i = 0; i < shape.len; i++)
		n *= shape.data[i];
	tensor_scope {
		tensor *flat = tensor_arange_step(TENSOR_SCALAR(start), TENSOR_SCALAR(start + n),
						  TENSOR_SCALAR(1), F32);

		t = tensor_retain(ok(tensor_to_copy(tensor_view(flat, shape), TENSOR_OPTIONS(0))));
	}
	return tensor_scope_add(t);
}

/* FNV-1a */
static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t n)
{
	const unsigned char *b = data;

	while (n--)
		hash = (hash ^ *b++) * 1099511628211u;
	return hash;
}

#endif
