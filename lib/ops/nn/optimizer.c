// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Optimizer steps on lists of parameters: all arguments are checked, then one call of the kernel steps all
 * parameters. Steps are not recorded, so a parameter that requires a gradient is an error outside
 * tensor_no_grad. Complex parameters are stepped as pairs of real numbers.
 */
#include "kernels/abi/optimizer.h"
#include "ops/nn/items.h"
#include "ops/op.h"

#include "family/copy.h"
#include "family/optimizer.h"

#include <stdlib.h>

#define TENSORS \
	(2 +    \
	 OPTIMIZER_STATES) /* of a parameter: itself, gradient, states; NULL for no such state */

struct step_call {
	const struct tensor_op *op;
	tensor_list param, grad, state[OPTIMIZER_STATES], steps;
	bool has[OPTIMIZER_STATES]; /* the states that the method reads */
	tensor *lr;		    /* replaces s.lr unless NULL */
	tensor *grad_scale, *found_inf;
	struct optimizer_step s;
};

/* The tensors of one parameter, as given and as the kernel gets them, which is owned. */
struct step_tensors {
	tensor *t[TENSORS], *dense[TENSORS];
};

static int scalar_of(tensor *t, double *value)
{
	tensor_scalar v;

	if (likely(t->dtype == TENSOR_F32 && t->numel == 1 && t->keys == KEY_BIT(TENSOR_KEY_CPU))) {
		*value = *(const float *)t->data;
		return 0;
	}
	if (call__local_scalar_dense(t, &v) < 0)
		return error_code();
	*value = scalar_double(v);
	return 0;
}

static int check_length(const struct step_call *c, const char *what, tensor_list list)
{
	if (list.len == c->param.len)
		return 0;
	return tensor_fail(EINVAL, "%s: %lld tensors of %s for %lld parameters", c->op->schema.name,
			   (long long)list.len, what, (long long)c->param.len);
}

static int check_lists(const struct step_call *c)
{
	if (check_length(c, "gradients", c->grad) < 0)
		return error_code();
	for (int k = 0; k < OPTIMIZER_STATES; k++)
		if (c->has[k] && check_length(c, "state", c->state[k]) < 0)
			return error_code();
	if (c->s.method == OPTIMIZER_SGD || c->s.method == OPTIMIZER_RMSPROP)
		return 0;
	return check_length(c, "steps", c->steps);
}

/* Check tensor k of the step of parameter p. */
static int check_tensor(const struct step_call *c, const tensor *t, const tensor *p, int k)
{
	const char *name = c->op->schema.name;
	bool written = k != 1 || c->s.scale != 1;

	if (t->ext)
		return tensor_fail(EINVAL, "%s: %s is %s; all tensors must be strided", name,
				   k == 1 ? "a gradient" : "a tensor",
				   tensor_layout_name(t->layout));
	if (t->dtype != p->dtype || !(dtype_is_float(t->dtype) || dtype_is_complex(t->dtype)))
		return tensor_fail(
			EINVAL,
			"%s: parameters, gradients and states must have one floating dtype, got "
			"%s and %s",
			name, tensor_dtype_name(p->dtype), tensor_dtype_name(t->dtype));
	if (!sizes_equal(t, p))
		return tensor_fail(EINVAL, "%s: a tensor of shape %s for a parameter of shape %s",
				   name, SHAPE_STR(t), SHAPE_STR(p));
	if (written && tensor_overlaps_itself(t))
		return tensor_fail(EINVAL, "%s: a tensor's elements share memory", name);
	if (operand_is_recorded(t))
		return tensor_fail(EINVAL,
				   "%s: a tensor requires a gradient; call it under tensor_no_grad",
				   name);
	if (operand_check_device(name, t, c->param.data[0]) < 0)
		return error_code();
	return written ? check_writable(c->op, t) : 0;
}

/* Collect and check the tensors of parameter i, and prepare what the kernel gets. */
static int gather(const struct step_call *c, int64_t i, struct step_tensors *p,
		  struct optimizer_item *item)
{
	bool alike = true;

	p->t[0] = c->param.data[i];
	p->t[1] = c->grad.data[i];
	for (int k = 0; k < OPTIMIZER_STATES; k++)
		p->t[2 + k] = c->has[k] ? c->state[k].data[i] : NULL;
	for (int k = 0; k < TENSORS; k++) {
		if (!p->t[k])
			continue;
		if (check_tensor(c, p->t[k], p->t[0], k) < 0)
			return error_code();
		alike = alike && dense_alike(p->t[k], p->t[0]);
	}
	for (int k = 0; k < TENSORS; k++) {
		if (!p->t[k])
			continue;
		p->dense[k] = alike ? tensor_get(p->t[k]) : operand_contiguous(p->t[k]);
		if (!p->dense[k])
			return error_code();
	}
	item->dtype = dtype_real(p->t[0]->dtype);
	item->n = real_numel(p->t[0]);
	item->param = p->dense[0]->data;
	item->grad = p->dense[1]->data;
	for (int k = 0; k < OPTIMIZER_STATES; k++)
		item->state[k] = p->dense[2 + k] ? p->dense[2 + k]->data : NULL;
	for (int k = 0; k < TENSORS; k++)
		item->tensors[k] = p->dense[k];
	item->count = c->steps.len ? c->steps.data[i] : NULL;
	return item->count ? scalar_of(item->count, &item->step) : 0;
}

