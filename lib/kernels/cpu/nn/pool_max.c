// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Maxima of windows and where they are. A chunk of a row of outputs goes through the taps together,
 * in the order in which one output alone would.
 */
#include "kernels/cpu/nn/pool.h"

#include <math.h>

struct max_pool {
	struct pool_shape s;
	void *out;
	int64_t *indices;
	const void *in;
};

/* Where tap k of n outputs from `begin` on is greater than what they have. */
#define TAKE(T, I, STRIDE)                                             \
	IVDEP for (int64_t i = 0; i < n; i++)                          \
	{                                                              \
		T v = row[i * (STRIDE)], b = best[i];                  \
		I here = (I)(first + (I)i * (I)(STRIDE)), was = at[i]; \
		bool take = (v > b) | (v != v);                        \
                                                                       \
		best[i] = take ? v : b;                                \
		at[i] = take ? here : was;                             \
	}

#define MAX_POOL(d, T, LOWEST, I)                                                                 \
	static void take_##d(T *restrict best, I *restrict at, const T *row, int64_t at_first,    \
			     int64_t stride, int64_t n)                                           \
	{                                                                                         \
		I first = (I)at_first;                                                            \
                                                                                                  \
		if (stride == 1)                                                                  \
			TAKE(T, I, 1)                                                             \
		else if (stride == 2)                                                             \
			TAKE(T, I, 2)                                                             \
		else                                                                              \
			TAKE(T, I, stride)                                                        \
	}                                                                                         \
	static void max_chunk_##d(const struct max_pool *m, const T *in, int64_t oz, int64_t oy,  \
				  int64_t begin, int64_t n, T *best, I *at)                       \
	{                                                                                         \
		const struct pool_shape *s = &m->s;                                               \
		const struct pool_params *p = s->p;                                               \
		struct pool_window z = pool_window_of(s, 0, oz), y = pool_window_of(s, 1, oy);    \
		int64_t plane = s->in[1] * s->in[2];                                              \
		int64_t top = (z.start + z.from * p->dilation[0]) * plane +                       \
			      (y.start + y.from * p->dilation[1]) * s->in[2];                     \
                                                                                                  \
		for (int64_t i = 0; i < n; i++) {                                                 \
			struct pool_window x = pool_window_of(s, 2, begin + i);                   \
                                                                                                  \
			best[i] = LOWEST;                                                         \
			at[i] = (I)(top + x.start + x.from * p->dilation[2]);                     \
		}                                                                                 \
		for (int64_t a = z.from; a < z.until; a++)                                        \
			for (int64_t b = y.from; b < y.until; b++) {                              \
				int64_t line = (z.start + a * p->dilation[0]) * plane +           \
					       (y.start + b * p->dilation[1]) * s->in[2];         \
                                                                                                  \
				for (int64_t k = 0; k < p->kernel[2]; k++) {                      \
					int64_t from = begin, until = begin + n, x;               \
                                                                                                  \
					pool_served(s, k, &from, &until);                         \
					x = line + from * p->stride[2] - p->padding[2] +          \
					    k * p->dilation[2];                                   \
					if (from < until)                                         \
						take_##d(best + from - begin, at + from - begin,  \
							 in + x, x, p->stride[2], until - from);  \
				}                                                                 \
			}                                                                         \
	}                                                                                         \
	static void max_rows_##d(int64_t begin, int64_t end, void *ctx)                           \
	{                                                                                         \
		const struct max_pool *m = ctx;                                                   \
		const struct pool_shape *s = &m->s;                                               \
		T best[POOL_CHUNK];                                                               \
		I at[POOL_CHUNK];                                                                 \
                                                                                                  \
		for (int64_t i = begin; i < end; i++) {                                           \
			int64_t oy = i % s->out[1], oz = i / s->out[1] % s->out[0];               \
			const T *in = (const T *)m->in + i / s->out[1] / s->out[0] * s->in_plane; \
                                                                                                  \
			for (int64_t c = 0, n; c < s->out[2]; c += n) {                           \
				n = s->out[2] - c < POOL_CHUNK ? s->out[2] - c : POOL_CHUNK;      \
				max_chunk_##d(m, in, oz, oy, c, n, best, at);                     \
				for (int64_t k = 0; k < n; k++)                                   \
					((T *)m->out)[i * s->out[2] + c + k] = best[k];           \
				for (int64_t k = 0; k < n; k++)                                   \
					m->indices[i * s->out[2] + c + k] = at[k];                \
			}                                                                         \
		}                                                                                 \
	}
