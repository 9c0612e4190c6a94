// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Device tensors in channels, within a process and between two. On the emulation (make test-cuda) or a GPU, else skipped;
 * what counts mappings and makes the driver fail needs the emulation.
 */
#include "cuda_results.h"
#include "peer.h"
#include "rings.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <tensor/dlpack.h>

#define GPU	     TENSOR_DEVICE_CUDA(0)
#define ON_GPU	     TENSOR_OPTIONS(.device = GPU)
#define GPU_OF(type) TENSOR_OPTIONS(.device = GPU, .dtype = TENSOR_##type)

/* ---- the emulation ---- */

static __typeof__(&cuda_host_fail) inject;

static bool emulated(void)
{
	inject = emulation("cuda_host_fail");
	return inject;
}

/* What a leak would change. */
struct held {
	uint64_t memory;
	int fds, mappings;
};

static struct held held_now(void)
{
	struct held h = { .fds = count_fds(),
			  .mappings = memfd_mappings("cuda-host-", NULL, NULL) };
	uint64_t all;

	assert_done(tensor_cuda_memory_trim(0));
	assert_done(tensor_cuda_memory_info(0, &h.memory, &all));
	return h;
}

static void assert_held(struct held before)
{
	struct held now;

	assert_fds(before.fds);
	now = held_now();
	assert_int_equal(now.mappings, before.mappings);
	/* Other processes use a GPU, too. */
	if (emulated())
		assert_int_equal(now.memory, before.memory);
}

static tensor *numbers(int64_t n)
{
	return ok(tensor_arange(TENSOR_SCALAR((double)n), ON_GPU));
}

static char *address(tensor *t)
{
	DLTensor d;

	assert_done(tensor_to_dltensor(t, &d));
	return d.data;
}

static tensor *here(tensor *t)
{
	return ok(tensor_to(ok(t), CPU));
}

/* ---- the other process ---- */

/* Sends back a copy of each tensor, writes 1 to it, and sends a tensor of the host then. */
static int mirror(tensor_channel *ch)
{
	tensor *t;

	for (;;) {
		tensor_scope {
			t = tensor_recv(ch);
			if (!t)
				return tensor_last_error()->code == EPIPE ? 0 : 2;
			if (tensor_send(ch, ok(tensor_clone(t)), 0) < 0 ||
			    !tensor_fill_(t, TENSOR_SCALAR(1.0)) ||
			    tensor_cuda_synchronize(tensor_get_device(t).index) < 0 ||
			    tensor_send(ch, ok(tensor_ones(TENSOR_SHAPE(1), CPU)), 0) < 0)
				return 3;
		}
	}
}

/* Sends a tensor and ends. */
static int leave(tensor_channel *ch)
{
	int err = 0;

	tensor_scope {
		tensor *x = numbers(1000);

		err = tensor_send(ch, ok(tensor_slice(x, 0, 10, 1000, 10)), 0);
	}
	return err < 0;
}

/* Receives a tensor and ends with it. */
static int take(tensor_channel *ch)
{
	return !tensor_retain(tensor_recv(ch));
}

/* Has not the device of the tensor that comes first. */
static int refuse(tensor_channel *ch)
{
	int fds, code;

	tensor_scope {
		tensor_cuda_is_available();
		fds = count_fds();
		if (tensor_recv(ch))
			return 1;
		code = tensor_last_error()->code;
		assert_fds(fds);
		if (code != ENODEV || !tensor_recv(ch))
			return code;
	}
	return 0;
}

/* The first tensor twice and a view of it: one mapping. */
static int once(tensor_channel *ch)
{
	int n;

	tensor_scope {
		tensor *a = tensor_recv(ch), *b = tensor_recv(ch), *c = tensor_recv(ch);

		if (!a || !b || !c || address(a) != address(b) ||
		    address(c) != address(a) + 3 * sizeof(float))
			return 1;
		n = memfd_mappings("cuda-host-", NULL, NULL);
		tensor_send(ch,
			    ok(tensor_full(TENSOR_SHAPE(1), TENSOR_SCALAR((double)n),
					   (tensor_options){ 0 })),
			    0);
		tensor_recv(ch);
	}
	return 0;
}

