/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The transform itself, for the element type T. Real and imaginary parts lie apart, and the
 * elements of up to LINES lines side by side, so that every loop runs along lines.
 */

struct F(plan) {
	int64_t n;    /* length of a line */
	int64_t size; /* of what the factors make: n, or more for a convolution */
	int nfactors;
	int factor[48];
	T *re, *im; /* exp(-2 pi i k / size) */
	/* n has a large prime factor: chirp exp(-pi i k^2 / n), and the transform of its conjugate */
	T *chirp_re, *chirp_im, *filter_re, *filter_im;
	struct tensor_storage *memory;
};

/* One stage: `count` butterflies of r lines of `run` elements each; see run_stages(). */
static void F(stage)(const struct F(plan) * p, const T *are, const T *aim, T *bre, T *bim, int r,
		     int64_t left, int64_t run, int64_t step)
{
	int64_t m = left / r;

	for (int64_t q = 0; q < m; q++) {
		const T *xr = are + q * run, *xi = aim + q * run;
		int64_t apart = m * run;

		for (int k = 0; k < r; k++) {
			T *yr = bre + (q * r + k) * run, *yi = bim + (q * r + k) * run;
			T wr = p->re[q * k * step], wi = p->im[q * k * step];

			if (r == 2) {
				T s = k ? -1 : 1;

				IVDEP for (int64_t i = 0; i < run; i++)
				{
					T ur = xr[i] + s * xr[apart + i],
					  ui = xi[i] + s * xi[apart + i];

					yr[i] = ur * wr - ui * wi;
					yi[i] = ur * wi + ui * wr;
				}
				continue;
			}
			if (r == 4) {
				/* i^-k: 1, -i, -1, i */
				T s = k & 1 ? -1 : 1, t = k & 2 ? -1 : 1;

				IVDEP for (int64_t i = 0; i < run; i++)
				{
					T er = xr[i] + s * xr[2 * apart + i];
					T ei = xi[i] + s * xi[2 * apart + i];
					T odd_r = xr[apart + i] + s * xr[3 * apart + i];
					T odd_i = xi[apart + i] + s * xi[3 * apart + i];
					T ur = k & 1 ? er + t * odd_i : er + t * odd_r;
					T ui = k & 1 ? ei - t * odd_r : ei + t * odd_i;

					yr[i] = ur * wr - ui * wi;
					yi[i] = ur * wi + ui * wr;
				}
				continue;
			}
			for (int64_t i = 0; i < run; i++)
				yr[i] = yi[i] = 0;
			for (int j = 0; j < r; j++) {
				int64_t at = (int64_t)(j * k % r) * (p->size / r);
				T cr = p->re[at], ci = p->im[at];
				T fr = cr * wr - ci * wi, fi = cr * wi + ci * wr;

				IVDEP for (int64_t i = 0; i < run; i++)
				{
					yr[i] += xr[j * apart + i] * fr - xi[j * apart + i] * fi;
					yi[i] += xr[j * apart + i] * fi + xi[j * apart + i] * fr;
				}
			}
		}
	}
}

/* Forward, unscaled, of `lines` lines; the result is at a or at b: returns true for b. */
static bool F(run_stages)(const struct F(plan) * p, T *are, T *aim, T *bre, T *bim, int64_t lines)
{
	int64_t left = p->size, done = 1;
	bool at_b = false;

	for (int i = 0; i < p->nfactors; i++) {
		if (at_b)
			F(stage)(p, bre, bim, are, aim, p->factor[i], left, done * lines, done);
		else
			F(stage)(p, are, aim, bre, bim, p->factor[i], left, done * lines, done);
		left /= p->factor[i];
		done *= p->factor[i];
		at_b = !at_b;
	}
	return at_b;
}

/*
 * For a large prime factor: the transform as a convolution with a chirp, of a size that has small
 * factors. a holds `size` positions of each line.
 */
static bool F(run_chirp)(const struct F(plan) * p, T *are, T *aim, T *bre, T *bim, int64_t lines)
{
	T *fr = are, *fi = aim, *gr = bre, *gi = bim, scale = 1 / (T)p->size;

	for (int64_t k = 0; k < p->size; k++)
		for (int64_t i = k * lines; i < (k + 1) * lines; i++) {
			T r = k < p->n ? are[i] : 0, m = k < p->n ? aim[i] : 0;
			T c = k < p->n ? p->chirp_re[k] : 0, s = k < p->n ? p->chirp_im[k] : 0;

			are[i] = r * c - m * s;
			aim[i] = r * s + m * c;
		}
	for (int round = 0; round < 2; round++) {
		if (F(run_stages)(p, fr, fi, gr, gi, lines)) {
			T *x = fr, *y = fi;

			fr = gr, fi = gi, gr = x, gi = y;
		}
		/* times the filter, conjugated so that the second transform goes back */
		for (int64_t k = 0; k < p->size && !round; k++)
			for (int64_t i = k * lines; i < (k + 1) * lines; i++) {
				T r = fr[i], m = fi[i];

				fr[i] = r * p->filter_re[k] - m * p->filter_im[k];
				fi[i] = -(r * p->filter_im[k] + m * p->filter_re[k]);
			}
	}
	for (int64_t k = 0; k < p->n; k++)
		for (int64_t i = k * lines; i < (k + 1) * lines; i++) {
			T r = fr[i] * scale, m = -fi[i] * scale;

			fr[i] = r * p->chirp_re[k] - m * p->chirp_im[k];
			fi[i] = r * p->chirp_im[k] + m * p->chirp_re[k];
		}
	return fr == bre;
}

