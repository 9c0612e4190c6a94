// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Reductions other than sums, and the positions of extremes (reducers.cuh). The geometry is that of
 * reduce.cu.
 */
#include "kernels/cuda/index/index.cuh"
#include "kernels/cuda/pointwise/complex.cuh"
#include "kernels/cuda/reduce/reducers.cuh"

template <class T> struct complex_product_of : reduction<T> {
	typedef T A;
	typedef T R;

	__device__ static A start()
	{
		return 1;
	}
	__device__ void add(A &a, T x, int64_t) const
	{
		a = a * x;
	}
	__device__ A join(A a, A b) const
	{
		return a * b;
	}
	__device__ R finish(A a, int64_t) const
	{
		return a;
	}
};

template <class T> struct complex_mean_of : reduction<T> {
	typedef complex_of<double> A;
	typedef T R;

	__device__ static A start()
	{
		return 0;
	}
	__device__ void add(A &a, T x, int64_t) const
	{
		a = a + (A)x;
	}
	__device__ A join(A a, A b) const
	{
		return a + b;
	}
	__device__ R finish(A a, int64_t n) const
	{
		return (R)(a / (double)n);
	}
};

/* ---- kernels ---- */

/* Adjacent elements of 16 bytes. A piece of a row begins at a multiple of GROUP_MAX. */
template <class T> struct group {
	enum { N = 16 / sizeof(T) };
};
enum { GROUP_MAX = 16 };

template <class T, bool ALIGNED> static __device__ inline void load_group(T *to, const T *from)
{
	enum { N = group<T>::N };

	if (ALIGNED) {
		const pack<T, N> p = *(const pack<T, N> *)from;

#pragma unroll
		for (int k = 0; k < N; k++)
			to[k] = p.v[k];
	} else {
#pragma unroll
		for (int k = 0; k < N; k++)
			to[k] = from[k];
	}
}

/*
 * Adds this thread's groups of a contiguous row from `from` to `to`, two of which are loaded before the first is added. The
 * order does not depend on the alignment.
 */
template <class Op, bool ALIGNED>
static __device__ inline void add_groups(const Op &op, typename Op::A &acc,
					 const typename Op::In *in, int64_t from, int64_t to)
{
	typedef typename Op::In T;
	enum { N = group<T>::N };
	const int64_t step = (int64_t)blockDim.x * N;
	int64_t i = from + (int64_t)threadIdx.x * N;

	for (; i + step + N <= to; i += 2 * step) {
		T x[2 * N];
		typename Op::C v[2 * N];

		load_group<T, ALIGNED>(x, in + i);
		load_group<T, ALIGNED>(x + N, in + i + step);
#pragma unroll
		for (int k = 0; k < 2 * N; k++)
			v[k] = number<T>::load(x[k]);
		if constexpr (Op::FOUR)
#pragma unroll
			for (int k = 0; k < 2 * N; k += 4)
				op.add_four(acc, v + k);
		else
#pragma unroll
			for (int k = 0; k < 2 * N; k++)
				op.add(acc, v[k], i + (k < N ? k : step + k - N));
	}
	for (; i < to; i += step)
		for (int k = 0; k < N && i + k < to; k++)
			op.add(acc, number<T>::load(in[i + k]), i + k);
}

/* Adds elements i, i + step, ... of a row; four loads come before the first use if they are evenly
 * spaced. */
template <class Op>
static __device__ inline void add_elements(const Op &op, typename Op::A &acc,
					   const seeker<3> &reduced, const typename Op::In *in,
					   int64_t i, int64_t to, int64_t step)
{
	typedef typename Op::In T;

	if (reduced.ndim <= 1)
		for (; i + 3 * step < to; i += 4 * step) {
			T x[4];
			typename Op::C v[4];

#pragma unroll
			for (int k = 0; k < 4; k++)
				x[k] = in[(i + k * step) * reduced.stride[1][0]];
#pragma unroll
			for (int k = 0; k < 4; k++)
				v[k] = number<T>::load(x[k]);
			if constexpr (Op::FOUR)
				op.add_four(acc, v);
			else
#pragma unroll
				for (int k = 0; k < 4; k++)
					op.add(acc, v[k], i + k * step);
		}
	for (; i < to; i += step) {
		int64_t off[3] = {};

		reduced.seek((uint64_t)i, off);
		op.add(acc, number<T>::load(in[off[1]]), i);
	}
}

