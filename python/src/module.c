// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The module devtensor._C. */
#include "internal.h"

#include <limits.h>

static PyObject *module_promote_types(PyObject *module, PyObject *args)
{
	PyObject *a, *b;
	int x, y;

	if (!PyArg_ParseTuple(args, "OO", &a, &b))
		return NULL;
	if (as_dtype(a, &x) <= 0 || as_dtype(b, &y) <= 0)
		return PyErr_Occurred() ?
			       NULL :
			       PyErr_Format(PyExc_TypeError,
					    "promote_types: %R and %R must be dtypes", a, b);
	x = tensor_promote_types(x, y);
	return x ? wrap_dtype(x) : raise_error();
}

/* The object for a tensor of the C library, for programs that call both. The caller keeps its
 * reference, and vouches for the address. */
static PyObject *module_from_cdata(PyObject *module, PyObject *arg)
{
	tensor *t = PyLong_AsVoidPtr(arg);

	return !t && PyErr_Occurred() ? NULL : wrap_borrowed(t);
}

static PyObject *module_set_num_threads(PyObject *module, PyObject *arg)
{
	long n = PyLong_AsLong(arg);

	if (n == -1 && PyErr_Occurred())
		return NULL;
	if (tensor_set_num_threads(n < INT_MIN || n > INT_MAX ? -1 : (int)n) < 0)
		return raise_error();
	Py_RETURN_NONE;
}

static PyObject *module_get_num_threads(PyObject *module, PyObject *unused)
{
	return PyLong_FromLong(tensor_get_num_threads());
}

static PyMethodDef own_functions[] = {
	{ "set_num_threads", module_set_num_threads, METH_O,
	  "set_num_threads(n, /)\n--\n\nThe largest number of threads of an operator, from 1 to 256. "
	  "Results do not depend on it." },
	{ "get_num_threads", module_get_num_threads, METH_NOARGS,
	  "get_num_threads()\n--\n\nThe largest number of threads of an operator." },
	{ "promote_types", module_promote_types, METH_VARARGS,
	  "promote_types(type1, type2, /)\n--\n\n"
	  "The smallest dtype that represents the values of both." },
	{ "tensor", (PyCFunction)(void (*)(void))module_tensor, METH_VARARGS | METH_KEYWORDS,
	  "tensor(data, *, dtype=None, device=None, requires_grad=False)\n--\n\n"
	  "A tensor with a copy of the data: a number, nested sequences of numbers, an object with "
	  "the buffer protocol, or a tensor." },
	{ "_from_cdata", module_from_cdata, METH_O,
	  "_from_cdata(address, /)\n--\n\nThe object for a tensor of the C library at this address." },
	{ NULL },
};

static int add_functions(PyObject *module)
{
	if (PyModule_AddFunctions(module, own_functions) < 0 ||
	    PyModule_AddFunctions(module, generated_functions) < 0)
		return -1;
	return PyModule_AddStringConstant(module, "__version__", "0.1.0");
}

/* The types are shared by all interpreters of the process: the module is made once. */
static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "devtensor._C",
	.m_doc = "The extension module of devtensor.",
	.m_size = -1,
};

PyMODINIT_FUNC PyInit__C(void);

/* In this order: functions refer to the types. */
static int (*const parts[])(PyObject *module) = {
	add_constants,	  add_devices,	     add_generator,	add_cuda,
	add_cuda_streams, add_tensor,	     add_channel,	add_pool,
	add_remote,	  add_channel_group, add_process_group, add_shared,
	add_gc,		  add_autograd,	     add_node,		add_hooks,
	add_function,	  add_transform,     add_optim,		add_training,
	add_nn,		  add_buffers,	     add_dlpack,	add_arrow,
	add_files,	  add_functions,
};

PyMODINIT_FUNC PyInit__C(void)
{
	PyObject *module = PyModule_Create(&definition);

	for (size_t i = 0; module && i < COUNT(parts); i++)
		if (parts[i](module) < 0)
			Py_CLEAR(module);
	return module;
}
