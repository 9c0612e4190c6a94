// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The generic netlink family: dumps list what there is, go on where a message was full, and show
 * nobody what is not theirs.
 */
#include <grp.h>
#include <sched.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <sys/syscall.h>

#include <linux/tensor_netlink.h>

#include "device.h"
#include "kselftest_harness.h"

#define ROWS	8192

struct row {
	uint64_t id;
	uint64_t bytes;
	uint32_t uid;
	uint32_t pid;
	uint32_t handles;
	uint32_t files;
	uint32_t mappings;
	uint32_t dtype;
	char label[TENSOR_UAPI_LABEL];
};

struct table {
	int cmd;
	int count;
	bool ascending;
	bool interrupted;
	struct row row[ROWS];
};

struct totals {
	uint64_t clients, bufs, bytes, limit, refused;
};

static struct table table;

FIXTURE(netlink) {
	int dev;
	struct nl_sock *sock;
	int family;
};

static struct nl_sock *nl_open(int *family)
{
	struct nl_sock *sock = nl_socket_alloc();

	if (genl_connect(sock) < 0)
		return NULL;
	*family = genl_ctrl_resolve(sock, TENSOR_GENL_NAME);
	return sock;
}

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

static uint32_t get32(struct nlattr *attr)
{
	return attr ? nla_get_u32(attr) : UINT32_MAX;
}

static uint64_t get64(struct nlattr *attr)
{
	return attr ? nla_get_u64(attr) : UINT64_MAX;
}

static void parse_buf(struct nlattr **a, struct row *row)
{
	row->id = get64(a[TENSOR_A_BUF_ID]);
	row->bytes = get64(a[TENSOR_A_BUF_BYTES]);
	row->uid = get32(a[TENSOR_A_BUF_UID]);
	row->pid = get32(a[TENSOR_A_BUF_PID]);
	row->handles = get32(a[TENSOR_A_BUF_HANDLES]);
	row->files = get32(a[TENSOR_A_BUF_FILES]);
	row->mappings = get32(a[TENSOR_A_BUF_MAPPINGS]);
	row->dtype = get32(a[TENSOR_A_BUF_DTYPE]);
	if (a[TENSOR_A_BUF_LABEL])
		nla_strlcpy(row->label, a[TENSOR_A_BUF_LABEL], sizeof(row->label));
}

static void parse_client(struct nlattr **a, struct row *row)
{
	row->id = get64(a[TENSOR_A_CLIENT_ID]);
	row->bytes = get64(a[TENSOR_A_CLIENT_BYTES]);
	row->uid = get32(a[TENSOR_A_CLIENT_UID]);
	row->pid = get32(a[TENSOR_A_CLIENT_PID]);
	row->handles = get32(a[TENSOR_A_CLIENT_HANDLES]);
}

static int on_row(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_BUF_MAX + 1];
	struct table *t = arg;
	struct row *row = &t->row[t->count];

	if (t->count == ROWS || genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_BUF_MAX, NULL) < 0)
		return NL_SKIP;
	if (nlmsg_hdr(msg)->nlmsg_flags & NLM_F_DUMP_INTR)
		t->interrupted = true;
	memset(row, 0, sizeof(*row));
	if (t->cmd == TENSOR_CMD_BUF_GET)
		parse_buf(a, row);
	else
		parse_client(a, row);
	if (t->count && row->id <= row[-1].id)
		t->ascending = false;
	t->count++;
	return NL_OK;
}

/* Fills the table; 0 or a negative libnl error. */
static int dump(struct nl_sock *sock, int family, int cmd)
{
	int err;

	table.cmd = cmd;
	table.count = 0;
	table.ascending = true;
	table.interrupted = false;
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_row, &table);
	err = genl_send_simple(sock, family, cmd, TENSOR_GENL_VERSION, NLM_F_DUMP);
	return err < 0 ? err : nl_recvmsgs_default(sock);
}

static int on_totals(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_STAT_MAX + 1];
	struct totals *t = arg;

	genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_STAT_MAX, NULL);
	t->clients = get64(a[TENSOR_A_STAT_CLIENTS]);
	t->bufs = get64(a[TENSOR_A_STAT_BUFS]);
	t->bytes = get64(a[TENSOR_A_STAT_BYTES]);
	t->limit = get64(a[TENSOR_A_STAT_LIMIT_BYTES]);
	t->refused = get64(a[TENSOR_A_STAT_REFUSED]);
	return NL_OK;
}

