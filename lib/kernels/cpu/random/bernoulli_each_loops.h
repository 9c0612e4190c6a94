/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loop of bernoulli_each for probabilities of type T (no include guard; see each_float.h):
 * groups begin to end.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(bernoulli_each)(int64_t begin, int64_t end, void *ctx)
{
	enum { COUNT = D == TENSOR_F64 ? WIDE : NARROW };
	struct bernoulli_each *e = ctx;
	int bad = 0;

	for (int64_t g = begin; g < end; g++) {
		const T *prob = (const T *)e->prob + g * COUNT;
		int64_t left = e->n - g * COUNT;
		int n = left < COUNT ? (int)left : COUNT;
		uint32_t words[PHILOX_WORDS];

		philox_group(words, e->p->at.seed, e->p->at.offset + PHILOX_BLOCKS * g);
		for (int i = 0; i < n; i++) {
			T unit = F(unit_of_group)(words, i);

			bad |= !(prob[i] >= 0 && prob[i] <= 1);
			e->out[g * COUNT + i] = unit < prob[i];
		}
	}
	if (bad)
		atomic_store_explicit(&e->bad, 1, memory_order_relaxed);
}

#undef F
