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
#include <linux/compat.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "core.h"
#include "trace.h"

/* Pages that are handed to the core at once, which is also the least that a fault maps. */
#define MAP_BATCH	16

static struct tensor_buf *vma_buf(const struct vm_area_struct *vma)
{
	return file_inode(vma->vm_file)->i_private;
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

/* Entries for @nr pages of one chunk, whose lock is held, up to one that is there already. */
static int map_pages(struct vm_area_struct *vma, unsigned long addr, struct page *page,
		     unsigned long nr)
{
	struct page *pages[MAP_BATCH];
	unsigned long i, n, left;
	int err;

	for (; nr; nr -= n, addr += n << PAGE_SHIFT, page += n) {
		n = min_t(unsigned long, nr, MAP_BATCH);
		for (i = 0; i < n; i++)
			pages[i] = page + i;
		left = n;
		err = vm_insert_pages(vma, addr, pages, &left);
		if (err)
			return err;
	}
	return 0;
}

/*
 * How many entries to make at a fault: as many as lie before it in the chunk, so that who touches
 * all pages of one in turn meets few faults, and who touches only the first pays for few pages.
 */
static unsigned long map_ahead(const struct vm_area_struct *vma, unsigned long addr,
			       struct folio *folio, struct page *page)
{
	unsigned long before = folio_page_idx(folio, page);
	unsigned long most = max_t(unsigned long, before, MAP_BATCH), nr = 1;

