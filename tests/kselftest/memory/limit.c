// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The limit of all users together and the limit of each user, both written while the module is in
 * use.
 *
 * The limit of a user does not apply to a task that may lock memory without limit (CAP_IPC_LOCK in
 * the initial namespace), such as root. So its tests run as ordinary users.
 */
#include <sched.h>
#include <sys/prctl.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define USER	 1000
#define OTHER	 1001
#define SUB_UIDS 5

FIXTURE(limit)
{
	int dev;
	char all[64];
	char user[64];
};

FIXTURE_SETUP(limit)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_used(self->dev));
	read_text(LIMIT_FILE, self->all, sizeof(self->all));
	read_text(USER_LIMIT_FILE, self->user, sizeof(self->user));
}

FIXTURE_TEARDOWN(limit)
{
	int dev = dev_open();

	close(self->dev);
	EXPECT_EQ(0, write_text(LIMIT_FILE, self->all));
	EXPECT_EQ(0, write_text(USER_LIMIT_FILE, self->user));
	EXPECT_TRUE(used_becomes(dev, 0));
	close(dev);
}

static int set_limit(const char *file, uint64_t bytes)
{
	char text[64];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	return write_text(file, text);
}

static int become_user(uid_t uid)
{
	return setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ? -errno : 0;
}

/* ALLOC as a user; the buffer is held by the handle, which stays in the table of @dev. */
static int alloc_as(int dev, uid_t uid, uint64_t bytes)
{
	struct tensor_alloc alloc;
	pid_t pid = fork();

	if (!pid)
		_exit(become_user(uid) ? 255 : -dev_alloc(dev, bytes, &alloc));
	return -reap(pid);
}

/* The reply of QUERY to a user; zeroed if it fails. */
static struct tensor_query query_as(int dev, uid_t uid)
{
	struct tensor_query query = { 0 };
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return query;
	pid = fork();
	if (!pid) {
		if (!become_user(uid) && !dev_query(dev, &query) &&
		    write(ends[1], &query, sizeof(query)) == sizeof(query))
			_exit(0);
		_exit(1);
	}
	close(ends[1]);
	if (read(ends[0], &query, sizeof(query)) != sizeof(query))
		query.limit_bytes = 0;
	close(ends[0]);
	reap(pid);
	return query;
}

TEST_F(limit, default_is_half_of_memory_and_an_eighth_for_a_user)
{
	uint64_t total = read_number("/proc/meminfo", "MemTotal:") * KIB;
	struct tensor_query query = query_as(self->dev, USER);

	EXPECT_STREQ("0\n", self->all);
	EXPECT_STREQ("0\n", self->user);
	EXPECT_EQ(total / 2 / PAGE, query.limit_bytes / PAGE);
	EXPECT_EQ(total / 8 / PAGE, query.user_limit_bytes / PAGE);
	EXPECT_EQ(0, query.user_used_bytes);
}

TEST_F(limit, default_of_a_user_is_refused_beyond_an_eighth)
{
	uint64_t total = read_number("/proc/meminfo", "MemTotal:") * KIB;

	EXPECT_EQ(0, alloc_as(self->dev, USER, total / 16));
	EXPECT_EQ(-EDQUOT, alloc_as(self->dev, USER, total / 8));
	EXPECT_EQ(0, alloc_as(self->dev, OTHER, total / 16));
}

TEST_F(limit, of_all_is_edquot)
{
	struct tensor_alloc alloc;
	struct tensor_query query;

	ASSERT_EQ(0, set_limit(LIMIT_FILE, MIB));
	EXPECT_EQ(0, dev_query(self->dev, &query));
	EXPECT_EQ(MIB, query.limit_bytes);
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, MIB + PAGE, &alloc));
	EXPECT_EQ(0, dev_used(self->dev));
	EXPECT_EQ(0, dev_alloc(self->dev, MIB, &alloc));
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, 1, &alloc));
	EXPECT_EQ(0, write_text(LIMIT_FILE, self->all));
	EXPECT_EQ(0, dev_alloc(self->dev, 2 * MIB, &alloc));
}

/*
 * Imports one memfd repeatedly as a user who has opened the device: number of handles until EDQUOT,
 * or < 0.
 */
