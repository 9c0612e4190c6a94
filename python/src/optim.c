// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Optimizers, below devtensor.optim: the groups of parameters are dicts of the program, which every step reads, so
 * that a change of param_groups[i]['lr'] takes effect.
 */
#include "internal.h"

#include <math.h>
#include <stddef.h>

typedef struct {
	PyObject_HEAD tensor_optim *o; /* NULL before the first group */
	tensor_optim_options *last;    /* the options of each group in the library */
	int method, ngroups;
	int64_t work; /* elements of all parameters */
	bool busy;    /* in a step that released the lock */
} PyOptim;

static PyTypeObject *optim_type;

static PyOptim *optim_of(PyObject *o)
{
	return (PyOptim *)o;
}

/* Again after options were read, which may run code of the program. */
static int check_idle(const PyOptim *self)
{
	if (!self->busy)
		return 0;
	PyErr_SetString(PyExc_RuntimeError, "the optimizer is used by another thread");
	return -1;
}

tensor_optim *optimizer_of(PyObject *o)
{
	if (Py_TYPE(o) != optim_type) {
		PyErr_Format(PyExc_TypeError, "expected an optimizer, got %R", Py_TYPE(o));
		return NULL;
	}
	if (check_idle(optim_of(o)) < 0)
		return NULL;
	if (!optim_of(o)->o)
		PyErr_SetString(PyExc_RuntimeError, "the optimizer has no parameters");
	return optim_of(o)->o;
}

void optimizer_changed(PyObject *o)
{
	memset(optim_of(o)->last, 0xff, optim_of(o)->ngroups * sizeof(tensor_optim_options));
}

/* ---- options ---- */

#define AT(field) offsetof(tensor_optim_options, field)

static const struct {
	const char *key;
	size_t at;
	bool flag;
} option_keys[] = {
	{ "lr", AT(lr), false },
	{ "weight_decay", AT(weight_decay), false },
	{ "momentum", AT(momentum), false },
	{ "dampening", AT(dampening), false },
	{ "eps", AT(eps), false },
	{ "alpha", AT(alpha), false },
	{ "lr_decay", AT(lr_decay), false },
	{ "initial_accumulator_value", AT(initial_accumulator), false },
	{ "maximize", AT(maximize), true },
	{ "nesterov", AT(nesterov), true },
	{ "amsgrad", AT(amsgrad), true },
	{ "centered", AT(centered), true },
};

static PyObject *key_names[COUNT(option_keys)], *betas_name, *params_name;

static int intern_names(void)
{
	if (params_name)
		return 0;
	for (size_t k = 0; k < COUNT(option_keys); k++)
		if (!key_names[k] &&
		    !(key_names[k] = PyUnicode_InternFromString(option_keys[k].key)))
			return -1;
	if (!betas_name && !(betas_name = PyUnicode_InternFromString("betas")))
		return -1;
	params_name = PyUnicode_InternFromString("params");
	return params_name ? 0 : -1;
}

/* A number among the options: the library's 0 is "the default", so the number 0 has another value. */
static int read_number(PyObject *v, const char *key, double *at)
{
	tensor_scalar s;
	int res = convert_scalar(v, &s);

	if (res < 0)
		return -1;
	if (res && s.kind == TENSOR_SCALAR_FLOAT) {
		*at = s.d;
	} else if (res && s.kind == TENSOR_SCALAR_INT) {
		*at = (double)s.i;
	} else {
		PyErr_Format(PyExc_TypeError, "%s is a number, got %R", key, Py_TYPE(v));
		return -1;
	}
	/* -1 stands for 0 in the struct; dampening alone may be negative. */
	if (*at < 0 && strcmp(key, "dampening") != 0) {
		PyErr_Format(PyExc_ValueError, "%s is negative: %R", key, v);
		return -1;
	}
	if (*at == 0 && strcmp(key, "dampening") != 0)
		*at = TENSOR_OPTIM_ZERO;
	return 0;
}

