// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A file descriptor comes whose file system is a process that does not answer: every question to the file,
 * and its close(), would wait for ever. A receiver asks nothing.
 */
#include "peer.h"

#include "../../lib/storage/wire.h"

#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

static const struct fuse_attr folder_attr = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 2};
static const struct fuse_attr file_attr = {.ino = 2, .mode = S_IFREG | 0644, .nlink = 1, .size = 8192};

static bool answer(int fd, uint64_t unique, int error, const void *data, size_t n)
{
	char reply[512];
	const struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + n), .error = error,
					     .unique = unique};

	memcpy(reply, &head, sizeof(head));
	memcpy(reply + sizeof(head), data, n);
	return write(fd, reply, head.len) == (ssize_t)head.len;
}

/* One request of a file system with one file, which can be opened. */
static bool serve_one(int fd)
{
	static char request[FUSE_MIN_READ_BUFFER];
	const struct fuse_in_header *in = (const void *)request;
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
					   .max_write = 4096};
	const struct fuse_entry_out entry = {.nodeid = 2, .attr = file_attr};
	const struct fuse_open_out opened = {.fh = 1};
	struct fuse_attr_out attr = {0};

	if (read(fd, request, sizeof(request)) < (ssize_t)sizeof(*in))
		return false;
	switch (in->opcode) {
	case FUSE_INIT:
		return answer(fd, in->unique, 0, &init, sizeof(init));
	case FUSE_LOOKUP:
		return answer(fd, in->unique, 0, &entry, sizeof(entry));
	case FUSE_OPEN:
		return answer(fd, in->unique, 0, &opened, sizeof(opened));
	case FUSE_GETATTR:
		attr.attr = in->nodeid == 1 ? folder_attr : file_attr;
		return answer(fd, in->unique, 0, &attr, sizeof(attr));
	default:
		return answer(fd, in->unique, -ENOSYS, "", 0);
	}
}

/* Serves until a byte comes, then stands still with the file system mounted. */
static void serve(int fuse, int stop)
{
	struct pollfd p[] = {{.fd = fuse, .events = POLLIN}, {.fd = stop, .events = POLLIN}};

	while (poll(p, 2, -1) > 0 && !p[1].revents)
		if (!serve_one(fuse))
			_exit(1);
	if (write(stop, "s", 1) == 1)
		pause();
	_exit(0);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void send_fd(int socket, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.align = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			       .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct wire_message m = {.magic = WIRE_MAGIC, .version = WIRE_VERSION, .size = sizeof(m),
				 .flags = WIRE_FD, .dtype = TENSOR_F32, .ndim = 1, .sizes = {4},
				 .strides = {1}};
	struct iovec iov = {&m, sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	assert_int_equal(sendmsg(socket, &msg, 0), sizeof(m));
}

static void file_of_a_process_that_stands_still_is_refused_at_once(void **state)
{
	char folder[] = "/tmp/test-share-slow-XXXXXX", options[96], path[64], byte;
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), stop[2], ends[2], fd;
	tensor_channel *ch;
	double start;
	pid_t server;

	if (fuse < 0)
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0", fuse);
	if (mount("test", folder, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		close(fuse);
		rmdir(folder);
		skip();
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, stop), 0);
	server = fork();
	if (!server)
		serve(fuse, stop[1]);
	close(fuse);
	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(stop[0], "s", 1), 1);
	assert_int_equal(read(stop[0], &byte, 1), 1);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	ch = tensor_channel_open(ends[0]);
	start = seconds();
	alarm(20); /* instead of hanging */
	for (int i = 0; i < 3; i++) {
		send_fd(ends[1], fd);
		assert_fails(tensor_recv(ch), EBADMSG, "no tensor buffer");
	}
	tensor_channel_close(ch);
	assert_true(seconds() - start < 5);
	alarm(0);

	assert_int_equal(kill(server, SIGKILL), 0); /* whoever waits for it is told */
	assert_int_equal(waitpid(server, NULL, 0), server);
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
	assert_int_equal(rmdir(folder), 0);
	close(fd);
	close(stop[0]);
	close(stop[1]);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_of_a_process_that_stands_still_is_refused_at_once),
	};

	return cmocka_run_group_tests_name("share_slow", tests, NULL, NULL);
}
