// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Calls of operators: finds the overload that takes the arguments, calls it and wraps its results.
 *
 * An overload is tried by converting the arguments in place; the first that does not fit ends the
 * attempt. No exception is made before all overloads have failed.
 */
#include "call.h"

#include <errno.h>

/* ---- preparation of a function ---- */

static PyObject *requires_grad_name, *axis_name, *keepdims_name, *input_name;

/* True if the last argument by position is a list of any length, whose elements may be arguments of
 * their own: x.view(2, 3). */
static bool takes_many(const struct py_overload *o, int npositional)
{
	const struct tensor_arg *last;
	char text[64];

	if (npositional < 1)
		return false;
	last = &o->schema->args[npositional - 1];
	if (last->type != TENSOR_ARG_INTS)
		return false;
	snprintf(text, sizeof(text), "int[] %s", last->name);
	return strstr(o->schema->text, text) != NULL;
}

static int count_positional(const struct py_overload *o)
{
	int n = 0;

	while (n < o->schema->nargs && !o->schema->args[n].keyword_only)
		n++;
	return n;
}

static int prepare_overload(struct py_overload *o)
{
	o->op = tensor_op_find(o->op_name);
	o->schema = o->op ? tensor_op_schema(o->op) : NULL;
	if (!o->op || o->schema->nargs > MOST_ARGS || o->schema->nreturns > MOST_RETURNS) {
		PyErr_Format(PyExc_ImportError, "libtensor has no usable operator %s", o->op_name);
		return -1;
	}
	o->names = PyMem_Calloc(o->schema->nargs + 1, sizeof(*o->names));
	if (!o->names) {
		PyErr_NoMemory();
		return -1;
	}
	for (int i = 0; i < o->schema->nargs; i++) {
		o->names[i] = PyUnicode_InternFromString(o->schema->args[i].name);
		if (!o->names[i])
			return -1;
	}
	o->npositional = count_positional(o);
	o->many = takes_many(o, o->npositional);
	for (int i = 0; i < o->schema->nargs; i++) {
		const struct tensor_arg *arg = &o->schema->args[i];

		o->factory |= arg->type == TENSOR_ARG_LAYOUT;
		if (arg->default_text && !strcmp(arg->default_text, "None"))
			o->none |= 1ull << i;
		if (!arg->default_text && arg->type != TENSOR_ARG_GENERATOR)
			o->required |= 1ull << i;
	}
	for (const char *const *tag = o->schema->tags; tag && *tag; tag++) {
		o->inplace |= !strcmp(*tag, "inplace");
		o->out |= !strcmp(*tag, "out");
	}
	return 0;
}

static int prepare(struct py_function *f)
{
	if (!requires_grad_name)
		requires_grad_name = PyUnicode_InternFromString("requires_grad");
	if (!axis_name)
		axis_name = PyUnicode_InternFromString("axis");
	if (!keepdims_name)
		keepdims_name = PyUnicode_InternFromString("keepdims");
	if (!input_name)
		input_name = PyUnicode_InternFromString("input");
	if (!requires_grad_name || !axis_name || !keepdims_name || !input_name)
		return -1;
	for (int i = 0; i < f->n; i++)
		if (!f->overloads[i].names && prepare_overload(&f->overloads[i]) < 0)
			return -1;
	f->ready = true;
	return 0;
}

/* ---- arguments by position and by name ---- */

/* Converts the arguments from `from` on as the elements of one list: as convert(). */
static int convert_many(struct bound *b, const struct call *c, Py_ssize_t from, tensor_value *v)
{
	int64_t *data = arena_alloc(&b->arena, (c->nargs - from) * sizeof(*data));
	int res = data ? 1 : -1;

	for (Py_ssize_t i = from; res > 0 && i < c->nargs; i++)
		res = convert_int(c->args[i], &data[i - from]);
	v->kind = TENSOR_VALUE_INTS;
	v->ints = (tensor_ints){ data, c->nargs - from };
	return res;
}

