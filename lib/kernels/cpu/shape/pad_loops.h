/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Padding for one size of elements: pad_rows_4() etc. Included by pad.c through each_size.h (no
 * include guard), which defines T and SUFFIX.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(pad_row)(const struct planes *p, char *o, const char *s)
{
	const int64_t *from = p->from[2], so = p->wide_step[2], ss = p->core_step[2];

	for (int64_t k = 0; k < p->low; k++)
		*(T *)(o + k * so) = *(const T *)(s + from[k] * ss);
	if (so == sizeof(T) && ss == sizeof(T))
		memcpy(o + p->low * so, s + p->run * ss, (p->high - p->low) * sizeof(T));
	else
		for (int64_t k = p->low; k < p->high; k++)
			*(T *)(o + k * so) = *(const T *)(s + from[k] * ss);
	for (int64_t k = p->high; k < p->wide[2]; k++)
		*(T *)(o + k * so) = *(const T *)(s + from[k] * ss);
}

static void F(pad_rows)(int64_t begin, int64_t end, void *ctx)
{
	const struct planes *p = ctx;

	for (int64_t i = begin; i < end; i++) {
		int64_t y = i % p->wide[1], z = i / p->wide[1] % p->wide[0];
		int64_t plane = i / p->wide[1] / p->wide[0];
		char *o = plane_at(p->wide_t, p->lead, plane);
		const char *s = plane_at(p->core_t, p->lead, plane);

		F(pad_row)(p, o + wide_offset(p, z, y), s + core_offset(p, z, y));
	}
}

#undef F
