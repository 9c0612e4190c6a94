// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Limits, counters and trimming of the memory caches (trim.h). */
#include "storage/trim.h"

#include "base/compiler.h"
#include "base/init.h"

#include <stdlib.h>
#include <unistd.h>

static void (*_Atomic stages[TRIM_STAGES])(void);
static uint64_t limit;
static _Atomic uint64_t hits, misses;

INIT(INIT_MEMORY) static void read_limit(void)
{
	const char *text = secure_getenv("TENSOR_CACHE_LIMIT");
	char *end;

	limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
	if (text && *text) {
		uint64_t n = strtoull(text, &end, 0);

		if (!*end)
			limit = n;
	}
}

uint64_t cache_limit(void)
{
	return limit;
}

void cache_count(bool hit)
{
	atomic_fetch_add_explicit(hit ? &hits : &misses, 1, memory_order_relaxed);
}

void cache_counts(uint64_t *h, uint64_t *m)
{
	*h = atomic_load_explicit(&hits, memory_order_relaxed);
	*m = atomic_load_explicit(&misses, memory_order_relaxed);
}

void trim_register(enum trim_stage stage, void (*fn)(void))
{
	stages[stage] = fn;
}

void trim_all(void)
{
	for (int i = 0; i < TRIM_STAGES; i++) {
		void (*fn)(void) = stages[i];

		if (fn)
			fn();
	}
}
