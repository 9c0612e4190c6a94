// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Checks of texts that the program or a file gives. */
#include "base/text.h"

#include <stdint.h>
#include <string.h>

bool text_is_utf8(const char *s, size_t n)
{
	static const uint32_t first[] = { 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)s;

	for (size_t i = 0; i < n;) {
		int more = p[i] < 0x80 ? 0 : p[i] >= 0xf0 ? 3 : p[i] >= 0xe0 ? 2 : 1;
		uint32_t c = more ? p[i] & (0x3f >> more) : p[i];

		if (!p[i] || (p[i] >= 0x80 && p[i] < 0xc0) || p[i] >= 0xf8 || n - i <= (size_t)more)
			return false;
		for (int k = 1; k <= more; k++) {
			if ((p[i + k] & 0xc0) != 0x80)
				return false;
			c = c << 6 | (p[i + k] & 0x3f);
		}
		if (c < first[more] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
			return false;
		i += 1 + more;
	}
	return true;
}

bool text_is_name(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i], next = (unsigned char)s[i + 1];

		if (c < ' ' || c == 0x7f || c == '"' || c == '\\' || (c == 0xc2 && next < 0xa0))
			return false;
	}
	return text_is_utf8(s, n);
}
