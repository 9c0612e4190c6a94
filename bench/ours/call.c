// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Rows that are a line of text: an operator's name and its arguments in schema order, called
 * through tensor_op_call(). bench/calls.py reads the same format for the peers.
 *
 *   add.Tensor f32[1024,1024] f32[1024,1]        two tensors; omitted arguments have defaults
 *   DTYPE[SIZES]   a tensor of fixed pseudo-random numbers; :t stored with the last two dimensions
 *                  exchanged, :sN every N-th element of the last dimension, :p positive, :o ascending,
 *                  :b in oneDNN's blocked layout, :r a blocked weight, reordered for this row,
 *                  <N integers from 0 to N - 1, *N a list of N such tensors,
 *                  @N sparse with N entries, and :q quantized, as bench/ours/layouts.c describes
 *   backward:NAME  the operator, and the gradients of the sum of its result with respect to all tensors
 *   (1,2) ints, 1 an int, 0.5 a number, true, false, - not given, f64 a dtype, word a string
 */
#include "call.h"

#include <tensor/autograd.h>
#include <tensor/dispatch.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST	 16
#define BACKWARD "backward:"

static char text[256];
static const tensor_op *op;
static tensor_value args[MOST], rets[MOST];
static int nargs, nrets;
static tensor *lists[MOST][MOST];
static int64_t ints[MOST][TENSOR_MAX_DIMS];
static unsigned seed;
static bool reorder;  /* the row's weight, argument 1 */
static bool backward; /* the row calls the operator and its backward */

static _Noreturn void refuse(const char *word)
{
	char why[160];

	snprintf(why, sizeof(why), "not understood: %.120s", word);
	row_fail(why);
}

static int dtype_of(const char *word, size_t len)
{
	for (int d = 0; d < TENSOR_DTYPE_COUNT; d++) {
		const char *name = tensor_dtype_name(d);

		if (strlen(name) == len && !strncmp(name, word, len))
			return d;
	}
	return -1;
}

/* ---- tensors ---- */

static int parse_ints(const char **word, char close, int64_t *v)
{
	int n = 0;

	while (**word && **word != close && n < TENSOR_MAX_DIMS) {
		char *end;

		v[n++] = strtoll(*word, &end, 10);
		*word = end + (*end == ',');
	}
	if (*(*word)++ != close)
		refuse(text);
	return n;
}

static struct form parse_form(const char *word)
{
	const char *at = strchr(word, '[');
	struct form f = { .dtype = dtype_of(word, (size_t)(at - word)), .step = 1 };

	if (f.dtype < 0)
		refuse(word);
	at++;
	f.ndim = parse_ints(&at, ']', f.size);
	while (*at) {
		char kind = *at == ':' ? *++at : *at, *end;
		int64_t n = strtoll(++at, &end, 10);

		at = end;
		switch (kind) {
		case 't':
			f.transposed = f.ndim > 1;
			break;
		case 's':
			f.step = (int)n;
			break;
		case 'p':
			f.positive = true;
			break;
		case 'o':
			f.ordered = true;
			break;
		case 'b':
		case 'r':
			f.blocked = true;
			f.ready = kind == 'r';
			break;
		case '<':
			f.below = n;
			break;
		case '@':
			f.entries = n;
			break;
		case 'c':
		case 'd':
		case 'k':
		case 'q':
		case 'Q':
			f.layout = kind;
			break;
		case 'z':
			f.skewed = true;
			break;
		case '*':
			f.copies = (int)n;
			break;
		default:
			refuse(word);
		}
	}
	return f;
}

static uint32_t hash(uint64_t i)
{
	uint32_t h = (uint32_t)(i * 2654435761u + seed * 12345u);

	h = (h ^ h >> 15) * 2246822519u;
	return h ^ h >> 13;
}

/* The third power of a number in [0, 1), in units of 2^-32: half of the numbers are below an eighth. */
static uint32_t skew(uint32_t h)
{
	return (uint32_t)(((uint64_t)h * h >> 32) * h >> 32);
}

