/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The kernel ABI of /dev/tensor: tensor storage as a kernel object.
 *
 * A *buffer* is memory with a typed descriptor: zero-filled, resident and unmovable when ALLOC made
 * it; user memory that PIN holds in place; or a dma-buf or memfd of another maker, from IMPORT.
 * It is held by
 *
 *   - a handle: a number in the table of one open /dev/tensor (made by ALLOC, PIN or IMPORT), or
 *   - a buffer fd: made by EXPORT, passed with SCM_RIGHTS, mapped by itself, or
 *   - a dma-buf fd: made by EXPORT, for whatever imports dma-bufs, or
 *   - a mapping of any of these,
 *
 * and is freed by the kernel when the last of them is gone, however its holders ended. There are
 * no names and no identifiers by which another process could find a buffer.
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
 *   EOPNOTSUPP  a flag, right or kind of fd that this kernel does not know
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
#define TENSOR_FS_MAGIC 0x544e5352

/* Most dimensions a descriptor has, and bytes of its label, the closing zero included. */
#define TENSOR_UAPI_MAX_DIMS 16
#define TENSOR_UAPI_LABEL    32

/* Room for chunk orders in struct tensor_info; QUERY tells how many are in use. */
#define TENSOR_UAPI_ORDERS 16

/* Any NUMA node (ALLOC); pages on more than one node (INFO). Node 0 is node 0. */
#define TENSOR_NODE_ANY (-1)

/*
 * What a handle, a buffer fd or a dma-buf permits. ALLOC gives all of it; EXPORT chooses what the
 * fd gets, never more than the handle has; IMPORT gives what the fd has. Nothing adds a right
 * later.
 */
#define TENSOR_RIGHT_READ   (1U << 0) /* mmap() for reading; devices may read */
#define TENSOR_RIGHT_WRITE  (1U << 1) /* the same for writing; META may set */
#define TENSOR_RIGHT_ATTACH (1U << 2) /* EXPORT may make dma-bufs: devices may attach */
#define TENSOR_RIGHT_SEAL   (1U << 3) /* SEAL may add seals */
#define TENSOR_RIGHT_REVOKE (1U << 4) /* REVOKE */
#define TENSOR_RIGHT_EXPORT (1U << 5) /* EXPORT */

/* To read and to share on; to write as well; all there is. */
#define TENSOR_RIGHTS_RO  (TENSOR_RIGHT_READ | TENSOR_RIGHT_ATTACH | TENSOR_RIGHT_EXPORT)
#define TENSOR_RIGHTS_RW  (TENSOR_RIGHTS_RO | TENSOR_RIGHT_WRITE)
#define TENSOR_RIGHTS_ALL (TENSOR_RIGHTS_RW | TENSOR_RIGHT_SEAL | TENSOR_RIGHT_REVOKE)

/*
 * Numbers of the ioctls. They carry no size: the struct does. Bit (number - TENSOR_IOC_BASE) of
 * tensor_query.ioctls tells whether the running kernel has one.
 */
#define TENSOR_IOC_TYPE 0xD7
#define TENSOR_IOC_BASE 0x40

#define TENSOR_IOC_QUERY  _IO(TENSOR_IOC_TYPE, 0x40)
#define TENSOR_IOC_ALLOC  _IO(TENSOR_IOC_TYPE, 0x41)
#define TENSOR_IOC_INFO	  _IO(TENSOR_IOC_TYPE, 0x42)
#define TENSOR_IOC_META	  _IO(TENSOR_IOC_TYPE, 0x43)
#define TENSOR_IOC_EXPORT _IO(TENSOR_IOC_TYPE, 0x44)
#define TENSOR_IOC_IMPORT _IO(TENSOR_IOC_TYPE, 0x45)
#define TENSOR_IOC_CLOSE  _IO(TENSOR_IOC_TYPE, 0x46)
#define TENSOR_IOC_SEAL	  _IO(TENSOR_IOC_TYPE, 0x47)
#define TENSOR_IOC_REVOKE _IO(TENSOR_IOC_TYPE, 0x48)
#define TENSOR_IOC_ADVISE _IO(TENSOR_IOC_TYPE, 0x49)
#define TENSOR_IOC_SYNC	  _IO(TENSOR_IOC_TYPE, 0x4a)
#define TENSOR_IOC_PIN	  _IO(TENSOR_IOC_TYPE, 0x4b)

