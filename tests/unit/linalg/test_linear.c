// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * mm and addmm against plain loops: shapes around the size of a tile, and all layouts of the
 * operands.
 */
#include "check.h"

#include "lib/base/reduced_float.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t seed = 1;

static uint32_t random_next(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

/* The layout of a matrix. */
enum held { PLAIN, TRANSPOSED, ROWS_APART, STEPPED, REVERSED, HELD_COUNT };

static tensor *view_of(tensor *base, enum held held, int64_t r, int64_t c)
{
	switch (held) {
	case TRANSPOSED:
		return ok(tensor_as_strided(base, TENSOR_INTS(r, c), TENSOR_INTS(1, r), 0));
	case ROWS_APART:
		return ok(tensor_as_strided(base, TENSOR_INTS(r, c), TENSOR_INTS(c + 5, 1), 3));
	case STEPPED:
		return ok(tensor_as_strided(base, TENSOR_INTS(r, c), TENSOR_INTS(2 * c + 1, 2), 1));
	case REVERSED:
		return ok(tensor_as_strided(base, TENSOR_INTS(r, c), TENSOR_INTS(-c, -1),
					    r && c ? r * c - 1 : 0));
	default:
		return ok(tensor_as_strided(base, TENSOR_INTS(r, c), TENSOR_INTS(c, 1), 0));
	}
}

/* Small integers, so that every order of summation gives the same result. */
static tensor *matrix(enum tensor_dtype dtype, enum held held, int64_t r, int64_t c)
{
	int64_t n = (r + 1) * (2 * c + 6) + 8;
	double *v = malloc(n * sizeof(*v));
	tensor *base;

	for (int64_t i = 0; i < n; i++)
		v[i] = (double)(random_next() % 15) - (dtype == TENSOR_U8 ? 0 : 7);
	base = ok(tensor_to(ok(tensor_from_data(v, TENSOR_INTS(n), F64)),
			    TENSOR_OPTIONS(.dtype = dtype)));
	free(v);
	return view_of(base, held, r, c);
}

/* Rounds to f16 or bf16. */
static double round_to(enum tensor_dtype dtype, double x)
{
	return dtype == TENSOR_F16  ? f16_to_f32(f32_to_f16((float)x)) :
	       dtype == TENSOR_BF16 ? bf16_to_f32(f32_to_bf16((float)x)) :
				      x;
}

/* Checks beta * c + alpha * a b, computed in f64; c may be NULL. */
static void check_product(tensor *got, tensor *c, tensor *a, tensor *b, double alpha, double beta)
{
	int64_t m = tensor_size(a, 0), k = tensor_size(a, 1), n = tensor_size(b, 1);
	double *x = values_of(a), *y = values_of(b), *r = values_of(got),
	       *z = c ? values_of(c) : NULL;

	assert_shape(got, m, n);
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = 0;

			for (int64_t p = 0; p < k; p++)
				sum += x[i * k + p] * y[p * n + j];
			sum = alpha * sum + (z ? beta * z[i * n + j] : 0);
			sum = round_to(tensor_dtype(got), sum);
			if (r[i * n + j] != sum) {
				fprintf(stderr, "[%d, %d, %d] at %d, %d: %g, expected %g\n", (int)m,
					(int)k, (int)n, (int)i, (int)j, r[i * n + j], sum);
				fail();
			}
		}
	free(x);
	free(y);
	free(r);
	free(z);
}

static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_I32,
					    TENSOR_I64, TENSOR_F16, TENSOR_BF16 };
#define DTYPES (ARRAY_SIZE(dtypes))

static void mm_equals_the_plain_loop_near_every_edge(void **state)
{
	static const int64_t sizes[] = { 1,  2,	 3,  4,	 5,  7,	 8,  9,	 15,
					 16, 17, 24, 31, 33, 48, 50, 64, 70 };
	const int count = ARRAY_SIZE(sizes);

	for (int i = 0; i < count; i++)
		for (int j = 0; j < count; j++)
			for (int h = 0; h < 4; h++)
				tensor_scope {
					enum tensor_dtype d = dtypes[(i + j + h) % DTYPES];
					int64_t k = 1 + random_next() % 70;
					tensor *a = matrix(d, h & 1, sizes[i], k);
					tensor *b = matrix(d, h >> 1, k, sizes[j]);

					check_product(ok(tensor_mm(a, b)), NULL, a, b, 1, 0);
				}
}

