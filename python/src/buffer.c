// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The buffer protocol: memoryview(x), numpy.asarray(x) and others on the memory of a tensor.
 *
 * A view holds a detached tensor, which has a reference of its own to the storage: resize_() of the
 * exported tensor gets another storage, and the memory of the view stays as long as the view.
 */
#include "internal.h"

/* The memory that a view refers to, and the arrays of its sizes and strides. */
struct exported {
	tensor *t; /* owned */
	Py_ssize_t shape[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
};

/* Formats of the module struct. NULL: none exists for the dtype. */
static const char *format_of(enum tensor_dtype dtype)
{
	static const char *const formats[TENSOR_DTYPE_COUNT] = {
		[TENSOR_BOOL] = "?", [TENSOR_U8] = "B",	   [TENSOR_I8] = "b",  [TENSOR_I16] = "h",
		[TENSOR_U16] = "H",  [TENSOR_I32] = "i",   [TENSOR_U32] = "I", [TENSOR_I64] = "l",
		[TENSOR_U64] = "L",  [TENSOR_F16] = "e",   [TENSOR_F32] = "f", [TENSOR_F64] = "d",
		[TENSOR_C64] = "Zf", [TENSOR_C128] = "Zd",
	};

	_Static_assert(sizeof(long) == 8, "the formats of 64-bit integers");
	return formats[dtype];
}

static const char *why_not(tensor *t)
{
	const uint32_t others = 1u << TENSOR_KEY_QUANTIZED_CPU | 1u << TENSOR_KEY_BATCHED |
				1u << TENSOR_KEY_FORWARD;

	if (tensor_requires_grad(t))
		return "a tensor that requires a gradient has no buffer: detach() it";
	if (tensor_get_device(t).type != TENSOR_CPU)
		return "the memory of the tensor is on another device: cpu() copies it";
	if (tensor_layout(t) != TENSOR_STRIDED || tensor_keys(t) & others)
		return "only a strided tensor has a buffer";
	return NULL;
}

static bool is_fortran(tensor *t)
{
	int64_t step = 1;

	for (int i = 0; i < tensor_dim(t); i++) {
		if (tensor_size(t, i) != 1 && tensor_stride(t, i) != step)
			return false;
		step *= tensor_size(t, i);
	}
	return true;
}

/* The request that the tensor cannot satisfy, or NULL. */
static const char *refusal(tensor *t, int flags)
{
	bool c = tensor_is_contiguous(t), f = c || !tensor_numel(t) || is_fortran(t);

	if (flags & PyBUF_WRITABLE && !tensor_is_writable(t))
		return "the memory of the tensor is read-only";
	if (flags & PyBUF_FORMAT && !format_of(tensor_dtype(t)))
		return "buffers have no format for the dtype of the tensor: view(uint8) has one";
	if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !c)
		return "the tensor is not contiguous";
	if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_fortran(t) && tensor_numel(t))
		return "the tensor is not contiguous in Fortran's order";
	if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !f)
		return "the tensor is not contiguous";
	if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !c)
		return "the tensor is not contiguous";
	return NULL;
}

static void describe(Py_buffer *view, struct exported *e, int flags)
{
	static char nothing[16];
	tensor *t = e->t;
	Py_ssize_t itemsize = (Py_ssize_t)tensor_itemsize(tensor_dtype(t));

	for (int i = 0; i < tensor_dim(t); i++) {
		e->shape[i] = tensor_size(t, i);
		e->strides[i] = tensor_stride(t, i) * itemsize;
	}
	view->buf = tensor_numel(t) ? (void *)tensor_data(t) : nothing;
	view->len = tensor_numel(t) * itemsize;
	view->itemsize = itemsize;
	view->readonly = !tensor_is_writable(t);
	view->ndim = tensor_dim(t);
	view->format = flags & PyBUF_FORMAT ? (char *)format_of(tensor_dtype(t)) : NULL;
	view->shape = flags & PyBUF_ND ? e->shape : NULL;
	view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? e->strides : NULL;
	view->suboffsets = NULL;
	view->internal = e;
}

static int getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	tensor *t = tensor_of(self);
	const char *why = why_not(t);
	struct exported *e;

	view->obj = NULL;
	if (!why)
		why = refusal(t, flags);
	if (why) {
		PyErr_SetString(PyExc_BufferError, why);
		return -1;
	}
	e = PyMem_Malloc(sizeof(*e));
	if (!e) {
		PyErr_NoMemory();
		return -1;
	}
	e->t = tensor_keep(tensor_detach(t));
	if (!e->t) {
		PyMem_Free(e);
		return raise_error_int();
	}
	describe(view, e, flags);
	view->obj = Py_NewRef(self);
	return 0;
}

static void releasebuffer(PyObject *self, Py_buffer *view)
{
	struct exported *e = view->internal;

	tensor_release(e->t);
	PyMem_Free(e);
}

PyType_Slot buffer_slots[] = {
	{ Py_bf_getbuffer, getbuffer },
	{ Py_bf_releasebuffer, releasebuffer },
	{ 0 },
};
