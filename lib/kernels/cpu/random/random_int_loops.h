/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of randint for elements of type T (no include guard; see each_int.h): F(narrow_groups)
 * takes 32 random bits for an element, F(wide_groups) 64.
 */
#include "kernels/cpu/random/random_groups.h"

#define F(name) CPU_PASTE(name, SUFFIX)

/* All elements are computed in vectors; if any was rejected, all are computed again one by one. */
static inline void F(narrow)(T *restrict out, const uint32_t *words, const struct random_params *p)
{
	uint32_t range = (uint32_t)p->range, maybe = 0;
	int64_t from = p->from;

	for (int i = 0; i < NARROW; i++) {
		uint64_t m = (uint64_t)words[i] * range;

		maybe |= (uint32_t)m < range;
		out[i] = STORE(from + (int64_t)(m >> 32));
	}
	for (int i = 0; unlikely(maybe) && i < NARROW; i++)
		out[i] = STORE(from + (int64_t)below_narrow(words, p, i, range));
}

static inline void F(wide)(T *restrict out, const uint32_t *words, const struct random_params *p)
{
	for (int i = 0; i < WIDE; i++)
		out[i] = STORE((int64_t)((uint64_t)p->from + below_wide(words, p, i, p->range)));
}

static void F(narrow_groups)(int64_t begin, int64_t end, void *ctx)
{
	F(random_groups)(ctx, begin, end, F(narrow), NARROW);
}

static void F(wide_groups)(int64_t begin, int64_t end, void *ctx)
{
	F(random_groups)(ctx, begin, end, F(wide), WIDE);
}

#undef F
