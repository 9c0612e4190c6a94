/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Shared by the host files of the plugin. A kernel calls cuda_begin() (checks the device and for a
 * fork, selects the stream), then launchers, then cuda_end(); every CUDA call is checked.
 *
 * Order of the files, lowest first: devices.c, captures.c, log.c, call.c, driver.c, uses.c and dims.c; pools.c, expand.c and blocks.c;
 * memory.c, later.c, pin.c and capture.c; streams.c and shared.c; check.c, steps.c and graph.c; indices.c; pointwise.c;
 * copy.c, formula.c, take.c, put.c, mm.c and rows.c; table.c; plugin.c.
 */
#ifndef TENSOR_CUDA_INTERNAL_H
#define TENSOR_CUDA_INTERNAL_H

#include "dispatch/fallback.h"
#include "core/tensor_impl.h"
#include "storage/devices.h"
#include "kernels/abi/embedding.h"
#include "kernels/abi/index.h"
#include "kernels/abi/kernels.h"
#include "kernels/abi/optimizer.h"
#include "kernels/abi/pad.h"
#include "kernels/abi/random.h"
#include "kernels/cuda/launch.h"

#include <tensor/cuda.h>

#define CUDA_DEVICES 64 /* entries of the tables of devices */

/* Positions and offsets up to this are computed in 32 bits. Tests lower it. */
#ifndef CUDA_NARROW_MAX
#define CUDA_NARROW_MAX INT32_MAX
#endif

/* The emulation in tests/cuda/host checks that only blocks in use are accessed. */
#ifdef TENSOR_CUDA_EMULATED
#include <cuda_host.h>
#else
#define cuda_host_block_used(device, data, nbytes, size, stream) ((void)0)
#define cuda_host_block_free(device, data, size, stream)	 ((void)0)
#endif

/* ---- errors (devices.c) ---- */

/* Sets the error of `op` from err; returns -errno. */
int cuda_error(const char *op, cudaError_t err) __attribute__((cold));

static inline int cuda_check(const char *op, cudaError_t err)
{
	return likely(err == cudaSuccess) ? 0 : cuda_error(op, err);
}

/* ---- devices and streams (devices.c, call.c) ---- */

/* Counts the devices; called once, by the plugin's constructor. */
cudaError_t cuda_open_devices(void);
int cuda_device_count(void); /* or -errno with the error set */
int cuda_set_stream(int device, void *stream);
void *cuda_current_stream(int device);
extern const struct tensor_streams cuda_backward_streams;
extern const struct cuda_stream_calls cuda_stream_functions; /* streams.c */
/* Whether the default stream or one of tensor_cuda_stream() has work. False if CUDA is not usable any more. */
bool cuda_streams_busy(int device);

/* True in a child of fork(): CUDA's state belongs to the parent. */
extern bool cuda_forked;
/* True once a thread has set a stream. Until then all work is ordered by the default stream. */
extern atomic_bool cuda_streams_set;

/* ---- a call (call.c) ---- */

/* The state of one call of a kernel. `device` is the current device until cuda_end(), which
 * restores `before`. */
struct cuda_call {
	const char *op;
	int device, before;
	cudaStream_t stream;
	struct tensor_cuda_graph *capture; /* of the stream, or NULL */
	bool relaxed; /* the thread captures on another device: this one's calls are no part of that */
	enum cudaStreamCaptureMode mode; /* before, then */
};

int cuda_begin(struct cuda_call *c, const char *op, int device);
/* Returns err. A call that failed ends the capture: a part of it may have been captured. */
int cuda_end(struct cuda_call *c, int err);
/* Translates the result of a launcher to 0 or -errno with the error set. */
int cuda_launched(const struct cuda_call *c, int err, enum tensor_dtype dtype);
/* Waits for the call's stream; returns an error of any work in it. Fails in a capture. */
int cuda_drain(const struct cuda_call *c);
/* After a wait that the program has asked for: 0, or the error of late checks on the device that have refused values (log.c). */
int cuda_checks_report(const char *op, int device);
/* The same before the host reads what the device has computed; also returns the error of a late check. */
int cuda_wait(const struct cuda_call *c);

/* Sets the calling thread's stream without a check; returns the one before. */
cudaStream_t cuda_swap_stream(int device, cudaStream_t stream);

/* Between these, calls are allowed that CUDA forbids to a thread that captures, because they are no part of the graph. */
static inline enum cudaStreamCaptureMode cuda_relax(void)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

	cudaThreadExchangeStreamCaptureMode(&mode);
	return mode;
}
static inline void cuda_unrelax(enum cudaStreamCaptureMode before)
{
	cudaThreadExchangeStreamCaptureMode(&before);
}

