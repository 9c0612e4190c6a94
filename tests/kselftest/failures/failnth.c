// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Injected failures in creating, mapping, sharing and listing buffers. */
#include "../include/failnth.h"

static int step_open(FIXTURE_DATA(failnth) * self)
{
	int dev = dev_open(), err = done(self, dev < 0 ? dev : 0);

	if (dev >= 0)
		close(dev);
	return err;
}

static int alloc_step(FIXTURE_DATA(failnth) * self, uint64_t bytes, int max_order)
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

static int step_alloc_huge(FIXTURE_DATA(failnth) * self)
{
	return alloc_step(self, 2 * HUGE, 9);
}

static int step_alloc_mixed(FIXTURE_DATA(failnth) * self)
{
	return alloc_step(self, HUGE - PAGE, 9);
}

static int step_alloc_pages(FIXTURE_DATA(failnth) * self)
{
	return alloc_step(self, 20 * PAGE, 0);
}

static int step_export(FIXTURE_DATA(failnth) * self)
{
	int fd = buf_export_rw(self->dev, self->buf.handle), err = done(self, fd < 0 ? fd : 0);

	if (fd >= 0)
		close(fd);
	return err;
}

static int import_step(FIXTURE_DATA(failnth) * self, int fd)
{
	struct tensor_import import;
	int err = buf_import(self->dev, fd, &import), ended = done(self, err);

	if (!err)
		dev_close(self->dev, import.handle);
	return ended;
}

/* With other rights than those of the existing handle, so that a handle is made. */
static int step_import(FIXTURE_DATA(failnth) * self)
{
	int fd, ended;

	prepare(self);
	fd = buf_export_ro(self->dev, self->buf.handle);
	begin(self);
	ended = import_step(self, fd);
	close(fd);
	return ended;
}

/* With the rights of the existing handle, which is returned again. */
static int step_import_again(FIXTURE_DATA(failnth) * self)
{
	return import_step(self, self->fd);
}

static int step_info(FIXTURE_DATA(failnth) * self)
{
	struct tensor_info info;

	return done(self, buf_info(self->dev, self->buf.handle, &info));
}

static int step_query(FIXTURE_DATA(failnth) * self)
{
	struct tensor_query query;

	return done(self, dev_query(self->dev, &query));
}

static int step_meta(FIXTURE_DATA(failnth) * self)
{
	struct tensor_desc desc = { .label = "x" };

	return done(self, buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &desc));
}

static int map_step(FIXTURE_DATA(failnth) * self, int fd, uint64_t offset)
{
	void *at = mmap(NULL, HUGE, PROT_READ, MAP_SHARED, fd, offset);
	int err = done(self, at == MAP_FAILED ? -errno : 0);

	if (at != MAP_FAILED)
		munmap(at, HUGE);
	return err;
}

static int step_map_fd(FIXTURE_DATA(failnth) * self)
{
	return map_step(self, self->fd, 0);
}

static int step_map_mmap_offset(FIXTURE_DATA(failnth) * self)
{
	return map_step(self, self->dev, self->buf.mmap_offset);
}

/* A close that fails because of memory must be repeatable. */
static int close_twice(FIXTURE_DATA(failnth) * self, int n)
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

static int dump_step(FIXTURE_DATA(failnth) * self, int cmd, int flags)
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

static int step_dump_bufs(FIXTURE_DATA(failnth) * self)
{
	return dump_step(self, TENSOR_CMD_BUF_GET, NLM_F_DUMP);
}

static int step_dump_clients(FIXTURE_DATA(failnth) * self)
{
	return dump_step(self, TENSOR_CMD_CLIENT_GET, NLM_F_DUMP);
}

static int step_dump_handles(FIXTURE_DATA(failnth) * self)
{
	return dump_step(self, TENSOR_CMD_HANDLE_GET, NLM_F_DUMP);
}

static int step_totals(FIXTURE_DATA(failnth) * self)
{
	return dump_step(self, TENSOR_CMD_STAT_GET, 0);
}

TEST_F_TIMEOUT(failnth, every_failure_of_open_is_survived, 120)
{
	every_failure(_metadata, self, step_open);
}

TEST_F_TIMEOUT(failnth, every_failure_of_query_is_survived, 120)
{
	every_failure(_metadata, self, step_query);
}

TEST_F_TIMEOUT(failnth, every_failure_of_alloc_huge_is_survived, 120)
{
	every_failure(_metadata, self, step_alloc_huge);
}

TEST_F_TIMEOUT(failnth, every_failure_of_alloc_mixed_is_survived, 120)
{
	every_failure(_metadata, self, step_alloc_mixed);
}

TEST_F_TIMEOUT(failnth, every_failure_of_alloc_pages_is_survived, 120)
{
	every_failure(_metadata, self, step_alloc_pages);
}

TEST_F_TIMEOUT(failnth, every_failure_of_info_is_survived, 120)
{
	every_failure(_metadata, self, step_info);
}

TEST_F_TIMEOUT(failnth, every_failure_of_meta_is_survived, 120)
{
	every_failure(_metadata, self, step_meta);
}

TEST_F_TIMEOUT(failnth, every_failure_of_export_is_survived, 120)
{
	every_failure(_metadata, self, step_export);
}

TEST_F_TIMEOUT(failnth, every_failure_of_import_is_survived, 120)
{
	every_failure(_metadata, self, step_import);
}

TEST_F_TIMEOUT(failnth, every_failure_of_import_again_is_survived, 120)
{
	every_failure(_metadata, self, step_import_again);
}

TEST_F_TIMEOUT(failnth, every_failure_of_map_fd_is_survived, 120)
{
	every_failure(_metadata, self, step_map_fd);
}

TEST_F_TIMEOUT(failnth, every_failure_of_map_mmap_offset_is_survived, 120)
{
	every_failure(_metadata, self, step_map_mmap_offset);
}

TEST_F_TIMEOUT(failnth, every_failure_of_dump_bufs_is_survived, 120)
{
	every_failure(_metadata, self, step_dump_bufs);
}

TEST_F_TIMEOUT(failnth, every_failure_of_dump_clients_is_survived, 120)
{
	every_failure(_metadata, self, step_dump_clients);
}

TEST_F_TIMEOUT(failnth, every_failure_of_dump_handles_is_survived, 120)
{
	every_failure(_metadata, self, step_dump_handles);
}

TEST_F_TIMEOUT(failnth, every_failure_of_totals_is_survived, 120)
{
	every_failure(_metadata, self, step_totals);
}

TEST_F(failnth, close_under_failures_can_be_repeated)
{
	int n;

	if (self->nth < 0)
		SKIP(return, "no fault injection in this kernel");
	for (n = 1; n < 20; n++)
		EXPECT_EQ(0, close_twice(self, n));
}

TEST_HARNESS_MAIN
