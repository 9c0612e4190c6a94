// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Files of tensors over the library's functions; the Python side is devtensor/serialization.py.
 *
 * Every call that reads or writes runs without the lock. An archive that is closed while other
 * threads read from it is released by the last of them.
 */
#include "internal.h"

#include <errno.h>

static PyTypeObject *archive_type;

typedef struct {
	PyObject_HEAD tensor_archive *a;
	int users; /* threads in a call; changed under the lock */
	bool closed;
} PyArchive;

/* A file with invalid contents is a ValueError, one that the system cannot read an OSError. */
static PyObject *raise_file(void)
{
	const struct tensor_error *e = tensor_last_error();

	if (PyErr_Occurred() || (e->code != EBADMSG && e->code != EFBIG))
		return raise_error();
	PyErr_SetString(PyExc_ValueError, e->text);
	return NULL;
}

/* ---- arguments ---- */

static int parse_map(const char *s, struct tensor_load_options *options)
{
	if (!s)
		options->map = TENSOR_MAP_NONE;
	else if (!strcmp(s, "r"))
		options->map = TENSOR_MAP_READONLY;
	else if (!strcmp(s, "c"))
		options->map = TENSOR_MAP_PRIVATE;
	else {
		PyErr_Format(PyExc_ValueError,
			     "map must be None, 'r' (read-only) or 'c' (copy on write), got '%s'",
			     s);
		return -1;
	}
	return 0;
}

static int parse_limit(PyObject *o, struct tensor_load_options *options)
{
	if (o == Py_None)
		return 0;
	options->max_bytes = PyLong_AsUnsignedLongLong(o);
	if (PyErr_Occurred())
		return -1;
	if (options->max_bytes)
		return 0;
	PyErr_SetString(PyExc_ValueError, "max_bytes must be positive");
	return -1;
}

/* path, map, max_bytes, shareable: path is a new reference to bytes. */
static int parse_load(PyObject *args, PyObject **path, struct tensor_load_options *options)
{
	PyObject *limit = Py_None;
	const char *map = NULL;
	int shareable = 0;

	memset(options, 0, sizeof(*options));
	if (!PyArg_ParseTuple(args, "O&|zOp", PyUnicode_FSConverter, path, &map, &limit,
			      &shareable))
		return -1;
	options->shareable = shareable;
	if (parse_map(map, options) == 0 && parse_limit(limit, options) == 0)
		return 0;
	Py_CLEAR(*path);
	return -1;
}

/* ---- npy ---- */

static PyObject *load_npy(PyObject *module, PyObject *args)
{
	struct tensor_load_options options;
	PyThreadState *state;
	const char *name;
	PyObject *path;
	tensor *t;

	if (parse_load(args, &path, &options) < 0)
		return NULL;
	name = PyBytes_AsString(path);
	state = PyEval_SaveThread();
	t = tensor_load_npy(name, &options);
	PyEval_RestoreThread(state);
	Py_DECREF(path);
	return t ? wrap_result(t) : raise_file();
}

static PyObject *save_npy(PyObject *module, PyObject *args)
{
	PyThreadState *state;
	PyObject *path, *t;
	const char *name;
	tensor *from;
	int err;

	if (!PyArg_ParseTuple(args, "O&O!", PyUnicode_FSConverter, &path, tensor_type, &t))
		return NULL;
	name = PyBytes_AsString(path);
	from = tensor_of(t);
	begin_call();
	state = PyEval_SaveThread();
	err = tensor_save_npy(name, from);
	PyEval_RestoreThread(state);
	end_call();
	Py_DECREF(path);
	return err < 0 ? raise_file() : Py_NewRef(Py_None);
}

/* ---- saving several tensors ---- */

/* The arguments of a call of the library, and the objects that they borrow from. */
struct named_list {
	PyObject *path, *names, *tensors, *keys, *values; /* path is bytes, the others are tuples */
	struct tensor_named *all;
	struct tensor_metadata *metadata;
	Py_ssize_t n, nmetadata;
};

static void free_list(struct named_list *l)
{
	PyMem_Free(l->all);
	PyMem_Free(l->metadata);
	Py_CLEAR(l->path);
}

static const char *text_of(PyObject *o, const char *what)
{
	Py_ssize_t n;
	const char *s;

	if (!PyUnicode_Check(o)) {
		PyErr_Format(PyExc_TypeError, "%s must be a string, got %R", what, Py_TYPE(o));
		return NULL;
	}
	s = PyUnicode_AsUTF8AndSize(o, &n);
	if (!s || strlen(s) == (size_t)n)
		return s;
	PyErr_Format(PyExc_ValueError, "%s has a null character: %R", what, o);
	return NULL;
}

