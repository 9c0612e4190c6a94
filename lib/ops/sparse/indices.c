// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Index arithmetic of sparse tensors: check, sort, search. See indices.h. */
#include "ops/sparse/indices.h"

#include "iter/iter.h"
#include "iter/parallel.h"

/* ---- checks ---- */

int sparse_check_indices(const char *op, const int64_t *indices, int d, int64_t nnz,
			 const int64_t *sizes)
{
	for (int k = 0; k < d; k++) {
		const int64_t *row = indices + k * nnz;
		uint64_t size = sizes[k];
		bool bad = false;

		for (int64_t i = 0; i < nnz; i++)
			bad |= (uint64_t)row[i] >= size;
		for (int64_t i = 0; bad && i < nnz; i++)
			if ((uint64_t)row[i] >= size)
				return tensor_fail(EINVAL,
						   "%s: index %lld of element %lld is out of "
						   "range for dimension %d of size %lld",
						   op, (long long)row[i], (long long)i, k,
						   (long long)size);
	}
	return 0;
}

int sparse_check_rows(const char *op, const int64_t *crow, const int64_t *col, int64_t m, int64_t n,
		      int64_t nnz)
{
	if (crow[0] != 0 || crow[m] != nnz)
		return tensor_fail(EINVAL,
				   "%s: crow_indices must go from 0 to %lld, the number of "
				   "values, got %lld to %lld",
				   op, (long long)nnz, (long long)crow[0], (long long)crow[m]);
	for (int64_t i = 0; i < m; i++)
		if (crow[i] > crow[i + 1] || crow[i + 1] > nnz)
			return tensor_fail(EINVAL,
					   "%s: crow_indices must not descend, but row %lld "
					   "goes from %lld to %lld",
					   op, (long long)i, (long long)crow[i],
					   (long long)crow[i + 1]);
	for (int64_t i = 0; i < m; i++)
		for (int64_t p = crow[i]; p < crow[i + 1]; p++) {
			if (col[p] < 0 || col[p] >= n)
				return tensor_fail(EINVAL,
						   "%s: column %lld of element %lld is out "
						   "of range for %lld columns",
						   op, (long long)col[p], (long long)p,
						   (long long)n);
			if (p > crow[i] && col[p] <= col[p - 1])
				return tensor_fail(EINVAL,
						   "%s: columns must ascend within a row, "
						   "but row %lld has %lld after %lld",
						   op, (long long)i, (long long)col[p],
						   (long long)col[p - 1]);
		}
	return 0;
}

/* ---- keys ---- */

struct keys {
	int64_t *keys, *indices;
	const int64_t *sizes;
	int d;
	int64_t nnz;
};

static void keys_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct keys *k = ctx;

	for (int64_t i = begin; i < end; i++)
		k->keys[i] = k->d ? k->indices[i] : 0;
	for (int j = 1; j < k->d; j++) {
		const int64_t *row = k->indices + j * k->nnz;

		for (int64_t i = begin; i < end; i++)
			k->keys[i] = k->keys[i] * k->sizes[j] + row[i];
	}
}

void sparse_keys(int64_t *keys, const int64_t *indices, int d, int64_t nnz, const int64_t *sizes)
{
	struct keys k = { keys, (int64_t *)indices, sizes, d, nnz };

	parallel_for(0, nnz, ITER_GRAIN, keys_chunk, &k);
}

static void indices_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct keys *k = ctx;

	for (int64_t i = begin; i < end; i++) {
		uint64_t rest = k->keys[i];

		for (int j = k->d - 1; j > 0; j--) {
			uint64_t size = k->sizes[j];

			k->indices[j * k->nnz + i] = rest % size;
			rest /= size;
		}
		if (k->d)
			k->indices[i] = rest;
	}
}

void sparse_indices(int64_t *indices, const int64_t *keys, int d, int64_t nnz, const int64_t *sizes)
{
	struct keys k = { (int64_t *)keys, indices, sizes, d, nnz };

	parallel_for(0, nnz, ITER_GRAIN, indices_chunk, &k);
}

bool sparse_ascending(const int64_t *keys, int64_t n)
{
	bool bad = false;

	for (int64_t i = 1; i < n; i++)
		bad |= keys[i] <= keys[i - 1];
	return !bad;
}

/* ---- least significant digit radix sort ---- */

