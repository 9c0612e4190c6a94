// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Text of other processes is made safe to print before it is stored in a row. */
#include "rows/text.h"

#include "lib/storage/descriptor.h"

#include <locale.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

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

size_t char_bytes(const char *s)
{
	size_t n = 1;

	while ((s[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* wcwidth() depends on the locale; the table of C.UTF-8 has all characters. */
static int code_width(wchar_t c)
{
	static locale_t utf8;
	locale_t before;
	int width;

	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!utf8)
		return 1;
	before = uselocale(utf8);
	width = wcwidth(c);
	uselocale(before);
	return width < 0 ? 1 : width;
}

int char_width(const char *s)
{
	size_t n = char_bytes(s);
	wchar_t c;

	if (n == 1)
		return 1;
	c = (unsigned char)*s & (0xff >> (n + 1));
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return code_width(c);
}

int text_width(const char *s)
{
	int width = 0;

	for (; *s; s += char_bytes(s))
		width += char_width(s);
	return width;
}

bool text_contains(const char *text, const char *words)
{
	size_t n = strlen(words);

	for (; *text; text++)
		if (!strncasecmp(text, words, n))
			return true;
	return !n;
}
