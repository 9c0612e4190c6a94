// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * device show|set: the totals and the parameters of the loaded module. Parameters are files in
 * sysfs; a value in bytes may have a unit.
 */
#include "args.h"
#include "backend/backend.h"
#include "commands/commands.h"
#include "output/json.h"
#include "output/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARAMETERS "/sys/module/tensor/parameters"

struct parameter {
	char name[64], value[64];
};

static const struct row_type parameter_rows = { "parameter", sizeof(struct parameter), NULL };

static bool read_value(const char *name, char *value, size_t room)
{
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), PARAMETERS "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, value, room - 1);
	close(fd);
	value[n > 0 ? n : 0] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return n >= 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct parameter *)a)->name, ((const struct parameter *)b)->name);
}

static void read_parameters(struct list *list)
{
	DIR *dir = opendir(PARAMETERS);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		struct parameter p = { 0 };
		size_t length = strlen(e->d_name);

		if (*e->d_name == '.' || length >= sizeof(p.name))
			continue;
		memcpy(p.name, e->d_name, length);
		if (read_value(p.name, p.value, sizeof(p.value)))
			*(struct parameter *)list_add(list) = p;
	}
	if (dir)
		closedir(dir);
	if (list->n)
		qsort(list->row, list->n, list->type->size, by_name);
}

/* ---- show ---- */

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")] && strlen(text) < 19;
}

static void show_json(const struct totals *t, const struct list *list, const struct backend *b,
		      const struct options *o)
{
	json_open(stdout, o->pretty);
	json_enter('[');
	json_item();
	json_enter('{');
	totals_json(t, b->name);
	json_key("parameters");
	json_enter('{');
	for (size_t i = 0; i < list->n; i++) {
		const struct parameter *p = list_row(list, i);

		if (is_number(p->value))
			json_u64(p->name, strtoull(p->value, NULL, 10));
		else
			json_string(p->name, p->value);
	}
	json_leave('}');
	json_leave('}');
	json_leave(']');
	json_close();
}

static void put_parameter(const struct parameter *p, const struct options *o)
{
	size_t len = strlen(p->name);
	char text[CELL];

	if (len > 6 && !strcmp(p->name + len - 6, "_bytes") && is_number(p->value))
		put_size(text, sizeof(text), strtoull(p->value, NULL, 10), o);
	else
		snprintf(text, sizeof(text), "%s", p->value);
	printf(o->oneline ? " %s %s" : "%-24s  %s\n", p->name, text);
}

static void show_line(const struct totals *t, const struct list *list, const struct view *v,
		      const struct backend *b, const struct options *o)
{
	printf("backend %s", b->name);
	for (int i = 0; i < v->n; i++) {
		const struct column *c = &v->kind->columns[v->column[i]];
		struct cell cell = { 0 };

		cell_put(&cell, c, t, o);
		printf(" %s %s", c->name, cell.text);
	}
	for (size_t i = 0; i < list->n; i++)
		put_parameter(list_row(list, i), o);
	putchar('\n');
}

static void show_text(const struct totals *t, const struct list *list, const struct view *v,
		      const struct backend *b, const struct options *o)
{
	const void *row = t;

	if (!o->no_header)
		printf("backend: %s\n", b->name);
	table_print(stdout, v, &row, 1, o);
	if (list->n && !o->no_header)
		printf("\n%s%-24s  %s%s\n", tone_begin(TONE_HEAD, o), "PARAMETER", "VALUE",
		       tone_end(TONE_HEAD, o));
	for (size_t i = 0; i < list->n; i++)
		put_parameter(list_row(list, i), o);
}

static enum status device_show(char **arg, const struct options *o)
{
	struct list list = { .type = &parameter_rows };
	const struct backend *b;
	struct totals t = { 0 };
	struct view v;
	enum status status;

	if (*arg)
		return usage_error("unexpected argument", *arg);
	status = view_init(&v, &totals_kind, o);
	if (!status)
		status = choose_backend(o->backend, &b);
	if (!status)
		status = b->totals(&t);
	if (status)
		return status;
	if (b == &device_backend)
		read_parameters(&list);
	if (o->json)
		show_json(&t, &list, b, o);
	else
		(o->oneline ? show_line : show_text)(&t, &list, &v, b, o);
	list_clear(&list);
	return STATUS_OK;
}

/* ---- set ---- */

static enum status unknown_parameter(const char *name)
{
	struct list list = { .type = &parameter_rows };
	const char **names;
	enum status status;

	read_parameters(&list);
	names = check_alloc(calloc(list.n + 1, sizeof(*names)));
	for (size_t i = 0; i < list.n; i++)
		names[i] = ((struct parameter *)list_row(&list, i))->name;
	status = usage_unknown("the module has no parameter", name, names);
	free(names);
	list_clear(&list);
	return status;
}

static enum status set_one(const char *name, const char *value)
{
	char path[128], number[32], old[64];
	uint64_t bytes;
	int fd;
	ssize_t n;

	if (strchr(name, '/') || *name == '.' || strlen(name) > 60 ||
	    !read_value(name, old, sizeof(old)))
		return unknown_parameter(name);
	/* A unit is valid only for a parameter that is a number. */
	if (is_number(old) && parse_size(value, &bytes)) {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)bytes);
		value = number;
	}
	snprintf(path, sizeof(path), PARAMETERS "/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : write(fd, value, strlen(value));
	if (n >= 0) {
		close(fd);
		return STATUS_OK;
	}
	if (errno == EACCES || errno == EPERM) {
		complain("%s: only root can set parameters, and some are read-only", name);
		n = STATUS_PERMISSION;
	} else {
		complain("%s \"%s\": %s", name, value, strerror(errno));
		n = errno == EINVAL || errno == ERANGE ? STATUS_USAGE : STATUS_ERROR;
	}
	if (fd >= 0)
		close(fd);
	return (enum status)n;
}

static enum status device_set(char **arg, const struct options *o)
{
	enum status status;

	if (!*arg)
		return usage_error("set expects NAME VALUE, not", "");
	if (access("/sys/module/tensor", F_OK) < 0) {
		complain("the tensor module is not loaded");
		return STATUS_NO_MODULE;
	}
	for (; *arg; arg += 2) {
		if (!arg[1])
			return usage_error("a value is missing after", *arg);
		status = set_one(arg[0], arg[1]);
		if (status)
			return status;
	}
	return STATUS_OK;
}

enum status cmd_device(char **arg, const struct options *o)
{
	if (*arg && matches(*arg, "set"))
		return device_set(arg + 1, o);
	return device_show(*arg ? arg + 1 : arg, o);
}
