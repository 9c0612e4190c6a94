// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The scan of /proc for memfds (scan.h). */
#include "backend/scan.h"

#include "rows/text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_MAX_TEXT 64

static bool has_link(int dir, const char *name, const char *link)
{
	char text[LINK_MAX_TEXT];
	ssize_t n = readlinkat(dir, name, text, sizeof(text));

	return n == (ssize_t)strlen(link) && !memcmp(text, link, n);
}

/*
 * O_PATH comes first: between the check of the link and the open, that process may replace the file by a device, which
 * must not be opened.
 */
int open_memfd(int dir, const char *name, const char *link)
{
	int path = openat(dir, name, O_PATH | O_CLOEXEC), self, fd = -1;
	char number[16];

	if (path < 0)
		return -1;
	snprintf(number, sizeof(number), "%d", path);
	self = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (self >= 0 && has_link(self, number, link))
		fd = openat(self, number, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (self >= 0)
		close(self);
	close(path);
	return fd;
}

static void read_comm(int proc, struct owner *who)
{
	char comm[64] = "?";
	int fd = openat(proc, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, comm, sizeof(comm) - 1);

	if (n > 0) {
		comm[n] = '\0';
		comm[strcspn(comm, "\n")] = '\0';
	}
	if (fd >= 0)
		close(fd);
	copy_text(who->comm, sizeof(who->comm), comm);
}

/* Finds nothing in a process that ended or that the caller may not inspect. */
static void scan_process(int root, const char *pid, const char *link,
			 void (*found)(void *ctx, int dir, const char *name,
				       const struct owner *who),
			 void *ctx)
{
	int proc = openat(root, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fds;
	struct owner who = { .pid = atoi(pid) };
	struct dirent *e;
	struct stat st;
	DIR *dir;

	if (proc < 0)
		return;
	fds = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fstat(proc, &st) == 0)
		who.uid = st.st_uid;
	read_comm(proc, &who);
	close(proc);
	dir = fds < 0 ? NULL : fdopendir(fds);
	if (!dir)
		return;
	while ((e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]) && has_link(dirfd(dir), e->d_name, link))
			found(ctx, dirfd(dir), e->d_name, &who);
	closedir(dir);
}

enum status
scan_memfds(const char *link,
	    void (*found)(void *ctx, int dir, const char *name, const struct owner *who), void *ctx)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;

	if (!dir) {
		complain("/proc: %s", strerror(errno));
		return STATUS_ERROR;
	}
	while ((e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			scan_process(dirfd(dir), e->d_name, link, found, ctx);
	closedir(dir);
	return STATUS_OK;
}
