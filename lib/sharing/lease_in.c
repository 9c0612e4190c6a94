// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Leases that this process received (lease.h). */
#include "sharing/lease.h"

#include "base/error.h"
#include "base/init.h"
#include "sharing/sharing.h"
#include "sharing/shm.h"
#include "storage/storage.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct lease_source {
	atomic_int refs; /* of the channel, and of each lease */
	int fd;		 /* this end of the sender's socket pair */
	uint32_t forks;	 /* when it was opened */
	struct lease_page *page;
};

struct taken {
	atomic_int refs;
	bool is_taken;
	uint32_t index, process;
	uint64_t generation;
	struct lease_source *source;
};

/* A storage of a message with a lease. */
struct leased {
	struct taken *taken;
	struct tensor_storage *base;
};

/* A child of fork() has another number: the leases are the parent's. */
static _Atomic uint32_t process_number;
/* In the parent, too: either of both may go on with a channel. */
static _Atomic uint32_t forks;

static void count_fork(void)
{
	atomic_fetch_add(&forks, 1);
}

static void count_process(void)
{
	atomic_fetch_add(&process_number, 1);
	count_fork();
}

INIT(INIT_LEASE) static void watch_forks(void)
{
	pthread_atfork(NULL, count_fork, count_process);
}

/* ---- the table of a channel ---- */

static bool is_unix_socket(int fd)
{
	socklen_t length = sizeof(int);
	int domain;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

int lease_source_open(int memory, int socket, struct lease_source **to)
{
	struct lease_source *s;
	void *page;
	int err;

	if (!is_unix_socket(socket) || shm_size(memory) != sizeof(struct lease_page))
		return -EBADMSG;
	s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	err = shm_map(memory, sizeof(struct lease_page), &page);
	if (err < 0) {
		free(s);
		return err == -ENOMEM ? err : -EBADMSG;
	}
	*s = (struct lease_source){
		.refs = 1, .fd = socket, .forks = atomic_load(&forks), .page = page
	};
	close(memory);
	*to = s;
	return 0;
}

static void source_put(struct lease_source *s)
{
	if (!ref_put(&s->refs))
		return;
	munmap(s->page, sizeof(*s->page));
	close(s->fd);
	free(s);
}

/* Wakes the sender if it waits. If the socket is full it wakes anyway. */
static void wake(struct lease_source *s)
{
	if (!atomic_load(&s->page->waiting) || !atomic_exchange(&s->page->waiting, 0))
		return;
	if (send(s->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		atomic_store(&s->page->waiting, 1); /* no memory: the next release tries it again */
}

void lease_source_close(struct lease_source *s)
{
	if (!s)
		return;
	/*
	 * After a fork() the other process may go on with the channel. When it does not, the sender sees the end of the
	 * socket pair, which is later if there are tensors with leases.
	 */
	if (s->forks == atomic_load(&forks)) {
		atomic_store(&s->page->closed, 1);
		wake(s);
	}
	source_put(s);
}

/* ---- the lease of a message ---- */

static bool change(const struct lease_source *s, uint32_t index, uint64_t generation,
		   enum lease_state from, enum lease_state to)
{
	uint64_t word = lease_word(generation, from);

	return atomic_compare_exchange_strong(&s->page->words[index], &word,
					      lease_word(generation, to));
}

struct taken *taken_new(struct lease_source *s, uint64_t index, uint64_t generation)
{
	struct taken *t;

	if (!s || index >= LEASE_WORDS) {
		tensor_fail(EBADMSG, "recv: the message has a lease without a table");
		return NULL;
	}
	t = malloc(sizeof(*t));
	if (!t) {
		if (change(s, (uint32_t)index, generation, LEASE_SENT, LEASE_RELEASED))
			wake(s);
		tensor_fail(ENOMEM, "recv: no memory for a lease");
		return NULL;
	}
	ref_get(&s->refs);
	*t = (struct taken){ .refs = 1,
			     .index = (uint32_t)index,
			     .process = atomic_load(&process_number),
			     .generation = generation,
			     .source = s };
	return t;
}

bool taken_take(struct taken *t)
{
	t->is_taken = change(t->source, t->index, t->generation, LEASE_SENT, LEASE_TAKEN);
	return t->is_taken;
}

void taken_put(struct taken *t)
{
	if (!t || !ref_put(&t->refs))
		return;
	/* A message that was not taken failed: the sender has to get its buffers back, too. */
	if (t->process == atomic_load(&process_number) &&
	    change(t->source, t->index, t->generation, t->is_taken ? LEASE_TAKEN : LEASE_SENT,
		   LEASE_RELEASED))
		wake(t->source);
	source_put(t->source);
	free(t);
}

/* ---- storages ---- */

static void leased_free(struct tensor_storage *s)
{
	struct leased *l = s->owner;

	storage_put(l->base);
	taken_put(l->taken);
	free(l);
}

static struct tensor_storage *leased_base(const struct tensor_storage *s)
{
	return ((struct leased *)s->owner)->base;
}

/* Without a buffer: a lease does not cover another process, so a channel sends a copy on. */
static const struct storage_ops leased_ops = { .free = leased_free,
					       .base = leased_base,
					       .shared = true };

struct tensor_storage *taken_storage(struct taken *t, struct tensor_storage *base)
{
	struct tensor_storage *s = storage_alloc_struct();
	struct leased *l = s ? malloc(sizeof(*l)) : NULL;

	if (!l) {
		if (s) {
			storage_free_struct(s);
			tensor_fail(ENOMEM, "recv: no memory for a lease");
		}
		storage_put(base);
		return NULL;
	}
	ref_get(&t->refs);
	*l = (struct leased){ t, base };
	storage_on_memory_of(s, base, &leased_ops, l);
	return s;
}

struct tensor_storage *taken_base(const struct tensor_storage *s)
{
	return s->ops == &leased_ops ? leased_base(s) : NULL;
}
