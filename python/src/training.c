// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Functions below devtensor.nn, optim and amp: schedules, clipping of gradients, averages, mixed precision.
 */
#include "internal.h"

#include <errno.h>
#include <math.h>

/* ---- learning rates ---- */

static const char *const schedule_names[TENSOR_SCHEDULE_COUNT] = {
	"constant", "step", "multi_step", "exponential", "linear", "cosine", "one_cycle"
};

static int schedule_kind(const char *name)
{
	for (int k = 0; k < TENSOR_SCHEDULE_COUNT; k++)
		if (!strcmp(schedule_names[k], name))
			return k;
	PyErr_Format(PyExc_ValueError, "there is no schedule %s", name);
	return -1;
}

/* The number 0 where 0 in the struct means the default. */
static double zero_given(double v)
{
	return v == 0 ? TENSOR_OPTIM_ZERO : v;
}

static PyObject *schedule_lr(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = { "kind",	    "lr",	   "step",
				    "steps",	    "milestones",  "gamma",
				    "start_factor", "end_factor",  "min_lr",
				    "pct_start",    "div_factor",  "final_div_factor",
				    "linear",	    "three_phase", NULL };
	double lr, gamma = 0.1, start = 1. / 3, end = 1, pct = 0.3, div = 25, final = 1e4, rate;
	PyObject *milestones = NULL;
	tensor_schedule s = { 0 };
	long long step, steps = 0;
	int linear = 0, three_phase = 0, kind, ok = 1;
	struct arena arena;
	const char *name;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sdL|$LOdddddddpp", keywords, &name, &lr,
					 &step, &steps, &milestones, &gamma, &start, &end,
					 &s.min_lr, &pct, &div, &final, &linear, &three_phase))
		return NULL;
	kind = schedule_kind(name);
	if (kind < 0)
		return NULL;
	s.kind = (uint8_t)kind;
	s.linear = linear;
	s.three_phase = three_phase;
	s.steps = steps;
	s.gamma = zero_given(gamma);
	s.start_factor = zero_given(start);
	s.end_factor = zero_given(end);
	s.pct_start = zero_given(pct);
	s.div_factor = zero_given(div);
	s.final_div_factor = zero_given(final);
	arena_init(&arena);
	if (milestones)
		ok = convert_ints(&arena, milestones, &s.milestones);
	if (!ok)
		PyErr_SetString(PyExc_TypeError, "milestones are a list of ints");
	rate = ok > 0 ? tensor_schedule_lr(&s, lr, step) : 0;
	arena_free(&arena);
	if (ok <= 0)
		return NULL;
	return isnan(rate) ? raise_error() : PyFloat_FromDouble(rate);
}

/* The fields of tensor_plateau are the whole state: they are arguments, and results. */
static PyObject *plateau_step(PyObject *module, PyObject *args)
{
	int maximize, absolute, begun, lowered;
	tensor_plateau p = { 0 };
	long long patience, cooldown, bad, cooling;
	tensor_optim *optim;
	PyObject *o;
	double measure;

	if (!PyArg_ParseTuple(args, "Odddd(LL)(pp)(pdLL)", &o, &measure, &p.factor, &p.threshold,
			      &p.min_lr, &patience, &cooldown, &maximize, &absolute, &begun,
			      &p.best, &bad, &cooling))
		return NULL;
	optim = optimizer_of(o);
	if (!optim)
		return NULL;
	p.factor = zero_given(p.factor);
	p.threshold = zero_given(p.threshold);
	p.patience = patience ? patience : -1;
	p.cooldown = cooldown;
	p.maximize = maximize;
	p.absolute = absolute;
	p.begun = begun;
	p.bad = bad;
	p.cooling = cooling;
	lowered = tensor_plateau_step(&p, optim, measure);
	if (lowered < 0)
		return raise_error();
	optimizer_changed(o);
	return Py_BuildValue("O(OdLL)", lowered ? Py_True : Py_False, p.begun ? Py_True : Py_False,
			     p.best, (long long)p.bad, (long long)p.cooling);
}

/* ---- gradients ---- */

int tensors_of(struct arena *arena, PyObject *o, const char *what, tensor_list *list)
{
	PyObject *tuple = tensor_tuple(o, what);
	tensor **data;

	if (!tuple || arena_keep(arena, tuple) < 0)
		return -1;
	list->len = PyTuple_Size(tuple);
	data = arena_alloc(arena, (size_t)(list->len + 1) * sizeof(*data));
	for (int64_t i = 0; data && i < list->len; i++)
		data[i] = tensor_of(PyTuple_GetItem(tuple, i));
	list->data = data;
	return data ? 0 : -1;
}

