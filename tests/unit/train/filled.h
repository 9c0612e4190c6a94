/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Tensors filled by a formula, and sums that stand for their elements: as in expected.py. */
#ifndef TESTS_FILLED_H
#define TESTS_FILLED_H

#include "autograd.h"

/* A name, and "KEY VALUE KEY VALUE ...": see expected.py. */
struct expected {
	const char *name, *values;
};

static inline void fill_into(tensor *t, int seed)
{
	const int64_t n = tensor_numel(ok(t));
	double *v = malloc((n + 1) * sizeof(*v));

	for (int64_t i = 0; i < n; i++)
		v[i] = sin(0.7 * i + seed) * 0.5;
	tensor_no_grad
		tensor_scope {
			tensor *values = tensor_from_data(v, tensor_shape(t), F64);

			ok(tensor_copy_(t, ok(values)));
		}
	free(v);
}

static inline tensor *filled(tensor_ints sizes, int seed)
{
	tensor *t = ok(tensor_empty(sizes, F64));

	fill_into(t, seed);
	return t;
}

/* The gradient of checksum() with respect to t. */
static inline tensor *weights_of(tensor *t)
{
	const int64_t n = tensor_numel(ok(t));
	double *v = malloc((n + 1) * sizeof(*v));
	tensor *w;

	for (int64_t i = 0; i < n; i++)
		v[i] = cos(0.3 * i + 1);
	w = ok(tensor_from_data(v, tensor_shape(t), F64));
	free(v);
	return w;
}

static inline double checksum(tensor *t)
{
	double *v = values_of(tensor_detach(ok(t))), sum = 0;

	for (int64_t i = 0; i < tensor_numel(t); i++)
		sum += v[i] * cos(0.3 * i + 1);
	free(v);
	return sum;
}

/* Reads the next pair of `values`, and compares it with this one. */
static inline void check_value_(const char *test, const char **values, const char *key, double got)
{
	char want_key[64];
	double want;
	int n = 0;

	if (sscanf(*values, " %63s %lf%n", want_key, &want, &n) != 2)
		fail_msg("%s: %s is not expected", test, key);
	*values += n;
	if (strcmp(key, want_key))
		fail_msg("%s: %s, expected %s", test, key, want_key);
	if (!(fabs(got - want) <= 1e-12 * fmax(1, fabs(want))))
		fail_msg("%s: %s is %.17g, expected %.17g", test, key, got, want);
}

static inline void check_end_(const char *test, const char *values)
{
	if (*values)
		fail_msg("%s: missing%s", test, values);
}

#endif
