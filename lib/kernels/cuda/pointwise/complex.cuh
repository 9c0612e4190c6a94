/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Complex numbers of kernels, with the names that formulas use. Products and quotients are computed
 * as on the CPU: a product is two sums of two rounded products, a quotient is scaled by the larger
 * part of the divisor (R. L. Smith, "Algorithm 116: Complex division", 1962). Functions follow C99
 * where a part is zero, and for arguments whose results are finite; parts that are infinite or NaN
 * may give other signs of zero or NaN.
 */
#ifndef TENSOR_CUDA_COMPLEX_CUH
#define TENSOR_CUDA_COMPLEX_CUH

#include "kernels/cuda/device.cuh"

#include <math.h>

template <class T> struct alignas(2 * sizeof(T)) complex_of {
	T re, im;

	complex_of() = default;
	__host__ __device__ complex_of(T a, T b = T(0)) : re(a), im(b)
	{
	}
	template <class U>
	__device__ explicit complex_of(complex_of<U> z) : re((T)z.re), im((T)z.im)
	{
	}
	friend __device__ inline complex_of operator-(complex_of x)
	{
		return complex_of(-x.re, -x.im);
	}
	friend __device__ inline complex_of operator+(complex_of x, complex_of y)
	{
		return complex_of(x.re + y.re, x.im + y.im);
	}
	friend __device__ inline complex_of operator+(T x, complex_of y)
	{
		return complex_of(x + y.re, y.im);
	}
	friend __device__ inline complex_of operator-(complex_of x, complex_of y)
	{
		return complex_of(x.re - y.re, x.im - y.im);
	}
	friend __device__ inline complex_of operator-(T x, complex_of y)
	{
		return complex_of(x - y.re, -y.im);
	}
	friend __device__ inline complex_of operator*(complex_of x, complex_of y)
	{
		return complex_of(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
	}
	friend __device__ inline complex_of operator*(complex_of x, T y)
	{
		return complex_of(x.re * y, x.im * y);
	}
	friend __device__ inline complex_of operator/(complex_of x, T y)
	{
		return complex_of(x.re / y, x.im / y);
	}
	friend __device__ inline complex_of operator/(complex_of x, complex_of y)
	{
		bool flat = fabs(y.re) < fabs(y.im);
		T ratio = flat ? y.re / y.im : y.im / y.re;
		T size = flat ? y.re * ratio + y.im : y.im * ratio + y.re;

		return flat ? complex_of((x.re * ratio + x.im) / size,
					 (x.im * ratio - x.re) / size) :
			      complex_of((x.im * ratio + x.re) / size,
					 (x.im - x.re * ratio) / size);
	}
	friend __device__ inline bool operator==(complex_of x, complex_of y)
	{
		return (x.re == y.re) & (x.im == y.im);
	}
	friend __device__ inline bool operator==(complex_of x, T y)
	{
		return (x.re == y) & (x.im == 0);
	}
	friend __device__ inline bool operator!=(complex_of x, complex_of y)
	{
		return (x.re != y.re) | (x.im != y.im);
	}
	friend __device__ inline bool operator!=(complex_of x, T y)
	{
		return (x.re != y) | (x.im != 0);
	}
};

template <class T> struct arith<complex_of<T>> {
	typedef complex_of<T> type;
};

typedef complex_of<float> complex_f32;
typedef complex_of<double> complex_f64;

#define COMPLEX_MUL(x, y)     ((x) * (y))
#define COMPLEX_OF(x, re, im) complex_like(x, re, im)
#undef CMPLX
#define CMPLX(re, im)		  complex_f64(re, im)
#define COMPLEX_CASE(x, f32, f64) complex_case<__typeof__(x)>::of(f32, f64)

template <class T>
static __device__ inline complex_of<T> complex_like(complex_of<T> z, typename plain<T>::type re,
						    typename plain<T>::type im)
{
	return complex_of<T>(re, im);
}

template <class C> struct complex_case;
template <> struct complex_case<complex_f32> {
	template <class F, class G> static __device__ F of(F f, G g)
	{
		return f;
	}
};
template <> struct complex_case<complex_f64> {
	template <class F, class G> static __device__ G of(F f, G g)
	{
		return g;
	}
};

template <class T> static __device__ inline T creal(complex_of<T> z)
{
	return z.re;
}

template <class T> static __device__ inline T cimag(complex_of<T> z)
{
	return z.im;
}

template <class T> static __device__ inline complex_of<T> conj(complex_of<T> z)
{
	return complex_of<T>(z.re, -z.im);
}

template <class T> static __device__ inline T cabs(complex_of<T> z)
{
	return hypot(z.re, z.im);
}

template <class T> static __device__ inline T fabs(complex_of<T> z)
{
	return hypot(z.re, z.im);
}

template <class T> static __device__ inline T carg(complex_of<T> z)
{
	return atan2(z.im, z.re);
}

/* z times i, and times -i. */
template <class T> static __device__ inline complex_of<T> times_i(complex_of<T> z)
{
	return complex_of<T>(-z.im, z.re);
}

template <class T> static __device__ inline complex_of<T> times_minus_i(complex_of<T> z)
{
	return complex_of<T>(z.im, -z.re);
}

/* ---- exponentials and logarithms ---- */

template <class T> static __device__ inline complex_of<T> exp(complex_of<T> z)
{
	T size = exp(z.re);

	if (z.im == 0)
		return complex_of<T>(size, z.im);
	/* For size infinite, exp(re) / 2 is the scale of the product. */
	if (isinf(size) && isfinite(z.re)) {
		T half = exp(z.re / 2);

		return complex_of<T>(half * cos(z.im) * half, half * sin(z.im) * half);
	}
	return complex_of<T>(size * cos(z.im), size * sin(z.im));
}

/* log |z|. Near 1, the difference of |z|^2 from it is computed as (big - 1)(big + 1) + small^2. */
template <class T> static __device__ inline T log_size(complex_of<T> z)
{
	T a = fabs(z.re), b = fabs(z.im), big = a > b ? a : b, small = a > b ? b : a;
	T size = hypot(a, b);

	if (size > T(0.5) && size < T(2))
		return log1p((double)(big - 1) * (big + 1) + (double)small * small) / 2;
	/* The least numbers lose digits in hypot(), the greatest overflow. */
	if (isinf(size) && isfinite(a) && isfinite(b))
		return log(hypot(a / 2, b / 2)) + T(M_LN2);
	return log(size);
}

template <class T> static __device__ inline complex_of<T> log(complex_of<T> z)
{
	return complex_of<T>(log_size(z), atan2(z.im, z.re));
}

/* W. Kahan, "Branch cuts for complex elementary functions", 1987: scaled, without cancellation. */
template <class T> static __device__ inline complex_of<T> sqrt(complex_of<T> z)
{
	T a = fabs(z.re), size, t;

	if (z == T(0))
		return complex_of<T>(0, z.im);
	if (isinf(z.im))
		return complex_of<T>(INFINITY, z.im);
	size = hypot(z.re / 4, z.im / 4);
	t = 2 * sqrt((size + a / 4) / 2);
	if (z.re >= 0)
		return complex_of<T>(t, z.im / (2 * t));
	return complex_of<T>(fabs(z.im) / (2 * t), copysign(t, z.im));
}

/* x^y; 0 for x = 0. */
template <class T> static __device__ inline complex_of<T> pow(complex_of<T> x, complex_of<T> y)
{
	complex_f64 l, e;

	if (x == T(0))
		return y.re > 0 ? complex_of<T>(0) : complex_of<T>(NAN, NAN);
	l = log(complex_f64(x.re, x.im));
	e = exp(complex_f64(y.re, y.im) * l);
	return complex_of<T>((T)e.re, (T)e.im);
}

/* ---- trigonometric and hyperbolic functions ---- */

template <class T> static __device__ inline complex_of<T> sinh(complex_of<T> z)
{
	if (z.im == 0)
		return complex_of<T>(sinh(z.re), z.im);
	return complex_of<T>(sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im));
}

