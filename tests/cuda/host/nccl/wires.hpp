/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * How the processes of a communicator of the stand-in for NCCL exchange data: a page that all of them map has a ring of
 * messages for each pair of ranks, and each rank has a file of memory, in which the bytes of its messages are.
 */
#ifndef CUDA_HOST_WIRES_HPP
#define CUDA_HOST_WIRES_HPP

#include "nccl.h"

#include <atomic>
#include <cstdint>

enum { WIRE_RANKS = 16, WIRE_RING = 32 };

/* What a rank sends, and what its receiver compares with its own call. */
struct wire_message {
	uint64_t offset, bytes, count;
	int32_t function, type, op, root;
};

struct wire_page;

class wires
{
      public:
	/* A new page, and the id that names it. */
	static bool make(ncclUniqueId *id);
	/* NULL: there is no such page. */
	static wires *join(const ncclUniqueId *id, int rank, int ranks);
	~wires();

	/* Whether all ranks have joined, and each has opened the files of all, which the others may close then. */
	bool complete(void);
	bool has_room(int to, uint64_t messages) const;
	void send(int to, wire_message m, const void *data);
	uint64_t arrived(int from) const; /* messages */
	/* The next message, which has arrived; its bytes to `to`. */
	wire_message receive(int from, void *to, uint64_t room);

      private:
	wires() = default;
	int file_of(int rank);

	wire_page *page = nullptr;
	int rank = 0, ranks = 0, own = -1;
	int made = -1; /* the page's file, where this process has made it */
	int files[WIRE_RANKS];
	bool opened = false; /* all of them */
	uint64_t end = 0;    /* of the own file */
};

#endif
