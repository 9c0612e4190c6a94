// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Memory of tensors that are not shared: private at every size, without a descriptor, reused for
 * other sizes; and the move to shared memory. Over 500 lines, because all tests use one set of
 * helpers.
 */
#include "peer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#define MIB ((size_t)1 << 20)

static tensor *bytes(size_t n)
{
	return ok(tensor_empty(TENSOR_INTS((int64_t)n), TENSOR_OPTIONS(.dtype = TENSOR_U8)));
}

/* ---- forks ---- */

static const size_t sizes[] = { 4, 1000, 4096, 5000, MIB - 1, MIB, MIB + 1, 64 * MIB };

#define EACH_SIZE(n) for (size_t k_ = 0, n = 0; k_ < ARRAY_SIZE(sizes) && (n = sizes[k_]); k_++)

static void fork_copies_a_private_tensor_of_any_size(void **state)
{
	EACH_SIZE(n)
	{
		tensor *t = bytes(n);
		uint8_t *p = tensor_mutable_data(t);

		memset(p, 1, n);
		assert_int_equal(IN_CHILD({
					 tensor_fill_(t, TENSOR_SCALAR(2));
					 if (p[0] != 2 || p[n - 1] != 2)
						 _exit(1);
				 }),
				 0);
		assert_int_equal(p[0], 1);
		assert_int_equal(p[n - 1], 1);
		tensor_release(t);
	}
}

static void fork_shares_a_shareable_tensor_of_any_size(void **state)
{
	EACH_SIZE(n)
	{
		tensor *t = bytes(n);
		uint8_t *p;

		assert_done(tensor_share_memory(t));
		p = tensor_mutable_data(t);
		memset(p, 1, n);
		assert_int_equal(IN_CHILD(memset(p, 2, n)), 0);
		assert_int_equal(p[0], 2);
		assert_int_equal(p[n - 1], 2);
		tensor_release(t);
	}
}

/* ---- moving ---- */

static void address_stays_from_a_page_up(void **state)
{
	NOT_WATCHED();
	EACH_SIZE(n)
	{
		tensor *t = bytes(n);
		uint8_t *p = tensor_mutable_data(t);

		for (size_t i = 0; i < n; i++)
			p[i] = (uint8_t)(i * 7);
		assert_done(tensor_share_memory(t));
		if (n >= 4096)
			assert_ptr_equal(tensor_data(t), p);
		p = tensor_mutable_data(t);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], (uint8_t)(i * 7));
		assert_done(tensor_share_memory(t));
		assert_ptr_equal(tensor_data(t), p);
		tensor_release(t);
	}
}

/* All tensors of the storage: views, views of views, tensors that own a reference to it. */
static void all_tensors_of_a_storage_move(void **state)
{
	EACH_SIZE(n) tensor_scope
	{
		tensor *t = bytes(n),
		       *half = ok(tensor_slice(t, 0, (int64_t)n / 2, TENSOR_NONE, 1));
		tensor *last = ok(tensor_slice(half, 0, -1, TENSOR_NONE, 1));
		tensor *other = ok(tensor_detach(t));

		tensor_fill_(t, TENSOR_SCALAR(1));
		/* through a view, which does not own the storage */
		assert_done(tensor_share_memory(last));
		assert_ptr_equal(tensor_data(other), tensor_data(t));
		assert_ptr_equal(tensor_data(half), (const uint8_t *)tensor_data(t) + n / 2);
		assert_ptr_equal(tensor_data(last), (const uint8_t *)tensor_data(t) + n - 1);
		assert_int_equal(IN_CHILD(tensor_fill_(half, TENSOR_SCALAR(9))), 0);
		assert_int_equal(*(const uint8_t *)tensor_data(last), 9);
		assert_int_equal(((const uint8_t *)tensor_data(other))[n - 1], 9);
	}
}

static void neighbours_of_a_moved_tensor_keep_their_values(void **state)
{
	tensor *t[64];

	for (int i = 0; i < 64; i++) {
		t[i] = bytes(64);
		memset(tensor_mutable_data(t[i]), i, 64);
	}
	for (int i = 0; i < 64; i += 2)
		assert_done(tensor_share_memory(t[i]));
	assert_int_equal(IN_CHILD({
				 for (int i = 0; i < 64; i++)
					 memset(tensor_mutable_data(t[i]), 99, 64);
			 }),
			 0);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(*(const uint8_t *)tensor_data(t[i]), i % 2 ? i : 99);
		tensor_release(t[i]);
	}
}

