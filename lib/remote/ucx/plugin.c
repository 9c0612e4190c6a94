// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * libtensor_ucx.so: channels between machines through UCX, which is kept from what a library does not do: it prints nothing and
 * handles no signals of the program.
 */
#include "remote/ucx/ucx.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

static const struct transport transport = {
	.name = "ucx",
	.register_memory = ucx_register,
	.unregister_memory = ucx_unregister,
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
