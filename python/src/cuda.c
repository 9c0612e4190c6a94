// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA devices and their graphs, below devtensor.cuda. */
#include "internal.h"

#include <tensor/cuda.h>

typedef struct {
	PyObject_HEAD tensor_cuda_graph *graph;
	bool busy; /* in a call without the lock */
} PyGraph;

static PyTypeObject *graph_type;

/* ---- graphs ---- */

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "device", NULL };
	tensor_cuda_graph *graph;
	PyGraph *o;
	int device = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i", keywords, &device))
		return NULL;
	graph = tensor_cuda_graph_new(device);
	if (!graph)
		return raise_error();
	o = (PyGraph *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
	if (!o) {
		tensor_cuda_graph_release(graph);
		return NULL;
	}
	o->graph = graph;
	return (PyObject *)o;
}

/* Waits for replays. */
static void graph_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	tensor_cuda_graph *graph = ((PyGraph *)self)->graph;
	struct saved_errors before;

	errors_save(&before);
	Py_BEGIN_ALLOW_THREADS tensor_cuda_graph_release(graph);
	Py_END_ALLOW_THREADS errors_restore(&before);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

/* A call that may wait, without the lock. */
static PyObject *call_without_lock(PyObject *self, int (*fn)(tensor_cuda_graph *graph))
{
	PyGraph *o = (PyGraph *)self;
	int err;

	if (o->busy)
		return PyErr_Format(PyExc_RuntimeError, "another thread uses the graph");
	o->busy = true;
	Py_BEGIN_ALLOW_THREADS err = fn(o->graph);
	Py_END_ALLOW_THREADS o->busy = false;
	if (err < 0)
		return raise_error();
	Py_RETURN_NONE;
}

static int begin_alone(tensor_cuda_graph *graph)
{
	return tensor_cuda_graph_capture_begin(graph, NULL);
}

static PyObject *graph_capture_begin(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "pool", NULL };
	PyObject *pool = Py_None;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", keywords, &pool))
		return NULL;
	if (pool == Py_None)
		return call_without_lock(self, begin_alone);
	if (!PyObject_TypeCheck(pool, graph_type))
		return PyErr_Format(PyExc_TypeError, "capture_begin: pool must be a graph, got %R",
				    pool);
	if (((PyGraph *)self)->busy || ((PyGraph *)pool)->busy)
		return PyErr_Format(PyExc_RuntimeError, "another thread uses the graph");
	if (tensor_cuda_graph_capture_begin(((PyGraph *)self)->graph, ((PyGraph *)pool)->graph) < 0)
		return raise_error();
	Py_RETURN_NONE;
}

static PyObject *graph_capture_end(PyObject *self, PyObject *unused)
{
	return call_without_lock(self, tensor_cuda_graph_capture_end);
}

static PyObject *graph_replay(PyObject *self, PyObject *unused)
{
	return call_without_lock(self, tensor_cuda_graph_replay);
}

static PyObject *graph_wait(PyObject *self, PyObject *unused)
{
	return call_without_lock(self, tensor_cuda_graph_wait);
}

static PyObject *graph_reset(PyObject *self, PyObject *unused)
{
	return call_without_lock(self, tensor_cuda_graph_reset);
}

static PyObject *graph_register(PyObject *self, PyObject *generator)
{
	PyGraph *o = (PyGraph *)self;

	if (Py_TYPE(generator) != generator_type)
		return PyErr_Format(PyExc_TypeError,
				    "register_generator_state: expected a Generator, got %R",
				    generator);
	if (o->busy)
		return PyErr_Format(PyExc_RuntimeError, "another thread uses the graph");
	if (tensor_cuda_graph_register_generator(o->graph, ((PyGenerator *)generator)->g) < 0)
		return raise_error();
	Py_RETURN_NONE;
}

static PyMethodDef graph_methods[] = {
	{ "capture_begin", (PyCFunction)(void (*)(void))graph_capture_begin,
	  METH_VARARGS | METH_KEYWORDS,
	  "capture_begin($self, pool=None)\n--\n\nBegin to capture the thread's operators on the "
	  "device. pool: a graph whose memory is used, too." },
	{ "capture_end", graph_capture_end, METH_NOARGS,
	  "capture_end($self, /)\n--\n\nEnd the capture, in the thread that began it." },
	{ "replay", graph_replay, METH_NOARGS,
	  "replay($self, /)\n--\n\nQueue the captured work in the thread's current stream." },
	{ "wait", graph_wait, METH_NOARGS,
	  "wait($self, /)\n--\n\nWait for the last replay. IndexError: an index or value of a "
	  "replay was out of range." },
	{ "reset", graph_reset, METH_NOARGS,
	  "reset($self, /)\n--\n\nWait for the replays and release what the graph holds. It can "
	  "capture again." },
	{ "register_generator_state", graph_register, METH_O,
	  "register_generator_state($self, generator, /)\n--\n\nAllow the capture to draw from a "
	  "generator other than the default one." },
	{ NULL },
};

static PyType_Slot graph_slots[] = {
	{ Py_tp_doc, "CUDAGraph(device=0)\n--\n\nWork of a device that is captured once and "
		     "replayed by one call." },
	{ Py_tp_new, graph_new },
	{ Py_tp_dealloc, graph_dealloc },
	{ Py_tp_methods, graph_methods },
	{ 0 },
};

/* ---- devices ---- */

static PyObject *is_available(PyObject *module, PyObject *unused)
{
	return PyBool_FromLong(tensor_cuda_is_available());
}

static PyObject *device_count(PyObject *module, PyObject *unused)
{
	int n = tensor_cuda_is_available() ? tensor_cuda_device_count() : 0;

	return n < 0 ? raise_error() : PyLong_FromLong(n);
}

static PyObject *synchronize(PyObject *module, PyObject *args)
{
	int device, err;

	if (!PyArg_ParseTuple(args, "i", &device))
		return NULL;
	Py_BEGIN_ALLOW_THREADS err = tensor_cuda_synchronize(device);
	Py_END_ALLOW_THREADS if (err < 0) return raise_error();
	Py_RETURN_NONE;
}

static PyObject *is_capturing(PyObject *module, PyObject *args)
{
	int device;

	if (!PyArg_ParseTuple(args, "i", &device))
		return NULL;
	return PyBool_FromLong(tensor_cuda_is_capturing(device));
}

static PyObject *get_checks(PyObject *module, PyObject *unused)
{
	return PyLong_FromLong(tensor_cuda_checks());
}

static PyObject *set_checks(PyObject *module, PyObject *args)
{
	int mode;

	if (!PyArg_ParseTuple(args, "i", &mode))
		return NULL;
	mode = tensor_cuda_set_checks(mode);
	return mode < 0 ? raise_error() : PyLong_FromLong(mode);
}

static PyMethodDef functions[] = {
	{ "_cuda_is_available", is_available, METH_NOARGS, NULL },
	{ "_cuda_device_count", device_count, METH_NOARGS, NULL },
	{ "_cuda_synchronize", synchronize, METH_VARARGS, NULL },
	{ "_cuda_is_capturing", is_capturing, METH_VARARGS, NULL },
	{ "_cuda_checks", get_checks, METH_NOARGS, NULL },
	{ "_cuda_set_checks", set_checks, METH_VARARGS, NULL },
	{ NULL },
};

int add_cuda(PyObject *module)
{
	graph_type = add_type(module, "devtensor._C._CUDAGraph", sizeof(PyGraph), graph_slots);
	return graph_type ? PyModule_AddFunctions(module, functions) : -1;
}
