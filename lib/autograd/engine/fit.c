// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The one place that checks what a node returns. An operator that broadcast an input gets a
 * gradient of the broadcast shape, which is summed here; a dtype that was promoted is converted
 * back; anything else that does not fit is an error of the formula.
 */
#include "autograd/graph/autograd.h"

#include "iter/iter.h"

#include "family/copy.h"
#include "family/reduce.h"
#include "family/view.h"

static bool same_shape(const tensor *t, const struct output *o)
{
	if (t->ndim != o->ndim)
		return false;
	for (int i = 0; i < t->ndim; i++)
		if (t->sizes[i] != o->sizes[i])
			return false;
	return true;
}

/* Could a tensor of o's shape have been broadcast to t's? */
static bool was_broadcast(const tensor *t, const struct output *o)
{
	int lead = t->ndim - o->ndim;

	for (int i = 0; lead >= 0 && i < o->ndim; i++)
		if (o->sizes[i] != 1 && o->sizes[i] != t->sizes[i + lead])
			return false;
	return lead >= 0;
}

/* Over the dimensions that broadcasting made or stretched; consumes t. */
static tensor *sum_to(tensor *t, const struct output *o)
{
	int64_t dims[TENSOR_MAX_DIMS];
	int lead = t->ndim - o->ndim, n = 0;
	tensor *sum, *result;

	for (int i = 0; i < t->ndim; i++)
		if (i < lead || (o->sizes[i - lead] == 1 && t->sizes[i] != 1))
			dims[n++] = i;
	sum = call_sum_dim_IntList(t, (tensor_ints){ dims, n }, true, t->dtype);
	tensor_put(t);
	if (!sum || !lead)
		return sum;
	result = call_view(sum, (tensor_ints){ o->sizes, o->ndim });
	tensor_put(sum);
	return result;
}

static tensor *convert(tensor *t, const struct output *o)
{
	tensor *result = call__to_copy(t, TENSOR_OPTIONS(.dtype = o->dtype));

	tensor_put(t);
	return result;
}

tensor *gradient_fit(const tensor_node *from, int i, tensor *grad, const tensor_node *to,
		     unsigned nr)
{
	const struct output *o = &to->outputs[nr];
	char text[SHAPE_TEXT];

	if (unlikely(grad->device.type != o->device.type || grad->device.index != o->device.index))
		return tensor_fail_null(EINVAL,
					"%s: gradient %d is on another device than its "
					"tensor",
					from->type->name, i);
	tensor_get(grad);
	if (unlikely(!same_shape(grad, o))) {
		if (!was_broadcast(grad, o)) {
			tensor_put(grad);
			return tensor_fail_null(EINVAL,
						"%s: gradient %d must have shape %s, "
						"got %s",
						from->type->name, i,
						format_sizes(o->sizes, o->ndim, text, sizeof(text)),
						SHAPE_STR(grad));
		}
		grad = sum_to(grad, o);
	}
	if (grad && unlikely(grad->dtype != o->dtype))
		grad = convert(grad, o);
	return grad;
}
