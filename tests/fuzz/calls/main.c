// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Calls every operator with hostile arguments through the boxed call. Results are not compared: a
 * call succeeds or fails with an error, and leaves no tensor behind. Built with sanitizers.
 *
 *	fuzz-calls [--calls N] [--seed S] [--first N] [--op NAME] [--round NAME]
 *
 * Without --round all rounds run, each with its share of the calls:
 *
 *	plain		the arguments as generated
 *	writer		another thread writes to the arguments during the call, as a process can
 *			that shares their memory
 *	autograd	inputs require gradients; backward from the results, then backward
 *			through the gradients
 *	without-memory	each call is repeated with its first allocation failing, its second, ...
 *	fork		at intervals a forked child makes the call first
 *
 * The arguments of a call depend only on the seed, the round and its number: --round NAME --first N
 * --calls 1 repeats one. The calls run in child processes, some thousand each, so that a crash does
 * not end the run. At the end of each child LeakSanitizer reports leaks.
 */
#include "fail.h"
#include "values.h"
#include "writer.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define A_CHILD	      5000
#define RESULTS	      8
#define ARGS	      24
#define SECONDS	      20  /* processor time of a call; the elapsed time is 15 times this */
#define TRIES_SECONDS 4	  /* limit for all repetitions of a call without memory */
#define ALLOCATIONS   100 /* allocations of a call that fail in turn */
#define FORKS	      100 /* number of calls between two that a child makes */
#define COUNTED	      64  /* calls between two counts of live tensors */
#define BADS_MAX      20

/* The position of the run, shared between this process and its child. */
static struct {
	_Atomic uint64_t call, made, refused;
	char op[96];
} * shared;

static uint64_t seed = 1, count_every = COUNTED;

static const struct round {
	const char *name;
	double share; /* of all calls; without-memory repeats each call once per allocation */
	bool writer, autograd, without_memory, forks;
} rounds[] = {
	{ .name = "plain", .share = 0.4 },
	{ .name = "writer", .share = 0.2, .writer = true },
	{ .name = "autograd", .share = 0.25, .autograd = true },
	{ .name = "without-memory", .share = 0.1, .without_memory = true },
	{ .name = "fork", .share = 0.05, .forks = true },
};

static const struct round *round_now;

/* ---- a call ---- */

/* Reads all elements of a result. */
static void read_elements(tensor *t)
{
	char text[256];

	tensor_format(t, text, sizeof(text));
}

/* Backward from the result to all leaves; `again`: with create_graph. */
static void run_backward(tensor *t, bool again)
{
	tensor *sum;

	/* Expanded tensors are excluded: they may have any number of elements. */
	if (!tensor_requires_grad(t) || tensor_layout(t) != TENSOR_STRIDED ||
	    tensor_numel(t) > 1 << 16)
		return;
	sum = tensor_sum(t);
	if (sum)
		tensor_backward_ex(TENSOR_LIST(sum), NULL, (tensor_list){ 0 }, NULL,
				   again ? TENSOR_CREATE_GRAPH : 0);
	tensor_release(sum);
}

/*
 * Backward through the graph that go_back() recorded. The gradients' graphs refer to the leaves
 * that hold them: a cycle.
 */
static void run_backward_through_gradients(struct arguments *a)
{
	for (int i = 0; i < a->nowned; i++) {
		tensor *g = tensor_grad(a->owned[i]);

		if (g && one_in(a, 2))
			run_backward(g, false);
	}
	for (int i = 0; i < a->nowned; i++)
		if (tensor_grad(a->owned[i]))
			tensor_set_grad(a->owned[i], NULL);
}

/* True for every second call without memory and for all calls of round autograd. */
static bool gradients_wanted(uint64_t number)
{
	return round_now->autograd || (round_now->without_memory && number % 2);
}

/* In-place and out forms return their argument. */
static bool returns_argument(const struct tensor_schema *s)
{
	return strstr(strstr(s->text, "->"), "!)");
}

