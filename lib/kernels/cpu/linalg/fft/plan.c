// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Chooses how a length is computed. Costs are vector operations and memory accesses, measured on
 * processors with AVX2 and AVX-512 (docs/decisions/0009-fft.md); only their order matters.
 */
#include "kernels/cpu/linalg/fft/plan.h"

#include "core/tensor_impl.h"

#include <math.h>

#define LANES_MAX (1 << 24) /* longer lines are matrices; positions are 32-bit */
/* Buffers for lines side by side that fit into a first and a second level cache. */
#define BYTES_L1   (48 << 10)
#define BYTES_L2   (512 << 10)
#define BYTES_PAGE (4 << 10)

/* Cost of an element in a stage. */
static double factor_cost(int f)
{
	switch (f) {
	case 2:
		return 7;
	case 4:
		return 11;
	case 8:
		return 16;
	default:
		return f <= 13 ? f + 9 : 2 * f + 8;
	}
}

/*
 * The factors of n: odd ones, then 4 and 8, with at most one 2. Returns the cost of an element, or
 * infinity if a prime factor is too large.
 */
static double factorize(int64_t n, struct fft_lanes *l)
{
	double cost = 0;
	int twos = 0;

	*l = (struct fft_lanes){ .n = n };
	for (; n % 2 == 0; n /= 2)
		twos++;
	for (int f = 3; f <= FFT_PRIME_MAX && n > 1; f += 2)
		for (; n % f == 0; n /= f)
			l->factor[l->nfactors++] = f;
	for (; twos == 2 || twos == 4 || (twos > 3 && twos % 3); twos -= 2)
		l->factor[l->nfactors++] = 4;
	if (twos == 1)
		l->factor[l->nfactors++] = 2;
	for (; twos >= 3; twos -= 3)
		l->factor[l->nfactors++] = 8;
	for (int i = 0; i < l->nfactors; i++)
		cost += factor_cost(l->factor[i]);
	return n == 1 ? cost : INFINITY;
}

static int lanes_of(const struct fft_plan *p)
{
	return p->f64 ? VEC_F64 : VEC_F32;
}

/* The cost of one line as a matrix of n1 columns of n2 elements. */
static double matrix_cost(const struct fft_plan *p, int64_t n1, int64_t n2)
{
	struct fft_lanes l;
	int lanes = lanes_of(p);
	int64_t first = fft_vectors(n1, lanes) * n2, second = fft_vectors(n2, lanes) * n1;
	int64_t tiles = fft_vectors(n1, lanes) * fft_vectors(n2, lanes) * lanes;

	return 60 + (double)first * (factorize(n2, &l) + 8) +
	       (double)second * (factorize(n1, &l) + 8) + (double)tiles * 20;
}

/* Sets the dimensions of the cheapest matrix of `size` elements; returns its cost. */
static double choose_matrix(const struct fft_plan *p, int64_t size, int64_t *n1, int64_t *n2)
{
	double best = INFINITY;

	for (int64_t a = 2; a * a <= size; a++) {
		double there, back;

		if (size % a)
			continue;
		there = matrix_cost(p, a, size / a);
		back = matrix_cost(p, size / a, a);
		if (fmin(there, back) >= best)
			continue;
		best = fmin(there, back);
		*n1 = there <= back ? a : size / a;
		*n2 = size / *n1;
	}
	return best;
}

/* The cheapest size of the convolution for a line of n: a power of two times a small number. */
static double choose_chirp(const struct fft_plan *p, int64_t *size, int64_t *n1, int64_t *n2)
{
	static const int odd[] = { 1, 3, 5, 7, 9, 11, 15 };
	double best = INFINITY;

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		int64_t m = odd[i], a = 0, b = 0;
		double cost;

		while (m < 2 * p->n - 1 || m < 16)
			m *= 2;
		cost = 2 * choose_matrix(p, m, &a, &b) + 12.0 * (double)(m + p->n) / lanes_of(p);
		if (cost >= best)
			continue;
		best = cost;
		*size = m;
		*n1 = a;
		*n2 = b;
	}
	return best;
}

static bool is_prime(int64_t n)
{
	for (int64_t d = 2; d * d <= n; d++)
		if (n % d == 0)
			return false;
	return n > 1;
}

/* The cost of a line of prime length as a cyclic convolution; its elements change places one by one. */
static double prime_cost(const struct fft_plan *p, int64_t *n1, int64_t *n2)
{
	if (p->n > LANES_MAX || !is_prime(p->n))
		return INFINITY;
	return 2 * choose_matrix(p, p->n - 1, n1, n2) + 12.0 * (double)p->n / lanes_of(p) +
	       8.0 * (double)p->n;
}

