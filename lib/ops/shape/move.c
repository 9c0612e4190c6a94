// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Copies of parts of a tensor: flip, roll, repeat, constant_pad_nd. Views of the parts are structs
 * on the stack; the backend's copy and fill kernels move the data. */
#include "ops/op.h"
#include "ops/memory_format.h"

#include "iter/join.h"

#include "family/copy.h"
#include "family/move.h"
#include "family/pad.h"

/* Narrow t to n positions of dimension d, beginning at `from`. */
static void window(struct tensor *t, int d, int64_t from, int64_t n)
{
	t->offset += from * t->strides[d];
	t->data = (char *)t->data + from * t->strides[d] * (int64_t)itemsize(t);
	t->sizes[d] = n;
	t->numel = 1;
	for (int i = 0; i < t->ndim; i++)
		t->numel *= t->sizes[i];
	t->contiguous = false;
}

/* Set bit d for each dimension d in the list. A duplicate is an error. */
static int dims_mask(const struct tensor_op *op, const tensor *self, tensor_ints dims,
		     uint32_t *mask)
{
	*mask = 0;
	for (int64_t i = 0; i < dims.len; i++) {
		int d = wrap_dim(op->schema.name, dims.data[i], self->ndim);

		if (d < 0)
			return error_code();
		if (*mask >> d & 1)
			return tensor_fail(EINVAL, "%s: dimension %d occurs twice", op->schema.name,
					   d);
		*mask |= 1u << d;
	}
	return 0;
}

/* ---- flip: copy with negative strides ---- */

static int flip(const struct tensor_op *op, tensor **out, tensor *self, uint32_t mask)
{
	const tensor *inputs[] = { self };
	struct tensor from = *self;
	struct op_output o;

	if (output_begin_like(op, &o, *out, self->dtype, self, inputs, 1) < 0)
		return error_code();
	for (int d = 0; d < self->ndim && self->numel; d++) {
		if (!(mask >> d & 1))
			continue;
		from.data = (char *)from.data +
			    (from.sizes[d] - 1) * from.strides[d] * (int64_t)itemsize(&from);
		from.strides[d] = -from.strides[d];
		from.contiguous &= from.sizes[d] == 1;
	}
	return output_end(op, &o, out, operand_copy(o.t, &from));
}

int op_flip(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dims)
{
	uint32_t mask;

	if (dims_mask(op, self, dims, &mask) < 0)
		return error_code();
	return flip(op, out, self, mask);
}

/* ---- roll: up to two parts along each dimension ---- */

/* Copy self to out with dimensions d and following rolled by shift[]. */
static int roll_parts(const struct tensor *out, const struct tensor *self, const int64_t *shift,
		      int d)
{
	struct tensor to = *out, from = *self;
	int64_t n;
	int err;

	while (d < self->ndim && !shift[d])
		d++;
	if (d == self->ndim)
		return operand_copy(&to, &from);
	n = self->sizes[d] - shift[d];
	window(&to, d, shift[d], n);
	window(&from, d, 0, n);
	err = roll_parts(&to, &from, shift, d + 1);
	if (err)
		return err;
	to = *out;
	from = *self;
	window(&to, d, 0, shift[d]);
	window(&from, d, n, shift[d]);
	return roll_parts(&to, &from, shift, d + 1);
}

/* Roll dense tensors along one dimension as rows of two pieces; false if not applicable. */
static bool roll_joined(const struct tensor *out, const struct tensor *self, const int64_t *shift)
{
	int64_t rows = 1, inner = (int64_t)itemsize(self), step, first;
	struct join_piece piece[2];
	int d = 0;

	while (d < self->ndim && !shift[d])
		rows *= self->sizes[d++];
	for (int k = d + 1; k < self->ndim; k++) {
		if (shift[k])
			return false;
		inner *= self->sizes[k];
	}
	if (d >= self->ndim || !self->contiguous || !out->contiguous ||
	    self->device.type != TENSOR_CPU || out->dtype != self->dtype)
		return false;
	step = self->sizes[d] * inner;
	first = shift[d] * inner;
	piece[0] = (struct join_piece){ (const char *)self->data + step - first, first, step };
	piece[1] = (struct join_piece){ self->data, step - first, step };
	join_rows(out->data, rows, piece, 2);
	return true;
}

