/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of avg_pool_backward for elements of type T (no include guard; see each_float.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

/* row[i * stride] += part[i]; vectorized for constant strides. */
static inline __attribute__((always_inline)) void
F(spread_stepped)(T *restrict row, const T *restrict part, int64_t stride, int64_t n)
{
	IVDEP for (int64_t i = 0; i < n; i++) row[i * stride] += part[i];
}

static void F(spread)(T *restrict row, const T *restrict part, int64_t stride, int64_t n)
{
	if (stride == 1)
		F(spread_stepped)(row, part, 1, n);
	else if (stride == 2)
		F(spread_stepped)(row, part, 2, n);
	else
		F(spread_stepped)(row, part, stride, n);
}

/* Adds the gradients of outputs begin to begin + n of row (oz, oy) to their windows. */
static void F(spread_chunk)(const struct pool_shape *s, T *out, const T *grad, int64_t oz,
			    int64_t oy, int64_t begin, int64_t n)
{
	struct pool_window z = pool_window_of(s, 0, oz), y = pool_window_of(s, 1, oy);
	const struct pool_params *p = s->p;
	int64_t divisor[POOL_CHUNK];
	T part[POOL_CHUNK];

	divisors(s, oz, oy, begin, n, divisor);
	for (int64_t i = 0; i < n; i++)
		part[i] = grad[i] / (T)divisor[i];
	for (int64_t a = z.from; a < z.until; a++)
		for (int64_t b = y.from; b < y.until; b++)
			for (int64_t k = p->kernel[2] - 1; k >= 0; k--) {
				int64_t from = begin, until = begin + n, i, x;
				int64_t line = ((z.start + a) * s->in[1] + y.start + b) * s->in[2];

				pool_served(s, k, &from, &until);
				i = from - begin;
				x = line + from * p->stride[2] - p->padding[2] + k;
				if (from < until)
					F(spread)(out + x, part + i, p->stride[2], until - from);
			}
}

static void F(spread_planes)(int64_t begin, int64_t end, void *ctx)
{
	const struct avg_pool *m = ctx;
	const struct pool_shape *s = &m->s;
	int64_t rows = s->out[0] * s->out[1];

	memset((T *)m->out + begin * s->in_plane, 0, (end - begin) * s->in_plane * sizeof(T));
	for (int64_t i = begin * rows; i < end * rows; i++) {
		int64_t oy = i % s->out[1], oz = i / s->out[1] % s->out[0];
		T *out = (T *)m->out + i / rows * s->in_plane;
		const T *grad = (const T *)m->in + i * s->out[2];

		for (int64_t c = 0, n; c < s->out[2]; c += n) {
			n = s->out[2] - c < POOL_CHUNK ? s->out[2] - c : POOL_CHUNK;
			F(spread_chunk)(s, out, grad + c, oz, oy, c, n);
		}
	}
}

#undef F
