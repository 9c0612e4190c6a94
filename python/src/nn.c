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

static PyMethodDef functions[] = {
	{ "_replace_tensor", replace_tensor, METH_VARARGS,
	  "_replace_tensor(parameter, tensor, /)\n--\n\n"
	  "Let a parameter stand for the memory of a tensor; it keeps requires_grad." },
	{ NULL },
};

int add_nn(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
