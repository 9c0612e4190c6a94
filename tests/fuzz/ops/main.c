// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Compares operators with plain loops.
 *
 *	fuzz-ops [--cases N] [--seed S] [--case K] [--op NAME]
 *
 * Every case has its own seed, printed on failure: --seed S --case K repeats it. A valid call must
 * give the result of the plain implementation, in each form of the operator; an invalid call must
 * fail with an error text; neither changes its inputs.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

uint64_t chance(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

int64_t below(int64_t n)
{
	return (int64_t)(chance() % (uint64_t)n);
}

bool one_in(int n)
{
	return !below(n);
}

/* ---- arguments ---- */

static tensor_value *next_arg(struct call *c)
{
	if (c->nargs == ARGS)
		abort();
	return &c->args[c->nargs++];
}

static void record_tensor(struct call *c, tensor *t)
{
	if (c->ntensors == LIST_MAX)
		abort();
	c->t[c->ntensors] = t;
	plain_read(&c->in[c->ntensors++], t);
}

void arg_tensor(struct call *c, tensor *t)
{
	*next_arg(c) = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = t };
	record_tensor(c, t);
}

void arg_int(struct call *c, int64_t i)
{
	*next_arg(c) = (tensor_value){ .kind = TENSOR_VALUE_INT, .i = i };
}

void arg_bool(struct call *c, bool b)
{
	*next_arg(c) = (tensor_value){ .kind = TENSOR_VALUE_BOOL, .b = b };
}

void arg_ints(struct call *c, const int64_t *v, int n)
{
	int64_t *own = plain_alloc((n + 1) * sizeof(*own));

	memcpy(own, v, n * sizeof(*own));
	*next_arg(c) = (tensor_value){ .kind = TENSOR_VALUE_INTS, .ints = { own, n } };
}

void arg_scalar(struct call *c, tensor_scalar s)
{
	*next_arg(c) = (tensor_value){ .kind = TENSOR_VALUE_SCALAR, .scalar = s };
}

void arg_list(struct call *c, tensor *const *t, int n)
{
	tensor **own = plain_alloc((n + 1) * sizeof(*own));

	memcpy(own, t, n * sizeof(*own));
	*next_arg(c) = (tensor_value){ .kind = TENSOR_VALUE_TENSOR_LIST, .list = { own, n } };
	for (int i = 0; i < n; i++)
		record_tensor(c, t[i]);
}

int64_t any_dim(struct call *c, int ndim)
{
	int range = ndim ? ndim : 1;

	if (one_in(100)) {
		c->refuse = true;
		return one_in(2) ? range + below(3) : -range - 1 - below(3);
	}
	return below(2 * range) - range;
}

int wrapped(int64_t dim, int ndim)
{
	return (int)(dim < 0 ? dim + (ndim ? ndim : 1) : dim);
}

/* ---- forms ---- */

/* "add.Tensor" -> "add_.Tensor" */
static void inplace_name(const char *name, char *to, size_t size)
{
	int base = (int)strcspn(name, ".");

	snprintf(to, size, "%.*s_%s", base, name, name + base);
}

static bool unchanged(const struct call *c, const tensor *except, char *why, size_t size)
{
	for (int i = 0; i < c->ntensors; i++) {
		struct plain now;

		if (except && tensor_shares_storage(except, c->t[i]))
			continue;
		plain_read(&now, c->t[i]);
		if (now.numel != c->in[i].numel ||
		    memcmp(now.v, c->in[i].v, now.numel * sizeof(*now.v))) {
			/* Compared by bits, since NaN != NaN. */
			snprintf(why, size, "argument %d was changed", i);
			return false;
		}
	}
	return true;
}

static bool failed_with_text(char *why, size_t size)
{
	if (tensor_last_error()->code && *tensor_last_error()->text)
		return true;
	snprintf(why, size, "failed without an error code or text");
	return false;
}

static unsigned long uncomputed, refused, compared;

/* Returns 1: continue, 0: failed, -1: passed, with no result to compare. */
static int check_outcome(struct call *c, int err, char *why, size_t size)
{
	if (!err) {
		if (c->either)
			return -1;
		if (c->refuse)
			snprintf(why, size, "succeeded with invalid arguments");
		return !c->refuse;
	}
	if (!failed_with_text(why, size))
		return 0;
	if (err == -EOPNOTSUPP) {
		uncomputed++;
		return -1;
	}
	refused++;
	if (!c->refuse)
		snprintf(why, size, "%s", tensor_last_error()->text);
	return c->refuse ? -1 : 0;
}

