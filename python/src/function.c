// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * autograd.Function: forward and backward in Python over tensor_function_apply(). The data of a call is an object, the
 * ctx, which the node owns. It has what it needs to map arguments and results: which of them are tensors.
 */
#include "function.h"

/* The state of a call of apply(), on its stack, for forward. */
struct application {
	const struct class_info *info;
	PyContext *o;
	PyObject *args, *result;
	tensor **outputs;
	Py_ssize_t noutputs;
};

static __thread struct application *applied;

static PyObject *context_class, *transformed;

/* ---- forward ---- */

/* forward(ctx, *args), or forward(*args) and setup_context(ctx, args, result). */
static PyObject *call_forward(struct application *p)
{
	PyObject *cls = p->o->cls, *fn = PyObject_GetAttr(cls, function_names.forward), *args,
		 *res = NULL, *set;
	Py_ssize_t n = p->o->nargs;

	if (!fn)
		return NULL;
	args = p->info->setup ? Py_NewRef(p->args) : PyTuple_New(n + 1);
	if (args && !p->info->setup) {
		PyTuple_SetItem(args, 0, Py_NewRef((PyObject *)p->o));
		for (Py_ssize_t i = 0; i < n; i++)
			PyTuple_SetItem(args, i + 1, Py_NewRef(PyTuple_GetItem(p->args, i)));
	}
	if (args)
		res = PyObject_Call(fn, args, NULL);
	Py_XDECREF(args);
	Py_DECREF(fn);
	if (!res || !p->info->setup)
		return res;
	set = PyObject_CallMethodObjArgs(cls, function_names.setup, (PyObject *)p->o, p->args, res,
					 NULL);
	if (!set)
		Py_CLEAR(res);
	Py_XDECREF(set);
	return res;
}

static PyObject *result_item(PyObject *res, Py_ssize_t i)
{
	return PyTuple_Check(res) ? PyTuple_GetItem(res, i) : res;
}

/* Notes which outputs are tensors, and gives these to the call. */
static int set_outputs(struct application *p, tensor_function_ctx *c)
{
	Py_ssize_t n = PyTuple_Check(p->result) ? PyTuple_Size(p->result) : 1;
	PyContext *o = p->o;
	uint8_t *tensors = realloc(o->tensors, o->nargs + n + 1);

	if (tensors)
		o->tensors = tensors;
	if (n > INT16_MAX) {
		PyErr_Format(PyExc_ValueError,
			     "%s: forward returned %zd results, at most %d are possible",
			     p->info->name, n, INT16_MAX);
		return -1;
	}
	p->outputs = calloc(n + 1, sizeof(*p->outputs));
	if (!tensors || !p->outputs) {
		PyErr_NoMemory();
		return -1;
	}
	o->nout = n;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *t = result_item(p->result, i);

		tensors[o->nargs + i] = 0;
		if (!is_tensor(t))
			continue;
		tensors[o->nargs + i] = context_marked(o, t) ? MARKED : 1;
		p->outputs[p->noutputs++] = tensor_of(t);
	}
	return tensor_function_set_outputs(c, p->outputs, (int)p->noutputs) < 0 ?
		       raise_error_int() :
		       0;
}

static int save_tensors(PyContext *o, tensor_function_ctx *c)
{
	Py_ssize_t n = o->to_save ? PyTuple_Size(o->to_save) : 0;

	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *t = PyTuple_GetItem(o->to_save, i);
		tensor *saved = t == Py_None ? tensor_none : tensor_of(t);

		if (tensor_function_save(c, (tensor_list){ &saved, 1 }) < 0)
			return raise_error_int();
	}
	return 0;
}

