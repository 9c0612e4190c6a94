/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A part of <tensor/tensor.hpp>: the types of parameters that are one value. Each is made from the C++ types that mean
 * the same and from no type that only converts to it, so that sum(0, f64) does not compile instead of taking f64 for a
 * true keepdim.
 */
#ifndef TENSOR_NUMBERS_HPP
#define TENSOR_NUMBERS_HPP

#include <tensor/channel.h>
#include <tensor/group.h>
#include <tensor/handle.hpp>

#include <climits>
#include <optional>
#include <vector>

namespace libtensor
{

template <class T, class... Types>
inline constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

/* Enumerations that are types of arguments, and so no numbers: f64 is no dimension. */
template <class T>
inline constexpr bool is_enum_of_tensor =
	is_one_of<T, enum tensor_dtype, enum tensor_layout, enum tensor_device_type,
		  enum tensor_memory_format, enum tensor_reduction, enum tensor_bag_mode,
		  enum tensor_interpolation_mode, enum tensor_padding_mode, enum tensor_scalar_kind,
		  enum tensor_buffer_kind, enum tensor_map, enum tensor_subscript_kind,
		  enum tensor_fan, enum tensor_nonlinearity, enum tensor_activation,
		  enum tensor_optim_method, enum tensor_schedule_kind, enum tensor_vmap_randomness,
		  enum tensor_pool_full, enum tensor_channel_group_kind, enum tensor_group_op>;

/*
 * The arithmetic type that T stands for, or not_a_number. std::conjunction evaluates what follows only for a type that
 * the first condition is true of: whether a class of this header converts depends on this trait.
 */
struct not_a_number {
};

template <class T, class = void> struct number_traits {
	using type = not_a_number;
};

template <class T> struct number_traits<T, std::enable_if_t<std::is_arithmetic_v<T>>> {
	using type = T;
};

/* An unscoped enumeration: enum { batch, channel }; x.size(channel). It stands for what it promotes to. */
template <class T>
struct number_traits<
	T, std::enable_if_t<std::conjunction_v<std::is_enum<T>, std::is_convertible<T, int64_t>,
					       std::bool_constant<!is_enum_of_tensor<T>>>>> {
	using type = decltype(+std::declval<T>());
};

/* A class that converts to its value_type: std::true_type, std::integral_constant. */
template <class T>
struct number_traits<
	T,
	std::enable_if_t<std::conjunction_v<std::is_arithmetic<typename T::value_type>,
					    std::is_convertible<const T &, typename T::value_type>,
					    std::is_copy_constructible<T>>>> {
	using type = typename T::value_type;
};

/* An element of std::vector<bool>. */
template <> struct number_traits<std::vector<bool>::reference> {
	using type = bool;
};

template <class T> using number_type = typename number_traits<T>::type;

template <class T> inline constexpr bool is_number = std::is_arithmetic_v<number_type<T>>;

/* The integer types without bool and characters. int8_t and uint8_t are integers. */
template <class T>
inline constexpr bool is_integer_type = std::is_integral_v<T> && sizeof(T) <= sizeof(int64_t) &&
					!is_one_of<T, bool, char, wchar_t, char16_t, char32_t>;
#ifdef __cpp_char8_t
template <> inline constexpr bool is_integer_type<char8_t> = false;
#endif

template <class T> inline constexpr bool is_integer = is_integer_type<number_type<T>>;

/* An argument declared int: any integer. EOVERFLOW where it is no int64_t. */
class integer
{
	int64_t value_;

      public:
	template <class T, class = std::enable_if_t<is_integer<T>>>
	constexpr integer(T value) : value_(static_cast<int64_t>(number_type<T>(value)))
	{
		if (std::is_unsigned_v<number_type<T>> && value_ < 0)
			throw_error(EOVERFLOW, "integer: " + std::to_string(number_type<T>(value)) +
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
	template <class T, class = std::enable_if_t<is_integer<T> ||
						    std::is_floating_point_v<number_type<T>>>>
	constexpr floating(T value) : value_(static_cast<double>(number_type<T>(value)))
	{
	}

	constexpr operator double() const
	{
		return value_;
	}
};

/* A bool, an element of std::vector<bool> or std::true_type, and nothing else that converts to bool. */
class flag
{
	bool value_;

      public:
	template <class T, class = std::enable_if_t<std::is_same_v<number_type<T>, bool>>>
	constexpr flag(T value) : value_(static_cast<bool>(value))
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
	constexpr bits(T value) : value_(static_cast<uint64_t>(number_type<T>(value)))
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

	template <class T, class = std::enable_if_t<is_number<T>>>
	scalar(T value) : value_(tensor_literal::number(number_type<T>(value)))
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

	template <class V, class = std::enable_if_t<std::is_convertible_v<V, scalar>>>
	optional_scalar(const std::optional<V> &number)
	    : scalar(number ? scalar(*number) : scalar())
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

/* A string, for an argument declared str or str?. The number 0 is no null pointer here, nullptr is one. */
class text
{
	/* Not a std::optional: gcc 12 takes its string for uninitialized when it sanitizes. */
	std::string value_;
	bool given_ = false;

      public:
	text() = default; /* not given */

	text(std::nullopt_t)
	{
	}

	/* std::string, std::string_view, std::filesystem::path. A template, because { 0 } is a null std::string otherwise. */
	template <class T, class = std::enable_if_t<std::is_class_v<T> &&
						    std::is_constructible_v<std::string, const T &>>>
	text(const T &value) : value_(std::string(value)), given_(true)
	{
	}

	/* NULL is not given. A template, because 0 is a null pointer otherwise. */
	template <class T,
		  class = std::enable_if_t<is_one_of<T, const char *, char *, std::nullptr_t>>>
	text(T value)
	{
		const char *characters = value;

		given_ = characters;
		if (given_)
			value_ = characters;
	}

	template <class V, class = std::enable_if_t<std::is_convertible_v<V, text>>>
	text(const std::optional<V> &value) : text(value ? text(*value) : text())
	{
	}

	/* NULL where none is given. Valid as long as this object. which: "div.Tensor_mode: argument rounding_mode" */
	const char *c_str(const char *which = "string") const &
	{
		if (value_.find('\0') != std::string::npos)
			throw_error(EINVAL, std::string(which) + ": there is a NUL byte in it");
		return given_ ? value_.c_str() : nullptr;
	}
	const char *c_str(const char *which = "string") const && = delete;
};

/* Constrains a deduced parameter of an overload to what converts to a type of this header. */
template <class V, class T> using if_converts = std::enable_if_t<std::is_convertible_v<V, T>>;

} /* namespace libtensor */

#endif
