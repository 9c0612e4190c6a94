// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Calls of functions of the program (callback.h). */
#include "autograd/graph/callback.h"

#include "autograd/graph/pack.h"
#include "autograd/graph/state.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

struct callback callback_begin(void)
{
	struct tensor_thread *th = thread();
	const struct autograd_thread *at = th->autograd;
	struct callback before = { .code = th->error.code,
				   .modes = th->modes,
				   .paused = at ? at->paused : NULL,
				   .hooks = at ? at->pack_hooks : NULL };

	th->error.code = 0;
	return before;
}

static void restore(struct tensor_thread *th, const struct callback *before)
{
	struct autograd_thread *at = th->autograd;

	th->modes = before->modes;
	if (at) {
		at->paused = before->paused;
		pack_hooks_unwind(at, before->hooks);
	}
}

int callback_end(const struct callback *before, int err, const char *fmt, ...)
{
	struct tensor_thread *th = thread();
	char text[sizeof(th->error.text)];
	va_list args;

	restore(th, before);
	if (err >= 0) {
		th->error.code = th->error.code ?: before->code;
		return 0;
	}
	if (th->error.code)
		return -th->error.code;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return tensor_fail(-err, "%s", text);
}
