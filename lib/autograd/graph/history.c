// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The history of tensors that change in place, and of views.
 *
 * A plain tensor continues with the node of the in-place operator. A view shares its memory
 * with its base: there the base's history continues with CopySlices, a node that runs the
 * operator's formulas on the view's part of the gradient and passes the rest through; the view
 * itself is looked at anew, as a strided view of the base. The same happens, when it is next
 * used, to any other view whose base was changed meanwhile.
 */
#include "autograd/graph/autograd.h"

#include "core/referrers.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/reinterpret.h"
#include "family/view.h"

#include <stdlib.h>

struct leaf_meta *meta_new(tensor *t)
{
	struct leaf_meta *m = calloc(1, sizeof(*m));

	if (!m) {
		tensor_fail(ENOMEM, "autograd: no memory for a tensor's metadata");
		return NULL;
	}
	accumulate_init(m, t);
	t->grad = &m->meta;
	return m;
}

int node_result_more(tensor_node *n, unsigned nr, tensor *t)
{
	struct leaf_meta *m = meta_new(t);

	if (!m)
		return -1;
	node_describe(n, nr, t);
	node_get(n);
	m->meta.fn = n;
	m->meta.nr = nr;
	m->meta.tracked = true;
	m->meta.view_version = tensor_version(t);
	t->keys |= AUTOGRAD_BIT;
	return 0;
}

/* ---- views ---- */

/* Whether a and b are the same numbers, once as complex ones and once as their parts. */
static bool real_and_complex(enum tensor_dtype a, enum tensor_dtype b)
{
	return a != b && dtype_real(a) == dtype_real(b);
}

/* A view of base as numbers of dtype; sizes, strides and offset count these. In an open scope. */
static tensor *seen_as(tensor *base, enum tensor_dtype dtype, tensor_ints sizes,
		       tensor_ints strides, int64_t offset)
{
	int64_t s[TENSOR_MAX_DIMS + 1], st[TENSOR_MAX_DIMS + 1];
	tensor_ints parts = { s, sizes.len + 1 }, steps = { st, sizes.len + 1 };

	if (!base || base->dtype == dtype)
		return tensor_as_strided(base, sizes, strides, offset);
	if (dtype_is_complex(base->dtype))
		return tensor_as_strided(tensor_view_as_real(base), sizes, strides, offset);
	for (int64_t i = 0; i < sizes.len; i++) {
		s[i] = sizes.data[i];
		st[i] = 2 * strides.data[i];
	}
	s[sizes.len] = 2;
	st[sizes.len] = 1;
	return tensor_view_as_complex(tensor_as_strided(base, parts, steps, 2 * offset));
}

/* like's part of base, as a view with history; owned. */
static tensor *recorded_view(tensor *base, const tensor *like)
{
	struct tensor_thread *th = thread();
	struct tensor_scope_guard guard;
	uint32_t exclude = th->exclude;
	bool enabled = th->grad_enabled;
	tensor *t;

	if (base->dtype != like->dtype && !real_and_complex(base->dtype, like->dtype))
		return tensor_fail_null(EOPNOTSUPP,
					"a view as %s of a tensor of %s that was "
					"changed in place has no history",
					tensor_dtype_name(like->dtype),
					tensor_dtype_name(base->dtype));
	guard = tensor_scope_enter();
	th->grad_enabled = true;
	th->exclude &= ~AUTOGRAD_BIT;
	t = seen_as(base, like->dtype, (tensor_ints){ like->sizes, like->ndim },
		    (tensor_ints){ like->strides, like->ndim }, like->offset);
	th->grad_enabled = enabled;
	th->exclude = exclude;
	return scope_leave_with(&guard, t);
}

/*
 * `now` takes the place of t's metadata. Who changes memory does so alone, so whoever looked at what was
 * replaced before the last change has done with it; leaves' stay, because graphs lead to them.
 */
static void replace_meta(tensor *t, struct autograd_meta *now)
{
	struct autograd_meta *old = t->grad, **p, *m;

	now->retired = old;
	for (p = old ? &old->retired : NULL; p && (m = *p);) {
		if (!m->fn) {
			p = &m->retired;
			continue;
		}
		*p = m->retired;
		m->retired = NULL;
		tensor_autograd_hooks.free_meta(m);
	}
	__atomic_store_n(&t->grad, now, __ATOMIC_RELEASE);
}

void history_take(tensor *t, tensor *from)
{
	replace_meta(t, from->grad);
	from->grad = NULL;
	from->keys &= ~AUTOGRAD_BIT;
	/* Readers of a stale view may be reading it. */
	if (!(t->keys & AUTOGRAD_BIT))
		t->keys |= AUTOGRAD_BIT;
}

/* Looks at the base anew, whatever t's node was, from where `like` is. */
int view_record(tensor *t, const tensor *like)
{
	tensor *now = recorded_view(t->base, like);

	if (!now)
		return -thread()->error.code;
	if (!now->grad) { /* the base has stopped requiring a gradient */
		__atomic_store_n(&t->grad->view_version, tensor_version(t), __ATOMIC_RELAXED);
		tensor_put(now);
		return 0;
	}
	history_take(t, now);
	tensor_put(now);
	return 0;
}

