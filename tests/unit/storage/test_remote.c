// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Channels between machines: what arrives, how messages are sent and received. */
#include "buffer.h"
#include "remote.h"

#include "lib/storage/descriptor.h"

#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

static struct far_pair pair; /* of most tests */

static int open_pair(void **state)
{
	pair = far_pair_open(NULL, NULL);
	return 0;
}

static int close_pair(void **state)
{
	far_pair_close(&pair);
	return 0;
}

/* ---- tensors ---- */

/* A tensor of this dtype and size with values that every dtype has. */
static tensor *numbers(enum tensor_dtype dtype, tensor_ints sizes, bool shareable)
{
	tensor *t = ok(tensor_empty(sizes, TENSOR_OPTIONS(.dtype = dtype, .shareable = shareable)));
	size_t n = (size_t)tensor_numel(t) * (size_t)tensor_itemsize(dtype);
	unsigned char *p = tensor_mutable_data(t);

	for (size_t i = 0; i < n; i++)
		p[i] = dtype == TENSOR_BOOL ? i % 3 == 0 :
					      (unsigned char)(i * 11 % 63 + (i >> 9) % 50);
	return t;
}

static void assert_arrives(tensor *t, bool keeps_strides)
{
	tensor_scope {
		tensor *got = far_pass(&pair, t);

		assert_int_equal(tensor_dim(got), tensor_dim(t));
		assert_memory_equal(tensor_sizes(got), tensor_sizes(t),
				    sizeof(int64_t) * (size_t)tensor_dim(t));
		if (keeps_strides)
			assert_memory_equal(tensor_strides(got), tensor_strides(t),
					    sizeof(int64_t) * (size_t)tensor_dim(t));
		assert_same(got, t);
		assert_false(tensor_data(got) && tensor_data(got) == tensor_data(t));
		if (tensor_numel(got))
			assert_true(info_of(got).bytes > 0); /* it has a buffer */
	}
}

static void every_dtype_and_size_arrives(void **state)
{
	for (int dtype = 1; dtype < TENSOR_DTYPE_COUNT; dtype++)
		for (int shareable = 0; shareable < 2; shareable++)
			tensor_scope {
				assert_arrives(numbers(dtype, TENSOR_SCALAR_SHAPE, shareable),
					       true);
				assert_arrives(numbers(dtype, TENSOR_INTS(3, 0, 5), shareable),
					       true);
				assert_arrives(numbers(dtype, TENSOR_INTS(7, 9), shareable), true);
				assert_arrives(numbers(dtype, TENSOR_INTS(70, 300), shareable),
					       true);
			}
}

static void every_layout_arrives(void **state)
{
	static const int64_t sides[] = { 6, 80 }; /* short and long */

	for (int i = 0; i < 2; i++)
		tensor_scope {
			tensor *t = numbers(TENSOR_F32, TENSOR_INTS(sides[i], 5, sides[i]), true);
			tensor *row = ok(tensor_select(t, 0, 1));

			assert_arrives(tensor_transpose(t, 0, 2), true);
			assert_arrives(tensor_permute(t, TENSOR_INTS(1, 2, 0)), true);
			assert_arrives(row, true);
			assert_arrives(tensor_slice(t, 0, 1, 4, 1), true);
			assert_arrives(tensor_slice(t, 2, 1, 5, 2), false);
			assert_arrives(tensor_select(t, 1, 2), false);
			assert_arrives(tensor_expand(row, TENSOR_INTS(4, 5, sides[i])), true);
			assert_arrives(tensor_expand(ok(tensor_slice(t, 0, 1, 2, 1)),
						     TENSOR_INTS(300, 5, sides[i])),
				       true);
			assert_arrives(tensor_slice(t, 0, 2, 2, 1), true);
		}
}

static void large_tensor_arrives_in_pieces(void **state)
{
	tensor_scope
		assert_arrives(far_bytes((9 << 20) + 12345), true);
}

