// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Work that is limited by memory bandwidth: a + b of 64 MiB each, and a STREAM triad of the same size.
 */
#include "row.h"

/* ---- 64 MiB ---- */

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

/* STREAM's triad in plain C, two reads and a write. It uses the memory of the tensors, so that the
 * pages are the same. */
static void run_triad_64m(int64_t n)
{
	float *x = tensor_mutable_data(out);
	const float *y = tensor_data(a), *z = tensor_data(b);

	while (n--) {
#pragma omp parallel for num_threads(row_threads) schedule(static)
		for (int64_t i = 0; i < BIG; i++)
			x[i] = y[i] + 3.0f * z[i];
	}
}

const struct row large_rows[] = {
	{ "add_64m", setup_big, run_add_64m, value_add_64m, NULL },
	{ "add_out_64m", setup_big, run_add_out_64m, NULL, NULL },
	{ "triad_64m", setup_big, run_triad_64m, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};
