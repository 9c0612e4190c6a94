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

/* Compares n outputs with one element of each, v[i], whose index is here[i]. */
static void F(take_listed)(T *restrict best, I *restrict at, const T *restrict v,
			   const I *restrict here, int64_t n)
{
	IVDEP for (int64_t i = 0; i < n; i++)
	{
		bool take = (v[i] > best[i]) | IS_NAN(v[i]);

		best[i] = take ? v[i] : best[i];
		at[i] = take ? here[i] : at[i];
	}
}

/* The elements of tap k of the outputs of short rows, whose taps a and b are in list->row. */
static void F(list_tap)(const struct pool_short_rows *list, const void *in, const int64_t *column,
			int64_t width, T *v, I *here)
{
	int64_t n = 0;

	for (int64_t r = 0; r < list->rows; r++) {
		const T *plane = (const T *)in + list->plane[r];
		int64_t row = list->row[r];

		for (int64_t c = 0; c < width; c++, n++) {
			v[n] = plane[row + column[c]];
			here[n] = (I)(row + column[c]);
		}
	}
}

/* Several rows of a few outputs each. */
static void F(max_short_rows)(const struct max_pool *m, const int64_t *column,
			      struct pool_short_rows *list, T *best, I *at)
{
	const struct pool_shape *s = &m->s;
	const int64_t *kernel = s->p->kernel;
	int64_t n = list->rows * s->out[2];
	T v[POOL_CHUNK];
	I here[POOL_CHUNK];

	for (int64_t i = 0; i < n; i++)
		best[i] = LOWEST;
	for (int64_t a = 0; a < kernel[0]; a++)
		for (int64_t b = 0; b < kernel[1]; b++) {
			pool_short_rows_tap(s, list, a, b);
			for (int64_t k = 0; k < kernel[2]; k++) {
				F(list_tap)
				(list, m->in, column + k * s->out[2], s->out[2], v, here);
				for (int64_t i = 0; !a && !b && !k && i < n; i++)
					at[i] = here[i];
				F(take_listed)(best, at, v, here, n);
			}
		}
}

static void F(store_max)(const struct max_pool *m, int64_t first, int64_t n, const T *best,
			 const I *at)
{
	for (int64_t k = 0; k < n; k++)
		((T *)m->out)[first + k] = best[k];
	for (int64_t k = 0; k < n; k++)
		m->indices[first + k] = at[k];
}

static void F(max_rows)(int64_t begin, int64_t end, void *ctx)
{
	const struct max_pool *m = ctx;
	const struct pool_shape *s = &m->s;
	int64_t column[POOL_TABLE];
	T best[POOL_CHUNK];
	I at[POOL_CHUNK];

	if (pool_short_rows_columns(s, column)) {
		struct pool_short_rows list;

		for (int64_t i = begin; i < end; i += list.rows) {
			pool_short_rows_at(s, &list, i, end);
			F(max_short_rows)(m, column, &list, best, at);
			F(store_max)(m, i * s->out[2], list.rows * s->out[2], best, at);
		}
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		int64_t oy = i % s->out[1], oz = i / s->out[1] % s->out[0];
		const T *in = (const T *)m->in + i / s->out[1] / s->out[0] * s->in_plane;

		for (int64_t c = 0, n; c < s->out[2]; c += n) {
			n = s->out[2] - c < POOL_CHUNK ? s->out[2] - c : POOL_CHUNK;
			F(max_chunk)(s, in, oz, oy, c, n, best, at);
			F(store_max)(m, i * s->out[2] + c, n, best, at);
		}
	}
}

#undef F