/* False if there are too many. */
static bool bind_positional(struct bound *b, const struct call *c)
{
	int n = b->o->npositional, at = 0;

	if (c->self)
		b->objects[at++] = c->self;
	if (likely(c->nargs <= n - at)) {
		for (Py_ssize_t i = 0; i < c->nargs; i++)
			b->objects[at++] = c->args[i];
		return true;
	}
	if (n <= at - 1 || n < 1 || n - 1 < at || !b->o->many)
		return false;
	b->many_from = n - 1 - !!c->self;
	for (Py_ssize_t i = 0; at < n; i++)
		b->objects[at++] = c->args[i];
	return true;
}

static bool same_name(PyObject *a, PyObject *b)
{
	return a == b || !PyUnicode_Compare(a, b);
}

/* NumPy's names of arguments. */
static bool is_other_name(PyObject *keyword, const char *name)
{
	if (!strcmp(name, "dim"))
		return same_name(keyword, axis_name);
	if (!strcmp(name, "keepdim"))
		return same_name(keyword, keepdims_name);
	return !strcmp(name, "self") && same_name(keyword, input_name);
}

static int find_keyword(const struct py_overload *o, PyObject *keyword)
{
	for (int i = 0; i < o->schema->nargs; i++)
		if (keyword == o->names[i])
			return i;
	for (int i = 0; i < o->schema->nargs; i++)
		if (same_name(keyword, o->names[i]) ||
		    is_other_name(keyword, o->schema->args[i].name))
			return i;
	return -1;
}

static int bind_keywords(struct bound *b, const struct call *c)
{
	Py_ssize_t n = c->kwnames ? PyTuple_Size(c->kwnames) : 0;

	for (Py_ssize_t k = 0; k < n; k++) {
		PyObject *keyword = PyTuple_GetItem(c->kwnames, k), *value = c->args[c->nargs + k];
		int i = find_keyword(b->o, keyword);

		if (i >= 0 && !b->objects[i]) {
			b->objects[i] = value;
			continue;
		}
		if (i >= 0 || !same_name(keyword, requires_grad_name) || !PyBool_Check(value) ||
		    !b->o->factory)
			return 0;
		b->requires_grad = value == Py_True;
	}
	return 1;
}

/* 1 if the overload takes the arguments, 0 if not, -1 with an exception. */
static int bind(struct bound *b, const struct call *c)
{
	const struct tensor_schema *s = b->o->schema;
	int res;

	memset(b->objects, 0, s->nargs * sizeof(*b->objects));
	b->requires_grad = false;
	b->many_from = -1;
	res = bind_positional(b, c);
	if (res > 0 && c->kwnames)
		res = bind_keywords(b, c);
	/* Trailing arguments that are not given are left out of the call. */
	for (b->n = s->nargs; b->n > 0 && !b->objects[b->n - 1]; b->n--)
		;
	if (res > 0 && b->o->required >> b->n)
		return 0;
	for (int i = 0; i < b->n && res > 0; i++) {
		b->values[i].kind = TENSOR_VALUE_NONE;
		b->values[i].reserved = 0;
		if (!b->objects[i])
			res = !(b->o->required >> i & 1);
		else if (unlikely(b->many_from >= 0) && i == b->o->npositional - 1)
			res = convert_many(b, c, b->many_from, &b->values[i]);
		else if (b->objects[i] != Py_None || !(b->o->none >> i & 1))
			res = convert(&b->arena, s->args[i].type, b->objects[i], &b->values[i]);
	}
	return res;
}

/* ---- the call ---- */

/* Elements of the tensors among the arguments: a measure of the time that the call takes. */
static int64_t work(const struct bound *b)
{
	int64_t n = 0;

	for (int i = 0; i < b->n; i++) {
		const tensor_value *v = &b->values[i];

		if (v->kind == TENSOR_VALUE_TENSOR && v->t)
			n += tensor_numel(v->t);
		else if (v->kind == TENSOR_VALUE_TENSOR_LIST)
			return RELEASE_ABOVE;
		else if (v->kind == TENSOR_VALUE_INTS)
			for (int64_t k = 0; k < v->ints.len; k++)
				if (v->ints.data[k] >= 64)
					return RELEASE_ABOVE;
	}
	return n;
}

