// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Split a tensor into views along a dimension. All functions return the number of parts. */
#include "ops/op.h"

#include "family/shape.h"
#include "family/view.h"

#include <stdlib.h>

/* Consecutive parts of these lengths. */
struct cuts {
	const char *op;
	int d;
	int64_t n;
	const int64_t *lengths; /* NULL: all of length `each`, the last with the remainder */
	int64_t each;
};

static int cut(tensor *self, const struct cuts *c, tensor **results, int64_t room)
{
	int64_t from = 0, all = self->sizes[c->d];

	if (results_fit(c->op, c->n, room) < 0)
		return error_code();
	for (int64_t i = 0; i < c->n; i++) {
		int64_t length = c->lengths	      ? c->lengths[i] :
				 c->each < all - from ? c->each :
							all - from;

		results[i] = call_slice_Tensor(self, c->d, from, from + length, 1);
		if (!results[i]) {
			while (i > 0)
				tensor_put(results[--i]);
			return error_code();
		}
		from += length;
	}
	return (int)c->n;
}

/* The wrapped dimension, or -1 with the error set. */
static int dim_of(const char *op, const tensor *self, int64_t dim)
{
	if (!self->ndim)
		return tensor_fail(ERANGE, "%s: a 0-d tensor has no dimensions", op), -1;
	return wrap_dim(op, dim, self->ndim);
}

int composite_split(tensor *self, int64_t split_size, int64_t dim, tensor **results, int64_t room)
{
	int d = dim_of("split", self, dim);
	struct cuts c = { "split", d, 1, NULL, split_size };

	if (d < 0)
		return error_code();
	if (split_size < 0 || (!split_size && self->sizes[d]))
		return tensor_fail(EINVAL, "split: parts of %lld positions do not make size %lld",
				   (long long)split_size, (long long)self->sizes[d]);
	if (split_size)
		c.n = self->sizes[d] / split_size + (self->sizes[d] % split_size != 0);
	c.n = c.n ? c.n : 1;
	return cut(self, &c, results, room);
}

int composite_split_with_sizes(tensor *self, tensor_ints split_sizes, int64_t dim, tensor **results,
			       int64_t room)
{
	int d = dim_of("split_with_sizes", self, dim);
	struct cuts c = { "split_with_sizes", d, split_sizes.len, split_sizes.data, 0 };
	int64_t sum = 0;

	if (d < 0)
		return error_code();
	for (int64_t i = 0; i < split_sizes.len; i++) {
		if (split_sizes.data[i] < 0 ||
		    __builtin_add_overflow(sum, split_sizes.data[i], &sum))
			return tensor_fail(EINVAL,
					   "split_with_sizes: sizes must not be negative, "
					   "got %lld",
					   (long long)split_sizes.data[i]);
	}
	if (sum != self->sizes[d])
		return tensor_fail(EINVAL,
				   "split_with_sizes: the sizes add up to %lld, dimension "
				   "%d has size %lld",
				   (long long)sum, d, (long long)self->sizes[d]);
	return cut(self, &c, results, room);
}

int composite_split_sizes(tensor *self, tensor_ints split_size, int64_t dim, tensor **results,
			  int64_t room)
{
	return composite_split_with_sizes(self, split_size, dim, results, room);
}

int composite_chunk(tensor *self, int64_t chunks, int64_t dim, tensor **results, int64_t room)
{
	int d = dim_of("chunk", self, dim);
	struct cuts c = { "chunk", d, chunks, NULL, 0 };

	if (d < 0)
		return error_code();
	if (chunks < 1)
		return tensor_fail(EINVAL, "chunk: at least 1 chunk, got %lld", (long long)chunks);
	c.each = (self->sizes[d] + chunks - 1) / chunks;
	if (c.each)
		c.n = (self->sizes[d] + c.each - 1) / c.each;
	return cut(self, &c, results, room);
}

int composite_unbind(tensor *self, int64_t dim, tensor **results, int64_t room)
{
	int d = dim_of("unbind", self, dim);

	if (d < 0 || results_fit("unbind", self->sizes[d], room) < 0)
		return error_code();
	for (int64_t i = 0; i < self->sizes[d]; i++) {
		results[i] = call_select_int(self, d, i);
		if (results[i])
			continue;
		while (i > 0)
			tensor_put(results[--i]);
		return error_code();
	}
	return (int)self->sizes[d];
}

/* ---- tensor_split: into equal sections, or at positions ---- */

