// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Messages over a unix socket, or a ring in shared memory. The socket is non-blocking, and the functions wait without the
 * lock of the interpreter, and for a moment at a time, so that signals and timeouts end a wait.
 */
#include "channel.h"

#include <errno.h>
#include <poll.h>

/* ---- waiting ---- */

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

/* The peer closed its end: as the connections of multiprocessing. */
static PyObject *raise_channel_error(void)
{
	if (tensor_last_error()->code != EPIPE)
		return raise_error();
	PyErr_SetString(PyExc_EOFError, tensor_last_error()->text);
	return NULL;
}

/* ---- sending ---- */

/* A message to be sent: one tensor by tensor_send(), or a list with a tag. */
struct message {
	tensor_list list;
	uint64_t tag;
	unsigned flags;
	bool many;
};

static int try_send(PyChannel *o, const struct message *m, int64_t ns)
{
	int err;

	Py_BEGIN_ALLOW_THREADS if (m->many) err =
		tensor_send_many(o->channel, m->list.data, (int)m->list.len, m->tag, m->flags, ns);
	else err = tensor_send_timeout(o->channel, m->list.data[0], m->flags, ns);
	Py_END_ALLOW_THREADS return err == -ETIMEDOUT ? -EAGAIN : err;
}

/* With a ring the socket does not say when there is space. */
static int wait_to_send(PyChannel *o, double deadline)
{
	return tensor_channel_has_ring(o->channel) ? wait_over(deadline) :
						     wait_for(o->fd, POLLOUT, deadline);
}

/* To another machine, in one call: its function for the progress looks for signals. */
static PyObject *send_remote(PyChannel *o, const struct message *m, double deadline)
{
	int err = try_send(o, m, deadline == HUGE_VAL ? -1 : ns_until(deadline, INT64_MAX / 2));

	o->users--;
	if (PyErr_Occurred())
		return NULL;
	if (err == -EAGAIN)
		PyErr_SetString(PyExc_TimeoutError, "timed out");
	return err == -EAGAIN ? NULL : err ? raise_channel_error() : Py_NewRef(Py_None);
}

static PyObject *send_message(PyObject *self, const struct message *m, double deadline)
{
	PyChannel *o = channel_use(self);
	int err;

	if (!o)
		return NULL;
	if (o->is_remote)
		return send_remote(o, m, deadline);
	while ((err = try_send(o, m,
			       tensor_channel_has_ring(o->channel) ? moment_ns(deadline) : 0)) ==
	       -EAGAIN)
		if (wait_to_send(o, deadline) < 0)
			break;
	o->users--;
	if (err == -EAGAIN)
		return NULL;
	return err ? raise_channel_error() : Py_NewRef(Py_None);
}

PyObject *channel_send(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "tensor", "readonly", "timeout", NULL };
	PyObject *object, *timeout = NULL;
	int readonly = 0;
	double deadline;
	tensor *t;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$pO", keywords, tensor_type, &object,
					 &readonly, &timeout) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	t = tensor_of(object);
	return send_message(self,
			    &(const struct message){ .list = { &t, 1 },
						     .flags = readonly ? TENSOR_SEND_READONLY : 0 },
			    deadline);
}

PyObject *channel_send_many(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "tensors", "tag", "readonly", "timeout", NULL };
	PyObject *objects, *tag = NULL, *timeout = NULL, *res = NULL;
	struct message m = { .many = true };
	struct arena arena;
	int readonly = 0;
	double deadline;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$pO", keywords, &objects, &tag,
					 &readonly, &timeout) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	if (tag) {
		m.tag = PyLong_AsUnsignedLongLong(tag);
		if (PyErr_Occurred())
			return NULL;
	}
	m.flags = readonly ? TENSOR_SEND_READONLY : 0;
	arena_init(&arena);
	if (tensors_of(&arena, objects, "send_many", &m.list) == 0) {
		if (m.list.len > TENSOR_MESSAGE_MAX)
			PyErr_Format(PyExc_ValueError, "send_many: at most %d tensors, got %zd",
				     TENSOR_MESSAGE_MAX, (Py_ssize_t)m.list.len);
		else
			res = send_message(self, &m, deadline);
	}
	arena_free(&arena);
	return res;
}

/* False where send() would wait. */
static PyObject *try_message(PyObject *self, const struct message *m)
{
	PyChannel *o = channel_use(self);
	int err;

	if (!o)
		return NULL;
	err = try_send(o, m, 0);
	o->users--;
	if (PyErr_Occurred())
		return NULL;
	if (err && err != -EAGAIN)
		return raise_channel_error();
	return PyBool_FromLong(!err);
}

