/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The graph: a node for each recorded call, edges to the nodes of its inputs, the tensors that
 * its formulas read. Nothing outside lib/autograd includes this.
 *
 * A tensor owns the node that made it, a node owns the nodes that its edges lead to; nothing
 * points the other way, so there are no cycles. A leaf's node (AccumulateGrad) lies inside the
 * leaf's metadata and has no count of its own: whoever holds it holds the leaf.
 */
#ifndef TENSOR_AUTOGRAD_INTERNAL_H
#define TENSOR_AUTOGRAD_INTERNAL_H

#include "core/tensor_impl.h"
#include "dispatch/dispatch.h"
#include "autograd/graph/lock.h"

#define AUTOGRAD_BIT KEY_BIT(TENSOR_KEY_AUTOGRAD)

struct task;

/* ---- what a tensor knows ---- */

/* The metadata of a node's first output lies in the node, any other is a struct leaf_meta. */
struct autograd_meta {
	tensor_node *fn;       /* what made the tensor; owned. NULL for a leaf */
	tensor *grad;	       /* of a leaf, owned */
	uint32_t nr;	       /* which output of fn */
	uint32_t view_version; /* of the storage, when fn was made (views) */
	bool tracked;	       /* requires a gradient */
	bool inside_node;
	bool no_grad_view; /* a view of a tracked tensor, made while nothing was recorded */
	bool before_leaf;  /* or made before its base became a leaf */
	/* What the tensor had before, and others may still look at: a leaf's, as long as the
	 * tensor, since graphs lead to the node in it; of others the last, for who reads it at this
	 * moment. */
	struct autograd_meta *retired;
};

/* ---- nodes ---- */

struct edge {
	tensor_node *fn; /* owned; NULL when the input needs no gradient */
	uint32_t nr;	 /* which output of fn the gradient is of */
};

/* Where a saved tensor comes from: an input (its edge leads on), an output, or neither. */
#define SAVED_CONSTANT	(-1)
#define SAVED_OUTPUT(k) (-2 - (k))

/* Detached, so that the graph holds no tensor that holds the graph. */
struct saved {
	tensor *t;
	uint32_t version;
	int32_t source; /* edge number, SAVED_CONSTANT or SAVED_OUTPUT() */
};

/* What the gradient of an output has to look like. */
struct output {
	const int64_t *sizes;
	uint8_t dtype, ndim;
	tensor_device device;
};

struct node_type {
	const char *name; /* "MulBackward" */
	const char *op;	  /* "mul" */
	/*
	 * Gradients of the outputs (NULL: undefined, not all of them) to those of the inputs.
	 * Bit i of `need`: out[i] is wanted; bit 63 stands for all further ones. out[i] is
	 * borrowed: from grads, the node or the open scope. tensor_none: there is none.
	 */
	int (*apply)(tensor_node *node, tensor *const *grads, tensor **out, uint64_t need);
	const char *const *saved_names; /* NULL-terminated; the last may be that of a list */
	/* For what else a node of this type holds, or NULL: after use, and at the end. */
	void (*release)(tensor_node *node);
	void (*destroy)(tensor_node *node);
};

/* Edges, saved tensors, outputs and lists of integers follow in the same allocation. */
struct tensor_node {
	atomic_int refs;
	node_lock lock; /* around apply and release: a node may be in two threads' graphs */
	const struct node_type *type;
	uint64_t seq; /* later nodes run earlier in backward */
	union {
		_Atomic(struct task *) task; /* that keeps its state for this node at task_index */
		tensor_node *dying;	     /* next in the list of nodes to free */
	};
	uint32_t task_index;
	uint32_t nedges;
	uint16_t nsaved, noutputs, size_class;
	bool released; /* saved tensors are gone */
	tensor *leaf;  /* of an AccumulateGrad: borrowed, and what is counted instead of refs */
	struct edge *edges;
	struct saved *saved;
	struct output *outputs;
	tensor_node *within;	   /* the CopySlices that runs this one; borrowed */
	int64_t *ints;		   /* free space for lists of integers */
	struct autograd_meta meta; /* of output 0 */
};

