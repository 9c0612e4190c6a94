// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Checks of values on a device. A kernel that refuses a value reports it to the log of the device (report.h), and the host
 * reads the log after a wait that the program has asked for (late checks), or waits in the call itself (tensor_cuda_set_checks()).
 * A kernel that must not write if a value was refused reads a flag on the device. In a capture the flag alone exists, and
 * tensor_cuda_graph_wait() reads it.
 */
#include "kernels/cuda/runtime/log.h"

#include "kernels/cuda/launch_graph.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EXIT_WAIT_MS 1000

/* ---- the end of the process ---- */

/* Waits for the streams of the library, but not for work that does not end. */
static void wait_at_exit(int device)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	for (int i = 0; i < EXIT_WAIT_MS && cuda_streams_busy(device); i++)
		nanosleep(&nap, NULL);
}

static void report_at_exit(void)
{
	char text[TENSOR_ERROR_TEXT];
	struct log_refused first;
	uint64_t taken;

	if (cuda_forked)
		return;
	for (int device = 0; device < CUDA_DEVICES; device++) {
		if (!log_mapped(device))
			continue;
		wait_at_exit(device);
		taken = log_take(device, &first);
		if (!taken)
			continue;
		log_describe(&first.refused, text, sizeof(text));
		fprintf(stderr,
			"libtensor: cuda:%d: %s (and %" PRIu64
			" more; no call waited for the device afterwards; "
			"TENSOR_CUDA_CHECKS=wait reports it in the call itself)\n",
			device, text, taken - 1);
	}
}

static void register_exit(void)
{
	atexit(report_at_exit);
}

/* ---- a check ---- */

/* The first check of a device. What was registered after CUDA's own functions is called before them. */
static int open_log(const struct cuda_call *c)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err = log_map(c->op, c->device);

	if (!err)
		pthread_once(&once, register_exit);
	return err;
}

static int clear_flag(const struct cuda_call *c, const struct cuda_check *k)
{
	return cuda_check(c->op, cudaMemsetAsync(k->report.flag, 0xff, sizeof(*k->report.flag),
						 c->stream));
}

static int open_captured(const struct cuda_call *c, struct cuda_check *k)
{
	k->captured = true;
	k->report.flag = cuda_capture_check(c);
	return k->report.flag ? clear_flag(c, k) : -tensor_last_error()->code;
}

int cuda_check_open(const struct cuda_call *c, struct cuda_check *k, bool flag)
{
	static _Atomic unsigned long long checks;
	struct log_refused unused;
	void *data = NULL;
	int err = 0;

	*k = (struct cuda_check){ .report.op = c->op };
	if (cuda_capturing(c))
		return open_captured(c, k);
	if (unlikely(!log_mapped(c->device)))
		err = open_log(c);
	if (err)
		return err;
	k->waits = tensor_cuda_checks() == TENSOR_CUDA_CHECKS_WAIT;
	k->report.log = log_mapped(c->device);
	k->report.check = 2 * (atomic_fetch_add(&checks, 1) + 1) + (k->waits ? LOG_WAITS : 0);
	if (k->waits) /* the reserved entries are free for this check */
		log_take_own(c->device, LOG_WAITS, &unused);
	if (!flag)
		return 0;
	err = cuda_scratch(c, sizeof(*k->report.flag), &data);
	k->report.flag = data;
	if (!err)
		err = clear_flag(c, k);
	if (err)
		cuda_scratch_free(c, data);
	return err;
}

/* Waits for the stream, and fails if this check has refused a value. */
static int wait_for(const struct cuda_call *c, const struct cuda_check *k)
{
	char text[TENSOR_ERROR_TEXT];
	struct log_refused r;
	int err = cuda_drain(c);

	if (!log_take_own(c->device, k->report.check, &r) || err)
		return err;
	err = log_describe(&r.refused, text, sizeof(text));
	return tensor_fail(err, "%s", text);
}

int cuda_check_end(const struct cuda_call *c, struct cuda_check *k, int err)
{
	if (k->captured)
		return err ? err :
			     cuda_check(c->op, cuda_launch_keep_flag(k->report.flag, c->stream));
	if (!err && k->waits)
		err = wait_for(c, k);
	cuda_scratch_free(c, k->report.flag);
	return err;
}