/* The subclass of the arguments: the most derived one, the first of several, as PyTorch's. */
static PyTypeObject *subclass_of(const struct bound *b)
{
	PyTypeObject *found = NULL;

	for (int i = 0; i < b->o->schema->nargs; i++) {
		PyObject *o = b->objects[i];

		if (!o || is_exact_tensor(o) || !is_tensor(o) || has_plain_results(Py_TYPE(o)))
			continue;
		if (!found || (Py_TYPE(o) != found && PyType_IsSubtype(Py_TYPE(o), found)))
			found = Py_TYPE(o);
	}
	return found;
}

static void hold_argument(tensor *t, bool on)
{
	if (!t || t == tensor_none)
		return;
	if (on)
		hold(t);
	else
		tensor_release(t);
}

/* Gives the tensors among the arguments a reference (see hold()), or drops it. */
static void hold_arguments(const struct bound *b, bool on)
{
	for (int i = 0; i < b->n; i++) {
		const tensor_value *v = &b->values[i];

		if (v->kind == TENSOR_VALUE_TENSOR)
			hold_argument(v->t, on);
		for (int64_t k = 0; v->kind == TENSOR_VALUE_TENSOR_LIST && k < v->list.len; k++)
			hold_argument(v->list.data[k], on);
	}
}

static int call_op(const struct bound *b, tensor_value *rets, int nrets)
{
	int n = b->n, err;
	PyThreadState *state;

	if (work(b) < RELEASE_ABOVE)
		return tensor_op_call(b->o->op, b->values, n, rets, nrets);
	hold_arguments(b, true);
	state = PyEval_SaveThread();
	err = tensor_op_call(b->o->op, b->values, n, rets, nrets);
	PyEval_RestoreThread(state);
	hold_arguments(b, false);
	return err;
}

/* Room for the results of an operator that returns Tensor[]: more than most return. */
static int first_room(const struct bound *b)
{
	int64_t n = 16;

	for (int i = 0; i < b->n; i++) {
		const tensor_value *v = &b->values[i];

		if (v->kind == TENSOR_VALUE_TENSOR_LIST)
			n += v->list.len;
		else if (v->kind == TENSOR_VALUE_INTS)
			n += v->ints.len;
		else if (v->kind == TENSOR_VALUE_INT && v->i > 0 && v->i < 4096)
			n += v->i;
	}
	return n > 1 << 20 ? 1 << 20 : (int)n;
}

static PyObject *call_list(const struct bound *b)
{
	PyObject *res = NULL;
	tensor_value *rets;
	int room = first_room(b), n = 0, err;

	for (;; room *= 8) {
		rets = PyMem_Calloc(room, sizeof(*rets));
		if (!rets)
			return PyErr_NoMemory();
		err = call_op(b, rets, room);
		if (err != -ENOSPC || room > 1 << 24)
			break;
		PyMem_Free(rets);
	}
	if (err == -ENOSPC)
		/* Not that of a file. */
		tensor_set_error(ENOMEM, "%s: more than %d results", b->o->schema->name, room);
	while (!err && n < room && rets[n].kind != TENSOR_VALUE_NONE)
		n++;
	res = err ? raise_error() : wrap_values(b, NULL, rets, n);
	PyMem_Free(rets);
	return res;
}

static PyObject *call_bound(struct py_overload *o, struct bound *b)
{
	tensor_value rets[MOST_RETURNS];

	b->subclass = unlikely(have_subclasses) ? subclass_of(b) : NULL;
	if (o->schema->nreturns == TENSOR_RETURNS_LIST)
		return call_list(b);
	if (unlikely(call_op(b, rets, o->schema->nreturns) < 0))
		return raise_error();
	return wrap_returns(o, b, rets);
}

/* ---- errors ---- */

#define MOST_DESCRIBED 8

/* "list of (int, float, ...)": the first elements of a list or tuple. */
static PyObject *describe_elements(PyObject *sequence, PyObject *name)
{
	Py_ssize_t n = PySequence_Size(sequence);
	PyObject *text = n < 0 ? NULL : PyUnicode_FromFormat("%U of (", name);

	for (Py_ssize_t i = 0; text && i < n && i <= MOST_DESCRIBED; i++) {
		PyObject *o = i < MOST_DESCRIBED ? PySequence_GetItem(sequence, i) : NULL;
		PyObject *type = o ? PyType_GetName(Py_TYPE(o)) : NULL;

		if (o ? type != NULL : i == MOST_DESCRIBED)
			set_ref(&text,
				type ? PyUnicode_FromFormat("%U%s%U", text, i ? ", " : "", type) :
				       PyUnicode_FromFormat("%U, ...", text));
		else
			Py_CLEAR(text);
		Py_XDECREF(type);
		Py_XDECREF(o);
	}
	if (text)
		set_ref(&text, PyUnicode_FromFormat("%U)", text));
	return text;
}

