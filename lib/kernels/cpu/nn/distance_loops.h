/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of distance.c for the element type T (no include guard; see each_float.h): F(cdist),
 * F(cdist_dx), F(pdist) and F(pdist_dx).
 */
#define F(name)	      CPU_PASTE(name, SUFFIX)
#define GREATER(s, v) ((v) > (s) || (v) != (v) ? (v) : (s))

/*
 * The norm of x - y without its root, for a constant norm. The compiler vectorizes the SUMS partial
 * results. The maximum is written out at each place, as a function it is not vectorized; it keeps
 * NaN.
 */
static inline __attribute__((always_inline)) T F(norm_of_difference)(const T *x, const T *y,
								     int64_t n, enum norm norm)
{
	T sum[SUMS] = { 0 };
	int64_t i = 0;

	for (; i + SUMS <= n; i += SUMS)
		for (int j = 0; j < SUMS; j++) {
			T v = x[i + j] - y[i + j];

			v = v < 0 ? -v : v;
			sum[j] = norm == NORM_0 ? sum[j] + (v != 0) :
				 norm == NORM_1 ? sum[j] + v :
				 norm == NORM_2 ? sum[j] + v * v :
						  GREATER(sum[j], v);
		}
	for (int j = 0; i + j < n; j++) {
		T v = x[i + j] - y[i + j];

		v = v < 0 ? -v : v;
		sum[j] = norm == NORM_0 ? sum[j] + (v != 0) :
			 norm == NORM_1 ? sum[j] + v :
			 norm == NORM_2 ? sum[j] + v * v :
					  GREATER(sum[j], v);
	}
	for (int s = SUMS / 2; s; s /= 2)
		for (int j = 0; j < s; j++)
			sum[j] = norm == NORM_INF ? GREATER(sum[j], sum[j + s]) :
						    sum[j] + sum[j + s];
	return sum[0];
}

static T F(norm_zero)(const T *x, const T *y, int64_t n, double p)
{
	return F(norm_of_difference)(x, y, n, NORM_0);
}

static T F(norm_one)(const T *x, const T *y, int64_t n, double p)
{
	return F(norm_of_difference)(x, y, n, NORM_1);
}

static T F(norm_two)(const T *x, const T *y, int64_t n, double p)
{
	return F(root)(F(norm_of_difference)(x, y, n, NORM_2));
}

static T F(norm_infinite)(const T *x, const T *y, int64_t n, double p)
{
	return F(norm_of_difference)(x, y, n, NORM_INF);
}

static T F(norm_p)(const T *x, const T *y, int64_t n, double p)
{
	vec_f64 sum = { 0 };
	double total = 0;

	for (int64_t i = 0; i < n; i += VEC_F64) {
		vec_f64 v = { 0 };

		if (n - i < VEC_F64)
			for (int64_t j = 0; i + j < n; j++)
				v[j] = (double)x[i + j] - (double)y[i + j];
		else
			for (int j = 0; j < VEC_F64; j++)
				v[j] = (double)x[i + j] - (double)y[i + j];
		sum += power_of_size(v, p);
	}
	for (int j = 0; j < VEC_F64; j++)
		total += sum[j];
	return (T)pow(total, 1 / p);
}

typedef T (*F(norm_fn))(const T *, const T *, int64_t, double);
static F(norm_fn) F(select_norm)(double p)
{
	return p == 0	? F(norm_zero) :
	       p == 1	? F(norm_one) :
	       p == 2	? F(norm_two) :
	       isinf(p) ? F(norm_infinite) :
			  F(norm_p);
}

/* Rows begin to end of the outputs of all batches. */
static void F(cdist)(int64_t begin, int64_t end, void *ctx)
{
	const struct pairs *t = ctx;
	F(norm_fn) fn = F(select_norm)(t->p);

	for (int64_t r = begin; r < end; r++)
		for (int64_t j = 0; j < t->m; j++)
			((T *)t->out)[r * t->m + j] =
				fn((const T *)t->x + r * t->length,
				   (const T *)t->y + (r / t->n * t->m + j) * t->length, t->length,
				   t->p);
}

