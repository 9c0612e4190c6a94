// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Exceptions for the library's errors, and the library's errors for exceptions. */
#include "internal.h"

#include <errno.h>
#include <time.h>

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
 * The library returns one error of several device threads, so the others are never raised. Exceptions that have waited
 * for more than LONG seconds are dropped when more than MANY wait.
 */
#define MANY 64
#define LONG 60
static struct waiting {
	struct waiting *older;
	PyObject *exception;
	uint64_t id;
	time_t since;
} * newest;
static size_t nwaiting;
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

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* The list is cut first: the end of an exception may run code of the program. */
static void drop_old(time_t now)
{
	struct waiting **p = &newest, *w, *older;

	if (nwaiting <= MANY)
		return;
	while (*p && (*p)->since + LONG >= now)
		p = &(*p)->older;
	w = *p;
	*p = NULL;
	for (older = w; older; older = older->older)
		nwaiting--;
	for (; w; w = older) {
		older = w->older;
		Py_DECREF(w->exception);
		free(w);
	}
}

/* Takes the reference to the exception. The number, or 0 without memory. */
static uint64_t let_wait(PyObject *exception)
{
	struct waiting *w = exception ? malloc(sizeof(*w)) : NULL;
	time_t now = seconds();

	if (!w) {
		Py_XDECREF(exception);
		return 0;
	}
	*w = (struct waiting){ newest, exception, ++last_id, now };
	newest = w;
	nwaiting++;
	drop_old(now);
	return w->id;
}

/* True if the exception of the number is now set. */
static bool restore_exception(uint64_t id)
{
	struct waiting **p = &newest, *w;
	PyObject *e;

	while (*p && (*p)->id > id)
		p = &(*p)->older;
	w = *p;
	if (!w || w->id != id)
		return false;
	*p = w->older;
	nwaiting--;
	e = w->exception;
	free(w);
	PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(e)), e, PyException_GetTraceback(e));
	return true;
}

int error_from_python(const char *what)
{
	int code = PyErr_ExceptionMatches(PyExc_MemoryError) ? ENOMEM : ECANCELED;
	uint64_t id = let_wait(take_exception());

	code = tensor_set_error(code, "%s: a function of the program raised an exception", what);
	tensor_set_error_binding(id);
	return code;
}

/* ---- functions of the program that run while an error is on its way ---- */

void errors_save(struct saved_errors *e)
{
	const struct tensor_error *record = tensor_last_error();

	PyErr_Fetch(&e->type, &e->value, &e->traceback);
	e->record.code = record->code;
	if (record->code)
		e->record = *record;
}

void errors_restore(struct saved_errors *e)
{
	if (e->record.code) {
		tensor_set_error(e->record.code, "%s", e->record.text);
		tensor_set_error_binding(e->record.binding);
	} else if (tensor_last_error()->code) {
		tensor_clear_error();
	}
	PyErr_Restore(e->type, e->value, e->traceback);
}

void release_object(void *o)
{
	struct saved_errors before;
	PyGILState_STATE state;

	/* At exit, objects that graphs still hold are left to the system. */
	if (!Py_IsInitialized())
		return;
	state = PyGILState_Ensure();
	errors_save(&before);
	Py_DECREF((PyObject *)o);
	errors_restore(&before);
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
	/* A copy: an allocation may begin a collection, which may run code of the program. */
	const struct tensor_error e = *tensor_last_error();
	PyObject *type = exception_of(e.code), *args;

	/* A function of the program that the library called has raised. */
	if (PyErr_Occurred() || (e.code && restore_exception(e.binding)))
		return NULL;
	if (!e.code) {
		PyErr_SetString(PyExc_SystemError, "libtensor failed without an error record");
	} else if (type) {
		PyErr_SetString(type, e.text);
	} else {
		args = Py_BuildValue("(is)", e.code, e.text);
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
