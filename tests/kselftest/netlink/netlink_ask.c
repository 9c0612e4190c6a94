// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Requests for one object, and every refusal of the netlink family: each with its error and its
 * extended error message.
 */
#include <linux/netlink.h>
#include <sys/socket.h>

#include "../include/family.h"
#include "kselftest_harness.h"

/* A reply: the error, the error message, and the id of the row if there is one. */
struct answer {
	int error;
	char words[128];
	uint64_t id;
	uint64_t bytes;
	int rows;
};

FIXTURE(netlink_ask)
{
	int dev;
	struct nl_sock *sock;
	int family;
	struct tensor_alloc alloc;
	uint64_t buf;
	struct answer answer;
};

FIXTURE_SETUP(netlink_ask)
{
	struct tensor_info info;
	int on = 1;

	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->sock = nl_open(&self->family);
	ASSERT_NE(NULL, self->sock);
	ASSERT_EQ(0, setsockopt(nl_socket_get_fd(self->sock), SOL_NETLINK, NETLINK_EXT_ACK, &on,
				sizeof(on)));
	ASSERT_EQ(0, dev_alloc(self->dev, 3 * PAGE, &self->alloc));
	ASSERT_EQ(0, buf_info(self->dev, self->alloc.handle, &info));
	self->buf = info.ino;
}

FIXTURE_TEARDOWN(netlink_ask)
{
	nl_socket_free(self->sock);
	close(self->dev);
}

