/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The ctx of a call of a Function in Python, and the calls that run. */
#ifndef DEVTENSOR_FUNCTION_H
#define DEVTENSOR_FUNCTION_H

#include "internal.h"

#include <tensor/function.h>

typedef struct {
	PyObject_HEAD PyObject *cls;
	PyObject *info;	       /* the capsule with the functions of the class */
	PyObject *to_save;     /* until forward has ended */
	PyObject *marked;      /* a list of what is non-differentiable, until forward has ended */
	PyObject *for_forward; /* saved by save_for_forward() */
	PyObject *needs;       /* needs_input_grad of forward */
	uint8_t *tensors; /* whether argument i, and after them output i, is a tensor; MARKED: an output */
	Py_ssize_t nargs, nout;
	bool materialize;
} PyContext;

#define MARKED 2 /* a tensor that is marked as non-differentiable */

/* ---- function_class.c ---- */

/* In a capsule in the dict of the class, from where a program may remove it: every ctx holds it, too. */
struct class_info {
	struct tensor_function f;
	PyObject *cls; /* borrowed: a subclass inherits the capsule, but has functions of its own */
	bool setup, once;
	char name[41];
};

#define CLASS_INFO "devtensor.function"

/* Interned names of attributes. */
struct function_names {
	PyObject *forward, *backward, *setup, *info;
};

extern struct function_names function_names;
/* The setup_context of a class that has none. */
extern PyObject *function_base_setup;
/* The capsule of a class: a new reference. */
PyObject *class_info_of(PyObject *cls);
int add_function_names(void);

/* ---- function.c ---- */

int function_forward(tensor_function_ctx *c, tensor *const *inputs, int ninputs, tensor **outputs,
		     int noutputs);
int function_backward(tensor_function_ctx *c, tensor *const *output_grads, int noutputs,
		      tensor **input_grads, int ninputs);

/* ---- context.c ---- */

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
/* forward marked t as non-differentiable. */
bool context_marked(const PyContext *o, PyObject *t);
int add_context(PyObject *module);

#endif