static int view_regenerate(tensor *t)
{
	return view_record(t, t);
}

int view_refresh(tensor *t)
{
	int err = 0;

	/* Readers of one view in several threads: the first makes the node for all. */
	autograd_lock();
	if (view_stale(t))
		err = view_regenerate(t);
	autograd_unlock();
	return err;
}

static int mark_no_grad(tensor *t)
{
	struct leaf_meta *m;

	if (t->grad) /* it has a history, or is marked */
		return 0;
	m = meta_new(t);
	if (!m)
		return -thread()->error.code;
	m->meta.no_grad_view = true;
	t->keys |= AUTOGRAD_BIT;
	return 0;
}

tensor *no_grad_view(tensor *t)
{
	if (t && mark_no_grad(t) < 0) {
		tensor_put(t);
		return NULL;
	}
	return t;
}

/* ---- in-place ---- */

/* Views that were made before their base got a history do not look for one. */
static bool has_unaware_views(const tensor *self, const tensor *root)
{
	return !needs_grad(root) && tensor_live_views(root) > (self == root ? 0 : 1);
}

/* A view as complex numbers of real ones begins at an even one of its base. */
static bool dtype_follows(const tensor *self, const tensor *root)
{
	return self->dtype == root->dtype ||
	       (real_and_complex(self->dtype, root->dtype) &&
		(dtype_is_complex(root->dtype) || root->offset % 2 == 0));
}

static int find_views(const char *op, tensor *root, const struct referrer **first)
{
	return referrers_find(root, first) < 0 ?
		       tensor_fail(ENOMEM, "%s: no memory to find the views of the tensor", op) :
		       0;
}

static int mark_before_leaf(tensor *view)
{
	if (view->grad)
		return 0;
	if (mark_no_grad(view) < 0)
		return -thread()->error.code;
	view->grad->before_leaf = true;
	return 0;
}

/* t has become a leaf: views from before lead to no gradient, so no recorded change is made through
 * them. */
int guard_views(tensor *t)
{
	const struct referrer *r;
	int err = 0;

	if (!tensor_live_views(t))
		return 0;
	err = find_views("set_requires_grad", t, &r);
	for (; !err && r; r = r->next)
		if (r->t->base == t && r->t->differentiable_view)
			err = mark_before_leaf(r->t);
	return err;
}

/* root has a history: its other views get theirs. */
static int make_views_aware(tensor *root, const tensor *self)
{
	const struct referrer *r;
	int err = find_views("autograd", root, &r);

	for (; !err && r; r = r->next)
		if (r->t != self && r->t->base == root && r->t->differentiable_view &&
		    !needs_grad(r->t) && dtype_follows(r->t, root))
			err = view_regenerate(r->t);
	return err;
}

int inplace_check(const struct tensor_op *op, tensor *self, bool need)
{
	const char *name = op->schema.name;
	tensor *root = self->base ? self->base : self;
	const struct referrer *views;

	if (self->keys & AUTOGRAD_BIT && self->grad->no_grad_view && needs_grad(root) &&
	    (need || !self->grad->before_leaf))
		return tensor_fail(EINVAL,
				   "%s: self is a view that was made %s; change it under "
				   "tensor_no_grad, or make the view anew",
				   name,
				   self->grad->before_leaf ? "before its base required a gradient" :
							     "under tensor_no_grad");
	if (!need)
		return 0;
	if (needs_grad(self) && !self->grad->fn)
		return tensor_fail(EINVAL,
				   "%s: self is a leaf that requires a gradient; change it "
				   "in place only under tensor_no_grad",
				   name);
	if (root != self && (needs_grad(root) || needs_grad(self)) &&
	    !(root->grad && root->grad->fn))
		return tensor_fail(EINVAL,
				   "%s: self is a view of a leaf that requires a gradient; "
				   "change it in place only under tensor_no_grad",
				   name);
	if (!dtype_follows(self, root))
		return tensor_fail(EOPNOTSUPP,
				   "%s: self is a view as %s of a tensor of %s, which "
				   "are not changed in place where a gradient is "
				   "recorded",
				   name, tensor_dtype_name(self->dtype),
				   tensor_dtype_name(root->dtype));
	/* Now, because nothing may fail after the change. */
	return has_unaware_views(self, root) ? find_views(name, root, &views) : 0;
}

/* t's history is from now on n, whose reference is consumed. */
static void replace_history(tensor *t, tensor_node *n)
{
	struct autograd_meta *old = t->grad;
	tensor_node *fn;

	if (!old || old->inside_node) {
		node_result(n, t);
		if (old) {
			n->meta.grad = old->grad;
			n->meta.retired = old->retired;
			old->grad = NULL;
			old->retired = NULL;
			tensor_autograd_hooks.free_meta(old);
		}
		return;
	}
	node_describe(n, 0, t);
	fn = old->fn;
	old->fn = n;
	old->nr = 0;
	old->tracked = true;
	t->keys |= AUTOGRAD_BIT;
	node_put(fn);
}

