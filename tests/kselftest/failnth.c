// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Each allocation and each copy to or from the user that a call makes fails in turn, with the
 * kernel's fault injection. The call fails with a sensible error or succeeds another way; either
 * way nothing is lost. Needs the debug kernel.
 */
#include <linux/tensor_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "device.h"
#include "kselftest_harness.h"

#define DEBUGFS	"/sys/kernel/debug/"
#define MOST	2000

FIXTURE(failnth) {
	int dev;
	int fd;
	int nth;
	int nl;
	uint16_t family;
	uint64_t used;
	struct tensor_alloc buf;
	struct tensor_info before;
};

static void attr(const char *which, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "%s/%s", which, name);
	write_text(path, value);
}

static void faults_as_wanted(void)
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

/* Sends a request of a family; the answers are in room. Returns bytes or -errno. */
static int nl_ask(int sock, uint16_t family, int flags, int cmd, const void *attrs, int len,
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

static uint16_t nl_family(int sock)
{
	struct { struct nlattr a; char name[8]; } attrs = {
		{ NLA_HDRLEN + sizeof(TENSOR_GENL_NAME), CTRL_ATTR_FAMILY_NAME }, TENSOR_GENL_NAME,
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

/* A page fault of ours must not be what fails. */
static void touch_stack(void)
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

/* The write itself may be what the failure armed before hits. */
static void arm(int fd, int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(fd, text, len, 0) != len && pwrite(fd, text, len, 0) != len)
		abort();
}

/* Whether the armed failure is still to come, be it for this very read; disarms it. */
static bool pending(int fd)
{
	char text[16] = "";
	bool more = pread(fd, text, sizeof(text) - 1, 0) < 0 || atoi(text) > 0;

	arm(fd, 0);
	return more;
}

typedef int (*step_fn)(FIXTURE_DATA(failnth) *self);

/*
 * Runs a step with its first, second, ... chance to fail used, until there is none left. The step
 * disarms before it cleans up after itself.
 */
static void every_failure(struct __test_metadata *_metadata, FIXTURE_DATA(failnth) *self,
			  step_fn step)
{
	int n, failed = 0;
	bool more = false;

	for (n = 1; n < MOST && !more; n++) {
		int err;

		arm(self->nth, n);
		err = step(self);
		/* the step leaves the armed count in place if it did not come to cleaning up */
		more = err == 1;
		if (err < 0) {
			failed++;
			EXPECT_TRUE(err == -ENOMEM || err == -EFAULT || err == -ENOBUFS ||
				    err == -EAGAIN) TH_LOG("failure %d: error %d", n, err);
		}
	}
	EXPECT_LT(n, MOST);
	EXPECT_LT(0, failed);
	TH_LOG("%d failures injected, %d seen", n - 2, failed);
}

/* Ends a step: 1 if it was not hit by a failure, else its error or 0. */
static int done(FIXTURE_DATA(failnth) *self, int err)
{
	return pending(self->nth) ? 1 : err;
}

static int step_open(FIXTURE_DATA(failnth) *self)
{
	int dev = dev_open(), err = done(self, dev < 0 ? dev : 0);

	if (dev >= 0)
		close(dev);
	return err;
}

static int alloc_step(FIXTURE_DATA(failnth) *self, uint64_t bytes, int max_order)
{
	struct tensor_alloc alloc = alloc_args(bytes);
	int err, ended;

	alloc.flags = TENSOR_ALLOC_ORDERS;
	alloc.max_order = max_order;
	err = dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc);
	ended = done(self, err);
	if (!err)
		dev_close(self->dev, alloc.handle);
	return ended;
}

static int step_alloc_huge(FIXTURE_DATA(failnth) *self)
{
	return alloc_step(self, 2 * HUGE, 9);
}

static int step_alloc_mixed(FIXTURE_DATA(failnth) *self)
{
	return alloc_step(self, HUGE - PAGE, 9);
}

static int step_alloc_pages(FIXTURE_DATA(failnth) *self)
{
	return alloc_step(self, 20 * PAGE, 0);
}

static int step_export(FIXTURE_DATA(failnth) *self)
{
	int fd = buf_export(self->dev, self->buf.handle, 0), err = done(self, fd < 0 ? fd : 0);

	if (fd >= 0)
		close(fd);
	return err;
}

static int step_import(FIXTURE_DATA(failnth) *self)
{
	struct tensor_import import;
	int err = buf_import(self->dev, self->fd, &import), ended = done(self, err);

	if (!err)
		dev_close(self->dev, import.handle);
	return ended;
}

static int step_info(FIXTURE_DATA(failnth) *self)
{
	struct tensor_info info;

	return done(self, buf_info(self->dev, self->buf.handle, &info));
}

static int step_query(FIXTURE_DATA(failnth) *self)
{
	struct tensor_query query;

	return done(self, dev_query(self->dev, &query));
}

static int step_meta(FIXTURE_DATA(failnth) *self)
{
	struct tensor_desc desc = { .label = "x" };

	return done(self, buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &desc));
}