static int run_forward(struct application *p, tensor_function_ctx *c)
{
	PyContext *o = p->o;
	unsigned flags;

	o->needs = context_needs(o, c);
	if (!o->needs)
		return -1;
	p->result = call_forward(p);
	if (!p->result)
		return -1;
	flags = (p->info->once ? TENSOR_FUNCTION_ONCE_DIFFERENTIABLE : 0) |
		(o->materialize ? 0 : TENSOR_FUNCTION_UNDEFINED_GRADS);
	if (tensor_function_set_flags(c, flags) < 0)
		return raise_error_int();
	if (set_outputs(p, c) < 0)
		return -1;
	return save_tensors(o, c);
}

/* Runs on the thread that called apply(), with the lock held. */
int function_forward(tensor_function_ctx *c, tensor *const *inputs, int ninputs, tensor **outputs,
		     int noutputs)
{
	struct application *p = applied;
	struct active here = { p->o, c, true, function_active };
	int err;

	function_active = &here;
	err = run_forward(p, c);
	function_active = here.outer;
	return err < 0 ? error_from_python(p->info->name) : 0;
}

/* ---- backward ---- */

/* The gradients of all outputs, None for those that are no tensors. */
static PyObject *backward_args(PyContext *o, tensor *const *grads)
{
	PyObject *args = PyTuple_New(o->nout + 1);
	int k = 0;

	if (!args)
		return NULL;
	PyTuple_SetItem(args, 0, Py_NewRef((PyObject *)o));
	for (Py_ssize_t i = 0; i < o->nout; i++) {
		PyObject *g = o->tensors[o->nargs + i] ? wrap_borrowed(grads[k++]) :
							 Py_NewRef(Py_None);

		if (!g) {
			Py_DECREF(args);
			return NULL;
		}
		PyTuple_SetItem(args, i + 1, g);
	}
	return args;
}

/* A further None for each argument that has a default is accepted, as in PyTorch. */
static int check_count(const struct class_info *info, const PyContext *o, PyObject *res)
{
	Py_ssize_t n = PyTuple_Check(res) ? PyTuple_Size(res) : 1, all = n;

	while (n > o->nargs && result_item(res, n - 1) == Py_None)
		n--;
	if (n == o->nargs)
		return 0;
	PyErr_Format(
		PyExc_RuntimeError,
		"function %sBackward returned an incorrect number of gradients (expected %zd, got %zd)",
		info->name, o->nargs, all);
	return -1;
}

static int take_gradients(const struct class_info *info, PyContext *o, PyObject *res,
			  tensor **grads)
{
	int k = 0;

	if (check_count(info, o, res) < 0)
		return -1;
	for (Py_ssize_t i = 0; i < o->nargs; i++) {
		PyObject *g = result_item(res, i);

		if (g != Py_None && !is_tensor(g)) {
			PyErr_Format(
				PyExc_TypeError,
				"function %sBackward: expected a tensor or None as gradient %zd, got %R",
				info->name, i, Py_TYPE(g));
			return -1;
		}
		if (o->tensors[i])
			grads[k++] = g == Py_None ? NULL : give_to_scope(g);
		else if (g != Py_None) {
			PyErr_Format(
				PyExc_RuntimeError,
				"function %sBackward returned a gradient different from None at position "
				"%zd, but the corresponding forward input was not a tensor",
				info->name, i + 1);
			return -1;
		}
	}
	return 0;
}

static int run_backward(tensor_function_ctx *c, PyContext *o, tensor *const *output_grads,
			tensor **grads)
{
	struct active here = { o, c, false, function_active };
	const struct class_info *info = PyCapsule_GetPointer(o->info, CLASS_INFO);
	PyObject *fn = info ? PyObject_GetAttr(o->cls, function_names.backward) : NULL,
		 *args = NULL, *res = NULL;
	int err = -1;

	if (fn)
		args = backward_args(o, output_grads);
	function_active = &here;
	if (args)
		res = PyObject_Call(fn, args, NULL);
	function_active = here.outer;
	if (res)
		err = take_gradients(info, o, res, grads);
	Py_XDECREF(res);
	Py_XDECREF(args);
	Py_XDECREF(fn);
	return err;
}

