// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Tensors on the caller's memory: they use the memory itself, the deleter runs once after the last
 * use, and an invalid description is refused without a call of the deleter.
 */
#include "check.h"

#include <pthread.h>
#include <sys/mman.h>

#define NO_STRIDES TENSOR_NO_INTS

struct owner {
	_Atomic int calls;
	void *data;
	pthread_t thread;
};

static void count(void *data, void *ctx)
{
	struct owner *o = ctx;

	o->calls++;
	o->data = data;
	o->thread = pthread_self();
}

/* [2, 3] of f32 */
static tensor *blob(float *data, struct owner *o)
{
	return ok(tensor_from_blob(data, TENSOR_SHAPE(2, 3), NO_STRIDES, F32, count, o));
}

static void blob_uses_the_memory_of_the_caller(void **state)
{
	float data[6] = { 0, 1, 2, 3, 4, 5 };
	struct owner o = { 0 };

	tensor_scope {
		tensor *t = blob(data, &o);

		assert_ptr_equal(tensor_data(t), data);
		assert_strides(t, 3, 1);
		assert_true(tensor_is_contiguous(t));
		ok(tensor_mul_scalar_(t, S(2)));
		assert_true(data[5] == 10);
		data[0] = 7;
		assert_values(t, 0, 7, 2, 4, 6, 8, 10);
		assert_int_equal(o.calls, 0);
	}
	assert_int_equal(o.calls, 1);
	assert_ptr_equal(o.data, data);
}

static void strides_lead_in_all_directions(void **state)
{
	float data[6] = { 0, 1, 2, 3, 4, 5 };

	tensor_scope {
		tensor *t = ok(tensor_from_blob(&data[5], TENSOR_SHAPE(2, 3), TENSOR_INTS(-3, -1),
						F32, NULL, NULL));

		assert_ptr_equal(tensor_data(t), &data[5]);
		assert_strides(t, -3, -1);
		assert_values(t, 0, 5, 4, 3, 2, 1, 0);
		ok(tensor_zero_(ok(tensor_select(t, 0, 1))));
		assert_true(data[0] == 0 && data[2] == 0 && data[3] == 3);
		t = ok(tensor_from_blob(&data[3], TENSOR_SHAPE(3, 2), TENSOR_INTS(1, -3), F32, NULL,
					NULL));
		assert_values(t, 0, 3, 0, 4, 0, 5, 0);
		t = ok(tensor_from_blob(data, TENSOR_SHAPE(2, 2), TENSOR_INTS(0, 5), F32, NULL,
					NULL));
		assert_values(t, 0, 0, 5, 0, 5);
	}
}

static void blob_without_elements_or_dimensions_is_valid(void **state)
{
	struct owner o = { 0 };
	float data = 3;

	tensor_scope {
		tensor *t = ok(
			tensor_from_blob(NULL, TENSOR_SHAPE(2, 0, 3), NO_STRIDES, F32, count, &o));

		assert_shape(t, 2, 0, 3);
		t = ok(tensor_from_blob(NULL, TENSOR_SHAPE(0), TENSOR_INTS(INT64_MIN), F32, count,
					&o));
		assert_int_equal(tensor_numel(ok(tensor_clone(t))), 0);
		t = ok(tensor_from_blob(&data, TENSOR_SCALAR_SHAPE, NO_STRIDES, F32, count, &o));
		assert_values(t, 0, 3);
		/* The stride of a dimension of size 1 leads nowhere. */
		t = ok(tensor_from_blob(&data, TENSOR_SHAPE(1, 1),
					TENSOR_INTS(INT64_MAX, INT64_MIN), F32, count, &o));
		assert_values(t, 0, 3);
		t = ok(tensor_from_blob(&data, TENSOR_SHAPE(1), NO_STRIDES, TENSOR_OPTIONS(0),
					count, &o));
		assert_int_equal(tensor_dtype(t), TENSOR_F32);
	}
	assert_int_equal(o.calls, 5);
}

static void blob_has_every_dtype(void **state)
{
	_Alignas(16) uint8_t data[64] = { 0 };

	for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++)
		tensor_scope {
			tensor *t = ok(tensor_from_blob(data, TENSOR_SHAPE(4), NO_STRIDES, OF(d),
							NULL, NULL));

			assert_int_equal(tensor_dtype(t), d);
			assert_values(ok(tensor_to(t, F64)), 0, 0, 0, 0, 0);
		}
}