static PyObject *clip_grad_norm(PyObject *module, PyObject *args)
{
	double max_norm, norm_type, norm = 0;
	int error_if_nonfinite, err = -1;
	PyObject *params, *res = NULL;
	struct arena arena;
	tensor_list list;

	if (!PyArg_ParseTuple(args, "Oddp", &params, &max_norm, &norm_type, &error_if_nonfinite))
		return NULL;
	arena_init(&arena);
	if (tensors_of(&arena, params, "clip_grad_norm_", &list) == 0) {
		Py_BEGIN_ALLOW_THREADS err = tensor_clip_grad_norm_(list, max_norm, norm_type,
								    error_if_nonfinite, &norm);
		Py_END_ALLOW_THREADS res = err < 0 ? raise_error() : PyFloat_FromDouble(norm);
	}
	arena_free(&arena);
	return res;
}

static PyObject *clip_grad_value(PyObject *module, PyObject *args)
{
	PyObject *params, *res = NULL;
	struct arena arena;
	tensor_list list;
	double limit;

	if (!PyArg_ParseTuple(args, "Od", &params, &limit))
		return NULL;
	arena_init(&arena);
	if (tensors_of(&arena, params, "clip_grad_value_", &list) == 0)
		res = tensor_clip_grad_value_(list, limit) < 0 ? raise_error() : Py_NewRef(Py_None);
	arena_free(&arena);
	return res;
}

/* ---- averages ---- */

typedef struct {
	PyObject_HEAD tensor_ema *e;
} PyEma;

static PyObject *ema_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *params;
	struct arena arena;
	tensor_list list;
	PyEma *self = NULL;
	tensor_ema *e;
	double decay;

	if (!PyArg_ParseTuple(args, "Od", &params, &decay))
		return NULL;
	arena_init(&arena);
	if (tensors_of(&arena, params, "an average", &list) == 0) {
		e = tensor_ema_new(list, decay);
		self = e ? PyObject_New(PyEma, type) : (PyEma *)raise_error();
		if (self)
			self->e = e;
		else
			tensor_ema_free(e);
	}
	arena_free(&arena);
	return (PyObject *)self;
}

static void ema_dealloc(PyObject *o)
{
	PyTypeObject *type = Py_TYPE(o);

	tensor_ema_free(((PyEma *)o)->e);
	PyObject_Free(o);
	Py_DECREF(type);
}

static PyObject *ema_update(PyObject *o, PyObject *unused)
{
	return tensor_ema_update(((PyEma *)o)->e) < 0 ? raise_error() : Py_NewRef(Py_None);
}

static PyObject *ema_swap(PyObject *o, PyObject *unused)
{
	return tensor_ema_swap(((PyEma *)o)->e) < 0 ? raise_error() : Py_NewRef(Py_None);
}

static PyObject *ema_averages(PyObject *o, PyObject *unused)
{
	PyObject *list = PyList_New(0), *t;
	tensor *average;

	for (int64_t i = 0; list && (average = tensor_ema_average(((PyEma *)o)->e, i)); i++) {
		t = wrap_borrowed(average);
		if (!t || PyList_Append(list, t) < 0)
			Py_CLEAR(list);
		Py_XDECREF(t);
	}
	return list;
}

static PyMethodDef ema_methods[] = {
	{ "update", ema_update, METH_NOARGS, "Move the averages towards the parameters." },
	{ "swap", ema_swap, METH_NOARGS, "Exchange the values of parameters and averages." },
	{ "averages", ema_averages, METH_NOARGS, "The averages: a list of tensors." },
	{ NULL },
};

static PyType_Slot ema_slots[] = {
	{ Py_tp_doc, "_Ema(params, decay): moving averages of parameters." },
	{ Py_tp_new, ema_new },
	{ Py_tp_dealloc, ema_dealloc },
	{ Py_tp_methods, ema_methods },
	{ 0 },
};

/* ---- mixed precision ---- */

static PyObject *autocast_enter(PyObject *module, PyObject *arg)
{
	struct tensor_autocast_guard guard;
	int dtype = TENSOR_DTYPE_NONE, res = arg == Py_None ? 1 : as_dtype(arg, &dtype);

	if (!res)
		PyErr_Format(PyExc_TypeError, "autocast: expected a dtype, got %R", Py_TYPE(arg));
	if (res <= 0)
		return NULL;
	guard = tensor_autocast_enter(dtype);
	if (!guard.entered)
		return raise_error();
	return PyBytes_FromStringAndSize((const char *)&guard, sizeof(guard));
}

static PyObject *autocast_leave(PyObject *module, PyObject *arg)
{
	struct tensor_autocast_guard guard;

	if (!PyBytes_Check(arg) || PyBytes_Size(arg) != sizeof(guard))
		return PyErr_Format(PyExc_TypeError, "expected a result of _autocast_enter()");
	memcpy(&guard, PyBytes_AsString(arg), sizeof(guard));
	tensor_autocast_leave(&guard);
	Py_RETURN_NONE;
}

