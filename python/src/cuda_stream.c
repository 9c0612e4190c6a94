// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Current device, streams and events of CUDA, below devtensor.cuda. A stream is the number of its cudaStream_t. */
#include "internal.h"

#include <stdatomic.h>
#include <tensor/cuda.h>

/* Set by the first call of set_device(): until then "cuda" is cuda:0, without loading the plugin. */
static atomic_bool device_was_set;

int cuda_current_index(void)
{
	int device = atomic_load(&device_was_set) ? tensor_cuda_current_device() : 0;

	return device < 0 ? 0 : device;
}

/* "O&" of PyArg_ParseTuple. */
static int to_stream(PyObject *o, void *to)
{
	*(void **)to = PyLong_AsVoidPtr(o);
	return !PyErr_Occurred();
}

static PyObject *from_stream(void *stream)
{
	return PyLong_FromVoidPtr(stream);
}

static PyObject *none_or_error(int err)
{
	if (err < 0)
		return raise_error();
	Py_RETURN_NONE;
}

static PyObject *bool_or_error(int result)
{
	return result < 0 ? raise_error() : PyBool_FromLong(result);
}

/* ---- events ---- */

typedef struct {
	PyObject_HEAD tensor_cuda_event *event;
} PyEvent;

static PyTypeObject *event_type;

static tensor_cuda_event *event_of(PyObject *o)
{
	return ((PyEvent *)o)->event;
}

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	tensor_cuda_event *event;
	unsigned int flags;
	PyEvent *o;
	int device;

	if (!PyArg_ParseTuple(args, "iI", &device, &flags))
		return NULL;
	event = tensor_cuda_event_new(device, flags);
	if (!event)
		return raise_error();
	o = (PyEvent *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
	if (o)
		o->event = event;
	else
		tensor_cuda_event_release(event);
	return (PyObject *)o;
}

static void event_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	struct saved_errors before;

	errors_save(&before);
	tensor_cuda_event_release(event_of(self));
	errors_restore(&before);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static PyObject *event_record(PyObject *self, PyObject *args)
{
	void *stream;

	if (!PyArg_ParseTuple(args, "O&", to_stream, &stream))
		return NULL;
	return none_or_error(tensor_cuda_event_record(event_of(self), stream));
}

static PyObject *event_query(PyObject *self, PyObject *unused)
{
	return bool_or_error(tensor_cuda_event_query(event_of(self)));
}

static PyObject *event_synchronize(PyObject *self, PyObject *unused)
{
	int err;

	Py_BEGIN_ALLOW_THREADS err = tensor_cuda_event_synchronize(event_of(self));
	Py_END_ALLOW_THREADS return none_or_error(err);
}

static PyObject *event_elapsed(PyObject *self, PyObject *args)
{
	PyObject *to;
	float ms;

	if (!PyArg_ParseTuple(args, "O!", event_type, &to))
		return NULL;
	if (tensor_cuda_event_elapsed(event_of(self), event_of(to), &ms) < 0)
		return raise_error();
	return PyFloat_FromDouble(ms);
}

/* wait(device, stream): the stream waits for the event. */
static PyObject *event_wait(PyObject *self, PyObject *args)
{
	void *stream;
	int device;

	if (!PyArg_ParseTuple(args, "iO&", &device, to_stream, &stream))
		return NULL;
	return none_or_error(tensor_cuda_stream_wait(device, stream, event_of(self)));
}

static PyMethodDef event_methods[] = {
	{ "record", event_record, METH_VARARGS, NULL },
	{ "query", event_query, METH_NOARGS, NULL },
	{ "synchronize", event_synchronize, METH_NOARGS, NULL },
	{ "elapsed", event_elapsed, METH_VARARGS, NULL },
	{ "wait", event_wait, METH_VARARGS, NULL },
	{ NULL },
};

static PyType_Slot event_slots[] = {
	{ Py_tp_new, event_new },
	{ Py_tp_dealloc, event_dealloc },
	{ Py_tp_methods, event_methods },
	{ 0 },
};

/* ---- streams ---- */

static PyObject *stream(PyObject *module, PyObject *args)
{
	int device, priority;
	void *s;

	if (!PyArg_ParseTuple(args, "ii", &device, &priority))
		return NULL;
	s = tensor_cuda_stream(device, priority);
	return s ? from_stream(s) : raise_error();
}

