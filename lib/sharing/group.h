/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Messages of several tensors. On the wire such a message is a head, with the number of parts, a tag and a lease, and
 * then its parts, each as the message of one tensor. A sender that gives up in the middle sends no more parts: the next
 * head, or a tensor that is no part, makes the receiver drop what it has. The caller holds receiving.
 */
#ifndef TENSOR_GROUP_H
#define TENSOR_GROUP_H

#include "sharing/channel.h"

/* Processes a note that was checked. 0, or -errno with the error set. */
int group_note(tensor_channel *ch, struct wire_in *in);
/* The storage for a part on base of a message with a lease; consumes base. NULL with the error set. */
struct tensor_storage *group_storage(struct group *g, struct tensor_storage *base);
/* Adds the next part, which it consumes; NULL: it was refused. */
void group_add(struct group *g, tensor *t);
/* Drops what was received and not delivered. */
void group_drop(struct group *g);
/* Forgets tensors and a lease, which have other owners or none. */
static inline void group_clear(struct group *g)
{
	g->count = g->have = 0;
	g->open = g->bad = g->complete = false;
	g->tag = 0;
	g->taken = NULL;
}

/* A message of one tensor without a head. There is none that is complete. */
static inline void group_set_one(struct group *g, tensor *t)
{
	g->tensors[0] = t;
	g->count = g->have = 1;
	g->complete = true;
}

void group_end(tensor_channel *ch);

#endif
