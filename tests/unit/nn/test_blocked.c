// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The blocked layout: conversions and convolutions against the dense kernels in shapes that oneDNN
 * pads, errors, threads, and a process without the plugin.
 */
#include "blocked.h"
#include "peer.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tensor/dlpack.h>
#include <unistd.h>

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
		assert_contains(tensor_last_error()->text, "no address");
		assert_fails(tensor_exp(b) != NULL, EOPNOTSUPP, "exp: no kernel for BlockedCPU");
		assert_fails(tensor_view(b, I(4)) != NULL, EOPNOTSUPP, "no kernel for BlockedCPU");
		assert_fails(tensor_relu_out(b, b) != NULL, EOPNOTSUPP, "out must be a strided");
		assert_fails(tensor_add_out(x, b, b) != NULL, EOPNOTSUPP, "form is not supported");
		assert_fails(tensor_mm(b, x) != NULL, EOPNOTSUPP, "no kernel for BlockedCPU");
		tensor_format(b, text, sizeof(text));
		assert_contains(text, "layout=blocked");
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
		assert_fails(tensor_transpose(b, 0, 2) != NULL, ERANGE, "out of range");
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
static void more_shapes_than_the_cache_keeps_are_computed(void **state)
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
		cmocka_unit_test(forked_child_can_use_blocked_tensors),
		cmocka_unit_test(two_threads_share_weights),
		cmocka_unit_test(without_memory_for_onednn_there_is_an_error),
		cmocka_unit_test(repeated_calls_give_the_same_bits),
		cmocka_unit_test(more_shapes_than_the_cache_keeps_are_computed),
	};

	return cmocka_run_group_tests_name("blocked", tests, NULL, NULL);
}
