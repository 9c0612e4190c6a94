// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A process group: its state, and functions that read it. */
#include "group/group.h"

#include "base/init.h"

#include <stdio.h>
#include <stdlib.h>

unsigned group_process;

static void in_child(void)
{
	group_process++;
}

INIT(INIT_PROCESS_GROUP) static void groups_init(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static void init_locks(tensor_group *g)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&g->lock, NULL);
	pthread_mutex_init(&g->running, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void free_group(tensor_group *g)
{
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->running);
	pthread_mutex_destroy(&g->lock);
	free(g->queues);
	free(g);
}

tensor_group *group_new(const struct group_engine *engine, int64_t timeout_ns)
{
	tensor_group *g = calloc(1, sizeof(*g));

	if (!g) {
		tensor_fail(ENOMEM, "group_open: no memory");
		return NULL;
	}
	g->engine = engine;
	g->process = group_process;
	g->device = TENSOR_DEVICE_CPU;
	g->timeout_ns = timeout_ns;
	g->stats.failed = -1;
	g->refs = 1;
	g->last = &g->first;
	init_locks(g);
	return g;
}

void group_put(tensor_group *g)
{
	bool last;

	pthread_mutex_lock(&g->lock);
	last = !--g->refs;
	pthread_mutex_unlock(&g->lock);
	if (last)
		free_group(g);
}

int group_ended(tensor_group *g)
{
	char text[TENSOR_ERROR_TEXT];
	int err;

	pthread_mutex_lock(&g->lock);
	err = g->err;
	if (err)
		snprintf(text, sizeof(text), "%s", g->text);
	else if (g->stop) {
		err = -EPIPE;
		snprintf(text, sizeof(text), "the group was closed");
	}
	pthread_mutex_unlock(&g->lock);
	return err ? tensor_fail(-err, "%s", text) : 0;
}

int group_check(tensor_group *g, const char *what)
{
	int err;

	if (!g)
		return tensor_fail(EINVAL, "%s: the group is NULL", what);
	if (group_is_parents(g))
		return tensor_fail(EBUSY, "%s: the group is the parent's", what);
	err = group_ended(g);
	if (err < 0)
		error_in(what);
	return err;
}

TENSOR_EXPORT int tensor_group_rank(const tensor_group *g)
{
	return g ? g->rank : tensor_fail(EINVAL, "group_rank: the group is NULL");
}

TENSOR_EXPORT int tensor_group_size(const tensor_group *g)
{
	return g ? g->size : tensor_fail(EINVAL, "group_size: the group is NULL");
}

TENSOR_EXPORT tensor_device tensor_group_device(const tensor_group *g)
{
	if (g)
		return g->device;
	tensor_fail(EINVAL, "group_device: the group is NULL");
	return TENSOR_DEVICE_CPU;
}

TENSOR_EXPORT const char *tensor_group_engine(const tensor_group *g)
{
	return g ? g->engine->name : NULL;
}

TENSOR_EXPORT int tensor_group_stats(tensor_group *g, struct tensor_group_stats *stats)
{
	if (!g || !stats)
		return tensor_fail(EINVAL, "group_stats: an argument is NULL");
	if (group_is_parents(g))
		return tensor_fail(EBUSY, "group_stats: the group is the parent's");
	pthread_mutex_lock(&g->lock);
	*stats = g->stats;
	pthread_mutex_unlock(&g->lock);
	return 0;
}
