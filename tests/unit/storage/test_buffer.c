// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* <tensor/buffer.h> with any provider: descriptors and seals. */
#include "buffer.h"

#include <sys/stat.h>

/* ---- roles ---- */

/* Checks 0, 1, 2, ... and writes 50 to element 5. */
static int writer(tensor_channel *ch)
{
	tensor *t = tensor_of_fd(inherited(ch));

	if (!t)
		return tensor_perror("writer"), 1;
	if (!tensor_is_writable(t) || floats(t)[4] != 4)
		return 2;
	floats(t)[5] = 50;
	tensor_release(t);
	return 0;
}

/* Tries all ways to make the memory writable. */
static int reader(tensor_channel *ch)
{
	int fd = inherited(ch), again;
	tensor *t = tensor_of_fd(fd);
	char path[32];
	bool sealed;

	if (!t)
		return tensor_perror("reader"), 1;
	sealed = info_of(t).seals & TENSOR_BUFFER_SEALED_WRITE;
	if (tensor_is_writable(t) || floats(t)[4] != 4)
		return 2;
	if (mprotect((void *)tensor_data(t), 4096, PROT_READ | PROT_WRITE) == 0)
		return 3;
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		return 4;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	if (again >= 0 &&
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) != MAP_FAILED)
		return 5;
	/* a memfd has no rights of its own: the seal denies writing, with EPERM */
	if (code_of(tensor_buffer_fd(t, RW)) != (sealed && !on_device() ? EPERM : EACCES))
		return 6;
	if (tensor_add_(t, t) || tensor_last_error()->code != EACCES)
		return 7;
	tensor_release(t);
	return 0;
}

/* The same without permission to open /dev/tensor. */
static int reader_nobody(tensor_channel *ch)
{
	return getuid() == 0 && setuid(65534) < 0 ? 20 : reader(ch);
}

static const struct peer_role roles[] = { { "writer", writer },
					  { "reader", reader },
					  { "reader_nobody", reader_nobody },
					  { NULL, NULL } };

/* ---- descriptors ---- */

static void fd_carries_the_tensor_to_a_process(void **state)
{
	tensor *t = counted(TENSOR_INTS(3, 4));
	int before = count_fds(), fd = tensor_buffer_fd(t, RW);

	assert_true(check_done_(fd));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(run_with("writer", fd), 0);
	assert_true(floats(t)[5] == 50);
	close(fd);
	assert_int_equal(count_fds(), before);
	tensor_release(t);
}

static void fd_has_sizes_strides_and_offset(void **state)
{
	tensor_scope {
		tensor *t = counted(TENSOR_INTS(6, 8)), *back;
		tensor *v = ok(tensor_slice(tensor_t(t), 0, 1, 8, 2));
		int fd = tensor_buffer_fd(v, RW);

		back = ok(tensor_of_fd(fd));
		close(fd);
		assert_int_equal(tensor_dtype(back), TENSOR_F32);
		assert_shape(back, 4, 6);
		assert_memory_equal(tensor_strides(back), tensor_strides(v), 16);
		assert_int_equal(tensor_storage_offset(back), 1);
		floats(back)[8] = 77;
		assert_true(floats(t)[9] == 77);
		assert_int_equal(info_of(back).ino, info_of(t).ino);
	}
}

/* A process that sends on a received buffer does not overwrite its descriptor, nor its label. */
static void descriptor_is_kept_when_a_buffer_is_sent_on(void **state)
{
	tensor_scope {
		tensor *t = counted(TENSOR_INTS(6, 8)), *bytes;
		int fd = tensor_buffer_fd(t, RW), again;

		bytes = ok(tensor_from_buffer_fd(fd, TENSOR_U8, TENSOR_NO_INTS, 0));
		again = tensor_buffer_fd(bytes, RW);
		assert_shape(ok(tensor_of_fd(again)), 6, 8);
		close(fd);
		close(again);
	}
}

