// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Build an iterator and run a kernel over it. See iter.h. */
#include "iter/iter.h"

#include "iter/parallel.h"

/* ---- broadcasting ---- */

int iter_broadcast_sizes(const char *op, const tensor *a, const tensor *b, int64_t *sizes)
{
	int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;

	for (int i = 1; i <= ndim; i++) {
		int64_t m = i <= a->ndim ? a->sizes[a->ndim - i] : 1;
		int64_t n = i <= b->ndim ? b->sizes[b->ndim - i] : 1;

		if (m != n && m != 1 && n != 1)
			return tensor_fail(EINVAL,
					   "%s: shapes %s and %s do not broadcast: %lld and %lld "
					   "in dimension %d",
					   op, SHAPE_STR(a), SHAPE_STR(b), (long long)m,
					   (long long)n, ndim - i),
			       -1;
		sizes[ndim - i] = m == 1 ? n : m;
	}
	return ndim;
}

bool iter_broadcasts_to(const tensor *t, const int64_t *sizes, int ndim)
{
	int lead = ndim - t->ndim;

	if (lead < 0)
		return false;
	for (int i = 0; i < t->ndim; i++)
		if (t->sizes[i] != 1 && t->sizes[i] != sizes[lead + i])
			return false;
	return true;
}

/* Below this number of elements, packing or joining rows costs more than it saves. */
#define FEW 32
/* Least number of elements for which rows of more than ITER_NARROW elements are joined. */
#define JOIN_LEAST 1024

/* ---- set-up ---- */

/* Fast path: every operand is contiguous with as many elements as op[0] (so their shapes differ
 * only in dimensions of size 1), or has a single element. The iterator then has one dimension. */
static bool build_flat(struct tensor_iter *it, const tensor *const *op, int nops)
{
	int64_t numel = it->numel;

	if (!op[0]->contiguous)
		return false;
	for (int i = 0; i < nops; i++) {
		const tensor *t = op[i];

		it->strides[i][0] = 0;
		if (!t) {
			it->direct &= iter_may_repeat(it, i) || numel <= FEW; /* see is_direct() */
			continue;
		}
		it->data[i] = t->data;
		it->uniform &= !i || t->dtype == it->dtype;
		/* A single element may have any stride; choose the contiguous one, which has the
		 * fastest kernel. */
		if (likely(t->numel == numel && t->contiguous))
			it->strides[i][0] = dtype_sizes[t->dtype];
		else if (t->numel != 1)
			return false;
		else
			it->direct &= iter_may_repeat(it, i) || numel <= FEW;
	}
	it->ndim = 1;
	it->shape[0] = numel;
	return true;
}

static void fill_strides(struct tensor_iter *it, const tensor *const *op, int nops)
{
	int ndim = op[0]->ndim;

	it->ndim = ndim;
	for (int d = 0; d < ndim; d++)
		it->shape[d] = op[0]->sizes[ndim - 1 - d];
	for (int i = 0; i < nops; i++) {
		for (int d = 0; d < ndim; d++) {
			int own = op[i] ? op[i]->ndim - 1 - d : -1;
			bool moves = own >= 0 && op[i]->sizes[own] != 1;

			it->strides[i][d] = moves ? op[i]->strides[own] * (int64_t)itemsize(op[i]) :
						    0;
		}
		if (!op[i])
			continue;
		it->data[i] = op[i]->data;
		it->uniform &= !i || op[i]->dtype == it->dtype;
	}
}

/* True if dimension a belongs inside dimension b. The first operand with two different non-zero
 * strides decides. */
static bool inner_first(const struct tensor_iter *it, int a, int b)
{
	for (int i = 0; i < it->nops; i++) {
		int64_t sa = it->strides[i][a], sb = it->strides[i][b];

		sa = sa < 0 ? -sa : sa;
		sb = sb < 0 ? -sb : sb;
		if (!sa || !sb || sa == sb)
			continue;
		return sa < sb;
	}
	return false;
}

