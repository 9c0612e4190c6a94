// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Tensors from objects of Python: numbers, nested sequences, and objects with the buffer protocol. */
#include "internal.h"

#include <math.h>

/* ---- nested sequences ---- */

/* The numbers of a nested sequence, in order. */
struct numbers {
	tensor_scalar *data;
	int64_t n, room;
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim;      /* -1: no number was found yet */
	uint32_t kind; /* the highest */
};

static int add_number(struct numbers *a, tensor_scalar s)
{
	int64_t room = a->room ? 2 * a->room : 64;
	tensor_scalar *data;

	if (a->n == a->room) {
		data = PyMem_Realloc(a->data, room * sizeof(*data));
		if (!data) {
			PyErr_NoMemory();
			return -1;
		}
		a->data = data;
		a->room = room;
	}
	if (s.kind > a->kind)
		a->kind = s.kind;
	a->data[a->n++] = s;
	return 0;
}

static int wrong_shape(void)
{
	PyErr_SetString(PyExc_ValueError, "the nested sequences differ in length or depth");
	return -1;
}

static int add_leaf(struct numbers *a, PyObject *o, int depth)
{
	tensor_scalar s;
	int res;

	if (a->ndim < 0)
		a->ndim = depth;
	if (a->ndim != depth)
		return wrong_shape();
	if (is_tensor(o))
		res = read_item(tensor_of(o), &s) < 0 ? raise_error_int() : 1;
	else
		res = convert_scalar(o, &s);
	if (!res)
		PyErr_Format(PyExc_TypeError, "a tensor cannot be made from %R", Py_TYPE(o));
	return res > 0 ? add_number(a, s) : -1;
}

