// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Channels between machines in C++: both ends are in this process, over TCP on the loopback device. */
#include <tensor/remote.hpp>

#include "check.hpp"

#include <cerrno>
#include <cstdlib>

using namespace libtensor;

#ifdef __SANITIZE_ADDRESS__
/* UCX does not free all that it had for a connection. */
extern "C" const char *__lsan_default_suppressions()
{
	return "leak:libucs.so\nleak:libuct.so\nleak:libucp.so\n";
}
#endif

static const int64_t long_ns = 20000000000;
static const int has_network = setenv("UCX_TLS", "tcp", 1) || setenv("UCX_NET_DEVICES", "lo", 1);

/* Without the plugin the only error is that there is none. */
static bool has_plugin()
{
	try {
		channel_listener("ucx://127.0.0.1:0");
	} catch (const error &e) {
		if (e.code() == ENOTSUP)
			return false;
		throw;
	}
	return !has_network;
}

static bool are_equal(const Tensor &a, const Tensor &b)
{
	return a.eq(b).all().item<bool>();
}

TEST(tensors_go_both_ways)
{
	if (!has_plugin())
		return;
	channel_listener listener("ucx://127.0.0.1:0");
	channel a = connect(listener.address(), {}, long_ns), b = listener.accept(long_ns);
	Tensor x = arange(6).reshape({ 2, 3 });

	CHECK(listener.fd() >= 0 && tensor_channel_is_remote(a.get()));
	a.send(x);
	CHECK(are_equal(b.receive(long_ns), x));
	b.send_many({ x, x.t() }, 7);
	message m = a.receive_many(long_ns);

	CHECK(m.tag == 7 && m.tensors.size() == 2 && are_equal(m.tensors[1], x.t()));
}

TEST(errors_are_thrown)
{
	CHECK(CHECK_THROWS(error, connect("ucx://nothing")).code() == EINVAL);
	CHECK(CHECK_THROWS(error, channel_listener("tcp://0.0.0.0:0")).code() == EINVAL);
	if (!has_plugin())
		return;
	channel_listener listener("ucx://127.0.0.1:0"), moved = std::move(listener);

	CHECK(CHECK_THROWS(error, moved.accept(0)).code() == ETIMEDOUT);
	CHECK(!listener.get());
}
