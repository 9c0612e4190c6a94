// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * softmax, log_softmax and their gradients. Contiguous rows up to some thousands of elements stay
 * in registers: they are read once and written once, by as many threads as the length needs. Other
 * rows are read twice: the maximum and the sum are computed together.
 */
#include "kernels/cuda/reduce/rows.cuh"

/*
 * Packs of a thread: enough for 16 elements (8 of f64 and single ones), or the fewest for short
 * rows.
 */
template <class T, int PACK> struct packs_of {
	enum {
		FEW = PACK > 1 ? 1 : 2,
		MANY = PACK > 1 && sizeof(T) < 8 ? 16 / PACK : 8 / PACK,
	};
};

/* ---- rows in registers ---- */

template <class T, bool LOG, int PACK, int PACKS>
__global__ void __launch_bounds__(ROW_THREADS)
	softmax_row_kernel(walk<2, 0, wide> kept, unsigned packs, T *out, const T *in)
{
	typedef typename number<T>::compute A;
	const uint64_t row = (uint64_t)blockIdx.x * blockDim.y + threadIdx.y;
	const unsigned end = row < kept.numel ? packs : 0;
	int64_t at[2] = {};
	row_part<T, PACK, PACKS> x;
	A top = -INFINITY, sum = 0;

	if (end)
		kept.seek(row, at);
	x.load(in + at[1], end, -INFINITY);
#pragma unroll
	for (int i = 0; i < PACK * PACKS; i++)
		top = greater::join<A>(x.v[i / PACK][i % PACK], top);
	top = join_row<greater, 0>(top);
#pragma unroll
	for (int i = 0; i < PACK * PACKS; i++) {
		A &v = x.v[i / PACK][i % PACK], e;

		v -= top;
		e = exponential(v);
		sum += e;
		if (!LOG)
			v = e;
	}
	sum = join_row<plus, 1>(sum);
	sum = LOG ? logarithm(sum) : 1 / sum;
#pragma unroll
	for (int i = 0; i < PACK * PACKS; i++) {
		A &v = x.v[i / PACK][i % PACK];

		v = LOG ? v - sum : v * sum;
	}
	x.store(out + at[0], end);
}

template <class T, bool LOG, int PACK, int PACKS>
__global__ void __launch_bounds__(ROW_THREADS)
	softmax_backward_row_kernel(walk<3, 0, wide> kept, unsigned packs, T *out, const T *grad,
				    const T *result)
{
	typedef typename number<T>::compute A;
	const uint64_t row = (uint64_t)blockIdx.x * blockDim.y + threadIdx.y;
	const unsigned end = row < kept.numel ? packs : 0;
	int64_t at[3] = {};
	row_part<T, PACK, PACKS> g, y;
	A sum = 0;

	if (end)
		kept.seek(row, at);
	g.load(grad + at[1], end, 0);
	y.load(result + at[2], end, 0);
#pragma unroll
	for (int i = 0; i < PACK * PACKS; i++) {
		A v = g.v[i / PACK][i % PACK];

		sum += LOG ? v : v * y.v[i / PACK][i % PACK];
	}
	sum = join_row<plus, 0>(sum);
#pragma unroll
	for (int i = 0; i < PACK * PACKS; i++) {
		A &v = g.v[i / PACK][i % PACK], w = y.v[i / PACK][i % PACK];

		v = LOG ? v - exponential(w) * sum : w * (v - sum);
	}
	g.store(out + at[0], end);
}

template <class T, bool LOG, int PACK, int PACKS>
static int in_registers(const cuda_rows *r, bool backward, unsigned lanes, cudaStream_t stream)
{
	const unsigned packs = (unsigned)(r->reduced.numel / PACK);
	const dim3 block = row_block(lanes), grid = row_grid(r->kept.numel, block);

	if (backward)
		return launch(softmax_backward_row_kernel<T, LOG, PACK, PACKS>, grid, block, stream,
			      walk<3, 0, wide>(r->kept), packs, (T *)r->data[0],
			      (const T *)r->data[1], (const T *)r->data[2]);
	return launch(softmax_row_kernel<T, LOG, PACK, PACKS>, grid, block, stream,
		      walk<2, 0, wide>(r->kept), packs, (T *)r->data[0], (const T *)r->data[1]);
}

/* ---- other rows: operand k has stride step.of[k] along a row ---- */

struct row_steps {
	int64_t n, of[CUDA_OPERANDS];
};

/* The greatest of some elements, and the sum of exp(x - top) of all. */
template <class A> struct peak {
	A top, sum;

	/* -inf adds nothing, unless there are no others: then the differences from top are NaN. */
	__device__ inline void add(const A (&x)[4])
	{
		A before = top;

#pragma unroll
		for (int k = 0; k < 4; k++)
			top = greater::join<A>(x[k], top);
		if (before != top)
			sum *= exponential(before - top);
#pragma unroll
		for (int k = 0; k < 4; k++)
			sum += x[k] == -INFINITY ? 0 : exponential(x[k] - top);
	}

	__device__ inline A scaled(A to) const
	{
		return top == to ? sum : sum * exponential(top - to);
	}
};

/* Loads elements i, i + step, ... of a row, four; those past its end are `beyond`. */
template <class T>
static __device__ inline void load_four(typename number<T>::compute (&x)[4], const T *in, int64_t i,
					int64_t step, const row_steps &s, int operand,
					typename number<T>::compute beyond)
{
#pragma unroll
	for (int k = 0; k < 4; k++)
		x[k] = i + k * step < s.n ? number<T>::load(in[(i + k * step) * s.of[operand]]) :
					    beyond;
}

