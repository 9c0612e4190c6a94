// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Channel, the object; messages.c has its messages. */
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

static PyTypeObject *channel_type;

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
		return 0;
	PyErr_SetFromErrno(PyExc_OSError);
	return -1;
}

int as_spin(PyObject *o, int64_t *ns)
{
	double seconds;

	*ns = 0;
	if (!o || o == Py_None)
		return 0;
	seconds = PyFloat_AsDouble(o);
	if (seconds == -1 && PyErr_Occurred())
		return -1;
	if (!(seconds >= 0 && seconds <= 1)) {
		PyErr_SetString(PyExc_ValueError, "spin must be 0 to 1 second, or None");
		return -1;
	}
	*ns = seconds > 0 ? (int64_t)(seconds * 1e9) + 1 : -1;
	return 0;
}

PyChannel *channel_wrap(PyTypeObject *type, tensor_channel *channel, PyObject *socket)
{
	PyChannel *o;

	type = type ? type : channel_type;
	o = (PyChannel *)type_alloc(type);
	if (!o) {
		tensor_channel_close(channel);
		return NULL;
	}
	o->channel = channel;
	o->socket = Py_NewRef(socket);
	o->fd = tensor_channel_fd(channel);
	return o;
}

static PyObject *channel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "socket", "ring", "records", "spin", "files", NULL };
	struct tensor_channel_options options = { .ring = false };
	PyObject *socket, *spin = NULL;
	tensor_channel *channel;
	int fd, ring = 0, files = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$piOp", keywords, &socket, &ring,
					 &options.records, &spin, &files) ||
	    as_spin(spin, &options.spin_ns) < 0)
		return NULL;
	fd = PyObject_AsFileDescriptor(socket);
	if (fd < 0)
		return NULL;
	options.ring = ring;
	options.files = files;
	channel = tensor_channel_open_with(fd, &options);
	if (!channel)
		return raise_error();
	if (set_nonblocking(fd) < 0) {
		tensor_channel_close(channel);
		return NULL;
	}
	return (PyObject *)channel_wrap(type, channel, socket);
}

static int channel_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(((PyChannel *)self)->socket);
	Py_VISIT(((PyChannel *)self)->progress);
	return 0;
}

static void channel_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyChannel *o = (PyChannel *)self;

	PyObject_GC_UnTrack(self);
	/* A remote peer may take a while to say that it has received all. */
	Py_BEGIN_ALLOW_THREADS tensor_channel_close(o->channel);
	Py_END_ALLOW_THREADS Py_XDECREF(o->socket);
	Py_XDECREF(o->progress);
	type_free(type, self);
	Py_DECREF(type);
}

bool is_channel(PyObject *o)
{
	return PyObject_TypeCheck(o, channel_type);
}

PyChannel *channel_use(PyObject *self)
{
	PyChannel *o = (PyChannel *)self;

	if (o->channel) {
		o->users++;
		return o;
	}
	PyErr_SetString(PyExc_ValueError, "the channel is closed");
	return NULL;
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
	/* A remote peer may take a while to say that it has received all. */
	Py_BEGIN_ALLOW_THREADS tensor_channel_close(channel);
	Py_END_ALLOW_THREADS res = PyObject_HasAttrString(socket, "close") ?
					   PyObject_CallMethod(socket, "close", NULL) :
					   Py_NewRef(Py_None);
	Py_DECREF(socket);
	return res;
}

static PyObject *channel_fileno(PyObject *self, PyObject *unused)
{
	PyChannel *o = channel_use(self);

	if (!o)
		return NULL;
	o->users--;
	return PyLong_FromLong(o->fd);
}

/* _hold(): the descriptor, which stays open until _release(). */
static PyObject *channel_hold(PyObject *self, PyObject *unused)
{
	PyChannel *o = channel_use(self);

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
	PyObject *t = channel_receive(self, HUGE_VAL);

	if (!t && PyErr_ExceptionMatches(PyExc_EOFError))
		PyErr_Clear();
	return t;
}

static PyObject *channel_get_closed(PyObject *self, void *unused)
{
	return PyBool_FromLong(!((PyChannel *)self)->channel);
}

static PyObject *channel_get_has_ring(PyObject *self, void *unused)
{
	tensor_channel *channel = ((PyChannel *)self)->channel;

	return PyBool_FromLong(channel && tensor_channel_has_ring(channel));
}

