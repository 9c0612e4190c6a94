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
 * struct round - memory that all processes of a round share
 * @stop: the actors must end
 * @calm: actors start nothing that can write, and end what they started
 * @sealed: SEAL has succeeded
 * @revoking: REVOKE may have begun
 * @revoked: REVOKE has succeeded
 * @attempt: number of the current SEAL
 * @denied: by attempt: a writable mapping failed with EPERM during it
 * @failed: by attempt: it failed
 * @gentle: the actors repeatedly drop all mappings, so that SEAL may succeed before @calm
 * @purging: the memory is purgeable; the buffer has no fds
 * @tag: upper half of each word of the buffer
 * @seed: seed of the random numbers
 * @bytes: size of the buffer
 * @dev: open device of the process that made the buffer
 * @handle: handle of the buffer on @dev
 * @mmap_offset: mmap offset of @handle
 * @fd: buffer fd, or -1
 * @rofd: buffer fd without TENSOR_RIGHT_WRITE, or -1
 * @dmabuf: dma-buf fd, or -1
 * @words: memfd with a page of words that contain @tag
 * @calmed: number of processes that have unmapped everything since @calm
 * @action: current action of each actor
 * @beat: number of actions of each actor
 * @done: number of successes of each action
 * @broken: number of violations of each promise
 * @wrong: description of the first violation of each promise
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
