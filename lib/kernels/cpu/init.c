// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Chooses the instruction-set level once, at load, and registers its kernels.
 * TENSOR_CPU_LEVEL=v2|v3|v4 asks for a lower one, for tests and measurements.
 */
#include "kernels/cpu/simd/cpu.h"

#include "dispatch/dispatch.h"

#include <stdlib.h>

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

void cpu_register(const char *level, const struct cpu_kernel *kernels, size_t n)
{
	static char best;

	if (!best)
		best = best_level();
	for (size_t i = 0; level[1] == best && i < n; i++)
		tensor_kernel_table_set(kernels[i].name, TENSOR_KEY_CPU, kernels[i].fn);
}
