/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tiles of attention, for the element type T with vectors VEC of LANES (matmul_tile.h).
 *
 * The matrix of scores is computed transposed: rows are keys, and a panel of queries lies across up to VECS vectors. So
 * maxima and sums over keys are operations on whole vectors, both products read their operands in the order of
 * compute_tiles(), and numbers of keys and features need not be multiples of a vector. The scores of a panel and a
 * block of keys are the only ones in memory.
 *
 * With causal attention a panel's vectors have different numbers of keys: the tile of scores has steps, see steps_of().
 */
#ifndef TENSOR_ATTENTION_TILES_H
#define TENSOR_ATTENTION_TILES_H

#include "kernels/cpu/nn/attention/attention.h"

#include "kernels/cpu/linalg/matmul_pack.h"
#include "kernels/cpu/linalg/matmul_tile.h"

#define PANELS	      4 /* panels of queries in a block, for which keys are packed once */
#define STEPS	      (PANELS * VECS)
#define KEYS	      128  /* keys in a block */
#define MANY_FEATURES 1024 /* features of keys and values above which blocks are smaller */

/* Functions on `vecs` vectors are compiled for each number of them. */
#define WITH_VECS(vecs, CALL)         \
	switch (vecs) {               \
	case 1: {                     \
		enum { vectors = 1 }; \
		CALL;                 \
		break;                \
	}                             \
	case 2: {                     \
		enum { vectors = 2 }; \
		CALL;                 \
		break;                \
	}                             \
	default: {                    \
		enum { vectors = 3 }; \
		CALL;                 \
	}                             \
	}

#ifndef UNIT
#define UNIT 1
#endif

#if UNIT == 2
#include "kernels/cpu/simd/tiles_pairs.h"
#else
#include "kernels/cpu/simd/tiles_none.h"
#endif

#define INLINE static inline __attribute__((always_inline))

/* n rounded up to whole vectors. */
static inline int64_t padded(int64_t n)
{
	return (n + LANES - 1) / LANES * LANES;
}

/* The distance of rows of n elements of which tiles read parts: an odd number of vectors, for different sets of the cache. */
static inline int64_t apart(int64_t n)
{
	return (padded(n) / LANES | 1) * LANES;
}

static inline int64_t between(int64_t low, int64_t n, int64_t high)
{
	return n < low ? low : least(n, high);
}

static inline VEC splat(T x)
{
	return (VEC){ 0 } + x;
}

/* ---- units and tiles ---- */

/* Units of n elements. */
static inline int64_t units(int64_t n)
{
	return (n + UNIT - 1) / UNIT;
}

/* Units of n elements that are summed over, in whole tiles. */
static inline int64_t depth_of(int64_t n)
{
	return whole_tiles(units(n));
}

/* The elements of these. */
static inline int64_t whole_pairs(int64_t n)
{
	return UNIT * depth_of(n);
}

/* Zeros behind n rows, `row` units apart, up to whole tiles. */
static inline void fill_tiles(T *to, int64_t n, int64_t row)
{
	memset(to + n * row, 0, (whole_tiles(n) - n) * row * sizeof(T));
}

/* ---- blocks ---- */

static int64_t block_panels(const struct attention_shape *s)
{
	return s->features + s->values > MANY_FEATURES ? 1 : PANELS;
}

static int64_t block_keys(const struct attention_shape *s)
{
	return s->features + s->values > MANY_FEATURES ? KEYS / 4 : KEYS;
}

static int64_t block_queries(const struct attention_shape *s)
{
	return block_panels(s) * WIDE;
}

/* Cuts n elements from the memory at *at, or only counts them if *at began at 0. */
static T *cut(uintptr_t *at, int64_t n)
{
	T *p = (T *)*at;

	*at += (n * sizeof(T) + 63) / 64 * 64;
	return p;
}

/* ---- operands ---- */

/* The end of the keys that queries `from` to `from` + n have. */
static inline int64_t last_key(const struct attention_shape *s, int64_t from, int64_t n)
{
	return s->causal ? least(s->keys, from + n) : s->keys;
}

