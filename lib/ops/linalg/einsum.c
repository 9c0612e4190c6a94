// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * einsum: contracts operands from left to right, two at a time. A label of both that neither the
 * result nor a later operand has is summed by a matrix product. Everything else is composed of
 * views, sums and elementwise products, which differentiate it.
 */
#include "ops/op.h"

#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/reduce.h"
#include "family/view.h"

#define LETTERS 52
/* letters, then the dimensions of "..." from the last */
#define LABELS	 (LETTERS + TENSOR_MAX_DIMS)
#define ELLIPSIS LETTERS

/* An operand or intermediate result, with one label per dimension. */
struct term {
	tensor *t;
	int n, label[TENSOR_MAX_DIMS];
};

struct equation {
	const char *at;	   /* unparsed text */
	int count[LABELS]; /* number of occurrences in the operands */
	int later[LABELS]; /* number of later operands, and the result, that have the label */
	int ellipsis;	   /* largest number of dimensions "..." stands for */
	int nout, out[TENSOR_MAX_DIMS];
};

static int letter(char c)
{
	return c >= 'a' && c <= 'z' ? 26 + c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' : -1;
}

static void skip_spaces(struct equation *e)
{
	while (*e->at == ' ')
		e->at++;
}

/* Parse the labels up to ',' or "->". "..." stands for `dims` dimensions (-1: not known yet).
 * Returns the number of labels, or -1. */
static int read_labels(struct equation *e, int dims, int *label)
{
	bool seen = false;
	int n = 0, rest;

	for (skip_spaces(e); *e->at && *e->at != ',' && *e->at != '-'; skip_spaces(e)) {
		const char *p = e->at;

		if (p[0] == '.' && p[1] == '.' && p[2] == '.' && !seen) {
			seen = true;
			e->at += 3;
			rest = 0;
			for (p = e->at; *p && *p != ',' && *p != '-'; p++)
				rest += letter(*p) >= 0;
			rest = dims < 0 ? e->ellipsis : dims - n - rest;
			for (int k = rest - 1; k >= 0 && n < TENSOR_MAX_DIMS; k--)
				label[n++] = ELLIPSIS + k;
			if (rest > e->ellipsis)
				e->ellipsis = rest;
			continue;
		}
		if (letter(*p) < 0)
			return tensor_fail(EINVAL,
					   "einsum: equation: a letter, \"...\", ',' or \"->\" "
					   "was expected, got %s",
					   QUOTED(p)),
			       -1;
		if (n == TENSOR_MAX_DIMS)
			return tensor_fail(EINVAL,
					   "einsum: equation: more than %d labels in one "
					   "operand",
					   TENSOR_MAX_DIMS),
			       -1;
		label[n++] = letter(*p);
		e->at++;
	}
	return n;
}

/* Replace two dimensions with the same label by their diagonal. */
static int merge_repeated(struct term *a)
{
	for (int i = 0; i < a->n; i++) {
		for (int k = i + 1; a->t && k < a->n; k++) {
			int label = a->label[i];

			if (a->label[k] != label)
				continue;
			if (a->t->sizes[i] != a->t->sizes[k])
				return tensor_fail(EINVAL,
						   "einsum: a repeated label has sizes %lld and "
						   "%lld in operand %s",
						   (long long)a->t->sizes[i],
						   (long long)a->t->sizes[k], SHAPE_STR(a->t));
			a->t = tensor_diagonal(a->t, 0, i, k);
			memmove(a->label + k, a->label + k + 1, (a->n - k - 1) * sizeof(int));
			memmove(a->label + i, a->label + i + 1, (a->n - i - 2) * sizeof(int));
			a->n--;
			a->label[a->n - 1] = label;
			i = -1;
			break;
		}
	}
	return a->t ? 0 : error_code();
}

static int place(const struct term *a, int label)
{
	for (int i = 0; i < a->n; i++)
		if (a->label[i] == label)
			return i;
	return -1;
}

static void drop(struct term *a, int i)
{
	memmove(a->label + i, a->label + i + 1, (a->n - i - 1) * sizeof(int));
	a->n--;
}