static void many_tensors_arrive_in_a_message(void **state)
{
	tensor_scope {
		tensor *sent[TENSOR_MESSAGE_MAX], *got[TENSOR_MESSAGE_MAX];
		uint64_t tag = 0;

		for (int n = 0; n <= TENSOR_MESSAGE_MAX; n += 16) {
			for (int i = 0; i < n; i++)
				sent[i] = far_bytes(n == 32 ? i * 5000 : i);
			assert_done(
				tensor_send_many(pair.a, sent, n, 1234567890123 + n, 0, LONG_NS));
			assert_int_equal(tensor_recv_many(pair.b, got, TENSOR_MESSAGE_MAX, &tag,
							  LONG_NS),
					 n);
			assert_true(tag == (uint64_t)(1234567890123 + n));
			for (int i = 0; i < n; i++)
				assert_same(got[i], sent[i]);
		}
		assert_done(tensor_send_many(pair.a, sent, 3, 5, 0, LONG_NS));
		assert_fails(tensor_recv_timeout(pair.b, LONG_NS), EMSGSIZE, "3 tensors");
		assert_int_equal(tensor_recv_many(pair.b, got, 3, &tag, LONG_NS), 3);
	}
}

static void read_only_stays_read_only(void **state)
{
	static const int64_t sizes[] = { 10, 100000 };

	for (int i = 0; i < 2; i++)
		tensor_scope {
			tensor *t = numbers(TENSOR_F32, TENSOR_INTS(sizes[i]), true), *got;
			tensor *one = ok(tensor_ones(TENSOR_SCALAR_SHAPE, F32));

			assert_done(tensor_send(pair.a, t, TENSOR_SEND_READONLY));
			got = far_recv(pair.b);
			assert_same(got, t);
			assert_false(tensor_is_writable(got));
			assert_fails(tensor_add_(got, one), EACCES, "read-only");
			assert_int_equal(IN_CHILD(touch(got)), -SIGSEGV);
			/* Nor can it be made writable again by its descriptor. */
			assert_true(tensor_buffer_fd(got, RW) < 0);
			ok(tensor_add_(t, one)); /* the sender's is its own */
		}
}

static void label_of(tensor *t, char *label)
{
	int fd = tensor_buffer_fd(t, RO);
	struct descriptor_page page;
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	assert_int_equal(pread(fd, &page, sizeof(page), st.st_size - DESCRIPTOR_PAGE),
			 sizeof(page));
	memcpy(label, page.d.label, TENSOR_LABEL_MAX);
	close(fd);
}

static void label_arrives(void **state)
{
	static const char text[] = "0123456789012345678901234567890";
	char label[TENSOR_LABEL_MAX];

	if (on_device())
		skip(); /* the kernel has it */
	tensor_scope {
		tensor *t = numbers(TENSOR_F32, TENSOR_INTS(4), true);

		assert_done(tensor_set_label(t, text));
		label_of(far_pass(&pair, t), label);
		assert_string_equal(label, text);
	}
}

static void received_tensor_is_handed_on_without_a_copy(void **state)
{
	struct pair local = pair_open(SOCK_STREAM);

	tensor_scope {
		tensor *got = far_pass(&pair, numbers(TENSOR_F32, TENSOR_INTS(50000), false));
		tensor *next = pass(&local, got);

		assert_int_equal(info_of(got).ino, info_of(next).ino);
	}
	pair_close(&local);
}

static void other_kinds_are_refused(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_to_sparse(ok(tensor_ones(TENSOR_INTS(2, 2), F32))));

		assert_fails(tensor_send(pair.a, t, 0), EOPNOTSUPP, "sparse_coo");
		assert_fails(tensor_send(pair.a, NULL, 0), EINVAL, "NULL");
		assert_fails(tensor_send(pair.a, t, 8), EINVAL, "flags 0x8");
		assert_fails(tensor_send_many(pair.a, &t, 65, 0, 0, -1), EINVAL, "65");
	}
}

/* ---- waiting ---- */

