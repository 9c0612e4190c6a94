/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The buffer that holds a tensor's memory, for programs that share it without a channel: file
 * descriptors, dma-bufs, seals, revocation, purgeable memory, events.
 *
 * The tensor's storage must have a buffer of its own: created with .shareable, received, or moved
 * to a buffer by tensor_share_memory() or tensor_send(). Otherwise these functions fail with
 * EINVAL. A view acts on the whole buffer of its base.
 *
 * Providers. Buffers of the device provider (/dev/tensor) support everything. With the memfd
 * provider tensor_buffer_fd(), tensor_from_buffer_fd(), tensor_buffer_seal() and
 * tensor_buffer_info() work as documented at each, and the others fail with ENOTSUP.
 *
 * Errors. A function that fails returns -errno (or NULL) and sets the error record, see
 * tensor_last_error(). Every function may fail with the following, in addition to those it
 * documents:
 *
 * 	EINVAL	a NULL argument, an unknown flag, or a tensor without a buffer of its own
 * 	ENOTSUP	a tensor of another device or layout, or a provider without the operation
 * 	ESTALE	the buffer belonged to the parent before fork(): the child has its mapping and can
 * 		read and write it, but has no handle of it
 * 	EIDRM	the buffer was revoked
 * 	EACCES	a right that the buffer's handle or descriptor in this process does not have; or
 * 		this process could not open /dev/tensor, which the operation needs
 * 	EMFILE	the limit of file descriptors is reached
 *
 * Threads. All functions may be called from any thread. Seal, revoke and purgeable take memory away
 * from all threads: the caller ensures that none of them is using it. The caller holds a reference
 * to the tensor during a call.
 *
 * Returned file descriptors are new, close-on-exec and owned by the caller, unless documented
 * otherwise. They keep the buffer alive, and a buffer that had one is not reused for another
 * tensor.
 */
#ifndef TENSOR_BUFFER_H
#define TENSOR_BUFFER_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rights ---- */

/* Rights of the holder of a descriptor, in any process. Rights are never added later. The values
 * are those of TENSOR_RIGHT_* in <linux/tensor.h>. */
#define TENSOR_BUFFER_READ   (1u << 0) /* map for reading */
#define TENSOR_BUFFER_WRITE  (1u << 1) /* map for writing; change the descriptor */
#define TENSOR_BUFFER_ATTACH (1u << 2) /* make dma-bufs of it, for devices */
#define TENSOR_BUFFER_SEAL   (1u << 3) /* seal it */
#define TENSOR_BUFFER_REVOKE (1u << 4) /* revoke it */
#define TENSOR_BUFFER_EXPORT (1u << 5) /* make more descriptors */
#define TENSOR_BUFFER_ALL    ((1u << 6) - 1)

/* ---- descriptors ---- */

/**
 * tensor_buffer_fd() - get a file descriptor of the tensor's buffer, to pass to another process
 * @t: the tensor
 * @rights: TENSOR_BUFFER_*, not 0: what the holder of the descriptor may do
 *
 * The receiver calls tensor_from_buffer_fd(), or mmap() from offset 0. The first descriptor, or
 * tensor_set_label(), stores the sizes, strides and dtype of its tensor in the buffer.
 *
 * With the memfd provider @rights are READ or READ | WRITE, with or without EXPORT, which memfds
 * always have; other rights are ENOTSUP. READ alone prevents new writable mappings of the memory in
 * all processes; existing ones stay writable.
 *
 * Return: the descriptor, or -errno. EACCES: a right that this process does not have. EPERM: WRITE
 *   of a sealed buffer. EBUSY: the buffer is purgeable.
 */
int tensor_buffer_fd(tensor *t, unsigned rights);

/**
 * tensor_from_buffer_fd() - make a tensor on the memory of a file descriptor
 * @fd: a descriptor from tensor_buffer_fd(), a dma-buf of any driver, or a memfd sealed with
 * 	F_SEAL_SHRINK and F_SEAL_GROW; remains the caller's, which may close it
 * @dtype: type of an element; TENSOR_DTYPE_NONE: as stored in the buffer
 * @size: elements of each dimension, row-major; TENSOR_NO_INTS: with a @dtype, one dimension with
 * 	all whole elements after @offset; without, as stored in the buffer
 * @offset: bytes from the start of the memory to the first element, a multiple of the element
 * 	size; 0 without a @dtype
 *
 * The tensor aliases the memory; nothing is copied. It is read-only if the descriptor has no right
 * to write. A dma-buf needs /dev/tensor, and a driver whose mappings do not fault for lack of
 * memory: its mmap() is the driver's. tensor_buffer_sync() brackets its use.
 *
 * The memory may come from a hostile process: the geometry is checked against the size that the
 * kernel reports. Its owner can write to it at any time. The owner of a buffer of /dev/tensor can
 * also revoke it, after which an access raises SIGBUS.
 *
 * Return: a tensor, owned like the result of an operator, or NULL. EBADF: not an open descriptor.
 *   EBADMSG: none of the kinds above. EINVAL: no @dtype, and the buffer has no descriptor or one
 *   that the library does not know; or elements outside the memory. ENOTSUP: a dma-buf without
 *   /dev/tensor, or without mmap(), which only devices can use. ENODEV, EACCES: memory that cannot be mapped.
 */
