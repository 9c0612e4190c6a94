// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A convolution, relu and pooling in sequence, strided and in oneDNN's blocked layout. */
#include "row.h"

static tensor *image, *taps;

static void setup(void)
{
	image = row_wave(TENSOR_SHAPE(1, 64, 56, 56), 0, 1);
	taps = row_wave(TENSOR_SHAPE(64, 64, 3, 3), 1, 0.05);
}

static void setup_blocked(void)
{
	setup();
	image = row_own(tensor_to_mkldnn(image, TENSOR_DTYPE_NONE));
	taps = row_own(tensor_to_mkldnn(taps, TENSOR_DTYPE_NONE));
	taps = row_own(tensor_mkldnn_reorder_conv2d_weight(taps, TENSOR_INTS(1), TENSOR_INTS(1),
							   TENSOR_INTS(1), 1, TENSOR_NO_INTS));
}

static tensor *chain(void)
{
	tensor *y = tensor_conv2d(image, taps, tensor_none, TENSOR_INTS(1), TENSOR_INTS(1),
				  TENSOR_INTS(1), 1);
	tensor *z = tensor_relu(y), *pooled;

	pooled = tensor_max_pool2d(z, TENSOR_INTS(2), TENSOR_INTS(2), TENSOR_INTS(0),
				   TENSOR_INTS(1), false);
	tensor_release(y);
	tensor_release(z);
	return pooled;
}

static void run_calls(int64_t n)
{
	while (n--)
		tensor_release(chain());
}

static double value(void)
{
	return row_sum(tensor_to_dense(row_own(chain())));
}

const struct row blocked_rows[] = {
	{ "chain", setup, run_calls, value, NULL },
	{ "chain_blocked", setup_blocked, run_calls, value, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};
