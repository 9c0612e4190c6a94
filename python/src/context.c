// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The ctx of a call of a Function: what forward declares and what backward reads. */
#include "function.h"

__thread struct active *function_active;
PyTypeObject *context_type;

static struct active *active_of(PyObject *self)
{
	struct active *a = function_active;

	while (a && (PyObject *)a->o != self)
		a = a->outer;
	return a;
}

static struct active *in_forward(PyObject *self, const char *what)
{
	struct active *a = active_of(self);

	if (a && a->forward)
		return a;
	PyErr_Format(PyExc_RuntimeError, "%s: only forward may call it", what);
	return NULL;
}

static PyObject *save(PyObject *self, PyObject *args, const char *what, PyObject **to)
{
	if (!in_forward(self, what))
		return NULL;
	for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++) {
		PyObject *t = PyTuple_GetItem(args, i);

		if (t != Py_None && !is_tensor(t))
			return PyErr_Format(PyExc_TypeError,
					    "%s can only save tensors, but argument %zd is of type "
					    "%R; keep other values as attributes of ctx",
					    what, i, Py_TYPE(t));
	}
	set_ref(to, Py_NewRef(args));
	Py_RETURN_NONE;
}

static PyObject *c_save_for_backward(PyObject *self, PyObject *args)
{
	return save(self, args, "save_for_backward", &((PyContext *)self)->to_save);
}

static PyObject *c_save_for_forward(PyObject *self, PyObject *args)
{
	return save(self, args, "save_for_forward", &((PyContext *)self)->for_forward);
}

static PyObject *c_end_forward(PyObject *self, PyObject *unused)
{
	Py_CLEAR(((PyContext *)self)->for_forward);
	Py_RETURN_NONE;
}

static PyObject *mark(PyObject *self, PyObject *args, const char *what,
		      int (*fn)(tensor_function_ctx *c, tensor *t))
{
	struct active *a = in_forward(self, what);

	for (Py_ssize_t i = 0; a && i < PyTuple_Size(args); i++) {
		PyObject *t = PyTuple_GetItem(args, i);

		if (!is_tensor(t))
			return PyErr_Format(PyExc_TypeError, "%s: argument %zd is no tensor but %R",
					    what, i, Py_TYPE(t));
		if (fn(a->c, tensor_of(t)) < 0)
			return raise_graph_error();
	}
	return a ? Py_NewRef(Py_None) : NULL;
}

static PyObject *c_mark_dirty(PyObject *self, PyObject *args)
{
	return mark(self, args, "mark_dirty", tensor_function_mark_dirty);
}

static PyObject *c_mark_non_differentiable(PyObject *self, PyObject *args)
{
	PyContext *o = (PyContext *)self;
	PyObject *res = mark(self, args, "mark_non_differentiable",
			     tensor_function_mark_non_differentiable);

	if (res && !o->marked && !(o->marked = PyList_New(0)))
		Py_CLEAR(res);
	if (res && PyList_SetSlice(o->marked, 0, 0, args) < 0)
		Py_CLEAR(res);
	return res;
}

bool context_marked(const PyContext *o, PyObject *t)
{
	for (Py_ssize_t i = 0; o->marked && i < PyList_Size(o->marked); i++)
		if (PyList_GetItem(o->marked, i) == t)
			return true;
	return false;
}

/* _is_marked(i): forward marked output i as non-differentiable. */
static PyObject *c_is_marked(PyObject *self, PyObject *number)
{
	const PyContext *o = (PyContext *)self;
	Py_ssize_t i = PyLong_AsSsize_t(number);

	if (i == -1 && PyErr_Occurred())
		return NULL;
	return PyBool_FromLong(i >= 0 && i < o->nout && o->tensors[o->nargs + i] == MARKED);
}

static PyObject *c_set_materialize_grads(PyObject *self, PyObject *value)
{
	int on = PyObject_IsTrue(value);

	if (on < 0 || !in_forward(self, "set_materialize_grads"))
		return NULL;
	((PyContext *)self)->materialize = on;
	Py_RETURN_NONE;
}

/* A tensor of its own: the program may change flags of what it gets, but not those of the saved one. */
static PyObject *saved_tensor(tensor_function_ctx *c, int i)
{
	/* Unpacking may wait for another thread that runs a function of the program. */
	PyThreadState *state = PyEval_SaveThread();
	tensor *t = tensor_function_saved(c, i);

	PyEval_RestoreThread(state);
	if (!t)
		return raise_graph_error();
	if (t == tensor_none)
		Py_RETURN_NONE;
	return tensor_requires_grad(t) ? wrap_borrowed(t) : wrap_result(tensor_detach(t));
}

