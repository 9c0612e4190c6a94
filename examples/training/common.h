// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What the training programs have in common: arguments, steps, checkpoints.
 *
 * usage: PROGRAM [STEPS [FILE [f32|f64 [EVERY]]]]
 *
 * Trains up to step STEPS. With FILE, goes on from the state in it if it exists, and saves it there at the
 * end, and after each EVERY steps: the same steps in one run or in several give the same bits. Batches depend on the
 * number of the step alone. Several ranks (tensorrun -n 4 PROGRAM ...) share the rows of each batch. Shows the progress
 * on a terminal, else prints the loss of each step. Run them from the root of the tree.
 */
#ifndef TRAINING_COMMON_H
#define TRAINING_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensor/progress.h>
#include <tensor/tensor.h>

struct training {
	tensor_module *model;
	tensor_optim *optim; /* made in the first step, when the parameters exist */
	const char *file;    /* NULL: no checkpoints */
	bool loaded;
	tensor_progress *progress;
	int64_t step, last,
		every; /* every: steps from one checkpoint to the next; 0: the last one alone */
	tensor_options options; /* the dtype of the model */
	bool failed;
};

/* False, with a message, if there is nothing to begin or go on with. */
bool training_begin(struct training *t, int argc, char **argv, int64_t steps);
/* True while there is a step to make. Random numbers of a step depend on its number. */
bool training_next(struct training *t);
/* Backward from the loss, and a step of the optimizer. */
void training_step(struct training *t, tensor *loss, tensor_optim_options options);
/* Saves and frees. The exit status of the program: 0 if all steps succeeded. */
int training_end(struct training *t);

/* The rows of a batch of n rows at *at that this rank computes. */
void ranks_part(int64_t *at, int64_t *n);

int ranks_rank(void);
int ranks_count(void);

/* For common.c, which calls them in this order. */
bool ranks_begin(void);
/* The parameters exist: from now on they are the same on all ranks. */
bool ranks_prepare(tensor_module *model);
/* Backward from this rank's loss; the mean of all ranks' losses. */
bool ranks_backward(tensor *loss, double *mean);
/* Rank 0 writes a checkpoint if it is time for one. */
bool ranks_save(const struct training *t, bool is_last);
void ranks_end(void);

/* The digits of examples/digits, from row `first`: images [n, 1, 8, 8] in 0..1, labels i64 [n]. 0 or -1. */
int training_digits(struct training *t, int64_t first, int64_t n, tensor **images, tensor **labels);

#endif
