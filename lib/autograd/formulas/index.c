// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of reads and writes through an index. */
#include "autograd/formulas/formulas.h"

#include "family/index_tensor.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/scatter.h"
#include "family/ternary.h"
#include "family/view.h"

/* ---- indexing, masks ---- */

tensor *index_put_self_backward(tensor *grad, tensor *at, tensor_ints dims, bool accumulate)
{
	if (accumulate)
		return grad;
	return tensor_index_put_at(grad, at, dims, formula_zeros_for(grad, TENSOR_SCALAR_SHAPE),
				   false);
}

/* grad's elements at the positions where mask is true, in the shape to which self was broadcast;
 * the engine sums it to self's shape. */
tensor *masked_select_backward(tensor *grad, tensor_ints sizes, tensor *mask)
{
	tensor *whole =
		tensor_add(formula_zeros_for(grad, sizes),
			   formula_zeros_for(grad, mask ? (tensor_ints){ mask->sizes, mask->ndim } :
							  TENSOR_SCALAR_SHAPE));

	return tensor_masked_scatter(whole, mask, grad);
}

/* Elements of grad at index along dim; index may be negative. If several elements were written to
 * one position, the last one was stored, but all get its gradient. */
tensor *index_copy_source_backward(tensor *grad, tensor_ints sizes, int64_t dim, tensor *index)
{
	return tensor_reshape(tensor_index_select(grad, dim, index), sizes);
}

tensor *index_fill_value_backward(tensor *grad, int64_t dim, tensor *index)
{
	tensor *filled = tensor_zeros_like(grad, TENSOR_OPTIONS(.dtype = TENSOR_BOOL));

	filled = filled ? tensor_index_fill(filled, dim, index, tensor_scalar_bool(true)) : NULL;
	return filled ? tensor_sum(where_backward(grad, filled, true)) : NULL;
}

/* ---- select_scatter and others ---- */

static tensor *cleared(tensor *whole, tensor *part)
{
	return part && tensor_zero_(part) ? whole : NULL;
}

tensor *select_scatter_backward(tensor *grad, int64_t dim, int64_t index)
{
	tensor *whole = tensor_clone(grad);

	return cleared(whole, tensor_select(whole, dim, index));
}

tensor *slice_scatter_backward(tensor *grad, int64_t dim, int64_t start, int64_t end, int64_t step)
{
	tensor *whole = tensor_clone(grad);

	return cleared(whole, tensor_slice(whole, dim, start, end, step));
}

tensor *diagonal_scatter_backward(tensor *grad, int64_t offset, int64_t dim1, int64_t dim2)
{
	tensor *whole = tensor_clone(grad);

	return cleared(whole, tensor_diagonal(whole, offset, dim1, dim2));
}

/* The result is contiguous, so the gradient is addressed as if it were. */
/* The gradient of the memory that the result of as_strided_scatter, with the geometry of self, and its part have. */
struct memory {
	tensor *of_self, *of_part; /* views of it */
};

/* Offset of the last element; strides are not negative. */
static int64_t last_element(tensor_ints sizes, tensor_ints strides, int64_t offset)
{
	for (int64_t i = 0; i < sizes.len; i++)
		offset += sizes.data[i] > 1 ? (sizes.data[i] - 1) * strides.data[i] : 0;
	return offset;
}

static bool lay_out_memory(struct memory *m, tensor *grad, struct formula_geometry self,
			   struct formula_geometry part)
{
	int64_t n, end, first;
	tensor *all;

	part.offset = part.offset == TENSOR_NONE ? self.offset : part.offset;
	first = part.offset < self.offset ? part.offset : self.offset;
	self.offset -= first;
	part.offset -= first;
	n = last_element(self.sizes, self.strides, self.offset);
	end = last_element(part.sizes, part.strides, part.offset);
	all = formula_zeros_for(grad, TENSOR_INTS((end > n ? end : n) + 1));
	m->of_self = tensor_as_strided(all, self.sizes, self.strides, self.offset);
	m->of_part = tensor_as_strided(all, part.sizes, part.strides, part.offset);
	return m->of_part && tensor_copy_(m->of_self, grad);
}

tensor *as_strided_scatter_backward(tensor *grad, struct formula_geometry self,
				    struct formula_geometry part)
{
	struct memory m;

