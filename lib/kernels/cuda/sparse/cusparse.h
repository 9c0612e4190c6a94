/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Products of a sparse matrix by cuSPARSE, for sparse.c. */
#ifndef TENSOR_CUDA_CUSPARSE_H
#define TENSOR_CUDA_CUSPARSE_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launch_sparse.h"

/*
 * Queues the product and returns 1; or returns 0 without an error if the kernels of sparse.cu should compute it, because they are
 * faster, or because cuSPARSE is absent or cannot; or -errno with the error set. out is not empty.
 */
int cusparse_spmm(const struct cuda_call *c, const struct cuda_spmm *s, enum tensor_dtype dtype);

#endif
