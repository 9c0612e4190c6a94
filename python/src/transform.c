// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The parts of devtensor.func, autograd.forward_ad, gradcheck and checkpoint in C: levels of vmap, dual tensors, calls
 * of Python functions by the library. */
#include "internal.h"

#include <errno.h>

static int not_a_tensor(PyObject *o)
{
	PyErr_Format(PyExc_TypeError, "a tensor is needed, got %R", Py_TYPE(o));
	return -1;
}

/* ---- vmap ---- */

#define LEVEL "devtensor.vmap_level"
#define LEFT  "devtensor.vmap_level, left"

static PyObject *m_vmap_enter(PyObject *module, PyObject *args)
{
	struct tensor_vmap_level *level;
	PyObject *capsule;
	long long size;
	int randomness;

	if (!PyArg_ParseTuple(args, "Li", &size, &randomness))
		return NULL;
	level = tensor_vmap_enter(size, randomness);
	if (!level)
		return raise_error();
	capsule = PyCapsule_New(level, LEVEL, NULL);
	if (!capsule)
		tensor_vmap_leave(level);
	return capsule;
}

static PyObject *m_vmap_leave(PyObject *module, PyObject *capsule)
{
	struct tensor_vmap_level *level = PyCapsule_GetPointer(capsule, LEVEL);

	if (!level || PyCapsule_SetName(capsule, LEFT) < 0)
		return NULL;
	tensor_vmap_leave(level);
	Py_RETURN_NONE;
}

static PyObject *vmap_part(PyObject *args,
			   tensor *(*fn)(struct tensor_vmap_level *level, tensor *t, int64_t dim))
{
	struct tensor_vmap_level *level;
	PyObject *capsule, *t;
	long long dim;

	if (!PyArg_ParseTuple(args, "OOL", &capsule, &t, &dim))
		return NULL;
	level = PyCapsule_GetPointer(capsule, LEVEL);
	if (!level || (!is_tensor(t) && not_a_tensor(t) < 0))
		return NULL;
	return wrap_result(fn(level, tensor_of(t), dim));
}

static PyObject *m_vmap_samples(PyObject *module, PyObject *args)
{
	return vmap_part(args, tensor_vmap_samples);
}

static PyObject *m_vmap_batch(PyObject *module, PyObject *args)
{
	return vmap_part(args, tensor_vmap_batch);
}

static PyObject *m_vmap_has_samples(PyObject *module, PyObject *args)
{
	struct tensor_vmap_level *level;
	PyObject *capsule, *t;

	if (!PyArg_ParseTuple(args, "OO", &capsule, &t))
		return NULL;
	level = PyCapsule_GetPointer(capsule, LEVEL);
	if (!level)
		return NULL;
	return PyBool_FromLong(is_tensor(t) && tensor_vmap_has_samples(level, tensor_of(t)));
}

static PyObject *m_vmap_suspend(PyObject *module, PyObject *capsule)
{
	struct tensor_vmap_level *level = PyCapsule_GetPointer(capsule, LEVEL);

	return level ? PyBool_FromLong(tensor_vmap_suspend(level)) : NULL;
}

static PyObject *m_vmap_resume(PyObject *module, PyObject *capsule)
{
	struct tensor_vmap_level *level = PyCapsule_GetPointer(capsule, LEVEL);

	if (!level)
		return NULL;
	tensor_vmap_resume(level);
	Py_RETURN_NONE;
}

static PyObject *m_is_batched(PyObject *module, PyObject *t)
{
	return PyBool_FromLong(is_tensor(t) && tensor_is_batched(tensor_of(t)));
}

/* ---- forward mode ---- */

static PyObject *m_make_dual(PyObject *module, PyObject *args)
{
	PyObject *primal, *tangent;

	if (!PyArg_ParseTuple(args, "OO", &primal, &tangent))
		return NULL;
	if ((!is_tensor(primal) && not_a_tensor(primal) < 0) ||
	    (!is_tensor(tangent) && not_a_tensor(tangent) < 0))
		return NULL;
	return wrap_result(tensor_make_dual(tensor_of(primal), tensor_of(tangent)));
}

static PyObject *m_primal(PyObject *module, PyObject *t)
{
	if (!is_tensor(t) && not_a_tensor(t) < 0)
		return NULL;
	return wrap_result(tensor_primal(tensor_of(t)));
}

static PyObject *m_tangent(PyObject *module, PyObject *t)
{
	if (!is_tensor(t) && not_a_tensor(t) < 0)
		return NULL;
	return wrap_borrowed(tensor_tangent(tensor_of(t)));
}

