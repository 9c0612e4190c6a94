// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The tiny rows and the training steps in libtorch, which show the overhead of an operator without
 * Python; requests on stdin as in bench/ours/main.c.
 */
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

using at::Tensor;

/* A row set up: run(n) does the work n times, value() is the number that all sides must compute. */
struct Row {
	std::function<void(int64_t)> run;
	std::function<double()> value;
};

static Tensor wave(at::IntArrayRef size, double seed, double scale = 1)
{
	Tensor t = at::empty(size);
	float *p = t.data_ptr<float>();

	for (int64_t i = 0; i < t.numel(); i++)
		p[i] = static_cast<float>(scale * std::sin(seed + 0.37 * static_cast<double>(i)));
	return t;
}

static double total(const Tensor &t)
{
	return t.detach().to(at::kDouble).sum().item<double>();
}

/* Without gradients: f(a, b) on two 4 x 4 matrices. A template, so that the call is direct. */
template <typename F> static Row tiny(F f, bool compare = true)
{
	c10::InferenceMode guard;
	Tensor a = wave({ 4, 4 }, 0), b = wave({ 4, 4 }, 1);
	Row row;

	row.run = [=](int64_t n) {
		c10::InferenceMode inside;

		while (n--)
			f(a, b);
	};
	if (compare)
		row.value = [=] {
			c10::InferenceMode inside;

			return total(f(a, b));
		};
	return row;
}

static Row add_out()
{
	c10::InferenceMode guard;
	Tensor out = at::empty({ 4, 4 });

	return tiny([out](const Tensor &a, const Tensor &b) -> Tensor & {
		return at::add_out(const_cast<Tensor &>(out), a, b);
	});
}

static Row add_grad()
{
	Tensor a = wave({ 4, 4 }, 0).requires_grad_(), b = wave({ 4, 4 }, 1).requires_grad_();

	return { [=](int64_t n) {
			while (n--)
				at::add(a, b);
		},
		 [=] { return total(at::add(a, b)); } };
}

static Row add_backward()
{
	Tensor a = wave({ 4, 4 }, 0).requires_grad_(), b = wave({ 4, 4 }, 1).requires_grad_();
	Tensor g = wave({ 4, 4 }, 2);

	return { [=](int64_t n) {
			while (n--) {
				at::add(a, b).backward(g);
				a.mutable_grad().reset();
				b.mutable_grad().reset();
			}
		},
		 [=] {
			 at::add(a, b).backward(g);
			 return total(a.grad()) + total(b.grad());
		 } };
}

/* ---- the RNN cell ------------------------------------------------------------------------- */

struct Rnn {
	Tensor W_x = wave({ 20, 10 }, 0, 0.3).requires_grad_();
	Tensor W_h = wave({ 20, 20 }, 1, 0.2).requires_grad_();
	Tensor x = wave({ 1, 10 }, 2), prev_h = wave({ 1, 20 }, 3);

	Tensor forward() const
	{
		Tensor i2h = at::mm(W_x, x.t());
		Tensor h2h = at::mm(W_h, prev_h.t());

		return at::tanh(i2h + h2h);
	}

	void step() const
	{
		forward().sum().backward();
		at::NoGradGuard guard;

		for (Tensor w : { W_x, W_h }) {
			w.sub_(w.grad(), 0.01);
			w.mutable_grad().reset();
		}
	}

	void drop() const
	{
		W_x.mutable_grad().reset();
		W_h.mutable_grad().reset();
	}
};

static Row rnn_forward()
{
	Rnn r;

	return { [=](int64_t n) {
			while (n--)
				r.forward();
		},
		 [=] { return total(r.forward()); } };
}

static Row rnn_backward()
{
	Rnn r;

	return { [=](int64_t n) {
			while (n--) {
				r.forward().sum().backward();
				r.drop();
			}
		},
		 [=] {
			 r.forward().sum().backward();
			 return total(r.W_x.grad()) + total(r.W_h.grad());
		 } };
}

static Row rnn_step()
{
	Rnn r;

	return { [=](int64_t n) {
			while (n--)
				r.step();
		},
		 [=] {
			 for (int i = 0; i < 3; i++)
				 r.step();
			 return total(r.W_x) + total(r.W_h);
		 } };
}

