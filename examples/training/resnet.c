// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * ResNet-18 (K. He et al., arXiv:1512.03385) on the digits, enlarged to 32x32, with SGD. The names of the
 * parameters are those of torchvision. usage: see common.h
 */
#include "common.h"

#define BATCH 8
#define ROWS  512

static tensor *conv_norm(tensor_module *m, const char *conv, const char *norm, tensor *x,
			 int64_t channels, int64_t kernel, int64_t stride)
{
	x = tensor_module_conv2d(m, conv, x, channels, kernel, .stride = stride,
				 .padding = kernel / 2, .no_bias = true);
	return tensor_module_batch_norm(m, norm, x);
}

static tensor *block(tensor_module *m, tensor *x, int64_t channels, int64_t stride)
{
	tensor *y = tensor_relu(conv_norm(m, "conv1", "bn1", x, channels, 3, stride));

	y = conv_norm(m, "conv2", "bn2", y, channels, 3, 1);
	if (stride > 1 || tensor_size(x, 1) != channels)
		x = conv_norm(m, "downsample.0", "downsample.1", x, channels, 1, stride);
	return tensor_relu(tensor_add(x, y));
}

static tensor *resnet18(tensor_module *m, tensor *x)
{
	char name[16];

	x = tensor_relu(conv_norm(m, "conv1", "bn1", x, 64, 7, 2));
	x = tensor_max_pool2d(x, TENSOR_INTS(3), TENSOR_INTS(2), TENSOR_INTS(1), TENSOR_INTS(1),
			      false);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "layer%d.%d", i / 2 + 1, i % 2);
		x = block(tensor_module_child(m, name), x, 64 << i / 2,
			  i >= 2 && i % 2 == 0 ? 2 : 1);
	}
	x = tensor_flatten(tensor_adaptive_avg_pool2d(x, TENSOR_INTS(1, 1)), 1, -1);
	return tensor_module_linear(m, "fc", x, 10);
}

/* [n, 1, 8, 8] as [n, 3, 32, 32] */
static tensor *enlarged(tensor *x)
{
	x = tensor_repeat_interleave(tensor_repeat_interleave(x, 4, 2), 4, 3);
	return tensor_repeat_interleave(x, 3, 1);
}

int main(int argc, char **argv)
{
	tensor *images, *labels;
	struct training t;

	if (!training_begin(&t, argc, argv, 3))
		return 1;
	tensor_scope {
		if (training_digits(&t, 0, ROWS, &images, &labels) < 0)
			return 1;
		while (training_next(&t))
			tensor_scope {
				int64_t at = t.step * BATCH % ROWS;
				tensor *x = enlarged(tensor_narrow(images, 0, at, BATCH));
				tensor *y = tensor_narrow(labels, 0, at, BATCH);

				training_step(&t,
					      tensor_loss_cross_entropy(resnet18(t.model, x), y),
					      TENSOR_SGD(.lr = 5e-5, .momentum = 0.9,
							 .weight_decay = 1e-4));
			}
	}
	return training_end(&t);
}
