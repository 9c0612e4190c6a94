// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Hooks in Python, and functions that pack saved tensors. The library owns the functions; a handle does not keep them.
 * Backward calls them on whichever thread runs the node, with a scope open.
 */
#include "internal.h"

/* ---- handles ---- */

typedef struct {
	PyObject_HEAD tensor_hook *hook; /* NULL after remove() */
} PyHandle;

static PyTypeObject *handle_type;

static void handle_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	tensor_hook_release(((PyHandle *)self)->hook);
	type_free(type, self);
	Py_DECREF(type);
}

static PyObject *handle_remove(PyObject *self, PyObject *unused)
{
	tensor_hook *hook = ((PyHandle *)self)->hook;

	((PyHandle *)self)->hook = NULL;
	tensor_hook_remove(hook);
	Py_RETURN_NONE;
}

static PyObject *handle_enter(PyObject *self, PyObject *unused)
{
	return Py_NewRef(self);
}

static PyObject *handle_exit(PyObject *self, PyObject *args)
{
	return handle_remove(self, NULL);
}

static PyMethodDef handle_methods[] = {
	{ "remove", handle_remove, METH_NOARGS,
	  "remove($self, /)\n--\n\nRemove the hook; again: no effect." },
	{ "__enter__", handle_enter, METH_NOARGS, NULL },
	{ "__exit__", handle_exit, METH_VARARGS, NULL },
	{ NULL },
};

static PyType_Slot handle_slots[] = {
	{ Py_tp_doc, "A registered hook, which remove() removes, or the end of a with block." },
	{ Py_tp_dealloc, handle_dealloc },
	{ Py_tp_methods, handle_methods },
	{ 0, NULL },
};

static PyType_Spec handle_spec = { "devtensor.utils.hooks.RemovableHandle", sizeof(PyHandle), 0,
				   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				   handle_slots };

static PyHandle *new_handle(PyObject *fn)
{
	PyHandle *h;

	if (!PyCallable_Check(fn)) {
		PyErr_Format(PyExc_TypeError, "a hook must be callable, got %R", Py_TYPE(fn));
		return NULL;
	}
	h = (PyHandle *)type_alloc(handle_type);
	if (h) {
		h->hook = NULL;
		Py_INCREF(fn); /* for the library */
	}
	return h;
}

/* After the registration, which takes the reference to fn if it succeeds. */
static PyObject *registered(PyHandle *h, PyObject *fn, int err)
{
	if (!err)
		return (PyObject *)h;
	Py_DECREF(fn);
	Py_DECREF(h);
	return raise_graph_error();
}

/* ---- hooks of tensors ---- */

static tensor *gradient_hook(tensor *grad, void *fn)
{
	PyObject *g, *res = NULL;
	PyGILState_STATE state;
	tensor *t = NULL;

	if (!enter_python(&state))
		return NULL;
	g = wrap_borrowed(grad);
	if (g)
		res = PyObject_CallFunctionObjArgs(fn, g, NULL);
	if (res == Py_None)
		t = grad;
	else if (res && is_tensor(res))
		t = give_to_scope(res);
	else if (res)
		PyErr_Format(PyExc_TypeError, "a hook must return None or a tensor, got %R",
			     Py_TYPE(res));
	Py_XDECREF(res);
	Py_XDECREF(g);
	if (!t)
		error_from_python("backward");
	PyGILState_Release(state);
	return t;
}

static PyObject *t_register_hook(PyObject *self, PyObject *fn)
{
	PyHandle *h = new_handle(fn);

	if (!h)
		return NULL;
	track(self);
	return registered(h, fn,
			  tensor_register_hook(tensor_of(self), gradient_hook, fn, release_object,
					       &h->hook));
}

static int accumulated_hook(tensor *leaf, void *fn)
{
	PyObject *o, *res = NULL;
	PyGILState_STATE state;
	bool done;
	int err = 0;

	if (!enter_python(&state))
		return -tensor_last_error()->code;
	o = wrap_borrowed(leaf);
	if (o)
		res = PyObject_CallFunctionObjArgs(fn, o, NULL);
	if (res && res != Py_None)
		PyErr_Format(PyExc_TypeError,
			     "a post-accumulate-grad hook must return None, got %R", Py_TYPE(res));
	done = res == Py_None;
	Py_XDECREF(res);
	Py_XDECREF(o);
	if (!done)
		err = error_from_python("backward");
	PyGILState_Release(state);
	return err;
}

static PyObject *t_register_post_accumulate(PyObject *self, PyObject *fn)
{
	PyHandle *h = new_handle(fn);

	if (!h)
		return NULL;
	track(self);
	return registered(h, fn,
			  tensor_register_post_accumulate_grad_hook(
				  tensor_of(self), accumulated_hook, fn, release_object, &h->hook));
}

/* ---- hooks of nodes ---- */

/* Takes the gradients that a hook returned: None, or a tuple of n tensors and None. */
static int take_grads(PyObject *res, tensor **grads, Py_ssize_t n)
{
	if (res == Py_None)
		return 0;
	if (!PyTuple_Check(res)) {
		PyErr_Format(PyExc_TypeError,
			     "a hook of a node must return None or a tuple, got %R", Py_TYPE(res));
		return -1;
	}
	if (PyTuple_Size(res) != n) {
		PyErr_Format(PyExc_TypeError,
			     "a hook of a node returned %zd gradients, expected %zd",
			     PyTuple_Size(res), n);
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *o = PyTuple_GetItem(res, i);

		if (o != Py_None && !is_tensor(o)) {
			PyErr_Format(
				PyExc_TypeError,
				"a hook of a node returned %R where a tensor or None is expected",
				Py_TYPE(o));
			return -1;
		}
		grads[i] = o == Py_None ? NULL : give_to_scope(o);
	}
	return 0;
}

