// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Unary and binary elementwise operators, and reductions. Over 500 lines, because reductions use the
 * functions of the binary operators.
 */
#include "fuzz.h"

#include <math.h>
#include <string.h>

/* ---- unary ---- */

enum unary {
	NEG,
	ABS,
	RELU,
	FLOOR,
	CEIL,
	TRUNC,
	ROUND,
	LOGICAL_NOT,
	ISNAN,
	SQRT,
	EXP,
	LOG,
	SIN,
	COS,
	TANH,
	SIGMOID,
	EXPM1,
	LOG1P,
	ATAN,
	RECIPROCAL
};

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double reciprocal(double x)
{
	return 1 / x;
}

static double relu(double x)
{
	return x < 0 ? 0 : x;
}

static double negative(double x)
{
	return -x;
}

static double (*const real_fn[])(double) = {
	[NEG] = negative, [ABS] = fabs,	       [RELU] = relu,
	[FLOOR] = floor,  [CEIL] = ceil,       [TRUNC] = trunc,
	[ROUND] = rint,	  [SQRT] = sqrt,       [EXP] = exp,
	[LOG] = log,	  [SIN] = sin,	       [COS] = cos,
	[TANH] = tanh,	  [SIGMOID] = sigmoid, [EXPM1] = expm1,
	[LOG1P] = log1p,  [ATAN] = atan,       [RECIPROCAL] = reciprocal,
};

static int64_t integer_fn(int fn, int64_t i)
{
	switch (fn) {
	case NEG:
		return (int64_t)(0 - (uint64_t)i);
	case ABS:
		return i < 0 ? (int64_t)(0 - (uint64_t)i) : i;
	case RELU:
		return i < 0 ? 0 : i;
	default:
		return i;
	}
}

static struct value unary_value(int fn, struct value v, enum tensor_dtype d, enum tensor_dtype to)
{
	if (fn == LOGICAL_NOT)
		return plain_int(plain_is_integral(d) ? !v.i : v.re == 0 && v.im == 0);
	if (fn == ISNAN)
		return plain_int(!plain_is_integral(d) && (isnan(v.re) || isnan(v.im)));
	if (plain_is_integral(to))
		return plain_round(plain_int(integer_fn(fn, v.i)), TENSOR_I64, to);
	if (plain_is_complex(d))
		return (struct value){ 0, -v.re, -v.im };
	return plain_round(plain_float(real_fn[fn](plain_real(&v, d))), TENSOR_F64, to);
}

static void make_unary(struct call *c)
{
	int fn = c->row->detail;
	enum tensor_dtype d = any_dtype(), to;
	tensor *t;

	/*
	 * `make conformance` covers functions of complex numbers; only those without branch cuts
	 * are here.
	 */
	while (plain_is_complex(d) && fn != NEG && fn != LOGICAL_NOT && fn != ISNAN)
		d = any_dtype();
	t = any_tensor(d);
	arg_tensor(c, t);
	to = fn == LOGICAL_NOT || fn == ISNAN	? TENSOR_BOOL :
	     fn >= SQRT && plain_is_integral(d) ? TENSOR_F32 :
						  d;
	plain_make(&c->want[0], to, c->in[0].ndim, c->in[0].sizes);
	c->want[0].slack = fn >= SQRT ? 4 : 0;
	for (int64_t i = 0; i < c->want[0].numel; i++) {
		struct value v = c->in[0].v[i];

		/* Integers are converted to f32 before the function. */
		if (fn >= SQRT && plain_is_integral(d))
			v = plain_round(v, d, TENSOR_F32);
		c->want[0].v[i] =
			unary_value(fn, v, fn >= SQRT && plain_is_integral(d) ? TENSOR_F32 : d, to);
	}
}

/* ---- binary ---- */

enum binary {
	ADD,
	SUB,
	MUL,
	MAXIMUM,
	MINIMUM,
	AND,
	OR,
	XOR,
	DIV,
	ATAN2,
	XLOGY,
	EQ,
	NE,
	LT,
	LE,
	GT,
	GE,
	LOGICAL_AND,
	LOGICAL_OR,
	LOGICAL_XOR
};

static int64_t integer_op(int op, int64_t a, int64_t b)
{
	switch (op) {
	case ADD:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case SUB:
		return (int64_t)((uint64_t)a - (uint64_t)b);
	case MUL:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case MAXIMUM:
		return a > b ? a : b;
	case MINIMUM:
		return a < b ? a : b;
	case AND:
		return a & b;
	case OR:
		return a | b;
	default:
		return a ^ b;
	}
}

