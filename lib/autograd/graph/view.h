/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The history of differentiable views. A view shares memory with its base. After an in-place change
 * of the base its node is stale; the next use makes a new one, a strided view of the base.
 */
#ifndef TENSOR_AUTOGRAD_VIEW_H
#define TENSOR_AUTOGRAD_VIEW_H

#include "autograd/graph/meta.h"

struct referrer;

/* The storage changed after the node of the view was made. */
static inline bool view_stale(const tensor *t)
{
	const struct autograd_meta *m = meta_of(t);

	return t->differentiable_view && m->fn &&
	       __atomic_load_n(&m->view_version, __ATOMIC_RELAXED) != storage_version(t->storage);
}

/* Makes a new node for t, which is stale. 0, or -errno. */
int view_refresh(tensor *t);
/* Makes a node for the view t from the geometry of like, a view of the same base. 0, or -errno. */
int view_record(tensor *t, const tensor *like);
/* The part of base that like addresses, as a view with history; owned. NULL with the error set. */
tensor *view_of_base(tensor *base, const tensor *like);
/*
 * A view of base with elements of dtype; sizes, strides and offset count such elements. In an open
 * scope.
 */
tensor *view_as_dtype(tensor *base, enum tensor_dtype dtype, tensor_ints sizes, tensor_ints strides,
		      int64_t offset);
/* A view with the dtype of self can follow an in-place change of root. */
bool view_dtype_follows(const tensor *self, const tensor *root);

/*
 * Marks t as a view that was made under tensor_no_grad: an in-place change through it is refused
 * later. Consumes and returns t; NULL with the error set.
 */
tensor *no_grad_view(tensor *t);
/* Marks the existing views of t, which becomes a leaf: they have no history. 0, or -errno. */
int views_guard(tensor *t);
/* Finds the views of root. 0, or -errno. */
int views_find(const char *op, tensor *root, const struct referrer **first);
/* Makes nodes for the views of root, except self, that have none. 0, or -errno. */
int views_refresh(tensor *root, const tensor *self);

/* A view of a view that was made under tensor_no_grad is one, too. Consumes and returns view. */
static inline tensor *view_inherit(const tensor *t, tensor *view)
{
	const struct autograd_meta *m = meta_of(t);

	view = m && m->no_grad_view ? no_grad_view(view) : view;
	if (view && view->autograd_meta && m && m->before_leaf)
		view->autograd_meta->before_leaf = true;
	return view;
}

#endif
