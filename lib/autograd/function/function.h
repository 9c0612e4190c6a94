/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Calls of functions of the program (include/tensor/function.h): their context and their node. */
#ifndef TENSOR_AUTOGRAD_FUNCTION_H
#define TENSOR_AUTOGRAD_FUNCTION_H

#include "autograd/graph/node.h"

#include <tensor/dispatch.h>
#include <tensor/function.h>

/* A list of borrowed or owned tensors that grows. */
struct tensors {
	tensor **t;
	int n, cap;
};

/* Declarations of forward: the tensors it saves, and the marks of inputs and outputs. */
struct building {
	tensor_list inputs;
	struct tensors dirty; /* inputs, borrowed */
	/* Owned: a tensor that forward marks and releases would give its address to another one. */
	struct tensors saved, constant;
	tensor **outputs; /* of the call, or those of tensor_function_set_outputs() */
	int noutputs;
	bool recorded; /* the call gets a node */
	bool failed;   /* the error record has the reason */
};

/* The arguments of tensor_function_call(). */
struct function_args {
	int n;
	tensor_value value[]; /* strings and lists follow */
};

struct tensor_function_ctx {
	const struct tensor_function *f;
	void *data;
	void (*destroy)(void *data);
	const tensor_value *args; /* NULL for tensor_function_apply() */
	int nargs;
	unsigned flags;		   /* TENSOR_FUNCTION_* */
	struct building *building; /* in forward */
	tensor_node *node;	   /* in backward */
	uint64_t need;		   /* in backward: see node_type.apply */
};

struct function_node {
	tensor_node node;
	struct node_type type;
	const struct tensor_function *f;
	void *data;
	void (*destroy)(void *data);
	struct function_args *args; /* owned; NULL for tensor_function_apply() */
	unsigned flags;		    /* TENSOR_FUNCTION_* */
	char name[56];
};

#define MOST_TENSORS INT16_MAX /* inputs, outputs, saved tensors */

/* Adds t with a reference. -ENOMEM with the error set. */
int tensors_keep(struct tensors *list, tensor *t);
/* Releases the tensors of a list that owns them, and the list. */
void tensors_put(struct tensors *list);
bool tensors_have(const struct tensors *list, const tensor *t);

/* The index of t in the list, -1 if it is not in it. */
static inline int64_t index_in(tensor_list list, const tensor *t)
{
	for (int64_t i = 0; i < list.len; i++)
		if (list.data[i] == t)
			return i;
	return -1;
}

/* 0, or -EINVAL for flags that are none. */
int function_check_flags(const struct tensor_function *f, unsigned flags);

/* The functions of a function_node as a node. */
int function_node_apply(tensor_node *node, tensor *const *grads, tensor **out, uint64_t need);
void function_node_destroy(tensor_node *node);

/*
 * A copy of the arguments with their strings and lists, but without tensors, to free with free(). NULL with the error
 * set.
 */
struct function_args *function_args_copy(const char *name, const tensor_value *args, int n);
/* Counts the tensors of args[], which may be in lists; stores them in to[] if that is not NULL. -errno for an argument
 * that is none. */
int64_t function_args_tensors(const char *name, const tensor_value *args, int n, tensor **to);

#endif
