// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The actions of the keys of top. */
#include "rows/text.h"
#include "top/keys.h"
#include "top/top.h"

#include <string.h>

#define SHIFT_STEP 8
#define SHIFT_MAX  200

/* ---- scrolling ---- */

/* Moves the window by n rows; top_draw() limits it to the rows that exist. */
static void scroll(size_t *first, long n)
{
	if (n < 0 && (size_t)-n > *first)
		*first = 0;
	else
		*first += (size_t)n;
}

static bool scroll_key(struct top *t, size_t *first, int key)
{
	long page = t->room > 1 ? (long)t->room - 1 : 1;

	switch (key) {
	case KEY_UP:
	case 'k':
		scroll(first, -1);
		return true;
	case KEY_DOWN:
	case 'j':
		scroll(first, 1);
		return true;
	case KEY_PAGE_UP:
		scroll(first, -page);
		return true;
	case KEY_PAGE_DOWN:
		scroll(first, page);
		return true;
	case KEY_HOME:
	case 'g':
		*first = 0;
		return true;
	case KEY_END:
	case 'G':
		*first = t->now.n + top_help_lines();
		return true;
	}
	return false;
}

static void shift(struct top *t, int columns)
{
	t->shift += columns;
	t->shift = t->shift < 0 ? 0 : t->shift > SHIFT_MAX ? SHIFT_MAX : t->shift;
}

/* ---- sort order ---- */

static void set_mode(struct top *t, enum top_mode mode)
{
	t->mode = mode;
	t->sort = -1;
	t->reverse = false;
	t->first = 0;
	t->shift = 0;
	top_arrange(t);
}

/* Sorts by column number i of those that are shown. */
static void sort_by(struct top *t, const struct view *v, int i)
{
	if (i >= v->n)
		return;
	t->sort = v->column[i];
	t->reverse = false;
	t->first = 0;
	top_arrange(t);
}

static void sort_by_next(struct top *t, int step)
{
	struct view v;
	int i = 0;

	top_view(t, &v);
	while (i < v.n && v.column[i] != v.sort)
		i++;
	sort_by(t, &v, (i + step + v.n) % v.n);
}

static void sort_by_number(struct top *t, int i)
{
	struct view v;

	top_view(t, &v);
	sort_by(t, &v, i);
}

/* ---- filters ---- */

static void open_prompt(struct top *t, enum top_prompt prompt)
{
	t->prompt = prompt;
	copy_text(t->typed, sizeof(t->typed), prompt == PROMPT_TEXT ? t->text : t->owner);
}

static void erase_character(char *text)
{
	size_t n = strlen(text);

	while (n && (text[n - 1] & 0xc0) == 0x80)
		n--;
	text[n ? n - 1 : 0] = '\0';
}

static void accept_prompt(struct top *t)
{
	/* The bytes come one by one: check the UTF-8 now that they are complete. */
	copy_text(t->prompt == PROMPT_TEXT ? t->text : t->owner, FILTER_MAX, t->typed);
	t->prompt = PROMPT_NONE;
	t->first = 0;
	top_arrange(t);
}

static void prompt_key(struct top *t, int key)
{
	size_t n = strlen(t->typed);

	if (key == '\n' || key == '\r')
		accept_prompt(t);
	else if (key == KEY_ESCAPE)
		t->prompt = PROMPT_NONE;
	else if (key == KEY_ERASE)
		erase_character(t->typed);
	else if (key == 'U' - '@')
		*t->typed = '\0';
	else if (key >= ' ' && key < 256 && n + 1 < FILTER_MAX) {
		t->typed[n] = (char)key;
		t->typed[n + 1] = '\0';
	}
}

static void clear_filters(struct top *t)
{
	*t->text = *t->owner = '\0';
	top_arrange(t);
}

/* ---- all keys ---- */

static void help_key(struct top *t, int key)
{
	if (!scroll_key(t, &t->help_first, key))
		t->help = false;
}

static void change_delay(struct top *t, double factor)
{
	t->delay *= factor;
	t->delay = t->delay < 0.1 ? 0.1 : t->delay > 3600 ? 3600 : t->delay;
}

static void view_key(struct top *t, int key)
{
	if (scroll_key(t, &t->first, key))
		return;
	if (key >= '1' && key <= '9') {
		sort_by_number(t, key - '1');
		return;
	}
	switch (key) {
	case KEY_LEFT:
		shift(t, -SHIFT_STEP);
		break;
	case KEY_RIGHT:
		shift(t, SHIFT_STEP);
		break;
	case 'b':
		set_mode(t, MODE_BUFFER);
		break;
	case 'p':
		set_mode(t, MODE_PROCESS);
		break;
	case 'u':
		set_mode(t, MODE_USER);
		break;
	case 's':
		sort_by_next(t, 1);
		break;
	case 'S':
		sort_by_next(t, -1);
		break;
	case 'r':
		t->reverse = !t->reverse;
		top_arrange(t);
		break;
	case '/':
		open_prompt(t, PROMPT_TEXT);
		break;
	case 'o':
		open_prompt(t, PROMPT_OWNER);
		break;
	case KEY_ESCAPE:
		clear_filters(t);
		break;
	case ' ':
		t->paused = !t->paused;
		break;
	case '+':
		change_delay(t, 0.5);
		break;
	case '-':
		change_delay(t, 2);
		break;
	case '?':
	case 'h':
		t->help = true;
		t->help_first = 0;
		break;
	}
}

bool top_key(struct top *t, int key)
{
	if (key == KEY_CLOSED)
		return false;
	if (key == KEY_NONE)
		return true;
	if (t->prompt)
		prompt_key(t, key);
	else if (t->help)
		help_key(t, key);
	else if (key == 'q')
		return false;
	else
		view_key(t, key);
	return true;
}
