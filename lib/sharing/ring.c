// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The ring of ring.h: one sender, one receiver. A record is complete when its sequence number is stored, so a sender
 * that is killed while it writes leaves nothing. The memory is a memfd that neither side can shrink.
 */
#include "sharing/ring.h"

#include "base/compiler.h"
#include "sharing/shm.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- memory ---- */

static size_t bytes_of(uint32_t n)
{
	return sizeof(struct ring_page) + (size_t)n * RING_RECORD;
}

static int map(struct ring *r, int fd, uint32_t n)
{
	size_t bytes = bytes_of(n);
	void *p;
	int err = shm_map(fd, bytes, &p);

	if (err < 0)
		return err;
	*r = (struct ring){ .page = p,
			    .records = (void *)((char *)p + sizeof(struct ring_page)),
			    .bytes = bytes,
			    .n = n };
	return 0;
}

int ring_make(struct ring *r, uint32_t n, int *fd)
{
	int err = -EINVAL;

	if (n < RING_MIN || n > RING_MAX || n & (n - 1))
		return err;
	err = shm_make("channel-ring", bytes_of(n), fd);
	if (err < 0)
		return err;
	err = map(r, *fd, n);
	if (err < 0)
		close(*fd);
	else
		atomic_init(&r->page->armed,
			    1); /* until its first wait the receiver may be in poll() */
	return err;
}

/* The number of records follows from the size of the file, which is sealed. */
static int64_t records_of(int fd)
{
	int64_t bytes = shm_size(fd), n;

	if (bytes < (int64_t)bytes_of(RING_MIN) || bytes > (int64_t)bytes_of(RING_MAX))
		return -EBADMSG;
	n = (bytes - (int64_t)sizeof(struct ring_page)) / RING_RECORD;
	return n & (n - 1) || (int64_t)bytes_of((uint32_t)n) != bytes ? -EBADMSG : n;
}

int ring_open(struct ring *r, int fd)
{
	int64_t n = records_of(fd);

	return n < 0 ? (int)n : map(r, fd, (uint32_t)n);
}

void ring_close(struct ring *r)
{
	if (r->page)
		munmap(r->page, r->bytes);
	*r = (struct ring){ 0 };
}

static struct ring_record *record_at(const struct ring *r, uint64_t at)
{
	return &r->records[at & (r->n - 1)];
}

/* ---- sender ---- */

int ring_room(struct ring *r, uint32_t need)
{
	uint64_t tail;

	if (r->n - (r->at - r->tail) >= need)
		return (int)(r->n - (r->at - r->tail));
	tail = atomic_load_explicit(&r->page->tail, memory_order_acquire);
	if (tail - r->tail > r->at - r->tail)
		return -EBADMSG;
	r->tail = tail;
	return (int)(r->n - (r->at - r->tail));
}

void ring_sleep(struct ring *r, uint32_t need, int64_t ns)
{
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };
	uint32_t least = need > r->n / 2 ? need : r->n / 2;
	uint32_t room = atomic_load(&r->page->room);

	atomic_store(&r->page->want, r->at - (r->n - least));
	if (ring_room(r, need) < (int)need)
		syscall(SYS_futex, &r->page->room, FUTEX_WAIT, room, &t, NULL, 0);
	atomic_store_explicit(&r->page->want, 0, memory_order_relaxed);
}

bool ring_push(struct ring *r, uint32_t kind, const void *body, uint32_t bytes)
{
	struct ring_record *to = record_at(r, r->at);

	to->kind = kind;
	to->bytes = bytes;
	if (bytes)
		memcpy(to->body, body, bytes);
	r->at++;
	/* Sequentially consistent, like the store of ring_arm(): one of both sides sees the other's. */
	atomic_store(&to->seq, r->at);
	return atomic_load(&r->page->armed) && atomic_exchange(&r->page->armed, 0);
}

/* ---- receiver ---- */

/* The sequence number that the next record has until it is written again. */
static uint64_t seq_before(const struct ring *r)
{
	return r->at < r->n ? 0 : r->at + 1 - r->n;
}

bool ring_ready(const struct ring *r)
{
	return atomic_load(&record_at(r, r->at)->seq) != seq_before(r);
}

/* Without a barrier after the store of tail, which would be paid for each record. */
static void wake_sender(const struct ring *r)
{
	uint64_t want = atomic_load_explicit(&r->page->want, memory_order_relaxed);

	if (likely(!want || r->at < want))
		return;
	atomic_store_explicit(&r->page->want, 0, memory_order_relaxed);
	atomic_fetch_add(&r->page->room, 1);
	syscall(SYS_futex, &r->page->room, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int ring_pop(struct ring *r, struct ring_copy *to)
{
	const struct ring_record *from = record_at(r, r->at);
	uint64_t seq = atomic_load_explicit(&from->seq, memory_order_acquire);

	if (seq == seq_before(r))
		return 0;
	if (seq != r->at + 1)
		return -EBADMSG;
	to->kind = from->kind;
	to->bytes = from->bytes;
	/* The compiler must not read the shared memory again after the check. */
	__asm__ volatile("" : "+m"(*to) : : "memory");
	if (to->bytes > RING_BODY)
		return -EBADMSG;
	memcpy(to->body, from->body, to->bytes);
	__asm__ volatile("" : "+m"(*to) : : "memory");
	r->at++;
	atomic_store_explicit(&r->page->tail, r->at, memory_order_release);
	wake_sender(r);
	return 1;
}

void ring_arm(struct ring *r)
{
	atomic_store(&r->page->armed, 1);
}

void ring_disarm(struct ring *r)
{
	atomic_store_explicit(&r->page->armed, 0, memory_order_relaxed);
}

void ring_mail(struct ring *r)
{
	atomic_fetch_add_explicit(&r->page->mail, 1, memory_order_release);
}

bool ring_has_mail(const struct ring *r)
{
	return atomic_load_explicit(&r->page->mail, memory_order_acquire) != r->mail;
}

void ring_look(struct ring *r)
{
	r->mail = atomic_load_explicit(&r->page->mail, memory_order_acquire);
}
