// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A worker: a process that receives numbers of samples, loads them into buffers and sends the buffers.
 * It allocates the buffers, because it is the first to know the shapes, and uses one again when the
 * loader says that no tensor is on it.
 */
#include "train/data/loader.h"

#include "autograd/graph/callback.h"
#include "base/init.h"
#include "sharing/sharing.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int this_worker = -1;

TENSOR_EXPORT int tensor_loader_worker(void)
{
	return this_worker;
}

/* A buffer; numbers of buffers are indices of an array. */
struct own_buffer {
	struct tensor_storage *storage; /* owned; NULL: no buffer has this number */
	bool busy;			/* the loader has it */
	bool fresh;			/* it was not sent yet */
};

struct worker {
	tensor_loader *l;
	struct loader_worker *w;
	struct worker_at *at;
	tensor_channel *channel;
	struct own_buffer *buffers;
	uint32_t n;
	uint32_t used[TENSOR_LOADER_OUTPUTS]; /* buffer of each output of the batch */
};

/* ---- buffers ---- */

/* A number without a buffer; -ENOMEM with the error set. */
static int64_t free_number(struct worker *k)
{
	struct own_buffer *more;
	uint32_t n;

	for (n = 0; n < k->n; n++)
		if (!k->buffers[n].storage)
			return n;
	if (n == BUFFERS_MAX)
		return tensor_fail(ENOMEM, "the program holds %u buffers of this worker", n);
	more = realloc(k->buffers, (n + 1) * sizeof(*more));
	if (!more)
		return tensor_fail(ENOMEM, "no memory for the list of buffers");
	k->buffers = more;
	k->buffers[k->n++] = (struct own_buffer){ 0 };
	return n;
}

/* The smallest free buffer with this many bytes, and not many more; -1: none. */
static int64_t find_free(const struct worker *k, size_t bytes)
{
	int64_t best = -1;

	for (uint32_t n = 0; n < k->n; n++) {
		const struct own_buffer *b = &k->buffers[n];

		if (!b->storage || b->busy || b->storage->nbytes < bytes ||
		    b->storage->nbytes / 4 > bytes + 4096)
			continue;
		if (best < 0 || b->storage->nbytes < k->buffers[best].storage->nbytes)
			best = n;
	}
	return best;
}

static int64_t take_buffer(struct worker *k, size_t bytes)
{
	int64_t n = find_free(k, bytes);

	if (n < 0) {
		struct own_buffer *b;

		n = free_number(k);
		if (n < 0)
			return n;
		b = &k->buffers[n];
		b->storage = storage_alloc(TENSOR_DEVICE_CPU, bytes, true);
		if (!b->storage)
			return -thread()->error.code;
		b->fresh = true;
	}
	k->buffers[n].busy = true;
	return n;
}

static void free_buffer(struct own_buffer *b)
{
	storage_put(b->storage);
	*b = (struct own_buffer){ 0 };
}

static tensor *alloc_output(void *ctx, int i, enum tensor_dtype dtype, const int64_t *sizes,
			    int ndim)
{
	struct worker *k = ctx;
	int64_t strides[TENSOR_MAX_DIMS], numel = sizes_numel("loader", sizes, ndim), n;

	if (numel < 0)
		return NULL;
	n = take_buffer(k, numel ? (size_t)numel * dtype_sizes[dtype] : 1);
	if (n < 0)
		return NULL;
	k->used[i] = (uint32_t)n;
	contiguous_strides(sizes, ndim, strides);
	storage_get(k->buffers[n].storage);
	return tensor_new_on_storage(k->buffers[n].storage, dtype, sizes, strides, ndim, 0);
}

/* A free buffer for which sizes have no use any more, if there are more than the prefetched batches need. */
static uint32_t surplus(struct worker *k)
{
	const struct tensor_loader_options *o = &k->l->options;
	int keep = (o->prefetch + 2) * o->batch_outputs, free = 0;
	int64_t last = -1;

	for (uint32_t n = 0; n < k->n; n++)
		if (k->buffers[n].storage && !k->buffers[n].busy) {
			last = n;
			free++;
		}
	if (free <= keep)
		return UINT32_MAX;
	free_buffer(&k->buffers[last]);
	return (uint32_t)last;
}

