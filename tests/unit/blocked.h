/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Helpers of the tests of the blocked layout, which are skipped with a reason if the plugin cannot be
 * opened: the first test of each program opens it.
 */
#ifndef TESTS_BLOCKED_H
#define TESTS_BLOCKED_H

#include "autograd.h"

#define I(...) TENSOR_INTS(__VA_ARGS__)
#define NONE   TENSOR_DTYPE_NONE

static bool available;

#define NEED_ONEDNN()           \
	do {                    \
		if (!available) \
			skip(); \
	} while (0)

/* Pseudo-random values in [-1, 1]. */
static inline tensor *noise_of(unsigned seed, enum tensor_dtype dtype, tensor_ints shape)
{
	int64_t n = 1;
	float *p;
	tensor *t;

	for (int64_t i = 0; i < shape.len; i++)
		n *= shape.data[i];
	p = malloc((n + 1) * sizeof(*p));
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)((uint32_t)((uint64_t)(i + 1 + seed * 977) * 2654435761u >> 8) %
			       4096) /
			       2048 -
		       1;
	t = ok(tensor_from_data(p, shape, F32));
	free(p);
	return dtype == TENSOR_F32 ? t : ok(tensor_to(t, TENSOR_OPTIONS(.dtype = dtype)));
}

#define noise(seed, ...) noise_of(seed, TENSOR_F32, I(__VA_ARGS__))

static inline tensor *blocked(tensor *t)
{
	return ok(tensor_to_mkldnn(ok(t), NONE));
}

static inline double largest_difference(tensor *a, tensor *b)
{
	double v = 0;

	tensor_scope {
		a = ok(tensor_to(ok(tensor_detach(a)), F64));
		b = ok(tensor_to(ok(tensor_detach(b)), F64));
		if (tensor_numel(a))
			assert_done(tensor_item(ok(tensor_max(tensor_abs(tensor_sub(a, b)))), &v));
	}
	return v;
}

/* Compares shape, dtype and values. */
#define assert_like(got, want, tol) check_like_((got), (want), (tol), __FILE__, __LINE__)
static inline void check_like_(tensor *got, tensor *want, double tol, const char *file, int line)
{
	double d;

	check_ok_(got, file, line);
	check_ok_(want, file, line);
	if (tensor_layout(got) == TENSOR_BLOCKED)
		got = check_ok_(tensor_to_dense(got), file, line);
	if (tensor_dim(got) != tensor_dim(want) || tensor_dtype(got) != tensor_dtype(want) ||
	    memcmp(tensor_sizes(got), tensor_sizes(want), tensor_dim(got) * sizeof(int64_t))) {
		fprintf(stderr, "%d dimensions of %s, expected %d of %s, or other sizes\n",
			tensor_dim(got), tensor_dtype_name(tensor_dtype(got)), tensor_dim(want),
			tensor_dtype_name(tensor_dtype(want)));
		_fail(file, line);
	}
	d = largest_difference(got, want);
	if (!(d <= tol)) {
		fprintf(stderr, "largest difference %g, expected at most %g\n", d, tol);
		_fail(file, line);
	}
}

static void plugin_opens_or_gives_a_reason(void **state)
{
	tensor_scope {
		available = tensor_to_mkldnn(tensor_ones(I(1), F32), NONE) != NULL;
		if (!available)
			print_message("# skipped: %s\n", tensor_last_error()->text);
	}
	NEED_ONEDNN();
}

#endif
