// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* index_select, index_add, gather, scatter_add against loops over tensor_at(). */
#include "check.h"

#include "lib/base/reduced_float.h"

#define I32 TENSOR_OPTIONS(.dtype = TENSOR_I32)

static const enum tensor_dtype dtypes[] = { TENSOR_BOOL, TENSOR_U8,  TENSOR_I8,	 TENSOR_I16,
					    TENSOR_I32,	 TENSOR_I64, TENSOR_F32, TENSOR_F64 };
static uint32_t seed = 1;

static uint32_t random_next(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

/* Integers below limit, in one of several layouts. */
static tensor *numbers(enum tensor_dtype dtype, tensor_ints shape, uint32_t limit)
{
	int64_t n = 1, double_sizes[TENSOR_MAX_DIMS];
	tensor *t, *wide;
	double *v;
	int way = random_next() % 3;

	for (int64_t i = 0; i < shape.len; i++) {
		double_sizes[i] = way ? 2 * shape.data[i] : shape.data[i];
		n *= double_sizes[i];
	}
	v = calloc(n + 1, sizeof(*v));
	for (int64_t i = 0; i < n; i++)
		v[i] = random_next() % limit;
	wide = ok(tensor_from_data(v, (tensor_ints){ double_sizes, shape.len }, F64));
	free(v);
	t = ok(tensor_to(wide, TENSOR_OPTIONS(.dtype = dtype)));
	for (int64_t i = 0; way && i < shape.len; i++)
		t = ok(way == 1 ? tensor_slice(t, i, i % 2, TENSOR_NONE, 2) :
				  tensor_narrow(t, i, 1 % (shape.data[i] + 1), shape.data[i]));
	if (way == 2 && shape.len == 2) /* and column-major */
		t = ok(tensor_t(ok(tensor_to_copy(ok(tensor_t(t)), TENSOR_OPTIONS(0)))));
	return t;
}

static double element_at(tensor *t, const int64_t *pos)
{
	double x;

	assert_done(tensor_at(t, (tensor_ints){ pos, tensor_dim(t) }, &x));
	return x;
}

static bool advance(int64_t *pos, const int64_t *sizes, int ndim)
{
	for (int d = ndim - 1; d >= 0; d--) {
		if (++pos[d] < sizes[d])
			return true;
		pos[d] = 0;
	}
	return false;
}

static void random_shape(int64_t *sizes, int *ndim, int *dim)
{
	*ndim = 1 + random_next() % 3;
	*dim = random_next() % *ndim;
	for (int i = 0; i < *ndim; i++)
		sizes[i] = 1 + random_next() % 9;
}

static void index_select_takes_positions_of_any_dimension(void **state)
{
	for (int round = 0; round < 400; round++)
		tensor_scope {
			int64_t sizes[3], pos[3] = { 0 }, from[3];
			int ndim, dim;
			tensor *self, *index, *got;

			random_shape(sizes, &ndim, &dim);
			self = numbers(dtypes[round % 8], (tensor_ints){ sizes, ndim }, 100);
			index = numbers(round & 8 ? TENSOR_I32 : TENSOR_I64,
					TENSOR_INTS(1 + random_next() % 12), sizes[dim]);
			got = ok(tensor_index_select(self, round & 16 ? dim : dim - ndim, index));
			sizes[dim] = tensor_numel(index);
			assert_memory_equal(tensor_sizes(got), sizes, ndim * sizeof(*sizes));
			if (round & 1)
				got = ok(tensor_index_select_out(
					numbers(dtypes[round % 8], (tensor_ints){ sizes, ndim }, 9),
					self, dim, index));
			do {
				memcpy(from, pos, sizeof(from));
				from[dim] = (int64_t)element_at(index, pos + dim);
				assert_true(element_at(got, pos) == element_at(self, from));
			} while (advance(pos, sizes, ndim));
		}
}

static void gather_takes_a_position_for_each_element(void **state)
{
	for (int round = 0; round < 400; round++)
		tensor_scope {
			int64_t sizes[3], isizes[3], pos[3] = { 0 }, from[3];
			int ndim, dim;
			tensor *self, *index, *got;

			random_shape(sizes, &ndim, &dim);
			for (int i = 0; i < ndim; i++)
				isizes[i] = 1 + random_next() % (i == dim ? 12 : sizes[i]);
			self = numbers(dtypes[round % 8], (tensor_ints){ sizes, ndim }, 100);
			index = numbers(round & 8 ? TENSOR_I32 : TENSOR_I64,
					(tensor_ints){ isizes, ndim }, sizes[dim]);
			got = ok(tensor_gather(self, dim, index));
			assert_memory_equal(tensor_sizes(got), isizes, ndim * sizeof(*isizes));
			do {
				memcpy(from, pos, sizeof(from));
				from[dim] = (int64_t)element_at(index, pos);
				assert_true(element_at(got, pos) == element_at(self, from));
			} while (advance(pos, isizes, ndim));
		}
}

static double wrap_to(enum tensor_dtype dtype, double x)
{
	switch (dtype) {
	case TENSOR_BOOL:
		return x != 0;
	case TENSOR_U8:
		return (uint8_t)(int64_t)x;
	case TENSOR_I8:
		return (int8_t)(int64_t)x;
	default:
		return x;
	}
}

/* Adds src to an f64 copy in a plain loop over the sizes of `walked`. */
static void check_added(tensor *got, tensor *self, int dim, tensor *index, tensor *source,
			const int64_t *walked, double alpha, bool vector)
{
	tensor *want = ok(tensor_to_copy(self, F64));
	int64_t pos[3] = { 0 }, to[3];
	int ndim = tensor_dim(self);

	do {
		int64_t offset = 0;

		memcpy(to, pos, sizeof(to));
		to[dim] = (int64_t)element_at(index, vector ? pos + dim : pos);
		for (int i = 0; i < ndim; i++)
			offset += to[i] * tensor_stride(want, i);
		((double *)tensor_mutable_data(want))[offset] += alpha * element_at(source, pos);
	} while (advance(pos, walked, ndim));
	memset(pos, 0, sizeof(pos));
	do
		assert_true(element_at(got, pos) ==
			    wrap_to(tensor_dtype(self), element_at(want, pos)));
	while (advance(pos, tensor_sizes(self), ndim));
}

static void index_add_adds_repeated_positions(void **state)
{
	for (int round = 0; round < 400; round++)
		tensor_scope {
			int64_t sizes[3], ssizes[3];
			int ndim, dim, alpha = round & 32 ? 3 : 1;
			tensor *self, *index, *source;

			random_shape(sizes, &ndim, &dim);
			memcpy(ssizes, sizes, sizeof(sizes));
			ssizes[dim] = 1 + random_next() % 12;
			self = numbers(dtypes[round % 8], (tensor_ints){ sizes, ndim }, 50);
			source = numbers(dtypes[round % 8], (tensor_ints){ ssizes, ndim }, 50);
			index = numbers(round & 8 ? TENSOR_I32 : TENSOR_I64,
					TENSOR_INTS(ssizes[dim]), sizes[dim]);
			check_added(ok(tensor_index_add_opt(self, dim, index, source,
							    TENSOR_SCALAR(alpha))),
				    self, dim, index, source, ssizes, alpha, true);
			if (round & 16) {
				tensor *copy = ok(tensor_clone(self));

				ok(tensor_index_add_opt_(self, dim - ndim, index, source,
							 TENSOR_SCALAR(alpha)));
				check_added(self, copy, dim, index, source, ssizes, alpha, true);
			}
		}
}

static void scatter_add_adds_every_element(void **state)
{
	for (int round = 0; round < 400; round++)
		tensor_scope {
			int64_t sizes[3], isizes[3], ssizes[3];
			int ndim, dim;
			tensor *self, *index, *source;

			random_shape(sizes, &ndim, &dim);
			for (int i = 0; i < ndim; i++) {
				isizes[i] = 1 + random_next() % (i == dim ? 12 : sizes[i]);
				ssizes[i] = isizes[i] + random_next() % 3;
			}
			self = numbers(dtypes[round % 8], (tensor_ints){ sizes, ndim }, 50);
			source = numbers(dtypes[round % 8], (tensor_ints){ ssizes, ndim }, 50);
			index = numbers(round & 8 ? TENSOR_I32 : TENSOR_I64,
					(tensor_ints){ isizes, ndim }, sizes[dim]);
			check_added(ok(tensor_scatter_add(self, dim, index, source)), self, dim,
				    index, source, isizes, 1, false);
		}
}

static void indexing_equals_known_values(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 2));
		tensor *i = ok(tensor_from_data((int64_t[]){ 2, 0, 2 }, TENSOR_INTS(3), I64));
		tensor *m = ok(tensor_from_data((int32_t[]){ 1, 0, 0, 1 }, TENSOR_INTS(2, 2), I32));

		assert_values(tensor_index_select(a, 0, i), 0, 4, 5, 0, 1, 4, 5);
		assert_values(tensor_gather(a, 1, m), 0, 1, 0, 2, 3);
		assert_values(tensor_gather(a, 0, m), 0, 2, 1, 0, 3);
		assert_values(tensor_index_add(ok(tensor_zeros_like(a, F32)), 0, i, a), 0, 2, 3, 0,
			      0, 4, 6);
		assert_values(tensor_scatter_add(ok(tensor_zeros_like(a, F32)), 0, m, a), 0, 2, 1,
			      0, 3, 0, 0);
		/* in order: (1e8 + -1e8) + 1; another order gives 0 */
		assert_values(tensor_index_add(ok(tensor_zeros(TENSOR_INTS(1), F32)), 0,
					       ok(tensor_zeros(TENSOR_INTS(3), I64)),
					       ok(tensor_from_data((float[]){ 1e8f, -1e8f, 1 },
								   TENSOR_INTS(3), F32))),
			      0, 1);
	}
}

