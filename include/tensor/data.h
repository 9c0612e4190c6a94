/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Data of a training program: a data set is a function from an index to tensors, and a loader makes
 * batches of its samples, in the calling process or in worker processes.
 *
 * 	struct tensor_loader_options options = {
 * 		.size = 60000, .outputs = 2, .get = get_image, .ctx = &images,
 * 		.batch_size = 64, .shuffle = true, .workers = 2,
 * 	};
 * 	tensor_loader *loader = tensor_loader_new(&options);
 *
 * 	tensor_scope {
 * 		while ((err = tensor_loader_next(loader, batch, 2)) == 1)
 * 			...
 * 	}
 *
 * The order, the random numbers and the batches depend on the seed, the epoch and the position
 * alone, never on the number of workers.
 */
#ifndef TENSOR_DATA_H
#define TENSOR_DATA_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loader: opaque. Calls of several threads take turns. */
typedef struct tensor_loader tensor_loader;

#define TENSOR_LOADER_OUTPUTS 16  /* maximum of tensors of a sample and of a batch */
#define TENSOR_LOADER_WORKERS 256 /* maximum of workers */

/* Shape and dtype of one tensor of every sample. */
struct tensor_sample_type {
	enum tensor_dtype dtype;
	tensor_ints shape;
};

/**
 * struct tensor_loader_options - the data set, and how a loader reads it
 * @size: number of samples; indices are 0 to size - 1
 * @outputs: tensors of a sample, 1 to TENSOR_LOADER_OUTPUTS
 * @get: loads the sample @index; see below. 0, or a negative error number
 * @ctx: passed to all functions of the program
 * @types: NULL, or @outputs types that all samples have
 * @batch_size: samples of a batch; 0: 1
 * @shuffle: the samples of each epoch in a random order
 * @drop_last: no last batch of an epoch with less than @batch_size samples
 * @shareable: batches in buffers that can be shared, also without workers. Batches of workers always
 * 	are. With /dev/tensor such buffers are pinned
 * @workers: number of worker processes, 0 to TENSOR_LOADER_WORKERS; 0: tensor_loader_next() calls
 * 	@get
 * @prefetch: batches that a worker is ahead, up to 64; 0: 2
 * @timeout_ms: ETIMEDOUT if tensor_loader_next() waits longer for a worker; 0: no limit
 * @seed: of the order and of the random numbers; 0: the next number of @generator
 * @generator: NULL: the default generator of the process
 * @length: samples of an epoch; 0: @size
 * @order: NULL, or writes the indices of an epoch: for weighted samples, parts of a data set, other
 * 	orders. @shuffle has no effect then. 0, or a negative error number
 * @collate: NULL: tensors of the samples are stacked along a new first dimension and must have the
 * 	same shape and dtype. Otherwise makes outputs[0] to outputs[n - 1] from samples[s * @outputs +
 * 	i]. 0, or a negative error number
 * @batch_outputs: n of @collate; 0: @outputs
 * @worker_init: NULL, or called at the start of each worker. 0, or a negative error number
 * @shard: of several processes with the same options this one reads part @shard of every epoch: the
 * 	positions @shard, @shard + @shards, ... of the order. They need the same @seed
 * @shards: number of parts; 0 or 1: all samples are this process's. Parts have one length: the order
 * 	goes on at its beginning for it, or with @drop_last leaves out its rest
 * @reserved: 0
 *
 * @get, @collate and @order run in a scope of their own, without recording gradients, and their
 * default generator (NULL as an argument) is a fresh one with a seed made of the loader's seed, the
 * epoch and the position in the epoch: random changes of a sample do not depend on the worker.
 *
 * @get stores a tensor in each outputs[i], borrowed: results of operators belong to its scope, and a
 * tensor of the data set remains its own. With @types outputs[i] already is the row of the batch, to
 * write to; it may be replaced nevertheless. In worker processes rows are in the memory that the
 * calling process gets, so that nothing is copied then.
 *
 * The functions of the program may not call functions on this loader. In workers they run in a
 * process that tensor_loader_new() forked: they see the memory of the calling process at that time,
 * and their changes stay in the worker. Standard output of a worker is not flushed at its end.
 */
