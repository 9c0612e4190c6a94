// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Averages of windows. A chunk of a row of outputs goes through the taps together; in the gradient
 * each tap adds to elements of a row that no other output of the chunk has at that moment, last
 * tap first, so that an element's parts come in the order of the outputs.
 */
#include "kernels/cpu/nn/pool.h"

struct avg_pool {
	struct pool_shape s;
	void *out;
	const void *in;
};

/* Elements that an output's window is divided by, along one dimension. */
static int64_t counted(const struct pool_shape *s, int d, int64_t o)
{
	struct pool_window w = pool_window_of(s, d, o);
	int64_t left = s->in[d] + s->p->padding[d] - w.start;

	if (!s->p->count_include_pad)
		return w.until - w.from;
	return left < s->p->kernel[d] ? left : s->p->kernel[d];
}

/* What outputs begin to begin + n are divided by; 1 where there is nothing to divide. */
static void divisors(const struct pool_shape *s, int64_t oz, int64_t oy, int64_t begin, int64_t n,
		     int64_t *divisor)
{
	int64_t rows = counted(s, 0, oz) * counted(s, 1, oy);

	for (int64_t i = 0; i < n; i++) {
		divisor[i] = s->p->divisor ? s->p->divisor : rows * counted(s, 2, begin + i);
		if (!divisor[i])
			divisor[i] = 1;
	}
}

#define EACH_STRIDE(LOOP)     \
	if (stride == 1)      \
		LOOP(1)       \
	else if (stride == 2) \
		LOOP(2)       \
	else                  \
		LOOP(stride)
#define GATHER(STRIDE) IVDEP for (int64_t i = 0; i < n; i++) sum[i] += row[i * (STRIDE)];
#define SPREAD(STRIDE) IVDEP for (int64_t i = 0; i < n; i++) row[i * (STRIDE)] += part[i];

#define AVG_POOL(d, T)                                                                             \
	static void gather_##d(T *restrict sum, const T *restrict row, int64_t stride, int64_t n)  \
	{                                                                                          \
		EACH_STRIDE(GATHER)                                                                \
	}                                                                                          \
	static void avg_chunk_##d(const struct pool_shape *s, const T *in, int64_t oz, int64_t oy, \
				  int64_t begin, int64_t n, T *sum)                                \
	{                                                                                          \
		struct pool_window z = pool_window_of(s, 0, oz), y = pool_window_of(s, 1, oy);     \
		const struct pool_params *p = s->p;                                                \
		int64_t divisor[POOL_CHUNK];                                                       \
                                                                                                   \
		memset(sum, 0, n * sizeof(T));                                                     \
		for (int64_t a = z.from; a < z.until; a++)                                         \
			for (int64_t b = y.from; b < y.until; b++)                                 \
				for (int64_t k = 0; k < p->kernel[2]; k++) {                       \
					int64_t from = begin, until = begin + n;                   \
                                                                                                   \
					pool_served(s, k, &from, &until);                          \
					if (from < until)                                          \
						gather_##d(sum + from - begin,                     \
							   in +                                    \
								   ((z.start + a) * s->in[1] +     \
								    y.start + b) *                 \
									   s->in[2] +              \
								   from * p->stride[2] -           \
								   p->padding[2] + k,              \
							   p->stride[2], until - from);            \
				}                                                                  \
		divisors(s, oz, oy, begin, n, divisor);                                            \
		for (int64_t i = 0; i < n; i++)                                                    \
			sum[i] = sum[i] / (T)divisor[i];                                           \
	}                                                                                          \
	static void avg_rows_##d(int64_t begin, int64_t end, void *ctx)                            \
	{                                                                                          \
		const struct avg_pool *m = ctx;                                                    \
		const struct pool_shape *s = &m->s;                                                \
                                                                                                   \
		for (int64_t i = begin; i < end; i++) {                                            \
			int64_t oy = i % s->out[1], oz = i / s->out[1] % s->out[0];                \
			const T *in = (const T *)m->in + i / s->out[1] / s->out[0] * s->in_plane;  \
			T *out = (T *)m->out + i * s->out[2];                                      \
                                                                                                   \
			for (int64_t c = 0, n; c < s->out[2]; c += n) {                            \
				n = s->out[2] - c < POOL_CHUNK ? s->out[2] - c : POOL_CHUNK;       \
				avg_chunk_##d(s, in, oz, oy, c, n, out + c);                       \
			}                                                                          \
		}                                                                                  \
	}

