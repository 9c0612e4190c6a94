/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The transform for elements of type T (no include guard; see each_float.h). Real and imaginary
 * parts are in separate buffers, with the elements of up to LINES lines interleaved, so that every
 * inner loop runs along lines and is vectorized.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

struct F(plan) {
	int64_t n;    /* length of a line */
	int64_t size; /* product of the factors: n, or the size of the convolution */
	int nfactors;
	int factor[48];
	T *re, *im; /* exp(-2 pi i k / size) */
	/*
	 * For a large prime factor: the chirp exp(-pi i k^2 / n), and the transform of its
	 * conjugate.
	 */
	T *chirp_re, *chirp_im, *filter_re, *filter_im;
	struct tensor_storage *memory;
};

/* Real and imaginary parts of `run` elements, `apart` elements from those of the next operand. */
struct F(operands) {
	const T *re, *im;
	int64_t apart, run;
};

/* Output k of a butterfly of 2, times the twiddle factor (wr, wi). */
static inline void F(butterfly_2)(T *yr, T *yi, const struct F(operands) * x, int k, T wr, T wi)
{
	const T *xr = x->re, *xi = x->im;
	int64_t apart = x->apart, run = x->run;
	T s = k ? -1 : 1;

	IVDEP for (int64_t i = 0; i < run; i++)
	{
		T ur = xr[i] + s * xr[apart + i], ui = xi[i] + s * xi[apart + i];

		yr[i] = ur * wr - ui * wi;
		yi[i] = ur * wi + ui * wr;
	}
}

/* Output k of a butterfly of 4; the factors i^-k are 1, -i, -1 and i. */
static inline void F(butterfly_4)(T *yr, T *yi, const struct F(operands) * x, int k, T wr, T wi)
{
	const T *xr = x->re, *xi = x->im;
	int64_t apart = x->apart, run = x->run;
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
}

/* Output k of a butterfly of r. */
static inline void F(butterfly)(const struct F(plan) * p, T *yr, T *yi,
				const struct F(operands) * x, int r, int k, T wr, T wi)
{
	const T *xr = x->re, *xi = x->im;
	int64_t apart = x->apart, run = x->run;

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

/* One stage: left / r butterflies of r operands of `run` elements each; see run_stages(). */
static void F(stage)(const struct F(plan) * p, const T *are, const T *aim, T *bre, T *bim, int r,
		     int64_t left, int64_t run, int64_t step)
{
	int64_t m = left / r;

	for (int64_t q = 0; q < m; q++) {
		struct F(operands) x = { are + q * run, aim + q * run, m * run, run };

		for (int k = 0; k < r; k++) {
			T *yr = bre + (q * r + k) * run, *yi = bim + (q * r + k) * run;
			T wr = p->re[q * k * step], wi = p->im[q * k * step];

			if (r == 2)
				F(butterfly_2)(yr, yi, &x, k, wr, wi);
			else if (r == 4)
				F(butterfly_4)(yr, yi, &x, k, wr, wi);
			else
				F(butterfly)(p, yr, yi, &x, r, k, wr, wi);
		}
	}
}

/*
 * The forward transform of `lines` lines without scaling. Each stage writes to the other buffer;
 * returns true if the result is in b.
 */
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
 * For a length with a large prime factor: the transform as a convolution with a chirp, whose size
 * is a power of two (Bluestein). a has room for `size` elements of each line.
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
		/* times the filter; conjugated, so that the second transform is the inverse */
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

/* The tables of Bluestein's algorithm, at `at`: 2 n + 4 size elements. */
static void F(make_chirp)(struct F(plan) * p, T *at)
{
	int64_t n = p->n;

	p->chirp_re = at;
	p->chirp_im = p->chirp_re + n;
	p->filter_re = p->chirp_im + n;
	p->filter_im = p->filter_re + p->size;
	at = p->filter_im + p->size; /* buffer for the transform of the filter */
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
}

/* The roots of unity are computed in f64 and rounded once. */
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
	F(make_chirp)(p, at + 2 * p->size);
	return 0;
}

/* ---- lines of a tensor ---- */

/*
 * Loads line `line` to position l of `lines` interleaved ones. For the backward transform re and im
 * are exchanged, here and by the caller that stores the result.
 */
static void F(load_line)(const struct fft *t, int64_t n, int64_t line, T *re, T *im, int64_t l,
			 int64_t lines)
{
	const T *x = (const T *)t->x + first_of_line(t, line, t->x_length) * t->x_parts;
	int64_t step = t->inner * t->x_parts;

	for (int64_t k = 0; k < t->x_length && k < n; k++) {
		T r = x[k * step], i = t->x_parts == 2 ? x[k * step + 1] : 0;

		re[k * lines + l] = t->forward ? r : i;
		im[k * lines + l] = t->forward ? i : r;
	}
	if (!t->hermitian)
		return;
	/* Elements k and n - k are conjugates; elements 0 and n / 2 are real. */
	re[l] = 0;
	if (n % 2 == 0)
		re[n / 2 * lines + l] = 0;
	for (int64_t k = n / 2 + 1; k < n; k++) {
		re[k * lines + l] = -re[(n - k) * lines + l];
		im[k * lines + l] = im[(n - k) * lines + l];
	}
}

static void F(store_line)(const struct fft *t, int64_t line, const T *re, const T *im, int64_t l,
			  int64_t lines)
{
	T *y = (T *)t->out + first_of_line(t, line, t->out_length) * t->out_parts;
	int64_t step = t->inner * t->out_parts;
	T scale = (T)t->scale;

	for (int64_t k = 0; k < t->out_length; k++) {
		y[k * step] = re[k * lines + l] * scale;
		if (t->out_parts == 2)
			y[k * step + 1] = im[k * lines + l] * scale;
	}
}

/* Chunks begin to end, of LINES lines each. */
static void F(lines)(int64_t begin, int64_t end, void *ctx)
{
	const struct fft *t = ctx;
	const struct F(plan) *p = t->plan;
	int64_t size = p->size * LINES;
	struct tensor_storage *s = storage_alloc(TENSOR_DEVICE_CPU, 4 * size * sizeof(T), false);
	T *a, *b;

	if (!s) {
		*t->failed = true;
		return;
	}
	a = s->data;
	b = a + 2 * size;
	for (int64_t first = begin * LINES; first < end * LINES && first < t->count;
	     first += LINES) {
		int64_t lines = t->count - first < LINES ? t->count - first : LINES;
		T *re = a, *im = a + size, *out_re, *out_im;

		for (int64_t l = 0; l < lines; l++)
			F(load_line)(t, p->n, first + l, re, im, l, lines);
		if (F(transform)(p, re, im, b, b + size, lines)) {
			re = b;
			im = b + size;
		}
		out_re = t->forward ? re : im;
		out_im = t->forward ? im : re;
		for (int64_t l = 0; l < lines; l++)
			F(store_line)(t, first + l, out_re, out_im, l, lines);
	}
	storage_put(s);
}

/* Transforms the lines of t, of length n each. */
static int F(fft)(struct fft *t, int64_t n)
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

#undef F
