// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Functions below devtensor.nn: conversion of parameters, and files of named tensors. */
#include "internal.h"

/* The object keeps its identity, so that a module, its users and tied parameters see the new tensor. */
static PyObject *replace_tensor(PyObject *module, PyObject *args)
{
	PyObject *o, *with;
	tensor *t, *old;
	int grad;

	if (!PyArg_ParseTuple(args, "OO", &o, &with))
		return NULL;
	if (!is_tensor(o) || !is_tensor(with) || is_exact_tensor(o))
		return PyErr_Format(PyExc_TypeError, "expected a parameter and a tensor");
	old = tensor_of(o);
	grad = tensor_requires_grad(old);
	/* A tensor of its own: the given one has an object already. */
	t = tensor_detach(tensor_of(with));
	if (!t)
		return raise_error();
	t = tensor_keep(t);
	if (grad && tensor_set_requires_grad(t, true) < 0) {
		tensor_release(t);
		return raise_error();
	}
	tensor_set_binding(old, NULL);
	tensor_set_binding(t, o);
	((PyTensor *)o)->t = t;
	tensor_release(old);
	Py_RETURN_NONE;
}

/* ---- files ---- */

static PyObject *path_bytes(PyObject *path)
{
	PyObject *bytes;

	return PyUnicode_FSConverter(path, &bytes) ? bytes : NULL;
}

static int metadata_of(struct arena *arena, PyObject *dict, struct tensor_metadata **list,
		       Py_ssize_t *n)
{
	PyObject *items = PyDict_Check(dict) ? PyDict_Items(dict) : NULL;
	tensor_value key, value;
	int ok = 1;

	if (!items || arena_keep(arena, items) < 0) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_TypeError, "metadata: expected a dict, got %R",
				     Py_TYPE(dict));
		return -1;
	}
	*n = PyList_Size(items);
	*list = arena_alloc(arena, (size_t)(*n + 1) * sizeof(**list));
	if (!*list)
		return -1;
	for (Py_ssize_t i = 0; ok > 0 && i < *n; i++) {
		PyObject *item = PyList_GetItem(items, i);

		ok = convert(arena, TENSOR_ARG_STRING, PyTuple_GetItem(item, 0), &key);
		if (ok > 0)
			ok = convert(arena, TENSOR_ARG_STRING, PyTuple_GetItem(item, 1), &value);
		if (ok > 0)
			(*list)[i] = (struct tensor_metadata){ key.s, value.s };
	}
	if (!ok)
		PyErr_SetString(PyExc_TypeError, "metadata: keys and values are strings");
	return ok > 0 ? 0 : -1;
}

static PyObject *save_named(PyObject *module, PyObject *args)
{
	PyObject *path, *tensors, *metadata, *bytes, *res = NULL;
	struct tensor_metadata *list;
	struct tensor_named *named;
	struct arena arena;
	Py_ssize_t n, nlist;
	int err;

	if (!PyArg_ParseTuple(args, "OOO", &path, &tensors, &metadata))
		return NULL;
	bytes = path_bytes(path);
	if (!bytes)
		return NULL;
	arena_init(&arena);
	if (named_tensors(&arena, tensors, &named, &n) == 0 &&
	    metadata_of(&arena, metadata, &list, &nlist) == 0) {
		Py_BEGIN_ALLOW_THREADS
			err = tensor_save_safetensors(PyBytes_AsString(bytes), named, n, list, nlist);
		Py_END_ALLOW_THREADS
		res = err < 0 ? raise_error() : Py_NewRef(Py_None);
	}
	arena_free(&arena);
	Py_DECREF(bytes);
	return res;
}

/* Sets dict[key] to a value, whose reference is taken; NULL is an exception. */
static int set_item(PyObject *dict, const char *key, PyObject *value)
{
	int err = value ? PyDict_SetItemString(dict, key, value) : -1;

	Py_XDECREF(value);
	return err;
}

static int load_all(tensor_archive *a, PyObject *tensors, PyObject *metadata)
{
	for (int64_t i = 0; i < tensor_archive_count(a); i++) {
		PyThreadState *state = PyEval_SaveThread();
		tensor *t = tensor_archive_at(a, i);

		PyEval_RestoreThread(state);
		if (set_item(tensors, tensor_archive_name(a, i), wrap_result(t)) < 0)
			return -1;
	}
	for (int64_t i = 0; i < tensor_archive_metadata_count(a); i++) {
		const struct tensor_metadata *m = tensor_archive_metadata(a, i);

		if (set_item(metadata, m->key, PyUnicode_FromString(m->value)) < 0)
			return -1;
	}
	return 0;
}

static PyObject *load_named(PyObject *module, PyObject *path)
{
	PyObject *bytes = path_bytes(path), *tensors, *metadata, *res = NULL;
	tensor_archive *a;

	if (!bytes)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
		a = tensor_open_safetensors(PyBytes_AsString(bytes), NULL);
	Py_END_ALLOW_THREADS
	Py_DECREF(bytes);
	if (!a)
		return raise_error();
	tensors = PyDict_New();
	metadata = PyDict_New();
	if (tensors && metadata && load_all(a, tensors, metadata) == 0)
		res = PyTuple_Pack(2, tensors, metadata);
	tensor_archive_close(a);
	Py_XDECREF(tensors);
	Py_XDECREF(metadata);
	return res;
}

static PyMethodDef functions[] = {
	{ "_replace_tensor", replace_tensor, METH_VARARGS,
	  "_replace_tensor(parameter, tensor, /)\n--\n\n"
	  "Let a parameter stand for the memory of a tensor; it keeps requires_grad." },
	{ "_save_named", save_named, METH_VARARGS,
	  "_save_named(path, tensors, metadata, /)\n--\n\nWrite a safetensors file." },
	{ "_load_named", load_named, METH_O,
	  "_load_named(path, /)\n--\n\nThe tensors and the metadata of a safetensors file: dicts." },
	{ NULL },
};

int add_nn(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
