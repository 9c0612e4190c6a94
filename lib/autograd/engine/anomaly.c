// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Checks of anomaly mode (anomaly.h). node_new() stores the place of a call, see hooks_note_place(). */
#include "autograd/engine/anomaly.h"

#include "autograd/graph/hooks.h"
#include "autograd/graph/meta.h"

#include "family/reduce.h"
#include "family/unary.h"

#include <tensor/binding.h>

#include <stdio.h>

/* 1 if t has a NaN, 0 if not, or -errno. */
static int has_nan(tensor *t)
{
	struct tensor_thread *th = thread();
	bool enabled = th->modes.grad_enabled;
	double any = 0;
	int err;

	if (!differentiable(t) || t->ext)
		return 0;
	th->modes.grad_enabled = false;
	err = tensor_item(tensor_any(tensor_isnan(t)), &any);
	th->modes.grad_enabled = enabled;
	return err < 0 ? err : any != 0;
}

/* "tensor_mul at train.c:12" */
static const char *place_text(const tensor_node *n, char *buf, size_t size)
{
	char at[256];

	if (n->hooks && n->hooks->made.at)
		snprintf(buf, size, "the program called %s at %s", n->hooks->made.function,
			 call_place_text(n->hooks->made.at, at, sizeof(at)));
	else
		snprintf(buf, size, "record in anomaly mode to get the place of the call");
	return buf;
}

int anomaly_check(const tensor_node *n, tensor *const *grads)
{
	char text[320];

	for (uint32_t i = 0; i < n->nedges; i++) {
		int found = grads[i] ? has_nan(grads[i]) : 0;

		if (found < 0)
			return found;
		if (found)
			return tensor_fail(EDOM, "backward of %s (%s): gradient %u %s has NaN; %s",
					   n->type->op, n->type->name, i, SHAPE_STR(grads[i]),
					   place_text(n, text, sizeof(text)));
	}
	return 0;
}

void anomaly_explain(const tensor_node *n)
{
	const struct tensor_error e = *tensor_last_error();
	char text[320];

	tensor_fail(e.code, "%s; in the backward of %s: %s", e.text, n->type->op,
		    place_text(n, text, sizeof(text)));
	tensor_set_error_binding(e.binding);
}
