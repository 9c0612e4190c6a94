// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Events: each action is reported once and in order, to listeners that may receive it; the calls
 * that cause them are never delayed and never fail.
 */
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>

#include "../include/family.h"
#include "kselftest_harness.h"

struct event {
	int cmd;
	uint64_t buf, client, bytes, limit;
	uint32_t pid, uid, state, handles, seals, kind, rights;
	char comm[16];
};

FIXTURE(netlink_event)
{
	int dev;
	struct nl_sock *sock;
	int family;
	int group;
	struct event event;
};

/* A socket that has joined the group, or NULL. */
static struct nl_sock *listen_open(int *group)
{
	int family;
	struct nl_sock *sock = nl_open(&family);

	*group = genl_ctrl_resolve_grp(sock, TENSOR_GENL_NAME, TENSOR_GENL_EVENTS);
	nl_socket_disable_seq_check(sock);
	if (*group < 0 || nl_socket_add_membership(sock, *group) < 0)
		return NULL;
	return sock;
}

FIXTURE_SETUP(netlink_event)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->sock = listen_open(&self->group);
	ASSERT_NE(NULL, self->sock);
}

FIXTURE_TEARDOWN(netlink_event)
{
	nl_socket_free(self->sock);
	close(self->dev);
}

static void parse(struct nlmsghdr *n, struct event *event)
{
	struct nlattr *a[TENSOR_A_EVENT_MAX + 1];

	memset(event, 0, sizeof(*event));
	if (genlmsg_parse(n, 0, a, TENSOR_A_EVENT_MAX, NULL) < 0)
		return;
	event->cmd = ((struct genlmsghdr *)nlmsg_data(n))->cmd;
	event->buf = get64(a[TENSOR_A_EVENT_BUF]);
	event->client = get64(a[TENSOR_A_EVENT_CLIENT]);
	event->bytes = get64(a[TENSOR_A_EVENT_BYTES]);
	event->limit = get64(a[TENSOR_A_EVENT_LIMIT_BYTES]);
	event->pid = get32(a[TENSOR_A_EVENT_PID]);
	event->uid = get32(a[TENSOR_A_EVENT_UID]);
	event->state = get32(a[TENSOR_A_EVENT_STATE]);
	event->seals = get32(a[TENSOR_A_EVENT_SEALS]);
	event->kind = get32(a[TENSOR_A_EVENT_KIND]);
	event->rights = get32(a[TENSOR_A_EVENT_RIGHTS]);
	event->handles = get32(a[TENSOR_A_EVENT_HANDLES]);
	if (a[TENSOR_A_EVENT_COMM])
		nla_strlcpy(event->comm, a[TENSOR_A_EVENT_COMM], sizeof(event->comm));
}

/* The next event within @ms: its number, 0 if there is none, or -errno. */
static int next_within(struct nl_sock *sock, struct event *event, int ms)
{
	struct pollfd wait = { .fd = nl_socket_get_fd(sock), .events = POLLIN };
	char room[4096];
	ssize_t got;

	memset(event, 0, sizeof(*event));
	if (poll(&wait, 1, ms) <= 0)
		return 0;
	got = recv(wait.fd, room, sizeof(room), MSG_DONTWAIT);
	if (got < 0)
		return -errno;
	parse((struct nlmsghdr *)room, event);
	return event->cmd;
}

static int next(struct nl_sock *sock, struct event *event)
{
	return next_within(sock, event, 10000);
}

#define EXPECT_NEXT(command) EXPECT_EQ(command, next(self->sock, &self->event))
#define EXPECT_SILENCE()     EXPECT_EQ(0, next_within(self->sock, &self->event, 200))

TEST_F(netlink_event, alloc_and_free_are_reported)
{
	struct tensor_alloc alloc;
	struct tensor_info info;
	struct event *e = &self->event;

	ASSERT_EQ(0, dev_alloc(self->dev, 5 * PAGE, &alloc));
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
	EXPECT_EQ(info.ino, e->buf);
	EXPECT_EQ(5 * PAGE, e->bytes);
	EXPECT_EQ((uint32_t)getpid(), e->pid);
	EXPECT_EQ(getuid(), e->uid);
	EXPECT_STREQ("netlink_event", e->comm);
	ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
	EXPECT_NEXT(TENSOR_CMD_EVENT_FREE);
	EXPECT_EQ(info.ino, e->buf);
	EXPECT_EQ(5 * PAGE, e->bytes);
	EXPECT_SILENCE();
}

