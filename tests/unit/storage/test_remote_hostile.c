// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Peers of a channel between machines that send other frames than this library would. Each is an error of the channel or of the
 * message: no crash, and no more memory than the receiver permits.
 */
#include "remote_hostile.h"

/* The victim ends the channel with this reason. */
static void assert_ends(struct hostile *h, const char *words)
{
	double begin = seconds_of(CLOCK_MONOTONIC);
	tensor *t = NULL;

	while (far_ms_since(begin) < 3000) {
		h->transport->step(h->c);
		t = tensor_recv_timeout(h->victim, 5 * MS);
		if (t || tensor_last_error()->code != ETIMEDOUT)
			break;
	}
	assert_null(t);
	assert_fails(tensor_recv(h->victim), EPROTO, words);
	tensor_scope
		assert_fails(tensor_send(h->victim, far_bytes(4), 0), EPROTO, words);
}

/* ---- frames ---- */

static void assert_frame_ends(struct frame f, const void *data, size_t bytes, const char *words)
{
	struct hostile h;

	begin(&h, NULL);
	send_frame(&h, f, data, bytes);
	assert_ends(&h, words);
	end(&h);
}

static void frames_are_checked(void **state)
{
	struct frame wrong = frame(FRAME_PING, 0, 0, 0, 0);
	char data[64] = { 0 };

	wrong.magic = __builtin_bswap32(FRAME_MAGIC);
	assert_frame_ends(wrong, NULL, 0, "another byte order");
	wrong = frame(FRAME_PING, 0, 0, 0, 0);
	wrong.version = FRAME_VERSION + 1;
	assert_frame_ends(wrong, NULL, 0, "another version");
	wrong = frame(FRAME_KINDS, 0, 0, 0, 0);
	assert_frame_ends(wrong, NULL, 0, "unknown kind");
	wrong.kind = 0;
	assert_frame_ends(wrong, NULL, 0, "unknown kind");
	assert_frame_ends(frame(FRAME_PING, 0, 0, 0, 0), data, 8, "more or less data");
	assert_frame_ends(frame(FRAME_HELLO, 0, 1, 1, 1), NULL, 0, "greets twice");
	assert_frame_ends(frame(FRAME_GRANT, 1, 0, 0, 0), NULL, 0, "answer to nothing");
	assert_frame_ends(frame(FRAME_DONE, 1, 0, 0, 0), NULL, 0, "answer to nothing");
	assert_frame_ends(frame(FRAME_TAKEN, 0, 1, 0, 0), NULL, 0, "received more messages");
	assert_frame_ends(frame(FRAME_PIECE_OF, 5, 0, 0, 0), data, 64,
			  "more than it has announced");
	assert_frame_ends(frame(FRAME_PIECE_OF, 0, 0, 0, 0), NULL, 0, "more or less data");
	assert_frame_ends(frame(FRAME_MESSAGE, 1, 0, 65, 0), NULL, 0, "too many tensors");
	assert_frame_ends(frame(FRAME_MESSAGE, 1, 0, UINT64_MAX, 0), NULL, 0, "too many tensors");
	assert_frame_ends(frame(FRAME_MESSAGE, 1, 0, 1, 0), data, 64, "more or less data");
	assert_frame_ends(frame(FRAME_MESSAGE, 1, 0, 0, 1 << 20), NULL, 0,
			  "more or fewer bytes than the message");
}

static void short_header_ends_the_channel(void **state)
{
	struct frame f = frame(FRAME_PING, 0, 0, 0, 0);
	struct hostile h;

	for (size_t n = 0; n < sizeof(f); n += 7) {
		begin(&h, NULL);
		send_raw(&h, &f, n, NULL, 0);
		assert_ends(&h, n < 6 ? "no channel of this library" : "unknown kind");
		end(&h);
	}
}

static void greeting_comes_first(void **state)
{
	tensor_channel_listener *l = far_listen(NULL);
	struct hostile h;

	connect_to(&h, l);
	send_frame(&h, frame(FRAME_PING, 0, 0, 0, 0), NULL, 0);
	await(&h, FRAME_HELLO);
	for (int i = 0; i < 2000 && !h.ended; i++) {
		h.transport->step(h.c);
		usleep(500);
	}
	assert_true(h.ended); /* the connection is closed */
	assert_fails(tensor_channel_accept(l, 20 * MS), ETIMEDOUT, "in time");
	h.transport->close(h.c, 0);
	tensor_channel_listener_close(l);
}

/* ---- tables ---- */

static void assert_table_ends(struct frame_tensor t, uint64_t total, const char *words)
{
	size_t elements = total <= FRAME_SHORT ? total : 0;
	char *data = calloc(1, sizeof(t) + elements);

	memcpy(data, &t, sizeof(t));
	assert_frame_ends(frame(FRAME_MESSAGE, 1, 0, 1, total), data, sizeof(t) + elements, words);
	free(data);
}

