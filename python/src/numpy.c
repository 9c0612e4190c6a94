// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Numbers of NumPy, which are recognized without its headers. */
#include "internal.h"

bool is_numpy_bool(PyObject *o)
{
	static PyTypeObject *known; /* borrowed: NumPy's types live as long as the process */
	PyObject *name, *module;

	if (!known && Py_TYPE(o) != &PyLong_Type) {
		name = PyType_GetName(Py_TYPE(o));
		module = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__module__");
		if (name && module && PyUnicode_Check(module) &&
		    !PyUnicode_CompareWithASCIIString(module, "numpy") &&
		    (!PyUnicode_CompareWithASCIIString(name, "bool") ||
		     !PyUnicode_CompareWithASCIIString(name, "bool_")))
			known = Py_TYPE(o);
		Py_XDECREF(name);
		Py_XDECREF(module);
		PyErr_Clear();
	}
	return known && Py_TYPE(o) == known;
}

int convert_numpy_scalar(PyObject *o, tensor_scalar *s)
{
	static PyObject *item, *ndim;
	PyObject *dim, *v;
	long n = -1;
	int res;

	if (!item)
		item = PyUnicode_InternFromString("item");
	if (!ndim)
		ndim = PyUnicode_InternFromString("ndim");
	if (PyType_Check(o) || !item || !ndim)
		return 0;
	dim = PyObject_GetAttr(o, ndim);
	if (dim && PyLong_Check(dim))
		n = PyLong_AsLong(dim);
	Py_XDECREF(dim);
	PyErr_Clear();
	if (n != 0)
		return 0;
	v = PyObject_CallMethodObjArgs(o, item, NULL);
	if (!v)
		return -1;
	res = is_number(v) ? convert_scalar(v, s) : 0;
	Py_DECREF(v);
	return res;
}
