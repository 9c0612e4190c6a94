// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Modules, layers and losses in C++. */
#include <tensor/module.hpp>

#include "check.hpp"

#include <cstdio>
#include <unistd.h>

using namespace libtensor;

static Tensor net(const Module &m, const Tensor &x)
{
	tensor_conv_options padded;
	Tensor y;

	padded.padding = 1;
	y = m["layer1.0"].conv2d("conv", x, 4, 3, padded);
	y = m["layer1.0"].batch_norm("bn", y).relu();
	return m.linear("out", m.dropout(y.flatten(1, -1), 0.1), 3);
}

TEST(a_model_trains_and_its_state_has_names)
{
	Module m(f64);
	const Tensor x = rand({ 2, 1, 4, 4 }, f64), labels = from<std::int64_t>({ 0, 2 });

	loss::cross_entropy(net(m, x), labels).backward();
	CHECK(m.parameters().size() == 6);
	CHECK(m.named_parameters()[0].first == "layer1.0.conv.weight");
	CHECK(m.state().size() == 9);
	CHECK(m.at("out.weight").grad().defined());
	CHECK(m.numel() == 36 + 4 + 8 + 3 * 64 + 3);
	m.zero_grad();
	CHECK(!m.at("out.weight").grad().defined());
	m.eval();
	CHECK(!m["layer1"].is_training());
}

TEST(a_child_keeps_its_tree)
{
	const Tensor x = ones({ 2, 3 }, f32);
	Tensor y;

	{
		const Module child = Module()["a"];

		y = child.linear("b", x, 2);
		CHECK(child.at("b.bias").numel() == 2);
	}
	CHECK(y.numel() == 4);
}

TEST(failures_are_exceptions)
{
	Module m;
	bool thrown = false;

	m.linear("a", ones({ 2, 3 }, f32), 2);
	try {
		m.linear("a", ones({ 2, 3 }, f32), 4);
	} catch (const error &e) {
		thrown = e.code() == EINVAL && e.op() == "module_linear";
	}
	CHECK(thrown);
}

TEST(files_restore_the_state)
{
	const Tensor x = rand({ 2, 1, 4, 4 }, f64);
	const std::string path = "/tmp/test-cpp-module-" + std::to_string(getpid());
	Module a(f64), b(f64);

	net(a, x);
	a.eval();
	a.save(path);
	b.load(path);
	std::remove(path.c_str());
	b.eval();
	CHECK(net(a, x).to_vector<double>() == net(b, x).to_vector<double>());
	b.check_loaded();
}
