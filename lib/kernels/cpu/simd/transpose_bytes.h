/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Transposition of a matrix of bytes, in blocks of 16 by 16. */
#ifndef TENSOR_TRANSPOSE_BYTES_H
#define TENSOR_TRANSPOSE_BYTES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* 16 rows; rows[i] becomes column i. */
static inline void transpose_block(__m128i *rows)
{
	__m128i to[16];

	/* Each step merges rows i and i + 8, whose bytes alternate afterwards; four steps exchange the four bits of both indices. */
	for (int step = 0; step < 4; step++) {
#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) {
			to[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 8]);
			to[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 8]);
		}
		memcpy(rows, to, sizeof(to));
	}
}

static inline void load_part(__m128i *to, const uint8_t *from, int64_t n)
{
	*to = _mm_setzero_si128();
	memcpy(to, from, n);
}

/* to[j * to_pitch + i] = from[i * from_pitch + j] for i < rows and j < columns; i from rows to `whole` - 1, fewer than 16, are zero. */
static inline void transpose_bytes(uint8_t *to, int64_t to_pitch, const uint8_t *from,
				   int64_t from_pitch, int64_t rows, int64_t columns, int64_t whole)
{
	for (int64_t i = 0; i < whole; i += 16)
		for (int64_t j = 0; j < columns; j += 16) {
			int64_t m = rows - i < 16 ? rows - i : 16,
				n = columns - j < 16 ? columns - j : 16;
			int64_t stored = whole - i < 16 ? whole - i : 16;
			__m128i block[16] = { { 0 } };

			for (int64_t k = 0; k < m; k++) {
				const uint8_t *row = from + (i + k) * from_pitch + j;

				if (n == 16)
					block[k] = _mm_loadu_si128((const __m128i *)row);
				else
					load_part(&block[k], row, n);
			}
			transpose_block(block);
			for (int64_t k = 0; k < n; k++) {
				uint8_t *column = to + (j + k) * to_pitch + i;

				if (stored == 16)
					_mm_storeu_si128((__m128i *)column, block[k]);
				else if (stored == 4)
					memcpy(column, &block[k], 4);
				else
					memcpy(column, &block[k], stored);
			}
		}
}

#endif