/* Check the arguments of roll and compute the shift of each dimension of self. */
static int roll_shifts(const struct tensor_op *op, const tensor *self, tensor_ints shifts,
		       tensor_ints dims, int64_t *shift)
{
	if (shifts.len < 1 || (dims.len > 0 && dims.len != shifts.len) ||
	    (dims.len <= 0 && shifts.len != 1))
		return tensor_fail(EINVAL,
				   "%s: shifts and dims must have the same number of "
				   "elements, got %lld and %lld",
				   op->schema.name, (long long)shifts.len,
				   (long long)(dims.len > 0 ? dims.len : 0));
	for (int64_t i = 0; i < dims.len; i++) {
		int d = wrap_dim(op->schema.name, dims.data[i], self->ndim);
		int64_t n;

		if (d < 0)
			return error_code();
		if (!self->ndim)
			return tensor_fail(EINVAL, "%s: dims has %lld, self has no dimensions",
					   op->schema.name, (long long)dims.data[i]);
		n = self->sizes[d];
		if (n)
			shift[d] = (int64_t)((uint64_t)shift[d] + (shifts.data[i] % n + n)) % n;
	}
	return 0;
}

/* Without dimensions, the flattened tensor is rolled: make `to` and `from` vectors on the output and
 * on a contiguous self, which is returned, owned. NULL with the error set. */
static tensor *roll_flattened(struct op_output *o, tensor *self, struct tensor *to,
			      struct tensor *from)
{
	tensor *flat = operand_contiguous(self);

	/* Only the caller's own output can be non-contiguous. */
	if (flat && !o->t->contiguous) {
		tensor *dense = tensor_new_like(o->t, o->t->sizes, o->t->ndim);

		if (!dense) {
			tensor_put(flat);
			return NULL;
		}
		if (o->t != o->given)
			tensor_put(o->t);
		o->t = dense;
	}
	if (!flat)
		return NULL;
	*to = *o->t;
	*from = *flat;
	from->ndim = to->ndim = 1;
	from->sizes[0] = to->sizes[0] = self->numel;
	from->strides[0] = to->strides[0] = 1;
	return flat;
}

int op_roll(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints shifts,
	    tensor_ints dims)
{
	const int64_t all = self->numel;
	int64_t shift[TENSOR_MAX_DIMS] = { 0 };
	const tensor *inputs[] = { self };
	tensor *flat = NULL;
	struct op_output o;
	struct tensor to, from;
	int err = 0;

	if (roll_shifts(op, self, shifts, dims, shift) < 0 ||
	    output_begin_channels(op, &o, *out, self->dtype, self->sizes, self->ndim,
				  dims.len > 0 && memory_channels_last(self), inputs, 1) < 0)
		return error_code();
	to = *o.t;
	from = *self;
	if (dims.len <= 0 && all) {
		flat = roll_flattened(&o, self, &to, &from);
		err = flat ? 0 : error_code();
		shift[0] = (shifts.data[0] % all + all) % all;
	}
	if (!err && all && !roll_joined(&to, &from, shift))
		err = roll_parts(&to, &from, shift, 0);
	tensor_put(flat);
	return output_end(op, &o, out, err);
}

/* ---- repeat: copy self once, then double the filled part of the output ---- */

static int repeat_dim(const struct tensor *out, int d, int64_t n)
{
	int64_t all = out->sizes[d], have = n;
	int err = 0;

	while (!err && have < all) {
		int64_t more = all - have < have ? all - have : have;
		struct tensor to = *out, from = *out;

		window(&to, d, have, more);
		window(&from, d, 0, more);
		err = operand_copy(&to, &from);
		have += more;
	}
	return err;
}

int op_repeat(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints repeats)
{
	int lead = (int)repeats.len - self->ndim, err = 0;
	int64_t sizes[TENSOR_MAX_DIMS], own[TENSOR_MAX_DIMS];
	const tensor *inputs[] = { self };
	struct op_output o;
	struct tensor to;

	if (lead < 0 || repeats.len > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: %d to %d repeats for shape %s, got %lld",
				   op->schema.name, self->ndim, TENSOR_MAX_DIMS, SHAPE_STR(self),
				   (long long)repeats.len);
	for (int i = 0; i < repeats.len; i++) {
		own[i] = i < lead ? 1 : self->sizes[i - lead];
		if (repeats.data[i] < 0)
			return tensor_fail(EINVAL, "%s: repeats must not be negative, got %lld",
					   op->schema.name, (long long)repeats.data[i]);
		if (__builtin_mul_overflow(own[i], repeats.data[i], &sizes[i]))
			return tensor_fail(EOVERFLOW, "%s: size %d overflows", op->schema.name, i);
	}
	if (output_begin_apart(op, &o, *out, self->dtype, sizes, (int)repeats.len, inputs, 1) < 0)
		return error_code();
	if (o.t->numel) {
		to = *o.t;
		for (int i = 0; i < repeats.len; i++)
			window(&to, i, 0, own[i]);
		err = operand_copy(&to, self);
		/* Begin with the last dimension, so that the copied parts are as contiguous as
		 * possible. */
		for (int i = (int)repeats.len - 1; !err && i >= 0; i--) {
			err = 0;
			if (repeats.data[i] == 1)
				continue;
			to = *o.t;
			for (int k = 0; k < i; k++)
				window(&to, k, 0, own[k]);
			err = repeat_dim(&to, i, own[i]);
		}
	}
	return output_end(op, &o, out, err);
}

