/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Types that every part of tensorstat uses. The folders, lowest layer first:
 *
 *	rows/		lists of buffers, clients, exports and totals; element types; text
 *	backend/	fill these lists: from the module over netlink, or from /proc
 *	output/		columns, tables and JSON of these lists
 *	doctor/ top/ plot/	parts of the larger commands
 *	commands/	a file for each command
 *	main.c		options, and the choice of the command
 */
#ifndef TENSORSTAT_H
#define TENSORSTAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit status, as in tensorstat(1). */
enum status {
	STATUS_OK = 0,
	STATUS_ERROR = 1,
	STATUS_USAGE = 2,
	STATUS_UNSUPPORTED = 3,
	STATUS_PERMISSION = 4,
	STATUS_NOT_FOUND = 6,
	STATUS_NO_MODULE = 9,
	STATUS_INCONSISTENT = 100,
};

struct options {
	bool json, pretty, oneline, no_header, raw, numeric, color;
	const char *fields;   /* names separated by commas, or NULL */
	const char *sort;     /* NAME, NAME:asc or NAME:desc, or NULL */
	const char *backend;  /* NULL: the module if it is loaded, else memfd */
	const char *textfile; /* for metrics; NULL: standard output */
	double watch;	      /* seconds between two reads; 0: read once */
};

/* Prints "tensorstat: MESSAGE" on stderr. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * While a full-screen program owns the terminal, the last message is kept instead of printed.
 * complain_release() prints it.
 */
void complain_hold(void);
void complain_release(void);
/* Returns p, or ends the program if p is NULL: no command can continue without memory. */
void *check_alloc(void *p);

#endif
