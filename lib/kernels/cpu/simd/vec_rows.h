/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Applying a block function to rows, for elements of type T; included once a dtype by vecloop.h
 * (no include guard). The includer defines T and SUFFIX, the end of the function names.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* n elements, step bytes apart or all the same, to buf. */
static inline void F(vec_gather)(T *buf, const char *p, int64_t step, int64_t n)
{
	T same = *(const T *)p;

	if (!step)
		for (int64_t i = 0; i < n; i++)
			buf[i] = same;
	else if (step == 2 * sizeof(T)) /* vectorized */
		for (int64_t i = 0; i < n; i++)
			buf[i] = ((const T *)p)[2 * i];
	else
		for (int64_t i = 0; i < n; i++)
			buf[i] = *(const T *)(p + i * step);
}

/*
 * Calls block() for n1 rows of n0 elements of nin inputs. Contiguous rows are passed as they are.
 * Otherwise blocks of VEC_BLOCK elements are gathered in buf[1..nin], the output in buf[0] if it is
 * strided. An input that repeats one element for all rows is gathered once.
 */
static __attribute__((unused, noinline)) void F(vec_rows)(char *const *data, const int64_t *s0,
							  const int64_t *s1, int64_t n0, int64_t n1,
							  const void *params, int nin,
							  vec_block block)
{
	T buf[VEC_INPUTS + 1][VEC_BLOCK];
	const void *in[VEC_INPUTS];
	bool flat = s0[0] == sizeof(T), first = true;
	int64_t size;

	for (int i = 1; i <= nin; i++)
		flat &= s0[i] == sizeof(T);
	size = flat ? n0 : VEC_BLOCK;
	for (int64_t j = 0; j < n1; j++) {
		for (int64_t at = 0; at < n0; at += size, first = false) {
			int64_t m = n0 - at < size ? n0 - at : size;
			char *o = data[0] + j * s1[0] + at * s0[0];
			bool beside = s0[0] == sizeof(T);

			for (int i = 1; i <= nin; i++) {
				const char *p = data[i] + j * s1[i] + at * s0[i];

				in[i - 1] = s0[i] == sizeof(T) ? (const void *)p : buf[i];
				if (in[i - 1] == buf[i] && (first || s0[i] || (s1[i] && !at)))
					F(vec_gather)(buf[i], p, s0[i], m);
			}
			block(beside ? (void *)o : buf[0], in, m, params);
			for (int64_t i = 0; !beside && i < m; i++)
				*(T *)(o + i * s0[0]) = buf[0][i];
		}
	}
}

#undef F
