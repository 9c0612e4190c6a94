/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The place in the program that called the library, for messages about misuse. */
#ifndef TENSOR_CALL_PLACE_H
#define TENSOR_CALL_PLACE_H

#include <stddef.h>

struct call_place {
	const char *function; /* function of the library that the program called; "?" if unknown */
	const void *at; /* address in the program, within the call instruction; NULL if unknown */
};

/* The place of the calling thread's current call. Takes microseconds. */
struct call_place call_place(void);
/*
 * "train.c:12" into buf, if addr2line is installed and the program has debug information, otherwise
 * "./train+0x11ef" or "?"; returns buf. Starts a process.
 */
const char *call_place_text(const void *at, char *buf, size_t size);

#endif
