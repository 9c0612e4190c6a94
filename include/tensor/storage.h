/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Storage: the provider of host memory, the caching allocator, memory of other devices, sharing
 * between processes. */
#ifndef TENSOR_STORAGE_H
#define TENSOR_STORAGE_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "device" (/dev/tensor) or "memfd". The environment variable TENSOR_PROVIDER (device or memfd)
 * selects it; by default it is the device if that can be opened. */
const char *tensor_provider_name(void);

/*
 * Host memory. A tensor that is not shareable has private memory of the process, with either
 * provider: fork() copies it on write, and it needs no file descriptor. Up to 1 MiB it is a block
 * of an arena, above that a mapping of its own. A shareable tensor has a buffer of the provider to
 * itself.
 *
 * Freed memory is kept for reuse: private memory for about ten seconds, buffers until
 * TENSOR_CACHE_LIMIT (bytes; a quarter of the machine's memory by default) or tensor_cache_trim().
 * All of it is released before an allocation fails.
 */
struct tensor_cache_stats {
	uint64_t used, cached;	 /* bytes of buffers and mappings: in tensors, and kept for reuse */
	uint64_t buffers;	 /* made by the provider so far */
	uint64_t hits, misses;	 /* of allocations of a whole buffer or mapping */
	uint64_t arenas, blocks; /* bytes of arenas, and of the allocated blocks in them */
};
#ifdef __cplusplus /* a function with the name of a structure, as stat() */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
/* Read the counters of this process. */
void tensor_cache_stats(struct tensor_cache_stats *stats);
/* Number of tensors and storages. For leak tests: it scans all descriptions, while other threads
 * may allocate and free. */
struct tensor_live_counts {
	uint64_t tensors, storages;
};
void tensor_live_counts(struct tensor_live_counts *counts);
/*
 * Bytes of all private storages, the temporary memory of operators included, with TENSOR_DEBUG=1 in the
 * environment. *peak, unless peak is NULL: the maximum since the last call that was given one; each
 * storage counts with the bytes that its tensor needs, without rounding. -ENOTSUP without TENSOR_DEBUG, and
 * under AddressSanitizer and valgrind.
 */
int64_t tensor_live_bytes(int64_t *peak);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
/* Release the memory kept for reuse to the kernel, except blocks in other threads' caches: at most
 * 256 KiB, or two blocks, of each size. */
void tensor_cache_trim(void);

/**
 * tensor_share_memory() - move the tensor's storage to a buffer that other processes can share
 * @t: a strided tensor in host memory, not quantized
 *
 * Moves a private storage to a buffer of the provider; does nothing if it has one. All tensors on
 * the storage, including views, keep their values. A storage of 4096 bytes or more keeps its
 * address: pointers from tensor_data() stay valid. A smaller one gets another address; pointers to
 * the old one can be used until the storage is freed, but access only the old copy.
 *
 * The bytes are copied once. No other thread may use a tensor on the storage meanwhile: its writes
 * could be lost. A child of fork() has its own copy of storages that were private at the fork, and
 * neither process sees the other's later writes; storages that were shareable are shared by both.
 *
 * tensor_send() does the same to a private storage.
 *
 * Return: 0, or -errno. ENOTSUP: a tensor of another layout or device, or memory that the library
 *   did not allocate (of a file, of another library). ENOMEM: no memory, or the limit of the
 *   module. EMFILE: RLIMIT_NOFILE.
 */
int tensor_share_memory(tensor *t);

/*
 * From now on tensor_version() of a tensor in a buffer counts the in-place operators of this process alone, and so does
 * that of processes that receive the buffer later from a process with the memfd provider. For trainers that update
 * shared parameters while others have saved them for backward. 0, or -EINVAL without a tensor.
 */
int tensor_count_own_writes(tensor *t);

/* Set the label of the tensor's buffer, which tensorstat shows, and store the tensor's shape in the
 * buffer. 0, or -errno: EINVAL without a buffer (see tensor_share_memory()). */
int tensor_set_label(tensor *t, const char *label);

/* ---- between processes ---- */

/*
 * One end of a connected unix stream or seqpacket socket that transfers tensors. A tensor is a
 * message of fixed size with its geometry; the first message about a buffer carries its file
 * descriptor. The channel does not own the socket.
 */
typedef struct tensor_channel tensor_channel;

#define TENSOR_SEND_READONLY 1u /* the peer can only map it read-only, permanently */

/* Open a channel on a connected socket, which the caller closes after the channel. NULL with the
 * error set: EINVAL for another kind of socket. */
tensor_channel *tensor_channel_open(int socket);
/* Close the channel and drop its references to buffers. NULL is ignored. */
void tensor_channel_close(tensor_channel *channel);
/*
 * Send a tensor. 0 or -errno. A tensor in private memory is moved to a buffer first, as by
 * tensor_share_memory(). Memory that the library did not allocate is copied: see docs/sharing.md.
 *
 * A tensor on a CUDA device goes to a process of this machine. The send waits for the thread's current stream; the first
 * one of a storage waits for the device and moves the storage to another address. EBUSY: a graph or another library has
 * that address. EOPNOTSUPP: with TENSOR_SEND_READONLY, memory of another process or library, or the device cannot share
 * memory. A receiver without the device gets ENODEV.
 */
int tensor_send(tensor_channel *channel, tensor *t, unsigned flags);
/*
 * Receive a tensor on the sender's memory: new, owned like an operator's result. NULL with the
 * error set: EPIPE if the peer has closed the socket, EBADMSG for a message that does not fit its
 * buffer, EPROTO for a message that is not from a channel.
 */
tensor *tensor_recv(tensor_channel *channel);

/* ---- memory of other backends ---- */

/* Allocator of a device's memory, registered by its backend, see tensor_register_backend(). Both
 * functions may be called from any thread. */
struct tensor_allocator {
	const char *name;
	/* nbytes >= 1; *data is aligned to 64. Returns 0 or -errno. */
	int (*alloc)(const struct tensor_allocator *self, tensor_device device, size_t nbytes,
		     void **data);
	void (*free)(const struct tensor_allocator *self, tensor_device device, void *data,
		     size_t nbytes);
	bool host_accessible; /* tensor_data() may return the pointer */
	void *ctx;	      /* for the backend's use */
};

#ifdef __cplusplus
}
#endif
#endif
