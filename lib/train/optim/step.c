// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A step: the parameters of a group that have a gradient, with their gradients and states as lists, go to one fused
 * operator. A group on several devices takes a call for each, and so does SGD while some parameters have no momentum
 * yet, which the operator initialises for all of a call.
 */
#include "train/optim/optim.h"

#include "dispatch/dispatch.h"
#include "storage/devices.h"

#include "family/factory.h"
#include "family/optimizer.h"

/* The lists of one call: [0] parameters, [1] gradients, [2 + k] state k. */
struct batch {
	tensor **list[OPTIM_LISTS];
	int64_t n;
	bool first; /* SGD: the momentum is written and not read */
};

static tensor_list part(const struct batch *b, int k)
{
	return (tensor_list){ b->list[k], b->list[k] ? b->n : 0 };
}

static tensor *new_state(const tensor_optim_options *o, const char *key, tensor *param)
{
	tensor_options like = { .memory_format = TENSOR_PRESERVE_FORMAT };

	if (optim_is_step(key))
		return call_zeros((tensor_ints){ NULL, 0 }, TENSOR_OPTIONS(.dtype = TENSOR_F32));
	if (o->method == TENSOR_OPTIM_ADAGRAD && o->initial_accumulator != 0)
		return call_full_like(param,
				      dtype_is_complex(param->dtype) ?
					      tensor_scalar_complex(o->initial_accumulator,
								    o->initial_accumulator) :
					      tensor_scalar_float(o->initial_accumulator),
				      like);
	return call_zeros_like(param, like);
}

int optim_complete_state(const struct optim_group *g, struct optim_param *p,
			 const char *const *keys)
{
	for (int k = 0; k < OPTIM_KEYS; k++) {
		if (!keys[k] || p->state[k])
			continue;
		p->state[k] = new_state(&g->options, keys[k], p->t);
		if (!p->state[k])
			return -thread()->error.code;
	}
	return 0;
}

static int call_adam(const tensor_optim_options *o, const struct batch *b)
{
	if (o->method == TENSOR_OPTIM_ADAMW)
		return call__fused_adamw_(part(b, 0), part(b, 1), part(b, 2), part(b, 3),
					  part(b, 4), part(b, 5), o->lr, o->beta1, o->beta2,
					  o->weight_decay, o->eps, o->amsgrad, o->maximize, NULL,
					  NULL);
	return call__fused_adam_(part(b, 0), part(b, 1), part(b, 2), part(b, 3), part(b, 4),
				 part(b, 5), o->lr, o->beta1, o->beta2, o->weight_decay, o->eps,
				 o->amsgrad, o->maximize, NULL, NULL);
}

static int call_method(const tensor_optim_options *o, const struct batch *b)
{
	switch (o->method) {
	case TENSOR_OPTIM_ADAM:
	case TENSOR_OPTIM_ADAMW:
		return call_adam(o, b);
	case TENSOR_OPTIM_ADAGRAD:
		return call__fused_adagrad_(part(b, 0), part(b, 1), part(b, 2), part(b, 5), o->lr,
					    o->lr_decay, o->weight_decay, o->eps, o->maximize, NULL,
					    NULL);
	case TENSOR_OPTIM_RMSPROP:
		return call__fused_rmsprop_(part(b, 0), part(b, 1), part(b, 2), part(b, 3),
					    part(b, 4), o->lr, o->alpha, o->eps, o->weight_decay,
					    o->momentum, o->centered, o->maximize, NULL, NULL);
	default:
		return call__fused_sgd_(part(b, 0), part(b, 1), part(b, 2), o->weight_decay,
					o->momentum, o->lr, o->dampening, o->nesterov, o->maximize,
					b->first, NULL, NULL);
	}
}

/* Add to the number of steps of every parameter of the call. */
static int count_steps(const struct batch *b, float by)
{
	for (int64_t i = 0; b->list[5] && i < b->n; i++) {
		float *step = tensor_mutable_data(b->list[5][i]);

		if (!step)
			return -thread()->error.code;
		*step += by;
		tensor_bump_version(b->list[5][i]);
	}
	return 0;
}

