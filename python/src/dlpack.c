// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * DLPack: __dlpack__, __dlpack_device__ and the table of C functions; dlpack_import.c has from_dlpack().
 *
 * Memory of a CUDA device comes with its stream: the producer makes the consumer's stream wait for its own current one.
 *
 * A capsule owns its structure until a consumer renames it; its destructor calls the deleter only
 * under the first name. The deleters of libtensor need no lock, those of Python libraries take it.
 */
#include "dlpack.h"

#include <errno.h>
#include <tensor/cuda.h>

/* Capsules keep pointers to their names. */
const char dlpack_plain[] = "dltensor", dlpack_plain_used[] = "used_dltensor";
const char dlpack_versioned[] = "dltensor_versioned",
	   dlpack_versioned_used[] = "used_dltensor_versioned";
static const char table_name[] = "dlpack_exchange_api";

/* DLPack's exception for tensors that cannot be exchanged is BufferError. */
PyObject *dlpack_raise(void)
{
	const struct tensor_error *e = tensor_last_error();

	if (!PyErr_Occurred() && e->code && e->code != ENOMEM) {
		PyErr_SetString(PyExc_BufferError, e->text);
		return NULL;
	}
	return raise_error();
}

/* ---- export ---- */

/* NULL for a capsule of another name: a consumer has renamed it and owns the memory. */
static void *named(PyObject *capsule, const char *name)
{
	return PyCapsule_IsValid(capsule, name) ? PyCapsule_GetPointer(capsule, name) : NULL;
}

static void free_managed(PyObject *capsule)
{
	DLManagedTensorVersioned *versioned = named(capsule, dlpack_versioned);
	DLManagedTensor *plain = named(capsule, dlpack_plain);
	struct saved_errors before;

	/* A deleter may run code of Python, and the capsule may die while an exception is set. */
	errors_save(&before);
	if (versioned && versioned->deleter)
		versioned->deleter(versioned);
	if (plain && plain->deleter)
		plain->deleter(plain);
	errors_restore(&before);
}

static PyObject *plain_capsule(tensor *t)
{
	DLManagedTensor *m = tensor_to_dlpack_unversioned(t, 0);
	PyObject *capsule;

	if (!m)
		return dlpack_raise();
	capsule = PyCapsule_New(m, dlpack_plain, free_managed);
	if (!capsule)
		m->deleter(m);
	return capsule;
}

static PyObject *versioned_capsule(tensor *t, bool copied)
{
	DLManagedTensorVersioned *m = tensor_to_dlpack(t, copied ? TENSOR_DLPACK_COPIED : 0);
	PyObject *capsule;

	if (!m)
		return dlpack_raise();
	capsule = PyCapsule_New(m, dlpack_versioned, free_managed);
	if (!capsule)
		m->deleter(m);
	return capsule;
}

/* Two integers; what names the argument in the TypeError. */
int dlpack_pair(PyObject *o, const char *what, long pair[2])
{
	PyObject *tuple = PyTuple_Check(o) || PyList_Check(o) ? PySequence_Tuple(o) : NULL;
	bool valid = tuple && PyTuple_Size(tuple) == 2;

	for (int i = 0; valid && i < 2; i++) {
		/* The type of a device may be an enum. */
		pair[i] = PyLong_AsLong(PyTuple_GetItem(tuple, i));
		valid = pair[i] != -1 || !PyErr_Occurred();
	}
	Py_XDECREF(tuple);
	if (valid)
		return 0;
	if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
		PyErr_Format(PyExc_TypeError, "%s must be a tuple of two integers, got %R", what,
			     o);
	return -1;
}

/* None, or True or False: -1, 1 or 0. */
int dlpack_copy_argument(PyObject *o, int *copy)
{
	if (o != Py_None && !PyBool_Check(o)) {
		PyErr_Format(PyExc_TypeError, "copy must be True, False or None, got %R", o);
		return -1;
	}
	*copy = o == Py_None ? -1 : o == Py_True;
	return 0;
}

/* A copy without history on the device, made without the lock. */
PyObject *dlpack_copy_to(tensor *t, tensor_device device)
{
	PyThreadState *state;
	tensor *copy = NULL;
	PyObject *res;

	hold(t);
	state = PyEval_SaveThread();
	tensor_scope {
		copy = tensor_keep(tensor_to_opt(tensor_detach(t), TENSOR_OPTIONS(.device = device),
						 false, true));
	}
	PyEval_RestoreThread(state);
	tensor_release(t);
	if (!copy)
		return raise_error();
	res = wrap_borrowed(copy);
	tensor_release(copy);
	return res;
}

