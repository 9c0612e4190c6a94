// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Device tensors that were sent or received, in use: gradients, threads, streams of other devices, forks, full memory. On the
 * emulation (make test-cuda) or a GPU, else skipped.
 */
#include "cuda_results.h"
#include "peer.h"
#include "threads.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <stdatomic.h>
#include <tensor/buffer.h>
#include <tensor/dlpack.h>

static bool emulated(void)
{
	return emulation("cuda_host_fail");
}

static tensor *numbers(int64_t n)
{
	return ok(tensor_arange(TENSOR_SCALAR((double)n), CUDA));
}

static double sum_of(tensor *t)
{
	double v = -1;

	tensor_scope {
		assert_done(tensor_item(ok(tensor_sum(ok(t))), &v));
	}
	return v;
}

/* ---- functions that a release calls ---- */

struct producer {
	DLManagedTensorVersioned managed;
	int64_t sizes[1];
	tensor_channel *ch;
	tensor *send;
	int result;
};

static void send_and_end(struct DLManagedTensorVersioned *m)
{
	struct producer *p = m->manager_ctx;

	if (p->ch)
		p->result = tensor_send(p->ch, p->send, 0);
}

/* Memory of another library, on 300 elements of `memory`. */
static tensor *foreign(struct producer *p, tensor *memory)
{
	p->managed = (DLManagedTensorVersioned){ .version = { 1, 0 },
						 .deleter = send_and_end,
						 .manager_ctx = p };
	p->sizes[0] = 300;
	p->managed.dl_tensor = (DLTensor){ .data = tensor_device_data(memory),
					   .device = { kDLCUDA, 0 },
					   .ndim = 1,
					   .dtype = { kDLFloat, 32, 1 },
					   .shape = p->sizes };
	return ok(tensor_from_dlpack(&p->managed));
}

/* The first send waits for the device, and then calls what waited for the end of its work: here, for a send. */
static void a_deleter_may_send(void **state)
{
	struct producer p;
	struct pair e;

	NEED_DEVICE();
	e = pair_open(SOCK_STREAM);
	p = (struct producer){ .ch = e.out, .result = 1 };
	tensor_scope {
		tensor *memory = ok(tensor_ones(TENSOR_SHAPE(300), CUDA)), *x = numbers(8);

		p.send = numbers(9);
		tensor_scope {
			tensor *f = foreign(&p, memory);

			ok(tensor_add_(memory, f));
		}
		alarm(20); /* a deadlock ends the test */
		assert_done(tensor_send(e.out, x, 0));
		assert_done(tensor_cuda_synchronize(0));
		alarm(0);
		assert_int_equal(p.result, 0);
		assert_int_equal(tensor_numel(ok(tensor_recv(e.in))) +
					 tensor_numel(ok(tensor_recv(e.in))),
				 17);
	}
	pair_close(&e);
}

/* ---- streams ---- */

/* Its work is not that of the memory's device. */
static void recorded_streams_of_another_device_are_waited_for(void **state)
{
	const tensor_options on_1 = TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(1));
	struct pair e;
	void *far;

	NEED_DEVICE();
	if (tensor_cuda_device_count() < 2)
		skip();
	e = pair_open(SOCK_STREAM);
	far = tensor_cuda_stream(1, 0);
	assert_non_null(far);
	for (int received = 0; received < 2; received++) {
		tensor_scope {
			tensor *x = numbers(300), *other, *y;

			assert_done(tensor_send(e.out, x, 0));
			other = ok(tensor_recv(e.in));
			assert_done(tensor_cuda_synchronize(1));
			assert_done(tensor_cuda_record_stream(received ? other : x, far));
			/* The channel has let go of both. */
			pair_close(&e);
			assert_done(tensor_cuda_set_stream(1, far));
			y = ok(tensor_ones(TENSOR_SHAPE(1000), on_1));
			for (int i = 0; i < 20; i++)
				ok(tensor_add_(y, y));
			assert_done(tensor_cuda_set_stream(1, NULL));
		}
		assert_int_equal(tensor_cuda_stream_query(1, far), 1);
		e = pair_open(SOCK_STREAM);
	}
	pair_close(&e);
}

/* ---- memory ---- */

static int sender(tensor_channel *ch)
{
	int err = 0;

	tensor_scope {
		err = tensor_send(ch, numbers(1000), 0);
		tensor_recv(ch);
	}
	return err < 0;
}