static int capture_counts(const struct batch *b)
{
	int err = 0;

	for (int64_t i = 0; b->list[5] && i < b->n && !err; i++)
		err = device_capture_count(b->list[0][0]->device, b->list[5][i]);
	return err;
}

static int step_batch(const struct optim_group *g, const struct batch *b)
{
	int err = b->n ? count_steps(b, 1) : 0;
	bool captured;

	if (!b->n || err)
		return err;
	err = call_method(&g->options, b) < 0 ? -thread()->error.code : 0;
	captured = !err && device_captures(b->list[0][0]->device);
	if (captured)
		err = capture_counts(b);
	/* A replay counts the steps that were captured. */
	if (err || captured)
		count_steps(b, -1);
	return err;
}

static void add(struct batch *b, const struct optim_param *p, tensor *grad)
{
	b->list[0][b->n] = p->t;
	b->list[1][b->n] = grad;
	for (int k = 0; k < OPTIM_KEYS; k++)
		if (b->list[2 + k])
			b->list[2 + k][b->n] = p->state[k];
	b->n++;
}

/* After a failure: a momentum that was allocated for the step and not written is no state. */
static void drop_first(struct optim_group *g, const struct batch *b, int64_t from)
{
	for (int64_t i = from, n = 0; n < b->n; i++) {
		if (g->params[i].t != b->list[0][n])
			continue;
		tensor_put(g->params[i].state[0]);
		g->params[i].state[0] = NULL;
		n++;
	}
}

/* The parameters of a group with the device of the first one that is not stepped yet, from `from` on; the others
 * are left to a later call. Returns where that begins, n if there is none, or -errno. */
static int64_t step_device(tensor_optim *o, struct optim_group *g, int64_t from)
{
	const char *keys[OPTIM_KEYS];
	int64_t next = g->n;
	struct batch b = { .n = 0 };
	tensor_device device = g->params[from].t->device;
	int first = -1, err = 0;

	optim_keys(&g->options, keys);
	for (int k = 0; k < OPTIM_LISTS; k++)
		b.list[k] = k < 2 || keys[k - 2] ? o->lists + k * o->most : NULL;
	for (int64_t i = from; i < g->n; i++) {
		struct optim_param *p = &g->params[i];
		tensor *grad = tensor_grad(p->t);
		bool same = !memcmp(&p->t->device, &device, sizeof(device));
		int fresh;

		if (!grad)
			continue;
		/* Only consecutive parameters are in a call, so that `next` is all that is left. */
		fresh = same ? g->options.method == TENSOR_OPTIM_SGD && keys[0] && !p->state[0] :
			       -1;
		if (!same || (first >= 0 && fresh != first)) {
			next = i;
			break;
		}
		first = fresh;
		err = optim_complete_state(g, p, keys);
		if (err < 0)
			break;
		add(&b, p, grad);
	}
	b.first = first > 0;
	err = err < 0 ? err : step_batch(g, &b);
	if (err < 0 && b.first)
		drop_first(g, &b, from);
	return err < 0 ? err : next;
}

static int check_grads(const tensor_optim *o)
{
	for (int k = 0; k < o->ngroups; k++)
		for (int64_t i = 0; i < o->groups[k].n; i++) {
			const tensor *grad = tensor_grad(o->groups[k].params[i].t);

			if (grad && grad->ext)
				return tensor_fail(
					EOPNOTSUPP,
					"optim_step: the gradient of parameter %d.%lld is "
					"%s; tensor_to_dense() makes one that can be used",
					k, (long long)i, tensor_layout_name(grad->layout));
		}
	return 0;
}

TENSOR_EXPORT int tensor_optim_step(tensor_optim *o)
{
	struct thread_modes before;
	int err;

	if (optim_absent("optim_step", o))
		return -EINVAL;
	o->cursor.valid = false;
	err = check_grads(o);
	before = thread_enter_plain();
	for (int k = 0; k < o->ngroups && !err; k++)
		for (int64_t i = 0; i < o->groups[k].n && !err;) {
			i = step_device(o, &o->groups[k], i);
			err = i < 0 ? (int)i : 0;
		}
	thread()->modes = before;
	if (err)
		error_in("optim_step");
	return err;
}
