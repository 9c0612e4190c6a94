// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The sender passes a descriptor of a file in a FUSE file system whose server does not answer:
 * every system call on the file, and its close(), would block. The receiver makes none on its own
 * thread.
 */
#include "peer.h"
#include "wire_test.h"

#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

static const struct fuse_attr folder_attr = { .ino = 1, .mode = S_IFDIR | 0755, .nlink = 2 };
static const struct fuse_attr file_attr = {
	.ino = 2, .mode = S_IFREG | 0644, .nlink = 1, .size = 8192
};

static bool send_fuse_reply(int fd, uint64_t unique, int error, const void *data, size_t n)
{
	char reply[512];
	const struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + n),
					      .error = error,
					      .unique = unique };

	memcpy(reply, &head, sizeof(head));
	memcpy(reply + sizeof(head), data, n);
	return write(fd, reply, head.len) == (ssize_t)head.len;
}

/* Serves one request of a FUSE file system with one file that can be opened. */
static bool serve_one(int fd)
{
	static char request[FUSE_MIN_READ_BUFFER];
	const struct fuse_in_header *in = (const void *)request;
	const struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
					    .minor = FUSE_KERNEL_MINOR_VERSION,
					    .max_write = 4096 };
	const struct fuse_entry_out entry = { .nodeid = 2, .attr = file_attr };
	const struct fuse_open_out opened = { .fh = 1 };
	struct fuse_attr_out attr = { 0 };

	if (read(fd, request, sizeof(request)) < (ssize_t)sizeof(*in))
		return false;
	switch (in->opcode) {
	case FUSE_INIT:
		return send_fuse_reply(fd, in->unique, 0, &init, sizeof(init));
	case FUSE_LOOKUP:
		return send_fuse_reply(fd, in->unique, 0, &entry, sizeof(entry));
	case FUSE_OPEN:
		return send_fuse_reply(fd, in->unique, 0, &opened, sizeof(opened));
	case FUSE_GETATTR:
		attr.attr = in->nodeid == 1 ? folder_attr : file_attr;
		return send_fuse_reply(fd, in->unique, 0, &attr, sizeof(attr));
	default:
		return send_fuse_reply(fd, in->unique, -ENOSYS, "", 0);
	}
}

/* Serves until a byte arrives, then stops without unmounting the file system. */
static void serve(int fuse, int stop)
{
	struct pollfd p[] = { { .fd = fuse, .events = POLLIN }, { .fd = stop, .events = POLLIN } };

	while (poll(p, 2, -1) > 0 && !p[1].revents)
		if (!serve_one(fuse))
			_exit(1);
	if (write(stop, "s", 1) == 1)
		pause();
	_exit(0);
}

static void send_fd(int socket, int fd)
{
	struct wire_message m = { .magic = WIRE_MAGIC,
				  .version = WIRE_VERSION,
				  .size = sizeof(m),
				  .flags = WIRE_FD,
				  .dtype = TENSOR_F32,
				  .ndim = 1,
				  .sizes = { 4 },
				  .strides = { 1 } };

	assert_int_equal(wire_test_send(socket, &m, fd), sizeof(m));
}

/* An open file of a FUSE file system that no longer answers. */
struct slow_file {
	char folder[32];
	int fd, stop[2];
	pid_t server;
};

/* false: this process has no permission to mount. */
static bool slow_open(struct slow_file *s)
{
	char options[96], path[64], byte;
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	strcpy(s->folder, "/tmp/test-share-slow-XXXXXX");
	if (fuse < 0)
		return false;
	assert_non_null(mkdtemp(s->folder));
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0", fuse);
	if (mount("test", s->folder, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		close(fuse);
		rmdir(s->folder);
		return false;
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s->stop), 0);
	s->server = fork();
	if (!s->server)
		serve(fuse, s->stop[1]);
	close(fuse);
	snprintf(path, sizeof(path), "%s/file", s->folder);
	s->fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(s->fd >= 0);
	assert_int_equal(write(s->stop[0], "s", 1), 1);
	assert_int_equal(read(s->stop[0], &byte, 1), 1);
	alarm(30); /* ends a hanging test */
	return true;
}

