// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Keys from the bytes that a terminal sends. The sequences are those of ECMA-48 terminals: xterm,
 * the Linux console, rxvt, screen and tmux.
 */
#include "top/keys.h"

#include "top/screen.h"

#include <string.h>

/* After this pause an escape is the key, and not the begin of a sequence. */
#define ESCAPE_SECONDS 0.05

static unsigned char waiting[64];
static int at, n;

/* Returns the next byte; KEY_NONE or KEY_CLOSED if there is none. */
static int next_byte(double seconds)
{
	if (at == n) {
		at = 0;
		n = screen_read(waiting, sizeof(waiting), seconds);
		if (n <= 0) {
			int none = n;

			n = 0;
			return none;
		}
	}
	return waiting[at++];
}

static int letter_key(int byte)
{
	static const char letters[] = "ABCDHF";
	static const int keys[] = { KEY_UP, KEY_DOWN, KEY_RIGHT, KEY_LEFT, KEY_HOME, KEY_END };
	const char *found = byte > 0 ? strchr(letters, byte) : NULL;

	return found ? keys[found - letters] : KEY_OTHER;
}

/* "5~": the number before the tilde. */
static int number_key(int number)
{
	switch (number) {
	case 1:
	case 7:
		return KEY_HOME;
	case 4:
	case 8:
		return KEY_END;
	case 5:
		return KEY_PAGE_UP;
	case 6:
		return KEY_PAGE_DOWN;
	default:
		return KEY_OTHER;
	}
}

/* After ESC [: parameters, then a final byte from 0x40 to 0x7e. */
static int control_sequence(void)
{
	int number = 0, byte;
	bool first = true;

	while ((byte = next_byte(ESCAPE_SECONDS)) > 0 && byte < 0x40) {
		first &= byte >= '0' && byte <= '9';
		if (first && number < 100)
			number = number * 10 + byte - '0';
	}
	if (byte <= 0)
		return KEY_OTHER;
	return byte == '~' ? number_key(number) : letter_key(byte);
}

int key_read(double seconds)
{
	int byte = next_byte(seconds);

	if (byte == '\b')
		return KEY_ERASE;
	if (byte != KEY_ESCAPE)
		return byte;
	byte = next_byte(ESCAPE_SECONDS);
	if (byte <= 0)
		return KEY_ESCAPE;
	if (byte == '[')
		return control_sequence();
	return byte == 'O' ? letter_key(next_byte(ESCAPE_SECONDS)) : KEY_OTHER;
}
