// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The blocked layout: results against the dense kernels in shapes that oneDNN pads, gradients
 * against the dense ones, errors, and a process without the plugin. Without the plugin the tests
 * are skipped with a reason. Over 500 lines, because all tests use one set of comparisons.
 */
#include "autograd.h"
#include "peer.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tensor/dlpack.h>
#include <unistd.h>

#define I(...) TENSOR_INTS(__VA_ARGS__)
#define NONE   TENSOR_DTYPE_NONE

static bool available;

#define NEED_ONEDNN()           \
	do {                    \
		if (!available) \
			skip(); \
	} while (0)

/* Pseudo-random values in [-1, 1]. */
static tensor *noise_of(unsigned seed, enum tensor_dtype dtype, tensor_ints shape)
{
	int64_t n = 1;
	float *p;
	tensor *t;

	for (int64_t i = 0; i < shape.len; i++)
		n *= shape.data[i];
	p = malloc((n + 1) * sizeof(*p));
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)((uint32_t)((uint64_t)(i + 1 + seed * 977) * 2654435761u >> 8) %
			       4096) /
			       2048 -
		       1;
	t = ok(tensor_from_data(p, shape, F32));
	free(p);
	return dtype == TENSOR_F32 ? t : ok(tensor_to(t, TENSOR_OPTIONS(.dtype = dtype)));
}

#define noise(seed, ...) noise_of(seed, TENSOR_F32, I(__VA_ARGS__))

static tensor *blocked(tensor *t)
{
	return ok(tensor_to_mkldnn(ok(t), NONE));
}

static double largest_difference(tensor *a, tensor *b)
{
	double v = 0;

	tensor_scope {
		a = ok(tensor_to(ok(tensor_detach(a)), F64));
		b = ok(tensor_to(ok(tensor_detach(b)), F64));
		if (tensor_numel(a))
			assert_done(tensor_item(ok(tensor_max(tensor_abs(tensor_sub(a, b)))), &v));
	}
	return v;
}

/* Compares shape, dtype and values. */
#define assert_like(got, want, tol) check_like_((got), (want), (tol), __FILE__, __LINE__)
static void check_like_(tensor *got, tensor *want, double tol, const char *file, int line)
{
	double d;

	check_ok_(got, file, line);
	check_ok_(want, file, line);
	if (tensor_layout(got) == TENSOR_BLOCKED)
		got = check_ok_(tensor_to_dense(got), file, line);
	if (tensor_dim(got) != tensor_dim(want) || tensor_dtype(got) != tensor_dtype(want) ||
	    memcmp(tensor_sizes(got), tensor_sizes(want), tensor_dim(got) * sizeof(int64_t))) {
		fprintf(stderr, "%d dimensions of %s, expected %d of %s, or other sizes\n",
			tensor_dim(got), tensor_dtype_name(tensor_dtype(got)), tensor_dim(want),
			tensor_dtype_name(tensor_dtype(want)));
		_fail(file, line);
	}
	d = largest_difference(got, want);
	if (!(d <= tol)) {
		fprintf(stderr, "largest difference %g, expected at most %g\n", d, tol);
		_fail(file, line);
	}
}

/* ---- without the plugin ---- */

/* Runs in a child that has not opened the plugin yet; must be the first test. */
static void missing_plugin_is_named(void **state)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		tensor *x;
		const char *text = tensor_last_error()->text;

		setenv("TENSOR_ONEDNN_PLUGIN", "/nowhere/libtensor_onednn.so", 1);
		x = tensor_ones(I(2), F32);
		_exit(x && !tensor_to_mkldnn(x, NONE) && tensor_last_error()->code == ENOSYS &&
				      strstr(text, "libdnnl") && strstr(text, "/nowhere/") ?
			      0 :
			      1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void plugin_opens_or_gives_a_reason(void **state)
{
	tensor_scope {
		available = tensor_to_mkldnn(tensor_ones(I(1), F32), NONE) != NULL;
		if (!available)
			print_message("# skipped: %s\n", tensor_last_error()->text);
	}
	NEED_ONEDNN();
}

/* ---- conversions ---- */

static void conversion_round_trip_keeps_values(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *x = noise(1, 2, 3, 5, 7), *b = blocked(x), *half;

		assert_int_equal(tensor_layout(b), TENSOR_BLOCKED);
		assert_shape(b, 2, 3, 5, 7);
		assert_like(b, x, 0);
		assert_like(blocked(tensor_transpose(x, 1, 3)), tensor_transpose(x, 1, 3), 0);
		assert_like(blocked(noise(1, 0, 3)), noise(1, 0, 3), 0);
		assert_like(blocked(noise(1, 1, 1, 2, 1, 1, 3, 1, 1, 1, 1, 1, 2)),
			    noise(1, 1, 1, 2, 1, 1, 3, 1, 1, 1, 1, 1, 2), 0);
		assert_like(ok(tensor_clone(b)), x, 0);
		assert_like(ok(tensor_to_mkldnn(b, NONE)), x, 0);
		assert_like(ok(tensor_reshape(b, I(6, -1))), tensor_reshape(x, I(6, 35)), 0);
		assert_like(ok(tensor_flatten(b, 1, -1)), tensor_flatten(x, 1, -1), 0);
		assert_like(ok(tensor_transpose(b, -1, 1)),
			    ok(tensor_contiguous(tensor_transpose(x, -1, 1))), 0);
		half = ok(tensor_to(x, TENSOR_OPTIONS(.dtype = TENSOR_BF16)));
		assert_like(ok(tensor_to_mkldnn(x, TENSOR_BF16)), half, 0);
		assert_like(blocked(half), half, 0);
		assert_like(ok(tensor_to_dense_opt(blocked(half), TENSOR_F32)),
			    ok(tensor_to(half, F32)), 0);
	}
}