static void read_only_fd_stays_read_only(void **state)
{
	tensor *t = counted(TENSOR_INTS(2048));
	int fd = tensor_buffer_fd(t, RO);

	assert_true(check_done_(fd));
	assert_int_equal(run_with("reader", fd), 0);
	if (getuid() == 0)
		assert_int_equal(run_with("reader_nobody", fd), 0);
	floats(t)[0] = 9; /* the process that made the buffer may still write */
	close(fd);
	tensor_release(t);
}

static void each_set_of_rights_has_a_mapping(void **state)
{
	tensor *t = counted(TENSOR_INTS(16)), *a, *b, *again;
	int rw = tensor_buffer_fd(t, RW), ro;

	a = ok(tensor_of_fd(rw));
	ro = tensor_buffer_fd(t, RO);
	b = ok(tensor_of_fd(ro));
	again = ok(tensor_of_fd(ro));
	assert_true(tensor_is_writable(a));
	assert_false(tensor_is_writable(b));
	assert_ptr_equal(tensor_data(b), tensor_data(again));
	floats(a)[3] = 33;
	assert_true(floats(b)[3] == 33);
	tensor_release(a);
	assert_true(floats(b)[3] == 33);
	tensor_release(b);
	assert_true(floats(again)[3] == 33);
	tensor_release(again);
	tensor_release(t);
	close(rw);
	close(ro);
}

static void geometry_can_be_given(void **state)
{
	tensor_scope {
		tensor *t = counted(TENSOR_INTS(1024)), *u;
		int fd = tensor_buffer_fd(t, RW);
		int64_t bytes = (int64_t)info_of(t).bytes;

		u = ok(tensor_from_buffer_fd(fd, TENSOR_U8, TENSOR_NO_INTS, 0));
		assert_shape(u, bytes);
		u = ok(tensor_from_buffer_fd(fd, TENSOR_F64, TENSOR_NO_INTS, 8));
		assert_shape(u, bytes / 8 - 1);
		u = ok(tensor_from_buffer_fd(fd, TENSOR_F32, TENSOR_INTS(2, 3), 40));
		assert_values(u, 0, 10, 11, 12, 13, 14, 15);
		u = ok(tensor_from_buffer_fd(fd, TENSOR_F32, TENSOR_SCALAR_SHAPE, 12));
		assert_values(u, 0, 3);
		u = ok(tensor_from_buffer_fd(fd, TENSOR_F32, TENSOR_INTS(0, 5), bytes));
		assert_int_equal(tensor_numel(u), 0);
#define REFUSED(words, ...) assert_fails(tensor_from_buffer_fd(fd, __VA_ARGS__), EINVAL, words)
		REFUSED("does not fit", TENSOR_F32, TENSOR_INTS(2), 2);
		REFUSED("does not fit", TENSOR_F32, TENSOR_INTS(2), bytes - 4);
		REFUSED("does not fit", TENSOR_F32, TENSOR_INTS(2), bytes + 4);
		REFUSED("does not fit", TENSOR_F32, TENSOR_INTS(2), -4);
		REFUSED("does not fit", TENSOR_F32, TENSOR_INTS(2), INT64_MIN);
		REFUSED("does not fit", TENSOR_F32, TENSOR_INTS(2), INT64_MAX);
		REFUSED("does not fit", TENSOR_U8, TENSOR_INTS(bytes + 1), 0);
		REFUSED("does not fit", TENSOR_U8, TENSOR_INTS(INT64_MAX, 2), 0);
		REFUSED("does not fit", TENSOR_C128, TENSOR_INTS(1ll << 32, 1ll << 32), 0);
		REFUSED("negative", TENSOR_U8, TENSOR_INTS(-1), 0);
		REFUSED("unknown", TENSOR_DTYPE_COUNT, TENSOR_INTS(1), 0);
		REFUSED("need a dtype", TENSOR_DTYPE_NONE, TENSOR_INTS(1), 0);
		REFUSED("need a dtype", TENSOR_DTYPE_NONE, TENSOR_NO_INTS, 4);
		close(fd);
	}
}

