/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Observes the module from outside, without a reference to it or to a buffer. */
#ifndef TENSOR_LIFETIMES_KERNEL_H
#define TENSOR_LIFETIMES_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Totals of the netlink family. */
struct expected {
	uint64_t clients, bufs, bytes, files, dmabufs;
};

bool kernel_open(void);
bool kernel_totals_are(const struct expected *want, char *wrong, size_t room);
bool kernel_stays_loaded(char *wrong, size_t room);
bool kernel_is_unused(char *wrong, size_t room);
bool kernel_log_is_clean(char *wrong, size_t room);
void kernel_settle(void);
bool kernel_reload(char *wrong, size_t room);

/**
 * struct kernel_memory - memory use of the kernel, which must not grow
 * @pages: free pages
 * @inodes: objects of inode_cache, which file systems without a slab cache of their own use
 * @owned: pages of the module according to page_owner; -1: no page_owner
 */
struct kernel_memory {
	int64_t pages, inodes, owned;
};

struct kernel_memory kernel_memory(void);
bool kernel_memory_agrees(const struct kernel_memory *before, const struct kernel_memory *after,
			  unsigned long times);

#endif
