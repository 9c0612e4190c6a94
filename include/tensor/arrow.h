/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The Arrow C data interface: exchange of one-dimensional tensors in host memory with libraries of columns
 * (Arrow, pandas, Polars, DuckDB), without a copy except for bool.
 *
 * The structures are those of the specification. A program that includes another header with them has the same
 * definitions, whichever is first. <tensor/tensor.h> does not include this header.
 */
#ifndef TENSOR_ARROW_H
#define TENSOR_ARROW_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE	      2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

/* The type of a column. */
struct ArrowSchema {
	const char *format; /* one letter for a primitive type */
	const char *name;   /* may be NULL */
	const char *metadata;
	int64_t flags; /* ARROW_FLAG_* */
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *self); /* NULL: released or moved */
	void *private_data;
};

/* The elements of a column. */
struct ArrowArray {
	int64_t length;
	int64_t null_count; /* -1: not counted */
	int64_t offset;	    /* of the first element in the buffers, in elements */
	int64_t n_buffers;
	int64_t n_children;
	const void **
		buffers; /* of a primitive type: the bits of validity, NULL without nulls; elements */
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *self); /* NULL: released or moved */
	void *private_data;
};
#endif

/*
 * | dtype | bool | i8 | u8 | i16 | u16 | i32 | u32 | i64 | u64 | f16 | f32 | f64 |
 * | format | b | c | C | s | S | i | I | l | L | e | f | g |
 */

/**
 * tensor_to_arrow() - export a tensor as a column
 * @t: a contiguous tensor of one dimension in host memory that requires no gradient
 * @schema: is overwritten
 * @array: is overwritten
 *
 * Nothing is copied, except that elements of bool become bits. Receivers regard the memory as constant, so the
 * program must not write to it while @array is in use. The memory lives until @array is released (in any
 * thread), even if @t is released before. The receiver releases both structures, each once.
 *
 * Return: 0, or -errno; then the structures are unchanged. EINVAL: another number of dimensions, a stride other
 *   than 1 (use tensor_contiguous()), requires a gradient (use tensor_detach()), NULL. EOPNOTSUPP: a dtype that
 *   Arrow does not have, sparse, quantized or blocked, or on another device. ENOMEM.
 */
int tensor_to_arrow(tensor *t, struct ArrowSchema *schema, struct ArrowArray *array);

/**
 * tensor_from_arrow() - import a column of a primitive type without nulls
 * @schema: its type
 * @array: its elements
 *
 * Returns a read-only tensor on the memory of @array; use tensor_clone() to change it. A column of bool is
 * copied to a new, writable tensor. On success @schema is released and @array is moved: its release member
 * becomes NULL, and the thread that releases the last reference to the memory, including views and saved
 * tensors, calls the function that it had, for a copy of the structure.
 *
 * Return: a tensor, owned like an operator's result, or NULL; then both structures still belong to the caller.
 *   EOPNOTSUPP: a type without a dtype, children, a dictionary, an element that is null. EINVAL: invalid contents: released
 *   structures, negative numbers, another number of buffers than 2, children, no elements, elements
 *   that are not aligned to their type. EOVERFLOW: elements beyond the address space.
 */
tensor *tensor_from_arrow(struct ArrowSchema *schema, struct ArrowArray *array);

#ifdef __cplusplus
}
#endif
#endif