static const struct peer_role roles[] = {
	{ "mirror", mirror }, { "leave", leave }, { "take", take },
	{ "refuse", refuse }, { "once", once },	  { NULL, NULL },
};

/* ---- between two processes ---- */

static void there_and_back(struct peer *p, tensor *t)
{
	tensor_scope {
		tensor *before = tensor_retain(ok(tensor_clone(here(t)))), *back, *after;

		assert_done(tensor_send(p->ch, t, 0));
		back = ok(tensor_recv(p->ch));
		assert_int_equal(tensor_get_device(back).type, TENSOR_CUDA);
		assert_int_equal(tensor_dtype(back), tensor_dtype(t));
		assert_same(here(back), before);
		/* What the other process has written is here. */
		ok(tensor_recv(p->ch));
		after = here(t);
		assert_same(after, ok(tensor_ones_like(before, (tensor_options){ 0 })));
		tensor_release(before);
	}
}

static void tensors_of_any_kind_go_both_ways(void **state)
{
	struct peer p;

	NEED_DEVICE();
	p = peer_start("mirror", SOCK_STREAM);
	tensor_scope {
		tensor *x = numbers(60),
		       *table = ok(tensor_reshape(numbers(60), TENSOR_INTS(5, 12)));

		there_and_back(&p, x);
		assert_values(here(tensor_sum(x)), 0, 60);
		there_and_back(&p, ok(tensor_slice(numbers(60), 0, 7, 50, 3)));
		there_and_back(&p, ok(tensor_transpose(table, 0, 1)));
		there_and_back(&p,
			       ok(tensor_select(ok(tensor_reshape(numbers(60), TENSOR_INTS(5, 12))),
						1, 3)));
		there_and_back(
			&p, ok(tensor_gt(numbers(9), ok(tensor_full(TENSOR_SHAPE(1),
								    TENSOR_SCALAR(4.0), ON_GPU)))));
		there_and_back(&p, ok(tensor_to(numbers(3), GPU_OF(C64))));
		there_and_back(&p, ok(tensor_arange(TENSOR_SCALAR(1e3), GPU_OF(I64))));
		there_and_back(&p, ok(tensor_arange(TENSOR_SCALAR(20.0), GPU_OF(BF16))));
		there_and_back(&p, ok(tensor_arange(TENSOR_SCALAR(20.0), GPU_OF(U8))));
		there_and_back(&p, ok(tensor_full(TENSOR_SHAPE(), TENSOR_SCALAR(3.0), ON_GPU)));
		there_and_back(&p, ok(tensor_full(TENSOR_SHAPE(0, 4), TENSOR_SCALAR(3.0), ON_GPU)));
		/* More than a unit of the driver's memory. */
		there_and_back(&p, numbers(700001));
	}
	assert_int_equal(peer_end(&p), 0);
}

static void a_tensor_sent_twice_is_mapped_once(void **state)
{
	struct peer p;

	NEED_DEVICE();
	p = peer_start("once", SOCK_SEQPACKET);
	tensor_scope {
		tensor *x = numbers(100), *n;

		assert_done(tensor_send(p.ch, x, 0));
		assert_done(tensor_send(p.ch, x, 0));
		assert_done(tensor_send(p.ch, ok(tensor_slice(x, 0, 3, 50, 1)), 0));
		n = ok(tensor_recv(p.ch));
		if (emulated())
			assert_values(n, 0, 1);
		assert_done(tensor_send(p.ch, n, 0));
	}
	assert_int_equal(peer_end(&p), 0);
}