static void memory_lives_until_its_last_view(void **state)
{
	float data[6] = { 0, 1, 2, 3, 4, 5 };
	struct owner o = { 0 };
	tensor *t = blob(data, &o), *row = ok(tensor_select(t, 0, 1)), *again;

	tensor_release(t);
	again = ok(tensor_detach(row));
	tensor_release(row);
	assert_int_equal(o.calls, 0);
	assert_values(again, 0, 3, 4, 5);
	tensor_release(again);
	assert_int_equal(o.calls, 1);
}

static void memory_lives_while_autograd_has_saved_it(void **state)
{
	float data[6] = { 0, 1, 2, 3, 4, 5 };
	struct owner o = { 0 };
	tensor *w = ok(tensor_ones(TENSOR_SHAPE(2, 3), F32)), *t = blob(data, &o), *product, *sum;

	assert_done(tensor_set_requires_grad(w, true));
	product = ok(tensor_mul(w, t));
	sum = ok(tensor_sum(product));
	tensor_release(product);
	tensor_release(t);
	assert_int_equal(o.calls, 0);
	assert_done(tensor_backward(sum));
	assert_values(tensor_grad(w), 0, 0, 1, 2, 3, 4, 5);
	tensor_release(sum);
	assert_int_equal(o.calls, 1);
	tensor_release(w);
}

static void call_library(void *data, void *ctx)
{
	ok(tensor_ones(TENSOR_SHAPE(3), F32)); /* owned by the scope that ends */
	tensor_scope {
		ok(tensor_sum(ok(tensor_ones(TENSOR_SHAPE(3), F32))));
	}
	tensor_release(ctx);
}

static void deleter_may_call_the_library(void **state)
{
	struct tensor_live_counts before, after;
	float data[6] = { 0 };
	struct owner o = { 0 };

	tensor_live_counts(&before);
	tensor_scope {
		tensor *other = tensor_retain(blob(data, &o));

		for (int i = 0; i < 20; i++)
			ok(tensor_from_blob(data, TENSOR_SHAPE(6), NO_STRIDES, F32, call_library,
					    i ? NULL : other));
	}
	assert_int_equal(o.calls, 1);
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

/* ---- threads ---- */

static void *release_in_thread(void *t)
{
	tensor_release(t);
	return NULL;
}

static void deleter_runs_in_the_thread_of_the_last_release(void **state)
{
	float data[6] = { 0 };
	struct owner o = { 0 };
	tensor *t = tensor_retain(blob(data, &o));
	pthread_t thread;

	tensor_release(t);
	assert_int_equal(o.calls, 0);
	assert_int_equal(pthread_create(&thread, NULL, release_in_thread, t), 0);
	pthread_join(thread, NULL);
	assert_int_equal(o.calls, 1);
	assert_true(pthread_equal(o.thread, thread));
}

static void *use_and_release(void *t)
{
	for (int i = 0; i < 100; i++)
		tensor_scope {
			ok(tensor_sum(ok(tensor_select(t, 0, i % 2))));
		}
	tensor_release(t);
	return NULL;
}

static void deleter_runs_once_for_many_threads(void **state)
{
	enum { THREADS = 8, ROUNDS = 20 };
	float data[6] = { 0 };
	pthread_t threads[THREADS];

	for (int round = 0; round < ROUNDS; round++) {
		struct owner o = { 0 };
		tensor *t = blob(data, &o);

		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, use_and_release,
							tensor_retain(t)),
					 0);
		tensor_release(t);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(o.calls, 1);
	}
}

/* ---- read-only memory ---- */

static void readonly_blob_is_never_written(void **state)
{
	const float *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct owner o = { 0 };

	tensor_scope {
		tensor *t = ok(tensor_from_blob_readonly(page, TENSOR_SHAPE(2, 2), NO_STRIDES, F32,
							 count, &o));

		assert_false(tensor_is_writable(t));
		assert_null(tensor_mutable_data(t));
		assert_fails(tensor_add_scalar_(t, S(1)), EACCES, "read-only");
		assert_fails(tensor_add_scalar_(ok(tensor_select(t, 0, 1)), S(1)), EACCES, "");
		assert_values(ok(tensor_add_scalar(t, S(1))), 0, 1, 1, 1, 1);
	}
	assert_int_equal(o.calls, 1);
	assert_ptr_equal(o.data, page);
	munmap((void *)page, 4096);
}

