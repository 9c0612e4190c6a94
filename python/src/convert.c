// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Conversion of Python's objects to arguments of the library. */
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

/* Converts each element by one(), to an array in the arena. A template: each caller has a copy, with its size and one(). */
static inline __attribute__((always_inline)) int convert_each(struct arena *a, PyObject *o,
							      size_t size,
							      int (*one)(PyObject *o, void *to),
							      void *list, int64_t *len)
{
	Py_ssize_t n;
	PyObject *tuple = keep_elements(a, o, &n);
	char *data;
	int res = 1;

	if (!tuple)
		return not_a_list();
	data = arena_alloc(a, n * size);
	if (!data)
		return -1;
	for (Py_ssize_t i = 0; res > 0 && i < n; i++)
		res = one(PyTuple_GetItem(tuple, i), data + i * size);
	memcpy(list, &data, sizeof(data));
	*len = n;
	return res;
}

static int int_element(PyObject *o, void *to)
{
	return convert_int(o, to);
}

static int float_element(PyObject *o, void *to)
{
	return convert_float(o, to);
}

static int scalar_element(PyObject *o, void *to)
{
	return convert_scalar(o, to);
}

static int tensor_element(PyObject *o, void *to)
{
	*(tensor **)to = is_tensor(o) ? tensor_of(o) : NULL;
	return is_tensor(o);
}

static int optional_tensor_element(PyObject *o, void *to)
{
	if (o != Py_None)
		return tensor_element(o, to);
	*(tensor **)to = tensor_none;
	return 1;
}

int convert_ints(struct arena *a, PyObject *o, tensor_ints *ints)
{
	return convert_each(a, o, sizeof(int64_t), int_element, &ints->data, &ints->len);
}

static int convert_floats(struct arena *a, PyObject *o, tensor_floats *floats)
{
	return convert_each(a, o, sizeof(double), float_element, &floats->data, &floats->len);
}

static int convert_scalars(struct arena *a, PyObject *o, tensor_scalars *scalars)
{
	return convert_each(a, o, sizeof(tensor_scalar), scalar_element, &scalars->data,
			    &scalars->len);
}

static int convert_tensors(struct arena *a, PyObject *o, bool optional, tensor_list *list)
{
	return convert_each(a, o, sizeof(tensor *),
			    optional ? optional_tensor_element : tensor_element, &list->data,
			    &list->len);
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
		res = PyTuple_CheckExact(o) ? 0 : convert_int(o, &v->i);
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
