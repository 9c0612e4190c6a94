// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Listening for channels of other machines. A peer that connects counts as a channel when it has greeted. */
#include "remote/remote.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAITING_MAX 16 /* peers that have connected and were not accepted */

struct tensor_channel_listener {
	struct served served;
	const struct transport *transport;
	struct transport_listener *at;
	struct tensor_remote_options options;
	char address[NI_MAXHOST + 16];
	int event; /* readable while accept would not wait */

	pthread_mutex_t lock; /* of what follows; taken before those of connections */
	pthread_cond_t changed;
	struct remote *peers; /* connected, in no order */
	struct remote *ready; /* of them the one that is accepted next */
	int n;
	bool is_shown;
};

/* ---- peers ---- */

static void show(tensor_channel_listener *l)
{
	uint64_t count = 1;

	if (!!l->ready == l->is_shown)
		return;
	l->is_shown = l->ready;
	if (l->ready ? write(l->event, &count, sizeof(count)) < 0 :
		       read(l->event, &count, sizeof(count)) < 0)
		return;
}

/* Takes a peer out of the list. */
static void take_out(tensor_channel_listener *l, struct remote *r)
{
	struct remote **at = &l->peers;

	while (*at != r)
		at = &(*at)->queued;
	*at = r->queued;
	l->n--;
	pthread_mutex_lock(&r->lock);
	r->listener = NULL;
	pthread_mutex_unlock(&r->lock);
}

/* A peer wants to connect. */
static void asked(void *owner, void *request)
{
	tensor_channel_listener *l = owner;
	struct remote *r =
		l->n < WAITING_MAX ? remote_new("channel_accept", l->transport, &l->options) : NULL;

	if (!r) {
		l->transport->reject(l->at, request);
		return;
	}
	if (l->transport->accept(l->at, request, &remote_events, r, &r->connection) < 0) {
		remote_free(r);
		return;
	}
	r->listener = l;
	pthread_mutex_lock(&r->lock);
	remote_greet(r);
	pthread_mutex_unlock(&r->lock);
	r->queued = l->peers;
	l->peers = r;
	l->n++;
	serve_add_inside(&r->served);
}

/* Whether the peer has greeted; *over: it never will. */
static bool has_greeted(struct remote *r, bool *over)
{
	bool is_open;

	pthread_mutex_lock(&r->lock);
	is_open = r->is_open;
	*over = r->dead || (!is_open && link_now() - r->opened > r->timeout_ns);
	pthread_mutex_unlock(&r->lock);
	return is_open;
}

/* Chooses the peer that was first. */
static void choose(tensor_channel_listener *l)
{
	bool over;

	l->ready = NULL;
	for (struct remote *r = l->peers; r; r = r->queued)
		if (has_greeted(r, &over) && !over && (!l->ready || r->opened < l->ready->opened))
			l->ready = r;
	show(l);
}

/* Drops peers that are gone, or have not greeted in time. Only the thread does it. */
static void drop_lost(tensor_channel_listener *l)
{
	struct remote *next;
	bool over;

	for (struct remote *r = l->peers; r; r = next) {
		next = r->queued;
		has_greeted(r, &over);
		if (over) {
			take_out(l, r);
			serve_remove_inside(&r->served);
			remote_free(r);
		}
	}
}

static int listener_fd(struct served *s)
{
	tensor_channel_listener *l = (tensor_channel_listener *)s;

	return l->transport->listener_fd(l->at);
}

static void listener_serve(struct served *s)
{
	tensor_channel_listener *l = (tensor_channel_listener *)s;
	bool is_armed;

	pthread_mutex_lock(&l->lock);
	for (int i = 0; i < WAITING_MAX && l->transport->listener_step(l->at); i++)
		;
	is_armed = l->transport->listener_arm(l->at);
	drop_lost(l);
	choose(l);
	if (l->ready)
		pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	s->due = is_armed ? link_deadline(REMOTE_LOOK_NS) : 0;
}

/* ---- the program ---- */