	return lay_out_memory(&m, grad, self, part) ? cleared(m.of_self, m.of_part) : NULL;
}

tensor *as_strided_scatter_src_backward(tensor *grad, struct formula_geometry self,
					struct formula_geometry part)
{
	struct memory m;

	return lay_out_memory(&m, grad, self, part) ? m.of_part : NULL;
}

/* ---- scatter with a reduction ---- */

/* Operands of the formulas. */
struct reduced {
	tensor *grad, *self, *index, *src, *result;
	int64_t dim;
	const char *reduce;
	bool include_self;
};

static bool is(const struct reduced *r, const char *name)
{
	return !strcmp(r->reduce, name);
}

static tensor *filled_like(tensor *t, double value)
{
	return t ? tensor_full((tensor_ints){ t->sizes, t->ndim }, formula_scalar(value),
			       TENSOR_OPTIONS(.dtype = t->dtype, .device = t->device)) :
		   NULL;
}

static tensor *as_dtype_of(tensor *mask, tensor *like)
{
	return tensor_to(mask, TENSOR_OPTIONS(.dtype = like->dtype));
}

/* `value` where mask is true, else t. */
static tensor *replaced(tensor *t, tensor *mask, double value)
{
	return tensor_where(mask, filled_like(t, value), t);
}

/* t, with zeros at the positions written to unless include_self: self's values there are unused. */
static tensor *without_written(const struct reduced *r, tensor *t)
{
	return r->include_self ? t : tensor_scatter_value(t, r->dim, r->index, formula_scalar(0));
}

/* Number of elements averaged at each position. */
static tensor *counts(const struct reduced *r)
{
	tensor *n = tensor_scatter_add(filled_like(r->grad, r->include_self), r->dim, r->index,
				       filled_like(r->src, 1));

	return n ? replaced(n, tensor_eq_scalar(n, formula_scalar(0)), 1) : NULL;
}

/* Gradient of each largest or smallest element; equal ones share it. */
static tensor *shares(const struct reduced *r, tensor **self_is, tensor **src_is)
{
	*self_is = without_written(r, as_dtype_of(tensor_eq(r->self, r->result), r->grad));
	*src_is =
		as_dtype_of(tensor_eq(r->src, tensor_gather(r->result, r->dim, r->index)), r->grad);
	return tensor_div(r->grad, tensor_scatter_add(*self_is, r->dim, r->index, *src_is));
}

static tensor *prod_self(const struct reduced *r)
{
	tensor *self = replaced(r->self, tensor_eq_scalar(r->self, formula_scalar(0)), 1);
	tensor *product =
		tensor_scatter_reduce_opt(self, r->dim, r->index, r->src, "prod", r->include_self);

	return formula_div_conj(formula_mul_conj(r->grad, product), self);
}

/* A single zero at a position gets the product of the others; several zeros get 0. */
static tensor *prod_src(const struct reduced *r)
{
	tensor *zero = tensor_eq_scalar(r->src, formula_scalar(0));
	tensor *zeros = tensor_gather(tensor_scatter_add(filled_like(r->self, 0), r->dim, r->index,
							 as_dtype_of(zero, r->src)),
				      r->dim, r->index);
	tensor *alone = tensor_eq_scalar(tensor_where(zero, zeros, filled_like(zeros, 0)),
					 formula_scalar(1));
	tensor *others = tensor_scatter_reduce_opt(
		r->self, r->dim, r->index, replaced(r->src, alone, 1), "prod", r->include_self);
	tensor *of_zero = tensor_gather(formula_mul_conj(r->grad, others), r->dim, r->index);
	tensor *usual = formula_div_conj(tensor_gather(formula_mul_conj(r->grad, r->result), r->dim,
						       r->index),
					 replaced(r->src, zero, 1));

	return tensor_where(alone, of_zero, usual);
}

static tensor *self_backward(const struct reduced *r)
{
	tensor *self_is, *src_is, *g = r->grad;

	if (is(r, "prod"))
		g = prod_self(r);
	else if (is(r, "mean"))
		g = tensor_div(g, counts(r));
	else if (!is(r, "sum"))
		return (g = shares(r, &self_is, &src_is)) ? tensor_mul(self_is, g) : NULL;
	return g ? without_written(r, g) : NULL;
}