static void memory_outlives_its_sender(void **state)
{
	struct held before;
	struct peer p;
	int status;

	NEED_DEVICE();
	before = held_now();
	p = peer_start("leave", SOCK_STREAM);
	while (waitpid(p.pid, &status, WNOHANG) == 0)
		usleep(1000);
	assert_int_equal(status, 0);
	tensor_scope {
		tensor *x = ok(tensor_recv(p.ch));

		assert_int_equal(tensor_numel(x), 99);
		assert_values(here(tensor_slice(x, 0, 0, 3, 1)), 0, 10, 20, 30);
		assert_fails(tensor_recv(p.ch), EPIPE, "gone");
		tensor_channel_close(p.ch);
		/* The channel held it, too. */
		assert_values(here(tensor_sum(x)), 0, 49500);
	}
	close(p.socket);
	assert_held(before);
}

static void a_receiver_may_end(void **state)
{
	struct peer p;

	NEED_DEVICE();
	p = peer_start("take", SOCK_STREAM);
	tensor_scope {
		tensor *x = numbers(100);

		assert_done(tensor_send(p.ch, x, 0));
		assert_int_equal(peer_end(&p), 0);
		assert_values(here(tensor_sum(x)), 0, 4950);
		ok(tensor_fill_(x, TENSOR_SCALAR(2.0)));
		assert_values(here(tensor_sum(x)), 0, 200);
	}
}

/* With the variable set, the peer has other devices, or none. */
static void refused_by(const char *variable, const char *value)
{
	const char *before = getenv(variable);
	char *saved = before ? strdup(before) : NULL;
	struct peer p;

	setenv(variable, value, 1);
	p = peer_start("refuse", SOCK_STREAM);
	if (saved)
		setenv(variable, saved, 1);
	else
		unsetenv(variable);
	free(saved);
	tensor_scope {
		assert_done(tensor_send(p.ch, numbers(10), 0));
		assert_done(tensor_send(p.ch, ok(tensor_ones(TENSOR_SHAPE(2), CPU)), 0));
	}
	assert_int_equal(peer_end(&p), 0);
}

static void a_receiver_without_the_device_says_so(void **state)
{
	NEED_DEVICE();
	if (emulated()) {
		refused_by("CUDA_HOST_DEVICES", "0");
		refused_by("CUDA_HOST_UUID", "another");
	} else {
		refused_by("CUDA_VISIBLE_DEVICES", "");
	}
}

/* ---- within a process ---- */

static void tensors_follow_their_memory(void **state)
{
	struct pair e;

	NEED_DEVICE();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *x = numbers(24), *rows = ok(tensor_reshape(x, TENSOR_INTS(4, 6)));
		tensor *part = ok(tensor_select(rows, 0, 2)), *got;
		tensor *detached = ok(tensor_detach(x));

		ok(tensor_add_(x, x));
		assert_done(tensor_send(e.out, part, 0));
		got = ok(tensor_recv(e.in));
		assert_values(here(got), 0, 24, 26, 28, 30, 32, 34);
		ok(tensor_fill_(got, TENSOR_SCALAR(-1.0)));
		assert_values(here(part), 0, -1, -1, -1, -1, -1, -1);
		assert_values(here(tensor_select(rows, 0, 3)), 0, 36, 38, 40, 42, 44, 46);
		assert_values(here(tensor_slice(detached, 0, 11, 14, 1)), 0, 22, -1, -1);
		assert_int_equal(address(part) - address(x), 12 * (int)sizeof(float));
	}
	pair_close(&e);
}

static void work_that_is_queued_is_sent(void **state)
{
	struct pair e;
	void *side, *before;

	NEED_DEVICE();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *x = ok(tensor_full(TENSOR_SHAPE(1000), TENSOR_SCALAR(1.0), ON_GPU)), *got;

		side = tensor_cuda_stream(0, 0);
		before = tensor_cuda_current_stream(0);
		assert_done(tensor_cuda_synchronize(0));
		assert_done(tensor_cuda_set_stream(0, side));
		ok(tensor_add_(x, x));
		/* The first send waits for all streams. */
		assert_done(tensor_cuda_set_stream(0, before));
		assert_done(tensor_send(e.out, x, 0));
		got = ok(tensor_recv(e.in));
		assert_values(here(tensor_sum(got)), 0, 2000);
		ok(tensor_add_(x, x));
		assert_done(tensor_send(e.out, x, 0));
		got = ok(tensor_recv(e.in));
		assert_done(tensor_cuda_set_stream(0, side));
		assert_values(here(tensor_sum(got)), 0, 4000);
		/* Freed while a stream that is not the thread's uses it. */
		ok(tensor_add_(got, got));
		assert_done(tensor_cuda_set_stream(0, before));
	}
	pair_close(&e);
	assert_done(tensor_cuda_synchronize(0));
}

