// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* _DataParallel, below distributed.DataParallel: parameters whose gradients the ranks average. */
#include "process_group.h"

#include <errno.h>

typedef struct PyParallel {
	PyObject_HEAD tensor_data_parallel *dp; /* NULL: ended with its group */
	PyProcessGroup *group;
	struct PyParallel *next; /* with the same group */
	bool busy;		 /* in a call without the lock */
} PyParallel;

/* Hooks and tensors go, which may need the lock on another thread. */
static void end(PyParallel *o)
{
	tensor_data_parallel *dp = o->dp;

	o->dp = NULL;
	Py_BEGIN_ALLOW_THREADS tensor_data_parallel_free(dp);
	Py_END_ALLOW_THREADS
}

void parallel_end_all(PyProcessGroup *g)
{
	PyParallel *o;

	/* Each leaves the list first: another thread may change it meanwhile. */
	while ((o = g->parallel)) {
		g->parallel = o->next;
		Py_INCREF((PyObject *)o);
		end(o);
		Py_DECREF((PyObject *)o);
	}
}

static void leave_list(PyParallel *o)
{
	PyParallel **at = &o->group->parallel;

	while (*at && *at != o)
		at = &(*at)->next;
	if (*at)
		*at = o->next;
}

static void parallel_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyParallel *o = (PyParallel *)self;
	struct saved_errors before;

	leave_list(o);
	errors_save(&before);
	end(o);
	errors_restore(&before);
	Py_DECREF((PyObject *)o->group);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* For a call, which ends with leave(). */
static PyParallel *enter(PyObject *self)
{
	PyParallel *o = (PyParallel *)self;

	if (!o->dp)
		PyErr_SetString(PyExc_ValueError, "the group is closed");
	else if (o->busy)
		PyErr_SetString(PyExc_RuntimeError, "another thread uses the DataParallel");
	else {
		o->busy = true;
		o->group->users++;
		return o;
	}
	return NULL;
}

static void leave(PyParallel *o)
{
	o->busy = false;
	o->group->users--;
}

static PyObject *result(int err)
{
	return err < 0 ? raise_error() : Py_NewRef(Py_None);
}

static tensor_data_parallel *make(PyProcessGroup *g, PyObject *parameters, PyObject *buffers,
				  const struct tensor_data_parallel_options *options)
{
	tensor_data_parallel *dp = NULL;
	struct arena arena;
	tensor_list p, b;

	arena_init(&arena);
	if (tensors_of(&arena, parameters, "DataParallel", &p) == 0 &&
	    tensors_of(&arena, buffers, "DataParallel", &b) == 0) {
		begin_call();
		Py_BEGIN_ALLOW_THREADS dp = tensor_data_parallel_new_of(p, b, g->group, options);
		Py_END_ALLOW_THREADS end_call();
		if (!dp)
			raise_error();
	}
	arena_free(&arena);
	return dp;
}

/* _DataParallel(parameters, buffers, group, bucket_bytes, dtype): the buffers of the lists become rank 0's once. */
static PyObject *parallel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct tensor_data_parallel_options options = { .keep_buffers = true };
	PyObject *parameters, *buffers, *group, *dtype;
	int number = TENSOR_DTYPE_NONE, res;
	tensor_data_parallel *dp;
	PyProcessGroup *g;
	long long bytes;
	PyParallel *o;

	if (!PyArg_ParseTuple(args, "OOOLO", &parameters, &buffers, &group, &bytes, &dtype))
		return NULL;
	res = dtype == Py_None ? 1 : as_dtype(dtype, &number);
	if (!res)
		PyErr_Format(PyExc_TypeError, "DataParallel: expected a dtype, got %R",
			     Py_TYPE(dtype));
	g = res > 0 ? process_group_use(group) : NULL;
	if (!g)
		return NULL;
	options.bucket_bytes = bytes;
	options.dtype = (enum tensor_dtype)number;
	dp = make(g, parameters, buffers, &options);
	g->users--;
	o = dp ? PyObject_New(PyParallel, type) : NULL;
	if (!o) {
		tensor_data_parallel_free(dp);
		return NULL;
	}
	o->dp = dp;
	o->group = (PyProcessGroup *)Py_NewRef(group);
	o->next = g->parallel;
	o->busy = false;
	g->parallel = o;
	return (PyObject *)o;
}

/* Waits for the gradients of all ranks a moment at a time, so that a signal ends it. */
static int await_gradients(PyParallel *o)
{
	int err;

	do {
		Py_BEGIN_ALLOW_THREADS err = tensor_data_parallel_wait(o->dp, MOMENT_NS);
		Py_END_ALLOW_THREADS if (!request_remains(err)) return 0;
	} while (PyErr_CheckSignals() == 0);
	return -1;
}

static PyObject *parallel_finish(PyObject *self, PyObject *unused)
{
	PyParallel *o = enter(self);
	int err;

	if (!o)
		return NULL;
	err = await_gradients(o);
	if (!err) {
		Py_BEGIN_ALLOW_THREADS err = tensor_data_parallel_finish(o->dp);
		Py_END_ALLOW_THREADS if (err < 0) raise_error();
	}
	leave(o);
	return err < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *parallel_share(PyObject *self, PyObject *unused)
{
	PyParallel *o = enter(self);
	int err;

	if (!o)
		return NULL;
	Py_BEGIN_ALLOW_THREADS err = tensor_data_parallel_share(o->dp);
	Py_END_ALLOW_THREADS leave(o);
	return result(err);
}

static PyObject *parallel_owned(PyObject *self, PyObject *unused)
{
	PyParallel *o = enter(self);
	PyObject *list = o ? PyList_New(0) : NULL, *t;
	tensor_list owned = { NULL, 0 };

	if (!o)
		return NULL;
	owned = tensor_data_parallel_owned(o->dp);
	for (int64_t i = 0; list && i < owned.len; i++) {
		t = wrap_borrowed(owned.data[i]);
		if (!t || PyList_Append(list, t) < 0)
			Py_CLEAR(list);
		Py_XDECREF(t);
	}
	leave(o);
	return list;
}

static PyObject *parallel_set_sync(PyObject *self, PyObject *sync)
{
	int on = PyObject_IsTrue(sync), err;
	PyParallel *o = on < 0 ? NULL : enter(self);

	if (!o)
		return NULL;
	err = tensor_data_parallel_set_sync(o->dp, on);
	leave(o);
	return result(err);
}

static PyMethodDef methods[] = {
	{ "finish", parallel_finish, METH_NOARGS, "Wait for the averages of the gradients." },
	{ "share", parallel_share, METH_NOARGS, "Give the values of owned() to all ranks." },
	{ "owned", parallel_owned, METH_NOARGS, "This rank's part of the parameters." },
	{ "set_sync", parallel_set_sync, METH_O, "Whether gradients are averaged." },
	{ NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "_DataParallel(parameters, buffers, group, bucket_bytes, dtype)" },
	{ Py_tp_new, parallel_new },
	{ Py_tp_dealloc, parallel_dealloc },
	{ Py_tp_methods, methods },
	{ 0 },
};

int add_data_parallel(PyObject *module)
{
	return add_type(module, "devtensor._C._DataParallel", sizeof(PyParallel), slots) ? 0 : -1;
}
