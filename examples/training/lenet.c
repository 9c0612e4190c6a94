// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* LeNet on the 8x8 digits of examples/digits, with Adam. usage: see common.h */
#include "common.h"

#define BATCH 64
#define TRAIN 1536 /* rows for training; the next ones are for the test */
#define TEST  256

static tensor *pool(tensor *x)
{
	return tensor_max_pool2d(x, TENSOR_INTS(2), TENSOR_INTS(2), TENSOR_INTS(0), TENSOR_INTS(1),
				 false);
}

static tensor *lenet(tensor_module *m, tensor *x)
{
	x = pool(tensor_relu(tensor_module_conv2d(m, "conv1", x, 6, 5, .padding = 2)));
	x = pool(tensor_relu(tensor_module_conv2d(m, "conv2", x, 16, 3, .padding = 1)));
	x = tensor_flatten(x, 1, -1);
	x = tensor_relu(tensor_module_linear(m, "fc1", x, 120));
	x = tensor_relu(tensor_module_linear(m, "fc2", x, 84));
	return tensor_module_linear(m, "fc3", x, 10);
}

/* The part of the test images whose digit is found, -1 on failure. */
static double accuracy(struct training *t, tensor *images, tensor *labels)
{
	double right = -1;

	tensor_module_train(t->model, false);
	tensor_no_grad
		tensor_scope {
			tensor *found = tensor_argmax(lenet(t->model, images), 1, false);

			found = tensor_to(tensor_eq(found, labels),
					  TENSOR_OPTIONS(.dtype = TENSOR_F64));
			if (tensor_item(tensor_mean(found), &right) < 0)
				tensor_perror("lenet");
		}
	return right;
}

int main(int argc, char **argv)
{
	tensor *images, *labels, *test_images, *test_labels;
	struct training t;
	double right = 0;

	if (!training_begin(&t, argc, argv, 960))
		return 1;
	tensor_scope {
		if (training_digits(&t, 0, TRAIN, &images, &labels) < 0 ||
		    training_digits(&t, TRAIN, TEST, &test_images, &test_labels) < 0)
			return 1;
		while (training_next(&t))
			tensor_scope {
				int64_t at = t.step * BATCH % TRAIN, n = BATCH;
				tensor *x, *y;

				ranks_part(&at, &n);
				x = tensor_narrow(images, 0, at, n);
				y = tensor_narrow(labels, 0, at, n);
				training_step(&t, tensor_loss_cross_entropy(lenet(t.model, x), y),
					      TENSOR_ADAM(.lr = 0.002));
			}
		right = accuracy(&t, test_images, test_labels);
	}
	if (!ranks_rank())
		printf("accuracy %.3f\n", right);
	return training_end(&t) || right < (t.step >= 960 ? 0.85 : 0);
}