static tensor *src_backward(const struct reduced *r)
{
	tensor *self_is, *src_is, *g = r->grad;

	if (is(r, "prod"))
		return prod_src(r);
	if (is(r, "sum"))
		return tensor_gather(g, r->dim, r->index);
	if (is(r, "mean"))
		return tensor_gather(tensor_div(g, counts(r)), r->dim, r->index);
	g = shares(r, &self_is, &src_is);
	return g ? tensor_mul(src_is, tensor_gather(g, r->dim, r->index)) : NULL;
}

/* The part of src with index's sizes: src may be larger. */
static tensor *beside(tensor *src, const tensor *index)
{
	for (int i = 0; src && i < index->ndim; i++)
		if (src->sizes[i] != index->sizes[i])
			src = tensor_narrow(src, i, 0, index->sizes[i]);
	return src;
}

/* Zeros of src's sizes with g in that part. */
static tensor *placed_beside(tensor *g, tensor_ints sizes)
{
	tensor *whole, *part;

	if (!g || !memcmp(g->sizes, sizes.data, sizes.len * sizeof(int64_t)))
		return g;
	whole = formula_zeros_for(g, sizes);
	part = whole ? tensor_as_strided(whole, (tensor_ints){ g->sizes, g->ndim },
					 (tensor_ints){ whole->strides, g->ndim }, 0) :
		       NULL;
	return part && tensor_copy_(part, g) ? whole : NULL;
}

tensor *scatter_src_backward(tensor *grad, tensor_ints sizes, int64_t dim, tensor *index)
{
	return placed_beside(tensor_gather(grad, dim, index), sizes);
}

tensor *scatter_reduce_self_backward(tensor *grad, tensor *self, int64_t dim, tensor *index,
				     tensor *src, const char *reduce, bool include_self,
				     tensor *result)
{
	struct reduced r = { grad,   self, index,  beside(src, index),
			     result, dim,  reduce, include_self };

	return r.src ? self_backward(&r) : NULL;
}

tensor *scatter_reduce_src_backward(tensor *grad, tensor *self, int64_t dim, tensor *index,
				    tensor *src, const char *reduce, bool include_self,
				    tensor *result)
{
	struct reduced r = { grad,   self, index,  beside(src, index),
			     result, dim,  reduce, include_self };

	return r.src ? placed_beside(src_backward(&r), (tensor_ints){ src->sizes, src->ndim }) :
		       NULL;
}

/* A vector of positions expanded to source's shape, as scatter needs it. */
static tensor *spread_index(tensor *index, const tensor *source, int64_t dim)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	int d = (int)(dim < 0 ? dim + source->ndim : dim);

	if (!source->ndim)
		return tensor_reshape(index, TENSOR_SCALAR_SHAPE);
	for (int i = 0; i < source->ndim; i++)
		sizes[i] = i == d ? source->sizes[d] : 1;
	return tensor_expand(tensor_reshape(index, (tensor_ints){ sizes, source->ndim }),
			     (tensor_ints){ source->sizes, source->ndim });
}

/* The operands of index_reduce as those of scatter_reduce. */
static struct reduced of_vector(tensor *grad, tensor *self, int64_t dim, tensor *index,
				tensor *source, const char *reduce, bool include_self,
				tensor *result)
{
	return (struct reduced){ grad,	 self,	      spread_index(index, source, dim),
				 source, result,      dim,
				 reduce, include_self };
}

tensor *index_reduce_self_backward(tensor *grad, tensor *self, int64_t dim, tensor *index,
				   tensor *source, const char *reduce, bool include_self,
				   tensor *result)
{
	struct reduced r = of_vector(grad, self, dim, index, source, reduce, include_self, result);

	return r.index ? self_backward(&r) : NULL;
}

tensor *index_reduce_source_backward(tensor *grad, tensor *self, int64_t dim, tensor *index,
				     tensor *source, const char *reduce, bool include_self,
				     tensor *result)
{
	struct reduced r = of_vector(grad, self, dim, index, source, reduce, include_self, result);

	return r.index ? src_backward(&r) : NULL;
}
