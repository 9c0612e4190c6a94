// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A connection: an endpoint on a worker of its own. Frames are active messages. */
#include "base/error.h"

#include "remote/ucx/ucx.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define FRAMES 7 /* the number of the active message */
#define CLOSE_NS \
	INT64_C(100000000) /* for the answer of the peer, which a network that is cut does not carry */

/* A send, or data that comes. UCX calls nothing for some that were under way at the end. */
struct under_way {
	struct under_way *next, **link;
	struct transport_connection *c;
	void *token;
};

struct transport_connection {
	const struct transport_events *events;
	void *owner;
	ucp_worker_h worker;
	ucp_ep_h endpoint;
	int fd;
	bool has_failed;
	struct under_way *first;
};

/* NULL without memory. */
static struct under_way *under_way_new(struct transport_connection *c, void *token)
{
	struct under_way *u = malloc(sizeof(*u));

	if (!u)
		return NULL;
	*u = (struct under_way){ c->first, &c->first, c, token };
	if (u->next)
		u->next->link = &u->next;
	c->first = u;
	return u;
}

static void under_way_free(struct under_way *u)
{
	*u->link = u->next;
	if (u->next)
		u->next->link = u->link;
	free(u);
}

static bool is_pointer(ucs_status_ptr_t p)
{
	return UCS_PTR_IS_PTR(p);
}

/* ---- frames that come ---- */

static void report(struct transport_connection *c, void *token, ucs_status_t status)
{
	c->events->data(c->owner, token, status == UCS_OK ? 0 : -ECONNRESET);
}

static void arrived(void *request, ucs_status_t status, size_t bytes, void *data)
{
	struct under_way *a = data;

	report(a->c, a->token, status);
	under_way_free(a);
	ucp_request_free(request);
}

/* The data is still in the memory of the peer. */
static ucs_status_t fetch(struct transport_connection *c, void *from, void *to, size_t bytes,
			  void *token)
{
	struct under_way *a = under_way_new(c, token);
	ucp_request_param_t params = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						       UCP_OP_ATTR_FIELD_USER_DATA,
				       .cb.recv_am = arrived,
				       .user_data = a };
	ucs_status_ptr_t res;

	if (!a) {
		report(c, token, UCS_ERR_NO_MEMORY);
		return UCS_OK;
	}
	res = ucp_am_recv_data_nbx(c->worker, from, to, bytes, &params);
	if (!is_pointer(res)) {
		report(c, token, UCS_PTR_STATUS(res));
		under_way_free(a);
	}
	return UCS_INPROGRESS;
}

static ucs_status_t came(void *arg, const void *header, size_t header_bytes, void *data,
			 size_t bytes, const ucp_am_recv_param_t *param)
{
	struct transport_connection *c = arg;
	void *to = NULL, *token = NULL;

	if (!c->events->frame(c->owner, header, header_bytes, bytes, &to, &token))
		return UCS_OK;
	if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
		return fetch(c, data, to, bytes, token);
	if (bytes)
		memcpy(to, data, bytes);
	report(c, token, UCS_OK);
	return UCS_OK;
}

/* ---- frames that go ---- */

static void sent(void *request, ucs_status_t status, void *data)
{
	struct under_way *u = data;

	u->c->events->sent(u->c->owner, u->token, status == UCS_OK ? 0 : -ECONNRESET);
	under_way_free(u);
	ucp_request_free(request);
}

int ucx_send(struct transport_connection *c, const void *header, size_t header_bytes,
	     const void *data, size_t bytes, bool is_long, void *token)
{
	struct under_way *u = c->has_failed ? NULL : under_way_new(c, token);
	ucp_request_param_t params = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						       UCP_OP_ATTR_FIELD_USER_DATA |
						       UCP_OP_ATTR_FIELD_FLAGS,
				       .flags = is_long ? UCP_AM_SEND_FLAG_RNDV :
							  UCP_AM_SEND_FLAG_EAGER,
				       .cb.send = sent,
				       .user_data = u };
	ucs_status_ptr_t res;

	if (!u)
		return c->has_failed ? -ECONNRESET : -ENOMEM;
	res = ucp_am_send_nbx(c->endpoint, FRAMES, header, header_bytes, data, bytes, &params);
	if (is_pointer(res))
		return 1;
	under_way_free(u);
	return UCS_PTR_STATUS(res) == UCS_OK ? 0 : -ucx_errno(UCS_PTR_STATUS(res));
}

