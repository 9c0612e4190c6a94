/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A peer of a channel between machines that sends the frames that a test wants. It uses the same transport below. */
#ifndef TESTS_REMOTE_HOSTILE_H
#define TESTS_REMOTE_HOSTILE_H

#include "remote.h"

#include "lib/remote/frame.h"
#include "lib/remote/transport.h"

#include <arpa/inet.h>

struct hostile {
	const struct transport *transport;
	struct transport_connection *c;
	tensor_channel *victim;
	struct frame seen[64]; /* frames of the victim, without pings */
	int n;
	bool ended;
};

static bool hostile_frame(void *owner, const void *header, size_t header_bytes, size_t bytes,
			  void **to, void **token)
{
	struct hostile *h = owner;
	struct frame f;

	memcpy(&f, header, sizeof(f));
	if (f.kind != FRAME_PING && h->n < (int)ARRAY_SIZE(h->seen))
		h->seen[h->n++] = f;
	return false;
}

static void hostile_data(void *owner, void *token, int err)
{
}

static void hostile_sent(void *owner, void *token, int err)
{
	free(token);
}

static void hostile_failed(void *owner, int err, const char *why)
{
	struct hostile *h = owner;

	h->ended = true;
}

static const struct transport_events hostile_events = { hostile_frame, hostile_data, hostile_sent,
							hostile_failed };

/* Sends a frame and data, both copied. */
static inline void send_raw(struct hostile *h, const void *header, size_t header_bytes,
			    const void *data, size_t bytes)
{
	char *copy = malloc(header_bytes + bytes + 1);

	memcpy(copy, header, header_bytes);
	if (bytes)
		memcpy(copy + header_bytes, data, bytes);
	if (h->transport->send(h->c, copy, header_bytes, bytes ? copy + header_bytes : NULL, bytes,
			       false, copy) <= 0)
		free(copy);
}

static inline void send_frame(struct hostile *h, struct frame f, const void *data, size_t bytes)
{
	send_raw(h, &f, sizeof(f), data, bytes);
}

static inline struct frame frame(enum frame_kind kind, uint64_t message, uint64_t a, uint64_t b,
				 uint64_t c)
{
	struct frame f = frame_of(kind, message);

	f.values[0] = a;
	f.values[1] = b;
	f.values[2] = c;
	return f;
}

static inline void greet(struct hostile *h)
{
	send_frame(h, frame(FRAME_HELLO, 0, 1 << 30, (uint64_t)(10000 * MS), 64), NULL, 0);
}

/* Until the victim has sent a frame of this kind, or for a time. */
static inline const struct frame *await_for(struct hostile *h, enum frame_kind kind, double ms)
{
	double begin = seconds_of(CLOCK_MONOTONIC);

	while (far_ms_since(begin) < ms) {
		if (!h->transport->step(h->c))
			usleep(200);
		for (int i = 0; i < h->n; i++)
			if (h->seen[i].kind == kind)
				return &h->seen[i];
	}
	return NULL;
}

static inline const struct frame *await(struct hostile *h, enum frame_kind kind)
{
	return await_for(h, kind, 3000);
}

static inline void connect_to_address(struct hostile *h, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET };

	memset(h, 0, sizeof(*h));
	h->transport = tensor_remote_transport("test");
	to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_done(h->transport->connect((struct sockaddr *)&to, sizeof(to), &hostile_events, h,
					  &h->c));
}

static inline void connect_to(struct hostile *h, const tensor_channel_listener *l)
{
	connect_to_address(h, tensor_channel_listener_address(l));
}

static inline void begin(struct hostile *h, const struct tensor_remote_options *o)
{
	tensor_channel_listener *l = far_listen(o);

	connect_to(h, l);
	greet(h);
	assert_non_null(await(h, FRAME_HELLO));
	h->victim = tensor_channel_accept(l, LONG_NS);
	assert_true(check_done_(h->victim ? 0 : -1));
	tensor_channel_listener_close(l);
}

static inline void end(struct hostile *h)
{
	h->transport->close(h->c, 0);
	tensor_channel_close(h->victim);
}

static inline struct frame_tensor floats_of(int64_t n)
{
	return (struct frame_tensor){ .dtype = TENSOR_F32,
				      .ndim = 1,
				      .bytes = (uint64_t)n * 4,
				      .sizes = { n },
				      .strides = { 1 } };
}

#endif
