// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Conversion of numbers of Python and of NumPy to numbers of the library, and back. */
#include "internal.h"

bool is_number(PyObject *o)
{
	return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o);
}

/* True for objects with __index__ that are no bool: int, and NumPy's integers. */
static bool is_index(PyObject *o)
{
	if (likely(PyLong_CheckExact(o)))
		return true;
	/* The last question is the slow one: sequences must not get there. */
	return PyIndex_Check(o) && !PyBool_Check(o) && !is_numpy_bool(o);
}

int read_item(const tensor *t, tensor_scalar *s)
{
	uint64_t u;

	/* tensor_item_scalar() gives a float above INT64_MAX. */
	if (likely(tensor_dtype(t) != TENSOR_U64 || tensor_numel(t) != 1))
		return tensor_item_scalar(t, s);
	if (tensor_copy_to(t, &u, sizeof(u)) < 0)
		return -1;
	*s = u > INT64_MAX ? tensor_scalar_uint(u) : tensor_scalar_int((int64_t)u);
	return 0;
}

/* A tensor with one element stands for its number, unless that loses a gradient. */
static int scalar_of_tensor(PyObject *o, tensor_scalar *s)
{
	tensor *t = tensor_of(o);

	if (tensor_dim(t) != 0 || tensor_requires_grad(t))
		return 0;
	return read_item(t, s) < 0 ? raise_error_int() : 1;
}

/* An int: from INT64_MIN to UINT64_MAX. */
static int scalar_of_int(PyObject *o, tensor_scalar *s)
{
	PyObject *n = PyNumber_Index(o);
	long long v;
	int overflow;

	if (!n)
		return -1;
	v = PyLong_AsLongLongAndOverflow(n, &overflow);
	*s = tensor_scalar_int(v);
	if (overflow > 0)
		*s = tensor_scalar_uint(PyLong_AsUnsignedLongLong(n));
	Py_DECREF(n);
	if (overflow < 0)
		PyErr_SetString(PyExc_OverflowError, "an int is below -2**63");
	return PyErr_Occurred() ? -1 : 1;
}

int convert_scalar(PyObject *o, tensor_scalar *s)
{
	if (PyFloat_Check(o)) {
		*s = tensor_scalar_float(PyFloat_AsDouble(o));
		return 1;
	}
	if (PyBool_Check(o)) {
		*s = tensor_scalar_bool(o == Py_True);
		return 1;
	}
	if (PyLong_Check(o))
		return scalar_of_int(o, s);
	if (is_tensor(o))
		return scalar_of_tensor(o, s);
	if (PyComplex_Check(o)) {
		*s = tensor_scalar_complex(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
		return 1;
	}
	if (PyUnicode_Check(o) || PyTuple_Check(o) || PyList_Check(o))
		return 0;
	return is_index(o) ? scalar_of_int(o, s) : convert_numpy_scalar(o, s);
}

PyObject *wrap_scalar(tensor_scalar s)
{
	switch (s.kind) {
	case TENSOR_SCALAR_BOOL:
		return PyBool_FromLong(s.i != 0);
	case TENSOR_SCALAR_INT:
		return PyLong_FromLongLong(s.i);
	case TENSOR_SCALAR_UINT:
		return PyLong_FromUnsignedLongLong(s.u);
	case TENSOR_SCALAR_FLOAT:
		return PyFloat_FromDouble(s.d);
	case TENSOR_SCALAR_COMPLEX:
		return PyComplex_FromDoubles(s.d, s.imag);
	default:
		Py_RETURN_NONE;
	}
}

/* As PyTorch, an integer tensor of one element stands for its number; a bool or a float does not. */
static bool is_int_tensor(PyObject *o)
{
	switch (tensor_dtype(tensor_of(o))) {
	case TENSOR_U8:
	case TENSOR_I8:
	case TENSOR_I16:
	case TENSOR_I32:
	case TENSOR_I64:
	case TENSOR_U16:
	case TENSOR_U32:
	case TENSOR_U64:
		return tensor_dim(tensor_of(o)) == 0;
	default:
		return false;
	}
}

int convert_int(PyObject *o, int64_t *i)
{
	PyObject *n;

	if (likely(PyLong_CheckExact(o))) {
		*i = PyLong_AsLongLong(o);
		return unlikely(*i == -1) && PyErr_Occurred() ? -1 : 1;
	}
	if (is_tensor(o) && is_int_tensor(o))
		return tensor_item_int(tensor_of(o), i) < 0 ? raise_error_int() : 1;
	if (!is_index(o) || is_tensor(o))
		return 0;
	n = PyNumber_Index(o);
	if (!n)
		return -1;
	*i = PyLong_AsLongLong(n);
	Py_DECREF(n);
	return *i == -1 && PyErr_Occurred() ? -1 : 1;
}

int convert_float(PyObject *o, double *f)
{
	tensor_scalar s;
	int res;

	if (PyFloat_CheckExact(o)) {
		*f = PyFloat_AsDouble(o);
		return 1;
	}
	if (PyBool_Check(o))
		return 0;
	res = convert_scalar(o, &s);
	if (res <= 0)
		return res;
	switch (s.kind) {
	case TENSOR_SCALAR_FLOAT:
		*f = s.d;
		return 1;
	case TENSOR_SCALAR_INT:
		*f = (double)s.i;
		return 1;
	case TENSOR_SCALAR_UINT:
		*f = (double)s.u;
		return 1;
	default:
		return 0;
	}
}