/* tensor_query.features */
#define TENSOR_FEATURE_HUGE    (1ULL << 0) /* chunks of PMD size, mapped by one entry */
#define TENSOR_FEATURE_MEMCG   (1ULL << 1) /* charged to the caller's memory cgroup */
#define TENSOR_FEATURE_NUMA    (1ULL << 2) /* more than one node to choose from */
#define TENSOR_FEATURE_NETLINK (1ULL << 3) /* the family of <linux/tensor_netlink.h> */
#define TENSOR_FEATURE_EVENTS  (1ULL << 4) /* poll() and read() of struct tensor_event */
#define TENSOR_FEATURE_DMABUF  (1ULL << 5) /* EXPORT and IMPORT of dma-bufs */
#define TENSOR_FEATURE_MEMFD   (1ULL << 6) /* IMPORT of memfds */

/**
 * struct tensor_query - TENSOR_IOC_QUERY: what this kernel can do
 * @size: sizeof(struct tensor_query)
 * @flags: in: must be 0
 * @features: out: TENSOR_FEATURE_*
 * @ioctls: out: bit n: the ioctl of number TENSOR_IOC_BASE + n exists
 * @alloc_flags: out: the TENSOR_ALLOC_* that ALLOC knows
 * @export_flags: out: the TENSOR_EXPORT_* that EXPORT knows
 * @rights: out: the TENSOR_RIGHT_* that this kernel knows
 * @max_bytes: out: most bytes one buffer may have, free memory aside
 * @contig_bytes: out: most bytes one buffer may have with TENSOR_ALLOC_CONTIG, free memory aside
 * @limit_bytes: out: most bytes that all buffers of the machine together may hold in place now
 * @used_bytes: out: bytes that all buffers of the machine together hold in place now
 * @user_limit_bytes: out: most bytes that the buffers of the user who pays for the caller may hold
 *	in place now
 * @user_used_bytes: out: bytes that the buffers of that user hold in place now
 * @chunk_sizes: out: bit n: buffers may be built of chunks of 2^n bytes
 * @page_size: out: bytes of an order-0 chunk
 * @max_order: out: order of the largest chunk; 2^max_order pages
 * @max_dims: out: TENSOR_UAPI_MAX_DIMS of the running kernel
 * @max_handles: out: most handles of one open /dev/tensor
 * @nodes: out: NUMA nodes with memory
 * @__reserved: out: 0
 *
 * Works on any open /dev/tensor, one opened for reading only too. docs/uapi.md says what the limits
 * count, and who pays.
 */
struct tensor_query {
	__u32 size;
	__u32 flags;
	__u64 features;
	__u64 ioctls;
	__u64 alloc_flags;
	__u64 export_flags;
	__u64 rights;
	__u64 max_bytes;
	__u64 contig_bytes;
	__u64 limit_bytes;
	__u64 used_bytes;
	__u64 user_limit_bytes;
	__u64 user_used_bytes;
	__u64 chunk_sizes;
	__u32 page_size;
	__u32 max_order;
	__u32 max_dims;
	__u32 max_handles;
	__u32 nodes;
	__u32 __reserved;
};

/* tensor_alloc.flags */
#define TENSOR_ALLOC_ORDERS	(1U << 0) /* min_order and max_order are given */
#define TENSOR_ALLOC_NODE_ONLY	(1U << 1) /* node, or ENOMEM; else node is a preference */
#define TENSOR_ALLOC_INTERLEAVE (1U << 2) /* chunk by chunk over all nodes with memory */
#define TENSOR_ALLOC_CONTIG	(1U << 3) /* physically contiguous, or ENOMEM */
#define TENSOR_ALLOC_DMA32	(1U << 4) /* below 4 GiB, for devices that reach no further */

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
 * The handle has all rights.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing. EDQUOT: the limit of the module, or
 * that of the user, is reached. EMFILE: this open has @tensor_query.max_handles handles.
 * EOPNOTSUPP: TENSOR_ALLOC_CONTIG of more than @tensor_query.contig_bytes. EINVAL:
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
	__u64 mmap_offset;
};

