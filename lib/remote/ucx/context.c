// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The context of UCX, one for the process, and its workers: one for each connection and each listener. */
#include "base/error.h"

#include "remote/ucx/ucx.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

void ucx_signals_begin(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

void ucx_signals_end(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- errors ---- */

int ucx_errno(ucs_status_t status)
{
	switch (status) {
	case UCS_ERR_NO_MEMORY:
	case UCS_ERR_NO_RESOURCE:
		return ENOMEM;
	case UCS_ERR_UNREACHABLE:
	case UCS_ERR_REJECTED:
	case UCS_ERR_NOT_CONNECTED:
		return ECONNREFUSED;
	case UCS_ERR_INVALID_ADDR:
	case UCS_ERR_NO_DEVICE:
		return EADDRNOTAVAIL;
	case UCS_ERR_BUSY:
	case UCS_ERR_ALREADY_EXISTS:
		return EADDRINUSE;
	case UCS_ERR_UNSUPPORTED:
		return ENOTSUP;
	default:
		return ECONNRESET;
	}
}

int ucx_fail(const char *what, ucs_status_t status)
{
	return tensor_fail(ucx_errno(status), "ucx: %s: %s", what, ucs_status_string(status));
}

/* ---- the context ---- */

static ucp_context_h context;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static ucs_status_t begin(ucp_context_h *c)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES |
					      UCP_PARAM_FIELD_MT_WORKERS_SHARED |
					      UCP_PARAM_FIELD_NAME,
				.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
				.mt_workers_shared = 1,
				.name = "tensor" };
	ucp_config_t *config;
	ucs_status_t status = ucp_config_read(NULL, NULL, &config);
	sigset_t before;

	if (status != UCS_OK)
		return status;
	ucx_signals_begin(&before);
	status = ucp_init(&params, config, c);
	ucx_signals_end(&before);
	ucp_config_release(config);
	return status;
}

ucp_context_h ucx_context(void)
{
	ucs_status_t status = UCS_OK;

	pthread_mutex_lock(&lock);
	if (!context)
		status = begin(&context);
	pthread_mutex_unlock(&lock);
	if (status != UCS_OK) {
		ucx_fail("ucp_init", status);
		return NULL;
	}
	return context;
}

int ucx_worker(ucp_worker_h *worker, int *fd)
{
	ucp_worker_params_t params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				       .thread_mode = UCS_THREAD_MODE_SERIALIZED };
	ucp_context_h c = ucx_context();
	ucs_status_t status;
	sigset_t before;

	if (!c)
		return -ENOTSUP;
	ucx_signals_begin(&before);
	status = ucp_worker_create(c, &params, worker);
	ucx_signals_end(&before);
	if (status != UCS_OK)
		return ucx_fail("ucp_worker_create", status);
	status = ucp_worker_get_efd(*worker, fd);
	if (status == UCS_OK)
		return 0;
	ucp_worker_destroy(*worker);
	return ucx_fail("ucp_worker_get_efd", status);
}

bool ucx_arm(ucp_worker_h worker)
{
	return ucp_worker_arm(worker) != UCS_ERR_BUSY;
}

/* ---- memory ---- */

void *ucx_register(void *address, size_t bytes)
{
	ucp_mem_map_params_t params = { .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
					.address = address,
					.length = bytes };
	ucp_context_h c = ucx_context();
	ucp_mem_h memory;

	return c && ucp_mem_map(c, &params, &memory) == UCS_OK ? memory : NULL;
}

void ucx_unregister(void *registration)
{
	ucp_mem_unmap(context, registration);
}