static PyObject *set_stream(PyObject *module, PyObject *args)
{
	int device;
	void *s;

	if (!PyArg_ParseTuple(args, "iO&", &device, to_stream, &s))
		return NULL;
	return none_or_error(tensor_cuda_set_stream(device, s));
}

static PyObject *current_stream(PyObject *module, PyObject *args)
{
	void *s;
	int device;

	if (!PyArg_ParseTuple(args, "i", &device))
		return NULL;
	tensor_clear_error();
	s = tensor_cuda_current_stream(device);
	return s || !tensor_last_error()->code ? from_stream(s) : raise_error();
}

static PyObject *stream_query(PyObject *module, PyObject *args)
{
	int device;
	void *s;

	if (!PyArg_ParseTuple(args, "iO&", &device, to_stream, &s))
		return NULL;
	return bool_or_error(tensor_cuda_stream_query(device, s));
}

static PyObject *stream_synchronize(PyObject *module, PyObject *args)
{
	int device, err;
	void *s;

	if (!PyArg_ParseTuple(args, "iO&", &device, to_stream, &s))
		return NULL;
	Py_BEGIN_ALLOW_THREADS err = tensor_cuda_stream_synchronize(device, s);
	Py_END_ALLOW_THREADS return none_or_error(err);
}

static PyObject *record_stream(PyObject *module, PyObject *args)
{
	PyObject *t;
	void *s;

	if (!PyArg_ParseTuple(args, "O!O&", tensor_type, &t, to_stream, &s))
		return NULL;
	return none_or_error(tensor_cuda_record_stream(((PyTensor *)t)->t, s));
}

/* ---- devices ---- */

static PyObject *set_device(PyObject *module, PyObject *args)
{
	int device, err;

	if (!PyArg_ParseTuple(args, "i", &device))
		return NULL;
	err = tensor_cuda_set_device(device);
	if (!err)
		atomic_store(&device_was_set, true);
	return none_or_error(err);
}

static PyObject *current_device(PyObject *module, PyObject *unused)
{
	int device = tensor_cuda_current_device();

	return device < 0 ? raise_error() : PyLong_FromLong(device);
}

static PyObject *properties(PyObject *module, PyObject *args)
{
	struct tensor_cuda_properties p;
	int device;

	if (!PyArg_ParseTuple(args, "i", &device))
		return NULL;
	if (tensor_cuda_device_properties(device, &p) < 0)
		return raise_error();
	return Py_BuildValue("{s:s,s:i,s:i,s:K,s:i,s:i,s:i,s:K,s:y#,s:i,s:i,s:i,s:N}", "name",
			     p.name, "major", p.major, "minor", p.minor, "total_memory",
			     (unsigned long long)p.memory, "multi_processor_count",
			     p.multiprocessors, "max_threads_per_multi_processor", p.threads,
			     "L2_cache_size", p.l2_cache, "shared_memory_per_block_optin",
			     (unsigned long long)p.shared_memory, "uuid", (const char *)p.uuid,
			     (Py_ssize_t)sizeof(p.uuid), "pci_domain_id", p.pci_domain,
			     "pci_bus_id", p.pci_bus, "pci_device_id", p.pci_device,
			     "is_integrated", PyBool_FromLong(p.integrated));
}

static PyObject *memory_info(PyObject *module, PyObject *args)
{
	uint64_t unused, total;
	int device;

	if (!PyArg_ParseTuple(args, "i", &device))
		return NULL;
	if (tensor_cuda_memory_info(device, &unused, &total) < 0)
		return raise_error();
	return Py_BuildValue("KK", (unsigned long long)unused, (unsigned long long)total);
}

static PyObject *export_dmabuf(PyObject *module, PyObject *args)
{
	uint64_t offset, size;
	PyObject *t;
	int fd;

	if (!PyArg_ParseTuple(args, "O!", tensor_type, &t))
		return NULL;
	Py_BEGIN_ALLOW_THREADS fd = tensor_cuda_export_dmabuf(((PyTensor *)t)->t, &offset, &size);
	Py_END_ALLOW_THREADS return fd < 0 ?
		raise_error() :
		Py_BuildValue("iKK", fd, (unsigned long long)offset, (unsigned long long)size);
}

static PyObject *memory_trim(PyObject *module, PyObject *args)
{
	int device, err;

	if (!PyArg_ParseTuple(args, "i", &device))
		return NULL;
	Py_BEGIN_ALLOW_THREADS err = tensor_cuda_memory_trim(device);
	Py_END_ALLOW_THREADS return none_or_error(err);
}

