// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Calls on file descriptors: open, send, poll, and file operations that a buffer fd refuses. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz.h"

#define LIMIT_FILE "/sys/module/tensor/parameters/limit_bytes"

static bool other_user, other_limit;

static long result(long got)
{
	return got < 0 ? -errno : got;
}

static long keep(struct machine *m, uint64_t slot, int fd)
{
	if (fd < 0)
		return -errno;
	machine_set_fd(m, slot, fd);
	return 0;
}

/* args: out, flags. O_NONBLOCK: a blocking read would never return. */
long run_open(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	return keep(m, arg[0], open("/dev/tensor", (arg[1] & 3) | O_NONBLOCK | O_CLOEXEC));
}

long run_close(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	machine_set_fd(m, arg[0], -1);
	return 0;
}

long run_dup(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	return keep(m, arg[1], dup(m->fd[arg[0] % FDS]));
}

long run_pair(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	int fd[2];

	if (arg[2] ? pipe2(fd, O_NONBLOCK) : socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fd))
		return -errno;
	machine_set_fd(m, arg[0], fd[0]);
	machine_set_fd(m, arg[1], fd[1]);
	return 0;
}

/* args: sock, fd */
long run_send(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = m->fd[arg[1] % FDS];

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return result(sendmsg(m->fd[arg[0] % FDS], &msg, MSG_DONTWAIT));
}

/* args: sock, out */
long run_recv(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd;

	if (recvmsg(m->fd[arg[0] % FDS], &msg, MSG_DONTWAIT) < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -ENOMSG;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return keep(m, arg[1], fd);
}

/* args: out, pages, seals */
long run_memfd(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	int fd = memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (arg[1] & 1023) * PAGE))
		return -errno;
	if (arg[2])
		fcntl(fd, F_ADD_SEALS, (int)arg[2]);
	return keep(m, arg[0], fd);
}

static long proc_read(const char *what, int fd)
{
	static __thread char text[8192];
	char path[64];
	long got;
	int proc;

	snprintf(path, sizeof(path), "/proc/self/%s/%d", what, fd);
	proc = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (proc < 0)
		proc = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (proc < 0)
		return -errno;
	got = result(read(proc, text, sizeof(text)));
	close(proc);
	return got;
}

/* Operations that change or query the state of a file. */
static long file_state(int fd, uint64_t op, uint64_t a, uint64_t b)
{
	struct statfs fs;
	struct stat st;

	switch (op) {
	case 0:
		return result(ftruncate(fd, a));
	case 1:
		return result(fallocate(fd, b & 3, a, PAGE));
	case 2:
		return result(lseek(fd, a, b % 5));
	case 3:
		return result(fstat(fd, &st));
	case 4:
		return result(fstatfs(fd, &fs));
	case 5:
		return result(fsync(fd));
	case 6:
		return result(fcntl(fd, F_ADD_SEALS, (int)a));
	case 7:
		return result(fcntl(fd, F_GET_SEALS));
	case 8:
		return result(fcntl(fd, F_SETFL, (int)a & (O_APPEND | O_DIRECT | O_NOATIME)));
	case 9:
		return result(flock(fd, a & 15));
	case 10:
		return result(fchmod(fd, a));
	case 11:
		return result(fchown(fd, a, b));
	case 12:
		return result(ioctl(fd, a, b));
	default:
		return result(posix_fadvise(fd, a, PAGE, b % 6));
	}
}

/* args: fd, op, a, b */
long run_file(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	static __thread char bytes[8192];
	int fd = m->fd[arg[0] % FDS], other = m->fd[arg[3] % FDS];
	size_t n = arg[2] % sizeof(bytes);

	switch (arg[1] % 24) {
	case 14:
		return result(read(fd, bytes, n));
	case 15:
		return result(write(fd, bytes, n));
	case 16:
		return result(pread(fd, bytes, n, arg[3]));
	case 17:
		return result(sendfile(other, fd, NULL, n));
	case 18:
		return result(splice(fd, NULL, other, NULL, n, SPLICE_F_NONBLOCK));
	case 19:
		return proc_read("fd", fd);
	case 20:
		return proc_read("fdinfo", fd);
	case 21:
		return result(copy_file_range(fd, NULL, other, NULL, n, 0));
	case 22:
		return result(syscall(SYS_kcmp, getpid(), getpid(), 0, fd, other));
	case 23:
		return result(syscall(SYS_close_range, 3000, 3001, 0));
	default:
		return file_state(fd, arg[1] % 24, arg[2], arg[3]);
	}
}

/* args: fd, events, milliseconds */
long run_poll(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	struct pollfd p = { .fd = m->fd[arg[0] % FDS], .events = arg[1] };

	return result(poll(&p, 1, arg[2] & 3));
}

/* args: none. Drops privileges for the rest of the program. */
long run_user(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	/* the C library's setresuid() would change all threads */
	other_user = true;
	return result(syscall(SYS_setresuid, -1, 1000, -1));
}

static long limit_write(uint64_t bytes)
{
	char text[32];
	int fd = open(LIMIT_FILE, O_WRONLY | O_CLOEXEC), len;
	long got;

	if (fd < 0)
		return -errno;
	len = snprintf(text, sizeof(text), "%lu", bytes);
	got = result(write(fd, text, len));
	close(fd);
	return got;
}

long run_limit(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	other_limit = true;
	return limit_write(arg[0]);
}

/* args: pages. Memory pressure: calls the module's shrinker. */
long run_shrink(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	long got;

	/* 4: no log line for later calls; 2: reclaim slab objects, which calls shrinkers */
	got = write(fd, "4", 1) < 0 ? -errno : result(write(fd, "2", 1));
	close(fd);
	return got;
}

#define LIMIT_USUAL (64 << 20)

void files_clean(void)
{
	static bool once = true;

	if (other_user)
		syscall(SYS_setresuid, -1, 0, -1);
	if (other_limit || once)
		limit_write(LIMIT_USUAL);
	other_user = other_limit = once = false;
}
