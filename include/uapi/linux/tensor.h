/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The kernel ABI of /dev/tensor: tensor storage as a kernel object.
 *
 * A *buffer* is memory with a typed descriptor: zero-filled, resident and unmovable when ALLOC made
 * it; user memory that PIN holds in place; or a dma-buf or memfd of somebody else's, from IMPORT.
 * It is held by
 *
 *   - a handle: a number in the table of one open /dev/tensor (made by ALLOC, PIN or IMPORT), or
 *   - a buffer fd: made by EXPORT, passed with SCM_RIGHTS, mapped by itself, or
 *   - a dma-buf fd: made by EXPORT, for whatever imports dma-bufs, or
 *   - a mapping of any of these,
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
 *   ENOTTY      no such ioctl, or not one for this kind of fd (buffer fd: INFO, META, SEAL, SYNC)
 *   E2BIG       the part that this kernel does not know is not zero, or size is above a page
 *   EINVAL      size is below that of the struct's first version; a reserved field is not zero;
 *               a value makes no sense
 *   EOPNOTSUPP  a flag, dtype or kind of fd that this kernel does not know
 *   ENOENT      no such handle in this open /dev/tensor: never made, or closed
 *   EIDRM       the buffer was revoked; INFO and CLOSE still work
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
#define TENSOR_IOC_SEAL		_IO(TENSOR_IOC_TYPE, 0x47)
#define TENSOR_IOC_REVOKE	_IO(TENSOR_IOC_TYPE, 0x48)
#define TENSOR_IOC_ADVISE	_IO(TENSOR_IOC_TYPE, 0x49)
#define TENSOR_IOC_SYNC		_IO(TENSOR_IOC_TYPE, 0x4a)
#define TENSOR_IOC_PIN		_IO(TENSOR_IOC_TYPE, 0x4b)

/* tensor_query.features */
#define TENSOR_FEATURE_HUGE	(1ULL << 0)	/* chunks of PMD size, mapped by one entry */
#define TENSOR_FEATURE_MEMCG	(1ULL << 1)	/* charged to the caller's memory cgroup */
#define TENSOR_FEATURE_NUMA	(1ULL << 2)	/* more than one node to choose from */
#define TENSOR_FEATURE_RDONLY	(1ULL << 3)	/* EXPORT makes read-only buffer fds */
#define TENSOR_FEATURE_NETLINK	(1ULL << 4)	/* the family of <linux/tensor_netlink.h> */
#define TENSOR_FEATURE_STATUS	(1ULL << 5)	/* a status page, see struct tensor_status */
#define TENSOR_FEATURE_EVENTS	(1ULL << 6)	/* poll() and read() of struct tensor_event */
#define TENSOR_FEATURE_DMABUF	(1ULL << 7)	/* EXPORT and IMPORT of dma-bufs */
#define TENSOR_FEATURE_MEMFD	(1ULL << 8)	/* IMPORT of memfds */

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
 * @user_limit_bytes: out: most bytes that all buffers of the caller's user together may have now
 * @user_used_bytes: out: bytes that all buffers of the caller's user together have now
 * @status_offset: out: TENSOR_STATUS_OFFSET of the running kernel
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
	__u64 user_limit_bytes;
	__u64 user_used_bytes;
	__u64 status_offset;
};

/* tensor_alloc.flags */
#define TENSOR_ALLOC_ORDERS	(1U << 0)	/* min_order and max_order are given */
#define TENSOR_ALLOC_NODE_ONLY	(1U << 1)	/* node, or ENOMEM; else node is a preference */
#define TENSOR_ALLOC_INTERLEAVE	(1U << 2)	/* chunk by chunk over all nodes with memory */
#define TENSOR_ALLOC_CONTIG	(1U << 3)	/* physically contiguous, or ENOMEM */
#define TENSOR_ALLOC_DMA32	(1U << 4)	/* below 4 GiB, for devices that reach no further */

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
 * its handle. A 32-bit program gets 0 and cannot mmap() /dev/tensor (EOPNOTSUPP), since its offsets
 * are too short for cookies: it maps a buffer fd.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing. EDQUOT: the limit of the module, or
 * that of the user, is reached. EMFILE: this open has @tensor_query.max_handles handles. EINVAL:
 * @bytes is 0 or above @tensor_query.max_bytes, the node has no memory, TENSOR_ALLOC_NODE_ONLY
 * without a node, TENSOR_ALLOC_INTERLEAVE with one or with TENSOR_ALLOC_CONTIG, TENSOR_ALLOC_CONTIG
 * with TENSOR_ALLOC_ORDERS, or the orders are not 0 <= min <= max <= @tensor_query.max_order.
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
#define TENSOR_STATE_RANGE	(1U << 2)	/* this handle or fd reaches only a part of it */
#define TENSOR_STATE_REVOKED	(1U << 3)	/* REVOKE was called */
#define TENSOR_STATE_PURGEABLE	(1U << 4)	/* memory may be taken, see ADVISE */
#define TENSOR_STATE_PURGED	(1U << 5)	/* and was */

