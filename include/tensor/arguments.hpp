/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A part of <tensor/tensor.hpp>: errors as exceptions, the owner of a reference, and the types of arguments that numbers,
 * braces and containers convert to.
 */
#ifndef TENSOR_ARGUMENTS_HPP
#define TENSOR_ARGUMENTS_HPP

#include <tensor/tensor.h>

#include <algorithm>
#include <cerrno>
#include <complex>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace libtensor
{

/* ---- errors ---- */

/* The thread's error record as an exception. what() is its text, "mm: mat2 must be a matrix, ...". */
class error : public std::runtime_error
{
	int code_;
	std::string op_;

      public:
	explicit error(const tensor_error &record)
	    : std::runtime_error(record.text), code_(record.code), op_(record.text)
	{
		std::size_t colon = op_.find(": ");

		op_.resize(colon == std::string::npos ? 0 : colon);
	}

	/* A positive errno value. */
	int code() const noexcept
	{
		return code_;
	}

	/* The function or operator that failed; empty where the text names none. */
	const std::string &op() const noexcept
	{
		return op_;
	}
};

/* Clears the record: an operator that gets an empty Tensor later must not report this failure again. */
[[noreturn]] inline void throw_error()
{
	error e(*tensor_last_error());

	tensor_clear_error();
	throw e;
}

[[noreturn]] inline void throw_error(int code, const std::string &text)
{
	tensor_error record = {};

	record.code = code;
	record.text[text.copy(record.text, sizeof(record.text) - 1)] = '\0';
	throw error(record);
}

/* A pointer or a count of the C interface, if it is none that stands for a failure. */
template <class T> T *check(T *pointer)
{
	if (!pointer)
		throw_error();
	return pointer;
}

template <class T, class = std::enable_if_t<std::is_integral_v<T>>> T check(T result)
{
	if (result < 0)
		throw_error();
	return result;
}

/* ---- ownership ---- */

/* Owns one reference of a tensor, or none. A copy is another reference of the same tensor. */
class handle
{
	::tensor *t_ = nullptr;

      public:
	handle() noexcept = default;

	/* Takes over a reference that the caller owns. */
	explicit handle(::tensor *owned) noexcept : t_(owned)
	{
	}

	handle(const handle &other) noexcept : t_(tensor_retain(other.t_))
	{
	}

	handle(handle &&other) noexcept : t_(std::exchange(other.t_, nullptr))
	{
	}

	/* Not on a temporary: x[0] = y would change nothing but the temporary. x[0].copy_(y) writes to x. */
	handle &operator=(handle other) &noexcept
	{
		std::swap(t_, other.t_);
		return *this;
	}

	~handle()
	{
		tensor_release(t_);
	}

	/* Borrowed, for functions of the C interface. NULL when it is empty. */
	::tensor *get() const noexcept
	{
		return t_;
	}

	/* Gives the reference to the caller. */
	::tensor *release() noexcept
	{
		return std::exchange(t_, nullptr);
	}

	/* False for an empty handle. */
	bool defined() const noexcept
	{
		return t_;
	}

	/* A comparison gives a tensor: `if (x == y)` is an error, not a test of the handle. */
	explicit operator bool() const = delete;
};

/* For an argument declared Tensor?, where an empty handle means that it is not given. */
inline ::tensor *given(const handle &t)
{
	return t.defined() ? t.get() : tensor_none;
}

/* ---- types of elements ---- */

using dtype = enum tensor_dtype;

inline constexpr dtype boolean = TENSOR_BOOL, u8 = TENSOR_U8, u16 = TENSOR_U16, u32 = TENSOR_U32,
		       u64 = TENSOR_U64, i8 = TENSOR_I8, i16 = TENSOR_I16, i32 = TENSOR_I32,
		       i64 = TENSOR_I64, f16 = TENSOR_F16, bf16 = TENSOR_BF16, f32 = TENSOR_F32,
		       f64 = TENSOR_F64, c64 = TENSOR_C64, c128 = TENSOR_C128,
		       f8_e4m3fn = TENSOR_F8_E4M3FN, f8_e5m2 = TENSOR_F8_E5M2;

/* dtype_of<T>: the dtype whose elements are of the C++ type T. */
template <class T, class = void> struct dtype_traits;

template <dtype D> struct dtype_is {
	static constexpr dtype value = D;
};

/* An integer type has its size and sign: long and long long are both i64 where both have 8 bytes. */
template <class T> constexpr dtype integer_dtype()
{
	constexpr dtype of_signed[] = { i8, i16, i32, i64 }, of_unsigned[] = { u8, u16, u32, u64 };
	constexpr int i = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;

	return std::is_signed_v<T> ? of_signed[i] : of_unsigned[i];
}

template <class T>
struct dtype_traits<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
    : dtype_is<integer_dtype<T>()> {
};

template <> struct dtype_traits<bool> : dtype_is<boolean> {
};
template <> struct dtype_traits<float> : dtype_is<f32> {
};
template <> struct dtype_traits<double> : dtype_is<f64> {
};
template <> struct dtype_traits<std::complex<float>> : dtype_is<c64> {
};
template <> struct dtype_traits<std::complex<double>> : dtype_is<c128> {
};

template <class T> inline constexpr dtype dtype_of = dtype_traits<std::remove_cv_t<T>>::value;

/* ---- arguments ---- */

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
	    : value_(tensor_scalar_complex(double(value.real()), double(value.imag())))
	{
	}

	operator tensor_scalar() const
	{
		return value_;
	}
};

