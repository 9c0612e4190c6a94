// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * cumsum, cumprod, logcumsumexp, cummax and cummin. A block scans a line tile by tile, each thread
 * some adjacent elements of a tile; several blocks first combine the pieces of a long line. If
 * lines are short or their neighbours are closer in memory than their elements, each thread scans a
 * line of its own. The order of every combination depends on the shape alone. As on the CPU, f32 is
 * computed in f64, f16 and bf16 in f32, integers in i64.
 */
#include "kernels/cuda/pointwise/formula.cuh"
#include "kernels/cuda/half.cuh"
#include "kernels/cuda/index/index.cuh"
#include "kernels/cuda/launch_scan.h"

#include <limits>

/* The formulas of logarithms of sums. */
namespace
{
#include "kernels/formula/log_complex.h"
}

enum { ITEMS = 4, TILE = BLOCK * ITEMS, SHORT = 64 };

/* The type to compute elements of type T in. */
template <class T> struct scanned {
	typedef int64_t A;
};
template <> struct scanned<float> {
	typedef double A;
};
template <> struct scanned<double> {
	typedef double A;
};
template <> struct scanned<f16> {
	typedef float A;
};
template <> struct scanned<bf16> {
	typedef float A;
};
template <class T> struct scanned<complex_of<T>> {
	typedef complex_f64 A;
};

/* Elements of bool. */
struct truth {
	uint8_t v;

	truth() = default;
	__device__ explicit truth(int64_t x) : v(x != 0)
	{
	}
	__device__ operator int64_t() const
	{
		return v != 0;
	}
};

template <class T> struct sum_scan {
	typedef T In;
	typedef typename scanned<T>::A A;

	static __device__ A none()
	{
		return A(0);
	}
	static __device__ A lift(T x, int64_t)
	{
		return (A)x;
	}
	static __device__ A join(A a, A b)
	{
		return a + b;
	}
	static __device__ void store(A a, T *out, int64_t *, int64_t)
	{
		*out = (T)a;
	}
};

template <class T> struct product_scan : sum_scan<T> {
	typedef typename sum_scan<T>::A A;

	static __device__ A none()
	{
		return A(1);
	}
	static __device__ A join(A a, A b)
	{
		return a * b;
	}
};

/* log(e^a + e^b), as scan.c of the CPU. */
static __device__ inline double log_add(double a, double b)
{
	const bool first = a > b || a != a;
	const double top = first ? a : b, low = first ? b : a;

	if (top - top != 0)
		return low != low ? low : top;
	return top + log1p(exp(low - top));
}

static __device__ inline complex_f64 log_add(complex_f64 a, complex_f64 b)
{
	return log_add_complex(a, b);
}

template <class T> struct wide_scan {
	typedef double A;
};
template <class T> struct wide_scan<complex_of<T>> {
	typedef complex_f64 A;
};

template <class T> struct log_scan {
	typedef T In;
	typedef typename wide_scan<T>::A A;

	static __device__ A none()
	{
		return A(-INFINITY);
	}
	static __device__ A lift(T x, int64_t)
	{
		return (A)x;
	}
	static __device__ A join(A a, A b)
	{
		return log_add(a, b);
	}
	static __device__ void store(A a, T *out, int64_t *, int64_t)
	{
		*out = (T)a;
	}
};
template <> __device__ inline double log_scan<f16>::lift(f16 x, int64_t)
{
	return (float)x;
}
template <> __device__ inline double log_scan<bf16>::lift(bf16 x, int64_t)
{
	return (float)x;
}
template <> __device__ inline void log_scan<f16>::store(double a, f16 *out, int64_t *, int64_t)
{
	*out = f16((float)a);
}
template <> __device__ inline void log_scan<bf16>::store(double a, bf16 *out, int64_t *, int64_t)
{
	*out = bf16((float)a);
}

/* An element and its position, -1: none. The last of equal ones; NaN is before every number. */
template <class C> struct place_of_best {
	C v;
	int64_t at;
};

