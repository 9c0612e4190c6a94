// SPDX-License-Identifier: GPL-2.0-only
/*
 * What holders may rely on: nobody writes (SEAL), nobody has it any more (REVOKE).
 *
 * Everything that can write is counted before it can: a mapping that is or may become writable, a
 * device's mapping, the kernel's. A seal closes that counter while it is zero, so there is no
 * moment at which a writer slips by. Who got hold of a page through a mapping that is gone, a
 * network card or direct I/O under way, is seen by the page's reference count once no mapping is
 * left in it; new ones that could write need a writable mapping, which there is none of by then.
 */
#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "call.h"
#include "core.h"
#include "netlink.h"
#include "trace.h"

/* References that are gone in a moment are waited for: how often, and jiffies each time. */
#define SEAL_TRIES	5
#define SEAL_PAUSE	max(HZ / 100, 1)

#define SEALS	(TENSOR_SEAL_WRITE | TENSOR_SEAL_META | TENSOR_SEAL_SEAL)

/**
 * tensor_write_get() - come to be one that may write
 * @buf: the buffer
 *
 * Return: 0, undone by tensor_write_put(); -EPERM: sealed.
 */
int tensor_write_get(struct tensor_buf *buf)
{
	return atomic_inc_unless_negative(&buf->writers) ? 0 : -EPERM;
}

/**
 * tensor_write_put() - can write no more
 * @buf: the buffer
 */
void tensor_write_put(struct tensor_buf *buf)
{
	atomic_dec(&buf->writers);
}

/**
 * tensor_buf_seals() - which seals there are
 * @buf: the buffer
 *
 * Return: TENSOR_SEAL_*.
 */
u32 tensor_buf_seals(struct tensor_buf *buf)
{
	u32 seals;

	spin_lock(&buf->spin);
	seals = buf->seals;
	spin_unlock(&buf->spin);
	return seals;
}

/**
 * tensor_buf_state() - what state it is in
 * @buf: the buffer
 *
 * Return: TENSOR_STATE_REVOKED, TENSOR_STATE_PURGEABLE, TENSOR_STATE_PURGED.
 */
u32 tensor_buf_state(struct tensor_buf *buf)
{
	u32 state;

	spin_lock(&buf->spin);
	state = buf->state;
	spin_unlock(&buf->spin);
	return state;
}

/**
 * tensor_buf_usable() - may it still be used?
 * @buf: the buffer
 *
 * Return: 0; -EIDRM: it was revoked.
 */
int tensor_buf_usable(struct tensor_buf *buf)
{
	return tensor_buf_state(buf) & TENSOR_STATE_REVOKED ? -EIDRM : 0;
}

/**
 * tensor_device_join() - count one that maps it, of a buffer that has its pages
 * @buf: the buffer; its lock is held. It is not revoked, or a device is counted
 * @write: whether it may write
 *
 * Return: 0, undone by tensor_device_put(); -EPERM: sealed against writing.
 */
int tensor_device_join(struct tensor_buf *buf, bool write)
{
	int err;

	lockdep_assert_held(&buf->lock);
	err = write ? tensor_write_get(buf) : 0;
	if (err)
		return err;
	buf->devices++;
	trace_tensor_device(buf, write, true);
	return 0;
}

/**
 * tensor_device_get() - a device, or the kernel, is about to map it
 * @buf: the buffer
 * @write: whether it may write
 *
 * From here on the pages stay until tensor_device_put(), a revocation notwithstanding.
 *
 * Return: 0; -EIDRM; -EPERM: sealed against writing.
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
 * @write: as there; a write has ended then
 */
void tensor_device_put(struct tensor_buf *buf, bool write)
{
	if (write)
		tensor_status_wrote(buf);
	mutex_lock(&buf->lock);
	trace_tensor_device(buf, write, false);
	if (write)
		tensor_write_put(buf);
	if (!--buf->devices)
		tensor_buf_uncharge(buf, &buf->orphans);
	mutex_unlock(&buf->lock);
}

/* Whether nobody has a page in hand. Readers' mappings are emptied for it, and fault again. */
static bool seal_idle(struct tensor_buf *buf)
{
	bool idle;

	tensor_buf_shut(buf, true);
	idle = tensor_chunks_idle(&buf->chunks);
	tensor_buf_open(buf);
	return idle;
}

