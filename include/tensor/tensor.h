/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * libtensor: tensors in private memory, or in buffers that processes share.
 *
 * Ownership. An operator returns a new tensor. Inside tensor_scope it belongs to the scope; without
 * an open scope the caller owns it and calls tensor_release(). In-place functions (add_) and out
 * functions (add_out) return their own argument and do not change its ownership.
 *
 * Errors. A function that returns a tensor returns NULL on failure, any other returns -errno; both
 * set the thread's error record, see tensor_last_error(). An operator with a NULL argument returns
 * NULL and keeps the record, so a chain of calls is checked once at its end.
 *
 * Results. An operator with several results stores them through pointers. NULL in place of such a pointer drops the result:
 * tensor_max_dim(x, 0, false, &values, NULL).
 *
 * Threads. Any thread may read any tensor. The error record, the scope, grad mode and the dispatch
 * key sets belong to the thread.
 */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lifetime ---- */

/* Add a reference. Returns t; NULL if t is NULL. */
tensor *tensor_retain(tensor *t);
/* Drop a reference; the last one frees the tensor. NULL is ignored. */
void tensor_release(tensor *t);
/*
 * Give the caller a reference to an operator's result, so that it outlives the open scope. Without
 * an open scope the caller owns the result already, and no reference is added; for a borrowed tensor
 * (tensor_grad()) call tensor_retain(). Returns t.
 */
tensor *tensor_keep(tensor *t);

/* The inverse of tensor_keep(): give a reference of the caller to the open scope, if there is one.
 * Returns t, so that a function can return the result of an inner scope as an operator does. */
tensor *tensor_scope_add(tensor *t);

struct tensor_scope_guard {
	uint32_t mark, depth; /* the state before the scope */
};
/* Open a scope; leave it in the same thread and in reverse order. For bindings: C code uses
 * tensor_scope. */
struct tensor_scope_guard tensor_scope_enter(void);
void tensor_scope_leave(struct tensor_scope_guard *guard);

/*
 * tensor_scope { ... }: results of operators inside are released at the end, also by break, return
 * and goto. Scopes nest; a scope belongs to the thread that opened it.
 *
 * longjmp() out of a scope does not end it, because C runs no cleanup. The end of an enclosing
 * scope, or else the end of the thread, releases its tensors; until then results belong to the
 * scope that was left. A program that uses setjmp() therefore calls it inside a scope:
 *
 * 	tensor_scope {
 * 		if (!setjmp(env))
 * 			compute();	opens scopes; may longjmp(env, 1)
 * 	}
 *
 * longjmp() out of tensor_no_grad leaves it active as well: see tensor_set_grad_enabled().
 * Functions called by the library (a fallback, an allocator) must not jump out of it.
 */
#define tensor_scope	     TENSOR_SCOPE_(TENSOR_PASTE_(tensor_guard_, __COUNTER__))
#define TENSOR_SCOPE_(guard) TENSOR_SCOPE__(guard)
/* The condition is a pointer, so that compilers know that the body runs once and do not warn that a
 * variable which is assigned in it may be uninitialized afterwards. */
