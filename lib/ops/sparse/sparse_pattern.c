// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Index arithmetic on compressed rows: the indices of a product, of a transpose, and of a sum. See indices.h. */
#include "ops/sparse/indices.h"

#include "iter/iter.h"
#include "iter/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- columns of a product ---- */

#define PARTS 16 /* of the rows: each has marks for all columns */
#define SHORT 16 /* columns that are sorted by insertion */

/* The columns of some rows of the product, in order, until all parts are known. */
struct columns {
	int64_t begin, end; /* rows */
	int64_t *at, n, room;
};

struct pattern {
	const int64_t *a_crow, *a_col, *b_crow, *b_col;
	int64_t m, n, parts;
	int64_t *crow, *col;
	struct columns part[PARTS];
	atomic_bool failed;
};

static void insert(int64_t *p, int64_t n)
{
	for (int64_t i = 1; i < n; i++) {
		int64_t v = p[i], j = i;

		for (; j > 0 && p[j - 1] > v; j--)
			p[j] = p[j - 1];
		p[j] = v;
	}
}

static void merge(int64_t *to, const int64_t *a, const int64_t *end_a, const int64_t *b,
		  const int64_t *end_b)
{
	while (a < end_a && b < end_b) {
		bool first = *a < *b;

		*to++ = first ? *a : *b;
		a += first;
		b += !first;
	}
	memcpy(to, a, (end_a - a) * sizeof(*a));
	memcpy(to + (end_a - a), b, (end_b - b) * sizeof(*b));
}

/* Sorts p[n]; space has room for n. */
static void sort_columns(int64_t *p, int64_t n, int64_t *space)
{
	int64_t *from = p, *to = space;

	for (int64_t i = 0; i < n; i += SHORT)
		insert(p + i, n - i < SHORT ? n - i : SHORT);
	for (int64_t run = SHORT; run < n; run *= 2) {
		int64_t *swap = from;

		for (int64_t i = 0; i < n; i += 2 * run) {
			int64_t middle = i + run < n ? i + run : n,
				end = i + 2 * run < n ? i + 2 * run : n;

			merge(to + i, from + i, from + middle, from + middle, from + end);
		}
		from = to;
		to = swap;
	}
	if (from != p)
		memcpy(p, from, n * sizeof(*p));
}

/* Lists the marked columns in order, and clears the marks, which have room for a multiple of 8. */
static int64_t list_marked(int64_t *p, uint8_t *marks, int64_t n)
{
	int64_t found = 0;

	for (int64_t at = 0; at < n; at += 8) {
		uint64_t eight;

		memcpy(&eight, marks + at, sizeof(eight));
		memset(marks + at, 0, sizeof(eight));
		for (; eight; eight &= eight - 1)
			p[found++] = at + __builtin_ctzll(eight) / 8;
	}
	return found;
}

static int64_t products_of_row(const struct pattern *p, int64_t i)
{
	int64_t sum = 0;

	for (int64_t k = p->a_crow[i]; k < p->a_crow[i + 1]; k++)
		sum += p->b_crow[p->a_col[k] + 1] - p->b_crow[p->a_col[k]];
	return sum;
}

/* The columns of row i in list; marks are clear before and afterwards. */
static int64_t row_columns(const struct pattern *p, int64_t i, int64_t *list, int64_t *space,
			   uint8_t *marks)
{
	bool many = products_of_row(p, i) > p->n / 64;
	int64_t found = 0;

	for (int64_t k = p->a_crow[i]; k < p->a_crow[i + 1]; k++) {
		int64_t begin = p->b_crow[p->a_col[k]], end = p->b_crow[p->a_col[k] + 1];

		for (int64_t j = begin; j < end && many; j++)
			marks[p->b_col[j]] = 1;
		for (int64_t j = begin; j < end && !many; j++) {
			int64_t c = p->b_col[j];

			list[found] = c;
			found += !marks[c];
			marks[c] = 1;
		}
	}
	if (many)
		return list_marked(list, marks, p->n);
	sort_columns(list, found, space);
	for (int64_t k = 0; k < found; k++)
		marks[list[k]] = 0;
	return found;
}

static bool make_room(struct columns *c, int64_t more)
{
	int64_t room = c->room * 2 > c->n + more ? c->room * 2 : c->n + more, *at;

	if (c->n + more <= c->room)
		return true;
	at = realloc(c->at, room * sizeof(*at));
	if (!at)
		return false;
	c->room = room;
	c->at = at;
	return true;
}

