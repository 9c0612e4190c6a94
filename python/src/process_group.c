// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * _ProcessGroup and _Request, below devtensor.distributed. Every operation is a request, whose wait looks for signals.
 */
#include "process_group.h"

#include <errno.h>

typedef struct {
	PyObject_HEAD PyProcessGroup *group;
	tensor_request *request; /* NULL: it has ended */
	bool busy;		 /* a thread waits without the lock */
	int code;		 /* of the error, 0 without one */
	char text[TENSOR_ERROR_TEXT];
} PyRequest;

static PyTypeObject *group_type, *request_type;

/* ---- requests that the program has dropped ---- */

/* Frees those that have ended; after the group's end these are all. */
static void free_dropped(PyProcessGroup *g)
{
	int left = 0;

	for (int i = 0; i < g->ndropped; i++)
		if (request_remains(tensor_request_wait(g->dropped[i], 0)))
			g->dropped[left++] = g->dropped[i];
	g->ndropped = left;
}

/* Without memory for the list the request is never freed. */
static void drop_request(PyProcessGroup *g, tensor_request *r)
{
	if (g->ndropped == g->cap) {
		int cap = g->cap ? 2 * g->cap : 8;
		tensor_request **more = realloc(g->dropped, (size_t)cap * sizeof(tensor_request *));

		if (!more)
			return;
		g->dropped = more;
		g->cap = cap;
	}
	g->dropped[g->ndropped++] = r;
	free_dropped(g);
}

/* ---- requests ---- */

static void request_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyRequest *o = (PyRequest *)self;
	struct saved_errors before;

	if (o->request) {
		errors_save(&before);
		drop_request(o->group, o->request);
		errors_restore(&before);
	}
	Py_XDECREF((PyObject *)o->group);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *raise_request(const PyRequest *o)
{
	tensor_set_error(o->code, "%s", o->text);
	return raise_error();
}

/* 0 when the operation has ended, or -1 with an exception. */
static int wait_until(PyRequest *o, double deadline)
{
	int err;

	do {
		Py_BEGIN_ALLOW_THREADS err = tensor_request_wait(o->request, moment_ns(deadline));
		Py_END_ALLOW_THREADS if (!request_remains(err))
		{
			o->request = NULL;
			o->code = err < 0 ? -err : 0;
			if (err < 0)
				snprintf(o->text, sizeof(o->text), "%s", tensor_last_error()->text);
			return 0;
		}
	} while (err == -ETIMEDOUT && wait_over(deadline) == 0);
	if (err != -ETIMEDOUT)
		raise_error();
	return -1;
}

static PyObject *request_wait(PyObject *self, PyObject *timeout)
{
	PyRequest *o = (PyRequest *)self;
	double deadline;
	int err = 0;

	if (as_deadline(timeout, &deadline) < 0)
		return NULL;
	if (o->busy)
		return PyErr_Format(PyExc_RuntimeError,
				    "wait: another thread waits for the request");
	if (o->request) {
		o->busy = true;
		o->group->users++;
		err = wait_until(o, deadline);
		o->group->users--;
		o->busy = false;
	}
	if (err < 0)
		return NULL;
	return o->code ? raise_request(o) : Py_NewRef(Py_None);
}

static PyObject *request_get_done(PyObject *self, void *unused)
{
	PyRequest *o = (PyRequest *)self;
	int done = o->busy ? 0 : o->request ? tensor_request_done(o->request) : 1;

	return done < 0 ? raise_error() : PyBool_FromLong(done);
}

static PyMethodDef request_methods[] = {
	{ "wait", request_wait, METH_O, "Wait for the end, at most for seconds, or None." },
	{ NULL },
};

static PyGetSetDef request_getset[] = {
	{ "done", request_get_done, NULL, "Whether wait() returns at once." },
	{ NULL },
};

static PyType_Slot request_slots[] = {
	{ Py_tp_doc, "An operation of a process group that was begun." },
	{ Py_tp_dealloc, request_dealloc },
	{ Py_tp_methods, request_methods },
	{ Py_tp_getset, request_getset },
	{ 0 },
};

/* ---- operations ---- */

struct operation {
	tensor *out, *in;
	int op, root;
};

static int begin_barrier(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_barrier(g, r);
}

static int begin_broadcast(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_broadcast(g, o->out, o->root, r);
}

static int begin_all_reduce(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_all_reduce(g, o->out, o->in, (enum tensor_group_op)o->op, r);
}

static int begin_reduce(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_reduce(g, o->out, o->in, (enum tensor_group_op)o->op, o->root, r);
}

