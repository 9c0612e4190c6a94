// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The worker processes of all loaders: they are forked, watched through a descriptor of the process, and
 * waited for.
 *
 * A child of this process must not keep a copy of a loader's descriptors, because workers recognise the
 * end of the loader by the end of the last copy. Descriptors are therefore made under the lock that
 * every fork takes, and closed in the child.
 */
#include "train/data/loader.h"

#include "base/init.h"
#include "storage/provider/provider.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS 1000

static tensor_loader *loaders;
static pthread_mutex_t loaders_lock = PTHREAD_MUTEX_INITIALIZER;
/* The worker that this thread forks; it keeps its ends of the socket and the pipe. */
static __thread struct loader_worker *forking __attribute__((tls_model("initial-exec")));

/* ---- descriptors ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_own_ends(struct loader_worker *w)
{
	close_fd(&w->socket);
	close_fd(&w->life);
	close_fd(&w->pidfd);
}

static void close_peer_ends(struct loader_worker *w)
{
	close_fd(&w->peer_socket);
	close_fd(&w->peer_life);
}

/* The caller holds loaders_lock. */
static int open_ends(struct loader_worker *w)
{
	int sockets[2], life[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	w->socket = sockets[0];
	w->peer_socket = sockets[1];
	if (pipe2(life, O_CLOEXEC) < 0)
		return -errno;
	w->peer_life = life[0];
	w->life = life[1];
	return 0;
}

/* ---- forks ---- */

static void lock_loaders(void)
{
	pthread_mutex_lock(&loaders_lock);
}

static void unlock_loaders(void)
{
	pthread_mutex_unlock(&loaders_lock);
}

static void close_in_child(void)
{
	for (tensor_loader *l = loaders; l; l = l->next)
		for (int i = 0; i < l->options.workers; i++) {
			close_own_ends(&l->workers[i]);
			if (&l->workers[i] != forking)
				close_peer_ends(&l->workers[i]);
		}
	loaders = NULL; /* those of the parent */
	unlock_loaders();
}

INIT(INIT_LOADER) static void loaders_init(void)
{
	pthread_atfork(lock_loaders, unlock_loaders, close_in_child);
}

static void enlist(tensor_loader *l)
{
	lock_loaders();
	l->next = loaders;
	l->link = &loaders;
	if (loaders)
		loaders->link = &l->next;
	loaders = l;
	unlock_loaders();
}

static void delist(tensor_loader *l)
{
	lock_loaders();
	*l->link = l->next;
	if (l->next)
		l->next->link = l->link;
	unlock_loaders();
}

/* ---- start ---- */

/* As in storage/provider: a process may open more files than its soft limit says. */
static int open_ends_or_raise(struct loader_worker *w)
{
	int err;

	lock_loaders();
	err = open_ends(w);
	if (err == -EMFILE && fd_limit_raise()) {
		close_own_ends(w);
		close_peer_ends(w);
		err = open_ends(w);
	}
	unlock_loaders();
	return err;
}

/* Returns in the calling process only. */
static int fork_worker(tensor_loader *l, struct loader_worker *w)
{
	sigset_t all, before;
	pid_t pid;
	int err;

	/* No handler of the program may run in the worker. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	forking = w;
	pid = fork();
	err = pid < 0 ? -errno : 0;
	if (pid == 0)
		worker_main(l, w, &before);
	forking = NULL;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return err;
	kill_at_end_of(w->peer_life, pid);
	w->pid = pid;
	w->pidfd = pidfd_open(pid, 0);
	return 0;
}

static int start_worker(tensor_loader *l, struct loader_worker *w)
{
	struct worker_at *at = &l->board->at[w->number];
	int err;

	atomic_store(&at->sample, AT_NOTHING);
	atomic_store(&at->batch, -1);
	err = open_ends_or_raise(w);
	if (!err)
		err = fork_worker(l, w);
	lock_loaders();
	close_peer_ends(w);
	unlock_loaders();
	if (!err) {
		w->channel = tensor_channel_open(w->socket);
		if (!w->channel)
			err = -thread()->error.code;
	}
	if (err < 0) {
		crew_bury(l, w, (char[256]){ 0 }, 256);
		return tensor_fail(-err, "loader: worker %d cannot be started: %s", w->number,
				   strerror(-err));
	}
	return 0;
}

int crew_restart(tensor_loader *l)
{
	for (int i = 0; i < l->options.workers; i++)
		if (!l->workers[i].pid) {
			int err = start_worker(l, &l->workers[i]);

			if (err < 0)
				return err;
		}
	return 0;
}

int crew_start(tensor_loader *l)
{
	int n = l->options.workers;

	l->window = n * l->options.prefetch;
	l->workers = calloc((size_t)n, sizeof(*l->workers));
	l->slots = calloc((size_t)l->window, sizeof(*l->slots));
	if (!l->workers || !l->slots) {
		free(l->workers);
		free(l->slots);
		return tensor_fail(ENOMEM, "loader_new: no memory for %d workers", n);
	}
	for (int i = 0; i < n; i++)
		l->workers[i] = (struct loader_worker){ .number = i,
							.socket = -1,
							.life = -1,
							.pidfd = -1,
							.peer_socket = -1,
							.peer_life = -1 };
	enlist(l);
	if (crew_restart(l) == 0)
		return 0;
	n = thread()->error.code;
	crew_end(l);
	return -n;
}

/* ---- end ---- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* Whether the process has ended before the time. */
static bool has_ended(const struct loader_worker *w, int64_t until)
{
	struct pollfd p = { .fd = w->pidfd, .events = POLLIN };

	for (;;) {
		int64_t left = until - now_ms();
		int n = poll(&p, 1, left > 0 ? (int)left : 0);

		if (n > 0)
			return true;
		if (n == 0 && left <= 0)
			return false;
	}
}

static void describe_end(int status, char *text, size_t size)
{
	const char *name;

	if (WIFEXITED(status)) {
		snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
		return;
	}
	name = sigabbrev_np(WTERMSIG(status));
	snprintf(text, size, "was killed by signal %d (%s%s)%s", WTERMSIG(status),
		 name ? "SIG" : "", name ? name : "unknown",
		 WTERMSIG(status) == SIGKILL ? ", as by the kernel when memory is short" : "");
}

/* Waits for the process, which is killed if it still runs. */
static void wait_for(struct loader_worker *w, char *text, size_t size)
{
	int status;
	pid_t pid;

	close_fd(&w->life); /* the kernel sends SIGKILL */
	if (w->pidfd >= 0)
		pidfd_send_signal(w->pidfd, SIGKILL, NULL, 0);
	do {
		pid = waitpid(w->pid, &status, 0);
	} while (pid < 0 && errno == EINTR);
	/* ECHILD: the program ignores SIGCHLD, or has waited for all its children. */
	if (pid == w->pid)
		describe_end(status, text, size);
	else
		snprintf(text, size, "ended");
}

void crew_bury(tensor_loader *l, struct loader_worker *w, char *text, size_t size)
{
	if (w->pid) {
		/* A process that ends by itself closes its socket first. */
		has_ended(w, w->pidfd >= 0 ? now_ms() + GRACE_MS : 0);
		wait_for(w, text, size);
	}
	tensor_channel_close(w->channel);
	drop_buffers(w);
	lock_loaders();
	close_own_ends(w);
	close_peer_ends(w);
	w->pid = 0;
	w->pending = 0;
	w->channel = NULL;
	unlock_loaders();
}

/* In a child of the process that started the workers. */
static void abandon_crew(tensor_loader *l)
{
	for (int i = 0; i < l->options.workers; i++) {
		tensor_channel_close(l->workers[i].channel);
		drop_buffers(&l->workers[i]);
	}
}

void crew_end(tensor_loader *l)
{
	int64_t until = now_ms() + GRACE_MS;

	if (l->owner != getpid()) {
		abandon_crew(l);
		goto free_memory;
	}
	atomic_store(&l->board->stop, true);
	for (int i = 0; i < l->options.workers; i++)
		if (l->workers[i].pid)
			shutdown(l->workers[i].socket, SHUT_RDWR);
	for (int i = 0; i < l->options.workers; i++)
		if (l->workers[i].pid && l->workers[i].pidfd >= 0)
			has_ended(&l->workers[i], until);
	for (int i = 0; i < l->options.workers; i++) {
		if (l->workers[i].pid)
			wait_for(&l->workers[i], (char[256]){ 0 }, 256);
		l->workers[i].pid = 0;
		crew_bury(l, &l->workers[i], NULL, 0);
	}
	delist(l);
free_memory:
	free(l->workers);
	free(l->slots);
	l->workers = NULL;
	l->slots = NULL;
}
