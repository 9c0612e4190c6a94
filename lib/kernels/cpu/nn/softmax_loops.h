/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of softmax.c, included once for each element type T (no include guard). The includer
 * defines
 *
 *   T, V, LANES        the element type, the vector type, and the elements of a vector
 *   EXP, LOG, VMAX     functions of V; LOG1 is LOG of a T
 *   PART, LOAD, STORE  parts of a vector, see vec.h
 *   F(name)            the name of a function for T
 *
 * The functions get the iterator and pointers to n adjacent positions of the innermost kept
 * dimension: F(rows) computes line by line, F(columns) all lines together, whose elements must be
 * contiguous across.
 */

/* x = exp(x). n is rounded up to whole vectors, for which the buffer must have room. */
static void F(exp_buffer)(T *x, int64_t n)
{
	for (int64_t i = 0; i < n; i += LANES)
		*(V *)(x + i) = EXP(*(V *)(x + i));
}

static void F(log_buffer)(T *x, int64_t n)
{
	for (int64_t i = 0; i < n; i += LANES)
		*(V *)(x + i) = LOG(*(V *)(x + i));
}

/* Returns n elements of a line: p if they are contiguous, else buf, to which they are copied. */
static inline const T *F(gather)(const char *p, int64_t stride, int64_t n, T *buf)
{
	if (stride == sizeof(T))
		return (const T *)p;
	for (int64_t i = 0; i < n; i++)
		buf[i] = *(const T *)(p + i * stride);
	return buf;
}

/* The maximum of max and n elements; NaN if any of them is NaN. */
static T F(maximum)(const T *x, int64_t n, T max)
{
	V a = (V){ 0 } + max, b = a, c = a, d = a;
	T lane[LANES];
	int64_t i = 0;

	for (; i + 4 * LANES <= n; i += 4 * LANES) {
		a = VMAX(a, AT(x + i));
		b = VMAX(b, AT(x + i + LANES));
		c = VMAX(c, AT(x + i + 2 * LANES));
		d = VMAX(d, AT(x + i + 3 * LANES));
	}
	for (; i + LANES <= n; i += LANES)
		a = VMAX(a, AT(x + i));
	if (i < n && n >= LANES) {
		b = VMAX(b, AT(x + n - LANES));
		i = n;
	}
	a = VMAX(VMAX(a, b), VMAX(c, d));
	if (VEC_BYTES >= 64)
		a = VMAX(a, VEC_CROSS(V, a, 4));
	if (VEC_BYTES >= 32)
		a = VMAX(a, VEC_CROSS(V, a, 2));
	a = VMAX(a, VEC_CROSS(V, a, 1));
	*(V *)lane = a;
	max = sizeof(T) == 8				 ? lane[0] :
	      (lane[1] > lane[0]) | (lane[1] != lane[1]) ? lane[1] :
							   lane[0];
	for (; i < n; i++)
		max = (x[i] > max) | (x[i] != x[i]) ? x[i] : max;
	return max;
}

static T F(add_lanes)(V v)
{
	if (VEC_BYTES >= 64)
		v += VEC_CROSS(V, v, 4);
	if (VEC_BYTES >= 32)
		v += VEC_CROSS(V, v, 2);
	v += VEC_CROSS(V, v, 1);
	return sizeof(T) == 8 ? v[0] : v[0] + v[1];
}

/* Returns the sum of exp(x - max); stores the terms to y unless it is NULL. */
static inline __attribute__((always_inline)) T F(exp_sum)(T *y, const T *x, int64_t n, T max)
{
	V sum = { 0 }, more = { 0 }, e;
	int64_t i = 0;

	for (; i + 2 * LANES <= n; i += 2 * LANES) {
		V f = EXP(AT(x + i + LANES) - max);

		e = EXP(AT(x + i) - max);
		if (y) {
			*(V *)(y + i) = e;
			*(V *)(y + i + LANES) = f;
		}
		sum += e;
		more += f;
	}
	for (int64_t left; i < n; i += left) {
		T pad[LANES];
		vec_part part;

		left = n - i < LANES ? n - i : LANES;
		part = PART(left);
		e = EXP(LOAD(x + i, part) - max);
		if (y)
			STORE(y + i, part, e);
		*(V *)pad = e;
		sum += LOAD(pad, part);
	}
	return F(add_lanes)(sum + more);
}

