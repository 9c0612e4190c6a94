// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sparse tensors: constructors and accessors. */
#include "ops/sparse/sparse.h"

#include "family/copy.h"
#include "family/sparse.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the extension ---- */

static void free_sparse(struct tensor_extension *x)
{
	struct sparse *s = (struct sparse *)x;

	tensor_put(s->indices);
	tensor_put(s->crow);
	tensor_put(s->col);
	tensor_put(s->values);
	free(s);
}

static tensor *part(const tensor *t, int i, const char **name)
{
	const struct sparse *s = sparse_of(t);
	tensor *const coo[] = { s->indices, s->values, NULL };
	tensor *const csr[] = { s->crow, s->col, s->values, NULL };
	static const char *const names[2][4] = { { "indices", "values" },
						 { "crow_indices", "col_indices", "values" } };

	*name = names[is_csr(t)][i];
	return is_csr(t) ? (csr[i] ? tensor_get(csr[i]) : NULL) :
			   (coo[i] ? tensor_get(coo[i]) : NULL);
}

static void describe(const tensor *t, char *buf, size_t size)
{
	snprintf(buf, size, ", nnz=%lld, layout=%s", (long long)sparse_of(t)->nnz,
		 tensor_layout_name(t->layout));
}

static const struct extension_ops sparse_ops = { .free = free_sparse,
						 .part = part,
						 .describe = describe };

/* Copy or take a part as detached and contiguous. NULL with the error set if that fails. */
static tensor *keep_part(tensor *t)
{
	tensor *full;

	if (!t)
		return NULL;
	full = operand_contiguous(t);
	if (full == t) {
		tensor_put(full);
		full = tensor_new_detached(t);
	}
	return full;
}

/* Keep indices that were checked or computed here; they are not written afterwards. */
static tensor *keep_indices(tensor *t)
{
	tensor *full = keep_part(t);

	if (full)
		full->storage->readonly = true;
	return full;
}

static tensor *new_sparse(tensor_ints size, enum tensor_layout layout, const struct sparse *like)
{
	static const int64_t strides[TENSOR_MAX_DIMS];
	int64_t numel = sizes_numel("sparse tensor", size.data, (int)size.len);
	struct sparse *s = numel < 0 ? NULL : malloc(sizeof(*s));
	tensor *t;

	if (!s) {
		if (numel >= 0)
			tensor_fail(ENOMEM, "sparse tensor: no memory");
		return NULL;
	}
	*s = *like;
	s->ext = (struct tensor_extension){ 1, &sparse_ops };
	s->indices = keep_indices(like->indices);
	s->crow = keep_indices(like->crow);
	s->col = keep_indices(like->col);
	s->values = keep_part(like->values);
	if (!s->values || !s->indices != !like->indices || !s->crow != !like->crow ||
	    !s->col != !like->col)
		goto failed;
	storage_get(s->values->storage);
	t = tensor_new_on_storage(s->values->storage, s->values->dtype, size.data, strides,
				  (int)size.len, 0);
	if (!t)
		goto failed;
	t->layout = layout;
	t->keys = device_key(t->device, layout);
	t->contiguous = false;
	t->data = NULL;
	t->numel = numel;
	t->ext = &s->ext;
	return t;
failed:
	free_sparse(&s->ext);
	return NULL;
}

tensor *sparse_new_coo(tensor_ints size, tensor *indices, tensor *values, bool coalesced)
{
	struct sparse s = { .indices = indices, .values = values };

	if (!indices || !values)
		return NULL;
	s.sparse_dim = (int)indices->sizes[0];
	s.nnz = indices->sizes[1];
	s.coalesced = coalesced || s.nnz < 2;
	return new_sparse(size, TENSOR_SPARSE_COO, &s);
}

tensor *sparse_new_csr(tensor_ints size, tensor *crow, tensor *col, tensor *values)
{
	struct sparse s = { .sparse_dim = 2, .crow = crow, .col = col, .values = values };

	if (!crow || !col || !values)
		return NULL;
	s.nnz = col->sizes[0];
	s.coalesced = true;
	return new_sparse(size, TENSOR_SPARSE_CSR, &s);
}

tensor *sparse_with_values(const tensor *self, tensor *values)
{
	struct sparse s = *sparse_of(self);

	s.values = values;
	return values ? new_sparse(sizes_of(self), self->layout, &s) : NULL;
}

