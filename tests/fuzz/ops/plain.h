/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tensors and operators written plainly: an array of numbers in row-major order, an index at a
 * time, nothing shared with the library. What the fuzzer compares with.
 */
#ifndef FUZZ_PLAIN_H
#define FUZZ_PLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <tensor/dispatch.h>
#include <tensor/tensor.h>

/* Integers and bool in i; floats in re, complex numbers in re and im. */
struct value {
	int64_t i;
	double re, im;
};

struct plain {
	enum tensor_dtype dtype;
	int ndim;
	int64_t numel;
	int64_t sizes[TENSOR_MAX_DIMS];
	struct value *v;
	double size; /* magnitude of what was added up: rounding is relative to that too */
	double slack; /* rounding that the library may differ by, in units of the dtype's; INFINITY: any */
};

/* Memory that lasts until the end of the case. */
void *plain_alloc(size_t bytes);
void plain_free_all(void);

/* Uninitialised values. */
void plain_make(struct plain *p, enum tensor_dtype dtype, int ndim, const int64_t *sizes);
/* What a tensor holds, read through its strides. */
void plain_read(struct plain *p, const tensor *t);
/* The sum of what is finite in it. */
double plain_size(const struct plain *p);
/* Slack counts units of `from` now, whatever p's dtype. */
void plain_slack_of(struct plain *p, enum tensor_dtype from);
/* The value as the dtype holds it: wrapped, truncated, rounded. */
struct value plain_round(struct value v, enum tensor_dtype from, enum tensor_dtype to);
struct value plain_float(double re);
struct value plain_int(int64_t i);
double plain_real(const struct value *v, enum tensor_dtype dtype);
/* Is the tensor what is expected? Otherwise says where not. */
bool plain_equal(const struct plain *want, const tensor *got, char *why, size_t size);

/* Flat position of an index, and the next index in row-major order (false: that was the last). */
int64_t plain_at(const struct plain *p, const int64_t *index);
bool plain_next(const struct plain *p, int64_t *index);

bool plain_is_integral(enum tensor_dtype d);
bool plain_is_complex(enum tensor_dtype d);
/* 1 bool, 2 integer, 3 float, 4 complex */
int plain_category(enum tensor_dtype d);
enum tensor_dtype plain_promote(enum tensor_dtype a, enum tensor_dtype b);
/* Operands of an operator: dimensions, 0-d, numbers; numbers have ndim -1. */
enum tensor_dtype plain_result_type(const struct plain *a, const struct plain *b);

#endif
