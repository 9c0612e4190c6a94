// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Messages between the processes of a communicator (wires.hpp). */
#include "wires.hpp"

#include "host.hpp"

#include <cstdio>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x6c63636e2d786574)

struct wire_ring {
	std::atomic<uint64_t> sent, taken;
	wire_message messages[WIRE_RING];
};

struct wire_page {
	uint64_t nonce;
	std::atomic<int> joined, opened;
	struct {
		std::atomic<int> pid, file;
	} ranks[WIRE_RANKS];
	wire_ring rings[WIRE_RANKS][WIRE_RANKS]; /* from, to */
};

/* The page is a file of the process that made it, as long as that process lives. */
struct wire_id {
	uint64_t magic, nonce;
	int pid, file;
};

static_assert(sizeof(wire_id) <= sizeof(ncclUniqueId), "an id has 128 bytes");

static int open_of(int pid, int file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, file);
	return open(path, O_RDWR | O_CLOEXEC);
}

static wire_page *map(int file)
{
	void *p = mmap(nullptr, sizeof(wire_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	return p == MAP_FAILED ? nullptr : (wire_page *)p;
}

bool wires::make(ncclUniqueId *id)
{
	static uint64_t made;
	wire_id w = { MAGIC, (uint64_t)getpid() << 32 | ++made, getpid(),
		      memfd_create("nccl-page", MFD_CLOEXEC) };
	wire_page *page;

	if (w.file < 0 || ftruncate(w.file, sizeof(wire_page)) < 0 || !(page = map(w.file)))
		return false;
	page->nonce = w.nonce;
	munmap(page, sizeof(*page));
	memset(id, 0, sizeof(*id));
	memcpy(id->internal, &w, sizeof(w));
	return true;
}

wires *wires::join(const ncclUniqueId *id, int rank, int ranks)
{
	wire_id w;
	wires *self;
	int file;

	memcpy(&w, id->internal, sizeof(w));
	file = w.magic == MAGIC ? open_of(w.pid, w.file) : -1;
	if (file < 0)
		return nullptr;
	self = new wires();
	self->rank = rank;
	self->ranks = ranks;
	self->made = w.pid == getpid() ? w.file : -1;
	self->page = map(file);
	close(file);
	for (int i = 0; i < WIRE_RANKS; i++)
		self->files[i] = -1;
	self->own = memfd_create("nccl-rank", MFD_CLOEXEC);
	if (!self->page || self->page->nonce != w.nonce || self->own < 0) {
		delete self;
		return nullptr;
	}
	self->page->ranks[rank].pid = getpid();
	self->page->ranks[rank].file = self->own;
	self->page->joined++;
	return self;
}

wires::~wires()
{
	for (int file : files)
		if (file >= 0)
			close(file);
	if (own >= 0)
		close(own);
	if (made >= 0)
		close(made);
	if (page)
		munmap(page, sizeof(*page));
}

bool wires::complete(void)
{
	if (!opened && page->joined == ranks) {
		for (int i = 0; i < ranks; i++)
			if (file_of(i) < 0)
				return false;
		opened = true;
		page->opened++;
	}
	return page->opened == ranks;
}

int wires::file_of(int from)
{
	if (files[from] < 0)
		files[from] = open_of(page->ranks[from].pid, page->ranks[from].file);
	return files[from];
}

bool wires::has_room(int to, uint64_t messages) const
{
	const wire_ring &r = page->rings[rank][to];

	return r.sent - r.taken + messages <= WIRE_RING;
}

void wires::send(int to, wire_message m, const void *data)
{
	wire_ring &r = page->rings[rank][to];
	uint64_t n = r.sent;

	m.offset = end;
	if (pwrite(own, data, m.bytes, (off_t)end) != (ssize_t)m.bytes)
		host_fatal("nccl: no memory for a message of %llu bytes",
			   (unsigned long long)m.bytes);
	end = (end + m.bytes + 4095) & ~(uint64_t)4095;
	r.messages[n % WIRE_RING] = m;
	r.sent = n + 1;
}

uint64_t wires::arrived(int from) const
{
	const wire_ring &r = page->rings[from][rank];

	return r.sent - r.taken;
}

wire_message wires::receive(int from, void *to, uint64_t room)
{
	wire_ring &r = page->rings[from][rank];
	uint64_t n = r.taken;
	wire_message m = r.messages[n % WIRE_RING];
	int file = file_of(from);

	if (m.bytes > room)
		host_fatal("nccl: rank %d sends %llu bytes, rank %d receives %llu", from,
			   (unsigned long long)m.bytes, rank, (unsigned long long)room);
	if (pread(file, to, m.bytes, (off_t)m.offset) != (ssize_t)m.bytes)
		host_fatal("nccl: the message of rank %d is gone", from);
	/* The memory goes back. */
	fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)m.offset,
		  (off_t)((m.bytes + 4095) & ~(uint64_t)4095) + !m.bytes);
	r.taken = n + 1;
	return m;
}