static void use_result(struct arguments *a, const tensor_value *v, const struct tensor_schema *s)
{
	if (v->kind != TENSOR_VALUE_TENSOR || !v->t)
		return;
	if (one_in(a, 4))
		read_elements(v->t);
	if (gradients_wanted(shared->call) || one_in(a, 3))
		run_backward(v->t, gradients_wanted(shared->call) && one_in(a, 2));
	if (!returns_argument(s))
		tensor_release(v->t);
}

/*
 * A call that sleeps uses no processor time, and a call that computes takes longer on a busy
 * machine: both times are limited.
 */
static void limit_time(void)
{
	const struct itimerval busy = { .it_value = { .tv_sec = SECONDS } };

	setitimer(ITIMER_PROF, &busy, NULL);
	alarm(15 * SECONDS);
}

/*
 * fail: the number of the allocation that fails, 0 for none. Returns whether an allocation failed.
 */
static bool make_call(const tensor_op *op, uint64_t number, long fail)
{
	const struct tensor_schema *s = tensor_op_schema(op);
	static struct arguments a;
	tensor_value args[ARGS], rets[RESULTS] = { 0 };
	int n = s->nargs, nrets = s->nreturns;
	bool failed, ran_out;

	limit_time();
	arguments_begin(&a, seed ^ number * 0x2545f4914f6cdd1du, gradients_wanted(number));
	for (int i = 0; i < s->nargs; i++)
		args[i] = any_value(&a, &s->args[i]);
	if (one_in(&a, 100))
		n = (int)below(&a, n + 1);
	if (nrets == TENSOR_RETURNS_LIST)
		nrets = (int)below(&a, RESULTS + 1);
	fail_at(fail);
	failed = tensor_op_call(op, args, n, rets, nrets) < 0;
	shared->refused += failed;
	for (int i = 0; i < nrets && !failed; i++)
		use_result(&a, &rets[i], s);
	run_backward_through_gradients(&a);
	ran_out = fail_end();
	arguments_end(&a);
	shared->made++;
	return ran_out;
}

/* Repeats the call with the first allocation failing, then the second, and so on. */
static void make_call_without_memory(const tensor_op *op, uint64_t number)
{
	clock_t end = clock() + TRIES_SECONDS * CLOCKS_PER_SEC;

	for (long n = 1; n <= ALLOCATIONS && clock() < end && make_call(op, number, n); n++)
		;
}

/* A child makes the same call, whatever locks other threads hold at the fork. */
static void make_call_in_child(const tensor_op *op, uint64_t number)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		make_call(op, number, 0);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) == pid && status)
		_exit(7);
}

#if defined(__SANITIZE_ADDRESS__)
/* Too large allocations return NULL, as without the sanitizer, and print no warning. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "max_allocation_size_mb=256:allocator_may_return_null=1:detect_leaks=1";
}
#endif

/* ---- leaks ---- */

static struct tensor_live_counts live_before;

/* Ends the process if a call left a tensor or a storage. */
static void check_live(uint64_t call)
{
	struct tensor_live_counts now;

	tensor_live_counts(&now);
	if (now.tensors == live_before.tensors && now.storages == live_before.storages)
		return;
	fprintf(stderr,
		"fuzz-calls: %lld tensors and %lld storages are left at call %llu, or up to %llu before\n",
		(long long)(now.tensors - live_before.tensors),
		(long long)(now.storages - live_before.storages), (unsigned long long)call,
		(unsigned long long)count_every - 1);
	_exit(6);
}

static void limit_memory(void)
{
	const struct rlimit buffer = { 256 << 20, 256 << 20 };
#if !defined(__SANITIZE_ADDRESS__)
	const struct rlimit all = { 1 << 30, 1 << 30 };

	setrlimit(RLIMIT_AS, &all);
#endif
	setrlimit(RLIMIT_FSIZE, &buffer);
}

static void call_timed_out(int signal)
{
	static const char text[] = "fuzz-calls: the call does not end\n";

	_exit(write(2, text, sizeof(text) - 1) < 0 ? 9 : 8);
}