#define DIGIT_BITS 11
#define DIGITS	   6 /* for keys below 2^63 */
#define BUCKETS	   (1 << DIGIT_BITS)

struct entry {
	uint64_t key;
	int64_t at;
};

static unsigned digit(uint64_t key, int i)
{
	return key >> i * DIGIT_BITS & (BUCKETS - 1);
}

/* Histogram of each digit. */
static void count_digits(int64_t (*count)[BUCKETS], const int64_t *keys, int64_t n, int digits)
{
	for (int64_t i = 0; i < n; i++)
		for (int j = 0; j < digits; j++)
			count[j][digit(keys[i], j)]++;
}

static void sort_digit(struct entry *to, const struct entry *from, int64_t n, int64_t *count, int j)
{
	int64_t sum = 0;

	for (int b = 0; b < BUCKETS; b++) {
		int64_t c = count[b];

		count[b] = sum;
		sum += c;
	}
	for (int64_t i = 0; i < n; i++)
		to[count[digit(from[i].key, j)]++] = from[i];
}

int sparse_sort(int64_t *sorted, int64_t *order, const int64_t *keys, int64_t n)
{
	int64_t room[] = { 2, 2 * n }, all = 0;
	int64_t counts[] = { DIGITS, BUCKETS };
	int64_t(*count)[BUCKETS];
	struct entry *a, *b;
	tensor *memory, *table;
	int digits = 0;

	memory = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, room, 2);
	table = memory ? tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, counts, 2) : NULL;
	if (!table) {
		tensor_put(memory);
		return -ENOMEM;
	}
	a = memory->data;
	b = a + n;
	count = table->data;
	memset(count, 0, sizeof(*count) * DIGITS);
	for (int64_t i = 0; i < n; i++)
		all |= keys[i];
	while (digits < DIGITS && all >> digits * DIGIT_BITS)
		digits++;
	count_digits(count, keys, n, digits);
	for (int64_t i = 0; i < n; i++)
		a[i] = (struct entry){ keys[i], i };
	for (int j = 0; j < digits; j++) {
		struct entry *swap = a;

		if (n && count[j][digit(keys[0], j)] == n)
			continue; /* equal in all keys */
		sort_digit(b, a, n, count[j], j);
		a = b;
		b = swap;
	}
	for (int64_t i = 0; i < n; i++) {
		sorted[i] = a[i].key;
		order[i] = a[i].at;
	}
	tensor_put(table);
	tensor_put(memory);
	return 0;
}

int64_t sparse_runs(int64_t *starts, int64_t *keys, const int64_t *sorted, int64_t n)
{
	int64_t runs = 0, last = -1;

	for (int64_t i = 0; i < n; i++) {
		int64_t key = sorted[i];

		if (key != last) {
			starts[runs] = i;
			keys[runs++] = key;
		}
		last = key;
	}
	starts[runs] = n;
	return runs;
}

/* ---- rows ---- */

void sparse_compress(int64_t *crow, int64_t m, const int64_t *rows, int64_t nnz)
{
	int64_t p = 0;

	for (int64_t i = 0; i <= m; i++) {
		while (p < nnz && rows[p] < i)
			p++;
		crow[i] = p;
	}
}

void sparse_expand(int64_t *rows, const int64_t *crow, int64_t m)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t p = crow[i]; p < crow[i + 1]; p++)
			rows[p] = i;
}

/* ---- search ---- */

struct find {
	int64_t *at, n;
	const int64_t *wanted, *keys;
};

/* Wanted keys are often ascending: begin the search where the last one ended. */
static void find_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct find *f = ctx;
	int64_t low = 0, last = -1;

	for (int64_t i = begin; i < end; i++) {
		int64_t key = f->wanted[i], step = 1, high;

		if (key < last)
			low = 0;
		last = key;
		while (low + step < f->n && f->keys[low + step] < key)
			step *= 2;
		high = low + step < f->n ? low + step + 1 : f->n;
		while (low < high) {
			int64_t middle = low + (high - low) / 2;

			if (f->keys[middle] < key)
				low = middle + 1;
			else
				high = middle;
		}
		f->at[i] = low < f->n && f->keys[low] == key ? low : -1;
	}
}

void sparse_find(int64_t *at, const int64_t *wanted, int64_t count, const int64_t *keys, int64_t n)
{
	struct find f = { at, n, wanted, keys };

	parallel_for(0, count, ITER_GRAIN, find_chunk, &f);
}
