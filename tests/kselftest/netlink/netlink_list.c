// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The dumps of exports and users, the totals of pool and limits, and the state in a buffer's row.
 */
#include "../include/family.h"
#include "kselftest_harness.h"

FIXTURE(netlink_list)
{
	int dev;
	struct nl_sock *sock;
	int family;
	struct tensor_alloc alloc;
	uint64_t buf;
};

FIXTURE_SETUP(netlink_list)
{
	struct tensor_info info;

	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->sock = nl_open(&self->family);
	ASSERT_NE(NULL, self->sock);
	ASSERT_EQ(0, dev_alloc(self->dev, 4 * PAGE, &self->alloc));
	ASSERT_EQ(0, buf_info(self->dev, self->alloc.handle, &info));
	self->buf = info.ino;
}

FIXTURE_TEARDOWN(netlink_list)
{
	nl_socket_free(self->sock);
	close(self->dev);
}

static int list(struct nl_sock *sock, int family, int cmd)
{
	int err = dump(sock, family, cmd);

	return err ? err : table.count;
}

TEST_F(netlink_list, exported_file_is_listed_until_its_last_holder_closes_it)
{
	int fd = buf_export(self->dev, self->alloc.handle, 0), twin;

	ASSERT_LE(0, fd);
	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_EXPORT_GET));
	EXPECT_EQ(self->buf, table.row[0].buf);
	EXPECT_EQ(4 * PAGE, table.row[0].bytes);
	EXPECT_EQ(0, table.row[0].offset);
	EXPECT_EQ(0, table.row[0].state);
	EXPECT_EQ(TENSOR_EXPORT_KIND_FD, table.row[0].kind);
	EXPECT_EQ((uint32_t)getpid(), table.row[0].pid);
	EXPECT_EQ(getuid(), table.row[0].uid);
	twin = dup(fd);
	close(fd);
	EXPECT_EQ(1, list(self->sock, self->family, TENSOR_CMD_EXPORT_GET));
	close(twin);
	EXPECT_EQ(0, list(self->sock, self->family, TENSOR_CMD_EXPORT_GET));
}

TEST_F(netlink_list, export_of_a_part_has_its_range)
{
	int fd = buf_export_range_rights(self->dev, self->alloc.handle, TENSOR_RIGHTS_RO, 0, PAGE,
					 2 * PAGE);

	ASSERT_LE(0, fd);
	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_EXPORT_GET));
	EXPECT_EQ(PAGE, table.row[0].offset);
	EXPECT_EQ(2 * PAGE, table.row[0].bytes);
	EXPECT_EQ(TENSOR_STATE_RANGE | TENSOR_STATE_RDONLY, table.row[0].state);
	EXPECT_EQ(TENSOR_RIGHTS_RO, table.row[0].rights);
	close(fd);
}

TEST_F(netlink_list, dmabuf_is_listed_and_counted)
{
	struct totals t;
	int fd = buf_export(self->dev, self->alloc.handle, TENSOR_EXPORT_DMABUF);

	if (fd == -EOPNOTSUPP)
		SKIP(return, "this kernel has no dma-bufs");
	ASSERT_LE(0, fd);
	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_EXPORT_GET));
	EXPECT_EQ(TENSOR_EXPORT_KIND_DMABUF, table.row[0].kind);
	ASSERT_EQ(0, totals(self->sock, self->family, &t));
	EXPECT_EQ(1, t.dmabufs);
	EXPECT_EQ(0, t.files);
	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_BUF_GET));
	EXPECT_EQ(1, table.row[0].dmabufs);
	close(fd);
	ASSERT_EQ(0, list(self->sock, self->family, TENSOR_CMD_EXPORT_GET));
}

TEST_F(netlink_list, mapping_by_mmap_offset_is_no_export)
{
	void *at = map_shared(self->dev, PAGE, PROT_READ, self->alloc.mmap_offset);

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(0, list(self->sock, self->family, TENSOR_CMD_EXPORT_GET));
	munmap(at, PAGE);
}

