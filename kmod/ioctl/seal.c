// SPDX-License-Identifier: GPL-2.0-only
/*
 * SEAL makes the memory read-only for good. REVOKE takes it from all holders.
 *
 * Each writer is counted before it can write (state.c). A seal closes that counter while it is
 * zero. A page that is still referenced through a former mapping (by a network card, or by direct
 * I/O in progress) is found by its reference count once all mappings are emptied; a new reference
 * that can write needs a writable mapping, and none is left. While the pages are checked the
 * counter is closed and the seal is not yet set: a new mapping waits for the buffer's lock, and so
 * for the outcome.
 */
#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "../buffer/buffer.h"
#include "../buffer/event.h"
#include "../buffer/purgelist.h"
#include "../buffer/state.h"
#include "../netlink/notify.h"
#include "call.h"
#include "seal.h"

/* References that are dropped soon are waited for: number of tries, and jiffies between them. */
#define SEAL_TRIES 5
#define SEAL_PAUSE max(HZ / 100, 1)

#define SEALS (TENSOR_SEAL_WRITE | TENSOR_SEAL_META | TENSOR_SEAL_SEAL)

/*
 * Whether no page has another reference. Mappings of readers are emptied for the check and fault
 * again.
 */
static bool seal_idle(struct tensor_buf *buf)
{
	bool idle;

	tensor_buf_block(buf, true);
	idle = tensor_chunks_idle(&buf->chunks);
	tensor_buf_unblock(buf);
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

/* Return 1 if a seal was added, 0 if all were set before, or -errno. */
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
	tensor_state_seal(buf, seals);
	return (seals & ~before) != 0;
}

static int seal_hold(struct tensor_call *call, const struct tensor_hold *hold, u32 seals)
{
	struct tensor_buf *buf = hold->buf;
	int added;

	if (!seals)
		return tensor_buf_usable(buf);
	if (buf->backing->kind != TENSOR_KIND_ALLOC)
		return -EOPNOTSUPP;
	if (!tensor_hold_may_all(hold, TENSOR_RIGHT_SEAL))
		return -EACCES;
	if (mutex_lock_killable(&buf->lock))
		return -EINTR;
	added = seal_add(buf, seals);
	mutex_unlock(&buf->lock);
	if (added > 0) {
		tensor_event_post(buf, TENSOR_EVENT_SEAL, tensor_call_client(call));
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

	err = tensor_call_begin(call, arg->flags || arg->seals & ~SEALS, false, arg->handle, &hold);
	if (err)
		return err;
	/* the action cannot be undone, so check first that the reply can be written */
	err = tensor_call_reply(call) ?: seal_hold(call, &hold, arg->seals);
	if (!err)
		arg->seals = tensor_buf_seals(hold.buf);
	tensor_buf_put(hold.buf);
	return err ?: tensor_call_reply(call);
}

/* Mappings by devices keep the pages; the last of them frees them. */
static void revoke_pages(struct tensor_buf *buf)
{
	struct tensor_chunks chunks = {};

	tensor_buf_block(buf, true);
	tensor_buf_unmap(buf);
	tensor_buf_swap(buf, &chunks);
	tensor_buf_unblock(buf);
	if (buf->devices)
		buf->orphans = chunks;
	else
		tensor_chunks_free(&chunks);
}

static int revoke_hold(const struct tensor_hold *hold)
{
	struct tensor_buf *buf = hold->buf;
	bool first;

	if (buf->backing->kind != TENSOR_KIND_ALLOC)
		return -EOPNOTSUPP;
	if (!tensor_hold_may_all(hold, TENSOR_RIGHT_REVOKE))
		return -EACCES;
	if (mutex_lock_killable(&buf->lock))
		return -EINTR;
	first = !tensor_buf_usable(buf);
	if (first) {
		tensor_purgelist_del(buf);
		tensor_state_change(buf, TENSOR_STATE_REVOKED,
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

	done = tensor_call_begin(call, arg->flags, arg->__reserved, arg->handle, &hold);
	if (done)
		return done;
	done = revoke_hold(&hold);
	if (done > 0) {
		tensor_event_post(hold.buf, TENSOR_EVENT_REVOKE, tensor_call_client(call));
		tensor_notify_revoke(hold.buf);
	}
	tensor_buf_put(hold.buf);
	return min(done, 0);
}
