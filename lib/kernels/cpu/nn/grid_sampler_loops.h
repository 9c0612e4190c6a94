/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of grid_sampler.c for the element type T (no include guard; see each_float.h):
 * F(sample) and F(sample_backward).
 */
#define F(name) CPU_PASTE(name, SUFFIX)

#include "kernels/formula/grid_sampler.h"
CUBIC_WEIGHTS(CPU_PASTE(vec, SUFFIX), F(cubic_vectors))

/* The taps of a chunk of places: element, weight, and the derivatives of the weight by the grid. */
struct F(taps) {
	int64_t at[TAPS][CHUNK];
	T w[TAPS][CHUNK];
	T dx[TAPS][CHUNK], dy[TAPS][CHUNK];
};

/* The taps of place i, whose grid coordinates are at[0] and at[1]. */
static void F(place)(const struct grid *g, struct F(taps) * t, int64_t i, const T *at)
{
	struct F(grid_tap) taps[TAPS];
	int n = F(taps_of)(g->p, g->h, g->w, at, taps);

	for (int k = 0; k < n; k++) {
		t->at[k][i] = taps[k].at;
		t->w[k][i] = taps[k].w;
		t->dx[k][i] = taps[k].dx;
		t->dy[k][i] = taps[k].dy;
	}
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
