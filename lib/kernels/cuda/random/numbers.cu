// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Uniform, normal and exponential numbers, and integers: the CPU's formulas for the CPU's words. A
 * thread has the four words of a block, which are four numbers of 32 random bits or two of 64; a
 * pair of normal numbers is made of two of them.
 */
#include "kernels/cuda/random/philox.cuh"
#include "kernels/cuda/report.cuh"

#ifdef __CUDACC__
#define inline inline __host__ __device__
#endif
#include "kernels/formula/random.h"
#undef inline

/* The words of block b of a group; position k of this thread is element 16 k + b of the group. */
struct words {
	uint32_t w[4];
	unsigned b;
	uint64_t block;
};

/* Numbers of type T from a block: Op::make(f, words, values of Op::C). */
template <class T, class Op> __global__ void numbers_kernel(cuda_fill given, int64_t blocks, T *out)
{
	const cuda_fill f = replayed(given);

	for (int64_t i = first_element<int64_t>(); i < blocks; i += element_step<int64_t>()) {
		const int64_t first =
			i / PHILOX_GROUP * (PHILOX_GROUP * Op::COUNT) + i % PHILOX_GROUP;
		typename Op::C v[Op::COUNT];
		words w;

		w.b = (unsigned)(i % PHILOX_GROUP);
		w.block = f.offset + (uint64_t)i;
		philox(w.w, f.seed, w.block);
		Op::make(f, w, v);
#pragma unroll
		for (int k = 0; k < Op::COUNT; k++)
			if (first + k * PHILOX_GROUP < f.n)
				out[first + k * PHILOX_GROUP] = (T)v[k];
	}
}

struct narrow_numbers {
	typedef float C;
	enum { COUNT = 4 };
};
struct wide_numbers {
	typedef double C;
	enum { COUNT = 2 };
};

/* BITS: of the significand, where fewer than 24. */
template <int BITS> struct uniform_narrow : narrow_numbers {
	static __device__ void make(const cuda_fill &f, const words &w, float (&v)[4])
	{
		const float limit = (float)f.limit;

#pragma unroll
		for (int k = 0; k < 4; k++) {
			const float unit =
				BITS ? (float)(int32_t)(w.w[k] >> (32 - (BITS ? BITS : 1))) *
						(1.0f / (float)(1 << BITS)) :
				       unit_f32(w.w[k]);

			v[k] = unit * (float)f.b + (float)f.a;
			v[k] = v[k] > limit ? limit : v[k];
		}
	}
};

struct uniform_wide : wide_numbers {
	static __device__ void make(const cuda_fill &f, const words &w, double (&v)[2])
	{
#pragma unroll
		for (int k = 0; k < 2; k++) {
			v[k] = unit_f64(w.w[2 * k], w.w[2 * k + 1]) * f.b + f.a;
			v[k] = v[k] > f.limit ? f.limit : v[k];
		}
	}
};

struct normal_narrow : narrow_numbers {
	static __device__ void make(const cuda_fill &f, const words &w, float (&v)[4])
	{
		const float mean = (float)(w.b & 1 ? f.limit : f.a);

#pragma unroll
		for (int k = 0; k < 2; k++) {
			const float u = positive_unit_f32(w.w[k]);
			const float r = sqrtf(-2 * log_unit_f32(u)) * (float)f.b;
			float s, c;

			sincos_turn_f32(w.w[k + 2], &s, &c);
			v[k] = r * c + mean;
			v[k + 2] = r * s + mean;
		}
	}
};

struct normal_wide : wide_numbers {
	static __device__ void make(const cuda_fill &f, const words &w, double (&v)[2])
	{
		const double r = sqrt(-2 * log_unit_f64(1 - unit_f64(w.w[0], w.w[1]))) * f.b;
		const double mean = w.b & 1 ? f.limit : f.a;
		double s, c;

		sincos_turn_f64(unit_f64(w.w[2], w.w[3]), &s, &c);
		v[0] = r * c + mean;
		v[1] = r * s + mean;
	}
};

