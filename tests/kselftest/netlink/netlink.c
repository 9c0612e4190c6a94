// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The generic netlink family: dumps list all objects, resume where a message was full, and show no
 * objects of other users.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "../include/family.h"
#include "kselftest_harness.h"

FIXTURE(netlink)
{
	int dev;
	struct nl_sock *sock;
	int family;
};

FIXTURE_SETUP(netlink)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->sock = nl_open(&self->family);
	ASSERT_NE(NULL, self->sock);
	ASSERT_LT(0, self->family);
}

FIXTURE_TEARDOWN(netlink)
{
	nl_socket_free(self->sock);
	close(self->dev);
}

TEST_F(netlink, totals_count_clients_buffers_and_bytes)
{
	struct totals before, after;
	struct tensor_alloc alloc;

	ASSERT_EQ(0, totals(self->sock, self->family, &before));
	ASSERT_EQ(0, dev_alloc(self->dev, 3 * MIB, &alloc));
	ASSERT_EQ(0, totals(self->sock, self->family, &after));
	EXPECT_EQ(before.bufs + 1, after.bufs);
	EXPECT_EQ(before.bytes + 3 * MIB, after.bytes);
	EXPECT_EQ(before.clients, after.clients);
	EXPECT_LE(1, after.clients);
	EXPECT_LE(after.bytes, after.limit);
}

TEST_F(netlink, refused_allocations_are_counted)
{
	struct totals before, after;
	struct tensor_alloc alloc;
	char old[64];

	read_text(LIMIT_FILE, old, sizeof(old));
	ASSERT_EQ(0, write_text(LIMIT_FILE, "4096"));
	ASSERT_EQ(0, totals(self->sock, self->family, &before));
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, MIB, &alloc));
	ASSERT_EQ(0, totals(self->sock, self->family, &after));
	EXPECT_EQ(0, write_text(LIMIT_FILE, old));
	EXPECT_EQ(before.refused + 1, after.refused);
	EXPECT_EQ(4096, after.limit);
}

TEST_F(netlink, client_dump_lists_this_process)
{
	struct tensor_alloc alloc;
	int i, mine = 0;

	ASSERT_EQ(0, dev_alloc(self->dev, 2 * MIB, &alloc));
	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_CLIENT_GET));
	EXPECT_TRUE(table.ascending);
	for (i = 0; i < table.count; i++) {
		if (table.row[i].pid != (uint32_t)getpid())
			continue;
		mine++;
		EXPECT_EQ(1, table.row[i].handles);
		EXPECT_EQ(2 * MIB, table.row[i].bytes);
		EXPECT_EQ(getuid(), table.row[i].uid);
	}
	EXPECT_EQ(1, mine);
}

TEST_F(netlink, buffer_dump_agrees_with_info)
{
	struct tensor_desc desc = {
		.bits = 32,
		.dtype = TAG_F32,
		.ndim = 1,
		.sizes = { 8 },
		.strides = { 1 },
		.label = "bias",
	};
	struct tensor_alloc alloc;
	struct tensor_info info;
	struct row *row;
	void *at;

	ASSERT_EQ(0, dev_alloc(self->dev, MIB, &alloc));
	ASSERT_EQ(0, buf_meta(self->dev, alloc.handle, TENSOR_META_SET, &desc));
	at = map_shared(self->dev, PAGE, PROT_READ, alloc.mmap_offset);
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_BUF_GET));
	row = find(info.ino);
	ASSERT_NE(NULL, row);
	EXPECT_EQ(info.bytes, row->bytes);
	EXPECT_EQ(info.uid, row->uid);
	EXPECT_EQ((uint32_t)info.pid, row->pid);
	EXPECT_EQ(1, row->handles);
	EXPECT_EQ(0, row->files);
	EXPECT_EQ(1, row->mappings);
	EXPECT_EQ(TAG_F32, row->dtype);
	EXPECT_EQ(32, row->bits);
	EXPECT_STREQ("bias", row->label);
	munmap(at, PAGE);
}

TEST_F(netlink, buffer_without_handle_is_listed_until_its_fd_closes)
{
	int fd = buf_new_fd(PAGE);
	struct tensor_info info;
	struct row *row;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_info(fd, 0, &info));
	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_BUF_GET));
	row = find(info.ino);
	ASSERT_NE(NULL, row);
	EXPECT_EQ(0, row->handles);
	EXPECT_EQ(1, row->files);
	close(fd);
	ASSERT_TRUE(used_becomes(self->dev, 0));
	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_BUF_GET));
	EXPECT_EQ(NULL, find(info.ino));
}

TEST_F_TIMEOUT(netlink, dump_of_five_thousand_buffers_is_complete, 120)
{
	struct tensor_alloc alloc;
	int i;

	for (i = 0; i < 5000; i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_BUF_GET));
	EXPECT_EQ(5000, table.count);
	EXPECT_TRUE(table.ascending);
	EXPECT_FALSE(table.interrupted);
}

