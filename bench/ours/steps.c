// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Models: steps of training (zero_grad, forward, loss, backward, optimizer) and of inference, with modules and
 * optimizers as programs use them. bench/peer_steps.py has the same models, sizes, weights and batches.
 *
 *   step_NAME, infer_NAME           in f32
 *   step_NAME_bf16, infer_NAME_bf16 under autocast
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
static bool inference, reduced; /* reduced: under autocast to bf16 */

/* The loss; the logits in inference. */
static tensor *classified(tensor *logits)
{
	return inference ? logits : tensor_loss_cross_entropy(logits, target);
}

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
	return classified(tensor_module_linear(m, "2", x, 10));
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
	return classified(tensor_module_linear(m, "fc3", x, 10));
}

static tensor *lstm(tensor_module *m, tensor *x)
{
	x = tensor_module_lstm(m, "lstm", x, 256, .layers = 2);
	x = tensor_module_linear(m, "out", tensor_select(x, 0, -1), 1);
	return inference ? x : tensor_loss_mse(x, target);
}

static tensor *conv_norm_groups(tensor_module *m, const char *conv, const char *norm, tensor *x,
				int64_t channels, int64_t kernel, int64_t stride, int64_t groups)
{
	x = tensor_module_conv2d(m, conv, x, channels, kernel, .stride = stride,
				 .padding = kernel / 2, .groups = groups, .no_bias = true);
	return tensor_module_batch_norm(m, norm, x);
}

static tensor *conv_norm(tensor_module *m, const char *conv, const char *norm, tensor *x,
			 int64_t channels, int64_t kernel, int64_t stride)
{
	return conv_norm_groups(m, conv, norm, x, channels, kernel, stride, 1);
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
	return classified(tensor_module_linear(m, "fc", x, 10));
}

/* MobileNetV2, "MobileNetV2: Inverted Residuals and Linear Bottlenecks" (Sandler et al., 2018), table 2. */
static const struct {
	int expand, channels, count, stride;
} bottlenecks[] = { { 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
		    { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } };

static tensor *bottleneck(tensor_module *m, tensor *x, int64_t expand, int64_t channels,
			  int64_t stride)
{
	int64_t before = tensor_size(x, 1), wide = before * expand;
	tensor *y = x;

	if (expand > 1)
		y = tensor_relu6_(conv_norm(m, "expand", "bn1", y, wide, 1, 1));
	y = tensor_relu6_(conv_norm_groups(m, "depth", "bn2", y, wide, 3, stride, wide));
	y = conv_norm(m, "project", "bn3", y, channels, 1, 1);
	return stride == 1 && before == channels ? tensor_add(y, x) : y;
}

static tensor *mobilenet(tensor_module *m, tensor *x)
{
	char name[24];
	int n = 0;

	x = tensor_relu6_(conv_norm(m, "conv1", "bn1", x, 32, 3, 2));
	for (size_t b = 0; b < sizeof(bottlenecks) / sizeof(*bottlenecks); b++)
		for (int i = 0; i < bottlenecks[b].count; i++) {
			snprintf(name, sizeof(name), "blocks.%d", n++);
			x = bottleneck(tensor_module_child(m, name), x, bottlenecks[b].expand,
				       bottlenecks[b].channels, i ? 1 : bottlenecks[b].stride);
		}
	x = tensor_relu6_(conv_norm(m, "conv2", "bn2", x, 1280, 1, 1));
	x = tensor_flatten(tensor_adaptive_avg_pool2d(x, TENSOR_INTS(1, 1)), 1, -1);
	return classified(tensor_module_linear(m, "fc", x, 10));
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
	return classified(tensor_flatten(x, 0, 1));
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

static tensor *run_model(void)
{
	tensor *y = NULL;

	if (!reduced)
		return model.forward(module, input);
	tensor_autocast(TENSOR_BF16) y = model.forward(module, input);
	return y;
}

static double step(bool wanted)
{
	tensor *loss = NULL;
	double value = 0;

	row_check(tensor_optim_zero_grad(optim));
	/* The graph alone keeps what backward reads, and backward frees it node by node. */
	tensor_scope
		loss = tensor_keep(run_model());
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

static void set_up_mobilenet(void)
{
	set_up(mobilenet, numbers(TENSOR_SHAPE(8, 3, 224, 224), 100),
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

/* A run in which a thread of the program computes logits, and no graph is recorded. */
static void run_inference(int64_t n)
{
	tensor_inference_mode while (n--) tensor_scope row_check(run_model() ? 0 : -1);
}

/* The logarithm of the mean square of the logits: untrained models of many layers have small ones. */
static double logits_size(void)
{
	double size = 0;

	tensor_inference_mode tensor_scope
	{
		tensor *y = tensor_to(run_model(), TENSOR_OPTIONS(.dtype = TENSOR_F64));

		row_check(tensor_item(tensor_mean(tensor_mul(y, y)), &size));
	}
	return log(size);
}

static const struct {
	const char *name;
	void (*set_up)(void);
} models[] = {
	{ "rnn", set_up_rnn },
	{ "mlp", set_up_mlp },
	{ "lenet", set_up_lenet },
	{ "lenet_64", set_up_lenet_64 },
	{ "lstm", set_up_lstm },
	{ "resnet", set_up_resnet },
	{ "resnet_224", set_up_resnet_224 },
	{ "gpt", set_up_gpt },
	{ "mobilenet", set_up_mobilenet },
};

static void (*chosen)(void); /* the set-up of the row */

static void set_up_inference(void)
{
	inference = true;
	chosen();
	row_check(tensor_module_train(module, false));
}

static void set_up_step(void)
{
	inference = false;
	chosen();
}

const struct row *step_row(const char *name)
{
	static const struct row step_of = { "step", set_up_step, run_steps, fourth_loss,
					    tear_down };
	static const struct row inference_of = { "infer", set_up_inference, run_inference,
						 logits_size, tear_down };
	const struct row *row = strncmp(name, "infer_", 6) ? &step_of : &inference_of;
	size_t skip = strlen(row->name) + 1, len = strlen(name);

	if (strncmp(name, row->name, skip - 1) || len < skip)
		return NULL;
	reduced = len > 5 && !strcmp(name + len - 5, "_bf16");
	len -= skip + (reduced ? 5 : 0);
	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
		if (strlen(models[i].name) == len && !strncmp(name + skip, models[i].name, len)) {
			chosen = models[i].set_up;
			return row;
		}
	return NULL;
}
