// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Steps of training: zero_grad, forward, loss, backward, optimizer, with modules and optimizers as programs
 * use them. bench/peer_steps.py has the same models, sizes, weights and batches.
 */
#include "row.h"

#include <stdio.h>
#include <string.h>

struct model {
	tensor *(*forward)(tensor_module *m, tensor *x); /* logits or the value of the loss */
	tensor_optim_options optim;
};

static tensor_module *module;
static tensor_optim *optim;
static struct model model;
static tensor *input, *target;

/* ---- models ---- */

static tensor *rnn_cell(tensor_module *m, tensor *x)
{
	tensor *w_x = tensor_module_parameter(m, "W_x", TENSOR_SHAPE(20, 10), NULL, NULL);
	tensor *w_h = tensor_module_parameter(m, "W_h", TENSOR_SHAPE(20, 20), NULL, NULL);
	tensor *i2h = tensor_mm(w_x, tensor_t(x));
	tensor *h2h = tensor_mm(w_h, tensor_t(target));

	return tensor_sum(tensor_tanh(tensor_add(i2h, h2h)));
}

static tensor *mlp(tensor_module *m, tensor *x)
{
	x = tensor_relu_(tensor_module_linear(m, "0", x, 128));
	return tensor_loss_cross_entropy(tensor_module_linear(m, "2", x, 10), target);
}

static tensor *pool(tensor *x)
{
	return tensor_max_pool2d(x, TENSOR_INTS(2), TENSOR_INTS(2), TENSOR_INTS(0), TENSOR_INTS(1),
				 false);
}

static tensor *lenet(tensor_module *m, tensor *x)
{
	x = pool(tensor_relu_(tensor_module_conv2d(m, "conv1", x, 6, 5, .padding = 2)));
	x = pool(tensor_relu_(tensor_module_conv2d(m, "conv2", x, 16, 3, .padding = 1)));
	x = tensor_flatten(x, 1, -1);
	x = tensor_relu_(tensor_module_linear(m, "fc1", x, 120));
	x = tensor_relu_(tensor_module_linear(m, "fc2", x, 84));
	return tensor_loss_cross_entropy(tensor_module_linear(m, "fc3", x, 10), target);
}

static tensor *lstm(tensor_module *m, tensor *x)
{
	x = tensor_module_lstm(m, "lstm", x, 256, .layers = 2);
	return tensor_loss_mse(tensor_module_linear(m, "out", tensor_select(x, 0, -1), 1), target);
}

static tensor *conv_norm(tensor_module *m, const char *conv, const char *norm, tensor *x,
			 int64_t channels, int64_t kernel, int64_t stride)
{
	x = tensor_module_conv2d(m, conv, x, channels, kernel, .stride = stride,
				 .padding = kernel / 2, .no_bias = true);
	return tensor_module_batch_norm(m, norm, x);
}

static tensor *block(tensor_module *m, tensor *x, int64_t channels, int64_t stride)
{
	tensor *y = tensor_relu_(conv_norm(m, "conv1", "bn1", x, channels, 3, stride));

	y = conv_norm(m, "conv2", "bn2", y, channels, 3, 1);
	if (stride > 1 || tensor_size(x, 1) != channels)
		x = conv_norm(m, "downsample.0", "downsample.1", x, channels, 1, stride);
	return tensor_relu_(tensor_add_(y, x));
}

static tensor *resnet18(tensor_module *m, tensor *x)
{
	char name[16];

	x = tensor_relu_(conv_norm(m, "conv1", "bn1", x, 64, 7, 2));
	x = tensor_max_pool2d(x, TENSOR_INTS(3), TENSOR_INTS(2), TENSOR_INTS(1), TENSOR_INTS(1),
			      false);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "layer%d.%d", i / 2 + 1, i % 2);
		x = block(tensor_module_child(m, name), x, 64 << i / 2,
			  i >= 2 && i % 2 == 0 ? 2 : 1);
	}
	x = tensor_flatten(tensor_adaptive_avg_pool2d(x, TENSOR_INTS(1, 1)), 1, -1);
	return tensor_loss_cross_entropy(tensor_module_linear(m, "fc", x, 10), target);
}

