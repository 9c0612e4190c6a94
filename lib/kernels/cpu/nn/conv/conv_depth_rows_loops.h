/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of conv_depth_rows.h with vectors RV of R_LANES elements. Included once for each width, with R_WIDTH(f)
 * as the name of f for it.
 */

/* The elements of a row that R_LANES positions read from `at` on, `stride` apart. */
static inline __attribute__((always_inline)) RV R_WIDTH(row_load)(const T *at, const vec_part *part,
								  const int stride)
{
	if (stride == 1)
		return R_LOAD(at, part[0]);
	return __builtin_shuffle(R_LOAD(at, part[0]), R_LOAD(at + R_LANES, part[1]),
				 (R_MASK)R_INDEX * 2);
}

/* Adds the taps of `columns` chains, whose weights w follow each other, to the sums of the lines. */
static inline __attribute__((always_inline)) void
R_WIDTH(rows_chain)(RV *sum, const T *const *row, const int64_t *x, const vec_part *part,
		    const T *w, const int taps, const int columns, const int lines,
		    const int stride)
{
#pragma GCC unroll 20
	for (int r = 0; r < taps + stride * (lines - 1); r++)
#pragma GCC unroll 3
		for (int k = 0; k < columns; k++) {
			RV v = R_WIDTH(row_load)(row[r] + x[k], part + k * stride, stride);
#pragma GCC unroll 7
			for (int i = 0; i < lines; i++)
				if (r >= stride * i && r < stride * i + taps)
					sum[i] += v * w[k * taps + r - stride * i];
		}
}

static inline void R_WIDTH(line_put)(T *out, int64_t step, RV sum, int64_t n)
{
	T line[R_LANES];

	if (step == 1) {
		R_STORE(out, PART(n), sum);
		return;
	}
	*(RV *)line = sum;
	for (int64_t k = 0; k < n; k++)
		out[k * step] = line[k];
}

/* The case of X(TAPS, COLUMNS) that `chain` has: its numbers are constants in it. */
#define R_EACH(X)                             \
	if (chain->columns == MANY_COLUMNS) { \
		switch (chain->taps) {        \
			X(3, MANY_COLUMNS)    \
			X(5, MANY_COLUMNS)    \
		}                             \
	} else {                              \
		switch (chain->taps) {        \
			X(1, 1)               \
			X(2, 1)               \
			X(3, 1)               \
			X(5, 1)               \
			X(7, 1)               \
		}                             \
	}

#define R_CHAIN(N, COLUMNS)                                                           \
	case N:                                                                       \
		R_WIDTH(rows_chain)(sum, row, x, part, w, N, COLUMNS, lines, stride); \
		break;

/* `lines` lines of one vector of positions each: block b from line y on. */
static inline __attribute__((always_inline)) void
R_WIDTH(rows_block)(const struct conv_gemm *c, const struct row_plan *p, const struct row_memory *m,
		    int64_t y, int64_t b, T *out, const T *w, T bias, const int lines,
		    const int stride)
{
	const vec_part *part = m->part + b * p->chains * stride;
	int64_t n = min64(p->positions - b * R_LANES, R_LANES), x[MANY_COLUMNS];
	const struct row_chain *end = p->chain + p->chains;
	RV sum[MANY_LINES];

#pragma GCC unroll 7
	for (int i = 0; i < lines; i++)
		sum[i] = bias - (RV){ 0 };
	for (const struct row_chain *chain = p->chain; chain < end; chain += chain->columns) {
		const T *const *row =
			m->row + chain->channel * p->rows + chain->y - p->low + stride * y;

		for (int k = 0; k < chain->columns; k++)
			x[k] = chain[k].x + stride * b * R_LANES;
		R_EACH(R_CHAIN)
		w += chain->columns * chain->taps;
		part += chain->columns * stride;
	}
#pragma GCC unroll 7
	for (int i = 0; i < lines; i++, out += c->out_step[1])
		R_WIDTH(line_put)(out, c->out_step[2], sum[i], n);
}

/* All blocks of a plane; the last lines may be computed twice. */
static inline __attribute__((always_inline)) void
R_WIDTH(rows_blocks)(const struct conv_gemm *c, const struct row_plan *p,
		     const struct row_memory *m, T *out, const T *w, T bias, const int lines,
		     const int stride)
{
	for (int64_t k = 0; k < c->grid[1]; k += lines) {
		int64_t y = min64(k, c->grid[1] - lines);

		for (int64_t b = 0; b < p->blocks; b++)
			R_WIDTH(rows_block)
		(c, p, m, y, b, out + y * c->out_step[1] + b * R_LANES * c->out_step[2], w, bias,
		 lines, stride);
	}
}

static void R_WIDTH(rows_plane)(const struct conv_gemm *c, const struct row_plan *p,
				const struct row_memory *m, T *out, const T *w, T bias)
{
	if (p->stride == 1 && p->lines == MANY_LINES)
		R_WIDTH(rows_blocks)(c, p, m, out, w, bias, MANY_LINES, 1);
	else if (p->stride == 1)
		R_WIDTH(rows_blocks)(c, p, m, out, w, bias, SOME_LINES, 1);
	else if (p->lines == MANY_LINES)
		R_WIDTH(rows_blocks)(c, p, m, out, w, bias, MANY_LINES, 2);
	else
		R_WIDTH(rows_blocks)(c, p, m, out, w, bias, SOME_LINES, 2);
}