static void find_columns(int64_t begin, int64_t end, void *ctx)
{
	struct pattern *p = ctx;

	for (int64_t i = begin; i < end; i++) {
		struct columns *c = &p->part[i];
		uint8_t *marks = calloc(p->n + 8, 1);
		int64_t *list = malloc(2 * (p->n + 1) * sizeof(*list));
		bool ok = marks && list;

		for (int64_t r = c->begin; r < c->end && ok; r++) {
			int64_t n = row_columns(p, r, list, list + p->n + 1, marks);

			ok = make_room(c, n);
			if (ok && n)
				memcpy(c->at + c->n, list, n * sizeof(*list));
			c->n += ok ? n : 0;
			p->crow[r + 1] = n;
		}
		if (!ok)
			atomic_store(&p->failed, true);
		free(marks);
		free(list);
	}
}

static void copy_columns(int64_t begin, int64_t end, void *ctx)
{
	const struct pattern *p = ctx;

	for (int64_t i = begin; i < end; i++)
		if (p->part[i].n)
			memcpy(p->col + p->crow[p->part[i].begin], p->part[i].at,
			       p->part[i].n * sizeof(*p->col));
}

/* Rows in parts of about as many elements of a. */
static void divide_rows(struct pattern *p)
{
	int64_t row = 0, all = p->a_crow[p->m];

	p->parts = all < ITER_GRAIN / 4 ? 1 : PARTS;
	for (int64_t i = 0; i < p->parts; i++) {
		int64_t want = (int64_t)((__int128)all * (i + 1) / p->parts);

		p->part[i].begin = row;
		while (row < p->m && (p->a_crow[row] < want || i + 1 == p->parts))
			row++;
		p->part[i].end = row;
	}
}

tensor *sparse_product_columns(int64_t *crow, const int64_t *a_crow, const int64_t *a_col,
			       const int64_t *b_crow, const int64_t *b_col, int64_t m, int64_t n)
{
	struct pattern p = { a_crow, a_col, b_crow, b_col, m, n, 0, crow, NULL, { { 0 } }, false };
	tensor *col = NULL;

	divide_rows(&p);
	parallel_for(0, p.parts, 1, find_columns, &p);
	if (p.failed) {
		tensor_fail(ENOMEM, "mm: no memory for the columns of the product");
	} else {
		crow[0] = 0;
		for (int64_t i = 0; i < m; i++)
			crow[i + 1] += crow[i];
		col = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &crow[m], 1);
	}
	if (col) {
		p.col = col->data;
		parallel_for(0, p.parts, 1, copy_columns, &p);
	}
	for (int i = 0; i < PARTS; i++)
		free(p.part[i].at);
	return col;
}

/* ---- transpose ---- */

void sparse_transpose_rows(int64_t *to_crow, int64_t *to_col, int64_t *order, const int64_t *crow,
			   const int64_t *col, int64_t m, int64_t n)
{
	memset(to_crow, 0, (n + 1) * sizeof(*to_crow));
	for (int64_t p = 0; p < crow[m]; p++)
		to_crow[col[p] + 1]++;
	for (int64_t j = 0; j < n; j++)
		to_crow[j + 1] += to_crow[j];
	for (int64_t i = 0; i < m; i++)
		for (int64_t p = crow[i]; p < crow[i + 1]; p++) {
			int64_t at = to_crow[col[p]]++;

			to_col[at] = i;
			order[at] = p;
		}
	memmove(to_crow + 1, to_crow, n * sizeof(*to_crow));
	to_crow[0] = 0;
}

/* ---- union ---- */

int64_t sparse_merge(int64_t *keys, int64_t *order, int64_t *starts, const int64_t *a, int64_t na,
		     const int64_t *b, int64_t nb)
{
	int64_t i = 0, j = 0, runs = 0, n = 0;

	while (i < na && j < nb) {
		int64_t x = a[i], y = b[j];

		starts[runs] = n;
		keys[runs++] = x < y ? x : y;
		order[n] = x <= y ? i : na + j;
		n++;
		order[n] = na + j;
		n += x == y;
		i += x <= y;
		j += y <= x;
	}
	for (; i < na; i++, n++) {
		starts[runs] = n;
		keys[runs++] = a[i];
		order[n] = i;
	}
	for (; j < nb; j++, n++) {
		starts[runs] = n;
		keys[runs++] = b[j];
		order[n] = na + j;
	}
	starts[runs] = n;
	return runs;
}
