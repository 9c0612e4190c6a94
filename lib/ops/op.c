// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Outputs, dtypes and casts for all operator functions. See op.h. */
#include "ops/op.h"

#include "ops/memory_format.h"

#include "storage/devices.h"

#include "family/copy.h"

#define DEVICE_STR(t) device_name((t)->device, (char[32]){ 0 }, 32)

int operand_check_device(const char *op, const tensor *a, const tensor *b)
{
	if (likely(a->device.type == b->device.type && a->device.index == b->device.index))
		return 0;
	return tensor_fail(EINVAL, "%s: expected all tensors on one device, got %s and %s", op,
			   DEVICE_STR(a), DEVICE_STR(b));
}

enum tensor_dtype op_result_dtype(const struct tensor_op *op, enum tensor_dtype *common)
{
	if (unlikely(!*common))
		return TENSOR_DTYPE_NONE;
	switch (op->rule) {
	case RULE_FLOAT:
		*common = dtype_to_float(*common);
		return *common;
	case RULE_BOOL:
		return TENSOR_BOOL;
	case RULE_SUM:
		return dtype_is_integral(*common) ? TENSOR_I64 : *common;
	case RULE_INDEX:
		return TENSOR_I64;
	default:
		return *common;
	}
}

/* Dtype categories are ordered: a float result cannot be stored in an integer tensor. */
static bool can_store(enum tensor_dtype from, enum tensor_dtype to)
{
	if (dtype_is_complex(from))
		return dtype_is_complex(to);
	if (dtype_is_float(from))
		return dtype_is_float(to) || dtype_is_complex(to);
	return from == TENSOR_BOOL || to != TENSOR_BOOL;
}

/* In place, the shape is fixed. An out= tensor is resized, unless it shares memory with an input.
 */
static int fit_shape(const struct tensor_op *op, tensor *given, const int64_t *sizes, int ndim,
		     const tensor *const *inputs, int ninputs)
{
	char text[SHAPE_TEXT];

	if (given->ndim == ndim && (!ndim || !memcmp(given->sizes, sizes, ndim * sizeof(*sizes))))
		return 0;
	if (op->variant == VARIANT_INPLACE)
		return tensor_fail(EINVAL, "%s: self has shape %s, the result has %s",
				   op->schema.name, SHAPE_STR(given),
				   format_sizes(sizes, ndim, text, sizeof(text)));
	for (int i = 0; i < ninputs && !given->base; i++)
		if (inputs[i] && tensor_overlap(given, inputs[i]) != OVERLAP_NONE)
			return tensor_fail(EINVAL,
					   "%s: out is also an input and has shape %s, the "
					   "result has %s",
					   op->schema.name, SHAPE_STR(given),
					   format_sizes(sizes, ndim, text, sizeof(text)));
	return tensor_resize(given, sizes, ndim);
}

static int begin_given(const struct tensor_op *op, struct op_output *o, tensor *given,
		       enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		       const tensor *const *inputs, int ninputs)
{
	bool apart = given->dtype != dtype;

	if (!can_store(dtype, given->dtype))
		return tensor_fail(EINVAL, "%s: a result of dtype %s cannot be stored in %s",
				   op->schema.name, tensor_dtype_name(dtype),
				   tensor_dtype_name(given->dtype));
	if (fit_shape(op, given, sizes, ndim, inputs, ninputs) < 0)
		return error_code();
	if (tensor_overlaps_itself(given))
		return tensor_fail(EINVAL,
				   "%s: elements of the output share memory (an expanded "
				   "tensor?); clone it first",
				   op->schema.name);
	for (int i = 0; i < ninputs; i++)
		apart |= inputs[i] && tensor_overlap(given, inputs[i]) == OVERLAP_PARTIAL;
	o->given = given;
	o->t = apart ? tensor_new(given->device, dtype, sizes, ndim) : given;
	return o->t ? 0 : error_code();
}

/* NULL for row-major order, or with the error set. */
static tensor *new_in_order_of_inputs(enum tensor_dtype dtype, const int64_t *sizes, int ndim,
				      const tensor *const *inputs, int ninputs)
{
	int64_t strides[TENSOR_MAX_DIMS];

	if (!memory_order_of(inputs, ninputs, sizes, ndim, strides))
		return NULL;
	return tensor_new_strided(TENSOR_OPTIONS(.dtype = dtype, .device = inputs[0]->device),
				  sizes, strides, ndim);
}

