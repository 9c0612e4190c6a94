// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of Fourier transforms between real and complex tensors. */
#include "autograd/formulas/formulas.h"

#include "family/copy.h"
#include "family/fft.h"
#include "family/cat.h"
#include "family/pointwise.h"
#include "family/view.h"

/* Omitted positions have gradient zero. Pad with zeros and apply the transform of the opposite
 * direction; the real part is the gradient. */
tensor *fft_r2c_backward(tensor *grad, tensor_ints sizes, tensor_ints dim, int64_t normalization,
			 bool onesided)
{
	int64_t missing[TENSOR_MAX_DIMS], last;
	enum tensor_dtype real;

	if (!grad || !dim.len)
		return grad;
	real = dtype_real(grad->dtype);
	last = dim.data[dim.len - 1];
	last += last < 0 ? sizes.len : 0;
	if (onesided && grad->sizes[last] < sizes.data[last]) {
		memcpy(missing, grad->sizes, sizes.len * sizeof(*missing));
		missing[last] = sizes.data[last] - grad->sizes[last];
		grad = tensor_cat(
			TENSOR_LIST(grad,
				    formula_zeros_for(grad, (tensor_ints){ missing, sizes.len })),
			last);
	}
	return tensor_to(tensor_fft_c2c(grad, dim, normalization, false),
			 TENSOR_OPTIONS(.dtype = real));
}

/* Positions that the symmetry uses twice count twice. */
tensor *fft_c2r_backward(tensor *grad, tensor_ints dim, int64_t normalization)
{
	tensor *g = tensor_fft_r2c(grad, dim, normalization, true), *first, *twice, *rest;
	int64_t last, n, half, doubled;

	if (!g)
		return NULL;
	last = dim.data[dim.len - 1];
	last += last < 0 ? grad->ndim : 0;
	n = grad->sizes[last];
	half = g->sizes[last];
	doubled = n - half;
	if (doubled <= 0)
		return g;
	first = tensor_narrow(g, last, 0, 1);
	twice = tensor_mul_scalar(tensor_narrow(g, last, 1, doubled), formula_scalar(2));
	rest = tensor_narrow(g, last, 1 + doubled, half - 1 - doubled);
	return tensor_cat(TENSOR_LIST(first, twice, rest), last);
}