static PyObject *c_saved_tensors(PyObject *self, void *unused)
{
	struct active *a = active_of(self);
	PyObject *tuple;
	int n;

	if (((PyContext *)self)->for_forward && !(a && !a->forward))
		return Py_NewRef(((PyContext *)self)->for_forward);
	if (a && a->forward && ((PyContext *)self)->to_save)
		return Py_NewRef(((PyContext *)self)->to_save);
	if (!a || a->forward)
		return PyErr_Format(PyExc_RuntimeError,
				    "saved_tensors: only backward may read them, and jvp "
				    "those of save_for_forward()");
	n = tensor_function_saved_count(a->c);
	tuple = PyTuple_New(n);
	for (int i = 0; tuple && i < n; i++) {
		PyObject *t = saved_tensor(a->c, i);

		if (t)
			PyTuple_SetItem(tuple, i, t);
		else
			Py_CLEAR(tuple);
	}
	return tuple;
}

PyObject *context_needs(const PyContext *o, const tensor_function_ctx *c)
{
	PyObject *tuple = PyTuple_New(o->nargs);
	int input = 0;

	for (Py_ssize_t i = 0; tuple && i < o->nargs; i++)
		PyTuple_SetItem(tuple, i,
				PyBool_FromLong(o->tensors[i] &&
						tensor_function_needs_grad(c, input++)));
	return tuple;
}

static PyObject *c_materialize_grads(PyObject *self, void *unused)
{
	return PyBool_FromLong(((PyContext *)self)->materialize);
}

static PyObject *c_needs_input_grad(PyObject *self, void *unused)
{
	const struct active *a = active_of(self);
	PyContext *o = (PyContext *)self;

	if (a)
		return context_needs(o, a->c);
	return o->needs ? Py_NewRef(o->needs) : PyTuple_New(0);
}

static int context_traverse(PyObject *self, visitproc visit, void *arg)
{
	PyContext *o = (PyContext *)self;

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(o->cls);
	Py_VISIT(o->to_save);
	Py_VISIT(o->marked);
	Py_VISIT(o->for_forward);
	Py_VISIT(o->needs);
	return 0;
}

/* Without the class: a node that still refers to the ctx has its name. */
static int context_clear(PyObject *self)
{
	Py_CLEAR(((PyContext *)self)->to_save);
	Py_CLEAR(((PyContext *)self)->marked);
	Py_CLEAR(((PyContext *)self)->for_forward);
	Py_CLEAR(((PyContext *)self)->needs);
	return 0;
}

static void context_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	context_clear(self);
	Py_CLEAR(((PyContext *)self)->cls);
	Py_CLEAR(((PyContext *)self)->info);
	free(((PyContext *)self)->tensors);
	type_free(type, self);
	Py_DECREF(type);
}

static PyMethodDef context_methods[] = {
	{ "save_for_backward", c_save_for_backward, METH_VARARGS,
	  "save_for_backward(*tensors)\n--\n\nIn forward: save inputs, outputs and other tensors, or None." },
	{ "save_for_forward", c_save_for_forward, METH_VARARGS,
	  "save_for_forward(*tensors)\n--\n\nIn forward: tensors, or None, that jvp finds in saved_tensors." },
	{ "_end_forward", c_end_forward, METH_NOARGS, NULL },
	{ "_is_marked", c_is_marked, METH_O, NULL },
	{ "mark_dirty", c_mark_dirty, METH_VARARGS,
	  "mark_dirty(*tensors)\n--\n\nIn forward: inputs that it changes in place and returns." },
	{ "mark_non_differentiable", c_mark_non_differentiable, METH_VARARGS,
	  "mark_non_differentiable(*tensors)\n--\n\nIn forward: outputs that require no gradient." },
	{ "set_materialize_grads", c_set_materialize_grads, METH_O,
	  "set_materialize_grads($self, value, /)\n--\n\n"
	  "In forward: if False, backward gets None for an output without a gradient, instead of zeros." },
	{ NULL },
};

static PyGetSetDef context_getset[] = {
	{ "saved_tensors", c_saved_tensors, NULL,
	  "In backward the tensors of save_for_backward(), in jvp those of save_for_forward()." },
	{ "materialize_grads", c_materialize_grads, NULL, "The value of set_materialize_grads()." },
	{ "needs_input_grad", c_needs_input_grad, NULL,
	  "For each argument whether its gradient is needed: a tuple." },
	{ NULL },
};

static PyType_Slot context_slots[] = {
	{ Py_tp_doc, "The context of one call of a Function." },
	{ Py_tp_dealloc, context_dealloc },
	{ Py_tp_traverse, context_traverse },
	{ Py_tp_clear, context_clear },
	{ Py_tp_methods, context_methods },
	{ Py_tp_getset, context_getset },
	{ 0, NULL },
};

static PyType_Spec context_spec = { "devtensor.autograd._Context", sizeof(PyContext), 0,
				    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
					    Py_TPFLAGS_DISALLOW_INSTANTIATION,
				    context_slots };

int add_context(PyObject *module)
{
	context_type = (PyTypeObject *)PyType_FromSpec(&context_spec);
	return context_type ? PyModule_AddObjectRef(module, "_Context", (PyObject *)context_type) :
			      -1;
}