static bool run_function(struct call *c, char *why, size_t size)
{
	tensor_value rets[RESULTS] = { { 0 } };
	int verdict;

	verdict = check_outcome(c, tensor_call(c->name, c->args, c->nargs, rets, c->nresults), why,
				size);
	for (int i = 0; verdict > 0 && i < c->nresults; i++)
		verdict = plain_equal(&c->want[i], rets[i].t, why, size);
	compared += verdict > 0;
	return verdict && unchanged(c, NULL, why, size);
}

/* Whether no two elements overlap. */
static bool plain_strides(const tensor *t)
{
	for (int d = 0; d < tensor_dim(t); d++)
		if (!tensor_strides(t)[d] && tensor_sizes(t)[d] > 1)
			return false;
	return true;
}

static bool may_store(enum tensor_dtype from, enum tensor_dtype to)
{
	return plain_category(from) <= plain_category(to);
}

/* Calls the out or in-place form; `must`: the call must succeed. */
static bool run_into(struct call *c, const char *name, tensor *to, bool must, char *why,
		     size_t size)
{
	struct plain want = c->want[0];
	tensor_value rets[1] = { { 0 } };
	int err = tensor_call(name, c->args, c->nargs, rets, 1);

	if (err) {
		if (!failed_with_text(why, size))
			return false;
		if (must && !c->refuse && err != -EOPNOTSUPP) {
			snprintf(why, size, "%s", tensor_last_error()->text);
			return false;
		}
		return unchanged(c, NULL, why, size);
	}
	if (c->either)
		return true;
	if (c->refuse || !may_store(c->want[0].dtype, tensor_dtype(to))) {
		snprintf(why, size, "succeeded with invalid arguments");
		return false;
	}
	plain_make(&want, tensor_dtype(to), c->want[0].ndim, c->want[0].sizes);
	want.slack = c->want[0].slack + (want.dtype != c->want[0].dtype);
	want.size = c->want[0].size;
	plain_slack_of(&want, c->want[0].dtype);
	for (int64_t i = 0; i < want.numel; i++)
		want.v[i] = plain_round(c->want[0].v[i], c->want[0].dtype, want.dtype);
	compared++;
	return plain_equal(&want, to, why, size) && unchanged(c, to, why, size);
}

static bool same_shape(const struct plain *a, const struct plain *b)
{
	return a->ndim == b->ndim && !memcmp(a->sizes, b->sizes, a->ndim * sizeof(*a->sizes));
}

static bool run_inplace(struct call *c, char *why, size_t size)
{
	tensor *self = c->t[0];
	bool must = same_shape(&c->in[0], &c->want[0]) && plain_strides(self) &&
		    may_store(c->want[0].dtype, c->in[0].dtype);
	char name[80];

	inplace_name(c->name, name, sizeof(name));
	snprintf(c->name, sizeof(c->name), "%s", name);
	return run_into(c, name, self, must, why, size);
}

/* The out variant of the operator of this row; `at` is set to the position of the argument. */
static const tensor_op *out_form(const struct row *row, int *at)
{
	const struct tensor_schema *own = tensor_op_schema(tensor_op_find(row->name));
	int base = (int)strcspn(own->name, "."), n;
	const tensor_op *const *all = tensor_op_list(&n);

	for (int i = 0; i < n; i++) {
		const struct tensor_schema *s = tensor_op_schema(all[i]);
		bool same = !strncmp(s->name, own->name, base) && s->name[base] == '.' &&
			    s->nargs == own->nargs + 1 && !strcmp(s->args[own->nargs].name, "out");

		for (int k = 0; same && k < own->nargs; k++)
			same = !strcmp(s->args[k].name, own->args[k].name) &&
			       s->args[k].type == own->args[k].type;
		if (same) {
			*at = own->nargs;
			return all[i];
		}
	}
	return NULL;
}

