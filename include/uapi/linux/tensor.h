/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The kernel ABI of /dev/tensor: tensor storage as a kernel object.
 *
 * A *buffer* is memory with a typed descriptor: zeroed, resident and unmovable memory from ALLOC,
 * user memory that PIN has pinned, or a dma-buf of another driver or a memfd, from IMPORT.
 * It is referenced by
 *
 *   - a handle: a number in the table of one open /dev/tensor, from ALLOC, PIN or IMPORT,
 *   - a buffer fd: from EXPORT; can be sent with SCM_RIGHTS and mapped,
 *   - a dma-buf fd: from EXPORT, for importers of dma-bufs, or
 *   - a mapping of any of these.
 *
 * The kernel frees it with the last reference, also if the holders are killed. A buffer has no name
 * and no identifier by which another process could access it.
 *
 * Every ioctl takes a struct whose first member is the size of the struct in bytes. If the caller's
 * struct is shorter than the kernel's, the missing members are 0; if it is longer, the additional
 * part must be zero. The kernel writes back only as many bytes as the caller's struct has. If the
 * call fails, nothing is written back and nothing is changed.
 *
 * Errors of all ioctls:
 *
 *   ENOTTY      no such ioctl, or not for this kind of fd (buffer fd: INFO, META, SEAL, SYNC)
 *   E2BIG       the part that this kernel does not know is not zero, or size is above a page
 *   EINVAL      size is below that of the struct's first version; a reserved field is not zero;
 *               an argument is invalid
 *   EOPNOTSUPP  a flag, right or kind of fd that this kernel does not know
 *   ENOENT      no such handle in this open /dev/tensor: never created, or closed
 *   EIDRM       the buffer was revoked; INFO and CLOSE still work
 *   EFAULT      the struct is not in accessible memory
 *   EINTR       killed while waiting or while memory was being zeroed
 *   ENOMEM      out of memory, or the memory cgroup of the caller is full
 */
#ifndef _UAPI_LINUX_TENSOR_H
#define _UAPI_LINUX_TENSOR_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* f_type that fstatfs() reports for a buffer fd. */
#define TENSOR_FS_MAGIC 0x544e5352

/* Maximum number of dimensions of a descriptor; size of its label including the final zero. */
#define TENSOR_UAPI_MAX_DIMS 16
#define TENSOR_UAPI_LABEL    32

/* Number of chunk orders in struct tensor_info; max_order of QUERY is the largest one in use. */
#define TENSOR_UAPI_ORDERS 16

/* ALLOC: any NUMA node. INFO: the pages are on more than one node. */
#define TENSOR_NODE_ANY (-1)

/*
 * Rights of a handle, a buffer fd or a dma-buf. ALLOC gives all of them; EXPORT selects those of
 * the fd among those of the handle; IMPORT gives those of the fd. No call adds a right.
 */
#define TENSOR_RIGHT_READ   (1U << 0) /* mmap() for reading; reads by devices */
#define TENSOR_RIGHT_WRITE  (1U << 1) /* the same for writing; META with SET */
#define TENSOR_RIGHT_ATTACH (1U << 2) /* EXPORT of dma-bufs */
#define TENSOR_RIGHT_SEAL   (1U << 3) /* SEAL */
#define TENSOR_RIGHT_REVOKE (1U << 4) /* REVOKE */
#define TENSOR_RIGHT_EXPORT (1U << 5) /* EXPORT */

/* Read and share; also write; all rights. */
#define TENSOR_RIGHTS_RO  (TENSOR_RIGHT_READ | TENSOR_RIGHT_ATTACH | TENSOR_RIGHT_EXPORT)
#define TENSOR_RIGHTS_RW  (TENSOR_RIGHTS_RO | TENSOR_RIGHT_WRITE)
#define TENSOR_RIGHTS_ALL (TENSOR_RIGHTS_RW | TENSOR_RIGHT_SEAL | TENSOR_RIGHT_REVOKE)

/*
 * Numbers of the ioctls, without a size, which is in the struct. The kernel has an ioctl if bit
 * (number - TENSOR_IOC_BASE) of tensor_query.ioctls is set.
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
#define TENSOR_FEATURE_HUGE    (1ULL << 0) /* chunks of PMD size, mapped by one PMD */
#define TENSOR_FEATURE_MEMCG   (1ULL << 1) /* charged to the caller's memory cgroup */
#define TENSOR_FEATURE_NUMA    (1ULL << 2) /* more than one NUMA node */
#define TENSOR_FEATURE_NETLINK (1ULL << 3) /* the family of <linux/tensor_netlink.h> */
#define TENSOR_FEATURE_EVENTS  (1ULL << 4) /* poll() and read() of struct tensor_event */
#define TENSOR_FEATURE_DMABUF  (1ULL << 5) /* EXPORT and IMPORT of dma-bufs */
#define TENSOR_FEATURE_MEMFD   (1ULL << 6) /* IMPORT of memfds */

