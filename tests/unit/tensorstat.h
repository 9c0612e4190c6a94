/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers that execute tensorstat and examine its output. */
#ifndef TEST_TENSORSTAT_H
#define TEST_TENSORSTAT_H

#include "check.h"

#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char tool[PATH_MAX]; /* build/bin/tensorstat, or the file beside this program */
static char out[4 << 20];

/* Returns the exit status, or 128 + signal; the output is in `out`. args may contain one %d, for this process. */
__attribute__((unused)) static int tensorstat_run(const char *args)
{
	char command[2 * PATH_MAX], text[512];
	FILE *f;
	size_t n;
	int status;

	snprintf(text, sizeof(text), args, getpid());
	snprintf(command, sizeof(command), "%s %s 2>&1", tool, text);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = '\0';
	status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define assert_says(words)                                                      \
	do {                                                                    \
		if (!strstr(out, words)) {                                      \
			fprintf(stderr, "\"%s\" is not in:\n%s\n", words, out); \
			fail();                                                 \
		}                                                               \
	} while (0)
#define assert_silent_about(words) assert_null(strstr(out, words))

/* The number of times that `out` contains `words`. */
__attribute__((unused)) static int count(const char *words)
{
	int n = 0;

	for (const char *p = out; (p = strstr(p, words)); p++)
		n++;
	return n;
}

/* Starts the tool in a pseudo terminal of this size. Returns its process ID. */
__attribute__((unused)) static pid_t run_in_terminal(int *master, int rows, int columns,
						     char *const *argv)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };
	pid_t pid = forkpty(master, NULL, NULL, &size);

	if (!pid) {
		setenv("TERM", "xterm", 1);
		execv(tool, argv);
		_exit(127);
	}
	return pid;
}

__attribute__((unused)) static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Appends the output of `ms` milliseconds to `out`; false at the end of the output. */
__attribute__((unused)) static bool read_terminal(int master, int ms)
{
	struct pollfd in = { .fd = master, .events = POLLIN };
	double end = seconds_now() + ms * 1e-3, left;
	size_t at = strlen(out);
	ssize_t n;

	while ((left = end - seconds_now()) > 0) {
		if (poll(&in, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		n = read(master, out + at, sizeof(out) - 1 - at);
		if (n <= 0)
			return false;
		at += n;
		out[at] = '\0';
	}
	return true;
}

/* Reads until `out` contains `words`, for at most ten seconds. */
__attribute__((unused)) static bool read_until(int master, const char *words)
{
	double end = seconds_now() + 10;

	while (!strstr(out, words) && seconds_now() < end)
		if (!read_terminal(master, 20))
			break;
	return strstr(out, words);
}

/* The exit status, or 128 + signal, of the process in a terminal; -1 if it does not end. */
__attribute__((unused)) static int terminal_end(int master, pid_t pid)
{
	int status, ended = 0;

	for (int i = 0; i < 100 && !ended; i++) {
		if (!read_terminal(master, 100))
			usleep(100000);
		ended = waitpid(pid, &status, WNOHANG) == pid;
	}
	if (!ended) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	close(master);
	if (!ended)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void tool_find(void)
{
	char self[PATH_MAX - 32] = "";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		snprintf(tool, sizeof(tool), "%s/../bin/tensorstat", dirname(self));
	if (access(tool, X_OK) < 0)
		snprintf(tool, sizeof(tool), "%s/tensorstat", self);
}

#endif
