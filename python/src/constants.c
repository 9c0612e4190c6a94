// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* dtypes, layouts and memory formats: one object for each value. */
#include "internal.h"

PyTypeObject *dtype_type, *layout_type, *memory_format_type;

struct constant_name {
	const char *name, *alias;
	int value;
};

/* By value. The alias is another name in the module, and what a string may say. */
static const struct constant_name dtypes[] = {
	{ "bool", NULL, TENSOR_BOOL },
	{ "uint8", "u8", TENSOR_U8 },
	{ "int8", "i8", TENSOR_I8 },
	{ "int16", "short", TENSOR_I16 },
	{ "int32", "int", TENSOR_I32 },
	{ "int64", "long", TENSOR_I64 },
	{ "float16", "half", TENSOR_F16 },
	{ "bfloat16", "bf16", TENSOR_BF16 },
	{ "float32", "float", TENSOR_F32 },
	{ "float64", "double", TENSOR_F64 },
	{ "complex64", "cfloat", TENSOR_C64 },
	{ "complex128", "cdouble", TENSOR_C128 },
	{ "uint16", "u16", TENSOR_U16 },
	{ "uint32", "u32", TENSOR_U32 },
	{ "uint64", "u64", TENSOR_U64 },
	{ "float8_e4m3fn", "f8_e4m3fn", TENSOR_F8_E4M3FN },
	{ "float8_e5m2", "f8_e5m2", TENSOR_F8_E5M2 },
};
_Static_assert(COUNT(dtypes) == TENSOR_DTYPE_COUNT - 1, "a dtype without a name");

static const struct constant_name layouts[] = {
	{ "strided", NULL, TENSOR_STRIDED },
	{ "sparse_coo", NULL, TENSOR_SPARSE_COO },
	{ "sparse_csr", NULL, TENSOR_SPARSE_CSR },
	{ "blocked", "_mkldnn", TENSOR_BLOCKED },
};
_Static_assert(COUNT(layouts) == TENSOR_LAYOUT_COUNT - 1, "a layout without a name");

static const struct constant_name formats[] = {
	{ "contiguous_format", NULL, TENSOR_CONTIGUOUS_FORMAT },
	{ "preserve_format", NULL, TENSOR_PRESERVE_FORMAT },
	{ "channels_last", NULL, TENSOR_CHANNELS_LAST },
	{ "channels_last_3d", NULL, TENSOR_CHANNELS_LAST_3D },
};
_Static_assert(COUNT(formats) == TENSOR_MEMORY_FORMAT_COUNT - 1, "a format without a name");

static PyObject *dtype_objects[TENSOR_DTYPE_COUNT], *layout_objects[TENSOR_LAYOUT_COUNT],
	*format_objects[TENSOR_MEMORY_FORMAT_COUNT];

const char *dtype_public_name(int dtype)
{
	return dtype > 0 && dtype < TENSOR_DTYPE_COUNT ? dtypes[dtype - 1].name : "none";
}

/* ---- constants ---- */

static const char *constant_of(PyObject *o)
{
	return ((PyConstant *)o)->name;
}

static PyObject *constant_repr(PyObject *o)
{
	return PyUnicode_FromFormat("devtensor.%s", constant_of(o));
}

static PyObject *constant_name(PyObject *o, void *unused)
{
	return PyUnicode_FromString(constant_of(o));
}

/* Pickled as type(name), which finds the one object. */
static PyObject *constant_reduce(PyObject *o, PyObject *unused)
{
	return Py_BuildValue("(O(s))", Py_TYPE(o), constant_of(o));
}

static PyObject *constant_copy(PyObject *o, PyObject *unused)
{
	return Py_NewRef(o);
}

void constant_dealloc(PyObject *o)
{
	PyTypeObject *type = Py_TYPE(o);

	PyObject_Free(o);
	Py_DECREF(type);
}

static const struct constant_name *search(const struct constant_name *names, int n, const char *s)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i].name, s) || (names[i].alias && !strcmp(names[i].alias, s)))
			return &names[i];
	return NULL;
}

static PyObject *constant_find(PyObject *args, PyObject *kwargs, const char *what,
			       const struct constant_name *names, int n, PyObject **objects)
{
	static char *keywords[] = { "name", NULL };
	const struct constant_name *found;
	const char *s;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s", keywords, &s))
		return NULL;
	found = search(names, n, s);
	if (found)
		return Py_NewRef(objects[found->value]);
	return PyErr_Format(PyExc_ValueError, "there is no %s %s", what, s);
}

