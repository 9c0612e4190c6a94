// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Many existing buffers: the cost of the next one, the kernel memory of each, a dump of all, the
 * close of an open that holds all; and the delay of another process during the last two.
 *
 * The peer of the next buffer is the next memfd, with as many open.
 */
#include <fcntl.h>
#include <linux/tensor.h>
#include <linux/tensor_netlink.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "module.h"

#define RUNS 64

/* Results of the neighbour, in memory shared with it. */
struct neighbour {
	volatile int ready;
	volatile int measure;
	volatile uint64_t longest;
	volatile uint64_t total;
	volatile uint64_t nr;
};

static struct neighbour *neighbour;
static pid_t neighbour_pid;
static int crowd = -1;

static struct tensor_alloc alloc_page(int dev)
{
	struct tensor_alloc a = { .size = sizeof(a), .bytes = PAGE, .node = TENSOR_NODE_ANY };

	must(!ioctl(dev, TENSOR_IOC_ALLOC, &a), "ALLOC");
	return a;
}

static void close_handle(int dev, uint32_t handle)
{
	struct tensor_close c = { .size = sizeof(c), .handle = handle };

	must(!ioctl(dev, TENSOR_IOC_CLOSE, &c), "CLOSE");
}

static int open_device(void)
{
	int fd = open("/dev/tensor", O_RDWR | O_CLOEXEC);

	must(fd >= 0, "/dev/tensor");
	return fd;
}

/* Another process with its own open: allocates and frees a buffer in a loop. */
static void neighbour_live(void)
{
	int dev = open_device();
	uint64_t ns;

	neighbour->ready = 1;
	for (;;) {
		ns = now_ns();
		close_handle(dev, alloc_page(dev).handle);
		ns = now_ns() - ns;
		if (neighbour->measure) {
			neighbour->longest = ns > neighbour->longest ? ns : neighbour->longest;
			neighbour->total += ns;
			neighbour->nr++;
		}
		/* pause, so that it does not use a whole processor */
		rest_ms(1);
	}
}

static void neighbour_start(void)
{
	neighbour = mmap(NULL, sizeof(*neighbour), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(neighbour != MAP_FAILED, "mmap");
	neighbour_pid = fork();
	must(neighbour_pid >= 0, "fork");
	if (!neighbour_pid) {
		close(crowd);
		neighbour_live();
	}
	/* it holds a copy of the fd until then */
	while (!neighbour->ready)
		rest_ms(1);
}

static void neighbour_stop(void)
{
	kill(neighbour_pid, SIGKILL);
	waitpid(neighbour_pid, NULL, 0);
	munmap(neighbour, sizeof(*neighbour));
}

static void neighbour_watch(void)
{
	neighbour->longest = neighbour->total = neighbour->nr = 0;
	neighbour->measure = 1;
}

static void neighbour_tell(const char *row, unsigned long live)
{
	neighbour->measure = 0;
	fact_print("scale", row, "neighbour, longest", live, "ns", (double)neighbour->longest);
	fact_print("scale", row, "neighbour, mean", live, "ns",
		   neighbour->nr ? (double)neighbour->total / (double)neighbour->nr : 0);
	fact_print("scale", row, "neighbour, answers", live, "answers", (double)neighbour->nr);
}

/* Kernel memory other than pages of buffers and of files. */
static double kernel_bytes(void)
{
	char text[4096], *at;
	double kib = 0;
	static const char *const keys[] = { "SUnreclaim:", "SReclaimable:", "VmallocUsed:",
					    "Percpu:" };
	size_t i;
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	must(n > 0, "/proc/meminfo");
	text[n] = '\0';
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		at = strstr(text, keys[i]);
		if (at)
			kib += strtod(at + strlen(keys[i]), NULL);
	}
	return kib * 1024;
}

static struct sample next_tensor(void)
{
	uint32_t handles[RUNS];
	struct sample s;
	uint64_t ns;
	int i;

	ns = now_ns();
	for (i = 0; i < RUNS; i++)
		handles[i] = alloc_page(crowd).handle;
	s = (struct sample){ .ns = (double)(now_ns() - ns) / RUNS };
	for (i = 0; i < RUNS; i++)
		close_handle(crowd, handles[i]);
	return s;
}

