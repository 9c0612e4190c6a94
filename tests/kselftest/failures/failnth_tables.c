// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Insertions into an xarray that fail after some of their nodes were allocated. These nodes stay in
 * the table and must be freed with it, which kmemleak checks at the end of the guest.
 *
 * One failing allocation (failnth.c) is not enough, because the insertion has a fallback. Here all
 * allocations of nodes fail from some point on, and no others: kmemleak replaces failed allocations
 * of its own by a static array, whose content counts as referenced. Needs the debug kernel with
 * slub_debug=A,radix_tree_node, which tests/vm/run sets.
 */
#include <pthread.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define FAILSLAB "/sys/kernel/debug/failslab/"
#define NODES	 "/sys/kernel/slab/radix_tree_node/"
#define PLENTY	 1000 /* nodes */
#define USER	 70000

FIXTURE(tables)
{
	int space;
	int node;
	int dev;
};

static int number_in(const char *path)
{
	char text[32];

	return atoi(read_text(path, text, sizeof(text)));
}

/* Permits that many more allocations of nodes. */
static void allow_nodes(FIXTURE_DATA(tables) * self, int nodes)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nodes * self->node + 1);

	if (write(self->space, text, len) != len)
		abort();
}

FIXTURE_SETUP(tables)
{
	static const char *const set[][2] = {
		{ "cache-filter", "Y" },  { "task-filter", "Y" }, { "ignore-gfp-wait", "N" },
		{ "interval", "1" },	  { "times", "-1" },	  { "verbose", "0" },
		{ "probability", "100" },
	};
	struct tensor_alloc alloc;
	char path[64];
	unsigned int i;

	self->space = open(FAILSLAB "space", O_WRONLY | O_CLOEXEC);
	if (self->space < 0 || !number_in(NODES "failslab"))
		SKIP(_exit(255), "no node of a table can be made to fail here");
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	/* a handle above 255 needs a second node, whatever the size of a node */
	for (i = 0; i < 260; i++) {
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
		ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
	}
	self->node = number_in(NODES "object_size");
	ASSERT_LT(0, self->node);
	allow_nodes(self, PLENTY);
	for (i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		snprintf(path, sizeof(path), FAILSLAB "%s", set[i][0]);
		ASSERT_EQ(0, write_text(path, set[i][1])) TH_LOG("%s", path);
	}
	ASSERT_EQ(0, write_text("/proc/self/make-it-fail", "1"));
}

FIXTURE_TEARDOWN(tables)
{
	write_text("/proc/self/make-it-fail", "0");
	write_text(FAILSLAB "probability", "0");
	write_text(FAILSLAB "task-filter", "N");
	write_text(FAILSLAB "cache-filter", "N");
	close(self->space);
	close(self->dev);
}

/* Makes a call with the nodes that are allowed: 0 or -errno. */
typedef int (*call_fn)(FIXTURE_DATA(tables) * self);

/* Adds nothing to a table that it does not remove again. */
static int call_alloc(FIXTURE_DATA(tables) * self)
{
	struct tensor_alloc alloc;
	int err = dev_alloc(self->dev, PAGE, &alloc);

	return err ? err : dev_close(self->dev, alloc.handle);
}

/* As a user who has nothing else. */
static int call_alloc_of_user(FIXTURE_DATA(tables) * self)
{
	int err;

	if (seteuid(USER))
		abort();
	err = call_alloc(self);
	if (seteuid(0))
		abort();
	return err;
}

/* Number of nodes that a call allocates. Frees nodes that other calls have left with its own. */
static int nodes_of(struct __test_metadata *_metadata, FIXTURE_DATA(tables) * self, call_fn call)
{
	allow_nodes(self, PLENTY);
	EXPECT_EQ(0, call(self));
	return PLENTY - number_in(FAILSLAB "space") / self->node;
}

/*
 * Calls with fewer nodes than it needs. Handle numbers are high, because a low number needs fewer
 * nodes and belongs to a closed handle.
 */