/* tensor_info.seals, tensor_seal.seals: never taken back */
#define TENSOR_SEAL_WRITE	(1U << 0)	/* nobody can write to the memory */
#define TENSOR_SEAL_META	(1U << 1)	/* nobody can change the descriptor */
#define TENSOR_SEAL_SEAL	(1U << 2)	/* nobody can add a seal */

/**
 * enum tensor_kind - where the memory of a buffer comes from
 * @TENSOR_KIND_ALLOC: ALLOC
 * @TENSOR_KIND_PIN: the user's own, held in place by PIN
 * @TENSOR_KIND_DMABUF: a dma-buf of another driver
 * @TENSOR_KIND_MEMFD: a memfd
 */
enum tensor_kind {
	TENSOR_KIND_ALLOC = 0,
	TENSOR_KIND_PIN = 1,
	TENSOR_KIND_DMABUF = 2,
	TENSOR_KIND_MEMFD = 3
};

/**
 * struct tensor_info - TENSOR_IOC_INFO: what a buffer is, on /dev/tensor or on a buffer fd
 * @size: sizeof(struct tensor_info)
 * @flags: in: must be 0
 * @handle: in: the handle; 0 on a buffer fd
 * @state: out: TENSOR_STATE_*
 * @bytes: out: bytes that this handle or fd reaches; all of the buffer's without TENSOR_STATE_RANGE
 * @huge_bytes: out: bytes of the buffer in chunks of PMD size
 * @pinned_bytes: out: bytes of the buffer that are resident and unmovable; all in a buffer made by
 *	ALLOC or PIN, unless it was purged or revoked
 * @dma_bytes: out: of these, in chunks that somebody pinned at this moment (O_DIRECT, RDMA, AF_XDP,
 *	io_uring, a GPU driver); an estimate for chunks of order 0
 * @dev: out: device number, as st_dev of fstat() on a buffer fd
 * @ino: out: inode number, as st_ino; no two buffers since the module was loaded have the same
 * @age_ns: out: nanoseconds since it was made, time asleep included
 * @pid: out: process that made it, as seen in the caller's pid namespace; 0 if not visible there
 * @uid: out: user that made it, as seen in the caller's user namespace
 * @refs: out: @handles + @files + @mappings + @dmabufs
 * @handles: out: handles to it, in all open /dev/tensor
 * @files: out: open files made by EXPORT, kept by a fd, a message in flight or a mapping
 * @mappings: out: mappings of it, those of other processes included
 * @node: out: NUMA node of all its pages, or TENSOR_NODE_ANY
 * @__reserved: must be 0
 * @chunks: out: number of chunks of each order
 * @kind: out: enum tensor_kind
 * @seals: out: TENSOR_SEAL_*
 * @generation: out: as in struct tensor_status
 * @offset: out: bytes from the begin of the buffer to what this handle or fd reaches
 * @dmabufs: out: dma-bufs made by EXPORT that live
 * @attachments: out: devices attached to them
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
	__u32 kind;
	__u32 seals;
	__u64 generation;
	__u64 offset;
	__u32 dmabufs;
	__u32 attachments;
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
 * There is one descriptor a buffer. Through a handle or fd that reaches a part only, one that lies
 * in that part is read with its @desc.offset counted from there, and any other as
 * TENSOR_DT_NONE.
 *
 * Errors: EACCES: TENSOR_META_SET through a handle or fd that is read-only or reaches a part only.
 * EPERM: the descriptor is sealed. EINVAL: the descriptor breaks a rule above. EOPNOTSUPP: a dtype
 * that this kernel does not know.
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
#define TENSOR_EXPORT_RANGE	(1U << 2)	/* offset and bytes are given */
#define TENSOR_EXPORT_DMABUF	(1U << 3)	/* a dma-buf fd instead of a buffer fd */