TEST_F(netlink_event, export_and_import_are_reported_with_their_rights)
{
	struct tensor_import import;
	struct tensor_alloc alloc;
	int fd, other = dev_open();
	uint64_t client;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
	client = self->event.client;
	fd = buf_export_ro(self->dev, alloc.handle);
	ASSERT_LE(0, fd);
	EXPECT_NEXT(TENSOR_CMD_EVENT_EXPORT);
	EXPECT_EQ(client, self->event.client);
	EXPECT_EQ(TENSOR_STATE_RDONLY, self->event.state);
	EXPECT_EQ(TENSOR_RIGHTS_RO, self->event.rights);
	ASSERT_EQ(0, buf_import(other, fd, &import));
	EXPECT_NEXT(TENSOR_CMD_EVENT_IMPORT);
	EXPECT_NE(client, self->event.client);
	EXPECT_EQ(TENSOR_STATE_RDONLY, self->event.state);
	EXPECT_EQ(TENSOR_RIGHTS_RO, self->event.rights);
	EXPECT_EQ(PAGE, self->event.bytes);
	close(fd);
	/* closing either of them frees no buffer that the other one holds */
	ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
	EXPECT_SILENCE();
	ASSERT_EQ(0, dev_close(other, import.handle));
	EXPECT_NEXT(TENSOR_CMD_EVENT_FREE);
	EXPECT_EQ(client, self->event.client);
	close(other);
	EXPECT_SILENCE();
}

TEST_F(netlink_event, export_of_a_dmabuf_is_reported_with_its_kind)
{
	struct tensor_alloc alloc;
	int fd;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
	fd = buf_export(self->dev, alloc.handle, TENSOR_EXPORT_DMABUF);
	if (fd == -EOPNOTSUPP)
		SKIP(return, "this kernel has no dma-bufs");
	ASSERT_LE(0, fd);
	EXPECT_NEXT(TENSOR_CMD_EVENT_EXPORT);
	EXPECT_EQ(TENSOR_EXPORT_KIND_DMABUF, self->event.kind);
	EXPECT_EQ(0, self->event.state);
	EXPECT_EQ(TENSOR_RIGHTS_ALL, self->event.rights);
	close(fd);
	EXPECT_SILENCE();
}

TEST_F(netlink_event, seal_and_revoke_are_reported_once)
{
	struct tensor_alloc alloc;
	uint64_t buf;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
	buf = self->event.buf;
	ASSERT_LT(0, buf_seal(self->dev, alloc.handle, TENSOR_SEAL_META));
	EXPECT_NEXT(TENSOR_CMD_EVENT_SEAL);
	EXPECT_EQ(buf, self->event.buf);
	EXPECT_EQ(TENSOR_SEAL_META, self->event.seals);
	ASSERT_LT(0, buf_seal(self->dev, alloc.handle, TENSOR_SEAL_WRITE));
	EXPECT_NEXT(TENSOR_CMD_EVENT_SEAL);
	EXPECT_EQ(TENSOR_SEAL_META | TENSOR_SEAL_WRITE, self->event.seals);
	/* reading the seals adds none */
	ASSERT_LT(0, buf_seal(self->dev, alloc.handle, 0));
	ASSERT_EQ(0, buf_revoke(self->dev, alloc.handle));
	EXPECT_NEXT(TENSOR_CMD_EVENT_REVOKE);
	EXPECT_EQ(buf, self->event.buf);
	buf_revoke(self->dev, alloc.handle);
	EXPECT_SILENCE();
}

TEST_F(netlink_event, purge_is_reported_with_the_maker)
{
	struct tensor_alloc alloc;
	uint64_t buf;
	int i, got = 0;

	ASSERT_EQ(0, dev_alloc(self->dev, MIB, &alloc));
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
	buf = self->event.buf;
	ASSERT_EQ(0, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE));
	for (i = 0; i < 20 && got != TENSOR_CMD_EVENT_PURGE; i++) {
		write_text("/proc/sys/vm/drop_caches", "2");
		got = next_within(self->sock, &self->event, 200);
	}
	EXPECT_EQ(TENSOR_CMD_EVENT_PURGE, got);
	EXPECT_EQ(buf, self->event.buf);
	EXPECT_EQ(MIB, self->event.bytes);
	EXPECT_EQ((uint32_t)getpid(), self->event.pid);
}

