// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sampling a plane at places given by a grid. A chunk of places is turned into taps, positions in
 * the plane with weights, once for all channels; a position of -1 lies outside and counts as zero.
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/spatial.h"

#include "iter/parallel.h"

#include <math.h>

#define CHUNK 64
#define TAPS  16

struct grid {
	const struct grid_params *p;
	int64_t batch, channels, h, w, places, chunks;
	int taps;
	void *out, *grad_grid; /* out: of the gradient, the input's */
	const void *input, *grid, *grad;
};

/* NaN and what no integer holds become a place outside. */
#define FAR 1e9

#define GRID(d, T)                                                                                \
	/* A coordinate from -1 .. 1 in elements; *slope is its derivative. */                    \
	static T unnormalize_##d(T x, int64_t size, bool align, T *slope)                         \
	{                                                                                         \
		*slope = (align ? (T)(size - 1) : (T)size) / 2;                                   \
		return align ? (x + 1) / 2 * (T)(size - 1) : ((x + 1) * (T)size - 1) / 2;         \
	}                                                                                         \
	static T reflect_##d(T x, int64_t low2, int64_t high2, T *slope)                          \
	{                                                                                         \
		T low = (T)low2 / 2, span = (T)(high2 - low2) / 2, extra;                         \
		int64_t flips;                                                                    \
                                                                                                  \
		if (low2 == high2) {                                                              \
			*slope = 0;                                                               \
			return 0;                                                                 \
		}                                                                                 \
		x -= low;                                                                         \
		if (x < 0) {                                                                      \
			x = -x;                                                                   \
			*slope = -*slope;                                                         \
		}                                                                                 \
		extra = (T)fmod(x, span);                                                         \
		flips = (int64_t)fmin(floor(x / span), FAR);                                      \
		if (flips % 2 == 0)                                                               \
			return extra + low;                                                       \
		*slope = -*slope;                                                                 \
		return span - extra + low;                                                        \
	}                                                                                         \
	static T clip_##d(T x, int64_t size, T *slope)                                            \
	{                                                                                         \
		if (!(x > 0)) {                                                                   \
			*slope = 0;                                                               \
			return 0;                                                                 \
		}                                                                                 \
		if (x >= (T)(size - 1)) {                                                         \
			*slope = 0;                                                               \
			return (T)(size - 1);                                                     \
		}                                                                                 \
		return x;                                                                         \
	}                                                                                         \
	static T pad_##d(T x, int64_t size, const struct grid_params *p, T *slope)                \
	{                                                                                         \
		if (p->padding == GRID_REFLECTION) {                                              \
			x = p->align_corners ? reflect_##d(x, 0, 2 * (size - 1), slope) :         \
					       reflect_##d(x, -1, 2 * size - 1, slope);           \
		}                                                                                 \
		if (p->padding != GRID_ZEROS)                                                     \
			x = clip_##d(x, size, slope);                                             \
		return x > -(T)FAR && x < (T)FAR ? x : -(T)FAR;                                   \
	}                                                                                         \
	static int64_t inside_##d(const struct grid *g, T y, T x)                                 \
	{                                                                                         \
		return y >= 0 && x >= 0 && y < (T)g->h && x < (T)g->w ?                           \
			       (int64_t)y * g->w + (int64_t)x :                                   \
			       -1;                                                                \
	}                                                                                         \
	static void cubic_##d(T t, T *w, T *slope)                                                \
	{                                                                                         \
		const T a = (T)-0.75;                                                             \
		T x = t + 1, u = 1 - t;                                                           \
                                                                                                  \
		w[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;                                 \
		w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;                                       \
		w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;                                       \
		slope[0] = (3 * a * x - 10 * a) * x + 8 * a;                                      \
		slope[1] = (3 * (a + 2) * t - 2 * (a + 3)) * t;                                   \
		slope[2] = -(3 * (a + 2) * u - 2 * (a + 3)) * u;                                  \
		u += 1;                                                                           \
		w[3] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;                                 \
		slope[3] = -((3 * a * u - 10 * a) * u + 8 * a);                                   \
	}                                                                                         \
	struct taps_##d {                                                                         \
		int64_t at[TAPS][CHUNK];                                                          \
		T w[TAPS][CHUNK];                                                                 \
		T dx[TAPS][CHUNK], dy[TAPS][CHUNK]; /* of the weights, by the grid */             \
	};                                                                                        \
	static void set_tap_##d(struct taps_##d *t, int tap, int64_t i, int64_t at, T w, T dx,    \
				T dy)                                                             \
	{                                                                                         \
		t->at[tap][i] = at;                                                               \
		t->w[tap][i] = w;                                                                 \
		t->dx[tap][i] = dx;                                                               \
		t->dy[tap][i] = dy;                                                               \
	}                                                                                         \
	static void cubic_taps_##d(const struct grid *g, struct taps_##d *t, int64_t i, T x, T y, \
				   T mx, T my)                                                    \
	{                                                                                         \
		T wx[4], wy[4], sx[4], sy[4], x0, y0;                                             \
                                                                                                  \
		x = x > -(T)FAR && x < (T)FAR ? x : -(T)FAR;                                      \
		y = y > -(T)FAR && y < (T)FAR ? y : -(T)FAR;                                      \
		x0 = (T)floor(x), y0 = (T)floor(y);                                               \
		cubic_##d(x - x0, wx, sx);                                                        \
		cubic_##d(y - y0, wy, sy);                                                        \
		for (int k = 0; k < 16; k++) {                                                    \
			T none, py = pad_##d(y0 - 1 + (T)(k / 4), g->h, g->p, &none);             \
			T px = pad_##d(x0 - 1 + (T)(k % 4), g->w, g->p, &none);                   \
                                                                                                  \
			set_tap_##d(t, k, i, inside_##d(g, py, px), wx[k % 4] * wy[k / 4],        \
				    mx * sx[k % 4] * wy[k / 4], my * wx[k % 4] * sy[k / 4]);      \
		}                                                                                 \
	}                                                                                         \
	static void place_##d(const struct grid *g, struct taps_##d *t, int64_t i, const T *at)   \
	{                                                                                         \
		const struct grid_params *p = g->p;                                               \
		T mx = 0, my = 0, fx, fy, x0, y0;                                                 \
		T x = unnormalize_##d(at[0], g->w, p->align_corners, &mx);                        \
		T y = unnormalize_##d(at[1], g->h, p->align_corners, &my);                        \
                                                                                                  \
		if (p->mode == GRID_BICUBIC) {                                                    \
			cubic_taps_##d(g, t, i, x, y, mx, my);                                    \
			return;                                                                   \
		}                                                                                 \
		x = pad_##d(x, g->w, p, &mx);                                                     \
		y = pad_##d(y, g->h, p, &my);                                                     \
		if (p->mode == GRID_NEAREST) {                                                    \
			set_tap_##d(t, 0, i, inside_##d(g, (T)rint(y), (T)rint(x)), 1, 0, 0);     \
			return;                                                                   \
		}                                                                                 \
		x0 = (T)floor(x), y0 = (T)floor(y);                                               \
		fx = x - x0, fy = y - y0;                                                         \
		set_tap_##d(t, 0, i, inside_##d(g, y0, x0), (1 - fx) * (1 - fy), -mx * (1 - fy),  \
			    -my * (1 - fx));                                                      \
		set_tap_##d(t, 1, i, inside_##d(g, y0, x0 + 1), fx *(1 - fy), mx *(1 - fy),       \
			    -my *fx);                                                             \
		set_tap_##d(t, 2, i, inside_##d(g, y0 + 1, x0), (1 - fx) * fy, -mx * fy,          \
			    my * (1 - fx));                                                       \
		set_tap_##d(t, 3, i, inside_##d(g, y0 + 1, x0 + 1), fx *fy, mx *fy, my *fx);      \
	}                                                                                         \
	static int64_t chunk_##d(const struct grid *g, struct taps_##d *t, int64_t chunk)         \
	{                                                                                         \
		int64_t image = chunk / g->chunks, from = chunk % g->chunks * CHUNK;              \
		int64_t n = g->places - from < CHUNK ? g->places - from : CHUNK;                  \
		const T *at = (const T *)g->grid + (image * g->places + from) * 2;                \
                                                                                                  \
		for (int64_t i = 0; i < n; i++)                                                   \
			place_##d(g, t, i, at + 2 * i);                                           \
		return n;                                                                         \
	}                                                                                         \
	static void sample_##d(int64_t begin, int64_t end, void *ctx)                             \
	{                                                                                         \
		const struct grid *g = ctx;                                                       \
		struct taps_##d t;                                                                \
                                                                                                  \
		for (int64_t b = begin; b < end; b++) {                                           \
			int64_t n = chunk_##d(g, &t, b), image = b / g->chunks * g->channels;     \
                                                                                                  \
			for (int64_t c = 0; c < g->channels; c++) {                               \
				const T *in = (const T *)g->input + (image + c) * g->h * g->w;    \
				T *out = (T *)g->out + (image + c) * g->places +                  \
					 b % g->chunks * CHUNK;                                   \
				T sum[CHUNK] = { 0 };                                             \
                                                                                                  \
				for (int k = 0; k < g->taps; k++)                                 \
					for (int64_t i = 0; i < n; i++)                           \
						if (t.at[k][i] >= 0)                              \
							sum[i] += t.w[k][i] * in[t.at[k][i]];     \
				memcpy(out, sum, (size_t)n * sizeof(T));                          \
			}                                                                         \
		}                                                                                 \
	}                                                                                         \
	/* An image: its input's gradient has contributions from anywhere in the grid. */         \
	static void sample_back_##d(int64_t begin, int64_t end, void *ctx)                        \
	{                                                                                         \
		const struct grid *g = ctx;                                                       \
		struct taps_##d t;                                                                \
                                                                                                  \
		for (int64_t b = begin * g->chunks; b < end * g->chunks; b++) {                   \
			int64_t n = chunk_##d(g, &t, b), image = b / g->chunks * g->channels;     \
			T dx[CHUNK] = { 0 }, dy[CHUNK] = { 0 };                                   \
			T *out = (T *)g->grad_grid +                                              \
				 (b / g->chunks * g->places + b % g->chunks * CHUNK) * 2;         \
                                                                                                  \
			for (int64_t c = 0; c < g->channels; c++) {                               \
				const T *in = (const T *)g->input + (image + c) * g->h * g->w;    \
				const T *grad = (const T *)g->grad + (image + c) * g->places +    \
						b % g->chunks * CHUNK;                            \
				T *to = (T *)g->out + (image + c) * g->h * g->w;                  \
                                                                                                  \
				for (int k = 0; k < g->taps; k++)                                 \
					for (int64_t i = 0; i < n; i++) {                         \
						int64_t at = t.at[k][i];                          \
                                                                                                  \
						if (at < 0)                                       \
							continue;                                 \
						if (g->out)                                       \
							to[at] += t.w[k][i] * grad[i];            \
						dx[i] += t.dx[k][i] * grad[i] * in[at];           \
						dy[i] += t.dy[k][i] * grad[i] * in[at];           \
					}                                                         \
			}                                                                         \
			for (int64_t i = 0; g->grad_grid && i < n; i++) {                         \
				out[2 * i] = dx[i];                                               \
				out[2 * i + 1] = dy[i];                                           \
			}                                                                         \
		}                                                                                 \
	}
