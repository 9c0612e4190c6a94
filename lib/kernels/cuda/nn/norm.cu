// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * layer_norm and its gradients. Rows up to some thousands of elements stay in registers: each is
 * read once. The mean is computed before the squared differences from it, as on the CPU. Gradients
 * of weight and bias are sums over rows, in chunks that depend on the shape alone.
 */
#include "kernels/cuda/launch_nn.h"
#include "kernels/cuda/reduce/rows.cuh"

static __device__ inline float inverse_root(float x)
{
	return 1 / sqrtf(x);
}

static __device__ inline double inverse_root(double x)
{
	return 1 / sqrt(x);
}

/* The arguments of the kernels of layer_norm: elements X, which are computed as T. */
template <class X> struct layer_args {
	typedef typename number<X>::compute T;
	int64_t rows;
	unsigned packs, n;
	const X *x, *grad;
	const T *weight, *bias;
	X *out;
	T *mean, *rstd;
	T eps;
};

/* Pack i of a vector along the row. */
template <class T, int PACK>
static __device__ inline pack<T, PACK> pack_at(const T *v, unsigned i, T otherwise)
{
	pack<T, PACK> r;

#pragma unroll
	for (int j = 0; j < PACK; j++)
		r.v[j] = otherwise;
	return v ? ((const pack<T, PACK> *)v)[i] : r;
}

template <class X, int PACK, int PACKS>
__global__ void __launch_bounds__(ROW_THREADS) layer_norm_row_kernel(layer_args<X> l)
{
	typedef typename number<X>::compute T;
	const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
	const unsigned end = row < l.rows ? l.packs : 0;
	row_part<X, PACK, PACKS> x;
	T sum = 0, squares = 0;

	x.load(l.x + row * l.n, end, 0);
#pragma unroll
	for (int i = 0; i < PACK * PACKS; i++)
		sum += x.v[i / PACK][i % PACK];
	const T mean = join_row<plus, 0>(sum) / (T)l.n;
#pragma unroll
	for (int k = 0; k < PACKS; k++)
#pragma unroll
		for (int j = 0; j < PACK; j++) {
			x.v[k][j] -= mean;
			if (threadIdx.x + k * blockDim.x < end)
				squares += x.v[k][j] * x.v[k][j];
		}
	const T rstd = inverse_root(join_row<plus, 1>(squares) / (T)l.n + l.eps);

#pragma unroll
	for (int k = 0; k < PACKS; k++) {
		const unsigned i = threadIdx.x + k * blockDim.x;

		if (i >= end)
			continue;
		const pack<T, PACK> w = pack_at<T, PACK>(l.weight, i, 1),
				    b = pack_at<T, PACK>(l.bias, i, 0);

#pragma unroll
		for (int j = 0; j < PACK; j++)
			x.v[k][j] = x.v[k][j] * rstd * w.v[j] + b.v[j];
	}
	x.store(l.out + row * l.n, end);
	if (end && threadIdx.x == 0) {
		l.mean[row] = mean;
		l.rstd[row] = rstd;
	}
}

/* dx = rstd (g - mean(g) - x^ mean(g x^)), where g is grad * weight and x^ = (x - mean) rstd. */
template <class X, int PACK, int PACKS>
__global__ void __launch_bounds__(ROW_THREADS) layer_norm_dx_row_kernel(layer_args<X> l)
{
	typedef typename number<X>::compute T;
	const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
	const unsigned end = row < l.rows ? l.packs : 0;
	const T mean = end ? l.mean[row] : 0, rstd = end ? l.rstd[row] : 0;
	row_part<X, PACK, PACKS> g, x;
	T sum = 0, product = 0;

	g.load(l.grad + row * l.n, end, 0);
	x.load(l.x + row * l.n, end, mean);
#pragma unroll
	for (int k = 0; k < PACKS; k++) {
		const unsigned i = threadIdx.x + k * blockDim.x;
		const pack<T, PACK> w = pack_at<T, PACK>(i < end ? l.weight : nullptr, i, 1);

#pragma unroll
		for (int j = 0; j < PACK; j++) {
			g.v[k][j] *= w.v[j];
			x.v[k][j] -= mean;
			sum += g.v[k][j];
			product += g.v[k][j] * x.v[k][j];
		}
	}
	const T a = join_row<plus, 0>(sum) / (T)l.n;
	const T b = join_row<plus, 1>(product) / (T)l.n * rstd * rstd;

#pragma unroll
	for (int i = 0; i < PACK * PACKS; i++) {
		T &v = g.v[i / PACK][i % PACK];

		v = (v - a - x.v[i / PACK][i % PACK] * b) * rstd;
	}
	g.store(l.out + row * l.n, end);
}

