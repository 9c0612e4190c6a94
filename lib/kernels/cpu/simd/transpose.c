// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Tiles of a transposed copy. A tile is read in rows of the source and written in rows of the
 * output; in between, three rounds of exchanges turn it around, each between rows that are 1, 2
 * and 4 apart.
 */
#include "kernels/cpu/simd/transpose.h"

#define SIDE 8

struct bits16 {
	uint64_t w[2];
};

/* Any size: through a small array that stays in the first cache. */
#define TILE(n, T)                                                                               \
	static void tile_any_##n(char *o, const char *s, int64_t from_row, int64_t to_row,       \
				 int64_t n0, int64_t n1)                                         \
	{                                                                                        \
		for (int64_t j = 0; j < n1; j++)                                                 \
			for (int64_t i = 0; i < n0; i++)                                         \
				*(T *)(o + j * to_row + i * (int64_t)sizeof(T)) =                \
					*(const T *)(s + i * from_row + j * (int64_t)sizeof(T)); \
	}
TILE(1, uint8_t)
TILE(2, uint16_t)
TILE(4, uint32_t)
TILE(8, uint64_t)
TILE(16, struct bits16)

typedef uint16_t v8u16 __attribute__((vector_size(16)));
typedef uint32_t v8u32 __attribute__((vector_size(32)));
typedef uint64_t v4u64 __attribute__((vector_size(32)));

#define TILE_8X8(V)                                                                    \
	static void tile_##V(char *o, const char *s, int64_t from_row, int64_t to_row) \
	{                                                                              \
		const V low1 = { 0, 8, 2, 10, 4, 12, 6, 14 },                          \
			high1 = { 1, 9, 3, 11, 5, 13, 7, 15 };                         \
		const V low2 = { 0, 1, 8, 9, 4, 5, 12, 13 },                           \
			high2 = { 2, 3, 10, 11, 6, 7, 14, 15 };                        \
		const V low4 = { 0, 1, 2, 3, 8, 9, 10, 11 },                           \
			high4 = { 4, 5, 6, 7, 12, 13, 14, 15 };                        \
		V a[8], b[8];                                                          \
                                                                                       \
		for (int i = 0; i < 8; i++)                                            \
			memcpy(&a[i], s + i * from_row, sizeof(V));                    \
		for (int i = 0; i < 8; i += 2) {                                       \
			b[i] = __builtin_shuffle(a[i], a[i + 1], low1);                \
			b[i + 1] = __builtin_shuffle(a[i], a[i + 1], high1);           \
		}                                                                      \
		for (int i = 0; i < 8; i += 4)                                         \
			for (int k = i; k < i + 2; k++) {                              \
				a[k] = __builtin_shuffle(b[k], b[k + 2], low2);        \
				a[k + 2] = __builtin_shuffle(b[k], b[k + 2], high2);   \
			}                                                              \
		for (int k = 0; k < 4; k++) {                                          \
			b[k] = __builtin_shuffle(a[k], a[k + 4], low4);                \
			b[k + 4] = __builtin_shuffle(a[k], a[k + 4], high4);           \
		}                                                                      \
		for (int i = 0; i < 8; i++)                                            \
			memcpy(o + i * to_row, &b[i], sizeof(V));                      \
	}
TILE_8X8(v8u16)
TILE_8X8(v8u32)

/* Bytes: a row is one word, whose parts change places with another word's. */
static void tile_8(char *o, const char *s, int64_t from_row, int64_t to_row)
{
	const uint64_t even[] = { 0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff };
	uint64_t a[8];

	for (int i = 0; i < 8; i++)
		memcpy(&a[i], s + i * from_row, 8);
	for (int round = 0; round < 3; round++) {
		int apart = 1 << round, bits = 8 << round;

		for (int i = 0; i < 8; i++) {
			uint64_t x = a[i], y;

			if (i & apart)
				continue;
			y = a[i + apart];
			a[i] = (x & even[round]) | (y & even[round]) << bits;
			a[i + apart] = (x >> bits & even[round]) | (y & ~even[round]);
		}
	}
	for (int i = 0; i < 8; i++)
		memcpy(o + i * to_row, &a[i], 8);
}

static void tile_4x4(char *o, const char *s, int64_t from_row, int64_t to_row)
{
	const v4u64 low1 = { 0, 4, 2, 6 }, high1 = { 1, 5, 3, 7 };
	const v4u64 low2 = { 0, 1, 4, 5 }, high2 = { 2, 3, 6, 7 };
	v4u64 a[4], b[4];

	for (int i = 0; i < 4; i++)
		memcpy(&a[i], s + i * from_row, 32);
	for (int i = 0; i < 4; i += 2) {
		b[i] = __builtin_shuffle(a[i], a[i + 1], low1);
		b[i + 1] = __builtin_shuffle(a[i], a[i + 1], high1);
	}
	for (int k = 0; k < 2; k++) {
		a[k] = __builtin_shuffle(b[k], b[k + 2], low2);
		a[k + 2] = __builtin_shuffle(b[k], b[k + 2], high2);
	}
	for (int i = 0; i < 4; i++)
		memcpy(o + i * to_row, &a[i], 32);
}

static void tile_64(char *o, const char *s, int64_t from_row, int64_t to_row)
{
	for (int j = 0; j < SIDE; j += 4)
		for (int i = 0; i < SIDE; i += 4)
			tile_4x4(o + j * to_row + i * 8, s + i * from_row + j * 8, from_row,
				 to_row);
}

static void tile(char *o, const char *s, int64_t from_row, int64_t to_row, int64_t n0, int64_t n1,
		 size_t size)
{
	bool full = n0 == SIDE && n1 == SIDE;

	switch (size) {
	case 1:
		if (full)
			tile_8(o, s, from_row, to_row);
		else
			tile_any_1(o, s, from_row, to_row, n0, n1);
		break;
	case 2:
		if (full)
			tile_v8u16(o, s, from_row, to_row);
		else
			tile_any_2(o, s, from_row, to_row, n0, n1);
		break;
	case 4:
		if (full)
			tile_v8u32(o, s, from_row, to_row);
		else
			tile_any_4(o, s, from_row, to_row, n0, n1);
		break;
	case 8:
		if (full)
			tile_64(o, s, from_row, to_row);
		else
			tile_any_8(o, s, from_row, to_row, n0, n1);
		break;
	default:
		tile_any_16(o, s, from_row, to_row, n0, n1);
	}
}

/* Two tiles of rows at a time make use of a whole line of the source. */
#define BAND (2 * SIDE)

void CPU_NAME(transpose)(char *const *data, int64_t from_row, int64_t to_row, int64_t n0,
			 int64_t n1, size_t size)
{
	for (int64_t band = 0; band < n1; band += BAND)
		for (int64_t i = 0; i < n0; i += SIDE)
			for (int64_t j = band; j < n1 && j < band + BAND; j += SIDE)
				tile(data[0] + j * to_row + i * (int64_t)size,
				     data[1] + i * from_row + j * (int64_t)size, from_row, to_row,
				     n0 - i < SIDE ? n0 - i : SIDE, n1 - j < SIDE ? n1 - j : SIDE,
				     size);
}