static int memfd(size_t bytes, int seals)
{
	int fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void foreign_memfd_is_accepted_if_sealed_against_shrinking(void **state)
{
	int fd = memfd(8192, F_SEAL_SHRINK | F_SEAL_GROW), before = count_fds();
	float one = 1;
	tensor *t;

	assert_int_equal(pwrite(fd, &one, 4, 8188), 4);
	t = ok(tensor_from_buffer_fd(fd, TENSOR_F32, TENSOR_INTS(2, 1024), 0));
	assert_true(floats(t)[2047] == 1);
	floats(t)[0] = 3;
	assert_int_equal(pread(fd, &one, 4, 0), 4);
	assert_true(one == 3);
	assert_fails(tensor_of_fd(fd), EINVAL, "no descriptor");
	assert_true(tensor_set_label(t, "label") < 0); /* the buffer has no page for a descriptor */
	assert_true(floats(t)[2047] == 1);
	tensor_release(t);
	close(fd);
	fd = memfd(8192, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	t = ok(tensor_from_buffer_fd(fd, TENSOR_U8, TENSOR_NO_INTS, 0));
	assert_false(tensor_is_writable(t));
	tensor_release(t);
	close(fd);
	fd = memfd(8192, F_SEAL_GROW);
	assert_fails(tensor_from_buffer_fd(fd, TENSOR_U8, TENSOR_NO_INTS, 0), EBADMSG, "shrinking");
	close(fd);
	fd = memfd(100, F_SEAL_SHRINK | F_SEAL_GROW);
	assert_fails(tensor_from_buffer_fd(fd, TENSOR_U8, TENSOR_NO_INTS, 0), EBADMSG,
		     "whole pages");
	close(fd);
	fd = memfd(0, F_SEAL_SHRINK | F_SEAL_GROW);
	assert_fails(tensor_from_buffer_fd(fd, TENSOR_U8, TENSOR_NO_INTS, 0), EBADMSG,
		     "whole pages");
	close(fd);
	assert_int_equal(count_fds(), before - 1);
}

/* A memfd of 64 GiB that has no pages. */
static void sparse_memfd_allocates_only_touched_pages(void **state)
{
	int fd = memfd(1ull << 36, F_SEAL_SHRINK | F_SEAL_GROW);
	tensor *t = ok(tensor_from_buffer_fd(fd, TENSOR_U8, TENSOR_NO_INTS, 0));
	struct stat st;

	assert_true(tensor_numel(t) == 1ll << 36);
	((char *)tensor_mutable_data(t))[1ll << 35] = 1;
	assert_int_equal(fstat(fd, &st), 0);
	assert_in_range(st.st_blocks, 8, 4096);
	tensor_release(t);
	close(fd);
}

static void other_files_are_refused(void **state)
{
	int pipes[2], fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), before;

	assert_int_equal(pipe(pipes), 0);
	before = count_fds();
	assert_fails(tensor_of_fd(-1), EBADF, "fd -1");
	assert_fails(tensor_of_fd(1000), EBADF, "fd 1000");
	assert_fails(tensor_of_fd(pipes[0]), EBADMSG, "no buffer");
	assert_fails(tensor_of_fd(fd), EBADMSG, "no buffer");
	assert_int_equal(count_fds(), before);
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
}

/* The descriptor of a memfd is in memory that all its holders can write. */
static void invalid_descriptor_is_refused(void **state)
{
	tensor *t = counted(TENSOR_INTS(4, 4));
	int64_t bytes = (int64_t)info_of(t).bytes, sizes[] = { INT64_MAX, 1ll << 40, -1, 5000 };
	int fd = tensor_buffer_fd(t, RW);
	uint32_t number;

	if (on_device()) {
		close(fd);
		tensor_release(t);
		skip(); /* the kernel keeps the descriptor and has checked it */
	}
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pwrite(fd, &sizes[i], 8, bytes + 16), 8);
		assert_fails(tensor_of_fd(fd), EINVAL, "does not fit");
	}
	number = 17;
	assert_int_equal(pwrite(fd, &number, 4, bytes + 12), 4);
	assert_fails(tensor_of_fd(fd), EINVAL, "a dtype and sizes are needed");
	number = 4000000000u;
	assert_int_equal(pwrite(fd, &number, 4, bytes + 8), 4);
	assert_fails(tensor_of_fd(fd), EINVAL, "a dtype and sizes are needed");
	close(fd);
	tensor_release(t);
}

