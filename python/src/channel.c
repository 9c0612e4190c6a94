// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Channels: tensors over a unix socket. The socket is non-blocking, and the functions wait in poll()
 * without the lock of the interpreter, so that signals and timeouts end a wait.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <time.h>

typedef struct {
	PyObject_HEAD tensor_channel *channel; /* NULL: closed */
	PyObject *socket;		       /* keeps the descriptor open */
	int fd;
	int users; /* calls that run, and tasks that wait: close() waits for none, it refuses */
} PyChannel;

static PyTypeObject *channel_type;

/* ---- waiting ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time at which a wait ends, from seconds or None: HUGE_VAL for no end. */
static int as_deadline(PyObject *timeout, double *deadline)
{
	double seconds;

	*deadline = HUGE_VAL;
	if (!timeout || timeout == Py_None)
		return 0;
	seconds = PyFloat_AsDouble(timeout);
	if (seconds == -1 && PyErr_Occurred())
		return -1;
	if (!(seconds >= 0)) {
		PyErr_SetString(PyExc_ValueError, "timeout must be seconds, not negative, or None");
		return -1;
	}
	*deadline = now() + seconds;
	return 0;
}

/* Waits for an event of the descriptor. TimeoutError, or the exception of a signal handler. */
static int wait_for(int fd, short events, double deadline)
{
	struct pollfd p = { .fd = fd, .events = events };
	double left;
	int n, ms;

	for (;;) {
		left = deadline - now();
		if (left < 0 && deadline != HUGE_VAL)
			left = 0;
		ms = left > 1e6 ? 1000000000 : (int)ceil(left * 1e3);
		Py_BEGIN_ALLOW_THREADS n = poll(&p, 1, ms);
		Py_END_ALLOW_THREADS if (n > 0) return 0;
		if (n < 0 && errno != EINTR) {
			PyErr_SetFromErrno(PyExc_OSError);
			return -1;
		}
		if (n < 0 && PyErr_CheckSignals() < 0)
			return -1;
		if (n == 0 && now() >= deadline) {
			PyErr_SetString(PyExc_TimeoutError, "timed out");
			return -1;
		}
	}
}

/* ---- the object ---- */

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
		return 0;
	PyErr_SetFromErrno(PyExc_OSError);
	return -1;
}

static PyObject *channel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "socket", NULL };
	tensor_channel *channel;
	PyObject *socket;
	PyChannel *o;
	int fd;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", keywords, &socket))
		return NULL;
	fd = PyObject_AsFileDescriptor(socket);
	if (fd < 0)
		return NULL;
	channel = tensor_channel_open(fd);
	if (!channel)
		return raise_error();
	o = set_nonblocking(fd) < 0 ?
		    NULL :
		    (PyChannel *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
	if (!o) {
		tensor_channel_close(channel);
		return NULL;
	}
	o->channel = channel;
	o->socket = Py_NewRef(socket);
	o->fd = fd;
	return (PyObject *)o;
}

static int channel_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(((PyChannel *)self)->socket);
	return 0;
}

static void channel_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyChannel *o = (PyChannel *)self;

	PyObject_GC_UnTrack(self);
	tensor_channel_close(o->channel);
	Py_XDECREF(o->socket);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

/* The channel for a call; NULL with ValueError if it was closed. */
static PyChannel *enter(PyObject *self)
{
	PyChannel *o = (PyChannel *)self;

	if (o->channel) {
		o->users++;
		return o;
	}
	PyErr_SetString(PyExc_ValueError, "the channel is closed");
	return NULL;
}

/* The peer closed its end: as the connections of multiprocessing. */
static PyObject *raise_channel_error(void)
{
	if (tensor_last_error()->code != EPIPE)
		return raise_error();
	PyErr_SetString(PyExc_EOFError, tensor_last_error()->text);
	return NULL;
}