static int bytes_behind_are_zero(tensor_channel *ch)
{
	struct tensor_buffer_info info = { .size = sizeof(info) };
	tensor *t = tensor_recv(ch);
	const uint8_t *p;
	size_t at;

	if (!t || tensor_buffer_info(t, &info) < 0)
		return 1;
	p = tensor_data(t);
	for (at = (size_t)tensor_numel(t); at < info.bytes; at++)
		if (p[at])
			return 2;
	return p[0] == 1 ? 0 : 3;
}

/* The bytes after the tensor, which belonged to other tensors before, are not copied. */
static void bytes_behind_the_tensor_are_not_shared(void **state)
{
	static const size_t used[] = { 60, 1000, 5000, 300000, 3 * MIB };

	for (size_t i = 0; i < ARRAY_SIZE(used); i++) {
		tensor *secret = bytes(used[i] + used[i] / 20), *t;
		struct peer p;

		memset(tensor_mutable_data(secret), 0x5e, used[i] + used[i] / 20);
		tensor_release(secret);
		t = bytes(used[i]);
		memset(tensor_mutable_data(t), 1, used[i]);
		p = peer_start("behind", SOCK_STREAM);
		assert_done(tensor_send(p.ch, t, 0));
		assert_int_equal(peer_end(&p), 0);
		tensor_release(t);
	}
}

/*
 * Views of the earlier tensor are released; a view of the new tensor makes the move search for
 * others.
 */
static void bytes_of_released_views_are_not_shared(void **state)
{
	static const size_t used[] = { 10, 970, 5200, 290000 };

	for (size_t i = 0; i < ARRAY_SIZE(used); i++) {
		struct tensor_buffer_info info = { .size = sizeof(info) };
		tensor *secret = bytes(used[i] + 30), *t, *view[2];
		uint8_t *p;

		memset(tensor_mutable_data(secret), 0x5e, used[i] + 30);
		for (int k = 0; k < 2; k++)
			view[k] = ok(tensor_slice(secret, 0, 0, TENSOR_NONE, 1));
		tensor_release(view[0]);
		tensor_release(view[1]);
		tensor_release(secret);
		t = bytes(used[i]);
		memset(tensor_mutable_data(t), 1, used[i]);
		view[0] = ok(tensor_slice(t, 0, 0, 5, 1));
		assert_done(tensor_share_memory(view[0]));
		assert_done(tensor_buffer_info(t, &info));
		p = tensor_mutable_data(t);
		for (size_t k = used[i]; k < info.bytes; k++)
			assert_int_not_equal(p[k], 0x5e);
		tensor_release(view[0]);
		tensor_release(t);
	}
}

/* A larger size restores the elements, as in private memory. */
static void shrunk_tensor_keeps_its_elements(void **state)
{
	EACH_SIZE(n) for (int shared = 0; shared < 2; shared++) tensor_scope
	{
		int64_t many = (int64_t)n, few = many / 4 + 1;
		tensor *t = ok(tensor_full(TENSOR_INTS(few), TENSOR_SCALAR(7),
					   TENSOR_OPTIONS(.dtype = TENSOR_U8)));

		ok(tensor_resize_(t, TENSOR_INTS(many)));
		memset(tensor_mutable_data(t), 7, n);
		ok(tensor_resize_(t, TENSOR_INTS(few)));
		if (shared)
			assert_done(tensor_share_memory(t));
		ok(tensor_resize_(t, TENSOR_INTS(many)));
		for (size_t i = 0; i < n; i++)
			assert_int_equal(((const uint8_t *)tensor_data(t))[i], 7);
	}
}

/* The bytes that as_strided() reaches are copied: those that the tensor had before it was resized. */
static void view_past_its_base_is_shared_completely(void **state)
{
	NOT_WATCHED();
	tensor_scope {
		tensor *t = ok(tensor_resize_(bytes(60), TENSOR_INTS(10))),
		       *v = ok(tensor_as_strided(t, TENSOR_INTS(60), TENSOR_INTS(1), 0));

		memset(tensor_mutable_data(v), 3, 60);
		assert_done(tensor_share_memory(t));
		assert_ptr_equal(tensor_data(v), tensor_data(t));
		assert_int_equal(((const uint8_t *)tensor_data(v))[59], 3);
	}
}

/* ---- duration of the move ---- */

enum { MOVED = 50, OTHERS = 200000 };

/* Processor seconds for sharing tensors with one view each, made before or after the others. */
static double time_to_share(tensor **t, tensor **view, bool new_view)
{
	double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < MOVED; i++) {
		if (new_view)
			view[i] = ok(tensor_slice(t[i], 0, 3, TENSOR_NONE, 1));
		assert_done(tensor_share_memory(t[i]));
	}
	return seconds_of(CLOCK_THREAD_CPUTIME_ID) - start;
}

