// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Packing and unpacking of saved tensors (pack.h). */
#include "autograd/graph/pack.h"

#include "autograd/graph/callback.h"
#include "autograd/graph/state.h"

#include <stdlib.h>

/* While functions of the program pack or unpack, nothing is recorded and no tensor is packed. */
static struct callback quiet_begin(struct tensor_thread *th)
{
	struct callback before = callback_begin();

	pack_pause(th, true);
	th->modes.grad_enabled = false;
	return before;
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
	struct callback before;
	int64_t refs;

	if (!alias) {
		free(p);
		tensor_fail(ENOMEM, "saved_hooks: no memory");
		return NULL;
	}
	*p = (struct packed){ .hooks = hooks,
			      .version = tensor_version(t),
			      .like = output_like(t) };
	p->like.sizes = p->sizes;
	memcpy(p->sizes, t->sizes, t->ndim * sizeof(int64_t));
	ref_get(&hooks->refs);
	before = quiet_begin(th);
	scope = tensor_scope_enter();
	refs = holders(alias);
	p->data = hooks->fn.pack(alias, hooks->fn.ctx);
	scope_leave(&scope);
	/* Memory that pack kept is watched for in-place changes. */
	if (p->data && holders(alias) > refs)
		p->kept = tensor_get(alias);
	tensor_put(alias);
	if (!callback_end(&before, p->data ? 0 : -ECANCELED, "saved_hooks: pack failed"))
		return p;
	pack_hooks_put(hooks);
	free(p);
	return NULL;
}

tensor *packed_unpack(const struct packed *p, const char *op)
{
	struct tensor_thread *th = thread();
	char text[SHAPE_TEXT];
	struct callback before;
	tensor *t;

	if (p->kept && tensor_version(p->kept) != p->version)
		return tensor_fail_null(EINVAL,
					"backward of %s: a saved tensor %s was changed in place",
					op,
					format_sizes(p->sizes, p->like.ndim, text, sizeof(text)));
	if (!autograd_thread(th))
		return NULL;
	before = quiet_begin(th);
	t = p->hooks->fn.unpack(p->data, p->hooks->fn.ctx);
	if (callback_end(&before, t ? 0 : -ECANCELED, "backward of %s: unpack failed", op) < 0)
		return NULL;
	if (output_check(&p->like, LAYOUT_BIT(p->like.layout), t,
			 "backward of %s: unpack must return", op) < 0)
		return NULL;
	return t;
}

void packed_free(struct packed *p)
{
	if (p->hooks->fn.discard)
		p->hooks->fn.discard(p->data, p->hooks->fn.ctx);
	pack_hooks_put(p->hooks);
	tensor_put(p->kept);
	tensor_put(p->tangent);
	free(p);
}