void sparse_become(tensor *self, const tensor *other)
{
	struct tensor_extension *before = self->ext;

	if (self->ext == other->ext)
		return;
	/* Take over the version, which must not decrease. */
	atomic_store_explicit(&other->storage->version, (int)storage_version(self->storage),
			      memory_order_relaxed);
	storage_get(other->storage);
	storage_put(self->storage);
	self->storage = other->storage;
	self->ext = extension_get(other);
	extension_put(before);
}

tensor *sparse_new_i64(int64_t n)
{
	return tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &n, 1);
}

tensor *sparse_new_indices(int d, int64_t nnz)
{
	int64_t sizes[] = { d, nnz };

	return tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, sizes, 2);
}

tensor *sparse_new_keys(const tensor *self)
{
	const struct sparse *s = sparse_of(self);
	tensor *keys, *indices;

	if (is_on_device(self)) {
		indices = is_coo(self) ? tensor_get(s->indices) :
					 sparse_expand_on_device(s->crow, s->col);
		keys = indices ? sparse_keys_on_device(indices, self->sizes) : NULL;
		tensor_put(indices);
		return keys;
	}
	keys = sparse_new_i64(s->nnz);
	if (!keys)
		return NULL;
	if (is_coo(self)) {
		sparse_keys(i64_data(keys), i64_data(s->indices), s->sparse_dim, s->nnz,
			    self->sizes);
	} else {
		sparse_expand(i64_data(keys), i64_data(s->crow), self->sizes[0]);
		for (int64_t i = 0; i < s->nnz; i++)
			i64_data(keys)[i] =
				i64_data(keys)[i] * self->sizes[1] + i64_data(s->col)[i];
	}
	return keys;
}

tensor *sparse_sum_values(tensor *unsummed, const tensor *order, const tensor *starts, int64_t runs)
{
	sum_runs_kernel fn = (sum_runs_kernel)kernels_sum_runs.fn[backend_key(unsummed)];
	tensor *values = operand_widen(unsummed), *sums = NULL, *result = NULL;
	int64_t sizes[TENSOR_MAX_DIMS];

	if (!values)
		return NULL;
	memcpy(sizes, values->sizes, values->ndim * sizeof(*sizes));
	sizes[0] = runs;
	sums = tensor_new(values->device, values->dtype, sizes, values->ndim);
	if (sums && fn(sums, values, order, starts) == 0)
		result = operand_cast(sums, unsummed->dtype);
	tensor_put(values);
	tensor_put(sums);
	return result;
}

tensor *sparse_from_keys(const tensor *like, const int64_t *keys, tensor *values)
{
	int64_t n = values->sizes[0];
	tensor *indices = sparse_new_indices(sparse_of(like)->sparse_dim, n), *crow = NULL,
	       *col = NULL, *t = NULL;

	if (indices)
		sparse_indices(i64_data(indices), keys, sparse_of(like)->sparse_dim, n,
			       like->sizes);
	if (indices && is_coo(like)) {
		t = sparse_new_coo(sizes_of(like), indices, values, true);
	} else if (indices) {
		crow = sparse_new_i64(like->sizes[0] + 1);
		col = sparse_new_i64(n);
		if (crow && col) {
			sparse_compress(i64_data(crow), like->sizes[0], i64_data(indices), n);
			memcpy(col->data, i64_data(indices) + n, n * sizeof(int64_t));
			t = sparse_new_csr(sizes_of(like), crow, col, values);
		}
	}
	tensor_put(indices);
	tensor_put(crow);
	tensor_put(col);
	return t;
}

int sparse_need_coo(const char *op, const tensor *t)
{
	return is_coo(t) ? 0 :
			   tensor_fail(EOPNOTSUPP, "%s: layout sparse_coo is needed, got %s", op,
				       tensor_layout_name(t->layout));
}

/* ---- constructors ---- */

static int need_index_dtype(const char *op, const char *name, const tensor *t)
{
	if (t->dtype == TENSOR_I64 || t->dtype == TENSOR_I32)
		return 0;
	return tensor_fail(EINVAL, "%s: %s must be i64 or i32, got %s", op, name,
			   tensor_dtype_name(t->dtype));
}