static void both_ends_send_first(void **state)
{
	tensor_scope {
		tensor *t = far_bytes(3 << 20), *u = far_bytes((3 << 20) + 1);

		/* Both messages are received without a call. */
		assert_done(tensor_send_timeout(pair.a, t, 0, LONG_NS));
		assert_done(tensor_send_timeout(pair.b, u, 0, LONG_NS));
		assert_same(far_recv(pair.b), t);
		assert_same(far_recv(pair.a), u);
	}
}

static void *send_ten(void *arg)
{
	for (int i = 0; i < 10; i++)
		tensor_scope
			if (tensor_send_timeout(pair.a, far_bytes(i % 2 ? 100 : 2 << 20), 0,
						LONG_NS) < 0)
				return "failed";
	return NULL;
}

static void threads_send_and_receive(void **state)
{
	pthread_t sender;
	void *failed;

	assert_int_equal(pthread_create(&sender, NULL, send_ten, NULL), 0);
	for (int i = 0; i < 10; i++)
		tensor_scope
			assert_same(far_recv(pair.b), far_bytes(i % 2 ? 100 : 2 << 20));
	pthread_join(sender, &failed);
	assert_null(failed);
}

static void receive_ends_in_time(void **state)
{
	double begin = seconds_of(CLOCK_MONOTONIC);

	assert_fails(tensor_recv_timeout(pair.b, 50 * MS), ETIMEDOUT, "no message");
	assert_in_range((int)far_ms_since(begin), 45, 1000);
	assert_fails(tensor_recv_timeout(pair.b, 0), ETIMEDOUT, "no message");
}

static void descriptor_says_when_to_receive(void **state)
{
	struct pair local = pair_open(SOCK_STREAM);
	tensor_channel *both[] = { local.in, pair.b };
	int fd = tensor_channel_fd(pair.b), flags = fcntl(fd, F_GETFL);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_true(tensor_channel_is_remote(pair.b) && !tensor_channel_is_remote(local.in));
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(tensor_channel_wait(both, 2, 0), -ETIMEDOUT);
	tensor_scope {
		assert_done(tensor_send(pair.a, far_bytes(5), 0));
		assert_int_equal(poll(&p, 1, 10000), 1);
		assert_int_equal(tensor_channel_wait(both, 2, LONG_NS), 1);
		far_recv(pair.b);
		assert_int_equal(poll(&p, 1, 0), 0);
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
		assert_fails(tensor_recv(pair.b), EAGAIN, "recv");
		fcntl(fd, F_SETFL, flags);
		assert_done(tensor_send(local.out, far_bytes(5), 0));
		assert_int_equal(tensor_channel_wait(both, 2, LONG_NS), 0);
	}
	pair_close(&local);
}

static void full_receiver_holds_the_sender(void **state)
{
	struct far_pair p = far_pair_open(NULL, TENSOR_REMOTE_OPTIONS(.records = 2));

	tensor_scope {
		for (int i = 0; i < 2; i++)
			assert_done(tensor_send_timeout(p.a, far_bytes(i), 0, LONG_NS));
		assert_fails(tensor_send_timeout(p.a, far_bytes(2), 0, 20 * MS), ETIMEDOUT,
			     "took no message");
		for (int i = 0; i < 2; i++)
			assert_int_equal(tensor_numel(far_recv(p.b)), i);
		/* What was not sent does not come. */
		assert_done(tensor_send_timeout(p.a, far_bytes(3), 0, LONG_NS));
		assert_int_equal(tensor_numel(far_recv(p.b)), 3);
	}
	far_pair_close(&p);
}

static void nonblocking_send_gives_eagain(void **state)
{
	struct far_pair p = far_pair_open(NULL, TENSOR_REMOTE_OPTIONS(.records = 1));
	int fd = tensor_channel_fd(p.a);

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	tensor_scope {
		assert_fails(tensor_send(p.a, far_bytes(1 << 20), 0), EAGAIN, "send");
		assert_done(tensor_send(p.a, far_bytes(7), 0));
		assert_fails(tensor_send(p.a, far_bytes(7), 0), EAGAIN, "send");
		assert_int_equal(tensor_numel(far_recv(p.b)), 7);
	}
	far_pair_close(&p);
}

