// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Growing arrays, and the messages of failures. */
#include "rows/list.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool held;
static char held_text[512];

void complain(const char *fmt, ...)
{
	char text[sizeof(held_text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (held)
		memcpy(held_text, text, sizeof(text));
	else
		fprintf(stderr, "tensorstat: %s\n", text);
}

void complain_hold(void)
{
	held = true;
	*held_text = '\0';
}

void complain_release(void)
{
	held = false;
	if (*held_text)
		complain("%s", held_text);
	*held_text = '\0';
}

void *check_alloc(void *p)
{
	if (!p) {
		complain("out of memory");
		exit(STATUS_ERROR);
	}
	return p;
}

void *grow(void *array, size_t n, size_t *cap, size_t size)
{
	if (n == *cap) {
		*cap = *cap ? 2 * *cap : 16;
		array = check_alloc(reallocarray(array, *cap, size));
	}
	memset((char *)array + n * size, 0, size);
	return array;
}

void *list_add(struct list *list)
{
	list->row = grow(list->row, list->n, &list->cap, list->type->size);
	return list_row(list, list->n++);
}

void list_clear(struct list *list)
{
	for (size_t i = 0; list->type->clear && i < list->n; i++)
		list->type->clear(list_row(list, i));
	free(list->row);
	*list = (struct list){ .type = list->type };
}

void list_filter(struct list *list, bool (*wanted)(const void *row, const void *arg),
		 const void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++) {
		void *row = list_row(list, i);

		if (wanted(row, arg))
			memmove(list_row(list, kept++), row, list->type->size);
		else if (list->type->clear)
			list->type->clear(row);
	}
	list->n = kept;
}