static void nothing_is_left_of_many_sends(void **state)
{
	struct held before;
	struct pair e;

	NEED_DEVICE();
	tensor_scope {
		numbers(10);
	}
	before = held_now();
	e = pair_open(SOCK_STREAM);
	for (int i = 0; i < 60; i++) {
		tensor_scope {
			tensor *x = numbers(100 + i);

			for (int k = 0; k < 3; k++) {
				assert_done(tensor_send(e.out, x, 0));
				assert_int_equal(tensor_numel(ok(tensor_recv(e.in))), 100 + i);
			}
		}
	}
	pair_close(&e);
	assert_held(before);
}

static void messages_of_several_have_device_tensors(void **state)
{
	const struct tensor_channel_options o = { .ring = true };
	struct pair p;

	NEED_DEVICE();
	p = ring_pair_open(SOCK_STREAM, &o);
	tensor_scope {
		tensor *all[3] = { numbers(5), ok(tensor_ones(TENSOR_SHAPE(3), CPU)), numbers(7) },
		       *got[3];
		uint64_t tag = 0;

		ring_pair_agree(&p, all[1]);
		for (int i = 0; i < 3; i++) {
			assert_done(tensor_send_many(p.out, all, 3, 40 + (uint64_t)i, 0, -1));
			assert_int_equal(tensor_recv_many(p.in, got, 3, &tag, -1), 3);
			assert_int_equal(tag, 40 + i);
			assert_values(here(got[0]), 0, 0, 1, 2, 3, 4);
			assert_values(got[1], 0, 1, 1, 1);
			assert_values(here(tensor_sum(got[2])), 0, 21);
			assert_done(tensor_send(p.out, all[0], 0));
			assert_values(here(ok(tensor_recv(p.in))), 0, 0, 1, 2, 3, 4);
		}
	}
	pair_close(&p);
}

static void memory_that_cannot_move_is_refused(void **state)
{
	struct pair e;
	tensor_cuda_graph *g;

	NEED_DEVICE();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *x = numbers(8), *y = numbers(8), *z = NULL, *got;
		struct DLManagedTensorVersioned *m = tensor_to_dlpack(x, 0);

		assert_fails(tensor_send(e.out, x, 0), EBUSY, "another library");
		m->deleter(m);
		assert_fails(tensor_send(e.out, x, TENSOR_SEND_READONLY), EOPNOTSUPP, "read-only");
		assert_done(tensor_send(e.out, x, 0));
		got = ok(tensor_recv(e.in));
		assert_fails(tensor_send(e.in, got, 0), EOPNOTSUPP, "another process");
		assert_values(here(tensor_sum(got)), 0, 28);

		/* A graph has the address of y, and the memory of z. */
		g = tensor_cuda_graph_new(0);
		assert_non_null(g);
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		z = ok(tensor_add(y, y));
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_fails(tensor_send(e.out, y, 0), EBUSY, "graph");
		assert_fails(tensor_send(e.out, z, 0), EBUSY, "graph");
		assert_done(tensor_cuda_graph_replay(g));
		assert_values(here(tensor_sum(z)), 0, 56);
		assert_done(tensor_cuda_graph_release(g));
	}
	pair_close(&e);
}

