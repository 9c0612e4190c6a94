/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The ctx of a call of a Function in Python, and the calls that run. */
#ifndef DEVTENSOR_FUNCTION_H
#define DEVTENSOR_FUNCTION_H

#include "internal.h"

#include <tensor/function.h>

typedef struct {
	PyObject_HEAD PyObject *cls;
	PyObject *info;	   /* the capsule with the functions of the class */
	PyObject *to_save; /* until forward has ended */
	PyObject *needs;   /* needs_input_grad of forward */
	uint8_t *tensors;  /* whether argument i, and after them output i, is a tensor */
	Py_ssize_t nargs, nout;
	bool materialize;
} PyContext;

/* A forward or backward that runs on this thread. */
struct active {
	PyContext *o;
	tensor_function_ctx *c;
	bool forward;
	struct active *outer;
};

/* The innermost of this thread. */
extern __thread struct active *function_active;
extern PyTypeObject *context_type;

/* needs_input_grad: a bool for each argument. */
PyObject *context_needs(const PyContext *o, const tensor_function_ctx *c);
int add_context(PyObject *module);

#endif
