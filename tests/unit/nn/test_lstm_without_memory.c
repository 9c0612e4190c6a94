// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * An LSTM's layer while there is memory for a few tensors only, for each number of them: it either fails with ENOMEM, or
 * has the results that it has otherwise. Views need memory for a tensor, not for its elements; hundreds of them are
 * released, because what is no tensor gets the memory of whole groups of them only.
 */
#include "autograd.h"

#include <sys/resource.h>

enum { STEPS = 3, ROWS = 4, SIZE = 5, INPUTS = 4, RESULTS = 4, MANY = 1 << 16, ENOUGH = 600 };

static tensor *inputs[INPUTS]; /* gates, hx, cx, w_hh */
static tensor *views[MANY];

/* The layer's output, cells and activated gates. */
static bool forward(tensor *results[RESULTS])
{
	return tensor__lstm_layer((tensor_list){ inputs, INPUTS }, true, true, &results[0],
				  &results[1], &results[2]) == 0;
}

static tensor *recorded; /* a number whose gradients backward() computes */

static bool backward(tensor *results[RESULTS])
{
	if (tensor_backward_ex(TENSOR_LIST(recorded), NULL, (tensor_list){ 0 }, NULL,
			       TENSOR_RETAIN_GRAPH) < 0)
		return false;
	for (int i = 0; i < INPUTS; i++)
		results[i] = tensor_grad(inputs[i]);
	return true;
}

/* Makes views until there is no memory for another; returns their number. */
static int use_all_memory(void)
{
	for (int n = 0; n < MANY; n++) {
		tensor_scope
			views[n] = tensor_keep(tensor_detach(inputs[0]));
		if (!views[n])
			return n;
	}
	return MANY;
}

typedef bool (*part)(tensor *results[RESULTS]);

/* Whether the part of the layer succeeds with memory for `few` tensors. */
static bool succeeds_with(int few, part compute, int nresults, tensor *wanted[RESULTS])
{
	struct rlimit limit, none;
	tensor *results[RESULTS];
	bool done = false;
	int n, code;

	tensor_scope
		assert_true(compute(results)); /* what backward keeps for the next one */
	for (int i = 0; i < INPUTS; i++)
		tensor_set_grad(inputs[i], NULL);
	tensor_scope {
		getrlimit(RLIMIT_AS, &limit);
		none = limit;
		none.rlim_cur = 0;
		setrlimit(RLIMIT_AS, &none);
		n = use_all_memory();
		for (int i = 0; i < few && n; i++)
			tensor_release(views[--n]);
		tensor_clear_error();
		done = compute(results);
		code = tensor_last_error()->code;
		setrlimit(RLIMIT_AS, &limit);
		while (n)
			tensor_release(views[--n]);
		if (!done)
			assert_int_equal(code, ENOMEM);
		for (int i = 0; done && i < nresults; i++)
			assert_same(results[i], wanted[i]);
	}
	return done;
}

static void check_part(part compute, int nresults)
{
	tensor *wanted[RESULTS];
	int failed = 0;

	assert_true(compute(wanted));
	for (int i = 0; i < nresults; i++)
		wanted[i] = ok(tensor_clone(wanted[i]));
	for (int few = 0; few < ENOUGH; few++)
		failed += !succeeds_with(few, compute, nresults, wanted);
	assert_in_range(failed, 5, ENOUGH - 1);
}

static void layer_without_memory_fails_or_is_right(void **state)
{
	const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_BF16, TENSOR_F64 };
	const int64_t shapes[INPUTS][3] = {
		{ STEPS, ROWS, 4 * SIZE }, { ROWS, SIZE }, { ROWS, SIZE }, { 4 * SIZE, SIZE }
	};

	(void)state;
	NOT_WATCHED();
	NOT_UNDER_TSAN("it needs address space");
	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		tensor_scope {
			tensor *out[RESULTS];

			for (int i = 0; i < INPUTS; i++)
				inputs[i] = ok(tensor_rand((tensor_ints){ shapes[i], i ? 2 : 3 },
							   OF(dtypes[d])));
			check_part(forward, 3);
			for (int i = 0; i < INPUTS; i++)
				leaf(inputs[i]);
			assert_true(forward(out));
			recorded = ok(tensor_add(tensor_sum(out[0]),
						 tensor_sum(tensor_mul(out[1], out[1]))));
			check_part(backward, INPUTS);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layer_without_memory_fails_or_is_right),
	};

	return cmocka_run_group_tests_name("lstm_without_memory", tests, NULL, NULL);
}
