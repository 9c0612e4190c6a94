// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Recurrent layers against their cells, packed sequences against single ones, errors. */
#include "check.h"

#define STEPS 4
#define BATCH 3
#define IN    2
#define SIZE  3

static tensor *numbers(tensor_ints shape, unsigned seed)
{
	tensor *t = ok(tensor_zeros(shape, F64));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = (double)((i + seed) * 2654435761u % 8009) / 4000 - 1;
	return t;
}

static double distance(tensor *a, tensor *b)
{
	double value;

	assert_done(tensor_item(ok(tensor_max(tensor_abs(tensor_sub(a, b)))), &value));
	return value;
}

static tensor *step_of(tensor *x, int64_t t)
{
	return ok(tensor_select(x, 0, t));
}

/* Weights of two layers; the first has IN features. */
static tensor_list weights(tensor **w, int gates)
{
	for (int l = 0; l < 2; l++) {
		w[4 * l] = numbers(TENSOR_SHAPE(gates * SIZE, l ? SIZE : IN), 10 * l + 1);
		w[4 * l + 1] = numbers(TENSOR_SHAPE(gates * SIZE, SIZE), 10 * l + 2);
		w[4 * l + 2] = numbers(TENSOR_SHAPE(gates * SIZE), 10 * l + 3);
		w[4 * l + 3] = numbers(TENSOR_SHAPE(gates * SIZE), 10 * l + 4);
	}
	return (tensor_list){ w, 8 };
}

static void lstm_equals_a_sequence_of_cells(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_SHAPE(STEPS, BATCH, IN), 5), *w[8], *out, *hy, *cy;
		tensor *h0 = numbers(TENSOR_SHAPE(2, BATCH, SIZE), 6),
		       *c0 = numbers(TENSOR_SHAPE(2, BATCH, SIZE), 7);
		tensor *h[2] = { step_of(h0, 0), step_of(h0, 1) },
		       *c[2] = { step_of(c0, 0), step_of(c0, 1) };

		assert_done(tensor_lstm(x, TENSOR_LIST(h0, c0), weights(w, 4), true, 2, 0, false,
					false, false, &out, &hy, &cy));
		for (int t = 0; t < STEPS; t++) {
			for (int l = 0; l < 2; l++)
				assert_done(tensor_lstm_cell(
					l ? h[0] : step_of(x, t), TENSOR_LIST(h[l], c[l]), w[4 * l],
					w[4 * l + 1], w[4 * l + 2], w[4 * l + 3], &h[l], &c[l]));
			assert_true(distance(step_of(out, t), h[1]) < 1e-12);
		}
		assert_true(distance(step_of(hy, 0), h[0]) < 1e-12 &&
			    distance(step_of(cy, 1), c[1]) < 1e-12);
	}
}

/* Sequences of lengths 4, 2 and 1 in both directions give the results of single sequences. */
static void packed_sequences_are_independent(void **state)
{
	static const int64_t lengths[] = { 4, 2, 1 };

	tensor_scope {
		tensor *x = numbers(TENSOR_SHAPE(STEPS, BATCH, IN), 5), *w[8], *data, *sizes, *out,
		       *hy, *padded, *n;
		tensor *h0 = numbers(TENSOR_SHAPE(2, BATCH, SIZE), 6);
		tensor_list params = weights(w, 3);

		w[4] = w[0];
		assert_done(tensor_pack_padded_sequence(
			x, ok(tensor_from_data(lengths, TENSOR_SHAPE(BATCH), I64)), false, &data,
			&sizes));
		assert_values(sizes, 0, 3, 2, 1, 1);
		assert_done(tensor_gru_data(data, sizes, h0, params, true, 1, 0, false, true, &out,
					    &hy));
		assert_done(tensor_pad_packed_sequence(out, sizes, false, tensor_scalar_int(0), 0,
						       &padded, &n));
		assert_values(n, 0, 4, 2, 1);
		for (int64_t b = 0; b < BATCH; b++) {
			tensor *one = ok(
				       tensor_narrow(tensor_narrow(x, 1, b, 1), 0, 0, lengths[b])),
			       *o, *h;

			assert_done(tensor_gru(one, tensor_narrow(h0, 1, b, 1), params, true, 1, 0,
					       false, true, false, &o, &h));
			assert_true(distance(tensor_narrow(tensor_narrow(padded, 1, b, 1), 0, 0,
							   lengths[b]),
					     o) < 1e-12);
			assert_true(distance(tensor_narrow(hy, 1, b, 1), h) < 1e-12);
		}
	}
}