static int call_node_hook(PyObject *fn, tensor **grads, int n, tensor *const *output_grads,
			  int noutputs)
{
	PyObject *first = wrap_list(grads, n), *second = NULL, *res = NULL;
	int err = -1;

	if (output_grads)
		second = wrap_list(output_grads, noutputs);
	if (first && (second || !output_grads))
		res = PyObject_CallFunctionObjArgs(fn, first, second, NULL);
	if (res)
		err = take_grads(res, grads, n);
	Py_XDECREF(res);
	Py_XDECREF(second);
	Py_XDECREF(first);
	return err ? error_from_python("backward") : 0;
}

static int node_hook(tensor **grads, int n, tensor *const *output_grads, int noutputs, void *fn)
{
	PyGILState_STATE state;
	int err;

	if (!enter_python(&state))
		return -tensor_last_error()->code;
	err = call_node_hook(fn, grads, n, output_grads, noutputs);
	PyGILState_Release(state);
	return err;
}

static int node_prehook(tensor **grads, int n, void *fn)
{
	return node_hook(grads, n, NULL, 0, fn);
}

PyObject *node_register_hook(PyObject *self, PyObject *fn)
{
	PyHandle *h = new_handle(fn);

	if (!h)
		return NULL;
	return registered(h, fn,
			  tensor_node_register_hook(node_of(self), node_hook, fn, release_object,
						    &h->hook));
}

PyObject *node_register_prehook(PyObject *self, PyObject *fn)
{
	PyHandle *h = new_handle(fn);

	if (!h)
		return NULL;
	return registered(h, fn,
			  tensor_node_register_prehook(node_of(self), node_prehook, fn,
						       release_object, &h->hook));
}

/* ---- saved tensors in another form ---- */

static void *pack(tensor *t, void *ctx)
{
	PyObject *o, *res = NULL;
	PyGILState_STATE state;

	if (!enter_python(&state))
		return NULL;
	o = wrap_borrowed(t);
	if (o)
		res = PyObject_CallFunctionObjArgs(PyTuple_GetItem(ctx, 0), o, NULL);
	Py_XDECREF(o);
	if (!res)
		error_from_python("saved_tensors_hooks");
	PyGILState_Release(state);
	return res;
}

static tensor *unpack(void *packed, void *ctx)
{
	PyGILState_STATE state;
	tensor *t = NULL;
	PyObject *res;

	if (!enter_python(&state))
		return NULL;
	res = PyObject_CallFunctionObjArgs(PyTuple_GetItem(ctx, 1), packed, NULL);
	if (res && is_tensor(res))
		t = give_to_scope(res);
	else if (res)
		PyErr_Format(PyExc_TypeError, "unpack must return a tensor, got %R", Py_TYPE(res));
	Py_XDECREF(res);
	if (!t)
		error_from_python("saved_tensors_hooks");
	PyGILState_Release(state);
	return t;
}

static void discard(void *packed, void *ctx)
{
	release_object(packed);
}

#define SCOPE "devtensor.saved_hooks"

static PyObject *m_saved_hooks_enter(PyObject *module, PyObject *args)
{
	struct tensor_saved_hooks hooks = { pack, unpack, discard, NULL, release_object };
	struct tensor_saved_hooks_guard guard;
	PyObject *p, *u, *capsule;

	if (!PyArg_ParseTuple(args, "OO", &p, &u))
		return NULL;
	if (!PyCallable_Check(p) || !PyCallable_Check(u))
		return PyErr_Format(PyExc_TypeError, "pack and unpack must be callable");
	hooks.ctx = Py_NewRef(args);
	guard = tensor_saved_hooks_enter(&hooks);
	if (!guard.scope) {
		Py_DECREF(args);
		return raise_error();
	}
	capsule = PyCapsule_New(guard.scope, SCOPE, NULL);
	if (!capsule)
		tensor_saved_hooks_leave(&guard);
	return capsule;
}

static PyObject *m_saved_hooks_leave(PyObject *module, PyObject *capsule)
{
	struct tensor_saved_hooks_guard guard = { PyCapsule_GetPointer(capsule, SCOPE) };

	if (!guard.scope)
		return NULL;
	tensor_saved_hooks_leave(&guard);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "_saved_hooks_enter", m_saved_hooks_enter, METH_VARARGS, NULL },
	{ "_saved_hooks_leave", m_saved_hooks_leave, METH_O, NULL },
	{ NULL },
};

static PyMethodDef methods[] = {
	{ "register_hook", t_register_hook, METH_O,
	  "register_hook($self, fn, /)\n--\n\n"
	  "Call fn(grad) with the gradient of the tensor before it is used. fn returns None, or the gradient to use. "
	  "Hooks run in order of registration. Returns a handle with remove()." },
	{ "register_post_accumulate_grad_hook", t_register_post_accumulate, METH_O,
	  "register_post_accumulate_grad_hook($self, fn, /)\n--\n\n"
	  "Call fn(tensor) after the gradient of the leaf was added to its grad. fn returns None. Returns a handle "
	  "with remove()." },
	{ NULL },
};

int add_hooks(PyObject *module)
{
	handle_type = (PyTypeObject *)PyType_FromSpec(&handle_spec);
	if (!handle_type ||
	    PyModule_AddObjectRef(module, "_RemovableHandle", (PyObject *)handle_type) < 0 ||
	    PyModule_AddFunctions(module, functions) < 0)
		return -1;
	return add_methods(tensor_type, methods);
}
