// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The thread pool of parallel_for. Workers start with the first call that needs them. A forked
 * child has none and starts its own. The pool runs one job at a time; a second caller finds it
 * taken and runs its range alone.
 *
 * A caller waits only for workers that have joined its job, and closes the job when no chunk is
 * left: a worker that wakes up later skips it. Parallel work is therefore never slower than the
 * caller alone, even on a busy machine.
 */
#include "iter/parallel.h"

#include "core/tensor_impl.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 256
/*
 * Polls before a waiter sleeps, about 20 ns each. A sleeping worker delays the next job by its
 * wake-up time, tens of microseconds. A sleeping caller leaves its processor to the thread that
 * runs its last chunk on a busy machine.
 */
#define SPIN_WORKER 10000
#define SPIN_CALLER 50000

#define SHARES_MAX 16

/* Adjacent chunks, on a cache line of their own. */
struct share {
	_Alignas(64) _Atomic int64_t next; /* next chunk to run */
	int64_t end;
};

/*
 * Each thread begins with a share of its own, the same one in every job of equal size, and goes on with those of others:
 * what a thread has read and written in one job is in its cache in the next.
 */
struct job {
	parallel_fn fn;
	void *ctx;
	int64_t begin, end, grain;
	int64_t chunks;
	int shares;
	struct share share[SHARES_MAX];
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	struct job *job;	 /* NULL: closed */
	_Atomic uint64_t serial; /* number of jobs so far; idle workers poll it */
	_Atomic int running;	 /* workers inside the job; changed under the lock */
	_Atomic int cpu;	 /* processor of the last caller */
	int workers;		 /* started so far */
	_Atomic int threads;	 /* wanted, including the caller; 0: not set */
	atomic_flag taken;
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
	.taken = ATOMIC_FLAG_INIT,
};

static __thread bool inside __attribute__((tls_model("initial-exec")));

static void run_share(struct job *j, struct share *s)
{
	int64_t i;

	while ((i = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->end) {
		int64_t from = j->begin + i * j->grain;
		int64_t to = from + j->grain;

		j->fn(from, to < j->end ? to : j->end, j->ctx);
	}
}

/* Runs chunks until none is left. `thread` is 0 for the caller, from 1 on for workers. */
static void run_chunks(struct job *j, int thread)
{
	inside = true;
	for (int i = 0; i < j->shares; i++)
		run_share(j, &j->share[(thread + i) % j->shares]);
	inside = false;
}

static void relax(void)
{
	__builtin_ia32_pause();
}

/*
 * A worker on the caller's processor competes with the caller, and the scheduler may leave it there
 * for tens of milliseconds while other processors are idle. Excluding that processor for a moment
 * migrates the worker.
 */
static void leave_caller(void)
{
	int cpu = sched_getcpu();
	cpu_set_t all, others;

	if (cpu < 0 || cpu != atomic_load(&pool.cpu) || sched_getaffinity(0, sizeof(all), &all))
		return;
	others = all;
	CPU_CLR(cpu, &others);
	if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof(others), &others))
		sched_setaffinity(0, sizeof(all), &all);
}

static void *worker(void *arg)
{
	int number = (int)(intptr_t)arg;
	uint64_t seen = 0;

	for (;;) {
		struct job *j;

		leave_caller();
		for (int i = 0; i < SPIN_WORKER && atomic_load(&pool.serial) == seen; i++)
			relax();
		pthread_mutex_lock(&pool.lock);
		while (atomic_load(&pool.serial) == seen)
			pthread_cond_wait(&pool.work, &pool.lock);
		seen = atomic_load(&pool.serial);
		j = pool.running < pool.threads - 1 ? pool.job : NULL;
		if (j)
			pool.running++;
		pthread_mutex_unlock(&pool.lock);
		if (!j)
			continue;
		run_chunks(j, number);
		pthread_mutex_lock(&pool.lock);
		if (!--pool.running)
			pthread_cond_signal(&pool.done);
		pthread_mutex_unlock(&pool.lock);
	}
	return NULL;
}

