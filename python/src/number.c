// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operators of the language: a + b, -a, a < b, a @ b, and the protocols of mappings and iterators. */
#include "internal.h"

typedef tensor *(*binary_fn)(tensor *, tensor *);

/* An operator of two operands. The C function serves two tensors, the others all other operands. */
struct operator
{
	const char *name, *inplace_name;
	binary_fn fn;
	struct py_function *f, *inplace;
};

static struct operator op_add = { "add", "add_", tensor_add };
static struct operator op_sub = { "sub", "sub_", tensor_sub };
static struct operator op_mul = { "mul", "mul_", tensor_mul };
static struct operator op_div = { "div", "div_", tensor_div };
static struct operator op_floor_divide = { "floor_divide", "floor_divide_", tensor_floor_divide };
static struct operator op_remainder = { "remainder", "remainder_", tensor_remainder };
static struct operator op_pow = { "pow", "pow_", tensor_pow };
static struct operator op_matmul = { "matmul", NULL, tensor_matmul };
static struct operator op_and = { "bitwise_and", "bitwise_and_", tensor_bitwise_and };
static struct operator op_or = { "bitwise_or", "bitwise_or_", tensor_bitwise_or };
static struct operator op_xor = { "bitwise_xor", "bitwise_xor_", tensor_bitwise_xor };
static struct operator op_lshift = { "bitwise_left_shift", "bitwise_left_shift_",
				     tensor_bitwise_left_shift };
static struct operator op_rshift = { "bitwise_right_shift", "bitwise_right_shift_",
				     tensor_bitwise_right_shift };
static struct operator comparisons[] = {
	[Py_LT] = { "lt", NULL, tensor_lt }, [Py_LE] = { "le", NULL, tensor_le },
	[Py_EQ] = { "eq", NULL, tensor_eq }, [Py_NE] = { "ne", NULL, tensor_ne },
	[Py_GT] = { "gt", NULL, tensor_gt }, [Py_GE] = { "ge", NULL, tensor_ge },
};

static PyObject *call_fn(binary_fn fn, tensor *a, tensor *b)
{
	PyThreadState *state;
	tensor *t;

	if (likely(tensor_numel(a) + tensor_numel(b) < RELEASE_ABOVE))
		return wrap_result(fn(a, b));
	hold(a);
	hold(b);
	state = PyEval_SaveThread();
	t = fn(a, b);
	PyEval_RestoreThread(state);
	tensor_release(b);
	tensor_release(a);
	return wrap_result(t);
}

/* ---- operands that are no tensors ---- */

/* The dtype in which a number takes part in an operator with t. */
static enum tensor_dtype dtype_with(const tensor *t, uint32_t kind)
{
	enum tensor_dtype d = tensor_dtype(t);
	bool complex = d == TENSOR_C64 || d == TENSOR_C128;
	bool floating = d == TENSOR_F16 || d == TENSOR_BF16 || d == TENSOR_F32 || d == TENSOR_F64;

	switch (kind) {
	case TENSOR_SCALAR_BOOL:
		return d;
	case TENSOR_SCALAR_INT:
	case TENSOR_SCALAR_UINT:
		return d == TENSOR_BOOL ? TENSOR_I64 : d;
	case TENSOR_SCALAR_FLOAT:
		return complex || floating ? d : TENSOR_F32;
	default:
		return complex ? d : d == TENSOR_F64 ? TENSOR_C128 : TENSOR_C64;
	}
}

/* A number as a tensor without dimensions. */
static PyObject *number_like(PyObject *number, const tensor *t)
{
	tensor_scalar s;
	int res = convert_scalar(number, &s);

	if (res < 0)
		return NULL;
	if (!res)
		Py_RETURN_NOTIMPLEMENTED;
	return wrap_result(tensor_full(TENSOR_SCALAR_SHAPE, s,
				       TENSOR_OPTIONS(.dtype = dtype_with(t, s.kind))));
}

/* Arrays of NumPy and others take part as tensors on their memory. Others: NotImplemented. */
static PyObject *operand(PyObject *o, const tensor *other, bool numbers)
{
	PyObject *interface;

	if (is_tensor(o) || (numbers && is_number(o)))
		return Py_NewRef(o);
	if (is_number(o))
		return number_like(o, other);
	interface = PyType_Check(o) ? NULL : PyObject_GetAttrString(o, "__array_interface__");
	if (!interface) {
		PyErr_Clear();
		Py_RETURN_NOTIMPLEMENTED;
	}
	Py_DECREF(interface);
	return tensor_from_object(o, TENSOR_DTYPE_NONE);
}

/* a is no tensor, or b is none. */
static PyObject *mixed(struct operator* op, PyObject *a, PyObject *b)
{
	const tensor *other = tensor_of(is_tensor(a) ? a : b);
	PyObject *x = operand(a, other, false), *y = NULL, *res;

	if (x && x != Py_NotImplemented)
		y = operand(b, other, true);
	if (!x || x == Py_NotImplemented || !y || y == Py_NotImplemented) {
		res = x == Py_NotImplemented || y == Py_NotImplemented ?
			      Py_NewRef(Py_NotImplemented) :
			      NULL;
	} else {
		res = call_binary(op->f, x, y);
	}
	Py_XDECREF(x);
	Py_XDECREF(y);
	return res;
}

