// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Share, import, map: sends a filled buffer to another process, which maps it, touches it and
 * unmaps it.
 *
 *	share, first page	the receiver reads one byte: the cost of the hand-off alone
 *	share, all pages	it reads a byte of each page
 *
 * The fd is sent with SCM_RIGHTS. A buffer of the device is exported for each hand-off, and the
 * receiver maps the fd. Separate columns show an fd that is exported once and kept, like that of a
 * memfd, and an import by the receiver, as in a program that keeps many buffers.
 */
#include <fcntl.h>
#include <linux/tensor.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "module.h"

/**
 * struct order - instructions for the receiver of an fd
 * @bytes: to map
 * @all: touch all pages
 * @import: create a handle of it first
 */
struct order {
	uint64_t bytes;
	uint32_t all;
	uint32_t import;
};

union control {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static void send_fd(int sock, const struct order *o, int fd)
{
	union control control = {};
	struct iovec part = { .iov_base = (void *)o, .iov_len = sizeof(*o) };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	must(sendmsg(sock, &msg, MSG_NOSIGNAL) == sizeof(*o), "sendmsg");
}

/* The fd, or -1 if the sender has closed the socket. */
static int recv_fd(int sock, struct order *o)
{
	union control control;
	struct iovec part = { .iov_base = o, .iov_len = sizeof(*o) };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c;
	int fd;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != sizeof(*o))
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	must(c && c->cmsg_type == SCM_RIGHTS, "recvmsg");
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static void use(const struct order *o, int fd, uint64_t offset)
{
	volatile const char *at =
		mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	uint64_t i;

	must(at != MAP_FAILED, "mmap");
	for (i = 0; i < (o->all ? o->bytes : 1); i += PAGE)
		must(at[i] == 1, "another byte than was sent");
	munmap((void *)at, o->bytes);
}

static void use_imported(const struct order *o, int dev, int fd)
{
	struct tensor_import i = { .size = sizeof(i), .fd = fd };
	struct tensor_close c = { .size = sizeof(c) };

	must(!ioctl(dev, TENSOR_IOC_IMPORT, &i), "IMPORT");
	use(o, dev, i.mmap_offset);
	c.handle = i.handle;
	must(!ioctl(dev, TENSOR_IOC_CLOSE, &c), "CLOSE");
}

static void receiver(int sock, int dev)
{
	struct order o;
	int fd;

	while ((fd = recv_fd(sock, &o)) >= 0) {
		if (o.import)
			use_imported(&o, dev, fd);
		else
			use(&o, fd, 0);
		close(fd);
		must(write(sock, "k", 1) == 1, "write");
	}
	_exit(0);
}

/* Use of the device's fd. */
enum manner { PLAIN, KEPT, IMPORTED };

static const char *const manner_names[] = {
	[PLAIN] = "tensor",
	[KEPT] = "tensor, fd kept",
	[IMPORTED] = "tensor, imported",
};

/* kept: an fd of the buffer, or -1 to export one for this hand-off. */
static void hand(const struct kind *k, struct memory *m, int sock, const struct order *o, int kept)
{
	int fd = kept < 0 ? k->export(m) : kept;
	char answer;

	send_fd(sock, o, fd);
	if (kept < 0)
		close(fd);
	must(read(sock, &answer, 1) == 1, "the receiver is gone");
}

static struct sample measure(const struct kind *k, int sock, struct order *o, enum manner manner)
{
	unsigned int i, n = o->all && o->bytes > MIB ? 1 : 16;
	struct memory m;
	uint64_t ns;
	int kept;

	k->prepare();
	k->make(&m, o->bytes);
	o->bytes = m.bytes;
	memory_map(&m, 0);
	memory_touch(&m);
	kept = !k->export ? m.fd : manner == KEPT ? k->export(&m) : -1;
	hand(k, &m, sock, o, kept);
	ns = now_ns();
	for (i = 0; i < n; i++)
		hand(k, &m, sock, o, kept);
	ns = now_ns() - ns;
	if (k->export && kept >= 0)
		close(kept);
	memory_unmap(&m);
	k->drop(&m);
	return (struct sample){ .ns = (double)ns / n };
}

static void row(const struct kind *k, int sock, uint64_t bytes, bool all, enum manner manner)
{
	struct result r = { .group = "share",
			    .row = all ? "all pages" : "first page",
			    .side = k->export ? manner_names[manner] : k->name,
			    .bytes = bytes };
	struct order o;
	unsigned int round;

	for (round = 0; round < options.rounds; round++) {
		o = (struct order){ .bytes = bytes, .all = all, .import = manner == IMPORTED };
		result_add(&r, measure(k, sock, &o, manner));
	}
	result_print(&r);
}

static void rows(int sock, uint64_t bytes, bool all)
{
	size_t i;

	for (i = 0; i < kinds_nr; i++) {
		if (!kinds[i].here())
			continue;
		row(&kinds[i], sock, bytes, all, PLAIN);
		if (kinds[i].export) {
			row(&kinds[i], sock, bytes, all, KEPT);
			row(&kinds[i], sock, bytes, all, IMPORTED);
		}
	}
}

void bench_share(void)
{
	int pair[2], dev = -1;
	uint64_t bytes;
	pid_t pid;

	must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		close(pair[0]);
		dev = open("/dev/tensor", O_RDWR | O_CLOEXEC);
		receiver(pair[1], dev);
	}
	close(pair[1]);
	for (bytes = 4 * KIB; bytes <= options.most; bytes *= 8) {
		rows(pair[0], bytes, false);
		rows(pair[0], bytes, true);
	}
	close(pair[0]);
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
}