static void swap_dims(struct tensor_iter *it, int a, int b)
{
	int64_t tmp = it->shape[a];

	it->shape[a] = it->shape[b];
	it->shape[b] = tmp;
	for (int i = 0; i < it->nops; i++) {
		tmp = it->strides[i][a];
		it->strides[i][a] = it->strides[i][b];
		it->strides[i][b] = tmp;
	}
}

static void sort_dims(struct tensor_iter *it)
{
	for (int i = 1; i < it->ndim; i++)
		for (int j = i; j > 0 && inner_first(it, j, j - 1); j--)
			swap_dims(it, j, j - 1);
}

static bool can_merge(const struct tensor_iter *it, int a, int b)
{
	if (it->shape[a] == 1 || it->shape[b] == 1)
		return true;
	for (int i = 0; i < it->nops; i++)
		if (it->shape[a] * it->strides[i][a] != it->strides[i][b])
			return false;
	return true;
}

static void coalesce(struct tensor_iter *it)
{
	int last = 0;

	for (int d = 1; d < it->ndim; d++) {
		if (can_merge(it, last, d)) {
			if (it->shape[last] == 1)
				for (int i = 0; i < it->nops; i++)
					it->strides[i][last] = it->strides[i][d];
			it->shape[last] *= it->shape[d];
			continue;
		}
		last++;
		if (last != d)
			swap_dims(it, last, d);
	}
	if (it->ndim)
		it->ndim = last + 1;
}

/* True if an input's elements are adjacent in dimension d. */
static bool side_by_side(const struct tensor_iter *it, int d)
{
	for (int i = 1; i < it->nops; i++) {
		int64_t s = it->strides[i][d];

		if (it->op[i] && (s < 0 ? -s : s) == (int64_t)itemsize(it->op[i]))
			return true;
	}
	return false;
}

/* Move the innermost dimension of a transposed input next to dimension 0, so that the elements of
 * one cache line are used soon after each other. */
static void group_cache_lines(struct tensor_iter *it)
{
	for (int d = 1; d < it->ndim; d++) {
		if (!side_by_side(it, d))
			continue;
		for (; d > 1; d--)
			swap_dims(it, d, d - 1);
		return;
	}
}

int64_t iter_cache_line_rows(const struct tensor_iter *it)
{
	int64_t rows = 0;

	for (int i = 0; i < it->nops; i++) {
		int64_t size = dtype_sizes[iter_dtype(it, i)], s1 = it->strides[i][1];

		if ((s1 == size || s1 == -size) && it->strides[i][0] && rows < ITER_LINE / size)
			rows = ITER_LINE / size;
	}
	return rows;
}

/*
 * True if a kernel reads a row of operand i fast enough without packing: its elements are adjacent;
 * or the row is one repeated element that the kernel accepts; or the kernel is binary and the
 * stride is so large that packing would also load one element at a time.
 */
static bool reads_in_place(const struct tensor_iter *it, int i)
{
	int64_t size = dtype_sizes[iter_dtype(it, i)], s = it->strides[i][0];

	if (s == size)
		return true;
	if (!s)
		return iter_may_repeat(it, i);
	if (it->nops != 3)
		return false;
	s = s < 0 ? -s : s;
	return (size >= 8 && s > 2 * size) || (size >= 4 && s > 4 * size);
}

/*
 * Rows of less than two vectors of 64 bytes are joined if that takes no more than an input that
 * repeats a row, which is packed once for all tiles; and rows of less than one vector if it takes
 * an input that repeats an element. Rows of whole vectors are read in place.
 */
bool iter_joins_rows(const struct tensor_iter *it)
{
	int64_t n = it->shape[0], largest = 1, least = 16, limit = 0;

	if (it->ndim < 2 || n <= ITER_NARROW)
		return it->ndim > 0 && n <= ITER_NARROW;
	if (n >= 2 * ITER_LINE || it->numel < JOIN_LEAST)
		return false;
	for (int i = 0; i < it->nops; i++) {
		int64_t size = dtype_sizes[iter_dtype(it, i)];
		int64_t s0 = it->strides[i][0], s1 = it->strides[i][1];

		largest = size > largest ? size : largest;
		least = size < least ? size : least;
		if (!s0 && !s1)
			continue;
		if (!s0)
			limit = ITER_LINE;
		else if (s0 == size && !s1)
			limit = limit ? limit : 2 * ITER_LINE;
		else if (s0 != size || s1 != n * size)
			return false;
	}
	return n * largest < limit && n * least % ITER_LINE;
}