template <class T, bool LOG>
__global__ void softmax_kernel(walk<2, 0, wide> kept, row_steps s, T *out, const T *in)
{
	typedef typename number<T>::compute A;
	const uint64_t row = (uint64_t)blockIdx.x * blockDim.y + threadIdx.y;
	const int64_t step = blockDim.x;
	int64_t at[2] = {};
	peak<A> p = { -INFINITY, 0 };
	A x[4], top, sum;

	if (row < kept.numel)
		kept.seek(row, at);
	else
		s.n = 0;
	in += at[1];
	out += at[0];
	for (int64_t i = threadIdx.x; i < s.n; i += 4 * step) {
		load_four(x, in, i, step, s, 1, -INFINITY);
		p.add(x);
	}
	top = join_row<greater, 0>(p.top);
	sum = join_row<plus, 1>(p.scaled(top));
	sum = LOG ? logarithm(sum) : 1 / sum;
	for (int64_t i = threadIdx.x; i < s.n; i += 4 * step) {
		load_four(x, in, i, step, s, 1, -INFINITY);
#pragma unroll
		for (int k = 0; k < 4; k++)
			if (i + k * step < s.n)
				out[(i + k * step) * s.of[0]] = number<T>::store(
					LOG ? x[k] - top - sum : exponential(x[k] - top) * sum);
	}
}

template <class T, bool LOG>
__global__ void softmax_backward_kernel(walk<3, 0, wide> kept, row_steps s, T *out, const T *grad,
					const T *result)
{
	typedef typename number<T>::compute A;
	const uint64_t row = (uint64_t)blockIdx.x * blockDim.y + threadIdx.y;
	const int64_t step = blockDim.x;
	int64_t at[3] = {};
	A g[4], y[4], sum = 0;

	if (row < kept.numel)
		kept.seek(row, at);
	else
		s.n = 0;
	for (int64_t i = threadIdx.x; i < s.n; i += 4 * step) {
		load_four(g, grad + at[1], i, step, s, 1, 0);
		if (!LOG)
			load_four(y, result + at[2], i, step, s, 2, 0);
#pragma unroll
		for (int k = 0; k < 4; k++)
			sum += LOG ? g[k] : g[k] * y[k];
	}
	sum = join_row<plus, 0>(sum);
	for (int64_t i = threadIdx.x; i < s.n; i += 4 * step) {
		load_four(g, grad + at[1], i, step, s, 1, 0);
		load_four(y, result + at[2], i, step, s, 2, 0);
#pragma unroll
		for (int k = 0; k < 4; k++)
			if (i + k * step < s.n)
				out[at[0] + (i + k * step) * s.of[0]] = number<T>::store(
					LOG ? g[k] - exponential(y[k]) * sum : y[k] * (g[k] - sum));
	}
}

template <class T, bool LOG>
static int strided(const cuda_rows *r, bool backward, cudaStream_t stream)
{
	row_steps s = { r->reduced.numel, { 0, 0, 0 } };
	unsigned lanes = 1;

	for (int i = 0; r->reduced.ndim && i < CUDA_OPERANDS; i++)
		s.of[i] = r->reduced.stride[i][0];
	while (!r->across && lanes < ROW_THREADS && (int64_t)lanes * 8 < s.n)
		lanes *= 2;
	const dim3 block = row_block(lanes), grid = row_grid(r->kept.numel, block);

	if (backward)
		return launch(softmax_backward_kernel<T, LOG>, grid, block, stream,
			      walk<3, 0, wide>(r->kept), s, (T *)r->data[0], (const T *)r->data[1],
			      (const T *)r->data[2]);
	return launch(softmax_kernel<T, LOG>, grid, block, stream, walk<2, 0, wide>(r->kept), s,
		      (T *)r->data[0], (const T *)r->data[1]);
}

/* ---- choice ---- */

template <class T, bool LOG, int PACK>
static int by_length(const cuda_rows *r, bool backward, cudaStream_t stream)
{
	typedef packs_of<T, PACK> packs;
	row_shape s;

	if (!row_shape_of(&s, r->reduced.numel / PACK, packs::FEW, packs::MANY))
		return strided<T, LOG>(r, backward, stream);
	if (s.small)
		return in_registers<T, LOG, PACK, packs::FEW>(r, backward, s.lanes, stream);
	return in_registers<T, LOG, PACK, packs::MANY>(r, backward, s.lanes, stream);
}

template <class T, bool LOG>
static int softmax_of(const cuda_rows *r, bool backward, cudaStream_t stream)
{
	const int operands = backward ? 3 : 2;

	if (!rows_contiguous(r, operands))
		return strided<T, LOG>(r, backward, stream);
	if (rows_packable(r, operands, sizeof(T)))
		return by_length<T, LOG, 16 / sizeof(T)>(r, backward, stream);
	return by_length<T, LOG, 1>(r, backward, stream);
}

static int softmax(const cuda_rows *r, int dtype, bool log, bool backward, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                         \
	case D:                                                         \
		return log ? softmax_of<T, true>(r, backward, stream) : \
			     softmax_of<T, false>(r, backward, stream);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_softmax(const cuda_rows *r, int dtype, bool log, cudaStream_t stream)
{
	return softmax(r, dtype, log, false, stream);
}

int cuda_launch_softmax_backward(const cuda_rows *r, int dtype, bool log, cudaStream_t stream)
{
	return softmax(r, dtype, log, true, stream);
}
