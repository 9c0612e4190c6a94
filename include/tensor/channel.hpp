/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tensors between processes, in C++: channels, pools and groups of <tensor/channel.h>, whose comments have the rules. A
 * part of <tensor/tensor.hpp>. Timeouts are nanoseconds, negative: none; ETIMEDOUT is a libtensor::error as others are.
 */
#ifndef TENSOR_CHANNEL_HPP
#define TENSOR_CHANNEL_HPP

#include <tensor/channel.h>
#include <tensor/ops.hpp>

#include <array>
#include <optional>

namespace libtensor
{

/* A message of several tensors. */
struct message {
	std::vector<Tensor> tensors;
	uint64_t tag;
};

/* Tensors over a connected unix socket, which stays the caller's. */
class channel
{
	tensor_channel *channel_;

      public:
	explicit channel(int socket) : channel_(check(tensor_channel_open(socket)))
	{
	}

	channel(int socket, const tensor_channel_options &options)
	    : channel_(check(tensor_channel_open_with(socket, &options)))
	{
	}

	/* Takes the channel, as of a function of C. */
	explicit channel(tensor_channel *owned) noexcept : channel_(owned)
	{
	}

	channel(channel &&other) noexcept : channel_(std::exchange(other.channel_, nullptr))
	{
	}

	channel(const channel &) = delete;
	channel &operator=(const channel &) = delete;

	~channel()
	{
		if (channel_)
			tensor_channel_close(channel_);
	}

	tensor_channel *get() const
	{
		return channel_;
	}

	bool has_ring() const
	{
		return tensor_channel_has_ring(channel_);
	}

	/* flags: TENSOR_SEND_READONLY */
	void send(const Tensor &t, bits flags = 0)
	{
		check(tensor_send(channel_, t.get(), flags.flags()));
	}

	void send(const Tensor &t, bits flags, int64_t timeout_ns)
	{
		check(tensor_send_timeout(channel_, t.get(), flags.flags(), timeout_ns));
	}

	/* A tensor on the sender's memory. EPIPE when the peer is gone. */
	Tensor receive()
	{
		return Tensor::result(tensor_recv(channel_));
	}

	Tensor receive(int64_t timeout_ns)
	{
		return Tensor::result(tensor_recv_timeout(channel_, timeout_ns));
	}

	void send_many(const tensors &list, uint64_t tag = 0, bits flags = 0,
		       int64_t timeout_ns = -1)
	{
		tensor_list_arg of = list;

		check(tensor_send_many(channel_, of.data, static_cast<int>(of.len), tag,
				       flags.flags(), timeout_ns));
	}

	message receive_many(int64_t timeout_ns = -1)
	{
		std::array<::tensor *, TENSOR_MESSAGE_MAX> found;
		message m = { {}, 0 };
		int n = tensor_recv_many(channel_, found.data(), TENSOR_MESSAGE_MAX, &m.tag,
					 timeout_ns);

		check(n < 0 ? n : 0);
		for (int i = 0; i < n; i++)
			m.tensors.push_back(Tensor::result(found[static_cast<std::size_t>(i)]));
		return m;
	}
};

/* Buffers that are lent, sent, and lent again when no receiver uses them any more. */
class pool
{
	tensor_pool *pool_;

      public:
	explicit pool(const ints &size, const tensor_pool_options &options = {})
	    : pool_(check(tensor_pool_open(size, &options)))
	{
	}

	pool(pool &&other) noexcept : pool_(std::exchange(other.pool_, nullptr))
	{
	}

	pool(const pool &) = delete;
	pool &operator=(const pool &) = delete;

	~pool()
	{
		tensor_pool_close(pool_);
	}

	Tensor loan(int64_t timeout_ns = -1)
	{
		return Tensor::result(tensor_pool_loan(pool_, timeout_ns));
	}

	int available() const
	{
		return tensor_pool_available(pool_);
	}
};

/* One send to several channels, which outlive the group or are removed before their end. */
class channel_group
{
	tensor_channel_group *group_;

      public:
	explicit channel_group(const tensor_channel_group_options &options = {})
	    : group_(check(tensor_channel_group_open(&options)))
	{
	}

	channel_group(channel_group &&other) noexcept : group_(std::exchange(other.group_, nullptr))
	{
	}

	channel_group(const channel_group &) = delete;
	channel_group &operator=(const channel_group &) = delete;

	~channel_group()
	{
		tensor_channel_group_close(group_);
	}

	void add(const channel &receiver)
	{
		check(tensor_channel_group_add(group_, receiver.get()));
	}

	void remove(const channel &receiver)
	{
		check(tensor_channel_group_remove(group_, receiver.get()));
	}

	/* The number of receivers. */
	int send(const tensors &list, uint64_t tag = 0, bits flags = 0, int64_t timeout_ns = -1)
	{
		tensor_list_arg of = list;
		int n = tensor_channel_group_send(group_, of.data, static_cast<int>(of.len), tag,
						  flags.flags(), timeout_ns);

		check(n < 0 ? n : 0);
		return n;
	}

	int count() const
	{
		return tensor_channel_group_count(group_);
	}

	/* The number of a message whose receiver died before it had released it; each once. */
	std::optional<uint64_t> lost()
	{
		uint64_t tag;

		return tensor_channel_group_lost(group_, &tag) == 1 ? std::optional<uint64_t>(tag) :
								      std::nullopt;
	}
};

} /* namespace libtensor */

#endif