TEST_F_TIMEOUT(netlink, change_during_a_dump_is_reported, 120)
{
	struct tensor_alloc alloc, last;
	int i, err;

	for (i = 0; i < 2000; i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &last));
	table = (struct table){ .cmd = TENSOR_CMD_BUF_GET, .ascending = true };
	nl_socket_modify_cb(self->sock, NL_CB_VALID, NL_CB_CUSTOM, on_row, &table);
	ASSERT_LT(0, genl_send_simple(self->sock, self->family, TENSOR_CMD_BUF_GET,
				      TENSOR_GENL_VERSION, NLM_F_DUMP));
	/* the first part was built with the request, the rest is built while reading */
	ASSERT_EQ(0, dev_close(self->dev, last.handle));
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	err = nl_recvmsgs_default(self->sock);
	EXPECT_TRUE(table.interrupted || err == -NLE_DUMP_INTR);
}

TEST_F(netlink, handle_dump_lists_client_and_buffer)
{
	struct tensor_alloc alloc;
	struct tensor_import import;
	struct tensor_info info;
	int other = dev_open(), fd, i, writable = 0;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	fd = buf_export_ro(self->dev, alloc.handle);
	ASSERT_EQ(0, buf_import(other, fd, &import));
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_HANDLE_GET,
				   TENSOR_A_HANDLE_BUF, &info.ino, 8));
	ASSERT_EQ(2, table.count);
	EXPECT_TRUE(table.ascending);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(info.ino, table.row[i].buf);
		writable += !(table.row[i].state & TENSOR_STATE_RDONLY);
	}
	EXPECT_EQ(1, writable);
	EXPECT_EQ(TENSOR_RIGHTS_RO | TENSOR_RIGHTS_ALL, table.row[0].rights | table.row[1].rights);
	EXPECT_EQ(TENSOR_RIGHTS_RO, table.row[0].rights & table.row[1].rights);
	EXPECT_NE(table.row[0].client, table.row[1].client);
	ASSERT_EQ(0, dev_close(other, import.handle));
	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_HANDLE_GET));
	EXPECT_EQ(1, table.count);
	close(fd);
	close(other);
}

TEST_F_TIMEOUT(netlink, handle_dump_of_three_clients_is_complete, 120)
{
	struct tensor_alloc alloc;
	uint64_t client;
	int dev[3], i, k;

	for (i = 0; i < 3; i++) {
		dev[i] = dev_open();
		ASSERT_LE(0, dev[i]);
		for (k = 0; k < 700; k++)
			ASSERT_EQ(0, dev_alloc(dev[i], PAGE, &alloc));
	}
	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_HANDLE_GET));
	EXPECT_EQ(2100, table.count);
	EXPECT_TRUE(table.ascending);
	client = table.row[1000].client;
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_HANDLE_GET,
				   TENSOR_A_HANDLE_CLIENT, &client, 8));
	EXPECT_EQ(700, table.count);
	for (i = 0; i < table.count; i++)
		ASSERT_EQ(client, table.row[i].client);
	for (i = 0; i < 3; i++)
		close(dev[i]);
}

TEST_F(netlink, filters_select_rows)
{
	uint32_t pid = getpid(), nobody = 1;
	struct tensor_alloc alloc;
	uint64_t client, none;
	int other = dev_open();

	ASSERT_LE(0, other);
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	ASSERT_EQ(0, dev_alloc(other, PAGE, &alloc));
	ASSERT_EQ(0, dev_alloc(other, PAGE, &alloc));
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_CLIENT_GET,
				   TENSOR_A_CLIENT_PID, &pid, 4));
	ASSERT_EQ(2, table.count);
	client = table.row[1].id;
	none = client + 1000000;
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_BUF_GET,
				   TENSOR_A_BUF_CLIENT, &client, 8));
	ASSERT_EQ(2, table.count);
	EXPECT_EQ(client, table.row[0].client);
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_BUF_GET,
				   TENSOR_A_BUF_CLIENT, &none, 8));
	EXPECT_EQ(0, table.count);
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_PID,
				   &pid, 4));
	EXPECT_EQ(3, table.count);
	ASSERT_EQ(0, dump_filtered(self->sock, self->family, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_PID,
				   &nobody, 4));
	EXPECT_EQ(0, table.count);
	close(other);
}

static bool stop;

/* Changes the registry in a loop. */
static void *change_registry(void *arg)
{
	struct tensor_alloc alloc;
	int dev = *(int *)arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (!dev_alloc(dev, PAGE, &alloc))
			dev_close(dev, alloc.handle);
	}
	return NULL;
}

/* Reads a dump of four thousand rows of which none is visible to the caller. */
static int read_nothing(void)
{
	int i, family;
	struct nl_sock *sock;

	if (become(1000))
		return 80;
	sock = nl_open(&family);
	for (i = 0; i < 20; i++) {
		if (dump(sock, family, TENSOR_CMD_BUF_GET))
			return 91;
		if (table.count || table.interrupted)
			return 92;
	}
	return 0;
}