/* ---- constant_pad_nd: fill the slabs around the copied window ---- */

static int fill_window(const struct tensor_op *op, struct tensor *part, tensor_scalar value)
{
	pointwise_kernel fn = (pointwise_kernel)op_kernel(op, &kernels_fill, part);
	const struct pointwise_params params = { .a = value };
	const tensor *ops[] = { part };
	struct tensor_iter it;

	if (!fn)
		return error_code();
	if (!part->numel)
		return 0;
	it.dtype = part->dtype;
	iter_build(&it, ops, 1);
	return fn(&it, &params);
}

/* Check `pad` and compute the output's sizes; value is the fill value. */
static int constant_pad_sizes(const struct tensor_op *op, const tensor *self, tensor_ints pad,
			      tensor_scalar value, int64_t *sizes)
{
	int64_t n = pad.len / 2;

	if (pad.len < 0 || pad.len % 2 || n > self->ndim)
		return tensor_fail(EINVAL,
				   "%s: pad must have two numbers for each of at most %d "
				   "dimensions, got %lld",
				   op->schema.name, self->ndim, (long long)pad.len);
	if (value.kind == TENSOR_SCALAR_COMPLEX && !dtype_is_complex(self->dtype))
		return tensor_fail(EINVAL, "%s: a complex value cannot be stored in %s",
				   op->schema.name, tensor_dtype_name(self->dtype));
	if (value.kind == TENSOR_SCALAR_UINT && dtype_is_int(self->dtype) &&
	    self->dtype != TENSOR_U64)
		return scalar_overflow(op->schema.name, "the value", value, self->dtype);
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	for (int64_t i = 0; i < n; i++) {
		int64_t left = pad.data[2 * i], right = pad.data[2 * i + 1];
		int64_t *size = &sizes[self->ndim - 1 - i];
		int64_t cut = *size, padded;
		bool fits = !__builtin_add_overflow(cut, left < 0 ? left : 0, &cut) &&
			    !__builtin_add_overflow(cut, right < 0 ? right : 0, &cut) && cut >= 0 &&
			    !__builtin_add_overflow(cut, left > 0 ? left : 0, &padded) &&
			    !__builtin_add_overflow(padded, right > 0 ? right : 0, &padded);

		if (!fits)
			return tensor_fail(EINVAL,
					   "%s: pads %lld and %lld leave nothing of dimension "
					   "%lld of %s, or overflow",
					   op->schema.name, (long long)left, (long long)right,
					   (long long)(self->ndim - 1 - i), SHAPE_STR(self));
		*size = padded;
	}
	return 0;
}

int op_constant_pad_nd(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints pad,
		       tensor_scalar value)
{
	int64_t sizes[TENSOR_MAX_DIMS], n = pad.len / 2;
	const tensor *inputs[] = { self };
	struct tensor to, from = *self;
	struct op_output o;
	int err = 0;

	if (constant_pad_sizes(op, self, pad, value, sizes) < 0 ||
	    output_begin_channels(op, &o, *out, self->dtype, sizes, self->ndim,
				  memory_channels_last(self), inputs, 1) < 0)
		return error_code();
	to = *o.t;
	for (int64_t i = n - 1; !err && i >= 0 && o.t->numel; i--) {
		int d = self->ndim - 1 - (int)i;
		int64_t left = pad.data[2 * i], right = pad.data[2 * i + 1];
		int64_t lost_left = left < 0 ? -left : 0, lost_right = right < 0 ? -right : 0;
		int64_t here = left > 0 ? left : 0, behind = right > 0 ? right : 0;
		struct tensor slab = to;

		window(&slab, d, 0, here);
		err = fill_window(op, &slab, value);
		slab = to;
		window(&slab, d, to.sizes[d] - behind, behind);
		if (!err)
			err = fill_window(op, &slab, value);
		window(&to, d, here, to.sizes[d] - here - behind);
		window(&from, d, lost_left, from.sizes[d] - lost_left - lost_right);
	}
	if (!err && o.t->numel && to.numel)
		err = operand_copy(&to, &from);
	return output_end(op, &o, out, err);
}
