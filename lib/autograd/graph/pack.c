// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Packing and unpacking of saved tensors (pack.h). */
#include "autograd/graph/pack.h"

#include "autograd/graph/state.h"

#include <stdlib.h>

struct pack_hooks *pack_hooks_of(const struct tensor_thread *th)
{
	const struct autograd_thread *at = th->autograd;

	return at ? at->pack_hooks : NULL;
}

static void pack_hooks_put(struct pack_hooks *hooks)
{
	if (!ref_put(&hooks->refs))
		return;
	if (hooks->fn.destroy)
		hooks->fn.destroy(hooks->fn.ctx);
	free(hooks);
}

TENSOR_EXPORT struct tensor_saved_hooks_guard
tensor_saved_hooks_enter(const struct tensor_saved_hooks *hooks)
{
	struct autograd_thread *at = autograd_thread(thread());
	struct pack_hooks *h;

	if (!at)
		return (struct tensor_saved_hooks_guard){ NULL };
	if (hooks && (!hooks->pack || !hooks->unpack)) {
		tensor_fail(EINVAL, "saved_hooks: pack and unpack must be given");
		return (struct tensor_saved_hooks_guard){ NULL };
	}
	h = calloc(1, sizeof(*h));
	if (!h) {
		tensor_fail(ENOMEM, "saved_hooks: no memory");
		return (struct tensor_saved_hooks_guard){ NULL };
	}
	h->refs = 1;
	if (hooks)
		h->fn = *hooks;
	h->outer = at->pack_hooks;
	at->pack_hooks = h;
	return (struct tensor_saved_hooks_guard){ h };
}

TENSOR_EXPORT void tensor_saved_hooks_leave(struct tensor_saved_hooks_guard *guard)
{
	struct autograd_thread *at = thread()->autograd;
	struct pack_hooks *h = guard->scope;

	if (!h)
		return;
	at->pack_hooks = h->outer;
	guard->scope = NULL;
	pack_hooks_put(h);
}

/* The state of a thread while functions of the program pack or unpack: nothing is recorded, no tensor is
 * packed. */
struct quiet {
	struct pack_hooks *hooks;
	bool grad_enabled;
	int error; /* see callback_begin() */
};

static struct quiet quiet_begin(struct tensor_thread *th)
{
	struct autograd_thread *at = th->autograd;
	struct quiet q = { at->pack_hooks, th->grad_enabled, callback_begin() };

	at->pack_hooks = NULL;
	th->grad_enabled = false;
	return q;
}

static void quiet_end(struct tensor_thread *th, struct quiet q)
{
	struct autograd_thread *at = th->autograd;

	at->pack_hooks = q.hooks;
	th->grad_enabled = q.grad_enabled;
}

/* References to t and to its memory. */
static int64_t holders(const tensor *t)
{
	return atomic_load_explicit(&t->refs, memory_order_relaxed) +
	       atomic_load_explicit(&t->storage->refs, memory_order_relaxed);
}

struct packed *pack(struct pack_hooks *hooks, tensor *t)
{
	struct tensor_thread *th = thread();
	struct packed *p = malloc(sizeof(*p) + t->ndim * sizeof(int64_t));
	tensor *alias = p ? tensor_new_detached(t) : NULL;
	struct tensor_scope_guard scope;
	struct quiet quiet;
	int64_t before;

	if (!alias) {
		free(p);
		tensor_fail(ENOMEM, "saved_hooks: no memory");
		return NULL;
	}
	*p = (struct packed){ .hooks = hooks,
			      .version = tensor_version(t),
			      .like = { p->sizes, t->dtype, t->ndim, t->device } };
	memcpy(p->sizes, t->sizes, t->ndim * sizeof(int64_t));
	ref_get(&hooks->refs);
	quiet = quiet_begin(th);
	scope = tensor_scope_enter();
	before = holders(alias);
	p->data = hooks->fn.pack(alias, hooks->fn.ctx);
	scope_leave(&scope);
	quiet_end(th, quiet);
	/* Memory that pack kept is watched for in-place changes. */
	if (p->data && holders(alias) > before)
		p->kept = tensor_get(alias);
	tensor_put(alias);
	if (!callback_end(quiet.error, p->data ? 0 : -ECANCELED, "saved_hooks: pack failed"))
		return p;
	pack_hooks_put(hooks);
	free(p);
	return NULL;
}

tensor *packed_unpack(const struct packed *p, const char *op)
{
	struct tensor_thread *th = thread();
	char text[SHAPE_TEXT];
	struct quiet quiet;
	tensor *t;

	if (p->kept && tensor_version(p->kept) != p->version)
		return tensor_fail_null(EINVAL,
					"backward of %s: a saved tensor %s was changed in place",
					op,
					format_sizes(p->sizes, p->like.ndim, text, sizeof(text)));
	if (!autograd_thread(th))
		return NULL;
	quiet = quiet_begin(th);
	t = p->hooks->fn.unpack(p->data, p->hooks->fn.ctx);
	quiet_end(th, quiet);
	if (callback_end(quiet.error, t ? 0 : -ECANCELED, "backward of %s: unpack failed", op) < 0)
		return NULL;
	if (!output_matches(&p->like, t))
		return tensor_fail_null(EINVAL,
					"backward of %s: unpack must return %s of %s on the device "
					"of the saved tensor, got %s of %s",
					op,
					format_sizes(p->sizes, p->like.ndim, text, sizeof(text)),
					tensor_dtype_name(p->like.dtype), SHAPE_STR(t),
					tensor_dtype_name(t->dtype));
	return t;
}

void packed_free(struct packed *p)
{
	if (p->hooks->fn.discard)
		p->hooks->fn.discard(p->data, p->hooks->fn.ctx);
	pack_hooks_put(p->hooks);
	tensor_put(p->kept);
	free(p);
}
