// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Memory formats of results: if the channels of an input are innermost, so are those of the result;
 * elementwise results have the order of dimensions of the inputs. Values equal those of contiguous
 * inputs.
 */
#include "autograd.h"

#define ZERO TENSOR_INTS(0)
#define ONE  TENSOR_INTS(1)
#define TWO  TENSOR_INTS(2)

/* A [n, c, h, w] view of [n, h, w, c], or [n, c, d, h, w] of [n, d, h, w, c]. */
static tensor *channels_last(tensor *t)
{
	return tensor_dim(t) == 4 ? ok(tensor_permute(t, TENSOR_INTS(0, 3, 1, 2))) :
				    ok(tensor_permute(t, TENSOR_INTS(0, 4, 1, 2, 3)));
}

static tensor *image(void)
{
	return channels_last(iota(-20, TENSOR_INTS(2, 4, 6, 3)));
}

static tensor *volume(void)
{
	return channels_last(iota(-20, TENSOR_INTS(2, 2, 4, 6, 3)));
}

static bool is_channels_last(const tensor *t)
{
	const int64_t *sizes = tensor_sizes(t), *strides = tensor_strides(t);
	int n = tensor_dim(t);
	int64_t step = 1;

	for (int i = 0; i < n; i++) {
		int d = i == 0 ? 1 : i == n - 1 ? 0 : n - i;

		if (sizes[d] != 1 && strides[d] != step)
			return false;
		step *= sizes[d];
	}
	return true;
}

#define assert_same_values(a, b) assert_true(tensor_equal_values(a, b))
static bool tensor_equal_values(tensor *a, tensor *b)
{
	double most = 0;

	tensor_scope {
		a = ok(tensor_to(ok(a), F64));
		b = ok(tensor_to(ok(b), F64));
		assert_done(
			tensor_item(ok(tensor_max(ok(tensor_abs(ok(tensor_sub(a, b)))))), &most));
	}
	return most <= 1e-3;
}

typedef tensor *(*operator)(tensor *x);

/* ---- operators with channels ---- */

static tensor *conv(tensor *x)
{
	int64_t c = tensor_sizes(x)[1], one[] = { 5, c, 1, 1, 1 };
	tensor *w = iota(1, (tensor_ints){ one, tensor_dim(x) });

	return tensor_dim(x) == 4 ? tensor_conv2d(x, w, tensor_none, ONE, ZERO, ONE, 1) :
				    tensor_conv3d(x, w, tensor_none, ONE, ZERO, ONE, 1);
}

static tensor *conv_transposed(tensor *x)
{
	return tensor_conv_transpose2d(x, iota(1, TENSOR_INTS(3, 2, 2, 2)), tensor_none, ONE, ZERO,
				       ZERO, 1, ONE);
}

static tensor *max_pool(tensor *x)
{
	return tensor_dim(x) == 4 ? tensor_max_pool2d(x, TWO, TWO, ZERO, ONE, false) :
				    tensor_max_pool3d(x, TWO, TWO, ZERO, ONE, false);
}

static tensor *avg_pool(tensor *x)
{
	return tensor_avg_pool2d(x, TWO, TWO, ZERO, false, true, TENSOR_NONE);
}

static tensor *adaptive_avg(tensor *x)
{
	return tensor_adaptive_avg_pool2d(x, TENSOR_INTS(2, 2));
}

static tensor *adaptive_max(tensor *x)
{
	tensor *out, *indices;

	assert_done(tensor_adaptive_max_pool2d(x, TENSOR_INTS(2, 2), &out, &indices));
	assert_true(is_channels_last(indices) || tensor_is_contiguous(x));
	return out;
}

static tensor *norm(tensor *x)
{
	tensor *zero = ok(tensor_zeros(TENSOR_INTS(3), F32)),
	       *one = ok(tensor_ones(TENSOR_INTS(3), F32));

	return tensor_batch_norm(x, one, zero, zero, one, false, 0.1, 1e-5, false);
}

static tensor *group(tensor *x)
{
	return tensor_group_norm(x, 3, tensor_none, tensor_none, 1e-5, false);
}

static tensor *nearest(tensor *x)
{
	return tensor_upsample_nearest2d(x, TENSOR_INTS(8, 12), 0, 0);
}

static tensor *bilinear(tensor *x)
{
	return tensor_upsample_bilinear2d(x, TENSOR_INTS(8, 12), false, 0, 0);
}

static tensor *pad(tensor *x)
{
	return tensor_constant_pad_nd(x, TENSOR_INTS(1, 1), S(7));
}

static tensor *reflect(tensor *x)
{
	return tensor_reflection_pad2d(x, TENSOR_INTS(1, 1, 1, 1));
}

static tensor *replicate(tensor *x)
{
	return tensor_replication_pad2d(x, TENSOR_INTS(1, 1, 1, 1));
}

static tensor *add_self(tensor *x)
{
	return tensor_add(x, x);
}

static tensor *add_contiguous(tensor *x)
{
	return tensor_add(x, ok(tensor_contiguous(x)));
}

