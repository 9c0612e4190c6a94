// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver that exports dma-bufs as those of GPUs do: without mmap(), with one that fails, of any
 * size, and with memory that it takes back. For the tests of IMPORT, as a module of its own.
 *
 * Its importers are static, so that it has nothing to notify them by when it takes memory back.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "../compat.h"
#include "test_exporter.h"

/**
 * struct exporter_memory - the memory of a dma-buf
 * @revoked: it is gone
 * @count: number of pages, 0 if there is no memory
 * @pages: these
 */
struct exporter_memory {
	bool revoked;
	unsigned long count;
	struct page *pages[];
};

static void memory_free(struct exporter_memory *memory)
{
	while (memory->count)
		__free_page(memory->pages[--memory->count]);
	kfree(memory);
}

static struct exporter_memory *memory_new(unsigned long bytes)
{
	unsigned long count = bytes <= EXPORTER_MAX_BYTES ? DIV_ROUND_UP(bytes, PAGE_SIZE) : 0;
	struct exporter_memory *memory = kzalloc(struct_size(memory, pages, count), GFP_KERNEL);

	while (memory && memory->count < count) {
		memory->pages[memory->count] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!memory->pages[memory->count]) {
			memory_free(memory);
			return NULL;
		}
		memory->count++;
	}
	return memory;
}

/* ---- devices ---- */

static struct sg_table *exporter_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct exporter_memory *memory = attach->dmabuf->priv;
	struct sg_table *table;
	int err;

	if (READ_ONCE(memory->revoked) || !memory->count)
		return ERR_PTR(-ENODEV);
	table = kzalloc(sizeof(*table), GFP_KERNEL);
	if (!table)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table_from_pages(table, memory->pages, memory->count, 0,
					memory->count << PAGE_SHIFT, GFP_KERNEL);
	if (err)
		goto free_table;
	err = dma_map_sgtable(attach->dev, table, dir, 0);
	if (err)
		goto free_entries;
	return table;

free_entries:
	sg_free_table(table);
free_table:
	kfree(table);
	return ERR_PTR(err);
}

static void exporter_unmap(struct dma_buf_attachment *attach, struct sg_table *table,
			   enum dma_data_direction dir)
{
	dma_unmap_sgtable(attach->dev, table, dir, 0);
	sg_free_table(table);
	kfree(table);
}

/* ---- the processor ---- */

static vm_fault_t exporter_fault(struct vm_fault *vmf)
{
	struct exporter_memory *memory = vmf->vma->vm_private_data;

	if (READ_ONCE(memory->revoked) || vmf->pgoff >= memory->count)
		return VM_FAULT_SIGBUS;
	vmf->page = memory->pages[vmf->pgoff];
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct exporter_vm_ops = {
	.fault = exporter_fault,
};

static int exporter_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	vma->vm_ops = &exporter_vm_ops;
	vma->vm_private_data = dmabuf->priv;
	return 0;
}

static int exporter_mmap_fails(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	return -ENXIO;
}

static int exporter_no_access(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	return -EIO;
}

/* ---- dma-bufs ---- */

static void exporter_release(struct dma_buf *dmabuf)
{
	memory_free(dmabuf->priv);
}

static const struct dma_buf_ops exporter_ops[] = {
	{
		.map_dma_buf = exporter_map,
		.unmap_dma_buf = exporter_unmap,
		.release = exporter_release,
		.mmap = exporter_mmap,
	},
	{
		.map_dma_buf = exporter_map,
		.unmap_dma_buf = exporter_unmap,
		.release = exporter_release,
	},
	{
		.map_dma_buf = exporter_map,
		.unmap_dma_buf = exporter_unmap,
		.release = exporter_release,
		.mmap = exporter_mmap_fails,
	},
	{
		.map_dma_buf = exporter_map,
		.unmap_dma_buf = exporter_unmap,
		.release = exporter_release,
		.mmap = exporter_mmap,
		.begin_cpu_access = exporter_no_access,
	},
};

static int exporter_export(const struct dma_buf_ops *ops, unsigned long bytes)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;
	int fd;

	info.ops = ops;
	info.size = bytes;
	info.flags = O_RDWR;
	info.priv = memory_new(bytes);
	if (!info.priv)
		return -ENOMEM;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		memory_free(info.priv);
		return PTR_ERR(dmabuf);
	}
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(dmabuf);
	return fd;
}

static int exporter_revoke(int fd)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);
	struct exporter_memory *memory;
	int err = -EINVAL;

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (dmabuf->ops->release == exporter_release) {
		memory = dmabuf->priv;
		WRITE_ONCE(memory->revoked, true);
		unmap_mapping_range(dmabuf->file->f_mapping, 0, 0, 1);
		err = 0;
	}
	dma_buf_put(dmabuf);
	return err;
}

static long exporter_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case EXPORTER_PLAIN:
	case EXPORTER_NO_MMAP:
	case EXPORTER_MMAP_FAILS:
	case EXPORTER_NO_ACCESS:
		return exporter_export(&exporter_ops[_IOC_NR(cmd)], arg);
	case EXPORTER_REVOKE:
		return exporter_revoke(arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations exporter_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = exporter_ioctl,
};

static struct miscdevice exporter_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "tensor_test_exporter",
	.fops = &exporter_fops,
};

module_misc_device(exporter_device);
MODULE_DESCRIPTION("Exporter of dma-bufs for the tests of tensor");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("DMA_BUF");
