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

/* ---- exceptions of functions that the library called ---- */

/*
 * Such a function may run on another thread, whose Python state ends with it, and the library may call other functions
 * before it returns the error. So the exception waits here, and the error record has its number, until raise_error().
 * An error that is never raised is replaced by a later one.
 */
#define WAITING 64
static struct {
	uint64_t id;
	PyObject *exception;
} waiting[WAITING];
static uint64_t last_id;

/* The exception that is set, with its traceback; it is not set afterwards. */
static PyObject *take_exception(void)
{
	PyObject *type, *value, *traceback;

	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	if (value && traceback)
		PyException_SetTraceback(value, traceback);
	Py_XDECREF(type);
	Py_XDECREF(traceback);
	return value;
}

/* True if the exception of the number is now set. */
static bool restore_exception(uint64_t id)
{
	PyObject *e;

	if (!id || waiting[id % WAITING].id != id)
		return false;
	e = waiting[id % WAITING].exception;
	waiting[id % WAITING].exception = NULL;
	waiting[id % WAITING].id = 0;
	if (!e)
		return false;
	PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(e)), e, PyException_GetTraceback(e));
	return true;
}

int error_from_python(const char *what)
{
	int code = PyErr_ExceptionMatches(PyExc_MemoryError) ? ENOMEM : ECANCELED;
	PyObject *e = take_exception();
	uint64_t id = ++last_id;

	waiting[id % WAITING].id = id;
	set_ref(&waiting[id % WAITING].exception, e);
	code = tensor_set_error(code, "%s: a function of the program raised an exception", what);
	tensor_set_error_binding(id);
	return code;
}

void release_object(void *o)
{
	PyObject *type, *value, *traceback;
	PyGILState_STATE state;

	/* At exit, objects that graphs still hold are left to the system. */
	if (!Py_IsInitialized())
		return;
	state = PyGILState_Ensure();
	PyErr_Fetch(&type, &value, &traceback);
	Py_DECREF((PyObject *)o);
	PyErr_Restore(type, value, traceback);
	PyGILState_Release(state);
}

bool enter_python(PyGILState_STATE *state)
{
	if (!Py_IsInitialized()) {
		tensor_set_error(ECANCELED, "Python has ended");
		return false;
	}
	*state = PyGILState_Ensure();
	return true;
}

/* ---- the library's errors ---- */

PyObject *raise_graph_error(void)
{
	const struct tensor_error *e = tensor_last_error();

	if (e->code == EINVAL && !e->binding && !PyErr_Occurred()) {
		PyErr_SetString(PyExc_RuntimeError, e->text);
		return NULL;
	}
	return raise_error();
}

PyObject *raise_error(void)
{
	const struct tensor_error *e = tensor_last_error();
	PyObject *type = exception_of(e->code), *args;

	/* A function of the program that the library called has raised. */
	if (PyErr_Occurred() || (e->code && restore_exception(e->binding)))
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
