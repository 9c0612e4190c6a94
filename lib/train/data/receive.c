// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Results of workers, and workers that die. Batch b is in slot b % window from the time it is sent to a
 * worker until the program has it, so that results may arrive in any order.
 */
#include "train/data/loader.h"

#include "sharing/sharing.h"
#include "storage/provider/provider.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

/* ---- from workers ---- */

enum { NOTHING, HANDLED, ENDED, INVALID };

/* A buffer that a result will name. */
static int receive_buffer(struct loader_worker *w)
{
	struct tensor_storage *s = NULL;
	struct tensor_buffer *memory;

	if (w->nfresh == TENSOR_LOADER_OUTPUTS)
		return INVALID;
	tensor_scope {
		tensor *t = tensor_recv(w->channel);

		if (t) {
			s = t->storage;
			storage_get(s);
		}
	}
	memory = s ? tensor_storage_buffer(s) : NULL;
	if (memory)
		memory->shared = false; /* until this process passes it on */
	w->fresh[w->nfresh++] = s;
	return HANDLED;
}

/* The slot that waits for the result, NULL if the batch is not wanted any more. */
static struct loader_slot *slot_for(const tensor_loader *l, const struct loader_worker *w,
				    uint32_t run, int64_t batch)
{
	struct loader_slot *slot;

	if (run != l->run || batch < l->first || batch >= l->first + l->window)
		return NULL;
	slot = slot_of(l, batch);
	return slot->state == SLOT_SENT && slot->worker == w ? slot : NULL;
}

static bool fits(const struct loader_output *out, const struct tensor_storage *s)
{
	size_t bytes;

	if (!out->dtype || out->dtype >= TENSOR_DTYPE_COUNT || out->ndim > TENSOR_MAX_DIMS)
		return false;
	bytes = dtype_sizes[out->dtype];
	for (int i = 0; i < out->ndim; i++)
		if (out->sizes[i] < 0 ||
		    __builtin_mul_overflow(bytes, (size_t)out->sizes[i], &bytes))
			return false;
	return bytes <= s->nbytes;
}

/* Output i of a batch: its buffer becomes ready. 0; -ENOMEM; -EBADMSG; -EMFILE: the descriptor is lost. */
static int accept_output(struct loader_worker *w, const struct loader_output *out, uint32_t *fresh)
{
	struct loader_buffer *b;

	if (out->buffer >= BUFFERS_MAX)
		return -EBADMSG;
	b = buffer_entry(w, out->buffer);
	if (!b)
		return -ENOMEM;
	if (out->fresh) {
		if (b->state != BUFFER_NONE || *fresh == w->nfresh)
			return -EBADMSG;
		b->storage = w->fresh[*fresh];
		w->fresh[(*fresh)++] = NULL;
		b->state = b->storage ? BUFFER_READY : BUFFER_DROP;
		if (!b->storage)
			return -EMFILE;
	} else if (b->state != BUFFER_WORKER) {
		return -EBADMSG;
	}
	b->state = BUFFER_READY;
	return fits(out, b->storage) ? 0 : -EBADMSG;
}

/* 0, or a failure of the batch, after which its buffers are the worker's again; -EBADMSG: INVALID. */
static int accept_outputs(tensor_loader *l, struct loader_worker *w, const struct loader_result *r)
{
	uint32_t n = (uint32_t)l->options.batch_outputs, fresh = 0;
	int err = 0;

	if (r->noutputs != n)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		int e = accept_output(w, &r->outputs[i], &fresh);

		err = e == -EBADMSG || !err ? e : err;
		if (err == -EBADMSG || err == -ENOMEM)
			return -EBADMSG;
	}
	for (uint32_t i = 0; i < n && err; i++)
		if (w->buffers[r->outputs[i].buffer].state == BUFFER_READY)
			w->buffers[r->outputs[i].buffer].state = BUFFER_BACK;
	return err;
}

static void forget_gone(struct loader_worker *w, uint32_t number)
{
	struct loader_buffer *b = number < w->nbuffers ? &w->buffers[number] : NULL;

	if (!b || b->state != BUFFER_WORKER)
		return;
	storage_put(b->storage);
	*b = (struct loader_buffer){ 0 };
}