static void clone_of_a_blocked_tensor_is_independent(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *x = noise(1, 4), *b = blocked(x), *c = ok(tensor_clone(b));
		tensor *want = ok(tensor_relu(x)), *r = ok(tensor_reshape(b, I(2, 2)));

		ok(tensor_relu_(tensor_detach(b)));
		assert_like(b, want, 0);
		assert_like(c, x, 0);
		assert_like(tensor_reshape(tensor_to_dense(r), I(4)), x, 0);
	}
}

static void a_blocked_tensor_is_opaque(void **state)
{
	char text[400];

	NEED_ONEDNN();
	tensor_scope {
		tensor *x = noise(1, 2, 2), *b = blocked(x);

		tensor_clear_error();
		assert_null(tensor_data(b));
		assert_non_null(strstr(tensor_last_error()->text, "no address"));
		assert_fails(tensor_exp(b) != NULL, EOPNOTSUPP, "exp: no kernel for BlockedCPU");
		assert_fails(tensor_view(b, I(4)) != NULL, EOPNOTSUPP, "no kernel for BlockedCPU");
		assert_fails(tensor_relu_out(b, b) != NULL, EOPNOTSUPP, "out must be a strided");
		assert_fails(tensor_add_out(x, b, b) != NULL, EOPNOTSUPP, "form is not supported");
		assert_fails(tensor_mm(b, x) != NULL, EOPNOTSUPP, "no kernel for BlockedCPU");
		tensor_format(b, text, sizeof(text));
		assert_non_null(strstr(text, "layout=blocked"));
	}
}

static void invalid_conversions_are_refused(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *b = blocked(noise(1, 2, 3));

		assert_fails(tensor_to_mkldnn(iota(0, I(2)), TENSOR_F64) != NULL, EINVAL,
			     "f32 or bf16");
		assert_fails(tensor_to_mkldnn(tensor_ones(I(2), F64), NONE) != NULL, EINVAL,
			     "got f64");
		assert_fails(tensor_to_mkldnn(tensor_ones(TENSOR_SCALAR_SHAPE, F32), NONE) != NULL,
			     EINVAL, "1 to 12 dimensions");
		assert_fails(tensor_to_mkldnn(b, TENSOR_BF16) != NULL, EINVAL, "stays f32");
		assert_fails(tensor_reshape(b, I(4)) != NULL, EINVAL, "does not fit");
		assert_fails(tensor_reshape(b, I(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 6)) != NULL,
			     EINVAL, "1 to 12");
		assert_fails(tensor_transpose(b, 0, 2) != NULL, EINVAL, "out of range");
	}
}

/* ---- convolution ---- */

struct conv_case {
	int64_t n, c, h, w, o, kh, kw, stride, padding, dilation, groups;
};

static const struct conv_case conv_cases[] = {
	{ 2, 3, 9, 11, 17, 3, 3, 1, 1, 1, 1 },	 { 1, 17, 8, 8, 5, 3, 3, 2, 1, 1, 1 },
	{ 2, 16, 7, 7, 32, 1, 1, 1, 0, 1, 1 },	 { 1, 12, 9, 9, 18, 3, 3, 1, 2, 2, 3 },
	{ 2, 19, 8, 6, 19, 3, 3, 1, 1, 1, 19 },	 { 1, 32, 14, 14, 32, 3, 3, 2, 1, 1, 32 },
	{ 1, 1, 5, 5, 1, 5, 5, 1, 0, 1, 1 },	 { 3, 8, 4, 9, 24, 2, 4, 3, 1, 1, 4 },
	{ 2, 20, 12, 12, 40, 7, 7, 2, 3, 1, 1 }, { 1, 6, 4, 4, 12, 3, 3, 1, 0, 1, 6 },
};