static void mm_takes_any_strides(void **state)
{
	for (int i = 0; i < 1500; i++)
		tensor_scope {
			enum tensor_dtype d = dtypes[random_next() % DTYPES];
			int64_t m = 1 + random_next() % 70, n = 1 + random_next() % 70,
				k = 1 + random_next() % 70;
			tensor *a = matrix(d, random_next() % HELD_COUNT, m, k);
			tensor *b = matrix(d, random_next() % HELD_COUNT, k, n);
			tensor *c = matrix(d, random_next() % HELD_COUNT, m, n);

			assert_ptr_equal(ok(tensor_mm_out(c, a, b)), c);
			check_product(c, NULL, a, b, 1, 0);
		}
}

static void mm_of_large_matrices_agrees_with_the_plain_loop(void **state)
{
	static const int64_t shapes[][3] = {
		{ 130, 300, 1200 }, { 1, 1000, 1100 },	{ 1000, 1100, 1 }, { 2, 700, 1030 },
		{ 300, 3, 1500 },   { 70, 600, 7 },	{ 9, 40, 200 },	   { 9, 40, 250 },
		{ 67, 270, 641 },   { 200, 520, 1201 }, { 65, 999, 208 }
	};

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		for (int h = 0; h < 16; h++)
			tensor_scope {
				enum tensor_dtype d = dtypes[h < 8 ? h >> 2 : (h >> 2) + 2];
				int64_t m = shapes[i][0], k = shapes[i][1], n = shapes[i][2];
				tensor *a = matrix(d, h & 1, m, k);
				tensor *b = matrix(d, h >> 1 & 1, k, n);

				check_product(ok(tensor_mm(a, b)), NULL, a, b, 1, 0);
			}
}

static void mm_of_every_integer_wraps(void **state)
{
	static const enum tensor_dtype ints[] = { TENSOR_U8, TENSOR_I8, TENSOR_I16, TENSOR_I32,
						  TENSOR_I64 };
	tensor_scope {
		for (size_t i = 0; i < ARRAY_SIZE(ints); i++) {
			tensor *a = matrix(ints[i], i % HELD_COUNT, 9, 1);
			tensor *b = matrix(ints[i], (i + 1) % HELD_COUNT, 1, 67);

			check_product(ok(tensor_mm(a, b)), NULL, a, b, 1, 0);
		}
		assert_values(tensor_mm(ok(tensor_full(TENSOR_INTS(1, 100), TENSOR_SCALAR(100),
						       TENSOR_OPTIONS(.dtype = TENSOR_U8))),
					ok(tensor_full(TENSOR_INTS(100, 1), TENSOR_SCALAR(3),
						       TENSOR_OPTIONS(.dtype = TENSOR_U8)))),
			      0, 30000 % 256);
		assert_fails(tensor_mm(ok(tensor_ones(TENSOR_INTS(2, 2),
						      TENSOR_OPTIONS(.dtype = TENSOR_BOOL))),
				       ok(tensor_ones(TENSOR_INTS(2, 2),
						      TENSOR_OPTIONS(.dtype = TENSOR_BOOL)))) ==
				     NULL,
			     EOPNOTSUPP, "bool");
	}
}

static void addmm_scales_and_broadcasts_self(void **state)
{
	for (int i = 0; i < 400; i++)
		tensor_scope {
			enum tensor_dtype d = dtypes[random_next() % DTYPES];
			int64_t m = 1 + random_next() % 40, n = 1 + random_next() % 40,
				k = random_next() % 40;
			tensor *a = matrix(d, random_next() % HELD_COUNT, m, k);
			tensor *b = matrix(d, random_next() % HELD_COUNT, k, n);
			tensor *c =
				matrix(d, random_next() % HELD_COUNT, i & 1 ? 1 : m, i & 2 ? 1 : n);
			tensor *full = ok(tensor_expand(c, TENSOR_INTS(m, n)));
			int beta = (int)(random_next() % 4) - 1,
			    alpha = (int)(random_next() % 4) - 1;
			tensor *got = ok(tensor_addmm_opt(c, a, b, TENSOR_SCALAR(beta),
							  TENSOR_SCALAR(alpha)));

			check_product(got, full, a, b, alpha, beta);
			got = ok(tensor_addmm_opt_out(matrix(d, random_next() % HELD_COUNT, m, n),
						      c, a, b, TENSOR_SCALAR(beta),
						      TENSOR_SCALAR(alpha)));
			check_product(got, full, a, b, alpha, beta);
			got = ok(tensor_clone(full));
			got = ok(tensor_to_copy(got, TENSOR_OPTIONS(0)));
			ok(tensor_addmm_opt_(got, a, b, TENSOR_SCALAR(beta), TENSOR_SCALAR(alpha)));
			check_product(got, full, a, b, alpha, beta);
		}
	tensor_scope {
		tensor *bias = iota(1, TENSOR_INTS(3));

		assert_values(tensor_addmm(bias, iota(0, TENSOR_INTS(2, 2)),
					   iota(0, TENSOR_INTS(2, 3))),
			      0, 4, 6, 8, 10, 16, 22);
	}
}

