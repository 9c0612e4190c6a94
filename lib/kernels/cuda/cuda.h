/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The plugin's host side: what its files share. A kernel's wrapper is cuda_begin() (device,
 * stream, fork), launchers, cuda_end(); every CUDA call is checked on the way.
 */
#ifndef TENSOR_CUDA_INTERNAL_H
#define TENSOR_CUDA_INTERNAL_H

#include "dispatch/dispatch.h"
#include "core/tensor_impl.h"
#include "storage/devices.h"
#include "kernels/abi/kernels.h"
#include "kernels/cuda/launch.h"

#define CUDA_DEVICES 64 /* that have a place in the tables below */

/* ---- errors (plugin.c) ---- */

/* Records what CUDA said about `op`; returns -errno. */
int cuda_error(const char *op, cudaError_t err) __attribute__((cold));

static inline int cuda_check(const char *op, cudaError_t err)
{
	return likely(err == cudaSuccess) ? 0 : cuda_error(op, err);
}

/* ---- a call ---- */

/* What an operator's wrapper runs with: its device is the current one until cuda_end(). */
struct cuda_call {
	const char *op;
	int device, before;
	cudaStream_t stream;
};

int cuda_begin(struct cuda_call *c, const char *op, int device);
int cuda_end(struct cuda_call *c, int err); /* returns err */
/* The result of a launcher. */
int cuda_launched(const struct cuda_call *c, int err, enum tensor_dtype dtype);
/* Waits for the call's stream; reports what failed in it. */
int cuda_wait(const struct cuda_call *c);

/* In a forked child, whose parent has the devices. */
extern bool cuda_forked;
/* Some thread has set a stream: until then everything is ordered by the default one. */
extern atomic_bool cuda_streams_set;
cudaStream_t cuda_stream(int device); /* the thread's */

/* ---- memory (memory.c) ---- */

extern const struct tensor_allocator cuda_memory;
/* Memory for the length of a call, ordered by its stream. */
int cuda_scratch(const struct cuda_call *c, size_t nbytes, void **data);
void cuda_scratch_free(const struct cuda_call *c, void *data);
/* The call's stream uses t, which may belong to another stream. */
void cuda_use_slow(const struct cuda_call *c, const tensor *t);
static inline void cuda_use(const struct cuda_call *c, const tensor *t)
{
	if (unlikely(atomic_load_explicit(&cuda_streams_set, memory_order_relaxed)))
		cuda_use_slow(c, t);
}

/* ---- pinned host memory (pin.c) ---- */

/* Whether t lies in a pinned buffer; pins its buffer at the first call. */
bool cuda_pinned(const tensor *t);
/* Keeps t's memory until the work that the call's stream has now is done. */
int cuda_keep(const struct cuda_call *c, const tensor *t);
/* Lets go of what is done. */
void cuda_reap(void);
bool cuda_nonblocking(void);
bool cuda_set_nonblocking(bool nonblocking);

/* ---- walks (dims.c) ---- */

void cuda_dims_init(struct cuda_dims *d);
/* The next dimension outwards, with a stride for each of n operands; merged where it can be. */
void cuda_dims_add(struct cuda_dims *d, int n, int64_t size, const int64_t *stride);
/* Chooses the index width. */
void cuda_dims_done(struct cuda_dims *d, int n);

/* ---- kernels ---- */

/* Operand 1 to operand 0 on one device, conversions included; data and strides (bytes) are set. */
int cuda_copy_within(const struct cuda_call *c, struct cuda_pointwise *p, enum tensor_dtype to,
		     enum tensor_dtype from);

int cuda_copy(struct tensor_iter *it, enum tensor_dtype to, enum tensor_dtype from);
int cuda_fill(struct tensor_iter *it, const struct pointwise_params *params);
int cuda_add(struct tensor_iter *it, const struct pointwise_params *params);
int cuda_add_alpha(struct tensor_iter *it, const struct pointwise_params *params);
int cuda_sub(struct tensor_iter *it, const struct pointwise_params *params);
int cuda_mul(struct tensor_iter *it, const struct pointwise_params *params);
int cuda_div(struct tensor_iter *it, const struct pointwise_params *params);
int cuda_relu(struct tensor_iter *it, const struct pointwise_params *params);
int cuda_relu_backward(struct tensor_iter *it, const struct pointwise_params *params);
int cuda_sum(tensor *out, const tensor *self, uint32_t dims);
int cuda_softmax(tensor *out, const tensor *self, int dim);
int cuda_log_softmax(tensor *out, const tensor *self, int dim);
int cuda_softmax_backward(tensor *out, const tensor *grad, const tensor *output, int dim);
int cuda_log_softmax_backward(tensor *out, const tensor *grad, const tensor *output, int dim);
int cuda_mm(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha, tensor_scalar beta);
int cuda_index_select(tensor *out, const tensor *self, int dim, const tensor *index);
int cuda_index_add(tensor *out, int dim, const tensor *index, const tensor *source, double alpha);
int cuda_gather(tensor *out, const tensor *self, int dim, const tensor *index);
int cuda_scatter_add(tensor *out, int dim, const tensor *index, const tensor *source);

#endif