template <class T, bool MAX> struct best_scan {
	typedef T In;
	typedef typename number<T>::compute C;
	typedef place_of_best<C> A;

	static __device__ A none()
	{
		return { C(0), -1 };
	}
	static __device__ A lift(T x, int64_t i)
	{
		return { number<T>::load(x), i };
	}
	static __device__ A join(A a, A b)
	{
		if (a.at < 0 || b.at < 0)
			return a.at < 0 ? b : a;
		return b.v != b.v || (MAX ? b.v >= a.v : b.v <= a.v) ? b : a;
	}
	static __device__ void store(A a, T *out, int64_t *index, int64_t place)
	{
		*out = number<T>::store(a.v);
		index[place] = a.at;
	}
};

/* ---- kernels ---- */

/* The combination of the values of the threads before this one, and that of all. */
template <class Op>
static __device__ inline typename Op::A before(typename Op::A v, typename Op::A *all)
{
	__shared__ typename Op::A s[BLOCK];
	const unsigned t = threadIdx.x;

	__syncthreads(); /* wait for the readers of the previous call */
	s[t] = v;
	__syncthreads();
	for (unsigned d = 1; d < BLOCK; d *= 2) {
		if (t >= d)
			v = Op::join(s[t - d], v);
		__syncthreads();
		s[t] = v;
		__syncthreads();
	}
	*all = s[BLOCK - 1];
	return t ? s[t - 1] : Op::none();
}

struct scan_lines {
	seeker<3> lines;
	int64_t n, step[3];
};

/*
 * Piece blockIdx.y of line blockIdx.x. TOTALS: only the combination of the piece, to `partial`;
 * otherwise `partial` has those of all pieces, or is NULL.
 */
template <class Op, bool TOTALS>
__global__ void __launch_bounds__(BLOCK)
	scan_kernel(scan_lines w, typename Op::In *out, const typename Op::In *in, int64_t *index,
		    typename Op::A *partial)
{
	typedef typename Op::A A;
	const int64_t chunk = ((w.n + gridDim.y - 1) / gridDim.y + TILE - 1) / TILE * TILE;
	const int64_t from = blockIdx.y * chunk, to = from + chunk < w.n ? from + chunk : w.n;
	int64_t at[3] = {};
	A carry = Op::none(), all;

	w.lines.seek(blockIdx.x, at);
	if (partial)
		partial += (int64_t)blockIdx.x * gridDim.y;
	if (!TOTALS && partial)
		before<Op>(threadIdx.x < blockIdx.y ? partial[threadIdx.x] : Op::none(), &carry);
	for (int64_t tile = from; tile < to; tile += TILE) {
		const int64_t first = tile + (int64_t)threadIdx.x * ITEMS;
		A v[ITEMS], sum = Op::none();

#pragma unroll
		for (int k = 0; k < ITEMS; k++)
			v[k] = first + k < to ?
				       Op::lift(in[at[1] + (first + k) * w.step[1]], first + k) :
				       Op::none();
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
			sum = Op::join(sum, v[k]);
		sum = Op::join(carry, before<Op>(sum, &all));
		carry = Op::join(carry, all);
		if constexpr (!TOTALS) {
#pragma unroll
			for (int k = 0; k < ITEMS; k++) {
				const int64_t i = first + k;

				sum = Op::join(sum, v[k]);
				if (i < to)
					Op::store(sum, out + at[0] + i * w.step[0], index,
						  at[2] + i * w.step[2]);
			}
		}
	}
	if (TOTALS && threadIdx.x == 0)
		partial[blockIdx.y] = carry;
}

/* A line for each thread. */
template <class Op>
__global__ void scan_short_kernel(scan_lines w, typename Op::In *out, const typename Op::In *in,
				  int64_t *index)
{
	for (uint64_t i = first_element<uint64_t>(); i < w.lines.numel;
	     i += element_step<uint64_t>()) {
		int64_t at[3] = {};
		typename Op::A sum = Op::none();

		w.lines.seek(i, at);
#pragma unroll 4
		for (int64_t k = 0; k < w.n; k++) {
			sum = Op::join(sum, Op::lift(in[at[1] + k * w.step[1]], k));
			Op::store(sum, out + at[0] + k * w.step[0], index, at[2] + k * w.step[2]);
		}
	}
}

