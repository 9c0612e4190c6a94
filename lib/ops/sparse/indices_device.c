// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Index arithmetic and checks of sparse tensors on a device, by operators that run there. The host waits for the checks. */
#include "ops/op.h"

#include "ops/sparse/indices.h"

#include <tensor/ops.h>

/* Keys of indices [d, nnz] for sizes, i64 [nnz]. */
static tensor *keys_of(tensor *indices, const int64_t *sizes)
{
	const int64_t d = indices->sizes[0];
	tensor *keys =
		d ? tensor_select(indices, 0, 0) :
		    tensor_zeros(TENSOR_INTS(indices->sizes[1]),
				 TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = indices->device));

	for (int64_t k = 1; k < d; k++)
		keys = tensor_add(tensor_mul_scalar(keys, TENSOR_SCALAR(sizes[k])),
				  tensor_select(indices, 0, k));
	return keys;
}

tensor *sparse_keys_on_device(tensor *indices, const int64_t *sizes)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *keys = keys_of(indices, sizes);

	keys = keys ? tensor_get(keys) : NULL;
	scope_leave(&guard);
	return keys;
}

/* The row of element p is the number of rows that end at or before p. */
static tensor *rows_of(tensor *crow, int64_t nnz)
{
	const tensor_options i64 = TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = crow->device);
	tensor *ends = tensor_narrow(crow, 0, 1, crow->sizes[0] - 1);

	return tensor_searchsorted_opt(ends, tensor_arange(TENSOR_SCALAR(nnz), i64), false, true,
				       NULL, tensor_none);
}

tensor *sparse_expand_on_device(tensor *crow, tensor *col)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *rows = rows_of(crow, col->sizes[0]);
	tensor *indices = tensor_stack((tensor_list){ (tensor *[]){ rows, col }, 2 }, 0);

	indices = indices ? tensor_get(indices) : NULL;
	scope_leave(&guard);
	return indices;
}

tensor *sparse_rows_of_indices(tensor *indices, const int *from, int n)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *rows[TENSOR_MAX_DIMS], *t;

	for (int d = 0; d < n; d++)
		rows[d] = from[d] < 0 ? tensor_zeros_like(tensor_select(indices, 0, 0),
							  (tensor_options){ 0 }) :
					tensor_select(indices, 0, from[d]);
	t = n ? tensor_stack((tensor_list){ rows, n }, 0) : tensor_narrow(indices, 0, 0, 0);
	t = t ? tensor_get(t) : NULL;
	scope_leave(&guard);
	return t;
}

/* ---- checks ---- */

/* n numbers of the device, one after the other; waits for them. */
static int read_numbers(tensor **numbers, int n, int64_t *to)
{
	tensor *all = tensor_stack((tensor_list){ numbers, n }, 0);
	tensor *host = all ? tensor_scope_add(operand_on_host(all)) : NULL;

	if (!host)
		return error_code();
	memcpy(to, host->data, host->numel * sizeof(*to));
	return 0;
}

/* The host finds the index that the error names. */
int sparse_check_indices_on_device(const char *op, tensor *indices, const int64_t *sizes)
{
	const int d = (int)indices->sizes[0];
	const int64_t nnz = indices->sizes[1];
	struct tensor_scope_guard guard = tensor_scope_enter();
	int64_t range[2 * TENSOR_MAX_DIMS];
	bool bad = false;
	tensor *host;
	int err = 0;

	if (d && nnz)
		err = read_numbers((tensor *[]){ tensor_amin(indices, TENSOR_INTS(1), false),
						 tensor_amax(indices, TENSOR_INTS(1), false) },
				   2, range);
	for (int k = 0; d && nnz && !err && k < d; k++)
		bad |= range[k] < 0 || range[d + k] >= sizes[k];
	if (bad) {
		host = tensor_scope_add(operand_on_host(indices));
		err = host ? sparse_check_indices(op, host->data, d, nnz, sizes) : error_code();
	}
	scope_leave(&guard);
	return err;
}

int sparse_largest_indices_on_device(tensor *indices, int64_t *largest)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	int err = read_numbers((tensor *[]){ tensor_amax(indices, TENSOR_INTS(1), false) }, 1,
			       largest);

	scope_leave(&guard);
	return err;
}

/* Rows that descend. */
static tensor *descents(tensor *crow)
{
	const int64_t m = crow->sizes[0] - 1;

	return tensor_sum(tensor_gt(tensor_narrow(crow, 0, 0, m), tensor_narrow(crow, 0, 1, m)));
}

/* Columns of a row that do not ascend. */
static tensor *disorder(tensor *crow, tensor *col)
{
	const int64_t n = col->sizes[0] - 1;
	tensor *rows = rows_of(crow, n + 1);
	tensor *stays = tensor_eq(tensor_narrow(rows, 0, 0, n), tensor_narrow(rows, 0, 1, n));
	tensor *falls = tensor_ge(tensor_narrow(col, 0, 0, n), tensor_narrow(col, 0, 1, n));

	return tensor_sum(tensor_logical_and(stays, falls));
}

int sparse_check_rows_on_device(const char *op, tensor *crow, tensor *col, int64_t m, int64_t n)
{
	enum { FIRST, LAST, DESCENTS, LEAST, MOST, DISORDER, NUMBERS };
	struct tensor_scope_guard guard = tensor_scope_enter();
	const int64_t nnz = col->sizes[0];
	int64_t found[NUMBERS] = { 0 };
	tensor *numbers[NUMBERS] = { tensor_select(crow, 0, 0), tensor_select(crow, 0, m),
				     descents(crow) };
	int err;

	if (nnz) {
		numbers[LEAST] = tensor_amin(col, TENSOR_INTS(0), false);
		numbers[MOST] = tensor_amax(col, TENSOR_INTS(0), false);
		numbers[DISORDER] = disorder(crow, col);
	}
	err = read_numbers(numbers, nnz ? NUMBERS : LEAST, found);
	if (!err && (found[FIRST] || found[LAST] != nnz || found[DESCENTS] || found[LEAST] < 0 ||
		     (nnz && found[MOST] >= n) || found[DISORDER])) {
		crow = tensor_scope_add(operand_on_host(crow));
		col = crow ? tensor_scope_add(operand_on_host(col)) : NULL;
		err = col ? sparse_check_rows(op, crow->data, col->data, m, n, nnz) : error_code();
	}
	scope_leave(&guard);
	return err;
}
