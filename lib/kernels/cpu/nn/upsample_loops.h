/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of upsample.c for the element type T (no include guard; see each_float.h): F(table),
 * F(forward) and F(backward).
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* ---- tables ---- */

/* The distance in the input between two adjacent outputs. */
static T F(step)(int64_t in, int64_t out, bool align, double scale)
{
	if (align)
		return out > 1 ? (T)(in - 1) / (T)(out - 1) : 0;
	return scale > 0 ? (T)(1 / scale) : (T)in / (T)out;
}

static void F(nearest)(int64_t *at, T *w, int64_t in, int64_t out, const struct upsample_params *p,
		       double scale)
{
	T step = F(step)(in, out, false, scale);
	bool exact = p->mode == UPSAMPLE_NEAREST_EXACT;

	for (int64_t i = 0; i < out; i++) {
		T x = exact ? step * ((T)i + (T)0.5) - (T)0.5 : step * (T)i;

		x = exact ? MAX(x, 0) + (T)0.5 : x;
		at[i] = position((float)x, 0, in);
		w[i] = 1;
	}
}

/* Sets *at to the input position before output i; returns the distance of the output from it. */
static T F(place)(int64_t i, T step, int64_t in, const struct upsample_params *p, int64_t *at)
{
	T x = p->align_corners ? step * (T)i : step * ((T)i + (T)0.5) - (T)0.5;

	if (x < 0 && p->mode == UPSAMPLE_LINEAR)
		x = 0;
	*at = position((float)x, p->mode == UPSAMPLE_LINEAR ? 0 : -1, in);
	x -= (T)*at;
	return MIN(MAX(x, 0), 1);
}

static void F(linear)(int64_t *at, T *w, int64_t in, int64_t out, const struct upsample_params *p,
		      double scale)
{
	T step = F(step)(in, out, p->align_corners, scale);

	for (int64_t i = 0; i < out; i++, at += 2, w += 2) {
		w[1] = in == out ? (at[0] = i, 0) : F(place)(i, step, in, p, &at[0]);
		w[0] = 1 - w[1];
		at[1] = in == out ? i : MIN(at[0] + 1, in - 1);
	}
}

