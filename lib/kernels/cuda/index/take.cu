// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_select, gather and indexing by tensors. take_rows_kernel copies rows that are contiguous in
 * the output and the source; others read single elements, four at a time where the index and the
 * output are contiguous.
 */
#include "kernels/cuda/index/index.cuh"

enum { AHEAD = 4 }; /* loads of a thread before its first store */

/* `rows` has all dimensions but the innermost, in elements of size T; `length` is that of a row. */
template <class T, class W>
__global__ void take_rows_kernel(walk<3, 0, W> rows, cuda_indices x, uint32_t length,
				 uint64_t positions, T *out, const T *in, const void *index,
				 cuda_report bad)
{
	typedef typename W::position position;
	const uint64_t row = (uint64_t)blockIdx.x * blockDim.y + threadIdx.y;
	typename W::offset off[3] = {};
	int64_t from = 0;
	bool fits;

	if (row >= rows.numel)
		return;
	rows.seek((position)row, off);
	if (blockIdx.y || threadIdx.x)
		bad = {}; /* a row is reported once */
	fits = add_indices(x, index, off[2], row * positions, bad, &from);
	out += (int64_t)off[0];
	in += (int64_t)off[1] + from;
	for (uint32_t i = blockIdx.y * AHEAD * blockDim.x + threadIdx.x; i < length;
	     i += gridDim.y * AHEAD * blockDim.x) {
		T v[AHEAD] = {};

#pragma unroll
		for (uint32_t k = 0; k < AHEAD; k++)
			if (fits && i + k * blockDim.x < length)
				v[k] = in[i + k * blockDim.x];
#pragma unroll
		for (uint32_t k = 0; k < AHEAD; k++)
			if (i + k * blockDim.x < length)
				out[i + k * blockDim.x] = v[k];
	}
}

template <class T, class W>
__global__ void take_kernel(walk<3, 0, W> w, cuda_indices x, T *out, const T *in, const void *index,
			    cuda_report bad)
{
	typedef typename W::position position;

	for (position i = first_element<position>(); i < w.numel; i += element_step<position>()) {
		typename W::offset off[3] = {};
		int64_t from = 0;

		w.seek(i, off);
		T v = {};

		if (add_indices(x, index, off[2], i, bad, &from))
			v = in[(int64_t)off[1] + from];
		out[(int64_t)off[0]] = v;
	}
}

/* AHEAD adjacent positions: the output and an index of type X are contiguous there. w counts groups
 * of them; `along` is the stride of the source. */
template <class T, class X, class W>
__global__ void take_four_kernel(walk<3, 0, W> w, cuda_indices x, int64_t along, T *out,
				 const T *in, const X *index, cuda_report bad)
{
	typedef typename W::position position;

	for (position i = first_element<position>(); i < w.numel; i += element_step<position>()) {
		typename W::offset off[3] = {};
		pack<X, 16 / sizeof(X)> at[AHEAD * sizeof(X) / 16];
		pack<T, AHEAD> v = {};

		w.seek(i, off);
#pragma unroll
		for (unsigned k = 0; k < AHEAD * sizeof(X) / 16; k++)
			at[k] = ((const pack<X, 16 / sizeof(X)> *)(index + (int64_t)off[2]))[k];
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			const int64_t of = at[k * sizeof(X) / 16].v[k % (16 / sizeof(X))];
			int64_t from = (int64_t)off[1] + k * along;

			if (add_index(x, 0, of, &from))
				v.v[k] = in[from];
			else
				report_value(bad, CUDA_BAD_INDEX, (uint64_t)i * AHEAD + k, of,
					     x.limit[0]);
		}
		*(pack<T, AHEAD> *)(out + (int64_t)off[0]) = v;
	}
}

/* ---- launches ---- */

/* The dimensions but the innermost. */
static cuda_dims outer_dims(const cuda_dims &d)
{
	cuda_dims r = d;

	r.ndim--;
	r.numel /= d.size[0];
	for (int k = 0; k < r.ndim; k++) {
		r.size[k] = d.size[k + 1];
		for (int i = 0; i < CUDA_OPERANDS; i++)
			r.stride[i][k] = d.stride[i][k + 1];
	}
	return r;
}