static inline PyObject *binary(struct operator* op, PyObject *a, PyObject *b)
{
	if (likely(is_exact_tensor(a) && is_exact_tensor(b)))
		return call_fn(op->fn, tensor_of(a), tensor_of(b));
	if (unlikely(!op->f))
		op->f = find_function(op->name);
	/* Most operators take a number as the second operand. */
	if (likely(is_tensor(a) && (is_number(b) || is_tensor(b))))
		return call_binary(op->f, a, b);
	return mixed(op, a, b);
}

static PyObject *inplace(struct operator* op, PyObject *a, PyObject *b)
{
	PyObject *y, *res;

	if (unlikely(!op->inplace))
		op->inplace = find_function(op->inplace_name);
	y = operand(b, tensor_of(a), true);
	if (!y || y == Py_NotImplemented)
		return y;
	res = call_binary(op->inplace, a, y);
	Py_DECREF(y);
	return res;
}

/* ---- slots ---- */

/* The function of a slot, which has no argument for the operator. */
#define BINARY_SLOT(slot, op)                           \
	static PyObject *slot(PyObject *a, PyObject *b) \
	{                                               \
		return binary(&(op), a, b);             \
	}
#define INPLACE_SLOT(slot, op)                          \
	static PyObject *slot(PyObject *a, PyObject *b) \
	{                                               \
		return inplace(&(op), a, b);            \
	}

BINARY_SLOT(nb_add, op_add)
BINARY_SLOT(nb_sub, op_sub)
BINARY_SLOT(nb_mul, op_mul)
BINARY_SLOT(nb_div, op_div)
BINARY_SLOT(nb_floor_divide, op_floor_divide)
BINARY_SLOT(nb_remainder, op_remainder)
BINARY_SLOT(nb_matmul, op_matmul)
BINARY_SLOT(nb_and, op_and)
BINARY_SLOT(nb_or, op_or)
BINARY_SLOT(nb_xor, op_xor)
BINARY_SLOT(nb_lshift, op_lshift)
BINARY_SLOT(nb_rshift, op_rshift)

INPLACE_SLOT(nb_inplace_add, op_add)
INPLACE_SLOT(nb_inplace_sub, op_sub)
INPLACE_SLOT(nb_inplace_mul, op_mul)
INPLACE_SLOT(nb_inplace_div, op_div)
INPLACE_SLOT(nb_inplace_floor_divide, op_floor_divide)
INPLACE_SLOT(nb_inplace_remainder, op_remainder)
INPLACE_SLOT(nb_inplace_and, op_and)
INPLACE_SLOT(nb_inplace_or, op_or)
INPLACE_SLOT(nb_inplace_xor, op_xor)
INPLACE_SLOT(nb_inplace_lshift, op_lshift)
INPLACE_SLOT(nb_inplace_rshift, op_rshift)

static PyObject *nb_pow(PyObject *a, PyObject *b, PyObject *modulo)
{
	return modulo == Py_None ? binary(&op_pow, a, b) : Py_NewRef(Py_NotImplemented);
}

static PyObject *nb_inplace_pow(PyObject *a, PyObject *b, PyObject *modulo)
{
	return modulo == Py_None ? inplace(&op_pow, a, b) : Py_NewRef(Py_NotImplemented);
}

static PyObject *nb_negative(PyObject *a)
{
	return wrap_like(a, tensor_neg(tensor_of(a)));
}

static PyObject *nb_positive(PyObject *a)
{
	return Py_NewRef(a);
}

static PyObject *nb_absolute(PyObject *a)
{
	return wrap_like(a, tensor_abs(tensor_of(a)));
}

static PyObject *nb_invert(PyObject *a)
{
	return wrap_like(a, tensor_bitwise_not(tensor_of(a)));
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
	return binary(&comparisons[op], a, b);
}

/* ---- conversions to numbers ---- */

static int item_of(PyObject *self, tensor_scalar *s)
{
	tensor *t = tensor_of(self);

	if (tensor_numel(t) != 1) {
		PyErr_Format(PyExc_ValueError,
			     "a tensor with %lld elements has no single value: any() or all() "
			     "combine them",
			     (long long)tensor_numel(t));
		return -1;
	}
	return read_item(t, s) < 0 ? raise_error_int() : 0;
}

static int nb_bool(PyObject *self)
{
	tensor_scalar s;

	if (item_of(self, &s) < 0)
		return -1;
	switch (s.kind) {
	case TENSOR_SCALAR_FLOAT:
		return s.d != 0;
	case TENSOR_SCALAR_COMPLEX:
		return s.d != 0 || s.imag != 0;
	default:
		return s.i != 0;
	}
}

/* The number, converted by a type of Python. */
static PyObject *as_number(PyObject *self, PyTypeObject *type)
{
	PyObject *number, *res;
	tensor_scalar s;

	if (item_of(self, &s) < 0)
		return NULL;
	number = wrap_scalar(s);
	if (!number)
		return NULL;
	res = PyObject_CallFunctionObjArgs((PyObject *)type, number, NULL);
	Py_DECREF(number);
	return res;
}

