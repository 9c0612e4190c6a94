// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A library for LD_PRELOAD that compares, for every operator that a program calls, tensor_vmap() with a loop: the call is
 * repeated with each tensor argument and with all of them as one sample of a batch of two, whose other sample is the flipped
 * argument. At the end it prints the calls that differ and the number of those that were compared, and exits with 1 if
 * there were any.
 *
 * BATCH_CHECK_LOOPS: prints the operators that have no batching rule for some arguments.
 */
#include <tensor/dispatch.h>
#include <tensor/tensor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ARGS   24
#define MOST_RETS   16
#define MOST_INPUTS 24
#define SAMPLES	    2
#define MOST_TIMES  40 /* calls of one operator that are compared */

/* The tensors of a call in the order of the arguments, those of lists among them. */
struct call {
	const tensor_op *op;
	const tensor_value *args;
	int nargs, nrets, ninputs;
	tensor *inputs[MOST_INPUTS];
	bool present[MOST_RETS]; /* results that are tensors */
	int noutputs;
};

static __thread bool busy;
static int compared, failed;
static int *times;

/* ---- arguments ---- */

static bool usable(tensor *t)
{
	return t &&
	       (t == tensor_none ||
		(tensor_layout(t) == TENSOR_STRIDED && tensor_get_device(t).type == TENSOR_CPU &&
		 tensor_data(t) && !tensor_is_batched(t) && !tensor_tangent(t)));
}

static bool add_input(struct call *c, tensor *t)
{
	if (!usable(t) || c->ninputs == MOST_INPUTS)
		return false;
	c->inputs[c->ninputs++] = t == tensor_none ? t : tensor_detach(t);
	return true;
}

/* False for calls that are not compared. */
static bool take_inputs(struct call *c)
{
	for (int i = 0; i < c->nargs; i++) {
		const tensor_value *v = &c->args[i];

		if (v->kind == TENSOR_VALUE_TENSOR && v->t && !add_input(c, v->t))
			return false;
		if (v->kind != TENSOR_VALUE_TENSOR_LIST)
			continue;
		for (int64_t k = 0; k < v->list.len; k++)
			if (!add_input(c, v->list.data[k]))
				return false;
	}
	return c->ninputs > 0;
}

/* Operators that cannot be compared, or refuse batched tensors, by the begin of their names: they change the geometry of self, or the result
 * is not strided. */
static const char *const refused[] = {
	"as_strided",	       /* the offset of a sample is another one */
	"tensor_split.tensor", /* values are sizes of results, which samples have in common */
	"transpose_",	       "t_",	    "swap",	     "squeeze_",
	"unsqueeze_",	       "sparse_",   "to_sparse",     "quantize_",
	"_make_per",	       "to_mkldnn", "_foreach_addc", "mkldnn_reorder",
};

static bool is_not_compared(const struct tensor_schema *s)
{
	for (int i = 0; i < s->nargs; i++)
		if (!strcmp(s->args[i].name, "generator"))
			return true;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (!strncmp(s->name, refused[i], strlen(refused[i])))
			return true;
	return strstr(s->name, "rand") || strstr(s->name, "dropout") || strstr(s->name, "empty") ||
	       strstr(s->name, "resize");
}

/* In-place forms change a clone of self. */
static bool is_inplace(const struct tensor_schema *s)
{
	return s->nargs && s->args[0].mutated && s->args[0].type == TENSOR_ARG_TENSOR &&
	       !s->args[0].keyword_only;
}

static bool is_out(const struct tensor_schema *s)
{
	for (int i = 0; i < s->nargs; i++)
		if (s->args[i].mutated && (i || s->args[i].type != TENSOR_ARG_TENSOR))
			return true;
	return false;
}

static bool can_compare(const struct tensor_schema *s, int nargs, int nrets)
{
	return nargs && nargs <= MOST_ARGS && nrets && nrets <= MOST_RETS &&
	       strstr(s->text, "-> ") && strstr(strstr(s->text, "-> "), "Tensor") && !is_out(s) &&
	       !is_not_compared(s);
}

/* ---- one call ---- */

