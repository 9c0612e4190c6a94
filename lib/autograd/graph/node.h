/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The graph: one node for each recorded call, with edges to the nodes of its inputs and the
 * tensors that its formulas read.
 *
 * Ownership: a tensor owns the node that computed it, and a node owns the nodes at the ends of its
 * edges. No reference points from a node to a tensor with history, so there are no cycles. The
 * AccumulateGrad node of a leaf is part of the leaf's metadata and has no count of its own: a
 * reference to it is a reference to the leaf.
 */
#ifndef TENSOR_AUTOGRAD_NODE_H
#define TENSOR_AUTOGRAD_NODE_H

#include "autograd/graph/lock.h"
#include "autograd/graph/output.h"
#include "autograd/graph/state.h"
#include "autograd/graph/stream.h"
#include "core/tensor_impl.h"
#include "dispatch/dispatch.h"

struct task;
struct node_hooks;
struct packed;
struct pack_hooks;

/*
 * Autograd's part of a tensor. That of output 0 of a node is a member of the node; that of a leaf
 * and of further outputs is a struct leaf_meta.
 */
struct autograd_meta {
	tensor_node *fn;       /* the node that computed the tensor, owned; NULL for a leaf */
	tensor *grad;	       /* the gradient of a leaf, or a retained one; owned */
	uint32_t nr;	       /* index of the tensor among the outputs of fn */
	uint32_t view_version; /* of a view: version of the storage when fn was made */
	bool tracked;	       /* requires a gradient */
	bool retains_grad;     /* of a non-leaf: the gradient is kept in grad */
	bool inside_node;      /* member of a node: not allocated */
	bool no_grad_view;     /* a view that was made under tensor_no_grad from a tracked base */
	bool before_leaf;      /* a view that was made before its base became a leaf */
	/*
	 * A list of earlier metadata, owned. Metadata of a leaf is freed with the tensor, because
	 * edges lead to the node inside it. Other metadata is freed at the next replacement,
	 * because another thread may be reading it until then.
	 */
	struct autograd_meta *retired;
};

struct edge {
	tensor_node *fn; /* owned; NULL if the input needs no gradient */
	uint32_t nr;	 /* index among the outputs of fn */
};

/* The source of a saved tensor: edge number of an input, output k, or neither. */
#define SAVED_CONSTANT	(-1)
#define SAVED_OUTPUT(k) (-2 - (k))

/* A detached tensor, so that the graph holds no tensor that holds the graph, or what the program's function
 * made of it. */
struct saved {
	union {
		tensor *t;
		struct packed *packed; /* if is_packed */
	};
	uint32_t version;    /* of the storage of t when it was saved */
	int32_t source : 29; /* edge number, SAVED_CONSTANT or SAVED_OUTPUT() */
	bool is_packed : 1;
	bool is_dual : 1;	   /* has a tangent */
	bool detached_tangent : 1; /* the tangent had a history, which is not saved */
};

struct node_type {
	const char *name; /* "MulBackward" */
	const char *op;	  /* "mul" */
	/*
	 * Computes the gradients of the inputs from those of the outputs. grads[i] is NULL if that
	 * gradient is undefined; at least one is defined. Bit i of need: out[i] is wanted; bit 63
	 * stands for all further ones. out[i] is borrowed: from grads, the node or the open scope.
	 * tensor_none: the gradient is zero. Returns 0, or a negative value with the error set.
	 */
	int (*apply)(tensor_node *node, tensor *const *grads, tensor **out, uint64_t need);
	/* apply takes the node's lock itself, because it calls functions of the program or other nodes. */
	bool unlocked;
	const char *const *saved_names; /* NULL-terminated; the last may name a list */
	/* Release and free what only nodes of this type hold; optional. */
	void (*release)(tensor_node *node);
	void (*destroy)(tensor_node *node);
	/* For a node that runs another one: returns output t of that node as a tensor with history. */
	tensor *(*output_with_history)(tensor_node *node, tensor *t);
};

/* Edges, saved tensors, outputs and lists of integers follow in the same allocation. */
struct tensor_node {
	atomic_int refs;
	node_lock lock; /* held during apply and release: several threads may share a node */
	const struct node_type *type;
	uint64_t seq; /* backward runs the node with the highest number first */
	union {
		_Atomic(struct task *) task; /* the task whose state of this node is task_index */
		tensor_node *dying;	     /* next node in the list of nodes to free */
	};
	uint32_t task_index;
	uint32_t nedges;
	uint16_t nsaved, noutputs, size_class;
	bool released;		  /* the saved tensors were released */
	struct node_hooks *hooks; /* owned; NULL until one is registered */
	tensor *leaf; /* of an AccumulateGrad: the leaf, borrowed; node_get() and node_put() count references of the leaf */
	struct edge *edges;
	struct saved *saved;
	struct output *outputs;
	tensor_node *within;	   /* the CopySlices node that runs this one; borrowed */
	int64_t *ints;		   /* unused space for lists of integers */
	struct autograd_meta meta; /* of output 0 */
};

/* Metadata of a leaf, or of an output after the first. */
struct leaf_meta {
	struct autograd_meta meta;
	tensor_node node; /* AccumulateGrad */
	struct output output;
};

/*
 * A node with one reference, owned. size: of the struct that begins with the node; nints: integers
 * that node_ints() and node_describe() store. NULL with the error set.
 */
tensor_node *node_new(const struct node_type *type, size_t size, uint32_t nedges, unsigned nsaved,
		      unsigned noutputs, size_t nints);
void node_free(tensor_node *n);

static inline void node_get(tensor_node *n)
{
	if (n->leaf)
		tensor_get(n->leaf);
	else
		ref_get(&n->refs);
}

static inline void node_put(tensor_node *n)
{
	if (!n)
		return;
	if (n->leaf)
		tensor_put(n->leaf);
	else if (ref_put(&n->refs))
		node_free(n);
}

/* Copies the list into the node. */
static inline tensor_ints node_ints(tensor_node *n, tensor_ints list)
{
	int64_t *to = n->ints;

	for (int64_t i = 0; i < list.len; i++)
		to[i] = list.data[i];
	n->ints += list.len > 0 ? list.len : 0;
	return (tensor_ints){ to, list.len };
}

static inline size_t ints_len(tensor_ints list)
{
	return list.len > 0 ? (size_t)list.len : 0;
}

/* Stores the size of each tensor along dim in the node; 0 for a tensor without that dimension. */
tensor_ints node_lengths(tensor_node *n, tensor_list list, int64_t dim);

/* Stores the shape, dtype, layout, device and current stream of output nr. */
static inline void node_describe(tensor_node *n, unsigned nr, const tensor *t)
{
	n->outputs[nr] = (struct output){ node_ints(n, (tensor_ints){ t->sizes, t->ndim }).data,
					  t->dtype,
					  t->ndim,
					  t->layout,
					  t->device,
					  stream_of_new(t) };
}

#endif
