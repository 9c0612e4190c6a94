// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * <tensor/buffer.h> on /dev/tensor: rights, dma-bufs, revocation, purgeable memory, events. Skipped
 * with another provider. Over 500 lines, because the roles of the peer belong to all tests.
 */
#include "buffer.h"

#include <linux/tensor.h>
#include <poll.h>
#include <sys/ioctl.h>

#define SECOND 1000000000ll

/* ---- roles ---- */

/* Keeps the buffers that it receives until it is killed. */
static int holder(tensor_channel *ch)
{
	tensor *t = tensor_recv(ch);

	if (!t || tensor_send(ch, t, 0) < 0)
		return 1;
	while (tensor_recv(ch))
		;
	return 0;
}

static int sealer(tensor_channel *ch)
{
	tensor *t = tensor_of_fd(inherited(ch));

	return t && tensor_buffer_seal(t) == 0 && !tensor_is_writable(t) ? 0 : 1;
}

static int revoker(tensor_channel *ch)
{
	tensor *t = tensor_of_fd(inherited(ch));

	return t && tensor_buffer_revoke(t) == 0 ? 0 : 1;
}

/* Has READ and WRITE rights only. */
static int limited(tensor_channel *ch)
{
	tensor *t = tensor_of_fd(inherited(ch));

	if (!t)
		return tensor_perror("limited"), 1;
	if (info_of(t).rights != (TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE))
		return 2;
	if (code_of(tensor_buffer_fd(t, TENSOR_BUFFER_READ)) != EACCES)
		return 3;
	if (code_of(tensor_buffer_dmabuf(t, TENSOR_BUFFER_READ)) != EACCES)
		return 4;
	if (code_of(tensor_buffer_seal(t)) != EACCES || !tensor_is_writable(t))
		return 5;
	if (code_of(tensor_buffer_revoke(t)) != EACCES)
		return 6;
	if (code_of(tensor_buffer_purgeable(t, true)) != EACCES)
		return 7;
	if (code_of(tensor_send(ch, t, 0)) != EACCES)
		return 8;
	floats(t)[0] = 10;
	return 0;
}

/* Has all rights, but no permission to open /dev/tensor. */
static int nobody(tensor_channel *ch)
{
	uint32_t handle;
	tensor *t;

	if (setuid(65534) < 0)
		return 10;
	t = tensor_of_fd(inherited(ch));
	if (!t || floats(t)[3] != 3)
		return 1;
	if (code_of(tensor_device_fd()) != EACCES || code_of(tensor_event_fd()) != EACCES)
		return 2;
	if (code_of(tensor_buffer_handle(t, &handle)) != EACCES)
		return 3;
	if (code_of(tensor_buffer_dmabuf(t, TENSOR_BUFFER_READ)) != EACCES)
		return 4;
	if (code_of(tensor_buffer_fd(t, TENSOR_BUFFER_READ)) != EACCES)
		return 5; /* its only descriptor permits more */
	if (close(tensor_buffer_fd(t, TENSOR_BUFFER_ALL)) < 0)
		return 6;
	if (tensor_buffer_sync(t, TENSOR_BUFFER_SYNC_READ, 0) < 0)
		return 7;
	if (info_of(t).rights != TENSOR_BUFFER_ALL || tensor_buffer_seal(t) < 0)
		return 8;
	if (tensor_is_writable(t))
		return 9;
	return code_of(tensor_buffer_fd(t, TENSOR_BUFFER_ALL)) != EPERM ? 11 : 0;
}

