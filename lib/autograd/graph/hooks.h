/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Hooks of a node: functions of the program that run at a point of a backward. A node has a list
 * only after the first registration. The list, each hook in it and each handle are counted, so a
 * handle may outlive the node, and a hook may remove itself or others while it runs.
 */
#ifndef TENSOR_AUTOGRAD_HOOKS_H
#define TENSOR_AUTOGRAD_HOOKS_H

#include "autograd/graph/node.h"

#include <tensor/autograd.h>

enum hook_kind {
	HOOK_BEFORE,		   /* before the node, on the gradients of all outputs */
	HOOK_AFTER,		   /* after the node, on the gradients of all inputs */
	HOOK_ACCUMULATED,	   /* after a leaf's gradient was accumulated */
	HOOK_ATTACHED,		   /* never called: a value that is kept with the node */
	HOOK_KINDS,		   /* of those of the whole node */
	HOOK_GRADIENT = HOOK_KINDS /* on the gradient of output nr, before the node */
};

union hook_function {
	tensor *(*gradient)(tensor *grad, void *ctx);
	int (*before)(tensor **grads, int n, void *ctx);
	int (*after)(tensor **input_grads, int ninputs, tensor *const *output_grads, int noutputs,
		     void *ctx);
	int (*accumulated)(tensor *leaf, void *ctx);
};

struct tensor_hook {
	atomic_int refs; /* the handle, and one of all users */
	atomic_int users; /* the list, and calls that run: destroy is called after the last of them */
	enum hook_kind kind;
	uint32_t nr; /* of a HOOK_GRADIENT */
	atomic_bool removed;
	union hook_function fn;
	void *ctx;
	void (*destroy)(void *ctx);	 /* optional */
	struct node_hooks *list;	 /* one reference */
	struct tensor_hook *next, *prev; /* of its kind and output */
	bool listed;
};

/* The first member of what a file above this one keeps for a node. */
struct node_attachment {
	void (*free)(struct node_attachment *a);
};

/* In order of registration. */
struct hook_list {
	struct tensor_hook *first, *last;
};

/* The gradient of an output is kept for the tensor with this metadata; borrowed, see hooks_forget(). */
struct retained {
	struct autograd_meta *meta;
	struct retained *next;
};

struct output_hooks {
	struct hook_list gradient;
	struct retained *retained;
};

struct node_hooks {
	atomic_int refs;
	node_lock lock; /* of all lists */
	struct hook_list lists[HOOK_KINDS];
	struct output_hooks output; /* of output 0 */
	struct output_hooks
		*more; /* of the nmore further ones, NULL until one is registered; owned */
	uint32_t nmore;
	struct node_attachment
		*tangents;	/* owned; NULL unless the node saved a result with a tangent */
	struct call_place made; /* of the call, if the node was made in anomaly mode */
};

/* Adds a hook at the end; *handle, optional, is owned by the caller. 0, or -errno. */
int hooks_add(tensor_node *n, enum hook_kind kind, uint32_t nr, union hook_function fn, void *ctx,
	      void (*destroy)(void *), struct tensor_hook **handle);
/* Drops the node's reference; hooks are removed. */
void hooks_free(struct node_hooks *list);
/* Drops the reference of a user. */
void hook_unuse(struct tensor_hook *h);
/* Stores the place of the program's current call, in anomaly mode. Without memory it does nothing. */
void hooks_note_place(tensor_node *n);

/* The tangents, which are consumed, stay until the node releases its saved tensors. 0, or -errno. */
int hooks_keep_tangents(tensor_node *n, struct node_attachment *tangents);
static inline void hooks_drop_tangents(struct node_hooks *list)
{
	if (list->tangents)
		list->tangents->free(list->tangents);
	list->tangents = NULL;
}

/* Keeps the gradient of output nr of n in m. 0, or -errno. */
int hooks_retain(tensor_node *n, uint32_t nr, struct autograd_meta *m);
/* m is freed: no gradient is kept in it any more. */
void hooks_forget(struct autograd_meta *m);
/* hooks_retain() for the node that m has now, after hooks_forget() of the one before: an in-place change
 * gave the tensor another node. Without memory the gradient is not kept, because nothing may fail then. */
void hooks_retain_again(struct autograd_meta *m);

/* True if the node has a hook of this kind, which is not HOOK_GRADIENT. */
bool hooks_any(struct node_hooks *list, enum hook_kind kind);

/* Those of output nr, NULL if there are none; the list is locked. */
static inline struct output_hooks *hooks_of_output(struct node_hooks *list, uint32_t nr)
{
	if (!nr)
		return &list->output;
	return list->more ? &list->more[nr - 1] : NULL;
}

/*
 * The hooks of a kind (and of output nr for HOOK_GRADIENT) as counted references, in order of
 * registration; NULL behind the last. `few` has space for HOOKS_FEW + 1; another array is to be
 * freed with free(). NULL with the error set.
 */
#define HOOKS_FEW 7
struct tensor_hook **hooks_snapshot(struct node_hooks *list, enum hook_kind kind, uint32_t nr,
				    struct tensor_hook **few);

#endif