static int handle_result(tensor_loader *l, struct loader_worker *w, const struct loader_result *r)
{
	struct loader_slot *slot = slot_for(l, w, r->run, r->batch);
	struct loader_failure failure = { r->code, r->sample, "" };
	int err = 0;

	forget_gone(w, r->gone);
	memcpy(failure.text, r->text, sizeof(failure.text) - 1);
	if (!r->code) {
		err = accept_outputs(l, w, r);
		if (err == -EBADMSG)
			return INVALID;
	}
	drop_fresh(w);
	w->pending--;
	if (err) {
		failure.code = -err;
		failure.sample = -1;
		snprintf(failure.text, sizeof(failure.text), "%s",
			 "a buffer is lost, as many files were open as RLIMIT_NOFILE permits");
	}
	if (failure.code && slot) {
		slot->state = SLOT_FAILED;
		slot->failure = failure;
	} else if (slot) {
		slot->state = SLOT_READY;
		memcpy(slot->outputs, r->outputs, r->noutputs * sizeof(r->outputs[0]));
	} else if (!failure.code) {
		return_outputs(w, r->outputs, r->noutputs);
	}
	return HANDLED;
}

static int receive_result(tensor_loader *l, struct loader_worker *w)
{
	struct loader_result r = { 0 };
	ssize_t n = recv(w->socket, &r, sizeof(r), MSG_DONTWAIT);
	size_t want = offsetof(struct loader_result, outputs);

	if (n < (ssize_t)want || r.noutputs > TENSOR_LOADER_OUTPUTS ||
	    n != (ssize_t)(want + r.noutputs * sizeof(r.outputs[0])) || w->pending < 1)
		return INVALID;
	return handle_result(l, w, &r);
}

