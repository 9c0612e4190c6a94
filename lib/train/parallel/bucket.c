// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Gradients that travel together. All ranks send the buckets in one order, whatever order gradients come in. */
#include "train/parallel/parallel.h"

#include "family/copy.h"
#include "family/factory.h"
#include "sharing/link.h"
#include "storage/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <tensor/storage.h>

#define BUCKET_BYTES INT64_C(26214400)
#define FIRST_BYTES  INT64_C(1048576) /* so that the first message goes early */

static enum tensor_dtype dtype_of(const tensor_data_parallel *dp, const struct parameter *p)
{
	return dp->options.dtype && !dtype_is_complex(p->leaf->dtype) ?
		       dp->options.dtype :
		       (enum tensor_dtype)p->leaf->dtype;
}

static int64_t limit_of(const tensor_data_parallel *dp, int bucket)
{
	return dp->options.bucket_bytes ? dp->options.bucket_bytes :
	       bucket			? BUCKET_BYTES :
					  FIRST_BYTES;
}

/* What a bucket is made of. */
struct plan {
	int64_t numel;
	enum tensor_dtype dtype;
	tensor_device device;
};

static bool has_room(const tensor_data_parallel *dp, const struct plan *b, int i,
		     const struct parameter *p)
{
	const tensor_device device = p->leaf->device;
	int64_t bytes = (b->numel + p->leaf->numel) * dtype_sizes[b->dtype];

	return b->dtype == dtype_of(dp, p) && b->device.type == device.type &&
	       b->device.index == device.index && (!b->numel || bytes <= limit_of(dp, i));
}

/* Gives the parameters their places; a bucket has one dtype and device. Returns the number of buckets. */
static int divide(tensor_data_parallel *dp, struct plan *plans)
{
	int n = 0;

	for (int i = 0; i < dp->n; i++) {
		struct parameter *p = &dp->parameters[dp->order[i]];

		if (!n || !has_room(dp, &plans[n - 1], n - 1, p))
			plans[n++] = (struct plan){ 0, dtype_of(dp, p), p->leaf->device };
		p->bucket = n - 1;
		p->offset = plans[n - 1].numel;
		plans[n - 1].numel += p->leaf->numel;
	}
	return n;
}

void buckets_free(tensor_data_parallel *dp)
{
	for (int i = 0; i < dp->nbuckets; i++)
		tensor_put(dp->buckets[i].flat);
	free(dp->buckets);
	dp->buckets = NULL;
	dp->nbuckets = 0;
}

/* Ranks of one machine read large buckets in place if they are in buffers; without memory for one they copy. */
static void share_memory(const tensor_data_parallel *dp, tensor *flat)
{
	if (tensor_group_size(dp->group) > 1 && !strcmp(tensor_group_engine(dp->group), "local") &&
	    flat->numel * (int64_t)itemsize(flat) >= FIRST_BYTES)
		tensor_share_memory(flat);
}

static void begin(tensor_data_parallel *dp)
{
	for (int i = 0; i < dp->nbuckets; i++) {
		dp->buckets[i].pending = 0;
		dp->buckets[i].filled = false;
	}
	for (int i = 0; i < dp->n; i++) {
		dp->parameters[i].ready = false;
		dp->buckets[dp->parameters[i].bucket].pending++;
	}
	dp->next = 0;
}

int buckets_make(tensor_data_parallel *dp)
{
	struct plan *plans = calloc((size_t)dp->n + 1, sizeof(*plans));
	int n, err = 0;

	buckets_free(dp);
	dp->buckets = calloc((size_t)dp->n + 1, sizeof(*dp->buckets));
	if (!plans || !dp->buckets)
		err = tensor_fail(ENOMEM, "data_parallel: no memory");
	n = err ? 0 : divide(dp, plans);
	for (int i = 0; i < n && !err; i++) {
		dp->buckets[i].flat =
			tensor_new(plans[i].device, plans[i].dtype, &plans[i].numel, 1);
		if (!dp->buckets[i].flat)
			err = -ENOMEM;
		else {
			share_memory(dp, dp->buckets[i].flat);
			dp->nbuckets++;
		}
	}
	free(plans);
	if (!err)
		begin(dp);
	return err;
}

tensor *bucket_part(const struct parameter *p)
{
	int64_t strides[TENSOR_MAX_DIMS];

	contiguous_strides(p->leaf->sizes, p->leaf->ndim, strides);
	return tensor_new_view(p->dp->buckets[p->bucket].flat, p->leaf->sizes, strides,
			       p->leaf->ndim, p->offset);
}

/* Sends the next buckets as far as they are complete. */
static int send_complete(tensor_data_parallel *dp)
{
	int err = 0;

	while (!err && dp->next < dp->nbuckets && !dp->buckets[dp->next].pending) {
		struct bucket *b = &dp->buckets[dp->next++];

		err = tensor_group_all_reduce(dp->group, b->flat, b->flat, TENSOR_GROUP_MEAN,
					      &b->request);
	}
	return err;
}

/* Gradients may come in several streams: that of the last one, in which the bucket is sent, waits for the others. */
static bool order_after_last(struct bucket *b)
{
	const tensor_device device = b->flat->device;
	const struct tensor_streams *s = device_streams(device);
	void *last = b->stream, *event;
	bool ok = true;

	if (!s)
		return true;
	b->stream = s->current(device);
	if (last == b->stream || !b->filled)
		return true;
	event = s->record(device, last);
	ok = event && !s->wait(device, b->stream, event);
	if (event)
		s->release(device, event);
	return ok;
}

/* grad NULL: zeros. */
static int add(struct parameter *p, tensor *grad)
{
	struct thread_modes before = thread_enter_plain();
	struct bucket *b = &p->dp->buckets[p->bucket];
	tensor *part = bucket_part(p);
	bool done = part && order_after_last(b) &&
		    (grad ? call_copy_(part, grad) : call_zero_(part));

	thread()->modes = before;
	tensor_put(part);
	if (!done)
		return -thread()->error.code;
	p->ready = true;
	b->filled = true;
	b->pending--;
	return send_complete(p->dp);
}

int bucket_add(struct parameter *p, tensor *grad)
{
	if (grad->layout != TENSOR_STRIDED)
		return tensor_fail(EOPNOTSUPP, "data_parallel: a gradient is sparse");
	return add(p, grad);
}

int bucket_add_zeros(struct parameter *p)
{
	return add(p, NULL);
}

/* The operation has not ended in time: only then does the request remain. */
static bool is_late(int err)
{
	return err == -ETIMEDOUT && !strncmp(thread()->error.text, "request_wait:", 13);
}

int buckets_wait(tensor_data_parallel *dp, int64_t timeout_ns)
{
	int64_t until = link_deadline(timeout_ns);
	int err;

	for (int i = 0; i < dp->nbuckets; i++) {
		tensor_request *r = dp->buckets[i].request;
		int one = r ? tensor_request_wait(r, timeout_ns < 0 ? -1 : link_left(until)) : 0;

		if (is_late(one))
			return one;
		dp->buckets[i].request = NULL;
		if (one < 0 && !dp->err) {
			dp->err = one;
			snprintf(dp->text, sizeof(dp->text), "%s", thread()->error.text);
		}
	}
	if (timeout_ns >= 0)
		return 0;
	begin(dp);
	err = dp->err;
	dp->err = 0;
	return err ? tensor_fail(-err, "%s", dp->text) : 0;
}
