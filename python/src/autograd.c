// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* backward, and the modes of a thread. The lock is released while a backward runs. */
#include "internal.h"

#include <errno.h>

/* ---- lists ---- */

PyObject *wrap_list(tensor *const *list, Py_ssize_t n)
{
	PyObject *tuple = PyTuple_New(n);

	for (Py_ssize_t i = 0; tuple && i < n; i++) {
		PyObject *o = wrap_borrowed(list[i]);

		if (o)
			PyTuple_SetItem(tuple, i, o);
		else
			Py_CLEAR(tuple);
	}
	return tuple;
}

tensor *give_to_scope(PyObject *o)
{
	return tensor_scope_add(tensor_retain(tensor_of(o)));
}

/* Tensors of a tuple, which the caller holds; NULL for None. A list of n + 1, to free with PyMem_Free(). */
static tensor **list_of(PyObject *tuple, Py_ssize_t *n, const char *what, bool optional)
{
	tensor **list;

	if (!PyTuple_Check(tuple)) {
		PyErr_Format(PyExc_TypeError, "%s must be a tuple, got %R", what, Py_TYPE(tuple));
		return NULL;
	}
	*n = PyTuple_Size(tuple);
	list = PyMem_Calloc(*n + 1, sizeof(*list));
	if (!list)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; list && i < *n; i++) {
		PyObject *o = PyTuple_GetItem(tuple, i);

		if (is_tensor(o)) {
			list[i] = tensor_of(o);
		} else if (!optional || o != Py_None) {
			PyErr_Format(PyExc_TypeError, "%s: element %zd must be a tensor%s, got %R",
				     what, i, optional ? " or None" : "", Py_TYPE(o));
			PyMem_Free(list);
			return NULL;
		}
	}
	return list;
}

/* ---- backward ---- */

struct backward {
	tensor **outputs, **output_grads, **inputs, **grads;
	Py_ssize_t n, ngrads, ninputs;
};

static void backward_free(struct backward *b)
{
	PyMem_Free(b->outputs);
	PyMem_Free(b->output_grads);
	PyMem_Free(b->inputs);
	PyMem_Free(b->grads);
}

static int backward_args(struct backward *b, PyObject *outputs, PyObject *output_grads,
			 PyObject *inputs)
{
	b->outputs = list_of(outputs, &b->n, "outputs", false);
	if (!b->outputs)
		return -1;
	if (output_grads != Py_None) {
		b->output_grads = list_of(output_grads, &b->ngrads, "grad_outputs", true);
		if (!b->output_grads)
			return -1;
		if (b->ngrads != b->n) {
			PyErr_Format(PyExc_RuntimeError, "backward: %zd outputs and %zd gradients",
				     b->n, b->ngrads);
			return -1;
		}
	}
	if (inputs == Py_None)
		return 0;
	b->inputs = list_of(inputs, &b->ninputs, "inputs", false);
	b->grads = b->inputs ? PyMem_Calloc(b->ninputs + 1, sizeof(*b->grads)) : NULL;
	if (b->inputs && !b->grads)
		PyErr_NoMemory();
	return b->grads ? 0 : -1;
}

/* See hold(); the nodes of the outputs get a reference, too. */
static void hold_all(struct backward *b, tensor_node **nodes)
{
	for (Py_ssize_t i = 0; i < b->n; i++) {
		nodes[i] = tensor_node_retain(tensor_grad_fn(b->outputs[i]));
		hold(b->outputs[i]);
	}
	for (Py_ssize_t i = 0; i < b->ninputs; i++)
		hold(b->inputs[i]);
}

static void release_all(struct backward *b, tensor_node **nodes)
{
	for (Py_ssize_t i = 0; i < b->n; i++) {
		tensor_release(b->outputs[i]);
		tensor_node_release(nodes[i]);
	}
	for (Py_ssize_t i = 0; i < b->ninputs; i++)
		tensor_release(b->inputs[i]);
}

/* Without the lock. */
static int backward_unlocked(struct backward *b, unsigned flags)
{
	tensor_node **held = PyMem_Calloc(b->n + 1, sizeof(*held));
	PyThreadState *state;
	int err;

	if (!held)
		return tensor_set_error(ENOMEM, "backward: no memory");
	hold_all(b, held);
	state = PyEval_SaveThread();
	err = tensor_backward_ex((tensor_list){ b->outputs, b->n }, b->output_grads,
				 (tensor_list){ b->inputs, b->ninputs }, b->grads, flags);
	PyEval_RestoreThread(state);
	release_all(b, held);
	PyMem_Free(held);
	return err;
}

/* Consumes the gradients. */
static PyObject *wrap_grads(struct backward *b)
{
	PyObject *tuple = PyTuple_New(b->ninputs);

	for (Py_ssize_t i = 0; i < b->ninputs; i++) {
		PyObject *o = b->grads[i] ? wrap_result(b->grads[i]) : Py_NewRef(Py_None);

		if (tuple && o)
			PyTuple_SetItem(tuple, i, o);
		else
			Py_XDECREF(o);
		if (!o)
			Py_CLEAR(tuple);
	}
	return tuple;
}

/* _backward(outputs, grad_outputs, inputs, flags) */
static PyObject *m_backward(PyObject *module, PyObject *args)
{
	PyObject *outputs, *output_grads, *inputs, *res = NULL;
	struct backward b = { NULL };
	unsigned flags;

	if (!PyArg_ParseTuple(args, "OOOI", &outputs, &output_grads, &inputs, &flags))
		return NULL;
	if (!backward_args(&b, outputs, output_grads, inputs)) {
		if (backward_unlocked(&b, flags) < 0)
			raise_graph_error();
		else
			res = b.inputs ? wrap_grads(&b) : Py_NewRef(Py_None);
	}
	backward_free(&b);
	return res;
}

