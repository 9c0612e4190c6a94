// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* <tensor/callbacks.hpp>: hooks, functions with a backward of their own, checkpoints. */
#include <tensor/tensor.hpp>

#include "check.hpp"

#include <memory>
#include <string>

using namespace libtensor;

static uint64_t live_tensors()
{
	struct tensor_live_counts counts;

	tensor_live_counts(&counts);
	return counts.tensors;
}

static Tensor leaf()
{
	return from<double>({ 1, 2 }).set_requires_grad();
}

static bool holds(const Tensor &t, const std::vector<double> &values)
{
	return t.to_vector<double>() == values;
}

/* ---- hooks ---- */

TEST(hook_replaces_or_looks_at_a_gradient)
{
	Tensor x = leaf(), y = x * 3, seen;
	hook twice = register_hook(y, [](const Tensor &grad) { return grad * 2; });
	hook look = register_hook(y, [&](const Tensor &grad) { seen = grad; });

	y.sum().backward(TENSOR_RETAIN_GRAPH);
	CHECK(holds(x.grad(), { 6, 6 }) && holds(seen, { 2, 2 }));
	twice.remove();
	twice.remove();
	x.zero_grad();
	y.sum().backward();
	CHECK(holds(x.grad(), { 3, 3 }));
}

TEST(hook_of_a_leaf_runs_after_accumulation)
{
	Tensor x = leaf();
	int calls = 0;

	register_post_accumulate_grad_hook(x, [&](const Tensor &t) {
		calls += holds(t.grad(), { 3, 3 });
		t.zero_grad();
	});
	(x * 3).sum().backward();
	CHECK(calls == 1 && !x.grad().defined());
}

TEST(function_objects_of_hooks_are_freed)
{
	uint64_t before = live_tensors();
	{
		Tensor x = leaf(), kept = ones({ 100 });

		register_hook(x, [kept](const Tensor &grad) { return grad * kept[0]; });
		CHECK_THROWS(error, register_hook(ones({ 2 }), [kept](const Tensor &) {}));
	}
	CHECK(live_tensors() == before);
}

TEST(exceptions_of_hooks_reach_the_caller)
{
	Tensor x = leaf(), y = x * 3, z = x * 3, w = x * 3;

	register_hook(y, [](const Tensor &) { throw std::runtime_error("not today"); });
	CHECK(std::string(CHECK_THROWS(error, y.sum().backward()).what()).find("not today") !=
	      std::string::npos);
	register_hook(z, [](const Tensor &grad) { return grad + ones({ 5 }); });
	CHECK(CHECK_THROWS(error, z.sum().backward()).code() == EINVAL);
	register_hook(w, [](const Tensor &) { throw 1; });
	CHECK(CHECK_THROWS(error, w.sum().backward()).code() == ECANCELED);
	CHECK(!x.grad().defined());
}

/* ---- functions ---- */

struct Power : function<Power> {
	static constexpr const char *name = "Power";
	double n = 0;

	Tensor forward(function_context &ctx, const Tensor &x, double exponent)
	{
		n = exponent;
		ctx.save({ x });
		return x.pow(n);
	}

	std::vector<Tensor> backward(function_context &ctx, const std::vector<Tensor> &grads)
	{
		return { grads[0] * n * ctx.saved(0).pow(n - 1) };
	}
};

TEST(function_has_gradients_of_any_order)
{
	uint64_t before = live_tensors();
	{
		Tensor x = leaf(), y = Power::apply(x, 3.0);
		std::vector<Tensor> g = grad({ y.sum() }, { x }, TENSOR_CREATE_GRAPH);

		CHECK(holds(y, { 1, 8 }) && holds(g[0], { 3, 12 }));
		CHECK(holds(grad({ g[0].sum() }, { x })[0], { 6, 12 }));
		CHECK(y.str().find("PowerBackward") != std::string::npos);
	}
	CHECK(live_tensors() == before);
}

/* Sum and difference of lists; the gradient of the second output counts negatively. */
struct SumDifference : function<SumDifference, 2> {
	static constexpr unsigned flags = TENSOR_FUNCTION_UNDEFINED_GRADS;

	std::array<Tensor, 2> forward(function_context &, const std::vector<Tensor> &x)
	{
		return { x[0] + x[1], x[0] - x[1] };
	}

	std::vector<Tensor> backward(function_context &ctx, const std::vector<Tensor> &grads)
	{
		const Tensor &a = grads[0], &b = grads[1];

		if (!b.defined())
			return { a, ctx.needs_grad(1) ? a : Tensor() };
		return { a.defined() ? a + b : b, a.defined() ? a - b : -b };
	}
};

TEST(function_with_lists_and_several_outputs)
{
	Tensor x = leaf(), y = leaf();
	auto [sum, difference] = SumDifference::apply(std::vector<Tensor>{ x, y });

	(sum * 2 + difference).sum().backward();
	CHECK(holds(x.grad(), { 3, 3 }) && holds(y.grad(), { 1, 1 }));
	x.zero_grad();
	SumDifference::apply(std::vector<Tensor>{ x, y.detach() })[0].sum().backward();
	CHECK(holds(x.grad(), { 1, 1 }));
}