/* Calls that wait for the server fail then. */
static void slow_end_server(struct slow_file *s)
{
	alarm(0);
	assert_int_equal(kill(s->server, SIGKILL), 0);
	assert_int_equal(waitpid(s->server, NULL, 0), s->server);
}

static void slow_close(struct slow_file *s)
{
	assert_int_equal(umount2(s->folder, MNT_DETACH), 0);
	assert_int_equal(rmdir(s->folder), 0);
	close(s->fd);
	close(s->stop[0]);
	close(s->stop[1]);
}

struct link {
	int ends[2];
	tensor_channel *ch;
};

static struct link link_open(void)
{
	struct link l;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, l.ends), 0);
	l.ch = tensor_channel_open(l.ends[0]);
	assert_non_null(l.ch);
	return l;
}

static void link_close(struct link *l)
{
	tensor_channel_close(l->ch);
	close(l->ends[0]);
	close(l->ends[1]);
}

static void file_of_a_stopped_fuse_server_is_refused_at_once(void **state)
{
	struct slow_file slow;
	struct link l;
	double start;

	if (!slow_open(&slow))
		skip();
	l = link_open();
	start = seconds_of(CLOCK_MONOTONIC);
	for (int i = 0; i < 3; i++) {
		send_fd(l.ends[1], slow.fd);
		assert_fails(tensor_recv(l.ch), EBADMSG, "no tensor buffer");
	}
	tensor_channel_close(l.ch);
	assert_true(seconds_of(CLOCK_MONOTONIC) - start < 5);
	slow_end_server(&slow);
	slow_close(&slow);
	close(l.ends[0]);
	close(l.ends[1]);
}

/*
 * While one close() blocks, refused descriptors of other messages queue up: their number is
 * limited.
 */
static void refused_descriptors_of_a_channel_are_limited(void **state)
{
	struct slow_file slow;
	struct link bad, flood, good;
	tensor_channel *peer;
	int pipes[2], before, n = 0;

	assert_int_equal(pipe(pipes), 0);
	if (!slow_open(&slow)) {
		close(pipes[0]);
		close(pipes[1]);
		skip();
	}
	bad = link_open();
	flood = link_open();
	good = link_open();
	before = count_fds();
	send_fd(bad.ends[1], slow.fd);
	assert_fails(tensor_recv(bad.ch), EBADMSG, "no tensor buffer");
	link_close(&bad);
	usleep(200000); /* the closing thread blocks in close() */
	for (; n < 1000; n++) {
		send_fd(flood.ends[1], pipes[0]);
		assert_null(tensor_recv(flood.ch));
		if (tensor_last_error()->code != EBADMSG)
			break;
	}
	assert_int_equal(tensor_last_error()->code, ETOOMANYREFS);
	assert_in_range(n, 1, 4 * WIRE_REFUSED_MAX);
	assert_fails(tensor_recv(flood.ch), ETOOMANYREFS, "channel ended");
	assert_in_range(count_fds(), 0, before + WIRE_REFUSED_MAX + 2);
	/* Other channels are not blocked. */
	peer = tensor_channel_open(good.ends[1]);
	tensor_scope {
		assert_done(tensor_send(peer, ok(tensor_ones(TENSOR_INTS(4), F32)), 0));
		assert_values(tensor_recv(good.ch), 0, 1, 1, 1, 1);
	}
	tensor_channel_close(peer);
	link_close(&good);
	link_close(&flood);
	slow_end_server(&slow);
	assert_fds(before - 6);
	slow_close(&slow);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_of_a_stopped_fuse_server_is_refused_at_once),
		cmocka_unit_test(refused_descriptors_of_a_channel_are_limited),
	};

	return cmocka_run_group_tests_name("share_slow", tests, NULL, NULL);
}
