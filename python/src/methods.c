// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Methods of tensors that are no operators. */
#include "internal.h"

static PyObject *m_dim(PyObject *self, PyObject *unused)
{
	return PyLong_FromLong(tensor_dim(tensor_of(self)));
}

static PyObject *m_numel(PyObject *self, PyObject *unused)
{
	return PyLong_FromLongLong(tensor_numel(tensor_of(self)));
}

static PyObject *m_item(PyObject *self, PyObject *unused)
{
	tensor *t = tensor_of(self);
	tensor_scalar s;

	return read_item(t, &s) < 0 ? raise_error() : wrap_scalar(s);
}

static PyObject *m_data_ptr(PyObject *self, PyObject *unused)
{
	return PyLong_FromVoidPtr((void *)tensor_device_data(tensor_of(self)));
}

static PyObject *m_element_size(PyObject *self, PyObject *unused)
{
	return PyLong_FromSize_t(tensor_itemsize(tensor_dtype(tensor_of(self))));
}

static PyObject *m_storage_offset(PyObject *self, PyObject *unused)
{
	return PyLong_FromLongLong(tensor_storage_offset(tensor_of(self)));
}

/* A dimension from -n to n - 1. */
static int as_dim(PyObject *o, int n, int *dim)
{
	int64_t i;
	int res = convert_int(o, &i);

	if (!res)
		PyErr_Format(PyExc_TypeError, "a dimension is an int, got %R", Py_TYPE(o));
	if (res <= 0)
		return -1;
	if (i < -n || i >= n) {
		PyErr_Format(PyExc_IndexError, "dimension %lld of a tensor with %d dimensions",
			     (long long)i, n);
		return -1;
	}
	*dim = (int)(i < 0 ? i + n : i);
	return 0;
}

static PyObject *m_stride(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "dim", NULL };
	tensor *t = tensor_of(self);
	PyObject *o = Py_None;
	int dim;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", keywords, &o))
		return NULL;
	if (o == Py_None)
		return PyObject_GetAttrString(self, "strides");
	if (as_dim(o, tensor_dim(t), &dim) < 0)
		return NULL;
	return PyLong_FromLongLong(tensor_stride(t, dim));
}

static PyObject *m_is_contiguous(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "memory_format", NULL };
	PyObject *o = NULL;
	int format = TENSOR_CONTIGUOUS_FORMAT;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", keywords, &o))
		return NULL;
	if (o && as_memory_format(o, &format) <= 0)
		return PyErr_Format(PyExc_TypeError, "%R is no memory format", o);
	return PyBool_FromLong(tensor_is_contiguous_as(tensor_of(self), format));
}

static PyObject *m_requires_grad_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "requires_grad", NULL };
	PyObject *value = Py_True;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", keywords, &value))
		return NULL;
	if (PyObject_SetAttrString(self, "requires_grad", value) < 0)
		return NULL;
	return Py_NewRef(self);
}

static PyObject *m_retain_grad(PyObject *self, PyObject *unused)
{
	return tensor_retain_grad(tensor_of(self)) < 0 ? raise_error() : Py_NewRef(Py_None);
}

/* ---- conversions ---- */

/* The conversion that the arguments of to() describe. */
struct conversion {
	tensor_options options;
	bool non_blocking, copy;
};

static int conversion_argument(struct conversion *c, PyObject *o)
{
	int value, res;

	if (is_tensor(o)) {
		c->options.dtype = tensor_dtype(tensor_of(o));
		c->options.device = tensor_get_device(tensor_of(o));
		return 0;
	}
	/* A string is the name of a device, as in PyTorch. */
	res = PyUnicode_Check(o) ? 0 : as_dtype(o, &value);
	if (res > 0)
		c->options.dtype = value;
	if (!res)
		res = as_device(o, &c->options.device);
	if (!res)
		PyErr_Format(PyExc_TypeError, "to: %R is neither a dtype nor a device nor a tensor",
			     o);
	return res > 0 ? 0 : -1;
}

static int conversion_options(struct conversion *c, PyObject *dtype, PyObject *device,
			      PyObject *format)
{
	int value = 0, res = 1;

	if (dtype != Py_None) {
		res = as_dtype(dtype, &value);
		c->options.dtype = value;
	}
	if (res > 0 && device != Py_None)
		res = as_device(device, &c->options.device);
	if (res > 0 && format != Py_None) {
		res = as_memory_format(format, &value);
		c->options.memory_format = value;
	}
	if (!res)
		PyErr_SetString(PyExc_TypeError,
				"to: expected dtype=, device= or memory_format= of these types");
	return res > 0 ? 0 : -1;
}

