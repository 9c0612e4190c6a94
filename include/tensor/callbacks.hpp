/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A part of <tensor/tensor.hpp>: hooks, functions with a backward of their own, checkpoints, batches.
 *
 * An exception that leaves such a function ends the backward or the call with an error; what() is its text.
 */
#ifndef TENSOR_CALLBACKS_HPP
#define TENSOR_CALLBACKS_HPP

#include <tensor/function.h>
#include <tensor/ops.hpp>
#include <tensor/vmap.h>

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace libtensor
{

/* ---- calls from C ---- */

/* Calls fn(); an exception becomes the error record of the thread. 0, or -errno. */
template <class F> int call_from_c(const char *what, F &&fn) noexcept
{
	try {
		fn();
		return 0;
	} catch (const error &e) {
		return tensor_set_error(e.code(), "%s", e.what());
	} catch (const std::bad_alloc &) {
		return tensor_set_error(ENOMEM, "%s: no memory", what);
	} catch (const std::exception &e) {
		return tensor_set_error(ECANCELED, "%s: %s", what, e.what());
	} catch (...) {
		return tensor_set_error(ECANCELED, "%s: an exception that is no std::exception",
					what);
	}
}

inline std::vector<Tensor> borrowed(::tensor *const *list, int n)
{
	std::vector<Tensor> all;

	for (int i = 0; i < n; i++)
		all.push_back(Tensor::borrowed(list[i] == tensor_none ? nullptr : list[i]));
	return all;
}

/* Results of a function in C. */
inline std::vector<Tensor> taken(const std::vector<::tensor *> &list)
{
	std::vector<Tensor> all;

	for (::tensor *t : list)
		all.push_back(Tensor::result(t));
	return all;
}

/* The tensor for a caller in C, which borrows it from the open scope. */
inline ::tensor *lend(Tensor t)
{
	return tensor_scope_add(t.release());
}

/* ---- hooks ---- */

/* A registered hook. Without it the hook stays registered. */
class hook
{
	tensor_hook *hook_ = nullptr;

      public:
	hook() noexcept = default;

	explicit hook(tensor_hook *owned) noexcept : hook_(owned)
	{
	}

	hook(hook &&other) noexcept : hook_(std::exchange(other.hook_, nullptr))
	{
	}

	hook &operator=(hook &&other) noexcept
	{
		std::swap(hook_, other.hook_);
		return *this;
	}

	~hook()
	{
		tensor_hook_release(hook_);
	}

	/* A second call does nothing. */
	void remove() noexcept
	{
		tensor_hook_remove(std::exchange(hook_, nullptr));
	}
};

template <class F> void destroy_callback(void *fn)
{
	delete static_cast<F *>(fn);
}

/* Tensor fn(Tensor) or void fn(Tensor) */
template <class F>::tensor *call_gradient_hook(::tensor *grad, void *fn)
{
	::tensor *result = grad;
	int err = call_from_c("hook", [&] {
		F &f = *static_cast<F *>(fn);

		if constexpr (std::is_void_v<decltype(f(Tensor::borrowed(grad)))>)
			f(Tensor::borrowed(grad));
		else
			result = lend(f(Tensor::borrowed(grad)));
	});

	return err ? nullptr : result;
}

template <class F> int call_leaf_hook(::tensor *leaf, void *fn)
{
	return call_from_c("hook", [&] { (*static_cast<F *>(fn))(Tensor::borrowed(leaf)); });
}

/*
 * fn gets the gradient of t before it is used: Tensor fn(Tensor) gives the one to use instead, void fn(Tensor) looks at
 * it. The function object lives as long as the graph.
 */
template <class F> hook register_hook(const Tensor &t, F fn)
{
	auto owned = std::make_unique<F>(std::move(fn));
	tensor_hook *handle = nullptr;

	check(tensor_register_hook(t.get(), call_gradient_hook<F>, owned.get(), destroy_callback<F>,
				   &handle));
	owned.release();
	return hook(handle);
}

/* void fn(Tensor leaf) runs after the gradient of a leaf was accumulated, while backward continues. */
template <class F> hook register_post_accumulate_grad_hook(const Tensor &leaf, F fn)
{
	auto owned = std::make_unique<F>(std::move(fn));
	tensor_hook *handle = nullptr;

	check(tensor_register_post_accumulate_grad_hook(leaf.get(), call_leaf_hook<F>, owned.get(),
							destroy_callback<F>, &handle));
	owned.release();
	return hook(handle);
}

/* ---- functions with a backward of their own ---- */

/* One call of a function: valid in its forward and in its backward. */
class function_context
{
	tensor_function_ctx *ctx_;

      public:
	explicit function_context(tensor_function_ctx *ctx) noexcept : ctx_(ctx)
	{
	}

	bool needs_grad(int input) const
	{
		return tensor_function_needs_grad(ctx_, input);
	}

	/* In forward. An in-place change of a saved tensor is an error of backward. */
	void save(const tensors &list)
	{
		tensor_list_arg all = list;

		check(tensor_function_save(ctx_, all));
	}

	/* In backward. */
	Tensor saved(int i) const
	{
		return Tensor::borrowed(check(tensor_function_saved(ctx_, i)));
	}

	/* In forward, before the input is changed in place. */
	void mark_dirty(const Tensor &input)
	{
		check(tensor_function_mark_dirty(ctx_, input.get()));
	}

	void mark_non_differentiable(const Tensor &output)
	{
		check(tensor_function_mark_non_differentiable(ctx_, output.get()));
	}
};

/*
 * A function with N outputs. An object of the derived class is one call; its members keep what is no tensor:
 *
 *	struct Power : function<Power> {
 *		double n;
 *
 *		Tensor forward(function_context &ctx, const Tensor &x, double exponent)
 *		{
 *			n = exponent;
 *			ctx.save({ x });
 *			return x.pow(n);
 *		}
 *		std::vector<Tensor> backward(function_context &ctx, const std::vector<Tensor> &grads)
 *		{
 *			return { grads[0] * n * ctx.saved(0).pow(n - 1) };
 *		}
 *	};
 *	Tensor y = Power::apply(x, 3.0);
 *
 * forward returns a Tensor, or a std::array<Tensor, N> for N above 1, and so does apply. The inputs are the tensors
 * among the arguments of apply, in order. backward returns a gradient for each of them, empty for none. A derived class
 * may have a name and flags (TENSOR_FUNCTION_*).
 */
template <class Derived, std::size_t N = 1> class function
{
      public:
	using result = std::conditional_t<N == 1, Tensor, std::array<Tensor, N>>;

	static constexpr const char *name = "Function";
	static constexpr unsigned flags = 0;

	template <class... Args> static result apply(const Args &...args)
	{
		auto call = std::make_unique<Derived>();
		Derived *object = call.get();
		std::vector<::tensor *> inputs;
		std::array<::tensor *, N> outputs{};

		(add_inputs(inputs, args), ...);
		object->forward_ = [&, object](function_context &ctx) {
			return object->forward(ctx, args...);
		};
		/* The object belongs to the call, also if it fails. */
		check(tensor_function_apply(&table(), call.release(), destroy_callback<Derived>,
					    tensor_list{ inputs.data(),
							 static_cast<int64_t>(inputs.size()) },
					    outputs.data(), static_cast<int>(N)));
		if constexpr (N == 1)
			return Tensor::result(outputs[0]);
		else
			return take(outputs, std::make_index_sequence<N>());
	}

      private:
	std::function<result(function_context &)> forward_; /* until forward is called */

	template <std::size_t... I>
	static result take(const std::array<::tensor *, N> &outputs, std::index_sequence<I...>)
	{
		return { Tensor::result(outputs[I])... };
	}

	template <class T> static void add_inputs(std::vector<::tensor *> &inputs, const T &arg)
	{
		if constexpr (std::is_base_of_v<handle, T>)
			inputs.push_back(given(arg));
		else if constexpr (is_list_of<T, const handle &>)
			for (const handle &t : arg)
				inputs.push_back(given(t));
	}

	static int forward_from_c(tensor_function_ctx *ctx, ::tensor *const *, int,
				  ::tensor **outputs, int)
	{
		return call_from_c(Derived::name, [&] {
			auto *object = static_cast<Derived *>(tensor_function_data(ctx));
			const auto forward = std::exchange(object->forward_, nullptr);
			function_context context(ctx);
			result results = forward(context);

			if constexpr (N == 1)
				outputs[0] = lend(std::move(results));
			else
				for (std::size_t i = 0; i < N; i++)
					outputs[i] = lend(std::move(results[i]));
		});
	}

	static int backward_from_c(tensor_function_ctx *ctx, ::tensor *const *output_grads,
				   int noutputs, ::tensor **input_grads, int ninputs)
	{
		return call_from_c(Derived::name, [&] {
			auto *object = static_cast<Derived *>(tensor_function_data(ctx));
			function_context context(ctx);
			std::vector<Tensor> grads =
				object->backward(context, borrowed(output_grads, noutputs));

			if (grads.size() != static_cast<std::size_t>(ninputs))
				throw_error(EINVAL, std::string("backward of ") + Derived::name +
							    " must return " +
							    std::to_string(ninputs) +
							    " gradients, got " +
							    std::to_string(grads.size()));
			for (int i = 0; i < ninputs; i++)
				input_grads[i] =
					lend(std::move(grads[static_cast<std::size_t>(i)]));
		});
	}

	static const tensor_function &table()
	{
		static const tensor_function functions = { Derived::name, forward_from_c,
							   backward_from_c, Derived::flags };

		return functions;
	}
};

/* ---- functions of tensors ---- */

/* Tensor fn(const std::vector<Tensor> &) */
template <class F>
int call_function(::tensor *const *inputs, int ninputs, ::tensor **outputs, int, void *fn)
{
	return call_from_c("function", [&] {
		outputs[0] = lend((*static_cast<F *>(fn))(borrowed(inputs, ninputs)));
	});
}

/*
 * fn(inputs), Tensor fn(const std::vector<Tensor> &): what it saves for backward is dropped, and computed by another call
 * when backward needs it.
 */
template <class F> Tensor checkpoint(F fn, const tensors &inputs)
{
	auto owned = std::make_unique<F>(std::move(fn));
	tensor_list_arg list = inputs;
	::tensor *output = nullptr;

	check(tensor_checkpoint(call_function<F>, owned.release(), destroy_callback<F>, list,
				&output, 1));
	return Tensor::result(output);
}

/* The dimension of an input of vmap() that has no batch. */
inline constexpr std::int64_t no_batch = TENSOR_NONE;

/*
 * fn(inputs) for every sample of a batch in one call of each operator. in_dims: the batch dimension of each input,
 * no_batch if it is the same for all samples; empty: all are 0. out_dim: that of the result.
 */
template <class F>
Tensor vmap(F fn, const tensors &inputs, const std::vector<std::int64_t> &in_dims = {},
	    std::int64_t out_dim = 0, const tensor_vmap_options &options = {})
{
	tensor_list_arg list = inputs;
	::tensor *output = nullptr;

	if (!in_dims.empty() && in_dims.size() != static_cast<std::size_t>(list.len))
		throw_error(EINVAL, "vmap: there must be one dimension for each input");
	check(tensor_vmap(call_function<F>, &fn, list, in_dims.empty() ? nullptr : in_dims.data(),
			  &output, 1, &out_dim, &options));
	return Tensor::result(output);
}

/* For each input, the derivatives of fn(inputs), with the sizes of the result followed by those of the input. */
template <class F> std::vector<Tensor> jacobian(F fn, const tensors &inputs, unsigned flags = 0)
{
	tensor_list_arg list = inputs;
	std::vector<::tensor *> found(static_cast<std::size_t>(list.len));

	check(tensor_jacobian(call_function<F>, &fn, list, 1, found.data(), flags));
	return taken(found);
}

/* The second derivatives of fn(inputs), one element, by inputs i and j at i * inputs + j. */
template <class F> std::vector<Tensor> hessian(F fn, const tensors &inputs, unsigned flags = 0)
{
	tensor_list_arg list = inputs;
	std::vector<::tensor *> found(static_cast<std::size_t>(list.len * list.len));

	check(tensor_hessian(call_function<F>, &fn, list, found.data(), flags));
	return taken(found);
}

} /* namespace libtensor */

#endif
