// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The rules of the model: when an action is possible and what it changes.
 *
 * Three rules reduce the search:
 *
 *   - Buffers are alike until they are made, and processes until they hold something: ALLOC makes
 *     the dead buffer of lowest number, and process 1 acts on an empty machine only after process
 * 0.
 *   - When nothing is held the kernel is in its initial state: a sequence ends there.
 *   - Two consecutive actions for which model_commute() is true are done in one order only.
 */
#include <stdio.h>
#include <string.h>

#include "model.h"

enum kind { OTHER, ACQUIRE, RELEASE };

/**
 * struct rule - an action on one slot
 * @letter: in the text form
 * @kind: its effect on references
 * @from: ACQUIRE: the slot that must not be empty
 * @to: the slot that it fills or empties
 * @fresh: ACQUIRE: makes a new object instead of sharing that of @from
 * @peer: ACQUIRE: @to is a slot of the other process
 */
struct rule {
	char letter;
	uint8_t kind, from, to;
	bool fresh, peer;
};

static const struct rule rules[OPS] = {
	[OPEN] = { 'o', OTHER, 0, 0, false, false },
	[SHUT] = { 's', OTHER, 0, 0, false, false },
	[ALLOC] = { 'a', OTHER, 0, HANDLE, false, false },
	[CLOSE] = { 'c', RELEASE, 0, HANDLE, false, false },
	[EXPORT] = { 'e', ACQUIRE, HANDLE, FD, true, false },
	[CLOSE_FD] = { 'x', RELEASE, 0, FD, false, false },
	[IMPORT] = { 'i', ACQUIRE, FD, HANDLE, false, false },
	[IMPORT_DMABUF] = { 'j', ACQUIRE, DMABUF_FD, HANDLE, false, false },
	[MAP_HANDLE] = { 'm', ACQUIRE, HANDLE, MAP, true, false },
	[MAP_FD] = { 'f', ACQUIRE, FD, MAP, false, false },
	[MAP_DMABUF] = { 'g', ACQUIRE, DMABUF_FD, MAP, true, false },
	[UNMAP] = { 'u', RELEASE, 0, MAP, false, false },
	[EXPORT_DMABUF] = { 'd', ACQUIRE, HANDLE, DMABUF_FD, true, false },
	[CLOSE_DMABUF] = { 'y', RELEASE, 0, DMABUF_FD, false, false },
	[ATTACH] = { 'v', ACQUIRE, DMABUF_FD, DEVICE, false, false },
	[DETACH] = { 'w', RELEASE, 0, DEVICE, false, false },
	[SEND_FD] = { 't', ACQUIRE, FD, FD, false, true },
	[SEND_DMABUF] = { 'r', ACQUIRE, DMABUF_FD, DMABUF_FD, false, true },
	[KILL] = { 'k', OTHER, 0, 0, false, false },
};

bool model_blank(const struct model *m, unsigned int proc)
{
	static const uint8_t none[BUFS][SLOTS];

	return !m->dev[proc] && !memcmp(m->slot[proc], none, sizeof(none));
}

bool model_alive(const struct model *m, unsigned int buf)
{
	static const uint8_t none[SLOTS];
	unsigned int p;

	for (p = 0; p < PROCS; p++) {
		if (memcmp(m->slot[p][buf], none, sizeof(none)))
			return true;
	}
	return false;
}

bool model_empty(const struct model *m)
{
	return model_blank(m, 0) && model_blank(m, 1);
}

bool op_has_buf(unsigned int op)
{
	return op != OPEN && op != SHUT && op != KILL;
}

static unsigned int target(struct step s)
{
	return rules[s.op].peer ? !s.proc : s.proc;
}

static bool acquire_enabled(const struct model *m, const struct scope *scope, struct step s)
{
	const struct rule *r = &rules[s.op];
	uint8_t held = m->slot[target(s)][s.buf][r->to];

	if (!m->slot[s.proc][s.buf][r->from])
		return false;
	if (r->to == HANDLE)
		return m->dev[s.proc] && held < 2;
	return !held && (r->to != DEVICE || scope->device) && (!r->peer || scope->procs > 1);
}

