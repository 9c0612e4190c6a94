/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tests of device memory in buffers of /dev/tensor: a device tensor with its dma-buf, what must not leak, and processes that
 * get a buffer. On the emulation, whose dma-bufs are those of vgem or /dev/udmabuf, in a guest with the module (make
 * test-guest-cuda). Elsewhere the emulation exports memfds; what needs a dma-buf is skipped.
 */
#ifndef TESTS_CUDA_DMABUF_H
#define TESTS_CUDA_DMABUF_H

#include "buffer.h"
#include "cuda_results.h"

#include <tensor/channel.h>

#define N   1000
#define SUM (N * (N - 1) / 2.0)

static inline double sum_of(tensor *t)
{
	double v = -1;

	tensor_scope {
		assert_done(tensor_item(ok(tensor_sum(ok(t))), &v));
	}
	return v;
}

/* ---- a device tensor, and its memory in a buffer ---- */

struct exported {
	tensor *x; /* 0, 1 ... N - 1 on the device */
	int fd;
	uint64_t offset, size;
};

static inline struct exported export_new(void)
{
	struct exported e = { .fd = -1 };

	tensor_scope {
		e.x = tensor_retain(ok(tensor_arange(S((double)N), CUDA)));
		e.fd = tensor_cuda_export_dmabuf(e.x, &e.offset, &e.size);
		assert_done(tensor_cuda_synchronize(0));
	}
	return e;
}

/* All of a tensor's elements in host memory; the caller owns the result. */
static inline tensor *import_fd(int fd, uint64_t offset)
{
	tensor *t = NULL;

	tensor_scope {
		t = tensor_from_buffer_fd(fd, TENSOR_F32, TENSOR_SHAPE(N), (int64_t)offset);
		t = t ? tensor_retain(t) : NULL;
	}
	return t;
}

static inline bool is_dmabuf(const tensor *t)
{
	return info_of(t).kind == TENSOR_BUFFER_KIND_DMABUF;
}

/* Whether device memory can be mapped by this process; if not, the reason is printed. */
static inline bool can_import(void)
{
	struct exported e;
	tensor *host = NULL;

	if (!device_or_reason())
		return false;
	e = export_new();
	if (e.fd >= 0) {
		host = import_fd(e.fd, e.offset);
		close(e.fd);
	}
	if (!host)
		print_message("# skipped: %s\n", tensor_last_error()->text);
	tensor_release(host);
	tensor_release(e.x);
	return host;
}

#define NEED_IMPORT()              \
	do {                       \
		if (!can_import()) \
			skip();    \
	} while (0)

/* ---- what must not leak ---- */

struct counts {
	int fds, maps, handles;
	uint64_t memory;
};

/* Handles of this process, which the module counts. */
static inline int count_handles(void)
{
	char name[48], line[128];
	int n = -1, device = on_device() ? tensor_device_fd() : -1;
	FILE *f;

	if (device < 0)
		return 0;
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", device);
	f = fopen(name, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "tensor-handles: %d", &n) == 1)
			break;
	fclose(f);
	assert_true(n >= 0);
	return n;
}

/* Mappings of dma-bufs, of device memory and of buffers. */
static inline int count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "dmabuf") || strstr(line, "memfd:") || strstr(line, "tensor:");
	fclose(f);
	return n;
}

static inline struct counts counts_now(void)
{
	struct counts c;
	uint64_t total;

	tensor_cache_trim();
	assert_done(tensor_cuda_synchronize(0));
	assert_done(tensor_cuda_memory_trim(0));
	assert_done(tensor_cuda_memory_info(0, &c.memory, &total));
	c.fds = count_fds();
	c.maps = count_maps();
	c.handles = count_handles();
	return c;
}

#define assert_counts(before)                                     \
	do {                                                      \
		struct counts now_ = counts_now();                \
                                                                  \
		assert_int_equal(now_.fds, (before).fds);         \
		assert_int_equal(now_.maps, (before).maps);       \
		assert_int_equal(now_.handles, (before).handles); \
		assert_int_equal(now_.memory, (before).memory);   \
	} while (0)

/* ---- other processes ---- */

static inline bool send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr m = { .msg_iov = &data,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket, &m, MSG_NOSIGNAL) == 1;
}

static inline int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec data = { &byte, 1 };
	struct msghdr m = { .msg_iov = &data,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Reads the elements of the descriptor that it gets, and writes them. */
static inline int user(tensor_channel *ch)
{
	int fd = receive_fd(tensor_channel_fd(ch));
	tensor *t = import_fd(fd, 0);

	if (!t)
		return tensor_perror("user"), 1;
	if (sum_of(t) != SUM)
		return 2;
	if (!tensor_is_writable(t))
		return 3;
	tensor_release(tensor_fill_(t, S(5.0)));
	return 0;
}

/* A descriptor without the right to write. */
static inline int reader(tensor_channel *ch)
{
	int fd = receive_fd(tensor_channel_fd(ch));
	tensor *t = import_fd(fd, 0);

	if (!t)
		return tensor_perror("reader"), 1;
	if (sum_of(t) != SUM || tensor_is_writable(t))
		return 2;
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? 0 : 3;
}

/* Says that it has the memory, and writes the same elements to it until it is killed. */
static inline int writer(tensor_channel *ch)
{
	int socket = tensor_channel_fd(ch), fd = receive_fd(socket);
	tensor *t = import_fd(fd, 0);

	if (!t || write(socket, "", 1) != 1)
		return 1;
	for (;;)
		for (int i = 0; i < N; i++)
			*(volatile float *)&floats(t)[i] = (float)i;
}

/* Makes device memory, imports it, gives the buffer away, and is killed. */
static inline int maker(tensor_channel *ch)
{
	struct exported e = export_new();
	tensor *host = import_fd(e.fd, e.offset);
	int fd = host ? tensor_buffer_fd(host, RW) : -1;

	if (fd < 0 || !send_fd(tensor_channel_fd(ch), fd))
		return tensor_perror("maker"), 1;
	for (;;)
		pause();
}

static const struct peer_role dmabuf_roles[] = {
	{ "user", user },   { "reader", reader }, { "writer", writer },
	{ "maker", maker }, { NULL, NULL },
};

static inline struct peer peer_with_buffer(const char *role, tensor *host, unsigned rights)
{
	struct peer p = peer_start(role, SOCK_STREAM);
	int fd = tensor_buffer_fd(host, rights);

	assert_true(check_done_(fd));
	assert_true(send_fd(p.socket, fd));
	close(fd);
	return p;
}

#endif
