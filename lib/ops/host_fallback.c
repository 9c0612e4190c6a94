// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operators without a kernel for a device run on the CPU: a fallback copies the tensors that are on
 * the device to the host, calls the operator there, and copies its results and the tensors that it
 * has written back. Which operators do so is decided once, when the device's kernels are registered
 * (dispatch_replace_missing()). An operator whose kernel lacks the dtype comes here after the kernel
 * has refused it (dispatch_may_fall_back()).
 */
#include "ops/host_fallback.h"

#include "core/scope.h"
#include "dispatch/fallback.h"
#include "ops/op.h"
#include "ops/sparse/sparse.h"
#include "storage/devices.h"

#include "family/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <tensor/cuda.h>

#define ARGS_MAX 32

static _Atomic int allowed = -1; /* -1: TENSOR_CUDA_FALLBACK is not read yet */

static bool is_allowed(void)
{
	int now = atomic_load_explicit(&allowed, memory_order_relaxed);

	if (unlikely(now < 0)) {
		const char *text = secure_getenv("TENSOR_CUDA_FALLBACK");
		int unread = -1;

		now = !text || strcmp(text, "0");
		if (!atomic_compare_exchange_strong(&allowed, &unread, now))
			now = unread;
	}
	return now;
}

TENSOR_EXPORT bool tensor_cuda_set_fallback(bool allow)
{
	const bool before = is_allowed();

	atomic_store_explicit(&allowed, allow, memory_order_relaxed);
	return before;
}

TENSOR_EXPORT int64_t tensor_cuda_fallbacks(const char *name)
{
	const tensor_op *op = name ? tensor_op_find(name) : NULL;
	int64_t sum = 0;

	if (op)
		return (int64_t)atomic_load_explicit(&op->host_calls, memory_order_relaxed);
	for (int i = 0; !name && i < tensor_op_count(); i++)
		sum += (int64_t)atomic_load_explicit(&tensor_op_at(i)->host_calls,
						     memory_order_relaxed);
	if (!name)
		return sum;
	return tensor_fail(ENOENT, "cuda_fallbacks: there is no operator %s", QUOTED(name));
}

/* Counts the call; the first one of an operator prints a warning. reason: that of a kernel, or NULL. */
static void count(const tensor_op *op, tensor_device device, const char *reason)
{
	char name[32];

	if (atomic_fetch_add_explicit(&((tensor_op *)op)->host_calls, 1, memory_order_relaxed))
		return;
	if (reason)
		fprintf(stderr,
			"libtensor: %s; it runs on the CPU, through copies "
			"(TENSOR_CUDA_FALLBACK=0: an error)\n",
			reason);
	else
		fprintf(stderr,
			"libtensor: %s has no kernel for %s and runs on the CPU, through copies "
			"(TENSOR_CUDA_FALLBACK=0: an error)\n",
			op->schema.name, device_name(device, name, sizeof(name)));
}

/* ---- arguments ---- */

/* A tensor of the device and its copy on the host. */
struct moved {
	tensor *on_device, *host;
	bool written;
};

struct host_call {
	const tensor_op *op;
	int type;	      /* enum tensor_device_type */
	tensor_device device; /* of the first tensor of that type, or of a device argument */
	tensor_value args[ARGS_MAX];
	tensor **elements; /* of lists */
	struct moved *moved;
	int nmoved;
	const char *reason; /* the error of the device's kernel, or NULL */
};

static bool is_moved(const struct host_call *c, const tensor *t)
{
	return t && t != tensor_none && t->device.type == c->type;
}

/* The copy of t, the same for the same tensor. NULL with the error set. */
static tensor *to_host(struct host_call *c, tensor *t, bool written)
{
	struct moved *m = c->moved;

	if (!is_moved(c, t))
		return t;
	for (; m < c->moved + c->nmoved; m++)
		if (m->on_device == t) {
			m->written |= written;
			return m->host;
		}
	if (written && check_writable(c->op, t) < 0)
		return NULL;
	if (!c->device.type)
		c->device = t->device;
	*m = (struct moved){ t, tensor_to(t, TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU)),
			     written };
	c->nmoved += m->host != NULL;
	return m->host;
}

static int64_t tensors_in(const tensor_value *args, int nargs)
{
	int64_t n = 0;

	for (int i = 0; i < nargs; i++)
		n += args[i].kind == TENSOR_VALUE_TENSOR      ? 1 :
		     args[i].kind == TENSOR_VALUE_TENSOR_LIST ? args[i].list.len :
								0;
	return n;
}

