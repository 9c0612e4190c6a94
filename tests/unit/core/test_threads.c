// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * State that threads share: the allocator, channels, registries, generators, the pool of workers.
 */
#include "peer.h"
#include "threads.h"

#include <sched.h>
#include <stdatomic.h>
#include <tensor/cuda.h>

/* ---- the allocator ---- */

enum { SLOTS = 64 };

static _Atomic(tensor *) exchanged[SLOTS];

/* A size of any block class, or of a mapping of its own. */
static int64_t any_size(unsigned *seed)
{
	return (int64_t)1 << rand_r(seed) % (rand_r(seed) % 16 ? 14 : 20);
}

/* Each thread frees what another one made. */
static void *make_and_free(struct worker *w)
{
	unsigned seed = (unsigned)w->id;

	for (int i = 0; i < 1000; i++) {
		tensor *t = tensor_full(TENSOR_INTS(any_size(&seed)), S(w->id), F32), *view;

		if (!expect(w, t))
			break;
		view = tensor_slice(t, 0, 0, 1, 1);
		expect(w, number(view) == w->id);
		tensor_release(view);
		if (rand_r(&seed) % 2)
			t = atomic_exchange(&exchanged[rand_r(&seed) % SLOTS], t);
		tensor_release(t);
	}
	return NULL;
}

static void trim_and_count(void)
{
	struct tensor_cache_stats stats;

	for (int i = 0; i < 100; i++) {
		tensor_cache_trim();
		tensor_cache_stats(&stats);
	}
}

static void release_exchanged(void)
{
	for (int i = 0; i < SLOTS; i++)
		tensor_release(atomic_exchange(&exchanged[i], NULL));
}

static void memory_is_trimmed_while_threads_allocate(void **state)
{
	with_threads(make_and_free, trim_and_count);
	release_exchanged();
}

/* A thread's magazines are returned to the heap at its end. */
static void blocks_of_ended_threads_are_reused(void **state)
{
	struct tensor_cache_stats before, after;

	with_threads(make_and_free, NULL);
	release_exchanged();
	tensor_cache_trim();
	tensor_cache_stats(&before);
	for (int i = 0; i < 5; i++)
		with_threads(make_and_free, NULL);
	release_exchanged();
	tensor_cache_trim();
	tensor_cache_stats(&after);
	assert_true(after.blocks <= before.blocks + (1 << 20));
}

/*
 * Sharing small and large tensors searches for the tensors of their storage while other threads
 * make and release tensors.
 */
static void share_small_and_large(void)
{
	for (int i = 0; i < 100; i++)
		tensor_scope {
			tensor *t = ok(tensor_full(TENSOR_INTS(i % 2 ? 64 : 4096), S(i), F32));
			tensor *view = ok(tensor_slice(t, 0, 1, 3, 1)),
			       *detached = ok(tensor_detach(t));

			assert_done(tensor_share_memory(view));
			assert_values(view, 0, i, i);
			assert_ptr_equal(tensor_data(t), tensor_data(detached));
		}
}

static void tensors_move_to_buffers_while_threads_allocate(void **state)
{
	with_threads(make_and_free, share_small_and_large);
	release_exchanged();
}

static tensor *moving;

/* ---- references ---- */

enum { RELEASED = 20000 };

static tensor *released[RELEASED];
static atomic_int turn;

/* Two threads at the same tensor; the others have nothing to do. */
static void *release_together(struct worker *w)
{
	for (int i = 0; i < RELEASED && w->id < 2; i++) {
		turn++;
		for (int k = 1; turn < 2 * (i + 1); k++)
			if (k % 1000 == 0)
				sched_yield();
		tensor_release(released[i]);
	}
	return NULL;
}

/* The last two references are dropped at the same time: that is no release too many. */
static void two_threads_release_the_last_references(void **state)
{
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	for (int n = 0; n < 5; n++) {
		turn = 0;
		for (int i = 0; i < RELEASED; i++) {
			tensor_scope
				released[i] = tensor_keep(ok(tensor_ones(TENSOR_INTS(2), F32)));
			tensor_retain(released[i]);
		}
		with_threads(release_together, NULL);
	}
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
}

static void *share_what_others_share(struct worker *w)
{
	expect(w, tensor_share_memory(moving) == 0);
	return NULL;
}

static void threads_share_one_tensor(void **state)
{
	for (int i = 0; i < 50; i++)
		tensor_scope {
			tensor *view;

			moving = ok(tensor_full(TENSOR_INTS(i % 2 ? 25 : 2500), S(7), F32));
			view = ok(tensor_slice(moving, 0, 1, 3, 1));
			with_threads(share_what_others_share, NULL);
			assert_values(view, 0, 7, 7);
		}
}