static void buffer_with_an_fd_is_not_reused(void **state)
{
	tensor *t = ok(tensor_empty(TENSOR_INTS(1 << 20), SHAREABLE(TENSOR_F32)));
	struct tensor_cache_stats before, after;
	int fd;

	tensor_cache_trim();
	fd = tensor_buffer_fd(t, RW);
	tensor_cache_stats(&before);
	tensor_release(t);
	t = ok(tensor_empty(TENSOR_INTS(1 << 20), SHAREABLE(TENSOR_F32)));
	tensor_cache_stats(&after);
	assert_int_equal(after.buffers, before.buffers + 1);
	tensor_release(t);
	close(fd);
}

/* ---- seals ---- */

static void seal_ends_all_writing(void **state)
{
	tensor_scope {
		tensor *t = counted(TENSOR_INTS(64, 64)), *v = ok(tensor_select(t, 0, 1)), *back;
		void *p = tensor_mutable_data(t);
		int fd = tensor_buffer_fd(t, RW);

		assert_done(tensor_buffer_seal(v));
		assert_ptr_equal(tensor_data(t), p);
		assert_true(floats(t)[4095] == 4095);
		assert_false(tensor_is_writable(t));
		assert_false(tensor_is_writable(v));
		assert_fails(tensor_add_(t, t), EACCES, "read-only");
		assert_int_equal(info_of(t).seals & TENSOR_BUFFER_SEALED_WRITE,
				 TENSOR_BUFFER_SEALED_WRITE);
		assert_int_equal(IN_CHILD(touch(t)), -SIGSEGV);
		assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
			    MAP_FAILED);
		assert_fails(tensor_buffer_fd(t, RW) < 0, EPERM, "tensor_buffer_fd");
		assert_done(tensor_buffer_seal(t)); /* a second call succeeds as well */
		back = ok(tensor_of_fd(fd));
		assert_false(tensor_is_writable(back));
		assert_int_equal(tensor_numel(back), 4096);
		close(fd);
		fd = tensor_buffer_fd(t, RO);
		assert_int_equal(run_with("reader", fd), 0);
		close(fd);
	}
}

static void seal_is_refused_while_another_may_write(void **state)
{
	tensor *t = counted(TENSOR_INTS(16)), *other;
	int fd = tensor_buffer_fd(t, RW);

	other = ok(tensor_of_fd(fd));
	assert_fails(tensor_buffer_seal(t) < 0, EBUSY, "could still be written");
	assert_true(tensor_is_writable(t));
	floats(t)[3] = 33; /* the copy is writable */
	floats(other)[4] = 44;
	assert_true(floats(other)[3] == 33 && floats(t)[4] == 44);
	tensor_release(other);
	assert_done(tensor_buffer_seal(t));
	assert_true(floats(t)[3] == 33 && floats(t)[4] == 44);
	close(fd);
	tensor_release(t);
}

/*
 * A holder of a memfd can deny new writable mappings; a seal that fails then leaves a read-only
 * mapping.
 */
static void failed_seal_leaves_the_tensor_read_only(void **state)
{
	tensor *t = counted(TENSOR_INTS(1024));
	int fd = tensor_buffer_fd(t, RW);
	void *theirs;

	if (on_device() || fcntl(fd, F_GET_SEALS) < 0)
		goto end;
	theirs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(theirs != MAP_FAILED);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	assert_fails(tensor_buffer_seal(t) < 0, EBUSY, "could still be written");
	assert_false(tensor_is_writable(t));
	assert_fails(tensor_add_(t, t), EACCES, "read-only");
	assert_true(floats(t)[1023] == 1023);
	assert_int_equal(munmap(theirs, 4096), 0);
	assert_done(tensor_buffer_seal(t));
end:
	close(fd);
	tensor_release(t);
}

/*
 * Two storages of one import: a seal through one would make the mapping of the other one read-only.
 */
