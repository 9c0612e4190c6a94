// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "output/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status file_error(const char *path)
{
	enum status status = errno == EACCES || errno == EPERM ? STATUS_PERMISSION : STATUS_ERROR;

	complain("%s: %s", path, strerror(errno));
	return status;
}

enum status file_replace(const char *path, enum status (*put)(FILE *out, const void *arg),
			 const void *arg)
{
	char *temporary;
	enum status status;
	FILE *out;
	int fd;

	/* The name does not end in .prom, so that the collector of node_exporter ignores it. */
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return STATUS_ERROR;
	fd = mkstemp(temporary);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		status = file_error(temporary);
		free(temporary);
		return status;
	}
	status = put(out, arg);
	if (!status && (fchmod(fd, 0644) < 0 || fflush(out) == EOF || fsync(fd) < 0))
		status = file_error(temporary);
	if (fclose(out) == EOF && !status)
		status = file_error(temporary);
	if (!status && rename(temporary, path) < 0)
		status = file_error(path);
	if (status)
		unlink(temporary);
	free(temporary);
	return status;
}
