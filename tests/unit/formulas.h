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

/* ---- which formulas a check reaches ---- */

#define MAX_NODES 4096

struct visited {
	const tensor_node *nodes[MAX_NODES];
	int n;
};

/* Writes a line "PREFIX NODE EDGE" for each edge of the graph of `node` that leads to an input. */
static inline void list_formulas(const tensor_node *node, const char *prefix, struct visited *seen,
				 FILE *to)
{
	for (int i = 0; i < seen->n; i++)
		if (seen->nodes[i] == node)
			return;
	if (seen->n == MAX_NODES)
		return;
	seen->nodes[seen->n++] = node;
	for (int i = 0; i < tensor_node_edges(node); i++) {
		int nr;
		const tensor_node *next = tensor_node_edge(node, i, &nr);

		if (!next)
			continue;
		fprintf(to, "%s%s %d\n", prefix, tensor_node_name(node), i);
		list_formulas(next, prefix, seen, to);
	}
}

/*
 * Appends the formulas that the gradients of these tensors use to the file FORMULAS_CHECKED of the
 * environment. tests/unit/gradients compares it with the formulas that there are.
 */
static inline void record_formulas(tensor_list list, const char *prefix)
{
	const char *path = getenv("FORMULAS_CHECKED");
	struct visited seen = { .n = 0 };
	FILE *to = path ? fopen(path, "a") : NULL;

	if (!to)
		return;
	for (int64_t i = 0; i < list.len; i++)
		if (list.data[i] && tensor_grad_fn(list.data[i]))
			list_formulas(tensor_grad_fn(list.data[i]), prefix, &seen, to);
	fclose(to);
}

/* The formulas of this file below lib/schema/derivatives/ cannot be reached on this machine. */
static inline void skip_formulas(const char *file)
{
	const char *path = getenv("FORMULAS_CHECKED");
	FILE *to = path ? fopen(path, "a") : NULL;

	if (!to)
		return;
	fprintf(to, "skip %s\n", file);
	fclose(to);
}

/* tensor_gradcheck(), whose formulas are recorded. */
static inline int gradcheck(function fn, void *ctx, tensor_list in, double eps, double atol,
			    double rtol)
{
	tensor_scope {
		tensor *y = fn(in.data, ctx);

		record_formulas(TENSOR_LIST(y), "");
	}
	return tensor_gradcheck(fn, ctx, in, eps, atol, rtol);
}

/* tensor_gradgradcheck(), whose formulas are recorded. All inputs require a gradient. */
static inline int gradgradcheck(function fn, void *ctx, tensor_list in, double eps, double atol,
				double rtol)
{
	tensor_scope {
		tensor *y = fn(in.data, ctx), *v, *grads[MAX_IN] = { NULL };

		v = tensor_ones_like(y, TENSOR_OPTIONS(0));
		if (v && tensor_set_requires_grad(v, true) == 0 &&
		    tensor_backward_ex(TENSOR_LIST(y), &v, in, grads, TENSOR_CREATE_GRAPH) == 0)
			record_formulas((tensor_list){ grads, in.len }, "");
	}
	return tensor_gradgradcheck(fn, ctx, in, eps, atol, rtol);
}

/* ---- the tests of a table ---- */

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

static inline int forwardcheck(function fn, void *ctx, tensor_list in, double eps, double atol,
			       double rtol)
{
	(void)eps;
	return tensor_forwardcheck(fn, ctx, in, atol, rtol);
}

/* ---- forward mode over reverse mode ---- */

/* cos(first + k) in the shape of t. */
static inline tensor *cosines(tensor *t, double first)
{
	tensor *k = tensor_arange(S(tensor_numel(t)), F64);

	return tensor_reshape(tensor_cos(tensor_add_scalar(k, S(first))), tensor_shape(t));
}

/* The gradients of a weighted sum of the output of fn. */
static inline int weighted_gradients(function fn, tensor_list in, tensor **grads, unsigned flags)
{
	tensor *y = fn(in.data, NULL);

	if (!y)
		return -1;
	return tensor_backward_ex(TENSOR_LIST(tensor_sum(tensor_mul(y, cosines(y, 1)))), NULL, in,
				  grads, flags);
}