static void zero_dim_tensors_are_vectors_of_one(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(7.0), F32));
		tensor *zero = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(0), I64));
		tensor *r = ok(tensor_index_select(x, 0, zero));

		assert_int_equal(tensor_dim(r), 0);
		assert_values(r, 0, 7);
		assert_shape(ok(tensor_index_select(iota(0, TENSOR_INTS(2, 3)), 1, zero)), 2, 1);
		assert_values(tensor_gather(x, -1, zero), 0, 7);
		assert_shape(ok(tensor_gather(x, 0, ok(tensor_zeros(TENSOR_INTS(3), I64)))), 3);
		assert_values(tensor_index_add(x, 0, zero, x), 0, 14);
		assert_values(tensor_scatter_add_(x, 0, zero, x), 0, 14);
		assert_fails(tensor_index_select(x, 0, ok(tensor_zeros(TENSOR_INTS(2), I64))) ==
				     NULL,
			     EINVAL, "one element");
	}
}

static void empty_indices_take_and_add_nothing(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 2)),
		       *none = ok(tensor_empty(TENSOR_INTS(0), I64));
		tensor *flat = ok(tensor_empty(TENSOR_INTS(0, 2), F32));

		assert_shape(ok(tensor_index_select(a, 0, none)), 0, 2);
		assert_shape(ok(tensor_index_select(a, 1, none)), 3, 0);
		assert_shape(ok(tensor_index_select(flat, 0, none)), 0, 2);
		assert_shape(ok(tensor_gather(a, 0, none)), 0);
		assert_values(tensor_index_add(a, 0, none, flat), 0, 0, 1, 2, 3, 4, 5);
		assert_values(tensor_scatter_add(a, 0, none, a), 0, 0, 1, 2, 3, 4, 5);
		assert_fails(tensor_index_select(flat, 0, ok(tensor_zeros(TENSOR_INTS(1), I64))) ==
				     NULL,
			     ERANGE, "size 0");
	}
}