/* Where the consumer wants the memory: on the tensor's device or on the host. 0, or -1 with an exception. */
static int find_target(tensor *t, PyObject *dl_device, int copy, tensor_device *to)
{
	long device[2];

	*to = tensor_get_device(t);
	if (tensor_requires_grad(t)) {
		PyErr_SetString(PyExc_BufferError, "a tensor that requires a gradient is not "
						   "exported: call detach() first");
		return -1;
	}
	if (dl_device == Py_None)
		return 0;
	if (dlpack_pair(dl_device, "dl_device", device) < 0)
		return -1;
	if (to->type == TENSOR_CUDA && device[0] == kDLCUDA && device[1] == to->index)
		return 0;
	if (device[0] != kDLCPU || device[1]) {
		PyErr_Format(PyExc_BufferError,
			     "a tensor is exported to host memory (1, 0) or where it is, not to "
			     "the device (%ld, %ld)",
			     device[0], device[1]);
		return -1;
	}
	if (to->type != TENSOR_CPU && !copy) {
		PyErr_SetString(PyExc_BufferError,
				"a tensor of another device is copied to host memory, "
				"which copy=False forbids");
		return -1;
	}
	*to = TENSOR_DEVICE_CPU;
	return 0;
}

/* The argument `stream` for a CUDA device: 1 if there is one, 0 if nothing is to be ordered, -1 with an exception. */
static int find_stream(PyObject *o, void **stream)
{
	long long n = o == Py_None ? 1 : PyLong_AsLongLong(o);

	if (n == -1)
		return PyErr_Occurred() ? -1 : 0;
	if (n < 1) {
		PyErr_Format(PyExc_BufferError,
			     "stream must be None, 1 for the default stream, 2 for that of a "
			     "thread, the address of a cudaStream_t or -1 for no order, got %lld",
			     n);
		return -1;
	}
	*stream = n == 1 ? NULL : (void *)(uintptr_t)n;
	return 1;
}

/* The consumer's stream follows the current one, and the memory is not used again before its work is done. */
static int order_stream(tensor *t, PyObject *o)
{
	const int device = tensor_get_device(t).index;
	tensor_cuda_event *event;
	void *stream, *current;
	int err = 0, found;

	if (tensor_get_device(t).type != TENSOR_CUDA) {
		if (o == Py_None)
			return 0;
		PyErr_Format(PyExc_BufferError,
			     "host memory has no streams: stream must be None, got %R", o);
		return -1;
	}
	found = find_stream(o, &stream);
	if (found <= 0)
		return found;
	current = tensor_cuda_current_stream(device);
	if (stream != current) {
		event = tensor_cuda_event_new(device, 0);
		err = event ? tensor_cuda_event_record(event, current) : -1;
		if (!err)
			err = tensor_cuda_stream_wait(device, stream, event);
		tensor_cuda_event_release(event);
	}
	if (!err)
		err = tensor_cuda_record_stream(t, stream);
	if (err)
		dlpack_raise();
	return err ? -1 : 0;
}

static PyObject *m_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "stream", "max_version", "dl_device", "copy", NULL };
	PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
	PyObject *source = NULL, *capsule = NULL;
	long newest[2] = { 0, 0 };
	tensor_device to;
	int wanted;
	bool copied;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", keywords, &stream,
					 &version, &device, &copy) ||
	    dlpack_copy_argument(copy, &wanted) < 0)
		return NULL;
	if (version != Py_None && dlpack_pair(version, "max_version", newest) < 0)
		return NULL;
	if (find_target(tensor_of(self), device, wanted, &to) < 0)
		return NULL;
	copied = wanted == 1 || !same_device(to, tensor_get_device(tensor_of(self)));
	source = copied ? dlpack_copy_to(tensor_of(self), to) : Py_NewRef(self);
	if (source && order_stream(tensor_of(source), stream) < 0)
		Py_CLEAR(source);
	if (source)
		capsule = newest[0] >= 1 ? versioned_capsule(tensor_of(source), copied) :
					   plain_capsule(tensor_of(source));
	Py_XDECREF(source);
	return capsule;
}

