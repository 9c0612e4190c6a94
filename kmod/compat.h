/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between the kernels this module is built for: 6.1, 6.12, 7.2.
 *
 * Only this file depends on the kernel version. Each shim defines the newest name for an old
 * kernel, so that support for an old kernel is dropped by deleting lines here. checkpatch's
 * objection to LINUX_VERSION_CODE applies to code inside the kernel's tree.
 */
#ifndef TENSOR_COMPAT_H
#define TENSOR_COMPAT_H

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/printk.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/workqueue.h>

/* 6.3 replaced the user namespace of inode methods by an idmapping. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define mnt_idmap user_namespace
#endif

/* 6.3 made vma->vm_flags read-only except through setters. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/*
 * Before 6.12 mremap() mistakes the entry of a huge page that is being removed for that of an empty
 * page table, and moves a table at physical address 0 to the new place (move_normal_pmd()).
 */
#define MREMAP_MISTAKES_ENTRIES (LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0))

/* 6.13 made symbol namespaces strings. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns) MODULE_INFO(import_ns, ns)
#endif

/* 6.10 removed the source argument of __assign_str(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define tensor_assign_str(dst, src) __assign_str(dst, src)
#else
#define tensor_assign_str(dst, src) __assign_str(dst)
#endif

/* 6.8 introduced the name of the largest order; until 6.4 MAX_ORDER was one above it. */
#ifndef MAX_PAGE_ORDER
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define MAX_PAGE_ORDER (MAX_ORDER - 1)
#else
#define MAX_PAGE_ORDER MAX_ORDER
#endif
#endif

/* 6.14 added the function that creates and starts a worker. */
#ifndef kthread_run_worker
#define kthread_run_worker kthread_create_worker
#endif

/* 6.7 made shrinkers objects that are allocated, then registered. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
struct tensor_named_shrinker {
	struct shrinker shrinker;
	const char *name;
};

static inline struct shrinker *shrinker_alloc(unsigned int flags, const char *name)
{
	struct tensor_named_shrinker *named = kzalloc(sizeof(*named), GFP_KERNEL);

	if (!named)
		return NULL;
	named->shrinker.flags = flags;
	named->shrinker.seeks = DEFAULT_SEEKS;
	named->name = name;
	return &named->shrinker;
}

/* A shrinker that could not be registered is never called; this is no error. */
static inline void shrinker_register(struct shrinker *shrinker)
{
	struct tensor_named_shrinker *named =
		container_of(shrinker, struct tensor_named_shrinker, shrinker);

	if (register_shrinker(shrinker, "%s", named->name))
		pr_warn("tensor: no memory for a shrinker\n");
}

static inline void shrinker_free(struct shrinker *shrinker)
{
	if (!shrinker)
		return;
	unregister_shrinker(shrinker);
	kfree(container_of(shrinker, struct tensor_named_shrinker, shrinker));
}
#endif

/*
 * 6.7 passes the struct genl_info of the request to a dump; attributes have the same name in both.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define genl_info_dump genl_dumpit_info
#endif

/*
 * 6.2 breaks copy-on-write for a pin that reads; before, the pages of a private mapping were the
 * right ones only until their owner wrote to them. There a pin has to be for writing, with
 * FOLL_FORCE. A shared read-only mapping refuses that and does not need it.
 */
static inline int tensor_pin_pages(unsigned long addr, int nr, bool write, struct page **pages)
{
	if (LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0) && !write) {
		int got = pin_user_pages_fast(addr, nr, FOLL_LONGTERM | FOLL_WRITE | FOLL_FORCE,
					      pages);

		if (got != -EFAULT)
			return got;
		/* a single page: the next one may be in a private mapping */
		nr = 1;
	}
	return pin_user_pages_fast(addr, nr, FOLL_LONGTERM | (write ? FOLL_WRITE : 0), pages);
}

/* 7.2 exports alloc_contig_pages() to modules; 6.12 does not. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0) && defined(CONFIG_CONTIG_ALLOC)
#define TENSOR_CONTIG_PAGES	  true
#define tensor_alloc_contig_pages alloc_contig_pages
#else
#define TENSOR_CONTIG_PAGES false
static inline struct page *tensor_alloc_contig_pages(unsigned long pages, gfp_t gfp, int node,
						     nodemask_t *nodes)
{
	return NULL;
}
#endif

/*
 * 6.10 makes folio_mapcount() available to modules. This version is for folios that are not
 * anonymous.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
static inline int tensor_folio_mapcount(struct folio *folio)
{
	long i, nr = folio_nr_pages(folio);
	int count = 0, whole;

	for (i = 0; i < nr; i++)
		count += atomic_read(&folio_page(folio, i)->_mapcount) + 1;
	if (nr == 1)
		return count;
	/* a mapping of the whole folio counts at each page, too */
	whole = folio_entire_mapcount(folio);
	return count + whole - whole * nr;
}
#else
#define tensor_folio_mapcount folio_mapcount
#endif

/* Renamed by 6.18; 7.2 warns of the old name. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define system_dfl_wq system_unbound_wq
#endif

/* 6.17 renamed call_mmap(), when a second way to map a file was added. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define vfs_mmap call_mmap
#endif

/*
 * 6.11 added memfd_pin_folios(). Before, take references to the pages, wherever they are, and
 * return each folio once, as the new function does. Only for files of shmem.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
static inline void unpin_folios(struct folio **folios, unsigned long nr)
{
	while (nr--)
		folio_put(folios[nr]);
}

static inline long memfd_pin_folios(struct file *memfd, loff_t start, loff_t end,
				    struct folio **folios, unsigned int room, pgoff_t *offset)
{
	pgoff_t index = start >> PAGE_SHIFT;
	unsigned int nr = 0;
	struct page *page;

	while (index <= end >> PAGE_SHIFT && nr < room) {
		cond_resched();
		if (fatal_signal_pending(current)) {
			unpin_folios(folios, nr);
			return -EINTR;
		}
		page = shmem_read_mapping_page(memfd->f_mapping, index);
		if (IS_ERR(page)) {
			unpin_folios(folios, nr);
			return PTR_ERR(page);
		}
		folios[nr] = page_folio(page);
		index = folio_next_index(folios[nr++]);
	}
	*offset = offset_in_folio(folios[0], start);
	return nr;
}
#endif

#endif /* TENSOR_COMPAT_H */
