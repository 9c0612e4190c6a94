// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Leases that this process received (lease.h). */
#include "sharing/lease.h"

#include "base/error.h"
#include "base/init.h"
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

static void count_process(void)
{
	atomic_fetch_add(&process_number, 1);
}

INIT(INIT_LEASE) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_process);
}

/* ---- the table of a channel ---- */

static bool is_unix_socket(int fd)
{
	socklen_t length = sizeof(int);
	int domain;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

struct lease_source *lease_source_open(int memory, int socket)
{
	struct lease_source *s;
	void *page;

	if (!is_unix_socket(socket) || shm_size(memory) != sizeof(struct lease_page) ||
	    shm_map(memory, sizeof(struct lease_page), &page) < 0)
		return NULL;
	s = malloc(sizeof(*s));
	if (!s) {
		munmap(page, sizeof(struct lease_page));
		return NULL;
	}
	*s = (struct lease_source){ .refs = 1, .fd = socket, .page = page };
	close(memory);
	return s;
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
	atomic_store(&s->page->closed, 1);
	wake(s);
	source_put(s);
}

/* ---- the lease of a message ---- */

struct taken *taken_new(struct lease_source *s, uint64_t index, uint64_t generation)
{
	struct taken *t;

	if (!s || index >= LEASE_WORDS) {
		tensor_fail(EBADMSG, "recv: the message has a lease without a table");
		return NULL;
	}
	t = malloc(sizeof(*t));
	if (!t) {
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

static bool change(const struct taken *t, enum lease_state from, enum lease_state to)
{
	uint64_t word = lease_word(t->generation, from);

	return atomic_compare_exchange_strong(&t->source->page->words[t->index], &word,
					      lease_word(t->generation, to));
}

bool taken_take(struct taken *t)
{
	t->is_taken = change(t, LEASE_SENT, LEASE_TAKEN);
	return t->is_taken;
}

void taken_put(struct taken *t)
{
	if (!t || !ref_put(&t->refs))
		return;
	if (t->is_taken && t->process == atomic_load(&process_number) &&
	    change(t, LEASE_TAKEN, LEASE_RELEASED))
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

/* Without a buffer: a lease does not cover another process, so a channel sends a copy on. */
static const struct storage_ops leased_ops = { .free = leased_free, .shared = true };

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
	s->ops = &leased_ops;
	s->owner = l;
	s->device = base->device;
	s->data = base->data;
	s->nbytes = base->nbytes;
	s->used = base->used;
	s->readonly = base->readonly;
	return s;
}

struct tensor_storage *taken_base(const struct tensor_storage *s)
{
	return s->ops == &leased_ops ? ((struct leased *)s->owner)->base : NULL;
}