static void addmm_with_beta_zero_ignores_self(void **state)
{
	tensor_scope {
		tensor *nan = ok(tensor_full(TENSOR_INTS(2, 3), TENSOR_SCALAR((double)NAN), F32));
		tensor *a = iota(0, TENSOR_INTS(2, 2)), *b = iota(0, TENSOR_INTS(2, 3));

		assert_values(tensor_addmm_opt(nan, a, b, TENSOR_SCALAR(0), TENSOR_SCALAR(1)), 0, 3,
			      4, 5, 9, 14, 19);
		assert_values(tensor_addmm_opt_(nan, a, b, TENSOR_SCALAR(0.0), TENSOR_SCALAR(2)), 0,
			      6, 8, 10, 18, 28, 38);
	}
}

static void mm_propagates_nan_and_infinity(void **state)
{
	tensor_scope {
		tensor *a = ok(tensor_zeros(TENSOR_INTS(20, 20), F32)), *b = ok(tensor_clone(a));

		((float *)tensor_mutable_data(a))[0] = INFINITY;
		((float *)tensor_mutable_data(b))[21] = NAN;
		a = ok(tensor_mm(a, b));
		assert_true(isnan(((const float *)tensor_data(a))[0]));
		assert_true(isnan(((const float *)tensor_data(a))[39 + 2]));
		assert_true(((const float *)tensor_data(a))[22] == 0);
	}
	/* The element after the end of a row of odd length is not read. */
	for (int h = 4; h < 6; h++)
		tensor_scope {
			tensor *base =
				ok(tensor_full(TENSOR_INTS(80, 10), TENSOR_SCALAR((double)NAN),
					       TENSOR_OPTIONS(.dtype = dtypes[h])));
			tensor *a = ok(tensor_narrow(base, 1, 1, 7)), *b = ok(tensor_t(a)), *c;

			ok(tensor_fill_(a, TENSOR_SCALAR(1)));
			c = ok(tensor_to(ok(tensor_mm(a, b)), F32));
			for (int i = 0; i < 6400; i++)
				assert_true(((const float *)tensor_data(c))[i] == 7);
			c = ok(tensor_to(ok(tensor_mm(ok(tensor_narrow(a, 0, 3, 2)), b)), F32));
			for (int i = 0; i < 160; i++)
				assert_true(((const float *)tensor_data(c))[i] == 7);
		}
}

static void sums_of_f16_and_bf16_are_rounded_once(void **state)
{
	for (int h = 4; h < 6; h++)
		tensor_scope {
			int64_t k = 3001;
			tensor *a = ok(
				tensor_ones(TENSOR_INTS(3, k), TENSOR_OPTIONS(.dtype = dtypes[h])));
			tensor *b = ok(tensor_ones(TENSOR_INTS(k, 100),
						   TENSOR_OPTIONS(.dtype = dtypes[h])));
			tensor *c = ok(tensor_mm(a, b));

			check_product(c, NULL, a, b, 1, 0);
			c = ok(tensor_mm(a, ok(tensor_t(ok(tensor_contiguous(ok(tensor_t(b))))))));
			check_product(c, NULL, a, b, 1, 0);
		}
}

static void empty_dimensions_give_zeros_or_nothing(void **state)
{
	tensor_scope {
		tensor *a = ok(tensor_zeros(TENSOR_INTS(2, 0), F32));
		tensor *b = ok(tensor_zeros(TENSOR_INTS(0, 3), F32));

		assert_values(tensor_mm(a, b), 0, 0, 0, 0, 0, 0, 0);
		assert_values(tensor_addmm(iota(0, TENSOR_INTS(3)), a, b), 0, 0, 1, 2, 0, 1, 2);
		assert_shape(ok(tensor_mm(b, iota(0, TENSOR_INTS(3, 4)))), 0, 4);
		assert_shape(ok(tensor_mm(iota(0, TENSOR_INTS(4, 2)), a)), 4, 0);
		a = ok(tensor_to(a, I64));
		b = ok(tensor_to(b, I64));
		assert_values(tensor_mm(a, b), 0, 0, 0, 0, 0, 0, 0);
	}
}

