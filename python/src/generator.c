// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Random number generators. */
#include "internal.h"

PyTypeObject *generator_type;

static tensor_generator *generator_of(PyObject *o)
{
	return ((PyGenerator *)o)->g;
}

static PyObject *wrap_generator(PyTypeObject *type, tensor_generator *g)
{
	PyGenerator *o;

	if (!g)
		return raise_error();
	o = PyObject_New(PyGenerator, type);
	if (o)
		o->g = g;
	else
		tensor_generator_release(g);
	return (PyObject *)o;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "device", NULL };
	PyObject *device = NULL, *o;
	tensor_device d = TENSOR_DEVICE_CPU;
	int err = 1;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", keywords, &device))
		return NULL;
	if (device)
		err = as_device(device, &d);
	if (err < 0)
		return NULL;
	if (!err || d.type != TENSOR_CPU)
		return PyErr_Format(PyExc_ValueError, "Generator: on the CPU only, got %R", device);
	o = wrap_generator(generator_type, tensor_generator_new(0));
	if (o)
		tensor_generator_seed(generator_of(o));
	return o;
}

static void generator_dealloc(PyObject *o)
{
	PyTypeObject *type = Py_TYPE(o);

	tensor_generator_release(generator_of(o));
	PyObject_Free(o);
	Py_DECREF(type);
}

/* A seed is 64 bits; a negative one stands for its two's complement, as in PyTorch. */
static int as_seed(PyObject *o, uint64_t *seed)
{
	PyObject *n = PyNumber_Index(o);
	int64_t negative;

	if (!n)
		return -1;
	*seed = PyLong_AsUnsignedLongLong(n);
	if (*seed == UINT64_MAX && PyErr_Occurred()) {
		PyErr_Clear();
		negative = PyLong_AsLongLong(n);
		if (negative == -1 && PyErr_Occurred()) {
			Py_DECREF(n);
			return -1;
		}
		*seed = (uint64_t)negative;
	}
	Py_DECREF(n);
	return 0;
}

static PyObject *generator_manual_seed(PyObject *self, PyObject *arg)
{
	uint64_t seed;

	if (as_seed(arg, &seed) < 0)
		return NULL;
	tensor_generator_manual_seed(generator_of(self), seed);
	return Py_NewRef(self);
}

static PyObject *generator_seed(PyObject *self, PyObject *unused)
{
	return PyLong_FromUnsignedLongLong(tensor_generator_seed(generator_of(self)));
}

static PyObject *generator_initial_seed(PyObject *self, PyObject *unused)
{
	return PyLong_FromUnsignedLongLong(tensor_generator_initial_seed(generator_of(self)));
}

static PyObject *generator_get_state(PyObject *self, PyObject *unused)
{
	struct tensor_generator_state s;

	tensor_generator_get_state(generator_of(self), &s);
	return Py_BuildValue("(KK)", (unsigned long long)s.seed, (unsigned long long)s.offset);
}

static PyObject *generator_set_state(PyObject *self, PyObject *arg)
{
	unsigned long long seed, offset;
	struct tensor_generator_state s;

	if (!PyTuple_Check(arg) || !PyArg_ParseTuple(arg, "KK", &seed, &offset))
		return PyErr_Occurred() ? NULL :
					  PyErr_Format(PyExc_TypeError,
						       "set_state: expected a tuple of two ints");
	s = (struct tensor_generator_state){ seed, offset };
	tensor_generator_set_state(generator_of(self), &s);
	return Py_NewRef(self);
}

static PyObject *generator_device(PyObject *self, void *unused)
{
	return wrap_device(TENSOR_DEVICE_CPU);
}

static PyObject *generator_reduce(PyObject *self, PyObject *unused)
{
	return Py_BuildValue("(O()N)", Py_TYPE(self), generator_get_state(self, NULL));
}

static PyMethodDef methods[] = {
	{ "manual_seed", generator_manual_seed, METH_O,
	  "manual_seed($self, seed, /)\n--\n\nSet the seed. Returns the generator." },
	{ "seed", generator_seed, METH_NOARGS,
	  "seed($self, /)\n--\n\nSet a random seed from the kernel and return it." },
	{ "initial_seed", generator_initial_seed, METH_NOARGS,
	  "initial_seed($self, /)\n--\n\nThe seed that was set last." },
	{ "get_state", generator_get_state, METH_NOARGS,
	  "get_state($self, /)\n--\n\nThe state: a tuple of the seed and the position." },
	{ "set_state", generator_set_state, METH_O,
	  "set_state($self, state, /)\n--\n\nContinue from a state of get_state()." },
	{ "__reduce__", generator_reduce, METH_NOARGS, NULL },
	{ "__setstate__", generator_set_state, METH_O, NULL },
	{ NULL },
};

static PyGetSetDef getset[] = {
	{ "device", generator_device, NULL, "The device of the generator." },
	{ NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "Generator(device='cpu')\n--\n\nA random number generator (Philox 4x32-10)." },
	{ Py_tp_new, generator_new },
	{ Py_tp_dealloc, generator_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, getset },
	{ 0 },
};

int add_generator(PyObject *module)
{
	PyType_Spec spec = { "devtensor.Generator", sizeof(PyGenerator), 0,
			     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots };
	PyObject *g;
	int err;

	generator_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (!generator_type ||
	    PyModule_AddObjectRef(module, "Generator", (PyObject *)generator_type) < 0)
		return -1;
	g = wrap_generator(generator_type, tensor_generator_retain(tensor_default_generator()));
	err = g ? PyModule_AddObjectRef(module, "default_generator", g) : -1;
	Py_XDECREF(g);
	return err;
}
