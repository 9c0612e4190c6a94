// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* _Group: one send to several channels; sharing.Group is its subclass. */
#include "channel.h"
#include "closable.h"

typedef struct {
	PyObject_HEAD tensor_channel_group *group; /* NULL: closed */
	PyObject *channels; /* a list; each is in use as long as it is in the group */
	int users;	    /* calls that run */
} PyGroup;

/* _Group(kind, full, window): numbers of the enumerations. */
static PyObject *group_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct tensor_channel_group_options options = { .window = 0 };
	tensor_channel_group *group;
	int kind, full;
	PyGroup *o;

	if (!has_no_keywords(kwargs, "_Group"))
		return NULL;
	if (!PyArg_ParseTuple(args, "iii", &kind, &full, &options.window))
		return NULL;
	options.kind = (enum tensor_channel_group_kind)kind;
	options.full = (enum tensor_pool_full)full;
	group = tensor_channel_group_open(&options);
	if (!group)
		return raise_error();
	o = (PyGroup *)type_alloc(type);
	if (o)
		o->channels = PyList_New(0);
	if (!o || !o->channels) {
		Py_XDECREF((PyObject *)o);
		tensor_channel_group_close(group);
		return NULL;
	}
	o->group = group;
	return (PyObject *)o;
}

static void end_group(PyGroup *o)
{
	tensor_channel_group *group = o->group;

	o->group = NULL;
	tensor_channel_group_close(group);
	for (Py_ssize_t i = 0; o->channels && i < PyList_Size(o->channels); i++)
		((PyChannel *)PyList_GetItem(o->channels, i))->users--;
	Py_CLEAR(o->channels);
}

static void group_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	end_group((PyGroup *)self);
	type_free(type, self);
	Py_DECREF(type);
}

/* The group for a call; NULL with ValueError if it was closed. */
static PyGroup *enter(PyObject *self)
{
	PyGroup *o = (PyGroup *)self;

	return call_begin(o->group, &o->users, "group") ? o : NULL;
}

/* A channel in use, or NULL with TypeError or ValueError. */
static PyChannel *channel_of(PyObject *object)
{
	if (is_channel(object))
		return channel_use(object);
	PyErr_Format(PyExc_TypeError, "a Channel is needed, got %R", Py_TYPE(object));
	return NULL;
}

/* Takes an entry of the channel out of the list. */
static void forget(PyGroup *o, PyObject *channel)
{
	for (Py_ssize_t i = 0; i < PyList_Size(o->channels); i++)
		if (PyList_GetItem(o->channels, i) == channel) {
			PyList_SetSlice(o->channels, i, i + 1, NULL);
			((PyChannel *)channel)->users--;
			return;
		}
}

/* The group's lock is held by a send that waits, so no call waits for it with the interpreter's. */
static PyObject *group_add(PyObject *self, PyObject *object)
{
	PyGroup *o = enter(self);
	PyChannel *c = o ? channel_of(object) : NULL;
	int err = -1;

	if (c && PyList_Append(o->channels, object) < 0)
		c->users--;
	else if (c) {
		Py_BEGIN_ALLOW_THREADS err = tensor_channel_group_add(o->group, c->channel);
		Py_END_ALLOW_THREADS if (err < 0)
		{
			raise_error();
			forget(o, object);
		}
	}
	if (o)
		o->users--;
	return err < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *group_remove(PyObject *self, PyObject *object)
{
	PyGroup *o = enter(self);
	PyChannel *c = o ? channel_of(object) : NULL;
	int err = -1;

	if (c) {
		Py_BEGIN_ALLOW_THREADS err = tensor_channel_group_remove(o->group, c->channel);
		Py_END_ALLOW_THREADS if (err < 0) raise_error();
		else forget(o, object);
		c->users--;
	}
	if (o)
		o->users--;
	return err < 0 ? NULL : Py_NewRef(Py_None);
}

/* The number of receivers, or -1 with an exception. */
static int send_until(PyGroup *o, tensor_list list, uint64_t tag, unsigned flags, double deadline)
{
	int n;

	do {
		Py_BEGIN_ALLOW_THREADS n = tensor_channel_group_send(
			o->group, list.data, (int)list.len, tag, flags, moment_ns(deadline));
		Py_END_ALLOW_THREADS
	} while (n == -ETIMEDOUT && wait_over(deadline) == 0);
	if (n < 0 && !PyErr_Occurred())
		raise_error();
	return n;
}

static PyObject *group_send(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "tensors", "tag", "readonly", "timeout", NULL };
	PyObject *objects, *tag = NULL, *timeout = NULL;
	unsigned long long number = 0;
	int readonly = 0, n = -1;
	struct arena arena;
	tensor_list list;
	double deadline;
	PyGroup *o;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$pO", keywords, &objects, &tag,
					 &readonly, &timeout) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	if (tag)
		number = PyLong_AsUnsignedLongLong(tag);
	if (PyErr_Occurred())
		return NULL;
	o = enter(self);
	if (!o)
		return NULL;
	arena_init(&arena);
	if (tensors_of(&arena, objects, "send", &list) == 0) {
		if (list.len > TENSOR_MESSAGE_MAX)
			PyErr_Format(PyExc_ValueError, "send: at most %d tensors, got %zd",
				     TENSOR_MESSAGE_MAX, (Py_ssize_t)list.len);
		else
			n = send_until(o, list, number, readonly ? TENSOR_SEND_READONLY : 0,
				       deadline);
	}
	arena_free(&arena);
	o->users--;
	return n < 0 ? NULL : PyLong_FromLong(n);
}

