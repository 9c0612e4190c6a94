// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The function of the batched key, for all operators. It takes the tensors of the innermost level
 * among the arguments apart, runs the rule of the operator with the keys that the thread had
 * outside of that level, and makes the results batched. So the rule's operators are recorded if
 * the physical tensors require a gradient, and meet tensors of outer levels.
 */
#include "batch/batch.h"

#include "dispatch/boxed.h"

#include <stdlib.h>

/* Sets the modes for the operators that a rule calls. Returns the modes before. */
static struct thread_modes outside_enter(struct batch_level *level)
{
	struct thread_modes *m = &thread()->modes, before = *m;

	if (!m->inference)
		m->exclude &= ~AUTOGRAD_BIT;
	m->exclude &= ~(FORWARD_BIT | BATCHED_BIT);
	m->exclude |= AUTOCAST_BIT; /* the arguments are converted */
	m->batch_level = level->parent;
	m->include &= level->parent ? ~0u : ~BATCHED_BIT;
	return before;
}

/* ---- the level of a call ---- */

static int consider(const tensor_op *op, const tensor *t, struct batch_level **level)
{
	struct batch_level *own;

	if (!t || !is_batched(t))
		return 0;
	own = batched_of(t)->level;
	if (atomic_load_explicit(&own->ended, memory_order_acquire))
		return tensor_fail(EINVAL,
				   "%s: a batched tensor %s was kept after its tensor_vmap() ended",
				   op->schema.name, SHAPE_STR(t));
	if (*level && own->depth == (*level)->depth && own != *level)
		return tensor_fail(EINVAL, "%s: batched tensors of two tensor_vmap() at once",
				   op->schema.name);
	if (!*level || own->depth > (*level)->depth)
		*level = own;
	return 0;
}

/* The innermost level among the arguments, or NULL. */
static int find_level(const tensor_op *op, const tensor_value *args, int nargs,
		      struct batch_level **level)
{
	int err = 0;

	*level = NULL;
	for (int i = 0; i < nargs && !err; i++) {
		if (args[i].kind == TENSOR_VALUE_TENSOR)
			err = consider(op, args[i].t, level);
		for (int64_t k = 0;
		     !err && args[i].kind == TENSOR_VALUE_TENSOR_LIST && k < args[i].list.len; k++)
			err = consider(op, args[i].list.data[k], level);
	}
	return err;
}

/* ---- arguments ---- */

static tensor *physical_of(const struct batch_call *c, tensor *t, uint64_t bit, uint64_t *batched)
{
	if (!t || !is_batched(t) || batched_of(t)->level != c->level)
		return t;
	*batched |= bit;
	return batched_of(t)->physical;
}

static int64_t list_elements(const tensor_value *args, int nargs)
{
	int64_t n = 0;

	for (int i = 0; i < nargs; i++)
		if (args[i].kind == TENSOR_VALUE_TENSOR_LIST)
			n += args[i].list.len;
	return n;
}

/* Fills c->phys; elements has space for those of all lists. */
static void take_apart(struct batch_call *c, tensor **elements)
{
	for (int i = 0; i < c->nargs; i++) {
		tensor_value *v = &c->phys[i];

		*v = c->args[i];
		if (v->kind == TENSOR_VALUE_TENSOR)
			v->t = physical_of(c, v->t, 1ull << i, &c->batched);
		if (v->kind != TENSOR_VALUE_TENSOR_LIST)
			continue;
		for (int64_t k = 0; k < v->list.len; k++)
			elements[k] =
				physical_of(c, c->args[i].list.data[k], 1ull << i, &c->batched);
		v->list.data = elements;
		elements += v->list.len;
	}
}

/* ---- results ---- */

/* The view of a sample is a view for autograd, too: it borrows the storage of the viewed tensor. */
static void mark_view(tensor *view, const tensor *physical, tensor *self)
{
	tensor *root = self->base ? self->base : self;

	view->base = root;
	tensor_ref_add(root, REF_VIEW);
	view->owns_storage = false;
	view->differentiable_view = physical->differentiable_view;
	storage_put(view->storage);
}

