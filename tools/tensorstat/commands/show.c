// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* buffer, client, export, user and group show: a filtered list, once or repeatedly. */
#include "args.h"
#include "backend/backend.h"
#include "commands/commands.h"
#include "output/json.h"
#include "output/table.h"

#include <stdlib.h>
#include <string.h>

/* Conditions on a row; a member that is 0 or false is no condition. */
struct filter {
	bool has_id, shared;
	uint64_t id, min_bytes;
	struct element element;
	pid_t pid;
};

struct show {
	const struct kind *kind;
	const struct backend *backend;
	const struct options *o;
	struct filter filter;
	bool (*wanted)(const void *row, const void *filter);
	const char *missing; /* error message for an empty list; NULL: an empty list is no error */
	struct view view;
};

/* ---- filters ---- */

static enum status parse_buffer_filter(char **arg, struct filter *f)
{
	static const char *const words[] = { "dtype", "minsize", "owner", "shared", NULL };

	if (*arg && parse_u64(*arg, &f->id)) {
		f->has_id = true;
		arg++;
	}
	for (; *arg; arg++) {
		const char *word = *arg;

		if (matches(word, "shared")) {
			f->shared = true;
			continue;
		}
		if (!matches(word, "dtype") && !matches(word, "minsize") && !matches(word, "owner"))
			return usage_unknown("unknown filter", word, words);
		if (!*++arg)
			return usage_error("a value is missing after", word);
		if (matches(word, "dtype") && !element_parse(*arg, &f->element))
			return usage_unknown("unknown dtype", *arg, dtype_names());
		if ((matches(word, "minsize") && !parse_size(*arg, &f->min_bytes)) ||
		    (matches(word, "owner") && !parse_pid(*arg, &f->pid)))
			return usage_error(*word == 'm' ? "minsize expects a size, not" :
							  "owner expects a process ID, not",
					   *arg);
	}
	return STATUS_OK;
}

static enum status parse_client_filter(char **arg, struct filter *f)
{
	static const char *const words[] = { "pid", NULL };

	if (!*arg)
		return STATUS_OK;
	if (!matches(*arg, "pid"))
		return usage_unknown("unknown filter", *arg, words);
	if (!arg[1])
		return usage_error("a value is missing after", *arg);
	if (!parse_pid(arg[1], &f->pid))
		return usage_error("pid expects a process ID, not", arg[1]);
	return arg[2] ? usage_error("unexpected argument", arg[2]) : STATUS_OK;
}

static bool element_wanted(const struct element *e, const struct element *wanted)
{
	return !wanted->bits || (e->bits == wanted->bits && e->tag == wanted->tag);
}

static bool buffer_wanted(const void *row, const void *filter)
{
	const struct filter *f = filter;
	const struct buffer *b = row;

	return (!f->has_id || b->id == f->id) && element_wanted(&b->element, &f->element) &&
	       b->bytes >= f->min_bytes && (!f->pid || owned_by(b, f->pid, NULL)) &&
	       (!f->shared || b->shared);
}

static bool client_wanted(const void *row, const void *filter)
{
	const struct filter *f = filter;

	return !f->pid || ((const struct client *)row)->owner.pid == f->pid;
}

/* ---- output ---- */

static void write_json(const struct show *s, const void *const *row, size_t n)
{
	json_open(stdout, s->o->pretty);
	if (s->o->watch) {
		json_enter('{');
		json_u64("time_ms", now_ms());
		json_key(s->kind->name);
	}
	json_rows(s->kind, row, n, s->backend->name);
	if (s->o->watch)
		json_leave('}');
	json_close();
}

static void write_rows(const struct show *s, const struct list *list)
{
	const void **row = view_order(&s->view, list, s->o);

	if (s->o->json) {
		write_json(s, row, list->n);
	} else if (s->o->oneline) {
		lines_print(stdout, &s->view, row, list->n, s->o);
	} else {
		if (!s->o->no_header)
			printf("backend: %s\n", s->backend->name);
		table_print(stdout, &s->view, row, list->n, s->o);
	}
	free(row);
}

static enum status read_list(const struct show *s, struct list *list)
{
	const struct backend *b = s->backend;
	enum status (*read)(struct list * list) = s->kind == &buffer_kind ? b->buffers :
						  s->kind == &client_kind ? b->clients :
						  s->kind == &export_kind ? b->exports :
						  s->kind == &rank_kind	  ? read_ranks :
									    b->payers;

