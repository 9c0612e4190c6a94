// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * batch_norm and group_norm: sums of each channel, factors of each channel, and a pass over the
 * elements. A block has 1 channel times 256 positions, or 32 times 8 if the channels of a position
 * are adjacent (inner 1). A channel that is one of few is summed by several blocks, whose number
 * depends on the shape alone; sums are in f64.
 */
#include "kernels/cuda/launch_nn.h"
#include "kernels/cuda/reduce/reducers.cuh"

enum { ACROSS = 32, ROWS = BLOCK / ACROSS };

/* Sums of grad and of grad (x - mean). */
struct channel_sums {
	double grad, centred;

	friend __device__ inline channel_sums operator+(channel_sums a, channel_sums b)
	{
		return { a.grad + b.grad, a.centred + b.centred };
	}
};

/* Combines the values of the threads of a column of the block. */
template <class Op, class A> static __device__ inline A join_column(const Op &op, A value)
{
	__shared__ A s[BLOCK];
	const unsigned at = threadIdx.y * blockDim.x + threadIdx.x;

	s[at] = value;
	__syncthreads();
	for (unsigned half = blockDim.y / 2; half; half /= 2) {
		if (threadIdx.y < half)
			s[at] = op.join(s[at], s[at + half * blockDim.x]);
		__syncthreads();
	}
	return s[threadIdx.x];
}

/* The position of element i of a channel, and the positions of this thread. */
template <class P> struct channel_walk {
	P inner, step, begin, end;
	int64_t channel, jump;

	__device__ explicit channel_walk(const cuda_channels &c)
	    : inner((P)c.inner), step(blockDim.y),
	      channel((int64_t)blockIdx.x * blockDim.x + threadIdx.x), jump(c.channels * c.inner)
	{
		const P n = (P)(c.batch * c.inner), chunk = (n + gridDim.y - 1) / gridDim.y;
		const P first = (P)blockIdx.y * chunk;

		begin = first + threadIdx.y;
		end = first + chunk < n ? first + chunk : n;
		if (channel >= c.channels)
			end = 0;
	}
	__device__ int64_t at(P i) const
	{
		const P image = i / inner;

		return (int64_t)image * jump + channel * (int64_t)inner +
		       (int64_t)(i - image * inner);
	}
};

template <class X, class P> __global__ void channel_stats_kernel(cuda_channels c, moments *partial)
{
	typedef typename number<X>::compute T;
	const channel_walk<P> w(c);
	const variance_of<X, false> op = {};
	const X *x = (const X *)c.x;
	moments acc = op.start();
	P i = w.begin;

	for (; w.end > 3 * w.step && i < w.end - 3 * w.step; i += 4 * w.step) {
		T v[4];

#pragma unroll
		for (int k = 0; k < 4; k++)
			v[k] = number<X>::load(x[w.at(i + (P)k * w.step)]);
		op.add_four(acc, v);
	}
	for (; i < w.end; i += w.step)
		op.add(acc, number<X>::load(x[w.at(i)]), 0);
	acc = join_column(op, acc);
	if (threadIdx.y == 0 && w.channel < c.channels)
		partial[(int64_t)blockIdx.y * c.channels + w.channel] = acc;
}

template <class T>
__global__ void channel_stats_end_kernel(int64_t channels, const moments *partial, int split,
					 T *mean, T *var, bool rstd, double eps)
{
	const variance_of<T, false> op = {};

	for (int64_t k = first_element<int64_t>(); k < channels; k += element_step<int64_t>()) {
		moments m = partial[k];

		for (int i = 1; i < split; i++)
			m = op.join(m, partial[i * channels + k]);
		const double v = m.m2 / m.n; /* NaN without elements */

		mean[k] = (T)(m.n > 0 ? m.mean : v);
		var[k] = (T)(rstd ? 1 / sqrt(v + eps) : v);
	}
}

template <class X, class P>
__global__ void channel_sums_kernel(cuda_channels c, channel_sums *partial)
{
	typedef typename number<X>::compute T;
	const channel_walk<P> w(c);
	const X *x = (const X *)c.x, *grad = (const X *)c.grad;
	const T mean = w.channel < c.channels ? ((const T *)c.mean)[w.channel / c.group] : (T)0;
	channel_sums acc = { 0, 0 };

#pragma unroll 4
	for (P i = w.begin; i < w.end; i += w.step) {
		const int64_t at = w.at(i);
		const T g = number<X>::load(grad[at]);

		acc.grad += (double)g;
		acc.centred += (double)g * (double)(number<X>::load(x[at]) - mean);
	}
	struct {
		__device__ channel_sums join(channel_sums a, channel_sums b) const
		{
			return a + b;
		}
	} op;

	acc = join_column(op, acc);
	if (threadIdx.y == 0 && w.channel < c.channels)
		partial[(int64_t)blockIdx.y * c.channels + w.channel] = acc;
}

