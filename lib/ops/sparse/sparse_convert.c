// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Conversions of sparse tensors: from and to strided, between COO and CSR, coalescing. */
#include "ops/sparse/sparse.h"
#include "ops/memory_format.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/sparse.h"

static size_t block_bytes(const tensor *values)
{
	size_t bytes = itemsize(values);

	for (int i = 1; i < values->ndim; i++)
		bytes *= values->sizes[i];
	return bytes;
}

/* Uninitialized values [n, dense sizes] for self's shape. */
static tensor *new_values(const tensor *self, int sparse_dim, int64_t n)
{
	int64_t sizes[TENSOR_MAX_DIMS + 1] = { n };

	if (self->ndim - sparse_dim + 1 > TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "sparse tensor: at most %d dense dimensions",
					TENSOR_MAX_DIMS - 1);
	memcpy(sizes + 1, self->sizes + sparse_dim, (self->ndim - sparse_dim) * sizeof(*sizes));
	return tensor_new(self->device, self->dtype, sizes, self->ndim - sparse_dim + 1);
}

/* ---- coalescing ---- */

/* self sorted by keys, with values of equal keys added. */
static tensor *coalesce_keys(const tensor *self, tensor *keys)
{
	const struct sparse *s = sparse_of(self);
	tensor *sorted = sparse_new_i64(s->nnz), *order = sparse_new_i64(s->nnz);
	tensor *starts = sparse_new_i64(s->nnz + 1), *indices = NULL, *values = NULL;
	tensor *result = NULL;
	int64_t runs;

	if (!sorted || !order || !starts ||
	    sparse_sort(i64_data(sorted), i64_data(order), i64_data(keys), s->nnz) < 0)
		goto out;
	runs = sparse_runs(i64_data(starts), i64_data(sorted), i64_data(sorted), s->nnz);
	indices = sparse_new_indices(s->sparse_dim, runs);
	values = sparse_sum_values(s->values, order, starts, runs);
	if (!indices || !values)
		goto out;
	sparse_indices(i64_data(indices), i64_data(sorted), s->sparse_dim, runs, self->sizes);
	result = sparse_new_coo(sizes_of(self), indices, values, true);
out:
	tensor_put(sorted);
	tensor_put(order);
	tensor_put(starts);
	tensor_put(indices);
	tensor_put(values);
	return result;
}

static tensor *csr_to_coo(const tensor *self)
{
	const struct sparse *s = sparse_of(self);
	tensor *indices, *t;

	if (is_on_device(self))
		return sparse_csr_to_coo_on_device(self);
	indices = sparse_new_indices(2, s->nnz);
	if (!indices)
		return NULL;
	sparse_expand(i64_data(indices), i64_data(s->crow), self->sizes[0]);
	memcpy(i64_data(indices) + s->nnz, s->col->data, s->nnz * sizeof(int64_t));
	t = sparse_new_coo(sizes_of(self), indices, s->values, true);
	tensor_put(indices);
	return t;
}

tensor *sparse_coalesced(tensor *self)
{
	const struct sparse *s = sparse_of(self);
	tensor *keys, *t;

	if (is_csr(self))
		return csr_to_coo(self);
	if (s->coalesced)
		return tensor_get(self);
	if (is_on_device(self))
		return sparse_coalesced_on_device(self);
	keys = sparse_new_keys(self);
	if (!keys)
		return NULL;
	t = sparse_ascending(i64_data(keys), s->nnz) ?
		    sparse_new_coo(sizes_of(self), s->indices, s->values, true) :
		    coalesce_keys(self, keys);
	tensor_put(keys);
	return t;
}

tensor *kernel_sparse_coalesce(tensor *self)
{
	if (is_csr(self))
		return sparse_with_values(self, sparse_of(self)->values);
	if (sparse_of(self)->coalesced)
		return sparse_with_values(self, sparse_of(self)->values);
	return sparse_coalesced(self);
}

/* ---- rows ---- */

