// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* from_dlpack(). */
#include "dlpack.h"

#include <tensor/cuda.h>

/* A capsule's tensor: from here on the tensor calls the deleter. */
static PyObject *consume(PyObject *capsule, int copy)
{
	bool versioned = PyCapsule_IsValid(capsule, dlpack_versioned);
	DLManagedTensorVersioned *m;
	tensor *t;

	if (!versioned && !PyCapsule_IsValid(capsule, dlpack_plain)) {
		if (!PyCapsule_IsValid(capsule, dlpack_versioned_used) &&
		    !PyCapsule_IsValid(capsule, dlpack_plain_used))
			return PyErr_Format(PyExc_TypeError, "%R is no capsule of DLPack", capsule);
		return PyErr_Format(PyExc_ValueError, "the capsule of DLPack has been consumed");
	}
	if (versioned) {
		m = PyCapsule_GetPointer(capsule, dlpack_versioned);
		if (m->version.major == 1 && m->flags & DLPACK_FLAG_BITMASK_IS_COPIED && !copy)
			return PyErr_Format(PyExc_BufferError,
					    "the producer copied, which copy=False forbids");
		t = tensor_from_dlpack(m);
	} else {
		t = tensor_from_dlpack_unversioned(PyCapsule_GetPointer(capsule, dlpack_plain));
	}
	if (!t)
		return dlpack_raise();
	PyCapsule_SetName(capsule, versioned ? dlpack_versioned_used : dlpack_plain_used);
	return wrap_result(t);
}

static int set_item(PyObject *dict, const char *key, PyObject *value)
{
	int res = value ? PyDict_SetItemString(dict, key, value) : -1;

	Py_XDECREF(value);
	return res;
}

/* Where the data of an object is, and how it is asked for. */
struct source {
	bool to_host;	  /* it is to be copied there */
	PyObject *stream; /* of a CUDA device, owned; NULL: the data is in host memory */
	int copy;	  /* -1: the producer decides */
};

/* Arguments of __dlpack__. The usual ones are made once. */
static PyObject *export_arguments(const struct source *s)
{
	static PyObject *usual;
	const bool is_usual = !s->to_host && !s->stream && s->copy < 0;
	PyObject *dict;

	if (usual && is_usual)
		return Py_NewRef(usual);
	dict = PyDict_New();
	if (!dict)
		return NULL;
	if (set_item(dict, "max_version",
		     Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION)) < 0 ||
	    (s->stream && PyDict_SetItemString(dict, "stream", s->stream) < 0) ||
	    (s->to_host && set_item(dict, "dl_device", Py_BuildValue("(ii)", kDLCPU, 0)) < 0) ||
	    (s->copy >= 0 && set_item(dict, "copy", PyBool_FromLong(s->copy)) < 0))
		Py_CLEAR(dict);
	if (dict && is_usual)
		usual = Py_NewRef(dict);
	return dict;
}

/* A producer of DLPack before 1.0, which takes no argument but a stream. */
static PyObject *request_old(PyObject *method, PyObject *args, const struct source *s)
{
	PyObject *kwargs = s->stream ? PyDict_New() : NULL, *capsule = NULL;

	if (s->stream && !kwargs)
		return NULL;
	if (!kwargs || PyDict_SetItemString(kwargs, "stream", s->stream) == 0)
		capsule = PyObject_Call(method, args, kwargs);
	Py_XDECREF(kwargs);
	return capsule;
}

/* Calls x.__dlpack__(). *copied: the producer knows the argument copy. */
static PyObject *request(PyObject *x, const struct source *s, bool *copied)
{
	PyObject *method = PyObject_GetAttrString(x, "__dlpack__"), *args, *kwargs, *capsule = NULL;

	args = method ? PyTuple_New(0) : NULL;
	kwargs = args ? export_arguments(s) : NULL;
	if (kwargs)
		capsule = PyObject_Call(method, args, kwargs);
	*copied = s->copy == 1;
	if (kwargs && !capsule && !s->to_host && PyErr_ExceptionMatches(PyExc_TypeError)) {
		PyErr_Clear();
		*copied = false;
		capsule = request_old(method, args, s);
	}
	Py_XDECREF(kwargs);
	Py_XDECREF(args);
	Py_XDECREF(method);
	return capsule;
}

/* The calling thread's stream on the device, as the protocol has it: 1 is the default stream. */
static PyObject *stream_number(long device)
{
	void *stream;

	tensor_clear_error();
	stream = tensor_cuda_current_stream((int)device);
	if (!stream && tensor_last_error()->code)
		return dlpack_raise();
	return stream ? PyLong_FromVoidPtr(stream) : PyLong_FromLong(1);
}

/* wanted: a device without type if the program has named none. 0, or -1 with an exception. */
static int find_source(PyObject *x, tensor_device wanted, struct source *s)
{
	PyObject *o = PyObject_CallMethod(x, "__dlpack_device__", NULL);
	long device[2];
	int res;

	res = o ? dlpack_pair(o, "the result of __dlpack_device__", device) : -1;
	Py_XDECREF(o);
	if (res < 0)
		return -1;
	if (device[0] == kDLCPU || device[0] == kDLCUDAHost || device[0] == kDLROCMHost)
		return 0;
	if (device[0] == kDLCUDA && wanted.type != TENSOR_CPU && tensor_cuda_is_available()) {
		s->stream = stream_number(device[1]);
		return s->stream ? 0 : -1;
	}
	s->to_host = true;
	if (wanted.type && s->copy)
		return 0;
	PyErr_Format(PyExc_BufferError,
		     "the data is on the device (%ld, %ld): device='cpu' copies it", device[0],
		     device[1]);
	return -1;
}

static PyObject *import_object(PyObject *x, tensor_device device, int copy)
{
	struct source s = { .copy = copy };
	PyObject *capsule = NULL, *imported, *res;
	bool copied = false;

	if (find_source(x, device, &s) == 0)
		capsule = request(x, &s, &copied);
	Py_XDECREF(s.stream);
	imported = capsule ? consume(capsule, copy) : NULL;
	Py_XDECREF(capsule);
	if (!imported || copy < 1 || copied)
		return imported;
	res = dlpack_copy_to(tensor_of(imported), tensor_get_device(tensor_of(imported)));
	Py_DECREF(imported);
	return res;
}

/* Moves the tensor to the device that the program has named, which copy=False forbids. */
static PyObject *moved(PyObject *o, tensor_device device, int copy)
{
	PyObject *res;

	if (!o || !device.type || same_device(device, tensor_get_device(tensor_of(o))))
		return o;
	if (copy)
		res = wrap_result(tensor_to(tensor_of(o), TENSOR_OPTIONS(.device = device)));
	else
		res = PyErr_Format(PyExc_BufferError,
				   "the data is on another device: copy=False forbids to move it");
	Py_DECREF(o);
	return res;
}

PyObject *dlpack_import(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "", "device", "copy", NULL };
	PyObject *x, *device = Py_None, *copy = Py_None, *res;
	tensor_device d = { 0 };
	int wanted, ok = 1;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", keywords, &x, &device,
					 &copy) ||
	    dlpack_copy_argument(copy, &wanted) < 0)
		return NULL;
	if (device != Py_None)
		ok = as_device(device, &d);
	if (!ok)
		PyErr_Format(PyExc_TypeError, "from_dlpack: %R is no device", device);
	if (ok <= 0)
		return NULL;
	if (PyCapsule_CheckExact(x))
		res = consume(x, wanted);
	else
		res = import_object(x, d, wanted);
	return moved(res, d, wanted);
}
