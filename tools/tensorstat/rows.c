// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Rows: lists that grow, names of dtypes, and text of strangers. */
#include "tensorstat.h"

#include "../../lib/storage/descriptor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void complain(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("tensorstat: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

/* One more zeroed element in a list of n; the program has nothing to do without memory. */
static void *grow(void *list, size_t n, size_t *cap, size_t size)
{
	if (n == *cap) {
		*cap = *cap ? 2 * *cap : 16;
		list = reallocarray(list, *cap, size);
		if (!list) {
			complain("out of memory");
			exit(STATUS_ERROR);
		}
	}
	memset((char *)list + n * size, 0, size);
	return list;
}

struct buffer *buffers_add(struct buffers *list)
{
	list->row = grow(list->row, list->n, &list->cap, sizeof(*list->row));
	return &list->row[list->n++];
}

struct client *clients_add(struct clients *list)
{
	list->row = grow(list->row, list->n, &list->cap, sizeof(*list->row));
	return &list->row[list->n++];
}

struct owner *owners_add(struct buffer *b)
{
	b->owners = grow(b->owners, b->n_owners, &b->cap_owners, sizeof(*b->owners));
	return &b->owners[b->n_owners++];
}

void buffers_clear(struct buffers *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->row[i].owners);
	free(list->row);
	*list = (struct buffers){0};
}

void clients_clear(struct clients *list)
{
	free(list->row);
	*list = (struct clients){0};
}

/* ---- dtypes -------------------------------------------------------------------------------------- */

static const char *const dtypes[TENSOR_DTYPE_COUNT] = {
	"-", "bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128",
};

const char *dtype_name(uint32_t dtype)
{
	return dtype < TENSOR_DTYPE_COUNT ? dtypes[dtype] : "?";
}

uint32_t dtype_by_name(const char *name)
{
	for (uint32_t d = 1; d < TENSOR_DTYPE_COUNT; d++)
		if (!strcmp(name, dtypes[d]))
			return d;
	return 0;
}

/* ---- text ---------------------------------------------------------------------------------------- */

void copy_text(char *to, size_t size, const char *from)
{
	size_t at = 0, n;

	while (*from) {
		n = label_char((const unsigned char *)from);
		if (at + (n ? n : 1) >= size)
			break;
		if (n)
			memcpy(to + at, from, n);
		else
			to[at] = '?';
		at += n ? n : 1;
		from += n ? n : 1;
	}
	to[at] = '\0';
}