static int wrap_result(const struct batch_call *c, const tensor_value *physical, tensor_value *ret)
{
	tensor *t = physical->t, *sample;

	*ret = (tensor_value){ 0 };
	if (physical->kind != TENSOR_VALUE_TENSOR || !t)
		return 0;
	if (t->ext && !is_batched(t))
		return tensor_fail(EOPNOTSUPP, "%s: no batches of tensors that are not strided",
				   c->op->schema.name);
	if (t->ndim == 1 && !t->numel) /* a result that an option excludes */
		t = batch_expand(c, t);
	if (!t)
		return batch_failed();
	if (!t->ndim || t->sizes[0] != c->size)
		return tensor_fail(
			EINVAL, "%s: not possible on a batched tensor: the result %s has no batch",
			c->op->schema.name, SHAPE_STR(t));
	sample = batched_new(c->level, tensor_get(t));
	if (!sample)
		return batch_failed();
	if (t->base && arg_tensor(c, 0) && arg_batched(c, 0) && t->storage == c->args[0].t->storage)
		mark_view(sample, t, c->args[0].t);
	*ret = value_tensor(sample);
	return 0;
}

static void drop_results(tensor_value *rets, int nrets)
{
	for (int i = 0; i < nrets; i++) {
		if (rets[i].kind == TENSOR_VALUE_TENSOR)
			tensor_put(rets[i].t);
		rets[i] = (tensor_value){ 0 };
	}
}

static int wrap_results(const struct batch_call *c, tensor_value *rets, int nrets)
{
	int err = 0;

	for (int i = 0; i < nrets && !err; i++)
		err = wrap_result(c, &c->rets[i], &rets[i]);
	if (err)
		drop_results(rets, nrets);
	return err;
}

/* ---- calls ---- */

/* An in-place form whose rule computes the functional form: self takes the result. */
static int copy_result(struct batch_call *c, const struct batch_row *row)
{
	tensor_value args[2], self;
	int err;

	c->op = row->function;
	c->inplace = false;
	err = row->rule(c);
	if (err)
		return err;
	args[0] = value_tensor(batched_of(c->args[0].t)->physical);
	args[1] = c->rets[0];
	return tensor_call("copy_", args, 2, &self, 1);
}

static bool returns_tensors(const tensor_op *op)
{
	return !op->schema.nreturns || strstr(strstr(op->schema.text, "-> "), "Tensor");
}

static int check_call(const struct batch_call *c)
{
	const char *name = c->op->schema.name;

	if (!returns_tensors(c->op))
		return tensor_fail(
			EINVAL,
			"%s: a batched tensor has a value for each sample, and tensor_vmap() "
			"calls its function once for all of them",
			name);
	if (c->op->variant == VARIANT_OUT)
		return tensor_fail(EOPNOTSUPP,
				   "%s: an out form has no batching rule; use the function", name);
	if (c->op->variant == VARIANT_INPLACE && c->batched && !arg_batched(c, 0))
		return tensor_fail(
			EINVAL,
			"%s: self %s is the same for all samples and cannot be changed in "
			"place by a batched tensor; use the function, or make self by "
			"tensor_new_zeros() of a batched one",
			name, SHAPE_STR(c->args[0].t));
	return 0;
}

#define FEW_ARGS 16
#define FEW_RETS 8

static int run_rule(struct batch_call *c, tensor_value *rets, int nrets)
{
	struct tensor_scope_guard scope = tensor_scope_enter();
	struct thread_modes before = outside_enter(c->level);
	const struct batch_row *row = c->op->batch;
	int err = c->inplace && row->function ? copy_result(c, row) : row->rule(c);

	thread()->modes = before;
	if (!err && rets)
		err = wrap_results(c, rets, nrets);
	scope_leave(&scope);
	return err;
}

static int call_rule(const tensor_op *op, struct batch_level *level, const tensor_value *args,
		     int nargs, tensor_value *rets, int nrets)
{
	tensor_value few_args[FEW_ARGS], few_rets[FEW_RETS] = { 0 }, *more = NULL;
	int64_t n = list_elements(args, nargs);
	tensor **elements = n ? malloc(n * sizeof(*elements)) : NULL;
	struct batch_call c = { .op = op,
				.level = level,
				.size = level->size,
				.args = args,
				.phys = few_args,
				.nargs = nargs,
				.nrets = nrets,
				.inplace = op->variant == VARIANT_INPLACE,
				.rets = few_rets };
	int err = 0;

	if (nargs > FEW_ARGS || nrets > FEW_RETS) {
		more = calloc(nargs + nrets, sizeof(*more));
		c.phys = more;
		c.rets = more + nargs;
	}
	if ((n && !elements) || !c.phys)
		err = tensor_fail(ENOMEM, "%s: no memory for a batch", op->schema.name);
	if (!err) {
		take_apart(&c, elements);
		err = check_call(&c);
	}
	if (!err)
		err = run_rule(&c, c.inplace ? NULL : rets, nrets);
	if (!err && c.inplace && nrets)
		rets[0] = args[0];
	free(more);
	free(elements);
	return err;
}