	most = min_t(unsigned long, most, folio_nr_pages(folio) - before);
	most = min(most, (vma->vm_end - addr) >> PAGE_SHIFT);
	while (nr < most && !PageHWPoison(page + nr))
		nr++;
	return nr;
}

static vm_fault_t map_fault_small(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK;
	vm_fault_t got = map_fault(vmf);
	struct folio *folio;
	int err;

	if (got != VM_FAULT_LOCKED)
		return got;
	folio = page_folio(vmf->page);
	err = map_pages(vma, addr, vmf->page, map_ahead(vma, addr, folio, vmf->page));
	folio_unlock(folio);
	folio_put(folio);
	/* -EBUSY: there is one: another thread's, or where the rest was mapped before */
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

static void map_close(struct vm_area_struct *vma)
{
	struct tensor_buf *buf = vma_buf(vma);

	trace_tensor_unmap(buf, vma);
	if (vma->vm_flags & VM_MAYWRITE)
		tensor_write_put(buf);
	atomic_dec(&buf->mappings);
}

static const struct vm_operations_struct map_ops = {
	.open = map_open,
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

static int map_check(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff >= hold->count || vma_pages(vma) > hold->count - vma->vm_pgoff)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (!(vma->vm_flags & VM_WRITE))
		return 0;
	/* VM_SHARED is no answer: the core takes it away from a read-only file's mapping */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	return hold->rdonly ? -EACCES : 0;
}

/* Counts the mapping as a writer if it is, or may become one. */
static int map_write(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	int err;

	/* a private mapping must not become writable either: it would copy what it writes to */
	if (!hold->rdonly && vma->vm_flags & VM_MAYSHARE) {
		err = tensor_write_get(hold->buf);
		if (!err)
			return 0;
		if (vma->vm_flags & VM_WRITE)
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
	if (map_small(hold->buf)) {
		vm_flags_set(vma, VM_MIXEDMAP);
		vma->vm_ops = &map_small_ops;
	}
	atomic_inc(&hold->buf->mappings);
	trace_tensor_map(hold->buf, vma);
	return 0;
}

/* Another driver's memory is mapped as that driver does, with the rights that the holder has. */
static int map_backing(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	if (!hold->buf->backing->map)
		return -EOPNOTSUPP;
	if (hold->rdonly || !(vma->vm_flags & VM_MAYSHARE))
		vm_flags_clear(vma, VM_MAYWRITE);
	vm_flags_clear(vma, VM_MAYEXEC);
	/* to grow would lead out of the part */
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_pgoff += hold->first;
	return hold->buf->backing->map(hold->buf, vma);
}

/**
 * tensor_map() - mmap() of a buffer fd
 * @hold: the buffer, and the part of it
 * @vma: the mapping; its offset counts from the begin of that part
 *
 * Return: 0; -EINVAL: past the end, or private and writable; -EACCES: writable through a read-only
 * fd; -EPERM: executable, or writable and sealed; -EIDRM; -EOPNOTSUPP: memory that is not for
 * mapping.
 */
int tensor_map(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	int err = tensor_buf_usable(hold->buf);

	if (err)
		return err;
	if (vma->vm_pgoff >= TENSOR_STATUS_INDEX)
		return tensor_status_map(hold->buf, vma);
	err = map_check(hold, vma);
	if (err)
		return err;
	if (hold->buf->backing->kind == TENSOR_KIND_ALLOC)
		return map_alloc(hold, vma);
	return map_backing(hold, vma);
}

/**
 * tensor_map_foreign() - mmap() of another file that stands for a buffer
 * @hold: the buffer, and the part of it
 * @vma: the mapping; its offset counts from the begin of that part
 * @count: counter of the buffer that shall count the mapping's file, or NULL
 *
 * The mapping becomes one of the buffer's own file, by which all mappings of it are found.
 *
 * Return: as tensor_map(); -ENFILE, -ENOMEM.
 */
int tensor_map_foreign(const struct tensor_hold *hold, struct vm_area_struct *vma, atomic_t *count)
{
	struct file *file = tensor_fs_file(hold, count);

	if (IS_ERR(file))
		return PTR_ERR(file);
	vma_set_file(vma, file);
	fput(file);
	/* on an error the core gives back the file that the mapping has by then */
	return tensor_map(hold, vma);
}

/*
 * A stranger's mapping is counted before the buffer can become purgeable. Where it is so already
 * the handle was closed meanwhile: only the maker's is left of such a buffer.
 */
static int map_guest(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	struct tensor_buf *buf = hold->buf;
	int err = -ENOENT;

	mutex_lock(&buf->lock);
	if (!(tensor_buf_state(buf) & TENSOR_STATE_PURGEABLE))
		err = tensor_map_foreign(hold, vma, &buf->guests);
	mutex_unlock(&buf->lock);
	return err;
}

static struct tensor_client *map_client(struct file *file, unsigned long pgoff, u32 *id)
{
	unsigned long handle = pgoff >> (TENSOR_COOKIE_SHIFT - PAGE_SHIFT);

	if (handle > TENSOR_MAX_HANDLES)
		return NULL;
	*id = handle;
	return file->private_data;
}

/**
 * tensor_map_cookie() - mmap() of /dev/tensor
 * @file: an open of the device
 * @vma: the mapping; its offset is a cookie plus an offset into the buffer
 *
 * A 32-bit mmap() has lost the upper bits of the cookie, and may name another handle by the rest.
 *
 * Return: as tensor_map(); -ENOENT if there is no such handle; -EOPNOTSUPP for a 32-bit program;
 * -ENFILE, -ENOMEM.
 */
int tensor_map_cookie(struct file *file, struct vm_area_struct *vma)
{
	struct tensor_client *client;
	struct tensor_hold hold;
	u32 id;
	int err;

	if (in_compat_syscall())
		return -EOPNOTSUPP;
	client = map_client(file, vma->vm_pgoff, &id);
	if (!client)
		return -ENOENT;
	err = tensor_handle_get(client, id, &hold);
	if (err)
		return err;
	vma->vm_pgoff &= BIT(TENSOR_COOKIE_SHIFT - PAGE_SHIFT) - 1;
	if (hold.buf->client == client->id)
		err = tensor_map_foreign(&hold, vma, NULL);
	else
		err = map_guest(&hold, vma);
	tensor_buf_put(hold.buf);
	return err;
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
/**
 * tensor_map_area() - find an address for mmap() of /dev/tensor
 * @file: an open of the device
 * @addr: wish
 * @len: bytes
 * @pgoff: a cookie plus an offset
 * @flags: of mmap()
 *
 * Aligned for the buffer, not for the part of it that the handle reaches.
 *
 * Return: the address or -errno.
 */
unsigned long tensor_map_area(struct file *file, unsigned long addr, unsigned long len,
			      unsigned long pgoff, unsigned long flags)
{
	struct tensor_client *client;
	struct tensor_hold hold;
	u32 id;

	/* no room for a huge page: any address will do */
	client = len < PMD_SIZE ? NULL : map_client(file, pgoff, &id);
	if (client && !tensor_handle_get(client, id, &hold)) {
		pgoff += hold.first;
		tensor_buf_put(hold.buf);
	}
	return thp_get_unmapped_area(file, addr, len, pgoff, flags);
}
#endif