/* The cache has all memory of the device: it makes place for what comes. */
static void a_full_cache_refuses_nothing(void **state)
{
	uint64_t unused, total;
	struct peer p;

	NEED_DEVICE();
	if (!emulated())
		skip();
	p = peer_start("sender", SOCK_STREAM);
	assert_done(tensor_cuda_memory_trim(0));
	assert_done(tensor_cuda_memory_info(0, &unused, &total));
	tensor_scope {
		ok(tensor_empty(TENSOR_SHAPE((int64_t)unused & -(1 << 21)),
				TENSOR_OPTIONS(.dtype = TENSOR_U8,
					       .device = TENSOR_DEVICE_CUDA(0))));
	}
	tensor_scope {
		assert_true(sum_of(ok(tensor_recv(p.ch))) == 499500);
		assert_done(tensor_send(p.ch, ok(tensor_ones(TENSOR_SHAPE(1), CPU)), 0));
	}
	assert_int_equal(peer_end(&p), 0);
}

/* ---- death ---- */

/* Sends until it is killed. */
static int hurry(tensor_channel *ch)
{
	int err = 0;

	while (!err)
		tensor_scope {
			err = tensor_send(ch, numbers(100), 0);
		}
	return 1;
}

/* Whatever the sender was doing, what had come is received, and nothing is left of it. */
static void a_sender_may_be_killed_at_any_moment(void **state)
{
	uint64_t before, after, total;
	int fds;

	NEED_DEVICE();
	assert_done(tensor_cuda_synchronize(0));
	assert_done(tensor_cuda_memory_trim(0));
	assert_done(tensor_cuda_memory_info(0, &before, &total));
	fds = count_fds();
	for (int i = 0; i < 6; i++) {
		struct peer p = peer_start("hurry", i % 2 ? SOCK_SEQPACKET : SOCK_STREAM);
		tensor *t;

		tensor_scope {
			assert_true(sum_of(ok(tensor_recv(p.ch))) == 4950);
			usleep((useconds_t)i * 700);
			kill(p.pid, SIGKILL);
		}
		do {
			tensor_scope {
				t = tensor_recv(p.ch);
				if (t)
					assert_true(sum_of(t) == 4950);
			}
		} while (t);
		assert_int_equal(tensor_last_error()->code, EPIPE);
		assert_int_equal(peer_end(&p), -SIGKILL);
	}
	assert_fds(fds);
	assert_done(tensor_cuda_memory_trim(0));
	assert_done(tensor_cuda_memory_info(0, &after, &total));
	if (emulated())
		assert_int_equal(after, before);
}

/* ---- dma-bufs ---- */

/* With /dev/tensor a buffer on a dma-buf of /dev/udmabuf, which stands for the GPU's; without udmabuf on a memfd. NULL: the
 * library cannot import it here, for which the reason is printed. */
static tensor *imported(int fd, int64_t n, int64_t offset)
{
	tensor *t = tensor_from_buffer_fd(fd, TENSOR_F32, TENSOR_SHAPE(n), offset);

	if (!t)
		print_message("# not imported: %s\n", tensor_last_error()->text);
	return t;
}

static void a_dmabuf_has_the_memory_of_the_tensor(void **state)
{
	uint64_t offset = 1, size = 0, same;
	struct pair e;
	int fd, again;

	NEED_DEVICE();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *x = numbers(300), *part = ok(tensor_slice(x, 0, 100, 200, 1)), *host;

		fd = tensor_cuda_export_dmabuf(part, &offset, &size);
		if (fd < 0 && !emulated())
			skip();
		assert_true(fd >= 0);
		assert_int_equal(offset, 100 * sizeof(float));
		assert_true(size >= 300 * sizeof(float) && size % 4096 == 0);
		assert_int_equal(lseek(fd, 0, SEEK_END), size);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		assert_true(sum_of(x) == 44850);
		host = imported(fd, 100, (int64_t)offset);
		if (host) {
			assert_true(sum_of(host) == 14950);
			ok(tensor_fill_(part, TENSOR_SCALAR(2.0)));
			assert_done(tensor_cuda_synchronize(0));
			assert_true(sum_of(host) == 200);
			ok(tensor_fill_(host, TENSOR_SCALAR(3.0)));
			assert_true(sum_of(part) == 300);
		}
		/* Memory that was sent is the same block, and so is the received one. */
		again = tensor_cuda_export_dmabuf(x, &offset, &same);
		assert_true(again >= 0 && !offset && same == size);
		close(again);
		assert_done(tensor_send(e.out, x, 0));
		again = tensor_cuda_export_dmabuf(ok(tensor_recv(e.in)), &offset, &same);
		assert_true(again >= 0 && !offset && same == size);
		close(again);
	}
	pair_close(&e);
	/* The descriptor keeps the memory. */
	tensor_scope {
		tensor *host = imported(fd, 300, 0);

		if (host && emulated())
			assert_true(tensor_get_device(host).type == TENSOR_CPU &&
				    sum_of(host) == 4950 + 300 + 24950);
	}
	close(fd);
}

