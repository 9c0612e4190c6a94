/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The tables of a plan, computed in f64 and rounded once. Functions return false if memory is
 * short.
 */

/* The root exp(-2 pi i k / n) as two elements; k may be negative or above n. */
static void F(root)(T *to, int64_t k, int64_t n)
{
	double re, im;

	k %= n;
	CPU_NAME(fft_unit_root)(k < 0 ? k + n : k, n, &re, &im);
	to[0] = (T)re;
	to[1] = (T)im;
}

static bool F(make_stage)(struct fft_plan *p, struct fft_lanes *l, int i, int64_t left)
{
	int r = l->factor[i];
	int64_t m = left / r;
	T *w = CPU_NAME(fft_table)(p, (size_t)((m - 1) * (r - 1) * 2) * sizeof(T));
	T *roots = r % 2 ? CPU_NAME(fft_table)(p, (size_t)r * 2 * sizeof(T)) : NULL;

	if (!w || (r % 2 && !roots))
		return false;
	l->twiddle[i] = w;
	l->roots[i] = roots;
	for (int64_t q = 1; q < m; q++)
		for (int k = 1; k < r; k++, w += 2)
			F(root)(w, q * k, left);
	for (int k = 0; k < r && roots; k++)
		F(root)(roots + 2 * k, -k, r);
	return true;
}

static bool F(make_lanes)(struct fft_plan *p, struct fft_lanes *l)
{
	int64_t left = l->n;
	int32_t *at = CPU_NAME(fft_table)(p, (size_t)(l->n + 1) * sizeof(*at));
	int32_t *order = CPU_NAME(fft_table)(p, (size_t)l->n * sizeof(*order));

	if (!at || !order)
		return false;
	for (int i = 0; i < l->nfactors; i++) {
		if (!F(make_stage)(p, l, i, left))
			return false;
		left /= l->factor[i];
	}
	for (int64_t k = 0; k < l->n; k++) {
		int64_t rest = k, position = 0;

		left = l->n;
		for (int i = 0; i < l->nfactors; i++) {
			left /= l->factor[i];
			position += rest % l->factor[i] * left;
			rest /= l->factor[i];
		}
		at[k] = (int32_t)position;
		order[position] = (int32_t)k;
	}
	at[l->n] = (int32_t)l->n; /* of the element that a real transform adds */
	l->at = at;
	l->order = order;
	return true;
}

/*
 * Twiddle factors of a matrix. Large ones are products of two: exp(-2 pi i i1 k2 / size) for k2 in
 * the first block, and a scalar for i1 and the first k2 of a block.
 */
static bool F(make_matrix)(struct fft_plan *p)
{
	int64_t n1 = p->rows.n, n2 = p->columns.n, blocks = fft_vectors(n2, LANES);
	bool coarse = p->size > FFT_FINE_MAX;
	int64_t fine = coarse ? 1 : blocks;
	T *w = CPU_NAME(fft_table)(p, (size_t)(fine * n1 * 2 * LANES) * sizeof(T));
	T *scalar = coarse ? CPU_NAME(fft_table)(p, (size_t)(blocks * n1 * 2) * sizeof(T)) : NULL;

	if (!w || (coarse && !scalar) || !F(make_lanes)(p, &p->columns) ||
	    !F(make_lanes)(p, &p->rows))
		return false;
	p->twiddle = w;
	p->coarse = scalar;
	for (int64_t b = 0; b < fine; b++)
		for (int64_t i = 0; i < n1; i++, w += 2 * LANES)
			for (int l = 0; l < LANES; l++) {
				T root[2];

				F(root)(root, i * (b * LANES + l), p->size);
				w[l] = root[0];
				w[LANES + l] = root[1];
			}
	for (int64_t b = 0; b < blocks && coarse; b++)
		for (int64_t i = 0; i < n1; i++, scalar += 2)
			F(root)(scalar, i * b * LANES, p->size);
	return true;
}

/* The tables of a convolution. The filter is computed in f64, too. */
static bool F(make_filter)(struct fft_plan *p)
{
	T *filter = CPU_NAME(fft_table)(p, (size_t)(2 * p->size) * sizeof(T));
	struct fft_plan work = { .mode = p->mode,
				 .n = p->n,
				 .size = p->size,
				 .powers = p->powers,
				 .columns = p->columns,
				 .rows = p->rows };
	const double *exact = filter ? exact_filter(&work) : NULL;

	for (int64_t k = 0; k < 2 * p->size && exact; k++)
		filter[k] = (T)exact[k];
	p->filter = filter;
	CPU_NAME(fft_free_tables)(&work);
	return exact;
}

static bool F(make_chirp)(struct fft_plan *p)
{
	T *chirp = CPU_NAME(fft_table)(p, (size_t)(2 * p->n) * sizeof(T));

	for (int64_t k = 0; k < p->n && chirp; k++)
		F(root)(chirp + 2 * k, (int64_t)((__int128)k * k % (2 * p->n)), 2 * p->n);
	p->chirp = chirp;
	return chirp && F(make_filter)(p);
}

static bool F(make_prime)(struct fft_plan *p)
{
	int32_t *powers = CPU_NAME(fft_table)(p, (size_t)p->size * sizeof(*powers));

	if (!powers)
		return false;
	CPU_NAME(fft_powers)(p->n, powers);
	p->powers = powers;
	return F(make_filter)(p);
}

static bool F(make_tables)(struct fft_plan *p)
{
	if (p->mode == FFT_LANES ? !F(make_lanes)(p, &p->columns) : !F(make_matrix)(p))
		return false;
	if (p->n != p->key_n) {
		T *fold = CPU_NAME(fft_table)(p, (size_t)(p->n + 1) * 2 * sizeof(T));

		for (int64_t k = 0; k <= p->n && fold; k++)
			F(root)(fold + 2 * k, k, p->key_n);
		p->fold = fold;
		if (!fold)
			return false;
	}
	return p->mode == FFT_CHIRP ? F(make_chirp)(p) :
	       p->mode == FFT_PRIME ? F(make_prime)(p) :
				      true;
}