/* The address and the bytes stay the same while the storage is moved. */
static void *read_while_it_moves(struct worker *w)
{
	for (int i = 0; i < 50; i++)
		tensor_scope
			expect(w, number(tensor_sum(moving)) == 4096);
	return NULL;
}

static void share_what_is_read(void)
{
	assert_done(tensor_share_memory(moving));
}

static void large_tensor_is_read_while_it_moves(void **state)
{
	for (int i = 0; i < 10; i++)
		tensor_scope {
			moving = ok(tensor_ones(TENSOR_INTS(4096), F32));
			with_threads(read_while_it_moves, share_what_is_read);
		}
}

/* ---- channels ---- */

enum { MESSAGES = 100 };

static struct pair forth;
static _Atomic int arrived;

/* Threads of even number send, those of odd number receive. */
static void *send_or_receive(struct worker *w)
{
	for (int i = 0; i < MESSAGES; i++)
		tensor_scope {
			tensor *t;

			if (w->id % 2) {
				t = tensor_recv(forth.in);
				if (expect(w, t))
					arrived += (int)number(tensor_sum(t));
				continue;
			}
			t = tensor_full(TENSOR_INTS(i % 3 ? 16 : 2048), S(1),
					TENSOR_OPTIONS(.shareable = i % 2));
			expect(w, tensor_send(forth.out, t, i % 5 ? 0 : TENSOR_SEND_READONLY) == 0);
		}
	return NULL;
}

static void threads_send_and_receive_on_one_channel(void **state)
{
	int sum = 0;

	for (int i = 0; i < MESSAGES; i++)
		sum += i % 3 ? 16 : 2048;
	forth = pair_open(SOCK_SEQPACKET);
	arrived = 0;
	with_threads(send_or_receive, NULL);
	assert_int_equal(arrived, THREADS / 2 * sum);
	pair_close(&forth);
}

/* Channels are opened and closed while buffers that they sent are freed. */
static void *open_send_and_close(struct worker *w)
{
	for (int i = 0; i < 20; i++) {
		struct pair p = pair_open(SOCK_STREAM);
		tensor *t = tensor_full(TENSOR_INTS(4), S(i), SHAREABLE(TENSOR_F32)), *got;

		expect(w, tensor_send(p.out, t, 0) == 0);
		tensor_release(i % 2 ? t : NULL);
		got = tensor_recv(p.in);
		if (expect(w, got))
			expect(w, ((const float *)tensor_data(got))[3] == i);
		pair_close(&p);
		tensor_release(i % 2 ? NULL : t);
		tensor_release(got);
	}
	return NULL;
}

static void threads_open_and_close_channels(void **state)
{
	with_threads(open_send_and_close, NULL);
}

/* ---- registries ---- */

static int set_up_alloc(const struct tensor_allocator *self, tensor_device d, size_t n, void **p)
{
	*p = malloc(n);
	return *p ? 0 : -ENOMEM;
}

static void set_up_free(const struct tensor_allocator *self, tensor_device d, void *p, size_t n)
{
	free(p);
}

static const struct tensor_allocator allocator = { .name = "late",
						   .alloc = set_up_alloc,
						   .free = set_up_free };

static tensor *late_neg(tensor *self)
{
	return tensor_retain(self);
}

static int late_fallback(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			 int nargs, tensor_value *rets, int nrets, void *ctx)
{
	return -ENOSYS;
}

static void register_backend(void)
{
	tensor_device device;
	int key = tensor_register_backend("late", &allocator, &device);

	assert_true(key >= 0);
	assert_done(tensor_register_kernel("neg", key, (tensor_kernel)late_neg));
	assert_done(tensor_register_fallback(key, late_fallback, NULL));
	tensor_scope {
		tensor *t = ok(tensor_empty_on(device, TENSOR_INTS(3), TENSOR_F32));

		assert_ptr_equal(ok(tensor_neg(t)), t);
		assert_null(tensor_exp(t));
	}
}

static void *call_operators(struct worker *w)
{
	for (int i = 0; i < 500; i++)
		tensor_scope {
			tensor *t = tensor_full(TENSOR_INTS(2), S(i), F32);
			tensor_value arg = { .kind = TENSOR_VALUE_TENSOR, .t = t }, r;

			expect(w, number(tensor_sum(tensor_neg(t))) == -2 * i);
			expect(w, tensor_call("exp", &arg, 1, &r, 1) == 0);
			expect(w,
			       !tensor_op_has_kernel(tensor_op_find("exp"), TENSOR_KEY_PRIVATE3));
			expect(w, !tensor_empty_on((tensor_device){ TENSOR_PRIVATE, 3 },
						   TENSOR_INTS(1), TENSOR_F32));
		}
	return NULL;
}

