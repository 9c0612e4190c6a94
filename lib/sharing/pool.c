// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Pools: buffers that are lent, sent with a lease and lent again. A buffer is free when the program has released its
 * loan, a storage of its own on the buffer, and all leases of messages with it are over.
 *
 * A thread that waits for a buffer polls the sockets of the tables with leases of the pool (lease.h), and an eventfd
 * that another thread writes to when it releases a loan.
 */
#include "sharing/pool.h"

#include "base/init.h"
#include "sharing/link.h"
#include "sharing/sharing.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define POOL_BUFFERS 4
#define POOL_MAX     4096
#define RECALL_TRIES 8 /* to take a message back, when it is received at the same moment */

struct loan {
	tensor_pool *pool;
	tensor *buffer; /* of the pool */
	bool out;	/* the program has the loan */
	uint64_t sent;	/* pool->sent of its last message */
	int n, space;	/* leases that may not be over */
	struct lease **leases;
};

struct tensor_pool {
	int refs; /* of the program, and of each loan that is out */
	int n, waiters, event;
	enum tensor_pool_full full;
	uint64_t sent;
	struct tensor_pool *next, **link;
	struct loan loans[];
};

/* All pools, for wake_all(). */
static tensor_pool *pools;
/* For all pools: a child of fork() can release its loans. No function blocks while it holds the lock. */
static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_pools(void)
{
	pthread_mutex_lock(&pools_lock);
}

static void unlock_pools(void)
{
	pthread_mutex_unlock(&pools_lock);
}

INIT(INIT_POOL) static void watch_forks(void)
{
	pthread_atfork(lock_pools, unlock_pools, unlock_pools);
}

static void free_pool(tensor_pool *p)
{
	lock_pools();
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	unlock_pools();
	for (int i = 0; i < p->n; i++) {
		for (int k = 0; k < p->loans[i].n; k++)
			lease_put(p->loans[i].leases[k]);
		free(p->loans[i].leases);
		tensor_put(p->loans[i].buffer);
	}
	if (p->event >= 0)
		close(p->event);
	free(p);
}

/* ---- loans ---- */

/* Wakes a thread that waits. The caller holds the lock. */
static void wake_waiter(const tensor_pool *p)
{
	uint64_t one = 1;

	if (p->waiters && write(p->event, &one, sizeof(one)) < 0)
		return; /* it has been written to before */
}

/*
 * Pools whose messages use one channel poll one socket: what a thread reads from it can be for another pool. A message
 * with loans of several pools frees them all. The caller holds the lock.
 */
static void wake_all(void)
{
	for (const tensor_pool *p = pools; p; p = p->next)
		wake_waiter(p);
}

void pools_wake(void)
{
	lock_pools();
	wake_all();
	unlock_pools();
}

static void loan_free(struct tensor_storage *s)
{
	struct loan *l = s->owner;
	tensor_pool *p = l->pool;
	bool last;

	lock_pools();
	l->out = false;
	wake_waiter(p);
	last = !--p->refs;
	unlock_pools();
	if (last)
		free_pool(p);
}

/* Without a buffer: only sending uses the one below, because what seals or revokes it would be the pool's loss. */
const struct storage_ops loan_ops = { .free = loan_free, .base = loan_base, .shared = true };

struct tensor_storage *loan_base(const struct tensor_storage *s)
{
	return ((struct loan *)s->owner)->buffer->storage;
}

/* Drops the leases that are over; whether none is left. The caller holds the lock. */
static bool settle(struct loan *l)
{
	int kept = 0;

	for (int i = 0; i < l->n; i++) {
		if (lease_over(l->leases[i]))
			lease_put(l->leases[i]);
		else
			l->leases[kept++] = l->leases[i];
	}
	l->n = kept;
	return !kept;
}