static double time_beside(int others, bool new_view)
{
	static tensor *other[OTHERS];
	tensor *t[MOVED], *view[MOVED], *first = bytes(64), *last = ok(tensor_detach(first));
	double took;

	for (int i = 0; i < MOVED; i++) {
		t[i] = bytes(64);
		view[i] = new_view ? NULL : ok(tensor_slice(t[i], 0, 3, TENSOR_NONE, 1));
	}
	for (int i = 0; i < others; i++)
		other[i] = i % 2 ? ok(tensor_slice(other[i - 1], 0, 1, 2, 1)) : bytes(16);
	assert_done(tensor_share_memory(last)); /* the first move sorts the list */
	took = time_to_share(t, view, new_view);
	for (int i = 0; i < MOVED; i++) {
		assert_ptr_equal(tensor_data(view[i]), (const uint8_t *)tensor_data(t[i]) + 3);
		tensor_release(view[i]);
		tensor_release(t[i]);
	}
	while (others--)
		tensor_release(other[others]);
	tensor_release(last);
	tensor_release(first);
	return took;
}

static void duration_of_a_move_does_not_depend_on_other_tensors(void **state)
{
	NOT_WATCHED();
	for (int new_view = 0; new_view < 2; new_view++) {
		double few = 1, many = 1, took;

		for (int i = 0; i < 3; i++) {
			took = time_beside(0, new_view);
			few = took < few ? took : few;
			took = time_beside(OTHERS, new_view);
			many = took < many ? took : many;
		}
		print_message("%d moves %.2f ms, beside %d tensors %.2f ms\n", MOVED, few * 1e3,
			      OTHERS, many * 1e3);
		assert_true(many < 10 * few);
	}
}

enum { LARGE = 256 };

static atomic_int moving;

static void *share_large(void *arg)
{
	double *took = arg, start = seconds_of(CLOCK_MONOTONIC);
	tensor *t = bytes(LARGE * MIB);

	memset(tensor_mutable_data(t), 1, LARGE * MIB);
	start = seconds_of(CLOCK_MONOTONIC);
	moving = 1;
	if (tensor_share_memory(t) < 0)
		return t;
	*took = seconds_of(CLOCK_MONOTONIC) - start;
	tensor_release(t);
	return NULL;
}

static void share_small(void)
{
	tensor *t = bytes(64), *view = ok(tensor_slice(t, 0, 1, TENSOR_NONE, 1));

	assert_done(tensor_share_memory(t));
	tensor_release(view);
	tensor_release(t);
}

static void fork_once(void)
{
	assert_int_equal(IN_CHILD((void)0), 0);
}

/*
 * The time of `what` during the move of a large tensor, relative to the move; the minimum of
 * several.
 */
static double part_of_a_large_move(void (*what)(void))
{
	double part = 1, start, took, large = 0;
	pthread_t thread;
	void *failed;

	for (int i = 0; i < 5; i++) {
		moving = 0;
		assert_int_equal(pthread_create(&thread, NULL, share_large, &large), 0);
		while (!moving)
			usleep(100);
		usleep(10000);
		start = seconds_of(CLOCK_MONOTONIC);
		what();
		took = seconds_of(CLOCK_MONOTONIC) - start;
		pthread_join(thread, &failed);
		assert_null(failed);
		if (took / large < part)
			part = took / large;
	}
	return part;
}

static void large_move_does_not_block_other_threads(void **state)
{
	double share, fork;

	NOT_WATCHED();
	share = part_of_a_large_move(share_small);
	fork = part_of_a_large_move(fork_once);
	print_message("beside a move of %d MiB: another %.2f of its time, a fork %.2f\n", LARGE,
		      share, fork);
	assert_true(share < 0.5);
	assert_true(fork < 0.5);
}

static void *share_tensor(void *t)
{
	moving = 1;
	return tensor_share_memory(t) < 0 ? t : NULL;
}

/*
 * The child does not have the moving thread; its copy of the storage stays unchanged. The memory of
 * a small guest suffices for three copies.
 */