static int seal_wait_idle(struct tensor_buf *buf)
{
	int tries;

	for (tries = 0; !seal_idle(buf); tries++) {
		if (tries == SEAL_TRIES)
			return -EBUSY;
		schedule_timeout_killable(SEAL_PAUSE);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

static int seal_write(struct tensor_buf *buf)
{
	int err;

	if (buf->backing->kind != TENSOR_KIND_ALLOC)
		return -EOPNOTSUPP;
	if (tensor_buf_seals(buf) & TENSOR_SEAL_WRITE)
		return 0;
	if (tensor_buf_state(buf) & TENSOR_STATE_PURGEABLE)
		return -EBUSY;
	if (atomic_cmpxchg(&buf->writers, 0, TENSOR_SEALED))
		return -EBUSY;
	err = seal_wait_idle(buf);
	if (err)
		atomic_set(&buf->writers, 0);
	return err;
}

/* Whether there is one more than before, or -errno. */
static int seal_add(struct tensor_buf *buf, u32 seals)
{
	u32 before = tensor_buf_seals(buf);
	int err;

	lockdep_assert_held(&buf->lock);
	err = tensor_buf_usable(buf);
	if (err)
		return err;
	if (before & TENSOR_SEAL_SEAL)
		return -EPERM;
	if (seals & TENSOR_SEAL_WRITE) {
		err = seal_write(buf);
		if (err)
			return err;
	}
	tensor_status_seal(buf, seals);
	return (seals & ~before) != 0;
}

static int seal_hold(struct tensor_call *call, const struct tensor_hold *hold, u32 seals)
{
	struct tensor_buf *buf = hold->buf;
	int added;

	if (!seals)
		return tensor_buf_usable(buf);
	if (!tensor_hold_full(hold))
		return -EACCES;
	mutex_lock(&buf->lock);
	added = seal_add(buf, seals);
	mutex_unlock(&buf->lock);
	if (added > 0) {
		tensor_event_post(buf, TENSOR_EVENT_SEAL, call->client);
		tensor_notify_seal(buf, tensor_buf_seals(buf));
	}
	return min(added, 0);
}

/**
 * tensor_seal() - SEAL
 * @call: the call
 *
 * Return: 0 or -errno.
 */
int tensor_seal(struct tensor_call *call)
{
	struct tensor_seal *arg = &call->arg.seal;
	struct tensor_hold hold;
	int err;

	if (arg->flags || arg->seals & ~SEALS)
		return -EOPNOTSUPP;
	err = tensor_call_hold(call, arg->handle, &hold);
	if (err)
		return err;
	/* what cannot be undone is done when the reply can be written */
	err = tensor_call_reply(call) ?: seal_hold(call, &hold, arg->seals);
	if (!err)
		arg->seals = tensor_buf_seals(hold.buf);
	tensor_buf_put(hold.buf);
	return err ?: tensor_call_reply(call);
}

/* Devices keep what they use; the last of them gives it back. */
static void revoke_pages(struct tensor_buf *buf)
{
	struct tensor_chunks chunks;

	tensor_buf_shut(buf, true);
	tensor_buf_take(buf, &chunks);
	tensor_buf_open(buf);
	if (buf->devices)
		buf->orphans = chunks;
	else
		tensor_buf_uncharge(buf, &chunks);
}

static int revoke_hold(const struct tensor_hold *hold)
{
	struct tensor_buf *buf = hold->buf;
	bool first;

	if (!tensor_hold_full(hold))
		return -EACCES;
	if (buf->backing->kind != TENSOR_KIND_ALLOC)
		return -EOPNOTSUPP;
	mutex_lock(&buf->lock);
	tensor_purge_forget(buf);
	first = !tensor_buf_usable(buf);
	if (first) {
		tensor_status_state(buf, TENSOR_STATE_REVOKED,
				    TENSOR_STATE_PURGEABLE | TENSOR_STATE_PURGED);
		revoke_pages(buf);
	}
	mutex_unlock(&buf->lock);
	return first;
}

/**
 * tensor_revoke() - REVOKE
 * @call: the call
 *
 * Return: 0 or -errno.
 */
int tensor_revoke(struct tensor_call *call)
{
	struct tensor_revoke *arg = &call->arg.revoke;
	struct tensor_hold hold;
	int done;

	if (arg->flags)
		return -EOPNOTSUPP;
	if (arg->__reserved)
		return -EINVAL;
	done = tensor_call_hold(call, arg->handle, &hold);
	if (done)
		return done;
	done = revoke_hold(&hold);
	if (done > 0) {
		tensor_event_post(hold.buf, TENSOR_EVENT_REVOKE, call->client);
		tensor_notify_revoke(hold.buf);
	}
	tensor_buf_put(hold.buf);
	return min(done, 0);
}