/* Adds the pieces of channel k. */
static __device__ inline channel_sums all_pieces(const channel_sums *partial, int64_t channels,
						 int split, int64_t k)
{
	channel_sums s = partial[k];

	for (int i = 1; i < split; i++)
		s = s + partial[i * channels + k];
	return s;
}

/* ---- factors of each channel ---- */

template <class T> struct channel_factors {
	T weight, mean, plus, centred, scale;
};

/* The weight of channel k, or `otherwise`. */
template <class T>
static __device__ inline T of_channel(const cuda_channel_factors &f, const void *v, int64_t k,
				      int64_t group, T otherwise)
{
	return v ? ((const T *)v)[k % (f.groups * group)] : otherwise;
}

template <class T>
__global__ void affine_factors_kernel(cuda_channels c, cuda_channel_factors f,
				      channel_factors<T> *out)
{
	for (int64_t k = first_element<int64_t>(); k < c.channels; k += element_step<int64_t>()) {
		const int64_t row = k / c.group;

		out[k] = { (T)1, ((const T *)f.mean)[row], of_channel<T>(f, f.bias, k, c.group, 0),
			   (T)0,
			   ((const T *)f.rstd)[row] * of_channel<T>(f, f.weight, k, c.group, 1) };
	}
}

template <class T>
__global__ void batch_factors_kernel(cuda_channels c, cuda_channel_factors f,
				     const channel_sums *partial, int split,
				     channel_factors<T> *out)
{
	const T n = (T)(c.batch * c.inner);

	for (int64_t k = first_element<int64_t>(); k < c.channels; k += element_step<int64_t>()) {
		const T rstd = ((const T *)f.rstd)[k];
		T grad = 0, product = 0;

		if (partial) {
			const channel_sums s = all_pieces(partial, c.channels, split, k);

			grad = (T)s.grad;
			product = (T)(s.centred * (double)rstd);
		}
		if (f.dweight)
			((T *)f.dweight)[k] = product;
		if (f.dbias)
			((T *)f.dbias)[k] = grad;
		if (out)
			out[k] = { (T)1, ((const T *)f.mean)[k], grad / n, product / n * rstd,
				   rstd * of_channel<T>(f, f.weight, k, 1, 1) };
	}
}

/* Means of grad weight and of grad weight x^ of each group. */
template <class T>
__global__ void group_rows_kernel(cuda_channels c, cuda_channel_factors f,
				  const channel_sums *partial, int split)
{
	const int64_t rows = c.channels / c.group;
	double *sums = (double *)f.row_sums;

	for (int64_t r = first_element<int64_t>(); r < rows; r += element_step<int64_t>()) {
		const double n = (double)(c.group * c.inner), rstd = (double)((const T *)f.rstd)[r];
		double plain = 0, centred = 0;

		for (int64_t j = 0; j < c.group; j++) {
			const int64_t k = r * c.group + j;
			const channel_sums s = all_pieces(partial, c.channels, split, k);
			const double w = (double)of_channel<T>(f, f.weight, k, c.group, 1);

			plain += s.grad * w;
			centred += s.centred * rstd * w;
		}
		sums[2 * r] = plain / n;
		sums[2 * r + 1] = centred / n;
	}
}

template <class T>
__global__ void group_factors_kernel(cuda_channels c, cuda_channel_factors f,
				     channel_factors<T> *out)
{
	const double *sums = (const double *)f.row_sums;

	for (int64_t k = first_element<int64_t>(); k < c.channels; k += element_step<int64_t>()) {
		const int64_t r = k / c.group;
		const T rstd = ((const T *)f.rstd)[r];

		out[k] = { of_channel<T>(f, f.weight, k, c.group, 1), ((const T *)f.mean)[r],
			   (T)sums[2 * r], (T)sums[2 * r + 1] * rstd, rstd };
	}
}

/* Sums over the batch, in order. */
template <class T>
__global__ void group_weight_kernel(cuda_channels c, cuda_channel_factors f,
				    const channel_sums *partial, int split)
{
	const int64_t n = f.groups * c.group;

	for (int64_t w = first_element<int64_t>(); w < n; w += element_step<int64_t>()) {
		double weight = 0, bias = 0;

		for (int64_t k = w; k < c.channels; k += n) {
			const channel_sums s = all_pieces(partial, c.channels, split, k);

			bias += (double)(T)s.grad;
			weight += (double)(T)(s.centred * (double)((const T *)f.rstd)[k / c.group]);
		}
		if (f.dweight)
			((T *)f.dweight)[w] = (T)weight;
		if (f.dbias)
			((T *)f.dbias)[w] = (T)bias;
	}
}

