/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A ring of records in shared memory, from one process to another. The receiver makes it. Both sides can write all of
 * it, so each keeps its own position in private memory, copies a record once and checks what it copied.
 */
#ifndef TENSOR_RING_H
#define TENSOR_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MIN     2u
#define RING_MAX     4096u
#define RING_DEFAULT 64	  /* records; the bells for as many fit into a socket */
#define RING_RECORD  384u /* bytes */
#define RING_BODY    (RING_RECORD - 16u)

/* The record in shared memory: complete when seq is its position + 1. */
struct ring_record {
	_Atomic uint64_t seq;
	uint32_t kind, bytes; /* of the body */
	unsigned char body[RING_BODY];
};

/* A private copy of a record. */
struct ring_copy {
	uint32_t kind, bytes;
	unsigned char body[RING_BODY];
};

/*
 * The first page: tail and armed are the receiver's, mail and want are the sender's, who also clears armed. The receiver
 * clears want, and increments room before it wakes the sender.
 */
struct ring_page {
	_Atomic uint64_t tail; /* records taken */
	char pad0[56];
	_Atomic uint32_t armed; /* 1: the sender of the next record wakes the receiver */
	char pad1[60];
	_Atomic uint32_t
		mail; /* messages that came by another way, to end the spinning of the receiver */
	char pad2[60];
	_Atomic uint64_t
		want; /* the tail at which a sender that waits is to be woken; 0: none waits */
	_Atomic uint32_t room; /* the futex of the sender */
	char pad3[3892];
};

_Static_assert(sizeof(struct ring_record) == RING_RECORD, "the record is an ABI between processes");
_Static_assert(sizeof(struct ring_page) == 4096, "the page is an ABI between processes");

/* One side of a ring; zero: no ring. */
struct ring {
	struct ring_page *page;
	struct ring_record *records;
	size_t bytes;  /* of the mapping */
	uint32_t n;    /* records, a power of two */
	uint64_t at;   /* position of this side: the next record to write or to take */
	uint64_t tail; /* sender: the last tail that was read */
	uint32_t mail; /* receiver: the last mail that was read */
};

/* Receiver: makes a ring of n records, a power of two. *fd: the memfd for the sender. 0 or -errno. */
int ring_make(struct ring *r, uint32_t n, int *fd);
/* Sender: maps the ring behind fd, which the caller keeps. -EBADMSG if it is none. */
int ring_open(struct ring *r, int fd);
void ring_close(struct ring *r);

/*
 * Sender: free records, or -EBADMSG if the receiver's position is impossible. Reads that position only if fewer than
 * need were free before.
 */
int ring_room(struct ring *r, uint32_t need);
/*
 * Sender: sleeps until need records are free and half of the ring is, or for a time. The receiver may have been about to
 * take a record when it looked for the sender, so that it wakes it a record later: the time must be short.
 */
void ring_sleep(struct ring *r, uint32_t need, int64_t ns);
/* Sender: writes a record; there is room. True if the receiver has to be woken. */
bool ring_push(struct ring *r, uint32_t kind, const void *body, uint32_t bytes);

/* Receiver: 1 with the next record in *to, 0 if there is none, -EBADMSG if it is impossible. */
int ring_pop(struct ring *r, struct ring_copy *to);
/* Receiver: whether ring_pop() would not return 0. */
bool ring_ready(const struct ring *r);
/* Sender: a message went another way. Receiver: whether one did since the last look. */
void ring_mail(struct ring *r);
bool ring_has_mail(const struct ring *r);
void ring_look(struct ring *r);
/* Receiver: asks to be woken by the next record; call ring_ready() afterwards. */
void ring_arm(struct ring *r);
void ring_disarm(struct ring *r);

/* A pause of a loop that waits for another processor. */
static inline void ring_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

#endif