#define AMID 64
static void fork_during_a_move_gives_the_child_a_copy(void **state)
{
	tensor *t = bytes(AMID * MIB);
	uint8_t *p = tensor_mutable_data(t);
	pthread_t thread;
	void *failed;

	NOT_WATCHED();
	memset(p, 1, AMID * MIB);
	moving = 0;
	assert_int_equal(pthread_create(&thread, NULL, share_tensor, t), 0);
	while (!moving)
		usleep(100);
	usleep(5000);
	assert_int_equal(
		IN_CHILD({
			if (p[0] != 1 || p[AMID * MIB - 1] != 1)
				_exit(1);
			if (tensor_buffer_fd(t, TENSOR_BUFFER_READ | TENSOR_BUFFER_EXPORT) < 0)
				p[0] = 2; /* the memory is private; otherwise the move has ended */
			if (tensor_share_memory(t) < 0) {
				fprintf(stderr, "%s\n", tensor_last_error()->text);
				_exit(2);
			}
			tensor_cache_trim();
		}),
		0);
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_int_equal(p[0], 1);
	tensor_release(t);
}

static void threads_share_one_tensor(void **state)
{
	for (int i = 0; i < 200; i++) {
		tensor *t = bytes(i % 2 ? 100 : 10000),
		       *view = ok(tensor_slice(t, 0, 1, TENSOR_NONE, 1));
		pthread_t thread[4];
		void *failed;

		memset(tensor_mutable_data(t), i, 100);
		for (int k = 0; k < 4; k++)
			assert_int_equal(pthread_create(&thread[k], NULL, share_tensor,
							k % 2 ? t : view),
					 0);
		for (int k = 0; k < 4; k++) {
			pthread_join(thread[k], &failed);
			assert_null(failed);
		}
		assert_ptr_equal(tensor_data(view), (const uint8_t *)tensor_data(t) + 1);
		assert_int_equal(*(const uint8_t *)tensor_data(view), (uint8_t)i);
		tensor_release(i % 3 ? t : view);
		tensor_release(i % 3 ? view : t);
	}
}

static int count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int c, n = 0;

	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void mappings_of_freed_buffers_are_removed(void **state)
{
	enum { COUNT = 2000 };
	tensor *t[COUNT];
	int before;

	NOT_WATCHED();
	for (int i = 0; i < COUNT; i++)
		t[i] = bytes(4096);
	before = count_maps();
	for (int i = 0; i < COUNT; i += 2) {
		assert_done(tensor_share_memory(t[i]));
		tensor_release(t[i]);
	}
	tensor_cache_trim();
	assert_in_range(count_maps(), 0, before + 50);
	for (int i = 1; i < COUNT; i += 2)
		tensor_release(t[i]);
}

/*
 * At the limit of mappings the memory cannot be replaced by private memory; a trim does it later.
 */
