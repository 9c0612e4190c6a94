// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Optimizers, clipping, averages and autocast in C++. */
#include <tensor/optim.hpp>

#include "check.hpp"

#include <cstdio>
#include <unistd.h>

using namespace libtensor;

static const std::string path = "/tmp/test-cpp-optim-" + std::to_string(getpid());

static Tensor net(const Module &m, const Tensor &x)
{
	return m.linear("out", m.linear("fc", x, 4).tanh(), 2);
}

static double step(const Module &m, Optim &optim)
{
	const Tensor loss = net(m, ones({ 3, 2 }, f64)).square().mean();

	optim.zero_grad();
	loss.backward();
	optim.step();
	return loss.item<double>();
}

TEST(steps_are_those_of_the_options)
{
	Tensor w = full({ 1 }, 1.0, f64).set_requires_grad();
	Optim optim({ w }, sgd(0.5).momentum(0.5).weight_decay(0));

	for (int i = 0; i < 2; i++) {
		optim.zero_grad();
		w.sum().backward();
		optim.step();
	}
	CHECK(w.item<double>() == 1 - 0.5 - 0.5 * 1.5);
	CHECK(optim.lr() == 0.5);
	optim.set_lr(0.25);
	CHECK(optim.lr() == 0.25);
	CHECK_THROWS(error, optim.lr(1));
	CHECK_THROWS(error, optim.set_lr(-1));
	CHECK_THROWS(error, Optim({ w }, sgd(0.1).nesterov()));
	CHECK_THROWS(error, Optim({ w, w }, adam()));
	CHECK(optim.add_group({ ones({ 2 }, f64).set_requires_grad() }, sgd(0)) == 1);
	CHECK(optim.lr(1) == 0);
	/* Zero is zero, not the default. */
	tensor_optim_options o = adamw().weight_decay(0).betas(0, 0.5).eps(0);
	CHECK(o.weight_decay == TENSOR_OPTIM_ZERO && o.beta1 == TENSOR_OPTIM_ZERO);
	CHECK(o.beta2 == 0.5 && o.method == TENSOR_OPTIM_ADAMW);
}

TEST(training_goes_on_from_a_file)
{
	Module m(f64), again(f64);

	net(m, ones({ 3, 2 }, f64));
	net(again, ones({ 3, 2 }, f64));
	Optim optim(m.parameters(), adam(0.1)), after(again.parameters(), adam());
	step(m, optim);
	save_training(m, optim, path);
	again.load(path, TENSOR_LOAD_STRICT);
	after.load(path);
	std::remove(path.c_str());
	for (int i = 0; i < 3; i++)
		CHECK(step(m, optim) == step(again, after));
	CHECK_THROWS(error, after.load(path));
}

TEST(gradients_are_clipped)
{
	Tensor w = full({ 4 }, 3.0, f64).set_requires_grad();

	w.square().sum().backward();
	CHECK(clip_grad_norm({ w }, 6) == 12);
	CHECK(w.grad()[0].item<double>() < 3.0001 && w.grad()[0].item<double>() > 2.999);
	clip_grad_value({ w }, 1);
	CHECK(w.grad()[0].item<double>() == 1);
	CHECK_THROWS(error, clip_grad_value({ w }, -1));
}

TEST(averages_follow_the_parameters)
{
	Tensor w = full({ 1 }, 1.0, f64).set_requires_grad();
	Ema ema({ w }, 0.5);
	{
		no_grad guard;
		w.fill_(3);
	}
	ema.update();
	CHECK(ema.average(0).item<double>() == 2);
	ema.swap();
	CHECK(w.item<double>() == 2);
	ema.swap();
	CHECK(w.item<double>() == 3);
	CHECK_THROWS(error, ema.average(1));
	CHECK_THROWS(error, Ema({ w }, 1));
}

TEST(autocast_lasts_for_a_block)
{
	Tensor x = ones({ 2, 2 }, f32);
	{
		autocast mixed(bf16);
		CHECK(mm(x, x).dtype() == TENSOR_BF16);
	}
	CHECK(mm(x, x).dtype() == TENSOR_F32);
	CHECK_THROWS(error, autocast wrong(f32));
}