/* One line of any length and strides, in blocks. */
static void F(line)(char *o, int64_t so, const char *a, int64_t sa, int64_t n, bool log)
{
	T in[BLOCK], out[BLOCK], max = -INFINITY, shift;
	bool dense = so == sizeof(T);
	int64_t block = dense && sa == sizeof(T) ? LONG_BLOCK : BLOCK;
	double sum = 0;

	for (int64_t i = 0; i < n; i += block) {
		int64_t m = n - i < block ? n - i : block;

		max = F(maximum)(F(gather)(a + i * sa, sa, m, in), m, max);
	}
	for (int64_t i = 0; i < n; i += block) {
		int64_t m = n - i < block ? n - i : block;
		T *y = dense ? (T *)(o + i * so) : out;

		sum += F(exp_sum)(log ? NULL : y, F(gather)(a + i * sa, sa, m, in), m, max);
		for (int64_t k = 0; !dense && !log && k < m; k++)
			*(T *)(o + (i + k) * so) = out[k];
	}
	shift = log ? LOG1((T)sum) : (T)(1 / sum);
	if (dense && sa == sizeof(T)) {
		const T *x = (const T *)a;
		T *y = (T *)o;

		if (log)
			IVDEP for (int64_t i = 0; i < n; i++) y[i] = (x[i] - max) - shift;
		else
			for (int64_t i = 0; i < n; i++)
				y[i] *= shift;
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		T *y = (T *)(o + i * so);

		*y = log ? (*(const T *)(a + i * sa) - max) - shift : *y * shift;
	}
}

/*
 * A few short lines, gathered in a buffer so that exp and log are computed for all of them
 * together.
 */
static void F(few_lines)(const struct reduce_iter *t, char *const *data, int64_t rows, bool log)
{
	int64_t n = t->along.size[0], so = t->along.stride[0][0], sa = t->along.stride[1][0];
	T x[FEW + LANES], buf[FEW + LANES], sum[FEW + LANES], *e = log ? buf : x;

	for (int64_t r = 0; r < rows; r++) {
		const char *a = data[1] + r * t->kept.stride[1][0];
		T *row = x + r * n, max = -INFINITY;

		for (int64_t i = 0; i < n; i++) {
			row[i] = *(const T *)(a + i * sa);
			max = row[i] > max ? row[i] : max;
		}
		for (int64_t i = 0; i < n; i++)
			row[i] -= max;
	}
	for (int64_t i = 0; i < LANES; i++)
		x[rows * n + i] = 0;
	if (log)
		memcpy(e, x, (rows * n + LANES) * sizeof(T));
	F(exp_buffer)(e, rows * n);
	for (int64_t r = 0; r < rows; r++) {
		sum[r] = 0;
		for (int64_t i = 0; i < n; i++)
			sum[r] += e[r * n + i];
	}
	if (log) {
		for (int64_t i = 0; i < LANES; i++)
			sum[rows + i] = 1;
		F(log_buffer)(sum, rows);
	}
	for (int64_t r = 0; r < rows; r++) {
		char *o = data[0] + r * t->kept.stride[0][0];
		T scale = 1 / sum[r];

		for (int64_t i = 0; i < n; i++)
			*(T *)(o + i * so) = log ? x[r * n + i] - sum[r] : x[r * n + i] * scale;
	}
}

static void F(tile)(const struct reduce_iter *t, char *o, char *a, int64_t cols, bool log);

/* Many short lines, transposed to a tile. */
static void F(short_lines)(const struct reduce_iter *t, char *const *data, int64_t rows, bool log)
{
	int64_t n = t->along.size[0], so = t->along.stride[0][0], sa = t->along.stride[1][0];
	int64_t ko = t->kept.stride[0][0], ka = t->kept.stride[1][0];
	_Alignas(64) T x[SHORT_LINE * SIDE_BY_SIDE];
	struct reduce_iter tile;

	tile.along.size[0] = n;
	tile.along.stride[0][0] = tile.along.stride[1][0] = SIDE_BY_SIDE * sizeof(T);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < n; i++)
			x[i * SIDE_BY_SIDE + r] = *(const T *)(data[1] + r * ka + i * sa);
	F(tile)(&tile, (char *)x, (char *)x, rows, log);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < n; i++)
			*(T *)(data[0] + r * ko + i * so) = x[i * SIDE_BY_SIDE + r];
}

static void F(rows)(const struct reduce_iter *t, char *const *data, int64_t rows, bool log)
{
	int64_t n = t->along.size[0], batch = n <= SHORT_LINE ? SIDE_BY_SIDE : 1;

	for (int64_t r = 0; r < rows; r += batch) {
		int64_t m = rows - r < batch ? rows - r : batch;
		char *at[] = { data[0] + r * t->kept.stride[0][0],
			       data[1] + r * t->kept.stride[1][0] };

		if (n > SHORT_LINE)
			F(line)(at[0], t->along.stride[0][0], at[1], t->along.stride[1][0], n, log);
		else if (m * n <= FEW)
			F(few_lines)(t, at, m, log);
		else
			F(short_lines)(t, at, m, log);
	}
}

/* ---- lines whose elements are contiguous across: tiles ---- */