static PyObject *dtype_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *o;
	int dtype, err;

	if (PyTuple_Size(args) == 1 && !kwargs) {
		o = PyTuple_GetItem(args, 0);
		err = as_dtype(o, &dtype);
		if (err < 0)
			return NULL;
		if (err)
			return wrap_dtype(dtype);
	}
	return constant_find(args, kwargs, "dtype", dtypes, COUNT(dtypes), dtype_objects);
}

static PyObject *layout_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	return constant_find(args, kwargs, "layout", layouts, COUNT(layouts), layout_objects);
}

static PyObject *format_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	return constant_find(args, kwargs, "memory format", formats, COUNT(formats),
			     format_objects);
}

static PyMethodDef constant_methods[] = {
	{ "__reduce__", constant_reduce, METH_NOARGS, NULL },
	{ "__copy__", constant_copy, METH_NOARGS, NULL },
	{ "__deepcopy__", constant_copy, METH_O, NULL },
	{ NULL },
};

static PyGetSetDef constant_getset[] = {
	{ "name", constant_name, NULL, "The name as a string." },
	{ NULL },
};

/* ---- dtypes ---- */

static int dtype_of(PyObject *o)
{
	return ((PyConstant *)o)->value;
}

static PyObject *dtype_itemsize(PyObject *o, void *unused)
{
	return PyLong_FromSize_t(tensor_itemsize(dtype_of(o)));
}

static PyObject *dtype_is_complex(PyObject *o, void *unused)
{
	return PyBool_FromLong(dtype_of(o) == TENSOR_C64 || dtype_of(o) == TENSOR_C128);
}

static PyObject *dtype_is_floating(PyObject *o, void *unused)
{
	switch (dtype_of(o)) {
	case TENSOR_F16:
	case TENSOR_BF16:
	case TENSOR_F32:
	case TENSOR_F64:
	case TENSOR_F8_E4M3FN:
	case TENSOR_F8_E5M2:
		Py_RETURN_TRUE;
	default:
		Py_RETURN_FALSE;
	}
}

static PyObject *dtype_is_signed(PyObject *o, void *unused)
{
	switch (dtype_of(o)) {
	case TENSOR_BOOL:
	case TENSOR_U8:
	case TENSOR_U16:
	case TENSOR_U32:
	case TENSOR_U64:
		Py_RETURN_FALSE;
	default:
		Py_RETURN_TRUE;
	}
}

static PyGetSetDef dtype_getset[] = {
	{ "name", constant_name, NULL, "The name as a string." },
	{ "itemsize", dtype_itemsize, NULL, "Bytes of an element." },
	{ "is_floating_point", dtype_is_floating, NULL, "True for real floating dtypes." },
	{ "is_complex", dtype_is_complex, NULL, "True for complex64 and complex128." },
	{ "is_signed", dtype_is_signed, NULL, "True if elements can be negative." },
	{ NULL },
};

PyObject *wrap_dtype(int dtype)
{
	PyObject *o = dtype > 0 && dtype < TENSOR_DTYPE_COUNT ? dtype_objects[dtype] : Py_None;

	return Py_NewRef(o);
}

PyObject *wrap_layout(int layout)
{
	PyObject *o = layout > 0 && layout < TENSOR_LAYOUT_COUNT ? layout_objects[layout] : Py_None;

	return Py_NewRef(o);
}

/* A dtype of NumPy has its name as an attribute, a type of NumPy's scalars as __name__. */
static int dtype_of_numpy(PyObject *o, int *dtype)
{
	const struct constant_name *found;
	PyObject *name = NULL;
	const char *s;

	name = PyObject_GetAttrString(o, PyType_Check(o) ? "__name__" : "name");
	if (!name) {
		PyErr_Clear();
		return 0;
	}
	s = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	if (s && PyType_Check(o) && !strcmp(s, "bool_"))
		s = "bool";
	found = s ? search(dtypes, COUNT(dtypes), s) : NULL;
	PyErr_Clear();
	Py_DECREF(name);
	if (!found)
		return 0;
	*dtype = found->value;
	return 1;
}

static bool is_from_numpy(PyObject *o)
{
	PyObject *type = PyType_Check(o) ? o : (PyObject *)Py_TYPE(o);
	PyObject *module = PyObject_GetAttrString(type, "__module__");
	const char *s = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) :
							    NULL;
	bool found = s && !strncmp(s, "numpy", 5);

	PyErr_Clear();
	Py_XDECREF(module);
	return found;
}

