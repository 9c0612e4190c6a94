/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The positions and weights of grid_sampler_2d for the element type T (no include guard). The includer
 * defines T and F(name), and includes kernels/abi/grid.h and kernels/formula/dtypes.h. The operations and
 * their order are those of the vectors in cpu/nn/grid_sampler_points_loops.h, so that a coordinate far
 * outside, which rounding moves by elements, has the same position everywhere.
 */
#ifndef FAR
#define FAR 1e9 /* positions beyond are replaced by -FAR, which an integer can hold */
#endif
#undef CUBIC_WEIGHTS

/* Converts a coordinate in -1 .. 1 to a position in elements; *slope becomes its derivative. */
FORMULA T F(unnormalize)(T x, int64_t size, bool align, T *slope)
{
	*slope = (align ? (T)(size - 1) : (T)size) / 2;
	return (x + 1) * *slope - (align ? (T)0 : (T)0.5);
}

/* Reflects x at low2 / 2 and high2 / 2; multiplies *slope by the derivative, 1 or -1. */
FORMULA T F(reflect)(T x, int64_t low2, int64_t high2, T *slope)
{
	T low = (T)low2 / 2, span = (T)(high2 - low2) / 2, flips, extra;

	if (low2 == high2) {
		*slope = 0;
		return 0;
	}
	x -= low;
	if (x < 0) {
		x = -x;
		*slope = -*slope;
	}
	flips = (T)floor(x / span);
	extra = x - flips * span;
	if (flips - 2 * (T)floor(flips / 2) == 0)
		return extra + low;
	*slope = -*slope;
	return span - extra + low;
}

/* Clips x to 0 .. size - 1; a clipped x has derivative 0. */
FORMULA T F(clip)(T x, int64_t size, T *slope)
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
FORMULA T F(pad)(T x, int64_t size, const struct grid_params *p, T *slope)
{
	if (p->padding == GRID_REFLECTION) {
		x = p->align_corners ? F(reflect)(x, 0, 2 * (size - 1), slope) :
				       F(reflect)(x, -1, 2 * size - 1, slope);
	}
	if (p->padding != GRID_ZEROS)
		x = F(clip)(x, size, slope);
	return x > -(T)FAR && x < (T)FAR ? x : -(T)FAR;
}

/* The weights of four taps for fraction t: cubic convolution, a = -0.75. N is T or a vector. */
#define CUBIC_WEIGHTS(N, NAME)                                    \
	FORMULA void NAME(N t, N *w)                              \
	{                                                         \
		const T a = (T)-0.75;                             \
		N x = t + 1, u = 1 - t, v = u + 1;                \
                                                                  \
		w[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; \
		w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;       \
		w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;       \
		w[3] = ((a * v - 5 * a) * v + 8 * a) * v - 4 * a; \
	}
CUBIC_WEIGHTS(T, F(cubic_weights))

/* The same, and their derivatives. */
FORMULA void F(cubic)(T t, T *w, T *slope)
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

/* An element of a plane with its weight, and the weight's derivatives by the grid; element -1 is
 * outside of the plane. */
struct F(grid_tap) {
	int64_t at;
	T w, dx, dy;
};

/* The element at row y and column x, or -1 outside of the plane. */
FORMULA int64_t F(inside)(int64_t h, int64_t w, T y, T x)
{
	return y >= 0 && x >= 0 && y < (T)h && x < (T)w ? (int64_t)y * w + (int64_t)x : -1;
}

FORMULA void F(set_tap)(struct F(grid_tap) * t, int64_t at, T w, T dx, T dy)
{
	t->at = at;
	t->w = w;
	t->dx = dx;
	t->dy = dy;
}

/* mx and my are the derivatives of x and y by the grid. */
FORMULA void F(cubic_taps)(const struct grid_params *p, int64_t h, int64_t w,
			   struct F(grid_tap) * taps, T x, T y, T mx, T my)
{
	T wx[4], wy[4], sx[4], sy[4], x0, y0;

	x = x > -(T)FAR && x < (T)FAR ? x : -(T)FAR;
	y = y > -(T)FAR && y < (T)FAR ? y : -(T)FAR;
	x0 = (T)floor(x);
	y0 = (T)floor(y);
	F(cubic)(x - x0, wx, sx);
	F(cubic)(y - y0, wy, sy);
	for (int k = 0; k < 16; k++) {
		T unused, py = F(pad)(y0 + (T)(k / 4 - 1), h, p, &unused);
		T px = F(pad)(x0 + (T)(k % 4 - 1), w, p, &unused);

		F(set_tap)
		(taps + k, F(inside)(h, w, py, px), wx[k % 4] * wy[k / 4],
		 mx * sx[k % 4] * wy[k / 4], my * wx[k % 4] * sy[k / 4]);
	}
}

/* The taps of a place with grid coordinates at[0] and at[1], in a plane [h, w]; returns their number. */
FORMULA int F(taps_of)(const struct grid_params *p, int64_t h, int64_t w, const T *at,
		       struct F(grid_tap) * taps)
{
	T mx = 0, my = 0, fx, fy, ex, ey, x0, y0;
	T x = F(unnormalize)(at[0], w, p->align_corners, &mx);
	T y = F(unnormalize)(at[1], h, p->align_corners, &my);

	if (p->mode == GRID_BICUBIC) {
		F(cubic_taps)(p, h, w, taps, x, y, mx, my);
		return 16;
	}
	x = F(pad)(x, w, p, &mx);
	y = F(pad)(y, h, p, &my);
	if (p->mode == GRID_NEAREST) {
		F(set_tap)(taps, F(inside)(h, w, (T)rint(y), (T)rint(x)), 1, 0, 0);
		return 1;
	}
	x0 = (T)floor(x);
	y0 = (T)floor(y);
	fx = x - x0;
	fy = y - y0;
	ex = 1 - fx;
	ey = 1 - fy;
	F(set_tap)(taps, F(inside)(h, w, y0, x0), ex * ey, -mx * ey, -my * ex);
	F(set_tap)(taps + 1, F(inside)(h, w, y0, x0 + 1), fx * ey, mx * ey, -my * fx);
	F(set_tap)(taps + 2, F(inside)(h, w, y0 + 1, x0), ex * fy, -mx * fy, my * ex);
	F(set_tap)(taps + 3, F(inside)(h, w, y0 + 1, x0 + 1), fx * fy, mx * fy, my * fx);
	return 4;
}
