/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* im2col for elements of type T (no include guard). */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Planes begin to end. */
static void F(im2col)(int64_t begin, int64_t end, void *ctx)
{
	const struct columns *c = ctx;
	int64_t places = c->places[0] * c->places[1], step = c->p->stride[1];

	for (int64_t i = begin * c->taps; i < end * c->taps; i++) {
		struct tap t = tap_of(c, i);
		T *to = (T *)c->to + i * places;

		memset(to, 0, places * sizeof(T));
		for (int64_t y = t.from[0]; y < t.until[0]; y++) {
			T *row = to + y * c->places[1] + t.from[1];
			const T *line = (const T *)c->from + t.first + y * t.line;

			for (int64_t x = 0; x < t.until[1] - t.from[1]; x++)
				row[x] = line[x * step];
		}
	}
}

#undef F
