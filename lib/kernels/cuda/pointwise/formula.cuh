/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The vocabulary of lib/kernels/formula for CUDA: a loop is a struct with the formula as its
 * operator(), and a table of loops is a launcher that selects one by dtype. The parameters of a
 * loop are members that the constructor sets on the host.
 *
 * A .cu file includes formulas inside of a namespace of its own, because files define loops of the
 * same name. FORMULA_MOST is the number of elements that a thread may compute together.
 */
#ifndef TENSOR_CUDA_FORMULA_CUH
#define TENSOR_CUDA_FORMULA_CUH

#include "kernels/cuda/pointwise/complex.cuh"
#include "kernels/cuda/pointwise/elementwise.cuh"
#include "kernels/cuda/report.cuh"
#include "kernels/cuda/types.cuh"

#include <type_traits>

#ifdef __NVCC__
#pragma nv_diag_suppress 186 /* comparison of an unsigned integer with zero */
#endif

#define FORMULA_MOST 16

/* ---- parameters ---- */

template <class T> struct param {
	static T of(const tensor_scalar &s)
	{
		return (T)(s.kind >= TENSOR_SCALAR_FLOAT ? s.d :
			   s.kind == TENSOR_SCALAR_UINT	 ? (double)s.u :
							   (double)s.i);
	}
	static T integer(const tensor_scalar &s)
	{
		return s.kind >= TENSOR_SCALAR_FLOAT ? (T)s.d : (T)s.i;
	}
};

template <class T> struct param<complex_of<T>> {
	static complex_of<T> of(const tensor_scalar &s)
	{
		return complex_of<T>(param<T>::of(s),
				     s.kind == TENSOR_SCALAR_COMPLEX ? (T)s.imag : T(0));
	}
};

#define PARAM_F(T, params, which) param<T>::of((params)->which)
#define PARAM_I(T, params, which) param<T>::integer((params)->which)
#define FLAG_TYPE		  formula_check
#define PARAM_FLAG(params)	  formula_check(params)
#define SET_FLAG(to)		  report_value((to).bad, CUDA_BAD_DIVISOR, 0, 0, 0)
#define NO_PARAMS(T)

/* The member `zero` of loops over integers that divide. */
struct formula_check {
	cuda_report bad;
	const unsigned long long *refused;

	explicit formula_check(const cuda_pointwise *p) : bad(p->bad), refused(p->refused)
	{
	}
};

/* ---- loops ---- */

template <int INPUTS, class A, class B, class R, int ELEMENTS> struct formula {
	typedef A First;
	typedef B In;
	typedef R Out;
	enum { N = INPUTS, MOST = ELEMENTS };
	const cuda_pointwise *params; /* the host's: only for the constructor */

	explicit formula(const cuda_pointwise *p) : params(p)
	{
	}
};

#define UNARY_LOOP_WITH(NAME, T, R, DECL, EXPR)           \
	struct NAME : formula<1, T, T, R, FORMULA_MOST> { \
		using formula::formula;                   \
		DECL;                                     \
		__device__ R operator()(T x) const        \
		{                                         \
			return (R)(EXPR);                 \
		}                                         \
	};
#define BINARY_LOOP_WITH(NAME, T, R, DECL, EXPR)          \
	struct NAME : formula<2, T, T, R, FORMULA_MOST> { \
		using formula::formula;                   \
		DECL;                                     \
		__device__ R operator()(T x, T y) const   \
		{                                         \
			return (R)(EXPR);                 \
		}                                         \
	};
#define TERNARY_LOOP_WITH(NAME, A, T, R, DECL, EXPR)         \
	struct NAME : formula<3, A, T, R, FORMULA_MOST> {    \
		using formula::formula;                      \
		DECL;                                        \
		__device__ R operator()(A x, T y, T z) const \
		{                                            \
			return (R)(EXPR);                    \
		}                                            \
	};
#define UNARY_LOOP(NAME, T, R, EXPR)  UNARY_LOOP_WITH(NAME, T, R, NO_PARAMS(T), EXPR)
#define BINARY_LOOP(NAME, T, R, EXPR) BINARY_LOOP_WITH(NAME, T, R, NO_PARAMS(T), EXPR)

/* f16 and bf16 need no loops: those for f32 load and store them. */
#define UNARY_BF16_WITH(NAME, DECL, EXPR)
#define UNARY_F16_WITH(NAME, DECL, EXPR)
#define BINARY_BF16(NAME, EXPR)
#define BINARY_F16(NAME, EXPR)
#define RELATION_BF16(NAME, EXPR)
#define RELATION_F16(NAME, EXPR)
#define TERNARY_BF16_WITH(NAME, DECL, EXPR)
#define TERNARY_F16_WITH(NAME, DECL, EXPR)
#define AT_BF16(N) entry()
#define AT_F16(N)  entry()

