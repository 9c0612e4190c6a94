// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Nodes of the graph as objects. Objects of one node are equal; there may be several. */
#include "internal.h"

typedef struct {
	PyObject_HEAD tensor_node *n; /* one reference */
	PyObject **owned;	      /* see gc.c */
} PyNode;

static PyTypeObject *node_type;

PyObject *wrap_node(tensor_node *n)
{
	PyNode *o;

	if (!n)
		Py_RETURN_NONE;
	o = PyObject_GC_New(PyNode, node_type);
	if (!o)
		return NULL;
	o->n = tensor_node_retain(n);
	o->owned = NULL;
	PyObject_GC_Track(o);
	return (PyObject *)o;
}

tensor_node *node_of(PyObject *o)
{
	return ((PyNode *)o)->n;
}

static void node_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyNode *o = (PyNode *)self;
	tensor_node *n = o->n;

	PyObject_GC_UnTrack(self);
	o->n = NULL;
	tensor_node_release(n);
	free(o->owned);
	PyObject_GC_Del(self);
	Py_DECREF(type);
}

static int node_traverse(PyObject *self, visitproc visit, void *arg)
{
	PyNode *o = (PyNode *)self;

	Py_VISIT(Py_TYPE(self));
	return traverse_node(o->n, &o->owned, visit, arg);
}

static int node_clear(PyObject *self)
{
	tensor_node *n = node_of(self);

	((PyNode *)self)->n = NULL;
	tensor_node_release(n);
	return 0;
}

static PyObject *node_compare(PyObject *a, PyObject *b, int op)
{
	bool same;

	if ((op != Py_EQ && op != Py_NE) || Py_TYPE(b) != node_type)
		Py_RETURN_NOTIMPLEMENTED;
	same = node_of(a) == node_of(b);
	return PyBool_FromLong(same == (op == Py_EQ));
}

static Py_hash_t node_hash(PyObject *self)
{
	return (Py_hash_t)((uintptr_t)node_of(self) >> 4);
}

static PyObject *node_name(PyObject *self, PyObject *unused)
{
	const char *name = tensor_node_name(node_of(self));

	return PyUnicode_FromString(name ? name : "freed");
}

static PyObject *node_repr(PyObject *self)
{
	const char *name = tensor_node_name(node_of(self));

	return PyUnicode_FromFormat("<%s object at %p>", name ? name : "freed", node_of(self));
}

static PyObject *node_next(PyObject *self, void *unused)
{
	tensor_node *n = node_of(self);
	int edges = tensor_node_edges(n);
	PyObject *tuple = PyTuple_New(edges);

	for (int i = 0; tuple && i < edges; i++) {
		int nr = 0;
		PyObject *to = wrap_node(tensor_node_edge(n, i, &nr)), *pair = NULL;

		if (to)
			pair = Py_BuildValue("(Ni)", to, to == Py_None ? 0 : nr);
		if (pair)
			PyTuple_SetItem(tuple, i, pair);
		else
			Py_CLEAR(tuple);
	}
	return tuple;
}

static PyObject *node_metadata(PyObject *self, void *unused)
{
	tensor_node *n = node_of(self);
	PyObject *dict = tensor_node_attached(n, release_metadata);

	if (dict)
		return Py_NewRef(dict);
	dict = PyDict_New();
	if (dict && tensor_node_attach(n, Py_NewRef(dict), release_metadata) < 0) {
		Py_DECREF(dict);
		Py_DECREF(dict);
		return raise_error();
	}
	return dict;
}

static PyObject *node_variable(PyObject *self, void *unused)
{
	tensor *leaf = tensor_node_leaf(node_of(self));

	if (leaf)
		return wrap_borrowed(leaf);
	return PyErr_Format(PyExc_AttributeError, "only an AccumulateGrad node has a variable");
}

/* Unpacking may call functions of the program, on this thread or, while another one does, in turn. */
static PyObject *saved(tensor_node *n, int i)
{
	tensor_node *held = tensor_node_retain(n);
	PyThreadState *state = PyEval_SaveThread();
	tensor *t = tensor_node_saved_get(n, i);

	PyEval_RestoreThread(state);
	tensor_node_release(held);
	return t ? wrap_result(t) : raise_graph_error();
}

/* True if the name ends a list of saved tensors: its elements have the same name. */
static bool is_list(const tensor_node *n, const char *name)
{
	int found = 0;

	for (int i = 0; i < tensor_node_saved(n); i++)
		found += !strcmp(tensor_node_saved_name(n, i), name);
	return found > 1;
}