tensor *sparse_to_csr(tensor *self)
{
	tensor *coo, *crow = NULL, *col = NULL, *t = NULL;
	const struct sparse *s;

	if (is_csr(self))
		return tensor_get(self);
	s = sparse_of(self);
	if (s->sparse_dim != 2 || self->ndim != 2)
		return tensor_fail_null(EINVAL,
					"to_sparse_csr: a matrix of numbers is needed, got %d "
					"sparse and %d dense dimensions",
					s->sparse_dim, self->ndim - s->sparse_dim);
	coo = sparse_coalesced(self);
	if (!coo)
		return NULL;
	if (is_on_device(self)) {
		t = sparse_to_csr_on_device(coo);
		tensor_put(coo);
		return t;
	}
	s = sparse_of(coo);
	crow = sparse_new_i64(self->sizes[0] + 1);
	col = sparse_new_i64(s->nnz);
	if (crow && col) {
		sparse_compress(i64_data(crow), self->sizes[0], i64_data(s->indices), s->nnz);
		memcpy(col->data, i64_data(s->indices) + s->nnz, s->nnz * sizeof(int64_t));
		t = sparse_new_csr(sizes_of(self), crow, col, s->values);
	}
	tensor_put(crow);
	tensor_put(col);
	tensor_put(coo);
	return t;
}

/* An operator returns a new tensor even if no conversion was needed. */
static tensor *as_result(tensor *t, const tensor *self)
{
	tensor *own = t;

	if (t == self) {
		own = sparse_with_values(self, sparse_of(self)->values);
		tensor_put(t);
	}
	return own;
}

tensor *kernel_sparse_to_csr(tensor *self)
{
	return as_result(sparse_to_csr(self), self);
}

tensor *kernel_sparse_to_sparse(tensor *self, enum tensor_layout layout)
{
	if (layout == TENSOR_SPARSE_CSR)
		return kernel_sparse_to_csr(self);
	if (layout > TENSOR_SPARSE_CSR || layout == TENSOR_STRIDED)
		return tensor_fail_null(EINVAL, "to_sparse: %s is not a sparse layout",
					tensor_layout_name(layout));
	if (is_coo(self))
		return sparse_with_values(self, sparse_of(self)->values);
	return sparse_coalesced(self);
}

/* ---- from strided ---- */

static tensor *from_dense(tensor *self, int sparse_dim)
{
	tensor *full, *keys = NULL, *indices = NULL, *values = NULL, *t = NULL;
	int64_t blocks = 1, block = 1, n;

	if (is_on_device(self))
		return sparse_from_dense_on_device(self, sparse_dim);
	full = operand_contiguous(self);
	for (int i = 0; i < self->ndim; i++)
		*(i < sparse_dim ? &blocks : &block) *= self->sizes[i];
	if (full)
		keys = sparse_nonzero(full->data, block ? blocks : 0, block, self->dtype);
	if (!keys)
		goto out;
	n = keys->numel;
	indices = sparse_new_indices(sparse_dim, n);
	values = new_values(self, sparse_dim, n);
	if (!indices || !values)
		goto out;
	sparse_indices(i64_data(indices), i64_data(keys), sparse_dim, n, self->sizes);
	sparse_gather(values->data, full->data, i64_data(keys), n, block * itemsize(self));
	t = sparse_new_coo(sizes_of(self), indices, values, true);
out:
	tensor_put(full);
	tensor_put(keys);
	tensor_put(indices);
	tensor_put(values);
	return t;
}

tensor *kernel_dense_to_csr(tensor *self)
{
	tensor *coo, *t;

	if (self->ndim != 2)
		return tensor_fail_null(EINVAL, "to_sparse_csr: a matrix is needed, got shape %s",
					SHAPE_STR(self));
	coo = from_dense(self, 2);
	t = coo ? sparse_to_csr(coo) : NULL;
	tensor_put(coo);
	return t;
}

tensor *kernel_dense_to_sparse(tensor *self, enum tensor_layout layout)
{
	if (layout == TENSOR_SPARSE_CSR)
		return kernel_dense_to_csr(self);
	if (layout > TENSOR_SPARSE_CSR || layout == TENSOR_STRIDED)
		return tensor_fail_null(EINVAL, "to_sparse: %s is not a sparse layout",
					tensor_layout_name(layout));
	return from_dense(self, self->ndim);
}

