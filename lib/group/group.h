/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Process groups: group.c is the object, request.c carries operations out, collective.c has them, open.c joins and leaves. */
#ifndef TENSOR_LIB_GROUP_H
#define TENSOR_LIB_GROUP_H

#include "group/engine/engine.h"

/* Incremented in a child of fork(). */
extern unsigned group_process;

static inline bool group_is_parents(const tensor_group *g)
{
	return g->process != group_process;
}

/* 0, or -errno with the error set: the group was closed, or an error has ended it. */
int group_ended(tensor_group *g);
/* The same for a public function, and for NULL and a child of fork(). */
int group_check(tensor_group *g, const char *what);
/* NULL with the error set. The caller's reference; the last one frees the group, which its engine has left. */
tensor_group *group_new(const struct group_engine *engine, int64_t timeout_ns);
void group_put(tensor_group *g);

/* The request has its tensors. Carries it out, or begins it if to is not NULL; consumes it. 0, or -errno with the error set. */
int request_submit(tensor_request *r, tensor_request **to);
/* Ends the worker; requests that have not ended fail. */
void requests_stop(tensor_group *g);

#endif
