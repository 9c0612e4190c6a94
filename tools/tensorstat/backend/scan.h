/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Memfds of other processes, found through the descriptors of every process that the caller may inspect. */
#ifndef TENSORSTAT_SCAN_H
#define TENSORSTAT_SCAN_H

#include "rows/rows.h"

/*
 * Calls found() for each descriptor whose link has this text, "/memfd:NAME (deleted)": name is in the folder dir. All
 * descriptors of a process come one after the other.
 */
enum status scan_memfds(const char *link,
			void (*found)(void *ctx, int dir, const char *name,
				      const struct owner *who),
			void *ctx);
/* Opens such a descriptor's file for reading; -1. */
int open_memfd(int dir, const char *name, const char *link);

#endif