int as_dtype(PyObject *o, int *dtype)
{
	const struct constant_name *found;
	const char *s;

	if (Py_TYPE(o) == dtype_type)
		*dtype = dtype_of(o);
	else if (o == (PyObject *)&PyFloat_Type)
		*dtype = TENSOR_F64;
	else if (o == (PyObject *)&PyLong_Type)
		*dtype = TENSOR_I64;
	else if (o == (PyObject *)&PyBool_Type)
		*dtype = TENSOR_BOOL;
	else if (o == (PyObject *)&PyComplex_Type)
		*dtype = TENSOR_C128;
	else if (!PyUnicode_Check(o))
		return is_from_numpy(o) ? dtype_of_numpy(o, dtype) : 0;
	else {
		s = PyUnicode_AsUTF8AndSize(o, NULL);
		found = s ? search(dtypes, COUNT(dtypes), s) : NULL;
		if (!found) {
			if (!PyErr_Occurred())
				PyErr_Format(PyExc_ValueError, "there is no dtype %R", o);
			return -1;
		}
		*dtype = found->value;
	}
	return 1;
}

int as_layout(PyObject *o, int *layout)
{
	if (Py_TYPE(o) != layout_type)
		return 0;
	*layout = dtype_of(o);
	return 1;
}

int as_memory_format(PyObject *o, int *format)
{
	if (Py_TYPE(o) != memory_format_type)
		return 0;
	*format = dtype_of(o);
	return 1;
}

/* ---- types ---- */

static PyType_Slot dtype_slots[] = {
	{ Py_tp_doc, "The type of the elements of a tensor." },
	{ Py_tp_new, dtype_new },
	{ Py_tp_dealloc, constant_dealloc },
	{ Py_tp_repr, constant_repr },
	{ Py_tp_methods, constant_methods },
	{ Py_tp_getset, dtype_getset },
	{ 0 },
};
static PyType_Slot layout_slots[] = {
	{ Py_tp_doc, "How the elements of a tensor are stored." },
	{ Py_tp_new, layout_new },
	{ Py_tp_dealloc, constant_dealloc },
	{ Py_tp_repr, constant_repr },
	{ Py_tp_methods, constant_methods },
	{ Py_tp_getset, constant_getset },
	{ 0 },
};
static PyType_Slot format_slots[] = {
	{ Py_tp_doc, "The order of a tensor's dimensions in memory." },
	{ Py_tp_new, format_new },
	{ Py_tp_dealloc, constant_dealloc },
	{ Py_tp_repr, constant_repr },
	{ Py_tp_methods, constant_methods },
	{ Py_tp_getset, constant_getset },
	{ 0 },
};
static PyTypeObject *add_type_with(PyObject *module, const char *name, size_t size,
				   PyType_Slot *slots, unsigned flags)
{
	PyType_Spec spec = { name, (int)size, 0, (unsigned)(Py_TPFLAGS_DEFAULT | flags), slots };
	PyObject *type = PyType_FromSpec(&spec);

	if (type && PyModule_AddObjectRef(module, strrchr(name, '.') + 1, type) < 0)
		Py_CLEAR(type);
	return (PyTypeObject *)type;
}

PyTypeObject *add_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots)
{
	return add_type_with(module, name, size, slots, Py_TPFLAGS_IMMUTABLETYPE);
}

int add_base_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots)
{
	PyTypeObject *type = add_type_with(module, name, size, slots, Py_TPFLAGS_BASETYPE);

	if (!type)
		return -1;
	Py_DECREF(type);
	return 0;
}

static int add_values(PyObject *module, PyTypeObject *type, const struct constant_name *names,
		      int n, PyObject **objects)
{
	for (int i = 0; i < n; i++) {
		PyConstant *c = PyObject_New(PyConstant, type);

		if (!c)
			return -1;
		c->name = names[i].name;
		c->value = names[i].value;
		objects[c->value] = (PyObject *)c;
		if (PyModule_AddObjectRef(module, names[i].name, (PyObject *)c) < 0 ||
		    (names[i].alias &&
		     PyModule_AddObjectRef(module, names[i].alias, (PyObject *)c) < 0))
			return -1;
	}
	return 0;
}

int add_constants(PyObject *module)
{
	dtype_type = add_type(module, "devtensor.dtype", sizeof(PyConstant), dtype_slots);
	layout_type = add_type(module, "devtensor.layout", sizeof(PyConstant), layout_slots);
	memory_format_type =
		add_type(module, "devtensor.memory_format", sizeof(PyConstant), format_slots);
	if (!dtype_type || !layout_type || !memory_format_type)
		return -1;
	if (add_values(module, dtype_type, dtypes, COUNT(dtypes), dtype_objects) < 0 ||
	    add_values(module, layout_type, layouts, COUNT(layouts), layout_objects) < 0)
		return -1;
	return add_values(module, memory_format_type, formats, COUNT(formats), format_objects);
}
