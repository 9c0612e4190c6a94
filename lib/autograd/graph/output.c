// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Checks of tensors that the program gives to autograd (output.h). */
#include "autograd/graph/output.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int output_check(const struct output *o, unsigned accept, const tensor *t, const char *fmt, ...)
{
	char what[128], text[SHAPE_TEXT];
	va_list args;

	if (likely(output_same_shape(o, t) && t->dtype == o->dtype &&
		   same_device(t->device, o->device) && accept & LAYOUT_BIT(t->layout) &&
		   (!t->inference || accept & ALSO_INFERENCE) &&
		   (!(t->keys & FORWARD_BIT) || accept & ALSO_DUAL)))
		return 0;
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	if (!output_same_shape(o, t) || t->dtype != o->dtype)
		return tensor_fail(EINVAL, "%s %s of %s, got %s of %s", what,
				   format_sizes(o->sizes, o->ndim, text, sizeof(text)),
				   tensor_dtype_name(o->dtype), SHAPE_STR(t),
				   tensor_dtype_name(t->dtype));
	if (!same_device(t->device, o->device))
		return tensor_fail(EINVAL, "%s a tensor on the same device", what);
	if (!(accept & LAYOUT_BIT(t->layout)))
		return tensor_fail(EINVAL, "%s a %s tensor, got a %s one", what,
				   tensor_layout_name(o->layout), tensor_layout_name(t->layout));
	if (t->inference && !(accept & ALSO_INFERENCE))
		return tensor_fail(EINVAL,
				   "%s a tensor that was not made in inference mode; use a clone",
				   what);
	return tensor_fail(EINVAL, "%s a tensor without a tangent", what);
}