/* What a line costs more than others of its length if it is real: the even ones are folded by another pass. */
static double fold_cost(const struct fft_plan *p)
{
	return p->n != p->key_n ? 10.0 * (double)p->n / lanes_of(p) : 0;
}

/*
 * The cost of a line that is computed side by side with others. Lines in rows of memory whose distance is a multiple
 * of a page are in the same sets of the first level cache: eight of them and of the results do not stay there.
 */
static double side_by_side_cost(const struct fft_plan *p, struct fft_lanes *l)
{
	static const double lines[] = {
		[FFT_ONE_LINE] = 1, [FFT_FEW_LINES] = 4, [FFT_MANY_LINES] = 64, [FFT_COLUMNS] = 64
	};
	int lanes = lanes_of(p);
	double count = fmin(lines[p->lines], lanes), cost = factorize(p->n, l) + 10;
	int64_t bytes = p->n * 2 * VEC_BYTES;
	double spill = p->lines == FFT_COLUMNS ? 1.2 : 1.5;

	if (p->n > LANES_MAX)
		return INFINITY;
	if (p->lines != FFT_COLUMNS && count >= 8 && bytes / lanes % BYTES_PAGE == 0)
		cost += 30;
	return cost * (double)p->n / count * (bytes > BYTES_L2 ? 4 : bytes > BYTES_L1 ? spill : 1);
}

/* Whether another way than stages of the factors may cost less. */
static bool large_factors(const struct fft_lanes *l)
{
	return l->factor[0] > 31 || (l->nfactors > 1 && l->factor[1] > 13);
}

void CPU_NAME(fft_choose)(struct fft_plan *p)
{
	int64_t n1 = 0, n2 = 0, size = 0, a = 0, b = 0, c = 0, d = 0;
	double lanes, line, chirp = INFINITY, prime = INFINITY;
	struct fft_lanes l;

	p->n = p->kind != FFT_C2C && p->key_n % 2 == 0 ? p->key_n / 2 : p->key_n;
	p->size = p->n;
	lanes = side_by_side_cost(p, &l);
	line = choose_matrix(p, p->n, &n1, &n2) + fold_cost(p);
	if (!isfinite(lanes) || large_factors(&l)) {
		chirp = choose_chirp(p, &size, &a, &b) + fold_cost(p);
		prime = prime_cost(p, &c, &d) + fold_cost(p);
	}
	if (lanes <= fmin(line, fmin(chirp, prime))) {
		p->mode = FFT_LANES;
		p->columns = l;
		return;
	}
	p->mode = FFT_LINE;
	if (prime < fmin(line, chirp)) {
		p->mode = FFT_PRIME;
		p->size = p->n - 1;
		n1 = c;
		n2 = d;
	} else if (chirp < line) {
		p->mode = FFT_CHIRP;
		p->size = size;
		n1 = a;
		n2 = b;
	}
	factorize(n2, &p->columns);
	factorize(n1, &p->rows);
}

/* Whether the powers of g modulo the prime n are all numbers below n: not so if a power (n - 1) / f is 1. */
static bool is_generator(int64_t g, int64_t n)
{
	int64_t rest = n - 1;

	for (int64_t f = 2; rest > 1; f++) {
		int64_t power = 1;

		if (f * f > rest)
			f = rest;
		if (rest % f)
			continue;
		while (rest % f == 0)
			rest /= f;
		for (int64_t bit = (int64_t)1 << 40; bit; bit /= 2) {
			power = power * power % n;
			if ((n - 1) / f & bit)
				power = power * g % n;
		}
		if (power == 1)
			return false;
	}
	return true;
}

void CPU_NAME(fft_powers)(int64_t n, int32_t *powers)
{
	int64_t g = 2, power = 1;

	while (!is_generator(g, n))
		g++;
	for (int64_t i = 0; i < n - 1; i++) {
		powers[i] = (int32_t)power;
		power = power * g % n;
	}
}

void CPU_NAME(fft_unit_root)(int64_t k, int64_t n, double *re, double *im)
{
	int64_t eighth = (int64_t)((__int128)8 * k / n), rest;
	double c, s, angle;

	/* rest / n: quarter turns from the nearest axis; cos and sin of small angles are accurate */
	if (eighth & 1)
		rest = (eighth + 1) / 2 * n - 4 * k;
	else
		rest = 4 * k - eighth / 2 * n;
	angle = (double)rest / (double)n * (M_PI / 2);
	c = cos(angle);
	s = eighth & 1 ? -sin(angle) : sin(angle);
	switch ((eighth + 1) / 2 % 4) {
	case 0:
		*re = c, *im = -s;
		break;
	case 1:
		*re = -s, *im = -c;
		break;
	case 2:
		*re = -c, *im = s;
		break;
	default:
		*re = s, *im = c;
	}
}
