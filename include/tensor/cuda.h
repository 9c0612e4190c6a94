/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * CUDA devices: availability, and the stream that a thread's operators use. Tensors are created on
 * or moved to a device through options (TENSOR_DEVICE_CUDA(0)) and tensor_to(); operators are the
 * same as on the CPU.
 *
 * CUDA is a plugin, libtensor_cuda.so.0, which the first of these calls or the first CUDA tensor
 * loads. TENSOR_CUDA_PLUGIN names another file; otherwise it is searched beside libtensor and then
 * in the loader's path. Without plugin, driver or device, every call here fails with the reason in
 * the error record.
 *
 * A forked child cannot use its parent's devices: every call fails there with ENODEV.
 */
#ifndef TENSOR_CUDA_H
#define TENSOR_CUDA_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* True if tensors can be made on a CUDA device. Does not change the error record. */
bool tensor_cuda_is_available(void);
/* Number of devices, at least 1; -ENODEV with the reason in the error record if there are none. */
int tensor_cuda_device_count(void);

/*
 * The calling thread's stream on a device, a cudaStream_t. NULL is CUDA's default stream, which is
 * a thread's initial one. The caller owns the stream. Work is ordered only within a stream: to use
 * a tensor on another stream, make that stream wait (a CUDA event). Memory is not reused before
 * every stream that an operator used it on has finished. 0 or -errno.
 */
int tensor_cuda_set_stream(int device, void *stream);
void *tensor_cuda_current_stream(int device);
/* Wait for all work of a device; 0, or -errno for an error in that work. */
int tensor_cuda_synchronize(int device);

/*
 * Memory of the calling process on a device, in bytes. Freed memory stays in a cache; an allocation
 * that CUDA refuses trims it and is tried again (`retries`). tensor_cuda_memory_trim() returns what
 * is not in use to the driver. 0 or -errno.
 */
struct tensor_cuda_usage {
	uint64_t allocated, allocated_peak; /* in tensors, rounded to 512 */
	uint64_t reserved, reserved_peak;   /* taken from the driver: tensors and cache */
	uint64_t segments;		    /* allocations of the driver */
	uint64_t allocations;		    /* of tensors and kernels, since the start */
	uint64_t retries;
};
int tensor_cuda_memory(int device, struct tensor_cuda_usage *memory);
int tensor_cuda_memory_trim(int device);

/*
 * An operator that CUDA has no kernel for (docs/cuda.md) runs on the CPU: its tensors are copied to
 * the host, and its results to the device. The first such call of an operator prints a warning. If
 * that is not allowed, the operator fails with EOPNOTSUPP; the environment variable
 * TENSOR_CUDA_FALLBACK=0 forbids it, too. For all threads; returns the previous state.
 */
bool tensor_cuda_set_fallback(bool allow);
/* Calls of the operator with that schema name that the CPU computed for CUDA, NULL: of all operators; -ENOENT. */
int64_t tensor_cuda_fallbacks(const char *name);

/*
 * By default, copies between a device and host memory have finished when they return. If this is
 * enabled in a thread, a copy returns at once if its host side is a pinned buffer (a shareable
 * tensor, contiguous and of the device tensor's dtype). The thread must not access the host side
 * before tensor_cuda_synchronize(); its memory is kept until then. Returns the previous state.
 */
bool tensor_cuda_set_nonblocking(bool nonblocking);

#ifdef __cplusplus
}
#endif
#endif
