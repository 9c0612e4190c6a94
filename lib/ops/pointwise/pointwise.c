// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of elementwise operators: one to three tensors, or a tensor and a scalar.
 * Operands are converted to their promoted dtype, in which the kernel computes. */
#include "ops/pointwise/pointwise.h"

#include "family/copy.h"
#include "family/pointwise.h"

/* An operand: a tensor, or a scalar of the common dtype (f32 for a reduced float) in `value`. */
struct operand {
	const tensor *t;
	tensor *owned; /* a converted tensor, released at the end */
	_Alignas(16) char value[16];
};

/* CPU kernels convert operands themselves; other backends need the common dtype. A 0-d CPU tensor
 * becomes a scalar, which may be combined with tensors of any device. */
static int operand_init(struct operand *o, tensor *t, enum tensor_dtype dtype, const tensor *out)
{
	tensor_scalar s;

	o->owned = NULL;
	o->t = t;
	if (likely(t->dtype == dtype && t->device.type == out->device.type))
		return 0;
	if (t->ndim == 0 && t->device.type == TENSOR_CPU &&
	    element_load(t->data, t->dtype, &s) == 0 &&
	    tensor_element_store(o->value, dtype_wide(dtype), s) == 0) {
		o->t = NULL;
		return 0;
	}
	if (out->device.type == TENSOR_CPU)
		return 0;
	o->t = o->owned = operand_cast(t, dtype);
	return o->t ? 0 : error_code();
}

static int operand_init_scalar(const struct tensor_op *op, struct operand *o, tensor_scalar s,
			       enum tensor_dtype dtype)
{
	int err = tensor_element_store(o->value, dtype_wide(dtype), s);

	o->t = NULL;
	o->owned = NULL;
	if (likely(!err))
		return 0;
	return err == -EOVERFLOW ? scalar_overflow(op->schema.name, "the scalar", s, dtype) :
				   tensor_kernel_no_dtype(op->schema.name, dtype, "cpu");
}

/* Remove 0-d CPU tensors from the inputs if other inputs are on another kind of device: they are
 * scalars, and must not choose the result's device. */
static void drop_scalars(const tensor **inputs, int n)
{
	const tensor *first = NULL;

	for (int i = 0; i < n; i++)
		if (inputs[i]->device.type != TENSOR_CPU)
			first = inputs[i];
	for (int i = 0; first && i < n; i++)
		if (inputs[i]->device.type == TENSOR_CPU && !inputs[i]->ndim)
			inputs[i] = NULL;
	if (!inputs[0])
		inputs[0] = first;
}

/* EINVAL for a scalar with an imaginary part where dtype is real. */
static int check_real_scalar(const struct tensor_op *op, tensor_scalar s, enum tensor_dtype dtype)
{
	if (likely(s.kind != TENSOR_SCALAR_COMPLEX) || s.imag == 0 || dtype_is_complex(dtype))
		return 0;
	return tensor_fail(EINVAL, "%s: a complex scalar cannot be used with dtype %s",
			   op->schema.name, tensor_dtype_name(dtype));
}

static int check_params(const struct tensor_op *op, const struct pointwise_params *params,
			enum tensor_dtype dtype)
{
	if (!params)
		return 0;
	return check_real_scalar(op, params->a, dtype) < 0 ||
			       check_real_scalar(op, params->b, dtype) < 0 ||
			       check_real_scalar(op, params->c, dtype) < 0 ?
		       error_code() :
		       0;
}

static int run_kernel(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		      tensor *out, struct operand *operands, int n, enum tensor_dtype dtype,
		      const struct pointwise_params *params)
{
	pointwise_kernel fn = (pointwise_kernel)op_kernel(op, kernels, out);
	const tensor *ops[ITER_OPERANDS] = { out };
	struct tensor_iter it;

	if (unlikely(!fn) || check_params(op, params, dtype) < 0)
		return error_code();
	for (int i = 0; i < n; i++) {
		ops[i + 1] = operands[i].t;
		if (!ops[i + 1])
			iter_scalar(&it, i + 1, operands[i].value);
	}
	it.dtype = dtype;
	iter_build(&it, ops, n + 1);
	return fn(&it, params);
}