static void index_out_of_range_is_named_and_writes_nothing(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 2)), *before = ok(tensor_clone(a));
		tensor *high = ok(tensor_from_data((int64_t[]){ 0, 3 }, TENSOR_INTS(2), I64));
		tensor *low =
			ok(tensor_from_data((int32_t[]){ 0, 1, 1, -1 }, TENSOR_INTS(2, 2), I32));
		tensor *many = ok(tensor_zeros(TENSOR_INTS(1000), I64));
		int64_t *p = tensor_mutable_data(many);

		assert_fails(
			tensor_index_select(a, 0, high) == NULL, ERANGE,
			"index_select: index 3 at position [1] is out of range for dimension 0 of "
			"size 3");
		assert_fails(tensor_gather(a, 1, low) == NULL, ERANGE,
			     "index -1 at position [1, 1]");
		assert_fails(tensor_index_add_(a, 0, high,
					       ok(tensor_ones(TENSOR_INTS(2, 2), F32))) == NULL,
			     ERANGE, "index_add_: index 3 at position [1]");
		assert_fails(tensor_scatter_add_(a, 0, low, a), ERANGE, "scatter_add_: index -1");
		assert_fails(tensor_scatter_(a, 0, low, a), ERANGE, "scatter_.src: index -1");
		assert_fails(tensor_scatter_reduce_(a, 0, low, a, "sum"), ERANGE,
			     "scatter_reduce_.two: index -1");
		assert_memory_equal(tensor_data(a), tensor_data(before), 24);
		p[999] = INT64_MAX;
		assert_fails(tensor_index_select(a, 0, many) == NULL, ERANGE, "position [999]");
		p[999] = INT64_MIN;
		assert_fails(tensor_index_select(ok(tensor_t(a)), 1, many) == NULL, ERANGE,
			     "position [999]");
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 2)), *i = ok(tensor_zeros(TENSOR_INTS(2), I64));
		tensor *m = ok(tensor_zeros(TENSOR_INTS(2, 3), I64));

		assert_fails(tensor_index_select(a, 2, i) == NULL, ERANGE,
			     "dimension out of range");
		assert_fails(tensor_index_select(a, 0, m) == NULL, EINVAL, "one dimension");
		assert_fails(tensor_index_select(a, 0, a) == NULL, EINVAL, "one dimension");
		assert_fails(tensor_gather(a, 0, a) == NULL, EINVAL, "i32 or i64, got f32");
		assert_fails(tensor_gather(a, 0, m) == NULL, EINVAL, "outside dimension 0");
		assert_fails(tensor_gather(a, 0, i) == NULL, EINVAL, "rank of self [3, 2]");
		assert_fails(tensor_index_add(a, 0, i, a) == NULL, EINVAL, "with 2 positions");
		assert_fails(tensor_index_add(a, 0, i, ok(tensor_to(a, F64))) == NULL, EINVAL,
			     "one dtype");
		assert_fails(tensor_scatter_add(a, 1, m, a) == NULL, EINVAL, "src [3, 2]");
		assert_fails(tensor_index_add_(ok(tensor_expand(iota(0, TENSOR_INTS(1, 2)),
								TENSOR_INTS(3, 2))),
					       0, i,
					       ok(tensor_ones(TENSOR_INTS(2, 2), F32))) == NULL,
			     EINVAL, "share memory");
	}
}

