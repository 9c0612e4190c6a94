// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* doctor: runs all checks and prints their findings. */
#include "args.h"
#include "commands/commands.h"
#include "doctor/finding.h"
#include "output/json.h"
#include "output/table.h"

#include <stdlib.h>

static const char *const verdicts[] = { "ok", "note", "warn", "FAIL" };
static const enum tone tones[] = { TONE_GOOD, TONE_PLAIN, TONE_WARN, TONE_BAD };

static void finding_json(const void *row, const char *backend)
{
	const struct finding *f = row;
	static const char *const words[] = { "ok", "note", "warn", "fail" };

	json_string("check", f->check);
	json_string("verdict", words[f->verdict]);
	json_string("finding", f->text);
	/* "mend" is the older name of "fix"; keys are never removed. */
	json_string("fix", *f->fix ? f->fix : NULL);
	json_string("mend", *f->fix ? f->fix : NULL);
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
		if (*f->fix && !o->oneline)
			printf("                 fix: %s\n", f->fix);
	}
}

enum status cmd_doctor(char **arg, const struct options *o)
{
	struct list findings = { .type = &finding_rows };
	enum status status = STATUS_OK;

	if (*arg)
		return usage_error("unexpected argument", *arg);
	doctor_module(&findings);
	doctor_access(&findings);
	doctor_memory(&findings);
	doctor_limits(&findings);
	(o->json ? write_json : write_text)(&findings, o);
	/* The first failure determines the exit status: later ones are often its consequences. */
	for (size_t i = 0; i < findings.n && !status; i++) {
		const struct finding *f = list_row(&findings, i);

		if (f->verdict == VERDICT_FAIL)
			status = f->status ? f->status : STATUS_ERROR;
	}
	list_clear(&findings);
	return status;
}
