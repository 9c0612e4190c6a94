// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * DLPack: __dlpack__, __dlpack_device__, from_dlpack() and the table of C functions.
 *
 * A capsule owns its structure until a consumer renames it; its destructor calls the deleter only
 * under the first name. The deleters of libtensor need no lock, those of Python libraries take it.
 */
#include "internal.h"

#include <errno.h>
#include <tensor/dlpack.h>

/* Capsules keep pointers to their names. */
static const char plain_name[] = "dltensor", used_plain_name[] = "used_dltensor";
static const char versioned_name[] = "dltensor_versioned",
		  used_versioned_name[] = "used_dltensor_versioned";
static const char table_name[] = "dlpack_exchange_api";

/* DLPack's exception for tensors that cannot be exchanged is BufferError. */
static PyObject *raise_exchange(void)
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
	DLManagedTensorVersioned *versioned = named(capsule, versioned_name);
	DLManagedTensor *plain = named(capsule, plain_name);
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
		return raise_exchange();
	capsule = PyCapsule_New(m, plain_name, free_managed);
	if (!capsule)
		m->deleter(m);
	return capsule;
}

static PyObject *versioned_capsule(tensor *t, bool copied)
{
	DLManagedTensorVersioned *m = tensor_to_dlpack(t, copied ? TENSOR_DLPACK_COPIED : 0);
	PyObject *capsule;

	if (!m)
		return raise_exchange();
	capsule = PyCapsule_New(m, versioned_name, free_managed);
	if (!capsule)
		m->deleter(m);
	return capsule;
}

/* Two integers; what names the argument in the TypeError. */
static int int_pair(PyObject *o, const char *what, long pair[2])
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
static int copy_argument(PyObject *o, int *copy)
{
	if (o != Py_None && !PyBool_Check(o)) {
		PyErr_Format(PyExc_TypeError, "copy must be True, False or None, got %R", o);
		return -1;
	}
	*copy = o == Py_None ? -1 : o == Py_True;
	return 0;
}

/* A copy without history, made without the lock. */
static PyObject *copy_to_host(tensor *t)
{
	PyThreadState *state;
	tensor *copy = NULL;
	PyObject *res;

	hold(t);
	state = PyEval_SaveThread();
	tensor_scope {
		copy = tensor_keep(tensor_to_opt(tensor_detach(t),
						 TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU), false,
						 true));
	}
	PyEval_RestoreThread(state);
	tensor_release(t);
	if (!copy)
		return raise_error();
	res = wrap_borrowed(copy);
	tensor_release(copy);
	return res;
}

/* 1 if the receiver gets a copy, 0 if not, -1 if that is impossible. */
static int needs_copy(tensor *t, PyObject *dl_device, int copy)
{
	bool host = tensor_get_device(t).type == TENSOR_CPU;
	long device[2];

	if (tensor_requires_grad(t)) {
		PyErr_SetString(PyExc_BufferError, "a tensor that requires a gradient is not "
						   "exported: call detach() first");
		return -1;
	}
	if (dl_device != Py_None) {
		if (int_pair(dl_device, "dl_device", device) < 0)
			return -1;
		if (device[0] != kDLCPU || device[1]) {
			PyErr_Format(
				PyExc_BufferError,
				"a tensor is exported to host memory (1, 0), not to the device "
				"(%ld, %ld)",
				device[0], device[1]);
			return -1;
		}
		if (!host && !copy) {
			PyErr_SetString(PyExc_BufferError,
					"a tensor of another device is copied to host memory, "
					"which copy=False forbids");
			return -1;
		}
	}
	return copy == 1 || (!host && dl_device != Py_None);
}

static PyObject *m_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "stream", "max_version", "dl_device", "copy", NULL };
	PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
	PyObject *source = NULL, *capsule = NULL;
	long newest[2] = { 0, 0 };
	int wanted, copied;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", keywords, &stream,
					 &version, &device, &copy) ||
	    copy_argument(copy, &wanted) < 0)
		return NULL;
	if (version != Py_None && int_pair(version, "max_version", newest) < 0)
		return NULL;
	if (stream != Py_None)
		return PyErr_Format(PyExc_BufferError,
				    "host memory has no streams: stream must be "
				    "None, got %R",
				    stream);
	copied = needs_copy(tensor_of(self), device, wanted);
	if (copied < 0)
		return NULL;
	source = copied ? copy_to_host(tensor_of(self)) : Py_NewRef(self);
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

/* ---- import ---- */

/* A capsule's tensor: from here on the tensor calls the deleter. */
static PyObject *consume(PyObject *capsule, int copy)
{
	bool versioned = PyCapsule_IsValid(capsule, versioned_name);
	DLManagedTensorVersioned *m;
	tensor *t;

	if (!versioned && !PyCapsule_IsValid(capsule, plain_name)) {
		if (!PyCapsule_IsValid(capsule, used_versioned_name) &&
		    !PyCapsule_IsValid(capsule, used_plain_name))
			return PyErr_Format(PyExc_TypeError, "%R is no capsule of DLPack", capsule);
		return PyErr_Format(PyExc_ValueError, "the capsule of DLPack has been consumed");
	}
	if (versioned) {
		m = PyCapsule_GetPointer(capsule, versioned_name);
		if (m->version.major == 1 && m->flags & DLPACK_FLAG_BITMASK_IS_COPIED && !copy)
			return PyErr_Format(PyExc_BufferError,
					    "the producer copied, which copy=False forbids");
		t = tensor_from_dlpack(m);
	} else {
		t = tensor_from_dlpack_unversioned(PyCapsule_GetPointer(capsule, plain_name));
	}
	if (!t)
		return raise_exchange();
	PyCapsule_SetName(capsule, versioned ? used_versioned_name : used_plain_name);
	return wrap_result(t);
}

