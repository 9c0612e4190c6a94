// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* doctor: runs the checks, and prints what they found. */
#include "doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- findings ---- */

struct finding *finding_add(struct list *findings, const char *check)
{
	struct finding *f = list_add(findings);

	f->check = check;
	return f;
}

void finding_says(struct finding *f, enum verdict verdict, const char *fmt, ...)
{
	va_list args;

	f->verdict = verdict;
	va_start(args, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, args);
	va_end(args);
}

void finding_mend(struct finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(f->mend, sizeof(f->mend), fmt, args);
	va_end(args);
}

/* ---- looking ---- */

const char *look_path(const char *path, char *room, size_t size)
{
	const char *root = getenv("TENSORSTAT_ROOT");

	snprintf(room, size, "%s%s", root ? root : "", path);
	return room;
}

bool look_text(const char *path, char *text, size_t room)
{
	char full[512];
	FILE *f = fopen(look_path(path, full, sizeof(full)), "re");
	bool there = f && fgets(text, (int)room, f);

	if (f)
		fclose(f);
	if (there)
		text[strcspn(text, "\n")] = '\0';
	else
		*text = '\0';
	return there;
}

bool look_exists(const char *path)
{
	char full[512];

	return access(look_path(path, full, sizeof(full)), F_OK) == 0;
}

bool look_number(const char *path, const char *key, uint64_t *value)
{
	char full[512], line[512];
	FILE *f = fopen(look_path(path, full, sizeof(full)), "re");
	size_t n = strlen(key);
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		found = !strncmp(line, key, n);
		if (found)
			*value = strtoull(line + n + strspn(line + n, ": \t"), NULL, 10);
	}
	if (f)
		fclose(f);
	return found;
}

/* ---- the report ---- */

static const char *const verdicts[] = { "ok", "note", "warn", "FAIL" };
static const enum tone tones[] = { TONE_GOOD, TONE_PLAIN, TONE_WARN, TONE_BAD };

static void finding_json(const void *row, const struct backend *b)
{
	const struct finding *f = row;
	static const char *const words[] = { "ok", "note", "warn", "fail" };

	json_string("check", f->check);
	json_string("verdict", words[f->verdict]);
	json_string("finding", f->text);
	json_string("mend", *f->mend ? f->mend : NULL);
}

static void write_json(const struct list *findings, const struct options *o)
{
	const struct kind kind = { .json = finding_json };
	const void **row = view_order(&(struct view){ .sort = -1 }, findings, o);

	json_open(stdout, o->pretty);
	json_rows(&kind, row, findings->n, NULL);
	json_close();
	free(row);
}

static void write_text(const struct list *findings, const struct options *o)
{
	for (size_t i = 0; i < findings->n; i++) {
		const struct finding *f = list_row(findings, i);

		printf("%s%-4s%s  %-9s  %s\n", tone_begin(tones[f->verdict], o),
		       verdicts[f->verdict], tone_end(tones[f->verdict], o), f->check, f->text);
		if (*f->mend && !o->oneline)
			printf("                 mend: %s\n", f->mend);
	}
}

enum status cmd_doctor(char **arg, const struct options *o)
{
	struct list findings = { .kind = &finding_kind };
	enum status status = STATUS_OK;

	if (*arg)
		return bad("what is", *arg);
	doctor_module(&findings);
	doctor_access(&findings);
	doctor_memory(&findings);
	(o->json ? write_json : write_text)(&findings, o);
	/* The first failure is the cause of the others, more often than not. */
	for (size_t i = 0; i < findings.n && !status; i++) {
		const struct finding *f = list_row(&findings, i);

		if (f->verdict == VERDICT_FAIL)
			status = f->status ? f->status : STATUS_ERROR;
	}
	list_clear(&findings);
	return status;
}
