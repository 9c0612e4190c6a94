// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "output/file.h"

#include <errno.h>
#include <signal.h>
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

/* ---- a signal that ends the program while the temporary file exists ---- */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ };
static char *volatile unfinished; /* the temporary file, or NULL */

static void remove_unfinished(int sig)
{
	if (unfinished)
		unlink(unfinished);
	/* The action is the default one again, and the signal is not blocked. */
	raise(sig);
}

static void handle_signals(void)
{
	struct sigaction action = { .sa_handler = remove_unfinished,
				    .sa_flags = (int)SA_RESETHAND | SA_NODEFER };
	struct sigaction before;

	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
		if (!sigaction(ending[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
}

/* As mkstemp(). No signal arrives between the creation and the record of the name. */
static int make_temporary(char *temporary)
{
	sigset_t all, before;
	int fd, error;

	handle_signals();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	fd = mkstemp(temporary);
	error = errno;
	unfinished = fd < 0 ? NULL : temporary;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return fd;
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
	fd = make_temporary(temporary);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		status = file_error(temporary);
		if (fd >= 0)
			unlink(temporary);
		unfinished = NULL;
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
	unfinished = NULL;
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
