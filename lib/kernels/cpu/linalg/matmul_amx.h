/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Blocks of a bf16 product by AMX, for matmul_reduced_float.h with units of two elements. A tile
 * register has 16 rows of 64 bytes; TDPBF16PS adds to 16 x 16 sums the products of 16 x 16 units of
 * a, in rows, and of 16 x 16 units of b, as pack_b() packs them.
 *
 * The kernel is written once. `model` is NULL, and it uses the registers, or it is memory for eight
 * tiles, and a C model of the instructions runs in their place: TENSOR_CPU_TILES=model, for tests on
 * processors without AMX.
 */
#ifndef TENSOR_MATMUL_AMX_H
#define TENSOR_MATMUL_AMX_H

#include <cpuid.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TILE_SIDE   16 /* rows of a tile, and units of a row */
#define TILE_UNITS  (TILE_SIDE * TILE_SIDE)
#define MODEL_UNITS (8 * TILE_UNITS)
#define TILE_PAD    16 /* units between rows of a: rows 4 KiB apart use the same sets of the cache */
#define TILE_LEAST  9  /* rows of a from which tiles are used */

enum tile_mode { TILES_NONE, TILES_MODEL, TILES_AMX };

struct tile_block {
	const T *a, *b; /* rows of units, `pitch` and `width` apart */
	T *sums;	/* rows WIDE apart */
	int64_t pitch, width, depth;
	bool add; /* to the sums */
};

#if UNIT == 2

/* ---- the C model ---- */

static void model_load(T *tile, const T *from, int64_t step)
{
	for (int i = 0; i < TILE_SIDE; i++)
		memcpy(tile + i * TILE_SIDE, from + i * step, TILE_SIDE * sizeof(T));
}

static void model_store(const T *tile, T *to, int64_t step)
{
	for (int i = 0; i < TILE_SIDE; i++)
		memcpy(to + i * step, tile + i * TILE_SIDE, TILE_SIDE * sizeof(T));
}

/* The half of a unit as f32; subnormals are zero. */
static inline T model_half(const T *unit, bool high)
{
	uint32_t bits;

	memcpy(&bits, unit, sizeof(bits));
	bits = high ? bits & 0xffff0000 : bits << 16;
	return bits & 0x7f800000 ? bits_to_f32(bits) : 0;
}

static void model_dot(T *sum, const T *a, const T *b)
{
	for (int i = 0; i < TILE_SIDE; i++)
		for (int k = 0; k < TILE_SIDE; k++)
			for (int half = 0; half < 2; half++) {
				T x = model_half(a + i * TILE_SIDE + k, half);

				for (int j = 0; j < TILE_SIDE; j++)
					sum[i * TILE_SIDE + j] +=
						x * model_half(b + k * TILE_SIDE + j, half);
			}
}

/* ---- the operations; N, A and B are numbers of registers ---- */

