/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of pool_adaptive.c for elements of type T (no include guard; see each_float.h). Each
 * processes planes begin to end.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(adaptive_avg)(int64_t begin, int64_t end, void *ctx)
{
	const struct adaptive *m = ctx;
	const struct pool_shape *s = &m->s;
	struct window w = first_window(s);

	for (int64_t i = begin * s->out_plane; i < end * s->out_plane; i++, next_window(&w, s)) {
		const T *in = (const T *)m->in + i / s->out_plane * s->in_plane;
		T sum = 0;

		for (int64_t a = w.from[0]; a < w.until[0]; a++)
			for (int64_t b = w.from[1]; b < w.until[1]; b++)
				for (int64_t c = w.from[2]; c < w.until[2]; c++)
					sum += in[line_of(s, a, b) + c];
		for (int d = 0; d < 3; d++)
			sum /= (T)(w.until[d] - w.from[d]);
		((T *)m->out)[i] = sum;
	}
}

static void F(adaptive_spread)(int64_t begin, int64_t end, void *ctx)
{
	const struct adaptive *m = ctx;
	const struct pool_shape *s = &m->s;
	struct window w = first_window(s);

	memset((T *)m->out + begin * s->in_plane, 0, (end - begin) * s->in_plane * sizeof(T));
	for (int64_t i = begin * s->out_plane; i < end * s->out_plane; i++, next_window(&w, s)) {
		T *out = (T *)m->out + i / s->out_plane * s->in_plane;
		T part = ((const T *)m->in)[i];

		for (int d = 0; d < 3; d++)
			part /= (T)(w.until[d] - w.from[d]);
		for (int64_t a = w.from[0]; a < w.until[0]; a++)
			for (int64_t b = w.from[1]; b < w.until[1]; b++)
				for (int64_t c = w.from[2]; c < w.until[2]; c++)
					out[line_of(s, a, b) + c] += part;
	}
}

static void F(adaptive_max)(int64_t begin, int64_t end, void *ctx)
{
	const struct adaptive *m = ctx;
	const struct pool_shape *s = &m->s;
	struct window w = first_window(s);

	for (int64_t i = begin * s->out_plane; i < end * s->out_plane; i++, next_window(&w, s)) {
		const T *in = (const T *)m->in + i / s->out_plane * s->in_plane;
		int64_t where = line_of(s, w.from[0], w.from[1]) + w.from[2];
		T best = -INFINITY;

		for (int64_t a = w.from[0]; a < w.until[0]; a++)
			for (int64_t b = w.from[1]; b < w.until[1]; b++)
				for (int64_t c = w.from[2]; c < w.until[2]; c++) {
					int64_t at = line_of(s, a, b) + c;

					if (in[at] > best || in[at] != in[at]) {
						best = in[at];
						where = at;
					}
				}
		((T *)m->out)[i] = best;
		m->indices[i] = where;
	}
}

#undef F
