/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Included by formulas.h: the functions of its tables with other inputs: random sizes, sizes of 0, broadcast operands, views that are
 * strided, transposed or expanded, complex numbers, and a batch of gradients. A function that refuses such inputs is not
 * compared; tests/unit/gradients has the number of comparisons that there must be at least.
 *
 * GRADIENT_ROUNDS: how many random shapes of each (1). GRADIENT_SEED: of the first round (1).
 */
#ifndef TESTS_FORMULA_FORMS_H
#define TESTS_FORMULA_FORMS_H

enum form {
	FORM_SIZES,
	FORM_EMPTY,
	FORM_BROADCAST,
	FORM_STRIDED,
	FORM_TRANSPOSED,
	FORM_EXPANDED,
	FORM_COMPLEX,
	FORM_BATCHED
};
#define FORMS 8
static const char *const form_names[FORMS] = { "sizes",	     "empty",	 "broadcast", "strided",
					       "transposed", "expanded", "complex",   "batched" };

/* One comparison: the function, and how its inputs are made from leaves. */
struct formed {
	const struct formula *f;
	enum form form;
	int64_t sizes[MAX_IN][4]; /* of the inputs */
	int dim[MAX_IN];	  /* that is strided or expanded */
};

#define MOST_ELEMENTS 64

/* ---- random numbers ---- */

static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline int64_t random_below(uint64_t *state, int64_t n)
{
	return (int64_t)(next_random(state) % (uint64_t)n);
}

/* ---- shapes ---- */

static inline int64_t count_elements(const struct formed *g, int i)
{
	int64_t n = 1;

	for (int d = 0; d < g->f->in[i].ndim; d++)
		n *= g->sizes[i][d];
	return n;
}

/* All dimensions of one size get the same other one, so that operands still fit. */
static inline void replace_size(struct formed *g, int64_t from, int64_t to)
{
	for (int i = 0; i < g->f->n; i++)
		for (int d = 0; d < g->f->in[i].ndim; d++)
			if (g->f->in[i].sizes[d] == from)
				g->sizes[i][d] = to;
}

static inline void choose_sizes(struct formed *g, uint64_t *random)
{
	int64_t largest = 0, one[12], n = 0;

	for (int i = 0; i < g->f->n; i++)
		for (int d = 0; d < g->f->in[i].ndim; d++) {
			g->sizes[i][d] = g->f->in[i].sizes[d];
			one[n++ % 12] = g->sizes[i][d];
			largest = g->sizes[i][d] > largest ? g->sizes[i][d] : largest;
		}
	if (g->form == FORM_SIZES)
		for (int64_t s = 2; s <= largest; s++)
			replace_size(g, s, 2 + random_below(random, 4));
	if (g->form == FORM_EMPTY && n)
		replace_size(g, one[random_below(random, n < 12 ? n : 12)], 0);
	if (g->form == FORM_BROADCAST && g->f->n > 1) {
		int i = (int)random_below(random, g->f->n);

		if (g->f->in[i].ndim)
			g->sizes[i][random_below(random, g->f->in[i].ndim)] = 1;
	}
	for (int i = 0; i < g->f->n; i++)
		g->dim[i] = g->f->in[i].ndim ? (int)random_below(random, g->f->in[i].ndim) : -1;
}

/* ---- inputs ---- */

/* A leaf of random values around those of the row. */
static inline tensor *make_leaf(const struct formed *g, int i, uint64_t *random)
{
	int ndim = g->f->in[i].ndim, d = g->dim[i];
	int64_t sizes[5], n = 1;
	double v[4 * MOST_ELEMENTS];

	for (int k = 0; k < ndim; k++)
		sizes[k] = g->sizes[i][g->form == FORM_TRANSPOSED ? ndim - 1 - k : k];
	if (g->form == FORM_STRIDED && d >= 0)
		sizes[d] = 2 * sizes[d] + 1;
	if (g->form == FORM_EXPANDED && d >= 0)
		sizes[d] = 1;
	if (g->form == FORM_COMPLEX)
		sizes[ndim++] = 2;
	for (int k = 0; k < ndim; k++)
		n *= sizes[k];
	for (int64_t k = 0; k < n; k++)
		v[k] = g->f->in[i].shift +
		       g->f->in[i].scale * ((double)(next_random(random) >> 11) * 0x1p-52 - 1);
	return tensor_from_data(v, (tensor_ints){ sizes, ndim }, F64);
}

