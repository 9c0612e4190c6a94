// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Formulas of distances between rows. If the backward is recorded, it is composed of the differences of all pairs and can be
 * differentiated again; otherwise one kernel computes it without them.
 */
#include "autograd/formulas/formulas.h"

#include "family/distance.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/view.h"
#include "family/ranges.h"

/* _cdist_backward by way of the differences. */
static tensor *cdist_backward(tensor *grad, tensor *x1, tensor *x2, double p, tensor *cdist)
{
	tensor *apart;

	apart = tensor_sub(tensor_unsqueeze(x1, -2), tensor_unsqueeze(x2, -3));
	apart = vector_norm_backward(grad, apart, cdist, formula_scalar(p), TENSOR_INTS(-1), false);
	return tensor_sum_dim(apart, TENSOR_INTS(-2), false);
}

/* _pdist_backward by way of the differences. */
static tensor *pdist_backward(tensor *grad, tensor *self, double p, tensor *pdist)
{
	tensor *pairs, *first, *second, *apart;

	pairs = tensor_triu_indices(self->sizes[0], self->sizes[0], 1,
				    TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = self->device));
	first = tensor_select(pairs, 0, 0);
	second = tensor_select(pairs, 0, 1);
	apart = tensor_sub(tensor_index_select(self, 0, first),
			   tensor_index_select(self, 0, second));
	apart = vector_norm_backward(grad, apart, pdist, formula_scalar(p), TENSOR_INTS(-1), false);
	return tensor_index_add(tensor_index_add(formula_zeros_like(self), 0, first, apart), 0,
				second, tensor_neg(apart));
}

tensor *formula_cdist_backward(tensor *grad, tensor *x1, tensor *x2, double p, tensor *cdist)
{
	return formula_is_differentiated() ? cdist_backward(grad, x1, x2, p, cdist) :
					     tensor_cdist_backward(grad, x1, x2, p, cdist);
}

tensor *formula_pdist_backward(tensor *grad, tensor *self, double p, tensor *pdist)
{
	return formula_is_differentiated() ? pdist_backward(grad, self, p, pdist) :
					     tensor_pdist_backward(grad, self, p, pdist);
}

/* ---- second derivatives ---- */

static int cdist_composed(tensor *const *in, tensor **out, const void *p)
{
	out[0] = cdist_backward(in[0], in[1], in[2], *(const double *)p, in[3]);
	return out[0] ? 0 : -1;
}

tensor *cdist_double_backward(tensor *grad, tensor *grad_output, tensor *x1, tensor *x2, double p,
			      tensor *cdist, int part)
{
	return formula_vjp(cdist_composed, &p, TENSOR_LIST(grad_output, x1, x2, cdist), &grad, 1,
			   part);
}

static int pdist_composed(tensor *const *in, tensor **out, const void *p)
{
	out[0] = pdist_backward(in[0], in[1], *(const double *)p, in[2]);
	return out[0] ? 0 : -1;
}

tensor *pdist_double_backward(tensor *grad, tensor *grad_output, tensor *self, double p,
			      tensor *pdist, int part)
{
	return formula_vjp(pdist_composed, &p, TENSOR_LIST(grad_output, self, pdist), &grad, 1,
			   part);
}
