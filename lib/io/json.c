// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Parse and quote JSON (RFC 8259). See json.h. */
#include "io/json.h"

#include "base/text.h"

#include <string.h>

static void skip_space(struct json *j)
{
	while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\t' || *j->p == '\r'))
		j->p++;
}

bool json_at_end(struct json *j)
{
	skip_space(j);
	return j->p == j->end;
}

bool json_take(struct json *j, char c)
{
	skip_space(j);
	if (j->p == j->end || *j->p != c)
		return false;
	j->p++;
	return true;
}

bool json_number(struct json *j, int64_t *value)
{
	const char *first;

	skip_space(j);
	first = j->p;
	for (*value = 0; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, *j->p - '0', value))
			return false;
	return j->p > first && (*first != '0' || j->p == first + 1);
}

static bool hex4(struct json *j, uint32_t *value)
{
	if (j->end - j->p < 4)
		return false;
	*value = 0;
	for (int i = 0; i < 4; i++) {
		char c = *j->p++, lower = c | 0x20;

		if (c >= '0' && c <= '9')
			*value = *value << 4 | (uint32_t)(c - '0');
		else if (lower >= 'a' && lower <= 'f')
			*value = *value << 4 | (uint32_t)(lower - 'a' + 10);
		else
			return false;
	}
	return true;
}

static char *put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (c & 0x3f));
	return to;
}

/* Decode the UTF-16 unit, or surrogate pair, after \u. */
static bool escaped_unit(struct json *j, char **to)
{
	uint32_t c, low;

	if (!hex4(j, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00) {
		if (j->end - j->p < 2 || *j->p++ != '\\' || *j->p++ != 'u' || !hex4(j, &low) ||
		    low < 0xdc00 || low >= 0xe000)
			return false;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if (c >= 0xdc00 && c < 0xe000) {
		return false;
	}
	*to = put_utf8(*to, c);
	return c != 0;
}

static bool escape(struct json *j, char **to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (j->p == j->end || !*j->p)
		return false;
	if (*j->p == 'u') {
		j->p++;
		return escaped_unit(j, to);
	}
	at = strchr(from, *j->p++);
	if (!at)
		return false;
	*(*to)++ = into[at - from];
	return true;
}

/* Decoded text is never longer than its encoding, so it is written in place. */
bool json_string(struct json *j, char **text)
{
	char *to;

	if (!json_take(j, '"'))
		return false;
	*text = to = j->p;
	while (j->p < j->end && *j->p != '"') {
		if ((unsigned char)*j->p < ' ')
			return false;
		if (*j->p != '\\') {
			*to++ = *j->p++;
			continue;
		}
		j->p++;
		if (!escape(j, &to))
			return false;
	}
	if (j->p == j->end)
		return false;
	j->p++;
	*to = '\0';
	return text_is_utf8(*text, (size_t)(to - *text));
}

/* Append c to `to`, or only count it if `to` is NULL. */
static void append(char *to, size_t *n, char c)
{
	if (to)
		to[*n] = c;
	++*n;
}

size_t json_quote(char *to, const char *text)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	append(to, &n, '"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= ' ') {
			if (c == '"' || c == '\\')
				append(to, &n, '\\');
			append(to, &n, (char)c);
			continue;
		}
		for (const char *p = "\\u00"; *p; p++)
			append(to, &n, *p);
		append(to, &n, digits[c >> 4]);
		append(to, &n, digits[c & 15]);
	}
	append(to, &n, '"');
	return n;
}