tensor *tensor_from_buffer_fd(int fd, enum tensor_dtype dtype, tensor_ints_arg size,
			      int64_t offset);

/**
 * tensor_buffer_dmabuf() - export the tensor's buffer as a dma-buf, for a device driver
 * @t: the tensor
 * @rights: TENSOR_BUFFER_READ for a device that only reads, READ | WRITE otherwise; more if the
 * 	dma-buf is passed to tensor_from_buffer_fd()
 *
 * The tensor's first element is (const char *)tensor_data(t) - (const char *)tensor_data(base) bytes after the
 * start, where base is a tensor at the start of the storage.
 *
 * Return: the descriptor, or -errno. EACCES: as tensor_buffer_fd(), or no ATTACH. EBUSY: the buffer
 *   is purgeable.
 */
int tensor_buffer_dmabuf(tensor *t, unsigned rights);

/**
 * tensor_device_fd() - get this process's open /dev/tensor
 *
 * For ioctls of <linux/tensor.h> on the handles of tensor_buffer_handle(). The descriptor belongs
 * to the library: do not close it. It is close-on-exec and non-blocking. It is invalid in a child
 * of fork(), which has its own.
 *
 * Return: the descriptor, or -errno. ENOTSUP: /dev/tensor does not exist. EACCES: no permission to
 *   open it.
 */
int tensor_device_fd(void);

/**
 * tensor_buffer_handle() - get the handle of the tensor's buffer in tensor_device_fd()
 * @t: the tensor
 * @handle: out: the handle, valid as long as the tensor's storage; the library closes it
 *
 * Return: 0 or -errno.
 */
int tensor_buffer_handle(const tensor *t, uint32_t *handle);

/* ---- properties of a buffer ---- */

enum tensor_buffer_kind {
	TENSOR_BUFFER_KIND_ALLOC = 0,  /* allocated by the module */
	TENSOR_BUFFER_KIND_PIN = 1,    /* pinned memory of a program */
	TENSOR_BUFFER_KIND_DMABUF = 2, /* a dma-buf of another driver */
	TENSOR_BUFFER_KIND_MEMFD = 3
};

/* tensor_buffer_info.state */
#define TENSOR_BUFFER_STATE_RDONLY    (1u << 0) /* no right to write */
#define TENSOR_BUFFER_STATE_META      (1u << 1) /* a descriptor is set */
#define TENSOR_BUFFER_STATE_RANGE     (1u << 2) /* a part of the buffer only */
#define TENSOR_BUFFER_STATE_REVOKED   (1u << 3)
#define TENSOR_BUFFER_STATE_PURGEABLE (1u << 4)
#define TENSOR_BUFFER_STATE_PURGED    (1u << 5)

/* tensor_buffer_info.seals */
#define TENSOR_BUFFER_SEALED_WRITE (1u << 0) /* the memory cannot be written to */
#define TENSOR_BUFFER_SEALED_META  (1u << 1) /* the descriptor cannot be changed */
#define TENSOR_BUFFER_SEALED_SEAL  (1u << 2) /* no seal can be added */

/**
 * struct tensor_buffer_info - the kernel's description of a buffer
 * @size: in: sizeof(struct tensor_buffer_info), which identifies the caller's version
 * @kind: enum tensor_buffer_kind
 * @state: TENSOR_BUFFER_STATE_*
 * @seals: TENSOR_BUFFER_SEALED_*
 * @rights: TENSOR_BUFFER_* of this process
 * @node: NUMA node of all its pages; -1: several, or unknown
 * @bytes: bytes accessible to this process
 * @offset: bytes from the start of the buffer to the start of these
 * @huge_bytes: bytes in chunks of huge page size
 * @pinned_bytes: bytes that are resident and unmovable
 * @dma_bytes: of these, bytes currently pinned by devices or the kernel
 * @dev: with @ino the identity of the buffer, the same in all processes; st_dev of fstat()
 * @ino: st_ino of fstat()
 * @generation: number of finished writes reported by tensor_buffer_sync() or by a device
 * @age_ns: nanoseconds since its creation
 * @refs: @handles + @files + @mappings + @dmabufs
 * @handles: handles in all processes
 * @files: file descriptors made by tensor_buffer_fd() and channels, including those in flight
 * @mappings: mappings in all processes
 * @dmabufs: dma-bufs
 * @attachments: devices attached to them
 * @pid: process that created it, in this pid namespace; 0 if not visible here
 * @uid: user that created it
 *
 * With the memfd provider @huge_bytes, @pinned_bytes, @dma_bytes, @generation, @age_ns, the counts,
 * @pid and @uid are 0, and @node is -1.
 */
