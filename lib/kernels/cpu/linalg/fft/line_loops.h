/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * One long line, contiguous, as a matrix of n2 rows and n1 columns: the columns are transformed
 * side by side, multiplied by twiddle factors, and then the n2 rows, LANES of them side by side.
 * The intermediate matrix consists of blocks of LANES rows k2; block b has element (i1, k2) at
 * (b * n1 + i1) * 2 * LANES + k2 % LANES, its imaginary part LANES behind, so that a block is
 * transformed where it is.
 */

struct F(matrix_run) {
	const struct fft_plan *plan;
	const T *x;
	T *y, *between;
	bool backward;
	T scale;
	_Atomic bool failed;
};

/*
 * Writes LANES outputs of the columns, from output k, to a block of rows: a transposition, after
 * which row i1 of the tile is multiplied by the twiddle factors.
 */
INLINE void F(store_tile_of)(const struct fft_plan *p, const struct F(lines) * v, int64_t first,
			     int columns, int64_t block, T *to, bool coarse)
{
	int64_t n1 = p->rows.n, n2 = p->columns.n, index = block * n1 + first;
	const T *w = (const T *)p->twiddle + (coarse ? first : index) * 2 * LANES;
	const T *c = coarse ? (const T *)p->coarse + index * 2 : NULL;
	V re[LANES], im[LANES];

	_Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
	{
		int64_t k = block * LANES + i;
		struct F(complex) e = F(get)(v, p->columns.at[k < n2 ? k : n2 - 1]);

		re[i] = e.re;
		im[i] = e.im;
	}
	F(transpose)(re);
	F(transpose)(im);
	to += index * 2 * LANES;
	_Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
	{
		struct F(complex) f;

		if (i >= columns)
			break;
		f.re = *(const V *)(w + i * 2 * LANES);
		f.im = *(const V *)(w + i * 2 * LANES + LANES);
		if (coarse)
			f = F(times)(f, c[2 * i], c[2 * i + 1]);
		*(V *)(to + i * 2 * LANES) = re[i] * f.re - im[i] * f.im;
		*(V *)(to + i * 2 * LANES + LANES) = re[i] * f.im + im[i] * f.re;
	}
}

static void F(store_tile)(const struct fft_plan *p, const struct F(lines) * v, int64_t first,
			  int columns, int64_t block, T *to)
{
	if (p->coarse)
		F(store_tile_of)(p, v, first, columns, block, to, true);
	else if (columns == LANES)
		F(store_tile_of)(p, v, first, LANES, block, to, false);
	else
		F(store_tile_of)(p, v, first, columns, block, to, false);
}

/* Blocks of columns; `buffer` has room for LANES lines of them. */
static void F(some_columns)(const struct F(matrix_run) * r, int64_t begin, int64_t end, T *buffer)
{
	const struct fft_plan *p = r->plan;
	int64_t n1 = p->rows.n, blocks = fft_vectors(p->columns.n, LANES);
	struct F(lines) v = F(lines_at)(buffer, r->backward);

	for (int64_t c = begin; c < end; c++) {
		int64_t first = c * LANES;
		int columns = (int)(n1 - first < LANES ? n1 - first : LANES);

		F(load_transform)
		(&p->columns, buffer, r->x + 2 * first, 2 * n1, columns, r->backward, 0);
		for (int64_t b = 0; b < blocks; b++)
			F(store_tile)(p, &v, first, columns, b, r->between);
	}
}

static void F(matrix_columns)(int64_t begin, int64_t end, void *ctx)
{
	struct F(matrix_run) *r = ctx;
	struct tensor_storage *s =
		storage_alloc(TENSOR_DEVICE_CPU, F(lanes_bytes)(r->plan->columns.n), false);

	if (!s) {
		r->failed = true;
		return;
	}
	F(some_columns)(r, begin, end, s->data);
	storage_put(s);
}

/* Blocks of rows. */
static void F(matrix_rows)(int64_t begin, int64_t end, void *ctx)
{
	struct F(matrix_run) *r = ctx;
	const struct fft_plan *p = r->plan;
	int64_t n1 = p->rows.n, n2 = p->columns.n;

	for (int64_t b = begin; b < end; b++) {
		int64_t first = b * LANES;
		T *block = r->between + b * n1 * 2 * LANES;
		/* The tiles have the parts in the order of the transform. */
		struct F(lines) v = F(lines_at)(block, false);
		int rows = (int)(n2 - first < LANES ? n2 - first : LANES);
		T *y = r->y + 2 * first;

		if (F(ends_in_memory)(&p->rows, rows)) {
			F(run_stages)(&p->rows, &v, 0, p->rows.nfactors - 1);
			F(transform_store)(&p->rows, &v, y, 2 * n2, r->backward, r->scale);
			continue;
		}
		F(transform_lanes)(&p->rows, &v);
		F(store_pairs)
		(y, 2 * n2, r->backward, block, p->rows.at, n1, rows, r->scale);
	}
}

/* Bytes of the intermediate matrix. */
static size_t F(between_bytes)(const struct fft_plan *p)
{
	return (size_t)(fft_vectors(p->columns.n, LANES) * p->rows.n * 2 * LANES) * sizeof(T);
}

/*
 * The transform of the contiguous complex line x of p->size elements, multiplied by scale. y may be
 * x. With `work`, which has room for the intermediate matrix and LANES columns, by the calling thread
 * alone; otherwise parallel. Returns false if memory is short.
 */
static bool F(matrix)(const struct fft_plan *p, T *y, const T *x, T *work, bool backward, T scale)
{
	int64_t n1 = p->rows.n, n2 = p->columns.n, blocks = fft_vectors(n2, LANES);
	struct F(matrix_run) r = { p, x, y, work, backward, scale, false };
	struct tensor_storage *s;

	if (work) {
		F(some_columns)
		(&r, 0, fft_vectors(n1, LANES), work + F(between_bytes)(p) / sizeof(T));
		F(matrix_rows)(0, blocks, &r);
		return true;
	}
	s = storage_alloc(TENSOR_DEVICE_CPU, F(between_bytes)(p), false);
	if (!s)
		return false;
	r.between = s->data;
	parallel_for(0, fft_vectors(n1, LANES), F(grain)(n2), F(matrix_columns), &r);
	if (!r.failed)
		parallel_for(0, blocks, F(grain)(n1), F(matrix_rows), &r);
	storage_put(s);
	return !r.failed;
}
