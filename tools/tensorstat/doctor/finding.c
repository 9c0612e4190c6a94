// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Findings, and the files that checks read. */
#include "doctor/finding.h"

#include "output/cell.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct row_type finding_rows = { "finding", sizeof(struct finding), NULL };

struct finding *finding_add(struct list *findings, const char *check)
{
	struct finding *f = list_add(findings);

	f->check = check;
	return f;
}

void finding_set(struct finding *f, enum verdict verdict, const char *fmt, ...)
{
	va_list args;

	f->verdict = verdict;
	va_start(args, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, args);
	va_end(args);
}

void finding_fix(struct finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(f->fix, sizeof(f->fix), fmt, args);
	va_end(args);
}

/* ---- files ---- */

bool look_elsewhere(void)
{
	return getenv("TENSORSTAT_ROOT");
}

const char *look_path(const char *path, char *room, size_t size)
{
	const char *root = getenv("TENSORSTAT_ROOT");

	snprintf(room, size, "%s%s", root ? root : "", path);
	return room;
}

bool look_exists(const char *path)
{
	char full[512];

	return access(look_path(path, full, sizeof(full)), F_OK) == 0;
}

bool look_text(const char *path, char *text, size_t room)
{
	char full[512];
	FILE *f = fopen(look_path(path, full, sizeof(full)), "re");
	bool read = f && fgets(text, (int)room, f);

	if (f)
		fclose(f);
	if (read)
		text[strcspn(text, "\n")] = '\0';
	else
		*text = '\0';
	return read;
}

/* Reads the first line that begins with a key; returns the text after the key, or NULL. */
static const char *look_line(const char *path, const char *key, char *line, size_t room)
{
	char full[512];
	FILE *f = fopen(look_path(path, full, sizeof(full)), "re");
	size_t n = strlen(key);
	bool found = false;

	while (f && !found && fgets(line, (int)room, f))
		found = !strncmp(line, key, n);
	if (f)
		fclose(f);
	return found ? line + n + strspn(line + n, ": \t") : NULL;
}

bool look_number(const char *path, const char *key, uint64_t *value)
{
	char line[512];
	const char *at = look_line(path, key, line, sizeof(line));

	if (at)
		*value = strtoull(at, NULL, 10);
	return at;
}

static uint64_t limit_value(const char **at)
{
	uint64_t value = UINT64_MAX;
	char *end = (char *)*at + strcspn(*at, " \n");

	if (strncmp(*at, "unlimited", 9))
		value = strtoull(*at, NULL, 10);
	*at = end + strspn(end, " ");
	return value;
}

bool look_limit(const char *pid, const char *name, uint64_t *soft, uint64_t *hard)
{
	char path[64], line[512];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%.20s/limits", pid);
	at = look_line(path, name, line, sizeof(line));
	if (!at)
		return false;
	*soft = limit_value(&at);
	*hard = limit_value(&at);
	return true;
}

const char *look_size(uint64_t bytes, char *room, size_t size)
{
	static const struct options iec;

	put_size(room, size, bytes, &iec);
	return room;
}
