/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * masked_select and masked_scatter of one chunk, for one size of elements: masked_select_4() etc.
 * Included by mask.c through each_size.h (no include guard), which defines T and SUFFIX.
 */

static void CPU_PASTE(masked_select, SUFFIX)(int64_t begin, int64_t end, void *ctx)
{
	const struct mask_job *job = ctx;
	T *to = (T *)job->to + job->first[begin / CHUNK];
	int64_t at[BLOCK];

	for (int64_t i = begin; i < end; i += BLOCK) {
		const T *from = (const T *)job->from + i;
		int64_t k = true_positions(job->mask + i, end - i < BLOCK ? end - i : BLOCK, at);

		for (int64_t j = 0; j < k; j++)
			*to++ = from[at[j]];
	}
}

static void CPU_PASTE(masked_scatter, SUFFIX)(int64_t begin, int64_t end, void *ctx)
{
	const struct mask_job *job = ctx;
	const T *from = (const T *)job->from + job->first[begin / CHUNK];
	int64_t at[BLOCK];

	for (int64_t i = begin; i < end; i += BLOCK) {
		T *to = (T *)job->to + i;
		int64_t k = true_positions(job->mask + i, end - i < BLOCK ? end - i : BLOCK, at);

		for (int64_t j = 0; j < k; j++)
			to[at[j]] = *from++;
	}
}