/**
 * struct tensor_export - TENSOR_IOC_EXPORT: make a buffer fd or a dma-buf fd
 * @size: sizeof(struct tensor_export)
 * @flags: in: TENSOR_EXPORT_*
 * @handle: in: the handle
 * @fd: out: a new file descriptor; the caller owns it
 * @offset: in: with TENSOR_EXPORT_RANGE, bytes from the begin of what the handle reaches, whole
 *	pages; otherwise 0
 * @bytes: in: with TENSOR_EXPORT_RANGE, bytes that the fd shall reach, whole pages, not 0;
 *	otherwise 0
 *
 * Whoever has a read-only fd, and nothing else, cannot write to the buffer: mmap() and mprotect()
 * refuse PROT_WRITE, a device may only read, opening it again through /proc is ENXIO, and a handle
 * imported from it is read-only too. The same holds for what lies outside of a range.
 *
 * A dma-buf keeps the buffer alive like any other fd of it. All dma-bufs of a buffer share one
 * reservation object: a fence that one driver adds is waited for by all. A driver whose processor
 * works on the bytes may write to them, so that it cannot use a read-only dma-buf, nor one of a
 * sealed buffer; one that is told that its device only reads can.
 *
 * Errors: EACCES: a read-only handle, or a buffer sealed against writing, without
 * TENSOR_EXPORT_RDONLY. EBUSY: the buffer is purgeable. EINVAL: the range is empty, not whole
 * pages, or reaches past the end. EOPNOTSUPP: a part of a foreign dma-buf, or TENSOR_EXPORT_DMABUF
 * of one, read-only. EMFILE, ENFILE: no file descriptor.
 */
struct tensor_export {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__s32 fd;
	__u64 offset;
	__u64 bytes;
};

/**
 * struct tensor_import - TENSOR_IOC_IMPORT: make a handle from an fd
 * @size: sizeof(struct tensor_import)
 * @flags: in: must be 0
 * @fd: in: a buffer fd, a dma-buf fd or a memfd; it stays the caller's, and may be closed
 * @handle: out: the handle; each call makes another one
 * @bytes: out: bytes that the handle reaches
 * @cookie: out: as in struct tensor_alloc
 *
 * A handle from a buffer fd, or from a dma-buf fd that EXPORT made, is one to the same buffer, and
 * reaches and permits what the fd does. A dma-buf of another driver, and a memfd, become a buffer
 * of their own with each call: its memory is not ours, so nothing is charged, it cannot be sealed,
 * and mmap() does what the exporter's does. A memfd must be sealed with F_SEAL_SHRINK, so that no
 * page can go while it is used; a handle from one that was opened for reading, or is sealed with
 * F_SEAL_WRITE or F_SEAL_FUTURE_WRITE, is read-only.
 *
 * While a handle may write to a memfd, F_SEAL_WRITE of it is EBUSY; F_SEAL_FUTURE_WRITE refuses new
 * writable mappings (EPERM), and leaves to devices what they may. Mappings of either kind are the
 * exporter's, and not counted in INFO.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing. EBADF: not an open fd. EOPNOTSUPP: not
 * one of the kinds above, or a memfd of hugetlbfs. EINVAL: a dma-buf or memfd that is empty, is
 * larger than @tensor_query.max_bytes or has no whole number of pages, or a memfd that can shrink.
 * EMFILE: as ALLOC.
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

/**
 * struct tensor_seal - TENSOR_IOC_SEAL: forbid something for good, on either kind of fd
 * @size: sizeof(struct tensor_seal)
 * @flags: in: must be 0
 * @handle: in: the handle; 0 on a buffer fd
 * @seals: in: TENSOR_SEAL_* to add, 0 to ask only; out: all that are set
 *
 * With TENSOR_SEAL_WRITE the memory stays as it is until the buffer is gone, its maker included:
 * every writable mapping, writable fd's mmap() and writing device is refused from then on.
 *
 * Errors: EACCES: to add through a handle or fd that is read-only or reaches a part only. EPERM:
 * TENSOR_SEAL_SEAL is set. EBUSY: TENSOR_SEAL_WRITE while somebody could still write: a mapping
 * that is or may become writable, a device or kernel mapping of a dma-buf that may write, or a
 * page that somebody has in hand (which may be for writing: a network card, a fixed buffer, direct
 * I/O; or a pipe); or while the buffer is purgeable. EOPNOTSUPP: TENSOR_SEAL_WRITE of a buffer that
 * ALLOC did not make.
 */
