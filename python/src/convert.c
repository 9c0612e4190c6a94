// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Conversion of Python's objects to arguments of the library, and of numbers back. */
#include "internal.h"


/* ---- memory of one call ---- */

struct arena_block {
	struct arena_block *next;
	_Alignas(16) char data[];
};

void arena_init(struct arena *a)
{
	a->more = NULL;
	a->nkept = 0;
	a->used = 0;
}

void arena_free(struct arena *a)
{
	while (unlikely(a->more)) {
		struct arena_block *next = a->more->next;

		PyMem_Free(a->more);
		a->more = next;
	}
	for (int i = 0; i < a->nkept; i++)
		Py_DECREF(a->kept[i]);
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b;
	void *p;

	size = (size + 15) & ~(size_t)15;
	if (likely(size <= sizeof(a->first) - a->used)) {
		p = a->first + a->used;
		a->used += size;
		return p;
	}
	b = PyMem_Malloc(sizeof(*b) + size);
	if (!b) {
		PyErr_NoMemory();
		return NULL;
	}
	b->next = a->more;
	a->more = b;
	return b->data;
}

int arena_keep(struct arena *a, PyObject *o)
{
	if (a->nkept == (int)COUNT(a->kept)) {
		Py_DECREF(o);
		PyErr_SetString(PyExc_TypeError, "too many lists among the arguments");
		return -1;
	}
	a->kept[a->nkept++] = o;
	return 0;
}

/* ---- numbers ---- */

bool is_number(PyObject *o)
{
	return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o);
}

/* True for objects with __index__ that are no bool: int, and NumPy's integers. */
static bool is_index(PyObject *o)
{
	if (likely(PyLong_CheckExact(o)))
		return true;
	if (PyBool_Check(o) || is_numpy_bool(o))
		return false;
	return PyIndex_Check(o);
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

static int convert_float(PyObject *o, double *f)
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

/* ---- lists ---- */

/* A tuple of the elements, kept in the arena, so that code which runs meanwhile cannot change it.
 * NULL without an exception: no list or tuple. */
static PyObject *keep_elements(struct arena *a, PyObject *o, Py_ssize_t *n)
{
	PyObject *tuple;

	if (!PyTuple_Check(o) && !PyList_Check(o))
		return NULL;
	/* A tuple that the caller holds cannot change. */
	tuple = PyTuple_CheckExact(o) ? Py_NewRef(o) : PySequence_Tuple(o);
	if (!tuple || arena_keep(a, tuple) < 0)
		return NULL;
	*n = PyTuple_Size(tuple);
	return tuple;
}

static int not_a_list(void)
{
	return PyErr_Occurred() ? -1 : 0;
}

int convert_ints(struct arena *a, PyObject *o, tensor_ints *ints)
{
	Py_ssize_t n;
	PyObject *tuple = keep_elements(a, o, &n);
	int64_t *data;
	int res = 1;

	if (!tuple)
		return not_a_list();
	data = arena_alloc(a, n * sizeof(*data));
	if (!data)
		return -1;
	for (Py_ssize_t i = 0; res > 0 && i < n; i++)
		res = convert_int(PyTuple_GetItem(tuple, i), &data[i]);
	*ints = (tensor_ints){ data, n };
	return res;
}

static int convert_floats(struct arena *a, PyObject *o, tensor_floats *floats)
{
	Py_ssize_t n;
	PyObject *tuple = keep_elements(a, o, &n);
	double *data;
	int res = 1;

	if (!tuple)
		return not_a_list();
	data = arena_alloc(a, n * sizeof(*data));
	if (!data)
		return -1;
	for (Py_ssize_t i = 0; res > 0 && i < n; i++)
		res = convert_float(PyTuple_GetItem(tuple, i), &data[i]);
	*floats = (tensor_floats){ data, n };
	return res;
}

static int convert_scalars(struct arena *a, PyObject *o, tensor_scalars *scalars)
{
	Py_ssize_t n;
	PyObject *tuple = keep_elements(a, o, &n);
	tensor_scalar *data;
	int res = 1;

	if (!tuple)
		return not_a_list();
	data = arena_alloc(a, n * sizeof(*data));
	if (!data)
		return -1;
	for (Py_ssize_t i = 0; res > 0 && i < n; i++)
		res = convert_scalar(PyTuple_GetItem(tuple, i), &data[i]);
	*scalars = (tensor_scalars){ data, n };
	return res;
}

static int convert_bools(PyObject *o, uint64_t *bits)
{
	Py_ssize_t n = PyTuple_Check(o) ? PyTuple_Size(o) : PyList_Check(o) ? PyList_Size(o) : -1;

	*bits = 0;
	if (n < 0 || n > 64)
		return 0;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *e = PyTuple_Check(o) ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i);

		if (!e || !PyBool_Check(e))
			return PyErr_Occurred() ? -1 : 0;
		*bits |= (uint64_t)(e == Py_True) << i;
	}
	return 1;
}

