/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of pool_adaptive.c for elements of type T (no include guard; see each_float.h). Each
 * processes planes begin to end.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* x divided by the number of elements of a window. */
static inline T F(divide)(T x, const struct window *w)
{
	return x / (T)(w->until[0] - w->from[0]) / (T)(w->until[1] - w->from[1]) /
	       (T)(w->until[2] - w->from[2]);
}

static inline T F(window_sum)(const T *in, const struct pool_shape *s, const struct window *w)
{
	T sum = 0;

	for (int64_t a = w->from[0]; a < w->until[0]; a++)
		for (int64_t b = w->from[1]; b < w->until[1]; b++) {
			const T *line = in + line_of(s, a, b);

			for (int64_t c = w->from[2]; c < w->until[2]; c++)
				sum += line[c];
		}
	return sum;
}

static void F(adaptive_avg)(int64_t begin, int64_t end, void *ctx)
{
	const struct adaptive *m = ctx;
	const struct pool_shape *s = &m->s;
	int64_t rows = s->out[0] * s->out[1];

	for (int64_t r = begin * rows; r < end * rows; r++) {
		const T *in = (const T *)m->in + r / rows * s->in_plane;
		T *out = (T *)m->out + r * s->out[2];
		struct window w = row_window(s, r % rows);

		for (int64_t x = 0; x < s->out[2]; x++) {
			set_window(&w, s, 2, x);
			out[x] = F(divide)(F(window_sum)(in, s, &w), &w);
		}
	}
}

/* Adds v to the elements of a window. */
static inline void F(window_add)(T *out, const struct pool_shape *s, const struct window *w, T v)
{
	for (int64_t a = w->from[0]; a < w->until[0]; a++)
		for (int64_t b = w->from[1]; b < w->until[1]; b++) {
			T *line = out + line_of(s, a, b);

			for (int64_t c = w->from[2]; c < w->until[2]; c++)
				line[c] += v;
		}
}

static void F(adaptive_spread)(int64_t begin, int64_t end, void *ctx)
{
	const struct adaptive *m = ctx;
	const struct pool_shape *s = &m->s;
	int64_t rows = s->out[0] * s->out[1];

	memset((T *)m->out + begin * s->in_plane, 0, (end - begin) * s->in_plane * sizeof(T));
	for (int64_t r = begin * rows; r < end * rows; r++) {
		T *out = (T *)m->out + r / rows * s->in_plane;
		const T *grad = (const T *)m->in + r * s->out[2];
		struct window w = row_window(s, r % rows);

		for (int64_t x = 0; x < s->out[2]; x++) {
			set_window(&w, s, 2, x);
			F(window_add)(out, s, &w, F(divide)(grad[x], &w));
		}
	}
}

/* The maximum of a window; *where becomes its index in the plane. */
static inline T F(window_max)(const T *in, const struct pool_shape *s, const struct window *w,
			      int64_t *where)
{
	int64_t best_at = line_of(s, w->from[0], w->from[1]) + w->from[2];
	T best = -INFINITY;

	for (int64_t a = w->from[0]; a < w->until[0]; a++)
		for (int64_t b = w->from[1]; b < w->until[1]; b++) {
			int64_t line = line_of(s, a, b);

			for (int64_t at = line + w->from[2]; at < line + w->until[2]; at++)
				if (in[at] > best || in[at] != in[at]) {
					best = in[at];
					best_at = at;
				}
		}
	*where = best_at;
	return best;
}

static void F(adaptive_max)(int64_t begin, int64_t end, void *ctx)
{
	const struct adaptive *m = ctx;
	const struct pool_shape *s = &m->s;
	int64_t rows = s->out[0] * s->out[1];

	for (int64_t r = begin * rows; r < end * rows; r++) {
		const T *in = (const T *)m->in + r / rows * s->in_plane;
		T *out = (T *)m->out + r * s->out[2];
		int64_t *indices = m->indices + r * s->out[2];
		struct window w = row_window(s, r % rows);

		for (int64_t x = 0; x < s->out[2]; x++) {
			set_window(&w, s, 2, x);
			out[x] = F(window_max)(in, s, &w, &indices[x]);
		}
	}
}

#undef F
