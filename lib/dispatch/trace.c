// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A fallback for the profile key that records each operator and the operators that it calls, for
 * TENSOR_TRACE and the profiler. Every thread includes the key, and operators have it only while one of the two
 * is on, so that calls cost nothing otherwise.
 */
#include "core/trace.h"
#include "dispatch/boxed.h"
#include "dispatch/trace.h"

#include <pthread.h>

#define LIST_MAX 8 /* tensors of a list that are recorded */

/* An operator that is being recorded. */
struct traced_op {
	const tensor_op *op;
	uint32_t exclude; /* state of the thread before the call */
};

static bool add_list(struct trace_span *span, tensor_list list)
{
	bool fits = trace_add(span, "[");

	for (int64_t i = 0; fits && i < list.len; i++) {
		if (i == LIST_MAX) {
			fits = trace_add(span, ", ... %lld", (long long)list.len);
			break;
		}
		fits = (!i || trace_add(span, ", ")) && trace_add_tensor(span, list.data[i]);
	}
	return fits && trace_add(span, "]");
}

static bool add_value(struct trace_span *span, const tensor_value *v, bool first)
{
	bool fits = trace_add(span, first ? "\"" : ",\"");

	if (fits && v->kind == TENSOR_VALUE_TENSOR)
		fits = trace_add_tensor(span, v->t);
	else if (fits)
		fits = add_list(span, v->list);
	return fits && trace_add(span, "\"");
}

/* "inputs":["f32[2, 3]","[f32[1], f32[1]]"]: tensors and lists of tensors; those that fit. */
static void add_values(struct trace_span *span, const char *key, const tensor_value *values, int n)
{
	bool first = true;
	unsigned end;

	if (!trace_describes(span) || !trace_add(span, "%s\"%s\":[", span->used ? "," : "", key))
		return;
	for (int i = 0; i < n; i++) {
		if (values[i].kind != TENSOR_VALUE_TENSOR &&
		    values[i].kind != TENSOR_VALUE_TENSOR_LIST)
			continue;
		end = span->used;
		/* Leaves space for the closing bracket. */
		if (!add_value(span, &values[i], first) || span->used > TRACE_ARGS - 64) {
			span->used = end;
			break;
		}
		first = false;
	}
	span->args[span->used] = '\0';
	trace_add(span, "]");
}

/* The call that autograd makes for the same operator gets no event of its own. */
static bool same_call(const struct tensor_thread *th, const tensor_op *op)
{
	return th->traced && th->traced->op == op &&
	       th->modes.exclude & ~th->traced->exclude & AUTOGRAD_BIT;
}

/* The i-th tensor of values, also of lists; NULL after the last. */
static tensor *tensor_in(const tensor_value *values, int n, int64_t i)
{
	for (int k = 0; k < n; k++) {
		if (values[k].kind == TENSOR_VALUE_TENSOR && !i--)
			return values[k].t ? values[k].t : tensor_none;
		if (values[k].kind != TENSOR_VALUE_TENSOR_LIST)
			continue;
		if (i < values[k].list.len)
			return values[k].list.data[i];
		i -= values[k].list.len;
	}
	return NULL;
}

static bool is_among(const struct tensor_storage *s, const tensor_value *values, int n,
		     int64_t count)
{
	const tensor *t;

	for (int64_t i = 0; i < count && (t = tensor_in(values, n, i)); i++)
		if (t->storage == s)
			return true;
	return false;
}

/* Bytes of the results that are on no argument's storage. */
static uint64_t new_bytes(const tensor_value *args, int nargs, const tensor_value *rets, int nrets)
{
	uint64_t bytes = 0;
	const tensor *t;

	for (int64_t i = 0; (t = tensor_in(rets, nrets, i)); i++)
		if (t->storage && !is_among(t->storage, args, nargs, INT64_MAX) &&
		    !is_among(t->storage, rets, nrets, i))
			bytes += t->storage->nbytes;
	return bytes;
}

/* For the profiler: what the results say. */
static void measure(struct trace_span *span, const tensor_value *args, int nargs,
		    const tensor_value *rets, int nrets)
{
	const tensor *first = tensor_in(rets, nrets, 0);

	if (!(span->sinks & TRACE_PROFILE))
		return;
	span->bytes = new_bytes(args, nargs, rets, nrets);
	if (first && tensor_autograd_hooks.node && first->keys & AUTOGRAD_BIT)
		span->node = tensor_autograd_hooks.node(first);
}

static int trace_operator(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			  int nargs, tensor_value *rets, int nrets, void *ctx)
{
	struct tensor_thread *th = thread();
	const struct traced_op here = { op, th->modes.exclude }, *up = th->traced;
	struct trace_span span;
	int err;

	if (!trace_on() || same_call(th, op))
		return boxed_call_past(op, KEY_BIT(key), args, nargs, rets, nrets);
	trace_begin(&span, "operator", op->schema.name);
	add_values(&span, "inputs", args, nargs);
	th->traced = &here;
	err = boxed_call_past(op, KEY_BIT(key), args, nargs, rets, nrets);
	th->traced = up;
	if (err < 0)
		trace_add(&span, ",\"error\":%d", -err);
	else
		add_values(&span, "outputs", rets, nrets);
	if (err >= 0)
		measure(&span, args, nargs, rets, nrets);
	trace_end(&span);
	return err;
}

int trace_operators(bool on)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool registered;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (on && !registered) {
		err = tensor_register_fallback(TENSOR_KEY_PROFILE, trace_operator, NULL);
		registered = !err;
	} else if (registered) {
		dispatch_set_fallback(TENSOR_KEY_PROFILE, trace_operator, on);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

INIT(INIT_HOOKS) static void trace_from_environment(void)
{
	if (trace_on())
		trace_operators(true);
}
