// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Lists of hooks (hooks.h): registration, removal, retained gradients. */
#include "autograd/graph/hooks.h"

#include "autograd/graph/meta.h"
#include "autograd/graph/view.h"

#include <stdlib.h>

static void list_put(struct node_hooks *list)
{
	if (ref_put(&list->refs))
		free(list);
}

static void hook_put(struct tensor_hook *h)
{
	if (!ref_put(&h->refs))
		return;
	list_put(h->list);
	free(h);
}

void hook_unuse(struct tensor_hook *h)
{
	if (!ref_put(&h->users))
		return;
	if (h->destroy)
		h->destroy(h->ctx);
	hook_put(h);
}

/* The list of n, which is made if it has none. NULL with the error set. */
static struct node_hooks *list_of(tensor_node *n)
{
	struct node_hooks *list;

	node_lock_take(&n->lock);
	if (!n->hooks) {
		list = calloc(1, sizeof(*list));
		if (list)
			list->refs = 1;
		__atomic_store_n(&n->hooks, list, __ATOMIC_RELEASE);
	}
	list = n->hooks;
	node_lock_drop(&n->lock);
	if (!list)
		tensor_fail(ENOMEM, "autograd: no memory for a hook");
	return list;
}

void hooks_note_place(tensor_node *n)
{
	struct node_hooks *list = list_of(n);

	if (list)
		list->made = call_place();
	else
		tensor_clear_error();
}

int hooks_add(tensor_node *n, enum hook_kind kind, uint32_t nr, union hook_function fn, void *ctx,
	      void (*destroy)(void *), struct tensor_hook **handle)
{
	struct node_hooks *list = list_of(n);
	struct tensor_hook *h = list ? calloc(1, sizeof(*h)) : NULL;

	if (!h)
		return tensor_fail(ENOMEM, "autograd: no memory for a hook");
	*h = (struct tensor_hook){ .refs = handle ? 2 : 1,
				   .users = 1,
				   .kind = kind,
				   .nr = nr,
				   .fn = fn,
				   .ctx = ctx,
				   .destroy = destroy,
				   .list = list,
				   .listed = true };
	ref_get(&list->refs);
	node_lock_take(&list->lock);
	h->prev = list->last;
	*(h->prev ? &h->prev->next : &list->first) = h;
	list->last = h;
	node_lock_drop(&list->lock);
	if (handle)
		*handle = h;
	return 0;
}

/* Takes the hook out of its list and drops the list's reference to it. */
static void take_out(struct tensor_hook *h)
{
	struct node_hooks *list = h->list;
	bool listed;

	atomic_store(&h->removed, true);
	node_lock_take(&list->lock);
	listed = h->listed;
	if (listed) {
		*(h->prev ? &h->prev->next : &list->first) = h->next;
		*(h->next ? &h->next->prev : &list->last) = h->prev;
		h->listed = false;
	}
	node_lock_drop(&list->lock);
	if (listed)
		hook_unuse(h);
}

void hooks_free(struct node_hooks *list)
{
	struct tensor_hook *h, *next;
	struct retained *r;

	node_lock_take(&list->lock);
	h = list->first;
	for (struct tensor_hook *each = h; each; each = each->next)
		each->listed = false;
	list->first = list->last = NULL;
	node_lock_drop(&list->lock);
	for (; h; h = next) {
		next = h->next;
		atomic_store(&h->removed, true);
		hook_unuse(h);
	}
	while ((r = list->retained)) {
		list->retained = r->next;
		free(r);
	}
	list_put(list);
}

TENSOR_EXPORT void tensor_hook_remove(tensor_hook *hook)
{
	if (!hook)
		return;
	take_out(hook);
	hook_put(hook);
}

TENSOR_EXPORT void tensor_hook_release(tensor_hook *hook)
{
	if (hook)
		hook_put(hook);
}

bool hooks_any(struct node_hooks *list, enum hook_kind kind)
{
	const struct tensor_hook *h;

	node_lock_take(&list->lock);
	for (h = list->first; h && h->kind != kind; h = h->next)
		;
	node_lock_drop(&list->lock);
	return h;
}

struct tensor_hook **hooks_snapshot(struct node_hooks *list, enum hook_kind kind, uint32_t nr,
				    struct tensor_hook **few)
{
	struct tensor_hook **hooks = few, *h;
	size_t n = 0;

	node_lock_take(&list->lock);
	for (h = list->first; h; h = h->next)
		n += h->kind == kind && h->nr == nr;
	if (n > HOOKS_FEW)
		hooks = malloc((n + 1) * sizeof(*hooks));
	n = 0;
	for (h = hooks ? list->first : NULL; h; h = h->next) {
		if (h->kind != kind || h->nr != nr)
			continue;
		ref_get(&h->users);
		hooks[n++] = h;
	}
	node_lock_drop(&list->lock);
	if (!hooks) {
		tensor_fail(ENOMEM, "backward: no memory for hooks");
		return NULL;
	}
	hooks[n] = NULL;
	return hooks;
}

/* ---- retained gradients ---- */

int hooks_retain(tensor_node *n, uint32_t nr, struct autograd_meta *m)
{
	struct node_hooks *list = list_of(n);
	struct retained *r = list ? malloc(sizeof(*r)) : NULL;

	if (!r)
		return tensor_fail(ENOMEM, "autograd: no memory for a hook");
	node_lock_take(&list->lock);
	*r = (struct retained){ m, nr, list->retained };
	list->retained = r;
	m->retains_grad = true;
	node_lock_drop(&list->lock);
	return 0;
}

static struct retained *take_retained(struct autograd_meta *m)
{
	struct node_hooks *list = m->fn->hooks;
	struct retained **p, *r;

	node_lock_take(&list->lock);
	for (p = &list->retained; *p && (*p)->meta != m; p = &(*p)->next)
		;
	r = *p;
	if (r)
		*p = r->next;
	node_lock_drop(&list->lock);
	m->retains_grad = false;
	return r;
}

void hooks_forget(struct autograd_meta *m)
{
	free(take_retained(m));
}

void hooks_retain_again(struct autograd_meta *m)
{
	if (hooks_retain(m->fn, m->nr, m) < 0)
		tensor_clear_error();
}