struct tensor_buffer_info {
	uint32_t size;
	uint32_t kind;
	uint32_t state;
	uint32_t seals;
	uint32_t rights;
	int32_t node;
	uint64_t bytes;
	uint64_t offset;
	uint64_t huge_bytes;
	uint64_t pinned_bytes;
	uint64_t dma_bytes;
	uint64_t dev;
	uint64_t ino;
	uint64_t generation;
	uint64_t age_ns;
	uint32_t refs;
	uint32_t handles;
	uint32_t files;
	uint32_t mappings;
	uint32_t dmabufs;
	uint32_t attachments;
	int32_t pid;
	uint32_t uid;
};

#ifdef __cplusplus /* a function with the name of a structure, as stat() */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
/**
 * tensor_buffer_info() - get the kernel's description of the tensor's buffer
 * @t: the tensor
 * @info: in: size; out: the rest. Bytes that this library does not know are zeroed
 *
 * Also works on a revoked buffer. The counts are read one after another, not atomically.
 *
 * Return: 0 or -errno. EINVAL: a size below that of the first version.
 */
int tensor_buffer_info(const tensor *t, struct tensor_buffer_info *info);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/* ---- seal, revoke, purge, synchronize ---- */

/**
 * tensor_buffer_seal() - forbid writing to the tensor's memory, permanently and in all processes
 * @t: the tensor; it and its views are read-only afterwards
 *
 * A receiver can then check the contents and use them without a copy. The sealing tensor is mapped
 * read-only at the same address; in-place operators fail with EACCES. No other thread may be
 * writing. With memfds this is F_SEAL_WRITE. Sealing again returns 0.
 *
 * Return: 0 or -errno; after a failure the memory is unchanged. EACCES: no right to seal. EBUSY: it
 *   could still be written to: by another process or device, by another tensor of this process that
 *   received the buffer again, or by direct I/O in progress; or it is purgeable. ENOTSUP: memory
 *   that the module did not allocate.
 */
int tensor_buffer_seal(tensor *t);

/**
 * tensor_buffer_revoke() - remove the buffer from all its users, including this process
 * @t: the tensor; release it afterwards
 *
 * The memory is free when the call returns, except for pages in use by a device. All mappings
 * become empty: an access in any process, including by an operator of the library, raises SIGBUS.
 * The library installs no signal handler: a program that shares with processes it does not trust to
 * keep a buffer watches TENSOR_BUFFER_EVENT_REVOKE, copies the data it needs, or handles SIGBUS.
 * tensor_buffer_info() and tensor_release() still work. Revoking again returns 0.
 *
 * Return: 0 or -errno. EACCES: no right to revoke. ENOTSUP: memory that the module did not
 *   allocate.
 */
int tensor_buffer_revoke(tensor *t);

/**
 * tensor_buffer_purgeable() - allow the kernel to reclaim the memory under pressure, or stop that
 * @t: the tensor
 * @purgeable: true: the contents may be lost from now on, and the tensor must not be accessed (an
 * 	access raises SIGBUS once the memory is reclaimed); false: the memory is needed
 *
 * For data that can be computed again. Only the allocating process can call it, while no other
 * handle, descriptor, dma-buf or mapping of the buffer exists; a purgeable buffer cannot be sent.
 *
 * Return: with false, 1 if the contents were lost: the memory is allocated again and zero.
 *   Otherwise 0, or -errno. EBUSY: there is another holder. EPERM: it is sealed. ENOMEM, EDQUOT:
 *   the memory could not be allocated again; it stays purged. ENOTSUP: memory that the module did
 *   not allocate.
 */
int tensor_buffer_purgeable(tensor *t, bool purgeable);

/* Flags of tensor_buffer_sync(). */
#define TENSOR_BUFFER_SYNC_READ	 (1u << 0) /* the processor reads */
#define TENSOR_BUFFER_SYNC_WRITE (1u << 1) /* the processor writes */
#define TENSOR_BUFFER_SYNC_END	 (1u << 2) /* end of the use; without it, the start */

