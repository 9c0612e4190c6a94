/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * libtensor: tensors on storage that the kernel owns.
 *
 * Ownership. An operator returns a new tensor; inside tensor_scope it belongs to the scope,
 * with no scope open the caller owns it and calls tensor_release(). In-place functions (add_)
 * and out functions (add_out) return their own argument and change no ownership.
 *
 * Errors. A function that returns a tensor returns NULL, any other returns -errno; both leave
 * a record for the thread, see tensor_last_error(). An operator given NULL returns NULL and
 * keeps the record, so a chain is checked once at its end.
 *
 * Threads. Any tensor may be read from any thread. The error record, the scope, grad mode and
 * the dispatch key sets belong to the thread.
 */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lifetime ---- */

/* One more reference; returns t. NULL is passed through. */
tensor *tensor_retain(tensor *t);
/* One reference less; frees at zero. NULL is ignored. */
void tensor_release(tensor *t);
/* Takes t out of the open scope: the caller owns a reference from now on. Returns t. */
tensor *tensor_keep(tensor *t);

/* The opposite: gives a reference of the caller's to the open scope, if there is one. Returns t,
 * so that a function can return what an inner scope made like an operator does. */
tensor *tensor_scope_add(tensor *t);

struct tensor_scope_guard {
	uint32_t mark, depth; /* what was open before */
	bool once;
};
struct tensor_scope_guard tensor_scope_enter(void);
void tensor_scope_leave(struct tensor_scope_guard *guard);

/*
 * tensor_scope { ... }: results made inside are released at the end, on every way out
 * (break, return, goto). Scopes nest; a scope belongs to the thread that opened it.
 *
 * longjmp() out of a scope does not end it: C runs no cleanup there. The next end of a scope around it releases what
 * both hold; without one around it, the thread's end does. Until then results belong to the scope that was left. So a
 * program that calls setjmp() does it inside a scope:
 *
 *	tensor_scope {
 *		if (!setjmp(env))
 *			compute();	opens scopes; may longjmp(env, 1)
 *	}
 *
 * tensor_no_grad() left by longjmp() stays as well: see tensor_set_grad_enabled(). No function that the library
 * calls (a fallback, an allocator) may jump out of it.
 */
#define tensor_scope	     TENSOR_SCOPE_(TENSOR_PASTE_(tensor_guard_, __COUNTER__))
#define TENSOR_SCOPE_(guard) TENSOR_SCOPE__(guard)
#define TENSOR_SCOPE__(guard)                                                       \
	for (struct tensor_scope_guard __attribute__((cleanup(tensor_scope_leave))) \
	     guard = tensor_scope_enter();                                          \
	     guard.once; guard.once = false)

/* ---- what a tensor is ---- */

int tensor_dim(const tensor *t);
int64_t tensor_size(const tensor *t, int dim); /* dim may be negative; -1 if out of range */
int64_t tensor_stride(const tensor *t, int dim);
const int64_t *tensor_sizes(const tensor *t);
const int64_t *tensor_strides(const tensor *t);
tensor_ints tensor_shape(const tensor *t);
int64_t tensor_numel(const tensor *t);
int64_t tensor_storage_offset(const tensor *t); /* in elements */
enum tensor_dtype tensor_dtype(const tensor *t);
enum tensor_layout tensor_layout(const tensor *t);
tensor_device tensor_get_device(const tensor *t);
bool tensor_is_contiguous(const tensor *t);
/* The same of the order of dimensions that `format` says; preserve is row-major here. */
bool tensor_is_contiguous_as(const tensor *t, enum tensor_memory_format format);
/* True when both see the same storage. */
bool tensor_shares_storage(const tensor *a, const tensor *b);
/* Counts in-place changes of the storage, through whichever view they came. */
uint32_t tensor_version(const tensor *t);
/* False for a tensor whose memory is mapped read-only. */
bool tensor_is_writable(const tensor *t);

size_t tensor_itemsize(enum tensor_dtype dtype);	/* bytes; 0 for an unknown dtype */
const char *tensor_dtype_name(enum tensor_dtype dtype); /* "f32" */
const char *tensor_layout_name(enum tensor_layout layout);
/* The dtype that holds what both hold. TENSOR_DTYPE_NONE, with the error set, for u64 with a signed
 * integer and for a float of 8 bits with anything else. */
enum tensor_dtype tensor_promote_types(enum tensor_dtype a, enum tensor_dtype b);
/* The dtype in which an operator of a and b computes: dimensions count, then 0-d tensors. As above,
 * TENSOR_DTYPE_NONE where there is none. */
enum tensor_dtype tensor_result_type(const tensor *a, const tensor *b);

/* ---- data in and out ---- */

/* First element, for CPU tensors; NULL elsewhere. Strides are tensor_strides(). */
const void *tensor_data(const tensor *t);
/* The same for writing. NULL with EACCES where the memory is mapped read-only. What is written through it
 * does not count as an in-place change (tensor_version()). */
void *tensor_mutable_data(tensor *t);
/* A new contiguous tensor of this shape, filled from data (numel elements of dtype). */
tensor *tensor_from_data(const void *data, tensor_ints_arg size, tensor_options options);
/* Copies numel elements in row-major order to or from memory of the caller's. nbytes is what
 * the caller has; EINVAL when it is not numel * itemsize. */
int tensor_copy_to(const tensor *t, void *data, size_t nbytes);
int tensor_copy_from(tensor *t, const void *data, size_t nbytes);
/* The one element as a number. With more or fewer elements: EINVAL, and *value stays. */
int tensor_item(const tensor *t, double *value);
int tensor_item_int(const tensor *t, int64_t *value);
/* The same for every dtype: bool, int, float or complex. The others give the real part. */
int tensor_item_scalar(const tensor *t, tensor_scalar *value);
/* Element at an index of dim integers, as a number. */
int tensor_at(const tensor *t, tensor_ints_arg index, double *value);

/* Text as people know it, edge items and all. Returns bytes needed, like snprintf. */
int tensor_format(const tensor *t, char *buf, size_t size);
/* Prints tensor_format() and a newline to a stdio stream (FILE *), stdout when NULL. */
int tensor_print(const tensor *t, void *stream);

/* ---- errors ---- */

#define TENSOR_ERROR_TEXT 480

struct tensor_error {
	int code;		      /* errno value; 0: no error yet */
	char text[TENSOR_ERROR_TEXT]; /* "mm: mat2 must have 64 rows ..., got [48, 10]" */
};

/* The thread's latest failure. Valid until the next failure in this thread. */
const struct tensor_error *tensor_last_error(void);
void tensor_clear_error(void);
/* Writes "prefix: text" to stderr; returns -code, so that it can stand after return. */
int tensor_perror(const char *prefix);

/* ---- threads ---- */

/* Threads that one operator may use, the caller's included. 1 <= n <= 256. Results have the
 * same bits whatever this is. */
int tensor_set_num_threads(int n);
int tensor_get_num_threads(void);

#ifdef __cplusplus
}
#endif

#include <tensor/buffer.h>
#include <tensor/io.h>
#include <tensor/random.h>
#include <tensor/storage.h>
#ifndef TENSOR_WITHOUT_OPS /* the library itself: most of it is not rebuilt for a new operator */
#include <tensor/ops.h>
#endif
#include <tensor/index.h>
#include <tensor/autograd.h>
#endif
