/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The gradient of padding for one dtype: pad_backward_planes_f32() etc. Included by pad.c through
 * each_float.h, each_reduced_float.h and each_complex.h (no include guard), which define T, C,
 * SUFFIX, LOAD(x) and STORE(x).
 */
#define F(name) CPU_PASTE(name, SUFFIX)

static inline __attribute__((always_inline)) void F(pad_backward_add)(T *to, T x)
{
	*to = STORE((C)(LOAD(*to) + LOAD(x)));
}

static void F(pad_backward_row)(const struct planes *p, char *o, const char *s)
{
	const int64_t *from = p->from[2], ss = p->wide_step[2], so = p->core_step[2];

	for (int64_t k = 0; k < p->low; k++)
		F(pad_backward_add)((T *)(o + from[k] * so), *(const T *)(s + k * ss));
	if (so == sizeof(T) && ss == sizeof(T)) {
		T *to = (T *)o + p->run;
		const T *x = (const T *)s + p->low;

		IVDEP for (int64_t k = 0; k < p->high - p->low; k++)
			F(pad_backward_add)(&to[k], x[k]);
	} else {
		for (int64_t k = p->low; k < p->high; k++)
			F(pad_backward_add)((T *)(o + from[k] * so), *(const T *)(s + k * ss));
	}
	for (int64_t k = p->high; k < p->wide[2]; k++)
		F(pad_backward_add)((T *)(o + from[k] * so), *(const T *)(s + k * ss));
}

static void F(pad_backward_planes)(int64_t begin, int64_t end, void *ctx)
{
	const struct planes *p = ctx;

	for (int64_t i = begin; i < end; i++) {
		char *o = plane_at(p->core_t, p->lead, i);
		const char *s = plane_at(p->wide_t, p->lead, i);

		for (int64_t k = 0; k < p->wide[0] * p->wide[1]; k++) {
			int64_t z = k / p->wide[1], y = k % p->wide[1];

			F(pad_backward_row)(p, o + core_offset(p, z, y), s + wide_offset(p, z, y));
		}
	}
}

#undef F