static int check_coo(const tensor *indices, const tensor *values, tensor_ints size)
{
	const char *op = "sparse_coo_tensor";
	int d;

	if (need_index_dtype(op, "indices", indices) < 0)
		return error_code();
	if (indices->ndim != 2)
		return tensor_fail(EINVAL, "%s: indices must be [sparse_dim, nnz], got shape %s",
				   op, SHAPE_STR(indices));
	if (!values->ndim || values->sizes[0] != indices->sizes[1])
		return tensor_fail(EINVAL,
				   "%s: values must be [%lld, ...] to match indices %s, got %s", op,
				   (long long)indices->sizes[1], SHAPE_STR(indices),
				   SHAPE_STR(values));
	d = indices->sizes[0] > TENSOR_MAX_DIMS ? TENSOR_MAX_DIMS + 1 : (int)indices->sizes[0];
	if (size.len != d + values->ndim - 1)
		return tensor_fail(EINVAL,
				   "%s: size must have %d sparse and %d dense dimensions, "
				   "got %lld",
				   op, d, values->ndim - 1, (long long)size.len);
	for (int i = 1; i < values->ndim; i++)
		if (values->sizes[i] != size.data[d + i - 1])
			return tensor_fail(EINVAL,
					   "%s: dimension %d of values %s must have size %lld", op,
					   i, SHAPE_STR(values), (long long)size.data[d + i - 1]);
	return sizes_numel(op, size.data, (int)size.len) < 0 ? error_code() : 0;
}

/* A copy beside the values, before the check, so that neither the caller nor another process can change the indices after it. */
static tensor *own_indices(tensor *indices, const tensor *values)
{
	return operand_contiguous_copy(indices, TENSOR_OPTIONS(.dtype = TENSOR_I64,
							       .device = values->device));
}

tensor *kernel_sparse_coo_tensor(tensor *indices, tensor *values, tensor_ints size,
				 bool is_coalesced)
{
	const char *op = "sparse_coo_tensor";
	tensor *own, *t = NULL;

	if (check_coo(indices, values, size) < 0)
		return NULL;
	own = own_indices(indices, values);
	if (own && (is_on_device(own) ? sparse_check_indices_on_device(op, own, size.data) :
					sparse_check_indices(op, i64_data(own), (int)own->sizes[0],
							     own->sizes[1], size.data)) == 0)
		t = sparse_new_coo(size, own, values, is_coalesced);
	tensor_put(own);
	return t;
}

/* The largest index of each row, -1 without any. 0, or -errno with the error set. */
static int largest_indices(tensor *indices, int64_t *largest)
{
	const int64_t d = indices->sizes[0], nnz = indices->sizes[1];
	tensor *full;

	for (int64_t k = 0; k < d; k++)
		largest[k] = -1;
	if (!d || !nnz)
		return 0;
	if (is_on_device(indices))
		return sparse_largest_indices_on_device(indices, largest);
	full = operand_contiguous(indices);
	for (int64_t k = 0; full && k < d; k++)
		for (int64_t i = 0; i < nnz; i++)
			if (i64_data(full)[k * nnz + i] > largest[k])
				largest[k] = i64_data(full)[k * nnz + i];
	tensor_put(full);
	return full ? 0 : error_code();
}

/* The largest index of each row plus one, at least 0. Waits for a device. The check of INT64_MAX refuses that index. */
static int infer_sizes(tensor *indices, int64_t *sizes)
{
	tensor *wide = operand_cast(indices, TENSOR_I64);
	int err = wide ? largest_indices(wide, sizes) : error_code();

	for (int64_t k = 0; !err && k < indices->sizes[0]; k++)
		if (sizes[k] < INT64_MAX)
			sizes[k] = sizes[k] < 0 ? 0 : sizes[k] + 1;
	tensor_put(wide);
	return err;
}

tensor *composite_sparse_coo_infer(tensor *indices, tensor *values, bool is_coalesced)
{
	int64_t size[TENSOR_MAX_DIMS];
	tensor_ints sizes = { size, 0 };

	/* Other shapes are rejected by the full check later. */
	if (indices->ndim == 2 && values->ndim &&
	    indices->sizes[0] + values->ndim - 1 <= TENSOR_MAX_DIMS) {
		if (infer_sizes(indices, size) < 0)
			return NULL;
		sizes.len = indices->sizes[0];
		for (int i = 1; i < values->ndim; i++)
			size[sizes.len++] = values->sizes[i];
	}
	return call_sparse_coo_tensor_indices_size(indices, values, sizes, is_coalesced);
}

