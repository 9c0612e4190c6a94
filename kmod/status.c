// SPDX-License-Identifier: GPL-2.0-only
/*
 * The small state of a buffer, and the page that shows it to user space.
 *
 * A reader that waits for new contents would otherwise ask the kernel again and again. The page is
 * made when the first asks for it, and is the kernel's alone to write: nobody can pretend a write,
 * or hide a revocation.
 */
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/mm.h>

#include "core.h"
#include "trace.h"

static struct tensor_status *status_of(struct tensor_buf *buf)
{
	return buf->status ? page_address(buf->status) : NULL;
}

static void status_show(struct tensor_buf *buf)
{
	struct tensor_status *status = status_of(buf);

	lockdep_assert_held(&buf->spin);
	if (!status)
		return;
	WRITE_ONCE(status->seals, buf->seals);
	WRITE_ONCE(status->state, buf->state);
	/* last: who reads it with acquire order sees what it is about */
	smp_store_release(&status->generation, buf->generation);
}

/**
 * tensor_status_state() - change the state
 * @buf: the buffer; its lock is held
 * @set: TENSOR_STATE_* to set
 * @clear: TENSOR_STATE_* to take away
 */
void tensor_status_state(struct tensor_buf *buf, u32 set, u32 clear)
{
	lockdep_assert_held(&buf->lock);
	spin_lock(&buf->spin);
	buf->state = (buf->state & ~clear) | set;
	status_show(buf);
	trace_tensor_state(buf);
	spin_unlock(&buf->spin);
}

/**
 * tensor_status_seal() - add seals
 * @buf: the buffer; its lock is held
 * @seals: TENSOR_SEAL_*
 */
void tensor_status_seal(struct tensor_buf *buf, u32 seals)
{
	lockdep_assert_held(&buf->lock);
	spin_lock(&buf->spin);
	buf->seals |= seals;
	status_show(buf);
	trace_tensor_state(buf);
	spin_unlock(&buf->spin);
}

/**
 * tensor_status_wrote() - somebody's write has ended
 * @buf: the buffer
 *
 * Return: the new generation.
 */
u64 tensor_status_wrote(struct tensor_buf *buf)
{
	u64 generation;

	spin_lock(&buf->spin);
	generation = ++buf->generation;
	status_show(buf);
	spin_unlock(&buf->spin);
	return generation;
}

/**
 * tensor_status_generation() - how many writes have ended
 * @buf: the buffer
 *
 * Return: the generation.
 */
u64 tensor_status_generation(struct tensor_buf *buf)
{
	u64 generation;

	spin_lock(&buf->spin);
	generation = buf->generation;
	spin_unlock(&buf->spin);
	return generation;
}

static int status_make(struct tensor_buf *buf)
{
	struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

	if (!page)
		return -ENOMEM;
	spin_lock(&buf->spin);
	if (!buf->status) {
		buf->status = page;
		status_show(buf);
		page = NULL;
	}
	spin_unlock(&buf->spin);
	if (page)
		__free_page(page);
	return 0;
}

static vm_fault_t status_fault(struct vm_fault *vmf)
{
	struct tensor_buf *buf = file_inode(vmf->vma->vm_file)->i_private;

	/* a mapping is one page: there is no other to be asked for */
	vmf->page = READ_ONCE(buf->status);
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct status_ops = {
	.fault = status_fault,
};

/**
 * tensor_status_map() - mmap() of the status page
 * @buf: the buffer
 * @vma: the mapping, of a file on the buffer
 *
 * Return: 0; -EINVAL: more than the page; -EACCES: writable; -EPERM: executable; -ENOMEM.
 */
int tensor_status_map(struct tensor_buf *buf, struct vm_area_struct *vma)
{
	int err;

	if (vma->vm_pgoff != TENSOR_STATUS_INDEX || vma_pages(vma) != 1)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (!READ_ONCE(buf->status)) {
		err = status_make(buf);
		if (err)
			return err;
	}
	vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &status_ops;
	return 0;
}

/**
 * tensor_status_free() - the buffer goes
 * @buf: the buffer, without a file
 */
void tensor_status_free(struct tensor_buf *buf)
{
	if (buf->status)
		put_page(buf->status);
}
