// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The public operations: checks, and tensors in contiguous memory where the engine can use it. */
#include "group/group.h"

#include "core/trace.h"
#include "iter/iter.h"
#include "storage/devices.h"

#include "family/copy.h"

/* The arguments of one call. part: the tensor that all ranks have, whose shape they compare. */
struct arguments {
	enum group_kind kind;
	int op, root;
	tensor *out, *in, *part;
};

static const char *name_of(const struct arguments *a)
{
	return group_kind_names[a->kind];
}

static bool is_root(const tensor_group *g, const struct arguments *a)
{
	return a->root == g->rank;
}

/* ---- checks ---- */

static int check_tensor(const struct arguments *a, const char *which, const tensor *t)
{
	if (!tensor_given(t))
		return tensor_fail(EINVAL, "%s: %s is NULL", name_of(a), which);
	if (tensor_absent(name_of(a), t))
		return -EINVAL;
	if (t->ext || t->layout != TENSOR_STRIDED)
		return tensor_fail(EOPNOTSUPP, "%s: %s is no strided tensor of plain numbers",
				   name_of(a), which);
	return 0;
}

static int check_out(const struct arguments *a, const tensor *out)
{
	int err = check_tensor(a, "out", out);

	if (!err)
		err = tensor_check_writable(name_of(a), out);
	if (!err && tensor_overlaps_itself(out))
		err = tensor_fail(EINVAL, "%s: elements of out share memory", name_of(a));
	return err;
}

/* whole is [size * n, ...] where part is [n, ...]; times 1: both have one shape. */
static int check_shapes(const struct arguments *a, const tensor *whole, const tensor *part,
			int times)
{
	bool same = whole->ndim == part->ndim && (whole->ndim || times == 1);

	for (int i = 0; same && i < whole->ndim; i++) {
		int64_t n;

		/* An empty tensor can have any sizes. */
		same = !__builtin_mul_overflow(part->sizes[i], i ? 1 : times, &n) &&
		       whole->sizes[i] == n;
	}
	if (!same)
		return tensor_fail(
			EINVAL, "%s: out is %s, in %s: one must have the shape of the other%s",
			name_of(a), SHAPE_STR(a->out), SHAPE_STR(a->in),
			times == 1 ? "" : ", times the size of the group in dimension 0");
	if (whole->dtype != part->dtype)
		return tensor_fail(EINVAL, "%s: out is %s, in %s", name_of(a),
				   tensor_dtype_name(a->out->dtype),
				   tensor_dtype_name(a->in->dtype));
	return 0;
}

/* The others read parts of `in` of an all_to_all after this rank has begun to write. */
static int check_overlap(const struct arguments *a)
{
	enum overlap o = tensor_overlap(a->out, a->in);

	if (o == OVERLAP_NONE ||
	    (o == OVERLAP_SAME && sizes_equal(a->out, a->in) && a->kind != GROUP_ALL_TO_ALL))
		return 0;
	return tensor_fail(EINVAL, "%s: out and in share a part of their memory", name_of(a));
}

static int check_group(tensor_group *g, const struct arguments *a)
{
	int err = group_check(g, name_of(a));

	if (err < 0)
		return err;
	if (a->root < 0 || a->root >= g->size)
		return tensor_fail(EINVAL, "%s: rank %d in a group of %d", name_of(a), a->root,
				   g->size);
	return 0;
}

/* ---- memory ---- */

/* Where the engine reads and writes the tensors. */
static tensor_device place_of(const tensor_group *g, const struct arguments *a)
{
	const struct group_device *device = g->engine->device;

	return device && a->part ? device->place(g, a->kind, a->part) : TENSOR_DEVICE_CPU;
}

/* An engine can use its memory as it is. */
static bool is_plain(const tensor *t, tensor_device place)
{
	return t->device.type == place.type && t->device.index == place.index && t->contiguous;
}

/* The tensor that the engine reads: t, or a copy in *packed. NULL with the error set. */
static tensor *readable(tensor *t, tensor_device place, tensor **packed)
{
	struct thread_modes before;
	bool done;

	*packed = NULL;
	if (is_plain(t, place))
		return t;
	*packed = tensor_new(place, t->dtype, t->sizes, t->ndim);
	if (!*packed)
		return NULL;
	before = thread_enter_plain();
	done = call_copy_(*packed, t);
	thread()->modes = before;
	return done ? *packed : NULL;
}

static tensor *writable(tensor *t, tensor_device place, tensor **packed)
{
	*packed = NULL;
	if (is_plain(t, place))
		return t;
	*packed = tensor_new(place, t->dtype, t->sizes, t->ndim);
	return *packed;
}