static int check_csr(const tensor *crow, const tensor *col, const tensor *values, tensor_ints size)
{
	const char *op = "sparse_csr_tensor";

	if (need_index_dtype(op, "crow_indices", crow) < 0 ||
	    need_index_dtype(op, "col_indices", col) < 0)
		return error_code();
	if (size.len != 2)
		return tensor_fail(EINVAL, "%s: a matrix is needed, got %lld sizes", op,
				   (long long)size.len);
	if (sizes_numel(op, size.data, 2) < 0)
		return error_code();
	if (crow->ndim != 1 || crow->sizes[0] != size.data[0] + 1)
		return tensor_fail(EINVAL, "%s: crow_indices must be [%lld], got %s", op,
				   (long long)size.data[0] + 1, SHAPE_STR(crow));
	if (col->ndim != 1 || values->ndim != 1 || col->sizes[0] != values->sizes[0])
		return tensor_fail(EINVAL,
				   "%s: col_indices and values must be vectors of one size, "
				   "got %s and %s",
				   op, SHAPE_STR(col), SHAPE_STR(values));
	return 0;
}

tensor *kernel_sparse_csr_tensor(tensor *crow_indices, tensor *col_indices, tensor *values,
				 tensor_ints size)
{
	const char *op = "sparse_csr_tensor";
	tensor *crow, *col, *t = NULL;

	if (check_csr(crow_indices, col_indices, values, size) < 0)
		return NULL;
	crow = own_indices(crow_indices, values);
	col = own_indices(col_indices, values);
	if (crow && col &&
	    (is_on_device(crow) ?
		     sparse_check_rows_on_device(op, crow, col, size.data[0], size.data[1]) :
		     sparse_check_rows(op, i64_data(crow), i64_data(col), size.data[0],
				       size.data[1], values->sizes[0])) == 0)
		t = sparse_new_csr(size, crow, col, values);
	tensor_put(crow);
	tensor_put(col);
	return t;
}

/* ---- accessors ---- */

/* Return a new tensor on the part each time: the caller may set its history. */
static tensor *give_part(const char *op, const tensor *self, tensor *t)
{
	return t ? tensor_new_detached(t) :
		   tensor_fail_null(EINVAL, "%s: not available for layout %s", op,
				    tensor_layout_name(self->layout));
}

tensor *kernel_sparse__indices(tensor *self)
{
	return give_part("_indices", self, sparse_of(self)->indices);
}

tensor *kernel_sparse__values(tensor *self)
{
	return give_part("_values", self, sparse_of(self)->values);
}

static int need_coalesced(const char *op, const tensor *self)
{
	return sparse_of(self)->coalesced ?
		       0 :
		       tensor_fail(EINVAL, "%s: the tensor is not coalesced; coalesce() it first",
				   op);
}

tensor *kernel_sparse_indices(tensor *self)
{
	return need_coalesced("indices", self) < 0 ?
		       NULL :
		       give_part("indices", self, sparse_of(self)->indices);
}

tensor *kernel_sparse_values(tensor *self)
{
	return need_coalesced("values", self) < 0 ?
		       NULL :
		       give_part("values", self, sparse_of(self)->values);
}

tensor *kernel_sparse_crow(tensor *self)
{
	return give_part("crow_indices", self, sparse_of(self)->crow);
}

tensor *kernel_sparse_col(tensor *self)
{
	return give_part("col_indices", self, sparse_of(self)->col);
}

int kernel_sparse_nnz(tensor *self, int64_t *result)
{
	*result = sparse_of(self)->nnz;
	return 0;
}

int kernel_sparse_sparse_dim(tensor *self, int64_t *result)
{
	*result = sparse_of(self)->sparse_dim;
	return 0;
}

int kernel_sparse_dense_dim(tensor *self, int64_t *result)
{
	*result = self->ndim - sparse_of(self)->sparse_dim;
	return 0;
}

int kernel_sparse_is_coalesced(tensor *self, bool *result)
{
	*result = sparse_of(self)->coalesced;
	return 0;
}
