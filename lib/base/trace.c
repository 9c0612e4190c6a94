// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The file of TENSOR_TRACE: a JSON array of events. The closing bracket is written at exit();
 * readers of the format accept its absence. The file is opened at the first event of a process. A
 * forked child, and a process that finds the file in use, write to NAME.PID.json.
 */
#include "base/trace.h"

#include "base/file_limit.h"
#include "base/init.h"
#include "base/profile.h"
#include "base/thread.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	char path[PATH_MAX]; /* absolute, because a program may change its working directory */
	int fd;		     /* -1: not open */
	struct stat
		file; /* identity of the file, to detect that the program closed and reused the descriptor */
	bool child; /* child of a fork: the parent writes to the file of that name */
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* ---- the file ---- */

static void stop(const char *path, const char *what, int err)
{
	__atomic_fetch_and(&trace_sinks, ~TRACE_FILE, __ATOMIC_RELAXED);
	fprintf(stderr, "libtensor: TENSOR_TRACE: %s %s: %s; nothing more is recorded\n", what,
		path, strerror(err));
}

/* "trace.json" becomes "trace.PID.json". */
static bool own_path(char *path)
{
	size_t n = strlen(trace.path), end = n;

	if (n > 5 && !strcmp(trace.path + n - 5, ".json"))
		end = n - 5;
	return snprintf(path, PATH_MAX, "%.*s.%d%s", (int)end, trace.path, (int)getpid(),
			trace.path + end) < PATH_MAX;
}

/* Opens and empties the file; -EWOULDBLOCK: another process writes to it. */
static int open_path(const char *path)
{
	/* O_NONBLOCK: a FIFO without a reader is an error here instead of waiting for one. */
	int fd =
		open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
	int err = 0;

	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFL, O_APPEND);
	/* A file system without locks has one writer unless the user names the same file twice. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		err = -errno;
	else if (fstat(fd, &trace.file) < 0 ||
		 (S_ISREG(trace.file.st_mode) && ftruncate(fd, 0) < 0))
		err = -errno;
	if (err < 0) {
		close(fd);
		return err;
	}
	return fd;
}

/* Writes all bytes or fails. */
static int append(const char *text, size_t n)
{
	struct file_limit limit = file_limit_begin();
	size_t done = 0;
	int err = 0;

	while (done < n && !err) {
		ssize_t k = write(trace.fd, text + done, n - done);

		if (k > 0)
			done += (size_t)k;
		else if (k == 0 || errno != EINTR)
			err = k == 0 ? -ENOSPC : -errno;
	}
	errno = -err;
	file_limit_end(&limit, err);
	/* Removes a partial event, which would make the file invalid. */
	if (done && err)
		(void)!ftruncate(trace.fd, lseek(trace.fd, 0, SEEK_END) - (off_t)done);
	return err;
}

/* The name of the program without characters that JSON escapes. */
static const char *program(void)
{
	static char name[64];
	const char *from = program_invocation_short_name;
	size_t n = 0;

	for (; *from && n < sizeof(name) - 1; from++)
		if (*from >= ' ' && *from < 127 && *from != '"' && *from != '\\')
			name[n++] = *from;
	name[n] = '\0';
	return name;
}

/* The caller holds the lock. Opens the file and writes the name of the process. */
static bool open_file(void)
{
	char path[PATH_MAX], text[256];
	int n, fd = -EWOULDBLOCK;

	snprintf(path, sizeof(path), "%s", trace.path);
	if (!trace.child)
		fd = open_path(path);
	if (fd == -EWOULDBLOCK)
		fd = own_path(path) ? open_path(path) : -ENAMETOOLONG;
	if (fd < 0) {
		stop(path, "cannot open", -fd);
		return false;
	}
	trace.fd = fd;
	n = snprintf(text, sizeof(text),
		     "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"ts\":0,\"pid\":%d,\"tid\":%d,"
		     "\"args\":{\"name\":\"%s\"}}",
		     (int)getpid(), (int)getpid(), program());
	n = append(text, (size_t)n);
	if (n < 0)
		stop(path, "cannot write to", -n);
	return n == 0;
}

