// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* <tensor/buffer.h> with any provider: errors, limits and threads. */
#include "buffer.h"

#include <pthread.h>
#include <sys/resource.h>

/* ---- errors ---- */

#define EACH(t, code, words)                                                                      \
	do {                                                                                      \
		struct tensor_buffer_info info_ = { .size = sizeof(info_) };                      \
		uint32_t handle_;                                                                 \
		assert_fails(tensor_buffer_fd(t, RW) < 0, code, words);                           \
		assert_fails(tensor_buffer_dmabuf(t, RW) < 0, code, words);                       \
		assert_fails(tensor_buffer_handle(t, &handle_) < 0, code, words);                 \
		assert_fails(tensor_buffer_info(t, &info_) < 0, code, words);                     \
		assert_fails(tensor_buffer_seal(t) < 0, code, words);                             \
		assert_fails(tensor_buffer_revoke(t) < 0, code, words);                           \
		assert_fails(tensor_buffer_purgeable(t, true) < 0, code, words);                  \
		assert_fails(tensor_buffer_sync(t, TENSOR_BUFFER_SYNC_READ, 0) < 0, code, words); \
	} while (0)

static void tensors_without_a_buffer_are_refused(void **state)
{
	tensor_scope {
		tensor *small = ok(tensor_zeros(TENSOR_INTS(2, 3), F32)), *view;
		tensor *sparse = ok(tensor_to_sparse(tensor_ones(TENSOR_INTS(2, 2), F32)));

		view = ok(tensor_select(small, 0, 1));
		EACH(small, EINVAL,
		     "the tensor [2, 3] has no buffer to itself: tensor_share_memory()");
		EACH(view, EINVAL, "the tensor [3] has no buffer to itself");
		EACH(sparse, ENOTSUP, "strided");
		EACH(NULL, EINVAL, "NULL");
		assert_null(tensor_dma_region_open(small, TENSOR_BUFFER_READ));
		assert_int_equal(tensor_last_error()->code, EINVAL);
		assert_null(tensor_dma_region_open(sparse, TENSOR_BUFFER_READ));
		assert_int_equal(tensor_last_error()->code, ENOTSUP);
		assert_null(tensor_dma_region_open(NULL, TENSOR_BUFFER_READ));
	}
}

static void rights_are_checked(void **state)
{
	tensor *t = counted(TENSOR_INTS(4));

	assert_fails(tensor_buffer_fd(t, 0) < 0, EINVAL, "0x0");
	assert_fails(tensor_buffer_fd(t, 1u << 6) < 0, EINVAL, "0x40");
	assert_fails(tensor_buffer_fd(t, ~0u) < 0, EINVAL, "0xffffffff");
	assert_fails(tensor_buffer_dmabuf(t, on_device() ? 0 : 1u << 31) < 0, EINVAL, "rights");
	tensor_release(t);
}

static void memfd_provider_refuses_device_features(void **state)
{
	static const char advice[] = "load the tensor module, or set TENSOR_PROVIDER=device";
	tensor *t;
	uint32_t handle;

	if (on_device())
		skip();
	t = counted(TENSOR_INTS(4));
#define NOT_HERE(call) assert_fails((call) < 0, ENOTSUP, advice)
	NOT_HERE(tensor_buffer_dmabuf(t, TENSOR_BUFFER_READ));
	assert_contains(tensor_last_error()->text,
			"tensor_buffer_dmabuf: storage of the memfd provider has no dma-buf");
	NOT_HERE(tensor_buffer_handle(t, &handle));
	NOT_HERE(tensor_buffer_revoke(t));
	NOT_HERE(tensor_buffer_purgeable(t, true));
	NOT_HERE(tensor_buffer_purgeable(t, false));
	NOT_HERE(tensor_buffer_sync(t, TENSOR_BUFFER_SYNC_READ, -1));
	for (unsigned right = TENSOR_BUFFER_ALL / 2 + 1; right; right >>= 1) {
		int fd;

		if (!(right & RW)) {
			NOT_HERE(tensor_buffer_fd(t, TENSOR_BUFFER_READ | right));
			continue;
		}
		fd = tensor_buffer_fd(t, TENSOR_BUFFER_READ | right);
		assert_true(check_done_(fd));
		close(fd);
	}
	NOT_HERE(tensor_buffer_fd(t, TENSOR_BUFFER_WRITE));
	tensor_release(t);
}