TEST_F_TIMEOUT(netlink, change_of_invisible_objects_is_not_reported, 120)
{
	struct tensor_alloc alloc;
	pthread_t thread;
	pid_t pid;
	int i;

	for (i = 0; i < 4000; i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	stop = false;
	pid = fork();
	if (!pid)
		_exit(read_nothing());
	ASSERT_EQ(0, pthread_create(&thread, NULL, change_registry, &self->dev));
	EXPECT_EQ(0, reap(pid));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

TEST_F(netlink, reader_that_exits_during_a_dump_leaks_nothing)
{
	struct tensor_alloc alloc;
	int i, family;

	for (i = 0; i < 500; i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	for (i = 0; i < 20; i++) {
		struct nl_sock *sock = nl_open(&family);

		ASSERT_NE(NULL, sock);
		genl_send_simple(sock, family, TENSOR_CMD_BUF_GET, TENSOR_GENL_VERSION, NLM_F_DUMP);
		nl_socket_free(sock);
	}
}

TEST_F(netlink, unload_during_a_dump_is_refused_or_safe)
{
	struct tensor_alloc alloc;
	bool gone;
	int i;

	for (i = 0; i < 500; i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	ASSERT_LT(0, genl_send_simple(self->sock, self->family, TENSOR_CMD_BUF_GET,
				      TENSOR_GENL_VERSION, NLM_F_DUMP));
	close(self->dev);
	gone = !syscall(SYS_delete_module, "tensor", O_NONBLOCK);
	nl_recvmsgs_default(self->sock);
	nl_socket_free(self->sock);
	if (!gone)
		ASSERT_EQ(0, syscall(SYS_delete_module, "tensor", 0));
	ASSERT_EQ(0, system("/bin/tensor-load"));
	self->dev = dev_open();
	self->sock = nl_open(&self->family);
	ASSERT_LT(0, self->family);
}

/*
 * An unprivileged process with a buffer of its own: number of rows of each kind that it sees and
 * does not own.
 */
static int list_as_unprivileged(uint64_t *bufs)
{
	struct tensor_alloc alloc;
	struct totals all;
	int family, dev = dev_open(), i, foreign = 0, own = 0;
	struct nl_sock *sock = nl_open(&family);

	if (dev < 0 || !sock || dev_alloc(dev, PAGE, &alloc))
		return 90;
	if (dump(sock, family, TENSOR_CMD_BUF_GET))
		return 91;
	for (i = 0; i < table.count; i++)
		*(table.row[i].pid == (uint32_t)getpid() ? &own : &foreign) += 1;
	if (dump(sock, family, TENSOR_CMD_CLIENT_GET))
		return 92;
	for (i = 0; i < table.count; i++)
		*(table.row[i].pid == (uint32_t)getpid() ? &own : &foreign) += 1;
	if (own != 2)
		return 93;
	if (totals(sock, family, &all))
		return 94;
	*bufs = all.bufs;
	return foreign;
}

TEST_F(netlink, unprivileged_user_sees_only_own_rows_but_all_totals)
{
	struct tensor_alloc alloc;
	uint64_t bufs = 0;
	pid_t pid;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	pid = fork();
	if (!pid) {
		int foreign = become(1000) ? 80 : list_as_unprivileged(&bufs);

		_exit(foreign ? foreign : bufs == 2 ? 0 : 95);
	}
	EXPECT_EQ(0, reap(pid));
}

TEST_F(netlink, root_of_a_user_namespace_sees_no_rows_of_others)
{
	struct tensor_alloc alloc;
	uint64_t bufs = 0;
	pid_t pid;
	int spaces = CLONE_NEWUSER | CLONE_NEWNET;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	for (; spaces; spaces = spaces == CLONE_NEWUSER ? 0 : CLONE_NEWUSER) {
		pid = fork();
		if (!pid) {
			if (become(1000))
				_exit(80);
			if (unshare(spaces))
				_exit(errno == EPERM ? 77 : 81);
			_exit(list_as_unprivileged(&bufs));
		}
		EXPECT_EQ(0, reap(pid)) TH_LOG("namespaces %#x", spaces);
	}
}

TEST_F(netlink, process_of_another_pid_namespace_is_not_shown)
{
	struct tensor_alloc alloc;
	uint64_t bufs = 0;
	pid_t pid;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWPID))
			_exit(81);
		pid = fork();
		if (!pid)
			_exit(list_as_unprivileged(&bufs));
		_exit(reap(pid));
	}
	EXPECT_EQ(0, reap(pid));
}

TEST_F(netlink, root_sees_the_rows_of_all_users)
{
	int fd = buf_fd_of_user(1000, PAGE);
	struct tensor_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_info(fd, 0, &info));
	EXPECT_EQ(1000, info.uid);
	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_BUF_GET));
	ASSERT_NE(NULL, find(info.ino));
	EXPECT_EQ(1000, find(info.ino)->uid);
	close(fd);
}

TEST_HARNESS_MAIN
