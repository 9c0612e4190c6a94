// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The functions of a class of the program as a function of the library. */
#include "function.h"

PyObject *function_base_setup;
struct function_names function_names;

static void info_free(PyObject *capsule)
{
	free(PyCapsule_GetPointer(capsule, CLASS_INFO));
}

/* The name of the class, without what a name of the library may not have. */
static int set_name(struct class_info *info, PyObject *cls)
{
	PyObject *name = PyType_GetName((PyTypeObject *)cls);
	const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	size_t n;

	if (text) {
		n = strlen(text);
		n = n < sizeof(info->name) - 1 ? n : sizeof(info->name) - 1;
		while (n && (text[n] & 0xc0) == 0x80)
			n--;
		memcpy(info->name, text, n);
	}
	for (char *c = info->name; *c; c++)
		if (*c == '"' || *c == '\'' || *c == '\\' || (unsigned char)*c < ' ' || *c == 0x7f)
			*c = '_';
	Py_XDECREF(name);
	return text ? 0 : -1;
}

static bool is_true(PyObject *o, const char *attribute)
{
	PyObject *v = PyObject_GetAttrString(o, attribute);
	bool res = v && PyObject_IsTrue(v) > 0;

	PyErr_Clear();
	Py_XDECREF(v);
	return res;
}

static int fill_info(struct class_info *info, PyObject *cls)
{
	PyObject *setup = PyObject_GetAttr(cls, function_names.setup), *back = NULL;

	if (setup)
		back = PyObject_GetAttr(cls, function_names.backward);
	if (back && !set_name(info, cls)) {
		info->cls = cls;
		info->setup = setup != function_base_setup;
		info->once = is_true(back, "_once_differentiable");
		info->f = (struct tensor_function){ info->name[0] ? info->name : "Function",
						    function_forward, function_backward,
						    is_true(cls, "_records_batch") ?
							    TENSOR_FUNCTION_RECORDS_BATCH :
							    0 };
	}
	Py_XDECREF(back);
	Py_XDECREF(setup);
	return info->cls ? 0 : -1;
}

PyObject *class_info_of(PyObject *cls)
{
	PyObject *capsule = PyObject_GetAttr(cls, function_names.info);
	struct class_info *info;

	if (!capsule) {
		PyErr_Clear();
	} else {
		info = PyCapsule_GetPointer(capsule, CLASS_INFO);
		if (info && info->cls == cls)
			return capsule;
		Py_DECREF(capsule);
		if (!info)
			return NULL;
	}
	info = calloc(1, sizeof(*info));
	if (!info)
		return PyErr_NoMemory();
	capsule = PyCapsule_New(info, CLASS_INFO, info_free);
	if (!capsule)
		free(info);
	else if (fill_info(info, cls) < 0 ||
		 PyObject_SetAttr(cls, function_names.info, capsule) < 0)
		Py_CLEAR(capsule);
	return capsule;
}

int add_function_names(void)
{
	function_names.forward = PyUnicode_InternFromString("forward");
	function_names.backward = PyUnicode_InternFromString("backward");
	function_names.setup = PyUnicode_InternFromString("setup_context");
	function_names.info = PyUnicode_InternFromString("_devtensor_function");
	return function_names.forward && function_names.backward && function_names.setup &&
			       function_names.info ?
		       0 :
		       -1;
}