/* The memfd provider with the module loaded: a region has features that memfds lack. */
static int region(tensor_channel *ch)
{
	tensor *t = counted(TENSOR_INTS(4096)), *v = tensor_slice(t, 0, 16, 32, 1);
	tensor *small = tensor_zeros(TENSOR_INTS(4), F32);
	tensor_dma_region *r = tensor_dma_region_open(v, TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE);
	int fd, before = count_fds();

	if (on_device())
		return 1;
	if (!r)
		return tensor_perror("region"), 2;
	if (tensor_dma_region_offset(r) != 64)
		return 3;
	fd = tensor_dma_region_dmabuf(r, TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE);
	if (fd < 0)
		return tensor_perror("region"), 4;
	if (lseek(fd, 0, SEEK_END) != 16384)
		return 5;
	if (tensor_dma_region_sync(r, TENSOR_BUFFER_SYNC_WRITE, SECOND) < 0 ||
	    tensor_dma_region_sync(r, TENSOR_BUFFER_SYNC_WRITE | TENSOR_BUFFER_SYNC_END, 0) < 0)
		return tensor_perror("region"), 6;
	if (code_of(tensor_dma_region_dmabuf(r, TENSOR_BUFFER_ALL)) != EACCES)
		return 7;
	tensor_release(v);
	tensor_release(t); /* the region keeps its memory */
	close(fd);
	tensor_dma_region_close(r);
	if (count_fds() != before - 1) /* the memfd of the tensor was closed */
		return 8;
	if (tensor_dma_region_open(small, TENSOR_BUFFER_READ) ||
	    tensor_last_error()->code != EINVAL)
		return 9;
	t = counted(TENSOR_INTS(4096));
	if (tensor_buffer_seal(t) < 0)
		return 10;
	if (tensor_dma_region_open(t, TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE) ||
	    tensor_last_error()->code != EACCES)
		return 11;
	r = tensor_dma_region_open(t, TENSOR_BUFFER_READ);
	if (!r)
		return tensor_perror("region"), 12;
	if (code_of(tensor_dma_region_dmabuf(r, TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE)) !=
	    EACCES)
		return 13;
	if (IN_CHILD(_exit(code_of(tensor_dma_region_dmabuf(r, 1)))) != ESTALE)
		return 14;
	tensor_dma_region_close(r);
	return 0;
}

static const struct peer_role roles[] = {
	{ "holder", holder }, { "sealer", sealer }, { "revoker", revoker }, { "limited", limited },
	{ "nobody", nobody }, { "region", region }, { NULL, NULL },
};

/* ---- rights ---- */

static void rights_of_an_fd_limit_its_holder(void **state)
{
	tensor *t = counted(TENSOR_INTS(16));
	int fd = tensor_buffer_fd(t, TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE);

	assert_int_equal(info_of(t).rights, TENSOR_BUFFER_ALL);
	assert_int_equal(run_with("limited", fd), 0);
	assert_true(floats(t)[0] == 10);
	close(fd);
	fd = tensor_buffer_fd(t, TENSOR_BUFFER_ALL & ~TENSOR_BUFFER_READ);
	assert_null(tensor_of_fd(fd)); /* EXPORT alone: it cannot be mapped */
	close(fd);
	tensor_release(t);
}

static void process_without_the_device_has_the_rights_of_its_fd(void **state)
{
	tensor *t;
	int fd;

	if (getuid())
		skip();
	t = counted(TENSOR_INTS(16));
	fd = tensor_buffer_fd(t, TENSOR_BUFFER_ALL);
	/* SEAL fails while another process may write: the sender unmaps first. */
	tensor_release(t);
	assert_int_equal(run_with("nobody", fd), 0);
	close(fd);
}

static void handle_belongs_to_the_open_device(void **state)
{
	tensor *t = counted(TENSOR_INTS(16));
	struct tensor_info info = { .size = sizeof(info) };
	int dev = tensor_device_fd();

	assert_true(check_done_(dev));
	assert_int_equal(tensor_device_fd(), dev);
	assert_true(fcntl(dev, F_GETFD) & FD_CLOEXEC);
	assert_done(tensor_buffer_handle(t, &info.handle));
	assert_int_equal(ioctl(dev, TENSOR_IOC_INFO, &info), 0);
	assert_true(info.ino == info_of(t).ino);
	tensor_release(t);
	assert_int_equal(ioctl(dev, TENSOR_IOC_INFO, &info), -1);
	assert_int_equal(errno, ENOENT);
}