static void captures_wait_for_no_release(void **state)
{
	tensor_cuda_graph *g;
	struct held before;
	struct pair e;

	NEED_DEVICE();
	before = held_now();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *x = numbers(8), *y = numbers(8), *kept = tensor_retain(numbers(9)), *got;

		assert_done(tensor_send(e.out, kept, 0));
		got = tensor_retain(ok(tensor_recv(e.in)));
		assert_done(tensor_send(e.out, y, 0));
		g = tensor_cuda_graph_new(0);
		assert_non_null(g);
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		ok(tensor_add_(x, x));
		tensor_release(kept);
		tensor_release(got);
		/* A mapping is no part of the graph. */
		assert_values(ok(tensor_full(TENSOR_SHAPE(1), TENSOR_SCALAR(1.0), CPU)), 0, 1);
		got = ok(tensor_recv(e.in));
		ok(tensor_add_(x, got));
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_done(tensor_cuda_graph_replay(g));
		assert_values(here(tensor_sum(x)), 0, 84);

		assert_done(tensor_cuda_graph_reset(g));
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		assert_fails(tensor_send(e.out, y, 0), EOPNOTSUPP, "capture");
		assert_true(tensor_cuda_graph_capture_end(g) < 0);
		assert_done(tensor_cuda_graph_release(g));
	}
	pair_close(&e);
	assert_done(tensor_cuda_synchronize(0));
	assert_held(before);
}

/* ---- a hostile peer ---- */

/* The note and the message of a tensor, as the library sends them. */
static int message_of(tensor *t, struct wire_message *n, struct wire_message *m)
{
	struct pair e = pair_open(SOCK_STREAM);
	int fd;

	assert_done(tensor_send(e.out, t, 0));
	assert_int_equal(recv(e.ends[1], n, sizeof(*n), MSG_WAITALL), sizeof(*n));
	fd = wire_test_recv(e.ends[1], m);
	assert_true(n->flags == WIRE_NOTE && n->dtype == WIRE_NOTE_DEVICE);
	assert_true(m->flags == (WIRE_FD | WIRE_DEVICE) && fd >= 0);
	pair_close(&e);
	return fd;
}

/* The receiver refuses the message, and is as before. */
#define assert_refused(e, n, m, fd, code, words)                                              \
	do {                                                                                  \
		struct wire_message n_ = (n), m_ = (m);                                       \
		int fds_ = count_fds(), open_ = (fd);                                         \
                                                                                              \
		if (n_.magic)                                                                 \
			assert_int_equal(send((e)->ends[0], &n_, sizeof(n_), 0), sizeof(n_)); \
		assert_true(wire_test_send((e)->ends[0], &m_, open_) > 0);                    \
		assert_fails(tensor_recv((e)->in), code, words);                              \
		assert_fds(fds_);                                                             \
	} while (0)

