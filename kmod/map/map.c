// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapping a buffer.
 *
 * A plain shared mapping of the buffer's own inode, whose fault handler hands out pages with a
 * reference: so the core can pin, count and split it like any file's, and where a chunk has PMD
 * size it installs one PMD by itself. A mapping of /dev/tensor at a cookie is turned into the same.
 *
 * A buffer that is smaller than that has no such chunk, and would fault once a page. There a fault
 * maps what follows in the chunk as well. The core's function for it asks for VM_MIXEDMAP, and with
 * that a PMD would not be counted down when it goes: so never where there could be one.
 *
 * The offset of a mapping counts from the begin of the buffer, also where the file reaches a part
 * of it only: so that revoking finds it.
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

/* Pages that are handed to the core at once, which is also the least that a fault maps. */
#define MAP_BATCH 16

static struct tensor_buf *vma_buf(const struct vm_area_struct *vma)
{
	return tensor_buf_of(file_inode(vma->vm_file));
}

/*
 * The page is locked before the list is let go of, and stays so until the entry is made: who takes
 * the pages away waits for that, see tensor_buf_shut(). One whose memory has failed is not for the
 * core to see: it would look for its place in a page cache.
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
 * Put the page table in place that the core has ready for this fault, before a folio is locked:
 * vm_insert_pages() would allocate one under the folio's lock, and who waits for that would wait
 * for reclaim in the memory cgroup of this task. This is pmd_install(), which modules do not have.
 */
static void map_table(struct vm_fault *vmf)
{
	struct mm_struct *mm = vmf->vma->vm_mm;
	spinlock_t *lock; /* of the table of tables */

	if (!vmf->prealloc_pte)
		return;
	lock = pmd_lock(mm, vmf->pmd);
	if (pmd_none(*vmf->pmd)) {
		mm_inc_nr_ptes(mm);
		/* another processor must not see the table before its entries are clear */
		smp_wmb();
		pmd_populate(mm, vmf->pmd, vmf->prealloc_pte);
		vmf->prealloc_pte = NULL;
	}
	spin_unlock(lock);
}

/*
 * Entries for @nr pages of one chunk, whose lock is held, up to one that is there already (-EBUSY).
 * @done: how many there are.
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
 * How many entries to make at a fault: as many as lie before it in the chunk, so that who touches
 * all pages of one in turn meets few faults, and who touches only the first pays for few pages. All
 * are in the page table that is there.
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

/* Also when one is split in two, moved or inherited: then there is a writer already. */
static void map_open(struct vm_area_struct *vma)
{
	struct tensor_buf *buf = vma_buf(vma);

	atomic_inc(&buf->mappings);
	if (vma->vm_flags & VM_MAYWRITE)
		atomic_inc(&buf->writers);
}

/*
 * The core calls this for the copy of a mapping, before mremap() moves its entries there, with the
 * memory map locked for writing: so no fault can make one meanwhile, and after this none is moved.
 * Where the copy comes from, it still says itself.
 */
static void map_open_large(struct vm_area_struct *vma)
{
	const struct vm_area_struct *old = vma->vm_private_data;

	map_open(vma);
	vma->vm_private_data = vma;
	if (!MREMAP_MISTAKES_ENTRIES || old->vm_mm != vma->vm_mm)
		return;
	/* a part of one that is split lies inside it */
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

/* More than one page, and never a chunk of PMD size, whatever chunks it has after a purge. */
static bool map_small(const struct tensor_buf *buf)
{
	return buf->bytes > PAGE_SIZE && buf->bytes < PMD_SIZE;
}

/**
 * tensor_map_check() - may there be such a mapping?
 * @hold: what it may reach and permit
 * @vma: the mapping; its offset counts from the begin of that
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
	/* VM_SHARED is no answer: the core takes it away from a read-only file's mapping */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	return tensor_hold_may(hold, TENSOR_RIGHT_WRITE) ? 0 : -EACCES;
}

/* Counts the mapping as a writer if it is, or may become one. */
static int map_write(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	int err;

	/* a private mapping must not become writable either: it would copy what it writes to */
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
 * @hold: the buffer, and the part of it
 * @vma: the mapping; its offset counts from the begin of that part
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
 * Count the mapping of another holder before the buffer can become purgeable. If it is purgeable
 * already, the handle was closed meanwhile: only the maker's is left of such a buffer.
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
 * tensor_map_through() - mmap() of another file that stands for a buffer
 * @hold: the buffer, and the part of it
 * @vma: the mapping; its offset counts from the begin of that part
 * @client: id of the client through whose handle it is, or 0. One that is not the maker of the
 *	buffer keeps it from becoming purgeable, and its munmap() is told to the others
 *
 * The mapping becomes one of a file on the buffer: its inode finds all mappings of the buffer, and
 * the file has the rights.
 *
 * Return: as tensor_map(); -ENOENT; -ENFILE, -ENOMEM.
 */
int tensor_map_through(const struct tensor_hold *hold, struct vm_area_struct *vma, u64 client)
{
	struct file *file = tensor_file_open(hold);
	int err = PTR_ERR_OR_ZERO(file);

	if (err)
		return err;
	/* memory of another maker has another file behind the mapping, and is never purgeable */
	if (client != hold->buf->client && hold->buf->backing->kind == TENSOR_KIND_ALLOC)
		err = map_peer(file, hold->buf, client);
	if (!err) {
		vma_set_file(vma, file);
		/* on an error the core gives back the file that the mapping has by then */
		err = tensor_map(hold, vma);
	}
	if (err)
		tensor_file_uncount(file);
	fput(file);
	return err;
}
