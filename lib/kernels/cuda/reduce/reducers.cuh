/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The reductions of reduce_other.cu, of elements T. A is what is known of some elements; add() adds
 * an element at a position of the row, which is after those of the elements in A; add_four() adds four,
 * join() combines two, and finish() gives the result R.
 */
#ifndef TENSOR_CUDA_REDUCERS_CUH
#define TENSOR_CUDA_REDUCERS_CUH

#include "kernels/cuda/reduce/rows.cuh"

#include <limits>

template <class T> struct reduction {
	typedef T In;
	typedef typename number<T>::compute C;
	enum { FOUR = false }; /* whether there is an add_four() */
	enum {
		SHIFTED = false
	}; /* whether there is a shift(), called with the first element of the row */
	double p;
};

template <class T> struct sum_of : reduction<T> {
	typedef typename number<T>::compute A;
	typedef T R;
	typedef typename reduction<T>::C C;

	__device__ static A start()
	{
		return 0;
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		a += x;
	}
	__device__ A join(A a, A b) const
	{
		return a + b;
	}
	__device__ R finish(A a, int64_t) const
	{
		return number<T>::store(a);
	}
};

/* In f64. With SKIP_NAN, NaN is taken as 0; with MEAN, the sum is divided by the number of elements. */
template <class T, bool SKIP_NAN, bool MEAN> struct wide_sum_of : reduction<T> {
	typedef double A;
	typedef T R;
	typedef typename reduction<T>::C C;

	__device__ static A start()
	{
		return 0;
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		a += SKIP_NAN && x != x ? (A)0 : (A)x;
	}
	__device__ A join(A a, A b) const
	{
		return a + b;
	}
	__device__ R finish(A a, int64_t n) const
	{
		return number<T>::store((C)(MEAN ? a / (A)n : a));
	}
};

/* Products of integers are i64. */
template <class T, class P, class Result> struct product_of : reduction<T> {
	typedef P A;
	typedef Result R;
	typedef typename reduction<T>::C C;

	__device__ static A start()
	{
		return 1;
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		a *= (A)x;
	}
	__device__ A join(A a, A b) const
	{
		return a * b;
	}
	__device__ R finish(A a, int64_t) const
	{
		return number<R>::store((typename number<R>::compute)a);
	}
};

/* NaN if an element is. A row has an element, so the value to start from is never the result. */
template <class T, bool MAX> struct extreme_of : reduction<T> {
	typedef typename reduction<T>::C C;
	typedef C A;
	typedef T R;
	typedef std::numeric_limits<C> limits;
	static constexpr C WORST = limits::has_infinity ?
					   (MAX ? -limits::infinity() : limits::infinity()) :
					   (MAX ? limits::lowest() : limits::max());

	__device__ static A start()
	{
		const C worst = WORST;

		return worst;
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		a = join(a, x);
	}
	__device__ A join(A a, A b) const
	{
		return a != a || (MAX ? a >= b : a <= b) ? a : b;
	}
	__device__ R finish(A a, int64_t) const
	{
		return number<T>::store(a);
	}
};

template <class T, bool ALL> struct truth_of : reduction<T> {
	typedef typename reduction<T>::C C;
	typedef uint32_t A;
	typedef uint8_t R;

	__device__ static A start()
	{
		return ALL;
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		a = join(a, (A)(x != 0));
	}
	__device__ A join(A a, A b) const
	{
		return ALL ? a & b : a | b;
	}
	__device__ R finish(A a, int64_t) const
	{
		return (uint8_t)a;
	}
};

template <class T> struct count_of : reduction<T> {
	typedef typename reduction<T>::C C;
	typedef int64_t A;
	typedef int64_t R;

	__device__ static A start()
	{
		return 0;
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		a += x != 0;
	}
	__device__ A join(A a, A b) const
	{
		return a + b;
	}
	__device__ R finish(A a, int64_t) const
	{
		return a;
	}
};

/* Count, mean and sum of squared differences from it, of which two are joined by Chan's formula. */
struct moments {
	double n, mean, m2;
};

template <class T, bool ROOT> struct variance_of : reduction<T> {
	typedef typename reduction<T>::C C;
	typedef moments A;
	typedef T R;
	enum { FOUR = true };

	__device__ static A start()
	{
		return { 0, 0, 0 };
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		const double d = (double)x - a.mean;

		a.n++;
		a.mean += d / a.n;
		a.m2 += d * ((double)x - a.mean);
	}
	/* One division for four elements. */
	__device__ void add_four(A &a, const C *x) const
	{
		const double mean = (0.25 * x[0] + 0.25 * x[1]) + (0.25 * x[2] + 0.25 * x[3]);
		double m2 = 0;

#pragma unroll
		for (int k = 0; k < 4; k++)
			m2 += ((double)x[k] - mean) * ((double)x[k] - mean);
		a = join(a, A{ 4, mean, m2 });
	}
	__device__ A join(A a, A b) const
	{
		const double n = a.n + b.n, d = b.mean - a.mean, part = b.n / n;

		if (b.n == 0)
			return a;
		if (a.n == 0)
			return b;
		return { n, a.mean + d * part, a.m2 + b.m2 + d * d * (a.n * part) };
	}
	__device__ R finish(A a, int64_t n) const
	{
		const double rest = (double)n - this->p > 0 ? (double)n - this->p : 0;
		const double v = a.m2 / rest;

		return number<T>::store((C)(ROOT ? sqrt(v) : v));
	}
};