/* ---- captures (capture.c) ---- */

extern atomic_int cuda_captures; /* that are open */
/* The open capture of the stream, or NULL. */
struct tensor_cuda_graph *cuda_capture_of(cudaStream_t stream);
bool cuda_thread_captures(void);
/* The stream that the thread had before it. */
cudaStream_t cuda_capture_before(const struct tensor_cuda_graph *g);
/* Ends a capture with the calling thread's error. Ignored if it has ended. */
void cuda_capture_break(struct tensor_cuda_graph *g);
/* True if the work of the call becomes a part of a graph. */
static inline bool cuda_capturing(const struct cuda_call *c)
{
	return unlikely(c->capture) && cuda_capture_of(c->stream) == c->capture;
}
/* Fails and ends the capture; `why`: "waits for the device". */
int cuda_refuse(const struct cuda_call *c, const char *why) __attribute__((cold));
/* For calls that concern all of a device or need the host, which fail during a capture on it; `why`: "waits for the
 * device". */
int cuda_capture_excludes(const char *op, int device, const char *why);
/*
 * Waits for all work of the current device, which is `device`. CUDA refuses that during a capture on the device, and ends the
 * capture: the result is that of cuda_capture_excludes() then, and captures of other threads begin after the wait.
 */
int cuda_wait_device(const char *op, int device);
/* The same for memory that is released: cudaErrorStreamCaptureUnsupported during a capture on the device. */
cudaError_t cuda_try_wait_device(int device);
/* The owner of the capture's memory, and its number. */
uint64_t cuda_capture_owner(const struct tensor_cuda_graph *g, uint64_t *id);
/* Keeps the storage while the graph exists. */
void cuda_capture_hold(struct tensor_cuda_graph *g, struct tensor_storage *s);
/* Two words on the device for a check: its flag, and what cuda_launch_keep_flag() keeps. NULL with the error set. */
unsigned long long *cuda_capture_check(const struct cuda_call *c);
/* In a capture: a state that cuda_random_at() understands, and 1. Else 0, or -errno. */
int cuda_take_random(int device, tensor_generator *generator, uint64_t n,
		     struct tensor_generator_state *at);
/* See devices.h. */
void cuda_random_position(tensor_generator *generator, struct device_random *at);
void cuda_random_set(tensor_generator *generator, const struct device_random *to);
/* In a capture sets *at to the seed and offset on the device, which a kernel reads instead of seed, and to whose offset
 * it adds its own. Else to NULL. */
int cuda_random_at(const struct cuda_call *c, uint64_t *seed, const uint64_t **at);
/* In a capture on the device: each replay increases the count by 1. */
int cuda_capture_count(int device, tensor *count);
/* In a capture sets *rates to device memory with two numbers for each item, which `compute` computes before each
 * replay. Else to NULL. */
typedef void (*cuda_rates_of)(const struct optimizer_step *s, double step, double rates[2]);
int cuda_capture_rates(const struct cuda_call *c, const struct optimizer_step *s,
		       const struct optimizer_item *items, int n, cuda_rates_of compute,
		       const double **rates);
bool cuda_is_capturing(int device);

extern const struct cuda_graph_calls cuda_graphs; /* graph.c */

/* ---- memory (memory.c) ---- */

extern const struct tensor_allocator cuda_memory;
int cuda_memory_counts(int device, struct tensor_cuda_usage *to);
int cuda_memory_trim(int device);
int cuda_memory_stats(int device, struct tensor_cuda_stats *to);
int cuda_memory_reset(int device, bool accumulated);
/* Releases the memory of a capture's pool, as far as it is not in use. */
void cuda_memory_end_owner(int device, uint64_t owner);
/* True if the memory was allocated in the call's capture. */
bool cuda_captured_memory(const struct cuda_call *c, const void *data);
/* True if the memory was allocated in any capture. */
bool cuda_memory_of_capture(int device, const void *data);
/* Device memory for the duration of a call, ordered by its stream. */
int cuda_scratch(const struct cuda_call *c, size_t nbytes, void **data);
void cuda_scratch_free(const struct cuda_call *c, void *data);
/* Records that the call's stream uses t, whose memory may belong to another stream. A capture holds the memory. */
void cuda_use_slow(const struct cuda_call *c, const tensor *t);
/* The same for the program, of a stream of any device. 0, or -ENOMEM. */
int cuda_record_use(const struct cuda_call *c, const tensor *t);
static inline void cuda_use(const struct cuda_call *c, const tensor *t)
{
	if (unlikely(atomic_load_explicit(&cuda_streams_set, memory_order_relaxed)))
		cuda_use_slow(c, t);
}