static void conv_case(const struct conv_case *k, enum tensor_dtype dtype, double tol)
{
	tensor_ints s = I(k->stride), p = I(k->padding), d = I(k->dilation);
	tensor *x = noise_of(1, dtype, I(k->n, k->c, k->h, k->w));
	tensor *w = noise_of(2, dtype, I(k->o, k->c / k->groups, k->kh, k->kw));
	tensor *bias = noise_of(3, dtype, I(k->o)), *bx = blocked(x), *bw = blocked(w);
	tensor *want = ok(tensor_conv2d(x, w, bias, s, p, d, k->groups));
	tensor *ready =
		ok(tensor_mkldnn_reorder_conv2d_weight(bw, p, s, d, k->groups, TENSOR_NO_INTS));
	tensor *exact =
		ok(tensor_mkldnn_reorder_conv2d_weight(bw, p, s, d, k->groups, tensor_shape(x)));
	tensor *y = ok(tensor_conv2d(bx, bw, blocked(bias), s, p, d, k->groups));

	assert_int_equal(tensor_layout(y), TENSOR_BLOCKED);
	assert_like(ready, w, 0);
	assert_like(y, want, tol);
	assert_like(tensor_conv2d(bx, ready, bias, s, p, d, k->groups), want, tol);
	assert_like(tensor_mkldnn_convolution(bx, exact, bias, p, s, d, k->groups), want, tol);
	assert_like(tensor_conv2d(bx, w, bias, s, p, d, k->groups), want, tol);
	y = ok(tensor_conv2d(x, ready, bias, s, p, d, k->groups));
	assert_int_equal(tensor_layout(y), TENSOR_STRIDED);
	assert_like(y, want, tol);
	assert_like(tensor_conv2d(bx, bw, tensor_none, s, p, d, k->groups),
		    ok(tensor_conv2d(x, w, tensor_none, s, p, d, k->groups)), tol);
}

static void convolution_equals_the_dense_one(void **state)
{
	NEED_ONEDNN();
	for (size_t i = 0; i < ARRAY_SIZE(conv_cases); i++)
		tensor_scope {
			conv_case(&conv_cases[i], TENSOR_F32, 1e-4);
		}
}

static bool has_bf16(void)
{
	bool is = false;

	tensor_scope {
		tensor *b = blocked(noise_of(1, TENSOR_BF16, I(1, 16, 4, 4)));

		is = tensor_conv2d(b, blocked(noise_of(1, TENSOR_BF16, I(16, 16, 1, 1))),
				   tensor_none, I(1), I(0), I(1), 1);
	}
	return is;
}

static void convolution_of_f16_and_bf16_equals_the_dense_one(void **state)
{
	NEED_ONEDNN();
	if (!has_bf16()) {
		print_message("# skipped: %s\n", tensor_last_error()->text);
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(conv_cases); i++)
		tensor_scope {
			conv_case(&conv_cases[i], TENSOR_BF16, 0.2);
		}
}

static void conv1d_and_conv3d_equal_the_dense_ones(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *x = noise(1, 2, 5, 20), *w = noise(2, 7, 5, 3),
		       *v = noise(3, 1, 4, 5, 6, 7);
		tensor *u = noise(4, 6, 2, 2, 3, 3);
		tensor *ready = ok(tensor_mkldnn_reorder_conv3d_weight(blocked(u), I(1, 0, 1), I(1),
								       I(1), 2, TENSOR_NO_INTS));

		assert_like(tensor_conv1d(blocked(x), blocked(w), tensor_none, I(2), I(1), I(1), 1),
			    tensor_conv1d(x, w, tensor_none, I(2), I(1), I(1), 1), 1e-5);
		assert_like(tensor_conv3d(blocked(v), ready, tensor_none, I(1), I(1, 0, 1), I(1),
					  2),
			    tensor_conv3d(v, u, tensor_none, I(1), I(1, 0, 1), I(1), 2), 1e-5);
		/*
		 * Weights that were converted for groups are used without groups, and the reverse.
		 */
		assert_like(tensor_conv3d(blocked(noise(5, 1, 2, 4, 4, 4)), ready, tensor_none,
					  I(1), I(0), I(1), 1),
			    tensor_conv3d(noise(5, 1, 2, 4, 4, 4), u, tensor_none, I(1), I(0), I(1),
					  1),
			    1e-5);
	}
}

static void invalid_convolutions_are_refused(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *x = blocked(noise(1, 1, 4, 5, 5)), *w = blocked(noise(1, 4, 4, 3, 3));
		tensor *none = tensor_none;

		assert_fails(tensor_conv2d(x, blocked(noise(1, 4, 3, 3, 3)), none, I(1), I(0), I(1),
					   1) != NULL,
			     EINVAL, "channels");
		assert_fails(tensor_conv2d(x, blocked(noise(1, 4, 4, 7, 7)), none, I(1), I(0), I(1),
					   1) != NULL,
			     EINVAL, "too small");
		assert_fails(tensor_conv2d(x, w, blocked(noise(1, 3)), I(1), I(0), I(1), 1) != NULL,
			     EINVAL, "bias must be");
		assert_fails(tensor_conv2d(x, tensor_to_mkldnn(w, NONE), none, I(0), I(0), I(1),
					   1) != NULL,
			     EINVAL, "stride");
		assert_fails(tensor_convolution(x, w, none, I(1), I(0), I(1), true, I(0), 1) !=
				     NULL,
			     EOPNOTSUPP, "transposed");
		assert_fails(tensor_conv2d(blocked(noise(1, 1, 0, 5, 5)),
					   blocked(noise(1, 4, 0, 3, 3)), none, I(1), I(0), I(1),
					   1) != NULL,
			     EINVAL, "must be positive");
		assert_fails(tensor_mkldnn_reorder_conv2d_weight(w, I(0), I(1), I(1), 1,
								 I(1, 4, 2, 2)) != NULL,
			     EINVAL, "too small");
		assert_fails(tensor_mkldnn_reorder_conv2d_weight(w, I(0), I(1), I(1), 3,
								 TENSOR_NO_INTS) != NULL,
			     EINVAL, "groups");
		assert_fails(tensor_mkldnn_reorder_conv2d_weight(x, I(0), I(1), I(1), 1, I(1)) !=
				     NULL,
			     EINVAL, "4 numbers");
		assert_like(ok(tensor_conv2d(blocked(noise(1, 0, 4, 5, 5)), w, none, I(1), I(0),
					     I(1), 1)),
			    noise(1, 0, 4, 3, 3), 0);
	}
}

