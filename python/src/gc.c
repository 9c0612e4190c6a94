// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The garbage collector and graphs. A tensor or node reports the Python objects that its graph holds (hooks, contexts of
 * functions, metadata) if nothing else leads to them (tensor_visit_owned()).
 *
 * A collection traverses each object twice: it counts the references that it finds, and then marks what is reachable.
 * Both have to see the same references, but an operator that runs on another thread without the lock may add an owner
 * between them, and the collector would free an object that is in use. So the first pass keeps what it found for the
 * second one. Collectors of CPython 3.14 and later have other passes: there, and wherever the passes are not found, no
 * graph is traversed, and a cycle through one is not collected.
 */
#include "internal.h"

/* The visit functions of the two passes, found by a collection at import. */
static visitproc count_pass, mark_pass;

void release_metadata(void *o)
{
	release_object(o);
}

static bool is_object(void (*destroy)(void *))
{
	return destroy == release_object || destroy == release_metadata;
}

/* ---- what a graph owns ---- */

struct collected {
	PyObject **list; /* NULL at the end; NULL without an object */
	size_t n, cap;
};

static int collect(void *ctx, void (*destroy)(void *), void *arg)
{
	struct collected *c = arg;

	if (!is_object(destroy))
		return 0;
	if (c->n + 2 > c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 8;
		PyObject **list = realloc(c->list, cap * sizeof(*list));

		if (!list)
			return -1;
		c->list = list;
		c->cap = cap;
	}
	c->list[c->n++] = ctx;
	c->list[c->n] = NULL;
	return 0;
}

/* An object that is missing in the list counts as used by others. */
static PyObject **owned_by(tensor *t, tensor_node *n)
{
	struct collected c = { NULL };
	struct saved_errors before;

	errors_save(&before);
	if (t)
		tensor_visit_owned(t, collect, &c);
	else
		tensor_node_visit_owned(n, collect, &c);
	errors_restore(&before);
	return c.list;
}

static int visit_list(PyObject *const *list, visitproc visit, void *arg)
{
	for (; list && *list; list++)
		Py_VISIT(*list);
	return 0;
}

static int traverse(tensor *t, tensor_node *n, PyObject ***owned, visitproc visit, void *arg)
{
	PyObject **list;
	int res;

	if (!mark_pass)
		return 0;
	if (visit == mark_pass)
		return visit_list(*owned, visit, arg);
	if (visit == count_pass) {
		free(*owned);
		*owned = owned_by(t, n);
		return visit_list(*owned, visit, arg);
	}
	list = owned_by(t, n);
	res = visit_list(list, visit, arg);
	free(list);
	return res;
}

bool begins_collection(visitproc visit)
{
	return visit == count_pass || !count_pass;
}

int traverse_tensor(tensor *t, PyObject ***owned, visitproc visit, void *arg)
{
	return t ? traverse(t, NULL, owned, visit, arg) : 0;
}

int traverse_node(tensor_node *n, PyObject ***owned, visitproc visit, void *arg)
{
	return n ? traverse(NULL, n, owned, visit, arg) : 0;
}

/* ---- the passes of the collector ---- */

/* A debug build of Python also traverses an object when it is tracked. */
static bool probing;

static int probe_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	if (!probing)
		return 0;
	if (!count_pass)
		count_pass = visit;
	else if (!mark_pass && visit != count_pass)
		mark_pass = visit;
	return 0;
}

static void probe_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	PyObject_GC_Del(self);
	Py_DECREF(type);
}

static PyType_Slot probe_slots[] = {
	{ Py_tp_traverse, probe_traverse },
	{ Py_tp_dealloc, probe_dealloc },
	{ 0, NULL },
};

static PyType_Spec probe_spec = { "devtensor._Probe", sizeof(PyObject), 0,
				  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, probe_slots };

/* Collects the generations up to one that the object may have reached meanwhile. */
static int probe_collection(PyObject *gc)
{
	for (int generation = 0; generation < 3 && !mark_pass; generation++) {
		PyObject *n;

		probing = true;
		n = PyObject_CallMethod(gc, "collect", "i", generation);
		probing = false;
		if (!n)
			return -1;
		Py_DECREF(n);
	}
	return 0;
}

int add_gc(PyObject *module)
{
	PyObject *type, *probe, *gc;
	int err = -1;

	if (Py_Version >= 0x030E0000)
		return 0;
	type = PyType_FromSpec(&probe_spec);
	probe = type ? (PyObject *)PyObject_GC_New(PyObject, (PyTypeObject *)type) : NULL;
	gc = probe ? PyImport_ImportModule("gc") : NULL;
	if (gc) {
		PyObject_GC_Track(probe);
		err = probe_collection(gc);
	}
	Py_XDECREF(gc);
	Py_XDECREF(probe);
	Py_XDECREF(type);
	return err;
}