tensor *call_numbers(tensor_ints size, const struct form *f)
{
	bool real = f->dtype >= TENSOR_F16 && !f->below;
	tensor *t =
		tensor_empty(size, real ? TENSOR_OPTIONS(0) : TENSOR_OPTIONS(.dtype = TENSOR_I64));
	int64_t n = t ? tensor_numel(t) : 0;

	for (int64_t i = 0; i < n; i++) {
		uint32_t h = hash((uint64_t)i);
		float x = (float)(h >> 8) / 8388608.0f - 1.0f;
		int64_t k = f->below && f->skewed ? (int64_t)((uint64_t)skew(h) * f->below >> 32) :
			    f->below		  ? h % f->below :
			    f->dtype == TENSOR_BOOL ? h % 2 :
						      h % 101 - 50ll;

		if (f->positive) {
			x = fabsf(x) + 0.0625f;
			k = llabs(k) + 1;
		}
		if (real)
			((float *)tensor_mutable_data(t))[i] = x;
		else
			((int64_t *)tensor_mutable_data(t))[i] = k;
	}
	seed++;
	return row_own(tensor_to(row_own(t), TENSOR_OPTIONS(.dtype = f->dtype)));
}

static tensor *make(const struct form *f)
{
	int64_t size[TENSOR_MAX_DIMS];
	int last = f->ndim - 1;
	tensor *t;

	if (f->entries)
		return call_sparse(f);
	if (f->layout)
		return call_quantized(f);
	memcpy(size, f->size, sizeof(size));
	if (last >= 0)
		size[last] *= f->step;
	if (f->transposed) {
		size[last] = f->size[last - 1];
		size[last - 1] = f->size[last];
	}
	t = call_numbers((tensor_ints){ size, f->ndim }, f);
	if (f->step > 1)
		t = row_own(tensor_slice(t, last, 0, INT64_MAX, f->step));
	if (f->transposed)
		t = row_own(tensor_transpose(t, -1, -2));
	if (f->ordered)
		t = row_own(tensor_msort(t));
	return f->blocked ? row_own(tensor_to_mkldnn(t, TENSOR_DTYPE_NONE)) : t;
}

static void tensor_value_of(tensor_value *v, tensor **list, const char *word)
{
	struct form f = parse_form(word);

	reorder |= f.ready;
	if (!f.copies) {
		*v = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = make(&f) };
		return;
	}
	for (int i = 0; i < f.copies && i < MOST; i++)
		list[i] = make(&f);
	*v = (tensor_value){ .kind = TENSOR_VALUE_TENSOR_LIST, .list = { list, f.copies } };
}

/* ---- arguments ---- */

static void number_value(tensor_value *v, const char *word)
{
	if (strpbrk(word, ".e"))
		*v = (tensor_value){ .kind = TENSOR_VALUE_FLOAT, .f = strtod(word, NULL) };
	else
		*v = (tensor_value){ .kind = TENSOR_VALUE_INT, .i = strtoll(word, NULL, 10) };
}

static void parse_arg(int i, const char *word)
{
	tensor_value *v = &args[i];

	*v = (tensor_value){ .kind = TENSOR_VALUE_NONE };
	if (strchr(word, '['))
		tensor_value_of(v, lists[i], word);
	else if (*word == '(') {
		const char *at = word + 1;
		int n = parse_ints(&at, ')', ints[i]);

		*v = (tensor_value){ .kind = TENSOR_VALUE_INTS, .ints = { ints[i], n } };
	} else if (!strcmp(word, "true") || !strcmp(word, "false"))
		*v = (tensor_value){ .kind = TENSOR_VALUE_BOOL, .b = *word == 't' };
	else if (isdigit((unsigned char)word[*word == '-']))
		number_value(v, word);
	else if (dtype_of(word, strlen(word)) >= 0)
		*v = (tensor_value){ .kind = TENSOR_VALUE_INT, .i = dtype_of(word, strlen(word)) };
	else if (strcmp(word, "-"))
		*v = (tensor_value){ .kind = TENSOR_VALUE_STRING, .s = word };
	else if (tensor_op_schema(op)->args[i].type == TENSOR_ARG_OPTIONAL_TENSOR)
		*v = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = tensor_none };
}

/* mkldnn_linear self weight bias, mkldnn_convolution self weight bias padding stride dilation groups */
static void reorder_weight(void)
{
	tensor *w = args[1].t;

	args[1].t = row_own(tensor_dim(w) == 2 ?
				    tensor__reorder_linear_weight(w, tensor_size(args[0].t, 0)) :
				    tensor_mkldnn_reorder_conv2d_weight(
					    w, args[3].ints, args[4].ints, args[5].ints, args[6].i,
					    tensor_shape(args[0].t)));
}

