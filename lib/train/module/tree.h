/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The tree of a module. A node is a name within a module: a child, a parameter, a buffer, or nothing
 * yet. Nodes are added and never removed, and a hash table finds them by module and name. Readers take
 * no lock: the table and the kind of a node are published with release stores. Writers hold tree->lock.
 */
#ifndef TRAIN_MODULE_TREE_H
#define TRAIN_MODULE_TREE_H

#include "base/error.h"
#include "core/tensor_impl.h"

#include <pthread.h>
#include <tensor/module.h>

enum node_kind {
	NODE_VACANT = 0, /* a name only; t, if there is one, was loaded for it */
	NODE_MODULE,
	NODE_PARAMETER,
	NODE_BUFFER,
};

struct module_node {
	struct module_node *next, *prev; /* in the module, in the order of module_place() */
	tensor_module *parent;
	atomic_int kind;
	atomic_bool placed;
	bool loaded;		  /* a file had this name */
	bool cast;		  /* ... and its dtype may be converted */
	tensor *t;		  /* owned; NULL for a module and a tied parameter */
	struct module_node *tied; /* the node with the tensor; never tied itself */
	tensor_module *child;	  /* owned */
	char name[];
};

struct node_table {
	struct node_table *before; /* smaller ones, which readers may still use */
	size_t mask, used;
	struct module_node *_Atomic slot[];
};

struct module_tree {
	pthread_mutex_t lock;
	struct node_table *_Atomic table;
	tensor_options options;
};

/* The layer that a module is, with the options of its first call (layers/layer.h). */
enum { LAYER_FLOATS = 2, LAYER_INTS = 24 };
struct layer_type {
	const char *op;
	const char *d[LAYER_FLOATS], *i[LAYER_INTS]; /* names of the options */
};
struct layer_key {
	const struct layer_type *type;
	double d[LAYER_FLOATS];
	int64_t i[LAYER_INTS];
};

/* Lists that the module lends. */
enum module_list { LIST_NAMED = 0, LIST_UNIQUE = 4, LIST_MISSING, LIST_UNEXPECTED, LIST_COUNT };

struct tensor_module {
	struct module_node *self; /* NULL: the root */
	struct module_tree *tree;
	struct module_node *first, *last;
	bool training, frozen;
	atomic_bool is_layer;
	struct layer_key key; /* set once, before is_layer */
	void *list[LIST_COUNT];
};

static inline enum node_kind node_kind(const struct module_node *node)
{
	return (enum node_kind)atomic_load_explicit(&node->kind, memory_order_acquire);
}

/* Parameters and their gradients are floating or complex. */
static inline bool dtype_trainable(unsigned dtype)
{
	return dtype_is_float(dtype) || dtype_is_complex(dtype);
}

static inline tensor *node_tensor(const struct module_node *node)
{
	return node->tied ? node->tied->t : node->t;
}

static inline bool node_has_tensor(const struct module_node *node)
{
	return node_kind(node) >= NODE_PARAMETER;
}

/* The node at a path, made if necessary, with the modules that lead to it. NULL with the error set. */
struct module_node *module_node_at(tensor_module *m, const char *op, const char *path);
/* The same without making anything. NULL, without an error, if there is none. */
struct module_node *module_node_find(const tensor_module *m, const char *path);
/* Whether module_node_at() can make the node, memory apart: 0 or -errno. */
int module_check_new(const tensor_module *m, const char *op, const char *path);
/* The program uses the name: names have the order of their first use, also those that a file had before. */
void module_place(struct module_node *node);
/* Makes a module of a node that is vacant. The caller does not hold the lock. NULL with the error set. */
tensor_module *module_of_node(struct module_node *node, const char *op);
/* The child `name`, with an error of `op`. */
tensor_module *module_child(tensor_module *m, const char *op, const char *name);

/* The modules of a tree without recursion: top, then all below it, parents first. NULL at the end. */
tensor_module *module_next(const tensor_module *top, const tensor_module *m);

/* The path of a node relative to top, or to the root if top is NULL, into buf; returns buf. */
const char *module_path(const tensor_module *top, const struct module_node *node, char *buf);
#define NODE_PATH(node) SHORT_PATH(module_path(NULL, node, (char[TENSOR_MODULE_PATH + 1]){ 0 }))
#define MODULE_PATH(m)	((m)->self ? NODE_PATH((m)->self) : "")
/* Bytes of that path. */
size_t module_path_length(const tensor_module *top, const struct module_node *node);

#endif