static void F(cubic)(int64_t *at, T *w, int64_t in, int64_t out, const struct upsample_params *p,
		     double scale)
{
	T step = F(step)(in, out, p->align_corners, scale), a = (T)-0.75;

	for (int64_t i = 0; i < out; i++, at += 4, w += 4) {
		int64_t first;
		T t = F(place)(i, step, in, p, &first), x;

		x = t + 1;
		w[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
		w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
		x = 1 - t;
		w[2] = ((a + 2) * x - (a + 3)) * x * x + 1;
		x = x + 1;
		w[3] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
		for (int k = 0; k < 4; k++)
			at[k] = MIN(MAX(first - 1 + k, 0), in - 1);
	}
}

/* Fills the table of dimension k, in the arithmetic of the dtype. */
static void F(table)(struct upsample *u, int k, const struct upsample_params *p)
{
	double scale = p->scale[k];

	if (u->taps == 1)
		F(nearest)(u->at[k], u->weight[k], u->in[k], u->out[k], p, scale);
	else if (u->taps == 2)
		F(linear)(u->at[k], u->weight[k], u->in[k], u->out[k], p, scale);
	else
		F(cubic)(u->at[k], u->weight[k], u->in[k], u->out[k], p, scale);
}

/* ---- rows and planes ---- */

/* A row of the input interpolated along the last dimension. */
static void F(row)(T *to, const T *from, const struct upsample *u)
{
	const int64_t *at = u->at[2];
	const T *w = u->weight[2];
	int64_t n = u->out[2];

	if (u->taps == 1)
		for (int64_t i = 0; i < n; i++)
			to[i] = from[at[i]];
	else if (u->taps == 2)
		for (int64_t i = 0; i < n; i++)
			to[i] = w[2 * i] * from[at[2 * i]] + w[2 * i + 1] * from[at[2 * i + 1]];
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = w[4 * i] * from[at[4 * i]] + w[4 * i + 1] * from[at[4 * i + 1]] +
				w[4 * i + 2] * from[at[4 * i + 2]] +
				w[4 * i + 3] * from[at[4 * i + 3]];
}

/* Adds the gradient of an interpolated row to that of the row. */
static void F(row_backward)(T *to, const T *from, const struct upsample *u)
{
	const int64_t *at = u->at[2];
	const T *w = u->weight[2];

	for (int64_t i = 0; i < u->out[2]; i++)
		for (int k = 0; k < u->taps; k++, at++, w++)
			to[*at] += *w * from[i];
}

/* to = w * from, added to `to` unless first. */
static void F(add_row)(T *restrict to, const T *restrict from, T w, int64_t n, bool first)
{
	if (first)
		for (int64_t i = 0; i < n; i++)
			to[i] = w * from[i];
	else
		for (int64_t i = 0; i < n; i++)
			to[i] += w * from[i];
}

/* Row i of the output is a sum of tz * ty rows: the weight of tap k, and its row of the input. */
static T F(weight)(const struct upsample *u, int64_t i, int64_t k, int64_t tz, int64_t ty,
		   int64_t *row)
{
	int64_t z = i / u->out[1] * u->taps + k / ty;
	int64_t y = i % u->out[1] * u->taps + k % ty;
	T wz = tz < u->taps ? 1 : ((const T *)u->weight[0])[z];
	T wy = ty < u->taps ? 1 : ((const T *)u->weight[1])[y];

	*row = u->at[0][z] * u->in[1] + u->at[1][y];
	return wz * wy;
}

static void F(plane)(T *to, const T *from, T *rows, const struct upsample *u)
{
	int64_t n = u->out[2], tz = taps_of(u, 0), ty = taps_of(u, 1);

	for (int64_t i = 0; i < u->in[0] * u->in[1]; i++)
		F(row)(rows + i * n, from + i * u->in[2], u);
	for (int64_t i = 0; i < u->out[0] * u->out[1]; i++, to += n)
		for (int64_t k = 0; k < tz * ty; k++) {
			int64_t row;
			T w = F(weight)(u, i, k, tz, ty, &row);

			F(add_row)(to, rows + row * n, w, n, !k);
		}
}

static void F(plane_backward)(T *to, const T *from, T *rows, const struct upsample *u)
{
	int64_t n = u->out[2], lines = u->in[0] * u->in[1];
	int64_t tz = taps_of(u, 0), ty = taps_of(u, 1);

	memset(rows, 0, lines * n * sizeof(T));
	memset(to, 0, lines * u->in[2] * sizeof(T));
	for (int64_t i = 0; i < u->out[0] * u->out[1]; i++, from += n)
		for (int64_t k = 0; k < tz * ty; k++) {
			int64_t row;
			T w = F(weight)(u, i, k, tz, ty, &row);

			F(add_row)(rows + row * n, from, w, n, false);
		}
	for (int64_t i = 0; i < lines; i++)
		F(row_backward)(to + i * u->in[2], rows + i * n, u);
}

static void F(interpolate)(struct upsample *u, int64_t begin, int64_t end, bool backward)
{
	int64_t in = u->in[0] * u->in[1] * u->in[2];
	int64_t out = u->out[0] * u->out[1] * u->out[2];
	struct tensor_storage *rows = storage_alloc(
		TENSOR_DEVICE_CPU, u->in[0] * u->in[1] * u->out[2] * sizeof(T), false);

	if (!rows) {
		u->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		T *to = (T *)u->to + i * (backward ? in : out);
		const T *from = (const T *)u->from + i * (backward ? out : in);

		if (backward)
			F(plane_backward)(to, from, rows->data, u);
		else
			F(plane)(to, from, rows->data, u);
	}
	storage_put(rows);
}

static void F(forward)(int64_t begin, int64_t end, void *ctx)
{
	F(interpolate)(ctx, begin, end, false);
}

static void F(backward)(int64_t begin, int64_t end, void *ctx)
{
	F(interpolate)(ctx, begin, end, true);
}

#undef F
