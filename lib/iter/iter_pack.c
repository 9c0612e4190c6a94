// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Packed iteration: kernels get operands with the dtype they compute in and adjacent elements, or
 * one element repeated along a row. An operand with another layout or dtype, or with rows too short
 * for one kernel call each, is packed into a block that fits the first-level cache, one tile of
 * rows at a time. An output is computed in a block and then stored. See iter_run_packed().
 */
#include "iter/iter.h"

#define BLOCK_BYTES 4096 /* per operand */

struct pack {
	iter_loop loop;
	const void *params;
	const struct tensor_iter *it;
	const uint8_t *want;
	iter_lookup move;
	int64_t elements; /* capacity of a block */
	bool joined;	  /* several rows become one: iter_joins_rows() */
	bool reduced;	  /* see iter_run_packed_reduced() */
};

/* h rows of w elements. If `joined`, the rows of every operand are passed to the kernel as one row.
 */
struct tile {
	int64_t w, h;
	bool joined, first, whole; /* first tile of the call; tile as wide as the rows */
	char *at[ITER_OPERANDS];
	const int64_t *s0, *s1;
};

struct pack_buffers {
	_Alignas(ITER_LINE) char block[ITER_OPERANDS][BLOCK_BYTES];
	char gathered[BLOCK_BYTES], rounded[BLOCK_BYTES / 2];
};

/* Copy or convert w * h elements. */
static void transfer(iter_loop loop, char *to, int64_t to0, int64_t to1, char *from, int64_t from0,
		     int64_t from1, int64_t w, int64_t h)
{
	char *const data[] = { to, from };
	const int64_t s0[] = { to0, from0 }, s1[] = { to1, from1 };
	bool run = to1 == w * to0 && from1 == w * from0;

	loop(data, s0, s1, run ? w * h : w, run ? 1 : h, NULL);
}

/* dtype to which an operand is rounded before the conversion to f32: the common reduced float dtype
 * if the kernel computes it in f32, else the operand's own. */
static unsigned rounded_to(const struct pack *b, int i)
{
	unsigned reduced = b->it->dtype, have = iter_dtype(b->it, i);

	if (dtype_wide(reduced) == reduced || b->want[i] != dtype_wide(reduced) || !b->it->op[i] ||
	    have == reduced)
		return have;
	return reduced;
}

/* Pack w * h elements of input i into its block, without gaps. */
static void pack(const struct pack *b, int i, struct pack_buffers *buf, char *from, int64_t s0,
		 int64_t s1, int64_t w, int64_t h)
{
	unsigned want = b->want[i], have = iter_dtype(b->it, i), via = rounded_to(b, i);
	int64_t size = dtype_sizes[have], to = dtype_sizes[want];

	if (want == have) {
		transfer(b->move(want, have), buf->block[i], to, w * to, from, s0, s1, w, h);
		return;
	}
	if (w * h > 1 && (s0 != size || (h > 1 && s1 != w * size))) {
		transfer(b->move(have, have), buf->gathered, size, w * size, from, s0, s1, w, h);
		from = buf->gathered;
	}
	if (via != have) {
		transfer(b->move(via, have), buf->rounded, dtype_sizes[via], 0, from, size, 0,
			 w * h, 1);
		from = buf->rounded;
	}
	transfer(b->move(want, via), buf->block[i], to, 0, from, dtype_sizes[via], 0, w * h, 1);
}

/* Store the output's block in the output. */
static void unpack(const struct pack *b, struct pack_buffers *buf, const struct tile *t)
{
	unsigned want = b->want[0], have = iter_dtype(b->it, 0);
	int64_t size = dtype_sizes[have], n = t->w * t->h;
	bool run = t->s0[0] == size && (t->h == 1 || t->s1[0] == t->w * size);
	char *from = buf->block[0], *to = run ? t->at[0] : buf->gathered;

	if (want != have) {
		transfer(b->move(have, want), to, size, 0, from, dtype_sizes[want], 0, n, 1);
		from = to;
	}
	if (from != t->at[0])
		transfer(b->move(have, have), t->at[0], t->s0[0], t->s1[0], from, size, t->w * size,
			 t->w, t->h);
}