static int memfd_page(void)
{
	int fd = memfd_create("bench", MFD_CLOEXEC);

	must(fd >= 0 && !ftruncate(fd, PAGE) && !fallocate(fd, 0, 0, PAGE), "memfd");
	return fd;
}

static struct sample next_memfd(void)
{
	struct sample s;
	int fds[RUNS];
	uint64_t ns;
	int i;

	ns = now_ns();
	for (i = 0; i < RUNS; i++)
		fds[i] = memfd_page();
	s = (struct sample){ .ns = (double)(now_ns() - ns) / RUNS };
	for (i = 0; i < RUNS; i++)
		close(fds[i]);
	return s;
}

static void next_row(const char *side, unsigned long live, struct sample (*next)(void))
{
	struct result r = { .group = "scale", .row = "the next one", .side = side, .count = live };
	unsigned int round;

	for (round = 0; round < options.rounds; round++)
		result_add(&r, next());
	result_print(&r);
}

static void once_row(const char *row, const char *side, unsigned long live, uint64_t ns)
{
	struct result r = { .group = "scale", .row = row, .side = side, .count = live };

	result_add(&r, (struct sample){ .ns = (double)ns });
	result_print(&r);
}

static void dump_row(unsigned long live)
{
	struct result r = { .group = "scale", .row = "a dump", .side = "tensor", .count = live };
	unsigned int round;
	unsigned long rows;
	uint64_t ns;

	neighbour_watch();
	for (round = 0; round < options.rounds; round++) {
		ns = now_ns();
		rows = netlink_dump(TENSOR_CMD_BUF_GET);
		result_add(&r, (struct sample){ .ns = (double)(now_ns() - ns) });
		must(rows + 1 >= live, "the dump has too few rows");
	}
	neighbour_tell("a dump", live);
	result_print(&r);
}

/* Allocates all of them in one open, measures, and frees them. */
static void tensors(unsigned long live)
{
	double kernel = kernel_bytes();
	unsigned long i;
	uint64_t ns;

	crowd = open_device();
	neighbour_start();
	ns = now_ns();
	for (i = 0; i < live; i++)
		alloc_page(crowd);
	once_row("all of them", "tensor", live, now_ns() - ns);
	fact_print("scale", "kernel memory of one", "tensor", live, "bytes",
		   (kernel_bytes() - kernel) / (double)live);
	next_row("tensor", live, next_tensor);
	dump_row(live);
	neighbour_watch();
	ns = now_ns();
	close(crowd);
	once_row("close", "tensor", live, now_ns() - ns);
	neighbour_tell("close", live);
	neighbour_watch();
	rest_ms(200);
	neighbour_tell("nothing", live);
	neighbour_stop();
}

/* The exit of the process frees them, as in most programs. */
static void memfds_in_child(unsigned long live, double kernel)
{
	unsigned long i;
	uint64_t ns;

	ns = now_ns();
	for (i = 0; i < live; i++)
		memfd_page();
	once_row("all of them", "memfd", live, now_ns() - ns);
	fact_print("scale", "kernel memory of one", "memfd", live, "bytes",
		   (kernel_bytes() - kernel) / (double)live);
	next_row("memfd", live, next_memfd);
	ns = now_ns();
	must(!close_range(3, ~0U, 0), "close_range");
	once_row("close", "memfd", live, now_ns() - ns);
	_exit(0);
}

static void memfds(unsigned long live)
{
	struct rlimit room = { .rlim_cur = live + 1024, .rlim_max = live + 1024 };
	double kernel = kernel_bytes();
	int status;
	pid_t pid;

	if (setrlimit(RLIMIT_NOFILE, &room))
		return;
	fflush(stdout);
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid)
		memfds_in_child(live, kernel);
	must(waitpid(pid, &status, 0) == pid && !status, "the child with the memfds");
}

void bench_scale(void)
{
	unsigned long live;

	netlink_open();
	for (live = 1; live <= options.live; live *= 10) {
		tensors(live);
		memfds(live);
	}
}
