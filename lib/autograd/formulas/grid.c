// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Formulas of grid_sampler_2d. If the backward is recorded, it is that of the interpolation as a sum of weighted taps,
 * which can be differentiated again; otherwise one kernel computes it.
 */
#include "autograd/formulas/formulas.h"

#include "kernels/abi/spatial.h"

#include "family/binary.h"
#include "family/compare.h"
#include "family/index.h"
#include "family/copy.h"
#include "family/pointwise.h"
#include "family/ranges.h"
#include "family/sample.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

/* Beyond all planes, and representable in every dtype of a position. */
#define OUTSIDE (-1e4)
#define K(v)	formula_scalar(v)

struct grid_args {
	int64_t mode, padding;
	bool align_corners;
};

static tensor *scale_add(tensor *t, double scale, double shift)
{
	return tensor_add_scalar(tensor_mul_scalar(t, K(scale)), K(shift));
}

/* The coordinate, -1 to 1, as a position in elements. */
static tensor *position(tensor *coordinate, int64_t size, bool align_corners)
{
	double n = (double)size;

	return align_corners ? scale_add(coordinate, (n - 1) / 2, (n - 1) / 2) :
			       scale_add(coordinate, n / 2, (n - 1) / 2);
}

/* x reflected at low and low + span. */
static tensor *reflect(tensor *x, double low, double span)
{
	tensor *extra, *odd;

	if (span == 0)
		return tensor_mul_scalar(x, K(0));
	x = tensor_abs(tensor_sub_scalar(x, K(low)));
	extra = tensor_remainder_scalar(x, K(span));
	odd = tensor_floor(tensor_mul_scalar(tensor_detach(x), K(1 / span)));
	odd = tensor_ne_scalar(tensor_remainder_scalar(odd, K(2)), K(0));
	return tensor_add_scalar(tensor_where(odd, scale_add(extra, -1, span), extra), K(low));
}

/* x in the padding mode; what is not finite is outside. */
static tensor *padded(tensor *x, int64_t size, const struct grid_args *a)
{
	double n = (double)size;

	if (a->padding == GRID_REFLECTION)
		x = a->align_corners ? reflect(x, 0, n - 1) : reflect(x, -0.5, n);
	if (a->padding != GRID_ZEROS)
		x = tensor_clamp(x, K(0), K(n - 1));
	return tensor_masked_fill(x, tensor_logical_not(tensor_isfinite(tensor_detach(x))),
				  K(OUTSIDE));
}

/* ---- taps ---- */

/* The images [n, c, y, x] as rows of elements, and the sizes of a plane. */
struct planes {
	tensor *rows;
	int64_t n, c, h, w, places;
};

/* The elements at whole positions [n, places]; 0 outside of the planes. */
static tensor *elements(const struct planes *p, tensor *y, tensor *x)
{
	const double last_y = (double)p->h - 1, last_x = (double)p->w - 1;
	tensor *in_y = tensor_clamp(y, K(0), K(last_y)), *in_x = tensor_clamp(x, K(0), K(last_x));
	tensor *inside = tensor_logical_and(tensor_eq(in_y, y), tensor_eq(in_x, x)), *at, *values;

	at = tensor_add(tensor_mul_scalar(in_y, K((double)p->w)), in_x);
	at = tensor_unsqueeze(tensor_to(at, TENSOR_OPTIONS(.dtype = TENSOR_I64)), 1);
	values = tensor_gather(p->rows, 2, tensor_expand(at, TENSOR_INTS(p->n, p->c, p->places)));
	return where_backward(values, tensor_unsqueeze(inside, 1), true);
}

/* The weight of tap i of four for the fraction t: cubic convolution with a = -0.75. */
static tensor *cubic_weight(tensor *t, int i)
{
	const double a = -0.75;
	/* the distance to the tap: t + 1, t, 1 - t, 2 - t */
	tensor *d = i < 2 ? tensor_add_scalar(t, K(1 - i)) : scale_add(t, -1, i - 1), *w;

	if (i == 1 || i == 2) {
		w = scale_add(d, a + 2, -(a + 3));
		return tensor_add_scalar(tensor_mul(tensor_mul(w, d), d), K(1));
	}
	w = scale_add(d, a, -5 * a);
	w = tensor_add_scalar(tensor_mul(w, d), K(8 * a));
	return tensor_add_scalar(tensor_mul(w, d), K(-4 * a));
}