static PyObject *channel_get_is_remote(PyObject *self, void *unused)
{
	return PyBool_FromLong(((PyChannel *)self)->is_remote);
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
	{ "send_many", (PyCFunction)(void (*)(void))channel_send_many, METH_VARARGS | METH_KEYWORDS,
	  "send_many($self, tensors, tag=0, *, readonly=False, timeout=None)\n--\n\n"
	  "Send up to 64 tensors and a number of 64 bits as one message: the peer receives all of it or nothing." },
	{ "recv_many", (PyCFunction)(void (*)(void))channel_recv_many, METH_VARARGS | METH_KEYWORDS,
	  "recv_many($self, most=64, timeout=None)\n--\n\n"
	  "Receive a message of up to `most` tensors: the list of them, and the number. A message with more stays for the "
	  "next call (OSError with errno EMSGSIZE)." },
	{ "try_recv_many", (PyCFunction)(void (*)(void))channel_try_recv_many,
	  METH_VARARGS | METH_KEYWORDS,
	  "try_recv_many($self, most=64)\n--\n\nAs recv_many(); None where it would wait." },
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
	{ "is_remote", channel_get_is_remote, NULL,
	  "Whether it was made from an address of a machine." },
	{ "has_ring", channel_get_has_ring, NULL,
	  "Whether what is sent goes through a ring by now." },
	{ "socket", channel_get_socket, NULL,
	  "The socket; None after close(), and for a channel to another machine." },
	{ NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc,
	  "Channel(socket, *, ring=False, records=0, spin=None, files=False)\n--\n\n"
	  "One end of a connected unix socket that transfers tensors between processes. "
	  "Iteration receives until the peer closes its end.\n\n"
	  "With ring, messages go through a ring of `records` in shared memory if the peer wants it, too, and a "
	  "wait spins for `spin` seconds before it blocks; 0 and None: the library chooses. "
	  "With ring and files this end trusts its peer: a tensor of a file that the peer has mapped read-only comes as a mapping "
	  "of the file instead of a copy." },
	{ Py_tp_new, channel_new },
	{ Py_tp_dealloc, channel_dealloc },
	{ Py_tp_traverse, channel_traverse },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, getset },
	{ Py_tp_iter, channel_iter },
	{ Py_tp_iternext, channel_next },
	{ 0 },
};

/* ---- several channels ---- */

static PyObject *wait_some(tensor_channel **channels, int n, double deadline)
{
	int i;

	for (;;) {
		Py_BEGIN_ALLOW_THREADS i = tensor_channel_wait(channels, n, moment_ns(deadline));
		Py_END_ALLOW_THREADS if (i >= 0) return PyLong_FromLong(i);
		if (i != -ETIMEDOUT)
			return raise_error();
		if (wait_over(deadline) < 0)
			return NULL;
	}
}

/* _channel_wait(channels, timeout): the index of the one that can be received from. */
static PyObject *channel_wait(PyObject *module, PyObject *args)
{
	PyObject *objects, *timeout, *tuple, *res = NULL;
	tensor_channel **channels;
	double deadline;
	Py_ssize_t n, held = 0;

	if (!PyArg_ParseTuple(args, "OO", &objects, &timeout) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	tuple = PySequence_Tuple(objects);
	if (!tuple)
		return NULL;
	n = PyTuple_Size(tuple);
	channels = PyMem_Calloc(n ? n : 1, sizeof(*channels));
	if (!channels || n > INT_MAX)
		PyErr_NoMemory();
	for (; channels && n <= INT_MAX && held < n; held++) {
		PyObject *o = PyTuple_GetItem(tuple, held);

		if (!PyObject_TypeCheck(o, channel_type)) {
			PyErr_Format(PyExc_TypeError, "wait: channels are needed, got %R",
				     Py_TYPE(o));
			break;
		}
		if (!channel_use(o))
			break;
		channels[held] = ((PyChannel *)o)->channel;
	}
	if (!PyErr_Occurred())
		res = wait_some(channels, (int)n, deadline);
	while (held-- > 0)
		((PyChannel *)PyTuple_GetItem(tuple, held))->users--;
	PyMem_Free(channels);
	Py_DECREF(tuple);
	return res;
}

static PyMethodDef functions[] = { { "_channel_wait", channel_wait, METH_VARARGS, NULL },
				   { NULL } };

int add_channel(PyObject *module)
{
	PyType_Spec spec = { "devtensor.Channel", sizeof(PyChannel), 0,
			     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots };

	if (PyModule_AddFunctions(module, functions) < 0)
		return -1;
	channel_type = (PyTypeObject *)PyType_FromSpec(&spec);
	return channel_type ? PyModule_AddObjectRef(module, "Channel", (PyObject *)channel_type) :
			      -1;
}