/* Adds s as NAME.POOL.current and its other members. -1 with an exception. */
static int add_stat(PyObject *dict, const char *name, const char *pool,
		    const struct tensor_cuda_stat *s)
{
	const struct {
		const char *name;
		uint64_t value;
	} members[] = {
		{ "current", s->current },
		{ "peak", s->peak },
		{ "allocated", s->allocated },
		{ "freed", s->freed },
	};
	char key[80];
	int err = 0;

	for (int i = 0; i < 4 && !err; i++) {
		PyObject *value = PyLong_FromUnsignedLongLong(members[i].value);

		snprintf(key, sizeof(key), "%s.%s.%s", name, pool, members[i].name);
		err = value ? PyDict_SetItemString(dict, key, value) : -1;
		Py_XDECREF(value);
	}
	return err;
}

static int add_pools(PyObject *dict, const char *name, const struct tensor_cuda_stat_pools *of)
{
	return add_stat(dict, name, "all", &of->all) < 0 ||
			       add_stat(dict, name, "small_pool", &of->small_pool) < 0 ||
			       add_stat(dict, name, "large_pool", &of->large_pool) < 0 ?
		       -1 :
		       0;
}

static PyObject *memory_stats(PyObject *module, PyObject *args)
{
	struct tensor_cuda_stats s;
	const struct {
		const char *name;
		const struct tensor_cuda_stat_pools *pools;
	} all[] = {
		{ "active", &s.active },
		{ "active_bytes", &s.active_bytes },
		{ "allocated_bytes", &s.allocated_bytes },
		{ "allocation", &s.allocation },
		{ "inactive_split", &s.inactive_split },
		{ "inactive_split_bytes", &s.inactive_split_bytes },
		{ "requested_bytes", &s.requested_bytes },
		{ "reserved_bytes", &s.reserved_bytes },
		{ "segment", &s.segment },
	};
	PyObject *dict;
	int device, err = 0;

	if (!PyArg_ParseTuple(args, "i", &device))
		return NULL;
	if (tensor_cuda_memory_stats(device, &s) < 0)
		return raise_error();
	dict = Py_BuildValue("{s:K,s:K,s:K,s:K}", "num_alloc_retries",
			     (unsigned long long)s.num_alloc_retries, "num_ooms",
			     (unsigned long long)s.num_ooms, "num_device_alloc",
			     (unsigned long long)s.num_device_alloc, "num_device_free",
			     (unsigned long long)s.num_device_free);
	for (size_t i = 0; dict && i < sizeof(all) / sizeof(all[0]) && !err; i++)
		err = add_pools(dict, all[i].name, all[i].pools);
	if (err)
		Py_CLEAR(dict);
	return dict;
}

static PyObject *memory_reset(PyObject *module, PyObject *args)
{
	int device, accumulated;

	if (!PyArg_ParseTuple(args, "ip", &device, &accumulated))
		return NULL;
	return none_or_error(accumulated ? tensor_cuda_memory_reset_accumulated(device) :
					   tensor_cuda_memory_reset_peak(device));
}

static PyMethodDef functions[] = {
	{ "_cuda_stream", stream, METH_VARARGS, NULL },
	{ "_cuda_set_stream", set_stream, METH_VARARGS, NULL },
	{ "_cuda_current_stream", current_stream, METH_VARARGS, NULL },
	{ "_cuda_stream_query", stream_query, METH_VARARGS, NULL },
	{ "_cuda_stream_synchronize", stream_synchronize, METH_VARARGS, NULL },
	{ "_cuda_record_stream", record_stream, METH_VARARGS, NULL },
	{ "_cuda_set_device", set_device, METH_VARARGS, NULL },
	{ "_cuda_current_device", current_device, METH_NOARGS, NULL },
	{ "_cuda_properties", properties, METH_VARARGS, NULL },
	{ "_cuda_memory_info", memory_info, METH_VARARGS, NULL },
	{ "_cuda_export_dmabuf", export_dmabuf, METH_VARARGS, NULL },
	{ "_cuda_memory_trim", memory_trim, METH_VARARGS, NULL },
	{ "_cuda_memory_stats", memory_stats, METH_VARARGS, NULL },
	{ "_cuda_memory_reset", memory_reset, METH_VARARGS, NULL },
	{ NULL },
};

int add_cuda_streams(PyObject *module)
{
	event_type = add_type(module, "devtensor._C._CUDAEvent", sizeof(PyEvent), event_slots);
	return event_type ? PyModule_AddFunctions(module, functions) : -1;
}