/* to(dtype), to(device), to(device, dtype), to(tensor), and the same by name. */
static PyObject *m_to(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {
		"dtype", "device", "memory_format", "non_blocking", "copy", NULL
	};
	PyObject *dtype = Py_None, *device = Py_None, *format = Py_None, *empty;
	int non_blocking = 0, copy = 0, ok;
	struct conversion c = { 0 };
	PyThreadState *state;
	tensor *t, *from;

	empty = PyTuple_New(0);
	if (!empty)
		return NULL;
	ok = PyArg_ParseTupleAndKeywords(empty, kwargs, "|$OOOpp", keywords, &dtype, &device,
					 &format, &non_blocking, &copy);
	Py_DECREF(empty);
	if (!ok)
		return NULL;
	for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++)
		if (conversion_argument(&c, PyTuple_GetItem(args, i)) < 0)
			return NULL;
	if (conversion_options(&c, dtype, device, format) < 0)
		return NULL;
	from = tensor_of(self);
	hold(from);
	state = tensor_numel(from) < RELEASE_ABOVE ? NULL : PyEval_SaveThread();
	t = tensor_to_opt(from, c.options, non_blocking, copy);
	if (state)
		PyEval_RestoreThread(state);
	tensor_release(from);
	return wrap_like(self, t);
}

static PyObject *to_dtype(PyObject *self, enum tensor_dtype dtype)
{
	return wrap_like(self, tensor_to(tensor_of(self), TENSOR_OPTIONS(.dtype = dtype)));
}

static PyObject *m_bool(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_BOOL);
}

static PyObject *m_byte(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_U8);
}

static PyObject *m_char(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_I8);
}

static PyObject *m_short(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_I16);
}

static PyObject *m_int(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_I32);
}

static PyObject *m_long(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_I64);
}

static PyObject *m_half(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_F16);
}

static PyObject *m_bfloat16(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_BF16);
}

static PyObject *m_float(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_F32);
}

static PyObject *m_double(PyObject *self, PyObject *unused)
{
	return to_dtype(self, TENSOR_F64);
}

static PyObject *m_cpu(PyObject *self, PyObject *unused)
{
	return wrap_like(self,
			 tensor_to(tensor_of(self), TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU)));
}

/* x.where(condition, other): the condition is the operator's first argument. */
static PyObject *m_where(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
	static struct py_function *where;
	PyObject *ordered[3];

	if (nargs != 2)
		return PyErr_Format(PyExc_TypeError, "where(condition, other): got %zd arguments",
				    nargs);
	if (!where)
		where = find_function("where");
	ordered[0] = args[0];
	ordered[1] = self;
	ordered[2] = args[1];
	return call_function(where, NULL, ordered, 3, NULL);
}

/* The text of the library: it knows the parts of every layout. */
static PyObject *m_format(PyObject *self, PyObject *unused)
{
	int n = tensor_format(tensor_of(self), NULL, 0);
	PyObject *text;
	char *buf;

	if (n < 0)
		return raise_error();
	buf = PyMem_Malloc((size_t)n + 1);
	if (!buf)
		return PyErr_NoMemory();
	n = tensor_format(tensor_of(self), buf, (size_t)n + 1);
	text = n < 0 ? raise_error() : PyUnicode_FromString(buf);
	PyMem_Free(buf);
	return text;
}

static PyObject *m_complex(PyObject *self, PyObject *unused)
{
	tensor *t = tensor_of(self);
	tensor_scalar s;

	if (tensor_numel(t) != 1)
		return PyErr_Format(PyExc_ValueError,
				    "a tensor with %lld elements has no single value",
				    (long long)tensor_numel(t));
	if (read_item(t, &s) < 0)
		return raise_error();
	if (s.kind == TENSOR_SCALAR_COMPLEX)
		return PyComplex_FromDoubles(s.d, s.imag);
	if (s.kind == TENSOR_SCALAR_UINT)
		return PyComplex_FromDoubles((double)s.u, 0);
	return PyComplex_FromDoubles(s.kind == TENSOR_SCALAR_FLOAT ? s.d : (double)s.i, 0);
}

/* A tensor of a buffer that processes share has its file descriptor. */
static PyObject *m_share_memory_(PyObject *self, PyObject *unused)
{
	tensor *t = tensor_of(self);
	PyThreadState *state;
	int err;

	begin_call();
	state = PyEval_SaveThread();
	err = tensor_share_memory(t);
	PyEval_RestoreThread(state);
	end_call();
	return err < 0 ? raise_error() : Py_NewRef(self);
}

static PyObject *m_count_own_writes_(PyObject *self, PyObject *unused)
{
	return tensor_count_own_writes(tensor_of(self)) < 0 ? raise_error() : Py_NewRef(self);
}

static PyObject *m_is_shared(PyObject *self, PyObject *unused)
{
	struct tensor_buffer_info info = { .size = sizeof(info) };

	return PyBool_FromLong(tensor_buffer_info(tensor_of(self), &info) == 0);
}

