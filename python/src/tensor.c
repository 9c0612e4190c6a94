// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The type Tensor: allocation and release of its objects.
 *
 * A tensor has at most one object (tensor_binding()), so an operator that returns its argument
 * returns the same object. Objects of the exact type are reused through a free list. The garbage
 * collector tracks only objects from which it may reach an object of Python: those of subclasses,
 * which have a dict, and those whose graph may have a function of the program.
 */
#include "internal.h"

#include <structmember.h>

PyTypeObject *tensor_type;
bool have_subclasses;

#define FREE_LIST 64
static PyTensor *free_list[FREE_LIST];
static int nfree;

static PyTensor *alloc_exact(void)
{
	PyTensor *o;

	if (likely(nfree)) {
		o = free_list[--nfree];
		PyObject_Init((PyObject *)o, tensor_type);
	} else {
		o = PyObject_GC_New(PyTensor, tensor_type);
		if (!o)
			return NULL;
	}
	o->t = NULL;
	o->weakrefs = NULL;
	o->shape = NULL;
	o->tracked = false;
	o->found = false;
	o->owned = NULL;
	return o;
}

/* Objects of subclasses are allocated and tracked by PyType_GenericAlloc(). */
static PyTensor *alloc_subclass(PyTypeObject *type)
{
	PyTensor *o = (PyTensor *)type_alloc(type);

	have_subclasses = true;
	if (o)
		o->tracked = true;
	return o;
}

/* The object of t, borrowed. One that is being freed has no references, but may still run code of the program. */
static PyObject *bound_object(const tensor *t)
{
	PyTensor *o = tensor_binding(t);

	if (likely(!o) || Py_REFCNT((PyObject *)o) <= 0)
		return NULL;
	o->found = true;
	return (PyObject *)o;
}

/* Takes the reference to t, also on failure. */
static PyObject *new_object(PyTypeObject *type, tensor *t)
{
	PyTensor *o = type == tensor_type ? alloc_exact() : alloc_subclass(type);

	if (unlikely(!o)) {
		tensor_release(t);
		return NULL;
	}
	o->t = t;
	tensor_set_binding(t, o);
	track((PyObject *)o);
	return (PyObject *)o;
}

void track(PyObject *self)
{
	PyTensor *o = (PyTensor *)self;

	if (unlikely(!o->tracked && tensor_requires_grad(o->t))) {
		o->tracked = true;
		PyObject_GC_Track(o);
	}
}

PyObject *wrap_result(tensor *t)
{
	PyObject *o;

	if (unlikely(!t))
		return raise_error();
	t = tensor_keep(t);
	o = bound_object(t);
	if (unlikely(o)) {
		Py_INCREF(o);
		tensor_release(t);
		track(o);
		return o;
	}
	return new_object(tensor_type, t);
}

PyObject *wrap_borrowed(tensor *t)
{
	PyObject *o;

	if (!t || t == tensor_none)
		Py_RETURN_NONE;
	o = bound_object(t);
	if (o)
		return Py_NewRef(o);
	return new_object(tensor_type, tensor_retain(t));
}

PyObject *wrap_as(PyTypeObject *type, tensor *t)
{
	PyObject *o;

	if (!t)
		return raise_error();
	t = tensor_keep(t);
	o = bound_object(t);
	if (!o)
		return new_object(type, t);
	tensor_release(t);
	if (Py_IS_TYPE(o, type))
		return Py_NewRef(o);
	/* The tensor has an object of another type: a new tensor on the same memory gets this one. */
	t = tensor_alias(tensor_of(o));
	return t ? new_object(type, tensor_keep(t)) : raise_error();
}

PyObject *tensor_tuple(PyObject *list, const char *what)
{
	PyObject *tuple = PySequence_Tuple(list);

	for (Py_ssize_t i = 0; tuple && i < PyTuple_Size(tuple); i++) {
		PyObject *o = PyTuple_GetItem(tuple, i);

		if (is_tensor(o))
			continue;
		PyErr_Format(PyExc_TypeError, "%s: element %zd is no tensor but %R", what, i,
			     Py_TYPE(o));
		Py_CLEAR(tuple);
	}
	return tuple;
}

/* ---- type ---- */

static void tensor_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyTensor *o = (PyTensor *)self;
	tensor *t = o->t;

	/* Python tracks each object of a subclass before it calls this function. */
	if (o->tracked || type != tensor_type)
		PyObject_GC_UnTrack(self);
	/* An operator that returned t meanwhile has made another object. */
	if (likely(t && tensor_binding(t) == o))
		tensor_set_binding(t, NULL);
	if (unlikely(o->weakrefs))
		PyObject_ClearWeakRefs(self);
	if (unlikely(o->owned)) {
		free(o->owned);
		o->owned = NULL;
	}
	Py_XDECREF(o->shape);
	if (likely(t)) {
		o->t = NULL;
		/* The last reference may call destroy functions of Python hooks and functions. */
		tensor_release(t);
	}
	if (likely(type == tensor_type && nfree < FREE_LIST))
		free_list[nfree++] = o;
	else if (type == tensor_type)
		PyObject_GC_Del(self);
	else
		type_free(type, self);
	Py_DECREF(type);
}

static int tensor_traverse(PyObject *self, visitproc visit, void *arg)
{
	PyTensor *o = (PyTensor *)self;

	Py_VISIT(Py_TYPE(self));
	if (begins_collection(visit))
		o->found = false;
	return traverse_tensor(o->t, &o->owned, visit, arg);
}