static int map_step(FIXTURE_DATA(failnth) *self, int fd, uint64_t offset)
{
	void *at = mmap(NULL, HUGE, PROT_READ, MAP_SHARED, fd, offset);
	int err = done(self, at == MAP_FAILED ? -errno : 0);

	if (at != MAP_FAILED)
		munmap(at, HUGE);
	return err;
}

static int step_map_fd(FIXTURE_DATA(failnth) *self)
{
	return map_step(self, self->fd, 0);
}

static int step_map_cookie(FIXTURE_DATA(failnth) *self)
{
	return map_step(self, self->dev, self->buf.cookie);
}

/* A close that fails for want of memory must be possible to repeat. */
static int close_twice(FIXTURE_DATA(failnth) *self, int n)
{
	struct tensor_alloc alloc;
	int err = dev_alloc(self->dev, PAGE, &alloc);

	if (err)
		return err;
	arm(self->nth, n);
	err = dev_close(self->dev, alloc.handle);
	pending(self->nth);
	return err ? dev_close(self->dev, alloc.handle) : 0;
}

static int dump_step(FIXTURE_DATA(failnth) *self, int cmd, int flags)
{
	static char room[8192];
	int err = nl_ask(self->nl, self->family, flags, cmd, "", 0, room);
	struct nlmsghdr *head = (struct nlmsghdr *)room;
	int ended;

	if (err > 0 && head->nlmsg_type == NLMSG_ERROR)
		err = ((struct nlmsgerr *)NLMSG_DATA(head))->error;
	ended = done(self, err < 0 ? err : 0);
	close(self->nl);
	self->nl = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	return ended;
}

static int step_dump_bufs(FIXTURE_DATA(failnth) *self)
{
	return dump_step(self, TENSOR_CMD_BUF_GET, NLM_F_DUMP);
}

static int step_dump_clients(FIXTURE_DATA(failnth) *self)
{
	return dump_step(self, TENSOR_CMD_CLIENT_GET, NLM_F_DUMP);
}

static int step_totals(FIXTURE_DATA(failnth) *self)
{
	return dump_step(self, TENSOR_CMD_STAT_GET, 0);
}

#define EVERY_FAILURE(what) \
	TEST_F_TIMEOUT(failnth, every_failure_of_##what##_is_survived, 120) \
	{ \
		if (self->nth < 0) \
			SKIP(return, "no fault injection in this kernel"); \
		every_failure(_metadata, self, step_##what); \
	}

EVERY_FAILURE(open)
EVERY_FAILURE(query)
EVERY_FAILURE(alloc_huge)
EVERY_FAILURE(alloc_mixed)
EVERY_FAILURE(alloc_pages)
EVERY_FAILURE(info)
EVERY_FAILURE(meta)
EVERY_FAILURE(export)
EVERY_FAILURE(import)
EVERY_FAILURE(map_fd)
EVERY_FAILURE(map_cookie)
EVERY_FAILURE(dump_bufs)
EVERY_FAILURE(dump_clients)
EVERY_FAILURE(totals)

TEST_F(failnth, close_under_failures_gives_the_handle_back)
{
	int n;

	if (self->nth < 0)
		SKIP(return, "no fault injection in this kernel");
	for (n = 1; n < 20; n++)
		EXPECT_EQ(0, close_twice(self, n));
}

TEST_HARNESS_MAIN
