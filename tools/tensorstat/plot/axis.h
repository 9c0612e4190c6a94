/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Distances of ticks, and their labels. */
#ifndef TENSORSTAT_AXIS_H
#define TENSORSTAT_AXIS_H

#include "tensorstat.h"

/* At most five steps to a power of two; for sizes, whose units are powers of two. */
double axis_step_size(double most);
/* At most five steps to 1, 2 or 5 times a power of ten, at least 1. */
double axis_step_count(double most);
/* At most eight steps to a time that people count in: seconds to days. In milliseconds. */
int64_t axis_step_time(int64_t span_ms);
/* The first multiple of the step, in local time, that is not before begin. */
int64_t axis_first_time(int64_t begin_ms, int64_t step_ms);
/* Local time with as much of it as ticks of that step need. */
void axis_time_label(char *text, size_t room, int64_t time_ms, int64_t step_ms);

#endif
