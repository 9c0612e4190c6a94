// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * libtensor_ucx.so: channels between machines through UCX. One context for the process, a worker for each connection and each
 * listener. UCX is kept from what a library does not do: it prints nothing and handles no signals of the program.
 */
#include "base/error.h"

#include "remote/ucx/ucx.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

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

static void *register_memory(void *address, size_t bytes)
{
	ucp_mem_map_params_t params = { .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
					.address = address,
					.length = bytes };
	ucp_context_h c = ucx_context();
	ucp_mem_h memory;

	return c && ucp_mem_map(c, &params, &memory) == UCS_OK ? memory : NULL;
}

static void unregister_memory(void *registration)
{
	ucp_mem_unmap(context, registration);
}

/* ---- the plugin ---- */

static const struct transport transport = {
	.name = "ucx",
	.register_memory = register_memory,
	.unregister_memory = unregister_memory,
	.connect = ucx_connect,
	.send = ucx_send,
	.step = ucx_step,
	.fd = ucx_fd,
	.arm = ucx_connection_arm,
	.close = ucx_close,
	.listen = ucx_listen,
	.accept = ucx_listener_accept,
	.reject = ucx_reject,
	.port = ucx_port,
	.listener_step = ucx_listener_step,
	.listener_fd = ucx_listener_fd,
	.listener_arm = ucx_listener_arm,
	.listener_close = ucx_listener_close,
};

/* Errors are reported by the functions; UCX also prints them. */
static ucs_log_func_rc_t print_nothing(const char *file, unsigned line, const char *function,
				       ucs_log_level_t level,
				       const ucs_log_component_config_t *config, const char *format,
				       va_list args)
{
	return level > UCS_LOG_LEVEL_FATAL ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
}

/* Whether the handler of a signal is a function of UCX. */
static bool is_handled_by_ucx(int number)
{
	struct sigaction now;
	Dl_info handler, ucx;

	return sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL &&
	       now.sa_handler != SIG_IGN && dladdr((void *)now.sa_handler, &handler) &&
	       dladdr((void *)ucs_debug_disable_signal, &ucx) && handler.dli_fbase == ucx.dli_fbase;
}

/* Loading UCX sets handlers of signals that end the program, and of SIGHUP. */
static void remove_handlers(void)
{
	for (int i = 1; i < NSIG; i++) {
		if (is_handled_by_ucx(i))
			ucs_debug_disable_signal(i);
		/* One that UCX does not give up; it was the program's to set, and it has not. */
		if (is_handled_by_ucx(i))
			signal(i, SIG_DFL);
	}
}

__attribute__((constructor)) static void load(void)
{
	if (!secure_getenv("UCX_LOG_LEVEL"))
		ucs_log_push_handler(print_nothing);
	if (!secure_getenv("UCX_HANDLE_ERRORS"))
		remove_handlers();
	tensor_register_transport(&transport, NULL);
}