TEST_F(netlink_event, failed_call_is_not_reported)
{
	struct tensor_alloc alloc;
	struct tensor_import import;
	struct tensor_export *ro;

	ro = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)ro);
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
	EXPECT_EQ(-ENOENT, buf_export(self->dev, alloc.handle + 1, 0));
	EXPECT_EQ(-EBADF, buf_import(self->dev, -1, &import));
	EXPECT_EQ(-EOPNOTSUPP, buf_import(self->dev, self->dev, &import));
	/* a reply that cannot be written */
	*ro = (struct tensor_export){ .size = sizeof(*ro),
				      .handle = alloc.handle,
				      .rights = TENSOR_RIGHTS_RW };
	ASSERT_EQ(0, mprotect(ro, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_call(self->dev, TENSOR_IOC_EXPORT, ro));
	EXPECT_SILENCE();
	munmap(ro, PAGE);
}

TEST_F(netlink_event, refusal_by_a_limit_is_reported)
{
	struct tensor_alloc alloc;
	char old[64];

	read_text(LIMIT_FILE, old, sizeof(old));
	ASSERT_EQ(0, write_text(LIMIT_FILE, "8192"));
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, MIB, &alloc));
	ASSERT_EQ(0, write_text(LIMIT_FILE, old));
	EXPECT_NEXT(TENSOR_CMD_EVENT_LIMIT);
	EXPECT_EQ(MIB, self->event.bytes);
	EXPECT_EQ(8192, self->event.limit);
	EXPECT_EQ((uint32_t)getpid(), self->event.pid);
	EXPECT_NE(UINT64_MAX, self->event.client);
}

/* The limit on the number of handles causes an event, too; its size in bytes is 0. */
TEST_F(netlink_event, refusal_of_a_handle_by_a_limit_is_reported)
{
	char old[64];
	pid_t pid;

	read_text(USER_LIMIT_FILE, old, sizeof(old));
	ASSERT_EQ(0, chmod("/dev/tensor", 0666));
	ASSERT_EQ(0, write_text(USER_LIMIT_FILE, "1"));
	pid = fork();
	if (!pid) {
		int memfd = memfd_new(PAGE, 0), dev;
		struct tensor_import import;

		if (memfd < 0 || become(1000))
			_exit(80);
		dev = dev_open();
		_exit(buf_import(dev, memfd, &import) == -EDQUOT ? 0 : 81);
	}
	EXPECT_EQ(0, reap(pid));
	ASSERT_EQ(0, write_text(USER_LIMIT_FILE, old));
	ASSERT_EQ(0, chmod("/dev/tensor", 0660));
	EXPECT_NEXT(TENSOR_CMD_EVENT_LIMIT);
	EXPECT_EQ(UINT64_MAX, self->event.bytes);
	EXPECT_EQ((uint32_t)pid, self->event.pid);
}

TEST_F(netlink_event, exit_with_open_handles_is_reported)
{
	struct tensor_alloc alloc;
	pid_t pid = fork();

	if (!pid) {
		int dev = dev_open();

		if (dev_alloc(dev, PAGE, &alloc) || dev_alloc(dev, 2 * PAGE, &alloc))
			_exit(80);
		kill(getpid(), SIGKILL);
	}
	ASSERT_EQ(-SIGKILL, reap(pid));
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
	EXPECT_NEXT(TENSOR_CMD_EVENT_DEATH);
	EXPECT_EQ((uint32_t)pid, self->event.pid);
	EXPECT_EQ(2, self->event.handles);
	EXPECT_EQ(3 * PAGE, self->event.bytes);
	EXPECT_NEXT(TENSOR_CMD_EVENT_FREE);
	EXPECT_EQ((uint32_t)pid, self->event.pid);
	EXPECT_NEXT(TENSOR_CMD_EVENT_FREE);
	EXPECT_SILENCE();
}