/* tensor_info.state */
#define TENSOR_STATE_RDONLY    (1U << 0) /* this handle or fd has not TENSOR_RIGHT_WRITE */
#define TENSOR_STATE_META      (1U << 1) /* a descriptor is set */
#define TENSOR_STATE_RANGE     (1U << 2) /* this handle or fd reaches only a part of it */
#define TENSOR_STATE_REVOKED   (1U << 3) /* REVOKE was called */
#define TENSOR_STATE_PURGEABLE (1U << 4) /* memory may be taken, see ADVISE */
#define TENSOR_STATE_PURGED    (1U << 5) /* and was */

/* tensor_info.seals, tensor_seal.seals: never taken back */
#define TENSOR_SEAL_WRITE (1U << 0) /* the memory cannot be written to */
#define TENSOR_SEAL_META  (1U << 1) /* the descriptor cannot be changed */
#define TENSOR_SEAL_SEAL  (1U << 2) /* no seal can be added */

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
 * @dma_bytes: out: of these, in chunks that are pinned at this moment (O_DIRECT, RDMA, AF_XDP,
 *	io_uring, a GPU driver); an estimate for chunks of order 0
 * @dev: out: device number, as st_dev of fstat() on a buffer fd
 * @ino: out: inode number, as st_ino; no two buffers since the module was loaded have the same
 * @age_ns: out: nanoseconds since it was made, time asleep included
 * @pid: out: process that made it, as seen in the caller's pid namespace; 0 if not visible there
 * @uid: out: user that made it, as seen in the caller's user namespace
 * @refs: out: @handles + @files + @mappings + @dmabufs
 * @handles: out: handles to it, in all open /dev/tensor, however often each was imported
 * @files: out: open files made by EXPORT, kept by a fd, a message in flight or a mapping
 * @mappings: out: mappings of it, those of other processes included; 0 for a buffer that ALLOC did
 *	not make
 * @node: out: NUMA node of all its pages, or TENSOR_NODE_ANY
 * @rights: out: TENSOR_RIGHT_* of this handle or fd
 * @chunks: out: number of chunks of each order
 * @kind: out: enum tensor_kind
 * @seals: out: TENSOR_SEAL_*
 * @generation: out: number of writes whose end was reported: by SYNC, or by the user of a dma-buf
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
	__u32 rights;
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
 * @bits: bits of an element, not 0; 0: the buffer has no descriptor
 * @dtype: a number that user space gives a meaning to; the kernel keeps it and does not look at it
 * @ndim: dimensions, 0 (a scalar) to TENSOR_UAPI_MAX_DIMS
 * @__reserved: must be 0
 * @offset: bytes from the begin of the buffer to the element of index 0, 0, ...
 * @sizes: elements of each dimension, 0 or more; 0 from @ndim on
 * @strides: elements (not bytes) between neighbours of a dimension; may be 0 or negative; 0 from
 *	@ndim on
 * @label: well-formed UTF-8 without control characters, for people to read; zeros from its end on
 *
 * With @bits 0 all but @label is 0. Elements of less than a byte follow each other without gaps:
 * the element at distance n from the first begins n * @bits bits behind @offset.
 */
struct tensor_desc {
	__u32 bits;
	__u32 dtype;
	__u32 ndim;
	__u32 __reserved;
	__u64 offset;
	__s64 sizes[TENSOR_UAPI_MAX_DIMS];
	__s64 strides[TENSOR_UAPI_MAX_DIMS];
	char label[TENSOR_UAPI_LABEL];
};

/* tensor_meta.flags */
#define TENSOR_META_SET (1U << 0) /* write the descriptor; otherwise read it */

