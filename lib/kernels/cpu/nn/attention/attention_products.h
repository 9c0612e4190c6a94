/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The products of attention, by vectors (matmul_tile.h) or, for pairs of bf16, by tile registers (simd/tiles.h).
 *
 * By tiles all vectors of a panel have the same keys and all keys the same queries: scores outside of the steps are
 * computed, too, and clear_excluded() makes their weights zero. Sums over queries and keys end at whole tiles of zeros.
 * What a panel of queries sums is transposed then, as the scores are, because the units of its weights lie along the
 * keys: rows are features, columns the queries.
 */
#ifndef TENSOR_ATTENTION_PRODUCTS_H
#define TENSOR_ATTENTION_PRODUCTS_H

/* Whether and how the products of a block are computed by tiles. */
struct multiplier {
	enum tile_mode tiles;
	int64_t pitch;	/* units between columns of keys, see load_key_columns() */
	T *model, *buf; /* the model of tiles.h; a block of sums */
};

static inline bool by_tiles(const struct multiplier *x)
{
	return UNIT > 1 && x->tiles != TILES_NONE;
}

/* Memory for blocks of `keys` keys. */
static void cut_multiplier(struct multiplier *x, uintptr_t *at, const struct attention_shape *s,
			   int64_t keys)
{
	int64_t features = s->features > s->values ? s->features : s->values;
	int64_t rows = keys > features ? keys : features;

	x->tiles = tiles_for(least(s->queries, s->keys));
	x->pitch = apart(depth_of(keys));
	x->model = x->tiles == TILES_MODEL ? cut(at, MODEL_UNITS) : NULL;
	x->buf = by_tiles(x) ? cut(at, padded(rows) * WIDE) : NULL;
}

static void begin_products(const struct multiplier *x)
{
	if (by_tiles(x))
		tiles_begin(x->model);
}

static void end_products(const struct multiplier *x)
{
	if (by_tiles(x))
		tiles_end(x->model);
}

/* ---- operands ---- */

/* Rows of keys or values that score() multiplies. */
static void load_key_rows(T *to, const struct rows *r)
{
	load_rows(to, r);
	fill_tiles(to, r->n, apart(r->width));
}

/* Queries or gradients of a panel as columns, which score() multiplies with those rows. */
static void load_panel(T *to, const struct rows *r, int64_t across)
{
	load_columns(to, r, across);
	fill_tiles(to, r->width, across);
}

/*
 * Transposes `rows`, which has n keys as load_row_pairs() copies them, to rows of pairs of adjacent keys for
 * add_to_queries() by tiles.
 */
static void load_key_columns(const struct multiplier *x, T *to, const T *rows, int64_t n,
			     int64_t width)
{
	if (!by_tiles(x))
		return;
	pack_panel(to, rows, 1, apart(width), width, units(n), x->pitch);
	fill_tiles(to, width, x->pitch);
}

/*
 * Prepares the weights of n keys for products by tiles: those outside of the steps are zero. Returns the number of keys with
 * those that fill a tile of pairs, whose weights are zero, too.
 */
static int64_t weight_rows(const struct multiplier *x, T *weights, const struct panel *p,
			   const struct step *step, int steps, int64_t n)
{
	if (!by_tiles(x))
		return n;
	for (int i = 0; i < steps; i++)
		for (int64_t k = step[i].from; step[i].first && k < step[i].to; k++)
			memset(weights + k * p->stride, 0, step[i].first * sizeof(VEC));
	for (int64_t k = keys_of(step, steps); k < whole_pairs(n); k++)
		memset(weights + k * p->stride, 0, p->across * sizeof(T));
	return whole_pairs(n);
}

/* ---- scores ---- */

static void scale_scores(T *scores, const struct panel *p, int64_t n, T scale)
{
	for (int64_t i = 0; scale != 1 && i < n; i++, scores += p->stride)
		for (int64_t j = 0; j < p->across; j += LANES)
			*(VEC *)(scores + j) *= scale;
}

/* Scores of rows of `width` units of a with the columns of a panel b: to = scale * a b, in steps. */
static void score(const struct multiplier *x, T *to, const T *a, int64_t width, const T *b,
		  const struct panel *p, const struct step *step, int steps, double scale)
{
	struct tile t = { .rsa = apart(width),
			  .csa = 1,
			  .rsb = p->across,
			  .rsc = p->stride,
			  .k = width,
			  .alpha = (T)scale };

	if (by_tiles(x)) {
		const struct tile_block block = { .a = a,
						  .b = b,
						  .sums = to,
						  .pitch = t.rsa,
						  .width = p->across,
						  .row = p->stride,
						  .depth = whole_tiles(width) };

		compute_tile_rows(&block, keys_of(step, steps), x->model);
		scale_scores(to, p, keys_of(step, steps), t.alpha);
		return;
	}
	for (int i = 0; i < steps; i++, step++) {
		int64_t left = step->first * (int64_t)LANES;

		t.a = a + step->from * t.rsa;
		t.b = b + left;
		t.c = to + step->from * p->stride + left;
		compute_tiles(&t, step->to - step->from, p->across - left, p->vecs - step->first);
	}
}

/* ---- sums of queries ---- */

/*
 * to += weights^T rows, in steps: rows of to are the panel's queries, those of `rows` are keys as load_row_pairs() copies them. With
 * `first`, to has no values yet. All vectors without steps have the keys of the step.
 */
