// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Tensors between two processes: what the receiver gets, who may write, what is sent on the socket.
 */
#include "peer.h"

#include "lib/sharing/wire.h"

static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

/* ---- roles ---- */

/* Sends back every tensor that it receives. */
static int echo(tensor_channel *ch)
{
	tensor *t;

	while ((t = tensor_recv(ch))) {
		if (tensor_send(ch, t, tensor_is_writable(t) ? 0 : TENSOR_SEND_READONLY) < 0)
			return tensor_perror("echo"), 1;
		tensor_release(t);
	}
	return tensor_last_error()->code == EPIPE ? 0 : 2;
}

/* The same without permission to open /dev/tensor. */
static int echo_nobody(tensor_channel *ch)
{
	if (getuid() == 0 && setuid(65534) < 0)
		return 3;
	return echo(ch);
}

/* Adds one in the sender's memory and sends an answer. */
static int add_one(tensor_channel *ch)
{
	tensor *t = (tensor *)ch;

	while (t)
		tensor_scope {
			t = tensor_recv(ch);
			if (!t)
				break;
			if (!tensor_add_(t, tensor_ones_like(t, TENSOR_OPTIONS(0))))
				return tensor_perror("add_one"), 1;
			if (tensor_send(ch, tensor_ones(TENSOR_SCALAR_SHAPE, I64), 0) < 0)
				return 3;
		}
	return 0;
}

/* Tries all ways to write to read-only memory. Returns 0 if all failed. */
static int try_to_write(tensor_channel *ch)
{
	tensor *t = tensor_recv(ch), *u;
	void *p = (void *)tensor_data(t);
	size_t size = 1 << 20;

	if (!t || tensor_is_writable(t))
		return 1;
	if (tensor_add_(t, t) || tensor_last_error()->code != EACCES)
		return 2;
	tensor_clear_error();
	if (tensor_mutable_data(t) || tensor_last_error()->code != EACCES)
		return 10;
	if (tensor_copy_from(t, &size, sizeof(size)) == 0)
		return 3;
	if (mprotect(p, size, PROT_READ | PROT_WRITE) == 0)
		return 4;
	for (int fd = 3; fd < 64; fd++) {
		char path[32], target[64] = "";
		int again;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof(target) - 1) < 0 || !strstr(target, "tensor"))
			continue;
		again = open(path, O_RDWR | O_CLOEXEC);
		if (again < 0)
			continue;
		if (mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) != MAP_FAILED)
			return 5;
		if (write(again, "x", 1) > 0 || fallocate(again, 3, 0, 4096) == 0)
			return 6; /* mode 3: FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE */
		if (write(fd, "x", 1) > 0 || fallocate(fd, 3, 0, 4096) == 0)
			return 7;
	}
	/* A receiver cannot send it on with more rights. */
	if (tensor_send(ch, t, 0) < 0)
		return 8;
	u = tensor_recv(ch);
	tensor_release(t);
	return u ? 9 : 0;
}

/* Sends the page frame numbers of each tensor that it receives, as an i64 tensor. */
static int frames_of(const tensor *t, int64_t *frames, int n)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uintptr_t first = (uintptr_t)tensor_data(t) / 4096;
	ssize_t got = pread(fd, frames, n * 8, first * 8);

	close(fd);
	for (int i = 0; i < n; i++)
		frames[i] &= (1ll << 55) - 1;
	return got == n * 8 ? 0 : -1;
}

static int tell_frames(tensor_channel *ch)
{
	tensor *t;

	while ((t = tensor_recv(ch))) {
		int n = (int)(tensor_numel(t) * tensor_itemsize(tensor_dtype(t)) / 4096);
		int64_t *frames = calloc(n, 8);
		tensor *answer;

		if (frames_of(t, frames, n) < 0)
			return 1;
		answer = tensor_from_data(frames, TENSOR_INTS(n), SHAREABLE(TENSOR_I64));
		if (!answer || tensor_send(ch, answer, 0) < 0)
			return 2;
		free(frames);
		tensor_release(answer);
		tensor_release(t);
	}
	return 0;
}

static const struct peer_role roles[] = {
	{ "echo", echo },	    { "echo_nobody", echo_nobody }, { "add_one", add_one },
	{ "attack", try_to_write }, { "frames", tell_frames },	    { NULL, NULL },
};

/* ---- what the receiver gets ---- */

/* The elements of the tensor in row-major order. */
static char *elements(tensor *t)
{
	size_t n = tensor_numel(t) * tensor_itemsize(tensor_dtype(t));
	char *bytes = malloc(n + 1);

	assert_done(tensor_copy_to(t, bytes, n));
	return bytes;
}