#define AVG_BACKWARD(d, T)                                                                         \
	static void spread_##d(T *restrict row, const T *restrict part, int64_t stride, int64_t n) \
	{                                                                                          \
		EACH_STRIDE(SPREAD)                                                                \
	}                                                                                          \
	static void spread_chunk_##d(const struct pool_shape *s, T *out, const T *grad,            \
				     int64_t oz, int64_t oy, int64_t begin, int64_t n)             \
	{                                                                                          \
		struct pool_window z = pool_window_of(s, 0, oz), y = pool_window_of(s, 1, oy);     \
		const struct pool_params *p = s->p;                                                \
		int64_t divisor[POOL_CHUNK];                                                       \
		T part[POOL_CHUNK];                                                                \
                                                                                                   \
		divisors(s, oz, oy, begin, n, divisor);                                            \
		for (int64_t i = 0; i < n; i++)                                                    \
			part[i] = grad[i] / (T)divisor[i];                                         \
		for (int64_t a = z.from; a < z.until; a++)                                         \
			for (int64_t b = y.from; b < y.until; b++)                                 \
				for (int64_t k = p->kernel[2] - 1; k >= 0; k--) {                  \
					int64_t from = begin, until = begin + n;                   \
                                                                                                   \
					pool_served(s, k, &from, &until);                          \
					if (from < until)                                          \
						spread_##d(out +                                   \
								   ((z.start + a) * s->in[1] +     \
								    y.start + b) *                 \
									   s->in[2] +              \
								   from * p->stride[2] -           \
								   p->padding[2] + k,              \
							   part + from - begin, p->stride[2],      \
							   until - from);                          \
				}                                                                  \
	}                                                                                          \
	static void spread_planes_##d(int64_t begin, int64_t end, void *ctx)                       \
	{                                                                                          \
		const struct avg_pool *m = ctx;                                                    \
		const struct pool_shape *s = &m->s;                                                \
		int64_t rows = s->out[0] * s->out[1];                                              \
                                                                                                   \
		memset((T *)m->out + begin * s->in_plane, 0,                                       \
		       (end - begin) * s->in_plane * sizeof(T));                                   \
		for (int64_t i = begin * rows; i < end * rows; i++) {                              \
			T *out = (T *)m->out + i / rows * s->in_plane;                             \
			const T *grad = (const T *)m->in + i * s->out[2];                          \
                                                                                                   \
			for (int64_t c = 0, n; c < s->out[2]; c += n) {                            \
				n = s->out[2] - c < POOL_CHUNK ? s->out[2] - c : POOL_CHUNK;       \
				spread_chunk_##d(s, out, grad + c, i / s->out[1] % s->out[0],      \
						 i % s->out[1], c, n);                             \
			}                                                                          \
		}                                                                                  \
	}
AVG_POOL(f32, float)
AVG_POOL(f64, double)
AVG_POOL(i64, int64_t)
AVG_BACKWARD(f32, float)
AVG_BACKWARD(f64, double)

/* The windows of averages are not dilated. */
static struct pool_params plain(const struct pool_params *params)
{
	struct pool_params p = *params;

	p.dilation[0] = p.dilation[1] = p.dilation[2] = 1;
	return p;
}

static int cpu_avg_pool(tensor *out, const tensor *in, const struct pool_params *params)
{
	struct pool_params p = plain(params);
	struct avg_pool m = { .s = pool_shape_of(out, in, &p), .out = out->data, .in = in->data };
	parallel_fn fn = in->dtype == TENSOR_F32 ? avg_rows_f32 :
			 in->dtype == TENSOR_F64 ? avg_rows_f64 :
			 in->dtype == TENSOR_I64 ? avg_rows_i64 :
						   NULL;

	if (!fn)
		return kernel_no_dtype("avg_pool", in->dtype, "cpu");
	if (out->numel)
		parallel_for(0, m.s.planes * m.s.out[0] * m.s.out[1], pool_grain(&m.s), fn, &m);
	return 0;
}

static int cpu_avg_pool_backward(tensor *out, const tensor *grad, const struct pool_params *params)
{
	struct pool_params p = plain(params);
	struct avg_pool m = { .s = pool_shape_of(grad, out, &p),
			      .out = out->data,
			      .in = grad->data };

	if (out->dtype != TENSOR_F32 && out->dtype != TENSOR_F64)
		return kernel_no_dtype("avg_pool_backward", out->dtype, "cpu");
	if (out->numel)
		parallel_for(0, m.s.planes, pool_plane_grain(&m.s),
			     out->dtype == TENSOR_F32 ? spread_planes_f32 : spread_planes_f64, &m);
	return 0;
}

CPU_KERNELS(K(avg_pool), K(avg_pool_backward))
