// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The Arrow C data interface: __arrow_c_array__, __arrow_c_schema__ and from_arrow(). */
#include "internal.h"

#include <errno.h>
#include <tensor/arrow.h>

static const char schema_name[] = "arrow_schema", array_name[] = "arrow_array";

/* ---- export ---- */

/* Consumers move a structure out of its capsule, or release it. */
static void free_schema(PyObject *capsule)
{
	struct ArrowSchema *s = PyCapsule_GetPointer(capsule, schema_name);

	if (s && s->release)
		s->release(s);
	free(s);
}

static void free_array(PyObject *capsule)
{
	struct ArrowArray *a = PyCapsule_GetPointer(capsule, array_name);
	struct saved_errors before;

	/* The release may run code of Python, and the capsule may die while an exception is set. */
	errors_save(&before);
	if (a && a->release)
		a->release(a);
	errors_restore(&before);
	free(a);
}

/* Capsules with released structures. */
static int make_capsules(PyObject **schema, PyObject **array)
{
	struct ArrowSchema *s = calloc(1, sizeof(*s));
	struct ArrowArray *a = calloc(1, sizeof(*a));

	*schema = s && a ? PyCapsule_New(s, schema_name, free_schema) : NULL;
	*array = *schema ? PyCapsule_New(a, array_name, free_array) : NULL;
	if (*array)
		return 0;
	if (!s || !a)
		PyErr_NoMemory();
	if (*schema)
		Py_CLEAR(*schema);
	else
		free(s);
	free(a);
	return -1;
}

static int export_to(tensor *t, PyObject *schema, PyObject *array)
{
	PyThreadState *state;
	int err;

	begin_call();
	state = tensor_numel(t) < RELEASE_ABOVE ? NULL : PyEval_SaveThread();
	err = tensor_to_arrow(t, PyCapsule_GetPointer(schema, schema_name),
			      PyCapsule_GetPointer(array, array_name));
	if (state)
		PyEval_RestoreThread(state);
	end_call();
	return err < 0 ? raise_error_int() : 0;
}

static PyObject *m_arrow_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "requested_schema", NULL };
	PyObject *requested = Py_None, *schema, *array, *res = NULL;

	/* The protocol leaves it to the producer whether it converts. */
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:__arrow_c_array__", keywords,
					 &requested) ||
	    make_capsules(&schema, &array) < 0)
		return NULL;
	if (export_to(tensor_of(self), schema, array) == 0)
		res = PyTuple_Pack(2, schema, array);
	Py_DECREF(schema);
	Py_DECREF(array);
	return res;
}

static PyObject *m_arrow_schema(PyObject *self, PyObject *unused)
{
	PyObject *schema, *array;

	if (make_capsules(&schema, &array) < 0)
		return NULL;
	if (export_to(tensor_of(self), schema, array) < 0)
		Py_CLEAR(schema);
	Py_DECREF(array);
	return schema;
}

/* ---- import ---- */

static PyObject *import_pair(PyObject *pair)
{
	PyObject *schema, *array;
	struct ArrowSchema *s;
	struct ArrowArray *a;
	tensor *t;

	if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
		return PyErr_Format(
			PyExc_TypeError,
			"from_arrow: __arrow_c_array__ returned %R, no pair of capsules", pair);
	schema = PyTuple_GetItem(pair, 0);
	array = PyTuple_GetItem(pair, 1);
	if (!PyCapsule_IsValid(schema, schema_name) || !PyCapsule_IsValid(array, array_name))
		return PyErr_Format(PyExc_TypeError,
				    "from_arrow: (%R, %R) are no capsules of a schema and an array",
				    schema, array);
	s = PyCapsule_GetPointer(schema, schema_name);
	a = PyCapsule_GetPointer(array, array_name);
	t = tensor_from_arrow(s, a);
	return wrap_result(t);
}

static PyObject *module_from_arrow(PyObject *module, PyObject *x)
{
	PyObject *pair, *res;

	if (PyTuple_Check(x))
		return import_pair(x);
	pair = PyObject_CallMethod(x, "__arrow_c_array__", NULL);
	if (!pair && PyErr_ExceptionMatches(PyExc_AttributeError)) {
		PyErr_Clear();
		return PyErr_Format(PyExc_TypeError, "from_arrow: %R has no __arrow_c_array__",
				    Py_TYPE(x));
	}
	res = pair ? import_pair(pair) : NULL;
	Py_XDECREF(pair);
	return res;
}

/* ---- registration ---- */

static PyMethodDef methods[] = {
	{ "__arrow_c_array__", (PyCFunction)(void (*)(void))m_arrow_array,
	  METH_VARARGS | METH_KEYWORDS,
	  "__arrow_c_array__($self, requested_schema=None)\n--\n\n"
	  "Capsules with the type and the elements of a contiguous tensor of one dimension, on the "
	  "same memory except for bool. The memory must not change while a receiver uses it." },
	{ "__arrow_c_schema__", m_arrow_schema, METH_NOARGS,
	  "__arrow_c_schema__($self, /)\n--\n\nA capsule with the type of the column." },
	{ NULL },
};

static PyMethodDef functions[] = {
	{ "from_arrow", module_from_arrow, METH_O,
	  "from_arrow(x, /)\n--\n\n"
	  "A read-only tensor on the memory of a column without nulls: an object with "
	  "__arrow_c_array__, or the pair of capsules that it returns. A column of bool is copied." },
	{ NULL },
};

int add_arrow(PyObject *module)
{
	if (add_methods(tensor_type, methods) < 0)
		return -1;
	return PyModule_AddFunctions(module, functions);
}