static void memory_without_a_dmabuf_is_refused(void **state)
{
	uint64_t offset, size;
	__typeof__(&cuda_host_fail) inject;
	struct producer p = { 0 };
	int fds, before;

	assert_fails(tensor_cuda_export_dmabuf(NULL, &offset, &size), EINVAL, "cuda_export_dmabuf");
	NEED_DEVICE();
	tensor_scope {
		tensor *x = numbers(300);

		assert_fails(tensor_cuda_export_dmabuf(x, NULL, &size), EINVAL, "NULL");
		assert_fails(tensor_cuda_export_dmabuf(x, &offset, NULL), EINVAL, "NULL");
		assert_fails(tensor_cuda_export_dmabuf(ok(tensor_ones(TENSOR_SHAPE(3), CPU)),
						       &offset, &size),
			     EINVAL, "on a CUDA device");
		p.managed.manager_ctx = &p;
		p.ch = NULL;
		assert_fails(tensor_cuda_export_dmabuf(foreign(&p, x), &offset, &size), EOPNOTSUPP,
			     "another library");
		assert_done(tensor_cuda_synchronize(0));
	}
	if (!emulated())
		return;
	inject = emulation("cuda_host_fail");
	before = count_fds();
	tensor_scope {
		tensor *x = numbers(300);

		setenv("CUDA_HOST_NO_DMABUF", "1", 1);
		assert_fails(tensor_cuda_export_dmabuf(x, &offset, &size), EOPNOTSUPP, "dma-buf");
		unsetenv("CUDA_HOST_NO_DMABUF");
		inject("cuMemGetHandleForAddressRange", 1, 719);
		assert_fails(tensor_cuda_export_dmabuf(x, &offset, &size), EIO, "dma-buf");
		inject("cuMemCreate", 1, 719);
		assert_fails(tensor_cuda_export_dmabuf(numbers(3), &offset, &size), EIO,
			     "memory to share");
		inject(NULL, 0, 0);
		setenv("CUDA_HOST_NO_VMM", "1", 1);
		assert_fails(tensor_cuda_export_dmabuf(numbers(3), &offset, &size), EOPNOTSUPP,
			     "virtual memory");
		unsetenv("CUDA_HOST_NO_VMM");
		fds = tensor_cuda_export_dmabuf(x, &offset, &size);
		assert_true(fds >= 0);
		close(fds);
	}
	assert_int_equal(count_fds(), before);
}

/* ---- gradients ---- */

static void a_backward_finds_what_it_saved(void **state)
{
	struct pair e;

	NEED_DEVICE();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *x = numbers(5), *y, *z, *got;

		tensor_set_requires_grad(x, true);
		y = ok(tensor_exp(
			ok(tensor_mul(x, ok(tensor_zeros_like(x, (tensor_options){ 0 }))))));
		z = ok(tensor_sum(ok(tensor_mul(ok(tensor_mul(x, x)), y))));
		assert_done(tensor_send(e.out, x, 0));
		assert_done(tensor_send(e.out, y, 0));
		got = ok(tensor_recv(e.in));
		assert_false(tensor_requires_grad(got));
		ok(tensor_recv(e.in));
		assert_done(tensor_backward(z));
		assert_values(tensor_to(tensor_grad(x), CPU), 0, 0, 2, 4, 6, 8);
		assert_done(tensor_send(e.out, tensor_grad(x), 0));
		assert_true(sum_of(ok(tensor_recv(e.in))) == 20);
		ok(tensor_add_(tensor_grad(x), tensor_grad(x)));
		assert_values(tensor_to(tensor_grad(x), CPU), 0, 0, 4, 8, 12, 16);
	}
	pair_close(&e);
}

