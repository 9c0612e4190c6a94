// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Process groups and data-parallel training in C++: each test forks a second rank. */
#include <tensor/optim.hpp>
#include <tensor/parallel.hpp>

#include "check.hpp"

#include <cerrno>
#include <sys/wait.h>
#include <unistd.h>

using namespace libtensor;

static tensor_group_options rank_of(int rank, pid_t first)
{
	static std::string address;
	tensor_group_options o = {};

	address = "cpp-" + std::to_string(first);
	o.rank = rank;
	o.size = 2;
	o.address = address.c_str();
	o.timeout_ns = 20000000000;
	return o;
}

/* Runs the function on two ranks; the child's failure fails the parent's check. */
template <class F> static void on_two_ranks(F f)
{
	const pid_t first = getpid(), child = fork();
	int status = 1;

	if (!child) {
		try {
			group g("local", rank_of(1, first));

			f(g);
		} catch (const failure &e) {
			std::fprintf(stderr, "# rank 1: %s\n", e.text.c_str());
			_exit(1);
		} catch (const std::exception &e) {
			std::fprintf(stderr, "# rank 1: %s\n", e.what());
			_exit(1);
		}
		_exit(0);
	}
	{
		group g("local", rank_of(0, first));

		f(g);
	}
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool all_are(const Tensor &t, double value)
{
	return t.eq(value).all().item<bool>();
}

TEST(collectives_and_messages)
{
	on_two_ranks([](group &g) {
		const int rank = g.rank();
		Tensor t = full({ 3 }, rank + 1, f32), parts = zeros({ 6 }, f32),
		       half = zeros({ 3 }, f32);

		CHECK(g.size() == 2 && g.engine() == "local");
		g.all_reduce(t);
		CHECK(all_are(t, 3));
		g.broadcast(t.fill_(rank), 1);
		CHECK(all_are(t, 1));
		g.all_gather(parts, t.fill_(rank));
		CHECK(parts.sum().item<int>() == 3);
		g.gather(parts, t, 0);
		g.scatter(half, parts, 0);
		CHECK(all_are(half, rank));
		g.reduce_scatter(half, parts.fill_(rank), TENSOR_GROUP_MAX);
		CHECK(all_are(half, 1));
		g.reduce(half, t.fill_(2), TENSOR_GROUP_PRODUCT, 0);
		CHECK(all_are(half, rank ? 1 : 4));
		g.all_to_all(zeros({ 6 }, f32), parts);
		g.barrier();

		request sent = g.begin_send(t.fill_(rank), 1 - rank);
		request came = g.begin_receive(half, 1 - rank);
		came.wait();
		sent.wait();
		CHECK(all_are(half, 1 - rank));

		request sum = g.begin_all_reduce(t, TENSOR_GROUP_MEAN);
		sum.wait();
		CHECK(all_are(t, 0.5));
		g.begin_broadcast(t, 0); /* its end of life waits */
		CHECK(g.stats().failed == -1 && g.stats().operations > 10);
		CHECK(CHECK_THROWS(error, g.all_reduce(rank ? half : parts)).code() == EINVAL);
		if (rank)
			g.send(t, 0);
		else
			g.receive(t, 1);
	});
}

TEST(wait_that_times_out_can_be_repeated)
{
	on_two_ranks([](group &g) {
		Tensor t = zeros({ 3 }, f32);

		if (g.rank())
			usleep(100000);
		request r = g.begin_all_reduce(t);
		if (!g.rank()) {
			CHECK(!r.done());
			CHECK(CHECK_THROWS(error, r.wait(1000000)).code() == ETIMEDOUT);
		}
		r.wait();
	});
}

TEST(gradients_are_means_over_the_ranks)
{
	on_two_ranks([](group &g) {
		Module m(f64);
		const Tensor x = full({ 1, 4 }, g.rank() + 1, f64);

		m.linear("a", x, 2);
		data_parallel dp(m, g);
		Optim o(dp.owned(), sgd(0.1));

		dp.set_sync(false);
		dp.backward(m.linear("a", x, 2).sum());
		dp.set_sync(true);
		dp.backward(m.linear("a", x, 2).sum());
		CHECK(all_are(m.parameters()[0].grad(), 3));
		o.step();
		dp.share();
		m.linear("a", x, 2).sum().backward();
		CHECK(CHECK_THROWS(error, m.linear("a", x, 2).sum().backward()).code() == EBUSY);
		dp.finish();
	});
}

TEST(errors_are_exceptions)
{
	tensor_group_options wrong = {};

	wrong.rank = 2;
	wrong.size = 2;
	CHECK(CHECK_THROWS(error, group("local", wrong)).code() == EINVAL);
	CHECK(CHECK_THROWS(error, group("none")).code() == ENOTSUP);
	group alone;
	CHECK(alone.size() == 1);
	CHECK(CHECK_THROWS(error, data_parallel(Module(f32), alone)).code() == EINVAL);
}