/* ---- linear ---- */

static void linear_equals_the_dense_one(void **state)
{
	const int64_t shapes[][3] = {
		{ 1, 1, 1 }, { 3, 17, 5 }, { 1, 300, 1000 }, { 64, 128, 33 }, { 9, 64, 64 }
	};

	NEED_ONEDNN();
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		tensor_scope {
			int64_t m = shapes[i][0], k = shapes[i][1], n = shapes[i][2];
			tensor *x = noise(1, m, k), *w = noise(2, n, k), *b = noise(3, n);
			tensor *want = ok(tensor_linear(x, w, b)), *bw = blocked(w);
			tensor *ready = ok(tensor__reorder_linear_weight(bw, m));
			tensor *y = ok(tensor_linear(blocked(x), bw, blocked(b)));

			assert_int_equal(tensor_layout(y), TENSOR_BLOCKED);
			assert_like(y, want, 1e-3);
			assert_like(ready, w, 0);
			assert_like(tensor_linear(blocked(x), ready, b), want, 1e-3);
			y = ok(tensor_mkldnn_linear(x, ready, b));
			assert_int_equal(tensor_layout(y), TENSOR_STRIDED);
			assert_like(y, want, 1e-3);
			assert_like(tensor_linear(blocked(x), w, tensor_none),
				    tensor_linear(x, w, tensor_none), 1e-3);
		}
	tensor_scope {
		tensor *x = noise(1, 2, 3, 8), *w = noise(2, 5, 8);

		assert_like(tensor_linear(blocked(x), blocked(w), tensor_none),
			    tensor_linear(x, w, tensor_none), 1e-5);
		assert_like(tensor_linear(blocked(noise(3, 3, 4, 8)), blocked(w),
					  blocked(noise(4, 5))),
			    tensor_linear(noise(3, 3, 4, 8), w, noise(4, 5)), 1e-5);
		assert_like(tensor_linear(noise(3, 3, 4, 8), blocked(w), tensor_none),
			    tensor_linear(noise(3, 3, 4, 8), w, tensor_none), 1e-5);
		assert_like(tensor_linear(blocked(noise(1, 0, 8)), w, tensor_none), noise(1, 0, 5),
			    0);
		assert_fails(tensor_linear(blocked(noise(1, 2, 7)), w, tensor_none) != NULL, EINVAL,
			     "[..., k]");
		assert_fails(tensor_linear(blocked(x), w, noise(1, 4)) != NULL, EINVAL,
			     "bias must be");
		assert_fails(tensor__reorder_linear_weight(blocked(w), 0) != NULL, EINVAL,
			     "positive");
	}
}

/* ---- pooling ---- */

static void pooling_equals_the_dense_one(void **state)
{
	NEED_ONEDNN();
	for (int i = 0; i < 64; i++)
		tensor_scope {
			bool ceil = i & 1, padded = i & 2;
			tensor_ints kernel = I(i & 4 ? 3 : 2), stride = I(i & 8 ? 2 : 1);
			tensor_ints padding = I(i & 16 ? 1 : 0);
			tensor *x = noise(i, 2, i & 32 ? 17 : 3, 9, 12);
			/* A blocked tensor whose 17 channels are padded. */
			tensor *w = noise(1, i & 32 ? 17 : 3, 1, 1, 1), *b;

			b = ok(tensor_conv2d(blocked(x), blocked(w), tensor_none, I(1), I(0), I(1),
					     i & 32 ? 17 : 3));
			x = ok(tensor_to_dense(b));
			assert_like(tensor_max_pool2d(b, kernel, stride, padding, I(1), ceil),
				    tensor_max_pool2d(x, kernel, stride, padding, I(1), ceil), 0);
			assert_like(tensor_max_pool2d(b, kernel, stride, padding, I(2), ceil),
				    tensor_max_pool2d(x, kernel, stride, padding, I(2), ceil), 0);
			assert_like(tensor_avg_pool2d(b, kernel, stride, padding, ceil, padded,
						      TENSOR_NONE),
				    tensor_avg_pool2d(x, kernel, stride, padding, ceil, padded,
						      TENSOR_NONE),
				    1e-6);
			assert_like(tensor_avg_pool2d(b, kernel, stride, padding, ceil, padded, 7),
				    tensor_avg_pool2d(x, kernel, stride, padding, ceil, padded, 7),
				    1e-6);
		}
}

