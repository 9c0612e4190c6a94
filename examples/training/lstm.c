// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * An LSTM that adds: each step of a sequence has a number in 0..1 and a mark, and the answer is the sum of
 * the two numbers that are marked (S. Hochreiter, J. Schmidhuber, Long short-term memory, 1997, experiment
 * 4). usage: see common.h
 */
#include "common.h"

#define BATCH 32
#define TIME  16

/* The sequences of the task are the same in every run: a linear congruential generator. */
static double next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 33) / 2147483648.0;
}

static void make_batch(int64_t step, tensor_options options, tensor **x, tensor **y)
{
	static double numbers[TIME][BATCH][2], sums[BATCH][1];
	uint64_t state = (uint64_t)step + 1;

	for (int b = 0; b < BATCH; b++) {
		int first, second;

		for (int i = 0; i < TIME; i++) {
			numbers[i][b][0] = next(&state);
			numbers[i][b][1] = 0;
		}
		first = (int)(next(&state) * TIME / 2);
		second = TIME / 2 + (int)(next(&state) * TIME / 2);
		numbers[first][b][1] = numbers[second][b][1] = 1;
		sums[b][0] = numbers[first][b][0] + numbers[second][b][0];
	}
	*x = tensor_from_data(numbers, TENSOR_SHAPE(TIME, BATCH, 2),
			      TENSOR_OPTIONS(.dtype = TENSOR_F64));
	*y = tensor_from_data(sums, TENSOR_SHAPE(BATCH, 1), TENSOR_OPTIONS(.dtype = TENSOR_F64));
	*x = tensor_to(*x, options);
	*y = tensor_to(*y, options);
}

static tensor *adder(tensor_module *m, tensor *x)
{
	x = tensor_module_lstm(m, "lstm", x, 32);
	return tensor_module_linear(m, "out", tensor_select(x, 0, -1), 1);
}

int main(int argc, char **argv)
{
	struct training t;
	double loss = 0;

	if (!training_begin(&t, argc, argv, 800))
		return 1;
	while (training_next(&t))
		tensor_scope {
			tensor *x, *y;

			make_batch(t.step, t.options, &x, &y);
			y = tensor_loss_mse(adder(t.model, x), y);
			training_step(&t, y, TENSOR_ADAM(.lr = 0.01));
			tensor_item(y, &loss);
		}
	/* Always answering 1 has a mean squared error of 0.167. */
	return training_end(&t) || loss > (t.step >= 800 ? 0.05 : 1);
}
