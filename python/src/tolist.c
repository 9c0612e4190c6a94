// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tolist(): the elements as numbers of Python, in nested lists. */
#include "internal.h"

/* A strided tensor in host memory. */
struct walk {
	const int64_t *sizes, *strides;
	int ndim;
	enum tensor_dtype dtype;
	int64_t itemsize;
};

static PyObject *number_at(const char *p, enum tensor_dtype dtype)
{
	switch (dtype) {
	case TENSOR_BOOL:
		return PyBool_FromLong(*(const uint8_t *)p);
	case TENSOR_U8:
		return PyLong_FromLong(*(const uint8_t *)p);
	case TENSOR_I8:
		return PyLong_FromLong(*(const int8_t *)p);
	case TENSOR_I16:
		return PyLong_FromLong(*(const int16_t *)p);
	case TENSOR_U16:
		return PyLong_FromLong(*(const uint16_t *)p);
	case TENSOR_I32:
		return PyLong_FromLong(*(const int32_t *)p);
	case TENSOR_U32:
		return PyLong_FromUnsignedLong(*(const uint32_t *)p);
	case TENSOR_I64:
		return PyLong_FromLongLong(*(const int64_t *)p);
	case TENSOR_U64:
		return PyLong_FromUnsignedLongLong(*(const uint64_t *)p);
	case TENSOR_F32:
		return PyFloat_FromDouble(*(const float *)p);
	case TENSOR_F64:
		return PyFloat_FromDouble(*(const double *)p);
	case TENSOR_C64:
		return PyComplex_FromDoubles(((const float *)p)[0], ((const float *)p)[1]);
	case TENSOR_C128:
		return PyComplex_FromDoubles(((const double *)p)[0], ((const double *)p)[1]);
	default:
		return PyErr_Format(PyExc_TypeError, "tolist: no numbers for the dtype %s",
				    dtype_public_name(dtype));
	}
}

static PyObject *list_at(const struct walk *w, int dim, const char *p)
{
	int64_t n;
	PyObject *list;

	if (dim == w->ndim)
		return number_at(p, w->dtype);
	n = w->sizes[dim];
	list = PyList_New(n);
	for (int64_t i = 0; list && i < n; i++) {
		/* The stride of one element may be any number. */
		const char *at = p + i * w->strides[dim] * w->itemsize;
		PyObject *o = dim == w->ndim - 1 ? number_at(at, w->dtype) :
						   list_at(w, dim + 1, at);

		if (o)
			PyList_SetItem(list, i, o);
		else
			Py_CLEAR(list);
	}
	return list;
}

/* Small floats have no type of their own in C; f32 has all their values. */
static bool is_small_float(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F16 || dtype == TENSOR_BF16 || dtype == TENSOR_F8_E4M3FN ||
	       dtype == TENSOR_F8_E5M2;
}

/* Replaces *t, which is owned, by a result of an operator on it. -1 with the error set. */
static int replace(tensor **t, tensor *next)
{
	next = tensor_keep(next);
	tensor_release(*t);
	*t = next;
	return next ? 0 : -1;
}

/*
 * The elements of t in host memory, in a dtype that number_at() knows: a tensor of its own, so that its geometry
 * and memory stay while lists are allocated, which can run code of the program. NULL with the error set.
 */
static tensor *readable(tensor *t)
{
	bool own = tensor_layout(t) != TENSOR_STRIDED ||
		   tensor_keys(t) & 1u << TENSOR_KEY_QUANTIZED_CPU;
	/* Other layouts cannot be detached, and are converted anyway. */
	tensor *r = own ? tensor_retain(t) : tensor_keep(tensor_detach(t));

	if (!r)
		return NULL;
	if (tensor_keys(r) & 1u << TENSOR_KEY_QUANTIZED_CPU &&
	    replace(&r, tensor_dequantize(r)) < 0)
		return NULL;
	if (tensor_layout(r) != TENSOR_STRIDED && replace(&r, tensor_to_dense(r)) < 0)
		return NULL;
	if (tensor_get_device(r).type != TENSOR_CPU &&
	    replace(&r, tensor_to(r, TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU))) < 0)
		return NULL;
	if (is_small_float(tensor_dtype(r)) &&
	    replace(&r, tensor_to(r, TENSOR_OPTIONS(.dtype = TENSOR_F32))) < 0)
		return NULL;
	return r;
}

PyObject *tensor_tolist(PyObject *self, PyObject *unused)
{
	tensor *t = readable(tensor_of(self));
	PyObject *res;
	struct walk w;

	if (!t)
		return raise_error();
	w = (struct walk){ tensor_sizes(t), tensor_strides(t), tensor_dim(t), tensor_dtype(t),
			   (int64_t)tensor_itemsize(tensor_dtype(t)) };
	if (!tensor_data(t) && tensor_numel(t))
		res = PyErr_Format(PyExc_TypeError, "tolist: the elements are not in host memory");
	else
		res = list_at(&w, 0, tensor_data(t));
	tensor_release(t);
	return res;
}