static void forget_workers(void)
{
	pthread_mutex_init(&pool.lock, NULL);
	pthread_cond_init(&pool.work, NULL);
	pthread_cond_init(&pool.done, NULL);
	pool.job = NULL;
	pool.running = 0;
	pool.workers = 0;
	atomic_flag_clear(&pool.taken);
	inside = false;
}

static pthread_once_t setup_once = PTHREAD_ONCE_INIT;

static void setup(void)
{
	const char *text = secure_getenv("TENSOR_NUM_THREADS");
	long n = text ? strtol(text, NULL, 10) : 0;

	if (n < 1)
		n = sysconf(_SC_NPROCESSORS_ONLN);
	if (!pool.threads)
		pool.threads = n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (int)n;
	pthread_atfork(NULL, NULL, forget_workers);
}

/* The caller holds pool.taken. Having fewer workers than wanted is not an error. */
static void start_workers(void)
{
	while (pool.workers < pool.threads - 1) {
		pthread_t t;

		if (pthread_create(&t, NULL, worker, (void *)(intptr_t)(pool.workers + 1)))
			return;
		pthread_detach(t);
		pool.workers++;
	}
}

static void divide(struct job *j)
{
	j->chunks = (j->end - j->begin + j->grain - 1) / j->grain;
	j->shares = pool.threads < SHARES_MAX ? pool.threads : SHARES_MAX;
	for (int i = 0; i < j->shares; i++) {
		j->share[i].next = j->chunks * i / j->shares;
		j->share[i].end = j->chunks * (i + 1) / j->shares;
	}
}

/* Not inlined: most calls of parallel_for() have a single chunk and need no shares on the stack. */
static __attribute__((noinline)) void run_job(int64_t begin, int64_t end, int64_t grain,
					      parallel_fn fn, void *ctx)
{
	struct job j = { .fn = fn, .ctx = ctx, .begin = begin, .end = end, .grain = grain };

	divide(&j);
	start_workers();
	atomic_store(&pool.cpu, sched_getcpu());
	pthread_mutex_lock(&pool.lock);
	pool.job = &j;
	atomic_fetch_add(&pool.serial, 1);
	pthread_cond_broadcast(&pool.work);
	pthread_mutex_unlock(&pool.lock);

	run_chunks(&j, 0);

	pthread_mutex_lock(&pool.lock);
	pool.job = NULL;
	pthread_mutex_unlock(&pool.lock);
	for (int i = 0; i < SPIN_CALLER && atomic_load(&pool.running); i++)
		relax();
	/* Taking the lock also waits for a worker that has decremented `running` and is about to
	 * signal. */
	pthread_mutex_lock(&pool.lock);
	while (pool.running)
		pthread_cond_wait(&pool.done, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

void parallel_for(int64_t begin, int64_t end, int64_t grain, parallel_fn fn, void *ctx)
{
	if (begin >= end)
		return;
	if (end - begin > grain && !inside) {
		pthread_once(&setup_once, setup);
		if (pool.threads > 1 && !atomic_flag_test_and_set(&pool.taken)) {
			run_job(begin, end, grain, fn, ctx);
			atomic_flag_clear(&pool.taken);
			return;
		}
	}
	for (int64_t i = begin; i < end; i += grain)
		fn(i, i + grain < end ? i + grain : end, ctx);
}

TENSOR_EXPORT int tensor_set_num_threads(int n)
{
	if (n < 1 || n > THREADS_MAX)
		return tensor_fail(EINVAL, "set_num_threads: 1 to %d, got %d", THREADS_MAX, n);
	pthread_once(&setup_once, setup);
	pool.threads = n;
	return 0;
}

TENSOR_EXPORT int tensor_get_num_threads(void)
{
	pthread_once(&setup_once, setup);
	return pool.threads;
}