static int list_to_host(struct host_call *c, tensor_value *v, tensor **to, bool written)
{
	for (int64_t k = 0; k < v->list.len; k++) {
		to[k] = to_host(c, v->list.data[k], written);
		if (v->list.data[k] && !to[k])
			return error_code();
	}
	v->list.data = to;
	return 0;
}

static int args_to_host(struct host_call *c, const tensor_value *args, int nargs)
{
	tensor **to = c->elements;

	for (int i = 0; i < nargs; i++) {
		const bool written = c->op->schema.args[i].mutated;
		tensor_value *v = &c->args[i];

		*v = args[i];
		if (v->kind == TENSOR_VALUE_TENSOR) {
			v->t = to_host(c, v->t, written);
			if (args[i].t && !v->t)
				return error_code();
		} else if (v->kind == TENSOR_VALUE_TENSOR_LIST) {
			if (list_to_host(c, v, to, written) < 0)
				return error_code();
			to += v->list.len;
		} else if (v->kind == TENSOR_VALUE_DEVICE && v->device.type == c->type) {
			c->device = v->device;
			v->device = TENSOR_DEVICE_CPU;
		}
	}
	return 0;
}

/* ---- results ---- */

/* Copies what the operator has written. An out argument may have been resized. */
static int write_back(struct host_call *c)
{
	for (struct moved *m = c->moved; m < c->moved + c->nmoved; m++) {
		if (!m->written)
			continue;
		if (is_sparse(m->on_device)) {
			tensor *t = tensor_to(m->host, TENSOR_OPTIONS(.device = c->device));

			if (!t)
				return error_code();
			sparse_become(m->on_device, t);
			continue;
		}
		if (!sizes_equal(m->host, m->on_device) &&
		    tensor_resize(m->on_device, m->host->sizes, m->host->ndim) < 0)
			return error_code();
		if (!call_copy_(m->on_device, m->host))
			return error_code();
	}
	return 0;
}

/* The tensor of the device for a result, owned unless it is an argument of an in-place or out form. */
static tensor *from_host(struct host_call *c, tensor *t)
{
	tensor *result;

	for (struct moved *m = c->moved; m < c->moved + c->nmoved; m++)
		if (m->host == t)
			return c->op->variant == VARIANT_FUNCTION ? tensor_get(m->on_device) :
								    m->on_device;
	result = tensor_to(t, TENSOR_OPTIONS(.device = c->device));
	return result ? tensor_get(result) : NULL;
}

/* rets are the host's results, which are released. */
static int results_from_host(struct host_call *c, tensor_value *rets, int nrets)
{
	const bool owned = c->op->variant == VARIANT_FUNCTION;
	int err = write_back(c);

	for (int i = 0; i < nrets; i++) {
		tensor *host = rets[i].t;

		if (rets[i].kind != TENSOR_VALUE_TENSOR || !host)
			continue;
		rets[i].t = err ? NULL : from_host(c, host);
		if (!err && !rets[i].t)
			err = error_code();
		if (owned)
			tensor_put(host);
	}
	for (int i = 0; i < nrets && err; i++) {
		if (owned && rets[i].kind == TENSOR_VALUE_TENSOR)
			tensor_put(rets[i].t);
		rets[i] = (tensor_value){ 0 };
	}
	return err;
}

/* ---- the fallback ---- */

static int call_on_host(struct host_call *c, const tensor_value *args, int nargs,
			tensor_value *rets, int nrets)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	int err = args_to_host(c, args, nargs);

	if (!err) {
		count(c->op, c->device, c->reason);
		err = tensor_op_call_below(c->op, TENSOR_KEY_BATCHED, c->args, nargs, rets, nrets);
	}
	if (!err)
		err = results_from_host(c, rets, nrets);
	scope_leave(&guard);
	return err;
}

/* The host cannot compute a part of a graph. */
static bool refused_in_capture(const tensor_op *op, const tensor_value *args, int nargs)
{
	const char *why = "runs on the CPU";

	for (int i = 0; i < nargs; i++)
		if ((args[i].kind == TENSOR_VALUE_TENSOR && args[i].t &&
		     device_refuse_capture(args[i].t->device, op->schema.name, why) < 0) ||
		    (args[i].kind == TENSOR_VALUE_DEVICE &&
		     device_refuse_capture(args[i].device, op->schema.name, why) < 0))
			return true;
	return false;
}

