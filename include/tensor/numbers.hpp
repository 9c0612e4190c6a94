/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A part of <tensor/tensor.hpp>: the types of parameters that are one value. Each is made from the C++ types that mean
 * the same and from no type that only converts to it, so that sum(0, f64) does not compile instead of taking f64 for a
 * true keepdim.
 */
#ifndef TENSOR_NUMBERS_HPP
#define TENSOR_NUMBERS_HPP

#include <tensor/handle.hpp>

#include <climits>
#include <optional>

namespace libtensor
{

template <class T, class... Types>
inline constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

/* The integer types without bool and characters. int8_t and uint8_t are integers. */
template <class T>
inline constexpr bool is_integer = std::is_integral_v<T> && sizeof(T) <= sizeof(int64_t) &&
				   !is_one_of<T, bool, char, wchar_t, char16_t, char32_t>;
#ifdef __cpp_char8_t
template <> inline constexpr bool is_integer<char8_t> = false;
#endif

/* An argument declared int: any integer. EOVERFLOW where it is no int64_t. */
class integer
{
	int64_t value_;

      public:
	template <class T, class = std::enable_if_t<is_integer<T>>>
	constexpr integer(T value) : value_(static_cast<int64_t>(value))
	{
		if (std::is_unsigned_v<T> && value_ < 0)
			throw_error(EOVERFLOW, "integer: " + std::to_string(value) +
						       " is above the greatest int64_t");
	}

	constexpr operator int64_t() const
	{
		return value_;
	}
};

/* An argument declared float: any real number. */
class floating
{
	double value_;

      public:
	template <class T, class = std::enable_if_t<is_integer<T> || std::is_floating_point_v<T>>>
	constexpr floating(T value) : value_(static_cast<double>(value))
	{
	}

	constexpr operator double() const
	{
		return value_;
	}
};

/* A bool and nothing that converts to one. */
class flag
{
	bool value_;

      public:
	template <class T, class = std::enable_if_t<std::is_same_v<T, bool>>>
	constexpr flag(T value) : value_(value)
	{
	}

	constexpr operator bool() const
	{
		return value_;
	}
};

/* Bits that are combined with |, as TENSOR_SEND_READONLY, and masks declared bool[]. */
class bits
{
	uint64_t value_;

      public:
	template <class T, class = std::enable_if_t<is_integer<T>>>
	constexpr bits(T value) : value_(static_cast<uint64_t>(value))
	{
	}

	constexpr uint64_t mask() const
	{
		return value_;
	}

	unsigned flags() const
	{
		if (value_ > UINT_MAX)
			throw_error(EINVAL, "flags: there is no bit above bit 31");
		return static_cast<unsigned>(value_);
	}
};

/* An argument declared int?, float? or bool?: what converts to T, a std::optional of it, {} or std::nullopt. */
template <class T> class optional_of
{
	std::optional<T> value_;

      public:
	optional_of() = default;

	optional_of(std::nullopt_t)
	{
	}

	template <class V, class = std::enable_if_t<std::is_convertible_v<V, T>>>
	optional_of(V value) : value_(T(value))
	{
	}

	template <class V, class = std::enable_if_t<std::is_convertible_v<V, T>>>
	optional_of(const std::optional<V> &value)
	{
		if (value)
			value_ = T(*value);
	}

	const std::optional<T> &get() const
	{
		return value_;
	}
};

using optional_integer = optional_of<integer>;
using optional_floating = optional_of<floating>;
using optional_flag = optional_of<flag>;

/* The values in the C interface, where some stand for "not given". */
inline int64_t given(const optional_integer &value)
{
	return value.get() ? static_cast<int64_t>(*value.get()) : TENSOR_NONE;
}

inline int64_t given(const optional_flag &value)
{
	return value.get() ? static_cast<int64_t>(*value.get()) : TENSOR_NONE;
}

inline double given(const optional_floating &value)
{
	return value.get() ? static_cast<double>(*value.get()) : TENSOR_NO_FLOAT;
}

/* A number, for an argument declared Scalar. */
class scalar
{
	tensor_scalar value_ = {};

      public:
	scalar() = default; /* not given */

	scalar(tensor_scalar value) : value_(value)
	{
	}

	template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
	scalar(T value) : value_(tensor_literal::number(value))
	{
	}

	template <class T>
	scalar(std::complex<T> value)
	    : value_(tensor_scalar_complex(static_cast<double>(value.real()),
					   static_cast<double>(value.imag())))
	{
	}

	operator tensor_scalar() const
	{
		return value_;
	}
};

/* For an argument declared Scalar?. */
class optional_scalar : public scalar
{
      public:
	using scalar::scalar;

	optional_scalar() = default;

	optional_scalar(const scalar &number) : scalar(number)
	{
	}

	optional_scalar(std::nullopt_t)
	{
	}
};

/* For an argument declared Scalar, which has to be given. which: "add.Scalar: argument other" */
inline tensor_scalar needed(const scalar &number, const char *which)
{
	const tensor_scalar value = number;

	if (value.kind == TENSOR_SCALAR_NONE)
		throw_error(EINVAL, std::string(which) + " is an empty scalar");
	return value;
}

/* A string, for an argument declared str or str?. The number 0 is no null pointer here. */
class text
{
	std::optional<std::string> value_;

      public:
	text() = default; /* not given */

	text(std::nullopt_t)
	{
	}

	/* std::string, std::string_view, std::filesystem::path. A template, because { 0 } is a null std::string otherwise. */
	template <class T, class = std::enable_if_t<std::is_class_v<T> &&
						    std::is_constructible_v<std::string, const T &>>>
	text(const T &value) : value_(std::string(value))
	{
		if (value_->find('\0') != std::string::npos)
			throw_error(EINVAL, "string: there is a NUL byte in it");
	}

	/* NULL is not given. A template, because 0 is a null pointer otherwise. */
	template <class T, class = std::enable_if_t<is_one_of<T, const char *, char *>>>
	text(T value)
	{
		if (value)
			value_ = value;
	}

	/* NULL where none is given. Valid as long as this object. */
	const char *c_str() const &
	{
		return value_ ? value_->c_str() : nullptr;
	}
	const char *c_str() const && = delete;
};

/* Constrains a deduced parameter of an overload to what converts to a type of this header. */
template <class V, class T> using if_converts = std::enable_if_t<std::is_convertible_v<V, T>>;

} /* namespace libtensor */

#endif
