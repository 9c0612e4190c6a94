/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The plugin of UCX: context.c the context of the process, connection.c and listener.c what it is for, plugin.c the table. */
#ifndef TENSOR_REMOTE_UCX_H
#define TENSOR_REMOTE_UCX_H

#include "remote/transport.h"

#include <ucp/api/ucp.h>

/* The context, which is made with the first use; NULL with the error set. */
ucp_context_h ucx_context(void);
/* A worker, which is used by one thread at a time, and its descriptor. 0, or -errno with the error set. */
int ucx_worker(ucp_worker_h *worker, int *fd);
/* False if there is something to do. */
bool ucx_arm(ucp_worker_h worker);
/* The errno of a status. */
int ucx_errno(ucs_status_t status);
/* Sets the error of a status, and returns -errno. */
int ucx_fail(const char *what, ucs_status_t status);
/* Threads that UCX begins inside of the calls between both block all signals. */
void ucx_signals_begin(sigset_t *before);
void ucx_signals_end(const sigset_t *before);

void *ucx_register(void *address, size_t bytes);
void ucx_unregister(void *registration);

int ucx_connect(const struct sockaddr *to, socklen_t bytes, const struct transport_events *events,
		void *owner, struct transport_connection **c);
int ucx_accept(ucp_conn_request_h request, const struct transport_events *events, void *owner,
	       struct transport_connection **c);
int ucx_send(struct transport_connection *c, const void *header, size_t header_bytes,
	     const void *data, size_t bytes, bool is_long, void *token);
bool ucx_step(struct transport_connection *c);
int ucx_fd(const struct transport_connection *c);
bool ucx_connection_arm(struct transport_connection *c);
void ucx_close(struct transport_connection *c, int64_t wait_ns);

int ucx_listen(const struct sockaddr *at, socklen_t bytes,
	       void (*asked)(void *owner, void *request), void *owner,
	       struct transport_listener **l);
int ucx_listener_accept(struct transport_listener *l, void *request,
			const struct transport_events *events, void *owner,
			struct transport_connection **c);
void ucx_reject(struct transport_listener *l, void *request);
uint16_t ucx_port(const struct transport_listener *l);
bool ucx_listener_step(struct transport_listener *l);
int ucx_listener_fd(const struct transport_listener *l);
bool ucx_listener_arm(struct transport_listener *l);
void ucx_listener_close(struct transport_listener *l);

#endif
