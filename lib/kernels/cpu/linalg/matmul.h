/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A matrix product, as matmul.c passes it to the functions of one dtype. */
#ifndef TENSOR_MATMUL_H
#define TENSOR_MATMUL_H

#include "kernels/cpu/simd/cpu.h"

/* An elementwise kernel for blocks of c. */
struct product_activation {
	pointwise_kernel fn;
	const tensor *op[2]; /* the matrix of c, twice: they state its dtype */
	_Atomic bool failed;
};

/*
 * c[m, n] = beta * c + alpha * a[m, k] b[k, n]. rsa and csa are the row and the column stride of a,
 * in elements. beta 0 does not read c. The stride of a dimension of size 1 is arbitrary. Integer
 * products use alpha_int and beta_int.
 */
struct product {
	int64_t m, n, k;
	const void *a, *b;
	void *c;
	int64_t rsa, csa, rsb, csb, rsc, csc;
	double alpha, beta;
	int64_t alpha_int, beta_int;
	const void *packed; /* b as product_pack_fn wrote it; NULL: only as it is */
	const void *
		bias; /* n contiguous elements, which are read instead of each row of c; or NULL. Floats only */
	struct product_activation *activation; /* of c, or NULL. Floats only */
};

void CPU_NAME(product_activate)(const struct product *p, int64_t i, int64_t j, int64_t m,
				int64_t n);

/* Applies the activation to m rows and n columns of c from (i, j) on, whose sums are complete. */
static inline void product_finish(const struct product *p, int64_t i, int64_t j, int64_t m,
				  int64_t n)
{
	if (p->activation)
		CPU_NAME(product_activate)(p, i, j, m, n);
}

/* Returns 0, or -errno with the error recorded. */
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

/*
 * Writes b as products of p->m rows of a read it; to NULL: only the number of bytes. 0 if such products do not pack b.
 */
typedef size_t (*product_pack_fn)(const struct product *p, void *to);
size_t CPU_NAME(matmul_f16_pack)(const struct product *p, void *to);
size_t CPU_NAME(matmul_bf16_pack)(const struct product *p, void *to);
/* That of matmul_pairs(). */
size_t CPU_NAME(matmul_pairs_pack)(const struct product *p, void *to);

/*
 * The function for bf16 that adds pairs of products; NULL if the processor has no such instruction, or if f32 is faster.
 */
product_fn CPU_NAME(matmul_pairs)(const struct product *p);

/* Columns that get the activation together, at least: in rows of one panel it takes more time. */
#define FINISH_COLUMNS (8 * WIDE)

#endif
