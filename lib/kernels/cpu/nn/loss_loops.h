/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of loss.c for elements of type T (no include guard; see each_float.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

static T F(weight_of)(const struct classes *c, int64_t k)
{
	return c->weight ? ((const T *)c->weight)[k * c->weight_stride] : 1;
}

/* out: the loss of each row, or one loss, in which case *total is the sum of the weights. */
static int F(nll)(T *out, int64_t out_stride, T *total, const tensor *self, const struct classes *c,
		  enum loss_reduction reduction)
{
	int64_t row_stride = self->ndim > 1 ? self->strides[0] : 0;
	int64_t class_stride = self->strides[self->ndim - 1];
	bool each = reduction == LOSS_NONE && self->ndim > 1;
	double sum = 0, weights = 0;

	for (int64_t i = 0; i < c->rows; i++) {
		int64_t k = class_of(c, i);
		T w = k >= 0 ? F(weight_of)(c, k) : 0, loss = 0;

		if (k == OUT_OF_RANGE)
			return fail_target(c, i);
		if (k >= 0)
			loss = -w * ((const T *)self->data)[i * row_stride + k * class_stride];
		if (each)
			out[i * out_stride] = loss;
		sum += loss;
		weights += w;
	}
	if (!each)
		*out = (T)(reduction == LOSS_MEAN ? sum / weights : sum);
	*total = each ? 0 : (T)weights;
	return 0;
}

static int F(nll_backward)(tensor *out, const T *grad, int64_t grad_stride, const struct classes *c,
			   enum loss_reduction reduction, T total)
{
	int64_t row_stride = out->ndim > 1 ? out->strides[0] : 0;
	int64_t class_stride = out->strides[out->ndim - 1];

	for (int64_t i = 0; i < c->rows; i++) {
		T *row = (T *)out->data + i * row_stride;
		T g = grad[i * grad_stride];
		int64_t k = class_of(c, i);

		if (k == OUT_OF_RANGE)
			return fail_target(c, i);
		for (int64_t j = 0; j < c->classes; j++)
			row[j * class_stride] = 0;
		if (k >= 0)
			row[k * class_stride] =
				-F(weight_of)(c, k) * (reduction == LOSS_MEAN ? g / total : g);
	}
	return 0;
}

#undef F
