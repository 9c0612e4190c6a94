/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Arguments of the examples of the reference. They have dtype example_dtype, so that each example
 * is tried with every dtype.
 */
#ifndef TESTS_REFERENCE_INPUTS_H
#define TESTS_REFERENCE_INPUTS_H

#include <math.h>
#include <tensor/dispatch.h>
#include <tensor/tensor.h>

#define EXAMPLE_RESULTS 16

struct example {
	const char *op, *family;
	const char *place; /* file:line of the example, or of the operator if there is none */
	const char *code, *gives;
	int (*run)(tensor **results); /* returns the number of results, or -1 with the error set */
	int pointers;		      /* to results that can be NULL */
	bool needs_pointer;	      /* to its result, which cannot */
};

extern const struct example examples[];
extern const int examples_count;
extern enum tensor_dtype example_dtype;
extern unsigned example_unwanted; /* bit i: NULL in place of the pointer to result i */

#define example_wanted(i, pointer) (example_unwanted >> (i)&1 ? NULL : (pointer))

static inline tensor *example_as(tensor *t, enum tensor_dtype dtype)
{
	return tensor_to(t, TENSOR_OPTIONS(.dtype = dtype));
}

static inline tensor *example_values(const double *values, int64_t n, enum tensor_dtype dtype)
{
	return example_as(tensor_from_data(values, TENSOR_SHAPE(n),
					   TENSOR_OPTIONS(.dtype = TENSOR_F64)),
			  dtype);
}

#define EXAMPLE_LIST(dtype, ...)                        \
	example_values((const double[]){ __VA_ARGS__ }, \
		       sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double), dtype)

/* One dimension with these values, of dtype example_dtype, i64 or bool. */
#define vector(...) EXAMPLE_LIST(example_dtype, __VA_ARGS__)
#define ints(...)   EXAMPLE_LIST(TENSOR_I64, __VA_ARGS__)
#define bools(...)  EXAMPLE_LIST(TENSOR_BOOL, __VA_ARGS__)
/* Two dimensions, `rows` of them. */
#define matrix(rows, ...) tensor_view(vector(__VA_ARGS__), TENSOR_SHAPE(rows, -1))
/* 0, 1, 2, ... in any shape. */
#define counting(...) example_counting(TENSOR_SHAPE(__VA_ARGS__), example_dtype)
static inline tensor *example_counting(tensor_ints shape, enum tensor_dtype dtype)
{
	int64_t n = 1;

	for (int64_t i = 0; i < shape.len; i++)
		n *= shape.data[i];
	return tensor_view(
		example_as(tensor_arange(tensor_scalar_int(n), TENSOR_OPTIONS(.dtype = TENSOR_I64)),
			   dtype),
		shape);
}

/* A sparse 2 x 2 matrix with 5 and 6 beside the diagonal. */
#define SPARSE_AT tensor_view(ints(0, 1, 1, 0), TENSOR_SHAPE(2, 2))
#define COO	  tensor_to_sparse(matrix(2, 0, 5, 6, 0))
#define CSR	  tensor_to_sparse_csr(matrix(2, 0, 5, 6, 0))

/* Quantized with scale 0.5 and zero point 0. */
#define QU8(x) tensor_quantize_per_tensor(x, 0.5, 0, TENSOR_U8)
#define QI8(x) tensor_quantize_per_tensor(x, 0.5, 0, TENSOR_I8)

/* Converts to the blocked layout of oneDNN, and back. */
#define BLOCKED(x) tensor_to_mkldnn(x, TENSOR_DTYPE_NONE)
#define IMAGE	   tensor_view(counting(9), TENSOR_SHAPE(1, 1, 3, 3))
#define TAPS	   tensor_view(vector(1, 0, 0, 1), TENSOR_SHAPE(1, 1, 2, 2))

/* A list that the operator changes: the example prints its contents after the call. */
#define changed(...) example_keep(TENSOR_LIST(__VA_ARGS__))
static tensor *example_kept[EXAMPLE_RESULTS];
static int example_nkept;
static inline tensor_list example_keep(tensor_list list)
{
	for (example_nkept = 0; example_nkept < list.len; example_nkept++)
		example_kept[example_nkept] = list.data[example_nkept];
	return (tensor_list){ example_kept, list.len };
}

static inline int example_changed(tensor **results)
{
	for (int i = 0; i < example_nkept; i++)
		results[i] = example_kept[i];
	return example_nkept;
}

/* For recurrent layers: weights in tenths, and an initial state of two elements. */
#define WEIGHT(rows, columns)                                                        \
	tensor_to(tensor_div_scalar(counting(rows, columns), tensor_scalar_int(10)), \
		  TENSOR_OPTIONS(.dtype = example_dtype))
#define STATE tensor_view(vector(0.5, 0.5), TENSOR_SHAPE(1, 1, 2))

/*
 * Log probabilities of two classes for three steps and one sequence; queries of one head with two
 * rows.
 */
#define LOG_PROBS \
	tensor_log(tensor_view(vector(0.5, 0.5, 0.25, 0.75, 0.5, 0.5), TENSOR_SHAPE(3, 1, 2)))
#define HEAD(...) tensor_view(vector(__VA_ARGS__), TENSOR_SHAPE(1, 1, 2, 2))

/* A 0-d tensor. */
static inline tensor *number(tensor_scalar value)
{
	return tensor_full(TENSOR_SCALAR_SHAPE, value, TENSOR_OPTIONS(0));
}

#endif