/**
 * struct tensor_query - TENSOR_IOC_QUERY: features and limits of this kernel
 * @size: sizeof(struct tensor_query)
 * @flags: in: must be 0
 * @features: out: TENSOR_FEATURE_*
 * @ioctls: out: bit n: the ioctl with number TENSOR_IOC_BASE + n exists
 * @alloc_flags: out: the TENSOR_ALLOC_* flags that this kernel supports
 * @export_flags: out: the TENSOR_EXPORT_* flags that this kernel supports
 * @rights: out: the TENSOR_RIGHT_* bits that this kernel supports
 * @max_bytes: out: maximum size of a buffer, whatever memory is free
 * @contig_bytes: out: maximum size of a buffer with TENSOR_ALLOC_CONTIG, whatever memory is free
 * @limit_bytes: out: current limit of the bytes charged to all users
 * @used_bytes: out: bytes charged to all users
 * @user_limit_bytes: out: current limit of the bytes charged to one user
 * @user_used_bytes: out: bytes charged to the user who is charged for the caller
 * @chunk_sizes: out: bit n: buffers may have chunks of 2^n bytes
 * @page_size: out: bytes of an order-0 chunk
 * @max_order: out: order of the largest chunk; 2^max_order pages
 * @max_dims: out: TENSOR_UAPI_MAX_DIMS of the running kernel
 * @max_handles: out: maximum number of handles of one open /dev/tensor
 * @nodes: out: NUMA nodes with memory
 * @__reserved: out: 0
 *
 * Also works if /dev/tensor is open for reading only. docs/uapi.md explains which memory is
 * charged, and to whom.
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
#define TENSOR_ALLOC_ORDERS	(1U << 0) /* use min_order and max_order */
#define TENSOR_ALLOC_NODE_ONLY	(1U << 1) /* node is required, not preferred */
#define TENSOR_ALLOC_INTERLEAVE (1U << 2) /* alternate chunks over all nodes */
#define TENSOR_ALLOC_CONTIG	(1U << 3) /* physically contiguous */
#define TENSOR_ALLOC_DMA32	(1U << 4) /* below 4 GiB */

/**
 * struct tensor_alloc - TENSOR_IOC_ALLOC: allocate a buffer with all of its memory, zeroed
 * @size: sizeof(struct tensor_alloc)
 * @flags: in: TENSOR_ALLOC_*
 * @bytes: in: size, not 0; out: size of the buffer, rounded up to whole pages, or to whole chunks
 *	of @min_order
 * @node: in: NUMA node, or TENSOR_NODE_ANY for the memory policy of the caller
 * @min_order: in: with TENSOR_ALLOC_ORDERS, order of the smallest chunk; otherwise 0
 * @max_order: in: with TENSOR_ALLOC_ORDERS, order of the largest chunk; otherwise 0, and the kernel
 *	tries the largest order first and falls back to smaller ones
 * @handle: out: the handle, never 0; valid until CLOSE or the last close of this /dev/tensor
 * @__reserved: must be 0
 * @mmap_offset: out: the offset at which mmap() of this /dev/tensor maps the buffer
 *
 * The mmap offset belongs to the handle: it is valid for this open of /dev/tensor only, and after
 * CLOSE mmap() fails with ENOENT. A multiple of the page size may be added to it. A mapping
 * outlives its handle. A 32-bit program gets 0 and cannot mmap() /dev/tensor (EOPNOTSUPP), since
 * its offsets have too few bits: it maps a buffer fd.
 *
 * The handle has all rights.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing. EDQUOT: the limit of all users or that
 * of the user is reached. EMFILE: this open has @tensor_query.max_handles handles. EOPNOTSUPP:
 * TENSOR_ALLOC_CONTIG of more than @tensor_query.contig_bytes. EINVAL: @bytes is 0 or above
 * @tensor_query.max_bytes, the node has no memory, TENSOR_ALLOC_NODE_ONLY without a node,
 * TENSOR_ALLOC_INTERLEAVE with a node or with TENSOR_ALLOC_CONTIG, TENSOR_ALLOC_CONTIG with
 * TENSOR_ALLOC_ORDERS, or the orders are not 0 <= min <= max <= @tensor_query.max_order.
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
#define TENSOR_STATE_RDONLY    (1U << 0) /* this handle or fd has no TENSOR_RIGHT_WRITE */
#define TENSOR_STATE_META      (1U << 1) /* a descriptor is set */
#define TENSOR_STATE_RANGE     (1U << 2) /* this handle or fd has a part of the buffer */
#define TENSOR_STATE_REVOKED   (1U << 3) /* REVOKE was called */
#define TENSOR_STATE_PURGEABLE (1U << 4) /* the kernel may free the memory, see ADVISE */
#define TENSOR_STATE_PURGED    (1U << 5) /* the kernel has freed the memory */

