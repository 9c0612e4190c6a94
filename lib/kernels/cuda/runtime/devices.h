/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The devices and current streams, for the files of runtime/ that begin calls. */
#ifndef TENSOR_CUDA_DEVICES_H
#define TENSOR_CUDA_DEVICES_H

#include "kernels/cuda/cuda.h"

/* cudaStreamPerThread: another stream in each thread. */
#define CUDA_STREAM_PER_THREAD ((cudaStream_t)2)

/* 0 until cuda_open_devices(), then the number of devices. */
extern int cuda_devices_opened;
/* The thread's current stream of each device. */
extern __thread cudaStream_t cuda_thread_streams[CUDA_DEVICES];

/* 0, or -ENODEV with the error set: there is no such device, or this is a forked child. */
int cuda_check_device(const char *op, int device);

#endif