template <class Op>
static __device__ inline void add_row(const Op &op, typename Op::A &acc, const seeker<3> &reduced,
				      const typename Op::In *in, int64_t from, int64_t to)
{
	if (reduced.ndim > 1 || reduced.stride[1][0] != 1)
		add_elements(op, acc, reduced, in, from + threadIdx.x, to, blockDim.x);
	else if ((uintptr_t)in % 16 == 0)
		add_groups<Op, true>(op, acc, in, from, to);
	else
		add_groups<Op, false>(op, acc, in, from, to);
}

/* Piece blockIdx.y of each row, to partial[row * pieces + piece] unless that is NULL. */
template <class Op>
__global__ void reduce_kernel(seeker<3> kept, seeker<3> reduced, Op op, typename Op::R *out,
			      const typename Op::In *in, typename Op::A *partial, int64_t *index)
{
	const int64_t all = (int64_t)reduced.numel, even = (all + gridDim.y - 1) / gridDim.y;
	const int64_t chunk = (even + GROUP_MAX - 1) / GROUP_MAX * GROUP_MAX;
	const int64_t from = blockIdx.y * chunk, to = from + chunk < all ? from + chunk : all;

	for (uint64_t base = (uint64_t)blockIdx.x * blockDim.y; base < kept.numel;
	     base += (uint64_t)gridDim.x * blockDim.y) {
		const uint64_t row = base + threadIdx.y;
		int64_t at[3] = {};
		typename Op::A acc = op.start();

		if (row < kept.numel) {
			kept.seek(row, at);
			if constexpr (Op::SHIFTED)
				if (all)
					op.shift(acc, number<typename Op::In>::load(in[at[1]]));
			add_row(op, acc, reduced, in + at[1], from, to);
		}
		acc = join_lanes(op, acc);
		if (row >= kept.numel || threadIdx.x)
			continue;
		if (partial)
			partial[row * gridDim.y + blockIdx.y] = acc;
		else
			op.give(out, index, at, acc, all);
	}
}

/* Joins the pieces of each row. */
template <class Op>
__global__ void reduce_pieces_kernel(seeker<3> kept, int64_t all, Op op, typename Op::R *out,
				     const typename Op::A *partial, int pieces, int64_t *index)
{
	for (uint64_t base = (uint64_t)blockIdx.x * blockDim.y; base < kept.numel;
	     base += (uint64_t)gridDim.x * blockDim.y) {
		const uint64_t row = base + threadIdx.y;
		int64_t at[3] = {};
		typename Op::A acc = op.start();

		if (row < kept.numel)
			for (int i = (int)threadIdx.x; i < pieces; i += (int)blockDim.x)
				acc = op.join(acc, partial[row * pieces + i]);
		acc = join_lanes(op, acc);
		if (row >= kept.numel || threadIdx.x)
			continue;
		kept.seek(row, at);
		op.give(out, index, at, acc, all);
	}
}

/* ---- launches ---- */

template <class Op>
static int reduce(const cuda_rows *r, Op op, int split, void *partial, int64_t *index,
		  cudaStream_t stream)
{
	static_assert(sizeof(typename Op::A) <= CUDA_REDUCE_PARTIAL, "a partial result fits");
	typedef typename Op::A A;
	typedef typename Op::R R;
	const seeker<3> kept(r->kept), reduced(r->reduced);
	unsigned x = r->across ? 1 : lanes_for(r->reduced.numel / split);
	const dim3 block(x, BLOCK / x), grid(grid_for(r->kept.numel, BLOCK / x), (unsigned)split);
	int err;

	err = launch(reduce_kernel<Op>, grid, block, stream, kept, reduced, op, (R *)r->data[0],
		     (const typename Op::In *)r->data[1], split > 1 ? (A *)partial : (A *)0, index);
	if (err || split == 1)
		return err;
	x = lanes_for(split);
	return launch(reduce_pieces_kernel<Op>, grid_for(r->kept.numel, BLOCK / x),
		      dim3(x, BLOCK / x), stream, kept, r->reduced.numel, op, (R *)r->data[0],
		      (const A *)partial, split, index);
}

/* The arguments of every launch. */
struct reduce_call {
	const cuda_rows *r;
	double p;
	int split;
	void *partial;
	cudaStream_t stream;
};

template <class Op> static int one(const reduce_call &c)
{
	one_result<Op> op = {};

	op.p = c.p;
	return reduce(c.r, op, c.split, c.partial, (int64_t *)0, c.stream);
}

