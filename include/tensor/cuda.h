/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * CUDA devices: whether there are any, and the stream that a thread's operators run on. Tensors
 * come to a device through options (TENSOR_DEVICE_CUDA(0)) and tensor_to(); operators are the
 * usual ones.
 *
 * CUDA is a plugin, libtensor_cuda.so.0, which the first of these calls or the first CUDA tensor
 * loads: TENSOR_CUDA_PLUGIN names another file, otherwise it is looked for beside libtensor and
 * then where the loader looks. Without plugin, driver or device every call here says why.
 *
 * A forked child must not touch its parent's devices: every call fails there with ENODEV.
 */
#ifndef TENSOR_CUDA_H
#define TENSOR_CUDA_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a tensor can be made on some CUDA device. Leaves the error record alone. */
bool tensor_cuda_is_available(void);
/* Devices, at least 1; -ENODEV with the reason in the error record when there are none. */
int tensor_cuda_device_count(void);

/*
 * The calling thread's stream on a device, a cudaStream_t; NULL is CUDA's default stream, which
 * is also what a thread begins with. The stream stays the caller's. Work is ordered within a
 * stream only: who hands a tensor to another stream makes that one wait (an event). Memory is
 * another matter: it is not reused before every stream that an operator used it on is done.
 */
int tensor_cuda_set_stream(int device, void *stream);
void *tensor_cuda_current_stream(int device);
/* Waits for all work of a device; reports what went wrong in it. */
int tensor_cuda_synchronize(int device);

/*
 * Copies between a device and host memory have happened when they return. A thread that turns
 * this on lets those return at once whose host side is a pinned buffer (a shareable tensor, contiguous and of the
 * device tensor's dtype) and promises not to touch the
 * host side before tensor_cuda_synchronize(). Its memory is kept until then. Returns the former
 * state.
 */
bool tensor_cuda_set_nonblocking(bool nonblocking);

#ifdef __cplusplus
}
#endif
#endif
