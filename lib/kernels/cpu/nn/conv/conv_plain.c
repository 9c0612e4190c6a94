// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions of integers and complex numbers, and their gradients: one walk over all pairs of an
 * input's element and an output's that a tap connects, row by row; the three differ in which of
 * the three tensors is added to. Nothing is planned, copied or blocked: they are for the dtypes
 * that few convolve, and right.
 */
#include "kernels/cpu/nn/conv/conv.h"

#include "iter/parallel.h"

struct plain {
	enum conv_result kind;
	int64_t batch, groups, in, out; /* in, out: channels of a group */
	int64_t x[AXES], y[AXES], taps[AXES], x_plane, y_plane, w_plane;
	const struct conv_params *p;
	char *x_data, *y_data, *w_data;
	const void *bias;
};

/* Positions o with 0 <= o * stride + at < size, of n. */
static void positions(int64_t at, int64_t stride, int64_t size, int64_t n, int64_t *from,
		      int64_t *to)
{
	*from = at < 0 ? (-at + stride - 1) / stride : 0;
	*to = at < size ? (size - at + stride - 1) / stride : 0;
	if (*to > n)
		*to = n;
}

/* What a tap's row adds: `n` elements of x, `step` apart, against as many of y. */
#define PLAIN(d, T, D)                                                                            \
	static void row_##d(enum conv_result kind, T *x, int64_t step, T *y, T *w, int64_t n)     \
	{                                                                                         \
		T tap = *w;                                                                       \
                                                                                                  \
		if (kind == CONV_OUTPUT)                                                          \
			for (int64_t o = 0; o < n; o++)                                           \
				y[o] = (T)(y[o] + tap * x[o * step]);                             \
		else if (kind == CONV_INPUT)                                                      \
			for (int64_t o = 0; o < n; o++)                                           \
				x[o * step] = (T)(x[o * step] + tap * y[o]);                      \
		else                                                                              \
			for (int64_t o = 0; o < n; o++)                                           \
				*w = (T)(*w + x[o * step] * y[o]);                                \
	}                                                                                         \
	static void planes_##d(const struct plain *c, T *x, T *y, T *w)                           \
	{                                                                                         \
		const int64_t *s = c->p->stride, *pad = c->p->padding, *dil = c->p->dilation;     \
                                                                                                  \
		for (int64_t t = 0; t < c->w_plane; t++) {                                        \
			int64_t a[AXES], from[AXES], to[AXES];                                    \
			int64_t at[AXES] = { t / (c->taps[1] * c->taps[2]),                       \
					     t / c->taps[2] % c->taps[1], t % c->taps[2] };       \
                                                                                                  \
			for (int i = 0; i < AXES; i++) {                                          \
				a[i] = at[i] * dil[i] - pad[i];                                   \
				positions(a[i], s[i], c->x[i], c->y[i], &from[i], &to[i]);        \
			}                                                                         \
			for (int64_t i = from[0]; i < to[0]; i++)                                 \
				for (int64_t j = from[1]; j < to[1] && from[2] < to[2]; j++)      \
					row_##d(c->kind,                                          \
						x +                                               \
							((i * s[0] + a[0]) * c->x[1] +            \
							 (j * s[1] + a[1])) *                     \
								c->x[2] +                         \
							from[2] * s[2] + a[2],                    \
						s[2], y + (i * c->y[1] + j) * c->y[2] + from[2],  \
						w + t, to[2] - from[2]);                          \
		}                                                                                 \
	}                                                                                         \
	static void start_##d(T *t, int64_t n, const T *bias, int64_t channel)                    \
	{                                                                                         \
		for (int64_t i = 0; i < n; i++)                                                   \
			t[i] = bias ? bias[channel] : 0;                                          \
	}                                                                                         \
	/* A unit is a plane of the result; others are summed over in a fixed order. */           \
	static void plain_##d(int64_t begin, int64_t end, void *ctx)                              \
	{                                                                                         \
		const struct plain *c = ctx;                                                      \
		int64_t ins = c->in * c->groups, outs = c->out * c->groups;                       \
                                                                                                  \
		for (int64_t u = begin; u < end; u++) {                                           \
			int64_t per = c->kind == CONV_OUTPUT ? outs :                             \
				      c->kind == CONV_INPUT  ? ins :                              \
							       c->in;                              \
			int64_t major = u / per, minor = u % per;                                 \
			int64_t many = c->kind == CONV_OUTPUT ? c->in :                           \
				       c->kind == CONV_INPUT  ? c->out :                          \
								c->batch;                          \
                                                                                                  \
			if (c->kind == CONV_OUTPUT)                                               \
				start_##d((T *)c->y_data + u * c->y_plane, c->y_plane, c->bias,   \
					  minor);                                                 \
			else if (c->kind == CONV_INPUT)                                           \
				start_##d((T *)c->x_data + u * c->x_plane, c->x_plane, c->bias,   \
					  minor);                                                 \
			else                                                                      \
				start_##d((T *)c->w_data + u * c->w_plane, c->w_plane, NULL, 0);  \
			for (int64_t k = 0; k < many; k++) {                                      \
				int64_t n = c->kind == CONV_WEIGHT ? k : major;                   \
				int64_t o = c->kind == CONV_OUTPUT ? minor :                      \
					    c->kind == CONV_INPUT  ? minor / c->in * c->out + k : \
								     major;                        \
				int64_t i = c->kind == CONV_OUTPUT ? k :                          \
					    c->kind == CONV_INPUT  ? minor % c->in :              \
								     minor;                        \
				int64_t channel = o / c->out * c->in + i;                         \
                                                                                                  \
				planes_##d(c, (T *)c->x_data + (n * ins + channel) * c->x_plane,  \
					   (T *)c->y_data + (n * outs + o) * c->y_plane,          \
					   (T *)c->w_data + (o * c->in + i) * c->w_plane);        \
			}                                                                         \
		}                                                                                 \
	}