/* ---- rows that are too long for registers ---- */

template <class X> __global__ void layer_norm_kernel(layer_args<X> l)
{
	typedef typename number<X>::compute T;
	const int64_t at = (int64_t)blockIdx.x * l.n;
	T sum = 0, squares = 0;

	for (unsigned i = threadIdx.x; i < l.n; i += blockDim.x)
		sum += number<X>::load(l.x[at + i]);
	const T mean = join_row<plus, 0>(sum) / (T)l.n;

	for (unsigned i = threadIdx.x; i < l.n; i += blockDim.x)
		squares += (number<X>::load(l.x[at + i]) - mean) *
			   (number<X>::load(l.x[at + i]) - mean);
	const T rstd = inverse_root(join_row<plus, 1>(squares) / (T)l.n + l.eps);

	for (unsigned i = threadIdx.x; i < l.n; i += blockDim.x)
		l.out[at + i] = number<X>::store((number<X>::load(l.x[at + i]) - mean) * rstd *
							 (l.weight ? l.weight[i] : 1) +
						 (l.bias ? l.bias[i] : 0));
	if (threadIdx.x == 0) {
		l.mean[blockIdx.x] = mean;
		l.rstd[blockIdx.x] = rstd;
	}
}

template <class X> __global__ void layer_norm_dx_kernel(layer_args<X> l)
{
	typedef typename number<X>::compute T;
	const int64_t at = (int64_t)blockIdx.x * l.n;
	const T mean = l.mean[blockIdx.x], rstd = l.rstd[blockIdx.x];
	T sum = 0, product = 0;

	for (unsigned i = threadIdx.x; i < l.n; i += blockDim.x) {
		T g = number<X>::load(l.grad[at + i]) * (l.weight ? l.weight[i] : 1);

		sum += g;
		product += g * (number<X>::load(l.x[at + i]) - mean);
	}
	const T a = join_row<plus, 0>(sum) / (T)l.n;
	const T b = join_row<plus, 1>(product) / (T)l.n * rstd * rstd;

	for (unsigned i = threadIdx.x; i < l.n; i += blockDim.x) {
		T g = number<X>::load(l.grad[at + i]) * (l.weight ? l.weight[i] : 1);

		l.out[at + i] = number<X>::store(
			(g - a - (number<X>::load(l.x[at + i]) - mean) * b) * rstd);
	}
}

/* ---- sums over rows ---- */

/* Chunk blockIdx.y of the rows, for a column of each thread of a row of the block. */
template <class X>
__global__ void layer_norm_chunk_kernel(layer_args<X> l, int64_t chunk,
					typename layer_args<X>::T *partial)
{
	typedef typename number<X>::compute T;
	__shared__ T s[2][BLOCK / WARP][WARP];
	const unsigned column = blockIdx.x * WARP + threadIdx.x;
	const int64_t from = (int64_t)blockIdx.y * chunk;
	const int64_t to = from + chunk < l.rows ? from + chunk : l.rows;
	T weight = 0, bias = 0;

	if (column < l.n)
#pragma unroll 4
		for (int64_t r = from + threadIdx.y; r < to; r += blockDim.y) {
			T g = number<X>::load(l.grad[r * l.n + column]);

			weight += g * ((number<X>::load(l.x[r * l.n + column]) - l.mean[r]) *
				       l.rstd[r]);
			bias += g;
		}
	s[0][threadIdx.y][threadIdx.x] = weight;
	s[1][threadIdx.y][threadIdx.x] = bias;
	__syncthreads();
	if (threadIdx.y > 1 || column >= l.n)
		return;
	T sum = 0;

	for (unsigned k = 0; k < blockDim.y; k++)
		sum += s[threadIdx.y][k][threadIdx.x];
	partial[((int64_t)threadIdx.y * gridDim.y + blockIdx.y) * l.n + column] = sum;
}

