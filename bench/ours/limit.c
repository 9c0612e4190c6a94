// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Limits of the machine: STREAM's copy and triad on arrays that together fit each cache or none, and
 * multiply-add instructions on registers. bench/limits.py compares the time of a row with them.
 */
#include "row.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory: 3 arrays in all ---- */

static float *memory;
static int64_t elements; /* of an array */

static void set_up_arrays(int64_t bytes)
{
	elements = bytes / 3 / (int64_t)sizeof(*memory);
	memory = aligned_alloc(4096, (size_t)bytes + 4096 - (size_t)bytes % 4096);
	row_check(memory ? 0 : -1);
	for (int64_t i = 0; i < 3 * elements; i++)
		memory[i] = 1;
}

static void tear_down_arrays(void)
{
	free(memory);
}

static void triad_part(float *x, const float *y, const float *z, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = y[i] + 3.0f * z[i];
}

/* A thread has the same part in all n repetitions, as a kernel has whose operands stay in its cache. */
static void run_stream(int64_t n, bool triad)
{
#pragma omp parallel for num_threads(row_threads) schedule(static)
	for (int t = 0; t < row_threads; t++) {
		int64_t begin = elements * t / row_threads, end = elements * (t + 1) / row_threads;
		float *x = memory + begin, *y = x + elements, *z = y + elements;

		for (int64_t k = 0; k < n; k++) {
			if (triad)
				triad_part(x, y, z, end - begin);
			else
				memcpy(x, y, (size_t)(end - begin) * sizeof(*x));
			__asm__ volatile("" ::: "memory");
		}
	}
}

static void run_triad(int64_t n)
{
	run_stream(n, true);
}

static void run_copy(int64_t n)
{
	run_stream(n, false);
}

#define ARRAYS(name, bytes)             \
	static void set_up_##name(void) \
	{                               \
		set_up_arrays(bytes);   \
	}
ARRAYS(l1, 24 << 10)
ARRAYS(l2, 384 << 10)
ARRAYS(l3, 12 << 20)
ARRAYS(dram, 192 << 20)

/* ---- instructions ---- */

#define CHAINS 12	 /* independent sums: enough to hide the latency */
#define FMAS   (1 << 12) /* in each chain, for each run and thread */

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x16 __attribute__((vector_size(64)));
typedef double f64x4 __attribute__((vector_size(32)));
typedef double f64x8 __attribute__((vector_size(64)));

static volatile float factor = 0.5f;
static volatile double sink;

/* FMAS * CHAINS multiply-adds of vectors of type V. */
#define FMA(name, V, isa)                                    \
	static __attribute__((target(isa))) void name(void)  \
	{                                                    \
		V sum[CHAINS], x = (V){ 0 } + factor, y = x; \
                                                             \
		for (int i = 0; i < CHAINS; i++)             \
			sum[i] = x * (float)i;               \
		for (int k = 0; k < FMAS; k++)               \
			for (int i = 0; i < CHAINS; i++)     \
				sum[i] = sum[i] * x + y;     \
		for (int i = 1; i < CHAINS; i++)             \
			sum[0] += sum[i];                    \
		sink = (double)sum[0][0];                    \
	}
FMA(fma_f32x8, f32x8, "avx2,fma")
FMA(fma_f32x16, f32x16, "avx512f")
FMA(fma_f64x4, f64x4, "avx2,fma")
FMA(fma_f64x8, f64x8, "avx512f")

/* Pairs of bf16, whose products are added to f32; the registers are named because GCC spills an array of them. */
#define PAIRS(sum) "vdpbf16ps %0, %0, %%zmm" #sum "\n\t"

static __attribute__((target("avx512f"))) void fma_bf16x32(void)
{
	f32x16 x = { 0 };

	for (int k = 0; k < FMAS; k++)
		__asm__ volatile(PAIRS(20) PAIRS(21) PAIRS(22) PAIRS(23) PAIRS(24) PAIRS(25)
					 PAIRS(26) PAIRS(27) PAIRS(28) PAIRS(29) PAIRS(30) PAIRS(31)
				 :
				 : "v"(x)
				 : "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",
				   "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
}

enum kind { KIND_F32, KIND_F64, KIND_BF16 };

/* The function of this processor and the elements that one of its instructions multiplies. */
static void (*fastest(enum kind kind, int *lanes))(void)
{
	bool wide = __builtin_cpu_supports("avx512f");

	*lanes = (wide ? 16 : 8) / (kind == KIND_F64 ? 2 : 1);
	if (kind == KIND_F64)
		return wide ? fma_f64x8 : fma_f64x4;
	if (kind == KIND_BF16 && wide && __builtin_cpu_supports("avx512bf16")) {
		*lanes = 32;
		return fma_bf16x32;
	}
	return wide ? fma_f32x16 : fma_f32x8; /* bf16 is converted */
}

static void run_fma(int64_t n, enum kind kind)
{
	int lanes;
	void (*fma)(void) = fastest(kind, &lanes);

#pragma omp parallel for num_threads(row_threads) schedule(static)
	for (int t = 0; t < row_threads; t++)
		for (int64_t k = 0; k < n; k++)
			fma();
}

static void run_f32(int64_t n)
{
	run_fma(n, KIND_F32);
}

static void run_f64(int64_t n)
{
	run_fma(n, KIND_F64);
}

static void run_bf16(int64_t n)
{
	run_fma(n, KIND_BF16);
}

static void no_set_up(void)
{
}

const struct row limit_rows[] = {
	{ "copy_l1", set_up_l1, run_copy, NULL, tear_down_arrays },
	{ "copy_l2", set_up_l2, run_copy, NULL, tear_down_arrays },
	{ "copy_l3", set_up_l3, run_copy, NULL, tear_down_arrays },
	{ "copy_dram", set_up_dram, run_copy, NULL, tear_down_arrays },
	{ "triad_l1", set_up_l1, run_triad, NULL, tear_down_arrays },
	{ "triad_l2", set_up_l2, run_triad, NULL, tear_down_arrays },
	{ "triad_l3", set_up_l3, run_triad, NULL, tear_down_arrays },
	{ "triad_dram", set_up_dram, run_triad, NULL, tear_down_arrays },
	{ "fma_f32", no_set_up, run_f32, NULL, NULL },
	{ "fma_f64", no_set_up, run_f64, NULL, NULL },
	{ "fma_bf16", no_set_up, run_bf16, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

bool limit_work(const char *name, int64_t *bytes, int64_t *flops)
{
	enum kind kind = !strcmp(name, "fma_f64")  ? KIND_F64 :
			 !strcmp(name, "fma_bf16") ? KIND_BF16 :
						     KIND_F32;
	int lanes = 0;

	*bytes = *flops = 0;
	if (!strncmp(name, "copy_", 5))
		*bytes = 2 * elements * (int64_t)sizeof(*memory);
	else if (!strncmp(name, "triad_", 6))
		*bytes = 3 * elements * (int64_t)sizeof(*memory);
	else if (strncmp(name, "fma_", 4))
		return false;
	else if (fastest(kind, &lanes))
		*flops = (int64_t)2 * FMAS * CHAINS * lanes * row_threads;
	return true;
}