struct tensor_seal {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 seals;
};

/**
 * struct tensor_revoke - TENSOR_IOC_REVOKE: take a buffer away from everybody
 * @size: sizeof(struct tensor_revoke)
 * @flags: in: must be 0
 * @handle: in: the handle
 * @__reserved: must be 0
 *
 * Every mapping is emptied: touching it is SIGBUS from then on. Every other call about the buffer
 * is EIDRM. The memory is freed at once, except pages that a device or somebody's pin still uses:
 * these go when it ends. A second REVOKE does nothing.
 *
 * Errors: EACCES: a handle that is read-only or reaches a part only. EOPNOTSUPP: a buffer that
 * ALLOC did not make.
 */
struct tensor_revoke {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
};

/* tensor_advise.advice */
#define TENSOR_ADVISE_WILLNEED	0	/* the memory is needed, back if it was purged */
#define TENSOR_ADVISE_PURGEABLE	1	/* the kernel may take it when memory is short */

/**
 * struct tensor_advise - TENSOR_IOC_ADVISE: say what the memory will be used for
 * @size: sizeof(struct tensor_advise)
 * @flags: in: must be 0
 * @handle: in: the handle
 * @advice: in: TENSOR_ADVISE_*
 * @purged: out: with TENSOR_ADVISE_WILLNEED, 1 if the memory was taken in between: it is there
 *	again, zero-filled; otherwise 0
 * @__reserved: must be 0
 *
 * A cache that can be computed again is made purgeable while it is not in use. Its mappings stay;
 * touching one after the memory was taken is SIGBUS until TENSOR_ADVISE_WILLNEED has brought it
 * back. Only a buffer that nobody else holds can be purgeable, and one that is cannot be exported.
 * One of whose pages somebody has in hand, a device or a pipe, is not taken.
 *
 * Errors: EACCES: a handle of another /dev/tensor than the one that ALLOC was called on, or one
 * that is read-only or reaches a part only. EPERM: TENSOR_ADVISE_PURGEABLE of a buffer that is
 * sealed against writing. EBUSY: TENSOR_ADVISE_PURGEABLE while there is another handle, a buffer
 * fd, a dma-buf, or a mapping made through one. EDQUOT, ENOMEM: TENSOR_ADVISE_WILLNEED could not
 * bring it back; it stays purged. EOPNOTSUPP: another advice, or a buffer that ALLOC did not make.
 */
struct tensor_advise {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 advice;
	__u32 purged;
	__u32 __reserved;
};

/* tensor_sync.flags */
#define TENSOR_SYNC_READ	(1U << 0)	/* the processor reads */
#define TENSOR_SYNC_WRITE	(1U << 1)	/* the processor writes */
#define TENSOR_SYNC_END		(1U << 2)	/* it has; otherwise it is about to */

/**
 * struct tensor_sync - TENSOR_IOC_SYNC: bracket the processor's access, on either kind of fd
 * @size: sizeof(struct tensor_sync)
 * @flags: in: TENSOR_SYNC_*, one of READ and WRITE at least
 * @handle: in: the handle; 0 on a buffer fd
 * @__reserved: must be 0
 * @deadline_ns: in: without TENSOR_SYNC_END, until when to wait for devices, CLOCK_MONOTONIC; 0: do
 *	not wait; TENSOR_SYNC_FOREVER: no limit. Otherwise 0
 * @generation: out: as in struct tensor_status, that of the caller's write included
 *
 * The begin waits for the fences of devices: those that write, and before a write also those that
 * read. Where a device does not see the processor's caches, begin and end move the bytes over. The
 * end of a write makes the write generation one higher, by which readers that look at the status
 * page see that there is something new. On a buffer that only processes share, nothing else
 * happens, and nobody needs to call it but for that.
 *
 * Errors: EACCES: TENSOR_SYNC_WRITE through a read-only handle or fd. EPERM: TENSOR_SYNC_WRITE of a
 * buffer that is sealed against it. ETIMEDOUT: a device still had not finished. EINTR: a signal. On
 * a foreign dma-buf also what its exporter says.
 */
