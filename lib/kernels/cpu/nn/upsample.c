// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Interpolation, one dimension after the other: each output position of a dimension is a sum of
 * one, two or four input positions with weights that a table has. Rows are interpolated along the
 * last dimension first, then added up for the others; the gradient goes the same way back.
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/spatial.h"

#include "iter/parallel.h"

#include <math.h>

#define TAPS 4

struct upsample {
	int64_t planes, in[3], out[3];
	int taps;
	int64_t *at[3];	 /* [out * taps] */
	void *weight[3]; /* the same, of the dtype */
	void *to;
	const void *from;
	_Atomic bool failed;
};

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The whole part of a position, in range whatever it is: a scale may make it infinite, or no number. */
static int64_t position(double x, int64_t least, int64_t in)
{
	return x >= (double)(in - 1) ? in - 1 : x >= (double)least ? (int64_t)floor(x) : least;
}

/* The tables of a dimension, in the arithmetic of the dtype. */
#define TABLE(d, T)                                                                            \
	static T step_##d(int64_t in, int64_t out, bool align, double scale)                   \
	{                                                                                      \
		if (align)                                                                     \
			return out > 1 ? (T)(in - 1) / (T)(out - 1) : 0;                       \
		return scale > 0 ? (T)(1 / scale) : (T)in / (T)out;                            \
	}                                                                                      \
	static void nearest_##d(int64_t *at, T *w, int64_t in, int64_t out,                    \
				const struct upsample_params *p, double scale)                 \
	{                                                                                      \
		T step = step_##d(in, out, false, scale);                                      \
		bool exact = p->mode == UPSAMPLE_NEAREST_EXACT;                                \
                                                                                               \
		for (int64_t i = 0; i < out; i++) {                                            \
			T x = exact ? step * ((T)i + (T)0.5) - (T)0.5 : step * (T)i;           \
                                                                                               \
			x = exact ? MAX(x, 0) + (T)0.5 : x;                                    \
			at[i] = position((float)x, 0, in);                                     \
			w[i] = 1;                                                              \
		}                                                                              \
	}                                                                                      \
	/* Where output i lies: the input position before it, and how far beyond that. */      \
	static T place_##d(int64_t i, T step, int64_t in, const struct upsample_params *p,     \
			   int64_t *at)                                                        \
	{                                                                                      \
		T x = p->align_corners ? step * (T)i : step * ((T)i + (T)0.5) - (T)0.5;        \
                                                                                               \
		if (x < 0 && p->mode == UPSAMPLE_LINEAR)                                       \
			x = 0;                                                                 \
		*at = position((float)x, p->mode == UPSAMPLE_LINEAR ? 0 : -1, in);             \
		x -= (T)*at;                                                                   \
		return MIN(MAX(x, 0), 1);                                                      \
	}                                                                                      \
	static void linear_##d(int64_t *at, T *w, int64_t in, int64_t out,                     \
			       const struct upsample_params *p, double scale)                  \
	{                                                                                      \
		T step = step_##d(in, out, p->align_corners, scale);                           \
                                                                                               \
		for (int64_t i = 0; i < out; i++, at += 2, w += 2) {                           \
			w[1] = in == out ? (at[0] = i, 0) : place_##d(i, step, in, p, &at[0]); \
			w[0] = 1 - w[1];                                                       \
			at[1] = in == out ? i : MIN(at[0] + 1, in - 1);                        \
		}                                                                              \
	}                                                                                      \
	static void cubic_##d(int64_t *at, T *w, int64_t in, int64_t out,                      \
			      const struct upsample_params *p, double scale)                   \
	{                                                                                      \
		T step = step_##d(in, out, p->align_corners, scale), a = (T)-0.75;             \
                                                                                               \
		for (int64_t i = 0; i < out; i++, at += 4, w += 4) {                           \
			int64_t first;                                                         \
			T t = place_##d(i, step, in, p, &first), x;                            \
                                                                                               \
			x = t + 1;                                                             \
			w[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;                      \
			w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;                            \
			x = 1 - t;                                                             \
			w[2] = ((a + 2) * x - (a + 3)) * x * x + 1;                            \
			x = x + 1;                                                             \
			w[3] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;                      \
			for (int k = 0; k < 4; k++)                                            \
				at[k] = MIN(MAX(first - 1 + k, 0), in - 1);                    \
		}                                                                              \
	}                                                                                      \
	static void table_##d(struct upsample *u, int k, const struct upsample_params *p)      \
	{                                                                                      \
		double scale = p->scale[k];                                                    \
                                                                                               \
		if (u->taps == 1)                                                              \
			nearest_##d(u->at[k], u->weight[k], u->in[k], u->out[k], p, scale);    \
		else if (u->taps == 2)                                                         \
			linear_##d(u->at[k], u->weight[k], u->in[k], u->out[k], p, scale);     \
		else                                                                           \
			cubic_##d(u->at[k], u->weight[k], u->in[k], u->out[k], p, scale);      \
	}

/* A dimension that is not interpolated has one tap, with weight 1. */
static int64_t taps_of(const struct upsample *u, int d)
{
	return u->in[d] == 1 && u->out[d] == 1 ? 1 : u->taps;
}

#define ROWS(d, T)                                                                                \
	static void row_##d(T *to, const T *from, const struct upsample *u)                       \
	{                                                                                         \
		const int64_t *at = u->at[2];                                                     \
		const T *w = u->weight[2];                                                        \
		int64_t n = u->out[2];                                                            \
                                                                                                  \
		if (u->taps == 1)                                                                 \
			for (int64_t i = 0; i < n; i++)                                           \
				to[i] = from[at[i]];                                              \
		else if (u->taps == 2)                                                            \
			for (int64_t i = 0; i < n; i++)                                           \
				to[i] = w[2 * i] * from[at[2 * i]] +                              \
					w[2 * i + 1] * from[at[2 * i + 1]];                       \
		else                                                                              \
			for (int64_t i = 0; i < n; i++)                                           \
				to[i] = w[4 * i] * from[at[4 * i]] +                              \
					w[4 * i + 1] * from[at[4 * i + 1]] +                      \
					w[4 * i + 2] * from[at[4 * i + 2]] +                      \
					w[4 * i + 3] * from[at[4 * i + 3]];                       \
	}                                                                                         \
	static void row_back_##d(T *to, const T *from, const struct upsample *u)                  \
	{                                                                                         \
		const int64_t *at = u->at[2];                                                     \
		const T *w = u->weight[2];                                                        \
                                                                                                  \
		for (int64_t i = 0; i < u->out[2]; i++)                                           \
			for (int k = 0; k < u->taps; k++, at++, w++)                              \
				to[*at] += *w * from[i];                                          \
	}                                                                                         \
	static void add_row_##d(T *restrict to, const T *restrict from, T w, int64_t n,           \
				bool first)                                                       \
	{                                                                                         \
		if (first)                                                                        \
			for (int64_t i = 0; i < n; i++)                                           \
				to[i] = w * from[i];                                              \
		else                                                                              \
			for (int64_t i = 0; i < n; i++)                                           \
				to[i] += w * from[i];                                             \
	}                                                                                         \
	/* Tap k of tz * ty of row i of the output: its weight, and its row of the input. */      \
	static T weight_##d(const struct upsample *u, int64_t i, int64_t k, int64_t tz,           \
			    int64_t ty, int64_t *row)                                             \
	{                                                                                         \
		int64_t z = i / u->out[1] * u->taps + k / ty;                                     \
		int64_t y = i % u->out[1] * u->taps + k % ty;                                     \
		T wz = tz < u->taps ? 1 : ((const T *)u->weight[0])[z];                           \
		T wy = ty < u->taps ? 1 : ((const T *)u->weight[1])[y];                           \
                                                                                                  \
		*row = u->at[0][z] * u->in[1] + u->at[1][y];                                      \
		return wz * wy;                                                                   \
	}                                                                                         \
	static void plane_##d(T *to, const T *from, T *rows, const struct upsample *u)            \
	{                                                                                         \
		int64_t n = u->out[2], tz = taps_of(u, 0), ty = taps_of(u, 1);                    \
                                                                                                  \
		for (int64_t i = 0; i < u->in[0] * u->in[1]; i++)                                 \
			row_##d(rows + i * n, from + i * u->in[2], u);                            \
		for (int64_t i = 0; i < u->out[0] * u->out[1]; i++, to += n)                      \
			for (int64_t k = 0; k < tz * ty; k++) {                                   \
				int64_t row;                                                      \
				T w = weight_##d(u, i, k, tz, ty, &row);                          \
                                                                                                  \
				add_row_##d(to, rows + row * n, w, n, !k);                        \
			}                                                                         \
	}                                                                                         \
	static void plane_back_##d(T *to, const T *from, T *rows, const struct upsample *u)       \
	{                                                                                         \
		int64_t n = u->out[2], lines = u->in[0] * u->in[1];                               \
		int64_t tz = taps_of(u, 0), ty = taps_of(u, 1);                                   \
                                                                                                  \
		memset(rows, 0, lines *n * sizeof(T));                                            \
		memset(to, 0, lines * u->in[2] * sizeof(T));                                      \
		for (int64_t i = 0; i < u->out[0] * u->out[1]; i++, from += n)                    \
			for (int64_t k = 0; k < tz * ty; k++) {                                   \
				int64_t row;                                                      \
				T w = weight_##d(u, i, k, tz, ty, &row);                          \
                                                                                                  \
				add_row_##d(rows + row * n, from, w, n, false);                   \
			}                                                                         \
		for (int64_t i = 0; i < lines; i++)                                               \
			row_back_##d(to + i * u->in[2], rows + i * n, u);                         \
	}                                                                                         \
	static void run_##d(struct upsample *u, int64_t begin, int64_t end, bool back)            \
	{                                                                                         \
		int64_t in = u->in[0] * u->in[1] * u->in[2];                                      \
		int64_t out = u->out[0] * u->out[1] * u->out[2];                                  \
		struct tensor_storage *rows = storage_alloc(                                      \
			TENSOR_DEVICE_CPU, u->in[0] * u->in[1] * u->out[2] * sizeof(T), false);   \
                                                                                                  \
		if (!rows) {                                                                      \
			u->failed = true;                                                         \
			return;                                                                   \
		}                                                                                 \
		for (int64_t i = begin; i < end; i++)                                             \
			if (back)                                                                 \
				plane_back_##d((T *)u->to + i * in, (const T *)u->from + i * out, \
					       rows->data, u);                                    \
			else                                                                      \
				plane_##d((T *)u->to + i * out, (const T *)u->from + i * in,      \
					  rows->data, u);                                         \
		storage_put(rows);                                                                \
	}                                                                                         \
	static void forward_##d(int64_t begin, int64_t end, void *ctx)                            \
	{                                                                                         \
		run_##d(ctx, begin, end, false);                                                  \
	}                                                                                         \
	static void backward_##d(int64_t begin, int64_t end, void *ctx)                           \
	{                                                                                         \
		run_##d(ctx, begin, end, true);                                                   \
	}