/* tensor_info.seals, tensor_seal.seals; a seal is permanent */
#define TENSOR_SEAL_WRITE (1U << 0) /* the memory cannot be written to */
#define TENSOR_SEAL_META  (1U << 1) /* the descriptor cannot be changed */
#define TENSOR_SEAL_SEAL  (1U << 2) /* no seal can be added */

/**
 * enum tensor_kind - where the memory of a buffer comes from
 * @TENSOR_KIND_ALLOC: ALLOC
 * @TENSOR_KIND_PIN: user memory that PIN has pinned
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
 * struct tensor_info - TENSOR_IOC_INFO: properties of a buffer, on /dev/tensor or a buffer fd
 * @size: sizeof(struct tensor_info)
 * @flags: in: must be 0
 * @handle: in: the handle; 0 on a buffer fd
 * @state: out: TENSOR_STATE_*
 * @bytes: out: size of the range of this handle or fd; of the buffer without TENSOR_STATE_RANGE
 * @huge_bytes: out: bytes of the buffer in chunks of PMD size
 * @pinned_bytes: out: bytes of the buffer that are resident and unmovable; all bytes of a buffer of
 *	ALLOC or PIN, unless it was purged or revoked
 * @dma_bytes: out: those of @pinned_bytes in chunks that are pinned now (O_DIRECT, RDMA, AF_XDP,
 *	io_uring, a GPU driver); an estimate for chunks of order 0
 * @dev: out: device number, as st_dev of fstat() on a buffer fd
 * @ino: out: inode number, as st_ino; not reused while the module is loaded
 * @age_ns: out: nanoseconds since it was created, including suspend
 * @pid: out: process that created it, in the caller's pid namespace; 0 if not visible there
 * @uid: out: user that created it, in the caller's user namespace
 * @refs: out: @handles + @files + @mappings + @dmabufs
 * @handles: out: handles to it in all open /dev/tensor; a handle imported several times counts once
 * @files: out: open files made by EXPORT, referenced by an fd, a message in flight or a mapping
 * @mappings: out: mappings of it in all processes; 0 if the memory is not of ALLOC
 * @node: out: NUMA node of all its pages, or TENSOR_NODE_ANY
 * @rights: out: TENSOR_RIGHT_* of this handle or fd
 * @chunks: out: number of chunks of each order
 * @kind: out: enum tensor_kind
 * @seals: out: TENSOR_SEAL_*
 * @generation: out: number of writes that have ended: by SYNC, or by a user of a dma-buf
 * @offset: out: offset of the range of this handle or fd in the buffer, in bytes
 * @dmabufs: out: existing dma-bufs made by EXPORT
 * @attachments: out: devices attached to them
 *
 * The counts are not a consistent snapshot.
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
 * struct tensor_desc - element type and shape of the content of a buffer
 * @bits: bits per element; 0: the buffer has no descriptor
 * @dtype: a number defined by user space, which the kernel stores without interpreting it
 * @ndim: dimensions, 0 (a scalar) to TENSOR_UAPI_MAX_DIMS
 * @__reserved: must be 0
 * @offset: bytes from the start of the buffer to the element with index 0, 0, ...
 * @sizes: size of each dimension, 0 or more; 0 from @ndim on
 * @strides: distance of neighbours of each dimension in elements (not bytes); may be 0 or negative;
 *	0 from @ndim on
 * @label: a name: valid UTF-8 without control characters, padded with zeros
 *
 * With @bits 0 all members except @label are 0. Elements of less than a byte are stored without
 * gaps: the element at distance n from the first begins n * @bits bits after @offset.
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
 * struct tensor_meta - TENSOR_IOC_META: read or write a descriptor, on /dev/tensor or a buffer fd
 * @size: sizeof(struct tensor_meta)
 * @flags: in: 0 or TENSOR_META_SET
 * @handle: in: the handle; 0 on a buffer fd
 * @__reserved: must be 0
 * @desc: in with TENSOR_META_SET, otherwise out: the descriptor, read and replaced atomically
 *
 * The kernel accepts a descriptor only if every element lies within the buffer: unless one of the
 * sizes is 0,
 *
 *	0 <= 8 * offset + bits * sum of (sizes[i] - 1) * strides[i] over the negative strides, and
 *	8 * offset + bits * (1 + sum of (sizes[i] - 1) * strides[i] over the positive ones)
 *		<= 8 * bytes
 *
 * If a size is 0 there is no element, and offset <= bytes is required. The product of all sizes
 * that are not 0, times bits, must fit into 63 bits. No alignment is required.
 *
 * A buffer has one descriptor. Through a handle or fd of a part, a descriptor whose elements lie in
 * that part is read with @desc.offset relative to the part; any other is read as no descriptor.
 *
 * Errors: EACCES: TENSOR_META_SET without TENSOR_RIGHT_WRITE, or through a handle or fd of a part.
 * EPERM: the descriptor is sealed. EINVAL: the descriptor violates a rule above.
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
#define TENSOR_EXPORT_RANGE   (1U << 1) /* use offset and bytes */
#define TENSOR_EXPORT_DMABUF  (1U << 2) /* a dma-buf fd instead of a buffer fd */

