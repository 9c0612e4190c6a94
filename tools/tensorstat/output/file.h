/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Files that are replaced as a whole. */
#ifndef TENSORSTAT_FILE_H
#define TENSORSTAT_FILE_H

#include "tensorstat.h"

/*
 * Calls put(out, arg) with a temporary file beside path, and renames it over path if put()
 * succeeds: readers see the old content or the new. A file keeps its mode, a new one has 0644. A
 * symbolic link stays one. A signal that ends the program removes the temporary file. "-" is stdout; a device or a FIFO is written, not replaced.
 */
enum status file_replace(const char *path, enum status (*put)(FILE *out, const void *arg),
			 const void *arg);

#endif
