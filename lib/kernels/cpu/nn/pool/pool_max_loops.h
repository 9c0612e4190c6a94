/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of max_pool for elements of type T and indices of type I (no include guard):
 * F(max_rows) computes rows of outputs. LOWEST is the least value of T.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/*
 * Compares n outputs with one of their taps, whose elements are `stride` apart in row; `first` is
 * the index of row[0]. Inlined with constant strides, for which the compiler vectorizes it.
 */
static inline __attribute__((always_inline)) void
F(take_stepped)(T *restrict best, I *restrict at, const T *row, I first, int64_t stride, int64_t n)
{
	IVDEP for (int64_t i = 0; i < n; i++)
	{
		T v = row[i * stride], b = best[i];
		I here = (I)(first + (I)i * (I)stride), was = at[i];
		bool take = (v > b) | IS_NAN(v);

		best[i] = take ? v : b;
		at[i] = take ? here : was;
	}
}

static void F(take)(T *restrict best, I *restrict at, const T *row, int64_t first, int64_t stride,
		    int64_t n)
{
	if (stride == 1)
		F(take_stepped)(best, at, row, (I)first, 1, n);
	else if (stride == 2)
		F(take_stepped)(best, at, row, (I)first, 2, n);
	else
		F(take_stepped)(best, at, row, (I)first, stride, n);
}

/* Outputs begin to begin + n of row (oz, oy) of one plane. */
static void F(max_chunk)(const struct pool_shape *s, const T *in, int64_t oz, int64_t oy,
			 int64_t begin, int64_t n, T *best, I *at)
{
	const struct pool_params *p = s->p;
	struct pool_window z = pool_window_of(s, 0, oz), y = pool_window_of(s, 1, oy);
	int64_t plane = s->in[1] * s->in[2], stride = p->stride[2];
	int64_t top = (z.start + z.from * p->dilation[0]) * plane +
		      (y.start + y.from * p->dilation[1]) * s->in[2];

	for (int64_t i = 0; i < n; i++) {
		struct pool_window x = pool_window_of(s, 2, begin + i);

		best[i] = LOWEST;
		at[i] = (I)(top + x.start + x.from * p->dilation[2]);
	}
	for (int64_t a = z.from; a < z.until; a++)
		for (int64_t b = y.from; b < y.until; b++) {
			int64_t line = (z.start + a * p->dilation[0]) * plane +
				       (y.start + b * p->dilation[1]) * s->in[2];

			for (int64_t k = 0; k < p->kernel[2]; k++) {
				int64_t from = begin, until = begin + n, i, x;

				pool_served(s, k, &from, &until);
				i = from - begin;
				x = line + from * stride - p->padding[2] + k * p->dilation[2];
				if (from < until)
					F(take)(best + i, at + i, in + x, x, stride, until - from);
			}
		}
}

static void F(max_rows)(int64_t begin, int64_t end, void *ctx)
{
	const struct max_pool *m = ctx;
	const struct pool_shape *s = &m->s;
	T best[POOL_CHUNK];
	I at[POOL_CHUNK];

	for (int64_t i = begin; i < end; i++) {
		int64_t oy = i % s->out[1], oz = i / s->out[1] % s->out[0];
		const T *in = (const T *)m->in + i / s->out[1] / s->out[0] * s->in_plane;

		for (int64_t c = 0, n; c < s->out[2]; c += n) {
			n = s->out[2] - c < POOL_CHUNK ? s->out[2] - c : POOL_CHUNK;
			F(max_chunk)(s, in, oz, oy, c, n, best, at);
			for (int64_t k = 0; k < n; k++)
				((T *)m->out)[i * s->out[2] + c + k] = best[k];
			for (int64_t k = 0; k < n; k++)
				m->indices[i * s->out[2] + c + k] = at[k];
		}
	}
}

#undef F