/* ---- threads ---- */

static tensor *common;

/* The first send of a tensor by all threads, then memory of their own. */
static void *send_in_a_thread(struct worker *w)
{
	struct pair e;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e.ends), 0);
	e.out = tensor_channel_open(e.ends[0]);
	e.in = tensor_channel_open(e.ends[1]);
	for (int i = 0; i < 6; i++) {
		tensor_scope {
			tensor *x = i ? tensor_arange(TENSOR_SCALAR(300.0), CUDA) : common, *got;

			expect(w, !tensor_send(e.out, x, 0));
			got = tensor_recv(e.in);
			expect(w, got && tensor_numel(got) == 300);
			if (got)
				expect(w, number(tensor_sum(got)) == 44850);
		}
	}
	pair_close(&e);
	return NULL;
}

static void threads_send_and_release(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		common = numbers(300);
		with_threads(send_in_a_thread, NULL);
		assert_true(sum_of(common) == 44850);
	}
}

/* ---- forks ---- */

static void a_child_has_none_of_it(void **state)
{
	struct pair e;
	int status;

	NEED_DEVICE();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *x = tensor_retain(numbers(300)), *got, *fresh = numbers(3);

		assert_done(tensor_send(e.out, x, 0));
		got = tensor_retain(ok(tensor_recv(e.in)));
		status = IN_CHILD({
			if (tensor_send(e.out, x, 0) != -ENODEV ||
			    tensor_send(e.out, fresh, 0) != -ENODEV)
				_exit(1);
			tensor_release(x);
			tensor_release(got);
			pair_close(&e);
		});
		assert_int_equal(status, 0);
		/* The memory is the parent's as before. */
		assert_true(sum_of(got) == 44850);
		assert_done(tensor_send(e.out, x, 0));
		assert_true(sum_of(ok(tensor_recv(e.in))) == 44850);
		tensor_release(x);
		tensor_release(got);
	}
	pair_close(&e);
}

static atomic_bool stopped;

/* A receiver maps memory, and unmaps that of which the sender has let go. */
static void *send_and_receive(void *unused)
{
	const char *wrong = NULL;

	while (!atomic_load(&stopped) && !wrong) {
		struct pair e = pair_open(SOCK_STREAM);

		for (int i = 0; i < 10 && !wrong; i++) {
			tensor_scope {
				tensor *x = tensor_ones(TENSOR_SHAPE(300), CUDA);

				if (!x || tensor_send(e.out, x, 0) < 0 || !tensor_recv(e.in))
					wrong = "a tensor does not arrive";
			}
		}
		pair_close(&e);
	}
	return (void *)wrong;
}

static void a_fork_does_not_stop_a_receiver(void **state)
{
	pthread_t thread;
	void *wrong;

	NEED_DEVICE();
	atomic_store(&stopped, false);
	assert_int_equal(pthread_create(&thread, NULL, send_and_receive, NULL), 0);
	alarm(30); /* a deadlock ends the test */
	for (int i = 0; i < 60; i++) {
		int status = IN_CHILD({});

		assert_int_equal(status, 0);
	}
	atomic_store(&stopped, true);
	pthread_join(thread, &wrong);
	alarm(0);
	assert_null(wrong);
}

static const struct peer_role roles[] = {
	{ "sender", sender },
	{ "hurry", hurry },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deleter_may_send),
		cmocka_unit_test(recorded_streams_of_another_device_are_waited_for),
		cmocka_unit_test(a_full_cache_refuses_nothing),
		cmocka_unit_test(a_sender_may_be_killed_at_any_moment),
		cmocka_unit_test(a_dmabuf_has_the_memory_of_the_tensor),
		cmocka_unit_test(memory_without_a_dmabuf_is_refused),
		cmocka_unit_test(a_backward_finds_what_it_saved),
		cmocka_unit_test(threads_send_and_release),
		cmocka_unit_test(a_child_has_none_of_it),
		cmocka_unit_test(a_fork_does_not_stop_a_receiver),
	};

	/* The devices of the emulation are the same in the other processes. */
	setenv("CUDA_HOST_UUID", "send", 0);
	setenv("CUDA_HOST_MEMORY", "100663296", 1);
	peer_main(argc, argv, roles);
	return cmocka_run_group_tests_name("cuda_send_use", tests, NULL, NULL);
}