static inline tensor *input_of(const struct formed *g, int i, tensor *leaf)
{
	int ndim = g->f->in[i].ndim, d = g->dim[i];
	int64_t dims[4];

	switch (g->form) {
	case FORM_STRIDED:
		return d < 0 ? leaf : tensor_slice(leaf, d, 1, TENSOR_NONE, 2);
	case FORM_EXPANDED:
		return tensor_expand(leaf, (tensor_ints){ g->sizes[i], ndim });
	case FORM_TRANSPOSED:
		for (int k = 0; k < ndim; k++)
			dims[k] = ndim - 1 - k;
		return tensor_permute(leaf, (tensor_ints){ dims, ndim });
	case FORM_COMPLEX:
		return tensor_view_as_complex(leaf);
	default:
		return leaf;
	}
}

/* The function of the leaves. */
static inline tensor *call_formed(tensor *const *leaves, void *ctx)
{
	const struct formed *g = ctx;
	tensor *in[MAX_IN] = { NULL }, *y;

	for (int i = 0; i < g->f->n; i++) {
		in[i] = input_of(g, i, leaves[i]);
		if (!in[i])
			return NULL;
	}
	y = g->f->fn(in, NULL);
	return y && tensor_dtype(y) == TENSOR_C128 ? tensor_view_as_real(y) : y;
}

/* ---- comparisons ---- */

/* The gradients of a batch of output gradients, beside those of each. */
static inline int batchcheck(const struct formed *g, tensor_list in)
{
	tensor *y = call_formed(in.data, (void *)g), *us[3], *stacked, *batched[MAX_IN],
	       *one[MAX_IN];

	for (int k = 0; k < 3; k++)
		us[k] = cosines(y, k);
	stacked = tensor_stack(TENSOR_LIST(us[0], us[1], us[2]), 0);
	if (!stacked || tensor_backward_ex(TENSOR_LIST(y), &stacked, in, batched,
					   TENSOR_RETAIN_GRAPH | TENSOR_GRADS_BATCHED) < 0)
		return -1;
	for (int k = 0; k < 3; k++) {
		if (tensor_backward_ex(TENSOR_LIST(y), &us[k], in, one, TENSOR_RETAIN_GRAPH) < 0)
			return -1;
		for (int64_t i = 0; i < in.len; i++)
			if (!near(batched[i] ? tensor_select(batched[i], 0, k) : NULL, one[i], 1e-9,
				  1e-9)) {
				fprintf(stderr, "input %lld, sample %d: ", (long long)i, k);
				return -1;
			}
	}
	return 0;
}

/* Otherwise it is that of a singular matrix, whose elements are rounding. */
static inline bool is_small(tensor *grad)
{
	double most = 0;

	return !grad || !tensor_numel(grad) ||
	       (tensor_item(tensor_max(tensor_abs(tensor_detach(grad))), &most) == 0 && most < 1e6);
}

/* The gradients beside those of contiguous copies: there is no derivative where equal elements are compared. */
static inline int expandcheck(const struct formed *g, tensor_list in, tensor *const *grads)
{
	tensor *copies[MAX_IN] = { NULL }, *expected[MAX_IN];

	for (int i = 0; i < g->f->n; i++) {
		copies[i] = tensor_clone(tensor_detach(input_of(g, i, in.data[i])));
		if (!copies[i] || tensor_set_requires_grad(copies[i], true) < 0)
			return -1;
	}
	if (tensor_backward_ex(TENSOR_LIST(tensor_sum(g->f->fn(copies, NULL))), NULL,
			       (tensor_list){ copies, in.len }, expected, 0) < 0)
		return -1;
	for (int i = 0; i < g->f->n; i++) {
		if (expected[i] && g->dim[i] >= 0)
			expected[i] = tensor_sum_dim(expected[i], TENSOR_INTS(g->dim[i]), true);
		if (!is_small(expected[i]))
			return 0;
		if (!near(grads[i], expected[i], 1e-9, 1e-9))
			return fprintf(stderr, "input %d: ", i), -1;
	}
	return 1;
}

static inline bool is_finite(tensor *y)
{
	double finite = 0;

	return tensor_item(tensor_to(tensor_all(tensor_isfinite(tensor_detach(y))), F64),
			   &finite) == 0 &&
	       finite;
}