static void out_may_share_memory_with_an_input(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 2));
		tensor *i = ok(tensor_from_data((int64_t[]){ 2, 0, 1 }, TENSOR_INTS(3), I64));

		assert_values(tensor_index_select_out(a, a, 0, i), 0, 4, 5, 0, 1, 2, 3);
		assert_values(tensor_index_add_(a, 0, i, a), 0, 4, 6, 2, 4, 6, 8);
		assert_values(tensor_index_add_(i, 0, i, i), 0, 2, 1, 3);
	}
}

/* Contiguous tensors of many short rows, in whose loops several rows are read together. */
static void many_short_rows_agree_with_plain_loops(void **state)
{
	static const int64_t shapes[][3] = { { 90, 7, 1 },  { 3, 40, 11 }, { 40, 6, 5 },
					     { 70, 3, 3 },  { 2, 300, 4 }, { 9, 1, 31 },
					     { 50, 32, 1 }, { 40, 33, 1 }, { 300, 2, 2 } };
	static const enum tensor_dtype kinds[] = { TENSOR_BF16, TENSOR_F32, TENSOR_I64, TENSOR_U8 };

	for (int round = 0; round < 9 * 3 * 4; round++)
		tensor_scope {
			const int64_t *n = shapes[round % 9];
			int dim = round / 9 % 3;
			enum tensor_dtype kind = kinds[round / 27];
			tensor_ints sizes = { n, 3 };
			tensor *self = ok(tensor_contiguous(numbers(kind, sizes, 9)));
			tensor *source = ok(tensor_contiguous(numbers(kind, sizes, 3)));
			tensor *each = ok(tensor_contiguous(
				numbers(round & 1 ? TENSOR_I32 : TENSOR_I64, sizes, n[dim])));
			tensor *line = numbers(TENSOR_I64, TENSOR_INTS(n[dim]), n[dim]);
			tensor *taken = ok(tensor_gather(self, dim, each));
			tensor *picked = ok(tensor_index_select(self, dim, line));
			int64_t pos[3] = { 0 }, from[3];

			/* A dimension of 300 positions may add 255 times at one: not exact in bf16. */
			if (n[dim] < 60 || kind != TENSOR_BF16) {
				check_added(ok(tensor_scatter_add(self, dim, each, source)), self,
					    dim, each, source, n, 1, false);
				check_added(ok(tensor_index_add_opt(self, dim, line, source,
								    TENSOR_SCALAR(2))),
					    self, dim, line, source, n, 2, true);
			}
			do {
				memcpy(from, pos, sizeof(from));
				from[dim] = (int64_t)element_at(each, pos);
				assert_true(element_at(taken, pos) == element_at(self, from));
				from[dim] = (int64_t)element_at(line, pos + dim);
				assert_true(element_at(picked, pos) == element_at(self, from));
			} while (advance(pos, n, 3));
		}
}

