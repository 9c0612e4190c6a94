/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of scans along lines. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_SCAN_H
#define TENSOR_CUDA_LAUNCH_SCAN_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_scan { CUDA_CUMSUM, CUDA_CUMPROD, CUDA_LOGCUMSUMEXP, CUDA_CUMMAX, CUDA_CUMMIN };

#define CUDA_SCAN_PARTIAL 16 /* bytes of a partial result */
#define CUDA_SCAN_PIECES  256

/*
 * Operand 0 of `r` is the output, 1 the input, of one dtype; 2 the positions of cummax and cummin
 * (i64). r->reduced has the one dimension of a line. With pieces > 1, that many blocks scan a line,
 * and `partial` has CUDA_SCAN_PARTIAL bytes for each piece of each line.
 */
int cuda_launch_scan(enum cuda_scan which, const struct cuda_rows *r, int dtype, int pieces,
		     void *partial, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
