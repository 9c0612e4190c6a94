// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Calls every operator with hostile arguments, by the boxed call. Nothing is compared: a call may succeed
 * or fail with an error, and nothing else. Build it with sanitizers.
 *
 *	fuzz-calls [--calls N] [--seed S] [--first N] [--op NAME] [--fork N] [--without-memory]
 *	           [--writer | --no-writer]
 *
 * --fork N: before every Nth call a child of this process makes it. --without-memory: each call is made again
 * with its first allocation failing, with its second, and so on; not under a sanitizer. --writer: another thread
 * writes to the arguments meanwhile, as a process can with which they are shared. Without an option that says
 * how the calls are made, half of them have such a writer.
 *
 * The arguments of a call depend on the seed and its number alone: --first N --calls 1 repeats one. The
 * calls run in child processes, some thousand each, so that one that ends its process does not end the run.
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define A_CHILD	  5000
#define RESULTS	  8
#define ARGS	  24
#define SECONDS	  20 /* that a call may take */
#define ALLOCATIONS 100 /* of a call that fail in turn */
#define BADS_MAX  20

/* Of this process and its child: where that is. */
static struct {
	_Atomic uint64_t call, made, refused;
	char op[96];
} *shared;

static uint64_t seed = 1, forks;
static bool without_memory;

/* ---- a call ------------------------------------------------------------------------------------------ */

/* Reads what came, all of it. */
static void look_at(tensor *t)
{
	char text[256];

	tensor_format(t, text, sizeof(text));
}

/* From the result to whatever requires a gradient. */
static void go_back(tensor *t)
{
	tensor *sum;

	if (!tensor_requires_grad(t) || tensor_layout(t) != TENSOR_STRIDED)
		return;
	sum = tensor_sum(t);
	if (sum)
		tensor_backward(sum);
	tensor_release(sum);
}

static void one_result(struct arguments *a, const tensor_value *v, const tensor_value *args, int nargs)
{
	if (v->kind != TENSOR_VALUE_TENSOR || !v->t)
		return;
	if (one_in(a, 4))
		look_at(v->t);
	if (one_in(a, 3))
		go_back(v->t);
	/* In-place and out forms give back what they were given. */
	for (int i = 0; i < nargs; i++)
		if (args[i].kind == TENSOR_VALUE_TENSOR && args[i].t == v->t)
			return;
	tensor_release(v->t);
}

/* fail: the allocation that fails, 0 for none. True: it came to that. */
static bool make_call(const tensor_op *op, uint64_t number, long fail)
{
	const struct tensor_schema *s = tensor_op_schema(op);
	static struct arguments a;
	tensor_value args[ARGS], rets[RESULTS] = {0};
	int n = s->nargs, nrets = s->nreturns;
	bool failed, ran_out;

	arguments_begin(&a, seed ^ number * 0x2545f4914f6cdd1du);
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
		one_result(&a, &rets[i], args, n);
	ran_out = fail_end();
	arguments_end(&a);
	shared->made++;
	return ran_out;
}

/* Again and again, with the first allocation failing, with the second ... */
static void make_call_without_memory(const tensor_op *op, uint64_t number)
{
	for (long n = 1; n <= ALLOCATIONS && make_call(op, number, n); n++)
		;
}

/* A child makes the same call, whatever other threads are at. */
static void make_call_in_child(const tensor_op *op, uint64_t number)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(SECONDS);
		make_call(op, number, 0);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) == pid && status)
		_exit(7);
}

#if defined(__SANITIZE_ADDRESS__)
/* What is too large fails, as without the sanitizer. Its leak checker does not get on with children. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "max_allocation_size_mb=256:allocator_may_return_null=1:detect_leaks=0";
}
#endif

static void limit_memory(void)
{
	const struct rlimit buffer = {256 << 20, 256 << 20};
#if !defined(__SANITIZE_ADDRESS__)
	const struct rlimit all = {1 << 30, 1 << 30};

	setrlimit(RLIMIT_AS, &all);
#endif
	setrlimit(RLIMIT_FSIZE, &buffer);
}

static void late(int signal)
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

static void run(uint64_t first, uint64_t end, const char *name)
{
	struct sigaction action = {.sa_handler = late};

	limit_memory();
	sigaction(SIGALRM, &action, NULL);
	writer_start();
	for (uint64_t i = first; i < end; i++) {
		const tensor_op *op = op_of(i, name);

		shared->call = i;
		snprintf(shared->op, sizeof(shared->op), "%s", tensor_op_schema(op)->name);
		alarm(2 * SECONDS);
		if (forks && i % forks == 0)
			make_call_in_child(op, i);
		make_call(op, i, 0);
		if (without_memory)
			make_call_without_memory(op, i);
	}
	alarm(0);
	tensor_cache_trim();
}

/* ---- all of them ---------------------------------------------------------------------------------------- */

/* False: the child ended otherwise than by itself. */
static bool run_in_child(uint64_t first, uint64_t end, const char *name)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		run(first, end, name);
		exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	printf("# %s, call %llu of seed %llu: %s %d\n", shared->op,
	       (unsigned long long)shared->call, (unsigned long long)seed,
	       WIFEXITED(status) ? "exit" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return false;
}

/* All calls with the writer, or all without; the number of children that ended otherwise than by themselves. */
static int run_all(int n, uint64_t first, uint64_t calls, const char *name)
{
	time_t start = time(NULL);
	int bad = 0;

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
	printf("%sok %d - %llu calls%s, seed %llu, %llu refused, %lld seconds, %d bad\n", bad ? "not " : "",
	       n, (unsigned long long)shared->made, writer_runs ? " beside a writer" : "",
	       (unsigned long long)seed, (unsigned long long)shared->refused,
	       (long long)(time(NULL) - start), bad);
	return bad;
}

static int usage(void)
{
	fprintf(stderr, "usage: fuzz-calls [--calls N] [--seed S] [--first N] [--op NAME] [--fork N] "
			"[--without-memory] [--writer | --no-writer]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"calls", 1, NULL, 'c'}, {"seed", 1, NULL, 's'}, {"first", 1, NULL, 'f'},
		{"op", 1, NULL, 'o'}, {"fork", 1, NULL, 'k'}, {"without-memory", 0, NULL, 'm'},
		{"writer", 0, NULL, 'w'}, {"no-writer", 0, NULL, 'n'}, {NULL},
	};
	uint64_t first = 0, calls = 100000;
	const char *name = NULL;
	bool both = true;
	int c, bad;

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
			both = false;
			break;
		case 'o':
			name = optarg;
			break;
		case 'k':
			forks = strtoull(optarg, NULL, 0);
			both = false;
			break;
		case 'm':
			without_memory = fail_possible;
			blocked_too = !without_memory;
			both = false;
			break;
		case 'w':
			writer_runs = true;
			both = false;
			break;
		case 'n':
			both = false;
			break;
		default:
			return usage();
		}
	}
	if (optind < argc || (name && !tensor_op_find(name)))
		return usage();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (both)
		calls /= 2;
	bad = run_all(1, first, calls, name);
	if (both) {
		writer_runs = true;
		bad += run_all(2, first, calls, name);
	}
	return bad > 0;
}