static int prepare(tensor_request *r, const struct arguments *a, tensor_device place)
{
	tensor *in = NULL, *out = NULL;

	if (a->in) {
		r->in_tensor = tensor_get(a->in);
		in = readable(a->in, place, &r->in_packed);
		if (!in)
			return -1;
	}
	if (a->out) {
		r->out_tensor = tensor_get(a->out);
		/* An operation in place on packed memory: one copy for both. */
		if (a->out == a->in && r->in_packed) {
			out = r->out_packed = tensor_get(r->in_packed);
		} else {
			out = writable(a->out, place, &r->out_packed);
			if (!out)
				return -1;
		}
	}
	r->in = in ? in->data : NULL;
	r->out = out ? out->data : NULL;
	return 0;
}

static struct group_call call_of(const struct arguments *a, tensor_device place)
{
	struct group_call c = {
		.kind = a->kind, .op = a->op, .root = a->root, .device = place.type
	};

	if (a->part) {
		c.dtype = a->part->dtype;
		c.ndim = a->part->ndim;
		memcpy(c.sizes, a->part->sizes, (size_t)c.ndim * sizeof(c.sizes[0]));
	}
	return c;
}

/* The thread that carries the operation out writes the results in the stream of this one. */
static void take_stream(tensor_request *r, const struct arguments *a)
{
	const tensor *t = a->out && a->out->device.type != TENSOR_CPU ? a->out : a->in;
	const struct tensor_streams *streams = t ? device_streams(t->device) : NULL;

	if (!streams)
		return;
	r->device = t->device;
	r->stream = streams->current(t->device);
}

/* A group that works on a device uses no other one of this type: its ranks have them. */
static int check_device(const tensor_group *g, const struct arguments *a)
{
	const tensor *all[] = { a->out, a->in };

	for (int i = 0; i < 2; i++)
		if (all[i] && all[i]->device.type == g->device.type &&
		    all[i]->device.index != g->device.index)
			return tensor_fail(EINVAL,
					   "%s: a tensor is on device %d, that of this rank is %d",
					   name_of(a), all[i]->device.index, g->device.index);
	return 0;
}

static int begin(tensor_request *r, const struct arguments *a, bool later)
{
	const tensor_device place = place_of(r->group, a);

	if (check_device(r->group, a) < 0 ||
	    device_refuse_capture(place, name_of(a), "exchanges data with other ranks") < 0)
		return -1;
	r->call = call_of(a, place);
	take_stream(r, a);
	if (prepare(r, a, place) < 0)
		return -1;
	return place.type == TENSOR_CPU ? 0 : r->group->engine->device->begin(r, later);
}

/* n: elements of a part. The arguments were checked. */
static int submit(tensor_group *g, const struct arguments *a, int64_t n, tensor_request **to)
{
	tensor_request r;

	memset(&r, 0, offsetof(tensor_request, text));
	r.group = g;
	r.n = n;
	if (begin(&r, a, to != NULL) < 0) {
		tensor_put(r.out_packed);
		tensor_put(r.in_packed);
		tensor_put(r.out_tensor);
		tensor_put(r.in_tensor);
		error_in(name_of(a));
		return -thread()->error.code;
	}
	return request_submit(&r, to);
}

/* ---- operations ---- */

TENSOR_EXPORT int tensor_group_barrier(tensor_group *g, tensor_request **request)
{
	const struct arguments a = { .kind = GROUP_BARRIER };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_barrier");
	return err ? err : submit(g, &a, 0, request);
}

TENSOR_EXPORT int tensor_group_broadcast(tensor_group *g, tensor *t, int root,
					 tensor_request **request)
{
	struct arguments a = { .kind = GROUP_BROADCAST, .root = root, .part = t };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_broadcast");
	if (!err)
		err = is_root(g, &a) ? check_tensor(&a, "t", t) : check_out(&a, t);
	if (err < 0)
		return err;
	if (is_root(g, &a))
		a.in = t;
	else
		a.out = t;
	return submit(g, &a, t->numel, request);
}

/* all_reduce, reduce. */
static int reduce(tensor_group *g, struct arguments *a, tensor_request **request)
{
	bool has_out = a->kind == GROUP_ALL_REDUCE || is_root(g, a);
	int err = check_tensor(a, "in", a->in);

	if (!has_out)
		a->out = NULL;
	if (!err)
		err = group_reduce_check(name_of(a), a->in->dtype, (enum tensor_group_op)a->op);
	if (!err && has_out) {
		err = check_out(a, a->out);
		if (!err)
			err = check_shapes(a, a->out, a->in, 1);
		if (!err)
			err = check_overlap(a);
	}
	a->part = a->in;
	return err ? err : submit(g, a, a->in->numel, request);
}

TENSOR_EXPORT int tensor_group_all_reduce(tensor_group *g, tensor *out, tensor *in,
					  enum tensor_group_op op, tensor_request **request)
{
	struct arguments a = { GROUP_ALL_REDUCE, (int)op, 0, out, in, NULL };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_all_reduce");
	return err ? err : reduce(g, &a, request);
}

