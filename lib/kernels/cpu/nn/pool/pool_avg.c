// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * avg_pool and its gradient. The outputs of a chunk of a row process one tap after the other. In
 * the gradient one tap of the chunk's outputs addresses different elements, so the loop over
 * outputs can be vectorized; the last tap comes first, so that the parts of an element are added in
 * the order of the outputs.
 */
#include "kernels/cpu/nn/pool/pool.h"
#include "kernels/cpu/simd/vec.h"

#define POOL_COLUMNS 1024 /* elements of rows that are added before the windows of a row are */
#define POOL_FEW     16	  /* outputs that are summed one by one */

struct avg_pool {
	struct pool_shape s;
	void *out;
	const void *in;
};

/* The divisor of output o along dimension d. */
static int64_t divisor_along(const struct pool_shape *s, int d, int64_t o)
{
	struct pool_window w = pool_window_of(s, d, o);
	int64_t left = s->in[d] + s->p->padding[d] - w.start;

	if (!s->p->count_include_pad)
		return w.until - w.from;
	return left < s->p->kernel[d] ? left : s->p->kernel[d];
}

/* The divisor of an output, of divisors along its dimensions; 1 for an empty window. */
static inline int64_t divisor_of(const struct pool_shape *s, int64_t rows, int64_t columns)
{
	int64_t divisor = s->p->divisor ? s->p->divisor : rows * columns;

	return divisor ? divisor : 1;
}

/* The divisors of outputs begin to begin + n. */
static void divisors(const struct pool_shape *s, int64_t oz, int64_t oy, int64_t begin, int64_t n,
		     int64_t *divisor)
{
	int64_t rows = divisor_along(s, 0, oz) * divisor_along(s, 1, oy);

	for (int64_t i = 0; i < n; i++)
		divisor[i] = divisor_of(s, rows, divisor_along(s, 2, begin + i));
}

#define LOOPS_FILE "kernels/cpu/nn/pool/pool_avg_loops.h"
/* Loads of parts of a vector take a loop where there are no masks. */
#if VEC_BYTES > 16
#define POOL_VECTORS
#endif
#define QUOTIENT(x, y) ((x) / (y))
#include "kernels/cpu/simd/each_float.h"
#undef POOL_VECTORS
#undef QUOTIENT
/* The processor traps INT64_MIN / -1. */
#define QUOTIENT(x, y) ((y) == -1 ? -(x) : (x) / (y))
#define T	       int64_t
#define SUFFIX	       i64
#include LOOPS_FILE
#undef T
#undef SUFFIX
#undef LOOPS_FILE
#undef QUOTIENT

#define LOOPS_FILE "kernels/cpu/nn/pool/pool_avg_backward_loops.h"
#include "kernels/cpu/simd/each_float.h"

/* avg_pool has no dilation; params->dilation is not set. */
static struct pool_params without_dilation(const struct pool_params *params)
{
	struct pool_params p = *params;

	p.dilation[0] = p.dilation[1] = p.dilation[2] = 1;
	return p;
}

static int cpu_avg_pool(tensor *out, const tensor *in, const struct pool_params *params)
{
	struct pool_params p = without_dilation(params);
	struct avg_pool m = { .s = pool_shape_of(out, in, &p), .out = out->data, .in = in->data };
	parallel_fn fn = in->dtype == TENSOR_F32 ? avg_rows_f32 :
			 in->dtype == TENSOR_F64 ? avg_rows_f64 :
			 in->dtype == TENSOR_I64 ? avg_rows_i64 :
						   NULL;

	if (!fn)
		return tensor_kernel_no_dtype("avg_pool", in->dtype, "cpu");
	if (out->numel)
		parallel_for(0, m.s.planes * m.s.out[0] * m.s.out[1], pool_grain(&m.s), fn, &m);
	return 0;
}

static int cpu_avg_pool_backward(tensor *out, const tensor *grad, const struct pool_params *params)
{
	struct pool_params p = without_dilation(params);
	struct avg_pool m = { .s = pool_shape_of(grad, out, &p),
			      .out = out->data,
			      .in = grad->data };

	if (out->dtype != TENSOR_F32 && out->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("avg_pool_backward", out->dtype, "cpu");
	if (out->numel)
		parallel_for(0, m.s.planes, pool_plane_grain(&m.s),
			     out->dtype == TENSOR_F32 ? spread_planes_f32 : spread_planes_f64, &m);
	return 0;
}

CPU_KERNELS(KERNEL(avg_pool), KERNEL(avg_pool_backward))
