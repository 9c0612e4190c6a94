// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Executes the steps as system calls. */
#include <poll.h>
#include <sys/prctl.h>

#include "../../kselftest/include/dmabuf.h"
#include "worker.h"

/* Limit for the answer to an order; then the process hangs. */
#define PATIENCE_MS 60000

/**
 * struct held - the references of a buffer that the process holds
 * @handle: each reference of a handle, oldest first; the kernel may give the same number again
 * @mmap_offset: mmap offsets of the handles
 * @refs: number of references of handles
 * @fd: buffer fd
 * @dmabuf: dma-buf fd
 * @gem: GEM handle of the attached device, 0 for none
 * @at: mapping, or NULL
 */
struct held {
	uint32_t handle[2];
	uint64_t mmap_offset[2];
	unsigned int refs;
	int fd, dmabuf;
	uint32_t gem;
	char *at;
};

static struct world *world;
static struct held held[BUFS];
static unsigned int self;
static int dev = -1, vgem = -1, peer = -1;

static int check_error(int err, const char *what)
{
	if (err)
		snprintf(world->wrong, sizeof(world->wrong), "%s: %s", what, strerror(-err));
	return err;
}

static void count_handles(unsigned int b)
{
	const struct held *h = &held[b];

	world->buf[b].handles[self] = h->refs - (h->refs == 2 && h->handle[0] == h->handle[1]);
}

static int add_handle(unsigned int b, uint32_t handle, uint64_t mmap_offset)
{
	struct held *h = &held[b];

	h->handle[h->refs] = handle;
	h->mmap_offset[h->refs++] = mmap_offset;
	count_handles(b);
	return 0;
}

static int do_open(void)
{
	dev = dev_open();
	return check_error(dev < 0 ? dev : 0, "open");
}

static int do_shut(void)
{
	unsigned int b;

	close(dev);
	dev = -1;
	for (b = 0; b < BUFS; b++) {
		held[b].refs = 0;
		count_handles(b);
	}
	return 0;
}

static int do_alloc(unsigned int b)
{
	struct buf_world *w = &world->buf[b];
	struct tensor_alloc alloc;
	struct tensor_info info;
	int err;

	err = check_error(dev_alloc(dev, w->bytes, &alloc), "ALLOC");
	if (!err)
		err = check_error(buf_info(dev, alloc.handle, &info), "INFO of a new buffer");
	if (err)
		return err;
	w->ino = info.ino;
	w->stamp = 0;
	return add_handle(b, alloc.handle, alloc.mmap_offset);
}

static int do_close(unsigned int b)
{
	struct held *h = &held[b];
	int err = check_error(dev_close(dev, h->handle[0]), "CLOSE");

	h->handle[0] = h->handle[1];
	h->mmap_offset[0] = h->mmap_offset[1];
	h->refs--;
	count_handles(b);
	return err;
}

static int do_export(unsigned int b, uint32_t flags, int *fd)
{
	*fd = buf_export_rights(dev, held[b].handle[0], TENSOR_RIGHTS_ALL, flags);
	return check_error(*fd < 0 ? *fd : 0, "EXPORT");
}

static int do_import(unsigned int b, int fd)
{
	struct tensor_import import;
	int err = check_error(buf_import(dev, fd, &import), "IMPORT");

	if (err)
		return err;
	if (import.bytes != world->buf[b].bytes)
		return check_error(-EBADMSG, "IMPORT: bytes");
	return add_handle(b, import.handle, import.mmap_offset);
}

/* The first, middle and last word of the buffer. */
static volatile uint64_t *buffer_word(unsigned int b, unsigned int i)
{
	uint64_t pages = world->buf[b].bytes / PAGE - 1;

	return (volatile uint64_t *)(held[b].at + pages * i / 2 * PAGE + (i == 2 ? PAGE - 8 : 0));
}

static int look_mapping(unsigned int b)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		if (*buffer_word(b, i) != world->buf[b].stamp)
			return check_error(-EBADMSG, "bytes of a mapping");
	}
	return 0;
}

/* Checks what other processes wrote, then writes. */
static int do_map(unsigned int b, int fd, uint64_t offset)
{
	char *at = map_shared(fd, world->buf[b].bytes, PROT_READ | PROT_WRITE, offset);
	unsigned int i;
	int err;

	if (at == MAP_FAILED)
		return check_error(-errno, "mmap");
	held[b].at = at;
	err = look_mapping(b);
	world->buf[b].stamp = ++world->stamps;
	for (i = 0; i < 3; i++)
		*buffer_word(b, i) = world->stamps;
	return err;
}

static int do_unmap(unsigned int b)
{
	int err = munmap(held[b].at, world->buf[b].bytes) ? -errno : 0;

	held[b].at = NULL;
	return check_error(err, "munmap");
}

static int do_close_fd(int *fd)
{
	int err = close(*fd) ? -errno : 0;

	*fd = -1;
	return check_error(err, "close");
}

static int do_attach(unsigned int b)
{
	if (vgem < 0)
		vgem = vgem_open();
	return check_error(vgem_import(vgem, held[b].dmabuf, &held[b].gem), "attach");
}

static int do_detach(unsigned int b)
{
	uint32_t gem = held[b].gem;

	held[b].gem = 0;
	return check_error(vgem_close(vgem, gem), "detach");
}

static int do_receive(int *fd)
{
	*fd = recv_fd(peer);
	return check_error(*fd < 0 ? *fd : 0, "receive");
}

