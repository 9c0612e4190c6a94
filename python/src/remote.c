// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Channels between machines: connecting, and _RemoteListener, whose subclass is sharing.RemoteListener. */
#include "channel.h"
#include "closable.h"

#include <tensor/remote.h>

typedef struct {
	PyObject_HEAD tensor_channel_listener *listener; /* NULL: closed */
	int users;					 /* calls that run */
} PyListener;

/* ---- options ---- */

/* Seconds, more than 0. */
static int as_silence(double seconds, int64_t *ns)
{
	if (!(seconds > 0 && seconds < 1e9)) {
		PyErr_SetString(PyExc_ValueError, "silence must be seconds, more than 0");
		return -1;
	}
	/* Not 0, which is the default. */
	*ns = seconds < 1e-9 ? 1 : (int64_t)(seconds * 1e9);
	return 0;
}

static int as_max_bytes(PyObject *o, uint64_t *bytes)
{
	*bytes = PyLong_AsUnsignedLongLong(o);
	return PyErr_Occurred() ? -1 : 0;
}

/* ---- channels ---- */

/*
 * Called by the library in the thread that sends or receives, without the lock of the interpreter. What it raises stays set
 * until the call returns. A receive that a signal ends is none: it looks for signals itself, and the message comes later.
 */
static int on_progress(void *context, bool sending, uint64_t done, uint64_t total)
{
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *progress = ((PyChannel *)context)->progress, *res;
	int err = sending && PyErr_CheckSignals() < 0 ? -EINTR : 0;

	if (!err && progress) {
		res = PyObject_CallFunction(progress, "OKK", sending ? Py_True : Py_False,
					    (unsigned long long)done, (unsigned long long)total);
		err = res ? 0 : -ECANCELED;
		Py_XDECREF(res);
	}
	PyGILState_Release(state);
	return err;
}

static PyObject *wrap(tensor_channel *channel, PyObject *progress)
{
	PyChannel *o = channel ? channel_wrap(NULL, channel, Py_None) : NULL;

	if (!channel && tensor_last_error()->code == ETIMEDOUT)
		PyErr_SetString(PyExc_TimeoutError, tensor_last_error()->text);
	else if (!channel)
		raise_error();
	if (!o)
		return NULL;
	o->is_remote = true;
	o->progress = progress == Py_None ? NULL : Py_NewRef(progress);
	tensor_channel_set_progress(channel, on_progress, o);
	return (PyObject *)o;
}

/* _connect_remote(address, timeout, silence, max_bytes, records, spin, progress) */
static PyObject *connect_remote(PyObject *module, PyObject *args)
{
	struct tensor_remote_options options = { 0 };
	PyObject *timeout, *max_bytes, *spin, *progress;
	double silence, deadline;
	tensor_channel *channel;
	const char *address;
	int64_t ns;

	if (!PyArg_ParseTuple(args, "sOdOiOO", &address, &timeout, &silence, &max_bytes,
			      &options.records, &spin, &progress) ||
	    as_deadline(timeout, &deadline) < 0 || as_silence(silence, &options.timeout_ns) < 0 ||
	    as_max_bytes(max_bytes, &options.max_bytes) < 0 || as_spin(spin, &options.spin_ns) < 0)
		return NULL;
	ns = deadline == HUGE_VAL ? -1 : ns_until(deadline, INT64_MAX / 2);
	Py_BEGIN_ALLOW_THREADS channel = tensor_channel_connect(address, &options, ns);
	Py_END_ALLOW_THREADS return wrap(channel, progress);
}

/* ---- the listener ---- */

