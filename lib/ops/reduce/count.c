// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Counts and membership: bincount, histc, isin; composed of index_add and searchsorted. */
#include "ops/op.h"

#include "kernels/abi/bincount.h"

#include "family/index_tensor.h"
#include "family/binary.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/ranges.h"
#include "family/reduce.h"
#include "family/search.h"
#include "family/shape.h"
#include "family/sort.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

#include <float.h>
#include <math.h>

/* Occurrences of each position, or the sum of its weights. */
static tensor *counted(tensor *positions, tensor *weights, int64_t n, enum tensor_dtype dtype)
{
	tensor_options o = TENSOR_OPTIONS(.dtype = dtype, .device = positions->device);
	tensor *each = weights ? tensor_to(weights, TENSOR_OPTIONS(.dtype = dtype)) :
				 tensor_ones((tensor_ints){ positions->sizes, positions->ndim }, o);

	return tensor_index_add_(tensor_zeros(TENSOR_INTS(n), o), 0, positions, each);
}

/* The kernel that counts self's elements without weights, or NULL. */
static bincount_kernel count_kernel(const tensor *self)
{
	return self->dtype == TENSOR_U64 || !self->contiguous || !self->numel ?
		       NULL :
		       (bincount_kernel)kernels_bincount.fn[backend_key(self)];
}

/* Set *least and *most to the range of self, which is i64 or has a kernel. */
static int bincount_range(bincount_kernel fn, tensor *self, int64_t *least, int64_t *most)
{
	if (fn)
		return fn(self, NULL, 0, least, most);
	return !self->numel || (tensor_item_int(tensor_min(self), least) == 0 &&
				tensor_item_int(tensor_max(self), most) == 0) ?
		       0 :
		       error_code();
}

static tensor *bincount(tensor *self, tensor *weights, int64_t minlength)
{
	bincount_kernel fn = weights ? NULL : count_kernel(self);
	enum tensor_dtype dtype = !weights		       ? TENSOR_I64 :
				  weights->dtype == TENSOR_F32 ? TENSOR_F32 :
								 TENSOR_F64;
	bool above = self->dtype == TENSOR_U64;
	int64_t least = 0, most = -1, n;
	tensor *counts;

	if (!fn)
		self = tensor_to(self, TENSOR_OPTIONS(.dtype = TENSOR_I64));
	if (!self || bincount_range(fn, self, &least, &most) < 0)
		return NULL;
	/* A u64 above INT64_MAX is negative in i64. */
	if (least < 0 && !above)
		return tensor_fail_null(EINVAL, "bincount: self must not be negative, got %lld",
					(long long)least);
	if (least < 0 || most > INT64_MAX / 16)
		return tensor_fail_null(
			EOVERFLOW,
			"bincount: %llu is too large: the result has an element for "
			"each number up to it",
			least < 0 ? (unsigned long long)least : (unsigned long long)most);
	n = most + 1 > minlength ? most + 1 : minlength;
	if (!fn)
		return counted(self, weights, n, dtype);
	counts = tensor_zeros(TENSOR_INTS(n),
			      TENSOR_OPTIONS(.dtype = dtype, .device = self->device));
	return counts && fn(self, counts->data, n, &least, &most) < 0 ? NULL : counts;
}

tensor *composite_bincount(tensor *self, tensor *weights, int64_t minlength)
{
	struct tensor_scope_guard guard;

	if (self->ndim != 1 || !dtype_is_integral(self->dtype) || self->dtype == TENSOR_BOOL)
		return tensor_fail_null(EINVAL,
					"bincount: self must be a vector of integers, got %s %s",
					tensor_dtype_name(self->dtype), SHAPE_STR(self));
	if (weights && (weights->ndim != 1 || weights->numel != self->numel ||
			dtype_is_complex(weights->dtype)))
		return tensor_fail_null(EINVAL,
					"bincount: weights must be real, %s like self, got %s %s",
					SHAPE_STR(self), tensor_dtype_name(weights->dtype),
					SHAPE_STR(weights));
	if (minlength < 0)
		return tensor_fail_null(EINVAL,
					"bincount: minlength must not be negative, got %lld",
					(long long)minlength);
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, bincount(self, weights, minlength));
}

/* ---- histc ---- */

static int range_of(tensor *self, double *min, double *max)
{
	if (*min == *max && self->numel &&
	    (tensor_item(tensor_min(self), min) < 0 || tensor_item(tensor_max(self), max) < 0))
		return error_code();
	if (*min == *max) {
		*min -= 1;
		*max += 1;
	}
	if (isfinite(*min) && isfinite(*max) && *min < *max)
		return 0;
	return tensor_fail(EINVAL, "histc: min must be below max and both finite, got %g and %g",
			   *min, *max);
}