struct copy_slices {
	tensor_node node;
	tensor_node *inner;	    /* of the operator that changed the view */
	tensor_ints sizes, strides; /* of the base */
	tensor_ints view_sizes, view_strides;
	int64_t view_offset;	/* from the base's first element, in elements of the view */
	tensor_options options; /* of the base */
	enum tensor_dtype view_dtype;
};

/* Where t begins in its base, in elements of t. */
static int64_t offset_within(const tensor *t, const tensor *base)
{
	if (t->dtype == base->dtype)
		return t->offset - base->offset;
	return dtype_is_complex(base->dtype) ? t->offset - 2 * base->offset :
					       t->offset - base->offset / 2;
}

/* The base's gradient, in the base's own layout, so that the view's part can be addressed. */
static tensor *laid_out(const struct copy_slices *c, tensor *grad)
{
	return tensor_copy_(tensor_empty_strided(c->sizes, c->strides, c->options), grad);
}

static int copy_slices_apply(tensor_node *node, tensor *const *grads, tensor **out, uint64_t need)
{
	struct copy_slices *c = (struct copy_slices *)node;
	tensor *whole = laid_out(c, grads[0]), *slice, *part, *first, **rest = out;
	tensor_node *inner = c->inner;
	int err;

	slice = seen_as(whole, c->view_dtype, c->view_sizes, c->view_strides, c->view_offset);
	part = tensor_clone(slice);
	if (!part)
		return -1;
	node_lock_take(&inner->lock);
	err = inner->type->apply(inner, &part, rest, inner->edges[0].fn ? need : need & ~1ull);
	node_lock_drop(&inner->lock);
	if (err < 0 || !(need & 1))
		return err;
	first = out[0];
	if (first && first != tensor_none)
		first = tensor_copy_(slice, first);
	else
		first = tensor_zero_(slice);
	out[0] = whole;
	return first ? 0 : -1;
}

static void copy_slices_release(tensor_node *node)
{
	node_release(((struct copy_slices *)node)->inner);
}

static void copy_slices_destroy(tensor_node *node)
{
	node_put(((struct copy_slices *)node)->inner);
}

static const struct node_type copy_slices_type = {
	.name = "CopySlices",
	.op = "an in-place change of a view",
	.apply = copy_slices_apply,
	.release = copy_slices_release,
	.destroy = copy_slices_destroy,
};

tensor *slice_with_history(tensor_node *n, tensor *t)
{
	struct copy_slices *c = (struct copy_slices *)n->within;
	struct leaf_meta *m;
	tensor *base, *slice = NULL;
	int64_t offset;

	offset = t->offset - c->view_offset;
	if (c->view_dtype != c->options.dtype)
		offset = dtype_is_complex(c->options.dtype) ? offset / 2 : 2 * offset;
	storage_get(t->storage);
	base = tensor_new_on_storage(t->storage, c->options.dtype, c->sizes.data, c->strides.data,
				     (int)c->sizes.len, offset);
	if (!base)
		return NULL;
	m = meta_new(base);
	if (m) {
		node_get(&c->node);
		m->meta.fn = &c->node;
		m->meta.tracked = true;
		base->keys |= AUTOGRAD_BIT;
		slice = recorded_view(base, t);
	}
	tensor_put(base);
	return slice;
}

static int inplace_on_view(tensor_node *n, tensor *self)
{
	tensor *base = self->base;
	tensor_ints sizes = { base->sizes, base->ndim }, strides = { base->strides, base->ndim };
	tensor_ints vsizes = { self->sizes, self->ndim }, vstrides = { self->strides, self->ndim };
	struct copy_slices *c;

	c = (struct copy_slices *)node_new(&copy_slices_type, sizeof(*c), n->nedges, 0, 1,
					   3 * base->ndim + 2 * self->ndim);
	if (!c) {
		node_put(n);
		return -1;
	}
	node_describe(n, 0, self);
	if (needs_grad(base))
		node_edge(&c->node, 0, base);
	for (uint32_t i = 1; i < n->nedges; i++) {
		c->node.edges[i] = n->edges[i];
		if (n->edges[i].fn)
			node_get(n->edges[i].fn);
	}
	c->inner = n;
	n->within = &c->node;
	c->sizes = node_ints(&c->node, sizes);
	c->strides = node_ints(&c->node, strides);
	c->view_sizes = node_ints(&c->node, vsizes);
	c->view_strides = node_ints(&c->node, vstrides);
	c->view_offset = offset_within(self, base);
	c->view_dtype = self->dtype;
	c->options = TENSOR_OPTIONS(.dtype = base->dtype, .device = base->device);
	replace_history(base, &c->node);
	return view_regenerate(self);
}

int inplace_result(tensor_node *n, tensor *self)
{
	tensor *root = self->base && self->differentiable_view ? self->base : self;
	bool unaware = has_unaware_views(self, root);
	int err = 0;

	if (root != self)
		err = inplace_on_view(n, self);
	else
		replace_history(self, n);
	return err || !unaware ? err : make_views_aware(root, self);
}
