/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The reducers logsumexp_f32 and logsumexp_f64. Included by reduce_logsumexp.c through each_float.h
 * (no include guard), which defines T, D and SUFFIX.
 */
#define F(name) CPU_PASTE(name, SUFFIX)
#define V	F(vec)
#define N	((int64_t)(VEC_BYTES / sizeof(T)))

/* No element: max is -infinity, sum 0. If max is not finite, sum is not used for the result. */
struct F(exp_sum) {
	T max, sum;
};

static void F(logsumexp_clear)(void *acc, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		((struct F(exp_sum) *)acc)[i] = (struct F(exp_sum)){ (T)-INFINITY, 0 };
}

/* exp() is not called if the greater maximum is infinite or NaN. */
static void F(logsumexp_join)(struct F(exp_sum) * a, T max, T sum)
{
	T top = (max > a->max) | IS_NAN(max) ? max : a->max;

	if (!a->sum && a->max == (T)-INFINITY) {
		a->sum = sum;
	} else if (top - top == 0) {
		a->sum = a->sum * exp(a->max - top) + sum * exp(max - top);
	} else {
		a->sum += sum;
	}
	a->max = top;
}

static void F(logsumexp_combine)(void *acc, const void *other, int64_t n)
{
	const struct F(exp_sum) *b = other;

	for (int64_t i = 0; i < n; i++)
		F(logsumexp_join)((struct F(exp_sum) *)acc + i, b[i].max, b[i].sum);
}

/* The greatest of all lanes, NaN if a lane is. */
static inline T F(greatest_lane)(V v)
{
	if (VEC_BYTES >= 64)
		v = F(vec_max)(v, VEC_CROSS(V, v, 4));
	if (VEC_BYTES >= 32)
		v = F(vec_max)(v, VEC_CROSS(V, v, 2));
	v = F(vec_max)(v, VEC_CROSS(V, v, 1));
	return sizeof(T) == 8 ? v[0] : (v[1] > v[0]) | IS_NAN(v[1]) ? v[1] : v[0];
}

static inline T F(sum_of_lanes)(V v)
{
	if (VEC_BYTES >= 64)
		v += VEC_CROSS(V, v, 4);
	if (VEC_BYTES >= 32)
		v += VEC_CROSS(V, v, 2);
	v += VEC_CROSS(V, v, 1);
	return sizeof(T) == 8 ? v[0] : v[0] + v[1];
}

/* The first n lanes of v; the others are those of `rest`. */
static inline V F(first_lanes)(V v, V rest, int64_t n)
{
	return VEC_LAST(V, rest, v, N - n);
}

static void F(logsumexp_dense)(struct F(exp_sum) * a, const T *x, int64_t n)
{
	V none = (V){ 0 } - (T)INFINITY, top = none, other = none, total = { 0 }, more = { 0 };
	int64_t whole = n / N * N, pairs = whole - whole % (2 * N);
	V last = n > whole ? F(vec_load)(x + whole, F(vec_part)(n - whole)) : none;
	T max;

	for (int64_t i = 0; i < pairs; i += 2 * N) {
		top = F(vec_max)(top, *(const V *)(x + i));
		other = F(vec_max)(other, *(const V *)(x + i + N));
	}
	if (pairs < whole)
		top = F(vec_max)(top, *(const V *)(x + pairs));
	top = F(vec_max)(F(vec_max)(top, other), F(first_lanes)(last, none, n - whole));
	max = F(greatest_lane)(top);
	if (max - max != 0) {
		F(logsumexp_join)(a, max, 1);
		return;
	}
	for (int64_t i = 0; i < pairs; i += 2 * N) {
		total += F(vec_exp)(*(const V *)(x + i) - max);
		more += F(vec_exp)(*(const V *)(x + i + N) - max);
	}
	if (pairs < whole)
		total += F(vec_exp)(*(const V *)(x + pairs) - max);
	if (whole < n) { /* exp(-infinity) would take the time of a denormal result */
		last = F(first_lanes)(last, (V){ 0 } + max, n - whole);
		more += F(first_lanes)(F(vec_exp)(last - max), (V){ 0 }, n - whole);
	}
	F(logsumexp_join)(a, max, F(sum_of_lanes)(total + more));
}

static void F(logsumexp_line)(void *acc, const char *p, int64_t n, int64_t s)
{
	_Alignas(64) T buf[CHUNK];

	for (int64_t i = 0; i < n; i += CHUNK, p += CHUNK * s) {
		int64_t m = n - i < CHUNK ? n - i : CHUNK;
		const T *x = (const T *)p;

		if (s != sizeof(T)) {
			for (int64_t k = 0; k < m; k++)
				buf[k] = *(const T *)(p + k * s);
			x = buf;
		}
		F(logsumexp_dense)(acc, x, m);
	}
}