/* Makes space for another lease. The caller holds the lock. */
static int grow(struct loan *l)
{
	int space = 2 * l->space + 2;
	struct lease **more;

	/* A loan that is sent again and again does not collect leases that are over. */
	settle(l);
	if (2 * l->n < l->space)
		return 0;
	more = realloc(l->leases, (size_t)space * sizeof(struct lease *));
	if (!more)
		return -ENOMEM;
	l->leases = more;
	l->space = space;
	return 0;
}

/* The caller holds the lock. */
static int own_lease(struct loan *l, struct lease *lease)
{
	if (l->n && l->leases[l->n - 1] == lease)
		return 0;
	if (l->n == l->space && grow(l) < 0)
		return -ENOMEM;
	lease_get(lease);
	l->leases[l->n++] = lease;
	l->sent = ++l->pool->sent;
	return 0;
}

int loans_lease(tensor *const *tensors, int n, struct lease *lease)
{
	int err = 0;

	lock_pools();
	for (int i = 0; i < n && !err; i++)
		if (is_loan(tensors[i]->storage))
			err = own_lease(tensors[i]->storage->owner, lease);
	unlock_pools();
	return err ? tensor_fail(ENOMEM, "send: no memory for a lease") : 0;
}

/* ---- finding a buffer; the caller holds the lock ---- */

/* The free buffer that was sent longest ago: its memory is the least likely to be read still by what has no lease. */
static struct loan *find_free(tensor_pool *p)
{
	struct loan *best = NULL;

	for (int i = 0; i < p->n; i++) {
		struct loan *l = &p->loans[i];

		if (!l->out && (!best || l->sent < best->sent) && settle(l))
			best = l;
	}
	return best;
}

static int count_free(tensor_pool *p)
{
	int n = 0;

	for (int i = 0; i < p->n; i++)
		n += !p->loans[i].out && settle(&p->loans[i]);
	return n;
}

/* Whether no receiver has a message with the buffer. */
static bool can_recall(const struct loan *l)
{
	for (int i = 0; i < l->n; i++)
		if (!lease_can_recall(l->leases[i]) && !lease_over(l->leases[i]))
			return false;
	return true;
}

/* Takes all messages with the buffer back. False: a receiver has just received one of them. */
static bool recall(struct loan *l)
{
	for (int i = 0; i < l->n; i++)
		if (!lease_recall(l->leases[i]) && !lease_over(l->leases[i]))
			return false;
	return settle(l);
}

/* Takes back what was sent longest ago and that no receiver has: from no receiver if another one has it. */
static struct loan *find_oldest(tensor_pool *p)
{
	for (int tries = 0; tries < RECALL_TRIES; tries++) {
		struct loan *oldest = NULL;

		for (int i = 0; i < p->n; i++) {
			struct loan *l = &p->loans[i];

			if (!l->out && (!oldest || l->sent < oldest->sent) && can_recall(l))
				oldest = l;
		}
		if (!oldest)
			return NULL;
		if (recall(oldest)) {
			wake_all();
			return oldest;
		}
	}
	return NULL;
}

/* ---- waiting ---- */

/* The caller holds the lock. 0 or -ENOMEM. */
static int watch(tensor_pool *p, struct lease_watch *w)
{
	size_t most = 0;

	/* The socket of a receiver that has died is readable for ever. */
	for (int i = 0; i < p->n; i++)
		most += settle(&p->loans[i]) ? 0 : (size_t)p->loans[i].n;
	if (lease_watch_begin(w, most, p->event) < 0)
		return -ENOMEM;
	for (int i = 0; i < p->n; i++)
		for (int k = 0; k < p->loans[i].n; k++)
			lease_watch_add(w, p->loans[i].leases[k]->table);
	return 0;
}

/*
 * Waits for a release, unless enough buffers are free after the tables were armed. The caller holds the lock, which is
 * not held meanwhile. 0: look again; -ETIMEDOUT: look for the last time; -ENOMEM; -errno.
 */
