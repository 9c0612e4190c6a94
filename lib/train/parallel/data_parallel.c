// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Data-parallel training: hooks of the parameters fill the buckets, and backward's end waits for them. */
#include "train/parallel/parallel.h"

#include "core/trace.h"
#include "iter/iter.h"

#include "family/copy.h"

#include <limits.h>
#include <stdlib.h>

/* ---- parameters and buffers of rank 0 ---- */

static int broadcast_list(tensor_data_parallel *dp, tensor *const *list, int64_t n)
{
	int err = 0;

	for (int64_t i = 0; i < n && !err; i++)
		err = tensor_group_broadcast(dp->group, list[i], 0, NULL);
	return err;
}

/* Those that the module has now, or those of the list. */
static int broadcast_buffers(tensor_data_parallel *dp)
{
	const struct tensor_named *named;
	int64_t n;
	int err = 0;

	if (!dp->module)
		return broadcast_list(dp, dp->buffers, dp->nbuffers);
	n = tensor_module_named(dp->module, TENSOR_MODULE_BUFFERS, &named);
	for (int64_t i = 0; i < n && !err; i++)
		err = tensor_group_broadcast(dp->group, named[i].t, 0, NULL);
	return n < 0 ? (int)n : err;
}

/* ---- hooks ---- */

static int on_gradient(tensor *leaf, void *ctx)
{
	struct parameter *p = ctx;
	tensor_data_parallel *dp = p->dp;
	int err;

	if (!dp->sync)
		return 0;
	pthread_mutex_lock(&dp->lock);
	if (p->ready) {
		err = tensor_fail(
			EBUSY,
			"data_parallel: a second backward before tensor_data_parallel_finish()");
	} else {
		if (!dp->ordered)
			dp->came[dp->ncame++] = (int)(p - dp->parameters);
		err = bucket_add(p, tensor_grad(leaf));
	}
	pthread_mutex_unlock(&dp->lock);
	return err;
}

/* ---- the order of the buckets ---- */

/* Appends the parameters that did not become ready. */
static void complete_order(tensor_data_parallel *dp)
{
	bool *has = calloc((size_t)dp->n + 1, sizeof(*has));

	if (!has)
		return;
	for (int i = 0; i < dp->ncame; i++)
		has[dp->came[i]] = true;
	for (int i = dp->n - 1; i >= 0; i--)
		if (!has[i])
			dp->came[dp->ncame++] = i;
	free(has);
}

static bool is_permutation(const int64_t *order, int n)
{
	int64_t sum = 0;

	for (int i = 0; i < n; i++) {
		if (order[i] < 0 || order[i] >= n)
			return false;
		sum += order[i];
	}
	return sum == (int64_t)n * (n - 1) / 2;
}

/* After the first backward: the buckets get the order in which rank 0's gradients came. */
static int take_order(tensor_data_parallel *dp)
{
	const int64_t n = dp->n;
	tensor *t = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &n, 1);
	int64_t *order = t ? t->data : NULL;
	int err = t ? 0 : -ENOMEM;

	complete_order(dp);
	if (!err && dp->ncame != dp->n)
		err = tensor_fail(ENOMEM, "data_parallel: no memory");
	for (int i = 0; i < dp->n && !err; i++)
		order[i] = dp->came[i];
	if (!err)
		err = tensor_group_broadcast(dp->group, t, 0, NULL);
	if (!err && !is_permutation(order, dp->n))
		err = tensor_fail(EPROTO, "data_parallel: rank 0 sent no order of %d parameters",
				  dp->n);
	for (int i = 0; i < dp->n && !err; i++)
		dp->order[i] = (int)order[i];
	tensor_put(t);
	dp->ordered = !err;
	return err ? err : buckets_make(dp);
}

/* ---- the end of a backward ---- */

/* Which parameters a rank used: one byte each, of which the ranks take the maximum. */
static int used_by_any(tensor_data_parallel *dp, tensor *used)
{
	uint8_t *mark = used->data;

	for (int i = 0; i < dp->n; i++)
		mark[i] = dp->parameters[i].ready || tensor_grad(dp->parameters[i].leaf);
	return tensor_group_all_reduce(dp->group, used, used, TENSOR_GROUP_MAX, NULL);
}

