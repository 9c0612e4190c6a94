/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A plain implementation of tensors and operators: an array of values in row-major order, one index
 * at a time, without code of the library. The fuzzer compares the library with it.
 */
#ifndef FUZZ_PLAIN_H
#define FUZZ_PLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <tensor/dispatch.h>
#include <tensor/tensor.h>

/* Integers and bool are in i; floats in re, complex numbers in re and im. */
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
	double size; /* magnitude of the summands: the rounding error is relative to it as well */
	double slack; /* permitted difference in units in the last place of the dtype; INFINITY: any value */
};

/* Allocates memory that is freed at the end of the case. */
void *plain_alloc(size_t bytes);
void plain_free_all(void);

/* Uninitialised values. */
void plain_make(struct plain *p, enum tensor_dtype dtype, int ndim, const int64_t *sizes);
/* Reads a tensor through its strides. */
void plain_read(struct plain *p, const tensor *t);
/* The sum of the magnitudes of all finite values. */
double plain_size(const struct plain *p);
/* Slack is in units of `from` from now on, whatever the dtype of p. */
void plain_slack_of(struct plain *p, enum tensor_dtype from);
/* Converts a value to the dtype: wrapped, truncated, rounded. */
struct value plain_round(struct value v, enum tensor_dtype from, enum tensor_dtype to);
struct value plain_float(double re);
struct value plain_int(int64_t i);
double plain_real(const struct value *v, enum tensor_dtype dtype);
/* Whether the tensor equals the expected one; otherwise `why` names the first difference. */
bool plain_equal(const struct plain *want, const tensor *got, char *why, size_t size);

/* Position of an index in row-major order; and the next index (false after the last). */
int64_t plain_at(const struct plain *p, const int64_t *index);
bool plain_next(const struct plain *p, int64_t *index);

bool plain_is_integral(enum tensor_dtype d);
bool plain_is_complex(enum tensor_dtype d);
/* 1 bool, 2 integer, 3 float, 4 complex */
int plain_category(enum tensor_dtype d);
enum tensor_dtype plain_promote(enum tensor_dtype a, enum tensor_dtype b);
/*
 * The result dtype of operands: tensors with dimensions, 0-d tensors, scalars; scalars have ndim
 * -1.
 */
enum tensor_dtype plain_result_type(const struct plain *a, const struct plain *b);

#endif