/* Memory for conversions, in elements: a block of rows of any operand, twice. */
static int64_t conversion_size(const struct attention_shape *s)
{
	int64_t rows = block_queries(s) > block_keys(s) ? block_queries(s) : block_keys(s);
	int64_t columns = s->features > s->values ? s->features : s->values;

	return s->dtype == T_DTYPE ? 0 : 2 * rows * columns;
}

/* n rows of `width` elements, in an operand or converted; strides in elements. */
struct rows {
	const T *data;
	int64_t row, column, n, width;
};

/* n rows of m from row `from` on: in place, or converted to buf. */
static struct rows rows_of(const struct attention_matrix *m, int64_t from, int64_t n, int64_t width,
			   T *buf)
{
	const char *data = m->data + from * m->row;

	if (m->dtype == T_DTYPE)
		return (struct rows){ (const T *)data, m->row / (int64_t)sizeof(T),
				      m->column / (int64_t)sizeof(T), n, width };
	for (int64_t i = 0; i < n; i++, data += m->row)
		(CPU_NAME(convert))(buf + i * width, T_DTYPE, sizeof(T), data, m->dtype, m->column,
				    width);
	return (struct rows){ buf, width, 1, n, width };
}

/* Rows i to i + n of r. */
static struct rows rows_from(const struct rows *r, int64_t i, int64_t n)
{
	return (struct rows){ r->data + i * r->row, r->row, r->column, n, r->width };
}

/* Copies rows, apart(width) elements from each other. */
static void load_rows(T *to, const struct rows *r)
{
	int64_t width = r->width, last = padded(width) - LANES;
	vec_part part = PART(width - last);
	const T *data = r->data;

	if (width > 1 && r->column != 1) {
		for (int64_t i = 0; i < r->n; i++, data += r->row, to += apart(width))
			for (int64_t j = 0; j < width; j++)
				to[j] = data[j * r->column];
		return;
	}
	for (int64_t i = 0; width && i < r->n; i++, data += r->row, to += apart(width)) {
		for (int64_t j = 0; j < last; j += LANES)
			*(VEC *)(to + j) = *(const VEC *)(data + j);
		*(VEC *)(to + last) = LOAD(data + last, part);
	}
}

/* Copies rows as columns of a panel: rows of `across` elements, zero beyond r->n. */
static void load_columns(T *to, const struct rows *r, int64_t across)
{
	pack_panel(to, r->data, r->width == 1 ? 1 : r->column, r->n == 1 ? 1 : r->row, r->width,
		   r->n, across);
}

/* Writes n rows of `width` elements, padded to whole vectors, times a factor for each row. */
static void store_rows(const struct attention_matrix *m, int64_t from, int64_t n, int64_t width,
		       T *rows, const T *factor)
{
	const bool direct = m->dtype == T_DTYPE && m->column == sizeof(T);
	int64_t last = padded(width) - LANES;
	vec_part part = PART(width - last);
	char *to = m->data + from * m->row;

	for (int64_t i = 0; width && i < n; i++, rows += padded(width), to += m->row) {
		T *out = direct ? (T *)to : rows;
		const T f = factor[i];

		for (int64_t j = 0; j < last; j += LANES)
			*(VEC *)(out + j) = *(VEC *)(rows + j) * f;
		STORE(out + last, part, *(VEC *)(rows + last) * f);
		if (!direct)
			(CPU_NAME(convert))(to, m->dtype, m->column, rows, T_DTYPE, sizeof(T),
					    width);
	}
}

/* ---- panels of queries ---- */

/* Queries i to i + n of a head, as columns of `vecs` vectors; also all panels of a block together. */
struct panel {
	int64_t i, n, across; /* across: vecs * LANES */
	int64_t stride;	      /* of the rows of a tile of scores */
	int vecs;
};

/* The panel of a block of n queries from `from` on, from its query j on, with a tile of its own. */
static struct panel panel_at(int64_t from, int64_t n, int64_t j)
{
	int vecs = next_vecs(n - j);
	int64_t across = vecs * (int64_t)LANES;

	return (struct panel){ from + j, least(n - j, across), across, across, vecs };
}

#include "kernels/cpu/nn/attention/attention_units.h"

/* ---- steps of a tile of scores ---- */

/* Rows `from` to `to` of a tile, the vectors from `first` on. */
struct step {
	int64_t from, to;
	int first;
};

