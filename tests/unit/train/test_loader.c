// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Data loaders: batches, order, random numbers, resuming. */
#include "loader.h"

/* ---- batches ---- */

static void every_sample_comes_once_an_epoch(void **state)
{
	for (int workers = 0; workers <= 3; workers++) {
		struct tensor_loader_options o = options_of(&plain, workers);
		tensor_loader *l = loader_of(&o);

		assert_int_equal(tensor_loader_length(l), 13);
		for (int epoch = 0; epoch < 3; epoch++) {
			bool seen[SIZE] = { false };
			tensor *batch[2];
			int err;

			while ((err = tensor_loader_next(l, batch, 2)) == 1) {
				for (int64_t i = 0; i < tensor_size(batch[1], 0); i++) {
					int64_t index = ((const int64_t *)tensor_data(batch[1]))[i];

					assert_in_range(index, 0, SIZE - 1);
					assert_false(seen[index]);
					seen[index] = true;
					assert_true(((const float *)tensor_data(batch[0]))[4 * i] ==
						    index);
				}
				tensor_release(batch[0]);
				tensor_release(batch[1]);
			}
			assert_int_equal(err, 0);
			for (int i = 0; i < SIZE; i++)
				assert_true(seen[i]);
		}
		tensor_loader_free(l);
	}
}

static void batches_do_not_depend_on_the_number_of_workers(void **state)
{
	uint64_t want[2] = { 0 };

	for (int workers = 0; workers <= 4; workers++) {
		struct tensor_loader_options o = options_of(&plain, workers);
		tensor_loader *l;
		int64_t n = 0;

		o.prefetch = workers;
		l = loader_of(&o);
		for (int epoch = 0; epoch < 2; epoch++) {
			uint64_t got = read_epoch(l, &n);

			if (!workers)
				want[epoch] = got;
			assert_true(got == want[epoch]);
		}
		assert_int_equal(n, 2 * SIZE);
		tensor_loader_free(l);
	}
	assert_true(want[0] != want[1]);
}

static void loader_continues_in_the_middle_of_an_epoch_bit_for_bit(void **state)
{
	for (int workers = 0; workers <= 2; workers += 2) {
		struct tensor_loader_options o = options_of(&plain, workers);
		struct tensor_loader_state saved;
		tensor_loader *l = loader_of(&o);
		int64_t n = 0;
		uint64_t want;

		read_epoch(l, &n);
		for (int i = 0; i < 5; i++)
			tensor_scope {
				tensor *batch[2];

				assert_int_equal(tensor_loader_next(l, batch, 2), 1);
			}
		assert_done(tensor_loader_get_state(l, &saved));
		assert_int_equal(saved.epoch, 1);
		assert_int_equal(saved.position, 5 * BATCH);
		want = read_epoch(l, &n);
		assert_done(tensor_loader_set_state(l, &saved));
		assert_true(read_epoch(l, &n) == want);
		tensor_loader_free(l);
		/* A loader of another program, with another seed. */
		o.seed = 0;
		o.workers = 2 - workers;
		l = loader_of(&o);
		assert_done(tensor_loader_set_state(l, &saved));
		assert_true(read_epoch(l, &n) == want);
		tensor_loader_free(l);
	}
}

static void order_is_a_permutation_of_the_generator(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 0);
	uint64_t first, second;
	tensor_loader *l;
	int64_t n = 0;

	o.seed = 0;
	o.generator = tensor_generator_new(5);
	l = loader_of(&o);
	first = read_epoch(l, &n);
	tensor_loader_free(l);
	l = loader_of(&o); /* the generator has gone on */
	second = read_epoch(l, &n);
	tensor_loader_free(l);
	assert_true(first != second);
	tensor_generator_manual_seed(o.generator, 5);
	l = loader_of(&o);
	assert_true(read_epoch(l, &n) == first);
	tensor_loader_free(l);
	tensor_generator_release(o.generator);
}

static void drop_last_leaves_out_the_short_batch(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 2);
	tensor_loader *l;
	int64_t n = 0;

	o.drop_last = true;
	l = loader_of(&o);
	assert_int_equal(tensor_loader_length(l), 12);
	read_epoch(l, &n);
	assert_int_equal(n, 96);
	tensor_loader_free(l);
}

static void default_generator_of_the_program_is_not_changed(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 0);
	struct tensor_generator_state before, after;
	tensor_loader *l = loader_of(&o);
	int64_t n = 0;

	tensor_generator_get_state(NULL, &before);
	read_epoch(l, &n);
	tensor_generator_get_state(NULL, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	tensor_loader_free(l);
}

