// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Adaptive pooling: the window of output o of n is the elements from floor(o in / n) to before
 * ceil((o + 1) in / n). Windows may overlap, and their sizes differ by one.
 */
#include "kernels/cpu/nn/pool/pool.h"

#include <math.h>

struct adaptive {
	struct pool_shape s;
	void *out;
	int64_t *indices;
	const void *in;
};

/* A window: elements from[d] to before until[d] of each dimension d. */
struct window {
	int64_t from[3], until[3];
};

/* Sets the window along dimension d for output o. */
static inline void set_window(struct window *w, const struct pool_shape *s, int d, int64_t o)
{
	int64_t in = s->in[d], out = s->out[d];

	w->from[d] = o * in / out;
	w->until[d] = ((o + 1) * in + out - 1) / out;
}

/* The window of a row of outputs, without dimension 2. */
static inline struct window row_window(const struct pool_shape *s, int64_t row)
{
	struct window w = { .from = { 0 } };

	set_window(&w, s, 0, row / s->out[1]);
	set_window(&w, s, 1, row % s->out[1]);
	return w;
}

/* The index in the plane of the first element of row (a, b). */
static inline int64_t line_of(const struct pool_shape *s, int64_t a, int64_t b)
{
	return (a * s->in[1] + b) * s->in[2];
}

#define LOOPS_FILE "kernels/cpu/nn/pool/pool_adaptive_loops.h"
#include "kernels/cpu/simd/each_float.h"

static int for_planes(const char *name, struct adaptive *m, enum tensor_dtype dtype,
		      parallel_fn f32, parallel_fn f64)
{
	if (dtype != TENSOR_F32 && dtype != TENSOR_F64)
		return tensor_kernel_no_dtype(name, dtype, "cpu");
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

	return for_planes("adaptive_avg_pool", &m, in->dtype, adaptive_avg_f32, adaptive_avg_f64);
}

static int cpu_adaptive_avg_pool_backward(tensor *out, const tensor *grad,
					  const struct pool_params *params)
{
	struct adaptive m = { .s = pool_shape_of(grad, out, params),
			      .out = out->data,
			      .in = grad->data };

	return for_planes("adaptive_avg_pool_backward", &m, out->dtype, adaptive_spread_f32,
			  adaptive_spread_f64);
}

static int cpu_adaptive_max_pool(tensor *out, tensor *indices, const tensor *self,
				 const struct pool_params *params)
{
	struct adaptive m = { .s = pool_shape_of(out, self, params),
			      .out = out->data,
			      .indices = indices->data,
			      .in = self->data };

	return for_planes("adaptive_max_pool", &m, self->dtype, adaptive_max_f32, adaptive_max_f64);
}

CPU_KERNELS(KERNEL(adaptive_avg_pool), KERNEL(adaptive_avg_pool_backward),
	    KERNEL(adaptive_max_pool))