/**
 * struct tensor_meta - TENSOR_IOC_META: read or write a buffer's descriptor, on either kind of fd
 * @size: sizeof(struct tensor_meta)
 * @flags: in: 0 or TENSOR_META_SET
 * @handle: in: the handle; 0 on a buffer fd
 * @__reserved: must be 0
 * @desc: in with TENSOR_META_SET, otherwise out: the descriptor, replaced and read as a whole
 *
 * The kernel takes a descriptor only if every element it reaches lies within the buffer: unless one
 * of the sizes is 0,
 *
 *	0 <= 8 * offset + bits * sum of (sizes[i] - 1) * strides[i] over the negative strides, and
 *	8 * offset + bits * (1 + sum of (sizes[i] - 1) * strides[i] over the positive ones)
 *		<= 8 * bytes
 *
 * If a size is 0 there is no element, and offset <= bytes is asked. The product of all sizes that
 * are not 0, times bits, fits into 63 bits. No other alignment is asked.
 *
 * There is one descriptor a buffer. Through a handle or fd that reaches a part only, one that lies
 * in that part is read with its @desc.offset counted from there, and any other as none.
 *
 * Errors: EACCES: TENSOR_META_SET without TENSOR_RIGHT_WRITE, or through a handle or fd that
 * reaches a part only. EPERM: the descriptor is sealed. EINVAL: the descriptor breaks a rule above.
 */
struct tensor_meta {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
	struct tensor_desc desc;
};

/* tensor_export.flags */
#define TENSOR_EXPORT_INHERIT (1U << 0) /* the fd stays open at execve() */
#define TENSOR_EXPORT_RANGE   (1U << 1) /* offset and bytes are given */
#define TENSOR_EXPORT_DMABUF  (1U << 2) /* a dma-buf fd instead of a buffer fd */

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
 * @rights: in: TENSOR_RIGHT_* of the fd, not 0
 * @__reserved: must be 0
 *
 * A process with the fd and no handle has the rights of the fd and no others: without
 * TENSOR_RIGHT_WRITE mmap() and mprotect() refuse PROT_WRITE, and a device may only read; opening
 * it again through /proc is ENXIO; a handle imported from it has the same rights. The same holds
 * for what lies outside of a range.
 *
 * A dma-buf keeps the buffer alive like any other fd of it. All dma-bufs of a buffer share one
 * reservation object: a fence that one driver adds is waited for by all. A device that only reads
 * (DMA_TO_DEVICE) can use a dma-buf without TENSOR_RIGHT_WRITE, and that of a buffer that is sealed
 * against writing. A driver whose processor works on the bytes may write to them, so that it
 * cannot.
 *
 * Errors: EACCES: a right that the handle has not, TENSOR_RIGHT_EXPORT among them, or
 * TENSOR_RIGHT_ATTACH for a dma-buf. EPERM: TENSOR_RIGHT_WRITE for a buffer that is sealed against
 * writing. EBUSY: the buffer is purgeable. EINVAL: no right is asked for, or the range is empty,
 * not whole pages, or reaches past the end. EOPNOTSUPP: a part of a foreign dma-buf, or
 * TENSOR_EXPORT_DMABUF of one with fewer rights than it has. EMFILE, ENFILE: no file descriptor.
 */
struct tensor_export {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__s32 fd;
	__u64 offset;
	__u64 bytes;
	__u32 rights;
	__u32 __reserved;
};

/**
 * struct tensor_import - TENSOR_IOC_IMPORT: make a handle from an fd
 * @size: sizeof(struct tensor_import)
 * @flags: in: must be 0
 * @fd: in: a buffer fd, a dma-buf fd or a memfd; it stays the caller's, and may be closed
 * @handle: out: the handle
 * @bytes: out: bytes that the handle reaches
 * @cookie: out: as in struct tensor_alloc
 * @rights: out: TENSOR_RIGHT_* of the handle
 * @__reserved: must be 0
 *
 * A handle from a buffer fd, or from a dma-buf fd that EXPORT made, is one to the same buffer, and
 * reaches and permits what the fd does. An open /dev/tensor that has a handle to the same buffer
 * with the same range and rights gets the same handle again: it has to be closed as often as it was
 * imported.
 *
 * A dma-buf of another driver, and a memfd, become a buffer of their own with each call; it can
 * neither be sealed nor revoked. Its memory is charged while a device has it mapped, see
 * docs/uapi.md. A memfd must be sealed with F_SEAL_SHRINK, so that no page can go while it is used;
 * a handle from one that was opened for reading, or is sealed with F_SEAL_WRITE or
 * F_SEAL_FUTURE_WRITE, has no TENSOR_RIGHT_WRITE. Nor has one from a dma-buf that was opened for
 * reading.
 *
 * While a handle may write to a memfd, F_SEAL_WRITE of it is EBUSY; F_SEAL_FUTURE_WRITE refuses new
 * writable mappings (EPERM), and does not change the rights of devices. Mappings of a dma-buf of
 * another driver are the exporter's, those of a memfd its file system's: INFO counts neither.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing, or a dma-buf of another driver or a
 * memfd that is not open for reading. EBADF: not an open fd. EOPNOTSUPP: not one of the kinds
 * above, or a memfd of hugetlbfs. EINVAL: a dma-buf or memfd that is empty, is larger than
 * @tensor_query.max_bytes or has no whole number of pages, or a memfd that can shrink. EMFILE: as
 * ALLOC.
 */