static void tables_are_checked(void **state)
{
	struct frame_tensor t = floats_of(8);

	assert_table_ends(t, 36, "more or fewer bytes");
	t.dtype = 0;
	assert_table_ends(t, 32, "dtype");
	t.dtype = TENSOR_DTYPE_COUNT;
	assert_table_ends(t, 32, "dtype");
	t = floats_of(8);
	t.ndim = 17;
	assert_table_ends(t, 32, "too many dimensions");
	t = floats_of(8);
	t.flags = 2;
	assert_table_ends(t, 32, "unknown flag");
	t = floats_of(8);
	t.sizes[1] = 1;
	assert_table_ends(t, 32, "size or a stride");
	t = floats_of(8);
	t.sizes[0] = -1;
	assert_table_ends(t, 32, "does not fit");
	t.sizes[0] = INT64_MAX;
	assert_table_ends(t, 32, "does not fit");
	t = floats_of(8);
	t.strides[0] = -1;
	assert_table_ends(t, 32, "size or a stride");
	t.strides[0] = INT64_MAX;
	assert_table_ends(t, 32, "does not fit");
	t = floats_of(8);
	t.sizes[0] = 9;
	assert_table_ends(t, 32, "does not fit");
	t = floats_of(8);
	t.bytes = UINT64_MAX;
	assert_table_ends(t, 32, "more or fewer bytes");
	t = floats_of(8);
	t.ndim = 3;
	t.sizes[1] = t.sizes[2] = INT64_C(1) << 32;
	assert_table_ends(t, 32, "does not fit");
	t = floats_of(8);
	strcpy(t.label, "a\033[31m");
	assert_table_ends(t, 32, "label");
	memset(t.label, 'x', sizeof(t.label));
	assert_table_ends(t, 32, "label");
}

static void bytes_that_overflow_are_refused(void **state)
{
	struct frame_tensor t[2] = { floats_of(1), floats_of(1) };

	t[0].bytes = UINT64_MAX - 3;
	t[1].bytes = 100004;
	assert_frame_ends(frame(FRAME_MESSAGE, 1, 0, 2, 100000), t, sizeof(t), "overflow");
}

/* ---- memory ---- */

/* The receiver refuses what is more than it permits, and goes on. */
static void claimed_memory_is_limited(void **state)
{
	struct frame_tensor t = floats_of(INT64_C(1) << 40);
	const struct frame *f;
	struct hostile h;

	begin(&h, TENSOR_REMOTE_OPTIONS(.max_bytes = 1 << 20));
	send_frame(&h, frame(FRAME_MESSAGE, 1, 0, 1, t.bytes), &t, sizeof(t));
	f = await(&h, FRAME_REFUSED);
	assert_true(f && f->message == 1 && f->values[0] == EMSGSIZE && f->values[1] == 1 << 20);
	t = floats_of(5000);
	send_frame(&h, frame(FRAME_MESSAGE, 2, 0, 1, t.bytes), &t, sizeof(t));
	assert_true((f = await(&h, FRAME_GRANT)) && f->message == 2);
	end(&h);
}

/* Grants a message of 20,000 bytes. */
static void begin_granted(struct hostile *h)
{
	struct frame_tensor t = floats_of(5000);

	begin(h, NULL);
	send_frame(h, frame(FRAME_MESSAGE, 1, 0, 1, t.bytes), &t, sizeof(t));
	assert_non_null(await(h, FRAME_GRANT));
}

static void pieces_stay_within_the_message(void **state)
{
	static const struct {
		uint64_t message, part, at;
	} bad[] = { { 2, 0, 0 },     { 1, 1, 0 },	   { 1, UINT64_MAX, 0 },
		    { 1, 0, 19000 }, { 1, 0, UINT64_MAX }, { 1, 0, UINT64_MAX - 1000 } };
	char *data = calloc(1, 20000);
	struct hostile h;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		begin_granted(&h);
		send_frame(&h, frame(FRAME_PIECE_OF, bad[i].message, bad[i].part, bad[i].at, 0),
			   data, 2000);
		assert_ends(&h, "more than it has announced");
		end(&h);
	}
	/* The same bytes twice, then more than all. */
	begin_granted(&h);
	send_frame(&h, frame(FRAME_PIECE_OF, 1, 0, 0, 0), data, 12000);
	send_frame(&h, frame(FRAME_PIECE_OF, 1, 0, 0, 0), data, 12000);
	assert_ends(&h, "more than it has announced");
	end(&h);
	free(data);
}

static void message_in_the_middle_of_another_ends_the_channel(void **state)
{
	struct frame_tensor t = floats_of(5000);
	struct hostile h;

	begin_granted(&h);
	send_frame(&h, frame(FRAME_MESSAGE, 2, 0, 1, t.bytes), &t, sizeof(t));
	assert_ends(&h, "more messages than it may");
	end(&h);
}

static void flood_of_messages_ends_the_channel(void **state)
{
	struct hostile h;
	int n = 0;

	begin(&h, TENSOR_REMOTE_OPTIONS(.records = 4));
	for (uint64_t i = 1; i <= 5; i++)
		send_frame(&h, frame(FRAME_MESSAGE, i, i, 0, 0), NULL, 0);
	for (int i = 0; i < 200 && !h.ended; i++) {
		h.transport->step(h.c);
		usleep(5000);
	}
	assert_true(h.ended);
	/* Those before it were complete. */
	while (tensor_recv_many(h.victim, NULL, 0, NULL, LONG_NS) == 0)
		n++;
	assert_int_equal(n, 4);
	assert_fails(tensor_recv(h.victim), EPROTO, "more messages than it may");
	end(&h);
}

