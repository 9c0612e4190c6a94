// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tensorrun: starts the ranks of a process group on this machine. See tensorrun(1). */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 128
#define KILL_MS	  2000 /* from SIGTERM to SIGKILL */

enum { USAGE = 2, NOT_FOUND = 127 };

struct run {
	int n, alive;
	pid_t pids[RANKS_MAX]; /* 0: ended */
	int killed;	       /* ranks, by a signal that tensorrun did not send */
	bool is_stopped;       /* by a signal to tensorrun, or ranks could not start */
	bool share_threads;
	int grace_ms; /* for the others after one failed */
	int status;   /* of the first one that failed */
	int stage;    /* 0: running; 1: one failed; 2: SIGTERM was sent; 3: SIGKILL */
	long next;    /* ms, when the next stage begins */
};

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int usage(FILE *to)
{
	fputs("usage: tensorrun [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	      "Starts processes that join one process group.\n"
	      "  -n, --ranks RANKS    their number, 1 to 128 (the number of processors)\n"
	      "  -g, --grace SECONDS  after a rank has failed, end the others after this time (5)\n"
	      "  -r, --restarts N     after a rank has failed, start the ranks that are left again, at most N times (0)\n"
	      "  -m, --min-ranks N    ... as long as there are N of them (1)\n",
	      to);
	return to == stdout ? 0 : USAGE;
}

static int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

static void set_number(const char *name, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, 1);
}

/* The variables that all ranks have in common; share_threads: TENSOR_NUM_THREADS is not the user's. */
static void set_environment(int n, bool share_threads)
{
	int share = processors() / n;
	char address[64];

	snprintf(address, sizeof(address), "tensorrun-%d-%ld", getpid(), now_ms());
	setenv("TENSOR_GROUP", "local", 1);
	setenv("TENSOR_GROUP_ADDRESS", address, 1);
	set_number("TENSOR_SIZE", n);
	if (share_threads)
		set_number("TENSOR_NUM_THREADS", share > 1 ? share : 1);
}

static void be_rank(int rank, pid_t parent, const sigset_t *signals, char **program)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent) /* it ended before the line above */
		_exit(NOT_FOUND);
	sigprocmask(SIG_SETMASK, signals, NULL);
	set_number("TENSOR_RANK", rank);
	execvp(program[0], program);
	fprintf(stderr, "tensorrun: %s: %s\n", program[0], strerror(errno));
	_exit(NOT_FOUND);
}

static void signal_all(const struct run *r, int sig)
{
	for (int i = 0; i < r->n; i++)
		if (r->pids[i])
			kill(r->pids[i], sig);
}

static bool start(struct run *r, const sigset_t *signals, char **program)
{
	pid_t self = getpid();

	fflush(NULL);
	for (int i = 0; i < r->n; i++) {
		r->pids[i] = fork();
		if (!r->pids[i])
			be_rank(i, self, signals, program);
		if (r->pids[i] < 0) {
			fprintf(stderr, "tensorrun: rank %d: %s\n", i, strerror(errno));
			r->pids[i] = 0;
			return false;
		}
		r->alive++;
	}
	return true;
}

/* A rank has failed, or the start, or a signal has come. */
static void fail(struct run *r, int status)
{
	if (r->stage)
		return;
	r->status = status;
	r->stage = 1;
	r->next = now_ms() + r->grace_ms;
}

