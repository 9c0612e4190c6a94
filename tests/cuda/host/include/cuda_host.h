/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The emulation of the CUDA runtime on the CPU, libcuda_host.so: what tests set and read, and the
 * hooks of the plugin. Defects that it finds end the process with a message and SIGABRT.
 *
 * Environment:
 *   CUDA_HOST_STREAMS  eager (the default): queued work runs at once; lazy: when something waits
 *                      for it; random: at random moments, in any order that the streams allow
 *   CUDA_HOST_SEED     of random; 1
 *   CUDA_HOST_DEVICES  number of devices; 2
 *   CUDA_HOST_MEMORY   bytes of each device; 1 GiB
 *   CUDA_HOST_NO_VMM   not empty: no virtual memory management
 *   CUDA_HOST_NO_DMABUF  not empty: no dma-bufs of device memory
 *   CUDA_HOST_NARROW   numbers above this one need indices of 64 bits; 2^31 - 1
 */
#ifndef CUDA_HOST_H
#define CUDA_HOST_H

#include "cuda_runtime_api.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- for tests ---- */

enum cuda_host_streams { CUDA_HOST_EAGER, CUDA_HOST_LAZY, CUDA_HOST_RANDOM };

/* For work that is queued from now on. */
void cuda_host_set_streams(enum cuda_host_streams streams, unsigned seed);
enum cuda_host_streams cuda_host_streams(void);

/* Calls since the start of the process. A call that makes the host wait for a device is counted in
 * `waits`, and in one of those below it. */
struct cuda_host_counts {
	unsigned long launches, copies, mallocs, frees;
	unsigned long waits;
	unsigned long waits_stream, waits_device, waits_event;
	unsigned long waits_copy; /* cudaMemcpy(), and copies from a device to pageable memory */
	unsigned long waits_free; /* cudaFree() */
	unsigned long graphs;	  /* cudaGraphLaunch() */
	unsigned long pending;	  /* operations that are queued now */
	unsigned long allocated;  /* bytes of all devices now */
};
void cuda_host_counts(struct cuda_host_counts *counts);

/* The nth call (1: the next one) of a function of the runtime, e.g. "cudaMalloc", fails with this
 * error and has no effect. NULL: the nth call of any function but cudaSetDevice(); nth 0: none fails.
 * cublasLt functions fail with that number as a cublasStatus_t, if they are named. */
void cuda_host_fail(const char *function, unsigned long nth, int error);
/* Calls of that function since cuda_host_fail(). */
unsigned long cuda_host_calls(void);

/* cudaFree() of memory and cuMemUnmap() call fn first, in the thread that calls them, and hold no lock of the emulation
 * meanwhile: a device that the host waits for. NULL: none. */
void cuda_host_before_free(void (*fn)(void));

/* ---- hooks of the plugin ---- */

/* The largest number that needs no 64 bits. */
int64_t cuda_host_narrow(void);
/* The plugin's allocator has given out a block of `size` bytes, of which nbytes may be accessed by
 * work that follows in the stream; or it has taken the block back: no byte may be accessed. */
void cuda_host_block_used(int device, void *data, size_t nbytes, size_t size, cudaStream_t stream);
void cuda_host_block_free(int device, void *data, size_t size, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
