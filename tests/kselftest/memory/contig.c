// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * CONTIG gives physically contiguous pages, each with a reference count, or refuses.
 *
 * A tail page of an allocation that is neither compound nor split has a reference count of 0. The
 * first munmap() then frees it although the buffer still uses it: a kernel with DEBUG_VM stops
 * there (kernel BUG at include/linux/mm.h), any other gives the page to the next process.
 */
#include <sys/uio.h>

#include "../include/cgroup.h"
#include "kselftest_harness.h"

#define RW	       (PROT_READ | PROT_WRITE)
#define KPF_BUDDY      10
#define SLOTS	       256
#define STRANGER_BYTES (2 * MIB)
#define LARGE	       2048

static const uint64_t sizes[] = {
	1,   2,	  3,	5,    7,    8,	  64,	100,  255,  256,  300,	511,   512,
	513, 768, 1000, 1023, 1024, 1025, 1536, 2048, 3000, 4096, 6144, 16384,
};

static const uint32_t kinds[] = {
	0,
	TENSOR_ALLOC_NODE_ONLY,
	TENSOR_ALLOC_DMA32,
	TENSOR_ALLOC_NODE_ONLY | TENSOR_ALLOC_DMA32,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * State of a buffer: its first frame, a table with a number per page, a pipe that holds some of its
 * pages.
 */
struct pages {
	uint64_t count;
	uint64_t step;
	uint64_t first;
	uint64_t table[16384];
	int ends[2];
};

static struct pages pages;

FIXTURE(contig)
{
	int dev;
	uint64_t used;
	struct tensor_query query;
	char limit[64];
};

FIXTURE_SETUP(contig)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_query(self->dev, &self->query));
	self->used = self->query.used_bytes;
	read_text(LIMIT_FILE, self->limit, sizeof(self->limit));
	ASSERT_EQ(0, write_text(LIMIT_FILE, "1099511627776"));
}

FIXTURE_TEARDOWN(contig)
{
	int dev = dev_open();

	close(self->dev);
	EXPECT_EQ(0, write_text(LIMIT_FILE, self->limit));
	EXPECT_TRUE(used_becomes(dev, self->used));
	close(dev);
}

static int alloc_contig(int dev, uint64_t count, uint32_t flags, int node,
			struct tensor_alloc *alloc)
{
	*alloc = alloc_args(count * PAGE);
	alloc->flags = flags | TENSOR_ALLOC_CONTIG;
	if (flags & TENSOR_ALLOC_NODE_ONLY)
		alloc->node = node;
	return dev_call(dev, TENSOR_IOC_ALLOC, alloc);
}

/* Reads 8-byte numbers per page or frame from a file: 0 or -errno. */
static int read_table(const char *path, uint64_t first, uint64_t count, uint64_t *table)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t done = 0;
	ssize_t got = 1;

	while (fd >= 0 && got > 0 && done < count * sizeof(*table)) {
		got = pread(fd, (char *)table + done, count * sizeof(*table) - done,
			    first * sizeof(*table) + done);
		if (got > 0)
			done += got;
	}
	close(fd);
	return done == count * sizeof(*table) ? 0 : -EIO;
}