/* True if kernels can read the operands without packing: all rows are long and read well, or there
 * are too few elements for packing to pay. */
static bool is_direct(const struct tensor_iter *it)
{
	if (it->numel <= FEW || (it->ndim > 2 && it->shape[0] * it->shape[1] <= 8 * FEW))
		return true;
	for (int i = 0; i < it->nops; i++)
		if (!reads_in_place(it, i))
			return false;
	return it->ndim < 2 || (!iter_joins_rows(it) && !iter_cache_line_rows(it));
}

void iter_build(struct tensor_iter *it, const tensor *const *op, int nops)
{
	it->op = op;
	it->nops = nops;
	it->numel = op[0]->numel;
	it->uniform = it->direct = true;
	if (likely(build_flat(it, op, nops)))
		return;
	fill_strides(it, op, nops);
	sort_dims(it);
	iter_settle(it);
}

void iter_settle(struct tensor_iter *it)
{
	coalesce(it);
	if (it->ndim > 2)
		group_cache_lines(it);
	it->direct = is_direct(it);
}

/* ---- iteration ---- */

struct walk {
	const struct tensor_iter *it;
	iter_loop loop;
	const void *params;
};

/* Set pos and data to the element with number `index` in iteration order. */
static void seek(const struct tensor_iter *it, int64_t index, int64_t *pos, char **data)
{
	for (int i = 0; i < it->nops; i++)
		data[i] = it->data[i];
	for (int d = 0; d < it->ndim; d++) {
		pos[d] = index % it->shape[d];
		index /= it->shape[d];
		for (int i = 0; i < it->nops; i++)
			data[i] += pos[d] * it->strides[i][d];
	}
}

/* Move n positions forward in dimension d, with carry into the outer dimensions. */
static void advance(const struct tensor_iter *it, int64_t *pos, char **data, int d, int64_t n)
{
	for (;; d++, n = 1) {
		pos[d] += n;
		for (int i = 0; i < it->nops; i++)
			data[i] += n * it->strides[i][d];
		if (pos[d] < it->shape[d] || d + 1 == it->ndim)
			return;
		for (int i = 0; i < it->nops; i++)
			data[i] -= pos[d] * it->strides[i][d];
		pos[d] = 0;
	}
}

/* Call the kernel once for as many elements as one call can cover: whole rows of dimension 0 and 1,
 * or part of a row. Returns their number. */
static int64_t step(const struct walk *w, int64_t *pos, char **data, int64_t left,
		    const int64_t *s0, const int64_t *s1)
{
	const struct tensor_iter *it = w->it;
	int64_t n0 = it->shape[0] - pos[0], n1 = 1;
	bool rows = false;

	if (n0 > left)
		n0 = left;
	else if (pos[0] == 0 && it->ndim > 1) {
		rows = true;
		n1 = it->shape[1] - pos[1];
		if (n1 > left / n0)
			n1 = left / n0;
	}
	w->loop(data, s0, s1, n0, n1, w->params);
	advance(it, pos, data, rows, rows ? n1 : n0);
	return n0 * n1;
}

static void walk_range(int64_t begin, int64_t end, void *ctx)
{
	const struct walk *w = ctx;
	const struct tensor_iter *it = w->it;
	int64_t s0[ITER_OPERANDS], s1[ITER_OPERANDS], pos[TENSOR_MAX_DIMS];
	char *data[ITER_OPERANDS];

	for (int i = 0; i < it->nops; i++) {
		s0[i] = it->strides[i][0];
		s1[i] = it->ndim > 1 ? it->strides[i][1] : 0;
	}
	seek(it, begin, pos, data);
	while (begin < end)
		begin += step(w, pos, data, end - begin, s0, s1);
}

