// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Graphs in C++. Without a device (make test-cuda has an emulated one) the reason is an exception. */
#include <tensor/cuda.hpp>

#include "check.hpp"

#include <cerrno>
#include <stdexcept>

using namespace libtensor;

TEST(a_capture_is_replayed)
{
	if (!tensor_cuda_is_available()) {
		CHECK(CHECK_THROWS(error, cuda_graph()).code() == ENODEV);
		return;
	}
	cuda_graph first, second;
	Tensor x = full({ 40 }, 1, options(f32).device(cuda(0))), y, z;

	first.capture([&] { y = x + x; });
	second.capture([&] { z = y * x; }, first);
	x.fill_(3);
	first.replay();
	second.replay();
	second.wait();
	CHECK(z.sum().item<double>() == 40 * 18);
}

TEST(an_exception_ends_a_capture)
{
	if (!tensor_cuda_is_available())
		return;
	cuda_graph g;
	Tensor x = full({ 40 }, 1, options(f32).device(cuda(0)));

	CHECK_THROWS(std::runtime_error,
		     g.capture([] { throw std::runtime_error("of the program"); }));
	CHECK(!tensor_cuda_is_capturing(0));
	CHECK(CHECK_THROWS(error, g.capture([&] { (void)x.sum().item<double>(); })).code() ==
	      EOPNOTSUPP);
	CHECK(CHECK_THROWS(error, g.replay()).code() == EINVAL);
	g.capture([&] { x.add_(x); });
	g.replay();
	CHECK(x.sum().item<double>() == 80);
}

TEST(streams_and_events)
{
	if (!tensor_cuda_is_available()) {
		CHECK(CHECK_THROWS(error, cuda_event()).code() == ENODEV);
		return;
	}
	void *side = check(tensor_cuda_stream(0, 0));
	cuda_event start(0, TENSOR_CUDA_EVENT_TIMING), ready(0, TENSOR_CUDA_EVENT_TIMING);
	Tensor x = full({ 40 }, 2, options(f32).device(cuda(0))), y;

	start.record(nullptr);
	start.wait_in(0, side);
	{
		cuda_stream_scope in(0, side);

		CHECK(tensor_cuda_current_stream(0) == side);
		y = x * x;
		ready.record(side);
	}
	CHECK(tensor_cuda_current_stream(0) == nullptr);
	ready.wait_in(0, nullptr);
	CHECK((y + x).sum().item<double>() == 240);
	ready.synchronize();
	CHECK(ready.query() && start.elapsed(ready) >= 0);
	CHECK(CHECK_THROWS(error, cuda_stream_scope(99, nullptr)).code() == ENODEV);
}