static void import_is_closed_as_often_as_it_was_made(void **state)
{
	tensor *t = counted(TENSOR_INTS(16)), *u[3];
	int fd = tensor_buffer_fd(t, TENSOR_BUFFER_READ);
	uint32_t before = info_of(t).handles;

	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 3; i++)
			u[i] = ok(tensor_of_fd(fd));
		assert_int_equal(info_of(t).handles, before + 1);
		for (int i = 0; i < 3; i++)
			tensor_release(u[i]);
		assert_int_equal(info_of(t).handles, before);
	}
	close(fd);
	tensor_release(t);
}

/* ---- dma-bufs ---- */

static void dmabuf_comes_back_as_the_same_buffer(void **state)
{
	tensor_scope {
		tensor *t = counted(TENSOR_INTS(8, 8)), *back;
		int before = count_fds(), fd = tensor_buffer_dmabuf(t, TENSOR_BUFFER_ALL);

		assert_true(check_done_(fd));
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_int_equal(info_of(t).dmabufs, 1);
		back = ok(tensor_of_fd(fd));
		assert_shape(back, 8, 8);
		assert_true(info_of(back).ino == info_of(t).ino);
		assert_int_equal(info_of(back).kind, TENSOR_BUFFER_KIND_ALLOC);
		floats(back)[9] = 99;
		assert_true(floats(t)[9] == 99);
		close(fd);
		assert_int_equal(info_of(t).dmabufs, 0);
		fd = tensor_buffer_dmabuf(t, TENSOR_BUFFER_READ);
		back = ok(tensor_from_buffer_fd(fd, TENSOR_F32, TENSOR_INTS(4), 32));
		assert_false(tensor_is_writable(back));
		assert_values(back, 0, 8, 99, 10, 11);
		close(fd);
		assert_int_equal(count_fds(), before);
	}
}

/* ---- seals and revocation ---- */

static int wait_for(uint64_t ino, unsigned events)
{
	struct pollfd p = { .fd = tensor_event_fd(), .events = POLLIN };
	struct tensor_buffer_event got[4];
	unsigned seen = 0;

	while ((seen & events) != events && poll(&p, 1, 20000) == 1) {
		int n = tensor_event_read(got, 1 + (int)(ino % 4));

		for (int i = 0; i < n; i++)
			if (got[i].ino == ino && got[i].dev)
				seen |= got[i].events;
		if (n < 0)
			break;
	}
	close(p.fd);
	return (seen & events) == events ? 0 : -1;
}

static void peer_with_the_right_seals(void **state)
{
	tensor *t = counted(TENSOR_INTS(16)), *mine;
	uint64_t ino = info_of(t).ino;
	int fd = tensor_buffer_fd(t, TENSOR_BUFFER_ALL), ro = tensor_buffer_fd(t, RO);

	assert_int_equal(run_with("sealer", fd), 1); /* this process may write */
	mine = ok(tensor_of_fd(ro));
	tensor_release(t);
	assert_int_equal(run_with("sealer", fd), 0);
	assert_int_equal(wait_for(ino, TENSOR_BUFFER_EVENT_SEAL), 0);
	assert_true(info_of(mine).seals & TENSOR_BUFFER_SEALED_WRITE);
	assert_true(floats(mine)[5] == 5);
	assert_done(tensor_buffer_seal(mine)); /* already sealed: succeeds */
	close(fd);
	close(ro);
	tensor_release(mine);
}