static void F(pdist)(int64_t begin, int64_t end, void *ctx)
{
	const struct pairs *t = ctx;
	F(norm_fn) fn = F(select_norm)(t->p);

	for (int64_t i = begin; i < end; i++) {
		T *out = (T *)t->out + i * t->n - i * (i + 1) / 2;

		for (int64_t j = i + 1; j < t->n; j++)
			*out++ = fn((const T *)t->x + i * t->length,
				    (const T *)t->x + j * t->length, t->length, t->p);
	}
}

/* to += g * (|v| / distance)^(p - 1) times the sign of v = x - y, in f64. */
static void F(add_power)(T *to, double g, const T *x, const T *y, int64_t n, double p,
			 double distance)
{
	for (int64_t i = 0; i < n; i += VEC_F64) {
		int64_t m = n - i < VEC_F64 ? n - i : VEC_F64;
		vec_f64 v = { 0 }, s;

		for (int64_t j = 0; j < m; j++)
			v[j] = (double)x[i + j] - (double)y[i + j];
		s = power_of_size(v / distance, p - 1) * g;
		s = VEC_PICK(v == 0, (vec_f64){ 0 }, VEC_PICK(v < 0, -s, s));
		for (int64_t j = 0; j < m; j++)
			to[i + j] += (T)s[j];
	}
}

/* to += g times the derivative of |x - y|_p by x. */
static void F(add_gradient)(T *restrict to, T g, const T *restrict x, const T *restrict y,
			    int64_t n, double p, T distance)
{
	if (p == 0 || (distance == 0 && p != 1))
		return;
	if (p == 1) {
		for (int64_t i = 0; i < n; i++)
			to[i] += x[i] > y[i] ? g : x[i] < y[i] ? -g : 0;
	} else if (p == 2) {
		T scale = g / distance;

		for (int64_t i = 0; i < n; i++)
			to[i] += scale * (x[i] - y[i]);
	} else if (isinf(p)) {
		for (int64_t i = 0; i < n; i++) {
			T v = x[i] - y[i];

			to[i] += v == distance ? g : -v == distance ? -g : 0;
		}
	} else {
		F(add_power)(to, (double)g, x, y, n, p, (double)distance);
	}
}

static void F(cdist_dx)(int64_t begin, int64_t end, void *ctx)
{
	const struct pairs *t = ctx;

	for (int64_t r = begin; r < end; r++) {
		T *dx = (T *)t->out + r * t->length;
		const T *x = (const T *)t->x + r * t->length;
		const T *y = (const T *)t->y + r / t->n * t->m * t->length;
		const T *grad = (const T *)t->grad + r * t->m;
		const T *distance = (const T *)t->distance + r * t->m;

		memset(dx, 0, t->length * sizeof(T));
		for (int64_t j = 0; j < t->m; j++, y += t->length)
			F(add_gradient)(dx, grad[j], x, y, t->length, t->p, distance[j]);
	}
}

static void F(pdist_dx)(int64_t begin, int64_t end, void *ctx)
{
	const struct pairs *t = ctx;
	const T *grad = t->grad, *distance = t->distance;

	for (int64_t i = begin; i < end; i++) {
		T *dx = (T *)t->out + i * t->length;
		const T *x = (const T *)t->x + i * t->length, *y = t->x;

		memset(dx, 0, t->length * sizeof(T));
		for (int64_t j = 0; j < t->n; j++, y += t->length) {
			int64_t a = i < j ? i : j, b = i < j ? j : i;
			int64_t k = a * t->n - a * (a + 1) / 2 + b - a - 1;

			if (i != j)
				F(add_gradient)(dx, grad[k], x, y, t->length, t->p, distance[k]);
		}
	}
}

#undef F
#undef GREATER
