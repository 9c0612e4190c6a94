// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* x[key] and x[key] = value. */
#include "internal.h"

#include <errno.h>

#define MOST_ITEMS 64

/* A key as items of the library, and the tensors that were made for it. */
struct subscripts {
	tensor_subscript items[MOST_ITEMS];
	PyObject *kept[MOST_ITEMS]; /* owned */
	int n, nkept;
};

static void subscripts_free(struct subscripts *s)
{
	for (int i = 0; i < s->nkept; i++)
		Py_DECREF(s->kept[i]);
}

/* A position: an int that does not fit is out of range, as in Python. */
static int as_position(PyObject *o, int64_t *i)
{
	PyObject *n;

	if (likely(PyLong_CheckExact(o))) {
		*i = PyLong_AsLongLong(o);
	} else {
		n = PyNumber_Index(o);
		if (!n)
			return -1;
		*i = PyLong_AsLongLong(n);
		Py_DECREF(n);
	}
	if (likely(*i != -1) || !PyErr_Occurred())
		return 0;
	if (PyErr_ExceptionMatches(PyExc_OverflowError))
		PyErr_Format(PyExc_IndexError, "index %R is out of range", o);
	return -1;
}

/* Ends that do not fit are cut off, and omitted ones are beyond the ends of every tensor, as in Python. */
static int slice_item(PyObject *o, tensor_subscript *item)
{
	Py_ssize_t start, stop, step;

	if (PySlice_Unpack(o, &start, &stop, &step) < 0)
		return -1;
	/* TENSOR_NONE is below every tensor, where it does not mean the same as an omitted end. */
	if (start == TENSOR_NONE)
		start++;
	if (stop == TENSOR_NONE && step > 0)
		stop++;
	*item = TENSOR_SLICE(start, stop, step);
	return 0;
}

/* The library takes index tensors of i32 and i64, and masks of bool; u8 would be a mask, too. */
static PyObject *index_tensor(PyObject *o)
{
	switch (tensor_dtype(tensor_of(o))) {
	case TENSOR_BOOL:
	case TENSOR_I32:
	case TENSOR_I64:
		return Py_NewRef(o);
	case TENSOR_U8:
	case TENSOR_I8:
	case TENSOR_I16:
	case TENSOR_U16:
	case TENSOR_U32:
	case TENSOR_U64:
		return wrap_result(tensor_to(tensor_of(o), TENSOR_OPTIONS(.dtype = TENSOR_I64)));
	default:
		return PyErr_Format(PyExc_IndexError,
				    "tensors as indices must have an integer dtype or bool, got %s",
				    dtype_public_name(tensor_dtype(tensor_of(o))));
	}
}

static int tensor_item_of(struct subscripts *s, PyObject *o, tensor_subscript *item)
{
	PyObject *index,
		*made = is_tensor(o) ? Py_NewRef(o) : tensor_from_object(o, TENSOR_DTYPE_NONE);

	/* An empty list has no dtype of its own. */
	if (made && !is_tensor(o) && !tensor_numel(tensor_of(made)) && PyList_Check(o))
		set_ref(&made, wrap_result(tensor_to(tensor_of(made),
						     TENSOR_OPTIONS(.dtype = TENSOR_I64))));
	if (!made)
		return -1;
	/* An integer tensor without dimensions is a position. */
	if (tensor_dim(tensor_of(made)) == 0 && tensor_dtype(tensor_of(made)) != TENSOR_BOOL) {
		int64_t i;
		int err = as_position(made, &i);

		Py_DECREF(made);
		*item = TENSOR_I(i);
		return err;
	}
	index = index_tensor(made);
	Py_DECREF(made);
	if (!index)
		return -1;
	s->kept[s->nkept++] = index;
	*item = TENSOR_AT(tensor_of(index));
	return 0;
}