static void pool3d_and_adaptive_pooling_equal_the_dense_ones(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *x = noise(1, 2, 3, 6, 7, 8), *y = noise(1, 2, 18, 12, 8), *b = blocked(y);

		assert_like(tensor_max_pool3d(blocked(x), I(2, 3, 2), I(2), I(1, 0, 1), I(1),
					      false),
			    tensor_max_pool3d(x, I(2, 3, 2), I(2), I(1, 0, 1), I(1), false), 0);
		assert_like(tensor_avg_pool3d(blocked(x), I(2), I(2), I(1), false, true,
					      TENSOR_NONE),
			    tensor_avg_pool3d(x, I(2), I(2), I(1), false, true, TENSOR_NONE), 1e-6);
		assert_like(tensor_adaptive_avg_pool2d(b, I(1)),
			    tensor_adaptive_avg_pool2d(y, I(1)), 1e-6);
		assert_like(tensor_adaptive_avg_pool2d(b, I(4, 2)),
			    tensor_adaptive_avg_pool2d(y, I(4, 2)), 1e-6);
		assert_like(tensor_adaptive_avg_pool2d(b, I(5, 3)),
			    tensor_adaptive_avg_pool2d(y, I(5, 3)), 1e-6);
		assert_like(tensor_adaptive_avg_pool3d(blocked(x), I(3, 7, 1)),
			    tensor_adaptive_avg_pool3d(x, I(3, 7, 1)), 1e-6);
		assert_like(tensor_max_pool2d(blocked(noise(1, 0, 3, 4, 4)), I(2), I(2), I(0), I(1),
					      false),
			    noise(1, 0, 3, 2, 2), 0);
		assert_like(tensor_mkldnn_max_pool2d(y, I(2), I(2), I(0), I(1), false),
			    tensor_max_pool2d(y, I(2), I(2), I(0), I(1), false), 0);
		x = noise(1, 3, 4, 4);
		assert_like(tensor_max_pool2d(blocked(x), I(2), I(2), I(0), I(1), false),
			    tensor_max_pool2d(x, I(2), I(2), I(0), I(1), false), 0);
		/* Windows that contain only padding. */
		x = noise(1, 1, 1, 1, 4);
		y = ok(tensor_to_dense(
			tensor_max_pool2d(blocked(x), I(2), I(1), I(1), I(2), false)));
		assert_values(tensor_isinf(y), 0, 1, 1, 1, 1);
		assert_fails(tensor_max_pool2d(b, I(2), I(2), I(2), I(1), false) != NULL, EINVAL,
			     "half");
	}
}

/* ---- elementwise ---- */

/* A blocked tensor with padding: 17 channels from a convolution. */
static tensor *gapped(unsigned seed)
{
	return ok(tensor_conv2d(blocked(noise(seed, 2, 17, 5, 6)),
				blocked(noise(seed + 1, 17, 17, 1, 1)), tensor_none, I(1), I(0),
				I(1), 1));
}

static void functions_equal_the_dense_ones(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *b = gapped(1), *x = ok(tensor_to_dense(b)), *c;

		assert_like(tensor_relu(b), tensor_relu(x), 0);
		assert_like(tensor_sigmoid(b), tensor_sigmoid(x), 0);
		assert_like(tensor_tanh(b), tensor_tanh(x), 0);
		assert_like(tensor_gelu(b), tensor_gelu(x), 0);
		assert_like(tensor_gelu_opt(b, "tanh"), tensor_gelu_opt(x, "tanh"), 0);
		/*
		 * The padding of the blocks is set to zero again, since a sum over channels reads
		 * it.
		 */
		assert_like(tensor_conv2d(tensor_sigmoid(b),
					  blocked(tensor_ones(I(1, 17, 1, 1), F32)), tensor_none,
					  I(1), I(0), I(1), 1),
			    tensor_conv2d(tensor_sigmoid(x), tensor_ones(I(1, 17, 1, 1), F32),
					  tensor_none, I(1), I(0), I(1), 1),
			    1e-5);
		assert_fails(tensor_gelu_opt(b, "no") != NULL, EINVAL, "none or tanh");
		assert_like(tensor_softmax(b, 1), tensor_softmax(x, 1), 1e-6);
		assert_like(tensor_softmax(b, -1), tensor_softmax(x, -1), 1e-6);
		assert_fails(tensor_softmax(b, 4) != NULL, EINVAL, "out of range");
		c = ok(tensor_clone(b));
		assert_ptr_equal(tensor_sigmoid_(c), c);
		assert_like(c, tensor_sigmoid(x), 0);
	}
}

static void functions_propagate_nan_and_infinity(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		const float v[] = { NAN, -INFINITY, INFINITY, -0.0f, 1 };
		tensor *x = ok(tensor_from_data(v, I(5), F32)), *b = blocked(x);

		assert_values(tensor_to_dense(tensor_relu(b)), 0, NAN, 0, INFINITY, 0, 1);
		assert_values(tensor_to_dense(tensor_tanh(b)), 0, NAN, -1, 1, 0, tanhf(1));
		assert_values(tensor_to_dense(tensor_add(b, b)), 0, NAN, -INFINITY, INFINITY, 0, 2);
	}
}