TENSOR_EXPORT int tensor_group_reduce(tensor_group *g, tensor *out, tensor *in,
				      enum tensor_group_op op, int root, tensor_request **request)
{
	struct arguments a = { GROUP_REDUCE, (int)op, root, out, in, NULL };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_reduce");
	return err ? err : reduce(g, &a, request);
}

/* Both tensors on this rank; out_times and in_times: which of them has a part for each rank. */
static int exchange(tensor_group *g, struct arguments *a, bool out_whole, bool in_whole,
		    tensor_request **request)
{
	tensor *whole = out_whole ? a->out : a->in, *part = out_whole ? a->in : a->out;
	int err = check_tensor(a, "in", a->in);

	if (!err)
		err = check_out(a, a->out);
	if (!err)
		err = out_whole == in_whole ? check_shapes(a, a->out, a->in, 1) :
					      check_shapes(a, whole, part, g->size);
	if (!err && out_whole && in_whole && (!a->in->ndim || a->in->sizes[0] % g->size))
		err = tensor_fail(EINVAL, "%s: dimension 0 of %s is no multiple of %d ranks",
				  name_of(a), SHAPE_STR(a->in), g->size);
	if (!err)
		err = check_overlap(a);
	a->part = a->in;
	return err ? err :
		     submit(g, a, out_whole && in_whole ? a->in->numel / g->size : part->numel,
			    request);
}

TENSOR_EXPORT int tensor_group_reduce_scatter(tensor_group *g, tensor *out, tensor *in,
					      enum tensor_group_op op, tensor_request **request)
{
	struct arguments a = { GROUP_REDUCE_SCATTER, (int)op, 0, out, in, NULL };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_reduce_scatter");
	if (!err)
		err = check_tensor(&a, "in", in);
	if (!err)
		err = group_reduce_check(name_of(&a), in->dtype, op);
	return err ? err : exchange(g, &a, false, true, request);
}

TENSOR_EXPORT int tensor_group_all_gather(tensor_group *g, tensor *out, tensor *in,
					  tensor_request **request)
{
	struct arguments a = { GROUP_ALL_GATHER, 0, 0, out, in, NULL };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_all_gather");
	return err ? err : exchange(g, &a, true, false, request);
}

TENSOR_EXPORT int tensor_group_gather(tensor_group *g, tensor *out, tensor *in, int root,
				      tensor_request **request)
{
	struct arguments a = { GROUP_GATHER, 0, root, out, in, NULL };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_gather");
	if (!err && is_root(g, &a))
		return exchange(g, &a, true, false, request);
	if (!err)
		err = check_tensor(&a, "in", in);
	a.out = NULL;
	a.part = in;
	return err ? err : submit(g, &a, in->numel, request);
}

TENSOR_EXPORT int tensor_group_scatter(tensor_group *g, tensor *out, tensor *in, int root,
				       tensor_request **request)
{
	struct arguments a = { GROUP_SCATTER, 0, root, out, in, out };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_scatter");
	if (!err)
		err = check_out(&a, out);
	if (!err && is_root(g, &a)) {
		err = check_tensor(&a, "in", in);
		if (!err)
			err = check_shapes(&a, in, out, g->size);
		if (!err)
			err = check_overlap(&a);
	} else
		a.in = NULL;
	return err ? err : submit(g, &a, out->numel, request);
}

TENSOR_EXPORT int tensor_group_all_to_all(tensor_group *g, tensor *out, tensor *in,
					  tensor_request **request)
{
	struct arguments a = { GROUP_ALL_TO_ALL, 0, 0, out, in, NULL };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_all_to_all");
	if (!err && out == in)
		err = tensor_fail(EINVAL, "all_to_all: out and in are one tensor");
	return err ? err : exchange(g, &a, true, true, request);
}

static int check_peer(const tensor_group *g, const struct arguments *a)
{
	return a->root == g->rank ?
		       tensor_fail(EINVAL, "%s: rank %d is this rank", name_of(a), a->root) :
		       0;
}

TENSOR_EXPORT int tensor_group_send(tensor_group *g, tensor *in, int to, tensor_request **request)
{
	struct arguments a = { GROUP_SEND, 0, to, NULL, in, in };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_send");
	if (!err)
		err = check_peer(g, &a);
	if (!err)
		err = check_tensor(&a, "in", in);
	return err ? err : submit(g, &a, in->numel, request);
}

TENSOR_EXPORT int tensor_group_recv(tensor_group *g, tensor *out, int from,
				    tensor_request **request)
{
	struct arguments a = { GROUP_RECV, 0, from, out, NULL, out };
	int err = check_group(g, &a);

	TRACE_SPAN("group", "tensor_group_recv");
	if (!err)
		err = check_peer(g, &a);
	if (!err)
		err = check_out(&a, out);
	return err ? err : submit(g, &a, out->numel, request);
}
