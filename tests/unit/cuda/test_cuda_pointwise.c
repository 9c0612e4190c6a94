// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Elementwise operators on CUDA: each one of the schema table with the tag "pointwise" against the
 * CPU's result, for every dtype and several layouts of the operands, and conversions between all
 * dtypes. The operators are called by name, so a new one needs no test here. An operator that is
 * not in `inexact` gives the same bits as on the CPU.
 */
#include "cuda_results.h"

#include <float.h>

enum { ROWS = 5, COLUMNS = 9, VALUES = ROWS * COLUMNS, ARGS = 8 };

/* The elements of results may differ by a few units in the last place. */
static const char *const inexact[] = {
	"acos",	      "acosh",	"angle",     "asin",  "asinh",	 "atan",	"atan2",
	"atanh",      "celu",	"cos",	     "cosh",  "digamma", "elu",		"erf",
	"erfc",	      "erfinv", "exp",	     "exp2",  "expm1",	 "gelu",	"hypot",
	"lgamma",     "log",	"log10",     "log1p", "log2",	 "log_sigmoid", "logaddexp",
	"logaddexp2", "mish",	"polygamma", "pow",   "selu",	 "sigmoid",	"silu",
	"sin",	      "sinh",	"softplus",  "tan",   "tanh",	 "xlogy",
};

/* ---- operands ---- */

static bool is_complex(enum tensor_dtype d)
{
	return d == TENSOR_C64 || d == TENSOR_C128;
}

static bool is_integral(enum tensor_dtype d)
{
	return d <= TENSOR_I64 || (d >= TENSOR_U16 && d <= TENSOR_U64);
}

static const double floats[] = {
	0,	-0.,   1,     -1,   0.5,      -0.5,	 2.5,  -3.25,	0.1,  -0.7,
	3,	-7,    1e-3,  20.5, INFINITY, -INFINITY, NAN,  100,	-50,  1.5,
	-0.999, 0.999, 1e-30, 6,    -6,	      65000,	 1e30, -2.0625, 0.25, 7.5,
};
static const double small[] = {
	0.5, -0.5, 1, -1, 2.5, -1.25, 0.125, 3, -2, 0.75, 1.5, -0.3, 0.9, -2.75, 0.2, 4, -3,
};
static const int64_t whole_numbers[] = {
	0,    1,   -1, 2,     3,      -3,	 7,	    100,       -100,	  127,
	-128, 255, 12, 32767, -32768, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 5,
};

/* VALUES elements; operand `which` has another order. 0 does not occur if `nonzero`. */
static tensor *operand(enum tensor_dtype dtype, int which, bool special, bool nonzero)
{
	double parts[2 * VALUES], *f = parts;
	int64_t whole[VALUES];
	size_t step = which == 0 ? 1 : which == 1 ? 7 : 11;

	for (size_t i = 0; i < VALUES; i++) {
		size_t at = i * step + which;

		whole[i] = whole_numbers[at % ARRAY_SIZE(whole_numbers)];
		if (nonzero && !(uint8_t)whole[i])
			whole[i] = 3;
	}
	for (size_t i = 0; i < (is_complex(dtype) ? 2 : 1) * VALUES; i++) {
		size_t at = i * step + which;

		f[i] = special ? floats[at % ARRAY_SIZE(floats)] : small[at % ARRAY_SIZE(small)];
	}
	if (is_integral(dtype))
		return ok(tensor_to(ok(tensor_from_data(whole, TENSOR_SHAPE(ROWS, COLUMNS), I64)),
				    OF(dtype)));
	return ok(tensor_to(ok(tensor_from_data(parts, TENSOR_SHAPE(ROWS, COLUMNS),
						OF(is_complex(dtype) ? TENSOR_C128 : TENSOR_F64))),
			    OF(dtype)));
}

enum layout { PLAIN, STRIDED, ROW, NUMBER, SHIFTED, EMPTY, LAYOUTS };