/* cuda_begin(), and records the use of n tensors; NULL is none. */
static inline int cuda_begin_all(struct cuda_call *c, const char *op, int device,
				 const tensor *const *t, int n)
{
	int err = cuda_begin(c, op, device);

	for (int i = 0; i < n && !err; i++)
		if (t[i])
			cuda_use(c, t[i]);
	return err;
}
#define cuda_begin_with(c, op, device, ...)                                   \
	cuda_begin_all(c, op, device, (const tensor *const[]){ __VA_ARGS__ }, \
		       sizeof((const tensor *const[]){ __VA_ARGS__ }) / sizeof(tensor *))
static inline void *cuda_data(const tensor *t)
{
	return t ? t->data : NULL;
}

/* ---- memory that processes share (shared.c) ---- */

extern const struct cuda_share_calls cuda_shared_memory;
/* Frees blocks that waited for the end of a capture. */
void cuda_shared_reap(void);

/* ---- checks on the device (check.c) ---- */

/* open; launch kernels with the report, which check values, and those that use the values; end. */
struct cuda_check {
	struct cuda_report report;
	bool captured, waits;
};
/* flag: kernels read report.flag, so as not to write anything if a value was refused. */
int cuda_check_open(const struct cuda_call *c, struct cuda_check *k, bool flag);
/* Returns err, or the error of a refused value if the call waits for it: tensor_cuda_set_checks(). */
int cuda_check_end(const struct cuda_call *c, struct cuda_check *k, int err);

/* ---- index tensors (indices.c) ---- */

/* Size and stride of dimension d; a 0-d tensor counts as one dimension of size 1. */
static inline int64_t cuda_size(const tensor *t, int d)
{
	return t->ndim ? t->sizes[d] : 1;
}
static inline int64_t cuda_stride(const tensor *t, int d)
{
	return t->ndim ? t->strides[d] : 0;
}
/* One index tensor (i64 or i32) for a dimension of size `limit`; fails for other dtypes. */
int cuda_index_of(const struct cuda_call *c, struct cuda_indices *x, const tensor *index,
		  int64_t limit, int64_t step);
/* n index tensors in one, at[n, ...], for dimensions dims[] of self. */
int cuda_indices_of(const struct cuda_call *c, struct cuda_indices *x, const tensor *self,
		    const tensor *at, const int *dims, int n);

/* ---- pinned host memory (pin.c) ---- */

/* Returns whether t's memory is pinned; tries to pin its buffer at the first call. */
bool cuda_pinned(const tensor *t);
/* Holds a reference to t's storage until the work queued in the call's stream is done. */
int cuda_keep(const struct cuda_call *c, const tensor *t);
bool cuda_nonblocking(void);
bool cuda_set_nonblocking(bool nonblocking);

/* ---- the host after the device (later.c) ---- */

/* cuda_reap() calls fn when the work that is now in the call's stream is done. If that cannot be, it waits, calls fn and
 * returns -errno, or 0 if only memory was missing. */
int cuda_call_later(const struct cuda_call *c, void (*fn)(void *arg), void *arg);
void cuda_reap(void);
/* cuda_wait_device() for a device that is not current, and cuda_reap(): the caller holds no lock. */
int cuda_quiesce(const char *op, int device);

/* ---- dimensions of a kernel's operands (dims.c) ---- */

void cuda_dims_init(struct cuda_dims *d);
/* Adds the next outer dimension, with a stride for each of n operands; merges it with the former
 * one if the strides allow. */
void cuda_dims_add(struct cuda_dims *d, int n, int64_t size, const int64_t *stride);
/* Chooses the index width. */
void cuda_dims_done(struct cuda_dims *d, int n);
/* The same for two whose offsets the kernel adds. */
void cuda_dims_done_together(struct cuda_dims *a, struct cuda_dims *b, int n);

/* ---- elementwise kernels (pointwise.c, formula.c) ---- */

/* Calls the launcher, for halves of the operands if they have too many elements. */
int cuda_launch_parts(cuda_launcher launch, const struct cuda_pointwise *p, int nops, int dtype,
		      cudaStream_t stream);
/* The kernel of a formula. */
int cuda_formula(const char *op, cuda_launcher launch, const struct tensor_iter *it,
		 const struct pointwise_params *params);
/* The same for an operator that fails if an integer is divided by zero. */
int cuda_formula_division(const char *op, cuda_launcher launch, const struct tensor_iter *it);