/* ---- MLP 64-128-10, batch 32, SGD with momentum ------------------------------------------- */

struct Mlp {
	torch::nn::Sequential model{ torch::nn::Linear(64, 128), torch::nn::ReLU(),
				     torch::nn::Linear(128, 10) };
	Tensor x = wave({ 32, 64 }, 4), target = at::arange(32).remainder(10);
	std::unique_ptr<torch::optim::SGD> opt;

	Mlp()
	{
		torch::NoGradGuard guard;
		int seed = 0;

		for (Tensor &p : model->parameters())
			p.copy_(wave(p.sizes(), seed++, 0.1));
		opt = std::make_unique<torch::optim::SGD>(
			model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
	}

	Tensor step()
	{
		Tensor loss = at::cross_entropy_loss(model->forward(x), target);

		opt->zero_grad();
		loss.backward();
		opt->step();
		return loss;
	}
};

static Row mlp_step()
{
	auto m = std::make_shared<Mlp>();

	return { [=](int64_t n) {
			while (n--)
				m->step();
		},
		 [=] {
			 Tensor loss;

			 for (int i = 0; i < 5; i++)
				 loss = m->step();
			 return total(loss);
		 } };
}

/* ---- requests ----------------------------------------------------------------------------- */

static const std::map<std::string, std::function<Row()>> rows = {
	{ "empty",
	  [] {
		  return tiny([](auto &, auto &) { return at::empty({ 4, 4 }); }, false);
	  } },
	{ "add", [] { return tiny([](auto &a, auto &b) { return at::add(a, b); }); } },
	{ "add_out", add_out },
	{ "view", [] { return tiny([](auto &a, auto &) { return a.view({ 16 }); }); } },
	{ "select", [] { return tiny([](auto &a, auto &) { return a.select(0, 1); }); } },
	{ "sum", [] { return tiny([](auto &a, auto &) { return at::sum(a); }); } },
	{ "mm", [] { return tiny([](auto &a, auto &b) { return at::mm(a, b); }); } },
	{ "softmax", [] { return tiny([](auto &a, auto &) { return at::softmax(a, 1); }); } },
	{ "add_grad", add_grad },
	{ "add_backward", add_backward },
	{ "rnn_forward", rnn_forward },
	{ "rnn_backward", rnn_backward },
	{ "rnn_step", rnn_step },
	{ "mlp_step", mlp_step },
};

static double timed(const Row &row, int64_t n)
{
	auto start = std::chrono::steady_clock::now();

	row.run(n);
	return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
		.count();
}

static int64_t calibrate(const Row &row, double ns)
{
	for (double spent = 0; spent < 1e7;)
		spent += timed(row, 1);
	for (int64_t n = 1;; n *= 2) {
		double t = timed(row, n);

		if (t >= ns / 2)
			return t >= ns ? n :
					 static_cast<int64_t>(static_cast<double>(n) * ns / t) + 1;
	}
}

static void serve(const char *line)
{
	char name[64];
	int samples;
	double ms;
	bool time = std::sscanf(line, "time %d %lf %63s", &samples, &ms, name) == 3;

	if (!time && std::sscanf(line, "value %63s", name) != 1) {
		std::printf("error request not understood\n");
		return;
	}
	auto found = rows.find(name);
	if (found == rows.end()) {
		std::printf("none\n");
		return;
	}
	Row row = found->second();
	if (!time) {
		if (row.value)
			std::printf("ok %.9g\n", row.value());
		else
			std::printf("ok none\n");
		return;
	}
	int64_t n = calibrate(row, ms * 1e6);
	double spent = 0, limit = 10 * samples * ms * 1e6;
	std::printf("ok");
	for (int i = 0; i < samples && (i < 3 || spent < limit); i++) {
		double ns = timed(row, n);

		std::printf(" %.2f", ns / static_cast<double>(n));
		spent += ns;
	}
	std::printf("\n");
}

int main(int argc, char **argv)
{
	char line[256];

	at::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	while (std::fgets(line, sizeof(line), stdin)) {
		try {
			serve(line);
		} catch (const std::exception &e) {
			std::string text = e.what();

			std::printf("error %s\n", text.substr(0, text.find('\n')).c_str());
		}
	}
	return 0;
}
