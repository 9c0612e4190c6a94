/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A part of <tensor/tensor.hpp>: errors as exceptions, the owner of a reference, and the dtypes of C++ types.
 */
#ifndef TENSOR_HANDLE_HPP
#define TENSOR_HANDLE_HPP

#include <tensor/tensor.h>

#include <cerrno>
#include <complex>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

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
	tensor_error record = *tensor_last_error();

	if (!record.code) {
		record.code = EINVAL;
		std::strcpy(record.text, "the call failed and left no error record");
	}
	tensor_clear_error();
	throw error(record);
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

	/* Takes over a reference that the caller owns. The number 0 is no null pointer here. */
	template <class T, class = std::enable_if_t<std::is_same_v<T, ::tensor *>>>
	explicit handle(T owned) noexcept : t_(owned)
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

/*
 * An integer type has its size and sign: long and long long are both i64 where both have 8 bytes. There is none for
 * __int128, which is an integer type with -std=gnu++17.
 */
template <class T> constexpr dtype integer_dtype()
{
	constexpr dtype of_signed[] = { i8, i16, i32, i64 }, of_unsigned[] = { u8, u16, u32, u64 };
	constexpr int i = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;

	return std::is_signed_v<T> ? of_signed[i] : of_unsigned[i];
}

template <class T>
struct dtype_traits<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> &&
					sizeof(T) <= sizeof(int64_t)>>
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

} /* namespace libtensor */

#endif
