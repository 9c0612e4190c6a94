// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sends steps to the processes and compares the results with the model, inside the processes and
 * from outside.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel.h"
#include "player.h"

#define SMALL (3 * 4096ULL)
#define LARGE (513 * 4096ULL)

static bool order_failed(struct player *p, int err)
{
	if (!err)
		return false;
	snprintf(p->wrong, sizeof(p->wrong), "%s (%s)", p->world->wrong, strerror(-err));
	return true;
}

static bool start_process(struct player *p, unsigned int proc)
{
	unsigned int b;

	for (b = 0; b < BUFS; b++)
		p->world->buf[b].handles[proc] = 0;
	return !worker_start(&p->worker[proc], p->world, proc, p->ends);
}

bool player_start(struct player *p)
{
	unsigned int i;

	p->world = mmap(NULL, sizeof(*p->world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (p->world == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->ends))
		return false;
	for (i = 0; i < PROCS; i++) {
		if (!start_process(p, i))
			return false;
	}
	return true;
}

void player_stop(struct player *p)
{
	unsigned int i;

	for (i = 0; i < PROCS; i++)
		worker_kill(&p->worker[i]);
	close(p->ends[0]);
	close(p->ends[1]);
	munmap(p->world, sizeof(*p->world));
}

/* Precondition: nothing is held. */
void player_begin(struct player *p, const char *name, bool large)
{
	unsigned int b;

	p->model = (struct model){ 0 };
	p->wrong[0] = p->world->wrong[0] = 0;
	snprintf(p->world->name, sizeof(p->world->name), "%s", name);
	for (b = 0; b < BUFS; b++)
		p->world->buf[b].bytes = large ? LARGE : SMALL;
}

static bool send_order(struct player *p, unsigned int proc, const struct step *steps, int n)
{
	return !n || !order_failed(p, worker_order(&p->worker[proc], steps, n));
}

/* The number of leading steps of one process, up to one that needs the other process. */
static int run_length(const struct step *steps, int n)
{
	int i;

	for (i = 0; i < n && steps[i].proc == steps[0].proc && steps[i].op != KILL; i++) {
		if (steps[i].op == SEND_FD || steps[i].op == SEND_DMABUF)
			return i + 1;
	}
	return i;
}

static bool order_receive(struct player *p, struct step sent)
{
	struct step s = { sent.op == SEND_FD ? RECEIVE_FD : RECEIVE_DMABUF, !sent.proc, sent.buf };

	if (sent.op != SEND_FD && sent.op != SEND_DMABUF)
		return true;
	return send_order(p, s.proc, &s, 1);
}

static bool replace_process(struct player *p, unsigned int proc)
{
	worker_kill(&p->worker[proc]);
	return start_process(p, proc);
}

/**
 * player_steps() - execute steps and compare their results
 * @p: the player
 * @steps: the steps
 * @n: number of steps
 *
 * Return: whether all results were as expected.
 */
bool player_steps(struct player *p, const struct step *steps, int n)
{
	int i, k, run;

	for (i = 0; i < n; i += run) {
		run = run_length(steps + i, n - i);
		if (run) {
			if (!send_order(p, steps[i].proc, steps + i, run) ||
			    !order_receive(p, steps[i + run - 1]))
				return false;
		} else {
			run = 1;
			if (!replace_process(p, steps[i].proc))
				return false;
		}
		for (k = i; k < i + run; k++)
			model_apply(&p->model, steps[k]);
	}
	return true;
}

static struct expected set_expected(const struct player *p)
{
	struct expected e = { .clients = p->model.dev[0] + p->model.dev[1] };
	struct counts c;
	unsigned int b;

	for (b = 0; b < BUFS; b++) {
		c = p->world->buf[b].want = model_counts(&p->model, b);
		e.bufs += model_alive(&p->model, b);
		e.bytes += model_alive(&p->model, b) ? p->world->buf[b].bytes : 0;
		e.files += c.files;
		e.dmabufs += c.dmabufs;
	}
	return e;
}

static bool look_inside(struct player *p)
{
	unsigned int i;

	for (i = 0; i < PROCS; i++) {
		struct step look = { LOOK, i, 0 };

		if (!model_blank(&p->model, i) && !send_order(p, i, &look, 1))
			return false;
	}
	return true;
}

/**
 * player_look() - compare the kernel with the model
 * @p: the player
 *
 * Compares at once, and again after deferred frees.
 *
 * Return: whether they agree.
 */
bool player_look(struct player *p)
{
	struct expected e = set_expected(p);

	if (!kernel_totals_are(&e, p->wrong, sizeof(p->wrong)) || !look_inside(p))
		return false;
	if (!model_empty(&p->model)) {
		kernel_settle();
		if (!look_inside(p))
			return false;
	}
	if (!model_empty(&p->model) && !kernel_stays_loaded(p->wrong, sizeof(p->wrong)))
		return false;
	return kernel_log_is_clean(p->wrong, sizeof(p->wrong));
}

/* Checks that nothing is left; precondition: the model holds nothing. */
bool player_end(struct player *p)
{
	const struct expected none = { 0 };

	return kernel_totals_are(&none, p->wrong, sizeof(p->wrong)) &&
	       kernel_is_unused(p->wrong, sizeof(p->wrong)) &&
	       kernel_log_is_clean(p->wrong, sizeof(p->wrong));
}
