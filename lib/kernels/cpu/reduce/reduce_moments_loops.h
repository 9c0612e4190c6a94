/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The reducer of moments of real elements: moments_f32 and moments_f64. Included by
 * reduce_moments.c through each_float.h (no include guard), which defines T, D and SUFFIX.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

static double F(dense_sum)(const T *x, int64_t n)
{
	double lane[WIDTH] = { 0 }, sum = 0;
	int64_t i = 0;

	for (; i + WIDTH <= n; i += WIDTH)
		for (int64_t k = 0; k < WIDTH; k++)
			lane[k] += (double)x[i + k];
	for (; i < n; i++)
		sum += (double)x[i];
	for (int64_t k = 0; k < WIDTH; k++)
		sum += lane[k];
	return sum;
}

/* The sum of squared distances from the mean. */
static double F(dense_squares)(const T *x, int64_t n, double mean)
{
	double lane[WIDTH] = { 0 }, sum = 0;
	int64_t i = 0;

	for (; i + WIDTH <= n; i += WIDTH)
		for (int64_t k = 0; k < WIDTH; k++)
			lane[k] += ((double)x[i + k] - mean) * ((double)x[i + k] - mean);
	for (; i < n; i++)
		sum += ((double)x[i] - mean) * ((double)x[i] - mean);
	for (int64_t k = 0; k < WIDTH; k++)
		sum += lane[k];
	return sum;
}

static void F(moments_line)(void *acc, const char *p, int64_t n, int64_t s)
{
	T buf[CHUNK];

	for (int64_t i = 0; i < n; i += CHUNK, p += CHUNK * s) {
		int64_t m = n - i < CHUNK ? n - i : CHUNK;
		const T *x = (const T *)p;
		double mean;

		if (s != sizeof(T)) {
			for (int64_t k = 0; k < m; k++)
				buf[k] = *(const T *)(p + k * s);
			x = buf;
		}
		mean = F(dense_sum)(x, m) / (double)m;
		moments_join(acc, (double)m, mean, F(dense_squares)(x, m, mean));
	}
}

/* At most COLUMNS columns. */
static void F(moments_columns)(struct moments *acc, const char *p, int64_t rows, int64_t rs,
			       int64_t cols, int64_t cs)
{
	double mean[COLUMNS] = { 0 }, m2[COLUMNS] = { 0 };

	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			mean[c] += (double)*(const T *)(p + r * rs + c * cs);
	for (int64_t c = 0; c < cols; c++)
		mean[c] /= (double)rows;
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t c = 0; c < cols; c++) {
			double x = (double)*(const T *)(p + r * rs + c * cs) - mean[c];

			m2[c] += x * x;
		}
	}
	for (int64_t c = 0; c < cols; c++)
		moments_join(&acc[c], (double)rows, mean[c], m2[c]);
}

/* Contiguous columns are a case of their own, which the compiler vectorizes. */
static void F(moments_rows)(void *acc, const char *p, int64_t rows, int64_t rs, int64_t cols,
			    int64_t cs)
{
	struct moments *a = acc;

	if (!rows)
		return;
	for (int64_t c = 0; c < cols; c += COLUMNS) {
		int64_t n = cols - c < COLUMNS ? cols - c : COLUMNS;

		if (cs == sizeof(T))
			F(moments_columns)(a + c, p + c * cs, rows, rs, n, sizeof(T));
		else
			F(moments_columns)(a + c, p + c * cs, rows, rs, n, cs);
	}
}

static void F(moments_lines)(void *acc, const char *p, int64_t lines, int64_t ls, int64_t n,
			     int64_t s)
{
	each_line(F(moments_line), acc, sizeof(struct moments), p, lines, ls, n, s);
}

static const struct reducer F(moments) = {
	sizeof(struct moments), D, TENSOR_F64, moments_clear, moments_combine, F(moments_rows),
	F(moments_lines),
};

#undef F