static void revoked_memory_is_sigbus(void **state)
{
	tensor *t = counted(TENSOR_INTS(1 << 20)), *u;
	int fd = tensor_buffer_fd(t, RO);
	struct peer p = peer_start("holder", SOCK_STREAM);
	uint32_t handle;

	assert_done(tensor_send(p.ch, t, 0));
	u = ok(tensor_recv(p.ch));
	assert_done(tensor_buffer_revoke(t));
	assert_done(tensor_buffer_revoke(t)); /* a second call succeeds as well */
	assert_int_equal(IN_CHILD(touch(t)), -SIGBUS);
	assert_int_equal(IN_CHILD(touch(u)), -SIGBUS);
	assert_true(info_of(t).state & TENSOR_BUFFER_STATE_REVOKED);
	assert_int_equal(info_of(t).pinned_bytes, 0);
#define REVOKED(call) assert_fails((call) < 0, EIDRM, "it was revoked")
	REVOKED(tensor_buffer_fd(t, RO));
	REVOKED(tensor_buffer_dmabuf(t, RO));
	REVOKED(tensor_buffer_seal(t));
	REVOKED(tensor_buffer_purgeable(t, true));
	REVOKED(tensor_buffer_sync(t, TENSOR_BUFFER_SYNC_READ, 0));
	assert_done(tensor_buffer_handle(t, &handle)); /* INFO and CLOSE accept the handle */
	assert_fails(tensor_of_fd(fd), EIDRM, "was revoked");
	assert_int_equal(peer_end(&p), 0);
	close(fd);
	tensor_release(u);
	tensor_release(t);
	/* The memory of a revoked buffer is not reused. */
	t = ok(tensor_empty(TENSOR_INTS(1 << 20), SHAREABLE(TENSOR_F32)));
	floats(t)[1 << 19] = 1;
	tensor_release(t);
}

static void peer_with_the_right_revokes(void **state)
{
	tensor *t = counted(TENSOR_INTS(16));
	int fd = tensor_buffer_fd(t, TENSOR_BUFFER_ALL), ro = tensor_buffer_fd(t, RW);

	assert_int_equal(run_with("revoker", ro), 1);
	assert_true(floats(t)[5] == 5);
	assert_int_equal(run_with("revoker", fd), 0);
	assert_int_equal(wait_for(info_of(t).ino, TENSOR_BUFFER_EVENT_REVOKE), 0);
	assert_int_equal(IN_CHILD(touch(t)), -SIGBUS);
	close(fd);
	close(ro);
	tensor_release(t);
}

/* ---- purgeable memory ---- */

static void purgeable_memory_cannot_be_shared(void **state)
{
	tensor *t = ok(tensor_full(TENSOR_INTS(1 << 20), TENSOR_SCALAR(4), SHAREABLE(TENSOR_F32))),
	       *u;
	struct pair p = pair_open(SOCK_STREAM);
	void *at = tensor_mutable_data(t);
	int fd;

	assert_int_equal(tensor_buffer_purgeable(t, true), 0);
	assert_fails(tensor_buffer_fd(t, RO) < 0, EBUSY, "it is purgeable");
	assert_fails(tensor_buffer_dmabuf(t, RO) < 0, EBUSY, "it is purgeable");
	assert_fails(tensor_send(p.out, t, 0) < 0, EBUSY, "purgeable");
	assert_fails(tensor_buffer_seal(t) < 0, EBUSY, "purgeable");
	assert_int_equal(tensor_buffer_purgeable(t, false), 0);
	assert_true(floats(t)[77] == 4 && tensor_data(t) == at);
	fd = tensor_buffer_fd(t, RO);
	assert_true(check_done_(fd));
	assert_fails(tensor_buffer_purgeable(t, true) < 0, EBUSY, "another holder");
	u = ok(tensor_of_fd(fd));
	close(fd);
	assert_fails(tensor_buffer_purgeable(t, true) < 0, EBUSY, "another holder");
	assert_fails(tensor_buffer_purgeable(u, true) < 0, EACCES, "allocated it");
	tensor_release(u);
	tensor_release(t);
	pair_close(&p);
}

