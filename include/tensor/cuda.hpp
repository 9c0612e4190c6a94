/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Graphs of CUDA devices (<tensor/cuda.h>) in C++17.
 *
 *	cuda_graph step;
 *
 *	train(x, y);					as usual, so that all states exist
 *	step.capture([&] { train(x, y); });
 *	while (next(x, y))
 *		step.replay();
 *
 * Functions that fail throw libtensor::error.
 */
#ifndef TENSOR_CUDA_HPP
#define TENSOR_CUDA_HPP

#include <tensor/cuda.h>
#include <tensor/tensor.hpp>

namespace libtensor
{

/* Replays are waited for at the end of its life. */
class cuda_graph
{
	tensor_cuda_graph *g_;

	template <class F> void capture_with(F &&f, tensor_cuda_graph *with)
	{
		check(tensor_cuda_graph_capture_begin(g_, with));
		try {
			f();
		} catch (...) {
			tensor_cuda_graph_reset(g_);
			throw;
		}
		check(tensor_cuda_graph_capture_end(g_));
	}

      public:
	explicit cuda_graph(int device = 0) : g_(check(tensor_cuda_graph_new(device)))
	{
	}

	cuda_graph(cuda_graph &&other) noexcept : g_(std::exchange(other.g_, nullptr))
	{
	}

	cuda_graph(const cuda_graph &) = delete;
	cuda_graph &operator=(const cuda_graph &) = delete;

	~cuda_graph()
	{
		tensor_cuda_graph_release(g_);
	}

	/* Captures what f does on the device. After an exception of f the graph is empty. */
	template <class F> void capture(F &&f)
	{
		capture_with(std::forward<F>(f), nullptr);
	}

	/* In the memory of another graph, see tensor_cuda_graph_capture_begin(). */
	template <class F> void capture(F &&f, const cuda_graph &with)
	{
		capture_with(std::forward<F>(f), with.g_);
	}

	/* Before a capture that draws from it. */
	void register_generator(tensor_generator *g)
	{
		check(tensor_cuda_graph_register_generator(g_, g));
	}

	void replay()
	{
		check(tensor_cuda_graph_replay(g_));
	}

	void wait()
	{
		check(tensor_cuda_graph_wait(g_));
	}

	void reset()
	{
		check(tensor_cuda_graph_reset(g_));
	}
};

} // namespace libtensor

#endif