TABLE(f32, float)
TABLE(f64, double)
ROWS(f32, float)
ROWS(f64, double)

/* Nearest: rows of a plane are selected, then elements of a row; a row that is the one before is
 * copied from there. */
#define SELECT(d, T)                                                                               \
	static void select_##d(int64_t begin, int64_t end, void *ctx)                              \
	{                                                                                          \
		const struct upsample *u = ctx;                                                    \
		int64_t in = u->in[0] * u->in[1] * u->in[2], rows = u->out[0] * u->out[1];         \
		int64_t n = u->out[2];                                                             \
		const int64_t *at = u->at[2];                                                      \
		T *to = (T *)u->to + begin * rows * n;                                             \
                                                                                                   \
		for (int64_t i = begin * rows, last = -1; i < end * rows; i++, to += n) {          \
			int64_t row = i / rows * in + (u->at[0][i % rows / u->out[1]] * u->in[1] + \
						       u->at[1][i % u->out[1]]) *                  \
							      u->in[2];                            \
			const T *from = (const T *)u->from + row;                                  \
                                                                                                   \
			if (row == last)                                                           \
				memcpy(to, to - n, n * sizeof(T));                                 \
			else                                                                       \
				for (int64_t k = 0; k < n; k++)                                    \
					to[k] = from[at[k]];                                       \
			last = row;                                                                \
		}                                                                                  \
	}