/* Operand `which` of a call on the CPU, or the same view of the same values on the device. */
static tensor *placed(tensor *t, enum layout layout, int which, bool cuda)
{
	tensor *d = cuda ? ok(tensor_to(t, CUDA)) : t;

	switch (layout) {
	case STRIDED: /* the first operand is transposed, the others have steps */
		return which ? ok(tensor_slice(d, 0, 0, ROWS, 2)) :
			       ok(tensor_slice(ok(tensor_t(ok(tensor_contiguous(ok(tensor_t(d)))))),
					       0, 0, ROWS, 2));
	case ROW:
		return which ? ok(tensor_slice(d, 0, 1, 2, 1)) : d;
	case NUMBER: /* a tensor of no dimensions on the host */
		return which ? ok(tensor_select(ok(tensor_select(t, 0, 1)), 0, 2)) : d;
	case SHIFTED: /* contiguous, but not aligned to packs */
		return ok(
			tensor_slice(ok(tensor_reshape(d, TENSOR_SHAPE(VALUES))), 0, 1, VALUES, 1));
	case EMPTY:
		return ok(tensor_slice(d, 0, 2, 2, 1));
	default:
		return d;
	}
}

/* ---- calls ---- */

static bool has_tag(const struct tensor_schema *s, const char *tag)
{
	for (int i = 0; s->tags && s->tags[i]; i++)
		if (!strcmp(s->tags[i], tag))
			return true;
	return false;
}

/* Whether the test can make the arguments of the operator: its functional form of tensors and numbers. */
static bool is_called(const struct tensor_schema *s)
{
	if (!has_tag(s, "pointwise") || s->nreturns != 1 || s->nargs > ARGS ||
	    has_tag(s, "inplace") || has_tag(s, "random"))
		return false;
	for (int i = 0; i < s->nargs; i++) {
		enum tensor_arg_type type = s->args[i].type;

		if (s->args[i].mutated || type == TENSOR_ARG_TENSOR_LIST ||
		    type == TENSOR_ARG_GENERATOR || (i == 0 && type == TENSOR_ARG_DTYPE))
			return false;
	}
	return true;
}

static bool begins_with_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	return false;
}

static bool is_inexact(const char *name)
{
	return begins_with_one_of(name, inexact, ARRAY_SIZE(inexact));
}

/* The arguments of a call; `operands` are made by operand(). */
static void arguments(const struct tensor_schema *s, tensor *const *operands, enum layout layout,
		      bool cuda, tensor_value *args)
{
	bool real = !is_integral(tensor_dtype(operands[0]));
	int tensors = 0;

	for (int i = 0; i < s->nargs; i++) {
		const struct tensor_arg *a = &s->args[i];

		args[i] = (tensor_value){ .kind = TENSOR_VALUE_NONE };
		switch (a->type) {
		case TENSOR_ARG_TENSOR:
		case TENSOR_ARG_OPTIONAL_TENSOR:
			args[i].kind = TENSOR_VALUE_TENSOR;
			args[i].t =
				placed(!strcmp(a->name, "condition") || !strcmp(a->name, "mask") ?
					       operands[3] :
					       operands[tensors % 3],
				       layout, tensors, cuda);
			tensors++;
			break;
		case TENSOR_ARG_SCALAR:
		case TENSOR_ARG_OPTIONAL_SCALAR:
		case TENSOR_ARG_FLOAT:
			if (a->default_text && i % 2)
				break;
			args[i].kind = TENSOR_VALUE_SCALAR;
			args[i].scalar = real ? tensor_scalar_float(0.75 + i) :
						tensor_scalar_int(2 + i);
			break;
		case TENSOR_ARG_INT:
			args[i].kind = TENSOR_VALUE_INT;
			args[i].i = 2;
			break;
		default:
			break;
		}
	}
}

/* ---- comparison ---- */

static double spacing(enum tensor_dtype d)
{
	return d == TENSOR_F16	? 0x1p-10 :
	       d == TENSOR_BF16 ? 0x1p-7 :
	       d == TENSOR_F32	? 0x1p-23 :
	       d == TENSOR_C64	? 0x1p-23 :
				  0x1p-52;
}

static bool near(double x, double y, double tolerance, double size)
{
	if (isnan(x) || isnan(y))
		return isnan(x) && isnan(y);
	return x == y ? tolerance > 0 || signbit(x) == signbit(y) : fabs(x - y) <= tolerance * size;
}

/*
 * Compares results; units: of the last place, of numbers of at least `least`. Returns the number of
 * different elements and one of them.
 */