static int totals(struct nl_sock *sock, int family, struct totals *t)
{
	int err;

	memset(t, 0xff, sizeof(*t));
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_totals, t);
	err = genl_send_simple(sock, family, TENSOR_CMD_STAT_GET, TENSOR_GENL_VERSION, 0);
	if (err >= 0)
		err = nl_recvmsgs_default(sock);
	return err < 0 ? err : nl_wait_for_ack(sock);
}

static struct row *find(uint64_t id)
{
	int i;

	for (i = 0; i < table.count; i++) {
		if (table.row[i].id == id)
			return &table.row[i];
	}
	return NULL;
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

TEST_F(netlink, buffer_dump_tells_what_info_tells)
{
	struct tensor_desc desc = {
		.dtype = TENSOR_DT_F32, .ndim = 1, .sizes = { 8 }, .strides = { 1 },
		.label = "bias",
	};
	struct tensor_alloc alloc;
	struct tensor_info info;
	struct row *row;
	void *at;

	ASSERT_EQ(0, dev_alloc(self->dev, MIB, &alloc));
	ASSERT_EQ(0, buf_meta(self->dev, alloc.handle, TENSOR_META_SET, &desc));
	at = map_shared(self->dev, PAGE, PROT_READ, alloc.cookie);
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
	EXPECT_EQ(TENSOR_DT_F32, row->dtype);
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

TEST_F_TIMEOUT(netlink, change_during_a_dump_is_told, 120)
{
	struct tensor_alloc alloc, last;
	int i, err;

	for (i = 0; i < 2000; i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &last));
	table = (struct table){ .cmd = TENSOR_CMD_BUF_GET, .ascending = true };
	nl_socket_modify_cb(self->sock, NL_CB_VALID, NL_CB_CUSTOM, on_row, &table);
	ASSERT_LT(0, genl_send_simple(self->sock, self->family, TENSOR_CMD_BUF_GET,
				      TENSOR_GENL_VERSION, NLM_F_DUMP));
	/* the first part was made with the request, the rest is made as we read */
	ASSERT_EQ(0, dev_close(self->dev, last.handle));
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	err = nl_recvmsgs_default(self->sock);
	EXPECT_TRUE(table.interrupted || err == -NLE_DUMP_INTR);
}

TEST_F(netlink, reader_that_goes_away_in_a_dump_leaves_nothing)
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

TEST_F(netlink, unload_in_a_dump_is_refused_or_safe)
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

TEST_F(netlink, attributes_in_a_request_are_refused)
{
	struct nl_msg *msg = nlmsg_alloc();

	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, self->family, 0, 0, TENSOR_CMD_STAT_GET,
		    TENSOR_GENL_VERSION);
	nla_put_u32(msg, 1, 5);
	EXPECT_GT(0, nl_send_sync(self->sock, msg));
}

TEST_F(netlink, unknown_command_is_refused)
{
	int err = genl_send_simple(self->sock, self->family, 99, TENSOR_GENL_VERSION, 0);

	ASSERT_LT(0, err);
	EXPECT_GT(0, nl_recvmsgs_default(self->sock));
}

static int become(uid_t uid)
{
	return initgroups("guest", uid) || setgid(uid) || setuid(uid);
}

/* A stranger with a buffer of its own: how many rows of each kind it sees that are not its own. */
static int see_as_stranger(uint64_t *bufs)
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
		int foreign = become(1000) ? 80 : see_as_stranger(&bufs);

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
			_exit(see_as_stranger(&bufs));
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
			_exit(see_as_stranger(&bufs));
		_exit(reap(pid));
	}
	EXPECT_EQ(0, reap(pid));
}

TEST_F(netlink, root_sees_everybody)
{
	struct tensor_info info;
	int sock[2], fd;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	if (!pid) {
		if (become(1000))
			_exit(80);
		send_fd(sock[1], buf_new_fd(PAGE));
		_exit(0);
	}
	fd = recv_fd(sock[0]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, reap(pid));
	ASSERT_EQ(0, buf_info(fd, 0, &info));
	EXPECT_EQ(1000, info.uid);
	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_BUF_GET));
	ASSERT_NE(NULL, find(info.ino));
	EXPECT_EQ(1000, find(info.ino)->uid);
	close(fd);
	close(sock[0]);
	close(sock[1]);
}

TEST_HARNESS_MAIN