/*
 * The object stands for a tensor without elements from here on, because other garbage may still use it. While a collection
 * ends garbage, a graph that is alive may lead to the tensor, and another thread, or code that the collection runs, may
 * take the object from there: then it is no garbage any more.
 */
static int tensor_clear(PyObject *self)
{
	static tensor *cleared;
	PyTensor *o = (PyTensor *)self;
	tensor *t = o->t;

	if (o->found)
		return 0;
	if (!cleared) {
		cleared = tensor_empty(TENSOR_SHAPE(0), TENSOR_OPTIONS(.dtype = TENSOR_F32));
		if (!cleared)
			return 0;
		cleared = tensor_keep(cleared);
	}
	if (!t || t == cleared)
		return 0;
	tensor_set_binding(t, NULL);
	o->t = tensor_retain(cleared);
	tensor_release(t);
	return 0;
}

static Py_hash_t tensor_hash(PyObject *self)
{
	/* As object.__hash__(): tensors are compared by element, and kept in sets by identity. */
	return (Py_hash_t)((uintptr_t)self >> 4 | (uintptr_t)self << 60);
}

static PyMemberDef members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, NULL },
	{ NULL },
};

/* Further arguments are for __init__() of a subclass: object's would ignore them. */
static bool takes_only_data(PyTypeObject *type)
{
	return PyType_GetSlot(type, Py_tp_init) == PyType_GetSlot(&PyBaseObject_Type, Py_tp_init);
}

/* Tensor(data): a subclass may be called with a tensor, and gets its memory; other data is copied. */
static PyObject *tensor_new_object(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	Py_ssize_t n = PyTuple_Size(args) + (kwargs ? PyDict_Size(kwargs) : 0);
	PyObject *data, *base, *o;

	if (PyTuple_Size(args) < 1)
		return PyErr_Format(PyExc_TypeError, "Tensor: an argument is missing: data");
	if (n > 1 && takes_only_data(type))
		return PyErr_Format(
			PyExc_TypeError,
			"Tensor(data) takes one argument, got %zd: empty() makes a tensor by "
			"size, tensor() takes a dtype",
			n);
	data = PyTuple_GetItem(args, 0);
	base = is_tensor(data) ? Py_NewRef(data) : tensor_from_object(data, TENSOR_DTYPE_NONE);
	if (!base)
		return NULL;
	o = wrap_as(type, tensor_alias(tensor_of(base)));
	Py_DECREF(base);
	return o;
}

static PyType_Slot own_slots[] = {
	{ Py_tp_doc, "Tensor(data)\n--\n\nA tensor: elements of one dtype in a strided array." },
	{ Py_tp_new, tensor_new_object },
	{ Py_tp_dealloc, tensor_dealloc },
	{ Py_tp_traverse, tensor_traverse },
	{ Py_tp_clear, tensor_clear },
	{ Py_tp_hash, tensor_hash },
	{ Py_tp_members, members },
	{ Py_tp_getset, tensor_getset },
};

/* Methods of both tables, in one array that the type keeps. */
static PyMethodDef *all_methods(void)
{
	size_t generated = 0, own = 0;
	PyMethodDef *methods;

	while (generated_methods[generated].ml_name)
		generated++;
	while (tensor_methods[own].ml_name)
		own++;
	methods = PyMem_Calloc(generated + own + 1, sizeof(*methods));
	if (!methods) {
		PyErr_NoMemory();
		return NULL;
	}
	/* The first definition of a name counts. */
	memcpy(methods, tensor_methods, own * sizeof(*methods));
	memcpy(methods + own, generated_methods, generated * sizeof(*methods));
	return methods;
}

int add_methods(PyTypeObject *type, PyMethodDef *defs)
{
	for (PyMethodDef *d = defs; d->ml_name; d++) {
		PyObject *method = PyDescr_NewMethod(type, d);
		int err = method ? PyObject_SetAttrString((PyObject *)type, d->ml_name, method) :
				   -1;

		Py_XDECREF(method);
		if (err < 0)
			return -1;
	}
	return 0;
}

int add_tensor(PyObject *module)
{
	PyType_Spec spec = { "devtensor.Tensor", sizeof(PyTensor), 0,
			     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, NULL };
	PyMethodDef *methods = all_methods();
	size_t n = 0, nbuffer = 0;

	if (!methods)
		return -1;
	while (number_slots[n].slot)
		n++;
	while (buffer_slots[nbuffer].slot)
		nbuffer++;
	spec.slots = PyMem_Calloc(COUNT(own_slots) + n + nbuffer + 2, sizeof(PyType_Slot));
	if (!spec.slots) {
		PyErr_NoMemory();
		return -1;
	}
	memcpy(spec.slots, own_slots, sizeof(own_slots));
	memcpy(spec.slots + COUNT(own_slots), number_slots, n * sizeof(PyType_Slot));
	memcpy(spec.slots + COUNT(own_slots) + n, buffer_slots, nbuffer * sizeof(PyType_Slot));
	spec.slots[COUNT(own_slots) + n + nbuffer] = (PyType_Slot){ Py_tp_methods, methods };
	tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
	PyMem_Free(spec.slots);
	return tensor_type ? PyModule_AddObjectRef(module, "Tensor", (PyObject *)tensor_type) : -1;
}
