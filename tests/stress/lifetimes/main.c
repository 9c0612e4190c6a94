// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Walks all orders in which two processes can open the device, make, export, import, map, attach
 * and close two buffers, or be killed, and compares the kernel with a model after each step.
 *
 *	lifetimes [SECONDS]		120, or LIFETIMES of the environment
 *	lifetimes '0o 0a0 0e0 0s'	one sequence: a process, an action, a buffer; see model.c
 *
 * Iterative deepening: among the next lengths of all scopes (processes, buffers), the one with the
 * fewest sequences is done first while time allows. A sequence of n steps is only compared after
 * its last step: its prefixes were sequences of n - 1 steps. Then everything is closed, in one of
 * four ways, and nothing may be left. The remaining time is spent on long random walks.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"
#include "player.h"

#define RELOAD_EVERY  1000
#define WALK_STEPS    24
#define MOST_FAILURES 10
#define UNCOUNTABLE   1000000

/**
 * struct search - all sequences of one length
 * @scope: range of the sequences
 * @depth: length of the sequences
 * @count: number of sequences so far
 * @dry: only count the sequences
 * @model: the model before each step
 * @steps: the current sequence
 */
struct search {
	struct scope scope;
	int depth;
	unsigned long count;
	bool dry;
	struct model model[MAX_STEPS];
	struct step steps[MAX_STEPS];
};

static struct player player;
static unsigned long played, failures, reloads;
static double begin, deadline;
static bool reload_failed;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static bool tap_result(bool good, const char *what)
{
	static int n;

	printf("%s %d lifetimes.%s\n", good ? "ok" : "not ok", ++n, what);
	fflush(stdout);
	return good;
}

static bool search_is_over(void)
{
	return failures >= MOST_FAILURES || reload_failed || now() > deadline;
}

/* A failed sequence may leave anything: the next begins with new processes. */
static void report(const char *name, const struct step *steps, int n, bool large)
{
	char text[8 * MAX_STEPS], log[256];

	printf("# %s: %s\n# again: lifetimes '%s%s'\n", name, player.wrong, large ? "large " : "",
	       steps_text(steps, n, text, sizeof(text)));
	fflush(stdout);
	failures++;
	player_stop(&player);
	if (!player_start(&player))
		exit(1);
	/* objects that are still alive would be reported again */
	player_begin(&player, "again", false);
	if (!player_end(&player)) {
		printf("# still failing with new processes: %s\n", player.wrong);
		failures = MOST_FAILURES;
	}
	kernel_log_is_clean(log, sizeof(log));
}

static void reload_sometimes(void)
{
	if (++played % RELOAD_EVERY)
		return;
	reloads++;
	if (kernel_reload(player.wrong, sizeof(player.wrong)))
		return;
	printf("# %s\n", player.wrong);
	reload_failed = true;
}

/* Plays a sequence and closes what it leaves; compares after each step, or after the last. */
static bool play_sequence(const char *name, const struct scope *scope, struct step *steps, int n,
			  unsigned int way, bool large, bool each)
{
	bool good = true;
	int i;

	player_begin(&player, name, large);
	for (i = 0; each && i < n && good; i++)
		good = player_steps(&player, steps + i, 1) && player_look(&player);
	if (!each) {
		good = player_steps(&player, steps, n - 1);
		kernel_settle();
		good = good && player_steps(&player, steps + n - 1, 1) && player_look(&player);
	}
	if (good) {
		i = model_teardown(&player.model, scope, way, steps + n, MAX_STEPS - n);
		n += i;
		good = player_steps(&player, steps + n - i, i) && player_end(&player);
	}
	if (!good)
		report(name, steps, n, large);
	reload_sometimes();
	return good;
}

/* False: the sequence fits a smaller scope, which has played it. */
static bool uses_scope(const struct search *s)
{
	uint8_t procs = 1, bufs = 1;
	int i;

	for (i = 0; i < s->depth; i++) {
		procs |= s->steps[i].proc + 1;
		bufs |= s->steps[i].buf + 1;
	}
	return (procs > 1) == (s->scope.procs > 1) && (bufs > 1) == (s->scope.bufs > 1);
}

