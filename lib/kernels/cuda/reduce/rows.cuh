/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels along rows: blockDim.x threads, a power of two, have a row; blockDim.y rows are in a
 * block. A block has a multiple of 32 threads. The order of every combination depends on the shape
 * alone.
 */
#ifndef TENSOR_CUDA_ROWS_CUH
#define TENSOR_CUDA_ROWS_CUH

#include "kernels/cuda/half.cuh"

enum { WARP = 32, ROW_THREADS = 1024 };

struct plus {
	template <class A> static __device__ A join(A a, A b)
	{
		return a + b;
	}
};

/* The maximum, or NaN if one of them is, as on the CPU. */
struct greater {
	template <class A> static __device__ A join(A a, A b)
	{
		return a != a || a > b ? a : b;
	}
};

template <class Join, class A> static __device__ inline A join_warp(A value, unsigned lanes)
{
	for (unsigned half = lanes / 2; half; half /= 2)
		value = Join::template join<A>(value, __shfl_xor_sync(0xffffffff, value, half));
	return value;
}

/*
 * Returns the combination of the values of all threads of a row to each of them. Every thread of
 * the block must call it, once for each CALL: calls of a block have memory of their own, so that
 * one barrier is enough.
 */
template <class Join, int CALL, class A> static __device__ inline A join_row(A value)
{
	__shared__ A s[ROW_THREADS / WARP];
	const unsigned x = blockDim.x;

	value = join_warp<Join>(value, x < WARP ? x : (unsigned)WARP);
	if (x <= WARP)
		return value;
	const unsigned at = threadIdx.y * x + threadIdx.x, warps = x / WARP;

	if (at % WARP == 0)
		s[at / WARP] = value;
	__syncthreads();
	value = s[threadIdx.y * warps + (at & (warps - 1))];
	return join_warp<Join>(value, warps);
}

/*
 * The combination op.join() of values of any size, in blocks of BLOCK threads. It may be called
 * repeatedly.
 */
template <class Op, class A> static __device__ inline A join_lanes(const Op &op, A value)
{
	__shared__ A s[BLOCK];
	const unsigned at = threadIdx.y * blockDim.x + threadIdx.x;

	if (blockDim.x == 1)
		return value;
	__syncthreads(); /* wait for the readers of the previous call */
	s[at] = value;
	__syncthreads();
	for (unsigned half = blockDim.x / 2; half; half /= 2) {
		if (threadIdx.x < half)
			s[at] = op.join(s[at], s[at + half]);
		__syncthreads();
	}
	return s[threadIdx.y * blockDim.x];
}

/* Threads along a row of n elements; the other dimension of the block covers more rows. */
static inline unsigned lanes_for(int64_t n)
{
	unsigned x = 1;

	if (n <= 16)
		return 1;
	while (x < BLOCK && (int64_t)x * 4 < n)
		x *= 2;
	return x;
}

/* This thread's elements of a row: PACKS packs, blockDim.x packs apart. */
template <class T, int PACK, int PACKS> struct row_part {
	typedef typename number<T>::compute A;
	A v[PACKS][PACK];

	/* Elements from pack `end` on are `beyond`. All loads come before the first use. */
	__device__ inline void load(const T *row, unsigned end, A beyond)
	{
		pack<T, PACK> raw[PACKS];

#pragma unroll
		for (int k = 0; k < PACKS; k++) {
			const unsigned i = threadIdx.x + k * blockDim.x;

			if (i < end)
				raw[k] = ((const pack<T, PACK> *)row)[i];
			else
				for (int j = 0; j < PACK; j++)
					raw[k].v[j] = number<T>::store(beyond);
		}
#pragma unroll
		for (int k = 0; k < PACKS; k++)
#pragma unroll
			for (int j = 0; j < PACK; j++)
				v[k][j] = number<T>::load(raw[k].v[j]);
	}

	__device__ inline void store(T *row, unsigned end) const
	{
#pragma unroll
		for (int k = 0; k < PACKS; k++) {
			const unsigned i = threadIdx.x + k * blockDim.x;
			pack<T, PACK> raw;

#pragma unroll
			for (int j = 0; j < PACK; j++)
				raw.v[j] = number<T>::store(v[k][j]);
			if (i < end)
				((pack<T, PACK> *)row)[i] = raw;
		}
	}
};

/* Threads of a row and packs of each thread, for rows that stay in registers. */
struct row_shape {
	unsigned lanes;
	bool small; /* the smaller number of packs */
};

/*
 * A thread has SMALL or LARGE packs of a row of n. False: the row is too long.
 */
static inline bool row_shape_of(row_shape *s, int64_t packs, int few, int many)
{
	s->small = packs <= (int64_t)WARP * few;
	s->lanes = 1;
	while (s->lanes < ROW_THREADS && (int64_t)s->lanes * (s->small ? few : many) < packs)
		s->lanes *= 2;
	return (int64_t)s->lanes * many >= packs;
}

/* The block for rows with that many threads each, and the grid for `rows` of them. */
static inline dim3 row_block(unsigned lanes)
{
	return lanes < BLOCK ? dim3(lanes, BLOCK / lanes) : dim3(lanes, 1);
}

static inline unsigned row_grid(int64_t rows, dim3 block)
{
	return (unsigned)((rows + block.y - 1) / block.y);
}

/* Whether operands 0 to n - 1 have contiguous rows whose elements can be loaded by packs of 16
 * bytes. The strides are in elements of `size` bytes. */
static inline bool rows_packable(const cuda_rows *r, int n, int64_t size)
{
	const int64_t pack = 16 / size;
	bool fits = r->reduced.numel % pack == 0;

	for (int i = 0; i < n; i++) {
		fits &= (uintptr_t)r->data[i] % 16 == 0;
		for (int k = 0; k < r->kept.ndim; k++)
			fits &= r->kept.stride[i][k] % pack == 0;
	}
	return fits;
}

static inline bool rows_contiguous(const cuda_rows *r, int n)
{
	for (int i = 0; r->reduced.ndim && i < n; i++)
		if (r->reduced.ndim > 1 || r->reduced.stride[i][0] != 1)
			return false;
	return true;
}

#endif