static int split_even(const char *op, tensor *self, int64_t sections, int64_t dim, tensor **results,
		      int64_t room)
{
	int d = dim_of(op, self, dim);
	int64_t from = 0, each, longer;

	if (d < 0)
		return error_code();
	if (sections < 1)
		return tensor_fail(EINVAL, "%s: at least 1 section, got %lld", op,
				   (long long)sections);
	if (results_fit(op, sections, room) < 0)
		return error_code();
	each = self->sizes[d] / sections;
	longer = self->sizes[d] % sections;
	for (int64_t i = 0; i < sections; i++) {
		int64_t length = each + (i < longer);

		results[i] = call_slice_Tensor(self, d, from, from + length, 1);
		if (!results[i]) {
			while (i > 0)
				tensor_put(results[--i]);
			return error_code();
		}
		from += length;
	}
	return (int)sections;
}

static int split_at(const char *op, tensor *self, tensor_ints at, int64_t dim, tensor **results,
		    int64_t room)
{
	int d = dim_of(op, self, dim);
	int64_t from = 0;

	if (d < 0 || results_fit(op, at.len + 1, room) < 0)
		return error_code();
	for (int64_t i = 0; i <= at.len; i++) {
		int64_t to = i < at.len ? at.data[i] : self->sizes[d];

		results[i] = call_slice_Tensor(self, d, from, to, 1);
		if (!results[i]) {
			while (i > 0)
				tensor_put(results[--i]);
			return error_code();
		}
		from = to;
	}
	return (int)at.len + 1;
}

int composite_tensor_split(tensor *self, int64_t sections, int64_t dim, tensor **results,
			   int64_t room)
{
	return split_even("tensor_split", self, sections, dim, results, room);
}

int composite_tensor_split_at(tensor *self, tensor_ints indices, int64_t dim, tensor **results,
			      int64_t room)
{
	return split_at("tensor_split", self, indices, dim, results, room);
}

int composite_tensor_split_tensor(tensor *self, tensor *at, int64_t dim, tensor **results,
				  int64_t room)
{
	int64_t *positions;
	int n;

	if (at->ext || at->dtype != TENSOR_I64 || at->ndim > 1)
		return tensor_fail(
			EINVAL,
			"tensor_split: the positions must be i64 with at most one dimension, "
			"got %s %s",
			tensor_dtype_name(at->dtype), SHAPE_STR(at));
	if (at->ndim && results_fit("tensor_split", at->numel + 1, room) < 0)
		return error_code();
	/* A copy: another process may change the positions meanwhile, and a device may have them. */
	positions = malloc((size_t)(at->numel + 1) * sizeof(*positions));
	if (!positions)
		return tensor_fail(ENOMEM, "tensor_split: no memory");
	n = tensor_copy_to(at, positions, (size_t)at->numel * sizeof(*positions));
	if (!n)
		n = at->ndim ? split_at("tensor_split", self, (tensor_ints){ positions, at->numel },
					dim, results, room) :
			       split_even("tensor_split", self, *positions, dim, results, room);
	free(positions);
	return n;
}

/* hsplit, vsplit and dsplit: a fixed dimension, which the sections must divide evenly. */
static int named(const char *op, tensor *self, int least, int dim, int64_t sections,
		 const tensor_ints *at, tensor **results, int64_t room)
{
	if (self->ndim < least)
		return tensor_fail(EINVAL, "%s: at least %d dimensions, got shape %s", op, least,
				   SHAPE_STR(self));
	if (at)
		return split_at(op, self, *at, dim, results, room);
	if (sections < 1 || self->sizes[dim] % sections)
		return tensor_fail(EINVAL,
				   "%s: %lld sections do not divide dimension %d of size "
				   "%lld",
				   op, (long long)sections, dim, (long long)self->sizes[dim]);
	return split_even(op, self, sections, dim, results, room);
}

int composite_hsplit(tensor *self, int64_t sections, tensor **results, int64_t room)
{
	return named("hsplit", self, 1, self->ndim > 1, sections, NULL, results, room);
}

int composite_hsplit_at(tensor *self, tensor_ints indices, tensor **results, int64_t room)
{
	return named("hsplit", self, 1, self->ndim > 1, 0, &indices, results, room);
}

int composite_vsplit(tensor *self, int64_t sections, tensor **results, int64_t room)
{
	return named("vsplit", self, 2, 0, sections, NULL, results, room);
}

int composite_vsplit_at(tensor *self, tensor_ints indices, tensor **results, int64_t room)
{
	return named("vsplit", self, 2, 0, 0, &indices, results, room);
}

int composite_dsplit(tensor *self, int64_t sections, tensor **results, int64_t room)
{
	return named("dsplit", self, 3, 2, sections, NULL, results, room);
}

int composite_dsplit_at(tensor *self, tensor_ints indices, tensor **results, int64_t room)
{
	return named("dsplit", self, 3, 2, 0, &indices, results, room);
}
