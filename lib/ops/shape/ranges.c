// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Factories of ordered numbers: linspace, logspace, eye, indices of triangles; and new_* factories,
 * which take dtype and device from a tensor. */
#include "ops/op.h"
#include "ops/memory_format.h"

#include "family/binary.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/ranges.h"
#include "family/view.h"

/* ---- linspace, logspace ---- */

static uint8_t space_dtype(tensor_scalar start, tensor_scalar end)
{
	return start.kind == TENSOR_SCALAR_COMPLEX || end.kind == TENSOR_SCALAR_COMPLEX ?
		       TENSOR_C64 :
		       TENSOR_F32;
}

/* `steps` numbers from a kernel that fills a contiguous tensor. */
static tensor *space(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		     const struct pointwise_params *params, int64_t steps, tensor_options options)
{
	enum tensor_dtype want;
	struct tensor_iter it;
	pointwise_kernel fn;
	tensor *t, *result = NULL;

	if (steps < 0)
		return tensor_fail_null(EINVAL, "%s: steps must not be negative, got %lld",
					op->schema.name, (long long)steps);
	if (!options.dtype)
		options.dtype = space_dtype(params->a, params->b);
	want = options.dtype;
	options.dtype = dtype_wide(want);
	t = tensor_new_opt(options, &steps, 1);
	fn = t ? (pointwise_kernel)op_kernel(op, kernels, t) : NULL;
	if (fn) {
		it.dtype = t->dtype;
		iter_build(&it, (const tensor *const[]){ t }, 1);
		if (fn(&it, params) == 0)
			result = operand_cast(t, want);
	}
	tensor_put(t);
	return result;
}

tensor *factory_linspace(tensor_scalar start, tensor_scalar end, int64_t steps,
			 tensor_options options)
{
	const struct pointwise_params params = { .a = start, .b = end };

	return space(&entry_linspace, &kernels_linspace, &params, steps, options);
}

tensor *factory_logspace(tensor_scalar start, tensor_scalar end, int64_t steps, double base,
			 tensor_options options)
{
	struct pointwise_params exponents = { .a = start, .b = end };
	tensor_options wide = options;
	tensor *power, *raised, *t = NULL;

	if (!options.dtype)
		options.dtype = space_dtype(start, end);
	if (dtype_is_integral(options.dtype)) {
		exponents.a = tensor_scalar_int(scalar_int(start));
		exponents.b = tensor_scalar_int(scalar_int(end));
	}
	wide.dtype = dtype_is_complex(options.dtype) ? TENSOR_C128 : TENSOR_F64;
	power = space(&entry_linspace, &kernels_linspace, &exponents, steps, wide);
	raised = power ? call_pow_Scalar(tensor_scalar_float(base), power) : NULL;
	t = raised ? operand_cast(raised, options.dtype) : NULL;
	tensor_put(power);
	tensor_put(raised);
	return t;
}

/* Convert an end given as a 0-d tensor. */
static int end_of(const char *op, const char *name, tensor *t, tensor_scalar *s)
{
	if (t->ndim)
		return tensor_fail(EINVAL, "%s: %s must be a 0-d tensor, got shape %s", op, name,
				   SHAPE_STR(t));
	return call__local_scalar_dense(t, s);
}

/* Convert both ends; each is a 0-d tensor or, if that is NULL, already in *a or *b. */
static int scalar_ends(const char *op, tensor *start, tensor *end, tensor_scalar *a,
		       tensor_scalar *b)
{
	if (start && end_of(op, "start", start, a) < 0)
		return error_code();
	return end ? end_of(op, "end", end, b) : 0;
}

tensor *composite_linspace_tensor_tensor(tensor *start, tensor *end, int64_t steps,
					 tensor_options options)
{
	tensor_scalar a, b;

	if (scalar_ends("linspace", start, end, &a, &b) < 0)
		return NULL;
	return factory_linspace(a, b, steps, options);
}

tensor *composite_linspace_tensor_scalar(tensor *start, tensor_scalar end, int64_t steps,
					 tensor_options options)
{
	tensor_scalar a, b = end;

	if (scalar_ends("linspace", start, NULL, &a, &b) < 0)
		return NULL;
	return factory_linspace(a, b, steps, options);
}

tensor *composite_linspace_scalar_tensor(tensor_scalar start, tensor *end, int64_t steps,
					 tensor_options options)
{
	tensor_scalar a = start, b;

	if (scalar_ends("linspace", NULL, end, &a, &b) < 0)
		return NULL;
	return factory_linspace(a, b, steps, options);
}

tensor *composite_logspace_tensor_tensor(tensor *start, tensor *end, int64_t steps, double base,
					 tensor_options options)
{
	tensor_scalar a, b;

	if (scalar_ends("logspace", start, end, &a, &b) < 0)
		return NULL;
	return factory_logspace(a, b, steps, base, options);
}

tensor *composite_logspace_tensor_scalar(tensor *start, tensor_scalar end, int64_t steps,
					 double base, tensor_options options)
{
	tensor_scalar a, b = end;

	if (scalar_ends("logspace", start, NULL, &a, &b) < 0)
		return NULL;
	return factory_logspace(a, b, steps, base, options);
}

tensor *composite_logspace_scalar_tensor(tensor_scalar start, tensor *end, int64_t steps,
					 double base, tensor_options options)
{
	tensor_scalar a = start, b;

	if (scalar_ends("logspace", NULL, end, &a, &b) < 0)
		return NULL;
	return factory_logspace(a, b, steps, base, options);
}

