// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Allocate, map, touch each page, unmap, free: like a program that creates and frees a tensor.
 *
 *	cold      once, after the module's pool was emptied
 *	rested    once, some time after the same was allocated and freed
 *	repeated  repeated without a pause
 *
 * Each with faults at the first touch and with MAP_POPULATE, which the library uses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "module.h"

enum mode { COLD, RESTED, REPEATED, MODES };

static const char *const mode_names[MODES] = { "cold", "rested", "repeated" };

/* Time for the module's thread, which waits until the system is idle. */
#define REST_MS	   60
#define MOST_SIDES 8

/* From this size on a run takes so long that only two rounds are made. */
#define LARGE (64 * MIB)

static void once(const struct kind *k, uint64_t bytes, int flags)
{
	struct memory m;

	k->make(&m, bytes);
	memory_map(&m, flags);
	memory_touch(&m);
	memory_unmap(&m);
	k->drop(&m);
}

/* The number of runs that makes a sample long enough, also for small buffers. */
static unsigned int repeats(enum mode mode, uint64_t bytes)
{
	if (mode != REPEATED || bytes >= 16 * MIB)
		return 1;
	return bytes <= 64 * KIB ? 64 : bytes <= MIB ? 16 : 4;
}

static void before(enum mode mode, const struct kind *k, uint64_t bytes, int flags)
{
	k->prepare();
	if (mode == COLD) {
		memory_pool(false);
		memory_pool(true);
	} else if (k == kinds || bytes < LARGE) {
		/* the peers cache no large buffers */
		once(k, bytes, flags);
	}
	if (mode == RESTED)
		rest_ms(REST_MS);
}

static struct sample measure(enum mode mode, const struct kind *k, uint64_t bytes, int flags)
{
	unsigned int i, n = repeats(mode, bytes);
	uint64_t ns, faults;

	before(mode, k, bytes, flags);
	calls = 0;
	faults = page_faults();
	ns = now_ns();
	for (i = 0; i < n; i++)
		once(k, bytes, flags);
	ns = now_ns() - ns;
	faults = page_faults() - faults;
	return (struct sample){ .ns = (double)ns / n,
				.faults = (double)faults / n,
				.calls = (double)calls / n };
}

/* All sides in each round, in opposite order from round to round. */
static void row(enum mode mode, uint64_t bytes, int flags)
{
	static struct result results[MOST_SIDES];
	unsigned int round, rounds = options.rounds;
	char name[64];
	size_t i, at;

	snprintf(name, sizeof(name), "%s%s", mode_names[mode], flags ? ", populate" : "");
	for (i = 0; i < kinds_nr; i++)
		results[i] = (struct result){
			.group = "touch", .row = name, .bytes = bytes, .side = kinds[i].name
		};
	if (bytes >= LARGE && rounds > 2)
		rounds = 2;
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < kinds_nr; i++) {
			at = round % 2 ? kinds_nr - 1 - i : i;
			if (kinds[at].here())
				result_add(&results[at], measure(mode, &kinds[at], bytes, flags));
		}
	}
	for (i = 0; i < kinds_nr; i++)
		result_print(&results[i]);
}

static unsigned long smaps_value(const char *line, const char *key)
{
	size_t n = strlen(key);

	return strncmp(line, key, n) ? 0 : strtoul(line + n, NULL, 10);
}

/* Page table entries of a mapping whose pages were all touched. */
static void entries(const struct kind *k, uint64_t bytes)
{
	unsigned long rss = 0, pmd = 0, huge = 0, start;
	struct memory m;
	char line[256];
	bool in = false;
	FILE *f;

	k->prepare();
	k->make(&m, bytes);
	memory_map(&m, 0);
	memory_touch(&m);
	f = fopen("/proc/self/smaps", "r");
	must(f, "/proc/self/smaps");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%*x ", &start) == 1 && strchr(line, '-'))
			in = start == (unsigned long)m.at;
		if (!in)
			continue;
		rss += smaps_value(line, "Rss:");
		pmd += smaps_value(line, "FilePmdMapped:") + smaps_value(line, "ShmemPmdMapped:");
		huge += smaps_value(line, "Shared_Hugetlb:") +
			smaps_value(line, "Private_Hugetlb:");
	}
	fclose(f);
	memory_unmap(&m);
	k->drop(&m);
	/* mappings of page frames without struct page are not counted there */
	if (!rss && !huge)
		return;
	fact_print("entries", "page table entries", k->name, bytes, "entries",
		   (double)(pmd + huge) / 2048 + (double)(rss - pmd) / 4);
}

void bench_touch(void)
{
	static const int flags[] = { 0, MAP_POPULATE };
	uint64_t bytes;
	size_t i, f;
	int mode;

	for (bytes = 4 * KIB; bytes <= options.most; bytes *= 4) {
		for (i = 0; i < kinds_nr; i++)
			if (kinds[i].here())
				entries(&kinds[i], bytes);
		for (f = 0; f < ARRAY_SIZE(flags); f++)
			for (mode = 0; mode < MODES; mode++)
				row(mode, bytes, flags[f]);
	}
}
