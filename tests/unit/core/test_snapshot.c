// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Arguments that another process may write to, passed to operators that read them twice (`reads:`
 * in the declarations). tests/fuzz/calls --round writer does so with every operator.
 */
#include "check.h"

#include <pthread.h>

/* ---- same results ---- */

static tensor *shared_copy(tensor *t)
{
	tensor *copy = ok(tensor_clone(t));

	assert_done(tensor_share_memory(copy));
	return copy;
}

static tensor *embedding_of(tensor *weight, tensor *index)
{
	return tensor_embedding(weight, index, -1, false, false);
}

static void shared_indices_give_the_same_results(void **state)
{
	tensor_scope {
		tensor *self = iota(0, TENSOR_INTS(4, 5)), *index = ok(tensor_arange(S(3), I64));
		tensor *mask = ok(tensor_gt_scalar(self, S(7)));
		tensor *at = shared_copy(index), *where = shared_copy(mask);

		assert_same(tensor_index_select(self, 1, at), tensor_index_select(self, 1, index));
		assert_same(tensor_masked_select(self, where), tensor_masked_select(self, mask));
		assert_same(tensor_nonzero(shared_copy(self)), tensor_nonzero(self));
		assert_same(tensor_index_list(self, TENSOR_LIST(where)),
			    tensor_index_list(self, TENSOR_LIST(mask)));
		assert_same(embedding_of(self, at), embedding_of(self, index));
		assert_same(tensor_to_dense(tensor_to_sparse(shared_copy(self))), self);
	}
}

static void shared_views_give_the_same_results(void **state)
{
	tensor_scope {
		tensor *self = iota(0, TENSOR_INTS(4, 6)), *index = ok(tensor_arange(S(4), I64));
		tensor *at = shared_copy(index);

		assert_same(tensor_index_select(self, 1, tensor_slice(at, 0, 1, TENSOR_NONE, 2)),
			    tensor_index_select(self, 1,
						tensor_slice(index, 0, 1, TENSOR_NONE, 2)));
		/* stride 0 */
		assert_same(
			tensor_gather(self, 1,
				      tensor_expand(tensor_unsqueeze(at, 1), TENSOR_INTS(4, 6))),
			tensor_gather(self, 1,
				      tensor_expand(tensor_unsqueeze(index, 1),
						    TENSOR_INTS(4, 6))));
	}
}

/* ---- a writer ---- */

enum { COUNT = 1 << 15, CHANGED = 512, CALLS = 1500 };

static struct {
	uint8_t *at; /* address of the last elements */
	size_t size;
	_Atomic bool stop;
} peer;

/* Alternates between zeros and ones: as indices they are valid and far out of range. */
__attribute__((no_sanitize("thread"))) static void *write_on(void *unused)
{
	while (!peer.stop) {
		for (size_t i = 0; i < peer.size; i++)
			*(volatile uint8_t *)&peer.at[i] = 1;
		for (size_t i = 0; i < peer.size; i++)
			*(volatile uint8_t *)&peer.at[i] = 0;
	}
	return unused;
}

/* Calls fn while another thread changes the last elements of its argument. */
static void call_with_writer(tensor *(*fn)(tensor *arg), enum tensor_dtype dtype)
{
	tensor *arg = ok(tensor_zeros(TENSOR_INTS(COUNT), TENSOR_OPTIONS(.dtype = dtype)));
	size_t size = tensor_itemsize(dtype);
	pthread_t thread;

	assert_done(tensor_share_memory(arg));
	peer.size = CHANGED * size;
	peer.at = (uint8_t *)tensor_mutable_data(arg) + COUNT * size - peer.size;
	peer.stop = false;
	assert_int_equal(pthread_create(&thread, NULL, write_on, NULL), 0);
	for (int i = 0; i < CALLS; i++)
		tensor_scope
			fn(arg);
	peer.stop = true;
	pthread_join(thread, NULL);
	tensor_release(arg);
}

static tensor *gathered(tensor *index)
{
	return tensor_gather(iota(0, TENSOR_INTS(8)), 0, index);
}

static tensor *scattered(tensor *index)
{
	return tensor_scatter(iota(0, TENSOR_INTS(8)), 0, index, iota(0, TENSOR_INTS(COUNT)));
}

static tensor *gradient_of_embedding(tensor *index)
{
	return tensor_embedding_dense_backward(iota(0, TENSOR_INTS(COUNT, 1)), index, 8, -1, true);
}

static void indices_are_used_as_they_were_checked(void **state)
{
	call_with_writer(gathered, TENSOR_I64);
	call_with_writer(scattered, TENSOR_I64);
	call_with_writer(gradient_of_embedding, TENSOR_I64);
}

static tensor *nonzeros(tensor *mask)
{
	tensor *where = ok(tensor_nonzero(mask));
	const int64_t *p = tensor_data(where);

	for (int64_t i = 0; i < tensor_numel(where); i++)
		assert_in_range(p[i], COUNT - CHANGED + i, COUNT - 1);
	return where;
}

static tensor *selected(tensor *mask)
{
	return ok(tensor_masked_select(iota(0, TENSOR_INTS(COUNT)), mask));
}

static tensor *sparse(tensor *t)
{
	return ok(tensor_to_dense(ok(tensor_to_sparse(t))));
}

static void nonzero_writes_as_many_as_it_counted(void **state)
{
	call_with_writer(nonzeros, TENSOR_BOOL);
	call_with_writer(selected, TENSOR_BOOL);
	call_with_writer(sparse, TENSOR_F32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_indices_give_the_same_results),
		cmocka_unit_test(shared_views_give_the_same_results),
		cmocka_unit_test(indices_are_used_as_they_were_checked),
		cmocka_unit_test(nonzero_writes_as_many_as_it_counted),
	};

	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