TEST_F(netlink_list, exports_are_filtered_by_buffer_and_process)
{
	uint32_t me = getpid(), init = 1;
	struct tensor_alloc other;
	int a, b;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &other));
	a = buf_export(self->dev, self->alloc.handle, 0);
	b = buf_export(self->dev, other.handle, 0);
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_EXPORT_GET,
				   TENSOR_A_EXPORT_BUF, &self->buf, 8));
	EXPECT_EQ(1, table.count);
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_EXPORT_GET,
				   TENSOR_A_EXPORT_PID, &me, 4));
	EXPECT_EQ(2, table.count);
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_EXPORT_GET,
				   TENSOR_A_EXPORT_PID, &init, 4));
	EXPECT_EQ(0, table.count);
	close(a);
	close(b);
}

/*
 * As another user with a buffer and an fd: checks what it sees of exports, of users, and of its own
 * bytes.
 */
static int check_as_unprivileged(void)
{
	struct nl_sock *sock;
	int fd, family;

	if (become(1000))
		return 80;
	fd = buf_new_fd(2 * PAGE);
	sock = nl_open(&family);
	if (fd < 0 || list(sock, family, TENSOR_CMD_EXPORT_GET) != 1 || table.row[0].uid != 1000)
		return 81;
	if (list(sock, family, TENSOR_CMD_USER_GET) != 1 || table.row[0].uid != 1000)
		return 82;
	return table.row[0].bytes != 2 * PAGE;
}

TEST_F(netlink_list, unprivileged_user_sees_own_exports_and_own_charges_only)
{
	int fd = buf_export(self->dev, self->alloc.handle, 0);
	pid_t pid = fork();

	if (!pid)
		_exit(check_as_unprivileged());
	EXPECT_EQ(0, reap(pid));
	close(fd);
}

TEST_F(netlink_list, user_is_charged_until_the_buffer_is_freed)
{
	struct tensor_alloc more;

	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_USER_GET));
	EXPECT_EQ(0, table.row[0].uid);
	EXPECT_EQ(4 * PAGE, table.row[0].bytes);
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &more));
	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_USER_GET));
	EXPECT_EQ(5 * PAGE, table.row[0].bytes);
	ASSERT_EQ(0, dev_close(self->dev, more.handle));
	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_USER_GET));
	EXPECT_EQ(4 * PAGE, table.row[0].bytes);
}

TEST_F(netlink_list, root_sees_the_charges_of_all_users)
{
	int fd = buf_fd_of_user(1000, PAGE);

	ASSERT_LE(0, fd);
	ASSERT_EQ(2, list(self->sock, self->family, TENSOR_CMD_USER_GET));
	EXPECT_TRUE(table.ascending);
	EXPECT_EQ(1000, table.row[1].uid);
	EXPECT_EQ(PAGE, table.row[1].bytes);
	close(fd);
}

/* ALLOC by an ordinary user; the buffer stays: 0 or the error. */
static int alloc_as_user(int dev, uint64_t bytes)
{
	struct tensor_alloc alloc;
	pid_t pid = fork();

	if (!pid)
		_exit(become(1000) ? 255 : -dev_alloc(dev, bytes, &alloc));
	return reap(pid);
}

