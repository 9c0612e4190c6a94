// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The public functions of data loaders, see <tensor/data.h>. */
#include "train/data/loader.h"

#include "base/generator.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- options ---- */

static int invalid(const char *what, long long value)
{
	return tensor_fail(EINVAL, "loader_new: %s, got %lld", what, value);
}

static int check_numbers(const struct tensor_loader_options *o)
{
	if (o->size < 0)
		return invalid("size is not negative", o->size);
	if (o->outputs < 1 || o->outputs > TENSOR_LOADER_OUTPUTS)
		return invalid("outputs is 1 to 16", o->outputs);
	if (o->batch_outputs < 0 || o->batch_outputs > TENSOR_LOADER_OUTPUTS)
		return invalid("batch_outputs is 0 to 16", o->batch_outputs);
	if (o->batch_size < 0)
		return invalid("batch_size is not negative", o->batch_size);
	if (o->workers < 0 || o->workers > TENSOR_LOADER_WORKERS)
		return invalid("workers is 0 to 256", o->workers);
	if (o->prefetch < 0 || o->prefetch > PREFETCH_MAX)
		return invalid("prefetch is 0 to 64", o->prefetch);
	if (o->timeout_ms < 0)
		return invalid("timeout_ms is not negative", o->timeout_ms);
	if (o->length < 0 || (o->length && !o->size))
		return invalid("length is not negative, and 0 for an empty data set", o->length);
	/* A multiple that fits into memory, and into the bytes of an order. */
	if (o->length > INT64_MAX / 64)
		return invalid("length is too large", o->length);
	if (o->size > INT64_MAX / 64)
		return invalid("size is too large", o->size);
	if (o->shards < 0)
		return invalid("shards is not negative", o->shards);
	if (o->shard < 0 || o->shard >= (o->shards ? o->shards : 1))
		return invalid("shard is 0 to shards - 1", o->shard);
	return 0;
}

static int check_options(const struct tensor_loader_options *o)
{
	if (!o || !o->get)
		return tensor_fail(EINVAL, "loader_new: %s is NULL", o ? "get" : "options");
	for (size_t i = 0; i < ARRAY_SIZE(o->reserved); i++)
		if (o->reserved[i])
			return invalid("reserved is 0", (long long)o->reserved[i]);
	if (o->batch_outputs && o->batch_outputs != o->outputs && !o->collate)
		return invalid("batch_outputs other than outputs needs collate", o->batch_outputs);
	return check_numbers(o);
}

static int copy_types(tensor_loader *l, const struct tensor_sample_type *types)
{
	for (int i = 0; types && i < l->options.outputs; i++) {
		const struct tensor_sample_type *type = &types[i];

		if (type->dtype <= TENSOR_DTYPE_NONE || type->dtype >= TENSOR_DTYPE_COUNT ||
		    type->shape.len < 0 || type->shape.len >= TENSOR_MAX_DIMS ||
		    (type->shape.len && !type->shape.data))
			return tensor_fail(EINVAL,
					   "loader_new: type %d has dtype %d and %lld dimensions",
					   i, (int)type->dtype, (long long)type->shape.len);
		for (int64_t d = 0; d < type->shape.len; d++)
			l->shapes[i][d] = type->shape.data[d];
		if (sizes_numel("loader_new", l->shapes[i], (int)type->shape.len) < 0)
			return -EINVAL;
		l->types[i] = (struct tensor_sample_type){ type->dtype,
							   { l->shapes[i], type->shape.len } };
	}
	l->options.types = types ? l->types : NULL;
	return 0;
}

static void set_defaults(tensor_loader *l)
{
	struct tensor_loader_options *o = &l->options;

	o->batch_size = o->batch_size ? o->batch_size : 1;
	o->prefetch = o->prefetch ? o->prefetch : 2;
	o->shards = o->shards ? o->shards : 1;
	l->total = o->length ? o->length : o->size;
	o->length = l->total / o->shards + (l->total % o->shards && !o->drop_last);
	o->batch_outputs = o->batch_outputs ? o->batch_outputs : o->outputs;
	/* Batches of an epoch; the sum of a batch's positions must not overflow. */
	if (o->batch_size > o->length && !o->drop_last)
		o->batch_size = o->length ? o->length : 1;
	l->batches = o->length / o->batch_size + (o->length % o->batch_size && !o->drop_last);
	l->seed = o->seed;
	if (!l->seed) {
		struct tensor_generator_state s = generator_take(o->generator, 1);

		l->seed = sample_seed(s.seed, -3, (int64_t)s.offset);
	}
	o->generator = NULL; /* the caller's */
}

