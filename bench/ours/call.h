/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Operands of rows that are a line of text: the form of a word of call.c, and the layouts of layouts.c. */
#ifndef BENCH_CALL_H
#define BENCH_CALL_H

#include "row.h"

struct form {
	int dtype, ndim, step, copies;
	int64_t size[TENSOR_MAX_DIMS], below, entries;
	bool transposed, positive, blocked, ready, ordered, skewed;
	char layout; /* 0, or a mark of layouts.c */
};

/*
 * Numbers that are exact in f32, in [-1, 1); integers from -50 to 50, or below f->below. Each call has a seed of its own. The row owns
 * the result, as that of the other functions.
 */
tensor *call_numbers(tensor_ints size, const struct form *f);
tensor *call_sparse(const struct form *f);
tensor *call_quantized(const struct form *f);
/* The values of a sparse result, coalesced; the numbers of a quantized one; else a strided copy. */
tensor *call_strided(tensor *t);
/* The bytes of the indices and values of a sparse tensor. */
int64_t call_sparse_bytes(tensor *t);

#endif
