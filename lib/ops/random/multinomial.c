// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* multinomial: rows of weights to rows of sampled positions. */
#include "ops/random/random.h"

#include "family/random.h"
#include "family/view.h"

static int check(const struct tensor_op *op, const tensor *self, int64_t k, bool replacement)
{
	const char *name = op->schema.name;
	int64_t n = self->ndim ? self->sizes[self->ndim - 1] : 0;

	if (self->ndim != 1 && self->ndim != 2)
		return tensor_fail(EINVAL, "%s: self must have shape [n] or [rows, n], got %s",
				   name, SHAPE_STR(self));
	if (!dtype_is_float(self->dtype))
		return tensor_kernel_no_dtype(name, self->dtype, "cpu");
	if (k <= 0)
		return tensor_fail(EINVAL, "%s: num_samples must be above 0, got %lld", name,
				   (long long)k);
	if (!replacement && k > n)
		return tensor_fail(EINVAL,
				   "%s: num_samples must be at most the %lld weights without "
				   "replacement, got %lld",
				   name, (long long)n, (long long)k);
	if (n > (int64_t)1 << 24)
		return tensor_fail(EINVAL, "%s: at most 2^24 weights in a row, got %lld", name,
				   (long long)n);
	return 0;
}

/* self as contiguous rows of f64. Owned. */
static tensor *rows_of(const tensor *self)
{
	int64_t sizes[2] = { self->ndim == 2 ? self->sizes[0] : 1, self->sizes[self->ndim - 1] };
	tensor *t = tensor_new(self->device, TENSOR_F64, sizes, 2), *same;

	same = t ? tensor_new_view(t, sizes + 2 - self->ndim, t->strides + 2 - self->ndim,
				   self->ndim, 0) :
		   NULL;
	if (!same || operand_copy(same, self) < 0) {
		tensor_put(t);
		t = NULL;
	}
	tensor_put(same);
	return t;
}

static int draw(const struct tensor_op *op, tensor *positions, const tensor *weights,
		bool replacement, tensor_generator *generator)
{
	multinomial_kernel fn = (multinomial_kernel)op_kernel(op, op->kernels, weights);
	const tensor *like = replacement ? weights : positions;
	struct random_params p = { .wide = true };
	tensor *work;
	int err;

	work = fn ? tensor_new(weights->device, TENSOR_F64, like->sizes, 2) : NULL;
	if (!work)
		return error_code();
	err = random_take(&p, weights, generator, replacement ? positions->numel : weights->numel);
	if (!err)
		err = fn(positions, weights, work, replacement, &p);
	tensor_put(work);
	return err;
}

int op_multinomial(const struct tensor_op *op, tensor **out, tensor *self, int64_t num_samples,
		   bool replacement, tensor_generator *generator)
{
	int64_t sizes[2];
	tensor *weights, *positions;
	int err = -1;

	if (check(op, self, num_samples, replacement) < 0)
		return error_code();
	weights = rows_of(self);
	if (!weights)
		return error_code();
	sizes[0] = weights->sizes[0];
	sizes[1] = num_samples;
	positions = tensor_new(self->device, TENSOR_I64, sizes, 2);
	if (positions)
		err = draw(op, positions, weights, replacement, generator);
	if (!err)
		*out = call_view(positions, (tensor_ints){ sizes + 2 - self->ndim, self->ndim });
	tensor_put(weights);
	tensor_put(positions);
	return err < 0 || !*out ? error_code() : 0;
}
