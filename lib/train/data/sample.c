// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Loads a batch: calls the data set for each sample and stacks or collates what it gave. */
#include "train/data/loader.h"

#include "autograd/graph/callback.h"
#include "base/generator.h"
#include "family/copy.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- failures ---- */

/* Fills in the failure from the error record. */
static int failed(struct loader_failure *f, int64_t sample)
{
	const struct tensor_error *e = &thread()->error;

	f->code = e->code ? e->code : EINVAL;
	f->sample = sample;
	memcpy(f->text, e->text, sizeof(f->text));
	return -f->code;
}

/* ---- rows ---- */

/* A batch that is being loaded. */
struct loading {
	const struct batch_job *job;
	tensor **batch;	  /* outputs of the batch, owned; NULL before they are allocated */
	tensor **samples; /* with collate: count * outputs, owned */
	tensor_generator *generator;
};

static tensor *row_of(tensor *batch, int64_t row)
{
	return tensor_new_view(batch, batch->sizes + 1, batch->strides + 1, batch->ndim - 1,
			       batch->offset + row * batch->strides[0]);
}

static tensor *new_batch(const struct batch_job *job, int i, enum tensor_dtype dtype,
			 const int64_t *sizes, int ndim)
{
	int64_t shape[TENSOR_MAX_DIMS];

	if (ndim >= TENSOR_MAX_DIMS)
		return tensor_fail_null(
			EINVAL, "output %d has %d dimensions: a batch has one more, at most %d", i,
			ndim, TENSOR_MAX_DIMS);
	shape[0] = job->count;
	memcpy(shape + 1, sizes, (size_t)ndim * sizeof(*shape));
	return job->alloc(job->ctx, i, dtype, shape, ndim + 1);
}

static int check_plain(const tensor *t, int i)
{
	if (t == tensor_none || tensor_absent("get", t))
		return tensor_fail(EINVAL, "output %d was not set", i);
	if (t->ext || t->layout != TENSOR_STRIDED)
		return tensor_fail(EOPNOTSUPP, "output %d is a %s tensor: batches are strided", i,
				   tensor_layout_name(t->layout));
	return 0;
}

static bool same_type(const tensor *batch, const tensor *t)
{
	return batch->dtype == t->dtype && batch->ndim == t->ndim + 1 &&
	       !memcmp(batch->sizes + 1, t->sizes, (size_t)t->ndim * sizeof(*t->sizes));
}

/* Copies to memory of the same shape and dtype. */
static int copy_into(tensor *to, tensor *from)
{
	if (from->contiguous && from->device.type == TENSOR_CPU && to->contiguous) {
		if (to->data != from->data && from->numel)
			memcpy(to->data, from->data, (size_t)from->numel * itemsize(from));
		return 0;
	}
	return tensor_copy_(to, from) ? 0 : -thread()->error.code;
}

static int store_row(struct loading *x, int64_t row, int i, tensor *t)
{
	const struct batch_job *job = x->job;
	tensor *to;
	int err = check_plain(t, i);

	if (err < 0)
		return err;
	if (!x->batch[i]) {
		x->batch[i] = new_batch(job, i, t->dtype, t->sizes, t->ndim);
		if (!x->batch[i])
			return -thread()->error.code;
	}
	if (!same_type(x->batch[i], t))
		return tensor_fail(
			EINVAL,
			"output %d is %s %s, that of other samples %s %s: collate can stack them",
			i, tensor_dtype_name(t->dtype), SHAPE_STR(t),
			tensor_dtype_name(x->batch[i]->dtype),
			format_sizes(x->batch[i]->sizes + 1, x->batch[i]->ndim - 1,
				     (char[SHAPE_TEXT]){ 0 }, SHAPE_TEXT));
	to = row_of(x->batch[i], row);
	if (!to)
		return -thread()->error.code;
	err = copy_into(to, t);
	tensor_put(to);
	return err;
}

/* ---- samples ---- */

/* In the open scope: the rows that the data set may write to, or NULL. */
static int offer_rows(struct loading *x, int64_t row, tensor **outputs)
{
	const struct tensor_loader_options *o = &x->job->l->options;

	for (int i = 0; i < o->outputs; i++) {
		outputs[i] = NULL;
		if (!o->types || o->collate)
			continue;
		outputs[i] = scope_own(thread(), row_of(x->batch[i], row));
		if (!outputs[i])
			return -thread()->error.code;
	}
	return 0;
}

static int call_get(struct loading *x, int64_t index, tensor **outputs)
{
	const struct tensor_loader_options *o = &x->job->l->options;
	struct callback before = callback_begin();
	int err = o->get(o->ctx, index, outputs, o->outputs);

	return callback_end(&before, err, "get failed: %s", strerror(-err));
}

static int load_sample(struct loading *x, int64_t row, int64_t index)
{
	const struct batch_job *job = x->job;
	const struct tensor_loader_options *o = &job->l->options;
	tensor *outputs[TENSOR_LOADER_OUTPUTS];
	int err = 0;

	tensor_generator_manual_seed(x->generator,
				     sample_seed(job->l->seed, job->epoch,
						 whole_position(job->l, job->position + row)));
	tensor_scope {
		err = offer_rows(x, row, outputs);
		if (!err)
			err = call_get(x, index, outputs);
		for (int i = 0; i < o->outputs && !err; i++) {
			if (!o->collate)
				err = store_row(x, row, i, outputs[i]);
			else if (!(err = check_plain(outputs[i], i)))
				x->samples[row * o->outputs + i] = tensor_get(outputs[i]);
		}
	}
	return err;
}