/* After the step: copy what was copied for it back, and count the changes. */
static int finish(const struct step_call *c, struct step_tensors *p)
{
	for (int k = 0; k < TENSORS; k++) {
		if (!p->t[k] || (k == 1 && c->s.scale == 1))
			continue;
		if (p->dense[k] != p->t[k] && operand_copy(p->t[k], p->dense[k]) < 0)
			return error_code();
		tensor_bump_version(p->t[k]);
	}
	return 0;
}

static int step_tensors(const struct step_call *c, struct step_tensors *p,
			struct optimizer_item *items)
{
	optimizer_kernel fn =
		(optimizer_kernel)op_kernel(c->op, &kernels_optimizer, c->param.data[0]);
	int64_t n = 0, begin = 0, all = c->param.len;

	if (!fn)
		return error_code();
	for (int64_t i = 0; i < all; i++) {
		if (gather(c, i, &p[i], &items[n]) < 0)
			return error_code();
		items[n].begin = begin;
		begin += items[n].n;
		n += items[n].n > 0;
	}
	if (n && fn(&c->s, items, n) < 0)
		return error_code();
	for (int64_t i = 0; i < all; i++)
		if (finish(c, &p[i]) < 0)
			return error_code();
	return 0;
}

static int step_all(struct step_call *c)
{
	struct step_tensors *p;
	struct optimizer_item *items;
	double found = 0;
	int err;

	c->s.scale = 1;
	if (check_lists(c) < 0 || (c->lr && scalar_of(c->lr, &c->s.lr) < 0) ||
	    (c->grad_scale && scalar_of(c->grad_scale, &c->s.scale) < 0) ||
	    (c->found_inf && scalar_of(c->found_inf, &found) < 0))
		return error_code();
	if (found == 1 || !c->param.len)
		return 0;
	c->s.device = c->param.data[0]->device;
	p = calloc(c->param.len, sizeof(*p) + sizeof(*items));
	if (!p)
		return tensor_fail(ENOMEM, "%s: no memory for %lld parameters", c->op->schema.name,
				   (long long)c->param.len);
	items = (struct optimizer_item *)(p + c->param.len);
	err = step_tensors(c, p, items);
	for (int64_t i = 0; i < c->param.len; i++)
		for (int k = 0; k < TENSORS; k++)
			tensor_put(p[i].dense[k]);
	free(p);
	return err;
}

/* ---- Adam ---- */

/* Argument lists of an Adam call. */
struct adam_lists {
	tensor_list self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps;
};

static int step_adam(const struct tensor_op *op, struct adam_lists l, struct optimizer_step s,
		     tensor *lr, bool amsgrad, tensor *grad_scale, tensor *found_inf)
{
	struct step_call c = { .op = op,
			       .param = l.self,
			       .grad = l.grads,
			       .steps = l.state_steps,
			       .state = { l.exp_avgs, l.exp_avg_sqs, l.max_exp_avg_sqs },
			       .has = { true, true, amsgrad },
			       .lr = lr,
			       .grad_scale = grad_scale,
			       .found_inf = found_inf,
			       .s = s };

	c.s.method = OPTIMIZER_ADAM;
	return step_all(&c);
}

#define ADAM(NAME, OP, LR, AS_DOUBLE, AS_TENSOR, DECOUPLED)                                        \
	int NAME(tensor_list self, tensor_list grads, tensor_list exp_avgs,                        \
		 tensor_list exp_avg_sqs, tensor_list max_exp_avg_sqs, tensor_list state_steps,    \
		 LR lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad, \
		 bool maximize, tensor *grad_scale, tensor *found_inf)                             \
	{                                                                                          \
		struct adam_lists lists = { self,	 grads,		  exp_avgs,                \
					    exp_avg_sqs, max_exp_avg_sqs, state_steps };           \
		struct optimizer_step s = { .lr = AS_DOUBLE,                                       \
					    .beta1 = beta1,                                        \
					    .beta2 = beta2,                                        \
					    .eps = eps,                                            \
					    .weight_decay = weight_decay,                          \
					    .maximize = maximize,                                  \
					    .decoupled = DECOUPLED };                              \
                                                                                                   \
		return step_adam(&OP, lists, s, AS_TENSOR, amsgrad, grad_scale, found_inf);        \
	}