/* Never zero. */
struct exponential_narrow : narrow_numbers {
	static __device__ void make(const cuda_fill &f, const words &w, float (&v)[4])
	{
		const float scale = (float)(1 / f.a);

#pragma unroll
		for (int k = 0; k < 4; k++) {
			const float x = -log_unit_f32(positive_unit_f32(w.w[k]));

			v[k] = (x > 0x1p-25f ? x : 0x1p-25f) * scale;
		}
	}
};

struct exponential_wide : wide_numbers {
	static __device__ void make(const cuda_fill &f, const words &w, double (&v)[2])
	{
		const double scale = 1 / f.a;

#pragma unroll
		for (int k = 0; k < 2; k++) {
			const double x = -log_unit_f64(1 - unit_f64(w.w[2 * k], w.w[2 * k + 1]));

			v[k] = (x > 0x1p-54 ? x : 0x1p-54) * scale;
		}
	}
};

/* ---- integers: number * range / 2^bits, see random_int.c of the CPU ---- */

static __device__ inline uint64_t high_product(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
	return __umul64hi(a, b);
#else
	return (uint64_t)((unsigned __int128)a * b >> 64);
#endif
}

template <bool WIDE> struct integers {
	typedef int64_t C;
	enum { COUNT = WIDE ? 2 : 4 };

	static __device__ uint64_t number(const uint32_t (&w)[4], int k)
	{
		return WIDE ? w[2 * k] | (uint64_t)w[2 * k + 1] << 32 : w[k];
	}
	/* Sets *low to the low half of the product. */
	static __device__ uint64_t product(uint64_t number, uint64_t range, uint64_t *low)
	{
		const uint64_t m = number * range;

		*low = WIDE ? m : (uint32_t)m;
		return WIDE ? high_product(number, range) : m >> 32;
	}
	static __device__ uint64_t below(const cuda_fill &f, const words &w, int k)
	{
		uint32_t next[4];
		uint64_t low, result = product(number(w.w, k), f.range, &low);

		if (WIDE && !f.range)
			return number(w.w, k);
		if (low >= f.range)
			return result;
		const uint64_t least = WIDE ? -f.range % f.range : 0x100000000 % f.range;

		for (uint64_t stream = 1; low < least; stream++) {
			philox(next, f.seed, w.block, stream);
			result = product(number(next, k), f.range, &low);
		}
		return result;
	}
	static __device__ void make(const cuda_fill &f, const words &w, int64_t (&v)[COUNT])
	{
#pragma unroll
		for (int k = 0; k < COUNT; k++)
			v[k] = (int64_t)((uint64_t)f.from + below(f, w, k));
	}
};

/* An integer as an element: floats of 16 bits round the f32 of it. */
template <class T> struct integer_as {
	T v;

	__device__ explicit integer_as(int64_t x) : v((T)x)
	{
	}
};
template <> struct integer_as<f16> {
	f16 v;

	__device__ explicit integer_as(int64_t x) : v((float)x)
	{
	}
};
template <> struct integer_as<bf16> {
	bf16 v;

	__device__ explicit integer_as(int64_t x) : v((float)x)
	{
	}
};

/* ---- a probability for each element ---- */

template <class T, int COUNT>
__global__ void bernoulli_each_kernel(cuda_fill given, int64_t blocks, uint8_t *out, const T *p,
				      cuda_report bad)
{
	const cuda_fill f = replayed(given);

	for (int64_t i = first_element<int64_t>(); i < blocks; i += element_step<int64_t>()) {
		const int64_t first = i / PHILOX_GROUP * (PHILOX_GROUP * COUNT) + i % PHILOX_GROUP;
		uint32_t w[4];

		philox(w, f.seed, f.offset + (uint64_t)i);
#pragma unroll
		for (int k = 0; k < COUNT; k++) {
			const int64_t at = first + k * PHILOX_GROUP;
			const T unit = COUNT == 4 ? (T)unit_f32(w[k]) :
						    (T)unit_f64(w[2 * k % 4], w[(2 * k + 1) % 4]);

			if (at >= f.n)
				continue;
			const bool valid = p[at] >= 0 && p[at] <= 1;

			if (!valid)
				report_value(bad, CUDA_BAD_PROBABILITY, 0, 0, 0);
			out[at] = valid && unit < p[at];
		}
	}
}

