// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Transposed copies by tiles of 8 x 8 elements. A tile is read in rows of the source, transposed in
 * registers and written in rows of the output.
 */
#include "kernels/cpu/simd/transpose.h"

#define SIDE 8 /* rows and columns of a full tile */

/* A tile of any size up to SIDE x SIDE. */
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
TILE(16, struct bytes16)

typedef uint16_t v8u16 __attribute__((vector_size(16)));
typedef uint32_t v8u32 __attribute__((vector_size(32)));
typedef uint64_t v4u64 __attribute__((vector_size(32)));

#define V      v8u16
#define SUFFIX 2
#include "kernels/cpu/simd/transpose_8x8.h"

#define V      v8u32
#define SUFFIX 4
#include "kernels/cpu/simd/transpose_8x8.h"

/* For bytes a row is one 64-bit word; parts of two words are exchanged. */
static void tile_8x8_1(char *o, const char *s, int64_t from_row, int64_t to_row)
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

static void tile_8x8_8(char *o, const char *s, int64_t from_row, int64_t to_row)
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
			tile_8x8_1(o, s, from_row, to_row);
		else
			tile_any_1(o, s, from_row, to_row, n0, n1);
		break;
	case 2:
		if (full)
			tile_8x8_2(o, s, from_row, to_row);
		else
			tile_any_2(o, s, from_row, to_row, n0, n1);
		break;
	case 4:
		if (full)
			tile_8x8_4(o, s, from_row, to_row);
		else
			tile_any_4(o, s, from_row, to_row, n0, n1);
		break;
	case 8:
		if (full)
			tile_8x8_8(o, s, from_row, to_row);
		else
			tile_any_8(o, s, from_row, to_row, n0, n1);
		break;
	default:
		tile_any_16(o, s, from_row, to_row, n0, n1);
	}
}

/* Rows of two tiles are copied together: they fill a cache line of the source. */
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
