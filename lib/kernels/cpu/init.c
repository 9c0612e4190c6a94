// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Chooses the instruction-set level once, at load, and registers its kernels.
 * TENSOR_CPU_LEVEL=v2|v3|v4 asks for a lower one, for tests and measurements.
 */
#include "cpu.h"

#include "../../dispatch/dispatch.h"

#include <stdlib.h>

#define DECLARE(file, level) extern const struct cpu_kernel file##_kernels_##level[];
CPU_FILES(DECLARE, v2)
CPU_FILES(DECLARE, v3)
CPU_FILES(DECLARE, v4)

#define ENTRY(file, level) file##_kernels_##level,
static const struct cpu_kernel *const levels[][16] = {
	{CPU_FILES(ENTRY, v2) NULL},
	{CPU_FILES(ENTRY, v3) NULL},
	{CPU_FILES(ENTRY, v4) NULL},
};

static unsigned best_level(void)
{
	const char *want = secure_getenv("TENSOR_CPU_LEVEL");
	unsigned best = 0;

	__builtin_cpu_init();
	if (__builtin_cpu_supports("x86-64-v3"))
		best = 1;
	if (__builtin_cpu_supports("x86-64-v4"))
		best = 2;
	if (want && want[0] == 'v' && want[1] >= '2' && (unsigned)(want[1] - '2') < best)
		best = want[1] - '2';
	return best;
}

/* After the tables are there (101), before anybody registers on top. */
__attribute__((constructor(102))) static void register_kernels(void)
{
	const struct cpu_kernel *const *file = levels[best_level()];

	for (; *file; file++)
		for (const struct cpu_kernel *k = *file; k->name; k++)
			tensor_register_loop(k->name, TENSOR_KEY_CPU, k->fn);
}

TENSOR_EXPORT int kernel_no_dtype(const char *name, enum tensor_dtype dtype,
				  const char *backend)
{
	return tensor_fail(EOPNOTSUPP, "%s: no kernel for dtype %s on %s", name,
			   tensor_dtype_name(dtype), backend);
}