/*
 * The most elements of inputs whose second derivatives are compared with differences. Under AddressSanitizer, where an allocation takes
 * fifty times as long, larger ones would take minutes and run no other code.
 */
#if defined(__SANITIZE_ADDRESS__)
#define MOST_SECOND 24
#else
#define MOST_SECOND INT64_MAX
#endif

/* 1: compared, 0: the function refuses the inputs, -1: the gradients differ. */
static inline int compare_formed(const struct formed *g, uint64_t *random)
{
	const double atol = 1e-5, rtol = 1e-4;
	tensor *leaves[MAX_IN] = { NULL }, *y, *grads[MAX_IN];
	tensor_list in = { leaves, g->f->n };
	int64_t elements = 0;

	for (int i = 0; i < g->f->n; i++) {
		if (count_elements(g, i) > MOST_ELEMENTS)
			return 0;
		elements += count_elements(g, i);
		leaves[i] = ok(make_leaf(g, i, random));
		assert_done(tensor_set_requires_grad(leaves[i], true));
	}
	y = call_formed(leaves, (void *)g);
	if (!y || tensor_dtype(y) != TENSOR_F64 || !tensor_requires_grad(y) ||
	    tensor_numel(y) > 4096) {
		tensor_clear_error();
		return 0;
	}
	if (tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, in, grads, TENSOR_CREATE_GRAPH) <
	    0)
		return strstr(tensor_last_error()->text, "singular") ? 0 : -1;
	if (!is_finite(y))
		return g->form == FORM_EMPTY;
	if (g->form == FORM_EXPANDED)
		return expandcheck(g, in, grads);
	if (g->form == FORM_COMPLEX)
		record_formulas(TENSOR_LIST(y), "c128 ");
	if (g->form == FORM_BATCHED)
		return batchcheck(g, in) < 0 ? -1 : 1;
	if (tensor_gradcheck(call_formed, (void *)g, in, EPS, atol, rtol) < 0 ||
	    tensor_forwardcheck(call_formed, (void *)g, in, atol, rtol) < 0)
		return -1;
	if (elements <= MOST_SECOND &&
	    tensor_gradgradcheck(call_formed, (void *)g, in, EPS, 10 * atol, 10 * rtol) < 0 &&
	    !strstr(tensor_last_error()->text, "the output depends on no input") &&
	    !strstr(tensor_last_error()->text, "the output does not require a gradient"))
		return -1;
	return 1;
}

/* Values at a kink or near a singular matrix fail now and then, a wrong formula always. */
#define ATTEMPTS 3

/* The result of compare_formed(), after so many failures -1. */
static inline int attempt(struct formed *g, uint64_t *random)
{
	int result = 0;

	for (int k = 0; k < ATTEMPTS; k++) {
		tensor_scope {
			choose_sizes(g, random);
			tensor_clear_error();
			result = compare_formed(g, random);
		}
		if (result >= 0)
			return result;
	}
	return -1;
}

static inline void record_forms(const int *compared)
{
	const char *path = getenv("FORMULAS_CHECKED");
	FILE *to = path ? fopen(path, "a") : NULL;

	if (!to)
		return;
	for (int i = 0; i < FORMS; i++)
		fprintf(to, "form %s %d\n", form_names[i], compared[i]);
	fclose(to);
}

static inline int number_of(const char *name, int otherwise)
{
	return getenv(name) ? atoi(getenv(name)) : otherwise;
}

static inline void check_forms(const struct formula *formulas, size_t n)
{
	int compared[FORMS] = { 0 }, failed = 0, rounds = number_of("GRADIENT_ROUNDS", 1);

	for (size_t i = 0; i < n; i++) {
		uint64_t random = (uint64_t)number_of("GRADIENT_SEED", 1) * 1000003 + i;

		for (int k = 0; k < rounds * FORMS; k++) {
			struct formed g = { .f = &formulas[i], .form = (enum form)(k % FORMS) };
			int result;

			/* It reads fixed places, which other sizes may not have. */
			if (g.form <= FORM_EMPTY && !strncmp(formulas[i].name, "as_strided", 10))
				continue;
			result = attempt(&g, &random);
			compared[g.form] += result > 0;
			if (result >= 0)
				continue;
			fprintf(stderr, "%s, %s: %s\n", formulas[i].name, form_names[g.form],
				tensor_last_error()->text);
			failed++;
		}
	}
	record_forms(compared);
	assert_int_equal(failed, 0);
}

#endif