/* Fills the places of parameters without a gradient, which sends the last buckets. */
static int add_missing(tensor_data_parallel *dp)
{
	int err = 0;

	for (int i = 0; i < dp->n && !err; i++) {
		struct parameter *p = &dp->parameters[dp->order[i]];
		tensor *grad = tensor_grad(p->leaf);

		if (!p->ready)
			err = grad ? bucket_add(p, grad) : bucket_add_zeros(p);
	}
	return err;
}

static int set_gradient(struct parameter *p)
{
	struct thread_modes before = thread_enter_plain();
	tensor *grad = tensor_grad(p->leaf), *part = bucket_part(p), *made = NULL;
	int err = part ? 0 : -ENOMEM;

	if (!err && !grad) {
		made = tensor_new_like(p->leaf, p->leaf->sizes, p->leaf->ndim);
		grad = made;
	}
	if (!err && (!grad || !call_copy_(grad, part)))
		err = -thread()->error.code;
	if (!err && made)
		err = tensor_set_grad(p->leaf, made);
	thread()->modes = before;
	tensor_put(made);
	tensor_put(part);
	return err;
}

static int finish(tensor_data_parallel *dp, tensor *used)
{
	const uint8_t *mark = used->data;
	int err = add_missing(dp), res;

	res = buckets_wait(dp, -1);
	if (!err)
		err = res;
	if (!err)
		err = used_by_any(dp, used);
	for (int i = 0; i < dp->n && !err; i++)
		if (mark[i])
			err = set_gradient(&dp->parameters[i]);
	if (!err && !dp->ordered)
		err = take_order(dp);
	if (!err && !dp->options.keep_buffers)
		err = broadcast_buffers(dp);
	/* The next backward fills the list again. */
	if (!dp->ordered)
		dp->ncame = 0;
	return err;
}

TENSOR_EXPORT int tensor_data_parallel_finish(tensor_data_parallel *dp)
{
	int64_t n;
	tensor *used;
	int err;

	TRACE_SPAN("group", "tensor_data_parallel_finish");
	if (!dp)
		return tensor_fail(EINVAL, "data_parallel_finish: dp is NULL");
	if (!dp->sync)
		return 0;
	n = dp->n;
	used = tensor_new(TENSOR_DEVICE_CPU, TENSOR_U8, &n, 1);
	if (!used)
		return -ENOMEM;
	pthread_mutex_lock(&dp->lock);
	err = finish(dp, used);
	pthread_mutex_unlock(&dp->lock);
	tensor_put(used);
	return err;
}

TENSOR_EXPORT int tensor_data_parallel_wait(tensor_data_parallel *dp, int64_t timeout_ns)
{
	int err;

	if (!dp)
		return tensor_fail(EINVAL, "data_parallel_wait: dp is NULL");
	if (!dp->sync)
		return 0;
	pthread_mutex_lock(&dp->lock);
	err = add_missing(dp);
	if (!err)
		err = buckets_wait(dp, timeout_ns < 0 ? INT64_MAX : timeout_ns);
	pthread_mutex_unlock(&dp->lock);
	return err;
}

TENSOR_EXPORT int tensor_data_parallel_backward(tensor_data_parallel *dp, tensor *loss)
{
	int err;

	TRACE_SPAN("group", "tensor_data_parallel_backward");
	if (!dp)
		return tensor_fail(EINVAL, "data_parallel_backward: dp is NULL");
	err = tensor_backward(loss);
	return err < 0 ? err : tensor_data_parallel_finish(dp);
}

TENSOR_EXPORT int tensor_data_parallel_set_sync(tensor_data_parallel *dp, bool sync)
{
	if (!dp)
		return tensor_fail(EINVAL, "data_parallel_set_sync: dp is NULL");
	dp->sync = sync;
	return 0;
}

/* ---- the object ---- */

TENSOR_EXPORT void tensor_data_parallel_free(tensor_data_parallel *dp)
{
	if (!dp)
		return;
	for (int i = 0; i < dp->n; i++) {
		if (dp->parameters[i].hook)
			tensor_hook_remove(dp->parameters[i].hook);
		tensor_put(dp->parameters[i].leaf);
	}
	/* An operation that was begun still has its tensors. */
	for (int i = 0; i < dp->nbuckets; i++)
		if (dp->buckets[i].request)
			tensor_request_wait(dp->buckets[i].request, -1);
	buckets_free(dp);
	for (int64_t i = 0; i < dp->nbuffers; i++)
		tensor_put(dp->buffers[i]);
	pthread_mutex_destroy(&dp->lock);
	free(dp->buffers);
	free(dp->parameters);
	free(dp->order);
	free(dp->came);
	free(dp->owned);
	free(dp);
}