/* ---- passes over the elements ---- */

/* DX: the gradient, else the normalized elements. READ: whether the gradient reads x. */
template <class X, int PACK, class P, bool DX, bool READ>
__global__ void channel_pass_kernel(cuda_channels c,
				    const channel_factors<typename number<X>::compute> *f, X *out)
{
	typedef typename number<X>::compute T;
	typedef pack<X, PACK> packed;
	const P inner = (P)(c.inner / PACK), channels = (P)c.channels;
	const P n = inner * channels * (P)c.batch;

	for (P i = first_element<P>(); i < n; i += element_step<P>()) {
		const P row = i / inner;
		const channel_factors<T> k = f[row % channels];
		packed x, g, to;

		if (!DX || READ)
			x = ((const packed *)c.x)[i];
		if (DX)
			g = ((const packed *)c.grad)[i];
#pragma unroll
		for (int j = 0; j < PACK; j++) {
			T v;

			if (!DX)
				v = (number<X>::load(x.v[j]) - k.mean) * k.scale + k.plus;
			else if (READ)
				v = (number<X>::load(g.v[j]) * k.weight - k.plus -
				     (number<X>::load(x.v[j]) - k.mean) * k.centred) *
				    k.scale;
			else
				v = number<X>::load(g.v[j]) * k.scale;
			to.v[j] = number<X>::store(v);
		}
		((packed *)out)[i] = to;
	}
}

/* ---- launches ---- */

/* Calls FN<X> for elements of c->dtype. */
#define BY_DTYPE(FN, ...)                       \
	switch (c->dtype) {                     \
	case TENSOR_F32:                        \
		return FN<float>(__VA_ARGS__);  \
	case TENSOR_F64:                        \
		return FN<double>(__VA_ARGS__); \
	case TENSOR_F16:                        \
		return FN<f16>(__VA_ARGS__);    \
	case TENSOR_BF16:                       \
		return FN<bf16>(__VA_ARGS__);   \
	default:                                \
		return CUDA_NO_DTYPE;           \
	}

static unsigned channels_across(const cuda_channels *c)
{
	return c->inner == 1 ? ACROSS : 1;
}

static dim3 sums_block(const cuda_channels *c)
{
	return c->inner == 1 ? dim3(ACROSS, ROWS) : dim3(1, BLOCK);
}

static dim3 sums_grid(const cuda_channels *c, int split)
{
	const unsigned across = channels_across(c);

	return dim3((unsigned)((c->channels + across - 1) / across), (unsigned)split);
}

int cuda_channel_split(const cuda_channels *c)
{
	const int64_t across = channels_across(c), blocks = (c->channels + across - 1) / across;
	const int64_t most = c->batch * c->inner * across / (8 * BLOCK);
	const int64_t wanted = 1024 / (blocks ? blocks : 1);
	const int64_t n = wanted < most ? wanted : most;

	return (int)(n < 1 ? 1 : n);
}

template <class X>
static int stats(const cuda_channels *c, void *partial, int split, cudaStream_t stream)
{
	return launch(c->wide ? channel_stats_kernel<X, uint64_t> :
				channel_stats_kernel<X, uint32_t>,
		      sums_grid(c, split), sums_block(c), stream, *c, (moments *)partial);
}

int cuda_launch_channel_stats(const cuda_channels *c, void *partial, int split, cudaStream_t stream)
{
	static_assert(sizeof(moments) <= CUDA_CHANNEL_PARTIAL, "");
	BY_DTYPE(stats, c, partial, split, stream)
}

int cuda_launch_channel_stats_end(const cuda_channels *c, void *mean, void *var, bool rstd,
				  double eps, const void *partial, int split, cudaStream_t stream)
{
	const unsigned grid = grid_for(c->channels, BLOCK);

	if (c->dtype == TENSOR_F64)
		return launch(channel_stats_end_kernel<double>, grid, BLOCK, stream, c->channels,
			      (const moments *)partial, split, (double *)mean, (double *)var, rstd,
			      eps);
	return launch(channel_stats_end_kernel<float>, grid, BLOCK, stream, c->channels,
		      (const moments *)partial, split, (float *)mean, (float *)var, rstd, eps);
}

