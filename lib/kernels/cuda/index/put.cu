// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Combines rows of a source with rows of the output that an index selects. The positions are sorted
 * by output row (put_sort.cu); the threads of the first position of each row combine all of them in
 * order, so that the result has the same bits every time, and those of the CPU. There are no
 * atomics.
 */
#include "kernels/cuda/pointwise/complex.cuh"
#include "kernels/cuda/index/index.cuh"

/* ---- operations: y is the output, x the source, in the type C that T is computed in ---- */

template <class C> struct put_add {
	typedef typename arith<C>::type A;

	static __device__ inline C join(C y, C x, C alpha)
	{
		return (C)((A)y + (A)alpha * (A)x);
	}
};

template <class C> struct put_mul {
	typedef typename arith<C>::type A;

	static __device__ inline C join(C y, C x, C)
	{
		return (C)((A)y * (A)x);
	}
};

/* NaN if an element is. */
template <class C> struct put_max {
	static __device__ inline C join(C y, C x, C)
	{
		return x != x || x > y ? x : y;
	}
};

template <class C> struct put_min {
	static __device__ inline C join(C y, C x, C)
	{
		return x != x || x < y ? x : y;
	}
};

template <class C> struct put_set {
	static __device__ inline C join(C, C x, C)
	{
		return x;
	}
};

/* Bool: alpha is 0 or 1. */
template <class C> struct put_or {
	static __device__ inline C join(C y, C x, C alpha)
	{
		return y | (alpha & x);
	}
};

template <class C> struct put_and {
	static __device__ inline C join(C y, C x, C)
	{
		return y & x;
	}
};

/* ---- the kernel ---- */

struct put_order {
	const void *key;
	const uint32_t *position;
	int64_t n, skip;
	bool wide_keys, fresh, by_frequency;

	__device__ inline uint64_t at(int64_t i) const
	{
		return wide_keys ? ((const uint64_t *)key)[i] : ((const uint32_t *)key)[i];
	}

	/* Whether this is the first position of a row. */
	__device__ inline bool is_first(int64_t i, uint64_t row) const
	{
		return i < n && (int64_t)row != skip && (!i || at(i - 1) != row);
	}

	__device__ inline int64_t count(int64_t i, uint64_t row) const
	{
		int64_t from = i;

		while (i < n && at(i) == row)
			i++;
		return i - from;
	}
};

template <class T> static __device__ inline T inverse(int64_t, T one)
{
	return one;
}

template <> __device__ inline float inverse(int64_t n, float one)
{
	return one / (float)n;
}

template <> __device__ inline double inverse(int64_t n, double one)
{
	return one / (double)n;
}

/* Offsets of a pack in a row of the output and of the source. */
struct put_column {
	int64_t out, source;
	bool valid; /* it is not past the end of the row */
};

/*
 * Combines the positions of a row from i on. The loads of POSITIONS of them come before the first
 * use.
 */
template <class Op, class T, class S, int PACK, int PACKS>
static __device__ inline void
put_row(const seeker<2> &place, const put_order &o, int64_t i, uint64_t row, T *out,
	const S *source, const put_column (&column)[PACKS], typename number<T>::compute alpha)
{
	typedef typename number<T>::compute C;
	enum { POSITIONS = 4 / PACKS };
	pack<T, PACK> y[PACKS] = {};
	bool more = true;

#pragma unroll
	for (int p = 0; p < PACKS; p++)
		if (!o.fresh && column[p].valid)
			y[p] = *(const pack<T, PACK> *)(out + column[p].out);
	for (; more; i += POSITIONS) {
		pack<S, PACK> x[POSITIONS][PACKS];
		bool same[POSITIONS];

#pragma unroll
		for (int k = 0; k < POSITIONS; k++) {
			int64_t off[2] = {};

			same[k] = i + k < o.n && o.at(i + k) == row;
			if (same[k])
				place.seek(o.position[i + k], off);
#pragma unroll
			for (int p = 0; p < PACKS; p++)
				if (same[k] && column[p].valid)
					x[k][p] = *(const pack<S, PACK> *)(source + off[1] +
									   column[p].source);
		}
#pragma unroll
		for (int k = 0; k < POSITIONS; k++)
#pragma unroll
			for (int j = 0; j < PACK * PACKS; j++) {
				T &v = y[j / PACK].v[j % PACK];

				if (same[k])
					v = number<T>::store(Op::join(
						number<T>::load(v),
						(C)number<S>::load(x[k][j / PACK].v[j % PACK]),
						alpha));
			}
		more = same[POSITIONS - 1];
	}
#pragma unroll
	for (int p = 0; p < PACKS; p++)
		if (column[p].valid)
			*(pack<T, PACK> *)(out + column[p].out) = y[p];
}