static bool is_nested(PyObject *o)
{
	if (PyList_Check(o) || PyTuple_Check(o))
		return true;
	if (is_tensor(o))
		return tensor_dim(tensor_of(o)) > 0;
	return !is_number(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && PySequence_Check(o) &&
	       PyObject_Length(o) >= 0;
}

static int add_object(struct numbers *a, PyObject *o, int depth);

static int add_elements(struct numbers *a, PyObject *o, int depth)
{
	/* A copy, which code of the elements cannot change. */
	PyObject *tuple = PySequence_Tuple(o);
	Py_ssize_t n = tuple ? PyTuple_Size(tuple) : -1;
	int err = tuple ? 0 : -1;

	if (!err && a->sizes[depth] >= 0 && a->sizes[depth] != n)
		err = wrong_shape();
	if (!err && a->ndim >= 0 && a->ndim <= depth)
		err = wrong_shape();
	if (!err)
		a->sizes[depth] = n;
	for (Py_ssize_t i = 0; i < n && !err; i++)
		err = add_object(a, PyTuple_GetItem(tuple, i), depth + 1);
	/* An empty sequence is the last dimension. */
	if (!err && !n && a->ndim < 0)
		a->ndim = depth + 1;
	Py_XDECREF(tuple);
	return err;
}

static int add_object(struct numbers *a, PyObject *o, int depth)
{
	int err;

	if (!is_nested(o)) {
		PyErr_Clear();
		return add_leaf(a, o, depth);
	}
	if (depth == TENSOR_MAX_DIMS) {
		PyErr_Format(PyExc_ValueError, "sequences are nested more than %d deep",
			     TENSOR_MAX_DIMS);
		return -1;
	}
	if (Py_EnterRecursiveCall(" in a nested sequence"))
		return -1;
	err = add_elements(a, o, depth);
	Py_LeaveRecursiveCall();
	return err;
}

/* ---- numbers of one kind ---- */

static double as_double(tensor_scalar s)
{
	switch (s.kind) {
	case TENSOR_SCALAR_FLOAT:
	case TENSOR_SCALAR_COMPLEX:
		return s.d;
	case TENSOR_SCALAR_UINT:
		return (double)s.u;
	default:
		return (double)s.i;
	}
}

/* True if an integer dtype has the number. */
static bool in_range(tensor_scalar s, int dtype)
{
	static const struct {
		int64_t low;
		uint64_t high;
	} ranges[TENSOR_DTYPE_COUNT] = {
		[TENSOR_U8] = { 0, UINT8_MAX },		 [TENSOR_I8] = { INT8_MIN, INT8_MAX },
		[TENSOR_I16] = { INT16_MIN, INT16_MAX }, [TENSOR_I32] = { INT32_MIN, INT32_MAX },
		[TENSOR_I64] = { INT64_MIN, INT64_MAX }, [TENSOR_U16] = { 0, UINT16_MAX },
		[TENSOR_U32] = { 0, UINT32_MAX },	 [TENSOR_U64] = { 0, UINT64_MAX },
	};

	if (!ranges[dtype].high || s.kind == TENSOR_SCALAR_BOOL)
		return true;
	switch (s.kind) {
	case TENSOR_SCALAR_UINT:
		return s.u <= ranges[dtype].high;
	case TENSOR_SCALAR_INT:
		return s.i < 0 ? s.i >= ranges[dtype].low : (uint64_t)s.i <= ranges[dtype].high;
	case TENSOR_SCALAR_FLOAT: /* rounded towards 0; the bounds are exact */
		return s.d > (double)ranges[dtype].low - 1 &&
		       s.d < ldexp(1, ranges[dtype].high == UINT64_MAX ? 64 :
				      ranges[dtype].high == INT64_MAX  ? 63 :
									 33);
	default:
		return true;
	}
}

static int check_range(const struct numbers *a, int dtype)
{
	if (a->kind == TENSOR_SCALAR_COMPLEX && dtype != TENSOR_C64 && dtype != TENSOR_C128) {
		PyErr_Format(PyExc_TypeError, "complex numbers cannot be elements of %s",
			     dtype_public_name(dtype));
		return -1;
	}
	for (int64_t i = 0; i < a->n; i++)
		if (!in_range(a->data[i], dtype)) {
			PyErr_Format(PyExc_OverflowError, "element %lld is out of range for %s",
				     (long long)i, dtype_public_name(dtype));
			return -1;
		}
	return 0;
}

static const int dtype_of_kind[] = {
	[TENSOR_SCALAR_NONE] = TENSOR_F32,  [TENSOR_SCALAR_BOOL] = TENSOR_BOOL,
	[TENSOR_SCALAR_INT] = TENSOR_I64,   [TENSOR_SCALAR_UINT] = TENSOR_U64,
	[TENSOR_SCALAR_FLOAT] = TENSOR_F32, [TENSOR_SCALAR_COMPLEX] = TENSOR_C64,
};

/* Stores the numbers in f32, if dtype is that, or in the widest dtype of their kind, in place: no element is larger there. */
static int pack(struct numbers *a, int dtype)
{
	char *to = (char *)a->data;

	if (a->kind == TENSOR_SCALAR_FLOAT && dtype == TENSOR_F32) {
		for (int64_t i = 0; i < a->n; i++) {
			float f = (float)as_double(a->data[i]);

			memcpy(to + 4 * i, &f, 4);
		}
		return TENSOR_F32;
	}
	for (int64_t i = 0; i < a->n; i++) {
		tensor_scalar s = a->data[i];
		double z[2] = { as_double(s), s.kind == TENSOR_SCALAR_COMPLEX ? s.imag : 0 };

		switch (a->kind) {
		case TENSOR_SCALAR_BOOL:
			to[i] = s.i != 0;
			break;
		case TENSOR_SCALAR_INT:
		case TENSOR_SCALAR_UINT:
			memcpy(to + 8 * i, &s.i, 8);
			break;
		case TENSOR_SCALAR_COMPLEX:
			memcpy(to + 16 * i, z, 16);
			break;
		default:
			memcpy(to + 8 * i, z, 8);
		}
	}
	switch (a->kind) {
	case TENSOR_SCALAR_BOOL:
		return TENSOR_BOOL;
	case TENSOR_SCALAR_INT:
		return TENSOR_I64;
	case TENSOR_SCALAR_UINT:
		return TENSOR_U64;
	case TENSOR_SCALAR_COMPLEX:
		return TENSOR_C128;
	default:
		return TENSOR_F64;
	}
}

static PyObject *from_numbers(struct numbers *a, int dtype)
{
	tensor_ints size = { a->sizes, a->ndim };
	int from, to = dtype ? dtype : dtype_of_kind[a->kind];
	static const char nothing[16];
	PyObject *res, *converted;

	if (check_range(a, to) < 0)
		return NULL;
	/* -1 beside 2**63: no integer dtype has both. */
	if (a->kind == TENSOR_SCALAR_UINT && check_range(a, TENSOR_U64) < 0)
		return NULL;
	from = pack(a, to);
	res = wrap_result(tensor_from_data(a->n ? (void *)a->data : nothing, size,
					   TENSOR_OPTIONS(.dtype = from)));
	if (!res || from == to)
		return res;
	converted = wrap_result(tensor_to(tensor_of(res), TENSOR_OPTIONS(.dtype = to)));
	Py_DECREF(res);
	return converted;
}

static PyObject *from_nested(PyObject *o, int dtype)
{
	struct numbers a = { .ndim = -1 };
	PyObject *res = NULL;

	memset(a.sizes, 0xff, sizeof(a.sizes)); /* -1: unknown */
	if (add_object(&a, o, 0) == 0)
		res = from_numbers(&a, dtype);
	PyMem_Free(a.data);
	return res;
}

/* ---- any object ---- */

static PyObject *converted(PyObject *made, int dtype)
{
	PyObject *res;

	if (!made || !dtype || tensor_dtype(tensor_of(made)) == (enum tensor_dtype)dtype)
		return made;
	res = wrap_result(tensor_to(tensor_of(made), TENSOR_OPTIONS(.dtype = dtype)));
	Py_DECREF(made);
	return res;
}

PyObject *tensor_from_object(PyObject *o, int dtype)
{
	PyObject *made;

	if (is_tensor(o))
		return converted(Py_NewRef(o), dtype);
	if (is_number(o) || PyList_Check(o) || PyTuple_Check(o))
		return from_nested(o, dtype);
	if (PyObject_CheckBuffer(o)) {
		made = tensor_from_buffer(o);
		/* NumPy's numbers have buffers of formats that arrays have not. */
		if (made || !PyErr_ExceptionMatches(PyExc_TypeError))
			return converted(made, dtype);
		PyErr_Clear();
	}
	return from_nested(o, dtype);
}

/* tensor(data, *, dtype=None, device=None, requires_grad=False): always a copy. */
PyObject *module_tensor(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "data", "dtype", "device", "requires_grad", NULL };
	PyObject *data, *dtype = Py_None, *device = Py_None, *res, *copy;
	tensor_options options = { 0 };
	int d = TENSOR_DTYPE_NONE, requires_grad = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOp", keywords, &data, &dtype, &device,
					 &requires_grad))
		return NULL;
	switch (dtype == Py_None ? 1 : as_dtype(dtype, &d)) {
	case 0:
		return PyErr_Format(PyExc_TypeError, "tensor: %R is no dtype", dtype);
	case -1:
		return NULL;
	}
	switch (device == Py_None ? 1 : as_device(device, &options.device)) {
	case 0:
		return PyErr_Format(PyExc_TypeError, "tensor: %R is no device", device);
	case -1:
		return NULL;
	}
	res = tensor_from_object(data, d);
	/* The memory may be that of the data. */
	if (res && (is_tensor(data) || PyObject_CheckBuffer(data) || options.device.type)) {
		copy = wrap_result(tensor_detach(tensor_of(res)));
		set_ref(&res, copy);
		copy = res ? wrap_result(tensor_to_opt(tensor_of(res), options, false, true)) :
			     NULL;
		set_ref(&res, copy);
	}
	if (res && requires_grad && tensor_set_requires_grad(tensor_of(res), true) < 0) {
		raise_error();
		Py_CLEAR(res);
	}
	if (res)
		track(res);
	return res;
}