static int read_betas(PyObject *group, tensor_optim_options *options)
{
	PyObject *betas = PyDict_GetItemWithError(group, betas_name), *pair;
	int err;

	if (!betas)
		return PyErr_Occurred() ? -1 : 0;
	pair = PySequence_Tuple(betas);
	if (!pair)
		return -1;
	if (PyTuple_Size(pair) != 2) {
		PyErr_SetString(PyExc_ValueError, "betas are two numbers");
		err = -1;
	} else {
		err = read_number(PyTuple_GetItem(pair, 0), "beta1", &options->beta1);
		if (!err)
			err = read_number(PyTuple_GetItem(pair, 1), "beta2", &options->beta2);
	}
	Py_DECREF(pair);
	return err;
}

static int read_options(PyOptim *self, PyObject *group, tensor_optim_options *options)
{
	memset(options, 0, sizeof(*options));
	options->method = (uint8_t)self->method;
	if (!PyDict_Check(group)) {
		PyErr_Format(PyExc_TypeError, "a group of parameters is a dict, got %R",
			     Py_TYPE(group));
		return -1;
	}
	for (size_t k = 0; k < COUNT(option_keys); k++) {
		PyObject *v = PyDict_GetItemWithError(group, key_names[k]);
		char *at = (char *)options + option_keys[k].at;
		int truth;

		if (!v && PyErr_Occurred())
			return -1;
		if (!v || v == Py_None)
			continue;
		if (!option_keys[k].flag) {
			Py_INCREF(v);
			truth = read_number(v, option_keys[k].key, (double *)(void *)at);
			Py_DECREF(v);
			if (truth < 0)
				return -1;
			continue;
		}
		truth = PyObject_IsTrue(v);
		if (truth < 0)
			return -1;
		*(bool *)at = truth;
	}
	return read_betas(group, options);
}

/* ---- groups ---- */

static int remember(PyOptim *self, const tensor_optim_options *options)
{
	tensor_optim_options *last = PyMem_Realloc(self->last, (self->ngroups + 1) * sizeof(*last));

	if (!last) {
		PyErr_NoMemory();
		return -1;
	}
	self->last = last;
	last[self->ngroups] = *options;
	return 0;
}

/* Makes the group in the library, whose number is that of the last one that was remembered. */
static int add_group(PyOptim *self, tensor_list params, tensor_optim_options options)
{
	if (remember(self, &options) < 0)
		return -1;
	if (self->o && tensor_optim_add_group(self->o, params, options) < 0)
		return raise_error_int();
	if (!self->o && !(self->o = tensor_optim_new(params, options)))
		return raise_error_int();
	for (int64_t i = 0; i < params.len; i++)
		self->work += tensor_numel(params.data[i]);
	self->ngroups++;
	return 0;
}

static PyObject *optim_add_group(PyObject *o, PyObject *group)
{
	PyOptim *self = optim_of(o);
	tensor_optim_options options;
	PyObject *params;
	struct arena arena;
	tensor_list list;
	int err = -1;

	if (intern_names() < 0 || read_options(self, group, &options) < 0)
		return NULL;
	params = PyDict_GetItemWithError(group, params_name);
	if (!params)
		return PyErr_Occurred() ? NULL :
					  PyErr_Format(PyExc_KeyError, "a group has no 'params'");
	arena_init(&arena);
	if (tensors_of(&arena, params, "params", &list) == 0 && check_idle(self) == 0)
		err = add_group(self, list, options);
	arena_free(&arena);
	return err < 0 ? NULL : Py_NewRef(Py_None);
}

/* A group whose parameter got other memory (Module.to()) would change memory that the model does not use. */
static int check_params(PyOptim *self, int g, PyObject *params)
{
	Py_ssize_t n = PyList_Check(params) ? PyList_Size(params) : -1;

	if (n != tensor_optim_group_size(self->o, g)) {
		PyErr_SetString(PyExc_ValueError,
				"'params' of a group changed: use add_param_group()");
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *p = PyList_GetItem(params, i);

		if (p && is_tensor(p) && tensor_of(p) == tensor_optim_param(self->o, g, i))
			continue;
		PyErr_Format(
			PyExc_RuntimeError,
			"parameter %zd of group %d got other memory after the optimizer was made: "
			"convert a module before",
			i, g);
		return -1;
	}
	return 0;
}