static int begin_reduce_scatter(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_reduce_scatter(g, o->out, o->in, (enum tensor_group_op)o->op, r);
}

static int begin_all_gather(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_all_gather(g, o->out, o->in, r);
}

static int begin_gather(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_gather(g, o->out, o->in, o->root, r);
}

static int begin_scatter(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_scatter(g, o->out, o->in, o->root, r);
}

static int begin_all_to_all(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_all_to_all(g, o->out, o->in, r);
}

static int begin_send(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_send(g, o->in, o->root, r);
}

static int begin_recv(tensor_group *g, const struct operation *o, tensor_request **r)
{
	return tensor_group_recv(g, o->out, o->root, r);
}

typedef int begin_fn(tensor_group *g, const struct operation *o, tensor_request **r);

static const struct {
	const char *name;
	begin_fn *begin;
} operations[] = {
	{ "barrier", begin_barrier },
	{ "broadcast", begin_broadcast },
	{ "all_reduce", begin_all_reduce },
	{ "reduce", begin_reduce },
	{ "reduce_scatter", begin_reduce_scatter },
	{ "all_gather", begin_all_gather },
	{ "gather", begin_gather },
	{ "scatter", begin_scatter },
	{ "all_to_all", begin_all_to_all },
	{ "send", begin_send },
	{ "recv", begin_recv },
};

static begin_fn *find_operation(const char *name)
{
	for (size_t i = 0; i < COUNT(operations); i++)
		if (!strcmp(operations[i].name, name))
			return operations[i].begin;
	PyErr_Format(PyExc_ValueError, "there is no operation %s", name);
	return NULL;
}

/* A tensor, or None. */
static int as_tensor(PyObject *o, const char *name, tensor **t)
{
	*t = o != Py_None && is_tensor(o) ? tensor_of(o) : NULL;
	if (*t || o == Py_None)
		return 0;
	PyErr_Format(PyExc_TypeError, "%s: expected a tensor, got %R", name, Py_TYPE(o));
	return -1;
}

static int begin_operation(PyProcessGroup *g, begin_fn *begin, const struct operation *op,
			   tensor_request **request)
{
	tensor *out = op->out, *in = op->in;
	int err;

	begin_call();
	tensor_retain(out);
	tensor_retain(in);
	Py_BEGIN_ALLOW_THREADS err = begin(g->group, op, request);
	Py_END_ALLOW_THREADS tensor_release(in);
	tensor_release(out);
	end_call();
	return err;
}

/* _start(name, out, in, op, root): a _Request. */
static PyObject *group_start(PyObject *self, PyObject *args)
{
	struct operation op;
	PyObject *out, *in;
	PyProcessGroup *g;
	PyRequest *r;
	const char *name;
	begin_fn *begin;
	int err;

	if (!PyArg_ParseTuple(args, "sOOii", &name, &out, &in, &op.op, &op.root))
		return NULL;
	begin = find_operation(name);
	if (!begin || as_tensor(out, name, &op.out) < 0 || as_tensor(in, name, &op.in) < 0)
		return NULL;
	g = process_group_use(self);
	if (!g)
		return NULL;
	free_dropped(g);
	r = PyObject_New(PyRequest, request_type);
	err = r ? 0 : -ENOMEM;
	if (r) {
		r->group = (PyProcessGroup *)Py_NewRef(self);
		r->request = NULL;
		r->busy = false;
		r->code = 0;
		err = begin_operation(g, begin, &op, &r->request);
		if (err < 0)
			raise_error();
	}
	g->users--;
	if (err < 0)
		Py_CLEAR(r);
	return (PyObject *)r;
}

/* ---- groups ---- */

PyProcessGroup *process_group_use(PyObject *o)
{
	PyProcessGroup *g = (PyProcessGroup *)o;

	if (!PyObject_TypeCheck(o, group_type))
		PyErr_Format(PyExc_TypeError, "a Group is needed, got %R", Py_TYPE(o));
	else if (!g->group)
		PyErr_SetString(PyExc_ValueError, "the group is closed");
	else {
		g->users++;
		return g;
	}
	return NULL;
}

/* _ProcessGroup(engine, rank, size, address, timeout in ns) */
static PyObject *group_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct tensor_group_options options = { .size = 0 };
	tensor_group *group;
	long long timeout;
	const char *engine;
	PyProcessGroup *g;

	if (!PyArg_ParseTuple(args, "ziizL", &engine, &options.rank, &options.size,
			      &options.address, &timeout))
		return NULL;
	options.timeout_ns = timeout;
	Py_BEGIN_ALLOW_THREADS group = tensor_group_open(engine, &options);
	Py_END_ALLOW_THREADS if (!group) return raise_error();
	g = (PyProcessGroup *)type_alloc(type);
	if (!g)
		tensor_group_close(group);
	else
		g->group = group;
	return (PyObject *)g;
}