static void gradients_reach_input_states_and_weights(void **state)
{
	tensor_scope {
		tensor *w[8], *out, *hy;
		tensor *x = numbers(TENSOR_SHAPE(STEPS, BATCH, IN), 5),
		       *h0 = numbers(TENSOR_SHAPE(2, BATCH, SIZE), 6);
		tensor *all[] = { x, h0, weights(w, 1).data[0], w[1], w[2], w[7] };

		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			assert_done(tensor_set_requires_grad(all[i], true));
		assert_done(tensor_rnn_tanh(x, h0, (tensor_list){ w, 8 }, true, 2, 0, true, false,
					    false, &out, &hy));
		assert_done(tensor_backward(ok(tensor_sum(out))));
		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			assert_non_null(tensor_grad(all[i]));
	}
}

/* A checkpoint runs a layer with and without gradients, so both must give the same bits. */
static void recorded_layers_have_the_same_bits(void **state)
{
	(void)state;
	tensor_scope {
		tensor *x = numbers(TENSOR_SHAPE(STEPS, BATCH, IN), 5), *w[16], *plain[3],
		       *recorded[3];
		tensor *h0 = numbers(TENSOR_SHAPE(4, BATCH, SIZE), 6),
		       *c0 = numbers(TENSOR_SHAPE(4, BATCH, SIZE), 7);

		for (int k = 0; k < 4; k++) {
			w[4 * k] =
				numbers(TENSOR_SHAPE(4 * SIZE, k < 2 ? IN : 2 * SIZE), 10 * k + 1);
			w[4 * k + 1] = numbers(TENSOR_SHAPE(4 * SIZE, SIZE), 10 * k + 2);
			w[4 * k + 2] = numbers(TENSOR_SHAPE(4 * SIZE), 10 * k + 3);
			w[4 * k + 3] = numbers(TENSOR_SHAPE(4 * SIZE), 10 * k + 4);
		}
		assert_done(tensor_lstm(x, TENSOR_LIST(h0, c0), (tensor_list){ w, 16 }, true, 2, 0,
					false, true, false, &plain[0], &plain[1], &plain[2]));
		assert_done(tensor_set_requires_grad(x, true));
		assert_done(tensor_lstm(x, TENSOR_LIST(h0, c0), (tensor_list){ w, 16 }, true, 2, 0,
					false, true, false, &recorded[0], &recorded[1],
					&recorded[2]));
		for (int i = 0; i < 3; i++)
			assert_true(distance(plain[i], recorded[i]) == 0);
		assert_done(tensor_backward(ok(tensor_sum(recorded[0]))));
		assert_true(distance(tensor_grad(x), ok(tensor_zeros_like(x, OF(TENSOR_F64)))) > 0);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_SHAPE(STEPS, BATCH, IN), 5), *w[8], *o, *h;
		tensor *h0 = numbers(TENSOR_SHAPE(1, BATCH, SIZE), 6),
		       *one = numbers(TENSOR_SHAPE(1, 1, SIZE), 6);
		tensor_list params = { weights(w, 3).data, 4 };
		tensor *rows =
			ok(tensor_from_data((const int64_t[]){ 2, 3 }, TENSOR_SHAPE(2), I64));
		tensor *data = numbers(TENSOR_SHAPE(5, IN), 1);

#define GRU(x, h0, params, layers, dropout) \
	tensor_gru(x, h0, params, true, layers, dropout, true, false, false, &o, &h)
		assert_fails(GRU(x, one, params, 1, 0), EINVAL, "states");
		assert_fails(GRU(x, h0, params, 2, 0), EINVAL, "parameters");
		assert_fails(GRU(x, h0, params, INT64_MAX, 0), EINVAL, "layers");
		assert_fails(GRU(x, h0, params, 1, 2), EINVAL, "dropout");
		assert_fails(GRU(ok(tensor_narrow(x, 0, 0, 0)), h0, params, 1, 0), EINVAL, "step");
		assert_fails(GRU(h0, h0, params, 1, 0), EINVAL, "w_ih");
		assert_fails(tensor_gru_data(data, rows, h0, params, true, 1, 0, false, false, &o,
					     &h),
			     EINVAL, "batch_sizes");
		assert_fails(tensor_gru_cell(step_of(x, 0), step_of(one, 0), w[0], w[1], w[2],
					     w[3]),
			     EINVAL, "rows");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lstm_equals_a_sequence_of_cells),
		cmocka_unit_test(packed_sequences_are_independent),
		cmocka_unit_test(gradients_reach_input_states_and_weights),
		cmocka_unit_test(recorded_layers_have_the_same_bits),
		cmocka_unit_test(invalid_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("rnn", tests, NULL, NULL);
}
