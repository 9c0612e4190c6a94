// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The order of an epoch and the seeds of its samples: functions of the loader's seed, the epoch and the
 * position, so that a loader continues anywhere without a history.
 */
#include "train/data/loader.h"

#include "autograd/graph/callback.h"
#include "base/philox.h"
#include "family/random.h"

#include <stdlib.h>

/* Block `number` of a stream: 64 random bits. Never 0. */
static uint64_t random_bits(uint64_t seed, uint64_t number, uint64_t stream)
{
	uint32_t words[4];
	uint64_t bits;

	philox_block(words, seed, number, stream);
	bits = (uint64_t)words[1] << 32 | words[0];
	return bits ? bits : 1;
}

uint64_t order_seed(uint64_t seed, int64_t epoch)
{
	return random_bits(seed, (uint64_t)epoch, 0);
}

uint64_t sample_seed(uint64_t seed, int64_t epoch, int64_t position)
{
	return random_bits(seed, (uint64_t)position, (uint64_t)epoch + 1);
}

/* tensor_randperm() of a generator with the epoch's seed; the indices are shorter if `length` is less than `size`. */
static int shuffle(tensor_loader *l, tensor_generator *g)
{
	int64_t n = l->total, size = l->options.size;
	int err = 0;

	tensor_scope {
		for (int64_t at = 0; at < n && !err; at += size) {
			tensor *order = tensor_randperm_generator(
				size, g, TENSOR_OPTIONS(.dtype = TENSOR_I64));
			int64_t part = n - at < size ? n - at : size;

			if (!order)
				err = -thread()->error.code;
			else
				memcpy(l->order + at, order->data,
				       (size_t)part * sizeof(*l->order));
		}
	}
	return err;
}

static int check_order(const tensor_loader *l)
{
	for (int64_t i = 0; i < l->total; i++)
		if (l->order[i] < 0 || l->order[i] >= l->options.size)
			return tensor_fail(
				EINVAL,
				"loader_next: order gave the index %lld for position %lld of epoch %lld, a "
				"data set has 0 to %lld",
				(long long)l->order[i], (long long)i, (long long)l->epoch,
				(long long)l->options.size - 1);
	return 0;
}

static int program_order(tensor_loader *l, tensor_generator *g)
{
	const struct tensor_loader_options *o = &l->options;
	struct thread_modes before = enter_program(g);
	struct callback state = callback_begin();
	int err = 0;

	tensor_scope {
		err = o->order(o->ctx, l->epoch, l->order, l->total);
	}
	err = callback_end(&state, err, "loader_next: order failed for epoch %lld: %s",
			   (long long)l->epoch, strerror(-err));
	thread()->modes = before;
	return err < 0 ? err : check_order(l);
}

/* Moves the part of this shard to the beginning. Only its last sample can come from the beginning, which is overwritten. */
static void take_shard(tensor_loader *l)
{
	int64_t last = l->options.length - 1, sample;

	if (last < 0)
		return;
	sample = l->order[whole_position(l, last) % l->total];
	for (int64_t i = 0; i < last; i++)
		l->order[i] = l->order[whole_position(l, i)];
	l->order[last] = sample;
}

int sampler_fill(tensor_loader *l)
{
	tensor_generator *g;
	int err = 0;

	if (!l->order)
		return 0;
	g = tensor_generator_new(order_seed(l->seed, l->epoch));
	if (!g)
		return -ENOMEM;
	if (l->options.order) {
		err = program_order(l, g);
	} else if (l->options.shuffle) {
		struct thread_modes before = enter_program(g);

		err = shuffle(l, g);
		thread()->modes = before;
	} else {
		for (int64_t i = 0; i < l->total; i++)
			l->order[i] = i % l->options.size;
	}
	tensor_generator_release(g);
	if (!err && l->options.shards > 1)
		take_shard(l);
	return err;
}
