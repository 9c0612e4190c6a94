/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Helpers of the stress programs: random numbers, all operations on the device, and what must be
 * unchanged after its last user.
 */
#ifndef TENSOR_STRESS_H
#define TENSOR_STRESS_H

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../kselftest/include/family.h"

HELPER unsigned int random_below(uint64_t *state, unsigned int n)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 33) % n;
}

HELPER unsigned long env_number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

HELPER bool tap_result(bool good, const char *what)
{
	static int n;

	printf("%s %d %s\n", good ? "ok" : "not ok", ++n, what);
	fflush(stdout);
	return good;
}

/**
 * struct page_record - an allocation in the output of page_owner
 * @order: 2^order pages
 * @slab: a slab page, which may contain objects of other allocations
 * @kept: never freed: memory for call stacks, per-processor memory
 * @module: the call stack contains the module
 * @text: the first part of the record, or NULL
 * @len: length of @text
 */
struct page_record {
	int order;
	bool slab, kept, module;
	char text[2048];
	size_t len;
};

HELPER void record_line(struct page_record *r, const char *line)
{
	r->slab |= !strncmp(line, "PFN ", 4) && strstr(line, "slab");
	r->kept |= strstr(line, "stack_depot_save") || strstr(line, "pcpu_populate_chunk");
	r->module |= strstr(line, "[tensor]") != NULL;
}

/*
 * The number of pages whose allocation stack is in the module; -1 without page_owner. kmemleak
 * finds leaked objects of slabs: a slab page lives as long as any object in it. @show: print the
 * stacks.
 */
HELPER long pages_of_module(bool show)
{
	FILE *f = fopen("/sys/kernel/debug/page_owner", "re");
	struct page_record r = { .order = -1 };
	char line[512];
	long pages = 0;

	if (!f || !fgets(line, sizeof(line), f)) {
		if (f)
			fclose(f);
		return -1;
	}
	do {
		if (sscanf(line, "Page allocated via order %d", &r.order) == 1)
			continue;
		record_line(&r, line);
		if (show && r.len < sizeof(r.text))
			r.len += snprintf(r.text + r.len, sizeof(r.text) - r.len, "# %s", line);
		if (line[0] != '\n')
			continue;
		if (r.order >= 0 && r.module && !r.slab && !r.kept) {
			pages += 1L << r.order;
			if (show)
				fputs(r.text, stdout);
		}
		r = (struct page_record){ .order = -1 };
	} while (fgets(line, sizeof(line), f));
	fclose(f);
	return pages;
}

/**
 * struct hands - the objects that a process holds
 * @dev: open device
 * @alloc: a buffer
 * @fd: a buffer fd, its own or from another process
 * @dmabuf: a dma-buf fd
 * @at: a mapping
 * @bytes: size of the mapping
 */
struct hands {
	int dev;
	struct tensor_alloc alloc;
	int fd;
	int dmabuf;
	char *at;
	size_t bytes;
};

HELPER void hands_empty(struct hands *h)
{
	if (h->at)
		munmap(h->at, h->bytes);
	if (h->dmabuf >= 0)
		close(h->dmabuf);
	if (h->fd >= 0)
		close(h->fd);
	if (h->dev >= 0)
		close(h->dev);
	*h = (struct hands){ .dev = -1, .fd = -1, .dmabuf = -1 };
}

HELPER void hands_swap_fd(int *at, int fd)
{
	if (fd < 0)
		return;
	if (*at >= 0)
		close(*at);
	*at = fd;
}

HELPER void hands_map(struct hands *h, int fd, uint64_t offset, size_t bytes)
{
	void *at = map_shared(fd, bytes, PROT_READ | PROT_WRITE, offset);

	if (at == MAP_FAILED)
		return;
	if (h->at)
		munmap(h->at, h->bytes);
	h->at = at;
	h->bytes = bytes;
}

#endif
