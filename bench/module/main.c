// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * bench [-r ROUNDS] [-m MIB] [-n LIVE] GROUP...
 *
 * Groups: touch, calls, share, scale. Runs in the guest; `make bench-module` starts it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "module.h"

struct options options = { .rounds = 5, .most = 64 * MIB, .live = 1000 };

static const struct {
	const char *name;
	void (*run)(void);
} groups[] = {
	{ "touch", bench_touch },
	{ "calls", bench_calls },
	{ "share", bench_share },
	{ "scale", bench_scale },
};

static int run_group(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		if (!strcmp(groups[i].name, name)) {
			groups[i].run();
			return 0;
		}
	}
	fprintf(stderr, "bench: no group %s\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	int c, status = 0;

	while ((c = getopt(argc, argv, "r:m:n:")) != -1) {
		switch (c) {
		case 'r':
			options.rounds = (unsigned int)atoi(optarg);
			break;
		case 'm':
			options.most = strtoull(optarg, NULL, 0) * MIB;
			break;
		case 'n':
			options.live = strtoul(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	}
	if (options.rounds < 1 || options.rounds > MAX_ROUNDS || optind == argc) {
		fprintf(stderr, "usage: bench [-r 1-%d] [-m MIB] [-n LIVE] GROUP...\n", MAX_ROUNDS);
		return 2;
	}
	memory_init();
	while (optind < argc && !status)
		status = run_group(argv[optind++]);
	return status;
}
