// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of a buffer by processes.
 *
 * A mapping is a plain shared mapping of the buffer's inode, whose fault handler returns pages with
 * a reference: the core can pin, count and split it like any file mapping, and installs a PMD where
 * a chunk has PMD size. mmap() of /dev/tensor at an mmap offset is redirected to such a mapping.
 *
 * A buffer below PMD size has no such chunk and would fault once per page, so a fault there also
 * maps the following pages of the chunk. vm_insert_pages() requires VM_MIXEDMAP, with which the
 * core would not drop the map count of a PMD on unmap, so this is used only where no PMD can exist.
 *
 * The offset of a mapping counts from the start of the buffer even if the file reaches only a part
 * of it, so that revocation finds the mapping.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include <asm/pgalloc.h>

#include "../buffer/file.h"
#include "../buffer/state.h"
#include "../buffer/trace.h"
#include "../compat.h"
#include "map.h"

/* Pages passed to the core at once, and the least that a fault maps. */
#define MAP_BATCH 16

static struct tensor_buf *vma_buf(const struct vm_area_struct *vma)
{
	return tensor_buf_of(file_inode(vma->vm_file));
}

/*
 * The page is locked before the list of pages is released, and stays locked until the entry is set:
 * a task that takes the pages away waits for that, see tensor_buf_block(). A hardware-poisoned page
 * is not passed to the core, which would look for it in a page cache.
 */
static vm_fault_t map_fault(struct vm_fault *vmf)
{
	struct tensor_buf *buf = vma_buf(vmf->vma);
	struct page *page;
	vm_fault_t got;

	down_read(&buf->pages);
	page = tensor_chunks_page(&buf->chunks, vmf->pgoff);
	if (!page) {
		got = VM_FAULT_SIGBUS;
	} else if (PageHWPoison(page)) {
		got = VM_FAULT_HWPOISON;
	} else {
		get_page(page);
		folio_lock(page_folio(page));
		vmf->page = page;
		got = VM_FAULT_LOCKED;
	}
	up_read(&buf->pages);
	return got;
}

/*
 * Install the page table that the core has preallocated for this fault before a folio is locked:
 * vm_insert_pages() would allocate one under the folio's lock, and a task that waits for that lock
 * would wait for reclaim in the memory cgroup of this task. This is pmd_install(), which is not
 * exported to modules.
 */
static void map_table(struct vm_fault *vmf)
{
	struct mm_struct *mm = vmf->vma->vm_mm;
	spinlock_t *lock; /* lock of the PMD table */

	if (!vmf->prealloc_pte)
		return;
	lock = pmd_lock(mm, vmf->pmd);
	if (pmd_none(*vmf->pmd)) {
		mm_inc_nr_ptes(mm);
		/* another processor must not see the table before its entries are cleared */
		smp_wmb();
		pmd_populate(mm, vmf->pmd, vmf->prealloc_pte);
		vmf->prealloc_pte = NULL;
	}
	spin_unlock(lock);
}

/*
 * Set entries for @nr pages of one chunk, whose lock is held, up to one that already exists
 * (-EBUSY). @done: number of entries set.
 */
static int map_pages(struct vm_area_struct *vma, unsigned long addr, struct page *page,
		     unsigned long nr, unsigned long *done)
{
	struct page *pages[MAP_BATCH];
	unsigned long i, n, left;
	int err = 0;

	for (*done = 0; *done < nr && !err; *done += n - left) {
		n = min_t(unsigned long, nr - *done, MAP_BATCH);
		for (i = 0; i < n; i++)
			pages[i] = page + *done + i;
		left = n;
		err = vm_insert_pages(vma, addr + (*done << PAGE_SHIFT), pages, &left);
	}
	return err;
}

/*
 * Number of entries to set at a fault: as many as precede it in the chunk, so that touching all
 * pages in turn causes few faults, and touching only the first maps few pages. All entries are in
 * the existing page table.
 */
