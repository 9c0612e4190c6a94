// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A receiver without free file descriptors, and messages of the program between those of a channel
 * on one socket.
 */
#include "peer.h"

#include <sys/resource.h>

static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

/* ---- no free descriptors ---- */

#define FILES 40

static void limit_descriptors(rlim_t soft, rlim_t hard)
{
	const struct rlimit r = { soft, hard };

	if (setrlimit(RLIMIT_NOFILE, &r) < 0)
		_exit(90);
}

/* Opens files until no descriptor is free; returns how many. */
static int fill_table(int *fds)
{
	int n = 0;

	while (n < FILES && (fds[n] = dup(0)) >= 0)
		n++;
	return n;
}

#define EXPECT(condition, status)      \
	do {                           \
		if (!(condition))      \
			_exit(status); \
	} while (0)

static void receive_without_descriptors(struct pair *p, tensor *t, const char *text)
{
	int fds[FILES], n;

	EXPECT(tensor_send(p->out, t, 0) == 0, 1);
	n = fill_table(fds);
	EXPECT(n > 0 && !tensor_recv(p->in), 2);
	EXPECT(tensor_last_error()->code == EMFILE, 3);
	EXPECT(strstr(tensor_last_error()->text, text), 4);
	while (n)
		close(fds[--n]);
}

static void emfile_names_the_limit(int type)
{
	struct pair p = pair_open(type);
	tensor *t = tensor_ones(TENSOR_INTS(64), SHAREABLE(TENSOR_F32));
	tensor *other = tensor_zeros(TENSOR_INTS(64), SHAREABLE(TENSOR_F32));

	limit_descriptors(FILES, FILES);
	receive_without_descriptors(&p, t, "RLIMIT_NOFILE permits (40)");
	/*
	 * The sender has sent it: it can never be received, but the channel works with other
	 * buffers.
	 */
	EXPECT(tensor_send(p.out, t, 0) == 0 && !tensor_recv(p.in), 5);
	EXPECT(tensor_last_error()->code == EBADMSG, 6);
	EXPECT(tensor_send(p.out, other, 0) == 0 && tensor_recv(p.in), 7);
	/* New channels on both ends have no record of the lost buffer. */
	tensor_channel_close(p.out);
	tensor_channel_close(p.in);
	p.out = tensor_channel_open(p.ends[0]);
	p.in = tensor_channel_open(p.ends[1]);
	EXPECT(tensor_send(p.out, t, 0) == 0 && tensor_recv(p.in), 8);
}

static void receiver_without_a_descriptor_gets_emfile(void **state)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(IN_CHILD(emfile_names_the_limit(types[i])), 0);
}

static void soft_limit_is_raised(void)
{
	struct pair p = pair_open(SOCK_STREAM);
	tensor *t = tensor_ones(TENSOR_INTS(64), SHAREABLE(TENSOR_F32));
	struct rlimit now;

	limit_descriptors(FILES, 2 * FILES);
	receive_without_descriptors(&p, t, "(40, raised for the next ones)");
	EXPECT(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 2 * FILES, 9);
}

static void receiver_raises_a_soft_limit_that_was_reached(void **state)
{
	assert_int_equal(IN_CHILD(soft_limit_is_raised()), 0);
}

/* ---- one socket for tensors and messages of the program ---- */

static void send_text(const struct pair *p, const char *text)
{
	assert_int_equal(send(p->ends[0], text, strlen(text), 0), strlen(text));
}

static void assert_text_received(const struct pair *p, const char *text)
{
	char got[64] = "";

	assert_int_equal(recv(p->ends[1], got, strlen(text), MSG_WAITALL), strlen(text));
	assert_string_equal(got, text);
}

static void assert_tensor_received(struct pair *p, float value)
{
	tensor *t = ok(tensor_recv(p->in));

	assert_true(((const float *)tensor_data(t))[3] == value);
}

/* All are sent before the first is read: each read must stop at the end of its message. */
static void messages_of_the_program_go_between_tensors(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct pair p = pair_open(types[i]);

		tensor_scope {
			tensor *a = ok(tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(1),
						   SHAREABLE(TENSOR_F32)));
			tensor *b = ok(tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(2),
						   SHAREABLE(TENSOR_F32)));

			send_text(&p, "two tensors");
			assert_done(tensor_send(p.out, a, 0));
			assert_done(tensor_send(p.out, b, 0));
			send_text(&p, "one that was sent before");
			assert_done(tensor_send(p.out, a, 0));
			send_text(&p, "the end");

			assert_text_received(&p, "two tensors");
			assert_tensor_received(&p, 1);
			assert_tensor_received(&p, 2);
			assert_text_received(&p, "one that was sent before");
			assert_tensor_received(&p, 1);
			assert_text_received(&p, "the end");
		}
		pair_close(&p);
	}
}

/* A descriptor of the program, between tensors with descriptors. */
static void descriptors_of_the_program_go_between_tensors(void **state)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char text[] = "file";
	struct iovec iov = { text, 4 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	for (int i = 0; i < 2; i++) {
		struct pair p = pair_open(types[i]);
		int fd = 0;

		tensor_scope {
			tensor *a = ok(tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(1),
						   SHAREABLE(TENSOR_F32)));
			tensor *b = ok(tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(2),
						   SHAREABLE(TENSOR_F32)));

			assert_done(tensor_send(p.out, a, 0));
			memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
			m.msg_controllen = sizeof(control);
			assert_int_equal(sendmsg(p.ends[0], &m, 0), 4);
			assert_done(tensor_send(p.out, b, 0));

			assert_tensor_received(&p, 1);
			assert_int_equal(recvmsg(p.ends[1], &m, 0), 4);
			memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
			assert_true(fd > 2 && fcntl(fd, F_GETFD) >= 0);
			close(fd);
			assert_tensor_received(&p, 2);
		}
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receiver_without_a_descriptor_gets_emfile),
		cmocka_unit_test(receiver_raises_a_soft_limit_that_was_reached),
		cmocka_unit_test(messages_of_the_program_go_between_tensors),
		cmocka_unit_test(descriptors_of_the_program_go_between_tensors),
	};

	return cmocka_run_group_tests_name("share_descriptors", tests, NULL, NULL);
}