static bool alloc_enabled(const struct model *m, struct step s)
{
	unsigned int b;

	for (b = 0; b < s.buf; b++) {
		if (!model_alive(m, b))
			return false;
	}
	return m->dev[s.proc] && !model_alive(m, s.buf);
}

bool model_enabled(const struct model *m, const struct scope *scope, struct step s)
{
	if (s.proc >= scope->procs || s.buf >= scope->bufs || (s.buf && !op_has_buf(s.op)))
		return false;
	switch (s.op) {
	case OPEN:
		return !m->dev[s.proc] && (!s.proc || !model_empty(m));
	case SHUT:
		return m->dev[s.proc];
	case ALLOC:
		return alloc_enabled(m, s);
	case KILL:
		return !model_blank(m, s.proc);
	}
	if (rules[s.op].kind == RELEASE)
		return m->slot[s.proc][s.buf][rules[s.op].to];
	return acquire_enabled(m, scope, s);
}

static void acquire(struct model *m, struct step s)
{
	const struct rule *r = &rules[s.op];
	uint8_t *to = &m->slot[target(s)][s.buf][r->to];

	if (r->to == HANDLE)
		(*to)++;
	else if (r->fresh)
		*to = ++m->next | (r->to == MAP ? NO_FILE : 0);
	else
		*to = m->slot[s.proc][s.buf][r->from];
}

static void release(struct model *m, struct step s)
{
	uint8_t *to = &m->slot[s.proc][s.buf][rules[s.op].to];

	*to = rules[s.op].to == HANDLE ? *to - 1 : 0;
}

void model_apply(struct model *m, struct step s)
{
	unsigned int b;

	switch (s.op) {
	case OPEN:
	case SHUT:
		m->dev[s.proc] = s.op == OPEN;
		for (b = 0; b < BUFS; b++)
			m->slot[s.proc][b][HANDLE] = 0;
		return;
	case ALLOC:
		m->slot[s.proc][s.buf][HANDLE] = 1;
		return;
	case KILL:
		m->dev[s.proc] = false;
		memset(m->slot[s.proc], 0, sizeof(m->slot[s.proc]));
		return;
	}
	if (rules[s.op].kind == RELEASE)
		release(m, s);
	else
		acquire(m, s);
}

static bool same_buffers_alive(const struct model *x, const struct model *y)
{
	unsigned int b;

	for (b = 0; b < BUFS; b++) {
		if (model_alive(x, b) != model_alive(y, b))
			return false;
	}
	return true;
}

/* Whether two steps release the same object; a handle is an object of its process. */
static bool same_object(const struct model *m, struct step x, struct step y)
{
	if (x.buf != y.buf)
		return false;
	if (rules[x.op].to == HANDLE || rules[y.op].to == HANDLE)
		return x.proc == y.proc && rules[x.op].to == rules[y.op].to;
	return m->slot[x.proc][x.buf][rules[x.op].to] == m->slot[y.proc][y.buf][rules[y.op].to];
}

/**
 * model_commute() - whether two consecutive actions need to be done in one order only
 * @m: the model before both
 * @scope: range of the search
 * @x: the first; possible in @m
 * @y: the second; possible after @x
 *
 * Both orders must lead to the same objects with the same holders, through the same calls with the
 * same objects alive. That holds if neither enables or disables the other, and
 *
 *   - both take references, of objects that live before and after both, into different slots: no
 *     object is freed in between, and the order of the references cannot be observed; or
 *   - both drop references of different objects, neither of which is the last of its buffer:
 *     either order runs the same two releases with the buffer alive before and after both; or
 *   - they are of different processes and on different buffers, and no buffer is made or freed.
 *
 * False for opens, closes of the device, allocations and kills: they may be the first or last use of
 * shared state.
 */
bool model_commute(const struct model *m, const struct scope *scope, struct step x, struct step y)
{
	unsigned int kx = rules[x.op].kind, ky = rules[y.op].kind;
	struct model after = *m;

	if (kx == OTHER || ky == OTHER || !model_enabled(m, scope, y))
		return false;
	if (kx != ky && (x.proc == y.proc || x.buf == y.buf))
		return false;
	if (kx == ACQUIRE && ky == ACQUIRE && x.buf == y.buf && target(x) == target(y) &&
	    rules[x.op].to == rules[y.op].to)
		return false;
	if (kx == RELEASE && ky == RELEASE && same_object(m, x, y))
		return false;
	model_apply(&after, y);
	if (!model_enabled(&after, scope, x))
		return false;
	model_apply(&after, x);
	return same_buffers_alive(m, &after);
}