static int fill_tensors(struct named_list *l)
{
	for (Py_ssize_t i = 0; i < l->n; i++) {
		PyObject *t = PyTuple_GetItem(l->tensors, i);

		l->all[i].name = text_of(PyTuple_GetItem(l->names, i), "the name of a tensor");
		if (!l->all[i].name)
			return -1;
		if (!is_tensor(t)) {
			PyErr_Format(PyExc_TypeError, "%s is no tensor but %R", l->all[i].name,
				     Py_TYPE(t));
			return -1;
		}
		l->all[i].t = tensor_of(t);
	}
	return 0;
}

static int fill_metadata(struct named_list *l)
{
	for (Py_ssize_t i = 0; i < l->nmetadata; i++) {
		struct tensor_metadata *m = &l->metadata[i];

		m->key = text_of(PyTuple_GetItem(l->keys, i), "a key of the metadata");
		m->value =
			m->key ? text_of(PyTuple_GetItem(l->values, i), "a value of the metadata") :
				 NULL;
		if (!m->value)
			return -1;
	}
	return 0;
}

/* The tuples belong to the arguments, and path to the list. */
static int make_list(struct named_list *l)
{
	l->n = PyTuple_Size(l->names);
	l->nmetadata = l->keys ? PyTuple_Size(l->keys) : 0;
	if (PyTuple_Size(l->tensors) != l->n ||
	    (l->keys && PyTuple_Size(l->values) != l->nmetadata)) {
		PyErr_SetString(PyExc_ValueError, "as many names as tensors are needed");
		return -1;
	}
	l->all = PyMem_Calloc(l->n + 1, sizeof(*l->all));
	l->metadata = PyMem_Calloc(l->nmetadata + 1, sizeof(*l->metadata));
	if (!l->all || !l->metadata) {
		PyErr_NoMemory();
		return -1;
	}
	if (fill_tensors(l) < 0)
		return -1;
	return fill_metadata(l);
}

