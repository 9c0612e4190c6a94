/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A tile of 8 x 8 elements as eight vectors V; included once for each element size by transpose.c
 * (no include guard), which defines V and SUFFIX, the end of the function name.
 */

/* Three rounds of exchanges, between rows that are 1, 2 and 4 apart. */
static void CPU_PASTE(tile_8x8, SUFFIX)(char *o, const char *s, int64_t from_row, int64_t to_row)
{
	const V low1 = { 0, 8, 2, 10, 4, 12, 6, 14 }, high1 = { 1, 9, 3, 11, 5, 13, 7, 15 };
	const V low2 = { 0, 1, 8, 9, 4, 5, 12, 13 }, high2 = { 2, 3, 10, 11, 6, 7, 14, 15 };
	const V low4 = { 0, 1, 2, 3, 8, 9, 10, 11 }, high4 = { 4, 5, 6, 7, 12, 13, 14, 15 };
	V a[8], b[8];

	for (int i = 0; i < 8; i++)
		memcpy(&a[i], s + i * from_row, sizeof(V));
	for (int i = 0; i < 8; i += 2) {
		b[i] = __builtin_shuffle(a[i], a[i + 1], low1);
		b[i + 1] = __builtin_shuffle(a[i], a[i + 1], high1);
	}
	for (int i = 0; i < 8; i += 4)
		for (int k = i; k < i + 2; k++) {
			a[k] = __builtin_shuffle(b[k], b[k + 2], low2);
			a[k + 2] = __builtin_shuffle(b[k], b[k + 2], high2);
		}
	for (int k = 0; k < 4; k++) {
		b[k] = __builtin_shuffle(a[k], a[k + 4], low4);
		b[k + 4] = __builtin_shuffle(a[k], a[k + 4], high4);
	}
	for (int i = 0; i < 8; i++)
		memcpy(o + i * to_row, &b[i], sizeof(V));
}

#undef V
#undef SUFFIX