TEST_F(netlink_event, close_of_a_client_without_handles_is_not_reported)
{
	int dev = dev_open();

	ASSERT_LE(0, dev);
	close(dev);
	EXPECT_SILENCE();
}

TEST_F(netlink_event, joining_the_group_needs_a_capability)
{
	pid_t pid = fork();
	int group;

	if (!pid)
		_exit(become(1000) ? 80 : listen_open(&group) ? 1 : group < 0 ? 81 : 0);
	EXPECT_EQ(0, reap(pid));
}

/* In a network namespace of its own a socket may join the group but receives no event. */
static int listen_in_new_netns(int dev)
{
	struct tensor_alloc alloc;
	struct nl_sock *sock;
	struct event event;
	int group;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return errno == EPERM ? 0 : 81;
	sock = listen_open(&group);
	if (!sock)
		return 82;
	if (dev_alloc(dev, PAGE, &alloc))
		return 83;
	return next_within(sock, &event, 300);
}

TEST_F(netlink_event, other_network_namespace_gets_no_event)
{
	pid_t pid = fork();

	if (!pid)
		_exit(listen_in_new_netns(self->dev));
	EXPECT_EQ(0, reap(pid));
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
}

TEST_F_TIMEOUT(netlink_event, slow_listener_gets_enobufs, 60)
{
	struct tensor_alloc alloc;
	int i, heard = 0, got, small = 4096;

	ASSERT_EQ(0, setsockopt(nl_socket_get_fd(self->sock), SOL_SOCKET, SO_RCVBUF, &small,
				sizeof(small)));
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
		ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
	}
	EXPECT_EQ(-ENOBUFS, next(self->sock, &self->event));
	while ((got = next_within(self->sock, &self->event, 100)) > 0)
		heard++;
	EXPECT_EQ(0, got);
	EXPECT_LT(heard, 2000);
	/* and still receives later events */
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	EXPECT_NEXT(TENSOR_CMD_EVENT_ALLOC);
}

/* Faults in the stack, so that the failure is not injected into a page fault. */
static void touch_stack(void)
{
	volatile char room[64 * KIB];
	size_t i;

	for (i = 0; i < sizeof(room); i += PAGE)
		room[i] = 1;
}

/* ALLOC with its nth allocation or copy failing. False if there was no nth. */
static bool failed_nth(int nth, int n, int dev, struct tensor_alloc *alloc, int *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	touch_stack();
	if (pwrite(nth, text, strlen(text), 0) < 0)
		return false;
	*err = dev_alloc(dev, PAGE, alloc);
	/* this write is a copy as well: it fails if the call had fewer than n */
	return pwrite(nth, "0", 1, 0) == 1;
}

static void faults_as_wanted(void)
{
	static const char *const which[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
	char path[96];
	int i;

	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", which[i]);
		write_text(path, "0");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", which[i]);
		write_text(path, "N");
	}
}

TEST_F_TIMEOUT(netlink_event, event_without_memory_is_dropped_and_the_call_succeeds, 120)
{
	int nth = open("/proc/thread-self/fail-nth", O_RDWR), n, err, missed = 0, got;
	struct tensor_alloc alloc;

	if (nth < 0)
		SKIP(return, "this kernel injects no faults");
	faults_as_wanted();
	for (n = 1; failed_nth(nth, n, self->dev, &alloc, &err); n++) {
		got = next_within(self->sock, &self->event, 100);
		if (err) {
			EXPECT_TRUE(err == -ENOMEM || err == -EFAULT);
		} else {
			EXPECT_TRUE(got == -ENOBUFS || got == TENSOR_CMD_EVENT_ALLOC);
			missed += got == -ENOBUFS;
		}
		while ((got = next_within(self->sock, &self->event, 50)) > 0 || got == -ENOBUFS)
			;
		EXPECT_EQ(0, got);
	}
	EXPECT_LE(1, missed);
	close(nth);
}

TEST_F(netlink_event, unload_with_a_listener_is_safe)
{
	struct tensor_alloc alloc;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	close(self->dev);
	ASSERT_EQ(0, syscall(SYS_delete_module, "tensor", 0));
	ASSERT_EQ(0, system("/bin/tensor-load"));
	self->dev = dev_open();
}

TEST_HARNESS_MAIN
