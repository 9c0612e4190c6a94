/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Sums of products by the tile registers of AMX. A register has 16 rows of 64 bytes: 16 units of 32
 * bits, each of which holds adjacent elements along k. The instruction adds to 16 x 16 sums the
 * products of 16 x 16 units of a, in rows, and of 16 x 16 units of b, whose rows are along k.
 *
 * tiles_pairs.h and tiles_bytes.h include this file, one of them in a source file. They define T, the
 * type of a sum, TILE_INSTRUCTION, its bit in CPUID, TILE_FEATURE, its model, model_dot(), and
 * example_unit(), whose products are exact.
 *
 * The kernel is written once. `model` is NULL, and it uses the registers, or it is memory for eight
 * tiles, and a C model of the instructions runs in their place: TENSOR_CPU_TILES=model, for tests on
 * processors without AMX.
 */
#ifndef TENSOR_TILES_H
#define TENSOR_TILES_H

#include <cpuid.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TILE_SIDE   16 /* rows of a tile, and units of a row */
#define TILE_UNITS  (TILE_SIDE * TILE_SIDE)
#define MODEL_UNITS (8 * TILE_UNITS)
#define TILE_PAD    16 /* units between rows of a: rows 4 KiB apart use the same sets of the cache */
#define TILE_LEAST  9  /* rows of a from which tiles are used */

enum tile_mode { TILES_NONE, TILES_MODEL, TILES_AMX };

/* A product of rows of a with `width` columns of b. Units of a and b beyond their elements are zero. */
struct tile_block {
	const T *a, *b;			  /* rows of units, `pitch` and `width` apart */
	T *sums;			  /* rows `row` apart */
	int64_t pitch, width, row, depth; /* width and depth are multiples of TILE_SIDE */
	bool add;			  /* to the sums */
};

static inline int64_t whole_tiles(int64_t n)
{
	return (n + TILE_SIDE - 1) / TILE_SIDE * TILE_SIDE;
}

static void model_dot(T *sum, const T *a, const T *b);
static T example_unit(int i, bool b);

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
#define TILE_DOT(N, A, B)                                                          \
	do {                                                                       \
		if (model)                                                         \
			model_dot(model + (N)*TILE_UNITS, model + (A)*TILE_UNITS,  \
				  model + (B)*TILE_UNITS);                         \
		else                                                               \
			__asm__ volatile(TILE_INSTRUCTION " %%tmm" #B ", %%tmm" #A \
							  ", %%tmm" #N ::);        \
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
	T *sums = t->sums, *below = t->sums + TILE_SIDE * t->row;

	if (t->add) {
		TILE_LOAD(0, sums, t->row);
		if (columns > 1)
			TILE_LOAD(1, sums + TILE_SIDE, t->row);
		if (rows > 1)
			TILE_LOAD(2, below, t->row);
		if (rows > 1 && columns > 1)
			TILE_LOAD(3, below + TILE_SIDE, t->row);
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
	TILE_STORE(0, sums, t->row);
	if (columns > 1)
		TILE_STORE(1, sums + TILE_SIDE, t->row);
	if (rows > 1)
		TILE_STORE(2, below, t->row);
	if (rows > 1 && columns > 1)
		TILE_STORE(3, below + TILE_SIDE, t->row);
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
			t.sums += i * t.row + j;
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

/* ---- which one is used ---- */

/* Linux gives the tile registers to processes that ask; refused with small alternate signal stacks. */
static bool amx_permitted(void)
{
	const unsigned tile_and_feature = 1u << 24 | TILE_FEATURE;
	const long request = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA */
	unsigned a, b, c, d, low, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if ((low >> 17 & 3) != 3 || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return false;
	return (d & tile_and_feature) == tile_and_feature &&
	       syscall(SYS_arch_prctl, request, tile_data) == 0;
}

/* Whether the instructions compute what their model computes. */
static bool amx_agrees(void)
{
	enum { SIDE = 2 * TILE_SIDE };
	T a[SIDE * TILE_SIDE], b[TILE_SIDE * SIDE], found[SIDE * SIDE], want[SIDE * SIDE];
	T model[MODEL_UNITS];
	struct tile_block t = {
		.a = a, .b = b, .pitch = TILE_SIDE, .width = SIDE, .row = SIDE, .depth = TILE_SIDE
	};

	for (int i = 0; i < SIDE * TILE_SIDE; i++) {
		a[i] = example_unit(i, false);
		b[i] = example_unit(i, true);
	}
	tiles_begin(NULL);
	t.sums = found;
	compute_tile_rows(&t, SIDE, NULL);
	tiles_end(NULL);
	t.sums = want;
	compute_tile_rows(&t, SIDE, model);
	return !memcmp(found, want, sizeof(want));
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

/* For a product with m rows. */
static enum tile_mode tiles_for(int64_t m)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (m < TILE_LEAST)
		return TILES_NONE;
	pthread_once(&once, choose_tiles);
	return chosen_tiles;
}

#endif