/* True if input i is one element per row, and the kernel accepts a stride of 0 there. */
static bool repeats(const struct pack *b, const struct tile *t, int i)
{
	if (t->s0[i] || !iter_may_repeat(b->it, i))
		return false;
	if (b->reduced && dtype_wide(b->want[i]) != b->want[i])
		return false;
	return !t->joined || !t->s1[i] || t->h == 1;
}

static bool direct(const struct pack *b, const struct tile *t, int i)
{
	if (iter_dtype(b->it, i) != b->want[i])
		return false;
	if (t->s0[i] != dtype_sizes[b->want[i]] && !repeats(b, t, i))
		return false;
	return !t->joined || t->h == 1 || t->s1[i] == t->w * t->s0[i];
}

/* Pack input i into its block; returns the strides of the block in s0 and s1. */
static void pack_input(const struct pack *b, struct pack_buffers *buf, const struct tile *t, int i,
		       int64_t *s0, int64_t *s1)
{
	bool one = repeats(b, t, i);
	int64_t w = one ? 1 : t->w, h = !t->s1[i] && (!t->joined || one) ? 1 : t->h;

	*s0 = one ? 0 : dtype_sizes[b->want[i]];
	*s1 = h == 1 ? 0 : w * dtype_sizes[b->want[i]];
	/* The block of an operand that is the same for all rows is still valid. */
	if (!t->first && !t->s1[i] && (!t->s0[i] || t->whole))
		return;
	pack(b, i, buf, t->at[i], t->s0[i], t->s1[i], w, h);
}

static void run_tile(const struct pack *b, struct pack_buffers *buf, const struct tile *t)
{
	int64_t s0[ITER_OPERANDS], s1[ITER_OPERANDS];
	char *data[ITER_OPERANDS];
	bool run = true;

	for (int i = b->it->nops - 1; i >= 0; i--) {
		data[i] = t->at[i];
		s0[i] = t->s0[i];
		s1[i] = t->s1[i];
		if (!direct(b, t, i)) {
			data[i] = buf->block[i];
			s0[i] = dtype_sizes[b->want[i]];
			s1[i] = t->w * s0[i];
			if (i)
				pack_input(b, buf, t, i, &s0[i], &s1[i]);
		}
		run &= t->h == 1 || s1[i] == t->w * s0[i];
	}
	b->loop(data, s0, s1, run ? t->w * t->h : t->w, run ? 1 : t->h, b->params);
	if (data[0] != t->at[0])
		unpack(b, buf, t);
}

static void pack_loop(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0,
		      int64_t n1, const void *params)
{
	const struct pack *b = params;
	int64_t w = n0 < b->elements ? n0 : b->elements, h = b->elements / w;
	int64_t lines = n1 > 1 && !b->joined ? iter_cache_line_rows(b->it) : 0;
	struct tile t = { .joined = b->joined, .first = true, .s0 = s0, .s1 = s1 };
	struct pack_buffers buf;

	if (h < lines) {
		h = lines;
		w = b->elements / h;
	}
	t.whole = w >= n0;
	for (int64_t j = 0; j < n1; j += h) {
		for (int64_t i = 0; i < n0; i += w) {
			t.w = n0 - i < w ? n0 - i : w;
			t.h = n1 - j < h ? n1 - j : h;
			for (int k = 0; k < b->it->nops; k++)
				t.at[k] = data[k] + i * s0[k] + j * s1[k];
			run_tile(b, &buf, &t);
			t.first = false;
		}
	}
}

static void run_packed(const struct tensor_iter *it, iter_loop loop, const void *params,
		       const uint8_t *want, iter_lookup move, bool reduced)
{
	struct pack b = { loop, params, it, want, move, 0, iter_joins_rows(it), reduced };
	int64_t largest = 1;

	for (int i = 0; i < it->nops; i++) {
		int64_t from = dtype_sizes[iter_dtype(it, i)], to = dtype_sizes[want[i]];

		largest = from > largest ? from : largest;
		largest = to > largest ? to : largest;
	}
	b.elements = BLOCK_BYTES / largest;
	iter_run(it, pack_loop, &b);
}

void iter_run_packed(const struct tensor_iter *it, iter_loop loop, const void *params,
		     const uint8_t *want, iter_lookup move)
{
	run_packed(it, loop, params, want, move, false);
}

void iter_run_packed_reduced(const struct tensor_iter *it, iter_loop loop, const void *params,
			     const uint8_t *want, iter_lookup move)
{
	run_packed(it, loop, params, want, move, true);
}