struct cuda_kernel {
	const char *name;
	tensor_kernel fn;
};
extern const struct cuda_kernel cuda_formulas[];
extern const size_t cuda_formulas_count;

/* ---- kernels ---- */

/* Copies operand 1 to operand 0 of one device, with conversion. p->data, sizes and strides (in
 * bytes) are set by the caller. */
int cuda_copy_within(const struct cuda_call *c, struct cuda_pointwise *p, enum tensor_dtype to,
		     enum tensor_dtype from);

int cuda_copy(struct tensor_iter *it, enum tensor_dtype to, enum tensor_dtype from);
int cuda_fill(struct tensor_iter *it, const struct pointwise_params *params);
int cuda_sum(tensor *out, const tensor *self, uint32_t dims);
int cuda_softmax(tensor *out, const tensor *self, int dim);
int cuda_log_softmax(tensor *out, const tensor *self, int dim);
int cuda_softmax_backward(tensor *out, const tensor *grad, const tensor *output, int dim);
int cuda_log_softmax_backward(tensor *out, const tensor *grad, const tensor *output, int dim);
int cuda_mm(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha, tensor_scalar beta);

/* ---- the other kernels, which table.c lists ---- */

extern const struct cuda_kernel cuda_kernels[];
extern const size_t cuda_kernels_count;

int cuda_index_select(tensor *out, const tensor *self, int dim, const tensor *index);
int cuda_gather(tensor *out, const tensor *self, int dim, const tensor *index);
int cuda_index_take(tensor *out, const tensor *self, const tensor *at, const int *dims, int n);
int cuda_index_add(const char *op, tensor *out, int dim, const tensor *index, const tensor *source,
		   double alpha);
int cuda_scatter_add(const char *op, tensor *out, int dim, const tensor *index,
		     const tensor *source);
int cuda_scatter(const char *op, tensor *out, int dim, const tensor *index, const tensor *source,
		 enum scatter_mode mode);
int cuda_index_put(const char *op, tensor *out, const tensor *at, const int *dims, int n,
		   const tensor *values, enum scatter_mode mode);
int cuda_prod(tensor *out, const tensor *self, uint32_t dims);
int cuda_max_all(tensor *out, const tensor *self, uint32_t dims);
int cuda_min_all(tensor *out, const tensor *self, uint32_t dims);
int cuda_any(tensor *out, const tensor *self, uint32_t dims);
int cuda_all(tensor *out, const tensor *self, uint32_t dims);
int cuda_count_nonzero(tensor *out, const tensor *self, uint32_t dims);
int cuda_var(tensor *out, const tensor *self, uint32_t dims, double correction);
int cuda_std(tensor *out, const tensor *self, uint32_t dims, double correction);
int cuda_norm(tensor *out, const tensor *self, uint32_t dims, double p);
int cuda_logsumexp(tensor *out, const tensor *self, uint32_t dims);
int cuda_argmax(tensor *values, tensor *indices, const tensor *self, uint32_t dims);
int cuda_argmin(tensor *values, tensor *indices, const tensor *self, uint32_t dims);
int cuda_max_dim(tensor *values, tensor *indices, const tensor *self, uint32_t dims);
int cuda_min_dim(tensor *values, tensor *indices, const tensor *self, uint32_t dims);
int cuda_layer_norm(tensor *out, tensor *mean, tensor *rstd, const tensor *x, const tensor *weight,
		    const tensor *bias, double eps);
int cuda_layer_norm_backward(tensor *dx, tensor *dweight, tensor *dbias, const tensor *grad,
			     const tensor *x, const tensor *mean, const tensor *rstd,
			     const tensor *weight);
int cuda_nll_loss(tensor *output, tensor *total_weight, const tensor *self, const tensor *target,
		  const tensor *weight, enum loss_reduction reduction, int64_t ignore_index);
int cuda_nll_loss_backward(tensor *out, const tensor *grad_output, const tensor *target,
			   const tensor *weight, enum loss_reduction reduction,
			   int64_t ignore_index, const tensor *total_weight);
int cuda_optimizer(const struct optimizer_step *s, const struct optimizer_item *items,
		   int64_t nitems);
int cuda_bmm(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha,
	     tensor_scalar beta);
int cuda_bernoulli(tensor *out, const struct random_params *p);
int cuda_native_dropout(tensor *out, tensor *mask, const tensor *input,
			const struct random_params *p);
int cuda_triangle(tensor *out, const tensor *self, int64_t k, bool upper);
int cuda_embedding_backward(tensor *out, const tensor *grad, const tensor *indices,
			    const struct embedding *e);

#endif
