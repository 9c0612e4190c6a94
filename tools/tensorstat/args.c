// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Words of the command line. */
#include "tensorstat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum status bad(const char *what, const char *text)
{
	complain("%s \"%s\"; see tensorstat help", what, text);
	return STATUS_USAGE;
}

bool is(const char *arg, const char *word)
{
	size_t n = strlen(arg);

	return n && !strncmp(arg, word, n);
}

bool parse_u64(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

bool parse_pid(const char *text, pid_t *pid)
{
	uint64_t value;

	if (!parse_u64(text, &value) || !value || value > INT32_MAX)
		return false;
	*pid = (pid_t)value;
	return true;
}

/* 4096, 64K, 1.5M, 2GiB: units of 1024. */
bool parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGTPE";
	double value;
	char *end;
	const char *u;

	value = strtod(text, &end);
	if (end == text || !(value >= 0))
		return false;
	u = *end ? strchr(units, *end >= 'a' ? *end - 32 : *end) : NULL;
	if (u) {
		value *= (double)(1ull << 10 * (u - units + 1));
		end++;
		if (*end == 'i')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end || value >= 0x1p64)
		return false;
	*bytes = (uint64_t)value;
	return true;
}

bool parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return end != text && !*end && *seconds > 0 && *seconds <= 86400 * 365;
}
