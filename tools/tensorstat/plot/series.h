/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Samples of memory over time, taken from a backend or read from a file. */
#ifndef TENSORSTAT_SERIES_H
#define TENSORSTAT_SERIES_H

#include "backend/backend.h"

#define SERIES_NAME 48

struct sample {
	int64_t time_ms; /* since 1970 */
	uint64_t bytes, buffers;
};

/* The samples are in order of time. */
struct series {
	char name[SERIES_NAME]; /* printable UTF-8 */
	struct list samples;
	struct sample peak; /* the first of the samples with the most bytes */
};

struct recording {
	struct list series;
	int64_t limit_bytes; /* the last one that was seen; 0 or UNKNOWN: none */
	size_t dropped;	     /* series that recording_trim() removed */
};

void recording_init(struct recording *r);
void recording_clear(struct recording *r);
/* Takes a sample: a series for all buffers, and one for each process that holds some. */
enum status recording_sample(struct recording *r, const struct backend *b);
/*
 * Adds a series with the lines that `tensorstat -j stat DELAY` wrote to the file; "-" is standard
 * input. Its name is that of the file.
 */
enum status recording_read(struct recording *r, const char *path);
/* Keeps the first series, and of the others those with the highest peaks: n series together. */
void recording_trim(struct recording *r, size_t n);

#endif
