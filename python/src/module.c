// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The module devtensor._C. */
#include "internal.h"

static PyObject *module_promote_types(PyObject *module, PyObject *args)
{
	PyObject *a, *b;
	int x, y;

	if (!PyArg_ParseTuple(args, "OO", &a, &b))
		return NULL;
	if (as_dtype(a, &x) <= 0 || as_dtype(b, &y) <= 0)
		return PyErr_Occurred() ? NULL :
					  PyErr_Format(PyExc_TypeError,
						       "promote_types: %R and %R must be dtypes", a, b);
	x = tensor_promote_types(x, y);
	return x ? wrap_dtype(x) : raise_error();
}

static PyMethodDef own_functions[] = {
	{ "promote_types", module_promote_types, METH_VARARGS,
	  "promote_types(type1, type2, /)\n--\n\n"
	  "The smallest dtype that represents the values of both." },
	{ "tensor", (PyCFunction)(void (*)(void))module_tensor, METH_VARARGS | METH_KEYWORDS,
	  "tensor(data, *, dtype=None, device=None, requires_grad=False)\n--\n\n"
	  "A tensor with a copy of the data: a number, nested sequences of numbers, an object with "
	  "the buffer protocol, or a tensor." },
	{ NULL },
};

static int add_functions(PyObject *module)
{
	if (PyModule_AddFunctions(module, own_functions) < 0 ||
	    PyModule_AddFunctions(module, generated_functions) < 0)
		return -1;
	return PyModule_AddStringConstant(module, "__version__", "0.1.0");
}

static int add_interchange(PyObject *module)
{
	if (add_buffers(module) < 0 || add_dlpack(module) < 0 || add_arrow(module) < 0)
		return -1;
	return add_files(module);
}

/* The types are shared by all interpreters of the process: the module is made once. */
static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "devtensor._C",
	.m_doc = "The extension module of devtensor.",
	.m_size = -1,
};

PyMODINIT_FUNC PyInit__C(void);

PyMODINIT_FUNC PyInit__C(void)
{
	PyObject *module = PyModule_Create(&definition);

	if (!module)
		return NULL;
	if (add_constants(module) < 0 || add_generator(module) < 0 || add_tensor(module) < 0 ||
	    add_channel(module) < 0 || add_gc(module) < 0 || add_autograd(module) < 0 ||
	    add_node(module) < 0 || add_hooks(module) < 0 || add_function(module) < 0 ||
	    add_transform(module) < 0 || add_optim(module) < 0 || add_training(module) < 0 ||
	    add_nn(module) < 0 || add_functions(module) < 0)
		Py_CLEAR(module);
	if (module && add_interchange(module) < 0)
		Py_CLEAR(module);
	return module;
}