/* The weight of tap i along one dimension. */
static tensor *weight(tensor *fraction, int64_t mode, int i)
{
	if (mode == GRID_BICUBIC)
		return cubic_weight(fraction, i);
	return i ? fraction : scale_add(fraction, -1, 1);
}

/* The sum over the taps around y and x. */
static tensor *sum_taps(const struct planes *p, tensor *y, tensor *x, const struct grid_args *a)
{
	bool cubic = a->mode == GRID_BICUBIC;
	tensor *y0 = tensor_floor(tensor_detach(y)), *x0 = tensor_floor(tensor_detach(x)),
	       *sum = NULL;
	tensor *fy = tensor_sub(y, y0), *fx = tensor_sub(x, x0);
	int taps = cubic ? 4 : 2, first = cubic ? -1 : 0;

	for (int i = 0; i < taps; i++) {
		for (int k = 0; k < taps; k++) {
			tensor *ty = tensor_add_scalar(y0, K(first + i)), *part;
			tensor *tx = tensor_add_scalar(x0, K(first + k));

			if (cubic) {
				ty = padded(ty, p->h, a);
				tx = padded(tx, p->w, a);
			}
			part = tensor_mul(weight(fy, a->mode, i), weight(fx, a->mode, k));
			part = tensor_mul(elements(p, ty, tx), tensor_unsqueeze(part, 1));
			sum = sum ? tensor_add(sum, part) : part;
		}
	}
	return sum;
}

/* grid_sampler_2d of input and grid. */
static tensor *sample(tensor *input, tensor *grid, const struct grid_args *a)
{
	const int64_t *s = input->sizes, oh = grid->sizes[1], ow = grid->sizes[2];
	const struct planes p = { tensor_reshape(input, TENSOR_INTS(s[0], s[1], s[2] * s[3])),
				  s[0],
				  s[1],
				  s[2],
				  s[3],
				  oh * ow };
	tensor *places = tensor_reshape(grid, TENSOR_INTS(s[0], p.places, 2)), *x, *y, *sum;

	x = position(tensor_select(places, 2, 0), p.w, a->align_corners);
	y = position(tensor_select(places, 2, 1), p.h, a->align_corners);
	if (a->mode != GRID_BICUBIC) {
		x = padded(x, p.w, a);
		y = padded(y, p.h, a);
	}
	if (!p.rows || !x || !y)
		return NULL;
	if (a->mode == GRID_NEAREST)
		sum = elements(&p, tensor_round(tensor_detach(y)), tensor_round(tensor_detach(x)));
	else
		sum = sum_taps(&p, y, x, a);
	return tensor_view(sum, TENSOR_INTS(s[0], s[1], oh, ow));
}

/* ---- the formulas ---- */

static int sample_composed(tensor *const *in, tensor **out, const void *ctx)
{
	out[0] = sample(in[0], in[1], ctx);
	return out[0] ? 0 : -1;
}

/* Gradient of input (part 0) or grid (part 1). */
static tensor *sample_backward(tensor *grad, tensor *input, tensor *grid, const struct grid_args *a,
			       int part)
{
	return formula_vjp(sample_composed, a, TENSOR_LIST(input, grid), &grad, 1, part);
}

tensor *formula_grid_sampler_part(tensor *grad, tensor *input, tensor *grid, int64_t mode,
				  int64_t padding, bool align_corners, int part)
{
	const struct grid_args a = { mode, padding, align_corners };
	tensor *result[2];

	if (formula_is_differentiated())
		return sample_backward(grad, input, grid, &a, part);
	if (tensor_grid_sampler_2d_backward(grad, input, grid, mode, padding, align_corners,
					    1u << part, &result[0], &result[1]) < 0)
		return NULL;
	return result[part];
}

/* grid_sampler_2d_backward of grad_output, input and grid. */
static int backward_composed(tensor *const *in, tensor **out, const void *ctx)
{
	for (int i = 0; i < 2; i++) {
		out[i] = sample_backward(in[0], in[1], in[2], ctx, i);
		if (!out[i])
			return -1;
	}
	return 0;
}

tensor *grid_sampler_double_backward(tensor *const *grads, tensor *grad_output, tensor *input,
				     tensor *grid, int64_t mode, int64_t padding,
				     bool align_corners, int part)
{
	const struct grid_args a = { mode, padding, align_corners };

	return formula_vjp(backward_composed, &a, TENSOR_LIST(grad_output, input, grid), grads, 2,
			   part);
}
