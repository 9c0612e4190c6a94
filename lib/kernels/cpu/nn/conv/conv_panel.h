/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Panels of columns of conv_implicit_gemm.h: the elements of the source that the taps of up to WIDE
 * positions read, and the place of the positions in the output.
 */
#ifndef TENSOR_CONV_PANEL_H
#define TENSOR_CONV_PANEL_H

/* Lanes of a vector whose elements are contiguous in the source. */
struct piece {
	int64_t at; /* index in the source of lane 0, extrapolated if it is not in the piece */
	vec_part lanes;
};

/* Columns from..from + n that are adjacent in the grid, and the first one's place in the output. */
struct panel_run {
	int64_t from, n, out;
};

struct panel {
	int64_t n; /* columns */
	int vecs, runs, pieces[VECS];
	struct piece piece[WIDE];
	struct panel_run run[WIDE];
	int64_t step; /* between adjacent columns of a run in the output */
	bool direct;
	T *block; /* rows of WIDE sums, unless direct */
};

/* Adds a run of n columns from column i on, whose first element is at `at` in the source. */
static void panel_add_run(struct panel *p, int64_t i, int64_t n, int64_t at)
{
	while (n > 0) {
		int64_t v = i / LANES, lane = i % LANES;
		int64_t len = n < LANES - lane ? n : LANES - lane;

		p->piece[v * LANES + p->pieces[v]++] =
			(struct piece){ .at = at - lane,
					.lanes = PART_OF((int)lane, (int)(lane + len)) };
		i += len;
		at += len;
		n -= len;
	}
}

static void panel_set(struct panel *p, const struct conv_gemm *c, int64_t column, int64_t n)
{
	struct conv_walk w = conv_walk_from(c->grid, column);

	p->n = n;
	p->vecs = (int)((n + LANES - 1) / LANES);
	p->step = c->out_step[AXES - 1];
	p->runs = 0;
	p->direct = p->step == 1;
	memset(p->pieces, 0, sizeof(p->pieces));
	for (int64_t i = 0, count; i < n; i += count) {
		int64_t out = conv_walk_offset(&w, c->out_image, c->out_step);

		count = conv_walk_run(&w, n - i);
		panel_add_run(p, i, count, conv_walk_offset(&w, c->src.image, c->src.step));
		p->run[p->runs++] = (struct panel_run){ .from = i, .n = count, .out = out };
		p->direct &= out == p->run[0].out + i;
		conv_walk_on(&w, count);
	}
}

/* Vector v of the panel for the tap at s; unused lanes are zero. */
static inline VEC panel_vector(const struct panel *p, int v, const T *s)
{
	const struct piece *piece = p->piece + v * LANES;
	VEC x;

	if (p->pieces[v] == 1 && p->n >= (v + 1) * LANES)
		return *(const VEC *)(s + piece->at);
	x = LOAD(s + piece->at, piece->lanes);
	for (int i = 1; i < p->pieces[v]; i++)
		x = (VEC)((MASK)x | (MASK)LOAD(s + piece[i].at, piece[i].lanes));
	return x;
}

/* Gathers k rows of the panel, vecs * LANES elements each. */
static void panel_gather(T *to, const struct panel *p, const T *src, const int64_t *offset,
			 int64_t k)
{
	const int vecs = p->vecs;

	for (int v = 0; v < vecs; v++) {
		const struct piece *piece = p->piece + v * LANES;
		T *row = to + v * LANES;

		if (p->pieces[v] == 1 && p->n >= (v + 1) * LANES)
			for (int64_t d = 0; d < k; d++, row += vecs * LANES)
				*(VEC *)row = *(const VEC *)(src + offset[d] + piece->at);
		else
			for (int64_t d = 0; d < k; d++, row += vecs * LANES)
				*(VEC *)row = panel_vector(p, v, src + offset[d]);
	}
}

/* Stores the sums of the block; a vector may read beyond a run. */
static void panel_scatter(const struct panel *p, T *out, int64_t out_row, int64_t rows)
{
	const T *from = p->block;

	for (int64_t i = 0; i < rows; i++, out += out_row, from += WIDE)
		for (int r = 0; r < p->runs; r++) {
			const T *run = from + p->run[r].from;
			T *to = out + p->run[r].out;
			int64_t n = p->run[r].n;

			if (p->step != 1)
				for (int64_t j = 0; j < n; j++)
					to[j * p->step] = run[j];
			else
				for (int64_t j = 0; j < n; j += LANES)
					STORE(to + j, PART(min64(n - j, LANES)),
					      *(const VEC *)(run + j));
		}
}

/* A panel to be gathered: from src, and if `to` is not NULL, to there. */
struct gather {
	const struct panel *panel;
	const T *src;
	const int64_t *offset;
	T *to;
};

/*
 * The first tile of a panel gathers it: loads and stores run beside the multiplications, where
 * panel_gather() would take as long as a sixth of the product with 64 rows, and longer than the
 * product with few. The columns are stored for the next tiles, if there are some.
 */
#if VEC_BYTES == 64
#define MOST_PIECES 4 /* of a vector */