static void F(tile)(const struct reduce_iter *t, char *o, char *a, int64_t cols, bool log)
{
	int64_t n = t->along.size[0], so = t->along.stride[0][0], sa = t->along.stride[1][0];
	_Alignas(64) T max[TILE], sum[TILE], e[TILE];

	for (int64_t c = 0; c < cols; c++) {
		max[c] = -INFINITY;
		sum[c] = 0;
	}
	/* exp_buffer() and log_buffer() process whole vectors. */
	for (int64_t c = cols; c % LANES; c++)
		sum[c] = e[c] = 0;
	for (int64_t r = 0; r < n; r++) {
		const T *x = (const T *)(a + r * sa);

		for (int64_t c = 0; c < cols; c++)
			max[c] = x[c] > max[c] ? x[c] : max[c];
	}
	for (int64_t r = 0; r < n; r++) {
		const T *x = (const T *)(a + r * sa);
		T *y = (T *)(o + r * so);

		for (int64_t c = 0; c < cols; c++)
			e[c] = x[c] - max[c];
		F(exp_buffer)(e, cols);
		for (int64_t c = 0; c < cols; c++)
			sum[c] += e[c];
		for (int64_t c = 0; !log && c < cols; c++)
			y[c] = e[c];
	}
	if (log)
		F(log_buffer)(sum, cols);
	for (int64_t c = 0; !log && c < cols; c++)
		sum[c] = 1 / sum[c];
	for (int64_t r = 0; r < n; r++) {
		const T *x = (const T *)(a + r * sa);
		T *y = (T *)(o + r * so);

		if (log)
			IVDEP for (int64_t c = 0; c < cols; c++) y[c] = (x[c] - max[c]) - sum[c];
		else
			for (int64_t c = 0; c < cols; c++)
				y[c] *= sum[c];
	}
}

static inline void F(strip_store)(T *to, V v, bool whole, vec_part part)
{
	if (whole)
		*(V *)to = v;
	else
		STORE(to, part, v);
}

/* The same of at most STRIP_VECS vectors of lines, the last of which has `last`: sums are in registers. */
static inline __attribute__((always_inline)) void F(strip)(const struct reduce_iter *t, char *o,
							   const char *a, int64_t last,
							   const int vecs, bool log)
{
	int64_t n = t->along.size[0], so = t->along.stride[0][0], sa = t->along.stride[1][0];
	vec_part part = PART(last);
	V max[STRIP_VECS], sum[STRIP_VECS];

#define STRIP_LOAD(p, v) \
	((v) < vecs - 1 ? AT((const T *)(p) + (v)*LANES) : LOAD((const T *)(p) + (v)*LANES, part))
	for (int v = 0; v < vecs; v++) {
		max[v] = (V){ 0 } - (T)INFINITY;
		sum[v] = (V){ 0 };
	}
	for (int64_t r = 0; r < n; r++)
		for (int v = 0; v < vecs; v++)
			max[v] = VMAX(max[v], STRIP_LOAD(a + r * sa, v));
	for (int64_t r = 0; r < n; r++)
		for (int v = 0; v < vecs; v++) {
			V e = EXP(STRIP_LOAD(a + r * sa, v) - max[v]);

			sum[v] += e;
			if (!log)
				F(strip_store)
			((T *)(o + r * so) + v * LANES, e, v < vecs - 1, part);
		}
	for (int v = 0; v < vecs; v++)
		sum[v] = log ? LOG(sum[v]) : (V)(1 / sum[v]);
	for (int64_t r = 0; r < n; r++)
		for (int v = 0; v < vecs; v++) {
			V x = STRIP_LOAD((log ? a + r * sa : o + r * so), v);

			F(strip_store)
			((T *)(o + r * so) + v * LANES,
			 log ? (V)((x - max[v]) - sum[v]) : (V)(x * sum[v]), v < vecs - 1, part);
		}
#undef STRIP_LOAD
}

static void F(narrow)(const struct reduce_iter *t, char *o, const char *a, int64_t cols, bool log)
{
	int64_t last = (cols - 1) % LANES + 1;

	switch ((cols + LANES - 1) / LANES) {
	case 1:
		F(strip)(t, o, a, last, 1, log);
		break;
	case 2:
		F(strip)(t, o, a, last, 2, log);
		break;
	case 3:
		F(strip)(t, o, a, last, 3, log);
		break;
	default:
		F(strip)(t, o, a, last, STRIP_VECS, log);
	}
}

static void F(columns)(const struct reduce_iter *t, char *const *data, int64_t cols, bool log)
{
	if (cols <= STRIP_VECS * LANES) {
		F(narrow)(t, data[0], data[1], cols, log);
		return;
	}
	for (int64_t c = 0; c < cols; c += TILE) {
		int64_t n = cols - c < TILE ? cols - c : TILE;

		F(tile)(t, data[0] + c * sizeof(T), data[1] + c * sizeof(T), n, log);
	}
}

#include "kernels/cpu/nn/softmax_backward_loops.h"

#undef T
#undef V
#undef LANES
#undef EXP
#undef LOG
#undef LOG1
#undef VMAX
#undef PART
#undef LOAD
#undef STORE
#undef F
