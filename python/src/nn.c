// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Functions below devtensor.nn: conversion of parameters. */
#include "internal.h"

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
