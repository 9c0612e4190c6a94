/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of avg_pool for elements of type T (no include guard; see each_float.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

/* sum[i] += row[i * stride]; vectorized for constant strides. */
static inline __attribute__((always_inline)) void
F(gather_stepped)(T *restrict sum, const T *restrict row, int64_t stride, int64_t n)
{
	IVDEP for (int64_t i = 0; i < n; i++) sum[i] += row[i * stride];
}

static void F(gather)(T *restrict sum, const T *restrict row, int64_t stride, int64_t n)
{
	if (stride == 1)
		F(gather_stepped)(sum, row, 1, n);
	else if (stride == 2)
		F(gather_stepped)(sum, row, 2, n);
	else
		F(gather_stepped)(sum, row, stride, n);
}

/* at[x] = the sums of elements first + x of the rows of a window, x < wide; those outside of from..until are zero. */
static inline void F(add_rows)(const struct pool_shape *s, const T *in, const struct pool_window *z,
			       const struct pool_window *y, int64_t first, int64_t from,
			       int64_t until, int64_t wide, T *at)
{
#ifdef POOL_VECTORS
	const int64_t lanes = sizeof(CPU_PASTE(vec, SUFFIX)) / sizeof(T);

	for (int64_t x = 0; x < wide; x += lanes) {
		int begin = (int)(from > x ? from - x < lanes ? from - x : lanes : 0);
		int end = (int)(until - x < lanes ? until - x : lanes);
		vec_part part = CPU_PASTE(vec_lanes, SUFFIX)(begin, end > begin ? end : begin);
		CPU_PASTE(vec, SUFFIX) sum = { 0 };

		for (int64_t a = z->from; a < z->until; a++)
			for (int64_t b = y->from; b < y->until; b++) {
				int64_t row = ((z->start + a) * s->in[1] + y->start + b) * s->in[2];

				sum += CPU_PASTE(vec_load, SUFFIX)(in + row + first + x, part);
			}
		*(CPU_PASTE(vec, SUFFIX) *)(at + x) = sum;
	}
#else
	memset(at, 0, wide * sizeof(T));
	for (int64_t a = z->from; a < z->until; a++)
		for (int64_t b = y->from; b < y->until; b++) {
			const T *row = in + ((z->start + a) * s->in[1] + y->start + b) * s->in[2];

			IVDEP for (int64_t x = from; x < until; x++) at[x] += row[first + x];
		}
#endif
}

/*
 * The sums of the windows of n outputs of a row. The rows of a window are added first, to a row with
 * its padding: at[0] is tap 0 of the first output.
 */
static void F(sum_columns)(const struct pool_shape *s, const T *in, const struct pool_window *z,
			   const struct pool_window *y, int64_t begin, int64_t n, T *sum)
{
	int64_t kernel = s->p->kernel[2], stride = s->p->stride[2];
	int64_t first = begin * stride - s->p->padding[2], wide = (n - 1) * stride + kernel;
	int64_t from = first < 0 ? -first : 0;
	int64_t until = s->in[2] - first < wide ? s->in[2] - first : wide;
	T at[POOL_COLUMNS + 64 / sizeof(T)];

	F(add_rows)(s, in, z, y, first, from, until, wide, at);
	for (int64_t i = 0; i < n && n < POOL_FEW; i++) {
		sum[i] = at[i * stride];
		for (int64_t k = 1; k < kernel; k++)
			sum[i] += at[i * stride + k];
	}
	for (int64_t k = 0; k < kernel && n >= POOL_FEW; k++)
		F(gather)(sum, at + k, stride, n);
}

/* Outputs begin to begin + n of row (oz, oy) of one plane. */
static void F(avg_chunk)(const struct pool_shape *s, const T *in, int64_t oz, int64_t oy,
			 int64_t begin, int64_t n, const int64_t *columns, T *sum)
{
	struct pool_window z = pool_window_of(s, 0, oz), y = pool_window_of(s, 1, oy);
	const struct pool_params *p = s->p;
	int64_t rows = divisor_along(s, 0, oz) * divisor_along(s, 1, oy);

	memset(sum, 0, n * sizeof(T));
	if (p->stride[2] <= p->kernel[2] && (n - 1) * p->stride[2] + p->kernel[2] <= POOL_COLUMNS) {
		F(sum_columns)(s, in, &z, &y, begin, n, sum);
		z.until = z.from;
	}
	for (int64_t a = z.from; a < z.until; a++)
		for (int64_t b = y.from; b < y.until; b++)
			for (int64_t k = 0; k < p->kernel[2]; k++) {
				int64_t from = begin, until = begin + n, i, x;
				int64_t line = ((z.start + a) * s->in[1] + y.start + b) * s->in[2];

				pool_served(s, k, &from, &until);
				i = from - begin;
				x = line + from * p->stride[2] - p->padding[2] + k;
				if (from < until)
					F(gather)(sum + i, in + x, p->stride[2], until - from);
			}
	for (int64_t i = 0; i < n; i++)
		sum[i] = QUOTIENT(sum[i], (T)divisor_of(s, rows, columns[i]));
}

static void F(avg_rows)(int64_t begin, int64_t end, void *ctx)
{
	const struct avg_pool *m = ctx;
	const struct pool_shape *s = &m->s;
	int64_t oy = begin % s->out[1], oz = begin / s->out[1] % s->out[0];
	const T *in = (const T *)m->in + begin / s->out[1] / s->out[0] * s->in_plane;
	int64_t columns[POOL_CHUNK], known = -1; /* columns[] is for outputs from `known` on */

	for (int64_t i = begin; i < end; i++) {
		T *out = (T *)m->out + i * s->out[2];

		for (int64_t c = 0, n; c < s->out[2]; c += n) {
			n = s->out[2] - c < POOL_CHUNK ? s->out[2] - c : POOL_CHUNK;
			for (int64_t k = 0; k < n && known != c; k++)
				columns[k] = divisor_along(s, 2, c + k);
			known = c;
			F(avg_chunk)(s, in, oz, oy, c, n, columns, out + c);
		}
		if (pool_next_row(s, &oz, &oy))
			in += s->in_plane;
	}
}

#undef F