static int add_parameters(tensor_data_parallel *dp, tensor_list all)
{
	dp->parameters = calloc((size_t)all.len + 1, sizeof(*dp->parameters));
	dp->order = calloc((size_t)all.len + 1, sizeof(*dp->order));
	dp->came = calloc((size_t)all.len + 1, sizeof(*dp->came));
	dp->owned = calloc((size_t)all.len + 1, sizeof(*dp->owned));
	if (!dp->parameters || !dp->order || !dp->came || !dp->owned)
		return tensor_fail(ENOMEM, "data_parallel_new: no memory");
	for (int64_t i = 0; i < all.len; i++)
		if (tensor_requires_grad(all.data[i]))
			dp->parameters[dp->n++] =
				(struct parameter){ .dp = dp, .leaf = tensor_get(all.data[i]) };
	/* At first the order in which backward most likely comes to them. */
	for (int i = 0; i < dp->n; i++)
		dp->order[i] = dp->n - 1 - i;
	return 0;
}

static int add_hooks(tensor_data_parallel *dp)
{
	int err = 0;

	for (int i = 0; i < dp->n && !err; i++)
		err = tensor_register_post_accumulate_grad_hook(dp->parameters[i].leaf, on_gradient,
								&dp->parameters[i], NULL,
								&dp->parameters[i].hook);
	return err;
}

static int check_options(const struct tensor_data_parallel_options *o)
{
	if (o->bucket_bytes < 0)
		return tensor_fail(EINVAL, "data_parallel_new: buckets of %lld bytes",
				   (long long)o->bucket_bytes);
	if (o->dtype && (!dtype_is_float(o->dtype) || dtype_is_f8(o->dtype)))
		return tensor_fail(EINVAL, "data_parallel_new: gradients in %s",
				   tensor_dtype_name(o->dtype));
	return 0;
}

static int add_buffers(tensor_data_parallel *dp, tensor_list buffers)
{
	dp->buffers = calloc((size_t)buffers.len + 1, sizeof(tensor *));
	if (!dp->buffers)
		return tensor_fail(ENOMEM, "data_parallel_new: no memory");
	for (int64_t i = 0; i < buffers.len; i++)
		dp->buffers[dp->nbuffers++] = tensor_get(buffers.data[i]);
	return 0;
}

static int check_list(const char *what, tensor_list list)
{
	if (list.len < 0 || list.len > INT_MAX || (list.len && !list.data))
		return tensor_fail(EINVAL, "data_parallel_new: %lld %s", (long long)list.len, what);
	for (int64_t i = 0; i < list.len; i++)
		if (!list.data[i])
			return tensor_fail(EINVAL,
					   "data_parallel_new: number %lld of the %s is NULL",
					   (long long)i, what);
	return 0;
}

/* Ranks with different trained parameters of one size would average the gradients of one with those of another. */
static int compare_trained(tensor_data_parallel *dp, tensor_list parameters)
{
	const int64_t sizes[] = { 2, parameters.len };
	tensor *t = tensor_new(TENSOR_DEVICE_CPU, TENSOR_U8, sizes, 2);
	uint8_t *trained = t ? t->data : NULL;
	int err = t ? 0 : -ENOMEM;

	for (int64_t i = 0; i < parameters.len && !err; i++) {
		trained[i] = tensor_requires_grad(parameters.data[i]);
		trained[parameters.len + i] = !trained[i];
	}
	if (!err)
		err = tensor_group_all_reduce(dp->group, t, t, TENSOR_GROUP_MAX, NULL);
	for (int64_t i = 0; i < parameters.len && !err; i++)
		if (trained[i] && trained[parameters.len + i])
			err = tensor_fail(
				EINVAL,
				"data_parallel_new: parameter %lld requires a gradient on some "
				"ranks, and none on others",
				(long long)i);
	tensor_put(t);
	return err;
}

static bool is_receivable(const tensor *t)
{
	return !t->ext && t->layout == TENSOR_STRIDED && !tensor_overlaps_itself(t) &&
	       tensor_check_writable("data_parallel_new", t) == 0;
}