static const tensor_op *op_of(uint64_t number, const char *name)
{
	int count;
	const tensor_op *const *ops = tensor_op_list(&count);

	return name ? tensor_op_find(name) : ops[number % (uint64_t)count];
}

/* Opens plugins before allocations fail: otherwise their first use would open them. */
static void load_libraries(void)
{
	tensor *t = tensor_eye(2, TENSOR_OPTIONS(0));

	tensor_release(tensor_to_mkldnn(t, TENSOR_DTYPE_NONE));
	tensor_release(tensor_det(t));
	tensor_release(t);
	tensor_clear_error();
	fail_spare_others();
}

static void make_calls(uint64_t first, uint64_t end, const char *name)
{
	struct sigaction action = { .sa_handler = call_timed_out };

	load_libraries();
	limit_memory();
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGPROF, &action, NULL);
	writer_start();
	tensor_live_counts(&live_before);
	for (uint64_t i = first; i < end; i++) {
		const tensor_op *op = op_of(i, name);

		shared->call = i;
		snprintf(shared->op, sizeof(shared->op), "%s", tensor_op_schema(op)->name);
		if (round_now->forks && i % FORKS == 0)
			make_call_in_child(op, i);
		make_call(op, i, 0);
		if (round_now->without_memory)
			make_call_without_memory(op, i);
		if ((i + 1) % count_every == 0)
			check_live(i);
	}
	setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	alarm(0);
	tensor_cache_trim();
}

/* ---- rounds ---- */

/* False: the child crashed or exited with a status other than 0. */
static bool run_in_child(uint64_t first, uint64_t end, const char *name)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		make_calls(first, end, name);
		exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	printf("# %s, call %llu of seed %llu: %s %d\n", shared->op,
	       (unsigned long long)shared->call, (unsigned long long)seed,
	       WIFEXITED(status) ? "exit" : "signal",
	       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return false;
}

/* Returns the number of children that failed. */
static int run_round(int n, uint64_t first, uint64_t calls, const char *name)
{
	time_t start = time(NULL);
	int bad = 0;

	writer_runs = round_now->writer;
	shared->made = shared->refused = 0;
	for (uint64_t at = first; at < first + calls && bad < BADS_MAX;) {
		uint64_t end = at + A_CHILD < first + calls ? at + A_CHILD : first + calls;

		shared->call = at;
		if (run_in_child(at, end, name)) {
			at = end;
		} else {
			bad++;
			at = shared->call + 1;
		}
	}
	printf("%sok %d - %s: %llu calls, seed %llu, %llu refused, %lld seconds, %d bad\n",
	       bad ? "not " : "", n, round_now->name, (unsigned long long)shared->made,
	       (unsigned long long)seed, (unsigned long long)shared->refused,
	       (long long)(time(NULL) - start), bad);
	return bad;
}

static const struct round *round_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++)
		if (!strcmp(rounds[i].name, name))
			return &rounds[i];
	return NULL;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: fuzz-calls [--calls N] [--seed S] [--first N] [--op NAME] [--round NAME]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "calls", 1, NULL, 'c' }, { "seed", 1, NULL, 's' },  { "first", 1, NULL, 'f' },
		{ "op", 1, NULL, 'o' },	   { "round", 1, NULL, 'r' }, { NULL },
	};
	uint64_t first = 0, calls = 100000;
	const struct round *only = NULL;
	const char *name = NULL;
	int c, bad = 0, n = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			calls = strtoull(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			first = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			name = optarg;
			break;
		case 'r':
			only = round_find(optarg);
			if (!only)
				return usage();
			break;
		default:
			return usage();
		}
	}
	if (optind < argc || (name && !tensor_op_find(name)))
		return usage();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	if (calls <= COUNTED)
		count_every = 1;
	for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++) {
		round_now = &rounds[i];
		if (only && round_now != only)
			continue;
		bad += run_round(++n, first, only ? calls : (uint64_t)(calls * round_now->share),
				 name);
	}
	return bad > 0;
}