/* Child: allocates and overwrites memory: pages that were freed by mistake are reused first. */
static void overwrite_freed_memory(void)
{
	void *at = mmap(NULL, STRANGER_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	memset(at, 0xee, STRANGER_BYTES);
	munmap(at, STRANGER_BYTES);
}

static void fill(unsigned char *at, uint64_t i)
{
	memset(at, 0x11 + i % 97, PAGE);
	memcpy(at, &i, sizeof(i));
}

static bool filled(const unsigned char *at, uint64_t i)
{
	return !memcmp(at, &i, sizeof(i)) &&
	       all_bytes(at + sizeof(i), 0x11 + i % 97, PAGE - sizeof(i));
}

static const char *fill_all(unsigned char *at)
{
	uint64_t i;

	if (!all_bytes(at, 0, pages.count * PAGE))
		return "is not zero";
	for (i = 0; i < pages.count; i++)
		fill(at + i * PAGE, i);
	return NULL;
}

/* With all pages mapped: they are contiguous, and each page counts one mapping. */
static const char *check_mapped(const unsigned char *at)
{
	uint64_t i;

	pages.first = page_frame(at);
	if (read_table("/proc/self/pagemap", (uintptr_t)at / PAGE, pages.count, pages.table))
		return "is not in the page map";
	for (i = 0; i < pages.count; i++) {
		if ((pages.table[i] & ((1ULL << 55) - 1)) != pages.first + i)
			return "is not in one piece";
	}
	if (read_table("/proc/kpagecount", pages.first, pages.count, pages.table))
		return "has no counts";
	for (i = 0; i < pages.count; i++) {
		if (!pages.table[i] || pages.table[i] > 1000)
			return "has a mapped page that counts no mapping";
	}
	return NULL;
}

/* Splices as many pages as a pipe has slots, from all over the buffer. */
static const char *splice_some(unsigned char *at)
{
	uint64_t i;

	if (pipe2(pages.ends, O_CLOEXEC | O_NONBLOCK) ||
	    fcntl(pages.ends[1], F_SETPIPE_SZ, SLOTS * PAGE) < 0)
		return "has no pipe";
	for (i = 0; i < pages.count; i += pages.step) {
		struct iovec part = { .iov_base = at + i * PAGE, .iov_len = PAGE };

		if (vmsplice(pages.ends[1], &part, 1, SPLICE_F_NONBLOCK) != (ssize_t)PAGE)
			return "has a page that cannot be spliced";
	}
	return NULL;
}

static const char *read_spliced(void)
{
	unsigned char page[PAGE];
	uint64_t i;

	for (i = 0; i < pages.count; i += pages.step) {
		if (read(pages.ends[0], page, PAGE) != (ssize_t)PAGE)
			return "left no page in the pipe";
		if (!filled(page, i))
			return "left a page in the pipe that shows other data";
	}
	return NULL;
}

/* After munmap() the buffer still holds all pages. */
static const char *kept_by_buffer(int dev, const struct tensor_alloc *alloc)
{
	const char *wrong = NULL;
	unsigned char *at;
	uint64_t i;

	if (read_table("/proc/kpageflags", pages.first, pages.count, pages.table))
		return "has no flags";
	for (i = 0; i < pages.count; i++) {
		if (pages.table[i] & (1ULL << KPF_BUDDY))
			return "has pages that are free";
	}
	overwrite_freed_memory();
	at = map_shared(dev, alloc->bytes, RW, alloc->mmap_offset);
	if (at == MAP_FAILED)
		return "cannot be mapped again";
	for (i = 0; i < pages.count && !wrong; i++) {
		if (!filled(at + i * PAGE, i))
			wrong = "has a page that shows other data";
	}
	munmap(at, alloc->bytes);
	return wrong;
}

/* Checks the pages of a buffer and closes it: NULL, or a description of the fault. */
static const char *check_buffer(int dev, const struct tensor_alloc *alloc)
{
	unsigned char *at = map_shared(dev, alloc->bytes, RW, alloc->mmap_offset);
	const char *wrong;

	if (at == MAP_FAILED)
		return "cannot be mapped";
	pages.count = alloc->bytes / PAGE;
	pages.step = pages.count / SLOTS + 1;
	pages.ends[0] = -1;
	pages.ends[1] = -1;
	wrong = fill_all(at) ?: check_mapped(at) ?: splice_some(at);
	munmap(at, alloc->bytes);
	wrong = wrong ?: kept_by_buffer(dev, alloc);
	if (dev_close(dev, alloc->handle))
		wrong = wrong ?: "cannot be closed";
	overwrite_freed_memory();
	wrong = wrong ?: read_spliced();
	close(pages.ends[0]);
	close(pages.ends[1]);
	return wrong;
}

/* EOPNOTSUPP: larger than this kernel can ever give. ENOMEM: no such range is free. */
static bool may_refuse(int err, uint64_t count)
{
	return err == -ENOMEM || (err == -EOPNOTSUPP && count > largest_block());
}

/* One request, in the cgroup if @enter; prints faults. Returns whether all is well. */
static bool check_request(int dev, uint64_t count, uint32_t flags, int node, bool enter)
{
	int leave = cgroup_leave_open(), err;
	struct tensor_alloc alloc;
	const char *wrong = NULL;

	if (enter && cgroup_enter())
		wrong = "cannot enter the cgroup";
	err = alloc_contig(dev, count, flags, node, &alloc);
	if (enter && write(leave, "0", 1) != 1)
		wrong = "cannot leave the cgroup";
	close(leave);
	if (!err)
		wrong = wrong ?: check_buffer(dev, &alloc);
	else if (!may_refuse(err, count))
		wrong = strerror(-err);
	if (wrong)
		fprintf(stderr, "# CONTIG of %llu pages, flags 0x%x, %s the cgroup: %s\n",
			(unsigned long long)count, flags, enter ? "in" : "not in", wrong);
	return !wrong;
}

static int count_bad_requests(int dev, int nodes, bool enter)
{
	unsigned int i, k, n, failed = 0;

	for (k = 0; k < COUNT(kinds); k++) {
		for (i = 0; i < COUNT(sizes); i++) {
			/* once is enough, because it takes long */
			if (k && sizes[i] > LARGE)
				continue;
			n = kinds[k] & TENSOR_ALLOC_NODE_ONLY ? (i + k) % nodes : 0;
			failed += !check_request(dev, sizes[i], kinds[k], n, enter);
		}
	}
	return failed;
}

TEST_F_TIMEOUT(contig, every_page_is_counted_or_it_is_refused, 400)
{
	EXPECT_EQ(0, count_bad_requests(self->dev, self->query.nodes, false));
}

/* No source of memory exceeds memory.max. */
TEST_F(contig, small_cgroup_is_charged_for_all_of_it)
{
	struct tensor_alloc alloc;
	int leave = cgroup_leave_open();
	unsigned int i;

	if (!(self->query.features & TENSOR_FEATURE_MEMCG))
		SKIP(return, "no memory cgroups");
	ASSERT_EQ(0, cgroup_make("1048576"));
	for (i = 0; i < COUNT(sizes); i++) {
		int err;

		if (sizes[i] <= 256)
			continue;
		ASSERT_EQ(0, cgroup_enter());
		err = alloc_contig(self->dev, sizes[i], 0, 0, &alloc);
		ASSERT_EQ(1, write(leave, "0", 1));
		EXPECT_TRUE(err && may_refuse(err, sizes[i]))
		TH_LOG("%llu pages: %d", (unsigned long long)sizes[i], err);
		/* not closed: if its pages are corrupt the kernel could stop */
	}
	close(leave);
	cgroup_remove();
}

/* Fills a node as far as ALLOC can. */
static int fill_node(int dev, int node)
{
	uint64_t bytes = 16 * MIB;
	int err;

	while (bytes >= PAGE) {
		struct tensor_alloc alloc = alloc_args(bytes);

		alloc.flags = TENSOR_ALLOC_NODE_ONLY | TENSOR_ALLOC_ORDERS;
		alloc.node = node;
		err = dev_call(dev, TENSOR_IOC_ALLOC, &alloc);
		if (err == -ENOMEM)
			bytes /= 4;
		else if (err)
			return err;
	}
	return 0;
}

TEST_F_TIMEOUT(contig, refusal_by_a_full_node_leaks_nothing, 400)
{
	int hold = dev_open(), i, err, refused = 0;
	struct tensor_alloc alloc;
	int64_t before;

	if (self->query.nodes < 2)
		SKIP(return, "one NUMA node (tests/vm/run --numa 2)");
	ASSERT_EQ(0, fill_node(hold, 1));
	/* CONTIG reclaims where ALLOC of a single page gives up */
	for (i = 0, err = 0; i < 200 && !err; i++)
		err = alloc_contig(hold, 100, TENSOR_ALLOC_NODE_ONLY, 1, &alloc);
	ASSERT_EQ(-ENOMEM, err);
	before = memory_free();
	for (i = 0; i < 400 && refused < 50; i++) {
		uint64_t count = i % 2 ? 300 : 100;

		/* keep what reclaim found, or each further call would find it again */
		err = alloc_contig(hold, count, TENSOR_ALLOC_NODE_ONLY, 1, &alloc);
		ASSERT_TRUE(!err || err == -ENOMEM) TH_LOG("%d", err);
		if (err)
			refused++;
		else
			before -= count * PAGE / KIB;
	}
	EXPECT_EQ(50, refused);
	EXPECT_TRUE(memory_is_freed(before, 4 * 1024))
	TH_LOG("%lld of %lld KiB are free again", (long long)memory_free(), (long long)before);
	close(hold);
}

/* A CMA area is used first, so one has to be used up. */
static void use_up_area(int dev, uint64_t count)
{
	int64_t free_kib;
	struct tensor_alloc alloc;

	do {
		free_kib = read_number("/proc/meminfo", "CmaFree:");
		if (free_kib < (int64_t)(count * PAGE / KIB))
			return;
	} while (!alloc_contig(dev, count, 0, 0, &alloc) &&
		 read_number("/proc/meminfo", "CmaFree:") < free_kib);
}

/* Memory that cannot be charged must not come from an uncharged source, nor have wrong counts. */
TEST_F_TIMEOUT(contig, every_page_is_counted_or_it_is_refused_in_a_small_cgroup, 400)
{
	static const char *const room[] = { "1048576", "262144" };
	int hold = dev_open();
	unsigned int i;

	if (!(self->query.features & TENSOR_FEATURE_MEMCG))
		SKIP(return, "no memory cgroups");
	use_up_area(hold, 2049);
	for (i = 0; i < COUNT(room); i++) {
		ASSERT_EQ(0, cgroup_make(room[i]));
		EXPECT_EQ(0, count_bad_requests(self->dev, self->query.nodes, true))
		TH_LOG("memory.max %s", room[i]);
		EXPECT_EQ(0, cgroup_kills());
		cgroup_remove();
	}
	close(hold);
}

TEST_HARNESS_MAIN