static PyObject *nb_int(PyObject *self)
{
	return as_number(self, &PyLong_Type);
}

static PyObject *nb_float(PyObject *self)
{
	return as_number(self, &PyFloat_Type);
}

static PyObject *nb_index(PyObject *self)
{
	tensor_scalar s;

	if (tensor_numel(tensor_of(self)) != 1)
		return PyErr_Format(PyExc_TypeError,
				    "only integer tensors of a single element can be an index");
	if (item_of(self, &s) < 0)
		return NULL;
	if (s.kind != TENSOR_SCALAR_INT && s.kind != TENSOR_SCALAR_UINT)
		return PyErr_Format(PyExc_TypeError,
				    "only integer tensors of a single element can be an index");
	return wrap_scalar(s);
}

/* ---- sequences ---- */

static Py_ssize_t mp_length(PyObject *self)
{
	if (tensor_dim(tensor_of(self)) > 0)
		return tensor_size(tensor_of(self), 0);
	PyErr_SetString(PyExc_TypeError, "len() of a tensor without dimensions");
	return -1;
}

static int sq_contains(PyObject *self, PyObject *value)
{
	PyObject *equal = compare(self, value, Py_EQ), *any = NULL;
	int res = -1;

	if (equal == Py_NotImplemented)
		PyErr_Format(PyExc_TypeError, "a tensor cannot contain %R", Py_TYPE(value));
	else if (equal)
		any = wrap_result(tensor_any(tensor_of(equal)));
	if (any)
		res = nb_bool(any);
	Py_XDECREF(equal);
	Py_XDECREF(any);
	return res;
}

static PyObject *sq_item(PyObject *self, Py_ssize_t i)
{
	tensor *t = tensor_of(self);

	/* The end of an iteration: no error of the library is made for it. */
	if (tensor_dim(t) > 0 && i >= tensor_size(t, 0)) {
		PyErr_SetString(PyExc_IndexError, "index is out of range");
		return NULL;
	}
	return wrap_like(self, tensor_select(t, 0, i));
}

/* The rows one after another; those of a tensor with a gradient at once, as the results of one node. */
static PyObject *tp_iter(PyObject *self)
{
	static struct py_function *unbind;
	PyObject *rows, *iter;

	if (tensor_dim(tensor_of(self)) < 1)
		return PyErr_Format(PyExc_TypeError, "iteration over a tensor without dimensions");
	if (!tensor_requires_grad(tensor_of(self)))
		return PySeqIter_New(self);
	if (!unbind)
		unbind = find_function("unbind");
	rows = call_function(unbind, NULL, &self, 1, NULL);
	if (!rows)
		return NULL;
	iter = PyObject_GetIter(rows);
	Py_DECREF(rows);
	return iter;
}

PyType_Slot number_slots[] = {
	{ Py_nb_add, nb_add },
	{ Py_nb_subtract, nb_sub },
	{ Py_nb_multiply, nb_mul },
	{ Py_nb_true_divide, nb_div },
	{ Py_nb_floor_divide, nb_floor_divide },
	{ Py_nb_remainder, nb_remainder },
	{ Py_nb_power, nb_pow },
	{ Py_nb_matrix_multiply, nb_matmul },
	{ Py_nb_and, nb_and },
	{ Py_nb_or, nb_or },
	{ Py_nb_xor, nb_xor },
	{ Py_nb_lshift, nb_lshift },
	{ Py_nb_rshift, nb_rshift },
	{ Py_nb_inplace_add, nb_inplace_add },
	{ Py_nb_inplace_subtract, nb_inplace_sub },
	{ Py_nb_inplace_multiply, nb_inplace_mul },
	{ Py_nb_inplace_true_divide, nb_inplace_div },
	{ Py_nb_inplace_floor_divide, nb_inplace_floor_divide },
	{ Py_nb_inplace_remainder, nb_inplace_remainder },
	{ Py_nb_inplace_power, nb_inplace_pow },
	{ Py_nb_inplace_and, nb_inplace_and },
	{ Py_nb_inplace_or, nb_inplace_or },
	{ Py_nb_inplace_xor, nb_inplace_xor },
	{ Py_nb_inplace_lshift, nb_inplace_lshift },
	{ Py_nb_inplace_rshift, nb_inplace_rshift },
	{ Py_nb_negative, nb_negative },
	{ Py_nb_positive, nb_positive },
	{ Py_nb_absolute, nb_absolute },
	{ Py_nb_invert, nb_invert },
	{ Py_nb_bool, nb_bool },
	{ Py_nb_int, nb_int },
	{ Py_nb_float, nb_float },
	{ Py_nb_index, nb_index },
	{ Py_tp_richcompare, compare },
	{ Py_tp_iter, tp_iter },
	{ Py_mp_length, mp_length },
	{ Py_mp_subscript, tensor_getitem },
	{ Py_mp_ass_subscript, tensor_setitem },
	{ Py_sq_item, sq_item },
	{ Py_sq_contains, sq_contains },
	{ 0 },
};