static int sync_group(PyOptim *self, int g, PyObject *group)
{
	tensor_optim_options options;
	PyObject *params;

	if (read_options(self, group, &options) < 0 || check_idle(self) < 0)
		return -1;
	params = PyDict_GetItemWithError(group, params_name);
	if (!params && !PyErr_Occurred())
		PyErr_SetString(PyExc_KeyError, "params");
	if (!params || check_params(self, g, params) < 0)
		return -1;
	if (!memcmp(&options, &self->last[g], sizeof(options)))
		return 0;
	if (tensor_optim_set_options(self->o, g, options) < 0)
		return raise_error_int();
	self->last[g] = options;
	return 0;
}

static PyObject *optim_sync(PyObject *o, PyObject *groups)
{
	PyOptim *self = optim_of(o);

	if (!optimizer_of(o))
		return NULL;
	if (!PyList_Check(groups) || PyList_Size(groups) != self->ngroups)
		return PyErr_Format(PyExc_ValueError,
				    "param_groups is no list of %d groups: use add_param_group()",
				    self->ngroups);
	for (int g = 0; g < self->ngroups; g++) {
		/* Numbers of other types run code of the program, which may change the list. */
		PyObject *group = PyList_GetItem(groups, g);
		int err;

		if (!group)
			return NULL;
		Py_INCREF(group);
		err = sync_group(self, g, group);
		Py_DECREF(group);
		if (err < 0)
			return NULL;
	}
	Py_RETURN_NONE;
}

static PyObject *optim_step(PyObject *o, PyObject *groups)
{
	PyOptim *self = optim_of(o);
	PyThreadState *state;
	PyObject *done;
	int err;

	done = optim_sync(o, groups);
	if (!done)
		return NULL;
	if (self->work < RELEASE_ABOVE) {
		err = tensor_optim_step(self->o);
	} else {
		self->busy = true;
		state = PyEval_SaveThread();
		err = tensor_optim_step(self->o);
		PyEval_RestoreThread(state);
		self->busy = false;
	}
	if (!err)
		return done;
	Py_DECREF(done);
	return raise_error();
}

static PyObject *optim_zero_grad(PyObject *o, PyObject *unused)
{
	tensor_optim *optim = optimizer_of(o);

	if (!optim)
		return NULL;
	return tensor_optim_zero_grad(optim) < 0 ? raise_error() : Py_NewRef(Py_None);
}

static PyObject *optim_lr(PyObject *o, PyObject *unused)
{
	PyObject *list = optimizer_of(o) ? PyList_New(0) : NULL, *lr;

	for (int g = 0; list && g < optim_of(o)->ngroups; g++) {
		lr = PyFloat_FromDouble(tensor_optim_lr(optim_of(o)->o, g));
		if (!lr || PyList_Append(list, lr) < 0)
			Py_CLEAR(list);
		Py_XDECREF(lr);
	}
	return list;
}

/* ---- state ---- */

static const char *const state_keys[] = { "step",	"momentum_buffer", "exp_avg",
					  "exp_avg_sq", "max_exp_avg_sq",  "sum",
					  "square_avg", "grad_avg" };