template <class T, class W>
static int take_rows(const cuda_take *t, uint64_t positions, cudaStream_t stream)
{
	const int64_t length = t->dims.size[0];
	unsigned lanes = 1;

	while (lanes < BLOCK && (int64_t)lanes * AHEAD < length)
		lanes *= 2;
	const walk<3, 0, W> rows(outer_dims(t->dims));
	const unsigned height = BLOCK / lanes;
	const int64_t pieces = (length + lanes * AHEAD - 1) / (lanes * AHEAD);
	const dim3 grid((unsigned)((rows.numel + height - 1) / height),
			(unsigned)(pieces < 1024 ? pieces : 1024));

	return launch(take_rows_kernel<T, W>, grid, dim3(lanes, height), stream, rows, t->index,
		      (uint32_t)length, positions, (T *)t->data[0], (const T *)t->data[1],
		      (const void *)t->data[2], t->bad);
}

/* Whether the innermost dimension is a row with one index. */
static bool has_rows(const cuda_dims *d)
{
	return d->ndim && d->stride[0][0] == 1 && d->stride[1][0] == 1 && !d->stride[2][0] &&
	       d->size[0] <= INT32_MAX;
}

/* Counts in elements of 16 bytes, `n` times as large, if everything is a multiple of them. */
static bool join_elements(cuda_take *t, int64_t n)
{
	cuda_dims *d = &t->dims;
	bool fits = !(d->size[0] % n) && !((uintptr_t)t->data[0] % 16) &&
		    !((uintptr_t)t->data[1] % 16);

	for (int k = 0; k < t->index.n; k++)
		fits &= !(t->index.step[k] % n);
	for (int k = 1; k < d->ndim; k++)
		fits &= !(d->stride[0][k] % n) && !(d->stride[1][k] % n);
	if (!fits)
		return false;
	d->numel /= n;
	d->size[0] /= n;
	for (int k = 1; k < d->ndim; k++) {
		d->stride[0][k] /= n;
		d->stride[1][k] /= n;
	}
	for (int k = 0; k < t->index.n; k++)
		t->index.step[k] /= n;
	return true;
}

template <class T, class W> static int rows_of(const cuda_take *t, cudaStream_t stream)
{
	cuda_take joined = *t;
	const uint64_t positions = (uint64_t)t->dims.size[0];

	if (join_elements(&joined, 16 / (int64_t)sizeof(T)))
		return take_rows<bits16, W>(&joined, positions, stream);
	return take_rows<T, W>(t, positions, stream);
}

/* Whether take_four_kernel may read an index of `size` bytes and write elements of `itemsize`. */
static bool has_fours(const cuda_take *t, int64_t size, int64_t itemsize)
{
	const cuda_dims *d = &t->dims;
	bool fits = t->index.n == 1 && d->ndim && itemsize <= 8 && d->stride[0][0] == 1 &&
		    d->stride[2][0] == 1 && !(d->size[0] % AHEAD) &&
		    !((uintptr_t)t->data[0] % (size_t)(AHEAD * itemsize)) &&
		    !((uintptr_t)t->data[2] % 16);

	for (int k = 1; k < d->ndim; k++)
		fits &= !(d->stride[0][k] % AHEAD) && !(d->stride[2][k] * size % 16);
	return fits;
}

template <class T, class X, class W> static int take_fours(const cuda_take *t, cudaStream_t stream)
{
	cuda_dims d = t->dims;

	d.numel /= AHEAD;
	d.size[0] /= AHEAD;
	for (int i = 0; i < CUDA_OPERANDS; i++)
		d.stride[i][0] *= AHEAD;
	return launch(take_four_kernel<T, X, W>, grid_for(d.numel, BLOCK), BLOCK, stream,
		      walk<3, 0, W>(d), t->index, t->dims.stride[1][0], (T *)t->data[0],
		      (const T *)t->data[1], (const X *)t->data[2], t->bad);
}

template <class T, class W> static int take_of(const cuda_take *t, cudaStream_t stream)
{
	if (has_rows(&t->dims))
		return rows_of<T, W>(t, stream);
	if (sizeof(T) < 16 && has_fours(t, t->index.wide ? 8 : 4, sizeof(T)))
		return t->index.wide ? take_fours<T, int64_t, W>(t, stream) :
				       take_fours<T, int32_t, W>(t, stream);
	return launch(take_kernel<T, W>, grid_for(t->dims.numel, BLOCK), BLOCK, stream,
		      walk<3, 0, W>(t->dims), t->index, (T *)t->data[0], (const T *)t->data[1],
		      (const void *)t->data[2], t->bad);
}

int cuda_launch_take(const cuda_take *t, int itemsize, cudaStream_t stream)
{
	switch (itemsize) {
#define X(N, T) \
	case N: \
		return t->dims.wide ? take_of<T, wide>(t, stream) : take_of<T, narrow>(t, stream);
		FOR_BITS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