static void check_bits(int64_t rows, int64_t columns)
{
	int before = tensor_get_num_threads();

	for (int dim = 0; dim < 2; dim++)
		tensor_scope {
			tensor *a = tensor_tanh(
				       numbers(TENSOR_F32, TENSOR_INTS(rows, columns), 1000)),
			       *r[2];
			int64_t n = dim ? columns : rows, least = n < 500 ? n : 500;
			tensor *i = ok(tensor_contiguous(
				numbers(TENSOR_I64, TENSOR_INTS(rows, columns), least)));
			tensor *v = numbers(TENSOR_I64, TENSOR_INTS(n), least);

			for (int k = 0; k < 2; k++) {
				tensor_set_num_threads(k + 1);
				r[k] = ok(tensor_gather(a, dim, i));
				r[k] = ok(tensor_scatter_add(r[k], dim, i, a));
				r[k] = ok(tensor_index_add(r[k], dim, v, a));
				r[k] = ok(tensor_index_select(r[k], dim, v));
			}
			assert_memory_equal(tensor_data(r[0]), tensor_data(r[1]),
					    tensor_numel(r[0]) * 4);
		}
	tensor_set_num_threads(before);
}

static void threads_do_not_change_the_bits(void **state)
{
	check_bits(500, 700);
	check_bits(40000, 7);
	check_bits(5000, 64); /* rows that are divided into two parts of 32 columns */
}

static uint16_t rounded(float v, bool half)
{
	return half ? f32_to_f16(v) : f32_to_bf16(v);
}

static float widened(uint16_t v, bool half)
{
	return half ? f16_to_f32(v) : bf16_to_f32(v);
}

/* Rows of 1003 elements into 777 positions, of which a group of 16 seldom, often or always has some twice. */
static void sums_of_reduced_floats_are_rounded_one_by_one(void **state)
{
	enum { ROWS = 5, N = 1003, POSITIONS = 777 };
	static const int64_t within[ROWS] = { POSITIONS, 100, 3, 1, POSITIONS };

	for (int k = 0; k < 4; k++)
		tensor_scope {
			enum tensor_dtype dtype = k % 2 ? TENSOR_F16 : TENSOR_BF16;
			float alpha = k < 2 ? 1 : -0.3f;
			tensor_options as = TENSOR_OPTIONS(.dtype = dtype);
			tensor *self = ok(tensor_zeros(TENSOR_INTS(ROWS, POSITIONS), as));
			tensor *x = ok(tensor_to(tensor_randn(TENSOR_INTS(ROWS, N), F32), as));
			uint16_t want[ROWS * POSITIONS] = { 0 };
			const uint16_t *from = tensor_data(x);
			int64_t at[ROWS * N];
			tensor *got, *index;

			for (int i = 0; i < ROWS * N; i++) {
				uint16_t *to = want + i / N * POSITIONS;

				at[i] = random_next() % within[k < 2 ? i / N : 0];
				if (k >= 2)
					at[i] = at[i % N];
				to += at[i];
				*to = rounded(widened(*to, k % 2) + alpha * widened(from[i], k % 2),
					      k % 2);
			}
			index = ok(tensor_from_data(at, TENSOR_INTS(ROWS, N), I64));
			got = k < 2 ? ok(tensor_scatter_add(self, 1, index, x)) :
				      ok(tensor_index_add_opt(self, 1,
							      ok(tensor_select(index, 0, 0)), x,
							      TENSOR_SCALAR(alpha)));
			assert_memory_equal(tensor_data(got), want, sizeof(want));
		}
}

static void indices_into_a_zero_dim_tensor_may_repeat(void **state)
{
	tensor_scope {
		tensor *number = ok(tensor_zeros(TENSOR_SCALAR_SHAPE, F32));

		assert_values(tensor_index_fill(number, 0, ok(tensor_zeros(TENSOR_INTS(3), I64)),
						TENSOR_SCALAR(7)),
			      0, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index_select_takes_positions_of_any_dimension),
		cmocka_unit_test(gather_takes_a_position_for_each_element),
		cmocka_unit_test(index_add_adds_repeated_positions),
		cmocka_unit_test(scatter_add_adds_every_element),
		cmocka_unit_test(indexing_equals_known_values),
		cmocka_unit_test(zero_dim_tensors_are_vectors_of_one),
		cmocka_unit_test(empty_indices_take_and_add_nothing),
		cmocka_unit_test(index_out_of_range_is_named_and_writes_nothing),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(out_may_share_memory_with_an_input),
		cmocka_unit_test(many_short_rows_agree_with_plain_loops),
		cmocka_unit_test(threads_do_not_change_the_bits),
		cmocka_unit_test(sums_of_reduced_floats_are_rounded_one_by_one),
		cmocka_unit_test(indices_into_a_zero_dim_tensor_may_repeat),
	};

	return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