static bool F(transform)(const struct F(plan) * p, T *are, T *aim, T *bre, T *bim, int64_t lines)
{
	return p->chirp_re ? F(run_chirp)(p, are, aim, bre, bim, lines) :
			     F(run_stages)(p, are, aim, bre, bim, lines);
}

/* Twiddles are computed in f64, each from an angle below pi / 4. */
static int F(make_plan)(struct F(plan) * p, int64_t n)
{
	bool chirp;
	T *at;

	*p = (struct F(plan)){ .n = n, .size = n };
	p->nfactors = factorize(n, p->factor);
	chirp = p->nfactors < 0;
	if (chirp) {
		for (p->size = 1; p->size < 2 * n - 1;)
			p->size *= 2;
		p->nfactors = factorize(p->size, p->factor);
	}
	p->memory = storage_alloc(TENSOR_DEVICE_CPU,
				  (2 * p->size + (chirp ? 2 * n + 4 * p->size : 0)) * sizeof(T),
				  false);
	if (!p->memory)
		return -thread()->error.code;
	at = p->memory->data;
	p->re = at;
	p->im = at + p->size;
	for (int64_t k = 0; k < p->size; k++) {
		double c, s;

		unit_root(k, p->size, &c, &s);
		p->re[k] = (T)c;
		p->im[k] = (T)s;
	}
	if (!chirp)
		return 0;
	p->chirp_re = at + 2 * p->size;
	p->chirp_im = p->chirp_re + n;
	p->filter_re = p->chirp_im + n;
	p->filter_im = p->filter_re + p->size;
	at = p->filter_im + p->size; /* scratch of the filter's transform */
	memset(p->filter_re, 0, 2 * p->size * sizeof(T));
	for (int64_t k = 0; k < n; k++) {
		double c, s;

		unit_root((int64_t)((__int128)k * k % (2 * n)), 2 * n, &c, &s);
		p->chirp_re[k] = (T)c;
		p->chirp_im[k] = (T)s;
		p->filter_re[k] = p->filter_re[(p->size - k) % p->size] = (T)c;
		p->filter_im[k] = p->filter_im[(p->size - k) % p->size] = (T)-s;
	}
	if (F(run_stages)(p, p->filter_re, p->filter_im, at, at + p->size, 1))
		memcpy(p->filter_re, at, 2 * p->size * sizeof(T));
	return 0;
}

/* ---- lines of a tensor ---- */

/*
 * Chunks of LINES lines: loaded into a (swapped for backward: the parts exchanged before and
 * after turn one direction into the other), transformed, stored.
 */
static void F(lines)(int64_t begin, int64_t end, void *ctx)
{
	const struct fft *t = ctx;
	const struct F(plan) *p = t->plan;
	int64_t size = p->size * LINES;
	struct tensor_storage *s = storage_alloc(TENSOR_DEVICE_CPU, 4 * size * sizeof(T), false);
	T *a, *b, scale = (T)t->scale;

	if (!s) {
		*t->failed = true;
		return;
	}
	a = s->data;
	b = a + 2 * size;
	for (int64_t first = begin * LINES; first < end * LINES && first < t->count;
	     first += LINES) {
		int64_t lines = t->count - first < LINES ? t->count - first : LINES, n = p->n;
		T *re = a, *im = a + size, *to_re, *to_im;

		for (int64_t l = 0; l < lines; l++) {
			int64_t outer = (first + l) / t->inner, in = (first + l) % t->inner;
			const T *x = (const T *)t->x +
				     (outer * t->x_length * t->inner + in) * t->x_parts;
			int64_t step = t->inner * t->x_parts;

			for (int64_t k = 0; k < t->x_length && k < n; k++) {
				T r = x[k * step], i = t->x_parts == 2 ? x[k * step + 1] : 0;

				re[k * lines + l] = t->forward ? r : i;
				im[k * lines + l] = t->forward ? i : r;
			}
			/* what symmetry says: the conjugate from the end; the first is real */
			if (t->hermitian) {
				re[l] = 0;
				if (n % 2 == 0)
					re[n / 2 * lines + l] = 0;
				for (int64_t k = n / 2 + 1; k < n; k++) {
					re[k * lines + l] = -re[(n - k) * lines + l];
					im[k * lines + l] = im[(n - k) * lines + l];
				}
			}
		}
		if (F(transform)(p, re, im, b, b + size, lines)) {
			re = b;
			im = b + size;
		}
		to_re = t->forward ? re : im;
		to_im = t->forward ? im : re;
		for (int64_t l = 0; l < lines; l++) {
			int64_t outer = (first + l) / t->inner, in = (first + l) % t->inner;
			T *y = (T *)t->out + (outer * t->out_length * t->inner + in) * t->out_parts;
			int64_t step = t->inner * t->out_parts;

			for (int64_t k = 0; k < t->out_length; k++) {
				y[k * step] = to_re[k * lines + l] * scale;
				if (t->out_parts == 2)
					y[k * step + 1] = to_im[k * lines + l] * scale;
			}
		}
	}
	storage_put(s);
}

static int F(run)(struct fft *t, int64_t n)
{
	int64_t chunks = (t->count + LINES - 1) / LINES, work = n * LINES * 8;
	_Atomic bool failed = false;
	struct F(plan) p;

	if (F(make_plan)(&p, n) < 0)
		return -thread()->error.code;
	t->plan = &p;
	t->failed = &failed;
	parallel_for(0, chunks, work < ITER_GRAIN ? ITER_GRAIN / work : 1, F(lines), t);
	storage_put(p.memory);
	return failed ? tensor_fail(ENOMEM, "fft: no memory for a line") : 0;
}

#undef T
#undef F
