/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The buffer below a tensor, for programs that share memory by other ways than a channel: a file
 * descriptor, a dma-buf, a seal, revocation, memory that may be taken, and events.
 *
 * These functions need a tensor whose storage has a buffer to itself: made with .shareable, or
 * received, or moved into one by tensor_share_memory() or tensor_send(). For another one they fail
 * with EINVAL. A view acts on the whole buffer of its base.
 *
 * Providers. Buffers of the device provider (/dev/tensor) have all of it. With the memfd provider
 * tensor_buffer_fd(), tensor_from_buffer_fd(), tensor_buffer_seal() and tensor_buffer_info() work
 * as each one says, and the others fail with ENOTSUP.
 *
 * Errors. A function that fails returns -errno (or NULL) and leaves a record, see
 * tensor_last_error(). Besides what each function says, all of them may give:
 *
 *	EINVAL	a NULL argument, an unknown flag, or a tensor without a buffer to itself
 *	ENOTSUP	a tensor of another device or layout, or a provider without the operation
 *	ESTALE	the buffer was the parent's before fork(): the child has its mapping and can read and
 *		write it, but has no handle of it
 *	EIDRM	the buffer was revoked
 *	EACCES	a right that the buffer's handle or descriptor in this process does not have; or this
 *		process could not open /dev/tensor, and the operation needs it
 *	EMFILE	no file descriptor is free
 *
 * Threads. All functions may be called from any thread. A call that takes memory away from its
 * users (seal, revoke, purgeable) does so from all threads: the caller makes sure that none of them
 * is using it. A tensor is held by the caller during a call.
 *
 * File descriptors that are returned are new, close-on-exec and the caller's, unless said otherwise.
 * They keep the buffer alive, and a buffer that has had one is not reused for another tensor.
 */
#ifndef TENSOR_BUFFER_H
#define TENSOR_BUFFER_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rights ---- */

/* What a descriptor permits its holder, whichever process that is. No right is added later. The
 * numbers are those of TENSOR_RIGHT_* in <linux/tensor.h>. */
#define TENSOR_BUFFER_READ   (1u << 0) /* map for reading */
#define TENSOR_BUFFER_WRITE  (1u << 1) /* map for writing; change the descriptor */
#define TENSOR_BUFFER_ATTACH (1u << 2) /* make dma-bufs of it, for devices */
#define TENSOR_BUFFER_SEAL   (1u << 3) /* seal it */
#define TENSOR_BUFFER_REVOKE (1u << 4) /* revoke it */
#define TENSOR_BUFFER_EXPORT (1u << 5) /* make further descriptors */
#define TENSOR_BUFFER_ALL    ((1u << 6) - 1)

/* ---- descriptors ---- */

/**
 * tensor_buffer_fd() - a file descriptor of the tensor's buffer, to pass to another process
 * @t: the tensor
 * @rights: TENSOR_BUFFER_*, not 0: what the holder of the descriptor may do, and no more
 *
 * The receiver calls tensor_from_buffer_fd(), or mmap() from offset 0. The first descriptor, or
 * tensor_set_label(), writes the sizes, strides and dtype of its tensor to the buffer.
 *
 * With the memfd provider @rights are READ or READ | WRITE, with or without EXPORT, which cannot be
 * withheld there; other rights are ENOTSUP. READ alone forbids new writable mappings of the memory
 * to all processes; those that exist stay writable.
 *
 * Return: the descriptor, or -errno. EACCES: a right that this process does not have. EPERM: WRITE of
 * a sealed buffer. EBUSY: the buffer is purgeable.
 */
int tensor_buffer_fd(tensor *t, unsigned rights);