static void finish_sequence(struct search *s)
{
	static const uint8_t ways[8] = { 0, 1, 3, 0, 1, 3, 1, 2 };
	struct step steps[MAX_STEPS];
	unsigned long n;
	char name[40];

	if (!uses_scope(s))
		return;
	n = s->count++;
	if (s->dry)
		return;
	memcpy(steps, s->steps, s->depth * sizeof(*steps));
	snprintf(name, sizeof(name), "%d%d.%d.%lu", s->scope.procs, s->scope.bufs, s->depth, n);
	play_sequence(name, &s->scope, steps, s->depth, ways[n % 8], n % 16 == 6, false);
}

/* Whether the other order of the two steps is searched as well. */
static bool redundant(const struct search *s, int at)
{
	const struct step x = s->steps[at - 1], y = s->steps[at];

	return step_rank(x) > step_rank(y) && model_commute(&s->model[at - 1], &s->scope, x, y);
}

static void descend(struct search *s, int at);

static void try_step(struct search *s, int at, struct step step)
{
	if (!model_enabled(&s->model[at], &s->scope, step))
		return;
	s->steps[at] = step;
	if (at && redundant(s, at))
		return;
	s->model[at + 1] = s->model[at];
	model_apply(&s->model[at + 1], step);
	if (at + 1 == s->depth)
		finish_sequence(s);
	else if (!model_empty(&s->model[at + 1]))
		descend(s, at + 1);
}

static void descend(struct search *s, int at)
{
	struct step step;

	for (step.op = 0; step.op < OPS; step.op++) {
		for (step.proc = 0; step.proc < s->scope.procs; step.proc++) {
			for (step.buf = 0; step.buf < s->scope.bufs; step.buf++) {
				if (s->dry ? s->count > UNCOUNTABLE : search_is_over())
					return;
				try_step(s, at, step);
			}
		}
	}
}

static unsigned long search(struct search *s, int depth, bool dry)
{
	s->depth = depth;
	s->dry = dry;
	s->count = 0;
	s->model[0] = (struct model){ 0 };
	descend(s, 0);
	return s->count;
}

/**
 * struct job - the next depth of a scope
 * @search: the scope
 * @depth: next length
 * @count: number of sequences of that length
 */
struct job {
	struct search search;
	int depth;
	unsigned long count;
};

static void job_deepen(struct job *j)
{
	do {
		j->count = search(&j->search, ++j->depth, true);
	} while (!j->count && j->depth < 8);
}

/*
 * A longer sequence finds more defects than a larger scope: the count weighs more in a larger one.
 */
static unsigned long job_weight(const struct job *j)
{
	return j->count * j->search.scope.procs * j->search.scope.bufs;
}

static struct job *job_least(struct job *jobs, int n)
{
	struct job *least = &jobs[0];
	int i;

	for (i = 1; i < n; i++) {
		if (job_weight(&jobs[i]) < job_weight(least))
			least = &jobs[i];
	}
	return least;
}

static void job_print(const struct job *j, double seconds)
{
	printf("# %d processes, %d buffers, all of depth %d: %lu sequences, %.0f a second\n",
	       j->search.scope.procs, j->search.scope.bufs, j->depth, j->count, j->count / seconds);
	fflush(stdout);
}

/* Until the job with the least weight would exceed the time. */
static void all_orders(bool device)
{
	static struct job jobs[4];
	struct job *j;
	double start, rate = 50;
	int i;

	for (i = 0; i < 4; i++) {
		jobs[i].search.scope = (struct scope){ 1 + i % 2, 1 + i / 2, device };
		job_deepen(&jobs[i]);
	}
	while (!search_is_over()) {
		j = job_least(jobs, 4);
		start = now();
		if (j->count > rate * (deadline - start))
			break;
		search(&j->search, j->depth, false);
		if (search_is_over())
			break;
		job_print(j, now() - start);
		rate = played / (now() - begin);
		job_deepen(j);
	}
}

