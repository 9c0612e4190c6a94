// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A hostile sender of messages of several tensors and of leases: notes with invalid members and descriptors, parts without
 * a head, heads without parts. Each is refused or dropped; nothing leaks, and the next valid message is received.
 * GROUP_MESSAGES sets another number of random messages than that of `make test`, SEED another seed.
 */
#include "rings.h"

#include "lib/sharing/lease.h"

/* A receiving channel and the other end as a plain socket. */
struct link {
	int raw, own;
	tensor_channel *ch;
	struct wire_message part; /* of a valid part, whose buffer the receiver has */
};

static struct wire_message note(uint32_t kind)
{
	return (struct wire_message){ .magic = WIRE_MAGIC,
				      .version = WIRE_VERSION,
				      .size = sizeof(struct wire_message),
				      .flags = WIRE_NOTE | (kind == WIRE_NOTE_HEAD ? 0 : WIRE_FD),
				      .dtype = kind,
				      .offset = kind == WIRE_NOTE_HEAD ? -1 : 0 };
}

static struct wire_message head(uint32_t parts, int64_t lease, uint64_t generation)
{
	struct wire_message m = note(WIRE_NOTE_HEAD);

	m.slot = parts;
	m.dev = 99;
	m.offset = lease;
	m.ino = generation;
	return m;
}

static void put(struct link *l, const struct wire_message *m, int fd)
{
	if (fd >= 0)
		assert_int_equal(wire_test_send(l->raw, m, fd), sizeof(*m));
	else
		assert_int_equal(send(l->raw, m, sizeof(*m), MSG_NOSIGNAL), sizeof(*m));
}

static struct link link_open(int type)
{
	tensor *t = ok(tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(7), SHAREABLE(TENSOR_F32)));
	struct wire_message m;
	tensor_channel *out;
	int ends[2], sent[2], fd;
	struct link l;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sent), 0);
	out = tensor_channel_open(sent[0]);
	assert_done(tensor_send(out, t, 0));
	fd = wire_test_recv(sent[1], &m);
	tensor_channel_close(out);
	close(sent[0]);
	close(sent[1]);
	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
	l.raw = ends[0];
	l.own = ends[1];
	l.ch = tensor_channel_open(l.own);
	assert_int_equal(wire_test_send(l.raw, &m, fd), sizeof(m));
	tensor_release(ok(tensor_recv(l.ch)));
	tensor_release(t);
	close(fd);
	m.flags = WIRE_PART;
	l.part = m;
	return l;
}

static void link_close(struct link *l)
{
	tensor_channel_close(l->ch);
	close(l->raw);
	close(l->own);
}

/* A message of two tensors is received. */
static void assert_valid_message_received(struct link *l)
{
	struct wire_message m = head(2, -1, 0);
	uint64_t tag = 0;
	tensor *t[2];

	put(l, &m, -1);
	put(l, &l->part, -1);
	put(l, &l->part, -1);
	assert_int_equal(tensor_recv_many(l->ch, t, 2, &tag, 0), 2);
	assert_int_equal(tag, 99);
	for (int i = 0; i < 2; i++) {
		assert_true(((const float *)tensor_data(t[i]))[3] == 7);
		tensor_release(t[i]);
	}
}

static void assert_refused(struct link *l, const struct wire_message *m, int fd, const char *words)
{
	put(l, m, fd);
	assert_fails(tensor_recv_timeout(l->ch, 0), EBADMSG, words);
	assert_fails(tensor_recv_timeout(l->ch, 0), ETIMEDOUT, "in time");
	assert_valid_message_received(l);
}

static void invalid_notes_are_refused(void **state)
{
	struct link l = link_open(SOCK_STREAM);
	int before;

	link_close(&l);
	before = count_fds();
	for (int k = 0; k < 2; k++) {
		struct wire_message m = note(WIRE_NOTE_HEAD);

		l = link_open(k ? SOCK_STREAM : SOCK_SEQPACKET);
		m.dtype = 0;
		assert_refused(&l, &m, -1, "kind");
		m.dtype = 4;
		m.flags |= WIRE_FD;
		assert_refused(&l, &m, l.own, "kind");
		m = head(65, -1, 0);
		assert_refused(&l, &m, -1, "many");
		m = head(1, -2, 0);
		assert_refused(&l, &m, -1, "many");
		m = head(1, 0, 1);
		assert_refused(&l, &m, -1, "without a table");
		m = head(1, -1, 0);
		m.ndim = 1;
		assert_refused(&l, &m, -1, "member");
		m = head(1, -1, 0);
		m.strides[15] = 1;
		assert_refused(&l, &m, -1, "member");
		m = head(1, -1, 0);
		assert_refused(&l, &m, l.own, "fds");
		m.flags |= WIRE_READONLY;
		assert_refused(&l, &m, -1, "kind");
		for (uint32_t kind = WIRE_NOTE_LEASES; kind <= WIRE_NOTE_HOLDER; kind++) {
			m = note(kind);
			assert_refused(&l, &m, -1, "fds");
			m.slot = 1;
			assert_refused(&l, &m, l.own, "member");
		}
		assert_refused(&l, &l.part, -1, "without the head");
		link_close(&l);
	}
	assert_fds(before);
}

/* A memfd of the table's size, or nearly. */
static int table(size_t bytes, bool sealed)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (sealed)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