/* ---- progress ---- */

bool ucx_step(struct transport_connection *c)
{
	return ucp_worker_progress(c->worker);
}

int ucx_fd(const struct transport_connection *c)
{
	return c->fd;
}

bool ucx_connection_arm(struct transport_connection *c)
{
	return ucx_arm(c->worker);
}

/* ---- beginning and end ---- */

static void failed(void *arg, ucp_ep_h endpoint, ucs_status_t status)
{
	struct transport_connection *c = arg;

	c->has_failed = true;
	c->events->failed(c->owner, -ucx_errno(status), ucs_status_string(status));
}

/* A connection without an endpoint; NULL with the error set. */
static struct transport_connection *new_connection(const struct transport_events *events,
						   void *owner)
{
	struct transport_connection *c = calloc(1, sizeof(*c));
	ucp_am_handler_param_t handler = { .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
							 UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
							 UCP_AM_HANDLER_PARAM_FIELD_CB |
							 UCP_AM_HANDLER_PARAM_FIELD_ARG,
					   .id = FRAMES,
					   .flags = UCP_AM_FLAG_WHOLE_MSG,
					   .cb = came,
					   .arg = c };
	ucs_status_t status;

	if (!c) {
		tensor_fail(ENOMEM, "ucx: no memory for a connection");
		return NULL;
	}
	c->events = events;
	c->owner = owner;
	if (ucx_worker(&c->worker, &c->fd) < 0) {
		free(c);
		return NULL;
	}
	status = ucp_worker_set_am_recv_handler(c->worker, &handler);
	if (status == UCS_OK)
		return c;
	ucx_fail("ucp_worker_set_am_recv_handler", status);
	ucp_worker_destroy(c->worker);
	free(c);
	return NULL;
}

static int begin(const struct transport_events *events, void *owner, ucp_ep_params_t *params,
		 struct transport_connection **to)
{
	struct transport_connection *c = new_connection(events, owner);
	ucs_status_t status;
	sigset_t before;

	if (!c)
		return -ENOMEM;
	params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
	params->err_handler = (ucp_err_handler_t){ failed, c };
	ucx_signals_begin(&before);
	status = ucp_ep_create(c->worker, params, &c->endpoint);
	ucx_signals_end(&before);
	if (status == UCS_OK) {
		*to = c;
		return 0;
	}
	ucp_worker_destroy(c->worker);
	free(c);
	return ucx_fail("ucp_ep_create", status);
}

int ucx_connect(const struct sockaddr *to, socklen_t bytes, const struct transport_events *events,
		void *owner, struct transport_connection **c)
{
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_FLAGS |
						 UCP_EP_PARAM_FIELD_SOCK_ADDR,
				   .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
				   .sockaddr = { to, bytes } };

	return begin(events, owner, &params, c);
}

int ucx_accept(ucp_conn_request_h request, const struct transport_events *events, void *owner,
	       struct transport_connection **c)
{
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST,
				   .conn_request = request };

	return begin(events, owner, &params, c);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Until the request has ended, at most for a time. */
static void complete(struct transport_connection *c, ucs_status_ptr_t request, int64_t wait_ns)
{
	int64_t end = now_ns() + wait_ns;

	if (!is_pointer(request))
		return;
	while (ucp_request_check_status(request) == UCS_INPROGRESS && now_ns() < end)
		if (!ucp_worker_progress(c->worker))
			nanosleep(&(struct timespec){ 0, 20000 }, NULL);
	ucp_request_free(request);
}

void ucx_close(struct transport_connection *c, int64_t wait_ns)
{
	static const ucp_request_param_t flush, force = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
							  .flags = UCP_EP_CLOSE_FLAG_FORCE };

	if (wait_ns && !c->has_failed)
		complete(c, ucp_ep_flush_nbx(c->endpoint, &flush), wait_ns);
	complete(c, ucp_ep_close_nbx(c->endpoint, &force), CLOSE_NS);
	ucp_worker_destroy(c->worker);
	while (c->first)
		under_way_free(c->first);
	free(c);
}