static int get_in_place(void *ctx, int64_t index, tensor **outputs, int n)
{
	(void)ctx;
	(void)n;
	return tensor_fill_(outputs[0], TENSOR_SCALAR(index)) ? 0 : -EINVAL;
}

static void rows_of_given_types_are_written_in_place(void **state)
{
	struct tensor_sample_type type = { TENSOR_I16, TENSOR_INTS(3, 5) };

	for (int workers = 0; workers < 2; workers++) {
		struct tensor_loader_options o = { .size = 10,
						   .outputs = 1,
						   .get = get_in_place,
						   .types = &type,
						   .batch_size = 4,
						   .workers = workers };
		tensor_loader *l = loader_of(&o);
		tensor *batch;

		tensor_scope {
			assert_int_equal(tensor_loader_next(l, &batch, 1), 1);
			assert_int_equal(tensor_dim(batch), 3);
			assert_int_equal(tensor_dtype(batch), TENSOR_I16);
			assert_values(tensor_select(tensor_select(batch, 1, 2), 1, 4), 0, 0, 1, 2,
				      3);
		}
		tensor_loader_free(l);
	}
}

static int collate_padded(void *ctx, tensor *const *samples, int64_t count, tensor **outputs, int n)
{
	tensor *sum = tensor_zeros(TENSOR_SCALAR_SHAPE, F32);
	int64_t longest = 0;

	(void)ctx;
	(void)n;
	for (int64_t i = 0; i < count; i++) {
		int64_t size = tensor_size(samples[2 * i], 0);

		longest = size > longest ? size : longest;
		sum = tensor_add(sum, tensor_select(samples[2 * i], 0, 0));
	}
	outputs[0] = tensor_zeros(TENSOR_INTS(count, longest), F32);
	outputs[1] = sum;
	outputs[2] = sum;
	return 0;
}

static void collate_makes_batches_of_samples_of_different_shapes(void **state)
{
	struct data d = plain;

	d.ragged = 2;
	for (int workers = 0; workers < 2; workers++) {
		struct tensor_loader_options o = options_of(&d, workers);
		tensor_loader *l;
		tensor *batch[3];

		o.shuffle = false;
		o.collate = collate_padded;
		o.batch_outputs = 3;
		l = loader_of(&o);
		for (int i = 0; i < 3; i++)
			tensor_scope {
				assert_int_equal(tensor_loader_next(l, batch, 3), 1);
				assert_int_equal(tensor_size(batch[0], 1), i ? 4 : 5);
				assert_values(batch[2], 0, 28 + 64 * i);
			}
		tensor_loader_free(l);
		o.collate = NULL;
		o.batch_outputs = 0;
		l = loader_of(&o);
		assert_fails(tensor_loader_next(l, batch, 2), EINVAL,
			     "sample 2: output 0 is f32 [5]");
		tensor_loader_free(l);
	}
}

static int even(void *ctx, int64_t epoch, int64_t *indices, int64_t n)
{
	(void)ctx;
	for (int64_t i = 0; i < n; i++)
		indices[i] = epoch == 3 ? SIZE : 2 * i + epoch;
	return 0;
}

static void program_chooses_the_order(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 1);
	tensor_loader *l;
	tensor *batch[2];

	o.order = even;
	o.length = 20;
	l = loader_of(&o);
	assert_int_equal(tensor_loader_length(l), 3);
	assert_done(tensor_loader_start_epoch(l, 1));
	tensor_scope {
		assert_int_equal(tensor_loader_next(l, batch, 2), 1);
		assert_values(batch[1], 0, 1, 3, 5, 7, 9, 11, 13, 15);
	}
	assert_done(tensor_loader_start_epoch(l, 3));
	assert_fails(tensor_loader_next(l, batch, 2), EINVAL, "index 103 for position 0");
	tensor_loader_free(l);
}

/* ---- shards ---- */

/* Reads an epoch: its samples in *order, how often each came in *seen, and random numbers of the samples that came once. */
static int64_t count_samples(tensor_loader *l, int64_t *order, int *seen, float *numbers)
{
	int64_t n = 0;
	int err = 1;

	while (err == 1)
		tensor_scope {
			tensor *batch[2];

			err = tensor_loader_next(l, batch, 2);
			assert_done(err);
			for (int64_t i = 0; err == 1 && i < tensor_size(batch[1], 0); i++, n++) {
				int64_t index = ((const int64_t *)tensor_data(batch[1]))[i];

				seen[index]++;
				order[n] = index;
				numbers[index] = ((const float *)tensor_data(batch[0]))[4 * i + 1];
			}
		}
	return n;
}