template <class T> static __device__ inline complex_of<T> cosh(complex_of<T> z)
{
	if (z.im == 0)
		return complex_of<T>(cosh(z.re), z.re * z.im);
	return complex_of<T>(cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im));
}

/* Kahan, as above: by the tangent and the hyperbolic sine, without overflow for |re| > 20. */
template <class T> static __device__ inline complex_of<T> tanh(complex_of<T> z)
{
	T t, s, c, d;

	if (fabs(z.re) > T(20)) {
		T e = exp(-2 * fabs(z.re));

		return complex_of<T>(copysign(T(1), z.re), 4 * sin(z.im) * cos(z.im) * e);
	}
	t = tan(z.im);
	s = sinh(z.re);
	c = sqrt(1 + s * s);
	if (isinf(t))
		return complex_of<T>(c / s, 1 / t);
	d = 1 + t * t;
	return complex_of<T>(d * c * s / (1 + d * s * s), t / (1 + d * s * s));
}

template <class T> static __device__ inline complex_of<T> sin(complex_of<T> z)
{
	return times_minus_i(sinh(times_i(z)));
}

template <class T> static __device__ inline complex_of<T> cos(complex_of<T> z)
{
	return cosh(times_i(z));
}

template <class T> static __device__ inline complex_of<T> tan(complex_of<T> z)
{
	return times_minus_i(tanh(times_i(z)));
}