struct tensor_sync {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
	__u64 deadline_ns;
	__u64 generation;
};

#define TENSOR_SYNC_FOREVER	(~0ULL)

/* tensor_pin.flags */
#define TENSOR_PIN_RDONLY	(1U << 0)	/* devices shall only read it */

/**
 * struct tensor_pin - TENSOR_IOC_PIN: make a buffer of memory that the caller has
 * @size: sizeof(struct tensor_pin)
 * @flags: in: TENSOR_PIN_*
 * @addr: in: begin of the memory, whole pages
 * @bytes: in: bytes, whole pages, not 0
 * @handle: out: the handle; read-only with TENSOR_PIN_RDONLY
 * @__reserved: must be 0
 *
 * The pages are held in place, and counted against RLIMIT_MEMLOCK of the caller's user, until the
 * buffer is gone; munmap() by the caller changes nothing about that. The buffer is for devices: it
 * can be exported as a dma-buf, and its fd passed, but not mapped: who has the memory has it
 * mapped.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing. EFAULT: not accessible memory, or not
 * writable without TENSOR_PIN_RDONLY. ENOMEM: RLIMIT_MEMLOCK. EINVAL: not whole pages, or past the
 * end of the address space. EOPNOTSUPP: memory that cannot be pinned for long. EMFILE: as ALLOC.
 */
struct tensor_pin {
	__u32 size;
	__u32 flags;
	__u64 addr;
	__u64 bytes;
	__u32 handle;
	__u32 __reserved;
};

/*
 * Where mmap() of a buffer fd, or of /dev/tensor with a cookie added, finds the status page. One
 * page, read-only, shared; it stays readable when the buffer is revoked. A page is made for it when
 * the first asks.
 */
#define TENSOR_STATUS_OFFSET	(1ULL << 39)

/**
 * struct tensor_status - what the status page begins with; the rest of the page is zero
 * @generation: number of writes whose end somebody told: SYNC, or a dma-buf's user; never goes back
 * @state: TENSOR_STATE_REVOKED, TENSOR_STATE_PURGEABLE, TENSOR_STATE_PURGED
 * @seals: TENSOR_SEAL_*
 *
 * Each member is written as a whole; load it with acquire order, and what was written to the buffer
 * before the generation it shows is there to be read.
 */
struct tensor_status {
	__u64 generation;
	__u32 state;
	__u32 seals;
};

/* tensor_event.events */
#define TENSOR_EVENT_SEAL	(1U << 0)	/* a seal was added */
#define TENSOR_EVENT_REVOKE	(1U << 1)	/* the buffer was revoked */
#define TENSOR_EVENT_GONE	(1U << 2)	/* somebody let go of a handle, fd or dma-buf */
#define TENSOR_EVENT_PURGE	(1U << 3)	/* its memory was taken */

/**
 * struct tensor_event - what read() of /dev/tensor gives: what others did to a buffer
 * @handle: the handle of this /dev/tensor
 * @events: TENSOR_EVENT_*, all since it was last read
 * @ino: as in struct tensor_info
 *
 * read() gives as many as fit, each handle once; it waits for the first unless the fd is
 * non-blocking (EAGAIN), and is EINVAL if not even one fits. poll() tells POLLIN when there is one.
 * Nothing is lost, and nothing is queued: a handle has one set of events. What is done through this
 * same /dev/tensor is not told.
 *
 * A buffer fd can be polled as well: POLLPRI while the buffer is sealed against writing, POLLRDHUP
 * while no other handle, fd or dma-buf of it is left, POLLERR when it was revoked.
 */
struct tensor_event {
	__u32 handle;
	__u32 events;
	__u64 ino;
};

#endif /* _UAPI_LINUX_TENSOR_H */
