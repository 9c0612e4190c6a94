/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared by the files that call operators: call.c and results.c. */
#ifndef DEVTENSOR_CALL_H
#define DEVTENSOR_CALL_H

#include "internal.h"

#define MOST_ARGS    32
#define MOST_RETURNS 16

/* The arguments of a call in Python. */
struct call {
	PyObject *self;
	PyObject *const *args;
	Py_ssize_t nargs;
	PyObject *kwnames;
};

/* An overload with its arguments. */
struct bound {
	const struct py_overload *o;
	PyObject *objects[MOST_ARGS]; /* borrowed; NULL: not given */
	tensor_value values[MOST_ARGS];
	struct arena arena;
	int n;		      /* arguments up to the last given one */
	Py_ssize_t many_from; /* from here on the arguments are one list; -1: none are */
	bool requires_grad;   /* of a factory, after the call */
	/* The subclass of Tensor that the results have, NULL for Tensor. Borrowed from an argument. */
	PyTypeObject *subclass;
};

/* ---- results.c ---- */

/* The results of a call as a function returns them. */
PyObject *wrap_returns(struct py_overload *o, const struct bound *b, const tensor_value *rets);
/* Wraps n results to a tuple or a struct sequence. All are released or wrapped, also after a failure. */
PyObject *wrap_values(const struct bound *b, PyTypeObject *type, const tensor_value *rets,
		      Py_ssize_t n);

#endif