static void sums_and_products_equal_the_dense_ones(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *a = gapped(1), *b = gapped(5), *x = ok(tensor_to_dense(a)), *c;
		tensor *y = ok(tensor_to_dense(b)), *row = noise(1, 17, 1, 1);

		assert_like(tensor_add(a, b), tensor_add(x, y), 0);
		assert_like(tensor_add(a, blocked(y)), tensor_add(x, y), 0);
		assert_like(tensor_sub(blocked(x), b), tensor_sub(x, y), 0);
		assert_like(tensor_add_opt(a, b, TENSOR_SCALAR(0.5)),
			    tensor_add_opt(x, y, TENSOR_SCALAR(0.5)), 1e-6);
		assert_like(tensor_mul(a, b), tensor_mul(x, y), 0);
		assert_like(tensor_mul(a, blocked(row)), tensor_mul(x, row), 0);
		c = ok(tensor_add(a, y));
		assert_int_equal(tensor_layout(c), TENSOR_BLOCKED);
		assert_like(c, tensor_add(x, y), 0);
		c = ok(tensor_add(y, a));
		assert_int_equal(tensor_layout(c), TENSOR_STRIDED);
		assert_like(c, tensor_add(x, y), 0);
		c = ok(tensor_clone(a));
		ok(tensor_add_(c, b));
		ok(tensor_mul_(c, a));
		assert_like(c, tensor_mul(tensor_add(x, y), x), 1e-6);
		assert_fails(tensor_add_(c, y) != NULL, EINVAL, "must be blocked");
		c = ok(tensor_clone(x));
		ok(tensor_sub_(c, b));
		assert_like(c, tensor_sub(x, y), 0);
	}
}

static void batch_norm_with_running_statistics_equals_the_dense_one(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *b = gapped(1), *x = ok(tensor_to_dense(b)), *w = noise(2, 17),
		       *v = noise(3, 17);
		tensor *mean = noise(4, 17), *var = ok(tensor_abs(noise(5, 17)));

		assert_like(tensor_batch_norm(b, w, v, mean, var, false, 0.1, 1e-5, false),
			    tensor_batch_norm(x, w, v, mean, var, false, 0.1, 1e-5, false), 1e-4);
		assert_like(tensor_batch_norm(b, tensor_none, blocked(v), mean, var, false, 0.1,
					      1e-2, false),
			    tensor_batch_norm(x, tensor_none, v, mean, var, false, 0.1, 1e-2,
					      false),
			    1e-4);
		assert_fails(tensor_batch_norm(b, w, v, mean, var, true, 0.1, 1e-5, false) != NULL,
			     EOPNOTSUPP, "training");
		assert_fails(tensor_batch_norm(b, noise(1, 16), v, mean, var, false, 0.1, 1e-5,
					       false) != NULL,
			     EINVAL, "weight must be [17]");
	}
}

/* ---- gradients of a network ---- */

struct net {
	tensor *w1, *b1, *w2, *gain, *shift, *mean, *var, *w3, *b3;
};

static struct net make_net(void)
{
	return (struct net){ leaf(noise(1, 17, 3, 3, 3)),
			     leaf(noise(2, 17)),
			     leaf(noise(3, 17, 17, 3, 3)),
			     leaf(noise(4, 17)),
			     leaf(noise(5, 17)),
			     noise(6, 17),
			     ok(tensor_abs(noise(7, 17))),
			     leaf(noise(8, 10, 17 * 4)),
			     leaf(noise(9, 10)) };
}

/* Uses the same operators for both layouts. */
static tensor *forward(const struct net *n, tensor *x, bool is_blocked)
{
	tensor *w1 = is_blocked ? blocked(n->w1) : n->w1, *w3 = is_blocked ? blocked(n->w3) : n->w3;
	tensor *y = ok(tensor_relu(ok(tensor_conv2d(x, w1, n->b1, I(1), I(1), I(1), 1)))), *z;

	z = ok(tensor_conv2d(y, n->w2, tensor_none, I(1), I(1), I(1), 1));
	z = ok(tensor_batch_norm(z, n->gain, n->shift, n->mean, n->var, false, 0.1, 1e-1, false));
	z = ok(tensor_add_(z, y));
	z = ok(tensor_max_pool2d(tensor_gelu(z), I(2), I(2), I(0), I(1), false));
	z = ok(tensor_mul(z, tensor_sigmoid(z)));
	z = ok(tensor_avg_pool2d(z, I(2), I(1), I(1), false, true, TENSOR_NONE));
	z = ok(tensor_flatten(tensor_adaptive_avg_pool2d(z, I(2)), 1, -1));
	z = ok(tensor_softmax(tensor_tanh(tensor_linear(z, w3, n->b3)), 1));
	return is_blocked ? ok(tensor_to_dense(z)) : z;
}

