/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of grid_sampler.c for the element type T (no include guard; see each_float.h):
 * F(sample) and F(sample_backward).
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Converts a coordinate in -1 .. 1 to a position in elements; *slope becomes its derivative. */
static T F(unnormalize)(T x, int64_t size, bool align, T *slope)
{
	*slope = (align ? (T)(size - 1) : (T)size) / 2;
	return align ? (x + 1) / 2 * (T)(size - 1) : ((x + 1) * (T)size - 1) / 2;
}

/* Reflects x at low2 / 2 and high2 / 2; multiplies *slope by the derivative, 1 or -1. */
static T F(reflect)(T x, int64_t low2, int64_t high2, T *slope)
{
	T low = (T)low2 / 2, span = (T)(high2 - low2) / 2, extra;
	int64_t flips;

	if (low2 == high2) {
		*slope = 0;
		return 0;
	}
	x -= low;
	if (x < 0) {
		x = -x;
		*slope = -*slope;
	}
	extra = (T)fmod(x, span);
	flips = (int64_t)fmin(floor(x / span), FAR);
	if (flips % 2 == 0)
		return extra + low;
	*slope = -*slope;
	return span - extra + low;
}

/* Clips x to 0 .. size - 1; a clipped x has derivative 0. */
static T F(clip)(T x, int64_t size, T *slope)
{
	if (!(x > 0)) {
		*slope = 0;
		return 0;
	}
	if (x >= (T)(size - 1)) {
		*slope = 0;
		return (T)(size - 1);
	}
	return x;
}

/* Applies the padding mode to a position; NaN and values out of range become -FAR. */
static T F(pad)(T x, int64_t size, const struct grid_params *p, T *slope)
{
	if (p->padding == GRID_REFLECTION) {
		x = p->align_corners ? F(reflect)(x, 0, 2 * (size - 1), slope) :
				       F(reflect)(x, -1, 2 * size - 1, slope);
	}
	if (p->padding != GRID_ZEROS)
		x = F(clip)(x, size, slope);
	return x > -(T)FAR && x < (T)FAR ? x : -(T)FAR;
}

/* The element at row y and column x, or -1 outside of the plane. */
static int64_t F(inside)(const struct grid *g, T y, T x)
{
	return y >= 0 && x >= 0 && y < (T)g->h && x < (T)g->w ? (int64_t)y * g->w + (int64_t)x : -1;
}