/* On any thread, several at once: the state of the call is on the stack. */
int function_backward(tensor_function_ctx *c, tensor *const *output_grads, int noutputs,
		      tensor **input_grads, int ninputs)
{
	PyContext *o = tensor_function_data(c);
	PyGILState_STATE state;
	int err;

	if (!enter_python(&state))
		return -tensor_last_error()->code;
	err = run_backward(c, o, output_grads, input_grads);
	if (err < 0)
		err = error_from_python("backward");
	PyGILState_Release(state);
	return err;
}

/* ---- apply ---- */

static PyContext *new_context(PyObject *cls, PyObject *info, PyObject *const *args, Py_ssize_t n)
{
	PyTypeObject *type = context_class ? (PyTypeObject *)context_class : context_type;
	PyContext *o = (PyContext *)type_alloc(type);

	if (!o)
		return NULL;
	o->cls = Py_NewRef(cls);
	o->info = Py_NewRef(info);
	o->materialize = true;
	o->nargs = n;
	o->tensors = calloc(n + 2, 1);
	if (!o->tensors) {
		Py_DECREF(o);
		return (PyContext *)PyErr_NoMemory();
	}
	for (Py_ssize_t i = 0; i < n; i++)
		o->tensors[i] = is_tensor(args[i]);
	return o;
}

static PyObject *wrap_outputs(const struct application *p)
{
	PyObject *res = PyTuple_Check(p->result) ? PyTuple_New(p->o->nout) : NULL, *t;
	Py_ssize_t k = 0;

	if (!PyTuple_Check(p->result))
		return p->noutputs ? wrap_result(p->outputs[0]) : Py_NewRef(p->result);
	for (Py_ssize_t i = 0; i < p->o->nout; i++) {
		if (p->o->tensors[p->o->nargs + i])
			t = wrap_result(p->outputs[k++]);
		else
			t = Py_NewRef(PyTuple_GetItem(p->result, i));
		if (res && t)
			PyTuple_SetItem(res, i, t);
		else
			Py_XDECREF(t);
		if (!t)
			Py_CLEAR(res);
	}
	return res;
}

static PyObject *call_function_c(struct application *p, tensor **inputs, int ninputs)
{
	struct application *outer = applied;
	PyObject *res;
	int err;

	applied = p;
	begin_call();
	/* For the node, or for release_object() at the end of the call. */
	Py_INCREF((PyObject *)p->o);
	err = tensor_function_apply(&p->info->f, p->o, release_object,
				    (tensor_list){ inputs, ninputs }, NULL, 0);
	applied = outer;
	Py_CLEAR(p->o->to_save);
	Py_CLEAR(p->o->marked);
	res = err < 0 ? raise_graph_error() : wrap_outputs(p);
	end_call();
	Py_CLEAR(p->result);
	free(p->outputs);
	return res;
}

/* The result; *context, unless it is NULL, becomes the ctx of the call. */
static PyObject *apply(PyObject *cls, PyObject *const *args, Py_ssize_t nargs, PyObject **context)
{
	PyObject *info = class_info_of(cls), *res = NULL;
	struct application p = { NULL };
	tensor *few[16], **inputs = few;
	int n = 0;

	if (!info)
		return NULL;
	p.info = PyCapsule_GetPointer(info, CLASS_INFO);
	if (nargs > (Py_ssize_t)COUNT(few))
		inputs = PyMem_Calloc(nargs, sizeof(*inputs));
	p.args = inputs ? PyTuple_New(nargs) : PyErr_NoMemory();
	p.o = p.args ? new_context(cls, info, args, nargs) : NULL;
	if (p.o) {
		for (Py_ssize_t i = 0; i < nargs; i++) {
			PyTuple_SetItem(p.args, i, Py_NewRef(args[i]));
			if (p.o->tensors[i])
				inputs[n++] = tensor_of(args[i]);
		}
		res = call_function_c(&p, inputs, n);
	}
	if (res && context)
		*context = Py_NewRef((PyObject *)p.o);
	Py_XDECREF((PyObject *)p.o);
	Py_XDECREF(p.args);
	Py_DECREF(info);
	if (inputs != few)
		PyMem_Free(inputs);
	return res;
}

