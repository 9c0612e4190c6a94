// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The thread that serves all connections and listeners of the process: it receives what comes and says that this end lives,
 * also while the program computes. It begins with the first of them and ends with the program.
 */
#include "remote/remote.h"

#include "base/init.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FOREVER_NS INT64_C(1000000000) /* the longest sleep */
#define LEAVE_NS   INT64_C(200000000)  /* for all peers, at the end of the program */

static struct {
	pthread_mutex_t lock;
	pthread_t thread;
	struct served *first;
	int n;
	bool runs, stops, is_parents;
	atomic_bool is_used; /* a use that has failed leaves state of UCX, too */
	int wake;	     /* eventfd; made with the thread */
} service = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The thread, the connections and the state of UCX are the parent's. */
static void begin_anew(void)
{
	service.is_parents |= service.runs || atomic_load(&service.is_used);
	if (service.runs)
		close(service.wake);
	service.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	service.first = NULL;
	service.runs = false;
}

INIT(INIT_REMOTE) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, begin_anew);
}

void serve_mark_used(void)
{
	atomic_store(&service.is_used, true);
}

bool serve_is_parents(void)
{
	return service.is_parents;
}

int serve_check(const char *function)
{
	return service.is_parents ?
		       tensor_fail(EBUSY,
				   "%s: UCX is the parent's: it was used before fork(), and works "
				   "here only after exec()",
				   function) :
		       0;
}

static void wake(void)
{
	uint64_t one = 1;

	if (write(service.wake, &one, sizeof(one)) < 0)
		return; /* it has been written to before */
}

/* ---- tasks ---- */

static struct {
	pthread_mutex_t lock;
	struct serve_task *first;
} tasks = { .lock = PTHREAD_MUTEX_INITIALIZER };

void serve_task(struct serve_task *task, void (*run)(struct serve_task *task))
{
	task->run = run;
	pthread_mutex_lock(&tasks.lock);
	task->next = tasks.first;
	tasks.first = task;
	pthread_mutex_unlock(&tasks.lock);
	wake();
}

static void run_tasks(void)
{
	struct serve_task *task, *next;

	pthread_mutex_lock(&tasks.lock);
	task = tasks.first;
	tasks.first = NULL;
	pthread_mutex_unlock(&tasks.lock);
	for (; task; task = next) {
		next = task->next;
		task->run(task);
	}
}

/* ---- the thread ---- */

/* The caller holds the lock. The descriptors to wait for; NULL without memory, *n is 0 then. */
static struct pollfd *descriptors(int *n)
{
	struct pollfd *fds = malloc(((size_t)service.n + 1) * sizeof(*fds));
	int i = 1;

	if (!fds)
		return NULL;
	fds[0] = (struct pollfd){ .fd = service.wake, .events = POLLIN };
	for (struct served *s = service.first; s; s = s->next) {
		s->event = i;
		fds[i++] = (struct pollfd){ .fd = s->fd(s), .events = POLLIN };
	}
	*n = i;
	return fds;
}

/* One that was added since has no number. A number may be of an earlier wait if there was no memory for this one. */
static bool has_event(const struct pollfd *fds, int n, const struct served *s)
{
	return s->event && s->event < n && fds[s->event].revents;
}

/* The caller holds the lock. serve() may add to the begin of the list, and remove others. */
static void serve_all(const struct pollfd *fds, int n)
{
	int64_t now = link_now();

	for (struct served *s = service.first; s; s = s->next)
		if (s->due <= now || has_event(fds, n, s))
			s->serve(s);
}

static int64_t next_due(void)
{
	int64_t due = link_deadline(FOREVER_NS);

	for (struct served *s = service.first; s; s = s->next)
		due = s->due < due ? s->due : due;
	return due;
}

static void *serve(void *unused)
{
	pthread_mutex_lock(&service.lock);
	while (!service.stops) {
		int64_t due = next_due();
		struct pollfd *fds;
		uint64_t count;
		int n = 0;

		fds = descriptors(&n);
		pthread_mutex_unlock(&service.lock);
		run_tasks();
		if (fds)
			link_poll(fds, n, due);
		else
			usleep(1000);
		if (fds && fds[0].revents && read(service.wake, &count, sizeof(count)) < 0)
			count = 0;
		pthread_mutex_lock(&service.lock);
		if (!service.stops)
			serve_all(fds, n);
		free(fds);
	}
	pthread_mutex_unlock(&service.lock);
	return NULL;
}

/* At the end of the program, before that of UCX. */
static void stop(void)
{
	int64_t until;

	pthread_mutex_lock(&service.lock);
	service.stops = true;
	pthread_mutex_unlock(&service.lock);
	if (!service.runs)
		return;
	wake();
	pthread_join(service.thread, NULL);
	service.runs = false;
	/* All peers have one time together, whatever their number. */
	until = link_deadline(LEAVE_NS);
	pthread_mutex_lock(&service.lock);
	for (struct served *s = service.first; s; s = s->next)
		if (s->leave)
			s->leave(s);
	for (struct served *s = service.first; s; s = s->next)
		if (s->flush)
			s->flush(s, until);
	pthread_mutex_unlock(&service.lock);
}

/* The caller holds the lock. The thread blocks all signals. */
static int start(void)
{
	static bool ends;
	sigset_t all, before;
	int err;

	if (service.runs)
		return 0;
	service.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (service.wake < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&service.thread, NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		close(service.wake);
		return -err;
	}
	service.runs = true;
	if (!ends)
		atexit(stop);
	ends = true;
	return 0;
}

static void add(struct served *s)
{
	s->due = 0;
	s->event = 0;
	s->next = service.first;
	s->link = &service.first;
	if (s->next)
		s->next->link = &s->next;
	service.first = s;
	service.n++;
}

int serve_add(const char *function, struct served *s)
{
	int err;

	pthread_mutex_lock(&service.lock);
	err = start();
	if (!err)
		add(s);
	pthread_mutex_unlock(&service.lock);
	if (err < 0)
		return tensor_fail(-err, "%s: no thread for connections: %s", function,
				   strerror(-err));
	wake();
	return 0;
}

void serve_add_inside(struct served *s)
{
	add(s);
}

void serve_remove_inside(struct served *s)
{
	if (!s->link)
		return;
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	s->link = NULL;
	service.n--;
}

void serve_remove(struct served *s)
{
	pthread_mutex_lock(&service.lock);
	serve_remove_inside(s);
	pthread_mutex_unlock(&service.lock);
}