static PyObject *m_alias(PyObject *module, PyObject *t)
{
	if (!is_tensor(t) && not_a_tensor(t) < 0)
		return NULL;
	return wrap_result(tensor_alias(tensor_of(t)));
}

/* ---- leaves of a graph ---- */

static int add_node_id(PyObject *seen, tensor_node *n, bool *added)
{
	PyObject *id = PyLong_FromVoidPtr(n);
	int has = id ? PySet_Contains(seen, id) : -1;

	*added = !has;
	if (!has)
		has = PySet_Add(seen, id);
	Py_XDECREF(id);
	return has < 0 ? -1 : 0;
}

struct stack {
	tensor_node **n;
	size_t len, cap;
};

static int push(struct stack *s, PyObject *seen, tensor_node *n)
{
	bool added = false;

	if (!n || add_node_id(seen, n, &added) < 0)
		return n ? -1 : 0;
	if (!added)
		return 0;
	if (s->len == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		tensor_node **grown = PyMem_Realloc(s->n, cap * sizeof(*grown));

		if (!grown) {
			PyErr_NoMemory();
			return -1;
		}
		s->n = grown;
		s->cap = cap;
	}
	s->n[s->len++] = n;
	return 0;
}

/* 1 if a leaf was found that is not in seen, -1 with an exception. */
static int search(struct stack *s, PyObject *seen)
{
	while (s->len) {
		tensor_node *n = s->n[--s->len];

		if (tensor_node_leaf(n))
			return 1;
		for (int i = 0; i < tensor_node_edges(n); i++)
			if (push(s, seen, tensor_node_edge(n, i, NULL)) < 0)
				return -1;
	}
	return 0;
}

/* _has_other_leaves(outputs, leaves): whether the graph of the outputs has a leaf that is not in the tuple. */
static PyObject *m_has_other_leaves(PyObject *module, PyObject *args)
{
	PyObject *outputs, *leaves, *seen, *o;
	struct stack s = { NULL };
	int res = 0;
	bool added;

	if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &outputs, &PyTuple_Type, &leaves))
		return NULL;
	seen = PySet_New(NULL);
	if (!seen)
		return NULL;
	for (Py_ssize_t i = 0; !res && i < PyTuple_Size(leaves); i++) {
		o = PyTuple_GetItem(leaves, i);
		if (is_tensor(o) && tensor_requires_grad(tensor_of(o)))
			res = add_node_id(seen, tensor_grad_fn(tensor_of(o)), &added);
	}
	for (Py_ssize_t i = 0; !res && i < PyTuple_Size(outputs); i++) {
		o = PyTuple_GetItem(outputs, i);
		if (is_tensor(o) && tensor_requires_grad(tensor_of(o)))
			res = push(&s, seen, tensor_grad_fn(tensor_of(o)));
	}
	if (!res)
		res = search(&s, seen);
	PyMem_Free(s.n);
	Py_DECREF(seen);
	return res < 0 ? NULL : PyBool_FromLong(res);
}

/* ---- gradcheck ---- */

struct checked {
	PyObject *fn;
	int ninputs;
};

static tensor *checked_function(tensor *const *inputs, void *ctx)
{
	struct checked *c = ctx;
	PyGILState_STATE state;
	PyObject *args, *res = NULL;
	tensor *t = NULL;

	if (!enter_python(&state))
		return NULL;
	args = wrap_list(inputs, c->ninputs);
	if (args)
		res = PyObject_Call(c->fn, args, NULL);
	if (res && is_tensor(res))
		t = give_to_scope(res);
	else if (res)
		PyErr_Format(PyExc_TypeError, "gradcheck: the function must return tensors, got %R",
			     Py_TYPE(res));
	Py_XDECREF(res);
	Py_XDECREF(args);
	if (!t)
		error_from_python("gradcheck");
	PyGILState_Release(state);
	return t;
}

static int run_gradcheck(const char *kind, struct checked *c, tensor_list inputs, double eps,
			 double atol, double rtol)
{
	PyThreadState *state;
	int err;

	begin_call();
	state = PyEval_SaveThread();
	if (!strcmp(kind, "forward"))
		err = tensor_forwardcheck(checked_function, c, inputs, atol, rtol);
	else if (!strcmp(kind, "second"))
		err = tensor_gradgradcheck(checked_function, c, inputs, eps, atol, rtol);
	else
		err = tensor_gradcheck(checked_function, c, inputs, eps, atol, rtol);
	PyEval_RestoreThread(state);
	end_call();
	return err;
}

