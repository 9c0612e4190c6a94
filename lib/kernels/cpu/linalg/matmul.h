/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A matrix product as matmul.c hands it to the kernels of one dtype. */
#ifndef TENSOR_MATMUL_H
#define TENSOR_MATMUL_H

#include "kernels/cpu/simd/cpu.h"

/* c[m, n] = beta * c + alpha * a[m, k] b[k, n]. Row and column strides in elements; beta 0 does
 * not read c. A dimension of size 1 has whatever stride is convenient. Integers read the factors
 * as integers. */
struct product {
	int64_t m, n, k;
	const void *a, *b;
	void *c;
	int64_t rsa, csa, rsb, csb, rsc, csc;
	double alpha, beta;
	int64_t alpha_int, beta_int;
};

/* 0 or -errno with the error set. */
typedef int (*product_fn)(const struct product *p);
int CPU_NAME(matmul_f32)(const struct product *p);
int CPU_NAME(matmul_f64)(const struct product *p);
int CPU_NAME(matmul_f16)(const struct product *p);
int CPU_NAME(matmul_bf16)(const struct product *p);
int CPU_NAME(matmul_u8)(const struct product *p);
int CPU_NAME(matmul_i8)(const struct product *p);
int CPU_NAME(matmul_i16)(const struct product *p);
int CPU_NAME(matmul_i32)(const struct product *p);
int CPU_NAME(matmul_i64)(const struct product *p);

/* Of bf16, two products at a time; NULL where the processor cannot. */
product_fn CPU_NAME(matmul_pairs)(void);

#endif
