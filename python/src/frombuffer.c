// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Tensors on the memory of objects with the buffer protocol. */
#include "internal.h"

#include <errno.h>
#include <tensor/dlpack.h>

/* ---- elements as the buffer describes them ---- */

/* A view of a buffer; its deleter may run on any thread. */
struct borrowed {
	DLManagedTensorVersioned managed;
	Py_buffer view;
	struct borrowed *next; /* to be released */
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
};

/*
 * A release may free the tensor that exported the buffer, whose memory may be another buffer: a chain of any length. The
 * first release of a thread releases the others in turn, so that the depth of the stack does not depend on it.
 */
static __thread struct borrowed *returned;
static __thread bool returning;

static void return_buffer(DLManagedTensorVersioned *m)
{
	struct borrowed *b = m->manager_ctx;
	struct saved_errors before;
	PyGILState_STATE state;

	b->next = returned;
	returned = b;
	/* The last tensor may die after the interpreter. */
	if (returning || !Py_IsInitialized())
		return;
	returning = true;
	state = PyGILState_Ensure();
	errors_save(&before);
	while ((b = returned)) {
		returned = b->next;
		PyBuffer_Release(&b->view);
		free(b);
	}
	errors_restore(&before);
	PyGILState_Release(state);
	returning = false;
}

/* The type of a format of the module struct. */
static int parse_format(const char *format, Py_ssize_t itemsize, DLDataType *type)
{
	static const char integers[] = "bhilqn", naturals[] = "BHILQN", floats[] = "efd";
	const char *p = format ? format : "B";
	uint8_t bits = (uint8_t)(8 * itemsize);

	if (*p == '<' || *p == '=' || *p == '@' || *p == '|' || (*p == '>' && itemsize == 1))
		p++;
	if (p[0] == 'Z' && p[1] && strchr("fd", p[1]) && !p[2])
		*type = (DLDataType){ kDLComplex, bits, 1 };
	else if (!p[0] || p[1])
		return -1;
	else if (*p == '?')
		*type = (DLDataType){ kDLBool, bits, 1 };
	else if (strchr(integers, *p))
		*type = (DLDataType){ kDLInt, bits, 1 };
	else if (strchr(naturals, *p))
		*type = (DLDataType){ kDLUInt, bits, 1 };
	else if (strchr(floats, *p))
		*type = (DLDataType){ kDLFloat, bits, 1 };
	else
		return -1;
	return 0;
}

/* The sizes and strides. Exporters such as ctypes leave out strides, and a shape of one dimension, also if requested. */
static int describe_shape(struct borrowed *b)
{
	const Py_buffer *v = &b->view;

	if (v->suboffsets || (!v->shape && v->ndim > 1) || v->ndim < 0) {
		PyErr_SetString(PyExc_TypeError,
				"a buffer of pointers, or without a shape, is no tensor");
		return -1;
	}
	for (int i = 0; i < v->ndim; i++) {
		b->sizes[i] = v->shape ? v->shape[i] : v->len / v->itemsize;
		if (!v->strides)
			continue;
		b->strides[i] = v->strides[i] / v->itemsize;
		if (v->strides[i] % v->itemsize && v->shape && v->shape[i] > 1) {
			PyErr_Format(PyExc_ValueError,
				     "strides of %zd bytes are no multiple of an element's %zd",
				     v->strides[i], v->itemsize);
			return -1;
		}
	}
	return 0;
}

static int describe_buffer(struct borrowed *b)
{
	DLTensor *d = &b->managed.dl_tensor;
	const Py_buffer *v = &b->view;

	if (v->ndim > TENSOR_MAX_DIMS || v->itemsize < 1 || v->itemsize > 16 ||
	    parse_format(v->format, v->itemsize, &d->dtype) < 0) {
		PyErr_Format(PyExc_TypeError,
			     "a buffer of format %s with %d dimensions is no tensor",
			     v->format ? v->format : "B", v->ndim);
		return -1;
	}
	if (describe_shape(b) < 0)
		return -1;
	d->data = v->buf;
	d->device = (DLDevice){ kDLCPU, 0 };
	d->ndim = v->ndim;
	d->shape = b->sizes;
	d->strides = v->strides ? b->strides : NULL;
	b->managed.version = (DLPackVersion){ 1, 0 };
	b->managed.manager_ctx = b;
	b->managed.deleter = return_buffer;
	b->managed.flags = v->readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
	return 0;
}

