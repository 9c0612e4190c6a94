/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Optimizers, clipping, averages of parameters and mixed precision of <tensor/optim.h> in C++17.
 *
 *	Optim optim(m.parameters(), adam(1e-3).weight_decay(0.01));
 *
 *	optim.zero_grad();
 *	loss.backward();
 *	clip_grad_norm(m.parameters(), 1);
 *	optim.step();
 *
 * Functions that fail throw libtensor::error.
 */
#ifndef TENSOR_OPTIM_HPP
#define TENSOR_OPTIM_HPP

#include <tensor/module.hpp>
#include <tensor/optim.h>

#include <cmath>
#include <memory>
#include <string>

namespace libtensor
{

/* The method and options of an optimizer. What is not set has PyTorch's default. */
class optim_options
{
	tensor_optim_options o_{};

	/* In the struct 0 means the default. */
	static double number(double v)
	{
		return v == 0 ? TENSOR_OPTIM_ZERO : v;
	}

      public:
	explicit optim_options(tensor_optim_method method)
	{
		o_.method = static_cast<std::uint8_t>(method);
	}

	/* Those of the C interface. */
	optim_options(const tensor_optim_options &o) : o_(o)
	{
	}

	operator tensor_optim_options() const
	{
		return o_;
	}

#define LIBTENSOR_NUMBER(name)        \
	optim_options &name(double v) \
	{                             \
		o_.name = number(v);  \
		return *this;         \
	}
#define LIBTENSOR_FLAG(name)               \
	optim_options &name(flag v = true) \
	{                                  \
		o_.name = v;               \
		return *this;              \
	}
	LIBTENSOR_NUMBER(lr)
	LIBTENSOR_NUMBER(weight_decay)
	LIBTENSOR_NUMBER(eps)
	LIBTENSOR_NUMBER(alpha)
	LIBTENSOR_NUMBER(lr_decay)
	LIBTENSOR_NUMBER(initial_accumulator)
	LIBTENSOR_NUMBER(dampening)
	LIBTENSOR_FLAG(maximize)
	LIBTENSOR_FLAG(nesterov)
	LIBTENSOR_FLAG(amsgrad)
	LIBTENSOR_FLAG(centered)
#undef LIBTENSOR_NUMBER
#undef LIBTENSOR_FLAG

	optim_options &momentum(double v)
	{
		o_.momentum = v;
		return *this;
	}

	optim_options &betas(double beta1, double beta2)
	{
		o_.beta1 = number(beta1);
		o_.beta2 = number(beta2);
		return *this;
	}
};

inline optim_options sgd(double lr)
{
	return optim_options(TENSOR_OPTIM_SGD).lr(lr);
}

inline optim_options adam(double lr = 1e-3)
{
	return optim_options(TENSOR_OPTIM_ADAM).lr(lr);
}

inline optim_options adamw(double lr = 1e-3)
{
	return optim_options(TENSOR_OPTIM_ADAMW).lr(lr);
}

inline optim_options adagrad(double lr = 1e-2)
{
	return optim_options(TENSOR_OPTIM_ADAGRAD).lr(lr);
}

inline optim_options rmsprop(double lr = 1e-2)
{
	return optim_options(TENSOR_OPTIM_RMSPROP).lr(lr);
}

/* An optimizer over groups of parameters. */
class Optim
{
	std::unique_ptr<tensor_optim, decltype(&tensor_optim_free)> o_;

      public:
	Optim(const tensors &params, const optim_options &options)
	    : o_(check(tensor_optim_new(params, options)), tensor_optim_free)
	{
	}

	/* Returns the number of the group. */
	int add_group(const tensors &params, const optim_options &options)
	{
		return static_cast<int>(check(tensor_optim_add_group(get(), params, options)));
	}

	tensor_optim *get() const noexcept
	{
		return o_.get();
	}

	void step()
	{
		check(tensor_optim_step(get()));
	}

	void zero_grad()
	{
		check(tensor_optim_zero_grad(get()));
	}

	double lr(int group = 0) const
	{
		const double lr = tensor_optim_lr(get(), group);

		if (std::isnan(lr))
			check(-tensor_last_error()->code);
		return lr;
	}

	/* Of one group, or of all for -1. */
	void set_lr(double lr, int group = -1)
	{
		check(tensor_optim_set_lr(get(), group, lr));
	}

	/* The rates after this number of steps. */
	void apply(const tensor_schedule &schedule, std::int64_t step)
	{
		check(tensor_schedule_apply(&schedule, get(), step));
	}

	/* Processes that are forked then use the same state. */
	void share_memory()
	{
		check(tensor_optim_share_memory(get()));
	}

	/* State and options, without the parameters. */
	void save(const std::string &path) const
	{
		check(tensor_optim_save(get(), path.c_str()));
	}

	/* Reads its part of a file of save() or save_training(). */
	void load(const std::string &path)
	{
		check(tensor_optim_load(get(), path.c_str()));
	}
};

/* One file for both; m.load() and optim.load() read it. */
inline void save_training(const Module &m, const Optim &optim, const std::string &path)
{
	check(tensor_training_save(m.get(), optim.get(), path.c_str()));
}

/* Returns the norm before. */
inline double clip_grad_norm(const tensors &params, double max_norm, double norm_type = 2,
			     flag error_if_nonfinite = false)
{
	double norm = 0;

	check(tensor_clip_grad_norm_(params, max_norm, norm_type, error_if_nonfinite, &norm));
	return norm;
}

inline void clip_grad_value(const tensors &params, double limit)
{
	check(tensor_clip_grad_value_(params, limit));
}

/* Exponential moving averages of parameters. */
class Ema
{
	std::unique_ptr<tensor_ema, decltype(&tensor_ema_free)> e_;

      public:
	Ema(const tensors &params, double decay)
	    : e_(check(tensor_ema_new(params, decay)), tensor_ema_free)
	{
	}

	tensor_ema *get() const noexcept
	{
		return e_.get();
	}

	void update()
	{
		check(tensor_ema_update(get()));
	}

	/* Exchanges parameters and averages. */
	void swap()
	{
		check(tensor_ema_swap(get()));
	}

	Tensor average(std::int64_t i) const
	{
		return Tensor::borrowed(check(tensor_ema_average(get(), i)));
	}
};

/* While it exists, operators of this thread compute in bf16 or f16 where that is precise enough. */
class autocast
{
	tensor_autocast_guard guard_;

      public:
	explicit autocast(enum tensor_dtype to) : guard_(tensor_autocast_enter(to))
	{
		if (!guard_.entered)
			check(-tensor_last_error()->code);
	}

	autocast(const autocast &) = delete;
	autocast &operator=(const autocast &) = delete;

	~autocast()
	{
		tensor_autocast_leave(&guard_);
	}
};

} /* namespace libtensor */

#endif