/* A bool and nothing that converts to one: sum(1, true) is not sum(true, 1). */
class flag
{
	bool value_;

      public:
	template <class T, class = std::enable_if_t<std::is_same_v<T, bool>>>
	flag(T value) : value_(value)
	{
	}

	operator bool() const
	{
		return value_;
	}
};

/* Sizes of its own: shape{2, 3}. */
class shape
{
	int64_t sizes_[TENSOR_MAX_DIMS] = {};
	int64_t dims_ = 0;

      public:
	shape() = default;

	shape(std::initializer_list<int64_t> sizes) : shape(sizes.begin(), sizes.end())
	{
	}

	template <class Iterator> shape(Iterator begin, Iterator end)
	{
		for (; begin != end; ++begin) {
			if (dims_ == TENSOR_MAX_DIMS)
				throw_error(EINVAL, "shape: there are at most 16 dimensions");
			sizes_[dims_++] = static_cast<int64_t>(*begin);
		}
	}

	const int64_t *data() const
	{
		return sizes_;
	}

	std::size_t size() const
	{
		return static_cast<std::size_t>(dims_);
	}

	const int64_t *begin() const
	{
		return sizes_;
	}

	const int64_t *end() const
	{
		return sizes_ + dims_;
	}

	int64_t operator[](std::size_t i) const
	{
		return sizes_[i];
	}

	bool operator==(const shape &other) const
	{
		return std::equal(begin(), end(), other.begin(), other.end());
	}

	bool operator!=(const shape &other) const
	{
		return !(*this == other);
	}
};

inline std::ostream &operator<<(std::ostream &out, const shape &s)
{
	out << '[';
	for (std::size_t i = 0; i < s.size(); i++)
		out << (i ? ", " : "") << s[i];
	return out << ']';
}

/* Whether R has data() and size() of elements T, as std::vector, std::array and std::span have. */
template <class R, class T, class = void> inline constexpr bool is_range_of = false;
template <class R, class T>
inline constexpr bool is_range_of<R, T,
				  std::void_t<decltype(std::declval<const R &>().data()),
					      decltype(std::declval<const R &>().size())>> =
	std::is_convertible_v<decltype(std::declval<const R &>().data()), const T *>;

/*
 * A list of numbers that is borrowed for the call: braces, a container, or one number. Struct is the type in the C
 * interface.
 */
