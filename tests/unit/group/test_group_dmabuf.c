// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Tensors on dma-bufs of another driver: groups copy them, channels refuse them, with all their views. The driver is the
 * module for tests in the guest, kmod/import/test_exporter.c; skipped without it.
 */
#include "../../kmod/import/test_exporter.h"
#include "buffer.h"
#include "ranks.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <tensor/buffer.h>

#define BYTES EXPORTER_MAX_BYTES /* from 1 MiB on, groups read tensors in place */
#define N     ((int64_t)BYTES / 4)

static int load(void **state)
{
	int fd = open("/modules/tensor_export_test.ko", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		syscall(SYS_finit_module, fd, "", 0);
		close(fd);
	}
	return 0;
}

static int unload(void **state)
{
	for (int i = 0; i < 100 && !access("/dev/tensor_test_exporter", F_OK); i++) {
		syscall(SYS_delete_module, "tensor_export_test", O_NONBLOCK);
		usleep(20000);
	}
	return 0;
}

static bool has_exporter(void)
{
	return on_device() && !access("/dev/tensor_test_exporter", F_OK);
}

static int export_of(unsigned long kind)
{
	int exporter = open("/dev/tensor_test_exporter", O_RDWR | O_CLOEXEC), fd;

	if (exporter < 0)
		return -1;
	fd = ioctl(exporter, kind, BYTES);
	close(exporter);
	return fd;
}

static tensor *import(int fd)
{
	return tensor_from_buffer_fd(fd, TENSOR_F32, TENSOR_SHAPE(N), 0);
}

/* A tensor of N zeros on another driver's memory; NULL with the error set. */
static tensor *foreign(void)
{
	int fd = export_of(EXPORTER_PLAIN);
	tensor *t = import(fd);

	if (fd >= 0)
		close(fd);
	return t;
}

/* ---- groups ---- */

static bool same(const tensor *a, const tensor *b)
{
	return a && b && !memcmp(tensor_data(a), tensor_data(b), BYTES);
}

/* `memory`: of the rank's tensors. */
static void results(tensor_group *g, tensor *(*memory)(void), tensor *numbers, tensor *out[5])
{
	int rank = tensor_group_rank(g);
	tensor *in = tensor_copy_(memory(), numbers);

	for (int i = 0; i < 5; i++)
		NEED(out[i] = memory());
	NEED(in);
	NEED(!tensor_group_all_reduce(g, out[0], in, TENSOR_GROUP_SUM, NULL));
	NEED(tensor_copy_(out[1], in));
	NEED(!tensor_group_all_reduce(g, out[1], out[1], TENSOR_GROUP_SUM, NULL));
	NEED(tensor_copy_(out[2], in));
	NEED(!tensor_group_broadcast(g, out[2], 1, NULL));
	NEED(!tensor_group_reduce(g, rank ? NULL : out[3], in, TENSOR_GROUP_SUM, 0, NULL));
	NEED(!tensor_group_all_to_all(g, out[4], in, NULL));
	if (!rank)
		NEED(!tensor_group_send(g, in, 1, NULL));
	else if (rank == 1)
		NEED(!tensor_group_recv(g, out[3], 0, NULL));
}

static tensor *private(void)
{
	return tensor_zeros(TENSOR_SHAPE(N), F32);
}

static tensor *shareable(void)
{
	return tensor_zeros(TENSOR_SHAPE(N), SHAREABLE(TENSOR_F32));
}

static void compare(tensor_group *g, void *mixed)
{
	int rank = tensor_group_rank(g);

	tensor_manual_seed(rank + 1);
	for (int i = 0; i < 3; i++)
		tensor_scope {
			tensor *plain[5], *other[5];
			tensor *numbers = tensor_randn(TENSOR_SHAPE(N), F32);

			results(g, private, numbers, plain);
			results(g, mixed && rank != i ? shareable : foreign, numbers, other);
			for (int k = 0; k < 5; k++)
				NEED(same(plain[k], other[k]));
		}
}

static void groups_copy_them(void **state)
{
	if (!has_exporter())
		skip();
	run_ranks(2, compare, NULL);
	run_ranks(4, compare, NULL);
}

static void groups_mix_them_with_buffers(void **state)
{
	if (!has_exporter())
		skip();
	run_ranks(2, compare, "mixed");
	run_ranks(4, compare, "mixed");
}

/* ---- channels ---- */

static void channels_refuse_every_view(void **state)
{
	struct pair p;
	int fds;

	if (!has_exporter())
		skip();
	p = pair_open(SOCK_STREAM);
	fds = count_fds();
	tensor_scope {
		tensor *t = ok(foreign()), *leaf = ok(tensor_detach(t));
		tensor *square = ok(tensor_view(t, TENSOR_SHAPE(512, 512)));
		tensor *views[] = {
			ok(tensor_narrow(t, 0, 1, 3)),	     ok(tensor_transpose(square, 0, 1)),
			ok(tensor_narrow(t, 0, 0, 0)),	     ok(tensor_select(square, 0, 7)),
			ok(tensor_view_dtype(t, TENSOR_I8)), leaf,
		};

		assert_done(tensor_set_requires_grad(leaf, true));
		for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
			assert_fails(tensor_send(p.out, views[i], 0), EOPNOTSUPP, "another driver");
			assert_fails(tensor_send(p.out, views[i], TENSOR_SEND_READONLY), EOPNOTSUPP,
				     "clone it");
		}
		ok(tensor_fill_(t, S(2)));
		assert_true(tensor_numel(pass(&p, ok(tensor_clone(views[1])))) == N);
	}
	tensor_cache_trim();
	pair_close(&p);
	assert_true(count_fds() <= fds);
}

/* ---- errors and lifetimes ---- */

static void memory_for_devices_alone_is_refused(void **state)
{
	int fds, fd;

	if (!has_exporter())
		skip();
	fds = count_fds();
	fd = export_of(EXPORTER_NO_MMAP);
	for (int i = 0; i < 100; i++)
		assert_fails(import(fd), EOPNOTSUPP, "devices alone");
	close(fd);
	fd = export_of(EXPORTER_MMAP_FAILS);
	for (int i = 0; i < 100; i++)
		assert_fails(import(fd), ENXIO, "cannot be mapped");
	close(fd);
	assert_int_equal(count_fds(), fds);
}

static void each_order_of_release_leaves_nothing(void **state)
{
	static const int orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					 { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	int fds;

	if (!has_exporter())
		skip();
	fds = count_fds();
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		int fd = export_of(EXPORTER_PLAIN);
		tensor *t[3];

		tensor_scope {
			t[0] = tensor_retain(ok(import(fd)));
			t[1] = tensor_retain(ok(import(fd)));
			t[2] = tensor_retain(ok(tensor_narrow(t[0], 0, 5, 7)));
			floats(t[0])[5] = (float)i + 1;
			assert_true(floats(t[1])[5] == (float)i + 1 &&
				    floats(t[2])[0] == (float)i + 1);
		}
		close(fd);
		for (int k = 0; k < 3; k++) {
			floats(t[orders[i][k]])[0] = 1;
			tensor_release(t[orders[i][k]]);
		}
		assert_int_equal(count_fds(), fds);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_copy_them),
		cmocka_unit_test(groups_mix_them_with_buffers),
		cmocka_unit_test(channels_refuse_every_view),
		cmocka_unit_test(memory_for_devices_alone_is_refused),
		cmocka_unit_test(each_order_of_release_leaves_nothing),
	};

	return cmocka_run_group_tests_name("group_dmabuf", tests, load, unload);
}