/* Whether the loader does not need the batch any more. */
static bool cancelled(const struct batch_job *job)
{
	const struct loader_board *board = job->l->board;

	return job->at && (atomic_load_explicit(&board->stop, memory_order_relaxed) ||
			   atomic_load_explicit(&board->run, memory_order_relaxed) != job->run);
}

static void set_at(const struct batch_job *job, int64_t sample)
{
	if (job->at)
		atomic_store_explicit(&job->at->sample, sample, memory_order_relaxed);
}

static int load_samples(struct loading *x, struct loader_failure *failure)
{
	const struct batch_job *job = x->job;
	const int64_t *order = job->l->order;

	for (int64_t row = 0; row < job->count; row++) {
		int64_t at = job->position + row;
		/* Read once: the loader writes the order of another epoch after a restart. */
		int64_t index = order ? __atomic_load_n(&order[at], __ATOMIC_RELAXED) :
					at % job->l->options.size;

		if (cancelled(job)) {
			tensor_fail(ECANCELED, "the batch is not needed any more");
			return failed(failure, -1);
		}
		set_at(job, index);
		if (load_sample(x, row, index) < 0)
			return failed(failure, index);
	}
	return 0;
}

/* ---- collate ---- */

/* The result of collate, in memory of the batch. */
static int take_collated(struct loading *x, int i, tensor *t)
{
	const struct batch_job *job = x->job;
	int err = check_plain(t, i);

	if (err < 0)
		return err;
	x->batch[i] = job->alloc(job->ctx, i, t->dtype, t->sizes, t->ndim);
	return x->batch[i] ? copy_into(x->batch[i], t) : -thread()->error.code;
}

static int collate(struct loading *x)
{
	const struct batch_job *job = x->job;
	const struct tensor_loader_options *o = &job->l->options;
	tensor *outputs[TENSOR_LOADER_OUTPUTS] = { 0 };
	int err = 0;

	tensor_generator_manual_seed(x->generator,
				     sample_seed(~job->l->seed, job->epoch,
						 whole_position(job->l, job->position)));
	tensor_scope {
		struct callback before = callback_begin();

		err = o->collate(o->ctx, x->samples, job->count, outputs, o->batch_outputs);
		err = callback_end(&before, err, "collate failed: %s", strerror(-err));
		for (int i = 0; i < o->batch_outputs && !err; i++)
			err = take_collated(x, i, outputs[i]);
	}
	return err;
}

/* ---- batches ---- */

/* Allocates the memory that the samples are written to. */
static int prepare(struct loading *x)
{
	const struct tensor_loader_options *o = &x->job->l->options;

	if (o->collate) {
		x->samples = calloc((size_t)x->job->count, (size_t)o->outputs * sizeof(tensor *));
		return x->samples ? 0 : tensor_fail(ENOMEM, "no memory for the list of samples");
	}
	for (int i = 0; i < o->outputs && o->types; i++) {
		x->batch[i] = new_batch(x->job, i, o->types[i].dtype, o->types[i].shape.data,
					(int)o->types[i].shape.len);
		if (!x->batch[i])
			return -thread()->error.code;
	}
	return 0;
}

static void drop_all(tensor **t, int64_t n)
{
	for (int64_t i = 0; t && i < n; i++) {
		tensor_put(t[i]);
		t[i] = NULL;
	}
}

int load_batch(const struct batch_job *job, tensor **outputs, struct loader_failure *failure)
{
	const struct tensor_loader_options *o = &job->l->options;
	struct loading x = { .job = job, .batch = outputs };
	struct thread_modes before;
	int err;

	memset(outputs, 0, TENSOR_LOADER_OUTPUTS * sizeof(*outputs));
	x.generator = tensor_generator_new(0);
	if (!x.generator)
		return failed(failure, -1);
	before = enter_program(x.generator);
	err = prepare(&x) < 0 ? failed(failure, -1) : load_samples(&x, failure);
	if (!err && o->collate) {
		set_at(job, AT_COLLATE);
		err = collate(&x) < 0 ? failed(failure, -1) : 0;
	}
	thread()->modes = before;
	drop_all(x.samples, o->collate ? job->count * o->outputs : 0);
	free(x.samples);
	if (err < 0)
		drop_all(outputs, TENSOR_LOADER_OUTPUTS);
	tensor_generator_release(x.generator);
	return err;
}

TENSOR_EXPORT int tensor_get_rows(void *ctx, int64_t index, tensor **outputs, int n)
{
	tensor *const *tensors = ctx;

	if (!tensors || !outputs)
		return null_argument_code("get_rows");
	for (int i = 0; i < n; i++) {
		tensor *t = tensors[i], *row;

		if (tensor_absent("get_rows", t))
			return -thread()->error.code;
		if (t->ext || t->layout != TENSOR_STRIDED || !t->ndim || index < 0 ||
		    index >= t->sizes[0])
			return tensor_fail(EINVAL, "get_rows: tensor %d is %s and has no row %lld",
					   i, SHAPE_STR(t), (long long)index);
		row = scope_own(thread(), row_of(t, index));
		if (!row)
			return -thread()->error.code;
		outputs[i] = row;
	}
	return 0;
}
