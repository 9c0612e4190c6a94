/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The macros of <tensor/types.h> and <tensor/index.h> that are compound literals in C: TENSOR_SHAPE(2, 3),
 * TENSOR_OPTIONS(.dtype = TENSOR_F32), TENSOR_SCALAR(0.5). A compound literal of C++ ends with its own
 * initializer, so that a pointer into it dangles. Here a list is an object with its elements. It lives to the
 * end of the full expression, which is after the call that it is an argument of, and converts to the type of a
 * parameter only. So `tensor_ints size = TENSOR_SHAPE(2, 3);`, which would dangle, does not compile, and
 * `auto size = TENSOR_SHAPE(2, 3);` has its own elements.
 */
#ifndef TENSOR_LITERALS_HPP
#define TENSOR_LITERALS_HPP

#include <tensor/types.h>

#include <cstddef>
#include <initializer_list>
#include <type_traits>

namespace tensor_literal
{

/* N elements of its own. */
template <class Struct, class Element, int64_t N> struct list {
	Element elements[static_cast<std::size_t>(N ? N : 1)];
};

/* A parameter of the C functions: the struct that borrows elements, with the same layout and passed alike. */
template <class Struct, class Element> struct argument : Struct {
	argument(const Struct &borrowed) : Struct(borrowed)
	{
	}

	template <int64_t N>
	argument(const list<Struct, Element, N> &from) : Struct{ from.elements, N }
	{
	}
};

template <class... T> constexpr int64_t count_of = static_cast<int64_t>(sizeof...(T));

/* In C++14, which has no fold expressions. */
template <class... T> constexpr bool are_sizes()
{
	const bool each[] = { true, (!std::is_floating_point<T>::value &&
				     !std::is_same<T, bool>::value)... };

	for (bool is_size : each)
		if (!is_size)
			return false;
	return true;
}

template <class... T> constexpr list<tensor_ints, int64_t, count_of<T...>> ints(T... values)
{
	static_assert(are_sizes<T...>(), "sizes are integers");
	return { { static_cast<int64_t>(values)... } };
}

template <class... T> constexpr list<tensor_floats, double, count_of<T...>> floats(T... values)
{
	return { { static_cast<double>(values)... } };
}

template <class... T>
constexpr list<tensor_scalars, tensor_scalar, count_of<T...>> scalars(T... values)
{
	return { { values... } };
}

template <class... T> constexpr list<tensor_list, tensor *, count_of<T...>> tensors(T... values)
{
	return { { values... } };
}

template <class T>
using if_number = typename std::enable_if<std::is_arithmetic<T>::value ||
					  std::is_same<T, tensor_scalar>::value>::type;

inline tensor_scalar number(tensor_scalar value)
{
	return value;
}

/* bool, an integer or a floating-point number: the kind follows the type. */
template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>
inline tensor_scalar number(T value)
{
	static_assert(std::is_floating_point<T>::value || sizeof(T) <= sizeof(int64_t),
		      "a scalar has at most 64 bits");
	if (std::is_same<T, bool>::value)
		return tensor_scalar_bool(static_cast<bool>(value));
	if (std::is_floating_point<T>::value)
		return tensor_scalar_float(static_cast<double>(value));
	if (std::is_unsigned<T>::value)
		return tensor_scalar_uint(static_cast<uint64_t>(value));
	return tensor_scalar_int(static_cast<int64_t>(value));
}

/* An index out of range is -1, which the library refuses, instead of another device. */
template <class T> constexpr tensor_device device(tensor_device_type type, T index)
{
	static_assert(std::is_integral<T>::value, "the index is an integer");
	return tensor_device{ static_cast<int8_t>(type),
			      static_cast<T>(static_cast<int8_t>(index)) == index ?
				      static_cast<int8_t>(index) :
				      static_cast<int8_t>(-1) };
}

} /* namespace tensor_literal */

typedef tensor_literal::argument<tensor_ints, int64_t> tensor_ints_arg;
typedef tensor_literal::argument<tensor_floats, double> tensor_floats_arg;
typedef tensor_literal::argument<tensor_scalars, tensor_scalar> tensor_scalars_arg;
typedef tensor_literal::argument<tensor_list, tensor *> tensor_list_arg;

#define TENSOR_INTS(...)    tensor_literal::ints(__VA_ARGS__)
#define TENSOR_FLOATS(...)  tensor_literal::floats(__VA_ARGS__)
#define TENSOR_SCALARS(...) tensor_literal::scalars(__VA_ARGS__)
#define TENSOR_LIST(...)    tensor_literal::tensors(__VA_ARGS__)
#define TENSOR_SCALAR(x)    tensor_literal::number(x)

/* Fields in the order of their declaration, as C++ wants designated initializers. */
#define TENSOR_OPTIONS(...) (__extension__ tensor_options{ __VA_ARGS__ })

#define TENSOR_DEVICE_CPU     tensor_literal::device(TENSOR_CPU, 0)
#define TENSOR_DEVICE_CUDA(i) tensor_literal::device(TENSOR_CUDA, i)
#define TENSOR_SCALAR_SHAPE   (tensor_ints{ nullptr, 0 })
#define TENSOR_NO_INTS	      (tensor_ints{ nullptr, -1 })
#define TENSOR_NO_FLOATS      (tensor_floats{ nullptr, -1 })

#endif