static int random_steps(uint64_t *state, const struct scope *scope, struct step *steps)
{
	struct model m = { 0 };
	int n = 0;

	while (n < WALK_STEPS) {
		struct step s;

		*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
		s = (struct step){ (*state >> 33) % OPS, (*state >> 45) % PROCS,
				   (*state >> 50) % BUFS };
		/* without this check half of the steps would close something */
		if ((s.op == KILL || s.op == SHUT) && (*state >> 55) % 4)
			continue;
		if (!model_enabled(&m, scope, s))
			continue;
		model_apply(&m, s);
		steps[n++] = s;
		if (model_empty(&m) && n > 4)
			break;
	}
	return n;
}

static unsigned long random_walks(bool device, uint64_t seed)
{
	const struct scope scope = { PROCS, BUFS, device };
	struct step steps[MAX_STEPS];
	unsigned long n;
	char name[32];

	for (n = 0; !search_is_over(); n++) {
		uint64_t state = seed + n * 0x9e3779b97f4a7c15;
		int count = random_steps(&state, &scope, steps);

		snprintf(name, sizeof(name), "walk.%lu", n);
		play_sequence(name, &scope, steps, count, n % 4, n % 8 == 7, true);
	}
	return n;
}

static int replay(const char *text, bool device)
{
	const struct scope scope = { PROCS, BUFS, device };
	struct step steps[MAX_STEPS];
	bool large = !strncmp(text, "large ", 6);
	struct model m = { 0 };
	int i, n = steps_parse(text + (large ? 6 : 0), steps, MAX_STEPS);

	for (i = 0; i < n && model_enabled(&m, &scope, steps[i]); i++)
		model_apply(&m, steps[i]);
	if (n < 0 || i < n) {
		fprintf(stderr, "lifetimes: step %d of '%s' cannot be done\n", i + 1, text);
		return 1;
	}
	printf("KTAP version 1\n1..1\n");
	return !tap_result(play_sequence("again", &scope, steps, n, 0, large, true), "sequence");
}

static int search_and_walk(double seconds, bool device)
{
	struct kernel_memory before, after;
	unsigned long n, orders;
	bool good = true;

	printf("KTAP version 1\n1..4\n");
	/* the first sequences fill caches */
	begin = now();
	deadline = begin + (seconds < 200 ? 2 + seconds / 20 : 12);
	random_walks(device, 7);
	before = kernel_memory();

	played = 0;
	begin = now();
	deadline = begin + seconds;
	all_orders(device);
	orders = played;
	good &= tap_result(!failures, "every_order_agrees_with_the_model");
	n = random_walks(device, 1);
	printf("# %lu sequences, %lu random walks, %.0f a second, %lu reloads\n", orders, n,
	       played / (now() - begin), reloads);
	good &= tap_result(played > orders || orders ? !failures : false,
			   "random_walks_agree_with_the_model");
	good &= tap_result(kernel_reload(player.wrong, sizeof(player.wrong)) && !reload_failed,
			   "module_unloads_and_loads_again");
	after = kernel_memory();
	good &= tap_result(kernel_memory_agrees(&before, &after, played), "memory_is_freed");
	return !good;
}

/* One process acts at a time: waking another processor is slow in an emulated machine. */
static void use_one_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

int main(int argc, char **argv)
{
	const char *text = argc > 1 ? argv[1] : getenv("LIFETIMES");
	bool device = !access("/dev/dri/card0", F_OK), is_time;
	double seconds = 120;
	char *end = NULL;

	if (text)
		seconds = strtod(text, &end);
	is_time = !text || !*end;
	use_one_cpu();
	if (!kernel_open() || !player_start(&player)) {
		fprintf(stderr, "lifetimes: no module, or no netlink\n");
		return 1;
	}
	deadline = now() + 1e9;
	return is_time ? search_and_walk(seconds, device) : replay(text, device);
}