/**
 * tensor_buffer_sync() - bracket the processor's use of memory that devices also use
 * @t: the tensor
 * @flags: TENSOR_BUFFER_SYNC_*: READ or WRITE or both, and END after the use
 * @timeout_ns: nanoseconds to wait for devices, without END; 0: do not wait; negative: no limit
 *
 * The start waits for devices that write and, before a write, also for those that read. The end of
 * a write increments @generation of tensor_buffer_info(). Processes without devices need not call
 * it.
 *
 * Return: 0 or -errno. ETIMEDOUT: a device had not finished. EINTR: a signal. EACCES: no right to
 *   read, or to write. EPERM: it is sealed.
 */
int tensor_buffer_sync(tensor *t, unsigned flags, int64_t timeout_ns);

/* ---- events ---- */

#define TENSOR_BUFFER_EVENT_SEAL   (1u << 0) /* a seal was added */
#define TENSOR_BUFFER_EVENT_REVOKE (1u << 1) /* the buffer was revoked */
#define TENSOR_BUFFER_EVENT_GONE   (1u << 2) /* another holder closed a handle, fd or dma-buf */
#define TENSOR_BUFFER_EVENT_PURGE  (1u << 3) /* the memory was reclaimed */

/**
 * struct tensor_buffer_event - changes of a buffer by other processes or the kernel
 * @dev: with @ino the identity of the buffer, as in struct tensor_buffer_info
 * @ino: see @dev
 * @handle: see tensor_buffer_handle()
 * @events: TENSOR_BUFFER_EVENT_*, all since the last read
 * @reserved: 0
 */
struct tensor_buffer_event {
	uint64_t dev;
	uint64_t ino;
	uint32_t handle;
	uint32_t events;
	uint64_t reserved[2];
};

/**
 * tensor_event_fd() - get a descriptor to wait for events
 *
 * poll() reports POLLIN when tensor_event_read() has an event. Read events only with that function.
 * A child of fork() closes the inherited descriptor and opens its own: the inherited one keeps the
 * parent's buffers alive.
 *
 * Return: the descriptor, or -errno. ENOTSUP: /dev/tensor does not exist. EACCES: no permission to
 *   open it.
 */
int tensor_event_fd(void);

/**
 * tensor_event_read() - read the events of this process's buffers
 * @events: out: the events
 * @n: capacity of @events, at least 1
 *
 * Does not wait. Each buffer accumulates one set of events, which a read takes: none is lost, and
 * with several readers each event is returned to one of them. Events caused by this process are not
 * reported. The death of a process releases its buffers, which is TENSOR_BUFFER_EVENT_GONE.
 *
 * Return: number of events, 0 if there are none, or -errno. ENOTSUP, EACCES: as tensor_event_fd().
 */
int tensor_event_read(struct tensor_buffer_event *events, int n);

/* ---- pinned memory for devices ---- */

/* Memory pinned for devices. Holds a reference to the tensor's storage. */
typedef struct tensor_dma_region tensor_dma_region;

/**
 * tensor_dma_region_open() - pin memory that is not a buffer of /dev/tensor, for devices
 * @t: a tensor of the memfd provider, or of a backend with host memory. Its storage must begin and
 * 	end on a page boundary, so that a device reaches nothing else
 * @rights: TENSOR_BUFFER_READ for devices that only read, or READ | WRITE
 *
 * The pages count against RLIMIT_MEMLOCK until the region is closed and the last of its dma-bufs is
 * released. With the module loaded, this exports as dma-bufs memory for which
 * tensor_buffer_dmabuf() fails.
 *
 * Return: the region, owned by the caller, or NULL. EINVAL: a tensor in private memory (see
 *   tensor_share_memory()), or one that shares pages with other memory (a part of a file), or that
 *   has a buffer of /dev/tensor. EACCES: WRITE of read-only memory. ENOTSUP: /dev/tensor does not
 *   exist, or the memory cannot be pinned long-term. ENOMEM: RLIMIT_MEMLOCK. EDQUOT: the limit of
 *   the module.
 */
tensor_dma_region *tensor_dma_region_open(tensor *t, unsigned rights);

/**
 * tensor_dma_region_dmabuf() - export the whole region as a dma-buf
 * @region: the region
 * @rights: as tensor_buffer_dmabuf(), no more than the region has
 *
 * Return: the descriptor, or -errno.
 */
int tensor_dma_region_dmabuf(tensor_dma_region *region, unsigned rights);

/* Bytes from the start of the region to the first element of its tensor. */
int64_t tensor_dma_region_offset(const tensor_dma_region *region);
/* tensor_buffer_sync() for a region. 0 or -errno. */
int tensor_dma_region_sync(tensor_dma_region *region, unsigned flags, int64_t timeout_ns);
/* Close the region; dma-bufs made of it stay valid. NULL is ignored. In a child of fork() the call
 * frees the child's copy and leaves the parent's region open. */
void tensor_dma_region_close(tensor_dma_region *region);

#ifdef __cplusplus
}
#endif
#endif