/* _RemoteListener(address, silence, max_bytes, records, spin) */
static PyObject *listener_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct tensor_remote_options options = { 0 };
	tensor_channel_listener *listener;
	PyObject *max_bytes, *spin;
	const char *address;
	double silence;
	PyListener *o;

	if (!has_no_keywords(kwargs, "_RemoteListener"))
		return NULL;
	if (!PyArg_ParseTuple(args, "sdOiO", &address, &silence, &max_bytes, &options.records,
			      &spin) ||
	    as_silence(silence, &options.timeout_ns) < 0 ||
	    as_max_bytes(max_bytes, &options.max_bytes) < 0 || as_spin(spin, &options.spin_ns) < 0)
		return NULL;
	/* A name is looked up. */
	Py_BEGIN_ALLOW_THREADS listener = tensor_channel_listen(address, &options);
	Py_END_ALLOW_THREADS if (!listener) return raise_error();
	o = (PyListener *)type_alloc(type);
	if (!o) {
		tensor_channel_listener_close(listener);
		return NULL;
	}
	o->listener = listener;
	return (PyObject *)o;
}

static void listener_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	Py_BEGIN_ALLOW_THREADS tensor_channel_listener_close(((PyListener *)self)->listener);
	Py_END_ALLOW_THREADS type_free(type, self);
	Py_DECREF(type);
}

/* The listener for a call, which ends with users--; NULL with ValueError if it was closed. */
static PyListener *enter(PyObject *self)
{
	PyListener *o = (PyListener *)self;

	return call_begin(o->listener, &o->users, "listener") ? o : NULL;
}

/* accept(timeout, progress) */
static PyObject *listener_accept(PyObject *self, PyObject *args)
{
	PyObject *timeout, *progress;
	tensor_channel *channel;
	double deadline;
	PyListener *o;

	if (!PyArg_ParseTuple(args, "OO", &timeout, &progress) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	o = enter(self);
	if (!o)
		return NULL;
	do {
		Py_BEGIN_ALLOW_THREADS channel =
			tensor_channel_accept(o->listener, moment_ns(deadline));
		Py_END_ALLOW_THREADS
	} while (!channel && tensor_last_error()->code == ETIMEDOUT && wait_over(deadline) == 0);
	o->users--;
	return PyErr_Occurred() ? NULL : wrap(channel, progress);
}

static PyObject *listener_fileno(PyObject *self, PyObject *unused)
{
	PyListener *o = enter(self);

	if (!o)
		return NULL;
	o->users--;
	return PyLong_FromLong(tensor_channel_listener_fd(o->listener));
}

static PyObject *listener_close(PyObject *self, PyObject *unused)
{
	PyListener *o = (PyListener *)self;
	tensor_channel_listener *listener = o->listener;

	if (!close_begin(o->users, "listener"))
		return NULL;
	o->listener = NULL;
	Py_BEGIN_ALLOW_THREADS tensor_channel_listener_close(listener);
	Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *listener_get_address(PyObject *self, void *unused)
{
	PyListener *o = enter(self);

	if (!o)
		return NULL;
	o->users--;
	return PyUnicode_FromString(tensor_channel_listener_address(o->listener));
}

static PyMethodDef methods[] = {
	{ "accept", listener_accept, METH_VARARGS, NULL },
	{ "fileno", listener_fileno, METH_NOARGS,
	  "fileno($self, /)\n--\n\nA descriptor that is readable while accept() would not wait." },
	{ "close", listener_close, METH_NOARGS,
	  "close($self, /)\n--\n\nStop listening. Channels that were accepted stay open." },
	{ NULL },
};

static PyGetSetDef getset[] = {
	{ "address", listener_get_address, NULL, "The address with the number of the port." },
	{ NULL },
};

static PyType_Slot slots[] = { { Py_tp_new, listener_new },
			       { Py_tp_dealloc, listener_dealloc },
			       { Py_tp_methods, methods },
			       { Py_tp_getset, getset },
			       { 0 } };

static PyMethodDef functions[] = { { "_connect_remote", connect_remote, METH_VARARGS, NULL },
				   { NULL } };

int add_remote(PyObject *module)
{
	int err = add_base_type(module, "devtensor._C._RemoteListener", sizeof(PyListener), slots);

	return err < 0 ? err : PyModule_AddFunctions(module, functions);
}