#define TENSOR_SCOPE__(guard)                                                     \
	for (struct tensor_scope_guard guard                                      \
	     __attribute__((cleanup(tensor_scope_leave))) = tensor_scope_enter(), \
	     *guard##_once = &guard;                                              \
	     guard##_once; guard##_once = NULL)

/*
 * ---- properties ----
 *
 * Functions that take one tensor do not fail or set an error. For NULL they return -1, NULL, false or the
 * dtype, layout and device 0, so that the result of a chain of calls is checked once at its end.
 * Arrays belong to the tensor.
 */

/* Number of dimensions, 0 to TENSOR_MAX_DIMS. */
int tensor_dim(const tensor *t);
/* Size of a dimension, and its stride in elements. dim may be negative; -1 if out of range. */
int64_t tensor_size(const tensor *t, int dim);
int64_t tensor_stride(const tensor *t, int dim);
/* Arrays of tensor_dim(t) numbers; tensor_shape() has the sizes with their number. */
const int64_t *tensor_sizes(const tensor *t);
const int64_t *tensor_strides(const tensor *t);
tensor_ints tensor_shape(const tensor *t);
/* Number of elements. */
int64_t tensor_numel(const tensor *t);
int64_t tensor_storage_offset(const tensor *t); /* in elements */
enum tensor_dtype tensor_dtype(const tensor *t);
enum tensor_layout tensor_layout(const tensor *t);
tensor_device tensor_get_device(const tensor *t);
/* Row-major without gaps. */
bool tensor_is_contiguous(const tensor *t);
/* Contiguous in the order of dimensions of `format`; TENSOR_PRESERVE_FORMAT is row-major here. */
bool tensor_is_contiguous_as(const tensor *t, enum tensor_memory_format format);
/* True if both use the same storage. */
bool tensor_shares_storage(const tensor *a, const tensor *b);
/*
 * Number of in-place changes of the storage by operators, through any tensor on it; of a buffer also those by other
 * processes (docs/sharing.md, Versions).
 */
uint32_t tensor_version(const tensor *t);
/* False for a tensor in memory mapped read-only. */
bool tensor_is_writable(const tensor *t);

size_t tensor_itemsize(enum tensor_dtype dtype);	   /* bytes; 0 for an unknown dtype */
const char *tensor_dtype_name(enum tensor_dtype dtype);	   /* "f32" */
const char *tensor_layout_name(enum tensor_layout layout); /* "sparse_coo" */
/* The smallest dtype that represents the values of both. TENSOR_DTYPE_NONE, with the error set, for
 * u64 with a signed integer and for an 8-bit float with another dtype. */
enum tensor_dtype tensor_promote_types(enum tensor_dtype a, enum tensor_dtype b);
/* The dtype in which an operator on a and b computes: a tensor with dimensions takes precedence
 * over a 0-d tensor. TENSOR_DTYPE_NONE as in tensor_promote_types(). */
enum tensor_dtype tensor_result_type(const tensor *a, const tensor *b);

/* ---- access to data ---- */

/* Address of the first element of a CPU tensor, borrowed; NULL on other devices. The elements are
 * tensor_strides() apart. */
const void *tensor_data(const tensor *t);
/* As tensor_data(), for writing. NULL with EACCES if the memory is read-only. Writes through the
 * address do not increment tensor_version(). */
void *tensor_mutable_data(tensor *t);
/* New contiguous tensor of this shape with a copy of data (numel elements of the dtype). NULL with
 * the error set. */
tensor *tensor_from_data(const void *data, tensor_ints_arg size, tensor_options options);

/**
 * tensor_from_blob() - make a tensor on the caller's memory
 * @data: address of the first element, in host memory; may be NULL without elements
 * @size: the shape
 * @strides: one for each dimension, in elements; negative ones lead to addresses below @data. TENSOR_NO_INTS:
 *   row-major
 * @options: the dtype; layout and device are the defaults
 * @deleter: called once with @data and @ctx when nothing uses the memory any more; NULL: not called
 * @ctx: for @deleter
 *
 * Nothing is copied: the tensor, its views and operators in place use the memory itself, which must stay
 * valid until @deleter is called. That is done by the thread that releases the last reference to the memory,
 * including views and tensors saved by autograd. It runs inside that function of the library and must not wait for another
 * thread that is in one. The program must synchronize its own writes, which are not counted by tensor_version().
 * Strides of dimensions of size 0 or 1 are ignored.
 *
 * Return: a tensor, owned like an operator's result, or NULL; then @deleter is not called. EINVAL: data
 *   that is not aligned to the dtype or NULL, a bool that is neither 0 nor 1 (where elements overlap,
 *   also a byte between them), lists of different lengths, a memory format. EOPNOTSUPP: another layout or device,
 *   a shareable tensor. EOVERFLOW: sizes or strides beyond 64 bits or the address space.
 */
tensor *tensor_from_blob(void *data, tensor_ints_arg size, tensor_ints_arg strides,
			 tensor_options options, void (*deleter)(void *data, void *ctx), void *ctx);
/* The same on memory that the library never writes: tensor_is_writable() is false, and in-place operators fail
 * with EACCES. */
tensor *tensor_from_blob_readonly(const void *data, tensor_ints_arg size, tensor_ints_arg strides,
				  tensor_options options, void (*deleter)(void *data, void *ctx),
				  void *ctx);

/* Copy numel elements in row-major order to or from the caller's memory. nbytes is the size of that
 * memory: EINVAL unless it is numel * itemsize. 0 or -errno. */
int tensor_copy_to(const tensor *t, void *data, size_t nbytes);
int tensor_copy_from(tensor *t, const void *data, size_t nbytes);
/* Convert the single element to a number. 0, or EINVAL for a tensor of more or fewer elements;
 * *value is then unchanged. tensor_item_int() drops the fraction of a float; EOVERFLOW for an element beyond
 * the range of i64 and for NaN. */
int tensor_item(const tensor *t, double *value);
int tensor_item_int(const tensor *t, int64_t *value);
/* As tensor_item(), with the kind of the dtype: bool, int, float or complex; a u64 above
 * INT64_MAX is a float. The other two functions return the real part of a complex number. */
int tensor_item_scalar(const tensor *t, tensor_scalar *value);
/* Convert the element at an index of tensor_dim(t) integers. 0 or -errno. */
int tensor_at(const tensor *t, tensor_ints_arg index, double *value);

/* Format as text, with long dimensions shortened to their first and last elements. Returns the
 * bytes needed, like snprintf(). */
int tensor_format(const tensor *t, char *buf, size_t size);
/* Print tensor_format() and a newline to a stdio stream (FILE *), NULL for stdout. 0 or -errno. */
int tensor_print(const tensor *t, void *stream);

/* ---- errors ---- */

#define TENSOR_ERROR_TEXT 480

struct tensor_error {
	int code;		      /* errno value; 0: no error yet */
	char text[TENSOR_ERROR_TEXT]; /* "mm: mat2 must have 64 rows ..., got [48, 10]" */
	uint64_t binding; /* tensor_set_error_binding() of <tensor/binding.h>; 0: none */
};

/* The thread's last error. Valid until the next one in this thread. */
const struct tensor_error *tensor_last_error(void);
/* Set the record, for a function that the library calls: a positive errno value and a text. Returns -code. */
int tensor_set_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Set the code to 0 and the text to "". */
void tensor_clear_error(void);
/* Write "prefix: text" to stderr. Returns -code, for use in a return statement. */
int tensor_perror(const char *prefix);

/* ---- threads ---- */

/* Maximum number of threads of an operator, including the caller: 1 <= n <= 256. Results are
 * bitwise identical for any n. 0 or EINVAL. */
int tensor_set_num_threads(int n);
int tensor_get_num_threads(void);

#ifdef __cplusplus
}
#endif

#include <tensor/buffer.h>
#include <tensor/data.h>
#include <tensor/io.h>
#include <tensor/profiler.h>
#include <tensor/progress.h>
#include <tensor/random.h>
#include <tensor/storage.h>
/* defined in the library itself, most of which does not depend on ops.h */
#ifndef TENSOR_WITHOUT_OPS
#include <tensor/ops.h>
#endif
#include <tensor/index.h>
#include <tensor/autograd.h>
#include <tensor/vmap.h>
#ifndef TENSOR_WITHOUT_OPS
#include <tensor/init.h>
#include <tensor/layers.h>
#include <tensor/loss.h>
#include <tensor/optim.h>
#endif
#endif