int output_begin(const struct tensor_op *op, struct op_output *o, tensor *given,
		 enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		 const tensor *const *inputs, int ninputs)
{
	const tensor *first = inputs[0];
	bool row_major = first->contiguous;

	if (unlikely(!dtype))
		return error_code();
	o->dtype = dtype;
	o->channels_last = false;
	for (int i = 1; i < ninputs; i++) {
		if (!inputs[i])
			continue;
		if (operand_check_device(op->schema.name, first, inputs[i]) < 0)
			return error_code();
		row_major &= inputs[i]->contiguous;
	}
	if (given) {
		if (operand_check_device(op->schema.name, first, given) < 0)
			return error_code();
		return begin_given(op, o, given, dtype, sizes, ndim, inputs, ninputs);
	}
	o->given = NULL;
	o->t = likely(row_major) ? NULL :
				   new_in_order_of_inputs(dtype, sizes, ndim, inputs, ninputs);
	if (!o->t)
		o->t = tensor_new(first->device, dtype, sizes, ndim);
	return o->t ? 0 : error_code();
}

/* Begin the in-place or out form of an operator whose output must not share memory with an input.
 */
static int begin_given_apart(const struct tensor_op *op, struct op_output *o, tensor *given,
			     enum tensor_dtype dtype, const int64_t *sizes, int ndim,
			     const tensor *const *inputs, int ninputs)
{
	const tensor *sharing = NULL;
	char text[SHAPE_TEXT];

	*o = (struct op_output){ .dtype = dtype };
	if (operand_check_device(op->schema.name, inputs[0], given) < 0)
		return error_code();
	for (int i = 0; i < ninputs; i++)
		if (tensor_overlap(given, inputs[i]) != OVERLAP_NONE)
			sharing = inputs[i];
	/* Resizing could free memory that the input needs. */
	if (sharing && (given->ndim != ndim || memcmp(given->sizes, sizes, ndim * sizeof(*sizes))))
		return tensor_fail(EINVAL,
				   "%s: the output %s shares memory with the input %s and "
				   "cannot change its shape to %s",
				   op->schema.name, SHAPE_STR(given), SHAPE_STR(sharing),
				   format_sizes(sizes, ndim, text, sizeof(text)));
	if (begin_given(op, o, given, dtype, sizes, ndim, NULL, 0) < 0)
		return error_code();
	if (sharing && o->t == given)
		o->t = tensor_new(given->device, dtype, sizes, ndim);
	return o->t ? 0 : error_code();
}

static inline int check_devices(const struct tensor_op *op, const tensor *const *inputs,
				int ninputs)
{
	for (int i = 1; i < ninputs; i++)
		if (operand_check_device(op->schema.name, inputs[0], inputs[i]) < 0)
			return error_code();
	return 0;
}

/* Begin with a new result t; NULL fails. */
static inline int begin_new(struct op_output *o, tensor *t, enum tensor_dtype dtype)
{
	o->t = t;
	o->given = NULL;
	o->dtype = dtype;
	o->channels_last = false;
	return likely(t) ? 0 : error_code();
}

int output_begin_apart(const struct tensor_op *op, struct op_output *o, tensor *given,
		       enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		       const tensor *const *inputs, int ninputs)
{
	if (unlikely(!dtype) || check_devices(op, inputs, ninputs) < 0)
		return error_code();
	if (given)
		return begin_given_apart(op, o, given, dtype, sizes, ndim, inputs, ninputs);
	return begin_new(o, tensor_new(inputs[0]->device, dtype, sizes, ndim), dtype);
}

int output_begin_like(const struct tensor_op *op, struct op_output *o, tensor *given,
		      enum tensor_dtype dtype, const tensor *self, const tensor *const *inputs,
		      int ninputs)
{
	const tensor_options options = TENSOR_OPTIONS(.dtype = dtype, .device = self->device);

	if (check_devices(op, inputs, ninputs) < 0)
		return error_code();
	if (given)
		return begin_given_apart(op, o, given, dtype, self->sizes, self->ndim, inputs,
					 ninputs);
	return begin_new(o, memory_new_like(self, options), dtype);
}