/* _gradcheck(kind, fn, inputs, eps, atol, rtol): None, or the text of the difference. */
static PyObject *m_gradcheck(PyObject *module, PyObject *args)
{
	const char *kind;
	double eps, atol, rtol;
	PyObject *fn, *tuple;
	struct checked c;
	tensor **inputs;
	int err;

	if (!PyArg_ParseTuple(args, "sOO!ddd", &kind, &fn, &PyTuple_Type, &tuple, &eps, &atol,
			      &rtol))
		return NULL;
	c = (struct checked){ fn, (int)PyTuple_Size(tuple) };
	inputs = PyMem_Calloc(c.ninputs + 1, sizeof(*inputs));
	if (!inputs)
		return PyErr_NoMemory();
	for (int i = 0; i < c.ninputs; i++) {
		PyObject *t = PyTuple_GetItem(tuple, i);

		if (!is_tensor(t)) {
			not_a_tensor(t);
			PyMem_Free(inputs);
			return NULL;
		}
		inputs[i] = tensor_of(t);
	}
	err = run_gradcheck(kind, &c, (tensor_list){ inputs, c.ninputs }, eps, atol, rtol);
	PyMem_Free(inputs);
	if (err == -EDOM && !tensor_last_error()->binding)
		return PyUnicode_FromString(tensor_last_error()->text);
	return err < 0 ? raise_graph_error() : Py_NewRef(Py_None);
}

/* ---- checkpoint ---- */

/* The result of the first run goes to the caller in Python, with its history; the library gets a tensor in its place. */
static int checkpointed(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs,
			void *fn)
{
	PyGILState_STATE state;
	PyObject *args, *res = NULL;
	bool failed;
	int err = 0;

	if (!enter_python(&state))
		return -tensor_last_error()->code;
	args = wrap_list(inputs, ninputs);
	if (args)
		res = PyObject_Call(fn, args, NULL);
	failed = !res;
	Py_XDECREF(res);
	Py_XDECREF(args);
	if (failed)
		err = error_from_python("checkpoint");
	outputs[0] = err ? NULL : tensor_empty(TENSOR_SHAPE(0), (tensor_options){ 0 });
	PyGILState_Release(state);
	return err;
}

/* _checkpoint(fn, tensors): fn(*tensors) runs now, and again in backward. */
static PyObject *m_checkpoint(PyObject *module, PyObject *args)
{
	PyObject *fn, *tuple;
	tensor **inputs, *output;
	Py_ssize_t n;
	int err;

	if (!PyArg_ParseTuple(args, "OO!", &fn, &PyTuple_Type, &tuple))
		return NULL;
	n = PyTuple_Size(tuple);
	inputs = PyMem_Calloc(n + 1, sizeof(*inputs));
	if (!inputs)
		return PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *t = PyTuple_GetItem(tuple, i);

		if (!is_tensor(t)) {
			not_a_tensor(t);
			PyMem_Free(inputs);
			return NULL;
		}
		inputs[i] = tensor_of(t);
	}
	err = tensor_checkpoint(checkpointed, Py_NewRef(fn), release_object,
				(tensor_list){ inputs, n }, &output, 1);
	PyMem_Free(inputs);
	if (err < 0)
		return raise_graph_error();
	/* Outside of a scope it is this function's. */
	args = wrap_result(output);
	Py_XDECREF(args);
	return args ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
	{ "_vmap_enter", m_vmap_enter, METH_VARARGS, NULL },
	{ "_vmap_leave", m_vmap_leave, METH_O, NULL },
	{ "_vmap_samples", m_vmap_samples, METH_VARARGS, NULL },
	{ "_vmap_batch", m_vmap_batch, METH_VARARGS, NULL },
	{ "_vmap_has_samples", m_vmap_has_samples, METH_VARARGS, NULL },
	{ "_vmap_suspend", m_vmap_suspend, METH_O, NULL },
	{ "_vmap_resume", m_vmap_resume, METH_O, NULL },
	{ "_is_batched", m_is_batched, METH_O, NULL },
	{ "_make_dual", m_make_dual, METH_VARARGS, NULL },
	{ "_primal", m_primal, METH_O, NULL },
	{ "_tangent", m_tangent, METH_O, NULL },
	{ "_alias", m_alias, METH_O, NULL },
	{ "_has_other_leaves", m_has_other_leaves, METH_VARARGS, NULL },
	{ "_gradcheck", m_gradcheck, METH_VARARGS, NULL },
	{ "_checkpoint", m_checkpoint, METH_VARARGS, NULL },
	{ NULL },
};

int add_transform(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