/* At most COLUMNS contiguous columns; buffers are rounded up to a whole number of vectors. */
static void F(logsumexp_columns)(struct F(exp_sum) * a, const char *p, int64_t rows, int64_t rs,
				 int64_t cols)
{
	_Alignas(64) T max[COLUMNS], sum[COLUMNS], e[COLUMNS];
	int64_t whole = (cols + N - 1) / N * N;

	for (int64_t c = 0; c < whole; c++) {
		max[c] = c < cols ? (T)-INFINITY : 0;
		sum[c] = e[c] = 0;
	}
	for (int64_t r = 0; r < rows; r++) {
		const T *x = (const T *)(p + r * rs);

		for (int64_t c = 0; c < cols; c++)
			max[c] = (x[c] > max[c]) | IS_NAN(x[c]) ? x[c] : max[c];
	}
	for (int64_t r = 0; r < rows; r++) {
		const T *x = (const T *)(p + r * rs);

		for (int64_t c = 0; c < cols; c++)
			e[c] = x[c] - max[c];
		for (int64_t c = 0; c < whole; c += N)
			*(V *)(e + c) = F(vec_exp)(*(const V *)(e + c));
		for (int64_t c = 0; c < cols; c++)
			sum[c] += e[c];
	}
	for (int64_t c = 0; c < cols; c++)
		F(logsumexp_join)(&a[c], max[c], max[c] - max[c] == 0 ? sum[c] : 1);
}

/* At most CHUNK_COLS strided columns: STRIP_ROWS rows at a time are copied. */
static void F(logsumexp_strided_columns)(struct F(exp_sum) * a, const char *p, int64_t rows,
					 int64_t rs, int64_t cols, int64_t cs)
{
	T e[STRIP_ROWS * CHUNK_COLS];

	for (int64_t r = 0; r < rows; r += STRIP_ROWS, p += STRIP_ROWS * rs) {
		int64_t n = rows - r < STRIP_ROWS ? rows - r : STRIP_ROWS;

		for (int64_t c = 0; c < cols; c++)
			for (int64_t k = 0; k < n; k++)
				e[k * CHUNK_COLS + c] = *(const T *)(p + c * cs + k * rs);
		F(logsumexp_columns)(a, (const char *)e, n, CHUNK_COLS * sizeof(T), cols);
	}
}

static void F(logsumexp_rows)(void *acc, const char *p, int64_t rows, int64_t rs, int64_t cols,
			      int64_t cs)
{
	struct F(exp_sum) *a = acc;
	const int64_t step = cs == sizeof(T) ? COLUMNS : CHUNK_COLS;

	for (int64_t c = 0; rows && c < cols; c += step) {
		int64_t n = cols - c < step ? cols - c : step;

		if (cs == sizeof(T))
			F(logsumexp_columns)(a + c, p + c * cs, rows, rs, n);
		else
			F(logsumexp_strided_columns)(a + c, p + c * cs, rows, rs, n, cs);
	}
}

static void F(logsumexp_lines)(void *acc, const char *p, int64_t lines, int64_t ls, int64_t n,
			       int64_t s)
{
	each_line(F(logsumexp_line), acc, sizeof(struct F(exp_sum)), p, lines, ls, n, s);
}

static void F(logsumexp_finish)(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	const struct F(exp_sum) *a = acc;
	T *out = result;

	/* result may be acc: a result lies before the accumulators that are not read yet. */
	for (int64_t i = 0; i < n; i += N) {
		int64_t m = n - i < N ? n - i : N;
		T max[N] = { 0 }, sum[N];

		*(V *)sum = (V){ 0 } + 1;
		for (int64_t k = 0; k < m; k++) {
			max[k] = a[i + k].max;
			sum[k] = a[i + k].sum;
		}
		*(V *)sum = F(vec_log)(*(V *)sum);
		for (int64_t k = 0; k < m; k++)
			out[i + k] = max[k] - max[k] == 0 ? max[k] + sum[k] : max[k];
	}
}

static const struct reducer F(logsumexp) = {
	sizeof(struct F(exp_sum)),
	D,
	D,
	F(logsumexp_clear),
	F(logsumexp_combine),
	F(logsumexp_rows),
	F(logsumexp_lines),
};

#undef F
#undef V
#undef N