static tensor *add_channel(tensor *x)
{
	int64_t sizes[] = { 1, 3, 1, 1, 1 };

	return tensor_add(iota(0, (tensor_ints){ sizes, tensor_dim(x) }), x);
}

static tensor *add_double(tensor *x)
{
	return tensor_add(x, ok(tensor_to(x, F64)));
}

static tensor *greater(tensor *x)
{
	return tensor_gt_scalar(x, S(0));
}

static tensor *choose(tensor *x)
{
	return tensor_where(ok(tensor_gt_scalar(x, S(0))), x,
			    ok(tensor_zeros(TENSOR_INTS(1), F32)));
}

static tensor *lerp(tensor *x)
{
	return tensor_lerp_scalar(x, ok(tensor_contiguous(x)), S(0.5));
}

static tensor *squared_error(tensor *x)
{
	return tensor_mse_loss(x, ok(tensor_ones_like(x, TENSOR_OPTIONS(0))), 0);
}

static tensor *prelu(tensor *x)
{
	return tensor_prelu(x, iota(1, TENSOR_INTS(3)));
}

static tensor *to_f16(tensor *x)
{
	return tensor_to(x, TENSOR_OPTIONS(.dtype = TENSOR_F16));
}

static tensor *zeros(tensor *x)
{
	return tensor_zeros_like(x, TENSOR_OPTIONS(0));
}

static tensor *cat(tensor *x)
{
	return tensor_cat(TENSOR_LIST(x, x), 1);
}

static tensor *flip(tensor *x)
{
	return tensor_flip(x, TENSOR_INTS(1, 2));
}

static tensor *roll(tensor *x)
{
	return tensor_roll(x, TENSOR_INTS(1), TENSOR_INTS(2));
}

static tensor *sort(tensor *x)
{
	tensor *values, *indices;

	assert_done(tensor_sort(x, 1, true, &values, &indices));
	assert_true(is_channels_last(indices) || tensor_is_contiguous(x));
	return values;
}

static tensor *fill_index(tensor *x)
{
	return tensor_index_fill(x, 2, ok(tensor_zeros(TENSOR_INTS(1), I64)), S(1));
}

static tensor *scatter_part(tensor *x)
{
	return tensor_select_scatter(x, ok(tensor_select(x, 1, 0)), 1, 2);
}

static tensor *dropout(tensor *x)
{
	tensor *out, *mask;

	assert_done(tensor_native_dropout(x, 0, 1, &out, &mask));
	assert_true(is_channels_last(mask) || tensor_is_contiguous(x));
	return out;
}

static const struct {
	const char *name;
	operator op;
	bool volumes; /* also tested with three spatial dimensions */
} operators[] = {
	{ "conv", conv, true },
	{ "conv_transpose", conv_transposed, false },
	{ "max_pool", max_pool, true },
	{ "avg_pool", avg_pool, false },
	{ "adaptive_avg_pool", adaptive_avg, false },
	{ "adaptive_max_pool", adaptive_max, false },
	{ "batch_norm", norm, true },
	{ "group_norm", group, true },
	{ "upsample_nearest", nearest, false },
	{ "upsample_bilinear", bilinear, false },
	{ "pad", pad, true },
	{ "reflection_pad", reflect, false },
	{ "replication_pad", replicate, false },
	{ "relu", tensor_relu, true },
	{ "sigmoid", tensor_sigmoid, true },
	{ "gelu", tensor_gelu, true },
	{ "clone", tensor_clone, true },
	{ "add self", add_self, true },
	{ "add contiguous", add_contiguous, true },
	{ "add channel", add_channel, true },
	{ "add f64", add_double, true },
	{ "gt", greater, true },
	{ "where", choose, true },
	{ "lerp", lerp, true },
	{ "mse_loss", squared_error, true },
	{ "prelu", prelu, true },
	{ "to f16", to_f16, true },
	{ "zeros_like", zeros, true },
	{ "cat", cat, true },
	{ "flip", flip, true },
	{ "roll", roll, true },
	{ "sort", sort, true },
	{ "index_fill", fill_index, true },
	{ "select_scatter", scatter_part, true },
	{ "dropout", dropout, true },
};

static void check_operator(const char *name, operator op, tensor *x)
{
	tensor *plain = ok(op(ok(tensor_contiguous(x)))), *y = ok(op(x));

	if (!is_channels_last(y) || !tensor_is_contiguous(plain)) {
		fprintf(stderr, "%s of %d dimensions\n", name, tensor_dim(x));
		fail();
	}
	assert_same_values(y, plain);
}

static void results_keep_channels_last(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
		tensor_scope {
			check_operator(operators[i].name, operators[i].op, image());
			if (operators[i].volumes)
				check_operator(operators[i].name, operators[i].op, volume());
		}
}

/* ---- elementwise operators ---- */