static tensor *histc(tensor *self, int64_t bins, double min, double max)
{
	enum tensor_dtype dtype = self->dtype, wide = dtype == TENSOR_F64 ? dtype : TENSOR_F32;
	tensor *inside, *at;

	self = tensor_reshape(tensor_to(self, TENSOR_OPTIONS(.dtype = wide)), TENSOR_INTS(-1));
	if (!self || range_of(self, &min, &max) < 0)
		return NULL;
	inside = tensor_logical_and(tensor_ge_scalar(self, tensor_scalar_float(min)),
				    tensor_le_scalar(self, tensor_scalar_float(max)));
	at = tensor_masked_select(self, inside);
	/* The product of bins and the range may overflow: a power of two changes no bin. */
	if ((max / 4 - min / 4) * (double)bins > (wide == TENSOR_F64 ? DBL_MAX : FLT_MAX) / 4) {
		at = tensor_mul_scalar(at, tensor_scalar_float(0x1p-70));
		min *= 0x1p-70;
		max *= 0x1p-70;
	}
	at = tensor_sub_scalar(at, tensor_scalar_float(min));
	at = tensor_div_scalar(tensor_mul_scalar(at, tensor_scalar_int(bins)),
			       tensor_scalar_float(max - min));
	/* The last bin includes its upper edge. */
	at = tensor_clamp_max(tensor_to(at, TENSOR_OPTIONS(.dtype = TENSOR_I64)),
			      tensor_scalar_int(bins - 1));
	return at ? tensor_to(counted(at, NULL, bins, wide), TENSOR_OPTIONS(.dtype = dtype)) : NULL;
}

tensor *composite_histc(tensor *self, int64_t bins, tensor_scalar min, tensor_scalar max)
{
	struct tensor_scope_guard guard;

	if (!dtype_is_float(self->dtype))
		return tensor_kernel_no_dtype("histc", self->dtype, "cpu"), NULL;
	if (bins < 1)
		return tensor_fail_null(EINVAL, "histc: bins must be positive, got %lld",
					(long long)bins);
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, histc(self, bins, scalar_double(min), scalar_double(max)));
}

/* ---- isin ---- */

/* Membership by binary search: an element is present if the sorted others have it at its insertion
 * position. */
static tensor *isin(tensor *elements, tensor *test_elements, bool invert)
{
	enum tensor_dtype dtype = tensor_result_type(elements, test_elements);
	tensor *sorted, *at, *found, *unused;

	if (!dtype)
		return NULL;
	if (dtype == TENSOR_BOOL)
		dtype = TENSOR_U8;
	elements = tensor_to(elements, TENSOR_OPTIONS(.dtype = dtype));
	test_elements = tensor_reshape(tensor_to(test_elements, TENSOR_OPTIONS(.dtype = dtype)),
				       TENSOR_INTS(-1));
	if (!elements || !test_elements)
		return NULL;
	if (!test_elements->numel)
		return tensor_full((tensor_ints){ elements->sizes, elements->ndim },
				   tensor_scalar_bool(invert),
				   TENSOR_OPTIONS(.dtype = TENSOR_BOOL,
						  .device = elements->device));
	if (tensor_sort(test_elements, 0, false, &sorted, &unused) < 0)
		return NULL;
	at = tensor_clamp_max(tensor_searchsorted(sorted, elements),
			      tensor_scalar_int(sorted->numel - 1));
	at = at ? tensor_index_select(sorted, 0, tensor_reshape(at, TENSOR_INTS(-1))) : NULL;
	found = at ? tensor_eq(elements,
			       tensor_view(at, (tensor_ints){ elements->sizes, elements->ndim })) :
		     NULL;
	return found && invert ? tensor_logical_not(found) : found;
}

tensor *composite_isin_tensor_tensor(tensor *elements, tensor *test_elements, bool assume_unique,
				     bool invert)
{
	struct tensor_scope_guard guard;

	if (dtype_is_complex(elements->dtype) || dtype_is_complex(test_elements->dtype))
		return tensor_fail_null(EINVAL, "isin: complex numbers have no order");
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, isin(elements, test_elements, invert));
}

/* A scalar with integers is i64 or f32 by its own kind, otherwise it has like's dtype. */
static tensor *scalar_like(tensor_scalar s, const tensor *like)
{
	enum tensor_dtype dtype = dtype_is_float(like->dtype)	? like->dtype :
				  s.kind >= TENSOR_SCALAR_FLOAT ? TENSOR_F32 :
				  like->dtype == TENSOR_BOOL	? TENSOR_I64 :
								  like->dtype;

	return call_scalar_tensor(s, TENSOR_OPTIONS(.dtype = dtype, .device = like->device));
}

tensor *composite_isin_tensor_scalar(tensor *elements, tensor_scalar test_element,
				     bool assume_unique, bool invert)
{
	tensor *t = scalar_like(test_element, elements), *result;

	result = t ? composite_isin_tensor_tensor(elements, t, assume_unique, invert) : NULL;
	tensor_put(t);
	return result;
}

tensor *composite_isin_scalar_tensor(tensor_scalar element, tensor *test_elements,
				     bool assume_unique, bool invert)
{
	tensor *t = scalar_like(element, test_elements), *result;

	result = t ? composite_isin_tensor_tensor(t, test_elements, assume_unique, invert) : NULL;
	tensor_put(t);
	return result;
}
