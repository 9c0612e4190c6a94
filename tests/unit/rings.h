/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Channels with rings, for the tests of lib/sharing. */
#ifndef TESTS_RINGS_H
#define TESTS_RINGS_H

#include "peer.h"
#include "wire_test.h"

#include <tensor/channel.h>

#include "lib/sharing/ring.h"

#define MS INT64_C(1000000)

static inline struct pair ring_pair_open(int type, const struct tensor_channel_options *o)
{
	struct pair p;

	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p.ends), 0);
	p.out = tensor_channel_open_with(p.ends[0], o);
	p.in = tensor_channel_open_with(p.ends[1], o);
	assert_true(p.out && p.in);
	return p;
}

/* Sends t to and fro until both directions have a ring. */
static inline void ring_pair_agree(struct pair *p, tensor *t)
{
	for (int i = 0; i < 4; i++)
		tensor_scope {
			assert_done(tensor_send(p->out, t, 0));
			ok(tensor_recv(p->in));
			assert_done(tensor_send(p->in, t, 0));
			ok(tensor_recv(p->out));
		}
	assert_true(tensor_channel_has_ring(p->out));
	assert_true(tensor_channel_has_ring(p->in));
}

/* The number of mappings of a memfd; the last one in *page unless page is NULL. */
static inline int memfd_mappings(const char *name, void **page, size_t *bytes)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), f))
		if (strstr(line, name) && sscanf(line, "%lx-%lx", &from, &to) == 2) {
			n++;
			if (page) {
				*page = (void *)from;
				*bytes = to - from;
			}
		}
	fclose(f);
	return n;
}

static inline int ring_mappings(void **page, size_t *bytes)
{
	return memfd_mappings("memfd:channel-ring", page, bytes);
}

static inline int lease_mappings(void **page, size_t *bytes)
{
	return memfd_mappings("memfd:channel-leases", page, bytes);
}

/* A count of the environment, or the one of `make test`. */
static inline long count_of(const char *name, long n)
{
	return getenv(name) ? atol(getenv(name)) : n;
}

#endif