static void event_and_region_calls_fail_without_the_device(void **state)
{
	struct tensor_buffer_event e;
	tensor *t = counted(TENSOR_INTS(4));

	assert_fails(tensor_event_read(NULL, 1) < 0, EINVAL, "room");
	assert_fails(tensor_event_read(&e, 0) < 0, EINVAL, "room");
	tensor_dma_region_close(NULL);
	assert_fails(tensor_dma_region_dmabuf(NULL, 1) < 0, EINVAL, "NULL");
	assert_fails(tensor_dma_region_offset(NULL) < 0, EINVAL, "NULL");
	assert_fails(tensor_dma_region_sync(NULL, 1, 0) < 0, EINVAL, "NULL");
	if (access("/dev/tensor", F_OK) < 0) {
		assert_fails(tensor_device_fd() < 0, ENOTSUP, "load the tensor module");
		assert_fails(tensor_event_fd() < 0, ENOTSUP, "load the tensor module");
		assert_fails(tensor_event_read(&e, 1) < 0, ENOTSUP, "load the tensor module");
		assert_null(tensor_dma_region_open(t, TENSOR_BUFFER_READ));
		assert_int_equal(tensor_last_error()->code, ENOTSUP);
	}
	tensor_release(t);
}

/* ---- limits and threads ---- */

static void no_descriptor_is_left_behind(void **state)
{
	struct rlimit before, few;
	int at_first, fds[300], n = 0;
	tensor *t = counted(TENSOR_INTS(16));

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	tensor_cache_trim(); /* a cached memfd uses a descriptor */
	at_first = count_fds();
	for (int i = 0; i < 400; i++) {
		int fd = tensor_buffer_fd(t, i % 2 ? RW : RW & ~TENSOR_BUFFER_EXPORT);
		tensor *u = ok(tensor_of_fd(fd)), *s = counted(TENSOR_INTS(3));

		info_of(u);
		assert_done(tensor_buffer_seal(s));
		assert_true(tensor_buffer_seal(u) < 0);
		tensor_release(s);
		tensor_release(u);
		close(fd);
	}
	tensor_cache_trim();
	assert_int_equal(count_fds(), at_first);
	while (n < 300 && (fds[n] = tensor_buffer_fd(t, RW)) >= 0)
		n++;
	assert_in_range(n, 100, 256);
	assert_int_equal(tensor_last_error()->code, EMFILE);
	assert_contains(tensor_last_error()->text, "no file descriptor");
	while (n)
		close(fds[--n]);
	assert_int_equal(count_fds(), at_first);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	tensor_release(t);
}

static void *use_repeatedly(void *arg)
{
	tensor *t = arg;

	for (int i = 0; i < 200; i++) {
		struct tensor_buffer_info info = { .size = sizeof(info) };
		int fd = tensor_buffer_fd(t, RW);
		tensor *u = tensor_of_fd(fd),
		       *s = tensor_zeros(TENSOR_INTS(2), SHAREABLE(TENSOR_F32));

		if (!u || tensor_buffer_info(u, &info) < 0 || floats(u)[7] != 7 ||
		    tensor_buffer_seal(s) < 0 || (tensor_buffer_seal(t) != -EBUSY))
			return tensor_perror("hammer"), arg;
		tensor_release(s);
		tensor_release(u);
		close(fd);
	}
	return NULL;
}

static void threads_share_a_buffer(void **state)
{
	tensor *t = counted(TENSOR_INTS(16)), *held;
	int fd = tensor_buffer_fd(t, RW);
	pthread_t threads[4];
	void *failed;

	held = ok(tensor_of_fd(fd));
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_repeatedly, held), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	close(fd);
	tensor_release(held);
	tensor_release(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tensors_without_a_buffer_are_refused),
		cmocka_unit_test(rights_are_checked),
		cmocka_unit_test(memfd_provider_refuses_device_features),
		cmocka_unit_test(event_and_region_calls_fail_without_the_device),
		cmocka_unit_test(no_descriptor_is_left_behind),
		cmocka_unit_test(threads_share_a_buffer),
	};

	return cmocka_run_group_tests_name("buffer_errors", tests, NULL, NULL);
}
