// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The fuzzing loop: take a program of the corpus, mutate it, run it, keep it if it covers something
 * new.
 *
 * A worker runs a few thousand programs and may die in any of them; its results are in memory that
 * it shares with its parent.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define HINTS 24 /* mutations of a program by the operands that it compared */

static struct machine machine;
static bool counting;

/* A second thread that runs part of the program at the same time. */
static sem_t second_go, second_done;
static struct prog second_prog;

static void *second_thread(void *data)
{
	unsigned int i;

	for (;;) {
		sem_wait(&second_go);
		for (i = 0; i < second_prog.nr; i++)
			machine_call(&machine, &second_prog.call[i]);
		sem_post(&second_done);
	}
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

/* Runs a program. Returns the number of calls up to the last that covered something new. */
static unsigned int run_program(struct shared *shared, const struct prog *prog, bool race)
{
	unsigned int i, new = 0;
	unsigned long worked;
	uint64_t before;

	shared->now = *prog;
	atomic_fetch_add(&shared->beat, 1);
	if (race) {
		second_prog = *prog;
		second_prog.nr = prog->nr / 2;
		memmove(second_prog.call, prog->call + prog->nr - second_prog.nr,
			second_prog.nr * sizeof(prog->call[0]));
		sem_post(&second_go);
	}
	for (i = 0; i < prog->nr; i++) {
		before = now_ns();
		kcov_reset();
		worked = machine_call(&machine, &prog->call[i]) >= 0;
		atomic_fetch_add(&shared->ns[prog->call[i].type], now_ns() - before);
		atomic_fetch_add(&shared->made[prog->call[i].type], 1);
		atomic_fetch_add(&shared->worked[prog->call[i].type], worked);
		if (counting && kcov_merge(&shared->signal))
			new = i + 1;
	}
	if (race)
		wait_for(&second_done);
	kcov_reset();
	before = now_ns();
	machine_clean(&machine);
	atomic_fetch_add(&shared->ns[CALL_TYPES_MAX], now_ns() - before);
	/* coverage of close() belongs to the whole program */
	if (counting && kcov_merge(&shared->signal))
		new = prog->nr;
	atomic_fetch_add(&shared->calls, prog->nr);
	atomic_fetch_add(&shared->progs, 1);
	if (kernel_log_bad(stdout)) {
		shared->reported = true;
		fflush(stdout);
		_exit(4);
	}
	return new;
}

static bool corpus_add(struct shared *shared, const struct prog *prog, unsigned int nr)
{
	struct prog *at = &shared->corpus[shared->corpus_nr];

	if (!nr || shared->corpus_nr == CORPUS_MAX)
		return false;
	*at = *prog;
	at->nr = nr;
	shared->corpus_nr++;
	return true;
}

/* Replaces an argument by the other operand if it contains the compared one. */
static bool replace_operand(const struct arg_type *type, uint64_t *arg, const uint64_t *pair)
{
	uint64_t mask = type->bytes && type->bytes < 8 ? (1ULL << type->bytes * 8) - 1 : -1ULL;

	if (type->role != ROLE_VALUE && type->role != ROLE_NONE)
		return false;
	if ((*arg & mask) != (pair[0] & mask))
		return false;
	*arg = pair[1];
	return true;
}

/* Runs a program to record the compared operands, then with its arguments replaced by them. */
static void try_hints(struct shared *shared, struct rng *rng, const struct prog *prog)
{
	static uint64_t pairs[512][2];
	unsigned int at = rng_below(rng, prog->nr), nr, i, n, tried = 0;
	const struct call_type *type = &call_types[prog->call[at].type];
	struct prog changed;

	kcov_stop();
	kcov_start(true);
	for (i = 0; i <= at; i++) {
		kcov_reset();
		machine_call(&machine, &prog->call[i]);
	}
	nr = kcov_compared(pairs, ARRAY_SIZE(pairs));
	machine_clean(&machine);
	kcov_stop();
	kcov_start(false);
	atomic_fetch_add(&shared->calls, at + 1);
	for (i = 0; i < nr && tried < HINTS; i++) {
		dictionary_add(pairs[i][1]);
		for (n = 0; n < call_args(type) && tried < HINTS; n++) {
			changed = *prog;
			if (!replace_operand(&type->args[n], &changed.call[at].arg[n], pairs[i]))
				continue;
			tried++;
			corpus_add(shared, &changed, run_program(shared, &changed, false));
		}
	}
}

static void fuzz_once(struct shared *shared, struct rng *rng)
{
	const struct prog *one, *other;
	struct prog prog;

	if (!shared->corpus_nr || !rng_below(rng, 20)) {
		prog_invent(rng, &prog);
	} else {
		one = &shared->corpus[rng_below(rng, shared->corpus_nr)];
		other = &shared->corpus[rng_below(rng, shared->corpus_nr)];
		prog = *one;
		prog_change(rng, &prog, other);
	}
	if (corpus_add(shared, &prog, run_program(shared, &prog, !rng_below(rng, 16))))
		try_hints(shared, rng, &shared->corpus[shared->corpus_nr - 1]);
}

static void on_alarm(int sig)
{
}

/* A signal at intervals interrupts waiting calls: every wait must be interruptible. */
static void interrupt_often(void)
{
	struct itimerval often = { { 0, 100000 }, { 0, 100000 } };
	struct sigaction action = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static void worker_init(void)
{
	pthread_t thread;

	machine_init(&machine);
	machine_clean(&machine);
	sem_init(&second_go, 0, 0);
	sem_init(&second_done, 0, 0);
	if (pthread_create(&thread, NULL, second_thread, NULL))
		_exit(3);
	interrupt_often();
	counting = kcov_open();
	if (counting)
		kcov_start(false);
}

/* Runs until all workers have made so many calls, or this one a few thousand programs. */
void worker(struct shared *shared, uint64_t seed, unsigned long until)
{
	struct rng rng = { seed };
	int n;

	worker_init();
	for (n = 0; n < 4000 && shared->calls < until && now_ns() < shared->deadline_ns; n++)
		fuzz_once(shared, &rng);
	_exit(0);
}

/* Runs the initial programs and keeps those that cover something new. */
void worker_admit(struct shared *shared)
{
	unsigned int nr = shared->corpus_nr, i;

	worker_init();
	shared->corpus_nr = 0;
	for (i = 0; i < nr; i++) {
		struct prog prog = shared->corpus[i];
		unsigned int new = run_program(shared, &prog, false);

		/* without coverage all of them are kept */
		corpus_add(shared, &prog, counting ? new : prog.nr);
	}
	_exit(0);
}

/* Runs each program of the corpus once and prints the result of each call. */
void worker_tell(struct shared *shared)
{
	unsigned int i, j;

	worker_init();
	for (i = 0; i < shared->corpus_nr; i++) {
		const struct prog *prog = &shared->corpus[i];

		shared->now = *prog;
		for (j = 0; j < prog->nr; j++)
			printf("# %s: %ld\n", call_types[prog->call[j].type].name,
			       machine_call(&machine, &prog->call[j]));
		machine_clean(&machine);
		atomic_fetch_add(&shared->calls, prog->nr);
		fflush(stdout);
		shared->reported |= kernel_log_bad(stdout);
	}
	fflush(stdout);
	_exit(shared->reported ? 4 : 0);
}
