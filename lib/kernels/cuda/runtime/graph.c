// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Graphs: begin and end of a capture, replay, release. */
#include "kernels/cuda/runtime/graph.h"

#include "base/generator.h"
#include "kernels/cuda/launch_graph.h"
#include "kernels/cuda/launch_words.h"

#include <stdlib.h>

_Static_assert(CUDA_WORDS_MOST >= 4 * GRAPH_GENERATORS && CUDA_WORDS_MOST >= 4 * CUDA_STEP_ITEMS,
	       "a launch sets all words of a table");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct graph_pool *unused; /* pools without graphs, for their streams */

static void lock_pools(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_pools(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void graph_init(void)
{
	pthread_atfork(lock_pools, unlock_pools, unlock_pools);
}

/* ---- pools ---- */

static struct graph_pool *pool_make(int device)
{
	struct graph_pool *p = calloc(1, sizeof(*p));
	cudaError_t err;

	if (!p) {
		tensor_fail(ENOMEM, "cuda_graph_capture_begin: no memory");
		return NULL;
	}
	p->device = device;
	err = cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking);
	if (err == cudaSuccess) {
		err = cudaEventCreateWithFlags(&p->last, cudaEventDisableTiming);
		if (err != cudaSuccess)
			cudaStreamDestroy(p->stream);
	}
	if (err == cudaSuccess)
		return p;
	cuda_error("cuda_graph_capture_begin", err);
	free(p);
	return NULL;
}

static struct graph_pool *pool_new(int device)
{
	static atomic_ullong owners;
	struct graph_pool **at = &unused, *p;

	lock_pools();
	while ((p = *at) && p->device != device)
		at = &p->next;
	if (p)
		*at = p->next;
	unlock_pools();
	if (!p)
		p = pool_make(device);
	if (p) {
		p->refs = 1;
		p->owner = atomic_fetch_add(&owners, 1) + 1;
		p->recorded = false;
	}
	return p;
}

static void pool_put(struct graph_pool *p)
{
	bool last;

	lock_pools();
	last = !--p->refs;
	unlock_pools();
	if (!last)
		return;
	cuda_memory_end_owner(p->device, p->owner);
	lock_pools();
	p->next = unused;
	unused = p;
	unlock_pools();
}

/* ---- a graph ---- */

static int graph_new(int device, tensor_cuda_graph **to)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_graph_new", device);
	tensor_cuda_graph *g;

	if (err)
		return err;
	cuda_end(&c, 0);
	g = calloc(1, sizeof(*g));
	if (!g)
		return tensor_fail(ENOMEM, "cuda_graph_new: no memory");
	g->device = device;
	*to = g;
	return 0;
}

/* Waits until the work of the last replay of the pool is done. The calling thread may have a capture of its own. */
static cudaError_t wait_for_last(const struct tensor_cuda_graph *g)
{
	const enum cudaStreamCaptureMode before = cuda_relax();
	cudaError_t err = cudaSuccess;

	if (g->pool && g->pool->recorded)
		err = cudaEventSynchronize(g->pool->last);
	cuda_unrelax(before);
	return err;
}

static int graph_reset(tensor_cuda_graph *g)
{
	struct cuda_call c;
	int err;

	if (g->state == GRAPH_CAPTURING && !pthread_equal(g->thread, pthread_self()))
		return tensor_fail(EBUSY, "cuda_graph_reset: another thread captures it");
	err = cuda_begin(&c, "cuda_graph_reset", g->device);
	if (err)
		return err;
	if (g->state == GRAPH_CAPTURING)
		capture_close(g, NULL);
	err = cuda_check(c.op, wait_for_last(g));
	if (g->exec)
		cudaGraphExecDestroy(g->exec);
	g->exec = NULL;
	capture_forget(g);
	if (g->pool)
		pool_put(g->pool);
	g->pool = NULL;
	g->state = GRAPH_EMPTY;
	c.capture = NULL;
	return cuda_end(&c, err);
}

/* In a child everything of CUDA belongs to the parent. */
static int graph_release(tensor_cuda_graph *g)
{
	struct tensor_error before = *tensor_last_error();
	int err = 0;

	if (cuda_forked)
		capture_forget(g);
	else
		err = graph_reset(g);
	if (err == -EBUSY)
		return err;
	tensor_fail(before.code, "%s", before.text);
	free(g);
	return 0;
}

/* ---- capture ---- */

static int check_pool(const tensor_cuda_graph *g, const tensor_cuda_graph *with)
{
	if (!with->pool)
		return tensor_fail(EINVAL,
				   "cuda_graph_capture_begin: the graph whose memory is to be "
				   "shared has none: it was not captured");
	if (with->device != g->device)
		return tensor_fail(EINVAL,
				   "cuda_graph_capture_begin: a graph on cuda:%d cannot share "
				   "memory of cuda:%d",
				   g->device, with->device);
	if (with->pool->capturing)
		return tensor_fail(EBUSY,
				   "cuda_graph_capture_begin: a graph that shares the memory "
				   "is being captured");
	return 0;
}

