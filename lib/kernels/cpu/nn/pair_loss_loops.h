/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of pair_loss.c for the element type T (no include guard; see each_float.h). */
#define F(name) CPU_PASTE(name, SUFFIX)
#define V	CPU_PASTE(vec, SUFFIX)
#define LANES	((int)(VEC_BYTES / sizeof(T)))

struct F(pair_constants) {
	V edge, half, square, slope;
};

static inline V F(loss)(const T *x, const T *y, const struct F(pair_constants) * c)
{
	V d = *(const V *)x - *(const V *)y;
	/* -0.0 has the bit of the sign alone. */
	V a = (V)((__typeof__(d < 0))d & ~(__typeof__(d < 0))-(V){ 0 });

	return (V)VEC_PICK(a <= c->edge, a * a * c->square, (a - c->half) * c->slope);
}

/* The sum of n losses, n <= BLOCK; they are stored to out unless it is NULL. */
static inline __attribute__((always_inline)) double
F(block)(T *out, const T *x, const T *y, int64_t n, const struct F(pair_constants) * c)
{
	V sum[4] = { 0 };
	int64_t i = 0;
	double total = 0;

	for (; i + 4 * LANES <= n; i += 4 * LANES)
#pragma GCC unroll 4
		for (int k = 0; k < 4; k++) {
			V v = F(loss)(x + i + k * LANES, y + i + k * LANES, c);

			if (out)
				*(V *)(out + i + k * LANES) = v;
			else
				sum[k] += v;
		}
	for (; i < n; i += LANES) {
		vec_part part = F(vec_part)(n - i < LANES ? n - i : LANES);
		V a = F(vec_load)(x + i, part), b = F(vec_load)(y + i, part);
		V v = F(loss)((const T *)&a, (const T *)&b, c);

		if (out)
			F(vec_store)(out + i, part, v);
		else if (n - i >= LANES)
			sum[0] += v;
		else
			for (int k = 0; k < n - i; k++)
				total += v[k];
	}
	sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
	for (int k = 0; k < LANES; k++)
		total += sum[0][k];
	return total;
}

/* Parts begin to end. */
static void F(losses)(int64_t begin, int64_t end, void *ctx)
{
	struct pair_job *j = ctx;
	V zero = { 0 };
	const struct F(pair_constants) c = { (T)j->loss->edge - zero, (T)(j->loss->edge / 2) - zero,
					     (T)j->loss->square - zero, (T)j->loss->slope - zero };

	for (int64_t part = begin; part < end; part++) {
		int64_t i = part * j->part, stop = i + j->part < j->n ? i + j->part : j->n;
		double sum = 0;

		for (; i < stop; i += BLOCK) {
			const T *x = (const T *)j->self + i, *y = (const T *)j->target + i;
			int64_t n = stop - i < BLOCK ? stop - i : BLOCK;

			if (j->out)
				F(block)((T *)j->out + i, x, y, n, &c);
			else
				sum += F(block)(NULL, x, y, n, &c);
		}
		j->sum[part] = sum;
	}
}

/* The derivative of a loss by x; NaN stays NaN. */
static inline V F(derivative)(const T *x, const T *y, const struct F(pair_constants) * c)
{
	V d = *(const V *)x - *(const V *)y;
	V line = VEC_PICK(d < 0, -c->slope, VEC_PICK(d > 0, c->slope, d));

	return (V)VEC_PICK((d <= c->edge) & (d >= -c->edge), 2 * c->square * d, line);
}

/* Elements begin to end. */
static void F(derivatives)(int64_t begin, int64_t end, void *ctx)
{
	const struct pair_job *j = ctx;
	const T *x = j->self, *y = j->target, *grad = j->grad;
	V zero = { 0 }, factor = (T)j->factor * (j->each ? 1 : grad[0]) - zero;
	const struct F(pair_constants) c = { (T)j->loss->edge - zero, zero,
					     (T)j->loss->square - zero, (T)j->loss->slope - zero };
	T *out = j->out;

	for (int64_t i = begin; i < end; i += LANES) {
		vec_part part = F(vec_part)(end - i < LANES ? end - i : LANES);
		V a, b, v;

		if (end - i >= LANES) {
			v = F(derivative)(x + i, y + i, &c) * factor;
			if (j->each)
				v *= *(const V *)(grad + i);
			*(V *)(out + i) = v;
			continue;
		}
		a = F(vec_load)(x + i, part);
		b = F(vec_load)(y + i, part);
		v = F(derivative)((const T *)&a, (const T *)&b, &c) * factor;
		if (j->each)
			v *= F(vec_load)(grad + i, part);
		F(vec_store)(out + i, part, v);
	}
}

#undef F
#undef V
#undef LANES