static void send_and_compare(struct peer *p, tensor *t)
{
	char *want = elements(ok(t)), *got;
	tensor *back;

	assert_done(tensor_send(p->ch, t, 0));
	back = ok(tensor_recv(p->ch));
	assert_int_equal(tensor_dtype(back), tensor_dtype(t));
	assert_int_equal(tensor_dim(back), tensor_dim(t));
	assert_memory_equal(tensor_sizes(back), tensor_sizes(t), tensor_dim(t) * 8);
	got = elements(back);
	assert_memory_equal(got, want, tensor_numel(t) * tensor_itemsize(tensor_dtype(t)));
	free(got);
	free(want);
}

static void every_dtype_and_stride_arrives(void **state)
{
	for (size_t k = 0; k < 2; k++) {
		struct peer p = peer_start("echo", types[k]);

		for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++)
			for (int shareable = 0; shareable < 2; shareable++)
				tensor_scope {
					tensor *t = ok(tensor_empty(
						TENSOR_INTS(4, 6),
						TENSOR_OPTIONS(.dtype = d,
							       .shareable = shareable)));
					unsigned char *bytes = tensor_mutable_data(t);

					for (size_t i = 0; i < 24 * tensor_itemsize(d); i++)
						bytes[i] = d == TENSOR_BOOL ? i & 1 : i * 7;
					send_and_compare(&p, t);
					send_and_compare(&p, tensor_t(t));
					send_and_compare(&p, tensor_slice(t, 1, 1, 6, 2));
					send_and_compare(&p, tensor_slice(t, 0, 2, 2, 1));
					send_and_compare(&p, tensor_select(t, 0, 3));
					send_and_compare(&p, tensor_select(tensor_select(t, 0, 3),
									   0, 5));
					send_and_compare(&p,
							 tensor_expand(tensor_slice(t, 0, 1, 2, 1),
								       TENSOR_INTS(3, 5, 6)));
				}
		assert_int_equal(peer_end(&p), 0);
	}
}

static void sixteen_dimensions_arrive(void **state)
{
	struct peer p = peer_start("echo", SOCK_STREAM);

	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1));

		send_and_compare(&p, t);
		send_and_compare(&p, tensor_to(t, SHAREABLE(0)));
	}
	assert_int_equal(peer_end(&p), 0);
}

/* A view keeps its strides and its offset in the buffer. */
static void view_arrives_as_a_view(void **state)
{
	struct peer p = peer_start("echo", SOCK_SEQPACKET);

	tensor_scope {
		tensor *t = ok(tensor_zeros(TENSOR_INTS(8, 8), SHAREABLE(TENSOR_F64)));
		tensor *v = ok(tensor_slice(tensor_t(t), 0, 3, 8, 2)), *back;

		assert_done(tensor_send(p.ch, v, 0));
		back = ok(tensor_recv(p.ch));
		assert_memory_equal(tensor_strides(back), tensor_strides(v), 16);
		assert_int_equal(tensor_storage_offset(back), tensor_storage_offset(v));
		assert_false(tensor_is_contiguous(back));
	}
	assert_int_equal(peer_end(&p), 0);
}

static void peer_without_the_device_can_share(void **state)
{
	struct peer p = peer_start("echo_nobody", SOCK_STREAM);

	tensor_scope {
		tensor *t =
			ok(tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(1), SHAREABLE(TENSOR_F32)));
		tensor *back;

		assert_done(tensor_send(p.ch, t, 0));
		back = ok(tensor_recv(p.ch));
		((float *)tensor_mutable_data(back))[2] = 9;
		assert_values(t, 0, 1, 1, 9, 1);
		send_and_compare(&p, t);
	}
	assert_int_equal(peer_end(&p), 0);
}

/* ---- shared memory ---- */

static void writes_are_seen_on_both_sides(void **state)
{
	struct peer p = peer_start("add_one", SOCK_STREAM);

	tensor_scope {
		tensor *t = ok(tensor_zeros(TENSOR_INTS(3), SHAREABLE(TENSOR_F32)));

		for (int i = 1; i <= 3; i++) {
			assert_done(tensor_send(p.ch, t, 0));
			ok(tensor_recv(p.ch));
			assert_values(t, 0, i, i, i);
		}
		assert_done(tensor_send(p.ch, tensor_slice(t, 0, 1, 2, 1), 0));
		ok(tensor_recv(p.ch));
		assert_values(t, 0, 3, 4, 3);
	}
	assert_int_equal(peer_end(&p), 0);
}

static void private_tensor_is_shared_by_the_first_send(void **state)
{
	static const int64_t lengths[] = { 3, 1024, 1 << 18 };
	struct peer p = peer_start("add_one", SOCK_STREAM);

	for (size_t i = 0; i < 3; i++)
		tensor_scope {
			tensor *t = ok(tensor_zeros(TENSOR_INTS(lengths[i]), F32));

			assert_done(tensor_send(p.ch, t, 0));
			ok(tensor_recv(p.ch));
			assert_true(((const float *)tensor_data(t))[lengths[i] - 1] == 1);
		}
	assert_int_equal(peer_end(&p), 0);
}