/* The weights of four taps for fraction t: cubic convolution, a = -0.75. N is T or a vector. */
#define CUBIC_WEIGHTS(N, NAME)                                            \
	static inline __attribute__((always_inline)) void NAME(N t, N *w) \
	{                                                                 \
		const T a = (T)-0.75;                                     \
		N x = t + 1, u = 1 - t, v = u + 1;                        \
                                                                          \
		w[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;         \
		w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;               \
		w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;               \
		w[3] = ((a * v - 5 * a) * v + 8 * a) * v - 4 * a;         \
	}
CUBIC_WEIGHTS(T, F(cubic_weights))
CUBIC_WEIGHTS(CPU_PASTE(vec, SUFFIX), F(cubic_vectors))
#undef CUBIC_WEIGHTS

/* The same, and their derivatives. */
static void F(cubic)(T t, T *w, T *slope)
{
	const T a = (T)-0.75;
	T x = t + 1, u = 1 - t;

	F(cubic_weights)(t, w);
	slope[0] = (3 * a * x - 10 * a) * x + 8 * a;
	slope[1] = (3 * (a + 2) * t - 2 * (a + 3)) * t;
	slope[2] = -(3 * (a + 2) * u - 2 * (a + 3)) * u;
	u += 1;
	slope[3] = -((3 * a * u - 10 * a) * u + 8 * a);
}

/* The taps of a chunk of places: element, weight, and the derivatives of the weight by the grid. */
struct F(taps) {
	int64_t at[TAPS][CHUNK];
	T w[TAPS][CHUNK];
	T dx[TAPS][CHUNK], dy[TAPS][CHUNK];
};

static void F(set_tap)(struct F(taps) * t, int tap, int64_t i, int64_t at, T w, T dx, T dy)
{
	t->at[tap][i] = at;
	t->w[tap][i] = w;
	t->dx[tap][i] = dx;
	t->dy[tap][i] = dy;
}

/* mx and my are the derivatives of x and y by the grid. */
static void F(cubic_taps)(const struct grid *g, struct F(taps) * t, int64_t i, T x, T y, T mx, T my)
{
	T wx[4], wy[4], sx[4], sy[4], x0, y0;

	x = x > -(T)FAR && x < (T)FAR ? x : -(T)FAR;
	y = y > -(T)FAR && y < (T)FAR ? y : -(T)FAR;
	x0 = (T)floor(x), y0 = (T)floor(y);
	F(cubic)(x - x0, wx, sx);
	F(cubic)(y - y0, wy, sy);
	for (int k = 0; k < 16; k++) {
		T unused, py = F(pad)(y0 - 1 + (T)(k / 4), g->h, g->p, &unused);
		T px = F(pad)(x0 - 1 + (T)(k % 4), g->w, g->p, &unused);

		T dx = mx * sx[k % 4] * wy[k / 4], dy = my * wx[k % 4] * sy[k / 4];

		F(set_tap)(t, k, i, F(inside)(g, py, px), wx[k % 4] * wy[k / 4], dx, dy);
	}
}

/* The taps of place i, whose grid coordinates are at[0] and at[1]. */
static void F(place)(const struct grid *g, struct F(taps) * t, int64_t i, const T *at)
{
	const struct grid_params *p = g->p;
	T mx = 0, my = 0, fx, fy, ex, ey, x0, y0;
	T x = F(unnormalize)(at[0], g->w, p->align_corners, &mx);
	T y = F(unnormalize)(at[1], g->h, p->align_corners, &my);

	if (p->mode == GRID_BICUBIC) {
		F(cubic_taps)(g, t, i, x, y, mx, my);
		return;
	}
	x = F(pad)(x, g->w, p, &mx);
	y = F(pad)(y, g->h, p, &my);
	if (p->mode == GRID_NEAREST) {
		F(set_tap)(t, 0, i, F(inside)(g, (T)rint(y), (T)rint(x)), 1, 0, 0);
		return;
	}
	x0 = (T)floor(x), y0 = (T)floor(y);
	fx = x - x0, fy = y - y0;
	ex = 1 - fx, ey = 1 - fy;
	F(set_tap)(t, 0, i, F(inside)(g, y0, x0), ex * ey, -mx * ey, -my * ex);
	F(set_tap)(t, 1, i, F(inside)(g, y0, x0 + 1), fx * ey, mx * ey, -my * fx);
	F(set_tap)(t, 2, i, F(inside)(g, y0 + 1, x0), ex * fy, -mx * fy, my * ex);
	F(set_tap)(t, 3, i, F(inside)(g, y0 + 1, x0 + 1), fx * fy, mx * fy, my * fx);
}

/* Fills t for a chunk of places of an image; returns their number. */
static int64_t F(chunk)(const struct grid *g, struct F(taps) * t, int64_t chunk)
{
	int64_t image = chunk / g->chunks, from = chunk % g->chunks * CHUNK;
	int64_t n = g->places - from < CHUNK ? g->places - from : CHUNK;
	const T *at = (const T *)g->grid + (image * g->places + from) * 2;

	for (int64_t i = 0; i < n; i++)
		F(place)(g, t, i, at + 2 * i);
	return n;
}

/* Chunks begin to end, each for all channels. */
static void F(sample)(int64_t begin, int64_t end, void *ctx)
{
	const struct grid *g = ctx;
	struct F(taps) t;

	for (int64_t b = begin; b < end; b++) {
		int64_t n = F(chunk)(g, &t, b), image = b / g->chunks * g->channels;

		for (int64_t c = 0; c < g->channels; c++) {
			const T *in = (const T *)g->input + (image + c) * g->h * g->w;
			T *out = (T *)g->out + (image + c) * g->places + b % g->chunks * CHUNK;
			T sum[CHUNK] = { 0 };

			for (int k = 0; k < g->taps; k++)
				for (int64_t i = 0; i < n; i++)
					if (t.at[k][i] >= 0)
						sum[i] += t.w[k][i] * in[t.at[k][i]];
			memcpy(out, sum, (size_t)n * sizeof(T));
		}
	}
}

/* A task is an image: any place of its grid may add to any element of the input's gradient. */
static void F(sample_backward)(int64_t begin, int64_t end, void *ctx)
{
	const struct grid *g = ctx;
	struct F(taps) t;

	for (int64_t b = begin * g->chunks; b < end * g->chunks; b++) {
		int64_t n = F(chunk)(g, &t, b), image = b / g->chunks * g->channels;
		T dx[CHUNK] = { 0 }, dy[CHUNK] = { 0 };
		T *out =
			(T *)g->grad_grid + (b / g->chunks * g->places + b % g->chunks * CHUNK) * 2;

		for (int64_t c = 0; c < g->channels; c++) {
			const T *in = (const T *)g->input + (image + c) * g->h * g->w;
			const T *grad = (const T *)g->grad + (image + c) * g->places +
					b % g->chunks * CHUNK;
			T *to = g->out ? (T *)g->out + (image + c) * g->h * g->w : NULL;

			for (int k = 0; k < g->taps; k++)
				for (int64_t i = 0; i < n; i++) {
					int64_t at = t.at[k][i];

					if (at < 0)
						continue;
					if (g->out)
						to[at] += t.w[k][i] * grad[i];
					dx[i] += t.dx[k][i] * grad[i] * in[at];
					dy[i] += t.dy[k][i] * grad[i] * in[at];
				}
		}
		for (int64_t i = 0; g->grad_grid && i < n; i++) {
			out[2 * i] = dx[i];
			out[2 * i + 1] = dy[i];
		}
	}
}

#undef F
