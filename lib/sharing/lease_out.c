// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Leases that this process gave (lease.h). */
#include "sharing/lease.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/init.h"
#include "sharing/shm.h"
#include "storage/provider/provider.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct lease_table {
	uint32_t refs; /* of the channel, of each lease, of a thread that waits */
	int fd;	       /* this end of the socket pair */
	_Atomic bool dead;
	struct lease_page *page;
	uint32_t used, nfree; /* words that were used so far, and those of them that are free */
	uint32_t free[LEASE_WORDS];
	uint64_t generations[LEASE_WORDS];
};

/* For references and free words of all tables. No function blocks while it holds the lock. */
static pthread_mutex_t leases_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_leases(void)
{
	pthread_mutex_lock(&leases_lock);
}

static void unlock_leases(void)
{
	pthread_mutex_unlock(&leases_lock);
}

INIT(INIT_LEASE) static void watch_forks(void)
{
	pthread_atfork(lock_leases, unlock_leases, unlock_leases);
}

/* ---- tables ---- */

/* 0 or -errno. */
static int make_table(struct lease_table *t, int fds[2])
{
	int err, ends[2];
	void *page;

	err = shm_make("channel-leases", sizeof(struct lease_page), &fds[0]);
	if (err < 0)
		return err;
	err = shm_map(fds[0], sizeof(struct lease_page), &page);
	if (err < 0)
		goto close_memory;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		err = -errno;
		goto unmap;
	}
	t->refs = 1;
	t->page = page;
	t->fd = ends[0];
	fds[1] = ends[1];
	return 0;
unmap:
	munmap(page, sizeof(struct lease_page));
close_memory:
	close(fds[0]);
	fds[0] = -1;
	return err;
}

struct lease_table *lease_table_new(int fds[2])
{
	struct lease_table *t = calloc(1, sizeof(*t));
	int err = t ? make_table(t, fds) : -ENOMEM;

	if (err == -EMFILE && fd_limit_raise())
		err = make_table(t, fds);
	if (!err)
		return t;
	free(t);
	tensor_fail(-err, "send: no table for leases: %s", strerror(-err));
	return NULL;
}

void lease_table_get(struct lease_table *t)
{
	lock_leases();
	t->refs++;
	unlock_leases();
}

void lease_table_put(struct lease_table *t)
{
	bool last;

	if (!t)
		return;
	lock_leases();
	last = !--t->refs;
	unlock_leases();
	if (!last)
		return;
	munmap(t->page, sizeof(*t->page));
	close(t->fd);
	free(t);
}

void lease_table_arm(struct lease_table *t)
{
	/* Sequentially consistent, like the stores of lease_in.c: one of both sides sees the other's. */
	atomic_store(&t->page->waiting, 1);
}

int lease_table_fd(const struct lease_table *t)
{
	return t->fd;
}

void lease_table_drain(struct lease_table *t, bool ended)
{
	char bytes[256];
	ssize_t n = recv(t->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (ended || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		atomic_store(&t->dead, true);
}

/* ---- leases ---- */

struct lease *lease_new(struct lease_table *t)
{
	struct lease *l = malloc(sizeof(*l));
	bool any;

	if (!l) {
		tensor_fail(ENOMEM, "send: no memory for a lease");
		return NULL;
	}
	lock_leases();
	any = t->nfree || t->used < LEASE_WORDS;
	if (any) {
		l->index = t->nfree ? t->free[--t->nfree] : t->used++;
		t->refs++;
	}
	unlock_leases();
	if (!any) {
		free(l);
		tensor_fail(ENOBUFS, "send: the peer has %u messages with leases", LEASE_WORDS);
		return NULL;
	}
	l->table = t;
	l->refs = 1;
	l->generation = ++t->generations[l->index];
	atomic_store(&t->page->words[l->index], lease_word(l->generation, LEASE_SENT));
	return l;
}

void lease_get(struct lease *l)
{
	lock_leases();
	l->refs++;
	unlock_leases();
}

void lease_put(struct lease *l)
{
	struct lease_table *t = l->table;
	bool last;

	lock_leases();
	last = !--l->refs;
	if (last)
		t->free[t->nfree++] = l->index;
	unlock_leases();
	if (!last)
		return;
	free(l);
	lease_table_put(t);
}

bool lease_over(const struct lease *l)
{
	const struct lease_table *t = l->table;
	/* Before the word: a message that was taken before the end is TAKEN in it. */
	bool closed = atomic_load(&t->page->closed);
	uint64_t word = atomic_load(&t->page->words[l->index]);

	return word == lease_word(l->generation, LEASE_RELEASED) ||
	       word == lease_word(l->generation, LEASE_RECALLED) || atomic_load(&t->dead) ||
	       (closed && word == lease_word(l->generation, LEASE_SENT));
}

static bool is_in_state(const struct lease *l, enum lease_state state)
{
	return atomic_load(&l->table->page->words[l->index]) == lease_word(l->generation, state);
}

bool lease_released(const struct lease *l)
{
	return is_in_state(l, LEASE_RELEASED);
}

bool lease_recalled(const struct lease *l)
{
	return is_in_state(l, LEASE_RECALLED);
}

bool lease_can_recall(const struct lease *l)
{
	return is_in_state(l, LEASE_SENT);
}

bool lease_recall(const struct lease *l)
{
	uint64_t word = lease_word(l->generation, LEASE_SENT);

	return atomic_compare_exchange_strong(&l->table->page->words[l->index], &word,
					      lease_word(l->generation, LEASE_RECALLED));
}
