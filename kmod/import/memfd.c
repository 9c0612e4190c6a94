// SPDX-License-Identifier: GPL-2.0-only
/*
 * Import of memfds.
 *
 * The file system may swap the pages of a memfd out, but because the memfd cannot shrink, a page
 * for each offset can always be read back. So no page is held until a device maps the memory: the
 * pages are then read in and pinned, and unpinned when the device unmaps.
 *
 * A mapping is one of the memfd's inode, made by its file system, but its file is not the memfd: it
 * is a view. remap_file_pages() calls mmap() of the mapping's file again, and the memfd would
 * permit all of its range with the rights that it was opened with. A view permits the range and the
 * rights of the buffer fd or handle that the mapping was made through.
 *
 * A handle that may write counts as a writable mapping of the memfd for the lifetime of the buffer,
 * so that F_SEAL_WRITE is refused meanwhile.
 */
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>

#include "../buffer/buffer.h"
#include "../buffer/file.h"
#include "../map/map.h"
#include "memfd.h"

/**
 * struct tensor_memfd - private data of an imported memfd
 * @file: the memfd
 * @writes: counted as a writer of the memfd
 */
struct tensor_memfd {
	struct file *file;
	bool writes;
};

static bool memfd_sealed(const struct file *file)
{
	return READ_ONCE(SHMEM_I(file_inode(file))->seals) & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
}

/* The file of the buffer that a view references: it keeps the memfd, the rights and the module. */
static struct file *view_anchor(const struct file *view)
{
	return view->private_data;
}

/*
 * mmap() of a view; the offset counts from the start of the memfd. A seal may have been added after
 * the import, and newer kernels check the seals only of the file that mmap() was called on, which
 * is not the memfd.
 */
static int view_mmap(struct file *view, struct vm_area_struct *vma)
{
	unsigned long pgoff = vma->vm_pgoff;
	const struct tensor_memfd *memfd;
	struct tensor_hold hold;
	int err;

	if (!tensor_file_hold(view_anchor(view), &hold) || pgoff < hold.first)
		return -EINVAL;
	memfd = hold.buf->source;
	vma->vm_pgoff = pgoff - hold.first;
	err = tensor_map_check(&hold, vma);
	vma->vm_pgoff = pgoff;
	if (err)
		return err;
	if (memfd_sealed(memfd->file)) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	if (!tensor_hold_may(&hold, TENSOR_RIGHT_WRITE) || !(vma->vm_flags & VM_MAYSHARE))
		vm_flags_clear(vma, VM_MAYWRITE);
	vm_flags_clear(vma, VM_MAYEXEC);
	/* growing would extend the mapping beyond the range */
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	return vfs_mmap(memfd->file, vma);
}

/* The anchor is released after this has returned: fput() defers it to task work. */
static int view_release(struct inode *inode, struct file *view)
{
	fput(view_anchor(view));
	return 0;
}

static const struct file_operations view_fops = {
	.mmap = view_mmap,
	.fsync = noop_fsync,
	.release = view_release,
};

static struct file *view_open(const struct tensor_hold *hold, struct file *anchor)
{
	const struct tensor_memfd *memfd = hold->buf->source;
	struct inode *inode = file_inode(memfd->file);
	bool write = tensor_hold_may(hold, TENSOR_RIGHT_WRITE);
	struct file *view;

	ihold(inode);
	view = alloc_file_pseudo(inode, memfd->file->f_path.mnt, "memfd:tensor",
				 write ? O_RDWR : O_RDONLY, &view_fops);
	if (IS_ERR(view))
		iput(inode);
	else
		view->private_data = get_file(anchor);
	return view;
}

static int memfd_map(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	struct file *anchor, *view;

	anchor = tensor_file_open(hold);
	if (IS_ERR(anchor))
		return PTR_ERR(anchor);
	view = view_open(hold, anchor);
	fput(anchor);
	if (IS_ERR(view))
		return PTR_ERR(view);
	vma_set_file(vma, view);
	fput(view);
	/* on an error the core releases the file that the mapping has by then */
	vma->vm_pgoff += hold->first;
	return view_mmap(view, vma);
}

static void memfd_unpin(struct tensor_span *span, bool dirty)
{
	unsigned long i;

	for (i = 0; dirty && i < span->nr; i++) {
		folio_lock(span->folios[i]);
		folio_mark_dirty(span->folios[i]);
		folio_unlock(span->folios[i]);
	}
	unpin_folios(span->folios, span->nr);
	kvfree(span->folios);
}

