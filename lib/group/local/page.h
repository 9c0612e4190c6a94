/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The beginning of the memory that the ranks of a local group share, in a memfd named LOCAL_MEMFD. tensorstat reads it
 * without the library, as memory that another process can write.
 */
#ifndef TENSOR_GROUP_LOCAL_PAGE_H
#define TENSOR_GROUP_LOCAL_PAGE_H

#include "../engine/call.h"

#include <stdatomic.h>

#define LOCAL_MEMFD "tensor-group"
#define LOCAL_MAGIC 0x74677233u /* changes with this layout */

enum local_state { LOCAL_ALIVE, LOCAL_CLOSED, LOCAL_GAVE_UP };

/* A rank writes it, and others read it. */
struct local_rank {
	_Alignas(128) _Atomic uint64_t posted; /* the last step */
	_Atomic uint32_t state;		       /* enum local_state */
	_Atomic uint32_t asleep;	    /* the rank waits for bell to change, or is about to */
	_Atomic uint64_t operations, bytes; /* as in struct tensor_group_stats */
	_Atomic int32_t pid;
	_Alignas(128) _Atomic uint32_t bell; /* a futex; others write it */
	_Alignas(128) struct group_call
		calls[2]; /* of the last operation that began in an even and in an odd step */
	_Atomic uint32_t offers[2]; /* for the same: 1: its tensors can be read in place */
};

struct local_page {
	uint32_t magic, size, slot; /* slot: bytes */
	_Atomic uint32_t sleepers;
	uint64_t id; /* in the names of the sockets for messages */
	struct local_rank ranks[];
};

#endif
