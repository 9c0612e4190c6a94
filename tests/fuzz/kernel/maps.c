// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Calls on mappings. They only use the mappings in the program's slots: the memory beside them
 * belongs to the fuzzer.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

static long result(long got)
{
	return got < 0 ? -errno : got;
}

/* A range of a mapping from the arguments (slot, first page, pages), clamped to the mapping. */
static bool mapping_range(const struct machine *m, const uint64_t *arg, char **at, size_t *len)
{
	uint64_t pages = m->map[arg[0] % MAPS].len / PAGE, first, n;
	char *begin = m->map[arg[0] % MAPS].at;

	if (!begin || !pages)
		return false;
	first = arg[1] % pages;
	n = arg[2] ? arg[2] : pages;
	if (n > pages - first)
		n = pages - first;
	*at = begin + first * PAGE;
	*len = n * PAGE;
	return true;
}

/* args: fd, mmap offset (a slot; above the slots: none), page, pages, prot, flags, over, out */
long run_mmap(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	uint64_t offset = arg[2] * PAGE + (arg[1] < HANDLES ? m->mmap_offset[arg[1]] : 0);
	unsigned int slot = arg[7] % MAPS, over = arg[6] % MAPS;
	int flags = arg[5] & ~(uint64_t)(MAP_FIXED | MAP_GROWSDOWN | MAP_HUGETLB);
	size_t len = (arg[3] & 2047) * PAGE;
	char *at = NULL;

	if (arg[6] && m->map[over].len >= len) {
		at = m->map[over].at;
		flags |= MAP_FIXED;
		slot = over;
	}
	at = mmap(at, len, arg[4] & 7, flags, machine_fd(m, arg[0]), offset);
	if (at == MAP_FAILED)
		return -errno;
	if (!(flags & MAP_FIXED)) {
		if (m->map[slot].at)
			munmap(m->map[slot].at, m->map[slot].len);
		m->map[slot].at = at;
		m->map[slot].len = len;
	}
	return 0;
}

long run_munmap(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	size_t len;
	char *at;

	/* munmap: the range becomes PROT_NONE, so that no other thread's mapping is placed there */
	if (!mapping_range(m, arg, &at, &len))
		return -EINVAL;
	at = mmap(at, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return at == MAP_FAILED ? -errno : 0;
}

long run_mprotect(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	size_t len;
	char *at;

	return mapping_range(m, arg, &at, &len) ? result(mprotect(at, len, arg[3] & 7)) : -EINVAL;
}

/* args: range, new pages, flags, out */
long run_mremap(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	unsigned int slot = arg[5] % MAPS;
	size_t len, wanted = (arg[3] & 2047) * PAGE;
	int flags = MREMAP_MAYMOVE | (arg[4] & MREMAP_DONTUNMAP);
	char *at, *to;

	if (!mapping_range(m, arg, &at, &len) || slot == arg[0] % MAPS)
		return -EINVAL;
	to = mremap(at, arg[4] & 64 ? 0 : len, wanted, flags);
	if (to == MAP_FAILED)
		return -errno;
	/* keep the old range reserved, unless nothing was unmapped */
	if (to != at)
		mmap(at, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (to == at && wanted > len)
		munmap(at + len, wanted - len);
	if (to == at)
		return 0;
	if (m->map[slot].at)
		munmap(m->map[slot].at, m->map[slot].len);
	m->map[slot].at = to;
	m->map[slot].len = wanted;
	return 0;
}

long run_madvise(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	size_t len;
	char *at;

	/*
	 * 100 and 101 are MADV_HWPOISON and MADV_SOFT_OFFLINE, which take memory from the machine
	 */
	if (!mapping_range(m, arg, &at, &len) || arg[3] > 99)
		return -EINVAL;
	return result(madvise(at, len, arg[3]));
}

/* args: range, write: accesses every page of up to 32, or every 64th */
long run_touch(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	size_t len, i, step;
	long seen = 0;
	char *at;

	if (!mapping_range(m, arg, &at, &len))
		return -EINVAL;
	step = len > 32 * PAGE ? 64 * PAGE : PAGE;
	for (i = 0; i < len; i += step)
		seen += touch(at + i, arg[3]);
	return seen ? seen : -EFAULT;
}

/* args: write. A child accesses a page of every mapping. */
long run_fork(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	int status, i;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		for (i = 0; i < MAPS; i++) {
			if (m->map[i].len)
				touch(m->map[i].at, arg[0]);
		}
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/*
 * args: range, op, fd: system calls that examine pages. Not mbind(): on 6.1 it warns in vma_merge()
 * for a range that another thread has just unmapped, whatever was mapped there.
 */
long run_pages(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	static __thread unsigned char bytes[4 * PAGE];
	struct iovec to = { bytes, sizeof(bytes) }, from;
	int status;
	size_t len;
	char *at;

	if (!mapping_range(m, arg, &at, &len))
		return -EINVAL;
	from.iov_base = at;
	from.iov_len = len < sizeof(bytes) ? len : sizeof(bytes);
	switch (arg[3] % 10) {
	case 0:
		return result(process_vm_readv(getpid(), &to, 1, &from, 1, 0));
	case 1:
		return result(process_vm_writev(getpid(), &to, 1, &from, 1, 0));
	case 2:
		return result(vmsplice(m->fd[arg[4] % FDS], &from, 1, SPLICE_F_NONBLOCK));
	case 3:
		return result(mincore(at, len, bytes));
	case 4:
		return result(mlock(at, from.iov_len));
	case 5:
		return result(munlock(at, from.iov_len));
	case 6:
		return result(msync(at, len, MS_SYNC));
	case 7:
		return result(syscall(SYS_move_pages, 0, 1, &at, &(int){ 0 }, &status, 2));
	case 8:
		return result(write(m->fd[arg[4] % FDS], at, from.iov_len));
	default:
		return result(read(m->fd[arg[4] % FDS], at, from.iov_len));
	}
}