/* Sum the labels that neither `other` (NULL: none) nor a later operand has. */
static int sum_alone(const struct equation *e, struct term *a, const struct term *other)
{
	for (int i = 0; a->t && i < a->n; i++) {
		if (e->later[a->label[i]] || (other && place(other, a->label[i]) >= 0))
			continue;
		a->t = tensor_sum_dim(a->t, TENSOR_INTS(i), false);
		drop(a, i--);
	}
	return a->t ? 0 : error_code();
}

/* Drop dimensions of size 1 of a whose label has another size in b: they broadcast. */
static int drop_ones(struct term *a, const struct term *b)
{
	for (int i = 0; a->t && i < a->n; i++) {
		int k = place(b, a->label[i]);

		if (k < 0 || a->t->sizes[i] == b->t->sizes[k])
			continue;
		if (a->t->sizes[i] != 1 && b->t->sizes[k] != 1)
			return tensor_fail(EINVAL,
					   "einsum: one label has sizes %lld and %lld in "
					   "operands %s and %s",
					   (long long)a->t->sizes[i], (long long)b->t->sizes[k],
					   SHAPE_STR(a->t), SHAPE_STR(b->t));
		if (a->t->sizes[i] != 1)
			continue;
		a->t = tensor_squeeze_dim(a->t, i);
		drop(a, i--);
	}
	return a->t ? 0 : error_code();
}

enum group { BATCH, LEFT, RIGHT, SUMMED, GROUPS };

struct groups {
	int n[GROUPS], label[GROUPS][TENSOR_MAX_DIMS];
};

static int64_t size_of(const struct term *a, const struct term *b, int label)
{
	int i = place(a, label);

	return i >= 0 ? a->t->sizes[i] : b->t->sizes[place(b, label)];
}

/* a with the dimensions of each of three groups merged into one. */
static tensor *three(const struct term *a, const struct groups *g, const enum group *order)
{
	int64_t dims[TENSOR_MAX_DIMS], sizes[3];
	int n = 0;

	for (int k = 0; k < 3; k++) {
		sizes[k] = 1;
		for (int i = 0; i < g->n[order[k]]; i++) {
			dims[n] = place(a, g->label[order[k]][i]);
			sizes[k] *= a->t->sizes[dims[n++]];
		}
	}
	return tensor_reshape(tensor_permute(a->t, (tensor_ints){ dims, n }),
			      (tensor_ints){ sizes, 3 });
}

static int multiply(const struct equation *e, struct term *a, struct term *b)
{
	static const enum group left[] = { BATCH, LEFT, SUMMED },
				right[] = { BATCH, SUMMED, RIGHT };
	struct groups g = { .n = { 0 } };
	int64_t sizes[TENSOR_MAX_DIMS];
	struct term out = { .n = 0 };

	for (int i = 0; i < a->n; i++) {
		enum group k = place(b, a->label[i]) < 0 ? LEFT :
			       e->later[a->label[i]]	 ? BATCH :
							   SUMMED;

		g.label[k][g.n[k]++] = a->label[i];
	}
	for (int i = 0; i < b->n; i++)
		if (place(a, b->label[i]) < 0)
			g.label[RIGHT][g.n[RIGHT]++] = b->label[i];
	if (g.n[BATCH] + g.n[LEFT] + g.n[RIGHT] > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL,
				   "einsum: a product of operands %s and %s has more than %d "
				   "dimensions",
				   SHAPE_STR(a->t), SHAPE_STR(b->t), TENSOR_MAX_DIMS);
	for (int k = BATCH; k <= RIGHT; k++) {
		for (int i = 0; i < g.n[k]; i++) {
			out.label[out.n] = g.label[k][i];
			sizes[out.n++] = size_of(a, b, g.label[k][i]);
		}
	}
	if (g.n[SUMMED])
		out.t = tensor_bmm(three(a, &g, left), three(b, &g, right));
	else
		out.t = tensor_mul(three(a, &g, left), three(b, &g, right));
	out.t = tensor_reshape(out.t, (tensor_ints){ sizes, out.n });
	*a = out;
	return a->t ? 0 : error_code();
}

/* ---- the equation ---- */