static unsigned long map_ahead(const struct vm_area_struct *vma, unsigned long addr,
			       struct folio *folio, struct page *page)
{
	unsigned long before = folio_page_idx(folio, page);
	unsigned long most = max_t(unsigned long, before, MAP_BATCH), nr = 1;

	most = min_t(unsigned long, most, folio_nr_pages(folio) - before);
	most = min(most, (pmd_addr_end(addr, vma->vm_end) - addr) >> PAGE_SHIFT);
	while (nr < most && !PageHWPoison(page + nr))
		nr++;
	return nr;
}

/*
 * An entry that is present already was made by another thread, or is a marker of userfaultfd write
 * protection. finish_fault() distinguishes the two, and replaces a marker by the page.
 */
static vm_fault_t map_fault_small(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK, done;
	struct folio *folio;
	vm_fault_t got;
	int err;

	map_table(vmf);
	got = map_fault(vmf);
	if (got != VM_FAULT_LOCKED)
		return got;
	folio = page_folio(vmf->page);
	err = map_pages(vma, addr, vmf->page, map_ahead(vma, addr, folio, vmf->page), &done);
	if (err == -EBUSY && !done)
		return VM_FAULT_LOCKED;
	folio_unlock(folio);
	folio_put(folio);
	vmf->page = NULL;
	return err && err != -EBUSY ? vmf_error(err) : VM_FAULT_NOPAGE;
}

/* Also called when a mapping is split, moved or inherited: then a writer is already counted. */
static void map_open(struct vm_area_struct *vma)
{
	struct tensor_buf *buf = vma_buf(vma);

	atomic_inc(&buf->mappings);
	if (vma->vm_flags & VM_MAYWRITE)
		atomic_inc(&buf->writers);
}

/*
 * The core calls this for the copy of a mapping before mremap() moves its entries there, with
 * mmap_lock held for writing: no fault can set an entry meanwhile, and after this none is moved.
 * vm_private_data of the copy still refers to the original mapping.
 */
static void map_open_large(struct vm_area_struct *vma)
{
	const struct vm_area_struct *old = vma->vm_private_data;

	map_open(vma);
	vma->vm_private_data = vma;
	if (!MREMAP_MISTAKES_ENTRIES || old->vm_mm != vma->vm_mm)
		return;
	/* the part of a split mapping lies inside the original */
	if (vma->vm_start < old->vm_start || vma->vm_start >= old->vm_end)
		unmap_mapping_range(vma_buf(vma)->inode.i_mapping,
				    (loff_t)vma->vm_pgoff << PAGE_SHIFT,
				    vma->vm_end - vma->vm_start, 1);
}

static void map_close(struct vm_area_struct *vma)
{
	struct tensor_buf *buf = vma_buf(vma);

	trace_tensor_unmap(buf, vma);
	if (vma->vm_flags & VM_MAYWRITE)
		tensor_write_put(buf);
	atomic_dec(&buf->mappings);
}

static const struct vm_operations_struct map_ops = {
	.open = map_open_large,
	.close = map_close,
	.fault = map_fault,
};

static const struct vm_operations_struct map_small_ops = {
	.open = map_open,
	.close = map_close,
	.fault = map_fault_small,
};

/* Larger than one page and without a chunk of PMD size, also after a purge. */
static bool map_small(const struct tensor_buf *buf)
{
	return buf->bytes > PAGE_SIZE && buf->bytes < PMD_SIZE;
}

/**
 * tensor_map_check() - check that a mapping is permitted
 * @hold: the range and the rights
 * @vma: the mapping; its offset counts from the start of the range
 *
 * Return: 0; -EINVAL: past the end, or private and writable; -EACCES: a right is missing; -EPERM:
 * executable.
 */
