/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* One head of attention, as attention.c passes it to the functions of one dtype. */
#ifndef TENSOR_CPU_ATTENTION_H
#define TENSOR_CPU_ATTENTION_H

#include "kernels/abi/attention.h"
#include "kernels/cpu/simd/cpu.h"

enum attention_operand {
	QUERY,
	KEY,
	VALUE,
	SCORE_MASK,
	OUTPUT,
	SUMS, /* logsumexp, a column */
	GRAD,
	GRAD_QUERY,
	GRAD_KEY,
	GRAD_VALUE,
	ATTENTION_OPERANDS
};

/* A matrix of one head; strides in bytes. data is NULL for an operand that is not given. */
struct attention_matrix {
	char *data;
	int64_t row, column;
	enum tensor_dtype dtype;
};

struct attention_shape {
	int64_t queries, keys, features, values; /* l, s, e, v */
	enum tensor_dtype dtype;
	bool masked, causal;
	double scale;
};

/* Gradients of key and value as they are summed; rows of `features` and `values` elements, in the dtype of sums. */
struct attention_gradients {
	void *key, *value;
	int64_t key_row, value_row; /* in elements */
};

struct attention_functions {
	/* Queries that are computed together. */
	int64_t (*block)(const struct attention_shape *s);
	/* Bytes of temporary memory of the next two functions. */
	size_t (*forward_bytes)(const struct attention_shape *s);
	size_t (*backward_bytes)(const struct attention_shape *s);
	/* OUTPUT and SUMS of a block of n queries. */
	void (*forward)(const struct attention_shape *s, const struct attention_matrix *head,
			int64_t from, int64_t n, void *memory);
	/* GRAD_QUERY of n queries, and their contribution to sums. */
	void (*backward)(const struct attention_shape *s, const struct attention_matrix *head,
			 int64_t from, int64_t n, void *memory,
			 const struct attention_gradients *sums);
	/* to += from */
	void (*add)(void *to, const void *from, int64_t n);
};

extern const struct attention_functions CPU_NAME(attention_f32);
extern const struct attention_functions CPU_NAME(attention_f64);
extern const struct attention_functions
	CPU_NAME(attention_pairs); /* of bf16, if cpu_pairs() is not PAIRS_NONE */

#endif
