// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Round trips: the cost of one ioctl, and of the corresponding call for a memfd.
 */
#include <fcntl.h>
#include <linux/tensor.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "module.h"

#define RUNS 256

static struct tensor_alloc buf;
static int memfd;

static void ask(unsigned long cmd, void *arg)
{
	must(!ioctl(memory_device(), cmd, arg), "ioctl");
}

static void do_nothing(void)
{
	syscall(SYS_getppid);
}

static void do_query(void)
{
	struct tensor_query q = { .size = sizeof(q) };

	ask(TENSOR_IOC_QUERY, &q);
}

static void do_info(void)
{
	struct tensor_info i = { .size = sizeof(i), .handle = buf.handle };

	ask(TENSOR_IOC_INFO, &i);
}

static void do_fstat(void)
{
	struct stat st;

	must(!fstat(memfd, &st), "fstat");
}

static void meta(unsigned int flags)
{
	struct tensor_meta m = { .size = sizeof(m), .flags = flags, .handle = buf.handle };

	m.desc = (struct tensor_desc){ .bits = 32,
				       .dtype = 9,
				       .ndim = 2,
				       .sizes = { 16, 16 },
				       .strides = { 16, 1 },
				       .label = "bench" };
	ask(TENSOR_IOC_META, &m);
}

static void do_meta_set(void)
{
	meta(TENSOR_META_SET);
}

static void do_meta_get(void)
{
	meta(0);
}

static void do_alloc(void)
{
	struct tensor_alloc a = { .size = sizeof(a), .bytes = PAGE, .node = TENSOR_NODE_ANY };
	struct tensor_close c = { .size = sizeof(c) };

	ask(TENSOR_IOC_ALLOC, &a);
	c.handle = a.handle;
	ask(TENSOR_IOC_CLOSE, &c);
}

/* An allocated page, like that of ALLOC. */
static void do_memfd(void)
{
	int fd = memfd_create("bench", MFD_CLOEXEC);

	must(fd >= 0 && !ftruncate(fd, PAGE) && !fallocate(fd, 0, 0, PAGE), "memfd");
	close(fd);
}

static int export_fd(void)
{
	/* fewer rights than those of the handle, so that IMPORT creates another handle */
	struct tensor_export e = { .size = sizeof(e),
				   .handle = buf.handle,
				   .rights = TENSOR_RIGHTS_RW };

	ask(TENSOR_IOC_EXPORT, &e);
	return e.fd;
}

static void do_export(void)
{
	close(export_fd());
}

static void do_reopen(void)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	must(fd >= 0, path);
	close(fd);
}

static void do_import(void)
{
	struct tensor_import i = { .size = sizeof(i), .fd = export_fd() };
	struct tensor_close c = { .size = sizeof(c) };

	ask(TENSOR_IOC_IMPORT, &i);
	close(i.fd);
	c.handle = i.handle;
	ask(TENSOR_IOC_CLOSE, &c);
}

static void do_map(void)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_device(),
			(off_t)buf.mmap_offset);

	must(at != MAP_FAILED, "mmap");
	munmap(at, PAGE);
}

static void do_map_memfd(void)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);

	must(at != MAP_FAILED, "mmap");
	munmap(at, PAGE);
}

/**
 * struct trip - a round trip
 * @row: the operation
 * @side: the kind of memory
 * @run: executes it once
 */
struct trip {
	const char *row;
	const char *side;
	void (*run)(void);
};

static const struct trip trips[] = {
	{ "an empty system call", "getppid", do_nothing },
	{ "QUERY", "tensor", do_query },
	{ "INFO", "tensor", do_info },
	{ "INFO", "memfd: fstat", do_fstat },
	{ "META read", "tensor", do_meta_get },
	{ "META set", "tensor", do_meta_set },
	{ "ALLOC 4 KiB, CLOSE", "tensor", do_alloc },
	{ "ALLOC 4 KiB, CLOSE", "memfd: create, truncate, fallocate, close", do_memfd },
	{ "EXPORT, close", "tensor", do_export },
	{ "EXPORT, close", "memfd: open of /proc/self/fd, close", do_reopen },
	{ "EXPORT, IMPORT, CLOSE, close", "tensor", do_import },
	{ "mmap, munmap, untouched", "tensor", do_map },
	{ "mmap, munmap, untouched", "memfd", do_map_memfd },
};

static struct sample measure(const struct trip *t)
{
	uint64_t ns;
	int i;

	t->run();
	ns = now_ns();
	for (i = 0; i < RUNS; i++)
		t->run();
	return (struct sample){ .ns = (double)(now_ns() - ns) / RUNS };
}

void bench_calls(void)
{
	static struct result results[ARRAY_SIZE(trips)];
	unsigned int round;
	size_t i, at;

	buf = (struct tensor_alloc){ .size = sizeof(buf), .bytes = PAGE, .node = TENSOR_NODE_ANY };
	ask(TENSOR_IOC_ALLOC, &buf);
	memfd = memfd_create("bench", MFD_CLOEXEC);
	must(memfd >= 0 && !ftruncate(memfd, PAGE), "memfd_create");
	for (i = 0; i < ARRAY_SIZE(trips); i++)
		results[i] = (struct result){ .group = "calls",
					      .row = trips[i].row,
					      .side = trips[i].side };
	for (round = 0; round < options.rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(trips); i++) {
			at = round % 2 ? ARRAY_SIZE(trips) - 1 - i : i;
			result_add(&results[at], measure(&trips[at]));
		}
	}
	for (i = 0; i < ARRAY_SIZE(trips); i++)
		result_print(&results[i]);
	close(memfd);
	ask(TENSOR_IOC_CLOSE,
	    &(struct tensor_close){ .size = sizeof(struct tensor_close), .handle = buf.handle });
}