static int wait_for_release(tensor_pool *p, int enough, int64_t until)
{
	struct lease_watch w;
	uint64_t count;
	int err = watch(p, &w);

	p->waiters++;
	if (!err && count_free(p) < enough) {
		unlock_pools();
		err = link_poll(w.fds, w.n, until);
		if (err > 0 && w.fds[0].revents && read(p->event, &count, sizeof(count)) < 0)
			err = 0; /* another thread has read it */
		lock_pools();
	}
	p->waiters--;
	if (lease_watch_end(&w)) {
		wake_all();
		lease_watch_wake();
	}
	/* A receiver can write to its socket all the time. */
	return err < 0 ? err : link_left(until) ? 0 : -ETIMEDOUT;
}

/* A buffer of a pool that does not wait before it has looked for messages to take back, or for none to refuse. */
static struct loan *take_at_once(tensor_pool *p, int *err)
{
	struct loan *l;

	/* Sees receivers that have died, before it drops or refuses. */
	*err = wait_for_release(p, 1, 0);
	if (*err == -ETIMEDOUT)
		*err = 0;
	l = find_free(p);
	if (!l && !*err && p->full == TENSOR_POOL_DROP)
		l = find_oldest(p);
	if (!l && !*err && p->full == TENSOR_POOL_REFUSE)
		*err = -EAGAIN;
	return l;
}

/* The caller holds the lock. A buffer, or NULL with *err. */
static struct loan *take(tensor_pool *p, int64_t until, int *err)
{
	struct loan *l = find_free(p);

	*err = 0;
	while (!l && !*err) {
		if (p->full != TENSOR_POOL_WAIT)
			l = take_at_once(p, err);
		if (l || *err)
			break;
		*err = wait_for_release(p, 1, until);
		l = find_free(p);
	}
	if (l) {
		l->out = true;
		p->refs++;
	}
	/* This thread may have read what woke it for another one. */
	wake_waiter(p);
	return l;
}

/* ---- public functions ---- */

static tensor *lend(struct loan *l)
{
	const struct tensor_storage *base = l->buffer->storage;
	const tensor *b = l->buffer;
	struct tensor_storage *s = storage_alloc_struct();

	if (!s) {
		lock_pools();
		l->out = false;
		l->pool->refs--;
		wake_waiter(l->pool);
		unlock_pools();
		return NULL;
	}
	storage_on_memory_of(s, base, &loan_ops, l);
	return tensor_new_on_storage(s, b->dtype, b->sizes, b->strides, b->ndim, b->offset);
}

TENSOR_EXPORT tensor *tensor_pool_loan(tensor_pool *p, int64_t timeout_ns)
{
	int64_t until = link_deadline(timeout_ns);
	struct loan *l;
	int err;

	if (!p)
		return tensor_fail_null(EINVAL, "pool_loan: the pool is NULL");
	lock_pools();
	l = take(p, until, &err);
	unlock_pools();
	if (l)
		return scope_own(thread(), lend(l));
	if (err == -ETIMEDOUT || err == -EAGAIN)
		return tensor_fail_null(-err,
					"pool_loan: all %d buffers are lent or with receivers%s",
					p->n, err == -EAGAIN ? "" : ", for the whole timeout");
	return tensor_fail_null(-err, "pool_loan: %s", strerror(-err));
}

TENSOR_EXPORT int tensor_pool_available(tensor_pool *p)
{
	int n;

	if (!p)
		return tensor_fail(EINVAL, "pool_available: the pool is NULL");
	lock_pools();
	/* Sees receivers that have died. */
	wait_for_release(p, p->n, 0);
	n = count_free(p);
	wake_waiter(p);
	unlock_pools();
	return n;
}

TENSOR_EXPORT void tensor_pool_close(tensor_pool *p)
{
	bool last;

	if (!p)
		return;
	lock_pools();
	last = !--p->refs;
	unlock_pools();
	if (last)
		free_pool(p);
}

