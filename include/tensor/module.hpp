/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Modules, layers and losses of <tensor/module.h>, <tensor/layers.h> and <tensor/loss.h> in C++17.
 *
 *	Tensor net(Module m, const Tensor &x)
 *	{
 *		Tensor h = m["layer1.0"].linear("fc", x, 128).relu();
 *		return m.linear("out", h, 10);
 *	}
 *
 *	Module m(f64);
 *	Tensor l = loss::cross_entropy(net(m, x), labels);
 *
 * A Module is a tree, or a child within one; copies are the same module, and the last of them frees the
 * tree. Options are the structs of the C interface: in C++20 m.linear("fc", x, 3, { .no_bias = true }).
 * Functions that fail throw libtensor::error.
 */
#ifndef TENSOR_MODULE_HPP
#define TENSOR_MODULE_HPP

#include <tensor/tensor.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace libtensor
{

class Module
{
	std::shared_ptr<tensor_module> tree_;
	tensor_module *m_;

	Module(std::shared_ptr<tensor_module> tree, tensor_module *m)
	    : tree_(std::move(tree)), m_(m)
	{
	}

	static Tensor result(::tensor *t)
	{
		return Tensor::result(t);
	}

	std::vector<std::pair<std::string, Tensor>> named(unsigned which) const
	{
		std::vector<std::pair<std::string, Tensor>> list;
		const tensor_named *entry;
		const int64_t n = check(tensor_module_named(m_, which, &entry));

		for (int64_t i = 0; i < n; i++)
			list.emplace_back(entry[i].name, Tensor::borrowed(entry[i].t));
		return list;
	}

      public:
	/* A new tree whose parameters have this dtype and device. */
	explicit Module(const options &o = {})
	    : tree_(check(tensor_module_new(o)), tensor_module_free), m_(tree_.get())
	{
	}

	/* The child at a path. */
	Module operator[](const std::string &path) const
	{
		return Module(tree_, check(tensor_module_child(m_, path.c_str())));
	}

	tensor_module *get() const noexcept
	{
		return m_;
	}

	/* ---- parameters ---- */

	/* Zeros at first; init.h has functions for other values. */
	Tensor parameter(const std::string &path, const ints &sizes) const
	{
		return Tensor::borrowed(
			check(tensor_module_parameter(m_, path.c_str(), sizes, nullptr, nullptr)));
	}

	Tensor buffer(const std::string &path, const ints &sizes) const
	{
		return Tensor::borrowed(check(tensor_module_buffer(
			m_, path.c_str(), sizes, TENSOR_DTYPE_NONE, nullptr, nullptr)));
	}

	Tensor at(const std::string &path) const
	{
		return Tensor::borrowed(check(tensor_module_get(m_, path.c_str())));
	}

	std::vector<Tensor> parameters() const
	{
		const tensor_list list = tensor_module_parameters(m_);
		std::vector<Tensor> all;

		for (int64_t i = 0; i < list.len; i++)
			all.push_back(Tensor::borrowed(list.data[i]));
		return all;
	}

	std::vector<std::pair<std::string, Tensor>> named_parameters() const
	{
		return named(TENSOR_MODULE_PARAMETERS);
	}

	std::vector<std::pair<std::string, Tensor>> state() const
	{
		return named(TENSOR_MODULE_PARAMETERS | TENSOR_MODULE_BUFFERS);
	}

	int64_t numel() const
	{
		return check(tensor_module_numel(m_));
	}

	/* ---- modes and files ---- */

	void train(flag training = true) const
	{
		check(tensor_module_train(m_, training));
	}

	void eval() const
	{
		train(false);
	}

	bool is_training() const
	{
		return tensor_module_is_training(m_);
	}

	void set_requires_grad(flag requires_grad) const
	{
		check(tensor_module_set_requires_grad(m_, requires_grad));
	}

	void zero_grad() const
	{
		check(tensor_module_zero_grad(m_));
	}

	void to(const options &o) const
	{
		check(tensor_module_to(m_, o));
	}

	void save(const std::string &path) const
	{
		check(tensor_module_save(m_, path.c_str()));
	}

	/* flags: TENSOR_LOAD_STRICT, TENSOR_LOAD_CAST */
	void load(const std::string &path, unsigned flags = 0) const
	{
		check(tensor_module_load(m_, path.c_str(), flags));
	}

	void check_loaded() const
	{
		check(tensor_module_check_loaded(m_));
	}

	/* ---- layers ---- */

	Tensor dropout(const Tensor &x, floating p) const
	{
		return result(tensor_module_dropout(m_, x.get(), p));
	}

	Tensor embedding(const char *name, const Tensor &x, integer num, integer dim,
			 const tensor_embedding_options &o = {}) const
	{
		return result(tensor_module_embedding_opt(m_, name, x.get(), num, dim, o));
	}

/* A layer of x; of x and a number; of x and two numbers. */
#define TENSOR_LAYER_(layer, type)                                                         \
	Tensor layer(const char *name, const Tensor &x, const tensor_##type &o = {}) const \
	{                                                                                  \
		return result(tensor_module_##layer##_opt(m_, name, x.get(), o));          \
	}
#define TENSOR_LAYER_N_(layer, type)                                                            \
	Tensor layer(const char *name, const Tensor &x, integer n, const tensor_##type &o = {}) \
		const                                                                           \
	{                                                                                       \
		return result(tensor_module_##layer##_opt(m_, name, x.get(), n, o));            \
	}
#define TENSOR_LAYER_CONV_(layer)                                                              \
	Tensor layer(const char *name, const Tensor &x, integer out, integer kernel,           \
		     const tensor_conv_options &o = {}) const                                  \
	{                                                                                      \
		return result(tensor_module_##layer##_opt(m_, name, x.get(), out, kernel, o)); \
	}
	TENSOR_LAYER_N_(linear, linear_options)
	TENSOR_LAYER_CONV_(conv1d)
	TENSOR_LAYER_CONV_(conv2d)
	TENSOR_LAYER_CONV_(conv3d)
	TENSOR_LAYER_CONV_(conv_transpose2d)
	TENSOR_LAYER_(batch_norm, norm_options)
	TENSOR_LAYER_(instance_norm, norm_options)
	TENSOR_LAYER_(layer_norm, norm_options)
	TENSOR_LAYER_(rms_norm, norm_options)
	TENSOR_LAYER_N_(group_norm, norm_options)
	TENSOR_LAYER_N_(transformer_block, attention_options)
#undef TENSOR_LAYER_
#undef TENSOR_LAYER_N_
#undef TENSOR_LAYER_CONV_

	Tensor multi_head_attention(const char *name, const Tensor &query, const Tensor &key,
				    const Tensor &value, integer heads,
				    const tensor_attention_options &o = {}) const
	{
		return result(tensor_module_multi_head_attention_opt(
			m_, name, query.get(), key.get(), value.get(), heads, o));
	}

	/* Without .state: it would be a second result. */
	Tensor lstm(const char *name, const Tensor &x, integer hidden,
		    const tensor_rnn_options &o = {}) const
	{
		return result(tensor_module_lstm_opt(m_, name, x.get(), hidden, o));
	}

	Tensor gru(const char *name, const Tensor &x, integer hidden,
		   const tensor_rnn_options &o = {}) const
	{
		return result(tensor_module_gru_opt(m_, name, x.get(), hidden, o));
	}
};

namespace loss
{

#define TENSOR_LOSS_(name)                                                              \
	inline Tensor name(const Tensor &x, const Tensor &target,                       \
			   enum tensor_reduction reduction = TENSOR_REDUCTION_MEAN,     \
			   const tensor_loss_options &o = {})                           \
	{                                                                               \
		return Tensor::result(                                                  \
			tensor_loss_##name##_opt(x.get(), target.get(), reduction, o)); \
	}
TENSOR_LOSS_(cross_entropy)
TENSOR_LOSS_(nll)
TENSOR_LOSS_(mse)
TENSOR_LOSS_(l1)
TENSOR_LOSS_(smooth_l1)
TENSOR_LOSS_(huber)
TENSOR_LOSS_(bce)
TENSOR_LOSS_(bce_with_logits)
TENSOR_LOSS_(kl_div)
TENSOR_LOSS_(hinge_embedding)
TENSOR_LOSS_(soft_margin)
#undef TENSOR_LOSS_

} // namespace loss

} // namespace libtensor
#endif