static int differences(tensor *gpu, tensor *cpu, double units, double least, double *x, double *y)
{
	enum tensor_dtype dtype = tensor_dtype(cpu),
			  wide = is_complex(dtype) ? TENSOR_C128 : TENSOR_F64;
	tensor *a = ok(tensor_to(ok(tensor_to(gpu, CPU)), OF(wide))),
	       *b = ok(tensor_to(cpu, OF(wide)));
	int64_t n = tensor_numel(cpu), parts = is_complex(dtype) ? 2 : 1;
	double *p = malloc(n * parts * 8 + 8), *q = malloc(n * parts * 8 + 8);
	double tolerance = units * spacing(dtype);
	int count = 0;

	assert_done(tensor_copy_to(a, p, n * parts * 8));
	assert_done(tensor_copy_to(b, q, n * parts * 8));
	for (int64_t i = 0; i < n * parts; i++) {
		double size = parts == 1 ? fabs(q[i]) : hypot(q[i & ~1], q[i | 1]);

		if (units)
			size = fmax(size, least);
		if (near(p[i], q[i], tolerance, size))
			continue;
		*x = p[i];
		*y = q[i];
		count++;
	}
	free(p);
	free(q);
	return count;
}

/* ---- the test of one operator ---- */

struct counts {
	int calls, failed, absent;
};

static void compare(const struct tensor_schema *s, enum tensor_dtype dtype, enum layout layout,
		    struct counts *c)
{
	bool inexact_ = is_inexact(s->name),
	     divides = !strncmp(s->name, "div", 3) || !strncmp(s->name, "fmod", 4) ||
		       !strncmp(s->name, "remainder", 9) || !strncmp(s->name, "floor_divide", 12);
	bool special = !is_complex(dtype);
	/* The CPU's gelu subtracts from 1; the sum that digamma is has terms of about 1 near its root. */
	double least = strncmp(s->name, "gelu", 4) && strcmp(s->name, "digamma") ? 1e-3 : 1;
	tensor_value args[ARGS], want = { 0 }, got = { 0 };
	tensor *operands[4];
	double x, y;
	int err, different;

	for (int i = 0; i < 3; i++)
		operands[i] = operand(dtype, i, special, divides);
	operands[3] = operand(TENSOR_BOOL, 2, false, false);
	arguments(s, operands, layout, false, args);
	if (tensor_call(s->name, args, s->nargs, &want, 1) < 0)
		return;
	arguments(s, operands, layout, true, args);
	err = tensor_call(s->name, args, s->nargs, &got, 1);
	c->calls++;
	if (err == -EOPNOTSUPP || err == -ENOSYS) {
		c->absent++;
		return;
	}
	if (err < 0) {
		print_error("%s, dtype %s, layout %d: %s\n", s->text, tensor_dtype_name(dtype),
			    layout, tensor_last_error()->text);
		c->failed++;
		return;
	}
	assert_int_equal(tensor_dtype(got.t), tensor_dtype(want.t));
	assert_int_equal(tensor_numel(got.t), tensor_numel(want.t));
	different = differences(got.t, want.t,
				inexact_	  ? 16 :
				is_complex(dtype) ? 4 :
						    0,
				least, &x, &y);
	if (!different)
		return;
	print_error("%s, dtype %s, layout %d: %d elements differ, one is %.17g, on the CPU %.17g\n",
		    s->text, tensor_dtype_name(dtype), layout, different, x, y);
	c->failed++;
}

static void operators_match_the_cpu(void **state)
{
	int n, failed = 0, tested = 0, absent = 0;
	const tensor_op *const *ops = tensor_op_list(&n);

	NEED_DEVICE();
	for (int i = 0; i < n; i++) {
		const struct tensor_schema *s = tensor_op_schema(ops[i]);
		struct counts c = { 0 };

		if (!is_called(s))
			continue;
		for (int d = TENSOR_BOOL; d < TENSOR_F8_E4M3FN; d++)
			for (int l = 0; l < LAYOUTS; l++)
				tensor_scope
					compare(s, (enum tensor_dtype)d, (enum layout)l, &c);
		tested += c.calls;
		failed += c.failed;
		if (!c.absent)
			continue;
		print_message("# %s: %d of %d calls have no kernel\n", s->name, c.absent, c.calls);
		absent++;
	}
	print_message("# %d calls, %d operators without a kernel\n", tested, absent);
	assert_int_equal(failed, 0);
	assert_int_equal(absent, 0);
	assert_true(tested > 10000);
}