static int handles_of(uid_t uid, int most)
{
	int memfd = memfd_new(PAGE, 0), ends[2], n = -1;
	struct tensor_import import = { 0 };
	uint32_t last = 0;
	pid_t pid;

	if (memfd < 0 || pipe(ends))
		return -2;
	pid = fork();
	if (!pid) {
		int dev, err = become_user(uid);

		dev = dev_open();
		for (n = 0; !err && n < most; n += !err) {
			last = import.handle;
			err = buf_import(dev, memfd, &import);
		}
		/* after closing one, one more is possible */
		if (err == -EDQUOT && (dev_close(dev, last) || buf_import(dev, memfd, &import)))
			err = -1;
		n = err == -EDQUOT ? n : err;
		_exit(write(ends[1], &n, sizeof(n)) != sizeof(n));
	}
	close(ends[1]);
	if (read(ends[0], &n, sizeof(n)) != sizeof(n))
		n = -3;
	close(ends[0]);
	close(memfd);
	reap(pid);
	return n;
}

/* The kernel structs of handles are charged to no memory cgroup here, so the count has a limit. */
TEST_F(limit, handles_of_a_user_are_as_many_as_pages)
{
	ASSERT_EQ(0, chmod("/dev/tensor", 0666));
	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, 100 * PAGE));
	/* the buffer is counted as well, since it can outlive its handle */
	EXPECT_EQ(50, handles_of(USER, 1000));
	/* handles end with the process, and each user has a count of its own */
	EXPECT_EQ(50, handles_of(USER, 1000));
	EXPECT_EQ(50, handles_of(OTHER, 1000));
	/* root may exceed the limit */
	EXPECT_EQ(0, handles_of(0, 1000));
	ASSERT_EQ(0, chmod("/dev/tensor", 0660));
}

/* Number of imported buffers that a user can keep by mappings, without a handle, or < 0. */
static int mapped_imports_of(uid_t uid, int most)
{
	int memfd = memfd_new(PAGE, 0), n, dev, err;
	struct tensor_import import;
	pid_t pid;

	if (memfd < 0)
		return -2;
	pid = fork();
	if (!pid) {
		err = become_user(uid);
		dev = dev_open();
		for (n = 0; !err && n < most; n += !err) {
			err = buf_import(dev, memfd, &import);
			if (!err &&
			    (map_shared(dev, PAGE, PROT_READ, import.mmap_offset) == MAP_FAILED ||
			     dev_close(dev, import.handle)))
				err = -1;
		}
		_exit(err == -EDQUOT ? n : 255);
	}
	close(memfd);
	return reap(pid);
}

TEST_F(limit, imports_of_a_user_count_without_a_handle)
{
	ASSERT_EQ(0, chmod("/dev/tensor", 0666));
	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, 100 * PAGE));
	/* importing the last one temporarily needs a handle, too */
	EXPECT_EQ(99, mapped_imports_of(USER, 200));
	EXPECT_EQ(99, mapped_imports_of(USER, 200));
	ASSERT_EQ(0, chmod("/dev/tensor", 0660));
}

TEST_F(limit, of_one_user_does_not_affect_other_users)
{
	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	EXPECT_EQ(-EDQUOT, alloc_as(self->dev, USER, MIB + PAGE));
	EXPECT_EQ(0, dev_used(self->dev));
	EXPECT_EQ(0, alloc_as(self->dev, USER, MIB));
	EXPECT_EQ(-EDQUOT, alloc_as(self->dev, USER, 1));
	EXPECT_EQ(MIB, dev_used(self->dev));
	EXPECT_EQ(MIB, query_as(self->dev, USER).user_used_bytes);
	EXPECT_EQ(0, alloc_as(self->dev, OTHER, MIB));
	EXPECT_EQ(-EDQUOT, alloc_as(self->dev, OTHER, PAGE));
	EXPECT_EQ(2 * MIB, dev_used(self->dev));
}

/*
 * A user who may lock any amount of memory may exceed the limit of a user; the limit of all still
 * applies.
 */
TEST_F(limit, of_a_user_does_not_apply_to_cap_ipc_lock)
{
	struct tensor_alloc alloc;

	ASSERT_EQ(0, set_limit(LIMIT_FILE, 4 * MIB));
	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	EXPECT_EQ(0, dev_alloc(self->dev, 3 * MIB, &alloc));
	EXPECT_EQ(3 * MIB, dev_used(self->dev));
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, 2 * MIB, &alloc));
}

TEST_F(limit, of_all_applies_to_two_users_together)
{
	ASSERT_EQ(0, set_limit(LIMIT_FILE, 3 * MIB));
	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, 2 * MIB));
	EXPECT_EQ(0, alloc_as(self->dev, USER, 2 * MIB));
	EXPECT_EQ(-EDQUOT, alloc_as(self->dev, OTHER, 2 * MIB));
	EXPECT_EQ(0, alloc_as(self->dev, OTHER, MIB));
	EXPECT_EQ(3 * MIB, dev_used(self->dev));
}

