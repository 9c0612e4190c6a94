/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Sparse tensors: indices and values, both contiguous, detached and never NULL. A sparse tensor
 * uses the storage of its values, so that they share the version counter. */
#ifndef TENSOR_OPS_SPARSE_H
#define TENSOR_OPS_SPARSE_H

#include "ops/op.h"

#include "ops/sparse/indices.h"

struct sparse {
	struct tensor_extension ext;
	int sparse_dim; /* number of dimensions with indices; values have the others (COO) */
	bool coalesced; /* indices are unique and ascend in row-major order */
	int64_t nnz;
	tensor *indices;    /* COO: i64 [sparse_dim, nnz] */
	tensor *crow, *col; /* CSR: i64 [m + 1], [nnz] */
	tensor *values;	    /* [nnz, dense sizes] */
};

static inline const struct sparse *sparse_of(const tensor *t)
{
	return (const struct sparse *)t->ext;
}

static inline bool is_coo(const tensor *t)
{
	return t->layout == TENSOR_SPARSE_COO;
}

static inline bool is_csr(const tensor *t)
{
	return t->layout == TENSOR_SPARSE_CSR;
}

static inline bool is_sparse(const tensor *t)
{
	return is_coo(t) || is_csr(t);
}

/* New sparse tensors. Owned; the parts are borrowed and must fit. NULL if a part is NULL. */
tensor *sparse_new_coo(tensor_ints size, tensor *indices, tensor *values, bool coalesced);
tensor *sparse_new_csr(tensor_ints size, tensor *crow, tensor *col, tensor *values);
/* New tensor with self's indices and other values, of any dtype. */
tensor *sparse_with_values(const tensor *self, tensor *values);
/* In place: replace self's parts by those of other, which has the same shape. */
void sparse_become(tensor *self, const tensor *other);

/* Detached i64, uninitialized: [n], or [d, n] for d > 0 and for COO without sparse dimensions. */
tensor *sparse_new_i64(int64_t n);
tensor *sparse_new_indices(int d, int64_t nnz);
/* Keys of self's elements, i64 [nnz], owned. COO only. */
tensor *sparse_new_keys(const tensor *self);

/* self (COO or CSR) as coalesced COO, or as CSR. Owned. */
tensor *sparse_coalesced(tensor *self);
tensor *sparse_to_csr(tensor *self);
/* The sums of values in runs, of their dtype. Owned. */
tensor *sparse_sum_values(tensor *values, const tensor *order, const tensor *starts, int64_t runs);
/* On the CPU: of like's shape, layout and sparse dimensions, with elements at ascending keys. Owned. */
tensor *sparse_from_keys(const tensor *like, const int64_t *keys, tensor *values);

/* ---- on a device (sparse_device.c): by operators that run there. Owned. ---- */

static inline bool is_on_device(const tensor *t)
{
	return t->device.type != TENSOR_CPU;
}

/* COO that is not coalesced; CSR; coalesced COO matrices. */
tensor *sparse_coalesced_on_device(const tensor *self);
tensor *sparse_csr_to_coo_on_device(const tensor *self);
tensor *sparse_to_csr_on_device(const tensor *self);
/* Coalesced COO; strided. */
tensor *sparse_to_dense_on_device(const tensor *coo);
tensor *sparse_from_dense_on_device(tensor *self, int sparse_dim);
/* The elements, of self's first sparse_dim dimensions, that the keys name: of coalesced COO or strided; the product of two coalesced COO tensors. */
tensor *sparse_pick_on_device(tensor *self, int sparse_dim, tensor *keys);
tensor *sparse_intersect_on_device(const tensor *a, const tensor *b);

static inline int64_t *i64_data(const tensor *t)
{
	return t->data;
}

static inline tensor_ints sizes_of(const tensor *t)
{
	return (tensor_ints){ t->sizes, t->ndim };
}

/* -EOPNOTSUPP with the error set unless t is COO. */
int sparse_need_coo(const char *op, const tensor *t);

#endif