/* Elements in a chunk of parallel work: a multiple of the rows that share a cache line in a
 * transposed operand, unless such a chunk would be too large. */
static int64_t grain(const struct tensor_iter *it)
{
	int64_t lines = it->ndim > 1 ? it->shape[0] * iter_cache_line_rows(it) : 0;

	if (!lines || lines > 32 * ITER_GRAIN)
		return ITER_GRAIN;
	return lines < ITER_GRAIN ? ITER_GRAIN / lines * lines : lines;
}

void iter_run(const struct tensor_iter *it, iter_loop loop, const void *params)
{
	if (it->numel == 0)
		return;
	if (likely(it->ndim == 1 && it->numel <= ITER_GRAIN)) {
		static const int64_t none[ITER_OPERANDS];
		int64_t s0[ITER_OPERANDS];

		for (int i = 0; i < it->nops; i++)
			s0[i] = it->strides[i][0];
		loop(it->data, s0, none, it->numel, 1, params);
		return;
	}
	if (it->ndim <= 2 && it->numel <= ITER_GRAIN) {
		int64_t s0[ITER_OPERANDS], s1[ITER_OPERANDS];

		for (int i = 0; i < it->nops; i++) {
			s0[i] = it->ndim ? it->strides[i][0] : 0;
			s1[i] = it->ndim > 1 ? it->strides[i][1] : 0;
		}
		loop(it->data, s0, s1, it->ndim ? it->shape[0] : 1, it->ndim > 1 ? it->shape[1] : 1,
		     params);
		return;
	}
	parallel_for(0, it->numel, grain(it), walk_range,
		     &(struct walk){ .it = it, .loop = loop, .params = params });
}

/* ---- memory overlap ---- */

bool tensor_overlaps_itself(const tensor *t)
{
	int64_t shape[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], reach = 0;
	int n = 0;

	if (t->contiguous)
		return false;
	for (int i = 0; i < t->ndim; i++) {
		int64_t s = t->strides[i] < 0 ? -t->strides[i] : t->strides[i];
		int j = n;

		if (t->sizes[i] <= 1)
			continue;
		for (; j > 0 && strides[j - 1] > s; j--) {
			strides[j] = strides[j - 1];
			shape[j] = shape[j - 1];
		}
		strides[j] = s;
		shape[j] = t->sizes[i];
		n++;
	}
	/* Without overlap, each stride is larger than the extent of all dimensions with smaller
	 * strides. */
	for (int i = 0; i < n; i++) {
		if (strides[i] <= reach)
			return true;
		reach += (shape[i] - 1) * strides[i];
	}
	return false;
}

static void extent(const tensor *t, const char **first, const char **last)
{
	int64_t low = 0, high = 0;

	for (int i = 0; i < t->ndim; i++) {
		int64_t reach = (t->sizes[i] - 1) * t->strides[i];

		if (reach < 0)
			low += reach;
		else
			high += reach;
	}
	*first = (const char *)t->data + low * (int64_t)itemsize(t);
	*last = (const char *)t->data + (high + 1) * (int64_t)itemsize(t);
}

enum overlap tensor_overlap(const tensor *a, const tensor *b)
{
	const char *a0, *a1, *b0, *b1;
	bool same;

	if (a == b)
		return OVERLAP_SAME;
	if (a->storage != b->storage || !a->numel || !b->numel)
		return OVERLAP_NONE;
	same = a->data == b->data && a->dtype == b->dtype && sizes_equal(a, b);
	for (int i = 0; same && i < a->ndim; i++)
		same = a->sizes[i] == 1 || a->strides[i] == b->strides[i];
	if (same)
		return OVERLAP_SAME;
	extent(a, &a0, &a1);
	extent(b, &b0, &b1);
	return a0 < b1 && b0 < a1 ? OVERLAP_PARTIAL : OVERLAP_NONE;
}