	if (read)
		return read(list);
	complain("the %s backend has no list of %ss", b->name, s->kind->name);
	return STATUS_UNSUPPORTED;
}

static enum status show_once(const struct show *s)
{
	struct list list = { .type = s->kind->rows };
	enum status status = read_list(s, &list);

	if (!status) {
		list_filter(&list, s->wanted, &s->filter);
		if (s->missing && !list.n && !s->o->watch) {
			complain("%s", s->missing);
			status = STATUS_NOT_FOUND;
		} else {
			write_rows(s, &list);
		}
	}
	list_clear(&list);
	return status;
}

static enum status show(struct show *s)
{
	enum status status = view_init(&s->view, s->kind, s->o);

	if (!status)
		status = choose_backend(s->o->backend, &s->backend);
	if (!status)
		status = show_once(s);
	while (!status && s->o->watch) {
		if (fflush(stdout) == EOF)
			return STATUS_ERROR;
		sleep_seconds(s->o->watch);
		if (!s->o->json && !s->o->oneline)
			putchar('\n');
		status = show_once(s);
	}
	return status;
}

enum status cmd_buffer(char **arg, const struct options *o)
{
	struct show s = { .kind = &buffer_kind, .o = o, .wanted = buffer_wanted };
	enum status status = parse_buffer_filter(arg, &s.filter);

	if (s.filter.has_id)
		s.missing = "no visible buffer has that ID";
	return status ? status : show(&s);
}

enum status cmd_client(char **arg, const struct options *o)
{
	struct show s = { .kind = &client_kind, .o = o, .wanted = client_wanted };
	enum status status = parse_client_filter(arg, &s.filter);

	if (s.filter.pid)
		s.missing = "no visible client has that process ID";
	return status ? status : show(&s);
}

static bool export_wanted(const void *row, const void *filter)
{
	const struct filter *f = filter;
	const struct export *e = row;

	return (!f->has_id || e->buffer == f->id) && (!f->pid || e->owner.pid == f->pid);
}

enum status cmd_export(char **arg, const struct options *o)
{
	static const char *const words[] = { "buffer", "owner", NULL };
	struct show s = { .kind = &export_kind, .o = o, .wanted = export_wanted };

	for (; *arg; arg += 2) {
		bool buffer = matches(*arg, "buffer");

		if (!buffer && !matches(*arg, "owner"))
			return usage_unknown("unknown filter", *arg, words);
		if (!arg[1])
			return usage_error("a value is missing after", *arg);
		s.filter.has_id |= buffer;
		if (!(buffer ? parse_u64(arg[1], &s.filter.id) : parse_pid(arg[1], &s.filter.pid)))
			return usage_error(buffer ? "buffer expects an ID, not" :
						    "owner expects a process ID, not",
					   arg[1]);
	}
	return show(&s);
}

static bool any_wanted(const void *row, const void *filter)
{
	return true;
}

enum status cmd_user(char **arg, const struct options *o)
{
	struct show s = { .kind = &payer_kind, .o = o, .wanted = any_wanted };

	return *arg ? usage_error("unexpected argument", *arg) : show(&s);
}

static bool rank_wanted(const void *row, const void *filter)
{
	const struct filter *f = filter;
	const struct rank *r = row;

	return (!f->has_id || r->group == f->id) && (!f->pid || r->owner.pid == f->pid);
}

enum status cmd_group(char **arg, const struct options *o)
{
	struct show s = { .kind = &rank_kind, .o = o, .wanted = rank_wanted };

	if (*arg && parse_u64(*arg, &s.filter.id)) {
		s.filter.has_id = true;
		s.missing = "no visible group has that ID";
		arg++;
	}
	if (!*arg)
		return show(&s);
	if (!matches(*arg, "owner"))
		return usage_unknown("unknown filter", *arg,
				     (const char *const[]){ "owner", NULL });
	if (!arg[1])
		return usage_error("a value is missing after", *arg);
	if (!parse_pid(arg[1], &s.filter.pid))
		return usage_error("owner expects a process ID, not", arg[1]);
	return arg[2] ? usage_error("unexpected argument", arg[2]) : show(&s);
}