static PyObject *optim_state(PyObject *o, PyObject *args)
{
	tensor_optim *optim = optimizer_of(o);
	PyObject *dict, *value;
	int group;
	long long i;

	if (!optim || !PyArg_ParseTuple(args, "iL", &group, &i))
		return NULL;
	dict = PyDict_New();
	for (size_t k = 0; dict && k < COUNT(state_keys); k++) {
		tensor *t = tensor_optim_state(optim, group, i, state_keys[k]);

		if (!t)
			continue;
		value = wrap_borrowed(t);
		if (!value || PyDict_SetItemString(dict, state_keys[k], value) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(value);
	}
	return dict;
}

/* A dict of names and tensors as the library has it; the strings and tensors belong to the dict's
 * items, which the arena keeps. */
static int named_tensors(struct arena *arena, PyObject *dict, struct tensor_named **named,
			 Py_ssize_t *n)
{
	PyObject *items;
	int ok = 1;

	if (!PyDict_Check(dict)) {
		PyErr_Format(PyExc_TypeError, "expected a dict of tensors, got %R", Py_TYPE(dict));
		return -1;
	}
	items = PyDict_Items(dict);
	if (!items || arena_keep(arena, items) < 0)
		return -1;
	*n = PyList_Size(items);
	*named = arena_alloc(arena, (size_t)(*n + 1) * sizeof(**named));
	if (!*named)
		return -1;
	for (Py_ssize_t i = 0; ok && i < *n; i++) {
		PyObject *item = PyList_GetItem(items, i), *name = PyTuple_GetItem(item, 0);
		PyObject *value = PyTuple_GetItem(item, 1);
		tensor_value text;

		ok = is_tensor(value) ? convert(arena, TENSOR_ARG_STRING, name, &text) : 0;
		if (!ok)
			PyErr_Format(PyExc_TypeError, "expected names and tensors, got %R: %R",
				     name, Py_TYPE(value));
		if (ok <= 0)
			return -1;
		(*named)[i] = (struct tensor_named){ text.s, tensor_of(value) };
	}
	return 0;
}

static PyObject *optim_load_state(PyObject *o, PyObject *dict)
{
	tensor_optim *optim = optimizer_of(o);
	struct tensor_named *named;
	struct arena arena;
	PyObject *res = NULL;
	Py_ssize_t n;

	if (!optim)
		return NULL;
	arena_init(&arena);
	if (named_tensors(&arena, dict, &named, &n) == 0 && check_idle(optim_of(o)) == 0)
		res = tensor_optim_load_state(optim, named, n) < 0 ? raise_error() :
								     Py_NewRef(Py_None);
	arena_free(&arena);
	return res;
}

static PyObject *optim_share_memory(PyObject *o, PyObject *unused)
{
	tensor_optim *optim = optimizer_of(o);

	if (!optim)
		return NULL;
	return tensor_optim_share_memory(optim) < 0 ? raise_error() : Py_NewRef(Py_None);
}

/* ---- type ---- */

static PyObject *optim_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static const char *const methods[] = { NULL, "SGD", "Adam", "AdamW", "Adagrad", "RMSprop" };
	const char *name;
	PyOptim *self;
	size_t method = 1;

	if (!PyArg_ParseTuple(args, "s", &name))
		return NULL;
	while (method < COUNT(methods) && strcmp(methods[method], name) != 0)
		method++;
	if (method == COUNT(methods))
		return PyErr_Format(PyExc_ValueError, "there is no method %s", name);
	self = PyObject_New(PyOptim, type);
	if (!self)
		return NULL;
	self->o = NULL;
	self->last = NULL;
	self->method = (int)method;
	self->ngroups = 0;
	self->work = 0;
	self->busy = false;
	return (PyObject *)self;
}

static void optim_dealloc(PyObject *o)
{
	PyTypeObject *type = Py_TYPE(o);

	tensor_optim_free(optim_of(o)->o);
	PyMem_Free(optim_of(o)->last);
	PyObject_Free(o);
	Py_DECREF(type);
}

static PyMethodDef methods[] = {
	{ "add_group", optim_add_group, METH_O, "Add a group: a dict with 'params' and options." },
	{ "sync", optim_sync, METH_O, "Take the options from the dicts of all groups." },
	{ "step", optim_step, METH_O,
	  "Take the options from the dicts of all groups, and change the parameters." },
	{ "zero_grad", optim_zero_grad, METH_NOARGS, "Remove the gradients of all parameters." },
	{ "lr", optim_lr, METH_NOARGS, "The learning rate of each group: a list." },
	{ "state", optim_state, METH_VARARGS,
	  "state(group, i): a dict of the state tensors of a parameter." },
	{ "load_state", optim_load_state, METH_O,
	  "Replace the state by copies of tensors called GROUP.PARAMETER.KEY." },
	{ "share_memory", optim_share_memory, METH_NOARGS,
	  "Move the state to memory that forked processes use, too." },
	{ NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "An optimizer of the library, below devtensor.optim." },
	{ Py_tp_new, optim_new },
	{ Py_tp_dealloc, optim_dealloc },
	{ Py_tp_methods, methods },
	{ 0 },
};

int add_optim(PyObject *module)
{
	PyType_Spec spec = { "devtensor._C._Optimizer", sizeof(PyOptim), 0,
			     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots };

	optim_type = (PyTypeObject *)PyType_FromSpec(&spec);
	if (!optim_type)
		return -1;
	return PyModule_AddObjectRef(module, "_Optimizer", (PyObject *)optim_type);
}
