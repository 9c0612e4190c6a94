/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * TENSOR_TRACE: durations of operators, backward nodes and sharing as a Chrome trace. Each event is
 * written with one write() when it ends, so the file has all events before the end of the process,
 * also after abort() or a signal. The profiler (profile.c) gets the same events.
 */
#ifndef TENSOR_TRACE_H
#define TENSOR_TRACE_H

#include "base/compiler.h"

#include <sys/types.h>

/* Where events go, bits of trace_sinks. */
#define TRACE_FILE    1u /* the file of TENSOR_TRACE */
#define TRACE_PROFILE 2u /* the profiler (profile.h) */
#define TRACE_SHAPES  4u /* the profiler wants the shapes of arguments */

extern unsigned trace_sinks;

static inline unsigned trace_on(void)
{
	unsigned sinks = __atomic_load_n(&trace_sinks, __ATOMIC_RELAXED);

	return unlikely(sinks) ? sinks : 0;
}

#define TRACE_ARGS 1024

/* An event that has begun. The category is a literal; the name is valid until the end of the event, and has no
 * character that JSON escapes. */
struct trace_span {
	int64_t start; /* ns; -1: nothing is recorded */
	const char *category, *name;
	unsigned sinks;	       /* trace_on() at its start */
	struct trace_span *up; /* the span of the thread that contains it */
	int64_t inside;	       /* ns of spans that it contains */
	uint64_t bytes;	       /* for the profiler: of new results */
	const void *node; /* node of the graph that an operator made, or that runs; NULL: none */
	unsigned used;
	char args[TRACE_ARGS]; /* members of a JSON object */
};

void trace_start(struct trace_span *span, const char *category, const char *name);
void trace_write(struct trace_span *span);
/* Whether the arguments of the span are wanted as text. */
static inline bool trace_describes(const struct trace_span *span)
{
	return span->sinks & (TRACE_FILE | TRACE_SHAPES);
}

/* Appends to args; false, and nothing is appended, if it does not fit or nothing is recorded. */
bool trace_add(struct trace_span *span, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline void trace_begin(struct trace_span *span, const char *category, const char *name)
{
	span->start = -1;
	span->sinks = 0; /* trace_on() may change between two reads */
	if (trace_on())
		trace_start(span, category, name);
}

static inline void trace_end(struct trace_span *span)
{
	if (unlikely(span->start >= 0))
		trace_write(span);
}

/* Records an event from here to the end of the block. */
#define TRACE_SPAN(category, name)                                        \
	struct trace_span trace_span __attribute__((cleanup(trace_end))); \
	trace_begin(&trace_span, category, name)

#endif