static void gradients_equal_those_of_the_dense_network(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		struct net a = make_net(), b = make_net();
		tensor *x = leaf(noise(10, 2, 3, 12, 12)), *u = leaf(noise(10, 2, 3, 12, 12));
		tensor *pick = noise(11, 2, 10), *want, *got;

		want = forward(&a, x, false);
		got = forward(&b, tensor_to_mkldnn(u, NONE), true);
		assert_like(got, want, 1e-5);
		assert_done(tensor_backward(tensor_sum(tensor_mul(want, pick))));
		assert_done(tensor_backward(tensor_sum(tensor_mul(got, pick))));
		assert_like(tensor_grad(u), tensor_grad(x), 1e-4);
		assert_like(tensor_grad(b.w1), tensor_grad(a.w1), 1e-4);
		assert_like(tensor_grad(b.b1), tensor_grad(a.b1), 1e-4);
		assert_like(tensor_grad(b.w2), tensor_grad(a.w2), 1e-4);
		assert_like(tensor_grad(b.gain), tensor_grad(a.gain), 1e-4);
		assert_like(tensor_grad(b.shift), tensor_grad(a.shift), 1e-4);
		assert_like(tensor_grad(b.w3), tensor_grad(a.w3), 1e-4);
		assert_like(tensor_grad(b.b3), tensor_grad(a.b3), 1e-4);
	}
}

static void a_blocked_leaf_gets_a_strided_gradient(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *b = leaf(blocked(noise(1, 2, 3))), *w = leaf(blocked(noise(2, 4, 3)));

		for (int i = 0; i < 2; i++)
			assert_done(tensor_backward(tensor_sum(tensor_to_dense(
				tensor_linear(tensor_transpose(tensor_reshape(b, I(3, 2)), 0, 1), w,
					      tensor_none)))));
		assert_int_equal(tensor_layout(tensor_grad(b)), TENSOR_STRIDED);
		assert_like(
			tensor_grad(w),
			tensor_mul_scalar(
				tensor_expand(
					tensor_sum_dim(tensor_transpose(
							       tensor_to_dense(tensor_reshape(
								       tensor_detach(b), I(3, 2))),
							       0, 1),
						       I(0), true),
					I(4, 3)),
				TENSOR_SCALAR(2)),
			1e-5);
	}
}

static void second_derivative_equals_the_dense_one(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *x = leaf(noise(1, 6)), *first[2], *second[2];

		for (int i = 0; i < 2; i++) {
			tensor *in = i ? tensor_to_mkldnn(x, NONE) : x;
			tensor *y =
				tensor_sum(tensor_to_dense(ok(tensor_tanh(tensor_mul(in, in)))));

			assert_done(tensor_backward_ex((tensor_list){ &y, 1 }, NULL,
						       (tensor_list){ &x, 1 }, &first[i],
						       TENSOR_CREATE_GRAPH));
			y = ok(tensor_sum(tensor_mul(first[i], first[i])));
			assert_done(tensor_backward_ex((tensor_list){ &y, 1 }, NULL,
						       (tensor_list){ &x, 1 }, &second[i], 0));
		}
		assert_like(first[1], first[0], 1e-5);
		assert_like(second[1], second[0], 1e-4);
	}
}

/* ---- threads, processes ---- */

static void forked_child_can_use_blocked_tensors(void **state)
{
	pid_t pid;
	int status, before = tensor_get_num_threads();

	NEED_ONEDNN();
	assert_done(tensor_set_num_threads(2));
	tensor_scope {
		conv_case(&conv_cases[8], TENSOR_F32, 1e-4);
	}
	pid = fork();
	if (!pid) {
		alarm(60);
		tensor_scope {
			conv_case(&conv_cases[8], TENSOR_F32, 1e-4);
			conv_case(&conv_cases[0], TENSOR_F32, 1e-4);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_done(tensor_set_num_threads(before));
}

struct worker {
	tensor *x, *w, *want;
	double difference;
};

/* Two threads use the same padded weights. */
static void *convolve_often(void *arg)
{
	struct worker *k = arg;

	for (int i = 0; i < 50; i++)
		tensor_scope {
			double d = largest_difference(
				k->want, tensor_to_dense(tensor_conv2d(k->x, k->w, tensor_none,
								       I(1), I(1), I(1), 1)));

			k->difference = d > k->difference ? d : k->difference;
		}
	return NULL;
}

static void two_threads_share_weights(void **state)
{
	int before = tensor_get_num_threads();

	NEED_ONEDNN();
	assert_done(tensor_set_num_threads(1));
	tensor_scope {
		tensor *x = noise(1, 1, 17, 9, 9), *w = noise(2, 19, 17, 3, 3), *bw = blocked(w);
		tensor *want = ok(tensor_conv2d(x, w, tensor_none, I(1), I(1), I(1), 1));
		struct worker k[2];
		pthread_t t[2];

		bw = ok(tensor_mkldnn_reorder_conv2d_weight(bw, I(1), I(1), I(1), 1,
							    tensor_shape(x)));
		for (int i = 0; i < 2; i++) {
			k[i] = (struct worker){ blocked(x), bw, want, 0 };
			assert_int_equal(pthread_create(&t[i], NULL, convolve_often, &k[i]), 0);
		}
		for (int i = 0; i < 2; i++) {
			assert_int_equal(pthread_join(t[i], NULL), 0);
			assert_true(k[i].difference < 1e-4);
		}
	}
	assert_done(tensor_set_num_threads(before));
}

/* The address space of this process. */
static size_t mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!f || fscanf(f, "%lu", &pages) != 1)
		_exit(3);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Uses other shapes each time, which need new primitives. */
static void compute_with(size_t more, int64_t n)
{
	struct rlimit limit = { mapped() + more, RLIM_INFINITY };
	bool done = false;

	setrlimit(RLIMIT_AS, &limit);
	tensor_clear_error();
	tensor_scope {
		tensor *x = tensor_zeros(I(1, n, 9, 9), F32),
		       *w = tensor_zeros(I(2 * n, n, 3, 3), F32);

		x = tensor_to_mkldnn(x, NONE);
		x = tensor_conv2d(x, tensor_to_mkldnn(w, NONE), tensor_none, I(1), I(1), I(1), 1);
		x = tensor_softmax(x, 1);
		done = tensor_to_dense(tensor_max_pool2d(x, I(2), I(2), I(0), I(1), false));
	}
	if (!done && tensor_last_error()->code != ENOMEM) {
		tensor_perror("without memory");
		_exit(1);
	}
	limit.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_AS, &limit);
}

