/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of bernoulli for elements of type T (no include guard; see each_int.h). */
#include "kernels/cpu/random/random_groups.h"

#define F(name) CPU_PASTE(name, SUFFIX)

static inline void F(bernoulli)(T *restrict out, const uint32_t *words,
				const struct random_params *p)
{
	struct coin coin = coin_of(p->a);
	T one = coin.never ? 0 : STORE(1);

	for (int i = 0; i < NARROW; i++)
		out[i] = words[i] <= coin.last ? one : (T)0;
}

static void F(bernoulli_groups)(int64_t begin, int64_t end, void *ctx)
{
	F(random_groups)(ctx, begin, end, F(bernoulli), NARROW);
}

#undef F