template <class Struct, class T> class list_of
{
	const T *data_ = nullptr;
	int64_t len_ = 0;
	T one_ = {}; /* a list of one that was given as a number: len_ is 1 and data_ NULL */

	static const T *first(const std::initializer_list<T> &list)
	{
		return list.begin();
	}

      public:
	list_of() = default;

	list_of(std::initializer_list<T> list)
	    : data_(first(list)), len_(static_cast<int64_t>(list.size()))
	{
	}

	template <class R, class = std::enable_if_t<is_range_of<R, T>>>
	list_of(const R &range) : data_(range.data()), len_(static_cast<int64_t>(range.size()))
	{
	}

	template <class N,
		  class = std::enable_if_t<std::is_convertible_v<N, T> && !is_range_of<N, T>>,
		  class = std::enable_if_t<!std::is_same_v<N, bool>>>
	list_of(N one) : len_(1), one_(static_cast<T>(one))
	{
	}

	list_of(Struct list) : data_(list.data), len_(list.len)
	{
	}

	/* An optional list that is not given. */
	static list_of none()
	{
		return list_of(Struct{ nullptr, -1 });
	}

	operator tensor_literal::argument<Struct, T>() const
	{
		return Struct{ len_ == 1 && !data_ ? &one_ : data_, len_ };
	}
};

using ints = list_of<tensor_ints, int64_t>;
using floats = list_of<tensor_floats, double>;

/* Numbers, for an argument declared Scalar[]. */
class scalars
{
	std::vector<tensor_scalar> values_;

      public:
	scalars(std::initializer_list<scalar> list) : values_(list.begin(), list.end())
	{
	}

	template <class R, class = decltype(std::declval<const R &>().begin())>
	scalars(const R &range) : values_(range.begin(), range.end())
	{
	}

	operator tensor_scalars_arg() const
	{
		return tensor_scalars{ values_.data(), static_cast<int64_t>(values_.size()) };
	}
};

/* Tensors: braces, or a container of them. An empty one stands for "not given" where the operator permits it. */
class tensors
{
	std::vector<::tensor *> list_;

      public:
	tensors(std::initializer_list<handle> list)
	{
		for (const handle &t : list)
			list_.push_back(t.defined() ? t.get() : tensor_none);
	}

	template <class R, class = decltype(std::declval<const R &>().begin()->get())>
	tensors(const R &range)
	{
		for (const handle &t : range)
			list_.push_back(t.defined() ? t.get() : tensor_none);
	}

	operator tensor_list_arg() const
	{
		return tensor_list{ list_.data(), static_cast<int64_t>(list_.size()) };
	}
};

/* A device. */
inline constexpr tensor_device cpu = { TENSOR_CPU, 0 };

constexpr tensor_device cuda(int index = 0)
{
	return tensor_device{ TENSOR_CUDA, static_cast<int8_t>(index) };
}

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

	options(tensor_device device)
	{
		value_.device = device;
	}

	options &dtype(enum tensor_dtype type)
	{
		value_.dtype = static_cast<uint8_t>(type);
		return *this;
	}

	options &device(tensor_device device)
	{
		value_.device = device;
		return *this;
	}

	options &layout(enum tensor_layout layout)
	{
		value_.layout = static_cast<uint8_t>(layout);
		return *this;
	}

	options &memory_format(enum tensor_memory_format format)
	{
		value_.memory_format = static_cast<uint8_t>(format);
		return *this;
	}

	options &shareable(bool yes = true)
	{
		value_.shareable = yes;
		return *this;
	}

	operator tensor_options() const
	{
		return value_;
	}
};

/* A generator of random numbers, for arguments declared Generator?. Copies share its state. */
class generator
{
	tensor_generator *g_ = nullptr;

      public:
	generator() = default; /* the process's own */

	explicit generator(uint64_t seed) : g_(check(tensor_generator_new(seed)))
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

	void manual_seed(uint64_t seed)
	{
		tensor_generator_manual_seed(g_ ? g_ : tensor_default_generator(), seed);
	}

	operator tensor_generator *() const
	{
		return g_;
	}
};

inline int64_t given(std::optional<int64_t> value)
{
	return value.value_or(TENSOR_NONE);
}

/* An optional bool is an int64_t in C. */
inline int64_t given(std::optional<bool> value)
{
	return value ? *value : TENSOR_NONE;
}

inline double given(std::optional<double> value)
{
	return value.value_or(TENSOR_NO_FLOAT);
}

} /* namespace libtensor */

#endif