#define TILE_ZERO(N)                                                               \
	do {                                                                       \
		if (model)                                                         \
			memset(model + (N)*TILE_UNITS, 0, TILE_UNITS * sizeof(T)); \
		else                                                               \
			__asm__ volatile("tilezero %%tmm" #N ::);                  \
	} while (0)
#define TILE_LOAD(N, P, STEP)                                                      \
	do {                                                                       \
		if (model)                                                         \
			model_load(model + (N)*TILE_UNITS, P, STEP);               \
		else                                                               \
			__asm__ volatile("tileloadd (%0,%1,1), %%tmm" #N ::"r"(P), \
					 "r"((STEP) * (int64_t)sizeof(T))          \
					 : "memory");                              \
	} while (0)
#define TILE_STORE(N, P, STEP)                                                         \
	do {                                                                           \
		if (model)                                                             \
			model_store(model + (N)*TILE_UNITS, P, STEP);                  \
		else                                                                   \
			__asm__ volatile("tilestored %%tmm" #N ", (%0,%1,1)" ::"r"(P), \
					 "r"((STEP) * (int64_t)sizeof(T))              \
					 : "memory");                                  \
	} while (0)
#define TILE_DOT(N, A, B)                                                                    \
	do {                                                                                 \
		if (model)                                                                   \
			model_dot(model + (N)*TILE_UNITS, model + (A)*TILE_UNITS,            \
				  model + (B)*TILE_UNITS);                                   \
		else                                                                         \
			__asm__ volatile("tdpbf16ps %%tmm" #B ", %%tmm" #A ", %%tmm" #N ::); \
	} while (0)

/* The configuration of a thread: all registers have 16 rows of 64 bytes. */
static void tiles_begin(const T *model)
{
	struct {
		uint8_t palette, start, reserved[14];
		uint16_t bytes[16];
		uint8_t rows[16];
	} config = { .palette = 1 };

	if (model)
		return;
	for (int i = 0; i < 8; i++) {
		config.bytes[i] = TILE_SIDE * sizeof(T);
		config.rows[i] = TILE_SIDE;
	}
	__asm__ volatile("ldtilecfg %0" ::"m"(config));
}

static void tiles_end(const T *model)
{
	if (!model)
		__asm__ volatile("tilerelease" ::);
}

/* ---- the kernel ---- */

/* 16 * rows by 16 * columns sums. */
static inline __attribute__((always_inline)) void
tile_sums(const struct tile_block *t, const int rows, const int columns, T *model)
{
	const T *a = t->a, *b = t->b;
	T *sums = t->sums, *below = t->sums + TILE_SIDE * WIDE;

	if (t->add) {
		TILE_LOAD(0, sums, WIDE);
		if (columns > 1)
			TILE_LOAD(1, sums + TILE_SIDE, WIDE);
		if (rows > 1)
			TILE_LOAD(2, below, WIDE);
		if (rows > 1 && columns > 1)
			TILE_LOAD(3, below + TILE_SIDE, WIDE);
	} else {
		TILE_ZERO(0);
		TILE_ZERO(1);
		TILE_ZERO(2);
		TILE_ZERO(3);
	}
	for (int64_t k = 0; k < t->depth;
	     k += TILE_SIDE, a += TILE_SIDE, b += TILE_SIDE * t->width) {
		TILE_LOAD(6, b, t->width);
		TILE_LOAD(4, a, t->pitch);
		TILE_DOT(0, 4, 6);
		if (columns > 1) {
			TILE_LOAD(7, b + TILE_SIDE, t->width);
			TILE_DOT(1, 4, 7);
		}
		if (rows > 1) {
			TILE_LOAD(5, a + TILE_SIDE * t->pitch, t->pitch);
			TILE_DOT(2, 5, 6);
		}
		if (rows > 1 && columns > 1)
			TILE_DOT(3, 5, 7);
	}
	TILE_STORE(0, sums, WIDE);
	if (columns > 1)
		TILE_STORE(1, sums + TILE_SIDE, WIDE);
	if (rows > 1)
		TILE_STORE(2, below, WIDE);
	if (rows > 1 && columns > 1)
		TILE_STORE(3, below + TILE_SIDE, WIDE);
}

/* m rows; those up to the next multiple of 16 are computed, too. */
static inline __attribute__((always_inline)) void tile_rows_of(const struct tile_block *all,
							       int64_t m, T *model)
{
	for (int64_t i = 0; i < m; i += 2 * TILE_SIDE)
		for (int64_t j = 0; j < all->width; j += 2 * TILE_SIDE) {
			bool two = m - i > TILE_SIDE, wide = all->width - j > TILE_SIDE;
			struct tile_block t = *all;

			t.a += i * t.pitch;
			t.b += j;
			t.sums += i * WIDE + j;
			if (two && wide)
				tile_sums(&t, 2, 2, model);
			else if (two)
				tile_sums(&t, 2, 1, model);
			else if (wide)
				tile_sums(&t, 1, 2, model);
			else
				tile_sums(&t, 1, 1, model);
		}
}

static void compute_tile_rows(const struct tile_block *t, int64_t m, T *model)
{
	if (model)
		tile_rows_of(t, m, model);
	else
		tile_rows_of(t, m, NULL);
}

/* ---- packing of a ---- */

/* A unit of each of n rows; their elements are `step` apart along k, k of them exist. */
static inline VEC units_of_rows(const struct reduced_product *h, const uint16_t *s, int64_t row,
				int64_t step, int64_t n, int64_t k)
{
	VEC units = { 0 };

	if (row == 1)
		return units_across(h, s, step, n, k);
	for (int64_t i = 0; i < n; i++)
		units[i] = unit_at(h, s + i * row, step, k);
	return units;
}

/* Rows of `depth` units, `depth` + TILE_PAD apart; what does not exist is zero. */
static void pack_tile_rows(const struct reduced_product *h, T *to, int64_t begin, int64_t m)
{
	const struct product *p = h->p;
	int64_t pitch = h->depth + TILE_PAD;
	const uint16_t *a = (const uint16_t *)p->a + begin * p->rsa;

	for (int64_t i = 0; i < m;
	     i += TILE_SIDE, a += TILE_SIDE * p->rsa, to += TILE_SIDE * pitch) {
		int64_t n = least(m - i, TILE_SIDE);

		for (int64_t u = 0; u < h->depth; u += TILE_SIDE) {
			int64_t left = p->k - u * UNIT;
			VEC row[TILE_SIDE];

			for (int64_t r = 0; r < TILE_SIDE; r++) {
				const uint16_t *s = a + r * p->rsa + u * UNIT * p->csa;

				if (p->csa == 1)
					row[r] =
						r < n && left > 0 ?
							units_along(h, s,
								    least(left, TILE_SIDE * UNIT)) :
							(VEC){ 0 };
				else
					row[r] = left > r * UNIT ?
							 units_of_rows(h,
								       a + (u + r) * UNIT * p->csa,
								       p->rsa, p->csa, n,
								       left - r * UNIT) :
							 (VEC){ 0 };
			}
			if (p->csa != 1)
				transpose_lanes(row);
			for (int64_t r = 0; r < TILE_SIDE; r++)
				*(VEC *)(to + r * pitch + u) = row[r];
		}
	}
}

/* ---- which one is used ---- */

/* Linux gives the tile registers to processes that ask; refused with small alternate signal stacks. */
static bool amx_permitted(void)
{
	const unsigned tile_and_bf16 = 1u << 24 | 1u << 22;
	const long request = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA */
	unsigned a, b, c, d, low, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if ((low >> 17 & 3) != 3 || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return false;
	return (d & tile_and_bf16) == tile_and_bf16 &&
	       syscall(SYS_arch_prctl, request, tile_data) == 0;
}

/* Whether the instructions compute what their model computes. */
static bool amx_agrees(void)
{
	enum { ROWS_TWO = 2 * TILE_SIDE };
	T a[ROWS_TWO * TILE_SIDE], b[TILE_SIDE * ROWS_TWO], found[ROWS_TWO * WIDE],
		want[ROWS_TWO * WIDE];
	T model[MODEL_UNITS];
	struct tile_block t = {
		.a = a, .b = b, .pitch = TILE_SIDE, .width = ROWS_TWO, .depth = TILE_SIDE
	};
	bool same = true;

	for (int i = 0; i < ROWS_TWO * TILE_SIDE; i++) {
		/* Two small integers in each unit: sums are exact. */
		uint32_t x = f32_to_bits((T)(i % 7 - 3)) | f32_to_bits((T)(i % 5 - 2)) >> 16;
		uint32_t y = f32_to_bits((T)(i % 11 - 5)) | f32_to_bits((T)(i % 3 - 1)) >> 16;

		memcpy(a + i, &x, sizeof(x));
		memcpy(b + i, &y, sizeof(y));
	}
	tiles_begin(NULL);
	t.sums = found;
	compute_tile_rows(&t, ROWS_TWO, NULL);
	tiles_end(NULL);
	t.sums = want;
	compute_tile_rows(&t, ROWS_TWO, model);
	for (int i = 0; i < ROWS_TWO; i++)
		same &= !memcmp(found + i * WIDE, want + i * WIDE, ROWS_TWO * sizeof(T));
	return same;
}

static enum tile_mode chosen_tiles;

static void choose_tiles(void)
{
	const char *want = secure_getenv("TENSOR_CPU_TILES");

	if (want && !strcmp(want, "model"))
		chosen_tiles = TILES_MODEL;
	else if (!(want && !strcmp(want, "none")) && amx_permitted() && amx_agrees())
		chosen_tiles = TILES_AMX;
}

static enum tile_mode tiles_for(const struct product *p)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (p->m < TILE_LEAST)
		return TILES_NONE;
	pthread_once(&once, choose_tiles);
	return chosen_tiles;
}

#else
static inline enum tile_mode tiles_for(const struct product *p)
{
	return TILES_NONE;
}

static inline void tiles_begin(const T *model)
{
}

static inline void tiles_end(const T *model)
{
}

static inline void compute_tile_rows(const struct tile_block *t, int64_t m, T *model)
{
}

static inline void pack_tile_rows(const struct reduced_product *h, T *to, int64_t begin, int64_t m)
{
}
#endif

#endif
