// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Connecting to another machine, and the plugin of the network. */
#include "remote/remote.h"

#include "base/plugin.h"

#include <netdb.h>
#include <stdio.h>

#define PLUGIN "libtensor_ucx.so.0"

/* ---- the plugin ---- */

static const struct transport *plugin;
static char why_no_plugin[TENSOR_ERROR_TEXT];
static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;

/* Called by the constructor of the plugin, inside of plugin_open(). */
TENSOR_EXPORT void tensor_register_transport(const struct transport *transport, const char *why_not)
{
	plugin = transport;
	if (!transport)
		snprintf(why_no_plugin, sizeof(why_no_plugin), "%s", why_not);
}

TENSOR_EXPORT const struct transport *tensor_remote_transport(const char *function)
{
	static bool tried;

	if (serve_check(function) < 0)
		return NULL;
	pthread_mutex_lock(&plugin_lock);
	if (!tried && !plugin)
		plugin_open(PLUGIN, "TENSOR_UCX_PLUGIN", why_no_plugin, sizeof(why_no_plugin));
	tried = true;
	pthread_mutex_unlock(&plugin_lock);
	if (!plugin)
		tensor_fail(ENOTSUP, "%s: ucx: %s", function, why_no_plugin);
	return plugin;
}

/* ---- connecting ---- */

/* Until the peer has greeted. 0, or -errno with the error set. */
static int await_greeting(struct remote *r, const char *address, int64_t until)
{
	int err = 0;

	pthread_mutex_lock(&r->lock);
	while (!r->is_open && !r->dead && !r->has_left && link_left(until))
		remote_wait(r, until);
	if (r->dead)
		err = tensor_fail(-r->dead, "channel_connect: %s: %s", QUOTED(address), r->why);
	else if (!r->is_open)
		err = tensor_fail(ETIMEDOUT, "channel_connect: %s does not answer",
				  QUOTED(address));
	pthread_mutex_unlock(&r->lock);
	return err;
}

/* A connection to one address of the host; NULL with the error set. */
static struct remote *try_address(const struct transport *transport, const char *address,
				  const struct addrinfo *a,
				  const struct tensor_remote_options *options, int64_t until)
{
	struct remote *r = remote_new("channel_connect", transport, options);
	int err;

	if (!r)
		return NULL;
	serve_mark_used();
	err = transport->connect(a->ai_addr, a->ai_addrlen, &remote_events, r, &r->connection);
	if (!err) {
		pthread_mutex_lock(&r->lock);
		remote_greet(r);
		pthread_mutex_unlock(&r->lock);
		err = serve_add("channel_connect", &r->served);
	}
	if (!err)
		err = await_greeting(r, address, until);
	if (!err)
		return r;
	serve_remove(&r->served);
	remote_free(r);
	return NULL;
}

TENSOR_EXPORT tensor_channel *tensor_channel_connect(const char *address,
						     const struct tensor_remote_options *options,
						     int64_t timeout_ns)
{
	const struct transport *transport = tensor_remote_transport("channel_connect");
	struct tensor_remote_options o;
	struct addrinfo *found;
	struct remote *r = NULL;
	int64_t until;

	if (!transport || remote_options("channel_connect", options, &o) < 0 ||
	    address_find("channel_connect", address, false, &found) < 0)
		return NULL;
	until = link_deadline(timeout_ns < 0 ? o.timeout_ns : timeout_ns);
	for (struct addrinfo *a = found; a && !r; a = a->ai_next)
		r = try_address(transport, address, a, &o, until);
	freeaddrinfo(found);
	return r ? remote_channel("channel_connect", r) : NULL;
}
