/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Operands of attention as units, which tiles multiply: elements of type T (UNIT is 1), or pairs of bf16 that are
 * adjacent along the dimension of a sum (UNIT is 2). Scores and what is summed have the type T.
 */
#ifndef TENSOR_ATTENTION_UNITS_H
#define TENSOR_ATTENTION_UNITS_H

#if UNIT == 2

/* n rows of bf16 as units along their columns: in place, or copied to buf. */
static struct rows unit_rows(const struct attention_matrix *m, int64_t from, int64_t n,
			     int64_t width, T *buf)
{
	const int64_t unit = sizeof(T), dense = m->column == 2 || width < 2;
	const char *data = m->data + from * m->row;
	uint16_t *to = (uint16_t *)buf;

	if (dense && width % 2 == 0 && m->row % unit == 0 && (uintptr_t)data % unit == 0)
		return (struct rows){ (const T *)data, m->row / unit, 1, n, units(width) };
	for (int64_t i = 0; i < n; i++, data += m->row, to += 2 * units(width)) {
		if (dense)
			memcpy(to, data, width * sizeof(*to));
		else
			for (int64_t j = 0; j < width; j++)
				to[j] = *(const uint16_t *)(data + j * m->column);
		if (width % 2)
			to[width] = 0;
	}
	return (struct rows){ buf, units(width), 1, n, units(width) };
}

/* Lanes of the columns from j on of rows 2 * i and 2 * i + 1 of r; what does not exist is zero. */
static inline VEC pair_of_rows(const struct rows *r, int64_t i, int64_t j, int64_t columns)
{
	const uint16_t *row = (const uint16_t *)(r->data + 2 * i * r->row) + j;
	int64_t n = least(columns - j, LANES);
	vec_reduced_float zero = { 0 };

	return vec_make_pairs(vec_load_reduced_float(row, n),
			      2 * i + 1 < r->n ? vec_load_reduced_float(row + 2 * r->row, n) :
						 zero);
}

/* load_rows() of pairs of adjacent rows. */
static void load_row_pairs(T *to, const struct rows *r, int64_t columns)
{
	for (int64_t i = 0; i < units(r->n); i++, to += apart(columns))
		for (int64_t j = 0; j < columns; j += LANES)
			*(VEC *)(to + j) = pair_of_rows(r, i, j, columns);
}

/*
 * Copies pairs of adjacent rows in the panels that add_to_keys() reads: as wide as a tile, one after the other, with zeros up
 * to whole tiles.
 */
static void load_panel_pairs(T *to, const struct rows *r, int64_t columns)
{
	for (int64_t j = 0, across; j < columns; j += across) {
		across = next_vecs(columns - j) * (int64_t)LANES;
		for (int64_t i = 0; i < units(r->n); i++)
			for (int64_t v = 0; v < across; v += LANES)
				*(VEC *)(to + i * across + v) =
					j + v < columns ? pair_of_rows(r, i, j + v, columns) :
							  splat(0);
		fill_tiles(to, units(r->n), across);
		to += depth_of(r->n) * across;
	}
}

/*
 * Units of adjacent rows of a tile of n rows and the panel p: to has rows of p->across units, which becomes p->stride. to may
 * be from if those are the rows of from.
 */
static const T *pair_rows(T *to, const T *from, struct panel *p, int64_t n)
{
	for (int64_t i = 0; i < n; i += 2, from += 2 * p->stride)
		for (int64_t j = 0; j < p->across; j += LANES) {
			vec_reduced_float low = vec_round_pairs(*(const VEC *)(from + j)),
					  high = { 0 };

			if (i + 1 < n)
				high = vec_round_pairs(*(const VEC *)(from + p->stride + j));
			*(VEC *)(to + i / 2 * p->across + j) = vec_make_pairs(low, high);
		}
	p->stride = p->across;
	return to;
}

/*
 * Units along n rows in place: column j + c, the panel's column c, becomes the half j + c of its row. Zeros follow the last
 * one up to a whole tile, in memory of columns that have been read.
 */
static void narrow_rows(T *rows, int64_t j, const struct panel *p, int64_t n)
{
	for (int64_t i = 0; i < n; i++, rows += p->stride) {
		uint16_t *to = (uint16_t *)rows + j;

		for (int64_t v = 0; v < p->across; v += LANES) {
			vec_reduced_float x = vec_round_pairs(*(const VEC *)(rows + j + v));

			memcpy(to + v, &x, sizeof(x));
		}
		memset(to + p->n, 0, (whole_pairs(j + p->n) - j - p->n) * sizeof(*to));
	}
}

#else

static inline struct rows unit_rows(const struct attention_matrix *m, int64_t from, int64_t n,
				    int64_t width, T *buf)
{
	return rows_of(m, from, n, width, buf);
}

static inline void load_row_pairs(T *to, const struct rows *r, int64_t columns)
{
	load_rows(to, r);
}

static void load_panel_pairs(T *to, const struct rows *r, int64_t columns)
{
	for (int64_t j = 0, n; j < columns; j += n) {
		int64_t across = next_vecs(columns - j) * (int64_t)LANES;

		n = least(columns - j, across);
		pack_panel(to + j * r->n, r->data + j * r->column, r->row, n == 1 ? 1 : r->column,
			   r->n, n, across);
	}
}

static inline const T *pair_rows(T *to, const T *from, struct panel *p, int64_t n)
{
	return from;
}

static inline void narrow_rows(T *rows, int64_t j, const struct panel *p, int64_t n)
{
}

#endif

#endif
