// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "plot/axis.h"

#include <time.h>

#define DAY_MS (86400 * 1000LL)

double axis_step_size(double most)
{
	double step = 1;

	while (most / step > 5)
		step *= 2;
	return step;
}

double axis_step_count(double most)
{
	static const double factors[] = { 2, 2.5, 2 };
	double step = 1;

	for (int i = 0; most / step > 5; i++)
		step *= factors[i % 3];
	return step;
}

int64_t axis_step_time(int64_t span_ms)
{
	static const int seconds[] = { 1,   2,	 5,    10,   15,   30,	  60,	 120,	300,
				       600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400 };
	size_t n = sizeof(seconds) / sizeof(*seconds);

	for (size_t i = 0; i < n; i++)
		if (span_ms <= 8000LL * seconds[i])
			return 1000LL * seconds[i];
	return (span_ms / 8 / DAY_MS + 1) * DAY_MS;
}

static struct tm local(int64_t time_ms)
{
	time_t seconds = time_ms / 1000;
	struct tm tm;

	localtime_r(&seconds, &tm);
	return tm;
}

int64_t axis_first_time(int64_t begin_ms, int64_t step_ms)
{
	int64_t offset = local(begin_ms).tm_gmtoff * 1000;

	return (begin_ms + offset + step_ms - 1) / step_ms * step_ms - offset;
}

void axis_time_label(char *text, size_t room, int64_t time_ms, int64_t step_ms)
{
	struct tm tm = local(time_ms);

	strftime(text, room,
		 step_ms < 60 * 1000LL ? "%H:%M:%S" :
		 step_ms < DAY_MS      ? "%H:%M" :
					 "%Y-%m-%d",
		 &tm);
}
