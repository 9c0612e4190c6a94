// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Transposition and permutation of sparse tensors: operators on the indices. */
#include "ops/sparse/sparse.h"

#include "family/index.h"
#include "family/sparse.h"
#include "family/view.h"

static tensor *permuted(tensor *self, const int *from)
{
	const struct sparse *s = sparse_of(self);
	int64_t sizes[TENSOR_MAX_DIMS], dense[TENSOR_MAX_DIMS + 1] = { 0 };
	tensor *indices, *values, *t;

	for (int d = 0; d < self->ndim; d++) {
		if ((d < s->sparse_dim) != (from[d] < s->sparse_dim))
			return tensor_fail_null(EINVAL,
						"transpose: sparse and dense dimensions of a "
						"sparse tensor cannot be exchanged");
		sizes[d] = self->sizes[from[d]];
		if (d >= s->sparse_dim)
			dense[d - s->sparse_dim + 1] = from[d] - s->sparse_dim + 1;
	}
	indices = sparse_rows_of_indices(s->indices, from, s->sparse_dim);
	values = call_permute(s->values, (tensor_ints){ dense, s->values->ndim });
	t = sparse_new_coo((tensor_ints){ sizes, self->ndim }, indices, values, false);
	tensor_put(indices);
	tensor_put(values);
	return t;
}

/* The transpose of CSR, without a sort: elements of a column are in the order of their rows. */
static tensor *turned_rows(const tensor *self)
{
	const struct sparse *s = sparse_of(self);
	int64_t m = self->sizes[0], n = self->sizes[1];
	tensor *crow = sparse_new_i64(n + 1), *col = sparse_new_i64(s->nnz),
	       *order = sparse_new_i64(s->nnz);
	tensor *values = order ? tensor_new(TENSOR_DEVICE_CPU, self->dtype, &s->nnz, 1) : NULL,
	       *t = NULL;

	if (crow && col && values) {
		sparse_transpose_rows(i64_data(crow), i64_data(col), i64_data(order),
				      i64_data(s->crow), i64_data(s->col), m, n);
		sparse_gather(values->data, s->values->data, i64_data(order), s->nnz,
			      itemsize(values));
		t = sparse_new_csr((tensor_ints){ (int64_t[]){ n, m }, 2 }, crow, col, values);
	}
	tensor_put(crow);
	tensor_put(col);
	tensor_put(order);
	tensor_put(values);
	return t;
}

/* A CSR operand gives a CSR result. */
static tensor *permuted_any(tensor *self, const int *from)
{
	tensor *coo, *turned, *t;

	if (is_coo(self))
		return permuted(self, from);
	if (!is_on_device(self) && from[0] == 1)
		return turned_rows(self);
	coo = sparse_coalesced(self);
	turned = coo ? permuted(coo, from) : NULL;
	t = turned ? sparse_to_csr(turned) : NULL;
	tensor_put(coo);
	tensor_put(turned);
	return t;
}

tensor *kernel_sparse_transpose(tensor *self, int64_t dim0, int64_t dim1)
{
	int a = wrap_dim("transpose", dim0, self->ndim), b, from[TENSOR_MAX_DIMS];

	if (a < 0)
		return NULL;
	b = wrap_dim("transpose", dim1, self->ndim);
	if (b < 0)
		return NULL;
	for (int d = 0; d < self->ndim; d++)
		from[d] = d == a ? b : d == b ? a : d;
	return permuted_any(self, from);
}

/* A tensor of its own with the same parts. An operator that replaces the parts of one of them leaves the other's. */
tensor *kernel_sparse_alias(tensor *self)
{
	return tensor_new_detached(self);
}

tensor *kernel_sparse_t(tensor *self)
{
	if (self->ndim > 2)
		return tensor_fail_null(EINVAL, "t: at most 2 dimensions, got shape %s",
					SHAPE_STR(self));
	return kernel_sparse_transpose(self, 0, self->ndim < 2 ? 0 : 1);
}

tensor *kernel_sparse_permute(tensor *self, tensor_ints dims)
{
	int from[TENSOR_MAX_DIMS];
	uint32_t seen = 0;

	if (dims.len != self->ndim)
		return tensor_fail_null(EINVAL, "permute: %d dimensions are needed, got %lld",
					self->ndim, (long long)dims.len);
	for (int i = 0; i < self->ndim; i++) {
		from[i] = wrap_dim("permute", dims.data[i], self->ndim);
		if (from[i] < 0)
			return NULL;
		if (seen & 1u << from[i])
			return tensor_fail_null(EINVAL, "permute: dimension %d occurs twice",
						from[i]);
		seen |= 1u << from[i];
	}
	return permuted_any(self, from);
}