static int add_generator(tensor_cuda_graph *g, tensor_generator *generator)
{
	for (int i = 0; i < g->ngenerators; i++)
		if (g->generator[i].g == generator)
			return 0;
	if (g->ngenerators == GRAPH_GENERATORS)
		return tensor_fail(ENOSPC, "cuda_graph_register_generator: a graph has at most %d",
				   GRAPH_GENERATORS);
	g->generator[g->ngenerators].used = 0;
	g->generator[g->ngenerators++].g = tensor_generator_retain(generator);
	return 0;
}

static int graph_register_generator(tensor_cuda_graph *g, tensor_generator *generator)
{
	if (g->state != GRAPH_EMPTY &&
	    (g->state != GRAPH_CAPTURING || !pthread_equal(g->thread, pthread_self())))
		return tensor_fail(EBUSY, "cuda_graph_register_generator: the graph was captured");
	return add_generator(g, generator ? generator : tensor_default_generator());
}

static int graph_capture_begin(tensor_cuda_graph *g, tensor_cuda_graph *with)
{
	struct cuda_call c;
	int err;

	if (g->state != GRAPH_EMPTY)
		return tensor_fail(EBUSY, "cuda_graph_capture_begin: the graph %s; reset it first",
				   g->state == GRAPH_CAPTURING ? "is being captured" :
								 "was captured");
	err = with ? check_pool(g, with) : 0;
	if (!err)
		err = cuda_begin(&c, "cuda_graph_capture_begin", g->device);
	if (err)
		return err;
	if (with) {
		lock_pools();
		g->pool = with->pool;
		g->pool->refs++;
		unlock_pools();
	} else {
		g->pool = pool_new(g->device);
	}
	err = g->pool ? add_generator(g, tensor_default_generator()) : -tensor_last_error()->code;
	if (!err)
		err = capture_open(g);
	if (err && g->pool) {
		pool_put(g->pool);
		g->pool = NULL;
	}
	c.capture = NULL;
	return cuda_end(&c, err);
}

/* The next replay follows what the thread has queued: memory of the graph comes from its stream. */
static int follow(const struct cuda_call *c, struct graph_pool *p)
{
	int err = 0;

	if (p->recorded)
		err = cuda_check(c->op, cudaStreamWaitEvent(c->stream, p->last, 0));
	if (!err)
		err = cuda_check(c->op, cudaEventRecord(p->last, c->stream));
	p->recorded |= !err;
	return err;
}

static int end(struct cuda_call *c, tensor_cuda_graph *g)
{
	cudaGraph_t graph = NULL;
	cudaError_t status = capture_close(g, &graph);
	int err;

	g->state = GRAPH_BROKEN;
	c->stream = g->before;
	c->capture = NULL;
	if (status != cudaSuccess)
		return cuda_error(c->op, status);
	err = g->lost ? tensor_fail(ENOMEM, "%s: no memory", c->op) : 0;
	if (!err)
		err = cuda_check(c->op, cudaGraphInstantiate(&g->exec, graph, 0));
	cudaGraphDestroy(graph);
	if (!err)
		err = follow(c, g->pool);
	if (!err)
		g->state = GRAPH_READY;
	return err;
}

static int graph_capture_end(tensor_cuda_graph *g)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_graph_capture_end", g->device);

	if (err)
		return err;
	if (g->state == GRAPH_BROKEN)
		err = tensor_fail(ECANCELED, "%s: the capture had ended: %s", c.op, g->why.text);
	else if (g->state != GRAPH_CAPTURING)
		err = tensor_fail(EINVAL, "%s: the graph is not being captured", c.op);
	else if (!pthread_equal(g->thread, pthread_self()))
		err = tensor_fail(EBUSY, "%s: another thread captures it", c.op);
	else
		err = end(&c, g);
	if (err && g->state == GRAPH_BROKEN)
		g->why = *tensor_last_error();
	c.capture = NULL;
	return cuda_end(&c, err);
}

/* ---- replay ---- */

/* Adds the steps of the capture to the first n places of the counts, or subtracts them. */
static int count(const tensor_cuda_graph *g, size_t n, float sign)
{
	for (size_t i = 0; i < n; i++) {
		float *steps = g->counts[i].t ? tensor_mutable_data(g->counts[i].t) : NULL;

		if (!g->counts[i].t)
			continue;
		if (!steps) {
			const int err = -tensor_last_error()->code;

			if (sign > 0)
				count(g, i, -1);
			return err;
		}
		*steps += sign * g->counts[i].steps;
	}
	return 0;
}

