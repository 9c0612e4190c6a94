// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A receiver with a malicious sender: invalid values of every field of the message, all kinds of
 * fds. Each is refused with an error text; nothing leaks, and the next valid message is received.
 * Over 500 lines, because all cases change one valid message.
 */
#include "peer.h"
#include "wire_test.h"

#include <linux/tensor.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* A receiving channel, the other end as a plain socket, and a valid message to modify. */
struct link {
	int raw, own;
	tensor_channel *ch;
	struct wire_message m;
	int fd; /* the buffer of m, writable */
	int readonly_fd;
};

static void raw_send(int socket, const void *data, size_t len, const int *fds, int n)
{
	char control[CMSG_SPACE(64 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		struct cmsghdr *c = (void *)control;

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	assert_int_equal(sendmsg(socket, &msg, MSG_NOSIGNAL), len);
}

/* The message and the fd that a sender makes for t. */
static int capture(tensor *t, unsigned flags, struct wire_message *m)
{
	tensor_channel *ch;
	int ends[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ch = tensor_channel_open(ends[0]);
	assert_done(tensor_send(ch, t, flags));
	fd = wire_test_recv(ends[1], m);
	tensor_channel_close(ch);
	close(ends[0]);
	close(ends[1]);
	return fd;
}

static struct link link_open(int type)
{
	struct wire_message ignored;
	struct link l;
	int ends[2];
	tensor *t = ok(tensor_full(TENSOR_INTS(4, 8), TENSOR_SCALAR(7),
				   TENSOR_OPTIONS(.dtype = TENSOR_F32, .shareable = true)));

	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
	l.raw = ends[0];
	l.own = ends[1];
	l.ch = tensor_channel_open(l.own);
	l.fd = capture(t, 0, &l.m);
	tensor_release(t);
	t = ok(tensor_full(TENSOR_INTS(4, 8), TENSOR_SCALAR(7),
			   TENSOR_OPTIONS(.dtype = TENSOR_F32, .shareable = true)));
	l.readonly_fd = capture(t, TENSOR_SEND_READONLY, &ignored);
	tensor_release(t);
	return l;
}

static void link_close(struct link *l)
{
	tensor_channel_close(l->ch);
	close(l->raw);
	close(l->own);
	close(l->fd);
	close(l->readonly_fd);
}

/* The unmodified message is received. */
static void assert_valid_message_received(struct link *l)
{
	tensor *t;

	raw_send(l->raw, &l->m, sizeof(l->m), &l->fd, 1);
	t = ok(tensor_recv(l->ch));
	assert_int_equal(tensor_numel(t), 32);
	assert_true(((const float *)tensor_data(t))[31] == 7);
	tensor_release(t);
}

/* m is refused, with its buffer attached or already known to the receiver. */
static void assert_refused(struct link *l, const struct wire_message *m, const char *words)
{
	raw_send(l->raw, m, sizeof(*m), &l->fd, 1);
	assert_fails(tensor_recv(l->ch), EBADMSG, words);
	assert_valid_message_received(l);
}

#define WITH(l, member, value)                   \
	({                                       \
		struct wire_message m_ = (l)->m; \
		m_.member = (value);             \
		m_;                              \
	})

/* ---- fields ---- */

static void fields_out_of_range_are_refused(void **state)
{
	int types[] = { SOCK_STREAM, SOCK_SEQPACKET }, before;
	struct link l = link_open(SOCK_STREAM); /* opens descriptors that the library keeps */

	link_close(&l);
	before = count_fds();
	for (int k = 0; k < 2; k++) {
		struct wire_message m;

		l = link_open(types[k]);

		m = WITH(&l, flags, l.m.flags | 4);
		assert_refused(&l, &m, "flag");
		m = WITH(&l, slot, WIRE_SLOTS);
		assert_refused(&l, &m, "slot");
		m = WITH(&l, dtype, 0);
		assert_refused(&l, &m, "dtype");
		m = WITH(&l, dtype, TENSOR_DTYPE_COUNT);
		assert_refused(&l, &m, "dtype");
		m = WITH(&l, dtype, UINT32_MAX);
		assert_refused(&l, &m, "dtype");
		m = WITH(&l, ndim, 17);
		assert_refused(&l, &m, "dimensions");
		m = WITH(&l, ndim, UINT32_MAX);
		assert_refused(&l, &m, "dimensions");
		m = WITH(&l, ndim, 1); /* the dtype field contains the size of a second dimension */
		assert_refused(&l, &m, "does not exist");
		m = WITH(&l, sizes[5], 1);
		assert_refused(&l, &m, "does not exist");
		m = WITH(&l, ino, l.m.ino + 1);
		assert_refused(&l, &m, "another buffer");
		m = WITH(&l, dev, l.m.dev + 1);
		assert_refused(&l, &m, "another buffer");
		link_close(&l);
	}
	assert_fds(before);
}

static void geometry_outside_the_buffer_is_refused(void **state)
{
	const int64_t big = INT64_MAX, half = 1ll << 62;
	const struct {
		int64_t offset, sizes[3], strides[3];
	} cases[] = {
		{ 0, { 1024, 1, 2 }, { 1, 1, 1 } }, /* one element more than a page */
		{ 4, { 1024, 1, 1 }, { 1, 1, 1 } },
		{ 4097, { 1, 1, 1 }, { 1, 1, 1 } },
		{ 2, { 1, 1, 1 }, { 1, 1, 1 } }, /* offset not aligned to elements */
		{ -4, { 1, 1, 1 }, { 1, 1, 1 } },
		{ INT64_MIN, { 1, 1, 1 }, { 1, 1, 1 } },
		{ big - 3, { 1, 1, 1 }, { 1, 1, 1 } },
		{ 4092, { 2, 1, 1 }, { 1, 1, 1 } },
		{ 0, { 2, 1, 1 }, { -1, 1, 1 } },
		{ 8, { 4, 1, 1 }, { -1, 1, 1 } },
		{ 0, { -1, 1, 1 }, { 1, 1, 1 } },
		{ 0, { INT64_MIN, 1, 1 }, { 1, 1, 1 } },
		{ 0, { big, 1, 1 }, { 1, 1, 1 } },
		{ 0, { big, 1, 1 }, { 0, 0, 0 } },
		{ 0, { half, 4, 1 }, { 0, 0, 0 } }, /* the product wraps to 0 */
		{ 0, { 1ll << 32, 1ll << 32, 1 }, { 0, 0, 0 } },
		{ 0, { 2, 1, 1 }, { big, 1, 1 } },
		{ 0, { 2, 1, 1 }, { INT64_MIN, 1, 1 } },
		{ 0, { 3, 3, 1 }, { half, half, 1 } },
		{ 0, { 3, 3, 1 }, { half, -half, 1 } },
		{ 0,
		  { 2, 2, 1 },
		  { half / 2, half / 2, 1 } },	     /* the bytes overflow, not the elements */
		{ 0, { big, 0, big }, { 1, 1, 1 } }, /* no elements, but the product overflows */
		{ 8192, { 0, 1, 1 }, { 1, 1, 1 } },
	};
	struct link l = link_open(SOCK_STREAM);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_message m = l.m;

		m.offset = cases[i].offset;
		m.ndim = 3;
		memcpy(m.sizes, cases[i].sizes, sizeof(cases[i].sizes));
		memcpy(m.strides, cases[i].strides, sizeof(cases[i].strides));
		raw_send(l.raw, &m, sizeof(m), &l.fd, 1);
		if (tensor_recv(l.ch)) {
			fprintf(stderr, "case %zu was accepted\n", i);
			fail();
		}
		assert_int_equal(tensor_last_error()->code, EBADMSG);
		assert_valid_message_received(&l);
		/* The same for a buffer that the receiver already has. */
		m.flags &= ~WIRE_FD;
		raw_send(l.raw, &m, sizeof(m), NULL, 0);
		assert_fails(tensor_recv(l.ch), EBADMSG, "does not fit");
	}
	link_close(&l);
}

static void geometry_up_to_the_end_of_the_buffer_is_accepted(void **state)
{
	const struct {
		int64_t offset, size, stride, at_last;
	} cases[] = { { 0, 1024, 1, 1023 }, { 4092, 1, 1, 1023 },   { 4092, 1024, -1, 0 },
		      { 0, 1 << 20, 0, 0 }, { 4096, 0, 99999, -1 }, { 0, 2, 1023, 1023 } };
	struct link l = link_open(SOCK_SEQPACKET);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_message m = l.m;
		tensor *t;

		m.offset = cases[i].offset;
		m.ndim = 1;
		m.sizes[0] = cases[i].size;
		m.strides[0] = cases[i].stride;
		m.sizes[1] = m.strides[1] = 0;
		raw_send(l.raw, &m, sizeof(m), &l.fd, 1);
		t = ok(tensor_recv(l.ch));
		assert_int_equal(tensor_numel(t), cases[i].size);
		if (cases[i].size)
			((float *)tensor_mutable_data(t))[cases[i].stride * (cases[i].size - 1)] +=
				0;
		tensor_release(t);
	}
	link_close(&l);
}

static void foreign_message_ends_the_channel(void **state)
{
	for (int k = 0; k < 3; k++) {
		struct link l = link_open(SOCK_STREAM);
		struct wire_message m = l.m;
		int before = count_fds();

		if (k == 0)
			m.magic ^= 1;
		else if (k == 1)
			m.version++;
		else
			m.size--;
		raw_send(l.raw, &m, sizeof(m), &l.fd, 1);
		assert_fails(tensor_recv(l.ch), EPROTO, k ? "version" : "no tensor message");
		raw_send(l.raw, &l.m, sizeof(l.m), &l.fd, 1);
		assert_fails(tensor_recv(l.ch), EPROTO, "ended");
		assert_fds(before);
		link_close(&l);
	}
}

/* ---- buffers that the receiver should have ---- */

static void unknown_buffer_is_refused(void **state)
{
	struct link l = link_open(SOCK_STREAM);
	struct wire_message m = WITH(&l, flags, 0);

	raw_send(l.raw, &m, sizeof(m), NULL, 0);
	assert_fails(tensor_recv(l.ch), EBADMSG, "not in the slot");
	assert_valid_message_received(&l);
	m.ino++;
	raw_send(l.raw, &m, sizeof(m), NULL, 0);
	assert_fails(tensor_recv(l.ch), EBADMSG, "not in the slot");
	m.ino--;
	m.slot ^= 1;
	raw_send(l.raw, &m, sizeof(m), NULL, 0);
	assert_fails(tensor_recv(l.ch), EBADMSG, "not in the slot");
	m.slot = WIRE_NO_SLOT;
	raw_send(l.raw, &m, sizeof(m), NULL, 0);
	assert_fails(tensor_recv(l.ch), EBADMSG, "neither");
	/* The buffer was sent writable. */
	m = WITH(&l, flags, WIRE_READONLY);
	raw_send(l.raw, &m, sizeof(m), NULL, 0);
	assert_fails(tensor_recv(l.ch), EBADMSG, "not in the slot");
	/* The buffer was to be dropped. */
	m = WITH(&l, flags, 0);
	memset(m.forget, 0xff, sizeof(m.forget));
	raw_send(l.raw, &m, sizeof(m), NULL, 0);
	assert_fails(tensor_recv(l.ch), EBADMSG, "not in the slot");
	assert_valid_message_received(&l);
	link_close(&l);
}

static void rights_that_contradict_the_message_are_refused(void **state)
{
	struct link l = link_open(SOCK_STREAM);
	struct wire_message m = WITH(&l, flags, WIRE_FD | WIRE_READONLY);

	assert_refused(&l, &m, "writable fd");
	link_close(&l);
}

/* ---- fds ---- */

static void fds_of_other_files_are_refused(void **state)
{
	struct link l = link_open(SOCK_STREAM);
	int plain = memfd_create("plain", MFD_ALLOW_SEALING), grown, pipes[2], fds[6];
	int small = memfd_create("small", MFD_ALLOW_SEALING), before;

	assert_int_equal(ftruncate(plain, 1 << 20), 0);
	grown = memfd_create("grown", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(grown, 1 << 20), 0);
	assert_int_equal(fcntl(grown, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_int_equal(ftruncate(small, 100), 0);
	assert_int_equal(fcntl(small, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
	assert_int_equal(pipe(pipes), 0);
	fds[0] = plain;
	fds[1] = grown;
	fds[2] = small;
	fds[3] = pipes[0];
	fds[4] = open("/proc/self/exe", O_RDONLY);
	fds[5] = l.own;			   /* the receiver's own socket */
	assert_valid_message_received(&l); /* the receiver keeps its buffer */
	before = count_fds();
	for (int i = 0; i < 6; i++) {
		struct wire_message m = l.m;
		struct stat st;

		assert_int_equal(fstat(fds[i], &st), 0);
		m.dev = st.st_dev;
		m.ino = st.st_ino;
		raw_send(l.raw, &m, sizeof(m), &fds[i], 1);
		assert_fails(tensor_recv(l.ch), EBADMSG, "no tensor buffer");
		assert_fds(before);
		assert_valid_message_received(&l);
	}
	for (int i = 0; i < 5; i++)
		close(fds[i]);
	close(pipes[1]);
	link_close(&l);
}

/* A channel accepts buffers only: the driver of a dma-buf determines what its mapping does. */
static void dmabuf_is_refused(void **state)
{
	struct tensor_buffer_info info = { .size = sizeof(info) };
	struct link l = link_open(SOCK_STREAM);
	struct wire_message m = l.m;
	tensor *t = NULL;
	int fd, before;

	if (strcmp(tensor_provider_name(), "device")) {
		link_close(&l);
		skip();
	}
	raw_send(l.raw, &l.m, sizeof(l.m), &l.fd, 1);
	t = ok(tensor_recv(l.ch));
	fd = tensor_buffer_dmabuf(t, TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE);
	assert_true(check_done_(fd));
	before = count_fds();
	assert_done(tensor_buffer_info(t, &info));
	for (int i = 0; i < 2; i++) {
		struct stat st;

		assert_int_equal(fstat(fd, &st), 0);
		m.dev = i ? info.dev : st.st_dev;
		m.ino = i ? info.ino : st.st_ino;
		raw_send(l.raw, &m, sizeof(m), &fd, 1);
		assert_fails(tensor_recv(l.ch), EBADMSG, "no tensor buffer");
		assert_fds(before);
	}
	close(fd);
	tensor_release(t);
	assert_valid_message_received(&l);
	link_close(&l);
}

/* Both descriptors have the identity of the buffer; the part is smaller and has another offset. */
static void part_of_a_buffer_is_not_confused_with_the_whole(void **state)
{
	struct tensor_export part = { .size = sizeof(part),
				      .flags = TENSOR_EXPORT_RANGE,
				      .offset = 4096,
				      .bytes = 4096,
				      .rights = TENSOR_RIGHTS_RW };
	struct link l = link_open(SOCK_STREAM);
	struct wire_message m;
	tensor *t, *first, *whole;
	int fd;

	if (strcmp(tensor_provider_name(), "device")) {
		link_close(&l);
		skip();
	}
	t = ok(tensor_zeros(TENSOR_INTS(4096), TENSOR_OPTIONS(.shareable = true)));
	((float *)tensor_mutable_data(t))[1024] = 5;
	((float *)tensor_mutable_data(t))[4095] = 6;
	fd = capture(t, 0, &m);
	assert_done(tensor_buffer_handle(t, &part.handle));
	assert_int_equal(ioctl(tensor_device_fd(), TENSOR_IOC_EXPORT, &part), 0);
	m.slot = WIRE_NO_SLOT;
	m.flags = WIRE_FD;
	raw_send(l.raw, &m, sizeof(m), &part.fd, 1);
	assert_fails(tensor_recv(l.ch), EBADMSG, "does not fit");
	m.sizes[0] = 1024;
	raw_send(l.raw, &m, sizeof(m), &part.fd, 1);
	first = ok(tensor_recv(l.ch));
	assert_true(((const float *)tensor_data(first))[0] == 5);
	m.sizes[0] = 4096;
	raw_send(l.raw, &m, sizeof(m), &fd, 1);
	whole = ok(tensor_recv(l.ch)); /* the part is still mapped */
	assert_true(((const float *)tensor_data(whole))[4095] == 6);
	((float *)tensor_mutable_data(first))[1] = 7;
	assert_true(((const float *)tensor_data(whole))[1025] == 7);
	close(fd);
	close(part.fd);
	tensor_release(first);
	tensor_release(whole);
	tensor_release(t);
	link_close(&l);
}

static void more_fds_than_announced_are_closed(void **state)
{
	struct link l = link_open(SOCK_STREAM);
	struct wire_message m = WITH(&l, flags, 0);
	int many[40], before;

	assert_valid_message_received(&l);
	before = count_fds();
	for (int i = 0; i < 40; i++)
		many[i] = l.fd;
	raw_send(l.raw, &l.m, sizeof(l.m), many, 2);
	assert_fails(tensor_recv(l.ch), EBADMSG, "more fds");
	raw_send(l.raw, &l.m, sizeof(l.m), many, 40);
	assert_fails(tensor_recv(l.ch), EBADMSG, "more fds");
	/* The message in two parts, each with an fd. */
	raw_send(l.raw, &l.m, 10, many, 1);
	raw_send(l.raw, (char *)&l.m + 10, sizeof(l.m) - 10, many, 1);
	assert_fails(tensor_recv(l.ch), EBADMSG, "more fds");
	assert_valid_message_received(&l);
	raw_send(l.raw, &m, sizeof(m), many, 1);
	assert_fails(tensor_recv(l.ch), EBADMSG, "more fds");
	raw_send(l.raw, &l.m, sizeof(l.m), NULL, 0);
	assert_fails(tensor_recv(l.ch), EBADMSG, "announced");
	assert_valid_message_received(&l);
	assert_fds(before);
	link_close(&l);
}

static void message_in_parts_is_reassembled(void **state)
{
	struct link l = link_open(SOCK_STREAM);
	tensor *t;

	fcntl(l.own, F_SETFL, O_NONBLOCK);
	for (size_t i = 0; i < sizeof(l.m); i += 16) {
		assert_fails(tensor_recv(l.ch), EAGAIN, "recv");
		raw_send(l.raw, (char *)&l.m + i, 16, &l.fd, i == 0);
	}
	t = ok(tensor_recv(l.ch));
	assert_int_equal(tensor_numel(t), 32);
	tensor_release(t);
	link_close(&l);
}

static void truncated_message_is_refused(void **state)
{
	struct link l = link_open(SOCK_STREAM);
	char longer[sizeof(l.m) + 8] = { 0 };
	int before = count_fds();

	raw_send(l.raw, &l.m, 100, &l.fd, 1);
	shutdown(l.raw, SHUT_WR);
	assert_fails(tensor_recv(l.ch), EBADMSG, "cut short");
	assert_fds(before);
	link_close(&l);

	l = link_open(SOCK_SEQPACKET);
	assert_valid_message_received(&l);
	before = count_fds();
	raw_send(l.raw, &l.m, 100, &l.fd, 1);
	assert_fails(tensor_recv(l.ch), EBADMSG, "cut short");
	memcpy(longer, &l.m, sizeof(l.m));
	raw_send(l.raw, longer, sizeof(longer), &l.fd, 1);
	assert_fails(tensor_recv(l.ch), EBADMSG, "too long");
	assert_valid_message_received(&l);
	assert_fds(before);
	link_close(&l);
}

/* A seqpacket may be empty: read() returns 0, but the stream has not ended. */
static void empty_packet_is_refused(void **state)
{
	struct link l = link_open(SOCK_SEQPACKET);

	assert_int_equal(send(l.raw, "", 0, 0), 0);
	assert_fails(tensor_recv(l.ch), EBADMSG, "cut short");
	assert_valid_message_received(&l);
	assert_int_equal(send(l.raw, "", 0, 0), 0);
	raw_send(l.raw, &l.m, sizeof(l.m), &l.fd, 1);
	shutdown(l.raw, SHUT_WR);
	assert_fails(tensor_recv(l.ch), EBADMSG, "cut short");
	tensor_release(ok(tensor_recv(l.ch)));
	assert_fails(tensor_recv(l.ch), EPIPE, "gone");
	link_close(&l);
}

/* A hole that a peer punches into a memfd reads as zeros, without a fault. */
static void hole_in_a_buffer_reads_as_zeros(void **state)
{
	struct link l = link_open(SOCK_STREAM);
	tensor *t;

	if (strcmp(tensor_provider_name(), "memfd")) {
		link_close(&l);
		skip();
	}
	raw_send(l.raw, &l.m, sizeof(l.m), &l.fd, 1);
	t = ok(tensor_recv(l.ch));
	assert_int_equal(fallocate(l.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8192), 0);
	assert_true(((const float *)tensor_data(t))[3] == 0);
	assert_true(ftruncate(l.fd, 0) < 0);
	tensor_release(t);
	link_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_out_of_range_are_refused),
		cmocka_unit_test(geometry_outside_the_buffer_is_refused),
		cmocka_unit_test(geometry_up_to_the_end_of_the_buffer_is_accepted),
		cmocka_unit_test(foreign_message_ends_the_channel),
		cmocka_unit_test(unknown_buffer_is_refused),
		cmocka_unit_test(rights_that_contradict_the_message_are_refused),
		cmocka_unit_test(fds_of_other_files_are_refused),
		cmocka_unit_test(dmabuf_is_refused),
		cmocka_unit_test(part_of_a_buffer_is_not_confused_with_the_whole),
		cmocka_unit_test(more_fds_than_announced_are_closed),
		cmocka_unit_test(message_in_parts_is_reassembled),
		cmocka_unit_test(truncated_message_is_refused),
		cmocka_unit_test(empty_packet_is_refused),
		cmocka_unit_test(hole_in_a_buffer_reads_as_zeros),
	};

	return cmocka_run_group_tests_name("share_hostile", tests, NULL, NULL);
}