static void add_rows_to_queries(T *to, const T *weights, const T *rows, int64_t width,
				const struct panel *p, const struct step *step, int steps,
				bool first)
{
	struct tile t = { .rsa = 1,
			  .csa = p->stride,
			  .rsb = apart(width),
			  .rsc = padded(width),
			  .alpha = 1,
			  .beta = first ? 0 : 1 };

	for (int64_t j = 0, n; j < width; j += n) {
		int vecs = next_vecs(width - j);

		n = least(padded(width) - j, vecs * (int64_t)LANES);
		t.b = rows + j;
		for (int i = 0; i < steps; i++) {
			int64_t left = step[i].first * (int64_t)LANES;
			int64_t end = i + 1 < steps ? step[i + 1].first * (int64_t)LANES : p->n;

			t.k = units(step[i].to);
			t.a = weights + left;
			t.c = to + left * t.rsc + j;
			compute_tiles(&t, end - left, n, vecs);
		}
	}
}

/* The same, transposed, by tiles: `columns` are those of load_key_columns(). */
static void add_to_queries(const struct multiplier *x, T *to, const T *weights, const T *rows,
			   const T *columns, int64_t width, const struct panel *p,
			   const struct step *step, int steps, bool first)
{
	const struct tile_block block = { .a = columns,
					  .b = weights,
					  .sums = to,
					  .pitch = x->pitch,
					  .width = p->across,
					  .row = p->across,
					  .depth = depth_of(keys_of(step, steps)),
					  .add = !first };

	if (by_tiles(x))
		compute_tile_rows(&block, width, x->model);
	else
		add_rows_to_queries(to, weights, rows, width, p, step, steps, first);
}

/* Multiplies the sums of each query of a panel by its factor. */
static void scale_queries(const struct multiplier *x, T *to, int64_t width, const struct panel *p,
			  const T *factor)
{
	if (by_tiles(x))
		for (int64_t i = 0; i < width; i++, to += p->across)
			for (int64_t j = 0; j < p->across; j += LANES)
				*(VEC *)(to + j) *= *(const VEC *)(factor + j);
	else
		for (int64_t i = 0; i < p->n; i++, to += padded(width))
			for (int64_t j = 0; j < width; j += LANES)
				*(VEC *)(to + j) *= factor[i];
}

/* Stores the sums of a block of n queries, times a factor for each. */
static void store_queries(const struct multiplier *x, const struct attention_matrix *m,
			  int64_t from, int64_t n, int64_t width, T *sums, const T *factor)
{
	if (!by_tiles(x)) {
		store_rows(m, from, n, width, sums, factor);
		return;
	}
	for (int64_t j = 0; j < n;) {
		struct panel p = panel_at(from, n, j);

		pack_panel(x->buf, sums + j * padded(width), 1, p.across, p.n, width,
			   padded(width));
		store_rows(m, p.i, p.n, width, x->buf, factor + j);
		j += p.n;
	}
}

/* ---- sums of keys ---- */

/* to += scale * sums, m rows of n elements; with `first`, to has no values yet. */
static void add_scaled(T *to, int64_t stride, const T *sums, int64_t m, int64_t n, T scale,
		       bool first)
{
	for (int64_t i = 0; i < m; i++, to += stride, sums += WIDE)
		for (int64_t j = 0; j < n; j += LANES) {
			vec_part part = PART(least(n - j, LANES));
			VEC v = *(const VEC *)(sums + j) * scale;

			if (!first)
				v += LOAD(to + j, part);
			STORE(to + j, part, v);
		}
}

/* add_to_keys() by tiles, for n columns of to; b is their panel, `across` units wide. */
static void add_tiles_to_keys(const struct multiplier *x, T *to, int64_t stride, const T *weights,
			      const T *b, int64_t n, int64_t across, const struct panel *p,
			      const struct step *step, int steps, T scale, bool first)
{
	int64_t left = step->first / UNIT * (int64_t)LANES; /* units of queries without keys */
	const struct tile_block block = { .a = weights + left,
					  .b = b + left * across,
					  .sums = x->buf,
					  .pitch = p->stride,
					  .width = across,
					  .row = WIDE,
					  .depth = depth_of(p->n) - left };

	compute_tile_rows(&block, keys_of(step, steps), x->model);
	add_scaled(to, stride, x->buf, keys_of(step, steps), n, scale, first);
}

/*
 * to += scale * weights rows, in steps: rows of to are keys, `rows` has the queries as load_panel_pairs() copies them. With
 * `first`, to has no values yet.
 */
static void add_to_keys(const struct multiplier *x, T *to, int64_t stride, const T *weights,
			const T *rows, int64_t width, const struct panel *p,
			const struct step *step, int steps, double scale, bool first)
{
	struct tile t = {
		.rsa = p->stride, .csa = 1, .rsc = stride, .alpha = (T)scale, .beta = first ? 0 : 1
	};

	for (int64_t j = 0, n; j < width; j += n, rows += depth_of(p->n) * t.rsb) {
		int vecs = next_vecs(width - j);

		t.rsb = vecs * (int64_t)LANES;
		n = least(width - j, t.rsb);
		if (by_tiles(x)) {
			add_tiles_to_keys(x, to + j, stride, weights, rows, n, t.rsb, p, step,
					  steps, t.alpha, first);
			continue;
		}
		for (int i = 0; i < steps; i++) {
			int64_t left = step[i].first * (int64_t)LANES;

			t.k = units(p->n - left);
			t.a = weights + step[i].from * p->stride + left / UNIT;
			t.b = rows + left / UNIT * t.rsb;
			t.c = to + step[i].from * stride + j;
			compute_tiles(&t, step[i].to - step[i].from, n, vecs);
		}
	}
}

#endif