static int try_send(PyChannel *o, PyObject *t, unsigned flags)
{
	int err;

	Py_BEGIN_ALLOW_THREADS err = tensor_send(o->channel, tensor_of(t), flags);
	Py_END_ALLOW_THREADS return err;
}

static PyObject *channel_send(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "tensor", "readonly", "timeout", NULL };
	PyObject *t, *timeout = NULL;
	int readonly = 0, err = 0;
	double deadline;
	PyChannel *o;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$pO", keywords, tensor_type, &t,
					 &readonly, &timeout) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	o = enter(self);
	if (!o)
		return NULL;
	while ((err = try_send(o, t, readonly ? TENSOR_SEND_READONLY : 0)) == -EAGAIN)
		if (wait_for(o->fd, POLLOUT, deadline) < 0)
			break;
	o->users--;
	if (err == -EAGAIN)
		return NULL;
	return err ? raise_channel_error() : Py_NewRef(Py_None);
}

/* NULL without an exception: nothing has arrived. */
static PyObject *try_recv(PyChannel *o)
{
	tensor *t;

	Py_BEGIN_ALLOW_THREADS t = tensor_recv(o->channel);
	Py_END_ALLOW_THREADS if (t) return wrap_result(t);
	return tensor_last_error()->code == EAGAIN ? NULL : raise_channel_error();
}

static PyObject *receive(PyObject *self, double deadline)
{
	PyChannel *o = enter(self);
	PyObject *t;

	if (!o)
		return NULL;
	while (!(t = try_recv(o)) && !PyErr_Occurred())
		if (wait_for(o->fd, POLLIN, deadline) < 0)
			break;
	o->users--;
	return t;
}

static PyObject *channel_recv(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "timeout", NULL };
	PyObject *timeout = NULL;
	double deadline;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", keywords, &timeout) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	return receive(self, deadline);
}

/* None where recv() would wait. */
static PyObject *channel_try_recv(PyObject *self, PyObject *unused)
{
	PyChannel *o = enter(self);
	PyObject *t;

	if (!o)
		return NULL;
	t = try_recv(o);
	o->users--;
	return t || PyErr_Occurred() ? t : Py_NewRef(Py_None);
}

/* False where send() would wait. */
static PyObject *channel_try_send(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "tensor", "readonly", NULL };
	int readonly = 0, err;
	PyChannel *o;
	PyObject *t;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$p", keywords, tensor_type, &t,
					 &readonly))
		return NULL;
	o = enter(self);
	if (!o)
		return NULL;
	err = try_send(o, t, readonly ? TENSOR_SEND_READONLY : 0);
	o->users--;
	if (err && err != -EAGAIN)
		return raise_channel_error();
	return PyBool_FromLong(!err);
}

static PyObject *channel_close(PyObject *self, PyObject *unused)
{
	PyChannel *o = (PyChannel *)self;
	tensor_channel *channel = o->channel;
	PyObject *socket = o->socket, *res;

	if (o->users)
		return PyErr_Format(PyExc_RuntimeError,
				    "close: another thread or task uses the channel");
	if (!channel)
		Py_RETURN_NONE;
	o->channel = NULL;
	o->socket = NULL;
	tensor_channel_close(channel);
	res = PyObject_HasAttrString(socket, "close") ? PyObject_CallMethod(socket, "close", NULL) :
							Py_NewRef(Py_None);
	Py_DECREF(socket);
	return res;
}

static PyObject *channel_fileno(PyObject *self, PyObject *unused)
{
	PyChannel *o = enter(self);

	if (!o)
		return NULL;
	o->users--;
	return PyLong_FromLong(o->fd);
}

/* _hold(): the descriptor, which stays open until _release(). */
static PyObject *channel_hold(PyObject *self, PyObject *unused)
{
	PyChannel *o = enter(self);

	return o ? PyLong_FromLong(o->fd) : NULL;
}

