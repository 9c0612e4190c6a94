/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Keys from the bytes that a terminal sends. */
#ifndef TENSORSTAT_KEYS_H
#define TENSORSTAT_KEYS_H

enum key {
	KEY_CLOSED = -1, /* the terminal is gone */
	KEY_NONE = 0,	 /* timeout, or the window has changed */
	KEY_ESCAPE = 27,
	KEY_ERASE = 127,
	/* Values below 256 are bytes. */
	KEY_UP = 256,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_OTHER, /* a sequence without a meaning here */
};

/* Waits for a key, at most that many seconds. */
int key_read(double seconds);

#endif