static void receiver_limits_the_bytes(void **state)
{
	struct far_pair p = far_pair_open(NULL, TENSOR_REMOTE_OPTIONS(.max_bytes = 1 << 20));

	tensor_scope {
		assert_fails(tensor_send_timeout(p.a, far_bytes((1 << 20) + 1), 0, LONG_NS),
			     EMSGSIZE,
			     "the message has 1048577 bytes, and the peer takes at most 1048576");
		assert_done(tensor_send_timeout(p.a, far_bytes(1 << 20), 0, LONG_NS));
		/* No room until the first one was received. */
		assert_fails(tensor_send_timeout(p.a, far_bytes(40000), 0, 30 * MS), ETIMEDOUT,
			     "took no message");
		assert_int_equal(tensor_numel(far_recv(p.b)), 1 << 20);
		assert_int_equal(tensor_numel(far_pass(&p, far_bytes(40001))), 40001);
	}
	far_pair_close(&p);
}

/* ---- progress ---- */

struct seen {
	int calls, end;
	bool sending;
	uint64_t done, total;
};

static int see(void *context, bool sending, uint64_t done, uint64_t total)
{
	struct seen *s = context;

	if (done < s->done || done > total)
		return -EIO;
	s->calls++;
	s->sending = sending;
	s->done = done;
	s->total = total;
	return s->end && done >= (uint64_t)s->end ? -EINTR : 0;
}

static void sender_sees_the_progress(void **state)
{
	struct seen seen = { 0 };

	assert_done(tensor_channel_set_progress(pair.a, see, &seen));
	tensor_scope
		assert_int_equal(tensor_numel(far_pass(&pair, far_bytes(6 << 20))), 6 << 20);
	assert_done(tensor_channel_set_progress(pair.a, NULL, NULL));
	assert_true(seen.sending && seen.calls > 1 && seen.total == 6 << 20);
	assert_true(seen.done == seen.total);
	assert_fails(tensor_channel_set_progress(NULL, see, &seen), EINVAL, "NULL");
}

static void function_of_the_sender_ends_the_transfer(void **state)
{
	struct seen seen = { .end = 1 << 20 };

	assert_done(tensor_channel_set_progress(pair.a, see, &seen));
	tensor_scope {
		assert_fails(tensor_send_timeout(pair.a, far_bytes(16 << 20), 0, LONG_NS), EINTR,
			     "function for the progress");
		assert_done(tensor_channel_set_progress(pair.a, NULL, NULL));
		assert_true(seen.done >= 1 << 20 && seen.done < 16 << 20);
		/* The channel goes on, without a part of the message. */
		assert_int_equal(tensor_numel(far_pass(&pair, far_bytes(2 << 20))), 2 << 20);
	}
}

static void *send_one(void *arg)
{
	int *code = arg;

	tensor_scope
		*code = tensor_send_timeout(pair.a, far_bytes(64 << 20), 0, LONG_NS);
	return NULL;
}

static void function_of_the_receiver_ends_the_transfer(void **state)
{
	struct seen seen = { .end = 1 };
	pthread_t sender;
	int code = 0;

	assert_done(tensor_channel_set_progress(pair.b, see, &seen));
	assert_int_equal(pthread_create(&sender, NULL, send_one, &code), 0);
	assert_fails(tensor_recv_timeout(pair.b, LONG_NS), EINTR, "function for the progress");
	pthread_join(sender, NULL);
	assert_int_equal(code, -ECANCELED);
	assert_done(tensor_channel_set_progress(pair.b, NULL, NULL));
	assert_false(seen.sending);
	tensor_scope
		assert_int_equal(tensor_numel(far_pass(&pair, far_bytes(2 << 20))), 2 << 20);
}

/* ---- pools and groups ---- */

