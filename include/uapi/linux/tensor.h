/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The kernel ABI of /dev/tensor: tensor storage as a kernel object.
 *
 * A *buffer* is zero-filled, resident, unmovable memory with a typed descriptor. It is held by
 *
 *   - a handle: a number in the table of one open /dev/tensor (made by ALLOC or IMPORT), or
 *   - a buffer fd: made by EXPORT, passed with SCM_RIGHTS, mapped by itself, or
 *   - a mapping of either,
 *
 * and is freed by the kernel when the last of them is gone, however its holders ended. There are
 * no names and no identifiers by which a stranger could find a buffer.
 *
 * Every ioctl takes a struct whose first member is its size in bytes as the caller knows it. A
 * shorter struct than the kernel's is completed with zeros, a longer one is accepted while the part
 * that the kernel does not know is zero. Only as many bytes as the caller has are written back. On
 * an error nothing is written back, and nothing has changed.
 *
 * Errors that any of them may give:
 *
 *   ENOTTY      no such ioctl, or not one for this kind of fd (buffer fd: INFO and META only)
 *   E2BIG       the part that this kernel does not know is not zero, or size is above a page
 *   EINVAL      size is below that of the struct's first version; a reserved field is not zero;
 *               a value makes no sense
 *   EOPNOTSUPP  a flag, dtype or kind of fd that this kernel does not know
 *   ENOENT      no such handle in this open /dev/tensor: never made, or closed
 *   EFAULT      the struct is not in accessible memory
 *   EINTR       killed while waiting or while memory was being zeroed
 *   ENOMEM      no memory; the memory cgroup of the caller may be the one that is full
 */
#ifndef _UAPI_LINUX_TENSOR_H
#define _UAPI_LINUX_TENSOR_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* f_type that fstatfs() reports for a buffer fd. */
#define TENSOR_FS_MAGIC		0x544e5352

/* Most dimensions a descriptor has, and bytes of its label, the closing zero included. */
#define TENSOR_UAPI_MAX_DIMS	16
#define TENSOR_UAPI_LABEL	32

/* Room for chunk orders in struct tensor_info; QUERY tells how many are in use. */
#define TENSOR_UAPI_ORDERS	16

/* Any NUMA node (ALLOC); pages on more than one node (INFO). */
#define TENSOR_NODE_ANY		(-1)

/**
 * enum tensor_dt - element types; the one numbering of the whole project
 * @TENSOR_DT_NONE: bytes without a type: the buffer has no descriptor
 * @TENSOR_DT_BOOL: 1 byte, 0 or 1
 * @TENSOR_DT_U8: unsigned, 1 byte
 * @TENSOR_DT_I8: signed, 1 byte
 * @TENSOR_DT_I16: signed, 2 bytes
 * @TENSOR_DT_I32: signed, 4 bytes
 * @TENSOR_DT_I64: signed, 8 bytes
 * @TENSOR_DT_F16: IEEE 754 binary16, 2 bytes
 * @TENSOR_DT_BF16: upper half of a binary32, 2 bytes
 * @TENSOR_DT_F32: IEEE 754 binary32, 4 bytes
 * @TENSOR_DT_F64: IEEE 754 binary64, 8 bytes
 * @TENSOR_DT_C64: pair of binary32, real first, 8 bytes
 * @TENSOR_DT_C128: pair of binary64, real first, 16 bytes
 * @TENSOR_DT_COUNT: first number that has no meaning yet
 *
 * Multi-byte elements are in the byte order of the machine.
 */
enum tensor_dt {
	TENSOR_DT_NONE = 0,
	TENSOR_DT_BOOL = 1,
	TENSOR_DT_U8 = 2,
	TENSOR_DT_I8 = 3,
	TENSOR_DT_I16 = 4,
	TENSOR_DT_I32 = 5,
	TENSOR_DT_I64 = 6,
	TENSOR_DT_F16 = 7,
	TENSOR_DT_BF16 = 8,
	TENSOR_DT_F32 = 9,
	TENSOR_DT_F64 = 10,
	TENSOR_DT_C64 = 11,
	TENSOR_DT_C128 = 12,
	TENSOR_DT_COUNT
};