static void backend_is_registered_while_operators_are_called(void **state)
{
	with_threads(call_operators, register_backend);
}

/* All threads make the first call at once, which loads the plugin. */
static void *use_plugins(struct worker *w)
{
	tensor_scope {
		tensor *t = tensor_ones(TENSOR_INTS(2, 2), F32),
		       *blocked = tensor_to_mkldnn(t, TENSOR_DTYPE_NONE);

		if (blocked)
			expect(w, number(tensor_sum(tensor_to_dense(blocked))) == 4);
		else
			expect(w, tensor_last_error()->code);
		t = tensor_det(tensor_eye(2, F32));
		expect(w, t ? number(t) == 1 : tensor_last_error()->code);
		expect(w, tensor_cuda_device_count() >= 0 || tensor_last_error()->code);
	}
	return NULL;
}

static void libraries_are_loaded_by_several_threads(void **state)
{
	with_threads(use_plugins, NULL);
}

static void *fail_in_its_own_way(struct worker *w)
{
	static const int64_t sizes[][1] = { { -1 }, { -2 }, { -3 }, { -4 } };
	char text[32];

	snprintf(text, sizeof(text), "size -%d ", w->id + 1);
	for (int i = 0; i < 1000; i++) {
		expect(w, !tensor_zeros((tensor_ints){ sizes[w->id], 1 }, F32));
		expect(w, tensor_last_error()->code == EINVAL &&
				  strstr(tensor_last_error()->text, text));
		tensor_clear_error();
		expect(w, !tensor_last_error()->code);
	}
	return NULL;
}

static void error_records_are_per_thread(void **state)
{
	with_threads(fail_in_its_own_way, NULL);
}

/* ---- generators ---- */

static tensor_generator *generator;

static void *draw_numbers(struct worker *w)
{
	struct tensor_generator_state now;

	for (int i = 0; i < 200; i++)
		tensor_scope {
			tensor_generator_retain(generator);
			expect(w, tensor_rand_generator(TENSOR_INTS(4), generator, F32));
			expect(w, tensor_randn(TENSOR_INTS(4), F32));
			tensor_generator_get_state(generator, &now);
			expect(w, tensor_generator_initial_seed(generator) == 7);
			tensor_generator_release(generator);
		}
	return NULL;
}

static void reseed(void)
{
	for (int i = 0; i < 100; i++) {
		tensor_generator_manual_seed(generator, 7);
		tensor_manual_seed((uint64_t)i);
	}
}

static void threads_draw_from_one_generator(void **state)
{
	struct tensor_generator_state one, now;

	generator = tensor_generator_new(7);
	tensor_release(ok(tensor_rand_generator(TENSOR_INTS(4), generator, F32)));
	tensor_generator_get_state(generator, &one);
	tensor_generator_manual_seed(generator, 7);
	with_threads(draw_numbers, NULL);
	tensor_generator_get_state(generator, &now);
	assert_int_equal(now.offset, THREADS * 200 * one.offset);
	with_threads(draw_numbers, reseed);
	tensor_generator_release(generator);
}

/* ---- the pool of workers ---- */

enum { MANY = 1 << 17 };

static void *compute_in_parallel(struct worker *w)
{
	for (int i = 0; i < 20; i++)
		tensor_scope {
			tensor *t = tensor_full(TENSOR_INTS(MANY), S(w->id), F32);

			expect(w, number(tensor_sum(tensor_add(t, t))) == 2.0 * w->id * MANY);
		}
	return NULL;
}

static void change_threads(void)
{
	for (int i = 0; i < 40; i++) {
		assert_done(tensor_set_num_threads(1 + i % 4));
		assert_true(tensor_get_num_threads() == 1 + i % 4);
		compute_in_parallel(&(struct worker){ .id = 1 });
	}
}

static void threads_share_the_workers_while_their_number_changes(void **state)
{
	with_threads(compute_in_parallel, change_threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libraries_are_loaded_by_several_threads),
		cmocka_unit_test(two_threads_release_the_last_references),
		cmocka_unit_test(memory_is_trimmed_while_threads_allocate),
		cmocka_unit_test(blocks_of_ended_threads_are_reused),
		cmocka_unit_test(tensors_move_to_buffers_while_threads_allocate),
		cmocka_unit_test(threads_share_one_tensor),
		cmocka_unit_test(large_tensor_is_read_while_it_moves),
		cmocka_unit_test(threads_send_and_receive_on_one_channel),
		cmocka_unit_test(threads_open_and_close_channels),
		cmocka_unit_test(error_records_are_per_thread),
		cmocka_unit_test(threads_draw_from_one_generator),
		cmocka_unit_test(threads_share_the_workers_while_their_number_changes),
		cmocka_unit_test(backend_is_registered_while_operators_are_called),
	};

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