static int by_host(const tensor_op *op, enum tensor_key key, const tensor_value *args, int nargs,
		   tensor_value *rets, int nrets, void *ctx)
{
	struct host_call c = { .op = op, .type = TENSOR_CUDA };
	struct tensor_thread *th = thread();
	const uint32_t before = th->modes.exclude;
	const int64_t n = tensors_in(args, nargs);
	const bool refused = th->no_kernel;
	char reason[TENSOR_ERROR_TEXT];
	int err;

	th->no_kernel = false;
	if (unlikely(refused_in_capture(op, args, nargs)))
		return error_code();
	if (!is_allowed() || nargs > ARGS_MAX)
		return refused ? error_code() : dispatch_missing(op, KEY_BIT(key));
	if (refused) {
		memcpy(reason, th->error.text, sizeof(reason));
		tensor_clear_error();
		c.reason = reason;
	}
	c.elements = calloc((size_t)n + 1, sizeof(*c.elements));
	c.moved = calloc((size_t)n + 1, sizeof(*c.moved));
	if (c.elements && c.moved) {
		/* The copies are not recorded: what calls this has recorded the operator. */
		th->modes.exclude |= KEY_BIT(KEY_NONE) - KEY_BIT(TENSOR_KEY_BATCHED);
		err = call_on_host(&c, args, nargs, rets, nrets);
		th->modes.exclude = before;
	} else {
		err = tensor_fail(ENOMEM, "%s: no memory", op->schema.name);
	}
	free(c.elements);
	free(c.moved);
	return err;
}

/* -EINVAL with the error set if a tensor that is no number is on another device. */
static int check_devices(const tensor_op *op, const tensor_value *args, int nargs)
{
	for (int i = 0; i < nargs; i++) {
		const tensor *t = args[i].kind == TENSOR_VALUE_TENSOR ? args[i].t : NULL;

		if (t && t != tensor_none && t->ndim && t->device.type != TENSOR_CUDA)
			return tensor_fail(
				EINVAL, "%s: the tensors must be on one device, %s is not on cuda",
				op->schema.name, op->schema.args[i].name);
	}
	return 0;
}

/* Operators on sparse tensors of a device without a function of their own. */
static int sparse_by_host(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			  int nargs, tensor_value *rets, int nrets, void *ctx)
{
	if (!tensor_op_has_kernel(op, TENSOR_KEY_SPARSE_CPU))
		return dispatch_missing(op, KEY_BIT(key));
	if (check_devices(op, args, nargs) < 0)
		return error_code();
	return by_host(op, key, args, nargs, rets, nrets, ctx);
}

/* Operators whose functions use the kernels of a table that is not their own. */
static const struct {
	const char *op, *kernels;
} other_tables[] = {
	{ "_ctc_loss", "ctc_loss" },
	{ "_ctc_loss_backward", "ctc_loss" },
	{ "_list_norm", "list" },
	{ "_list_scale_", "list" },
	{ "_list_clamp_", "list" },
	{ "_list_lerp_", "list" },
	{ "_amp_foreach_non_finite_check_and_unscale_", "list" },
};

static bool uses_missing(const struct tensor_op *op, enum tensor_key key)
{
	const char *name = op->schema.name;
	const size_t n = strcspn(name, "."); /* without the overload */

	for (size_t i = 0; i < ARRAY_SIZE(other_tables); i++)
		if (strlen(other_tables[i].op) == n && !memcmp(other_tables[i].op, name, n))
			return !tensor_kernel_table_get(other_tables[i].kernels, key);
	return false;
}

/* Operators whose functions need no kernel of their own on a device, or refuse what they do need one for. */
static bool is_composed(const struct tensor_op *op)
{
	static const char *const names[] = { "_unique2", "unique_all", "unique_consecutive",
					     "unique_dim" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(op->schema.name, names[i]))
			return true;
	return false;
}

static bool is_missing(const struct tensor_op *op)
{
	return tensor_op_has_kernel(op, TENSOR_KEY_CPU) && !is_composed(op) &&
	       (!tensor_op_has_kernel(op, TENSOR_KEY_CUDA) || uses_missing(op, TENSOR_KEY_CUDA));
}

TENSOR_EXPORT int tensor_register_cuda_fallback(void)
{
	int err = dispatch_replace_missing(TENSOR_KEY_CUDA, by_host, NULL, is_missing);

	return err ? err : tensor_register_fallback(TENSOR_KEY_SPARSE_CUDA, sparse_by_host, NULL);
}
