// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The packed copies of weights that quantized products keep: they are those of the elements, and go with the weight. */
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static tensor *quantized(tensor_ints shape, const float *values, enum tensor_dtype dtype)
{
	return ok(
		tensor_quantize_per_tensor(ok(tensor_from_data(values, shape, F32)), 1, 0, dtype));
}

#define QUANTIZED(dtype, shape, ...) quantized(shape, (const float[]){ __VA_ARGS__ }, dtype)

/* Zeros of these sizes, quantized. */
static tensor *zeros(tensor_ints sizes, enum tensor_dtype dtype)
{
	return ok(tensor_quantize_per_tensor(tensor_zeros(sizes, (tensor_options){ 0 }), 1, 0,
					     dtype));
}

/* The largest element of the product of x and w, both [1, 4]. */
static int64_t product_of(tensor *x, tensor *w)
{
	return *(const uint8_t *)tensor_data(
		ok(tensor_int_repr(ok(tensor_quantized_linear(x, w, tensor_none, 1, 0)))));
}

/* Weights are packed once; other weights with their quantizer, and written ones, are read again. */
static void packed_weights_are_those_of_the_tensor(void **state)
{
	tensor_scope {
		tensor *x = QUANTIZED(TENSOR_U8, TENSOR_INTS(1, 4), 1, 2, 3, 4);
		tensor *w = QUANTIZED(TENSOR_I8, TENSOR_INTS(1, 4), -1, 1, 1, 1);
		tensor *positive = ok(tensor_relu(w)),
		       *turned = ok(tensor_view(w, TENSOR_INTS(2, 2))), *copy;
		tensor *rows = QUANTIZED(TENSOR_U8, TENSOR_INTS(1, 2), 1, 1);
		int8_t *p;

		assert_int_equal(product_of(x, w), 8);
		assert_int_equal(product_of(x, positive), 9);
		assert_int_equal(product_of(x, w), 8);
		assert_int_equal(product_of(rows, turned), 0);
		assert_int_equal(product_of(rows, ok(tensor_t(turned))), 0);
		copy = ok(tensor_clone(w));
		p = tensor_mutable_data(copy);
		p[0] = 5;
		assert_int_equal(product_of(x, copy), 14);
		p[0] = 6;
		assert_int_equal(product_of(x, copy), 15);
		assert_int_equal(product_of(x, w), 8);
	}
	tensor_scope {
		tensor *x = QUANTIZED(TENSOR_U8, TENSOR_INTS(1, 4), 1, 2, 3, 4);
		tensor *w = QUANTIZED(TENSOR_I8, TENSOR_INTS(1, 4), -1, 1, 1, 1);
		int8_t *p;

		/* The address is taken after the weights were packed. */
		assert_int_equal(product_of(x, w), 8);
		p = tensor_mutable_data(w);
		p[0] = 0;
		assert_int_equal(product_of(x, w), 9);
		p[0] = 1;
		assert_int_equal(product_of(x, w), 10);
	}
	tensor_scope {
		tensor *x = QUANTIZED(TENSOR_U8, TENSOR_INTS(1, 4), 1, 1, 1, 1);
		tensor *w = QUANTIZED(TENSOR_I8, TENSOR_INTS(1, 4), 0, 0, 0, 0);

		assert_int_equal(product_of(x, w), 0);
		((int8_t *)tensor_device_data(w))[0] = 3;
		assert_int_equal(product_of(x, w), 3);
	}
}

static int64_t bytes_now(void)
{
	int64_t now = tensor_live_bytes(NULL);

	if (now == -ENOTSUP) {
		tensor_clear_error();
		skip();
	}
	return now;
}

/* A copy neither keeps the memory of the first weights nor packs its own for each product. */
static void copies_keep_packed_weights_of_their_own(void **state)
{
	const int64_t bytes = 4 << 20, start = bytes_now();
	tensor *copy = NULL;

	tensor_scope {
		tensor *x = zeros(TENSOR_INTS(1, 4096), TENSOR_U8);
		tensor *w = zeros(TENSOR_INTS(1024, 4096), TENSOR_I8);
		int64_t before = bytes_now();

		ok(tensor_quantized_linear(x, w, tensor_none, 1, 0));
		assert_true(bytes_now() - before >= bytes);
		copy = tensor_retain(ok(tensor_clone(w)));
	}
	assert_true(bytes_now() - start < bytes + bytes / 2);
	tensor_scope {
		ok(tensor_quantized_linear(zeros(TENSOR_INTS(1, 4096), TENSOR_U8), copy,
					   tensor_none, 1, 0));
	}
	assert_true(bytes_now() - start >= 2 * bytes);
	tensor_release(copy);
	assert_true(bytes_now() - start < bytes / 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_weights_are_those_of_the_tensor),
		cmocka_unit_test(copies_keep_packed_weights_of_their_own),
	};

	if (!getenv("TENSOR_DEBUG")) { /* bytes are counted from the start of the process */
		setenv("TENSOR_DEBUG", "1", 1);
		execv("/proc/self/exe", argv);
	}
	return cmocka_run_group_tests_name("packed_weights", tests, NULL, NULL);
}