tensor *kernel_dense_to_sparse_dim(tensor *self, int64_t sparse_dim)
{
	if (sparse_dim < 0 || sparse_dim > self->ndim || (!sparse_dim && self->ndim))
		return tensor_fail_null(EINVAL, "to_sparse: sparse_dim must be 1 to %d, got %lld",
					self->ndim, (long long)sparse_dim);
	return from_dense(self, (int)sparse_dim);
}

/* ---- to strided ---- */

static tensor *cast_result(tensor *t, enum tensor_dtype dtype)
{
	tensor *result = t && dtype ? operand_cast(t, dtype) : t ? tensor_get(t) : NULL;

	tensor_put(t);
	return result;
}

tensor *kernel_sparse_to_dense(tensor *self, enum tensor_dtype dtype)
{
	tensor *coo = sparse_coalesced(self), *keys, *t = NULL;
	const struct sparse *s;

	if (!coo)
		return NULL;
	if (is_on_device(self)) {
		t = sparse_to_dense_on_device(coo);
		tensor_put(coo);
		return cast_result(t, dtype);
	}
	s = sparse_of(coo);
	keys = sparse_new_keys(coo);
	if (keys)
		t = call_zeros(sizes_of(self), TENSOR_OPTIONS(.dtype = self->dtype));
	if (t)
		sparse_scatter(t->data, s->values->data, i64_data(keys), s->nnz,
			       block_bytes(s->values));
	tensor_put(keys);
	tensor_put(coo);
	return cast_result(t, dtype);
}

tensor *kernel_dense_to_dense(tensor *self, enum tensor_dtype dtype)
{
	/* A new tensor rather than self: autograd sets the result's history. */
	return !dtype || dtype == self->dtype ? tensor_new_detached(self) :
						operand_cast(self, dtype);
}

/* ---- elements at given indices ---- */

/* self's elements at the keys of its first sparse_dim dimensions, zero where it has none. */
static tensor *pick(tensor *self, int sparse_dim, tensor *keys)
{
	tensor *full = NULL, *own = NULL, *at = NULL, *values, *result = NULL;
	const int64_t *where = i64_data(keys);

	if (is_on_device(self)) {
		full = is_sparse(self) ? sparse_coalesced(self) : tensor_get(self);
		result = full ? sparse_pick_on_device(full, sparse_dim, keys) : NULL;
		tensor_put(full);
		return result;
	}
	values = new_values(self, sparse_dim, keys->numel);
	full = !values ? NULL : is_sparse(self) ? sparse_coalesced(self) : operand_contiguous(self);
	if (!full)
		goto out;
	if (is_sparse(self)) {
		own = sparse_new_keys(full);
		at = sparse_new_i64(keys->numel);
		if (!own || !at)
			goto out;
		sparse_find(i64_data(at), where, keys->numel, i64_data(own), own->numel);
		where = i64_data(at);
	}
	sparse_gather(values->data, is_sparse(full) ? sparse_of(full)->values->data : full->data,
		      where, keys->numel, block_bytes(values));
	result = tensor_get(values);
out:
	tensor_put(full);
	tensor_put(own);
	tensor_put(at);
	tensor_put(values);
	return result;
}

tensor *kernel_sparse_mask(tensor *self, tensor *mask)
{
	int sparse_dim = is_sparse(mask) ? sparse_of(mask)->sparse_dim : 0;
	tensor *keys, *values, *t;

	if (!is_sparse(mask))
		return tensor_fail_null(EINVAL, "sparse_mask: mask must be sparse");
	if (!sizes_equal(self, mask))
		return tensor_fail_null(EINVAL, "sparse_mask: mask must have shape %s, got %s",
					SHAPE_STR(self), SHAPE_STR(mask));
	if (is_sparse(self) && sparse_of(self)->sparse_dim != sparse_dim)
		return tensor_fail_null(EINVAL,
					"sparse_mask: self has %d sparse dimensions, mask %d",
					sparse_of(self)->sparse_dim, sparse_dim);
	if (operand_check_device("sparse_mask", self, mask) < 0)
		return NULL;
	keys = sparse_new_keys(mask);
	values = keys ? pick(self, sparse_dim, keys) : NULL;
	t = values ? sparse_with_values(mask, values) : NULL;
	tensor_put(keys);
	tensor_put(values);
	return t;
}