static PyObject *saved_list(tensor_node *n, const char *name)
{
	PyObject *list = PyList_New(0), *tuple;

	for (int i = 0; list && i < tensor_node_saved(n); i++) {
		const char *at = tensor_node_saved_name(n, i);
		PyObject *t;

		if (!at || (name && strcmp(at, name)))
			continue;
		t = saved(n, i);
		if (!t || PyList_Append(list, t) < 0)
			Py_CLEAR(list);
		Py_XDECREF(t);
	}
	tuple = list ? PyList_AsTuple(list) : NULL;
	Py_XDECREF(list);
	return tuple;
}

static PyObject *node_saved_tensors(PyObject *self, void *unused)
{
	return saved_list(node_of(self), NULL);
}

/* _saved_self: the tensor that the node saved as self. */
static PyObject *node_getattr(PyObject *self, PyObject *name)
{
	PyObject *o = PyObject_GenericGetAttr(self, name);
	tensor_node *n = node_of(self);
	const char *text;

	if (o || !PyErr_ExceptionMatches(PyExc_AttributeError))
		return o;
	PyErr_Clear();
	text = PyUnicode_AsUTF8AndSize(name, NULL);
	if (!text)
		return NULL;
	for (int i = 0; !strncmp(text, "_saved_", 7) && i < tensor_node_saved(n); i++) {
		const char *at = tensor_node_saved_name(n, i);

		if (at && !strcmp(at, text + 7))
			return is_list(n, at) ? saved_list(n, at) : saved(n, i);
	}
	return PyErr_Format(PyExc_AttributeError,
			    "the node %s has no attribute %U, or has freed it", tensor_node_name(n),
			    name);
}

static PyGetSetDef getset[] = {
	{ "next_functions", node_next, NULL,
	  "For each input the node that its gradient goes to, or None, and the number of the output of that node." },
	{ "metadata", node_metadata, NULL, "A dict that is kept with the node." },
	{ "variable", node_variable, NULL, "The leaf of an AccumulateGrad node." },
	{ "saved_tensors", node_saved_tensors, NULL, "The tensors that the node saved." },
	{ NULL },
};

static PyMethodDef methods[] = {
	{ "name", node_name, METH_NOARGS, "name($self, /)\n--\n\nThe name, as MulBackward." },
	{ "register_hook", node_register_hook, METH_O,
	  "register_hook($self, fn, /)\n--\n\n"
	  "Call fn(grad_inputs, grad_outputs) after the node ran. It returns None, or a tuple of gradients in place "
	  "of grad_inputs. Returns a handle with remove()." },
	{ "register_prehook", node_register_prehook, METH_O,
	  "register_prehook($self, fn, /)\n--\n\n"
	  "Call fn(grad_outputs) before the node runs. It returns None, or a tuple of gradients in place of "
	  "grad_outputs. Returns a handle with remove()." },
	{ NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc,
	  "A node of the graph: a recorded operator, or the place where the gradient of a leaf is added." },
	{ Py_tp_dealloc, node_dealloc },
	{ Py_tp_traverse, node_traverse },
	{ Py_tp_clear, node_clear },
	{ Py_tp_richcompare, node_compare },
	{ Py_tp_hash, node_hash },
	{ Py_tp_repr, node_repr },
	{ Py_tp_getattro, node_getattr },
	{ Py_tp_getset, getset },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

static PyType_Spec spec = { "devtensor.autograd.graph.Node", sizeof(PyNode), 0,
			    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
				    Py_TPFLAGS_DISALLOW_INSTANTIATION,
			    slots };

/* _grad_fn(tensor): the node of the operator that returned it, None for a leaf. */
static PyObject *m_grad_fn(PyObject *module, PyObject *o)
{
	tensor_node *n;

	if (!is_tensor(o))
		return PyErr_Format(PyExc_TypeError, "a tensor is needed, got %R", Py_TYPE(o));
	if (tensor_is_leaf(tensor_of(o)))
		Py_RETURN_NONE;
	n = tensor_grad_fn(tensor_of(o));
	return n || !tensor_requires_grad(tensor_of(o)) ? wrap_node(n) : raise_error();
}

/* _gradient_node(tensor): as _grad_fn(), and the AccumulateGrad node of a leaf. */
static PyObject *m_gradient_node(PyObject *module, PyObject *o)
{
	if (!is_tensor(o))
		return PyErr_Format(PyExc_TypeError, "a tensor is needed, got %R", Py_TYPE(o));
	return wrap_node(tensor_grad_fn(tensor_of(o)));
}

static PyMethodDef functions[] = {
	{ "_grad_fn", m_grad_fn, METH_O, NULL },
	{ "_gradient_node", m_gradient_node, METH_O, NULL },
	{ NULL },
};

int add_node(PyObject *module)
{
	node_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (!node_type || PyModule_AddFunctions(module, functions) < 0)
		return -1;
	return PyModule_AddObjectRef(module, "_Node", (PyObject *)node_type);
}
