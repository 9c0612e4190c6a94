// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Devices: "cpu", "cuda:0". "cuda" is the current one of the thread. */
#include "internal.h"

PyTypeObject *device_type;

static const char *const device_names[] = { "none", "cpu", "cuda", "private" };

static int parse_device(const char *s, tensor_device *device)
{
	const char *colon = strchr(s, ':');
	size_t n = colon ? (size_t)(colon - s) : strlen(s);
	char *end = NULL;
	long index = 0;

	if (colon) {
		index = strtol(colon + 1, &end, 10);
		if (end == colon + 1 || *end || index < 0 || index > INT8_MAX || colon[1] < '0' ||
		    colon[1] > '9')
			n = 0;
	}
	for (int i = TENSOR_CPU; i < TENSOR_DEVICE_TYPE_COUNT; i++)
		if (n && strlen(device_names[i]) == n && !strncmp(device_names[i], s, n)) {
			if (!colon && i == TENSOR_CUDA)
				index = cuda_current_index();
			*device = (tensor_device){ i, index };
			return 1;
		}
	PyErr_Format(PyExc_ValueError, "'%s' is no device: cpu, cuda, cuda:0", s);
	return -1;
}

int as_device(PyObject *o, tensor_device *device)
{
	const char *s;

	if (Py_TYPE(o) == device_type) {
		*device = ((PyDevice *)o)->device;
		return 1;
	}
	if (!PyUnicode_Check(o))
		return 0;
	s = PyUnicode_AsUTF8AndSize(o, NULL);
	return s ? parse_device(s, device) : -1;
}

PyObject *wrap_device(tensor_device device)
{
	PyDevice *o = PyObject_New(PyDevice, device_type);

	if (o)
		o->device = device;
	return (PyObject *)o;
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "type", "index", NULL };
	tensor_device device;
	PyObject *o;
	int index = -1, err;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|i", keywords, &o, &index))
		return NULL;
	err = as_device(o, &device);
	if (err < 0)
		return NULL;
	if (!err)
		return PyErr_Format(PyExc_TypeError, "device: expected a string, got %R", o);
	if (index > INT8_MAX || index < -1)
		return PyErr_Format(PyExc_ValueError, "device: there is no index %d", index);
	if (index >= 0)
		device.index = index;
	return wrap_device(device);
}

static tensor_device device_of(PyObject *o)
{
	return ((PyDevice *)o)->device;
}

static PyObject *device_repr(PyObject *o)
{
	tensor_device d = device_of(o);

	if (d.type == TENSOR_CPU)
		return PyUnicode_FromString("device(type='cpu')");
	return PyUnicode_FromFormat("device(type='%s', index=%d)", device_names[d.type], d.index);
}

static PyObject *device_str(PyObject *o)
{
	tensor_device d = device_of(o);

	if (d.type == TENSOR_CPU)
		return PyUnicode_FromString("cpu");
	return PyUnicode_FromFormat("%s:%d", device_names[d.type], d.index);
}

static PyObject *device_get_type(PyObject *o, void *unused)
{
	return PyUnicode_FromString(device_names[device_of(o).type]);
}

static PyObject *device_get_index(PyObject *o, void *unused)
{
	if (device_of(o).type == TENSOR_CPU)
		Py_RETURN_NONE;
	return PyLong_FromLong(device_of(o).index);
}

/* A string that names the device is equal to it, as programs compare x.device == 'cpu'. */
static PyObject *device_compare(PyObject *a, PyObject *b, int op)
{
	tensor_device x = device_of(a), y;
	bool equal;

	if (op != Py_EQ && op != Py_NE)
		Py_RETURN_NOTIMPLEMENTED;
	switch (as_device(b, &y)) {
	case 0:
		Py_RETURN_NOTIMPLEMENTED;
	case 1:
		break;
	default: /* a string that names no device */
		PyErr_Clear();
		y.type = TENSOR_DEVICE_NONE;
	}
	equal = x.type == y.type && x.index == y.index;
	return PyBool_FromLong(equal == (op == Py_EQ));
}

/* That of the string, which is equal. */
static Py_hash_t device_hash(PyObject *o)
{
	PyObject *s = device_str(o);
	Py_hash_t hash = s ? PyObject_Hash(s) : -1;

	Py_XDECREF(s);
	return hash;
}

static PyObject *device_reduce(PyObject *o, PyObject *unused)
{
	return Py_BuildValue("(O(N))", Py_TYPE(o), device_str(o));
}

static PyMethodDef device_methods[] = {
	{ "__reduce__", device_reduce, METH_NOARGS, NULL },
	{ NULL },
};

static PyGetSetDef device_getset[] = {
	{ "type", device_get_type, NULL, "\"cpu\" or \"cuda\"." },
	{ "index", device_get_index, NULL, "The number of the device, None for the CPU." },
	{ NULL },
};

static PyType_Slot device_slots[] = {
	{ Py_tp_doc, "device(type, index=0)\n--\n\nThe device on which a tensor's memory is." },
	{ Py_tp_new, device_new },
	{ Py_tp_dealloc, constant_dealloc },
	{ Py_tp_repr, device_repr },
	{ Py_tp_str, device_str },
	{ Py_tp_hash, device_hash },
	{ Py_tp_richcompare, device_compare },
	{ Py_tp_methods, device_methods },
	{ Py_tp_getset, device_getset },
	{ 0 },
};

int add_devices(PyObject *module)
{
	device_type = add_type(module, "devtensor.device", sizeof(PyDevice), device_slots);
	return device_type ? 0 : -1;
}