static void loan_returns_when_the_peer_has_a_copy(void **state)
{
	tensor_pool *pool = tensor_pool_open(TENSOR_INTS(100000), TENSOR_POOL_OPTIONS(.n = 1));
	tensor *got[3];

	assert_non_null(pool);
	for (int i = 0; i < 3; i++)
		tensor_scope {
			tensor *loan = ok(tensor_pool_loan(pool, LONG_NS));

			ok(tensor_fill_(loan, S(i)));
			assert_done(tensor_send_timeout(pair.a, loan, 0, LONG_NS));
			got[i] = tensor_keep(far_recv(pair.b));
		}
	for (int i = 0; i < 3; i++) {
		assert_true(((const float *)tensor_data(got[i]))[99999] == i);
		tensor_release(got[i]);
	}
	assert_int_equal(tensor_pool_available(pool), 1);
	tensor_pool_close(pool);
}

static void groups_refuse_the_channel(void **state)
{
	tensor_channel_group *g = tensor_channel_group_open(NULL);

	assert_fails(tensor_channel_group_add(g, pair.a), ENOTSUP, "another machine");
	tensor_channel_group_close(g);
}

/* ---- what a library does not do ---- */

static void (*handlers[NSIG])(int); /* before UCX was loaded */

static void (*handler_of(int number))(int)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 ? now.sa_handler : SIG_ERR;
}

/* In a process of its own: cmocka has handlers, too. The number of a signal that has got another handler. */
static int changed_handler(tensor_channel *ch)
{
	/* 32 and 33 are of the threads of libc. */
	for (int i = 1; i < NSIG; i++)
		if (i != 32 && i != 33 && handler_of(i) != handlers[i])
			return i;
	return 0;
}

static void handlers_of_signals_stay(void **state)
{
	struct far_peer p = far_start("handlers", NULL);

	assert_int_equal(far_end(&p), 0);
}

/* UCX warns of a variable that it does not know, on the standard output. */
static void nothing_is_printed(void **state)
{
	int out = dup(1), err = dup(2), file = memfd_create("printed", 0);
	struct far_peer p;
	char text[256] = "";

	setenv("UCX_NO_SUCH_VARIABLE", "1", 1);
	fflush(NULL);
	dup2(file, 1);
	dup2(file, 2);
	p = far_start("echo", NULL);
	far_end(&p);
	dup2(out, 1);
	dup2(err, 2);
	unsetenv("UCX_NO_SUCH_VARIABLE");
	assert_true(pread(file, text, sizeof(text) - 1, 0) >= 0);
	assert_string_equal(text, "");
	close(out);
	close(err);
	close(file);
}