/* ---- other functions on it ---- */

static void blob_never_moves(void **state)
{
	float data[6] = { 0, 1, 2, 3, 4, 5 };
	struct owner o = { 0 };

	tensor_scope {
		tensor *t = blob(data, &o);

		assert_fails(tensor_share_memory(t), EOPNOTSUPP, "");
		ok(tensor_resize_(t, TENSOR_SHAPE(100)));
		assert_int_equal(o.calls, 1); /* the tensor has other memory now */
		ok(tensor_zero_(t));
		assert_true(data[5] == 5);
	}
	assert_int_equal(o.calls, 1);
}

/* ---- refusals ---- */

static float values[6];

#define REFUSED(errno_, words, data, size, strides, options)                                     \
	do {                                                                                     \
		struct owner o = { 0 };                                                          \
                                                                                                 \
		assert_fails(tensor_from_blob(data, size, strides, options, count, &o), errno_,  \
			     words);                                                             \
		assert_fails(tensor_from_blob_readonly(data, size, strides, options, count, &o), \
			     errno_, words);                                                     \
		assert_int_equal(o.calls, 0);                                                    \
	} while (0)

static void invalid_geometry_is_refused(void **state)
{
	const tensor_ints seventeen = { (const int64_t[17]){ 0 }, 17 };

	REFUSED(EINVAL, "size is not given", values, TENSOR_NO_INTS, NO_STRIDES, F32);
	REFUSED(EINVAL, "size is not given", values, ((tensor_ints){ NULL, 2 }), NO_STRIDES, F32);
	REFUSED(EINVAL, "at most 16", values, seventeen, NO_STRIDES, F32);
	REFUSED(EINVAL, "at most 16", values, ((tensor_ints){ (const int64_t[1]){ 1 }, INT64_MAX }),
		NO_STRIDES, F32);
	REFUSED(EINVAL, "2 sizes, but 1", values, TENSOR_SHAPE(2, 3), TENSOR_INTS(1), F32);
	REFUSED(EINVAL, "strides at NULL", values, TENSOR_SHAPE(2), ((tensor_ints){ NULL, 1 }),
		F32);
	REFUSED(EINVAL, "-7 strides", values, TENSOR_SHAPE(2), ((tensor_ints){ NULL, -7 }), F32);
	REFUSED(EINVAL, "negative", values, TENSOR_SHAPE(2, -1), NO_STRIDES, F32);
	REFUSED(EOVERFLOW, "", values, TENSOR_SHAPE(INT64_MAX, 2), NO_STRIDES, F32);
	REFUSED(EOVERFLOW, "", values, TENSOR_SHAPE(INT64_MAX), NO_STRIDES, F32);
	REFUSED(EOVERFLOW, "", values, TENSOR_SHAPE(2), TENSOR_INTS(INT64_MIN), F32);
	REFUSED(EOVERFLOW, "", values, TENSOR_SHAPE(2, 2),
		TENSOR_INTS(INT64_MAX / 2, INT64_MAX / 2), F32);
	REFUSED(EOVERFLOW, "end of memory", values, TENSOR_SHAPE(2), TENSOR_INTS(INT64_MIN / 8),
		F32);
}