GRID(f32, float)
GRID(f64, double)

static struct grid grid_of(const tensor *input, const tensor *grid, const struct grid_params *p)
{
	struct grid g = { .p = p,
			  .batch = input->sizes[0],
			  .channels = input->sizes[1],
			  .h = input->sizes[2],
			  .w = input->sizes[3],
			  .places = grid->sizes[1] * grid->sizes[2],
			  .input = input->data,
			  .grid = grid->data };

	g.chunks = (g.places + CHUNK - 1) / CHUNK;
	g.taps = p->mode == GRID_BILINEAR ? 4 : p->mode == GRID_NEAREST ? 1 : 16;
	return g;
}

static int cpu_grid_sampler_2d(tensor *out, const tensor *input, const tensor *grid,
			       const struct grid_params *params)
{
	struct grid g = grid_of(input, grid, params);
	int64_t work = CHUNK * (g.channels + 1) * g.taps;

	if (out->dtype != TENSOR_F32 && out->dtype != TENSOR_F64)
		return kernel_no_dtype("grid_sampler_2d", out->dtype, "cpu");
	g.out = out->data;
	if (out->numel)
		parallel_for(0, g.batch * g.chunks, work < ITER_GRAIN ? ITER_GRAIN / work : 1,
			     out->dtype == TENSOR_F32 ? sample_f32 : sample_f64, &g);
	return 0;
}

static int cpu_grid_sampler_2d_backward(tensor *grad_input, tensor *grad_grid, const tensor *grad,
					const tensor *input, const tensor *grid,
					const struct grid_params *params)
{
	struct grid g = grid_of(input, grid, params);

	if (input->dtype != TENSOR_F32 && input->dtype != TENSOR_F64)
		return kernel_no_dtype("grid_sampler_2d_backward", input->dtype, "cpu");
	g.out = grad_input ? grad_input->data : NULL;
	g.grad_grid = grad_grid ? grad_grid->data : NULL;
	g.grad = grad->data;
	if (grad_input)
		memset(grad_input->data, 0, grad_input->numel * itemsize(grad_input));
	if (g.places)
		parallel_for(0, g.batch, 1,
			     input->dtype == TENSOR_F32 ? sample_back_f32 : sample_back_f64, &g);
	return 0;
}

CPU_KERNELS(K(grid_sampler_2d), K(grid_sampler_2d_backward))