/* Metadata of its own, for leaves and for outputs after the first. */
struct leaf_meta {
	struct autograd_meta meta;
	tensor_node node; /* AccumulateGrad */
	struct output output;
};

/* A node with one reference. `size` is that of the struct around it (which begins with it),
 * nints how many integers node_ints() and node_output() will keep. NULL with the error set. */
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

/* A copy of the list, as long as the node. */
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

/* The size of each tensor along a dimension (0 where it has no such), as long as the node. */
tensor_ints node_lengths(tensor_node *n, tensor_list list, int64_t dim);

/* ---- saved tensors ---- */

int node_save(tensor_node *n, int slot, tensor *t, int source);
/* The same with a copy of t's values, for an argument that is about to be overwritten. */
int node_save_copy(tensor_node *n, int slot, tensor *t, int source);
/* The tensor, in the open scope; with its history when a graph is being recorded. NULL with the
 * error set when it was released or changed in place; tensor_none for an argument not given. */
tensor *node_unpack(tensor_node *n, int slot);
/* The same for a list, from slot `first` on. node_list() makes space for it within the node, which
 * node_unpack_list() fills; elements not given are tensor_none. */
int node_save_list(tensor_node *n, int first, tensor_list list, int source);
int node_unpack_list(tensor_node *n, int first, tensor_list list);
static inline tensor_list node_list(tensor_node *n, int64_t len)
{
	tensor_list list = { (tensor *const *)n->ints, len };

	n->ints += len;
	return list;
}
/* A string that outlives the caller's: there are as many as operators have modes. */
const char *node_string(const char *s);
/* Drops what was saved. */
void node_release(tensor_node *n);

/* ---- history ---- */

/* Another thread that reads a view may make its node anew meanwhile. */
static inline const struct autograd_meta *meta_of(const tensor *t)
{
	return __atomic_load_n(&t->grad, __ATOMIC_ACQUIRE);
}

/* The node that a gradient of m's tensor goes to. */
static inline tensor_node *meta_node(const struct autograd_meta *m)
{
	return m->fn ? m->fn : &((struct leaf_meta *)m)->node;
}

static inline bool needs_grad(const tensor *t)
{
	return t->keys & AUTOGRAD_BIT && meta_of(t)->tracked;
}

/* The view's storage changed after its node was made: the node has to be made again. */
static inline bool view_stale(const tensor *t)
{
	const struct autograd_meta *m = meta_of(t);

	return t->differentiable_view && m->fn &&
	       __atomic_load_n(&m->view_version, __ATOMIC_RELAXED) !=
		       (uint32_t)atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}
int view_refresh(tensor *t);
/* The view t gets a node as if it had the geometry of `like`, a view of the same base. */
int view_record(tensor *t, const tensor *like);
/* t's history becomes that of `from`, which has one and loses it. */
void history_take(tensor *t, tensor *from);

/* Is the call to be recorded on account of t? Brings the node of a view up to date. */
static inline bool track(const struct tensor_thread *th, tensor *t, int *err)
{
	if (!th->grad_enabled || !t || !needs_grad(t))
		return false;
	if (unlikely(view_stale(t)))
		*err |= view_refresh(t);
	return true;
}

static inline bool track_list(const struct tensor_thread *th, tensor_list list, int *err)
{
	bool need = false;

	for (int64_t i = 0; i < list.len; i++)
		need |= track(th, list.data[i], err);
	return need;
}

/* The edge that leads to where t came from, owned; t is tracked and up to date. */
static inline struct edge gradient_edge(tensor *t)
{
	const struct autograd_meta *m = meta_of(t);
	tensor_node *fn = meta_node(m);

	node_get(fn);
	return (struct edge){ fn, m->fn ? m->nr : 0 };
}

static inline void node_edge(tensor_node *n, uint32_t i, tensor *t)
{
	n->edges[i] = gradient_edge(t);
}