/* Parses the attributes that follow an error or the end of a dump. */
static void take_words(const struct nlmsghdr *n, int skip, struct answer *answer)
{
	const struct nlattr *a;

	if (!(n->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	skip = NLMSG_ALIGN(skip);
	a = nla_find((const void *)((const char *)n + NLMSG_HDRLEN + skip),
		     (int)n->nlmsg_len - NLMSG_HDRLEN - skip, NLMSGERR_ATTR_MSG);
	if (a)
		nla_strlcpy(answer->words, a, sizeof(answer->words));
}

static void take_row(struct nlmsghdr *n, struct answer *answer)
{
	struct nlattr *a[TENSOR_A_BUF_MAX + 1];

	answer->rows++;
	if (genlmsg_parse(n, 0, a, TENSOR_A_BUF_MAX, NULL) < 0)
		return;
	/* the id has the same attribute number in a buffer and a client */
	answer->id = get64(a[TENSOR_A_BUF_ID]);
	if (a[TENSOR_A_BUF_BYTES] && nla_len(a[TENSOR_A_BUF_BYTES]) == 8)
		answer->bytes = nla_get_u64(a[TENSOR_A_BUF_BYTES]);
}

/* Parses a message: whether it was the last one. */
static bool take(struct nlmsghdr *n, struct answer *answer)
{
	const struct nlmsgerr *e = nlmsg_data(n);
	int skip = sizeof(*e);

	if (n->nlmsg_type == NLMSG_ERROR) {
		if (!(n->nlmsg_flags & NLM_F_CAPPED))
			skip += e->msg.nlmsg_len - sizeof(e->msg);
		answer->error = e->error;
		take_words(n, skip, answer);
		return true;
	}
	if (n->nlmsg_type == NLMSG_DONE) {
		memcpy(&answer->error, nlmsg_data(n), sizeof(int));
		take_words(n, sizeof(int), answer);
		return true;
	}
	take_row(n, answer);
	return false;
}

/* Sends a request with at most one attribute, and reads all replies. */
static struct answer *ask(struct answer *answer, struct nl_sock *sock, struct nl_msg *msg)
{
	static char room[32768];
	bool end = false;
	ssize_t left;

	memset(answer, 0, sizeof(*answer));
	answer->error = nl_send_auto(sock, msg) < 0 ? -EIO : 0;
	nlmsg_free(msg);
	while (!answer->error && !end) {
		struct nlmsghdr *n = (struct nlmsghdr *)room;

		left = recv(nl_socket_get_fd(sock), room, sizeof(room), 0);
		if (left < 0)
			answer->error = -errno;
		for (; left > 0 && NLMSG_OK(n, left) && !end; n = NLMSG_NEXT(n, left))
			end = take(n, answer);
	}
	return answer;
}

#define ASK(...) ask(&self->answer, self->sock, request(self->family, __VA_ARGS__))
#define EXPECT_REFUSED(err, ...)                            \
	do {                                                \
		EXPECT_EQ(-(err), ASK(__VA_ARGS__)->error); \
		EXPECT_NE(0, self->answer.words[0]);        \
		EXPECT_EQ(0, self->answer.rows);            \
	} while (0)

TEST_F(netlink_ask, buffer_is_found_by_its_id)
{
	EXPECT_EQ(0, ASK(0, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, &self->buf, 8)->error);
	EXPECT_EQ(1, self->answer.rows);
	EXPECT_EQ(self->buf, self->answer.id);
	EXPECT_EQ(3 * PAGE, self->answer.bytes);
}

TEST_F(netlink_ask, client_is_found_by_its_id)
{
	uint64_t client;

	ASSERT_EQ(0, dump(self->sock, self->family, TENSOR_CMD_CLIENT_GET));
	ASSERT_LE(1, table.count);
	client = table.row[0].id;
	EXPECT_EQ(0, ASK(0, TENSOR_CMD_CLIENT_GET, TENSOR_A_CLIENT_ID, &client, 8)->error);
	EXPECT_EQ(1, self->answer.rows);
	EXPECT_EQ(client, self->answer.id);
}

TEST_F(netlink_ask, unknown_id_is_enoent)
{
	uint64_t none = UINT64_MAX;

	EXPECT_REFUSED(ENOENT, 0, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, &none, 8);
	EXPECT_REFUSED(ENOENT, 0, TENSOR_CMD_CLIENT_GET, TENSOR_A_CLIENT_ID, &none, 8);
	ASSERT_EQ(0, dev_close(self->dev, self->alloc.handle));
	ASSERT_TRUE(used_becomes(self->dev, 0));
	EXPECT_REFUSED(ENOENT, 0, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, &self->buf, 8);
}

TEST_F(netlink_ask, id_of_another_user_is_enoent)
{
	char words[128];
	uint64_t none = UINT64_MAX;
	pid_t pid;

	EXPECT_REFUSED(ENOENT, 0, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, &none, 8);
	strcpy(words, self->answer.words);
	pid = fork();
	if (!pid) {
		struct nl_sock *sock;
		int on = 1;

		if (become(1000))
			_exit(80);
		sock = nl_open(&self->family);
		setsockopt(nl_socket_get_fd(sock), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
		self->sock = sock;
		if (ASK(0, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, &self->buf, 8)->error != -ENOENT)
			_exit(1);
		_exit(strcmp(words, self->answer.words) ? 2 : self->answer.rows);
	}
	EXPECT_EQ(0, reap(pid));
}

TEST_F(netlink_ask, single_request_without_id_is_refused)
{
	uint32_t pid = getpid();

	EXPECT_REFUSED(EINVAL, 0, TENSOR_CMD_BUF_GET, 0, NULL, 0);
	EXPECT_REFUSED(EINVAL, 0, TENSOR_CMD_CLIENT_GET, 0, NULL, 0);
	EXPECT_REFUSED(EINVAL, 0, TENSOR_CMD_CLIENT_GET, TENSOR_A_CLIENT_PID, &pid, 4);
}

TEST_F(netlink_ask, filter_beside_an_id_is_refused)
{
	struct nl_msg *msg =
		request(self->family, 0, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, &self->buf, 8);

	nla_put_u32(msg, TENSOR_A_BUF_PID, getpid());
	EXPECT_EQ(-EINVAL, ask(&self->answer, self->sock, msg)->error);
	EXPECT_NE(0, self->answer.words[0]);
	msg = request(self->family, 0, TENSOR_CMD_CLIENT_GET, TENSOR_A_CLIENT_ID, &self->buf, 8);
	nla_put_u32(msg, TENSOR_A_CLIENT_PID, getpid());
	EXPECT_EQ(-EINVAL, ask(&self->answer, self->sock, msg)->error);
}

TEST_F(netlink_ask, id_in_a_dump_is_refused)
{
	EXPECT_REFUSED(EINVAL, NLM_F_DUMP, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, &self->buf, 8);
	EXPECT_REFUSED(EINVAL, NLM_F_DUMP, TENSOR_CMD_CLIENT_GET, TENSOR_A_CLIENT_ID, &self->buf,
		       8);
	EXPECT_REFUSED(EINVAL, NLM_F_DUMP, TENSOR_CMD_HANDLE_GET, TENSOR_A_HANDLE_ID, &self->buf,
		       4);
}

TEST_F(netlink_ask, id_zero_is_refused)
{
	uint64_t zero = 0;

	EXPECT_REFUSED(ERANGE, 0, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, &zero, 8);
	EXPECT_REFUSED(ERANGE, NLM_F_DUMP, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_CLIENT, &zero, 8);
	EXPECT_REFUSED(ERANGE, NLM_F_DUMP, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_PID, &zero, 4);
	EXPECT_REFUSED(ERANGE, NLM_F_DUMP, TENSOR_CMD_CLIENT_GET, TENSOR_A_CLIENT_PID, &zero, 4);
	EXPECT_REFUSED(ERANGE, NLM_F_DUMP, TENSOR_CMD_HANDLE_GET, TENSOR_A_HANDLE_BUF, &zero, 8);
	EXPECT_REFUSED(ERANGE, NLM_F_DUMP, TENSOR_CMD_HANDLE_GET, TENSOR_A_HANDLE_CLIENT, &zero, 8);
}

TEST_F(netlink_ask, attribute_of_the_wrong_length_is_refused)
{
	uint64_t wide[2] = { self->buf, 0 };

	EXPECT_REFUSED(EINVAL, 0, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, wide, 4);
	EXPECT_REFUSED(EINVAL, 0, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_ID, wide, 16);
	EXPECT_REFUSED(EINVAL, NLM_F_DUMP, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_PID, wide, 8);
}

TEST_F(netlink_ask, attribute_of_another_command_is_refused)
{
	uint64_t value = 5;

	EXPECT_REFUSED(EINVAL, 0, TENSOR_CMD_STAT_GET, TENSOR_A_STAT_BUFS, &value, 8);
	EXPECT_REFUSED(EINVAL, 0, TENSOR_CMD_STAT_GET, 1, &value, 4);
	EXPECT_REFUSED(EINVAL, NLM_F_DUMP, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_LABEL, "w", 2);
	EXPECT_REFUSED(EINVAL, NLM_F_DUMP, TENSOR_CMD_BUF_GET, TENSOR_A_BUF_DEV, &value, 8);
	EXPECT_REFUSED(EINVAL, NLM_F_DUMP, TENSOR_CMD_CLIENT_GET, 99, &value, 8);
}

TEST_F(netlink_ask, unknown_command_is_refused)
{
	EXPECT_EQ(-EOPNOTSUPP, ASK(0, 99, 0, NULL, 0)->error);
	EXPECT_EQ(-EOPNOTSUPP, ASK(0, TENSOR_CMD_UNSPEC, 0, NULL, 0)->error);
	/* events cannot be requested */
	EXPECT_EQ(-EOPNOTSUPP, ASK(0, TENSOR_CMD_EVENT_ALLOC, 0, NULL, 0)->error);
	EXPECT_EQ(-EOPNOTSUPP, ASK(0, TENSOR_CMD_HANDLE_GET, 0, NULL, 0)->error);
	EXPECT_EQ(-EOPNOTSUPP, ASK(NLM_F_DUMP, TENSOR_CMD_STAT_GET, 0, NULL, 0)->error);
}

TEST_HARNESS_MAIN