/* ---- launches ---- */

static int64_t blocks_of(const cuda_fill *f, int count)
{
	return (f->n + PHILOX_GROUP * count - 1) / (PHILOX_GROUP * count) * PHILOX_GROUP;
}

template <class T, class Op> static int fill(const cuda_fill *f, void *out, cudaStream_t stream)
{
	const int64_t blocks = blocks_of(f, Op::COUNT);

	return launch(numbers_kernel<T, Op>, grid_for(blocks, BLOCK), BLOCK, stream, *f, blocks,
		      (T *)out);
}

int cuda_launch_uniform(const cuda_fill *f, void *out, int dtype, cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_F32:
		return fill<float, uniform_narrow<0>>(f, out, stream);
	case TENSOR_F64:
		return fill<double, uniform_wide>(f, out, stream);
	case TENSOR_F16:
		return fill<f16, uniform_narrow<11>>(f, out, stream);
	case TENSOR_BF16:
		return fill<bf16, uniform_narrow<8>>(f, out, stream);
	default:
		return CUDA_NO_DTYPE;
	}
}

#define FLOAT_LAUNCHER(NAME, OP)                                                \
	int NAME(const cuda_fill *f, void *out, int dtype, cudaStream_t stream) \
	{                                                                       \
		switch (dtype) {                                                \
		case TENSOR_F32:                                                \
			return fill<float, OP##_narrow>(f, out, stream);        \
		case TENSOR_F64:                                                \
			return fill<double, OP##_wide>(f, out, stream);         \
		case TENSOR_F16:                                                \
			return fill<f16, OP##_narrow>(f, out, stream);          \
		case TENSOR_BF16:                                               \
			return fill<bf16, OP##_narrow>(f, out, stream);         \
		default:                                                        \
			return CUDA_NO_DTYPE;                                   \
		}                                                               \
	}
FLOAT_LAUNCHER(cuda_launch_normal, normal)
FLOAT_LAUNCHER(cuda_launch_exponential, exponential)

int cuda_launch_randint(const cuda_fill *f, void *out, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                        \
	case D:                                                                        \
		return f->wide ? fill<integer_as<T>, integers<true>>(f, out, stream) : \
				 fill<integer_as<T>, integers<false>>(f, out, stream);
		X(TENSOR_BOOL, uint8_t)
		FOR_NUMBERS(X)
		FOR_REDUCED_FLOATS(X)
		X(TENSOR_U16, uint16_t)
		X(TENSOR_U32, uint32_t)
		X(TENSOR_U64, uint64_t)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

template <class T, int COUNT>
static int bernoulli_each(const cuda_fill *f, uint8_t *out, const void *p, const cuda_report *bad,
			  cudaStream_t stream)
{
	const int64_t blocks = blocks_of(f, COUNT);

	return launch(bernoulli_each_kernel<T, COUNT>, grid_for(blocks, BLOCK), BLOCK, stream, *f,
		      blocks, out, (const T *)p, *bad);
}

int cuda_launch_bernoulli_each(const cuda_fill *f, uint8_t *out, const void *p,
			       const cuda_report *bad, int dtype, cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_F32:
		return bernoulli_each<float, 4>(f, out, p, bad, stream);
	case TENSOR_F64:
		return bernoulli_each<double, 2>(f, out, p, bad, stream);
	default:
		return CUDA_NO_DTYPE;
	}
}
