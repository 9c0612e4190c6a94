/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Graphs, streams and events of CUDA devices (<tensor/cuda.h>) in C++17.
 *
 *	cuda_graph step;
 *
 *	train(x, y);					as usual, so that all states exist
 *	step.capture([&] { train(x, y); });
 *	while (next(x, y))
 *		step.replay();
 *
 *	void *side = check(tensor_cuda_stream(0, 0));
 *	cuda_event ready;
 *
 *	ready.record(tensor_cuda_current_stream(0));
 *	ready.wait_in(0, side);
 *	{
 *		cuda_stream_scope in(0, side);
 *		...					operators
 *	}
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

/* A point in the work of a stream of the device. */
class cuda_event
{
	tensor_cuda_event *e_;

      public:
	/* flags: TENSOR_CUDA_EVENT_TIMING, TENSOR_CUDA_EVENT_BLOCKING. */
	explicit cuda_event(int device = 0, unsigned int flags = 0)
	    : e_(check(tensor_cuda_event_new(device, flags)))
	{
	}

	cuda_event(cuda_event &&other) noexcept : e_(std::exchange(other.e_, nullptr))
	{
	}

	cuda_event(const cuda_event &) = delete;
	cuda_event &operator=(const cuda_event &) = delete;

	~cuda_event()
	{
		tensor_cuda_event_release(e_);
	}

	void record(void *stream)
	{
		check(tensor_cuda_event_record(e_, stream));
	}

	/* Later work of the stream follows the event. */
	void wait_in(int device, void *stream)
	{
		check(tensor_cuda_stream_wait(device, stream, e_));
	}

	bool query()
	{
		return check(tensor_cuda_event_query(e_));
	}

	void synchronize()
	{
		check(tensor_cuda_event_synchronize(e_));
	}

	/* Milliseconds from this event to the other one. */
	float elapsed(cuda_event &to)
	{
		float ms;

		check(tensor_cuda_event_elapsed(e_, to.e_, &ms));
		return ms;
	}
};

/* The stream is the thread's current one on the device until the end of the scope. */
class cuda_stream_scope
{
	int device_;
	void *before_;

      public:
	cuda_stream_scope(int device, void *stream)
	    : device_(device), before_(tensor_cuda_current_stream(device))
	{
		check(tensor_cuda_set_stream(device, stream));
	}

	cuda_stream_scope(const cuda_stream_scope &) = delete;
	cuda_stream_scope &operator=(const cuda_stream_scope &) = delete;

	~cuda_stream_scope()
	{
		tensor_cuda_set_stream(device_, before_);
	}
};

} // namespace libtensor

#endif
