/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Saved tensors in a form that the program chose (tensor_saved_hooks_enter()): its pack function turns
 * a tensor that a node would save into a pointer, and unpack turns that into a tensor again when the
 * backward reads it.
 */
#ifndef TENSOR_AUTOGRAD_PACK_H
#define TENSOR_AUTOGRAD_PACK_H

#include "autograd/graph/node.h"

#include <tensor/autograd.h>

/* An open tensor_saved_hooks scope; nodes with packed tensors count as references. */
struct pack_hooks {
	atomic_int refs;
	struct tensor_saved_hooks fn;
	struct pack_hooks *outer; /* the enclosing scope; borrowed */
};

struct packed {
	struct pack_hooks *hooks; /* owned */
	void *data;		  /* what pack returned */
	tensor *kept;		  /* of the same memory, if pack kept it: has its version; owned */
	tensor *tangent;	  /* of the saved tensor, or NULL; owned */
	uint32_t version;
	struct output like; /* the saved tensor; its sizes are below */
	int64_t sizes[];
};

/* The innermost open scope of the thread that counts, NULL for none. */
struct pack_hooks *pack_hooks_of(const struct tensor_thread *th);
/* Closes the scopes that were opened after mark (NULL: all). */
void pack_hooks_unwind(struct autograd_thread *at, struct pack_hooks *mark);
void pack_hooks_put(struct pack_hooks *hooks);
/* If paused, the open scopes do not count until pack_resume() with the returned value; one that is opened meanwhile does. */
struct pack_hooks *pack_pause(struct tensor_thread *th, bool paused);
void pack_resume(struct tensor_thread *th, struct pack_hooks *before);
/* NULL with the error set. */
struct packed *pack(struct pack_hooks *hooks, tensor *t);
/* A tensor of the saved one's shape, dtype and device, without history, in the open scope. NULL with the
 * error set. */
tensor *packed_unpack(const struct packed *p, const char *op);
void packed_free(struct packed *p);

#endif