static void purgeable_buffer_is_not_reused(void **state)
{
	tensor *t;

	tensor_cache_trim();
	t = ok(tensor_empty(TENSOR_INTS(1 << 20), SHAREABLE(TENSOR_F32)));
	assert_int_equal(tensor_buffer_purgeable(t, true), 0);
	tensor_release(t);
	t = ok(tensor_empty(TENSOR_INTS(1 << 20), SHAREABLE(TENSOR_F32)));
	assert_false(info_of(t).state & TENSOR_BUFFER_STATE_PURGEABLE);
	floats(t)[0] = 1;
	tensor_release(t);
}

/* Drops the kernel's caches, which runs the shrinker. */
static bool make_memory_short(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, "2", 1) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

static void purged_memory_comes_back_zero(void **state)
{
	tensor *t = ok(tensor_full(TENSOR_INTS(1 << 20), TENSOR_SCALAR(4), SHAREABLE(TENSOR_F32)));
	uint64_t ino = info_of(t).ino;
	bool taken = false;

	assert_int_equal(tensor_buffer_purgeable(t, true), 0);
	for (int i = 0; i < 20 && !taken && make_memory_short(); i++)
		taken = info_of(t).state & TENSOR_BUFFER_STATE_PURGED;
	if (!taken) {
		tensor_release(t);
		skip();
	}
	assert_int_equal(wait_for(ino, TENSOR_BUFFER_EVENT_PURGE), 0);
	assert_int_equal(info_of(t).pinned_bytes, 0);
	assert_int_equal(IN_CHILD(touch(t)), -SIGBUS);
	assert_int_equal(tensor_buffer_purgeable(t, false), 1);
	assert_int_equal(tensor_buffer_purgeable(t, false), 0);
	for (int i = 0; i < 1 << 20; i += 512)
		assert_true(floats(t)[i] == 0);
	tensor_release(t);
}

/* ---- events, sync ---- */

static void death_of_a_peer_is_an_event(void **state)
{
	tensor *t = counted(TENSOR_INTS(16));
	struct peer p = peer_start("holder", SOCK_STREAM);
	struct tensor_buffer_event e;

	assert_done(tensor_send(p.ch, t, 0));
	tensor_release(ok(tensor_recv(p.ch)));
	while (tensor_event_read(&e, 1) > 0)
		;
	assert_int_equal(tensor_event_read(&e, 1), 0); /* does not wait */
	assert_int_equal(kill(p.pid, SIGKILL), 0);
	assert_int_equal(wait_for(info_of(t).ino, TENSOR_BUFFER_EVENT_GONE), 0);
	assert_int_equal(peer_end(&p), -SIGKILL);
	assert_true(floats(t)[5] == 5);
	tensor_release(t);
}

static void sync_counts_writes(void **state)
{
	const unsigned r = TENSOR_BUFFER_SYNC_READ, w = TENSOR_BUFFER_SYNC_WRITE;
	const unsigned end = TENSOR_BUFFER_SYNC_END;
	tensor *t = counted(TENSOR_INTS(16)), *u;
	uint64_t generation = info_of(t).generation;
	int fd = tensor_buffer_fd(t, RO);

	assert_done(tensor_buffer_sync(t, w, SECOND));
	assert_done(tensor_buffer_sync(t, r | w | end, 0));
	assert_true(info_of(t).generation == generation + 1);
	assert_done(tensor_buffer_sync(t, r, -1));
	assert_done(tensor_buffer_sync(t, r, INT64_MAX));
	assert_done(tensor_buffer_sync(t, r, 0));
	assert_done(tensor_buffer_sync(t, r | end, INT64_MIN));
	assert_true(info_of(t).generation == generation + 1);
	assert_fails(tensor_buffer_sync(t, 0, 0) < 0, EINVAL, "flags");
	assert_fails(tensor_buffer_sync(t, end, 0) < 0, EINVAL, "flags");
	assert_fails(tensor_buffer_sync(t, 8 | r, 0) < 0, EINVAL, "flags");
	u = ok(tensor_of_fd(fd));
	assert_done(tensor_buffer_sync(u, r, 0));
	assert_fails(tensor_buffer_sync(u, w, 0) < 0, EACCES, "right");
	assert_done(tensor_buffer_seal(t));
	assert_fails(tensor_buffer_sync(t, w, 0) < 0, EPERM, "sealed");
	close(fd);
	tensor_release(u);
	tensor_release(t);
}