static int set_generators(const struct cuda_call *c, tensor_cuda_graph *g)
{
	uint64_t words[2 * GRAPH_GENERATORS];

	for (int i = 0; i < g->ngenerators; i++) {
		struct tensor_generator_state at =
			generator_take(g->generator[i].g, g->generator[i].used);

		words[2 * i] = at.seed;
		words[2 * i + 1] = at.offset;
	}
	return !g->words ? 0 :
			   cuda_check(c->op, cuda_launch_words(g->words, words, 4 * g->ngenerators,
							       c->stream));
}

static int set_rates(const struct cuda_call *c, const tensor_cuda_graph *g,
		     const struct graph_rates *r)
{
	uint64_t words[2 * CUDA_STEP_ITEMS];
	double rates[2], step;

	for (int i = 0; i < r->n; i++) {
		step = 1;
		if (r->count[i] && tensor_item(r->count[i], &step) < 0)
			return -tensor_last_error()->code;
		/* All steps have been counted. */
		if (r->count[i])
			step += r->nth[i] - capture_steps(g, r->count[i]);
		r->compute(&r->step, step, rates);
		memcpy(&words[2 * i], rates, sizeof(rates));
	}
	return cuda_check(c->op, cuda_launch_words(r->to, words, 4 * r->n, c->stream));
}

static int replay(const struct cuda_call *c, tensor_cuda_graph *g)
{
	struct graph_pool *p = g->pool;
	int err = cuda_check(c->op, cudaStreamWaitEvent(c->stream, p->last, 0));

	if (!err)
		err = set_generators(c, g);
	for (const struct graph_rates *r = g->rates; r && !err; r = r->next)
		err = set_rates(c, g, r);
	if (!err)
		err = cuda_check(c->op, cudaGraphLaunch(g->exec, c->stream));
	return err ? err : cuda_check(c->op, cudaEventRecord(p->last, c->stream));
}

static int check_ready(const char *op, const tensor_cuda_graph *g)
{
	if (g->state == GRAPH_READY)
		return 0;
	if (g->state == GRAPH_BROKEN)
		return tensor_fail(ECANCELED, "%s: the capture failed: %s", op, g->why.text);
	return tensor_fail(EINVAL, "%s: the graph %s", op,
			   g->state == GRAPH_CAPTURING ? "is being captured" : "was not captured");
}

static int graph_replay(tensor_cuda_graph *g)
{
	struct cuda_call c;
	int err = check_ready("cuda_graph_replay", g);

	if (err)
		return err;
	err = cuda_begin(&c, "cuda_graph_replay", g->device);
	if (err)
		return err;
	if (cuda_capturing(&c))
		return cuda_end(&c, cuda_refuse(&c, "replays a graph"));
	err = count(g, g->counts_size, 1);
	if (!err) {
		err = replay(&c, g);
		if (err)
			count(g, g->counts_size, -1);
	}
	return cuda_end(&c, err);
}

/* Reads the results of the checks, and clears those that have failed. */
static int read_checks(const struct cuda_call *c, const tensor_cuda_graph *g)
{
	const char *op = NULL;
	unsigned long long seen;
	int err = 0;

	for (const struct graph_check *k = g->checks; k && !err; k = k->next) {
		err = cuda_check(c->op, cudaMemcpyAsync(&seen, k->flag + 1, sizeof(seen),
							cudaMemcpyDeviceToHost, c->stream));
		if (!err)
			err = cuda_drain(c);
		if (err || seen == ~0ull)
			continue;
		op = k->op;
		err = cuda_check(c->op,
				 cudaMemsetAsync(k->flag + 1, 0xff, sizeof(seen), c->stream));
	}
	if (err || !op)
		return err;
	return tensor_fail(ERANGE,
			   "cuda_graph_wait: %s: a replay had a value or index out of range", op);
}

static int graph_wait(tensor_cuda_graph *g)
{
	struct cuda_call c;
	int err = check_ready("cuda_graph_wait", g);

	if (err)
		return err;
	err = cuda_begin(&c, "cuda_graph_wait", g->device);
	if (err)
		return err;
	if (cuda_capturing(&c))
		return cuda_end(&c, cuda_refuse(&c, "waits for a graph"));
	err = cuda_check(c.op, wait_for_last(g));
	if (!err)
		err = read_checks(&c, g);
	/* Later replays follow a cleared check. */
	if (g->checks && !err)
		err = follow(&c, g->pool);
	return cuda_end(&c, err ? err : cuda_checks_report(c.op, g->device));
}

const struct cuda_graph_calls cuda_graphs = {
	.create = graph_new,
	.capture_begin = graph_capture_begin,
	.capture_end = graph_capture_end,
	.register_generator = graph_register_generator,
	.replay = graph_replay,
	.wait = graph_wait,
	.reset = graph_reset,
	.release = graph_release,
	.excludes = cuda_capture_excludes,
	.capturing = cuda_is_capturing,
	.random = cuda_take_random,
	.random_position = cuda_random_position,
	.random_set = cuda_random_set,
	.count = cuda_capture_count,
};