int output_begin_channels(const struct tensor_op *op, struct op_output *o, tensor *given,
			  enum tensor_dtype dtype, const int64_t *sizes, int ndim,
			  bool channels_last, const tensor *const *inputs, int ninputs)
{
	int64_t strides[TENSOR_MAX_DIMS];

	if (given || !channels_last)
		return output_begin_apart(op, o, given, dtype, sizes, ndim, inputs, ninputs);
	if (unlikely(!dtype) || check_devices(op, inputs, ninputs) < 0)
		return error_code();
	memory_channels_last_strides(sizes, ndim, strides);
	return begin_new(
		o,
		tensor_new_strided(TENSOR_OPTIONS(.dtype = dtype, .device = inputs[0]->device),
				   sizes, strides, ndim),
		dtype);
}

int output_begin_wide(const struct tensor_op *op, struct op_output *o, tensor *given,
		      enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		      const tensor *const *inputs, int ninputs)
{
	int err = output_begin(op, o, given, dtype_wide(dtype), sizes, ndim, inputs, ninputs);

	o->dtype = dtype;
	return err;
}

int output_begin_dense(const struct tensor_op *op, struct op_output *o, tensor *given,
		       enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		       const tensor *const *inputs, int ninputs)
{
	if (output_begin_apart(op, o, given, dtype_wide(dtype), sizes, ndim, inputs, ninputs) < 0)
		return error_code();
	o->dtype = dtype;
	/* Only the caller's tensor can be non-contiguous. */
	if (!o->t->contiguous)
		o->t = tensor_new(given->device, dtype_wide(dtype), sizes, ndim);
	return o->t ? 0 : error_code();
}

void output_keep_format(struct op_output *o, const tensor *self)
{
	o->channels_last = !o->given && memory_channels_last(self);
}

/* A copy of a batched tensor in row-major order; owned. */
static __attribute__((cold)) tensor *copy_of_samples(tensor *t, enum tensor_dtype dtype)
{
	return call__to_copy(t, TENSOR_OPTIONS(.dtype = dtype,
					       .memory_format = TENSOR_CONTIGUOUS_FORMAT));
}

tensor *operand_lay_out(tensor *t, enum tensor_dtype dtype, bool channels_last)
{
	const tensor_options options = TENSOR_OPTIONS(.dtype = dtype, .device = t->device);
	int64_t strides[TENSOR_MAX_DIMS];
	tensor *result;

	if (t->dtype == dtype && !channels_last)
		return tensor_get(t);
	if (unlikely(t->keys & BATCHED_BIT))
		return copy_of_samples(t, dtype);
	if (channels_last) {
		memory_channels_last_strides(t->sizes, t->ndim, strides);
		result = tensor_new_strided(options, t->sizes, strides, t->ndim);
	} else {
		result = memory_new_like(t, options);
	}
	if (result && operand_copy(result, t) < 0) {
		tensor_put(result);
		return NULL;
	}
	return result;
}

int output_end(const struct tensor_op *op, struct op_output *o, tensor **out, int err)
{
	if (o->t == o->given)
		return err;
	if (!o->given && !err && o->t->dtype == o->dtype && !o->channels_last) {
		*out = o->t;
		return 0;
	}
	if (!err && o->given)
		err = operand_copy(o->given, o->t);
	else if (!err)
		err = (*out = operand_lay_out(o->t, o->dtype, o->channels_last)) ? 0 : error_code();
	tensor_put(o->t);
	return err;
}

/* A copy where one of the tensors has no address. */
static __attribute__((cold)) int copy_batched(tensor *dst, const tensor *src)
{
	if (!(dst->keys & BATCHED_BIT))
		return tensor_fail(EINVAL,
				   "the values of a batched tensor %s are not known inside "
				   "tensor_vmap()",
				   SHAPE_STR(src));
	return call_copy_(dst, (tensor *)src) ? 0 : error_code();
}

int operand_copy(tensor *dst, const tensor *src)
{
	/* Between host and device, the device's kernel copies in both directions. */
	const tensor *at = dst->device.type == TENSOR_CPU ? src : dst;
	copy_kernel fn = (copy_kernel)op_kernel(&entry_copy_, &kernels_copy, at);
	const tensor *ops[] = { dst, src };
	struct tensor_iter it;

	if (unlikely(!fn))
		return (dst->keys | src->keys) & BATCHED_BIT ? copy_batched(dst, src) :
							       error_code();
	iter_build(&it, ops, 2);
	return fn(&it, dst->dtype, src->dtype);
}