/* The product of the Hessian with a direction: by a second backward, and by forward mode through the first one. */
static inline int hessian_products(function fn, tensor_list in, tensor **reverse, tensor **forward)
{
	tensor *grads[MAX_IN], *duals[MAX_IN], *directions[MAX_IN], *y[MAX_IN], *v[MAX_IN];
	int n = 0;

	if (weighted_gradients(fn, in, grads, TENSOR_CREATE_GRAPH) < 0)
		return -1;
	for (int64_t i = 0; i < in.len; i++) {
		directions[i] = cosines(in.data[i], 0.7 + (double)i);
		duals[i] = tensor_make_dual(in.data[i], directions[i]);
		reverse[i] = forward[i] = NULL;
		if (!duals[i])
			return -1;
		if (grads[i] && tensor_requires_grad(grads[i])) {
			y[n] = grads[i];
			v[n++] = directions[i];
		}
	}
	if (n && tensor_backward_ex((tensor_list){ y, n }, v, in, reverse, 0) < 0)
		return -1;
	if (weighted_gradients(fn, (tensor_list){ duals, in.len }, grads, 0) < 0)
		return -1;
	for (int64_t i = 0; i < in.len; i++)
		forward[i] = grads[i] ? tensor_tangent(grads[i]) : NULL;
	return 0;
}

/* a and b are equal; NULL stands for zeros. */
static inline bool near(tensor *a, tensor *b, double atol, double rtol)
{
	tensor *have = a ? a : b;
	bool equal = true;

	if (!have)
		return true;
	a = a ? a : tensor_zeros_like(have, TENSOR_OPTIONS(0));
	b = b ? b : tensor_zeros_like(have, TENSOR_OPTIONS(0));
	return tensor_allclose(a, b, rtol, atol, false, &equal) == 0 && equal;
}

static inline int hessiancheck(function fn, void *ctx, tensor_list in, double eps, double atol,
			       double rtol)
{
	tensor *reverse[MAX_IN], *forward[MAX_IN];

	(void)ctx, (void)eps;
	if (hessian_products(fn, in, reverse, forward) < 0)
		return -1;
	for (int64_t i = 0; i < in.len; i++)
		if (!near(forward[i], reverse[i], atol, rtol)) {
			fprintf(stderr, "input %lld: forward over reverse differs\n", (long long)i);
			return -1;
		}
	return 0;
}

#include "formula_forms.h"

/* Five tests of `formulas`: first and second derivatives, forward mode, forward over reverse, other inputs. */
#define FORMULA_TESTS                                                     \
	FORMULA_MODE_TESTS                                                \
	static void every_formula_agrees_with_differences(void **state)   \
	{                                                                 \
		check_all(formulas, ARRAY_SIZE(formulas), gradcheck);     \
	}                                                                 \
	static void every_formula_is_differentiable_again(void **state)   \
	{                                                                 \
		check_all(formulas, ARRAY_SIZE(formulas), gradgradcheck); \
	}                                                                 \
	static void every_formula_with_other_inputs(void **state)         \
	{                                                                 \
		check_forms(formulas, ARRAY_SIZE(formulas));              \
	}

#define FORMULA_MODE_TESTS                                                 \
	static void every_formula_has_a_forward_mode(void **state)         \
	{                                                                  \
		check_all(formulas, ARRAY_SIZE(formulas), forwardcheck);   \
	}                                                                  \
	static void forward_over_reverse_agrees_with_reverse(void **state) \
	{                                                                  \
		check_all(formulas, ARRAY_SIZE(formulas), hessiancheck);   \
	}

/* Their entries in the array of tests. */
#define FORMULA_TEST_LIST                                                   \
	cmocka_unit_test(every_formula_agrees_with_differences),            \
		cmocka_unit_test(every_formula_is_differentiable_again),    \
		cmocka_unit_test(every_formula_has_a_forward_mode),         \
		cmocka_unit_test(forward_over_reverse_agrees_with_reverse), \
		cmocka_unit_test(every_formula_with_other_inputs)

#endif