/* A tensor on the memory of a buffer, which stays exported until the memory is released. */
PyObject *tensor_from_buffer(PyObject *o)
{
	struct borrowed *b = calloc(1, sizeof(*b));
	PyObject *res = NULL;

	if (!b)
		return PyErr_NoMemory();
	if (PyObject_GetBuffer(o, &b->view, PyBUF_RECORDS) < 0) {
		PyErr_Clear();
		if (PyObject_GetBuffer(o, &b->view, PyBUF_RECORDS_RO) < 0)
			goto failed;
	}
	if (describe_buffer(b) == 0)
		res = wrap_result(tensor_from_dlpack(&b->managed));
	if (res)
		return res;
	PyBuffer_Release(&b->view);
failed:
	free(b);
	return NULL;
}

/* ---- elements of one dtype in the bytes of a buffer ---- */

static void return_bytes(void *data, void *ctx)
{
	struct borrowed *b = ctx;

	return_buffer(&b->managed);
}

/* Elements from offset; *count -1: all that fit. */
static int check_extent(const struct borrowed *b, int64_t itemsize, int64_t offset, int64_t *count)
{
	int64_t room = b->view.len - offset;

	if (offset < 0 || offset > b->view.len) {
		PyErr_Format(PyExc_ValueError, "frombuffer: offset %lld of a buffer of %zd bytes",
			     (long long)offset, b->view.len);
		return -1;
	}
	if (*count == -1 && room % itemsize) {
		PyErr_Format(PyExc_ValueError,
			     "frombuffer: %lld bytes are no multiple of an element's %lld",
			     (long long)room, (long long)itemsize);
		return -1;
	}
	if (*count == -1)
		*count = room / itemsize;
	if (*count < 0 || *count > room / itemsize) {
		PyErr_Format(PyExc_ValueError, "frombuffer: %lld bytes have no %lld elements",
			     (long long)room, (long long)*count);
		return -1;
	}
	return 0;
}

static tensor *make_from_bytes(struct borrowed *b, int dtype, int64_t offset, int64_t count)
{
	tensor_options options = { .dtype = dtype };
	tensor_ints size = { &count, 1 };
	char *data = (char *)b->view.buf + offset;

	b->managed.manager_ctx = b;
	if (b->view.readonly)
		return tensor_from_blob_readonly(data, size, TENSOR_NO_INTS, options, return_bytes,
						 b);
	return tensor_from_blob(data, size, TENSOR_NO_INTS, options, return_bytes, b);
}

static PyObject *tensor_from_bytes(PyObject *o, int dtype, int64_t count, int64_t offset)
{
	struct borrowed *b = calloc(1, sizeof(*b));
	tensor *t = NULL;

	if (!b)
		return PyErr_NoMemory();
	if (PyObject_GetBuffer(o, &b->view, PyBUF_WRITABLE) < 0) {
		PyErr_Clear();
		if (PyObject_GetBuffer(o, &b->view, PyBUF_SIMPLE) < 0) {
			free(b);
			return NULL;
		}
	}
	if (check_extent(b, (int64_t)tensor_itemsize(dtype), offset, &count) == 0) {
		t = make_from_bytes(b, dtype, offset, count);
		if (t)
			return wrap_result(t);
		raise_error();
	}
	PyBuffer_Release(&b->view);
	free(b);
	return NULL;
}

static PyObject *module_frombuffer(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "buffer", "dtype", "count", "offset", "requires_grad", NULL };
	PyObject *o, *dtype = NULL, *res;
	long long count = -1, offset = 0;
	int d, ok, requires_grad = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp:frombuffer", keywords, &o, &dtype,
					 &count, &offset, &requires_grad))
		return NULL;
	if (!dtype)
		return PyErr_Format(PyExc_TypeError, "frombuffer: an argument is missing: dtype");
	ok = as_dtype(dtype, &d);
	if (!ok)
		PyErr_Format(PyExc_TypeError, "frombuffer: %R is no dtype", dtype);
	if (ok <= 0)
		return NULL;
	res = tensor_from_bytes(o, d, count, offset);
	if (res && requires_grad && PyObject_SetAttrString(res, "requires_grad", Py_True) < 0)
		Py_CLEAR(res);
	return res;
}

static PyObject *module_from_buffer(PyObject *module, PyObject *arg)
{
	return tensor_from_buffer(arg);
}

static PyMethodDef functions[] = {
	{ "frombuffer", (PyCFunction)(void (*)(void))module_frombuffer,
	  METH_VARARGS | METH_KEYWORDS,
	  "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\n"
	  "A tensor of one dimension on the bytes of an object with the buffer protocol: count "
	  "elements, or all, from offset in bytes. Read-only if the buffer is." },
	{ "_from_buffer", module_from_buffer, METH_O,
	  "_from_buffer(data, /)\n--\n\nA tensor on the memory of an object with the buffer protocol." },
	{ NULL },
};

int add_buffers(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