static void seal_is_refused_while_another_storage_is_on_the_import(void **state)
{
	tensor *t = counted(TENSOR_INTS(16)), *a, *b;
	int fd = tensor_buffer_fd(t, RW | (on_device() ? TENSOR_BUFFER_SEAL : 0));

	a = ok(tensor_of_fd(fd));
	b = ok(tensor_of_fd(fd));
	assert_ptr_equal(tensor_data(a), tensor_data(b));
	tensor_release(t);
	assert_fails(tensor_buffer_seal(a) < 0, EBUSY, "another tensor of this process");
	floats(b)[0] = 5;
	tensor_release(a);
	assert_done(tensor_buffer_seal(b));
	assert_false(tensor_is_writable(b));
	assert_true(floats(b)[0] == 5);
	tensor_release(b);
	close(fd);
}

static void sealed_buffer_is_not_reused(void **state)
{
	tensor *t = ok(tensor_empty(TENSOR_INTS(1 << 20), SHAREABLE(TENSOR_F32)));

	assert_done(tensor_buffer_seal(t));
	tensor_release(t);
	t = ok(tensor_empty(TENSOR_INTS(1 << 20), SHAREABLE(TENSOR_F32)));
	assert_true(tensor_is_writable(t));
	floats(t)[0] = 1;
	tensor_release(t);
}

/* ---- properties ---- */

static void info_names_the_buffer(void **state)
{
	struct {
		struct tensor_buffer_info info;
		uint64_t more[4];
	} larger;
	struct tensor_buffer_info info;
	tensor *t = counted(TENSOR_INTS(1000));
	int fd = tensor_buffer_fd(t, RO);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	info = info_of(t);
	assert_true(info.dev == st.st_dev && info.ino == st.st_ino);
	assert_in_range(info.bytes, 4000, 8192);
	assert_int_equal(info.kind,
			 on_device() ? TENSOR_BUFFER_KIND_ALLOC : TENSOR_BUFFER_KIND_MEMFD);
	assert_int_equal(info.rights & (TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE),
			 TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE);
	assert_int_equal(info.seals, 0);
	assert_true(info.state & TENSOR_BUFFER_STATE_META);
	if (on_device())
		assert_true(info.pinned_bytes == info.bytes && info.files == 1);
	memset(&larger, 0xff, sizeof(larger));
	larger.info.size = sizeof(larger);
	assert_done(tensor_buffer_info(t, &larger.info));
	assert_int_equal(larger.info.size, sizeof(larger));
	for (int i = 0; i < 4; i++)
		assert_true(larger.more[i] == 0);
	info.size = 64;
	assert_fails(tensor_buffer_info(t, &info), EINVAL, "size");
	info.size = 0;
	assert_fails(tensor_buffer_info(t, &info), EINVAL, "size");
	assert_fails(tensor_buffer_info(t, NULL), EINVAL, "size");
	close(fd);
	tensor_release(t);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fd_carries_the_tensor_to_a_process),
		cmocka_unit_test(fd_has_sizes_strides_and_offset),
		cmocka_unit_test(descriptor_is_kept_when_a_buffer_is_sent_on),
		cmocka_unit_test(read_only_fd_stays_read_only),
		cmocka_unit_test(each_set_of_rights_has_a_mapping),
		cmocka_unit_test(geometry_can_be_given),
		cmocka_unit_test(foreign_memfd_is_accepted_if_sealed_against_shrinking),
		cmocka_unit_test(sparse_memfd_allocates_only_touched_pages),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(invalid_descriptor_is_refused),
		cmocka_unit_test(buffer_with_an_fd_is_not_reused),
		cmocka_unit_test(seal_ends_all_writing),
		cmocka_unit_test(seal_is_refused_while_another_may_write),
		cmocka_unit_test(failed_seal_leaves_the_tensor_read_only),
		cmocka_unit_test(seal_is_refused_while_another_storage_is_on_the_import),
		cmocka_unit_test(sealed_buffer_is_not_reused),
		cmocka_unit_test(info_names_the_buffer),
	};

	peer_main(argc, argv, roles);
	return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