/* Without memory, oneDNN itself writes to NULL or ends the program. */
static void without_memory_for_onednn_there_is_an_error(void **state)
{
	NOT_WATCHED();
	NEED_ONEDNN();
	assert_int_equal(IN_CHILD({
				 for (int i = 0; i < 160; i++)
					 compute_with((size_t)i << 18, 3 + i);
			 }),
			 0);
}

static void repeated_calls_give_the_same_bits(void **state)
{
	int before = tensor_get_num_threads();

	NEED_ONEDNN();
	for (int n = 1; n <= 2; n++)
		tensor_scope {
			tensor *x = blocked(noise(1, 2, 20, 12, 12)),
			       *w = blocked(noise(2, 40, 20, 7, 7));
			tensor *y[2];

			assert_done(tensor_set_num_threads(n));
			for (int i = 0; i < 2; i++)
				y[i] = ok(tensor_conv2d(x, w, tensor_none, I(2), I(3), I(1), 1));
			assert_like(y[0], ok(tensor_to_dense(y[1])), 0);
		}
	assert_done(tensor_set_num_threads(before));
}

/* More shapes than the cache of primitives keeps. */
static void more_shapes_than_the_cache_keeps(void **state)
{
	NEED_ONEDNN();
	for (int64_t n = 1; n < 1400; n++)
		tensor_scope {
			tensor *x = iota(-3, I(n));

			if (n % 50)
				ok(tensor_relu(blocked(x)));
			else
				assert_like(tensor_relu(blocked(x)), tensor_relu(x), 0);
		}
}

static void blocked_tensor_is_not_exported_by_dlpack(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *t = ok(tensor_to_mkldnn(ok(tensor_ones(TENSOR_INTS(2, 3), F32)),
						TENSOR_DTYPE_NONE));

		assert_fails(tensor_to_dlpack(t, 0), EOPNOTSUPP, "strided");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_plugin_is_named),
		cmocka_unit_test(plugin_opens_or_gives_a_reason),
		cmocka_unit_test(conversion_round_trip_keeps_values),
		cmocka_unit_test(clone_of_a_blocked_tensor_is_independent),
		cmocka_unit_test(a_blocked_tensor_is_opaque),
		cmocka_unit_test(blocked_tensor_is_not_exported_by_dlpack),
		cmocka_unit_test(invalid_conversions_are_refused),
		cmocka_unit_test(convolution_equals_the_dense_one),
		cmocka_unit_test(convolution_of_f16_and_bf16_equals_the_dense_one),
		cmocka_unit_test(conv1d_and_conv3d_equal_the_dense_ones),
		cmocka_unit_test(invalid_convolutions_are_refused),
		cmocka_unit_test(linear_equals_the_dense_one),
		cmocka_unit_test(pooling_equals_the_dense_one),
		cmocka_unit_test(pool3d_and_adaptive_pooling_equal_the_dense_ones),
		cmocka_unit_test(functions_equal_the_dense_ones),
		cmocka_unit_test(functions_propagate_nan_and_infinity),
		cmocka_unit_test(sums_and_products_equal_the_dense_ones),
		cmocka_unit_test(batch_norm_with_running_statistics_equals_the_dense_one),
		cmocka_unit_test(gradients_equal_those_of_the_dense_network),
		cmocka_unit_test(a_blocked_leaf_gets_a_strided_gradient),
		cmocka_unit_test(second_derivative_equals_the_dense_one),
		cmocka_unit_test(forked_child_can_use_blocked_tensors),
		cmocka_unit_test(two_threads_share_weights),
		cmocka_unit_test(without_memory_for_onednn_there_is_an_error),
		cmocka_unit_test(repeated_calls_give_the_same_bits),
		cmocka_unit_test(more_shapes_than_the_cache_keeps),
	};

	return cmocka_run_group_tests_name("blocked", tests, NULL, NULL);
}
