/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tables of differentiable functions, whose formulas are compared with central differences: CASE()
 * defines a function of up to MAX_IN f64 inputs a, b, c, d; ROW() names it and describes its
 * inputs; FORMULA_TESTS makes two tests of the table.
 */
#ifndef TESTS_FORMULAS_H
#define TESTS_FORMULAS_H

#include "check.h"

/* [n, 2] as n complex numbers, and back. */
#define AS_COMPLEX(x) tensor_view_as_complex(x)
#define AS_REAL(z)    tensor_view_as_real(z)
#define EPS	      1e-6
#define MAX_IN	      4

struct formula {
	const char *name;
	tensor *(*fn)(tensor *const *in, void *ctx);
	int n;
	struct {
		int ndim;
		int64_t sizes[4];
		double scale, shift; /* values are shift + scale * sin(...) */
		bool transposed;     /* not contiguous */
	} in[MAX_IN];
	bool once; /* the second derivative is zero everywhere or undefined at kinks */
};

#define CASE(id, body)                                                 \
	static tensor *id(tensor *const *in, void *ctx)                \
	{                                                              \
		tensor *a = in[0], *b = in[1], *c = in[2], *d = in[3]; \
                                                                       \
		(void)a, (void)b, (void)c, (void)d;                    \
		return body;                                           \
	}

#define IN(scale, shift, ...)                                                                 \
	{                                                                                     \
		sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), { __VA_ARGS__ }, scale, \
			shift, false                                                          \
	}
#define IN_T(scale, shift, ...)                                                               \
	{                                                                                     \
		sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), { __VA_ARGS__ }, scale, \
			shift, true                                                           \
	}
#define ROW(id, n, ...)                                 \
	{                                               \
#id, fn_##id, n, { __VA_ARGS__ }, false \
	}
#define ROW_ONCE(id, n, ...)                           \
	{                                              \
#id, fn_##id, n, { __VA_ARGS__ }, true \
	}

static inline tensor *make_input(const struct formula *f, int i)
{
	int ndim = f->in[i].ndim;
	int64_t sizes[4], reversed[4], n = 1;
	double v[64];
	tensor *t;

	for (int d = 0; d < ndim; d++) {
		sizes[d] = f->in[i].sizes[f->in[i].transposed ? ndim - 1 - d : d];
		reversed[d] = ndim - 1 - d;
		n *= sizes[d];
	}
	for (int64_t k = 0; k < n; k++)
		v[k] = f->in[i].shift + f->in[i].scale * sin(1.7 * (double)k + i + 0.3);
	t = ok(tensor_from_data(v, (tensor_ints){ sizes, ndim }, F64));
	if (f->in[i].transposed)
		t = ok(tensor_detach(ok(tensor_permute(t, (tensor_ints){ reversed, ndim }))));
	assert_done(tensor_set_requires_grad(t, true));
	return t;
}

typedef tensor *(*function)(tensor *const *in, void *ctx);

static inline void check_all(const struct formula *formulas, size_t n,
			     int (*check)(function, void *, tensor_list, double, double, double))
{
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		const struct formula *f = &formulas[i];

		tensor_scope {
			tensor *in[MAX_IN] = { NULL };

			for (int k = 0; k < f->n; k++)
				in[k] = make_input(f, k);
			if (check(f->fn, NULL, (tensor_list){ in, f->n }, EPS, 1e-7, 1e-6) < 0) {
				fprintf(stderr, "%s: %s\n", f->name, tensor_last_error()->text);
				failed++;
			}
		}
	}
	assert_int_equal(failed, 0);
}

/* Two tests of `formulas`: first derivatives, and second derivatives. */
#define FORMULA_TESTS                                                            \
	static void every_formula_agrees_with_differences(void **state)          \
	{                                                                        \
		check_all(formulas, ARRAY_SIZE(formulas), tensor_gradcheck);     \
	}                                                                        \
	static void every_formula_is_differentiable_again(void **state)          \
	{                                                                        \
		check_all(formulas, ARRAY_SIZE(formulas), tensor_gradgradcheck); \
	}

#endif
