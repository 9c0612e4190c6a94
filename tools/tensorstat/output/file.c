// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "output/file.h"

#include <errno.h>
#include <stdbool.h>
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

/* Writes to stdout, or to a file that is not regular: a device or a FIFO is not replaced. */
static enum status write_in_place(const char *path, enum status (*put)(FILE *out, const void *arg),
				  const void *arg)
{
	bool standard = !strcmp(path, "-");
	FILE *out = standard ? stdout : fopen(path, "we");
	enum status status;

	if (!out)
		return file_error(path);
	status = put(out, arg);
	if ((standard ? fflush(out) : fclose(out)) == EOF && !status)
		status = file_error(path);
	return status;
}

static enum status replace(const char *path, mode_t mode,
			   enum status (*put)(FILE *out, const void *arg), const void *arg)
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
	if (!status && (fchmod(fd, mode) < 0 || fflush(out) == EOF || fsync(fd) < 0))
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

enum status file_replace(const char *path, enum status (*put)(FILE *out, const void *arg),
			 const void *arg)
{
	enum status status;
	struct stat st;
	char *target;

	if (!strcmp(path, "-"))
		return write_in_place(path, put, arg);
	if (stat(path, &st) < 0)
		return replace(path, 0644, put, arg);
	if (!S_ISREG(st.st_mode))
		return write_in_place(path, put, arg);
	/* A symbolic link stays one: the file that it names is replaced. */
	target = realpath(path, NULL);
	if (!target)
		return file_error(path);
	status = replace(target, st.st_mode & 0777, put, arg);
	free(target);
	return status;
}