static PyObject *m_dlpack_device(PyObject *self, PyObject *unused)
{
	tensor_device d = tensor_get_device(tensor_of(self));

	switch (d.type) {
	case TENSOR_CPU:
		return Py_BuildValue("(ii)", kDLCPU, 0);
	case TENSOR_CUDA:
		return Py_BuildValue("(ii)", kDLCUDA, d.index);
	default:
		return Py_BuildValue("(ii)", kDLExtDev, d.index);
	}
}

/* ---- the table of C functions ---- */

static tensor *exchanged(void *object)
{
	PyObject *o = object;

	if (is_tensor(o))
		return tensor_of(o);
	PyErr_Format(PyExc_TypeError, "expected a tensor of devtensor, got %R", Py_TYPE(o));
	return NULL;
}

static int table_export(void *object, DLManagedTensorVersioned **out)
{
	tensor *t = exchanged(object);

	*out = t ? tensor_to_dlpack(t, 0) : NULL;
	if (t && !*out)
		dlpack_raise();
	return *out ? 0 : -1;
}

static int table_describe(void *object, DLTensor *out)
{
	tensor *t = exchanged(object);

	if (!t)
		return -1;
	if (tensor_to_dltensor(t, out) == 0)
		return 0;
	dlpack_raise();
	return -1;
}

/* On failure the structure still belongs to the caller, as callers of PyTorch's function expect. */
static int table_import(DLManagedTensorVersioned *m, void **out)
{
	tensor *t = tensor_from_dlpack(m);

	if (!t) {
		*out = dlpack_raise();
		return -1;
	}
	/* Without memory for the object the tensor is leaked: its release would call the deleter. */
	tensor_retain(t);
	*out = wrap_result(t);
	if (*out)
		tensor_release(t);
	return *out ? 0 : -1;
}

static int table_stream(DLDeviceType type, int32_t id, void **out)
{
	*out = NULL;
	if (type == kDLCPU)
		return 0;
	if (type == kDLCUDA) {
		tensor_clear_error();
		*out = tensor_cuda_current_stream(id);
		if (*out || !tensor_last_error()->code)
			return 0;
		dlpack_raise();
		return -1;
	}
	PyErr_Format(PyExc_BufferError, "there is no stream of the device (%d, %d)", (int)type,
		     (int)id);
	return -1;
}

static DLPackExchangeAPI table = {
	.header = { { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION }, NULL },
	.managed_tensor_allocator = tensor_dlpack_allocate,
	.managed_tensor_from_py_object_no_sync = table_export,
	.managed_tensor_to_py_object_no_sync = table_import,
	.dltensor_from_py_object_no_sync = table_describe,
	.current_work_stream = table_stream,
};

/* ---- registration ---- */

static PyMethodDef methods[] = {
	{ "__dlpack__", (PyCFunction)(void (*)(void))m_dlpack, METH_VARARGS | METH_KEYWORDS,
	  "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
	  "A capsule for from_dlpack() of another library, on the same memory unless copy is True. "
	  "max_version=(1, 0) or later gives the versioned form, the only one for read-only memory. "
	  "BufferError for tensors that require a gradient, are not strided, or on another device." },
	{ "__dlpack_device__", m_dlpack_device, METH_NOARGS,
	  "__dlpack_device__($self, /)\n--\n\nThe device's type and index in DLPack: (1, 0)." },
	{ NULL },
};

/* For __cuda_array_interface__. */
static PyObject *is_writable(PyObject *module, PyObject *o)
{
	tensor *t = exchanged(o);

	return t ? PyBool_FromLong(tensor_is_writable(t)) : NULL;
}

static PyMethodDef functions[] = {
	{ "_is_writable", is_writable, METH_O, NULL },
	{ "from_dlpack", (PyCFunction)(void (*)(void))dlpack_import, METH_VARARGS | METH_KEYWORDS,
	  "from_dlpack(x, /, *, device=None, copy=None)\n--\n\n"
	  "A tensor on the memory of another library's array, which has __dlpack__, or of a capsule. "
	  "The memory is released by the thread that releases the last tensor on it. copy=True: a "
	  "copy. BufferError if the array cannot be exchanged." },
	{ NULL },
};

int add_dlpack(PyObject *module)
{
	PyObject *capsule = PyCapsule_New(&table, table_name, NULL);
	int err = capsule ? PyObject_SetAttrString((PyObject *)tensor_type,
						   "__dlpack_c_exchange_api__", capsule) :
			    -1;

	Py_XDECREF(capsule);
	if (err < 0 || add_methods(tensor_type, methods) < 0)
		return -1;
	return PyModule_AddFunctions(module, functions);
}
