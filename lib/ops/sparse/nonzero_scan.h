/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Count or list the blocks with a non-zero element. block_copy.c includes this file once for each
 * element size, with UNIT (an unsigned integer type), ANY and SCAN (names of the functions)
 * defined.
 */

static bool ANY(const UNIT *p, int64_t n, UNIT mask)
{
	UNIT all = 0;

	for (int64_t i = 0; i < n; i++)
		all |= p[i] & mask;
	return all != 0;
}

/* Count the non-zero blocks from begin to end or, if s->found is set, write their positions. */
static void SCAN(int64_t begin, int64_t end, void *ctx)
{
	const struct scan *s = ctx;
	const UNIT *p = s->data, mask = (UNIT)s->mask;
	int64_t n = s->found ? s->count[begin / s->chunk] : 0;

	if (!s->found && s->block == 1) {
		for (int64_t i = begin; i < end; i++)
			n += (p[i] & mask) != 0;
	} else if (!s->found) {
		for (int64_t i = begin; i < end; i++)
			n += ANY(p + i * s->block, s->block, mask);
	} else {
		for (int64_t i = begin; i < end; i++)
			if (ANY(p + i * s->block, s->block, mask))
				s->found[n++] = i;
	}
	if (!s->found)
		s->count[begin / s->chunk] = n;
}

#undef UNIT
#undef ANY
#undef SCAN
