/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * libtensor in C++17: header only, on the C interface of <tensor/tensor.h>.
 *
 *	using namespace libtensor;
 *	Tensor w = randn({ 2, 3 }).set_requires_grad();
 *	Tensor loss = (w * 2 + 1).tanh().mean();
 *	loss.backward();
 *	std::cout << w.grad() << '\n';
 *
 * Ownership. A Tensor owns one reference; a copy is another reference of the same tensor, not of its elements. Results
 * do not belong to an open tensor_scope.
 *
 * Errors. A function that fails throws libtensor::error with the code and the text of the thread's error record.
 *
 * Threads. As in C: any tensor may be read from any thread; no_grad belongs to the thread that made it.
 */
#ifndef TENSOR_TENSOR_HPP
#define TENSOR_TENSOR_HPP

#include <tensor/blob.hpp>
#include <tensor/callbacks.hpp>
#include <tensor/channel.hpp>
#include <tensor/ops.hpp>

#include <algorithm>
#include <memory>

namespace libtensor
{

/* ---- data in ---- */

/* The number of elements. EINVAL for a negative size, EOVERFLOW if it is no int64_t. */
inline int64_t numel_of(const char *function, const shape &size)
{
	int64_t numel = std::count(size.begin(), size.end(), 0) ? 0 : 1;

	for (int64_t n : size) {
		if (n < 0)
			throw_error(EINVAL, std::string(function) + ": size " + std::to_string(n) +
						    " is negative");
		if (__builtin_mul_overflow(numel, n, &numel))
			throw_error(EOVERFLOW,
				    std::string(function) + ": the number of elements overflows");
	}
	return numel;
}

/* A copy of elements that lie in row-major order. Without a shape it has one dimension. */
template <class T> Tensor from(const T *values, std::size_t count, const shape &size)
{
	const int64_t numel = numel_of("from", size);
	const ints sizes = size;

	if (static_cast<std::size_t>(numel) != count)
		throw_error(EINVAL, "from: there are " + std::to_string(count) +
					    " elements, the shape has " + std::to_string(numel));
	return Tensor::result(tensor_from_data(values, sizes, options(dtype_of<T>)));
}

/* A std::vector, std::array, std::span: what has data() and size(). */
template <class R, class = decltype(std::declval<const R &>().data())>
Tensor from(const R &values, const shape &size)
{
	return from(values.data(), values.size(), size);
}

template <class R, class = decltype(std::declval<const R &>().data())> Tensor from(const R &values)
{
	return from(values.data(), values.size(), shape{ static_cast<int64_t>(values.size()) });
}

/* from<float>({ 1, 2, 3 }), from<float>({ 1, 2, 3, 4 }, { 2, 2 }) */
template <class T> Tensor from(std::initializer_list<T> values)
{
	return from(values.begin(), values.size(), shape{ static_cast<int64_t>(values.size()) });
}

template <class T> Tensor from(std::initializer_list<T> values, const shape &size)
{
	return from(values.begin(), values.size(), size);
}

/* from<float>({ { 1, 2 }, { 3, 4 } }): rows of the same length. */
template <class T> Tensor from(std::initializer_list<std::initializer_list<T>> rows)
{
	const std::size_t columns = rows.size() ? rows.begin()->size() : 0;
	/* No std::vector<T>: that of bool has no data(). */
	const auto values = std::make_unique<T[]>(rows.size() * columns);
	T *to = values.get();

	for (const auto &row : rows) {
		if (row.size() != columns)
			throw_error(EINVAL, "from: rows have " + std::to_string(columns) + " and " +
						    std::to_string(row.size()) + " elements");
		to = std::copy(row.begin(), row.end(), to);
	}
	if (!rows.size()) /* from<float>({}) */
		return from(values.get(), 0, shape{ 0 });
	return from(values.get(), rows.size() * columns,
		    shape{ static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns) });
}

/* ---- operators ---- */

inline Tensor operator-(const Tensor &x)
{
	return x.neg();
}

inline Tensor operator~(const Tensor &x)
{
	return x.bitwise_not();
}

/* An operator of two tensors, and of a tensor and a number; the third line has the number first. */
#define TENSOR_BINARY_(op, call, reversed)                          \
	inline Tensor operator op(const Tensor &a, const Tensor &b) \
	{                                                           \
		return a.call(b);                                   \
	}                                                           \
	inline Tensor operator op(const Tensor &a, const scalar &b) \
	{                                                           \
		return a.call(b);                                   \
	}                                                           \
	inline Tensor operator op(const scalar &a, const Tensor &b) \
	{                                                           \
		return reversed;                                    \
	}

