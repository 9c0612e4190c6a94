// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sparse and quantized operands of rows (call.c). bench/layouts.py makes the same.
 *
 *   f32[M,N]@E     COO with E entries at pseudo-random positions, of which some are equal; :k coalesced, :c CSR, :d strided; with :z
 *                  half of the entries are in an eighth of the rows
 *   u8[...]:q      numbers in [-1, 1) with the scale 1/128, and the zero point 128 for u8 and 0 for i8
 *   i8[N,...]:Q    by channels of dimension 0, whose scales are 1/128 to 8/128, with the zero point 0
 */
#include "call.h"

static tensor *indices(int64_t n, int64_t below, bool skewed)
{
	return call_numbers((tensor_ints){ &n, 1 }, &(struct form){ .dtype = TENSOR_I64,
								    .below = below,
								    .skewed = skewed });
}

tensor *call_sparse(const struct form *f)
{
	tensor *at[] = { indices(f->entries, f->size[0], f->skewed),
			 indices(f->entries, f->size[1], false) };
	tensor *values = call_numbers((tensor_ints){ &f->entries, 1 }, f);
	tensor *t =
		row_own(tensor_sparse_coo_tensor(row_own(tensor_stack((tensor_list){ at, 2 }, 0)),
						 values, (tensor_ints){ f->size, 2 }));

	t = f->layout ? row_own(tensor_coalesce(t)) : t;
	if (f->layout == 'c')
		return row_own(tensor_to_sparse_csr(t));
	return f->layout == 'd' ? row_own(tensor_to_dense(t)) : t;
}

tensor *call_quantized(const struct form *f)
{
	struct form real = *f;
	tensor *x, *scales, *zeros;

	real.dtype = TENSOR_F32;
	x = call_numbers((tensor_ints){ f->size, f->ndim }, &real);
	if (f->layout == 'q')
		return row_own(tensor_quantize_per_tensor(
			x, 1.0 / 128, f->dtype == TENSOR_U8 ? 128 : 0, f->dtype));
	zeros = row_own(
		tensor_zeros((tensor_ints){ f->size, 1 }, TENSOR_OPTIONS(.dtype = TENSOR_I64)));
	scales = row_own(
		tensor_zeros((tensor_ints){ f->size, 1 }, TENSOR_OPTIONS(.dtype = TENSOR_F64)));
	for (int64_t i = 0; i < f->size[0]; i++)
		((double *)tensor_mutable_data(scales))[i] = (double)(1 + i % 8) / 128;
	return row_own(tensor_quantize_per_channel(x, scales, zeros, 0, f->dtype));
}

tensor *call_strided(tensor *t)
{
	int64_t axis;
	double scale;

	if (tensor_layout(t) == TENSOR_SPARSE_CSR)
		return row_own(tensor_values(t));
	if (tensor_layout(t) == TENSOR_SPARSE_COO)
		return row_own(tensor_values(row_own(tensor_coalesce(t))));
	if (tensor_q_scale(t, &scale) == 0 || tensor_q_per_channel_axis(t, &axis) == 0)
		return row_own(tensor_dequantize(t));
	return row_own(tensor_to_dense(t));
}

int64_t call_sparse_bytes(tensor *t)
{
	int64_t n, item = (int64_t)tensor_itemsize(tensor_dtype(t));

	if (tensor_layout(t) == TENSOR_SPARSE_COO) {
		row_check(tensor__nnz(t, &n));
		return n * (item + 16);
	}
	if (tensor_layout(t) == TENSOR_SPARSE_CSR) {
		row_check(tensor__nnz(t, &n));
		return n * (item + 8) + 8 * (tensor_size(t, 0) + 1);
	}
	return tensor_numel(t) * item;
}