static void invalid_tables_are_refused(void **state)
{
	size_t bytes = sizeof(struct lease_page);
	struct wire_message leases = note(WIRE_NOTE_LEASES), holder = note(WIRE_NOTE_HOLDER);
	int before, ends[2];

	before = count_fds();
	for (int k = 0; k < 6; k++) {
		struct link l = link_open(SOCK_SEQPACKET);
		int fd = table(k == 0 ? bytes - 4096 : k == 1 ? bytes + 4096 : bytes, k != 2);

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		assert_refused(&l, &holder, ends[1], "without a table");
		assert_refused(&l, &leases, ends[1], "invalid table");
		put(&l, &leases, fd);
		if (k < 3)
			assert_refused(&l, &holder, ends[1], "invalid table");
		if (k == 3) /* no socket */
			assert_refused(&l, &holder, fd, "invalid table");
		if (k > 3)
			assert_refused(&l, &leases, fd, "second table");
		if (k == 5) {
			put(&l, &holder, ends[1]);
			assert_refused(&l, &leases, fd, "second table");
			assert_refused(&l, &holder, ends[1], "without a table");
		}
		close(fd);
		close(ends[0]);
		close(ends[1]);
		link_close(&l);
	}
	assert_fds(before);
	assert_int_equal(lease_mappings(NULL, NULL), 0);
}

/* A valid table, in which the sender writes what it likes. */
static void lease_that_was_not_given_drops_the_message(void **state)
{
	struct wire_message leases = note(WIRE_NOTE_LEASES), holder = note(WIRE_NOTE_HOLDER), m;
	int fd = table(sizeof(struct lease_page), true), ends[2];
	struct link l = link_open(SOCK_SEQPACKET);
	struct lease_page *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	tensor *t;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	put(&l, &leases, fd);
	put(&l, &holder, ends[1]);
	m = head(1, LEASE_WORDS, 1);
	assert_refused(&l, &m, -1, "without a table");
	for (uint64_t word = 0; word < 8; word++) {
		atomic_store(&page->words[LEASE_WORDS - 1], word);
		m = head(1, LEASE_WORDS - 1, 1);
		put(&l, &m, -1);
		put(&l, &l.part, -1);
		t = tensor_recv_timeout(l.ch, 0);
		if (word != lease_word(1, LEASE_SENT)) {
			assert_null(t);
			assert_int_equal(tensor_last_error()->code, ETIMEDOUT);
			continue;
		}
		assert_int_equal(page->words[LEASE_WORDS - 1], lease_word(1, LEASE_TAKEN));
		/* Without a sender that waits or a socket that takes the byte. */
		shutdown(ends[0], SHUT_RD);
		atomic_store(&page->waiting, UINT32_MAX);
		tensor_release(ok(t));
		assert_int_equal(page->words[LEASE_WORDS - 1], lease_word(1, LEASE_RELEASED));
	}
	munmap(page, sizeof(*page));
	close(fd);
	close(ends[0]);
	close(ends[1]);
	link_close(&l);
}

static void part_that_is_refused_loses_its_message_alone(void **state)
{
	for (int bad = 0; bad < 3; bad++) {
		struct link l = link_open(SOCK_STREAM);
		struct wire_message m = head(3, -1, 0);

		put(&l, &m, -1);
		for (int i = 0; i < 3; i++) {
			m = l.part;
			if (i == bad)
				m.offset = 1 << 30;
			put(&l, &m, -1);
		}
		assert_fails(tensor_recv_timeout(l.ch, 0), EBADMSG, "fit");
		assert_fails(tensor_recv_timeout(l.ch, 0), ETIMEDOUT, "in time");
		assert_valid_message_received(&l);
		link_close(&l);
	}
}

static uint64_t draw(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* Heads, parts, tensors and noise in any order. */
static void any_order_gives_messages_or_errors(void **state)
{
	uint64_t seed = (uint64_t)count_of("SEED", 1) | 1;
	long n = count_of("GROUP_MESSAGES", 20000), received = 0, refused = 0;
	struct tensor_live_counts before, after;
	struct link l = link_open(SOCK_SEQPACKET);

	tensor_live_counts(&before);
	for (long i = 0; i < n; i++) {
		struct wire_message m = draw(&seed) % 3 ? l.part : head(draw(&seed) % 4, -1, 0);
		tensor *t[WIRE_PARTS];
		int got;

		if (draw(&seed) % 8 == 0)
			m.flags ^= 1u << (draw(&seed) % 6 + (draw(&seed) % 2));
		if (draw(&seed) % 8 == 0)
			m.slot ^= 1u << draw(&seed) % 32;
		if (m.flags & WIRE_FD)
			m.flags &= ~WIRE_FD;
		put(&l, &m, -1);
		got = tensor_recv_many(l.ch, t, WIRE_PARTS, NULL, 0);
		assert_true(got >= 0 || got == -EBADMSG || got == -ETIMEDOUT);
		received += got > 0;
		refused += got == -EBADMSG;
		for (int k = 0; k < got; k++) {
			assert_true(((const float *)tensor_data(t[k]))[3] == 7);
			tensor_release(t[k]);
		}
	}
	assert_true(received > n / 50 && refused > n / 50);
	assert_valid_message_received(&l);
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
	link_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalid_notes_are_refused),
		cmocka_unit_test(invalid_tables_are_refused),
		cmocka_unit_test(lease_that_was_not_given_drops_the_message),
		cmocka_unit_test(part_that_is_refused_loses_its_message_alone),
		cmocka_unit_test(any_order_gives_messages_or_errors),
	};

	return cmocka_run_group_tests_name("group_hostile", tests, NULL, NULL);
}