/**
 * tensor_from_buffer_fd() - a tensor on the memory behind a file descriptor
 * @fd: a descriptor from tensor_buffer_fd(), a dma-buf of any driver, or a memfd that is sealed with
 *	F_SEAL_SHRINK and F_SEAL_GROW; it stays the caller's, and may be closed
 * @dtype: type of an element; TENSOR_DTYPE_NONE: as the buffer's descriptor says
 * @size: elements of each dimension, row-major; TENSOR_NO_INTS: with a @dtype, one dimension with
 *	as many whole elements as there are behind @offset, and without, as the descriptor says
 * @offset: bytes from the begin of the memory to the first element, a multiple of the size of an
 *	element; 0 without a @dtype
 *
 * The tensor sees the memory itself. It is read-only if the descriptor has no right to write. A
 * dma-buf needs /dev/tensor, and a driver whose mappings do not fault for lack of memory: what
 * mmap() of it does is the driver's. tensor_buffer_sync() brackets its use.
 *
 * The memory may have been prepared by a hostile process: the geometry is checked against the size
 * that the kernel reports. Its owner can write to it at any time. The owner of a buffer of
 * /dev/tensor can also revoke it, after which an access is SIGBUS.
 *
 * Return: a tensor, owned like the result of an operator, or NULL. EBADF: not an open descriptor.
 * EBADMSG: none of the kinds above. EINVAL: no @dtype, and the buffer has no descriptor, or one
 * that the library does not know; or the elements do not lie within the memory. ENOTSUP: a dma-buf,
 * and /dev/tensor is not there. ENODEV, EACCES: memory that cannot be mapped.
 */
tensor *tensor_from_buffer_fd(int fd, enum tensor_dtype dtype, tensor_ints_arg size,
			      int64_t offset);

/**
 * tensor_buffer_dmabuf() - a dma-buf of the tensor's buffer, for the driver of a device
 * @t: the tensor
 * @rights: TENSOR_BUFFER_READ for a device that only reads, READ | WRITE otherwise; more for who
 *	gives the dma-buf to tensor_from_buffer_fd()
 *
 * The tensor's first element lies (const char *)tensor_data(t) - (const char *)tensor_data(base) bytes behind
 * the begin, where base is a tensor that begins where its storage does.
 *
 * Return: the descriptor, or -errno. EACCES: as tensor_buffer_fd(), or no ATTACH. EBUSY: the buffer
 * is purgeable.
 */
int tensor_buffer_dmabuf(tensor *t, unsigned rights);

/**
 * tensor_device_fd() - this process's open /dev/tensor
 *
 * For ioctls of <linux/tensor.h> with the handles of tensor_buffer_handle(). The descriptor is the
 * library's: do not close it. It is close-on-exec and non-blocking, and no longer valid in a child
 * of fork(), which has its own.
 *
 * Return: the descriptor, or -errno. ENOTSUP: there is no /dev/tensor. EACCES: it may not be opened.
 */
int tensor_device_fd(void);

/**
 * tensor_buffer_handle() - the handle of the tensor's buffer in tensor_device_fd()
 * @t: the tensor
 * @handle: out: the handle, valid as long as the tensor's storage; the library closes it
 *
 * Return: 0 or -errno.
 */
int tensor_buffer_handle(const tensor *t, uint32_t *handle);

/* ---- what a buffer is ---- */

