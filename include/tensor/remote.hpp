/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Channels between machines of <tensor/remote.h>, whose comments have the rules, in C++17.
 *
 *	channel_listener l("ucx://0.0.0.0:4711");	channel ch = connect("ucx://host:4711");
 *	channel ch = l.accept();			ch.send(t);
 *
 * Functions that fail throw libtensor::error.
 */
#ifndef TENSOR_REMOTE_HPP
#define TENSOR_REMOTE_HPP

#include <tensor/remote.h>
#include <tensor/tensor.hpp>

#include <string>

namespace libtensor
{

/* A negative timeout: that of the options. */
inline channel connect(const std::string &address, const tensor_remote_options &options = {},
		       int64_t timeout_ns = -1)
{
	return channel(check(tensor_channel_connect(address.c_str(), &options, timeout_ns)));
}

class channel_listener
{
	tensor_channel_listener *listener_;

      public:
	explicit channel_listener(const std::string &address,
				  const tensor_remote_options &options = {})
	    : listener_(check(tensor_channel_listen(address.c_str(), &options)))
	{
	}

	channel_listener(channel_listener &&other) noexcept
	    : listener_(std::exchange(other.listener_, nullptr))
	{
	}

	channel_listener(const channel_listener &) = delete;
	channel_listener &operator=(const channel_listener &) = delete;

	~channel_listener()
	{
		tensor_channel_listener_close(listener_);
	}

	tensor_channel_listener *get() const
	{
		return listener_;
	}

	channel accept(int64_t timeout_ns = -1)
	{
		return channel(check(tensor_channel_accept(listener_, timeout_ns)));
	}

	/* With the number of the port. */
	std::string address() const
	{
		return check(tensor_channel_listener_address(listener_));
	}

	/* For poll(): readable while accept() would not wait. */
	int fd() const
	{
		return check(tensor_channel_listener_fd(listener_));
	}
};

} // namespace libtensor

#endif