/* `columns` counts packs. */
template <class Op, class T, class S, int PACK, int PACKS>
__global__ void put_kernel(seeker<1> keys, seeker<2> place, seeker<2> columns, put_order o, T *out,
			   const S *source, typename number<T>::compute alpha,
			   const unsigned long long *bad)
{
	typedef typename number<T>::compute C;
	const int64_t first = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
	const uint64_t row = first < o.n ? o.at(first) : 0;
	int64_t to[1] = {};

	if (!o.is_first(first, row) || *bad != ~0ull)
		return;
	keys.seek(row, to);
	if (o.by_frequency)
		alpha = inverse<C>(o.count(first, row), alpha);
	for (uint64_t c = (uint64_t)blockIdx.y * blockDim.x * PACKS + threadIdx.x;
	     c < columns.numel; c += (uint64_t)gridDim.y * blockDim.x * PACKS) {
		put_column column[PACKS];

#pragma unroll
		for (int p = 0; p < PACKS; p++) {
			const uint64_t at = c + (uint64_t)p * blockDim.x;
			int64_t off[2] = {};

			columns.seek(at, off);
			column[p] = { off[0], off[1], at < columns.numel };
		}
		put_row<Op, T, S, PACK, PACKS>(place, o, first, row, out + to[0], source, column,
					       alpha);
	}
}

/* ---- launches ---- */

template <class T> struct alpha_of {
	static T from(const tensor_scalar &s)
	{
		return scalar_as<T>(s);
	}
};

template <class T> struct alpha_of<complex_of<T>> {
	static complex_of<T> from(const tensor_scalar &s)
	{
		return { scalar_as<T>(s), 0 };
	}
};

/* Whether rows can be combined by packs of `pack` elements of S to elements of T. */
template <class T, class S> static bool packable(const cuda_put *p, int64_t pack)
{
	const cuda_dims *c = &p->columns;
	bool fits = c->ndim && c->stride[0][0] == 1 && c->stride[1][0] == 1 && !(c->size[0] % pack);

	fits &= !((uintptr_t)p->data[0] % (pack * sizeof(T))) &&
		!((uintptr_t)p->data[1] % (pack * sizeof(S)));
	for (int k = 1; k < c->ndim; k++)
		fits &= !(c->stride[0][k] % pack) && !(c->stride[1][k] % pack);
	for (int k = 0; k < p->keys.ndim; k++)
		fits &= !(p->keys.stride[0][k] % pack);
	for (int k = 0; k < p->place.ndim; k++)
		fits &= !(p->place.stride[1][k] % pack);
	return fits;
}

template <class Op, class T, class S, int PACK, int PACKS>
static int put_packs(const cuda_put *p, cudaStream_t stream)
{
	const put_order o = { p->sorted,    p->order, p->place.numel, p->skip,
			      p->wide_keys, p->fresh, p->by_frequency };
	cuda_dims columns = p->columns;
	unsigned lanes = 1;

	if (PACK > 1) {
		columns.numel /= PACK;
		columns.size[0] /= PACK;
		columns.stride[0][0] = columns.stride[1][0] = PACK;
	}
	while (lanes < 32 && (int64_t)lanes * PACKS < columns.numel)
		lanes *= 2;
	const unsigned height = BLOCK / lanes;
	const int64_t pieces = (columns.numel + lanes * PACKS - 1) / (lanes * PACKS);
	const dim3 grid((unsigned)((o.n + height - 1) / height),
			(unsigned)(pieces < 1	  ? 1 :
				   pieces < 32768 ? pieces :
						    32768));

	return launch(put_kernel<Op, T, S, PACK, PACKS>, grid, dim3(lanes, height), stream,
		      seeker<1>(p->keys), seeker<2>(p->place), seeker<2>(columns), o,
		      (T *)p->data[0], (const S *)p->data[1],
		      alpha_of<typename number<T>::compute>::from(p->alpha),
		      (const unsigned long long *)p->bad.flag);
}