template <class T>
__global__ void layer_norm_chunks_kernel(unsigned n, int chunks, T *dweight, T *dbias,
					 const T *partial)
{
	const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
	T *out = blockIdx.y ? dbias : dweight;
	T sum = 0;

	if (column >= n || !out)
		return;
	for (int k = 0; k < chunks; k++)
		sum += partial[((int64_t)blockIdx.y * chunks + k) * n + column];
	out[column] = sum;
}

/* ---- launches ---- */

template <class X> static layer_args<X> args_of(const cuda_layer *l, int pack)
{
	typedef typename number<X>::compute T;

	return { l->rows,
		 (unsigned)(l->n / pack),
		 (unsigned)l->n,
		 (const X *)l->x,
		 (const X *)l->grad,
		 (const T *)l->weight,
		 (const T *)l->bias,
		 (X *)l->out,
		 (T *)l->mean,
		 (T *)l->rstd,
		 (T)l->eps };
}

template <class X> static int looped(const cuda_layer *l, bool dx, cudaStream_t stream)
{
	return launch(dx ? layer_norm_dx_kernel<X> : layer_norm_kernel<X>, (unsigned)l->rows,
		      ROW_THREADS, stream, args_of<X>(l, 1));
}

template <class X, int PACK> static int by_length(const cuda_layer *l, bool dx, cudaStream_t stream)
{
	enum { FEW = PACK > 1 ? 1 : 2, MANY = PACK > 1 && sizeof(X) < 8 ? 16 / PACK : 8 / PACK };
	row_shape s;

	if (!row_shape_of(&s, l->n / PACK, FEW, MANY))
		return looped<X>(l, dx, stream);
	const dim3 block = row_block(s.lanes), grid = row_grid(l->rows, block);

	if (s.small)
		return launch(dx ? layer_norm_dx_row_kernel<X, PACK, FEW> :
				   layer_norm_row_kernel<X, PACK, FEW>,
			      grid, block, stream, args_of<X>(l, PACK));
	return launch(dx ? layer_norm_dx_row_kernel<X, PACK, MANY> :
			   layer_norm_row_kernel<X, PACK, MANY>,
		      grid, block, stream, args_of<X>(l, PACK));
}

template <class X> static int layer_norm(const cuda_layer *l, bool dx, cudaStream_t stream)
{
	enum { PACK = 16 / sizeof(X), WIDE = PACK * sizeof(typename number<X>::compute) };
	const uintptr_t odd = (uintptr_t)l->x | (uintptr_t)l->grad | (uintptr_t)l->out |
			      (uintptr_t)(l->n * (int64_t)sizeof(X));
	const uintptr_t odd_wide = (uintptr_t)l->weight | (uintptr_t)l->bias;

	return odd % 16 || odd_wide % WIDE ? by_length<X, 1>(l, dx, stream) :
					     by_length<X, PACK>(l, dx, stream);
}

int cuda_launch_layer_norm(const cuda_layer *l, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return layer_norm<T>(l, false, stream);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_layer_norm_dx(const cuda_layer *l, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return layer_norm<T>(l, true, stream);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

template <class X>
static int dweight_of(const cuda_layer *l, void *dweight, void *dbias, void *partial, int chunks,
		      cudaStream_t stream)
{
	typedef typename number<X>::compute T;
	const unsigned columns = (unsigned)((l->n + WARP - 1) / WARP);
	int err = launch(layer_norm_chunk_kernel<X>, dim3(columns, (unsigned)chunks),
			 dim3(WARP, BLOCK / WARP), stream, args_of<X>(l, 1),
			 (l->rows + chunks - 1) / chunks, (T *)partial);

	return err ? err :
		     launch(layer_norm_chunks_kernel<T>,
			    dim3((unsigned)((l->n + BLOCK - 1) / BLOCK), 2), BLOCK, stream,
			    (unsigned)l->n, chunks, (T *)dweight, (T *)dbias, (const T *)partial);
}

int cuda_launch_layer_norm_dweight(const cuda_layer *l, void *dweight, void *dbias, void *partial,
				   int chunks, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return dweight_of<T>(l, dweight, dbias, partial, chunks, stream);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
