/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loop of dropout (no include guard; see each_float.h): groups begin to end. An element has
 * PARTS numbers of type T, computed in type C.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* A dropped element is multiplied by zero, as in PyTorch, so that NaN stays NaN. */
static void F(dropout)(int64_t begin, int64_t end, void *ctx)
{
	const struct dropout *f = ctx;
	const struct random_params *p = f->p;
	struct coin coin = coin_of(p->a);
	C scale = (C)p->b;

	for (int64_t g = begin; g < end; g++) {
		T *restrict out = (T *)f->out + g * NARROW * PARTS;
		const T *restrict in = (const T *)f->in + g * NARROW * PARTS;
		uint8_t *restrict mask = f->mask + g * NARROW;
		int64_t left = f->n - g * NARROW;
		int n = left < NARROW ? (int)left : NARROW;
		uint32_t words[PHILOX_WORDS];

		philox_group(words, p->at.seed, p->at.offset + PHILOX_BLOCKS * g);
		for (int i = 0; i < NARROW; i++)
			words[i] = (words[i] <= coin.last) & !coin.never;
		for (int i = 0; i < n; i++)
			mask[i] = (uint8_t)words[i];
		for (int i = 0; i < n * PARTS; i++)
			out[i] = STORE(LOAD(in[i]) * (C)(int32_t)words[i / PARTS] * scale);
	}
}

#undef F