PyObject *channel_try_send(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "tensor", "readonly", NULL };
	PyObject *object;
	int readonly = 0;
	tensor *t;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$p", keywords, tensor_type, &object,
					 &readonly))
		return NULL;
	t = tensor_of(object);
	return try_message(self,
			   &(const struct message){ .list = { &t, 1 },
						    .flags = readonly ? TENSOR_SEND_READONLY : 0 });
}

/* ---- receiving ---- */

/* How long the library may wait, and then whether to go on: the program sees the progress only while it is in a receive. */
static int64_t receive_ns(const PyChannel *o, double deadline)
{
	return o->is_remote ? moment_ns(deadline) : spin_ns(deadline);
}

static int wait_to_receive(const PyChannel *o, double deadline)
{
	return o->is_remote ? wait_over(deadline) : wait_for(o->fd, POLLIN, deadline);
}

/* NULL without an exception: nothing has arrived. */
static PyObject *try_recv(PyChannel *o, int64_t ns)
{
	tensor *t;
	int code;

	Py_BEGIN_ALLOW_THREADS t = tensor_recv_timeout(o->channel, ns);
	Py_END_ALLOW_THREADS if (t) return wrap_result(t);
	if (PyErr_Occurred())
		return NULL;
	code = tensor_last_error()->code;
	return code == EAGAIN || code == ETIMEDOUT ? NULL : raise_channel_error();
}

PyObject *channel_receive(PyObject *self, double deadline)
{
	PyChannel *o = channel_use(self);
	PyObject *t;

	if (!o)
		return NULL;
	while (!(t = try_recv(o, receive_ns(o, deadline))) && !PyErr_Occurred())
		if (wait_to_receive(o, deadline) < 0)
			break;
	o->users--;
	return t;
}

/* (list of tensors, tag); NULL without an exception: nothing has arrived. */
static PyObject *try_recv_many(PyChannel *o, int most, int64_t ns)
{
	tensor *tensors[TENSOR_MESSAGE_MAX];
	PyObject *list, *t;
	uint64_t tag;
	int n;

	Py_BEGIN_ALLOW_THREADS n = tensor_recv_many(o->channel, tensors, most, &tag, ns);
	Py_END_ALLOW_THREADS if (PyErr_Occurred() || n == -EAGAIN || n == -ETIMEDOUT) return NULL;
	if (n < 0)
		return raise_channel_error();
	list = PyList_New(n);
	for (int i = 0; i < n; i++) {
		t = list ? wrap_result(tensors[i]) : NULL;
		if (!t)
			Py_CLEAR(list);
		if (list)
			PyList_SetItem(list, i, t);
	}
	return list ? Py_BuildValue("NK", list, (unsigned long long)tag) : NULL;
}

static PyObject *receive_many(PyObject *self, int most, double deadline, bool block)
{
	PyObject *res;
	PyChannel *o;

	if (most < 0 || most > TENSOR_MESSAGE_MAX)
		return PyErr_Format(PyExc_ValueError, "recv_many: most must be 0 to %d, got %d",
				    TENSOR_MESSAGE_MAX, most);
	o = channel_use(self);
	if (!o)
		return NULL;
	while (!(res = try_recv_many(o, most, block ? receive_ns(o, deadline) : 0)) &&
	       !PyErr_Occurred())
		if (!block || wait_to_receive(o, deadline) < 0)
			break;
	o->users--;
	return res || block || PyErr_Occurred() ? res : Py_NewRef(Py_None);
}

PyObject *channel_recv_many(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "most", "timeout", NULL };
	int most = TENSOR_MESSAGE_MAX;
	PyObject *timeout = NULL;
	double deadline;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|iO", keywords, &most, &timeout) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	return receive_many(self, most, deadline, true);
}

PyObject *channel_try_recv_many(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "most", NULL };
	int most = TENSOR_MESSAGE_MAX;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i", keywords, &most))
		return NULL;
	return receive_many(self, most, 0, false);
}

PyObject *channel_recv(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "timeout", NULL };
	PyObject *timeout = NULL;
	double deadline;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", keywords, &timeout) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	return channel_receive(self, deadline);
}

/* None where recv() would wait. */
PyObject *channel_try_recv(PyObject *self, PyObject *unused)
{
	PyChannel *o = channel_use(self);
	PyObject *t;

	if (!o)
		return NULL;
	t = try_recv(o, 0);
	o->users--;
	return t || PyErr_Occurred() ? t : Py_NewRef(Py_None);
}
