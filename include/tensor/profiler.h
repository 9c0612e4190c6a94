/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The profiler: times, counts and bytes of operators, forward and backward, of all threads.
 *
 * 	tensor_profiler *p = tensor_profiler_start(TENSOR_PROFILE_EVENTS);
 * 	train();
 * 	tensor_profiler_stop(p);
 * 	tensor_profiler_print(p, stdout, 20);
 * 	tensor_profiler_save_trace(p, "train.json");
 * 	tensor_profiler_free(p);
 *
 * While no profiler runs, calls of operators execute no additional instruction.
 */
#ifndef TENSOR_PROFILER_H
#define TENSOR_PROFILER_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A profile: opaque. Its functions may be called by any thread, also while it is recorded. */
typedef struct tensor_profiler tensor_profiler;

#define TENSOR_PROFILE_SHAPES 1u /* rows of their own for each dtype and shape of the arguments */
#define TENSOR_PROFILE_EVENTS 2u /* keep every call, for tensor_profiler_save_trace() */
/* Maximum of kept calls; later ones are counted in rows only. */
#define TENSOR_PROFILE_EVENTS_MAX 1000000

/**
 * tensor_profiler_start() - record all calls of operators and nodes of all threads from now on
 * @flags: TENSOR_PROFILE_*
 *
 * A call is recorded when it ends, if it began after the start. A child of fork() records nothing.
 * Return: the profile, owned by the caller; NULL with the error set. EBUSY: another one is recorded;
 *   EINVAL: unknown flags; ENOMEM.
 */
tensor_profiler *tensor_profiler_start(unsigned flags);
/* End the recording; calls that have not ended are not in it. Again: nothing. 0 or -errno. */
int tensor_profiler_stop(tensor_profiler *p);
/* Stop and free. NULL is ignored. */
void tensor_profiler_free(tensor_profiler *p);

/**
 * struct tensor_profile_row - all calls of one operator, node of the graph, or function of sharing
 * @name: "mm", "MmBackward"
 * @category: "operator", "backward", "sharing", "group"
 * @inputs: with TENSOR_PROFILE_SHAPES, dtypes and shapes of the arguments: ["f32[2, 3]"]; otherwise ""
 * @count: number of calls
 * @total_ns: time, including calls inside
 * @self_ns: time without calls inside
 * @max_ns: @total_ns of the longest call
 * @bytes: memory of results that is not an argument's
 *
 * The texts are valid until the profile is freed.
 */
struct tensor_profile_row {
	const char *name, *category, *inputs;
	int64_t count, total_ns, self_ns, max_ns;
	uint64_t bytes;
};

/* Copies the n rows with the most time of their own, sorted by it. Returns the number of rows of the
 * profile; rows may be NULL if n is 0. -errno. */
int64_t tensor_profiler_rows(tensor_profiler *p, struct tensor_profile_row *rows, int64_t n);

/*
 * Print a table of the n rows (0: all) with the most time of their own to a stdio stream (FILE *), NULL
 * for stdout, with the time and the largest memory in use between calls (peak). 0 or -errno.
 */
int tensor_profiler_print(tensor_profiler *p, void *stream, int64_t n);

/*
 * Write the calls as trace events in JSON, which https://ui.perfetto.dev and chrome://tracing open. Arrows
 * lead from the operators to the nodes of their backward. Replaces the file atomically. 0 or -errno:
 * EINVAL without TENSOR_PROFILE_EVENTS; EBUSY: it was not stopped.
 */
int tensor_profiler_save_trace(tensor_profiler *p, const char *path);

#ifdef __cplusplus
}
#endif
#endif
