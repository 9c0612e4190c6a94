// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * multinomial: random indices with probabilities proportional to weights. With replacement: binary
 * search in the cumulative weights. Without: the k indices with the largest weight / e, where e has
 * an exponential distribution, in descending order (Efraimidis and Spirakis, Weighted random
 * sampling with a reservoir, IPL 2006).
 */
#include "kernels/cpu/random/random.h"

struct draw {
	const struct random_params *p;
	const double *weights;
	double *work;
	int64_t *out;
	int64_t n, k;
	atomic_int bad;
};

enum { BAD_WEIGHT = 1, BAD_SUM, TOO_FEW };

/* The random number for draw i, in [0, 1). */
static double unit_at(const struct random_params *p, int64_t i)
{
	uint64_t block = p->at.offset + (uint64_t)(i / WIDE * PHILOX_BLOCKS + i % PHILOX_BLOCKS);
	uint32_t w[4], *pair = w + i % WIDE / PHILOX_BLOCKS * 2;

	philox_block(w, p->at.seed, block, 0);
	return unit_f64(pair[0], pair[1]);
}

/* Sets *sum to the sum of n weights. On an error sets d->bad and returns false. */
static bool check_row(struct draw *d, const double *w, double *sum)
{
	int64_t positive = 0;

	*sum = 0;
	for (int64_t i = 0; i < d->n; i++) {
		if (!(w[i] >= 0 && w[i] <= 0x1.fffffffffffffp1023)) {
			atomic_store(&d->bad, BAD_WEIGHT);
			return false;
		}
		*sum += w[i];
		positive += w[i] > 0;
	}
	if (!(*sum > 0 && *sum <= 0x1.fffffffffffffp1023)) {
		atomic_store(&d->bad, BAD_SUM);
		return false;
	}
	if (positive < d->k) {
		atomic_store(&d->bad, TOO_FEW);
		return false;
	}
	return true;
}

static void draw_with_replacement(int64_t begin, int64_t end, void *ctx)
{
	struct draw *d = ctx;

	for (int64_t row = begin; row < end; row++) {
		const double *w = d->weights + row * d->n;
		double *cumulated = d->work + row * d->n, sum = 0;
		struct draw one = { .n = d->n, .k = 1 }; /* k > n is valid with replacement */
		int64_t last = 0;

		if (!check_row(&one, w, &sum)) {
			atomic_store(&d->bad, one.bad);
			return;
		}
		sum = 0;
		for (int64_t i = 0; i < d->n; i++) {
			sum += w[i];
			cumulated[i] = sum;
			last = w[i] > 0 ? i : last;
		}
		for (int64_t s = 0; s < d->k; s++) {
			double x = unit_at(d->p, row * d->k + s) * sum;
			int64_t low = 0, high = last;

			while (low < high) {
				int64_t middle = low + (high - low) / 2;

				if (cumulated[middle] > x)
					high = middle;
				else
					low = middle + 1;
			}
			d->out[row * d->k + s] = low;
		}
	}
}

/*
 * Restores the heap property below element i of a heap of n keys whose minimum is keys[0]; index is
 * permuted with keys.
 */
static void heap_sift_down(double *keys, int64_t *index, int64_t n, int64_t i)
{
	double key = keys[i];
	int64_t value = index[i];

	for (int64_t c; (c = 2 * i + 1) < n; i = c) {
		if (c + 1 < n && keys[c + 1] < keys[c])
			c++;
		if (keys[c] >= key)
			break;
		keys[i] = keys[c];
		index[i] = index[c];
	}
	keys[i] = key;
	index[i] = value;
}

static void draw_without_replacement(int64_t begin, int64_t end, void *ctx)
{
	struct draw *d = ctx;
	int64_t k = d->k;

	for (int64_t row = begin; row < end; row++) {
		const double *w = d->weights + row * d->n;
		double *keys = d->work + row * k, sum;
		int64_t *index = d->out + row * k, filled = 0;

		if (!check_row(d, w, &sum))
			return;
		for (int64_t i = 0; i < d->n; i++) {
			double key = w[i] / -log_unit_f64(1 - unit_at(d->p, row * d->n + i));

			if (!(w[i] > 0) || (filled == k && !(key > keys[0])))
				continue;
			keys[filled < k ? filled : 0] = key;
			index[filled < k ? filled : 0] = i;
			if (filled == k)
				heap_sift_down(keys, index, k, 0);
			else if (++filled == k)
				for (int64_t j = k / 2; j-- > 0;)
					heap_sift_down(keys, index, k, j);
		}
		for (int64_t left = k - 1; left > 0; left--) {
			double key = keys[0];
			int64_t value = index[0];

			keys[0] = keys[left];
			index[0] = index[left];
			keys[left] = key;
			index[left] = value;
			heap_sift_down(keys, index, left, 0);
		}
	}
}

static int cpu_multinomial(tensor *out, const tensor *weights, tensor *work, bool replacement,
			   const struct random_params *p)
{
	struct draw d = { .p = p,
			  .weights = weights->data,
			  .work = work->data,
			  .out = out->data,
			  .n = weights->sizes[1],
			  .k = out->sizes[1] };
	int64_t cost = d.n + d.k, grain = cost < ITER_GRAIN ? ITER_GRAIN / cost : 1;

	parallel_for(0, out->sizes[0], grain,
		     replacement ? draw_with_replacement : draw_without_replacement, &d);
	switch ((int)d.bad) {
	case BAD_WEIGHT:
		return tensor_fail(EINVAL, "multinomial: weights must be finite and not negative");
	case BAD_SUM:
		return tensor_fail(EINVAL,
				   "multinomial: the weights of a row must have a finite sum "
				   "above 0");
	case TOO_FEW:
		return tensor_fail(EINVAL,
				   "multinomial: a row has fewer weights above 0 than the "
				   "%lld that are to be drawn without replacement",
				   (long long)d.k);
	}
	return 0;
}

CPU_KERNELS(KERNEL(multinomial))
