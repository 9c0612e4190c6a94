/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The language of kernels for g++: included before each .cu file. A kernel is a function, and
 * launch() queues a call of it for each thread of the grid; tests/cuda/host/block.cc runs them.
 *
 * __shared__ variables are thread-local: a library of kernels has no other ones, so that each block
 * begins with garbage in all of them.
 */
#ifndef CUDA_HOST_RUNTIME_H
#define CUDA_HOST_RUNTIME_H

#include <cuda_host.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static thread_local

struct uint3 {
	unsigned x, y, z;
};

struct dim3 {
	unsigned x, y, z;

	constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
	{
	}
};

/* ---- the thread that runs ---- */

struct cuda_host_thread {
	uint3 thread, block;
	dim3 block_dim, grid_dim;
};

/* Only valid inside of a kernel. It changes whenever the thread waits. */
extern "C" cuda_host_thread *cuda_host_self;

#define threadIdx (cuda_host_self->thread)
#define blockIdx  (cuda_host_self->block)
#define blockDim  (cuda_host_self->block_dim)
#define gridDim	  (cuda_host_self->grid_dim)
#define warpSize  32

/* ---- barriers and exchanges ---- */

extern "C" {
void cuda_host_barrier(void);
/* Waits for the threads of mask; returns the value of `lane`, or of the caller if lane is outside
 * of the mask. */
uint64_t cuda_host_exchange(unsigned mask, uint64_t value, int lane);
/* Bit i is set if lane i of mask has given a nonzero value. */
unsigned cuda_host_ballot(unsigned mask, bool value);
int cuda_host_lane(void);
}

static inline void __syncthreads(void)
{
	cuda_host_barrier();
}

static inline void __syncwarp(unsigned mask = 0xffffffff)
{
	cuda_host_exchange(mask, 0, cuda_host_lane());
}

static inline void __threadfence(void)
{
}

/* Also for the host. */
static inline void __threadfence_system(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

template <class T> static inline T cuda_host_shuffle(unsigned mask, T value, int lane)
{
	static_assert(sizeof(T) <= 8, "a shuffle has at most 8 bytes");
	uint64_t bits = 0;

	memcpy(&bits, &value, sizeof(value));
	bits = cuda_host_exchange(mask, bits, lane);
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* The lane that lane l of a group of `width` lanes reads; its own if that is in another group. */
static inline int cuda_host_in_group(int lane, int width)
{
	int self = cuda_host_lane();

	return lane < 0 || lane / width != self / width ? self : lane;
}

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize)
{
	int first = cuda_host_lane() / width * width;

	return cuda_host_shuffle(mask, value, first + (lane & (width - 1)));
}

template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize)
{
	return cuda_host_shuffle(mask, value,
				 cuda_host_in_group(cuda_host_lane() - (int)by, width));
}

template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize)
{
	return cuda_host_shuffle(mask, value,
				 cuda_host_in_group(cuda_host_lane() + (int)by, width));
}

template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize)
{
	return cuda_host_shuffle(mask, value, cuda_host_in_group(cuda_host_lane() ^ bits, width));
}

static inline unsigned __ballot_sync(unsigned mask, int value)
{
	return cuda_host_ballot(mask, value != 0);
}

static inline int __any_sync(unsigned mask, int value)
{
	return cuda_host_ballot(mask, value != 0) != 0;
}

static inline int __all_sync(unsigned mask, int value)
{
	return cuda_host_ballot(mask, value == 0) == 0;
}

/* ---- atomics, as on a device without an order of other accesses ---- */

