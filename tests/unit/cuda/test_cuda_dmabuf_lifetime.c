// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Device memory in buffers of /dev/tensor: releases in every order, threads, forks, processes that are killed. */
#include "cuda_dmabuf.h"
#include "threads.h"

/* What holds the memory; a member that is NULL or -1 was released. */
struct holders {
	tensor *x, *host, *again;
	int dmabuf, buffer;
};

enum { HOLDERS = 5 };

static void check_holders(const struct holders *h)
{
	tensor *t;

	if (h->x)
		assert_true(sum_of(h->x) == SUM);
	if (h->host)
		assert_true(sum_of(h->host) == SUM);
	if (h->again)
		assert_true(sum_of(h->again) == SUM);
	for (int i = 0; i < 2; i++) {
		int fd = i ? h->buffer : h->dmabuf;

		if (fd < 0)
			continue;
		t = ok(import_fd(fd, 0));
		assert_true(sum_of(t) == SUM);
		tensor_release(t);
	}
}

static void release_holder(struct holders *h, int which)
{
	tensor **tensors[] = { &h->x, &h->host, &h->again };
	int *fds[] = { &h->dmabuf, &h->buffer };

	if (which < 3) {
		tensor_release(*tensors[which]);
		*tensors[which] = NULL;
	} else {
		close(*fds[which - 3]);
		*fds[which - 3] = -1;
	}
}

static void release_in_order(const int *order)
{
	struct exported e = export_new();
	struct holders h = { .x = e.x, .dmabuf = e.fd };

	h.host = ok(import_fd(e.fd, 0));
	h.buffer = tensor_buffer_fd(h.host, RW);
	assert_true(check_done_(h.buffer));
	h.again = ok(import_fd(h.buffer, 0));
	for (int i = 0; i < HOLDERS; i++) {
		release_holder(&h, order[i]);
		check_holders(&h);
	}
}

/* One of the orders of all holders, by its number. */
static void order_of(int number, int *order)
{
	int left[HOLDERS] = { 0, 1, 2, 3, 4 };

	for (int i = 0; i < HOLDERS; i++) {
		int n = HOLDERS - i, at = number % n;

		order[i] = left[at];
		left[at] = left[n - 1];
		number /= n;
	}
}

static void it_is_released_in_every_order(void **state)
{
	struct counts before;
	int order[HOLDERS];

	NEED_IMPORT();
	before = counts_now();
	for (int i = 0; i < 120; i++) {
		order_of(i, order);
		release_in_order(order);
	}
	assert_counts(before);
}

static void killed_receivers_leave_nothing(void **state)
{
	struct counts before;
	struct exported e;
	tensor *host;
	char byte;

	NEED_IMPORT();
	before = counts_now();
	e = export_new();
	host = ok(import_fd(e.fd, 0));
	for (int i = 0; i < 8; i++) {
		struct peer p = peer_with_buffer("writer", host, RW);

		assert_int_equal(read(p.socket, &byte, 1), 1);
		usleep((useconds_t)i * 500);
		kill(p.pid, SIGKILL);
		assert_int_equal(peer_end(&p), -SIGKILL);
		assert_true(sum_of(e.x) == SUM);
	}
	tensor_release(host);
	close(e.fd);
	tensor_release(e.x);
	assert_counts(before);
}

static void memory_outlives_a_killed_maker(void **state)
{
	struct counts before;

	NEED_IMPORT();
	before = counts_now();
	for (int i = 0; i < 6; i++) {
		struct peer p = peer_start("maker", SOCK_STREAM);
		int fd = receive_fd(p.socket);
		tensor *host = NULL;

		assert_true(fd >= 0);
		if (i % 2)
			host = ok(import_fd(fd, 0));
		kill(p.pid, SIGKILL);
		assert_int_equal(peer_end(&p), -SIGKILL);
		host = host ? host : ok(import_fd(fd, 0));
		close(fd);
		assert_true(sum_of(host) == SUM);
		tensor_scope
			ok(tensor_fill_(host, S(1.0)));
		assert_true(sum_of(host) == N);
		tensor_release(host);
	}
	assert_counts(before);
}

/* A message that is never read holds the last reference. */
static void a_descriptor_in_flight_keeps_it(void **state)
{
	struct counts before;
	struct exported e;
	int ends[2], fd;
	tensor *host;

	NEED_IMPORT();
	before = counts_now();
	for (int received = 0; received < 2; received++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		e = export_new();
		host = ok(import_fd(e.fd, 0));
		fd = tensor_buffer_fd(host, RW);
		assert_true(send_fd(ends[0], fd));
		close(fd);
		close(e.fd);
		tensor_release(host);
		tensor_release(e.x);
		if (received) {
			fd = receive_fd(ends[1]);
			host = ok(import_fd(fd, 0));
			close(fd);
			assert_true(sum_of(host) == SUM);
			tensor_release(host);
		}
		close(ends[0]);
		close(ends[1]);
	}
	assert_counts(before);
}

static tensor *common;

static void *export_in_a_thread(struct worker *w)
{
	for (int i = 0; i < 10; i++) {
		uint64_t offset, size;
		int fd = tensor_cuda_export_dmabuf(common, &offset, &size);
		tensor *host = fd < 0 ? NULL : import_fd(fd, offset);

		tensor_scope
			expect(w, host && number(tensor_sum(host)) == SUM);
		close(fd);
		tensor_release(host);
	}
	return NULL;
}

static void threads_export_and_import(void **state)
{
	struct counts before;

	NEED_IMPORT();
	before = counts_now();
	tensor_scope {
		common = ok(tensor_arange(S((double)N), CUDA));
		with_threads(export_in_a_thread, NULL);
		assert_true(sum_of(common) == SUM);
	}
	assert_counts(before);
}

static void a_child_of_fork_has_the_memory_and_no_handle(void **state)
{
	struct exported e;
	tensor *host;
	int status;

	NEED_IMPORT();
	e = export_new();
	host = ok(import_fd(e.fd, 0));
	status = IN_CHILD({
		uint32_t handle;

		if (floats(host)[7] != 7)
			_exit(1);
		floats(host)[7] = 107;
		if (on_device() && (tensor_buffer_handle(host, &handle) >= 0 ||
				    tensor_last_error()->code != ESTALE))
			_exit(2);
		tensor_release(host);
	});
	assert_int_equal(status, 0);
	assert_true(sum_of(e.x) == SUM + 100);
	assert_true(sum_of(host) == SUM + 100);
	tensor_release(host);
	close(e.fd);
	tensor_release(e.x);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_released_in_every_order),
		cmocka_unit_test(killed_receivers_leave_nothing),
		cmocka_unit_test(memory_outlives_a_killed_maker),
		cmocka_unit_test(a_descriptor_in_flight_keeps_it),
		cmocka_unit_test(threads_export_and_import),
		cmocka_unit_test(a_child_of_fork_has_the_memory_and_no_handle),
	};

	peer_main(argc, argv, dmabuf_roles);
	return cmocka_run_group_tests_name("cuda_dmabuf_lifetime", tests, NULL, NULL);
}