/* ---- memory ---- */

/* The state that workers read and write; without workers only the order. */
static int map_board(tensor_loader *l)
{
	const struct tensor_loader_options *o = &l->options;
	size_t board = sizeof(*l->board) + (size_t)o->workers * sizeof(l->board->at[0]);
	bool ordered = o->shuffle || o->order || o->shards > 1;
	size_t order = ordered ? (size_t)l->total * sizeof(*l->order) : 0;
	void *memory;

	l->board_bytes = board + order;
	memory = mmap(NULL, l->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED)
		return tensor_fail(ENOMEM, "loader_new: no memory for the order of %lld samples",
				   (long long)l->total);
	l->board = memory;
	if (order)
		l->order = (int64_t *)((char *)memory + board);
	return 0;
}

static void free_loader(tensor_loader *l)
{
	if (l->board)
		munmap(l->board, l->board_bytes);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

TENSOR_EXPORT tensor_loader *tensor_loader_new(const struct tensor_loader_options *options)
{
	tensor_loader *l;

	if (check_options(options) < 0)
		return NULL;
	l = calloc(1, sizeof(*l));
	if (!l) {
		tensor_fail(ENOMEM, "loader_new: no memory");
		return NULL;
	}
	l->options = *options;
	l->owner = getpid();
	pthread_mutex_init(&l->lock, NULL);
	if (copy_types(l, options->types) < 0)
		goto free_it;
	set_defaults(l);
	if (map_board(l) < 0 || (options->workers && crew_start(l) < 0))
		goto free_it;
	return l;
free_it:
	free_loader(l);
	return NULL;
}

TENSOR_EXPORT void tensor_loader_free(tensor_loader *l)
{
	bool foreign;

	if (!l)
		return;
	if (atomic_load(&l->inside) == gettid()) {
		tensor_fail(EBUSY, "loader_free: called by a function of the same loader");
		return;
	}
	foreign = l->owner != getpid() && l->options.workers;
	/* Another thread of the parent was changing it at the fork: its memory is not consistent. */
	if (foreign && pthread_mutex_trylock(&l->lock))
		return;
	if (foreign)
		pthread_mutex_unlock(&l->lock);
	if (l->options.workers)
		crew_end(l);
	free_loader(l);
}

/* ---- calls ---- */

/* Takes the lock. 0, or -errno with the error set. */
static int enter(tensor_loader *l, const char *function)
{
	if (!l)
		return null_argument_code(function);
	if (l->options.workers && l->owner != getpid())
		return tensor_fail(ESTALE,
				   "%s: the workers are those of the parent of this process",
				   function);
	if (atomic_load(&l->inside) == gettid())
		return tensor_fail(EBUSY, "%s: called by a function of the same loader", function);
	pthread_mutex_lock(&l->lock);
	atomic_store(&l->inside, gettid());
	return 0;
}

static void leave(tensor_loader *l)
{
	atomic_store(&l->inside, 0);
	pthread_mutex_unlock(&l->lock);
}

static tensor *alloc_here(void *ctx, int i, enum tensor_dtype dtype, const int64_t *sizes, int ndim)
{
	const tensor_loader *l = ctx;

	return tensor_new_opt(TENSOR_OPTIONS(.dtype = (uint8_t)dtype,
					     .shareable = l->options.shareable),
			      sizes, ndim);
}

/* The next batch without workers: outputs are owned. */
static int load_here(tensor_loader *l, int64_t count, tensor **outputs)
{
	struct batch_job job = { .l = l,
				 .epoch = l->epoch,
				 .position = l->position,
				 .count = count,
				 .alloc = alloc_here,
				 .ctx = l };
	struct loader_failure f;

	if (load_batch(&job, outputs, &f) == 0)
		return 0;
	if (f.sample >= 0)
		return tensor_fail(f.code, "loader_next: sample %lld: %.400s", (long long)f.sample,
				   f.text);
	return tensor_fail(f.code, "loader_next: %.440s", f.text);
}

/* Samples of the next batch; 0 at the end of the epoch. */
static int64_t next_count(const tensor_loader *l)
{
	int64_t left = l->options.length - l->position, size = l->options.batch_size;

	return left >= size ? size : l->options.drop_last ? 0 : left;
}

/* The caller has cancelled the batches. */
static void move_to(tensor_loader *l, int64_t epoch, int64_t position)
{
	if (epoch != l->epoch)
		l->ordered = false;
	l->epoch = epoch;
	l->position = position;
}

static int next_batch(tensor_loader *l, tensor **batch)
{
	tensor *outputs[TENSOR_LOADER_OUTPUTS];
	int64_t count = next_count(l);
	bool workers = l->options.workers;
	int err = 0;

	if (!count) {
		cancel_batches(l);
		move_to(l, l->epoch + 1, 0);
		return 0;
	}
	if (!l->ordered)
		err = sampler_fill(l);
	l->ordered = !err;
	if (!err && workers) {
		recycle_buffers(l);
		err = await_batch(l);
	}
	if (!err)
		err = workers ? take_batch(l, outputs) : load_here(l, count, outputs);
	if (!err)
		err = scope_own_list(outputs, l->options.batch_outputs);
	if (err < 0) {
		l->sent = l->first; /* the slot may be empty */
		return err;
	}
	memcpy(batch, outputs, (size_t)l->options.batch_outputs * sizeof(*batch));
	l->position += count;
	l->first++;
	if (l->sent < l->first) /* it is lower than the first free slot after a worker died */
		l->sent = l->first;
	if (workers)
		dispatch(l);
	return 1;
}

TENSOR_EXPORT int tensor_loader_next(tensor_loader *l, tensor **batch, int n)
{
	int err = enter(l, "loader_next");

	if (err < 0)
		return err;
	if (!batch || n != l->options.batch_outputs)
		err = tensor_fail(EINVAL,
				  "loader_next: batch has room for %d tensors, a batch has %d",
				  batch ? n : 0, l->options.batch_outputs);
	else
		err = next_batch(l, batch);
	leave(l);
	return err;
}

TENSOR_EXPORT int64_t tensor_loader_length(const tensor_loader *l)
{
	return l ? l->batches : 0;
}

/* ---- state ---- */

TENSOR_EXPORT int tensor_loader_get_state(tensor_loader *l, struct tensor_loader_state *state)
{
	int err = enter(l, "loader_get_state");

	if (err < 0)
		return err;
	if (state)
		*state = (struct tensor_loader_state){ l->seed, l->epoch, l->position,
						       l->options.length };
	else
		err = tensor_fail(EINVAL, "loader_get_state: state is NULL");
	leave(l);
	return err;
}

static int check_state(const tensor_loader *l, const struct tensor_loader_state *s)
{
	if (!s)
		return tensor_fail(EINVAL, "loader_set_state: state is NULL");
	if (s->length != l->options.length)
		return tensor_fail(
			EINVAL,
			"loader_set_state: an epoch has %lld samples, that of the state %lld",
			(long long)l->options.length, (long long)s->length);
	if (!s->seed || s->epoch < 0 || s->epoch >= INT64_MAX / 2 || s->position < 0 ||
	    s->position > s->length)
		return tensor_fail(
			EINVAL,
			"loader_set_state: epoch %lld, position %lld of %lld and seed %llu are no "
			"state of a loader",
			(long long)s->epoch, (long long)s->position, (long long)s->length,
			(unsigned long long)s->seed);
	return 0;
}

TENSOR_EXPORT int tensor_loader_set_state(tensor_loader *l, const struct tensor_loader_state *state)
{
	int err = enter(l, "loader_set_state");

	if (err < 0)
		return err;
	err = check_state(l, state);
	if (!err) {
		cancel_batches(l);
		if (l->seed != state->seed)
			l->ordered = false;
		l->seed = state->seed;
		move_to(l, state->epoch, state->position);
	}
	leave(l);
	return err;
}

TENSOR_EXPORT int tensor_loader_start_epoch(tensor_loader *l, int64_t epoch)
{
	int err = enter(l, "loader_start_epoch");

	if (err < 0)
		return err;
	if (epoch < 0 || epoch >= INT64_MAX / 2) {
		err = tensor_fail(EINVAL, "loader_start_epoch: epoch %lld is out of range",
				  (long long)epoch);
	} else {
		cancel_batches(l);
		move_to(l, epoch, 0);
	}
	leave(l);
	return err;
}