/* A mapped file is not memory of the library. */
static void mapped_file_is_copied(void **state)
{
	static const struct tensor_load_options mapped = { .map = TENSOR_MAP_PRIVATE };
	char name[] = "/tmp/test-share-XXXXXX";
	struct peer p = peer_start("add_one", SOCK_STREAM);

	assert_true(close(mkstemp(name)) == 0);
	tensor_scope {
		tensor *t;

		assert_done(tensor_save_npy(name, ok(tensor_zeros(TENSOR_INTS(1024), F32))));
		t = ok(tensor_load_npy(name, &mapped));
		assert_fails(tensor_share_memory(t), ENOTSUP, "not the library's own");
		assert_done(tensor_send(p.ch, t, 0));
		ok(tensor_recv(p.ch));
		assert_true(((const float *)tensor_data(t))[1023] == 0);
	}
	assert_int_equal(unlink(name), 0);
	assert_int_equal(peer_end(&p), 0);
}

static void read_only_is_enforced_by_the_kernel(void **state)
{
	struct peer p = peer_start("attack", SOCK_STREAM);

	tensor_scope {
		tensor *t = ok(tensor_zeros(TENSOR_INTS(1 << 18), F32));

		assert_done(tensor_send(p.ch, t, TENSOR_SEND_READONLY));
		assert_false(tensor_is_writable(ok(tensor_recv(p.ch))));
		/* The sender may still write. */
		ok(tensor_add_(t, tensor_ones(TENSOR_SCALAR_SHAPE, F32)));
	}
	assert_int_equal(peer_end(&p), 0);
}

static void both_processes_map_the_same_page_frames(void **state)
{
	enum { N = 512 };
	struct peer p = peer_start("frames", SOCK_STREAM);
	int64_t mine[N];
	bool seen = false;

	tensor_scope {
		tensor *t = ok(tensor_zeros(TENSOR_INTS(N, 1024), F32)), *theirs;

		assert_done(tensor_share_memory(t));
		memset(tensor_mutable_data(t), 1, N * 4096);
		assert_int_equal(frames_of(t, mine, N), 0);
		assert_done(tensor_send(p.ch, t, 0));
		theirs = ok(tensor_recv(p.ch));
		seen = mine[0] && mine[N - 1]; /* zeros without CAP_SYS_ADMIN */
		assert_memory_equal(tensor_data(theirs), mine, sizeof(mine));
	}
	assert_int_equal(peer_end(&p), 0);
	if (!seen)
		skip();
}

/* ---- messages on the socket ---- */

/* Receives one message: its size, and how many fds it had; they are closed. */
static ssize_t receive_raw(int socket, int *fds)
{
	char bytes[4096], control[CMSG_SPACE(64 * sizeof(int))];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(socket, &msg, 0);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	*fds = 0;
	if (c) {
		*fds = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (int i = 0; i < *fds; i++)
			close(((int *)CMSG_DATA(c))[i]);
	}
	return n;
}

static void only_descriptors_cross_the_socket(void **state)
{
	int ends[2], fds;
	tensor_channel *ch;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ch = tensor_channel_open(ends[0]);
	tensor_scope {
		tensor *t = ok(tensor_zeros(TENSOR_INTS(4096, 1024), F32));

		assert_done(tensor_send(ch, t, 0));
		assert_int_equal(receive_raw(ends[1], &fds), sizeof(struct wire_message));
		assert_int_equal(fds, 1);
		for (int i = 0; i < 10; i++) {
			assert_done(tensor_send(ch, tensor_select(t, 0, i), 0));
			assert_int_equal(receive_raw(ends[1], &fds), sizeof(struct wire_message));
			assert_int_equal(fds, 0);
		}
		/* A descriptor with other rights is sent as another buffer. */
		assert_done(tensor_send(ch, t, TENSOR_SEND_READONLY));
		receive_raw(ends[1], &fds);
		assert_int_equal(fds, 1);
	}
	tensor_channel_close(ch);
	close(ends[0]);
	close(ends[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dtype_and_stride_arrives),
		cmocka_unit_test(sixteen_dimensions_arrive),
		cmocka_unit_test(view_arrives_as_a_view),
		cmocka_unit_test(peer_without_the_device_can_share),
		cmocka_unit_test(writes_are_seen_on_both_sides),
		cmocka_unit_test(private_tensor_is_shared_by_the_first_send),
		cmocka_unit_test(mapped_file_is_copied),
		cmocka_unit_test(read_only_is_enforced_by_the_kernel),
		cmocka_unit_test(both_processes_map_the_same_page_frames),
		cmocka_unit_test(only_descriptors_cross_the_socket),
	};

	peer_main(argc, argv, roles);
	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