static double real_op(int op, double a, double b)
{
	switch (op) {
	case ADD:
		return a + b;
	case SUB:
		return a - b;
	case MUL:
		return a * b;
	case MAXIMUM:
		return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	case MINIMUM:
		return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	case DIV:
		return a / b;
	case XLOGY:
		return isnan(b) ? NAN : a == 0 ? 0 : a * log(b);
	default:
		return atan2(a, b);
	}
}

static struct value complex_op(int op, struct value a, struct value b)
{
	if (op == ADD)
		return (struct value){ 0, a.re + b.re, a.im + b.im };
	if (op == SUB)
		return (struct value){ 0, a.re - b.re, a.im - b.im };
	return (struct value){ 0, a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

static bool is_nonzero(const struct value *v)
{
	return v->i || v->re != 0 || v->im != 0;
}

static bool compare_values(int op, const struct value *a, const struct value *b,
			   enum tensor_dtype d)
{
	bool whole = plain_is_integral(d);
	bool equal = whole ? a->i == b->i : a->re == b->re && a->im == b->im;
	bool less = whole ? a->i < b->i : a->re < b->re, more = whole ? a->i > b->i : a->re > b->re;

	switch (op) {
	case EQ:
		return equal;
	case NE:
		return !equal;
	case LT:
		return less;
	case LE:
		return less || equal;
	case GT:
		return more;
	case GE:
		return more || equal;
	case LOGICAL_AND:
		return is_nonzero(a) && is_nonzero(b);
	case LOGICAL_OR:
		return is_nonzero(a) || is_nonzero(b);
	default:
		return is_nonzero(a) != is_nonzero(b);
	}
}

static struct value binary_value(int op, struct value a, struct value b, enum tensor_dtype d)
{
	if (op >= EQ)
		return plain_int(compare_values(op, &a, &b, d));
	if (d == TENSOR_BOOL && op <= MUL)
		return plain_int(op == MUL ? a.i & b.i : a.i | b.i);
	if (plain_is_integral(d))
		return plain_round(plain_int(integer_op(op, a.i, b.i)), TENSOR_I64, d);
	if (plain_is_complex(d))
		return plain_round(complex_op(op, a, b), TENSOR_C128, d);
	return plain_round(plain_float(real_op(op, a.re, b.re)), TENSOR_F64, d);
}

/* Sizes after broadcasting; false if the operands do not broadcast. */
static bool broadcast(const struct plain *a, const struct plain *b, int *ndim, int64_t *sizes)
{
	*ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
	for (int k = 1; k <= *ndim; k++) {
		int64_t m = k <= a->ndim ? a->sizes[a->ndim - k] : 1;
		int64_t n = k <= b->ndim ? b->sizes[b->ndim - k] : 1;

		if (m != n && m != 1 && n != 1)
			return false;
		sizes[*ndim - k] = m == 1 ? n : m;
	}
	return true;
}

static const struct value *broadcast_element(const struct plain *p, const struct plain *out,
					     const int64_t *index)
{
	int64_t own[TENSOR_MAX_DIMS];

	for (int d = 0; d < p->ndim; d++) {
		int64_t i = index[out->ndim - p->ndim + d];

		own[d] = p->sizes[d] == 1 ? 0 : i;
	}
	return &p->v[plain_at(p, own)];
}

static bool is_unsupported(int op, enum tensor_dtype d)
{
	return (plain_is_complex(d) && (op == ATAN2 || op == XLOGY || op == MAXIMUM ||
					op == MINIMUM || (op >= LT && op <= GE))) ||
	       (plain_category(d) > 2 && op >= AND && op <= XOR) || (d == TENSOR_BOOL && op == SUB);
}

/*
 * The dtype to which an operand is rounded before f16 or bf16 are computed in f32: scalars are not
 * rounded.
 */
static enum tensor_dtype operand_dtype(const struct plain *p, enum tensor_dtype d)
{
	bool half = d == TENSOR_F16 || d == TENSOR_BF16;

	return half && !p->ndim && p->dtype != d ? TENSOR_F32 : d;
}

static void make_binary(struct call *c)
{
	int op = c->row->detail, ndim;
	int64_t sizes[TENSOR_MAX_DIMS], index[TENSOR_MAX_DIMS] = { 0 };
	enum tensor_dtype d;
	tensor *a = any_tensor(0), *b;

	ndim = broadcasting(tensor_sizes(a), tensor_dim(a), sizes);
	b = tensor_like(one_in(2) ? tensor_dtype(a) : 0, ndim, sizes);
	arg_tensor(c, one_in(2) ? a : b);
	arg_tensor(c, c->t[0] == a ? b : a);
	d = plain_result_type(&c->in[0], &c->in[1]);
	if ((op == DIV || op == ATAN2 || op == XLOGY) && plain_is_integral(d))
		d = TENSOR_F32;
	if (!broadcast(&c->in[0], &c->in[1], &ndim, sizes) || is_unsupported(op, d)) {
		c->refuse = true;
		plain_make(&c->want[0], d, 0, NULL);
		return;
	}
	plain_make(&c->want[0], op >= EQ ? TENSOR_BOOL : d, ndim, sizes);
	c->want[0].slack = op == ATAN2 || op == XLOGY	    ? 4 :
			   plain_is_complex(d) && op == MUL ? 8 :
							      0;
	if (op == DIV && plain_is_complex(d))
		c->want[0].slack = INFINITY; /* covered by `make conformance` */
	if (op == MAXIMUM || op == MINIMUM)
		c->want[0].slack = 1e-6; /* -0 and 0 are equal */
	for (int64_t i = 0; i < c->want[0].numel; i++) {
		struct value x = *broadcast_element(&c->in[0], &c->want[0], index);
		struct value y = *broadcast_element(&c->in[1], &c->want[0], index);

		x = plain_round(x, c->in[0].dtype, operand_dtype(&c->in[0], d));
		y = plain_round(y, c->in[1].dtype, operand_dtype(&c->in[1], d));
		c->want[0].v[i] = binary_value(op, x, y, d);
		plain_next(&c->want[0], index);
	}
}

/* ---- reductions ---- */

enum reduction { SUM, AMAX, AMIN, ANY, ALL, PROD };

static struct value reduce_step(int op, struct value a, struct value b, enum tensor_dtype d)
{
	switch (op) {
	case SUM:
		return plain_is_integral(d) ? plain_int(integer_op(ADD, a.i, b.i)) :
					      (struct value){ 0, a.re + b.re, a.im + b.im };
	case PROD:
		return plain_is_integral(d) ? plain_int(integer_op(MUL, a.i, b.i)) :
		       plain_is_complex(d)  ? complex_op(MUL, a, b) :
					      plain_float(a.re * b.re);
	case ANY:
		return plain_int(is_nonzero(&a) || is_nonzero(&b));
	case ALL:
		return plain_int(is_nonzero(&a) && is_nonzero(&b));
	default:
		return plain_is_integral(d) ?
			       plain_int(integer_op(op == AMAX ? MAXIMUM : MINIMUM, a.i, b.i)) :
			       plain_float(real_op(op == AMAX ? MAXIMUM : MINIMUM, a.re, b.re));
	}
}

/* The shape of the result with size 1 for the reduced dimensions. */
static int reduced_sizes(const struct plain *in, uint32_t dims, bool keepdim, int64_t *sizes)
{
	int n = 0;

	for (int d = 0; d < in->ndim; d++)
		if (!(dims >> d & 1) || keepdim)
			sizes[n++] = dims >> d & 1 ? 1 : in->sizes[d];
	return n;
}

static struct value reduction_identity(int op, enum tensor_dtype d)
{
	if (op == PROD || op == ALL)
		return plain_is_integral(d) ? plain_int(1) : (struct value){ op == ALL, 1, 0 };
	return (struct value){ 0 };
}

static void reduce_into(struct call *c, int op, uint32_t dims)
{
	struct plain *in = &c->in[0], *out = &c->want[0];
	int64_t index[TENSOR_MAX_DIMS] = { 0 }, at;
	bool *begun = plain_alloc(out->numel + 1);

	memset(begun, 0, out->numel + 1);
	for (int64_t i = 0; i < out->numel; i++)
		out->v[i] = reduction_identity(op, out->dtype);
	for (int64_t i = 0; i < in->numel; i++) {
		struct value v = in->v[i];

		at = 0;
		for (int d = 0; d < in->ndim; d++)
			if (!(dims >> d & 1))
				at = at * in->sizes[d] + index[d];
		if (op == SUM || op == PROD)
			v = plain_round(v, in->dtype,
					plain_is_integral(out->dtype) ? TENSOR_I64 :
					plain_is_complex(out->dtype)  ? TENSOR_C128 :
									TENSOR_F64);
		out->v[at] = (op == AMAX || op == AMIN) && !begun[at] ?
				     v :
				     reduce_step(op, out->v[at], v, out->dtype);
		begun[at] = true;
		plain_next(in, index);
	}
	for (int64_t i = 0; i < out->numel; i++)
		out->v[i] = plain_round(out->v[i], out->dtype, out->dtype);
	if (plain_is_integral(out->dtype))
		return;
	out->slack = op == SUM ? 4 : op == PROD ? 4 + (double)in->numel : 0;
	/* A long product may overflow or underflow in one order of operands and not in another. */
	if (op == PROD && in->numel > 40)
		out->slack = INFINITY;
	out->size = op == SUM ? plain_size(in) : 0;
}

static void make_reduction(struct call *c)
{
	int op = c->row->detail, n;
	int64_t sizes[TENSOR_MAX_DIMS], dims[TENSOR_MAX_DIMS];
	enum tensor_dtype d = any_dtype(), to;
	uint32_t mask = 0;
	bool keepdim = one_in(2), one = op == PROD || op == ANY || op == ALL;
	tensor *t;
	int ndims = 0;

	while (plain_is_complex(d) && (op == AMAX || op == AMIN))
		d = any_dtype();
	t = any_tensor(d);
	arg_tensor(c, t);
	n = c->in[0].ndim;
	if (one) {
		dims[ndims++] = any_dim(c, n);
		arg_int(c, dims[0]);
	} else {
		for (int k = 0; k < n; k++)
			if (one_in(2))
				dims[ndims++] = one_in(2) ? k : k - n;
		arg_ints(c, dims, ndims);
	}
	arg_bool(c, keepdim);
	for (int k = 0; k < ndims && !c->refuse; k++)
		mask |= n ? 1u << wrapped(dims[k], n) : 0;
	if (!ndims)
		mask = (1u << n) - 1;
	to = op == SUM || op == PROD ? (plain_is_integral(d) ? TENSOR_I64 : d) :
	     op == ANY || op == ALL  ? (d == TENSOR_U8 ? TENSOR_U8 : TENSOR_BOOL) :
				       d;
	if (c->refuse) {
		plain_make(&c->want[0], to, 0, NULL);
		return;
	}
	n = reduced_sizes(&c->in[0], mask, keepdim, sizes);
	plain_make(&c->want[0], to, n, sizes);
	/* max of no elements is an error. */
	for (int k = 0; k < c->in[0].ndim; k++)
		c->refuse |= (op == AMAX || op == AMIN) && mask >> k & 1 && !c->in[0].sizes[k];
	if (c->refuse)
		return;
	reduce_into(c, op, mask);
	if (op == AMAX || op == AMIN)
		c->want[0].slack = 1e-6;
}

#define UNARY(n, f)                                                                      \
	{                                                                                \
		.name = n, .make = make_unary, .detail = f, .inplace = true, .out = true \
	}
#define BINARY(n, f)                                                                    \
	{                                                                               \
		.name = n ".Tensor", .make = make_binary, .detail = f, .inplace = true, \
		.out = true                                                             \
	}
#define PLAIN(n, f)                                                      \
	{                                                                \
		.name = n, .make = make_binary, .detail = f, .out = true \
	}
const struct row pointwise_rows[] = {
	UNARY("neg", NEG),
	UNARY("abs", ABS),
	UNARY("relu", RELU),
	UNARY("floor", FLOOR),
	UNARY("ceil", CEIL),
	UNARY("trunc", TRUNC),
	UNARY("round", ROUND),
	UNARY("logical_not", LOGICAL_NOT),
	{ .name = "isnan", .make = make_unary, .detail = ISNAN },
	UNARY("sqrt", SQRT),
	UNARY("exp", EXP),
	UNARY("log", LOG),
	UNARY("sin", SIN),
	UNARY("cos", COS),
	UNARY("tanh", TANH),
	UNARY("sigmoid", SIGMOID),
	UNARY("expm1", EXPM1),
	UNARY("log1p", LOG1P),
	UNARY("atan", ATAN),
	UNARY("reciprocal", RECIPROCAL),
	BINARY("add", ADD),
	BINARY("sub", SUB),
	BINARY("mul", MUL),
	BINARY("div", DIV),
	BINARY("eq", EQ),
	BINARY("ne", NE),
	BINARY("lt", LT),
	BINARY("le", LE),
	BINARY("gt", GT),
	BINARY("ge", GE),
	BINARY("bitwise_and", AND),
	BINARY("bitwise_or", OR),
	BINARY("bitwise_xor", XOR),
	PLAIN("maximum", MAXIMUM),
	PLAIN("minimum", MINIMUM),
	PLAIN("atan2", ATAN2),
	PLAIN("logical_and", LOGICAL_AND),
	PLAIN("logical_or", LOGICAL_OR),
	PLAIN("logical_xor", LOGICAL_XOR),
	BINARY("xlogy", XLOGY),
	{ .name = "sum.dim_IntList", .make = make_reduction, .detail = SUM },
	{ .name = "amax", .make = make_reduction, .detail = AMAX, .out = true },
	{ .name = "amin", .make = make_reduction, .detail = AMIN, .out = true },
	{ .name = "any.dim", .make = make_reduction, .detail = ANY },
	{ .name = "all.dim", .make = make_reduction, .detail = ALL },
	{ .name = "prod.dim_int", .make = make_reduction, .detail = PROD },
};
const int pointwise_count = sizeof(pointwise_rows) / sizeof(*pointwise_rows);
