// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * TENSOR_TRACE: a fallback for the trace key that records each operator and the operators that it
 * calls. Without the variable no operator has the key, so calls cost nothing.
 */
#include "core/trace.h"
#include "dispatch/boxed.h"

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

	if (!trace_add(span, "%s\"%s\":[", span->used ? "," : "", key))
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
	       th->exclude & ~th->traced->exclude & AUTOGRAD_BIT;
}

static int trace_operator(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			  int nargs, tensor_value *rets, int nrets, void *ctx)
{
	struct tensor_thread *th = thread();
	const struct traced_op here = { op, th->exclude }, *up = th->traced;
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
	trace_end(&span);
	return err;
}

INIT(INIT_HOOKS) static void trace_operators(void)
{
	if (!trace_on())
		return;
	if (tensor_register_fallback(TENSOR_KEY_TRACE, trace_operator, NULL) == 0)
		thread_first_include = KEY_BIT(TENSOR_KEY_TRACE);
}
