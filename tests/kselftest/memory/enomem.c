// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * In a full memory cgroup every call of the module fails with ENOMEM, and no process is killed.
 *
 * Each variant repeats one call until the cgroup is full, whichever allocation fails first: pages,
 * the array of chunks, the structs of buffer and handle, an inode, a node of an xarray.
 *
 * Not tested: open(), mmap() and EXPORT. The core allocates files, dentries and mappings for these
 * as for any file, and runs the OOM killer if that fails; the module cannot change that.
 */
#include <sys/resource.h>

#include "../include/cgroup.h"
#include "kselftest_harness.h"

#define MAX    "4194304"
#define MEMFDS 64
#define MOST   2000000
#define AFTER  300

/* Made before the cgroup is entered, so that they are not charged to it. */
static struct {
	int fd;
	int memfd[MEMFDS];
	char *page;
	unsigned int calls;
} have;

static int call_alloc_page(int dev)
{
	struct tensor_alloc alloc;

	return dev_alloc(dev, PAGE, &alloc);
}

/* Buffers of single pages, so that the array of chunks is as long as possible. */
static int call_alloc_chunks(int dev)
{
	struct tensor_alloc alloc = alloc_args((1 + have.calls * 37 % 200) * PAGE);

	alloc.flags = TENSOR_ALLOC_ORDERS;
	return dev_call(dev, TENSOR_IOC_ALLOC, &alloc);
}

static int call_alloc_contig(int dev)
{
	struct tensor_alloc alloc = alloc_args(3 * PAGE);

	alloc.flags = TENSOR_ALLOC_CONTIG;
	return dev_call(dev, TENSOR_IOC_ALLOC, &alloc);
}

/* Another use of the same handle: allocates nothing and is never refused. */
static int call_import_one(int dev)
{
	struct tensor_import import;

	return buf_import(dev, have.fd, &import);
}

static int call_import_many(int dev)
{
	struct tensor_import import;

	return buf_import(dev, have.memfd[have.calls % MEMFDS], &import);
}

static int call_pin(int dev)
{
	int64_t handle = buf_pin(dev, have.page, (1 + have.calls % 8) * PAGE, TENSOR_PIN_RDONLY);

	return handle < 0 ? (int)handle : 0;
}

/* A descriptor for every new buffer: META must not need to allocate. */
static int call_meta(int dev)
{
	struct tensor_desc desc = { .bits = 8,
				    .dtype = TAG_U8,
				    .ndim = 1,
				    .sizes = { 8 },
				    .strides = { 1 },
				    .label = "weights" };
	struct tensor_alloc alloc;
	int err = dev_alloc(dev, PAGE, &alloc);

	return err ?: buf_meta(dev, alloc.handle, TENSOR_META_SET, &desc);
}

FIXTURE(enomem)
{
	uint64_t used;
	int dev;
};

FIXTURE_VARIANT(enomem)
{
	int (*call)(int dev);
};

FIXTURE_VARIANT_ADD(enomem, alloc_of_a_page){ .call = call_alloc_page };
FIXTURE_VARIANT_ADD(enomem, alloc_of_many_chunks){ .call = call_alloc_chunks };
FIXTURE_VARIANT_ADD(enomem, alloc_in_one_piece){ .call = call_alloc_contig };
FIXTURE_VARIANT_ADD(enomem, import_of_one_fd){ .call = call_import_one };
FIXTURE_VARIANT_ADD(enomem, import_of_memfds){ .call = call_import_many };
FIXTURE_VARIANT_ADD(enomem, pin){ .call = call_pin };
FIXTURE_VARIANT_ADD(enomem, meta){ .call = call_meta };

FIXTURE_SETUP(enomem)
{
	struct tensor_query query;
	int i;

	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_query(self->dev, &query));
	if (!(query.features & TENSOR_FEATURE_MEMCG))
		SKIP(_exit(255), "no memory cgroups");
	self->used = query.used_bytes;
	have.fd = buf_new_fd(PAGE);
	ASSERT_LE(0, have.fd);
	for (i = 0; i < MEMFDS; i++) {
		have.memfd[i] = memfd_new(PAGE, 0);
		ASSERT_LE(0, have.memfd[i]);
	}
	have.page =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, have.page);
	memset(have.page, 1, 8 * PAGE);
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
}

FIXTURE_TEARDOWN(enomem)
{
	int i;

	for (i = 0; i < MEMFDS; i++)
		close(have.memfd[i]);
	close(have.fd);
	EXPECT_TRUE(used_becomes(self->dev, self->used));
	close(self->dev);
}

static bool is_refusal(int err)
{
	return err == -ENOMEM || err == -EMFILE;
}

/*
 * Whether the call succeeds again after all was closed; memory that is freed with a delay is
 * uncharged with a delay.
 */
static bool succeeds_after_close(int (*call)(int dev), int dev)
{
	int tries;

	for (tries = 0; call(dev); tries++) {
		if (tries == 100)
			return false;
		sleep_ms(50);
	}
	return true;
}

/* Child: 0, or the step that failed. */
static int fill_cgroup(const void *arg)
{
	int (*const *call)(int dev) = arg;
	int dev = dev_open(), fresh = dev_open(), err = 0, i;

	for (have.calls = 0; !err && have.calls < MOST; have.calls++)
		err = (*call)(dev);
	if (*call == call_import_one)
		return err ? 1 : 0;
	if (!is_refusal(err))
		return 1;
	/* full, or nearly so: now the smallest allocations are the ones that fail */
	for (i = 0; i < AFTER; i++, have.calls++) {
		err = (*call)(dev);
		if (err && !is_refusal(err))
			return 2;
	}
	close(dev);
	return succeeds_after_close(*call, fresh) ? 0 : 3;
}

TEST_F_TIMEOUT(enomem, full_cgroup_is_enomem_without_oom_kill, 300)
{
	int64_t kills = -1;
	int got;

	got = in_cgroup_kills(MAX, fill_cgroup, &variant->call, &kills);
	EXPECT_EQ(0, got);
	EXPECT_EQ(0, kills);
}

TEST_HARNESS_MAIN
