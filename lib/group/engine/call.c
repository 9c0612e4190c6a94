// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The calls that ranks must agree on, and the errors if they do not. */
#include "group/engine/engine.h"

#include <stdarg.h>
#include <stdio.h>

const char *const group_kind_names[] = {
	[GROUP_BARRIER] = "barrier",
	[GROUP_BROADCAST] = "broadcast",
	[GROUP_ALL_REDUCE] = "all_reduce",
	[GROUP_REDUCE] = "reduce",
	[GROUP_REDUCE_SCATTER] = "reduce_scatter",
	[GROUP_ALL_GATHER] = "all_gather",
	[GROUP_GATHER] = "gather",
	[GROUP_SCATTER] = "scatter",
	[GROUP_ALL_TO_ALL] = "all_to_all",
	[GROUP_SEND] = "send",
	[GROUP_RECV] = "recv",
};

static const char *const op_names[] = {
	[TENSOR_GROUP_SUM] = "sum",	    [TENSOR_GROUP_MEAN] = "mean",
	[TENSOR_GROUP_PRODUCT] = "product", [TENSOR_GROUP_MIN] = "min",
	[TENSOR_GROUP_MAX] = "max",
};

static bool has_op(int kind)
{
	return kind == GROUP_ALL_REDUCE || kind == GROUP_REDUCE || kind == GROUP_REDUCE_SCATTER;
}

static bool has_root(int kind)
{
	return kind == GROUP_BROADCAST || kind == GROUP_REDUCE || kind == GROUP_GATHER ||
	       kind == GROUP_SCATTER;
}

TENSOR_EXPORT const char *group_kind_name(int kind)
{
	return group_kind_names[kind];
}

const char *group_call_text(const struct group_call *c, char *text)
{
	size_t n;

	if (c->kind < 0 || c->kind >= (int)ARRAY_SIZE(group_kind_names)) {
		snprintf(text, CALL_TEXT, "an operation %d", c->kind);
		return text;
	}
	n = (size_t)snprintf(text, CALL_TEXT, "%s", group_kind_names[c->kind]);
	if (has_op(c->kind) && c->op >= 0 && c->op < (int)ARRAY_SIZE(op_names))
		n += (size_t)snprintf(text + n, CALL_TEXT - n, " (%s)", op_names[c->op]);
	if (has_root(c->kind))
		n += (size_t)snprintf(text + n, CALL_TEXT - n, " with root %d", c->root);
	if (c->kind != GROUP_BARRIER && c->ndim >= 0 && c->ndim <= TENSOR_MAX_DIMS)
		snprintf(text + n, CALL_TEXT - n, " of %s %s%s", tensor_dtype_name(c->dtype),
			 format_sizes(c->sizes, c->ndim, (char[SHAPE_TEXT]){ 0 }, SHAPE_TEXT),
			 c->device == TENSOR_CUDA ? " on cuda" : "");
	return text;
}

TENSOR_EXPORT bool group_calls_match(const struct group_call *a, const struct group_call *b)
{
	if (a->kind != b->kind || a->op != b->op || a->root != b->root || a->dtype != b->dtype ||
	    a->ndim != b->ndim || a->device != b->device)
		return false;
	for (int i = 0; i < a->ndim && i < TENSOR_MAX_DIMS; i++)
		if (a->sizes[i] != b->sizes[i])
			return false;
	return true;
}

TENSOR_EXPORT int group_calls_differ(int a, const struct group_call *of_a, int b,
				     const struct group_call *of_b)
{
	char first[CALL_TEXT], second[CALL_TEXT];

	return tensor_fail(EINVAL, "the ranks differ: rank %d calls %s, rank %d %s", a,
			   group_call_text(of_a, first), b, group_call_text(of_b, second));
}

TENSOR_EXPORT int group_fail_here(tensor_group *g)
{
	return group_fail(g, g->rank, thread()->error.code, "%s", thread()->error.text);
}

TENSOR_EXPORT int group_fail_late(tensor_group *g, const char *what, const char *ranks)
{
	return group_fail(g, -1, ETIMEDOUT, "%s within %lld ms%s%s", what,
			  (long long)(g->timeout_ns / 1000000), *ranks ? "; not: rank " : "",
			  ranks);
}

TENSOR_EXPORT void group_list_rank(char *list, size_t size, int rank)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%d", n ? ", " : "", rank);
}

TENSOR_EXPORT int group_fail(tensor_group *g, int rank, int code, const char *fmt, ...)
{
	va_list args;

	pthread_mutex_lock(&g->lock);
	if (!g->err) {
		g->err = -code;
		g->stats.failed = rank;
		va_start(args, fmt);
		vsnprintf(g->text, sizeof(g->text), fmt, args);
		va_end(args);
	}
	pthread_mutex_unlock(&g->lock);
	return tensor_fail(-g->err, "%s", g->text);
}