static bool run_out(struct call *c, char *why, size_t size)
{
	int at;
	const tensor_op *op = out_form(c->row, &at);
	struct plain *want = &c->want[0];
	enum tensor_dtype dtype = one_in(3) ? any_dtype() : want->dtype;
	bool right = one_in(2), must = dtype == want->dtype;
	tensor *to = right ? tensor_like(dtype, want->ndim, want->sizes) :
			     tensor_empty(TENSOR_SHAPE(below(5)), TENSOR_OPTIONS(.dtype = dtype));

	if (!op) {
		snprintf(why, size, "there is no form with out=");
		return false;
	}
	if (!to)
		return true;
	snprintf(c->name, sizeof(c->name), "%s", tensor_op_schema(op)->name);
	while (c->nargs < at)
		*next_arg(c) = (tensor_value){ .kind = TENSOR_VALUE_NONE };
	*next_arg(c) = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = to };
	return run_into(c, c->name, to, must && plain_strides(to), why, size);
}

/* ---- main ---- */

static const struct row *rows[256];
static int nrows;

static void add_rows(const struct row *r, int n, const char *only)
{
	for (int i = 0; i < n; i++)
		if (tensor_op_find(r[i].name) && (!only || !strcmp(only, r[i].name)))
			rows[nrows++] = &r[i];
}

static void describe(const struct call *c)
{
	fprintf(stderr, "  %s(", c->name);
	for (int i = 0; i < c->nargs; i++) {
		const tensor_value *v = &c->args[i];

		fprintf(stderr, "%s", i ? ", " : "");
		if (v->kind == TENSOR_VALUE_INT)
			fprintf(stderr, "%lld", (long long)v->i);
		else if (v->kind == TENSOR_VALUE_SCALAR)
			fprintf(stderr, "number %lld/%g", (long long)v->scalar.i, v->scalar.d);
		else if (v->kind == TENSOR_VALUE_TENSOR)
			fprintf(stderr, "tensor");
		else if (v->kind == TENSOR_VALUE_INTS)
			for (int64_t k = 0; k < v->ints.len; k++)
				fprintf(stderr, "%s%lld", k ? " " : "[",
					(long long)v->ints.data[k]);
		else
			fprintf(stderr, "...");
	}
	fprintf(stderr, ")\n");
	for (int i = 0; i < c->ntensors; i++) {
		const tensor *t = c->t[i];

		fprintf(stderr, "  tensor %d: %s [", i, tensor_dtype_name(tensor_dtype(t)));
		for (int d = 0; d < tensor_dim(t); d++)
			fprintf(stderr, "%s%lld:%lld", d ? ", " : "", (long long)tensor_sizes(t)[d],
				(long long)tensor_strides(t)[d]);
		fprintf(stderr, "] (size:stride)\n");
	}
}

static bool run_case(uint64_t seed)
{
	struct call c = { .nresults = 1 };
	char why[512] = "";
	bool ok = true;

	state = seed;
	tensor_scope {
		c.row = rows[below(nrows)];
		snprintf(c.name, sizeof(c.name), "%s", c.row->name);
		c.row->make(&c);
		if (c.row->inplace && one_in(4))
			ok = run_inplace(&c, why, sizeof(why));
		else if (c.row->out && one_in(4))
			ok = run_out(&c, why, sizeof(why));
		else
			ok = run_function(&c, why, sizeof(why));
		if (!ok) {
			fprintf(stderr, "case %llu: %s\n", (unsigned long long)seed, why);
			describe(&c);
		}
	}
	plain_free_all();
	return ok;
}

int main(int argc, char **argv)
{
	unsigned long long cases = 100000, seed = 1, one = 0;
	const char *only = NULL;
	int failed = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--cases"))
			cases = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--case"))
			one = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--op"))
			only = argv[i + 1];
		else
			return fprintf(stderr, "fuzz-ops: unknown option %s\n", argv[i]), 2;
	}
	add_rows(pointwise_rows, pointwise_count, only);
	add_rows(shape_rows, shape_count, only);
	add_rows(index_rows, index_count, only);
	if (!nrows)
		return fprintf(stderr, "fuzz-ops: no such operator\n"), 2;
	if (one)
		return !run_case(one);
	for (unsigned long long k = 0; k < cases && failed < 20; k++)
		failed += !run_case(seed * 1000000007ull + k);
	printf("%sok 1 - %llu cases of %d operators: %lu results compared, %lu invalid calls refused, "
	       "%lu without a kernel for the dtype\n1..1\n",
	       failed ? "not " : "", cases, nrows, compared, refused, uncomputed);
	return failed != 0;
}
