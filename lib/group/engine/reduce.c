// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Reductions of the parts of several ranks, by the library's operators over a dimension of ranks. */
#include "group/engine/engine.h"

#include "core/scope.h"
#include "storage/devices.h"

#include "family/reduce.h"

int group_reduce_check(const char *what, enum tensor_dtype d, enum tensor_group_op op)
{
	if (op < TENSOR_GROUP_SUM || op > TENSOR_GROUP_MAX)
		return tensor_fail(EINVAL, "%s: unknown operation %d", what, (int)op);
	if (dtype_is_f8(d))
		return tensor_fail(EINVAL, "%s: %s is for storage only; convert it first", what,
				   tensor_dtype_name(d));
	if (op == TENSOR_GROUP_MEAN && dtype_is_integral(d))
		return tensor_fail(EINVAL, "%s: %s has no mean", what, tensor_dtype_name(d));
	if ((op == TENSOR_GROUP_MIN || op == TENSOR_GROUP_MAX) && dtype_is_complex(d))
		return tensor_fail(EINVAL, "%s: %s has no minimum and maximum", what,
				   tensor_dtype_name(d));
	return 0;
}

static tensor *reduce(tensor *out, tensor *parts, enum tensor_dtype d, enum tensor_group_op op)
{
	const int64_t first = 0;
	const tensor_ints dim = { &first, 1 };

	switch (op) {
	case TENSOR_GROUP_MEAN:
		return tensor_mean_dim_opt_out(out, parts, dim, false, d);
	case TENSOR_GROUP_PRODUCT:
		return tensor_prod_dim_opt_out(out, parts, 0, false, d);
	case TENSOR_GROUP_MIN:
		return tensor_amin_out(out, parts, dim, false);
	case TENSOR_GROUP_MAX:
		return tensor_amax_out(out, parts, dim, false);
	default:
		return tensor_sum_dim_opt_out(out, parts, dim, false, d);
	}
}

TENSOR_EXPORT int group_reduce(void *to, const void *parts, ptrdiff_t pitch, int n,
			       int64_t elements, enum tensor_dtype d, enum tensor_group_op op)
{
	/* As bytes: memory of bool that holds no bool yet would be refused. */
	const bool is_or = op == TENSOR_GROUP_SUM || op == TENSOR_GROUP_MAX;
	const int64_t sizes[] = { n, elements };
	const int64_t strides[] = { pitch / dtype_sizes[d], 1 };
	const tensor_options options = { .dtype = d == TENSOR_BOOL ? TENSOR_U8 : d };
	struct thread_modes before;
	bool done = false;

	if (!elements)
		return 0;
	before = thread_enter_plain();
	tensor_scope {
		tensor *out = tensor_from_blob(to, (tensor_ints){ sizes + 1, 1 }, TENSOR_NO_INTS,
					       options, NULL, NULL);
		tensor *in = tensor_from_blob((void *)parts, (tensor_ints){ sizes, 2 },
					      (tensor_ints){ strides, 2 }, options, NULL, NULL);

		if (d == TENSOR_BOOL)
			op = is_or ? TENSOR_GROUP_MAX : TENSOR_GROUP_MIN;
		done = out && in && reduce(out, in, options.dtype, op);
	}
	thread()->modes = before;
	return done ? 0 : -thread()->error.code;
}

/* ---- on a device ---- */

void *group_enter_stream(tensor_device device, void *stream)
{
	const struct tensor_streams *s = device_streams(device);
	void *before = s ? s->current(device) : NULL;

	if (s && before != stream)
		s->set(device, stream);
	return before;
}

TENSOR_EXPORT tensor *group_parts_new(const tensor_request *r)
{
	const int64_t sizes[] = { r->group->size, r->n };
	const tensor_device device = r->group->device;
	void *before = group_enter_stream(device, r->stream);
	tensor *parts = tensor_new(device, (enum tensor_dtype)r->call.dtype, sizes, 2);

	group_enter_stream(device, before);
	return parts;
}

TENSOR_EXPORT int group_reduce_parts(const tensor_request *r, tensor *parts)
{
	const enum tensor_dtype d = (enum tensor_dtype)r->call.dtype;
	const int64_t stride = 1;
	tensor *to = r->out_packed ? r->out_packed : r->out_tensor;
	void *stream = group_enter_stream(r->group->device, r->stream);
	struct thread_modes before = thread_enter_plain();
	tensor *flat = tensor_new_view(to, &r->n, &stride, 1, 0);
	bool done = false;

	tensor_scope
		done = flat && reduce(flat, parts, d, (enum tensor_group_op)r->call.op);
	tensor_put(flat);
	thread()->modes = before;
	group_enter_stream(r->group->device, stream);
	return done ? 0 : -thread()->error.code;
}