static void addresses_are_checked(void **state)
{
	static const char *const bad[] = { "",
					   "127.0.0.1:1",
					   "tcp://h:1",
					   "ucx://h",
					   "ucx://:1",
					   "ucx://h:",
					   "ucx://h:70000",
					   "ucx://h:1x",
					   "ucx://h:0",
					   "ucx://[::1:80",
					   "ucx://[]:80",
					   "ucx://h:-1",
					   "ucx://h:000001" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_fails(tensor_channel_connect(bad[i], NULL, 0), EINVAL, "ucx://HOST:PORT");
	assert_fails(tensor_channel_connect(NULL, NULL, 0), EINVAL, "NULL");
	assert_fails(tensor_channel_listen("x", NULL), EINVAL, "ucx://HOST:PORT");
	assert_fails(tensor_channel_connect("ucx://no.such.host.invalid:1", NULL, 0), EHOSTUNREACH,
		     "no.such.host");
	assert_fails(tensor_channel_listen("ucx://127.0.0.1:0",
					   TENSOR_REMOTE_OPTIONS(.timeout_ns = 1)),
		     EINVAL, "100 ms");
	assert_fails(tensor_channel_listen("ucx://127.0.0.1:0",
					   TENSOR_REMOTE_OPTIONS(.records = -1)),
		     EINVAL, "-1 records");
	assert_fails(tensor_channel_accept(NULL, 0), EINVAL, "NULL");
	tensor_channel_listener_close(NULL);
}

static void nobody_listens(void **state)
{
	tensor_channel_listener *l = far_listen(NULL);
	char address[64];

	snprintf(address, sizeof(address), "%s", tensor_channel_listener_address(l));
	assert_fails(tensor_channel_accept(l, 20 * MS), ETIMEDOUT, "in time");
	assert_fails(tensor_channel_listen(address, NULL), EADDRINUSE, "ucp_listener_create");
	tensor_channel_listener_close(l);
	assert_fails(tensor_channel_connect(address, NULL, LONG_NS), ECONNREFUSED, "127.0.0.1");
}

static void plugin_that_is_missing_is_named(void **state)
{
	struct far_peer p;

	setenv("TENSOR_UCX_PLUGIN", "/no/such/plugin.so", 1);
	p.pid = far_exec("echo", "ucx://127.0.0.1:1");
	unsetenv("TENSOR_UCX_PLUGIN");
	assert_int_equal(far_wait(&p), ENOTSUP);
}

/* ---- two processes ---- */

static int echo(tensor_channel *ch)
{
	tensor *got[TENSOR_MESSAGE_MAX];
	uint64_t tag;
	int n;

	while ((n = tensor_recv_many(ch, got, TENSOR_MESSAGE_MAX, &tag, -1)) >= 0) {
		if (tensor_send_many(ch, got, n, tag + 1, 0, -1) < 0)
			return 1;
		for (int i = 0; i < n; i++)
			tensor_release(got[i]);
	}
	return n == -EPIPE ? 0 : 2;
}

static void another_process_sends_back_what_it_gets(void **state)
{
	struct far_peer p = far_start("echo", NULL);

	for (int i = 0; i < 20; i++)
		tensor_scope {
			tensor *t[2] = { far_bytes(i * 1000), far_bytes(i % 4 ? i : 5 << 20) };
			tensor *got[2];
			uint64_t tag;

			assert_done(tensor_send_many(p.ch, t, 2, (uint64_t)i, 0, LONG_NS));
			assert_int_equal(tensor_recv_many(p.ch, got, 2, &tag, LONG_NS), 2);
			assert_true(tag == (uint64_t)i + 1);
			assert_same(got[0], t[0]);
			assert_same(got[1], t[1]);
		}
	assert_int_equal(far_end(&p), 0);
}

#define IN_PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(int argc, char **argv)
{
	static const struct far_role roles[] = { { "echo", echo },
						 { "handlers", changed_handler },
						 { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		IN_PAIR(every_dtype_and_size_arrives),
		IN_PAIR(every_layout_arrives),
		IN_PAIR(large_tensor_arrives_in_pieces),
		IN_PAIR(many_tensors_arrive_in_a_message),
		IN_PAIR(read_only_stays_read_only),
		IN_PAIR(label_arrives),
		IN_PAIR(received_tensor_is_handed_on_without_a_copy),
		IN_PAIR(other_kinds_are_refused),
		IN_PAIR(both_ends_send_first),
		IN_PAIR(threads_send_and_receive),
		IN_PAIR(receive_ends_in_time),
		IN_PAIR(descriptor_says_when_to_receive),
		cmocka_unit_test(full_receiver_holds_the_sender),
		cmocka_unit_test(nonblocking_send_gives_eagain),
		cmocka_unit_test(receiver_limits_the_bytes),
		IN_PAIR(sender_sees_the_progress),
		IN_PAIR(function_of_the_sender_ends_the_transfer),
		IN_PAIR(function_of_the_receiver_ends_the_transfer),
		IN_PAIR(loan_returns_when_the_peer_has_a_copy),
		IN_PAIR(groups_refuse_the_channel),
		cmocka_unit_test(handlers_of_signals_stay),
		cmocka_unit_test(nothing_is_printed),
		cmocka_unit_test(addresses_are_checked),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(plugin_that_is_missing_is_named),
		cmocka_unit_test(another_process_sends_back_what_it_gets),
	};

	for (int i = 1; i < NSIG; i++)
		handlers[i] = handler_of(i);
	far_main(argc, argv, roles);
	return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