/* ---- messages ---- */

/* Sends whole packets; the process ends if the loader is gone. */
static void send_packet(const struct worker *k, const void *data, size_t size)
{
	ssize_t n;

	do {
		n = send(k->w->peer_socket, data, size, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)size)
		_exit(EXIT_SUCCESS);
}

static void receive_task(const struct worker *k, struct loader_task *task)
{
	ssize_t n;

	do {
		n = recv(k->w->peer_socket, task, sizeof(*task), 0);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(*task))
		_exit(EXIT_SUCCESS);
}

static void send_failure(const struct worker *k, const struct loader_task *task,
			 const struct loader_failure *failure, uint32_t gone)
{
	struct loader_result r = { .magic = RESULT_MAGIC,
				   .run = task->run,
				   .batch = task->batch,
				   .code = failure->code,
				   .sample = failure->sample,
				   .gone = gone };

	memcpy(r.text, failure->text, sizeof(r.text));
	send_packet(k, &r, offsetof(struct loader_result, outputs));
}

/* Sends the descriptor of a new buffer. */
static int send_buffer_once(struct worker *k, struct own_buffer *b)
{
	int64_t bytes = (int64_t)b->storage->nbytes, stride = 1;
	tensor *t;
	int err;

	storage_get(b->storage);
	t = tensor_new_on_storage(b->storage, TENSOR_U8, &bytes, &stride, 1, 0);
	if (!t)
		return -thread()->error.code;
	err = channel_send_once(k->channel, t);
	tensor_put(t);
	return err;
}

static int send_buffers(struct worker *k, int n, struct loader_failure *failure)
{
	for (int i = 0; i < n; i++) {
		struct own_buffer *b = &k->buffers[k->used[i]];

		if (b->fresh && send_buffer_once(k, b) < 0) {
			/* The loader discards those that no result names. */
			failure->code = thread()->error.code;
			failure->sample = -1;
			memcpy(failure->text, thread()->error.text, sizeof(failure->text));
			return -failure->code;
		}
	}
	return 0;
}

static void send_batch(struct worker *k, const struct loader_task *task, tensor **batch,
		       uint32_t gone)
{
	int n = k->l->options.batch_outputs;
	struct loader_result r = { .magic = RESULT_MAGIC,
				   .run = task->run,
				   .batch = task->batch,
				   .noutputs = (uint32_t)n,
				   .gone = gone };

	for (int i = 0; i < n; i++) {
		struct loader_output *out = &r.outputs[i];
		struct own_buffer *b = &k->buffers[k->used[i]];

		*out = (struct loader_output){ .buffer = k->used[i],
					       .fresh = b->fresh,
					       .dtype = batch[i]->dtype,
					       .ndim = batch[i]->ndim };
		memcpy(out->sizes, batch[i]->sizes, batch[i]->ndim * sizeof(*out->sizes));
		b->fresh = false;
	}
	send_packet(k, &r, offsetof(struct loader_result, outputs) + n * sizeof(r.outputs[0]));
}

/* ---- tasks ---- */

static void take_frees(struct worker *k, const struct loader_task *task)
{
	for (uint32_t i = 0; i < task->nfrees && i < FREES_MAX; i++) {
		uint32_t n = task->frees[i] & ~FREE_DROP;

		if (n >= k->n || !k->buffers[n].storage)
			continue;
		k->buffers[n].busy = false;
		if (task->frees[i] & FREE_DROP)
			free_buffer(&k->buffers[n]);
	}
}

/* After a failure: the buffers of the batch are free again. */
static void release_used(struct worker *k)
{
	for (int i = 0; i < k->l->options.batch_outputs; i++) {
		struct own_buffer *b;

		if (k->used[i] == UINT32_MAX)
			continue;
		b = &k->buffers[k->used[i]];
		b->busy = false;
		if (b->fresh)
			free_buffer(b);
	}
}