static void init_locks(tensor_channel_listener *l)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void free_listener(tensor_channel_listener *l)
{
	struct remote *r;

	while ((r = l->peers)) {
		l->peers = r->queued;
		serve_remove(&r->served);
		remote_free(r);
	}
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	close(l->event);
	free(l);
}

static tensor_channel_listener *new_listener(const struct transport *transport,
					     const struct tensor_remote_options *o)
{
	tensor_channel_listener *l = calloc(1, sizeof(*l));

	if (!l) {
		tensor_fail(ENOMEM, "channel_listen: no memory");
		return NULL;
	}
	l->event = eventfd(0, EFD_CLOEXEC);
	if (l->event < 0) {
		tensor_fail(errno, "channel_listen: no descriptor: %s", strerror(errno));
		free(l);
		return NULL;
	}
	l->served = (struct served){ .fd = listener_fd, .serve = listener_serve };
	l->transport = transport;
	l->options = *o;
	init_locks(l);
	return l;
}

/* "ucx://HOST:PORT" with the number of the port. */
static void set_address(tensor_channel_listener *l, const char *text)
{
	int n = (int)(strrchr(text, ':') - text);

	snprintf(l->address, sizeof(l->address), "%.*s:%u", n, text,
		 (unsigned)l->transport->port(l->at));
}

TENSOR_EXPORT tensor_channel_listener *
tensor_channel_listen(const char *address, const struct tensor_remote_options *options)
{
	const struct transport *transport = tensor_remote_transport("channel_listen");
	struct tensor_remote_options o;
	tensor_channel_listener *l;
	struct addrinfo *found;
	int err;

	if (!transport || remote_options("channel_listen", options, &o) < 0 ||
	    address_find("channel_listen", address, true, &found) < 0)
		return NULL;
	l = new_listener(transport, &o);
	if (!l) {
		freeaddrinfo(found);
		return NULL;
	}
	serve_mark_used();
	err = transport->listen(found->ai_addr, found->ai_addrlen, asked, l, &l->at);
	freeaddrinfo(found);
	if (!err) {
		set_address(l, address);
		err = serve_add("channel_listen", &l->served);
	}
	if (!err)
		return l;
	if (l->at)
		transport->listener_close(l->at);
	free_listener(l);
	return NULL;
}

TENSOR_EXPORT void tensor_channel_listener_close(tensor_channel_listener *l)
{
	if (!l)
		return;
	/* In a child of fork() the listener is the parent's. */
	if (serve_is_parents()) {
		close(l->event);
		return;
	}
	serve_remove(&l->served);
	l->transport->listener_close(l->at);
	free_listener(l);
}

TENSOR_EXPORT tensor_channel *tensor_channel_accept(tensor_channel_listener *l, int64_t timeout_ns)
{
	int64_t until = link_deadline(timeout_ns);
	struct remote *r;

	if (!l) {
		tensor_fail(EINVAL, "channel_accept: the listener is NULL");
		return NULL;
	}
	if (serve_check("channel_accept") < 0)
		return NULL;
	pthread_mutex_lock(&l->lock);
	while (!l->ready && link_left(until)) {
		int64_t end = link_deadline(REMOTE_LOOK_NS);
		struct timespec t;

		end = end < until ? end : until;
		t = (struct timespec){ end / 1000000000, end % 1000000000 };
		pthread_cond_timedwait(&l->changed, &l->lock, &t);
	}
	r = l->ready;
	if (r) {
		take_out(l, r);
		choose(l);
	}
	pthread_mutex_unlock(&l->lock);
	if (!r) {
		tensor_fail(ETIMEDOUT, "channel_accept: no peer has connected in time");
		return NULL;
	}
	pthread_mutex_lock(&r->lock);
	incoming_grant(r);
	pthread_mutex_unlock(&r->lock);
	return remote_channel("channel_accept", r);
}

TENSOR_EXPORT const char *tensor_channel_listener_address(const tensor_channel_listener *l)
{
	return l ? l->address : NULL;
}

TENSOR_EXPORT int tensor_channel_listener_fd(const tensor_channel_listener *l)
{
	return l ? l->event : tensor_fail(EINVAL, "channel_listener_fd: the listener is NULL");
}
