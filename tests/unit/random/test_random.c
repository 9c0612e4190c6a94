// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Random numbers: Philox against its published vectors, every operator against the words of the
 * generator, and the same numbers for any number of threads, strides and lengths.
 */
#include "random.h"

#include "lib/base/philox.h"

#include <sys/wait.h>
#include <unistd.h>

/* Word i of stream 0, in the order that operators use. */
static uint32_t word(uint64_t seed, uint64_t offset, int64_t i)
{
	uint32_t w[4];

	philox_block(w, seed, offset + (uint64_t)(i / 64 * 16 + i % 16), 0);
	return w[i % 64 / 16];
}

/* ---- the generator ---- */

/* kat_vectors of Random123, philox4x32 10. */
static void philox_equals_the_published_vectors(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} v[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { ~0u, ~0u, ~0u, ~0u },
		  { ~0u, ~0u },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		uint32_t out[4];

		philox_block(out, v[i].key[0] | (uint64_t)v[i].key[1] << 32,
			     v[i].counter[0] | (uint64_t)v[i].counter[1] << 32,
			     v[i].counter[2] | (uint64_t)v[i].counter[3] << 32);
		assert_memory_equal(out, v[i].out, sizeof(out));
	}
}

/* Also where the block counter passes 2^32, in the middle of a group. */
static void elements_are_the_generators_words(void **state)
{
	static const uint64_t offsets[] = { 0, 5, 0xfffffff8, 0xffffffffffffff00 };
	const uint64_t seed = 0x0123456789abcdef;
	tensor_generator *g = tensor_generator_new(seed);

	for (size_t k = 0; k < 4; k++) {
		struct tensor_generator_state at = { seed, offsets[k] }, after;

		tensor_generator_set_state(g, &at);
		tensor_scope {
			tensor *t = ok(tensor_rand_generator(TENSOR_SHAPE(1000), g, F32));
			const float *v = tensor_data(t);

			for (int64_t i = 0; i < 1000; i++)
				assert_true(v[i] == (word(seed, at.offset, i) >> 8) * 0x1p-24f);
		}
		tensor_generator_get_state(g, &after);
		assert_int_equal(after.offset, at.offset + 16 * 16);
		tensor_generator_set_state(g, &at);
		tensor_scope {
			tensor *t = ok(tensor_rand_generator(TENSOR_SHAPE(100), g, F64));
			const double *v = tensor_data(t);

			for (int64_t i = 0; i < 100; i++) {
				int64_t lo = i / 32 * 64 + i % 32 / 16 * 32 + i % 16;
				uint64_t n = word(seed, at.offset, lo) |
					     (uint64_t)word(seed, at.offset, lo + 16) << 32;
				uint64_t bits = (n >> 37) << 26 | (uint32_t)n >> 6;

				assert_true(v[i] == bits * 0x1p-53);
			}
		}
	}
	tensor_generator_release(g);
}

static void restored_state_continues_the_sequence(void **state)
{
	tensor_generator *g = tensor_generator_new(7);
	struct tensor_generator_state at;

	assert_int_equal(tensor_generator_initial_seed(g), 7);
	tensor_scope {
		tensor *a, *b, *c, *again;

		a = ok(tensor_rand_generator(TENSOR_SHAPE(100), g, F32));
		tensor_generator_get_state(g, &at);
		b = ok(tensor_rand_generator(TENSOR_SHAPE(100), g, F32));
		c = ok(tensor_rand_generator(TENSOR_SHAPE(100), g, F32));
		assert_false(same_bits(a, b));
		assert_false(same_bits(b, c));
		tensor_generator_set_state(g, &at);
		again = ok(tensor_rand_generator(TENSOR_SHAPE(100), g, F32));
		assert_true(same_bits(b, again));
		tensor_generator_manual_seed(g, 7);
		again = ok(tensor_rand_generator(TENSOR_SHAPE(100), g, F32));
		assert_true(same_bits(a, again));
		tensor_generator_manual_seed(g, 8);
		again = ok(tensor_rand_generator(TENSOR_SHAPE(100), g, F32));
		assert_false(same_bits(a, again));
		tensor_manual_seed(7);
		assert_true(same_bits(a, ok(tensor_rand(TENSOR_SHAPE(100), F32))));
	}
	assert_int_not_equal(tensor_generator_seed(g), tensor_generator_seed(g));
	assert_ptr_equal(tensor_generator_retain(g), g);
	tensor_generator_release(g);
	tensor_generator_release(g);
	tensor_generator_release(NULL);
	tensor_generator_release(tensor_default_generator());
}

/* A forked child continues with the state of its parent. */
static void forked_child_copies_the_generator(void **state)
{
	int status;
	pid_t child;
	float mine = 0;

	assert_done(tensor_set_num_threads(1));
	child = fork();
	tensor_scope {
		mine = *(const float *)tensor_data(ok(tensor_rand(TENSOR_SHAPE(1), F32)));
	}
	if (!child)
		_exit((int)(mine * 200));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), (int)(mine * 200));
	assert_done(tensor_set_num_threads(2));
}

static tensor *call_boxed(const char *name, const tensor_value *args, int n)
{
	tensor_value ret = { 0 };

	return tensor_call(name, args, n, &ret, 1) < 0 ? NULL : ret.t;
}