static void ended(struct run *r, int rank, int status)
{
	bool killed = WIFSIGNALED(status);

	if (!killed && !WEXITSTATUS(status))
		return;
	if (!r->stage && killed)
		fprintf(stderr, "tensorrun: rank %d: %s\n", rank, strsignal(WTERMSIG(status)));
	else if (!r->stage)
		fprintf(stderr, "tensorrun: rank %d: exit status %d\n", rank, WEXITSTATUS(status));
	r->killed += killed && r->stage <= 1;
	fail(r, killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* Those that a signal killed come first: the others got an error from the group and may have ended before. */
static void reap(struct run *r)
{
	int status[RANKS_MAX];
	bool has_ended[RANKS_MAX] = { false };

	for (int i = 0; i < r->n; i++) {
		has_ended[i] = r->pids[i] && waitpid(r->pids[i], &status[i], WNOHANG) > 0;
		if (!has_ended[i])
			continue;
		r->pids[i] = 0;
		r->alive--;
		if (WIFSIGNALED(status[i]))
			ended(r, i, status[i]);
	}
	for (int i = 0; i < r->n; i++)
		if (has_ended[i] && !WIFSIGNALED(status[i]))
			ended(r, i, status[i]);
}

/* The time of the present stage may be over. */
static void advance(struct run *r)
{
	if (!r->stage || now_ms() < r->next)
		return;
	if (r->stage++ == 1)
		signal_all(r, SIGTERM);
	else
		signal_all(r, SIGKILL);
	r->next = now_ms() + KILL_MS;
}

static void take_signals(struct run *r, int fd)
{
	struct signalfd_siginfo s;

	while (read(fd, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGCHLD)
			continue;
		r->is_stopped = true;
		/* A terminal has sent it to all already; a second one does no harm. */
		signal_all(r, (int)s.ssi_signo);
		fail(r, 128 + (int)s.ssi_signo);
	}
}

static void wait_all(struct run *r, int fd)
{
	while (r->alive) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long left = r->stage ? r->next - now_ms() : -1;

		poll(&p, 1, r->stage && left < 0 ? 0 : (int)left);
		take_signals(r, fd);
		reap(r);
		advance(r);
	}
}

/* Those that tensorrun takes. nohup(1) and shells set some to be ignored: those end neither tensorrun nor its ranks. */
static void signals_of(sigset_t *set)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction now;

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!sigaction(all[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaddset(set, all[i]);
	/* If it was ignored, waitpid() would not report the ranks. */
	signal(SIGCHLD, SIG_DFL);
	sigaddset(set, SIGCHLD);
}

/* A number of an option, or -1. */
static int number(const char *text, int least, int most)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text && !*end && n >= least && n <= most ? (int)n : -1;
}

/*
 * After a failure: the ranks that failed by themselves. Where some were killed, those that exited got their error from the
 * group, even if they were the first to end.
 */
static int lost(const struct run *r)
{
	return r->killed ? r->killed : 1;
}

/* Starts the ranks and waits for them. */
static void attempt(struct run *r, int fd, const sigset_t *signals, char **program)
{
	r->alive = r->killed = r->status = r->stage = 0;
	set_environment(r->n, r->share_threads);
	if (!start(r, signals, program)) {
		r->grace_ms = 0;
		r->is_stopped = true;
		fail(r, 1);
	}
	wait_all(r, fd);
}

struct options {
	int restarts, least;
};

/* 0, or the exit status + 1. */
static int take_options(struct run *r, struct options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "ranks", required_argument, NULL, 'n' },
		{ "grace", required_argument, NULL, 'g' },
		{ "restarts", required_argument, NULL, 'r' },
		{ "min-ranks", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "+n:g:r:m:h", names, NULL)) != -1) {
		if (option == 'h')
			return usage(stdout) + 1;
		if (option == 'n')
			r->n = number(optarg, 1, RANKS_MAX);
		if (option == 'g')
			r->grace_ms = 1000 * number(optarg, 0, 86400);
		if (option == 'r')
			o->restarts = number(optarg, 0, 1000000);
		if (option == 'm')
			o->least = number(optarg, 1, RANKS_MAX);
		if (option == '?' || r->n < 0 || r->grace_ms < 0 || o->restarts < 0 || o->least < 0)
			return usage(stderr) + 1;
	}
	return optind == argc ? usage(stderr) + 1 : 0;
}

int main(int argc, char **argv)
{
	struct run r = { .n = processors(),
			 .grace_ms = 5000,
			 .share_threads = !getenv("TENSOR_NUM_THREADS") };
	struct options o = { .least = 1 };
	sigset_t mask, before;
	int fd, res;

	r.n = r.n < RANKS_MAX ? r.n : RANKS_MAX;
	res = take_options(&r, &o, argc, argv);
	if (res)
		return res - 1;
	signals_of(&mask);
	sigprocmask(SIG_BLOCK, &mask, &before);
	fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0) {
		perror("tensorrun: signalfd");
		return 1;
	}
	attempt(&r, fd, &before, argv + optind);
	while (r.status && !r.is_stopped && o.restarts-- > 0 && r.n - lost(&r) >= o.least) {
		r.n -= lost(&r);
		fprintf(stderr, "tensorrun: start again with %d ranks\n", r.n);
		attempt(&r, fd, &before, argv + optind);
	}
	return r.status;
}