static bool panel_gathers_first(const struct panel *p)
{
	bool few = p->n == WIDE;

	for (int v = 0; v < VECS && few; v++)
		few = p->pieces[v] <= MOST_PIECES;
	return few;
}

static inline __attribute__((always_inline)) void gather_tile(const struct tile *t,
							      const struct gather *g,
							      const int rows, const int pieces,
							      const bool keep)
{
	const struct panel *p = g->panel;
	const T *a = t->a;
	T *to = g->to;
	VEC sum[ROWS][VECS];
	struct piece piece[VECS][MOST_PIECES];

#pragma GCC unroll 3
	for (int j = 0; j < VECS; j++) {
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++)
			sum[i][j] = (VEC){ 0 };
		memcpy(piece[j], p->piece + j * LANES, sizeof(piece[j]));
		for (int i = p->pieces[j]; i < pieces; i++)
			piece[j][i] = (struct piece){ .at = piece[j][0].at, .lanes = PART(0) };
	}
	for (int64_t k = 0; k < t->k; k++, a += rows, to += WIDE) {
		const T *s = g->src + g->offset[k];
		VEC row[VECS];

#pragma GCC unroll 3
		for (int j = 0; j < VECS; j++) {
			row[j] = pieces == 1 ? *(const VEC *)(s + piece[j][0].at) :
					       LOAD(s + piece[j][0].at, piece[j][0].lanes);
#pragma GCC unroll 4
			for (int i = 1; i < pieces; i++)
				row[j] = (VEC)((MASK)row[j] |
					       (MASK)LOAD(s + piece[j][i].at, piece[j][i].lanes));
			if (keep)
				*(VEC *)(to + j * LANES) = row[j];
		}
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VEC x = BROADCAST(a[i]);
#pragma GCC unroll 3
			for (int j = 0; j < VECS; j++)
				sum[i][j] = MULADD(sum[i][j], x, row[j]);
		}
	}
	store_tile(t, sum, rows, VECS, true);
}

#define GATHER_TILE(NAME, R, P, KEEP)                                              \
	static void NAME##_##R##_##P(const struct tile *t, const struct gather *g) \
	{                                                                          \
		gather_tile(t, g, R, P, KEEP);                                     \
	}
#define GATHER_TILES(NAME, R, KEEP) \
	GATHER_TILE(NAME, R, 1, KEEP) GATHER_TILE(NAME, R, 2, KEEP) GATHER_TILE(NAME, R, 4, KEEP)
#define GATHER_ENTRY(NAME, R) [R] = { NAME##_##R##_1, NAME##_##R##_2, NAME##_##R##_4 }
GATHER_TILES(gather, 1, false)
GATHER_TILES(gather, 2, false)
GATHER_TILES(gather, 3, false)
GATHER_TILES(gather, 4, false)
GATHER_TILES(gather, 5, false)
GATHER_TILES(gather, 6, false)
GATHER_TILES(gather, 7, false)
GATHER_TILES(gather, 8, false)
GATHER_TILES(gather_keep, 4, true)
GATHER_TILES(gather_keep, 5, true)
GATHER_TILES(gather_keep, 6, true)
GATHER_TILES(gather_keep, 7, true)
GATHER_TILES(gather_keep, 8, true)

typedef void (*gather_fn)(const struct tile *, const struct gather *);

/* [rows][the most pieces of a vector: 1, 2, 4]. More than ROWS rows start with a tile of half of them or more. */
static const gather_fn gathers[ROWS + 1][3] = {
	GATHER_ENTRY(gather, 1), GATHER_ENTRY(gather, 2), GATHER_ENTRY(gather, 3),
	GATHER_ENTRY(gather, 4), GATHER_ENTRY(gather, 5), GATHER_ENTRY(gather, 6),
	GATHER_ENTRY(gather, 7), GATHER_ENTRY(gather, 8),
};
static const gather_fn gathers_kept[ROWS + 1][3] = {
	GATHER_ENTRY(gather_keep, 4), GATHER_ENTRY(gather_keep, 5), GATHER_ENTRY(gather_keep, 6),
	GATHER_ENTRY(gather_keep, 7), GATHER_ENTRY(gather_keep, 8),
};

/*
 * Computes the first of m rows of t from t->k rows of the panel; see panel_gathers_first(). Returns
 * the number of rows.
 */
static int64_t gather_first_tile(const struct tile *t, const struct gather *g, int64_t m)
{
	int64_t rows = m / ((m + ROWS - 1) / ROWS); /* as compute_tiles() divides them */
	int pieces = 1;

	for (int v = 0; v < VECS; v++)
		pieces = g->panel->pieces[v] > pieces ? g->panel->pieces[v] : pieces;
	(m <= ROWS ? gathers : gathers_kept)[rows][pieces > 2 ? 2 : pieces - 1](t, g);
	return rows;
}
#else
static inline bool panel_gathers_first(const struct panel *p)
{
	return false;
}

static inline int64_t gather_first_tile(const struct tile *t, const struct gather *g, int64_t m)
{
	return 0;
}
#endif

#endif