static void boxed_calls_take_a_generator(void **state)
{
	tensor_generator *g = tensor_generator_new(3);
	tensor_value args[] = {
		{ .kind = TENSOR_VALUE_INTS, .ints = TENSOR_INTS(4) },
		{ .kind = TENSOR_VALUE_GENERATOR, .generator = g },
	};

	tensor_scope {
		tensor *a = ok(call_boxed("rand.generator", args, 2));

		tensor_generator_manual_seed(g, 3);
		assert_true(same_bits(a, ok(tensor_rand_generator(TENSOR_SHAPE(4), g, F32))));
		args[1].kind = TENSOR_VALUE_INT;
		assert_fails(call_boxed("rand.generator", args, 2), EINVAL, "expected generator");
	}
	tensor_generator_release(g);
}

/* ---- the same numbers for any way to compute them ---- */

#define LARGE 300001
#define KINDS 12

static tensor *large_result(int which)
{
	tensor_ints n = TENSOR_SHAPE(LARGE);

	tensor_manual_seed(SEED);
	switch (which) {
	case 0:
		return tensor_randn(n, F32);
	case 1:
		return tensor_randn(n, F64);
	case 2:
		return tensor_rand(n, OF(TENSOR_BF16));
	case 3:
		return tensor_randint_low(-5, 1 << 20, n, I64);
	case 4:
		return tensor_randint((int64_t)1 << 40, n, I64);
	case 5:
		return tensor_exponential_(tensor_empty(n, F32), 2);
	case 6:
		return tensor_bernoulli_float_(tensor_empty(n, OF(TENSOR_BOOL)), 0.25);
	case 7:
		return tensor_bernoulli(tensor_full(n, S(0.25), F64));
	case 8:
		return tensor_dropout(tensor_full(n, S(1.5), F32), 0.5, true);
	case 9:
		return tensor_multinomial(tensor_full(TENSOR_SHAPE(1000, 50), S(1.0), F32), 20,
					  false);
	case 10:
		return tensor_multinomial(tensor_full(TENSOR_SHAPE(1000, 50), S(1.0), F32), 80,
					  true);
	default:
		return tensor_randperm(LARGE, I64);
	}
}

static void results_do_not_depend_on_threads(void **state)
{
	for (int which = 0; which < KINDS; which++) {
		tensor_scope {
			tensor *one, *two;

			assert_done(tensor_set_num_threads(1));
			one = ok(large_result(which));
			assert_done(tensor_set_num_threads(2));
			two = ok(large_result(which));
			assert_true(same_bits(one, two));
		}
	}
}

static void results_do_not_depend_on_strides(void **state)
{
	tensor_scope {
		tensor *plain = ok(tensor_empty(TENSOR_SHAPE(37, 53), F32));
		tensor *turned = ok(tensor_t(tensor_empty(TENSOR_SHAPE(53, 37), F32)));
		tensor *wide = ok(tensor_full(TENSOR_SHAPE(37, 106), S(9.0), F32));
		tensor *every = ok(tensor_slice(wide, 1, 0, 106, 2));
		uint32_t version = tensor_version(every);

		tensor_manual_seed(1);
		ok(tensor_normal_(plain, 1, 2));
		tensor_manual_seed(1);
		ok(tensor_normal_(turned, 1, 2));
		tensor_manual_seed(1);
		ok(tensor_normal_(every, 1, 2));
		assert_true(same_bits(plain, turned));
		assert_true(same_bits(plain, every));
		for (int i = 1; i < 106; i += 2)
			assert_true(((const float *)tensor_data(wide))[i] == 9);
		assert_int_equal(tensor_version(every), version + 1);
	}
}

static uint64_t hash(tensor *t)
{
	size_t n = tensor_numel(ok(t)) * tensor_itemsize(tensor_dtype(t));
	const unsigned char *p = tensor_data(t);
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h;
}

/* Recorded results: a change of them changes the random numbers of all programs. */
static void numbers_are_the_same_on_every_processor(void **state)
{
	static const uint64_t recorded[KINDS] = {
		0x656c4e63d1ec3ec1, 0x5d1eae98cb606e47, 0xe5107cbad8c5f537, 0x7063164bff806793,
		0x0ceca0122476b213, 0x3cb8cdc58e92c775, 0xe3de0cb95d6f8269, 0x4c5c14d9a7f17078,
		0xa8bf6a9c46683af5, 0xe0022a0f19d07eb2, 0xab63c5029058f18d, 0x1ead8f76d7df6564,
	};

	for (int which = 0; which < KINDS; which++) {
		tensor_scope {
			uint64_t h = hash(large_result(which));

			if (h != recorded[which])
				fprintf(stderr, "kind %d: 0x%016llx\n", which,
					(unsigned long long)h);
			assert_int_equal(h, recorded[which]);
		}
	}
}

/* The first elements of a longer result equal those of a shorter one. */
static void elements_do_not_depend_on_the_length(void **state)
{
	for (int64_t n = 1; n < 200; n += 13) {
		tensor_scope {
			tensor *a, *b;

			tensor_manual_seed(4);
			a = ok(tensor_randn(TENSOR_SHAPE(n), F32));
			tensor_manual_seed(4);
			b = ok(tensor_randn(TENSOR_SHAPE(200), F32));
			assert_true(same_bits(a, ok(tensor_narrow(b, 0, 0, n))));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_equals_the_published_vectors),
		cmocka_unit_test(elements_are_the_generators_words),
		cmocka_unit_test(restored_state_continues_the_sequence),
		cmocka_unit_test(forked_child_copies_the_generator),
		cmocka_unit_test(boxed_calls_take_a_generator),
		cmocka_unit_test(results_do_not_depend_on_threads),
		cmocka_unit_test(results_do_not_depend_on_strides),
		cmocka_unit_test(numbers_are_the_same_on_every_processor),
		cmocka_unit_test(elements_do_not_depend_on_the_length),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
