// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Optimizer steps on lists of parameters: checks, then the kernel for each parameter. Steps are not
 * recorded, so a parameter that requires a gradient is an error outside tensor_no_grad. */
#include "iter/iter.h"
#include "kernels/abi/optimizer.h"
#include "ops/op.h"

#include "family/copy.h"
#include "family/optimizer.h"

struct step_call {
	const struct tensor_op *op;
	tensor_list param, grad, state[OPTIMIZER_STATES], steps;
	int nstates;
	tensor *lr; /* replaces s.lr unless NULL */
	tensor *grad_scale, *found_inf;
	struct optimizer_step s;
};

static int scalar_of(tensor *t, double *value)
{
	tensor_scalar v;

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
	for (int k = 0; k < c->nstates; k++)
		if (check_length(c, "state", c->state[k]) < 0)
			return error_code();
	return c->s.method == OPTIMIZER_SGD ? 0 : check_length(c, "steps", c->steps);
}

/* Check a tensor t that the step of parameter p writes. */
static int check_tensor(const struct step_call *c, const tensor *t, const tensor *p)
{
	const char *name = c->op->schema.name;

	if (t->dtype != p->dtype || !dtype_is_float(t->dtype))
		return tensor_fail(
			EINVAL,
			"%s: parameters, gradients and states must have one floating dtype, got "
			"%s and %s",
			name, tensor_dtype_name(p->dtype), tensor_dtype_name(t->dtype));
	if (!sizes_equal(t, p))
		return tensor_fail(EINVAL, "%s: a tensor of shape %s for a parameter of shape %s",
				   name, SHAPE_STR(t), SHAPE_STR(p));
	if (t->ext || tensor_overlaps_itself(t))
		return tensor_fail(
			EINVAL, "%s: a tensor's elements share memory, or are not strided", name);
	if (operand_is_recorded(t))
		return tensor_fail(EINVAL,
				   "%s: a tensor requires a gradient; call it under tensor_no_grad",
				   name);
	return operand_check_device(name, t, p) < 0 ? error_code() : check_writable(c->op, t);
}

/* Collect the tensors of parameter i: parameter, gradient, states. */
static int gather(const struct step_call *c, int64_t i, tensor **t)
{
	int n = 2 + c->nstates;

	t[0] = c->param.data[i];
	t[1] = c->grad.data[i];
	for (int k = 0; k < c->nstates; k++)
		t[2 + k] = c->state[k].data[i];
	for (int k = 0; k < n; k++)
		if (check_tensor(c, t[k], t[0]) < 0)
			return error_code();
	return n;
}

/* Run the kernel on the tensors, or on dense copies that are copied back. */
static int step_one(struct step_call *c, tensor **t, int n)
{
	optimizer_kernel fn = (optimizer_kernel)op_kernel(c->op, &kernels_optimizer, t[0]);
	tensor *dense[2 + OPTIMIZER_STATES] = { NULL };
	int err = fn ? 0 : error_code();

	for (int k = 0; k < n && !err; k++) {
		dense[k] = operand_contiguous(t[k]);
		err = dense[k] ? 0 : error_code();
	}
	if (!err) {
		c->s.dtype = t[0]->dtype;
		c->s.n = t[0]->numel;
		c->s.param = dense[0]->data;
		c->s.grad = dense[1]->data;
		for (int k = 2; k < n; k++)
			c->s.state[k - 2] = dense[k]->data;
		err = fn(&c->s);
	}
	for (int k = 0; k < n; k++) {
		if (!err && dense[k] != t[k])
			err = operand_copy(t[k], dense[k]);
		if (!err)
			tensor_bump_version(t[k]);
		tensor_put(dense[k]);
	}
	return err;
}

static int step_all(struct step_call *c)
{
	double found = 0;

	c->s.scale = 1;
	if (check_lists(c) < 0 || (c->lr && scalar_of(c->lr, &c->s.lr) < 0) ||
	    (c->grad_scale && scalar_of(c->grad_scale, &c->s.scale) < 0) ||
	    (c->found_inf && scalar_of(c->found_inf, &found) < 0))
		return error_code();
	if (found == 1)
		return 0;
	for (int64_t i = 0; i < c->param.len; i++) {
		tensor *t[2 + OPTIMIZER_STATES];
		int n = gather(c, i, t);

		if (n < 0 || (c->steps.len && scalar_of(c->steps.data[i], &c->s.step) < 0))
			return error_code();
		if (t[0]->numel && step_one(c, t, n) < 0)
			return error_code();
	}
	return 0;
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
			       .nstates = 2 + amsgrad,
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
			       .nstates = s.momentum != 0,
			       .lr = lr,
			       .grad_scale = grad_scale,
			       .found_inf = found_inf,
			       .s = s };

	c.s.method = OPTIMIZER_SGD;
	if (!c.nstates && buffers.len)
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
			       .nstates = 1,
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
