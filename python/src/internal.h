/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The extension module devtensor._C, on the stable ABI of CPython 3.11.
 *
 * Functions that return PyObject * return a new reference, or NULL with a Python exception set.
 * Functions that return int return 0, or -1 with an exception set, unless they say otherwise.
 */
#ifndef DEVTENSOR_INTERNAL_H
#define DEVTENSOR_INTERNAL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tensor/tensor.h>
#include <tensor/binding.h>
#include <tensor/dispatch.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))

/* Replaces a reference; the old one is dropped last, because that may run code of the program. */
static inline void set_ref(PyObject **at, PyObject *o)
{
	PyObject *old = *at;

	*at = o;
	Py_XDECREF(old);
}

/* Memory for an object of a type, which may be a subclass; the object holds its type. */
static inline PyObject *type_alloc(PyTypeObject *type)
{
	return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

/* The reference to the type remains. */
static inline void type_free(PyTypeObject *type, PyObject *o)
{
	((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
}

/* ---- error.c ---- */

/* Raises the exception for the library's error record. Always returns NULL, or -1. */
PyObject *raise_error(void);
int raise_error_int(void);
/* Moves the Python exception to the library's error record, from which raise_error() raises it, on whichever thread
 * the error arrives. Returns -errno: for functions that the library calls. */
int error_from_python(const char *what);
/* As raise_error() for backward and what belongs to it: RuntimeError where an argument has no graph, as PyTorch. */
PyObject *raise_graph_error(void);
/* Takes the lock in a function that the library calls. False with the library's error set if Python has ended. */
bool enter_python(PyGILState_STATE *state);
/* The errors of the thread, kept while a destroy function runs code of the program: it must not replace them. */
struct saved_errors {
	PyObject *type, *value, *traceback;
	struct tensor_error record;
};
void errors_save(struct saved_errors *e);
void errors_restore(struct saved_errors *e);
/* Drops a reference to an object that the library held: a destroy function, which any thread may call. */
void release_object(void *o);

/* ---- tensor.c ---- */

typedef struct {
	PyObject_HEAD tensor *t; /* owned; NULL only while the object is made */
	PyObject *weakrefs;
	bool tracked; /* by the garbage collector, because a graph can lead back to the object */
	bool found; /* by the library since the last collection began: in use, even if it was garbage */
	PyObject **owned; /* see gc.c */
	/* The last shape, of at most 4 dimensions, and the sizes for which it was made; owned, or NULL. */
	PyObject *shape;
	int64_t shape_ndim, shape_sizes[4];
} PyTensor;

extern PyTypeObject *tensor_type;

static inline bool is_exact_tensor(PyObject *o)
{
	return Py_TYPE(o) == tensor_type;
}

static inline bool is_tensor(PyObject *o)
{
	return is_exact_tensor(o) || PyType_IsSubtype(Py_TYPE(o), tensor_type);
}

/* Borrowed; o is a tensor. */
static inline tensor *tensor_of(PyObject *o)
{
	return ((PyTensor *)o)->t;
}

/*
 * A reference for the time in which a thread uses t without the lock. A garbage collection, which another thread may begin
 * meanwhile, follows the graphs of tensors that have no other reference than that of their object, and the operator may
 * replace what it reads there.
 */
static inline void hold(tensor *t)
{
	tensor_retain(t);
}

/*
 * Calls that use the tensors of objects without a reference, while code of the program may let a parameter stand for
 * another tensor (nn.c): what it stood for is released when the last of these calls has ended. Under the lock.
 */
extern int calls_with_tensors;
extern int nreplaced; /* tensors that wait for it */
void release_replaced(void);

static inline void begin_call(void)
{
	calls_with_tensors++;
}

static inline void end_call(void)
{
	if (unlikely(!--calls_with_tensors && nreplaced))
		release_replaced();
}

/* The object for the result of a library function; NULL raises the library's error. Outside of a
 * scope the reference is consumed, inside of one the scope keeps its own. */
PyObject *wrap_result(tensor *t);
/* The object for a tensor that the library lends, NULL gives None. */
PyObject *wrap_borrowed(tensor *t);
/* As wrap_result() for an object of a subclass. */
PyObject *wrap_as(PyTypeObject *type, tensor *t);
/* True once an object of a subclass was made: before that, no argument has to be examined for one. */
extern bool have_subclasses;

/* True for parameters and buffers of modules: results of operators on them are plain tensors. */
bool has_plain_results(PyTypeObject *type);

/* As wrap_result() for the result of an operator on self, whose subclass it gets. */
static inline PyObject *wrap_like(PyObject *self, tensor *t)
{
	if (likely(is_exact_tensor(self)) || has_plain_results(Py_TYPE(self)))
		return wrap_result(t);
	return wrap_as(Py_TYPE(self), t);
}

/* Adds methods to a type that exists already. */
int add_methods(PyTypeObject *type, PyMethodDef *defs);
/* A tuple of a sequence's tensors; TypeError for other elements. */
PyObject *tensor_tuple(PyObject *list, const char *what);

/* Lets the garbage collector track the object if its tensor requires a gradient. */
void track(PyObject *o);

/* ---- gc.c ---- */

/*
 * Visits the objects that the graph of t, or of the node, holds and that nothing else leads to. *owned has those of the
 * first pass of a collection for the second one; it is freed with free() when its owner is freed.
 */
int traverse_tensor(tensor *t, PyObject ***owned, visitproc visit, void *arg);
int traverse_node(tensor_node *n, PyObject ***owned, visitproc visit, void *arg);
/* True for the pass that counts references, or if the passes are not known. */
bool begins_collection(visitproc visit);
/* Destroy function of metadata of a node. */
void release_metadata(void *o);
int add_gc(PyObject *module);

/* ---- constants.c ---- */

/* dtypes, layouts and memory formats: one object for each value, compared by identity. */
typedef struct {
	PyObject_HEAD const char *name;
	int value;
} PyConstant;

extern PyTypeObject *dtype_type, *layout_type, *memory_format_type, *device_type;

typedef struct {
	PyObject_HEAD tensor_device device;
} PyDevice;

PyObject *wrap_dtype(int dtype); /* None for TENSOR_DTYPE_NONE */
PyObject *wrap_layout(int layout);
PyObject *wrap_device(tensor_device device);
/* The value of an object that stands for one: 1, 0 if it stands for none, -1 with an exception. */
int as_dtype(PyObject *o, int *dtype);
int as_layout(PyObject *o, int *layout);
int as_memory_format(PyObject *o, int *format);
int as_device(PyObject *o, tensor_device *device);
const char *dtype_public_name(int dtype);
/* The tp_dealloc of a type whose objects own nothing. */
void constant_dealloc(PyObject *o);
/* Adds an immutable type to the module, under the last part of its name. NULL with an exception. */
PyTypeObject *add_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots);
/* The same of a type that has subclasses in Python. */
int add_base_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots);

/* ---- generator.c ---- */

typedef struct {
	PyObject_HEAD tensor_generator *g;
} PyGenerator;

extern PyTypeObject *generator_type;

/* ---- convert.c ---- */

/* Memory for one call: lists of numbers and tensors. Freed by arena_free(). */
struct arena {
	struct arena_block *more;
	PyObject *kept[8]; /* objects that borrowed pointers refer to */
	int nkept;
	size_t used;
	_Alignas(16) char first[512];
};

void arena_init(struct arena *a);
void arena_free(struct arena *a);
void *arena_alloc(struct arena *a, size_t size);
/* Keeps a reference, which is stolen, until the arena is freed. */
int arena_keep(struct arena *a, PyObject *o);

/* Converts an argument: 1, 0 if the object does not have the type, -1 with an exception set. */
int convert(struct arena *a, enum tensor_arg_type type, PyObject *o, tensor_value *v);
/* As convert(): numbers of Python and of NumPy, and tensors with one element. */
int convert_scalar(PyObject *o, tensor_scalar *s);
int convert_int(PyObject *o, int64_t *i);
int convert_float(PyObject *o, double *f);
int convert_ints(struct arena *a, PyObject *o, tensor_ints *ints);
/* The single element, exactly. 0, or negative with the library's error set. */
int read_item(const tensor *t, tensor_scalar *s);
/* True for Python's numbers, without tensors. */
bool is_number(PyObject *o);
PyObject *wrap_scalar(tensor_scalar s);

/* ---- numpy.c ---- */

/* True for numpy.bool, which has a deprecated __index__ in NumPy 1. */
bool is_numpy_bool(PyObject *o);
/* As convert_scalar(): numbers of NumPy that are no subclass of a number of Python. */
int convert_numpy_scalar(PyObject *o, tensor_scalar *s);

/* ---- call.c ---- */

struct py_overload {
	const char *op_name;
	const tensor_op *op; /* found at the first call */
	const struct tensor_schema *schema;
	PyObject **names;      /* interned, of each argument */
	PyObject *result_type; /* of several results: a struct sequence, or NULL */
	/* Bit i: argument i must be given; argument i is None by default. */
	uint64_t required, none;
	int npositional;
	bool many; /* the last argument by position may be given as several: x.view(2, 3) */
	bool inplace, out, factory;
};

/* A function: the overloads of one name, in the order in which they are tried. */
struct py_function {
	const char *name;
	struct py_overload *overloads;
	int n;
	bool ready;
};

/* Calls the first overload that takes the arguments. self: the first argument of a method, or NULL. */
PyObject *call_function(struct py_function *f, PyObject *self, PyObject *const *args,
			Py_ssize_t nargs, PyObject *kwnames);
/* As call_function() for an operator of the language: NotImplemented if no overload takes both. */
PyObject *call_binary(struct py_function *f, PyObject *a, PyObject *b);
/* The generated function of a name, NULL if there is none. */
struct py_function *find_function(const char *name);

/* Work for which the lock is released: elements of the arguments. */
#define RELEASE_ABOVE 8192

/* ---- generated: build/gen/python/operators.c ---- */

extern PyMethodDef generated_functions[], generated_methods[];
extern struct py_function *const generated_table[];
extern const int generated_count;

/* ---- others ---- */

extern PyType_Slot buffer_slots[];
PyObject *tensor_tolist(PyObject *self, PyObject *unused);
extern PyType_Slot number_slots[];
extern PyGetSetDef tensor_getset[];
extern PyMethodDef tensor_methods[];
PyObject *tensor_getitem(PyObject *self, PyObject *key);
int tensor_setitem(PyObject *self, PyObject *key, PyObject *value);

int add_constants(PyObject *module);
int add_generator(PyObject *module);
int add_cuda(PyObject *module);
int add_cuda_streams(PyObject *module);
/* The number of the calling thread's CUDA device, 0 if none was set. */
int cuda_current_index(void);
int add_tensor(PyObject *module);
int add_channel(PyObject *module);
int add_pool(PyObject *module);
int add_remote(PyObject *module);
int add_channel_group(PyObject *module);
int add_process_group(PyObject *module);
int add_shared(PyObject *module);
int add_devices(PyObject *module);

/* ---- autograd.c, node.c, hooks.c, function.c, transform.c ---- */

/* The object for a node, None for NULL; adds a reference to the node. */
PyObject *wrap_node(tensor_node *n);
tensor_node *node_of(PyObject *o);
PyObject *node_register_hook(PyObject *self, PyObject *fn);
PyObject *node_register_prehook(PyObject *self, PyObject *fn);
/* A tuple with an object for each tensor, None for NULL. */
PyObject *wrap_list(tensor *const *list, Py_ssize_t n);
/* A tensor of a Python function as its result in the open scope. */
tensor *give_to_scope(PyObject *o);
int add_autograd(PyObject *module);
int add_node(PyObject *module);
int add_hooks(PyObject *module);
int add_function(PyObject *module);
int add_transform(PyObject *module);

/* ---- create.c ---- */

/* A tensor from numbers, sequences, or the memory of a buffer. TENSOR_DTYPE_NONE: that of the data. */
PyObject *tensor_from_object(PyObject *o, int dtype);
PyObject *module_tensor(PyObject *module, PyObject *args, PyObject *kwargs);

/* ---- optim.c, training.c, nn.c ---- */

/* The optimizer of an object, borrowed; NULL with an exception while a thread uses it. */
tensor_optim *optimizer_of(PyObject *o);
/* The options in the library changed: the next step sets those of the groups. */
void optimizer_changed(PyObject *o);
/* The tensors of an iterable, kept in the arena. */
int tensors_of(struct arena *arena, PyObject *o, const char *what, tensor_list *list);

int add_optim(PyObject *module);
int add_training(PyObject *module);
int add_nn(PyObject *module);

/* ---- buffers.c ---- */

/* A tensor on the memory of a buffer, which stays exported until the memory is released. */
PyObject *tensor_from_buffer(PyObject *o);
int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags);
void tensor_releasebuffer(PyObject *self, Py_buffer *view);
int add_buffers(PyObject *module);

/* ---- dlpack.c ---- */

int add_dlpack(PyObject *module);

/* ---- arrow.c, files.c ---- */

int add_arrow(PyObject *module);
int add_files(PyObject *module);

#endif