/* ---- forks, regions ---- */

static void forked_child_has_the_mapping_and_no_handle(void **state)
{
	tensor *t = counted(TENSOR_INTS(16));
	uint32_t handle;

	assert_int_equal(
		IN_CHILD({
			struct tensor_buffer_info info = { .size = sizeof(info) };
			tensor *own;

			floats(t)[1] = 11;
			if (code_of(tensor_buffer_fd(t, RO)) != ESTALE ||
			    code_of(tensor_buffer_dmabuf(t, RO)) != ESTALE ||
			    code_of(tensor_buffer_handle(t, &handle)) != ESTALE)
				_exit(1);
			if (code_of(tensor_buffer_seal(t)) != ESTALE ||
			    code_of(tensor_buffer_revoke(t)) != ESTALE ||
			    code_of(tensor_buffer_purgeable(t, true)) != ESTALE ||
			    code_of(tensor_buffer_sync(t, TENSOR_BUFFER_SYNC_READ, 0)) != ESTALE ||
			    code_of(tensor_buffer_info(t, &info)) != ESTALE)
				_exit(2);
			if (!strstr(tensor_last_error()->text, "the parent's before fork()"))
				_exit(3);
			/*
			 * The child opens its own device, where the same number may be another
			 * handle.
			 */
			own = tensor_empty(TENSOR_INTS(4), SHAREABLE(TENSOR_F32));
			if (!own || code_of(tensor_buffer_revoke(t)) != ESTALE ||
			    floats(t)[1] != 11)
				_exit(4);
			if (tensor_buffer_revoke(own) < 0)
				_exit(5);
		}),
		0);
	assert_true(floats(t)[1] == 11);
	assert_done(tensor_buffer_handle(t, &handle));
	assert_null(tensor_dma_region_open(t, TENSOR_BUFFER_READ));
	assert_contains(tensor_last_error()->text, "tensor_buffer_dmabuf() makes");
	tensor_release(t);
}

static void region_pins_memory_of_the_memfd_provider(void **state)
{
	struct peer p;

	setenv("TENSOR_PROVIDER", "memfd", 1);
	p = peer_start("region", SOCK_STREAM);
	setenv("TENSOR_PROVIDER", "device", 1);
	assert_int_equal(peer_end(&p), 0);
}

static void skipped_without_the_device(void **state)
{
	skip();
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(rights_of_an_fd_limit_its_holder),
		cmocka_unit_test(process_without_the_device_has_the_rights_of_its_fd),
		cmocka_unit_test(handle_belongs_to_the_open_device),
		cmocka_unit_test(import_is_closed_as_often_as_it_was_made),
		cmocka_unit_test(dmabuf_comes_back_as_the_same_buffer),
		cmocka_unit_test(peer_with_the_right_seals),
		cmocka_unit_test(revoked_memory_is_sigbus),
		cmocka_unit_test(peer_with_the_right_revokes),
		cmocka_unit_test(purgeable_memory_cannot_be_shared),
		cmocka_unit_test(purgeable_buffer_is_not_reused),
		cmocka_unit_test(purged_memory_comes_back_zero),
		cmocka_unit_test(death_of_a_peer_is_an_event),
		cmocka_unit_test(sync_counts_writes),
		cmocka_unit_test(forked_child_has_the_mapping_and_no_handle),
		cmocka_unit_test(region_pins_memory_of_the_memfd_provider),
	};

	peer_main(argc, argv, roles);
	for (size_t i = 0; i < ARRAY_SIZE(tests) && !on_device(); i++)
		tests[i].test_func = skipped_without_the_device;
	return cmocka_run_group_tests_name("buffer_device", tests, NULL, NULL);
}