DTYPES_WRAPPING(PLAIN)
DTYPES_COMPLEX(PLAIN)

static int64_t sizes_of(const tensor *t, int64_t *size)
{
	int64_t n = 1;

	for (int d = 0; d < AXES; d++) {
		int from = t->ndim - AXES + d;

		size[d] = from < 2 ? 1 : t->sizes[from];
		n *= size[d];
	}
	return n;
}

int CPU_NAME(conv_plain)(enum conv_result kind, const tensor *y, const tensor *x, const tensor *w,
			 const tensor *bias, const struct conv_params *p)
{
#define ENTRY(d, T, D) [D] = plain_##d,
	static const parallel_fn fn[TENSOR_DTYPE_COUNT] = { DTYPES_WRAPPING(ENTRY) AT_WRAPPED(plain)
								    DTYPES_COMPLEX(ENTRY) };
	struct plain c = { .kind = kind,
			   .batch = x->sizes[0],
			   .groups = p->groups,
			   .in = x->sizes[1] / p->groups,
			   .out = y->sizes[1] / p->groups,
			   .p = p,
			   .x_data = x->data,
			   .y_data = y->data,
			   .w_data = w->data,
			   .bias = bias ? bias->data : NULL };
	int64_t units = kind == CONV_OUTPUT ? c.batch * y->sizes[1] :
			kind == CONV_INPUT  ? c.batch * x->sizes[1] :
					      y->sizes[1] * c.in;
	int64_t work;

	if (!fn[x->dtype])
		return kernel_no_dtype("convolution", x->dtype, "cpu");
	c.x_plane = sizes_of(x, c.x);
	c.y_plane = sizes_of(y, c.y);
	c.w_plane = sizes_of(w, c.taps);
	work = 1 + c.y_plane * c.w_plane *
			   (kind == CONV_OUTPUT ? c.in :
			    kind == CONV_INPUT	? c.out :
						  c.batch);
	parallel_for(0, units, work < ITER_GRAIN ? ITER_GRAIN / work : 1, fn[x->dtype], &c);
	return 0;
}
