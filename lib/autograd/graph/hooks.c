// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Lists of hooks (hooks.h): registration, removal, retained gradients. */
#include "autograd/graph/hooks.h"

#include "autograd/graph/meta.h"
#include "autograd/graph/view.h"

#include <stdlib.h>

static void list_put(struct node_hooks *list)
{
	if (!ref_put(&list->refs))
		return;
	free(list->more);
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

/* list_of(), with a place for output nr. A node with many outputs gets the places of all of them. */
static struct node_hooks *list_of_output(tensor_node *n, uint32_t nr)
{
	struct node_hooks *list = list_of(n);
	bool space;

	if (!list || !nr)
		return list;
	node_lock_take(&list->lock);
	if (!list->more) {
		list->more = calloc(n->noutputs - 1, sizeof(*list->more));
		list->nmore = list->more ? n->noutputs - 1 : 0;
	}
	space = list->more;
	node_lock_drop(&list->lock);
	if (space)
		return list;
	tensor_fail(ENOMEM, "autograd: no memory for a hook");
	return NULL;
}

/* The list of a kind, NULL if there is none yet; locked. */
static struct hook_list *list_at(struct node_hooks *list, enum hook_kind kind, uint32_t nr)
{
	struct output_hooks *o;

	if (kind != HOOK_GRADIENT)
		return &list->lists[kind];
	o = hooks_of_output(list, nr);
	return o ? &o->gradient : NULL;
}

int hooks_add(tensor_node *n, enum hook_kind kind, uint32_t nr, union hook_function fn, void *ctx,
	      void (*destroy)(void *), struct tensor_hook **handle)
{
	struct node_hooks *list = list_of_output(n, nr);
	struct tensor_hook *h = list ? calloc(1, sizeof(*h)) : NULL;
	struct hook_list *at;

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
	at = list_at(list, kind, nr);
	h->prev = at->last;
	*(h->prev ? &h->prev->next : &at->first) = h;
	at->last = h;
	node_lock_drop(&list->lock);
	if (handle)
		*handle = h;
	return 0;
}

/* Takes the hook out of its list and drops the list's reference to it. */
static void take_out(struct tensor_hook *h)
{
	struct node_hooks *list = h->list;
	struct hook_list *at;
	bool listed;

	atomic_store(&h->removed, true);
	node_lock_take(&list->lock);
	listed = h->listed;
	if (listed) {
		at = list_at(list, h->kind, h->nr);
		*(h->prev ? &h->prev->next : &at->first) = h->next;
		*(h->next ? &h->next->prev : &at->last) = h->prev;
		h->listed = false;
	}
	node_lock_drop(&list->lock);
	if (listed)
		hook_unuse(h);
}

static void free_hooks(struct node_hooks *list, struct hook_list *at)
{
	struct tensor_hook *h, *next;

	node_lock_take(&list->lock);
	h = at->first;
	for (struct tensor_hook *each = h; each; each = each->next)
		each->listed = false;
	at->first = at->last = NULL;
	node_lock_drop(&list->lock);
	for (; h; h = next) {
		next = h->next;
		atomic_store(&h->removed, true);
		hook_unuse(h);
	}
}

static void free_output(struct node_hooks *list, struct output_hooks *o)
{
	struct retained *r;

	free_hooks(list, &o->gradient);
	while ((r = o->retained)) {
		o->retained = r->next;
		free(r);
	}
}

void hooks_free(struct node_hooks *list)
{
	for (int kind = 0; kind < HOOK_KINDS; kind++)
		free_hooks(list, &list->lists[kind]);
	free_output(list, &list->output);
	for (uint32_t i = 0; i < list->nmore; i++)
		free_output(list, &list->more[i]);
	hooks_drop_tangents(list);
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
	bool any;

	node_lock_take(&list->lock);
	any = list->lists[kind].first;
	node_lock_drop(&list->lock);
	return any;
}

struct tensor_hook **hooks_snapshot(struct node_hooks *list, enum hook_kind kind, uint32_t nr,
				    struct tensor_hook **few)
{
	struct tensor_hook **hooks = few, *h, *first;
	const struct hook_list *at;
	size_t n = 0;

	node_lock_take(&list->lock);
	at = list_at(list, kind, nr);
	first = at ? at->first : NULL;
	for (h = first; h; h = h->next)
		n++;
	if (n > HOOKS_FEW)
		hooks = malloc((n + 1) * sizeof(*hooks));
	n = 0;
	for (h = hooks ? first : NULL; h; h = h->next) {
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

int hooks_keep_tangents(tensor_node *n, struct node_attachment *tangents)
{
	struct node_hooks *list = list_of(n);

	if (!list) {
		tangents->free(tangents);
		return -ENOMEM;
	}
	list->tangents = tangents;
	return 0;
}

/* ---- retained gradients ---- */

int hooks_retain(tensor_node *n, uint32_t nr, struct autograd_meta *m)
{
	struct node_hooks *list = list_of_output(n, nr);
	struct retained *r = list ? malloc(sizeof(*r)) : NULL;

	struct output_hooks *o;

	if (!r)
		return tensor_fail(ENOMEM, "autograd: no memory for a hook");
	node_lock_take(&list->lock);
	o = hooks_of_output(list, nr);
	*r = (struct retained){ m, o->retained };
	o->retained = r;
	m->retains_grad = true;
	node_lock_drop(&list->lock);
	return 0;
}

static struct retained *take_retained(struct autograd_meta *m)
{
	struct node_hooks *list = m->fn->hooks;
	struct retained **p, *r;

	node_lock_take(&list->lock);
	for (p = &hooks_of_output(list, m->nr)->retained; *p && (*p)->meta != m; p = &(*p)->next)
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
