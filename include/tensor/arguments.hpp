/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A part of <tensor/tensor.hpp>: optional tensors, devices, the options of factories, generators, and subscripts. */
#ifndef TENSOR_ARGUMENTS_HPP
#define TENSOR_ARGUMENTS_HPP

#include <tensor/lists.hpp>

namespace libtensor
{

/* ---- tensors that may be missing ---- */

/* For an argument declared Tensor?: a tensor, a std::optional of one, or {}. An empty one is not given. */
class optional_tensor : public handle
{
      public:
	optional_tensor() = default;

	template <class V, class = if_converts<const V &, const handle &>>
	optional_tensor(const V &t) : handle(static_cast<const handle &>(t))
	{
	}

	template <class V, class = if_converts<const V &, const handle &>>
	optional_tensor(const std::optional<V> &t)
	    : handle(t ? handle(static_cast<const handle &>(*t)) : handle())
	{
	}
};

/* ---- devices ---- */

inline constexpr tensor_device cpu = { TENSOR_CPU, 0 };

constexpr tensor_device cuda(integer index = 0)
{
	if (index < 0 || index > INT8_MAX)
		throw_error(EINVAL,
			    "cuda: the index must be 0 to 127, got " + std::to_string(index));
	return tensor_device{ TENSOR_CUDA, static_cast<int8_t>(index) };
}

/* ---- options ---- */

/* The options of a factory: options(f64).device(cuda(0)).shareable(). A dtype or a device converts to it. */
class options
{
	tensor_options value_ = {};

      public:
	options() = default;

	options(tensor_options value) : value_(value)
	{
	}

	options(enum tensor_dtype type)
	{
		value_.dtype = static_cast<uint8_t>(type);
	}

	options(tensor_device where)
	{
		value_.device = where;
	}

	options &dtype(enum tensor_dtype type) &
	{
		value_.dtype = static_cast<uint8_t>(type);
		return *this;
	}

	options dtype(enum tensor_dtype type) &&
	{
		return dtype(type);
	}

	options &device(tensor_device where) &
	{
		value_.device = where;
		return *this;
	}

	options device(tensor_device where) &&
	{
		return device(where);
	}

	options &layout(enum tensor_layout kind) &
	{
		value_.layout = static_cast<uint8_t>(kind);
		return *this;
	}

	options layout(enum tensor_layout kind) &&
	{
		return layout(kind);
	}

	options &memory_format(enum tensor_memory_format format) &
	{
		value_.memory_format = static_cast<uint8_t>(format);
		return *this;
	}

	options memory_format(enum tensor_memory_format format) &&
	{
		return memory_format(format);
	}

	options &shareable(flag yes = true) &
	{
		value_.shareable = yes;
		return *this;
	}

	options shareable(flag yes = true) &&
	{
		return shareable(yes);
	}

	operator tensor_options() const
	{
		return value_;
	}
};

/* ---- generators ---- */

/* A generator of random numbers, for arguments declared Generator?. Copies share its state. */
class generator
{
	tensor_generator *g_ = nullptr;

      public:
	generator() = default; /* the process's own */

	explicit generator(bits seed) : g_(check(tensor_generator_new(seed.mask())))
	{
	}

	generator(const generator &other) : g_(tensor_generator_retain(other.g_))
	{
	}

	generator &operator=(generator other)
	{
		std::swap(g_, other.g_);
		return *this;
	}

	~generator()
	{
		tensor_generator_release(g_);
	}

	void manual_seed(bits seed)
	{
		tensor_generator_manual_seed(g_ ? g_ : tensor_default_generator(), seed.mask());
	}

	operator tensor_generator *() const
	{
		return g_;
	}
};

/* ---- subscripts ---- */

/* An argument of index(): a position, a tensor of positions or a mask, or one of the functions below. */
class subscript
{
	handle owned_;
	tensor_subscript value_;

      public:
	subscript(const tensor_subscript &value) : owned_(tensor_retain(value.t)), value_(value)
	{
	}

	template <class N, class = std::enable_if_t<is_integer<N>>>
	subscript(N position) : value_(TENSOR_I(integer(position)))
	{
	}

	subscript(const handle &t) : owned_(t), value_(TENSOR_AT(t.get()))
	{
	}

	/* Borrows the tensor. */
	operator tensor_subscript() const &
	{
		return value_;
	}
	operator tensor_subscript() const && = delete;
};

/* begin:end:step of a dimension; range() is all of it. */
inline subscript range(optional_integer begin = {}, optional_integer end = {}, integer step = 1)
{
	return TENSOR_SLICE(given(begin), given(end), step);
}

inline const tensor_subscript ellipsis = TENSOR_ELLIPSIS;
inline const tensor_subscript newaxis = TENSOR_NEWAXIS;

} /* namespace libtensor */

#endif