int pointwise_unary(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		    tensor **out, tensor *self, const struct pointwise_params *params)
{
	enum tensor_dtype common = self->dtype, dtype = op_result_dtype(op, &common);
	const tensor *inputs[] = { self };
	struct operand a;
	struct op_output o;
	int err;

	if (output_begin(op, &o, *out, dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	err = operand_init(&a, self, common, o.t);
	if (!err)
		err = run_kernel(op, kernels, o.t, &a, 1, common, params);
	tensor_put(a.owned);
	return output_end(op, &o, out, err);
}

int op_unary(const struct tensor_op *op, tensor **out, tensor *self)
{
	return pointwise_unary(op, op->kernels, out, self, NULL);
}

/*
 * The operand self. In place on a device, a result that is computed apart begins as a copy of self, which the kernel reads: one
 * that refuses a value later than in the call then writes nothing, and self keeps its values.
 */
static int operand_init_self(struct operand *a, tensor *self, enum tensor_dtype dtype,
			     const struct op_output *o)
{
	if (likely(o->given != self || o->t == self || o->t->dtype != dtype) ||
	    self->device.type == TENSOR_CPU)
		return operand_init(a, self, dtype, o->t);
	a->owned = NULL;
	a->t = o->t;
	return operand_copy(o->t, self);
}

int pointwise_binary(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		     tensor **out, tensor *self, tensor *other,
		     const struct pointwise_params *params)
{
	enum tensor_dtype common = self->dtype, dtype;
	const tensor *inputs[] = { self, other };
	int64_t broadcast[TENSOR_MAX_DIMS];
	const int64_t *sizes = self->sizes;
	int ndim = self->ndim, err;
	struct operand a[2];
	struct op_output o;

	if (unlikely(common != other->dtype))
		common = tensor_result_type(self, other);
	dtype = op_result_dtype(op, &common);
	if (!sizes_equal(self, other)) {
		sizes = broadcast;
		ndim = iter_broadcast_sizes(op->schema.name, self, other, broadcast);
		if (ndim < 0)
			return error_code();
	}
	if (unlikely(self->device.type != other->device.type))
		drop_scalars(inputs, 2);
	if (output_begin(op, &o, *out, dtype, sizes, ndim, inputs, 2) < 0)
		return error_code();
	a[1].owned = NULL;
	err = operand_init_self(&a[0], self, common, &o);
	if (!err)
		err = operand_init(&a[1], other, common, o.t);
	if (!err)
		err = run_kernel(op, kernels, o.t, a, 2, common, params);
	tensor_put(a[0].owned);
	tensor_put(a[1].owned);
	return output_end(op, &o, out, err);
}

int op_binary(const struct tensor_op *op, tensor **out, tensor *self, tensor *other)
{
	return pointwise_binary(op, op->kernels, out, self, other, NULL);
}

int pointwise_binary_scalar(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
			    tensor **out, tensor *self, tensor_scalar other,
			    const struct pointwise_params *params)
{
	enum tensor_dtype common = promote_scalar(self, other),
			  dtype = op_result_dtype(op, &common);
	const tensor *inputs[] = { self };
	struct operand a[2];
	struct op_output o;
	int err;

	if (output_begin(op, &o, *out, dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	err = operand_init(&a[0], self, common, o.t);
	if (!err)
		err = operand_init_scalar(op, &a[1], other, common);
	if (!err)
		err = run_kernel(op, kernels, o.t, a, 2, common, params);
	tensor_put(a[0].owned);
	return output_end(op, &o, out, err);
}

int op_binary_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar other)
{
	return pointwise_binary_scalar(op, op->kernels, out, self, other, NULL);
}

/* ---- add and sub: self + alpha * other ---- */

static bool is_one(tensor_scalar alpha)
{
	return alpha.kind >= TENSOR_SCALAR_FLOAT ? alpha.d == 1 && alpha.imag == 0 : alpha.i == 1;
}

/* Subtraction is addition with -alpha. */
static tensor_scalar negated(tensor_scalar alpha)
{
	if (alpha.kind >= TENSOR_SCALAR_FLOAT) {
		alpha.d = -alpha.d;
		alpha.imag = -alpha.imag;
	} else {
		alpha.i = -alpha.i;
	}
	return alpha;
}

static int check_alpha(const struct tensor_op *op, enum tensor_dtype common, tensor_scalar alpha)
{
	if (alpha.kind >= TENSOR_SCALAR_FLOAT && dtype_is_integral(common))
		return tensor_fail(EINVAL, "%s: alpha must be an integer for dtype %s",
				   op->schema.name, tensor_dtype_name(common));
	return 0;
}

static int add_sub(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
		   tensor_scalar alpha, bool negate)
{
	const struct pointwise_params params = { .a = negate ? negated(alpha) : alpha };

	if (likely(is_one(alpha)))
		return pointwise_binary(op, op->kernels, out, self, other, NULL);
	if (check_alpha(op, tensor_result_type(self, other), alpha) < 0)
		return error_code();
	return pointwise_binary(op, &kernels_add_alpha, out, self, other, &params);
}

int op_add(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
	   tensor_scalar alpha)
{
	return add_sub(op, out, self, other, alpha, false);
}

int op_sub(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
	   tensor_scalar alpha)
{
	return add_sub(op, out, self, other, alpha, true);
}

static int add_sub_scalar(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_scalar other, tensor_scalar alpha, bool negate)
{
	const struct pointwise_params params = { .a = negate ? negated(alpha) : alpha };

	if (likely(is_one(alpha)))
		return pointwise_binary_scalar(op, op->kernels, out, self, other, NULL);
	if (check_alpha(op, promote_scalar(self, other), alpha) < 0)
		return error_code();
	return pointwise_binary_scalar(op, &kernels_add_alpha, out, self, other, &params);
}

int op_add_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar other,
		  tensor_scalar alpha)
{
	return add_sub_scalar(op, out, self, other, alpha, false);
}

int op_sub_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar other,
		  tensor_scalar alpha)
{
	return add_sub_scalar(op, out, self, other, alpha, true);
}

/* ---- any number of operands ---- */

enum tensor_dtype pointwise_common(const struct pointwise_arg *arg, int n)
{
	/* Promotion by category: tensors with dimensions, 0-d tensors, scalars. */
	struct tensor rank[3] = { { .ndim = 1 }, { .ndim = 0 }, { .ndim = 0 } };
	enum tensor_dtype dtype = TENSOR_DTYPE_NONE;

	for (int i = 0; i < n; i++) {
		struct tensor *r = &rank[!arg[i].t ? 2 : !arg[i].t->ndim];
		enum tensor_dtype d = arg[i].t ? arg[i].t->dtype : scalar_dtype(arg[i].s);

		if (!arg[i].dtype)
			r->dtype = r->dtype ? tensor_promote_types(r->dtype, d) : d;
		if (unlikely(!arg[i].dtype && !r->dtype))
			return TENSOR_DTYPE_NONE;
	}
	for (int i = 0; i < 3; i++) {
		if (!rank[i].dtype)
			continue;
		dtype = dtype ? promote_lower_rank(dtype, rank[i].dtype) : rank[i].dtype;
		if (unlikely(!dtype))
			break;
	}
	return dtype;
}

/* Compute the shape to which all operands broadcast. */
static int common_sizes(const struct tensor_op *op, const struct pointwise_arg *arg, int n,
			int64_t *sizes)
{
	struct tensor so_far = { .ndim = 0 };

	for (int i = 0; i < n; i++) {
		int ndim;

		if (!arg[i].t)
			continue;
		ndim = iter_broadcast_sizes(op->schema.name, &so_far, arg[i].t, sizes);
		if (ndim < 0)
			return -1;
		so_far.ndim = (uint8_t)ndim;
		memcpy(so_far.sizes, sizes, ndim * sizeof(*sizes));
	}
	return so_far.ndim;
}

int pointwise_nary(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		   tensor **out, const struct pointwise_arg *arg, int n, enum tensor_dtype common,
		   enum tensor_dtype result, const struct pointwise_params *params)
{
	const tensor *inputs[POINTWISE_INPUTS] = { NULL };
	struct operand a[POINTWISE_INPUTS];
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim, tensors = 0, err = 0;
	struct op_output o;

	for (int i = 0; i < n; i++) {
		a[i].owned = NULL;
		if (arg[i].t)
			inputs[tensors++] = arg[i].t;
	}
	ndim = common_sizes(op, arg, n, sizes);
	if (ndim < 0 || unlikely(!common))
		return error_code();
	drop_scalars(inputs, tensors);
	if (output_begin(op, &o, *out, result, sizes, ndim, inputs, tensors) < 0)
		return error_code();
	for (int i = 0; i < n && !err; i++) {
		enum tensor_dtype dtype = arg[i].dtype ? arg[i].dtype : common;

		if (arg[i].t) {
			err = i ? operand_init(&a[i], arg[i].t, dtype, o.t) :
				  operand_init_self(&a[i], arg[i].t, dtype, &o);
			continue;
		}
		err = check_real_scalar(op, arg[i].s, dtype);
		if (!err)
			err = operand_init_scalar(op, &a[i], arg[i].s, dtype);
	}
	if (!err)
		err = run_kernel(op, kernels, o.t, a, n, common, params);
	for (int i = 0; i < n; i++)
		tensor_put(a[i].owned);
	return output_end(op, &o, out, err);
}

int pointwise_by_rule(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		      tensor **out, const struct pointwise_arg *arg, int n,
		      const struct pointwise_params *params)
{
	enum tensor_dtype common = pointwise_common(arg, n), result = op_result_dtype(op, &common);

	return pointwise_nary(op, kernels, out, arg, n, common, result, params);
}

/* ---- fill ---- */

int op_fill(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar value)
{
	const struct pointwise_params params = { .a = value };
	const tensor *inputs[] = { self };
	struct op_output o;
	int err;

	if (unlikely(value.kind == TENSOR_SCALAR_UINT) && dtype_is_int(self->dtype) &&
	    self->dtype != TENSOR_U64)
		return scalar_overflow(op->schema.name, "the value", value, self->dtype);
	if (output_begin(op, &o, *out, self->dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	err = run_kernel(op, op->kernels, o.t, NULL, 0, self->dtype, &params);
	return output_end(op, &o, out, err);
}

int op_zero(const struct tensor_op *op, tensor **out, tensor *self)
{
	return op_fill(op, out, self, tensor_scalar_int(0));
}