static void abort_of_the_sender_is_answered(void **state)
{
	struct frame_tensor t = floats_of(5000);
	const struct frame *f;
	struct hostile h;

	begin_granted(&h);
	send_frame(&h, frame(FRAME_ABORT, 1, 0, 0, 0), NULL, 0);
	f = await(&h, FRAME_REFUSED);
	assert_true(f && f->values[0] == ECANCELED);
	/* A piece that was under way is dropped. */
	send_frame(&h, frame(FRAME_PIECE_OF, 1, 0, 0, 0), &t, sizeof(t));
	send_frame(&h, frame(FRAME_ABORT, 1, 0, 0, 0), NULL, 0);
	send_frame(&h, frame(FRAME_MESSAGE, 2, 9, 0, 0), NULL, 0);
	for (int i = 0; i < 50; i++) {
		h.transport->step(h.c);
		usleep(1000);
	}
	assert_int_equal(tensor_recv_many(h.victim, NULL, 0, NULL, LONG_NS), 0);
	end(&h);
}

/* A receiver that says DONE at once has not got the elements. */
static void answer_before_the_elements_is_refused(void **state)
{
	struct hostile h;
	int code = 0;

	begin(&h, NULL);
	tensor_scope {
		tensor *t = far_bytes(5 << 20);

		/* The answer is there before the question. */
		send_frame(&h, frame(FRAME_DONE, 1, 0, 0, 0), NULL, 0);
		for (int i = 0; i < 50; i++) {
			h.transport->step(h.c);
			usleep(1000);
		}
		code = tensor_send_timeout(h.victim, t, 0, 1000 * MS);
	}
	assert_int_equal(code, -EPROTO);
	end(&h);
}

static void silent_peer_ends_in_time(void **state)
{
	struct hostile h;
	double since;

	begin(&h, TENSOR_REMOTE_OPTIONS(.timeout_ns = 200 * MS));
	since = seconds_of(CLOCK_MONOTONIC);
	assert_fails(tensor_recv_timeout(h.victim, LONG_NS), ECONNRESET, "200 ms");
	assert_true(far_ms_since(since) < 200 + 50 + 200);
	end(&h);
}

/* Random frames; SEED and ROUNDS in the environment. */
static void random_frames_end_no_process(void **state)
{
	long rounds = getenv("ROUNDS") ? atol(getenv("ROUNDS")) : 15;
	struct frame_tensor tables[4];
	struct hostile h;

	srandom(getenv("SEED") ? (unsigned)atol(getenv("SEED")) : 1);
	for (long i = 0; i < rounds; i++) {
		begin(&h, TENSOR_REMOTE_OPTIONS(.max_bytes = 1 << 20));
		for (int j = 0; j < 40; j++) {
			uint64_t bytes = (uint64_t)random() % 4 * 4000 * 4;
			struct frame f = frame((enum frame_kind)(random() % FRAME_KINDS),
					       1 + (uint64_t)j / 4, (uint64_t)random() % 3,
					       (uint64_t)random() % 3, bytes);
			char *at = (char *)tables + random() % (long)sizeof(tables);

			for (size_t k = 0; k < ARRAY_SIZE(tables); k++)
				tables[k] = floats_of((int64_t)bytes / 4);
			if (random() % 4 == 0)
				*at = (char)random();
			send_frame(&h, f, tables,
				   f.kind == FRAME_MESSAGE  ? f.values[1] * sizeof(*tables) :
				   f.kind == FRAME_PIECE_OF ? (size_t)random() % sizeof(tables) :
							      0);
			h.transport->step(h.c);
		}
		for (int j = 0; j < 5; j++) {
			h.transport->step(h.c);
			tensor_release(tensor_recv_timeout(h.victim, MS));
		}
		end(&h);
	}
}

int main(int argc, char **argv)
{
	static const struct far_role roles[] = { { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_checked),
		cmocka_unit_test(short_header_ends_the_channel),
		cmocka_unit_test(greeting_comes_first),
		cmocka_unit_test(tables_are_checked),
		cmocka_unit_test(bytes_that_overflow_are_refused),
		cmocka_unit_test(claimed_memory_is_limited),
		cmocka_unit_test(pieces_stay_within_the_message),
		cmocka_unit_test(message_in_the_middle_of_another_ends_the_channel),
		cmocka_unit_test(flood_of_messages_ends_the_channel),
		cmocka_unit_test(abort_of_the_sender_is_answered),
		cmocka_unit_test(answer_before_the_elements_is_refused),
		cmocka_unit_test(silent_peer_ends_in_time),
		cmocka_unit_test(random_frames_end_no_process),
	};

	far_main(argc, argv, roles);
	return cmocka_run_group_tests_name("remote_hostile", tests, NULL, NULL);
}
