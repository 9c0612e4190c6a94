/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Files that are replaced as a whole. */
#ifndef TENSORSTAT_FILE_H
#define TENSORSTAT_FILE_H

#include "tensorstat.h"

/*
 * Calls put(out, arg) with a temporary file beside path, and renames it over path if put()
 * succeeds: readers see the old content or the new. Everybody may read the file.
 */
enum status file_replace(const char *path, enum status (*put)(FILE *out, const void *arg),
			 const void *arg);

#endif