static void first_unambiguous_input_determines_the_format(void **state)
{
	tensor_scope {
		tensor *x = image(), *plain = ok(tensor_contiguous(x)),
		       *bias = iota(0, TENSOR_INTS(6));
		tensor *gaps = ok(tensor_slice(x, 1, 0, 2, 1));

		assert_strides(tensor_add(plain, x), 72, 24, 6, 1);
		assert_strides(tensor_add(x, plain), 72, 1, 18, 3);
		assert_strides(tensor_add(bias, x), 6 * 12, 1, 18, 3);
		assert_strides(tensor_mul(ok(tensor_expand(iota(0, TENSOR_INTS(1, 3, 1, 1)),
							   TENSOR_INTS(2, 3, 4, 6))),
					  x),
			       72, 1, 18, 3);
		/* without the gaps */
		assert_strides(tensor_neg(gaps), 48, 1, 12, 2);
		assert_strides(tensor_clone(gaps), 48, 1, 12, 2);
		assert_strides(tensor_to(gaps, F64), 48, 1, 12, 2);
		assert_strides(tensor_zeros_like(gaps, TENSOR_OPTIONS(0)), 48, 1, 12, 2);
		assert_strides(tensor_add(ok(tensor_t(iota(0, TENSOR_INTS(3, 2)))),
					  iota(0, TENSOR_INTS(3))),
			       1, 2);
		assert_strides(tensor_contiguous(x), 72, 24, 6, 1);
		assert_strides(tensor_sum_dim(x, TENSOR_INTS(0), false), 24, 6, 1);
	}
}

/*
 * The format of a single channel follows from its strides, since all orders of elements are equal.
 */
static void format_of_one_channel_follows_its_strides(void **state)
{
	tensor_scope {
		tensor *last =
			ok(tensor_as_strided(iota(0, TENSOR_INTS(48)), TENSOR_INTS(2, 1, 4, 6),
					     TENSOR_INTS(24, 1, 6, 1), 0));
		tensor *plain = iota(0, TENSOR_INTS(2, 1, 4, 6)),
		       *w = iota(0, TENSOR_INTS(5, 1, 1, 1));

		assert_strides(tensor_conv2d(last, w, tensor_none, ONE, ZERO, ONE, 1), 120, 1, 30,
			       5);
		assert_strides(tensor_conv2d(plain, w, tensor_none, ONE, ZERO, ONE, 1), 120, 24, 6,
			       1);
		assert_strides(tensor_cat(TENSOR_LIST(last, last), 1), 48, 1, 12, 2);
		assert_strides(tensor_cat(TENSOR_LIST(last, plain), 1), 48, 24, 6, 1);
		assert_strides(tensor_zeros_like(last, TENSOR_OPTIONS(0)), 24, 1, 6, 1);
	}
}

static void empty_images_have_the_right_shape(void **state)
{
	tensor_scope {
		tensor *x = channels_last(ok(tensor_zeros(TENSOR_INTS(0, 4, 6, 3), F32)));

		assert_shape(ok(tensor_relu(x)), 0, 3, 4, 6);
		assert_shape(ok(tensor_zeros_like(x, TENSOR_OPTIONS(0))), 0, 3, 4, 6);
		assert_shape(ok(tensor_add(x, ok(tensor_contiguous(x)))), 0, 3, 4, 6);
		assert_shape(ok(conv(x)), 0, 5, 4, 6);
		assert_shape(ok(cat(x)), 0, 6, 4, 6);
	}
}

/* ---- gradients ---- */

static void gradient_has_the_strides_of_its_leaf(void **state)
{
	tensor_scope {
		tensor *w = leaf(ok(tensor_clone(image()))), *x = ok(tensor_contiguous(image()));

		assert_done(tensor_backward(ok(tensor_sum(ok(tensor_mul(x, w))))));
		assert_true(is_channels_last(tensor_grad(w)));
		assert_same_values(tensor_grad(w), x);
		/* the accumulated gradient keeps its format */
		assert_done(tensor_backward(ok(tensor_sum(ok(tensor_mul(x, w))))));
		assert_true(is_channels_last(tensor_grad(w)));
		assert_same_values(tensor_grad(w), ok(tensor_add(x, x)));
	}
}

static void contiguous_and_reshape_are_recorded(void **state)
{
	tensor_scope {
		tensor *w = leaf(iota(0, TENSOR_INTS(2, 3))), *t = ok(tensor_t(w));
		tensor *y = ok(tensor_mul(ok(tensor_contiguous(t)), iota(1, TENSOR_INTS(3, 2))));
		tensor *z = ok(
			tensor_mul(ok(tensor_reshape(t, TENSOR_INTS(6))), iota(1, TENSOR_INTS(6))));

		assert_done(tensor_backward(ok(tensor_sum(y))));
		assert_done(tensor_backward(ok(tensor_sum(z))));
		assert_values(tensor_grad(w), 0, 2, 6, 10, 4, 8, 12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_keep_channels_last),
		cmocka_unit_test(first_unambiguous_input_determines_the_format),
		cmocka_unit_test(format_of_one_channel_follows_its_strides),
		cmocka_unit_test(empty_images_have_the_right_shape),
		cmocka_unit_test(gradient_has_the_strides_of_its_leaf),
		cmocka_unit_test(contiguous_and_reshape_are_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
