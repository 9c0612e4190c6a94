// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of views: zeros of the base's shape with the view's gradient in the viewed part. */
#include "autograd/formulas/formulas.h"

#include "iter/iter.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/pointwise.h"
#include "family/view.h"

/* Copy grad to `part`, a view of whole. Returns whole. */
static tensor *copy_to_part(tensor *whole, tensor *part, tensor *grad)
{
	return tensor_copy_(part, grad) ? whole : NULL;
}

tensor *select_backward(tensor *grad, tensor_ints sizes, int64_t dim, int64_t index)
{
	tensor *whole = formula_zeros_for(grad, sizes);

	return copy_to_part(whole, tensor_select(whole, dim, index), grad);
}

tensor *slice_backward(tensor *grad, tensor_ints sizes, int64_t dim, int64_t start, int64_t end,
		       int64_t step)
{
	tensor *whole = formula_zeros_for(grad, sizes);

	return copy_to_part(whole, tensor_slice(whole, dim, start, end, step), grad);
}

tensor *diagonal_backward(tensor *grad, tensor_ints sizes, int64_t offset, int64_t dim1,
			  int64_t dim2)
{
	tensor *whole = formula_zeros_for(grad, sizes);

	return copy_to_part(whole, tensor_diagonal(whole, offset, dim1, dim2), grad);
}

tensor *permute_backward(tensor *grad, tensor_ints dims)
{
	int64_t back[TENSOR_MAX_DIMS];

	for (int64_t i = 0; i < dims.len; i++)
		back[dims.data[i] < 0 ? dims.data[i] + dims.len : dims.data[i]] = i;
	return tensor_permute(grad, (tensor_ints){ back, dims.len });
}

/* ---- as_strided ---- */

struct extent {
	int64_t low, high; /* smallest and largest element offset; low > high for none */
};

static struct extent extent_of(tensor_ints sizes, tensor_ints strides, int64_t offset)
{
	struct extent e = { offset, offset };

	for (int64_t i = 0; i < sizes.len; i++) {
		int64_t reach = (sizes.data[i] - 1) * strides.data[i];

		if (!sizes.data[i])
			return (struct extent){ 0, -1 };
		if (reach < 0)
			e.low += reach;
		else
			e.high += reach;
	}
	return e;
}

/* True if several positions of the view share an element. */
static bool shares_elements(tensor_ints sizes, tensor_ints strides)
{
	struct tensor t = { .ndim = sizes.len, .numel = 1 };

	for (int64_t i = 0; i < sizes.len; i++) {
		t.sizes[i] = sizes.data[i];
		t.strides[i] = strides.data[i];
		t.numel *= sizes.data[i];
	}
	return tensor_overlaps_itself(&t);
}

/* Element offset of every position relative to `low`, as flat i64. */
static tensor *element_offsets(tensor_ints sizes, tensor_ints strides, int64_t first,
			       tensor_device device)
{
	tensor *t = tensor_full(TENSOR_INTS(1), tensor_scalar_int(first),
				TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = device));

	for (int64_t i = 0; i < sizes.len; i++) {
		tensor *step = tensor_arange(tensor_scalar_int(sizes.data[i]),
					     TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = device));

		step = tensor_mul_scalar(step, tensor_scalar_int(strides.data[i]));
		t = tensor_reshape(tensor_add(tensor_unsqueeze(t, 1), step), TENSOR_INTS(-1));
	}
	return t;
}

/* Compute the gradient of the memory range of self and the view, then read it with self's strides.
 * Where positions of the view share an element, their gradients add up. */
tensor *as_strided_backward(tensor *grad, tensor_ints self_sizes, tensor_ints self_strides,
			    int64_t self_offset, tensor_ints sizes, tensor_ints strides,
			    int64_t offset)
{
	int64_t from = offset == TENSOR_NONE ? self_offset : offset, n;
	struct extent a = extent_of(self_sizes, self_strides, self_offset);
	struct extent b = extent_of(sizes, strides, from);
	tensor *memory;

	if (a.low > a.high || b.low > b.high)
		return formula_zeros_for(grad, self_sizes);
	if (shares_elements(self_sizes, self_strides))
		return tensor_fail_null(EOPNOTSUPP, "as_strided: no derivative for a tensor whose "
						    "elements share memory");
	a.low = a.low < b.low ? a.low : b.low;
	a.high = a.high > b.high ? a.high : b.high;
	n = a.high - a.low + 1;
	memory = formula_zeros_for(grad, TENSOR_INTS(n));
	if (shares_elements(sizes, strides))
		memory = tensor_index_add(
			memory, 0, element_offsets(sizes, strides, from - a.low, grad->device),
			tensor_reshape(grad, TENSOR_INTS(-1)));
	else
		memory = copy_to_part(
			memory, tensor_as_strided(memory, sizes, strides, from - a.low), grad);
	return tensor_as_strided(memory, self_sizes, self_strides, self_offset - a.low);
}