/* Replaces *at by f(*at); returns the value before. T has the size of U, an integer. */
template <class U, class T, class F> static inline T cuda_host_atomic(T *at, F f)
{
	U before = __atomic_load_n((U *)at, __ATOMIC_RELAXED), after;
	T value;

	static_assert(sizeof(U) == sizeof(T), "an atomic has 4 or 8 bytes");
	do {
		memcpy(&value, &before, sizeof(value));
		T changed = f(value);
		memcpy(&after, &changed, sizeof(after));
	} while (!__atomic_compare_exchange_n((U *)at, &before, after, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return value;
}

#define CUDA_HOST_ATOMICS(T, U)                                              \
	static inline T atomicAdd(T *at, T by)                               \
	{                                                                    \
		return cuda_host_atomic<U>(at, [=](T v) { return v + by; }); \
	}                                                                    \
	static inline T atomicExch(T *at, T to)                              \
	{                                                                    \
		return cuda_host_atomic<U>(at, [=](T) { return to; });       \
	}
#define CUDA_HOST_ATOMICS_OF_INTEGERS(T, U)                                                  \
	CUDA_HOST_ATOMICS(T, U)                                                              \
	static inline T atomicMin(T *at, T b)                                                \
	{                                                                                    \
		return cuda_host_atomic<U>(at, [=](T v) { return v < b ? v : b; });          \
	}                                                                                    \
	static inline T atomicMax(T *at, T b)                                                \
	{                                                                                    \
		return cuda_host_atomic<U>(at, [=](T v) { return v > b ? v : b; });          \
	}                                                                                    \
	static inline T atomicOr(T *at, T b)                                                 \
	{                                                                                    \
		return cuda_host_atomic<U>(at, [=](T v) { return v | b; });                  \
	}                                                                                    \
	static inline T atomicAnd(T *at, T b)                                                \
	{                                                                                    \
		return cuda_host_atomic<U>(at, [=](T v) { return v & b; });                  \
	}                                                                                    \
	static inline T atomicCAS(T *at, T expected, T to)                                   \
	{                                                                                    \
		return cuda_host_atomic<U>(at, [=](T v) { return v == expected ? to : v; }); \
	}

CUDA_HOST_ATOMICS_OF_INTEGERS(int, uint32_t)
CUDA_HOST_ATOMICS_OF_INTEGERS(unsigned, uint32_t)
CUDA_HOST_ATOMICS_OF_INTEGERS(unsigned long long, uint64_t)
CUDA_HOST_ATOMICS(float, uint32_t)
CUDA_HOST_ATOMICS(double, uint64_t)

/* ---- offsets of 32 bits ---- */

/* Ends the process: an offset is above cuda_host_narrow(). */
extern "C" void cuda_host_offset_too_large(int64_t value) __attribute__((cold));
extern "C" int64_t cuda_host_narrow_limit;

/* Stands for int32_t where the plugin has decided that 32 bits are enough: the results of its
 * operators must not be above the limit, which tests lower. A mere conversion may, as a stride that
 * is multiplied by 0. With an int64_t it becomes one. */
class cuda_host_offset
{
	int64_t v;

	static cuda_host_offset checked(int64_t value)
	{
		if (value > cuda_host_narrow_limit || value < -cuda_host_narrow_limit)
			cuda_host_offset_too_large(value);
		return cuda_host_offset(value);
	}

      public:
	cuda_host_offset() = default;
	template <class T, class = typename std::enable_if<std::is_same<T, int>::value>::type>
	cuda_host_offset(T value) : v(value)
	{
	}
	explicit cuda_host_offset(int64_t value) : v((int32_t)value)
	{
	}
	explicit cuda_host_offset(uint64_t value) : v((int32_t)value)
	{
	}
	explicit cuda_host_offset(uint32_t value) : v((int32_t)value)
	{
	}
	operator int64_t() const
	{
		return v;
	}
	friend cuda_host_offset operator+(cuda_host_offset a, cuda_host_offset b)
	{
		return checked(a.v + b.v);
	}
	friend cuda_host_offset operator-(cuda_host_offset a, cuda_host_offset b)
	{
		return checked(a.v - b.v);
	}
	friend cuda_host_offset operator*(cuda_host_offset a, cuda_host_offset b)
	{
		return checked(a.v * b.v);
	}
	cuda_host_offset &operator+=(cuda_host_offset b)
	{
		return *this = *this + b;
	}
};

/* ---- launches ---- */

struct cuda_host_kernel {
	const void *kernel;
	dim3 grid, block;
	void (*call)(const void *arguments); /* once for each thread */
	void (*destroy)(void *arguments);
	void *arguments; /* owned */
	size_t size;
	const void *const *pointers; /* arguments that are pointers */
	int npointers;
};

/* Takes over `arguments`, also if it fails. */
extern "C" cudaError_t cuda_host_launch(const cuda_host_kernel *launch, cudaStream_t stream);

/* A kernel with its arguments. Each thread gets copies, as kernels do. */
template <class... P> struct cuda_host_bound {
	void (*kernel)(P...);
	std::tuple<P...> arguments;

	static void call(const void *p)
	{
		const cuda_host_bound *b = (const cuda_host_bound *)p;

		std::apply(b->kernel, b->arguments);
	}

	static void destroy(void *p)
	{
		delete (cuda_host_bound *)p;
	}
};

template <class T> struct cuda_host_plain {
	typedef T type;
};

template <class T> static inline void cuda_host_collect(const void **list, int *n, const T &value)
{
	if constexpr (std::is_pointer<T>::value)
		list[(*n)++] = (const void *)value;
}

/* The call of lib/kernels/cuda/device.cuh. */
template <class... P>
int launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream,
	   typename cuda_host_plain<P>::type... args)
{
	const void *pointers[sizeof...(P) + 1];
	cuda_host_kernel l = {};

	(cuda_host_collect(pointers, &l.npointers, args), ...);
	l.kernel = (const void *)kernel;
	l.grid = grid;
	l.block = block;
	l.call = cuda_host_bound<P...>::call;
	l.destroy = cuda_host_bound<P...>::destroy;
	l.arguments = new cuda_host_bound<P...>{ kernel, std::tuple<P...>(args...) };
	l.size = sizeof(cuda_host_bound<P...>);
	l.pointers = pointers;
	return cuda_host_launch(&l, stream);
}

#endif
