// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* _Pool: buffers that are lent, sent, and lent again when no receiver uses them any more; sharing.Pool is its subclass. */
#include "closable.h"
#include "waiting.h"

#include <tensor/channel.h>

typedef struct {
	PyObject_HEAD tensor_pool *pool; /* NULL: closed */
	int users;			 /* calls that run */
} PyPool;

/* Opens a pool of these tensors. */
static tensor_pool *open_pool(PyObject *objects, int full)
{
	struct tensor_pool_options options = { .full = (enum tensor_pool_full)full };
	struct arena arena;
	tensor_pool *pool = NULL;
	tensor_list list;

	arena_init(&arena);
	if (tensors_of(&arena, objects, "Pool", &list) == 0) {
		options.n = list.len > INT32_MAX ? INT32_MAX : (int32_t)list.len;
		options.tensors = list.data;
		if (!list.len)
			PyErr_SetString(PyExc_ValueError, "Pool: at least one tensor is needed");
		else if (!(pool = tensor_pool_open(TENSOR_NO_INTS, &options)))
			raise_error();
	}
	arena_free(&arena);
	return pool;
}

/* _Pool(tensors, full): full is the number of an enum tensor_pool_full. */
static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	tensor_pool *pool;
	PyObject *objects;
	PyPool *o;
	int full;

	if (!has_no_keywords(kwargs, "_Pool"))
		return NULL;
	if (!PyArg_ParseTuple(args, "Oi", &objects, &full))
		return NULL;
	pool = open_pool(objects, full);
	if (!pool)
		return NULL;
	o = (PyPool *)type_alloc(type);
	if (!o) {
		tensor_pool_close(pool);
		return NULL;
	}
	o->pool = pool;
	return (PyObject *)o;
}

static void pool_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	tensor_pool_close(((PyPool *)self)->pool);
	type_free(type, self);
	Py_DECREF(type);
}

/* The pool for a call; NULL with ValueError if it was closed. */
static PyPool *enter(PyObject *self)
{
	PyPool *o = (PyPool *)self;

	return call_begin(o->pool, &o->users, "pool") ? o : NULL;
}

static PyObject *pool_loan(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "timeout", NULL };
	PyObject *timeout = NULL;
	double deadline;
	PyPool *o;
	tensor *t;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", keywords, &timeout) ||
	    as_deadline(timeout, &deadline) < 0)
		return NULL;
	o = enter(self);
	if (!o)
		return NULL;
	do {
		Py_BEGIN_ALLOW_THREADS t = tensor_pool_loan(o->pool, moment_ns(deadline));
		Py_END_ALLOW_THREADS
	} while (!t && tensor_last_error()->code == ETIMEDOUT && wait_over(deadline) == 0);
	o->users--;
	if (PyErr_Occurred())
		return NULL;
	return t ? wrap_result(t) : raise_error();
}

static PyObject *pool_close(PyObject *self, PyObject *unused)
{
	PyPool *o = (PyPool *)self;
	tensor_pool *pool = o->pool;

	if (!close_begin(o->users, "pool"))
		return NULL;
	o->pool = NULL;
	tensor_pool_close(pool);
	Py_RETURN_NONE;
}

static PyObject *pool_get_available(PyObject *self, void *unused)
{
	PyPool *o = enter(self);
	int n;

	if (!o)
		return NULL;
	n = tensor_pool_available(o->pool);
	o->users--;
	return n < 0 ? raise_error() : PyLong_FromLong(n);
}

static PyObject *pool_get_closed(PyObject *self, void *unused)
{
	return PyBool_FromLong(!((PyPool *)self)->pool);
}

static PyMethodDef methods[] = {
	{ "loan", (PyCFunction)(void (*)(void))pool_loan, METH_VARARGS | METH_KEYWORDS,
	  "loan($self, timeout=None)\n--\n\n"
	  "A tensor on a free buffer, with the values of its last use. TimeoutError after timeout seconds; "
	  "BlockingIOError from a pool that refuses while none is free." },
	{ "close", pool_close, METH_NOARGS,
	  "close($self, /)\n--\n\nClose the pool. Loans and received tensors stay valid." },
	{ NULL },
};

static PyGetSetDef getset[] = {
	{ "available", pool_get_available, NULL, "The number of buffers that are free now." },
	{ "closed", pool_get_closed, NULL, "True after close()." },
	{ NULL },
};

static PyType_Slot slots[] = { { Py_tp_new, pool_new },
			       { Py_tp_dealloc, pool_dealloc },
			       { Py_tp_methods, methods },
			       { Py_tp_getset, getset },
			       { 0 } };

int add_pool(PyObject *module)
{
	return add_base_type(module, "devtensor._C._Pool", sizeof(PyPool), slots);
}