static PyObject *channel_release(PyObject *self, PyObject *unused)
{
	PyChannel *o = (PyChannel *)self;

	o->users -= o->users > 0;
	Py_RETURN_NONE;
}

static PyObject *channel_enter(PyObject *self, PyObject *unused)
{
	return Py_NewRef(self);
}

static PyObject *channel_exit(PyObject *self, PyObject *args)
{
	return channel_close(self, NULL);
}

static PyObject *channel_iter(PyObject *self)
{
	return Py_NewRef(self);
}

/* Ends when the peer has closed its end. */
static PyObject *channel_next(PyObject *self)
{
	PyObject *t = receive(self, HUGE_VAL);

	if (!t && PyErr_ExceptionMatches(PyExc_EOFError))
		PyErr_Clear();
	return t;
}

static PyObject *channel_get_closed(PyObject *self, void *unused)
{
	return PyBool_FromLong(!((PyChannel *)self)->channel);
}

static PyObject *channel_get_socket(PyObject *self, void *unused)
{
	PyObject *socket = ((PyChannel *)self)->socket;

	return Py_NewRef(socket ? socket : Py_None);
}

static PyMethodDef methods[] = {
	{ "send", (PyCFunction)(void (*)(void))channel_send, METH_VARARGS | METH_KEYWORDS,
	  "send($self, tensor, *, readonly=False, timeout=None)\n--\n\n"
	  "Send a tensor without a copy; its memory is moved to a shareable buffer first if need be. "
	  "With readonly the peer can never write to it. EOFError if the peer has closed its end, "
	  "TimeoutError after timeout seconds." },
	{ "recv", (PyCFunction)(void (*)(void))channel_recv, METH_VARARGS | METH_KEYWORDS,
	  "recv($self, timeout=None)\n--\n\n"
	  "Receive a tensor on the sender's memory. EOFError if the peer has closed its end, "
	  "TimeoutError after timeout seconds." },
	{ "try_send", (PyCFunction)(void (*)(void))channel_try_send, METH_VARARGS | METH_KEYWORDS,
	  "try_send($self, tensor, *, readonly=False)\n--\n\nAs send(); False where it would wait." },
	{ "try_recv", channel_try_recv, METH_NOARGS,
	  "try_recv($self, /)\n--\n\nAs recv(); None where it would wait." },
	{ "close", channel_close, METH_NOARGS,
	  "close($self, /)\n--\n\nClose the channel and its socket. Received tensors stay valid." },
	{ "fileno", channel_fileno, METH_NOARGS,
	  "fileno($self, /)\n--\n\nThe descriptor of the socket, for select and poll." },
	{ "_hold", channel_hold, METH_NOARGS, NULL },
	{ "_release", channel_release, METH_NOARGS, NULL },
	{ "__enter__", channel_enter, METH_NOARGS, NULL },
	{ "__exit__", channel_exit, METH_VARARGS, NULL },
	{ NULL },
};

static PyGetSetDef getset[] = {
	{ "closed", channel_get_closed, NULL, "True after close()." },
	{ "socket", channel_get_socket, NULL, "The socket, None after close()." },
	{ NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "Channel(socket)\n--\n\n"
		     "One end of a connected unix socket that transfers tensors between processes. "
		     "Iteration receives until the peer closes its end." },
	{ Py_tp_new, channel_new },
	{ Py_tp_dealloc, channel_dealloc },
	{ Py_tp_traverse, channel_traverse },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, getset },
	{ Py_tp_iter, channel_iter },
	{ Py_tp_iternext, channel_next },
	{ 0 },
};

int add_channel(PyObject *module)
{
	PyType_Spec spec = { "devtensor.Channel", sizeof(PyChannel), 0,
			     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots };

	channel_type = (PyTypeObject *)PyType_FromSpec(&spec);
	return channel_type ? PyModule_AddObjectRef(module, "Channel", (PyObject *)channel_type) :
			      -1;
}