static void call_with(struct __test_metadata *_metadata, FIXTURE_DATA(tables) * self, call_fn call,
		      int nodes)
{
	int err;

	allow_nodes(self, nodes);
	err = call(self);
	EXPECT_EQ(-ENOMEM, err) TH_LOG("with %d nodes", nodes);
	allow_nodes(self, PLENTY);
}

/*
 * Number of nodes that a call with @nodes allocations leaves: the next such call needs that many
 * fewer.
 */
static int left_by(struct __test_metadata *_metadata, FIXTURE_DATA(tables) * self, call_fn call,
		   int allowed)
{
	int needs = nodes_of(_metadata, self, call);

	call_with(_metadata, self, call, allowed);
	return needs - nodes_of(_metadata, self, call);
}

/*
 * Leaves as many nodes as possible, by the last call of its kind, because the next one would use
 * and free them. @others: nodes that the call needs after those of the table
 */
static void leave_nodes(struct __test_metadata *_metadata, FIXTURE_DATA(tables) * self,
			call_fn call, int others)
{
	int needs = nodes_of(_metadata, self, call), allowed = needs - others - 1, left = 0;

	while (allowed > 0 && (left = left_by(_metadata, self, call, allowed)) <= 0)
		allowed--;
	/* otherwise the test would check nothing */
	ASSERT_LT(0, left);
	call_with(_metadata, self, call, allowed);
	TH_LOG("with %d nodes of %d, %d are left", allowed, needs, left);
}

TEST_F(tables, failed_insertions_of_handles_leak_no_nodes)
{
	leave_nodes(_metadata, self, call_alloc, 0);
}

/* The table of users is freed with the module. ALLOC inserts the user before the handle. */
TEST_F(tables, failed_insertions_of_users_leak_no_nodes)
{
	leave_nodes(_metadata, self, call_alloc_of_user, nodes_of(_metadata, self, call_alloc));
}

struct numbers {
	int dev;
	int fd;
	uint32_t highest;
	unsigned long calls, again;
};

/* Fails if a number is returned that was closed before this call began. */
static void *numbers_work(void *data)
{
	struct numbers *n = data;
	struct tensor_import import;
	uint32_t closed;
	int i;

	write_text("/proc/thread-self/make-it-fail", "1");
	for (i = 0; i < 150; i++) {
		closed = __atomic_load_n(&n->highest, __ATOMIC_SEQ_CST);
		if (buf_import(n->dev, n->fd, &import))
			continue;
		__atomic_add_fetch(&n->calls, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&n->again, import.handle <= closed, __ATOMIC_RELAXED);
		dev_close(n->dev, import.handle);
		closed = __atomic_load_n(&n->highest, __ATOMIC_SEQ_CST);
		while (import.handle > closed &&
		       !__atomic_compare_exchange_n(&n->highest, &closed, import.handle, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			;
	}
	write_text("/proc/thread-self/make-it-fail", "0");
	return NULL;
}

/* An insertion releases the table's lock while it waits for memory, and other threads continue. */
TEST_F_TIMEOUT(tables, number_of_a_closed_handle_is_not_reused_soon, 300)
{
	struct numbers n = { .dev = self->dev };
	pthread_t thread[8];
	int i;

	n.fd = memfd_new(PAGE, 0);
	ASSERT_LE(0, n.fd);
	/* fail only allocations that do not wait, and often */
	ASSERT_EQ(0, write_text(FAILSLAB "ignore-gfp-wait", "Y"));
	ASSERT_EQ(0, write_text(FAILSLAB "probability", "70"));
	ASSERT_EQ(0, write_text(FAILSLAB "space", "0"));
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, numbers_work, &n));
	for (i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	EXPECT_LT(600, n.calls);
	EXPECT_EQ(0, n.again) TH_LOG("of %lu", n.calls);
	close(n.fd);
}

TEST_HARNESS_MAIN