/*
 * The number of different objects in two slots of all processes, without those that have no file.
 */
static unsigned int distinct(const struct model *m, unsigned int buf, enum slot x, enum slot y)
{
	uint8_t seen[NO_FILE] = { 0 }, at;
	unsigned int p, i, n = 0;

	for (p = 0; p < PROCS; p++) {
		for (i = 0; i < 2; i++) {
			at = m->slot[p][buf][i ? y : x];
			if (!at || at & NO_FILE || seen[at])
				continue;
			seen[at] = 1;
			n++;
		}
	}
	return n;
}

struct counts model_counts(const struct model *m, unsigned int buf)
{
	struct counts c = { .files = distinct(m, buf, FD, MAP),
			    .dmabufs = distinct(m, buf, DMABUF_FD, DEVICE) };
	unsigned int p;

	for (p = 0; p < PROCS; p++) {
		c.mappings += m->slot[p][buf][MAP] != 0;
		c.attachments += m->slot[p][buf][DEVICE] != 0;
	}
	return c;
}

unsigned int step_rank(struct step s)
{
	return (s.proc * BUFS + s.buf) * OPS + s.op;
}

/**
 * model_teardown() - list actions that release everything
 * @m: the model
 * @scope: range of the search
 * @way: 0: the device last, 1: the device first, 2: kill, 3: as 1, process 1 first
 * @steps: the actions
 * @room: number of entries of @steps
 *
 * Return: the number of actions.
 */
int model_teardown(const struct model *m, const struct scope *scope, unsigned int way,
		   struct step *steps, int room)
{
	static const uint8_t order[4][7] = {
		{ UNMAP, CLOSE_FD, DETACH, CLOSE_DMABUF, CLOSE, CLOSE, SHUT },
		{ SHUT, CLOSE_DMABUF, CLOSE_FD, DETACH, UNMAP, UNMAP, UNMAP },
		{ KILL, KILL, KILL, KILL, KILL, KILL, KILL },
		{ SHUT, CLOSE_FD, UNMAP, CLOSE_DMABUF, DETACH, DETACH, DETACH },
	};
	struct model left = *m;
	unsigned int p, i, b;
	int n = 0;

	for (p = 0; p < PROCS; p++) {
		for (i = 0; i < sizeof(order[0]); i++) {
			for (b = 0; b < BUFS; b++) {
				struct step s = { order[way][i], way == 3 ? !p : p, b };

				if (n == room || !model_enabled(&left, scope, s))
					continue;
				model_apply(&left, s);
				steps[n++] = s;
			}
		}
	}
	return n;
}

char *steps_text(const struct step *steps, int n, char *text, size_t room)
{
	size_t at = 0;
	int i;

	text[0] = 0;
	for (i = 0; i < n && at + 6 < room; i++) {
		at += snprintf(text + at, room - at, "%s%d%c", i ? " " : "", steps[i].proc,
			       rules[steps[i].op].letter);
		if (op_has_buf(steps[i].op))
			at += snprintf(text + at, room - at, "%d", steps[i].buf);
	}
	return text;
}

/* Returns the number of steps, or -1. */
int steps_parse(const char *text, struct step *steps, int room)
{
	unsigned int proc, buf;
	int n = 0, used;
	uint8_t op;
	char letter;

	for (; sscanf(text, " %1u%c%n", &proc, &letter, &used) == 2; text += used) {
		for (op = 0; op < OPS && rules[op].letter != letter; op++)
			;
		buf = 0;
		if (op == OPS || n == room || proc >= PROCS)
			return -1;
		if (op_has_buf(op)) {
			if (sscanf(text + used, "%1u", &buf) != 1 || buf >= BUFS)
				return -1;
			used++;
		}
		steps[n++] = (struct step){ op, proc, buf };
	}
	return *text ? -1 : n;
}
