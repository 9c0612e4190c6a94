// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The profile that is recorded. Spans of all threads are added under one lock, which takes a small part of
 * the time of an event.
 */
#include "base/profile.h"

#include "base/init.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t profile_lock = PTHREAD_MUTEX_INITIALIZER;
unsigned trace_sinks;
uint64_t (*profile_memory)(void);

static tensor_profiler *recorded;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int profile_begin(tensor_profiler *p)
{
	int err = -EBUSY;

	pthread_mutex_lock(&profile_lock);
	if (!recorded) {
		recorded = p;
		p->start = now_ns();
		__atomic_fetch_or(&trace_sinks,
				  TRACE_PROFILE |
					  (p->flags & TENSOR_PROFILE_SHAPES ? TRACE_SHAPES : 0),
				  __ATOMIC_RELAXED);
		err = 0;
	}
	pthread_mutex_unlock(&profile_lock);
	return err;
}

/* The caller holds the lock. */
static void end_recorded(void)
{
	__atomic_fetch_and(&trace_sinks, ~(TRACE_PROFILE | TRACE_SHAPES), __ATOMIC_RELAXED);
	recorded->end = now_ns();
	recorded = NULL;
}

void profile_end(tensor_profiler *p)
{
	pthread_mutex_lock(&profile_lock);
	if (recorded == p)
		end_recorded();
	pthread_mutex_unlock(&profile_lock);
}

/* ---- rows ---- */

/*
 * Length of the inputs in the arguments of a span: "inputs":[...] without the key. A span may have read trace_sinks
 * while an earlier profile wanted shapes.
 */
static const char *inputs_of(const tensor_profiler *p, const struct trace_span *span, size_t *n)
{
	static const char key[] = "\"inputs\":";
	const char *text = span->args, *end;

	*n = 0;
	if (!(p->flags & TENSOR_PROFILE_SHAPES) || !(span->sinks & TRACE_SHAPES) ||
	    strncmp(text, key, sizeof(key) - 1))
		return "";
	text += sizeof(key) - 1;
	end = strstr(text, "],\"outputs\":");
	if (!end)
		end = strstr(text, "],\"error\":");
	*n = end ? (size_t)(end - text) + 1 : strlen(text);
	return text;
}

static unsigned chain_of(const struct trace_span *span, const char *inputs, size_t n)
{
	uintptr_t hash = (uintptr_t)span->category;

	for (const char *c = span->name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x01000193u;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)inputs[i]) * 0x01000193u;
	return (unsigned)(hash >> 7) % PROFILE_CHAINS;
}

static void free_row(struct profile_row *r)
{
	free((char *)r->row.name);
	if (r->row.inputs && *r->row.inputs)
		free((char *)r->row.inputs);
	free(r);
}

/* The row of the span, new if needed; NULL: no memory. */
static struct profile_row *find_row(tensor_profiler *p, const struct trace_span *span)
{
	size_t n;
	const char *inputs = inputs_of(p, span, &n);
	struct profile_row **chain = &p->chains[chain_of(span, inputs, n)], *r;

	for (r = *chain; r; r = r->next)
		if (!strcmp(r->row.name, span->name) && r->row.category == span->category &&
		    !strncmp(r->row.inputs, inputs, n) && !r->row.inputs[n])
			return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	/* The name of a node may be in the node. */
	r->row.name = strdup(span->name);
	r->row.inputs = n ? strndup(inputs, n) : "";
	if (!r->row.name || !r->row.inputs) {
		free_row(r);
		return NULL;
	}
	r->row.category = span->category;
	r->next = *chain;
	*chain = r;
	p->nrows++;
	return r;
}

/* ---- events ---- */

static bool event_space(tensor_profiler *p)
{
	size_t cap = p->cap ? 2 * p->cap : 1024;
	struct profile_event *more;

	if ((size_t)p->nevents < p->cap)
		return true;
	if (p->nevents >= TENSOR_PROFILE_EVENTS_MAX)
		return false;
	more = realloc(p->events, cap * sizeof(*more));
	if (!more)
		return false;
	p->events = more;
	p->cap = cap;
	return true;
}

static void add_event(tensor_profiler *p, const struct profile_row *r,
		      const struct trace_span *span, int64_t ns)
{
	if (!event_space(p)) {
		p->lost++;
		return;
	}
	p->events[p->nevents++] =
		(struct profile_event){ r, span->node, span->start, ns, gettid() };
}

static void add(tensor_profiler *p, const struct trace_span *span, int64_t ns, uint64_t memory)
{
	struct profile_row *r = find_row(p, span);

	if (!r) {
		p->lost++;
		return;
	}
	r->row.count++;
	r->row.total_ns += ns;
	r->row.self_ns += ns - span->inside;
	r->row.max_ns = ns > r->row.max_ns ? ns : r->row.max_ns;
	r->row.bytes += span->bytes;
	p->peak = memory > p->peak ? memory : p->peak;
	if (p->flags & TENSOR_PROFILE_EVENTS)
		add_event(p, r, span, ns);
}

void profile_add(const struct trace_span *span, int64_t ns)
{
	uint64_t memory = profile_memory ? profile_memory() : 0;

	pthread_mutex_lock(&profile_lock);
	/* It may have begun while an earlier profile was recorded. */
	if (recorded && span->start >= recorded->start)
		add(recorded, span, ns, memory);
	pthread_mutex_unlock(&profile_lock);
}

void profile_clear(tensor_profiler *p)
{
	for (int i = 0; i < PROFILE_CHAINS; i++)
		while (p->chains[i]) {
			struct profile_row *r = p->chains[i];

			p->chains[i] = r->next;
			free_row(r);
		}
	free(p->events);
}

/* ---- forks ---- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&profile_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&profile_lock);
}

static void fork_child(void)
{
	if (recorded)
		end_recorded();
	pthread_mutex_unlock(&profile_lock);
}

INIT(INIT_TRACE) static void profile_init(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}
