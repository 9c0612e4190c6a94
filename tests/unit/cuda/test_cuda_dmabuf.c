// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Device memory in buffers of /dev/tensor: what both sides see, other processes, wrong arguments. */
#include "cuda_dmabuf.h"

#include <limits.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

static void both_sides_see_what_the_other_writes(void **state)
{
	struct counts before;
	struct exported e;
	uint32_t handle = 0;
	tensor *host;

	NEED_IMPORT();
	before = counts_now();
	e = export_new();
	host = ok(import_fd(e.fd, e.offset));
	tensor_scope {
		assert_int_equal(info_of(host).bytes, e.size);
		assert_true(sum_of(host) == SUM);
		ok(tensor_mul_(e.x, ok(tensor_full(TENSOR_SCALAR_SHAPE, S(2.0), F32))));
		assert_done(tensor_cuda_synchronize(0));
		if (is_dmabuf(host))
			assert_done(tensor_buffer_sync(host, TENSOR_BUFFER_SYNC_READ, -1));
		assert_true(sum_of(host) == 2 * SUM);
		if (is_dmabuf(host))
			assert_done(tensor_buffer_sync(
				host, TENSOR_BUFFER_SYNC_READ | TENSOR_BUFFER_SYNC_END, 0));
		ok(tensor_fill_(host, S(3.0)));
		assert_true(sum_of(e.x) == 3 * N);
	}
	if (on_device()) {
		assert_done(tensor_buffer_handle(host, &handle));
		assert_true(handle && count_handles() > before.handles);
	}
	tensor_release(host);
	close(e.fd);
	tensor_release(e.x);
	assert_counts(before);
}

/* Its rights and its mappings are the exporter's. */
static void the_buffer_is_the_drivers(void **state)
{
	struct exported e;
	struct stat theirs, ours;
	tensor *host;
	int fd;

	NEED_IMPORT();
	e = export_new();
	host = ok(import_fd(e.fd, e.offset));
	if (!is_dmabuf(host)) {
		tensor_release(host);
		close(e.fd);
		tensor_release(e.x);
		skip();
	}
	assert_fails(tensor_buffer_seal(host), EOPNOTSUPP, "module allocated");
	assert_fails(tensor_buffer_revoke(host), EOPNOTSUPP, "module allocated");
	assert_fails(tensor_buffer_purgeable(host, true), EOPNOTSUPP, "module allocated");
	/* A device gets the dma-buf itself. */
	fd = tensor_buffer_dmabuf(host, RW | TENSOR_BUFFER_ATTACH);
	assert_true(check_done_(fd));
	assert_int_equal(fstat(e.fd, &theirs) | fstat(fd, &ours), 0);
	assert_true(theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev);
	close(fd);
	assert_fails(tensor_buffer_dmabuf(host, TENSOR_BUFFER_READ), EOPNOTSUPP, "dmabuf");
	/* A channel of the same machine takes no mappings of other drivers. */
	{
		struct pair p = pair_open(SOCK_STREAM);

		assert_fails(tensor_send(p.out, host, 0), EOPNOTSUPP, "clone it");
		tensor_scope {
			tensor *both[] = { ok(tensor_ones(TENSOR_SHAPE(3), F32)), host };

			assert_fails(tensor_send_many(p.out, both, 2, 0, 0, -1), EOPNOTSUPP,
				     "another driver");
			assert_true(sum_of(pass(&p, ok(tensor_clone(host)))) == SUM);
		}
		pair_close(&p);
	}
	tensor_release(host);
	close(e.fd);
	tensor_release(e.x);
}

