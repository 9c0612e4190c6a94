// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Chooses the instruction-set level once, at load, and registers its kernels.
 * TENSOR_CPU_LEVEL=v2|v3|v4 asks for a lower one, for tests and measurements, and TENSOR_CPU_PAIRS=none|small|all for
 * fewer or more products of pairs.
 */
#include "kernels/cpu/simd/cpu.h"

#include "dispatch/dispatch.h"

#include <cpuid.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The levels that were compiled, ascending: "v2 v3 v4", or fewer for a quick build. */
static const char compiled[] = CPU_LEVELS;

static char best_level(void)
{
	const char *want = secure_getenv("TENSOR_CPU_LEVEL");
	char best = '2';

	__builtin_cpu_init();
	if (__builtin_cpu_supports("x86-64-v3"))
		best = '3';
	if (__builtin_cpu_supports("x86-64-v4"))
		best = '4';
	if (want && want[0] == 'v' && want[1] >= '2' && want[1] < best)
		best = want[1];
	while (best > '2' && !strchr(compiled, best))
		best--;
	return strchr(compiled, best) ? best : compiled[1];
}

/* First called at load, by one thread. */
static char chosen_level(void)
{
	static char level;

	if (!level)
		level = best_level();
	return level;
}

void cpu_register(const char *level, const struct cpu_kernel *kernels, size_t n)
{
	for (size_t i = 0; level[1] == chosen_level() && i < n; i++)
		tensor_kernel_table_set(kernels[i].name, TENSOR_KEY_CPU, kernels[i].fn);
}

/* ---- products of pairs of bf16 ---- */

static enum cpu_pairs chosen_pairs;

/*
 * Whether pairs take longer than f32. Intel's cores since Sapphire Rapids, the first with AVX512-FP16, start one
 * vdpbf16ps of 64 bytes in two cycles, and two multiply-adds of f32 in each cycle; AMD's start both at one rate. With
 * AMX, whose tiles multiply pairs too, pairs are faster: a hypervisor may hide it.
 */
static bool pairs_are_slow(void)
{
	const unsigned avx512_fp16 = 1u << 23, amx = 1u << 24;
	unsigned a, b, c, d;

	return __builtin_cpu_is("intel") && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
	       (d & (avx512_fp16 | amx)) == avx512_fp16;
}

static bool env_is(const char *value, const char *wanted)
{
	return value && !strcmp(value, wanted);
}

static void choose_pairs(void)
{
	const char *want = secure_getenv("TENSOR_CPU_PAIRS");
	const char *tiles = secure_getenv("TENSOR_CPU_TILES");

	if (chosen_level() < '4' || !__builtin_cpu_supports("avx512bf16") || env_is(want, "none"))
		chosen_pairs = PAIRS_NONE;
	else if (env_is(want, "small"))
		chosen_pairs = PAIRS_SMALL;
	else if (env_is(want, "all") || env_is(tiles, "model") || !pairs_are_slow())
		chosen_pairs = PAIRS_ALL;
	else
		chosen_pairs = PAIRS_SMALL;
}

enum cpu_pairs cpu_pairs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose_pairs);
	return chosen_pairs;
}
