// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The memory of a ring is the peer's to write: random records, and random words all over it while both sides use it.
 * Whatever comes is a tensor within its buffer or an error; no call crashes, hangs or runs past its timeout.
 * RING_RECORDS and RING_ROUNDS set other numbers than those of `make test`, SEED another seed.
 */
#include "rings.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static uint64_t seed;

static uint64_t draw(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* One direction with a ring, whose memory the test writes. */
struct target {
	struct pair p;
	tensor *t;
	struct ring_page *page;
	struct ring_record *records;
	size_t bytes;
};

static void target_open(struct target *g)
{
	void *page = NULL;

	g->p = ring_pair_open(SOCK_SEQPACKET,
			      TENSOR_CHANNEL_OPTIONS(.ring = true, .records = 8, .spin_ns = 1000));
	g->t = ok(tensor_ones(TENSOR_INTS(4, 8), SHAREABLE(TENSOR_F32)));
	for (int i = 0; i < 4; i++) {
		assert_done(tensor_send(g->p.out, g->t, 0));
		tensor_release(ok(tensor_recv(g->p.in)));
	}
	assert_int_equal(ring_mappings(&page, &g->bytes), 2);
	g->page = page;
	g->records = (void *)((char *)page + 4096);
}

static void target_close(struct target *g)
{
	pair_close(&g->p);
	tensor_release(g->t);
}

/* Reads the elements at both ends of the memory that the tensor claims. */
static void touch(tensor *t)
{
	const char *data = tensor_data(t);
	int64_t low = 0, high = 0, item = (int64_t)tensor_itemsize(tensor_dtype(t));
	volatile char sum = 0;

	if (!tensor_numel(t))
		return;
	for (int i = 0; i < tensor_dim(t); i++) {
		int64_t step = (tensor_sizes(t)[i] - 1) * tensor_strides(t)[i];

		*(step < 0 ? &low : &high) += step;
	}
	for (int64_t i = 0; i < item; i++)
		sum += data[low * item + i] + data[high * item + i];
}

/* A record that a sender wrote, with changes. */
static void forge(struct target *g, const struct ring_record *valid)
{
	uint64_t at = atomic_load(&g->page->tail);
	struct ring_record *r = &g->records[at % 8];
	int changes = (int)(draw(&seed) % 4);

	r->kind = valid->kind;
	r->bytes = valid->bytes;
	memcpy(r->body, valid->body, sizeof(r->body));
	for (int i = 0; i < changes; i++) {
		unsigned char *b = r->body + draw(&seed) % valid->bytes;

		*b = draw(&seed) % 2 ? (unsigned char)draw(&seed) :
				       *b ^ (unsigned char)(1 << draw(&seed) % 8);
	}
	if (draw(&seed) % 8 == 0)
		for (size_t i = 0; i < RING_BODY; i++)
			r->body[i] = (unsigned char)draw(&seed);
	if (draw(&seed) % 8 == 0)
		r->bytes = (uint32_t)(draw(&seed) >> draw(&seed) % 64);
	if (draw(&seed) % 32 == 0)
		r->kind = (uint32_t)draw(&seed);
	atomic_store(&r->seq, draw(&seed) % 32 ? at + 1 : draw(&seed));
}

static void random_records_are_tensors_or_errors(void **state)
{
	long n = count_of("RING_RECORDS", 20000), accepted = 0, refused = 0;
	struct ring_record valid;
	struct target g;

	target_open(&g);
	valid = g.records[(atomic_load(&g.page->tail) - 1) % 8];
	for (long i = 0; i < n; i++) {
		tensor *t;

		forge(&g, &valid);
		t = tensor_recv_timeout(g.p.in, 0);
		if (t) {
			touch(t);
			tensor_release(t);
			accepted++;
			continue;
		}
		refused++;
		assert_true(tensor_last_error()->code == EBADMSG ||
			    tensor_last_error()->code == ETIMEDOUT);
		target_close(&g);
		target_open(&g);
		valid = g.records[(atomic_load(&g.page->tail) - 1) % 8];
	}
	target_close(&g);
	/* Both happen often, or the records test nothing. */
	assert_true(accepted > n / 20 && refused > n / 20);
}

struct writer {
	struct target *g;
	_Atomic uint64_t *leases; /* or NULL: the ring */
	_Atomic bool begun, stop;
	uint64_t seed;
};

/* All states of the first generations, in the first words of the table and in its flags. */
static void *overwrite_leases(void *arg)
{
	struct writer *w = arg;

	while (!w->stop) {
		uint64_t r = draw(&w->seed);
		uint64_t word = r % 8 ? r / 8 % 4096 : draw(&w->seed);

		atomic_store(&w->leases[r % 64 ? 8 + draw(&w->seed) % 8 : draw(&w->seed) % 2],
			     word);
		w->begun = true;
		if (r % 16 == 0)
			sched_yield();
	}
	return NULL;
}

static void *overwrite(void *arg)
{
	struct writer *w = arg;
	_Atomic uint64_t *words = (void *)w->g->page;
	size_t n = w->g->bytes / 8;

	while (!w->stop) {
		uint64_t r = draw(&w->seed);
		/* Small numbers are plausible sequence numbers, sizes and dimensions. */
		uint64_t word = r % 3 ? r % 64 : draw(&w->seed);

		/* The positions more often than the rest. */
		atomic_store(&words[r % 5 ? draw(&w->seed) % n : (r % 2 ? 0 : 512 + r % 8 * 48)],
			     word);
		w->begun = true;
		if (r % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void ring_overwritten_during_use_gives_errors(void **state)
{
	long rounds = count_of("RING_ROUNDS", 200), errors = 0;

	for (long i = 0; i < rounds; i++) {
		struct target g;
		struct writer w = { &g, NULL, false, false, draw(&seed) | 1 };
		double start = seconds_of(CLOCK_MONOTONIC);
		pthread_t thread;

		target_open(&g);
		assert_int_equal(pthread_create(&thread, NULL, overwrite, &w), 0);
		while (!w.begun)
			sched_yield();
		for (int bad = 0; bad < 8 && seconds_of(CLOCK_MONOTONIC) - start < 0.5;) {
			tensor *t;
			int err = tensor_send_timeout(g.p.out, g.t, 0, MS);

			assert_true(err == 0 || err == -EBADMSG || err == -ETIMEDOUT);
			t = tensor_recv_timeout(g.p.in, MS);
			if (t)
				touch(t);
			bad += !t || err;
			errors += !t || err;
			tensor_release(t);
			sched_yield();
		}
		w.stop = true;
		pthread_join(thread, NULL);
		target_close(&g);
		assert_true(seconds_of(CLOCK_MONOTONIC) - start < 5);
	}
	assert_true(errors > rounds);
}

/* The pool and its receiver while a third writes the words of leases: wrong values, errors, timeouts, and no more. */
static void leases_overwritten_during_use_give_errors(void **state)
{
	long rounds = count_of("RING_ROUNDS", 200) / 4, received = 0, times = 0;
	struct writer w = { .seed = draw(&seed) | 1 };

	for (long i = 0; i < rounds; i++) {
		struct pair p =
			ring_pair_open(i & 1 ? SOCK_STREAM : SOCK_SEQPACKET,
				       TENSOR_CHANNEL_OPTIONS(.ring = i & 2, .spin_ns = -1));
		tensor_pool *pool = tensor_pool_open(
			TENSOR_SHAPE(8),
			TENSOR_POOL_OPTIONS(.n = 3, .full = i & 4 ? TENSOR_POOL_DROP : 0));
		double start = seconds_of(CLOCK_MONOTONIC);
		void *page = NULL;
		pthread_t thread;
		size_t bytes;

		bool seen = false, late = false;

		/* Until both outcomes were seen, because their shares depend on the processors. */
		for (int k = 0; k < 100 || ((!seen || !late) && k < 2000); k++) {
			tensor *t = tensor_pool_loan(pool, MS), *got[1];

			if (t && tensor_send_many(p.out, &t, 1, 0, 0, MS) == 0 && !page) {
				assert_int_equal(lease_mappings(&page, &bytes), 1);
				w.leases = page;
				w.begun = w.stop = false;
				assert_int_equal(
					pthread_create(&thread, NULL, overwrite_leases, &w), 0);
				while (!w.begun)
					sched_yield();
			}
			late |= !t;
			tensor_release(t);
			if (tensor_recv_many(p.in, got, 1, NULL, k % 3 * MS / 10) == 1) {
				touch(got[0]);
				tensor_release(got[0]);
				seen = true;
			}
			sched_yield();
		}
		received += seen;
		times += late;
		assert_true(tensor_pool_available(pool) >= 0);
		w.stop = true;
		pthread_join(thread, NULL);
		/* The end of the receiver ends all leases, whatever the words say. */
		tensor_channel_close(p.in);
		close(p.ends[1]);
		assert_int_equal(tensor_pool_available(pool), 3);
		tensor_channel_close(p.out);
		close(p.ends[0]);
		tensor_pool_close(pool);
		assert_int_equal(lease_mappings(NULL, NULL), 0);
		assert_true(seconds_of(CLOCK_MONOTONIC) - start < 5);
	}
	assert_true(received > rounds / 2 && times > rounds / 4);
}

/* Bells without end, and none of them for a record: a receive keeps its timeout. */
static void bells_without_end_do_not_delay_a_timeout(void **state)
{
	struct wire_message bell = { .magic = WIRE_MAGIC,
				     .version = WIRE_VERSION,
				     .size = sizeof(bell),
				     .flags = WIRE_CONTROL,
				     .dtype = WIRE_BELL };
	double start = seconds_of(CLOCK_MONOTONIC);
	struct target g;
	pid_t pid;

	target_open(&g);
	pid = fork();
	if (!pid)
		for (;;)
			if (send(g.p.ends[0], &bell, sizeof(bell), MSG_NOSIGNAL) < 0)
				_exit(0);
	for (int i = 0; i < 20; i++)
		assert_fails(tensor_recv_timeout(g.p.in, 5 * MS), ETIMEDOUT, "in time");
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	target_close(&g);
	assert_true(seconds_of(CLOCK_MONOTONIC) - start < 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_records_are_tensors_or_errors),
		cmocka_unit_test(ring_overwritten_during_use_gives_errors),
		cmocka_unit_test(leases_overwritten_during_use_give_errors),
		cmocka_unit_test(bells_without_end_do_not_delay_a_timeout),
	};

	seed = (uint64_t)count_of("SEED", 20261127) | 1;
	return cmocka_run_group_tests_name("ring_hostile", tests, NULL, NULL);
}
