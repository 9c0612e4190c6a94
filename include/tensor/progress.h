/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Progress of a training program: a line with bar, loss, rate and time left on a terminal, one line an
 * epoch otherwise, and the loss curve as SVG.
 */
#ifndef TENSOR_PROGRESS_H
#define TENSOR_PROGRESS_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opaque. Calls of several threads take turns. */
typedef struct tensor_progress tensor_progress;

/**
 * struct tensor_progress_options - what is shown; all zero is valid
 * @epochs: number of epochs; 0: not known
 * @steps: steps of an epoch; 0: not known, no bar and no time left
 * @stream: stdio stream (FILE *), which must stay open; NULL: stderr
 * @label: what @loss of tensor_progress_step() is; NULL: "loss". Copied, at most 31 bytes
 * @quiet: print nothing, for the curve alone
 * @reserved: 0
 */
struct tensor_progress_options {
	int64_t epochs, steps;
	void *stream;
	const char *label;
	bool quiet;
	uint64_t reserved[4];
};

/*
 * A new display, owned by the caller. If the stream is a terminal (and TERM is not "dumb"), the line is
 * drawn at most ten times a second, within the terminal's width, and in colour unless NO_COLOR is set.
 * NULL with the error set.
 */
tensor_progress *tensor_progress_new(const struct tensor_progress_options *options);
/* A step was done: its loss, and the samples in it (0: the rate is in steps). 0 or -errno. */
int tensor_progress_step(tensor_progress *p, double loss, int64_t samples);
/* The epoch is over: ends its line, with a note ("accuracy 0.97") or NULL. 0 or -errno. */
int tensor_progress_end_epoch(tensor_progress *p, const char *note);
/*
 * Write the curve of all losses as an SVG file, below 100 KB for any number of steps: neighbours are
 * combined to their mean, in an area from the least to the largest. Replaces the file atomically. title:
 * NULL for none. 0 or -errno.
 */
int tensor_progress_save_svg(tensor_progress *p, const char *path, const char *title);
/* End an open line and free. NULL is ignored. */
void tensor_progress_free(tensor_progress *p);

#ifdef __cplusplus
}
#endif
#endif