static int convert_tensors(struct arena *a, PyObject *o, bool optional, tensor_list *list)
{
	Py_ssize_t n;
	PyObject *tuple = keep_elements(a, o, &n);
	tensor **data;

	if (!tuple)
		return not_a_list();
	data = arena_alloc(a, n * sizeof(*data));
	if (!data)
		return -1;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *e = PyTuple_GetItem(tuple, i);

		if (is_tensor(e))
			data[i] = tensor_of(e);
		else if (optional && e == Py_None)
			data[i] = tensor_none;
		else
			return 0;
	}
	*list = (tensor_list){ data, n };
	return 1;
}

/* ---- arguments ---- */

static int convert_bool(PyObject *o, bool *b)
{
	tensor_scalar s;
	int res;

	if (PyBool_Check(o)) {
		*b = o == Py_True;
		return 1;
	}
	if (is_number(o) || is_tensor(o))
		return 0;
	/* numpy.bool_ */
	res = convert_scalar(o, &s);
	if (res > 0 && s.kind != TENSOR_SCALAR_BOOL)
		return 0;
	*b = res > 0 && s.i;
	return res;
}

/* Optional arguments and those with None as default: None is not given. */
static bool takes_none(enum tensor_arg_type type)
{
	switch (type) {
	case TENSOR_ARG_TENSOR:
	case TENSOR_ARG_TENSOR_LIST:
	case TENSOR_ARG_INT:
	case TENSOR_ARG_INTS:
	case TENSOR_ARG_BOOL:
	case TENSOR_ARG_FLOAT:
	case TENSOR_ARG_SCALAR:
	case TENSOR_ARG_BOOLS:
	case TENSOR_ARG_FLOATS:
	case TENSOR_ARG_STRING:
	case TENSOR_ARG_SCALARS:
	case TENSOR_ARG_OPTIONAL_TENSOR_LIST:
		return false;
	default:
		return true;
	}
}

static int convert_enum(int (*as)(PyObject *o, int *value), PyObject *o, tensor_value *v)
{
	int value = 0, res = as(o, &value);

	v->kind = TENSOR_VALUE_INT;
	v->i = value;
	return res;
}

static int convert_string(PyObject *o, tensor_value *v)
{
	Py_ssize_t n;

	if (!PyUnicode_Check(o))
		return 0;
	v->kind = TENSOR_VALUE_STRING;
	v->s = PyUnicode_AsUTF8AndSize(o, &n);
	if (v->s && strlen(v->s) != (size_t)n) {
		PyErr_SetString(PyExc_ValueError, "embedded null character");
		return -1;
	}
	return v->s ? 1 : -1;
}

