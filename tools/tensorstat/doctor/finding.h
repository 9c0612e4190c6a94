/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Findings of doctor. A check examines one thing and adds a finding: a verdict, what was found, and
 * a fix unless the verdict is ok. Checks read files below $TENSORSTAT_ROOT if it is set, so that
 * they can be tested on a recorded machine.
 */
#ifndef TENSORSTAT_FINDING_H
#define TENSORSTAT_FINDING_H

#include "rows/list.h"

#define MODULE_FOLDER "/sys/module/tensor"

enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_WARN, VERDICT_FAIL };

struct finding {
	const char *check;
	enum verdict verdict;
	enum status status; /* exit status of VERDICT_FAIL; 0: STATUS_ERROR */
	char text[256];
	char fix[384];
};

extern const struct row_type finding_rows;

/* Appends a finding with VERDICT_OK. Valid until the next call. */
struct finding *finding_add(struct list *findings, const char *check);
void finding_set(struct finding *f, enum verdict verdict, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void finding_fix(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether files below another root are examined. */
bool look_elsewhere(void);
/* Prefixes a path with $TENSORSTAT_ROOT. */
const char *look_path(const char *path, char *room, size_t size);
bool look_exists(const char *path);
/* Reads the first line of a file; false and "" if it cannot be read. */
bool look_text(const char *path, char *text, size_t room);
/* Reads the number after a key in a file of lines "KEY: NUMBER". */
bool look_number(const char *path, const char *key, uint64_t *value);
/* Reads a limit such as "Max open files" from /proc/PID/limits. UINT64_MAX: unlimited. */
bool look_limit(const char *pid, const char *name, uint64_t *soft, uint64_t *hard);
/* "1.5GiB" */
const char *look_size(uint64_t bytes, char *room, size_t size);

void doctor_module(struct list *findings); /* module, version, netlink, signature */
void doctor_access(struct list *findings); /* device node, group, udev rule */
void doctor_memory(struct list *findings); /* limits of module and cgroup, huge pages */
void doctor_limits(struct list *findings); /* descriptors, locked memory, memfds */

#endif
