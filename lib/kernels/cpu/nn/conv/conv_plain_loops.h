/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of conv_plain.c for the element type T (no include guard; see each_wrapping.h):
 * F(plain) computes planes of the result.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Adds the products of one tap along a row: n elements of x, `step` apart, and n of y. */
static void F(row)(enum conv_result kind, T *x, int64_t step, T *y, T *w, int64_t n)
{
	T tap = *w;

	if (kind == CONV_OUTPUT)
		for (int64_t o = 0; o < n; o++)
			y[o] = (T)(y[o] + tap * x[o * step]);
	else if (kind == CONV_INPUT)
		for (int64_t o = 0; o < n; o++)
			x[o * step] = (T)(x[o * step] + tap * y[o]);
	else
		for (int64_t o = 0; o < n; o++)
			*w = (T)(*w + x[o * step] * y[o]);
}

/* All taps of one plane of x, y and w. */
static void F(planes)(const struct plain *c, T *x, T *y, T *w)
{
	const int64_t *s = c->p->stride, *pad = c->p->padding, *dil = c->p->dilation;

	for (int64_t t = 0; t < c->w_plane; t++) {
		int64_t a[AXES], from[AXES], to[AXES];
		int64_t at[AXES] = { t / (c->taps[1] * c->taps[2]), t / c->taps[2] % c->taps[1],
				     t % c->taps[2] };

		for (int i = 0; i < AXES; i++) {
			a[i] = at[i] * dil[i] - pad[i];
			conv_positions(a[i], s[i], c->x[i], c->y[i], &from[i], &to[i]);
		}
		for (int64_t i = from[0]; i < to[0]; i++)
			for (int64_t j = from[1]; j < to[1] && from[2] < to[2]; j++) {
				int64_t x_row = (i * s[0] + a[0]) * c->x[1] + (j * s[1] + a[1]);
				T *x_at = x + x_row * c->x[2] + from[2] * s[2] + a[2];
				T *y_at = y + (i * c->y[1] + j) * c->y[2] + from[2];

				F(row)(c->kind, x_at, s[2], y_at, w + t, to[2] - from[2]);
			}
	}
}

/* Sets a plane of the result to its bias, or to zero. */
static void F(initialize)(T *t, int64_t n, const T *bias, int64_t channel)
{
	for (int64_t i = 0; i < n; i++)
		t[i] = bias ? bias[channel] : 0;
}

/* A unit is a plane of the result; others are summed over in a fixed order. */
static void F(plain)(int64_t begin, int64_t end, void *ctx)
{
	const struct plain *c = ctx;
	int64_t ins = c->in * c->groups, outs = c->out * c->groups;

	for (int64_t u = begin; u < end; u++) {
		int64_t per = c->kind == CONV_OUTPUT ? outs : c->kind == CONV_INPUT ? ins : c->in;
		int64_t major = u / per, minor = u % per;
		int64_t many = c->kind == CONV_OUTPUT ? c->in :
			       c->kind == CONV_INPUT  ? c->out :
							c->batch;

		if (c->kind == CONV_OUTPUT)
			F(initialize)((T *)c->y_data + u * c->y_plane, c->y_plane, c->bias, minor);
		else if (c->kind == CONV_INPUT)
			F(initialize)((T *)c->x_data + u * c->x_plane, c->x_plane, c->bias, minor);
		else
			F(initialize)((T *)c->w_data + u * c->w_plane, c->w_plane, NULL, 0);
		for (int64_t k = 0; k < many; k++) {
			int64_t n = c->kind == CONV_WEIGHT ? k : major;
			int64_t o = c->kind == CONV_OUTPUT ? minor :
				    c->kind == CONV_INPUT  ? minor / c->in * c->out + k :
							     major;
			int64_t i = c->kind == CONV_OUTPUT ? k :
				    c->kind == CONV_INPUT  ? minor % c->in :
							     minor;
			int64_t channel = o / c->out * c->in + i;
			T *x = (T *)c->x_data + (n * ins + channel) * c->x_plane;
			T *y = (T *)c->y_data + (n * outs + o) * c->y_plane;
			T *w = (T *)c->w_data + (o * c->in + i) * c->w_plane;

			F(planes)(c, x, y, w);
		}
	}
}

#undef F
