/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Helpers of the tests in which every allocation and every copy from and to the caller fails in
 * turn, by the kernel's fault injection.
 *
 * A step is a call. It is repeated with its first, second, ... possible failure injected, until no
 * failure is left. Each time it fails with a plausible error or succeeds by a fallback, and nothing
 * leaks. Needs the debug kernel.
 */
#ifndef TENSOR_KSELFTEST_FAILNTH_H
#define TENSOR_KSELFTEST_FAILNTH_H

#include <linux/tensor_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "device.h"
#include "kselftest_harness.h"

#define DEBUGFS "/sys/kernel/debug/"
#define MOST	2000

/* A step failed although no failure was injected. */
#define FAILED_WITHOUT_INJECTION (-ENOTRECOVERABLE)

FIXTURE(failnth)
{
	int dev;
	int fd;
	int nth;
	int n;
	int nl;
	uint16_t family;
	uint64_t used;
	struct tensor_alloc buf;
	struct tensor_info before;
};

HELPER void attr(const char *which, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "%s/%s", which, name);
	write_text(path, value);
}

HELPER void faults_as_wanted(void)
{
	static const char *const which[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
	int i;

	for (i = 0; i < 3; i++) {
		attr(which[i], "verbose", "0");
		attr(which[i], "ignore-gfp-wait", "N");
		attr(which[i], "ignore-gfp-highmem", "N");
		attr(which[i], "min-order", "0");
	}
}

/* Sends a request of a family and receives the replies in @room: bytes or -errno. */
HELPER int nl_ask(int sock, uint16_t family, int flags, int cmd, const void *attrs, int len,
		  void *room)
{
	struct {
		struct nlmsghdr n;
		struct genlmsghdr g;
		char attrs[64];
	} ask = {
		.n = { .nlmsg_type = family, .nlmsg_flags = NLM_F_REQUEST | flags },
		.g = { .cmd = cmd },
	};
	ssize_t got;

	memcpy(ask.attrs, attrs, len);
	ask.n.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN + len);
	if (send(sock, &ask, ask.n.nlmsg_len, 0) < 0)
		return -errno;
	got = recv(sock, room, 8192, MSG_DONTWAIT);
	return got < 0 ? -errno : got;
}

HELPER uint16_t nl_family(int sock)
{
	struct {
		struct nlattr a;
		char name[8];
	} attrs = {
		{ NLA_HDRLEN + sizeof(TENSOR_GENL_NAME), CTRL_ATTR_FAMILY_NAME },
		TENSOR_GENL_NAME,
	};
	char room[8192];
	int got, at;

	got = nl_ask(sock, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, &attrs, sizeof(attrs), room);
	for (at = NLMSG_LENGTH(GENL_HDRLEN); at + (int)sizeof(struct nlattr) <= got;) {
		struct nlattr *a = (struct nlattr *)(room + at);

		if (a->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)(a + 1);
		at += NLMSG_ALIGN(a->nla_len);
	}
	return 0;
}

/* Faults in the stack, so that the failure is not injected into a page fault. */
HELPER void touch_stack(void)
{
	volatile char room[128 * KIB];
	size_t i;

	for (i = 0; i < sizeof(room); i += PAGE)
		room[i] = 1;
}

FIXTURE_SETUP(failnth)
{
	self->nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (self->nth < 0)
		return;
	faults_as_wanted();
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, 2 * HUGE, &self->buf));
	self->fd = buf_export(self->dev, self->buf.handle, 0);
	ASSERT_LE(0, self->fd);
	self->nl = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	self->family = nl_family(self->nl);
	ASSERT_NE(0, self->family);
	self->used = dev_used(self->dev);
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &self->before));
	touch_stack();
	mlockall(MCL_CURRENT);
}

FIXTURE_TEARDOWN(failnth)
{
	struct tensor_info after;

	if (self->nth < 0)
		return;
	munlockall();
	EXPECT_TRUE(used_becomes(self->dev, self->used));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &after));
	EXPECT_EQ(self->before.refs, after.refs);
	close(self->nl);
	close(self->fd);
	close(self->dev);
	close(self->nth);
}

/* Retries, because this write may itself be hit by a failure that was armed before. */
HELPER void arm(int fd, int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(fd, text, len, 0) != len && pwrite(fd, text, len, 0) != len)
		abort();
}

/* Whether the armed failure has not happened yet; disarms it. The read may itself be hit by it. */
HELPER bool pending(int fd)
{
	char text[16] = "";
	bool more = pread(fd, text, sizeof(text) - 1, 0) < 0 || atoi(text) > 0;

	arm(fd, 0);
	return more;
}

typedef int (*step_fn)(FIXTURE_DATA(failnth) * self);

/*
 * Runs a step with its first, second, ... failure injected, until none is left. The step disarms
 * before it cleans up.
 */
HELPER void every_failure(struct __test_metadata *_metadata, FIXTURE_DATA(failnth) * self,
			  step_fn step)
{
	int n, failed = 0;
	bool more = false;

	if (self->nth < 0)
		SKIP(return, "no fault injection in this kernel");
	for (n = 1; n < MOST && !more; n++) {
		int err;

		self->n = n;
		arm(self->nth, n);
		err = step(self);
		/* the count is still armed if the step returned before cleaning up */
		more = err == 1 || err == FAILED_WITHOUT_INJECTION;
		if (err < 0) {
			failed++;
			EXPECT_TRUE(err == -ENOMEM || err == -EFAULT || err == -ENOBUFS ||
				    err == -EAGAIN)
			TH_LOG("failure %d: error %d", n, err);
		}
	}
	EXPECT_LT(n, MOST);
	EXPECT_LT(0, failed);
	TH_LOG("%d failures injected, %d seen", n - 2, failed);
}

/*
 * Ends a step: 1 if no failure was injected, and then the step must have succeeded; else its error
 * or 0.
 */
HELPER int done(FIXTURE_DATA(failnth) * self, int err)
{
	if (!pending(self->nth))
		return err;
	return err ? FAILED_WITHOUT_INJECTION : 1;
}

/* Allocations between prepare() and begin() do not fail: they prepare a step. */
HELPER void prepare(FIXTURE_DATA(failnth) * self)
{
	arm(self->nth, 0);
}

HELPER void begin(FIXTURE_DATA(failnth) * self)
{
	arm(self->nth, self->n);
}

#endif /* TENSOR_KSELFTEST_FAILNTH_H */
