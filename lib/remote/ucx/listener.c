// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A listener, on a worker of its own. Requests of peers wait until the worker has returned: it may not be entered again. */
#include "base/error.h"

#include "remote/ucx/ucx.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#define REQUESTS 64 /* that came in one turn; others are refused */

struct transport_listener {
	void (*asked)(void *owner, void *request);
	void *owner;
	ucp_worker_h worker;
	ucp_listener_h listener;
	int fd, n;
	uint16_t port;
	ucp_conn_request_h requests[REQUESTS];
};

static void came(ucp_conn_request_h request, void *arg)
{
	struct transport_listener *l = arg;

	if (l->n < REQUESTS)
		l->requests[l->n++] = request;
	else
		ucp_listener_reject(l->listener, request);
}

/* The port that was chosen. */
static ucs_status_t find_port(struct transport_listener *l)
{
	ucp_listener_attr_t attr = { .field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR };
	ucs_status_t status = ucp_listener_query(l->listener, &attr);

	/* The port is at the same place in addresses of IPv4 and IPv6. */
	if (status == UCS_OK)
		l->port = ntohs(((const struct sockaddr_in *)&attr.sockaddr)->sin_port);
	return status;
}

int ucx_listen(const struct sockaddr *at, socklen_t bytes,
	       void (*asked)(void *owner, void *request), void *owner,
	       struct transport_listener **to)
{
	struct transport_listener *l = calloc(1, sizeof(*l));
	ucp_listener_params_t params = { .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
						       UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
					 .sockaddr = { at, bytes },
					 .conn_handler = { came, l } };
	ucs_status_t status;
	int err;

	if (!l)
		return tensor_fail(ENOMEM, "ucx: no memory for a listener");
	l->asked = asked;
	l->owner = owner;
	err = ucx_worker(&l->worker, &l->fd);
	if (err < 0) {
		free(l);
		return err;
	}
	status = ucp_listener_create(l->worker, &params, &l->listener);
	if (status == UCS_OK)
		status = find_port(l);
	if (status == UCS_OK) {
		*to = l;
		return 0;
	}
	if (l->listener)
		ucp_listener_destroy(l->listener);
	ucp_worker_destroy(l->worker);
	free(l);
	return ucx_fail("ucp_listener_create", status);
}

int ucx_listener_accept(struct transport_listener *l, void *request,
			const struct transport_events *events, void *owner,
			struct transport_connection **c)
{
	return ucx_accept(request, events, owner, c);
}

void ucx_reject(struct transport_listener *l, void *request)
{
	ucp_listener_reject(l->listener, request);
}

uint16_t ucx_port(const struct transport_listener *l)
{
	return l->port;
}

bool ucx_listener_step(struct transport_listener *l)
{
	bool any = ucp_worker_progress(l->worker);

	while (l->n)
		l->asked(l->owner, l->requests[--l->n]);
	return any;
}

int ucx_listener_fd(const struct transport_listener *l)
{
	return l->fd;
}

bool ucx_listener_arm(struct transport_listener *l)
{
	return ucx_arm(l->worker);
}

void ucx_listener_close(struct transport_listener *l)
{
	while (l->n)
		ucx_reject(l, l->requests[--l->n]);
	ucp_listener_destroy(l->listener);
	ucp_worker_destroy(l->worker);
	free(l);
}
