// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Functions below devtensor.nn: conversion of parameters. */
#include "internal.h"

int calls_with_tensors, nreplaced;
static tensor **replaced;

void release_replaced(void)
{
	PyObject *type, *value, *trace;
	tensor **list = replaced;
	int n = nreplaced;

	replaced = NULL;
	nreplaced = 0;
	/* The last reference may run functions of the program. */
	PyErr_Fetch(&type, &value, &trace);
	for (int i = 0; i < n; i++)
		tensor_release(list[i]);
	PyErr_Restore(type, value, trace);
	PyMem_Free(list);
}

/* Room for one more tensor that is released later. */
static int make_room(void)
{
	tensor **list = PyMem_Realloc(replaced, (nreplaced + 1) * sizeof(*list));

	if (!list) {
		PyErr_NoMemory();
		return -1;
	}
	replaced = list;
	return 0;
}

/* The object keeps its identity, so that a module, its users and tied parameters see the new tensor. */
static PyObject *replace_tensor(PyObject *module, PyObject *args)
{
	PyObject *o, *with;
	tensor *t, *old;
	int grad;

	if (!PyArg_ParseTuple(args, "OO", &o, &with))
		return NULL;
	if (!is_tensor(o) || !is_tensor(with) || is_exact_tensor(o))
		return PyErr_Format(PyExc_TypeError, "expected a parameter and a tensor");
	if (calls_with_tensors && make_room() < 0)
		return NULL;
	old = tensor_of(o);
	grad = tensor_requires_grad(old);
	/* A tensor of its own: the given one has an object already. */
	t = tensor_detach(tensor_of(with));
	if (!t)
		return raise_error();
	t = tensor_keep(t);
	if (grad && tensor_set_requires_grad(t, true) < 0) {
		tensor_release(t);
		return raise_error();
	}
	tensor_set_binding(old, NULL);
	tensor_set_binding(t, o);
	((PyTensor *)o)->t = t;
	if (calls_with_tensors)
		replaced[nreplaced++] = old;
	else
		tensor_release(old);
	Py_RETURN_NONE;
}

static PyTypeObject *plain[4]; /* owned, until the process ends */

bool has_plain_results(PyTypeObject *type)
{
	for (size_t i = 0; i < COUNT(plain) && plain[i]; i++)
		if (type == plain[i] || PyType_IsSubtype(type, plain[i]))
			return true;
	return false;
}

static PyObject *set_plain_results(PyObject *module, PyObject *type)
{
	size_t i = 0;

	while (i < COUNT(plain) && plain[i])
		i++;
	if (i == COUNT(plain) || !PyType_Check(type))
		return PyErr_Format(PyExc_TypeError, "expected one of at most %zu classes",
				    COUNT(plain));
	plain[i] = (PyTypeObject *)Py_NewRef(type);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "_set_plain_results", set_plain_results, METH_O,
	  "_set_plain_results(type, /)\n--\n\n"
	  "Results of operators on objects of this subclass are of the class Tensor." },
	{ "_replace_tensor", replace_tensor, METH_VARARGS,
	  "_replace_tensor(parameter, tensor, /)\n--\n\n"
	  "Let a parameter stand for the memory of a tensor; it keeps requires_grad." },
	{ NULL },
};

int add_nn(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