/**
 * struct tensor_export - TENSOR_IOC_EXPORT: create a buffer fd or a dma-buf fd
 * @size: sizeof(struct tensor_export)
 * @flags: in: TENSOR_EXPORT_*
 * @handle: in: the handle
 * @fd: out: a new file descriptor; the caller owns it
 * @offset: in: with TENSOR_EXPORT_RANGE, offset of the range in that of the handle, in bytes, a
 *	multiple of the page size; otherwise 0
 * @bytes: in: with TENSOR_EXPORT_RANGE, size of the range, a multiple of the page size, not 0;
 *	otherwise 0
 * @rights: in: TENSOR_RIGHT_* of the fd, not 0
 * @__reserved: must be 0
 *
 * A process with the fd and no handle has only the rights of the fd: without TENSOR_RIGHT_WRITE
 * mmap() and mprotect() refuse PROT_WRITE, and devices may only read; the fd cannot be opened again
 * through /proc (ENXIO); a handle imported from it has the same rights. The range is enforced in
 * the same way.
 *
 * A dma-buf keeps the buffer alive like a buffer fd. All dma-bufs of a buffer share one reservation
 * object, so a fence that one driver adds applies to all of them. A device that only reads
 * (DMA_TO_DEVICE) can use a dma-buf without TENSOR_RIGHT_WRITE, and one of a sealed buffer. A
 * driver that accesses the memory with the processor may write to it, so it needs
 * TENSOR_RIGHT_WRITE.
 *
 * Errors: EACCES: the handle does not have the rights, TENSOR_RIGHT_EXPORT, or TENSOR_RIGHT_ATTACH
 * for a dma-buf. EPERM: TENSOR_RIGHT_WRITE for a buffer that is sealed against writing. EBUSY: the
 * buffer is purgeable. EINVAL: @rights is 0, or the range is empty, not a multiple of the page
 * size, or extends past the end. EOPNOTSUPP: a part of a dma-buf of another driver, or
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
 * struct tensor_import - TENSOR_IOC_IMPORT: create a handle from an fd
 * @size: sizeof(struct tensor_import)
 * @flags: in: must be 0
 * @fd: in: a buffer fd, a dma-buf fd or a memfd; the caller keeps it and may close it
 * @handle: out: the handle
 * @bytes: out: size of the range of the handle
 * @mmap_offset: out: as in struct tensor_alloc
 * @rights: out: TENSOR_RIGHT_* of the handle
 * @__reserved: must be 0
 *
 * A handle from a buffer fd, or from a dma-buf fd of EXPORT, refers to the same buffer, with the
 * range and the rights of the fd. If this open of /dev/tensor already has a handle to the same
 * buffer with the same range and rights, that handle is returned; it has to be closed as often as
 * it was returned.
 *
 * For a dma-buf of another driver, and for a memfd, each call creates a separate buffer, which can
 * neither be sealed nor revoked. Memory of a memfd is charged while a device has it mapped, see
 * docs/uapi.md. A memfd must have F_SEAL_SHRINK, so that no page disappears while it is used. The
 * handle has no TENSOR_RIGHT_WRITE if the memfd or dma-buf is open for reading only, or if the
 * memfd has F_SEAL_WRITE or F_SEAL_FUTURE_WRITE.
 *
 * While a handle with the right to write to a memfd exists, F_SEAL_WRITE fails with EBUSY.
 * F_SEAL_FUTURE_WRITE forbids new writable mappings (EPERM) and does not change the rights of
 * devices. INFO does not count mappings of a dma-buf of another driver or of a memfd.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing, or the memfd or the dma-buf of another
 * driver is not open for reading. EBADF: not an open fd. EOPNOTSUPP: another kind of fd, or a memfd
 * of hugetlbfs. EINVAL: the dma-buf or memfd is empty, larger than @tensor_query.max_bytes or no
 * multiple of the page size, or the memfd can shrink. EMFILE, EDQUOT: as ALLOC.
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
 * struct tensor_close - TENSOR_IOC_CLOSE: close a handle
 * @size: sizeof(struct tensor_close)
 * @flags: in: must be 0
 * @handle: in: the handle; after it was closed as often as it was returned, its number may be
 *	reused
 * @__reserved: must be 0
 *
 * Mappings and exported fds stay valid.
 */
