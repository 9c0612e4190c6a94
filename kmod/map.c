// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapping a buffer.
 *
 * A plain shared mapping of the buffer's own inode, whose fault handler hands out pages with a
 * reference: so the core can pin, count and split it like any file's, and where a chunk has PMD
 * size it installs one PMD by itself. A mapping of /dev/tensor at a cookie is turned into the same.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>

#include "core.h"
#include "trace.h"

static struct tensor_buf *vma_buf(struct vm_area_struct *vma)
{
	return file_inode(vma->vm_file)->i_private;
}

static vm_fault_t map_fault(struct vm_fault *vmf)
{
	struct page *page = tensor_chunks_page(&vma_buf(vmf->vma)->chunks, vmf->pgoff);

	if (!page)
		return VM_FAULT_SIGBUS;
	get_page(page);
	vmf->page = page;
	return 0;
}

/* Also when one is split in two, moved or inherited. */
static void map_open(struct vm_area_struct *vma)
{
	atomic_inc(&vma_buf(vma)->mappings);
}

static void map_close(struct vm_area_struct *vma)
{
	atomic_dec(&vma_buf(vma)->mappings);
}

static const struct vm_operations_struct map_ops = {
	.open = map_open,
	.close = map_close,
	.fault = map_fault,
};

static int map_check(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	unsigned long pages = hold->buf->chunks.pages;

	if (vma->vm_pgoff >= pages || vma_pages(vma) > pages - vma->vm_pgoff)
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

/* Nothing can fail any more. The file of @vma is one of the buffer. */
static void map_install(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	unsigned long never = VM_MAYEXEC;

	/* a private mapping must not become writable either: it would copy what it writes to */
	if (hold->rdonly || !(vma->vm_flags & VM_MAYSHARE))
		never |= VM_MAYWRITE;
	vm_flags_clear(vma, never);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &map_ops;
	map_open(vma);
	trace_tensor_map(hold->buf, vma);
}

/**
 * tensor_map() - mmap() of a buffer fd
 * @hold: the buffer
 * @vma: the mapping; its offset counts from the begin of the buffer
 *
 * Return: 0; -EINVAL: past the end, or private and writable; -EACCES: writable through a read-only
 * fd; -EPERM: executable.
 */
int tensor_map(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	int err = map_check(hold, vma);

	if (err)
		return err;
	map_install(hold, vma);
	return 0;
}

static int map_switch(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	struct file *file;
	int err;

	err = map_check(hold, vma);
	if (err)
		return err;
	file = tensor_fs_file(hold->buf, hold->rdonly, false);
	if (IS_ERR(file))
		return PTR_ERR(file);
	vma_set_file(vma, file);
	fput(file);
	map_install(hold, vma);
	return 0;
}

/**
 * tensor_map_cookie() - mmap() of /dev/tensor
 * @file: an open of the device
 * @vma: the mapping; its offset is a cookie plus an offset into the buffer
 *
 * Return: as tensor_map(); -ENOENT if there is no such handle; -ENFILE, -ENOMEM.
 */
int tensor_map_cookie(struct file *file, struct vm_area_struct *vma)
{
	const unsigned int shift = TENSOR_COOKIE_SHIFT - PAGE_SHIFT;
	unsigned long id = vma->vm_pgoff >> shift;
	struct tensor_hold hold;
	int err;

	if (id > TENSOR_MAX_HANDLES)
		return -ENOENT;
	err = tensor_handle_get(file->private_data, id, &hold);
	if (err)
		return err;
	vma->vm_pgoff &= (1UL << shift) - 1;
	err = map_switch(&hold, vma);
	tensor_buf_put(hold.buf);
	return err;
}