TENSOR_BINARY_(+, add, b.add(a))
TENSOR_BINARY_(-, sub, b.rsub(a))
TENSOR_BINARY_(*, mul, b.mul(a))
TENSOR_BINARY_(/, div, b.reciprocal().mul(a))
TENSOR_BINARY_(%, remainder, remainder(a, b))
TENSOR_BINARY_(&, bitwise_and, b.bitwise_and(a))
TENSOR_BINARY_(|, bitwise_or, b.bitwise_or(a))
TENSOR_BINARY_(^, bitwise_xor, b.bitwise_xor(a))
TENSOR_BINARY_(==, eq, b.eq(a))
TENSOR_BINARY_(!=, ne, b.ne(a))
TENSOR_BINARY_(<, lt, b.gt(a))
TENSOR_BINARY_(<=, le, b.ge(a))
TENSOR_BINARY_(>, gt, b.lt(a))
TENSOR_BINARY_(>=, ge, b.le(a))
#undef TENSOR_BINARY_

/* In place. The left side may be a temporary view: x[0] += 1. The result is that view then, and no reference to it. */
#define TENSOR_ASSIGN_(op, call)                                           \
	inline const Tensor &operator op(const Tensor &a, const Tensor &b) \
	{                                                                  \
		return a.call(b);                                          \
	}                                                                  \
	inline const Tensor &operator op(const Tensor &a, const scalar &b) \
	{                                                                  \
		return a.call(b);                                          \
	}                                                                  \
	inline Tensor operator op(const Tensor &&a, const Tensor &b)       \
	{                                                                  \
		return a.call(b);                                          \
	}                                                                  \
	inline Tensor operator op(const Tensor &&a, const scalar &b)       \
	{                                                                  \
		return a.call(b);                                          \
	}

TENSOR_ASSIGN_(+=, add_)
TENSOR_ASSIGN_(-=, sub_)
TENSOR_ASSIGN_(*=, mul_)
TENSOR_ASSIGN_(/=, div_)
TENSOR_ASSIGN_(%=, remainder_)
TENSOR_ASSIGN_(&=, bitwise_and_)
TENSOR_ASSIGN_(|=, bitwise_or_)
TENSOR_ASSIGN_(^=, bitwise_xor_)
#undef TENSOR_ASSIGN_

inline std::ostream &operator<<(std::ostream &out, const Tensor &t)
{
	return out << t.str();
}

/* ---- scopes and modes of the thread ---- */

/* tensor_scope of C as an object: results of C functions that are called while it exists are released at its end. */
class scope
{
	tensor_scope_guard guard_ = tensor_scope_enter();

      public:
	scope() = default;
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;

	~scope()
	{
		tensor_scope_leave(&guard_);
	}
};

/* While it exists, operators of this thread record a graph, or do not. */
class grad_mode
{
	tensor_grad_guard guard_;

      public:
	explicit grad_mode(flag enabled) : guard_(tensor_grad_enter(enabled))
	{
	}

	explicit grad_mode(tensor_grad_guard guard) : guard_(guard)
	{
	}

	grad_mode(const grad_mode &) = delete;
	grad_mode &operator=(const grad_mode &) = delete;

	~grad_mode()
	{
		tensor_grad_leave(&guard_);
	}
};

struct no_grad : grad_mode {
	no_grad() : grad_mode(false)
	{
	}
};

struct enable_grad : grad_mode {
	enable_grad() : grad_mode(true)
	{
	}
};

/* As no_grad, and faster; tensors made meanwhile cannot be changed or saved for a backward afterwards. */
struct inference_mode : grad_mode {
	inference_mode() : grad_mode(tensor_inference_enter(true))
	{
	}
};

/* A backward that computes a NaN throws, with the place of the operator that it belongs to. */
struct anomaly_mode : grad_mode {
	anomaly_mode() : grad_mode(tensor_anomaly_enter(true))
	{
	}
};

/*
 * Gradients of the sum of the outputs with respect to the inputs; leaves keep theirs. An element is empty where no
 * output depends on the input. flags: TENSOR_RETAIN_GRAPH, TENSOR_CREATE_GRAPH
 */
inline std::vector<Tensor> grad(const tensors &outputs, const tensors &inputs, bits flags = 0)
{
	tensor_list_arg of = outputs, by = inputs;
	std::vector<::tensor *> none(static_cast<std::size_t>(of.len)),
		found(static_cast<std::size_t>(by.len));
	std::vector<Tensor> list;

	check(tensor_backward_ex(of, none.data(), by, found.data(), flags.flags()));
	for (::tensor *t : found)
		list.push_back(Tensor::maybe(t));
	return list;
}

/* ---- between processes: see also channel.hpp ---- */

/* A tensor on the memory behind a descriptor, which stays the caller's. */
inline Tensor from_buffer_fd(int fd, enum tensor_dtype type = TENSOR_DTYPE_NONE,
			     const ints &size = ints::none(), integer offset = 0)
{
	return Tensor::result(tensor_from_buffer_fd(fd, type, size, offset));
}

/* ---- files ---- */

inline Tensor load_npy(const text &path)
{
	return Tensor::result(tensor_load_npy(path.c_str("load_npy: argument path"), nullptr));
}

inline void save_npy(const text &path, const Tensor &t)
{
	check(tensor_save_npy(path.c_str("save_npy: argument path"), t.get()));
}

} /* namespace libtensor */

#endif