static PyObject *f_apply(PyObject *cls, PyObject *const *args, Py_ssize_t nargs)
{
	const uint64_t special = 1ull << TENSOR_KEY_BATCHED | 1ull << TENSOR_KEY_FORWARD;
	PyObject *tuple, *res;
	uint64_t keys = 0;

	for (Py_ssize_t i = 0; i < nargs; i++)
		if (is_tensor(args[i]))
			keys |= tensor_keys(tensor_of(args[i]));
	if (likely(!(keys & special) || !transformed))
		return apply(cls, args, nargs, NULL);
	/* Samples of a batch, and tensors with a tangent. */
	tuple = PyTuple_New(nargs);
	for (Py_ssize_t i = 0; tuple && i < nargs; i++)
		PyTuple_SetItem(tuple, i, Py_NewRef(args[i]));
	res = tuple ? PyObject_CallFunctionObjArgs(transformed, cls, tuple, NULL) : NULL;
	Py_XDECREF(tuple);
	return res;
}

/* _function_apply(cls, *args): (result, ctx), without transforms. */
static PyObject *m_function_apply(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
	PyObject *context = NULL, *res, *pair;

	if (nargs < 1 || !PyType_Check(args[0]))
		return PyErr_Format(PyExc_TypeError, "_function_apply: a Function is needed");
	res = apply(args[0], args + 1, nargs - 1, &context);
	pair = res ? PyTuple_Pack(2, res, context) : NULL;
	Py_XDECREF(res);
	Py_XDECREF(context);
	return pair;
}

static PyMethodDef function_methods[] = {
	{ "apply", (PyCFunction)(void (*)(void))f_apply, METH_FASTCALL | METH_CLASS,
	  "apply(*args)\n--\n\n"
	  "Call forward, and record the call with backward if an argument requires a gradient." },
	{ NULL },
};

static PyType_Slot function_slots[] = {
	{ Py_tp_doc, "The base of autograd.Function." },
	{ Py_tp_methods, function_methods },
	{ 0, NULL },
};

static PyType_Spec function_spec = { "devtensor.autograd._Function", sizeof(PyObject), 0,
				     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, function_slots };

/* _set_function_classes(context, setup_context, transformed): the class of contexts, the setup_context that is none, and
 * transformed(cls, args), which calls a Function under vmap and in forward mode. */
static PyObject *m_set_classes(PyObject *module, PyObject *args)
{
	PyObject *context, *setup, *other;

	if (!PyArg_ParseTuple(args, "OOO", &context, &setup, &other))
		return NULL;
	if (!PyType_Check(context) || !PyType_IsSubtype((PyTypeObject *)context, context_type))
		return PyErr_Format(PyExc_TypeError, "%R is no class of contexts", context);
	set_ref(&context_class, Py_NewRef(context));
	set_ref(&function_base_setup, Py_NewRef(setup));
	set_ref(&transformed, Py_NewRef(other));
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "_function_apply", (PyCFunction)(void (*)(void))m_function_apply, METH_FASTCALL, NULL },
	{ "_set_function_classes", m_set_classes, METH_VARARGS, NULL },
	{ NULL },
};

int add_function(PyObject *module)
{
	PyObject *function = PyType_FromSpec(&function_spec);

	if (!function || add_function_names() < 0)
		return -1;
	if (PyModule_AddObjectRef(module, "_Function", function) < 0 || add_context(module) < 0)
		return -1;
	Py_DECREF(function);
	return PyModule_AddFunctions(module, functions);
}
