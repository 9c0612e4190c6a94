/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Groups of elements of type T (no include guard; see each_int.h). Include it before the file whose
 * functions call F(random_groups).
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Generates a whole group from its words; p->at.offset is the first block of the group. */
typedef void (*F(generate))(T *restrict out, const uint32_t *words, const struct random_params *p);

/*
 * Fills groups begin to end, of `count` elements each. Inlined with a constant function and count.
 * The last group may be longer than the tensor: elements beyond its end are not written.
 */
static inline __attribute__((always_inline)) void F(random_groups)(const struct random_fill *f,
								   int64_t begin, int64_t end,
								   F(generate) generate, int count)
{
	struct random_params p = *f->p;

	for (int64_t g = begin; g < end; g++) {
		T *out = (T *)f->out + g * count, part[NARROW];
		int64_t left = f->n - g * count;
		uint32_t words[PHILOX_WORDS];

		p.at.offset = f->p->at.offset + PHILOX_BLOCKS * g;
		philox_group(words, p.at.seed, p.at.offset);
		if (left >= count) {
			generate(out, words, &p);
			continue;
		}
		generate(part, words, &p);
		memcpy(out, part, left * sizeof(T));
	}
}

#undef F
