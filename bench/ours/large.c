// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Work that memory or arithmetic bounds: a + b of 64 MiB each beside a STREAM triad of the same
 * size, products of square matrices.
 */
#include "row.h"

/* ---- 64 MiB ------------------------------------------------------------------------------- */

#define BIG ((int64_t)16 << 20)

static tensor *a, *b, *out;

static void setup_big(void)
{
	a = row_own(tensor_full(TENSOR_SHAPE(BIG), TENSOR_SCALAR(0.25), TENSOR_OPTIONS(0)));
	b = row_own(tensor_full(TENSOR_SHAPE(BIG), TENSOR_SCALAR(0.5), TENSOR_OPTIONS(0)));
	out = row_own(tensor_full(TENSOR_SHAPE(BIG), TENSOR_SCALAR(0.0), TENSOR_OPTIONS(0)));
}

static void run_add_64m(int64_t n)
{
	while (n--)
		tensor_release(tensor_add(a, b));
}

static double value_add_64m(void)
{
	return row_sum(tensor_add(a, b));
}

static void run_add_out_64m(int64_t n)
{
	while (n--)
		tensor_add_out(out, a, b);
}

/* As STREAM writes it: what this machine's memory gives to plain C, two reads and a write. The
 * arrays are the tensors' memory, so that pages are the same. */
static void run_triad_64m(int64_t n)
{
	float *x = tensor_data(out);
	const float *y = tensor_data(a), *z = tensor_data(b);

	while (n--) {
#pragma omp parallel for num_threads(row_threads) schedule(static)
		for (int64_t i = 0; i < BIG; i++)
			x[i] = y[i] + 3.0f * z[i];
	}
}

/* ---- products ----------------------------------------------------------------------------- */

static void setup_square(int64_t size)
{
	a = row_wave(TENSOR_SHAPE(size, size), 0, 1);
	b = row_wave(TENSOR_SHAPE(size, size), 1, 1);
}

#define SQUARE(size)                                                                              \
	static void setup_##size(void)                                                            \
	{                                                                                         \
		setup_square(size);                                                               \
	}
SQUARE(4)
SQUARE(32)
SQUARE(256)
SQUARE(1024)

static void run_mm(int64_t n)
{
	while (n--)
		tensor_release(tensor_mm(a, b));
}

static double value_mm(void)
{
	return row_sum(tensor_mm(a, b));
}

const struct row large_rows[] = {
	{"add_64m", setup_big, run_add_64m, value_add_64m, NULL},
	{"add_out_64m", setup_big, run_add_out_64m, NULL, NULL},
	{"triad_64m", setup_big, run_triad_64m, NULL, NULL},
	{"mm_4", setup_4, run_mm, value_mm, NULL},
	{"mm_32", setup_32, run_mm, value_mm, NULL},
	{"mm_256", setup_256, run_mm, value_mm, NULL},
	{"mm_1024", setup_1024, run_mm, value_mm, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};