/* ---- operators that call others, and those without a batched argument ---- */

int batch_rule_decompose(struct batch_call *c)
{
	return tensor_fail(EOPNOTSUPP, "%s: no batching rule", c->op->schema.name);
}

int batch_rule_factory(struct batch_call *c)
{
	return batch_rule_decompose(c);
}

int batch_rule_refuse(struct batch_call *c)
{
	return tensor_fail(EOPNOTSUPP, "%s: not possible on a batched tensor", c->op->schema.name);
}

/* The level for a random operator; NULL: it is called as outside of tensor_vmap(). */
static int random_level(const tensor_op *op, struct batch_level **level)
{
	struct batch_level *current = thread()->modes.batch_level;

	if (current && (!*level || current->depth > (*level)->depth))
		*level = current;
	if (!*level)
		return 0;
	if ((*level)->randomness == TENSOR_VMAP_RANDOM_ERROR)
		return tensor_fail(EINVAL,
				   "%s: random numbers inside tensor_vmap() need "
				   "TENSOR_VMAP_RANDOM_SAME or TENSOR_VMAP_RANDOM_DIFFERENT",
				   op->schema.name);
	return 0;
}

static bool any_requires_grad(const tensor_value *args, int nargs)
{
	for (int i = 0; i < nargs; i++) {
		tensor_list one = { &args[i].t, 1 }, list = { 0 };

		if (args[i].kind == TENSOR_VALUE_TENSOR && args[i].t)
			list = one;
		else if (args[i].kind == TENSOR_VALUE_TENSOR_LIST)
			list = args[i].list;
		for (int64_t k = 0; k < list.len; k++)
			if (list.data[k]->keys & AUTOGRAD_BIT &&
			    tensor_autograd_hooks.requires_grad(list.data[k]))
				return true;
	}
	return false;
}

/*
 * An operator that is differentiated through those that it calls, but has a rule for samples because
 * it reads values: the rule would lose the history of the samples.
 */
static int check_recorded(const tensor_op *op, const tensor_value *args, int nargs)
{
	int (*rule)(struct batch_call *) = op->batch->rule;

	if ((rule != batch_rule_loop && rule != batch_rule_all) || !op->calls ||
	    op_mask(op) & AUTOGRAD_BIT || !thread()->modes.grad_enabled ||
	    !any_requires_grad(args, nargs))
		return 0;
	return tensor_fail(
		EOPNOTSUPP,
		"%s: has no gradient with respect to batched tensors; detach the arguments, "
		"or call it outside of tensor_vmap()",
		op->schema.name);
}

/* The call without this key. Calls inside of an operator that forward mode left to them have forward mode again. */
static int call_past(const tensor_op *op, uint32_t skip, const tensor_value *args, int nargs,
		     tensor_value *rets, int nrets)
{
	struct thread_modes *modes = &thread()->modes;
	uint32_t exclude = modes->exclude;
	bool past = modes->past_forward;
	int err;

	if (past) {
		skip |= FORWARD_BIT;
		modes->exclude &= ~FORWARD_BIT;
		modes->past_forward = false;
	}
	err = boxed_call_past(op, skip, args, nargs, rets, nrets);
	modes->exclude = exclude;
	modes->past_forward = past;
	return err;
}

static int batched_call(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			int nargs, tensor_value *rets, int nrets, void *ctx)
{
	int (*rule)(struct batch_call *) = op->batch->rule;
	struct batch_level *level;
	int err = find_level(op, args, nargs, &level);

	(void)ctx;
	if (!err && (rule == batch_rule_random || rule == batch_rule_random_factory))
		err = random_level(op, &level);
	if (level && rule == batch_rule_random_factory &&
	    level->randomness == TENSOR_VMAP_RANDOM_SAME)
		level = NULL;
	if (err)
		return err;
	if (!level || rule == batch_rule_decompose)
		return call_past(op, KEY_BIT(key), args, nargs, rets, nrets);
	if (check_recorded(op, args, nargs) < 0)
		return batch_failed();
	return call_rule(op, level, args, nargs, rets, nrets);
}

INIT(INIT_HOOKS) static void register_batched(void)
{
	for (int i = 0; i < batch_rows_count; i++)
		batch_rows[i].op->batch = &batch_rows[i];
	tensor_register_fallback(TENSOR_KEY_BATCHED, batched_call, NULL);
}