ADAM(composite_fused_adam_, entry__fused_adam_, double, lr, NULL, false)
ADAM(composite_fused_adam_tensor_lr_, entry__fused_adam__tensor_lr, tensor *, 0, lr, false)
ADAM(composite_fused_adamw_, entry__fused_adamw_, double, lr, NULL, true)
ADAM(composite_fused_adamw_tensor_lr_, entry__fused_adamw__tensor_lr, tensor *, 0, lr, true)

/* ---- SGD, Adagrad ---- */

/* Without momentum there is no state. */
static int step_sgd(const struct tensor_op *op, tensor_list self, tensor_list grads,
		    tensor_list buffers, struct optimizer_step s, tensor *lr, tensor *grad_scale,
		    tensor *found_inf)
{
	struct step_call c = { .op = op,
			       .param = self,
			       .grad = grads,
			       .state = { buffers },
			       .has = { s.momentum != 0 },
			       .lr = lr,
			       .grad_scale = grad_scale,
			       .found_inf = found_inf,
			       .s = s };

	c.s.method = OPTIMIZER_SGD;
	if (!c.has[0] && buffers.len)
		return tensor_fail(EINVAL, "%s: momentum is 0 and momentum_buffer_list not empty",
				   op->schema.name);
	return step_all(&c);
}

#define SGD(NAME, OP, LR, AS_DOUBLE, AS_TENSOR)                                                   \
	int NAME(tensor_list self, tensor_list grads, tensor_list momentum_buffer_list,           \
		 double weight_decay, double momentum, LR lr, double dampening, bool nesterov,    \
		 bool maximize, bool is_first_step, tensor *grad_scale, tensor *found_inf)        \
	{                                                                                         \
		struct optimizer_step s = { .lr = AS_DOUBLE,                                      \
					    .weight_decay = weight_decay,                         \
					    .momentum = momentum,                                 \
					    .dampening = dampening,                               \
					    .nesterov = nesterov,                                 \
					    .maximize = maximize,                                 \
					    .first = is_first_step };                             \
                                                                                                  \
		return step_sgd(&OP, self, grads, momentum_buffer_list, s, AS_TENSOR, grad_scale, \
				found_inf);                                                       \
	}
SGD(composite_fused_sgd_, entry__fused_sgd_, double, lr, NULL)
SGD(composite_fused_sgd_tensor_lr_, entry__fused_sgd__tensor_lr, tensor *, 0, lr)

static int step_adagrad(const struct tensor_op *op, tensor_list self, tensor_list grads,
			tensor_list sums, tensor_list steps, struct optimizer_step s, tensor *lr,
			tensor *grad_scale, tensor *found_inf)
{
	struct step_call c = { .op = op,
			       .param = self,
			       .grad = grads,
			       .state = { sums },
			       .has = { true },
			       .steps = steps,
			       .lr = lr,
			       .grad_scale = grad_scale,
			       .found_inf = found_inf,
			       .s = s };

	c.s.method = OPTIMIZER_ADAGRAD;
	return step_all(&c);
}

#define ADAGRAD(NAME, OP, LR, AS_DOUBLE, AS_TENSOR)                                                \
	int NAME(tensor_list self, tensor_list grads, tensor_list state_sums,                      \
		 tensor_list state_steps, LR lr, double lr_decay, double weight_decay, double eps, \
		 bool maximize, tensor *grad_scale, tensor *found_inf)                             \
	{                                                                                          \
		struct optimizer_step s = { .lr = AS_DOUBLE,                                       \
					    .lr_decay = lr_decay,                                  \
					    .eps = eps,                                            \
					    .weight_decay = weight_decay,                          \
					    .maximize = maximize };                                \
                                                                                                   \
		return step_adagrad(&OP, self, grads, state_sums, state_steps, s, AS_TENSOR,       \
				    grad_scale, found_inf);                                        \
	}
ADAGRAD(composite_fused_adagrad_, entry__fused_adagrad_, double, lr, NULL)
ADAGRAD(composite_fused_adagrad_tensor_lr_, entry__fused_adagrad__tensor_lr, tensor *, 0, lr)

/* ---- RMSprop ---- */

int composite_fused_rmsprop_(tensor_list self, tensor_list grads, tensor_list square_avgs,
			     tensor_list grad_avgs, tensor_list momentum_buffer_list, double lr,
			     double alpha, double eps, double weight_decay, double momentum,
			     bool centered, bool maximize, tensor *grad_scale, tensor *found_inf)
{
	struct step_call c = { .op = &entry__fused_rmsprop_,
			       .param = self,
			       .grad = grads,
			       .state = { square_avgs, grad_avgs, momentum_buffer_list },
			       .has = { true, centered, momentum != 0 },
			       .grad_scale = grad_scale,
			       .found_inf = found_inf };

	c.s = (struct optimizer_step){ .method = OPTIMIZER_RMSPROP,
				       .lr = lr,
				       .alpha = alpha,
				       .eps = eps,
				       .weight_decay = weight_decay,
				       .momentum = momentum,
				       .maximize = maximize };
	return step_all(&c);
}
