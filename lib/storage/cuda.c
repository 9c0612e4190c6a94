// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The CUDA plugin: loaded once, when first needed. It stores a table of functions here, or the
 * reason why CUDA is not available.
 */
#include "storage/devices.h"

#include "base/error.h"
#include "base/plugin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensor/cuda.h>

#define PLUGIN "libtensor_cuda.so.0"

static const struct cuda_plugin *plugin;
static char reason[TENSOR_ERROR_TEXT] = PLUGIN " registered nothing";
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Called by the plugin's constructor with its table, or with the reason for its absence. */
TENSOR_EXPORT int tensor_register_cuda(const struct cuda_plugin *p, const char *error)
{
	plugin = p;
	if (error)
		snprintf(reason, sizeof(reason), "%s", error);
	return 0;
}

static void load(void)
{
	plugin_open(PLUGIN, "TENSOR_CUDA_PLUGIN", reason, sizeof(reason));
}

/* The table, or NULL with the error set. */
static const struct cuda_plugin *cuda(void)
{
	pthread_once(&once, load);
	if (!plugin)
		tensor_fail(ENODEV, "cuda: %s", reason);
	return plugin;
}

const struct tensor_allocator *cuda_allocator(void)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->allocator : NULL;
}

const struct tensor_streams *cuda_streams(void)
{
	return plugin ? plugin->streams : NULL;
}

const struct cuda_graph_calls *cuda_graph_calls(void)
{
	return plugin ? plugin->graphs : NULL;
}

const struct cuda_stream_calls *cuda_stream_calls(void)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->stream_calls : NULL;
}

const struct cuda_share_calls *cuda_share_calls(void)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->share_calls : NULL;
}

TENSOR_EXPORT bool tensor_cuda_is_available(void)
{
	pthread_once(&once, load);
	return plugin && plugin->usable();
}

TENSOR_EXPORT int tensor_cuda_device_count(void)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->device_count() : -ENODEV;
}

TENSOR_EXPORT int tensor_cuda_set_stream(int device, void *stream)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->set_stream(device, stream) : -ENODEV;
}

TENSOR_EXPORT void *tensor_cuda_current_stream(int device)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->current_stream(device) : NULL;
}

TENSOR_EXPORT int tensor_cuda_synchronize(int device)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->synchronize(device) : -ENODEV;
}

TENSOR_EXPORT int tensor_cuda_memory(int device, struct tensor_cuda_usage *memory)
{
	const struct cuda_plugin *p;

	if (!memory)
		return tensor_fail(EINVAL, "cuda_memory: memory is NULL");
	p = cuda();
	return p ? p->memory(device, memory) : -ENODEV;
}

TENSOR_EXPORT int tensor_cuda_memory_trim(int device)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->memory_trim(device) : -ENODEV;
}

TENSOR_EXPORT int tensor_cuda_memory_stats(int device, struct tensor_cuda_stats *stats)
{
	const struct cuda_plugin *p;

	if (!stats)
		return tensor_fail(EINVAL, "cuda_memory_stats: stats is NULL");
	p = cuda();
	return p ? p->memory_stats(device, stats) : -ENODEV;
}

TENSOR_EXPORT int tensor_cuda_memory_reset_peak(int device)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->memory_reset(device, false) : -ENODEV;
}

TENSOR_EXPORT int tensor_cuda_memory_reset_accumulated(int device)
{
	const struct cuda_plugin *p = cuda();

	return p ? p->memory_reset(device, true) : -ENODEV;
}

/* ---- checks of values ---- */

static _Atomic int checks = -1; /* -1: TENSOR_CUDA_CHECKS is not read yet */

TENSOR_EXPORT int tensor_cuda_checks(void)
{
	int now = atomic_load_explicit(&checks, memory_order_relaxed);

	if (unlikely(now < 0)) {
		const char *text = secure_getenv("TENSOR_CUDA_CHECKS");
		int unread = -1;

		now = text && !strcmp(text, "wait") ? TENSOR_CUDA_CHECKS_WAIT :
						      TENSOR_CUDA_CHECKS_LATE;
		if (!atomic_compare_exchange_strong(&checks, &unread, now))
			now = unread;
	}
	return now;
}

TENSOR_EXPORT int tensor_cuda_set_checks(int mode)
{
	if (mode != TENSOR_CUDA_CHECKS_LATE && mode != TENSOR_CUDA_CHECKS_WAIT)
		return tensor_fail(EINVAL, "cuda_set_checks: there is no mode %d", mode);
	tensor_cuda_checks();
	return atomic_exchange_explicit(&checks, mode, memory_order_relaxed);
}

TENSOR_EXPORT bool tensor_cuda_set_nonblocking(bool nonblocking)
{
	const struct cuda_plugin *p = cuda();

	return p && p->set_nonblocking(nonblocking);
}