enum tensor_buffer_kind {
	TENSOR_BUFFER_KIND_ALLOC = 0,  /* allocated by the module */
	TENSOR_BUFFER_KIND_PIN = 1,    /* memory of a program, pinned */
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
 * struct tensor_buffer_info - what the kernel says of a buffer
 * @size: in: sizeof(struct tensor_buffer_info), by which the library knows the caller's version
 * @kind: enum tensor_buffer_kind
 * @state: TENSOR_BUFFER_STATE_*
 * @seals: TENSOR_BUFFER_SEALED_*
 * @rights: TENSOR_BUFFER_* that this process has
 * @node: NUMA node of all its pages; -1: on more than one, or not known
 * @bytes: bytes that this process reaches
 * @offset: bytes from the begin of the buffer to where these begin
 * @huge_bytes: bytes in chunks of the size of a huge page
 * @pinned_bytes: bytes that are resident and unmovable
 * @dma_bytes: of these, bytes that devices or the kernel have pinned at this moment
 * @dev: with @ino the identity of the buffer, the same in all processes; st_dev of fstat()
 * @ino: st_ino of fstat()
 * @generation: number of writes whose end was reported: by tensor_buffer_sync(), or by a device
 * @age_ns: nanoseconds since it was made
 * @refs: @handles + @files + @mappings + @dmabufs
 * @handles: handles in all processes
 * @files: file descriptors that tensor_buffer_fd() and channels made, those in flight included
 * @mappings: mappings in all processes
 * @dmabufs: dma-bufs
 * @attachments: devices attached to them
 * @pid: process that made it, in this pid namespace; 0 if it is not visible here
 * @uid: user that made it
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

/**
 * tensor_buffer_info() - what the kernel says of the tensor's buffer
 * @t: the tensor
 * @info: in: size; out: the rest. Bytes that this library does not know are zeroed
 *
 * Works on a revoked buffer too. Each count is that of a moment of its own.
 *
 * Return: 0 or -errno. EINVAL: a size below that of the first version.
 */
int tensor_buffer_info(const tensor *t, struct tensor_buffer_info *info);

/* ---- what a buffer may be used for ---- */

/**
 * tensor_buffer_seal() - forbid writing to the tensor's memory, for good and to all
 * @t: the tensor; it and its views are read-only afterwards
 *
 * A receiver can then check the contents and use them without a copy. The sealing tensor is mapped
 * read-only in the same place; in-place operators fail with EACCES. No other thread may be writing.
 * With memfds this is F_SEAL_WRITE. Sealing again is 0.
 *
 * Return: 0 or -errno; after a failure the memory is what it was. EACCES: no right to seal. EBUSY:
 * it could still be written to: by another process or device, by another tensor of this process
 * that received the buffer again, or by direct I/O under way; or it is purgeable. ENOTSUP: memory
 * that the module did not allocate.
 */
int tensor_buffer_seal(tensor *t);

/**
 * tensor_buffer_revoke() - take the buffer away from all its users, this process included
 * @t: the tensor; release it afterwards
 *
 * The memory is free when the call returns, but for pages that a device uses. Every mapping is
 * empty: an access, by an operator of the library too, is SIGBUS in whichever process makes it. The
 * library installs no handler: a program that shares with processes it does not trust to keep a
 * buffer watches TENSOR_BUFFER_EVENT_REVOKE, copies what it must not lose, or handles SIGBUS.
 * tensor_buffer_info() and tensor_release() still work. Revoking again is 0.
 *
 * Return: 0 or -errno. EACCES: no right to revoke. ENOTSUP: memory that the module did not
 * allocate.
 */
int tensor_buffer_revoke(tensor *t);

/**
 * tensor_buffer_purgeable() - let the kernel take the memory when it is short, or no longer
 * @t: the tensor
 * @purgeable: true: the contents may be lost from now on, and the tensor is not to be touched (that
 *	is SIGBUS once the memory was taken); false: the memory is needed
 *
 * For what can be computed again. Only who allocated the buffer can, while no other handle,
 * descriptor, dma-buf or mapping of it exists; a purgeable buffer cannot be sent.
 *
 * Return: with false, 1 if the contents were lost: the memory is there again and zero. Otherwise 0,
 * or -errno. EBUSY: there is another holder. EPERM: it is sealed. ENOMEM, EDQUOT: the memory could
 * not be brought back; it stays purged. ENOTSUP: memory that the module did not allocate.
 */
int tensor_buffer_purgeable(tensor *t, bool purgeable);

/* Of tensor_buffer_sync(). */
#define TENSOR_BUFFER_SYNC_READ	 (1u << 0) /* the processor reads */
#define TENSOR_BUFFER_SYNC_WRITE (1u << 1) /* the processor writes */
#define TENSOR_BUFFER_SYNC_END	 (1u << 2) /* it has; otherwise it is about to */

/**
 * tensor_buffer_sync() - bracket the processor's use of memory that devices use too
 * @t: the tensor
 * @flags: TENSOR_BUFFER_SYNC_*: READ or WRITE or both, and END after the use
 * @timeout_ns: nanoseconds to wait for devices, without END; 0: do not wait; negative: no limit
 *
 * The begin waits for devices that write, and before a write for those that read too. The end of a
 * write raises @generation of tensor_buffer_info() by one. Between processes alone nothing has to be
 * waited for.
 *
 * Return: 0 or -errno. ETIMEDOUT: a device had not finished. EINTR: a signal. EACCES: no right to
 * read, or to write. EPERM: it is sealed.
 */
int tensor_buffer_sync(tensor *t, unsigned flags, int64_t timeout_ns);

/* ---- events ---- */

#define TENSOR_BUFFER_EVENT_SEAL   (1u << 0) /* a seal was added */
#define TENSOR_BUFFER_EVENT_REVOKE (1u << 1) /* the buffer was revoked */
#define TENSOR_BUFFER_EVENT_GONE   (1u << 2) /* a handle, fd or dma-buf of another holder is gone */
#define TENSOR_BUFFER_EVENT_PURGE  (1u << 3) /* its memory was taken */

/**
 * struct tensor_buffer_event - what other processes, or the kernel, did to a buffer
 * @dev: with @ino the identity of the buffer, as in struct tensor_buffer_info
 * @ino: see @dev
 * @handle: see tensor_buffer_handle()
 * @events: TENSOR_BUFFER_EVENT_*, all since it was last read
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
 * tensor_event_fd() - a descriptor to wait for events with
 *
 * poll() reports POLLIN when tensor_event_read() has something. Read it with that function only.
 * A child of fork() closes what it inherited and makes its own: the descriptor keeps the parent's
 * buffers alive.
 *
 * Return: the descriptor, or -errno. ENOTSUP: there is no /dev/tensor. EACCES: it may not be opened.
 */
int tensor_event_fd(void);

/**
 * tensor_event_read() - what happened to the buffers of this process
 * @events: where to
 * @n: room in @events, at least 1
 *
 * Does not wait. Each buffer has one set of events, which a read takes: nothing is lost, and with
 * several readers each event comes to one of them. What this process did itself is not reported. A
 * process that dies lets go of its buffers: that is TENSOR_BUFFER_EVENT_GONE.
 *
 * Return: number of events, 0 if there are none, or -errno. ENOTSUP, EACCES: as tensor_event_fd().
 */
int tensor_event_read(struct tensor_buffer_event *events, int n);

/* ---- memory of other makers, for devices ---- */

/* Memory that is pinned for devices; holds the tensor's storage. */
typedef struct tensor_dma_region tensor_dma_region;

/**
 * tensor_dma_region_open() - pin memory that is not a buffer of /dev/tensor, for devices
 * @t: a tensor of the memfd provider, or of a backend with host memory. Its storage begins and ends
 *	on a page boundary: a device reaches nothing but that
 * @rights: TENSOR_BUFFER_READ for devices that only read, or READ | WRITE
 *
 * The pages count against RLIMIT_MEMLOCK until the region is closed and the last of its dma-bufs is
 * gone. Where the module is loaded this gives dma-bufs of what tensor_buffer_dmabuf() refuses.
 *
 * Return: the region, the caller's, or NULL. EINVAL: a tensor in private memory (see
 * tensor_share_memory()) or that shares pages with other memory (a part of a file), or that has a
 * buffer of /dev/tensor.
 * EACCES: WRITE of read-only memory. ENOTSUP: there is no /dev/tensor, or memory that cannot be
 * pinned for long. ENOMEM: RLIMIT_MEMLOCK. EDQUOT: the limit of the module.
 */
tensor_dma_region *tensor_dma_region_open(tensor *t, unsigned rights);

/**
 * tensor_dma_region_dmabuf() - a dma-buf of the whole region
 * @region: the region
 * @rights: as tensor_buffer_dmabuf(), no more than the region has
 *
 * Return: the descriptor, or -errno.
 */
int tensor_dma_region_dmabuf(tensor_dma_region *region, unsigned rights);

/* Bytes from the begin of the region to the first element of its tensor. */
int64_t tensor_dma_region_offset(const tensor_dma_region *region);
/* tensor_buffer_sync() for a region. */
int tensor_dma_region_sync(tensor_dma_region *region, unsigned flags, int64_t timeout_ns);
/* Ends the region; dma-bufs that were made of it stay. NULL is ignored. After fork() the child's
 * call frees its copy of the region and leaves the parent's. */
void tensor_dma_region_close(tensor_dma_region *region);

#ifdef __cplusplus
}
#endif
#endif