TEST_F(netlink_list, refusal_by_the_limit_of_a_user_is_reported_and_counted)
{
	struct totals before, after;
	struct tensor_alloc more;
	char old[64];

	read_text(USER_LIMIT_FILE, old, sizeof(old));
	ASSERT_EQ(0, totals(self->sock, self->family, &before));
	ASSERT_EQ(0, write_text(USER_LIMIT_FILE, "20480"));
	/* root is exempt */
	EXPECT_EQ(0, dev_alloc(self->dev, 8 * PAGE, &more));
	EXPECT_EQ(0, dev_close(self->dev, more.handle));
	EXPECT_EQ(0, alloc_as_user(self->dev, PAGE));
	EXPECT_EQ(EDQUOT, alloc_as_user(self->dev, 8 * PAGE));
	ASSERT_EQ(0, totals(self->sock, self->family, &after));
	ASSERT_EQ(2, list(self->sock, self->family, TENSOR_CMD_USER_GET));
	EXPECT_EQ(0, write_text(USER_LIMIT_FILE, old));
	EXPECT_EQ(20480, after.user_limit);
	EXPECT_EQ(1000, table.row[1].uid);
	EXPECT_EQ(20480, table.row[1].limit);
	EXPECT_EQ(before.user_refused + 1, after.user_refused);
	EXPECT_EQ(before.refused + 1, after.refused);
	EXPECT_LE(1, table.row[1].refused);
	/* handles are counted for the user who opened the device */
	EXPECT_LE(1, table.row[0].objects);
	EXPECT_EQ(0, table.row[1].objects);
}

TEST_F(netlink_list, state_of_a_buffer_is_in_its_row)
{
	struct totals t;

	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_BUF_GET));
	EXPECT_EQ(0, table.row[0].state);
	EXPECT_EQ(0, table.row[0].seals);
	EXPECT_EQ(TENSOR_KIND_ALLOC, table.row[0].kind);
	ASSERT_EQ(0, buf_advise(self->dev, self->alloc.handle, TENSOR_ADVISE_PURGEABLE));
	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_BUF_GET));
	EXPECT_EQ(TENSOR_STATE_PURGEABLE, table.row[0].state);
	ASSERT_EQ(0, totals(self->sock, self->family, &t));
	EXPECT_EQ(4 * PAGE, t.purgeable);
	ASSERT_EQ(0, buf_advise(self->dev, self->alloc.handle, TENSOR_ADVISE_WILLNEED));
	ASSERT_LT(0, buf_seal(self->dev, self->alloc.handle, TENSOR_SEAL_META));
	ASSERT_EQ(0, buf_revoke(self->dev, self->alloc.handle));
	ASSERT_EQ(1, list(self->sock, self->family, TENSOR_CMD_BUF_GET));
	EXPECT_EQ(TENSOR_STATE_REVOKED, table.row[0].state);
	EXPECT_EQ(TENSOR_SEAL_META, table.row[0].seals);
	ASSERT_EQ(0, totals(self->sock, self->family, &t));
	EXPECT_EQ(0, t.purgeable);
	EXPECT_EQ(0, t.used);
	EXPECT_EQ(4 * PAGE, t.bytes);
}

TEST_F(netlink_list, pool_is_counted)
{
	struct totals before, after;

	/* the pool is divided by node */
	ASSERT_EQ(0, stay_on_cpu(0));
	ASSERT_EQ(0, write_text("/sys/module/tensor/parameters/account", "N"));
	ASSERT_EQ(0, write_text("/sys/module/tensor/parameters/pool_bytes", "67108864"));
	ASSERT_EQ(0, totals(self->sock, self->family, &before));
	EXPECT_EQ(64 * MIB, before.pool_limit);
	ASSERT_EQ(0, dev_close(self->dev, self->alloc.handle));
	ASSERT_EQ(0, dev_alloc(self->dev, 4 * HUGE, &self->alloc));
	ASSERT_EQ(0, dev_close(self->dev, self->alloc.handle));
	ASSERT_EQ(0, totals(self->sock, self->family, &after));
	EXPECT_LE(before.pool_misses, after.pool_misses);
	EXPECT_LT(0, after.pool_bytes);
	EXPECT_LE(after.pool_bytes, after.pool_limit);
	ASSERT_EQ(0, dev_alloc(self->dev, HUGE, &self->alloc));
	ASSERT_EQ(0, totals(self->sock, self->family, &before));
	EXPECT_LT(after.pool_hits, before.pool_hits);
	write_text("/sys/module/tensor/parameters/account", "Y");
}

TEST_HARNESS_MAIN
