/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A part of <tensor/tensor.hpp>: the members of class Tensor that are not operators. T is Tensor; <tensor/ops.hpp>,
 * which is generated, derives it from tensor_base<Tensor>.
 */
#ifndef TENSOR_BASE_HPP
#define TENSOR_BASE_HPP

#include <tensor/arguments.hpp>

#include <cmath>
#include <limits>

#if defined(__has_include) && __cplusplus > 201703L
#if __has_include(<span>)
#include <span>
#endif
#endif

namespace libtensor
{

/* ---- results ---- */

/* The results of an operator that returns Tensor[]: call(results, room) gives their number, or ENOSPC. */
template <class T, class Call> std::vector<T> results_of(Call call)
{
	std::vector<T> list;
	std::vector<::tensor *> found(16);
	int n;

	while ((n = call(found.data(), static_cast<int64_t>(found.size()))) == -ENOSPC &&
	       found.size() < 1u << 24) {
		tensor_clear_error();
		found.assign(found.size() * 8, nullptr);
	}
	check(n);
	list.reserve(static_cast<std::size_t>(n));
	for (int i = 0; i < n; i++)
		list.push_back(T::maybe(found[static_cast<std::size_t>(i)]));
	return list;
}

/* ---- tensors ---- */

template <class T> class tensor_base : public handle
{
	const T &self() const
	{
		return static_cast<const T &>(*this);
	}

	void check_defined(const char *function) const
	{
		if (!defined())
			throw_error(EINVAL, std::string(function) + ": the tensor is empty");
	}

	void check_dtype(const char *function, enum tensor_dtype want) const
	{
		check_defined(function);
		if (dtype() != want)
			throw_error(EINVAL, std::string(function) + ": the tensor is " +
						    tensor_dtype_name(dtype()) + ", not " +
						    tensor_dtype_name(want));
	}

	/* The result of tensor_data() or tensor_mutable_data(). NULL is an address of no elements only. */
	template <class Call> auto address(const char *function, Call call) const
	{
		auto *pointer = call(get());

		if (!pointer && (numel() || layout() != TENSOR_STRIDED)) {
			tensor_clear_error();
			if (!call(get()) && tensor_last_error()->code)
				throw_error();
			throw_error(EOPNOTSUPP,
				    std::string(function) +
					    ": the elements have no address for the CPU");
		}
		return pointer;
	}

	/* A number as the integer type X. 2 to the power of X's bits is a double also where X's greatest value is not. */
	template <class X, class N> static X item_as(N number)
	{
		using limits = std::numeric_limits<X>;
		bool fits;

		if constexpr (std::is_floating_point_v<N>)
			fits = std::trunc(number) >= static_cast<N>(limits::min()) &&
			       std::trunc(number) < std::ldexp(N(1), limits::digits);
		else if constexpr (std::is_signed_v<N> && std::is_unsigned_v<X>)
			fits = number >= 0 && static_cast<std::uint64_t>(number) <= limits::max();
		else if constexpr (std::is_signed_v<N>)
			fits = number >= limits::min() && number <= limits::max();
		else
			fits = number <= static_cast<std::uint64_t>(limits::max());
		if (!fits)
			throw_error(EOVERFLOW, "item: the element " + std::to_string(number) +
						       " is beyond the range of the type");
		return static_cast<X>(number);
	}

	/* Row-major, on the CPU, of this dtype. */
	T as(enum tensor_dtype want) const
	{
		return self().to(options(want).device(cpu));
	}

      public:
	using handle::handle;

	/* ---- from the C interface ---- */

	/* Owns the result of an operator, also inside a tensor_scope. Throws for NULL. */
	static T result(::tensor *t)
	{
		return T(tensor_keep(check(t)));
	}

	/* The same for a result that may be missing. */
	static T maybe(::tensor *t)
	{
		return T(tensor_keep(t));
	}

	/* Another reference of a tensor that belongs to somebody else. */
	static T borrowed(::tensor *t)
	{
		return T(tensor_retain(t));
	}

	/* ---- what it is ---- */

	int64_t dim() const
	{
		return tensor_dim(get());
	}

	/* The dimension may be negative. */
	int64_t size(integer dimension) const
	{
		check_defined("size");
		if (dimension < -dim() || dimension >= dim())
			throw_error(EINVAL, "size: dimension " + std::to_string(dimension) +
						    " is out of range");
		return tensor_size(get(), static_cast<int>(dimension));
	}

	shape sizes() const
	{
		return dim() < 0 ? shape() :
				   shape(tensor_sizes(get()), tensor_sizes(get()) + dim());
	}

	shape strides() const
	{
		return dim() < 0 ? shape() :
				   shape(tensor_strides(get()), tensor_strides(get()) + dim());
	}

	int64_t numel() const
	{
		return tensor_numel(get());
	}

	enum tensor_dtype dtype() const
	{
		return tensor_dtype(get());
	}

	tensor_device device() const
	{
		return tensor_get_device(get());
	}

	enum tensor_layout layout() const
	{
		return tensor_layout(get());
	}

	bool is_contiguous() const
	{
		return tensor_is_contiguous(get());
	}

	bool is_writable() const
	{
		return tensor_is_writable(get());
	}

	bool is_same(const T &other) const
	{
		return get() == other.get();
	}

	bool shares_storage(const T &other) const
	{
		return tensor_shares_storage(get(), other.get());
	}

	/* ---- elements ---- */

	/*
	 * The first element. EINVAL where X is not the type of an element, EOPNOTSUPP where the elements have no
	 * address: of a sparse or blocked tensor, and of one on a device whose memory the CPU does not reach.
	 */
	template <class X> const X *data() const
	{
		check_dtype("data", dtype_of<X>);
		return static_cast<const X *>(address("data", tensor_data));
	}

	/* The same for writing. EACCES where the memory is mapped read-only. */
	template <class X> X *mutable_data() const
	{
		check_dtype("mutable_data", dtype_of<X>);
		return static_cast<X *>(address("mutable_data", tensor_mutable_data));
	}

#ifdef __cpp_lib_span
	/* All elements of a contiguous tensor on the CPU, without a copy. */
	template <class X> std::span<const X> span() const
	{
		check_defined("span");
		if (!is_contiguous())
			throw_error(EINVAL, "span: the tensor is not contiguous");
		return { data<X>(), static_cast<std::size_t>(numel()) };
	}
#endif

	/*
	 * The one element, converted to X. EINVAL with more or fewer elements, EOVERFLOW where X is an integer type
	 * whose range the element is not in. A fraction is cut off.
	 */
	template <class X> X item() const
	{
		tensor_scalar value = {};

		check_defined("item");
		check(tensor_item_scalar(get(), &value));
		const bool is_int = value.kind == TENSOR_SCALAR_BOOL ||
				    value.kind == TENSOR_SCALAR_INT;

		if constexpr (std::is_same_v<X, bool>) {
			return is_int ? value.i != 0 : value.d != 0 || value.imag != 0;
		} else if constexpr (std::is_integral_v<X>) {
			/* A u64 above the greatest i64 is a rounded float in a scalar. */
			if (dtype() == TENSOR_U64)
				return item_as<X>(to_vector<std::uint64_t>().front());
			return is_int ? item_as<X>(value.i) : item_as<X>(value.d);
		} else if constexpr (std::is_floating_point_v<X>) {
			return is_int ? static_cast<X>(value.i) : static_cast<X>(value.d);
		} else { /* std::complex */
			using part = typename X::value_type;

			return { static_cast<part>(is_int ? static_cast<double>(value.i) : value.d),
				 static_cast<part>(value.imag) };
		}
	}

	/* All elements in row-major order, converted to X. */
	template <class X> std::vector<X> to_vector() const
	{
		static_assert(!std::is_same_v<X, bool>,
			      "std::vector<bool> has no array of bool: use uint8_t");
		check_defined("to_vector");
		std::vector<X> values(static_cast<std::size_t>(check(numel())));

		check(tensor_copy_to(as(dtype_of<X>).get(), values.data(),
				     values.size() * sizeof(X)));
		return values;
	}

	/* Writes elements in row-major order, as many as the tensor has and of its dtype. */
	template <class R> const T &copy_from(const R &values) const &
	{
		using X = std::remove_cv_t<std::remove_pointer_t<decltype(values.data())>>;

		check_dtype("copy_from", dtype_of<X>);
		check(tensor_copy_from(get(), values.data(), values.size() * sizeof(X)));
		return self();
	}

	template <class R> T copy_from(const R &values) const &&
	{
		return copy_from(values);
	}

	/* The text that tensor_print() prints. */
	std::string str() const
	{
		if (!get())
			return "tensor()";

		std::string text(static_cast<std::size_t>(check(tensor_format(get(), nullptr, 0))),
				 '\0');

		tensor_format(get(), &text[0], text.size() + 1);
		return text;
	}

	/* ---- x[...] ---- */

	/* A view without the first dimension. */
	T operator[](integer position) const
	{
		return T::result(tensor_select(get(), 0, position));
	}

	/* Rows by their positions, or elements by a mask. */
	T operator[](const T &positions) const
	{
		return index({ positions });
	}

	/* x.index({ 0, ellipsis, range(0, 2) }) is x[0, ..., 0:2]. A view where no item is a tensor. */
	T index(std::initializer_list<subscript> items) const
	{
		const std::vector<tensor_subscript> list(items.begin(), items.end());

		return T::result(
			tensor_index_items(get(), list.data(), static_cast<int>(list.size())));
	}

	/* x[items] = value, broadcast. */
	const T &index_put_(std::initializer_list<subscript> items, const T &value) const &
	{
		const std::vector<tensor_subscript> list(items.begin(), items.end());

		check(tensor_index_put_items(get(), value.get(), list.data(),
					     static_cast<int>(list.size())));
		return self();
	}

	T index_put_(std::initializer_list<subscript> items, const T &value) const &&
	{
		return index_put_(items, value);
	}

	/* ---- differentiation ---- */

	bool requires_grad() const
	{
		return tensor_requires_grad(get());
	}

	const T &set_requires_grad(flag wanted = true) const &
	{
		check(tensor_set_requires_grad(get(), wanted));
		return self();
	}

	T set_requires_grad(flag wanted = true) const &&
	{
		return set_requires_grad(wanted);
	}

	bool is_leaf() const
	{
		return tensor_is_leaf(get());
	}

	/* Empty without a gradient. */
	T grad() const
	{
		return T::borrowed(tensor_grad(get()));
	}

	/* An empty one drops the gradient. */
	void set_grad(const T &grad) const
	{
		check(tensor_set_grad(get(), grad.get()));
	}

	void zero_grad() const
	{
		check(tensor_set_grad(get(), nullptr));
	}

	/* flags: TENSOR_RETAIN_GRAPH, TENSOR_CREATE_GRAPH */
	void backward(bits flags = 0) const
	{
		backward(T(), flags);
	}

	/* With a gradient of this tensor's shape. */
	void backward(const T &gradient, bits flags = 0) const
	{
		::tensor *output = get(), *grad = gradient.get();

		if (!output)
			throw_error(EINVAL, "backward: the tensor is empty");
		check(tensor_backward_ex(tensor_list{ &output, 1 }, &grad,
					 tensor_list{ nullptr, 0 }, nullptr, flags.flags()));
	}

	/* ---- sharing ---- */

	/* Moves the storage into a buffer that other processes can share. */
	const T &share() const &
	{
		check(tensor_share_memory(get()));
		return self();
	}

	T share() const &&
	{
		return share();
	}

	/* Names the buffer for tensorstat. */
	const T &label(const text &name) const &
	{
		check(tensor_set_label(get(), name.c_str("set_label: argument label")));
		return self();
	}

	T label(const text &name) const &&
	{
		return label(name);
	}

	/* Forbids writing to the memory, for good and to all. */
	const T &seal() const &
	{
		check(tensor_buffer_seal(get()));
		return self();
	}

	T seal() const &&
	{
		return seal();
	}

	/* A new descriptor of the buffer, the caller's. rights: TENSOR_BUFFER_* */
	int buffer_fd(bits rights) const
	{
		return check(tensor_buffer_fd(get(), rights.flags()));
	}
};

} /* namespace libtensor */

#endif
