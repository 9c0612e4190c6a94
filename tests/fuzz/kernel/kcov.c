// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Coverage of the module by this thread, from the kernel's KCOV; only the module is compiled with
 * it. Mode KCOV_TRACE_PC gives the executed basic blocks, KCOV_TRACE_CMP the compared operands.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/kcov.h>

#include "fuzz.h"

/* Entries for one call. A loop can fill it; the rest of such a call is not traced. */
#define WORDS (8 << 10)

static int fd = -1;
static uint64_t *area;

/* False if this kernel has no KCOV. */
bool kcov_open(void)
{
	fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* a number above all slots of a program's fds */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 500);
	if (ioctl(fd, KCOV_INIT_TRACE, WORDS))
		return false;
	area = mmap(NULL, WORDS * sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return area != MAP_FAILED;
}

void kcov_start(bool compare)
{
	if (area && ioctl(fd, KCOV_ENABLE, compare ? KCOV_TRACE_CMP : KCOV_TRACE_PC))
		area = NULL;
	kcov_reset();
}

void kcov_stop(void)
{
	if (area)
		ioctl(fd, KCOV_DISABLE, 0);
}

void kcov_reset(void)
{
	if (area)
		__atomic_store_n(&area[0], 0, __ATOMIC_RELAXED);
}

static uint64_t count_entries(void)
{
	return area ? __atomic_load_n(&area[0], __ATOMIC_RELAXED) : 0;
}

static bool mark(uint8_t *bits, uint32_t *nr, uint64_t what)
{
	uint32_t bit = what % SIGNAL_BITS;

	if (bits[bit / 8] & 1 << bit % 8)
		return false;
	bits[bit / 8] |= 1 << bit % 8;
	++*nr;
	return true;
}

/* Adds the coverage since kcov_reset(); returns whether any of it is new. */
bool kcov_merge(struct signal *signal)
{
	uint64_t n = count_entries(), last = 0, i;
	bool new = false;

	for (i = 1; i <= n; i++) {
		/* the table is larger than the module: entries do not collide */
		mark(signal->places, &signal->places_nr, area[i]);
		new |= mark(signal->edges, &signal->edges_nr,
			    area[i] ^ last * 0x9e3779b97f4a7c15 >> 40);
		last = area[i];
	}
	return new;
}

/*
 * Pairs of operands that differed: what the program passed, and what it was compared with, in both
 * orders.
 */
unsigned int kcov_compared(uint64_t (*pairs)[2], unsigned int room)
{
	uint64_t n = count_entries(), i;
	unsigned int nr = 0;

	for (i = 0; i < n && nr < room; i++) {
		const uint64_t *c = &area[1 + i * 4];

		if (c[1] == c[2])
			continue;
		pairs[nr][0] = c[2];
		pairs[nr++][1] = c[1];
		/* a constant of the compiler is not a value that the program passed */
		if (!(c[0] & KCOV_CMP_CONST) && nr < room) {
			pairs[nr][0] = c[1];
			pairs[nr++][1] = c[2];
		}
	}
	return nr;
}