/* ---- eye, triangles ---- */

tensor *factory_eye_m(int64_t n, int64_t m, tensor_options options)
{
	tensor *t, *diagonal;

	if (n < 0 || m < 0)
		return tensor_fail_null(EINVAL,
					"eye: sizes must not be negative, got %lld and %lld",
					(long long)n, (long long)m);
	t = call_zeros(TENSOR_INTS(n, m), options);
	diagonal = t ? view_diagonal(t, 0, 0, 1) : NULL;
	if (!diagonal || !call_fill__Scalar(diagonal, tensor_scalar_int(1))) {
		tensor_put(t);
		t = NULL;
	}
	tensor_put(diagonal);
	return t;
}

tensor *factory_eye(int64_t n, tensor_options options)
{
	return factory_eye_m(n, n, options);
}

/* A triangle of a row by col matrix: columns below `cut` of row i are on one side, the others on
 * the other side. cut is 0 in rows before `low`, and `col` from row `high` on. */
struct triangle {
	int64_t row, col, low, high;
	__int128 shift; /* cut is i + shift between `low` and `high` */
	bool upper;
};

static int64_t clamp(__int128 x, int64_t low, int64_t high)
{
	return x < low ? low : x > high ? high : (int64_t)x;
}

static struct triangle triangle_of(int64_t row, int64_t col, int64_t offset, bool upper)
{
	struct triangle g = {
		.row = row, .col = col, .shift = (__int128)offset + !upper, .upper = upper
	};

	g.low = clamp(-g.shift, 0, row);
	g.high = clamp(col - g.shift, g.low, row);
	return g;
}

/* Number of elements in the triangle, or -1 if it overflows. */
static int64_t triangle_count(const struct triangle *g)
{
	__int128 rows = g->high - g->low, whole = (__int128)(g->row - g->high) * g->col;
	__int128 below = rows * (2 * (g->low + g->shift) + rows - 1) / 2 + whole;
	__int128 n = g->upper ? (__int128)g->row * g->col - below : below;

	return n > INT64_MAX ? -1 : (int64_t)n;
}

static void triangle_fill(const struct triangle *g, int64_t *p, int64_t n)
{
	int64_t end = g->upper ? g->high : g->row;

	for (int64_t i = g->upper ? 0 : g->low; n && i < end; i++) {
		int64_t cut = clamp(i + g->shift, 0, g->col);

		for (int64_t k = g->upper ? cut : 0; k < (g->upper ? g->col : cut); k++, p++) {
			p[0] = i;
			p[n] = k;
		}
	}
}

static tensor *triangle_indices(const char *op, int64_t row, int64_t col, int64_t offset,
				bool upper, tensor_options options)
{
	enum tensor_dtype want = options.dtype ? options.dtype : TENSOR_I64;
	int64_t sizes[2] = { 2, 0 };
	tensor *t, *result = NULL;
	struct triangle g;

	if (row < 0 || col < 0)
		return tensor_fail_null(EINVAL, "%s: sizes must not be negative, got %lld and %lld",
					op, (long long)row, (long long)col);
	if (want != TENSOR_I64 && want != TENSOR_I32)
		return tensor_fail_null(EINVAL, "%s: dtype must be i64 or i32, got %s", op,
					tensor_dtype_name(want));
	g = triangle_of(row, col, offset, upper);
	sizes[1] = triangle_count(&g);
	if (sizes[1] < 0)
		return tensor_fail_null(EOVERFLOW,
					"%s: the number of elements of %lld rows and %lld "
					"columns overflows",
					op, (long long)row, (long long)col);
	t = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, sizes, 2);
	if (!t)
		return NULL;
	triangle_fill(&g, t->data, sizes[1]);
	options.dtype = want;
	result = composite_to(t, options, false, false);
	tensor_put(t);
	return result;
}

tensor *factory_tril_indices(int64_t row, int64_t col, int64_t offset, tensor_options options)
{
	return triangle_indices("tril_indices", row, col, offset, false, options);
}

tensor *factory_triu_indices(int64_t row, int64_t col, int64_t offset, tensor_options options)
{
	return triangle_indices("triu_indices", row, col, offset, true, options);
}

/* ---- scalar_tensor ---- */

tensor *factory_scalar_tensor(tensor_scalar s, tensor_options options)
{
	if (!options.dtype)
		options.dtype = s.kind == TENSOR_SCALAR_COMPLEX ? TENSOR_C64 : TENSOR_F32;
	return factory_full(TENSOR_SCALAR_SHAPE, s, options);
}

/* ---- new_*: dtype and device of self unless given ---- */

tensor *composite_new_empty(tensor *self, tensor_ints size, tensor_options options)
{
	return call_empty(size, memory_options_like(self, options));
}

tensor *composite_new_empty_strided(tensor *self, tensor_ints size, tensor_ints stride,
				    tensor_options options)
{
	return call_empty_strided(size, stride, memory_options_like(self, options));
}

tensor *composite_new_zeros(tensor *self, tensor_ints size, tensor_options options)
{
	return call_zeros(size, memory_options_like(self, options));
}

tensor *composite_new_ones(tensor *self, tensor_ints size, tensor_options options)
{
	return call_ones(size, memory_options_like(self, options));
}

tensor *composite_new_full(tensor *self, tensor_ints size, tensor_scalar fill_value,
			   tensor_options options)
{
	return call_full(size, fill_value, memory_options_like(self, options));
}