/*
 * Sums in f64 of what reduced floats and f32 have more than the first element of the row, and of its square: no division for an
 * element. With n elements, of which the first is one, the squares are at most n + 1 times as large as their differences from the
 * mean, so that a result loses that many of the 2^53 units of f64, at most.
 */
struct shifted_sums {
	double shift, sum, squares;
};

template <class T, bool ROOT> struct shifted_variance_of : reduction<T> {
	typedef typename reduction<T>::C C;
	typedef shifted_sums A;
	typedef T R;
	enum { SHIFTED = true };

	__device__ static A start()
	{
		return { 0, 0, 0 };
	}
	__device__ static void shift(A &a, C first)
	{
		a.shift = first;
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		const double d = (double)x - a.shift;

		a.sum += d;
		a.squares += d * d;
	}
	__device__ A join(A a, A b) const
	{
		return { a.shift, a.sum + b.sum, a.squares + b.squares };
	}
	__device__ R finish(A a, int64_t n) const
	{
		const double rest = (double)n - this->p > 0 ? (double)n - this->p : 0;
		const double m2 = a.squares - a.sum * (a.sum / (double)n);
		const double v = (m2 < 0 ? 0 : m2) / rest;

		return number<T>::store((C)(ROOT ? sqrt(v) : v));
	}
};

/* f64 has no wider type for sums. */
template <class T, bool ROOT> struct variance {
	typedef shifted_variance_of<T, ROOT> type;
};
template <bool ROOT> struct variance<double, ROOT> {
	typedef variance_of<double, ROOT> type;
};

template <class T> struct norm_of : reduction<T> {
	typedef typename reduction<T>::C C;
	typedef double A;
	typedef T R;
	bool greatest, least;

	__device__ A start() const
	{
		return least ? INFINITY : 0;
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		const double v = fabs((double)x);

		a = join(a, this->p == 2		      ? v * v :
			    this->p == 1 || greatest || least ? v :
			    this->p == 0		      ? (double)(v != 0) :
								pow(v, this->p));
	}
	__device__ A join(A a, A b) const
	{
		if (greatest || least)
			return b != b || (a == a && (greatest ? b > a : b < a)) ? b : a;
		return a + b;
	}
	__device__ R finish(A a, int64_t) const
	{
		const bool plain = greatest || least || this->p == 0 || this->p == 1;

		return number<T>::store((C)(plain	 ? a :
					    this->p == 2 ? sqrt(a) :
							   pow(a, 1 / this->p)));
	}
};

/* The greatest element, and the sum of exp(x - top). -inf adds nothing. */
template <class C> struct exponentials {
	C top, sum;
};

template <class T> struct logsumexp_of : reduction<T> {
	typedef typename reduction<T>::C C;
	typedef exponentials<C> A;
	typedef T R;

	__device__ static A start()
	{
		return { -INFINITY, 0 };
	}
	/* The sum relative to `to`. An infinite top is relative to itself. */
	__device__ static C scaled(A a, C to)
	{
		return a.top == to || a.sum == 0 ? a.sum : a.sum * exp(a.top - to);
	}
	__device__ void add(A &a, C x, int64_t) const
	{
		a = join(a, A{ x, (C)(x == -INFINITY ? 0 : 1) });
	}
	__device__ A join(A a, A b) const
	{
		const C top = greater::join<C>(a.top, b.top);

		return { top, scaled(a, top) + scaled(b, top) };
	}
	__device__ R finish(A a, int64_t) const
	{
		return number<T>::store(a.sum == 0 ? a.top : log(a.sum) + a.top);
	}
};

/* A reduction with one result for each row. */
template <class Op> struct one_result : Op {
	__device__ void give(typename Op::R *out, int64_t *, const int64_t *at, typename Op::A acc,
			     int64_t n) const
	{
		out[at[0]] = this->finish(acc, n);
	}
};

/* The first of the best elements of a row, and its position; -1: there is none. */
template <class C> struct extreme_place {
	C v;
	int64_t at;
};

template <class T, bool MAX> struct extreme_at : reduction<T> {
	typedef typename reduction<T>::C C;
	typedef extreme_place<C> A;
	typedef T R;

	__device__ static A start()
	{
		return { 0, -1 };
	}
	__device__ void add(A &a, C x, int64_t i) const
	{
		if (a.at < 0 || (a.v == a.v && (x != x || (MAX ? x > a.v : x < a.v))))
			a = A{ x, i };
	}
	/* The first NaN is before all numbers. */
	__device__ A join(A a, A b) const
	{
		if (a.at < 0 || b.at < 0)
			return a.at < 0 ? b : a;
		if (a.v != a.v || b.v != b.v)
			return a.v == a.v || (b.v != b.v && b.at < a.at) ? b : a;
		return (MAX ? b.v > a.v : b.v < a.v) || (b.v == a.v && b.at < a.at) ? b : a;
	}
	__device__ void give(R *out, int64_t *index, const int64_t *at, A acc, int64_t) const
	{
		if (out)
			out[at[0]] = number<T>::store(acc.v);
		index[at[2]] = acc.at;
	}
};

#endif
