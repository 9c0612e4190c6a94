/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* How many processors a benchmark may use. */
#ifndef TENSOR_BENCH_PROCESSORS_H
#define TENSOR_BENCH_PROCESSORS_H

#include <sched.h>
#include <stdbool.h>

/* The first n processors of those that the program had. False if there are fewer. */
static bool use_processors(const cpu_set_t *all, int n)
{
	cpu_set_t set;
	int found = 0;

	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE && found < n; i++)
		if (CPU_ISSET(i, all)) {
			CPU_SET(i, &set);
			found++;
		}
	return found == n && sched_setaffinity(0, sizeof(set), &set) == 0;
}

#endif
