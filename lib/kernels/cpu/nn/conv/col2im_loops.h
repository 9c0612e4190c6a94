/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* col2im for elements of type T (no include guard; see each_float.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Planes begin to end. */
static void F(col2im)(int64_t begin, int64_t end, void *ctx)
{
	const struct columns *c = ctx;
	int64_t places = c->places[0] * c->places[1], image = c->size[0] * c->size[1];
	int64_t step = c->p->stride[1];
	T *out = c->to;

	memset(out + begin * image, 0, (end - begin) * image * sizeof(T));
	for (int64_t i = begin * c->taps; i < end * c->taps; i++) {
		struct tap t = tap_of(c, i);
		const T *from = (const T *)c->from + i * places;

		for (int64_t y = t.from[0]; y < t.until[0]; y++) {
			const T *row = from + y * c->places[1] + t.from[1];
			T *line = out + t.first + y * t.line;

			IVDEP for (int64_t x = 0; x < t.until[1] - t.from[1]; x++)
				line[x * step] += row[x];
		}
	}
}

#undef F