static int add_item(struct subscripts *s, PyObject *o)
{
	tensor_subscript *item = &s->items[s->n++];
	int64_t i = 0;

	if (PyLong_CheckExact(o)) {
		if (as_position(o, &i) < 0)
			return -1;
		*item = TENSOR_I(i);
	} else if (PySlice_Check(o)) {
		return slice_item(o, item);
	} else if (o == Py_None) {
		*item = TENSOR_NEWAXIS;
	} else if (o == Py_Ellipsis) {
		*item = TENSOR_ELLIPSIS;
	} else if (is_tensor(o) || PyBool_Check(o) || PyList_Check(o) || PyTuple_Check(o)) {
		return tensor_item_of(s, o, item);
	} else if (PyIndex_Check(o) && !PyObject_HasAttrString(o, "__array_interface__")) {
		if (as_position(o, &i) < 0)
			return -1;
		*item = TENSOR_I(i);
	} else {
		return tensor_item_of(s, o, item);
	}
	return 0;
}

static int add_items(struct subscripts *s, PyObject *key)
{
	Py_ssize_t n = PyTuple_Check(key) ? PyTuple_Size(key) : 1;

	s->n = s->nkept = 0;
	if (n > MOST_ITEMS) {
		PyErr_Format(PyExc_IndexError, "a key of %zd items, at most %d", n, MOST_ITEMS);
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		if (add_item(s, PyTuple_Check(key) ? PyTuple_GetItem(key, i) : key) < 0) {
			subscripts_free(s);
			return -1;
		}
	}
	return 0;
}

/* A key that does not fit the tensor is an IndexError. */
static PyObject *raise_index_error(void)
{
	const struct tensor_error *e = tensor_last_error();

	if ((e->code != EINVAL && e->code != ERANGE) || PyErr_Occurred())
		return raise_error();
	PyErr_SetString(PyExc_IndexError, e->text);
	return NULL;
}

static PyObject *get_items(PyObject *self, struct subscripts *s)
{
	tensor *t = tensor_of(self), *from = t;
	PyThreadState *state;

	if (!s->nkept || tensor_numel(from) < RELEASE_ABOVE) {
		t = tensor_index_items(from, s->items, s->n);
	} else {
		hold(from);
		state = PyEval_SaveThread();
		t = tensor_index_items(from, s->items, s->n);
		PyEval_RestoreThread(state);
		tensor_release(from);
	}
	return t ? wrap_like(self, t) : raise_index_error();
}

static PyObject *get(PyObject *self, PyObject *key)
{
	struct subscripts s;
	PyObject *res;

	if (add_items(&s, key) < 0)
		return NULL;
	res = get_items(self, &s);
	subscripts_free(&s);
	return res;
}

PyObject *tensor_getitem(PyObject *self, PyObject *key)
{
	tensor_subscript item;
	PyObject *res;
	tensor *t;

	if (PyLong_CheckExact(key)) {
		if (as_position(key, &item.start) < 0)
			return NULL;
		item = TENSOR_I(item.start);
		t = tensor_index_items(tensor_of(self), &item, 1);
		return t ? wrap_like(self, t) : raise_index_error();
	}
	begin_call();
	res = get(self, key);
	end_call();
	return res;
}

/* A key that fits leaves a value that does not, or a tensor that cannot be changed. */
static void raise_assignment_error(PyObject *self, const struct subscripts *s)
{
	struct tensor_error e = *tensor_last_error();
	tensor *t;

	if (e.code == EINVAL && !PyErr_Occurred()) {
		t = tensor_index_items(tensor_of(self), s->items, s->n);
		if (!t) {
			raise_index_error();
			return;
		}
		tensor_release(tensor_keep(t));
		tensor_set_error(e.code, "%s", e.text);
	}
	raise_error();
}

static int set(PyObject *self, PyObject *key, PyObject *value)
{
	struct subscripts s;
	PyObject *v;
	tensor *t;

	if (add_items(&s, key) < 0)
		return -1;
	v = is_tensor(value) ? Py_NewRef(value) :
			       tensor_from_object(value, tensor_dtype(tensor_of(self)));
	if (!v) {
		subscripts_free(&s);
		return -1;
	}
	t = tensor_index_put_items(tensor_of(self), tensor_of(v), s.items, s.n);
	if (!t)
		raise_assignment_error(self, &s);
	Py_DECREF(v);
	subscripts_free(&s);
	return t ? 0 : -1;
}

int tensor_setitem(PyObject *self, PyObject *key, PyObject *value)
{
	int err;

	if (!value) {
		PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
		return -1;
	}
	begin_call();
	err = set(self, key, value);
	end_call();
	return err;
}
