// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Properties of tensors. */
#include "internal.h"

/* One call for the tuple, instead of one for each element. */
static PyObject *pair_of(int64_t first, int64_t second)
{
	PyObject *a = PyLong_FromLongLong(first), *b = PyLong_FromLongLong(second);
	PyObject *tuple = a && b ? PyTuple_Pack(2, a, b) : NULL;

	Py_XDECREF(a);
	Py_XDECREF(b);
	return tuple;
}

static PyObject *tuple_of(const int64_t *values, Py_ssize_t n)
{
	PyObject *tuple;

	if (n == 2)
		return pair_of(values[0], values[1]);
	tuple = PyTuple_New(n);

	for (Py_ssize_t i = 0; tuple && i < n; i++) {
		PyObject *v = PyLong_FromLongLong(values[i]);

		if (v)
			PyTuple_SetItem(tuple, i, v);
		else
			Py_CLEAR(tuple);
	}
	return tuple;
}

/* The shape that the object has kept. resize_() and out= change that of the tensor. */
static bool shape_is_kept(const PyTensor *o, tensor_ints shape)
{
	if (!o->shape || o->shape_ndim != shape.len)
		return false;
	for (int64_t i = 0; i < shape.len; i++)
		if (o->shape_sizes[i] != shape.data[i])
			return false;
	return true;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
	PyTensor *o = (PyTensor *)self;
	tensor_ints shape = tensor_shape(o->t);
	int64_t sizes[TENSOR_MAX_DIMS];
	PyObject *tuple;

	if (likely(shape_is_kept(o, shape)))
		return Py_NewRef(o->shape);
	/* Allocating the tuple may run code of the program, which resizes the tensor. */
	memcpy(sizes, shape.data, shape.len * sizeof(*sizes));
	tuple = tuple_of(sizes, shape.len);
	if (!tuple || shape.len > (int64_t)COUNT(o->shape_sizes))
		return tuple;
	o->shape_ndim = shape.len;
	memcpy(o->shape_sizes, sizes, shape.len * sizeof(*sizes));
	set_ref(&o->shape, Py_NewRef(tuple));
	return tuple;
}

static PyObject *get_strides(PyObject *self, void *unused)
{
	int64_t strides[TENSOR_MAX_DIMS];
	int n = tensor_dim(tensor_of(self));

	memcpy(strides, tensor_strides(tensor_of(self)), n * sizeof(*strides));
	return tuple_of(strides, n);
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
	return PyLong_FromLong(tensor_dim(tensor_of(self)));
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
	return wrap_dtype(tensor_dtype(tensor_of(self)));
}

static PyObject *get_layout(PyObject *self, void *unused)
{
	return wrap_layout(tensor_layout(tensor_of(self)));
}

static PyObject *get_device(PyObject *self, void *unused)
{
	return wrap_device(tensor_get_device(tensor_of(self)));
}

static PyObject *get_itemsize(PyObject *self, void *unused)
{
	return PyLong_FromSize_t(tensor_itemsize(tensor_dtype(tensor_of(self))));
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
	tensor *t = tensor_of(self);

	return PyLong_FromLongLong(tensor_numel(t) * (int64_t)tensor_itemsize(tensor_dtype(t)));
}

static PyObject *get_requires_grad(PyObject *self, void *unused)
{
	return PyBool_FromLong(tensor_requires_grad(tensor_of(self)));
}

static int set_requires_grad(PyObject *self, PyObject *value, void *unused)
{
	if (!value || !PyBool_Check(value)) {
		PyErr_SetString(PyExc_TypeError, "requires_grad must be True or False");
		return -1;
	}
	if (tensor_set_requires_grad(tensor_of(self), value == Py_True) < 0)
		return raise_error_int();
	track(self);
	return 0;
}

static PyObject *get_is_leaf(PyObject *self, void *unused)
{
	return PyBool_FromLong(tensor_is_leaf(tensor_of(self)));
}

static PyObject *get_grad(PyObject *self, void *unused)
{
	tensor *grad = tensor_grad_get(tensor_of(self));
	PyObject *o = wrap_borrowed(grad);

	tensor_release(grad);
	return o;
}

