/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Gradients of softmax and log_softmax; the operands are out, the saved output and the gradient. Included by softmax_loops.h (no
 * include guard), whose macros and functions it uses.
 */

/*
 * The gradient of softmax is (g - sum of g y) y, that of log_softmax g - exp(y) (sum of g). term()
 * is the term of the sum.
 */
static inline V F(term)(V g, V y, bool log)
{
	return log ? g : (V)(g * y);
}

static inline __attribute__((always_inline)) T F(gradient_sum)(const T *g, const T *y, int64_t n,
							       bool log)
{
	V a = { 0 }, b = a, c = a, d = a;
	int64_t i = 0;

	for (; i + 4 * LANES <= n; i += 4 * LANES) {
		a += F(term)(AT(g + i), AT(y + i), log);
		b += F(term)(AT(g + i + LANES), AT(y + i + LANES), log);
		c += F(term)(AT(g + i + 2 * LANES), AT(y + i + 2 * LANES), log);
		d += F(term)(AT(g + i + 3 * LANES), AT(y + i + 3 * LANES), log);
	}
	for (int64_t left; i < n; i += left) {
		vec_part part;

		left = n - i < LANES ? n - i : LANES;
		part = PART(left);
		a += F(term)(LOAD(g + i, part), LOAD(y + i, part), log);
	}
	return F(add_lanes)((a + b) + (c + d));
}

static inline V F(gradient_vector)(V g, V y, T sum, bool log)
{
	return log ? (V)(g - EXP(y) * sum) : (V)((g - sum) * y);
}

static inline __attribute__((always_inline)) void F(gradient)(T *out, const T *g, const T *y,
							      int64_t n, T sum, bool log)
{
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		*(V *)(out + i) = F(gradient_vector)(AT(g + i), AT(y + i), sum, log);
	if (i < n) {
		vec_part part = PART(n - i);
		V v = F(gradient_vector)(LOAD(g + i, part), LOAD(y + i, part), sum, log);

		STORE(out + i, part, v);
	}
}

static void F(backward_line)(const struct reduce_iter *t, char *o, const char *y, const char *g,
			     bool log)
{
	int64_t n = t->along.size[0], so = t->along.stride[0][0], sy = t->along.stride[1][0],
		sg = t->along.stride[2][0];
	T gbuf[BLOCK], ybuf[BLOCK], out[BLOCK];
	double sum = 0;

	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t m = n - i < BLOCK ? n - i : BLOCK;

		sum += F(gradient_sum)(F(gather)(g + i * sg, sg, m, gbuf),
				       F(gather)(y + i * sy, sy, m, ybuf), m, log);
	}
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t m = n - i < BLOCK ? n - i : BLOCK;
		T *to = so == sizeof(T) ? (T *)(o + i * so) : out;
		const T *gs = F(gather)(g + i * sg, sg, m, gbuf);
		const T *ys = F(gather)(y + i * sy, sy, m, ybuf);

		F(gradient)(to, gs, ys, m, (T)sum, log);
		for (int64_t k = 0; to == out && k < m; k++)
			*(T *)(o + (i + k) * so) = out[k];
	}
}

/* Whether a line is one block of adjacent elements in all operands. */
static inline bool F(is_dense_line)(const struct reduce_iter_dims *along)
{
	return along->size[0] <= BLOCK && along->stride[0][0] == sizeof(T) &&
	       along->stride[1][0] == sizeof(T) && along->stride[2][0] == sizeof(T);
}

static void F(backward_dense_lines)(const struct reduce_iter *t, char *const *data, int64_t rows)
{
	int64_t n = t->along.size[0];

	for (int64_t r = 0; r < rows; r++) {
		T *o = (T *)(data[0] + r * t->kept.stride[0][0]);
		const T *y = (const T *)(data[1] + r * t->kept.stride[1][0]);
		const T *g = (const T *)(data[2] + r * t->kept.stride[2][0]);

		F(gradient)(o, g, y, n, F(gradient_sum)(g, y, n, false), false);
	}
}

static void F(backward_rows)(const struct reduce_iter *t, char *const *data, int64_t rows, bool log)
{
	if (!log && F(is_dense_line)(&t->along)) {
		F(backward_dense_lines)(t, data, rows);
		return;
	}
	for (int64_t r = 0; r < rows; r++) {
		char *o = data[0] + r * t->kept.stride[0][0];
		const char *y = data[1] + r * t->kept.stride[1][0];
		const char *g = data[2] + r * t->kept.stride[2][0];

		F(backward_line)(t, o, y, g, log);
	}
}

static void F(backward_tile)(const struct reduce_iter *t, char *const *data, int64_t at,
			     int64_t cols, bool log)
{
	_Alignas(64) T sum[TILE], e[TILE];

	memset(sum, 0, cols * sizeof(T));
	for (int64_t c = cols; c % LANES; c++)
		e[c] = 0;
	for (int64_t r = 0; r < t->along.size[0]; r++) {
		const T *g = (const T *)(data[2] + r * t->along.stride[2][0]) + at;
		const T *y = (const T *)(data[1] + r * t->along.stride[1][0]) + at;

		for (int64_t c = 0; c < cols; c++)
			sum[c] += log ? g[c] : g[c] * y[c];
	}
	for (int64_t r = 0; r < t->along.size[0]; r++) {
		T *out = (T *)(data[0] + r * t->along.stride[0][0]) + at;
		const T *g = (const T *)(data[2] + r * t->along.stride[2][0]) + at;
		const T *y = (const T *)(data[1] + r * t->along.stride[1][0]) + at;

		if (!log) {
			IVDEP for (int64_t c = 0; c < cols; c++) out[c] = (g[c] - sum[c]) * y[c];
			continue;
		}
		memcpy(e, y, cols * sizeof(T));
		F(exp_buffer)(e, cols);
		IVDEP for (int64_t c = 0; c < cols; c++) out[c] = g[c] - e[c] * sum[c];
	}
}

static void F(backward_columns)(const struct reduce_iter *t, char *const *data, int64_t cols,
				bool log)
{
	for (int64_t c = 0; c < cols; c += TILE)
		F(backward_tile)(t, data, c, cols - c < TILE ? cols - c : TILE, log);
}