enum { LAYERS = 6, EMBED = 256, HEADS = 8, LENGTH = 128, SYMBOLS = 128 };

static tensor *gpt(tensor_module *m, tensor *symbols)
{
	tensor *at = tensor_arange(TENSOR_SCALAR(LENGTH), TENSOR_OPTIONS(.dtype = TENSOR_I64));
	tensor *x = tensor_module_embedding(m, "symbol", symbols, SYMBOLS, EMBED);
	char name[16];

	x = tensor_add(x, tensor_module_embedding(m, "position", at, LENGTH, EMBED));
	for (int i = 0; i < LAYERS; i++) {
		snprintf(name, sizeof(name), "blocks.%d", i);
		x = tensor_module_transformer_block(m, name, x, HEADS, .feedforward = 4 * EMBED,
						    .activation = TENSOR_ACTIVATION_GELU,
						    .causal = true, .norm_first = true,
						    .batch_first = true);
	}
	x = tensor_module_linear(m, "head", tensor_module_layer_norm(m, "norm", x), SYMBOLS);
	return tensor_loss_cross_entropy(tensor_flatten(x, 0, 1), target);
}

/* ---- numbers that both programs make ---- */

/* A number in -1..1 from i and a seed. */
static double number(int64_t i, int64_t seed)
{
	uint64_t x = ((uint64_t)i * 2654435761u + (uint64_t)seed * 40503u + 12345u) & 0xffffffffu;

	x = ((x ^ x >> 16) * 0x45d9f3bu) & 0xffffffffu;
	x = ((x ^ x >> 16) * 0x45d9f3bu) & 0xffffffffu;
	return (double)(x ^ x >> 16) / 2147483648.0 - 1;
}

static void fill(tensor *t, int64_t seed, double scale)
{
	float *p = tensor_mutable_data(t);

	for (int64_t i = 0, n = tensor_numel(t); i < n; i++)
		p[i] = (float)(scale * number(i, seed));
}

static tensor *numbers(tensor_ints size, int64_t seed)
{
	tensor *t = row_own(tensor_empty(size, TENSOR_OPTIONS(0)));

	fill(t, seed, 1);
	return t;
}

/* i64 in 0..n-1 */
static tensor *classes(tensor_ints size, int64_t n, int64_t seed)
{
	tensor *t = row_own(tensor_empty(size, TENSOR_OPTIONS(.dtype = TENSOR_I64)));
	int64_t *p = tensor_mutable_data(t);

	for (int64_t i = 0, count = tensor_numel(t); i < count; i++)
		p[i] = (int64_t)((number(i, seed) + 1) / 2 * (double)n) % n;
	return t;
}

/* Weights of two dimensions and more by number(), biases 0, weights of norms 1. */
static void set_parameters(void)
{
	const struct tensor_named *p;
	int64_t n = tensor_module_named(module, TENSOR_MODULE_PARAMETERS, &p);

	for (int64_t i = 0; i < n; i++) {
		const char *dot = strrchr(p[i].name, '.');
		double out = tensor_dim(p[i].t) ? (double)tensor_size(p[i].t, 0) : 1;

		if (tensor_dim(p[i].t) > 1)
			fill(p[i].t, i, sqrt(out / (double)tensor_numel(p[i].t)));
		else if (!strncmp(dot ? dot + 1 : p[i].name, "bias", 4))
			fill(p[i].t, i, 0);
	}
}

/* ---- a step ---- */

static double step(bool wanted)
{
	tensor *loss = NULL;
	double value = 0;

	row_check(tensor_optim_zero_grad(optim));
	/* The graph alone keeps what backward reads, and backward frees it node by node. */
	tensor_scope
		loss = tensor_keep(model.forward(module, input));
	row_check(tensor_backward(loss));
	row_check(tensor_optim_step(optim));
	if (wanted)
		row_check(tensor_item(loss, &value));
	tensor_release(loss);
	return value;
}