#include "kernels/formula/categories.h"

/* Functions f_v() of one element, which are functions of vectors on the CPU. */
#define VEC_UNARY(NAME, f)  UNARY_FLOAT(NAME, f##_v(x))
#define VEC_BINARY(NAME, f) BINARY_FLOAT(NAME, f##_v(x, y))
#define VEC_UNARY_INLINE(f) UNARY_FLOAT(f, f##_v(x))

#define DEVICE_FUNCTION_1(f)                                     \
	template <class T> static __device__ inline T f##_v(T x) \
	{                                                        \
		return f(x);                                     \
	}
#define DEVICE_FUNCTION_2(f)                                          \
	template <class T> static __device__ inline T f##_v(T x, T y) \
	{                                                             \
		return f(x, y);                                       \
	}

template <class T> static __device__ inline T splat_v(T v)
{
	return v;
}

static __device__ inline float select_v(bool which, float x, float y)
{
	return which ? x : y;
}

static __device__ inline double select_v(bool which, double x, double y)
{
	return which ? x : y;
}

/* ---- tables ---- */

typedef int (*formula_launcher)(const cuda_pointwise *p, cudaStream_t stream);

/* A loop for a dtype; the same for elements of f16 and bf16, if it is one for f32. */
struct entry {
	int dtype;
	formula_launcher same, f16, bf16;
};

template <class F, class A, class B, class R>
static int launch_loop(const cuda_pointwise *p, cudaStream_t stream)
{
	return elementwise<F, A, B, R>(p, F(p), stream);
}

/* A loop over the bits of f16 or bf16, of type E: scalars are f32. */
template <class F, class E> static int launch_bits(const cuda_pointwise *p, cudaStream_t stream)
{
	cuda_pointwise q = *p;

	for (int k = 1; k <= F::N; k++) {
		float value;

		if (p->data[k] || (k == 1 && sizeof(typename F::First) != sizeof(E)))
			continue;
		memcpy(&value, &p->scalar[k], sizeof(value));
		E bits(value);
		memcpy(&q.scalar[k], &bits, sizeof(bits));
	}
	return elementwise<F, typename F::First, typename F::In, typename F::Out>(&q, F(p), stream);
}

template <class F> static entry entry_of(int dtype)
{
	typedef typename F::First A;
	typedef typename F::In B;
	typedef typename F::Out R;
	constexpr bool real = std::is_same<R, float>::value;
	typedef typename std::conditional<real, f16, R>::type half;
	typedef typename std::conditional<real, bf16, R>::type brain;
	entry e = { dtype, nullptr, nullptr, nullptr };

	if constexpr (std::is_same<B, uint16_t>::value)
		e.same = dtype == TENSOR_F16  ? launch_bits<F, f16> :
			 dtype == TENSOR_BF16 ? launch_bits<F, bf16> :
						launch_loop<F, A, B, R>;
	else
		e.same = launch_loop<F, A, B, R>;
	if constexpr (std::is_same<B, float>::value) {
		e.f16 = launch_loop<F, f16, f16, half>;
		e.bf16 = launch_loop<F, bf16, bf16, brain>;
	}
	return e;
}

static inline int launch_entry(const entry *table, int n, const cuda_pointwise *p, int dtype,
			       cudaStream_t stream)
{
	const entry *wide = NULL;

	for (int i = 0; i < n; i++) {
		if (table[i].dtype == dtype)
			return table[i].same(p, stream);
		if (table[i].dtype == TENSOR_F32)
			wide = &table[i];
	}
	if (wide && dtype == TENSOR_F16 && wide->f16)
		return wide->f16(p, stream);
	if (wide && dtype == TENSOR_BF16 && wide->bf16)
		return wide->bf16(p, stream);
	return CUDA_NO_DTYPE;
}

#define AT_DTYPE(D, LOOP) entry_of<LOOP>(D)

#define POINTWISE(NAME, ...)                                                                       \
	extern "C" int cuda_launch_##NAME(const cuda_pointwise *p, int dtype, cudaStream_t stream) \
	{                                                                                          \
		static const entry table[] = { __VA_ARGS__ };                                      \
                                                                                                   \
		return launch_entry(table, (int)(sizeof(table) / sizeof(*table)), p, dtype,        \
				    stream);                                                       \
	}
#define PREDICATE(NAME, ...)	  POINTWISE(NAME, __VA_ARGS__)
#define POINTWISE_REAL(NAME, ...) POINTWISE(NAME, __VA_ARGS__)

#endif
