/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * TENSOR_TRACE: durations of operators, backward nodes and sharing as a Chrome trace. Each event is
 * written with one write() when it ends, so the file has all events before the end of the process,
 * also after abort() or a signal.
 */
#ifndef TENSOR_TRACE_H
#define TENSOR_TRACE_H

#include "base/compiler.h"

/* Written at load; false after the first failure. Read with trace_on(). */
extern bool trace_enabled;

static inline bool trace_on(void)
{
	return unlikely(__atomic_load_n(&trace_enabled, __ATOMIC_RELAXED));
}

#define TRACE_ARGS 1024

/* An event that has begun. The names are literals or live as long as the library. */
struct trace_span {
	int64_t start; /* ns; -1: nothing is recorded */
	const char *category, *name;
	unsigned used;
	char args[TRACE_ARGS]; /* members of a JSON object */
};

void trace_start(struct trace_span *span, const char *category, const char *name);
void trace_write(const struct trace_span *span);
/* Appends to args; false, and nothing is appended, if it does not fit. */
bool trace_add(struct trace_span *span, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline void trace_begin(struct trace_span *span, const char *category, const char *name)
{
	span->start = -1;
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
