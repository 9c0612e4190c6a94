/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The data set of the tests of loaders, and functions that read it. */
#ifndef TESTS_LOADER_H
#define TESTS_LOADER_H

#include "peer.h"

enum { SIZE = 103, BATCH = 8 };

/* Actions of a data set of the tests besides its work. */
struct data {
	int64_t fail_at, kill_at, hang_at; /* index, -1: never */
	int signal;
	int64_t ragged; /* this index has another shape */
	int delay_us;
};

static struct data plain = { -1, -1, -1, 0, -1, 0 };

/* f32 [4]: the index, and three random numbers; i64 []: the index. */
static inline int get_random(void *ctx, int64_t index, tensor **outputs, int n)
{
	const struct data *d = ctx;
	int64_t size = index == d->ragged ? 5 : 4;
	tensor *x = tensor_rand(TENSOR_INTS(size), F32);

	if (index == d->kill_at && tensor_loader_worker() >= 0)
		raise(d->signal);
	while (index == d->hang_at)
		pause();
	if (d->delay_us)
		usleep((useconds_t)d->delay_us);
	if (index == d->fail_at)
		return tensor_index_select(x, 0, tensor_none) ? 0 : -EIO;
	if (!x)
		return -ENOMEM;
	*(float *)tensor_mutable_data(x) = (float)index;
	outputs[0] = x;
	if (n > 1)
		outputs[1] = tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(index), I64);
	return 0;
}

static inline struct tensor_loader_options options_of(struct data *d, int workers)
{
	return (struct tensor_loader_options){ .size = SIZE,
					       .outputs = 2,
					       .get = get_random,
					       .ctx = d,
					       .batch_size = BATCH,
					       .shuffle = true,
					       .workers = workers,
					       .seed = 7 };
}

static inline tensor_loader *loader_of(const struct tensor_loader_options *o)
{
	tensor_loader *l = tensor_loader_new(o);

	if (!l)
		fprintf(stderr, "%s\n", tensor_last_error()->text);
	assert_non_null(l);
	return l;
}

/* Reads batches to the end of the epoch; a sum of all bits in their order. Adds the number of samples. */
static inline uint64_t read_epoch(tensor_loader *l, int64_t *samples)
{
	uint64_t hash = 14695981039346656037u;
	int err = 1;

	while (err == 1) {
		tensor_scope {
			tensor *batch[2] = { NULL, NULL };

			err = tensor_loader_next(l, batch, 2);
			assert_done(err);
			for (int i = 0; i < 2 && err == 1; i++) {
				const unsigned char *p = tensor_data(batch[i]);
				size_t bytes = (size_t)tensor_numel(batch[i]) *
					       tensor_itemsize(tensor_dtype(batch[i]));

				for (size_t k = 0; k < bytes; k++)
					hash = (hash ^ p[k]) * 1099511628211u;
			}
			if (err == 1)
				*samples += tensor_size(batch[0], 0);
		}
	}
	return hash;
}

/* Processes whose parent is this one. */
static inline int count_children(pid_t *first)
{
	char path[64], *word, *at;
	char text[4096];
	size_t n;
	FILE *f;
	int count = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	for (word = strtok_r(text, " ", &at); word; word = strtok_r(NULL, " ", &at))
		if (!count++ && first)
			*first = atoi(word);
	return count;
}

#endif
