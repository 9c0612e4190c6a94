// SPDX-License-Identifier: GPL-2.0-only
/*
 * SYNC: the begin and the end of an access by the processor.
 *
 * Processes share the caches, so between them nothing needs to be done. A device may still be
 * working, so the begin waits for its fences, and may not be cache coherent, so the DMA API syncs
 * its mappings. The end of a write raises the generation by one.
 */
#include <linux/dma-direction.h>
#include <linux/dma-resv.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>

#include "../buffer/state.h"
#include "../buffer/trace.h"
#include "../map/devmap.h"
#include "call.h"
#include "sync.h"

#define SYNC_FLAGS (TENSOR_SYNC_READ | TENSOR_SYNC_WRITE | TENSOR_SYNC_END)

/* The direction from the device's view: what the processor reads was written by the device. */
static enum dma_data_direction sync_dir(u32 flags)
{
	if (!(flags & TENSOR_SYNC_WRITE))
		return DMA_FROM_DEVICE;
	return flags & TENSOR_SYNC_READ ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

/* In jiffies, rounded up and without the current one, so that the wait is never too short. */
static unsigned long sync_left(u64 deadline_ns)
{
	u64 now = ktime_get_ns();

	if (deadline_ns == TENSOR_SYNC_FOREVER)
		return MAX_SCHEDULE_TIMEOUT;
	if (deadline_ns <= now)
		return 0;
	return min_t(u64, nsecs_to_jiffies64(deadline_ns - now) + 2, MAX_SCHEDULE_TIMEOUT - 1);
}

static int sync_wait(struct tensor_buf *buf, const struct tensor_sync *arg)
{
	struct dma_resv *resv = buf->backing->resv ? buf->backing->resv(buf) : &buf->resv;
	enum dma_resv_usage usage = dma_resv_usage_rw(arg->flags & TENSOR_SYNC_WRITE);
	long left = dma_resv_wait_timeout(resv, usage, true, sync_left(arg->deadline_ns));

	if (left < 0)
		return left;
	return left ? 0 : -ETIMEDOUT;
}

static int sync_begin(const struct tensor_hold *hold, const struct tensor_sync *arg)
{
	struct tensor_buf *buf = hold->buf;
	int err = sync_wait(buf, arg);

	if (err)
		return err;
	if (buf->backing->begin)
		return buf->backing->begin(buf, sync_dir(arg->flags));
	tensor_devmap_sync(hold, true);
	return 0;
}

static int sync_end(const struct tensor_hold *hold, const struct tensor_sync *arg)
{
	struct tensor_buf *buf = hold->buf;
	int err = 0;

	if (buf->backing->end)
		err = buf->backing->end(buf, sync_dir(arg->flags));
	else
		tensor_devmap_sync(hold, false);
	if (!err && arg->flags & TENSOR_SYNC_WRITE)
		tensor_state_wrote(buf);
	return err;
}

static int sync_hold(const struct tensor_hold *hold, const struct tensor_sync *arg)
{
	int err = tensor_buf_usable(hold->buf);

	if (!err)
		err = tensor_buf_may(hold, arg->flags & TENSOR_SYNC_READ,
				     arg->flags & TENSOR_SYNC_WRITE);
	if (err)
		return err;
	trace_tensor_sync(hold->buf, arg->flags);
	return arg->flags & TENSOR_SYNC_END ? sync_end(hold, arg) : sync_begin(hold, arg);
}

static int sync_args(const struct tensor_sync *arg)
{
	if (arg->flags & ~SYNC_FLAGS)
		return -EOPNOTSUPP;
	if (arg->__reserved || !(arg->flags & (TENSOR_SYNC_READ | TENSOR_SYNC_WRITE)))
		return -EINVAL;
	return arg->flags & TENSOR_SYNC_END && arg->deadline_ns ? -EINVAL : 0;
}

/**
 * tensor_sync() - SYNC
 * @call: the call
 *
 * Return: 0 or -errno.
 */
int tensor_sync(struct tensor_call *call)
{
	struct tensor_sync *arg = &call->arg.sync;
	struct tensor_hold hold;
	int err;

	err = sync_args(arg);
	if (err)
		return err;
	err = tensor_call_hold(call, arg->handle, &hold);
	if (err)
		return err;
	/* the action cannot be undone, so check first that the reply can be written */
	err = tensor_call_reply(call) ?: sync_hold(&hold, arg);
	if (!err)
		arg->generation = tensor_state_generation(hold.buf);
	tensor_buf_put(hold.buf);
	return err ?: tensor_call_reply(call);
}