struct tensor_close {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
};

/**
 * struct tensor_seal - TENSOR_IOC_SEAL: add permanent seals, on /dev/tensor or a buffer fd
 * @size: sizeof(struct tensor_seal)
 * @flags: in: must be 0
 * @handle: in: the handle; 0 on a buffer fd
 * @seals: in: TENSOR_SEAL_* to add, 0 to only read them; out: all seals that are set
 *
 * With TENSOR_SEAL_WRITE no holder, including the creator, can change the memory any more: writable
 * mappings and devices that write are refused.
 *
 * A call that fails changes nothing: a concurrent mmap() waits for the outcome.
 *
 * Errors of a call that adds seals: EOPNOTSUPP: the memory is not of ALLOC. EACCES: no
 * TENSOR_RIGHT_SEAL, or a handle or fd of a part. EPERM: TENSOR_SEAL_SEAL is set. EBUSY:
 * TENSOR_SEAL_WRITE while a writer may exist: a mapping that is or may become writable, a mapping
 * of a dma-buf by a device or the kernel that may write, or another reference to a page (a pin of a
 * network card, a fixed buffer of io_uring, direct I/O, a pipe); or while the buffer is purgeable.
 */
struct tensor_seal {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 seals;
};

/**
 * struct tensor_revoke - TENSOR_IOC_REVOKE: revoke the access of all holders
 * @size: sizeof(struct tensor_revoke)
 * @flags: in: must be 0
 * @handle: in: the handle
 * @__reserved: must be 0
 *
 * An access to a mapping raises SIGBUS afterwards, and calls on the buffer fail with EIDRM. The
 * memory is freed, except pages that a device has mapped or that have another reference: these stay
 * charged and are freed with that reference. A second REVOKE does nothing.
 *
 * Errors: EOPNOTSUPP: the memory is not of ALLOC. EACCES: the handle has no TENSOR_RIGHT_REVOKE, or
 * is one of a part.
 */
struct tensor_revoke {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
};

/* tensor_advise.advice */
#define TENSOR_ADVISE_WILLNEED	0 /* not purgeable; allocate if purged */
#define TENSOR_ADVISE_PURGEABLE 1 /* the kernel may free the memory */

/**
 * struct tensor_advise - TENSOR_IOC_ADVISE: permit the kernel to free the memory, or end that
 * @size: sizeof(struct tensor_advise)
 * @flags: in: must be 0
 * @handle: in: the handle
 * @advice: in: TENSOR_ADVISE_*
 * @purged: out: with TENSOR_ADVISE_WILLNEED, 1 if the memory was freed and has been allocated
 *	again, zeroed; otherwise 0
 * @__reserved: must be 0
 *
 * This is for caches that can be computed again. The mappings of a purged buffer stay; an access
 * raises SIGBUS until TENSOR_ADVISE_WILLNEED has allocated the memory again. A buffer can be
 * purgeable only without another holder, and cannot be exported while it is. A buffer with a page
 * that has another reference (a device, a pipe) is not purged.
 *
 * Errors: EACCES: the handle is not of the open /dev/tensor that called ALLOC, has no
 * TENSOR_RIGHT_WRITE, or is one of a part. EPERM: TENSOR_ADVISE_PURGEABLE of a buffer that is
 * sealed against writing. EBUSY: TENSOR_ADVISE_PURGEABLE while there is another handle, a buffer
 * fd, a dma-buf, or a mapping made through one of these. EDQUOT, ENOMEM: TENSOR_ADVISE_WILLNEED
 * could not allocate the memory, and the buffer stays purged. EOPNOTSUPP: another advice, or memory
 * that is not of ALLOC.
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
#define TENSOR_SYNC_END	  (1U << 2) /* end of the access; otherwise the begin */