static PyObject *save_npz(PyObject *module, PyObject *args)
{
	struct named_list l = { 0 };
	PyThreadState *state;
	int compressed, err = -1;

	if (!PyArg_ParseTuple(args, "O&O!O!p", PyUnicode_FSConverter, &l.path, &PyTuple_Type,
			      &l.names, &PyTuple_Type, &l.tensors, &compressed))
		return NULL;
	if (make_list(&l) == 0) {
		const char *path = PyBytes_AsString(l.path);

		begin_call();
		state = PyEval_SaveThread();
		err = tensor_save_npz(path, l.all, l.n, compressed ? TENSOR_SAVE_COMPRESSED : 0);
		PyEval_RestoreThread(state);
		end_call();
		if (err < 0)
			raise_file();
	}
	free_list(&l);
	return err < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *save_safetensors(PyObject *module, PyObject *args)
{
	struct named_list l = { 0 };
	PyThreadState *state;
	int err = -1;

	if (!PyArg_ParseTuple(args, "O&O!O!O!O!", PyUnicode_FSConverter, &l.path, &PyTuple_Type,
			      &l.names, &PyTuple_Type, &l.tensors, &PyTuple_Type, &l.keys,
			      &PyTuple_Type, &l.values))
		return NULL;
	if (make_list(&l) == 0) {
		const char *path = PyBytes_AsString(l.path);

		begin_call();
		state = PyEval_SaveThread();
		err = tensor_save_safetensors(path, l.all, l.n, l.metadata, l.nmetadata);
		PyEval_RestoreThread(state);
		end_call();
		if (err < 0)
			raise_file();
	}
	free_list(&l);
	return err < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- archives ---- */

static PyObject *open_archive(PyObject *args,
			      tensor_archive *(*open)(const char *,
						      const struct tensor_load_options *))
{
	struct tensor_load_options options;
	PyThreadState *state;
	tensor_archive *a;
	const char *name;
	PyObject *path;
	PyArchive *o;

	if (parse_load(args, &path, &options) < 0)
		return NULL;
	name = PyBytes_AsString(path);
	state = PyEval_SaveThread();
	a = open(name, &options);
	PyEval_RestoreThread(state);
	Py_DECREF(path);
	if (!a)
		return raise_file();
	o = PyObject_New(PyArchive, archive_type);
	if (!o) {
		tensor_archive_close(a);
		return NULL;
	}
	o->a = a;
	o->users = 0;
	o->closed = false;
	return (PyObject *)o;
}

static PyObject *open_npz(PyObject *module, PyObject *args)
{
	return open_archive(args, tensor_open_npz);
}

static PyObject *open_safetensors(PyObject *module, PyObject *args)
{
	return open_archive(args, tensor_open_safetensors);
}

static void release_unused(PyArchive *o)
{
	if (!o->closed || o->users || !o->a)
		return;
	tensor_archive_close(o->a);
	o->a = NULL;
}

static PyArchive *opened(PyObject *self)
{
	PyArchive *o = (PyArchive *)self;

	if (!o->closed)
		return o;
	PyErr_SetString(PyExc_ValueError, "the archive is closed");
	return NULL;
}

static PyObject *archive_close(PyObject *self, PyObject *unused)
{
	PyArchive *o = (PyArchive *)self;

	o->closed = true;
	release_unused(o);
	Py_RETURN_NONE;
}

static void archive_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	Py_DECREF(archive_close(self, NULL));
	PyObject_Free(self);
	Py_DECREF(type);
}

/* A name of a zip file that is not UTF-8 has the encoding that zip files had before, as in Python's zipfile. */
static PyObject *decode_name(const char *name)
{
	PyObject *text = PyUnicode_FromString(name);

	if (text || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
		return text;
	PyErr_Clear();
	return PyUnicode_Decode(name, (Py_ssize_t)strlen(name), "cp437", "strict");
}

/* Stores what tensor_archive_find() returns, negative if there is no such name. -1 with an exception. */
static int find_name(const tensor_archive *a, PyObject *name, int64_t *i)
{
	const char *s = text_of(name, "the name of a tensor");
	PyObject *bytes;

	if (!s)
		return -1;
	*i = tensor_archive_find(a, s);
	if (*i >= 0)
		return 0;
	bytes = PyUnicode_AsEncodedString(name, "cp437", "strict");
	if (!bytes && !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
		return -1;
	PyErr_Clear();
	if (bytes)
		*i = tensor_archive_find(a, PyBytes_AsString(bytes));
	Py_XDECREF(bytes);
	return 0;
}

static PyObject *archive_names(PyObject *self, PyObject *unused)
{
	PyArchive *o = opened(self);
	int64_t n = o ? tensor_archive_count(o->a) : 0;
	PyObject *list = o ? PyList_New(n) : NULL;

	for (int64_t i = 0; list && i < n; i++) {
		PyObject *name = decode_name(tensor_archive_name(o->a, i));

		if (name)
			PyList_SetItem(list, i, name);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *archive_metadata(PyObject *self, PyObject *unused)
{
	PyArchive *o = opened(self);
	PyObject *dict = o ? PyDict_New() : NULL;
	const struct tensor_metadata *m;

	for (int64_t i = 0; dict && (m = tensor_archive_metadata(o->a, i)); i++) {
		PyObject *value = PyUnicode_FromString(m->value);

		if (!value || PyDict_SetItemString(dict, m->key, value) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(value);
	}
	return dict;
}

static PyObject *archive_get(PyObject *self, PyObject *name)
{
	PyArchive *o = opened(self);
	PyThreadState *state;
	int64_t i;
	tensor *t;

	if (!o)
		return NULL;
	if (find_name(o->a, name, &i) < 0)
		return NULL;
	if (i < 0) {
		PyErr_SetObject(PyExc_KeyError, name);
		return NULL;
	}
	o->users++;
	state = PyEval_SaveThread();
	t = tensor_archive_at(o->a, i);
	PyEval_RestoreThread(state);
	o->users--;
	release_unused(o);
	return t ? wrap_result(t) : raise_file();
}

static PyMethodDef archive_methods[] = {
	{ "names", archive_names, METH_NOARGS, NULL },
	{ "metadata", archive_metadata, METH_NOARGS, NULL },
	{ "get", archive_get, METH_O, NULL },
	{ "close", archive_close, METH_NOARGS, NULL },
	{ NULL },
};

static PyType_Slot archive_slots[] = {
	{ Py_tp_doc, "An open file of named tensors." },
	{ Py_tp_dealloc, archive_dealloc },
	{ Py_tp_methods, archive_methods },
	{ 0 },
};

static PyMethodDef functions[] = {
	{ "_load_npy", load_npy, METH_VARARGS, NULL },
	{ "_save_npy", save_npy, METH_VARARGS, NULL },
	{ "_save_npz", save_npz, METH_VARARGS, NULL },
	{ "_save_safetensors", save_safetensors, METH_VARARGS, NULL },
	{ "_open_npz", open_npz, METH_VARARGS, NULL },
	{ "_open_safetensors", open_safetensors, METH_VARARGS, NULL },
	{ NULL },
};

int add_files(PyObject *module)
{
	PyType_Spec spec = { "devtensor._C._Archive", sizeof(PyArchive), 0,
			     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
				     Py_TPFLAGS_IMMUTABLETYPE,
			     archive_slots };

	archive_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (!archive_type)
		return -1;
	return PyModule_AddFunctions(module, functions);
}