/*
 * Numbers of the ioctls. They carry no size: the struct does. Bit (number - TENSOR_IOC_BASE) of
 * tensor_query.ioctls tells whether the running kernel has one.
 */
#define TENSOR_IOC_TYPE		0xD7
#define TENSOR_IOC_BASE		0x40

#define TENSOR_IOC_QUERY	_IO(TENSOR_IOC_TYPE, 0x40)
#define TENSOR_IOC_ALLOC	_IO(TENSOR_IOC_TYPE, 0x41)
#define TENSOR_IOC_INFO		_IO(TENSOR_IOC_TYPE, 0x42)
#define TENSOR_IOC_META		_IO(TENSOR_IOC_TYPE, 0x43)
#define TENSOR_IOC_EXPORT	_IO(TENSOR_IOC_TYPE, 0x44)
#define TENSOR_IOC_IMPORT	_IO(TENSOR_IOC_TYPE, 0x45)
#define TENSOR_IOC_CLOSE	_IO(TENSOR_IOC_TYPE, 0x46)

/* tensor_query.features */
#define TENSOR_FEATURE_HUGE	(1ULL << 0)	/* chunks of PMD size, mapped by one entry */
#define TENSOR_FEATURE_MEMCG	(1ULL << 1)	/* charged to the caller's memory cgroup */
#define TENSOR_FEATURE_NUMA	(1ULL << 2)	/* more than one node to choose from */
#define TENSOR_FEATURE_RDONLY	(1ULL << 3)	/* EXPORT makes read-only buffer fds */
#define TENSOR_FEATURE_NETLINK	(1ULL << 4)	/* the family of <linux/tensor_netlink.h> */

/**
 * struct tensor_query - TENSOR_IOC_QUERY: what this kernel can do
 * @size: sizeof(struct tensor_query)
 * @flags: in: must be 0
 * @features: out: TENSOR_FEATURE_*
 * @ioctls: out: bit n: the ioctl of number TENSOR_IOC_BASE + n exists
 * @alloc_flags: out: the TENSOR_ALLOC_* that ALLOC knows
 * @export_flags: out: the TENSOR_EXPORT_* that EXPORT knows
 * @max_bytes: out: most bytes one buffer may have, free memory aside
 * @limit_bytes: out: most bytes that all buffers of the machine together may have now
 * @used_bytes: out: bytes that all buffers of the machine together have now
 * @chunk_sizes: out: bit n: buffers may be built of chunks of 2^n bytes
 * @page_size: out: bytes of an order-0 chunk
 * @max_order: out: order of the largest chunk; 2^max_order pages
 * @max_dims: out: TENSOR_UAPI_MAX_DIMS of the running kernel
 * @dtypes: out: TENSOR_DT_COUNT of the running kernel
 * @max_handles: out: most handles of one open /dev/tensor
 * @nodes: out: NUMA nodes with memory
 *
 * Works on any open /dev/tensor, one opened for reading only too.
 */
struct tensor_query {
	__u32 size;
	__u32 flags;
	__u64 features;
	__u64 ioctls;
	__u64 alloc_flags;
	__u64 export_flags;
	__u64 max_bytes;
	__u64 limit_bytes;
	__u64 used_bytes;
	__u64 chunk_sizes;
	__u32 page_size;
	__u32 max_order;
	__u32 max_dims;
	__u32 dtypes;
	__u32 max_handles;
	__u32 nodes;
};

/* tensor_alloc.flags */
#define TENSOR_ALLOC_ORDERS	(1U << 0)	/* min_order and max_order are given */
#define TENSOR_ALLOC_NODE_ONLY	(1U << 1)	/* node, or ENOMEM; else node is a preference */