template <class X>
static int sums(const cuda_channels *c, void *partial, int split, cudaStream_t stream)
{
	return launch(c->wide ? channel_sums_kernel<X, uint64_t> : channel_sums_kernel<X, uint32_t>,
		      sums_grid(c, split), sums_block(c), stream, *c, (channel_sums *)partial);
}

int cuda_launch_channel_sums(const cuda_channels *c, void *partial, int split, cudaStream_t stream)
{
	BY_DTYPE(sums, c, partial, split, stream)
}

template <class X, int PACK, bool DX, bool READ>
static int pass_of(const cuda_channels *c, const void *factors, void *out, cudaStream_t stream)
{
	typedef channel_factors<typename number<X>::compute> factor;
	const int64_t n = c->batch * c->channels * (c->inner / PACK);

	return launch(c->wide ? channel_pass_kernel<X, PACK, uint64_t, DX, READ> :
				channel_pass_kernel<X, PACK, uint32_t, DX, READ>,
		      grid_for(n, BLOCK), BLOCK, stream, *c, (const factor *)factors, (X *)out);
}

/* Packs of 16 bytes if rows and operands allow. */
template <class X, bool DX, bool READ>
static int pass(const cuda_channels *c, const void *factors, void *out, cudaStream_t stream)
{
	enum { PACK = 16 / sizeof(X) };
	const uintptr_t all = (uintptr_t)c->x | (uintptr_t)c->grad | (uintptr_t)out;

	if (c->inner % PACK || all % 16)
		return pass_of<X, 1, DX, READ>(c, factors, out, stream);
	return pass_of<X, PACK, DX, READ>(c, factors, out, stream);
}

template <class X>
static int affine(const cuda_channels *c, const cuda_channel_factors *f, void *factors, void *out,
		  cudaStream_t stream)
{
	typedef typename number<X>::compute T;
	const int err = launch(affine_factors_kernel<T>, grid_for(c->channels, BLOCK), BLOCK,
			       stream, *c, *f, (channel_factors<T> *)factors);

	return err ? err : pass<X, false, true>(c, factors, out, stream);
}

int cuda_launch_channel_affine(const cuda_channels *c, const cuda_channel_factors *f, void *factors,
			       void *out, cudaStream_t stream)
{
	BY_DTYPE(affine, c, f, factors, out, stream)
}

template <class X>
static int dx_of(const cuda_channels *c, const void *factors, bool read_x, void *dx,
		 cudaStream_t stream)
{
	return read_x ? pass<X, true, true>(c, factors, dx, stream) :
			pass<X, true, false>(c, factors, dx, stream);
}

int cuda_launch_channel_dx(const cuda_channels *c, const void *factors, bool read_x, void *dx,
			   cudaStream_t stream)
{
	BY_DTYPE(dx_of, c, factors, read_x, dx, stream)
}

template <class T>
static int batch_end(const cuda_channels *c, const cuda_channel_factors *f, const void *partial,
		     int split, void *factors, cudaStream_t stream)
{
	return launch(batch_factors_kernel<T>, grid_for(c->channels, BLOCK), BLOCK, stream, *c, *f,
		      (const channel_sums *)partial, split, (channel_factors<T> *)factors);
}

int cuda_launch_batch_sums_end(const cuda_channels *c, const cuda_channel_factors *f,
			       const void *partial, int split, void *factors, cudaStream_t stream)
{
	return c->dtype == TENSOR_F64 ? batch_end<double>(c, f, partial, split, factors, stream) :
					batch_end<float>(c, f, partial, split, factors, stream);
}

template <class T>
static int group_end(const cuda_channels *c, const cuda_channel_factors *f, const void *partial,
		     int split, void *factors, cudaStream_t stream)
{
	const channel_sums *sums = (const channel_sums *)partial;
	int err = 0;

	if (f->dweight || f->dbias)
		err = launch(group_weight_kernel<T>, grid_for(f->groups * c->group, BLOCK), BLOCK,
			     stream, *c, *f, sums, split);
	if (!err && factors)
		err = launch(group_rows_kernel<T>, grid_for(c->channels / c->group, BLOCK), BLOCK,
			     stream, *c, *f, sums, split);
	if (!err && factors)
		err = launch(group_factors_kernel<T>, grid_for(c->channels, BLOCK), BLOCK, stream,
			     *c, *f, (channel_factors<T> *)factors);
	return err;
}

int cuda_launch_group_sums_end(const cuda_channels *c, const cuda_channel_factors *f,
			       const void *partial, int split, void *factors, cudaStream_t stream)
{
	return c->dtype == TENSOR_F64 ? group_end<double>(c, f, partial, split, factors, stream) :
					group_end<float>(c, f, partial, split, factors, stream);
}
