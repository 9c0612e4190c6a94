// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The kernel log, read after every program, so that a report is attributed to the program that ran.
 */
#include <fcntl.h>
#include <regex.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

/* Substrings of reports; tests/vm/dmesg.py checks the whole log with more patterns at the end. */
#define BAD                                                                         \
	"BUG:|WARNING:|KASAN|UBSAN|Oops|possible .*lock|suspicious RCU|refcount_t|" \
	"Bad page|corruption|sleeping function|Call Trace"

/* Whether a report came since the last call; it is copied to @out. */
bool kernel_log_bad(FILE *out)
{
	static int fd = -1;
	static regex_t bad;
	char line[4096];
	bool found = false;
	ssize_t n;

	if (fd < 0) {
		regcomp(&bad, BAD, REG_EXTENDED | REG_NOSUB);
		fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 501);
		lseek(fd, 0, SEEK_END);
	}
	while ((n = read(fd, line, sizeof(line) - 1)) > 0) {
		line[n] = 0;
		if (regexec(&bad, line, 0, NULL, 0))
			continue;
		found = true;
		fprintf(out, "# kernel: %s", strchr(line, ';') ? strchr(line, ';') + 1 : line);
	}
	return found;
}
