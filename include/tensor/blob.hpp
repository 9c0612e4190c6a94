/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A part of <tensor/tensor.hpp>: tensors on memory of the program.
 *
 *	auto samples = std::make_shared<std::vector<float>>(6);
 *	Tensor t = from_blob(samples->data(), { 2, 3 }, [samples](void *) {});
 *
 * Nothing is copied. The memory must stay valid until the deleter is called. That is done once, with the address, by the
 * thread that releases the last reference to the memory, including views and tensors saved by autograd, and inside that
 * function of the library: it must not wait for another thread that is in one, and must not throw (std::terminate()).
 * Without a deleter the memory must outlive all of these. If from_blob() throws, the deleter is not called, and what it
 * has captured is released.
 *
 * Strides are in elements, and may be negative; without them the elements are in row-major order. Memory of a constant
 * type is never written: is_writable() is false, and operators in place throw EACCES. Other errors are those of
 * tensor_from_blob().
 */
#ifndef TENSOR_BLOB_HPP
#define TENSOR_BLOB_HPP

#include <tensor/ops.hpp>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace libtensor
{

using blob_deleter = std::function<void(void *data)>;

inline void call_blob_deleter(void *data, void *ctx) noexcept
{
	const std::unique_ptr<blob_deleter> deleter(static_cast<blob_deleter *>(ctx));

	(*deleter)(data);
}

inline Tensor make_blob(const void *data, bool readonly, tensor_ints size, tensor_ints strides,
			const options &o, blob_deleter deleter)
{
	auto owned = deleter ? std::make_unique<blob_deleter>(std::move(deleter)) : nullptr;
	void (*fn)(void *, void *) = owned ? call_blob_deleter : nullptr;
	Tensor t = Tensor::result(
		readonly ? tensor_from_blob_readonly(data, size, strides, o, fn, owned.get()) :
			   tensor_from_blob(const_cast<void *>(data), size, strides, o, fn,
					    owned.get()));

	/* The library has it from here on. */
	(void)owned.release();
	return t;
}

/* The dtype is that of T. */
template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
Tensor from_blob(T *data, const shape &size, blob_deleter deleter = {})
{
	const ints sizes = size;

	return make_blob(data, std::is_const_v<T>, sizes, TENSOR_NO_INTS, dtype_of<T>,
			 std::move(deleter));
}

template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
Tensor from_blob(T *data, const shape &size, const ints &strides, blob_deleter deleter = {})
{
	const ints sizes = size;

	return make_blob(data, std::is_const_v<T>, sizes, strides, dtype_of<T>, std::move(deleter));
}

/* The dtype is that of the options: for elements without a type of C++. */
inline Tensor from_blob(void *data, const shape &size, const options &o, blob_deleter deleter = {})
{
	const ints sizes = size;

	return make_blob(data, false, sizes, TENSOR_NO_INTS, o, std::move(deleter));
}

inline Tensor from_blob(void *data, const shape &size, const ints &strides, const options &o,
			blob_deleter deleter = {})
{
	const ints sizes = size;

	return make_blob(data, false, sizes, strides, o, std::move(deleter));
}

inline Tensor from_blob(const void *data, const shape &size, const options &o,
			blob_deleter deleter = {})
{
	const ints sizes = size;

	return make_blob(data, true, sizes, TENSOR_NO_INTS, o, std::move(deleter));
}

inline Tensor from_blob(const void *data, const shape &size, const ints &strides, const options &o,
			blob_deleter deleter = {})
{
	const ints sizes = size;

	return make_blob(data, true, sizes, strides, o, std::move(deleter));
}

} /* namespace libtensor */

#endif