tensor *kernel_sparse_pick(tensor *self, tensor *indices)
{
	const char *op = "_sparse_pick";
	int d = indices->ndim == 2 ? (int)indices->sizes[0] : -1;
	tensor *full, *keys = NULL, *t = NULL;

	if (indices->dtype != TENSOR_I64 || d < 0 || d > self->ndim ||
	    (is_sparse(self) && sparse_of(self)->sparse_dim != d))
		return tensor_fail_null(EINVAL, "_sparse_pick: indices %s do not fit %s",
					SHAPE_STR(indices), SHAPE_STR(self));
	if (operand_check_device(op, self, indices) < 0)
		return NULL;
	full = operand_contiguous(indices);
	if (full && is_on_device(full)) {
		if (sparse_check_indices_on_device(op, full, self->sizes) == 0)
			keys = sparse_keys_on_device(full, self->sizes);
	} else if (full &&
		   sparse_check_indices(op, i64_data(full), d, full->sizes[1], self->sizes) == 0) {
		keys = sparse_new_i64(full->sizes[1]);
		if (keys)
			sparse_keys(i64_data(keys), i64_data(full), d, keys->numel, self->sizes);
	}
	t = keys ? pick(self, d, keys) : NULL;
	tensor_put(full);
	tensor_put(keys);
	return t;
}

/* ---- copies ---- */

/* Indices on the device of values, or NULL for NULL. Owned. */
static tensor *copy_indices(tensor *t, const tensor *values)
{
	return t ? operand_contiguous_copy(t, TENSOR_OPTIONS(.device = values->device)) : NULL;
}

/* self's indices, copied to another device, with values there. */
static tensor *move_to(const tensor *self, tensor *values)
{
	const struct sparse *s = sparse_of(self);
	tensor *indices = copy_indices(s->indices, values), *crow = copy_indices(s->crow, values);
	tensor *col = copy_indices(s->col, values), *t;

	t = is_csr(self) ? sparse_new_csr(sizes_of(self), crow, col, values) :
			   sparse_new_coo(sizes_of(self), indices, values, s->coalesced);
	tensor_put(indices);
	tensor_put(crow);
	tensor_put(col);
	return t;
}

static tensor *copy_as(const tensor *self, tensor_options options)
{
	tensor *values = operand_contiguous_copy(sparse_of(self)->values, options), *t;

	t = !values ? NULL :
	    values->device.type == self->device.type && values->device.index == self->device.index ?
		      sparse_with_values(self, values) :
		      move_to(self, values);
	tensor_put(values);
	return t;
}

tensor *kernel_sparse_to_copy(tensor *self, tensor_options options)
{
	if (options.shareable)
		return tensor_fail_null(EOPNOTSUPP, "_to_copy: a sparse tensor cannot be shared");
	if (options.layout && options.layout != self->layout)
		return tensor_fail_null(EOPNOTSUPP,
					"_to_copy: no conversion to layout %s; use "
					"to_dense or to_sparse",
					tensor_layout_name(options.layout));
	if (options.memory_format > TENSOR_PRESERVE_FORMAT)
		return tensor_fail_null(EOPNOTSUPP,
					"_to_copy: only strided tensors have a memory format");
	options.layout = 0;
	return copy_as(self, options);
}

int op_sparse_clone(const struct tensor_op *op, tensor **out, tensor *self,
		    enum tensor_memory_format memory_format)
{
	if (memory_check_clone(memory_format) < 0)
		return error_code();
	*out = copy_as(self, (tensor_options){ 0 });
	return *out ? 0 : error_code();
}