static PyObject *describe(PyObject *o)
{
	PyObject *name = PyType_GetName(Py_TYPE(o)), *text;

	if (!name || !(PyList_CheckExact(o) || PyTuple_CheckExact(o)) || !PySequence_Size(o))
		return name;
	text = describe_elements(o, name);
	Py_DECREF(name);
	return text;
}

static PyObject *describe_args(const struct call *c)
{
	PyObject *text = PyUnicode_FromString(""), *next = NULL;
	Py_ssize_t n = c->nargs + (c->kwnames ? PyTuple_Size(c->kwnames) : 0);

	for (Py_ssize_t i = 0; text && i < n; i++) {
		PyObject *type = describe(c->args[i]);

		if (!type)
			Py_CLEAR(text);
		else if (i < c->nargs)
			next = PyUnicode_FromFormat("%U%s%U", text, i ? ", " : "", type);
		else
			next = PyUnicode_FromFormat("%U%s%U=%U", text, i ? ", " : "",
						    PyTuple_GetItem(c->kwnames, i - c->nargs),
						    type);
		Py_XDECREF(type);
		if (text)
			set_ref(&text, next);
	}
	return text;
}

static PyObject *raise_no_overload(const struct py_function *f, const struct call *c)
{
	PyObject *args = describe_args(c), *text, *next;

	if (!args)
		return NULL;
	text = PyUnicode_FromFormat("%s(): no overload takes (%U):", f->name, args);
	Py_DECREF(args);
	for (int i = 0; text && i < f->n; i++) {
		if (c->self && f->overloads[i].out)
			continue;
		next = PyUnicode_FromFormat("%U\n  %s", text, f->overloads[i].schema->text);
		set_ref(&text, next);
	}
	if (text)
		PyErr_SetObject(PyExc_TypeError, text);
	Py_XDECREF(text);
	return NULL;
}

/* NULL without an exception if no overload takes the arguments. */
static PyObject *try_overloads(struct py_function *f, const struct call *c)
{
	struct bound b;
	PyObject *res = NULL;
	int bound;

	for (int i = 0; i < f->n; i++) {
		struct py_overload *o = &f->overloads[i];

		if (o->out && !c->kwnames)
			continue;
		b.o = o;
		arena_init(&b.arena);
		bound = bind(&b, c);
		if (bound > 0)
			res = call_bound(o, &b);
		arena_free(&b.arena);
		if (bound)
			return res;
	}
	return NULL;
}

PyObject *call_function(struct py_function *f, PyObject *self, PyObject *const *args,
			Py_ssize_t nargs, PyObject *kwnames)
{
	struct call c = { self, args, nargs, kwnames };
	PyObject *res;

	if (unlikely(!f->ready) && prepare(f) < 0)
		return NULL;
	begin_call();
	res = try_overloads(f, &c);
	end_call();
	if (unlikely(!res && !PyErr_Occurred()))
		return raise_no_overload(f, &c);
	return res;
}

PyObject *call_binary(struct py_function *f, PyObject *a, PyObject *b)
{
	PyObject *args[] = { a, b };
	struct call c = { NULL, args, 2, NULL };
	PyObject *res;

	if (unlikely(!f->ready) && prepare(f) < 0)
		return NULL;
	begin_call();
	res = try_overloads(f, &c);
	end_call();
	if (!res && !PyErr_Occurred())
		Py_RETURN_NOTIMPLEMENTED;
	return res;
}

struct py_function *find_function(const char *name)
{
	int low = 0, high = generated_count;

	while (low < high) {
		int mid = (low + high) / 2, order = strcmp(name, generated_table[mid]->name);

		if (!order)
			return generated_table[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}