struct tensor_loader_options {
	int64_t size;
	int outputs;
	int (*get)(void *ctx, int64_t index, tensor **outputs, int n);
	void *ctx;
	const struct tensor_sample_type *types;
	int64_t batch_size;
	bool shuffle, drop_last, shareable;
	int workers, prefetch;
	int64_t timeout_ms;
	uint64_t seed;
	tensor_generator *generator;
	int64_t length;
	int (*order)(void *ctx, int64_t epoch, int64_t *indices, int64_t n);
	int (*collate)(void *ctx, tensor *const *samples, int64_t count, tensor **outputs, int n);
	int batch_outputs;
	int (*worker_init)(void *ctx, int worker);
	int shard, shards;
	uint64_t reserved[3];
};

/**
 * tensor_loader_new() - make a loader, and start its workers
 * @options: copied; what it points to, apart from @types and @generator, is used until the loader is
 * 	freed
 *
 * Workers are forked here, and again after one died. They ignore SIGINT, have the default action for
 * other signals with a handler, and one thread for operators.
 * They end when the loader is freed and when this process ends in any way.
 *
 * Return: the loader, owned by the caller; NULL with the error set. EINVAL: an option; EAGAIN, ENOMEM,
 *   EMFILE: no process, memory or descriptor for a worker.
 */
tensor_loader *tensor_loader_new(const struct tensor_loader_options *options);

/**
 * tensor_loader_next() - get the next batch
 * @loader: the loader
 * @batch: out: @n new tensors, owned like results of an operator: rows are samples
 * @n: batch_outputs
 *
 * Batches come in the order of the epoch. The end of an epoch is returned once; the next call
 * begins the next epoch. The last batch of an epoch may have fewer rows, see @drop_last.
 *
 * Batches of workers are in buffers that the worker wrote; a buffer is used again after no tensor of
 * the program, including views and those saved for backward, is on its memory, unless another process
 * may have got it (tensor_send(), tensor_buffer_fd(), a fork). Keep a pointer to the data only as long
 * as the tensor.
 *
 * An error concerns the next batch, which the following call tries again with a new worker if one
 * died. tensor_loader_set_state() with a larger position skips it.
 *
 * Return: 1; 0 at the end of the epoch, with @batch unchanged; -errno: that of the function of the
 *   program, with the index of the sample in the text; EPIPE: a worker died, with the index of the sample
 *   that it was loading; ETIMEDOUT; ESTALE: the loader has workers of the parent of this process; EBUSY:
 *   called by a function of the loader.
 */
int tensor_loader_next(tensor_loader *loader, tensor **batch, int n);

/* Number of batches of an epoch; 0 for NULL. */
int64_t tensor_loader_length(const tensor_loader *loader);

/* Position of a loader; may be stored in a file. */
struct tensor_loader_state {
	uint64_t seed;	  /* not 0 */
	int64_t epoch;	  /* from 0 */
	int64_t position; /* samples of the epoch that tensor_loader_next() has returned */
	int64_t length;	  /* samples of an epoch */
};

/* The state after the last batch that tensor_loader_next() returned. 0 or -errno. */
int tensor_loader_get_state(tensor_loader *loader, struct tensor_loader_state *state);
/*
 * Continue from a state: the following batches are, to the bit, those after get_state(), if the data
 * set, @batch_size, @shuffle and @order are the same. The number of workers may be another one. 0, or
 * -errno: EINVAL for a position or epoch out of range, or another length.
 */
int tensor_loader_set_state(tensor_loader *loader, const struct tensor_loader_state *state);
/* Begin an epoch at its first sample. 0, or -errno: EINVAL for a negative epoch. */
int tensor_loader_start_epoch(tensor_loader *loader, int64_t epoch);

/*
 * End the workers and free the loader; batches stay valid. NULL is ignored. A worker that does not
 * return from a function of the program within a second is killed. In a child of fork() the call frees
 * the child's copy and leaves the parent's workers alone. Called by a function of the same loader, it frees
 * nothing and only sets the error record, to EBUSY.
 */
void tensor_loader_free(tensor_loader *loader);

/* The number of the worker that the calling process is, from 0; -1 in other processes. */
int tensor_loader_worker(void);

/* A data set in tensors, for @get: @ctx is an array of n tensors with the samples along dimension 0. */
int tensor_get_rows(void *ctx, int64_t index, tensor **outputs, int n);

#ifdef __cplusplus
}
#endif
#endif