static void conversions_match_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int from = TENSOR_BOOL; from < TENSOR_DTYPE_COUNT; from++)
		for (int to = TENSOR_BOOL; to < TENSOR_DTYPE_COUNT; to++)
			tensor_scope {
				tensor *a = ok(
					tensor_to(operand(TENSOR_F64, 0, false, false), OF(from)));
				tensor *g = ok(tensor_to(ok(tensor_to(a, CUDA)), OF(to)));
				tensor *c = ok(tensor_to(a, OF(to)));
				double x, y;

				assert_int_equal(tensor_dtype(g), to);
				if (differences(g, c, 0, 0, &x, &y))
					fail_msg("%s to %s: %.17g, on the CPU %.17g",
						 tensor_dtype_name(from), tensor_dtype_name(to), x,
						 y);
			}
}

static void division_of_an_integer_by_zero_fails(void **state)
{
	static const char *const names[] = { "fmod.Tensor", "remainder.Tensor", "floor_divide" };

	NEED_DEVICE();
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (int d = TENSOR_U8; d <= TENSOR_I64; d++)
			tensor_scope {
				tensor *a = ok(tensor_ones(
					TENSOR_SHAPE(40),
					TENSOR_OPTIONS(.dtype = d,
						       .device = TENSOR_DEVICE_CUDA(0))));
				tensor *b = ok(tensor_clone(a));
				tensor_value args[] = { { .kind = TENSOR_VALUE_TENSOR, .t = a },
							{ .kind = TENSOR_VALUE_TENSOR, .t = b } };
				tensor_value ret = { 0 };

				assert_done(tensor_call(names[i], args, 2, &ret, 1));
				ok(tensor_fill_(ok(tensor_slice(b, 0, 33, 34, 1)), S(0)));
				assert_fails(tensor_call(names[i], args, 2, &ret, 1), EDOM,
					     "division by zero");
			}
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
}

/* ---- gradients ---- */

/* The gradients of the sum of op(x) or op(x, y) with respect to x and y, on the host. */
static void gradients(const char *name, int n, tensor_options device, tensor **to)
{
	tensor_value args[2], ret = { 0 };

	for (int i = 0; i < n; i++) {
		tensor *t = ok(
			tensor_add(ok(tensor_abs(operand(TENSOR_F32, i, false, false))), S(0.3)));

		to[i] = ok(tensor_to(ok(tensor_div(t, S(8))), device));
		assert_done(tensor_set_requires_grad(to[i], true));
		args[i] = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = to[i] };
	}
	assert_done(tensor_call(name, args, n, &ret, 1));
	assert_done(tensor_backward(ok(tensor_sum(ret.t))));
	for (int i = 0; i < n; i++)
		to[i] = ok(tensor_to(ok(tensor_grad(to[i])), CPU));
}

static void gradients_match_the_cpu(void **state)
{
	static const struct {
		const char *name;
		int inputs;
	} ops[] = {
		{ "acos", 1 },	      { "atan", 1 },
		{ "cosh", 1 },	      { "elu", 1 },
		{ "erf", 1 },	      { "exp", 1 },
		{ "gelu", 1 },	      { "hardswish", 1 },
		{ "leaky_relu", 1 },  { "log1p", 1 },
		{ "log_sigmoid", 1 }, { "mish", 1 },
		{ "reciprocal", 1 },  { "rsqrt", 1 },
		{ "sigmoid", 1 },     { "silu", 1 },
		{ "softplus", 1 },    { "sqrt", 1 },
		{ "tan", 1 },	      { "tanh", 1 },
		{ "atan2", 2 },	      { "div.Tensor", 2 },
		{ "hypot", 2 },	      { "logaddexp", 2 },
		{ "mul.Tensor", 2 },  { "xlogy.Tensor", 2 },
		{ "maximum", 2 },     { "pow.Tensor_Tensor", 2 },
	};

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		tensor_scope {
			tensor *host[2], *device[2];
			double x, y;

			gradients(ops[i].name, ops[i].inputs, CPU, host);
			gradients(ops[i].name, ops[i].inputs, CUDA, device);
			for (int k = 0; k < ops[i].inputs; k++)
				if (differences(device[k], host[k], 32, 1, &x, &y))
					fail_msg("%s: %.9g, on the CPU %.9g", ops[i].name, x, y);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_match_the_cpu),
		cmocka_unit_test(conversions_match_the_cpu),
		cmocka_unit_test(division_of_an_integer_by_zero_fails),
		cmocka_unit_test(gradients_match_the_cpu),
	};

	return cmocka_run_group_tests_name("cuda_pointwise", tests, NULL, NULL);
}