static void another_process_reads_and_writes_it(void **state)
{
	struct counts before;
	struct exported e;
	struct peer p;
	tensor *host;

	NEED_IMPORT();
	before = counts_now();
	e = export_new();
	assert_int_equal(e.offset, 0);
	host = ok(import_fd(e.fd, 0));
	if (is_dmabuf(host)) {
		p = peer_with_buffer("reader", host, RO);
		assert_int_equal(peer_end(&p), 0);
	}
	p = peer_with_buffer("user", host, RW);
	assert_int_equal(peer_end(&p), 0);
	assert_true(sum_of(e.x) == 5 * N);
	assert_true(sum_of(host) == 5 * N);
	tensor_release(host);
	close(e.fd);
	tensor_release(e.x);
	assert_counts(before);
}

/* ---- errors ---- */

#define IMPORT(fd, dtype, shape, offset) (!!tensor_from_buffer_fd((fd), (dtype), (shape), (offset)))

static void wrong_arguments_are_refused(void **state)
{
	const int64_t half = INT64_C(1) << 62;
	struct counts before;
	struct exported e;
	int event;

	NEED_IMPORT();
	before = counts_now();
	e = export_new();
	event = eventfd(0, EFD_CLOEXEC);
	assert_true(event >= 0);
	tensor_scope {
		int64_t size = (int64_t)e.size;

		assert_fails(IMPORT(e.fd, TENSOR_F32, TENSOR_SHAPE(1), 2), EINVAL, "");
		assert_fails(IMPORT(e.fd, TENSOR_F32, TENSOR_SHAPE(1), -4), EINVAL, "fit");
		assert_fails(IMPORT(e.fd, TENSOR_F32, TENSOR_SHAPE(1), size), EINVAL, "fit");
		assert_fails(IMPORT(e.fd, TENSOR_F32, TENSOR_SHAPE(2), size - 4), EINVAL, "fit");
		assert_fails(IMPORT(e.fd, TENSOR_F32, TENSOR_SHAPE(1), INT64_MAX - 3), EINVAL,
			     "fit");
		assert_fails(IMPORT(e.fd, TENSOR_F32, TENSOR_SHAPE(1), INT64_MIN), EINVAL, "fit");
		assert_fails(IMPORT(e.fd, TENSOR_F32, TENSOR_SHAPE(INT64_MAX), 0), EINVAL, "fit");
		assert_fails(IMPORT(e.fd, TENSOR_F32, TENSOR_SHAPE(half, 8, half), 0), EINVAL,
			     "fit");
		assert_fails(IMPORT(e.fd, TENSOR_F32, TENSOR_SHAPE(-1), 0), EINVAL, "negative");
		assert_fails(IMPORT(e.fd, TENSOR_DTYPE_NONE, TENSOR_NO_INTS, 0), EINVAL,
			     "descriptor");
		assert_fails(IMPORT(e.fd, TENSOR_DTYPE_NONE, TENSOR_SHAPE(3), 0), EINVAL, "dtype");
		assert_fails(IMPORT(-1, TENSOR_F32, TENSOR_SHAPE(1), 0), EBADF, "");
		assert_fails(IMPORT(INT_MAX, TENSOR_F32, TENSOR_SHAPE(1), 0), EBADF, "");
		assert_fails(IMPORT(event, TENSOR_F32, TENSOR_SHAPE(1), 0), EBADMSG, "no dma-buf");
		ok(tensor_from_buffer_fd(e.fd, TENSOR_F32, TENSOR_SHAPE(1), size - 4));
		ok(tensor_from_buffer_fd(e.fd, TENSOR_F32, TENSOR_SHAPE(0), size));
		assert_int_equal(tensor_numel(ok(tensor_from_buffer_fd(e.fd, TENSOR_F64,
								       TENSOR_NO_INTS, 0))),
				 size / 8);
	}
	close(event);
	close(e.fd);
	tensor_release(e.x);
	assert_counts(before);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_see_what_the_other_writes),
		cmocka_unit_test(the_buffer_is_the_drivers),
		cmocka_unit_test(another_process_reads_and_writes_it),
		cmocka_unit_test(wrong_arguments_are_refused),
	};

	peer_main(argc, argv, dmabuf_roles);
	return cmocka_run_group_tests_name("cuda_dmabuf", tests, NULL, NULL);
}