template <class Op, class T, class S> static int put_wide(const cuda_put *p, cudaStream_t stream)
{
	enum { PACK = sizeof(T) > 8 ? 1 : 16 / sizeof(T) };

	if (PACK == 1 || !packable<T, S>(p, PACK))
		return put_packs<Op, T, S, 1, 1>(p, stream);
	if (p->columns.numel < 32 * 2 * PACK)
		return put_packs<Op, T, S, PACK, 1>(p, stream);
	return put_packs<Op, T, S, PACK, 2>(p, stream);
}

static int set(const cuda_put *p, int itemsize, cudaStream_t stream)
{
	switch (itemsize) {
	case 1:
		return put_wide<put_set<uint8_t>, uint8_t, uint8_t>(p, stream);
	case 2:
		return put_wide<put_set<uint16_t>, uint16_t, uint16_t>(p, stream);
	case 4:
		return put_wide<put_set<uint32_t>, uint32_t, uint32_t>(p, stream);
	case 8:
		return put_wide<put_set<uint64_t>, uint64_t, uint64_t>(p, stream);
	case 16: {
		typedef complex_of<double> C;

		return put_wide<put_set<C>, C, C>(p, stream);
	}
	default:
		return CUDA_NO_DTYPE;
	}
}

template <template <class> class Op, class T>
static int put_each(const cuda_put *p, cudaStream_t stream)
{
	return put_packs<Op<typename number<T>::compute>, T, T, 1, 1>(p, stream);
}

template <template <class> class Op, template <class> class OpBool>
static int other(const cuda_put *p, int dtype, cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_BOOL:
		return put_each<OpBool, uint8_t>(p, stream);
#define X(D, T) \
	case D: \
		return put_each<Op, T>(p, stream);
		FOR_NUMBERS(X)
		FOR_REDUCED_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

static int multiply(const cuda_put *p, int dtype, cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_C64:
		return put_each<put_mul, complex_of<float>>(p, stream);
	case TENSOR_C128:
		return put_each<put_mul, complex_of<double>>(p, stream);
	default:
		return other<put_mul, put_and>(p, dtype, stream);
	}
}

/* Sums of another dtype than the output's are those of embedding_backward. */
static int add_reduced(const cuda_put *p, int to, int from, cudaStream_t stream)
{
	if (to != TENSOR_F32)
		return CUDA_NO_DTYPE;
	switch (from) {
#define X(D, S) \
	case D: \
		return put_wide<put_add<float>, float, S>(p, stream);
		FOR_REDUCED_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

static int add(const cuda_put *p, int to, int from, cudaStream_t stream)
{
	if (to != from)
		return add_reduced(p, to, from, stream);
	switch (to) {
	case TENSOR_BOOL:
		return put_each<put_or, uint8_t>(p, stream);
	case TENSOR_C64:
		return put_each<put_add, complex_of<float>>(p, stream);
	case TENSOR_C128:
		return put_each<put_add, complex_of<double>>(p, stream);
#define X(D, T) \
	case D: \
		return put_each<put_add, T>(p, stream);
		FOR_INTS(X)
#undef X
#define X(D, T) \
	case D: \
		return put_wide<put_add<number<T>::compute>, T, T>(p, stream);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_put(const cuda_put *p, int to, int from, int itemsize, cudaStream_t stream)
{
	switch (p->mode) {
	case CUDA_PUT_SET:
		return set(p, itemsize, stream);
	case CUDA_PUT_ADD:
		return add(p, to, from, stream);
	case CUDA_PUT_MUL:
		return multiply(p, to, stream);
	case CUDA_PUT_MAX:
		return other<put_max, put_or>(p, to, stream);
	case CUDA_PUT_MIN:
		return other<put_min, put_and>(p, to, stream);
	}
	return cudaErrorInvalidValue;
}
