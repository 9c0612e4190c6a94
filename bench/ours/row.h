/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A row of the benchmark: a set-up, work that is run n times and timed, and a number that the
 * peers must compute, too, so that all sides do the same work.
 */
#ifndef BENCH_ROW_H
#define BENCH_ROW_H

#include <tensor/tensor.h>

#include <math.h>

struct row {
	const char *name;
	void (*setup)(void);
	void (*run)(int64_t n);
	double (*value)(void);	/* NULL: no number to compare */
	void (*teardown)(void); /* undoes setup; NULL: row_drop() */
};

/* The last element has no name. */
extern const struct row tiny_rows[], train_rows[], large_rows[], share_rows[], blocked_rows[],
	limit_rows[];

/* A row of steps.c: a step of a model; NULL: no such model. */
const struct row *step_row(const char *name);
/* A row from a line of text, `add.Tensor f32[4,4] f32[4,4]`; NULL: no such operator. Only
 * one exists at a time. */
const struct row *call_row(const char *spec);

/* The bytes that one run reads and writes, and its multiplications and additions; false: not known. */
bool limit_work(const char *name, int64_t *bytes, int64_t *flops);
/* The bytes of the tensors that the row of call_row() reads and writes, each once. */
int64_t call_bytes(void);

/* Replies to the request scale; only bench/scaling.c has it. */
__attribute__((weak)) void scale_row(const struct row *row, double ms);

/* Set from the command line before the set-up of rows. */
extern int row_threads;

/* Ends the row; its reply is the text. */
_Noreturn void row_fail(const char *why);
/* Keeps t until the row ends; a failure ends the row with the library's text. */
tensor *row_own(tensor *t);
void row_drop(void);
/* Owned f32 tensor of scale * sin(seed + 0.37 i): the peers use the same numbers. */
tensor *row_wave(tensor_ints size, double seed, double scale);
/* Sum of the elements of a (f32). Releases a. */
double row_sum(tensor *t);
/* Ends the row if err is negative. */
void row_check(int err);

#endif