static void handle_task(struct worker *k, const struct loader_task *task)
{
	struct batch_job job = { .l = k->l,
				 .epoch = task->epoch,
				 .position = task->position,
				 .count = task->count,
				 .alloc = alloc_output,
				 .ctx = k,
				 .at = k->at,
				 .run = task->run };
	tensor *batch[TENSOR_LOADER_OUTPUTS];
	struct loader_failure failure = { .sample = -1 };
	uint32_t gone;
	int err;

	atomic_store_explicit(&k->at->run, task->run, memory_order_relaxed);
	atomic_store_explicit(&k->at->batch, task->batch, memory_order_relaxed);
	k->l->seed = task->seed;
	take_frees(k, task);
	memset(k->used, 0xff, sizeof(k->used));
	err = load_batch(&job, batch, &failure);
	if (!err)
		err = send_buffers(k, k->l->options.batch_outputs, &failure);
	if (err)
		release_used(k);
	gone = surplus(k);
	if (err)
		send_failure(k, task, &failure, gone);
	else
		send_batch(k, task, batch, gone);
	for (int i = 0; i < k->l->options.batch_outputs; i++)
		tensor_put(batch[i]);
	atomic_store_explicit(&k->at->sample, AT_NOTHING, memory_order_relaxed);
}

/* ---- the process ---- */

void kill_at_end_of(int life, pid_t pid)
{
	fcntl(life, F_SETOWN, pid);
	fcntl(life, F_SETSIG, SIGKILL);
	fcntl(life, F_SETFL, fcntl(life, F_GETFL) | O_ASYNC);
}

/* Also by itself: the loader may end before it has done this. */
static void end_with_loader(int life)
{
	struct pollfd p = { .fd = life };

	kill_at_end_of(life, getpid());
	if (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
		_exit(EXIT_SUCCESS);
}

/* Handlers of the program are not for this process; one of SIGSEGV may even jump back into the program. */
static void reset_signals(void)
{
	struct sigaction action;

	for (int s = 1; s < NSIG; s++) {
		if (sigaction(s, NULL, &action) < 0 || action.sa_handler == SIG_DFL ||
		    action.sa_handler == SIG_IGN)
			continue;
		action = (struct sigaction){ .sa_handler = SIG_DFL };
		sigaction(s, &action, NULL);
	}
	signal(SIGINT, SIG_IGN);
}

static void name_process(int number)
{
	char name[16];

	snprintf(name, sizeof(name), "tensor-load/%d", number);
	prctl(PR_SET_NAME, name);
}

/* Fills in the failure of worker_init, which is the answer to every task. */
static void init_worker(struct worker *k, struct loader_failure *failure)
{
	const struct tensor_loader_options *o = &k->l->options;
	struct thread_modes before;
	struct callback state;
	int err = 0;

	tensor_set_num_threads(1);
	tensor_manual_seed(sample_seed(k->l->seed, -2, k->w->number));
	k->channel = tensor_channel_open(k->w->peer_socket);
	if (!k->channel) {
		failure->code = thread()->error.code;
		memcpy(failure->text, thread()->error.text, sizeof(failure->text));
		return;
	}
	if (!o->worker_init)
		return;
	atomic_store_explicit(&k->at->sample, AT_INIT, memory_order_relaxed);
	before = enter_program(NULL);
	state = callback_begin();
	tensor_scope {
		err = o->worker_init(o->ctx, k->w->number);
	}
	err = callback_end(&state, err, "%s", strerror(-err));
	thread()->modes = before;
	atomic_store_explicit(&k->at->sample, AT_NOTHING, memory_order_relaxed);
	if (err < 0) {
		failure->code = -err;
		snprintf(failure->text, sizeof(failure->text), "worker_init failed: %.400s",
			 thread()->error.text);
	}
}

void worker_main(tensor_loader *l, struct loader_worker *w, const sigset_t *signals)
{
	struct worker k = { .l = l, .w = w, .at = &l->board->at[w->number] };
	struct loader_failure failure = { .sample = -1 };
	struct loader_task task;

	reset_signals();
	pthread_sigmask(SIG_SETMASK, signals, NULL);
	this_worker = w->number;
	atomic_store(&l->inside, gettid()); /* the worker is always in a function of the loader */
	thread()->traced = NULL;
	thread()->span = NULL;
	end_with_loader(w->peer_life);
	name_process(w->number);
	init_worker(&k, &failure);
	for (;;) {
		receive_task(&k, &task);
		if (failure.code)
			send_failure(&k, &task, &failure, UINT32_MAX);
		else
			handle_task(&k, &task);
	}
}
