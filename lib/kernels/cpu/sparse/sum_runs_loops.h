/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loop of sum_runs for elements of type T, added by ADD(a, b) (no include guard). */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(sum_runs)(int64_t begin, int64_t end, void *ctx)
{
	const struct runs *s = ctx;

	for (int64_t r = begin; r < end; r++) {
		T *out = (T *)s->out + r * s->block;
		int64_t p = s->starts[r];

		memcpy(out, (const T *)s->values + s->order[p] * s->block, s->block * sizeof(T));
		for (p++; p < s->starts[r + 1]; p++) {
			const T *in = (const T *)s->values + s->order[p] * s->block;

			for (int64_t k = 0; k < s->block; k++)
				out[k] = (T)ADD(out[k], in[k]);
		}
	}
}

#undef F