static int look_info(unsigned int b, int fd, uint32_t handle)
{
	const struct buf_world *w = &world->buf[b];
	struct tensor_info info;
	int err = check_error(buf_info(fd, handle, &info), "INFO");

	if (err)
		return err;
	if (info.ino == w->ino && info.bytes == w->bytes &&
	    info.handles == w->handles[0] + w->handles[1] && info.files == w->want.files &&
	    info.mappings == w->want.mappings && info.dmabufs == w->want.dmabufs &&
	    info.attachments == w->want.attachments)
		return 0;
	snprintf(world->wrong, sizeof(world->wrong),
		 "INFO: %u handles, %u files, %u mappings, %u dmabufs, %u attachments, ino %llu",
		 info.handles, info.files, info.mappings, info.dmabufs, info.attachments, info.ino);
	return -EBADMSG;
}

static int look_buf(unsigned int b)
{
	const struct held *h = &held[b];
	unsigned int i;
	int err = 0;

	for (i = 0; i < h->refs && !err; i++)
		err = look_info(b, dev, h->handle[i]);
	if (!err && h->fd >= 0)
		err = look_info(b, h->fd, 0);
	if (!err && h->dmabuf >= 0 && lseek(h->dmabuf, 0, SEEK_END) != (off_t)world->buf[b].bytes)
		err = check_error(-EBADMSG, "size of a dma-buf");
	if (!err && h->at)
		err = look_mapping(b);
	return err;
}

static int do_look(void)
{
	unsigned int b;
	int err = 0;

	for (b = 0; b < BUFS && !err; b++)
		err = look_buf(b);
	return err;
}

static int do_step(struct step s)
{
	struct held *h = &held[s.buf];

	switch (s.op) {
	case OPEN:
		return do_open();
	case SHUT:
		return do_shut();
	case ALLOC:
		return do_alloc(s.buf);
	case CLOSE:
		return do_close(s.buf);
	case EXPORT:
		return do_export(s.buf, 0, &h->fd);
	case EXPORT_DMABUF:
		return do_export(s.buf, TENSOR_EXPORT_DMABUF, &h->dmabuf);
	case CLOSE_FD:
		return do_close_fd(&h->fd);
	case CLOSE_DMABUF:
		return do_close_fd(&h->dmabuf);
	case IMPORT:
		return do_import(s.buf, h->fd);
	case IMPORT_DMABUF:
		return do_import(s.buf, h->dmabuf);
	case MAP_HANDLE:
		return do_map(s.buf, dev, h->mmap_offset[0]);
	case MAP_FD:
		return do_map(s.buf, h->fd, 0);
	case MAP_DMABUF:
		return do_map(s.buf, h->dmabuf, 0);
	case UNMAP:
		return do_unmap(s.buf);
	case ATTACH:
		return do_attach(s.buf);
	case DETACH:
		return do_detach(s.buf);
	case SEND_FD:
		return check_error(send_fd(peer, h->fd), "send");
	case SEND_DMABUF:
		return check_error(send_fd(peer, h->dmabuf), "send");
	case RECEIVE_FD:
		return do_receive(&h->fd);
	case RECEIVE_DMABUF:
		return do_receive(&h->dmabuf);
	default:
		return do_look();
	}
}

/* Each order is a list of steps; the answer is 0 or the error of the first that failed. */
static void serve(int sock)
{
	struct step steps[MAX_STEPS];
	ssize_t got;
	int i, err;

	while ((got = read(sock, steps, sizeof(steps))) > 0) {
		prctl(PR_SET_NAME, world->name);
		err = 0;
		for (i = 0; i < got / (ssize_t)sizeof(*steps) && !err; i++)
			err = do_step(steps[i]);
		if (write(sock, &err, sizeof(err)) != sizeof(err))
			break;
	}
}

/**
 * worker_start() - start a process that holds nothing
 * @w: the process
 * @shared: memory that all processes share
 * @proc: number of the process
 * @ends: sockets by process number, over which the processes send fds
 *
 * Return: 0 or -errno.
 */
int worker_start(struct worker *w, struct world *shared, unsigned int proc, const int ends[2])
{
	unsigned int b;
	int sock[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return -errno;
	w->pid = fork();
	if (!w->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sock[0]);
		world = shared;
		self = proc;
		peer = ends[proc];
		for (b = 0; b < BUFS; b++)
			held[b] = (struct held){ .fd = -1, .dmabuf = -1 };
		serve(sock[1]);
		_exit(0);
	}
	close(sock[1]);
	w->sock = sock[0];
	return w->pid < 0 ? -errno : 0;
}

void worker_kill(struct worker *w)
{
	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	close(w->sock);
}

/**
 * worker_order() - let a process execute steps
 * @w: the process
 * @steps: the steps; the first failure ends the order
 * @n: number of steps
 *
 * Return: 0; -errno of the step that failed; -EPIPE: the process died; -ETIMEDOUT: it hangs.
 */
int worker_order(struct worker *w, const struct step *steps, int n)
{
	struct pollfd p = { .fd = w->sock, .events = POLLIN };
	int err;

	if (write(w->sock, steps, n * sizeof(*steps)) < 0)
		return -errno;
	if (poll(&p, 1, PATIENCE_MS) != 1)
		return -ETIMEDOUT;
	return read(w->sock, &err, sizeof(err)) == sizeof(err) ? err : -EPIPE;
}
