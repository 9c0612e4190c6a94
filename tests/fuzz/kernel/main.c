// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fuzzes the module inside a guest, guided by coverage.
 *
 *	fuzz [--calls N] [--seconds N] [--seed N] [--out FILE] [--run] [CORPUS...]
 *
 * Makes N calls in workers, which are replaced when they end or die. CORPUS: files of initial
 * programs. --out: the file for programs that were kept; those that ran when the kernel printed a
 * report, or that did not return, are written to FILE.bad. --run: runs the programs of CORPUS once
 * and prints the result of every call. The same seed and corpus give the same programs as long as
 * coverage is the same, which interrupts and threads change.
 *
 * Prints KTAP: no report was printed, every program ended, no buffer is left, the memory was freed.
 */
#include <getopt.h>
#include <sys/wait.h>

#include "../../kselftest/include/device.h"
#undef PAGE
#include "fuzz.h"

#define PATIENCE    30 /* limit of a program in seconds */
#define REPORTS_MAX 20

static struct shared *shared;
static struct {
	unsigned long calls, seconds;
	uint64_t seed;
	const char *out;
	bool run;
} opt = { .calls = 20000, .seconds = 3600, .seed = 1 };
static unsigned int reports, hangs, deaths;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void corpus_read(const char *path)
{
	FILE *f = fopen(path, "re");
	const char *why;
	int got = 0;

	if (!f) {
		fprintf(stderr, "fuzz: %s: %m\n", path);
		exit(2);
	}
	while (shared->corpus_nr < CORPUS_MAX &&
	       (got = prog_read(f, &shared->corpus[shared->corpus_nr], &why)) > 0)
		shared->corpus_nr++;
	fclose(f);
	if (got < 0) {
		fprintf(stderr, "fuzz: %s: %s\n", path, why);
		exit(2);
	}
}

static void corpus_write(void)
{
	FILE *f = opt.out ? fopen(opt.out, "we") : NULL;
	unsigned int i;

	for (i = 0; f && i < shared->corpus_nr; i++)
		prog_print(f, &shared->corpus[i]);
	if (f)
		fclose(f);
}

/* Writes the program that was running to the .bad file. */
static void save_program(const char *why)
{
	char path[256];
	FILE *f = NULL;

	printf("# %s:\n", why);
	prog_print(stdout, &shared->now);
	fflush(stdout);
	if (opt.out) {
		snprintf(path, sizeof(path), "%s.bad", opt.out);
		f = fopen(path, "ae");
	}
	if (!f)
		return;
	fprintf(f, "# %s\n", why);
	prog_print(f, &shared->now);
	fclose(f);
}

static void progress(double since, bool last)
{
	static double told;
	double t = now();

	if (!last && t - told < 15)
		return;
	told = t;
	printf("# %lu calls, %.0f a second, %u places, %u edges, corpus %u, %u reports, %u hangs, %u deaths\n",
	       shared->calls, shared->calls / (t - since + 1e-9), shared->signal.places_nr,
	       shared->signal.edges_nr, shared->corpus_nr, reports, hangs, deaths);
	fflush(stdout);
}

/* Waits for a worker while its programs make progress. */
static void supervise(pid_t pid, double since)
{
	unsigned long beat = 0;
	double moved = now();
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (shared->beat != beat) {
			beat = shared->beat;
			moved = now();
		}
		if (now() - moved > PATIENCE) {
			hangs++;
			save_program("the program does not end");
			kill(pid, SIGKILL);
			moved = now();
		}
		progress(since, false);
		sleep_ms(20);
	}
	if (shared->reported) {
		reports++;
		save_program("the kernel printed a report");
	} else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
		deaths++;
		save_program(strsignal(WTERMSIG(status)));
	} else if (WIFSIGNALED(status)) {
		/* an oops kills a process in the same way; the log has the report */
		reports += kernel_log_bad(stdout);
		save_program("the worker was killed");
	}
	shared->reported = false;
}

static void run_worker(void (*what)(struct shared *), uint64_t seed, double since)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid && what)
		what(shared);
	if (!pid)
		worker(shared, seed, opt.calls);
	supervise(pid, since);
}

static void fuzz(void)
{
	double since = now();
	struct rng rng = { opt.seed };

	shared->deadline_ns = (since + opt.seconds) * 1e9;
	while (shared->calls < opt.calls && now() - since < opt.seconds && reports < REPORTS_MAX &&
	       hangs + deaths < REPORTS_MAX)
		run_worker(NULL, rng_next(&rng), since);
	progress(since, true);
}

static void print_calls(void)
{
	unsigned int i;

	for (i = 0; i < call_types_nr; i++)
		printf("# %-12s %9lu made %9lu without an error %7lu us each\n", call_types[i].name,
		       shared->made[i], shared->worked[i],
		       shared->ns[i] / 1000 / (shared->made[i] + !shared->made[i]));
	printf("# %-12s %9lu times %43lu us each\n", "cleaning up", shared->progs,
	       shared->ns[CALL_TYPES_MAX] / 1000 / (shared->progs + !shared->progs));
}

static bool print_result(int n, bool good, const char *what)
{
	printf("%s %d fuzz.%s\n", good ? "ok" : "not ok", n, what);
	return good;
}

static bool print_results(int dev, int64_t free_before)
{
	bool good = true;

	good &= print_result(1, shared->calls >= opt.calls, "all_calls_were_made");
	good &= print_result(2, !reports, "kernel_log_has_no_report");
	good &= print_result(3, !hangs && !deaths, "every_program_ends");
	good &= print_result(4, used_becomes(dev, 0), "no_buffer_is_left");
	good &= print_result(5, pages_agree(free_before, pages_free(), shared->progs),
			     "memory_is_freed");
	return good;
}

static void parse_options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "calls", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 's' },
		{ "out", required_argument, NULL, 'o' },
		{ "run", no_argument, NULL, 'r' },
		{ NULL },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		switch (c) {
		case 'c':
			opt.calls = strtoul(optarg, NULL, 0);
			break;
		case 't':
			opt.seconds = strtoul(optarg, NULL, 0);
			break;
		case 's':
			opt.seed = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			opt.out = optarg;
			break;
		case 'r':
			opt.run = true;
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct tensor_alloc stays;
	int64_t free_before;
	int dev;

	parse_options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	dev = dev_open();
	if (shared == MAP_FAILED || dev < 0) {
		fprintf(stderr, "fuzz: cannot allocate memory or open the device\n");
		return 2;
	}
	kernel_log_bad(stdout);
	for (; optind < argc; optind++)
		corpus_read(argv[optind]);
	if (opt.run) {
		run_worker(worker_tell, 0, now());
		return reports || hangs || deaths;
	}
	shared->deadline_ns = -1ULL;
	printf("KTAP version 1\n1..5\n# seed %#lx, %u initial programs\n", opt.seed,
	       shared->corpus_nr);
	run_worker(worker_admit, 0, now());
	free_before = pages_free();
	/*
	 * the first and the last buffer mount and unmount a filesystem, which waits for grace
	 * periods: this one stays
	 */
	if (dev_alloc(dev, PAGE, &stays))
		return 2;
	fuzz();
	dev_close(dev, stays.handle);
	print_calls();
	corpus_write();
	return !print_results(dev, free_before);
}