/* Takes one message. */
static int receive(tensor_loader *l, struct loader_worker *w)
{
	uint32_t magic = 0;
	ssize_t n = recv(w->socket, &magic, sizeof(magic), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return NOTHING;
	/* ECONNRESET comes once if the worker ended with unread tasks; its messages come then. */
	if (n < 0 && (errno == EINTR || errno == ECONNRESET))
		return HANDLED;
	if (n <= 0)
		return ENDED;
	if (n != sizeof(magic))
		return INVALID;
	return magic == RESULT_MAGIC ? receive_result(l, w) : receive_buffer(w);
}

/* ---- workers that end ---- */

static void describe_place(char *text, size_t size, const char *end, const struct loader_worker *w,
			   pid_t pid, int64_t sample)
{
	int n = snprintf(text, size, "worker %d (process %d) %s", w->number, (int)pid, end);

	if (n < 0 || (size_t)n >= size)
		return;
	if (sample >= 0)
		snprintf(text + n, size - n, " while it loaded sample %lld", (long long)sample);
	else
		snprintf(text + n, size - n, "%s",
			 sample == AT_INIT    ? " in worker_init" :
			 sample == AT_COLLATE ? " in collate" :
						" while it waited for work");
}

/* Batches of the worker are to be loaded again. Returns the first one, or NULL. */
static struct loader_slot *take_back(tensor_loader *l, const struct loader_worker *w)
{
	struct loader_slot *first = NULL;

	for (int64_t b = l->first; b < l->first + l->window; b++) {
		struct loader_slot *slot = slot_of(l, b);

		if (slot->worker != w || (slot->state != SLOT_SENT && slot->state != SLOT_READY))
			continue;
		if (!first && slot->state == SLOT_SENT)
			first = slot;
		slot->state = SLOT_EMPTY;
	}
	l->sent = l->first;
	return first;
}

/* The worker has ended: the batch that it was loading has failed. */
static void end_of_worker(tensor_loader *l, struct loader_worker *w, bool invalid)
{
	struct worker_at *at = &l->board->at[w->number];
	struct loader_failure failure = { EPIPE, atomic_load(&at->sample), "" };
	struct loader_slot *slot, *first;
	pid_t pid = w->pid;
	char end[256];

	slot = slot_for(l, w, atomic_load(&at->run), atomic_load(&at->batch));
	/* It had sent the result of the last batch. */
	if (!slot && failure.sample != AT_INIT)
		failure.sample = AT_NOTHING;
	first = take_back(l, w);
	crew_bury(l, w, end, sizeof(end));
	describe_place(failure.text, sizeof(failure.text),
		       invalid ? "sent a message that is not valid, and was killed" : end, w, pid,
		       failure.sample);
	failure.sample = -1; /* the text has it */
	slot = slot ? slot : first;
	if (slot) {
		slot->state = SLOT_FAILED;
		slot->failure = failure;
	} else {
		l->idle = failure;
	}
}

/* ---- waiting ---- */

static int report(const struct loader_failure *f)
{
	if (f->sample >= 0)
		return tensor_fail(f->code, "loader_next: sample %lld: %.400s",
				   (long long)f->sample, f->text);
	return tensor_fail(f->code, "loader_next: %.440s", f->text);
}

static int timed_out(const tensor_loader *l)
{
	const struct loader_slot *slot = slot_of(l, l->first);
	const struct loader_worker *w = slot->state == SLOT_SENT ? slot->worker : NULL;
	int64_t sample = w ? atomic_load(&l->board->at[w->number].sample) : AT_NOTHING;

	if (sample < 0)
		return tensor_fail(ETIMEDOUT, "loader_next: no batch in %lld ms",
				   (long long)l->options.timeout_ms);
	return tensor_fail(
		ETIMEDOUT,
		"loader_next: no batch in %lld ms: worker %d (process %d) is loading sample %lld",
		(long long)l->options.timeout_ms, w->number, (int)w->pid, (long long)sample);
}

/* Handles what workers have sent, after waiting up to `ms` (-1: no limit) for one of them. */
static void receive_all(tensor_loader *l, int ms)
{
	struct pollfd fds[2 * TENSOR_LOADER_WORKERS];
	int n = l->options.workers, state;

	for (int i = 0; i < n; i++) {
		fds[2 * i] = (struct pollfd){ .fd = l->workers[i].socket, .events = POLLIN };
		fds[2 * i + 1] = (struct pollfd){ .fd = l->workers[i].pidfd, .events = POLLIN };
	}
	if (poll(fds, 2 * (nfds_t)n, ms) <= 0)
		return;
	for (int i = 0; i < n; i++) {
		struct loader_worker *w = &l->workers[i];

		if (!w->pid || !(fds[2 * i].revents | fds[2 * i + 1].revents))
			continue;
		do {
			state = receive(l, w);
		} while (state == HANDLED);
		if (state != NOTHING || fds[2 * i + 1].revents)
			end_of_worker(l, w, state == INVALID);
	}
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* 0: go on waiting; 1: the batch is ready; -errno with the error set. */
static int check_batch(tensor_loader *l)
{
	struct loader_slot *slot = slot_of(l, l->first);

	if (l->idle.code) {
		struct loader_failure f = l->idle;

		l->idle.code = 0;
		return report(&f);
	}
	if (slot->state == SLOT_FAILED) {
		slot->state = SLOT_EMPTY;
		l->sent = l->first;
		return report(&slot->failure);
	}
	return slot->state == SLOT_READY;
}

int await_batch(tensor_loader *l)
{
	int64_t limit = l->options.timeout_ms, end = now_ms() + limit;
	int err, ms = 0;

	for (;;) {
		receive_all(l, ms);
		err = check_batch(l);
		if (err)
			return err < 0 ? err : 0;
		if (ms && limit && now_ms() >= end)
			return timed_out(l);
		err = crew_restart(l);
		if (err < 0)
			return err;
		dispatch(l);
		ms = -1;
		if (limit) {
			int64_t left = end - now_ms();

			ms = left < 1 ? 1 : left > 1000000 ? 1000000 : (int)left;
		}
	}
}

int take_batch(tensor_loader *l, tensor **batch)
{
	struct loader_slot *slot = slot_of(l, l->first);
	struct loader_worker *w = slot->worker;
	int n = l->options.batch_outputs;

	for (int i = 0; i < n; i++) {
		const struct loader_output *out = &slot->outputs[i];
		struct tensor_storage *s = w->buffers[out->buffer].storage;
		int64_t strides[TENSOR_MAX_DIMS];

		contiguous_strides(out->sizes, out->ndim, strides);
		storage_get(s);
		batch[i] = tensor_new_on_storage(s, out->dtype, out->sizes, strides, out->ndim, 0);
		if (!batch[i]) {
			while (i)
				tensor_put(batch[--i]);
			return -thread()->error.code;
		}
	}
	for (int i = 0; i < n; i++) {
		struct loader_buffer *b = &w->buffers[slot->outputs[i].buffer];

		b->state = BUFFER_OUT;
		b->fork = atomic_load(&fork_generation);
	}
	slot->state = SLOT_EMPTY;
	return 0;
}