/* All shards of two epochs: samples that are missing, and that come twice. */
static void read_shards(struct tensor_loader_options o, int shards, int64_t each, int missing,
			int twice)
{
	int64_t order[SIZE], part[SIZE];
	float numbers[SIZE], whole[SIZE];
	int all[SIZE] = { 0 };
	tensor_loader *one = loader_of(&o);

	o.shards = shards;
	for (int epoch = 0; epoch < 2; epoch++) {
		int seen[SIZE] = { 0 }, none = 0, more = 0;
		int64_t n;

		assert_true(count_samples(one, order, all, whole) >= 96);
		for (o.shard = 0; o.shard < shards; o.shard++) {
			tensor_loader *l = loader_of(&o);

			assert_done(tensor_loader_start_epoch(l, epoch));
			assert_int_equal(tensor_loader_length(l),
					 o.drop_last ? each / BATCH : (each + BATCH - 1) / BATCH);
			n = count_samples(l, part, seen, numbers);
			assert_int_equal(n, o.drop_last ? each / BATCH * BATCH : each);
			for (int64_t i = 0; i < n; i++)
				assert_int_equal(part[i], order[(o.shard + i * shards) % SIZE]);
			tensor_loader_free(l);
		}
		for (int i = 0; i < SIZE; i++) {
			none += !seen[i];
			more += seen[i] > 1;
			/* Random numbers do not depend on how many shards there are. */
			assert_true(seen[i] != 1 || numbers[i] == whole[i]);
		}
		assert_int_equal(none, missing);
		assert_int_equal(more, twice);
	}
	tensor_loader_free(one);
}

static void shards_are_disjoint_parts_of_one_order(void **state)
{
	for (int workers = 0; workers < 3; workers += 2) {
		struct tensor_loader_options o = options_of(&plain, workers);

		read_shards(o, 1, 103, 0, 0);
		read_shards(o, 2, 52, 0, 1);
		read_shards(o, 4, 26, 0, 1);
		read_shards(o, 10, 11, 0, 7);
		o.shuffle = false;
		read_shards(o, 4, 26, 0, 1);
		o.drop_last = true;
		read_shards(o, 4, 25, 103 - 4 * 24, 0);
	}
}

static void more_shards_than_samples_have_one_each(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 0);
	int64_t order[SIZE];
	float numbers[SIZE];

	o.size = 3;
	o.shards = 8;
	for (o.shard = 0; o.shard < 8; o.shard++) {
		int seen[SIZE] = { 0 };
		tensor_loader *l = loader_of(&o);

		assert_int_equal(count_samples(l, order, seen, numbers), 1);
		tensor_loader_free(l);
	}
	o.shard = 0;
	o.drop_last = true;
	{
		int seen[SIZE] = { 0 };
		tensor_loader *l = loader_of(&o);

		assert_int_equal(count_samples(l, order, seen, numbers), 0);
		tensor_loader_free(l);
	}
}

static void rows_of_tensors_are_a_data_set(void **state)
{
	tensor_scope {
		tensor *set[] = { ok(tensor_arange(S(12), F32)), ok(tensor_arange(S(12), I64)) };
		struct tensor_loader_options o = { .size = 12,
						   .outputs = 2,
						   .get = tensor_get_rows,
						   .ctx = set,
						   .batch_size = 6 };
		tensor_loader *l;
		tensor *batch[2];

		set[0] = tensor_mul(tensor_reshape(set[0], TENSOR_INTS(12, 1)), S(2));
		l = loader_of(&o);
		assert_int_equal(tensor_loader_next(l, batch, 2), 1);
		assert_int_equal(tensor_loader_next(l, batch, 2), 1);
		assert_values(batch[0], 0, 12, 14, 16, 18, 20, 22);
		assert_values(batch[1], 0, 6, 7, 8, 9, 10, 11);
		assert_int_equal(tensor_loader_next(l, batch, 2), 0);
		tensor_loader_free(l);
		assert_fails(tensor_get_rows(set, 12, batch, 2), EINVAL, "no row 12");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_comes_once_an_epoch),
		cmocka_unit_test(batches_do_not_depend_on_the_number_of_workers),
		cmocka_unit_test(loader_continues_in_the_middle_of_an_epoch_bit_for_bit),
		cmocka_unit_test(order_is_a_permutation_of_the_generator),
		cmocka_unit_test(drop_last_leaves_out_the_short_batch),
		cmocka_unit_test(default_generator_of_the_program_is_not_changed),
		cmocka_unit_test(rows_of_given_types_are_written_in_place),
		cmocka_unit_test(collate_makes_batches_of_samples_of_different_shapes),
		cmocka_unit_test(program_chooses_the_order),
		cmocka_unit_test(shards_are_disjoint_parts_of_one_order),
		cmocka_unit_test(more_shards_than_samples_have_one_each),
		cmocka_unit_test(rows_of_tensors_are_a_data_set),
	};

	return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}