/* The first forward makes the parameters. */
static void set_up(tensor *(*forward)(tensor_module *, tensor *), tensor *x, tensor *y,
		   tensor_optim_options options)
{
	const char *const statistics = "running_var";
	const struct tensor_named *b;
	int64_t n;

	model = (struct model){ forward, options };
	input = x;
	target = y;
	module = tensor_module_new(TENSOR_OPTIONS(0));
	tensor_no_grad
		tensor_scope
			row_check(forward(module, input) ? 0 : -1);
	set_parameters();
	n = tensor_module_named(module, TENSOR_MODULE_BUFFERS, &b);
	for (int64_t i = 0; i < n; i++) /* as before the first forward */
		tensor_fill_(b[i].t, TENSOR_SCALAR(strstr(b[i].name, statistics) ? 1 : 0));
	optim = tensor_optim_new(tensor_module_parameters(module), options);
	row_check(optim ? 0 : -1);
}

static void set_up_rnn(void)
{
	set_up(rnn_cell, numbers(TENSOR_SHAPE(1, 10), 100), numbers(TENSOR_SHAPE(1, 20), 101),
	       TENSOR_SGD(.lr = 0.01));
}

static void set_up_mlp(void)
{
	set_up(mlp, numbers(TENSOR_SHAPE(32, 64), 100), classes(TENSOR_SHAPE(32), 10, 101),
	       TENSOR_SGD(.lr = 0.01, .momentum = 0.9));
}

static void set_up_lenet(void)
{
	set_up(lenet, numbers(TENSOR_SHAPE(8, 1, 8, 8), 100), classes(TENSOR_SHAPE(8), 10, 101),
	       TENSOR_ADAM(.lr = 0.002));
}

static void set_up_lenet_64(void)
{
	set_up(lenet, numbers(TENSOR_SHAPE(64, 1, 8, 8), 100), classes(TENSOR_SHAPE(64), 10, 101),
	       TENSOR_ADAM(.lr = 0.002));
}

static void set_up_lstm(void)
{
	set_up(lstm, numbers(TENSOR_SHAPE(32, 16, 64), 100), numbers(TENSOR_SHAPE(16, 1), 101),
	       TENSOR_ADAM(.lr = 0.001));
}

static void set_up_resnet(void)
{
	set_up(resnet18, numbers(TENSOR_SHAPE(8, 3, 32, 32), 100),
	       classes(TENSOR_SHAPE(8), 10, 101),
	       TENSOR_SGD(.lr = 0.001, .momentum = 0.9, .weight_decay = 1e-4));
}

static void set_up_resnet_224(void)
{
	set_up(resnet18, numbers(TENSOR_SHAPE(8, 3, 224, 224), 100),
	       classes(TENSOR_SHAPE(8), 10, 101),
	       TENSOR_SGD(.lr = 0.001, .momentum = 0.9, .weight_decay = 1e-4));
}

static void set_up_gpt(void)
{
	set_up(gpt, classes(TENSOR_SHAPE(4, LENGTH), SYMBOLS, 100),
	       classes(TENSOR_SHAPE(4 * LENGTH), SYMBOLS, 101), TENSOR_ADAMW(.lr = 3e-4));
}

static void tear_down(void)
{
	tensor_optim_free(optim);
	tensor_module_free(module);
}

static void run_steps(int64_t n)
{
	while (n--)
		step(false);
}

static double fourth_loss(void)
{
	run_steps(3);
	return step(true);
}

const struct row step_rows[] = {
	{ "step_rnn", set_up_rnn, run_steps, fourth_loss, tear_down },
	{ "step_mlp", set_up_mlp, run_steps, fourth_loss, tear_down },
	{ "step_lenet", set_up_lenet, run_steps, fourth_loss, tear_down },
	{ "step_lenet_64", set_up_lenet_64, run_steps, fourth_loss, tear_down },
	{ "step_lstm", set_up_lstm, run_steps, fourth_loss, tear_down },
	{ "step_resnet", set_up_resnet, run_steps, fourth_loss, tear_down },
	{ "step_resnet_224", set_up_resnet_224, run_steps, fourth_loss, tear_down },
	{ "step_gpt", set_up_gpt, run_steps, fourth_loss, tear_down },
	{ NULL, NULL, NULL, NULL, NULL },
};