/**
 * struct tensor_alloc - TENSOR_IOC_ALLOC: make a buffer, all of its memory at once, zero-filled
 * @size: sizeof(struct tensor_alloc)
 * @flags: in: TENSOR_ALLOC_*
 * @bytes: in: bytes wanted, not 0; out: bytes of the buffer, rounded up to whole pages, or to whole
 *	chunks of @min_order
 * @node: in: NUMA node, or TENSOR_NODE_ANY: as the memory policy of the caller says
 * @min_order: in: with TENSOR_ALLOC_ORDERS, order of the smallest chunk to use; otherwise 0
 * @max_order: in: with TENSOR_ALLOC_ORDERS, order of the largest chunk to use; otherwise 0, and the
 *	kernel begins at the largest it has and falls back
 * @handle: out: the handle, never 0; the caller owns it until CLOSE or until the fd is gone
 * @__reserved: must be 0
 * @cookie: out: the offset at which mmap() of this /dev/tensor finds the buffer
 *
 * The cookie belongs to the handle: other opens of /dev/tensor do not know it, and after CLOSE
 * mmap() of it is ENOENT. Adding a multiple of the page size maps from there on. A mapping outlives
 * its handle.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing. EDQUOT: the limit of the module is
 * reached. EMFILE: this open has @tensor_query.max_handles handles. EINVAL: @bytes is 0 or above
 * @tensor_query.max_bytes, the node has no memory, TENSOR_ALLOC_NODE_ONLY without a node, or the
 * orders are not 0 <= min <= max <= @tensor_query.max_order.
 */
struct tensor_alloc {
	__u32 size;
	__u32 flags;
	__u64 bytes;
	__s32 node;
	__u16 min_order;
	__u16 max_order;
	__u32 handle;
	__u32 __reserved;
	__u64 cookie;
};

/* tensor_info.state */
#define TENSOR_STATE_RDONLY	(1U << 0)	/* through this handle or fd */
#define TENSOR_STATE_META	(1U << 1)	/* a descriptor with a dtype is set */

/**
 * struct tensor_info - TENSOR_IOC_INFO: what a buffer is, on /dev/tensor or on a buffer fd
 * @size: sizeof(struct tensor_info)
 * @flags: in: must be 0
 * @handle: in: the handle; 0 on a buffer fd
 * @state: out: TENSOR_STATE_*
 * @bytes: out: bytes of the buffer
 * @huge_bytes: out: of these, in chunks of PMD size
 * @pinned_bytes: out: of these, resident and unmovable for as long as the buffer lives; all of
 *	them in a buffer made by ALLOC
 * @dma_bytes: out: of these, in chunks that somebody pinned at this moment (O_DIRECT, RDMA, AF_XDP,
 *	io_uring, a GPU driver); an estimate for chunks of order 0
 * @dev: out: device number, as st_dev of fstat() on a buffer fd
 * @ino: out: inode number, as st_ino; no two buffers since the module was loaded have the same
 * @age_ns: out: nanoseconds since it was made, time asleep included
 * @pid: out: process that made it, as seen in the caller's pid namespace; 0 if not visible there
 * @uid: out: user that made it, as seen in the caller's user namespace
 * @refs: out: @handles + @files + @mappings
 * @handles: out: handles to it, in all open /dev/tensor
 * @files: out: open files made by EXPORT, kept by a fd, a message in flight or a mapping
 * @mappings: out: mappings of it, those of other processes included
 * @node: out: NUMA node of all its pages, or TENSOR_NODE_ANY
 * @__reserved: must be 0
 * @chunks: out: number of chunks of each order
 *
 * Counts are those of one moment each, not of the same one.
 */
struct tensor_info {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 state;
	__u64 bytes;
	__u64 huge_bytes;
	__u64 pinned_bytes;
	__u64 dma_bytes;
	__u64 dev;
	__u64 ino;
	__u64 age_ns;
	__s32 pid;
	__u32 uid;
	__u32 refs;
	__u32 handles;
	__u32 files;
	__u32 mappings;
	__s32 node;
	__u32 __reserved;
	__u32 chunks[TENSOR_UAPI_ORDERS];
};

/**
 * struct tensor_desc - what the bytes of a buffer mean
 * @dtype: enum tensor_dt
 * @ndim: dimensions, 0 (a scalar) to TENSOR_UAPI_MAX_DIMS
 * @offset: bytes from the begin of the buffer to the element of index 0, 0, ...
 * @sizes: elements of each dimension, 0 or more; 0 from @ndim on
 * @strides: elements (not bytes) between neighbours of a dimension; may be 0 or negative; 0 from
 *	@ndim on
 * @label: well-formed UTF-8 without control characters, for people to read; zeros from its end on
 *
 * With TENSOR_DT_NONE all but @label is 0.
 */