static void invalid_memory_is_refused(void **state)
{
	static uint8_t bools[8] = { 1, 0, 1, 2, 0, 1, 1, 1 };

	REFUSED(EINVAL, "without data", NULL, TENSOR_SHAPE(2, 3), NO_STRIDES, F32);
	REFUSED(EINVAL, "without data", NULL, TENSOR_SCALAR_SHAPE, NO_STRIDES, F32);
	REFUSED(EINVAL, "aligned to f32", (char *)values + 2, TENSOR_SHAPE(2), NO_STRIDES, F32);
	REFUSED(EINVAL, "aligned to c64", (char *)values + 2, TENSOR_SHAPE(1), NO_STRIDES,
		OF(TENSOR_C64));
	REFUSED(EINVAL, "bool", bools, TENSOR_SHAPE(4), NO_STRIDES, OF(TENSOR_BOOL));
	REFUSED(EINVAL, "bool", &bools[3], TENSOR_SHAPE(1), NO_STRIDES, OF(TENSOR_BOOL));
	REFUSED(EINVAL, "bool", &bools[7], TENSOR_SHAPE(2, 2), TENSOR_INTS(-4, -1),
		OF(TENSOR_BOOL));
	tensor_scope {
		/* The 2 is between the elements. */
		assert_values(ok(tensor_from_blob(&bools[2], TENSOR_SHAPE(3), TENSOR_INTS(2),
						  OF(TENSOR_BOOL), NULL, NULL)),
			      0, 1, 0, 1);
		assert_values(ok(tensor_from_blob(&bools[4], TENSOR_SHAPE(2, 2), TENSOR_INTS(1, -4),
						  OF(TENSOR_BOOL), NULL, NULL)),
			      0, 0, 1, 1, 0);
	}
}

static void other_options_are_refused(void **state)
{
	tensor_ints size = TENSOR_SHAPE(2, 3);

	REFUSED(EOPNOTSUPP, "sparse_coo", values, size, NO_STRIDES,
		TENSOR_OPTIONS(.layout = TENSOR_SPARSE_COO));
	REFUSED(EOPNOTSUPP, "cuda:1", values, size, NO_STRIDES,
		TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(1)));
	REFUSED(EOPNOTSUPP, "device", values, size, NO_STRIDES,
		TENSOR_OPTIONS(.device = { 99, -1 }));
	REFUSED(EOPNOTSUPP, "shareable", values, size, NO_STRIDES, SHAREABLE(TENSOR_F32));
	REFUSED(EINVAL, "memory format", values, size, NO_STRIDES,
		TENSOR_OPTIONS(.memory_format = TENSOR_CHANNELS_LAST));
	REFUSED(EINVAL, "no dtype", values, size, NO_STRIDES, OF(TENSOR_DTYPE_COUNT));
	REFUSED(EINVAL, "no dtype", values, size, NO_STRIDES, OF(255));
}

/* 2^56 elements in less than 2 KB: the check of bools may not visit each of them. */
static void overlapping_bools_are_checked_once(void **state)
{
	static uint8_t bools[7 * 255 + 1];
	tensor_ints size = TENSOR_SHAPE(256, 256, 256, 256, 256, 256, 256);
	tensor_options options = OF(TENSOR_BOOL);

	tensor_scope {
		ok(tensor_from_blob(bools, size, TENSOR_INTS(1, 1, 1, 1, 1, 1, 1), options, NULL,
				    NULL));
		ok(tensor_from_blob(bools, size, TENSOR_INTS(0, 0, 0, 0, 0, 0, 0), options, NULL,
				    NULL));
		bools[1000] = 2;
		REFUSED(EINVAL, "bool", bools, size, TENSOR_INTS(1, 1, 1, 1, 1, 1, 1), options);
		ok(tensor_from_blob(bools, size, TENSOR_INTS(0, 0, 0, 0, 0, 0, 1), options, NULL,
				    NULL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blob_uses_the_memory_of_the_caller),
		cmocka_unit_test(strides_lead_in_all_directions),
		cmocka_unit_test(blob_without_elements_or_dimensions_is_valid),
		cmocka_unit_test(blob_has_every_dtype),
		cmocka_unit_test(memory_lives_until_its_last_view),
		cmocka_unit_test(memory_lives_while_autograd_has_saved_it),
		cmocka_unit_test(deleter_may_call_the_library),
		cmocka_unit_test(deleter_runs_in_the_thread_of_the_last_release),
		cmocka_unit_test(deleter_runs_once_for_many_threads),
		cmocka_unit_test(readonly_blob_is_never_written),
		cmocka_unit_test(blob_never_moves),
		cmocka_unit_test(invalid_geometry_is_refused),
		cmocka_unit_test(invalid_memory_is_refused),
		cmocka_unit_test(other_options_are_refused),
		cmocka_unit_test(overlapping_bools_are_checked_once),
	};

	return cmocka_run_group_tests_name("blob", tests, NULL, NULL);
}