static int read_operands(struct equation *e, tensor_list tensors, struct term *terms)
{
	for (int64_t k = 0; k < tensors.len; k++) {
		struct term *a = &terms[k];
		bool last = k == tensors.len - 1;

		a->t = tensors.data[k];
		a->n = read_labels(e, a->t->ndim, a->label);
		if (a->n < 0)
			return error_code();
		if (a->n != a->t->ndim)
			return tensor_fail(EINVAL,
					   "einsum: equation: operand %lld has shape %s, and "
					   "%d labels",
					   (long long)k, SHAPE_STR(a->t), a->n);
		if (last ? *e->at == ',' : *e->at != ',')
			return tensor_fail(EINVAL,
					   "einsum: equation: %lld operands were given, the "
					   "equation has %s",
					   (long long)tensors.len, last ? "more" : "fewer");
		e->at += !last;
		for (int i = 0; i < a->n; i++)
			e->count[a->label[i]]++;
		if (merge_repeated(a) < 0)
			return error_code();
		for (int i = 0; i < a->n; i++)
			e->later[a->label[i]]++;
	}
	return 0;
}

/* Parse the output after "->". Without it, the output is "..." and the letters that occur once, in
 * alphabetical order. */
static int read_output(struct equation *e)
{
	bool used[LABELS] = { false };

	if (!*e->at) {
		for (int k = e->ellipsis - 1; k >= 0 && e->nout < TENSOR_MAX_DIMS; k--)
			e->out[e->nout++] = ELLIPSIS + k;
		for (int l = 0; l < LETTERS && e->nout < TENSOR_MAX_DIMS; l++)
			if (e->count[l] == 1)
				e->out[e->nout++] = l;
	} else {
		if (e->at[0] != '-' || e->at[1] != '>')
			return tensor_fail(EINVAL, "einsum: equation: \"->\" was expected, got %s",
					   QUOTED(e->at));
		e->at += 2;
		e->nout = read_labels(e, -1, e->out);
		if (e->nout < 0)
			return error_code();
		if (*e->at)
			return tensor_fail(EINVAL, "einsum: equation: %s follows the result",
					   QUOTED(e->at));
	}
	for (int i = 0; i < e->nout; i++) {
		if (!e->count[e->out[i]] || used[e->out[i]])
			return tensor_fail(EINVAL, "einsum: equation: label %d of the result %s", i,
					   used[e->out[i]] ? "is there twice" : "has no operand");
		used[e->out[i]] = true;
		e->later[e->out[i]]++;
	}
	return 0;
}

static tensor *einsum(const char *text, tensor_list tensors, struct term *terms)
{
	struct equation e = { .at = text };
	struct term *a = terms;
	int64_t dims[TENSOR_MAX_DIMS];

	if (read_operands(&e, tensors, terms) < 0 || read_output(&e) < 0)
		return NULL;
	for (int i = 0; i < a->n; i++)
		e.later[a->label[i]]--;
	for (int64_t k = 1; k < tensors.len; k++) {
		struct term *b = &terms[k];

		for (int i = 0; i < b->n; i++)
			e.later[b->label[i]]--;
		if (drop_ones(a, b) < 0 || drop_ones(b, a) < 0 || sum_alone(&e, a, b) < 0 ||
		    sum_alone(&e, b, a) < 0 || multiply(&e, a, b) < 0)
			return NULL;
	}
	if (sum_alone(&e, a, NULL) < 0)
		return NULL;
	for (int i = 0; i < e.nout; i++)
		dims[i] = place(a, e.out[i]);
	return tensor_permute(a->t, (tensor_ints){ dims, e.nout });
}

tensor *composite_einsum(const char *equation, tensor_list tensors)
{
	struct tensor_scope_guard guard;
	struct term terms[16];

	if (!equation)
		return tensor_fail_null(EINVAL, "einsum: equation is NULL");
	if (tensors.len < 1 || tensors.len > (int64_t)ARRAY_SIZE(terms))
		return tensor_fail_null(EINVAL, "einsum: 1 to %zu tensors, got %lld",
					ARRAY_SIZE(terms), (long long)tensors.len);
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, einsum(equation, tensors, terms));
}