static void out_may_share_memory_with_an_input(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 3)), *b = iota(1, TENSOR_INTS(3, 3));
		tensor *want = ok(tensor_mm(a, b)), *c = ok(tensor_clone(a));

		ok(tensor_mm_out(c, c, b));
		assert_memory_equal(tensor_data(c), tensor_data(want), 36);
		c = ok(tensor_clone(b));
		ok(tensor_mm_out(ok(tensor_t(c)), a, c));
		assert_memory_equal(tensor_data(ok(tensor_contiguous(tensor_t(c)))),
				    tensor_data(want), 36);
		c = iota(0, TENSOR_INTS(2, 3));
		assert_fails(tensor_mm_out(c, c, b = iota(0, TENSOR_INTS(3, 9))) == NULL, EINVAL,
			     "shares memory");
		assert_shape(c, 2, 3);
		assert_shape(ok(tensor_mm_out(ok(tensor_empty(TENSOR_INTS(0), F32)), c, b)), 2, 9);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(32, 64)), *b = iota(0, TENSOR_INTS(48, 10));
		tensor *c = iota(0, TENSOR_INTS(64, 10)), *i = ok(tensor_to(c, I64));

		assert_fails(tensor_mm(a, b) == NULL, EINVAL,
			     "mm: mat2 must have 64 rows to match self [32, 64], got [48, 10]");
		assert_fails(tensor_mm(a, iota(0, TENSOR_INTS(64))) == NULL, EINVAL,
			     "mat2 must be a matrix, got shape [64]");
		assert_fails(tensor_mm(a, i) == NULL, EINVAL, "one dtype, got f32 and i64");
		assert_fails(tensor_mm(a, NULL) == NULL, EINVAL, "NULL");
		assert_fails(tensor_mm_out(ok(tensor_empty(TENSOR_INTS(32, 10), I64)), a, c) ==
				     NULL,
			     EINVAL, "cannot be stored in i64");
		assert_fails(tensor_addmm(b, a, c) == NULL, EINVAL, "does not broadcast");
		assert_fails(tensor_addmm(i, a, c) == NULL, EINVAL,
			     "self and mat1 must have one dtype");
		assert_fails(tensor_addmm_(iota(0, TENSOR_INTS(10)), a, c) == NULL, EINVAL,
			     "self has shape [10]");
		/* Factors of integer tensors are truncated. */
		i = ok(tensor_ones(TENSOR_INTS(1, 1), I64));
		assert_values(tensor_addmm_opt(i, i, i, TENSOR_SCALAR(0.5), TENSOR_SCALAR(2.9)), 0,
			      2);
	}
}

static void threads_do_not_change_the_bits(void **state)
{
	static const int64_t shapes[][3] = { { 200, 300, 400 },
					     { 700, 520, 130 },
					     { 1, 3000, 900 },
					     { 64, 64, 2000 },
					     { 33, 300, 1201 } };
	int before = tensor_get_num_threads();

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		for (int h = 0; h < 16; h++)
			tensor_scope {
				int64_t m = shapes[i][0], k = shapes[i][1], n = shapes[i][2];
				enum tensor_dtype d = dtypes[h < 8 ? h >> 2 : (h >> 2) + 2];
				tensor *a = tensor_tanh(matrix(d, h & 1, m, k)), *one, *two;
				tensor *b = tensor_tanh(matrix(d, h >> 1 & 1, k, n));

				tensor_set_num_threads(1);
				one = ok(tensor_mm(a, b));
				tensor_set_num_threads(2);
				two = ok(tensor_mm(a, b));
				assert_memory_equal(tensor_data(one), tensor_data(two),
						    tensor_numel(one) * tensor_itemsize(d));
			}
	tensor_set_num_threads(before);
}

/* The level of instructions is chosen at load, so lower ones are tested in another process. */
static void all_instruction_set_levels_agree(void **state)
{
	static const char *const levels[] = { "v2", "v3" };

	if (getenv("TENSOR_CPU_LEVEL"))
		skip();
	for (int i = 0; i < 2; i++) {
		int status;
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child) {
			int null = open("/dev/null", O_WRONLY);

			dup2(null, 1);
			setenv("TENSOR_CPU_LEVEL", levels[i], 1);
			execl("/proc/self/exe", "test_linear", (char *)NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mm_equals_the_plain_loop_near_every_edge),
		cmocka_unit_test(mm_takes_any_strides),
		cmocka_unit_test(mm_of_large_matrices_agrees_with_the_plain_loop),
		cmocka_unit_test(mm_of_every_integer_wraps),
		cmocka_unit_test(addmm_scales_and_broadcasts_self),
		cmocka_unit_test(addmm_with_beta_zero_ignores_self),
		cmocka_unit_test(mm_propagates_nan_and_infinity),
		cmocka_unit_test(sums_of_f16_and_bf16_are_rounded_once),
		cmocka_unit_test(empty_dimensions_give_zeros_or_nothing),
		cmocka_unit_test(out_may_share_memory_with_an_input),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(threads_do_not_change_the_bits),
		cmocka_unit_test(all_instruction_set_levels_agree),
	};

	return cmocka_run_group_tests_name("linear", tests, NULL, NULL);
}