/* The caller holds the lock. Whether the descriptor still refers to the file. */
static bool own_descriptor(void)
{
	struct stat now;

	return fstat(trace.fd, &now) == 0 && now.st_dev == trace.file.st_dev &&
	       now.st_ino == trace.file.st_ino;
}

static void write_event(const char *text, size_t n)
{
	int err;

	pthread_mutex_lock(&trace.lock);
	if (trace_on() & TRACE_FILE && (trace.fd >= 0 || open_file())) {
		err = own_descriptor() ? append(text, n) : -EBADF;
		if (err < 0)
			stop(trace.path, "cannot write to", -err);
	}
	pthread_mutex_unlock(&trace.lock);
}

/* ---- events ---- */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void trace_start(struct trace_span *span, const char *category, const char *name)
{
	struct tensor_thread *th = thread();

	span->category = category;
	span->name = name;
	span->sinks = trace_on();
	span->up = th->span;
	span->inside = 0;
	span->bytes = 0;
	span->node = NULL;
	th->span = span;
	span->used = 0;
	span->args[0] = '\0';
	span->start = now_ns();
}

bool trace_add(struct trace_span *span, const char *fmt, ...)
{
	va_list args;
	size_t room;
	int n;

	if (span->start < 0)
		return false;
	room = sizeof(span->args) - span->used;
	va_start(args, fmt);
	n = vsnprintf(span->args + span->used, room, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= room) {
		span->args[span->used] = '\0';
		return false;
	}
	span->used += (unsigned)n;
	return true;
}

static void write_span(const struct trace_span *span, int64_t ns)
{
	char text[TRACE_ARGS + 512];
	int n = snprintf(text, sizeof(text),
			 ",\n{\"name\":\"%.100s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%lld.%03d,"
			 "\"dur\":%lld.%03d,\"pid\":%d,\"tid\":%d,\"args\":{%s}}",
			 span->name, span->category, (long long)(span->start / 1000),
			 (int)(span->start % 1000), (long long)(ns / 1000), (int)(ns % 1000),
			 (int)getpid(), (int)gettid(), span->args);

	write_event(text, (size_t)n);
}

void trace_write(struct trace_span *span)
{
	int64_t ns = now_ns() - span->start;
	int err = errno;

	thread()->span = span->up;
	if (span->up)
		span->up->inside += ns;
	if (span->sinks & TRACE_FILE)
		write_span(span, ns);
	if (span->sinks & TRACE_PROFILE)
		profile_add(span, ns);
	errno = err;
}

/* ---- the process ---- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&trace.lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&trace.lock);
}

/* The child opens a file of its own at its first event. */
static void fork_child(void)
{
	if (trace.fd >= 0 && own_descriptor())
		close(trace.fd);
	trace.fd = -1;
	trace.child = true;
	pthread_mutex_unlock(&trace.lock);
}

INIT(INIT_TRACE) static void trace_init(void)
{
	const char *name = secure_getenv("TENSOR_TRACE");
	size_t n = 0;

	if (!name || !*name)
		return;
	if (*name != '/' && getcwd(trace.path, sizeof(trace.path) - 1)) {
		n = strlen(trace.path);
		trace.path[n++] = '/';
	}
	if (snprintf(trace.path + n, sizeof(trace.path) - n, "%s", name) >=
	    (int)(sizeof(trace.path) - n)) {
		stop(name, "cannot open", ENAMETOOLONG);
		return;
	}
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	trace_sinks |= TRACE_FILE;
}

/* At exit() and dlclose(); events that end later are lost. */
__attribute__((destructor)) static void trace_finish(void)
{
	pthread_mutex_lock(&trace.lock);
	if (trace_on() & TRACE_FILE && trace.fd >= 0 && own_descriptor()) {
		append("\n]\n", 3);
		close(trace.fd);
	}
	trace.fd = -1;
	__atomic_fetch_and(&trace_sinks, ~TRACE_FILE, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&trace.lock);
}