/* A view of the same memory as an object of a subclass. */
static PyObject *m_as_subclass(PyObject *self, PyObject *type)
{
	if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, tensor_type))
		return PyErr_Format(PyExc_TypeError, "as_subclass: %R is no subclass of Tensor",
				    type);
	return wrap_as((PyTypeObject *)type, tensor_alias(tensor_of(self)));
}

#define CONVERSION(name, dtype)                                        \
	{                                                              \
#name, m_##name, METH_NOARGS,                          \
			#name "($self, /)\n--\n\nThe tensor in " dtype \
			      ", itself if it has that dtype."         \
	}

PyMethodDef tensor_methods[] = {
	{ "dim", m_dim, METH_NOARGS, "dim($self, /)\n--\n\nThe number of dimensions." },
	{ "numel", m_numel, METH_NOARGS, "numel($self, /)\n--\n\nThe number of elements." },
	{ "item", m_item, METH_NOARGS,
	  "item($self, /)\n--\n\nThe single element as a number of Python." },
	{ "data_ptr", m_data_ptr, METH_NOARGS,
	  "data_ptr($self, /)\n--\n\nThe address of the first element." },
	{ "element_size", m_element_size, METH_NOARGS,
	  "element_size($self, /)\n--\n\nBytes of an element." },
	{ "storage_offset", m_storage_offset, METH_NOARGS,
	  "storage_offset($self, /)\n--\n\nElements before the first one in the storage." },
	{ "stride", (PyCFunction)(void (*)(void))m_stride, METH_VARARGS | METH_KEYWORDS,
	  "stride($self, dim=None)\n--\n\nThe stride of a dimension in elements, or all." },
	{ "is_contiguous", (PyCFunction)(void (*)(void))m_is_contiguous,
	  METH_VARARGS | METH_KEYWORDS,
	  "is_contiguous($self, memory_format=contiguous_format)\n--\n\n"
	  "True if the elements are in the order of the memory format without gaps." },
	{ "requires_grad_", (PyCFunction)(void (*)(void))m_requires_grad_,
	  METH_VARARGS | METH_KEYWORDS,
	  "requires_grad_($self, requires_grad=True)\n--\n\nSet requires_grad. Returns the tensor." },
	{ "retain_grad", m_retain_grad, METH_NOARGS,
	  "retain_grad($self, /)\n--\n\nKeep the gradient of a result in its grad." },
	{ "to", (PyCFunction)(void (*)(void))m_to, METH_VARARGS | METH_KEYWORDS,
	  "to(*args, dtype=None, device=None, memory_format=None, non_blocking=False, copy=False)\n\n"
	  "The tensor with another dtype, on another device; itself if nothing changes." },
	CONVERSION(bool, "bool"),
	CONVERSION(byte, "uint8"),
	CONVERSION(char, "int8"),
	CONVERSION(short, "int16"),
	CONVERSION(int, "int32"),
	CONVERSION(long, "int64"),
	CONVERSION(half, "float16"),
	CONVERSION(bfloat16, "bfloat16"),
	CONVERSION(float, "float32"),
	CONVERSION(double, "float64"),
	{ "cpu", m_cpu, METH_NOARGS, "cpu($self, /)\n--\n\nThe tensor in host memory." },
	{ "where", (PyCFunction)(void (*)(void))m_where, METH_FASTCALL,
	  "where($self, condition, other, /)\n--\n\n"
	  "Elements of the tensor where condition is true, else of other." },
	{ "_format", m_format, METH_NOARGS, "_format($self, /)\n--\n\nThe text of the library." },
	{ "__complex__", m_complex, METH_NOARGS, NULL },
	{ "tolist", tensor_tolist, METH_NOARGS,
	  "tolist($self, /)\n--\n\n"
	  "The elements as numbers of Python, in nested lists; a number without dimensions." },
	{ "share_memory_", m_share_memory_, METH_NOARGS,
	  "share_memory_($self, /)\n--\n\n"
	  "Move the storage to a buffer that other processes can share. Returns the tensor." },
	{ "count_own_writes_", m_count_own_writes_, METH_NOARGS,
	  "count_own_writes_($self, /)\n--\n\n"
	  "Let _version count the changes by this process alone, so that backward accepts shared parameters that other "
	  "processes change meanwhile. Returns the tensor." },
	{ "is_shared", m_is_shared, METH_NOARGS,
	  "is_shared($self, /)\n--\n\n"
	  "True if the memory is a buffer that processes can share; see share_memory_()." },
	{ "as_subclass", m_as_subclass, METH_O,
	  "as_subclass($self, type, /)\n--\n\nA view of the memory as an object of a subclass." },
	{ NULL },
};