static int set_grad(PyObject *self, PyObject *value, void *unused)
{
	if (value && value != Py_None && !is_tensor(value)) {
		PyErr_Format(PyExc_TypeError, "grad must be a tensor or None, got %R",
			     Py_TYPE(value));
		return -1;
	}
	value = value == Py_None ? NULL : value;
	return tensor_set_grad(tensor_of(self), value ? tensor_of(value) : NULL) < 0 ?
		       raise_error_int() :
		       0;
}

static PyObject *get_retains_grad(PyObject *self, void *unused)
{
	return PyBool_FromLong(tensor_retains_grad(tensor_of(self)));
}

static PyObject *get_version(PyObject *self, void *unused)
{
	return PyLong_FromUnsignedLong(tensor_version(tensor_of(self)));
}

static PyObject *get_is_quantized(PyObject *self, void *unused)
{
	return PyBool_FromLong(tensor_keys(tensor_of(self)) >> TENSOR_KEY_QUANTIZED_CPU & 1);
}

static PyObject *get_data(PyObject *self, void *unused)
{
	return wrap_like(self, tensor_detach(tensor_of(self)));
}

static PyObject *get_cdata(PyObject *self, void *unused)
{
	return PyLong_FromVoidPtr(tensor_of(self));
}

static PyObject *get_T(PyObject *self, void *unused)
{
	return wrap_like(self, tensor_numpy_T(tensor_of(self)));
}

static PyObject *get_mT(PyObject *self, void *unused)
{
	return wrap_like(self, tensor_mT(tensor_of(self)));
}

static PyObject *get_H(PyObject *self, void *unused)
{
	return wrap_like(self, tensor_matrix_H(tensor_of(self)));
}

static PyObject *get_mH(PyObject *self, void *unused)
{
	return wrap_like(self, tensor_mH(tensor_of(self)));
}

static PyObject *get_real(PyObject *self, void *unused)
{
	return wrap_like(self, tensor_real(tensor_of(self)));
}

static PyObject *get_imag(PyObject *self, void *unused)
{
	return wrap_like(self, tensor_imag(tensor_of(self)));
}

PyGetSetDef tensor_getset[] = {
	{ "shape", get_shape, NULL, "The sizes of the dimensions: a tuple." },
	{ "strides", get_strides, NULL, "The strides of the dimensions in elements: a tuple." },
	{ "ndim", get_ndim, NULL, "The number of dimensions." },
	{ "dtype", get_dtype, NULL, "The type of the elements." },
	{ "layout", get_layout, NULL, "How the elements are stored." },
	{ "device", get_device, NULL, "The device that the memory belongs to." },
	{ "itemsize", get_itemsize, NULL, "Bytes of an element." },
	{ "nbytes", get_nbytes, NULL, "Bytes of all elements." },
	{ "requires_grad", get_requires_grad, set_requires_grad,
	  "True if operators on the tensor are recorded; can be set on leaves." },
	{ "is_leaf", get_is_leaf, NULL, "True unless a recorded operator returned the tensor." },
	{ "grad", get_grad, set_grad, "The gradient that backward() accumulated, or None." },
	{ "retains_grad", get_retains_grad, NULL, "True after retain_grad()." },
	{ "is_quantized", get_is_quantized, NULL, "True for a quantized tensor." },
	{ "_version", get_version, NULL, "The number of in-place changes of the memory." },
	{ "_cdata", get_cdata, NULL,
	  "The address of the tensor of the C library, which lives as long "
	  "as the object." },
	{ "data", get_data, NULL, "A tensor on the same memory without history, as detach()." },
	{ "T", get_T, NULL, "The dimensions in reverse order." },
	{ "mT", get_mT, NULL, "The last two dimensions exchanged." },
	{ "H", get_H, NULL, "The conjugate transpose of a matrix." },
	{ "mH", get_mH, NULL, "The conjugate transpose of the last two dimensions." },
	{ "real", get_real, NULL, "The real parts: a view." },
	{ "imag", get_imag, NULL, "The imaginary parts: a view." },
	{ NULL },
};
