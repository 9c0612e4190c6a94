// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The open captures: which stream and thread they are of, their begin and end, what ends them, and what they hold. */
#include "kernels/cuda/runtime/graph.h"

#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tensor_cuda_graph *captures;
static pthread_key_t at_exit; /* ends the captures of a thread */
atomic_int cuda_captures;

static void lock_captures(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_captures(void)
{
	pthread_mutex_unlock(&lock);
}

/* ---- which are open ---- */

struct tensor_cuda_graph *cuda_capture_of(cudaStream_t stream)
{
	struct tensor_cuda_graph *g;

	if (likely(!atomic_load_explicit(&cuda_captures, memory_order_acquire)))
		return NULL;
	lock_captures();
	for (g = captures; g && g->pool->stream != stream; g = g->next)
		;
	unlock_captures();
	return g;
}

cudaStream_t cuda_capture_before(const struct tensor_cuda_graph *g)
{
	return g->before;
}

/* A capture of the calling thread or, if it has none, of another one; device -1: of any. */
static struct tensor_cuda_graph *find(int device, bool *own)
{
	struct tensor_cuda_graph *g, *found = NULL;

	*own = false;
	lock_captures();
	for (g = captures; g && !*own; g = g->next) {
		if (device >= 0 && g->device != device)
			continue;
		*own = pthread_equal(g->thread, pthread_self());
		found = g;
	}
	unlock_captures();
	return found;
}

bool cuda_thread_captures(void)
{
	bool own = false;

	if (unlikely(atomic_load_explicit(&cuda_captures, memory_order_acquire)))
		find(-1, &own);
	return own;
}

int cuda_capture_excludes(const char *op, int device, const char *why)
{
	struct tensor_cuda_graph *g;
	bool own;

	if (likely(!atomic_load_explicit(&cuda_captures, memory_order_acquire)))
		return 0;
	g = find(device, &own);
	if (g && own) {
		tensor_fail(EOPNOTSUPP,
			    "%s: %s, which a graph cannot capture; the capture has ended", op, why);
		cuda_capture_break(g);
		return -EOPNOTSUPP;
	}
	return g ? tensor_fail(EBUSY, "%s: another thread captures a graph on cuda:%d", op,
			       device) :
		   0;
}

/*
 * Of each device: shared by waits for it, exclusive for the begin of a capture on it. One that began between the look for it and the
 * wait would be ended by the wait. The begin has priority over later waits.
 */
static pthread_rwlock_t waits[CUDA_DEVICES] = {
	[0 ... CUDA_DEVICES - 1] = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
};

int cuda_wait_device(const char *op, int device)
{
	int err;

	pthread_rwlock_rdlock(&waits[device]);
	err = cuda_capture_excludes(op, device, "waits for the device");
	if (!err)
		err = cuda_check(op, cudaDeviceSynchronize());
	pthread_rwlock_unlock(&waits[device]);
	return err;
}

cudaError_t cuda_try_wait_device(int device)
{
	cudaError_t err = cudaErrorStreamCaptureUnsupported;
	bool own;

	pthread_rwlock_rdlock(&waits[device]);
	if (!atomic_load_explicit(&cuda_captures, memory_order_acquire) || !find(device, &own))
		err = cudaDeviceSynchronize();
	pthread_rwlock_unlock(&waits[device]);
	return err;
}

uint64_t cuda_capture_owner(const struct tensor_cuda_graph *g, uint64_t *id)
{
	*id = g->id;
	return g->pool->owner;
}

/* ---- begin and end ---- */

static int open_locked(struct tensor_cuda_graph *g)
{
	static atomic_ullong ids;
	cudaError_t err = cudaStreamBeginCapture(g->pool->stream, cudaStreamCaptureModeThreadLocal);

	if (err != cudaSuccess)
		return cuda_error("cuda_graph_capture_begin", err);
	g->id = atomic_fetch_add(&ids, 1) + 1;
	g->thread = pthread_self();
	g->before = cuda_swap_stream(g->device, g->pool->stream);
	g->pool->capturing = true;
	g->state = GRAPH_CAPTURING;
	lock_captures();
	g->next = captures;
	captures = g;
	unlock_captures();
	atomic_fetch_add(&cuda_captures, 1);
	return 0;
}

int capture_open(struct tensor_cuda_graph *g)
{
	bool own;
	int err;

	if (find(g->device, &own) && own)
		return tensor_fail(EBUSY,
				   "cuda_graph_capture_begin: this thread captures another "
				   "graph on cuda:%d",
				   g->device);
	if (pthread_setspecific(at_exit, g))
		return tensor_fail(ENOMEM, "cuda_graph_capture_begin: no memory");
	pthread_rwlock_wrlock(&waits[g->device]);
	err = open_locked(g);
	pthread_rwlock_unlock(&waits[g->device]);
	return err;
}

cudaError_t capture_close(struct tensor_cuda_graph *g, cudaGraph_t *graph)
{
	struct tensor_cuda_graph **at = &captures;
	cudaGraph_t made = NULL;
	cudaError_t err = cudaStreamEndCapture(g->pool->stream, &made);

	/* A call that failed may not have ended it. */
	if (err != cudaSuccess)
		cudaStreamEndCapture(g->pool->stream, &made);
	if (err != cudaSuccess && made) {
		cudaGraphDestroy(made);
		made = NULL;
	}
	cudaGetLastError();
	lock_captures();
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	unlock_captures();
	atomic_fetch_sub(&cuda_captures, 1);
	cuda_swap_stream(g->device, g->before);
	g->pool->capturing = false;
	if (graph)
		*graph = made;
	else if (made)
		cudaGraphDestroy(made);
	return err;
}

void cuda_capture_break(struct tensor_cuda_graph *g)
{
	if (g->state != GRAPH_CAPTURING)
		return;
	g->state = GRAPH_BROKEN;
	g->why = *tensor_last_error();
	capture_close(g, NULL);
}

int cuda_refuse(const struct cuda_call *c, const char *why)
{
	int err = tensor_fail(EOPNOTSUPP,
			      "%s: %s, which a graph cannot capture; the capture has ended", c->op,
			      why);

	cuda_capture_break(c->capture);
	return err;
}

/* The last thing that a thread does: its captures cannot be ended by another one. */
static void thread_ends(void *unused)
{
	struct tensor_cuda_graph *g;
	bool own;

	while (!cuda_forked && (g = find(-1, &own)) && own) {
		tensor_fail(ECANCELED, "cuda_graph: the thread that captured it has ended");
		cuda_capture_break(g);
	}
}

/* In a child captures are no more: they belong to the parent's CUDA. */
static void forget_captures(void)
{
	captures = NULL;
	atomic_store(&cuda_captures, 0);
	unlock_captures();
}

__attribute__((constructor)) static void capture_init(void)
{
	pthread_atfork(lock_captures, unlock_captures, forget_captures);
	pthread_key_create(&at_exit, thread_ends);
}

/* ---- memory that the graph holds ---- */

static size_t place_of(struct tensor_storage *const *table, size_t size,
		       const struct tensor_storage *s)
{
	size_t i = ((uintptr_t)s * 0x9e3779b97f4a7c15u >> 32) & (size - 1);

	while (table[i] && table[i] != s)
		i = (i + 1) & (size - 1);
	return i;
}

static bool grow_held(struct tensor_cuda_graph *g)
{
	size_t size = g->held_size ? 2 * g->held_size : 256;
	struct tensor_storage **fresh;

	if (2 * g->nheld < g->held_size)
		return true;
	fresh = calloc(size, sizeof(*fresh));
	if (!fresh)
		return false;
	for (size_t i = 0; i < g->held_size; i++)
		if (g->held[i])
			fresh[place_of(fresh, size, g->held[i])] = g->held[i];
	free(g->held);
	g->held = fresh;
	g->held_size = size;
	return true;
}

void cuda_capture_hold(struct tensor_cuda_graph *g, struct tensor_storage *s)
{
	size_t i;

	if (!grow_held(g)) {
		g->lost = true;
		return;
	}
	i = place_of(g->held, g->held_size, s);
	if (g->held[i])
		return;
	storage_get(s);
	g->held[i] = s;
	g->nheld++;
}

/* ---- positions of generators ---- */

/* The positions of the generator that g has reserved, or NULL. */
static uint64_t *used_of(struct tensor_cuda_graph *g, const tensor_generator *generator)
{
	for (int i = 0; i < g->ngenerators; i++)
		if (g->generator[i].g == generator)
			return &g->generator[i].used;
	return NULL;
}

void cuda_random_position(tensor_generator *generator, struct device_random *at)
{
	const uint64_t *used;

	if (likely(!atomic_load_explicit(&cuda_captures, memory_order_acquire)))
		return;
	lock_captures();
	for (struct tensor_cuda_graph *g = captures; g; g = g->next) {
		if (!pthread_equal(g->thread, pthread_self()))
			continue;
		at->capture = at->capture ? UINT64_MAX : g->id;
		used = used_of(g, generator);
		at->used += used ? *used : 0;
	}
	unlock_captures();
}

void cuda_random_set(tensor_generator *generator, const struct device_random *to)
{
	uint64_t *used;

	lock_captures();
	for (struct tensor_cuda_graph *g = captures; g; g = g->next) {
		used = g->id == to->capture ? used_of(g, generator) : NULL;
		if (used)
			*used = to->used;
	}
	unlock_captures();
}
