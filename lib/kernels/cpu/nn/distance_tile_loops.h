/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tiles of distances for the element type T (no include guard; see each_float.h): F(tiles), the
 * function of parallel_for() for tasks of struct pairs, for p = 0, 1, 2 and infinity.
 *
 * A tile is TILE_ROWS rows of x and a panel of rows of y. The panel is transposed, so that a vector
 * holds an element of several rows of y. Sums are taken over DEPTH elements of the rows and then
 * added, so that errors do not grow with the length of the rows.
 */
#define F(name) CPU_PASTE(name, SUFFIX)
#define V	CPU_PASTE(vec, SUFFIX)
#define LANES	((int)(VEC_BYTES / sizeof(T)))
#define PANEL	((int)(PANEL_BYTES / sizeof(T)))

/* The sum of a norm so far and a difference. */
static inline __attribute__((always_inline)) V F(norm_step)(V sum, V v, enum norm norm)
{
	/* -0.0 has the bit of the sign alone. */
	V size = (V)((__typeof__(v < 0))v & ~(__typeof__(v < 0))-(V){ 0 });

	switch (norm) {
	case NORM_0:
		return sum + (V)VEC_PICK(v != 0, (V){ 0 } + 1, (V){ 0 });
	case NORM_1:
		return sum + size;
	case NORM_2:
		return sum + v * v;
	default:
		return F(vec_max)(size, sum);
	}
}

/*
 * Sums over n elements of `rows` rows x and of the rows of y in `vectors` vectors of a panel; they
 * are combined with those in `to` unless these are the first. rows, vectors and norm are constants.
 */
static inline __attribute__((always_inline)) void F(sums)(T *to, const T *x, int64_t length,
							  const T *panel, int64_t n, int rows,
							  int vectors, enum norm norm, bool first)
{
	V sum[GROUP_ROWS][GROUP_VECTORS];

#pragma GCC unroll 4
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			sum[r][v] = (V){ 0 };
	for (int64_t i = 0; i < n; i++, panel += PANEL) {
#pragma GCC unroll 4
		for (int r = 0; r < rows; r++) {
			V one = x[r * length + i] - (V){ 0 };

#pragma GCC unroll 4
			for (int v = 0; v < vectors; v++)
				sum[r][v] = F(norm_step)(
					sum[r][v], one - *(const V *)(panel + v * LANES), norm);
		}
	}
#pragma GCC unroll 4
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++) {
			V *at = (V *)(to + r * PANEL + v * LANES);

			if (first)
				*at = sum[r][v];
			else if (norm == NORM_INF)
				*at = F(vec_max)(sum[r][v], *at);
			else
				*at += sum[r][v];
		}
}

/* All sums of a tile of `rows` rows and `cols` columns over n elements. */
static inline __attribute__((always_inline)) void F(tile_sums)(T *tile, const T *x, int64_t length,
							       const T *panel, int64_t n,
							       int64_t rows, int64_t cols,
							       enum norm norm, bool first)
{
	const int wide = GROUP_VECTORS * LANES;
	int64_t r = 0;

	for (int step = GROUP_ROWS; step; step = step == 1 ? 0 : 1)
		for (; r + step <= rows; r += step)
			for (int64_t c = 0; c < cols;) {
				bool full = c + wide - LANES < cols;
				T *to = tile + r * PANEL + c;
				const T *from = x + r * length;

				if (step > 1 && full)
					F(sums)
				(to, from, length, panel + c, n, GROUP_ROWS, GROUP_VECTORS, norm,
				 first);
				else if (step > 1) F(sums)(to, from, length, panel + c, n,
							   GROUP_ROWS, 1, norm, first);
				else if (full) F(sums)(to, from, length, panel + c, n, 1,
						       GROUP_VECTORS, norm, first);
				else F(sums)(to, from, length, panel + c, n, 1, 1, norm, first);
				c += full ? wide : LANES;
			}
}

#define TILE_SUMS(name, norm)                                                            \
	static void F(tile_##name)(T * tile, const T *x, int64_t length, const T *panel, \
				   int64_t n, int64_t rows, int64_t cols, bool first)    \
	{                                                                                \
		F(tile_sums)(tile, x, length, panel, n, rows, cols, norm, first);        \
	}
TILE_SUMS(zero, NORM_0)
TILE_SUMS(one, NORM_1)
TILE_SUMS(two, NORM_2)
TILE_SUMS(infinite, NORM_INF)
#undef TILE_SUMS

static void F(sums_of_tile)(const struct pairs *t, T *tile, const T *x, const T *y, int64_t rows,
			    int64_t cols)
{
	_Alignas(64) T panel[DEPTH * PANEL];

	/* The last vector of a panel is computed as a whole. */
	if (cols % LANES)
		memset(panel, 0, sizeof(panel));
	for (int64_t k = 0; k < t->length; k += DEPTH) {
		int64_t n = t->length - k < DEPTH ? t->length - k : DEPTH;
		char *data[] = { (char *)panel, (char *)(y + k) };

		CPU_NAME(transpose)
		(data, t->length * (int64_t)sizeof(T), sizeof(T) * PANEL, cols, n, sizeof(T));
		if (t->p == 0)
			F(tile_zero)(tile, x + k, t->length, panel, n, rows, cols, !k);
		else if (t->p == 1)
			F(tile_one)(tile, x + k, t->length, panel, n, rows, cols, !k);
		else if (t->p == 2)
			F(tile_two)(tile, x + k, t->length, panel, n, rows, cols, !k);
		else
			F(tile_infinite)(tile, x + k, t->length, panel, n, rows, cols, !k);
	}
}

/* Stores the distances of n sums; out and sum do not overlap. */
static void F(store_distances)(T *restrict out, const T *restrict sum, int64_t n, bool root)
{
	if (root)
		for (int64_t i = 0; i < n; i++)
			out[i] = F(root)(sum[i]);
	else
		memcpy(out, sum, (size_t)n * sizeof(T));
}

/* Tasks are tiles: those of a panel are neighbours, then those of a batch. */
static void F(tiles)(int64_t begin, int64_t end, void *ctx)
{
	const struct pairs *t = ctx;
	int64_t blocks = (t->n + TILE_ROWS - 1) / TILE_ROWS, panels = (t->m + PANEL - 1) / PANEL;
	_Alignas(64) T tile[TILE_ROWS * PANEL];

	for (int64_t task = begin; task < end; task++) {
		int64_t b = task / (blocks * panels), i = task % blocks * TILE_ROWS;
		int64_t j = task / blocks % panels * PANEL;
		int64_t rows = t->n - i < TILE_ROWS ? t->n - i : TILE_ROWS;
		int64_t cols = t->m - j < PANEL ? t->m - j : PANEL;
		const T *x = (const T *)t->x + (b * t->n + i) * t->length;
		const T *y = (const T *)t->y + (b * t->m + j) * t->length;

		if (t->triangle && j + cols <= i + 1)
			continue;
		if (!t->length)
			memset(tile, 0, sizeof(tile));
		F(sums_of_tile)(t, tile, x, y, rows, cols);
		for (int64_t r = 0; r < rows; r++, i++) {
			/* In a triangle row i begins at column i + 1. */
			int64_t from = !t->triangle || i < j ? 0 : i + 1 - j;
			T *out = (T *)t->out + j + from +
				 (t->triangle ? i * t->n - (i + 1) * (i + 2) / 2 :
						(b * t->n + i) * t->m);

			if (from < cols)
				F(store_distances)
			(out, tile + r * PANEL + from, cols - from, t->p == 2);
		}
	}
}

#undef F
#undef V
#undef LANES
#undef PANEL
