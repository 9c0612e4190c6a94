/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Between channels to other machines (lib/remote) and the plugin of the network. A connection carries frames, in both
 * directions and in order: a short header and, with it, data. All functions on one connection, or one listener, are called by
 * one thread at a time; what happens meanwhile is reported by events, inside of step().
 */
#ifndef TENSOR_REMOTE_TRANSPORT_H
#define TENSOR_REMOTE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct transport_connection;
struct transport_listener;

struct transport_events {
	/*
	 * A frame came. The header is valid during the call. *to: where its data goes; *token is passed to data(), which is
	 * called, also without data, if the result is true. Otherwise the frame is dropped.
	 */
	bool (*frame)(void *owner, const void *header, size_t header_bytes, size_t bytes, void **to,
		      void **token);
	/* The data is there, or will not come (err < 0). */
	void (*data)(void *owner, void *token, int err);
	/* The frame of a send that did not end at once was sent, or not: its memory is free. */
	void (*sent)(void *owner, void *token, int err);
	/* The connection has ended; once. */
	void (*failed)(void *owner, int err, const char *why);
};

struct transport {
	const char *name;
	/* The memory of a frame's data is registered with the network as long as the result is not unregistered. NULL: it is not. */
	void *(*register_memory)(void *address, size_t bytes);
	void (*unregister_memory)(void *registration);

	/* 0, or -errno with the error set. */
	int (*connect)(const struct sockaddr *to, socklen_t bytes,
		       const struct transport_events *events, void *owner,
		       struct transport_connection **c);
	/*
	 * Sends a frame; a long one is read by the peer's network when the peer has said where its data goes. 0: it was sent;
	 * 1: sent() will be called, and data stays valid until then; -errno.
	 */
	int (*send)(struct transport_connection *c, const void *header, size_t header_bytes,
		    const void *data, size_t bytes, bool is_long, void *token);
	/* Goes on without waiting. Whether anything happened. */
	bool (*step)(struct transport_connection *c);
	/* The descriptor is readable when step() has work to do. False: it already has some. */
	int (*fd)(const struct transport_connection *c);
	bool (*arm)(struct transport_connection *c);
	/* Ends the connection, and all sends and frames that are under way; waits for what was sent at most this time. */
	void (*close)(struct transport_connection *c, int64_t wait_ns);

	/* asked() is called in listener_step(): accept() or reject() takes the request. 0, or -errno with the error set. */
	int (*listen)(const struct sockaddr *at, socklen_t bytes,
		      void (*asked)(void *owner, void *request), void *owner,
		      struct transport_listener **l);
	int (*accept)(struct transport_listener *l, void *request,
		      const struct transport_events *events, void *owner,
		      struct transport_connection **c);
	void (*reject)(struct transport_listener *l, void *request);
	uint16_t (*port)(const struct transport_listener *l);
	bool (*listener_step)(struct transport_listener *l);
	int (*listener_fd)(const struct transport_listener *l);
	bool (*listener_arm)(struct transport_listener *l);
	void (*listener_close)(struct transport_listener *l);
};

/* Called by the constructor of the plugin; without a transport it says why. */
void tensor_register_transport(const struct transport *transport, const char *why_not);
/* The transport of the plugin, which is loaded for it. NULL with the error set. */
const struct transport *tensor_remote_transport(const char *function);

#endif
