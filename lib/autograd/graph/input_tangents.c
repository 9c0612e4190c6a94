// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Tangents of the inputs of a node (input_tangents.h). */
#include "autograd/graph/input_tangents.h"

#include "autograd/graph/meta.h"
#include "autograd/graph/view.h"
#include "core/scope.h"

#include <stdlib.h>

static void free_tangents(struct node_attachment *a)
{
	struct input_tangents *k = (struct input_tangents *)a;

	for (uint32_t i = 0; i < k->n; i++) {
		tensor_put(k->of[i].t);
		node_put(k->of[i].history.fn);
	}
	free(k);
}

struct input_tangents *input_tangents_new(uint32_t n)
{
	struct input_tangents *k = calloc(1, sizeof(*k) + n * sizeof(*k->of));

	if (k)
		k->attachment.free = free_tangents;
	else
		tensor_fail(ENOMEM, "forward mode: no memory for tangents");
	return k;
}

int input_tangents_add(struct input_tangents *k, uint32_t input, tensor *tangent)
{
	struct input_tangent *to = &k->of[k->n];
	bool recorded = needs_grad(tangent);

	if (recorded && view_stale(tangent) && view_refresh(tangent) < 0)
		return -thread()->error.code;
	to->t = tensor_new_detached(tangent);
	if (!to->t)
		return -thread()->error.code;
	to->version = tensor_version(to->t);
	to->input = input;
	if (recorded)
		to->history = gradient_edge(tangent);
	k->n++;
	return 0;
}

tensor *input_tangent_unpack(const tensor_node *n, const struct input_tangents *k, uint32_t i)
{
	const struct input_tangent *from = &k->of[i];
	tensor *t;

	if (tensor_version(from->t) != from->version)
		return tensor_fail_null(
			EINVAL, "backward of %s: the tangent of an input was changed in place",
			n->type->op);
	t = tensor_new_detached(from->t);
	if (t && from->history.fn && !meta_new_output(t, from->history.fn, from->history.nr)) {
		tensor_put(t);
		return NULL;
	}
	return scope_own(thread(), t);
}
