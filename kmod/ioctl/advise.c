// SPDX-License-Identifier: GPL-2.0-only
/*
 * ADVISE: whether the shrinker may take the pages of a buffer (../buffer/shrinker.c).
 */
#include "../buffer/buffer.h"
#include "../buffer/purgelist.h"
#include "../buffer/state.h"
#include "../client/client.h"
#include "advise.h"
#include "call.h"

/* Mappings that the maker made through its handle do not count; those of others do. */
static bool purge_unshared(const struct tensor_buf *buf)
{
	return atomic_read(&buf->handles) == 1 && !atomic_read(&buf->files) &&
	       !atomic_read(&buf->peers) && !atomic_read(&buf->dmabufs);
}

static int advise_purgeable(struct tensor_buf *buf)
{
	if (tensor_buf_seals(buf) & TENSOR_SEAL_WRITE)
		return -EPERM;
	if (tensor_buf_state(buf) & TENSOR_STATE_PURGEABLE)
		return 0;
	if (!purge_unshared(buf))
		return -EBUSY;
	tensor_state_change(buf, TENSOR_STATE_PURGEABLE, 0);
	tensor_purgelist_add(buf, NULL);
	return 0;
}

/* Return whether the buffer was purged; -EAGAIN if it needs pages and @chunks has none. */
static int willneed_try(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	bool purged = tensor_buf_state(buf) & TENSOR_STATE_PURGED;

	if (purged && !chunks->nr)
		return -EAGAIN;
	tensor_purgelist_del(buf);
	if (purged) {
		down_write(&buf->pages);
		tensor_buf_swap(buf, chunks);
		up_write(&buf->pages);
	}
	tensor_state_change(buf, 0, TENSOR_STATE_PURGEABLE | TENSOR_STATE_PURGED);
	return purged;
}

static int willneed_try_locked(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	int purged;

	mutex_lock(&buf->lock);
	purged = tensor_buf_usable(buf) ?: willneed_try(buf, chunks);
	mutex_unlock(&buf->lock);
	return purged;
}

/* Allocate without the lock, which the shrinker needs. */
static int advise_willneed(struct tensor_buf *buf)
{
	struct tensor_chunks chunks = {};
	int purged, err;

	purged = willneed_try_locked(buf, &chunks);
	if (purged != -EAGAIN)
		return purged;
	err = tensor_buf_fill(buf, &chunks);
	if (err)
		return err;
	purged = willneed_try_locked(buf, &chunks);
	tensor_chunks_free(&chunks);
	return purged;
}

static int advise_hold(const struct tensor_call *call, const struct tensor_hold *hold)
{
	struct tensor_buf *buf = hold->buf;
	int err;

	if (buf->client != call->client->id || !tensor_hold_may_all(hold, TENSOR_RIGHT_WRITE))
		return -EACCES;
	if (buf->backing->kind != TENSOR_KIND_ALLOC)
		return -EOPNOTSUPP;
	if (call->arg.advise.advice == TENSOR_ADVISE_WILLNEED)
		return advise_willneed(buf);
	mutex_lock(&buf->lock);
	err = tensor_buf_usable(buf) ?: advise_purgeable(buf);
	mutex_unlock(&buf->lock);
	return err;
}

/**
 * tensor_advise() - ADVISE
 * @call: the call
 *
 * Return: 0 or -errno.
 */
int tensor_advise(struct tensor_call *call)
{
	struct tensor_advise *arg = &call->arg.advise;
	struct tensor_hold hold;
	int done;

	done = tensor_call_begin(call, arg->flags || arg->advice > TENSOR_ADVISE_PURGEABLE,
				 arg->__reserved, arg->handle, &hold);
	if (done)
		return done;
	/* the action cannot be undone, so check first that the reply can be written */
	done = tensor_call_reply(call) ?: advise_hold(call, &hold);
	tensor_buf_put(hold.buf);
	if (done < 0)
		return done;
	arg->purged = done;
	return tensor_call_reply(call);
}
