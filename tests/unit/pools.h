/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Channels with pools, for the tests of lib/sharing. */
#ifndef TESTS_POOLS_H
#define TESTS_POOLS_H

#include "rings.h"

#define RINGS	  TENSOR_CHANNEL_OPTIONS(.ring = true)
#define POOL(...) tensor_pool_open(TENSOR_SHAPE(4), TENSOR_POOL_OPTIONS(__VA_ARGS__))

static inline void fill(tensor *t, double value)
{
	ok(tensor_fill_(t, TENSOR_SCALAR(value)));
}

static inline double mean(tensor *t)
{
	double value = -1;

	tensor_scope
		assert_done(tensor_item(tensor_mean(t), &value));
	return value;
}

/* With and without a ring, over both types of sockets. */
static inline struct pair pair_of(int kind)
{
	return ring_pair_open(kind & 1 ? SOCK_STREAM : SOCK_SEQPACKET, kind & 2 ? RINGS : NULL);
}

/* Sends a loan with this value. */
static inline void send_loan(tensor_channel *ch, tensor_pool *pool, double value)
{
	tensor_scope {
		tensor *t = ok(tensor_pool_loan(pool, 10000 * MS));

		fill(t, value);
		assert_done(tensor_send_many(ch, &t, 1, (uint64_t)value, 0, 10000 * MS));
	}
}

#endif