/* Calls the operator with other tensors in place of the inputs. */
static int call_with(const struct call *c, tensor *const *inputs, tensor_value *rets)
{
	tensor_value args[MOST_ARGS];
	int at = 0, err;

	memcpy(args, c->args, c->nargs * sizeof(*args));
	for (int i = 0; i < c->nargs; i++) {
		if (args[i].kind == TENSOR_VALUE_TENSOR && args[i].t)
			args[i].t = inputs[at++];
		if (args[i].kind == TENSOR_VALUE_TENSOR_LIST) {
			args[i].list.data = inputs + at;
			at += (int)args[i].list.len;
		}
	}
	if (is_inplace(tensor_op_schema(c->op))) {
		args[0].t = tensor_clone(args[0].t);
		if (!args[0].t)
			return -1;
	}
	memset(rets, 0, MOST_RETS * sizeof(*rets));
	err = tensor_op_call(c->op, args, c->nargs, rets, c->nrets);
	if (!err && is_inplace(tensor_op_schema(c->op)))
		rets[0] = args[0];
	return err;
}

/* The number of gradients that call_gradients() computes, with those inputs. */
static bool wants_gradient(const struct call *c, int i)
{
	enum tensor_dtype d = tensor_dtype(c->inputs[i]);

	return c->inputs[i] != tensor_none && (d == TENSOR_F32 || d == TENSOR_F64);
}

