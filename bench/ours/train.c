// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Rows with gradients: one operator and its backward, the RNN cell, an MLP with SGD. */
#include "row.h"

/* ---- one operator ---- */

static tensor *a, *b, *grad;

static void setup_add(void)
{
	a = row_wave(TENSOR_SHAPE(4, 4), 0, 1);
	b = row_wave(TENSOR_SHAPE(4, 4), 1, 1);
	grad = row_wave(TENSOR_SHAPE(4, 4), 2, 1);
	row_check(tensor_set_requires_grad(a, true));
	row_check(tensor_set_requires_grad(b, true));
}

static void run_add_grad(int64_t n)
{
	while (n--)
		tensor_release(tensor_add(a, b));
}

static double value_add_grad(void)
{
	return row_sum(tensor_add(a, b));
}

static void add_backward(void)
{
	tensor *sum = tensor_add(a, b);

	tensor_backward_ex(TENSOR_LIST(sum), &grad, (tensor_list){ 0 }, NULL, 0);
	tensor_release(sum);
}

static void run_add_backward(int64_t n)
{
	while (n--) {
		add_backward();
		tensor_set_grad(a, NULL);
		tensor_set_grad(b, NULL);
	}
}

static double grads(tensor *p, tensor *q)
{
	return row_sum(tensor_retain(tensor_grad(p))) + row_sum(tensor_retain(tensor_grad(q)));
}

static double value_add_backward(void)
{
	add_backward();
	return grads(a, b);
}

/* ---- the RNN cell: weights need gradients, the input and the previous state do not ---- */

static tensor *W_x, *W_h, *x, *prev_h;

static void setup_rnn(void)
{
	W_x = row_wave(TENSOR_SHAPE(20, 10), 0, 0.3);
	W_h = row_wave(TENSOR_SHAPE(20, 20), 1, 0.2);
	x = row_wave(TENSOR_SHAPE(1, 10), 2, 1);
	prev_h = row_wave(TENSOR_SHAPE(1, 20), 3, 1);
	row_check(tensor_set_requires_grad(W_x, true));
	row_check(tensor_set_requires_grad(W_h, true));
}

static tensor *rnn(void)
{
	tensor *i2h = tensor_mm(W_x, tensor_t(x));
	tensor *h2h = tensor_mm(W_h, tensor_t(prev_h));

	return tensor_tanh(tensor_add(i2h, h2h));
}

static void rnn_backward(void)
{
	tensor_scope
		row_check(tensor_backward(tensor_sum(rnn())));
}

static void rnn_step(void)
{
	tensor *const weights[] = { W_x, W_h };

	rnn_backward();
	tensor_no_grad {
		for (int i = 0; i < 2; i++) {
			tensor_sub_opt_(weights[i], tensor_grad(weights[i]), TENSOR_SCALAR(0.01));
			tensor_set_grad(weights[i], NULL);
		}
	}
}

static void run_rnn_forward(int64_t n)
{
	while (n--)
		tensor_scope
			rnn();
}

static double value_rnn_forward(void)
{
	double value = NAN;

	tensor_scope
		value = row_sum(tensor_retain(rnn()));
	return value;
}

static void run_rnn_backward(int64_t n)
{
	while (n--) {
		rnn_backward();
		tensor_set_grad(W_x, NULL);
		tensor_set_grad(W_h, NULL);
	}
}

static double value_rnn_backward(void)
{
	rnn_backward();
	return grads(W_x, W_h);
}

static void run_rnn_step(int64_t n)
{
	while (n--)
		rnn_step();
}

static double value_rnn_step(void)
{
	run_rnn_step(3);
	return row_sum(tensor_retain(W_x)) + row_sum(tensor_retain(W_h));
}

/* ---- MLP 64-128-10, batch 32, SGD with momentum ---- */

#define BATCH 32

static tensor *images, *labels, *weights[4], *velocity[4];

static void setup_mlp(void)
{
	const tensor_ints shapes[] = { TENSOR_SHAPE(128, 64), TENSOR_SHAPE(128),
				       TENSOR_SHAPE(10, 128), TENSOR_SHAPE(10) };
	int64_t *p;

	for (int i = 0; i < 4; i++) {
		weights[i] = row_wave(shapes[i], i, 0.1);
		velocity[i] = row_own(tensor_zeros(shapes[i], TENSOR_OPTIONS(0)));
		row_check(tensor_set_requires_grad(weights[i], true));
	}
	images = row_wave(TENSOR_SHAPE(BATCH, 64), 4, 1);
	labels = row_own(tensor_empty(TENSOR_SHAPE(BATCH), TENSOR_OPTIONS(.dtype = TENSOR_I64)));
	p = tensor_mutable_data(labels);
	for (int i = 0; i < BATCH; i++)
		p[i] = i % 10;
}

/* Like the peers' optimizers: in place and without recording. */
static void sgd(void)
{
	tensor_no_grad {
		for (int i = 0; i < 4; i++) {
			tensor_mul_scalar_(velocity[i], TENSOR_SCALAR(0.9));
			tensor_add_(velocity[i], tensor_grad(weights[i]));
			tensor_sub_opt_(weights[i], velocity[i], TENSOR_SCALAR(0.01));
			tensor_set_grad(weights[i], NULL);
		}
	}
}

static double mlp_step(bool wanted)
{
	double value = 0;

	tensor_scope {
		tensor *hidden =
			tensor_relu(tensor_addmm(weights[1], images, tensor_t(weights[0])));
		tensor *out = tensor_addmm(weights[3], hidden, tensor_t(weights[2]));
		tensor *loss = tensor_cross_entropy(out, labels);

		row_check(tensor_backward(loss));
		sgd();
		if (wanted)
			row_check(tensor_item(loss, &value));
	}
	return value;
}

static void run_mlp_step(int64_t n)
{
	while (n--)
		mlp_step(false);
}

static double value_mlp_step(void)
{
	run_mlp_step(4);
	return mlp_step(true);
}

const struct row train_rows[] = {
	{ "add_grad", setup_add, run_add_grad, value_add_grad, NULL },
	{ "add_backward", setup_add, run_add_backward, value_add_backward, NULL },
	{ "rnn_forward", setup_rnn, run_rnn_forward, value_rnn_forward, NULL },
	{ "rnn_backward", setup_rnn, run_rnn_backward, value_rnn_backward, NULL },
	{ "rnn_step", setup_rnn, run_rnn_step, value_rnn_step, NULL },
	{ "mlp_step", setup_mlp, run_mlp_step, value_mlp_step, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};