struct Scale : function<Scale> {
	Tensor forward(function_context &ctx, const Tensor &x)
	{
		ctx.mark_dirty(x);
		return x.mul_(2);
	}

	std::vector<Tensor> backward(function_context &, const std::vector<Tensor> &grads)
	{
		return { grads[0] * 2 };
	}
};

TEST(function_changes_its_input_in_place)
{
	Tensor x = leaf(), y = x * 1, z = Scale::apply(y);

	CHECK(z.get() == y.get());
	y.sum().backward();
	CHECK(holds(x.grad(), { 2, 2 }));
	CHECK_THROWS(error, Scale::apply(x));
}

struct Broken : function<Broken> {
	int where = 0;

	Tensor forward(function_context &, const Tensor &x, int place)
	{
		where = place;
		if (where == 0)
			throw std::runtime_error("forward is broken");
		return where == 1 ? Tensor() : x * 2;
	}

	std::vector<Tensor> backward(function_context &, const std::vector<Tensor> &grads)
	{
		if (where == 2)
			throw std::runtime_error("backward is broken");
		return { grads[0], grads[0] };
	}
};

TEST(failures_of_functions_reach_the_caller)
{
	uint64_t before = live_tensors();
	{
		Tensor x = leaf();
		std::string text = CHECK_THROWS(error, Broken::apply(x, 0)).what();

		CHECK(text.find("forward is broken") != std::string::npos);
		CHECK(CHECK_THROWS(error, Broken::apply(x, 1)).code() == EINVAL);
		text = CHECK_THROWS(error, Broken::apply(x, 2).sum().backward()).what();
		CHECK(text.find("backward is broken") != std::string::npos);
		text = CHECK_THROWS(error, Broken::apply(x, 3).sum().backward()).what();
		CHECK(text.find("must return 1 gradients, got 2") != std::string::npos);
	}
	CHECK(live_tensors() == before);
}

/* ---- checkpoints ---- */

TEST(checkpoint_computes_again)
{
	int calls = 0;
	Tensor x = leaf();
	Tensor y = checkpoint(
		[&](const std::vector<Tensor> &inputs) {
			calls++;
			return (inputs[0] * inputs[0]).exp();
		},
		{ x });

	y.sum().backward();
	CHECK(calls == 2);
	Tensor w = leaf();
	(w * w).exp().sum().backward();
	CHECK(x.grad().to_vector<double>() == w.grad().to_vector<double>());
	CHECK_THROWS(error,
		     checkpoint([](const std::vector<Tensor> &) { return Tensor(); }, { x }));
}

TEST(function_object_of_a_failing_checkpoint_is_freed)
{
	auto alive = std::make_shared<int>(1);
	std::vector<Tensor> many;

	for (int i = 0; i < 40000; i++)
		many.push_back(leaf());
	CHECK_THROWS(error,
		     checkpoint([alive](const std::vector<Tensor> &in) { return in[0]; }, many));
	CHECK(alive.use_count() == 1);
}

TEST(error_of_the_program_is_recorded)
{
	CHECK(tensor_set_error(ENOSPC, "disk %d", 3) == -ENOSPC);
	CHECK(std::string(tensor_last_error()->text) == "disk 3");
	CHECK(tensor_set_error(EIO, "again: %s", tensor_last_error()->text) == -EIO);
	CHECK(std::string(tensor_last_error()->text) == "again: disk 3");
	CHECK(tensor_set_error(-5, "%s", "x") == -EINVAL);
	tensor_clear_error();
}

TEST(function_is_computed_for_all_samples)
{
	using list = std::vector<Tensor>;
	using values = std::vector<double>;
	Tensor x = arange(6, f64).view({ 2, 3 }), w = full({ 3 }, 2.0, f64);
	const auto dot = [](const list &in) { return (in[0] * in[1]).sum(); };
	const auto cube = [](const list &in) { return in[0].pow(3).sum(); };
	const auto fails = [](const list &) -> Tensor { throw std::runtime_error("ours"); };

	CHECK((vmap(dot, { x, w }, { 0, no_batch }).to_vector<double>() == values{ 6, 24 }));
	CHECK((vmap(dot, { x, full({ 2 }, 1.0, f64) }, { 1, no_batch }).to_vector<double>() ==
	       values{ 3, 5, 7 }));
	CHECK(vmap([](const list &in) { return in[0] * 2; }, { x }, {}, 1).size(0) == 3);
	CHECK((jacobian(cube, { x[0] })[0].to_vector<double>() == values{ 0, 3, 12 }));
	CHECK((hessian(cube, { x[0] })[0].diagonal().to_vector<double>() == values{ 0, 6, 12 }));
	CHECK(jacobian(dot, { x[0], w }).size() == 2);
	CHECK(hessian(dot, { x[0], w }).size() == 4);
	CHECK_THROWS(error, vmap(dot, { x, w }, { 0 }));
	CHECK_THROWS(error, vmap(fails, { x }));
	CHECK_THROWS(error, jacobian(fails, { x }));
}
