/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * cuFFT, loaded when first needed, so that the plugin can be used without it. The declarations are those of its
 * documentation, which have been the same since CUDA 7; pointers to numbers are void here.
 */
#ifndef TENSOR_CUDA_CUFFT_H
#define TENSOR_CUDA_CUFFT_H

#include "kernels/cuda/cuda.h"

typedef int cufftHandle;

enum { CUFFT_SUCCESS = 0, CUFFT_ALLOC_FAILED = 2 };
enum { CUFFT_FORWARD = -1, CUFFT_INVERSE = 1 };
enum {
	CUFFT_C2C = 0x29,
	CUFFT_R2C = 0x2a,
	CUFFT_C2R = 0x2c,
	CUFFT_Z2Z = 0x69,
	CUFFT_D2Z = 0x6a,
	CUFFT_Z2D = 0x6c,
};

/* Functions return a cufftResult. */
struct cufft {
	int (*create)(cufftHandle *plan);
	int (*set_auto_allocation)(cufftHandle plan, int allocate);
	int (*make_plan_many64)(cufftHandle plan, int rank, long long *n, long long *in_embed,
				long long in_stride, long long in_dist, long long *out_embed,
				long long out_stride, long long out_dist, int type, long long batch,
				size_t *workspace);
	int (*set_stream)(cufftHandle plan, cudaStream_t stream);
	int (*set_work_area)(cufftHandle plan, void *workspace);
	int (*exec_c2c)(cufftHandle plan, void *in, void *out, int direction);
	int (*exec_z2z)(cufftHandle plan, void *in, void *out, int direction);
	int (*exec_r2c)(cufftHandle plan, void *in, void *out);
	int (*exec_d2z)(cufftHandle plan, void *in, void *out);
	int (*exec_c2r)(cufftHandle plan, void *in, void *out);
	int (*exec_z2d)(cufftHandle plan, void *in, void *out);
	int (*destroy)(cufftHandle plan);
};

/* NULL with the error set, after which the operator runs on the CPU: there is no cuFFT. */
const struct cufft *cufft(const char *op);

#endif