/* ---- launches ---- */

template <class Op>
static int scan_of(const cuda_rows *r, int pieces, void *partial, cudaStream_t stream)
{
	typedef typename Op::In T;
	typedef typename Op::A A;
	const cuda_dims &d = r->reduced;
	scan_lines w = { seeker<3>(r->kept), d.numel, {} };
	T *out = (T *)r->data[0];
	const T *in = (const T *)r->data[1];
	int64_t *index = (int64_t *)r->data[2];
	int err = 0;

	static_assert(sizeof(A) <= CUDA_SCAN_PARTIAL, "");
	for (int i = 0; i < 3 && d.ndim; i++)
		w.step[i] = d.stride[i][0];
	if (r->across || d.numel <= SHORT)
		return launch(scan_short_kernel<Op>, grid_for(r->kept.numel, BLOCK), BLOCK, stream,
			      w, out, in, index);
	const dim3 grid((unsigned)r->kept.numel, (unsigned)pieces);

	if (pieces > 1)
		err = launch(scan_kernel<Op, true>, grid, BLOCK, stream, w, out, in, index,
			     (A *)partial);
	return err ? err :
		     launch(scan_kernel<Op, false>, grid, BLOCK, stream, w, out, in, index,
			    pieces > 1 ? (A *)partial : (A *)0);
}

template <class T>
static int scan_by(cuda_scan which, const cuda_rows *r, int pieces, void *partial,
		   cudaStream_t stream)
{
	switch (which) {
	case CUDA_CUMSUM:
		return scan_of<sum_scan<T>>(r, pieces, partial, stream);
	case CUDA_CUMPROD:
		return scan_of<product_scan<T>>(r, pieces, partial, stream);
	default:
		return CUDA_NO_DTYPE;
	}
}

template <class T>
static int best_by(cuda_scan which, const cuda_rows *r, int pieces, void *partial,
		   cudaStream_t stream)
{
	return which == CUDA_CUMMAX ? scan_of<best_scan<T, true>>(r, pieces, partial, stream) :
				      scan_of<best_scan<T, false>>(r, pieces, partial, stream);
}

#define FOR_SCANNED_INTS(X)     \
	FOR_INTS(X)             \
	X(TENSOR_U16, uint16_t) \
	X(TENSOR_U32, uint32_t) \
	X(TENSOR_U64, uint64_t)
#define FOR_COMPLEX(X)             \
	X(TENSOR_C64, complex_f32) \
	X(TENSOR_C128, complex_f64)

static int logcumsumexp(const cuda_rows *r, int dtype, int pieces, void *partial,
			cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return scan_of<log_scan<T>>(r, pieces, partial, stream);
		FOR_ALL_FLOATS(X)
		FOR_COMPLEX(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

static int best(cuda_scan which, const cuda_rows *r, int dtype, int pieces, void *partial,
		cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return best_by<T>(which, r, pieces, partial, stream);
		X(TENSOR_BOOL, uint8_t)
		FOR_SCANNED_INTS(X)
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_scan(enum cuda_scan which, const cuda_rows *r, int dtype, int pieces, void *partial,
		     cudaStream_t stream)
{
	if (which == CUDA_LOGCUMSUMEXP)
		return logcumsumexp(r, dtype, pieces, partial, stream);
	if (which == CUDA_CUMMAX || which == CUDA_CUMMIN)
		return best(which, r, dtype, pieces, partial, stream);
	switch (dtype) {
#define X(D, T) \
	case D: \
		return scan_by<T>(which, r, pieces, partial, stream);
		X(TENSOR_BOOL, truth)
		FOR_SCANNED_INTS(X)
		FOR_ALL_FLOATS(X)
		FOR_COMPLEX(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