/**
 * struct tensor_sync - TENSOR_IOC_SYNC: begin or end of an access by the processor
 * @size: sizeof(struct tensor_sync)
 * @flags: in: TENSOR_SYNC_*, at least one of READ and WRITE
 * @handle: in: the handle; 0 on a buffer fd
 * @__reserved: must be 0
 * @deadline_ns: in: without TENSOR_SYNC_END, how long to wait for devices, a time of
 *	CLOCK_MONOTONIC; 0: do not wait; TENSOR_SYNC_FOREVER: no limit. With TENSOR_SYNC_END: 0
 * @generation: out: as in struct tensor_info, including the write that this call ends
 *
 * Works on /dev/tensor and on a buffer fd. The begin waits for the fences of devices: those that
 * write, and before a write also those that read. For a device that is not cache coherent, begin
 * and end sync its mappings. The end of a write increments the generation. On a buffer that only
 * processes share the call does nothing else.
 *
 * Errors: EACCES: TENSOR_SYNC_READ without TENSOR_RIGHT_READ, TENSOR_SYNC_WRITE without
 * TENSOR_RIGHT_WRITE. EPERM: TENSOR_SYNC_WRITE of a buffer that is sealed against writing.
 * ETIMEDOUT: a device had not finished by the deadline. EINTR: a signal, unless its handler
 * restarts system calls. For a dma-buf of another driver also the errors of its exporter.
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
#define TENSOR_PIN_RDONLY (1U << 0) /* devices may only read */

/**
 * struct tensor_pin - TENSOR_IOC_PIN: create a buffer for memory that the caller has mapped
 * @size: sizeof(struct tensor_pin)
 * @flags: in: TENSOR_PIN_*
 * @addr: in: start of the memory, a multiple of the page size
 * @bytes: in: size, a multiple of the page size, not 0
 * @handle: out: the handle; with TENSOR_RIGHTS_RO, and TENSOR_RIGHT_WRITE unless TENSOR_PIN_RDONLY
 * @__reserved: must be 0
 *
 * The pages are pinned, and charged to RLIMIT_MEMLOCK of the caller's user and to the limits of the
 * module, until the buffer is freed, also after munmap() by the caller. The buffer is for devices:
 * it can be exported as a dma-buf or as a buffer fd, but not mapped, because its owner has it
 * mapped.
 *
 * Errors: EACCES: this /dev/tensor is not open for writing. EFAULT: the memory is not accessible,
 * or not writable without TENSOR_PIN_RDONLY. ENOMEM: RLIMIT_MEMLOCK. EINVAL: not a multiple of the
 * page size, or past the end of the address space. EOPNOTSUPP: memory that cannot be pinned
 * long-term. EDQUOT, EMFILE: as ALLOC.
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
#define TENSOR_EVENT_PURGE  (1U << 3) /* the kernel has freed its memory */

/**
 * struct tensor_event - result of read() of /dev/tensor: actions of other clients on a buffer
 * @size: distance to the next event in bytes: sizeof(struct tensor_event), or more with a newer
 *	kernel
 * @handle: a handle of this /dev/tensor to the buffer
 * @events: TENSOR_EVENT_*, all since the last read
 * @__reserved: 0
 * @ino: as in struct tensor_info
 *
 * read() returns as many events as fit. It waits for the first one unless the fd is non-blocking
 * (EAGAIN), and fails with EINVAL without room for one event; 256 bytes suffice for an event of any
 * kernel. poll() reports POLLIN if there is an event. A client has a set of events per buffer and
 * no queue, so no event is lost. Actions through this /dev/tensor itself are not reported.
 */
struct tensor_event {
	__u32 size;
	__u32 handle;
	__u32 events;
	__u32 __reserved;
	__u64 ino;
};

#endif /* _UAPI_LINUX_TENSOR_H */