/* New contiguous tensor of this dtype with self's values. */
static tensor *copy_as(tensor *self, enum tensor_dtype dtype)
{
	tensor *t;

	if (unlikely(self->keys & BATCHED_BIT))
		return copy_of_samples(self, dtype);
	t = tensor_new(self->device, dtype, self->sizes, self->ndim);
	if (t && operand_copy(t, self) < 0) {
		tensor_put(t);
		return NULL;
	}
	return t;
}

tensor *operand_cast(tensor *self, enum tensor_dtype dtype)
{
	return self->dtype == dtype ? tensor_get(self) : copy_as(self, dtype);
}

tensor *operand_contiguous(tensor *self)
{
	return self->contiguous ? tensor_get(self) : copy_as(self, self->dtype);
}

tensor *operand_on_host(tensor *self)
{
	tensor *t;

	if (self->device.type == TENSOR_CPU)
		return operand_contiguous(self);
	t = tensor_new(TENSOR_DEVICE_CPU, self->dtype, self->sizes, self->ndim);
	if (t && operand_copy(t, self) < 0) {
		tensor_put(t);
		return NULL;
	}
	return t;
}

tensor *operand_dense(tensor *self)
{
	enum tensor_dtype dtype = dtype_wide(self->dtype);

	return self->contiguous && self->dtype == dtype ? tensor_get(self) : copy_as(self, dtype);
}

int scalar_operand(const struct tensor_op *op, const char *name, tensor_scalar s,
		   enum tensor_dtype dtype, tensor_scalar *value)
{
	if (s.kind == TENSOR_SCALAR_COMPLEX && s.imag != 0 && !dtype_is_complex(dtype))
		return tensor_fail(EINVAL, "%s: %s must be real for dtype %s", op->schema.name,
				   name, tensor_dtype_name(dtype));
	if (dtype_is_integral(dtype) && s.kind >= TENSOR_SCALAR_FLOAT)
		return tensor_fail(EINVAL, "%s: %s must be an integer for dtype %s",
				   op->schema.name, name, tensor_dtype_name(dtype));
	if (dtype_is_int(dtype) && s.kind == TENSOR_SCALAR_UINT && dtype != TENSOR_U64)
		return scalar_overflow(op->schema.name, name, s, dtype);
	if (dtype_is_integral(dtype)) {
		*value = tensor_scalar_int(s.i);
		return 0;
	}
	*value = tensor_scalar_float(scalar_double(s));
	if (dtype_is_complex(dtype) && s.kind == TENSOR_SCALAR_COMPLEX) {
		value->kind = TENSOR_SCALAR_COMPLEX;
		value->imag = s.imag;
	}
	return 0;
}

int scalar_operand_truncated(const struct tensor_op *op, const char *name, tensor_scalar s,
			     enum tensor_dtype dtype, tensor_scalar *value)
{
	if (dtype_is_integral(dtype) && s.kind == TENSOR_SCALAR_FLOAT)
		s = tensor_scalar_int(scalar_int(s));
	return scalar_operand(op, name, s, dtype, value);
}

int scalar_factor(const struct tensor_op *op, const char *name, tensor_scalar s,
		  enum tensor_dtype dtype, double *value)
{
	const int64_t exact = (int64_t)1 << 53;

	if (scalar_operand(op, name, s, dtype, &s) < 0)
		return error_code();
	if (dtype_is_integral(dtype) && (s.i > exact || s.i < -exact))
		return tensor_fail(EINVAL, "%s: %s must be within 2^53 of zero, got %lld",
				   op->schema.name, name, (long long)s.i);
	*value = scalar_double(s);
	return 0;
}

int output_give_result(const struct tensor_op *op, tensor *out, tensor *result)
{
	const tensor *inputs[] = { result };
	struct op_output o;
	int err;

	if (result->ext) {
		err = tensor_fail(EINVAL, "%s: the result is a %s tensor, out is strided",
				  op->schema.name, tensor_layout_name(result->layout));
	} else {
		err = output_begin(op, &o, out, result->dtype, result->sizes, result->ndim, inputs,
				   1);
		if (!err)
			err = output_end(op, &o, &out, operand_copy(o.t, result));
	}
	tensor_put(result);
	return err;
}

int results_leave(struct tensor_scope_guard *guard, const struct op_result *results, int n, int err)
{
	for (int i = 0; i < n && !err; i++)
		err = results[i].made ? 0 : error_code();
	for (int i = 0; i < n; i++)
		*results[i].out = err ? NULL : tensor_get(results[i].made);
	scope_leave(guard);
	return err;
}
