// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Elementwise operators, sums, softmax and batch_norm on blocked tensors. */
#include "ops/nn/blocked/blocked.h"

#include "family/activation.h"
#include "family/batch_norm.h"
#include "family/blocked.h"
#include "family/loss.h"
#include "family/pointwise.h"

/* ---- elementwise ---- */

/* The order of elements does not matter here: the strided kernels process the whole buffer,
 * including the zeros that pad the blocks. All functions but sigmoid map those zeros to zeros. */

/* All elements of a blocked tensor, padding included, as a vector on the same memory. Owned. */
static tensor *blocked_vector(const tensor *t)
{
	int64_t n = (int64_t)(t->storage->used / itemsize(t));

	return blocked_plain(t, &n, 1);
}

/* Uninitialized tensor with self's order of elements. */
static tensor *blocked_like(const tensor *self)
{
	return tensor_new_unstrided(TENSOR_OPTIONS(.dtype = self->dtype, .layout = TENSOR_BLOCKED),
				    self->sizes, self->ndim, self->storage->used,
				    extension_get(self));
}

/* The tensor for the result: self for the in-place form, else a new one. Owned. */
static tensor *begin_result(const struct tensor_op *op, tensor *self)
{
	if (blocked_need_form(op, true) < 0)
		return NULL;
	return op->variant == VARIANT_INPLACE ? tensor_get(self) : blocked_like(self);
}

/* Set *out and consume the reference to the result. The in-place form returns the caller's tensor.
 */
static int finish_result(const struct tensor_op *op, tensor **out, tensor *result, bool done)
{
	if (done && op->variant == VARIANT_FUNCTION)
		*out = result;
	else
		tensor_put(result);
	return done ? 0 : error_code();
}

/* Call the operator's out form on vectors: fn(to, from). */
static int unary(const struct tensor_op *op, tensor **out, tensor *self,
		 tensor *(*fn)(tensor *to, tensor *from))
{
	tensor *result = begin_result(op, self), *to = result ? blocked_vector(result) : NULL;
	tensor *from = to ? blocked_vector(self) : NULL;
	bool done = from && fn(to, from);

	tensor_put(to);
	tensor_put(from);
	return finish_result(op, out, result, done);
}

static tensor *gelu_exact(tensor *to, tensor *from)
{
	return call_gelu_out(to, from, "none");
}

static tensor *gelu_tanh(tensor *to, tensor *from)
{
	return call_gelu_out(to, from, "tanh");
}

int op_blocked_relu(const struct tensor_op *op, tensor **out, tensor *self)
{
	return unary(op, out, self, call_relu_out);
}

int op_blocked_tanh(const struct tensor_op *op, tensor **out, tensor *self)
{
	return unary(op, out, self, call_tanh_out);
}

int op_blocked_sigmoid(const struct tensor_op *op, tensor **out, tensor *self)
{
	int err = unary(op, out, self, call_sigmoid_out);

	if (err)
		return err;
	err = blocked_plugin(op->schema.name)->zero_padding(op->schema.name, *out);
	if (err && op->variant == VARIANT_FUNCTION) {
		tensor_put(*out);
		*out = NULL;
	}
	return err;
}

int op_blocked_gelu(const struct tensor_op *op, tensor **out, tensor *self, const char *approximate)
{
	bool exact = !strcmp(approximate, "none");

	if (!exact && strcmp(approximate, "tanh"))
		return tensor_fail(EINVAL, "%s: approximate must be none or tanh, got %s",
				   op->schema.name, QUOTED(approximate));
	return unary(op, out, self, exact ? gelu_exact : gelu_tanh);
}

/* ---- two operands ---- */

enum binary { ADD, SUB, MUL };

static tensor *to_vector(enum binary kind, tensor *to, tensor *a, tensor *b, tensor_scalar alpha)
{
	return kind == ADD ? call_add_out(to, a, b, alpha) :
	       kind == SUB ? call_sub_out(to, a, b, alpha) :
			     call_mul_out(to, a, b);
}

static tensor *new_strided(enum binary kind, tensor *a, tensor *b, tensor_scalar alpha)
{
	return kind == ADD ? call_add_Tensor(a, b, alpha) :
	       kind == SUB ? call_sub_Tensor(a, b, alpha) :
			     call_mul_Tensor(a, b);
}

static tensor *in_place(enum binary kind, tensor *a, tensor *b, tensor_scalar alpha)
{
	return kind == ADD ? call_add__Tensor(a, b, alpha) :
	       kind == SUB ? call_sub__Tensor(a, b, alpha) :
			     call_mul__Tensor(a, b);
}

/* Operands that broadcast or are strided: compute on dense copies. */
static int by_dense(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
		    enum binary kind, tensor_scalar alpha)
{
	const char *name = op->schema.name;
	tensor *a, *b, *sum = NULL;
	int err;