static PyObject *autocast_dtype(PyObject *module, PyObject *unused)
{
	return wrap_dtype(tensor_autocast_dtype());
}

typedef struct {
	PyObject_HEAD tensor_grad_scaler s;
} PyScaler;

static tensor_grad_scaler *scaler_of(PyObject *o)
{
	return &((PyScaler *)o)->s;
}

static PyObject *scaler_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	double scale, growth, backoff;
	long long interval;
	int finite_steps;
	PyScaler *self;

	if (!PyArg_ParseTuple(args, "dddLi", &scale, &growth, &backoff, &interval, &finite_steps))
		return NULL;
	if (!(scale > 0) || !(growth > 1) || !(backoff > 0 && backoff < 1) || interval < 1 ||
	    finite_steps < 0 || isinf(scale))
		return PyErr_Format(PyExc_ValueError,
				    "GradScaler: needs init_scale > 0, growth_factor > 1, "
				    "0 < backoff_factor < 1 and growth_interval >= 1");
	self = PyObject_New(PyScaler, type);
	if (self)
		self->s = (tensor_grad_scaler){ .scale = scale,
						.growth = growth,
						.backoff = backoff,
						.interval = interval,
						.finite_steps = finite_steps };
	return (PyObject *)self;
}

static void scaler_dealloc(PyObject *o)
{
	PyTypeObject *type = Py_TYPE(o);

	PyObject_Free(o);
	Py_DECREF(type);
}

static PyObject *scaler_scale(PyObject *o, PyObject *loss)
{
	if (!is_tensor(loss))
		return PyErr_Format(PyExc_TypeError, "scale: expected a tensor, got %R",
				    Py_TYPE(loss));
	return wrap_result(tensor_grad_scaler_scale(scaler_of(o), tensor_of(loss)));
}

static PyObject *scaler_unscale(PyObject *o, PyObject *arg)
{
	tensor_optim *optim = optimizer_of(arg);

	if (!optim)
		return NULL;
	if (tensor_grad_scaler_unscale(scaler_of(o), optim) < 0)
		return raise_error();
	Py_RETURN_NONE;
}

static PyObject *scaler_step(PyObject *o, PyObject *arg)
{
	tensor_optim *optim = optimizer_of(arg);
	int stepped = optim ? tensor_grad_scaler_step(scaler_of(o), optim) : 0;

	if (!optim)
		return NULL;
	return stepped < 0 ? raise_error() : PyBool_FromLong(stepped);
}

static PyObject *scaler_update(PyObject *o, PyObject *unused)
{
	return tensor_grad_scaler_update(scaler_of(o)) < 0 ? raise_error() : Py_NewRef(Py_None);
}

/* (scale, steps with finite gradients): with the options, all that the next step depends on. */
static PyObject *scaler_state(PyObject *o, PyObject *unused)
{
	return Py_BuildValue("(di)", scaler_of(o)->scale, (int)scaler_of(o)->finite_steps);
}

static PyMethodDef scaler_methods[] = {
	{ "scale", scaler_scale, METH_O, "loss * scale" },
	{ "unscale", scaler_unscale, METH_O, "Divide the gradients of an optimizer by the scale." },
	{ "step", scaler_step, METH_O,
	  "Step unless a gradient is not finite; True if it stepped." },
	{ "update", scaler_update, METH_NOARGS, "Set the scale for the next step." },
	{ "state", scaler_state, METH_NOARGS, "The scale and the number of finite steps." },
	{ NULL },
};

static PyType_Slot scaler_slots[] = {
	{ Py_tp_doc, "_GradScaler(scale, growth, backoff, interval, finite_steps)" },
	{ Py_tp_new, scaler_new },
	{ Py_tp_dealloc, scaler_dealloc },
	{ Py_tp_methods, scaler_methods },
	{ 0 },
};

/* ---- module ---- */

#define VARARGS(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef functions[] = {
	{ "_schedule_lr", VARARGS(schedule_lr), METH_VARARGS | METH_KEYWORDS,
	  "The learning rate of a schedule after a number of steps." },
	{ "_plateau_step", plateau_step, METH_VARARGS, "A step of ReduceLROnPlateau." },
	{ "_clip_grad_norm_", clip_grad_norm, METH_VARARGS, NULL },
	{ "_clip_grad_value_", clip_grad_value, METH_VARARGS, NULL },
	{ "_autocast_enter", autocast_enter, METH_O, NULL },
	{ "_autocast_leave", autocast_leave, METH_O, NULL },
	{ "_autocast_dtype", autocast_dtype, METH_NOARGS, NULL },
	{ NULL },
};

int add_training(PyObject *module)
{
	if (!add_type(module, "devtensor._C._Ema", sizeof(PyEma), ema_slots) ||
	    !add_type(module, "devtensor._C._GradScaler", sizeof(PyScaler), scaler_slots))
		return -1;
	return PyModule_AddFunctions(module, functions);
}