static PyObject *backward_with_arguments(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
					 PyObject *kwnames)
{
	PyObject *module = PyImport_ImportModule("devtensor.autograd"), *fn = NULL, *res = NULL;
	Py_ssize_t n = nargs + (kwnames ? PyTuple_Size(kwnames) : 0);

	if (module)
		fn = PyObject_GetAttrString(module, "_tensor_backward");
	if (fn) {
		PyObject *positional = PyTuple_New(nargs + 1), *keywords = PyDict_New();

		if (positional && keywords) {
			PyTuple_SetItem(positional, 0, Py_NewRef(self));
			for (Py_ssize_t i = 0; i < nargs; i++)
				PyTuple_SetItem(positional, i + 1, Py_NewRef(args[i]));
			for (Py_ssize_t i = nargs; i < n; i++)
				PyDict_SetItem(keywords, PyTuple_GetItem(kwnames, i - nargs),
					       args[i]);
			res = PyObject_Call(fn, positional, keywords);
		}
		Py_XDECREF(positional);
		Py_XDECREF(keywords);
	}
	Py_XDECREF(fn);
	Py_XDECREF(module);
	return res;
}

static PyObject *t_backward(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			    PyObject *kwnames)
{
	tensor *t = tensor_of(self);
	tensor_node *held;
	PyThreadState *state;
	int err;

	if (nargs || kwnames)
		return backward_with_arguments(self, args, nargs, kwnames);
	held = tensor_node_retain(tensor_grad_fn(t));
	hold(t);
	state = PyEval_SaveThread();
	err = tensor_backward(t);
	PyEval_RestoreThread(state);
	tensor_release(t);
	tensor_node_release(held);
	return err < 0 ? raise_graph_error() : Py_NewRef(Py_None);
}

/* ---- modes ---- */

static PyObject *m_is_grad_enabled(PyObject *module, PyObject *unused)
{
	return PyBool_FromLong(tensor_is_grad_enabled());
}

static PyObject *m_is_inference_mode_enabled(PyObject *module, PyObject *unused)
{
	return PyBool_FromLong(tensor_is_inference_mode_enabled());
}

static PyObject *m_is_anomaly_enabled(PyObject *module, PyObject *unused)
{
	return PyBool_FromLong(tensor_is_anomaly_mode_enabled());
}

static PyObject *m_set_grad_enabled(PyObject *module, PyObject *mode)
{
	int enabled = PyObject_IsTrue(mode);

	return enabled < 0 ? NULL : PyBool_FromLong(tensor_set_grad_enabled(enabled));
}

/* _mode_enter(kind, enabled): the state before as an int. */
static PyObject *m_mode_enter(PyObject *module, PyObject *args)
{
	struct tensor_grad_guard g;
	const char *kind;
	int enabled;

	if (!PyArg_ParseTuple(args, "sp", &kind, &enabled))
		return NULL;
	if (!strcmp(kind, "grad"))
		g = tensor_grad_enter(enabled);
	else if (!strcmp(kind, "inference"))
		g = tensor_inference_enter(enabled);
	else if (!strcmp(kind, "anomaly"))
		g = tensor_anomaly_enter(enabled);
	else
		return PyErr_Format(PyExc_ValueError, "there is no mode %s", kind);
	return PyLong_FromLong(g.grad | g.inference << 1 | g.anomaly << 2 | g.excluded << 3);
}

static PyObject *m_mode_leave(PyObject *module, PyObject *state)
{
	long bits = PyLong_AsLong(state);
	struct tensor_grad_guard g = { bits & 1, bits & 2, bits & 4, bits & 8 };

	if (bits == -1 && PyErr_Occurred())
		return NULL;
	tensor_grad_leave(&g);
	Py_RETURN_NONE;
}

static PyObject *t_is_inference(PyObject *self, PyObject *unused)
{
	return PyBool_FromLong(tensor_is_inference(tensor_of(self)));
}

static PyMethodDef functions[] = {
	{ "_backward", m_backward, METH_VARARGS, NULL },
	{ "is_grad_enabled", m_is_grad_enabled, METH_NOARGS,
	  "is_grad_enabled()\n--\n\nTrue if operators of this thread are recorded." },
	{ "is_inference_mode_enabled", m_is_inference_mode_enabled, METH_NOARGS,
	  "is_inference_mode_enabled()\n--\n\nTrue within inference_mode." },
	{ "is_anomaly_enabled", m_is_anomaly_enabled, METH_NOARGS,
	  "is_anomaly_enabled()\n--\n\nTrue within detect_anomaly." },
	{ "_set_grad_enabled", m_set_grad_enabled, METH_O, NULL },
	{ "_mode_enter", m_mode_enter, METH_VARARGS, NULL },
	{ "_mode_leave", m_mode_leave, METH_O, NULL },
	{ NULL },
};

static PyMethodDef methods[] = {
	{ "backward", (PyCFunction)(void (*)(void))t_backward, METH_FASTCALL | METH_KEYWORDS,
	  "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
	  "Compute the gradients of the leaves, or of inputs, and add them to their grad. gradient has the shape "
	  "of the tensor; it may be left out for one element. Frees the graph unless retain_graph, "
	  "whose default is create_graph." },
	{ "is_inference", t_is_inference, METH_NOARGS,
	  "is_inference($self, /)\n--\n\nTrue for a tensor that was made in inference mode." },
	{ NULL },
};

int add_autograd(PyObject *module)
{
	return PyModule_AddFunctions(module, functions) < 0 ? -1 :
							      add_methods(tensor_type, methods);
}