	if (op->variant == VARIANT_INPLACE && is_blocked(self))
		return tensor_fail(EINVAL,
				   "%s: other must be blocked like self, %s %s, got %s %s %s", name,
				   tensor_dtype_name(self->dtype), SHAPE_STR(self),
				   tensor_layout_name(other->layout),
				   tensor_dtype_name(other->dtype), SHAPE_STR(other));
	b = blocked_dense(name, other);
	if (op->variant == VARIANT_INPLACE) {
		err = b && in_place(kind, self, b, alpha) ? 0 : error_code();
		tensor_put(b);
		return err;
	}
	a = b ? blocked_dense(name, self) : NULL;
	if (a)
		sum = new_strided(kind, a, b, alpha);
	tensor_put(a);
	tensor_put(b);
	if (!sum || !is_blocked(self))
		return blocked_deliver(op, out, sum);
	*out = call_to_mkldnn(sum, TENSOR_DTYPE_NONE);
	tensor_put(sum);
	return *out ? 0 : error_code();
}

static int binary(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
		  enum binary kind, tensor_scalar alpha)
{
	const char *name = op->schema.name;
	tensor *ordered, *result, *to = NULL, *a = NULL, *b = NULL;
	bool done;

	if (blocked_need_form(op, true) < 0)
		return error_code();
	if (!is_blocked(self) || !is_blocked(other) || self->dtype != other->dtype ||
	    !sizes_equal(self, other))
		return by_dense(op, out, self, other, kind, alpha);
	ordered = blocked_plugin(name)->as_order(name, other, self);
	result = ordered ? begin_result(op, self) : NULL;
	if (result && (to = blocked_vector(result)) && (a = blocked_vector(self)))
		b = blocked_vector(ordered);
	done = b && to_vector(kind, to, a, b, alpha);
	tensor_put(ordered);
	tensor_put(to);
	tensor_put(a);
	tensor_put(b);
	return finish_result(op, out, result, done);
}

int op_blocked_add(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
		   tensor_scalar alpha)
{
	return binary(op, out, self, other, ADD, alpha);
}

int op_blocked_sub(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
		   tensor_scalar alpha)
{
	return binary(op, out, self, other, SUB, alpha);
}

int op_blocked_mul(const struct tensor_op *op, tensor **out, tensor *self, tensor *other)
{
	return binary(op, out, self, other, MUL, tensor_scalar_int(1));
}

/* ---- softmax, batch_norm ---- */

int op_blocked_softmax(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		       enum tensor_dtype dtype)
{
	const struct onednn_plugin *p = blocked_plugin(op->schema.name);
	int d = wrap_dim(op->schema.name, dim, self->ndim);

	if (!p || d < 0)
		return error_code();
	if (dtype && dtype != self->dtype)
		return tensor_fail(EOPNOTSUPP, "%s: a blocked tensor keeps its dtype %s, got %s",
				   op->schema.name, tensor_dtype_name(self->dtype),
				   tensor_dtype_name(dtype));
	return blocked_deliver(op, out, p->softmax(op->schema.name, self, d));
}

/* A vector of n channels as contiguous f32. Owned. NULL if t is NULL, or with *err and the error
 * set. */
static tensor *channels(const char *op, const char *name, tensor *t, int64_t n, int *err)
{
	tensor *dense, *v;

	if (!t || *err)
		return NULL;
	dense = blocked_dense(op, t);
	v = dense ? operand_cast(dense, TENSOR_F32) : NULL;
	tensor_put(dense);
	if (v && v->ndim == 1 && v->sizes[0] == n)
		return v;
	*err = v ? tensor_fail(EINVAL, "%s: %s must be [%lld], got %s", op, name, (long long)n,
			       SHAPE_STR(t)) :
		   error_code();
	tensor_put(v);
	return NULL;
}

static tensor *normalized(const char *op, tensor *input, tensor *const *vectors, double eps)
{
	static const char *const names[] = { "weight", "bias", "running_mean", "running_var" };
	tensor *v[4], *t = NULL;
	int err = 0;

	for (int i = 0; i < 4; i++)
		v[i] = channels(op, names[i], vectors[i], input->sizes[1], &err);
	if (!err)
		t = blocked_plugin(op)->batch_norm(op, input, v[0], v[1], v[2], v[3], (float)eps);
	for (int i = 0; i < 4; i++)
		tensor_put(v[i]);
	return t;
}

int op_blocked_batch_norm(const struct tensor_op *op, tensor **output, tensor **save_mean,
			  tensor **save_invstd, tensor *input, tensor *weight, tensor *bias,
			  tensor *running_mean, tensor *running_var, bool training, double momentum,
			  double eps)
{
	tensor *const vectors[] = { weight, bias, running_mean, running_var };
	const char *name = op->schema.name;
	const int64_t none = 0;

	if (!is_blocked(input))
		return tensor_fail(EINVAL, "%s: input must be blocked where another argument is",
				   name);
	if (training || !running_mean || !running_var)
		return tensor_fail(EOPNOTSUPP,
				   "%s: a blocked input needs running statistics and is not "
				   "supported in training",
				   name);
	if (input->ndim < 2)
		return tensor_fail(EINVAL, "%s: input must have at least 2 dimensions, got %s",
				   name, SHAPE_STR(input));
	*output = normalized(name, input, vectors, eps);
	*save_mean = *output ? tensor_new(input->device, TENSOR_F32, &none, 1) : NULL;
	*save_invstd = *save_mean ? tensor_new(input->device, TENSOR_F32, &none, 1) : NULL;
	if (*save_invstd)
		return 0;
	tensor_put(*output);
	tensor_put(*save_mean);
	*output = *save_mean = NULL;
	return error_code();
}