/* 1 and the number of the first buffer that no operation can write to, or 0; -errno with the error set. */
static int64_t first_unwritable_buffer(tensor_data_parallel *dp)
{
	const struct tensor_named *named = NULL;
	int64_t n = dp->nbuffers;

	if (dp->module)
		n = tensor_module_named(dp->module, TENSOR_MODULE_BUFFERS, &named);
	for (int64_t i = 0; i < n; i++)
		if (!is_receivable(named ? named[i].t : dp->buffers[i]))
			return i + 1;
	return n < 0 ? n : 0;
}

/* Rank 0 only reads its tensors: it would wait for a rank that cannot receive them. */
static int check_receivable(tensor_data_parallel *dp, tensor_list parameters)
{
	static const char *const names[] = { "parameter", "buffer" };
	const int64_t n = 2;
	tensor *t = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &n, 1);
	int64_t *first = t ? t->data : NULL;
	int err = t ? 0 : -ENOMEM;

	if (!err) {
		first[0] = 0;
		for (int64_t i = parameters.len; i > 0; i--)
			if (!is_receivable(parameters.data[i - 1]))
				first[0] = i;
		first[1] = first_unwritable_buffer(dp);
		err = first[1] < 0 ? (int)first[1] : 0;
	}
	if (!err)
		err = tensor_group_all_reduce(dp->group, t, t, TENSOR_GROUP_MAX, NULL);
	for (int i = 0; i < 2 && !err; i++)
		if (first[i])
			err = tensor_fail(EINVAL,
					  "data_parallel_new: %s %lld of a rank cannot be written",
					  names[i], (long long)first[i] - 1);
	tensor_put(t);
	return err;
}

static int prepare(tensor_data_parallel *dp, tensor_list parameters, tensor_list buffers)
{
	int err = add_parameters(dp, parameters);

	if (!err)
		err = add_buffers(dp, buffers);
	if (!err)
		err = owners_choose(dp);
	if (!err)
		err = buckets_make(dp);
	if (!err)
		err = check_receivable(dp, parameters);
	if (!err)
		err = broadcast_list(dp, parameters.data, parameters.len);
	if (!err)
		err = compare_trained(dp, parameters);
	if (!err)
		err = broadcast_buffers(dp);
	/* No rank may go on if the module of another one has more. */
	if (!err)
		err = tensor_group_barrier(dp->group, NULL);
	return err ? err : add_hooks(dp);
}

/* m: NULL, or the module whose parameters these are. */
static tensor_data_parallel *new_parallel(tensor_module *m, tensor_list parameters,
					  tensor_list buffers, tensor_group *group,
					  const struct tensor_data_parallel_options *options)
{
	static const struct tensor_data_parallel_options none;
	tensor_data_parallel *dp;

	options = options ? options : &none;
	if (check_options(options) < 0 || check_list("parameters", parameters) < 0 ||
	    check_list("buffers", buffers) < 0)
		return NULL;
	dp = calloc(1, sizeof(*dp));
	if (!dp) {
		tensor_fail(ENOMEM, "data_parallel_new: no memory");
		return NULL;
	}
	dp->module = m;
	dp->group = group;
	dp->options = *options;
	dp->sync = true;
	pthread_mutex_init(&dp->lock, NULL);
	if (prepare(dp, parameters, buffers) < 0) {
		tensor_data_parallel_free(dp);
		return NULL;
	}
	return dp;
}

TENSOR_EXPORT tensor_data_parallel *
tensor_data_parallel_new(tensor_module *m, tensor_group *group,
			 const struct tensor_data_parallel_options *options)
{
	tensor_list all;

	if (!m || !group) {
		tensor_fail(EINVAL, "data_parallel_new: the %s is NULL", m ? "group" : "module");
		return NULL;
	}
	all = tensor_module_parameters(m);
	if (!all.len) {
		tensor_fail(
			EINVAL,
			"data_parallel_new: the module has no parameters yet: call the model once");
		return NULL;
	}
	return new_parallel(m, all, (tensor_list){ NULL, 0 }, group, options);
}

TENSOR_EXPORT tensor_data_parallel *
tensor_data_parallel_new_of(tensor_list parameters, tensor_list buffers, tensor_group *group,
			    const struct tensor_data_parallel_options *options)
{
	if (!group || !parameters.len) {
		tensor_fail(EINVAL, "data_parallel_new: %s",
			    group ? "there are no parameters" : "the group is NULL");
		return NULL;
	}
	return new_parallel(NULL, parameters, buffers, group, options);
}
