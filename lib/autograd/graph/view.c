// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The history of views. */
#include "autograd/graph/view.h"

#include "core/referrers.h"

#include "family/reinterpret.h"
#include "family/view.h"

/* a is the complex dtype of b, or b that of a. */
static bool real_and_complex(enum tensor_dtype a, enum tensor_dtype b)
{
	return a != b && dtype_real(a) == dtype_real(b);
}

tensor *view_as_dtype(tensor *base, enum tensor_dtype dtype, tensor_ints sizes, tensor_ints strides,
		      int64_t offset)
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

tensor *view_of_base(tensor *base, const tensor *like)
{
	struct tensor_thread *th = thread();
	struct tensor_scope_guard guard;
	uint32_t exclude = th->modes.exclude;
	bool enabled = th->modes.grad_enabled;
	tensor *t;

	if (base->dtype != like->dtype && !real_and_complex(base->dtype, like->dtype))
		return tensor_fail_null(EOPNOTSUPP,
					"a view as %s of a tensor of %s that was "
					"changed in place has no history",
					tensor_dtype_name(like->dtype),
					tensor_dtype_name(base->dtype));
	guard = tensor_scope_enter();
	th->modes.grad_enabled = true;
	th->modes.exclude &= ~AUTOGRAD_BIT;
	t = view_as_dtype(base, like->dtype, (tensor_ints){ like->sizes, like->ndim },
			  (tensor_ints){ like->strides, like->ndim }, like->offset);
	th->modes.grad_enabled = enabled;
	th->modes.exclude = exclude;
	return scope_leave_with(&guard, t);
}

int view_record(tensor *t, const tensor *like)
{
	tensor *now = view_of_base(t->base, like);

	if (!now)
		return -thread()->error.code;
	if (!now->autograd_meta) { /* the base requires no gradient any more */
		__atomic_store_n(&t->autograd_meta->view_version, tensor_version(t),
				 __ATOMIC_RELAXED);
		tensor_put(now);
		return 0;
	}
	history_take(t, now);
	tensor_put(now);
	return 0;
}

int view_refresh(tensor *t)
{
	int err = 0;

	/* Under a lock: several threads may read the same view. */
	autograd_lock();
	if (view_stale(t) && t->autograd_meta->no_grad_view)
		err = tensor_fail(
			EINVAL,
			"a view that a function of the program (%s) returned cannot be used "
			"after an in-place change of its base",
			t->autograd_meta->fn->type->name);
	else if (view_stale(t))
		err = view_record(t, t);
	autograd_unlock();
	return err;
}

/* Elements of a complex view of real ones begin at an even element of the base. */
bool view_dtype_follows(const tensor *self, const tensor *root)
{
	return self->dtype == root->dtype ||
	       (real_and_complex(self->dtype, root->dtype) &&
		(dtype_is_complex(root->dtype) || root->offset % 2 == 0));
}

/* ---- views without history ---- */

static int mark_no_grad(tensor *t)
{
	struct leaf_meta *m;

	if (t->autograd_meta) /* it has a history, or is marked */
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

int views_find(const char *op, tensor *root, const struct referrer **first)
{
	return referrers_find(root, first) < 0 ?
		       tensor_fail(ENOMEM, "%s: no memory to find the views of the tensor", op) :
		       0;
}

static int mark_before_leaf(tensor *view)
{
	if (view->autograd_meta)
		return 0;
	if (mark_no_grad(view) < 0)
		return -thread()->error.code;
	view->autograd_meta->before_leaf = true;
	return 0;
}

int views_guard(tensor *t)
{
	const struct referrer *r;
	int err = 0;

	if (!tensor_live_views(t))
		return 0;
	err = views_find("set_requires_grad", t, &r);
	for (; !err && r; r = r->next)
		if (r->t->base == t && r->t->differentiable_view)
			err = mark_before_leaf(r->t);
	return err;
}

int views_refresh(tensor *root, const tensor *self)
{
	const struct referrer *r;
	int err = views_find("autograd", root, &r);

	for (; !err && r; r = r->next)
		if (r->t != self && r->t->base == root && r->t->differentiable_view &&
		    !needs_grad(r->t) && view_dtype_follows(r->t, root))
			err = view_record(r->t, r->t);
	return err;
}