MAX_POOL(f32, float, -INFINITY, int32_t)
MAX_POOL(f32_large, float, -INFINITY, int64_t)
MAX_POOL(f64, double, -INFINITY, int64_t)
MAX_POOL(u8, uint8_t, 0, int64_t)
MAX_POOL(i8, int8_t, INT8_MIN, int64_t)
MAX_POOL(i16, int16_t, INT16_MIN, int64_t)
MAX_POOL(i32, int32_t, INT32_MIN, int64_t)
MAX_POOL(u16, uint16_t, 0, int64_t)
MAX_POOL(u32, uint32_t, 0, int64_t)
MAX_POOL(u64, uint64_t, 0, int64_t)
MAX_POOL(i64, int64_t, INT64_MIN, int64_t)

static int cpu_max_pool(tensor *out, tensor *indices, const tensor *self,
			const struct pool_params *params)
{
	static const parallel_fn rows[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = max_rows_##d,
		DTYPES_NUMBER(ENTRY)
#undef ENTRY
	};
	struct max_pool m = { .s = pool_shape_of(out, self, params),
			      .out = out->data,
			      .indices = indices->data,
			      .in = self->data };
	parallel_fn fn = rows[self->dtype];

	if (!fn)
		return kernel_no_dtype("max_pool", self->dtype, "cpu");
	if (self->dtype == TENSOR_F32 && m.s.in_plane > INT32_MAX)
		fn = max_rows_f32_large;
	if (out->numel)
		parallel_for(0, m.s.planes * m.s.out[0] * m.s.out[1], pool_grain(&m.s), fn, &m);
	return 0;
}

/* ---- gradient ---- */

struct max_backward {
	struct pool_shape s;
	void *out;
	const void *grad;
	const int64_t *indices;
	_Atomic int64_t wrong; /* an index out of range */
	_Atomic bool failed;
};

#define MAX_BACKWARD(d, T, D)                                                        \
	static void max_backward_##d(int64_t begin, int64_t end, void *ctx)          \
	{                                                                            \
		struct max_backward *m = ctx;                                        \
		int64_t in = m->s.in_plane, n = m->s.out_plane;                      \
                                                                                     \
		memset((T *)m->out + begin * in, 0, (end - begin) * in * sizeof(T)); \
		for (int64_t i = begin; i < end; i++) {                              \
			T *out = (T *)m->out + i * in;                               \
			const T *grad = (const T *)m->grad + i * n;                  \
			const int64_t *at = m->indices + i * n;                      \
                                                                                     \
			for (int64_t k = 0; k < n; k++) {                            \
				if (unlikely((uint64_t)at[k] >= (uint64_t)in)) {     \
					m->wrong = at[k];                            \
					m->failed = true;                            \
					return;                                      \
				}                                                    \
				out[at[k]] += grad[k];                               \
			}                                                            \
		}                                                                    \
	}
DTYPES_FLOAT(MAX_BACKWARD)

static int cpu_max_pool_backward(tensor *out, const tensor *grad, const tensor *indices,
				 const struct pool_params *params)
{
	struct max_backward m = { .s = pool_shape_of(grad, out, params),
				  .out = out->data,
				  .grad = grad->data,
				  .indices = indices->data };

	if (out->dtype != TENSOR_F32 && out->dtype != TENSOR_F64)
		return kernel_no_dtype("max_pool_backward", out->dtype, "cpu");
	if (out->numel)
		parallel_for(0, m.s.planes, pool_plane_grain(&m.s),
			     out->dtype == TENSOR_F32 ? max_backward_f32 : max_backward_f64, &m);
	if (m.failed)
		return tensor_fail(EINVAL,
				   "max_pool_backward: index %lld is out of range for planes "
				   "of %lld elements",
				   (long long)m.wrong, (long long)m.s.in_plane);
	return 0;
}

CPU_KERNELS(K(max_pool), K(max_pool_backward))