static int set_item(PyObject *dict, const char *key, PyObject *value)
{
	int res = value ? PyDict_SetItemString(dict, key, value) : -1;

	Py_XDECREF(value);
	return res;
}

/* Arguments of __dlpack__. The usual ones are made once. */
static PyObject *export_arguments(bool to_host, int copy)
{
	static PyObject *usual;
	PyObject *dict;

	if (usual && !to_host && copy < 0)
		return Py_NewRef(usual);
	dict = PyDict_New();
	if (!dict)
		return NULL;
	if (set_item(dict, "max_version",
		     Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION)) < 0 ||
	    (to_host && set_item(dict, "dl_device", Py_BuildValue("(ii)", kDLCPU, 0)) < 0) ||
	    (copy >= 0 && set_item(dict, "copy", PyBool_FromLong(copy)) < 0))
		Py_CLEAR(dict);
	if (dict && !to_host && copy < 0)
		usual = Py_NewRef(dict);
	return dict;
}

/* Calls x.__dlpack__(). *copied: the producer knows the argument copy. */
static PyObject *request(PyObject *x, bool to_host, int copy, bool *copied)
{
	PyObject *method = PyObject_GetAttrString(x, "__dlpack__"), *args, *kwargs, *capsule = NULL;

	args = method ? PyTuple_New(0) : NULL;
	kwargs = args ? export_arguments(to_host, copy) : NULL;
	if (kwargs)
		capsule = PyObject_Call(method, args, kwargs);
	*copied = copy == 1;
	/* A producer of DLPack before 1.0 takes no such arguments, and none is on another device. */
	if (kwargs && !capsule && !to_host && PyErr_ExceptionMatches(PyExc_TypeError)) {
		PyErr_Clear();
		*copied = false;
		capsule = PyObject_Call(method, args, NULL);
	}
	Py_XDECREF(kwargs);
	Py_XDECREF(args);
	Py_XDECREF(method);
	return capsule;
}

/* 1 if the producer has to copy to host memory, 0 if its data is there, -1 with an exception. */
static int is_elsewhere(PyObject *x, bool device_given, int copy)
{
	PyObject *o = PyObject_CallMethod(x, "__dlpack_device__", NULL);
	long device[2];
	int res;

	res = o ? int_pair(o, "the result of __dlpack_device__", device) : -1;
	Py_XDECREF(o);
	if (res < 0)
		return -1;
	if (device[0] == kDLCPU || device[0] == kDLCUDAHost || device[0] == kDLROCMHost)
		return 0;
	if (device_given && copy)
		return 1;
	PyErr_Format(PyExc_BufferError,
		     "the data is on the device (%ld, %ld): device='cpu' copies it", device[0],
		     device[1]);
	return -1;
}

static PyObject *import_object(PyObject *x, tensor_device device, int copy)
{
	int elsewhere = is_elsewhere(x, device.type, copy);
	PyObject *capsule, *imported, *res;
	bool copied;

	if (elsewhere < 0)
		return NULL;
	capsule = request(x, elsewhere, copy, &copied);
	imported = capsule ? consume(capsule, copy) : NULL;
	Py_XDECREF(capsule);
	if (!imported || copy < 1 || copied)
		return imported;
	res = copy_to_host(tensor_of(imported));
	Py_DECREF(imported);
	return res;
}

static PyObject *module_from_dlpack(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "", "device", "copy", NULL };
	PyObject *x, *device = Py_None, *copy = Py_None, *res;
	tensor_device d = { 0 };
	int wanted, ok = 1;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", keywords, &x, &device,
					 &copy) ||
	    copy_argument(copy, &wanted) < 0)
		return NULL;
	if (device != Py_None)
		ok = as_device(device, &d);
	if (!ok)
		PyErr_Format(PyExc_TypeError, "from_dlpack: %R is no device", device);
	if (ok <= 0)
		return NULL;
	if (d.type > TENSOR_CPU && !wanted)
		return PyErr_Format(PyExc_BufferError,
				    "a tensor is imported to host memory: "
				    "copy=False forbids device=%R",
				    device);
	if (PyCapsule_CheckExact(x))
		res = consume(x, wanted);
	else
		res = import_object(x, d, wanted);
	if (res && d.type > TENSOR_CPU)
		set_ref(&res, wrap_result(tensor_to(tensor_of(res), TENSOR_OPTIONS(.device = d))));
	return res;
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
		raise_exchange();
	return *out ? 0 : -1;
}

static int table_describe(void *object, DLTensor *out)
{
	tensor *t = exchanged(object);

	if (!t)
		return -1;
	if (tensor_to_dltensor(t, out) == 0)
		return 0;
	raise_exchange();
	return -1;
}

/* On failure the structure still belongs to the caller, as callers of PyTorch's function expect. */
static int table_import(DLManagedTensorVersioned *m, void **out)
{
	tensor *t = tensor_from_dlpack(m);

	if (!t) {
		*out = raise_exchange();
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

static PyMethodDef functions[] = {
	{ "from_dlpack", (PyCFunction)(void (*)(void))module_from_dlpack,
	  METH_VARARGS | METH_KEYWORDS,
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