/* ---- inverse functions: Kahan, as above, in f64 ---- */

static __device__ inline complex_f64 inverse_sine(complex_f64 z)
{
	complex_f64 below = sqrt(1 - z), above = sqrt(1 + z);

	return complex_f64(atan2(z.re, below.re * above.re - below.im * above.im),
			   asinh(below.re * above.im - below.im * above.re));
}

static __device__ inline complex_f64 inverse_cosine(complex_f64 z)
{
	complex_f64 below = sqrt(1 - z), above = sqrt(1 + z);

	return complex_f64(2 * atan2(below.re, above.re),
			   asinh(above.re * below.im - above.im * below.re));
}

static __device__ inline complex_f64 inverse_hyperbolic_cosine(complex_f64 z)
{
	complex_f64 below = sqrt(complex_f64(z.re - 1, z.im)),
		    above = sqrt(complex_f64(z.re + 1, z.im));

	return complex_f64(asinh(below.re * above.re + below.im * above.im),
			   2 * atan2(below.im, above.re));
}

static __device__ inline complex_f64 inverse_hyperbolic_tangent(complex_f64 z)
{
	double far = 1 - z.re, im2 = z.im * z.im;

	return complex_f64(log1p(4 * z.re / (far * far + im2)) / 4,
			   atan2(2 * z.im, far * (1 + z.re) - im2) / 2);
}

#define COMPLEX_INVERSE(f, VALUE)                                                    \
	template <class T> static __device__ inline complex_of<T> f(complex_of<T> x) \
	{                                                                            \
		complex_f64 z(x.re, x.im), y = VALUE;                                \
                                                                                     \
		return complex_of<T>((T)y.re, (T)y.im);                              \
	}
COMPLEX_INVERSE(asin, inverse_sine(z))
COMPLEX_INVERSE(acos, inverse_cosine(z))
COMPLEX_INVERSE(atan, times_minus_i(inverse_hyperbolic_tangent(times_i(z))))
COMPLEX_INVERSE(asinh, times_minus_i(inverse_sine(times_i(z))))
COMPLEX_INVERSE(acosh, inverse_hyperbolic_cosine(z))
COMPLEX_INVERSE(atanh, inverse_hyperbolic_tangent(z))

static __device__ inline complex_f64 clog(complex_f64 z)
{
	return log(z);
}

static __device__ inline complex_f64 cexp(complex_f64 z)
{
	return exp(z);
}

#endif