static void setup(void)
{
	static char words[sizeof(text)];
	char *state, *word;

	strcpy(words, text);
	word = strtok_r(words, " ", &state);
	backward = !strncmp(word, BACKWARD, strlen(BACKWARD));
	op = tensor_op_find(word + (backward ? strlen(BACKWARD) : 0));
	seed = 0;
	nargs = 0;
	reorder = false;
	while (op && (word = strtok_r(NULL, " ", &state)) && nargs < MOST) {
		parse_arg(nargs, word);
		nargs++;
	}
	if (reorder)
		reorder_weight();
	for (int i = 0; backward && i < nargs; i++)
		if (args[i].kind == TENSOR_VALUE_TENSOR)
			row_check(tensor_set_requires_grad(args[i].t, true));
	if (op)
		nrets = tensor_op_schema(op)->nreturns;
	if (nrets == TENSOR_RETURNS_LIST)
		nrets = MOST;
}

/* ---- the call ---- */

static void drop(void)
{
	for (int i = 0; i < nrets; i++)
		if (rets[i].kind == TENSOR_VALUE_TENSOR && !tensor_op_schema(op)->args[0].mutated)
			tensor_release(rets[i].t);
}

/* Gradients of the sum of the result with respect to the tensors; those of the first one, the others are released. */
static tensor *call_backward(void)
{
	tensor *inputs[MOST], *grads[MOST] = { NULL }, *sum;
	int n = 0;

	for (int i = 0; i < nargs; i++)
		if (args[i].kind == TENSOR_VALUE_TENSOR)
			inputs[n++] = args[i].t;
	row_check(tensor_op_call(op, args, nargs, rets, nrets));
	sum = tensor_layout(rets[0].t) == TENSOR_STRIDED ?
		      tensor_sum(rets[0].t) :
		      tensor_sum(row_own(tensor_values(rets[0].t)));
	row_check(tensor_backward_ex(TENSOR_LIST(sum), NULL, (tensor_list){ inputs, n }, grads, 0));
	for (int i = 1; i < n; i++)
		tensor_release(grads[i]);
	return grads[0];
}

static void run_calls(int64_t n)
{
	while (n--) {
		if (backward) {
			tensor_release(call_backward());
		} else {
			row_check(tensor_op_call(op, args, nargs, rets, nrets));
			drop();
		}
	}
}

static int64_t bytes_of(const tensor_value *v)
{
	int64_t sum = 0;

	if (v->kind == TENSOR_VALUE_TENSOR && v->t && tensor_layout(v->t) != TENSOR_STRIDED)
		return call_sparse_bytes(v->t);
	if (v->kind == TENSOR_VALUE_TENSOR && v->t)
		return tensor_numel(v->t) * (int64_t)tensor_itemsize(tensor_dtype(v->t));
	for (int64_t i = 0; v->kind == TENSOR_VALUE_TENSOR_LIST && i < v->list.len; i++)
		sum += tensor_numel(v->list.data[i]) *
		       (int64_t)tensor_itemsize(tensor_dtype(v->list.data[i]));
	return sum;
}

int64_t call_bytes(void)
{
	int64_t sum = 0;

	if (!op || backward)
		return 0;
	row_check(tensor_op_call(op, args, nargs, rets, nrets));
	for (int i = 0; i < nargs; i++)
		sum += bytes_of(&args[i]);
	for (int i = 0; i < nrets; i++)
		sum += bytes_of(&rets[i]);
	drop();
	return sum;
}

/* The mean magnitude of the finite elements of the first result. */
static double value(void)
{
	double sum = 0, *p;
	tensor *wide;
	int64_t n;

	if (backward)
		rets[0] = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = call_backward() };
	else
		row_check(tensor_op_call(op, args, nargs, rets, nrets));
	if (rets[0].kind != TENSOR_VALUE_TENSOR)
		return NAN;
	wide = call_strided(rets[0].t);
	wide = tensor_dtype(wide) == TENSOR_BOOL ? wide : row_own(tensor_abs(wide));
	wide = row_own(tensor_to(wide, TENSOR_OPTIONS(.dtype = TENSOR_F64)));
	drop();
	n = tensor_numel(wide);
	p = malloc((size_t)n * sizeof(*p) + 1);
	row_check(p ? tensor_copy_to(wide, p, (size_t)n * sizeof(*p)) : -1);
	for (int64_t i = 0; i < n; i++)
		sum += isfinite(p[i]) ? p[i] : 0;
	free(p);
	return n ? sum / (double)n : 0;
}

const struct row *call_row(const char *spec)
{
	static const struct row row = { text, setup, run_calls, value, NULL };
	char name[64];
	size_t skip = strncmp(spec, BACKWARD, strlen(BACKWARD)) ? 0 : strlen(BACKWARD);

	if (sscanf(spec + skip, "%63s", name) != 1 || !tensor_op_find(name) ||
	    strlen(spec) >= sizeof(text))
		return NULL;
	strcpy(text, spec);
	return &row;
}