int tensor_map_check(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff >= hold->count || vma_pages(vma) > hold->count - vma->vm_pgoff)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (!tensor_hold_may(hold, TENSOR_RIGHT_READ))
		return -EACCES;
	if (!(vma->vm_flags & VM_WRITE))
		return 0;
	/* not VM_SHARED: the core clears it in a mapping of a file that is open read-only */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	return tensor_hold_may(hold, TENSOR_RIGHT_WRITE) ? 0 : -EACCES;
}

/* Count the mapping as a writer if it is or may become writable. */
static int map_write(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	int err;

	/* a private mapping must not become writable either: a write would go to a private copy */
	if (tensor_hold_may(hold, TENSOR_RIGHT_WRITE) && vma->vm_flags & VM_MAYSHARE) {
		err = tensor_write_get(hold->buf);
		if (err != -EPERM || vma->vm_flags & VM_WRITE)
			return err;
	}
	vm_flags_clear(vma, VM_MAYWRITE);
	return 0;
}

static int map_alloc(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	int err = map_write(hold, vma);

	if (err)
		return err;
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_pgoff += hold->first;
	vma->vm_ops = &map_ops;
	vma->vm_private_data = vma;
	if (map_small(hold->buf)) {
		vm_flags_set(vma, VM_MIXEDMAP);
		vma->vm_ops = &map_small_ops;
	}
	atomic_inc(&hold->buf->mappings);
	trace_tensor_map(hold->buf, vma);
	return 0;
}

/**
 * tensor_map() - mmap() of a buffer fd
 * @hold: the buffer, the range and the rights
 * @vma: the mapping; its offset counts from the start of the range
 *
 * Return: 0; as tensor_map_check(); -EPERM: writable and sealed; -EIDRM; -EINTR; -EOPNOTSUPP:
 * memory that cannot be mapped.
 */
int tensor_map(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	int err = tensor_buf_usable(hold->buf) ?: tensor_map_check(hold, vma);

	if (err)
		return err;
	if (hold->buf->backing->kind == TENSOR_KIND_ALLOC)
		return map_alloc(hold, vma);
	return hold->buf->backing->map ? hold->buf->backing->map(hold, vma) : -EOPNOTSUPP;
}

/*
 * Count the mapping of another holder before the buffer can become purgeable. If it is already
 * purgeable, the handle was closed meanwhile: a purgeable buffer has only its maker's handle.
 */
static int map_peer(struct file *file, struct tensor_buf *buf, u64 client)
{
	int err = -ENOENT;

	mutex_lock(&buf->lock);
	if (!(tensor_buf_state(buf) & TENSOR_STATE_PURGEABLE)) {
		tensor_file_count(file, &buf->peers, client);
		err = 0;
	}
	mutex_unlock(&buf->lock);
	return err;
}

/**
 * tensor_map_through() - map a buffer through the device or a dma-buf
 * @hold: the buffer, the range and the rights
 * @vma: the mapping; its offset counts from the start of the range
 * @client: id of the client whose handle is used, or 0. One that is not the maker of the
 *	buffer keeps it from becoming purgeable, and its munmap() posts TENSOR_EVENT_GONE
 *
 * The mapping is moved to a file on the buffer: its inode finds all mappings of the buffer, and the
 * file has the rights.
 *
 * Return: as tensor_map(); -ENOENT; -ENFILE, -ENOMEM.
 */
int tensor_map_through(const struct tensor_hold *hold, struct vm_area_struct *vma, u64 client)
{
	struct file *file = tensor_file_open(hold);
	int err = PTR_ERR_OR_ZERO(file);

	if (err)
		return err;
	/* imported memory has another file behind the mapping, and is never purgeable */
	if (client != hold->buf->client && hold->buf->backing->kind == TENSOR_KIND_ALLOC)
		err = map_peer(file, hold->buf, client);
	if (!err) {
		vma_set_file(vma, file);
		/* on an error the core releases the file that the mapping has by then */
		err = tensor_map(hold, vma);
	}
	if (err)
		tensor_file_uncount(file);
	fput(file);
	return err;
}
