/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * doctor: what an administrator would look at when something does not work. A check looks at one
 * thing, says what it found, and how to mend it if that is not well.
 */
#ifndef TENSORSTAT_DOCTOR_H
#define TENSORSTAT_DOCTOR_H

#include "tensorstat.h"

enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_WARN, VERDICT_FAIL };

struct finding {
	const char *check;
	enum verdict verdict;
	enum status status; /* of a failure */
	char text[256];
	char mend[384];
};

static const struct kind finding_kind __attribute__((unused)) = {
	.name = "finding",
	.size = sizeof(struct finding),
};

/* A finding of that check for the list, which says so far that it is well. */
struct finding *finding_add(struct list *findings, const char *check);
void finding_says(struct finding *f, enum verdict verdict, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void finding_mend(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The first line of a file; false if it cannot be read. $TENSORSTAT_ROOT comes before the path. */
bool look_text(const char *path, char *text, size_t room);
bool look_exists(const char *path);
/* The number behind a key in a file of "key ... number" lines. */
bool look_number(const char *path, const char *key, uint64_t *value);
const char *look_path(const char *path, char *room, size_t size);

void doctor_module(struct list *findings); /* module, version, signature, parameters */
void doctor_access(struct list *findings); /* node, group, udev rule */
void doctor_memory(struct list *findings); /* limits, cgroup, huge pages, memlock, shm */

#endif
