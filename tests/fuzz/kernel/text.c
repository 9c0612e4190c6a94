// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The text form of programs: a line for each call, `name argument=number ...`; arguments that are
 * not given are 0. An empty line ends a program, a line that begins with # is a comment.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

void prog_print(FILE *f, const struct prog *prog)
{
	unsigned int i, j;

	for (i = 0; i < prog->nr; i++) {
		const struct call *call = &prog->call[i];
		const struct call_type *type = &call_types[call->type];

		fputs(type->name, f);
		for (j = 0; j < call_args(type); j++) {
			if (call->arg[j] > 9)
				fprintf(f, " %s=%#lx", type->args[j].name, call->arg[j]);
			else if (call->arg[j])
				fprintf(f, " %s=%lu", type->args[j].name, call->arg[j]);
		}
		fputc('\n', f);
	}
	fputc('\n', f);
}

static int arg_named(const struct call_type *type, const char *name)
{
	unsigned int i;

	for (i = 0; i < call_args(type); i++) {
		if (!strcmp(type->args[i].name, name))
			return i;
	}
	return -1;
}

static const char *call_read(char *line, struct call *call)
{
	char *save, *word = strtok_r(line, " \t\n", &save), *value, *end;
	int type = call_named(word), i;

	memset(call, 0, sizeof(*call));
	if (type < 0)
		return "no such call";
	call->type = type;
	while ((word = strtok_r(NULL, " \t\n", &save))) {
		value = strchr(word, '=');
		if (!value)
			return "not argument=number";
		*value++ = 0;
		i = arg_named(&call_types[type], word);
		if (i < 0)
			return "no such argument";
		call->arg[i] = strtoull(value, &end, 0);
		if (*end)
			return "not a number";
	}
	return NULL;
}

/* Returns 1 for a program, 0 at the end of the file, -1 with the reason in @why. */
int prog_read(FILE *f, struct prog *prog, const char **why)
{
	char line[1024];

	prog->nr = 0;
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#')
			continue;
		if (!line[strspn(line, " \t\n")]) {
			if (prog->nr)
				return 1;
			continue;
		}
		*why = prog->nr < CALLS_MAX ? call_read(line, &prog->call[prog->nr]) : "too long";
		if (*why)
			return -1;
		prog->nr++;
	}
	return prog->nr > 0;
}
