// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formatting of numbers, sizes, times and owners for tables. */
#include "output/cell.h"

#include <inttypes.h>
#include <string.h>

const char *tone_begin(enum tone tone, const struct options *o)
{
	static const char *const sequence[] = { "", "\033[1m", "\033[32m", "\033[33m", "\033[31m" };

	return o->color ? sequence[tone] : "";
}

const char *tone_end(enum tone tone, const struct options *o)
{
	return o->color && tone != TONE_PLAIN ? "\033[0m" : "";
}

void put_size(char *text, size_t room, uint64_t bytes, const struct options *o)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	int unit = 0;

	if (o->raw) {
		snprintf(text, room, "%" PRIu64, bytes);
		return;
	}
	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(text, room, value == (double)(uint64_t)value ? "%.0f%s" : "%.1f%s", value,
		 units[unit]);
}

void put_rights(char *text, size_t room, uint32_t rights)
{
	size_t at = 0;

	snprintf(text, room, "-");
	for (int i = 0; right_names[i] && at < room; i++)
		if (rights & 1U << i)
			at += snprintf(text + at, room - at, "%s%s", at ? "," : "", right_names[i]);
}

void cell_by(struct cell *cell, uint64_t key)
{
	cell->key = key;
	cell->by_key = true;
}

void cell_text(struct cell *cell, const char *value)
{
	snprintf(cell->text, CELL, "%s", *value ? value : "-");
}

void cell_number(struct cell *cell, int64_t value)
{
	if (value == UNKNOWN)
		cell_text(cell, "-");
	else
		snprintf(cell->text, CELL, "%" PRId64, value);
	cell_by(cell, value == UNKNOWN ? 0 : (uint64_t)value);
}

void cell_size(struct cell *cell, int64_t bytes, const struct options *o)
{
	if (bytes == UNKNOWN)
		cell_text(cell, "-");
	else
		put_size(cell->text, CELL, (uint64_t)bytes, o);
	cell_by(cell, bytes == UNKNOWN ? 0 : (uint64_t)bytes);
}

void cell_age(struct cell *cell, int64_t ns)
{
	int64_t s = ns / 1000000000;

	cell_by(cell, ns == UNKNOWN ? 0 : (uint64_t)ns);
	if (ns == UNKNOWN)
		cell_text(cell, "-");
	else if (s < 60)
		snprintf(cell->text, CELL, "%" PRId64 "s", s);
	else if (s < 3600)
		snprintf(cell->text, CELL, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(cell->text, CELL, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(cell->text, CELL, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
}

size_t put_owner(char *to, size_t room, const struct owner *w, const struct options *o)
{
	int n = o->numeric || !*w->comm ? snprintf(to, room, "%d", w->pid) :
					  snprintf(to, room, "%d/%s", w->pid, w->comm);

	return (size_t)n < room ? (size_t)n : room - 1;
}

void cell_owner(struct cell *cell, const struct owner *w, const struct options *o)
{
	put_owner(cell->text, CELL, w, o);
	cell_by(cell, (uint64_t)w->pid);
}

void cell_put(struct cell *cell, const struct column *c, const void *row, const struct options *o)
{
	const void *member = (const char *)row + c->offset;
	int64_t number;

	if (c->put) {
		c->put(cell, row, o);
		return;
	}
	if (c->format == FORMAT_OWNER) {
		cell_owner(cell, member, o);
		return;
	}
	number = c->bytes == sizeof(uint32_t) ? *(const uint32_t *)member :
						*(const int64_t *)member;
	if (c->format == FORMAT_SIZE)
		cell_size(cell, number, o);
	else if (c->format == FORMAT_AGE)
		cell_age(cell, number);
	else
		cell_number(cell, number);
}
