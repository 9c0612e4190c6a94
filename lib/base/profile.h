/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The recording of the profiler (<tensor/profiler.h>): rows, and events that refer to them. */
#ifndef TENSOR_PROFILE_H
#define TENSOR_PROFILE_H

#include "base/trace.h"

#include <tensor/profiler.h>

#include <pthread.h>

#define PROFILE_CHAINS 1024

struct profile_row {
	struct tensor_profile_row row; /* name and inputs: owned; inputs may be "", which is not */
	struct profile_row *next;
};

struct profile_event {
	const struct profile_row *row;
	const void *node; /* of the graph */
	int64_t start, ns;
	pid_t tid;
};

struct tensor_profiler {
	unsigned flags;
	int64_t start, end; /* ns of CLOCK_MONOTONIC; end 0: it runs */
	int64_t nrows, nevents, lost;
	size_t cap;
	struct profile_event *events;
	struct profile_row *chains[PROFILE_CHAINS];
	uint64_t peak; /* bytes in use, largest after a call */
};

/* Protects the profile that is recorded, and all members of profiles. */
extern pthread_mutex_t profile_lock;

/* Makes p the one that is recorded; -EBUSY if there is one. profile_end(): no more. */
int profile_begin(tensor_profiler *p);
void profile_end(tensor_profiler *p);
/* Adds a span that has ended after ns. */
void profile_add(const struct trace_span *span, int64_t ns);
/* Frees rows and events. */
void profile_clear(tensor_profiler *p);

/* Bytes of memory in use; set by lib/storage. */
extern uint64_t (*profile_memory)(void);

#endif