void node_list_edges(tensor_node *n, uint32_t first, tensor_list list);

static inline void node_describe(tensor_node *n, unsigned nr, const tensor *t)
{
	n->outputs[nr] = (struct output){ node_ints(n, (tensor_ints){ t->sizes, t->ndim }).data,
					  t->dtype, t->ndim, t->device };
}

/* t is output 0 of n: t takes over the reference that node_new() gave. */
static inline void node_result(tensor_node *n, tensor *t)
{
	node_describe(n, 0, t);
	n->meta.fn = n;
	n->meta.tracked = true;
	n->meta.inside_node = true;
	n->meta.view_version = atomic_load_explicit(&t->storage->version, memory_order_relaxed);
	t->grad = &n->meta;
	t->keys |= AUTOGRAD_BIT;
}
/* t is output nr >= 1, after node_result(). */
int node_result_more(tensor_node *n, unsigned nr, tensor *t);

static inline bool differentiable(const tensor *t)
{
	return dtype_is_float(t->dtype) || dtype_is_complex(t->dtype);
}

/* Metadata of its own for t, which has none. */
struct leaf_meta *meta_new(tensor *t);
/* The AccumulateGrad of a leaf. */
void accumulate_init(struct leaf_meta *m, tensor *leaf);

/* May self be changed in place by an operator that is recorded (`need`) or not? */
int inplace_check(const struct tensor_op *op, tensor *self, bool need);
/* What n, inside a CopySlices, made of the view: t again, with the history of the base. */
tensor *slice_with_history(tensor_node *n, tensor *t);
/* self was changed in place by n, whose reference is consumed: its history, or that of the
 * tensor it is a view of, continues with n. */
int inplace_result(tensor_node *n, tensor *self);
/* A view made while nothing is recorded: in-place changes through it must be refused later.
 * Consumes and returns t; NULL with the error set. */
tensor *no_grad_view(tensor *t);
int guard_views(tensor *t);
/* A view of a view that was made under no_grad is one itself. */
static inline tensor *view_of(const tensor *t, tensor *view)
{
	const struct autograd_meta *m = meta_of(t);

	view = m && m->no_grad_view ? no_grad_view(view) : view;
	if (view && view->grad && m && m->before_leaf)
		view->grad->before_leaf = true;
	return view;
}

/* ---- the engine ---- */

/* Brings a gradient (borrowed) to the shape, dtype and device of what it is the gradient of:
 * owned. `from` is the node that made it. */
tensor *gradient_fit(const tensor_node *from, int i, tensor *grad, const tensor_node *to,
		     unsigned nr);
/* Adds a gradient, which it consumes, into the leaf. */
int accumulate_grad(tensor_node *node, tensor *grad, bool record);
/* a + b, both consumed; into one of them when it is nobody else's. */
tensor *gradient_add(tensor *a, tensor *b, bool record);

/* Nobody but the caller can see the tensor's memory. */
static inline bool tensor_unshared(const tensor *t)
{
	return atomic_load_explicit(&t->refs, memory_order_acquire) == 1 && t->owns_storage &&
	       !t->base && atomic_load_explicit(&t->storage->refs, memory_order_acquire) == 1;
}

struct engine_call {
	tensor_list outputs, inputs;
	tensor *const *output_grads;
	tensor **grads; /* owned results */
	bool keep, record;
};
int engine_run(const struct engine_call *call);

/* ---- the thread's part ---- */

#define NODE_CLASSES 16
#define NODE_STEP    64u

struct autograd_thread {
	uint64_t seq;
	struct task *spare; /* a task's arrays, for the next backward */
	struct magazine nodes[NODE_CLASSES];
};

struct autograd_thread *autograd_thread_init(struct tensor_thread *th);
void task_free(struct task *task);

/* NULL with the error set. */
static inline struct autograd_thread *autograd_thread(struct tensor_thread *th)
{
	return likely(th->autograd) ? th->autograd : autograd_thread_init(th);
}

#endif
