// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A page that a reader has mapped through a TCP socket (TCP_ZEROCOPY_RECEIVE) counts as mapped,
 * although it is in no mapping of the buffer. SEAL is refused and REVOKE succeeds, in the time that
 * they take for a page in a pipe.
 */
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/uio.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define DEFER_FILE "/proc/sys/net/core/skb_defer_max"
#define MORE_US	   400000 /* tolerance for an emulated clock and REVOKE's repeated walk */

FIXTURE(zerocopy)
{
	int dev;
	uint64_t used;
	int pipe[2];
	int socket;
	void *received;
};

static int loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	struct sockaddr_in *at = (struct sockaddr_in *)&request.ifr_addr;
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	at->sin_family = AF_INET;
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	err = ioctl(sock, SIOCSIFADDR, &request) || ioctl(sock, SIOCGIFFLAGS, &request);
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	err = err || ioctl(sock, SIOCSIFFLAGS, &request);
	close(sock);
	return err ? -errno : 0;
}

FIXTURE_SETUP(zerocopy)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	ASSERT_EQ(0, pipe(self->pipe));
	ASSERT_EQ(0, loopback_up());
	/* Free received packets at once, not with the next packets of the sender's CPU. */
	if (!access(DEFER_FILE, F_OK))
		ASSERT_EQ(0, write_text(DEFER_FILE, "0"));
	self->socket = -1;
	self->received = MAP_FAILED;
}

FIXTURE_TEARDOWN(zerocopy)
{
	if (self->received != MAP_FAILED)
		munmap(self->received, PAGE);
	close(self->pipe[0]);
	close(self->pipe[1]);
	close(self->socket);
	EXPECT_TRUE(used_becomes(self->dev, self->used));
	close(self->dev);
}

/* A TCP connection within this process. */
static int connect_self(int ends[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	if (bind(listener, (struct sockaddr *)&at, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		return -errno;
	ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(ends[0], (struct sockaddr *)&at, len))
		return -errno;
	ends[1] = accept(listener, NULL, NULL);
	close(listener);
	return ends[1] < 0 ? -errno : 0;
}

/* Maps the next received bytes: number of bytes or -errno. */
static int64_t receive_mapped(FIXTURE_DATA(zerocopy) * self)
{
	struct tcp_zerocopy_receive receive = { .length = PAGE };
	socklen_t len = sizeof(receive);
	int tries;

	self->received = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self->socket, 0);
	if (self->received == MAP_FAILED)
		return -errno;
	receive.address = (uintptr_t)self->received;
	for (tries = 0; tries < 100; tries++) {
		if (getsockopt(self->socket, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &receive, &len))
			return -errno;
		if (receive.length)
			return receive.length;
		receive.length = PAGE;
		sleep_ms(20);
	}
	return 0;
}

/* References the page in a pipe, and also maps it through a socket if @mapped. */
static int hold_page(FIXTURE_DATA(zerocopy) * self, char *at, bool mapped)
{
	struct iovec iov = { at, PAGE };
	int ends[2] = { -1, -1 }, err;

	if (vmsplice(self->pipe[1], &iov, 1, 0) != PAGE)
		return -errno;
	if (!mapped)
		return 0;
	err = connect_self(ends);
	if (err)
		return err;
	if (splice(self->pipe[0], NULL, ends[0], NULL, PAGE, 0) != PAGE)
		return -errno;
	self->socket = ends[1];
	return receive_mapped(self) == PAGE ? 0 : -EIO;
}

struct took {
	int64_t seal_us, revoke_us;
	int seal;
	int revoke;
};

/* Durations of SEAL and REVOKE of a buffer with such a page. */
static int measure(FIXTURE_DATA(zerocopy) * self, bool mapped, struct took *took)
{
	struct tensor_alloc alloc;
	char *at;
	int err, fd;

	if (dev_alloc(self->dev, PAGE, &alloc))
		return -ENOMEM;
	fd = buf_export_ro(self->dev, alloc.handle);
	at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	err = at == MAP_FAILED ? -errno : hold_page(self, at, mapped);
	if (err)
		return err;
	took->seal_us = now_us();
	took->seal = buf_seal(self->dev, alloc.handle, TENSOR_SEAL_WRITE);
	took->revoke_us = now_us();
	took->revoke = buf_revoke(self->dev, alloc.handle);
	took->seal_us = took->revoke_us - took->seal_us;
	took->revoke_us = now_us() - took->revoke_us;
	munmap(at, PAGE);
	return dev_close(self->dev, alloc.handle);
}

TEST_F(zerocopy, seal_and_revoke_take_no_longer)
{
	struct took in_pipe, mapped;
	char page[PAGE];

	ASSERT_EQ(0, measure(self, false, &in_pipe));
	ASSERT_EQ((ssize_t)PAGE, read(self->pipe[0], page, PAGE));
	ASSERT_EQ(0, measure(self, true, &mapped));
	EXPECT_EQ(-EBUSY, in_pipe.seal);
	EXPECT_EQ(-EBUSY, mapped.seal);
	EXPECT_EQ(0, in_pipe.revoke);
	EXPECT_EQ(0, mapped.revoke);
	EXPECT_GT(2 * in_pipe.seal_us + MORE_US, mapped.seal_us);
	EXPECT_GT(2 * in_pipe.revoke_us + MORE_US, mapped.revoke_us);
	TH_LOG("SEAL %lld us, %lld in a pipe; REVOKE %lld us, %lld", (long long)mapped.seal_us,
	       (long long)in_pipe.seal_us, (long long)mapped.revoke_us,
	       (long long)in_pipe.revoke_us);
}

TEST_HARNESS_MAIN
