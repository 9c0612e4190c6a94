/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Process groups and data-parallel training of <tensor/group.h> and <tensor/parallel.h> in C++17.
 *
 *	group ranks;				started by tensorrun or mpirun
 *	data_parallel dp(m, ranks);
 *
 *	dp.backward(loss);
 *	optim.step();
 *
 * Functions that fail throw libtensor::error. A group outlives what was made with it.
 */
#ifndef TENSOR_PARALLEL_HPP
#define TENSOR_PARALLEL_HPP

#include <tensor/module.hpp>
#include <tensor/parallel.h>

namespace libtensor
{

/* An operation that runs. Waited for at the end of its life, without looking at its result. */
class request
{
	tensor_request *r_;

      public:
	explicit request(tensor_request *r) noexcept : r_(r)
	{
	}

	request(request &&other) noexcept : r_(std::exchange(other.r_, nullptr))
	{
	}

	request(const request &) = delete;
	request &operator=(const request &) = delete;

	~request()
	{
		if (r_)
			tensor_request_wait(r_, -1);
	}

	bool done() const
	{
		return check(tensor_request_done(r_)) == 1;
	}

	/* Once. After an error of ETIMEDOUT of its own the operation goes on. */
	void wait(int64_t timeout_ns = -1)
	{
		tensor_request *r = r_;
		bool ended = timeout_ns < 0 || tensor_request_done(r) != 0;
		int err = tensor_request_wait(r, timeout_ns);

		if (ended || err != -ETIMEDOUT)
			r_ = nullptr;
		check(err);
	}
};

class group
{
	tensor_group *g_;

	template <class Call> request begin(Call call) const
	{
		tensor_request *r = nullptr;

		check(call(&r));
		return request(r);
	}

      public:
	/* As the environment says, or by an engine and options. */
	group() : g_(check(tensor_group_open(nullptr, nullptr)))
	{
	}

	explicit group(const std::string &engine, const tensor_group_options &options = {})
	    : g_(check(tensor_group_open(engine.c_str(), &options)))
	{
	}

	group(group &&other) noexcept : g_(std::exchange(other.g_, nullptr))
	{
	}

	group(const group &) = delete;
	group &operator=(const group &) = delete;

	~group()
	{
		tensor_group_close(g_);
	}

	tensor_group *get() const
	{
		return g_;
	}

	int rank() const
	{
		return check(tensor_group_rank(g_));
	}

	int size() const
	{
		return check(tensor_group_size(g_));
	}

	std::string engine() const
	{
		return tensor_group_engine(g_);
	}

	tensor_device device() const
	{
		return tensor_group_device(g_);
	}

	struct tensor_group_stats stats() const
	{
		struct tensor_group_stats s;

		check(tensor_group_stats(g_, &s));
		return s;
	}

	void barrier() const
	{
		check(tensor_group_barrier(g_, nullptr));
	}

	void broadcast(const Tensor &t, int root) const
	{
		check(tensor_group_broadcast(g_, t.get(), root, nullptr));
	}

	request begin_broadcast(const Tensor &t, int root) const
	{
		return begin([&](tensor_request **r) {
			return tensor_group_broadcast(g_, t.get(), root, r);
		});
	}

	void all_reduce(const Tensor &t, tensor_group_op op = TENSOR_GROUP_SUM) const
	{
		check(tensor_group_all_reduce(g_, t.get(), t.get(), op, nullptr));
	}

	request begin_all_reduce(const Tensor &t, tensor_group_op op = TENSOR_GROUP_SUM) const
	{
		return begin([&](tensor_request **r) {
			return tensor_group_all_reduce(g_, t.get(), t.get(), op, r);
		});
	}

	/* out of ranks other than root may be undefined. */
	void reduce(const Tensor &out, const Tensor &in, tensor_group_op op, int root) const
	{
		check(tensor_group_reduce(g_, out.get(), in.get(), op, root, nullptr));
	}

	void reduce_scatter(const Tensor &out, const Tensor &in,
			    tensor_group_op op = TENSOR_GROUP_SUM) const
	{
		check(tensor_group_reduce_scatter(g_, out.get(), in.get(), op, nullptr));
	}

	void all_gather(const Tensor &out, const Tensor &in) const
	{
		check(tensor_group_all_gather(g_, out.get(), in.get(), nullptr));
	}

	void gather(const Tensor &out, const Tensor &in, int root) const
	{
		check(tensor_group_gather(g_, out.get(), in.get(), root, nullptr));
	}

	void scatter(const Tensor &out, const Tensor &in, int root) const
	{
		check(tensor_group_scatter(g_, out.get(), in.get(), root, nullptr));
	}

	void all_to_all(const Tensor &out, const Tensor &in) const
	{
		check(tensor_group_all_to_all(g_, out.get(), in.get(), nullptr));
	}

	void send(const Tensor &in, int to) const
	{
		check(tensor_group_send(g_, in.get(), to, nullptr));
	}

	void receive(const Tensor &out, int from) const
	{
		check(tensor_group_recv(g_, out.get(), from, nullptr));
	}

	request begin_send(const Tensor &in, int to) const
	{
		return begin(
			[&](tensor_request **r) { return tensor_group_send(g_, in.get(), to, r); });
	}

	request begin_receive(const Tensor &out, int from) const
	{
		return begin([&](tensor_request **r) {
			return tensor_group_recv(g_, out.get(), from, r);
		});
	}
};

/* A module whose gradients are averaged over the ranks. */
class data_parallel
{
	tensor_data_parallel *dp_;

      public:
	data_parallel(const Module &m, const group &g,
		      const tensor_data_parallel_options &options = {})
	    : dp_(check(tensor_data_parallel_new(m.get(), g.get(), &options)))
	{
	}

	data_parallel(data_parallel &&other) noexcept : dp_(std::exchange(other.dp_, nullptr))
	{
	}

	data_parallel(const data_parallel &) = delete;
	data_parallel &operator=(const data_parallel &) = delete;

	~data_parallel()
	{
		tensor_data_parallel_free(dp_);
	}

	void backward(const Tensor &loss)
	{
		check(tensor_data_parallel_backward(dp_, loss.get()));
	}

	void finish()
	{
		check(tensor_data_parallel_finish(dp_));
	}

	void set_sync(bool sync)
	{
		check(tensor_data_parallel_set_sync(dp_, sync));
	}

	/* This rank's parameters, for an optimizer of its own; share() after its steps. */
	std::vector<Tensor> owned() const
	{
		const tensor_list list = tensor_data_parallel_owned(dp_);
		std::vector<Tensor> all;

		for (int64_t i = 0; i < list.len; i++)
			all.push_back(Tensor::borrowed(list.data[i]));
		return all;
	}

	void share()
	{
		check(tensor_data_parallel_share(dp_));
	}
};

} /* namespace libtensor */

#endif