/* Whether two storages are on one buffer. Received ones can be, and have other addresses than the sender's own. */
static bool same_buffer(struct tensor_storage *a, struct tensor_storage *b)
{
	const struct tensor_buffer *x = tensor_storage_buffer(a), *y = tensor_storage_buffer(b);

	return a == b || (x && y && identity_equal(x->id, y->id));
}

static int adopt(tensor_pool *p, int i, tensor *t)
{
	if (tensor_absent("pool_open", t))
		return -thread()->error.code;
	if (tensor_share_memory(t) < 0)
		return -thread()->error.code;
	for (int k = 0; k < i; k++)
		if (same_buffer(p->loans[k].buffer->storage, t->storage))
			return tensor_fail(
				EINVAL,
				"pool_open: tensors %d and %d are on the same storage or "
				"the same buffer",
				k, i);
	if (t->storage->readonly)
		return tensor_fail(EINVAL, "pool_open: tensor %d is read-only", i);
	p->loans[i].buffer = tensor_retain(t);
	return 0;
}

static int make_buffer(tensor_pool *p, int i, tensor_ints sizes, enum tensor_dtype dtype)
{
	tensor *t = tensor_new_opt((tensor_options){ .dtype = dtype, .shareable = true },
				   sizes.data, (int)sizes.len);

	if (!t)
		return -thread()->error.code;
	/* Memory that the cache kept has old data. */
	memset(t->storage->data, 0, t->storage->used);
	p->loans[i].buffer = t;
	return 0;
}

static int check_options(tensor_ints sizes, const struct tensor_pool_options *o)
{
	if (o->n < 0 || o->n > POOL_MAX)
		return tensor_fail(EINVAL, "pool_open: %d buffers: 1 to %d are possible", o->n,
				   POOL_MAX);
	if ((unsigned)o->full > TENSOR_POOL_REFUSE)
		return tensor_fail(EINVAL, "pool_open: %d is no enum tensor_pool_full", o->full);
	if (o->tensors && (sizes.len != -1 || o->dtype))
		return tensor_fail(EINVAL, "pool_open: the tensors have sizes and a dtype of their "
					   "own: TENSOR_NO_INTS and TENSOR_DTYPE_NONE are needed");
	if (!o->tensors && (sizes.len < 0 || sizes.len > TENSOR_MAX_DIMS))
		return tensor_fail(EINVAL, "pool_open: 0 to %d sizes are needed", TENSOR_MAX_DIMS);
	if ((unsigned)o->dtype >= TENSOR_DTYPE_COUNT)
		return tensor_fail(EINVAL, "pool_open: dtype %d is unknown", o->dtype);
	return 0;
}

TENSOR_EXPORT tensor_pool *tensor_pool_open(tensor_ints sizes, const struct tensor_pool_options *o)
{
	static const struct tensor_pool_options none;
	int err, n;
	tensor_pool *p;

	o = o ? o : &none;
	if (check_options(sizes, o) < 0)
		return NULL;
	n = o->n ? o->n : POOL_BUFFERS;
	p = calloc(1, sizeof(*p) + (size_t)n * sizeof(p->loans[0]));
	if (!p) {
		tensor_fail(ENOMEM, "pool_open: no memory");
		return NULL;
	}
	p->refs = 1;
	p->n = n;
	p->full = o->full;
	lock_pools();
	p->next = pools;
	p->link = &pools;
	if (pools)
		pools->link = &p->next;
	pools = p;
	unlock_pools();
	p->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = p->event < 0 ? tensor_fail(errno, "pool_open: %s", strerror(errno)) : 0;
	for (int i = 0; i < n && !err; i++) {
		p->loans[i].pool = p;
		err = o->tensors ? adopt(p, i, o->tensors[i]) :
				   make_buffer(p, i, sizes, o->dtype ? o->dtype : TENSOR_F32);
	}
	if (!err)
		return p;
	free_pool(p);
	return NULL;
}
