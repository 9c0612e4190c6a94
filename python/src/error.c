// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Exceptions for the library's errors, and the library's errors for exceptions. */
#include "internal.h"

#include <errno.h>

/* ENOENT and others of the system: OSError, which has the number. */
static PyObject *exception_of(int code)
{
	switch (code) {
	case EINVAL:
		return PyExc_ValueError;
	case ERANGE:
		return PyExc_IndexError;
	case EOVERFLOW:
		return PyExc_OverflowError;
	case ENOMEM:
		return PyExc_MemoryError;
	case EOPNOTSUPP:
		return PyExc_NotImplementedError;
	case EPERM:
	case EBUSY:
	case EDOM:
	case EDEADLK:
	case ECANCELED:
	case EBADMSG:
	case EPROTO:
		return PyExc_RuntimeError;
	default:
		return NULL;
	}
}

PyObject *raise_error(void)
{
	const struct tensor_error *e = tensor_last_error();
	PyObject *type = exception_of(e->code), *args;

	/* A function of the program that the library called has raised. */
	if (PyErr_Occurred())
		return NULL;
	if (!e->code) {
		PyErr_SetString(PyExc_SystemError, "libtensor failed without an error record");
	} else if (type) {
		PyErr_SetString(type, e->text);
	} else {
		args = Py_BuildValue("(is)", e->code, e->text);
		if (args)
			PyErr_SetObject(PyExc_OSError, args);
		Py_XDECREF(args);
	}
	return NULL;
}

int raise_error_int(void)
{
	raise_error();
	return -1;
}

int error_from_python(const char *what)
{
	int code = PyErr_ExceptionMatches(PyExc_MemoryError) ? ENOMEM : ECANCELED;

	return tensor_set_error(code, "%s: a function of the program raised an exception", what);
}