static void a_hostile_peer_gets_errors(void **state)
{
	struct wire_message n, m, bad, none = { 0 };
	int fd, other, pair[2];
	struct held before;
	struct pair e;

	NEED_DEVICE();
	before = held_now();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *x = numbers(100);

		fd = message_of(x, &n, &m);
		assert_refused(&e, none, m, fd, EBADMSG, "description");
		bad = n, bad.offset *= 2;
		assert_refused(&e, bad, m, fd, EBADMSG, "fewer bytes");
		bad = n, bad.offset -= 1;
		assert_refused(&e, bad, m, fd, EBADMSG, "size");
		bad = n, bad.offset = INT64_MAX & ~(((int64_t)1 << 21) - 1);
		assert_refused(&e, bad, m, fd, EBADMSG, "size");
		bad = n, bad.ino ^= 1;
		assert_refused(&e, bad, m, fd, ENODEV, "has not");
		/* Another device's memory than the note names. */
		if (emulated()) {
			bad = n, bad.ino ^= UINT64_C(1) << 56;
			assert_refused(&e, bad, m, fd, EBADMSG, "another device");
		}
		/* Descriptors of other things. */
		other = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_int_equal(ftruncate(other, n.offset), 0);
		assert_refused(&e, n, m, other, EBADMSG, "driver");
		assert_int_equal(
			fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
		assert_refused(&e, n, m, other, EBADMSG, "driver");
		close(other);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		assert_refused(&e, n, m, pair[0], EBADMSG, "driver");
		close(pair[0]);
		close(pair[1]);
		other = open("/dev/null", O_RDWR | O_CLOEXEC);
		assert_refused(&e, n, m, other, EBADMSG, "driver");
		close(other);
		/* Geometry that leaves the memory. */
		bad = m, bad.offset = n.offset;
		assert_refused(&e, n, bad, fd, EBADMSG, "fit");
		bad = m, bad.offset = -4;
		assert_refused(&e, n, bad, fd, EBADMSG, "fit");
		bad = m, bad.sizes[0] = n.offset / 4 + 1;
		assert_refused(&e, n, bad, fd, EBADMSG, "fit");
		/* Flags that exclude each other. */
		bad = m, bad.flags |= WIRE_READONLY;
		assert_refused(&e, n, bad, fd, EBADMSG, "read-only");
		bad = m, bad.flags |= WIRE_READONLY | WIRE_FILE;
		assert_refused(&e, n, bad, fd, EBADMSG, "file");

		/* The channel is of use all the same, also after notes that nothing follows. */
		for (int i = 0; i < 100; i++)
			assert_int_equal(send(e.ends[0], &n, sizeof(n), 0), sizeof(n));
		assert_done(tensor_send(e.out, ok(tensor_ones(TENSOR_SHAPE(2), CPU)), 0));
		assert_values(ok(tensor_recv(e.in)), 0, 1, 1);
		assert_refused(&e, none, m, fd, EBADMSG, "description");
		assert_done(tensor_send(e.out, x, 0));
		assert_values(here(tensor_sum(ok(tensor_recv(e.in)))), 0, 4950);
		close(fd);
	}
	pair_close(&e);
	assert_held(before);
}

static void slots_have_a_kind(void **state)
{
	struct wire_message n, m, bad;
	struct pair e;
	int fd;

	NEED_DEVICE();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		fd = message_of(numbers(10), &n, &m);
		assert_int_equal(send(e.ends[0], &n, sizeof(n), 0), sizeof(n));
		assert_true(wire_test_send(e.ends[0], &m, fd) > 0);
		ok(tensor_recv(e.in));
		/* The same slot and identity, as memory of the host. */
		bad = m, bad.flags = 0;
		assert_int_equal(send(e.ends[0], &bad, sizeof(bad), 0), sizeof(bad));
		assert_fails(tensor_recv(e.in), EBADMSG, "slot");
		bad.flags = WIRE_DEVICE;
		assert_int_equal(send(e.ends[0], &bad, sizeof(bad), 0), sizeof(bad));
		assert_values(here(tensor_sum(ok(tensor_recv(e.in)))), 0, 45);
		/* A note of an unknown size. */
		n.offset = 0;
		assert_int_equal(send(e.ends[0], &n, sizeof(n), 0), sizeof(n));
		assert_fails(tensor_recv(e.in), EBADMSG, "size");
		close(fd);
	}
	pair_close(&e);
}

/* ---- failing calls ---- */

