// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Adaptive pooling: output o of n sees the input's elements from floor(o in / n) to before
 * ceil((o + 1) in / n), so that windows may overlap and differ in size by one.
 */
#include "kernels/cpu/nn/pool.h"

#include <math.h>

struct adaptive {
	struct pool_shape s;
	void *out;
	int64_t *indices;
	const void *in;
};

struct span {
	int64_t from, until;
};

static struct span span_of(const struct pool_shape *s, int d, int64_t o)
{
	int64_t in = s->in[d], out = s->out[d];

	return (struct span){ o * in / out, ((o + 1) * in + out - 1) / out };
}

/* For each output of plane i: its spans z, y, x and its position k. */
#define EACH_OUTPUT(BODY)                                                                 \
	for (int64_t oz = 0, k = 0; oz < s->out[0]; oz++)                                 \
		for (int64_t oy = 0; oy < s->out[1]; oy++)                                \
			for (int64_t ox = 0; ox < s->out[2]; ox++, k++) {                 \
				struct span z = span_of(s, 0, oz), y = span_of(s, 1, oy); \
				struct span x = span_of(s, 2, ox);                        \
                                                                                          \
				BODY                                                      \
			}

/* For each element of a window: its position `at` in the plane. */
#define EACH_ELEMENT(BODY)                                                            \
	for (int64_t a = z.from; a < z.until; a++)                                    \
		for (int64_t b = y.from; b < y.until; b++) {                          \
			int64_t line = (a * s->in[1] + b) * s->in[2];                 \
                                                                                      \
			for (int64_t at = line + x.from; at < line + x.until; at++) { \
				BODY                                                  \
			}                                                             \
		}

#define ADAPTIVE_AVG(d, T, D)                                                                 \
	static void adaptive_avg_##d(int64_t begin, int64_t end, void *ctx)                   \
	{                                                                                     \
		const struct adaptive *m = ctx;                                               \
		const struct pool_shape *s = &m->s;                                           \
                                                                                              \
		for (int64_t i = begin; i < end; i++) {                                       \
			const T *in = (const T *)m->in + i * s->in_plane;                     \
			T *out = (T *)m->out + i * s->out_plane;                              \
                                                                                              \
			EACH_OUTPUT(T sum = 0; EACH_ELEMENT(sum += in[at];)                   \
						       out[k] = sum / (T)(z.until - z.from) / \
								(T)(y.until - y.from) /       \
								(T)(x.until - x.from);)       \
		}                                                                             \
	}                                                                                     \
	static void adaptive_spread_##d(int64_t begin, int64_t end, void *ctx)                \
	{                                                                                     \
		const struct adaptive *m = ctx;                                               \
		const struct pool_shape *s = &m->s;                                           \
                                                                                              \
		memset((T *)m->out + begin * s->in_plane, 0,                                  \
		       (end - begin) * s->in_plane * sizeof(T));                              \
		for (int64_t i = begin; i < end; i++) {                                       \
			T *out = (T *)m->out + i * s->in_plane;                               \
			const T *grad = (const T *)m->in + i * s->out_plane;                  \
                                                                                              \
			EACH_OUTPUT(T part = grad[k] / (T)(z.until - z.from) /                \
					     (T)(y.until - y.from) / (T)(x.until - x.from);   \
				    EACH_ELEMENT(out[at] += part;))                           \
		}                                                                             \
	}
DTYPES_FLOAT(ADAPTIVE_AVG)

#define ADAPTIVE_MAX(d, T, LOWEST)                                                            \
	static void adaptive_max_##d(int64_t begin, int64_t end, void *ctx)                   \
	{                                                                                     \
		const struct adaptive *m = ctx;                                               \
		const struct pool_shape *s = &m->s;                                           \
                                                                                              \
		for (int64_t i = begin; i < end; i++) {                                       \
			const T *in = (const T *)m->in + i * s->in_plane;                     \
			T *out = (T *)m->out + i * s->out_plane;                              \
			int64_t *indices = m->indices + i * s->out_plane;                     \
                                                                                              \
			EACH_OUTPUT(T best = LOWEST;                                          \
				    int64_t where =                                           \
					    (z.from * s->in[1] + y.from) * s->in[2] + x.from; \
				    EACH_ELEMENT(if (in[at] > best || in[at] != in[at]) {     \
					    best = in[at];                                    \
					    where = at;                                       \
				    }) out[k] = best;                                         \
				    indices[k] = where;)                                      \
		}                                                                             \
	}
ADAPTIVE_MAX(f32, float, -INFINITY)
ADAPTIVE_MAX(f64, double, -INFINITY)

static int run(const char *name, struct adaptive *m, enum tensor_dtype dtype, parallel_fn f32,
	       parallel_fn f64)
{
	if (dtype != TENSOR_F32 && dtype != TENSOR_F64)
		return kernel_no_dtype(name, dtype, "cpu");
	if (m->s.planes > 0 && m->s.in_plane > 0)
		parallel_for(0, m->s.planes, pool_plane_grain(&m->s),
			     dtype == TENSOR_F32 ? f32 : f64, m);
	return 0;
}

static int cpu_adaptive_avg_pool(tensor *out, const tensor *in, const struct pool_params *params)
{
	struct adaptive m = { .s = pool_shape_of(out, in, params),
			      .out = out->data,
			      .in = in->data };

	return run("adaptive_avg_pool", &m, in->dtype, adaptive_avg_f32, adaptive_avg_f64);
}

static int cpu_adaptive_avg_pool_backward(tensor *out, const tensor *grad,
					  const struct pool_params *params)
{
	struct adaptive m = { .s = pool_shape_of(grad, out, params),
			      .out = out->data,
			      .in = grad->data };

	return run("adaptive_avg_pool_backward", &m, out->dtype, adaptive_spread_f32,
		   adaptive_spread_f64);
}

static int cpu_adaptive_max_pool(tensor *out, tensor *indices, const tensor *self,
				 const struct pool_params *params)
{
	struct adaptive m = { .s = pool_shape_of(out, self, params),
			      .out = out->data,
			      .indices = indices->data,
			      .in = self->data };

	return run("adaptive_max_pool", &m, self->dtype, adaptive_max_f32, adaptive_max_f64);
}

CPU_KERNELS(K(adaptive_avg_pool), K(adaptive_avg_pool_backward), K(adaptive_max_pool))