static int convert_plain(struct arena *a, enum tensor_arg_type type, PyObject *o, tensor_value *v)
{
	switch (type) {
	case TENSOR_ARG_INT:
	case TENSOR_ARG_OPTIONAL_INT:
		v->kind = TENSOR_VALUE_INT;
		return convert_int(o, &v->i);
	case TENSOR_ARG_BOOL:
	case TENSOR_ARG_OPTIONAL_BOOL:
		v->kind = TENSOR_VALUE_BOOL;
		return convert_bool(o, &v->b);
	case TENSOR_ARG_FLOAT:
	case TENSOR_ARG_OPTIONAL_FLOAT:
		v->kind = TENSOR_VALUE_FLOAT;
		return convert_float(o, &v->f);
	case TENSOR_ARG_SCALAR:
	case TENSOR_ARG_OPTIONAL_SCALAR:
		v->kind = TENSOR_VALUE_SCALAR;
		return convert_scalar(o, &v->scalar);
	case TENSOR_ARG_DTYPE:
		return convert_enum(as_dtype, o, v);
	case TENSOR_ARG_LAYOUT:
		return convert_enum(as_layout, o, v);
	case TENSOR_ARG_MEMORY_FORMAT:
		return convert_enum(as_memory_format, o, v);
	case TENSOR_ARG_DEVICE:
		v->kind = TENSOR_VALUE_DEVICE;
		return as_device(o, &v->device);
	case TENSOR_ARG_GENERATOR:
		if (Py_TYPE(o) != generator_type)
			return 0;
		v->kind = TENSOR_VALUE_GENERATOR;
		v->generator = ((PyGenerator *)o)->g;
		return 1;
	case TENSOR_ARG_STRING:
	case TENSOR_ARG_OPTIONAL_STRING:
		return convert_string(o, v);
	default:
		return 0;
	}
}

static int convert_list(struct arena *a, enum tensor_arg_type type, PyObject *o, tensor_value *v)
{
	int res;

	switch (type) {
	case TENSOR_ARG_TENSOR_LIST:
	case TENSOR_ARG_OPTIONAL_TENSOR_LIST:
		v->kind = TENSOR_VALUE_TENSOR_LIST;
		return convert_tensors(a, o, type == TENSOR_ARG_OPTIONAL_TENSOR_LIST, &v->list);
	case TENSOR_ARG_INTS:
	case TENSOR_ARG_OPTIONAL_INTS:
		/* A number stands for a list of one, which the operator repeats if it wants more. */
		v->kind = TENSOR_VALUE_INT;
		res = convert_int(o, &v->i);
		if (res)
			return res;
		v->kind = TENSOR_VALUE_INTS;
		return convert_ints(a, o, &v->ints);
	case TENSOR_ARG_FLOATS:
	case TENSOR_ARG_OPTIONAL_FLOATS:
		v->kind = TENSOR_VALUE_FLOATS;
		return convert_floats(a, o, &v->floats);
	case TENSOR_ARG_SCALARS:
		v->kind = TENSOR_VALUE_SCALARS;
		return convert_scalars(a, o, &v->scalars);
	case TENSOR_ARG_BOOLS:
		v->kind = TENSOR_VALUE_BOOLS;
		return convert_bools(o, &v->bools);
	default:
		return convert_plain(a, type, o, v);
	}
}

int convert(struct arena *a, enum tensor_arg_type type, PyObject *o, tensor_value *v)
{
	if (type == TENSOR_ARG_TENSOR || type == TENSOR_ARG_OPTIONAL_TENSOR) {
		if (likely(is_tensor(o))) {
			v->kind = TENSOR_VALUE_TENSOR;
			v->t = tensor_of(o);
			return 1;
		}
		v->kind = TENSOR_VALUE_NONE;
		return o == Py_None && type == TENSOR_ARG_OPTIONAL_TENSOR;
	}
	if (o == Py_None) {
		v->kind = TENSOR_VALUE_NONE;
		return takes_none(type);
	}
	return convert_list(a, type, o, v);
}
