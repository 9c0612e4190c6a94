// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Gradients that travel together. All ranks send the buckets in one order, whatever order gradients come in. */
#include "train/parallel/parallel.h"

#include "family/copy.h"
#include "family/factory.h"
#include "sharing/link.h"

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

/* Gives the parameters their places; a bucket has one dtype. The sizes, in elements, and dtypes of the buckets. */
static int divide(tensor_data_parallel *dp, int64_t *sizes, enum tensor_dtype *dtypes)
{
	int n = 0;

	for (int i = 0; i < dp->n; i++) {
		struct parameter *p = &dp->parameters[dp->order[i]];
		enum tensor_dtype d = dtype_of(dp, p);
		int64_t bytes = p->leaf->numel * dtype_sizes[d];

		if (!n || dtypes[n - 1] != d ||
		    (sizes[n - 1] && sizes[n - 1] * dtype_sizes[d] + bytes > limit_of(dp, n - 1))) {
			sizes[n] = 0;
			dtypes[n++] = d;
		}
		p->bucket = n - 1;
		p->offset = sizes[n - 1];
		sizes[n - 1] += p->leaf->numel;
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
	for (int i = 0; i < dp->nbuckets; i++)
		dp->buckets[i].pending = 0;
	for (int i = 0; i < dp->n; i++) {
		dp->parameters[i].ready = false;
		dp->buckets[dp->parameters[i].bucket].pending++;
	}
	dp->next = 0;
}

int buckets_make(tensor_data_parallel *dp)
{
	int64_t *sizes = calloc((size_t)dp->n + 1, sizeof(*sizes));
	enum tensor_dtype *dtypes = calloc((size_t)dp->n + 1, sizeof(*dtypes));
	int n, err = 0;

	buckets_free(dp);
	dp->buckets = calloc((size_t)dp->n + 1, sizeof(*dp->buckets));
	if (!sizes || !dtypes || !dp->buckets)
		err = tensor_fail(ENOMEM, "data_parallel: no memory");
	n = err ? 0 : divide(dp, sizes, dtypes);
	for (int i = 0; i < n && !err; i++) {
		dp->buckets[i].flat = tensor_new(TENSOR_DEVICE_CPU, dtypes[i], &sizes[i], 1);
		if (!dp->buckets[i].flat)
			err = -ENOMEM;
		else {
			share_memory(dp, dp->buckets[i].flat);
			dp->nbuckets++;
		}
	}
	free(sizes);
	free(dtypes);
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

/* grad NULL: zeros. */
static int add(struct parameter *p, tensor *grad)
{
	struct thread_modes before = thread_enter_plain();
	tensor *part = bucket_part(p);
	bool done = part && (grad ? call_copy_(part, grad) : call_zero_(part));

	thread()->modes = before;
	tensor_put(part);
	if (!done)
		return -thread()->error.code;
	p->ready = true;
	p->dp->buckets[p->bucket].pending--;
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