/* Sets grads[] to the gradients of the floating inputs from a gradient of cosines. */
static int call_gradients(const struct call *c, tensor *const *inputs, tensor **grads)
{
	tensor *leaves[MOST_INPUTS], *of[MOST_INPUTS], *outputs[MOST_RETS], *u[MOST_RETS];
	tensor_value rets[MOST_RETS];
	int n = 0, nout = 0;

	for (int i = 0; i < c->ninputs; i++) {
		leaves[i] = inputs[i];
		if (!wants_gradient(c, i))
			continue;
		leaves[i] = of[n++] = tensor_detach(inputs[i]);
		if (tensor_set_requires_grad(leaves[i], true) < 0)
			return -1;
	}
	if (call_with(c, leaves, rets) < 0)
		return -1;
	for (int i = 0; i < c->nrets; i++) {
		tensor *t = rets[i].kind == TENSOR_VALUE_TENSOR ? rets[i].t : NULL;

		if (!tensor_requires_grad(t))
			continue;
		u[nout] = tensor_reshape(
			tensor_cos(tensor_arange(tensor_scalar_int(tensor_numel(t)),
						 TENSOR_OPTIONS(.dtype = TENSOR_F64))),
			tensor_shape(t));
		u[nout] = tensor_to(u[nout], TENSOR_OPTIONS(.dtype = tensor_dtype(t)));
		outputs[nout++] = t;
	}
	if (!nout || tensor_backward_ex((tensor_list){ outputs, nout }, u, (tensor_list){ of, n },
					grads, 0) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		grads[i] = grads[i] ? grads[i] : tensor_zeros_like(of[i], (tensor_options){ 0 });
	return n;
}

static int call_gradients_batched(tensor *const *inputs, int ninputs, tensor **outputs,
				  int noutputs, void *ctx)
{
	(void)ninputs, (void)noutputs;
	return call_gradients(ctx, inputs, outputs) < 0 ? -1 : 0;
}

static int call_batched(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs,
			void *ctx)
{
	const struct call *c = ctx;
	tensor_value rets[MOST_RETS];
	int err = call_with(c, inputs, rets), n = 0;

	(void)ninputs, (void)noutputs;
	for (int i = 0; i < c->nrets && !err; i++)
		if (c->present[i])
			outputs[n++] = rets[i].t;
	return err;
}

/* ---- comparison ---- */

static bool same(tensor *a, tensor *b)
{
	enum tensor_dtype d = tensor_dtype(a), wide;
	double bound = d == TENSOR_F64 || d == TENSOR_C128 ? 1e-9 :
		       d == TENSOR_F16 || d == TENSOR_BF16 ? 2e-2 :
							     2e-4;
	bool equal = false;

	if (d != tensor_dtype(b) || tensor_dim(a) != tensor_dim(b) ||
	    memcmp(tensor_sizes(a), tensor_sizes(b), tensor_dim(a) * sizeof(int64_t)))
		return false;
	if (d == TENSOR_C64 || d == TENSOR_C128)
		wide = TENSOR_C128;
	else if (d == TENSOR_U64 || d == TENSOR_I64)
		wide = d;
	else
		wide = TENSOR_F64;
	a = tensor_to(a, TENSOR_OPTIONS(.dtype = wide));
	b = tensor_to(b, TENSOR_OPTIONS(.dtype = wide));
	return tensor_allclose(a, b, bound, bound, true, &equal) == 0 && equal;
}

static void report(const struct call *c, unsigned mask, const char *what)
{
	fprintf(stderr, "# batch: %s, batched %#x of %d: %s\n", tensor_op_schema(c->op)->name, mask,
		c->ninputs, what);
	for (int i = 0; i < c->nargs; i++) {
		char text[400] = "";

		if (c->args[i].kind == TENSOR_VALUE_TENSOR && c->args[i].t != tensor_none)
			tensor_format(c->args[i].t, text, sizeof(text));
		else if (c->args[i].kind == TENSOR_VALUE_INT)
			snprintf(text, sizeof(text), "%lld", (long long)c->args[i].i);
		else if (c->args[i].kind == TENSOR_VALUE_INTS)
			for (int64_t k = 0; k < c->args[i].ints.len && k < 8; k++)
				snprintf(text + strlen(text), 20, "%lld ",
					 (long long)c->args[i].ints.data[k]);
		fprintf(stderr, "#   %s = %s\n", tensor_op_schema(c->op)->args[i].name, text);
	}
	failed++;
}

/* The other sample of an argument: its elements in another order, which keeps them valid. */
static tensor *other_sample(tensor *t)
{
	int64_t dims[TENSOR_MAX_DIMS];

	for (int i = 0; i < tensor_dim(t); i++)
		dims[i] = i;
	return tensor_flip(t, (tensor_ints){ dims, tensor_dim(t) });
}

/* expected[s] has the results for sample s. */
static void compare_results(const struct call *c, unsigned mask, tensor **outputs,
			    tensor_value (*expected)[MOST_RETS])
{
	int n = 0;

	for (int i = 0; i < c->nrets; i++) {
		if (!c->present[i])
			continue;
		for (int s = 0; s < SAMPLES; s++)
			if (!same(tensor_select(outputs[n], 0, s), expected[s][i].t)) {
				char text[2][600], both[1400];

				tensor_format(outputs[n], text[0], sizeof(text[0]));
				tensor_format(expected[s][i].t, text[1], sizeof(text[1]));
				snprintf(both, sizeof(both), "result %d of sample %d:\n%s\nnot\n%s",
					 i, s, text[0], text[1]);
				report(c, mask, both);
				return;
			}
		n++;
	}
}

/* samples[s][i] is argument i of sample s, batch[i] both in one tensor, or what is the same for them. */
static void make_samples(const struct call *c, unsigned mask, tensor *(*samples)[MOST_INPUTS],
			 tensor **batch, int64_t *dims)
{
	for (int i = 0; i < c->ninputs; i++) {
		bool batched = mask >> i & 1 && c->inputs[i] != tensor_none;

		samples[0][i] = samples[1][i] = batch[i] = c->inputs[i];
		dims[i] = batched ? 0 : TENSOR_NONE;
		if (!batched)
			continue;
		samples[1][i] = other_sample(c->inputs[i]);
		batch[i] = tensor_stack(TENSOR_LIST(samples[0][i], samples[1][i]), 0);
	}
}

static void compare(struct call *c, unsigned mask)
{
	tensor_value expected[SAMPLES][MOST_RETS];
	tensor *samples[SAMPLES][MOST_INPUTS], *batch[MOST_INPUTS], *outputs[MOST_RETS];
	int64_t dims[MOST_INPUTS];

	make_samples(c, mask, samples, batch, dims);
	for (int s = 0; s < SAMPLES; s++)
		if (call_with(c, samples[s], expected[s]) < 0)
			return;
	c->noutputs = 0;
	for (int i = 0; i < c->nrets; i++) {
		c->present[i] = expected[0][i].kind == TENSOR_VALUE_TENSOR && expected[0][i].t;
		c->noutputs += c->present[i];
	}
	if (!c->noutputs)
		return;
	compared++;
	if (tensor_vmap(call_batched, c, (tensor_list){ batch, c->ninputs }, dims, outputs,
			c->noutputs, NULL, NULL) == 0)
		compare_results(c, mask, outputs, expected);
	else if (!strstr(tensor_last_error()->text, "at most 16 dimensions"))
		report(c, mask, tensor_last_error()->text);
}

/* Compares the gradients of a batch with those of its samples. */
static void compare_gradients(struct call *c, unsigned mask)
{
	tensor *expected[SAMPLES][MOST_INPUTS], *samples[SAMPLES][MOST_INPUTS], *batch[MOST_INPUTS],
		*grads[MOST_INPUTS];
	int64_t dims[MOST_INPUTS];
	int n = 0;

	make_samples(c, mask, samples, batch, dims);
	for (int s = 0; s < SAMPLES; s++) {
		n = call_gradients(c, samples[s], expected[s]);
		if (n <= 0)
			return;
	}
	compared++;
	if (tensor_vmap(call_gradients_batched, c, (tensor_list){ batch, c->ninputs }, dims, grads,
			n, NULL, NULL) < 0) {
		if (!strstr(tensor_last_error()->text, "at most 16 dimensions") &&
		    !strstr(tensor_last_error()->text, "has no gradient with respect to batched"))
			report(c, mask, tensor_last_error()->text);
		return;
	}
	for (int i = 0; i < n; i++)
		for (int s = 0; s < SAMPLES; s++)
			if (!same(tensor_select(grads[i], 0, s), expected[s][i])) {
				char text[2][600], both[1400];

				tensor_format(tensor_select(grads[i], 0, s), text[0],
					      sizeof(text[0]));
				tensor_format(expected[s][i], text[1], sizeof(text[1]));
				snprintf(both, sizeof(both),
					 "gradient %d of sample %d:\n%s\nnot\n%s", i, s, text[0],
					 text[1]);
				report(c, mask, both);
				return;
			}
}

static void compare_all(struct call *c)
{
	unsigned all = (1u << c->ninputs) - 1;

	if (!take_inputs(c))
		return;
	all = (1u << c->ninputs) - 1;
	tensor_scope
		compare(c, all);
	if (!is_inplace(tensor_op_schema(c->op)))
		tensor_enable_grad tensor_scope compare_gradients(c, all);
	for (int i = 0; c->ninputs > 1 && c->ninputs < 8 && i < c->ninputs; i++)
		if (c->inputs[i] != tensor_none && (i == 0 || !is_inplace(tensor_op_schema(c->op))))
			tensor_scope {
				compare(c, 1u << i);
				if (!is_inplace(tensor_op_schema(c->op)))
					tensor_enable_grad compare_gradients(c, 1u << i);
			}
}

/* ---- every call of the program ---- */

static int position(const tensor_op *op)
{
	int low = 0, high = tensor_op_count();

	while (low < high) {
		int mid = (low + high) / 2;

		if (strcmp(tensor_op_schema(tensor_op_at(mid))->name, tensor_op_schema(op)->name) <
		    0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int observe(const tensor_op *op, enum tensor_key key, const tensor_value *args, int nargs,
		   tensor_value *rets, int nrets, void *ctx)
{
	struct call c = { .op = op, .args = args, .nargs = nargs, .nrets = nrets };
	struct tensor_key_sets sets;
	struct tensor_error error;

	(void)ctx;
	if (!busy && can_compare(tensor_op_schema(op), nargs, nrets) &&
	    times[position(op)]++ < MOST_TIMES) {
		busy = true;
		error = *tensor_last_error();
		sets = tensor_set_key_sets((struct tensor_key_sets){ 0, 1u << key });
		tensor_no_grad
			tensor_scope
				compare_all(&c);
		tensor_set_key_sets(sets);
		if (!error.code)
			tensor_clear_error();
		busy = false;
	}
	return tensor_op_call_below(op, key, args, nargs, rets, nrets);
}

static void report_at_end(void)
{
	fprintf(stderr, "# batch: %d calls compared, %d differ\n", compared, failed);
	for (int i = 0; getenv("BATCH_CHECK_LOOPS") && i < tensor_op_count(); i++) {
		const char *name = tensor_op_schema(tensor_op_at(i))->name;

		if (tensor_vmap_loops(name))
			fprintf(stderr, "# batch: loop %s %lld\n", name,
				(long long)tensor_vmap_loops(name));
	}
	if (failed)
		_exit(1);
}

__attribute__((constructor)) static void start(void)
{
	times = calloc(tensor_op_count() + 1, sizeof(*times));
	tensor_register_fallback(TENSOR_KEY_TRACE, observe, NULL);
	tensor_set_key_sets((struct tensor_key_sets){ 1u << TENSOR_KEY_TRACE, 0 });
	atexit(report_at_end);
}