struct tensor_import {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 handle;
	__u64 bytes;
	__u64 mmap_offset;
	__u32 rights;
	__u32 __reserved;
};

/**
 * struct tensor_close - TENSOR_IOC_CLOSE: give a handle back
 * @size: sizeof(struct tensor_close)
 * @flags: in: must be 0
 * @handle: in: the handle; once it is closed as often as it was imported, its number and cookie may
 *	be given out again
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
 * A call that fails changes nothing: who maps the buffer while it runs waits for its outcome.
 *
 * Errors: EOPNOTSUPP: to add to memory that IMPORT or PIN made a buffer of. EACCES: to add without
 * TENSOR_RIGHT_SEAL, or through a handle or fd that reaches a part only. EPERM: TENSOR_SEAL_SEAL is
 * set. EBUSY: TENSOR_SEAL_WRITE while it could still be written to: a mapping that is or may become
 * writable, a device or kernel mapping of a dma-buf that may write, or a page that something refers
 * to (which may be for writing: a network card, a fixed buffer, direct I/O; or a pipe); or while
 * the buffer is purgeable.
 */
struct tensor_seal {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 seals;
};

/**
 * struct tensor_revoke - TENSOR_IOC_REVOKE: take a buffer away from all of its holders
 * @size: sizeof(struct tensor_revoke)
 * @flags: in: must be 0
 * @handle: in: the handle
 * @__reserved: must be 0
 *
 * Every mapping is emptied: touching it is SIGBUS from then on. Every other call about the buffer
 * is EIDRM. The memory is freed at once, except pages that a device uses or something else refers
 * to: these go when that ends, and stay charged until then. A second REVOKE does nothing.
 *
 * Errors: EOPNOTSUPP: memory that IMPORT or PIN made a buffer of. EACCES: a handle without
 * TENSOR_RIGHT_REVOKE, or that reaches a part only.
 */
struct tensor_revoke {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
};

/* tensor_advise.advice */
#define TENSOR_ADVISE_WILLNEED	0 /* the memory is needed, back if it was purged */
#define TENSOR_ADVISE_PURGEABLE 1 /* the kernel may take it when memory is short */

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
 * back. Only a buffer without another holder can be purgeable, and one that is cannot be exported.
 * One of whose pages something refers to, a device or a pipe, is not taken.
 *
 * Errors: EACCES: a handle of another /dev/tensor than the one that ALLOC was called on, or one
 * without TENSOR_RIGHT_WRITE or that reaches a part only. EPERM: TENSOR_ADVISE_PURGEABLE of a
 * buffer that is sealed against writing. EBUSY: TENSOR_ADVISE_PURGEABLE while there is another
 * handle, a buffer fd, a dma-buf, or a mapping made through one. EDQUOT, ENOMEM:
 * TENSOR_ADVISE_WILLNEED could not bring it back; it stays purged. EOPNOTSUPP: another advice, or a
 * buffer that ALLOC did not make.
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
#define TENSOR_SYNC_READ  (1U << 0) /* the processor reads */
#define TENSOR_SYNC_WRITE (1U << 1) /* the processor writes */
#define TENSOR_SYNC_END	  (1U << 2) /* it has; otherwise it is about to */

