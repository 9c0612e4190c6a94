/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A round: one buffer, two processes of two threads that use it in every way, and a thread that
 * seals or revokes it concurrently.
 */
#ifndef TENSOR_TRANSITIONS_ROUND_H
#define TENSOR_TRANSITIONS_ROUND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCS	 2
#define THREADS	 2
#define ACTORS	 (PROCS * THREADS)
#define ATTEMPTS 4096

/* The promises that a round can show to be broken. */
enum promise {
	SEAL_HOLDS,	/* nothing changes a byte after SEAL */
	SEAL_IS_ATOMIC, /* a failed SEAL is not visible to others */
	SEAL_SUCCEEDS,	/* SEAL succeeds without writers */
	REVOKE_HOLDS,	/* every access fails after REVOKE */
	ONLY_OWN_DATA,	/* no access reads or changes memory of others */
	NOTHING_LOST,	/* pages keep their contents unless they are purged */
	NOTHING_HANGS,
	NOTHING_LEFT,
	PROMISES
};

/**
 * struct round - memory shared by all
 * @stop: the actors shall end
 * @calm: nothing that could write shall be begun, and what was begun shall end
 * @sealed: SEAL has succeeded
 * @revoking: REVOKE may have begun
 * @revoked: REVOKE has succeeded
 * @attempt: number of the SEAL that is under way
 * @denied: by attempt: a writable mapping was refused (EPERM) while it was under way
 * @failed: by attempt: it failed
 * @gentle: the actors let go of all mappings again and again, so that SEAL may succeed before it is
 *	calm
 * @purging: the memory may be purged; there are no fds then
 * @tag: upper half of each word of the buffer
 * @seed: for chance
 * @bytes: of the buffer
 * @dev: open device of the maker
 * @handle: of the buffer there
 * @mmap_offset: of that handle
 * @fd: buffer fd, or -1
 * @rofd: buffer fd without TENSOR_RIGHT_WRITE, or -1
 * @dmabuf: dma-buf fd, or -1
 * @words: memfd with a page of words of this buffer
 * @calmed: processes that have unmapped everything since @calm
 * @action: what each actor does
 * @beat: how much each has done
 * @done: of each action, how often it succeeded
 * @broken: how often
 * @wrong: first of each
 */
struct round {
	atomic_bool stop, calm, sealed, revoking, revoked;
	atomic_uint attempt;
	atomic_bool denied[ATTEMPTS], failed[ATTEMPTS];
	bool gentle, purging;
	uint32_t tag;
	uint64_t seed, bytes;
	int dev, fd, rofd, dmabuf, words;
	uint32_t handle;
	uint64_t mmap_offset;
	atomic_uint calmed;
	atomic_uint action[ACTORS];
	atomic_ulong beat[ACTORS];
	atomic_ulong done[32];
	atomic_ulong broken[PROMISES];
	char wrong[PROMISES][128];
};

void round_broken(struct round *r, enum promise promise, const char *text, ...)
	__attribute__((format(printf, 3, 4)));
pid_t actors_start(struct round *r, unsigned int proc);
const char *action_name(unsigned int action);

#endif