/* Requests end, so that nothing below waits. The group's thread may need the lock to end. */
static void end_group(PyProcessGroup *g)
{
	tensor_group *group = g->group;

	g->group = NULL;
	if (group) {
		Py_BEGIN_ALLOW_THREADS tensor_group_close(group);
		Py_END_ALLOW_THREADS
	}
	parallel_end_all(g);
	free_dropped(g);
}

static void group_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyProcessGroup *g = (PyProcessGroup *)self;
	struct saved_errors before;

	errors_save(&before);
	end_group(g);
	errors_restore(&before);
	free(g->dropped);
	type_free(type, self);
	Py_DECREF(type);
}

static PyObject *group_close(PyObject *self, PyObject *unused)
{
	PyProcessGroup *g = (PyProcessGroup *)self;

	if (g->users)
		return PyErr_Format(PyExc_RuntimeError, "close: another thread uses the group");
	end_group(g);
	Py_RETURN_NONE;
}

static PyObject *group_stats(PyObject *self, PyObject *unused)
{
	PyProcessGroup *g = process_group_use(self);
	struct tensor_group_stats s;
	PyObject *failed, *res;

	if (!g)
		return NULL;
	g->users--;
	if (tensor_group_stats(g->group, &s) < 0)
		return raise_error();
	failed = s.failed < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(s.failed);
	res = failed ? Py_BuildValue("{sKsKsO}", "operations", (unsigned long long)s.operations,
				     "bytes", (unsigned long long)s.bytes, "failed", failed) :
		       NULL;
	Py_XDECREF(failed);
	return res;
}

/* An attribute of an open group; the closure tells rank from size. */
static PyObject *group_get_number(PyObject *self, void *function)
{
	PyProcessGroup *g = process_group_use(self);

	if (!g)
		return NULL;
	g->users--;
	return PyLong_FromLong(function ? tensor_group_size(g->group) :
					  tensor_group_rank(g->group));
}

static PyObject *group_get_engine(PyObject *self, void *unused)
{
	PyProcessGroup *g = process_group_use(self);

	if (!g)
		return NULL;
	g->users--;
	return PyUnicode_FromString(tensor_group_engine(g->group));
}

static PyObject *group_get_device(PyObject *self, void *unused)
{
	PyProcessGroup *g = process_group_use(self);

	if (!g)
		return NULL;
	g->users--;
	return wrap_device(tensor_group_device(g->group));
}

static PyObject *group_get_closed(PyObject *self, void *unused)
{
	return PyBool_FromLong(!((PyProcessGroup *)self)->group);
}

static PyMethodDef group_methods[] = {
	{ "_start", group_start, METH_VARARGS, NULL },
	{ "stats", group_stats, METH_NOARGS,
	  "stats($self, /)\n--\n\n"
	  "A dict: `operations` that have ended on this rank, the `bytes` of its tensors that they read and wrote, and the "
	  "rank that ended the group by its death or its error (`failed`), or None." },
	{ "close", group_close, METH_NOARGS,
	  "close($self, /)\n--\n\n"
	  "Leave the group. Operations that have not ended fail with BrokenPipeError; a DataParallel with the group has "
	  "ended." },
	{ NULL },
};

static PyGetSetDef group_getset[] = {
	{ "rank", group_get_number, NULL, "The rank of this process, from 0 to size - 1." },
	{ "size", group_get_number, NULL, "The number of ranks.", "size" },
	{ "engine", group_get_engine, NULL, "'local', 'mpi' or 'nccl'." },
	{ "device", group_get_device, NULL,
	  "The device of this rank: of 'nccl' a CUDA device, else the CPU." },
	{ "closed", group_get_closed, NULL, "True after close()." },
	{ NULL },
};

static PyType_Slot group_slots[] = {
	{ Py_tp_new, group_new },
	{ Py_tp_dealloc, group_dealloc },
	{ Py_tp_methods, group_methods },
	{ Py_tp_getset, group_getset },
	{ 0 },
};

int add_process_group(PyObject *module)
{
	PyType_Spec spec = { "devtensor._C._ProcessGroup", sizeof(PyProcessGroup), 0,
			     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, group_slots };

	group_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (!group_type ||
	    PyModule_AddObjectRef(module, "_ProcessGroup", (PyObject *)group_type) < 0)
		return -1;
	request_type = add_type(module, "devtensor._C._Request", sizeof(PyRequest), request_slots);
	return request_type ? add_data_parallel(module) : -1;
}