/* Collect the pages folio by folio; the first and the last folio may extend beyond the span. */
static unsigned long memfd_pages(struct tensor_span *span)
{
	unsigned long n = 0, skip, run, i;
	struct folio *folio;

	for (i = 0; i < span->nr; i++) {
		folio = span->folios[i];
		skip = span->first + n - folio->index;
		if (skip >= folio_nr_pages(folio))
			break;
		run = min_t(unsigned long, span->count - n, folio_nr_pages(folio) - skip);
		while (run--)
			span->pages[n++] = folio_page(folio, skip++);
	}
	return n;
}

static int memfd_pin(struct tensor_buf *buf, struct tensor_span *span)
{
	loff_t begin = (loff_t)span->first << PAGE_SHIFT;
	loff_t last = begin + ((loff_t)span->count << PAGE_SHIFT) - 1;
	struct tensor_memfd *memfd = buf->source;
	pgoff_t offset;
	long nr;

	span->folios = kvmalloc_array(span->count, sizeof(*span->folios), TENSOR_GFP);
	if (!span->folios)
		return -ENOMEM;
	nr = memfd_pin_folios(memfd->file, begin, last, span->folios, span->count, &offset);
	if (nr <= 0) {
		kvfree(span->folios);
		return nr ?: -ENOMEM;
	}
	span->nr = nr;
	if (memfd_pages(span) != span->count) {
		/* holes are being punched into the memfd */
		memfd_unpin(span, false);
		return -EAGAIN;
	}
	return 0;
}

static void memfd_free(struct tensor_memfd *memfd)
{
	if (memfd->writes)
		mapping_unmap_writable(memfd->file->f_mapping);
	fput(memfd->file);
	kfree(memfd);
}

static void memfd_release(struct tensor_buf *buf)
{
	memfd_free(buf->source);
}

static const struct tensor_backing memfd_backing = {
	.kind = TENSOR_KIND_MEMFD,
	.map = memfd_map,
	.pin = memfd_pin,
	.unpin = memfd_unpin,
	.release = memfd_release,
};

/* mapping_map_writable() blocks F_SEAL_WRITE, and fails once it is set. */
static bool memfd_may_write(struct file *file)
{
	return file->f_mode & FMODE_WRITE && !memfd_sealed(file) &&
	       !mapping_map_writable(file->f_mapping);
}

/* Check the seal first: after that the size cannot shrink. */
static int memfd_size(struct file *file, loff_t *bytes)
{
	if (!shmem_file(file))
		return -EOPNOTSUPP;
	if (!(READ_ONCE(SHMEM_I(file_inode(file))->seals) & F_SEAL_SHRINK))
		return -EINVAL;
	/* pairs with the lock under which the seal was set */
	smp_rmb();
	*bytes = i_size_read(file_inode(file));
	if (*bytes <= 0 || offset_in_page(*bytes) || *bytes > TENSOR_MAX_BYTES)
		return -EINVAL;
	return 0;
}

/**
 * tensor_import_memfd() - create a buffer for a memfd
 * @hint: owner that probably matches
 * @client: id of the calling client
 * @file: any file; the buffer gets a reference of its own
 * @hold: all of the buffer, with a reference for the caller
 *
 * Return: 0; -EOPNOTSUPP: not a memfd, or one of hugetlbfs; -EINVAL: it can shrink, or its size is
 * no multiple of the page size, or too large; -EACCES: it is not open for reading; -ENOMEM.
 */
int tensor_import_memfd(struct tensor_owner *hint, u64 client, struct file *file,
			struct tensor_hold *hold)
{
	struct tensor_memfd *memfd;
	struct tensor_buf *buf;
	loff_t bytes;
	int err;

	err = memfd_size(file, &bytes);
	if (err)
		return err;
	if (!(file->f_mode & FMODE_READ))
		return -EACCES;
	memfd = kmalloc(sizeof(*memfd), TENSOR_GFP);
	if (!memfd)
		return -ENOMEM;
	memfd->file = get_file(file);
	memfd->writes = memfd_may_write(file);
	buf = tensor_buf_adopt(&memfd_backing, memfd, bytes, hint, client);
	if (IS_ERR(buf)) {
		memfd_free(memfd);
		return PTR_ERR(buf);
	}
	*hold = tensor_hold_all(buf, memfd->writes ? TENSOR_RIGHTS_RW : TENSOR_RIGHTS_RO);
	return 0;
}
