// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Memory that processes share: buffers by descriptor, and counters of the process. */
#include "internal.h"

#include <errno.h>

/* (fd, bytes from the start of the buffer to the storage's first byte): for multiprocessing. */
static PyObject *buffer_fd(PyObject *module, PyObject *args)
{
	unsigned rights = TENSOR_BUFFER_READ;
	PyObject *t;
	int fd, writable;

	if (!PyArg_ParseTuple(args, "O!p", tensor_type, &t, &writable))
		return NULL;
	if (writable)
		rights |= TENSOR_BUFFER_WRITE;
	Py_BEGIN_ALLOW_THREADS fd = tensor_buffer_fd(tensor_of(t), rights);
	Py_END_ALLOW_THREADS return fd < 0 ? raise_error() : PyLong_FromLong(fd);
}

/* dtype None: as the buffer's descriptor says; shape None: all elements after the offset. */
static PyObject *from_buffer_fd(PyObject *module, PyObject *args)
{
	PyObject *dtype, *shape, *res = NULL;
	tensor_ints sizes = TENSOR_NO_INTS;
	int fd, d = TENSOR_DTYPE_NONE;
	long long offset;
	struct arena arena;
	tensor *t;

	if (!PyArg_ParseTuple(args, "iOOL", &fd, &dtype, &shape, &offset))
		return NULL;
	if (dtype != Py_None && as_dtype(dtype, &d) <= 0)
		return PyErr_Occurred() ? NULL :
					  PyErr_Format(PyExc_TypeError, "%R is no dtype", dtype);
	arena_init(&arena);
	if (shape != Py_None && convert_ints(&arena, shape, &sizes) <= 0) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_TypeError, "%R is no shape", shape);
		goto free_arena;
	}
	Py_BEGIN_ALLOW_THREADS t = tensor_from_buffer_fd(fd, d, sizes, offset);
	Py_END_ALLOW_THREADS res = wrap_result(t);
free_arena:
	arena_free(&arena);
	return res;
}

static PyObject *share_memory(PyObject *module, PyObject *arg)
{
	int err;

	if (!is_tensor(arg))
		return PyErr_Format(PyExc_TypeError, "share_memory: %R is no tensor", Py_TYPE(arg));
	Py_BEGIN_ALLOW_THREADS err = tensor_share_memory(tensor_of(arg));
	Py_END_ALLOW_THREADS return err < 0 ? raise_error() : Py_NewRef(arg);
}

/* A dict of the buffer's description, None for a tensor without one. */
static PyObject *buffer_info(PyObject *module, PyObject *arg)
{
	struct tensor_buffer_info info = { .size = sizeof(info) };

	if (!is_tensor(arg))
		return PyErr_Format(PyExc_TypeError, "buffer_info: %R is no tensor", Py_TYPE(arg));
	if (tensor_buffer_info(tensor_of(arg), &info) < 0)
		return tensor_last_error()->code == EINVAL ? Py_NewRef(Py_None) : raise_error();
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:O,s:O}", "bytes", (unsigned long long)info.bytes,
			     "dev", (unsigned long long)info.dev, "ino",
			     (unsigned long long)info.ino, "generation",
			     (unsigned long long)info.generation, "sealed",
			     info.seals & TENSOR_BUFFER_SEALED_WRITE ? Py_True : Py_False,
			     "readonly",
			     info.state & TENSOR_BUFFER_STATE_RDONLY ? Py_True : Py_False);
}

/* Counters of this process's memory: a dict. */
static PyObject *cache_stats(PyObject *module, PyObject *unused)
{
	struct tensor_cache_stats s;
	struct tensor_live_counts live;

	tensor_cache_stats(&s);
	tensor_live_counts(&live);
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "used",
			     (unsigned long long)s.used, "cached", (unsigned long long)s.cached,
			     "buffers", (unsigned long long)s.buffers, "hits",
			     (unsigned long long)s.hits, "misses", (unsigned long long)s.misses,
			     "arenas", (unsigned long long)s.arenas, "blocks",
			     (unsigned long long)s.blocks, "tensors",
			     (unsigned long long)live.tensors, "storages",
			     (unsigned long long)live.storages);
}

static PyObject *provider_name(PyObject *module, PyObject *unused)
{
	return PyUnicode_FromString(tensor_provider_name());
}

static PyObject *set_label(PyObject *module, PyObject *args)
{
	const char *label;
	PyObject *t;

	if (!PyArg_ParseTuple(args, "O!s", tensor_type, &t, &label))
		return NULL;
	return tensor_set_label(tensor_of(t), label) < 0 ? raise_error() : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
	{ "_buffer_fd", buffer_fd, METH_VARARGS,
	  "_buffer_fd(tensor, writable, /)\n--\n\nA new descriptor of the tensor's buffer." },
	{ "_from_buffer_fd", from_buffer_fd, METH_VARARGS,
	  "_from_buffer_fd(fd, dtype, shape, offset, /)\n--\n\nA tensor on the memory of a descriptor." },
	{ "_share_memory", share_memory, METH_O,
	  "_share_memory(tensor, /)\n--\n\nMove the storage to a buffer that processes can share." },
	{ "_buffer_info", buffer_info, METH_O,
	  "_buffer_info(tensor, /)\n--\n\nThe description of the tensor's buffer, or None." },
	{ "_set_label", set_label, METH_VARARGS,
	  "_set_label(tensor, label, /)\n--\n\nSet the label of the buffer, which tensorstat shows." },
	{ "cache_stats", cache_stats, METH_NOARGS,
	  "cache_stats()\n--\n\nCounters of the process's memory for tensors: a dict." },
	{ "provider_name", provider_name, METH_NOARGS,
	  "provider_name()\n--\n\n\"device\" (/dev/tensor) or \"memfd\"." },
	{ NULL },
};

int add_shared(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
