// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of a buffer: seals, revocation, generation, and counts of writers and devices.
 *
 * Every writer is counted before it can write: a mapping that is or may become writable, a mapping
 * by a device, a mapping by the kernel. A seal closes that counter while it is zero
 * (../ioctl/seal.c), so no writer can be missed.
 */
#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/sched.h>

#include "state.h"
#include "trace.h"

/**
 * tensor_buf_may() - check that the processor may access a buffer
 * @hold: the buffer and the rights
 * @read: the access reads
 * @write: the access writes
 *
 * Return: 0; -EACCES: a right is missing; -EPERM: sealed against writing.
 */
int tensor_buf_may(const struct tensor_hold *hold, bool read, bool write)
{
	if (read && !tensor_hold_may(hold, TENSOR_RIGHT_READ))
		return -EACCES;
	if (!write)
		return 0;
	if (!tensor_hold_may(hold, TENSOR_RIGHT_WRITE))
		return -EACCES;
	return tensor_buf_seals(hold->buf) & TENSOR_SEAL_WRITE ? -EPERM : 0;
}

/**
 * tensor_state_change() - change the state
 * @buf: the buffer; its lock is held
 * @set: TENSOR_STATE_* to set
 * @clear: TENSOR_STATE_* to clear
 */
void tensor_state_change(struct tensor_buf *buf, u32 set, u32 clear)
{
	lockdep_assert_held(&buf->lock);
	spin_lock(&buf->spin);
	WRITE_ONCE(buf->state, (buf->state & ~clear) | set);
	trace_tensor_state(buf);
	spin_unlock(&buf->spin);
}

/**
 * tensor_state_seal() - add seals
 * @buf: the buffer; its lock is held
 * @seals: TENSOR_SEAL_*
 */
void tensor_state_seal(struct tensor_buf *buf, u32 seals)
{
	lockdep_assert_held(&buf->lock);
	spin_lock(&buf->spin);
	WRITE_ONCE(buf->seals, buf->seals | seals);
	trace_tensor_state(buf);
	spin_unlock(&buf->spin);
}

/**
 * tensor_state_wrote() - count a write that has ended
 * @buf: the buffer
 *
 * Return: the new generation.
 */
u64 tensor_state_wrote(struct tensor_buf *buf)
{
	u64 generation;

	spin_lock(&buf->spin);
	generation = buf->generation + 1;
	WRITE_ONCE(buf->generation, generation);
	spin_unlock(&buf->spin);
	return generation;
}

/**
 * tensor_memory_count() - count the pages again, because they have changed
 * @buf: the buffer, whose pages do not change during the call
 *
 * The counts are stored, so that reading them does not wait for a transition.
 */
void tensor_memory_count(struct tensor_buf *buf)
{
	const struct tensor_chunks *chunks = &buf->chunks;
	struct tensor_memory memory = { .node = NUMA_NO_NODE };

	if (buf->backing->kind == TENSOR_KIND_PIN)
		memory.pinned_bytes = buf->bytes;
	if (chunks->nr) {
		memory.huge_bytes = tensor_chunks_huge_bytes(chunks);
		memory.pinned_bytes = buf->bytes;
		memory.node = chunks->node;
		memcpy(memory.count, chunks->count, sizeof(memory.count));
	}
	spin_lock(&buf->spin);
	buf->memory = memory;
	spin_unlock(&buf->spin);
}

/**
 * tensor_memory_get() - read the counts of a buffer's pages
 * @buf: the buffer
 * @memory: filled in
 */
void tensor_memory_get(struct tensor_buf *buf, struct tensor_memory *memory)
{
	spin_lock(&buf->spin);
	*memory = buf->memory;
	spin_unlock(&buf->spin);
}

static int write_join(struct tensor_buf *buf)
{
	return atomic_inc_unless_negative(&buf->writers) ? 0 : -EPERM;
}

/**
 * tensor_write_get() - count a new writer
 * @buf: the buffer; its lock is not held
 *
 * Waits for the outcome of a seal in progress.
 *
 * Return: 0, undone by tensor_write_put(); -EPERM: sealed; -EINTR: killed while waiting.
 */
int tensor_write_get(struct tensor_buf *buf)
{
	int err = write_join(buf);

	if (!err || tensor_buf_seals(buf) & TENSOR_SEAL_WRITE)
		return err;
	if (mutex_lock_killable(&buf->lock))
		return -EINTR;
	err = write_join(buf);
	mutex_unlock(&buf->lock);
	return err;
}

/**
 * tensor_write_put() - undo tensor_write_get()
 * @buf: the buffer
 */
void tensor_write_put(struct tensor_buf *buf)
{
	atomic_dec(&buf->writers);
}

/**
 * tensor_device_join() - count a mapping by a device, of a buffer that has its pages
 * @buf: the buffer; its lock is held. It is not revoked, or a device is already counted
 * @write: whether it may write
 *
 * Return: 0, undone by tensor_device_put(); -EPERM: sealed against writing.
 */
int tensor_device_join(struct tensor_buf *buf, bool write)
{
	int err;

	lockdep_assert_held(&buf->lock);
	err = write ? write_join(buf) : 0;
	if (err)
		return err;
	buf->devices++;
	trace_tensor_device(buf, write, true);
	return 0;
}

/**
 * tensor_device_get() - count a mapping by a device or the kernel before it is made
 * @buf: the buffer
 * @write: whether it may write
 *
 * The pages stay until tensor_device_put(), even if the buffer is revoked.
 *
 * Return: 0; -EIDRM: revoked; -EPERM: sealed against writing.
 */
int tensor_device_get(struct tensor_buf *buf, bool write)
{
	int err;

	mutex_lock(&buf->lock);
	err = tensor_buf_usable(buf) ?: tensor_device_join(buf, write);
	mutex_unlock(&buf->lock);
	return err;
}

/**
 * tensor_device_put() - undo tensor_device_get()
 * @buf: the buffer
 * @write: as there; counts a write that has ended
 */
void tensor_device_put(struct tensor_buf *buf, bool write)
{
	if (write)
		tensor_state_wrote(buf);
	mutex_lock(&buf->lock);
	trace_tensor_device(buf, write, false);
	if (write)
		tensor_write_put(buf);
	if (!--buf->devices)
		tensor_chunks_free(&buf->orphans);
	mutex_unlock(&buf->lock);
}
