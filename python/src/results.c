// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Results of operators as objects of Python. */
#include "call.h"

/* The name of result i in "-> (Tensor values, Tensor indices)", kept for the life of the process. */
static char *result_name(const char *text, int i)
{
	const char *end = strstr(text, "-> ("), *start;

	for (end = end ? end + 3 : ""; i >= 0 && *end; i--) {
		start = end + 1;
		end = start + strcspn(start, ",)");
	}
	for (start = end; *end && start[-1] != ' ' && start[-1] != '('; start--)
		;
	return start == end ? NULL : strndup(start, end - start);
}

/* A struct sequence with the names of the results. NULL without an exception if they have none. */
static PyObject *make_result_type(const struct py_overload *o)
{
	static PyStructSequence_Field fields[MOST_RETURNS + 1];
	PyStructSequence_Desc desc = { .doc = "The results of an operator.",
				       .fields = fields,
				       .n_in_sequence = o->schema->nreturns };
	char name[96];

	memset(fields, 0, sizeof(fields));
	for (int i = 0; i < o->schema->nreturns; i++) {
		fields[i].name = result_name(o->schema->text, i);
		if (!fields[i].name)
			return NULL;
	}
	snprintf(name, sizeof(name), "devtensor.return_types.%.*s", (int)strcspn(o->op_name, "."),
		 o->op_name);
	desc.name = name; /* copied by the type; the fields' names are not */
	return (PyObject *)PyStructSequence_NewType(&desc);
}

static PyObject *wrap_value(const struct bound *b, const tensor_value *v)
{
	switch (v->kind) {
	case TENSOR_VALUE_TENSOR:
		if (v->t == tensor_none)
			Py_RETURN_NONE;
		return likely(!b->subclass) ? wrap_result(v->t) : wrap_as(b->subclass, v->t);
	case TENSOR_VALUE_INT:
		return PyLong_FromLongLong(v->i);
	case TENSOR_VALUE_BOOL:
		return PyBool_FromLong(v->b);
	case TENSOR_VALUE_FLOAT:
		return PyFloat_FromDouble(v->f);
	case TENSOR_VALUE_SCALAR:
		return wrap_scalar(v->scalar);
	default:
		Py_RETURN_NONE;
	}
}

PyObject *wrap_values(const struct bound *b, PyTypeObject *type, const tensor_value *rets,
		      Py_ssize_t n)
{
	PyObject *res = type ? PyStructSequence_New(type) : PyTuple_New(n);

	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *v = wrap_value(b, &rets[i]);

		if (res && v && type)
			PyStructSequence_SetItem(res, i, v);
		else if (res && v)
			PyTuple_SetItem(res, i, v);
		else
			Py_XDECREF(v);
		if (!v)
			Py_CLEAR(res);
	}
	return res;
}

static PyObject *wrap_several(struct py_overload *o, const struct bound *b,
			      const tensor_value *rets)
{
	if (!o->result_type) {
		o->result_type = make_result_type(o);
		PyErr_Clear();
		if (!o->result_type)
			o->result_type = Py_NewRef(Py_None);
	}
	return wrap_values(b, o->result_type == Py_None ? NULL : (PyTypeObject *)o->result_type,
			   rets, o->schema->nreturns);
}

/* The arguments that an out form wrote. */
static PyObject *wrap_outs(const struct bound *b)
{
	PyObject *res = PyTuple_New(b->o->schema->nreturns);
	Py_ssize_t n = 0;

	for (int i = 0; res && i < b->o->schema->nargs && n < b->o->schema->nreturns; i++)
		if (b->o->schema->args[i].mutated)
			PyTuple_SetItem(res, n++, Py_NewRef(b->objects[i]));
	return res;
}

PyObject *wrap_returns(struct py_overload *o, const struct bound *b, const tensor_value *rets)
{
	int n = o->schema->nreturns;
	PyObject *res;

	if (o->inplace) {
		if (is_tensor(b->objects[0]))
			track(b->objects[0]);
		return Py_NewRef(n ? b->objects[0] : Py_None);
	}
	if (o->out && n > 1)
		return wrap_outs(b);
	if (o->out) {
		for (int i = 0; i < o->schema->nargs; i++)
			if (o->schema->args[i].mutated)
				return Py_NewRef(b->objects[i]);
	}
	if (n == 0)
		Py_RETURN_NONE;
	if (n > 1)
		return wrap_several(o, b, rets);
	res = wrap_value(b, &rets[0]);
	if (res && b->requires_grad && is_tensor(res) &&
	    tensor_set_requires_grad(tensor_of(res), true) < 0) {
		raise_error();
		Py_CLEAR(res);
	}
	if (res && b->requires_grad && is_tensor(res))
		track(res);
	return res;
}