/**
 * struct tensor_sync - TENSOR_IOC_SYNC: bracket the processor's access, on either kind of fd
 * @size: sizeof(struct tensor_sync)
 * @flags: in: TENSOR_SYNC_*, one of READ and WRITE at least
 * @handle: in: the handle; 0 on a buffer fd
 * @__reserved: must be 0
 * @deadline_ns: in: without TENSOR_SYNC_END, until when to wait for devices, CLOCK_MONOTONIC; 0: do
 *	not wait; TENSOR_SYNC_FOREVER: no limit. Otherwise 0
 * @generation: out: as in struct tensor_info, that of the caller's write included
 *
 * The begin waits for the fences of devices: those that write, and before a write also those that
 * read. Where a device does not see the processor's caches, begin and end move the bytes over. The
 * end of a write makes the write generation one higher. On a buffer that only processes share
 * nothing else happens, and a program needs the call only for that.
 *
 * Errors: EACCES: TENSOR_SYNC_READ without TENSOR_RIGHT_READ, TENSOR_SYNC_WRITE without
 * TENSOR_RIGHT_WRITE. EPERM: TENSOR_SYNC_WRITE of a buffer that is sealed against it. ETIMEDOUT: a
 * device had not finished by the deadline. EINTR: a signal, unless its handler restarts system
 * calls. On a foreign dma-buf also the errors of its exporter.
 */
struct tensor_sync {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
	__u64 deadline_ns;
	__u64 generation;
};

#define TENSOR_SYNC_FOREVER (~0ULL)

/* tensor_pin.flags */
#define TENSOR_PIN_RDONLY (1U << 0) /* devices shall only read it */

/**
 * struct tensor_pin - TENSOR_IOC_PIN: make a buffer of memory that the caller has
 * @size: sizeof(struct tensor_pin)
 * @flags: in: TENSOR_PIN_*
 * @addr: in: begin of the memory, whole pages
 * @bytes: in: bytes, whole pages, not 0
 * @handle: out: the handle; with TENSOR_RIGHTS_RO, and TENSOR_RIGHT_WRITE unless TENSOR_PIN_RDONLY
 * @__reserved: must be 0
 *
 * The pages are held in place, and counted against RLIMIT_MEMLOCK of the caller's user and against
 * the limits of the module, until the buffer is gone; munmap() by the caller changes nothing about
 * that. The buffer is for devices: it can be exported as a dma-buf, and its fd passed, but not
 * mapped: who has the memory has it mapped.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing. EFAULT: not accessible memory, or not
 * writable without TENSOR_PIN_RDONLY. ENOMEM: RLIMIT_MEMLOCK. EDQUOT: as ALLOC. EINVAL: not whole
 * pages, or past the end of the address space. EOPNOTSUPP: memory that cannot be pinned for long.
 * EMFILE: as ALLOC.
 */
struct tensor_pin {
	__u32 size;
	__u32 flags;
	__u64 addr;
	__u64 bytes;
	__u32 handle;
	__u32 __reserved;
};

/* tensor_event.events */
#define TENSOR_EVENT_SEAL   (1U << 0) /* a seal was added */
#define TENSOR_EVENT_REVOKE (1U << 1) /* the buffer was revoked */
#define TENSOR_EVENT_GONE   (1U << 2) /* another holder closed or unmapped it */
#define TENSOR_EVENT_PURGE  (1U << 3) /* its memory was taken */

/**
 * struct tensor_event - what read() of /dev/tensor gives: what others did to a buffer
 * @size: bytes from this event to the next one: sizeof(struct tensor_event), more with a newer
 *	kernel
 * @handle: the handle of this /dev/tensor
 * @events: TENSOR_EVENT_*, all since it was last read
 * @__reserved: 0
 * @ino: as in struct tensor_info
 *
 * read() gives as many as fit; it waits for the first unless the fd is
 * non-blocking (EAGAIN), and is EINVAL if not even one fits; 256 bytes are enough for one of any
 * kernel. poll() reports POLLIN when there is one. Nothing is lost, and nothing is queued: a handle
 * has one set of events. What is done through this same /dev/tensor is not reported.
 */
struct tensor_event {
	__u32 size;
	__u32 handle;
	__u32 events;
	__u32 __reserved;
	__u64 ino;
};

#endif /* _UAPI_LINUX_TENSOR_H */