SELECT(8, uint8_t)
SELECT(32, uint32_t)
SELECT(64, uint64_t)

static int64_t size_of(const tensor *t, int d, int spatial)
{
	return d < 3 - spatial ? 1 : t->sizes[t->ndim - 3 + d];
}

/* `in` and `out` of the forward direction. */
static int run(const char *name, tensor *to, const tensor *from, const tensor *in,
	       const tensor *out, const struct upsample_params *p, bool back)
{
	struct upsample u = { .planes = in->sizes[0] * in->sizes[1],
			      .to = to->data,
			      .from = from->data };
	bool wide = in->dtype == TENSOR_F64;
	int64_t n = 0, work = 1;
	struct tensor_storage *table;
	parallel_fn fn;

	u.taps = p->mode == UPSAMPLE_CUBIC ? 4 : p->mode == UPSAMPLE_LINEAR ? 2 : 1;
	if (in->dtype != TENSOR_F32 && !wide && (in->dtype != TENSOR_U8 || u.taps > 1 || back))
		return kernel_no_dtype(name, in->dtype, "cpu");
	if (!u.planes)
		return 0;
	for (int d = 0; d < 3; d++) {
		u.in[d] = size_of(in, d, p->spatial);
		u.out[d] = size_of(out, d, p->spatial);
		n += u.out[d] * u.taps;
		work *= u.in[d] > u.out[d] ? u.in[d] : u.out[d];
	}
	table = storage_alloc(TENSOR_DEVICE_CPU, 2 * n * sizeof(int64_t), false);
	if (!table)
		return -thread()->error.code;
	u.at[0] = table->data;
	u.weight[0] = u.at[0] + n;
	for (int d = 0; d < 3; d++) {
		if (d) {
			u.at[d] = u.at[d - 1] + u.out[d - 1] * u.taps;
			u.weight[d] = (int64_t *)u.weight[d - 1] + u.out[d - 1] * u.taps;
		}
		wide ? table_f64(&u, d, p) : table_f32(&u, d, p);
	}
	fn = back ? (wide ? backward_f64 : backward_f32) : wide ? forward_f64 : forward_f32;
	if (!back && u.taps == 1)
		fn = wide ? select_64 : in->dtype == TENSOR_U8 ? select_8 : select_32;
	parallel_for(0, u.planes, work < ITER_GRAIN ? ITER_GRAIN / work : 1, fn, &u);
	storage_put(table);
	return u.failed ? tensor_fail(ENOMEM, "%s: no memory for rows", name) : 0;
}

static int cpu_upsample(tensor *out, const tensor *in, const struct upsample_params *params)
{
	return run("upsample", out, in, in, out, params, false);
}

static int cpu_upsample_backward(tensor *out, const tensor *grad,
				 const struct upsample_params *params)
{
	return run("upsample_backward", out, grad, out, grad, params, true);
}

CPU_KERNELS(K(upsample), K(upsample_backward))