template <class T> static int norm(const reduce_call &c)
{
	one_result<norm_of<T>> op = {};

	op.p = c.p;
	op.greatest = c.p == INFINITY;
	op.least = c.p == -INFINITY;
	return reduce(c.r, op, c.split, c.partial, (int64_t *)0, c.stream);
}

/* Reductions of floats only. */
template <class T> static int of_floats(enum cuda_reduction which, const reduce_call &c)
{
	typedef typename number<T>::compute C;

	switch (which) {
	case CUDA_REDUCE_PROD:
		return one<product_of<T, C, T>>(c);
	case CUDA_REDUCE_VAR:
		return one<typename variance<T, false>::type>(c);
	case CUDA_REDUCE_STD:
		return one<typename variance<T, true>::type>(c);
	case CUDA_REDUCE_NORM:
		return norm<T>(c);
	case CUDA_REDUCE_LOGSUMEXP:
		return one<logsumexp_of<T>>(c);
	case CUDA_REDUCE_SUM:
		return one<sum_of<T>>(c);
	case CUDA_REDUCE_MEAN:
		return one<wide_sum_of<T, false, true>>(c);
	case CUDA_REDUCE_NANSUM:
		return one<wide_sum_of<T, true, false>>(c);
	default:
		return CUDA_NO_DTYPE;
	}
}

/* Reductions of every dtype. */
template <class T> static int of_all(enum cuda_reduction which, const reduce_call &c)
{
	switch (which) {
	case CUDA_REDUCE_MAX:
		return one<extreme_of<T, true>>(c);
	case CUDA_REDUCE_MIN:
		return one<extreme_of<T, false>>(c);
	case CUDA_REDUCE_ANY:
		return one<truth_of<T, false>>(c);
	case CUDA_REDUCE_ALL:
		return one<truth_of<T, true>>(c);
	case CUDA_REDUCE_COUNT:
		return one<count_of<T>>(c);
	default:
		return CUDA_NO_DTYPE;
	}
}

template <class T> static int of_integers(enum cuda_reduction which, const reduce_call &c)
{
	return which == CUDA_REDUCE_PROD ? one<product_of<T, int64_t, int64_t>>(c) :
					   of_all<T>(which, c);
}

template <class T> static int of_complex(enum cuda_reduction which, const reduce_call &c)
{
	return which == CUDA_REDUCE_MEAN ? one<complex_mean_of<T>>(c) :
	       which == CUDA_REDUCE_PROD ? one<complex_product_of<T>>(c) :
					   CUDA_NO_DTYPE;
}

template <class T> static int of_any_float(enum cuda_reduction which, const reduce_call &c)
{
	const int err = of_all<T>(which, c);

	return err == CUDA_NO_DTYPE ? of_floats<T>(which, c) : err;
}

int cuda_launch_reduce(enum cuda_reduction which, const cuda_rows *r, int dtype, double p,
		       int split, void *partial, cudaStream_t stream)
{
	const reduce_call c = { r, p, split, partial, stream };

	switch (dtype) {
	case TENSOR_BOOL:
		return of_integers<uint8_t>(which, c);
#define X(D, T) \
	case D: \
		return of_integers<T>(which, c);
		FOR_INTS(X)
#undef X
#define X(D, T) \
	case D: \
		return of_any_float<T>(which, c);
		FOR_ALL_FLOATS(X)
#undef X
	case TENSOR_C64:
		return of_complex<complex_of<float>>(which, c);
	case TENSOR_C128:
		return of_complex<complex_of<double>>(which, c);
	default:
		return CUDA_NO_DTYPE;
	}
}

template <class T>
static int extreme(bool greatest, const cuda_rows *r, int64_t *index, int split, void *partial,
		   cudaStream_t stream)
{
	if (greatest)
		return reduce(r, extreme_at<T, true>(), split, partial, index, stream);
	return reduce(r, extreme_at<T, false>(), split, partial, index, stream);
}

int cuda_launch_extreme(bool greatest, const cuda_rows *r, int dtype, int64_t *index, int split,
			void *partial, cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_BOOL:
		return extreme<uint8_t>(greatest, r, index, split, partial, stream);
#define X(D, T) \
	case D: \
		return extreme<T>(greatest, r, index, split, partial, stream);
		FOR_NUMBERS(X)
		FOR_REDUCED_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