/*
 * The steps of the scores of a panel and n keys from key k on; returns their number, 0 if the panel has none of these
 * keys. Vector v of a causal panel has the keys up to its last query.
 */
static int steps_of(struct step *step, const struct panel *p, const struct attention_shape *s,
		    int64_t k, int64_t n)
{
	int64_t from = 0;
	int count = 0;

	if (!s->causal) {
		*step = (struct step){ 0, n, 0 };
		return 1;
	}
	for (int v = 0; v < p->vecs; v++) {
		int64_t to = between(0, p->i + (v + 1) * (int64_t)LANES - k, n);

		if (to > from)
			step[count++] = (struct step){ from, to, v };
		from = to;
	}
	return count;
}

/* The keys of all steps. */
static int64_t keys_of(const struct step *step, int steps)
{
	return step[steps - 1].to;
}

#include "kernels/cpu/nn/attention/attention_products.h"

/* ---- masks ---- */

/* Memory for add_mask(), in elements. */
static int64_t mask_size(const struct attention_shape *s)
{
	return s->masked ? 2 * WIDE * block_keys(s) : 0;
}

/* n elements of a mask as addends: a bool one is 0 where true and -inf where false. */
static void mask_addends(T *to, const struct attention_matrix *m, const char *from, int64_t stride,
			 int64_t n)
{
	if (m->dtype == TENSOR_BOOL && stride == 1)
		for (int64_t i = 0; i < n; i++)
			to[i] = from[i] ? 0 : -(T)INFINITY;
	else if (m->dtype == TENSOR_BOOL)
		for (int64_t i = 0; i < n; i++)
			to[i] = from[i * stride] ? 0 : -(T)INFINITY;
	else
		(CPU_NAME(convert))(to, T_DTYPE, sizeof(T), from, m->dtype, stride, n);
}

/* Adds n rows of addends of a panel, or one addend for all queries of a row. */
static void add_to_scores(T *scores, const struct panel *p, const T *addends, int64_t stride,
			  int64_t n)
{
	for (int64_t i = 0; i < n; i++, scores += p->stride, addends += stride)
		for (int64_t j = 0; j < p->across; j += LANES)
			*(VEC *)(scores + j) += stride == 1 ? splat(*addends) :
							      *(const VEC *)(addends + j);
}

/* Adds the mask of n keys from k on to the scores of a panel. */
static void add_mask(T *scores, const struct attention_matrix *m, const struct panel *p, int64_t k,
		     int64_t n, T *buf)
{
	const char *from = m->data + p->i * m->row + k * m->column;
	T *columns = buf + WIDE * n;

	if (!m->row) {
		mask_addends(buf, m, from, m->column, n);
		add_to_scores(scores, p, buf, 1, n);
		return;
	}
	for (int64_t i = 0; i < p->n; i++)
		mask_addends(buf + i * n, m, from + i * m->row, m->column, n);
	pack_panel(columns, buf, 1, p->n == 1 ? 1 : n, n, p->n, p->across);
	add_to_scores(scores, p, columns, p->across, n);
}

/* A key after a query gets the score -inf: the first lanes of a step's first vector. */
static void exclude_later(T *scores, const struct panel *p, const struct step *step, int steps,
			  int64_t k)
{
	for (int i = 0; i < steps; i++, step++) {
		int64_t left = step->first * (int64_t)LANES, first = p->i + left + 1 - k;

		for (int64_t j = first > step->from ? first : step->from; j < step->to; j++)
			STORE(scores + j * p->stride + left, PART(j + 1 - first),
			      splat(-(T)INFINITY));
	}
}

/* Scores of the keys in a, from key k on, with all masks. */
static void masked_scores(const struct multiplier *x, T *to, const struct attention_shape *s,
			  const struct attention_matrix *m, const T *a, const T *b,
			  const struct panel *p, const struct step *step, int steps, int64_t k,
			  T *buf)
{
	score(x, to, a, units(s->features), b, p, step, steps, s->scale);
	if (s->masked)
		add_mask(to, m, p, k, keys_of(step, steps), buf);
	if (s->causal)
		exclude_later(to, p, step, steps, k);
}

#endif