struct tensor_desc {
	__u32 dtype;
	__u32 ndim;
	__u64 offset;
	__s64 sizes[TENSOR_UAPI_MAX_DIMS];
	__s64 strides[TENSOR_UAPI_MAX_DIMS];
	char label[TENSOR_UAPI_LABEL];
};

/* tensor_meta.flags */
#define TENSOR_META_SET		(1U << 0)	/* write the descriptor; otherwise read it */

/**
 * struct tensor_meta - TENSOR_IOC_META: read or write a buffer's descriptor, on either kind of fd
 * @size: sizeof(struct tensor_meta)
 * @flags: in: 0 or TENSOR_META_SET
 * @handle: in: the handle; 0 on a buffer fd
 * @__reserved: must be 0
 * @desc: in with TENSOR_META_SET, otherwise out: the descriptor, replaced and read as a whole
 *
 * The kernel takes a descriptor only if every element it reaches lies within the buffer: with e the
 * bytes of an element, and unless one of the sizes is 0,
 *
 *	0 <= offset + e * sum of (sizes[i] - 1) * strides[i] over the negative strides, and
 *	offset + e * (1 + sum of (sizes[i] - 1) * strides[i] over the positive ones) <= bytes
 *
 * If a size is 0 there is no element, and offset <= bytes is asked. The product of all sizes that
 * are not 0, times e, fits into 63 bits. No other alignment is asked.
 *
 * Errors: EACCES: TENSOR_META_SET through a read-only handle or fd. EINVAL: the descriptor breaks a
 * rule above. EOPNOTSUPP: a dtype that this kernel does not know.
 */
struct tensor_meta {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
	struct tensor_desc desc;
};

/* tensor_export.flags */
#define TENSOR_EXPORT_CLOEXEC	(1U << 0)	/* the fd is closed by execve() */
#define TENSOR_EXPORT_RDONLY	(1U << 1)	/* the fd cannot be mapped writable, now or later */

/**
 * struct tensor_export - TENSOR_IOC_EXPORT: make a buffer fd
 * @size: sizeof(struct tensor_export)
 * @flags: in: TENSOR_EXPORT_*
 * @handle: in: the handle
 * @fd: out: a new file descriptor; the caller owns it
 *
 * Whoever has a read-only fd, and nothing else, cannot write to the buffer: mmap() and mprotect()
 * refuse PROT_WRITE, opening it again through /proc is ENXIO, and a handle imported from it is
 * read-only too.
 *
 * Errors: EACCES: a read-only handle without TENSOR_EXPORT_RDONLY. EMFILE, ENFILE: no file
 * descriptor.
 */
struct tensor_export {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__s32 fd;
};

/**
 * struct tensor_import - TENSOR_IOC_IMPORT: make a handle from a buffer fd
 * @size: sizeof(struct tensor_import)
 * @flags: in: must be 0
 * @fd: in: the buffer fd; it stays the caller's, and may be closed
 * @handle: out: the handle, read-only if the fd is; each call makes another one
 * @bytes: out: bytes of the buffer
 * @cookie: out: as in struct tensor_alloc
 *
 * Errors: EACCES: this /dev/tensor is not open for writing. EBADF: not an open fd. EOPNOTSUPP: not
 * a buffer fd. EMFILE: as ALLOC.
 */
struct tensor_import {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 handle;
	__u64 bytes;
	__u64 cookie;
};

/**
 * struct tensor_close - TENSOR_IOC_CLOSE: give a handle back
 * @size: sizeof(struct tensor_close)
 * @flags: in: must be 0
 * @handle: in: the handle; its number and cookie may be given out again
 * @__reserved: must be 0
 *
 * Mappings and exported fds are not touched.
 */
struct tensor_close {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
};

#endif /* _UAPI_LINUX_TENSOR_H */