static PyObject *group_lost(PyObject *self, PyObject *unused)
{
	PyGroup *o = enter(self);
	PyObject *list = o ? PyList_New(0) : NULL, *number;
	uint64_t tag;
	int found;

	while (list) {
		Py_BEGIN_ALLOW_THREADS found = tensor_channel_group_lost(o->group, &tag);
		Py_END_ALLOW_THREADS if (found != 1) break;
		number = PyLong_FromUnsignedLongLong(tag);
		if (!number || PyList_Append(list, number) < 0)
			Py_CLEAR(list);
		Py_XDECREF(number);
	}
	if (o)
		o->users--;
	return list;
}

static PyObject *group_stats(PyObject *self, PyObject *object)
{
	PyGroup *o = enter(self);
	PyChannel *c = o ? channel_of(object) : NULL;
	struct tensor_channel_group_stats s;
	int err = -1;

	if (c) {
		Py_BEGIN_ALLOW_THREADS err = tensor_channel_group_stats(o->group, c->channel, &s);
		Py_END_ALLOW_THREADS if (err < 0) raise_error();
		c->users--;
	}
	if (o)
		o->users--;
	return err < 0 ?
		       NULL :
		       Py_BuildValue("{sKsKsIsO}", "sent", (unsigned long long)s.sent, "dropped",
				     (unsigned long long)s.dropped, "in_flight",
				     (unsigned)s.in_flight, "alive", s.alive ? Py_True : Py_False);
}

static PyObject *group_close(PyObject *self, PyObject *unused)
{
	PyGroup *o = (PyGroup *)self;

	if (!close_begin(o->users, "group"))
		return NULL;
	end_group(o);
	Py_RETURN_NONE;
}

static PyObject *group_get_count(PyObject *self, void *unused)
{
	PyGroup *o = enter(self);
	int n;

	if (!o)
		return NULL;
	Py_BEGIN_ALLOW_THREADS n = tensor_channel_group_count(o->group);
	Py_END_ALLOW_THREADS o->users--;
	return n < 0 ? raise_error() : PyLong_FromLong(n);
}

static PyObject *group_get_closed(PyObject *self, void *unused)
{
	return PyBool_FromLong(!((PyGroup *)self)->group);
}

static PyMethodDef methods[] = {
	{ "add", group_add, METH_O,
	  "add($self, channel, /)\n--\n\n"
	  "Add a receiver, which gets the messages from then on. The channel cannot be closed while it is in the group." },
	{ "remove", group_remove, METH_O,
	  "remove($self, channel, /)\n--\n\nRemove a receiver. What was sent to it is received." },
	{ "send", (PyCFunction)(void (*)(void))group_send, METH_VARARGS | METH_KEYWORDS,
	  "send($self, tensors, tag=0, *, readonly=False, timeout=None)\n--\n\n"
	  "Send up to 64 tensors and a number of 64 bits as one message; the number of receivers. TimeoutError after timeout "
	  "seconds; BlockingIOError from a group that refuses while a window is full." },
	{ "lost", group_lost, METH_NOARGS,
	  "lost($self, /)\n--\n\n"
	  "The numbers of messages to the next whose receiver died before it had released them, each once." },
	{ "stats", group_stats, METH_O,
	  "stats($self, channel, /)\n--\n\n"
	  "A dict: messages `sent` to a receiver, those that it lost (`dropped`) and has not released (`in_flight`), and "
	  "whether it is `alive`." },
	{ "close", group_close, METH_NOARGS,
	  "close($self, /)\n--\n\nClose the group, not its channels." },
	{ NULL },
};

static PyGetSetDef getset[] = {
	{ "count", group_get_count, NULL, "The number of receivers that live." },
	{ "closed", group_get_closed, NULL, "True after close()." },
	{ NULL },
};

static PyType_Slot slots[] = { { Py_tp_new, group_new },
			       { Py_tp_dealloc, group_dealloc },
			       { Py_tp_methods, methods },
			       { Py_tp_getset, getset },
			       { 0 } };

int add_channel_group(PyObject *module)
{
	return add_base_type(module, "devtensor._C._Group", sizeof(PyGroup), slots);
}