TEST_F(limit, lowering_frees_nothing)
{
	struct tensor_alloc first, second;

	ASSERT_EQ(0, dev_alloc(self->dev, 2 * MIB, &first));
	ASSERT_EQ(0, set_limit(LIMIT_FILE, MIB));
	EXPECT_EQ(2 * MIB, dev_used(self->dev));
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, PAGE, &second));
	EXPECT_EQ(0, dev_close(self->dev, first.handle));
	EXPECT_TRUE(used_becomes(self->dev, 0));
	EXPECT_EQ(0, dev_alloc(self->dev, MIB, &second));
}

TEST_F(limit, lowering_that_of_a_user_frees_nothing)
{
	int dev = dev_open();

	ASSERT_EQ(0, alloc_as(dev, USER, 2 * MIB));
	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	EXPECT_EQ(2 * MIB, dev_used(self->dev));
	EXPECT_EQ(-EDQUOT, alloc_as(self->dev, USER, PAGE));
	close(dev);
	EXPECT_TRUE(used_becomes(self->dev, 0));
	EXPECT_EQ(0, alloc_as(self->dev, USER, MIB));
}

/* The user who allocated is charged for the lifetime of the buffer, whichever user holds it. */
TEST_F(limit, maker_is_charged_while_another_user_holds_the_buffer)
{
	int dev, fd;

	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	dev = dev_open();
	ASSERT_EQ(0, alloc_as(dev, USER, MIB));
	fd = export_fd(dev, 1);
	ASSERT_LE(0, fd);
	close(dev);
	EXPECT_EQ(0, alloc_as(self->dev, OTHER, MIB));
	EXPECT_EQ(-EDQUOT, alloc_as(self->dev, USER, PAGE));
	close(fd);
	EXPECT_TRUE(used_becomes(self->dev, MIB));
	EXPECT_EQ(0, alloc_as(self->dev, USER, MIB));
}

/* Child, in the namespace: one of its users allocates until it is refused. */
static void alloc_until_refused(int dev, uid_t uid)
{
	struct tensor_alloc alloc;
	int err;

	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		_exit(1);
	do
		err = dev_alloc(dev, 64 * KIB, &alloc);
	while (!err);
	_exit(err == -EDQUOT ? 0 : 2);
}

/* Child: an ordinary user with a user namespace of several uids, which root maps for it. */
static void spread(int dev, int sock)
{
	char byte = 'x';
	uid_t uid;

	if (become_user(USER) || prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER))
		_exit(77);
	if (write(sock, &byte, 1) != 1 || read(sock, &byte, 1) != 1 || byte != 'm')
		_exit(3);
	for (uid = 0; uid <= SUB_UIDS; uid++) {
		pid_t pid = fork();

		if (!pid)
			alloc_until_refused(dev, uid);
		if (reap(pid))
			_exit(4);
	}
	_exit(0);
}

/* As newuidmap does: maps the user to 0 and its sub-uids to 1 and up. */
static int map_users(pid_t pid)
{
	static const char *const files[] = { "uid_map", "gid_map" };
	char path[64], map[64];
	int i, err = 0;

	snprintf(map, sizeof(map), "0 %d 1\n1 100000 %d\n", USER, SUB_UIDS);
	for (i = 0; i < 2 && !err; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
		err = write_text(path, map);
	}
	return err;
}

TEST_F(limit, of_a_user_includes_all_users_of_its_namespace)
{
	char byte = 'm';
	int sock[2];
	pid_t pid;
	int got;

	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	if (!pid) {
		close(sock[0]);
		spread(self->dev, sock[1]);
	}
	close(sock[1]);
	if (read(sock[0], &byte, 1) == 1) {
		EXPECT_EQ(0, map_users(pid));
		byte = 'm';
		EXPECT_EQ(1, write(sock[0], &byte, 1));
	}
	got = reap(pid);
	close(sock[0]);
	if (got == 77)
		SKIP(return, "an ordinary user gets no user namespace");
	EXPECT_EQ(0, got);
	EXPECT_EQ(MIB, dev_used(self->dev));
	EXPECT_EQ(-EDQUOT, alloc_as(self->dev, USER, PAGE));
	EXPECT_EQ(0, alloc_as(self->dev, OTHER, MIB));
}

TEST_F(limit, parameters_accept_numbers_only)
{
	EXPECT_EQ(-EINVAL, write_text(USER_LIMIT_FILE, "much"));
	EXPECT_EQ(-EINVAL, write_text(LIMIT_FILE, "-1"));
	EXPECT_EQ(-EINVAL, write_text(PARAM("pool_bytes"), "1k"));
	EXPECT_EQ(-EINVAL, write_text(PARAM("account"), "perhaps"));
}

TEST_HARNESS_MAIN