/* ---- the gradient of the weights ---- */

/*
 * Adds the products of `lines` lines of the gradient, `pitch` apart, with the rows that the taps of
 * `columns` chains read to s.
 */
static inline __attribute__((always_inline)) void
R_WIDTH(rows_products)(RV *s, const T *const *row, const int64_t *x, const vec_part *part,
		       const T *grad, int64_t pitch, vec_part own, const int taps,
		       const int columns, const int lines, const int stride)
{
	RV g[MANY_LINES];

#pragma GCC unroll 7
	for (int i = 0; i < lines; i++)
		g[i] = R_LOAD(grad + i * pitch, own);
#pragma GCC unroll 20
	for (int r = 0; r < taps + stride * (lines - 1); r++)
#pragma GCC unroll 3
		for (int k = 0; k < columns; k++) {
			RV v = R_WIDTH(row_load)(row[r] + x[k], part + k * stride, stride);
#pragma GCC unroll 7
			for (int i = 0; i < lines; i++)
				if (r >= stride * i && r < stride * i + taps)
					s[k * taps + r - stride * i] += v * g[i];
		}
}

/* Adds the products of the taps of `columns` chains with the gradient of one plane to their sums. */
static inline __attribute__((always_inline)) void
R_WIDTH(rows_taps)(RV *sum, const struct conv_wgrad *c, const struct row_plan *p,
		   const struct row_memory *m, int first, const T *grad, const int taps,
		   const int columns, const int stride)
{
	const struct row_chain *chain = &p->chain[first];
	int64_t pitch = c->grid[2], x[MANY_COLUMNS];
	RV s[MANY_COLUMNS * MANY_LINES];

#pragma GCC unroll 21
	for (int t = 0; t < columns * taps; t++)
		s[t] = sum[t];
	for (int64_t b = 0; b < p->blocks; b++) {
		const vec_part *part = m->part + (b * p->chains + first) * stride;
		const T *const *row = m->row + chain->channel * p->rows + chain->y - p->low;
		vec_part own = PART(min64(p->positions - b * R_LANES, R_LANES));
		const T *g = grad + b * R_LANES;
		int64_t y = 0;

		for (int k = 0; k < columns; k++)
			x[k] = chain[k].x + stride * b * R_LANES;
		for (; y + MANY_LINES <= c->grid[1]; y += MANY_LINES)
			R_WIDTH(rows_products)
		(s, row + y * stride, x, part, g + y * pitch, pitch, own, taps, columns, MANY_LINES,
		 stride);
		for (; y < c->grid[1]; y++)
			R_WIDTH(rows_products)
		(s, row + y * stride, x, part, g + y * pitch, pitch, own, taps, columns, 1, stride);
	}
#pragma GCC unroll 21
	for (int t = 0; t < columns * taps; t++)
		sum[t] = s[t];
}

#define R_TAPS(N, COLUMNS)                                                            \
	case N:                                                                       \
		if (p->stride == 1)                                                   \
			R_WIDTH(rows_taps)(sum + n, c, p, m, k, grad, N, COLUMNS, 1); \
		else                                                                  \
			R_WIDTH(rows_taps)(sum + n, c, p, m, k, grad, N, COLUMNS, 2); \
		break;

/* Adds the products of all taps with the gradient of one plane to their sums. */
static void R_WIDTH(rows_plane_taps)(RV *sum, const struct conv_wgrad *c, const struct row_plan *p,
				     const struct row_memory *m, const T *grad)
{
	for (int k = 0, n = 0; k < p->chains;) {
		const struct row_chain *chain = &p->chain[k];

		R_EACH(R_TAPS)
		n += chain->columns * chain->taps;
		k += chain->columns;
	}
}

/* The gradient of the weights of an output channel, chain by chain. */
static void R_WIDTH(rows_gradient)(const struct conv_wgrad *c, const struct row_plan *p,
				   struct row_memory *m, int64_t channel, T *total)
{
	int64_t plane = c->grid[1] * c->grid[2], channels = c->groups * c->columns;
	RV sum[DEPTH_TAPS];

	memset(sum, 0, c->depth * sizeof(*sum));
	for (int64_t image = 0; image < c->batch; image++) {
		const T *grad = (const T *)c->grad + (image * channels + channel) * plane;

		row_memory_set(m, p,
			       rows_group(p, &c->src, c->groups, image, channel / c->columns));
		R_WIDTH(rows_plane_taps)(sum, c, p, m, grad);
	}
	for (int t = 0; t < c->depth; t++) {
#pragma GCC unroll 4
		for (int k = R_LANES / 2; k > 0; k /= 2)
			sum[t] += __builtin_shuffle(sum[t], (R_MASK)R_INDEX ^ k);
		total[t] = sum[t][0];
	}
}

#undef RV
#undef R_LANES
#undef R_LOAD
#undef R_STORE
#undef R_INDEX
#undef R_MASK
#undef R_WIDTH
#undef R_EACH
#undef R_CHAIN
#undef R_TAPS
