/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A part of <tensor/tensor.hpp>: shapes, and the types of parameters that are lists. They own their elements, so that
 * `ints size = { 2, 3 };` is a variable like any other. The lists of the C interface borrow, so that a temporary does not
 * convert to one.
 */
#ifndef TENSOR_LISTS_HPP
#define TENSOR_LISTS_HPP

#include <tensor/numbers.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <ostream>
#include <vector>

namespace libtensor
{

/* Sizes of its own: shape{2, 3}. */
class shape
{
	int64_t sizes_[TENSOR_MAX_DIMS] = {};
	int64_t dims_ = 0;

      public:
	shape() = default;

	shape(std::initializer_list<integer> sizes) : shape(sizes.begin(), sizes.end())
	{
	}

	template <class Iterator,
		  class = if_converts<decltype(*std::declval<Iterator &>()), integer>>
	shape(Iterator begin, Iterator end)
	{
		for (; begin != end; ++begin) {
			if (dims_ == TENSOR_MAX_DIMS)
				throw_error(EINVAL, "shape: there are at most 16 dimensions");
			sizes_[dims_++] = integer(*begin);
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

	/* A negative index counts from the end. */
	int64_t operator[](integer dimension) const
	{
		const int64_t i = dimension;

		if (i < -dims_ || i >= dims_)
			throw_error(EINVAL,
				    "shape: dimension " + std::to_string(i) + " is out of range");
		return sizes_[i < 0 ? i + dims_ : i];
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

/* The elements of a container or an array: const T & */
template <class R> using element_of = decltype(*std::begin(std::declval<const R &>()));

/* Whether R is a container or an array of elements that convert to Item. */
template <class R, class Item, class = void> inline constexpr bool is_list_of = false;
template <class R, class Item>
inline constexpr bool is_list_of<R, Item, std::void_t<element_of<R>>> =
	std::is_convertible_v<element_of<R>, Item>;

/*
 * Numbers, for an argument declared int[] or float[]: braces, a container, or one number. Struct is the type in the C
 * interface, T that of its elements and Item the type of an element that the caller writes.
 */
template <class Struct, class T, class Item> class list_of
{
	static constexpr std::size_t room = 16;

	T few_[room]; /* the elements if there are at most room of them; the rest has no value */
	std::vector<T> many_; /* otherwise */
	std::size_t len_ = 0;
	bool given_ = true;

	const T *data() const
	{
		return len_ > room ? many_.data() : few_;
	}

	template <class Iterator> void assign(Iterator begin, Iterator end)
	{
		T *to = few_;

		len_ = static_cast<std::size_t>(std::distance(begin, end));
		if (len_ > room) {
			many_.resize(len_);
			to = many_.data();
		}
		for (; begin != end; ++begin)
			*to++ = Item(*begin);
	}

      public:
	list_of()
	{
	}

	list_of(std::initializer_list<Item> list)
	{
		assign(list.begin(), list.end());
	}

	template <class R, class = std::enable_if_t<is_list_of<R, Item>>> list_of(const R &list)
	{
		assign(std::begin(list), std::end(list));
	}

	template <class N, class = if_converts<N, Item>> list_of(N one) : len_(1)
	{
		few_[0] = Item(one);
	}

	list_of(const Struct &list) : given_(list.len >= 0)
	{
		if (given_)
			assign(list.data, list.data + list.len);
	}

	list_of(const list_of &other) : given_(other.given_)
	{
		assign(other.data(), other.data() + other.len_);
	}

	list_of &operator=(const list_of &other)
	{
		given_ = other.given_;
		if (this != &other)
			assign(other.data(), other.data() + other.len_);
		return *this;
	}

	/* An optional list that is not given. */
	static list_of none()
	{
		return list_of(Struct{ nullptr, -1 });
	}

	operator tensor_literal::argument<Struct, T>() const &
	{
		return Struct{ data(), given_ ? static_cast<int64_t>(len_) : -1 };
	}
	operator tensor_literal::argument<Struct, T>() const && = delete;
};

using ints = list_of<tensor_ints, int64_t, integer>;
using floats = list_of<tensor_floats, double, floating>;

/* Numbers, for an argument declared Scalar[]. */
class scalars
{
	std::vector<tensor_scalar> values_;

      public:
	scalars(std::initializer_list<scalar> list) : values_(list.begin(), list.end())
	{
	}

	template <class R, class = std::enable_if_t<is_list_of<R, scalar>>> scalars(const R &list)
	{
		for (const auto &number : list)
			values_.push_back(scalar(number));
	}

	operator tensor_scalars_arg() const &
	{
		return tensor_scalars{ values_.data(), static_cast<int64_t>(values_.size()) };
	}
	operator tensor_scalars_arg() const && = delete;
};

/* Tensors: braces, or a container of them. An empty one stands for "not given" where the operator permits it. */
class tensors
{
	std::vector<handle> owned_;
	std::vector<::tensor *> list_; /* those of owned_, or tensor_none */

	template <class R> void assign(const R &list)
	{
		for (const handle &t : list) {
			owned_.push_back(t);
			list_.push_back(given(t));
		}
	}

      public:
	tensors(std::initializer_list<handle> list)
	{
		assign(list);
	}

	template <class R, class = std::enable_if_t<is_list_of<R, const handle &>>>
	tensors(const R &list)
	{
		assign(list);
	}

	operator tensor_list_arg() const &
	{
		return tensor_list{ list_.data(), static_cast<int64_t>(list_.size()) };
	}
	operator tensor_list_arg() const && = delete;
};

} /* namespace libtensor */

#endif