static void release_at_the_limit_of_mappings_is_completed_later(void **state)
{
	enum { COUNT = 100, MOST = 200000 };
	static void *filler[MOST];
	struct tensor_cache_stats stats;
	tensor *t[COUNT];
	int n = 0, fds = count_fds();

	NOT_WATCHED();
	for (int i = 0; i < COUNT; i++) {
		t[i] = bytes(8192);
		assert_done(tensor_share_memory(t[i]));
	}
	while (n < MOST && (filler[n] = mmap(NULL, 4096, n % 2 ? PROT_READ : PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
		n++;
	for (int i = 0; i < COUNT; i++)
		tensor_release(t[i]);
	while (n--)
		munmap(filler[n], 4096);
	tensor_cache_trim();
	tensor_cache_stats(&stats);
	assert_int_equal(stats.used, 0);
	assert_int_equal(count_fds(), fds);
}

static int fill_received(tensor_channel *ch)
{
	tensor *t = tensor_recv(ch);

	return t && tensor_fill_(t, TENSOR_SCALAR(3)) ? 0 : 1;
}

/*
 * The first send moves the memory; later ones copy nothing, and writes of the receiver are visible.
 */
static void sent_tensor_is_shared_from_then_on(void **state)
{
	EACH_SIZE(n)
	{
		tensor *t = bytes(n);
		struct peer p = peer_start("fill", SOCK_SEQPACKET);

		memset(tensor_mutable_data(t), 1, n);
		assert_done(tensor_send(p.ch, t, 0));
		assert_int_equal(peer_end(&p), 0);
		assert_int_equal(*(const uint8_t *)tensor_data(t), 3);
		assert_int_equal(((const uint8_t *)tensor_data(t))[n - 1], 3);
		tensor_release(t);
	}
}

/* The address range of a freed buffer is private memory again. */
static void memory_is_private_again_afterwards(void **state)
{
	EACH_SIZE(n) for (int round = 0; round < 5; round++)
	{
		tensor *t = bytes(n), *next;

		assert_done(tensor_share_memory(t));
		tensor_release(t);
		next = bytes(n);
		memset(tensor_mutable_data(next), 1, n);
		assert_int_equal(IN_CHILD(memset(tensor_mutable_data(next), 2, n)), 0);
		assert_int_equal(*(const uint8_t *)tensor_data(next), 1);
		tensor_release(next);
	}
}

static void foreign_memory_is_not_moved(void **state)
{
	assert_fails(tensor_share_memory(NULL), EINVAL, "share_memory");
}

/* ---- descriptors and memory ---- */

static void private_tensors_have_no_descriptor(void **state)
{
	int before = count_fds();
	tensor *t[100];

	for (int i = 0; i < 100; i++)
		t[i] = bytes(MIB << i % 4);
	assert_int_equal(count_fds(), before);
	for (int i = 0; i < 100; i++)
		tensor_release(t[i]);
}

static int make_many(void)
{
	const struct rlimit few = { 256, 256 };
	static tensor *t[100000];
	FILE *f;

	setrlimit(RLIMIT_NOFILE, &few);
	for (int i = 0; i < 100000; i++)
		if (!(t[i] = tensor_empty(TENSOR_INTS(MIB / 4), F32)))
			return 1;
	f = fopen("/proc/self/stat", "r");
	if (!f)
		return 2;
	fclose(f);
	for (int i = 0; i < 100000; i++)
		tensor_release(t[i]);
	return 0;
}

/* More tensors than vm.max_map_count permits mappings, and many more than descriptors. */
static void hundred_thousand_tensors_of_a_mebibyte(void **state)
{
	NOT_WATCHED();
	assert_int_equal(IN_CHILD(_exit(make_many())), 0);
}

static size_t resident(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
	fclose(f);
	return pages * 4096;
}

static tensor *new_filled(size_t n)
{
	tensor *t = bytes(n);

	memset(tensor_mutable_data(t), 1, n);
	return t;
}

/* 100,000 tensors, 300 of them at a time, with sizes in turn. */
static void memory_goes_from_one_size_to_another(void **state)
{
	static tensor *live[300];
	size_t before, now = 0;

	NOT_WATCHED();
	tensor_cache_trim();
	before = resident();
	for (int i = 0; i < 100000; i++) {
		size_t step = (size_t)i / 1800, n = ((size_t)256 << step / 5) * (5 + step % 5) / 5;

		tensor_release(live[i % 300]);
		live[i % 300] = new_filled(n);
		now = (i % 300 ? now : 0) + n;
	}
	for (int i = now = 0; i < 300; i++)
		now += (size_t)tensor_numel(live[i]);
	print_message("live %zu MiB, resident %zu MiB\n", now / MIB, (resident() - before) / MIB);
	assert_true(resident() - before < 2 * now);
	for (int i = 0; i < 300; i++)
		tensor_release(live[i]);
	tensor_cache_trim();
	assert_true(resident() - before < 16 * MIB);
}

static const struct peer_role roles[] = {
	{ "behind", bytes_behind_are_zero },
	{ "fill", fill_received },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fork_copies_a_private_tensor_of_any_size),
		cmocka_unit_test(fork_shares_a_shareable_tensor_of_any_size),
		cmocka_unit_test(address_stays_from_a_page_up),
		cmocka_unit_test(all_tensors_of_a_storage_move),
		cmocka_unit_test(neighbours_of_a_moved_tensor_keep_their_values),
		cmocka_unit_test(bytes_behind_the_tensor_are_not_shared),
		cmocka_unit_test(bytes_of_released_views_are_not_shared),
		cmocka_unit_test(shrunk_tensor_keeps_its_elements),
		cmocka_unit_test(view_past_its_base_is_shared_completely),
		cmocka_unit_test(duration_of_a_move_does_not_depend_on_other_tensors),
		cmocka_unit_test(large_move_does_not_block_other_threads),
		cmocka_unit_test(fork_during_a_move_gives_the_child_a_copy),
		cmocka_unit_test(threads_share_one_tensor),
		cmocka_unit_test(mappings_of_freed_buffers_are_removed),
		cmocka_unit_test(release_at_the_limit_of_mappings_is_completed_later),
		cmocka_unit_test(sent_tensor_is_shared_from_then_on),
		cmocka_unit_test(memory_is_private_again_afterwards),
		cmocka_unit_test(foreign_memory_is_not_moved),
		cmocka_unit_test(private_tensors_have_no_descriptor),
		cmocka_unit_test(hundred_thousand_tensors_of_a_mebibyte),
		cmocka_unit_test(memory_goes_from_one_size_to_another),
	};

	peer_main(argc, argv, roles);
	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