static void a_failing_driver_costs_nothing(void **state)
{
	static const char *const out[] = { "cuMemGetAllocationGranularity",
					   "cuMemCreate",
					   "cuMemAddressReserve",
					   "cuMemMap",
					   "cuMemSetAccess",
					   "cudaMemcpyAsync" };
	static const char *const in[] = { "cuMemImportFromShareableHandle",
					  "cuMemGetAllocationPropertiesFromHandle",
					  "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess" };
	struct held before;
	struct pair e;

	if (!emulated())
		skip();
	before = held_now();
	e = pair_open(SOCK_STREAM);
	tensor_scope {
		tensor *x = numbers(10);

		for (size_t i = 0; i < ARRAY_SIZE(out); i++) {
			inject(out[i], 1, 719);
			assert_fails(tensor_send(e.out, x, 0), EIO, "cuda");
		}
		inject("cuMemCreate", 1, 2);
		assert_done(tensor_send(e.out, x, 0)); /* again after a trim */
		assert_values(here(tensor_sum(ok(tensor_recv(e.in)))), 0, 45);
		for (size_t i = 0; i < ARRAY_SIZE(in); i++) {
			tensor *y = numbers(10);

			assert_done(tensor_send(e.out, y, 0));
			inject(in[i], 1, 719);
			tensor_clear_error();
			assert_null(tensor_recv(e.in));
			assert_int_equal(tensor_last_error()->code, i ? EIO : EBADMSG);
		}
		inject("cuMemExportToShareableHandle", 1, 719);
		assert_fails(tensor_send(e.out, numbers(3), 0), EIO, "descriptor");
		inject(NULL, 0, 0);
		setenv("CUDA_HOST_NO_VMM", "1", 1);
		assert_fails(tensor_send(e.out, numbers(3), 0), EOPNOTSUPP, "virtual memory");
		unsetenv("CUDA_HOST_NO_VMM");
		assert_done(tensor_send(e.out, numbers(3), 0));
		ok(tensor_recv(e.in));
	}
	pair_close(&e);
	assert_held(before);
}

/* ---- the limit of open files ---- */

static tensor_channel *channel_to_nobody(void)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	return tensor_channel_open(ends[0]);
}

static void take_all_descriptors(rlim_t soft, rlim_t hard)
{
	const struct rlimit limit = { soft, hard };

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (dup(STDERR_FILENO) >= 0)
		;
	assert_int_equal(errno, EMFILE);
}

/* In a process of its own, which cannot raise its limit again. */
static void without_descriptors(void)
{
	tensor_channel *ch = channel_to_nobody();
	tensor *x = numbers(10), *y = numbers(10), *z = numbers(10);
	uint64_t offset, size;
	const int fd = tensor_cuda_export_dmabuf(x, &offset, &size);

	take_all_descriptors(100, 250);
	assert_done(tensor_send(ch, y, 0)); /* the soft limit is raised */
	if (fd >= 0) {
		take_all_descriptors(200, 250);
		assert_true(tensor_cuda_export_dmabuf(x, &offset, &size) >= 0);
	}
	take_all_descriptors(250, 250);
	assert_fails(tensor_send(ch, z, 0), EMFILE, "RLIMIT_NOFILE");
	if (fd >= 0)
		assert_fails(tensor_cuda_export_dmabuf(x, &offset, &size), EMFILE, "RLIMIT_NOFILE");
}

static void a_lack_of_descriptors_is_said(void **state)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (!tensor_cuda_is_available())
			_exit(2);
		without_descriptors();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lack_of_descriptors_is_said), /* before CUDA is opened */
		cmocka_unit_test(tensors_of_any_kind_go_both_ways),
		cmocka_unit_test(a_tensor_sent_twice_is_mapped_once),
		cmocka_unit_test(memory_outlives_its_sender),
		cmocka_unit_test(a_receiver_may_end),
		cmocka_unit_test(a_receiver_without_the_device_says_so),
		cmocka_unit_test(tensors_follow_their_memory),
		cmocka_unit_test(work_that_is_queued_is_sent),
		cmocka_unit_test(nothing_is_left_of_many_sends),
		cmocka_unit_test(messages_of_several_have_device_tensors),
		cmocka_unit_test(memory_that_cannot_move_is_refused),
		cmocka_unit_test(captures_wait_for_no_release),
		cmocka_unit_test(a_hostile_peer_gets_errors),
		cmocka_unit_test(slots_have_a_kind),
		cmocka_unit_test(a_failing_driver_costs_nothing),
	};

	/* The devices of the emulation are the same in the other processes. */
	setenv("CUDA_HOST_UUID", "send", 0);
	peer_main(argc, argv, roles);
	return cmocka_run_group_tests_name("cuda_send", tests, NULL, NULL);
}
