/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Process groups: group.c is the object, drive.c carries operations out, request.c in which thread, collective.c has the
 * operations, open.c joins and leaves.
 */
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

/* ---- drive.c ---- */

/* The group has its size. 0, or -ENOMEM with the error set. */
int messages_prepare(tensor_group *g);
/* The queue of a send or receive, at its end. The caller holds lock. */
void message_append(tensor_request *r);

void request_drop_tensors(tensor_request *r);
/* The operation has ended with this error, whose text is the thread's: writes results and counts it. */
void request_finish(tensor_request *r, int err);

/* The caller holds running. */
/*
 * r: a collective, which is in no list; a message that is in its queue; or NULL: the messages. Until it has ended (1; -errno with
 * the error set), or, of messages, a collective comes (0). Other messages go on beside it. After an error that no
 * operation can follow the other ranks are told.
 */
int requests_carry_out(tensor_group *g, tensor_request *r);
/* All sends and receives fail with the error of the thread. */
void requests_fail_messages(tensor_group *g, int err);

/* ---- request.c ---- */

/* The request has its tensors. Carries it out, or begins it if to is not NULL; consumes it. 0, or -errno with the error set. */
int request_submit(tensor_request *r, tensor_request **to);
/* Ends the worker; requests that have not ended fail. */
void requests_stop(tensor_group *g);

#endif
